//! From pasted bytes to lines: what terminals, mails and web pages wrap around a log is taken off.

use super::given;
use super::html;
use super::prefix::{self, is_row, is_time, untagged};

/// One line of a file, numbered from 1, without quoting, escapes, entities and odd blanks.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    pub number: usize,
    /// How deep a mail quotes it.
    pub depth: usize,
    pub text: String,
}

/// The line after which a stored log begins; what stands above it is about the log, not of it.
const RAW: &str = "---- raw ----";

/// The line that stands for a key pressed to end a command, whatever else its line held.
pub const STOPPED: &str = "^C";
const ETX: char = '\u{3}';

/// All lines of a file that hold something and are not a header, continued lines joined.
pub fn lines(bytes: &[u8]) -> Vec<Line> {
    cleaned(bytes, false)
}

/// The same with the header, in which the command may stand.
pub fn lines_and_header(bytes: &[u8]) -> Vec<Line> {
    cleaned(bytes, true)
}

fn cleaned(bytes: &[u8], header: bool) -> Vec<Line> {
    let text = unescape(&decode(bytes));
    let mut all: Vec<Line> = vec![];
    let mut goes_on = false;
    let raws: Vec<&str> = text.split('\n').collect();
    for (number, raw) in html::lines(&raws) {
        let stopped = raw.contains(ETX);
        let raw = if stopped { raw.replace(ETX, " ").into() } else { raw };
        let text = if raw.trim().is_empty() { String::new() } else { entities(unquote(&raw)) };
        // A shell line that ends in a backslash goes on below.
        match all.last_mut().filter(|_| goes_on) {
            Some(last) => {
                last.text.pop();
                last.text.truncate(last.text.trim_end().len());
                last.text.push(' ');
                last.text.push_str(text.trim_start());
            }
            None if text.is_empty() => {}
            None => all.push(Line { number, depth: depth(&raw), text }),
        }
        if stopped {
            all.push(Line { number, depth: depth(&raw), text: STOPPED.into() });
        }
        goes_on = all.last().is_some_and(|l| l.text.ends_with('\\'));
    }
    let raw = all.iter().position(|l| l.text.starts_with('#') && l.text.contains(RAW)).filter(|_| !header);
    let start = raw.map_or(0, |i| i + 1);
    let mut log = all.split_off(start);
    prefix::take_off(&mut log);
    unfold(log, &raws)
}

/// Narrower, nobody sets a terminal.
const NARROWEST: usize = 40;

/// Joins comments that were broken at the last column of a terminal; rows are put together where they are read.
fn unfold(all: Vec<Line>, raws: &[&str]) -> Vec<Line> {
    let wide = |raw: &&str| raw.chars().fold(0, |at, c| if c == '\t' { at / 8 * 8 + 8 } else { at + 1 });
    let edge = raws.iter().map(wide).max().unwrap_or(0);
    if edge < NARROWEST || raws.iter().filter(|r| wide(r) == edge).count() < 2 {
        return all;
    }
    let mut out: Vec<Line> = vec![];
    let mut last = 0;
    for line in all {
        let begins = line.text.starts_with(['#', '$']) || is_row(&line.text);
        let follows = !begins && last > 0 && last + 1 == line.number && (wide(&raws[last - 1]) == edge || raws[last - 1].len() == edge);
        // Behind the root prompt a command is put together where it is read.
        match out.last_mut().filter(|o| follows && o.text.starts_with('#') && super::command::command(&o.text).is_none()) {
            Some(comment) => {
                let blank = raws[last - 1].ends_with(' ') || raws[line.number - 1].starts_with(' ');
                comment.text.push_str(if blank { " " } else { "" });
                comment.text.push_str(&line.text);
            }
            None => out.push(line.clone()),
        }
        last = line.number;
    }
    out
}

/// UTF-16 with a byte order mark, or UTF-8 in which bytes that are none are taken for Latin-1.
fn decode(bytes: &[u8]) -> String {
    let bytes = &*given::plain(bytes);
    let plain = quoted_printable(bytes);
    let bytes = plain.as_deref().unwrap_or(bytes);
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        out.push_str(chunk.valid());
        out.extend(chunk.invalid().iter().map(|&b| b as char));
    }
    out
}

/// A mail saved as it was sent: "735=C2=B5s", lines that end in "=" go on below. `None` where the text is no such mail.
fn quoted_printable(bytes: &[u8]) -> Option<Vec<u8>> {
    let marks = [&b"=C2=B5"[..], b"=B5s", b"=CE=BC", b"=3D"];
    let marked = |i: usize| bytes[i] == b'=' && marks.iter().any(|m| bytes[i..].starts_with(m));
    if !(0..bytes.len()).any(marked) {
        return None;
    }
    let mut out = Vec::with_capacity(bytes.len());
    let mut i = 0;
    while i < bytes.len() {
        let hex = |b: u8| (b as char).to_digit(16).filter(|_| !b.is_ascii_lowercase());
        match bytes[i..] {
            [b'=', b'\r', b'\n', ..] => i += 3,
            [b'=', b'\n', ..] => i += 2,
            [b'=', a, b, ..] if hex(a).is_some() && hex(b).is_some() => {
                out.push((hex(a).unwrap_or(0) * 16 + hex(b).unwrap_or(0)) as u8);
                i += 3;
            }
            _ => {
                out.push(bytes[i]);
                i += 1;
            }
        }
    }
    Some(out)
}

/// Takes off terminal control: ANSI sequences, their caret notation, carriage returns, backspaces.
fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' | '\u{9b}' => escape(&mut chars, c == '\u{9b}'),
            '^' if chars.peek() == Some(&'[') => {
                chars.next();
                escape(&mut chars, false);
            }
            '^' if chars.peek() == Some(&'C') => {
                chars.next();
                out.push(ETX);
            }
            '^' if chars.peek().is_some_and(|c| c.is_ascii_uppercase() || matches!(c, '@' | '\\' | '?')) => {
                chars.next();
                out.push(' ');
            }
            '\r' => {
                if chars.peek() != Some(&'\n') {
                    out.push('\n');
                }
            }
            '\u{8}' => {
                if out.ends_with(|c| c != '\n') {
                    out.pop();
                }
            }
            '\n' | '\t' => out.push(c),
            '\u{2028}' | '\u{2029}' => out.push('\n'),
            '\u{2212}' | '\u{2010}' | '\u{2011}' => out.push('-'),
            // Zero width: nothing to see.
            '\u{200b}'..='\u{200f}' | '\u{feff}' | '\u{2060}' | '\u{ad}' => {}
            c if c.is_whitespace() => out.push(' '),
            c if c.is_control() => {}
            c => out.push(c),
        }
    }
    out
}

/// Skips what follows an escape character: CSI to its final byte, OSC to its end, or one character.
fn escape(chars: &mut std::iter::Peekable<std::str::Chars>, csi: bool) {
    let kind = if csi { Some('[') } else { chars.next_if(|c| *c != '\n' && *c != '\r') };
    match kind {
        Some('[') => {
            while let Some(c) = chars.next_if(|c| ('\u{20}'..='\u{7e}').contains(c)) {
                if ('@'..='~').contains(&c) {
                    break;
                }
            }
        }
        Some(']') => {
            while let Some(c) = chars.next_if(|c| *c != '\n' && *c != '\u{1b}') {
                if c == '\u{7}' {
                    break;
                }
            }
        }
        _ => {}
    }
}

/// The marks of quotation in front of a line, in the source of a page as well.
fn depth(line: &str) -> usize {
    let (mut rest, mut marks) = (line.trim_start(), 0);
    while let Some(r) = rest.strip_prefix('>').or_else(|| rest.strip_prefix("&gt;")) {
        (rest, marks) = (r.trim_start(), marks + 1);
    }
    marks
}

/// Takes off mail quoting ("> > ", "Arnd> "), the time stamps of chats and loggers, forum tags and the bars of a table.
fn unquote(line: &str) -> String {
    let mut rest = line.trim();
    loop {
        let before = rest;
        while let Some(r) = rest.strip_prefix('>') {
            rest = r.trim_start();
        }
        // "[12:01:33] ", "[    5.123456] ", "[code]", "[/quote]".
        if let Some((inside, after)) = rest.strip_prefix('[').and_then(|r| r.split_once(']')) {
            let stamp =
                inside.contains([':', '.']) && inside.chars().all(|c| c.is_ascii_digit() || matches!(c, ':' | '.' | ' ' | '-' | '/'));
            let tag = inside.trim_start_matches('/');
            let tag = tag.split(['=', ' ']).next().unwrap_or(tag);
            if stamp
                || matches!(tag.to_ascii_lowercase().as_str(), "code" | "quote" | "pre" | "spoiler" | "b" | "i" | "tt" | "font" | "size")
            {
                rest = after.trim_start();
            }
        }
        rest = stamped(rest).unwrap_or(rest);
        if rest == before {
            break;
        }
    }
    if !rest.bytes().any(|b| matches!(b, b'[' | b'|')) {
        return rest.to_string();
    }
    let mut rest = rest.to_string();
    for tag in ["[/code]", "[/CODE]", "[/quote]", "[/pre]"] {
        rest = rest.replace(tag, "");
    }
    // Tabs: what stood between bars stays a column.
    rest.replace('|', "\t").trim().to_string()
}

/// What follows "15:23:43.123 -> " (the Arduino serial monitor), "2024-01-31 15:23:43 " or "Jan 31 15:23:43 pi flashbench[123]: " (syslog).
fn stamped(line: &str) -> Option<&str> {
    if let Some((time, rest)) = line.split_once(" -> ")
        && is_time(time)
    {
        return Some(rest.trim_start());
    }
    let (first, rest) = line.split_once([' ', 'T'])?;
    let (second, rest) = rest.trim_start().split_once(' ')?;
    let is_date =
        first.len() == 10 && first.split('-').map(str::len).eq([4, 2, 2]) && first.bytes().all(|b| b.is_ascii_digit() || b == b'-');
    if is_date && is_time(second) {
        let rest = rest.trim_start();
        return Some(untagged(rest).unwrap_or(rest));
    }
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let (time, rest) = rest.trim_start().split_once(' ')?;
    if !MONTHS.contains(&first) || second.parse::<u8>().is_err() || !is_time(time) {
        return None;
    }
    // The host, and the program with its number; `ts` names neither.
    let rest = rest.trim_start();
    let spoken = || {
        let (_, said) = rest.split_once(' ').filter(|_| !is_row(rest))?;
        let (program, after) = said.split_once(": ").or_else(|| Some((said.strip_suffix(':')?, "")))?;
        (!program.contains([' ', '\t'])).then(|| after.trim_start())
    };
    Some(spoken().unwrap_or(rest))
}

/// HTML: tags away, the entities that occur in logs replaced. One pass: "&amp;gt;" stays "&gt;".
fn entities(line: String) -> String {
    if !line.bytes().any(|b| matches!(b, b'<' | b'&')) {
        return line;
    }
    let mut out = String::with_capacity(line.len());
    let mut rest = &line[..];
    while let Some(i) = rest.find(['<', '&']) {
        out.push_str(&rest[..i]);
        rest = &rest[i..];
        // A tag or an entity ends soon, or it is none.
        let near = |c: u8, most: usize| rest.bytes().take(most + 1).position(|b| b == c);
        let named = rest[1..].starts_with(|c: char| c.is_ascii_alphabetic() || c == '/');
        if let Some(end) = near(b'>', 200).filter(|_| named && rest.starts_with('<')) {
            rest = &rest[end + 1..];
            continue;
        }
        let end = near(b';', 10).filter(|&e| e >= 2);
        match end.and_then(|e| Some((entity(&rest[1..e])?, e))) {
            Some((c, e)) if rest.starts_with('&') => {
                out.push(c);
                rest = &rest[e + 1..];
            }
            _ => {
                out.push_str(&rest[..1]);
                rest = &rest[1..];
            }
        }
    }
    out.push_str(rest);
    out.trim().trim_start_matches("> ").to_string()
}

fn entity(name: &str) -> Option<char> {
    Some(match name {
        "micro" => 'µ',
        "mu" => 'μ',
        "nbsp" => ' ',
        "gt" => '>',
        "lt" => '<',
        "amp" => '&',
        "quot" => '"',
        "minus" => '-',
        _ => {
            let n = name.strip_prefix('#')?;
            let code = match n.strip_prefix(['x', 'X']) {
                Some(hex) => u32::from_str_radix(hex, 16).ok()?,
                None => n.parse().ok()?,
            };
            char::from_u32(code).filter(|c| !c.is_control())?
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clean(s: &str) -> Vec<String> {
        lines(s.as_bytes()).into_iter().map(|l| l.text).filter(|t| !t.is_empty()).collect()
    }

    #[test]
    fn wrapping_comes_off() {
        assert_eq!(clean("> > 4MiB 14M/s\r\n\u{1b}[32m2MiB\u{1b}[0m 18M/s\r\n"), ["4MiB 14M/s", "2MiB 18M/s"]);
        assert_eq!(clean("^[[A^[[D^[[A128KiB  12.3M/s\n^C"), ["128KiB  12.3M/s", "^C"]);
        assert_eq!(clean("1MiB 3M/s 4^C$ ls"), ["1MiB 3M/s 4 $ ls", "^C"]);
        assert_eq!(clean("<pre>pre 735&micro;s on 1&#181;s</pre>\n&gt; 4MiB"), ["pre 735µs on 1µs", "4MiB"]);
        assert_eq!(clean("flashbench -O \\\n\t--open-au-nr=3 /dev/x\nnext"), ["flashbench -O --open-au-nr=3 /dev/x", "next"]);
        assert_eq!(clean("a\u{a0}b"), ["a b"]);
        assert_eq!(clean("[code]4MiB 14M/s\n[12:01:33] 2MiB 18M/s[/code]\n> [0.5] 1MiB"), ["4MiB 14M/s", "2MiB 18M/s", "1MiB"]);
        let stamps = ["15:23:43.123 -> ", "2024-01-31 15:23:43 ", "2024-01-31T15:23:43.5+01:00 ", "Jan  1 15:23:43 pi flashbench[123]: "];
        for stamp in stamps {
            assert_eq!(clean(&format!("{stamp}4MiB 14M/s\n{stamp}412.35,48216,1220")), ["4MiB 14M/s", "412.35,48216,1220"], "{stamp}");
        }
        assert_eq!(clean("15:23:43 is no stamp"), ["15:23:43 is no stamp"]);
        assert_eq!(clean("pre 735=C2=B5s on =\n1.08ms"), ["pre 735µs on 1.08ms"]);
        assert_eq!(lines(b"735\xb5s")[0].text, "735µs");
        assert_eq!(lines(&[0xff, 0xfe, b'4', 0, b'M', 0])[0].text, "4M");
    }

    /// As `fold` breaks them; the first column of the next line may be in the middle of a word.
    #[test]
    fn comments_that_a_terminal_broke_are_joined() {
        let comment = "# nandscope 0.1.0, Toshiba eMMC of 2011: 7 open AUs, writes below 32 KiB cost a constant 4.5 ms, 7948206080 bytes";
        for width in 60..90 {
            let (head, tail) = comment.split_at(width);
            assert_eq!(clean(&format!("{head}\n{tail}\n4MiB 14M/s\n{head}\n{tail}\n4MiB 14M/s")), [comment, "4MiB 14M/s"].repeat(2));
        }
        // A single long line is no edge of a terminal.
        assert_eq!(clean(&format!("{comment}\nand so on")), [comment, "and so on"]);
    }

    #[test]
    fn a_stored_header_is_not_part_of_the_log() {
        assert_eq!(clean("# author_erase_block: 4MiB\n# ---- raw ----\nalign 1"), ["align 1"]);
        assert_eq!(lines(b"# x\n# ---- raw ----\nalign 1")[0].number, 3);
    }
}

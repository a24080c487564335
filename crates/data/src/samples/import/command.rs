//! What stands between the tables: command lines and headings that say which test follows.

use crate::units::Bytes;

/// Which test a line announces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Align,
    Open,
    Fat,
    Program,
}

/// What is known of the rows to come.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Context {
    pub kind: Option<Kind>,
    /// AUs written in turn.
    pub n: Option<u32>,
    /// `n` is what flashbench takes where it is told none.
    pub default_n: bool,
    pub random: Option<bool>,
    /// An alignment test that writes.
    pub write: bool,
    pub erase_size: Option<u64>,
    pub block_size: Option<u64>,
    /// The values of a shell loop over the number of AUs, one a block of rows.
    pub queue: Vec<u32>,
    /// The disk it was told to test.
    pub disk: Option<String>,
}

/// flashbench's own defaults.
const DEFAULT_N: u32 = 2;
const DEFAULT_ERASE: u64 = 4 << 20;
const DEFAULT_BLOCK: u64 = 16 << 10;

/// What mail programs and word processors make of a dash, or of two.
const DASHES: [char; 3] = ['-', '\u{2013}', '\u{2014}'];

/// Long options of flashbench, and of this program's, that take no value, then those that do.
const PLAIN: [&str; 17] = [
    "align",
    "align-write",
    "write-align",
    "scatter",
    "interval",
    "find-fat",
    "open-au",
    "access-kinds",
    "random",
    "verbose",
    "help",
    "overwrite-start",
    "plain",
    "no-undo",
    "dry-run",
    "quiet",
    "write",
];
const VALUED: [&str; 17] = [
    "scatter-order",
    "scatter-span",
    "fat-nr",
    "open-au-nr",
    "interval-order",
    "out",
    "offset",
    "count",
    "blocksize",
    "erasesize",
    "consent",
    "spacing",
    "threes",
    "program",
    "set",
    "seed",
    "region",
];

/// A long option, whole or cut short as getopt takes it; an error where it is none or might be two. `None` for single letters.
fn option(word: &str) -> Option<Result<&'static str, ()>> {
    let bare = word.trim_start_matches(DASHES);
    let all = || PLAIN.into_iter().chain(VALUED);
    let exact = all().find(|o| *o == bare);
    let mut alike = all().filter(|o| o.starts_with(bare));
    let found = exact.or_else(|| alike.next().filter(|_| alike.next().is_none()));
    // One dash of any kind before more than a few letters was two once: "–random".
    let two = word.starts_with("--") && bare.len() > 1;
    match found {
        Some(o) if two || word.starts_with(DASHES) && bare.len() > 3 => Some(Ok(o)),
        _ => (two && bare.starts_with(|c: char| c.is_ascii_alphabetic())).then_some(Err(())),
    }
}

/// Whether a word is a long option, written out.
pub fn is_option(word: &str) -> bool {
    word.strip_prefix("--").is_some_and(|w| PLAIN.contains(&w) || VALUED.contains(&w))
}

/// Whether a command goes on below: within brackets, or behind an option that wants a value.
pub fn is_open(text: &str) -> bool {
    let depth = |open: &str, close: &str| text.matches(open).count() > text.matches(close).count();
    depth("$[", "]") || depth("$((", "))") || text.ends_with('=')
}

/// Whether a line is what a mail broke off a command: it begins with an option.
pub fn is_rest(text: &str) -> bool {
    let mut words = text.split_whitespace();
    let first = words.next().unwrap_or_default();
    let name = first.split('=').next().unwrap_or_default();
    let short = || {
        let mut letters = name.chars();
        letters.next().is_some_and(|c| DASHES.contains(&c))
            && letters.clone().count() <= 3
            && letters.all(|c| "aAfOr0Fbceosipv".contains(c))
            && name.len() > 1
    };
    matches!(option(name), Some(Ok(_)))
        || short() && words.next().is_none_or(|w| w.starts_with(|c: char| c.is_ascii_digit() || "-$/".contains(c)))
}

/// A line that starts flashbench, behind whatever prompt. A line that begins with '#' counts only when the command follows
/// at once: the root prompt of a bare shell looks like a comment.
pub fn command(text: &str) -> Option<Context> {
    if !text.contains("flashbench") {
        return None;
    }
    let words: Vec<String> = split(text);
    let at = words
        .iter()
        .position(|w| w.rsplit(['/', '\\', '#', '$', ':']).next().is_some_and(|w| w == "flashbench" || w == "flashbench.exe"))?;
    if text.starts_with('#') {
        let before = text.trim_start_matches('#').trim_start();
        let first = split(before).into_iter().find(|w| !matches!(w.as_str(), "sudo" | "time" | "nice"))?;
        let rooted = first.ends_with("/flashbench") && before.contains(" -");
        if !first.ends_with("flashbench")
            || !(rooted || before.contains(" /") || split(before).iter().any(|w| super::card::disk(w).is_some()))
        {
            return None;
        }
    }
    let loops = shell_loop(&words[..at]);
    let mut c = Context { disk: words[at + 1..].iter().find_map(|w| super::card::disk(w)), ..Context::default() };
    let (mut open, mut fat, mut align, mut program, mut unknown, mut n) = (false, false, false, false, false, None);
    let mut args = words[at + 1..].iter();
    while let Some(word) = args.next() {
        if matches!(word.as_str(), ";" | "&&" | "done" | "|" | "tee") || word.starts_with('>') {
            break;
        }
        let (name, mut value) = match word.split_once('=') {
            Some((n, v)) => (n.to_string(), Some(v.to_string())),
            None => (word.clone(), None),
        };
        // Single letters may be run together, the last one with its value: "-Or", "-0 6", "-b512".
        let mut letters: Vec<String> = vec![];
        match option(&name) {
            Some(Ok(long)) => letters.push(format!("--{long}")),
            Some(Err(())) => unknown = true,
            None => {
                for (i, ch) in name.char_indices().skip(1).take_while(|_| name.starts_with(DASHES)) {
                    letters.push(format!("-{ch}"));
                    let rest = &name[i + ch.len_utf8()..];
                    if "0Fbceos".contains(ch) && rest.starts_with(|c: char| c.is_ascii_digit() || c == '$') {
                        value = Some(rest.to_string());
                        break;
                    }
                }
            }
        }
        for name in letters {
            let mut take =
                || value.take().or_else(|| args.clone().next().filter(|a| !a.starts_with(DASHES)).and_then(|_| args.next().cloned()));
            match name.as_str() {
                "-a" | "--align" => align = true,
                "-A" | "--align-write" | "--write-align" => (align, c.write) = (true, true),
                "-O" | "--open-au" => open = true,
                "-f" | "--find-fat" => fat = true,
                "-p" | "--access-kinds" => program = true,
                "-r" | "--random" => c.random = Some(true),
                "-0" | "--open-au-nr" => {
                    let v = take().unwrap_or_default();
                    match &loops {
                        Some((var, values)) if v.contains(&format!("${var}")) || v.contains(&format!("${{{var}}}")) => {
                            c.queue = values.clone();
                            n = Some(None);
                        }
                        _ => n = Some(v.parse().ok().filter(|n| (1..=4096).contains(n))),
                    }
                }
                "-e" | "--erasesize" => c.erase_size = take().and_then(|v| arithmetic(&v)),
                "-b" | "--blocksize" => c.block_size = take().and_then(|v| arithmetic(&v)),
                "-c" | "-F" | "-o" => drop(take()),
                long if VALUED.iter().any(|v| long.strip_prefix("--") == Some(v)) => drop(take()),
                _ => {}
            }
        }
    }
    c.block_size.get_or_insert(DEFAULT_BLOCK);
    // What a part of a word stood for is not known: it may have been the order, or how many AUs.
    if open && !unknown {
        c.n = n.unwrap_or(Some(DEFAULT_N));
        c.default_n = n.is_none();
    }
    if open || fat {
        c.random.get_or_insert(false);
        c.erase_size.get_or_insert(DEFAULT_ERASE);
    }
    // Several tests in one command run in this order; each table then tells itself apart by its form.
    c.kind = match (fat, align, open, program) {
        (true, _, false, _) => Some(Kind::Fat),
        (false, true, false, _) => Some(Kind::Align),
        (_, _, true, _) => Some(Kind::Open),
        (_, _, _, true) => Some(Kind::Program),
        _ => None,
    };
    Some(c)
}

/// A heading such as "AU=4, linear access", "Random access" or "find FAT: 1"; `n` and `random` only where it names them.
pub fn heading(text: &str) -> Option<Context> {
    let low = text.to_ascii_lowercase();
    let words = super::card::first_words(&low, 13);
    // Prose is not a heading.
    if words.is_empty() || words.len() > 12 {
        return None;
    }
    let has = |w: &str| words.contains(&w);
    let random = match (has("random"), has("linear") || has("sequential")) {
        (true, false) => Some(true),
        (false, true) => Some(false),
        _ => None,
    };
    let mut c = Context { random, ..Context::default() };
    let au = |w: &str| matches!(w, "au" | "aus" | "nr" | "segments" | "n") || (w == "eraseblocks");
    let number = |w: &str| w.parse::<u32>().ok().filter(|n| (1..=512).contains(n));
    // "AU = 4 MiB" is a size and no count.
    let unit = |i: usize| words.get(i).is_some_and(|w| matches!(*w, "b" | "kb" | "kib" | "k" | "mb" | "mib" | "m" | "byte" | "bytes"));
    for (i, w) in words.iter().enumerate() {
        let joined = w.strip_prefix("au").or(w.strip_prefix("nr")).and_then(number).filter(|_| !unit(i + 1));
        let next = au(w).then(|| words.get(i + 1).and_then(|w| number(w))).flatten().filter(|_| !unit(i + 2));
        let before = matches!(*w, "aus" | "au" | "segments").then(|| {
            let skip = usize::from(i > 0 && words[i - 1] == "open");
            words.get(i.checked_sub(1 + skip)?).and_then(|w| number(w))
        });
        // "1 open", "3 erase blocks open".
        let opened = (*w == "open" && words.len() <= 6).then(|| {
            let skip = if i > 2 && matches!(words[i - 2..i], ["erase", "block" | "blocks"]) { 2 } else { 0 };
            words.get(i.checked_sub(1 + skip)?).and_then(|w| number(w))
        });
        if c.n.is_none() {
            c.n = joined.or(next).or(before.flatten()).or(opened.flatten());
        }
    }
    let fat = has("fat") && (has("find") || has("zone") || has("area"));
    let align = has("align") || has("alignment");
    c.kind = match () {
        _ if fat => Some(Kind::Fat),
        _ if align && c.n.is_none() => Some(Kind::Align),
        _ if c.n.is_some() || (c.random.is_some() && (has("access") || has("au") || has("open"))) => Some(Kind::Open),
        _ => return None,
    };
    if fat {
        c.n = None;
    }
    Some(c)
}

/// A line that changes something between two tests: "# echo 0 > /sys/block/mmcblk0/device/page_size" is "page_size = 0", a kernel
/// module, or a short heading on a patch.
pub fn setting(text: &str) -> Option<String> {
    if text.len() > 200 {
        return None;
    }
    let bare = text.trim_start_matches(['#', '$', '=', '-', '*', ' ', '\t']);
    if let Some((before, after)) = bare.split_once("echo ").filter(|b| b.0.len() < 80) {
        let (value, path) = after.split_once('>')?;
        let path = path.trim_start_matches('>').split_whitespace().find(|w| w.starts_with("/sys/") || w.starts_with("/proc/"))?;
        let _ = before;
        let name = path.trim_end_matches('/').rsplit('/').next()?;
        return Some(format!("{name} = {}", value.trim().trim_matches(['"', '\''])));
    }
    // One more than any of what follows may have.
    let words: Vec<&str> = bare.split_whitespace().take(9).collect();
    let at =
        words.iter().position(|w| matches!(w.rsplit('/').next(), Some("modprobe" | "insmod" | "rmmod" | "sysctl" | "blockdev" | "hdparm")));
    let prompt = at.is_some_and(|i| i <= 2 && words.len() > i + 1 && words.len() <= i + 6);
    if let Some(i) = at.filter(|_| prompt && text != bare || at == Some(0)) {
        return Some(bare.split_whitespace().skip(i).collect::<Vec<_>>().join(" "));
    }
    let patch = |w: &&str| {
        let w = w.trim_matches(|c: char| !c.is_alphanumeric()).to_ascii_lowercase();
        matches!(w.as_str(), "patch" | "patched" | "patches" | "unpatched" | "vanilla" | "workaround" | "quirk")
    };
    (words.len() <= 6 && words.iter().any(patch) && !bare.ends_with('?')).then(|| bare.trim_end_matches([':', '=', '-', ' ']).to_string())
}

/// Words of a shell line; "$[4 * 1024 * 1024]" and "$((4 * 1024))" are one word, quotes are dropped.
pub fn split(text: &str) -> Vec<String> {
    let mut out: Vec<String> = vec![];
    let (mut word, mut depth) = (String::new(), 0i32);
    let mut flush = |word: &mut String| {
        if !word.is_empty() {
            out.push(std::mem::take(word));
        }
    };
    for c in text.chars() {
        match c {
            '[' | '(' | '{' if word.ends_with(['$', '(']) || depth > 0 => {
                depth += 1;
                word.push(c);
            }
            ']' | ')' | '}' if depth > 0 => {
                depth -= 1;
                word.push(c);
            }
            '"' | '\'' | '`' => {}
            ';' if depth == 0 => {
                flush(&mut word);
                word.push(c);
                flush(&mut word);
            }
            c if c.is_whitespace() && depth > 0 => word.push(' '),
            c if c.is_whitespace() => flush(&mut word),
            c => word.push(c),
        }
    }
    flush(&mut word);
    out
}

/// "4194304", "4M", "4MiB", "$[4*1024*1024]", "$((4<<20))": bytes.
fn arithmetic(word: &str) -> Option<u64> {
    let inner = word.trim_start_matches(['$', '[', '(']).trim_end_matches([']', ')']);
    let mut product = 1u64;
    for factor in inner.split('*') {
        let value = match factor.split_once("<<") {
            Some((a, b)) => a.trim().parse::<u64>().ok()?.checked_shl(b.trim().parse().ok()?)?,
            None => factor.trim().parse::<Bytes>().ok()?.0,
        };
        product = product.checked_mul(value)?;
    }
    (512..=1 << 40).contains(&product).then_some(product)
}

/// "for n in 1 2 3; do", "for n in {1..7}; do", "for n in $(seq 1 7); do", "for ((n=1; n<=7; n++)); do": the variable and its values.
fn shell_loop(words: &[String]) -> Option<(String, Vec<u32>)> {
    /// More than anybody tries.
    const MOST: u32 = 512;
    let at = words.iter().position(|w| w == "for" || w.ends_with("$for") || w.ends_with("#for"))?;
    let var = words.get(at + 1)?.clone();
    if let Some(c) = var.strip_prefix("((") {
        let (begin, rest) = c.split_once(';')?;
        let (name, first) = begin.split_once('=')?;
        let (_, last) = rest.split_once('<')?;
        let past = u32::from(!last.starts_with('='));
        let last = last.trim_start_matches('=').split(';').next()?.trim().parse::<u32>().ok()?.checked_sub(past).filter(|&b| b <= MOST)?;
        return rest.contains("++").then_some((name.trim().to_string(), (first.trim().parse().ok()?..=last).collect()));
    }
    if words.get(at + 2)? != "in" {
        return None;
    }
    let mut values: Vec<u32> = vec![];
    let list: Vec<&str> = words[at + 3..].iter().take_while(|w| !matches!(w.as_str(), ";" | "do")).flat_map(|w| w.split(' ')).collect();
    let mut list = list.iter().map(|w| w.trim_matches(['{', '}', '$', '(', ')']));
    while let Some(w) = list.next() {
        if w == "seq" {
            let given: Vec<u32> = list.by_ref().map(|w| w.parse().ok()).collect::<Option<_>>()?;
            let (first, step, last) = match given[..] {
                [b] => (1, 1, b),
                [a, b] => (a, 1, b),
                [a, s, b] => (a, s, b),
                _ => return None,
            };
            values.extend((first..=Some(last).filter(|&b| b <= MOST)?).step_by(Some(step as usize).filter(|&s| s > 0)?));
        } else if let Some((a, b)) = w.split_once("..") {
            values.extend(a.parse::<u32>().ok()?..=b.parse::<u32>().ok().filter(|&b| b <= MOST)?);
        } else {
            values.push(w.parse().ok()?);
        }
    }
    Some((var, values))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_lines() {
        let c = command("$ sudo ./flashbench -O --erasesize=$[4 * 1024 * 1024] --blocksize=$[256 * 1024] /dev/mmcblk0  --open-au-nr=3")
            .unwrap();
        assert_eq!(
            (c.kind, c.n, c.random, c.erase_size, c.block_size),
            (Some(Kind::Open), Some(3), Some(false), Some(4 << 20), Some(256 << 10))
        );
        let c = command("# ./flashbench -O -0 6  -b 512 /dev/block/mmcblk0p9").unwrap();
        assert_eq!((c.n, c.block_size), (Some(6), Some(512)));
        let c =
            command("root@localhost:~/flashbench# ./flashbench /dev/mmcblk1 --open-au --erasesize=$[8*1024*1024] --random --open-au-nr 7")
                .unwrap();
        assert_eq!((c.n, c.random, c.erase_size), (Some(7), Some(true), Some(8 << 20)));
        assert_eq!(command("flashbench -Or /dev/sdb").unwrap().n, Some(2));
        assert_eq!(command("flashbench -a /dev/sdb").unwrap().kind, Some(Kind::Align));
        assert_eq!(command("$ flashbench /dev/sdb -f -r").unwrap().kind, Some(Kind::Fat));
        let c = command("$ for i in 1 2 3; do ./flashbench -O --open-au-nr=$i /dev/sdb; done").unwrap();
        assert_eq!((c.n, c.queue), (None, vec![1, 2, 3]));
        for (head, n) in [
            ("for i in $(seq 1 12); do", 12),
            ("for i in `seq 8`; do", 8),
            ("for i in $(seq 2 3 14); do", 5),
            ("for ((i=1; i<=6; i++)); do", 6),
            ("for ((i = 0; i < 6; i++)); do", 6),
        ] {
            let c = command(&format!("$ {head} ./flashbench -O --open-au-nr=$i /dev/sdb; done")).unwrap();
            assert_eq!((c.n, c.queue.len()), (None, n), "{head}: {:?}", c.queue);
        }
        // As getopt takes them, and as mail programs write them.
        for text in ["--open-au --rand --open-au-n=3", "\u{2013}open-au \u{2014}random \u{2013}open-au-nr=3", "-O -r -0 3", "-Or -03"] {
            let c = command(&format!("flashbench {text} /dev/sdb")).unwrap();
            assert_eq!((c.kind, c.n, c.random), (Some(Kind::Open), Some(3), Some(true)), "{text}");
        }
        for text in ["-O --open-a", "-O --ope /dev/sdb", "--open-au --nr=3", "--open-au --open-au-n"] {
            assert_eq!(command(&format!("flashbench {text}")).unwrap().n, None, "{text}");
        }
        assert!(["--random", "-0 3 /dev/sdb", "\u{2013}random", "-b 512"].into_iter().all(is_rest));
        assert!(["-", "--", "- 3 AUs", "---------", "-fast card", "--- a/x", "-49389n"].into_iter().all(|t| !is_rest(t)));
        assert_eq!(command("# command: flashbench -O --open-au-nr=9"), None);
        for card in ["'exec:./card block 3'", "\"exec:python3 'my card.py'\"", "exec:true", "serial:/dev/ttyACM0@9600", "sim:x"] {
            let c = command(&format!("# flashbench -O --open-au-nr=3 --erasesize=1048576 {card}")).unwrap();
            assert_eq!((c.n, c.disk.is_some()), (Some(3), true), "{card}");
        }
        assert_eq!(command("cd flashbench-master"), None);
    }

    #[test]
    fn headings() {
        let of = |s: &str| heading(s).map(|c| (c.kind, c.n, c.random));
        assert_eq!(of("======= AU=4, linear access ======="), Some((Some(Kind::Open), Some(4), Some(false))));
        assert_eq!(of("Random access============"), Some((Some(Kind::Open), None, Some(true))));
        assert_eq!(of("5 open AUs, random"), Some((Some(Kind::Open), Some(5), Some(true))));
        assert_eq!(of("======= find FAT: 1 ======="), Some((Some(Kind::Fat), None, None)));
        assert_eq!(of("======= Align test: 3 ======="), Some((Some(Kind::Align), None, None)));
        assert_eq!(of("random, 1 open"), Some((Some(Kind::Open), Some(1), Some(true))));
        assert_eq!(of("3 erase blocks open"), Some((Some(Kind::Open), Some(3), None)));
        assert_eq!(of("(AU 4 MiB, 1 open)"), Some((Some(Kind::Open), Some(1), None)));
        for text in ["==== 1 ====", "AU = 4 MiB", "AU: 4 MB", "writing with 4 MiB AUs"] {
            assert_eq!(of(text), None, "{text}");
        }
        assert_eq!(of("10+0 records in"), None);
        assert_eq!(of("Linear read speed (dd, 4M block)"), None);
    }
}

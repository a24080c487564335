//! SdFat bench and texts about it: the table form ("speed,max,min,avg"), the form of 2012, its figures in one line a card, in
//! running text without latencies, and what `nandscope bench` prints.
//!
//! Mails and web pages break such texts anywhere, or nowhere. So a line is searched for what it says, one statement after the
//! other, and what stands unfinished at its end is read again with the next line.

use super::named::{Named, host, named};
use super::{BenchPass, Place};

/// Where a reading of the bench stands.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct State {
    /// A table's passes follow: writes or reads.
    table: Option<bool>,
    /// "Write 80.33 KB/sec", waiting for its latencies: longest, shortest, average.
    open: Option<(usize, bool, f64, [Option<f64>; 3])>,
    /// Speeds that no latency followed, waiting for "on the 128MB SDC".
    bare: Vec<(usize, bool, f64)>,
    /// The unfinished end of the line before.
    tail: String,
    /// The line before, whose end a title may have lost to the width of a terminal.
    above: String,
    /// Columns of the table over several targets.
    columns: Vec<Column>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Column {
    Target,
    Record,
    /// Write or read; speed, max, min, avg by number.
    Figure(bool, usize),
    Other,
}

/// What a line of the bench says.
#[derive(Clone, Debug, PartialEq)]
pub enum Said {
    Pass(BenchPass),
    /// The same in another form, unless it was not said before.
    Again(BenchPass),
    /// Bytes of a record; `None` where two sizes are named at once.
    Size(Option<u32>),
    FileMb(f64),
    CardGb(f64),
    /// The card that the figures before this word are of, or that those behind it are of.
    Card(Named),
    /// A target of `nandscope bench`, and its host.
    Target(String, Option<String>),
    Host(String),
    /// A heading: belongs to the bench and holds no figure.
    Heading,
}

/// What a line says, in its order; empty where it says nothing of the kind. `low` is the text in lower case.
pub fn line(state: &mut State, place: Place, text: &str, low: &str) -> Vec<Said> {
    let number = place.line;
    if low.contains("speed and latency") {
        *state = State { table: Some(low.contains("write")), ..State::default() };
        return vec![Said::Heading];
    }
    let headed = |first: &str, next: &str| low.strip_prefix(first).is_some_and(|r| r.starts_with([',', ';']) && r[1..].starts_with(next));
    if headed("speed", "max") || headed("kb/sec", "usec") {
        state.table.get_or_insert(true);
        return vec![Said::Heading];
    }
    if let Some(write) = state.table.filter(|_| low.starts_with(|c: char| c.is_ascii_digit())) {
        let parts = cells_of(text);
        if let [speed, max, min, avg] = parts[..] {
            return vec![Said::Pass(BenchPass { line: number, write, speed, max, min, avg })];
        }
    }
    let above = std::mem::replace(&mut state.above, text.chars().take(300).collect());
    let broken = || title(&format!("{} {}", above.trim(), text.trim())).filter(|_| title(&above).is_none());
    if let Some(said) = title(text).or_else(broken).or_else(|| row(state, number, text, low)) {
        return said;
    }
    let after = |head: &str| {
        low.strip_prefix(head).and_then(|r| r.trim_start_matches([' ', '=', ':']).split([' ', 'm', 'g']).next()?.parse::<f64>().ok())
    };
    if let Some(mb) = after("file size").or_else(|| after("file_size_mb")) {
        return vec![Said::FileMb(mb)];
    }
    if let Some(gb) = after("card size") {
        return vec![Said::CardGb(gb)];
    }
    if state.tail.is_empty() && !may_speak(low) {
        return vec![];
    }
    let tail = std::mem::take(&mut state.tail);
    if tail.is_empty() {
        return statements(state, number, text, low);
    }
    let (both, both_low) = (format!("{tail} {text}"), format!("{} {low}", tail.to_ascii_lowercase()));
    let said = statements(state, number, &both, &both_low);
    if said.is_empty() && state.tail.is_empty() && may_speak(low) { statements(state, number, text, low) } else { said }
}

/// "412.35,48216,1220,1239"; where the decimal point is a comma a spreadsheet parts by semicolons, and a program by commas as ever.
fn cells_of(text: &str) -> Vec<f64> {
    let point = |p: &str| p.trim().replace(',', ".");
    let cells: Vec<String> = match text.split(',').collect::<Vec<_>>()[..] {
        _ if text.contains(';') => text.split(';').map(point).collect(),
        [whole, part, ref rest @ ..] if rest.len() == 3 && part.len() == 2 => {
            [format!("{whole}.{part}")].into_iter().chain(rest.iter().map(|r| point(r))).collect()
        }
        ref all => all.iter().map(|p| p.trim().to_string()).collect(),
    };
    cells.iter().map_while(|c| c.parse().ok()).filter(|x: &f64| x.is_finite() && *x >= 0.0).collect()
}

/// A cheap look for any word that a statement holds.
fn may_speak(low: &str) -> bool {
    ["kb/s", "latency", "buffer size", "buf_size", "record", " bytes at a time", "write", "read"].iter().any(|w| low.contains(w))
}

fn statements(state: &mut State, number: usize, text: &str, low: &str) -> Vec<Said> {
    let mut out = vec![];
    let mut from = 0;
    let mut at = 0;
    let mut before = ' ';
    while at < low.len() {
        let c = low.as_bytes()[at] as char;
        // Each statement begins with one of these.
        let first = matches!(c, 'w' | 'r' | 'm' | 'a' | 'b' | 'o' | '0'..='9');
        let word = first && !before.is_ascii_alphanumeric();
        before = c;
        let rest = if word { &low[at..] } else { "" };
        if let Some((write, speed, end)) = speed(rest) {
            // "1GB Wintec card Write 278.40 KB/sec": the card stands before its figures.
            out.extend(named(&text[from..at]).map(Said::Card));
            state.bare.extend(state.open.take().filter(|o| o.3 == [None; 3]).map(|o| (o.0, o.1, o.2)));
            state.open = Some((number, write, speed, [None; 3]));
            (at, from) = (at + end, at + end);
            out.push(Said::Heading);
        } else if let Some((which, value, end)) = latency(rest) {
            if let Some(o) = &mut state.open {
                o.3[which] = Some(value);
                if let (line, write, speed, [Some(max), Some(min), Some(avg)]) = *o {
                    let pass = BenchPass { line, write, speed, max, min, avg };
                    state.open = None;
                    state.bare.clear();
                    out.push(if state.table.is_some() { Said::Again(pass) } else { Said::Pass(pass) });
                }
            }
            (at, from) = (at + end, at + end);
        } else if let Some((size, end)) = record(&low[..at], rest) {
            state.table = None;
            out.push(Said::Size(size));
            (at, from) = (at + end, at + end);
        } else if let Some(card) = rest.strip_prefix("on ").filter(|_| state.open.is_some()).and_then(|_| on_card(&text[at + 3..])) {
            // "Write: 77kB/sec, Read: 328kB/sec on the 128MB SDC": all that was said and has no latencies.
            state.bare.extend(state.open.take().filter(|o| o.3 == [None; 3]).map(|o| (o.0, o.1, o.2)));
            out.push(Said::Card(card));
            let none = f64::NAN;
            out.extend(
                state
                    .bare
                    .drain(..)
                    .map(|(line, write, speed)| Said::Pass(BenchPass { line, write, speed, max: none, min: none, avg: none })),
            );
            (at, from) = (at + 3, at + 3);
        } else {
            at += low[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    state.tail = unfinished(&text[from..]);
    if !out.is_empty() || low.contains("bytes at a time") {
        out.splice(0..0, host(text).map(Said::Host));
    }
    out
}

/// "on the [128MB SDC](http://...)": a card whose name ends before the next bracket or comma.
fn on_card(text: &str) -> Option<Named> {
    let text = text.trim_start_matches(|c: char| c == '[' || c == '(' || c.is_whitespace());
    let text =
        text.strip_prefix("the ").or(text.strip_prefix("a ")).or(text.strip_prefix("an ")).or(text.strip_prefix("my ")).unwrap_or(text);
    named(text.trim_start_matches(['[', '(']).split([']', ')', ',', ';', '(', '[']).next()?.get(..)?.split(". ").next()?)
}

/// The number at the start, and the bytes it takes.
fn number(s: &str) -> Option<(f64, usize)> {
    let len = s.bytes().take_while(|b| b.is_ascii_digit() || *b == b'.').count();
    let digits = s[..len].trim_end_matches('.');
    let value: f64 = digits.parse().ok().filter(|v: &f64| v.is_finite() && *v < 1e12)?;
    Some((value, digits.len()))
}

fn gap(s: &str) -> usize {
    s.len() - s.trim_start_matches([' ', '\t', ':', '=']).len()
}

/// "write 278.40 kb/sec", "read: 328kb/sec".
fn speed(low: &str) -> Option<(bool, f64, usize)> {
    let write = low.starts_with("write");
    let name = if write { 5 } else { 4 };
    if !write && !low.starts_with("read") {
        return None;
    }
    let start = name + gap(&low[name..]);
    let (value, len) = number(&low[start..]).filter(|n| n.0 > 0.0)?;
    let unit = &low[start + len..];
    let blank = unit.len() - unit.trim_start_matches(' ').len();
    let unit = &unit[blank..];
    let (factor, name) = [("kb/sec", 1.0), ("kb/s", 1.0), ("mb/sec", 1e3), ("mb/s", 1e3)]
        .into_iter()
        .find_map(|(u, f)| Some((f, unit.starts_with(u).then_some(u.len())?)))?;
    Some((write, value * factor, start + len + blank + name))
}

/// "maximum latency: 84916 usec": 0, 1, 2 for longest, shortest, average.
fn latency(low: &str) -> Option<(usize, f64, usize)> {
    let names = [
        ("maximum latency", 0),
        ("max latency", 0),
        ("minimum latency", 1),
        ("min latency", 1),
        ("average latency", 2),
        ("avg latency", 2),
    ];
    let (name, which) = names.into_iter().find(|n| low.starts_with(n.0))?;
    let start = name.len() + gap(&low[name.len()..]);
    let (value, len) = number(&low[start..])?;
    let unit = low[start + len..].trim_start();
    let factor = if unit.starts_with("ms") || unit.starts_with("msec") { 1e3 } else { 1.0 };
    Some((which, value * factor, start + len))
}

/// "buffer size 100 bytes", "512 byte records", "in records of 512 b", "2048 bytes at a time".
fn record(before: &str, low: &str) -> Option<(Option<u32>, usize)> {
    let sane = |n: &(f64, usize)| (1.0..=1e9).contains(&n.0) && n.0.fract() == 0.0;
    for head in ["buffer size", "buf_size", "record size", "records of"] {
        if let Some(rest) = low.strip_prefix(head) {
            let start = head.len() + gap(rest);
            let n = number(&low[start..]).filter(sane)?;
            // "records of 512 B" is none of "records of 3 passes".
            let unit = low[start + n.1..].trim_start();
            return (head != "records of" || unit.starts_with('b')).then_some((Some(n.0 as u32), start + n.1));
        }
    }
    let n = number(low).filter(sane)?;
    let unit = low[n.1..].trim_start_matches([' ', '-']);
    let rest = unit.strip_prefix("bytes").or(unit.strip_prefix("byte"))?.trim_start();
    if !rest.starts_with("record") && !rest.starts_with("at a time") {
        return None;
    }
    // "100 and 512 byte records" names two.
    let two = before.trim_end().ends_with(" and") || before.trim_end().ends_with(" or");
    Some(((!two).then_some(n.0 as u32), low.len() - rest.len()))
}

/// The end of a line that says something only with the next one: "Minimum Latency:", "Write 278.40", "Buffer size".
fn unfinished(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let last = &words[words.len().saturating_sub(3)..];
    for (i, w) in last.iter().enumerate() {
        let low: Vec<String> = last[i..].iter().map(|w| w.trim_end_matches([':', ',']).to_ascii_lowercase()).collect();
        let value = |s: &String| s.parse::<f64>().is_ok();
        let open = match &low[..] {
            [a] => {
                matches!(a.as_str(), "maximum" | "minimum" | "avg" | "average" | "write" | "read" | "buffer") || value(a) && w.len() <= 6
            }
            [a, b] => {
                matches!(a.as_str(), "maximum" | "max" | "minimum" | "min" | "avg" | "average") && b == "latency"
                    || matches!(a.as_str(), "write" | "read") && value(b)
                    || a == "buffer" && b == "size"
                    || value(a) && matches!(b.as_str(), "byte" | "bytes")
            }
            _ => false,
        };
        if open {
            // With what names the card in front of it.
            let from = if low.len() <= 2 && matches!(low[0].as_str(), "write" | "read") { 0 } else { words.len() - low.len() };
            return words[from.max(words.len().saturating_sub(12))..].join(" ");
        }
    }
    String::new()
}

/// "sim:wintec-1gb, avr-16mhz-spi, clusters of 16 KiB: 5.00 MB in records of 100 B, synced at the end".
fn title(text: &str) -> Option<Vec<Said>> {
    let (head, tail) = text.split_once(" in records of ")?;
    let (record, _) = number(tail).filter(|n| n.0 >= 1.0 && n.0 <= 1e9)?;
    let (head, file) = head.rsplit_once(": ")?;
    let (target, host) = head.split_once(", ")?;
    let mb = file.trim().strip_suffix("MB").and_then(|m| m.trim().parse().ok());
    let host = host.split(", clusters").next().map(str::trim).filter(|h| !h.is_empty()).map(str::to_string);
    let mut out = vec![Said::Target(target.trim().into(), host), Said::Size(Some(record as u32))];
    out.extend(mb.map(Said::FileMb));
    Some(out)
}

/// Cells of a row: between tabs, or else between wide gaps.
fn cells(row: &str) -> Vec<&str> {
    let cells: Vec<&str> = if row.contains('\t') { row.split('\t').collect() } else { row.split("  ").collect() };
    cells.into_iter().map(str::trim).filter(|c| !c.is_empty()).collect()
}

/// The table over several targets: its heading, or a row of it. Columns that are not known are left out.
fn row(state: &mut State, line: usize, text: &str, low: &str) -> Option<Vec<Said>> {
    if low.starts_with("target") && low.contains("record") && low.contains("kb/s") {
        let mut write = true;
        state.columns = cells(low)
            .into_iter()
            .map(|c| {
                let words: Vec<&str> = c.split_whitespace().collect();
                let has = |w: &str| words.contains(&w);
                if has("write") || has("read") {
                    write = has("write");
                }
                match () {
                    _ if has("target") || has("card") => Column::Target,
                    _ if has("record") || has("records") => Column::Record,
                    _ if has("kb/s") => Column::Figure(write, 0),
                    _ if has("max") || has("longest") => Column::Figure(write, 1),
                    _ if has("min") || has("shortest") => Column::Figure(write, 2),
                    _ if has("avg") || has("mean") || has("average") => Column::Figure(write, 3),
                    _ => Column::Other,
                }
            })
            .collect();
        return Some(vec![Said::Heading]);
    }
    if state.columns.is_empty() {
        return None;
    }
    let cells = cells(text);
    if cells.len() != state.columns.len() {
        return None;
    }
    if cells.iter().all(|c| c.chars().all(|c| matches!(c, '-' | ':' | ' '))) {
        return Some(vec![Said::Heading]);
    }
    let cell = |want: Column| state.columns.iter().position(|c| *c == want).map(|i| cells[i]);
    let record = cell(Column::Record).and_then(|r| number(&r.to_ascii_lowercase())).map(|n| n.0 as u32);
    let mut out = vec![Said::Target(cell(Column::Target)?.to_string(), None), Said::Size(record)];
    for write in [true, false] {
        let figure = |k: usize| cell(Column::Figure(write, k)).and_then(|c| Some(number(c)?.0)).unwrap_or(f64::NAN);
        if figure(0) > 0.0 {
            let pass = BenchPass { line, write, speed: figure(0), max: figure(1), min: figure(2), avg: figure(3) };
            out.push(Said::Again(pass));
        }
    }
    (out.len() > 2).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> Vec<Said> {
        let mut s = State::default();
        let mut out = vec![];
        for (i, l) in text.lines().enumerate() {
            out.extend(line(&mut s, Place { file: 0, line: i + 1 }, l, &l.to_ascii_lowercase()));
        }
        out.retain(|s| *s != Said::Heading);
        out
    }

    fn passes(text: &str) -> Vec<BenchPass> {
        let of = |s| match s {
            Said::Pass(p) => Some(p),
            _ => None,
        };
        said(text).into_iter().filter_map(of).collect()
    }

    #[test]
    fn both_forms() {
        let p = passes(
            "write speed and latency\nspeed,max,min,avg\nKB/Sec,usec,usec,usec\n80.3278, 214340, 2365, 6370\n\nread speed and latency\nspeed,max,min,avg\n1102.95,3047,416,463",
        );
        assert_eq!(p.len(), 2);
        assert!(p[0].write && p[0].max == 214_340.0 && !p[1].write && p[1].speed == 1102.95);
        let p = passes("Write 261.27 KB/sec\nMaximum latency: 81304 usec, Minimum Latency: 84 usec, Avg Latency: 378 usec");
        assert_eq!((p[0].write, p[0].speed, p[0].max, p[0].min, p[0].avg), (true, 261.27, 81_304.0, 84.0, 378.0));
        // Where the decimal point is a comma.
        for row in [
            "speed,max,min,avg\n412.35,48216,1220,1239",
            "speed;max;min;avg\n412,35;48216;1220;1239",
            "speed,max,min,avg\n412,35,48216,1220,1239",
        ] {
            let p = passes(row);
            assert_eq!((p[0].speed, p[0].max, p[0].min, p[0].avg), (412.35, 48_216.0, 1220.0, 1239.0), "{row}");
        }
        assert!(passes("1,2,3,4").is_empty());
        assert_eq!(said("BUF_SIZE = 512 bytes"), [Said::Size(Some(512))]);
        assert_eq!(said("File size 5MB"), [Said::FileMb(5.0)]);
        assert_eq!(said("Card size:    63.83 GB (GB = 1E9 bytes)"), [Said::CardGb(63.83)]);
    }

    #[test]
    fn broken_anywhere_or_nowhere() {
        let whole = "1GB Wintec card Write 278.40 KB/sec Maximum latency: 84916 usec, Minimum Latency: 84 usec, Avg Latency: 354 usec Read 338.89 KB/sec Maximum latency: 2164 usec, Minimum Latency: 80 usec, Avg Latency: 289 usec";
        let want = said(whole);
        assert_eq!(want.len(), 3, "{want:?}");
        assert!(matches!(&want[0], Said::Card(n) if n.name == "1GB Wintec"), "{want:?}");
        let words: Vec<&str> = whole.split(' ').collect();
        let strip = |s: Vec<Said>| {
            s.into_iter()
                .map(|s| match s {
                    Said::Pass(p) => Said::Pass(BenchPass { line: 0, ..p }),
                    s => s,
                })
                .collect::<Vec<_>>()
        };
        for cut in 3..words.len() {
            let text = format!("{}\n{}", words[..cut].join(" "), words[cut..].join(" "));
            let got = strip(said(&text));
            let figures = |s: &[Said]| s.iter().filter(|s| matches!(s, Said::Pass(_))).cloned().collect::<Vec<_>>();
            assert_eq!(figures(&got), figures(&strip(want.clone())), "{text}");
        }
    }

    #[test]
    fn figures_in_a_sentence() {
        let s = said(
            "For reason of memory size, write() and read() ware performed in 2048 bytes at a time. The result is: Write: 77kB/sec, Read: 328kB/sec on the [128MB SDC](http://x/sd128.txt), Write: 28kB/sec, Read: 234kB/sec on the [512MB SDC](http://x).",
        );
        assert_eq!(s[0], Said::Size(Some(2048)));
        let speeds: Vec<f64> = s.iter().filter_map(|s| if let Said::Pass(p) = s { Some(p.speed) } else { None }).collect();
        assert_eq!(speeds, [77.0, 328.0, 28.0, 234.0], "{s:?}");
        assert_eq!(said("results for 100 and 512 byte records"), [Said::Size(None)]);
        // Rates without a card or latencies are prose.
        assert!(passes("1GB Swissbit: Write 265.10 KB/sec 2GB SanDisk class 2: 127.41 KB/sec").is_empty());
    }

    #[test]
    fn what_bench_prints() {
        let s = said("sim:wintec-1gb, avr-16mhz-spi, clusters of 16 KiB: 5.00 MB in records of 100 B, synced at the end");
        assert_eq!(s, [Said::Target("sim:wintec-1gb".into(), Some("avr-16mhz-spi".into())), Said::Size(Some(100)), Said::FileMb(5.0)]);
        // A column more or less does no harm.
        let s = said(
            "target\t record\t write KB/s\t x\t max us\t min us\t new\t avg us\n---\t---\t---\t---\t---\t---\t---\t---\nsim:a\t 512\t 203.14\t 0.50\t 192232\t 2132\t 7\t 2513",
        );
        let Some(Said::Again(p)) = s.last() else { panic!("{s:?}") };
        assert_eq!((p.speed, p.max, p.min, p.avg), (203.14, 192_232.0, 2132.0, 2513.0));
    }
}

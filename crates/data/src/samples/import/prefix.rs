//! What programs put in front of every line that they hand on: numbers (`cat -n`, `grep -n`, `awk`), times (`ts`), the host or the program
//! that spoke. It comes off where most lines have it, or where what follows is a row.

use super::clean::Line;
use super::{align, card, other};

/// What may stand in front of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Prefix<'a> {
    Number(u64),
    /// "12:00:01".
    Time,
    /// "host: ", "pi flashbench[77]: ".
    Tag(&'a str),
}

/// Takes off what stands in front of the lines: of three kinds behind each other at most.
pub fn take_off(all: &mut [Line]) {
    for _ in 0..3 {
        let peeled: Vec<Option<(Prefix, &str)>> = all.iter().map(|l| peel(&l.text)).collect();
        let lines = all.iter().filter(|l| !l.text.is_empty()).count();
        let found: Vec<Prefix> = peeled.iter().flatten().map(|p| p.0).collect();
        let kinds = [numbers as fn(&[Prefix], usize) -> bool, times, tagged].map(|most| most(&found, lines));
        let common = |p: &Prefix| match p {
            Prefix::Number(_) => kinds[0],
            Prefix::Time => kinds[1],
            Prefix::Tag(_) => kinds[2],
        };
        let off = |(p, rest): &(Prefix, &str)| common(p) || !matches!(p, Prefix::Tag(_)) && is_row(rest);
        let rests: Vec<Option<String>> = peeled.into_iter().map(|p| p.filter(off).map(|x| x.1.to_string())).collect();
        if rests.iter().all(Option::is_none) {
            return;
        }
        for (line, rest) in all.iter_mut().zip(rests) {
            line.text = rest.unwrap_or_else(|| std::mem::take(&mut line.text));
        }
    }
}

/// What follows "host: " or "pi flashbench[77]: ", where it is a row: for lines whose time came off.
pub fn untagged(text: &str) -> Option<&str> {
    peel(text).filter(|(p, rest)| matches!(p, Prefix::Tag(_)) && is_row(rest)).map(|x| x.1)
}

/// A line that is a row by itself, or begins what this program prints.
pub fn is_row(text: &str) -> bool {
    let ours = ["# nandscope ", "# flashbench "].iter().any(|s| text.starts_with(s));
    ours || align::damaged(text) || other::rates(0, text).is_some() || other::interval(0, text).is_some() || other::scatter(text).is_some()
}

fn peel(text: &str) -> Option<(Prefix<'_>, &str)> {
    if is_row(text) || other::declared(text, None).is_some() {
        return None;
    }
    let (word, rest) = text.split_once([' ', '\t']).unwrap_or((text, ""));
    if is_time(word) {
        return Some((Prefix::Time, rest.trim_start()));
    }
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    if (1..=9).contains(&digits) {
        let rest = text[digits..].strip_prefix([':', '\t'])?;
        return Some((Prefix::Number(text[..digits].parse().ok()?), rest.trim_start()));
    }
    let (tag, rest) = text.split_once(": ").or_else(|| Some((text.strip_suffix(':')?, "")))?;
    let plain = tag.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, ' ' | '_' | '-' | '.' | '@' | '[' | ']'));
    let host = plain && tag.len() <= 60 && tag.split(' ').count() <= 2 && tag != "align" && card::maker(tag).is_none();
    host.then(|| (Prefix::Tag(tag), rest.trim_start()))
}

/// Most lines, and three at least.
fn most(some: usize, lines: usize) -> bool {
    some >= 3 && some * 2 > lines
}

/// Whether most lines are numbered, upwards.
fn numbers(found: &[Prefix], lines: usize) -> bool {
    let numbers: Vec<u64> = found.iter().filter_map(|p| if let Prefix::Number(n) = p { Some(*n) } else { None }).collect();
    most(numbers.len(), lines) && numbers.is_sorted_by(|a, b| a < b)
}

fn times(found: &[Prefix], lines: usize) -> bool {
    most(found.iter().filter(|p| **p == Prefix::Time).count(), lines)
}

/// Whether most lines have one and the same tag: then others are none.
fn tagged(found: &[Prefix], lines: usize) -> bool {
    let tags: Vec<&str> = found.iter().filter_map(|p| if let Prefix::Tag(t) = p { Some(*t) } else { None }).collect();
    most(tags.len(), lines) && tags.windows(2).all(|w| w[0] == w[1])
}

/// "15:23:43", perhaps with parts of a second and the offset of a time zone.
pub fn is_time(text: &str) -> bool {
    let (clock, rest) = text.split_at_checked(8).unwrap_or((text, ""));
    let two = |p: &str| p.len() == 2 && p.bytes().all(|b| b.is_ascii_digit());
    let more = rest.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b',' | b'Z' | b'+' | b'-' | b':'));
    clock.split(':').filter(|p| two(p)).count() == 3 && more
}

#[cfg(test)]
mod tests {
    use super::super::read;

    const LOG: &str = "# nandscope 0.1.0, a card: with 3 open AUs, 7948206080 bytes\n# flashbench -O --open-au-nr=3 --erasesize=4194304 sim:a\n\
        4MiB    14.2M/s\n2MiB    13.1M/s\n\n# flashbench -f sim:a\n4MiB    865K/s   3.56M/s\n2MiB    4.3M/s   4.88M/s\n\
        # flashbench -a sim:a\nalign 4194304\tpre 1.35ms\ton 1.58ms\tpost 1.34ms\tdiff 231µs\n\
        # flashbench -i sim:a\n16384 bytes: min 32.5µs avg 38.1µs max 47.1µs: 512.176 MB/s\n";

    /// What an imported text holds, without the lines it stands in.
    fn held(text: &str) -> String {
        let mut t = read(&[("paste", text)]).unwrap();
        let zero = |p: &mut super::super::Place| p.line = 0;
        t.open.iter_mut().for_each(|x| (zero(&mut x.place), x.rows.iter_mut().for_each(|r| r.line = 0)).1);
        t.fat.iter_mut().for_each(|x| (zero(&mut x.place), x.rows.iter_mut().for_each(|r| r.line = 0)).1);
        t.align.iter_mut().for_each(|x| (zero(&mut x.place), x.rows.iter_mut().for_each(|r| r.line = 0)).1);
        t.interval.iter_mut().for_each(|x| (zero(&mut x.place), x.rows.iter_mut().for_each(|r| r.line = 0)).1);
        format!("{:?} {:?} {:?} {:?} {:?}", t.open, t.fat, t.align, t.interval, t.notes)
    }

    #[test]
    fn every_kind_of_row_behind_whatever_stands_in_front() {
        let whole = held(LOG);
        assert!(whole.contains("n: Some(3)") && whole.contains("device_size: Some(7948206080)"), "{whole}");
        for prefix in [
            "2024-01-01T10:00:00 host: ",
            "2024-01-01T10:00:00.5+01:00 pi flashbench[77]: ",
            "2024-01-01 10:00:00 ",
            "12:00:01 ",
            "12:00:01.123456 ",
            "[12:00:01] ",
            "host: ",
            "Jan  1 12:00:01 pi x[77]: ",
            "Jan 01 12:00:01 ",
            "> 12:00:01 pi flashbench[9]: ",
        ] {
            let text: String = LOG.lines().map(|l| format!("{prefix}{l}\n")).collect();
            assert_eq!(held(&text), whole, "{prefix}");
        }
        for number in [|i: usize| format!("{i}: "), |i| format!("{i:6}\t"), |i| format!("{i}:"), |i| format!("{i}: 12:00:01 host: ")] {
            let text: String = LOG.lines().enumerate().map(|(i, l)| format!("{}{l}\n", number(i + 8))).collect();
            assert_eq!(held(&text), whole, "{text}");
        }
    }

    /// Among prose only rows are bared, and a name in front of a row is none of these.
    #[test]
    fn what_is_no_prefix() {
        let prose = "so it was:\n".repeat(40);
        let t = read(&[("paste", format!("{prose}12:00:01 4MiB 14M/s\n12:00:02 2MiB 13M/s\n"))]).unwrap();
        assert_eq!(t.open[0].rows.len(), 2);
        let named = "Kingston: 4MiB 14M/s\nKingston: 2MiB 13M/s\nKingston: 1MiB 12M/s\n";
        assert!(read(&[("paste", named)]).is_err());
        let registers = "ssr: 80000000:0800\n".repeat(3);
        assert_eq!(read(&[("paste", registers)]).unwrap().declared.len(), 3);
    }
}

//! Rows of `flashbench -a`: "align 4194304 pre 741µs on 1.08ms ...", parted by tabs.

use super::AlignRow;
use crate::flashbench::format::{FIELD, Printed, parse_time};

/// A row, however its columns are parted: tabs, blanks or nothing at all. `None` when it is none or is cut short.
pub fn row(line: usize, text: &str) -> Option<AlignRow> {
    let rest = &text[text.find("align")? + 5..];
    let rest = rest.trim_start_matches([' ', ':', '\t']);
    let (align, digits) = size(rest)?;
    let (pre, rest) = column(&rest[digits..], "pre")?;
    let (on, rest) = column(rest, "on")?;
    let (post, rest) = column(rest, "post")?;
    let us = |p: &Printed| p.value / 1e3;
    let (pre_us, on_us, post_us) = (us(&pre), us(&on), us(&post));
    // A read that failed at once is printed as 0: no measurement.
    if pre_us <= 0.0 || on_us <= 0.0 || post_us <= 0.0 {
        return None;
    }
    let again = on_us - (pre_us + post_us) / 2.0;
    let doubt = on.half_step / 1e3 + (pre.half_step + post.half_step) / 2e3;
    // A negative time without a unit is one in ns only where it fills its field.
    let printed = column(rest, "diff").map(|d| d.0).filter(|d| !d.cut || d.value >= 0.0 || d.len >= FIELD);
    let printed = printed.map(|d| (us(&d), d.half_step / 1e3));
    // The printed difference is finer; where a digit or unit fell off it does not agree with the columns.
    let (diff, half_step) = match printed {
        Some((d, half)) if (d - again).abs() <= 1.05 * doubt + half + 0.002 => (d, half),
        _ => (again, doubt),
    };
    Some(AlignRow { line, align, pre: pre_us, on: on_us, post: post_us, diff, half_step })
}

/// So many times the usual time of a table is no boundary, but a stall or a wrong unit.
const FAR: f64 = 100.0;

/// The one row of a table that stands hundreds of times above all others.
pub fn outlier(rows: &[AlignRow]) -> Option<usize> {
    let longest = |r: &AlignRow| r.pre.max(r.on).max(r.post);
    let mut all: Vec<f64> = rows.iter().map(longest).collect();
    all.sort_by(f64::total_cmp);
    let usual = *all.get(all.len() / 2)?;
    let far: Vec<usize> = (0..rows.len()).filter(|&i| longest(&rows[i]) > FAR * usual).collect();
    (rows.len() >= 6 && far.len() == 1).then(|| far[0])
}

/// Whether a row goes on in the line below it: it has no difference, or one whose unit is missing.
pub fn goes_on(text: &str) -> bool {
    row(0, text).is_some() && ending(text) != Ending::Whole
}

/// Whether the last number of a row is broken, so that what it says is not what was printed.
pub fn is_broken(text: &str) -> bool {
    ending(text) == Ending::Broken
}

/// How a row ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    Whole,
    /// Without its difference, or with one that lost its unit.
    Open,
    /// Within a number.
    Broken,
}

fn ending(text: &str) -> Ending {
    let Some((_, diff)) = text.rsplit_once("diff") else { return Ending::Open };
    let diff = diff.trim_start_matches([' ', '\t', ':', '=']);
    match parse_time(diff) {
        Some(d) if !d.cut || d.len >= FIELD => Ending::Whole,
        Some(_) => Ending::Open,
        None if diff.starts_with(|c: char| c.is_ascii_digit()) && diff.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | ',')) => {
            Ending::Broken
        }
        None => Ending::Open,
    }
}

/// The alignment, and the bytes of text it takes: "4194304", "33,554,432", "128MiB", "128 M", "1.5MiB".
fn size(text: &str) -> Option<(u64, usize)> {
    let len = text.bytes().take_while(|b| b.is_ascii_digit() || matches!(b, b',' | b'.' | b'_' | b'\'')).count();
    let unit = text[len..].trim_start_matches(' ');
    let blank = text.len() - len - unit.len();
    let letters = unit.bytes().take_while(u8::is_ascii_alphabetic).count();
    let factor = match unit[..letters].to_ascii_lowercase().as_str() {
        "k" | "kb" | "kib" => 1u64 << 10,
        "m" | "mb" | "mib" => 1 << 20,
        "g" | "gb" | "gib" => 1 << 30,
        _ => 1,
    };
    let end = if factor > 1 { len + blank + letters } else { len };
    let number = text[..len].trim_end_matches([',', '.']);
    let groups: Vec<&str> = number.split([',', '.', '_', '\'']).collect();
    // Groups of three digits are of one number; anything else behind a point is a fraction.
    let value = match &groups[..] {
        [only] => only.parse::<u64>().ok().and_then(|v| v.checked_mul(factor)),
        [first, rest @ ..] if factor == 1 && (1..=3).contains(&first.len()) && rest.iter().all(|g| g.len() == 3) => {
            groups.concat().parse().ok()
        }
        // "1.5MiB": the product is whole, the number is not.
        [_, _] if factor > 1 => number.replace(',', ".").parse::<f64>().ok().map(|v| (v * factor as f64) as u64),
        _ => None,
    };
    value.filter(|a| (512..=1 << 50).contains(a) && (factor == 1 || a % 512 == 0)).map(|a| (a, end))
}

/// The time behind a column's name, and what follows it.
fn column<'a>(text: &'a str, name: &str) -> Option<(Printed, &'a str)> {
    let at = text.find(name)?;
    // Between the columns stand blanks, or the end of a unit.
    if text[..at].chars().any(|c| c.is_ascii_digit()) {
        return None;
    }
    let rest = text[at + name.len()..].trim_start_matches([' ', '\t', ':', '=']);
    let p = parse_time(rest)?;
    Some((p, &rest[p.len..]))
}

/// A line that begins as a row and does not end as one.
pub fn damaged(text: &str) -> bool {
    text.strip_prefix("align").is_some_and(|r| r.trim_start().starts_with(|c: char| c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_however_they_were_pasted() {
        let want = (4_194_304, 741.0, 1080.0, 788.0, 317.0);
        for t in [
            "align 4194304\tpre 741µs\ton 1.08ms\tpost 788µs\tdiff 317µs",
            "align 4194304 pre 741us on 1,08ms post 788us diff 317us",
            "align 4194304pre 741µson 1.08mspost 788µsdiff 317µs",
            "x: align 4194304  pre 741 µs  on 1.08 ms post 788 µs  diff 317 µs  <- here",
        ] {
            let r = row(1, t).unwrap_or_else(|| panic!("{t}"));
            assert_eq!((r.align, r.pre, r.on, r.post, r.diff), want, "{t}");
        }
    }

    #[test]
    fn a_lost_unit_is_recomputed() {
        let r = row(1, "align 34359738368       pre 986µs       on 1.01ms       post 1.87ms     diff -412331").unwrap();
        assert!((r.diff + 412.331).abs() < 1e-9, "{r:?}");
        // -1234567ns loses two letters and a digit.
        let r = row(1, "align 8192 pre 3.42ms on 1.01ms post 1.07ms diff -123456").unwrap();
        assert!((r.diff + 1235.0).abs() < 1.0, "{r:?}");
        let r = row(1, "align 8192 pre 742µs on 761µs post 1e+03Â diff -1098").unwrap();
        assert!((r.diff + 110.0).abs() < 1.0, "{r:?}");
    }

    #[test]
    fn one_row_far_above_the_others() {
        let rows = |on: &[f64]| -> Vec<AlignRow> {
            let row = |(i, &on): (usize, &f64)| AlignRow {
                line: i,
                align: 1 << (30 - i),
                pre: 700.0,
                on,
                post: 700.0,
                diff: on - 700.0,
                half_step: 1.0,
            };
            on.iter().enumerate().map(row).collect()
        };
        assert_eq!(outlier(&rows(&[1000.0, 1000.0, 1_040_000.0, 900.0, 900.0, 700.0])), Some(2));
        assert_eq!(outlier(&rows(&[1000.0, 1000.0, 40_000.0, 900.0, 900.0, 700.0])), None, "a stall of its own");
        assert_eq!(outlier(&rows(&[1_040_000.0, 1_040_000.0, 1000.0, 900.0, 900.0, 700.0])), None, "a step");
    }

    #[test]
    fn what_is_no_row() {
        for t in [
            "align 1048576   pre 1.04ms",
            "align 8192 pre 0ns on 1ms post 1ms",
            "align",
            "pre 1ms on 1ms post 1ms diff 1ms",
            "align x pre 1",
        ] {
            assert!(row(1, t).is_none(), "{t}");
        }
        assert!(damaged("align 1048576   pre 1.04ms") && !damaged("alignment test"));
    }
}

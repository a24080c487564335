//! Headings that say what the figures below them are of: "Card A (SanDisk)", "USB SSD:", "## Before the trim".

use crate::samples::import::{card, named};

/// Longer, it is a sentence.
const LONGEST: usize = 60;

/// Lines by the heading above them, in their order.
pub fn parts<'a, 'b>(lines: &'b [&'a str]) -> Vec<(Option<String>, &'b [&'a str])> {
    let (mut out, mut from, mut last) = (vec![], 0, None);
    for (i, line) in lines.iter().enumerate() {
        if let Some(new) = title(line) {
            out.push((last.replace(new), &lines[from..i]));
            from = i;
        }
    }
    out.push((last, &lines[from..]));
    out
}

/// Beginnings of lines that programs print, with a colon at their end.
const PRINTED: [&str; 8] =
    ["run status group", "disk stats", "device geometry", "clat percentiles", "details", "expected", "found", "you can"];

fn title(line: &str) -> Option<String> {
    let decoration = ['#', '=', '*', '-', '_', '~', ' ', '\t'];
    let bare = line.trim_matches(decoration);
    let text = bare.trim_end_matches(':').trim();
    let words: Vec<&str> = text.split_whitespace().collect();
    let option = |w: &&str| w.starts_with(['/', '-', '.', '$']) || w.contains(['=', ';', '@']) || w.ends_with("/s") || w.contains("://");
    if text.chars().count() > LONGEST || !(1..=8).contains(&words.len()) || words.iter().any(option) || !text.contains(char::is_alphabetic)
    {
        return None;
    }
    let low = text.to_lowercase();
    if PRINTED.iter().any(|p| low.starts_with(p)) || is_turn(&low) || bare.ends_with(':') && words.last().is_some_and(|w| speaks(w)) {
        return None;
    }
    let names = || card::label(text).is_some() || card::maker(text).is_some() || named::named(text).is_some();
    let begins_large = text.starts_with(char::is_uppercase);
    let underlined = line.starts_with("==") || line.starts_with("--") || line.starts_with("**") || line.starts_with('#') && begins_large;
    (bare.ends_with(':') || underlined || names()).then(|| text.to_string())
}

/// "Somebody wrote:" in a mail.
fn speaks(word: &str) -> bool {
    ["wrote", "writes", "said", "schrieb", "écrit"].contains(&word)
}

/// "Run 2", "second try": the same again.
fn is_turn(low: &str) -> bool {
    const TURNS: [&str; 20] = [
        "run", "test", "pass", "try", "attempt", "round", "turn", "again", "the", "and", "no", "nr", "number", "of", "first", "second",
        "third", "fourth", "lauf", "versuch",
    ];
    let number = |w: &str| w.starts_with(|c: char| c.is_ascii_digit()) && w.len() <= 4;
    let mut words = low.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty());
    words.all(|w| TURNS.contains(&w) || number(w))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_heads_figures() {
        for (line, want) in [
            ("Card A (SanDisk)", Some("Card A (SanDisk)")),
            ("SanDisk:", Some("SanDisk")),
            ("SanDisk 8GB card:", Some("SanDisk 8GB card")),
            ("USB SSD:", Some("USB SSD")),
            ("## Before the trim", Some("Before the trim")),
            ("=== Card B ===", Some("Card B")),
            ("Run 2:", None),
            ("second try:", None),
            ("# hdparm -t /dev/sda", None),
            ("# sync", None),
            ("/dev/sda:", None),
            ("Run status group 0 (all jobs):", None),
            ("Disk stats (read/write):", None),
            ("On Monday somebody wrote:", None),
            ("$ f3write /media/SanDisk", None),
            ("* MB/s = 1,000,000 bytes/s [SATA/600 = 600,000,000 bytes/s]", None),
            ("Free space: 7.38 GB", None),
            ("--------", None),
            ("Writing speed: 5.22 MByte/s", None),
            ("104857600 bytes (105 MB, 100 MiB) copied, 9.2 s, 11.4 MB/s", None),
        ] {
            assert_eq!(title(line).as_deref(), want, "{line}");
        }
    }
}

//! Lines no wider than what shows them.

/// Text with its longer lines broken at blanks, what goes on two deeper than the line begins. Rows of tables, which have wide gaps, and words
/// that are longer stay as they are; what colours a terminal takes no room.
pub fn folded(text: &str, width: usize) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let (body, end) = line.strip_suffix('\n').map_or((line, ""), |b| (b, "\n"));
        let inner = body.trim_start_matches(' ');
        if body.len() <= width || seen(body) <= width || inner.contains("   ") || inner.starts_with('|') {
            out += line;
            continue;
        }
        let indent = body.len() - inner.len();
        let deeper = " ".repeat((indent + 2).min(width / 2));
        let mut room = width.saturating_sub(indent);
        out += &body[..indent];
        for (i, word) in with_units(inner).into_iter().enumerate() {
            let long = seen(word) + usize::from(i > 0);
            if i > 0 && long > room {
                out.push('\n');
                out += &deeper;
                room = width.saturating_sub(deeper.len() + seen(word));
            } else {
                out += if i > 0 { " " } else { "" };
                room = room.saturating_sub(long);
            }
            out += word;
        }
        out += end;
    }
    out
}

/// Words, a number with its unit as one.
fn with_units(line: &str) -> Vec<&str> {
    const UNITS: [&str; 15] = ["B", "KiB", "MiB", "GiB", "TiB", "kB", "MB", "GB", "TB", "%", "ms", "s", "µs", "ns", "IOPS"];
    let mut out: Vec<&str> = vec![];
    let mut at = 0;
    for word in line.split(' ') {
        let plain = word.trim_end_matches([',', ';', '.', ':', ')']).trim_end_matches("/s");
        let number =
            |w: &&str| w.ends_with(|c: char| c.is_ascii_digit()) && w.trim_start_matches('(').starts_with(|c: char| c.is_ascii_digit());
        match out.last_mut().filter(|w| UNITS.contains(&plain) && number(w)) {
            Some(last) => *last = &line[at - last.len() - 1..at + word.len()],
            None => out.push(word),
        }
        at += word.len() + 1;
    }
    out
}

/// Characters that are seen: those between ESC and m are not.
fn seen(text: &str) -> usize {
    let mut hidden = false;
    let shown = text.chars().filter(|c| {
        hidden |= *c == '\x1b';
        let shows = !hidden;
        hidden &= *c != 'm';
        shows
    });
    shown.count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_between_words() {
        let text = "  - to log 20 kB/s you need 512 B\nshort\n";
        assert_eq!(folded(text, 24), "  - to log 20 kB/s you\n    need 512 B\nshort\n");
        assert_eq!(folded(text, 80), text);
        assert_eq!(folded("a\n\nb", 1), "a\n\nb", "an end of a line is kept, and none is made");
        assert_eq!(folded("one two", 3), "one\n two");
    }

    /// A number stands beside its unit; a longer word has a line of its own; tables keep their columns.
    #[test]
    fn what_belongs_together_stays_so() {
        assert_eq!(folded("takes about 14.5 GiB, or", 18), "takes about\n  14.5 GiB, or");
        assert_eq!(folded("lasts (95 %) of all", 11), "lasts\n  (95 %) of\n  all");
        assert_eq!(folded("chapter 3 B-trees", 12), "chapter 3\n  B-trees");
        assert_eq!(folded("see /a/very/long/path here", 12), "see\n  /a/very/long/path\n  here");
        for row in ["| target | record | write KB/s |", "erase block           4 MiB          99 %  sure", "⠁⠁⠁⠁⠁⠁⠁⠁⠁⠁⠁⠁⠁⠁⠁⠁⠁⠁⠁⠁"]
        {
            assert_eq!(folded(row, 20), row);
        }
    }

    #[test]
    fn colours_take_no_room() {
        let painted = "\x1b[31;1mFAIL\x1b[0m of it";
        assert_eq!(folded(painted, 10), painted);
        assert_eq!(folded(painted, 8), "\x1b[31;1mFAIL\x1b[0m of\n  it");
    }
}

//! Commands that a reader can paste, and names that stay in their line.

/// A word as a shell takes it: in quotes where it has a space or a sign that the shell reads itself.
pub fn word(text: &str) -> String {
    let safe = |c: char| c.is_ascii_alphanumeric() || "/._-:=+,@".contains(c);
    if !text.is_empty() && text.chars().all(safe) { text.into() } else { format!("'{}'", text.replace('\'', "'\\''")) }
}

/// A text without line ends, or anything else that steers a terminal: what stands in one line stays in it.
pub fn one_line(text: &str) -> String {
    text.replace(char::is_control, " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_shell_would_read_stands_in_quotes() {
        for plain in ["/dev/sdx", "sim:sdhc-8gb", "0x1a", "8000000512", "a@b,c=d"] {
            assert_eq!(word(plain), plain);
        }
        assert_eq!(word("exec:python3 dev.py"), "'exec:python3 dev.py'");
        assert_eq!(word("sim:random?seed=7"), "'sim:random?seed=7'");
        assert_eq!(word("Bob's card"), "'Bob'\\''s card'");
        assert_eq!(word(""), "''");
        assert_eq!(one_line("a\nb\u{1b}[1m"), "a b [1m");
    }
}

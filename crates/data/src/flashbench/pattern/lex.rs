//! From text to tokens, each with its place.

use super::At;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    Word(String),
    Number(i128),
    Text(String),
    /// One of { } ( ) , = + - * / % or ".."
    Sign(&'static str),
    End,
}

const SIGNS: [&str; 14] = ["..", "<<", "{", "}", "(", ")", ",", "=", "+", "-", "*", "/", "%", ":"];

/// Factor of a unit. `alone`: the word stands apart from its number, so that only what cannot be a name counts.
fn unit(word: &str, alone: bool) -> Option<i128> {
    Some(match word {
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        "kB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "B" | "s" if alone => return None,
        "B" => 1,
        _ if alone => return None,
        "k" | "K" => 1 << 10,
        "m" | "M" => 1 << 20,
        "g" | "G" => 1 << 30,
        _ => return None,
    })
}

pub(super) fn tokens(text: &str) -> Result<Vec<(Token, At)>, (At, String)> {
    let mut out = vec![];
    let (mut line, mut column) = (1, 1);
    let mut rest = text;
    let take = |rest: &mut &str, column: &mut u32, n: usize| {
        *column += rest[..n].chars().count() as u32;
        *rest = &rest[n..];
    };
    while let Some(c) = rest.chars().next() {
        let at = At { line, column };
        let run = |ok: fn(char) -> bool| rest.find(|c| !ok(c)).unwrap_or(rest.len());
        if c == '\n' {
            (line, column) = (line + 1, 1);
            rest = &rest[1..];
        } else if c.is_whitespace() {
            take(&mut rest, &mut column, c.len_utf8());
        } else if c == '#' {
            let n = rest.find('\n').unwrap_or(rest.len());
            take(&mut rest, &mut column, n);
        } else if c.is_ascii_digit() {
            let mut n = run(|c| c.is_ascii_digit());
            // "1.5", but not "0..8".
            let after = &rest[n..];
            if after.starts_with('.') && after[1..].starts_with(|c: char| c.is_ascii_digit()) {
                n += 1 + after[1..].find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len() - 1);
            }
            let digits = &rest[..n];
            let number: f64 = digits.parse().map_err(|_| (at, format!("'{digits}' is no number")))?;
            let whole = digits.parse::<i128>().ok();
            take(&mut rest, &mut column, n);
            let word_at = |s: &str| s[..s.find(|c: char| !c.is_alphanumeric()).unwrap_or(s.len())].to_string();
            let joined = word_at(rest);
            let gap = rest.len() - rest.trim_start_matches(' ').len();
            let apart = word_at(&rest[gap..]);
            let factor = if !joined.is_empty() {
                let f = unit(&joined, false).ok_or_else(|| (at, format!("'{digits}{joined}' has an unknown unit; use KiB, MiB or GiB")))?;
                take(&mut rest, &mut column, joined.len());
                f
            } else if let Some(f) = unit(&apart, true) {
                take(&mut rest, &mut column, gap + apart.len());
                f
            } else {
                1
            };
            let value = match whole {
                Some(w) => w.checked_mul(factor),
                None => Some(number * factor as f64).filter(|v| v.fract() == 0.0).map(|v| v as i128),
            };
            let value = value.filter(|v| *v < 1 << 63).ok_or_else(|| (at, format!("'{digits}' is not a whole number below 2^63")))?;
            out.push((Token::Number(value), at));
        } else if c.is_alphabetic() || c == '_' {
            let n = run(|c| c.is_alphanumeric() || c == '_');
            out.push((Token::Word(rest[..n].to_string()), at));
            take(&mut rest, &mut column, n);
        } else if c == '"' {
            let end = rest[1..].find(['"', '\n']).filter(|&n| rest[1 + n..].starts_with('"'));
            let n = end.ok_or_else(|| (at, "a text ends with \" on the same line".to_string()))?;
            out.push((Token::Text(rest[1..1 + n].to_string()), at));
            take(&mut rest, &mut column, n + 2);
        } else if let Some(sign) = SIGNS.iter().find(|s| rest.starts_with(**s)) {
            out.push((Token::Sign(sign), at));
            take(&mut rest, &mut column, sign.len());
        } else {
            return Err((at, format!("'{}' means nothing here", c.escape_default())));
        }
    }
    out.push((Token::End, At { line, column }));
    Ok(out)
}

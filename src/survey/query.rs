//! What `survey search` understands: words, and conditions such as `erase_block=4MiB`, `open_aus_linear>=5`, `maker=sandisk`.

use super::db::Val;
use crate::finding::Quantity;
use crate::units::Bytes;

/// Part of a statement: its text with `?` for each value and `HAS(text, part)` for "occurs in".
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    pub sql: String,
    pub values: Vec<Val>,
}

const TEXTS: [&str; 9] = ["id", "name", "maker", "ids", "part", "kind", "format", "lot", "host"];

/// # Errors
/// One sentence that names the word and what would be right.
pub fn parse(word: &str) -> Result<Condition, String> {
    let Some(at) = word.find(['=', '<', '>', '!']) else {
        return Ok(Condition { sql: "HAS(words, ?) > 0".into(), values: vec![word.to_lowercase().into()] });
    };
    let key = word[..at].trim().to_lowercase().replace('-', "_");
    let op = ["<=", ">=", "!=", "=", "<", ">"]
        .into_iter()
        .find(|o| word[at..].starts_with(o))
        .ok_or_else(|| format!("'{word}': use =, !=, <, <=, > or >="))?;
    let wanted = word[at + op.len()..].trim();
    if wanted.is_empty() {
        return Err(format!("'{word}' has no value"));
    }
    if TEXTS.contains(&key.as_str()) {
        let part = wanted.to_lowercase();
        return match op {
            "=" => Ok(Condition { sql: format!("HAS(LOWER(COALESCE({key}, '')), ?) > 0"), values: vec![part.into()] }),
            "!=" => Ok(Condition { sql: format!("HAS(LOWER(COALESCE({key}, '')), ?) = 0"), values: vec![part.into()] }),
            _ => Err(format!("'{word}': {key} is text; use = or !=")),
        };
    }
    let quantity = Quantity::ALL.iter().any(|q| q.key() == key);
    // A figure of a benchmark is named as `survey show` prints it: record-write-100-b-records.
    if !quantity && !key.contains('_') && !["capacity", "flags"].contains(&key.as_str()) {
        let names: Vec<&str> = Quantity::ALL.iter().map(|q| q.key()).collect();
        return Err(format!("'{word}': there is no '{key}'; there are {}, capacity, flags, {}", TEXTS.join(", "), names.join(", ")));
    }
    let number = wanted.parse::<f64>().ok().filter(|v| v.is_finite()).or_else(|| wanted.parse::<Bytes>().ok().map(|b| b.0 as f64));
    let Some(v) = number else { return Err(format!("'{word}': '{wanted}' is not a number or a size such as 4MiB")) };
    match key.as_str() {
        "capacity" => Ok(Condition { sql: format!("capacity {op} ?"), values: vec![Val::Int(v as i64)] }),
        "flags" => Ok(Condition { sql: format!("flags {op} ?"), values: vec![Val::Int(v as i64)] }),
        _ => {
            let key = if quantity { key } else { key.replace('_', "-") };
            // "At least 64" answers ">= 5", and is silent on "= 64" and "< 100".
            let bound = if op.starts_with('>') { "" } else { " AND f.bound = 0" };
            Ok(Condition {
                // Not correlated: read once, whatever the number of cards.
                sql: format!("id IN (SELECT f.id FROM facts f WHERE f.key = ? AND f.value {op} ?{bound})"),
                values: vec![key.into(), Val::Real(v)],
            })
        }
    }
}

/// All conditions at once, with $1, $2, ... for the values, which begin after `used` others.
pub fn all(conditions: &[Condition], used: usize) -> (String, Vec<Val>) {
    if conditions.is_empty() {
        return ("1 = 1".into(), vec![]);
    }
    let joined = conditions.iter().map(|c| c.sql.as_str()).collect::<Vec<_>>().join(" AND ");
    let mut sql = String::new();
    let mut n = used;
    for c in joined.chars() {
        if c == '?' {
            n += 1;
            sql.push_str(&format!("${n}"));
        } else {
            sql.push(c);
        }
    }
    (sql, conditions.iter().flat_map(|c| c.values.clone()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_conditions() {
        let c = [parse("SanDisk").unwrap(), parse("erase_block=4MiB").unwrap(), parse("open-aus-linear>=5").unwrap()];
        let (sql, values) = all(&c, 0);
        assert!(sql.starts_with("HAS(words, $1) > 0 AND id IN") && sql.contains("f.key = $4 AND f.value >= $5)"), "{sql}");
        assert_eq!(values[..3], ["sandisk".into(), "erase_block".into(), Val::Real(4_194_304.0)]);
        assert!(parse("erase_block=4MiB").unwrap().sql.contains("bound = 0"));
    }

    #[test]
    fn nonsense_is_named() {
        for (bad, says) in [
            ("erase_block=", "no value"),
            ("erase_block=big", "not a number"),
            ("maker>x", "text"),
            ("foo=3", "there is no 'foo'"),
            ("name!x", "use ="),
        ] {
            let e = parse(bad).unwrap_err();
            assert!(e.contains(says), "{bad}: {e}");
        }
        // Nothing that is typed becomes SQL.
        let c = parse("x'; DROP TABLE cards; --").unwrap();
        assert_eq!(c.sql, "HAS(words, ?) > 0");
    }
}

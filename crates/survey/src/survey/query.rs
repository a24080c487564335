//! What `survey search` understands: words, and conditions such as `erase_block=4MiB`, `open_aus_linear>=5`, `maker=sandisk`.

use super::db::Val;
use super::hosts;
use crate::advise::price;
use crate::device::nearest;
use crate::finding::Quantity;
use crate::units::Bytes;

/// Part of a statement: its text with `?` for each value and `HAS(text, part)` for "occurs in".
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    pub sql: String,
    pub values: Vec<Val>,
    /// The figure that some entry must have; "price" where no currency was named.
    pub figure: Option<String>,
}

impl Condition {
    fn new(sql: impl Into<String>, values: Vec<Val>) -> Condition {
        Condition { sql: sql.into(), values, figure: None }
    }
}

const TEXTS: [&str; 9] = ["id", "name", "maker", "ids", "part", "kind", "format", "lot", "host"];

/// # Errors
/// One sentence that names the word and what would be right.
pub fn parse(word: &str) -> Result<Condition, String> {
    let Some(at) = word.find(['=', '<', '>', '!']) else {
        return Ok(Condition::new("HAS(words, ?) > 0", vec![word.to_lowercase().into()]));
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
        // A host has one name, whatever a log calls it.
        if let Some(class) = hosts::known(wanted).filter(|_| key == "host" && ["=", "!="].contains(&op)) {
            return Ok(Condition::new(format!("COALESCE(host_class, '') {op} ?"), vec![class.into()]));
        }
        return match op {
            "=" => Ok(Condition::new(format!("HAS(LOWER(COALESCE({key}, '')), ?) > 0"), vec![part.into()])),
            "!=" => Ok(Condition::new(format!("HAS(LOWER(COALESCE({key}, '')), ?) = 0"), vec![part.into()])),
            _ => Err(format!("'{word}': {key} is text; use = or !=")),
        };
    }
    if key == "price" {
        let (amount, code) = match wanted.parse::<f64>() {
            Ok(v) if v.is_finite() => (v, None),
            _ => price::parse(wanted).map(|(v, c)| (v, Some(c)))?,
        };
        let figure = code.map_or("price".to_string(), |c| price::key(&c));
        let values = vec![figure.as_str().into(), Val::Real(amount)];
        let sql = format!("id IN (SELECT f.id FROM facts f WHERE f.key = ? AND f.value {op} ?)");
        return Ok(Condition { sql, values, figure: Some(figure) });
    }
    if key == "counterfeit" || key == "failing" {
        let wanted = match wanted.to_lowercase().as_str() {
            "yes" | "true" | "1" => Some(1),
            "no" | "false" | "0" => Some(0),
            "unknown" => None,
            _ => return Err(format!("'{word}': {key} is yes, no or unknown")),
        };
        return match (op, wanted) {
            ("=", Some(n)) => Ok(Condition::new(format!("{key} = ?"), vec![Val::Int(n)])),
            ("!=", Some(n)) => Ok(Condition::new(format!("COALESCE({key}, -1) != ?"), vec![Val::Int(n)])),
            ("=", None) => Ok(Condition::new(format!("{key} IS NULL"), vec![])),
            ("!=", None) => Ok(Condition::new(format!("{key} IS NOT NULL"), vec![])),
            _ => Err(format!("'{word}': {key} is yes, no or unknown; use = or !=")),
        };
    }
    if key == "published" {
        return match (op, wanted) {
            ("=", "yes") | ("!=", "no") => Ok(Condition::new("format = 'published'", vec![])),
            ("=", "no") | ("!=", "yes") => Ok(Condition::new("format != 'published'", vec![])),
            _ => Err(format!("'{word}': published is yes or no; use =")),
        };
    }
    // What a table calls `capacity_real` is called so here, too.
    let real = matches!(key.as_str(), "capacity_found" | "capacity_real" | "real_capacity");
    // What a card declares and what was found have a name each; the short one is what it declares.
    let (key, declared) = match key.as_str() {
        "capacity" | "capacity_declared" => ("capacity".to_string(), true),
        _ if real => ("capacity".to_string(), false),
        _ => (key, false),
    };
    let quantity = !declared && Quantity::ALL.iter().any(|q| q.key() == key);
    // A figure of a benchmark is named as `survey show` prints it: record-write-100-b-records.
    if !quantity && !declared && !key.contains('_') && key != "flags" {
        let names: Vec<&str> = Quantity::ALL.iter().map(|q| q.key()).filter(|k| *k != "capacity").collect();
        let meant = nearest(
            &key,
            names
                .iter()
                .chain(&TEXTS)
                .chain(&["capacity", "flags", "price", "counterfeit", "failing", "published", "real_capacity"])
                .copied(),
        );
        return Err(match meant {
            Some(m) => format!("'{word}': there is no '{key}'; did you mean {m}?"),
            None => format!(
                "'{word}': there is no '{key}'; there are {}, capacity (declared), real_capacity, counterfeit, failing, published, price, flags and what a \
                 card was measured for (erase_block, open_aus_linear ...; the first line of `nandscope survey export` names all)",
                TEXTS.join(", ")
            ),
        });
    }
    let number = wanted.parse::<f64>().ok().filter(|v| v.is_finite()).or_else(|| wanted.parse::<Bytes>().ok().map(|b| b.0 as f64));
    let Some(v) = number else { return Err(format!("'{word}': '{wanted}' is not a number or a size such as 4MiB")) };
    match key.as_str() {
        "capacity" if declared => Ok(Condition::new(format!("capacity {op} ?"), vec![Val::Int(v as i64)])),
        "flags" => Ok(Condition::new(format!("flags {op} ?"), vec![Val::Int(v as i64)])),
        _ => {
            let key = if quantity { key } else { key.replace('_', "-") };
            // "At least 64" answers ">= 5", and is silent on "= 64" and "< 100".
            let bound = if op.starts_with('>') { "" } else { " AND f.bound = 0" };
            // Not correlated: read once, whatever the number of cards.
            let mut sql = format!("id IN (SELECT f.id FROM facts f WHERE f.key = ? AND f.value {op} ?{bound})");
            let figure = (!quantity).then(|| key.clone());
            let mut values = vec![key.into(), Val::Real(v)];
            if real {
                // What f3probe found, or the most that a search left open, is no finding.
                sql = format!("({sql} OR real_capacity {op} ?)");
                values.push(Val::Int(v as i64));
            }
            Ok(Condition { sql, values, figure })
        }
    }
}

/// Conditions as they were typed, each with those that `or` joins to it. An `or` binds the two that it stands between, whether they came
/// as one argument or as several.
///
/// # Errors
/// An `or` that stands between nothing.
pub fn alternatives(words: &[String]) -> Result<Vec<Vec<String>>, String> {
    let or = |w: &str| w.eq_ignore_ascii_case("or");
    let mut all: Vec<Vec<String>> = vec![];
    let mut open = false;
    for typed in words {
        let words: Vec<&str> = typed.split_whitespace().collect();
        let parts: Vec<String> = if words.iter().any(|w| or(w)) {
            let mut parts = vec![];
            for part in words.split_inclusive(|w| or(w)) {
                let (part, last) = if part.last().is_some_and(|w| or(w)) { (&part[..part.len() - 1], true) } else { (part, false) };
                parts.extend((!part.is_empty()).then(|| part.join(" ")));
                parts.extend(last.then(|| "or".to_string()));
            }
            parts
        } else {
            vec![typed.clone()]
        };
        for part in parts {
            match (or(&part), all.last_mut()) {
                (true, Some(_)) if !open => open = true,
                (true, _) => return Err("'or' stands between two conditions, as in lot=A or lot=B".into()),
                (false, Some(before)) if open => {
                    before.push(part);
                    open = false;
                }
                (false, _) => all.push(vec![part]),
            }
        }
    }
    if open { Err("'or' stands between two conditions, as in lot=A or lot=B".into()) } else { Ok(all) }
}

/// One of several.
pub fn any(mut conditions: Vec<Condition>) -> Option<Condition> {
    if conditions.len() < 2 {
        return conditions.pop();
    }
    let sql = conditions.iter().map(|c| format!("({})", c.sql)).collect::<Vec<_>>().join(" OR ");
    Some(Condition::new(format!("({sql})"), conditions.into_iter().flat_map(|c| c.values).collect()))
}

/// Whether a condition is about a figure of a benchmark, which is of the host as well as of the card.
pub fn of_benchmark(word: &str) -> bool {
    let figure = |w: &String| parse(w).is_ok_and(|c| c.figure.is_some_and(|f| !f.starts_with("price")));
    alternatives(&[word.to_string()]).is_ok_and(|all| all.iter().flatten().any(figure))
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
    fn either_of_two() {
        let typed = |w: &[&str]| alternatives(&w.iter().map(|w| w.to_string()).collect::<Vec<_>>());
        let wanted = vec![vec!["sandisk".to_string()], vec!["lot=A".into(), "lot=B".into(), "price<3EUR".into()], vec!["flags=0".into()]];
        assert_eq!(typed(&["sandisk", "lot=A", "or", "lot=B", "OR", "price<3EUR", "flags=0"]).unwrap(), wanted);
        assert_eq!(typed(&["sandisk", "lot=A or lot=B or price<3EUR", "flags=0"]).unwrap(), wanted);
        assert_eq!(typed(&["name=SanDisk  Ultra"]).unwrap(), [["name=SanDisk  Ultra"]], "kept as typed");
        for bad in [&["or"][..], &["or", "lot=A"], &["lot=A", "or"], &["lot=A", "or", "or", "lot=B"], &["lot=A or"]] {
            assert!(typed(bad).unwrap_err().contains("between two"), "{bad:?}");
        }
        let both = any(vec![parse("lot=A").unwrap(), parse("flags>0").unwrap()]).unwrap();
        let (sql, values) = all(&[parse("sandisk").unwrap(), both], 0);
        assert!(sql.starts_with("HAS(words, $1) > 0 AND ((HAS(") && sql.ends_with("OR (flags > $3))"), "{sql}");
        assert_eq!(values.len(), 3);
        assert!(of_benchmark("lot=A or record-write-100-b-records>3") && !of_benchmark("lot=A or lot=B"));
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
        assert!(parse("price<cheap").unwrap_err().contains("is no price"));
        assert_eq!(parse("price<10EUR").unwrap().figure.as_deref(), Some("price-eur"));
        assert_eq!(
            (parse("capacity>8GB").unwrap().figure, parse("real_capacity<8GB").unwrap().values[0].text()),
            (None, "capacity".into())
        );
        let real = ["real_capacity<8GB", "capacity_real<8GB", "capacity_found<8GB"].map(|w| parse(w).unwrap());
        assert!(real.iter().all(|c| (&c.sql, &c.values) == (&real[0].sql, &real[0].values)));
        // Nothing that is typed becomes SQL.
        let c = parse("x'; DROP TABLE cards; --").unwrap();
        assert_eq!(c.sql, "HAS(words, ?) > 0");
    }
}

//! Rows, facts and conditions of entries, as the index has them.

use super::db::Val;
use super::{Result, Survey, SurveyError, query};
use crate::advise::price;
use crate::finding::Quantity;
use std::collections::HashMap;

/// One line of a list.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub id: String,
    pub name: String,
    pub maker: String,
    pub kind: String,
    pub capacity: Option<u64>,
    /// Bytes that are really there; none where nobody tested it.
    pub real: Option<u64>,
    /// It holds less than it reports; none where nobody tested it.
    pub counterfeit: Option<bool>,
    /// It fails or does not store what is written; none where nobody tested it.
    pub failing: Option<bool>,
    pub format: String,
    /// Erase block, open AUs linear and random, as text; empty where unknown.
    pub erase_block: String,
    pub open_linear: String,
    pub open_random: String,
    /// Decided findings and figures in one line.
    pub summary: String,
    pub flags: i64,
    pub lot: String,
    /// Amount and currency; empty where nobody said.
    pub price: String,
    /// One name for each host; empty where nobody said.
    pub host: String,
    /// Neither a finding nor a figure: only what the notes say.
    pub bare: bool,
}

/// A decided quantity or a figure of a benchmark, as the index has it.
#[derive(Clone, Debug, PartialEq)]
pub struct Fact {
    pub key: String,
    pub value: f64,
    pub confidence: f64,
    /// The value is only a lower bound.
    pub bound: bool,
    /// It contradicts another figure of its entry.
    pub flagged: bool,
    pub shown: String,
}

impl Survey {
    /// Entries that meet all conditions, by name: the first `most`, and how many there are. Without `summary` that column stays
    /// empty: of ten thousand cards it is most of what a server would have to send.
    ///
    /// # Errors
    /// A condition that cannot be understood, or the database.
    pub fn list(&mut self, words: &[String], most: Option<usize>, summary: bool) -> Result<(Vec<Row>, usize)> {
        let conditions = self.conditions(words)?;
        let (sql, values) = query::all(&conditions, 0);
        let summary = if summary { "summary" } else { "''" };
        let limit = most.map_or(String::new(), |n| format!(" LIMIT {n}"));
        let order = if conditions.is_empty() { "name{C}, id{C}" } else { "{+name}, {+id}" };
        self.mend(|s| {
            let rows = s.db.words(&format!(
                "SELECT id, name, COALESCE(maker, ''), COALESCE(kind, ''), capacity, format, {summary}, flags,
                    COALESCE(erase_block, ''), COALESCE(open_linear, ''), COALESCE(open_random, ''), COALESCE(lot, ''),
                    COALESCE(host_class, ''), CASE WHEN summary = '' THEN 1 ELSE 0 END, real_capacity, counterfeit, COALESCE(price, ''), failing
                 FROM cards WHERE {sql} ORDER BY {order}{limit}"
            ));
            let rows: Vec<Row> = s.db.query(&rows, &values)?.into_iter().map(row).collect();
            let count = match most {
                Some(n) if n == rows.len() => {
                    let sql = s.db.words(&format!("SELECT COUNT(*) FROM cards WHERE {sql}"));
                    s.db.query(&sql, &values)?.first().and_then(|r| r[0].int()).unwrap_or(0) as usize
                }
                _ => rows.len(),
            };
            Ok((rows, count))
        })
    }

    /// Conditions that name what some entry has; those that `or` joins as one.
    pub(super) fn conditions(&mut self, words: &[String]) -> Result<Vec<query::Condition>> {
        let typed = query::alternatives(words).map_err(SurveyError::Query)?;
        let of = |words: &Vec<String>| Ok(query::any(self.each(words)?));
        Ok(typed.iter().map(of).collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
    }

    fn each(&mut self, words: &[String]) -> Result<Vec<query::Condition>> {
        let mut all: Vec<query::Condition> =
            words.iter().map(|w| query::parse(w)).collect::<std::result::Result<_, _>>().map_err(SurveyError::Query)?;
        for (c, word) in all.iter_mut().zip(words) {
            let Some(key) = c.figure.clone() else { continue };
            if key == "price" {
                let rows = self.query("SELECT DISTINCT key FROM facts WHERE key LIKE 'price-%' ORDER BY key", &[])?;
                let codes: Vec<String> = rows.iter().map(|r| r[0].text()[6..].to_uppercase()).collect();
                match &codes[..] {
                    [] => {
                        return Err(SurveyError::Query(format!(
                            "'{word}': no card has a price; `survey add --price '5.75 USD'` gives it one"
                        )));
                    }
                    [one] => c.values[0] = price::key(one).into(),
                    many => {
                        return Err(SurveyError::Query(format!(
                            "'{word}': there are prices in {}, which are not compared; say which, as in '{word}{}'",
                            many.join(", "),
                            many[0]
                        )));
                    }
                }
            } else if self.query("SELECT 1 FROM facts WHERE key = $1 LIMIT 1", &[key.as_str().into()])?.is_empty() {
                return Err(self.no_figure(word, &key));
            }
        }
        Ok(all)
    }

    /// That no entry has a figure, and what it may have been meant to be.
    pub(super) fn no_figure(&mut self, word: &str, key: &str) -> SurveyError {
        if let Some(code) = key.strip_prefix("price-") {
            return SurveyError::Query(format!("'{word}': no card has a price in {}", code.to_uppercase()));
        }
        let rows = self.query("SELECT DISTINCT key FROM facts", &[]).unwrap_or_default();
        let known: Vec<String> = rows.iter().map(|r| r[0].text()).chain(Quantity::ALL.iter().map(|q| q.key().to_string())).collect();
        let meant = crate::device::nearest(key, known.iter().map(String::as_str)).map_or(";".into(), |m| format!("; did you mean {m}?"));
        let named = if word == key { String::new() } else { format!("'{word}': ") };
        SurveyError::Query(format!(
            "{named}no card has a figure named '{key}'{meant} `nandscope survey chart --figure list` prints the rates"
        ))
    }

    /// The value of a quantity, by id, of the entries that have more than a bound of it.
    ///
    /// # Errors
    /// The database.
    pub fn values(&mut self, key: &str) -> Result<HashMap<String, f64>> {
        let rows = self.query("SELECT id, MIN(value) FROM facts WHERE key = $1 AND bound = 0 GROUP BY id", &[key.into()])?;
        Ok(rows.iter().map(|r| (r[0].text(), real(&r[1]))).collect())
    }

    /// Facts of all entries, by id.
    ///
    /// # Errors
    /// The database.
    pub fn facts(&mut self) -> Result<HashMap<String, Vec<Fact>>> {
        self.mend(Survey::all_facts)
    }

    fn all_facts(&mut self) -> Result<HashMap<String, Vec<Fact>>> {
        let mut out: HashMap<String, Vec<Fact>> = HashMap::new();
        for r in self.db.query("SELECT id, key, value, confidence, bound, shown, flagged FROM facts ORDER BY id, key", &[])? {
            let fact = Fact {
                key: r[1].text(),
                value: real(&r[2]),
                confidence: real(&r[3]),
                bound: r[4].int() == Some(1),
                shown: r[5].text(),
                flagged: r[6].int() == Some(1),
            };
            out.entry(r[0].text()).or_default().push(fact);
        }
        Ok(out)
    }
}

fn real(v: &Val) -> f64 {
    match v {
        Val::Real(f) => *f,
        Val::Int(i) => *i as f64,
        _ => f64::NAN,
    }
}

fn row(r: Vec<Val>) -> Row {
    Row {
        id: r[0].text(),
        name: r[1].text(),
        maker: r[2].text(),
        kind: r[3].text(),
        capacity: r[4].int().map(|c| c as u64),
        real: r[14].int().map(|c| c as u64),
        counterfeit: r[15].int().map(|c| c == 1),
        format: r[5].text(),
        summary: r[6].text(),
        flags: r[7].int().unwrap_or(0),
        erase_block: r[8].text(),
        open_linear: r[9].text(),
        open_random: r[10].text(),
        lot: r[11].text(),
        host: r[12].text(),
        bare: r[13].int() == Some(1),
        price: r[16].text(),
        failing: r[17].int().map(|c| c == 1),
    }
}

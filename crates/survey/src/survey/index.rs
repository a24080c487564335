//! The index of the entries: what the tables hold of each, and whether they still hold what the files say.

use super::db::{Db, Val, remember};
use super::hosts;
use super::record::{Record, SCHEMA};
use super::{Added, Result, SurveyError, io};
use crate::advise::price;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::time::UNIX_EPOCH;

/// What the index remembers of a file: time (ns since 1970) and size (bytes).
pub type Stamp = (i64, i64);

pub fn stamp(m: &std::fs::Metadata) -> Stamp {
    let time = m.modified().ok().and_then(|t| t.duration_since(UNIX_EPOCH).ok()).map_or(0, |d| d.as_nanos() as i64);
    (time, m.len() as i64)
}

/// Forty bits of a file's name, time and size. Their sum over all files is kept in `meta`: where it is that of the directory,
/// the index is current and no table needs to be read. The sum of four million files still fits.
fn mark(name: &str, stamp: Stamp) -> i64 {
    let mut h = DefaultHasher::new();
    (name, stamp).hash(&mut h);
    (h.finish() >> 24) as i64
}

/// Compares the files below `cards` with the index, reads what is new or changed, forgets what is gone. `sum` is what `meta`
/// remembers of the last time.
///
/// # Errors
/// The directory or the database fails. A file that cannot be read is kept as damaged.
pub fn sync(db: &mut Db, cards: &Path, sum: Option<i64>) -> Result<()> {
    let mut files: Vec<(String, Stamp)> = vec![];
    for entry in io(cards, std::fs::read_dir(cards))? {
        let entry = io(cards, entry)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.ends_with(".json") && !name.starts_with('.') {
            // A file that is gone by now was removed by somebody else.
            if let Ok(m) = entry.metadata() {
                files.push((name, stamp(&m)));
            }
        }
    }
    let now: i64 = files.iter().map(|(n, s)| mark(n, *s)).sum();
    if sum == Some(now) {
        return Ok(());
    }
    let files: HashMap<String, Stamp> = files.into_iter().collect();
    let known = |db: &mut Db, sql: &str| -> Result<HashMap<String, Stamp>> {
        let rows = db.query(sql, &[])?;
        Ok(rows.into_iter().map(|r| (r[0].text(), (r[1].int().unwrap_or(0), r[2].int().unwrap_or(0)))).collect())
    };
    let indexed = known(db, "SELECT path, mtime, size FROM cards WHERE path IS NOT NULL")?;
    let damaged = known(db, "SELECT path, mtime, size FROM damaged")?;
    let changed: Vec<(&String, Stamp)> = files
        .iter()
        .filter(|(name, stamp)| indexed.get(*name) != Some(*stamp) && damaged.get(*name) != Some(*stamp))
        .map(|(n, s)| (n, *s))
        .collect();
    // Somebody may have added a file since the directory was read.
    let gone: Vec<&String> = indexed.keys().chain(damaged.keys()).filter(|n| !files.contains_key(*n) && !cards.join(n).exists()).collect();
    for batch in changed.chunks(256) {
        let read: Vec<_> = batch.iter().map(|f| (f, load(&cards.join(f.0)))).collect();
        db.transaction(|db| {
            for ((name, stamp), record) in &read {
                drop_path(db, name)?;
                match record {
                    Ok(r) => {
                        drop_id(db, &r.id)?;
                        insert(db, r, Some((name, *stamp)), None)?;
                    }
                    Err(why) => {
                        let values = [name.as_str().into(), Val::Int(stamp.0), Val::Int(stamp.1), why.as_str().into()];
                        db.execute("INSERT INTO damaged (path, mtime, size, why) VALUES ($1, $2, $3, $4)", &values)?;
                    }
                }
            }
            Ok::<(), SurveyError>(())
        })?;
    }
    db.transaction(|db| {
        gone.iter().try_for_each(|n| drop_path(db, n))?;
        Ok::<(), SurveyError>(remember(db, "files", now)?)
    })
}

/// Reads an entry.
///
/// # Errors
/// One sentence: where it is damaged, or of which other kind it is.
pub fn parse(text: &str) -> std::result::Result<Record, String> {
    let mut r: Record = serde_json::from_str(text)
        .map_err(|e| if e.is_eof() { format!("it ends too early ({e}), as if cut off") } else { e.to_string() })?;
    if ["\\u00", "\\b", "\\f", "\\r"].iter().any(|c| text.contains(c)) || text.contains(|c: char| c.is_control() && c != '\n') {
        r = r.plain();
    }
    r.mend();
    match r.schema.as_str() {
        SCHEMA if !r.id.is_empty() => Ok(r),
        SCHEMA => Err("it has no id".into()),
        other => Err(format!("its schema is '{other}', this program reads {SCHEMA}")),
    }
}

pub fn load(path: &Path) -> std::result::Result<Record, String> {
    parse(&std::fs::read_to_string(path).map_err(|e| e.to_string())?)
}

pub fn drop_id(db: &mut Db, id: &str) -> Result<()> {
    db.execute("DELETE FROM facts WHERE id = $1", &[id.into()])?;
    db.execute("DELETE FROM cards WHERE id = $1", &[id.into()])?;
    Ok(())
}

fn drop_path(db: &mut Db, name: &str) -> Result<()> {
    db.execute("DELETE FROM facts WHERE id IN (SELECT id FROM cards WHERE path = $1)", &[name.into()])?;
    db.execute("DELETE FROM cards WHERE path = $1", &[name.into()])?;
    db.execute("DELETE FROM damaged WHERE path = $1", &[name.into()])?;
    Ok(())
}

/// Takes an entry and its file out.
pub fn remove(db: &mut Db, cards: Option<&Path>, id: &str, file: Option<&str>) -> Result<()> {
    db.transaction(|db| {
        drop_id(db, id)?;
        if let (Some(cards), Some(name)) = (cards, file) {
            let path = cards.join(name);
            let was = std::fs::metadata(&path).ok().map(|m| mark(name, stamp(&m)));
            io(&path, std::fs::remove_file(&path))?;
            shift(db, -was.unwrap_or(0))?;
        }
        Ok(())
    })
}

/// Rows of a server that an older program made are made anew from the entries beside them.
///
/// # Errors
/// The database. An entry that cannot be read keeps its row.
pub fn again(db: &mut Db) -> Result<()> {
    let ids = db.query("SELECT id FROM cards WHERE json IS NOT NULL ORDER BY id", &[])?;
    for id in ids.iter().map(|r| r[0].text()) {
        let json = db.query("SELECT json FROM cards WHERE id = $1", &[id.as_str().into()])?;
        let text = json.first().map(|r| r[0].text()).unwrap_or_default();
        if let Ok(r) = parse(&text) {
            drop_id(db, &id)?;
            insert(db, &r, None, Some(&text))?;
        }
    }
    Ok(())
}

fn shift(db: &mut Db, by: i64) -> Result<()> {
    db.execute("UPDATE meta SET value = value + $1 WHERE key = 'files'", &[Val::Int(by)])?;
    Ok(())
}

/// Writes the files of a batch and indexes them, within a transaction of the caller. `batch` must be in the order of the ids:
/// programs that add at the same time then wait for each other in one order only.
pub fn keep(db: &mut Db, cards: Option<&Path>, batch: &[(usize, Record, String)]) -> Result<Vec<(usize, Added)>> {
    let mut out = vec![];
    let mut sum = 0;
    for (i, r, text) in batch {
        let mut made = None;
        if let Some(cards) = cards {
            let there = !db.query("SELECT id FROM cards WHERE id = $1", &[r.id.as_str().into()])?.is_empty();
            if !there {
                let name = format!("{}.json", r.id);
                let part = cards.join(format!(".{}.{}.part", r.id, std::process::id()));
                let path = cards.join(&name);
                io(&part, std::fs::write(&part, text))?;
                io(&path, std::fs::rename(&part, &path))?;
                made = Some((name, stamp(&io(&path, std::fs::metadata(&path))?)));
            }
        }
        let new = match (&made, cards) {
            (Some((name, stamp)), _) => {
                sum += mark(name, *stamp);
                insert(db, r, Some((name, *stamp)), None)?
            }
            (None, Some(_)) => false,
            (None, None) => insert(db, r, None, Some(text))?,
        };
        let id = r.id.clone();
        out.push((*i, if new { Added::New { id, flags: r.flags.clone() } } else { Added::Already { id } }));
    }
    if sum != 0 {
        shift(db, sum)?;
    }
    Ok(out)
}

/// One row, and its facts; false where the id is there already.
pub fn insert(db: &mut Db, r: &Record, file: Option<(&str, Stamp)>, json: Option<&str>) -> Result<bool> {
    let c = &r.card;
    let some = |o: &Option<String>| o.clone().map_or(Val::Null, Val::Text);
    let decided: Vec<_> = r.findings.0.iter().filter_map(|f| Some((f, f.number().or(f.at_least.map(|b| b.0))?))).collect();
    let shown = |f: &crate::finding::Finding, v: f64| format!("{}{}", if f.value.is_none() { "at least " } else { "" }, f.quantity.show(v));
    let fact = |q: crate::finding::Quantity| -> Val { decided.iter().find(|d| d.0.quantity == q).map(|(f, v)| shown(f, *v)).into() };
    let mut summary: Vec<String> = decided
        .iter()
        .map(|(f, v)| format!("{} {} ({:.0} %)", f.quantity.title(), shown(f, *v), crate::finding::percent(f.confidence)))
        .collect();
    summary.extend(r.metrics.iter().take(6).map(|m| format!("{}, {}: {} {}", m.name, m.conditions, crate::units::three(m.value), m.unit)));
    let s = &r.source;
    let counterfeit = r.counterfeit();
    let failing = r.failing();
    let fails = (failing == Some(true)).then_some("failing");
    let words: Vec<&str> = [Some(c.name.as_str()), counterfeit.map(|c| c.word()), fails, Some(&r.id), Some(&s.format), Some(&s.file)]
        .into_iter()
        .chain([&c.maker, &c.ids, &c.part, &c.kind, &c.price, &c.lot, &s.host, &s.citation, &s.tool, &s.url].map(Option::as_deref))
        .flatten()
        .chain(r.notes.iter().map(String::as_str))
        .chain(s.simulated.then_some("simulated"))
        .collect();
    let undecided: Vec<&str> =
        r.findings.0.iter().filter(|f| f.value.is_none() && f.at_least.is_none()).map(|f| f.quantity.key()).collect();
    use crate::finding::Quantity as Q;
    let values = [
        r.id.as_str().into(),
        c.name.as_str().into(),
        some(&c.maker),
        some(&c.ids),
        some(&c.part),
        some(&c.kind),
        c.capacity.map(|b| b as i64).into(),
        some(&c.price),
        some(&c.lot),
        s.format.as_str().into(),
        s.file.as_str().into(),
        some(&s.host),
        some(&s.citation),
        Val::Int(r.added as i64),
        // f3 flags a counterfeit itself.
        Val::Int(r.flags.len() as i64 + i64::from(counterfeit.is_some() && r.flags.iter().all(|f| !f.starts_with("counterfeit")))),
        words.join(" ").to_lowercase().into(),
        summary.join("; ").into(),
        json.into(),
        file.map(|f| f.0).into(),
        file.map(|f| f.1.0).into(),
        file.map(|f| f.1.1).into(),
        fact(Q::EraseBlock),
        fact(Q::OpenAusLinear),
        fact(Q::OpenAusRandom),
        s.host.as_deref().map(hosts::class).into(),
        some(&s.tool),
        s.seed.map(|n| n.to_string()).into(),
        s.measured.map(|n| n as i64).into(),
        Val::Int(i64::from(s.simulated)),
        undecided.join(" ").into(),
        r.shared_file().into(),
        r.real_capacity().map(|b| b as i64).into(),
        r.genuine().map(|g| i64::from(!g)).into(),
        failing.map(i64::from).into(),
    ];
    let made = db.execute(
        "INSERT INTO cards (id, name, maker, ids, part, kind, capacity, price, lot, format, file, host, citation, added, flags, words, summary, json, path, mtime, size,
            erase_block, open_linear, open_random, host_class, tool, seed, measured, simulated, undecided, file_shared, real_capacity, counterfeit, failing)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28, $29, $30, $31, $32, $33, $34) ON CONFLICT (id) DO NOTHING",
        &values,
    )?;
    if made == 0 {
        return Ok(false);
    }
    let found = decided.iter().map(|(f, v)| (f.quantity.key().to_string(), *v, f.confidence, f.value.is_none(), shown(f, *v), false));
    let figures = r
        .metrics
        .iter()
        .filter(|m| m.value.is_finite())
        .map(|m| (m.key(), m.value, 1.0, false, format!("{} {}", crate::units::three(m.value), m.unit), r.flagged(m)));
    let cost = c
        .price
        .as_deref()
        .and_then(|p| price::parse(p).ok())
        .map(|(v, code)| (price::key(&code), v, 1.0, false, format!("{v} {code}"), false));
    let facts: Vec<[Val; 7]> = found
        .chain(figures)
        .chain(cost)
        .map(|(key, value, confidence, bound, shown, flagged)| {
            let [bound, flagged] = [bound, flagged].map(|b| Val::Int(i64::from(b)));
            [r.id.as_str().into(), key.into(), Val::Real(value), Val::Real(confidence), bound, shown.into(), flagged]
        })
        .collect();
    // Many rows a statement: a server answers each statement by itself.
    for some in facts.chunks(32) {
        let rows: Vec<String> =
            (0..some.len()).map(|i| format!("({})", (1..=7).map(|k| format!("${}", 7 * i + k)).collect::<Vec<_>>().join(", "))).collect();
        let sql = format!("INSERT INTO facts (id, key, value, confidence, bound, shown, flagged) VALUES {}", rows.join(", "));
        db.execute(&sql, &some.concat())?;
    }
    Ok(true)
}

//! Cards of many people and hosts: a directory of JSON files is the truth and SQLite its index, or a PostgreSQL server holds both.
//!
//! The index is made from the files and can be thrown away: every opening compares names, sizes and times with it. A file that
//! cannot be read is named and skipped. Several programs may add at the same time: a file appears under its final name in one step,
//! its name is the hash of its content, and the index waits for its turn.

pub mod db;
pub mod export;
mod query;
pub mod record;
pub mod site;

use db::{Db, DbError, Val};
use record::{Record, SCHEMA, Told};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::UNIX_EPOCH;

/// Where a survey lives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    Dir(PathBuf),
    /// `postgres://user@host:port/database`
    Server(String),
}

#[derive(Debug, thiserror::Error)]
pub enum SurveyError {
    #[error("{path}: {source}")]
    Io { path: String, source: std::io::Error },
    #[error("the survey's database: {0}")]
    Db(#[from] DbError),
    #[error("there is no entry '{0}'; `nandscope survey list` prints them")]
    NotFound(String),
    #[error("'{0}' is the beginning of several entries: {1}")]
    Ambiguous(String, String),
    #[error("{0}")]
    Query(String),
    #[error("{path} is damaged: {why}")]
    Damaged { path: String, why: String },
}

type Result<T> = std::result::Result<T, SurveyError>;

/// What became of a file that was to be added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Added {
    New {
        id: String,
        flags: Vec<String>,
    },
    /// The same content is there already.
    Already {
        id: String,
    },
    Refused(String),
}

/// One line of a list.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub id: String,
    pub name: String,
    pub maker: String,
    pub kind: String,
    pub capacity: Option<u64>,
    pub format: String,
    /// Erase block, open AUs linear and random, as text; empty where unknown.
    pub erase_block: String,
    pub open_linear: String,
    pub open_random: String,
    /// Decided findings and figures in one line.
    pub summary: String,
    pub flags: i64,
}

/// A decided quantity or a figure of a benchmark, as the index has it.
#[derive(Clone, Debug, PartialEq)]
pub struct Fact {
    pub key: String,
    pub value: f64,
    pub confidence: f64,
    /// The value is only a lower bound.
    pub bound: bool,
    pub shown: String,
}

pub struct Survey {
    db: Db,
    dir: Option<PathBuf>,
    /// Files that could not be read, with the reason.
    pub skipped: Vec<(String, String)>,
}

fn io<T>(path: &Path, r: std::io::Result<T>) -> Result<T> {
    r.map_err(|source| SurveyError::Io { path: path.display().to_string(), source })
}

/// Nanoseconds; good enough to notice a change together with the size.
fn mtime(m: &std::fs::Metadata) -> i64 {
    m.modified().ok().and_then(|t| t.duration_since(UNIX_EPOCH).ok()).map_or(0, |d| d.as_nanos() as i64)
}

/// What the index remembers of a file: time and size.
type Stamp = (i64, i64);

impl Survey {
    /// Opens or begins a survey, and brings its index up to date with the files.
    ///
    /// # Errors
    /// The directory or server cannot be used, or was written by a newer program.
    pub fn open(place: &Place) -> Result<Survey> {
        let mut s = match place {
            Place::Server(url) => Survey { db: Db::postgres(url)?, dir: None, skipped: vec![] },
            Place::Dir(dir) => {
                io(dir, std::fs::create_dir_all(dir.join("cards")))?;
                Survey { db: open_index(&dir.join("index.sqlite"))?, dir: Some(dir.clone()), skipped: vec![] }
            }
        };
        db::migrate(&mut s.db)?;
        s.references()?;
        s.sync()?;
        Ok(s)
    }

    /// The built-in entries, where the index has others or none.
    fn references(&mut self) -> Result<()> {
        let stamp = i64::from(crc32fast::hash(include_bytes!("reference.toml")));
        let have = self.db.query("SELECT value FROM meta WHERE key = 'reference'", &[])?.first().and_then(|r| r[0].int());
        if have == Some(stamp) {
            return Ok(());
        }
        self.db.transaction(|db| {
            db.execute("DELETE FROM facts WHERE id IN (SELECT id FROM cards WHERE format = 'published')", &[])?;
            db.execute("DELETE FROM cards WHERE format = 'published'", &[])?;
            for r in record::published() {
                index(db, &r, None, None)?;
            }
            db.execute(
                "INSERT INTO meta (key, value) VALUES ('reference', $1) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
                &[Val::Int(stamp)],
            )?;
            Ok(())
        })
    }

    /// Compares the files with the index.
    fn sync(&mut self) -> Result<()> {
        let Some(dir) = &self.dir else { return Ok(()) };
        let cards = dir.join("cards");
        let mut files: HashMap<String, Stamp> = HashMap::new();
        for entry in io(&cards, std::fs::read_dir(&cards))? {
            let entry = io(&cards, entry)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.ends_with(".json") && !name.starts_with('.') {
                // A file that is gone by now was removed by somebody else.
                if let Ok(m) = entry.metadata() {
                    files.insert(name, (mtime(&m), m.len() as i64));
                }
            }
        }
        let known = |db: &mut Db, sql: &str| -> Result<HashMap<String, (Stamp, String)>> {
            let rows = db.query(sql, &[])?;
            Ok(rows.into_iter().map(|r| (r[0].text(), ((r[1].int().unwrap_or(0), r[2].int().unwrap_or(0)), r[3].text()))).collect())
        };
        let indexed = known(&mut self.db, "SELECT path, mtime, size, id FROM cards WHERE path IS NOT NULL")?;
        let damaged = known(&mut self.db, "SELECT path, mtime, size, why FROM damaged")?;
        let changed: Vec<(String, Stamp)> = files
            .iter()
            .filter(|(name, stamp)| indexed.get(*name).is_none_or(|k| k.0 != **stamp) && damaged.get(*name).is_none_or(|k| k.0 != **stamp))
            .map(|(n, s)| (n.clone(), *s))
            .collect();
        // Somebody may have added a file since the directory was read.
        let gone: Vec<String> =
            indexed.keys().chain(damaged.keys()).filter(|n| !files.contains_key(*n) && !cards.join(n).exists()).cloned().collect();
        for batch in changed.chunks(256) {
            let read: Vec<_> = batch.iter().map(|f| (f, load(&cards.join(&f.0)))).collect();
            self.db.transaction(|db| {
                for ((name, stamp), record) in read {
                    drop_path(db, name)?;
                    match record {
                        Ok(r) => index(db, &r, Some((name, *stamp)), None)?,
                        Err(why) => {
                            let values = [name.as_str().into(), Val::Int(stamp.0), Val::Int(stamp.1), why.into()];
                            db.execute("INSERT INTO damaged (path, mtime, size, why) VALUES ($1, $2, $3, $4)", &values)?;
                        }
                    }
                }
                Ok::<(), SurveyError>(())
            })?;
        }
        if !gone.is_empty() {
            self.db.transaction(|db| gone.iter().try_for_each(|n| drop_path(db, n)))?;
        }
        let rows = self.db.query("SELECT path, why FROM damaged ORDER BY path", &[])?;
        self.skipped = rows.into_iter().map(|r| (cards.join(r[0].text()).display().to_string(), r[1].text())).collect();
        Ok(())
    }

    /// Adds files; `done` is told of each. Reading runs on all processors, the index takes them in the order they are ready.
    ///
    /// # Errors
    /// The directory or database fails. A file that is no result is no error: `done` gets the reason.
    pub fn add(&mut self, files: &[PathBuf], told: &Told, now: u64, done: &mut dyn FnMut(&Path, Added)) -> Result<()> {
        let next = AtomicUsize::new(0);
        let (send, receive) = std::sync::mpsc::sync_channel::<(usize, std::result::Result<(Record, String), String>)>(64);
        let workers = std::thread::available_parallelism().map_or(1, |n| n.get()).min(files.len().max(1));
        std::thread::scope(|scope| {
            for _ in 0..workers {
                let (send, next) = (send.clone(), &next);
                scope.spawn(move || {
                    loop {
                        let i = next.fetch_add(1, Ordering::Relaxed);
                        let Some(path) = files.get(i) else { break };
                        let read = std::fs::read(path).map_err(|e| e.to_string());
                        let record = read.and_then(|b| Record::from_file(&path.display().to_string(), &b, told, now));
                        let text = record.and_then(|r| serde_json::to_string(&r).map(|t| (r, t)).map_err(|e| e.to_string()));
                        if send.send((i, text)).is_err() {
                            break;
                        }
                    }
                });
            }
            drop(send);
            let mut waiting = receive.iter().peekable();
            while waiting.peek().is_some() {
                let batch: Vec<_> = waiting.by_ref().take(256).collect();
                let dir = self.dir.clone();
                let results = self.db.transaction(|db| {
                    let mut out = vec![];
                    for (i, read) in batch {
                        out.push((
                            i,
                            match read {
                                Ok((r, text)) => keep(db, dir.as_deref(), &r, text)?,
                                Err(why) => Added::Refused(why),
                            },
                        ));
                    }
                    Ok::<_, SurveyError>(out)
                })?;
                results.into_iter().for_each(|(i, a)| done(&files[i], a));
            }
            Ok::<(), SurveyError>(())
        })?;
        if let Some(dir) = &self.dir
            && let Ok(f) = std::fs::File::open(dir)
        {
            // One flush for all: what was reported as added survives a power cut.
            let _ = rustix::fs::syncfs(&f);
        }
        Ok(())
    }

    /// Entries that meet all conditions, by name.
    ///
    /// # Errors
    /// A condition that cannot be understood, or the database.
    pub fn list(&mut self, words: &[String]) -> Result<Vec<Row>> {
        let conditions: Vec<query::Condition> =
            words.iter().map(|w| query::parse(w)).collect::<std::result::Result<_, _>>().map_err(SurveyError::Query)?;
        let (sql, values) = query::all(&conditions, 0);
        let rows = self.db.query(
            &format!("SELECT id, name, COALESCE(maker, ''), COALESCE(kind, ''), capacity, format, summary, flags FROM cards WHERE {sql} ORDER BY name, id"),
            &values,
        )?;
        // One pass over the facts that a list shows is cheaper than three look-ups a row.
        let mut shown: HashMap<(String, String), String> = HashMap::new();
        let facts = if rows.len() > 200 {
            self.db.query("SELECT id, key, shown FROM facts WHERE key IN ('erase_block', 'open_aus_linear', 'open_aus_random')", &[])?
        } else {
            let mut all = vec![];
            for r in &rows {
                all.extend(self.db.query("SELECT id, key, shown FROM facts WHERE id = $1", &r[..1])?);
            }
            all
        };
        facts.into_iter().for_each(|r| {
            shown.insert((r[0].text(), r[1].text()), r[2].text());
        });
        let mut fact = |id: &str, key: &str| shown.remove(&(id.to_string(), key.to_string())).unwrap_or_default();
        Ok(rows
            .iter()
            .map(|r| {
                let id = r[0].text();
                Row {
                    name: r[1].text(),
                    maker: r[2].text(),
                    kind: r[3].text(),
                    capacity: r[4].int().map(|c| c as u64),
                    format: r[5].text(),
                    erase_block: fact(&id, "erase_block"),
                    open_linear: fact(&id, "open_aus_linear"),
                    open_random: fact(&id, "open_aus_random"),
                    summary: r[6].text(),
                    flags: r[7].int().unwrap_or(0),
                    id,
                }
            })
            .collect())
    }

    /// One entry, by its id or the beginning of it.
    ///
    /// # Errors
    /// None or several match, or the file is damaged.
    pub fn get(&mut self, id: &str) -> Result<Record> {
        let wanted = id.to_lowercase();
        let like = format!("{}%", wanted.replace(['%', '_'], " "));
        let rows = self.db.query("SELECT id, path FROM cards WHERE id LIKE $1 ORDER BY id LIMIT 9", &[like.into()])?;
        let row = match &rows[..] {
            [] => return Err(SurveyError::NotFound(id.into())),
            [one] => one,
            many => match many.iter().find(|r| r[0].text() == wanted) {
                Some(exact) => exact,
                None => return Err(SurveyError::Ambiguous(id.into(), many.iter().map(|r| r[0].text()).collect::<Vec<_>>().join(", "))),
            },
        };
        let id = row[0].text();
        if let Some(r) = id.starts_with("ref-").then(|| record::published().into_iter().find(|r| r.id == id)).flatten() {
            return Ok(r);
        }
        let damaged = |path: String, why: String| SurveyError::Damaged { path, why };
        match (&self.dir, &row[1]) {
            (Some(dir), Val::Text(name)) => {
                let path = dir.join("cards").join(name);
                load(&path).map_err(|why| damaged(path.display().to_string(), why))
            }
            _ => {
                let json = self.db.query("SELECT json FROM cards WHERE id = $1", &[id.as_str().into()])?;
                let text = json.first().map(|r| r[0].text()).unwrap_or_default();
                parse(&text).map_err(|why| damaged(id, why))
            }
        }
    }

    /// Takes an entry out; reference entries stay.
    ///
    /// # Errors
    /// As `get`, and where the file cannot be removed.
    pub fn remove(&mut self, id: &str) -> Result<String> {
        let rows = self.db.query("SELECT id, path, format FROM cards WHERE id = $1", &[id.to_lowercase().into()])?;
        let Some(row) = rows.first() else { return Err(SurveyError::NotFound(id.into())) };
        if row[2].text() == "published" {
            return Err(SurveyError::Query(format!("{id} is a reference entry; those are part of the program")));
        }
        if let (Some(dir), Val::Text(name)) = (&self.dir, &row[1]) {
            let path = dir.join("cards").join(name);
            io(&path, std::fs::remove_file(&path))?;
        }
        self.db.transaction(|db| drop_id(db, &row[0].text()))?;
        Ok(row[0].text())
    }

    /// Facts of all entries, by id.
    ///
    /// # Errors
    /// The database.
    pub fn facts(&mut self) -> Result<HashMap<String, Vec<Fact>>> {
        let mut out: HashMap<String, Vec<Fact>> = HashMap::new();
        let real = |v: &Val| match v {
            Val::Real(f) => *f,
            Val::Int(i) => *i as f64,
            _ => f64::NAN,
        };
        for r in self.db.query("SELECT id, key, value, confidence, bound, shown FROM facts ORDER BY id, key", &[])? {
            let fact =
                Fact { key: r[1].text(), value: real(&r[2]), confidence: real(&r[3]), bound: r[4].int() == Some(1), shown: r[5].text() };
            out.entry(r[0].text()).or_default().push(fact);
        }
        Ok(out)
    }
}

/// An index that is no database is only an index: it is made anew.
fn open_index(path: &Path) -> Result<Db> {
    let sound = |db: &mut Db| db.query("SELECT COUNT(*) FROM sqlite_master", &[]).is_ok();
    match Db::sqlite(path) {
        Ok(mut db) => {
            if sound(&mut db) {
                return Ok(db);
            }
        }
        Err(DbError::Sqlite(rusqlite::Error::SqliteFailure(e, _)))
            if e.code == rusqlite::ErrorCode::NotADatabase || e.code == rusqlite::ErrorCode::DatabaseCorrupt => {}
        Err(e) => return Err(e.into()),
    }
    for end in ["", "-wal", "-shm"] {
        let mut p = path.as_os_str().to_owned();
        p.push(end);
        let _ = std::fs::remove_file(p);
    }
    Ok(Db::sqlite(path)?)
}

fn parse(text: &str) -> std::result::Result<Record, String> {
    let r: Record = serde_json::from_str(text)
        .map_err(|e| if e.is_eof() { format!("it ends too early ({e}), as if cut off") } else { e.to_string() })?;
    match r.schema.as_str() {
        SCHEMA if !r.id.is_empty() => Ok(r),
        SCHEMA => Err("it has no id".into()),
        other => Err(format!("its schema is '{other}', this program reads {SCHEMA}")),
    }
}

fn load(path: &Path) -> std::result::Result<Record, String> {
    parse(&std::fs::read_to_string(path).map_err(|e| e.to_string())?)
}

fn drop_id(db: &mut Db, id: &str) -> Result<()> {
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

/// Writes the file and indexes it.
fn keep(db: &mut Db, dir: Option<&Path>, r: &Record, text: String) -> Result<Added> {
    if !db.query("SELECT id FROM cards WHERE id = $1", &[r.id.as_str().into()])?.is_empty() {
        return Ok(Added::Already { id: r.id.clone() });
    }
    match dir {
        Some(dir) => {
            let name = format!("{}.json", r.id);
            let part = dir.join("cards").join(format!(".{}.{}.part", r.id, std::process::id()));
            let path = dir.join("cards").join(&name);
            io(&part, std::fs::write(&part, text))?;
            io(&path, std::fs::rename(&part, &path))?;
            let m = io(&path, std::fs::metadata(&path))?;
            index(db, r, Some((&name, (mtime(&m), m.len() as i64))), None)?;
        }
        None => index(db, r, None, Some(text))?,
    }
    Ok(Added::New { id: r.id.clone(), flags: r.flags.clone() })
}

fn index(db: &mut Db, r: &Record, file: Option<(&str, Stamp)>, json: Option<String>) -> Result<()> {
    drop_id(db, &r.id)?;
    let c = &r.card;
    let some = |o: &Option<String>| o.clone().map_or(Val::Null, Val::Text);
    let decided: Vec<_> = r.findings.0.iter().filter_map(|f| Some((f, f.number().or(f.at_least.map(|b| b.0))?))).collect();
    let shown = |f: &crate::finding::Finding, v: f64| format!("{}{}", if f.value.is_none() { "at least " } else { "" }, f.quantity.show(v));
    let mut summary: Vec<String> =
        decided.iter().map(|(f, v)| format!("{} {} ({:.0} %)", f.quantity.title(), shown(f, *v), (f.confidence * 100.0).floor())).collect();
    summary.extend(r.metrics.iter().take(6).map(|m| format!("{}, {}: {} {}", m.name, m.conditions, crate::units::three(m.value), m.unit)));
    let s = &r.source;
    let words: Vec<&str> = [Some(c.name.as_str()), Some(&r.id), Some(&s.format), Some(&s.file)]
        .into_iter()
        .chain([&c.maker, &c.ids, &c.part, &c.kind, &c.price, &c.lot, &s.host, &s.citation, &s.tool, &s.url].map(Option::as_deref))
        .flatten()
        .chain(r.notes.iter().map(String::as_str))
        .collect();
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
        Val::Int(r.flags.len() as i64),
        words.join(" ").to_lowercase().into(),
        summary.join("; ").into(),
        json.into(),
        file.map(|f| f.0).into(),
        file.map(|f| f.1.0).into(),
        file.map(|f| f.1.1).into(),
    ];
    db.execute(
        "INSERT INTO cards (id, name, maker, ids, part, kind, capacity, price, lot, format, file, host, citation, added, flags, words, summary, json, path, mtime, size)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21)",
        &values,
    )?;
    let facts = decided.iter().map(|(f, v)| (f.quantity.key().to_string(), *v, f.confidence, f.value.is_none(), shown(f, *v)));
    let figures = r
        .metrics
        .iter()
        .filter(|m| m.value.is_finite())
        .map(|m| (m.key(), m.value, 1.0, false, format!("{} {}", crate::units::three(m.value), m.unit)));
    for (key, value, confidence, bound, shown) in facts.chain(figures) {
        let values = [r.id.as_str().into(), key.into(), Val::Real(value), Val::Real(confidence), Val::Int(i64::from(bound)), shown.into()];
        db.execute("INSERT INTO facts (id, key, value, confidence, bound, shown) VALUES ($1, $2, $3, $4, $5, $6)", &values)?;
    }
    Ok(())
}

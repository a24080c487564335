//! Cards of many people and hosts: a directory of JSON files is the truth and SQLite its index, or a PostgreSQL server holds both.
//!
//! The index is made from the files and can be thrown away: every opening compares names, sizes and times with it. A file that
//! cannot be read is named and skipped. Several programs may add at the same time: a file appears under its final name in one step,
//! its name is the hash of its content, and the index waits for its turn.

pub mod chart;
pub mod db;
pub mod export;
mod figures;
pub mod hosts;
mod index;
mod list;
#[cfg(feature = "parquet")]
pub mod parquet;
pub mod published;
mod query;
pub mod record;
pub mod site;
mod sources;
mod wiki;

use crate::samples::import::given;
use db::{Db, DbError, Val};
pub use list::{Fact, Row};
pub use query::{alternatives, of_benchmark};
use record::{Record, Told};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The index of a directory, beside `cards`.
const INDEX: &str = "index.sqlite";

/// What the rows of a server's tables hold of an entry; higher once they hold more.
const ROWS: i64 = 2;

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
    #[error("no survey can be begun in {path}: {source}; --dir DIR names another directory")]
    Begin { path: String, source: std::io::Error },
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

impl SurveyError {
    fn is_ruin(&self) -> bool {
        matches!(self, SurveyError::Db(e) if e.is_ruin())
    }
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

pub struct Survey {
    db: Db,
    dir: Option<PathBuf>,
    /// There is no such directory yet: only the cards that come with the program are known.
    pub absent: bool,
    /// Files that could not be read, with the reason.
    pub skipped: Vec<(String, String)>,
}

fn io<T>(path: &Path, r: std::io::Result<T>) -> Result<T> {
    r.map_err(|source| SurveyError::Io { path: path.display().to_string(), source })
}

impl Survey {
    /// Opens a survey, and brings its index up to date with the files. A directory that is no survey yet is left alone; what
    /// comes with the program can be read all the same.
    ///
    /// # Errors
    /// The directory or server cannot be used, or was written by a newer program.
    pub fn open(place: &Place) -> Result<Survey> {
        match place {
            Place::Dir(dir) if !dir.join("cards").is_dir() => {
                if dir.exists() && !dir.is_dir() {
                    return io(dir, Err(std::io::ErrorKind::NotADirectory.into()));
                }
                Survey { db: Db::sqlite(Path::new(":memory:"))?, dir: None, absent: true, skipped: vec![] }.ready()
            }
            _ => Survey::begin(place),
        }
    }

    /// Opens a survey, or begins one where there is none.
    ///
    /// # Errors
    /// The directory or server cannot be used, or was written by a newer program.
    pub fn begin(place: &Place) -> Result<Survey> {
        match place {
            Place::Server(url) => Survey { db: Db::postgres(url)?, dir: None, absent: false, skipped: vec![] }.ready(),
            Place::Dir(dir) => {
                let cards = dir.join("cards");
                std::fs::create_dir_all(&cards).map_err(|source| SurveyError::Begin { path: dir.display().to_string(), source })?;
                let begin = || Survey { db: Db::sqlite(&dir.join(INDEX))?, dir: Some(dir.clone()), absent: false, skipped: vec![] }.ready();
                match begin() {
                    Err(e) if e.is_ruin() => {
                        discard(dir);
                        begin()
                    }
                    other => other,
                }
            }
        }
    }

    /// Tables, reference entries and files as they should be.
    fn ready(mut self) -> Result<Survey> {
        let meta = db::migrate(&mut self.db)?;
        self.references(meta.get("reference").copied())?;
        if self.dir.is_none() && !self.absent && meta.get("rows") != Some(&ROWS) {
            self.db.transaction(|db| {
                index::again(db)?;
                Ok::<(), SurveyError>(db::remember(db, "rows", ROWS)?)
            })?;
        }
        if let Some(dir) = &self.dir {
            let cards = dir.join("cards");
            index::sync(&mut self.db, &cards, meta.get("files").copied())?;
            let rows = self.db.query("SELECT path, why FROM damaged ORDER BY path", &[])?;
            self.skipped = rows.into_iter().map(|r| (cards.join(r[0].text()).display().to_string(), r[1].text())).collect();
        }
        Ok(self)
    }

    /// Does something, and once more with a new index where the old one turns out to be ruined.
    fn mend<T>(&mut self, what: impl Fn(&mut Survey) -> Result<T>) -> Result<T> {
        match (what(self), self.dir.clone()) {
            (Err(e), Some(dir)) if e.is_ruin() => {
                discard(&dir);
                *self = Survey::begin(&Place::Dir(dir))?;
                what(self)
            }
            (done, _) => done,
        }
    }

    /// The built-in entries, where the index has others or none.
    fn references(&mut self, have: Option<i64>) -> Result<()> {
        let stamp = i64::from(crc32fast::hash(include_bytes!("reference.toml")));
        if have == Some(stamp) {
            return Ok(());
        }
        self.db.transaction(|db| {
            db.execute("DELETE FROM facts WHERE id IN (SELECT id FROM cards WHERE format = 'published')", &[])?;
            db.execute("DELETE FROM cards WHERE format = 'published'", &[])?;
            for r in published::published() {
                index::insert(db, &r, None, None)?;
            }
            Ok(db::remember(db, "reference", stamp)?)
        })
    }

    /// Adds files; `done` is told of each card in them. Reading runs on all processors, the index takes them in the order they are ready.
    ///
    /// # Errors
    /// The directory or database fails. A file that is no result is no error: `done` gets the reason.
    pub fn add(&mut self, files: &[PathBuf], told: &Told, now: u64, done: &mut dyn FnMut(&Path, Added)) -> Result<()> {
        let next = AtomicUsize::new(0);
        let (send, receive) = std::sync::mpsc::sync_channel::<(usize, std::result::Result<Vec<(Record, String)>, String>)>(64);
        let workers = std::thread::available_parallelism().map_or(1, |n| n.get()).min(files.len().max(1));
        std::thread::scope(|scope| {
            for _ in 0..workers {
                let (send, next) = (send.clone(), &next);
                scope.spawn(move || {
                    loop {
                        let i = next.fetch_add(1, Ordering::Relaxed);
                        let Some(path) = files.get(i) else { break };
                        let read = given::bytes(path).map_err(|e| e.to_string());
                        let record = read.and_then(|b| Record::all_from_file(&path.display().to_string(), &b, told, now));
                        let one = |r: Record| serde_json::to_string(&r).map(|t| (r, t)).map_err(|e| e.to_string());
                        let text = record.and_then(|all| all.into_iter().map(one).collect());
                        if send.send((i, text)).is_err() {
                            break;
                        }
                    }
                });
            }
            drop(send);
            let cards = self.dir.as_ref().map(|d| d.join("cards"));
            let mut waiting = receive.iter().peekable();
            while waiting.peek().is_some() {
                let (mut good, mut results) = (vec![], vec![]);
                for (i, read) in waiting.by_ref().take(256) {
                    match read {
                        Ok(all) => good.extend(all.into_iter().map(|(r, text)| (i, r, text))),
                        Err(why) => results.push((i, Added::Refused(why))),
                    }
                }
                nandscope_stats::sort_by(&mut good, |a, b| a.1.id.cmp(&b.1.id));
                results.extend(self.mend(|s| s.db.transaction(|db| index::keep(db, cards.as_deref(), &good)))?);
                nandscope_stats::sort_by_key(&mut results, |r| r.0);
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

    /// One entry, by its id or the beginning of it.
    ///
    /// # Errors
    /// None or several match, or the file is damaged.
    pub fn get(&mut self, id: &str) -> Result<Record> {
        let row = self.meant(id)?;
        let id = row[0].text();
        if let Some(r) = id.starts_with("ref-").then(|| published::published().into_iter().find(|r| r.id == id)).flatten() {
            return Ok(r);
        }
        let damaged = |path: String, why: String| SurveyError::Damaged { path, why };
        match (&self.dir, &row[1]) {
            (Some(dir), Val::Text(name)) => {
                let path = dir.join("cards").join(name);
                index::load(&path).map_err(|why| damaged(path.display().to_string(), why))
            }
            _ => {
                let json = self.db.query("SELECT json FROM cards WHERE id = $1", &[id.as_str().into()])?;
                let text = json.first().map(|r| r[0].text()).unwrap_or_default();
                index::parse(&text).map_err(|why| damaged(id, why))
            }
        }
    }

    /// Id, path and format of the one entry that an id or the beginning of one means.
    fn meant(&mut self, id: &str) -> Result<Vec<Val>> {
        let wanted = id.to_lowercase();
        let like = format!("{}%", wanted.replace(['%', '_'], " "));
        let mut rows = self.mend(|s| {
            let sql = s.db.words("SELECT id, path, format FROM cards WHERE id LIKE $1 ORDER BY id{C} LIMIT 9");
            Ok(s.db.query(&sql, &[like.as_str().into()])?)
        })?;
        match rows.iter().position(|r| r[0].text() == wanted) {
            Some(exact) => Ok(rows.swap_remove(exact)),
            None if rows.len() == 1 => Ok(rows.remove(0)),
            None if rows.is_empty() => Err(SurveyError::NotFound(id.into())),
            None => Err(SurveyError::Ambiguous(id.into(), rows.iter().map(|r| r[0].text()).collect::<Vec<_>>().join(", "))),
        }
    }

    /// Takes an entry out; reference entries stay.
    ///
    /// # Errors
    /// As `get`, and where the file cannot be removed.
    pub fn remove(&mut self, id: &str) -> Result<String> {
        // The beginning of nothing means every entry, and the only one by chance.
        if id.is_empty() {
            return Err(SurveyError::NotFound(id.into()));
        }
        let row = self.meant(id)?;
        if row[2].text() == "published" {
            return Err(SurveyError::Query(format!("{id} is a reference entry; those are part of the program")));
        }
        let cards = self.dir.as_ref().map(|d| d.join("cards"));
        let file = match &row[1] {
            Val::Text(name) => Some(name.as_str()),
            _ => None,
        };
        index::remove(&mut self.db, cards.as_deref(), &row[0].text(), file)?;
        Ok(row[0].text())
    }

    /// A question in the words of [`Db::words`].
    fn query(&mut self, sql: &str, values: &[Val]) -> Result<Vec<Vec<Val>>> {
        self.mend(|s| {
            let sql = s.db.words(sql);
            Ok(s.db.query(&sql, values)?)
        })
    }
}

/// An index that is ruined is only an index: it is made anew from the files.
fn discard(dir: &Path) {
    for end in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(dir.join(format!("{INDEX}{end}")));
    }
}

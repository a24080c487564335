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
#[cfg(feature = "parquet")]
pub mod parquet;
pub mod published;
mod query;
pub mod record;
pub mod site;
mod sources;
mod wiki;

use crate::advise::price;
use crate::finding::Quantity;
use crate::samples::import::given;
use db::{Db, DbError, Val};
pub use query::{alternatives, of_benchmark};
use record::{Record, Told};
use std::collections::HashMap;
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
    fn conditions(&mut self, words: &[String]) -> Result<Vec<query::Condition>> {
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
    fn no_figure(&mut self, word: &str, key: &str) -> SurveyError {
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

/// An index that is ruined is only an index: it is made anew from the files.
fn discard(dir: &Path) {
    for end in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(dir.join(format!("{INDEX}{end}")));
    }
}

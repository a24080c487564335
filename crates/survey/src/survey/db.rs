//! The same few SQL statements on SQLite and on PostgreSQL.

use postgres::types::{IsNull, ToSql, Type, to_sql_checked};
use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long one program waits for another that writes.
const PATIENCE: Duration = Duration::from_secs(60);

/// A value that goes in or comes out.
#[derive(Clone, Debug, PartialEq)]
pub enum Val {
    Null,
    Int(i64),
    Real(f64),
    Text(String),
}

impl From<&str> for Val {
    fn from(s: &str) -> Val {
        Val::Text(s.into())
    }
}
impl From<String> for Val {
    fn from(s: String) -> Val {
        Val::Text(s)
    }
}
impl From<i64> for Val {
    fn from(i: i64) -> Val {
        Val::Int(i)
    }
}
impl From<f64> for Val {
    fn from(f: f64) -> Val {
        Val::Real(f)
    }
}
impl<T: Into<Val>> From<Option<T>> for Val {
    fn from(o: Option<T>) -> Val {
        o.map_or(Val::Null, Into::into)
    }
}

impl Val {
    pub fn text(&self) -> String {
        match self {
            Val::Null => String::new(),
            Val::Int(i) => i.to_string(),
            Val::Real(f) => f.to_string(),
            Val::Text(s) => s.clone(),
        }
    }

    pub fn int(&self) -> Option<i64> {
        match self {
            Val::Int(i) => Some(*i),
            _ => None,
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum DbError {
    #[error("{0}")]
    Sqlite(#[from] rusqlite::Error),
    /// The text of the server, without the lines around it.
    #[error("PostgreSQL: {0}")]
    Postgres(String),
    #[error("the survey was made by a newer nandscope (tables version {have}, this program knows {known})")]
    Newer { have: usize, known: usize },
}

impl DbError {
    /// The file is no database, or its pages contradict each other. As the index is made from the files it can be made anew.
    pub fn is_ruin(&self) -> bool {
        use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase};
        matches!(self, DbError::Sqlite(rusqlite::Error::SqliteFailure(e, _)) if matches!(e.code, NotADatabase | DatabaseCorrupt))
    }

    fn is_busy(&self) -> bool {
        use rusqlite::ErrorCode::{DatabaseBusy, DatabaseLocked};
        matches!(self, DbError::Sqlite(rusqlite::Error::SqliteFailure(e, _)) if matches!(e.code, DatabaseBusy | DatabaseLocked))
    }
}

impl From<postgres::Error> for DbError {
    fn from(e: postgres::Error) -> DbError {
        let text = e.as_db_error().map(|d| d.message().to_string());
        let cause = std::error::Error::source(&e).map(|s| s.to_string());
        DbError::Postgres(text.or(cause).unwrap_or_else(|| e.to_string()))
    }
}

type Result<T> = std::result::Result<T, DbError>;

/// Statements use $1, $2, ... in the order in which they stand, each once.
pub enum Db {
    Sqlite(rusqlite::Connection),
    Postgres(Box<Server>),
}

/// A connection, and the statements that it has prepared: without them each call asks the server twice.
pub struct Server {
    client: postgres::Client,
    prepared: HashMap<String, postgres::Statement>,
}

impl Server {
    fn prepare(&mut self, sql: &str) -> Result<postgres::Statement> {
        if let Some(s) = self.prepared.get(sql) {
            return Ok(s.clone());
        }
        let s = self.client.prepare(sql)?;
        self.prepared.insert(sql.into(), s.clone());
        Ok(s)
    }
}

impl Db {
    /// # Errors
    /// The file cannot be made or is no database.
    pub fn sqlite(path: &Path) -> Result<Db> {
        let c = rusqlite::Connection::open(path)?;
        // Several programs may add at once: wait for each other, readers never wait.
        c.busy_timeout(PATIENCE)?;
        // Counts for a new file only: a search of ten thousand cards reads every page, and a few large ones are read faster.
        c.pragma_update(None, "page_size", 32768)?;
        // The change to WAL of a new file does not wait by itself.
        let began = Instant::now();
        while let Err(e) = c.pragma_update(None, "journal_mode", "WAL").map_err(DbError::from) {
            if !e.is_busy() || began.elapsed() > PATIENCE {
                return Err(e);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        c.pragma_update(None, "synchronous", "NORMAL")?;
        c.set_prepared_statement_cache_capacity(64);
        Ok(Db::Sqlite(c))
    }

    /// # Errors
    /// The server cannot be reached or refuses.
    pub fn postgres(url: &str) -> Result<Db> {
        let client = postgres::Client::connect(url, postgres::NoTls)?;
        Ok(Db::Postgres(Box::new(Server { client, prepared: HashMap::new() })))
    }

    /// A statement in this database's words: `HAS(text, part)` is where the part occurs, 0 for nowhere; `{C}` sorts as bytes do;
    /// `{+name}` keeps a database from walking the index of `name`, row by row, for the order only, where few rows will be left.
    pub fn words(&self, sql: &str) -> String {
        let (has, order, name, id) = match self {
            Db::Sqlite(_) => ("instr(", "", "+name", "+id"),
            Db::Postgres(_) => ("strpos(", " COLLATE \"C\"", "(name || '') COLLATE \"C\"", "(id || '') COLLATE \"C\""),
        };
        sql.replace("HAS(", has).replace("{C}", order).replace("{+name}", name).replace("{+id}", id)
    }

    /// Several statements without values.
    ///
    /// # Errors
    /// What the database says.
    pub fn batch(&mut self, sql: &str) -> Result<()> {
        match self {
            Db::Sqlite(c) => Ok(c.execute_batch(sql)?),
            Db::Postgres(s) => Ok(s.client.batch_execute(sql)?),
        }
    }

    /// # Errors
    /// What the database says.
    pub fn execute(&mut self, sql: &str, values: &[Val]) -> Result<u64> {
        match self {
            Db::Sqlite(c) => Ok(c.prepare_cached(sql)?.execute(rusqlite::params_from_iter(values.iter().map(own)))? as u64),
            Db::Postgres(s) => {
                let statement = s.prepare(sql)?;
                Ok(s.client.execute(&statement, &refs(values))?)
            }
        }
    }

    /// # Errors
    /// What the database says.
    pub fn query(&mut self, sql: &str, values: &[Val]) -> Result<Vec<Vec<Val>>> {
        match self {
            Db::Sqlite(c) => {
                let mut s = c.prepare_cached(sql)?;
                let n = s.column_count();
                let rows = s.query_map(rusqlite::params_from_iter(values.iter().map(own)), |row| {
                    (0..n).map(|i| row.get_ref(i).map(back)).collect()
                })?;
                Ok(rows.collect::<std::result::Result<Vec<Vec<Val>>, _>>()?)
            }
            Db::Postgres(s) => {
                let statement = s.prepare(sql)?;
                let rows = s.client.query(&statement, &refs(values))?;
                Ok(rows.iter().map(|r| (0..r.len()).map(|i| from_postgres(r, i)).collect()).collect())
            }
        }
    }

    /// All or nothing. Readers of SQLite are not held up; other writers wait.
    ///
    /// # Errors
    /// Of `what`, or of the database.
    pub fn transaction<T, E: From<DbError>>(
        &mut self,
        what: impl FnOnce(&mut Db) -> std::result::Result<T, E>,
    ) -> std::result::Result<T, E> {
        self.batch(if matches!(self, Db::Sqlite(_)) { "BEGIN IMMEDIATE" } else { "BEGIN" })?;
        match what(self) {
            Ok(v) => {
                self.batch("COMMIT")?;
                Ok(v)
            }
            Err(e) => {
                let _ = self.batch("ROLLBACK");
                Err(e)
            }
        }
    }
}

fn own(v: &Val) -> rusqlite::types::Value {
    use rusqlite::types::Value;
    match v {
        Val::Null => Value::Null,
        Val::Int(i) => Value::Integer(*i),
        Val::Real(f) => Value::Real(*f),
        Val::Text(s) => Value::Text(s.clone()),
    }
}

fn back(v: rusqlite::types::ValueRef<'_>) -> Val {
    use rusqlite::types::ValueRef;
    match v {
        ValueRef::Null => Val::Null,
        ValueRef::Integer(i) => Val::Int(i),
        ValueRef::Real(f) => Val::Real(f),
        ValueRef::Text(t) | ValueRef::Blob(t) => Val::Text(String::from_utf8_lossy(t).into_owned()),
    }
}

fn refs(values: &[Val]) -> Vec<&(dyn ToSql + Sync)> {
    values.iter().map(|v| v as &(dyn ToSql + Sync)).collect()
}

fn from_postgres(r: &postgres::Row, i: usize) -> Val {
    match *r.columns()[i].type_() {
        Type::INT8 => r.get::<_, Option<i64>>(i).into(),
        Type::INT4 => r.get::<_, Option<i32>>(i).map(i64::from).into(),
        Type::FLOAT8 => r.get::<_, Option<f64>>(i).into(),
        _ => r.try_get::<_, Option<String>>(i).unwrap_or(None).into(),
    }
}

impl ToSql for Val {
    fn to_sql(&self, ty: &Type, out: &mut bytes::BytesMut) -> std::result::Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        match (self, ty) {
            (Val::Null, _) => Ok(IsNull::Yes),
            (Val::Int(i), &Type::FLOAT8) => (*i as f64).to_sql(ty, out),
            (Val::Int(i), _) => i.to_sql(ty, out),
            (Val::Real(f), _) => f.to_sql(ty, out),
            // PostgreSQL has no text with NUL in it.
            (Val::Text(s), _) if s.contains('\0') => s.replace('\0', " ").to_sql(ty, out),
            (Val::Text(s), _) => s.to_sql(ty, out),
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

/// What each version of the tables added. Version n is the length of the list when it was current; entries are never changed.
pub const MIGRATIONS: &[&str] = &[
    "CREATE TABLE cards (
        id TEXT PRIMARY KEY, name TEXT NOT NULL, maker TEXT, ids TEXT, part TEXT, kind TEXT, capacity BIGINT, price TEXT, lot TEXT,
        format TEXT NOT NULL, file TEXT NOT NULL, host TEXT, citation TEXT, added BIGINT NOT NULL, flags BIGINT NOT NULL,
        words TEXT NOT NULL, summary TEXT NOT NULL, json TEXT, path TEXT, mtime BIGINT, size BIGINT);
     CREATE TABLE facts (id TEXT NOT NULL, key TEXT NOT NULL, value DOUBLE PRECISION NOT NULL, confidence DOUBLE PRECISION NOT NULL, bound BIGINT NOT NULL, shown TEXT NOT NULL);
     CREATE INDEX facts_key ON facts (key, value);
     CREATE INDEX facts_id ON facts (id);
     CREATE TABLE damaged (path TEXT PRIMARY KEY, mtime BIGINT NOT NULL, size BIGINT NOT NULL, why TEXT NOT NULL);",
    // Lists are sorted by name; imports are looked up by what they were.
    "CREATE INDEX cards_name ON cards (name);
     CREATE INDEX cards_path ON cards (path);",
    // What a list shows stands in the row, and the order is that of bytes on every database.
    "ALTER TABLE cards ADD COLUMN erase_block TEXT;
     ALTER TABLE cards ADD COLUMN open_linear TEXT;
     ALTER TABLE cards ADD COLUMN open_random TEXT;
     UPDATE cards SET erase_block = (SELECT MIN(f.shown) FROM facts f WHERE f.id = cards.id AND f.key = 'erase_block'),
        open_linear = (SELECT MIN(f.shown) FROM facts f WHERE f.id = cards.id AND f.key = 'open_aus_linear'),
        open_random = (SELECT MIN(f.shown) FROM facts f WHERE f.id = cards.id AND f.key = 'open_aus_random');
     DROP INDEX cards_name;
     CREATE INDEX cards_order ON cards (name{C}, id{C});
     DROP INDEX facts_key;
     CREATE INDEX facts_key ON facts (key, value, bound, id);",
    // Hosts are kept apart, flags are of figures; all rows are made anew from the entries.
    "ALTER TABLE cards ADD COLUMN host_class TEXT;
     ALTER TABLE cards ADD COLUMN tool TEXT;
     ALTER TABLE cards ADD COLUMN seed TEXT;
     ALTER TABLE cards ADD COLUMN measured BIGINT;
     ALTER TABLE cards ADD COLUMN simulated BIGINT;
     ALTER TABLE cards ADD COLUMN undecided TEXT;
     ALTER TABLE cards ADD COLUMN file_shared TEXT;
     ALTER TABLE facts ADD COLUMN flagged BIGINT NOT NULL DEFAULT 0;
     UPDATE cards SET mtime = 0 WHERE path IS NOT NULL;
     DELETE FROM meta WHERE key IN ('files', 'reference');",
    // What a card really holds, where that is known, and whether that is less than it reports. Rows made from files are made anew;
    // on a server the finding says it.
    "ALTER TABLE cards ADD COLUMN real_capacity BIGINT;
     ALTER TABLE cards ADD COLUMN counterfeit BIGINT;
     UPDATE cards SET real_capacity = (SELECT CAST(MIN(f.value) AS BIGINT) FROM facts f
        WHERE f.id = cards.id AND f.key = 'capacity' AND f.bound = 0 AND f.confidence >= 0.75);
     UPDATE cards SET counterfeit = CASE WHEN real_capacity < 0.99 * capacity THEN 1 ELSE 0 END
        WHERE real_capacity IS NOT NULL AND capacity IS NOT NULL;
     UPDATE cards SET mtime = 0 WHERE path IS NOT NULL;
     DELETE FROM meta WHERE key IN ('files', 'reference');",
    // Whether a card fails; rows made from files are made anew.
    "ALTER TABLE cards ADD COLUMN failing BIGINT;
     UPDATE cards SET mtime = 0 WHERE path IS NOT NULL;
     DELETE FROM meta WHERE key IN ('files', 'reference');",
];

/// What the table `meta` holds: the version of the tables, and what the index was made from.
pub type Meta = HashMap<String, i64>;

fn meta(db: &mut Db) -> Result<Meta> {
    let rows = db.query("SELECT key, value FROM meta", &[])?;
    Ok(rows.into_iter().filter_map(|r| Some((r[0].text(), r[1].int()?))).collect())
}

/// Sets a value of `meta`.
///
/// # Errors
/// What the database says.
pub fn remember(db: &mut Db, key: &str, value: i64) -> Result<()> {
    let sql = "INSERT INTO meta (key, value) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET value = excluded.value";
    db.execute(sql, &[key.into(), Val::Int(value)]).map(|_| ())
}

/// Brings the tables to this program's version, and returns what `meta` holds.
///
/// # Errors
/// The tables are newer than this program, or the database fails.
pub fn migrate(db: &mut Db) -> Result<Meta> {
    // Nearly always the tables are there and current: one question is enough then.
    let known = MIGRATIONS.len();
    let version = |m: &Meta| m.get("version").map_or(0, |v| *v as usize);
    let found = meta(db);
    match found {
        Ok(m) if version(&m) == known => return Ok(m),
        Ok(m) if version(&m) > known => return Err(DbError::Newer { have: version(&m), known }),
        Err(e) if e.is_ruin() => return Err(e),
        _ => {}
    }
    db.transaction(|db| {
        if matches!(db, Db::Postgres(_)) {
            // Two hosts may open a new survey at the same time.
            db.batch("SELECT pg_advisory_xact_lock(7236834)")?;
        }
        db.batch("CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value BIGINT NOT NULL)")?;
        let have = version(&meta(db)?);
        if have > known {
            return Err(DbError::Newer { have, known });
        }
        for sql in &MIGRATIONS[have..] {
            let sql = db.words(sql);
            db.batch(&sql)?;
        }
        if matches!(db, Db::Postgres(_)) {
            // Packing the reports costs the server more than all else; the fast way where it is built in.
            db.batch(
                "DO $$ BEGIN EXECUTE 'ALTER TABLE cards ALTER COLUMN json SET COMPRESSION lz4'; EXCEPTION WHEN OTHERS THEN NULL; END $$",
            )?;
        }
        remember(db, "version", known as i64)?;
        meta(db)
    })
}

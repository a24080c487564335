//! Cards that several hosts share, on the server of the survey: each is leased to one host, which renews its lease for as long as it lives.

use super::Step;
use super::state::End;
use crate::survey::db::{Db, DbError, Val};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Tables of their own beside those of the survey.
const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS campaign_cards (campaign TEXT NOT NULL, card TEXT NOT NULL, number BIGINT NOT NULL, state TEXT NOT NULL,
        host TEXT, lease DOUBLE PRECISION, taken BIGINT NOT NULL DEFAULT 0, PRIMARY KEY (campaign, card));
    CREATE TABLE IF NOT EXISTS campaign_steps (campaign TEXT NOT NULL, card TEXT NOT NULL, step TEXT NOT NULL, host TEXT NOT NULL, code BIGINT NOT NULL,
        seconds DOUBLE PRECISION NOT NULL, result TEXT NOT NULL, twin TEXT, PRIMARY KEY (campaign, card, step));";

/// The clock of the server, in seconds: that of each host may be wrong.
const NOW: &str = "EXTRACT(EPOCH FROM clock_timestamp())::DOUBLE PRECISION";

/// A card that this host has.
#[derive(Clone, Copy, Debug)]
struct Lease {
    renewed: Instant,
    lost: bool,
}

/// Others hold what is left.
#[derive(Clone, Copy, Debug)]
pub struct Wait;

/// A step that some host did: how it ended, its result, and its twin.
pub type DoneStep = (Step, End, String, Option<String>);

pub struct Shared {
    db: Mutex<Db>,
    campaign: String,
    host: String,
    /// Seconds.
    lease: f64,
    held: Mutex<HashMap<String, Lease>>,
    /// Cards that this host could not finish, not to be taken again by it in this run.
    given_up: Mutex<Vec<String>>,
}

fn lock<T>(m: &Mutex<T>) -> MutexGuard<'_, T> {
    m.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    /// Enters the cards of a campaign that are not there yet. `host` is a name that no other host has.
    ///
    /// # Errors
    /// The server cannot be used.
    pub fn begin(url: &str, campaign: &str, host: &str, lease: f64, cards: &[&str]) -> Result<Shared, DbError> {
        let mut db = Db::postgres(url)?;
        db.transaction(|db| {
            // Two hosts may begin at the same time.
            db.batch("SELECT pg_advisory_xact_lock(7236835)")?;
            db.batch(TABLES)?;
            for (n, card) in cards.iter().enumerate() {
                db.execute(
                    "INSERT INTO campaign_cards (campaign, card, number, state) VALUES ($1, $2, $3, 'open') ON CONFLICT (campaign, card) DO NOTHING",
                    &[campaign.into(), (*card).into(), Val::Int(n as i64)],
                )?;
            }
            // What was given up in an earlier run, by this host or another, is tried once more, and what this host had is its own again.
            db.execute("UPDATE campaign_cards SET state = 'open', host = NULL, lease = NULL WHERE campaign = $1 AND state = 'failed'", &[campaign.into()])?;
            db.execute(
                "UPDATE campaign_cards SET state = 'open', host = NULL, lease = NULL WHERE campaign = $1 AND state = 'taken' AND host = $2",
                &[campaign.into(), host.into()],
            )?;
            Ok::<(), DbError>(())
        })?;
        Ok(Shared {
            db: Mutex::new(db),
            campaign: campaign.into(),
            host: host.into(),
            lease,
            held: Mutex::default(),
            given_up: Mutex::default(),
        })
    }

    pub fn host(&self) -> &str {
        &self.host
    }

    /// A card of these that nobody holds; none where nothing is left for this host.
    ///
    /// # Errors
    /// Others hold what is left, or the server does not answer: ask again.
    pub fn take(&self, here: &[&str]) -> Result<Option<String>, Wait> {
        let (mut held, given_up) = (lock(&self.held), lock(&self.given_up).clone());
        let mine = |c: &&&str| !held.contains_key(**c) && !given_up.iter().any(|g| g == **c);
        let list = here.iter().filter(mine).map(|c| format!("\n{c}\n")).collect::<String>();
        let mut db = lock(&self.db);
        let sql = format!(
            "UPDATE campaign_cards SET state = 'taken', host = $1, lease = {NOW} + $2, taken = taken + 1
             WHERE campaign = $3 AND card = (SELECT card FROM campaign_cards
                WHERE campaign = $4 AND (state = 'open' OR (state = 'taken' AND lease < {NOW})) AND strpos($5, E'\\n' || card || E'\\n') > 0
                ORDER BY number LIMIT 1 FOR UPDATE SKIP LOCKED)
             RETURNING card"
        );
        let of = || Val::from(self.campaign.as_str());
        let values = [self.host.as_str().into(), Val::Real(self.lease), of(), of(), list.as_str().into()];
        let rows = db.query(&sql, &values).map_err(|_| Wait)?;
        if let Some(row) = rows.first() {
            let card = row[0].text();
            held.insert(card.clone(), Lease { renewed: Instant::now(), lost: false });
            return Ok(Some(card));
        }
        let left = "SELECT COUNT(*) FROM campaign_cards WHERE campaign = $1 AND state IN ('open', 'taken') AND strpos($2, E'\\n' || card || E'\\n') > 0";
        let rows = db.query(left, &[of(), list.as_str().into()]).map_err(|_| Wait)?;
        if rows.first().and_then(|r| r[0].int()) == Some(0) { Ok(None) } else { Err(Wait) }
    }

    /// Renews the lease of a card when a quarter of it is over; false once another host has the card, or nobody could be asked for as long as it lasts.
    pub fn beat(&self, card: &str) -> bool {
        let mut held = lock(&self.held);
        let Some(mine) = held.get_mut(card) else { return false };
        let since = mine.renewed.elapsed().as_secs_f64();
        if mine.lost || since < self.lease / 4.0 {
            return !mine.lost;
        }
        let sql =
            format!("UPDATE campaign_cards SET lease = {NOW} + $1 WHERE campaign = $2 AND card = $3 AND host = $4 AND state = 'taken'");
        let asked = Instant::now();
        match lock(&self.db).execute(&sql, &[Val::Real(self.lease), self.campaign.as_str().into(), card.into(), self.host.as_str().into()])
        {
            Ok(1) => mine.renewed = asked,
            Ok(_) => mine.lost = true,
            Err(_) => mine.lost = since > self.lease,
        }
        !mine.lost
    }

    /// Ends the lease of a card: it is done, or it is open again for others, or it was given up.
    pub fn give(&self, card: &str, whole: bool, interrupted: bool) {
        lock(&self.held).remove(card);
        let state = match () {
            () if whole => "done",
            () if interrupted => "open",
            () => {
                lock(&self.given_up).push(card.into());
                "failed"
            }
        };
        let sql = "UPDATE campaign_cards SET state = $1, lease = NULL WHERE campaign = $2 AND card = $3 AND host = $4 AND state = 'taken'";
        // Without an answer the lease runs out by itself.
        let _ = lock(&self.db).execute(sql, &[state.into(), self.campaign.as_str().into(), card.into(), self.host.as_str().into()]);
    }

    /// Steps of a card that are done, on whichever host.
    ///
    /// # Errors
    /// What the server says.
    pub fn done(&self, card: &str) -> Result<Vec<DoneStep>, DbError> {
        let sql = "SELECT step, code, seconds, host, result, twin FROM campaign_steps WHERE campaign = $1 AND card = $2";
        let rows = lock(&self.db).query(sql, &[self.campaign.as_str().into(), card.into()])?;
        let one = |r: &Vec<Val>| {
            let step = Step::ALL.into_iter().find(|s| s.name() == r[0].text())?;
            let seconds = if let Val::Real(s) = r[2] { s } else { 0.0 };
            let end = End { code: r[1].int()? as u8, seconds, host: Some(r[3].text()) };
            Some((step, end, r[4].text(), (r[5] != Val::Null).then(|| r[5].text())))
        };
        Ok(rows.iter().filter_map(one).collect())
    }

    /// Writes down a step that is done; one that is there already stays.
    ///
    /// # Errors
    /// What the server says.
    pub fn keep(&self, card: &str, step: Step, end: &End, result: &str, twin: Option<&str>) -> Result<(), DbError> {
        let sql =
            "INSERT INTO campaign_steps (campaign, card, step, host, code, seconds, result, twin) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
                   ON CONFLICT (campaign, card, step) DO NOTHING";
        let host = end.host.as_deref().unwrap_or(&self.host);
        let values = [
            self.campaign.as_str().into(),
            card.into(),
            step.name().into(),
            host.into(),
            Val::Int(i64::from(end.code)),
            Val::Real(end.seconds),
            result.into(),
            twin.map(str::to_string).into(),
        ];
        lock(&self.db).execute(sql, &values).map(|_| ())
    }

    /// State and host of each card.
    ///
    /// # Errors
    /// What the server says.
    pub fn states(&self) -> Result<HashMap<String, (String, String)>, DbError> {
        let rows =
            lock(&self.db).query("SELECT card, state, host FROM campaign_cards WHERE campaign = $1", &[self.campaign.as_str().into()])?;
        Ok(rows.into_iter().map(|r| (r[0].text(), (r[1].text(), r[2].text()))).collect())
    }
}

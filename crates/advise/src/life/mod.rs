//! How long a card will last: what other cards lived through, the flash, what the host writes, and what the card makes of it.
//!
//! Nothing here is measured on the card's own wear unless a health block says it. All is counted in cycles of the survey: one
//! sequential write of the whole card. What the host writes otherwise costs more of them, by the write amplification relative to
//! sequential writes. Every input is an interval, and every assumption is listed.

pub mod survey;

use crate::chance;
use crate::finding::Quantity;
use crate::host::declared::Declared;
use crate::saved::Report;
use crate::units::{Bytes, between, rate, three};
use crate::workload::purpose::{Purpose, Writes};
use rand_pcg::rand_core::Rng;
use serde::Serialize;
use survey::{ANNOUNCED, DEAD, Event, Flash, spread};

/// Name and version of what is written as JSON.
pub const SCHEMA: &str = "nandscope-life/1";
/// Below this a finding is not built upon.
const SURE: f64 = 0.75;
/// Draws of the inputs.
const DRAWS: u64 = 20_000;
/// Why sequential writes have no amplification here.
const IN_ORDER: &str = "sequential writes are what the survey's cycles are made of";
/// Bytes of the small writes of a file system.
const SMALL: f64 = 4096.0;

/// What a host writes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Workload {
    pub name: String,
    /// Bytes a day, least and most.
    pub per_day: [f64; 2],
    pub source: String,
    pub writes: Writes,
}

impl From<&Purpose> for Workload {
    fn from(p: &Purpose) -> Workload {
        Workload { name: format!("{} ({})", p.name, p.title), per_day: p.per_day, source: p.per_day_source.into(), writes: p.writes }
    }
}

/// Bytes that the flash programs for each byte of the host, least and most, against sequential writes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Amplification {
    pub low: f64,
    pub high: f64,
    /// From the card's own counters; otherwise from times, or assumed.
    pub counted: bool,
    pub source: String,
}

/// What is known of the card itself.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Card {
    pub name: String,
    /// Bytes that are there.
    pub size: u64,
    pub flash: Flash,
    pub flash_source: String,
    /// Cycles its maker states, where its health block says so.
    pub rated: Option<u64>,
    /// Mean cycles each block has had.
    pub done: f64,
    pub done_source: String,
}

/// When something happens: a tenth of such cards before the first number, half before the second, nine tenths before the third.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct When {
    pub event: &'static str,
    /// Sequential writes of the whole card that are left.
    pub cycles: [f64; 3],
    /// Bytes of the host that can still be written.
    pub bytes: [f64; 3],
    /// Where the workload is known.
    pub years: Option<[f64; 3]>,
}

/// The estimate.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Life {
    pub schema: &'static str,
    /// Where the report says so: the card is a counterfeit, or loses what is written; in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
    pub card: Card,
    pub workload: Option<Workload>,
    pub amplification: Amplification,
    pub first_error: When,
    pub death: When,
    /// Everything that is not measured on this card.
    pub assumptions: Vec<String>,
    /// What the survey saw of announcements.
    pub announcement: String,
}

/// Of the cards of the survey: what so many had met by then, the others say nothing of.
const FEW: f64 = 0.9;

impl Card {
    /// From a report; `flash` and `erased` are what the user knows.
    pub fn of(r: &Report, flash: Option<Flash>, erased: Option<f64>) -> Card {
        let declared: Option<Declared> = serde_json::from_value(r.declared.clone()).ok();
        let block = declared.as_ref().and_then(|d| d.health_block.as_ref());
        let rated = block.and_then(|b| b.number("rated_cycles")).filter(|&n| n > 0);
        let marked = block.and_then(|b| b.get("marker")).is_some_and(|m| m.to_string().to_lowercase().contains("pslc"));
        let (flash, flash_source) = match (flash, marked) {
            (Some(f), _) => (f, "as given with --flash".to_string()),
            (None, true) => (Flash::Pslc, "its health block is marked pSLC".to_string()),
            (None, false) => (Flash::Tlc, "assumed: most cards sold since about 2015 have it; --flash names another kind".to_string()),
        };
        let mean = block.and_then(|b| b.mean_erases);
        let (done, done_source) = match (erased, mean) {
            (Some(n), _) => (n, "as given with --erased".to_string()),
            (None, Some(n)) => (n, "mean erase count of its health block".to_string()),
            (None, None) => (0.0, "assumed: new; --erased N names how often the whole card was written".to_string()),
        };
        let name = declared.and_then(|d| d.name).or_else(|| r.target.model.clone()).unwrap_or_else(|| r.target.path.clone());
        let size = r.real_bytes.unwrap_or(r.target.size).min(r.target.size);
        Card { name, size, flash, flash_source, rated, done, done_source }
    }

    /// Why nothing can be said of what is left to it: it was written more often than nine of ten cards of the survey before they died.
    pub fn beyond(&self) -> Option<String> {
        let death = spread(Event::Death, None).times(self.factor().0);
        (death.share(self.done) > FEW).then(|| {
            format!(
                "{} cycles ({}) are more than nine of ten cards of the survey lived, which is {} for such flash: it says nothing of what is left to this one",
                three(self.done),
                self.done_source,
                three(death.quantile(FEW))
            )
        })
    }

    /// Cycles of this card's flash, as a factor on those of the survey, with its reason.
    fn factor(&self) -> (f64, String) {
        if let Some(rated) = self.rated {
            let why = format!(
                "its health block states {rated} cycles; the survey's cards are taken for ones of {:.0}, so all its cycles count {} times",
                survey::usual_rating(),
                three(rated as f64 / survey::usual_rating())
            );
            return (rated as f64 / survey::usual_rating(), why);
        }
        let (name, [low, high]) = self.flash.figures();
        let factor = self.flash.factor();
        let scaled = if self.flash == Flash::Tlc {
            ", as the survey's cards are taken to have: its cycles are used as they are".to_string()
        } else {
            format!("; the survey's cards are taken for TLC, so all its cycles count {} times", three(factor))
        };
        (factor, format!("flash: {name} ({}), rated for {low:.0} to {high:.0} cycles by makers{scaled}", self.flash_source))
    }
}

impl Amplification {
    /// That of sequential writes, which neither the card nor anybody else told.
    pub fn is_in_order(&self) -> bool {
        self.source == IN_ORDER
    }

    /// What the card makes of such writes: its own counters where it has them, else what its times allow, else an assumption.
    pub fn of(r: &Report, writes: Writes) -> Amplification {
        let block = serde_json::from_value::<Declared>(r.declared.clone()).ok().and_then(|d| d.health_block);
        if let Some((host, flash)) = block.and_then(|b| Some((b.host_bytes?, b.flash_bytes?))).filter(|(h, f)| *h > 0 && f >= h) {
            let x = flash as f64 / host as f64;
            let source =
                format!("counted by the card: {} written by hosts, {} to the flash, over its whole life", Bytes(host), Bytes(flash));
            return Amplification { low: x, high: x, counted: true, source };
        }
        match writes {
            Writes::InOrder => Amplification { low: 1.0, high: 1.0, counted: false, source: IN_ORDER.into() },
            Writes::Appended => {
                let unit = finding(r, Quantity::WriteUnit);
                let high = unit.map_or(4.0, |u| (u / SMALL).max(1.0));
                let source = match unit {
                    Some(u) => format!("from the write unit that was measured: {} for a piece of 4 KiB at the worst", Bytes(u as u64)),
                    None => "assumed: pages of 16 KiB and pieces of 4 KiB, which the card may or may not collect".into(),
                };
                Amplification { low: 1.0, high, counted: false, source }
            }
            Writes::Scattered => Amplification::scattered(r),
        }
    }

    fn scattered(r: &Report) -> Amplification {
        let (open, block) = (finding(r, Quantity::OpenAusRandom), finding(r, Quantity::EraseBlock));
        let (merge, unit) = (finding(r, Quantity::CloseCostMs), finding(r, Quantity::WriteUnit));
        let (Some(open), Some(block)) = (open, block) else {
            let source = "assumed: from none to the 32 times that OLPC counted on a card that merges for every write of 128 KiB \
                          (wiki.laptop.org); a report of a probe with --write narrows it"
                .into();
            return Amplification { low: 1.0, high: 32.0, counted: false, source };
        };
        let padded = unit.map_or(1.0, |u| (u / SMALL).max(1.0));
        // A block that was written in random order is copied once more when it is merged.
        let inside = 2.0 * padded;
        if open >= 4.0 {
            let source = format!(
                "from what was measured: {open:.0} erase blocks are kept open for scattered writes, so a file system's few places are merged \
                 when they are full; at the worst each piece of 4 KiB costs a write unit and one copy"
            );
            return Amplification { low: 1.0, high: inside, counted: false, source };
        }
        // A merge cannot program more than an erase block, nor more than its time allows at the rate of sequential writes.
        let pace = sequential_rate(r);
        let by_time = merge.zip(pace).map(|(ms, pace)| ms / 1e3 * pace);
        let copied = by_time.map_or(block, |b| b.min(block));
        let how = match by_time {
            Some(_) => format!(
                "a merge takes {} ms, in which {} fit at the measured {}",
                three(merge.unwrap_or(0.0)),
                Bytes(copied as u64),
                rate(pace.unwrap_or(0.0))
            ),
            None => format!("a merge copies at most the erase block of {}", Bytes(block as u64)),
        };
        let source = format!(
            "from what was measured: only {open:.0} erase blocks are kept open for scattered writes; at the worst every piece of 4 KiB \
             incurs a merge: {how}"
        );
        Amplification { low: padded, high: inside.max(copied / SMALL), counted: false, source }
    }
}

fn finding(r: &Report, q: Quantity) -> Option<f64> {
    let f = r.findings.get(q).filter(|f| f.confidence >= SURE)?;
    f.number().or(f.at_least.map(|a| a.0))
}

/// Bytes a second of the largest writes in order that were timed.
fn sequential_rate(r: &Report) -> Option<f64> {
    use crate::device::Op;
    let run = r.runs.iter().find(|run| run.experiment == "write-unit")?;
    let longest = run.samples.iter().filter(|s| matches!(s.op, Op::Write(_))).map(|s| s.len).max()?;
    let times: Vec<f64> = run.samples.iter().filter(|s| matches!(s.op, Op::Write(_)) && s.len == longest).map(|s| s.took.secs()).collect();
    (times.len() >= 3).then(|| longest as f64 / crate::infer::stats::median(&times))
}

/// What the card erases as one by its counters, beside the erase block found by timing; none where that was not found.
pub fn beside(r: &Report, superblock: [f64; 2]) -> Option<String> {
    let found = finding(r, Quantity::EraseBlock)?;
    let [low, high] = superblock;
    let mib = |b: f64| three(b / crate::units::MIB as f64);
    let fits = match found {
        b if (low..=high).contains(&b) => "they agree".to_string(),
        b if b < low => format!("the card erases {} to {} of them as one", three(low / b), three(high / b)),
        _ => "the counters make it smaller: several are erased one by one, or the counters count something else".to_string(),
    };
    Some(format!("erase block: {} MiB by timing, {} MiB by the card's counters: {fits}", mib(found), between(&mib(low), &mib(high))))
}

/// The estimate for a card and a workload; without a workload it says cycles and bytes, and no years.
pub fn life(card: Card, workload: Option<Workload>, amplification: Amplification) -> Life {
    let (factor, of_flash) = card.factor();
    let mut assumptions = vec![
        "cycles: the Great microSD Card Survey (M. Cole, bahjeez.com, August and September 2025): 196 cards to their first error, 119 \
         to their death, each cycle a sequential write and a read of the whole card without a pause; a card that rests between \
         writes, or is hot, may live longer or shorter"
            .to_string(),
        "the interval is the wider of the spread over all cards and over single brands; of brands left out it held 82 % of the cards \
         for the first error and 87 % for 0.1 % bad, where 80 % are meant; death has no figures of brands and takes those of 0.1 % bad"
            .to_string(),
        of_flash,
        format!("cycles so far: {} ({})", three(card.done), card.done_source),
        format!("write amplification: {} ({})", between(&three(amplification.low), &three(amplification.high)), amplification.source),
        "wear is spread over the whole card, as on cards that level it; what is kept in one place wears no faster".to_string(),
    ];
    if let Some(w) = &workload {
        let [low, high] = w.per_day.map(|b| format!("{} GB", three(b / 1e9)));
        assumptions.push(format!("written a day: {} ({})", between(&low, &high), w.source));
    }
    let death = spread(Event::Death, None).times(factor);
    let when = |event: Event, name: &'static str| {
        let cycles = spread(event, None).times(factor);
        let mut rng = chance::stream(0x6c69_6665, event as u64);
        let mut unit = || ((rng.next_u64() >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
        let between = |[low, high]: [f64; 2], u: f64| (low.ln() + (high.ln() - low.ln()) * u).exp();
        let (mut left, mut bytes, mut years) = (vec![], vec![], vec![]);
        for i in 0..DRAWS {
            // Each part of the distribution of cycles as often as it is likely; the other inputs by chance.
            let at = |s: &survey::Spread| s.left(card.done, (i as f64 + 0.5) / DRAWS as f64);
            // A card is not dead before its first error: the rare ones that get far without one would live longer than all.
            let n = at(&cycles).min(at(&death));
            let b = n * card.size as f64 / between([amplification.low, amplification.high], unit());
            left.push(n);
            bytes.push(b);
            years.extend(workload.as_ref().map(|w| b / between(w.per_day, unit()) / 365.25));
        }
        let three_of = |mut x: Vec<f64>| {
            x.sort_by(f64::total_cmp);
            [0.1, 0.5, 0.9].map(|q| x[((x.len() - 1) as f64 * q).round() as usize])
        };
        let years = (!years.is_empty()).then(|| three_of(years));
        When { event: name, cycles: three_of(left), bytes: three_of(bytes), years }
    };
    let (first_error, death) = (when(Event::FirstError, "first error"), when(Event::Death, "death"));
    let announcement = format!(
        "Errors seldom announce death: of {DEAD} dead cards of the survey {} had 1 % of their sectors bad while they still worked, and {} \
         had half of them; the others died without. Keep copies whatever a check says.",
        ANNOUNCED[0].1, ANNOUNCED[3].1
    );
    Life { schema: SCHEMA, warning: None, card, workload, amplification, first_error, death, assumptions, announcement }
}

#[cfg(test)]
mod life_tests;

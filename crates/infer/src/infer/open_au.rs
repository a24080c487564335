//! How many AUs stay open: visits in turn, fast or slow, weighed over counts and rules of replacement.

mod closing;
mod control;
mod judge;
mod moves;
mod neighbours;
pub(super) mod tables;

pub use self::closing::*;
pub use self::control::*;
use self::moves::moves;
pub use self::neighbours::*;
use super::beliefs::Case;
use super::figure::{Figure, Series};
use super::pipeline::Analysis;
use super::slots::{MOST, Slots};
use crate::finding::{Finding, Quantity};
use crate::infer::open::{ByPolicy, Slow, Visits, by_policy, line, proved};
use crate::infer::replacement::{Trial, Visit, quiet_ends};
use crate::infer::stats::{bootstrap_median, median, quantile};
use crate::samples::{Cell, Run, Sample};
use crate::units::{Bytes, KIB, MIB, three};
use foldhash::{HashMap, HashMapExt};

/// The search in linear order, or in random order inside each AU.
pub struct OpenAu<const RANDOM: bool>;

pub(super) const ANALYSES: &[&dyn Analysis] = &[&OpenAu::<false>, &OpenAu::<true>];

/// Log odds at which a count is settled.
pub const SETTLED: f64 = 3.5;

impl<const RANDOM: bool> Analysis for OpenAu<RANDOM> {
    fn name(&self) -> &'static str {
        if RANDOM { "open-au-random" } else { "open-au-linear" }
    }

    /// What stayed open once, with places that no other erase block shares, stays true when a later run finds the table taken up.
    fn replaces(&self, later: (&Case, &[Finding]), earlier: (&Case, &[Finding])) -> bool {
        let q = if RANDOM { Quantity::OpenAusRandom } else { Quantity::OpenAusLinear };
        let filled = later.0.believed.filled().map(|f| f.0) != earlier.0.believed.filled().map(|f| f.0);
        // What AUs side by side have shown holds for those of before as well.
        let shown = || !RANDOM && neighbours(later.0).is_some();
        if filled || later.1.iter().any(|f| f.quantity == Quantity::WriteCache) || shown() {
            return true;
        }
        let says = |said: &[Finding]| said.iter().find(|f| f.quantity == q).and_then(|f| f.number().or(f.at_least.map(|b| b.0)));
        let wide = Slots::of(earlier.0).is_some_and(|s| later.0.believed.erase_block().is_none_or(|e| s.spacing >= e));
        let (settled, quiet) = settled(earlier.0, RANDOM);
        let before = says(earlier.1).unwrap_or(0.0).max(f64::from(settled)) - f64::from(quiet);
        !wide || says(later.1).unwrap_or(f64::from(rested(later.0, RANDOM))) >= before
    }

    fn infer(&self, run: &Case) -> Vec<Finding> {
        judge::judge(run, RANDOM)
    }

    fn figures(&self, run: &Case) -> Vec<Figure> {
        figures(run, RANDOM)
    }
}

/// The slot an access lies in.
pub fn slot_of(slots: &Slots, s: &Sample) -> u64 {
    s.at.saturating_sub(slots.first) / slots.spacing
}

/// The AU an access lies in; streams go on into the next one when theirs is full.
fn au_of(run: &Case, slots: &Slots, s: &Sample) -> u64 {
    s.at.saturating_sub(slots.first) / run.believed.erase_block().unwrap_or(slots.spacing).max(slots.span)
}

/// All writes of a run, in order.
pub fn writes(run: &Run) -> impl Iterator<Item = &Sample> {
    run.samples.iter().filter(|s| s.is_write())
}

/// How many AUs from before may be open when a trial begins: any, where others are taken; else those that were left out.
pub fn left_open(cell: &Cell, trial: u32) -> u32 {
    if cell.get("fresh") == 1 && trial == 0 { cell.get("n") as u32 } else { 2 }
}

/// Visits that cannot have closed anything: one AU in linear order, after it was opened.
pub fn fast(run: &Case) -> Vec<f64> {
    later(run, |c| c.get("n") == 1 && c.get("random") == 0)
}

/// Microseconds of the visits after the opening round, of the cells wanted.
fn later(run: &Case, wanted: impl Fn(&Cell) -> bool) -> Vec<f64> {
    let cells = run.cells.iter().filter(|c| wanted(c));
    cells.flat_map(|c| run.of(c.id)).filter(|s| s.role > 0).map(|s| s.took.micros()).collect()
}

/// µs above which a visit is slow; `None` where none is.
pub fn slow_line(run: &Case) -> Option<f64> {
    let fast = fast(run);
    if fast.len() < 3 {
        return None;
    }
    let all: Vec<f64> = writes(run).map(|s| s.took.micros()).collect();
    let close = run.believed.number(Quantity::CloseCostMs).map(|ms| ms * 1e3);
    // What each change of AU costs is no closing, where closings cost more.
    match moves(run) {
        Some(moves) => line(&moves, &all, close),
        None => line(&fast, &all, close),
    }
}

/// All trials in the order they were made, each with its cell and the streams it had in turn.
fn history(run: &Case, line: f64) -> Vec<(u32, Trial)> {
    let Some(slots) = Slots::of(run) else { return vec![] };
    let mut out: Vec<(u32, Trial)> = vec![];
    // Of each stream its place in the order of last visits.
    let mut recent: HashMap<u64, usize> = HashMap::new();
    let mut visited = 0;
    let mut aus: HashMap<u64, u64> = HashMap::new();
    let mut logs: HashMap<u64, Log> = HashMap::new();
    let whole = log_of_one(run, line);
    for t in run.samples.chunk_by(|a, b| a.same_trial(b)) {
        let (n, order) = run.cell(t[0].cell).map_or((0, 1), |c| (c.get("n") as usize, c.get("random")));
        // What is tried beside the counts, when they are known, says nothing of them.
        if [HELD, CLOSING, NEIGHBOURS].contains(&order) {
            continue;
        }
        let in_order = ![1, FILLING].contains(&order);
        let mut visit = |s: &Sample| {
            let (stream, au) = (slot_of(&slots, s), au_of(run, &slots, s));
            let goes_on = aus.insert(stream, au).is_some_and(|before| before != au);
            let end = Sample { at: s.at + s.len, ..*s };
            let slow = s.took.micros() > line;
            let fills = match order {
                _ if in_order => au_of(run, &slots, &end) != au,
                // What one AU alone shows is how often that is.
                FILLING if whole.is_some() => false,
                _ => logs.entry(au).or_default().fills(run, &slots, s, slow, whole),
            };
            Visit { stream, au, slow, opening: s.role == 0, fills, in_order, goes_on }
        };
        let visits: Vec<Visit> = t.iter().filter(|s| s.is_write()).map(&mut visit).collect();
        let mut set: Vec<u64> = vec![];
        for stream in visits.iter().map(|v| v.stream) {
            if set.len() == n {
                break;
            }
            if !set.contains(&stream) {
                set.push(stream);
            }
        }
        if set.len() < n {
            let mut others: Vec<(usize, u64)> = recent.iter().filter(|s| !set.contains(s.0)).map(|(s, at)| (*at, *s)).collect();
            others.sort_unstable_by(|a, b| b.cmp(a));
            set.extend(others.iter().take(n - set.len()).map(|o| o.1));
        }
        for v in &visits {
            visited += 1;
            recent.insert(v.stream, visited);
        }
        out.push((t[0].cell, Trial { set, visits }));
    }
    out
}

/// What writes in random order left in the log of an AU, bytes.
#[derive(Default)]
struct Log {
    taken: u64,
    /// Where in the AU the first of them went: a card may have copied what lies before.
    first: Option<u64>,
}

impl Log {
    /// Is this write the one that fills the log? The AU is merged then, however many are open. The write before may be it, where the AU
    /// was opened by another run.
    /// `whole`: bytes of a log where one AU alone has shown them, else an AU's.
    fn fills(&mut self, run: &Case, slots: &Slots, s: &Sample, slow: bool, whole: Option<u64>) -> bool {
        let au = run.believed.erase_block().filter(|au| *au > 4 * s.len);
        let Some(size) = whole.or(au) else { return false };
        let place = s.at.saturating_sub(slots.first) % slots.spacing % size;
        self.taken += s.len;
        let copied = *self.first.get_or_insert(place);
        let full = |used: u64| used % size < s.len || used % size + 2 * s.len > size;
        // Where it is known by its merges, a write sooner or later: the first may go elsewhere than the second.
        let fills = match whole {
            Some(log) => self.taken + s.len >= log && (self.taken + s.len) % log <= 2 * s.len,
            None => full(self.taken) || full(self.taken + copied),
        };
        if slow {
            // Merged, or closed before and opened anew.
            *self = if fills { Log::default() } else { Log { taken: s.len, first: Some(place) } };
        }
        fills
    }
}

/// Bytes that the log of an AU takes, where one AU alone in random order was merged after so many again and again, give or take a write.
fn log_of_one(run: &Case, line: f64) -> Option<u64> {
    let cell = run.cells.iter().find(|c| c.get("random") == FILLING)?;
    let visits: Vec<&Sample> = run.of(cell.id).filter(|s| s.role > 0).collect();
    let slow = |i: usize| visits[i].took.micros() > line;
    // Two writes in a row pay for a merge, often.
    let merged: Vec<usize> = (1..visits.len()).filter(|&i| slow(i) && !slow(i - 1)).collect();
    let apart: Vec<f64> = merged.windows(2).map(|w| (w[1] - w[0]) as f64).collect();
    let usual = median(&apart).round();
    let regular = apart.iter().filter(|a| (*a - usual).abs() <= 1.0).count();
    let enough = apart.len() >= REGULAR && usual >= 4.0 && 10 * regular >= 9 * apart.len();
    enough.then(|| usual as u64 * visits[0].len)
}

/// Merges of one AU alone after as many writes each, that are no accident.
const REGULAR: usize = 4;

/// The trials of one kind, opening rounds left out.
fn trials(run: &Case, history: &[(u32, Trial)], random: bool) -> Vec<Visits> {
    let mut out: Vec<Visits> = vec![];
    let lasts = Slots::of(run).filter(|_| !random).map_or(u32::MAX, |s| (s.span / s.chunk) as u32);
    let mut made: HashMap<u32, u32> = HashMap::new();
    for (cell, t) in history {
        let Some(c) = run.cell(*cell).filter(|c| c.get("random") == random as i64) else { continue };
        let n = c.get("n") as u32;
        let trial = made.entry(*cell).or_default();
        *trial += 1;
        let later: Vec<&Visit> = t.visits.iter().filter(|v| !v.opening).collect();
        // Where a stream goes on in another AU, that one is opened: it says nothing of those before.
        let round = |r: &[&Visit]| {
            let seen = r.iter().filter(|v| v.tells());
            (seen.clone().count() as u32, seen.filter(|v| v.slow).count() as u32)
        };
        let mut rounds: Vec<(u32, u32)> = later.chunks(n.max(1) as usize).map(round).collect();
        // Once settled, how it came there does not matter.
        let clean = rounds.iter().rev().take_while(|r| r.1 == 0).count();
        let mut before = (0, 0);
        if n > 1 && rounds[rounds.len() - clean..].iter().filter(|r| r.0 == n).count() >= Visits::CLEAN_ROUNDS {
            before = rounds.drain(..rounds.len() - clean).fold((0, 0), |a, r| (a.0 + r.0, a.1 + r.1));
        }
        if !rounds.is_empty() {
            out.push(Visits { n, rounds, left: left_open(c, *trial - 1), lasts, before });
        }
    }
    out
}

/// The last three trials of each count: what was left open from before no longer matters.
fn last_trials(run: &Case, history: &[(u32, Trial)], random: bool) -> Vec<Visits> {
    let all = trials(run, history, random);
    let later = |i: usize| all[i + 1..].iter().filter(|v| v.n == all[i].n).count();
    (0..all.len()).filter(|&i| later(i) < 3 || all[i].settled()).map(|i| all[i].clone()).collect()
}

/// µs of the visits where none can have closed anything: one AU in linear order, at first and once more.
fn references(run: &Case, line: f64) -> Vec<f64> {
    let mut f = fast(run);
    if became_slow(run, line).is_none() {
        f.extend(later(run, |c| c.get("random") == CONTROL));
    }
    f
}

/// Slow ones of these, of how many.
fn stalls(run: &Case, line: f64) -> (u32, u32) {
    let f = references(run, line);
    (f.iter().filter(|&&t| t > line).count() as u32, f.len() as u32)
}

/// What the visits so far say of the limit.
pub struct Belief {
    pub by: ByPolicy,
    /// The largest count whose rounds came to rest.
    proved: u32,
    /// The last trials of each count.
    last: Vec<Visits>,
    /// So many came to rest once, and nearly all were slow when they were last opened anew.
    taken_back: bool,
}

impl Belief {
    /// `None` when nothing slow was seen at all.
    pub fn of(run: &Case, random: bool) -> Option<Belief> {
        let line = slow_line(run)?;
        let most = most(run) as u32;
        let history = history(run, line);
        let last = last_trials(run, &history, random);
        let proved = proved(&last);
        let taken_back = taken_back(run, &history, random, proved);
        let alone = filled_alone(run, &history).filter(|_| random);
        let often = alone.map_or_else(|| Slow::Here(stalls(run, line)), Slow::Always);
        let history: Vec<Trial> = history.into_iter().filter(|h| !filling(run, h.0)).map(|h| h.1).collect();
        Some(Belief { by: by_policy(&last, &history, often, most, random), proved, last, taken_back })
    }

    /// Does a known policy of replacement say when visits are slow?
    pub fn ruled(&self) -> bool {
        self.by.rules > 0.95
    }

    /// Does one that foretells each of them?
    pub fn foretold(&self) -> bool {
        self.by.foretells > 0.95
    }

    /// Log odds that a count fits.
    pub fn odds(&self, n: i64) -> f64 {
        if self.proved as i64 >= n {
            return 2.0 * SETTLED;
        }
        let fits: f64 = self.by.p.iter().filter(|p| p.0 as i64 >= n).map(|p| p.1).sum();
        (fits.max(1e-9) / (1.0 - fits).max(1e-9)).ln()
    }
}

/// The most AUs that any count asks for.
fn most(run: &Case) -> i64 {
    run.cells.iter().filter(|c| ![HELD, NEIGHBOURS].contains(&c.get("random"))).map(|c| c.get("n")).max().unwrap_or(1)
}

/// The most AUs in this order whose rounds came to rest: so many stayed open, whatever came later. Those at either end that were never slow may
/// have needed no room, and do not count. 0 where nothing slow was seen.
pub fn rested(run: &Case, random: bool) -> u32 {
    let (settled, quiet) = settled(run, random);
    settled.saturating_sub(quiet)
}

/// The most AUs in this order whose rounds came to rest, and how many may have needed no room.
fn settled(run: &Case, random: bool) -> (u32, u32) {
    let Some(line) = slow_line(run) else { return (0, 0) };
    let history = history(run, line);
    (proved(&last_trials(run, &history, random)), quiet(run, &history, random))
}

/// AUs at either end that may need no room in the table, of those that were tried in this order.
fn quiet(run: &Case, history: &[(u32, Trial)], random: bool) -> u32 {
    let ours = |cell: u32| run.cell(cell).is_some_and(|c| c.get("random") == random as i64);
    let of_this: Vec<Trial> = history.iter().filter(|h| ours(h.0)).map(|h| h.1.clone()).collect();
    let ends = quiet_ends(&of_this);
    let mut streams: Vec<u64> = of_this.iter().flat_map(|t| &t.set).copied().filter(|s| ends.iter().any(|e| e.contains(s))).collect();
    streams.sort_unstable();
    streams.dedup();
    streams.len() as u32
}

/// Slow visits of how many to one AU alone in random order, long enough to fill its log again and again: that is merged however few AUs are
/// open. Two visits in a row pay for a merge, often, so that they count half. `None` where it was not tried, or most were slow: then no AU is
/// kept open.
fn filled_alone(run: &Case, history: &[(u32, Trial)]) -> Option<(u32, u32)> {
    let alone = history.iter().filter(|(cell, _)| filling(run, *cell)).flat_map(|(_, t)| t.visits.iter().filter(|v| v.tells()));
    let (slow, all) = alone.fold((0, 0), |a: (u32, u32), v| (a.0 + u32::from(v.slow), a.1 + 1));
    (all >= FEWEST as u32 && 2 * slow < all).then_some((slow.div_ceil(2), all / 2))
}

fn filling(run: &Case, cell: u32) -> bool {
    run.cell(cell).is_some_and(|c| c.get("random") == FILLING)
}

/// Were one AU alone, or AUs that all stay open, slow now and then in random order, after the round in which they were opened? Their logs
/// fill, maybe.
pub fn logs_fill(run: &Case) -> bool {
    let Some(line) = slow_line(run) else { return false };
    let history = history(run, line);
    let most = proved(&last_trials(run, &history, true)).max(1);
    let fits = |cell: u32| run.cell(cell).is_some_and(|c| c.get("random") == 1 && c.get("n") as u32 <= most);
    let later = history.iter().filter(|(cell, _)| fits(*cell)).flat_map(|(_, t)| t.visits.iter().skip(2 * t.set.len()));
    let (slow, all) = later.filter(|v| v.tells()).fold((0, 0), |a, v| (a.0 + u32::from(v.slow), a.1 + 1));
    slow > 0 && 2 * slow < all
}

/// In the last trial of no more than `proved` AUs that opened them all, were most visits slow? Even a table that throws out at random
/// keeps two thirds of those it just took.
fn taken_back(run: &Case, history: &[(u32, Trial)], random: bool, proved: u32) -> bool {
    let ours = |cell: u32| run.cell(cell).is_some_and(|c| c.get("random") == random as i64 && c.get("n") as u32 <= proved);
    let opened = |t: &Trial| t.visits.iter().filter(|v| v.opening).count() >= t.set.len().max(2);
    let last = history.iter().rev().find(|(cell, t)| ours(*cell) && opened(t));
    last.is_some_and(|(_, t)| {
        let later = t.visits.iter().filter(|v| v.tells());
        let (all, slow) = later.fold((0, 0), |a, v| (a.0 + 1, a.1 + v.slow as usize));
        all >= 5 && slow * 5 >= all * 4
    })
}

fn figures(run: &Case, random: bool) -> Vec<Figure> {
    let mut points: Vec<(f64, f64, f64, f64)> = vec![];
    let mut counts: Vec<i64> = run.cells.iter().filter(|c| c.get("random") == random as i64).map(|c| c.get("n")).collect();
    counts.sort_unstable();
    counts.dedup();
    for n in counts {
        let t = later(run, |c| c.get("n") == n && c.get("random") == random as i64);
        if !t.is_empty() {
            let mean = t.iter().sum::<f64>() / t.len() as f64;
            let spread = (t.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (t.len() as f64 - 1.0).max(1.0)).sqrt();
            let half = 2.0 * spread / (t.len() as f64).sqrt();
            points.push((n as f64, mean / 1e3, (mean - half).max(0.0) / 1e3, (mean + half) / 1e3));
        }
    }
    vec![Figure {
        title: format!("time of a write, N erase blocks interleaved, {} order", if random { "random" } else { "sequential" }),
        x: "erase blocks interleaved (N)".into(),
        y: "ms".into(),
        log_x: true,
        log_y: true,
        series: Series::with_bounds("mean", &points),
    }]
}

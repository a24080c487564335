//! The search for the structure, block by block, and what it leaves to believe.

use super::costs::{self, Fitted, P, no_structure, residual};
use super::data::{Data, Row, TwinError};
use super::levelling;
use super::replay::{self, READS, groups, needs_costs};
use super::result::{Twin, build};
use super::structures::{self, Block, kinds, variants};
use super::told::features;
use nandscope_sim::Model;
use nandscope_sim::model::{Evict, FtlKind};
use nandscope_stats::correlation_with_next;
use std::collections::{HashMap, HashSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// How a fit is made.
pub struct Asked<'a> {
    /// Of the candidates that are drawn.
    pub seed: u64,
    /// Longest time. A search that is done before gives the same for the same seed; one that is cut keeps the best so far.
    pub time: Duration,
    /// Set from outside to end the search with the best so far.
    pub stop: &'a AtomicBool,
    /// Told as it goes on: what is searched, and the share of the time that is gone.
    pub tell: &'a mut dyn FnMut(&str, f64),
}

/// A structure with its costs.
#[derive(Clone, Debug)]
pub struct Scored {
    pub model: Model,
    pub fitted: Fitted,
    /// Parameters it has to pay for.
    pub parameters: usize,
}

impl Scored {
    /// Bayes' information criterion, halved, with so many accesses that say something of their own for each access made.
    pub fn evidence(&self, n: usize, share: f64) -> f64 {
        evidence(self.fitted.likelihood, self.parameters, n, share)
    }
}

pub fn evidence(likelihood: f64, parameters: usize, n: usize, share: f64) -> f64 {
    share * likelihood - 0.5 * parameters as f64 * (share * n as f64).max(2.0).ln()
}

/// Structures that go from one block of the search to the next.
const HANDED: usize = 3;

/// Structures that are compared over all accesses in the end: what comes behind has no weight.
const RIVALS: usize = 24;

/// Share of the time for what reads say alone, where there are writes too.
const READING: f64 = 0.3;

/// A structure is better by this much evidence, or it is not: less is rounding.
const BETTER: f64 = 0.05;

struct Search<'a> {
    data: &'a Data,
    asked: Asked<'a>,
    begun: Instant,
    /// When the part of the search that is under way ends.
    until: Duration,
    /// What was scored over all accesses, by its text.
    table: HashMap<String, Scored>,
    costs: [f64; P],
    share: f64,
    cut: bool,
    /// Structures scored so far.
    tried: usize,
}

/// Fits a twin.
///
/// # Errors
/// [`TwinError::NoCard`] where no structure known here explains the times better than a mean for each condition, or than their sizes alone.
pub fn fit<'a>(data: &'a Data, asked: Asked<'a>) -> Result<Twin, TwinError> {
    let impossible = || TwinError::Unusable(format!("no card model can have {} bytes in sectors of {}", data.size, data.sector));
    let plain = structures::plain(data).ok_or_else(impossible)?;
    // Reads are most of the accesses, and say least of what a workload takes.
    let until = asked.time.mul_f64(if data.writes() { READING } else { 1.0 });
    let mut s =
        Search { data, asked, until, begun: Instant::now(), table: HashMap::new(), costs: [0.0; P], share: 1.0, cut: false, tried: 1 };
    let rows = &data.rows;
    let sizes_only = s.score(&plain, rows);
    s.keep(&sizes_only);
    let reads = replay::thinned(&replay::reads(rows), 3 * READS);
    let named = structures::named(data, &plain);
    let mut starts = vec![named.clone()];
    if reads.len() >= 50 {
        let found = s.climb("reads", vec![plain.clone(), named.clone()], &reads);
        s.share = independent(&reads, &found[0], s.asked.seed);
        // What reads do not show of an erase block writes may: as named, with the best of what reads show, and by itself.
        starts.extend([structures::with_blocks_of(&found[0].model, &named)]);
        starts.extend(found.into_iter().take(HANDED).map(|f| f.model));
    }
    s.until = s.asked.time;
    let few = replay::thinned(rows, READS);
    // Whether work begins before the data are in shows whatever the mapping, and changes what every other setting explains.
    if data.flushes && data.writes() {
        let tried: Vec<Model> = starts.iter().take(HANDED).flat_map(|m| structures::waits(&structures::with_unit(m, &named))).collect();
        s.tried += tried.len();
        let mut all = s.all(&tried, &few);
        nandscope_stats::descending(&mut all, |f| f.evidence(few.len(), s.share));
        if let Some(best) = all.first() {
            s.costs = best.fitted.costs;
            let (overlap, behind) = (best.model.card.overlap, best.model.card.behind);
            starts.iter_mut().filter(|_| behind > 0).for_each(|m| (m.card.overlap, m.card.behind) = (overlap, behind));
        }
    }
    // What writes do: each kind of mapping over the best few of what reads say.
    let mut first: Vec<Model> = starts.clone();
    if data.writes() {
        for m in &starts {
            first.extend(kinds(data, &structures::with_unit(m, &named), s.asked.seed));
        }
    }
    let all = s.kinds("mapping", first, &few);
    // The best of them over all accesses.
    let leaders: Vec<Model> = all.iter().take(if s.cut { 4 } else { RIVALS }).map(|f| f.model.clone()).collect();
    s.costs = all.first().ok_or_else(impossible)?.fitted.costs;
    // These few are compared whatever time is left.
    s.until = Duration::MAX;
    let mut all = s.all(&leaders, rows);
    nandscope_stats::descending(&mut all, |a| a.evidence(rows.len(), s.share));
    // Whether it is a card at all is judged by what the others left: steps that are chosen with all accesses would explain some of what is chance in them.
    let judged = all.first().cloned().ok_or_else(impossible)?;
    // What was left out before may say more of the last steps.
    s.until = s.asked.time;
    let (mut met, mut before) = (leaders.iter().map(Model::to_toml).collect(), f64::NEG_INFINITY);
    while all.first().is_some_and(|a| a.evidence(rows.len(), s.share) > before + BETTER) && !s.over() {
        before = all[0].evidence(rows.len(), s.share);
        for block in [Block::Mapping, Block::Writes] {
            s.costs = all[0].fitted.costs;
            s.more(variants(data, &all[0].model.clone(), block), rows, &mut met, &mut all);
        }
    }
    s.until = Duration::MAX;
    if let Some(best) = all.first() {
        s.costs = best.fitted.costs;
        let levelled = levelling::proposed(rows, best, data.grain(), s.asked.seed);
        all.extend(s.all(&levelled, rows));
        nandscope_stats::descending(&mut all, |a| a.evidence(rows.len(), s.share));
    }
    all.iter().for_each(|f| s.keep(f));
    let best = all.into_iter().next().ok_or_else(impossible)?;
    s.share = independent(rows, &best, s.asked.seed);
    let none = no_structure(rows, data.grain());
    // Sizes alone, as lines and as a median for each.
    let each = |x: &Scored| costs::densities(rows, &groups(&priced(&x.model, &x.fitted.costs), rows, s.asked.seed), &x.fitted);
    let (own, (sizes, many)) = (each(&judged), costs::by_size(rows, data.grain()));
    let lines = steadily(&own, judged.parameters, &each(&sizes_only), sizes_only.parameters, s.share);
    let z = lines.min(steadily(&own, judged.parameters, &sizes, many, s.share));
    Ok(build(data, s.table.into_values().collect(), s.tried, z, none, s.share, s.cut, s.begun.elapsed(), s.asked.seed))
}

/// The share of accesses that say something of their own: the residuals of neighbours are alike (drift, temperature), and the n of a
/// series with correlation r of neighbours counts as n (1 - r) / (1 + r) (Bartlett 1946).
fn independent(rows: &[Row], best: &Scored, seed: u64) -> f64 {
    let g = groups(&priced(&best.model, &best.fitted.costs), rows, seed);
    let f = &best.fitted;
    let z = |(i, r): (usize, &Row)| residual(r, i, &g, f).map(|(p, e)| (e / f.width(r.op == nandscope_sim::Op::Read, p)).clamp(-3.0, 3.0));
    let z: Vec<f64> = rows.iter().enumerate().filter_map(z).collect();
    let r = correlation_with_next(&z);
    if r.is_finite() { ((1.0 - r) / (1.0 + r)).clamp(0.02, 1.0) } else { 1.0 }
}

/// How many standard errors a structure is better than a rival by: the ratio of their likelihoods against its own scatter, which holds
/// where neither is true (Vuong 1989). `share` of the accesses says something of its own.
fn steadily(of: &[f64], parameters: usize, rival: &[f64], theirs: usize, share: f64) -> f64 {
    let d: Vec<f64> = of.iter().zip(rival).map(|(a, b)| a - b).collect();
    let (sum, n) = (d.iter().sum::<f64>(), d.len() as f64);
    let scatter = d.iter().map(|d| (d - sum / n).powi(2)).sum::<f64>().sqrt();
    // What more settings fit by chance is no merit, and that fewer do is no sign of a card.
    let paid = parameters.saturating_sub(theirs) as f64;
    if scatter > 0.0 { (sum - paid) / scatter * share.sqrt() } else { 0.0 }
}

/// A structure with these costs, in ns an event.
pub fn priced(m: &Model, costs: &[f64; P]) -> Model {
    use nandscope_sim::Event::*;
    let mut m = m.clone();
    let of = |e| costs[costs::place(e)].max(0.0);
    let ns = |e| of(e).round() as u64;
    let rate = |e| if of(e) > 0.0 { ((1e9 / of(e)).round() as u64).clamp(1000, 100_000_000_000) } else { 0 };
    (m.host.command, m.host.split, m.card.accept) = (ns(Command), ns(Split), ns(After));
    (m.host.rate, m.nand.load_rate, m.nand.rest_rate) = (rate(Wire), rate(Load), rate(Rest));
    (m.nand.sense, m.nand.next_page, m.nand.lookup, m.nand.unwritten_read) = (ns(Sense), ns(NextPage), ns(Lookup), ns(Flat));
    (m.nand.program, m.nand.commit, m.nand.copy, m.nand.erase) = (ns(Program), ns(Commit), ns(Copy), ns(Erase));
    (m.nand.change, m.card.stream_cost, m.card.stream_rate) = (ns(Change), ns(Stream), rate(StreamByte));
    (m.ftl.block.close, m.ftl.block.close_random, m.ftl.log.close) = (ns(Close), ns(CloseRandom), ns(Close));
    if m.ftl.page.map_cache > 0 {
        (m.ftl.page.map_miss, m.ftl.page.map_save) = (ns(MapMiss).max(1), ns(MapSave));
    }
    (m.slc.program, m.card.discard, m.card.flush) = (ns(SlcProgram), ns(Discard), ns(Flush));
    m
}

impl Search<'_> {
    fn over(&self) -> bool {
        self.asked.stop.load(Ordering::Relaxed) || self.begun.elapsed() > self.until
    }

    fn score(&self, m: &Model, rows: &[Row]) -> Scored {
        score(m, rows, &self.costs, self.data.grain(), self.asked.seed)
    }

    fn keep(&mut self, s: &Scored) {
        self.table.insert(s.model.to_toml(), s.clone());
    }

    /// Scores all of them on all cores, in their order; those that time did not allow are missing.
    fn all(&self, models: &[Model], rows: &[Row]) -> Vec<Scored> {
        let next = AtomicUsize::new(0);
        let done: Mutex<Vec<(usize, Scored)>> = Mutex::new(vec![]);
        let (costs, grain, seed, stop, begun, time) =
            (self.costs, self.data.grain(), self.asked.seed, self.asked.stop, self.begun, self.until);
        let work = || {
            loop {
                let i = next.fetch_add(1, Ordering::Relaxed);
                if i >= models.len() || i > 0 && (stop.load(Ordering::Relaxed) || begun.elapsed() > time) {
                    return;
                }
                let s = score(&models[i], rows, &costs, grain, seed);
                if let Ok(mut all) = done.lock() {
                    all.push((i, s));
                }
            }
        };
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(16);
        std::thread::scope(|scope| {
            (1..threads).for_each(|_| {
                scope.spawn(work);
            });
            work();
        });
        let mut all = done.into_inner().unwrap_or_default();
        nandscope_stats::sort_by_key(&mut all, |x| x.0);
        all.into_iter().map(|x| x.1).collect()
    }

    /// Scores these, those met before left out, and sorts all by evidence, the best first.
    fn more(&mut self, models: Vec<Model>, rows: &[Row], met: &mut HashSet<String>, found: &mut Vec<Scored>) {
        let fresh: Vec<Model> = models.into_iter().filter(|m| met.insert(m.to_toml())).collect();
        self.tried += fresh.len();
        found.extend(self.all(&fresh, rows));
        nandscope_stats::descending(found, |f| f.evidence(rows.len(), self.share));
    }

    /// Tells how far it is, and whether the time is over.
    fn told(&mut self, what: &str) -> bool {
        let gone = (self.begun.elapsed().as_secs_f64() / self.asked.time.as_secs_f64().max(1e-9)).min(1.0);
        (self.asked.tell)(what, gone);
        self.cut |= self.over();
        self.over()
    }

    /// From the best of `first` to the best of its neighbours by what reads show, until none is better. All that were met, the best first.
    fn climb(&mut self, what: &str, first: Vec<Model>, rows: &[Row]) -> Vec<Scored> {
        let (mut met, mut found) = (HashSet::new(), vec![]);
        self.more(first, rows, &mut met, &mut found);
        loop {
            let before = found[0].evidence(rows.len(), self.share);
            self.costs = found[0].fitted.costs;
            // The runner-up may lead further than the best.
            let leaders: Vec<Model> = found.iter().take(HANDED).map(|f| f.model.clone()).collect();
            let next = leaders.iter().flat_map(|m| variants(self.data, m, Block::Reads)).collect();
            self.more(next, rows, &mut met, &mut found);
            if self.told(what) || found[0].evidence(rows.len(), self.share) <= before + BETTER {
                return found;
            }
        }
    }

    /// The same for each kind of mapping by itself, block by block: between kinds no single step leads on, and one that is far from its best may yet
    /// be the right one. Each round goes on with the better half of the kinds.
    fn kinds(&mut self, what: &str, first: Vec<Model>, rows: &[Row]) -> Vec<Scored> {
        let (mut met, mut found) = (HashSet::new(), vec![]);
        self.more(first, rows, &mut met, &mut found);
        let mut apart: Vec<Kind> = vec![];
        let mut settled: Vec<Kind> = vec![];
        found.iter().map(|f| kind_of(&f.model)).for_each(|k| {
            if !apart.contains(&k) {
                apart.push(k);
            }
        });
        while apart.iter().any(|k| !settled.contains(k)) {
            for k in apart.clone() {
                if settled.contains(&k) {
                    continue;
                }
                let best = |found: &[Scored]| found.iter().position(|f| kind_of(&f.model) == k).unwrap_or(0);
                let before = found[best(&found)].evidence(rows.len(), self.share);
                for block in [Block::Mapping, Block::Writes, Block::Reads] {
                    let leader = &found[best(&found)];
                    self.costs = leader.fitted.costs;
                    let next = variants(self.data, &leader.model, block);
                    self.more(next, rows, &mut met, &mut found);
                    if self.told(what) {
                        return found;
                    }
                }
                if found[best(&found)].evidence(rows.len(), self.share) <= before + BETTER {
                    settled.push(k);
                }
            }
            nandscope_stats::sort_by_key(&mut apart, |k| found.iter().position(|f| kind_of(&f.model) == *k));
            apart.truncate(apart.len().div_ceil(2).max(LAST));
        }
        found
    }
}

/// Kinds that stay to the end: a table that draws lots, another one, and one that may be right.
const LAST: usize = 3;

/// What tells kinds of mapping apart: a table that draws lots explains anything at a price, and hides where one that does not leads.
type Kind = (FtlKind, bool);

fn kind_of(m: &Model) -> Kind {
    (m.ftl.kind, m.ftl.kind == FtlKind::BlockMap && m.ftl.block.evict == Evict::Random)
}

/// Fits the costs of a structure. Where its events depend on them, those of the structure before it stand in at first.
fn score(m: &Model, rows: &[Row], costs: &[f64; P], grain: f64, seed: u64) -> Scored {
    let mut fitted = costs::fit(rows, &groups(&if needs_costs(m) { priced(m, costs) } else { m.clone() }, rows, seed), grain);
    if needs_costs(m) {
        // What is left undone hides costs that are not known yet.
        for _ in 0..if m.card.behind > 0 { 4 } else { 2 } {
            fitted = costs::fit(rows, &groups(&priced(m, &fitted.costs), rows, seed), grain);
        }
    }
    let parameters = fitted.parameters + features(m);
    Scored { model: m.clone(), fitted, parameters }
}

//! The way from runs to findings: an analysis for each experiment, and one finding a quantity in the end.

use super::beliefs::{Beliefs, Case, Fastest, SURE, fastest, write_ns_per_kib};
use super::combine::combine;
use super::confidence::{Maps, Source};
use super::figure::Figure;
use super::open_au::Neighbours;
use super::slots::Slots;
use super::{all, open_au, read_boundary};
use crate::finding::{CONTRADICTED, Finding, Findings, Quantity};
use crate::samples::{Ended, FORM, Run};
use crate::units::{Bytes, KIB};
use std::collections::BTreeMap;

/// Which fit saw the scores of an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fit {
    /// That of default probes.
    Probe,
    /// That of today's cards.
    Today,
}

/// What is concluded from the runs of one experiment. It sees samples, never a device.
pub trait Analysis: Sync {
    /// The experiment whose runs it reads.
    fn name(&self) -> &'static str;

    /// What the samples say, with what was believed. Pure.
    fn infer(&self, run: &Case) -> Vec<Finding>;

    /// Does it say the same of any run, whichever of these is believed? What it never asks for may differ.
    fn alike(&self, a: &Beliefs, b: &Beliefs) -> bool {
        a == b
    }

    /// What people would rather look at. Pure.
    fn figures(&self, _run: &Case) -> Vec<Figure> {
        vec![]
    }

    /// The cards of which fit its scores were seen on.
    fn fit(&self) -> Fit {
        Fit::Probe
    }

    /// Does it look at what lies behind a full write cache? Then no cache hid it.
    fn past_cache(&self) -> bool {
        false
    }

    /// Does a complete later run say more than an earlier one, as it knew more? Not where what was written in between spoilt it.
    fn replaces(&self, _later: (&Case, &[Finding]), _earlier: (&Case, &[Finding])) -> bool {
        true
    }
}

/// The analysis of an experiment.
pub fn by_name(name: &str) -> Option<&'static dyn Analysis> {
    all().find(|a| a.name() == name)
}

/// What one run says by itself; nothing where its experiment is not known.
pub fn of_run(run: &Run) -> Vec<Finding> {
    let believed = frozen(run).unwrap_or_default();
    by_name(&run.experiment).map_or(vec![], |a| a.infer(&Case { run, believed: &believed }))
}

/// What a run looks like; nothing where its experiment is not known.
pub fn figures(run: &Run) -> Vec<Figure> {
    let believed = frozen(run).unwrap_or_default();
    by_name(&run.experiment).map_or(vec![], |a| a.figures(&Case { run, believed: &believed }))
}

/// What was believed when an earlier version made this run.
fn frozen(run: &Run) -> Option<Beliefs> {
    (run.form < FORM).then(|| Beliefs::frozen(&run.setting))
}

/// Findings of all runs, combined.
pub fn infer(runs: &[Run]) -> Findings {
    Inference::default().of(runs)
}

/// What the experiments of these runs say, each by itself: what `infer` combines.
pub fn apart(runs: &[Run]) -> Vec<Finding> {
    let mut all = Inference::default();
    all.of(runs);
    all.apart(runs, runs.len())
}

/// Did reads of this run take the same time across all boundaries, although enough of them were made? `None` for a run that read across
/// none.
pub fn reads_flat(run: &Run) -> Option<bool> {
    (run.experiment == "read-boundary").then(|| read_boundary::flat(run)).flatten()
}

/// Inference over runs that are added or go on: what a run said is kept while it stays as it is, and while what was believed of the card
/// before it does.
pub struct Inference {
    analyses: Vec<&'static dyn Analysis>,
    told: Vec<Told>,
}

impl Default for Inference {
    fn default() -> Inference {
        Inference::with(all().collect())
    }
}

/// What a run of so many cells and samples, ended so, said.
struct Told {
    cells: usize,
    samples: usize,
    ended: Ended,
    /// Before it.
    believed: Beliefs,
    findings: Vec<Finding>,
    fastest: Fastest,
    /// AUs in linear order that came to rest.
    rested: u64,
    /// And what those side by side showed.
    neighbours: Option<Neighbours>,
    /// µs by which flash beside what a search for open AUs wrote read faster: it held no data.
    empty: Option<f64>,
    /// Bytes of a piece of the map, as a run of read-boundary shows it.
    pieces: Option<u64>,
    /// ns that a longer read adds for each KiB.
    reads: Option<f64>,
    /// Of a search for open AUs: where it wrote.
    slots: Option<Slots>,
    /// An earlier run of its experiment stands, as what was written in between spoilt what this one looked for.
    spoilt: bool,
}

/// The fastest writes of all these runs, by their length.
fn fastest_of(told: &[Told]) -> Fastest {
    let mut all = Fastest::new();
    for (len, f) in told.iter().flat_map(|t| &t.fastest) {
        let sum = all.entry(*len).or_insert((0, u64::MAX));
        *sum = (sum.0 + f.0, sum.1.min(f.1));
    }
    all
}

impl Inference {
    /// By other analyses than all there are; runs of an experiment without one say nothing.
    pub fn with(analyses: Vec<&'static dyn Analysis>) -> Inference {
        Inference { analyses, told: vec![] }
    }

    /// Findings of all runs, combined, with what their scores come to; they are those of the call before, or continue them.
    ///
    /// What a run said goes into what is believed of the card when the next one is judged.
    pub fn of(&mut self, runs: &[Run]) -> Findings {
        self.told.truncate(runs.len());
        let mut as_before = true;
        for (i, run) in runs.iter().enumerate() {
            let same = |t: &Told| t.cells == run.cells.len() && t.samples == run.samples.len() && t.ended == run.ended;
            let same = self.told.get(i).is_some_and(same);
            if same && as_before {
                continue;
            }
            // A run before it is new or went on: what is believed may be something else now.
            as_before = false;
            let believed = frozen(run).unwrap_or_else(|| self.believed(runs, i));
            let alike = |t: &Told| self.analysis(run).is_none_or(|a| a.alike(&t.believed, &believed));
            if same && self.told.get(i).is_some_and(alike) {
                self.told[i].believed = believed;
            } else {
                let now = self.tell(run, believed);
                match self.told.get_mut(i) {
                    Some(t) => *t = now,
                    None => self.told.push(now),
                }
            }
            // What an earlier run says may have changed, even where this one says the same.
            self.told[i].spoilt = self.spoilt(runs, i);
        }
        let mut all = Maps::shipped().told(Source::Probe, self.conclude(runs, runs.len()));
        if let Some(faster) = self.told.iter().find_map(|t| t.empty) {
            all.0.iter_mut().for_each(|f| open_au::of_empty(f, faster));
        } else if let Some(faster) = self.searches(runs).find_map(|case| open_au::partly_empty(&case)) {
            let merges: Vec<f64> = self.searches(runs).flat_map(|case| open_au::merges(&case)).collect();
            all.0.iter_mut().for_each(|f| open_au::of_part(f, faster, &merges));
        }
        if let Some([sequential, random]) = self.merged_little(&all) {
            all.0.iter_mut().for_each(|f| open_au::of_little(f, sequential, random));
        }
        all
    }

    /// The searches for open AUs among these runs, which were told of before.
    fn searches<'a>(&'a self, runs: &'a [Run]) -> impl Iterator<Item = Case<'a>> {
        let all = runs.iter().zip(&self.told).filter(|(run, _)| run.experiment.starts_with("open-au-"));
        all.map(|(run, t)| Case { run, believed: &t.believed })
    }

    /// What is believed of the card by the first `n` of these runs, which were told of before.
    pub fn believed(&self, runs: &[Run], n: usize) -> Beliefs {
        let told = &self.told[..n];
        let all = fastest_of(told);
        let rested = told.iter().map(|t| t.rested).max().filter(|&n| n > 0);
        let mut believed = Beliefs::of(&self.conclude(runs, n));
        (believed.write_ns_per_kib, believed.rested) = (write_ns_per_kib(&all), rested);
        believed.fastest = all;
        believed.neighbours = told.iter().filter_map(|t| t.neighbours).next_back();
        believed.pieces = told.iter().filter_map(|t| t.pieces).next_back();
        believed
    }

    /// What a merge costs in ms in sequential and in random order, where the second is more than it can be on flash that is full: both copy an
    /// erase block of which little was written, unless that little is all it holds.
    fn merged_little(&self, all: &Findings) -> Option<[f64; 2]> {
        let of = |name: &str| {
            let mut all = self.told.iter().filter(|t| !t.spoilt).flat_map(|t| &t.findings);
            all.rfind(|f| f.quantity == Quantity::CloseCostMs && f.value.is_some() && f.from.iter().any(|n| n == name))
        };
        let (sequential, random) = (of("open-au-linear")?, of("open-au-random")?.number()?);
        // Its upper end is what one of an AU would take that nothing was written to; without, how full they were is not known.
        let most = sequential.interval?[1];
        // What programming an erase block takes: a write, less what a read takes, which crosses the same bus.
        let reads = self.told.iter().find_map(|t| t.reads);
        let programs = write_ns_per_kib(&fastest_of(&self.told)).zip(reads).map(|(write, read)| (write as f64 - read) / KIB as f64);
        let whole = all.value(Quantity::EraseBlock, SURE).zip(programs).map_or(0.0, |(block, ns)| block * ns / 1e6);
        (whole > open_au::FASTER * most && random > open_au::MORE * most).then_some([sequential.number()?, random])
    }

    fn analysis(&self, run: &Run) -> Option<&'static dyn Analysis> {
        self.analyses.iter().copied().find(|a| a.name() == run.experiment)
    }

    fn tell(&self, run: &Run, believed: Beliefs) -> Told {
        let case = Case { run, believed: &believed };
        let mut findings = self.analysis(run).map_or(vec![], |a| a.infer(&case));
        for f in &mut findings {
            f.from.push(run.experiment.clone());
            f.cut = run.ended != Ended::Complete;
        }
        let rested = if run.experiment == "open-au-linear" { u64::from(open_au::rested(&case, false)) } else { 0 };
        let neighbours = open_au::neighbours(&case);
        let mut quick = Fastest::new();
        fastest(run, &mut quick);
        let slots = if run.experiment.starts_with("open-au-") { Slots::of(&case) } else { None };
        let empty = if run.experiment == "open-au-linear" { open_au::empty_beside(&case) } else { None };
        let pieces = if run.experiment == "read-boundary" { read_boundary::in_pieces(run) } else { None };
        let reads = if run.experiment == "read-boundary" { read_boundary::ns_per_kib(run) } else { None };
        let (cells, samples, ended) = (run.cells.len(), run.samples.len(), run.ended.clone());
        Told { cells, samples, ended, believed, findings, fastest: quick, rested, neighbours, empty, pieces, reads, slots, spoilt: false }
    }

    /// Does an earlier run stand against this one, which looked for the same?
    fn spoilt(&self, runs: &[Run], later: usize) -> bool {
        let said = |i: usize| (Case { run: &runs[i], believed: &self.told[i].believed }, &self.told[i].findings[..]);
        let run = &runs[later];
        let Some(analysis) = self.analysis(run).filter(|_| !run.samples.is_empty()) else { return false };
        let (now, found) = said(later);
        (0..later).filter(|&i| runs[i].experiment == run.experiment).any(|i| {
            let (before, said) = said(i);
            !analysis.replaces((&now, found), (&before, said))
        })
    }

    /// The findings of the first `n` runs, combined, with their scores.
    fn conclude(&self, runs: &[Run], n: usize) -> Findings {
        combine(&self.apart(runs, n))
    }

    /// What the first `n` runs say, each by itself; without those that others replace.
    fn apart(&self, runs: &[Run], n: usize) -> Vec<Finding> {
        let (runs, told) = (&runs[..n], &self.told[..n]);
        // A second run knew more than the first, unless it was cut short, or the first spoilt what the second looked for: of each
        // experiment the last run that knew more, and the last that was spoilt.
        let (mut knew, mut contradicts) = (BTreeMap::new(), BTreeMap::new());
        for (i, run) in runs.iter().enumerate().filter(|(_, r)| !r.samples.is_empty()) {
            let name = run.experiment.as_str();
            if told[i].spoilt {
                contradicts.insert(name, i);
            } else if run.ended == Ended::Complete {
                knew.insert(name, i);
            }
        }
        let after = |last: &BTreeMap<&str, usize>, i: usize| last.get(runs[i].experiment.as_str()).is_some_and(|&l| l > i);
        let stands: Vec<usize> = (0..n).filter(|&i| !told[i].spoilt && !after(&knew, i)).collect();
        let mut all: Vec<Finding> = vec![];
        // Where the run of each finding wrote.
        let mut written: Vec<Option<Slots>> = vec![];
        for &i in &stands {
            let against = after(&contradicts, i);
            written.extend(std::iter::repeat_n(told[i].slots, told[i].findings.len()));
            all.extend(told[i].findings.iter().map(|f| if against { f.clone().contradicted() } else { f.clone() }));
        }
        let span = stands.iter().filter(|&&i| runs[i].experiment == "open-au-random").filter_map(|&i| told[i].slots).map(|s| s.span).max();
        over_two_erase_blocks(&mut all, span.unwrap_or(0));
        off_the_grid(&mut all, &written);
        all
    }
}

/// Random order over more than one erase block opens all of them: where the search took a longer stretch for an AU than an erase block
/// may be, each of its AUs was several, and what was counted is a bound.
fn over_two_erase_blocks(all: &mut [Finding], span: u64) {
    let of = |f: &Finding| {
        f.number()
            .into_iter()
            .chain(f.rivals.iter().filter(|r| f.value.is_none() && r.probability > 0.0).map(|r| r.value.0))
            .collect::<Vec<f64>>()
    };
    let least = all.iter().filter(|f| f.quantity == Quantity::EraseBlock).flat_map(of).fold(f64::INFINITY, f64::min);
    if span as f64 <= least {
        return;
    }
    for f in all.iter_mut().filter(|f| f.quantity == Quantity::OpenAusRandom) {
        let Some(n) = f.number() else { continue };
        let why = format!(
            "{n} stretches of {} were written interleaved, and an erase block may be as small as {}: each stretch may be several",
            Bytes(span),
            Bytes(least as u64)
        );
        f.becomes(match n > 0.0 {
            true => Finding::at_least(f.quantity, n, f.confidence.min(CONTRADICTED), why),
            false => Finding::undecided(f.quantity, why),
        });
    }
}

/// The most that one AU scores where writes may have shared pages of the card: such counts were right on 3 of 3 random cards of the fit, 5 of 6 of the second
/// family and 14 of 23 unusual ones.
const MAY_SHARE: f64 = 0.65;

/// Writes that begin inside a page of the card share it with the write before. As long as one AU is written the card has that page at hand; behind a write to
/// another AU it is written twice, and where logs take pages in order that incurs a merge: one AU shows, however many are kept open.
fn off_the_grid(all: &mut [Finding], written: &[Option<Slots>]) {
    let of = |q: Quantity| all.iter().rev().find(|f| f.quantity == q && f.value.is_some());
    let unit = of(Quantity::WriteUnit).and_then(Finding::number).map(|u| u as u64).filter(|&u| u > 0);
    // Where the first erase block begins, unless that is known to some KiB only.
    let exactly = |f: &&Finding| f.interval.is_none_or(|[low, high]| low == high) || f.number() == Some(0.0);
    let begins = of(Quantity::EraseBlockOffset).filter(exactly).and_then(Finding::number).map(|at| at as u64);
    let mut said = false;
    for (f, slots) in all.iter_mut().zip(written).rev() {
        let Some(slots) = slots.filter(|_| f.quantity == Quantity::OpenAusLinear && f.number() == Some(1.0)) else { continue };
        let unit = unit.unwrap_or(slots.chunk);
        match begins {
            Some(at) if slots.first.abs_diff(at).is_multiple_of(unit) => {}
            Some(at) => {
                let why = format!(
                    "a second AU was slow, but erase blocks begin at {}, and writes began off the units of {} that count from there: a page that two writes share may \
                     incur a merge by itself; more time would decide it (--time 10m)",
                    Bytes(at),
                    Bytes(unit)
                );
                f.becomes(Finding::undecided(f.quantity, why));
            }
            // What fooled one run fools another.
            None if said => f.becomes(Finding::undecided(f.quantity, "a later run says as much, and has no more to go by")),
            None => {
                said = true;
                f.confidence = f.confidence.min(MAY_SHARE);
                let why = "where pages of the card begin is not known: where two writes share one, a second AU may incur merges although more are kept open";
                f.caveats.push(why.into());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{Fill, Op};
    use crate::samples::Sample;
    use crate::units::Nanos;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Reads the place of its run's first sample as an erase block; a run of an odd place stands against all later ones.
    struct Places {
        asked: AtomicUsize,
    }

    impl Analysis for Places {
        fn name(&self) -> &'static str {
            "places"
        }
        fn infer(&self, run: &Case) -> Vec<Finding> {
            vec![Finding::decided(Quantity::EraseBlock, run.run.samples[0].at as f64, 0.9)]
        }
        fn replaces(&self, _later: (&Case, &[Finding]), earlier: (&Case, &[Finding])) -> bool {
            self.asked.fetch_add(1, Ordering::Relaxed);
            earlier.0.run.samples[0].at.is_multiple_of(2)
        }
    }

    /// Runs are compared with those before them once, however many follow, and what stands is the last that nothing spoilt.
    #[test]
    fn runs_are_compared_once_with_those_before_them() {
        let (op, start, took) = (Op::Write(Fill::Zeros), Nanos(0), Nanos(1));
        let run = |at: u64| {
            let mut r = Run::new("places");
            r.extend([Sample { cell: 0, trial: 0, role: 0, op, at, len: 512, start, took }]);
            r
        };
        for (odd, last) in [(None, 158.0), (Some(40), 81.0), (Some(0), 1.0)] {
            let places: &'static Places = Box::leak(Box::new(Places { asked: AtomicUsize::new(0) }));
            let runs: Vec<Run> = (0..80).map(|i| run(2 * i + u64::from(odd == Some(i)))).collect();
            let mut all = Inference::with(vec![places]);
            let whole = all.of(&runs);
            assert_eq!(whole.get(Quantity::EraseBlock).and_then(Finding::number), Some(last), "{odd:?}");
            assert!(places.asked.load(Ordering::Relaxed) <= 80 * 79 / 2, "{odd:?}: {places:?}", places = places.asked);
            // Run by run it comes to the same.
            let mut grown = Inference::with(vec![places]);
            (1..runs.len()).for_each(|n| drop(grown.of(&runs[..n])));
            assert_eq!(grown.of(&runs), whole, "{odd:?}");
        }
    }

    /// A count over stretches longer than an erase block may be is a bound; one over shorter stretches stands.
    #[test]
    fn a_stretch_of_several_erase_blocks_is_no_au() {
        const K: u64 = 1024;
        for (block, decided, span, bound) in [
            (256.0, false, 512, true),
            (256.0, true, 512, true),
            (96.0, false, 128, true),
            (512.0, false, 512, false),
            (4096.0, true, 512, false),
        ] {
            let block = block * K as f64;
            let erase = match decided {
                true => Finding::decided(Quantity::EraseBlock, block, 0.9),
                false => Finding::undecided(Quantity::EraseBlock, "little for an erase block").rivals([(block, 0.05)]),
            };
            for n in [0.0, 1.0, 3.0] {
                let mut all = vec![erase.clone(), Finding::decided(Quantity::OpenAusRandom, n, 0.89).evidence("seen")];
                over_two_erase_blocks(&mut all, span * K);
                let f = &all[1];
                assert_eq!(f.value.is_none(), bound, "{f:?}");
                assert_eq!(f.at_least.map(|b| b.0), Some(n).filter(|&n| bound && n > 0.0), "{f:?}");
                assert!(f.confidence <= CONTRADICTED || !bound, "{f:?}");
                assert_eq!(f.evidence, ["seen"]);
            }
        }
    }

    /// One AU is no count where the writes shared pages of the card; two are, and so is one where they did not.
    #[test]
    fn one_au_off_the_grid_is_not_told() {
        const K: u64 = 1024;
        let slots = Slots { first: 192 * K * K, spacing: 192 * K * K, count: 40, span: 512 * K, chunk: 32 * K };
        for (n, offset, interval, decided, sure) in [
            (1.0, Some(31.5), None, false, false),
            (1.0, Some(64.0), None, true, true),
            (1.0, Some(64.0), Some([32.0, 96.0]), true, false),
            (1.0, Some(0.0), Some([0.0, 64.0]), true, true),
            (1.0, None, None, true, false),
            (2.0, Some(31.5), None, true, true),
            (2.0, None, None, true, true),
        ] {
            let mut all = vec![Finding::decided(Quantity::OpenAusLinear, n, 0.9)];
            all.extend(offset.map(|at| Finding {
                interval: interval.map(|i| i.map(|at| at * K as f64)),
                ..Finding::decided(Quantity::EraseBlockOffset, at * K as f64, 0.9)
            }));
            off_the_grid(&mut all, &[Some(slots), None]);
            assert_eq!((all[0].value.is_some(), all[0].confidence > 0.8), (decided, sure), "{n} {offset:?}: {:?}", all[0]);
        }
    }
}

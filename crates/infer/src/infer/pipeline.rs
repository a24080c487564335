//! The way from runs to findings: an analysis for each experiment, and one finding a quantity in the end.

use super::combine::combine;
use super::figure::Figure;
use super::{
    access_kinds, au_grid, capacity, fat_zone, interval, multi_block, open_au, read_boundary, scatter, small_writes, write_boundary,
    write_cache, write_trace, write_unit,
};
use crate::finding::{Finding, Findings};
use crate::samples::{Ended, Run};

/// What is concluded from the runs of one experiment. It sees samples, never a device.
pub trait Analysis: Sync {
    /// The experiment whose runs it reads.
    fn name(&self) -> &'static str;

    /// What the samples say. Pure.
    fn infer(&self, run: &Run) -> Vec<Finding>;

    /// What people would rather look at. Pure.
    fn figures(&self, _run: &Run) -> Vec<Figure> {
        vec![]
    }

    /// Does a complete later run say more than an earlier one, as it knew more? Not where what was written in between spoilt it.
    fn replaces(&self, _later: (&Run, &[Finding]), _earlier: (&Run, &[Finding])) -> bool {
        true
    }
}

/// One for each experiment, in the same order.
pub const ALL: &[&dyn Analysis] = &[
    &capacity::Capacity,
    &read_boundary::ReadBoundary,
    &write_unit::WriteUnit,
    &open_au::OpenAu::<false>,
    &open_au::OpenAu::<true>,
    &au_grid::AuGrid,
    &write_boundary::WriteBoundary,
    &fat_zone::FatZone,
    &write_cache::WriteCache,
    &multi_block::MultiBlock,
    &write_trace::WriteTrace,
    &scatter::Scatter,
    &interval::Interval,
    &access_kinds::AccessKinds,
    &small_writes::SmallWrites,
];

/// The analysis of an experiment.
pub fn by_name(name: &str) -> Option<&'static dyn Analysis> {
    ALL.iter().copied().find(|a| a.name() == name)
}

/// What one run says by itself; nothing where its experiment is not known.
pub fn of_run(run: &Run) -> Vec<Finding> {
    by_name(&run.experiment).map_or(vec![], |a| a.infer(run))
}

/// What a run looks like; nothing where its experiment is not known.
pub fn figures(run: &Run) -> Vec<Figure> {
    by_name(&run.experiment).map_or(vec![], |a| a.figures(run))
}

/// Findings of all runs, combined.
pub fn infer(runs: &[Run]) -> Findings {
    Inference::default().of(runs)
}

/// Did reads of this run take the same time across all boundaries, although enough of them were made? `None` for a run that read across
/// none.
pub fn reads_flat(run: &Run) -> Option<bool> {
    (run.experiment == "read-boundary").then(|| read_boundary::flat(run)).flatten()
}

/// Inference over runs that are added or go on: what a run said is kept while it stays as it is.
#[derive(Default)]
pub struct Inference {
    told: Vec<Told>,
}

/// What a run of so many cells and samples, ended so, said.
struct Told {
    cells: usize,
    samples: usize,
    ended: Ended,
    findings: Vec<Finding>,
}

impl Inference {
    /// Findings of all runs, combined; they are those of the call before, or continue them.
    pub fn of(&mut self, runs: &[Run]) -> Findings {
        self.told.truncate(runs.len());
        for (i, run) in runs.iter().enumerate() {
            let same = |t: &Told| t.cells == run.cells.len() && t.samples == run.samples.len() && t.ended == run.ended;
            if self.told.get(i).is_some_and(same) {
                continue;
            }
            let mut findings = of_run(run);
            findings.iter_mut().for_each(|f| f.from.push(run.experiment.clone()));
            let now = Told { cells: run.cells.len(), samples: run.samples.len(), ended: run.ended.clone(), findings };
            match self.told.get_mut(i) {
                Some(t) => *t = now,
                None => self.told.push(now),
            }
        }
        // A second run knew more than the first, unless it was cut short, or the first spoilt what the second looked for.
        let of = |i: usize| (&runs[i], &self.told[i].findings[..]);
        let again = |i: usize, later: usize| i < later && runs[i].experiment == runs[later].experiment && !runs[later].samples.is_empty();
        let stands = |i: usize, later: usize| by_name(&runs[i].experiment).is_some_and(|a| !a.replaces(of(later), of(i)));
        let spoilt: Vec<bool> = (0..runs.len()).map(|l| (0..l).any(|i| again(i, l) && stands(i, l))).collect();
        let replaced = |i: usize| (0..runs.len()).any(|l| again(i, l) && runs[l].ended == Ended::Complete && !spoilt[l]);
        let mut all: Vec<Finding> = vec![];
        for i in (0..runs.len()).filter(|&i| !spoilt[i] && !replaced(i)) {
            let against = (0..runs.len()).any(|l| spoilt[l] && again(i, l));
            all.extend(self.told[i].findings.iter().map(|f| if against { f.clone().contradicted() } else { f.clone() }));
        }
        combine(&all)
    }
}

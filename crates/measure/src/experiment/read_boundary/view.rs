//! What the rows of aligned reads say, and the cells that follow from it.

use super::*;
use crate::samples::Ended;

/// What the rows say, for the block size that shows most.
pub struct View {
    pub rows: Vec<steps::Row>,
    pub fit: steps::Fit,
    pub block: u64,
    pub base: f64,
    /// Of the target, in bytes.
    pub size: u64,
}

impl View {
    pub fn of(run: &Run) -> View {
        let size = run.setting("size").unwrap_or(0);
        let mut by_block: BTreeMap<u64, Vec<steps::Row>> = BTreeMap::new();
        for c in run.cells.iter().filter(|c| kind(c) == Kind::Row) {
            let extra = row_estimate(run, c);
            if extra.n >= 3 {
                by_block.entry(c.bytes("block")).or_default().push(steps::Row { align: c.bytes("align"), extra });
            }
        }
        let views: Vec<View> = by_block
            .into_iter()
            .map(|(block, rows)| {
                let base = base_time(run, block);
                View { fit: steps::fit(&rows, base), rows, block, base, size }
            })
            // Of the lengths that were tried because others showed nothing, only what is no chance counts.
            .filter(|v| !OTHER_LENGTHS.contains(&v.block) || v.fit.steps.iter().all(|s| s.z >= CLEAR))
            .collect();
        // More levels, then clearer ones; the smaller block wins a tie, since it sees the page.
        let worth = |v: &View| v.fit.steps.len() as f64 + v.fit.steps.iter().map(|s| strength(s.z / 3.0)).sum::<f64>() * 0.5;
        let none = View { rows: vec![], fit: steps::Fit { steps: vec![], misfit: 0.0, noise: 0.0 }, block: 1024, base: f64::NAN, size };
        views.into_iter().reduce(|a, b| if worth(&b) > worth(&a) + 0.3 { b } else { a }).unwrap_or(none)
    }

    /// How far the rows just below rule out a smaller step than this one: near 1 when anything a tenth as high would have been seen.
    pub fn nothing_below(&self, s: &steps::Step) -> f64 {
        (1.0 - 0.6 * self.hidden_below(s)).clamp(0.3, 1.0)
    }

    /// The highest step that the rows just below this one may hide, as a part of its height.
    pub fn hidden_below(&self, s: &steps::Step) -> f64 {
        let below = self.rows.iter().filter(|r| r.align < s.size).rev().take(2);
        // A crossing read that is clearly faster came out of a read-ahead buffer, which hides as much.
        let most = |e: &Estimate| if e.value < -3.0 * e.error { -e.value } else { e.value.max(0.0) + 1.5 * e.error };
        below.map(|r| most(&r.extra)).fold(0.0, f64::max) / s.height.max(1e-9)
    }

    /// An erase block that the rows alone name.
    pub fn candidate(&self) -> Option<u64> {
        let top = self.fit.steps.last()?;
        let page = self.fit.steps.first().map(|s| s.size).filter(|&s| s < top.size);
        (self.block_prior(top.size, page) >= 0.5 && top.posterior[0].1 > 0.5).then_some(top.size)
    }

    /// How likely a period is an erase block rather than planes that are read together.
    pub fn block_prior(&self, period: u64, page: Option<u64>) -> f64 {
        erase_block_prior(period, page, self.size)
    }

    /// The largest small step: the sweep's grain. Planes of 128 KiB and more are no erase block on a large card.
    pub fn grain(&self) -> Option<u64> {
        let page = self.fit.steps.first().map(|s| s.size);
        let small = |&s: &u64| s <= 64 * KIB || (s < MIB && self.block_prior(s, page) < 0.5);
        self.fit.steps.iter().rev().map(|s| s.size).find(small)
    }

    pub fn confirm_cell(&self, run: &Run, period: u64, phase: u64) -> Cell {
        let offset = run.setting("offset").unwrap_or(0);
        // A sweep's phase is the target's own; the rows' grid is that of the whole disk.
        let swept = run.cells.iter().any(|c| kind(c) == Kind::Sweep);
        let phase = if swept { phase } else { (period - offset % period) % period };
        let step = self.grain().filter(|g| period.is_multiple_of(*g)).unwrap_or(gcd(period, 16 * KIB));
        Cell::new(
            format!("period {} from {}", Bytes(period), Bytes(phase)),
            &[("period", period as i64), ("phase", phase as i64), ("step", step as i64), ("block", self.block as i64)],
        )
    }

    pub fn sweep_cell(&self, run: &Run, index: usize) -> Option<Cell> {
        let (start, end) = (run.setting("start")?, run.setting("end")?);
        let window = WINDOWS.get(index)?;
        let done = if index == 0 { 0 } else { WINDOWS[index - 1] };
        // Without a known grain the reads tile the stretch, so that no boundary falls between two of them.
        let (step, block) = match self.grain() {
            Some(g) => (g, self.block.min(g)),
            None => (16 * KIB, 32 * KIB),
        };
        // One eighth in: past the partition table and the FAT.
        let base = (start + (end - start) / 8).next_multiple_of(step) + block.max(step);
        let from = base + done;
        let upto = (base + window).min(end.saturating_sub(block + step));
        let count = upto.checked_sub(from)? / step;
        if count < 32 {
            return None;
        }
        let trials = count.div_ceil(64);
        Some(Cell::new(
            format!("sweep {} of {}", Bytes(upto - from), Bytes(step)),
            &[("count", count as i64), ("trials", trials as i64), ("from", from as i64), ("step", step as i64), ("block", block as i64)],
        ))
    }

    pub fn next_window(&self, run: &Run) -> Vec<Cell> {
        let done = run.cells.iter().filter(|c| kind(c) == Kind::Sweep).count();
        // The longest stretch is for cards whose reads show anything at all.
        if done + 1 == WINDOWS.len()
            && self.fit.steps.is_empty()
            && !run.cells.iter().any(|c| kind(c) == Kind::Verify && stands_out(run, c))
        {
            return vec![];
        }
        self.sweep_cell(run, done).into_iter().collect()
    }

    /// The rows of small boundaries once more, of the block size that shows most.
    pub fn fine_cells(&self, run: &Run) -> Vec<Cell> {
        let rows = run.cells.iter().filter(|c| kind(c) == Kind::Row && c.bytes("block") == self.block && c.bytes("align") <= 128 * KIB);
        let fine = |c: &Cell| Cell {
            label: format!("{}, closer", c.label),
            set: c.set.clone().into_iter().chain([("fine".into(), 1)]).collect(),
            ..c.clone()
        };
        rows.map(fine).collect()
    }

    /// The slowest reads of the last sweep, to be read again next to their neighbours.
    pub fn verify_cells(&self, run: &Run) -> Vec<Cell> {
        let Some(sweep) = run.cells.iter().rev().find(|c| kind(c) == Kind::Sweep) else { return vec![] };
        let times: Vec<(u64, f64)> = run.of(sweep.id).map(|s| (s.at + s.len / 2, s.took.micros())).collect();
        let all: Vec<f64> = times.iter().map(|t| t.1).collect();
        let line = median(&all) + (2.0 * mad(&all)).max(0.015 * median(&all));
        let mut slow: Vec<(u64, f64)> = times.into_iter().filter(|t| t.1 > line).collect();
        slow.sort_by(|a, b| b.1.total_cmp(&a.1));
        slow.truncate(48);
        slow.iter()
            .map(|&(at, _)| {
                let set = [("at", at as i64), ("step", sweep.get("step")), ("block", sweep.get("block"))];
                Cell::new(format!("again at {}", Bytes(at)), &set)
            })
            .collect()
    }

    /// Places at the first fraction of each shorter period; none when they were looked at already.
    pub fn part_cells(&self, run: &Run, l: &lattice::Lattice) -> Vec<Cell> {
        let Some(sweep) = run.cells.iter().rev().find(|c| kind(c) == Kind::Sweep) else { return vec![] };
        if run.cells.iter().any(|c| c.bytes("of") == l.period) {
            return vec![];
        }
        let step = sweep.bytes("step");
        let base = l.phase + sweep.bytes("from").saturating_sub(l.phase).div_ceil(l.period) * l.period;
        // What a target that is small beside the period does not hold cannot be looked at.
        let end = run.setting("end").unwrap_or(u64::MAX);
        // The sweep's own grain may be wrong: it need not divide a shorter period.
        let sector = run.setting("sector").unwrap_or(512).max(512);
        (2..=32)
            .filter(|d| l.period.is_multiple_of(d * sector) && l.period / d >= 8 * step)
            .filter(|d| base + l.period / d + step + sweep.bytes("block") <= end)
            .map(|d| {
                let at = base + l.period / d;
                let set =
                    [("at", at as i64), ("step", step as i64), ("block", sweep.get("block")), ("of", l.period as i64), ("part", d as i64)];
                Cell::new(format!("1/{d} of {}", Bytes(l.period)), &set)
            })
            .collect()
    }

    pub fn flat_reason(&self, run: &Run) -> String {
        if run.samples.is_empty() {
            return "no samples".into();
        }
        let noise = self.fit.noise;
        if self.fit.steps.is_empty() && self.base >= 1.0 && noise > 0.1 * self.base {
            return format!("noise hides any boundary: ± {noise:.0} µs in {:.0} µs", self.base);
        }
        if run.ended != Ended::Complete {
            return "the run ended before boundaries of all sizes were read often enough to tell".into();
        }
        let mut lengths: Vec<u64> = run.cells.iter().filter(|c| kind(c) == Kind::Row).map(|c| c.bytes("block")).collect();
        lengths.sort_unstable();
        lengths.dedup();
        let all: Vec<String> = lengths.iter().map(|l| Bytes(*l).to_string()).collect();
        format!("reads take the same time across every boundary (reads of {})", all.join(", "))
    }
}

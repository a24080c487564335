//! What the rows of aligned reads say, for the block size that shows most.

use super::*;
use crate::infer::ticks::{framed, tick};
use crate::samples::Ended;

/// Reads by which a host is judged.
const FIRST: usize = 240;

/// Microseconds between two answers of a host that answers at ticks, as readers do at frames of USB, by the first reads. Reads that begin anywhere
/// between two of them take the time of the card on average; those that begin when the one before ended hide what costs less than a tick.
pub fn answers_at_ticks(run: &Run) -> Option<f64> {
    let first: Vec<f64> = run.samples.iter().take(FIRST).map(|s| s.took.micros()).collect();
    tick(&first).or_else(|| framed(&first)).filter(|_| first.len() == FIRST)
}

/// What the rows say, for the block size that shows most.
pub struct View {
    pub rows: Vec<steps::Row>,
    pub fit: steps::Fit,
    pub block: u64,
    pub base: f64,
    /// Of the target, in bytes.
    pub size: u64,
    /// Microseconds of which all times are multiples, on a host that answers at ticks.
    pub tick: Option<f64>,
    /// The same of the first reads: what follows may have begun anywhere between two ticks.
    pub host_tick: Option<f64>,
    /// Larger boundaries lie off the multiples that were read.
    pub shifted: bool,
    /// Where rows count from, in bytes from the start of the disk, if not from there.
    pub counted: Option<u64>,
}

impl View {
    pub fn of(run: &Run) -> View {
        let size = run.setting("size").unwrap_or(0);
        let mut by_block: BTreeMap<u64, Vec<steps::Row>> = BTreeMap::new();
        let (ways, counted) = (Ways::of(run), counted_from(run));
        for c in run.cells.iter().filter(|c| kind(c) == Kind::Row && tells(c, counted)) {
            let extra = ways.row(c);
            if extra.n >= 3 {
                by_block.entry(c.bytes("block")).or_default().push(steps::Row { align: c.bytes("align"), extra });
            }
        }
        let reads = run.samples.iter().filter(|s| [PRE, ON, POST].contains(&s.role)).take(4000);
        let tick = tick(&reads.map(|s| s.took.micros()).collect::<Vec<f64>>());
        let host_tick = answers_at_ticks(run).or(tick);
        let views: Vec<View> = by_block
            .into_iter()
            .map(|(block, rows)| {
                let base = ways.base_time(block);
                View { fit: steps::fit(&rows, base), rows, block, base, size, tick, host_tick, shifted: false, counted }
            })
            // Of the lengths that were tried because others showed nothing, only what is no chance counts.
            .filter(|v| !OTHER_LENGTHS.contains(&v.block) || v.fit.steps.iter().all(|s| s.z >= CLEAR))
            .collect();
        // More levels, then clearer ones; the smaller block wins a tie, since it sees the page.
        let worth = |v: &View| v.fit.steps.len() as f64 + v.fit.steps.iter().map(|s| strength(s.z / 3.0)).sum::<f64>() * 0.5;
        let none = View {
            rows: vec![],
            fit: steps::Fit { steps: vec![], misfit: 0.0, noise: 0.0 },
            block: 1024,
            base: f64::NAN,
            size,
            tick,
            host_tick,
            shifted: false,
            counted,
        };
        let view = views.into_iter().reduce(|a, b| if worth(&b) > worth(&a) + 0.3 { b } else { a }).unwrap_or(none);
        View { shifted: view.higher_below() || view.uneven(run), ..view }
    }

    /// Does a row cost more than its own multiples? They have all boundaries that it has, if these count from 0.
    fn higher_below(&self) -> bool {
        self.rows.iter().filter(|r| r.align <= LARGEST_ALONE).any(|row| {
            let above: Vec<&Estimate> =
                self.rows.iter().filter(|r| r.align > row.align && r.align.is_multiple_of(row.align)).map(|r| &r.extra).take(4).collect();
            above.len() >= 2 && above.iter().all(|e| self.apart(&row.extra, e) && row.extra.value > e.value)
        })
    }

    /// Do the places of one row differ by what their number leaves when it is divided by 4 or by 3? They are alike, if boundaries count from 0.
    fn uneven(&self, run: &Run) -> bool {
        let offset = run.setting("offset").unwrap_or(0);
        let number = |at: u64, align: u64| {
            let from = self.counted.unwrap_or(0) % (12 * align);
            (at + offset + 12 * align - from) / align
        };
        let rows = |align: u64| {
            let here = move |c: &&Cell| c.bytes("align") == align && c.bytes("block") == self.block && tells(c, self.counted);
            let cells = run.cells.iter().filter(|c| matches!(kind(c), Kind::Row | Kind::Fine)).filter(here);
            cells.flat_map(|c| run.trials(c.id))
        };
        self.rows.iter().filter(|r| r.align <= LARGEST_ALONE).any(|row| {
            let places: Vec<(u64, f64)> = rows(row.align)
                .filter_map(|t| {
                    let on = t.iter().find(|s| s.role == ON)?;
                    let beside = (of_trial(&t, PRE)? + of_trial(&t, POST)?) / 2.0;
                    Some((number(on.at + on.len / 2, row.align), on.took.micros() - beside))
                })
                .collect();
            [(4, [1, 3]), (3, [1, 2])].into_iter().any(|(n, left)| {
                let [a, b] = left.map(|left| location(&places.iter().filter(|p| p.0 % n == left).map(|p| p.1).collect::<Vec<f64>>()));
                a.n.min(b.n) >= 6 && self.apart(&a, &b)
            })
        })
    }

    /// By more than chance, and than times of one kind wander.
    fn apart(&self, a: &Estimate, b: &Estimate) -> bool {
        let by = (a.value - b.value).abs();
        by > CLEAR * a.error.hypot(b.error) && by > (0.015 * self.base).max(0.1 * a.value.abs().max(b.value.abs()))
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

    /// How clearly the rows below this step show a smaller one that the fit left out, in sigma: rows that are multiples of a part of its
    /// size against those that are not.
    pub fn left_out_below(&self, s: &steps::Step) -> f64 {
        let below: Vec<&steps::Row> = self.rows.iter().filter(|r| !r.align.is_multiple_of(s.size)).collect();
        let of = |part: u64| {
            let (on, off): (Vec<&steps::Row>, Vec<&steps::Row>) = below.iter().copied().partition(|r| r.align.is_multiple_of(part));
            let ((a, va), (b, vb)) = (weighed(&on), weighed(&off));
            if on.is_empty() || off.is_empty() { 0.0 } else { (a - b) / (va + vb).sqrt() }
        };
        [2, 4, 3, 6].iter().filter(|k| s.size.is_multiple_of(**k)).map(|k| of(s.size / k)).fold(0.0, f64::max)
    }

    /// By how many microseconds, and one standard error, boundaries of a multiple of this step's size cost more than the
    /// step does; infinite where too few rows were read to say.
    pub fn more_above(&self, s: &steps::Step) -> f64 {
        let rows: Vec<&steps::Row> = self.rows.iter().filter(|r| r.align.is_multiple_of(s.size) && r.align <= LARGEST_ALONE).collect();
        let of = |times: u64| {
            let (on, off): (Vec<&steps::Row>, Vec<&steps::Row>) = rows.iter().partition(|r| r.align.is_multiple_of(times * s.size));
            if on.is_empty() || off.is_empty() {
                return if times == 2 { f64::INFINITY } else { 0.0 };
            }
            let ((a, va), (b, vb)) = (weighed(&on), weighed(&off));
            a - b + (va + vb).sqrt()
        };
        [2, 3, 4, 6, 8].into_iter().map(of).fold(0.0, f64::max)
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

    pub fn flat_reason(&self, run: &Run) -> String {
        if run.samples.is_empty() {
            return "no samples".into();
        }
        let noise = self.fit.noise;
        if self.fit.steps.is_empty() && self.base >= 1.0 && noise > 0.1 * self.base {
            return format!("noise hides any boundary: ± {noise:.0} µs in {:.0} µs", self.base);
        }
        if run.ended != Ended::Complete {
            return "the run ended before boundaries of all sizes were read often enough to decide".into();
        }
        let mut lengths: Vec<u64> = run.cells.iter().filter(|c| kind(c) == Kind::Row).map(|c| c.bytes("block")).collect();
        lengths.sort_unstable();
        lengths.dedup();
        let all: Vec<String> = lengths.iter().map(|l| Bytes(*l).to_string()).collect();
        format!("reads take the same time across every boundary (reads of {})", all.join(", "))
    }
}

/// The mean of what these rows cost, in microseconds, and its variance.
fn weighed(rows: &[&steps::Row]) -> (f64, f64) {
    let weight = |r: &steps::Row| r.extra.error.max(1e-3).powi(-2);
    let all: f64 = rows.iter().map(|r| weight(r)).sum();
    (rows.iter().map(|r| weight(r) * r.extra.value).sum::<f64>() / all, all.recip())
}

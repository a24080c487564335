//! What streams of writes over predicted boundaries and small writes across small ones say. Undecided where most are slow.

use super::beliefs::Case;
use super::figure::{Figure, Series};
use super::pipeline::Analysis;
use crate::finding::{Finding, Quantity};
use crate::infer::stats::{Estimate, location, median};
use crate::infer::steps;
use crate::samples::Cell;
use crate::units::{Bytes, KIB, MIB};

/// Judges runs of `write-boundary`.
pub struct WriteBoundary;

pub(super) const ANALYSES: &[&dyn Analysis] = &[&WriteBoundary];

/// Roles of the samples.
pub const PRE: u8 = 0;
pub const ON: u8 = 1;
pub const POST: u8 = 2;

impl Analysis for WriteBoundary {
    fn name(&self) -> &'static str {
        "write-boundary"
    }

    fn infer(&self, run: &Case) -> Vec<Finding> {
        let mut out = vec![];
        if run.cells.iter().any(|c| kind(c) == Kind::Cross) {
            out.extend(judge_cross(run));
        }
        if run.cells.iter().any(|c| kind(c) == Kind::Small) {
            out.extend(judge_small(run));
        }
        if out.is_empty() {
            let why = match run.believed.number(Quantity::CloseCostMs) {
                Some(_) => "where erase blocks begin is not known well enough to write across a boundary",
                None => run.believed.unmerged(),
            };
            out.push(Finding::undecided(Quantity::EraseBlock, why));
        }
        for f in &mut out {
            f.caveats.push("unreliable once the card collects garbage all the time".into());
        }
        out
    }

    fn figures(&self, run: &Case) -> Vec<Figure> {
        let points: Vec<(f64, f64)> = run
            .samples
            .iter()
            .filter(|s| run.cell(s.cell).is_some_and(|c| kind(c) == Kind::Cross))
            .map(|s| (s.at as f64 / MIB as f64, s.took.millis()))
            .collect();
        vec![Figure {
            title: "time of small sequential writes".into(),
            x: "offset on the card, MiB".into(),
            y: "ms".into(),
            log_x: false,
            log_y: true,
            series: vec![Series { name: "write".into(), points }],
        }]
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Cross,
    Small,
}

/// What a cell is for.
pub fn kind(c: &Cell) -> Kind {
    match () {
        _ if c.set.contains_key("cross") => Kind::Cross,
        _ => Kind::Small,
    }
}

/// Largest multiples across which small writes are laid.
pub const SMALL_MOST: u64 = 128 * KIB;

/// What streams over predicted boundaries show: slow ones of how many, over a boundary and between two.
#[derive(Default)]
struct Crossed {
    slow: [(u32, u32); 2],
    /// Over boundaries alone: even and odd multiples.
    odd: [(u32, u32); 2],
    /// Slow throughout, of all.
    noisy: u32,
    all: u32,
}

impl Crossed {
    /// By the period of the predicted boundaries, in bytes; `None` where none was tried.
    fn of(run: &Case) -> Option<(u64, Crossed)> {
        let first = run.cells.iter().find(|c| kind(c) == Kind::Cross)?;
        let (period, line) = (first.bytes("cross"), first.get("cost") as f64 * 0.4);
        let mut seen = Crossed::default();
        for c in run.cells.iter().filter(|c| kind(c) == Kind::Cross) {
            for t in run.trials(c.id).iter().filter(|t| t.len() >= 4) {
                seen.all += 1;
                // The second and the fourth write stay in their AU: when they are slow too, the card thrashes.
                if t[1].took.micros() > line || t[3].took.micros() > line {
                    seen.noisy += 1;
                    continue;
                }
                let hit = (t[2].took.micros() > line) as u32;
                let b = c.get("between") as usize & 1;
                seen.slow[b] = (seen.slow[b].0 + hit, seen.slow[b].1 + 1);
                if b == 0 {
                    let k = (t[2].at.saturating_sub(first.bytes("phase")) / period % 2) as usize;
                    seen.odd[k] = (seen.odd[k].0 + hit, seen.odd[k].1 + 1);
                }
            }
        }
        Some((period, seen))
    }
}

/// Were all of enough streams slow at the boundaries and none between? Reads have told where those are: more would say the same.
pub fn crosses_clearly(run: &Case) -> bool {
    Crossed::of(run).is_some_and(|(_, c)| {
        let [(on, over), (between, inside)] = c.slow;
        on == over && between == 0 && over.min(inside) >= FEWEST
    })
}

/// Streams over boundaries, and between them, without which nothing is told.
const FEWEST: u32 = 3;

fn judge_cross(run: &Case) -> Vec<Finding> {
    let Some((period, Crossed { slow, odd, noisy, all })) = Crossed::of(run) else { return vec![] };
    let q = Quantity::EraseBlock;
    if slow[0].1 < FEWEST || slow[1].1 < FEWEST {
        let why = format!("{noisy} of {all} streams were slow throughout: the card thrashes");
        return vec![Finding::undecided(q, why)];
    }
    let text = format!(
        "sequential writes stall at {} of {} multiples of {}, and at {} of {} control offsets between",
        slow[0].0,
        slow[0].1,
        Bytes(period),
        slow[1].0,
        slow[1].1
    );
    let rate = |(k, n): (u32, u32)| (k as f64 + 0.5) / (n as f64 + 1.0);
    let (on, between) = (rate(slow[0]), rate(slow[1]));
    let found = match () {
        _ if on > 0.75 && between < 0.3 => Finding::decided(q, period as f64, (0.75 + 0.25 * on * (1.0 - between)).min(0.96)),
        _ if between > 0.6 && on > 0.6 => Finding::undecided(
            q,
            "writes are slow between the boundaries as well: their erase block is smaller than the period of the reads",
        ),
        _ if odd.iter().all(|o| o.1 >= 2) && odd.iter().any(|o| o.0 == o.1) && odd.iter().any(|o| o.0 == 0) => {
            Finding::decided(q, 2.0 * period as f64, 0.7).rivals([(period as f64, 0.25)])
        }
        _ if on < 0.3 && between < 0.3 => Finding::undecided(q, "a stream of writes shows no cost at the boundaries found by reads"),
        _ => Finding::undecided(q, "some boundaries cost a stream of writes, others do not"),
    };
    vec![found.evidence(text)]
}

fn small_estimate(run: &Case, cell: &Cell) -> Estimate {
    let d: Vec<f64> = run
        .trials(cell.id)
        .iter()
        .filter_map(|t| {
            let of = |role: u8| t.iter().find(|s| s.role == role).map(|s| s.took.micros());
            Some(of(ON)? - (of(PRE)? + of(POST)?) / 2.0)
        })
        .collect();
    location(&d)
}

/// Share of the writes across no boundary that may be stalls, or open an AU.
const UNLIKE: f64 = 0.15;

fn judge_small(run: &Case) -> Vec<Finding> {
    let cells: Vec<&Cell> = run.cells.iter().filter(|c| kind(c) == Kind::Small).collect();
    let rows: Vec<steps::Row> = cells.iter().map(|c| steps::Row { align: c.bytes("align"), extra: small_estimate(run, c) }).collect();
    let base: Vec<f64> =
        cells.iter().flat_map(|c| run.of(c.id).filter(|s| s.role != ON).map(|s| s.took.micros()).collect::<Vec<_>>()).collect();
    // Writes that cross nothing cost the same, or what was written just before decides: small ones are gathered where they go on.
    let times = base;
    let base = median(&times);
    let unlike = times.iter().filter(|t| (*t / base - 1.0).abs() > 0.5).count();
    if unlike as f64 > UNLIKE * times.len() as f64 {
        let why = "small writes that cross no boundary are fast and slow by turns: they are coalesced with those before";
        return vec![Finding::undecided(Quantity::WriteUnit, why)];
    }
    let fit = steps::fit(&rows, base);
    match fit.steps.first() {
        // A boundary at the largest multiples tried may be one of larger ones: erase blocks, where none of 16 units are known.
        Some(s) if s.size >= SMALL_MOST && run.believed.erase_block().is_none_or(|e| e < 16 * s.size) => {
            let why = format!("a boundary at multiples of {} may be one of larger units, or of erase blocks", Bytes(s.size));
            vec![Finding::undecided(Quantity::WriteUnit, why)]
        }
        // A boundary that doubles the work of a write is one of units programmed as one.
        Some(s) if base > 150.0 && s.height > 0.3 * base && s.z > 4.0 && s.posterior[0].1 > 0.7 => {
            let p = (s.posterior[0].1 * 0.8).min(0.8);
            let text = format!("a write across a multiple of {} takes {:.0} µs longer", Bytes(s.size), s.height);
            vec![
                Finding::decided(Quantity::WriteUnit, s.size as f64, p)
                    .rivals(s.posterior.iter().skip(1).map(|&(v, p)| (v as f64, p)))
                    .evidence(text),
            ]
        }
        _ => vec![Finding::undecided(Quantity::WriteUnit, "small writes show no boundary")],
    }
}

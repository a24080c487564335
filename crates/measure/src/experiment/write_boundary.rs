//! Where do writes cross from one AU into the next, and which small boundaries do they feel? (Q1, Q5-Q7)
//!
//! Two kinds of trial. *Cross*: where an erase block is known, a short linear stream over a predicted boundary and one over a
//! place between two: entering another AU closes an older one, staying does not. *Small*: one-kilobyte writes before, across
//! and after small boundaries inside one AU.
//!
//! WARNING: write timing becomes unreliable as soon as the card thrashes: every finding here rests on repeats, and is
//! undecided where most writes are slow.

use super::slots::Slots;
use super::{About, Bench, Experiment, Figure, Series, Setup, alignments};
use crate::device::DeviceError;
use crate::finding::{Finding, Quantity};
use crate::infer::stats::{Estimate, location, median};
use crate::infer::steps;
use crate::samples::{Cell, Run};
use crate::units::{Bytes, KIB, MIB};

pub struct WriteBoundary;

static ABOUT: About = About {
    name: "write-boundary",
    question: "Where do writes cross from one AU into the next, and which small boundaries do they feel?",
    method: "linear streams over predicted boundaries; small writes across small boundaries. Unreliable once a card thrashes",
    writes: true,
    answers: &[Quantity::EraseBlock, Quantity::WriteUnit],
    roles: &["pre", "on", "post"],
    covers: "Q1, Q5-Q7",
};

const PRE: u8 = 0;
const ON: u8 = 1;
const POST: u8 = 2;

impl Experiment for WriteBoundary {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn needs(&self) -> &'static [&'static str] {
        &["read-boundary", "write-unit", "open-au-linear", "open-au-random", "au-grid"]
    }

    fn cells(&self, setup: &Setup) -> Vec<Cell> {
        let mut cells = vec![];
        let known = |q: Quantity| setup.known.value(q, 0.5);
        let Some(cost) = known(Quantity::CloseCostMs) else { return small_cells(setup) };
        let cost = (cost * 1e3) as i64;
        let chunk = chunk(setup);
        match (known(Quantity::EraseBlock), known(Quantity::EraseBlockOffset)) {
            (Some(e), Some(o)) if e as u64 >= 8 * chunk => {
                let (e, o) = (e as i64, o as i64);
                for (label, part) in [("over a boundary", 0), ("between two", 1)] {
                    cells.push(Cell::new(label, &[("cross", e), ("phase", o), ("between", part), ("chunk", chunk as i64), ("cost", cost)]));
                }
            }
            _ => {}
        }
        cells.extend(small_cells(setup));
        cells
    }

    fn wants(&self, cell: &Cell, run: &Run) -> bool {
        let done = run.of(cell.id).map(|s| s.trial).max().map_or(0, |t| t + 1);
        match kind(cell) {
            Kind::Cross => done < 6,
            Kind::Small => done < 6,
        }
    }

    fn trial(&self, cell: &Cell, n: u32, b: &mut Bench) -> Result<(), DeviceError> {
        let chunk = cell.bytes("chunk");
        match kind(cell) {
            Kind::Cross => {
                let (period, phase) = (cell.bytes("cross"), cell.bytes("phase"));
                let first = (b.region.start + b.region.end / 16).saturating_sub(phase) / period + 1;
                let last = (b.region.end - phase).saturating_sub(period) / period;
                if last <= first {
                    return Ok(());
                }
                // Neighbouring trials use odd and even boundaries: an AU of two periods would show as every other one.
                let k = (first + b.below(last - first)) / 2 * 2 + (n as u64 % 2);
                let k = k.clamp(first, last);
                let part = if cell.get("between") == 1 { [period / 2, period / 4, period * 3 / 4][n as usize % 3] } else { 0 };
                let p = phase + k * period + part / chunk * chunk;
                for i in 0..4u64 {
                    let at = p + i * chunk - 2 * chunk;
                    b.write([PRE, PRE, ON, POST][i as usize], at, chunk)?;
                }
            }
            Kind::Small => {
                let (align, block) = (cell.bytes("align"), cell.bytes("block"));
                let settings = b.run.setting.clone();
                let Some(slots) = Slots::plan(&|k| settings.get(k).map(|&v| v.max(0) as u64)) else { return Ok(()) };
                // Three different boundaries of this size: rewriting one place is another story.
                let places = (slots.span / align).max(2) - 1;
                let mut odd = || {
                    let m = 1 + b.below(places);
                    slots.at(slots.count / 2) + if m > 1 && m.is_multiple_of(2) { m - 1 } else { m } * align
                };
                let mut three = [(PRE, odd() - block), (ON, odd() - block / 2), (POST, odd())];
                b.shuffle(&mut three);
                for (role, at) in three {
                    b.write(role, at, block)?;
                }
            }
        }
        Ok(())
    }

    fn infer(&self, run: &Run) -> Vec<Finding> {
        let mut out = vec![];
        if run.cells.iter().any(|c| kind(c) == Kind::Cross) {
            out.extend(judge_cross(run));
        }
        if run.cells.iter().any(|c| kind(c) == Kind::Small) {
            out.extend(judge_small(run));
        }
        if out.is_empty() {
            let why = match run.setting("close_cost_us") {
                Some(_) => "where erase blocks begin is not known well enough to write across a boundary",
                None => super::unmerged(run),
            };
            out.push(Finding::undecided(Quantity::EraseBlock, why));
        }
        for f in &mut out {
            f.caveats.push("write alignment is unreliable once a card thrashes".into());
        }
        out
    }

    fn figures(&self, run: &Run) -> Vec<Figure> {
        let points: Vec<(f64, f64)> = run
            .samples
            .iter()
            .filter(|s| run.cell(s.cell).is_some_and(|c| kind(c) == Kind::Cross))
            .map(|s| (s.at as f64 / MIB as f64, s.took.millis()))
            .collect();
        vec![Figure {
            title: "time of small linear writes".into(),
            x: "MiB".into(),
            y: "ms".into(),
            log_x: false,
            log_y: true,
            series: vec![Series { name: "write".into(), points }],
        }]
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Cross,
    Small,
}

fn kind(c: &Cell) -> Kind {
    match () {
        _ if c.set.contains_key("cross") => Kind::Cross,
        _ => Kind::Small,
    }
}

fn chunk(setup: &Setup) -> u64 {
    let unit = setup.known.value(Quantity::WriteUnit, 0.5).unwrap_or(0.0) as u64;
    unit.clamp(16 * KIB, 64 * KIB).max(setup.geometry.sector)
}

/// Does one AU take random writes without being closed?
fn takes_random(setup: &Setup) -> bool {
    let random = setup.known.get(Quantity::OpenAusRandom);
    random.is_some_and(|f| f.number().or(f.at_least.map(|a| a.0)).is_some_and(|n| n >= 1.0) && f.confidence >= 0.5)
}

/// Largest multiples across which small writes are laid.
const SMALL_MOST: u64 = 128 * KIB;

/// Rows of small writes, only where one AU takes random writes: elsewhere each would close it (Q1).
fn small_cells(setup: &Setup) -> Vec<Cell> {
    if !takes_random(setup) {
        return vec![];
    }
    let block = 2 * setup.geometry.sector.max(512);
    alignments(2 * block, SMALL_MOST)
        .into_iter()
        .filter(|a| a.is_power_of_two())
        .map(|a| Cell::new(format!("{} / {}", Bytes(a), Bytes(block)), &[("align", a as i64), ("block", block as i64)]))
        .collect()
}

fn judge_cross(run: &Run) -> Vec<Finding> {
    let mut slow = [(0u32, 0u32); 2];
    let mut odd = [(0u32, 0u32); 2];
    let (mut noisy, mut all) = (0, 0);
    let Some(first) = run.cells.iter().find(|c| kind(c) == Kind::Cross) else { return vec![] };
    let (period, line) = (first.bytes("cross"), first.get("cost") as f64 * 0.4);
    for c in run.cells.iter().filter(|c| kind(c) == Kind::Cross) {
        for t in run.trials(c.id) {
            if t.len() < 4 {
                continue;
            }
            all += 1;
            // The second and the fourth write stay in their AU: when they are slow too, the card thrashes.
            if t[1].took.micros() > line || t[3].took.micros() > line {
                noisy += 1;
                continue;
            }
            let hit = (t[2].took.micros() > line) as u32;
            let b = c.get("between") as usize & 1;
            slow[b] = (slow[b].0 + hit, slow[b].1 + 1);
            if b == 0 {
                let k = (t[2].at.saturating_sub(first.bytes("phase")) / period % 2) as usize;
                odd[k] = (odd[k].0 + hit, odd[k].1 + 1);
            }
        }
    }
    let q = Quantity::EraseBlock;
    if slow[0].1 < 3 || slow[1].1 < 3 {
        let why = format!("{noisy} of {all} streams were slow throughout: the card thrashes");
        return vec![Finding::undecided(q, why)];
    }
    let text = format!(
        "a linear stream of writes pays for closing an AU at {} of {} multiples of {}, and at {} of {} places between",
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
        _ if between > 0.6 && on > 0.6 => {
            Finding::undecided(q, "writes pay between the boundaries as well: their AU is smaller than the period of the reads")
        }
        _ if odd.iter().all(|o| o.1 >= 2) && odd.iter().any(|o| o.0 == o.1) && odd.iter().any(|o| o.0 == 0) => {
            Finding::decided(q, 2.0 * period as f64, 0.7).rivals([(period as f64, 0.25)])
        }
        _ if on < 0.3 && between < 0.3 => Finding::undecided(q, "a stream of writes shows no cost at the boundaries found by reads"),
        _ => Finding::undecided(q, "some boundaries cost a stream of writes, others do not"),
    };
    vec![found.evidence(text)]
}

fn small_estimate(run: &Run, cell: &Cell) -> Estimate {
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

fn judge_small(run: &Run) -> Vec<Finding> {
    let cells: Vec<&Cell> = run.cells.iter().filter(|c| kind(c) == Kind::Small).collect();
    let rows: Vec<steps::Row> = cells.iter().map(|c| steps::Row { align: c.bytes("align"), extra: small_estimate(run, c) }).collect();
    let base: Vec<f64> =
        cells.iter().flat_map(|c| run.of(c.id).filter(|s| s.role != ON).map(|s| s.took.micros()).collect::<Vec<_>>()).collect();
    // Writes that cross nothing cost the same, or what was written just before decides: small ones are gathered where they go on.
    let times = base;
    let base = median(&times);
    let unlike = times.iter().filter(|t| (*t / base - 1.0).abs() > 0.5).count();
    if unlike as f64 > UNLIKE * times.len() as f64 {
        let why = "small writes that cross no boundary take little and much by turns: they are gathered with those before";
        return vec![Finding::undecided(Quantity::WriteUnit, why)];
    }
    let fit = steps::fit(&rows, base);
    match fit.steps.first() {
        // A boundary at the largest multiples tried may be one of larger ones: erase blocks, where none of 16 units are known.
        Some(s) if s.size >= SMALL_MOST && run.setting("erase_block").is_none_or(|e| e < 16 * s.size) => {
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

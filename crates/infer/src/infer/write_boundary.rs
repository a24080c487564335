//! What streams of writes over predicted boundaries and small writes across small ones say. Undecided where most are slow.

use super::beliefs::Case;
use super::figure::{Figure, Series};
use super::pipeline::Analysis;
use crate::finding::{CONTRADICTED, Finding, Quantity};
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
    if c.set.contains_key("cross") { Kind::Cross } else { Kind::Small }
}

/// Largest multiples across which small writes are laid.
pub const SMALL_MOST: u64 = 128 * KIB;

/// Parts of the distance at which a smaller erase block would have a boundary, too. Runs that earlier versions saved have quarters and no fifths.
const PARTS: [u64; 4] = [2, 3, 4, 5];

/// What streams over predicted boundaries show: slow ones, of how many.
#[derive(Clone, Copy, Default)]
struct Crossed {
    over: (u32, u32),
    /// At a half, at thirds, at quarters and at fifths of the way between two.
    parts: [(u32, u32); 4],
    /// Over boundaries alone: even and odd multiples.
    odd: [(u32, u32); 2],
    /// Slow throughout, of all.
    noisy: u32,
    all: u32,
    /// Paid for the AU that they opened first.
    entered: u32,
}

impl Crossed {
    /// By the period of the predicted boundaries, in bytes; `None` where none was tried.
    fn of(run: &Case) -> Option<(u64, Crossed)> {
        let first = run.cells.iter().find(|c| kind(c) == Kind::Cross)?;
        let (period, phase, line) = (first.bytes("cross"), first.bytes("phase"), first.get("cost") as f64 * 0.4);
        let mut seen = Crossed::default();
        for c in run.cells.iter().filter(|c| kind(c) == Kind::Cross) {
            for t in run.trials(c.id) {
                let Some(on) = t.iter().position(|s| s.role == ON).filter(|&on| on >= 2 && on + 1 < t.len()) else { continue };
                seen.all += 1;
                let slow = |i: usize| t[i].took.micros() > line;
                // Some cards merge with the last write into an AU, others with the first into the next. A second write may be the one that pays
                // for an AU, so it is none of these.
                let last = if on >= 3 { on - 1 } else { on };
                // The others stay in their AU: when they are slow too, the card thrashes.
                if (1..last).any(slow) || slow(on + 1) {
                    seen.noisy += 1;
                    continue;
                }
                seen.entered += u32::from(slow(0));
                let hit = u32::from((last..=on).any(slow));
                let one = |n: &mut (u32, u32)| *n = (n.0 + hit, n.1 + 1);
                let beyond = t[on].at.saturating_sub(phase);
                if c.get("between") == 0 {
                    one(&mut seen.over);
                    one(&mut seen.odd[(beyond / period % 2) as usize]);
                } else {
                    let far = |n: &u64| (1..*n).map(|k| (beyond % period).abs_diff(period / n * k)).min().unwrap_or(period);
                    let part = (0..PARTS.len()).min_by_key(|&i| far(&PARTS[i])).unwrap_or(0);
                    one(&mut seen.parts[part]);
                }
            }
        }
        Some((period, seen))
    }

    fn between(&self) -> (u32, u32) {
        self.parts.iter().fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1))
    }

    /// By how much an erase block must be smaller than the period, where streams stall at parts of it each time: 1 if they do not.
    fn smaller(&self) -> u64 {
        let [half, third, quarter, fifth] = self.parts.map(|(slow, n)| n >= 2 && slow == n);
        let twos = match (half, quarter) {
            (true, true) => 4,
            (true, false) => 2,
            (false, _) => 1,
        };
        let or_one = |there: bool, n: u64| if there { n } else { 1 };
        twos * or_one(third, 3) * or_one(fifth, 5)
    }
}

/// Were all of enough streams slow at the boundaries and none between? Reads have told where those are: more would say the same.
pub fn crosses_clearly(run: &Case) -> bool {
    Crossed::of(run).is_some_and(|(_, c)| {
        let ((on, over), (between, inside)) = (c.over, c.between());
        on == over && between == 0 && over.min(inside) >= FEWEST
    })
}

/// Streams over boundaries, and between them, without which nothing is told.
const FEWEST: u32 = 3;

/// Units of which an erase block has at least so many: what stands fewer of them apart may be a buffer, or erase blocks themselves.
const UNITS: u64 = 16;

/// What is left to an erase block of which a part has boundaries as well, to one of which at most half the multiples are boundaries, and to
/// one of which none is: a card that fills an AU up by copying what lies before shows no boundary, either.
const TOO_LARGE: f64 = 0.3;
const TOO_SMALL: f64 = 0.5;
const NONE: f64 = CONTRADICTED;

fn judge_cross(run: &Case) -> Vec<Finding> {
    let Some((period, seen)) = Crossed::of(run) else { return vec![] };
    let q = Quantity::EraseBlock;
    let (Crossed { over, odd, noisy, all, .. }, inside) = (seen, seen.between());
    if over.1 < FEWEST || inside.1 < FEWEST {
        let why = format!("{noisy} of {all} streams were slow throughout: the card thrashes");
        return vec![Finding::undecided(q, why)];
    }
    let text = format!(
        "sequential writes stall at {} of {} multiples of {}, and at {} of {} control offsets between",
        over.0,
        over.1,
        Bytes(period),
        inside.0,
        inside.1
    );
    let rate = |(k, n): (u32, u32)| (k as f64 + 0.5) / (n as f64 + 1.0);
    let (on, between) = (rate(over), rate(inside));
    let doubts = |most: f64, f: Finding| Finding { doubts: Some((period as f64, most)), ..f };
    // Where opening an AU costs nothing, going on into the next need not.
    let pays = 2 * seen.entered > all - noisy;
    let smaller = seen.smaller();
    let found = match () {
        _ if smaller > 1 && on > 0.6 => {
            let less = period / smaller;
            let why = format!("writes stall at parts of {} as well: their erase block has {} or less", Bytes(period), Bytes(less));
            let f = Finding::undecided(q, why).rivals([(less as f64, 0.5)]);
            // Where units are not known to be far smaller, it may be a buffer that is written out there.
            let units = run.believed.write_unit().is_some_and(|u| less >= UNITS * u);
            if units { doubts(TOO_LARGE, f) } else { f }
        }
        _ if on > 0.75 && between < 0.3 => Finding::decided(q, period as f64, (0.75 + 0.25 * on * (1.0 - between)).min(0.96)),
        _ if between > 0.6 && on > 0.6 => Finding::undecided(
            q,
            "writes are slow between the boundaries as well: their erase block is smaller than the period of the reads",
        ),
        _ if odd.iter().all(|o| o.1 >= 2) && odd.iter().any(|o| o.0 == o.1) && odd.iter().any(|o| o.0 == 0) => {
            // Every second multiple of 3 MiB is one of 6 MiB, and of 2 MiB as well.
            let two_thirds = (2.0 * period as f64 / 3.0, 0.2);
            doubts(TOO_SMALL, Finding::decided(q, 2.0 * period as f64, 0.6).rivals([two_thirds, (period as f64, 0.15)]))
        }
        _ if on < 0.3 && between < 0.3 => {
            let f = Finding::undecided(q, "a stream of writes shows no cost at the boundaries found by reads");
            if pays { doubts(if over.0 > 0 { TOO_SMALL } else { NONE }, f) } else { f }
        }
        _ => {
            let f = Finding::undecided(q, "some boundaries cost a stream of writes, others do not");
            if pays && on <= 0.5 && between < 0.3 { doubts(TOO_SMALL, f) } else { f }
        }
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
    let times: Vec<f64> =
        cells.iter().flat_map(|c| run.of(c.id).filter(|s| s.role != ON).map(|s| s.took.micros()).collect::<Vec<_>>()).collect();
    // Writes that cross nothing cost the same, or what was written just before decides: small ones are coalesced where they go on.
    let base = median(&times);
    let unlike = times.iter().filter(|t| (*t / base - 1.0).abs() > 0.5).count();
    if unlike as f64 > UNLIKE * times.len() as f64 {
        let why = "small writes that cross no boundary are fast and slow by turns: what was written just before decides";
        return vec![Finding::undecided(Quantity::WriteUnit, why)];
    }
    let fit = steps::fit(&rows, base);
    match fit.steps.first() {
        // A boundary at the largest multiples tried may be one of larger ones: erase blocks, where none of 16 units are known.
        Some(s) if s.size >= SMALL_MOST && run.believed.erase_block().is_none_or(|e| e < UNITS * s.size) => {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{Fill, Op};
    use crate::finding::Findings;
    use crate::infer::beliefs::Beliefs;
    use crate::samples::{Run, Sample};
    use crate::units::Nanos;

    /// Streams of 64 KiB over multiples of 4 MiB, and over its halves and quarters, stall alike.
    #[test]
    fn stalls_at_parts_speak_against_a_block_only_where_units_are_far_smaller() {
        let (period, chunk) = (4 * MIB, 64 * KIB);
        let mut run = Run::new("write-boundary");
        let set = |between: i64| [("cross", period as i64), ("phase", 0), ("cost", 100_000), ("between", between)];
        run.cells = (0..2).map(|i| Cell { id: i, ..Cell::new("stream", &set(i64::from(i))) }).collect();
        let parts = [period / 2, period / 4, 3 * period / 4, period / 2, period / 4, period / 2];
        for trial in 0..6u32 {
            for cell in 0..2 {
                let on = u64::from(trial + 3) * period + if cell == 1 { parts[trial as usize] } else { 0 };
                run.extend((0..8u64).map(|i| {
                    let role = [PRE, ON, POST][(i >= 5) as usize + (i > 5) as usize];
                    let took = Nanos(if i == 5 { 120_000_000 } else { 2_000_000 });
                    let at = on + i * chunk - 5 * chunk;
                    Sample { cell, trial, role, op: Op::Write(Fill::Zeros), at, len: chunk, start: Nanos(0), took }
                }));
            }
        }
        let doubts = |unit: Option<u64>| {
            let unit = unit.map(|u| Finding::decided(Quantity::WriteUnit, u as f64, 0.95));
            let believed = Beliefs::of(&Findings(unit.into_iter().collect()));
            WriteBoundary.infer(&Case { run: &run, believed: &believed })[0].doubts
        };
        assert_eq!(doubts(Some(16 * KIB)), Some((period as f64, TOO_LARGE)));
        assert_eq!(doubts(Some(512 * KIB)), None);
        assert_eq!(doubts(None), None);
    }

    /// Of an erase block of 1 MiB a walk may meet every fifth boundary only: none lies at a half or at a third of 5 MiB.
    #[test]
    fn stalls_at_fifths_speak_against_five_times_the_block() {
        let seen = |parts: [(u32, u32); 4]| Crossed { parts, ..Crossed::default() }.smaller();
        assert_eq!(seen([(0, 2), (0, 2), (0, 0), (2, 2)]), 5);
        assert_eq!(seen([(2, 2), (0, 2), (0, 0), (0, 2)]), 2);
        assert_eq!(seen([(2, 2), (2, 2), (2, 2), (1, 2)]), 12);
    }
}

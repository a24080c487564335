//! The cells that follow from what the rows of aligned reads say.

use super::*;

pub fn confirm_cell(view: &View, run: &Case, period: u64, phase: u64) -> Cell {
    let offset = run.setting("offset").unwrap_or(0);
    // A sweep's phase is the target's own; the rows' grid is that of the whole disk.
    let swept = run.cells.iter().any(|c| kind(c) == Kind::Sweep);
    let phase = if swept { phase } else { (period - offset % period) % period };
    let step = view.grain().filter(|g| period.is_multiple_of(*g)).unwrap_or(gcd(period, 16 * KIB));
    Cell::new(
        format!("period {} from {}", Bytes(period), Bytes(phase)),
        &[("period", period as i64), ("phase", phase as i64), ("step", step as i64), ("block", view.block as i64)],
    )
}

pub fn sweep_cell(view: &View, run: &Case, index: usize) -> Option<Cell> {
    let (start, end) = (run.setting("start")?, run.setting("end")?);
    let window = WINDOWS.get(index)?;
    let done = if index == 0 { 0 } else { WINDOWS[index - 1] };
    // Without a known grain the reads tile the stretch, so that no boundary falls between two of them.
    let (step, block) = match view.grain() {
        Some(g) => (g, view.block.min(g)),
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

pub fn next_window(view: &View, run: &Case) -> Vec<Cell> {
    let done = run.cells.iter().filter(|c| kind(c) == Kind::Sweep).count();
    // The longest stretch is for cards whose reads show anything at all.
    if done + 1 == WINDOWS.len() && view.fit.steps.is_empty() && !run.cells.iter().any(|c| kind(c) == Kind::Verify && stands_out(run, c)) {
        return vec![];
    }
    sweep_cell(view, run, done).into_iter().collect()
}

/// The rows of small boundaries once more, of the block size that shows most.
pub fn fine_cells(view: &View, run: &Case) -> Vec<Cell> {
    let rows = run.cells.iter().filter(|c| kind(c) == Kind::Row && c.bytes("block") == view.block && c.bytes("align") <= 128 * KIB);
    let rows = rows.filter(|c| tells(c, view.counted));
    let fine = |c: &Cell| Cell {
        label: format!("{}, closer", c.label),
        set: c.set.clone().into_iter().chain([("fine".into(), 1)]).collect(),
        ..c.clone()
    };
    rows.map(fine).collect()
}

/// The slowest reads of the last sweep, to be read again next to their neighbours.
pub fn verify_cells(run: &Case) -> Vec<Cell> {
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

/// Shorter periods than a 32nd that no other part is a multiple of.
const PRIMES: [u64; 7] = [37, 41, 43, 47, 53, 59, 61];

/// Places at the first fraction of each shorter period; none when they were looked at already.
pub fn part_cells(run: &Case, l: &lattice::Lattice) -> Vec<Cell> {
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
        .chain(PRIMES)
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

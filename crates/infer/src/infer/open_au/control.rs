//! One AU alone, beside the counts: once more when others were slow, long enough to fill a buffer, and written and read in turn.

use super::*;

/// The order of a cell that tries one AU in linear order once more: when a count was slow for the first time, and in the end.
pub const CONTROL: i64 = 2;

/// The order of a cell that writes and reads the same places of one AU, in turn.
pub const COMPARED: i64 = 3;

/// The order of a cell that writes as many AUs in linear order as stayed open before random order was tried.
pub const HELD: i64 = 5;

/// The order of a cell that writes one AU in random order until its log was full again and again.
pub const FILLING: i64 = 6;

/// AUs that stayed open in linear order, before this run.
pub fn open_in_linear(run: &Case) -> i64 {
    let known = [run.believed.whole(Quantity::OpenAusLinear), run.believed.linear_least(), run.believed.rested];
    known.into_iter().flatten().max().unwrap_or(0) as i64
}

/// Does the table throw out any AU?
pub fn at_random(belief: &Belief) -> bool {
    belief.ruled() && !belief.foretold()
}

/// Did as many AUs in linear order as before come to rest again? `None` where that was not tried to the end.
pub(super) fn still_open(run: &Case, line: f64) -> Option<bool> {
    let cell = run.cells.iter().find(|c| c.get("random") == HELD)?;
    let n = cell.get("n") as usize;
    let slow: Vec<bool> = run.of(cell.id).filter(|s| s.role > 0).map(|s| s.took.micros() > line).collect();
    let clean = slow.chunks(n).rev().take_while(|r| r.iter().all(|s| !s)).filter(|r| r.len() == n).count();
    let ended = run.cells.iter().any(|c| c.get("random") == CONTROL && c.get("late") == 1);
    (clean >= Visits::CLEAN_ROUNDS).then_some(true).or((ended && !slow.is_empty()).then_some(false))
}

/// Milliseconds that no programming of a page takes: pages of three bits a cell take 2 to 5 ms.
pub const REWRITE_MS: f64 = 20.0;

/// Milliseconds to program so many bytes, on the slowest flash in use: less than the 2 MB/s that class 2 asks for.
fn programs_in(bytes: u64) -> f64 {
    bytes as f64 / 1.5e3
}

/// Milliseconds of a write and of reading as much, where each write takes longer than programming twice as much, or the two units that it
/// may touch, of 256 KiB where they are not known. Behind a full cache nothing is told.
pub fn rewrites(run: &Case) -> Option<(f64, f64)> {
    let compared = compared(run)?;
    let programs = 2.0 * programs_in(run.believed.write_unit().unwrap_or(256 * KIB).max(compared.len));
    compared.all_above(REWRITE_MS + programs)
}

/// The same, where each write takes longer than programming a page does, and how much is programmed at once is not known: a small erase
/// block may be rewritten each time, or a large unit programmed.
pub(super) fn may_rewrite(run: &Case) -> Option<(f64, f64)> {
    compared(run).filter(|_| run.believed.write_unit().is_none())?.all_above(REWRITE_MS)
}

/// Milliseconds of writes, and the median of reading the same places; bytes of each.
struct Compared {
    writes: Vec<f64>,
    read: f64,
    len: u64,
}

impl Compared {
    /// The medians, where three writes and more were made and each took so many milliseconds longer than reading.
    fn all_above(&self, ms: f64) -> Option<(f64, f64)> {
        let Compared { writes, read, .. } = self;
        (writes.len() >= 3 && writes.iter().all(|w| w - read > ms)).then(|| (median(writes), *read))
    }
}

fn compared(run: &Case) -> Option<Compared> {
    let cell = run.cells.iter().find(|c| c.get("random") == COMPARED).filter(|_| run.believed.filled().is_none())?;
    let of = |write: bool| run.of(cell.id).filter(move |s| s.role > 0 && s.is_write() == write);
    let ms = |s: &Sample| s.took.micros() / 1e3;
    let (writes, reads): (Vec<f64>, Vec<f64>) = (of(true).map(ms).collect(), of(false).map(ms).collect());
    Some(Compared { writes, read: median(&reads), len: of(true).next()?.len })
}

/// Bytes between slow writes to one AU alone, where they come as regularly as a buffer fills, and cost what closing costs.
pub(super) fn pays_every(run: &Case, line: f64, closing: f64) -> Option<u64> {
    let cell = run.cells.iter().find(|c| c.get("random") == CONTROL && c.get("late") == 1)?;
    let slow: Vec<&Sample> = run.of(cell.id).filter(|s| s.role > 0 && s.took.micros() > line).collect();
    let apart: Vec<u64> = slow.windows(2).map(|w| w[1].at.saturating_sub(w[0].at)).collect();
    let first = *apart.first().filter(|&&a| a > 0)?;
    let regular = apart.len() >= 2 && apart.iter().all(|&a| a == first);
    let alike = slow.iter().all(|s| (s.took.micros() / closing - 1.0).abs() < 0.3);
    (regular && alike && closing / 1e3 > REWRITE_MS + programs_in(first)).then_some(first)
}

/// Every how many writes one is slow, where that is so whatever the number of AUs: a log or a buffer is emptied (G11), and nothing closed.
/// Closings come as often as AUs do that are not open. With what such a pause takes, in µs.
pub(super) fn regular(run: &Case, line: f64) -> Option<(usize, f64)> {
    let counted = |s: &&Sample| run.cell(s.cell).is_none_or(|c| ![CLOSING, FILLING, NEIGHBOURS].contains(&c.get("random")));
    let slow: Vec<(usize, &Sample)> = writes(run).filter(counted).enumerate().filter(|(_, s)| s.took.micros() > line).collect();
    let pauses: Vec<f64> = slow.iter().map(|s| s.1.took.micros()).collect();
    let n = |s: &Sample| run.cell(s.cell).map_or(0, |c| c.get("n"));
    let gaps: Vec<(usize, i64)> = slow.windows(2).map(|w| (w[1].0 - w[0].0, n(w[1].1))).collect();
    let usual = median(&gaps.iter().map(|g| g.0 as f64).collect::<Vec<_>>()) as usize;
    let alike: Vec<i64> = gaps.iter().filter(|g| g.0 == usual).map(|g| g.1).collect();
    let (few, many) = (alike.iter().min()?, alike.iter().max()?);
    (usual >= 3 && gaps.len() >= 12 && alike.len() * 4 >= gaps.len() * 3 && *many >= few + 3).then_some((usual, median(&pauses)))
}

/// Median times in µs of these cells, of those that were measured.
pub(super) fn medians(run: &Case, wanted: impl Fn(&Cell) -> bool) -> Vec<f64> {
    let cells = run.cells.iter().filter(|c| wanted(c));
    cells.map(|c| later(run, |x| x.id == c.id)).filter(|t| t.len() >= 3).map(|t| median(&t)).collect()
}

/// Median time in µs of the slowest of the control cells that were measured.
pub(super) fn once_more(run: &Case) -> Option<f64> {
    medians(run, |c| c.get("random") == CONTROL).into_iter().max_by(f64::total_cmp)
}

/// `once_more` where it is slow now: a cache is full. Writes that are combined cost little and much by turns from the first.
pub fn became_slow(run: &Case, line: f64) -> Option<f64> {
    once_more(run).filter(|&t| t > line && t > 1.3 * quantile(&fast(run), 0.8))
}

//! Rows where this probe has written: flash that was never written is answered without a look at it, and shows no pages.

use super::*;
use crate::device::ranges::RangeSet;
use crate::samples::Sample;

/// Shorter stretches hold too few boundaries of planes; so many bytes hold enough of them to read each once or twice; and of so many
/// stretches no more are asked.
const SHORTEST: u64 = MIB;
const ENOUGH: u64 = 4 * MIB;
const MOST: usize = 6;

/// Planes that are read together end below this.
const LARGEST: u64 = 512 * KIB;

/// Looks at each boundary below planes, and at larger ones.
const LOOKS: [u32; 2] = [48, 16];

/// The reads that compare, and rows of all sizes, in the longest stretches that these runs wrote without a gap.
pub fn cells(run: &Run, others: &[Run]) -> Vec<Cell> {
    let written: RangeSet = others.iter().flat_map(|r| &r.samples).filter(|s| s.is_write()).map(Sample::range).collect();
    let len = |r: &Range<u64>| r.end - r.start;
    let mut all: Vec<Range<u64>> = written.iter().filter(|r| len(r) >= SHORTEST).collect();
    all.sort_by_key(|r| (std::cmp::Reverse(len(r)), r.start));
    let before = |n: usize| all[..n].iter().map(len).sum::<u64>();
    let taken: Vec<Range<u64>> = (0..all.len().min(MOST)).filter(|&n| before(n) < ENOUGH).map(|n| all[n].clone()).collect();
    let rows: Vec<&Cell> = run.cells.iter().filter(|c| kind(c) == Kind::Row && !c.set.contains_key(BEGINS)).collect();
    let lengths: BTreeSet<u64> = rows.iter().map(|c| c.bytes("block")).filter(|b| !OTHER_LENGTHS.contains(b)).collect();
    let (Some(&shortest), Some(longest)) = (lengths.first(), taken.first()) else { return vec![] };
    let inside = |plain: Cell, part: &Range<u64>| {
        let set = plain.set.into_iter().chain([(FROM.into(), part.start as i64), (UNTIL.into(), part.end as i64)]).collect();
        Cell { label: format!("{}, written from {}", plain.label, Bytes(part.start)), set, ..plain }
    };
    let mut out = vec![inside(Cell::new("beside the rest".to_string(), &[("block", shortest as i64)]), longest)];
    for part in &taken {
        for &block in &lengths {
            for align in alignments(2 * block, (len(part) / 14).min(LARGEST)) {
                let looks = LOOKS[(align > LEAST_PLAIN) as usize].div_ceil(taken.len() as u32);
                let mut plain = row_cell(align, block);
                plain.set.insert("looks".into(), looks.into());
                out.push(inside(plain, part));
            }
        }
    }
    out
}

/// Does this cell want another trial? Rows do once what was written is known to read slower than the rest.
pub fn wants(cell: &Cell, run: &Run, trials: u32) -> bool {
    if cell.bytes("align") == 0 {
        return trials < COMPARED;
    }
    let slower = || run.cells.iter().find(|c| kind(c) == Kind::Written).is_some_and(|c| reads_slower(run, c));
    trials < cell.get("looks") as u32 && slower()
}

/// One pair of reads that compare, or one look at a boundary: beside it, and by turns at a place of its own for each read, where the page that
/// was read last does not help.
pub fn trial(cell: &Cell, n: u32, b: &mut Bench) -> Result<(), DeviceError> {
    let (align, block) = (cell.bytes("align"), cell.bytes("block"));
    let inside = cell.bytes(FROM)..cell.bytes(UNTIL);
    if align == 0 {
        let elsewhere = (0..16).map(|_| random_in(b, &b.region.clone(), block)).find(|at| !inside.contains(at));
        let mut two: Vec<(u8, u64)> = elsewhere.map(|at| (CONTROL, at)).into_iter().collect();
        two.push((PREDICTED, random_in(b, &inside, block)));
        b.shuffle(&mut two);
        return two.into_iter().try_for_each(|(role, at)| b.read(role, at, block).map(|_| ()));
    }
    let Some(three) = three(b, &inside, (align, 0, block), n % 2 == 1) else { return Ok(()) };
    three.into_iter().try_for_each(|(role, at)| b.read(role, at, block).map(|_| ()))
}

/// A multiple of `block` in this part of the target.
fn random_in(b: &mut Bench, part: &Range<u64>, block: u64) -> u64 {
    let (first, last) = (part.start.div_ceil(block), (part.end / block).saturating_sub(1));
    (first + b.below((last + 1).saturating_sub(first).max(1))) * block
}

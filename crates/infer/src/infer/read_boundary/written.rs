//! A card that was written in part: what was never written is answered without a look at the flash, always as fast, and hides what reads
//! across boundaries cost elsewhere.

use super::*;
use crate::infer::stats::quantile;

/// Of a cell that reads where the probe had written: that stretch, in bytes of the target.
pub const FROM: &str = "written_from";
pub const UNTIL: &str = "written_until";

/// What a read of flash takes longer than one that finds nothing written, at least: this part of it. A slow bus leaves 50 us of tR a tenth.
const SLOWER: f64 = 0.03;

/// Pairs of reads, one in that stretch and one elsewhere, that say whether both read alike.
pub const COMPARED: u32 = 12;

/// Zones that the places of all reads are divided into.
const ZONES: u64 = 64;

/// Reads that a zone needs at least.
const LEAST: usize = 3;

/// Zones of each kind, at least: one alone may be anything.
const EACH: usize = 3;

/// Reads of zones that were written take longer by this part, and by so many times what zones of one kind differ by.
const LONGER: f64 = 0.12;
const WIDER: f64 = 4.0;

/// The share of a zone's reads that are slow where all of it was written, and one in how many zones may be neither that nor the opposite.
const PURE: f64 = 0.8;
const MIXED: usize = 5;

/// The reads of the zones that were written, if reads of the others are all faster; `None` where all zones are alike.
pub(super) fn of(run: &Run) -> Option<Run> {
    let rows: Vec<u32> = run.cells.iter().filter(|c| matches!(kind(c), Kind::Row | Kind::Fine)).map(|c| c.id).collect();
    let of_rows = || run.samples.iter().filter(|s| [PRE, ON, POST].contains(&s.role) && rows.contains(&s.cell));
    let (from, to) = of_rows().fold((u64::MAX, 0), |(lo, hi), s| (lo.min(s.at), hi.max(s.at)));
    let block = of_rows().map(|s| s.len).min()?;
    let zone = |at: u64| (at.clamp(from, to) - from) * ZONES / (to - from + 1);
    // The first read of each trial, where it crosses nothing: what comes later may be at hand.
    let mut first: Vec<Vec<f64>> = vec![vec![]; ZONES as usize];
    for t in run
        .samples
        .chunk_by(Sample::same_trial)
        .filter(|t| rows.contains(&t[0].cell) && t[0].len == block && [PRE, POST].contains(&t[0].role))
    {
        first[zone(t[0].at) as usize].push(t[0].took.micros());
    }
    let mut medians: Vec<f64> = first.iter().filter(|z| z.len() >= LEAST).map(|z| median(z)).collect();
    medians.sort_unstable_by(f64::total_cmp);
    let cut = (EACH..(medians.len() + 1).saturating_sub(EACH)).max_by(|&a, &b| {
        let gap = |i: usize| medians[i] - medians[i - 1];
        gap(a).total_cmp(&gap(b))
    })?;
    let (fast, slow) = medians.split_at(cut);
    let gap = slow[0] - fast[fast.len() - 1];
    let within = mad(fast).max(mad(slow));
    if gap < (LONGER * median(fast)).max(WIDER * within) {
        return None;
    }
    let line = (slow[0] + fast[fast.len() - 1]) / 2.0;
    // By the share of slow reads in it a zone was written, was not, or is mixed. Where pieces of both kinds lie all over the card, most are mixed.
    let share = |z: &[f64]| (z.len() >= LEAST).then(|| z.iter().filter(|us| **us > line).count() as f64 / z.len() as f64);
    let shares: Vec<Option<f64>> = first.iter().map(|z| share(z)).collect();
    let told = shares.iter().flatten().count();
    if shares.iter().flatten().filter(|x| (1.0 - PURE..PURE).contains(*x)).count() * MIXED > told {
        return None;
    }
    let written = |s: &Sample| shares[zone(s.at) as usize].is_some_and(|x| x >= PURE);
    let kept = run.samples.chunk_by(Sample::same_trial).filter(|t| t.iter().all(written));
    Some(run.with_samples(kept.flatten().cloned().collect()))
}

/// The run without reads where the probe had written; `None` where it has none of them.
pub(super) fn without(run: &Run) -> Option<Run> {
    split(run, |c| kind(c) != Kind::Written)
}

/// The rows where the probe had written, as if the card had no other place; `None` where none were read, or what was written reads as the rest does.
pub(super) fn anew(run: &Run) -> Option<Run> {
    let cell = run.cells.iter().find(|c| kind(c) == Kind::Written && c.bytes("align") == 0)?;
    let mut rows = split(run, |c| kind(c) == Kind::Written && c.bytes("align") > 0).filter(|_| reads_slower(run, cell))?;
    // One row of several stretches is one row: its trials are counted on.
    let row = |c: &Cell| (c.bytes("align"), c.bytes("block"));
    let mut first: BTreeMap<(u64, u64), u32> = BTreeMap::new();
    let of: BTreeMap<u32, u32> = rows.cells.iter().map(|c| (c.id, *first.entry(row(c)).or_insert(c.id))).collect();
    rows.cells.retain(|c| of[&c.id] == c.id);
    for c in &mut rows.cells {
        c.set.remove(UNTIL);
    }
    let counted = |s: &Sample| Sample { cell: of[&s.cell], trial: s.trial + (s.cell - of[&s.cell]) * COUNTED, ..*s };
    Some(rows.with_samples(rows.samples.iter().map(counted).collect()))
}

/// More trials than a row has in one stretch.
const COUNTED: u32 = 1000;

/// The cells of one kind and their samples; `None` where no cell is of another.
fn split(run: &Run, keep: impl Fn(&Cell) -> bool) -> Option<Run> {
    if run.cells.iter().all(|c| kind(c) != Kind::Written) {
        return None;
    }
    let ids: Vec<u32> = run.cells.iter().filter(|c| keep(c)).map(|c| c.id).collect();
    let mut part = run.with_samples(run.samples.iter().filter(|s| ids.contains(&s.cell)).cloned().collect());
    part.cells.retain(|c| keep(c));
    Some(part)
}

/// Do reads where the probe had written take longer than most reads elsewhere? A page at hand answers some of them sooner, and elsewhere a
/// part may hold something, too.
pub fn reads_slower(run: &Run, cell: &Cell) -> bool {
    let (there, elsewhere) = (run.micros(cell, PREDICTED), run.micros(cell, CONTROL));
    let line = quantile(&there, 0.25) * (1.0 - SLOWER);
    there.len() as u32 >= COMPARED && 2 * elsewhere.iter().filter(|us| **us < line).count() >= there.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Op;
    use crate::units::Nanos;
    use rand_pcg::Pcg64Mcg;
    use rand_pcg::rand_core::Rng;

    /// Rows of a card of 1 GiB with pages of 8 KiB, of which this share was written, in front or in pieces of 1 MiB all over it.
    fn read(share: f64, in_front: bool) -> Run {
        const SIZE: u64 = 1 << 30;
        let mut rng = Pcg64Mcg::new(7);
        let mut run = Run::new("read-boundary");
        run.setting = [("size", SIZE as i64), ("end", SIZE as i64)].map(|(k, v)| (k.to_string(), v)).into();
        let mut n = 0;
        for (id, align) in [2, 4, 8, 16, 32, 64, 128, 256].map(|k| k * KIB).into_iter().enumerate() {
            run.cells.push(Cell { id: id as u32, ..Cell::new(format!("{align}"), &[("align", align as i64), ("block", 1024)]) });
            for trial in 0..48u32 {
                let p = (1 + 2 * (rng.next_u64() % (SIZE / align / 2 - 1))) * align;
                let place = if in_front { p as f64 / SIZE as f64 } else { ((p / MIB) * 37 % 100) as f64 / 100.0 };
                let mut three = [(PRE, 1024), (ON, 512), (POST, 0)];
                three.rotate_left(trial as usize % 3);
                for (k, (role, before)) in three.into_iter().enumerate() {
                    let at = p - before;
                    let crosses = at / (8 * KIB) != (at + 1023) / (8 * KIB);
                    let flash = if place < share { 100.0 + 60.0 * f64::from(crosses) } else { 0.0 };
                    let us = 150.0 + flash + if k == 0 { 80.0 } else { 0.0 } + (rng.next_u64() % 16) as f64 / 4.0;
                    n += 1;
                    let (start, took) = (Nanos(n * 1_000_000), Nanos((us * 1e3) as u64));
                    run.samples.push(Sample { cell: id as u32, trial, role, op: Op::Read, at, len: 1024, start, took });
                }
            }
        }
        run.index();
        run
    }

    fn page(run: &Run) -> Option<f64> {
        let case = Case { run, believed: &Default::default() };
        ReadBoundary.infer(&case).into_iter().find(|f| f.quantity == Quantity::Page)?.number()
    }

    #[test]
    fn a_part_that_was_written_tells() {
        for share in [0.2, 0.35, 0.45] {
            let run = read(share, true);
            let part = of(&run).unwrap();
            assert!(judge(&Case { run: &run, believed: &Default::default() }).iter().all(|f| f.value.is_none()));
            assert!(part.samples.iter().all(|s| (s.at as f64) < share * 1.02 * (1u64 << 30) as f64));
            assert_eq!(page(&run), Some(8192.0), "{share}");
        }
    }

    /// The same card with nothing in it but 64 MiB that the probe wrote, read across boundaries when all else was done; `empty`: what a read of
    /// flash that holds nothing is faster by, in microseconds.
    fn read_where_it_wrote(empty: f64) -> Run {
        let mut run = read(0.0, true);
        let rows = read(1.0, true);
        let stretch = [(FROM, 64 << 20), (UNTIL, 128 << 20)].map(|(k, v): (&str, i64)| (k.to_string(), v));
        let first = run.cells.len() as u32;
        let compare = Cell { set: stretch.clone().into(), ..Cell::new("beside the rest".to_string(), &[("block", 1024)]) };
        for (id, cell) in (first..).zip(std::iter::once(compare).chain(rows.cells.iter().cloned())) {
            let set = cell.set.into_iter().chain(stretch.clone()).collect();
            run.cells.push(Cell { id, set, ..cell });
        }
        let last = *run.samples.last().unwrap();
        for trial in 0..COMPARED {
            for (role, us) in [(CONTROL, 330.0 - empty), (PREDICTED, if trial == 3 { 150.0 } else { 330.0 })] {
                let took = Nanos((us * 1e3) as u64 + u64::from(trial) * 300);
                run.samples.push(Sample { cell: first, trial, role, took, ..last });
            }
        }
        run.samples.extend(rows.samples.iter().map(|s| Sample { cell: s.cell + first + 1, ..*s }));
        run.index();
        run
    }

    #[test]
    fn what_the_probe_wrote_tells_of_flash_that_holds_nothing() {
        assert_eq!(page(&read_where_it_wrote(60.0)), Some(8192.0));
        assert!(page(&read_where_it_wrote(0.0)).is_none(), "where all reads alike, these rows are of something else");
        assert_eq!(flat(&read_where_it_wrote(60.0)), Some(true), "the rest of the card stays as it was read");
    }

    #[test]
    fn what_is_alike_or_mixed_everywhere_is_kept_whole() {
        for run in [read(0.0, true), read(1.0, true), read(0.3, false)] {
            assert!(of(&run).is_none());
        }
        assert_eq!(page(&read(1.0, true)), Some(8192.0));
        assert_eq!(page(&read(0.0, true)), None);
    }
}

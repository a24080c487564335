//! A card that was written in part: what was never written is answered without a look at the flash, always as fast, and hides what reads
//! across boundaries cost elsewhere.

use super::*;

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

    #[test]
    fn what_is_alike_or_mixed_everywhere_is_kept_whole() {
        for run in [read(0.0, true), read(1.0, true), read(0.3, false)] {
            assert!(of(&run).is_none());
        }
        assert_eq!(page(&read(1.0, true)), Some(8192.0));
        assert_eq!(page(&read(0.0, true)), None);
    }
}

//! Workloads that no experiment resembles. Each is a list of accesses, one after the other, the same for the same card size and seed.

use nandscope::units::{KIB, MIB};
use nandscope_sim::trace::Io;
use nandscope_sim::{Op, Rng};

/// Names of the workloads, in order.
pub const NAMES: [&str; 8] = [
    "sequential 64 KiB",
    "logger",
    "random 4 KiB in 32 MiB",
    "six recorders",
    "mixed random 16 KiB",
    "copy",
    "write-ahead log",
    "random reads",
];

/// Bytes of a card that has room for them.
#[allow(dead_code)]
pub const LEAST: u64 = 256 * MIB;

/// All workloads with their names, for a card of so many bytes.
pub fn all(size: u64, sector: u64, seed: u64) -> Vec<(&'static str, Vec<Io>)> {
    let whole = size / MIB * MIB;
    let mut rng = Rng::new(seed, 31);
    NAMES
        .iter()
        .enumerate()
        .map(|(k, name)| {
            let mut out: Vec<Io> = vec![];
            let mut put = |op: Op, at: u64, len: u64| out.push(Io { time: 0, op, at, len: len.max(sector), took: 0 });
            let third = whole / 3 / MIB * MIB;
            // The table of a filesystem lies at the start, its directory behind it.
            let (fat, directory) = (64 * KIB, 4 * MIB);
            match k {
                0 => (0..1500).for_each(|i| put(Op::Write, third + i * 64 * KIB, 64 * KIB)),
                1 => {
                    for i in 0..1200 {
                        put(Op::Write, third + i * 4 * KIB, 4 * KIB);
                        if i % 16 == 15 {
                            put(Op::Write, fat + i / 128 * sector, sector);
                            put(Op::Write, directory, sector);
                        }
                    }
                }
                2 => (0..1200).for_each(|_| put(Op::Write, third + rng.below(32 * MIB / 4096) * 4096, 4096)),
                3 => {
                    for i in 0..200 {
                        (0..6).for_each(|s| put(Op::Write, third + s * (whole / 2 / 6 / MIB * MIB) + i * 32 * KIB, 32 * KIB));
                    }
                }
                4 => {
                    for _ in 0..1000 {
                        let op = if rng.below(10) < 7 { Op::Read } else { Op::Write };
                        put(op, rng.below(whole / (16 * KIB)) * 16 * KIB, 16 * KIB);
                    }
                }
                5 => {
                    for i in 0..400 {
                        put(Op::Read, third + i * 128 * KIB, 128 * KIB);
                        put(Op::Write, 2 * third + i * 128 * KIB, 128 * KIB);
                        if i % 8 == 7 {
                            put(Op::Write, fat + i / 64 * 4 * KIB, 4 * KIB);
                            put(Op::Write, directory, 4 * KIB);
                        }
                    }
                }
                6 => {
                    for i in 0..800 {
                        put(Op::Write, third + i * 8 * KIB % (16 * MIB), 8 * KIB);
                        if i % 8 == 7 {
                            (0..4).for_each(|_| put(Op::Write, 2 * third + rng.below(64 * MIB / 8192) * 8192, 8192));
                        }
                    }
                }
                _ => (0..1000).for_each(|_| put(Op::Read, rng.below(whole / 4096) * 4096, 4096)),
            }
            (*name, out)
        })
        .collect()
}

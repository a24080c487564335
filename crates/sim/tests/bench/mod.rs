//! The procedures by which the published tables were made, and the tables themselves. Shared by the tests and by the example
//! that prints them side by side.
#![allow(dead_code)]

pub mod page;

use nandscope_sim::{Card, Model, Request, Rng, cards};

pub const KIB: u64 = 1 << 10;
pub const MIB: u64 = 1 << 20;

/// Rows of a write table: bytes of a block, and MB/s (10^6).
pub type Rates = &'static [(u64, f64)];

/// F4: align, then pre, on, post, diff in us.
pub const F4: [(u64, [f64; 4]); 17] = [
    (134_217_728, [735.0, 1080.0, 780.0, 324.0]),
    (67_108_864, [736.0, 1050.0, 763.0, 300.0]),
    (33_554_432, [722.0, 1040.0, 763.0, 294.0]),
    (16_777_216, [727.0, 1050.0, 772.0, 302.0]),
    (8_388_608, [724.0, 1040.0, 768.0, 299.0]),
    (4_194_304, [741.0, 1080.0, 788.0, 317.0]),
    (2_097_152, [745.0, 950.0, 811.0, 171.0]),
    (1_048_576, [745.0, 945.0, 807.0, 169.0]),
    (524_288, [743.0, 936.0, 799.0, 165.0]),
    (262_144, [746.0, 948.0, 809.0, 171.0]),
    (131_072, [737.0, 935.0, 804.0, 165.0]),
    (65_536, [735.0, 925.0, 796.0, 159.0]),
    (32_768, [735.0, 925.0, 800.0, 157.0]),
    (16_384, [745.0, 911.0, 781.0, 148.0]),
    (8192, [785.0, 808.0, 725.0, 53.3]),
    (4096, [784.0, 788.0, 779.0, 5.85]),
    (2048, [787.0, 793.0, 789.0, 4.65]),
];

/// Card, source, number of AUs, rates.
pub const OPEN: &[(&str, &str, u64, Rates)] = &[
    ("flashbench-readme", "F16", 2, &[(4 * MIB, 8.79), (2 * MIB, 7.41), (MIB, 6.87), (512 * KIB, 6.39), (256 * KIB, 6.27)]),
    ("flashbench-readme", "F16", 3, &[(4 * MIB, 7.75), (2 * MIB, 5.03), (MIB, 3.24), (512 * KIB, 1.76), (256 * KIB, 0.912)]),
    ("toshiba-emmc", "Q10", 6, &[(4 * MIB, 5.91), (2 * MIB, 8.84), (MIB, 10.8), (512 * KIB, 13.0), (256 * KIB, 13.6)]),
    ("toshiba-emmc", "Q10", 7, &[(4 * MIB, 6.32), (2 * MIB, 8.63), (MIB, 10.5), (512 * KIB, 13.2), (256 * KIB, 13.0)]),
    ("toshiba-emmc", "Q10", 8, &[(4 * MIB, 6.65), (2 * MIB, 7.02), (MIB, 6.36), (512 * KIB, 3.17), (256 * KIB, 1.53)]),
    (
        "toshiba-emmc",
        "Q14",
        1,
        &[
            (4 * MIB, 6.42),
            (2 * MIB, 7.79),
            (MIB, 9.22),
            (512 * KIB, 10.0),
            (256 * KIB, 9.94),
            (128 * KIB, 10.1),
            (64 * KIB, 9.68),
            (32 * KIB, 8.5),
            (16 * KIB, 3.65),
            (8 * KIB, 1.73),
            (4 * KIB, 0.838),
            (2 * KIB, 0.417),
        ],
    ),
    ("sandisk-emmc", "Q11", 20, &[(4 * MIB, 11.3), (2 * MIB, 12.8), (MIB, 9.87), (512 * KIB, 9.97), (256 * KIB, 9.13), (128 * KIB, 8.05)]),
    ("sandisk-emmc", "Q11", 21, &[(4 * MIB, 11.2), (2 * MIB, 12.4), (MIB, 4.65), (512 * KIB, 1.95), (256 * KIB, 0.955)]),
    (
        "sandisk-emmc",
        "Q11",
        22,
        &[(4 * MIB, 11.6), (2 * MIB, 12.3), (MIB, 5.13), (512 * KIB, 2.57), (256 * KIB, 1.59), (128 * KIB, 1.16), (64 * KIB, 0.776)],
    ),
];

/// OLPC's table in random order, MB/s from 4 MiB down to 4 KiB; 0 where the stored copy has no figure.
#[allow(clippy::approx_constant)] // 3.14 MB/s is what the table says
pub const OLPC: [(&str, [f64; 11]); 6] = [
    ("olpc-good", [8.86, 6.3, 5.02, 5.16, 4.69, 3.78, 4.62, 2.71, 2.38, 1.24, 0.907]),
    ("olpc-a-4gb", [3.14, 4.09, 2.84, 1.33, 0.868, 0.556, 0.297, 0.155, 0.076, 0.038, 0.019]),
    ("olpc-a1-4gb", [3.51, 2.9, 2.84, 2.45, 2.3, 2.02, 1.71, 1.29, 0.0, 0.0, 0.0]),
    ("olpc-b-4gb", [5.84, 3.6, 2.21, 1.3, 0.701, 0.363, 0.186, 0.092, 0.047, 0.023, 0.0118]),
    ("olpc-c-8gb", [4.19, 2.59, 1.35, 0.649, 0.353, 0.180, 0.0906, 0.0457, 0.0, 0.0, 0.0]),
    ("olpc-unusable", [15.0, 9.47, 4.47, 1.61, 0.849, 0.441, 0.226, 0.115, 0.057, 0.023, 0.008]),
];

/// Patriot stick: align in bytes, diff in us.
pub const PATRIOT: [(u64, f64); 8] = [
    (24 * MIB, 209.0),
    (16 * MIB, 211.0),
    (12 * MIB, 25.3),
    (8 * MIB, 219.0),
    (6 * MIB, 36.3),
    (4 * MIB, 44.2),
    (MIB, 32.2),
    (384 * KIB, 40.0),
];

/// C8, 2 KiB at a time: card, ms a write, ms a read.
pub const CHAN: [(&str, f64, f64); 3] = [("chan-sdc-128mb", 26.6, 6.2), ("chan-sdc-512mb", 73.1, 8.8), ("chan-mmc-128mb", 11.3, 6.6)];

/// G5, records of 512 B in us: shortest, mean, longest write; shortest, mean read.
pub const GREIMAN: [(&str, [f64; 5]); 5] = [
    ("wintec-1gb", [1152.0, 1250.0, 85_756.0, 1032.0, 1043.0]),
    ("swissbit-1gb", [1160.0, 1324.0, 67_700.0, 1036.0, 1046.0]),
    ("atp-slc-1gb", [1184.0, 1299.0, 62_500.0, 1072.0, 1085.0]),
    ("sandisk-c2-2gb", [2132.0, 3355.0, 59_452.0, 1288.0, 1393.0]),
    ("amazon-c10-4gb", [2132.0, 2545.0, 191_596.0, 1164.0, 1304.0]),
];

/// Serves one request after another, each when the one before is done.
pub struct Bench {
    pub card: Card,
    now: u64,
}

impl Bench {
    pub fn new(name: &str) -> Bench {
        let text = cards::text(name).expect("a card of the crate");
        Bench { card: Card::new(&Model::parse(text, name).unwrap_or_else(|e| panic!("{e}")), 7), now: 0 }
    }

    /// ns of one request.
    pub fn took(&mut self, req: Request) -> u64 {
        let c = self.card.submit(self.now, req).expect("served");
        self.now = c.done;
        c.done - c.start
    }

    /// One row of an alignment table in us: pre, on, post, diff. Seven places `stride` apart, the best of eight passes at
    /// each, then the mean.
    pub fn align(&mut self, align: u64, stride: u64, block: u64) -> [f64; 4] {
        let places: Vec<u64> = (0..7).map(|i| i * stride + align).filter(|p| p + align <= self.card.capacity()).collect();
        let mut sums = [0.0; 3];
        for &p in &places {
            let mut best = [u64::MAX; 3];
            for _ in 0..8 {
                for (best, at) in best.iter_mut().zip([p - block, p - block / 2, p]) {
                    *best = (*best).min(self.took(Request::read(at, block)));
                }
            }
            sums.iter_mut().zip(best).for_each(|(s, b)| *s += b as f64 / 1000.0 / places.len() as f64);
        }
        let [pre, on, post] = sums;
        [pre, on, post, on - (pre + post) / 2.0]
    }

    /// The stride of the align test: the smallest power of two times the block that is at least a seventh of the card.
    pub fn stride(&self, block: u64) -> u64 {
        let seventh = self.card.capacity() / 7;
        (0..).map(|k| block << k).find(|&x| x >= seventh).expect("finite")
    }

    /// One open-AU table: for each block size from `erase` down to `least` the ms a block. Every row rewrites the same AUs,
    /// twelve erase sizes apart from 16 MiB on, in turn, in linear or random order inside each.
    pub fn open_au(&mut self, n: u64, erase: u64, least: u64, random: bool) -> Vec<(u64, f64)> {
        let mut rng = Rng::new(3, 3);
        let sizes = (0..).map(|k| erase >> k).take_while(|&b| b >= least);
        sizes
            .map(|block| {
                let mut order: Vec<u64> = (0..erase / block).collect();
                if random {
                    for i in (1..order.len()).rev() {
                        order.swap(i, rng.below(i as u64 + 1) as usize);
                    }
                }
                let mut total = 0;
                for k in &order {
                    for au in 0..n {
                        total += self.took(Request::write(16 * MIB + au * 12 * erase + k * block, block));
                    }
                }
                (block, total as f64 / 1e6 / (n * erase / block) as f64)
            })
            .collect()
    }

    /// us of each of `n` requests of `len` bytes, one behind the other from `from` on.
    pub fn stream(&mut self, op: fn(u64, u64) -> Request, from: u64, n: u64, len: u64) -> Vec<f64> {
        (0..n).map(|k| self.took(op(from + k * len, len)) as f64 / 1000.0).collect()
    }
}

pub fn least(v: &[f64]) -> f64 {
    v.iter().copied().fold(f64::MAX, f64::min)
}

pub fn most(v: &[f64]) -> f64 {
    v.iter().copied().fold(0.0, f64::max)
}

pub fn mean(v: &[f64]) -> f64 {
    v.iter().sum::<f64>() / v.len() as f64
}

/// ms a block of a published row.
pub fn ms(row: &(u64, f64)) -> f64 {
    row.0 as f64 / row.1 / 1000.0
}

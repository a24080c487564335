//! What do order and content do to writes and reads inside one AU? (flashbench's -p)
//!
//! One stretch of an AU is written whole with zeros, ones, one byte repeated (0x5a, flashbench's "random"), and bytes that
//! nothing can compress, and read; in linear and in random order; at two sizes. Every round of trials takes another AU, the
//! same for all kinds, so that the kinds of a round can be compared.
//!
//! What fools it: a round in which the card cleans up (contents are compared by the median over rounds), caches that take
//! zeros for nothing only when the whole page is zero (both sizes are looked at).

use super::{About, Bench, Experiment, Figure, Series, Setup};
use crate::device::{DeviceError, Fill};
use crate::finding::{Finding, Quantity};
use crate::infer::stats::{mad, median};
use crate::samples::{Cell, Run};
use crate::units::{Bytes, KIB, MIB, three};
use std::collections::BTreeMap;

pub struct AccessKinds;

static ABOUT: About = About {
    name: "access-kinds",
    question: "What do order and content do to writes and reads inside one AU?",
    method: "linear and random writes of zeros, ones, one byte and random data, and reads, in one stretch",
    writes: true,
    answers: &[Quantity::ContentGain],
    roles: &["first access of a stretch", "access"],
    covers: "Q9, Q16",
};

const STRETCH: u64 = 512 * KIB;
const SIZES: [u64; 2] = [16 * KIB, 128 * KIB];
const KINDS: [&str; 5] = ["zeros", "ones", "byte", "random data", "read"];
const ROUNDS: usize = 4;
/// Differences below this share nobody would call one.
const LEAST: f64 = 0.05;

impl Experiment for AccessKinds {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn cells(&self, setup: &Setup) -> Vec<Cell> {
        if setup.region.end - setup.region.start < 16 * STRETCH {
            return vec![];
        }
        let mut out = vec![];
        for len in SIZES.map(|s| s.max(setup.geometry.sector)) {
            for shuffled in 0..2 {
                for (kind, name) in KINDS.iter().enumerate() {
                    let order = if shuffled == 0 { "linear" } else { "random order" };
                    let set = [("len", len as i64), ("shuffled", shuffled), ("kind", kind as i64)];
                    out.push(Cell::new(format!("{name}, {order}, {}", Bytes(len)), &set));
                }
            }
        }
        out
    }

    fn wants(&self, cell: &Cell, run: &Run) -> bool {
        run.trials(cell.id).len() < ROUNDS
    }

    fn trial(&self, cell: &Cell, n: u32, b: &mut Bench) -> Result<(), DeviceError> {
        let len = cell.bytes("len");
        let unit = b.run.setting("erase_block").filter(|&e| e >= STRETCH).unwrap_or(4 * MIB);
        let phase = b.run.setting("erase_block_offset").unwrap_or(0);
        let aus = (b.region.end - b.region.start).saturating_sub(phase + STRETCH) / unit;
        // The same AU for all kinds of a round; away from the start, which may be a FAT zone.
        let au = aus / 4 + (u64::from(n) * 7919) % (aus - aus / 4).max(1);
        let start = (b.region.start + phase + au * unit).min(b.region.end - STRETCH) / len * len;
        let mut places: Vec<u64> = (0..STRETCH / len).collect();
        if cell.get("shuffled") == 1 {
            b.shuffle(&mut places);
        }
        let fill = match cell.get("kind") {
            0 => Some(Fill::Zeros),
            1 => Some(Fill::Ones),
            2 => Some(Fill::Byte(0x5a)),
            3 => Some(Fill::Random(u64::from(n) + 1)),
            _ => None,
        };
        for (i, p) in places.into_iter().enumerate() {
            let (role, at) = ((i > 0) as u8, start + p * len);
            match fill {
                Some(f) => b.write_of(role, f, at, len)?,
                None => b.read(role, at, len)?,
            };
        }
        Ok(())
    }

    fn infer(&self, run: &Run) -> Vec<Finding> {
        let q = Quantity::ContentGain;
        if run.cells.is_empty() {
            return vec![Finding::undecided(q, "the region is too small")];
        }
        // ln of the time against the four contents of the same size, order and round.
        let mut each: [Vec<f64>; 4] = Default::default();
        let mut groups: BTreeMap<(i64, i64, u32), [f64; 4]> = BTreeMap::new();
        for c in run.cells.iter().filter(|c| c.get("kind") < 4) {
            for t in run.trials(c.id) {
                if let Some(us) = time(&t) {
                    groups.entry((c.get("len"), c.get("shuffled"), t[0].trial)).or_insert([f64::NAN; 4])[c.get("kind") as usize] = us.ln();
                }
            }
        }
        for g in groups.values().filter(|g| g.iter().all(|x| x.is_finite())) {
            let mean = g.iter().sum::<f64>() / 4.0;
            (0..4).for_each(|k| each[k].push(g[k] - mean));
        }
        let n = each[0].len();
        if n < 2 * ROUNDS {
            return vec![Finding::undecided(q, "too few writes to compare contents, or writes take no time")];
        }
        let middle = each.each_ref().map(|x| median(x));
        let rest: Vec<f64> = (0..4).flat_map(|k| each[k].iter().map(move |x| x - middle[k])).collect();
        let (fast, slow) = (best(&middle, |a, b| a < b), best(&middle, |a, b| a > b));
        let gain = middle[slow] - middle[fast];
        // 1.25: a median wavers more than a mean.
        let doubt = 1.25 * 2f64.sqrt() * mad(&rest) / (n as f64).sqrt();
        let text = format!("{} is written {:.2} times as fast as {}", KINDS[fast], gain.exp(), KINDS[slow]);
        let f = if gain > LEAST && gain > 4.0 * doubt {
            let mut f = Finding::decided(q, (gain.exp() * 100.0).round() / 100.0, (0.75 + 0.03 * gain / doubt.max(1e-6)).min(0.92));
            f.interval = Some([(gain - 2.0 * doubt).exp(), (gain + 2.0 * doubt).exp()].map(|x| (x * 100.0).round() / 100.0));
            f
        } else if 4.0 * doubt < 2.0 * LEAST {
            Finding::decided(q, 1.0, 0.88)
        } else {
            Finding::undecided(q, "writes of one content differ more among themselves than contents do")
        };
        let rate = |kind: i64, shuffled: i64, len: u64| {
            let here = |c: &&Cell| c.get("kind") == kind && c.get("shuffled") == shuffled && c.bytes("len") == len;
            let t: Vec<f64> = run.cells.iter().filter(here).flat_map(|c| run.trials(c.id)).filter_map(|t| time(&t)).collect();
            format!("{} MB/s", three(len as f64 / median(&t)))
        };
        let mut f = f.evidence(text);
        for len in SIZES {
            f = f.evidence(format!(
                "{}: written {} linear, {} in random order; read {} and {}",
                Bytes(len),
                rate(3, 0, len),
                rate(3, 1, len),
                rate(4, 0, len),
                rate(4, 1, len)
            ));
        }
        vec![f]
    }

    fn figures(&self, run: &Run) -> Vec<Figure> {
        let series = [(0, "linear"), (1, "random order")].map(|(shuffled, name)| {
            let cells = run.cells.iter().filter(|c| c.get("shuffled") == shuffled && c.bytes("len") == SIZES[0]);
            let points = cells.filter_map(|c| {
                let t: Vec<f64> = run.trials(c.id).iter().filter_map(|t| time(t)).collect();
                (!t.is_empty()).then(|| (c.get("kind") as f64, median(&t) / 1e3))
            });
            Series { name: name.into(), points: points.collect() }
        });
        vec![Figure {
            title: format!("time of an access of {} inside one AU", Bytes(SIZES[0])),
            x: "zeros, ones, byte, random data, read".into(),
            y: "ms".into(),
            log_x: false,
            log_y: false,
            series: series.to_vec(),
        }]
    }
}

/// Mean time of an access of one trial in µs, without the first one, which opens the AU.
fn time(trial: &[&crate::samples::Sample]) -> Option<f64> {
    let t: Vec<f64> = trial.iter().filter(|s| s.role == 1).map(|s| s.took.micros()).collect();
    let mean = t.iter().sum::<f64>() / t.len().max(1) as f64;
    (mean > 0.0).then_some(mean)
}

fn best(x: &[f64; 4], better: fn(f64, f64) -> bool) -> usize {
    (1..4).fold(0, |b, i| if better(x[i], x[b]) { i } else { b })
}

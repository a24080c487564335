//! What is true of today's cards of the simulator where a model does not say it in one figure: found by doing it to the same card on a host
//! that does not waver.
#![allow(dead_code)]

use nandscope::device::{Access, Device, Fill, Op, SimDevice};
use nandscope::units::{KIB, MIB, Nanos};
use nandscope_sim::{Card, Model, Request, random, today};

/// A stream of numbers, Knuth's.
pub struct Draws(pub u64);

impl Draws {
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

fn median(mut v: Vec<f64>) -> f64 {
    v.sort_by(f64::total_cmp);
    v[v.len() / 2]
}

/// A card of today with a write cache, which reads have to wait for, or without one.
pub fn with_cache(seed: u64) -> Model {
    let mut m = today::card(seed);
    m.card.cache = [0, 512 * KIB, 2 * MIB, 16 * MIB][(seed % 4) as usize];
    m.card.read_waits = if m.card.cache > 0 { 100_000 * (1 + seed % 20) } else { 0 };
    m
}

/// µs that a read takes longer right after 4 MiB of writes, and ms until reads are usual; 0 where they are usual at once.
pub fn read_after_writes(m: &Model) -> (f64, f64) {
    let mut d = SimDevice::new(&random::quiet(m.clone()), 3);
    let (from, window) = (m.card.capacity / 8 / MIB * MIB, m.card.capacity / 2 / MIB * MIB);
    let mut draws = Draws(m.card.capacity);
    let bytes = vec![7; 64 << 10];
    let mut read = |d: &mut SimDevice| {
        let at = window + draws.below(16 * MIB / 4096) * 4096;
        d.access(Access { op: Op::Read, at, len: 4096 }).unwrap().took.micros()
    };
    let warm = |d: &mut SimDevice| {
        (0..16).for_each(|i| {
            d.access(Access { op: Op::Read, at: window + i * MIB, len: 4096 }).unwrap();
        });
        d.idle(Nanos(1_000_000_000));
    };
    warm(&mut d);
    let usual = median((0..200).map(|_| read(&mut d)).collect());
    let mut once = || {
        warm(&mut d);
        for i in 0..64 {
            d.put(from + i * 64 * KIB, &bytes).unwrap();
        }
        let end = d.now();
        let all: Vec<(f64, f64)> = (0..20_000).map(|_| ((d.now() - end).0 as f64 / 1e6, read(&mut d))).collect();
        let longer = all[0].1 - usual;
        let after = all.windows(3).skip(1).find(|w| w.iter().all(|r| r.1 < usual + (longer / 3.0).max(usual / 10.0).max(20.0)));
        (longer, after.map_or(f64::NAN, |w| w[0].0))
    };
    let all: Vec<(f64, f64)> = (0..7).map(|_| once()).collect();
    let longer = median(all.iter().map(|a| a.0).collect());
    // Less than a tenth of a read is nothing to wait for.
    let longer = if longer < (usual / 10.0).max(20.0) { 0.0 } else { longer };
    (longer, median(all.iter().map(|a| a.1).collect()))
}

/// Of bursts of 2 MiB in writes of 64 KiB with the SLC cache full: how many times faster after 3.2 s of rest than without, and ms of rest for
/// half of that.
pub fn pauses(m: &Model) -> (f64, f64) {
    let mut d = SimDevice::new(&random::quiet(m.clone()), 4);
    let from = m.card.capacity / 8 / MIB * MIB;
    let write = |d: &mut SimDevice, i: u64| {
        d.access(Access { op: Op::Write(Fill::Random(1)), at: from + i % 256 * 256 * KIB, len: 256 * KIB }).unwrap().took.micros()
    };
    let fast = median((0..24).map(|i| write(&mut d, i)).collect());
    (0..m.slc.size * 5 / 4 / (256 * KIB) + 64).for_each(|i| {
        write(&mut d, i);
    });
    let slow = median((0..64).map(|i| write(&mut d, i)).collect());
    let line = if slow > 1.25 * fast { (fast * slow).sqrt() } else { 0.0 };
    // Until it is full again, as a host sees it.
    let fill = |d: &mut SimDevice| {
        let mut slow = 0;
        for i in 0..8192 {
            slow = if write(d, i) > line { slow + 1 } else { 0 };
            if slow >= 24 {
                break;
            }
        }
    };
    let mut draws = Draws(m.card.capacity + 1);
    let mut rate = |ms: f64| {
        let mut one = || {
            fill(&mut d);
            d.idle(Nanos((ms * 1e6) as u64));
            let begun = d.now();
            let at = from + draws.below(32) * 2 * MIB;
            for i in 0..32 {
                d.access(Access { op: Op::Write(Fill::Random(1)), at: at + i * 64 * KIB, len: 64 * KIB }).unwrap();
            }
            1.0 / (d.now() - begun).0 as f64
        };
        median((0..4).map(|_| one()).collect())
    };
    // What bursts leave behind is part of the state.
    (0..10).for_each(|i| {
        rate([0.0, 800.0][i % 2]);
    });
    let both: Vec<(f64, f64)> = (0..5).map(|_| (rate(0.0), rate(3200.0))).collect();
    let (base, long) = (median(both.iter().map(|b| b.0).collect()), median(both.iter().map(|b| b.1).collect()));
    let gain = long / base;
    let (mut low, mut high): (f64, f64) = (0.0, 3200.0);
    for _ in 0..9 {
        let middle = (low + high) / 2.0;
        if rate(middle) / base < 1.0 + (gain - 1.0) / 2.0 { low = middle } else { high = middle }
    }
    (gain, (low + high) / 2.0)
}

/// A card of today so small that random writes soon use its spare flash up.
pub fn small(seed: u64) -> Option<Model> {
    let mut m = today::card(seed);
    m.card.capacity = (96 * m.nand.erase_block).max(256 * MIB).div_ceil(MIB) * MIB;
    if m.card.capacity > 768 * MIB {
        return None;
    }
    m.card.real_capacity = m.card.capacity;
    m.slc.size = m.slc.size.min(m.card.capacity / 16) / MIB * MIB;
    m.slc.least = m.slc.least.min(m.slc.size);
    m.checked().ok()
}

/// Percent of flash beyond the data that takes part in collection: all but the erased blocks kept in hand and half of the block being filled.
pub fn spare(m: &Model) -> f64 {
    let block = m.nand.erase_block as f64;
    let data = (m.card.capacity as f64 / block).ceil();
    let spare = (m.card.capacity as f64 * m.ftl.page.over_provisioning / block).floor();
    let all = data + spare - m.ftl.page.reserve as f64 - 0.5;
    100.0 * (all * block / m.card.capacity as f64 - 1.0)
}

/// Map units written for each that the host writes, long after the spare flash is used up, random writes over a full card; and percent of
/// flash beyond the data that a card has with this amplification which collects in the order of filling.
pub fn amplification(m: &Model) -> (f64, f64) {
    let unit = m.ftl.page.unit;
    let mut card = Card::new(m, 5);
    let mut draws = Draws(m.card.capacity + 2);
    let units = m.card.capacity / unit;
    let mut now = 0;
    let mut write = |card: &mut Card, n: u64| {
        for _ in 0..n {
            now = card.submit(now, Request::write(draws.below(units) * unit, unit.min(4096))).unwrap().done;
        }
    };
    write(&mut card, 4 * units);
    let copied = card.counters().units_copied;
    write(&mut card, 2 * units);
    let copied = (card.counters().units_copied - copied) as f64 * m.nand.write_unit as f64 / unit as f64;
    let found = 1.0 + copied / (2 * units) as f64;
    // A share v stays valid; v = exp(-alpha (1 - v)), so that alpha = -A ln(1 - 1 / A).
    (found, 100.0 * (-found * (-1.0 / found).ln_1p() - 1.0))
}

/// A card of today with a write cache whose flush waits for what it holds, or does not, or without one.
pub fn with_flush(seed: u64) -> Model {
    let mut m = today::card(seed);
    m.card.cache = [0, 512 * KIB, MIB, 4 * MIB][(seed % 4) as usize];
    (m.card.flush, m.card.flush_defers) = (100_000 * (1 + seed % 40), seed.is_multiple_of(3));
    m
}

/// ms of a flush after a write of 4 KiB and a rest of 50 ms.
pub fn flush_ms(m: &Model) -> f64 {
    let mut d = SimDevice::new(&random::quiet(m.clone()), 6);
    let all = (0..9).map(|i| {
        d.idle(Nanos(50_000_000));
        d.put(m.card.capacity / 8 / MIB * MIB + i * 5 * 16 * KIB, &[7; 4096]).unwrap();
        d.access(Access { op: Op::Flush, at: 0, len: 0 }).unwrap().took.micros() / 1e3
    });
    median(all.collect())
}

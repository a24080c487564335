//! What is true of today's cards where no figure of theirs says it: found by doing it to the same card on a host that does not waver.
#![allow(dead_code)]

use nandscope::device::{Access, Device, Fill, Op, SimDevice};
use nandscope::units::{KIB, MIB, Nanos};
use nandscope_sim::model::{Discarded, Throttle};
use nandscope_sim::{Card, Model, Request, random, today};

/// A card of the simulator on such a host.
pub fn still(m: &Model) -> SimDevice {
    SimDevice::new(&random::quiet(m.clone()), 3)
}

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
pub fn read_after_writes(d: &mut dyn Device) -> (f64, f64) {
    let size = d.geometry().size;
    // Where the experiment reads and writes: whether a map of a few translation pages holds both depends on how many these are.
    let (from, window) = ((size / 8).next_multiple_of(MIB), (size / 2).next_multiple_of(16 * MIB));
    let mut draws = Draws(size);
    let bytes = vec![7; 64 << 10];
    let mut read = |d: &mut dyn Device| {
        let at = window + draws.below(MIB / 4096) * 4096;
        d.access(Access { op: Op::Read, at, len: 4096 }).unwrap().took.micros()
    };
    let warm = |d: &mut dyn Device| {
        (0..4).for_each(|i| {
            d.access(Access { op: Op::Read, at: window + i * 256 * KIB, len: 4096 }).unwrap();
        });
        d.idle(Nanos(1_000_000_000));
    };
    warm(d);
    let usual = median((0..200).map(|_| read(d)).collect());
    let mut once = || {
        warm(d);
        for i in 0..64 {
            d.put(from + i * 64 * KIB, &bytes).unwrap();
        }
        let end = d.now();
        let longer = read(d) - usual;
        let line = usual + (longer / 3.0).max(usual / 10.0).max(20.0);
        // The first of 32 that are all usual.
        let mut usual: Vec<f64> = vec![];
        let settled = (0..20_000).find_map(|_| {
            let at = (d.now() - end).0 as f64 / 1e6;
            if read(d) < line {
                usual.push(at)
            } else {
                usual.clear()
            }
            (usual.len() == 32).then(|| usual[0])
        });
        (longer, settled.unwrap_or(f64::NAN))
    };
    let all: Vec<(f64, f64)> = (0..15).map(|_| once()).collect();
    let longer = median(all.iter().map(|a| a.0).collect());
    // Less than a tenth of a read is nothing to wait for.
    let longer = if longer < (usual / 10.0).max(20.0) { 0.0 } else { longer };
    (longer, median(all.iter().map(|a| a.1).collect()))
}

/// Of bursts of 2 MiB in writes of 64 KiB with the SLC cache full: how many times faster after 3.2 s of rest than without, and ms of rest for
/// half of that; `slc` are the bytes that its cache takes at most.
pub fn pauses(d: &mut dyn Device, slc: u64) -> (f64, f64) {
    let size = d.geometry().size;
    let from = size / 8 / MIB * MIB;
    let write = |d: &mut dyn Device, i: u64| {
        d.access(Access { op: Op::Write(Fill::Random(1)), at: from + i % 256 * 256 * KIB, len: 256 * KIB }).unwrap().took.micros()
    };
    let fast = median((0..24).map(|i| write(d, i)).collect());
    (0..slc * 5 / 4 / (256 * KIB) + 64).for_each(|i| {
        write(d, i);
    });
    let slow = median((0..64).map(|i| write(d, i)).collect());
    let line = if slow > 1.25 * fast { (fast * slow).sqrt() } else { 0.0 };
    // Until it is full again, as a host sees it.
    let fill = |d: &mut dyn Device| {
        let mut slow = 0;
        for i in 0..8192 {
            slow = if write(d, i) > line { slow + 1 } else { 0 };
            if slow >= 24 {
                break;
            }
        }
    };
    let mut draws = Draws(size + 1);
    let mut rate = |ms: f64| {
        let mut one = || {
            fill(d);
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

/// Bytes of random writes of 4 KiB over a full card until the first unit is copied.
pub fn onset(m: &Model) -> f64 {
    let mut card = Card::new(m, 5);
    let mut draws = Draws(m.card.capacity + 6);
    let (mut now, mut bytes) = (0, 0);
    while card.counters().units_copied == 0 && bytes < 4 * m.card.capacity {
        now = card.submit(now, Request::write(draws.below(m.card.capacity / 4096) * 4096, 4096)).unwrap().done;
        bytes += 4096;
    }
    bytes as f64
}

/// Two of three cards of today get hot, after 20 to 1300 s, and one of six of these in two steps; the seconds until then, too.
pub fn with_heat(seed: u64) -> (Model, Option<f64>) {
    let mut m = today::card(seed);
    m.throttle.clear();
    if seed.is_multiple_of(3) {
        return (m, None);
    }
    let mut draws = Draws(seed);
    let mut share = || draws.below(1000) as f64 / 1e3;
    let rate = reads(&mut still(&m), 20.0);
    let (cool, seconds) = (rate * (0.1 + 0.3 * share()), 20.0 * 65_f64.powf(share()));
    let (heat, percent) = ((rate - cool) * seconds, 110 + (200.0 * share()) as u64);
    m.throttle = vec![Throttle { heat: heat as u64, cool: cool as u64, percent }];
    if seed % 6 == 1 {
        m.throttle.push(Throttle { heat: 2 * heat as u64, cool: cool as u64, percent: 2 * percent });
    }
    (m, Some(seconds))
}

/// The same of a card of the second family, as words for it: it gives heat off in 40 to 600 s, and once it is hot it stays so or not.
pub fn heat_of_the_second(seed: u64) -> (String, Option<f64>) {
    if seed.is_multiple_of(3) {
        return (String::new(), None);
    }
    let mut draws = Draws(seed);
    let mut share = || draws.below(1000) as f64 / 1e3;
    let (tau, on) = (40.0 * 15_f64.powf(share()), 0.3 + 0.6 * share());
    let (off, slower) = (on * (0.7 + 0.28 * share()), 1.1 + 2.0 * share());
    // Towards its end the temperature hardly rises: the seconds are of a card that is read all the time.
    let seconds = -tau * (1.0 - on).ln();
    (format!("heat_tau={tau:.3} heat_on={on:.5} heat_off={off:.5} heat_slower={slower:.4}"), Some(seconds))
}

/// Bytes a second of sequential reads of 512 KiB over 64 MiB, for so many seconds.
pub fn reads(d: &mut dyn Device, seconds: f64) -> f64 {
    let (begun, mut i) = (d.now(), 0);
    while i < 16 || ((d.now() - begun).0 as f64) < seconds * 1e9 {
        d.access(Access { op: Op::Read, at: i % 128 * 512 * KIB, len: 512 * KIB }).unwrap();
        i += 1;
    }
    i as f64 * 512.0 * KIB as f64 * 1e9 / (d.now() - begun).0 as f64
}

/// MB/s of the same once the card has become slower, for half as long as that took and a minute at least.
pub fn rate_when_hot(d: &mut dyn Device, seconds: f64) -> f64 {
    reads(d, 1.02 * seconds);
    reads(d, (0.5 * seconds).max(60.0)) / 1e6
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

/// A card of today with a write cache whose flush waits for what it holds, or does not, or without one: then an SLC cache of hardly more.
pub fn with_flush(seed: u64) -> Model {
    let mut m = today::card(seed);
    m.card.cache = [0, 512 * KIB, MIB, 4 * MIB][(seed % 4) as usize];
    if m.card.cache == 0 && m.slc.size > 0 {
        m.slc.size = [4 * MIB, 8 * MIB, 12 * MIB][(seed / 4 % 3) as usize];
        (m.slc.dynamic, m.slc.least) = (false, 0);
    }
    (m.card.flush, m.card.flush_defers) = (100_000 * (1 + seed % 40), seed.is_multiple_of(3));
    m
}

/// ms of a flush after a write of 4 KiB and a rest of 50 ms.
pub fn flush_ms(d: &mut dyn Device) -> f64 {
    let from = d.geometry().size / 8 / MIB * MIB;
    let all = (0..9).map(|i| {
        d.idle(Nanos(50_000_000));
        d.put(from + i * 5 * 16 * KIB, &[7; 4096]).unwrap();
        d.access(Access { op: Op::Flush, at: 0, len: 0 }).unwrap().took.micros() / 1e3
    });
    median(all.collect())
}

/// A card of today whose discard takes a while and leaves zeros, or the old data.
pub fn with_discard(seed: u64) -> Model {
    let mut m = today::card(seed);
    m.card.discard = 50_000 * (1 + seed % 97);
    m.card.discarded = [Discarded::Zeros, Discarded::Old][(seed % 2) as usize];
    m
}

/// ms of a discard of 1 MiB that was just written and read.
pub fn discard_ms(d: &mut dyn Device) -> f64 {
    let size = d.geometry().size;
    let mut draws = Draws(size + 5);
    let all = (0..25).map(|_| {
        let at = draws.below(size / MIB) * MIB;
        for i in 0..16 {
            d.put(at + i * 64 * KIB, &[7; 64 << 10]).unwrap();
        }
        d.access(Access { op: Op::Read, at, len: 4096 }).unwrap();
        d.access(Access { op: Op::Discard, at, len: MIB }).unwrap().took.micros() / 1e3
    });
    median(all.collect())
}

/// Bytes that a card with an honest flush has acknowledged and not yet written while writes of 16 KiB wait for each other: what the flush
/// after them takes longer than one with nothing to do, at the rate at which they were written.
pub fn not_written(d: &mut dyn Device) -> f64 {
    let (from, chunk) = (d.geometry().size / 8 / MIB * MIB, 16 * KIB);
    let flush = |d: &mut dyn Device| d.access(Access { op: Op::Flush, at: 0, len: 0 }).unwrap().took.micros();
    let bytes = vec![7; chunk as usize];
    flush(d);
    let empty = median((0..9).map(|_| flush(d)).collect());
    let mut took: Vec<f64> = (0..3072).map(|i| d.put(from + i * chunk % (32 * MIB), &bytes).unwrap().took.micros()).collect();
    let left = flush(d) - empty;
    let last = took.split_off(2048);
    left / (last.iter().sum::<f64>() / last.len() as f64) * chunk as f64
}

/// What 1 to 32 random reads in flight, or 256 writes and a flush at their end, gain over one at a time.
pub fn queue_gain(d: &mut dyn Device, reads: bool) -> f64 {
    let size = d.geometry().size;
    let mut draws = Draws(size + 3);
    let mut all: [Vec<f64>; 6] = Default::default();
    // Of many reads the first and the last, when fewer are in flight, are few. Of writes no more than the experiment writes: an SLC cache may be full
    // then, and the gain is another one. Depths take turns, so that it meets all alike.
    let (rounds, n) = if reads { (3, 8192) } else { (9, 256) };
    for round in 0..rounds {
        for turn in 0..all.len() {
            let k = (turn + round) % all.len();
            let rates = &mut all[k];
            let mut access = || match reads {
                true => Access { op: Op::Read, at: draws.below(size / 4096) * 4096, len: 4096 },
                false => Access { op: Op::Write(Fill::Random(1)), at: draws.below(4096) * 4096, len: 4096 },
            };
            let some: Vec<Access> = (0..n).map(|_| access()).collect();
            let begun = d.now();
            d.batch(&some, 1 << k).unwrap();
            if !reads {
                d.access(Access { op: Op::Flush, at: 0, len: 0 }).unwrap();
            }
            rates.push(1.0 / (d.now() - begun).0 as f64);
        }
    }
    let rates = all.map(median);
    rates.iter().copied().fold(0.0, f64::max) / rates[0]
}

/// MB/s at which rest brings room back in a cache of so many bytes that takes this long to begin: two rests that empty a part of it.
pub fn empties(d: &mut dyn Device, slc: u64, begins: Nanos) -> f64 {
    let (from, chunk) = (64 << 20, 256 * KIB);
    let mut i = 0;
    let mut write = |d: &mut dyn Device| {
        i += 1;
        d.access(Access { op: Op::Write(Fill::Random(1)), at: from + i % 128 * chunk, len: chunk }).unwrap().took.micros()
    };
    let fast = median((0..24).map(|_| write(d)).collect());
    (0..slc * 5 / 4 / chunk + 64).for_each(|_| {
        write(d);
    });
    let line = (fast * median((0..64).map(|_| write(d)).collect())).sqrt();
    let mut room = |ms: f64| {
        d.idle(Nanos(begins.0 + (ms * 1e6) as u64));
        let mut found = 0.0;
        let mut slow = 0;
        while slow < 24 {
            let took = write(d);
            slow = if took > line { slow + 1 } else { 0 };
            found += if took > line { 0.0 } else { 1.0 };
        }
        found * chunk as f64
    };
    let mut ms = 50.0;
    while room(ms) < 0.25 * slc as f64 && ms < 1e6 {
        ms *= 1.5;
    }
    (room(2.0 * ms) - room(ms)) / ms / 1e3
}

/// What random writes come to in the steady state, in the order of the experiment: a second of 4, 16 and 64 KiB; of 4 KiB with 75 and 50 % of
/// the card full; and how much faster they are after a discard of all.
pub struct Steady {
    pub full: [f64; 3],
    pub part: [f64; 2],
    pub restored: f64,
}

/// The same card long after: three times and more of what is written over come before what is timed.
pub fn steady(d: &mut dyn Device) -> Steady {
    let size = d.geometry().size;
    let mut draws = Draws(size + 4);
    let mut write = |d: &mut dyn Device, window: u64, len: u64, bytes: u64| {
        let begun = d.now();
        let mut left = bytes / len;
        while left > 0 {
            let n = left.min(64);
            let mut one = || Access { op: Op::Write(Fill::Random(1)), at: draws.below(window / len) * len, len };
            let some: Vec<Access> = (0..n).map(|_| one()).collect();
            d.batch(&some, 1).unwrap();
            left -= n;
        }
        (bytes / len) as f64 * 1e9 / (d.now() - begun).0 as f64
    };
    let mut long_after = |d: &mut dyn Device, window: u64, len: u64, before: u64| {
        write(d, window, len, before * window);
        write(d, window, len, window)
    };
    let full = [(4, 4), (16, 3), (64, 3)].map(|(kib, before)| long_after(d, size, kib * KIB, before));
    let discard = |d: &mut dyn Device, from: u64| {
        d.access(Access { op: Op::Discard, at: from, len: size - from }).unwrap();
    };
    let part = [75, 50].map(|held| {
        let window = size / 100 * held / 4096 * 4096;
        discard(d, window.next_multiple_of(4 * MIB));
        long_after(d, window, 4 * KIB, 3)
    });
    discard(d, 0);
    write(d, size, 4 * KIB, size / 25);
    Steady { full, part, restored: write(d, size, 4 * KIB, size / 25) / full[0] }
}

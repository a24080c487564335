//! Unusual cards: what [`crate::random`] draws, twisted at two places or more. Odd erase blocks and offsets, rare layers, heat,
//! counterfeits, wear, queues, all of it together: a method that names something about them must still be right, and says
//! otherwise that it cannot tell.

use crate::model::*;
use crate::random::{self, Draw};
use crate::rng::Rng;
use crate::units::{GIB, KIB, MIB};

const US: u64 = 1000;
const MS: u64 = 1_000_000;

type Twist = fn(&mut Draw, &mut Model);

/// Every way in which a card can be unusual.
const TWISTS: [Twist; 12] = [erase_block, offset, layer, page_layer, slc, heat, stalls, counterfeit, wear, queue, sending, habits];

/// An unusual card; the same seed is the same card on every machine.
pub fn card(seed: u64) -> Model {
    let mut d = Draw(Rng::new(seed, 10));
    for attempt in 0..100 {
        let mut m = random::card(d.0.next());
        m.name = format!("unusual-{seed}");
        m.about = "drawn at random, unusual".to_string();
        let mut twisted = 0;
        for twist in TWISTS {
            if d.chance(25) {
                twist(&mut d, &mut m);
                twisted += 1;
            }
        }
        // Twists may contradict each other, as may the sizes of the card they meet; then another one is drawn.
        if let (true, Ok(model)) = (twisted > 1 || attempt == 99, Model::parse(&m.to_toml(), &m.name)) {
            return model;
        }
    }
    random::card(seed)
}

/// 3 * 2^k, sizes with odd factors, and sizes that no power of two divides well.
fn erase_block(d: &mut Draw, m: &mut Model) {
    let n = &mut m.nand;
    n.page = d.of(&[512, 2 * KIB, 4 * KIB, 8 * KIB, 16 * KIB]);
    n.access_unit = n.page * d.of(&[1, 1, 2, 3, 4, 6]);
    n.write_unit = d.of(&[n.page, n.access_unit, n.access_unit]);
    let size = d.of(&[
        16 * KIB,
        128 * KIB,
        1536 * KIB,
        3 * MIB,
        6 * MIB,
        12 * MIB,
        24 * MIB,
        48 * MIB,
        5 * MIB,
        7 * MIB,
        4128 * KIB,
        4140 * KIB,
        9216 * KIB,
    ]);
    n.erase_block = size.div_ceil(n.access_unit) * n.access_unit;
    n.erase_block_offset = 0;
    n.program = n.write_unit * 1_000_000_000 / d.spread(2_000_000, 64_000_000);
    n.copy = n.program;
    m.ftl.block.merge_span = 0;
    m.ftl.page.unit = 0;
}

/// Anywhere on the sector grid: 63 sectors as old partition tables had it, or any number.
fn offset(d: &mut Draw, m: &mut Model) {
    let sectors = m.nand.erase_block / m.card.sector;
    let at = if d.chance(30) { 63 } else { d.0.below(sectors) };
    m.nand.erase_block_offset = at % sectors * m.card.sector;
}

/// Write-through with any buffer, logs in order, and logs shared by all.
fn layer(d: &mut Draw, m: &mut Model) {
    m.wear = Default::default();
    match d.0.below(3) {
        0 => {
            m.ftl.kind = FtlKind::WriteThrough;
            m.ftl.through.buffer = d.of(&[0, 512, 4 * KIB, 12 * KIB, 64 * KIB]) / m.card.sector * m.card.sector;
            m.ftl.through.fat_zone = d.of(&[0, 512 * KIB, 3 * MIB]);
        }
        kind => {
            m.ftl.kind = FtlKind::LogBlock;
            let (in_order, l) = (kind == 1, &mut m.ftl.log);
            l.pool = d.spread(1, 24);
            (l.group, l.per_group) = if in_order { (1, 1) } else { (d.of(&[0, 2, 3, 8]), 0) };
            l.order = if in_order { LogOrder::InOrder } else { LogOrder::PageMapped };
            l.sequential = !in_order && d.chance(50);
            l.evict = d.of(&[Evict::Lru, Evict::Fifo, Evict::Random]);
            l.close = d.spread(MS, 200 * MS);
            m.card.capacity = m.card.capacity.min(m.nand.write_unit << 21).max(32 * m.nand.erase_block).div_ceil(MIB) * MIB;
        }
    }
    small(m);
}

/// Page maps with every rule of collection, at every time, and a map that does not fit.
fn page_layer(d: &mut Draw, m: &mut Model) {
    m.ftl.kind = FtlKind::PageMap;
    m.wear = Default::default();
    let p = &mut m.ftl.page;
    p.unit = m.nand.write_unit;
    p.over_provisioning = d.of(&[0.07, 0.15, 0.28, 0.5]);
    p.gc = d.of(&[Gc::Greedy, Gc::Fifo, Gc::CostBenefit, Gc::DChoice]);
    p.choices = 1 + d.0.below(16);
    p.when = d.of(&[GcWhen::Foreground, GcWhen::Background, GcWhen::Preemptible]);
    p.idle = d.spread(MS, 500 * MS);
    p.goal = 4 + d.0.below(32);
    if d.chance(50) {
        p.map_span = d.of(&[256 * KIB, MIB, 4 * MIB]);
        p.map_cache = p.map_span * (1 + d.0.below(64));
        p.map_miss = d.spread(30 * US, 400 * US);
    }
    m.card.capacity = m.card.capacity.min(p.unit << 19).max(96 * m.nand.erase_block).div_ceil(MIB) * MIB;
    small(m);
}

/// What depends on a capacity that has changed.
fn small(m: &mut Model) {
    m.card.real_capacity = 0;
    m.slc.size = m.slc.size.min(m.card.capacity / 8 / MIB * MIB);
}

fn slc(d: &mut Draw, m: &mut Model) {
    m.slc = Slc {
        size: d.spread(MIB, 2 * GIB).min(m.card.capacity / 4) / MIB * MIB,
        dynamic: d.chance(50),
        least: 0,
        program: m.nand.program / d.of(&[2, 4, 10]),
        fold: m.nand.program / d.of(&[4, 8]),
        full: d.of(&[SlcFull::Fold, SlcFull::Direct]),
        background: d.chance(60),
        idle: d.spread(MS, 2000 * MS),
    };
}

/// One or two steps of heat.
fn heat(d: &mut Draw, m: &mut Model) {
    let (heat, cool, percent) = (d.spread(4 * MIB, GIB), d.spread(500_000, 40_000_000), 120 + d.0.below(200));
    m.throttle = vec![Throttle { heat, cool, percent }];
    if d.chance(50) {
        m.throttle.push(Throttle { heat: 2 * heat, cool, percent: 2 * percent });
    }
}

/// Several kinds of pauses, reads too.
fn stalls(d: &mut Draw, m: &mut Model) {
    m.stall.clear();
    for _ in 0..1 + d.0.below(3) {
        let (on, time, random) = (d.of(&[On::Write, On::Read, On::Any]), d.spread(MS, 400 * MS), d.chance(50));
        let (every_bytes, every_commands) = if d.chance(50) { (d.spread(256 * KIB, 64 * MIB), 0) } else { (0, d.spread(20, 2000)) };
        m.stall.push(Stall { on, time, every_bytes, every_commands, random });
    }
}

fn counterfeit(d: &mut Draw, m: &mut Model) {
    let share = 1 + d.0.below(9);
    m.card.real_capacity = (m.card.capacity * share / 10 / m.card.sector * m.card.sector).max(m.nand.erase_block);
    m.card.beyond = d.of(&[Beyond::Wrap, Beyond::Drop, Beyond::Error]);
}

/// Bad blocks, levelling, reads that disturb.
fn wear(d: &mut Draw, m: &mut Model) {
    if m.ftl.kind == FtlKind::None {
        return;
    }
    m.wear = Wear {
        count: true,
        endurance: d.of(&[0, 300, 3000, 100_000]),
        spread: d.0.below(40),
        spare: 8 + d.0.below(64),
        bad: d.0.below(3),
        static_every: d.of(&[0, 16, 100]),
        read_disturb: d.of(&[0, 1000, 20_000]),
    };
}

/// A queue, several dies, a volatile cache.
fn queue(d: &mut Draw, m: &mut Model) {
    m.card.queue = d.of(&[2, 8, 32]);
    m.nand.dies = d.of(&[1, 2, 3, 4]);
    m.card.cache = d.of(&[0, 64 * KIB, MIB, 8 * MIB]);
    m.card.flush = d.spread(50 * US, 5 * MS);
}

/// Single blocks, stop commands, odd limits of the reader.
fn sending(d: &mut Draw, m: &mut Model) {
    m.host.transfer = d.of(&[Transfer::Single, Transfer::OpenEnded]);
    m.card.stop = d.spread(50 * US, 3 * MS);
    m.host.max_request = d.of(&[0, 12 * KIB, 60 * KIB, 120 * KIB, 252 * KIB, 1020 * KIB]) / m.card.sector * m.card.sector;
    m.host.jitter = d.spread(US, 128 * US);
}

/// Never written, large sectors, shortcuts, read-ahead without measure.
fn habits(d: &mut Draw, m: &mut Model) {
    m.card.state = State::Empty;
    m.nand.unwritten = d.of(&[Unwritten::Flat, Unwritten::AsWritten]);
    m.nand.unwritten_read = d.spread(5 * US, 300 * US);
    m.card.shortcut = d.of(&[Shortcut::None, Shortcut::Zeros, Shortcut::Ones, Shortcut::Both]);
    m.card.read_ahead = d.of(&[0, 8 * KIB, 48 * KIB, 512 * KIB, 2 * MIB]);
    m.card.combine = d.chance(50);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Card, Fault, Request};
    use std::collections::BTreeMap;

    /// Wide, valid, and each of them serves whatever lies on it.
    #[test]
    fn unusual_cards_are_cards() {
        let mut seen: BTreeMap<&str, u32> = BTreeMap::new();
        for seed in 0..1500 {
            let m = card(seed);
            assert!(m.name.starts_with("unusual-"), "{seed}: no valid draw");
            assert_eq!(m, card(seed));
            let (t, n) = (m.truth(), &m.nand);
            for (what, is) in [
                ("odd erase block", (n.erase_block >> n.erase_block.trailing_zeros()) > 3),
                ("three", n.erase_block >> n.erase_block.trailing_zeros() == 3),
                ("offset off the pages", !n.erase_block_offset.is_multiple_of(n.page)),
                ("write-through", m.ftl.kind == FtlKind::WriteThrough),
                ("in order", m.ftl.kind == FtlKind::LogBlock && m.ftl.log.order == LogOrder::InOrder),
                ("shared logs", m.ftl.kind == FtlKind::LogBlock && m.ftl.log.group != 1),
                ("put off", m.ftl.kind == FtlKind::PageMap && m.ftl.page.when == GcWhen::Preemptible),
                ("map cache", m.ftl.kind == FtlKind::PageMap && m.ftl.page.map_cache > 0),
                ("slc", t.slc_cache > 0),
                ("two steps of heat", m.throttle.len() > 1),
                ("stalls of reads", m.stall.iter().any(|s| s.on != On::Write)),
                ("counterfeit", t.real_capacity < m.card.capacity),
                ("levelling", m.wear.static_every > 0),
                ("queue", m.card.queue > 1),
                ("single blocks", m.host.transfer == Transfer::Single),
                ("empty", m.card.state == State::Empty),
            ] {
                *seen.entry(what).or_default() += u32::from(is);
            }
            if seed % 10 == 0 {
                let (mut card, mut now, mut rng) = (Card::new(&m, 1), 0, Rng::new(seed, 1));
                for k in 0..40 {
                    let at = rng.below(m.card.capacity / m.card.sector - 64) * m.card.sector;
                    let r = if k % 2 == 0 { Request::write(at, 64 * m.card.sector) } else { Request::read(at, m.card.sector) };
                    match card.submit(now, r) {
                        Ok(c) => now = c.done + 1_000_000,
                        Err(Fault::Io { at, .. }) => assert!(at >= t.real_capacity, "{seed}"),
                        Err(e) => panic!("{seed}: {e}"),
                    }
                }
            }
        }
        assert!(seen.values().all(|&n| n >= 30), "each happens: {seen:?}");
    }
}

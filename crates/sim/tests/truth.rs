//! The truth a model states is what its card does: boundaries, limits and costs of random cards, measured without noise.

use nandscope_sim::model::{Evict, FtlKind, Unwritten};
use nandscope_sim::{Card, Model, Request, Rng, random};

/// A card that is served one request after another.
struct Bench {
    card: Card,
    now: u64,
}

impl Bench {
    fn new(m: &Model) -> Bench {
        Bench { card: Card::new(m, 1), now: 0 }
    }

    fn took(&mut self, req: Request) -> u64 {
        let c = self.card.submit(self.now, req).expect("served");
        self.now = c.done;
        c.done - c.start
    }

    fn merges(&self) -> u64 {
        let k = self.card.counters();
        k.merges_partial + k.merges_full
    }
}

/// Random cards of one kind, without noise and without buffers in front of the flash.
fn plain(kind: FtlKind) -> impl Iterator<Item = Model> {
    (0..1500).map(|s| random::quiet(random::card(s))).filter(move |m| {
        m.ftl.kind == kind && m.slc.size == 0 && m.card.cache == 0 && m.card.real_capacity == m.card.capacity && m.ftl.block.small_log == 0
    })
}

#[test]
fn read_boundaries() {
    let mut seen = 0;
    for m in (0..600).map(|s| random::quiet(random::card(s))) {
        if m.card.read_ahead > 0 || m.nand.unwritten == Unwritten::Flat || m.card.real_capacity < m.card.capacity {
            continue;
        }
        let (t, s) = (m.truth(), m.card.sector);
        let mut b = Bench::new(&m);
        let mut step = |at: u64| {
            let mean = (b.took(Request::read(at - 2 * s, 2 * s)) + b.took(Request::read(at, 2 * s))) / 2;
            b.took(Request::read(at - s, 2 * s)).saturating_sub(mean)
        };
        let first = t.erase_block_offset + if t.erase_block_offset == 0 { t.erase_block } else { 0 };
        // A model without structure states sizes of 0.
        let n = &m.nand;
        if t.erase_block == 0 {
            assert!(!t.read_boundary_visible && !t.write_boundary_visible, "{}", m.name);
            continue;
        }
        assert_eq!(step(first), t.read_steps.erase_block_ns, "{}", m.name);
        if n.access_unit < n.erase_block {
            assert_eq!(step(first + n.access_unit), t.read_steps.access_unit_ns, "{}", m.name);
        }
        if n.page < n.access_unit {
            assert_eq!(step(first + n.page), t.read_steps.page_ns, "{}", m.name);
        }
        if n.page >= 4 * s {
            assert_eq!(step(first + n.page / 2), 0, "{}: nothing inside a page", m.name);
        }
        seen += 1;
    }
    assert!(seen > 300, "{seen}");
}

/// AUs far enough apart, beyond the FAT zone; None where the card has no room for `n` of them.
fn places(m: &Model, n: u64) -> Option<Vec<u64>> {
    let eb = m.nand.erase_block;
    let first = m.nand.erase_block_offset + m.ftl.block.fat_zone.div_ceil(eb) * eb + eb;
    (first + n * eb <= m.card.capacity).then(|| (0..n).map(|i| first + i * eb).collect())
}

#[test]
fn open_aus_in_linear_order() {
    let mut seen = 0;
    for m in plain(FtlKind::BlockMap) {
        let limit = m.ftl.block.open_linear;
        let unit = m.nand.write_unit;
        // The end of an AU has to stay out of reach: a full one closes by itself.
        let rounds = (m.nand.erase_block / unit - 1).min(12);
        for n in [limit, limit + 1] {
            let Some(aus) = places(&m, n) else { continue };
            let mut b = Bench::new(&m);
            for k in 0..rounds {
                for au in &aus {
                    b.took(Request::write(au + k * unit, unit));
                }
            }
            if n == limit {
                assert_eq!(b.merges(), 0, "{}: {limit} AUs are open at once", m.name);
            } else if matches!(m.ftl.block.evict, Evict::Lru | Evict::Fifo) && m.ftl.block.protect == 0 {
                assert!(b.merges() >= n * (rounds - 1), "{}: one more, and each write pays: {} of {}", m.name, b.merges(), n * rounds);
            } else {
                assert!(b.merges() > 0, "{}: one more pays", m.name);
            }
            seen += 1;
        }
    }
    assert!(seen > 800, "{seen}");
}

#[test]
fn open_aus_in_random_order() {
    let mut seen = 0;
    for m in plain(FtlKind::BlockMap) {
        let (limit, unit) = (m.ftl.block.open_random, m.nand.write_unit);
        let units = m.nand.erase_block / unit;
        let rounds = units.min(12) - 1;
        let mut order: Vec<u64> = (0..units).collect();
        let mut rng = Rng::new(m.nand.erase_block, limit);
        for i in 0..units as usize {
            order.swap(i, rng.below(units) as usize);
        }
        // No two in a row may follow each other, or that much is linear order.
        if order.windows(2).take(rounds as usize).any(|w| w[1] == w[0] + 1) {
            continue;
        }
        for n in [limit, limit + 1] {
            let Some(aus) = places(&m, n) else { continue };
            let mut b = Bench::new(&m);
            for &k in &order[..rounds as usize] {
                for au in &aus {
                    b.took(Request::write(au + k * unit, unit));
                }
            }
            if n == limit {
                assert_eq!(b.merges(), 0, "{}: {limit} AUs in random order", m.name);
            } else if limit == 0 {
                assert_eq!(b.merges(), rounds - 1, "{}: even one pays every time", m.name);
            } else {
                assert!(b.merges() > 0, "{}: one more pays", m.name);
            }
            seen += 1;
        }
    }
    assert!(seen > 700, "{seen}");
}

/// Cards with a log block for each data block have as many open AUs as log blocks.
#[test]
fn own_log_blocks_are_open_aus() {
    let mut seen = 0;
    for m in plain(FtlKind::LogBlock).filter(|m| m.ftl.log.group == 1) {
        let (limit, unit) = (m.ftl.log.pool, m.nand.write_unit);
        let rounds = (m.nand.erase_block / unit - 1).min(12);
        for n in [limit, limit + 1] {
            let Some(aus) = places(&m, n) else { continue };
            let mut b = Bench::new(&m);
            for k in 0..rounds {
                for au in &aus {
                    b.took(Request::write(au + k * unit, unit));
                }
            }
            if n == limit {
                assert_eq!(b.merges(), 0, "{}", m.name);
            } else {
                assert!(b.merges() >= n * (rounds - 1), "{}: {} of {}", m.name, b.merges(), n * rounds);
            }
            seen += 1;
        }
    }
    assert!(seen > 60, "{seen}");
}

#[test]
fn closing_costs_what_the_truth_says() {
    let mut seen = 0;
    for m in plain(FtlKind::BlockMap).filter(|m| m.ftl.block.evict == Evict::Lru) {
        let (t, unit) = (m.truth(), m.nand.write_unit);
        let Some(aus) = places(&m, m.ftl.block.open_linear + 1) else { continue };
        if m.nand.erase_block == unit || m.card.combine {
            continue;
        }
        let mut b = Bench::new(&m);
        let took: Vec<u64> = aus.iter().map(|&au| b.took(Request::write(au, unit))).collect();
        let (first, last) = (took[0], took[took.len() - 1]);
        assert_eq!(Some(last - first), t.close_cost_ns, "{}", m.name);
        seen += 1;
    }
    assert!(seen > 250, "{seen}");
}

#[test]
fn a_write_below_the_unit_costs_a_whole_one() {
    let mut seen = 0;
    for m in plain(FtlKind::PageMap).chain(plain(FtlKind::BlockMap)) {
        if m.card.combine || m.nand.write_unit < 4 * m.card.sector || m.host.max_request > 0 {
            continue;
        }
        let at = m.nand.erase_block_offset + 3 * m.nand.erase_block;
        // On the wire the small one is shorter, in the flash it is not.
        let unit = m.nand.write_unit;
        let wire = |len: u64| m.host.rate.checked_div(1).map_or(0, |r| len * (1_000_000_000_000 / r) / 1000);
        let took = |len| Bench::new(&m).took(Request::write(at, len)) - wire(len);
        let (half, one, two) = (took(unit / 2 / m.card.sector * m.card.sector), took(unit), took(2 * unit));
        assert!(half >= one && two >= one + m.nand.program, "{}: {half} {one} {two}", m.name);
        seen += 1;
    }
    assert!(seen > 300, "{seen}");
}

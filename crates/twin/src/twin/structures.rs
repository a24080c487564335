//! Candidates for the structure of a card: what the detectors named and their rivals, halves, doubles and neighbours, other kinds and
//! policies. A candidate is a card model whose costs are all 0.

use super::data::Data;
use crate::finding::Quantity;
use crate::units::{KIB, MIB};
use nandscope_sim::model::{Copies, Evict, FtlKind, GcWhen, LogOrder, MergeRandom, SlcFull, State};
use nandscope_sim::{Model, random};

/// Parts of a structure that are searched together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Block {
    /// Page, planes, erase block and offset, what is read ahead.
    Reads,
    /// Write unit, what is collected, how the host cuts.
    Writes,
    /// Mapping, counts, policies, caches.
    Mapping,
}

/// The simplest structure: no boundaries, no erase blocks to manage, the time of an access follows from its size.
pub fn plain(data: &Data) -> Option<Model> {
    let text = format!(
        "name = \"twin\"\n[card]\ncapacity = {}\nsector = {}\n[nand]\npage = {}\nerase_block = {}\n[ftl]\nkind = \"none\"\n",
        data.size,
        data.sector,
        data.sector,
        largest_power(data.size.min(4 * MIB)),
    );
    let mut m = Model::parse(&text, "twin").ok()?;
    m.host.flushes = data.flushes;
    if let Some(real) = data.real {
        m.card.real_capacity = real.min(data.size) / data.sector * data.sector;
    }
    Some(m)
}

fn largest_power(n: u64) -> u64 {
    1 << n.max(1).ilog2()
}

/// A structure with what the detectors say of sizes.
pub fn named(data: &Data, plain: &Model) -> Model {
    let first = |q| data.named(q).first().copied().filter(|&v| v > 0);
    let mut m = plain.clone();
    let page = first(Quantity::Page).or(first(Quantity::AccessUnit)).unwrap_or(4 * KIB).max(data.sector);
    let access = first(Quantity::AccessUnit).filter(|a| a % page == 0).unwrap_or(page);
    let erase = first(Quantity::EraseBlock).unwrap_or(4 * MIB);
    let offset = first(Quantity::EraseBlockOffset).unwrap_or(0);
    let unit = first(Quantity::WriteUnit).unwrap_or(access);
    for (page, access, unit) in [(page, access, unit), (page, access, access), (page, page, page), (data.sector, data.sector, data.sector)]
    {
        (m.nand.page, m.nand.access_unit, m.nand.write_unit) = (page, access, unit);
        (m.nand.erase_block, m.nand.erase_block_offset) = (erase, offset % erase.max(1) / data.sector * data.sector);
        if m.clone().checked().is_ok() {
            return m;
        }
    }
    plain.clone()
}

/// A structure with the erase blocks and write units of another, or itself where they do not go together.
pub fn with_blocks_of(m: &Model, other: &Model) -> Model {
    let mut v = m.clone();
    (v.nand.erase_block, v.nand.erase_block_offset) = (other.nand.erase_block, other.nand.erase_block_offset);
    v.nand.write_unit = other.nand.write_unit;
    v.checked().unwrap_or_else(|_| m.clone())
}

/// A page of flash that is mapped: those of large-block NAND have 2 KiB and more, and cards program two and more together.
const LEAST_UNIT: u64 = 4 * KIB;

/// A structure whose write unit is one that a mapping can have: reads without boundaries leave it at a sector, and mapping sectors takes long to replay.
pub fn with_unit(m: &Model, named: &Model) -> Model {
    let mut v = m.clone();
    if v.nand.write_unit < LEAST_UNIT {
        v.nand.write_unit = named.nand.write_unit.max(LEAST_UNIT);
    }
    v.checked().unwrap_or_else(|_| m.clone())
}

/// Erase blocks where nothing says which: the sizes that most cards declare (SD Physical Layer 4.13.1.8), 12 and 24 MiB with their halves among them, and 256 KiB.
pub const DECLARED: [u64; 12] =
    [256 * KIB, 512 * KIB, MIB, 2 * MIB, 4 * MIB, 8 * MIB, 16 * MIB, 32 * MIB, 3 * MIB, 6 * MIB, 12 * MIB, 24 * MIB];

/// Each kind of mapping over these sizes, as a place to begin: as the detectors have it, and a few that nobody proposed.
pub fn kinds(data: &Data, m: &Model, seed: u64) -> Vec<Model> {
    let mut out = proposed(data, m);
    if data.named(Quantity::EraseBlock).is_empty() {
        for size in DECLARED.into_iter().filter(|&s| s != m.nand.erase_block) {
            let mut v = m.clone();
            (v.nand.erase_block, v.nand.erase_block_offset) = (size, 0);
            let of = |d: &Model| (d.ftl.kind, d.ftl.block.evict, d.ftl.block.fat_zone, d.ftl.log.sequential, d.ftl.through.buffer);
            let plain = |d: &Model| matches!(of(d), (_, Evict::Lru, 0, false, 0)) && d.ftl.kind != FtlKind::None;
            // A page map hardly shows its erase blocks, but in the pieces that it is kept in.
            let shows = |d: &Model| d.ftl.kind != FtlKind::PageMap || d.ftl.page.map_span == size && d.card.behind == 0;
            out.extend(v.checked().map(|v| proposed(data, &v)).unwrap_or_default().into_iter().filter(|d| plain(d) && shows(d)));
        }
    }
    for k in 0..6 {
        let drawn = random::card(seed.wrapping_mul(97).wrapping_add(k));
        let mut d = with_kind(m, drawn.ftl.kind);
        let (close, units) = (d.ftl.page.clone(), d.nand.write_unit);
        d.ftl = drawn.ftl;
        d.ftl.page = close;
        d.ftl.page.unit = units;
        (d.ftl.block.close, d.ftl.block.close_random, d.ftl.log.close, d.ftl.block.merge_span) = (0, 0, 0, 0);
        out.push(d);
    }
    valid(out)
}

/// How writes may be waited for, without a mapping, where the host flushes after each: for all of the work after the data, for what the data do not
/// hide, or for work that begins with the command and is done by the end of the flush; each with what small writes may do.
pub fn waits(m: &Model) -> Vec<Model> {
    let mut out = vec![];
    for (overlap, behind) in [(false, 0), (true, 0), (true, UNDONE)] {
        for (combine, starts) in [(false, false), (true, false), (true, true)] {
            let mut v = with_kind(m, FtlKind::None);
            (v.card.overlap, v.card.behind, v.card.combine, v.card.combine_starts) = (overlap, behind, combine, starts);
            out.push(v);
        }
    }
    valid(out)
}

/// ns that a card may be busy after a write by the SD standard (Physical Layer 4.6.2.2). Where a flush follows each write, more would be waited for all the same.
const UNDONE: u64 = 250 * MS;

/// Each kind of mapping with the counts that the detectors name.
fn proposed(data: &Data, m: &Model) -> Vec<Model> {
    let counts = data.named(Quantity::OpenAusLinear);
    let n = counts.first().copied().unwrap_or(4).clamp(1, 256);
    let r = data.named(Quantity::OpenAusRandom).first().copied().unwrap_or(0).min(n);
    let fat = data.named(Quantity::FatZone).first().copied().unwrap_or(0) / data.sector * data.sector;
    let none = with_kind(m, FtlKind::None);
    let collecting = |k: &Model, starts: bool| {
        let mut k = k.clone();
        (k.card.combine, k.card.combine_starts, k.card.overlap) = (true, starts, true);
        k
    };
    // Work that is left undone hides what small writes cost: by itself it explains nothing either.
    let behind = |k: &Model, ms: u64| {
        let mut k = collecting(k, true);
        // A flush leaves nothing undone.
        if !k.host.flushes {
            k.card.behind = ms * MS;
        }
        k
    };
    let mut out = vec![collecting(&none, false)];
    out.extend([0, 1, 4, 16].map(|ms| behind(&none, ms)));
    out.push(none);
    for (random, evict) in [(r, Evict::Lru), (0, Evict::Lru), (n, Evict::Lru), (r, Evict::Fifo), (r, Evict::Random), (r, Evict::Counter)] {
        let mut b = with_kind(m, FtlKind::BlockMap);
        (b.ftl.block.open_linear, b.ftl.block.open_random, b.ftl.block.evict) = (n, random, evict);
        b.ftl.block.groups = if evict == Evict::Counter { (2..=5).rev().find(|g| n.is_multiple_of(*g)).unwrap_or(1) } else { 1 };
        out.push(b.clone());
        let mut h = b.clone();
        (h.ftl.block.copies, h.card.state) = (Copies::Held, State::Empty);
        out.push(h.clone());
        h.ftl.block.copies = Copies::Blocks;
        out.push(h);
        let mut k = b.clone();
        k.ftl.block.skips = true;
        out.push(k.clone());
        k.ftl.block.fills = true;
        out.push(k);
        b.ftl.block.fat_zone = fat;
        out.push(b);
    }
    for (group, per_group, sequential, order) in [
        (1, 1, false, LogOrder::PageMapped),
        (0, 0, true, LogOrder::PageMapped),
        (0, 0, false, LogOrder::PageMapped),
        (1, 1, false, LogOrder::InOrder),
    ] {
        let mut l = with_kind(m, FtlKind::LogBlock);
        let f = &mut l.ftl.log;
        (f.pool, f.group, f.per_group, f.sequential, f.order) = (n, group, per_group, sequential, order);
        out.push(l);
    }
    // Where all share the log blocks, no limit of AUs shows how many there are.
    let units = [m.nand.write_unit, 4 * KIB, 8 * KIB, 16 * KIB, 32 * KIB];
    for (k, unit) in units.into_iter().enumerate().filter(|&(k, u)| !units[..k].contains(&u)) {
        for pool in [2, 4, 8, 16].into_iter().filter(|&p| k > 0 || p != n) {
            let mut l = m.clone();
            l.nand.write_unit = unit;
            l = with_kind(&l, FtlKind::LogBlock);
            let f = &mut l.ftl.log;
            (f.pool, f.group, f.per_group, f.sequential, f.order) = (pool, 0, 0, true, LogOrder::PageMapped);
            out.push(l);
        }
    }
    let page = with_kind(m, FtlKind::PageMap);
    out.push(page.clone());
    // What a card that maps by page does with small writes, and a part of its map in memory: each by itself explains less than log blocks do.
    let maps = [(0, 0), (4 * MIB, 4), (m.nand.erase_block, 2), (m.nand.erase_block, 4)];
    let small = [collecting(&page, false), behind(&page, 0), behind(&page, 1), behind(&page, 8)];
    for (mut p, (span, pieces)) in small.into_iter().flat_map(|p| maps.map(|x| (p.clone(), x))) {
        if span > 0 {
            (p.ftl.page.map_span, p.ftl.page.map_cache, p.ftl.page.map_miss) = (span, pieces * span, 1);
        }
        out.push(p);
    }
    for buffer in [0, 4 * KIB, 16 * KIB, 24 * KIB] {
        let mut t = with_kind(m, FtlKind::WriteThrough);
        (t.ftl.through.buffer, t.ftl.through.fat_zone) = (buffer, fat);
        out.push(t.clone());
        if buffer > 0 {
            out.push(with_buffer(data, t, buffer, true));
        }
    }
    out
}

/// A buffer of one unit of programming, that small writes fill up: no part of it need be better by itself.
fn with_buffer(data: &Data, mut m: Model, buffer: u64, combine: bool) -> Model {
    m.ftl.through.buffer = buffer;
    (m.card.combine, m.card.combine_after, m.card.combine_streams, m.card.combine_starts) = (combine, 0, 0, false);
    with_write_unit(data, &mut m, buffer);
    m
}

/// The same sizes with another mapping, all its settings as they are by default.
fn with_kind(m: &Model, kind: FtlKind) -> Model {
    let mut m = m.clone();
    m.ftl.kind = kind;
    m.ftl.block.open_linear = m.ftl.block.open_linear.max(1);
    m.ftl.log.pool = m.ftl.log.pool.max(1);
    // Spare flash of the smallest share that leaves room to collect; its figure shows only when the card is full.
    m.ftl.page.over_provisioning = (8.0 * m.nand.erase_block as f64 / m.card.capacity as f64).max(0.07);
    m.ftl.page.unit = m.nand.write_unit;
    m
}

fn valid(all: Vec<Model>) -> Vec<Model> {
    all.into_iter().filter_map(|m| m.checked().ok()).collect()
}

/// ns of a millisecond.
pub const MS: u64 = 1_000_000;

/// Neighbours of a number.
fn near(n: u64) -> Vec<u64> {
    vec![n.saturating_sub(1), n + 1, n.saturating_sub(2), n + 2, n / 2, n * 2, n * 3 / 2, n * 2 / 3]
}

/// Sizes around one: halves, doubles, thirds.
pub fn around(n: u64) -> Vec<u64> {
    vec![n / 2, n * 2, n / 3, n * 3, n * 3 / 2, n * 2 / 3, n / 4, n * 4]
}

/// How a reader cuts: what is known of readers and kernels.
pub const CUTS: [u64; 11] = [0, 64 * KIB, 120 * KIB, 128 * KIB, 240 * KIB, 252 * KIB, 256 * KIB, 508 * KIB, 512 * KIB, MIB, 32 * KIB];

/// Structures that differ from this one in one part.
pub fn variants(data: &Data, m: &Model, block: Block) -> Vec<Model> {
    let mut out: Vec<Model> = vec![];
    let mut add = |change: &dyn Fn(&mut Model)| {
        let mut v = m.clone();
        change(&mut v);
        if v != *m {
            out.push(v);
        }
    };
    match block {
        Block::Reads => super::reads::reads(data, m, &mut add),
        Block::Writes => super::writes::writes(data, m, &mut add),
        Block::Mapping => mapping(data, m, &mut add),
    }
    valid(out)
}

/// Takes a change of a structure.
pub type Add<'a> = dyn FnMut(&dyn Fn(&mut Model)) + 'a;

/// The same with another write unit. Of three pages it needs an erase block of three; where none was found, the nearest that most cards declare.
pub fn with_write_unit(data: &Data, m: &mut Model, unit: u64) {
    (m.nand.write_unit, m.ftl.page.unit, m.ftl.block.merge_span) = (unit, unit, 0);
    if unit > 0 && !m.nand.erase_block.is_multiple_of(unit) && data.named(Quantity::EraseBlock).is_empty() {
        (m.nand.erase_block, m.nand.erase_block_offset) = (m.nand.erase_block.next_power_of_two() / 4 * 3, 0);
    }
}

fn mapping(data: &Data, m: &Model, add: &mut Add) {
    let linear = data.named(Quantity::OpenAusLinear);
    let random = data.named(Quantity::OpenAusRandom);
    let sector = data.sector;
    match m.ftl.kind {
        FtlKind::BlockMap => {
            let b = &m.ftl.block;
            let (n, r) = (b.open_linear, b.open_random);
            for count in linear.iter().copied().chain(near(n)).filter(|c| (1..=512).contains(c)) {
                add(&|v| (v.ftl.block.open_linear, v.ftl.block.open_random) = (count, if r == n { count } else { r.min(count) }));
                add(&|v| (v.ftl.block.open_linear, v.ftl.block.open_random) = (count, r.min(count)));
            }
            for count in random.iter().copied().chain(near(r)).chain([0, 1, 2, 3, n]).filter(|&c| c <= n) {
                add(&|v| v.ftl.block.open_random = count);
            }
            for evict in [Evict::Lru, Evict::Fifo, Evict::Random] {
                add(&|v| v.ftl.block.evict = evict);
            }
            for groups in (2..=5).filter(|g| n % g == 0) {
                add(&|v| (v.ftl.block.evict, v.ftl.block.groups) = (Evict::Counter, groups));
            }
            for merge in [MergeRandom::Rest, MergeRandom::Whole] {
                add(&|v| v.ftl.block.merge_random = merge);
            }
            // Back to the simplest table, from which other steps lead on.
            for (merge, combine) in
                [(MergeRandom::Rest, false), (MergeRandom::Whole, false), (MergeRandom::Rest, true), (MergeRandom::Whole, true)]
            {
                add(&|v| {
                    let b = &mut v.ftl.block;
                    (b.skips, b.fills, b.begins_full, b.full_closes, b.restarts) = (false, false, false, false, false);
                    (b.copies, b.merge_span, b.merge_random, v.card.state) = (Copies::All, 0, merge, State::Written);
                    (v.card.combine, v.card.combine_after, v.card.combine_streams, v.card.combine_starts) = (combine, 0, 0, false);
                });
            }
            add(&|v| v.ftl.block.skips = !v.ftl.block.skips);
            add(&|v| v.ftl.block.fills = !v.ftl.block.fills);
            add(&|v| v.ftl.block.begins_full = !v.ftl.block.begins_full);
            add(&|v| v.ftl.block.full_closes = !v.ftl.block.full_closes);
            add(&|v| v.ftl.block.restarts = !v.ftl.block.restarts);
            add(&|v| (v.ftl.block.begins_full, v.ftl.block.full_closes) = (true, true));
            // A log in order turns into one in random order, which a merge copies whole (BAST): each by itself may explain less than skips or fills do.
            for (begins, random) in [(true, r), (false, r), (true, n), (false, n)] {
                add(&|v| {
                    let b = &mut v.ftl.block;
                    (b.skips, b.fills, b.begins_full, b.full_closes) = (false, false, begins, true);
                    (b.open_random, b.merge_random, b.merge_span) = (random, MergeRandom::Whole, 0);
                });
            }
            add(&|v| (v.ftl.block.fills, v.ftl.block.open_random) = (true, 0));
            add(&|v| (v.ftl.block.skips, v.ftl.block.open_random) = (true, 0));
            add(&|v| v.ftl.block.copies = Copies::All);
            for copies in [Copies::Held, Copies::Blocks] {
                add(&|v| v.ftl.block.copies = copies);
                add(&|v| (v.ftl.block.copies, v.card.state) = (copies, State::Empty));
            }
            for part in [2, 4, 8] {
                add(&|v| v.ftl.block.merge_span = v.nand.erase_block / part);
            }
            add(&|v| v.ftl.block.merge_span = 0);
            // Where the experiment saw no zone, a few merges less at the start of the card are no reason to believe in one.
            let zones: Vec<u64> = data.named(Quantity::FatZone).into_iter().map(|z| z / sector * sector).filter(|&z| z > 0).collect();
            let around =
                [512 * KIB, MIB, 2 * MIB, 4 * MIB, 8 * MIB, 16 * MIB, m.nand.erase_block].into_iter().filter(|_| !zones.is_empty());
            for zone in zones.iter().copied().chain(around).chain([0]) {
                add(&|v| v.ftl.block.fat_zone = zone);
            }
            for small in [4 * KIB, 8 * KIB, 16 * KIB, 32 * KIB] {
                for log in [2, 4, 16] {
                    add(&|v| (v.ftl.block.small_write, v.ftl.block.small_log) = (small, log * v.nand.erase_block));
                }
            }
            add(&|v| (v.ftl.block.small_write, v.ftl.block.small_log) = (0, 0));
            let every = m.ftl.block.protect;
            let around = [every * 3 / 4, every * 5 / 4, every * 7 / 8, every * 9 / 8, every.saturating_sub(1), every + 1];
            for every in [0, 8, 16, 32, 64, 128].into_iter().chain(around.into_iter().filter(|_| every > 0)) {
                for kept in [0, n / 2] {
                    add(&|v| (v.ftl.block.protect, v.ftl.block.protected) = (every, kept));
                }
            }
        }
        FtlKind::LogBlock => {
            let l = &m.ftl.log;
            // One more AU is open in the sequential log block.
            let but_one = linear.iter().map(|n| n.saturating_sub(1));
            for pool in linear.iter().copied().chain(but_one).chain(near(l.pool)).chain([2, 4, 8, 16, 32]).filter(|c| (1..=256).contains(c))
            {
                add(&|v| v.ftl.log.pool = pool);
            }
            for group in [0, 1, 2, 4, 8, 16] {
                for per in [0, 1, 2, 4] {
                    add(&|v| (v.ftl.log.group, v.ftl.log.per_group) = (group, per));
                    add(&|v| (v.ftl.log.group, v.ftl.log.per_group, v.ftl.log.sequential) = (group, per, !v.ftl.log.sequential));
                    let pool = l.pool.saturating_sub(1).max(1);
                    add(&|v| (v.ftl.log.group, v.ftl.log.per_group, v.ftl.log.sequential, v.ftl.log.pool) = (group, per, true, pool));
                }
            }
            add(&|v| v.ftl.log.sequential = !v.ftl.log.sequential);
            for order in [LogOrder::PageMapped, LogOrder::InOrder] {
                add(&|v| (v.ftl.log.order, v.ftl.log.sequential) = (order, false));
            }
            for evict in [Evict::Lru, Evict::Fifo] {
                add(&|v| v.ftl.log.evict = evict);
            }
        }
        FtlKind::WriteThrough => {
            let buffers = [0, 512].into_iter().chain((12..=16).map(|k| 1 << k)).chain((12..=15).map(|k| 3 << k));
            for buffer in buffers.chain([m.nand.write_unit]).chain(around(m.ftl.through.buffer)) {
                let buffer = buffer / sector * sector;
                add(&|v| v.ftl.through.buffer = buffer);
                for combine in [false, true].into_iter().filter(|_| buffer >= LEAST_UNIT) {
                    add(&|v| *v = with_buffer(data, v.clone(), buffer, combine));
                }
            }
            for zone in data.named(Quantity::FatZone).into_iter().map(|z| z / sector * sector).chain([0, 512 * KIB, MIB, 4 * MIB]) {
                add(&|v| v.ftl.through.fat_zone = zone);
                // What is fast in the zone may have been taken for a write cache.
                add(&|v| (v.ftl.through.fat_zone, v.card.cache) = (zone, 0));
            }
        }
        FtlKind::PageMap => {
            for span in [MIB, 4 * MIB, m.nand.erase_block] {
                for cache in [span, 2 * span, 3 * span, 4 * span, 16 * span, 64 * span] {
                    // The cost of a miss is fitted; it must not be 0, or there is no cache to miss.
                    add(&|v| (v.ftl.page.map_span, v.ftl.page.map_cache, v.ftl.page.map_miss) = (span, cache, 1));
                }
            }
            let now = m.ftl.page.map_cache;
            for cache in [now / 2, now * 2].into_iter().filter(|_| now > 0) {
                add(&|v| v.ftl.page.map_cache = cache);
            }
            add(&|v| v.ftl.page.map_cache = 0);
            for when in [GcWhen::Foreground, GcWhen::Background] {
                add(&|v| v.ftl.page.when = when);
            }
        }
        FtlKind::None => {}
    }
    // Another kind, now that more is known of the rest.
    for k in proposed(data, m).into_iter().filter(|k| k.ftl.kind != m.ftl.kind && k.nand == m.nand) {
        add(&|v| (v.ftl, v.card.state) = (k.ftl.clone(), k.card.state));
    }
    super::reads::erase_blocks(data, m, add);
    let caches = data.named(Quantity::WriteCache);
    for size in caches.iter().copied().flat_map(|c| [c, c / 2, 2 * c]).filter(|&c| c >= 64 * KIB) {
        for full in [SlcFull::Direct, SlcFull::Fold] {
            for background in [false, true] {
                add(&|v| (v.slc.size, v.slc.full, v.slc.background) = (size / MIB * MIB, full, background));
            }
        }
        add(&|v| v.card.cache = size);
    }
    for size in data.fast.iter().copied() {
        for (full, background) in [(SlcFull::Direct, false), (SlcFull::Direct, true), (SlcFull::Fold, true)] {
            add(&|v| (v.slc.size, v.slc.full, v.slc.background, v.card.cache) = (size, full, background, 0));
        }
    }
    let now = m.slc.size;
    for size in [now / 16 * 17, now / 16 * 15, now / 64 * 65, now / 64 * 63].into_iter().filter(|&s| s > 0) {
        add(&|v| v.slc.size = size / sector * sector);
    }
    // A buffer that is not declared, and not flushed therefore.
    for size in [32 * KIB, 128 * KIB, 512 * KIB, 2 * MIB] {
        add(&|v| v.card.cache = size);
    }
    if m.card.cache > 0 {
        for size in around(m.card.cache) {
            add(&|v| v.card.cache = size / sector * sector);
        }
    }
    add(&|v| (v.slc.size, v.card.cache) = (0, 0));
}

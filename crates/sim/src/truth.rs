//! What a model says about itself: the answers a measurement should find. Follows from the model alone.

use crate::model::{FtlKind, LogOrder, Model};
use crate::nand::{Grid, ReadCost, SHIFT};
use serde::Serialize;

/// How a card finds its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Mapping {
    /// There is no structure.
    None,
    /// By erase block, with a limited number of open ones.
    Block,
    /// By erase block, with log blocks shared by groups of them.
    Log,
    /// By page, with garbage collection.
    Page,
    /// Every write rewrites its erase block at once.
    WriteThrough,
}

/// What a boundary of each level adds, in ns, to a request of two sectors that straddles it and no larger one; against
/// the mean of the requests before and behind it. 0 = that boundary cannot be seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Default)]
pub struct Steps {
    /// Between two pages of one access unit (write: 0).
    pub page_ns: u64,
    /// Between two access units of one erase block (write: between two write units).
    pub access_unit_ns: u64,
    /// Between two erase blocks.
    pub erase_block_ns: u64,
}

/// The truth about a card. Sizes in bytes; 0 = there is none.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Truth {
    /// Erase block as the translation layer uses it.
    pub erase_block: u64,
    /// Bytes of the erase blocks that share log blocks, where some do and not all: in which steps AUs can be written in turn. 0 =
    /// each has its own.
    pub shared: u64,
    /// Bytes before its first boundary.
    pub erase_block_offset: u64,
    /// Smallest unit at which a read boundary can show.
    pub page: u64,
    /// Largest unit below the erase block: planes read or programmed together.
    pub access_unit: u64,
    /// Size below which a write costs as much as one of that size; where each write rewrites, what it rewrites at a time.
    pub write_unit: u64,
    /// AUs that can be written in turn, each in linear order, without paying for closing one each time; None = no limit, or one that
    /// the card has too few AUs to reach. Where neighbours share log blocks, this many of the groups.
    pub open_aus_linear: Option<u32>,
    /// The same in random order; 0 = even one AU pays every time.
    pub open_aus_random: Option<u32>,
    /// Of both numbers, how many the card may hold for AUs written earlier: what stays open then depends on its history.
    pub open_aus_kept: u32,
    /// Bytes from the start that take random writes without opening an AU.
    pub fat_zone: u64,
    /// ns to close an AU of which one write unit was written.
    pub close_cost_ns: Option<u64>,
    /// How the card finds its data.
    pub mapping: Mapping,
    /// Whether reads show any boundary.
    pub read_boundary_visible: bool,
    /// What read boundaries cost.
    pub read_steps: Steps,
    /// Whether writes show any boundary.
    pub write_boundary_visible: bool,
    /// What write boundaries cost.
    pub write_steps: Steps,
    /// Bytes that really exist.
    pub real_capacity: u64,
    /// Bytes of the SLC cache on an empty card.
    pub slc_cache: u64,
    /// Bytes of the SLC cache on a card that is full of data.
    pub slc_cache_full: u64,
    /// Bytes of the volatile write cache.
    pub write_cache: u64,
    /// Bytes up to which writes go to a log of their own.
    pub small_write: u64,
    /// Bytes one read brings into the read cache at least.
    pub read_ahead: u64,
}

impl Model {
    /// The truth that follows from the model.
    pub fn truth(&self) -> Truth {
        let (n, b) = (&self.nand, &self.ftl.block);
        let read = self.read_steps();
        let write = self.write_steps();
        let block = self.ftl.kind == FtlKind::BlockMap;
        let none = self.ftl.kind == FtlKind::None && read == Steps::default() && write == Steps::default();
        let open = match self.ftl.kind {
            FtlKind::BlockMap => Some((b.open_linear, b.open_random)),
            FtlKind::LogBlock => self.log_open(),
            FtlKind::WriteThrough => Some((0, 0)),
            _ => None,
        };
        let size = |x: u64| if none { 0 } else { x };
        // A card of fewer AUs than it may keep open never closes one.
        let limit = |most: u64| (most < self.card.real_capacity / n.erase_block.max(1)).then_some(most as u32);
        Truth {
            erase_block: size(n.erase_block),
            shared: if self.ftl.kind == FtlKind::LogBlock && self.ftl.log.group > 1 { n.erase_block * self.ftl.log.group } else { 0 },
            erase_block_offset: size(n.erase_block_offset),
            // Nothing outside a card can time less than a microsecond.
            page: size(if read.page_ns >= 1000 { n.page } else { n.access_unit }),
            access_unit: size(n.access_unit),
            write_unit: size(match self.ftl.kind {
                // What is rewritten at a time decides, whatever is programmed in it.
                FtlKind::WriteThrough if self.ftl.through.buffer > 0 => self.ftl.through.buffer,
                FtlKind::WriteThrough => n.erase_block,
                _ if write.access_unit_ns > 0 => n.write_unit,
                _ => 0,
            }),
            open_aus_linear: open.and_then(|o| limit(o.0)),
            open_aus_random: open.and_then(|o| limit(o.1)),
            open_aus_kept: match (block && b.protect > 0, b.protected) {
                (false, _) => 0,
                (true, 0) => b.open_linear.saturating_sub(1) as u32,
                (true, n) => n as u32,
            },
            fat_zone: match self.ftl.kind {
                FtlKind::BlockMap => b.fat_zone,
                FtlKind::WriteThrough => self.ftl.through.fat_zone,
                _ => 0,
            },
            close_cost_ns: open.filter(|o| o.0 > 0).map(|_| {
                if self.ftl.kind == FtlKind::LogBlock {
                    // A full merge copies the whole block and erases it and its log block.
                    return self.ftl.log.close + 2 * n.erase + n.erase_block / n.write_unit * n.copy;
                }
                let span = if b.merge_span == 0 { n.erase_block } else { b.merge_span };
                // Levelling after every erasure moves another block each time.
                let moved = if self.wear.static_every == 1 { n.erase + n.erase_block / n.write_unit * n.copy } else { 0 };
                b.close + n.erase + (span / n.write_unit - 1) * n.copy + moved
            }),
            mapping: match self.ftl.kind {
                FtlKind::None => Mapping::None,
                FtlKind::BlockMap => Mapping::Block,
                FtlKind::LogBlock => Mapping::Log,
                FtlKind::PageMap => Mapping::Page,
                FtlKind::WriteThrough => Mapping::WriteThrough,
            },
            read_boundary_visible: read != Steps::default(),
            read_steps: read,
            write_boundary_visible: write != Steps::default(),
            write_steps: write,
            real_capacity: self.card.real_capacity,
            slc_cache: self.slc.size,
            slc_cache_full: if self.slc.dynamic { self.slc.least } else { self.slc.size },
            write_cache: self.card.cache,
            small_write: if block { b.small_write } else { 0 },
            read_ahead: self.card.read_ahead,
        }
    }

    /// How many data blocks a log-block layer takes in turn without a merge for each write: as many as there are log
    /// blocks, where each block has its own. In random order the log of a block fills after as many writes as it has
    /// pages, which is one merge an AU, as with linear order. Where a few neighbours share log blocks, as many of such groups can be
    /// written in turn, and a log block kept for linear order counts, too. Logs that must be in order take no random write
    /// without a merge. Where all share all, there is no such number.
    fn log_open(&self) -> Option<(u64, u64)> {
        let l = &self.ftl.log;
        let random = if l.order == LogOrder::InOrder { 0 } else { l.pool };
        (l.group > 0).then_some((l.pool + l.sequential as u64, random))
    }

    fn read_steps(&self) -> Steps {
        let (grid, cost, n) = (Grid::new(self), ReadCost::new(self), &self.nand);
        let s = (self.card.sector >> SHIFT).max(1);
        let step = |boundary: u64| {
            let x = n.erase_block * 4 / 512 + boundary / 512;
            let one = |a: u64, b: u64| cost.of(&grid, a, b).0;
            one(x - s, x + s).saturating_sub((one(x - 2 * s, x) + one(x, x + 2 * s)) / 2)
        };
        Steps {
            page_ns: if n.page < n.access_unit { step(n.page) } else { 0 },
            access_unit_ns: if n.access_unit < n.erase_block { step(n.access_unit) } else { 0 },
            erase_block_ns: step(0),
        }
    }

    fn write_steps(&self) -> Steps {
        let n = &self.nand;
        let fill = if n.rest_rate == 0 { 0 } else { (n.write_unit as u128 * 1_000_000_000 / u128::from(n.rest_rate)) as u64 };
        let unit = n.program + fill;
        Steps { page_ns: 0, access_unit_ns: if n.write_unit > self.card.sector { unit } else { 0 }, erase_block_ns: unit }
    }
}

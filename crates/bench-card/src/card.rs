//! Parameters of a card and how they are drawn.

use crate::chance::Chance;

/// How a card translates addresses.
#[derive(Clone, Copy, PartialEq)]
pub enum Mapping {
    /// By erase block, each open one with a log block of its own.
    Block,
    /// By erase block, with a pool of log blocks that all share (FAST).
    Pool,
    /// By page.
    Page,
}

/// What a card does with small writes that go on where the last one ended.
#[derive(Clone, Copy, PartialEq)]
pub enum Gather {
    /// Nothing: each is programmed.
    None,
    /// Fills up the unit of the last stream only.
    Last,
    /// Fills up a unit of each open erase block.
    Each,
}

/// A card. Times in ns, sizes in bytes.
#[derive(Clone)]
pub struct Card {
    /// What it reports.
    pub size: u64,
    /// What it holds.
    pub real: u64,
    /// A counterfeit wraps around (true) or drops what lies beyond (false).
    pub wraps: bool,
    /// Translation.
    pub mapping: Mapping,
    /// Erase block (superblock).
    pub block: u64,
    /// Start of the first erase block.
    pub offset: u64,
    /// Page of one plane.
    pub page: u64,
    /// Multi-plane page: what is programmed and sensed at once.
    pub unit: u64,
    /// Sensing a page.
    pub sense: f64,
    /// Programming a unit.
    pub program: f64,
    /// Bits a cell, each with pages of its own that take their own time: of a log they come by turns. 1 = all pages alike; none is drawn.
    pub speeds: u64,
    /// Erasing a block.
    pub erase: f64,
    /// One byte between flash and controller.
    pub bus: f64,
    /// Sequential log blocks; `open` of the block-mapped, log blocks of a pool.
    pub open: usize,
    /// Of them, how many may be written in random order; 0 = each write out of order is a merge.
    pub random: usize,
    /// The oldest goes (true) or the least recently used (false).
    pub oldest: bool,
    /// Going to another erase block than the last.
    pub switch: f64,
    /// Looking up another erase block in the map.
    pub lookup: f64,
    /// Small writes in sequence.
    pub gather: Gather,
    /// A unit programmed twice takes two units of the log.
    pub wasteful: bool,
    /// A log that holds every unit takes the place of its block in whatever order they came.
    pub mapped_inside: bool,
    /// Log is left with the part before the first write uncopied.
    pub starts_anywhere: bool,
    /// Erase blocks at the start of the card that take small writes in any order.
    pub fat: u64,
    /// Wear levelling moves a block after so many merges; 0 = never.
    pub level_every: u64,
    /// Work that may stay behind in memory, in ns; writes are acknowledged before it is done.
    pub buffer: f64,
    /// Bytes read ahead after sequential reads.
    pub ahead: u64,
    /// Whether it was filled before.
    pub filled: bool,
    /// SLC cache; 0 = none.
    pub slc: u64,
    /// Page-mapped: bytes of the card whose mapping is in memory; 0 = all.
    pub reach: u64,
    /// Page-mapped: bytes of one piece of the map.
    pub segment: u64,
    /// Page-mapped: share of spare flash.
    pub spare: f64,
    /// Rate lost for each stream beyond `free_streams`, as a share of the time for the same bytes.
    pub slope: f64,
    /// Streams at full rate where `slope` is not 0.
    pub free_streams: usize,
    /// A flush returns at once and leaves in memory what is there.
    pub defers: bool,
    /// How it gets hot; no card is drawn with it.
    pub heat: Option<Heat>,
}

/// One body that takes up heat while the card works and gives it off at a rate in proportion to its temperature. Temperatures are above that
/// of the air, as a share of where full load would lead.
#[derive(Clone, Copy)]
pub struct Heat {
    /// Seconds after which what it gives off has fallen by a factor of e.
    pub tau: f64,
    /// From here on it works more slowly, ...
    pub on: f64,
    /// ... until it is cooler than this.
    pub off: f64,
    /// By this factor; it takes up so much less heat then.
    pub slower: f64,
}

/// Names of the kinds that can be drawn.
pub const KINDS: [&str; 10] = ["block", "switch", "pool", "page", "gradual", "single", "bend", "fresh", "fake", "cached"];

impl Card {
    /// Draws a card of a kind; None for an unknown kind.
    ///
    /// Figures from data sheets: SLC senses in 25 us and programs in 200 to 300 us, MLC 50 to 60 us and 0.6 to 1.4 ms, TLC 60 to 110 us and 1.2 to 2.6 ms;
    /// erasing takes 1.5 to 10 ms; 64 to 384 pages a block; one to four planes, one or two dies interleaved; 40 to 400 MB/s between chip and controller.
    pub fn draw(kind: &str, c: &mut Chance) -> Option<Self> {
        let mapping = match kind {
            "block" | "switch" | "fresh" | "fake" | "cached" => Mapping::Block,
            "pool" => Mapping::Pool,
            "page" | "gradual" | "single" | "bend" => Mapping::Page,
            _ => return None,
        };
        let (sense, program, erase, pages) = match c.below(4) {
            0 => (2.5e4, c.span(2e5, 3e5), c.span(1.5e6, 2e6), 64),
            1 | 2 => (c.span(5e4, 6e4), c.span(6e5, 1.4e6), c.span(2e6, 5e6), c.of(&[128, 256])),
            _ => (c.span(6e4, 1.1e5), c.span(1.2e6, 2.6e6), c.span(4e6, 1e7), c.of(&[192, 256, 384])),
        };
        let page = if pages == 64 { c.of(&[2048, 4096]) } else { c.of(&[4096, 8192, 8192, 16384]) };
        let planes = c.of(&[1, 2, 2, 4]);
        let unit = page * planes;
        let mut block = unit * pages * c.of(&[1, 1, 2, 4]);
        while block < 512 << 10 {
            block *= 2;
        }
        while block > 32 << 20 {
            block /= 2;
        }
        let size = (c.span(1.8e9, 6.6e10) / 524_288.0) as u64 * 524_288;
        let open = if c.with(0.15) { 1 } else { (c.span(2.0, 18.0) as usize).max(2) };
        let random = match c.below(5) {
            0 => 0,
            1 | 2 => open,
            _ => 1 + c.below(open as u64) as usize,
        };
        let offset = if c.with(0.06) { block / c.of(&[2, 4]) } else { 0 };
        let gather = c.of(&[Gather::None, Gather::Last, Gather::Each, Gather::Each]);
        let mut card = Card {
            size,
            real: size,
            wraps: c.with(0.5),
            mapping,
            block,
            offset,
            page,
            unit,
            sense,
            program,
            speeds: 1,
            erase,
            bus: 1000.0 / c.of(&[40.0, 100.0, 200.0, 400.0]),
            open,
            random,
            oldest: c.with(0.25),
            switch: if c.with(0.5) { 0.0 } else { c.span(1e5, 2e6) },
            lookup: if c.with(0.2) { 0.0 } else { c.span(3e4, 4e5) },
            gather,
            wasteful: c.with(0.35),
            mapped_inside: c.with(0.7),
            starts_anywhere: c.with(0.4),
            fat: if c.with(0.3) { 1 + c.below(3) } else { 0 },
            level_every: if c.with(0.3) { 16 + c.below(100) } else { 0 },
            buffer: if c.with(0.3) { c.span(1e6, 3e7) } else { 0.0 },
            ahead: if c.with(0.5) { c.of(&[8 << 10, 32 << 10, 128 << 10]) } else { 0 },
            filled: c.with(0.85),
            slc: 0,
            reach: 0,
            segment: 4 << 20,
            spare: c.span(0.04, 0.2),
            slope: 0.0,
            free_streams: 0,
            defers: false,
            heat: None,
        };
        match kind {
            "switch" => card.switch = c.span(3e6, 1.2e7),
            "pool" => card.open = 2 + c.below(14) as usize,
            "fresh" => card.filled = false,
            "fake" => card.real = card.size / c.of(&[2, 4, 8, 16]) / 1_048_576 * 1_048_576,
            "page" => {
                card.slc = if c.with(0.6) { cache(c) } else { 0 };
                card.reach = if c.with(0.6) { card.segment << c.below(9) } else { 0 };
            }
            "cached" => card.slc = cache(c),
            "gradual" => {
                card.free_streams = c.of(&[1, 2, 2, 3]);
                card.slope = c.span(0.1, 0.4);
                card.gather = Gather::Last;
            }
            "single" => card.gather = Gather::Last,
            "bend" => {
                card.segment = card.block;
                card.reach = card.segment * (2 + c.below(3));
            }
            _ => {}
        }
        if mapping == Mapping::Page {
            // The map is kept whole in memory here.
            card.size = card.size.min(unit << 22);
            card.real = card.size;
            card.offset = 0;
            card.fat = 0;
            card.switch = 0.0;
        }
        Some(card)
    }

    fn heat(&mut self) -> &mut Heat {
        self.heat.get_or_insert(Heat { tau: 100.0, on: 0.8, off: 0.7, slower: 1.5 })
    }

    /// Sets one parameter by name; false for an unknown name or a value that is no number.
    pub fn set(&mut self, key: &str, value: &str) -> bool {
        let Ok(v) = value.parse::<f64>() else {
            return false;
        };
        match key {
            "heat_tau" => self.heat().tau = v,
            "heat_on" => self.heat().on = v,
            "heat_off" => self.heat().off = v,
            "heat_slower" => self.heat().slower = v,
            "defers" => self.defers = v != 0.0,
            "size" => {
                self.size = v as u64;
                self.real = self.real.min(self.size);
            }
            "real_bytes" => self.real = v as u64,
            "erase_block" => self.block = (v as u64).max(self.unit),
            "offset" => self.offset = v as u64,
            "page" => self.page = v as u64,
            "unit" => self.unit = v as u64,
            "open" => self.open = (v as usize).max(1),
            "random" => self.random = v as usize,
            "switch_ms" => self.switch = v * 1e6,
            "program_us" => self.program = v * 1e3,
            "sense_us" => self.sense = v * 1e3,
            "speeds" => self.speeds = (v as u64).clamp(1, 3),
            "lookup_us" => self.lookup = v * 1e3,
            "buffer_ms" => self.buffer = v * 1e6,
            "slc" => self.slc = v as u64,
            "reach" => self.reach = v as u64,
            "slope" => self.slope = v,
            "free_streams" => self.free_streams = v as usize,
            "fat" => self.fat = v as u64,
            "level_every" => self.level_every = v as u64,
            "read_ahead" => self.ahead = v as u64,
            "filled" => self.filled = v != 0.0,
            "wraps" => self.wraps = v != 0.0,
            _ => return false,
        }
        true
    }

    /// Programming one unit of which so many bytes come over the bus.
    pub fn write_unit(&self, bytes: u64) -> f64 {
        self.program + bytes as f64 * self.bus
    }

    /// Programming the n-th unit of a log: lower pages of MLC take a fourth of what upper ones do, the three of TLC about 1 to 3 to 6 (data sheets).
    pub fn program_of(&self, n: u64) -> f64 {
        self.program * [&[1.0][..], &[0.4, 1.6], &[0.3, 0.9, 1.8]][self.speeds as usize - 1][(n % self.speeds) as usize]
    }

    /// Sensing the n-th unit of a block: 50 to 75 us in MLC, 60 to 100 in TLC.
    pub fn sense_of(&self, n: u64) -> f64 {
        self.sense * [&[1.0][..], &[0.8, 1.2], &[0.75, 1.0, 1.25]][self.speeds as usize - 1][(n % self.speeds) as usize]
    }

    /// Programming a unit of the SLC cache: one bit a cell takes a third of the time or less (the figures of `draw`).
    pub fn program_slc(&self) -> f64 {
        0.3 * self.program
    }

    /// Sensing a page there, in the same way.
    pub fn sense_slc(&self) -> f64 {
        0.4 * self.sense
    }

    /// Copying one unit inside the card.
    pub fn copy_unit(&self) -> f64 {
        self.sense + self.program + 2.0 * self.unit as f64 * self.bus
    }

    /// Fetching a piece of the map.
    pub fn fetch(&self) -> f64 {
        self.sense + self.page as f64 * self.bus
    }

    /// A full merge: everything copied, then the old block erased.
    pub fn full_merge(&self) -> f64 {
        (self.block / self.unit) as f64 * self.copy_unit() + self.erase
    }

    /// Bytes that the first erase block lacks.
    fn lead(&self) -> u64 {
        if self.offset > 0 { self.block - self.offset % self.block } else { 0 }
    }

    /// Erase block of a place; the first may be short.
    pub fn block_of(&self, at: u64) -> u64 {
        (at + self.lead()) / self.block
    }

    /// Start of an erase block.
    pub fn start_of(&self, block: u64) -> u64 {
        (block * self.block).saturating_sub(self.lead())
    }
}

/// A rest longer than this, in ns, is used to empty the SLC cache. Assumed.
pub const REST: f64 = 1e8;

/// Size of an SLC cache: a few MB to 2 GB.
fn cache(c: &mut Chance) -> u64 {
    (c.span(8e6, 2e9) as u64) >> 20 << 20
}

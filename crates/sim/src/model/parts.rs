//! The tables of a card model, each with its keys.

use super::kinds::*;

/// The machine and the reader around the card.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Host {
    /// ns a command costs outside the card: software, interrupt, USB.
    pub command: u64,
    /// Bytes a second on the wire; 0 = no limit.
    pub rate: u64,
    /// Bytes after which a request is split in several commands; 0 = never.
    pub max_request: u64,
    /// ns for each further command of a split request, on top of what a command costs.
    pub split: u64,
    /// ns, standard deviation of the normal part of the jitter of a command.
    pub jitter: u64,
    /// ns, the smallest delay of the heavy tail (Pareto with exponent 2).
    pub tail: u64,
    /// How requests are sent.
    pub transfer: Transfer,
    /// One command in so many gets a tail delay; 0 = none.
    pub tail_every: u64,
    /// ns, the largest tail delay.
    pub tail_cap: u64,
    /// ns at whose multiples answers come, as in the microframes of USB; 0 = at any time.
    pub tick: u64,
    /// ns of a command that asks for the status after every write; 0 = none is sent.
    pub status: u64,
    /// A flush follows every write and is part of it, as hosts do where a card declares a write cache.
    pub flushes: bool,
    /// ns of one look at a busy card.
    pub poll: u64,
    /// ns a call of the file library costs by itself.
    pub call: u64,
    /// Bytes a second at which the file library copies between buffers; 0 = no limit.
    pub copy: u64,
    /// ns between two calls of a benchmark.
    pub pause: u64,
    /// Bytes of the file library's buffer: one sector on a microcontroller; 0 = no such library is known.
    pub buffer: u64,
    /// The library keeps a sector of the FAT apart from the data.
    pub fat_buffer: bool,
}

/// The controller and what it claims.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct CardPart {
    /// Bytes the host may address.
    pub capacity: u64,
    /// Bytes of the smallest access.
    pub sector: u64,
    /// ns the controller spends on any command.
    pub command: u64,
    /// Bytes a second the controller can move; 0 = no limit.
    pub rate: u64,
    /// Bytes that really exist; 0 = all of them.
    pub real_capacity: u64,
    /// What happens behind `real_capacity`.
    pub beyond: Beyond,
    /// Bytes after which addresses begin anew, each time with `real_capacity` of flash: a chain; 0 = never.
    pub repeats: u64,
    /// Bytes written last that are returned whatever the flash keeps, until others displace them or the card is taken out.
    pub front: u64,
    /// What the card keeps of what is written, in the pieces of flash that fail.
    pub keeps: Keeps,
    /// One piece of 4 KiB in so many fails; 0 and 1 = all.
    pub fails_every: u64,
    /// What the card held before the first request.
    pub state: State,
    /// Bytes the card remembers around the last read; 0 = no read cache.
    pub read_ahead: u64,
    /// Collects small writes that follow each other inside one write unit.
    pub combine: bool,
    /// So many writes must each have gone on where the last one ended before one is collected; 0 = any write is.
    pub combine_after: u64,
    /// Write units that are collected side by side, each of a stream of its own; 0 and 1 = one.
    pub combine_streams: u64,
    /// A write unit is collected from its start on only: the whole old unit is read when that begins (copy-back with data input), and reads leave it
    /// in its buffer; a write that begins elsewhere is a read-modify-write at once.
    pub combine_starts: bool,
    /// The data of a write come in while the write units before are programmed.
    pub overlap: bool,
    /// ns of work that may be left undone when a write is acknowledged.
    pub behind: u64,
    /// Streams of writes that are served at the full rate; 0 = any number.
    pub streams: u64,
    /// ns that each write unit takes more for each further stream.
    pub stream_cost: u64,
    /// Bytes a second for which each further stream adds time, of those that go into the registers of the flash or fill up a unit; 0 = none.
    pub stream_rate: u64,
    /// A stream that does not go on for so many writes is forgotten.
    pub stream_memory: u64,
    /// Streams that are known at most, the oldest forgotten first; 0 = any number.
    pub stream_table: u64,
    /// ns a discard command costs.
    pub discard: u64,
    /// What a discarded place reads as.
    pub discarded: Discarded,
    /// Bytes beside a discard of less than an erase block that lose data.
    pub discard_harms: u64,
    /// Has a discard after which the old data cannot be read, as eMMC has and SD cards have not.
    pub secure_discard: bool,
    /// ns a flush costs, on top of what has to be written.
    pub flush: u64,
    /// A flush returns before what the write cache holds is on the flash.
    pub flush_defers: bool,
    /// ns at the end of an open-ended write.
    pub stop: u64,
    /// Blocks announced with ACMD23 are erased ahead and need not be kept.
    pub pre_erase: bool,
    /// ns of a command that announces the length of a write; ACMD23 takes two.
    pub announce: u64,
    /// ns the card is busy after the data of every write command, before it does anything with them.
    pub accept: u64,
    /// Commands the card can hold in its queue; 0 = none.
    pub queue: u64,
    /// Bytes of the volatile write cache; 0 = none.
    pub cache: u64,
    /// ns that a read waits at most for what is being written from the cache.
    pub read_waits: u64,
    /// Data the card does not have to program.
    pub shortcut: Shortcut,
}

/// The flash and how long it takes.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Nand {
    /// Bytes of a page.
    pub page: u64,
    /// Bytes of the pages read or programmed together (planes).
    pub access_unit: u64,
    /// Bytes below which a write costs as much as one of this size.
    pub write_unit: u64,
    /// Dies that can work at the same time behind a queue.
    pub dies: u64,
    /// Bytes of an erase block as the FTL uses it: the AU.
    pub erase_block: u64,
    /// Bytes before the first boundary of an erase block.
    pub erase_block_offset: u64,
    /// ns to bring one access unit into the registers.
    pub sense: u64,
    /// ns to take a further page out of the registers.
    pub next_page: u64,
    /// ns to find another erase block (map, die).
    pub lookup: u64,
    /// Whether the next access unit is sensed while this one is on the wire.
    pub pipelined: bool,
    /// No access unit is sensed before the one before it is on the wire.
    pub one_ahead: bool,
    /// What a read of never written flash costs.
    pub unwritten: Unwritten,
    /// ns of such a read, when flat.
    pub unwritten_read: u64,
    /// ns to program one write unit.
    pub program: u64,
    /// Bytes a second at which the data of a write go into the registers of the flash; 0 = at once.
    pub load_rate: u64,
    /// Bytes a second at which the rest of a partly written unit is filled up; 0 = at once.
    pub rest_rate: u64,
    /// ns at the end of each write command.
    pub commit: u64,
    /// ns of a write in another erase block than the write before it (map, registers, log blocks), on top of all merges.
    pub change: u64,
    /// ns to copy one write unit inside the card.
    pub copy: u64,
    /// ns to erase one erase block.
    pub erase: u64,
}

/// A table of open AUs with a log each.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct BlockMap {
    /// How many AUs can be open.
    pub open_linear: u64,
    /// How many of them can be in random order; 0 = none.
    pub open_random: u64,
    /// Which one is closed when there is no room.
    pub evict: Evict,
    /// `counter`: groups of the table, taken in turn with every write.
    pub groups: u64,
    /// One in so many AUs that have to be opened again is kept open from then on; 0 = none.
    pub protect: u64,
    /// How many can be kept open at most; 0 = all but one.
    pub protected: u64,
    /// ns to close an AU, on top of copying and erasing.
    pub close: u64,
    /// ns to close one written in random order, instead of `close`; 0 = the same.
    pub close_random: u64,
    /// Bytes of the blocks an AU is merged by; 0 = the whole AU.
    pub merge_span: u64,
    /// What closing an AU in random order copies.
    pub merge_random: MergeRandom,
    /// Whether a merge copies what was never written.
    pub copies: Copies,
    /// Whether a write further on in an AU counts as in order; what it leaves out is copied by the merge.
    pub skips: bool,
    /// Whether what lies before the first write of a log, and what a write further on leaves out, is copied at once.
    pub fills: bool,
    /// A log begins with what lies before its first write, copied at once.
    pub begins_full: bool,
    /// An AU in random order whose log is used up is closed.
    pub full_closes: bool,
    /// A write at the start of an AU that is open in order merges it and begins its log anew, as FAST does with its sequential log block
    /// (Lee et al. 2007).
    pub restarts: bool,
    /// Bytes from the start that take random writes without opening an AU; 0 = none.
    pub fat_zone: u64,
    /// Bytes up to which a write goes to a log of its own for small writes; 0 = none.
    pub small_write: u64,
    /// Bytes of that log.
    pub small_log: u64,
}

/// Every write rewrites the erase blocks it touches (ChaN's cards, C13, C14).
#[derive(Clone, Debug, PartialEq, Default)]
pub struct WriteThrough {
    /// Bytes of the buffer at whose boundaries a rewrite happens; 0 = at the end of the command.
    pub buffer: u64,
    /// Bytes from the start that are programmed without a read-modify-write; 0 = none.
    pub fat_zone: u64,
}

/// Log blocks shared by groups of data blocks.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct LogBlock {
    /// Data blocks that share log blocks (N); 0 = all of them.
    pub group: u64,
    /// Log blocks a group may have (K); 0 = all of them.
    pub per_group: u64,
    /// Log blocks in all.
    pub pool: u64,
    /// One more log block for writes that start a block and go on in order.
    pub sequential: bool,
    /// How pages lie in a log block.
    pub order: LogOrder,
    /// Which log block is merged when there is none left.
    pub evict: Evict,
    /// ns of a partial or full merge, on top of copying and erasing.
    pub close: u64,
}

/// A map of every unit with garbage collection.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct PageMap {
    /// Spare flash over the capacity, as a share of the capacity.
    pub over_provisioning: f64,
    /// Bytes of one entry of the map; 0 = the write unit.
    pub unit: u64,
    /// Erased blocks kept in hand.
    pub reserve: u64,
    /// Which block is emptied.
    pub gc: Gc,
    /// Blocks compared by `d-choice`.
    pub choices: u64,
    /// When garbage is collected.
    pub when: GcWhen,
    /// ns of rest before collection begins in the background.
    pub idle: u64,
    /// Erased blocks collection in the background aims at.
    pub goal: u64,
    /// Bytes of the card whose map fits in memory; 0 = all.
    pub map_cache: u64,
    /// Bytes of the card that one piece of the map covers.
    pub map_span: u64,
    /// ns to fetch a piece of the map.
    pub map_miss: u64,
    /// ns to save a piece of the map that writes changed, before another takes its place in memory.
    pub map_save: u64,
}

/// A cache of flash used with one bit a cell.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Slc {
    /// Bytes it can hold; 0 = there is none.
    pub size: u64,
    /// Shrinks as the card fills.
    pub dynamic: bool,
    /// Bytes that are left of it on a full card, where it shrinks.
    pub least: u64,
    /// ns to program one write unit in it.
    pub program: u64,
    /// ns to read one write unit back when it is folded, on top of writing it to its place.
    pub fold: u64,
    /// What happens when it is full.
    pub full: SlcFull,
    /// ns of rest before folding begins; 0 with `background` false = never.
    pub idle: u64,
    /// Folds while the card rests.
    pub background: bool,
}

/// Wear of the flash.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Wear {
    /// Erasures of each block are counted even where nothing wears out.
    pub count: bool,
    /// Erasures a block stands on average; 0 = any number.
    pub endurance: u64,
    /// Percent by which single blocks lie above or below that.
    pub spread: u64,
    /// Spare blocks of a card that is not page-mapped.
    pub spare: u64,
    /// Blocks bad from the start.
    pub bad: u64,
    /// A block that hardly wears is moved after so many erasures; 0 = never.
    pub static_every: u64,
    /// A block is rewritten after so many reads of it; 0 = never.
    pub read_disturb: u64,
}

/// A card that slows down when it is hot.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Throttle {
    /// Bytes moved, less what has cooled off, above which the card is slower.
    pub heat: u64,
    /// Bytes a second that cool off.
    pub cool: u64,
    /// Percent of the usual time a command then takes.
    pub percent: u64,
}

/// How the card finds its data.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Ftl {
    /// Which kind.
    pub kind: FtlKind,
    /// Settings of `block-map`.
    pub block: BlockMap,
    /// Settings of `log-block`.
    pub log: LogBlock,
    /// Settings of `write-through`.
    pub through: WriteThrough,
    /// Settings of `page-map`.
    pub page: PageMap,
}

/// A pause for work the host did not ask for.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Stall {
    /// Operations that run into it.
    pub on: On,
    /// ns it lasts.
    pub time: u64,
    /// One after so many bytes; 0 = counted in commands.
    pub every_bytes: u64,
    /// One after so many commands; 0 = counted in bytes.
    pub every_commands: u64,
    /// Drawn by chance with that mean instead of regular.
    pub random: bool,
}

/// Something that goes wrong.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct FaultRule {
    /// What.
    pub kind: FaultKind,
    /// Operations it hits (`io`).
    pub on: On,
    /// First byte of the bad range (`io`).
    pub at: u64,
    /// Bytes of the bad range (`io`).
    pub len: u64,
    /// Begins after so many commands.
    pub after_commands: u64,
    /// Begins after so many bytes written.
    pub after_bytes: u64,
}

/// A part of the card that is not what it should be, in silence.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Area {
    /// First byte.
    pub at: u64,
    /// Bytes.
    pub len: u64,
    /// What becomes of it: shows another part, drops writes, or gives errors.
    pub does: Beyond,
    /// The part it shows where it wraps.
    pub shows: u64,
}

//! The keys of a model file: name, unit, range and meaning of each, in one list.

use super::*;
use crate::form::{Form, Mode, Need::*};
use crate::units::{GIB, KIB, MIB};

/// The longest time a model may name: 100 s.
const T: u64 = 100_000_000_000;
/// The largest size a model may name: 4 TiB.
const S: u64 = 4096 * GIB;
/// The fastest rate a model may name: 100 GB/s.
const R: u64 = 100_000_000_000;

impl Host {
    pub(super) fn keys(&mut self, f: &mut Form) {
        let mut profile = Profile::None;
        f.choice("profile", May, &mut profile, "a machine whose figures are the defaults of this table");
        profile.put(self);
        f.time("command", May, &mut self.command, 0..=T, "cost of a command outside the card: software, interrupt, reader");
        f.rate("rate", May, &mut self.rate, 0..=R, "bus rate; 0 = no limit");
        f.size("max_request", May, &mut self.max_request, 0..=GIB, "a longer request is split in several commands; 0 = never");
        f.time("split", May, &mut self.split, 0..=T, "extra cost of each further command of a split request");
        f.choice(
            "transfer",
            May,
            &mut self.transfer,
            "`open-ended`: a write ends with a stop command; `single-block`: one command a sector",
        );
        f.time("jitter", May, &mut self.jitter, 0..=T, "standard deviation of the cost of a command");
        f.time("tail", May, &mut self.tail, 0..=T, "smallest delay of the heavy tail (Pareto, exponent 2)");
        f.count("tail_every", May, &mut self.tail_every, 0..=1_000_000_000, "one command in so many has a tail delay; 0 = none");
        f.time("tail_cap", May, &mut self.tail_cap, 0..=T, "largest delay of the heavy tail; 0 = a hundred times `tail`");
        f.time("tick", May, &mut self.tick, 0..=T, "answers come at multiples of this: the microframes of USB; 0 = at any time");
        f.time("status", May, &mut self.status, 0..=T, "asking the card for its status after every write command; 0 = not asked");
        f.flag(
            "flushes",
            &mut self.flushes,
            "a flush follows every write and is part of it, as hosts do where a card declares a write cache",
        );
        f.time("poll", May, &mut self.poll, 0..=T, "one look at a busy card");
        f.time("call", May, &mut self.call, 0..=T, "what a call of the file library costs by itself");
        f.rate("copy", May, &mut self.copy, 0..=R, "rate at which the file library copies between buffers; 0 = no limit");
        f.time("pause", May, &mut self.pause, 0..=T, "time between two calls of a benchmark");
        f.size("buffer", May, &mut self.buffer, 0..=MIB, "buffer of the file library of a microcontroller: one sector; 0 = there is none");
        f.flag("fat_buffer", &mut self.fat_buffer, "the file library keeps a sector of the FAT apart from that buffer");
    }
}

impl CardPart {
    pub(super) fn keys(&mut self, f: &mut Form) {
        f.size("capacity", Must, &mut self.capacity, 64 * KIB..=S, "bytes the host may address");
        f.size("sector", May, &mut self.sector, 512..=4096, "smallest access: 512 or 4096");
        f.time("command", May, &mut self.command, 0..=T, "time the controller spends on any command");
        f.rate("rate", May, &mut self.rate, 0..=R, "rate of the controller; the slower of this and `host.rate` counts; 0 = no limit");
        f.size("real_capacity", May, &mut self.real_capacity, 0..=S, "flash that really exists (counterfeits); 0 = all of it");
        f.choice("beyond", May, &mut self.beyond, "past `real_capacity`: wraparound, limbo (writes are lost), or errors");
        f.size(
            "repeats",
            May,
            &mut self.repeats,
            0..=S,
            "addresses begin anew after so many bytes, each time with that much flash; 0 = never",
        );
        f.size("front", May, &mut self.front, 0..=4 * GIB, "bytes written last that are returned whatever the flash keeps; 0 = none");
        f.choice(
            "keeps",
            May,
            &mut self.keeps,
            "a card that fails in silence keeps the old data, gives zeros, shifted, changing or another place's data, or forgets when it is taken out",
        );
        f.count("fails_every", May, &mut self.fails_every, 0..=1_000_000_000, "one piece of 4 KiB in so many does so; 0 and 1 = all");
        f.choice("state", May, &mut self.state, "what the card held before the first request");
        f.size(
            "read_ahead",
            May,
            &mut self.read_ahead,
            0..=64 * MIB,
            "read cache: what one read brings in, in whole multi-plane pages; 0 = none",
        );
        f.flag("combine", &mut self.combine, "collects small writes that follow each other inside one write unit (one buffer)");
        f.count(
            "combine_after",
            May,
            &mut self.combine_after,
            0..=1000,
            "`combine`: only a write that goes on where the last one ended, after so many; any other is a read-modify-write of its units at \
             once; 0 = any write is collected",
        );
        f.count(
            "combine_streams",
            May,
            &mut self.combine_streams,
            0..=4096,
            "`combine`: write units collected side by side, each of a stream of its own; 0 and 1 = one",
        );
        f.flag(
            "combine_starts",
            &mut self.combine_starts,
            "`combine`: a unit is collected from its start on only, the whole old unit is read when that begins, and reads leave it there; a write \
             that begins elsewhere is a read-modify-write at once",
        );
        f.flag("overlap", &mut self.overlap, "the data of a write come in while the write units before are programmed");
        f.time(
            "behind",
            May,
            &mut self.behind,
            0..=T,
            "work that may be left undone when a write is acknowledged; reads and flushes wait for it",
        );
        f.count("streams", May, &mut self.streams, 0..=4096, "streams of writes that are served at the full rate; 0 = any number");
        f.time("stream_cost", May, &mut self.stream_cost, 0..=T, "`streams`: what a write unit takes more for each further stream");
        f.rate(
            "stream_rate",
            May,
            &mut self.stream_rate,
            0..=R,
            "`streams`: bytes a second for which each further stream adds time, of those that go into the registers or fill up a unit; 0 = none",
        );
        f.count(
            "stream_memory",
            May,
            &mut self.stream_memory,
            0..=4096,
            "`streams`: a stream that does not go on for so many writes is forgotten; 0 = 64",
        );
        f.count("stream_table", May, &mut self.stream_table, 0..=4096, "`streams`: so many are known at most; 0 = any number");
        f.time("discard", May, &mut self.discard, 0..=T, "cost of a discard");
        f.choice("discarded", May, &mut self.discarded, "what a discarded place reads as: zeros, or what was there before");
        f.size(
            "discard_harms",
            May,
            &mut self.discard_harms,
            0..=GIB,
            "bytes on each side that lose data when less than an erase block is discarded",
        );
        f.flag("secure_discard", &mut self.secure_discard, "has a discard after which the old data cannot be read (eMMC)");
        f.time("flush", May, &mut self.flush, 0..=T, "cost of a flush, on top of what has to be written");
        f.flag("flush_defers", &mut self.flush_defers, "a flush returns before what the write cache holds is on the flash");
        f.time("stop", May, &mut self.stop, 0..=T, "busy time after the stop command of an open-ended write");
        f.time("announce", May, &mut self.announce, 0..=T, "a command that announces the length of a write (CMD23); ACMD23 takes two");
        f.flag(
            "pre_erase",
            &mut self.pre_erase,
            "blocks announced with ACMD23 are erased while the data are on the wire, and what they held is not kept",
        );
        f.time("accept", May, &mut self.accept, 0..=T, "busy time after the data of every write command");
        f.count("queue", May, &mut self.queue, 0..=32, "commands the card holds in its queue (A2, CMDQ); 0 = none");
        f.size("cache", May, &mut self.cache, 0..=GIB, "volatile write cache: lost at a power cut; 0 = none");
        f.time("read_waits", May, &mut self.read_waits, 0..=T, "a read waits at most so long for what is being written from the cache");
        f.choice("shortcut", May, &mut self.shortcut, "data that need no programming: all 0x00, all 0xff");
    }
}

impl Nand {
    pub(super) fn keys(&mut self, f: &mut Form) {
        f.size("page", Must, &mut self.page, 512..=16 * MIB, "page: a multiple of the sector");
        f.size(
            "access_unit",
            May,
            &mut self.access_unit,
            0..=64 * MIB,
            "pages read or programmed together: a multiple of the page; 0 = one page",
        );
        f.size("write_unit", May, &mut self.write_unit, 0..=64 * MIB, "unit of programming; 0 = the multi-plane page");
        f.size(
            "erase_block",
            Must,
            &mut self.erase_block,
            4 * KIB..=4 * GIB,
            "erase block (AU): any multiple of multi-plane page and write unit",
        );
        f.size(
            "erase_block_offset",
            May,
            &mut self.erase_block_offset,
            0..=4 * GIB,
            "bytes before the first boundary; pages count from there too",
        );
        f.count("dies", May, &mut self.dies, 1..=64, "dies that work at the same time behind a queue");
        f.time("sense", May, &mut self.sense, 0..=T, "reading a multi-plane page out of the cells");
        f.time("next_page", May, &mut self.next_page, 0..=T, "taking a further page of the same multi-plane page");
        f.time("lookup", May, &mut self.lookup, 0..=T, "finding another erase block");
        f.flag(
            "one_ahead",
            &mut self.one_ahead,
            "`pipelined`: none is sensed before the one before it is on the bus, as the cache reads of data sheets do",
        );
        f.flag("pipelined", &mut self.pipelined, "senses the next multi-plane page while the last one is on the bus");
        f.choice("unwritten", May, &mut self.unwritten, "reads of never written flash cost the same, or a flat time without structure");
        f.time("unwritten_read", May, &mut self.unwritten_read, 0..=T, "that flat time");
        f.time("program", May, &mut self.program, 0..=T, "programming a write unit");
        f.rate("load_rate", May, &mut self.load_rate, 0..=R, "data of a write going into the registers of the flash; 0 = costs nothing");
        f.rate("rest_rate", May, &mut self.rest_rate, 0..=R, "filling up the rest of a partly written unit; 0 = costs nothing");
        f.time("commit", May, &mut self.commit, 0..=T, "busy time at the end of each write command");
        f.time("change", May, &mut self.change, 0..=T, "going to another erase block than the write before");
        f.time("copy", May, &mut self.copy, 0..=T, "copying a write unit inside the card");
        f.time("erase", May, &mut self.erase, 0..=T, "erasing an erase block");
    }
}

impl Ftl {
    pub(super) fn keys(&mut self, f: &mut Form) {
        f.choice("kind", Must, &mut self.kind, "how the card finds its data");
        let doc = matches!(f.mode, Mode::Doc(_));
        if doc || self.kind == FtlKind::BlockMap {
            let b = &mut self.block;
            f.count("open_linear", Must, &mut b.open_linear, 1..=4096, "block-map: AUs that can be open at once");
            f.count("open_random", May, &mut b.open_random, 0..=4096, "block-map: of these, how many in random order; 0 = none");
            f.choice("evict", May, &mut b.evict, "block-map: which AU is closed for another; `counter` = the oldest of a group of the table, the group given by a counter of writes");
            f.count("groups", May, &mut b.groups, 1..=4096, "block-map, `counter`: groups of the table");
            f.count("protect", May, &mut b.protect, 0..=1_000_000, "block-map: one in so many AUs that are opened again, and were not the last closed, is kept open from then on while others can be closed; 0 = none");
            f.count("protected", May, &mut b.protected, 0..=4096, "block-map, `protect`: how many are kept open at most; 0 = all but one");
            f.time("close", May, &mut b.close, 0..=T, "block-map: merging an erase block, on top of copying and erasing");
            f.time("close_random", May, &mut b.close_random, 0..=T, "block-map: the same for one written in random order; 0 = `close`");
            f.size("merge_span", May, &mut b.merge_span, 0..=GIB, "block-map: an AU is merged by blocks of this size; 0 = whole");
            f.choice(
                "merge_random",
                May,
                &mut b.merge_random,
                "block-map: closing after random order copies what is missing, or everything",
            );
            f.flag(
                "skips",
                &mut b.skips,
                "block-map: a write further on in an open AU is in order; what lies between is copied by the merge",
            );
            f.flag("fills", &mut b.fills, "block-map: what lies before a write in an open AU is copied at once");
            f.flag(
                "begins_full",
                &mut b.begins_full,
                "block-map: what lies before the first write in an AU is copied at once; later ones are as they are",
            );
            f.flag(
                "full_closes",
                &mut b.full_closes,
                "block-map: an AU in random order whose log is used up is closed, and not only merged",
            );
            f.flag(
                "restarts",
                &mut b.restarts,
                "block-map: a write at the start of an AU that is open in order merges it and begins a new log",
            );
            f.choice(
                "copies",
                May,
                &mut b.copies,
                "block-map: a merge copies all that is missing, only what was ever written, or nothing of erase blocks that hold nothing",
            );
            f.size(
                "fat_zone",
                May,
                &mut b.fat_zone,
                0..=GIB,
                "block-map: bytes from the start that take random writes without opening an AU",
            );
            f.size("small_write", May, &mut b.small_write, 0..=MIB, "block-map: writes up to this size go to a log of their own; 0 = none");
            f.size("small_log", May, &mut b.small_log, 0..=GIB, "block-map: size of that log; when full, its AUs are merged");
        }
        if doc || self.kind == FtlKind::LogBlock {
            let l = &mut self.log;
            f.count("group", May, &mut l.group, 0..=1 << 24, "log-block: data blocks that share log blocks; 0 = all (FAST), 1 = BAST");
            f.count("per_group", May, &mut l.per_group, 0..=4096, "log-block: log blocks a group may have; 0 = all");
            f.count("pool", Must, &mut l.pool, 1..=4096, "log-block: log blocks in all");
            f.flag("sequential", &mut l.sequential, "log-block: one more log block for writes that start a block and go on in order");
            f.choice(
                "order",
                May,
                &mut l.order,
                "log-block: pages lie in a log block as they come, or each holds one run of one data block, in order",
            );
            f.choice("evict", May, &mut l.evict, "log-block: which log block is merged for another (not `counter`)");
            f.time("close", May, &mut l.close, 0..=T, "log-block: a partial or full merge, on top of copying and erasing");
        }
        if doc || self.kind == FtlKind::WriteThrough {
            let t = &mut self.through;
            f.size(
                "buffer",
                May,
                &mut t.buffer,
                0..=MIB,
                "write-through: the erase block is rewritten at every boundary of this; 0 = at the end of the command",
            );
            f.size(
                "fat_zone",
                May,
                &mut t.fat_zone,
                0..=GIB,
                "write-through: bytes from the start that are programmed without a read-modify-write",
            );
        }
        if doc || self.kind == FtlKind::PageMap {
            let p = &mut self.page;
            f.ratio("over_provisioning", Must, &mut p.over_provisioning, 0.001..=10.0, "page-map: spare flash as a share of the capacity");
            f.size("unit", May, &mut p.unit, 0..=64 * MIB, "page-map: bytes of one entry of the map; 0 = the write unit");
            f.count("reserve", May, &mut p.reserve, 1..=1024, "page-map: erased blocks kept in hand");
            f.choice(
                "gc",
                May,
                &mut p.gc,
                "page-map: which block is emptied: fewest valid units, oldest, best by age and emptiness, best of some",
            );
            f.count("choices", May, &mut p.choices, 1..=1024, "page-map: blocks that `d-choice` compares");
            f.choice(
                "when",
                May,
                &mut p.when,
                "page-map: collection when needed, or also at rest, finished or put off when a command comes",
            );
            f.time("idle", May, &mut p.idle, 0..=T, "page-map: rest before collection in the background begins");
            f.count("goal", May, &mut p.goal, 1..=65536, "page-map: erased blocks that collection in the background aims at");
            f.size("map_cache", May, &mut p.map_cache, 0..=S, "page-map: bytes of the card whose map fits in memory; 0 = all");
            f.size("map_span", May, &mut p.map_span, 4 * KIB..=GIB, "page-map: bytes of the card that one translation page covers");
            f.time("map_miss", May, &mut p.map_miss, 0..=T, "page-map: fetching a translation page");
            f.time(
                "map_save",
                May,
                &mut p.map_save,
                0..=T,
                "page-map: saving a translation page that writes changed when it gives way to another",
            );
        }
    }
}

impl Stall {
    pub(super) fn keys(&mut self, f: &mut Form) {
        f.choice("on", May, &mut self.on, "operations that can run into it");
        f.time("time", Must, &mut self.time, 1..=T, "how long it lasts");
        f.size("every_bytes", May, &mut self.every_bytes, 0..=S, "one after so many bytes");
        f.count("every_commands", May, &mut self.every_commands, 0..=1_000_000_000, "one after so many commands");
        f.flag("random", &mut self.random, "drawn by chance with that mean");
        if matches!(f.mode, Mode::Read(_)) && (self.every_bytes == 0) == (self.every_commands == 0) {
            f.fail("every_bytes", "set exactly one of every_bytes and every_commands".into());
        }
        if (1..512).contains(&self.every_bytes) {
            f.fail("every_bytes", format!("{} B is less than a sector of 512 B", self.every_bytes));
        }
    }
}

impl FaultRule {
    pub(super) fn keys(&mut self, f: &mut Form) {
        f.choice("kind", Must, &mut self.kind, "an error in a range, the card disappears, takes no more writes, or loses its power once");
        f.choice("on", May, &mut self.on, "`io`: operations it hits");
        f.size("at", May, &mut self.at, 0..=S, "`io`: first byte of the range");
        f.size("len", May, &mut self.len, 0..=S, "`io`: bytes of the range; 0 = to the end");
        f.count("after_commands", May, &mut self.after_commands, 0..=u64::MAX >> 1, "begins after so many commands");
        f.size("after_bytes", May, &mut self.after_bytes, 0..=1 << 60, "begins after so many bytes written");
    }
}

impl Area {
    pub(super) fn keys(&mut self, f: &mut Form) {
        f.size("at", Must, &mut self.at, 0..=S, "first byte of an area that is not what it should be");
        f.size("len", Must, &mut self.len, 512..=S, "its bytes");
        f.choice("does", Must, &mut self.does, "shows another part of the card (wraparound), loses writes (limbo), or gives errors");
        f.size("shows", May, &mut self.shows, 0..=S, "`wrap`: first byte of the part it shows");
    }
}

impl Slc {
    pub(super) fn keys(&mut self, f: &mut Form) {
        f.size("size", May, &mut self.size, 0..=S, "SLC cache; 0 = none");
        f.flag("dynamic", &mut self.dynamic, "shrinks with the share of the card that is written");
        f.size("least", May, &mut self.least, 0..=S, "`dynamic`: what is left of it on a full card");
        f.time("program", May, &mut self.program, 0..=T, "programming a write unit in it");
        f.time("fold", May, &mut self.fold, 0..=T, "reading a write unit back when it is folded, on top of writing it to its place");
        f.choice("full", May, &mut self.full, "when it is full, a write waits until there is room, or goes straight to its place");
        f.flag("background", &mut self.background, "folds while the card rests");
        f.time("idle", May, &mut self.idle, 0..=T, "rest before folding begins");
    }
}

impl Wear {
    pub(super) fn keys(&mut self, f: &mut Form) {
        f.flag("count", &mut self.count, "counts the erasures of each block, even where nothing wears out");
        f.count("endurance", May, &mut self.endurance, 0..=10_000_000, "erasures a block stands; 0 = any number");
        f.count("spread", May, &mut self.spread, 0..=90, "percent by which single blocks lie above or below");
        f.count("spare", May, &mut self.spare, 0..=1_000_000, "spare erase blocks of a card that is not page-mapped");
        f.count("bad", May, &mut self.bad, 0..=1_000_000, "erase blocks bad from the start, taken from the spare ones");
        f.count(
            "static_every",
            May,
            &mut self.static_every,
            0..=1_000_000_000,
            "after so many erasures the least worn block is moved; 0 = never",
        );
        f.count(
            "read_disturb",
            May,
            &mut self.read_disturb,
            0..=1_000_000_000,
            "after so many reads an erase block is rewritten; 0 = never",
        );
    }
}

impl Throttle {
    pub(super) fn keys(&mut self, f: &mut Form) {
        f.size("heat", Must, &mut self.heat, MIB..=S, "bytes moved, less what has cooled off, above which the card is slower");
        f.rate("cool", Must, &mut self.cool, 1..=R, "bytes a second that cool off");
        f.count("percent", Must, &mut self.percent, 100..=100_000, "share of the usual time that a command then takes");
    }
}

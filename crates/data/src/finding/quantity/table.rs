//! The quantities, one entry each, in the order in which they are told.

use super::super::When::{Above, Always, Is};
use super::super::{BY_PAGE, Unit};
use super::{PLAIN, Row};
use serde::{Deserialize, Serialize};

quantities! {
    /// The period of the costliest regular boundary: what is erased, or closed, as one.
    EraseBlock => Row {
        key: "erase_block", title: "erase block",
        unit: Unit::Bytes,
        what: "A card cannot change flash in place: it erases a large piece at once, and this is the size of that piece.",
        means: &[(Always, "Partitions and large files that begin at multiples of {} spare the card needless copying.")],
    },
    /// Where the first erase block of this target begins, modulo the erase block.
    EraseBlockOffset => Row {
        key: "erase_block_offset", title: "alignment offset",
        unit: Unit::Bytes,
        what: "Erase blocks follow each other like tiles; this is the offset at which the first tile of this device begins.",
        means: &[(Is(0.0), "The tiles begin with the device, so plain multiples of the erase block are right."), (Always, "Everything aligned must begin {} later than plain multiples of the erase block.")],
    },
    /// The smallest unit at which a boundary shows.
    Page => Row {
        key: "page", title: "page",
        unit: Unit::Bytes,
        what: "A page is the smallest piece of flash that the card reads at one go.",
        means: &[(Always, "Data that cross a multiple of {} need two reads instead of one.")],
    },
    /// The largest unit below the erase block: planes read or programmed together.
    AccessUnit => Row {
        key: "access_unit", title: "multi-plane page",
        unit: Unit::Bytes,
        what: "Several pages are read together as one unit; this is the largest such unit below the erase block.",
        means: &[(Always, "Reads that stay inside a multiple of {} are the cheapest.")],
    },
    /// The size below which a write costs as much as one of that size.
    WriteUnit => Row {
        key: "write_unit", title: "write unit",
        unit: Unit::Bytes,
        what: "The card programs flash in units of this size; a smaller write in random order costs the time of a whole unit, unless the card coalesces it with others.",
        means: &[(Always, "Writes of less than {} in random order take the time of {} each; those in sequence a card may coalesce.")],
    },
    /// AUs that can be written in turn, each in linear order, without paying for closing one each time.
    OpenAusLinear => Row {
        key: "open_aus_linear", title: "open AUs, sequential",
        unit: Unit::Count,
        what: "A card can have only a few erase blocks in work at once; this many can be written interleaved, each from front to back.",
        means: &[(Is(0.0), "Every write makes the card finish an erase block: all writes are slow."), (Always, "Up to {} files can grow at the same time; one more makes every write slow.")],
    },
    /// The same with random order inside each AU; 0 when even one AU pays every time.
    OpenAusRandom => Row {
        key: "open_aus_random", title: "open AUs, random",
        unit: Unit::Count,
        what: "The same count when the writes inside each erase block come in any order, as a filesystem makes them.",
        means: &[(Is(0.0), "Every write makes the card finish an erase block: all writes are slow."), (Always, "A filesystem that keeps its random writes inside {} erase blocks at a time stays fast.")],
    },
    /// Time to close one AU, in ms.
    CloseCostMs => Row {
        key: "close_cost_ms", title: "merge cost",
        unit: Unit::Milliseconds,
        what: "When one erase block too many is written, the card must finish another one first; this is what that costs.",
        means: &[(Always, "Each switch to an erase block beyond the limit holds the writer up for {}.")],
    },
    /// Bytes at the start of the card that take random writes better than the rest; 0 when there are none.
    FatZone => Row {
        key: "fat_zone", title: "FAT zone",
        unit: Unit::Bytes,
        what: "Some cards treat the first megabytes better, because cameras keep the file table there.",
        none: Some(0.0),
        means: &[(Is(0.0), "This card has no such zone, so it does not matter where the file table lies."), (Always, "Keep a FAT, or whatever else is rewritten often, in the first {}.")],
    },
    /// How the card finds its data: 1 by erase block, with a limited number open; 2 by page; 3 every write rewrites its erase block.
    Mapping => Row {
        key: "mapping", title: "mapping",
        unit: Unit::Code,
        what: "A card notes where its data lie either for whole erase blocks or for every page; that decides which writes it takes well.",
        codes: &[(1.0, "block-mapped"), (BY_PAGE, "page-mapped"), (3.0, "read-modify-write")],
        means: &[(Is(1.0), "Only a few erase blocks can be in work at once, so scattered small writes are costly."), (Is(2.0), "Small writes may be scattered at will, until the card must tidy up in long pauses."), (Always, "Every small write costs the rewriting of a whole erase block.")],
    },
    /// Bytes of flash behind the card's addresses: less than it says on a counterfeit.
    Capacity => Row {
        key: "capacity", title: "real capacity",
        unit: Unit::Bytes,
        what: "How much flash there is behind the addresses of the card: less than it reports on a counterfeit.",
    },
    /// Bytes that the card takes at once and writes to their place later, faster than the flash alone could.
    WriteCache => Row {
        key: "write_cache", title: "write cache",
        unit: Unit::Bytes,
        what: "Data that the card takes at once and moves to their place later, faster than the flash alone could.",
    },
    /// How many times faster one long write transaction is than the same blocks one by one.
    MultiBlockGain => Row {
        key: "multi_block_gain", title: "multi-block gain",
        unit: Unit::Times,
        what: "A host can send blocks one by one or many in one command; this is what sending them together gains.",
        means: &[(Always, "Programs that write in large pieces are {} as fast as those that write single blocks.")],
    },
    /// The smallest transaction, in bytes, that reaches nine tenths of the best rate.
    MultiBlockKnee => Row {
        key: "multi_block_knee", title: "enough in one write",
        unit: Unit::Bytes,
        what: "The more goes into one write command, the faster it gets, up to a point; this is that point.",
        means: &[(Always, "Writing {} or more at a time reaches nine tenths of the best rate.")],
    },
    /// How many times faster writes are with their length announced (CMD23) than ended by CMD12.
    PreDefinedGain => Row {
        key: "pre_defined_gain", title: "CMD23 gain",
        unit: Unit::Times,
        what: "A host can say beforehand how much it will write (CMD23); this is what the card makes of it.",
    },
    /// How many times faster writes are after announcing the blocks to erase ahead (ACMD23) than without.
    PreEraseGain => Row {
        key: "pre_erase_gain", title: "ACMD23 gain",
        unit: Unit::Times,
        what: "A host can ask an SD card to erase ahead (ACMD23); this is what the card makes of it.",
    },
    /// The largest request that reaches the medium in one piece on this host.
    LargestRequest => Row {
        key: "largest_request", title: "largest request",
        unit: Unit::Bytes,
        what: "The system cuts long requests into pieces; this is the longest piece that reaches the card.",
        means: &[(Always, "Asking for more than {} at once gains nothing here.")],
    },
    /// Time of a read that does not depend on its size, in µs.
    AccessTimeUs => Row {
        key: "access_time_us", title: "access time",
        unit: Unit::Microseconds,
        what: "Every read costs some time before the first byte comes, however small it is.",
        means: &[(Always, "A thousand small reads cost a thousand times {}, whatever their size.")],
    },
    /// Bytes a second that a longer read adds.
    ReadRate => Row {
        key: "read_rate", title: "read rate",
        unit: Unit::BytesPerSecond,
        what: "Once a read has begun, further bytes come at this rate.",
    },
    /// Stretches of the device whose reads take clearly longer or shorter than those elsewhere.
    OddRegions => Row {
        key: "odd_regions", title: "odd regions",
        unit: Unit::Count,
        what: "Most of a card answers alike; regions that answer clearly faster or slower are counted here.",
        none: Some(0.0),
    },
    /// How many times faster the best-liked content is written than the worst; 1 where content does not matter.
    ContentGain => Row {
        key: "content_gain", title: "content gain",
        unit: Unit::Times,
        what: "Some cards write empty content (all zeros or all ones) faster than real data.",
        none: Some(1.0),
    },
    /// Linear writes below this size are combined into one; 0 when none are.
    CombinesBelow => Row {
        key: "combines_below", title: "coalesces writes <",
        unit: Unit::Bytes,
        what: "Some cards collect small writes that follow each other and program them as one.",
        none: Some(0.0),
        means: &[(Above(0.0), "Writes below {} that follow each other cost less than their number suggests.")],
    },
    /// The smallest write that reaches three quarters of the best rate.
    EfficientWrite => Row {
        key: "efficient_write", title: "efficient write",
        unit: Unit::Bytes,
        what: "Small writes waste time; from this size on most of the card's speed is reached.",
        means: &[(Always, "Collect data until there are {} before writing them.")],
    },
    /// Bytes a second of a file written with small records.
    FileWriteRate => Row {
        key: "file_write_rate", title: "file write",
        unit: Unit::BytesPerSecond,
        what: "This is how fast a file grows when a program writes it in small records.",
    },
    /// Bytes a second of a file read with small records.
    FileReadRate => Row {
        key: "file_read_rate", title: "file read",
        unit: Unit::BytesPerSecond,
        what: "This is how fast a file is read in small records.",
    },
    /// The longest time one record of a file took to write, in ms.
    WorstWriteMs => Row {
        key: "worst_write_ms", title: "longest write",
        unit: Unit::Milliseconds,
        what: "Now and then a write takes far longer than usual; this is the longest one seen.",
        means: &[(Always, "A program that must not lose data needs room for what arrives in {}.")],
    },
    /// When the card rewrites an erase block: 0 never in a row of small writes, 1 at the end of each transaction, 2 whenever a
    /// buffer is full.
    RewritePolicy => Row {
        key: "rewrite_policy", title: "rewrites",
        unit: Unit::Code,
        what: "A card without log blocks does a read-modify-write of an erase block for a small write: at the end of each transaction, or whenever a small buffer is full.",
        codes: &[(0.0, "none"), (1.0, "at the end"), (2.0, "full buffer")],
    },
    /// Bytes of small writes that are collected before they are written to the flash.
    WriteBuffer => Row {
        key: "write_buffer", title: "write buffer",
        unit: Unit::Bytes,
        what: "Small writes that follow each other wait in the card until this much has come together.",
    },
    /// Time to rewrite an erase block for a small write, in ms.
    RewriteMs => Row {
        key: "rewrite_ms", title: "rewriting a block",
        unit: Unit::Milliseconds,
        what: "This is how long the card is busy with the read-modify-write of an erase block for a small write.",
    },
    /// The same in polls of a host that looks at the busy card again and again.
    RewritePolls => Row {
        key: "rewrite_polls", title: "the same in polls",
        unit: Unit::Polls,
        what: "The same, counted in looks of the host at the busy card; it compares cards on one host even where the time of a look is unknown.",
    },
    /// 1: a chip of small pages (512 B in 16 KiB), 2: of large pages, or of several bits a cell.
    ChipClass => Row {
        key: "chip_class", title: "chip",
        unit: Unit::Code,
        what: "Its length distinguishes small-block flash (pages of 512 bytes) from large-block flash or flash with several bits a cell.",
        codes: &[(1.0, "small pages"), (2.0, "large or MLC")],
    },
    /// Bytes of the SLC cache, as full as the card is.
    SlcCache => Row {
        key: "slc_cache", title: "SLC cache",
        unit: Unit::Bytes,
        what: "A card writes to part of its flash with one bit a cell first, which is fast; this is how much it takes before it becomes slower.",
        means: &[(Always, "Up to {} can be written at once at the higher rate.")],
    },
    /// Sequential writes while the SLC cache has room, MB/s.
    RateCachedMbS => Row {
        key: "rate_cached_mb_s", title: "rate before it",
        unit: Unit::MegabytesPerSecond,
        what: "This is the rate of sequential writes while the SLC cache has room.",
    },
    /// Sequential writes after the SLC cache is full, MB/s.
    RateSustainedMbS => Row {
        key: "rate_sustained_mb_s", title: "rate after it",
        unit: Unit::MegabytesPerSecond,
        what: "This is the rate of sequential writes that the card keeps once the SLC cache is full.",
        means: &[(Always, "A recording that goes on for long must need less than {}.")],
    },
    /// Rest after which the card begins to empty its SLC cache, ms.
    IdleTriggerMs => Row {
        key: "idle_trigger_ms", title: "idle trigger",
        unit: Unit::Milliseconds,
        what: "A card that is left alone for this long begins to empty its SLC cache.",
        means: &[(Always, "Pauses shorter than {} bring nothing back.")],
    },
    /// How fast rest empties the SLC cache, MB/s.
    IdleEmptyMbS => Row {
        key: "idle_empty_mb_s", title: "emptied at rest",
        unit: Unit::MegabytesPerSecond,
        what: "At rest, room in the SLC cache comes back at this rate.",
    },
    /// What a write does when the SLC cache is full.
    SlcWhenFull => Row {
        key: "slc_when_full", title: "when it is full",
        unit: Unit::Code,
        what: "A write that finds the SLC cache full waits until the card has folded older data, or goes to its final place at once.",
        codes: &[(1.0, "folds first"), (2.0, "direct writes")],
    },
    /// Bytes of the SLC cache while the region holds no data.
    SlcCacheEmpty => Row {
        key: "slc_cache_empty", title: "SLC cache when empty",
        unit: Unit::Bytes,
        what: "Many cards use flash without data for their SLC cache; this is how much it takes once the region is discarded.",
        means: &[(Always, "An empty card takes up to {} at the higher rate, a full one what is said of it above.")],
    },
    /// The window up to which random reads find the map at hand, bytes.
    MapWindowRead => Row {
        key: "map_window_read", title: "map window, reads",
        unit: Unit::Bytes,
        what: "The map of where data lie is larger than the memory of a card; random reads within a window of this size find what they need at hand.",
        means: &[(Always, "Random reads spread over more than {} take longer.")],
    },
    /// Bytes of data that one piece of the map covers.
    MapPiece => Row {
        key: "map_piece", title: "translation page",
        unit: Unit::Bytes,
        what: "The card fetches its map in translation pages; one of them covers this much data.",
    },
    /// What a read takes longer whose piece of the map is not at hand, µs.
    MapMissUs => Row {
        key: "map_miss_us", title: "map miss",
        unit: Unit::Microseconds,
        what: "A read for which the card has to fetch a translation page takes longer by this.",
    },
    /// The window up to which random writes find the map at hand, bytes.
    MapWindowWrite => Row {
        key: "map_window_write", title: "map window, writes",
        unit: Unit::Bytes,
        what: "Random writes within a window of this size find the part of the map at hand that they change.",
        means: &[(Always, "Random writes spread over more than {} take longer.")],
    },
    /// What a write takes longer whose piece of the map is not at hand, µs.
    MapMissWriteUs => Row {
        key: "map_miss_write_us", title: "map miss, writes",
        unit: Unit::Microseconds,
        what: "A write for which the card has to fetch a translation page, and perhaps to write one back, takes longer by this.",
    },
    /// Random writes of 4 KiB a second in the steady state.
    RandomWriteSteadyIops => Row {
        key: "random_write_steady_iops", title: "steady random writes",
        unit: Unit::PerSecond,
        what: "This is how many random writes of 4 KiB a second a card keeps up once its garbage collection runs.",
        means: &[(Always, "A system that lives on this card gets {} in the long run, whatever the first minutes show.")],
    },
    /// Bytes of random writes after which garbage collection slows them down.
    CollectionOnset => Row {
        key: "collection_onset", title: "collection begins",
        unit: Unit::Bytes,
        what: "After this much of random writes the card has to collect garbage, and the rate falls.",
    },
    /// Random writes of 16 KiB a second in the steady state.
    Steady16kIops => Row {
        key: "steady16k_iops", title: "steady, 16 KiB",
        unit: Unit::PerSecond,
        what: "This is how many random writes of 16 KiB a second the card keeps up in the same state.",
    },
    /// Random writes of 64 KiB a second in the steady state.
    Steady64kIops => Row {
        key: "steady64k_iops", title: "steady, 64 KiB",
        unit: Unit::PerSecond,
        what: "This is how many random writes of 64 KiB a second the card keeps up in the same state.",
    },
    /// Random writes of 4 KiB a second in the steady state, with data in three quarters of the region.
    Steady75Iops => Row {
        key: "steady75_iops", title: "steady, 75 % full",
        unit: Unit::PerSecond,
        what: "This is how many random writes of 4 KiB a second the card keeps up when a quarter of the region is discarded.",
    },
    /// Random writes of 4 KiB a second in the steady state, with data in half of the region.
    Steady50Iops => Row {
        key: "steady50_iops", title: "steady, 50 % full",
        unit: Unit::PerSecond,
        what: "This is how many random writes of 4 KiB a second the card keeps up when half of the region is discarded.",
    },
    /// Map units written for each that the host writes, at random over a full region in the steady state.
    WriteAmplification => Row {
        key: "write_amplification", title: "write amplification",
        unit: Unit::Times,
        what: "For each unit that random writes change, the card writes this many, since it copies what is still valid out of the way.",
    },
    /// Flash that holds no data of the host, percent of the region.
    OverProvisioning => Row {
        key: "over_provisioning", title: "effective spare flash",
        unit: Unit::Percent,
        what: "The card copies as much as one with this much more flash than it shows; the more there is, the less a full card has to copy.",
    },
    /// The rate of random writes after a discard of the region, over the steady one.
    DiscardRestores => Row {
        key: "discard_restores", title: "rate after a discard",
        unit: Unit::Times,
        what: "Random writes after a discard of the whole region are this much faster than in the steady state.",
    },
    /// ms of a flush after a single write of 4 KiB.
    FlushMs => Row {
        key: "flush_ms", title: "flush",
        unit: Unit::Milliseconds,
        what: "A program that must not lose a write flushes after it; this is how long that takes after 4 KiB.",
    },
    /// Bytes that a write cache takes which a flush empties.
    VolatileCache => Row {
        key: "volatile_cache", title: "volatile cache",
        unit: Unit::Bytes,
        what: "So much is acknowledged before it is on the flash; a power cut loses what was not flushed.",
    },
    /// Whether a flush waits for what was acknowledged.
    FlushWaits => Row {
        key: "flush_waits", title: "flush waits",
        unit: Unit::Code,
        what: "An honest flush returns when all that was acknowledged is on the flash.",
        codes: &[(1.0, "for all data"), (2.0, "not for data")],
        means: &[(Is(2.0), "Unless its cache survives a power cut, which times do not show, one can lose what a program believes to be safe: do not use this card for databases.")],
    },
    /// How many times faster random reads are with several in flight.
    QueueGain => Row {
        key: "queue_gain", title: "queue gain",
        unit: Unit::Times,
        what: "A card with a queue works on several requests side by side; this is what the best depth gains over one at a time.",
        means: &[(Is(1.0), "Several reads in flight gain nothing on this host."), (Always, "Programs that read in parallel get up to {} as many random reads.")],
    },
    /// How many times faster random writes are with several in flight.
    QueueGainWrite => Row {
        key: "queue_gain_write", title: "queue gain, writes",
        unit: Unit::Times,
        what: "With several random writes in flight, flushed together, the best depth is this much faster than one at a time.",
        means: &[(Is(1.0), "Several writes in flight gain nothing on this host."), (Always, "Programs that write in parallel get up to {} as many random writes.")],
    },
    /// What a 4 KiB read takes longer right after a burst of writes, µs.
    ReadAfterWriteUs => Row {
        key: "read_after_write_us", title: "read after writes",
        unit: Unit::Microseconds,
        what: "A read that comes right after writes waits this much longer than one that comes after a rest.",
        none: Some(0.0),
        means: &[(Is(0.0), "Reads do not wait for writes that were acknowledged."), (Above(5000.0), "A program that reads while another one writes has to wait {} now and then.")],
    },
    /// How long after the end of a burst of writes reads take longer, ms.
    ReadSettlesMs => Row {
        key: "read_settles_ms", title: "reads settle after",
        unit: Unit::Milliseconds,
        what: "So long after 4 MiB of writes have ended reads take longer than usual.",
    },
    /// How many times faster a burst of writes is after a rest than without one, the SLC cache full.
    PauseGain => Row {
        key: "pause_gain", title: "gain of a pause",
        unit: Unit::Times,
        what: "With the SLC cache full, a burst of 2 MiB of writes after a pause is this much faster than one without.",
        means: &[(Is(1.0), "Pauses of up to three seconds between bursts gain nothing.")],
    },
    /// The pause that gives half of that gain, ms.
    PauseMs => Row {
        key: "pause_ms", title: "pause that helps",
        unit: Unit::Milliseconds,
        what: "A pause of this length between bursts gives half of what a long one gives.",
        means: &[(Always, "Write in bursts with pauses longer than {} between them.")],
    },
    /// Seconds under load after which the card slows down.
    ThrottledAfterS => Row {
        key: "throttled_after_s", title: "throttled after",
        unit: Unit::Seconds,
        what: "A card that gets hot slows itself down; this is how long it kept its full read rate under load.",
        means: &[(Always, "Copies and recordings that keep the card busy for longer than {} get slower.")],
    },
    /// MB/s of sequential reads of a card that has slowed itself down.
    RateThrottledMbS => Row {
        key: "rate_throttled_mb_s", title: "rate when throttled",
        unit: Unit::MegabytesPerSecond,
        what: "Sequential reads go on at this rate once the card has slowed itself down.",
    },
    /// What a discarded place reads as.
    DiscardReads => Row {
        key: "discard_reads", title: "discarded data read",
        unit: Unit::Code,
        what: "What a place that was discarded reads as afterwards.",
        codes: &[(0.0, "as zeros"), (1.0, "as ones"), (2.0, "as before"), (3.0, "as other data")],
        means: &[
            (Is(2.0), "Whoever finds the card can read what was deleted: overwrite it, or erase the card."),
            (Is(3.0), "Do not rely on what a discarded place reads as."),
        ],
    },
    /// ms of a discard of 1 MiB that was just written.
    DiscardMs => Row {
        key: "discard_ms", title: "discard",
        unit: Unit::Milliseconds,
        what: "A discard of 1 MiB that was written takes this long.",
        means: &[(Above(20.0), "Mount without `discard` and run fstrim when the card may be slow: each deletion waits {} and more.")],
    },
}

//! From samples to findings: pure functions. A file for each quantity or experiment, for samples of our own and for tables of other
//! programs; `pipeline` runs them all.

pub mod ab;
pub mod access_kinds;
pub mod au_grid;
pub mod beliefs;
pub mod buffer;
pub mod capacity;
pub mod combine;
pub mod confidence;
pub mod discard;
pub mod edges;
pub mod fat_zone;
pub mod figure;
pub mod flush;
pub mod interval;
pub mod lattice;
pub mod linear;
pub mod map_window;
pub mod map_window_write;
pub mod micro;
pub mod mixed_reads;
pub mod multi_block;
pub mod open;
pub mod open_au;
pub mod page_mapping;
pub mod pauses;
pub mod pipeline;
pub mod queue_depth;
pub mod queue_depth_write;
pub mod read_boundary;
pub mod replacement;
pub mod rewrite;
pub mod scatter;
pub mod slc_cache;
pub mod slc_fill;
pub mod slots;
pub mod small_writes;
pub mod stalls;
pub mod stats;
pub mod steady_state;
pub mod steps;
pub mod tables;
pub mod throttling;
pub mod trace;
pub mod write_boundary;
pub mod write_cache;
pub mod write_trace;
pub mod write_unit;

use pipeline::Analysis;

/// Every experiment, in the order of the command line, the documentation, the report and the tests, with the file it lies in: `$then!`
/// makes of the list what a room wants, where it measures the `mod` lines as well. A new one is a line here, the `mod` line above, and two files.
#[macro_export]
macro_rules! every_experiment {
    ($then:ident) => {
        $then! {
            // First: what fails or lies behind a counterfeit's flash would spoil the others.
            capacity: Capacity;
            read_boundary: ReadBoundary;
            write_unit: WriteUnit;
            open_au: OpenAu::<false>, OpenAu::<true>;
            au_grid: AuGrid;
            write_boundary: WriteBoundary;
            fat_zone: FatZone;
            write_cache: WriteCache;
            multi_block: MultiBlock;
            write_trace: WriteTrace;
            scatter: Scatter;
            interval: Interval;
            access_kinds: AccessKinds;
            small_writes: SmallWrites;
            slc_cache: SlcCache;
            page_mapping: PageMapping;
            map_window: MapWindow;
            map_window_write: MapWindowWrite;
            steady_state: SteadyState;
            queue_depth: QueueDepth;
            throttling: Throttling;
            discard: Discard;
            flush: Flush;
            slc_fill: SlcFill;
            mixed_reads: MixedReads;
            pauses: Pauses;
            queue_depth_write: QueueDepthWrite;
        }
    };
}

macro_rules! analyses {
    ($($file:ident: $($one:ident $(::<$kind:literal>)?),+;)+) => {
        /// One for each experiment.
        pub const ALL: &[&dyn Analysis] = &[$($(&$file::$one $(::<$kind>)?),+),+];
    };
}

every_experiment!(analyses);

//! Candidates for what a card does with writes, whatever its mapping: unit of programming, what is collected, left undone, or slower with each stream.

use super::data::Data;
use super::structures::{Add, CUTS, MS, with_write_unit};
use crate::finding::Quantity;
use nandscope_sim::Model;

/// Structures that differ in one of these from this one.
pub fn writes(data: &Data, m: &Model, add: &mut Add) {
    let mut units: Vec<u64> = (12..=18).map(|k| 1 << k).collect();
    // Smaller ones are rare, and slow to replay: step by step.
    units.push(m.nand.write_unit / 2);
    units.extend(data.named(Quantity::WriteUnit));
    units.extend([m.nand.page, m.nand.access_unit, 2 * m.nand.access_unit, m.nand.access_unit / 2, 3 * m.nand.page]);
    for unit in units {
        add(&|v| with_write_unit(data, v, unit));
    }
    add(&|v| (v.card.combine, v.card.combine_starts) = (!v.card.combine, false));
    add(&|v| (v.card.combine, v.card.combine_starts) = (true, !v.card.combine_starts));
    for after in [0, 1, 2, 3, 4] {
        add(&|v| (v.card.combine, v.card.combine_after, v.card.combine_streams) = (true, after, 0));
    }
    let side = m.card.combine_streams;
    let around = [side / 2, side * 2, m.ftl.block.open_linear].into_iter().filter(|_| side > 0);
    for streams in [4, 256].into_iter().chain(around).filter(|&s| s > 1) {
        add(&|v| (v.card.combine, v.card.combine_after, v.card.combine_streams) = (true, 0, streams));
    }
    add(&|v| v.card.overlap = !v.card.overlap);
    let now = m.card.behind;
    for behind in [0, 1, 4, 16].map(|ms| ms * MS).into_iter().chain([now / 2, now * 2, now * 3 / 4, now * 4 / 3, now * 7 / 8, now * 8 / 7])
    {
        add(&|v| v.card.behind = behind);
    }
    let (free, memory, table) = (m.card.streams, m.card.stream_memory, m.card.stream_table);
    let more = [
        (0, 0, 0),
        (free + 1, memory, table),
        (free - free.min(1), memory, table),
        (free, memory / 2, table),
        (free, memory * 2, table),
        (free, memory / 4, table),
        (free, memory * 4, table),
        (free, 0, 32),
        (free, memory, 0),
        (free, memory, table / 2),
        (free, memory, table * 2),
    ];
    let first = [(1, 32, 0), (2, 32, 0), (1, 0, 32), (2, 0, 32)];
    for (free, memory, table) in first.into_iter().chain(more.into_iter().filter(|_| free > 0)) {
        let streams = |v: &mut Model| (v.card.streams, v.card.stream_memory, v.card.stream_table) = (free, memory, table);
        add(&streams);
        // What is slower with more streams may have been taken for a cache that was full.
        if m.slc.size > 0 {
            add(&|v| {
                streams(v);
                v.slc.size = 0;
                (v.card.combine, v.card.combine_after, v.card.combine_streams, v.card.combine_starts) = (true, 0, 0, true);
            });
        }
        // Streams are known to a card that collects what goes on where the last write ended.
        for starts in [false, true] {
            add(&|v| {
                streams(v);
                (v.card.combine, v.card.combine_after, v.card.combine_streams, v.card.combine_starts) = (true, 0, 0, starts);
            });
        }
    }
    for cut in CUTS.into_iter().chain(data.named(Quantity::LargestRequest)) {
        add(&|v| v.host.max_request = cut);
    }
}

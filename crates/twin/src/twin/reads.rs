//! Candidates for what reads show: page, planes, erase block and offset, what is read ahead, how the host cuts.

use super::data::Data;
use super::structures::{Add, CUTS, DECLARED, around};
use crate::finding::Quantity;
use crate::units::{GIB, KIB};
use nandscope_sim::Model;
use nandscope_sim::model::{State, Unwritten};

/// Structures that differ in one of these from this one.
pub fn reads(data: &Data, m: &Model, add: &mut Add) {
    let mut pages: Vec<u64> = (9..=15).map(|k| 1 << k).collect();
    pages.extend(data.named(Quantity::Page));
    let mut pairs: Vec<(u64, u64)> = pages.iter().flat_map(|&p| [1, 2, 3, 4, 6, 8].map(|n| (p, n * p))).collect();
    pairs.extend(pages.iter().flat_map(|&p| data.named(Quantity::AccessUnit).into_iter().map(move |a| (p, a))));
    for (page, access) in pairs {
        // A write unit that was the access unit stays it.
        let same = m.nand.write_unit == m.nand.access_unit;
        add(&|v| {
            (v.nand.page, v.nand.access_unit) = (page, access);
            if same {
                v.nand.write_unit = access;
            }
        });
        add(&|v| (v.nand.page, v.nand.access_unit) = (page, access));
        // What further pages take may have been taken for units that wait for each other.
        if m.nand.one_ahead && page < access {
            add(&|v| (v.nand.page, v.nand.access_unit, v.nand.one_ahead) = (page, access, false));
        }
    }
    erase_blocks(data, m, add);
    for (pipelined, one_ahead) in [(false, false), (true, false), (true, true)] {
        add(&|v| (v.nand.pipelined, v.nand.one_ahead) = (pipelined, one_ahead));
    }
    for k in [0, 4, 8, 16, 32, 64, 128, 256, 512] {
        add(&|v| v.card.read_ahead = k * KIB);
    }
    // A microcontroller asks for each sector by itself; the next one is at hand with the code word that both are part of.
    add(&|v| (v.host.max_request, v.card.read_ahead) = (data.sector, data.sector));
    add(&|v| (v.nand.unwritten, v.card.state) = (Unwritten::Flat, State::Empty));
    add(&|v| (v.nand.unwritten, v.card.state) = (Unwritten::AsWritten, State::Written));
    for cut in CUTS.into_iter().chain(data.named(Quantity::LargestRequest)) {
        add(&|v| v.host.max_request = cut);
    }
}

/// Other erase blocks and offsets.
pub fn erase_blocks(data: &Data, m: &Model, add: &mut Add) {
    let sector = data.sector;
    let now = m.nand.erase_block;
    let mut sizes = data.named(Quantity::EraseBlock);
    if sizes.is_empty() {
        // From the best of one kind of mapping the right size may be many halves away.
        for size in DECLARED {
            add(&|v| (v.nand.erase_block, v.nand.erase_block_offset, v.ftl.block.merge_span) = (size, 0, 0));
        }
    }
    sizes.extend(around(now));
    sizes.push(now);
    let mut offsets = data.named(Quantity::EraseBlockOffset);
    // A place that is known to a unit may be one unit off.
    let near = |at: u64| [m.nand.write_unit, m.nand.page].into_iter().flat_map(move |u| [at + u, at.saturating_sub(u)]);
    offsets.extend(offsets.clone().into_iter().chain([m.nand.erase_block_offset]).flat_map(near));
    offsets.extend([0, m.nand.erase_block_offset]);
    for &size in sizes.iter().filter(|&&s| (16 * KIB..=GIB).contains(&s)) {
        for at in offsets.iter().copied().chain([size / 2, size / 4]) {
            add(&|v| {
                (v.nand.erase_block, v.nand.erase_block_offset) = (size, at % size / sector * sector);
                v.ftl.block.merge_span = 0;
            });
        }
    }
}

//! What is true of a simulated card, held against what was found.

use crate::finding::{Finding, Quantity};
use nandscope_sim::{Mapping, Truth};

/// What depends on the host as much as on the card, so that a model states no truth for it.
const BY_HOST: [Quantity; 14] = [
    Quantity::MultiBlockGain,
    Quantity::MultiBlockKnee,
    Quantity::PreDefinedGain,
    Quantity::PreEraseGain,
    Quantity::LargestRequest,
    Quantity::AccessTimeUs,
    Quantity::ReadRate,
    Quantity::OddRegions,
    Quantity::ContentGain,
    Quantity::CombinesBelow,
    Quantity::EfficientWrite,
    Quantity::FileWriteRate,
    Quantity::FileReadRate,
    Quantity::WorstWriteMs,
];

/// The true value of a quantity where it is a number; `None` where the model has none.
pub fn truth_of(q: Quantity, t: &Truth) -> Option<f64> {
    let size = |b: u64| (b > 0).then_some(b as f64);
    match q {
        Quantity::EraseBlock => size(t.erase_block),
        Quantity::EraseBlockOffset => size(t.erase_block).map(|_| t.erase_block_offset as f64),
        Quantity::Capacity => size(t.real_capacity),
        Quantity::Page => size(t.page),
        // Planes that add nothing to the time of a page cannot be told from it.
        Quantity::AccessUnit if t.page > 0 && t.page < t.access_unit && t.read_steps.access_unit_ns <= t.read_steps.page_ns + 3_000 => {
            size(t.page)
        }
        Quantity::AccessUnit => size(t.access_unit),
        Quantity::WriteUnit => size(t.write_unit),
        Quantity::OpenAusLinear => t.open_aus_linear.map(f64::from),
        Quantity::OpenAusRandom => t.open_aus_random.map(f64::from),
        Quantity::CloseCostMs => t.close_cost_ns.map(|ns| ns as f64 / 1e6),
        Quantity::FatZone => Some(t.fat_zone as f64),
        Quantity::WriteCache => size(t.slc_cache.max(t.write_cache)),
        Quantity::Mapping => match t.mapping {
            Mapping::None => None,
            Mapping::Block | Mapping::Log => Some(1.0),
            Mapping::Page => Some(2.0),
            Mapping::WriteThrough => Some(3.0),
        },
        _ => None,
    }
}

/// Is a decided finding right? `None` when it is undecided, or no truth is stated.
pub fn right(f: &Finding, t: &Truth) -> Option<bool> {
    if BY_HOST.contains(&f.quantity) {
        return None;
    }
    let truth = truth_of(f.quantity, t);
    // A medium without structure is mapped in no way.
    if f.quantity == Quantity::Mapping && t.mapping == Mapping::None {
        return None;
    }
    if let Some(v) = f.number() {
        return Some(match (f.quantity, truth) {
            // A cost depends on how much of the AU was written; the truth is for one write unit.
            (Quantity::CloseCostMs, Some(x)) => (v / x - 1.0).abs() < 0.3,
            // The border of a counterfeit is looked for to 1 MiB.
            (Quantity::Capacity, Some(x)) => (v - x).abs() <= 1048576.0,
            // A card that keeps AUs open from earlier has room for the fewer others.
            (Quantity::OpenAusLinear | Quantity::OpenAusRandom, Some(x)) => v <= x && v + f64::from(t.open_aus_kept) >= x,
            // Where each write out of order rewrites its erase block, that is what a small one costs as much as.
            (Quantity::WriteUnit, _) if t.open_aus_random == Some(0) && v == t.erase_block as f64 => true,
            // Writes see the erase blocks that share log blocks as one.
            (Quantity::EraseBlock, Some(x)) => v == x || v == t.shared as f64,
            (Quantity::EraseBlockOffset, Some(x)) => v == x || t.shared > 0 && v as u64 % t.erase_block == x as u64,
            (_, Some(x)) => v == x,
            (_, None) => false,
        });
    }
    f.at_least.map(|b| match f.quantity {
        // No limit is more than any bound.
        Quantity::OpenAusLinear | Quantity::OpenAusRandom => truth.is_none_or(|x| x >= b.0),
        _ => truth.is_some_and(|x| x >= b.0),
    })
}

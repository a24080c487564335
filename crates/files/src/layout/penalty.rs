//! What things cost on this card, from its report: never from a rule of thumb.

use super::grid::SURE;
use crate::device::Op;
use crate::finding::{Findings, Quantity};
use crate::samples::Run;
use nandscope_stats::median;
use std::collections::BTreeMap;

/// Measured costs; what was not measured, or not surely, is absent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Penalties {
    /// Bytes below which a write costs as much as one of that size.
    pub write_unit: Option<u64>,
    /// Bytes that are read as one.
    pub page: Option<u64>,
    /// Time of one linear write by its size, in ms.
    pub write_ms: BTreeMap<u64, f64>,
    /// Extra time of a read across a boundary of this alignment, in ms.
    pub read_ms: BTreeMap<u64, f64>,
    /// Places that can be written in turn without closing an AU each time; 0 where every write rewrites one.
    pub open: Option<u32>,
    /// Time to close one AU, in ms.
    pub close_ms: Option<f64>,
    /// Bytes from the start of the disk where random writes are cheap.
    pub fat_zone: u64,
    /// Time of a random write in that zone and in the middle of the card, in ms.
    pub zone_ms: Option<[f64; 2]>,
}

impl Penalties {
    /// Costs from findings and samples.
    pub fn of(f: &Findings, runs: &[Run]) -> Penalties {
        let value = |q| f.value(q, SURE).filter(|v: &f64| v.is_finite() && *v >= 0.0);
        let size = |q| value(q).map(|v| v as u64).filter(|&v| (512..=1 << 30).contains(&v));
        let bound = |q| value(q).or_else(|| f.get(q).filter(|f| f.confidence >= SURE).and_then(|f| f.at_least).map(|a| a.0));
        // A file system writes its metadata in random order; a card that takes none that way takes it in linear order at best.
        let open = value(Quantity::OpenAusRandom).or(value(Quantity::OpenAusLinear)).map(|v| v.min(1e6) as u32);
        Penalties {
            write_unit: size(Quantity::WriteUnit),
            page: size(Quantity::AccessUnit).or(size(Quantity::Page)),
            write_ms: writes(runs),
            read_ms: crossings(runs),
            open,
            close_ms: value(Quantity::CloseCostMs),
            fat_zone: bound(Quantity::FatZone).map_or(0, |v| v as u64),
            zone_ms: zone_times(runs),
        }
    }

    /// Time of touching one more write unit, in ms: what two take more than one.
    pub fn one_more_unit(&self) -> Option<f64> {
        let unit = self.write_unit?;
        let one = *self.write_ms.get(&unit)?;
        Some(self.write_ms.get(&(2 * unit)).map_or(one, |two| (two - one).max(0.0)))
    }
}

/// Medians of the random writes at the start and in the middle of the card.
fn zone_times(runs: &[Run]) -> Option<[f64; 2]> {
    let run = runs.iter().find(|r| r.experiment == "fat-zone")?;
    let of = |at: i64| {
        let cell = run.cells.iter().find(|c| c.get("at") == at)?;
        let all: Vec<f64> = run.of(cell.id).filter(|s| s.role == 1).map(|s| s.took.millis()).collect();
        (!all.is_empty()).then(|| median(&all))
    };
    Some([of(0)?, of(-1)?])
}

/// Medians of linear writes by size; the first write of a pass opens the AU and is left out.
fn writes(runs: &[Run]) -> BTreeMap<u64, f64> {
    let mut all: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    for run in runs.iter().filter(|r| r.experiment == "write-unit") {
        for trial in run.cells.iter().flat_map(|c| run.trials(c.id)) {
            for s in trial.iter().skip(1).filter(|s| matches!(s.op, Op::Write(_))) {
                all.entry(s.len).or_default().push(s.took.millis());
            }
        }
    }
    all.into_iter().map(|(len, t)| (len, median(&t))).collect()
}

/// Crossing reads less their neighbours, by alignment; the smaller reads, which show most.
fn crossings(runs: &[Run]) -> BTreeMap<u64, f64> {
    let mut out = BTreeMap::new();
    for run in runs.iter().filter(|r| r.experiment == "read-boundary") {
        for cell in run.cells.iter().filter(|c| c.bytes("align") > 0) {
            let of = |role: u8| median(&run.of(cell.id).filter(|s| s.role == role).map(|s| s.took.millis()).collect::<Vec<_>>());
            let extra = of(1) - (of(0) + of(2)) / 2.0;
            if extra.is_finite() {
                out.entry(cell.bytes("align")).or_insert(extra);
            }
        }
    }
    out
}

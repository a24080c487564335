//! The erase-block grid of a card, and how well it is known.

use crate::finding::{Finding, Findings, Quantity, percent};
use crate::units::{Bytes, KIB, MIB};
use serde::Serialize;
use std::fmt;

/// Below this nobody should re-partition a card; the same limit as for the advice of a report.
pub const SURE: f64 = 0.75;

/// Where a grid comes from.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "by")]
pub enum Source {
    /// Measured on this card, with the confidence of the finding.
    Found { confidence: f64 },
    /// What the card says of itself.
    Declared,
    /// Named on the command line.
    Given,
    /// The boundary unit of the SD convention for a card of this size: nothing is known of this one.
    Convention,
}

/// Boundaries every `unit` bytes, the first at `first` bytes on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Grid {
    pub unit: u64,
    pub first: u64,
    pub source: Source,
}

impl Source {
    /// What lies between two boundaries.
    pub fn unit_name(self) -> &'static str {
        match self {
            Source::Found { .. } | Source::Given => "erase block",
            Source::Declared => "allocation unit",
            Source::Convention => "boundary unit",
        }
    }
}

impl fmt::Display for Grid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let first = if self.first > 0 { format!(" from {} on", Bytes(self.first)) } else { String::new() };
        match self.source {
            Source::Found { confidence } => write!(f, "erase blocks of {}{first}, found ({:.0} %)", Bytes(self.unit), percent(confidence)),
            Source::Declared => write!(f, "allocation units of {}, declared by the card", Bytes(self.unit)),
            Source::Given => write!(f, "erase blocks of {}{first}, as given", Bytes(self.unit)),
            Source::Convention => {
                write!(
                    f,
                    "boundary units of {}, the SD convention for this size (the erase block of this card is not known)",
                    Bytes(self.unit)
                )
            }
        }
    }
}

/// That the erase block is undecided, and why.
pub(super) fn undecided(block: &Finding) -> String {
    format!("the erase block is undecided, because {}", block.reason_in_words().unwrap_or("of reasons not given".into()))
}

impl Grid {
    /// The grid a report names, where it is sure enough.
    ///
    /// # Errors
    /// Why it names none.
    pub fn found(f: &Findings) -> Result<Grid, String> {
        let block = f.get(Quantity::EraseBlock).ok_or("the report says nothing of the erase block")?;
        let Some(unit) = block.number() else {
            return Err(undecided(block));
        };
        if block.confidence < SURE {
            return Err(format!("the erase block is {} at {:.0} % only", Bytes(unit as u64), percent(block.confidence)));
        }
        let unit = plausible(unit)?;
        // Erase blocks begin with the disk unless something says otherwise.
        let first = f.value(Quantity::EraseBlockOffset, SURE).unwrap_or(0.0);
        Ok(Grid { unit, first: first as u64 % unit, source: Source::Found { confidence: block.confidence } })
    }

    /// The grid of the SD convention for a card of this many bytes.
    pub fn convention(size: u64) -> Grid {
        Grid { unit: nandscope_fat::sd_units(size).1, first: 0, source: Source::Convention }
    }

    /// Number of the block that holds a byte of the disk; positions before the first boundary belong to block 0 with it.
    pub fn block(&self, at: u64) -> u64 {
        (at + self.unit - self.first) / self.unit - u64::from(self.first == 0)
    }

    /// True where a boundary lies at this byte of the disk.
    pub fn on(&self, at: u64) -> bool {
        at % self.unit == self.first % self.unit
    }

    /// The first boundary at or after this byte of the disk.
    pub fn up(&self, at: u64) -> u64 {
        let first = self.first % self.unit;
        first + at.saturating_sub(first).next_multiple_of(self.unit)
    }
}

/// A size that can be an erase block: a report may come from anywhere.
fn plausible(unit: f64) -> Result<u64, String> {
    let ok = unit.fract() == 0.0 && unit >= 512.0 && unit <= (1024 * MIB) as f64 && (unit as u64).is_multiple_of(512);
    if ok { Ok(unit as u64) } else { Err(format!("{unit} bytes cannot be an erase block")) }
}

/// Probability that a byte of the disk is a multiple of the erase block, by all the values the finding allows. What the
/// finding leaves unnamed counts as "not a multiple".
pub fn probability_on(block: &Finding, first: u64, at: u64) -> f64 {
    let on = |v: f64| v >= 1.0 && at.abs_diff(first).is_multiple_of(v as u64);
    let value = block.number().filter(|&v| on(v)).map_or(0.0, |_| block.confidence);
    let rivals: f64 = block.rivals.iter().filter(|r| Some(r.value) != block.value && on(r.value.0)).map(|r| r.probability).sum();
    (value + rivals).min(1.0)
}

/// The finest boundary that is right under every value the finding gives at least 3 %: their least common multiple, where it
/// stays below 64 MiB.
pub fn safe_unit(block: &Finding) -> Option<u64> {
    let named = block.number().map(|v| (v, block.confidence)).into_iter();
    let rivals = block.rivals.iter().map(|r| (r.value.0, r.probability));
    let sizes: Vec<u64> =
        named.chain(rivals).filter(|&(v, p)| p >= 0.03 && v >= (4 * KIB) as f64 && v.fract() == 0.0).map(|(v, _)| v as u64).collect();
    let all = sizes.iter().copied().reduce(lcm)?;
    (all <= 64 * MIB).then_some(all)
}

/// Least common multiple; saturates.
pub fn lcm(a: u64, b: u64) -> u64 {
    let gcd = |mut a: u64, mut b: u64| {
        while b > 0 {
            (a, b) = (b, a % b);
        }
        a.max(1)
    };
    (a / gcd(a, b)).saturating_mul(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grid_that_does_not_begin_at_zero() {
        let g = Grid { unit: 12 * MIB, first: MIB, source: Source::Given };
        assert!(g.on(13 * MIB) && g.on(MIB) && !g.on(12 * MIB));
        assert_eq!((g.up(0), g.up(MIB), g.up(MIB + 1)), (MIB, MIB, 13 * MIB));
        assert_eq!((g.block(0), g.block(MIB - 1), g.block(MIB), g.block(13 * MIB)), (0, 0, 1, 2));
        let g = Grid { first: 0, ..g };
        assert_eq!((g.block(0), g.block(12 * MIB - 1), g.block(12 * MIB)), (0, 0, 1));
    }

    #[test]
    fn a_report_that_is_not_sure_names_no_grid() {
        let f = |f: Finding| Grid::found(&Findings(vec![f]));
        assert_eq!(f(Finding::decided(Quantity::EraseBlock, 4194304.0, 0.9)).unwrap().unit, 4 * MIB);
        assert!(f(Finding::decided(Quantity::EraseBlock, 4194304.0, 0.7)).unwrap_err().contains("70 % only"));
        assert!(f(Finding::undecided(Quantity::EraseBlock, "noise")).unwrap_err().contains("noise"));
        // Which experiments said it is nothing for a plan; what two of them say stands once.
        let both = "read-boundary: flat: nothing; au-grid: no merges; write-boundary: no merges";
        let said = f(Finding::undecided(Quantity::EraseBlock, both)).unwrap_err();
        assert_eq!(said, "the erase block is undecided, because flat: nothing; no merges");
        for wrong in [0.0, 100.5, 1e18, f64::NAN] {
            assert!(f(Finding::decided(Quantity::EraseBlock, wrong, 0.9)).unwrap_err().contains("cannot be"), "{wrong}");
        }
        assert!(Grid::found(&Findings::default()).is_err());
    }

    #[test]
    fn doubt_about_the_size_makes_the_boundary_coarser() {
        let f = Finding::decided(Quantity::EraseBlock, (4 * MIB) as f64, 0.8).rivals([((12 * MIB) as f64, 0.1), ((MIB) as f64, 0.001)]);
        assert_eq!(safe_unit(&f), Some(12 * MIB));
        assert!((probability_on(&f, 0, 8 * MIB) - 0.801).abs() < 1e-9);
        assert!((probability_on(&f, 0, 24 * MIB) - 0.901).abs() < 1e-9);
        assert!(probability_on(&f, 0, 6 * MIB) < 0.01);
    }
}

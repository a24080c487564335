//! What two readings of a card's own counters say, with writes between: how large a superblock is, and what writes cost.
//!
//! A counter that is rounded down makes a difference wrong by one at the most, so every result is an interval.

use super::health::HealthBlock;
use super::sysfs::{number, text};
use crate::units::{MIB, about, between, three};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Counters of one reading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Reading {
    /// Erases of all blocks together.
    pub total_erases: Option<u64>,
    /// Mean erases of a block.
    pub mean_erases: Option<f64>,
    /// Bytes that hosts wrote, as the card counts them.
    pub host_bytes: Option<u64>,
    /// Bytes written to the flash, as the card counts them.
    pub flash_bytes: Option<u64>,
    pub life_left_percent: Option<f64>,
    pub grown_bad_blocks: Option<u64>,
    pub spare_blocks: Option<u64>,
}

impl From<&HealthBlock> for Reading {
    fn from(b: &HealthBlock) -> Reading {
        Reading {
            total_erases: b.total_erases,
            mean_erases: b.mean_erases,
            host_bytes: b.host_bytes,
            flash_bytes: b.flash_bytes,
            life_left_percent: b.life_left_percent,
            grown_bad_blocks: b.grown_bad_blocks,
            spare_blocks: b.spare_blocks,
        }
    }
}

/// What this host wrote to a disk since it came: two of them can be subtracted where they are of one `since`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Written {
    /// This boot of this machine, and this medium in this slot.
    pub since: String,
    pub bytes: u64,
}

impl Written {
    /// Of a whole disk by its kernel name, from the counters of the block layer.
    pub fn now(disk: &str) -> Option<Written> {
        let (sys, boot) = (Path::new("/sys/block").join(disk), text(Path::new("/proc/sys/kernel/random/boot_id"))?);
        let since = format!("{boot}:{}", number(&sys.join("diskseq"))?);
        // The seventh figure counts sectors of 512 bytes that were written (kernel's block/stat).
        let sectors: u64 = text(&sys.join("stat"))?.split_whitespace().nth(6)?.parse().ok()?;
        Some(Written { since, bytes: sectors.checked_mul(512)? })
    }

    /// Bytes from an earlier count to this one; none where another medium or another boot lies between.
    pub fn from(&self, before: &Written) -> Option<u64> {
        (self.since == before.since).then(|| self.bytes.checked_sub(before.bytes))?
    }
}

/// What follows; each with its least and its most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Wear {
    /// Bytes that hosts wrote between the readings.
    pub host_bytes: Option<u64>,
    /// Erases between them.
    pub erases: Option<u64>,
    /// Superblocks: all erases by their mean.
    pub blocks: Option<[f64; 2]>,
    /// Bytes of a superblock: what is erased as one.
    pub superblock: Option<[f64; 2]>,
    /// Bytes to the flash for each byte of the host.
    pub amplification: Option<[f64; 2]>,
}

impl Wear {
    /// In words, one line each.
    pub fn lines(&self) -> Vec<String> {
        let mut out = vec![];
        if let Some([low, high]) = self.superblock {
            out.push(format!(
                "its counters make a superblock (what it erases as one) {} MiB",
                between(&three(low / MIB as f64), &three(high / MIB as f64))
            ));
        }
        if let (Some([low, high]), Some(host)) = (self.amplification, self.host_bytes) {
            out.push(format!("write amplification, counted over {}: {}", about(host), between(&three(low), &three(high))));
        }
        out
    }
}

/// Counts in whole GiB and the like are rounded: as much as this is lost.
const FLASH_GRAIN: u64 = 1 << 30;
/// Differences of fewer counts say nothing.
const FEW: u64 = 8;

impl Reading {
    /// Superblocks on the card: the sum of all erases by their mean, which was rounded down or to the nearest.
    pub fn blocks(&self) -> Option<[f64; 2]> {
        let (total, mean) = (self.total_erases? as f64, self.mean_erases?);
        (mean >= FEW as f64 && total >= mean).then(|| [total / (mean + 1.0), total / (mean - 0.5)])
    }

    /// What the readings say together; `written` is what this host wrote between them, where the card does not count it, and `size`
    /// the bytes of the card.
    pub fn until(&self, after: &Reading, written: Option<u64>, size: u64) -> Wear {
        let counted = after.host_bytes.zip(self.host_bytes).and_then(|(b, a)| b.checked_sub(a));
        let host = counted.filter(|&b| b > 0).or(written).filter(|&b| b > 0);
        let erases = after.total_erases.zip(self.total_erases).and_then(|(b, a)| b.checked_sub(a)).filter(|&e| e >= FEW);
        let flash = after.flash_bytes.zip(self.flash_bytes).and_then(|(b, a)| b.checked_sub(a)).filter(|&f| f >= FEW * FLASH_GRAIN);
        let blocks = after.blocks();
        let wide = |x: u64, grain: u64| [x.saturating_sub(grain) as f64, (x + grain) as f64];
        let over = |a: [f64; 2], b: [f64; 2]| [a[0] / b[1], a[1] / b[0]];
        // The flash behind a card is what it reports and up to an eighth more: 1024 for 1000, and spare blocks.
        let by_count = blocks.map(|b| over([size as f64, size as f64 * 1.125], b));
        let by_flash = erases.zip(flash).map(|(e, f)| over(wide(f, FLASH_GRAIN), wide(e, 1)));
        let superblock = by_flash.or(by_count);
        let amplification = match (host, flash, erases, superblock) {
            (Some(h), Some(f), ..) => Some(over(wide(f, FLASH_GRAIN), [h as f64; 2])),
            (Some(h), None, Some(e), Some(s)) => {
                let e = wide(e, 1);
                Some([e[0] * s[0] / h as f64, e[1] * s[1] / h as f64])
            }
            _ => None,
        };
        Wear { host_bytes: host, erases, blocks, superblock, amplification }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: f64 = 1_048_576.0;

    /// A card of known superblocks and amplification, its counters rounded as cards round them.
    fn card(blocks: u64, superblock: u64, x: f64, host: u64) -> Reading {
        let erases = (host as f64 * x / superblock as f64) as u64;
        Reading { total_erases: Some(erases), mean_erases: Some((erases / blocks) as f64), ..Reading::default() }
    }

    #[test]
    fn superblock_and_amplification_of_known_cards() {
        for (mib, x) in [(4u64, 1.0), (4, 2.7), (16, 1.3), (32, 4.0), (32, 11.0)] {
            let (superblock, size) = (mib << 20, 32_000_000_000u64);
            let blocks = size * 107 / 100 / superblock;
            let (first, between) = (200 * size, 40 * size);
            let (a, b) = (card(blocks, superblock, x, first), card(blocks, superblock, x, first + between));
            let w = a.until(&b, Some(between), size);
            let holds = |i: Option<[f64; 2]>, true_value: f64| i.is_some_and(|[l, h]| l <= true_value && true_value <= h);
            assert!(holds(w.blocks, blocks as f64) && holds(w.superblock, superblock as f64), "{mib} MiB: {w:?}");
            assert!(holds(w.amplification, x), "{mib} MiB, {x}: {w:?}");
            let [l, h] = w.amplification.unwrap();
            assert!(h / l < 1.3, "an interval that says something: {w:?}");
        }
    }

    #[test]
    fn a_card_that_counts_bytes_needs_nothing_of_the_host() {
        let gib = |n: u64| Some(n << 30);
        let a = Reading { host_bytes: gib(1000), flash_bytes: gib(3000), total_erases: Some(96_000), ..Reading::default() };
        let b = Reading { host_bytes: gib(1100), flash_bytes: gib(3300), total_erases: Some(105_600), ..Reading::default() };
        let w = a.until(&b, None, 1 << 35);
        let [l, h] = w.amplification.unwrap();
        assert!(l < 3.0 && h > 3.0 && h - l < 0.05, "{w:?}");
        let [l, h] = w.superblock.unwrap();
        assert!(l < 32.0 * MIB && h > 32.0 * MIB && h / l < 1.02, "{w:?}");
    }

    /// The card of the published readings whose mean is large enough to be exact: 13807590 erases at 13590 on average.
    #[test]
    fn the_published_card_has_1016_superblocks() {
        let r = Reading { total_erases: Some(13_807_590), mean_erases: Some(13_590.0), ..Reading::default() };
        let [l, h] = r.blocks().unwrap();
        assert!(l < 1016.0 && h > 1016.0 && h - l < 1.0, "{l} to {h}");
        let w = r.until(&r, None, 31_914_983_424);
        let [l, h] = w.superblock.unwrap();
        assert!(l < 32.0 * MIB && h > 32.0 * MIB, "{} to {} MiB", l / MIB, h / MIB);
    }

    #[test]
    fn too_little_says_nothing() {
        let r = |erases, mean| Reading { total_erases: Some(erases), mean_erases: Some(mean), ..Reading::default() };
        let w = r(1000, 3.0).until(&r(1004, 3.0), Some(1 << 30), 1 << 35);
        assert_eq!((w.superblock, w.amplification, w.erases), (None, None, None));
        // A counter that fell is no counter.
        assert_eq!(r(2000, 20.0).until(&r(1000, 20.0), Some(1 << 30), 1 << 35).amplification, None);
        assert_eq!(Reading::default().until(&Reading::default(), None, 1 << 35), Wear::default());
    }
}

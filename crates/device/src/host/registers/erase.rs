//! Where the kernel's `preferred_erase_size` comes from. On an SD card it is the AU of the SD status when that gives one;
//! otherwise, and always on eMMC, it is a guess from the capacity, and then it says nothing about the card.

use super::Date;
use super::ssr::Ssr;
use crate::units::{Bytes, MIB};
use serde::{Deserialize, Serialize};

/// The erase size that Linux prefers for a card, with its origin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreferredErase {
    /// Bytes.
    pub bytes: u64,
    /// True where it is only the kernel's guess by capacity, false where the card gave it, None where that cannot be told.
    pub is_kernel_guess: Option<bool>,
    /// The reason, in words.
    pub why: String,
}

/// What Linux prefers where the card gives no AU: 512 KiB, 1, 2 or 4 MiB below 128, 512, 1024 MiB and above, at least one erase group
/// and rounded up to a multiple of it (`mmc_init_erase`). All in bytes; 0 for a group of 0.
pub fn kernel_guess(capacity: u64, erase_group: u64) -> u64 {
    if erase_group == 0 {
        return 0;
    }
    let by_capacity = match capacity / MIB {
        0..128 => MIB / 2,
        128..512 => MIB,
        512..1024 => 2 * MIB,
        _ => 4 * MIB,
    };
    by_capacity.div_ceil(erase_group) * erase_group
}

/// Judges the origin on an SD card. `ssr` is None where the SD status was not to be had; `erase_unit` is that of the CSD.
pub fn sd(bytes: u64, ssr: Option<&Ssr>, capacity: Option<u64>, erase_unit: Option<u64>) -> PreferredErase {
    let guess = capacity.map(|c| kernel_guess(c, erase_unit.unwrap_or(512)));
    let size = Bytes(bytes);
    let (is_kernel_guess, why) = match (ssr.map(|s| s.au), guess) {
        (Some(au), _) if au.bytes == Some(bytes) => (Some(false), format!("the card's own AU (SD status, code {})", au.code)),
        (Some(au), Some(g)) if au.bytes.is_none() && g == bytes => {
            (Some(true), "the SD status gives no usable AU, so this is the kernel's guess by capacity and no measure of the card".into())
        }
        (Some(au), _) if au.bytes.is_none() => {
            (Some(true), "the SD status gives no usable AU, so the kernel made this up (not by the rule known here)".into())
        }
        (Some(au), Some(g)) if g == bytes => (
            Some(true),
            format!("the kernel's guess by capacity; the SD status says {}", au.bytes.map_or("nothing".into(), |b| Bytes(b).to_string())),
        ),
        (Some(au), _) => (
            None,
            format!(
                "neither the AU of the SD status ({}) nor the kernel's guess",
                au.bytes.map_or("none".into(), |b| Bytes(b).to_string())
            ),
        ),
        (None, Some(g)) if g == bytes => (
            None,
            format!("the SD status is not at hand, and {size} is also what the kernel guesses for this capacity: it may measure nothing"),
        ),
        (None, Some(g)) => {
            (Some(false), format!("the SD status is not at hand, but the kernel would guess {}, so the card gave this AU", Bytes(g)))
        }
        (None, None) => (None, "neither the SD status nor the capacity is available, so its origin is not known".into()),
    };
    PreferredErase { bytes, is_kernel_guess, why }
}

/// On eMMC and MMC it is always a guess. `erase_group` is the unit it is rounded to.
pub fn mmc(bytes: u64, capacity: Option<u64>, erase_group: Option<u64>) -> PreferredErase {
    let guess = capacity.zip(erase_group).map(|(c, g)| kernel_guess(c, g));
    let why = match (guess, erase_group) {
        (Some(g), Some(group)) if g == bytes => {
            format!("on eMMC always the kernel's guess: by capacity, in whole erase groups of {}", Bytes(group))
        }
        (Some(g), _) => format!("on eMMC always the kernel's guess (the rule known here would give {})", Bytes(g)),
        (None, _) => "on eMMC always the kernel's guess by capacity, in whole erase groups".into(),
    };
    PreferredErase { bytes, is_kernel_guess: Some(true), why }
}

/// Puts an erase block that was found beside the declared unit, in one sentence. All in bytes.
pub fn beside(declared: Option<u64>, preferred: Option<&PreferredErase>, found: u64) -> String {
    let block = Bytes(found);
    let Some(unit) = declared.filter(|&u| u > 0 && found > 0) else {
        return match preferred {
            Some(p) if p.is_kernel_guess == Some(true) => {
                format!("the card declares no unit to compare with; preferred_erase_size ({}) is only the kernel's guess", Bytes(p.bytes))
            }
            Some(p) if p.bytes != found => {
                format!(
                    "the card declares no unit to compare with; preferred_erase_size ({}) may be only the kernel's guess",
                    Bytes(p.bytes)
                )
            }
            _ => "the card declares no unit to compare with".into(),
        };
    };
    let (au, times) = (Bytes(unit), unit.max(found) / unit.min(found));
    match (unit.is_multiple_of(found), found.is_multiple_of(unit)) {
        (true, true) => format!("the declared {au} is the erase block found"),
        (true, false) => {
            format!("differs: the declared {au} is {times} erase blocks of the {block} found; aligned to it is aligned to both")
        }
        (false, true) => {
            format!("differs: the {block} found is {times} times the declared {au}; aligned to the declared unit is not enough")
        }
        (false, false) => format!("differs: neither the declared {au} nor the {block} found is a multiple of the other"),
    }
}

/// The oldest year in which a card of this capacity (CSD version 2) can have been made: SDHC came in 2006, SDXC in 2009.
pub fn too_old_for_capacity(capacity: u64, date: Date) -> Option<&'static str> {
    if capacity > 32 << 30 && date.year < 2009 {
        Some("SDXC was specified in 2009")
    } else if capacity > 2 << 30 && date.year < 2006 {
        Some("SDHC was specified in 2006")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ssr(au_code: u8) -> Ssr {
        let mut r = [0; 64];
        r[0] = 0x80;
        r[10] = au_code << 4;
        Ssr::decode(&r, Some(true))
    }

    #[test]
    fn the_rule() {
        for (mib, group, want) in [
            (127, 512, MIB / 2),
            (128, 512, MIB),
            (511, 512, MIB),
            (512, 512, 2 * MIB),
            (1024, 512, 4 * MIB),
            (7456, 512 << 10, 4 * MIB),
            (7456, 8 * MIB, 8 * MIB),
            (7456, 3 * MIB, 6 * MIB),
            (7456, 0, 0),
        ] {
            assert_eq!(kernel_guess(mib * MIB, group), want, "{mib} MiB, group {group}");
        }
    }

    #[test]
    fn origins() {
        let say = |bytes, ssr: Option<&Ssr>, cap| sd(bytes, ssr, cap, None).is_kernel_guess;
        let big = Some(4 << 30);
        assert_eq!(say(8 * MIB, Some(&ssr(0xa)), big), Some(false));
        assert_eq!(say(4 * MIB, Some(&ssr(9)), big), Some(false), "equal to the guess, but the card says so itself");
        assert_eq!(say(4 * MIB, Some(&ssr(0)), big), Some(true));
        assert_eq!(say(MIB, Some(&ssr(0)), big), Some(true));
        assert_eq!(say(4 * MIB, Some(&ssr(0xf)), big), Some(true), "an AU of 64 MiB that the kernel did not take");
        assert_eq!(say(MIB, Some(&ssr(0xf)), big), None);
        assert_eq!(say(4 * MIB, None, big), None);
        assert_eq!(say(8 * MIB, None, big), Some(false));
        assert_eq!(say(8 * MIB, None, None), None);
        assert_eq!(mmc(4 * MIB, big, Some(MIB / 2)).is_kernel_guess, Some(true));
        assert!(mmc(4 * MIB, big, Some(8 * MIB)).why.contains("would give 8 MiB"));
    }

    #[test]
    fn declared_beside_found() {
        let say = |declared: Option<u64>, found| beside(declared.map(|m: u64| m * MIB), None, found * MIB);
        assert_eq!(say(Some(4), 4), "the declared 4 MiB is the erase block found");
        assert_eq!(say(Some(4), 2), "differs: the declared 4 MiB is 2 erase blocks of the 2 MiB found; aligned to it is aligned to both");
        assert!(say(Some(4), 12).contains("12 MiB found is 3 times the declared 4 MiB"));
        assert!(say(Some(4), 6).contains("neither the declared 4 MiB nor the 6 MiB found"));
        assert_eq!(say(None, 4), "the card declares no unit to compare with");
        assert!(beside(None, Some(&sd(4 * MIB, Some(&ssr(0)), Some(4 << 30), None)), 2 * MIB).ends_with("is only the kernel's guess"));
        assert!(beside(None, Some(&sd(4 * MIB, None, Some(4 << 30), None)), 2 * MIB).ends_with("may be only the kernel's guess"));
    }

    #[test]
    fn history() {
        let made = |year| Date { year, month: 1 };
        assert_eq!(too_old_for_capacity(4 << 30, made(2005)), Some("SDHC was specified in 2006"));
        assert_eq!(too_old_for_capacity(64 << 30, made(2008)), Some("SDXC was specified in 2009"));
        assert_eq!(too_old_for_capacity(64 << 30, made(2009)), None);
        assert_eq!(too_old_for_capacity(1 << 30, made(2002)), None);
    }
}

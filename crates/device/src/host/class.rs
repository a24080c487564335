//! What the speed classes of SD cards ask for: one definition of each limit.
//!
//! SD Physical Layer Simplified Specification 9.10: Speed Class 4.13.1, UHS Speed Grade and Video Speed Class 4.13, Application Performance
//! Class 4.16.

use super::declared::Declared;
use crate::units::{GIB, KIB, MIB};

/// One speed class.
#[derive(Clone, Debug, PartialEq)]
pub struct Class {
    /// As printed on the card.
    pub name: String,
    /// Sequential write, bytes a second (Pw).
    pub sequential_write: f64,
    /// Moving used recording units, bytes a second (Pm); 0 where the class has no such limit.
    pub moving: f64,
    /// Random reads and writes of 4 KiB a second, where the class has such limits.
    pub random: Option<[f64; 2]>,
    /// Its limits hold with a command queue only.
    pub queued: bool,
}

/// Reads so many times as fast as a rate show that the reader could carry that rate.
pub const FASTER: f64 = 1.25;

/// A write goes out over the reader in at most so many times as long as a read of the same size comes in.
const READER: f64 = 2.0;

/// May the reader be what keeps writes below this limit? Bounds of writes and of reads in bytes a second.
pub fn slow_reader(write: Option<[f64; 2]>, read: Option<[f64; 2]>, least: f64) -> bool {
    let could = |rate: f64| read.is_some_and(|r| r[1] >= FASTER * rate);
    !could(least) && !write.is_some_and(|w| could(w[1])) && !card_is_slow(write, read, least)
}

/// Is the card itself slower than this limit, whatever of the time the reader may have taken?
pub fn card_is_slow(write: Option<[f64; 2]>, read: Option<[f64; 2]>, least: f64) -> bool {
    let (Some(w), Some(r)) = (write, read) else { return false };
    let card = 1.0 / w[1] - READER / r[0];
    card > 0.0 && 1.0 / card < least
}

/// One FAT cycle (FAT, its copy or the bitmap, the directory entry), mean of eight in a row, in ms (TFW(ave)).
pub const FAT_CYCLE_MEAN_MS: f64 = 100.0;
/// The longest FAT cycle, in ms (TFW(max)).
pub const FAT_CYCLE_LONGEST_MS: f64 = 750.0;
/// FAT cycles of which the mean is taken.
pub const FAT_CYCLES: usize = 8;
/// Bytes of each copy of the FAT, or of the bitmap, in a FAT cycle.
pub const FAT_PIECE: u64 = 16 * KIB;

/// Which rules a class follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    /// C2 to C10.
    Speed,
    /// U1, U3.
    Uhs,
    /// V6 to V90.
    Video,
    /// A1, A2.
    Application,
}

impl Class {
    /// All names.
    pub const NAMES: [&str; 13] = ["C2", "C4", "C6", "C10", "U1", "U3", "V6", "V10", "V30", "V60", "V90", "A1", "A2"];

    /// By its name: C2 to C10, U1, U3, V6 to V90, A1, A2.
    ///
    /// # Errors
    /// There is no such class.
    pub fn by_name(name: &str) -> Result<Class, String> {
        let name = name.trim().to_ascii_uppercase();
        if !Class::NAMES.contains(&name.as_str()) {
            return Err(format!("'{name}' is no class; there are {}", Class::NAMES.join(", ")));
        }
        let number: f64 = name[1..].parse().unwrap_or(0.0);
        let (megabytes, random) = match name.as_str() {
            "A1" => (10.0, Some([1500.0, 500.0])),
            "A2" => (10.0, Some([4000.0, 2000.0])),
            "U1" => (10.0, None),
            "U3" => (30.0, None),
            _ => (number, None),
        };
        let moving = match name.as_str() {
            "C2" | "C4" | "C6" => number / 2.0 * 1e6,
            _ => 0.0,
        };
        Ok(Class { queued: name == "A2", name, sequential_write: megabytes * 1e6, moving, random })
    }

    /// Each of these once, in their order.
    pub fn once(all: &[Class]) -> Vec<Class> {
        let again = |i: usize| all[..i].contains(&all[i]);
        (0..all.len()).filter(|i| !again(*i)).map(|i| all[i].clone()).collect()
    }

    /// What a card declares in its SD status, the most demanding first for sequential writes and the application class beside it.
    pub fn declared(d: &Declared) -> Vec<Class> {
        let Some(ssr) = d.ssr.as_ref().filter(|s| !s.is_blank()) else { return vec![] };
        let mut names = vec![];
        if (1..=2).contains(&ssr.app_class) {
            names.push(format!("A{}", ssr.app_class));
        }
        names.push(format!("V{}", ssr.video_class));
        names.push(format!("U{}", ssr.uhs_grade));
        names.push(format!("C{}", ssr.speed_class.unwrap_or(0)));
        let mut all: Vec<Class> = names.iter().filter_map(|n| Class::by_name(n).ok()).collect();
        // Of classes that ask for sequential writes only the highest counts.
        let most = all.iter().map(|c| c.sequential_write).fold(0.0, f64::max);
        let mut seen = false;
        all.retain(|c| c.random.is_some() || (c.sequential_write == most && !std::mem::replace(&mut seen, true)));
        all
    }

    /// Its rules.
    pub fn family(&self) -> Family {
        match self.name.as_bytes().first() {
            Some(b'U') => Family::Uhs,
            Some(b'V') => Family::Video,
            Some(b'A') => Family::Application,
            _ => Family::Speed,
        }
    }

    /// Bytes of a recording unit on a card of this capacity: what one write of the test has (4.13.1; 4 MiB for the application classes).
    pub fn recording_unit(&self, capacity: u64) -> u64 {
        match (self.family(), self.name.as_str()) {
            (Family::Application, _) => 4 * MIB,
            (Family::Speed, "C2" | "C4") if capacity <= GIB => 16 * KIB,
            (Family::Speed, "C2" | "C4" | "C6") if is_xc(capacity) => 256 * KIB,
            (Family::Speed, "C2" | "C4") => 32 * KIB,
            (Family::Speed, "C6") => 64 * KIB,
            _ => 512 * KIB,
        }
    }

    /// Bytes over which the rate is taken: the AU of SDSC and SDHC cards, 4 MiB of others, the sub-unit of the video classes. `declared` is
    /// the AU the card declares, in bytes.
    pub fn measured_unit(&self, capacity: u64, declared: Option<u64>) -> u64 {
        match self.family() {
            Family::Video => video_sub_unit(declared),
            Family::Speed if !is_xc(capacity) => declared.unwrap_or_else(|| largest_au(capacity)).min(largest_au(capacity)),
            _ => 4 * MIB,
        }
    }
}

/// SDXC or SDUC: more than 32 GiB, or what is sold as 64 GB.
pub fn is_xc(capacity: u64) -> bool {
    capacity > 32 * GIB
}

/// The longest read of 4 KiB of the FAT, in ms (TFR): 12 on SDSC and SDHC, 20 on SDXC.
pub fn fat_read_ms(capacity: u64) -> f64 {
    if is_xc(capacity) { 20.0 } else { 12.0 }
}

/// Largest AU that a card of this capacity may declare (table of 4.13.1), in bytes.
fn largest_au(capacity: u64) -> u64 {
    match capacity {
        c if c <= 64 * MIB => 512 * KIB,
        c if c <= 256 * MIB => MIB,
        c if c <= 512 * MIB => 2 * MIB,
        _ => 4 * MIB,
    }
}

/// Bytes of a sub-unit by the AU of the video classes (table 4-56): 8 MiB, or what divides odd AUs.
fn video_sub_unit(au: Option<u64>) -> u64 {
    match au.map(|a| a / MIB) {
        Some(21 | 28 | 42) => 7 * MIB,
        Some(27 | 36 | 45 | 54) => 9 * MIB,
        Some(30 | 60) => 10 * MIB,
        _ => 8 * MIB,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_those_of_the_tables() {
        let of = |n: &str| Class::by_name(n).unwrap();
        let sizes = [
            ("C2", GIB, 16 * KIB),
            ("C4", 8 * GIB, 32 * KIB),
            ("C6", 8 * GIB, 64 * KIB),
            ("C10", 8 * GIB, 512 * KIB),
            ("C4", 60 * GIB, 256 * KIB),
        ];
        for (name, capacity, ru) in sizes {
            assert_eq!(of(name).recording_unit(capacity), ru, "{name} {capacity}");
        }
        assert_eq!((of("V30").measured_unit(60 * GIB, Some(27 * MIB)), of("V30").measured_unit(60 * GIB, None)), (9 * MIB, 8 * MIB));
        assert_eq!((of("C4").measured_unit(50 * MIB, None), of("C4").measured_unit(8 * GIB, Some(MIB))), (512 * KIB, MIB));
        assert_eq!((fat_read_ms(32 * GIB), fat_read_ms(60 * GIB)), (12.0, 20.0));
        assert_eq!((of("C6").moving, of("C10").moving), (3e6, 0.0));
    }
}

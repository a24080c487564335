//! SSR, the SD status (512 bits): allocation unit, speed marks, erase times.
//!
//! Layout: SD Physical Layer 4.10.2. DAT_BUS_WIDTH 511:510, SECURED_MODE 509, SD_CARD_TYPE 495:480,
//! SIZE_OF_PROTECTED_AREA 479:448, SPEED_CLASS 447:440, PERFORMANCE_MOVE 439:432, AU_SIZE 431:428, ERASE_SIZE 423:408,
//! ERASE_TIMEOUT 407:402, ERASE_OFFSET 401:400, UHS_SPEED_GRADE 399:396, UHS_AU_SIZE 395:392, VIDEO_SPEED_CLASS 391:384,
//! VSC_AU_SIZE 377:368, SUS_ADDR 367:346, APP_PERF_CLASS 339:336, PERFORMANCE_ENHANCE 335:328 (queue depth in the upper five
//! bits, then cache, host maintenance, card maintenance; this split is not checked against the specification's text),
//! DISCARD_SUPPORT 313, FULE_SUPPORT 312, the rest for the maker.

use super::{field, flag, hex};
use crate::units::{KIB, MIB};
use serde::{Deserialize, Serialize};

/// A size given as a code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodedSize {
    /// The code as found.
    pub code: u8,
    /// What it means in bytes; None for "not defined", reserved codes and codes that cannot be believed.
    pub bytes: Option<u64>,
}

/// The decoded SD status.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ssr {
    /// Data lines in use when the status was read: 1 or 4; None for reserved codes.
    pub bus_width: Option<u8>,
    /// In secured mode.
    pub secured: bool,
    /// SD_CARD_TYPE: 0 is a regular card, 1 a ROM card, 2 write-once.
    pub card_type: u16,
    /// SIZE_OF_PROTECTED_AREA as found: bytes on SDHC and larger, a multiple on SDSC.
    pub protected_area: u32,
    /// Speed class in MB/s (0, 2, 4, 6, 10); None for reserved codes.
    pub speed_class: Option<u8>,
    /// SPEED_CLASS as found.
    pub speed_class_code: u8,
    /// PERFORMANCE_MOVE in MB/s as found: 0 for sequential write, 255 for infinity.
    pub performance_move: u8,
    /// AU_SIZE.
    pub au: CodedSize,
    /// AUs erased within the time-out; 0 where the card does not say.
    pub erase_size: u16,
    /// Seconds for erasing `erase_size` AUs.
    pub erase_timeout: u8,
    /// Seconds to be added to any erase.
    pub erase_offset: u8,
    /// UHS speed grade: 0 below U1, 1 or 3; other codes are reserved.
    pub uhs_grade: u8,
    /// UHS_AU_SIZE.
    pub uhs_au: CodedSize,
    /// Video speed class in MB/s: 0, 6, 10, 30, 60 or 90; other codes are reserved.
    pub video_class: u8,
    /// VSC_AU_SIZE in MiB; 0 where not defined.
    pub video_au_mib: u16,
    /// SUS_ADDR, the suspension address of a video stream, as found.
    pub suspension_address: u32,
    /// Application performance class: 0 none, 1 for A1, 2 for A2; other codes are reserved.
    pub app_class: u8,
    /// Depth of the command queue; None where there is none.
    pub queue_depth: Option<u8>,
    /// Has a cache that the host can flush.
    pub cache: bool,
    /// Maintenance can be started by the host.
    pub host_maintenance: bool,
    /// The card starts maintenance itself.
    pub card_maintenance: bool,
    /// Discard command.
    pub discard: bool,
    /// Full user area logical erase.
    pub fule: bool,
    /// The register as hex.
    pub raw: String,
}

/// AU_SIZE codes in KiB (SD Physical Layer, table of AU_SIZE; the same as `sd_au_size` in Linux). Not powers of two throughout.
const AU_KIB: [u64; 16] = [0, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 12_288, 16_384, 24_576, 32_768, 65_536];

/// Bytes of an AU_SIZE code; None for 0, "not defined".
pub fn au_bytes(code: u8) -> Option<u64> {
    AU_KIB.get(usize::from(code)).copied().filter(|&kib| kib != 0).map(|kib| kib * KIB)
}

impl Ssr {
    /// Reads the register. `spec3` is what the SCR says ([`super::scr::Scr::spec3`]); where it says no, AU codes above 9 are not
    /// believed, as in Linux. Without an SCR they are.
    pub fn decode(register: &[u8; 64], spec3: Option<bool>) -> Ssr {
        let r = register.as_slice();
        let au_code = field(r, 431, 428) as u8;
        let uhs_au_code = field(r, 395, 392) as u8;
        let speed_class_code = field(r, 447, 440) as u8;
        let queue = field(r, 335, 331) as u8;
        Ssr {
            bus_width: match field(r, 511, 510) {
                0 => Some(1),
                2 => Some(4),
                _ => None,
            },
            secured: flag(r, 509),
            card_type: field(r, 495, 480) as u16,
            protected_area: field(r, 479, 448) as u32,
            speed_class: [0, 2, 4, 6, 10].get(usize::from(speed_class_code)).copied(),
            speed_class_code,
            performance_move: field(r, 439, 432) as u8,
            au: CodedSize { code: au_code, bytes: au_bytes(au_code).filter(|_| au_code <= 9 || spec3 != Some(false)) },
            erase_size: field(r, 423, 408) as u16,
            erase_timeout: field(r, 407, 402) as u8,
            erase_offset: field(r, 401, 400) as u8,
            uhs_grade: field(r, 399, 396) as u8,
            uhs_au: CodedSize { code: uhs_au_code, bytes: au_bytes(uhs_au_code).filter(|_| uhs_au_code >= 7) },
            video_class: field(r, 391, 384) as u8,
            video_au_mib: field(r, 377, 368) as u16,
            suspension_address: field(r, 367, 346) as u32,
            app_class: field(r, 339, 336) as u8,
            queue_depth: (queue > 0).then_some(queue + 1),
            cache: flag(r, 330),
            host_maintenance: flag(r, 329),
            card_maintenance: flag(r, 328),
            discard: flag(r, 313),
            fule: flag(r, 312),
            raw: hex(r),
        }
    }

    /// True where the card gave nothing at all (all zeros or all ones), as some emulations and readers do.
    pub fn is_blank(&self) -> bool {
        self.raw.bytes().all(|b| b == b'0') || self.raw.bytes().all(|b| b == b'f')
    }

    /// The marks in one line: "speed class 10, U3, V30, A2".
    pub fn marks(&self) -> String {
        let mut marks = vec![match self.speed_class {
            Some(0) => "no speed class (class 0)".to_string(),
            Some(n) => format!("speed class {n}"),
            None => format!("speed class code {} (reserved)", self.speed_class_code),
        }];
        match self.uhs_grade {
            0 => {}
            1 | 3 => marks.push(format!("U{}", self.uhs_grade)),
            code => marks.push(format!("UHS grade code {code} (reserved)")),
        }
        match self.video_class {
            0 => {}
            6 | 10 | 30 | 60 | 90 => marks.push(format!("V{}", self.video_class)),
            code => marks.push(format!("video class code {code} (reserved)")),
        }
        match self.app_class {
            0 => {}
            1 | 2 => marks.push(format!("A{}", self.app_class)),
            code => marks.push(format!("application class code {code} (reserved)")),
        }
        marks.join(", ")
    }

    /// The sustained write rate in MB/s (10^6) that the highest mark promises; None without a mark.
    pub fn promised_write_rate(&self) -> Option<u32> {
        let uhs = match self.uhs_grade {
            1 => 10,
            3 => 30,
            _ => 0,
        };
        let video = if [6, 10, 30, 60, 90].contains(&self.video_class) { u32::from(self.video_class) } else { 0 };
        let app = if [1, 2].contains(&self.app_class) { 10 } else { 0 };
        let class = self.speed_class.map_or(0, u32::from);
        Some(class.max(uhs).max(video).max(app)).filter(|&rate| rate > 0)
    }

    /// The erase time-out in seconds for a number of AUs: AUs * ERASE_TIMEOUT / ERASE_SIZE + ERASE_OFFSET. None where the card does
    /// not say (either field 0).
    pub fn erase_seconds(&self, aus: u32) -> Option<f64> {
        let known = self.erase_size > 0 && self.erase_timeout > 0;
        known.then(|| f64::from(aus) * f64::from(self.erase_timeout) / f64::from(self.erase_size) + f64::from(self.erase_offset))
    }

    /// What is wrong or odd, with the reason.
    pub fn findings(&self) -> Vec<String> {
        if self.is_blank() {
            return vec!["SSR is all zeros or all ones: the card gave no status (emulations do that)".into()];
        }
        let mut found = vec![];
        if self.au.code > 9 && self.au.bytes.is_none() {
            found.push(format!(
                "SSR: AU_SIZE code {} is not believed, because the SCR does not say specification 3 (Linux does the same)",
                self.au.code
            ));
        }
        if (1..7).contains(&self.uhs_au.code) {
            found.push(format!("SSR: UHS_AU_SIZE code {} is not used by the specification", self.uhs_au.code));
        }
        for (value, reserved, name) in [
            (u16::from(self.speed_class_code), self.speed_class.is_none(), "SPEED_CLASS"),
            (self.uhs_grade.into(), ![0, 1, 3].contains(&self.uhs_grade), "UHS_SPEED_GRADE"),
            (self.video_class.into(), ![0, 6, 10, 30, 60, 90].contains(&self.video_class), "VIDEO_SPEED_CLASS"),
            (self.app_class.into(), self.app_class > 2, "APP_PERF_CLASS"),
            (self.card_type, self.card_type > 2, "SD_CARD_TYPE"),
        ] {
            if reserved {
                found.push(format!("SSR: {name} code {value} is reserved"));
            }
        }
        if self.app_class == 2 && !(self.cache && self.queue_depth.is_some()) {
            found.push("SSR: declares A2, but PERFORMANCE_ENHANCE does not show the command queue and cache that A2 relies on".into());
        }
        if self.video_au_mib > 0 && self.au.bytes.is_some_and(|au| !(u64::from(self.video_au_mib) * MIB).is_multiple_of(au)) {
            found.push(format!("SSR: VSC_AU_SIZE of {} MiB is not a multiple of the AU", self.video_au_mib));
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse_array;
    use super::*;

    fn ssr(words: &str, spec3: Option<bool>) -> Ssr {
        let digits: String = words.chars().filter(char::is_ascii_hexdigit).collect();
        Ssr::decode(&parse_array("SSR", &format!("{digits:0<128}")).unwrap(), spec3)
    }

    #[test]
    fn au_codes() {
        let mib: Vec<Option<u64>> = (7..16).map(|c| au_bytes(c).map(|b| b / MIB)).collect();
        assert_eq!(mib, [1, 2, 4, 8, 12, 16, 24, 32, 64].map(Some));
        assert_eq!((au_bytes(0), au_bytes(1), au_bytes(6), au_bytes(16)), (None, Some(16 << 10), Some(512 << 10), None));
    }

    #[test]
    fn large_au_needs_specification_3() {
        let words = "80000000 00000000 0400b000";
        assert_eq!(ssr(words, Some(true)).au.bytes, Some(12 << 20));
        assert_eq!(ssr(words, None).au.bytes, Some(12 << 20));
        let old = ssr(words, Some(false));
        assert_eq!(old.au, CodedSize { code: 11, bytes: None });
        assert!(old.findings()[0].contains("not believed"));
        assert_eq!(ssr("80000000 00000000 04009000", Some(false)).au.bytes, Some(4 << 20));
    }

    #[test]
    fn marks_in_words() {
        // SPEED_CLASS 4; then UHS grade 1 and UHS AU 9; V10; A1
        let s = ssr("80000000 02000000 04009000 0f051a0a 00080000 00010000", Some(true));
        assert_eq!(s.marks(), "speed class 10, U1, V10, A1");
        assert_eq!(s.promised_write_rate(), Some(10));
        assert_eq!((s.erase_size, s.erase_timeout, s.erase_offset), (0x0f, 1, 1), "0x05 = 000001 01");
        assert_eq!((s.uhs_grade, s.uhs_au.code), (1, 0xa));
        let odd = ssr("80000000 00000000 09009000 00002107 00000000 00070000", None);
        assert_eq!(
            odd.marks(),
            "speed class code 9 (reserved), UHS grade code 2 (reserved), video class code 7 (reserved), application class code 7 (reserved)"
        );
        assert_eq!(odd.findings().len(), 5, "{:?}", odd.findings());
        assert_eq!(odd.promised_write_rate(), None);
    }

    #[test]
    fn a2_without_queue_or_cache() {
        assert!(ssr("80000000 00000000 04009000 00003000 00000000 00020000", None).findings()[0].contains("A2"));
        assert!(ssr("80000000 00000000 04009000 00003000 00000000 00020c00", None).findings().is_empty());
    }

    #[test]
    fn blank() {
        assert!(ssr("", None).is_blank() && ssr("", None).au.bytes.is_none());
        assert!(ssr("", None).findings()[0].contains("no status"));
    }
}

//! CSD, the card-specific data register (128 bits): capacity, block lengths, write protection.
//!
//! Layouts: SD Physical Layer 5.3 (structure 0 = version 1 for SDSC, 1 = version 2 for SDHC and SDXC, 2 = version 3 for SDUC) and
//! JESD84-B51 7.3 for MMC and eMMC, which differs in the erase fields and has SPEC_VERS 125:122.

use super::{Checksum, checksum, field, flag, hex};
use crate::units::Bytes;
use serde::{Deserialize, Serialize};

/// Which layout was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CsdLayout {
    /// SD version 1: up to 2 GiB.
    SdV1,
    /// SD version 2: SDHC and SDXC.
    SdV2,
    /// SD version 3: SDUC.
    SdV3,
    /// SD with the reserved structure 3: only the common fields are read.
    SdReserved,
    /// MMC or eMMC.
    Mmc,
}

/// The decoded card-specific data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Csd {
    /// Layout used.
    pub layout: CsdLayout,
    /// SPEC_VERS of MMC: 4 means 4.0 and later.
    pub spec_vers: Option<u8>,
    /// Capacity in bytes. None where the register does not say (eMMC above 2 GiB, reserved structure, field overflow).
    pub capacity: Option<u64>,
    /// Read block in bytes.
    pub read_block: u32,
    /// Write block in bytes.
    pub write_block: u32,
    /// Smallest unit of an erase command in bytes, where this register says: a write block or erase sector on SD version 1, the
    /// erase group on MMC. None on SD version 2 and 3, where the fields are fixed and mean nothing.
    pub erase_unit: Option<u64>,
    /// SECTOR_SIZE of SD version 1 in bytes: the erase sector of old cards.
    pub erase_sector: Option<u64>,
    /// Write-protect group in bytes where groups are enabled.
    pub write_protect_group: Option<u64>,
    /// Bus clock for one data line in bit/s; None for reserved codes.
    pub tran_speed: Option<u64>,
    /// Command classes, bit n for class n.
    pub command_classes: u16,
    /// Write time as a multiple of the read access time.
    pub write_factor: u32,
    /// The contents are a copy.
    pub copy: bool,
    /// Permanently read-only.
    pub permanent_write_protect: bool,
    /// Read-only until the bit is cleared.
    pub temporary_write_protect: bool,
    /// FILE_FORMAT with FILE_FORMAT_GRP in words.
    pub file_format: String,
    /// The CRC7 at the end.
    pub checksum: Checksum,
    /// The register as hex.
    pub raw: String,
    /// Fields that are fixed by the specification and have another value here.
    pub irregular: Vec<String>,
}

/// True where the first byte is one an SD card sends: the six bits after CSD_STRUCTURE are reserved zeros there and hold
/// SPEC_VERS on MMC.
pub fn looks_like_sd(register: &[u8; 16]) -> bool {
    register[0] & 0x3f == 0
}

/// TRAN_SPEED in bit/s: a mantissa in tenths times 100 kbit/s, 1, 10 or 100 Mbit/s. Two mantissas differ between SD and MMC.
fn tran_speed(code: u8, mmc: bool) -> Option<u64> {
    const SD: [u64; 16] = [0, 10, 12, 13, 15, 20, 25, 30, 35, 40, 45, 50, 55, 60, 70, 80];
    const MMC: [u64; 16] = [0, 10, 12, 13, 15, 20, 26, 30, 35, 40, 45, 52, 55, 60, 70, 80];
    let mantissa = if mmc { MMC } else { SD }[usize::from(code >> 3 & 0xf)];
    let unit = *[10_000u64, 100_000, 1_000_000, 10_000_000].get(usize::from(code & 7))?;
    (mantissa != 0 && code & 0x80 == 0).then_some(mantissa * unit)
}

fn file_format(r: &[u8]) -> String {
    match (flag(r, 15), field(r, 11, 10)) {
        (false, 0) => "hard disk with partition table".into(),
        (false, 1) => "floppy-like, without partition table".into(),
        (false, 2) => "universal file format".into(),
        (false, _) => "others or unknown".into(),
        (true, code) => format!("reserved (group 1, code {code})"),
    }
}

impl Csd {
    /// Reads the SD layouts.
    pub fn sd(register: &[u8; 16]) -> Csd {
        let r = register.as_slice();
        let layout = match field(r, 127, 126) {
            0 => CsdLayout::SdV1,
            1 => CsdLayout::SdV2,
            2 => CsdLayout::SdV3,
            _ => CsdLayout::SdReserved,
        };
        let mut csd = Csd::common(register, layout);
        let write_block = u64::from(csd.write_block);
        match layout {
            CsdLayout::SdV1 => {
                csd.capacity = old_capacity(r);
                let sector = (field(r, 45, 39) + 1) * write_block;
                csd.erase_sector = Some(sector);
                csd.erase_unit = Some(if flag(r, 46) { write_block } else { sector });
                csd.write_protect_group = flag(r, 31).then(|| (field(r, 38, 32) + 1) * sector);
                if !(9..=11).contains(&field(r, 83, 80)) {
                    csd.irregular.push(format!("READ_BL_LEN is {}; the specification allows 9 to 11", field(r, 83, 80)));
                }
            }
            CsdLayout::SdV2 => csd.capacity = Some((field(r, 69, 48) + 1) << 19),
            CsdLayout::SdV3 => csd.capacity = Some((field(r, 75, 48) + 1) << 19),
            _ => csd.irregular.push("CSD_STRUCTURE is 3, which is reserved: capacity not read".into()),
        }
        if matches!(layout, CsdLayout::SdV2 | CsdLayout::SdV3) {
            for (name, high, low, fixed) in
                [("READ_BL_LEN", 83, 80, 9), ("WRITE_BL_LEN", 25, 22, 9), ("ERASE_BLK_EN", 46, 46, 1), ("SECTOR_SIZE", 45, 39, 0x7f)]
            {
                let value = field(r, high, low);
                if value != fixed {
                    csd.irregular.push(format!("{name} is {value:#x}; the specification fixes it at {fixed:#x}"));
                }
            }
        }
        csd
    }

    /// Reads the MMC layout.
    pub fn mmc(register: &[u8; 16]) -> Csd {
        let r = register.as_slice();
        let mut csd = Csd::common(register, CsdLayout::Mmc);
        csd.spec_vers = Some(field(r, 125, 122) as u8);
        csd.capacity = if field(r, 73, 62) == 0xfff { None } else { old_capacity(r) };
        let group = (field(r, 46, 42) + 1) * (field(r, 41, 37) + 1) * u64::from(csd.write_block);
        csd.erase_unit = Some(group);
        csd.write_protect_group = flag(r, 31).then(|| (field(r, 36, 32) + 1) * group);
        csd
    }

    fn common(register: &[u8; 16], layout: CsdLayout) -> Csd {
        let r = register.as_slice();
        Csd {
            layout,
            spec_vers: None,
            capacity: None,
            read_block: 1 << field(r, 83, 80),
            write_block: 1 << field(r, 25, 22),
            erase_unit: None,
            erase_sector: None,
            write_protect_group: None,
            tran_speed: tran_speed(field(r, 103, 96) as u8, layout == CsdLayout::Mmc),
            command_classes: field(r, 95, 84) as u16,
            write_factor: 1 << field(r, 28, 26),
            copy: flag(r, 14),
            permanent_write_protect: flag(r, 13),
            temporary_write_protect: flag(r, 12),
            file_format: file_format(r),
            checksum: checksum(register),
            raw: hex(r),
            irregular: vec![],
        }
    }

    /// "SDSC", "SDHC", "SDXC", "SDUC" or "MMC"/"eMMC" by capacity and layout.
    pub fn family(&self) -> &'static str {
        match (self.layout, self.capacity) {
            (CsdLayout::SdV1, _) => "SDSC (up to 2 GiB)",
            (CsdLayout::SdV2, Some(bytes)) if bytes > 32 << 30 => "SDXC (above 32 GiB)",
            (CsdLayout::SdV2, _) => "SDHC (up to 32 GiB)",
            (CsdLayout::SdV3, _) => "SDUC (above 2 TiB)",
            (CsdLayout::SdReserved, _) => "SD with a reserved CSD structure",
            (CsdLayout::Mmc, _) if self.spec_vers.is_some_and(|v| v >= 4) => "MMC 4.0 or later (eMMC)",
            (CsdLayout::Mmc, _) => "MMC before 4.0",
        }
    }

    /// What is wrong or worth knowing before writing.
    pub fn findings(&self) -> Vec<String> {
        let mut found: Vec<String> = self.irregular.iter().map(|t| format!("CSD: {t}")).collect();
        if self.raw.bytes().all(|b| b == b'0') || self.raw.bytes().all(|b| b == b'f') {
            return vec!["CSD is all zeros or all ones: not a register a card sends".into()];
        }
        // What each structure is for begins where the one before it ends.
        let least = match self.layout {
            CsdLayout::SdV2 => 2_000_000_000,
            CsdLayout::SdV3 => 2 << 40,
            _ => 0,
        };
        if let Some(bytes) = self.capacity.filter(|b| *b < least) {
            found.push(format!(
                "CSD: its structure is that of {}, and {} is too little for that: copied wrongly, or no register of a card",
                self.family().split(' ').next().unwrap_or_default(),
                Bytes(bytes)
            ));
        }
        if self.permanent_write_protect {
            found.push("CSD: PERM_WRITE_PROTECT is set: the card is read-only for good".into());
        }
        if self.temporary_write_protect {
            found.push("CSD: TMP_WRITE_PROTECT is set: the card refuses writes until the bit is cleared".into());
        }
        if let Checksum::Wrong { found: a, computed: b } = self.checksum {
            found.push(format!(
                "CSD checksum is {a:#04x}, but its bytes give {b:#04x}: copied wrongly, edited, or never computed by the card"
            ));
        }
        found
    }
}

/// (C_SIZE + 1) * 2^(C_SIZE_MULT + 2) * 2^READ_BL_LEN, the formula of SD version 1 and MMC up to 2 GiB.
fn old_capacity(r: &[u8]) -> Option<u64> {
    Some((field(r, 73, 62) + 1) << (field(r, 49, 47) + 2) << field(r, 83, 80))
}

#[cfg(test)]
mod tests {
    use super::super::parse_array;
    use super::*;

    fn register(text: &str) -> [u8; 16] {
        parse_array("CSD", text).unwrap()
    }

    #[test]
    fn sd_version_2() {
        let c = Csd::sd(&register("400e00325b5900001d177f800a40008d"));
        assert_eq!(c.layout, CsdLayout::SdV2);
        assert_eq!(c.capacity, Some(3_904_897_024), "(0x1d17 + 1) * 512 KiB");
        assert_eq!((c.read_block, c.write_block, c.erase_unit), (512, 512, None));
        assert_eq!(c.tran_speed, Some(25_000_000), "0x32");
        assert_eq!(c.command_classes, 0x5b5);
        assert_eq!(c.write_factor, 4, "R2W_FACTOR 2");
        assert_eq!(c.checksum, Checksum::Good);
        assert!(c.findings().is_empty() && c.family().starts_with("SDHC"));
        assert_eq!(Csd::sd(&register("400e00325b590001dd7f7f800a400000")).family(), "SDXC (above 32 GiB)");
    }

    #[test]
    fn sd_version_1() {
        // As an emulated 2 GiB card sends it: READ_BL_LEN 10, C_SIZE 0xfff, C_SIZE_MULT 7, ERASE_BLK_EN 1, SECTOR_SIZE 0x3f.
        let c = Csd::sd(&register("002600325f5ae3ffffffdfff92a00000"));
        assert_eq!(c.layout, CsdLayout::SdV1);
        assert_eq!(c.capacity, Some(2 << 30), "4096 * 512 * 1024");
        assert_eq!((c.read_block, c.write_block), (1024, 1024));
        assert_eq!((c.erase_sector, c.erase_unit), (Some(65_536), Some(1024)));
        assert!(c.family().starts_with("SDSC"));
    }

    #[test]
    fn sd_version_3() {
        // C_SIZE 0x0800000 in bits 75..48: (2^23 + 1) * 512 KiB = 4 TiB + 512 KiB
        let c = Csd::sd(&register("800e00325b59 00800000 7f800a400000"));
        assert_eq!((c.layout, c.capacity), (CsdLayout::SdV3, Some((4 << 40) + (512 << 10))));
    }

    #[test]
    fn mmc() {
        // CSD_STRUCTURE 3, SPEC_VERS 4, C_SIZE 0xfff, ERASE_GRP_SIZE 31, ERASE_GRP_MULT 31, WRITE_BL_LEN 9
        let c = Csd::mmc(&register("d02701320f5903fffffffff78a400000"));
        assert_eq!((c.spec_vers, c.capacity), (Some(4), None));
        assert_eq!(c.erase_unit, Some(32 * 32 * 512));
        assert_eq!(c.tran_speed, Some(26_000_000), "0x32 is 26 Mbit/s on MMC");
        assert!(!looks_like_sd(&register("d02701320f5903fffffffff78a400000")));
        assert!(looks_like_sd(&register("400e00325b5900001d177f800a40008d")));
    }

    #[test]
    fn protection_and_irregularities_are_said() {
        let c = Csd::sd(&register("400e00325b5900001d177f800a403000")).findings().join("; ");
        assert!(c.contains("read-only for good") && c.contains("refuses writes"), "{c}");
        let c = Csd::sd(&register("400e00325b5a00001d177f800a400000")).findings().join("; ");
        assert_eq!(c, "CSD: READ_BL_LEN is 0xa; the specification fixes it at 0x9");
        assert!(Csd::sd(&register("c00e00325b5900001d177f800a400000")).findings()[0].contains("reserved"));
        assert!(Csd::sd(&[0xff; 16]).findings()[0].contains("all ones"));
    }

    #[test]
    fn speeds() {
        for (code, mmc, want) in [
            (0x5a, false, Some(50_000_000)),
            (0x0b, false, Some(100_000_000)),
            (0x2b, false, Some(200_000_000)),
            (0x2a, true, Some(20_000_000)),
            (0x00, false, None),
            (0x3f, false, None),
            (0xb2, false, None),
        ] {
            assert_eq!(tran_speed(code, mmc), want, "{code:#x}");
        }
    }
}

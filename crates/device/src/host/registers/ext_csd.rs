//! EXT_CSD, the extended device data of eMMC (512 bytes).
//!
//! Layout: JESD84-B51 7.4; the number in brackets after each field below is its byte. Multi-byte fields are little-endian.
//! The register may be known only in part (a pasted excerpt), so every field is optional.

use crate::units::{Bytes, KIB, MIB, SECTOR};
use serde::{Deserialize, Serialize};

/// The bytes of an EXT_CSD with what is not known left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtCsdBytes([Option<u8>; 512]);

impl Default for ExtCsdBytes {
    fn default() -> Self {
        ExtCsdBytes([None; 512])
    }
}

impl From<&[u8; 512]> for ExtCsdBytes {
    fn from(bytes: &[u8; 512]) -> Self {
        ExtCsdBytes(bytes.map(Some))
    }
}

impl ExtCsdBytes {
    /// Sets one byte; positions outside the register are ignored.
    pub fn set(&mut self, at: usize, value: u8) {
        if let Some(slot) = self.0.get_mut(at) {
            *slot = Some(value);
        }
    }

    /// Number of bytes known.
    pub fn known(&self) -> usize {
        self.0.iter().flatten().count()
    }

    /// A little-endian field; None unless all of its bytes are known.
    pub fn get(&self, at: usize, len: usize) -> Option<u64> {
        (at..at + len).rev().try_fold(0u64, |v, i| Some(v << 8 | u64::from((*self.0.get(i)?)?)))
    }

    fn byte(&self, at: usize) -> Option<u8> {
        self.0.get(at).copied().flatten()
    }

    /// True where every byte is 0x00, or every byte 0xff.
    pub fn is_blank(&self) -> bool {
        self.known() == 512 && (self.0.iter().all(|b| *b == Some(0)) || self.0.iter().all(|b| *b == Some(0xff)))
    }
}

/// DEVICE_LIFE_TIME_EST: the wear the device admits to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LifeTime {
    /// Code 0: the device does not say.
    NotDefined,
    /// Codes 1 to 10: this much of the life is used, in percent.
    Used {
        /// Lower bound in percent.
        from: u8,
        /// Upper bound in percent.
        to: u8,
    },
    /// Code 11: the estimated life is exceeded.
    Exceeded,
    /// Codes 12 to 255 are reserved: not health.
    Reserved {
        /// As found.
        code: u8,
    },
}

impl From<u8> for LifeTime {
    fn from(code: u8) -> Self {
        match code {
            0 => LifeTime::NotDefined,
            1..=10 => LifeTime::Used { from: (code - 1) * 10, to: code * 10 },
            11 => LifeTime::Exceeded,
            _ => LifeTime::Reserved { code },
        }
    }
}

impl std::fmt::Display for LifeTime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            LifeTime::NotDefined => write!(f, "not given"),
            LifeTime::Used { from, to } => write!(f, "{from} to {to} % of life used"),
            LifeTime::Exceeded => write!(f, "estimated life exceeded"),
            LifeTime::Reserved { code } => write!(f, "code {code:#04x} is reserved, not health"),
        }
    }
}

/// PRE_EOL_INFO: how many of the spare blocks are used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PreEol {
    /// Code 0: the device does not say.
    NotDefined,
    /// Code 1.
    Normal,
    /// Code 2: 80 % of the reserve is used.
    Warning,
    /// Code 3: 90 % of the reserve is used.
    Urgent,
    /// Any other code is reserved: not health.
    Reserved {
        /// As found.
        code: u8,
    },
}

impl From<u8> for PreEol {
    fn from(code: u8) -> Self {
        match code {
            0 => PreEol::NotDefined,
            1 => PreEol::Normal,
            2 => PreEol::Warning,
            3 => PreEol::Urgent,
            _ => PreEol::Reserved { code },
        }
    }
}

impl std::fmt::Display for PreEol {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            PreEol::NotDefined => write!(f, "not given"),
            PreEol::Normal => write!(f, "normal"),
            PreEol::Warning => write!(f, "warning: 80 % of the reserved blocks are used"),
            PreEol::Urgent => write!(f, "urgent: 90 % of the reserved blocks are used"),
            PreEol::Reserved { code } => write!(f, "code {code:#04x} is reserved, not health"),
        }
    }
}

/// The decoded EXT_CSD. Sizes in bytes, zero-means-undefined fields as None.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExtCsd {
    /// Bytes of the register that were known, of 512.
    pub known_bytes: usize,
    /// EXT_CSD_REV 192.
    pub rev: Option<u8>,
    /// User area: SEC_COUNT 215:212 times 512.
    pub user_area: Option<u64>,
    /// ERASE_GROUP_DEF 175 bit 0: the high-capacity erase and write-protect groups are in force. Linux switches them on.
    pub high_capacity_groups: Option<bool>,
    /// HC_ERASE_GRP_SIZE 224 times 512 KiB.
    pub erase_group: Option<u64>,
    /// HC_WP_GRP_SIZE 221 times the erase group.
    pub write_protect_group: Option<u64>,
    /// ERASE_TIMEOUT_MULT 223 times 300 ms, for one erase group.
    pub erase_timeout_ms: Option<u32>,
    /// ACC_SIZE 225 bits 3:0: super-page size.
    pub super_page: Option<u64>,
    /// LARGE_UNIT_SIZE_M1 495 plus one, times 1 MiB. Known as 1 MiB where the field is 0.
    pub large_unit: Option<u64>,
    /// NATIVE_SECTOR_SIZE 63: 512 or 4096.
    pub native_sector: Option<u32>,
    /// DATA_SECTOR_SIZE 61: the sector in use, 512 or 4096.
    pub data_sector: Option<u32>,
    /// CACHE_SIZE 252:249, given in kibibits; 0 means no cache.
    pub cache: Option<u64>,
    /// CACHE_CTRL 33 bit 0: the cache is on.
    pub cache_on: Option<bool>,
    /// OPTIMAL_READ_SIZE 266 times 4 KiB.
    pub optimal_read: Option<u64>,
    /// OPTIMAL_WRITE_SIZE 265 times 4 KiB.
    pub optimal_write: Option<u64>,
    /// OPTIMAL_TRIM_UNIT_SIZE 264: 4 KiB * 2^(n - 1).
    pub optimal_trim: Option<u64>,
    /// CMDQ_SUPPORT 308 bit 0 with CMDQ_DEPTH 307 plus one; 0 where queueing is not supported.
    pub queue_depth: Option<u8>,
    /// CMDQ_MODE_EN 15 bit 0, when the register was read.
    pub queue_on: Option<bool>,
    /// BKOPS_SUPPORT 502 bit 0.
    pub background_operations: Option<bool>,
    /// BKOPS_EN 163: bit 0 manual, bit 1 automatic.
    pub background_operations_on: Option<u8>,
    /// BKOPS_STATUS 246 bits 1:0: 0 nothing to do, 1 not critical, 2 performance affected, 3 critical.
    pub background_operations_pending: Option<u8>,
    /// DEVICE_LIFE_TIME_EST_TYP_A 268. By custom the SLC part.
    pub life_a: Option<LifeTime>,
    /// DEVICE_LIFE_TIME_EST_TYP_B 269. By custom the MLC or TLC part.
    pub life_b: Option<LifeTime>,
    /// PRE_EOL_INFO 267.
    pub pre_eol: Option<PreEol>,
    /// FIRMWARE_VERSION 261:254 as text where printable, else as hex.
    pub firmware: Option<String>,
    /// PARTITION_CONFIG 179 as found.
    pub partition_config: Option<u8>,
    /// BOOT_SIZE_MULT 226 times 128 KiB, for each of two boot partitions.
    pub boot_partition: Option<u64>,
    /// RPMB_SIZE_MULT 168 times 128 KiB.
    pub rpmb: Option<u64>,
    /// ENH_SIZE_MULT 142:140 times the write-protect group: user area in enhanced (usually SLC) mode.
    pub enhanced_area: Option<u64>,
    /// MAX_ENH_SIZE_MULT 159:157 times the write-protect group.
    pub enhanced_area_limit: Option<u64>,
    /// REL_WR_SEC_C 222: sectors of a reliable write.
    pub reliable_write_sectors: Option<u8>,
    /// WR_REL_SET 167 bit 0: data already written is safe when power fails.
    pub write_reliability: Option<bool>,
    /// ERASED_MEM_CONT 181: what an erased bit reads as.
    pub erased_bit: Option<u8>,
    /// SEC_FEATURE_SUPPORT 231 bit 4: trim.
    pub trim: Option<bool>,
    /// SEC_FEATURE_SUPPORT 231 bit 6: sanitize.
    pub sanitize: Option<bool>,
    /// DEVICE_TYPE 196: bus modes, bit 0 HS26 to bit 7 HS400 at 1.2 V.
    pub device_type: Option<u8>,
    /// HS_TIMING 185 bits 3:0: 0 legacy, 1 high speed, 2 HS200, 3 HS400.
    pub timing: Option<u8>,
    /// STROBE_SUPPORT 184 bit 0: enhanced strobe.
    pub strobe: Option<bool>,
    /// BARRIER_SUPPORT 486 bit 0.
    pub barrier: Option<bool>,
    /// MAX_PACKED_WRITES 500: commands in a packed write; 0 for none.
    pub packed_writes: Option<u8>,
}

impl ExtCsd {
    /// Reads the register.
    pub fn decode(bytes: &ExtCsdBytes) -> ExtCsd {
        let b = |at| bytes.byte(at);
        let bit = |at, n: u8| b(at).map(|v| v >> n & 1 == 1);
        let times = |at, unit: u64| b(at).filter(|&v| v != 0).map(|v| u64::from(v) * unit);
        let sector = |at| match b(at)? {
            0 => Some(512),
            1 => Some(4096),
            _ => None,
        };
        let erase_group = times(224, 512 * KIB);
        let write_protect_group = erase_group.and_then(|g| times(221, g));
        let multiple = |at| Some(bytes.get(at, 3)? * write_protect_group?);
        ExtCsd {
            known_bytes: bytes.known(),
            rev: b(192),
            user_area: bytes.get(212, 4).filter(|&n| n != 0).map(|n| n * SECTOR),
            high_capacity_groups: bit(175, 0),
            erase_group,
            write_protect_group,
            erase_timeout_ms: b(223).filter(|&v| v != 0).map(|v| u32::from(v) * 300),
            super_page: b(225).map(|v| v & 0xf).filter(|v| (1..9).contains(v)).map(|v| 512 << (v - 1)),
            large_unit: b(495).map(|v| (u64::from(v) + 1) * MIB),
            native_sector: sector(63),
            data_sector: sector(61),
            cache: bytes.get(249, 4).map(|kibibits| kibibits * KIB / 8),
            cache_on: bit(33, 0),
            optimal_read: times(266, 4 * KIB),
            optimal_write: times(265, 4 * KIB),
            optimal_trim: b(264).filter(|v| (1..=21).contains(v)).map(|v| (4 * KIB) << (v - 1)),
            queue_depth: bit(308, 0).and_then(|has| if has { b(307).map(|v| (v & 0x1f) + 1) } else { Some(0) }),
            queue_on: bit(15, 0),
            background_operations: bit(502, 0),
            background_operations_on: b(163),
            background_operations_pending: b(246).map(|v| v & 3),
            life_a: b(268).map(Into::into),
            life_b: b(269).map(Into::into),
            pre_eol: b(267).map(Into::into),
            firmware: firmware(bytes),
            partition_config: b(179),
            boot_partition: times(226, 128 * KIB),
            rpmb: times(168, 128 * KIB),
            enhanced_area: multiple(140),
            enhanced_area_limit: multiple(157),
            reliable_write_sectors: b(222),
            write_reliability: bit(167, 0),
            erased_bit: b(181).map(|v| v & 1),
            trim: bit(231, 4),
            sanitize: bit(231, 6),
            device_type: b(196),
            timing: b(185).map(|v| v & 0xf),
            strobe: bit(184, 0),
            barrier: bit(486, 0),
            packed_writes: b(500),
        }
    }

    /// The eMMC version that EXT_CSD_REV stands for.
    pub fn version(&self) -> Option<&'static str> {
        ["4.0", "4.1", "4.2", "4.3", "4.4", "4.41", "4.5", "5.0", "5.1", "5.1B"].get(usize::from(self.rev?)).copied()
    }

    /// The fastest bus mode in DEVICE_TYPE.
    pub fn fastest_mode(&self) -> Option<&'static str> {
        let modes =
            ["HS at 26 MHz", "HS at 52 MHz", "DDR at 52 MHz", "DDR at 52 MHz, 1.2 V", "HS200", "HS200 at 1.2 V", "HS400", "HS400 at 1.2 V"];
        let bits = self.device_type?;
        (0..8).rev().find(|n| bits >> n & 1 == 1).map(|n| modes[n])
    }

    /// The partition that PARTITION_CONFIG boots from.
    pub fn boots_from(&self) -> Option<&'static str> {
        Some(match self.partition_config? >> 3 & 7 {
            0 => "no boot partition",
            1 => "boot partition 1",
            2 => "boot partition 2",
            7 => "user area",
            _ => "reserved code",
        })
    }

    /// What is wrong, implausible or worth knowing.
    pub fn findings(&self, bytes: &ExtCsdBytes) -> Vec<String> {
        if bytes.is_blank() {
            return vec!["EXT_CSD is all zeros or all ones: not a register a device sends".into()];
        }
        let mut found = vec![];
        if self.rev.is_some() && self.version().is_none() {
            found.push(format!("EXT_CSD: revision {} is not known here", self.rev.unwrap_or(0)));
        }
        if bytes.byte(224) == Some(0) {
            found.push("EXT_CSD: HC_ERASE_GRP_SIZE is 0: no high-capacity erase group, the CSD's applies".into());
            if self.erase_timeout_ms.is_some() {
                found.push("EXT_CSD: ERASE_TIMEOUT_MULT is of a high-capacity erase group, and there is none".into());
            }
        }
        if bytes.get(212, 4) == Some(0) {
            found.push("EXT_CSD: SEC_COUNT is 0: the capacity is that of the CSD, which is so up to 2 GiB only".into());
        }
        if let (Some(area), Some(group)) = (self.user_area, self.erase_group)
            && area < group
        {
            found.push(format!(
                "EXT_CSD: a user area of {} is smaller than one erase group of {}: not so on a device",
                Bytes(area),
                Bytes(group)
            ));
        }
        for (name, at) in [("NATIVE_SECTOR_SIZE", 63), ("DATA_SECTOR_SIZE", 61)] {
            if let Some(code @ 2..) = bytes.byte(at) {
                found.push(format!("EXT_CSD: {name} code {code:#04x} is reserved"));
            }
        }
        for (name, life) in [("DEVICE_LIFE_TIME_EST_TYP_A", self.life_a), ("DEVICE_LIFE_TIME_EST_TYP_B", self.life_b)] {
            match life {
                Some(LifeTime::Reserved { code }) => {
                    found.push(format!("EXT_CSD: {name} is {code:#04x}, which is reserved: not a health value"))
                }
                Some(LifeTime::Exceeded) => found.push(format!("EXT_CSD: {name} says the estimated life is exceeded")),
                Some(LifeTime::Used { from: 80.., to }) => found.push(format!("EXT_CSD: {name} says up to {to} % of the life is used")),
                _ => {}
            }
        }
        match self.pre_eol {
            Some(PreEol::Reserved { code }) => {
                found.push(format!("EXT_CSD: PRE_EOL_INFO is {code:#04x}, which is reserved: not a health value"));
            }
            Some(state @ (PreEol::Warning | PreEol::Urgent)) => found.push(format!("EXT_CSD: PRE_EOL_INFO says {state}")),
            _ => {}
        }
        let health = [bytes.byte(267), bytes.byte(268), bytes.byte(269)];
        if self.rev.is_some_and(|rev| rev < 7) && health.iter().flatten().any(|&v| v != 0) {
            found.push("EXT_CSD: health fields are set, but exist only from eMMC 5.0 on: do not believe them".into());
        }
        if self.background_operations_pending.is_some_and(|p| p >= 2) {
            found.push("EXT_CSD: background operations are pending and affect performance: let the device idle before measuring".into());
        }
        found
    }
}

fn firmware(bytes: &ExtCsdBytes) -> Option<String> {
    let raw = (254..262).map(|at| bytes.byte(at)).collect::<Option<Vec<u8>>>()?;
    let end = raw.iter().rposition(|&b| b != 0 && b != b' ').map_or(0, |p| p + 1);
    if end == 0 {
        None
    } else if raw[..end].iter().all(|b| (0x20..0x7f).contains(b)) {
        Some(String::from_utf8_lossy(&raw[..end]).into_owned())
    } else {
        Some(format!("0x{}", super::hex(&raw)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(bytes: &[(usize, u8)]) -> ExtCsdBytes {
        let mut all = ExtCsdBytes::from(&[0; 512]);
        bytes.iter().for_each(|&(at, v)| all.set(at, v));
        all
    }

    #[test]
    fn sizes() {
        let e = ExtCsd::decode(&with(&[
            (192, 8),
            (212, 0x00),
            (213, 0x00),
            (214, 0xe9),
            (224, 1),
            (221, 16),
            (223, 2),
            (225, 7),
            (495, 7),
            (250, 1),
            (63, 1),
            (264, 3),
            (265, 8),
            (266, 16),
            (140, 2),
            (168, 4),
            (226, 32),
        ]));
        assert_eq!(e.version(), Some("5.1"));
        assert_eq!(e.user_area, Some(0x00e9_0000 * 512));
        assert_eq!((e.erase_group, e.write_protect_group), (Some(512 << 10), Some(8 << 20)));
        assert_eq!((e.erase_timeout_ms, e.super_page, e.large_unit), (Some(600), Some(32 << 10), Some(8 << 20)));
        assert_eq!(e.cache, Some(32 << 10), "256 kibibits");
        assert_eq!((e.native_sector, e.data_sector), (Some(4096), Some(512)));
        assert_eq!((e.optimal_trim, e.optimal_write, e.optimal_read), (Some(16 << 10), Some(32 << 10), Some(64 << 10)));
        assert_eq!((e.enhanced_area, e.rpmb, e.boot_partition), (Some(16 << 20), Some(512 << 10), Some(4 << 20)));
    }

    #[test]
    fn flags() {
        let e = ExtCsd::decode(&with(&[
            (308, 1),
            (307, 31),
            (15, 1),
            (33, 1),
            (175, 1),
            (502, 1),
            (163, 2),
            (246, 2),
            (184, 1),
            (196, 0x57),
            (185, 3),
            (231, 0x55),
            (179, 0x08),
            (486, 1),
            (500, 60),
            (167, 0x1f),
            (181, 1),
            (222, 1),
        ]));
        assert_eq!((e.queue_depth, e.queue_on, e.cache_on, e.high_capacity_groups), (Some(32), Some(true), Some(true), Some(true)));
        assert_eq!((e.background_operations, e.background_operations_on, e.background_operations_pending), (Some(true), Some(2), Some(2)));
        assert_eq!((e.strobe, e.fastest_mode(), e.timing), (Some(true), Some("HS400"), Some(3)));
        assert_eq!((e.trim, e.sanitize, e.boots_from()), (Some(true), Some(true), Some("boot partition 1")));
        assert_eq!((e.barrier, e.packed_writes, e.write_reliability), (Some(true), Some(60), Some(true)));
        assert_eq!((e.erased_bit, e.reliable_write_sectors), (Some(1), Some(1)));
        assert_eq!(ExtCsd::decode(&with(&[(307, 31)])).queue_depth, Some(0), "depth without support is no queue");
    }

    #[test]
    fn health_is_believed_only_where_it_can_be() {
        for (code, want) in [
            (0, LifeTime::NotDefined),
            (1, LifeTime::Used { from: 0, to: 10 }),
            (10, LifeTime::Used { from: 90, to: 100 }),
            (11, LifeTime::Exceeded),
            (12, LifeTime::Reserved { code: 12 }),
            (0xff, LifeTime::Reserved { code: 0xff }),
        ] {
            assert_eq!(LifeTime::from(code), want);
        }
        let say = |set: &[(usize, u8)]| {
            let b = with(set);
            ExtCsd::decode(&b).findings(&b).join("; ")
        };
        assert!(say(&[(192, 8), (224, 1), (268, 0xff), (269, 0x0c), (267, 0xff)]).matches("not a health value").count() == 3);
        assert!(say(&[(192, 8), (224, 1), (268, 9)]).contains("up to 90 %"));
        assert!(say(&[(192, 8), (224, 1), (267, 3)]).contains("urgent"));
        assert_eq!(say(&[(192, 8), (214, 0xe9), (224, 1), (268, 1), (269, 2), (267, 1)]), "");
        assert!(say(&[(192, 6), (224, 1), (268, 1)]).contains("only from eMMC 5.0"));
        assert!(say(&[]).contains("all zeros"));
    }

    #[test]
    fn unknown_bytes_stay_unknown() {
        let mut b = ExtCsdBytes::default();
        b.set(214, 0xe9);
        b.set(9999, 1);
        let e = ExtCsd::decode(&b);
        assert_eq!((e.known_bytes, e.user_area, e.cache, e.life_a, e.firmware), (1, None, None, None, None));
        let mut named = ExtCsdBytes::from(&[0; 512]);
        "FW1.07".bytes().enumerate().for_each(|(i, c)| named.set(254 + i, c));
        assert_eq!(ExtCsd::decode(&named).firmware.as_deref(), Some("FW1.07"));
        named.set(254, 7);
        assert_eq!(ExtCsd::decode(&named).firmware.as_deref(), Some("0x0757312e30370000"));
    }
}

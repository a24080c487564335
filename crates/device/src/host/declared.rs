//! What a card declares about itself, kept apart from what is found by timing.
//!
//! One structure whatever the source: sysfs, a pasted dump, registers read with raw commands. A declared value is a claim; where it
//! is only the kernel's guess, or does not fit the rest, that is said beside it.

mod build;

use super::health::HealthBlock;
use super::quirks::Trouble;
use super::registers::attributes::Attributes;
use super::registers::cid::Cid;
use super::registers::csd::Csd;
use super::registers::erase::{self, PreferredErase};
use super::registers::ext_csd::{ExtCsd, ExtCsdBytes, LifeTime, PreEol};
use super::registers::scr::Scr;
use super::registers::ssr::Ssr;
use super::registers::usb::UsbIdentity;
use super::registers::{Date, RegisterError, dump};
pub(super) use build::{Builder, registers};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// What kind of thing declares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// SD card on a native host.
    Sd,
    /// MultiMediaCard or eMMC on a native host.
    Mmc,
    /// USB stick or card reader.
    Usb,
    /// Anything else: disk, loop device, file, simulation. It has no registers.
    Other,
}

/// The unit a card asks its host to work in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeclaredAu {
    /// Bytes.
    pub bytes: u64,
    /// Where it is written, in words.
    pub source: String,
}

/// Wear as the device admits it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Health {
    /// DEVICE_LIFE_TIME_EST_TYP_A.
    pub life_a: Option<LifeTime>,
    /// DEVICE_LIFE_TIME_EST_TYP_B.
    pub life_b: Option<LifeTime>,
    /// PRE_EOL_INFO.
    pub pre_eol: Option<PreEol>,
}

/// Everything a target declares.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Declared {
    /// Kind of target.
    pub kind: Kind,
    /// Kernel name of the block device, where it came from one.
    pub device: Option<String>,
    /// Product name.
    pub name: Option<String>,
    /// Maker, by the ids.
    pub maker: Option<String>,
    /// Manufacturer and OEM id as written: `0x03/0x5344 "SD"`, `0781:5581` for USB.
    pub ids: Option<String>,
    /// Production date.
    pub date: Option<Date>,
    /// Serial number as written. None where there is none or where it was left out on purpose.
    pub serial: Option<String>,
    /// Capacity in bytes by the registers.
    pub capacity: Option<u64>,
    /// Size of the block device in bytes.
    pub device_size: Option<u64>,
    /// Decoded CID.
    pub cid: Option<Cid>,
    /// Decoded CSD.
    pub csd: Option<Csd>,
    /// Decoded SCR.
    pub scr: Option<Scr>,
    /// Decoded SD status.
    pub ssr: Option<Ssr>,
    /// Decoded EXT_CSD.
    pub ext_csd: Option<ExtCsd>,
    /// USB identity.
    pub usb: Option<UsbIdentity>,
    /// The unit the card asks for.
    pub declared_au: Option<DeclaredAu>,
    /// The kernel's preferred erase size with its origin.
    pub preferred_erase_size: Option<PreferredErase>,
    /// The kernel's smallest erase, in bytes.
    pub erase_size: Option<u64>,
    /// Wear as the device admits it.
    pub health: Option<Health>,
    /// What the kernel's lists say of this card.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub troubles: Vec<Trouble>,
    /// The maker's own health block, where it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health_block: Option<HealthBlock>,
    /// Where each register of a block device was read: sysfs, debugfs, or the card itself.
    #[serde(default)]
    pub read_from: BTreeMap<String, String>,
    /// What to keep in mind when reading this.
    pub notes: Vec<String>,
    /// What is wrong, implausible or does not fit, each with its reason.
    pub warnings: Vec<String>,
}

/// Registers as bytes, however they were read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RawRegisters {
    /// Sd or Mmc where the bus is known; otherwise it is told from the registers.
    pub kind: Option<Kind>,
    /// CID as CMD10 or sysfs gives it.
    pub cid: Option<[u8; 16]>,
    /// CSD as CMD9 or sysfs gives it.
    pub csd: Option<[u8; 16]>,
    /// SCR (ACMD51).
    pub scr: Option<[u8; 8]>,
    /// SD status (ACMD13).
    pub ssr: Option<[u8; 64]>,
    /// EXT_CSD (CMD8 of eMMC), whole or in part.
    pub ext_csd: Option<ExtCsdBytes>,
}

/// Why nothing could be declared.
#[derive(Debug, thiserror::Error)]
pub enum DeclaredError {
    /// A register that is no register.
    #[error(transparent)]
    Register(#[from] RegisterError),
    /// No such block device, or sysfs cannot be read.
    #[error(transparent)]
    Sysfs(#[from] std::io::Error),
}

impl RawRegisters {
    /// Refuses what no card sends: every bit alike, or an EXT_CSD whose revision cannot be.
    ///
    /// # Errors
    /// Names the register and what is impossible about it.
    pub fn check(&self) -> Result<(), RegisterError> {
        let alike = |bytes: &[u8]| bytes.iter().all(|&b| b == 0) || bytes.iter().all(|&b| b == 0xff);
        let wrong = |register, what: String| Err(RegisterError::Text { register, what });
        for (register, bytes) in [("CID", self.cid.as_ref()), ("CSD", self.csd.as_ref())] {
            if bytes.is_some_and(|b| alike(b)) {
                return wrong(register, "all bits are alike, which no card sends: a bad contact or a bad copy".into());
            }
        }
        match self.ext_csd.as_ref().map(|e| (e.is_blank(), e.get(192, 1))) {
            Some((true, _)) => wrong("EXT_CSD", "all bits are alike, which no card sends: a bad contact or a bad copy".into()),
            // The newest there is has 9.
            Some((_, Some(rev @ 16..))) => {
                wrong("EXT_CSD", format!("byte 192 gives revision {rev}, and there are about ten: this is no EXT_CSD"))
            }
            _ => Ok(()),
        }
    }
}

/// Declared from registers alone.
pub fn from_registers(raw: RawRegisters) -> Declared {
    from_registers_on(raw, Date::today())
}

/// As [`from_registers`], judged on a given date.
pub fn from_registers_on(raw: RawRegisters, today: Date) -> Declared {
    Builder { raw, attributes: Attributes::default(), today, read_from: BTreeMap::new() }.build(vec![])
}

/// Declared from `<root>/class/block/<name>`; the root is `/sys` but for tests. A register that cannot be read is a warning.
pub fn from_sysfs(root: &Path, name: &str) -> Result<Declared, DeclaredError> {
    from_sysfs_on(root, name, Date::today())
}

/// As [`from_sysfs`], judged on a given date.
pub fn from_sysfs_on(root: &Path, name: &str, today: Date) -> Result<Declared, DeclaredError> {
    super::live::declared_on(root, name, today, None)
}

/// Declared from a pasted dump ([`dump::parse`]). A damaged register is an error.
pub fn from_dump(text: &str) -> Result<Declared, DeclaredError> {
    from_dump_on(text, Date::today())
}

/// As [`from_dump`], judged on a given date.
pub fn from_dump_on(text: &str, today: Date) -> Result<Declared, DeclaredError> {
    let attributes = dump::parse(text)?;
    let (raw, problems) = registers(&attributes);
    match problems.into_iter().next() {
        Some(problem) => Err(problem.into()),
        None => {
            raw.check().map_err(DeclaredError::from).map(|()| Builder { raw, attributes, today, read_from: BTreeMap::new() }.build(vec![]))
        }
    }
}

impl Declared {
    /// What was found beside what is declared, in one sentence; all in bytes.
    pub fn beside_found(&self, erase_block: u64) -> String {
        erase::beside(self.declared_au.as_ref().map(|au| au.bytes), self.preferred_erase_size.as_ref(), erase_block)
    }

    /// The same without serial numbers.
    pub fn without_serial(mut self) -> Declared {
        self.serial = None;
        self.cid = self.cid.map(Cid::without_serial);
        if let Some(usb) = &mut self.usb {
            usb.serial = None;
        }
        self
    }
}

//! Who a target is, and the permission to write to it.

use super::{DeviceError, Result, program};
use crate::host::facts::TargetKind;
use crate::shell::word;
use serde::{Deserialize, Serialize};

/// What names a target, so that another one is not taken for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetId {
    /// Path with links resolved, or the `sim:` name.
    pub path: String,
    pub kind: TargetKind,
    /// Serial number of the disk; none for images, loop devices, and where it is empty or all zeros.
    pub serial: Option<String>,
    pub model: Option<String>,
    /// Bytes.
    pub size: u64,
    /// First byte on the whole disk.
    pub offset: u64,
}

impl TargetId {
    /// What `--consent` must say: the serial number, or the exact size in bytes where there is none.
    pub fn consent_id(&self) -> String {
        consent_id(self.serial.as_deref(), self.size)
    }

    /// What that is, for people.
    pub(super) fn named_by(&self) -> &'static str {
        match &self.serial {
            Some(_) if program::is_name(&self.path) => "name",
            Some(_) => "serial number",
            None => "size in bytes",
        }
    }

    /// The option that gives it, to be pasted.
    pub fn consent_option(&self) -> String {
        format!("--consent {}", word(&self.consent_id()))
    }

    /// True where another card of the same size, in the same reader, would be taken for this one.
    pub(super) fn is_known_by_place(&self) -> bool {
        self.serial.is_none() && matches!(self.kind, TargetKind::Disk | TargetKind::Partition)
    }

    /// True where both name one target. Without a serial number the path must be the same, too.
    pub fn same_target(&self, other: &TargetId) -> bool {
        self.kind == other.kind
            && self.size == other.size
            && self.offset == other.offset
            && self.serial == other.serial
            && (self.serial.is_some() || self.path == other.path)
    }
}

/// The word `--consent` wants for a device.
pub fn consent_id(serial: Option<&str>, size: u64) -> String {
    serial.map_or_else(|| size.to_string(), str::to_string)
}

/// The permission to write to one target. Made by [`Consent::check`] only.
#[derive(Clone, Debug)]
pub struct Consent {
    id: TargetId,
}

impl Consent {
    /// Compares what was given with what names the target. A simulated card needs no consent.
    ///
    /// # Errors
    /// `Refused` where nothing or the wrong text was given; the message names the right one.
    pub fn check(id: &TargetId, given: Option<&str>) -> Result<Consent> {
        let want = id.consent_id();
        let why = match given.map(str::trim) {
            _ if id.kind == TargetKind::Simulated => return Ok(Consent { id: id.clone() }),
            Some(g) if g == want => return Ok(Consent { id: id.clone() }),
            Some(g) => format!("--consent {g} does not name {}", id.path),
            None => format!("nothing is written to {} without a consent that names it", id.path),
        };
        Err(DeviceError::Refused(format!("{why}; if that is the right one, name it by its {}: {}", id.named_by(), id.consent_option())))
    }

    /// The consent an undo journal stands for: it was given when the journal was begun, for the target the journal names.
    pub(super) fn renewed(journal: &TargetId) -> Consent {
        Consent { id: journal.clone() }
    }

    /// True where this consent was given for that target.
    pub(super) fn covers(&self, id: &TargetId) -> bool {
        self.id.same_target(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(serial: Option<&str>) -> TargetId {
        TargetId {
            path: "/dev/sdx".into(),
            kind: TargetKind::Disk,
            serial: serial.map(Into::into),
            model: None,
            size: 8_000_000_512,
            offset: 0,
        }
    }

    #[test]
    fn consent_names_the_serial_or_the_exact_size() {
        assert!(Consent::check(&id(Some("0x1a")), Some("0x1a")).is_ok());
        assert!(Consent::check(&id(None), Some(" 8000000512 ")).is_ok());
        for (serial, given) in [(Some("0x1a"), None), (Some("0x1a"), Some("8000000512")), (None, Some("8000000511")), (None, Some(""))] {
            let e = Consent::check(&id(serial), given).unwrap_err();
            assert!(matches!(e, DeviceError::Refused(_)));
            assert!(e.to_string().ends_with(&format!("--consent {}", id(serial).consent_id())), "{e}");
        }
        let board = TargetId { path: "serial:/dev/ttyACM0".into(), ..id(Some("my board")) };
        let e = Consent::check(&board, None).unwrap_err().to_string();
        assert!(e.ends_with("by its name: --consent 'my board'"), "{e}");
    }

    #[test]
    fn a_simulated_card_needs_none() {
        assert!(Consent::check(&TargetId { kind: TargetKind::Simulated, ..id(None) }, None).is_ok());
    }

    #[test]
    fn a_consent_covers_its_target_only() {
        let c = Consent::check(&id(Some("A")), Some("A")).unwrap();
        assert!(c.covers(&TargetId { path: "/dev/sdy".into(), ..id(Some("A")) }), "the same card under another name");
        assert!(!c.covers(&id(Some("B"))));
        assert!(!c.covers(&TargetId { size: 1, ..id(Some("A")) }));
        assert!(!c.covers(&TargetId { offset: 512, ..id(Some("A")) }));
        let by_size = Consent::check(&id(None), Some("8000000512")).unwrap();
        assert!(!by_size.covers(&TargetId { path: "/dev/sdy".into(), ..id(None) }));
    }
}

//! SCR, the SD configuration register (64 bits): specification version and optional commands.
//!
//! Layout: SD Physical Layer 5.6. SCR_STRUCTURE 63:60, SD_SPEC 59:56, DATA_STAT_AFTER_ERASE 55, SD_SECURITY 54:52,
//! SD_BUS_WIDTHS 51:48, SD_SPEC3 47, EX_SECURITY 46:43, SD_SPEC4 42, SD_SPECX 41:38, CMD_SUPPORT 36:32, the rest
//! reserved or for the maker.

use super::{field, flag, hex};
use serde::{Deserialize, Serialize};

/// The decoded configuration register.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scr {
    /// Version of the physical layer specification, as "3.0x"; None for a reserved combination.
    pub spec: Option<String>,
    /// Whether the card follows version 3 or later. Linux believes AU codes above 9 only then.
    pub spec3: bool,
    /// What an erased bit reads as: 0 or 1.
    pub erased_bit: u8,
    /// SD_SECURITY in words.
    pub security: String,
    /// Data bus widths in lines.
    pub bus_widths: Vec<u8>,
    /// Extended security (EX_SECURITY), 0 for none.
    pub ex_security: u8,
    /// Speed class control.
    pub cmd20: bool,
    /// SET_BLOCK_COUNT: the length of a transfer can be told in advance.
    pub cmd23: bool,
    /// Extension register access, single block (needed for cache and queueing).
    pub cmd48_49: bool,
    /// Extension register access, multiple blocks.
    pub cmd58_59: bool,
    /// Secure receive and send.
    pub acmd53_54: bool,
    /// The register as hex.
    pub raw: String,
    /// Reserved values met.
    pub irregular: Vec<String>,
}

impl Scr {
    /// Reads the register.
    pub fn decode(register: &[u8; 8]) -> Scr {
        let r = register.as_slice();
        let (sd_spec, spec3, spec4, specx) = (field(r, 59, 56), flag(r, 47), flag(r, 42), field(r, 41, 38));
        let spec = match (sd_spec, spec3, spec4, specx) {
            (0, false, false, 0) => Some("1.0 or 1.01"),
            (1, false, false, 0) => Some("1.10"),
            (2, false, false, 0) => Some("2.00"),
            (2, true, false, 0) => Some("3.0x"),
            (2, true, true, 0) => Some("4.xx"),
            (2, true, _, 1) => Some("5.xx"),
            (2, true, _, 2) => Some("6.xx"),
            (2, true, _, 3) => Some("7.xx"),
            (2, true, _, 4) => Some("8.xx"),
            (2, true, _, 5) => Some("9.xx"),
            _ => None,
        };
        let security = match field(r, 54, 52) {
            0 => "none".to_string(),
            2 => "SDSC (version 1.01)".to_string(),
            3 => "SDHC (version 2.00)".to_string(),
            4 => "SDXC (version 3.xx)".to_string(),
            code => format!("reserved code {code}"),
        };
        let widths = field(r, 51, 48);
        let mut irregular = vec![];
        if spec.is_none() {
            irregular.push(format!(
                "SCR: SD_SPEC {sd_spec}, SD_SPEC3 {}, SD_SPEC4 {}, SD_SPECX {specx} is no known specification version",
                u8::from(spec3),
                u8::from(spec4)
            ));
        }
        if field(r, 63, 60) != 0 {
            irregular.push(format!("SCR: SCR_STRUCTURE is {}, which is reserved", field(r, 63, 60)));
        }
        if widths & 5 != 5 {
            irregular.push(format!("SCR: SD_BUS_WIDTHS is {widths:#x}; the specification asks for 1 and 4 lines (0x5)"));
        }
        Scr {
            spec: spec.map(str::to_string),
            spec3: sd_spec == 2 && spec3,
            erased_bit: u8::from(flag(r, 55)),
            security,
            bus_widths: [(0, 1), (2, 4)].into_iter().filter(|(bit, _)| widths >> bit & 1 == 1).map(|(_, lines)| lines).collect(),
            ex_security: field(r, 46, 43) as u8,
            cmd20: flag(r, 32),
            cmd23: flag(r, 33),
            cmd48_49: flag(r, 34),
            cmd58_59: flag(r, 35),
            acmd53_54: flag(r, 36),
            raw: hex(r),
            irregular,
        }
    }

    /// The optional commands in words.
    pub fn commands(&self) -> String {
        let all = [
            (self.cmd20, "CMD20"),
            (self.cmd23, "CMD23"),
            (self.cmd48_49, "CMD48/49"),
            (self.cmd58_59, "CMD58/59"),
            (self.acmd53_54, "ACMD53/54"),
        ];
        let has: Vec<&str> = all.iter().filter(|(set, _)| *set).map(|(_, name)| *name).collect();
        if has.is_empty() { "none of CMD20, CMD23, CMD48/49, CMD58/59".into() } else { has.join(", ") }
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse_array;
    use super::*;

    fn scr(text: &str) -> Scr {
        Scr::decode(&parse_array("SCR", text).unwrap())
    }

    #[test]
    fn a_card_of_2013_and_one_of_2015() {
        let s = scr("0235800001000000");
        assert_eq!((s.spec.as_deref(), s.spec3, s.erased_bit), (Some("3.0x"), true, 0));
        assert_eq!((s.security.as_str(), s.bus_widths.as_slice()), ("SDHC (version 2.00)", [1, 4].as_slice()));
        assert_eq!(s.commands(), "none of CMD20, CMD23, CMD48/49, CMD58/59");
        let s = scr("02b5800034022202");
        assert_eq!((s.spec.as_deref(), s.erased_bit, s.cmd23), (Some("3.0x"), 1, false));
        assert!(s.irregular.is_empty());
    }

    #[test]
    fn versions() {
        for (text, want) in [
            ("0025000000000000", Some("1.0 or 1.01")),
            ("0125000000000000", Some("1.10")),
            ("0225000000000000", Some("2.00")),
            ("0235800200000000", Some("3.0x")),
            ("0245840300000000", Some("4.xx")),
            ("0245844300000000", Some("5.xx")),
            ("0245848700000000", Some("6.xx")),
            ("024580c700000000", Some("7.xx")),
            ("0245850700000000", Some("8.xx")),
            ("0245854f00000000", Some("9.xx")),
            ("0345800000000000", None),
            ("0205040000000000", None),
        ] {
            assert_eq!(scr(text).spec.as_deref(), want, "{text}");
            assert_eq!(scr(text).irregular.is_empty(), want.is_some(), "{text}");
        }
    }

    #[test]
    fn commands_and_reserved_values() {
        assert_eq!(scr("0235800200000000").commands(), "CMD23");
        assert_eq!(scr("0245854f00000000").commands(), "CMD20, CMD23, CMD48/49, CMD58/59");
        assert_eq!(scr("0245855f00000000").commands(), "CMD20, CMD23, CMD48/49, CMD58/59, ACMD53/54");
        let s = scr("1211000000000000");
        assert!(s.irregular.iter().any(|t| t.contains("SCR_STRUCTURE is 1")), "{:?}", s.irregular);
        assert!(s.irregular.iter().any(|t| t.contains("SD_BUS_WIDTHS is 0x1")));
        assert_eq!(s.security, "reserved code 1");
    }
}

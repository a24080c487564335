//! Decoders of the registers in which a card describes itself. Pure functions from bytes or hex text to plain values.
//!
//! Layouts: SD Physical Layer Simplified Specification (CID and CSD chapter 5, SCR 5.6, SD status 4.10.2) and
//! JEDEC JESD84-B51 (CID, CSD, EXT_CSD chapter 7). Bit numbers below are those of the specifications: bit 0 is the
//! last bit of the last byte as transmitted and as Linux prints it.

pub mod attributes;
pub mod cid;
pub mod csd;
pub mod dump;
pub mod erase;
pub mod ext_csd;
pub mod ext_csd_text;
pub mod makers;
pub mod scr;
pub mod ssr;
pub mod sysfs;
pub mod usb;

use serde::{Deserialize, Serialize};

/// Why a register could not be read. The text is the whole message: it names the register, what was expected and what was found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RegisterError {
    /// Too many or too few bytes.
    #[error("{register}: expected {expected} bytes ({} hex digits), found {found} byte{}", expected * 2, if *found == 1 { "" } else { "s" })]
    Length { register: &'static str, expected: usize, found: usize },
    /// An odd number of hex digits.
    #[error("{register}: expected {expected} bytes ({} hex digits), found an odd number of digits ({digits})", expected * 2)]
    OddDigits { register: &'static str, expected: usize, digits: usize },
    /// Something that is not a hex digit or a separator.
    #[error("{register}: expected {expected} bytes ({} hex digits), found {character:?}, which is not a hex digit: copy the digits alone", expected * 2)]
    NotHex { register: &'static str, expected: usize, character: char },
    /// No digits at all.
    #[error("{register}: expected {expected} bytes ({} hex digits), found nothing", expected * 2)]
    Empty { register: &'static str, expected: usize },
    /// A text form that could not be understood.
    #[error("{register}: {what}")]
    Text { register: &'static str, what: String },
}

/// Bits `high..=low` of a register of any length, bit 0 being the last bit of the last byte. Bits outside the register read as 0.
pub fn field(register: &[u8], high: usize, low: usize) -> u64 {
    let total = register.len() * 8;
    (low..=high).rev().fold(0, |value, bit| {
        let set = bit < total && register[(total - 1 - bit) / 8] >> (bit % 8) & 1 == 1;
        value << 1 | u64::from(set)
    })
}

/// One bit of a register, as for [`field`].
pub fn flag(register: &[u8], bit: usize) -> bool {
    field(register, bit, bit) == 1
}

/// Reads a register of exactly `expected` bytes from hex text: upper or lower case, `0x` in front of the whole or of each
/// group, separated by nothing, blanks, newlines, colons, commas, dashes or underscores. A list of exactly `expected` groups
/// of one or two digits is read as one byte a group.
pub fn parse_hex(register: &'static str, text: &str, expected: usize) -> Result<Vec<u8>, RegisterError> {
    let groups: Vec<&str> = text
        .split(|c: char| c.is_whitespace() || matches!(c, ':' | ',' | '-' | '_' | ';'))
        .map(|g| g.strip_prefix("0x").or_else(|| g.strip_prefix("0X")).unwrap_or(g))
        .filter(|g| !g.is_empty())
        .collect();
    if let Some(character) = groups.iter().flat_map(|g| g.chars()).find(|c| !c.is_ascii_hexdigit()) {
        return Err(RegisterError::NotHex { register, expected, character });
    }
    let bytewise = expected > 1 && groups.len() == expected && groups.iter().all(|g| g.len() <= 2);
    let mut digits = String::new();
    for group in &groups {
        if bytewise && group.len() == 1 {
            digits.push('0');
        }
        digits.push_str(group);
    }
    if digits.is_empty() {
        return Err(RegisterError::Empty { register, expected });
    }
    if digits.len() % 2 == 1 {
        return Err(RegisterError::OddDigits { register, expected, digits: digits.len() });
    }
    if digits.len() != expected * 2 {
        return Err(RegisterError::Length { register, expected, found: digits.len() / 2 });
    }
    Ok(digits.as_bytes().chunks(2).map(|pair| nibble(pair[0]) << 4 | nibble(pair[1])).collect())
}

/// As [`parse_hex`], into an array.
pub fn parse_array<const N: usize>(register: &'static str, text: &str) -> Result<[u8; N], RegisterError> {
    let bytes = parse_hex(register, text, N)?;
    let found = bytes.len();
    bytes.try_into().map_err(|_| RegisterError::Length { register, expected: N, found })
}

fn nibble(digit: u8) -> u8 {
    (digit as char).to_digit(16).map_or(0, |d| d as u8)
}

/// The bytes as lower-case hex, the way Linux prints registers.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// The 7-bit checksum of SD and MMC registers and commands (polynomial x^7 + x^3 + 1).
pub fn crc7(bytes: &[u8]) -> u8 {
    bytes.iter().fold(0u8, |crc, &byte| {
        (0..8).rev().fold(crc, |crc, bit| {
            let feedback = (crc >> 6 ^ byte >> bit) & 1;
            ((crc << 1) & 0x7f) ^ (feedback * 0x09)
        })
    })
}

/// What the last byte of a CID or CSD (CRC7 and an end bit of 1) says about the other fifteen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Checksum {
    /// The checksum is right.
    Good,
    /// The checksum is not there: many host controllers (SDHCI among them) drop the last byte and leave zeros or rubbish without
    /// the end bit. Says nothing about the register.
    Absent,
    /// The end bit is set and the checksum is wrong: copied wrongly, edited, or a card that never computed it.
    Wrong {
        /// As found in the register.
        found: u8,
        /// As computed from the first fifteen bytes.
        computed: u8,
    },
}

/// Judges the last byte of a 16-byte register.
pub fn checksum(register: &[u8; 16]) -> Checksum {
    let (found, computed) = (register[15] >> 1, crc7(&register[..15]));
    match register[15] & 1 {
        1 if found == computed => Checksum::Good,
        1 if found != 0 => Checksum::Wrong { found, computed },
        _ => Checksum::Absent,
    }
}

/// A production date: year and month.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Date {
    /// Full year, such as 2013.
    pub year: u16,
    /// 1 to 12; anything else is as found in the register and not a month.
    pub month: u8,
}

impl Date {
    /// A month that there is, and not in the future.
    pub fn possible(self, today: Date) -> bool {
        (1..=12).contains(&self.month) && self <= today
    }

    /// The month in which the system clock is now (UTC).
    pub fn today() -> Date {
        let seconds = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |d| d.as_secs());
        Date::from_unix_days(seconds / 86_400)
    }

    /// Days since 1970-01-01 in the Gregorian calendar.
    fn from_unix_days(days: u64) -> Date {
        let (mut year, mut rest) = (1970u16, days);
        let leap = |y: u16| u64::from((y.is_multiple_of(4) && !y.is_multiple_of(100)) || y.is_multiple_of(400));
        while rest >= 365 + leap(year) && year < u16::MAX {
            rest -= 365 + leap(year);
            year += 1;
        }
        let mut month = 1;
        for length in [31, 28 + leap(year), 31, 30, 31, 30, 31, 31, 30, 31, 30] {
            if rest < length {
                break;
            }
            rest -= length;
            month += 1;
        }
        Date { year, month }
    }
}

impl std::fmt::Display for Date {
    /// Month/year, as Linux prints it.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:02}/{:04}", self.month, self.year)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_count_from_the_end() {
        let r = [0x12, 0x34, 0x56, 0x78];
        assert_eq!(field(&r, 31, 24), 0x12);
        assert_eq!(field(&r, 7, 0), 0x78);
        assert_eq!(field(&r, 19, 12), 0x45);
        assert!(flag(&r, 3) && !flag(&r, 2));
        assert_eq!(field(&r, 40, 28), 0x1, "bits outside read as 0");
    }

    #[test]
    fn hex_in_every_dress() {
        let want = vec![0x02, 0x35, 0x80, 0x00];
        for text in
            ["02358000", "0x02358000", "02 35 80 00", "02:35:80:00\n", "0x02,0x35,0x80,0x00", "0235_8000", "2 35 80 0", "\t0X0235 8000 "]
        {
            assert_eq!(parse_hex("SCR", text, 4).unwrap(), want, "{text:?}");
        }
        assert_eq!(parse_hex("SCR", "aBcD", 2).unwrap(), [0xab, 0xcd]);
    }

    #[test]
    fn bad_hex_names_register_expected_and_found() {
        let say = |t: &str| parse_hex("CSD", t, 16).unwrap_err().to_string();
        assert_eq!(say("40 0e"), "CSD: expected 16 bytes (32 hex digits), found 2 bytes");
        assert_eq!(say("ff"), "CSD: expected 16 bytes (32 hex digits), found 1 byte");
        assert_eq!(say("400"), "CSD: expected 16 bytes (32 hex digits), found an odd number of digits (3)");
        assert_eq!(say("40 0g"), "CSD: expected 16 bytes (32 hex digits), found 'g', which is not a hex digit: copy the digits alone");
        assert_eq!(say(" \n"), "CSD: expected 16 bytes (32 hex digits), found nothing");
        assert_eq!(say(&"00".repeat(17)), "CSD: expected 16 bytes (32 hex digits), found 17 bytes");
    }

    #[test]
    fn crc7_of_well_known_commands() {
        // CMD0 is sent as 40 00 00 00 00 95, CMD8 as 48 00 00 01 aa 87: checksum in the upper seven bits.
        assert_eq!(crc7(&[0x40, 0, 0, 0, 0]) << 1 | 1, 0x95);
        assert_eq!(crc7(&[0x48, 0, 0, 1, 0xaa]) << 1 | 1, 0x87);
    }

    #[test]
    fn dates() {
        assert_eq!(Date::from_unix_days(0).to_string(), "01/1970");
        assert_eq!(Date::from_unix_days(11_016), Date { year: 2000, month: 2 }, "29 February 2000");
        assert_eq!(Date::from_unix_days(11_017), Date { year: 2000, month: 3 });
        assert_eq!(Date::from_unix_days(20_453), Date { year: 2025, month: 12 }, "31 December 2025");
        assert!(Date { year: 2012, month: 12 } < Date { year: 2013, month: 1 });
    }
}

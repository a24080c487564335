//! CID, the card identification register (128 bits).
//!
//! SD (SD Physical Layer 5.2): MID 127:120, OID 119:104, PNM 103:64 five characters, PRV 63:56, PSN 55:24,
//! MDT 19:8 (year since 2000 in eight bits, month in four), CRC7 7:1.
//! MMC 2.0 and later (JESD84-B51 7.2): MID 127:120, CBX 113:112, OID 111:104, PNM 103:56 six characters, PRV 55:48,
//! PSN 47:16, MDT 15:8 (month in four bits, year code in four). MMC 1.x: MID 127:104, PNM 103:48 seven characters,
//! revisions 47:44 and 43:40, PSN 39:16.

use super::{Checksum, Date, checksum, field, hex, makers};
use serde::{Deserialize, Serialize};

/// Which of the three layouts was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CidLayout {
    /// SD cards.
    Sd,
    /// MultiMediaCard 1.x.
    Mmc1,
    /// MultiMediaCard 2.0 and later, eMMC.
    Mmc,
}

/// The decoded card identification.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cid {
    /// Layout used.
    pub layout: CidLayout,
    /// Manufacturer id: 8 bits, 24 bits on MMC 1.x.
    pub manfid: u32,
    /// The maker by that id, where the table knows it.
    pub maker: Option<String>,
    /// OEM id as Linux prints it: 16 bits (on eMMC these include the device type bits). 0 on MMC 1.x, which has none.
    pub oemid: u16,
    /// Product name; characters outside printable ASCII are shown as `\xNN`.
    pub name: String,
    /// Hardware revision, the upper digit of PRV.
    pub hwrev: u8,
    /// Firmware revision, the lower digit of PRV.
    pub fwrev: u8,
    /// Serial number. None where it was left out on purpose.
    pub serial: Option<u32>,
    /// Production date, the likeliest reading.
    pub date: Date,
    /// Other years the date code can mean (eMMC year codes repeat every 16 years).
    pub other_years: Vec<u16>,
    /// The CRC7 at the end.
    pub checksum: Checksum,
    /// The register as hex; serial digits are `x` where the serial was left out.
    pub raw: String,
}

/// Characters of a name as printable text.
fn printable(bytes: &[u8]) -> String {
    let end = bytes.iter().rposition(|&b| b != 0 && b != b' ').map_or(0, |p| p + 1);
    bytes[..end].iter().map(|&b| if (0x20..0x7f).contains(&b) { (b as char).to_string() } else { format!("\\x{b:02x}") }).collect()
}

/// Two characters where both are printable, as in "SD".
pub fn oem_text(oemid: u16) -> Option<String> {
    let bytes = oemid.to_be_bytes();
    bytes.iter().all(|b| (0x21..0x7f).contains(b)).then(|| bytes.iter().map(|&b| b as char).collect())
}

/// What an eMMC year code (0 to 15) means: the likeliest year and the others possible.
///
/// Codes count from 1997. With EXT_CSD_REV 5 to 8 (eMMC 4.41 to 5.1) codes 0 to 12 mean 2013 to 2025 and 13 to 15 still
/// 2010 to 2012, although some makers went on counting to 2026 to 2028; with revision 9 (JESD84-B51B) codes 13 to 15 mean 2026
/// to 2028 and 0 to 12 mean 2029 to 2041. `today` decides only between readings the standard leaves open.
pub fn emmc_year(code: u8, ext_csd_rev: Option<u8>, old_card: bool, today: Date) -> (u16, Vec<u16>) {
    let (first, second, third) = (1997 + u16::from(code), 2013 + u16::from(code), 2029 + u16::from(code));
    match (ext_csd_rev, code) {
        _ if old_card => (first, vec![]),
        (Some(9..), 13..) => (second, vec![]),
        (Some(9..), _) => (third, vec![]),
        (Some(5..=8), 13..) if second <= today.year => (first, vec![second]),
        (Some(5..=8), 13..) => (first, vec![]),
        (Some(5..=8), _) => (second, vec![]),
        (Some(_), _) => (first, vec![]),
        (None, _) if second <= today.year => (second, vec![first]),
        (None, _) => (first, vec![second]),
    }
}

/// The layout of a CID of which nothing else is known, and what is to be said of the choice. An impossible date decides; the shape of an
/// eMMC's OEM id does not, since a false SD card may carry any.
pub fn likely(register: &[u8; 16], today: Date) -> (CidLayout, Option<String>) {
    let (sd, mmc) = (Cid::sd(register), Cid::mmc(register, None, None, today));
    // CBX has two bits, with zeros before them: an OEM id in letters is none of MMC.
    let cbx = register[1];
    let mmc_possible = cbx < 4 && mmc.date.possible(today);
    match (sd.date.possible(today), mmc_possible) {
        (false, true) => {
            let why = format!("read as the CID of an MMC or eMMC: as that of an SD card its date would be {}, which cannot be", sd.date);
            (CidLayout::Mmc, Some(why))
        }
        (one, other) if one == other && cbx == 1 => (CidLayout::Sd, Some(format!("OEM id {} has the shape of an eMMC's", sd.oem()))),
        _ => (CidLayout::Sd, None),
    }
}

impl Cid {
    /// Reads the SD layout.
    pub fn sd(register: &[u8; 16]) -> Cid {
        let r = register.as_slice();
        let manfid = field(r, 127, 120) as u8;
        Cid {
            layout: CidLayout::Sd,
            manfid: manfid.into(),
            maker: makers::sd(manfid).map(|m| m.name.to_string()),
            oemid: field(r, 119, 104) as u16,
            name: printable(&r[3..8]),
            hwrev: field(r, 63, 60) as u8,
            fwrev: field(r, 59, 56) as u8,
            serial: Some(field(r, 55, 24) as u32),
            date: Date { year: 2000 + field(r, 19, 12) as u16, month: field(r, 11, 8) as u8 },
            other_years: vec![],
            checksum: checksum(register),
            raw: hex(r),
        }
    }

    /// Reads the MMC layouts. `spec_vers` is SPEC_VERS of the CSD (below 2: the 1.x layout; below 4: no eMMC year codes),
    /// `ext_csd_rev` byte 192 of the EXT_CSD; both decide how the date reads.
    pub fn mmc(register: &[u8; 16], spec_vers: Option<u8>, ext_csd_rev: Option<u8>, today: Date) -> Cid {
        let r = register.as_slice();
        let first = spec_vers.is_some_and(|v| v < 2);
        let (month, code) = (field(r, 15, 12) as u8, field(r, 11, 8) as u8);
        let (year, other_years) = emmc_year(code, ext_csd_rev, spec_vers.is_some_and(|v| v < 4), today);
        let manfid = if first { field(r, 127, 104) } else { field(r, 127, 120) } as u32;
        Cid {
            layout: if first { CidLayout::Mmc1 } else { CidLayout::Mmc },
            manfid,
            maker: u8::try_from(manfid).ok().and_then(makers::mmc).map(|m| m.name.to_string()),
            oemid: if first { 0 } else { field(r, 119, 104) as u16 },
            name: printable(if first { &r[3..10] } else { &r[3..9] }),
            hwrev: if first { field(r, 47, 44) } else { field(r, 55, 52) } as u8,
            fwrev: if first { field(r, 43, 40) } else { field(r, 51, 48) } as u8,
            serial: Some(if first { field(r, 39, 16) } else { field(r, 47, 16) } as u32),
            date: Date { year, month },
            other_years,
            checksum: checksum(register),
            raw: hex(r),
        }
    }

    /// The same without the serial number: the number is dropped and its digits in `raw` become `x`.
    pub fn without_serial(mut self) -> Cid {
        let digits = match self.layout {
            CidLayout::Sd => 18..26,
            CidLayout::Mmc1 => 22..28,
            CidLayout::Mmc => 20..28,
        };
        self.serial = None;
        self.raw = self.raw.char_indices().map(|(i, c)| if digits.contains(&i) { 'x' } else { c }).collect();
        self
    }

    /// Where the identity does not look like one a maker would program: suspicions with their reason, never verdicts.
    pub fn suspicions(&self, today: Date) -> Vec<String> {
        let digits = self.raw.chars().filter(|&c| c != 'x');
        if digits.clone().all(|c| c == '0') || digits.clone().all(|c| c == 'f') {
            return vec!["CID is all zeros or all ones: no card sends that; a bad contact, a reader or an emulation is likelier".into()];
        }
        let mut found = self.id_suspicions();
        if self.name.is_empty() || self.name.chars().all(|c| c == '0') {
            found.push(format!("CID product name is \"{}\": suspicious, makers give their cards names", self.name));
        } else if self.name.contains("\\x") {
            found.push(format!("CID product name \"{}\" is not printable ASCII: suspicious, the specification asks for ASCII", self.name));
        }
        match self.date {
            Date { month: 0 | 13.., .. } => found.push(format!("CID production month is {}: not a month", self.date.month)),
            date if date > today => found.push(format!("CID production date {date} lies in the future (the clock here says {today})")),
            date if date.year < 2000 && self.layout != CidLayout::Mmc1 && self.other_years.is_empty() => {
                found.push(format!("CID production date {date} lies before 2000: suspicious for this kind of card"));
            }
            _ => {}
        }
        match self.serial {
            Some(0) => found.push("CID serial number is 0: suspicious, every card should have its own".into()),
            Some(u32::MAX) if self.layout != CidLayout::Mmc1 => {
                found.push("CID serial number is all ones: suspicious, every card should have its own".into());
            }
            _ => {}
        }
        if let Checksum::Wrong { found: a, computed: b } = self.checksum {
            found.push(format!(
                "CID checksum is {a:#04x}, but its bytes give {b:#04x}: copied wrongly, edited, or never computed by the card"
            ));
        }
        found
    }

    fn id_suspicions(&self) -> Vec<String> {
        let mut found = vec![];
        let Ok(manfid) = u8::try_from(self.manfid) else { return found };
        if self.layout != CidLayout::Sd {
            if self.maker.is_none() {
                found.push(format!("manufacturer id {manfid:#04x} is not in the table of known eMMC makers (which proves nothing)"));
            }
            return found;
        }
        if let Some(report) = makers::reported(manfid, self.oemid) {
            found.push(format!("ids {manfid:#04x}/{}: {report}", self.oem()));
            return found;
        }
        match makers::sd(manfid) {
            None if manfid == 0 => found.push("manufacturer id 0 is assigned to nobody: suspicious".into()),
            None => found.push(format!("manufacturer id {manfid:#04x} is not in the table of known SD makers (which proves nothing)")),
            Some(m) if !m.oemids.is_empty() && !m.oemids.contains(&self.oemid) => {
                let usual: Vec<String> = m.oemids.iter().map(|&id| oem_label(id)).collect();
                found.push(format!(
                    "OEM id {} is unusual with manufacturer id {manfid:#04x} ({}), which commonly has {}: a reason to check, not a proof",
                    self.oem(),
                    m.name,
                    usual.join(" or ")
                ));
            }
            Some(_) => {}
        }
        found
    }

    /// The OEM id in words: `0x5344 "SD"`.
    pub fn oem(&self) -> String {
        oem_label(self.oemid)
    }
}

fn oem_label(oemid: u16) -> String {
    match oem_text(oemid) {
        Some(text) => format!("{oemid:#06x} \"{text}\""),
        None => format!("{oemid:#06x}"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse_array;
    use super::*;

    const TODAY: Date = Date { year: 2026, month: 11 };

    fn sd(text: &str) -> Cid {
        Cid::sd(&parse_array("CID", text).unwrap())
    }

    #[test]
    fn sd_layout() {
        let c = sd("02544d5341303447113533890900d371");
        assert_eq!((c.manfid, c.oemid, c.name.as_str()), (0x02, 0x544d, "SA04G"));
        assert_eq!((c.hwrev, c.fwrev, c.serial), (1, 1, Some(0x3533_8909)));
        assert_eq!(c.date, Date { year: 2013, month: 3 }, "0x0d = 2013, 3 = March");
        assert_eq!(c.checksum, Checksum::Good);
        assert!(c.suspicions(TODAY).is_empty(), "{:?}", c.suspicions(TODAY));
    }

    /// eMMCs of the kernel's list whose date no SD card can have, and SD cards that stay SD cards whatever their date.
    #[test]
    fn an_impossible_date_of_an_sd_card_is_one_of_an_emmc() {
        let of = |text: &str| likely(&parse_array("CID", text).unwrap(), TODAY);
        for emmc in ["7001004d363237303410000001233000", "150100424a5444345206112233448e00", "1101003030384745300112345678b400"] {
            let (layout, why) = of(emmc);
            assert!(layout == CidLayout::Mmc && why.is_some_and(|w| w.contains("which cannot be")), "{emmc}");
        }
        for sd in ["03534453553136478012345678028200", "03534453553136478012345678010d00", "0000000000000000000000375600ea00"] {
            assert_eq!(of(sd), (CidLayout::Sd, None), "{sd}");
        }
        let (layout, why) = of("45010053454d30344710123456715500");
        assert!(layout == CidLayout::Sd && why.unwrap().contains("shape of an eMMC"));
    }

    #[test]
    fn a_flipped_bit_breaks_the_checksum() {
        let c = sd("02544d5341303447113533890900d471");
        assert!(matches!(c.checksum, Checksum::Wrong { found: 0x38, .. }));
        assert!(c.suspicions(TODAY)[0].contains("checksum"));
    }

    #[test]
    fn mmc_layout() {
        // 15 | CBX 1 | OID 00 | "8GTF4R" | PRV 07 | PSN 12345678 | month 9, year code 4 | CRC byte dropped
        let register = parse_array("CID", "150100384754463452071234567894 00").unwrap();
        let c = Cid::mmc(&register, Some(4), Some(8), TODAY);
        assert_eq!((c.manfid, c.oemid, c.name.as_str()), (0x15, 0x0100, "8GTF4R"));
        assert_eq!((c.hwrev, c.fwrev, c.serial), (0, 7, Some(0x1234_5678)));
        assert_eq!(c.date, Date { year: 2017, month: 9 }, "1997 + 4 + 16");
        assert_eq!(c.maker.as_deref(), Some("Samsung"));
        assert_eq!(Cid::mmc(&register, Some(4), Some(4), TODAY).date.year, 2001, "before 4.41 the code counts from 1997");
        let masked = c.without_serial();
        assert_eq!((masked.raw.as_str(), masked.serial), ("15010038475446345207xxxxxxxx9400", None));
    }

    #[test]
    fn mmc1_layout() {
        // MID 000011 | "ABCDEFG" | hw 1 fw 2 | PSN 00abcd | month 5 year code 3
        let c = Cid::mmc(&parse_array("CID", "000011 41424344454647 12 00abcd 53 00").unwrap(), Some(1), None, TODAY);
        assert_eq!((c.layout, c.manfid, c.name.as_str()), (CidLayout::Mmc1, 0x11, "ABCDEFG"));
        assert_eq!((c.hwrev, c.fwrev, c.serial), (1, 2, Some(0xabcd)));
        assert_eq!(c.date, Date { year: 2000, month: 5 });
        assert_eq!(c.without_serial().raw, "0000114142434445464712xxxxxx5300");
    }

    #[test]
    fn emmc_years_wrap() {
        for (code, rev, want) in [
            (0, Some(8), (2013, vec![])),
            (12, Some(7), (2025, vec![])),
            (13, Some(8), (2010, vec![2026])),
            (14, Some(8), (2011, vec![])),
            (13, Some(9), (2026, vec![])),
            (0, Some(9), (2029, vec![])),
            (9, Some(3), (2006, vec![])),
            (4, None, (2017, vec![2001])),
            (15, None, (2012, vec![2028])),
        ] {
            assert_eq!(emmc_year(code, rev, false, TODAY), want, "code {code} rev {rev:?}");
        }
        assert_eq!(emmc_year(4, None, true, TODAY), (2001, vec![]));
    }

    #[test]
    fn suspicions_name_their_reason() {
        // A card proven fake: AltraMayor/f3 issue 15.
        let fake = sd("0000000000000000000000375600ea00").suspicions(TODAY).join("; ");
        assert!(fake.contains("f3 issue 15") && fake.contains("product name is \"\""), "{fake}");
        assert!(sd("12345641535443002000000145016200").suspicions(TODAY)[0].contains("12 34 56"));
        let pt = sd("03505453553136478012345678010200").suspicions(TODAY);
        assert!(pt[0].contains("no answer is known") && pt.len() == 1, "{pt:?}");
        assert!(sd("1b534d30303030301012345678010200").suspicions(TODAY)[0].contains("\"00000\""));
        assert!(sd("03534453553136478012345678028200").suspicions(TODAY)[0].contains("02/2040 lies in the future"));
        assert!(sd("03534453553136478000000000010200").suspicions(TODAY)[0].contains("serial number is 0"));
        assert!(sd("03534453553136478012345678010d00").suspicions(TODAY)[0].contains("not a month"));
        assert!(sd("035344ff553136478012345678010200").suspicions(TODAY)[0].contains("\\xffU16G"));
        assert!(sd("1b5344535531364780123456780102 00").suspicions(TODAY)[0].contains("commonly has 0x534d \"SM\""));
        for empty in ["00", "ff"] {
            let all = sd(&empty.repeat(16)).suspicions(TODAY);
            assert!(all.len() == 1 && all[0].contains("all zeros or all ones"), "{all:?}");
        }
    }
}

//! Who made it: manufacturer ids and OEM ids of SD cards and eMMC parts, as far as the public knows them.
//!
//! The bodies that assign these numbers (SD-3C, JEDEC) publish no list. Sources of this table: the id tables of mmc-utils
//! (`lsmmc.c`), the `CID_MANFID_*` names of the Linux MMC core, the list of cameramemoryspeed.com, and dumps of labelled
//! cards. The number names whoever registered it, often the maker of the controller or of the flash, not the brand printed on
//! the card; a number that is not here proves nothing.

/// One manufacturer id.
#[derive(Debug)]
pub struct Maker {
    /// The id in the CID.
    pub manfid: u8,
    /// Who uses it.
    pub name: &'static str,
    /// OEM ids commonly seen with it, as 16-bit numbers; empty where no habit is known.
    pub oemids: &'static [u16],
}

const fn oem(text: &[u8; 2]) -> u16 {
    (text[0] as u16) << 8 | text[1] as u16
}

const fn maker(manfid: u8, name: &'static str, oemids: &'static [u16]) -> Maker {
    Maker { manfid, name, oemids }
}

/// SD cards.
pub const SD: &[Maker] = &[
    maker(0x01, "Panasonic", &[oem(b"PA")]),
    maker(0x02, "Toshiba/Kioxia (also sold by Kingston and others)", &[oem(b"TM")]),
    maker(0x03, "SanDisk", &[oem(b"SD")]),
    maker(0x08, "Silicon Power", &[]),
    maker(0x09, "ATP", &[oem(b"AP")]),
    maker(0x12, "Gigastone (by the name in Linux)", &[]),
    maker(0x18, "Infineon", &[]),
    maker(0x1b, "Samsung", &[oem(b"SM")]),
    maker(0x1c, "Transcend", &[]),
    maker(0x1d, "ADATA (also Corsair)", &[oem(b"AD")]),
    maker(0x1e, "Transcend", &[]),
    maker(0x1f, "Kingston", &[]),
    maker(0x27, "Phison (sold under many brands)", &[oem(b"PH")]),
    maker(0x28, "Lexar", &[oem(b"BE")]),
    maker(0x30, "SanDisk", &[]),
    maker(0x31, "Silicon Power", &[oem(b"SP")]),
    maker(0x33, "STMicroelectronics", &[]),
    maker(0x41, "Kingston", &[oem(b"42")]),
    maker(0x5d, "Swissbit", &[oem(b"SB")]),
    maker(0x6f, "STMicroelectronics", &[]),
    maker(0x74, "Transcend", &[oem(b"JE"), oem(b"J`")]),
    maker(0x76, "Patriot", &[]),
    maker(0x82, "Sony (also Gobe)", &[oem(b"JT")]),
    maker(0x9c, "Angelbird, Hoodman", &[oem(b"SO"), oem(b"BE")]),
    maker(0x9f, "Kingston", &[oem(b"TI")]),
    maker(0xad, "Longsys (also Lexar)", &[oem(b"LS")]),
];

/// MultiMediaCards and eMMC. Their OEM ids follow no public habit.
pub const MMC: &[Maker] = &[
    maker(0x00, "SanDisk (old cards)", &[]),
    maker(0x02, "SanDisk or Kingston", &[]),
    maker(0x03, "Toshiba", &[]),
    maker(0x11, "Toshiba/Kioxia", &[]),
    maker(0x13, "Micron", &[]),
    maker(0x15, "Samsung", &[]),
    maker(0x2c, "Kingston", &[]),
    maker(0x37, "KingMax", &[]),
    maker(0x44, "ATP", &[]),
    maker(0x45, "SanDisk", &[]),
    maker(0x70, "Kingston", &[]),
    maker(0x90, "SK hynix", &[]),
    maker(0x9b, "YMTC", &[]),
    maker(0xfe, "Micron (Numonyx)", &[]),
];

/// Looks an SD manufacturer id up.
pub fn sd(manfid: u8) -> Option<&'static Maker> {
    SD.iter().find(|m| m.manfid == manfid)
}

/// Looks an MMC manufacturer id up.
pub fn mmc(manfid: u8) -> Option<&'static Maker> {
    MMC.iter().find(|m| m.manfid == manfid)
}

/// What has been reported in public about this pair of ids on an SD card, with the place. Reports, not proofs.
pub fn reported(manfid: u8, oemid: u16) -> Option<&'static str> {
    match (manfid, oemid) {
        (0x03, id) if id == oem(b"PT") => Some(
            "SanDisk's id with OEM id \"PT\" instead of the usual \"SD\" has been asked about as a possible counterfeit \
             (acassis.wordpress.com; flashbench-results list, December 2015); no answer is known here",
        ),
        (0x12, 0x3456) => Some(
            "manufacturer and OEM id read 12 34 56, which looks like a placeholder; Linux knows such a card, sold as Gigastone, with \
             cache and power-off functions that do not work",
        ),
        (0x41, id) if id == oem(b"42") => Some(
            "this pair was taken for irregular in 2010 (bunniestudios.com, \"On MicroSD Problems\"); Kingston declared those cards genuine",
        ),
        (0x00, 0x0000) => Some("zero ids are common on cards that turned out to be fakes (AltraMayor/f3 issue 15, for one)"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_sorted_and_unique() {
        for table in [SD, MMC] {
            assert!(table.windows(2).all(|w| w[0].manfid < w[1].manfid));
        }
    }

    #[test]
    fn known_ids() {
        assert_eq!(sd(0x03).unwrap().name, "SanDisk");
        assert_eq!(sd(0x02).unwrap().oemids, [0x544d]);
        assert_eq!(mmc(0x15).unwrap().name, "Samsung");
        assert!(sd(0xaa).is_none() && mmc(0xaa).is_none());
        assert!(reported(0x03, 0x5054).unwrap().contains("\"PT\""));
        assert!(reported(0x03, 0x5344).is_none());
    }
}

//! Named values as sysfs, udev and bench logs give them, under one spelling: the common door of every text source.

use super::RegisterError;
use super::ext_csd::ExtCsdBytes;
use std::collections::BTreeMap;

/// Attribute names that are understood, in the spelling used here (that of sysfs).
pub const KNOWN: &[&str] = &[
    "bcdDevice",
    "cid",
    "cmdq_en",
    "csd",
    "date",
    "erase_size",
    "ext_csd",
    "fwrev",
    "hwrev",
    "idProduct",
    "idVendor",
    "life_time",
    "manfid",
    "manufacturer",
    "model",
    "name",
    "oemid",
    "pre_eol_info",
    "preferred_erase_size",
    "product",
    "removable",
    "rev",
    "scr",
    "serial",
    "size",
    "speed",
    "ssr",
    "type",
    "vendor",
];

/// Other spellings: short forms of scripts, the words of SdFat's card reports, udev properties.
const ALIASES: &[(&str, &str)] = &[
    ("id_model", "product"),
    ("id_model_id", "idProduct"),
    ("id_name", "name"),
    ("id_revision", "bcdDevice"),
    ("id_serial_short", "serial"),
    ("id_vendor", "manufacturer"),
    ("id_vendor_id", "idVendor"),
    ("man", "manfid"),
    ("manufacturer id", "manfid"),
    ("manufacturing date", "date"),
    ("mmc_name", "name"),
    ("mmc_type", "type"),
    ("oem", "oemid"),
    ("oem id", "oemid"),
    ("serial number", "serial"),
];

/// The one spelling of a name, or None where it is not one of ours. Case and remarks in parentheses do not matter.
pub fn canonical(name: &str) -> Option<&'static str> {
    let name = name.split('(').next().unwrap_or(name).trim();
    let known = KNOWN.iter().find(|k| k.eq_ignore_ascii_case(name));
    known.copied().or_else(|| ALIASES.iter().find(|(alias, _)| alias.eq_ignore_ascii_case(name)).map(|(_, k)| *k))
}

/// Named values of one target. The first value given for a name stays.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    values: BTreeMap<&'static str, String>,
    /// EXT_CSD, where it came in a form of its own.
    pub ext_csd: Option<ExtCsdBytes>,
    /// Kernel name of the block device, such as `mmcblk0`.
    pub device: Option<String>,
    /// Kernel name of the whole disk of an SD or MMC card, to which commands can be sent.
    pub commands: Option<String>,
    /// What the source itself has to say.
    pub remarks: Vec<String>,
}

impl Attributes {
    /// None yet, of the block device of this name.
    pub fn of(device: Option<String>) -> Attributes {
        Attributes { device, ..Attributes::default() }
    }

    /// Adds a value under any known spelling; true where the name is known. Empty values are dropped.
    pub fn add(&mut self, name: &str, value: &str) -> bool {
        let Some(key) = canonical(name) else { return false };
        let value = value.trim().trim_matches('"').trim();
        if !value.is_empty() {
            self.values.entry(key).or_insert_with(|| value.to_string());
        }
        true
    }

    /// A value by its sysfs name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(String::as_str)
    }

    /// True where nothing was found.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty() && self.ext_csd.is_none()
    }

    /// A number: `0x..` hex, else decimal.
    pub fn number(&self, name: &str) -> Option<u64> {
        number(self.get(name)?)
    }

    /// A number that sysfs prints as hex without 0x (USB ids).
    pub fn hex_number(&self, name: &str) -> Option<u64> {
        u64::from_str_radix(self.get(name)?.trim_start_matches("0x"), 16).ok()
    }

    /// EXT_CSD from its own form or from the attribute.
    pub fn ext_csd(&self) -> Result<Option<ExtCsdBytes>, RegisterError> {
        match (&self.ext_csd, self.get("ext_csd")) {
            (Some(bytes), _) => Ok(Some(bytes.clone())),
            (None, Some(text)) => super::ext_csd_text::parse_text(text).map(Some),
            (None, None) => Ok(None),
        }
    }
}

/// `0x1b`, `0X1B` or decimal.
pub fn number(text: &str) -> Option<u64> {
    let text = text.trim();
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_spelling() {
        for (given, want) in [
            ("cid", Some("cid")),
            ("CID (raw)", Some("cid")),
            ("serial (PSN)", Some("serial")),
            ("Manufacturer ID", Some("manfid")),
            ("man", Some("manfid")),
            ("ID_VENDOR_ID", Some("idVendor")),
            ("idvendor", Some("idVendor")),
            ("uevent", None),
        ] {
            assert_eq!(canonical(given), want, "{given}");
        }
    }

    #[test]
    fn the_first_value_stays() {
        let mut a = Attributes::default();
        assert!(a.add("size", " 7626752 \n") && a.add("SIZE", "1") && !a.add("colour", "red"));
        a.add("serial", "  ");
        a.add("manfid", "0x000003");
        assert_eq!((a.number("size"), a.number("manfid"), a.get("serial")), (Some(7_626_752), Some(3), None));
    }
}

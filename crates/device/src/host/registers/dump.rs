//! Pasted dumps, terminal noise included: `head` or `cat` of `/sys/block/mmcblk0/device/*`, `grep -r . /sys/...`, `udevadm info`, `name : value` notes, the card
//! report of SdFat's bench and the text of `mmc extcsd read`. Lines that are none of these are passed over.

use super::attributes::{Attributes, KNOWN, canonical};
use super::{RegisterError, ext_csd_text};

/// Reads a dump. An error where it holds nothing known or a damaged EXT_CSD.
pub fn parse(text: &str) -> Result<Attributes, RegisterError> {
    let mut cards: Vec<(String, Attributes)> = vec![];
    let mut section: Option<(String, &'static str)> = None;
    let mut value = String::new();
    let text = &without_escapes(text);
    for line in text.lines().map(str::trim).filter(|l| !l.starts_with('#')) {
        if let Some(path) = line.strip_prefix("==>").and_then(|l| l.trim_end().strip_suffix("<==")) {
            finish(&mut cards, section.take(), &mut value);
            let (folder, name) = split_path(path.trim());
            section = canonical(name).filter(|k| *k == name).map(|key| (folder.to_string(), key));
        } else if let Some((folder, key)) = shown(line) {
            finish(&mut cards, section.take(), &mut value);
            section = Some((folder.to_string(), key));
        } else if let Some((_, key)) = &section {
            let continues = matches!(*key, "ssr" | "ext_csd") && line.bytes().all(|b| b.is_ascii_hexdigit() || b == b' ' || b == b':');
            if !line.is_empty() && (value.is_empty() || continues) {
                value.push_str(line);
            }
        } else if line.starts_with("looking at parent device") && card(&mut cards, "").get("idVendor").is_some() {
            // udevadm info -a goes on to the hubs above; their serial numbers are not the device's.
            break;
        } else {
            for (folder, name, value) in entries(line) {
                card(&mut cards, &folder).add(&name, &value);
            }
        }
    }
    finish(&mut cards, section, &mut value);
    choose(cards, ext_csd_text::from_mmc_utils(text)?)
}

/// Leaves out what steers a terminal: colours, cursor movements, titles.
fn without_escapes(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '\u{1b}' {
            out.push(c);
            continue;
        }
        match chars.next() {
            // ESC [ ... letter; ESC ] ... BEL.
            Some('[') => drop(chars.by_ref().find(|c| ('@'..='~').contains(c))),
            Some(']') => drop(chars.by_ref().find(|c| matches!(c, '\u{7}' | '\n'))),
            _ => {}
        }
    }
    out
}

/// `pi@host:~ $ cat /sys/block/mmcblk0/device/csd`: the value stands in the line below.
fn shown(line: &str) -> Option<(&str, &'static str)> {
    let (_, path) = line.rsplit_once("cat ")?;
    let (folder, name) = split_path(path.trim());
    let key = canonical(name).filter(|k| *k == name)?;
    (!path.trim().contains(char::is_whitespace)).then_some((folder, key))
}

fn finish(cards: &mut Vec<(String, Attributes)>, section: Option<(String, &'static str)>, value: &mut String) {
    if let Some((folder, key)) = section {
        card(cards, &folder).add(key, value);
    }
    value.clear();
}

/// The card a folder belongs to; notes without a folder all belong to one.
fn card<'a>(cards: &'a mut Vec<(String, Attributes)>, folder: &str) -> &'a mut Attributes {
    let at = cards.iter().position(|(f, _)| f == folder).unwrap_or_else(|| {
        let device = device_of(folder);
        cards.push((folder.to_string(), Attributes::of(device)));
        cards.len() - 1
    });
    &mut cards[at].1
}

/// `/sys/block/mmcblk1/device` belongs to mmcblk1.
fn device_of(folder: &str) -> Option<String> {
    folder.split('/').skip_while(|part| *part != "block").nth(1).filter(|name| !name.is_empty()).map(str::to_string)
}

/// Takes the first folder that has a CID, else the first with anything.
fn choose(cards: Vec<(String, Attributes)>, ext_csd: Option<super::ext_csd::ExtCsdBytes>) -> Result<Attributes, RegisterError> {
    let with_cid = cards.iter().filter(|(_, a)| a.get("cid").is_some()).count();
    let chosen = cards.iter().position(|(_, a)| a.get("cid").is_some()).or_else(|| cards.iter().position(|(_, a)| !a.is_empty()));
    let mut attributes = chosen.map(|n| cards[n].1.clone()).unwrap_or_default();
    if with_cid > 1 {
        attributes.remarks.push(format!("the dump holds {with_cid} cards; this is the first"));
    }
    // Siblings such as /sys/block/mmcblk1/size lie one folder up.
    if let Some(folder) = chosen.map(|n| cards[n].0.clone()) {
        for (other, values) in &cards {
            let related = folder.strip_prefix(other.as_str()).is_some_and(|rest| rest == "/device");
            if related && let Some(size) = values.get("size") {
                attributes.add("size", size);
            }
        }
    }
    attributes.ext_csd = ext_csd;
    if !is_card(&attributes) {
        return Err(RegisterError::Text {
            register: "dump",
            what: "found no register and no sysfs attribute; expected for example \"cid: 02544d...\", \"==> .../csd <==\" or the text of \
                   `mmc extcsd read` or `mmc cid read`"
                .into(),
        });
    }
    Ok(attributes)
}

/// A word that looks like the name of an attribute stands in any text; a card has a register, a number, or two names.
fn is_card(a: &Attributes) -> bool {
    let register = ["cid", "csd", "scr", "ssr", "ext_csd", "life_time", "pre_eol_info"].iter().any(|k| a.get(k).is_some());
    let number = ["manfid", "oemid", "erase_size", "preferred_erase_size", "size"].iter().any(|k| a.number(k).is_some());
    let usb = a.hex_number("idVendor").is_some();
    let names = ["vendor", "model", "product", "manufacturer", "name", "serial"].iter().filter(|k| a.get(k).is_some()).count();
    a.ext_csd.is_some() || register || number || usb || names >= 2 || matches!(a.get("type"), Some("SD" | "MMC" | "SDIO" | "SDcombo"))
}

fn split_path(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

/// What one line says: folder (may be empty), name, value.
fn entries(line: &str) -> Vec<(String, String, String)> {
    let own = |name: &str, value: &str| (String::new(), name.to_string(), value.to_string());
    // udevadm info -a: ATTR{size}=="7626752", ATTRS{idVendor}=="0781"
    if let Some(rest) = line.strip_prefix("ATTRS{").or_else(|| line.strip_prefix("ATTR{")) {
        return match rest.split_once("}==") {
            Some((name, value)) => vec![own(name.trim_start_matches("device/"), value)],
            None => vec![],
        };
    }
    // udevadm info: E: ID_VENDOR_ID=0781; uevent: MMC_TYPE=SD
    let property = line.strip_prefix("E: ").unwrap_or(line);
    if let Some((name, value)) = property.split_once('=')
        && !name.is_empty()
        && name.bytes().all(|b| b.is_ascii_uppercase() || b == b'_')
    {
        return vec![own(name, value)];
    }
    // grep -r: /sys/block/mmcblk0/device/cid:0353...
    if line.contains('/')
        && let Some((folder, name, value)) = grep_line(line)
    {
        return vec![(folder.to_string(), name.to_string(), value.to_string())];
    }
    // several on a line: man:0x000003 oem:0x5344 name:SU04G
    let words: Vec<(&str, &str)> = line.split_whitespace().filter_map(|w| w.split_once(':')).collect();
    if words.len() > 1 && words.iter().all(|(name, value)| canonical(name).is_some() && !value.is_empty()) {
        return words.into_iter().map(|(name, value)| own(name, value)).collect();
    }
    if let Some(found) = mmc_cid(line) {
        return found.into_iter().map(|(name, value)| own(name, &value)).collect();
    }
    // a note: CSD : 400e00...
    match line.split_once(':') {
        Some((name, value)) if canonical(name).is_some() => vec![own(name, value)],
        _ => vec![],
    }
}

/// `mmc cid read`: manufacturer: 'SanDisk' 'SD'; product: 'SC16G' 8.0; manufacturing date: 2018 jul. An id that it has no name for is
/// printed in its place.
fn mmc_cid(line: &str) -> Option<Vec<(&'static str, String)>> {
    const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    let (name, value) = line.split_once(':')?;
    let quoted: Vec<String> = value.split('\'').skip(1).step_by(2).map(str::to_string).collect();
    Some(match (name.trim(), &quoted[..]) {
        ("type", [kind]) => vec![("type", kind.clone())],
        ("manufacturer", [maker, oem]) => {
            vec![(if maker.starts_with("0x") { "manfid" } else { "manufacturer" }, maker.clone()), ("oemid", oem.clone())]
        }
        ("product", [product]) => vec![("name", product.clone())],
        ("manufacturing date", []) => {
            let (year, month) = value.trim().split_once(' ')?;
            let month = MONTHS.iter().position(|m| month.to_lowercase().starts_with(m))? + 1;
            vec![("date", format!("{month:02}/{year}"))]
        }
        _ => return None,
    })
}

/// Characters of a name with its colon, at most.
const LONGEST: usize = 40;

/// Splits `path/name:value` at the first known name; paths themselves may hold colons (`mmc0:0001`).
fn grep_line(line: &str) -> Option<(&str, &str, &str)> {
    line.match_indices('/').find_map(|(at, _)| {
        let rest = &line[at + 1..];
        // No name is longer.
        let end = rest.bytes().take(LONGEST).position(|b| b == b':')?;
        let name = KNOWN.iter().find(|n| n.as_bytes() == &rest.as_bytes()[..end])?;
        Some((&line[..at], *name, &rest[end + 1..]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn head_form() {
        let a = parse(
            "$ head /sys/block/mmcblk1/device/*\n==> /sys/block/mmcblk1/device/block <==\n==> /sys/block/mmcblk1/device/cid <==\n02544d\n\
             ==> /sys/block/mmcblk1/device/ssr <==\n8000\n0000\n\n==> /sys/block/mmcblk1/device/uevent <==\nMMC_TYPE=SD\n\
             ==> /sys/block/mmcblk1/size <==\n7626752\n",
        )
        .unwrap();
        assert_eq!((a.get("cid"), a.get("ssr"), a.number("size")), (Some("02544d"), Some("80000000"), Some(7_626_752)));
        assert_eq!(a.device.as_deref(), Some("mmcblk1"));
    }

    #[test]
    fn cat_in_a_terminal() {
        let a = parse(
            "\u{1b}]0;pi\u{7}\u{1b}[01;32mpi@pi\u{1b}[00m:~ $ cat /sys/block/mmcblk0/device/csd\r\n\u{1b}[?2004l400e00\r\n\
             \u{1b}[?2004hpi@pi:~ $ cat /sys/block/mmcblk0/device/scr\r\n0235800200000000\r\n\u{1b}[1mpi@pi:~ $ ^C\n",
        )
        .unwrap();
        assert_eq!((a.get("csd"), a.get("scr"), a.device.as_deref()), (Some("400e00"), Some("0235800200000000"), Some("mmcblk0")));
    }

    #[test]
    fn grep_form_with_two_cards() {
        let a = parse(
            "/sys/block/mmcblk0/device/cid:aa\n/sys/block/mmcblk0/device/ssr:8000:0800\n/sys/block/mmcblk1/device/cid:bb\n\
             /sys/block/mmcblk0/size:15\n",
        )
        .unwrap();
        assert_eq!((a.get("cid"), a.get("ssr"), a.get("size")), (Some("aa"), Some("8000:0800"), Some("15")));
        assert_eq!(a.remarks, ["the dump holds 2 cards; this is the first"]);
        let a = parse("/sys/bus/mmc/devices/mmc0:aaaa/csd:400e\n").unwrap();
        assert_eq!(a.get("csd"), Some("400e"));
    }

    #[test]
    fn udev_forms() {
        let a = parse(
            "  looking at parent device '/devices/...':\n    ATTRS{idVendor}==\"0781\"\n    ATTRS{idProduct}==\"5581\"\n\
             \n  looking at parent device '/devices/usb1':\n    ATTRS{idVendor}==\"1d6b\"\n    ATTRS{serial}==\"0000:00:14.0\"\n",
        )
        .unwrap();
        assert_eq!((a.hex_number("idVendor"), a.hex_number("idProduct"), a.get("serial")), (Some(0x0781), Some(0x5581), None));
        let a = parse("P: /devices/x\nE: ID_VENDOR_ID=05e3\nE: ID_MODEL_ID=0751\nE: ID_MODEL=STORAGE_DEVICE\nE: ID_BUS=usb\n").unwrap();
        assert_eq!((a.hex_number("idVendor"), a.get("product")), (Some(0x05e3), Some("STORAGE_DEVICE")));
    }

    #[test]
    fn notes_and_bench_reports() {
        let a = parse("name          : SE08G\nserial (PSN)  : 0xcd\nCID (raw)     : 0254\n").unwrap();
        assert_eq!((a.get("name"), a.get("serial"), a.get("cid")), (Some("SE08G"), Some("0xcd"), Some("0254")));
        let a = parse("man:0x000003 oem:0x5344 name:SU04G hwrev:0x8 fwrev:0x0 date:11/2013 cid:0353 csd:400e\n").unwrap();
        assert_eq!((a.number("manfid"), a.get("date"), a.get("csd")), (Some(3), Some("11/2013"), Some("400e")));
        let a = parse("Card size: 16.04 GB\nManufacturer ID: 0X2\nOEM ID: TM\nProduct: SD16G\nManufacturing date: 10/2009\n").unwrap();
        assert_eq!((a.number("manfid"), a.get("oemid"), a.get("product")), (Some(2), Some("TM"), Some("SD16G")));
    }

    /// The text of `mmc cid read`, with a maker that it knows and one that it does not.
    #[test]
    fn a_cid_in_words() {
        let text = |maker: &str| {
            format!("type: 'SD'\nmanufacturer: '{maker}' 'SD'\nproduct: 'SC16G' 8.0\nserial: 0x12345678\nmanufacturing date: 2018 jul\n")
        };
        let a = parse(&text("SanDisk")).unwrap();
        assert_eq!(
            (a.get("type"), a.get("manufacturer"), a.get("oemid"), a.get("name")),
            (Some("SD"), Some("SanDisk"), Some("SD"), Some("SC16G"))
        );
        assert_eq!((a.get("date"), a.number("serial")), (Some("07/2018"), Some(0x1234_5678)));
        assert_eq!(parse(&text("0x9f")).unwrap().number("manfid"), Some(0x9f));
    }

    #[test]
    fn nothing_in_it() {
        for text in ["", "hello\nworld: 1\n", "==> /proc/cpuinfo <==\nx\n"] {
            assert!(parse(text).unwrap_err().to_string().starts_with("dump: found no register"), "{text:?}");
        }
    }
}

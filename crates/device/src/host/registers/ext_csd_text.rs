//! The forms in which an EXT_CSD is handed around: 512 bytes, one line of hex (debugfs), hex dumps with offsets (xxd, hexdump,
//! od), and the text of `mmc extcsd read`.

use super::ext_csd::ExtCsdBytes;
use super::{RegisterError, parse_hex};

const NAME: &str = "EXT_CSD";

/// Fields that `mmc extcsd read` prints: name, first byte, number of bytes (little-endian). Positions from JESD84-B51 7.4.
const FIELDS: &[(&str, usize, usize)] = &[
    ("S_CMD_SET", 504, 1),
    ("HPI_FEATURE", 503, 1),
    ("BKOPS_SUPPORT", 502, 1),
    ("MAX_PACKED_READS", 501, 1),
    ("MAX_PACKED_WRITES", 500, 1),
    ("DATA_TAG_SUPPORT", 499, 1),
    ("TAG_UNIT_SIZE", 498, 1),
    ("TAG_RES_SIZE", 497, 1),
    ("CONTEXT_CAPABILITIES", 496, 1),
    ("LARGE_UNIT_SIZE_M1", 495, 1),
    ("EXT_SUPPORT", 494, 1),
    ("CMDQ_SUPPORT", 308, 1),
    ("DEVICE_LIFE_TIME_EST_TYP_B", 269, 1),
    ("DEVICE_LIFE_TIME_EST_TYP_A", 268, 1),
    ("PRE_EOL_INFO", 267, 1),
    ("OPTIMAL_READ_SIZE", 266, 1),
    ("OPTIMAL_WRITE_SIZE", 265, 1),
    ("OPTIMAL_TRIM_UNIT_SIZE", 264, 1),
    ("GENERIC_CMD6_TIME", 248, 1),
    ("POWER_OFF_LONG_TIME", 247, 1),
    ("BKOPS_STATUS", 246, 1),
    ("INI_TIMEOUT_AP", 241, 1),
    ("TRIM_MULT", 232, 1),
    ("SEC_FEATURE_SUPPORT", 231, 1),
    ("SEC_ERASE_MULT", 230, 1),
    ("SEC_TRIM_MULT", 229, 1),
    ("BOOT_INFO", 228, 1),
    ("BOOT_SIZE_MULTI", 226, 1),
    ("ACC_SIZE", 225, 1),
    ("HC_ERASE_GRP_SIZE", 224, 1),
    ("ERASE_TIMEOUT_MULT", 223, 1),
    ("REL_WR_SEC_C", 222, 1),
    ("HC_WP_GRP_SIZE", 221, 1),
    ("SEC_COUNT", 212, 4),
    ("PARTITION_SWITCH_TIME", 199, 1),
    ("OUT_OF_INTERRUPT_TIME", 198, 1),
    ("DRIVER_STRENGTH", 197, 1),
    ("CARD_TYPE", 196, 1),
    ("CSD_STRUCTURE", 194, 1),
    ("EXT_CSD_REV", 192, 1),
    ("POWER_CLASS", 187, 1),
    ("HS_TIMING", 185, 1),
    ("STROBE_SUPPORT", 184, 1),
    ("ERASED_MEM_CONT", 181, 1),
    ("PARTITION_CONFIG", 179, 1),
    ("BOOT_CONFIG_PROT", 178, 1),
    ("BOOT_BUS_CONDITIONS", 177, 1),
    ("ERASE_GROUP_DEF", 175, 1),
    ("USER_WP", 171, 1),
    ("FW_CONFIG", 169, 1),
    ("RPMB_SIZE_MULT", 168, 1),
    ("WR_REL_SET", 167, 1),
    ("WR_REL_PARAM", 166, 1),
    ("BKOPS_EN", 163, 1),
    ("RST_N_FUNCTION", 162, 1),
    ("HPI_MGMT", 161, 1),
    ("PARTITIONING_SUPPORT", 160, 1),
    ("MAX_ENH_SIZE_MULT", 157, 3),
    ("PARTITIONS_ATTRIBUTE", 156, 1),
    ("PARTITION_SETTING_COMPLETED", 155, 1),
    ("GP_SIZE_MULT_4", 152, 3),
    ("GP_SIZE_MULT_3", 149, 3),
    ("GP_SIZE_MULT_2", 146, 3),
    ("GP_SIZE_MULT_1", 143, 3),
    ("ENH_SIZE_MULT", 140, 3),
    ("ENH_START_ADDR", 136, 4),
    ("NATIVE_SECTOR_SIZE", 63, 1),
    ("USE_NATIVE_SECTOR", 62, 1),
    ("DATA_SECTOR_SIZE", 61, 1),
    ("CLASS_6_CTRL", 59, 1),
    ("EXCEPTION_EVENTS_STATUS", 54, 2),
    ("POWER_OFF_NOTIFICATION", 34, 1),
    ("CACHE_CTRL", 33, 1),
    ("BARRIER_CTRL", 31, 1),
    ("CMDQ_MODE_EN", 15, 1),
];

fn bad(what: impl Into<String>) -> RegisterError {
    RegisterError::Text { register: NAME, what: what.into() }
}

/// Reads an EXT_CSD in any of its forms; which one it is shows from the content.
pub fn parse(content: &[u8]) -> Result<ExtCsdBytes, RegisterError> {
    let text = std::str::from_utf8(content).ok().filter(|t| !t.chars().any(|c| c.is_control() && !c.is_whitespace()));
    // mmc prints the firmware version as it is, control characters included.
    if text.is_none()
        && content.len() != 512
        && let Some(bytes) = from_mmc_utils(&String::from_utf8_lossy(content))?
    {
        return Ok(bytes);
    }
    match (text, content.first_chunk::<512>()) {
        (Some(text), _) if !text.trim().is_empty() => parse_text(text),
        (_, Some(bytes)) if content.len() == 512 => Ok(ExtCsdBytes::from(bytes)),
        (Some(_), _) => Err(RegisterError::Empty { register: NAME, expected: 512 }),
        (None, _) => Err(bad(format!(
            "expected 512 binary bytes, a hex dump of them or the text of `mmc extcsd read`, found {} bytes",
            content.len()
        ))),
    }
}

/// Reads the text forms.
pub fn parse_text(text: &str) -> Result<ExtCsdBytes, RegisterError> {
    if let Some(bytes) = from_mmc_utils(text)? {
        return Ok(bytes);
    }
    if let Some(bytes) = from_hex_dump(text)? {
        return Ok(ExtCsdBytes::from(&bytes));
    }
    let bytes = parse_hex(NAME, text, 512)?;
    let found = bytes.len();
    bytes.first_chunk::<512>().map(ExtCsdBytes::from).ok_or(RegisterError::Length { register: NAME, expected: 512, found })
}

/// The fields in the text of `mmc extcsd read`, whole or in part; None where the text has none of them.
pub fn from_mmc_utils(text: &str) -> Result<Option<ExtCsdBytes>, RegisterError> {
    let mut bytes = ExtCsdBytes::default();
    for line in text.lines() {
        if let Some(rev) = line.split("Extended CSD rev 1.").nth(1) {
            let digits: String = rev.chars().take_while(char::is_ascii_digit).collect();
            let rev = digits.parse().map_err(|_| bad(format!("revision not readable in {:?}", line.trim())))?;
            bytes.set(192, rev);
        } else if let Some(version) = line.trim().strip_prefix("eMMC Firmware Version:") {
            let version = version.trim();
            if !version.is_empty() && version.bytes().all(|b| b.is_ascii_graphic()) {
                let padded = version.bytes().chain(std::iter::repeat(0)).take(8);
                padded.enumerate().for_each(|(i, b)| bytes.set(254 + i, b));
            }
        } else {
            from_line(line, &mut bytes)?;
        }
    }
    Ok((bytes.known() > 0).then_some(bytes))
}

/// `... [NAME: 0x12]`, `... [NAME]: 0x12`, `... [CACHE_SIZE] is 128 KiB`, `... [CMDQ_DEPTH]: 16`.
fn from_line(line: &str, bytes: &mut ExtCsdBytes) -> Result<(), RegisterError> {
    let Some((_, inside)) = line.split_once('[') else { return Ok(()) };
    let length = inside.find(|c: char| !(c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')).unwrap_or(inside.len());
    let (name, rest) = inside.split_at(length);
    let name = name.strip_prefix("EXT_CSD_").filter(|short| FIELDS.iter().any(|f| f.0 == *short)).unwrap_or(name);
    let rest = rest.trim_start_matches([']', ':', ' ', '=']);
    let number = || -> Result<u64, RegisterError> {
        let token: String = rest.chars().take_while(char::is_ascii_alphanumeric).collect();
        let parsed = match token.strip_prefix("0x").or_else(|| token.strip_prefix("0X")) {
            Some(digits) => u64::from_str_radix(digits, 16),
            None => token.parse(),
        };
        parsed.map_err(|_| bad(format!("{name}: expected a number, found {:?}", rest.trim())))
    };
    match (name, FIELDS.iter().find(|f| f.0 == name)) {
        ("CACHE_SIZE", _) => {
            let Some(kib) = rest.strip_prefix("is ").and_then(|r| r.split_whitespace().next()).and_then(|n| n.parse::<u32>().ok()) else {
                return Err(bad(format!("CACHE_SIZE: expected \"is N KiB\", found {:?}", rest.trim())));
            };
            let kibibits = kib.checked_mul(8).ok_or_else(|| bad(format!("CACHE_SIZE: {kib} KiB does not fit the register")))?;
            kibibits.to_le_bytes().into_iter().enumerate().for_each(|(i, b)| bytes.set(249 + i, b));
        }
        ("CMDQ_DEPTH", _) => {
            let depth = number()?;
            let code = depth.checked_sub(1).filter(|&c| c < 32).ok_or_else(|| bad(format!("CMDQ_DEPTH: {depth} is not 1 to 32")))?;
            bytes.set(307, code as u8);
        }
        (_, Some(&(_, at, len))) => {
            let value = number()?;
            if value >> (8 * len) != 0 {
                return Err(bad(format!("{name}: {value:#x} does not fit its {len} byte(s)")));
            }
            value.to_le_bytes()[..len].iter().enumerate().for_each(|(i, &b)| bytes.set(at + i, b));
        }
        _ => {}
    }
    Ok(())
}

/// A line of a hex dump: offset as written, bytes, and whether they were printed as 16-bit words of a little-endian machine.
struct DumpLine<'a> {
    offset: &'a str,
    data: Vec<u8>,
}

/// Reads a dump with offsets; None where the text has no offsets.
fn from_hex_dump(text: &str) -> Result<Option<[u8; 512]>, RegisterError> {
    let mut lines = vec![];
    let mut repeat_before = vec![];
    for line in text.lines().map(str::trim).filter(|l| !l.is_empty()) {
        if line == "*" {
            repeat_before.push(lines.len());
            continue;
        }
        match dump_line(line)? {
            Some(parsed) => lines.push(parsed),
            None => return Ok(None),
        }
    }
    if lines.len() < 2 && repeat_before.is_empty() && lines.iter().all(|l| l.data.len() != 512) {
        return Ok(None);
    }
    for radix in [16, 8] {
        if let Some(all) = assemble(&lines, &repeat_before, radix) {
            let found = all.len();
            return all.try_into().map(Some).map_err(|_| RegisterError::Length { register: NAME, expected: 512, found });
        }
    }
    Err(bad("the offsets of the hex dump do not follow each other: a line is missing or damaged"))
}

fn assemble(lines: &[DumpLine], repeat_before: &[usize], radix: u32) -> Option<Vec<u8>> {
    let mut all: Vec<u8> = vec![];
    for (n, line) in lines.iter().enumerate() {
        let offset = usize::from_str_radix(line.offset, radix).ok().filter(|&o| o <= 4096)?;
        if repeat_before.contains(&n) && n > 0 && !lines[n - 1].data.is_empty() {
            while all.len() < offset {
                all.extend_from_slice(&lines[n - 1].data);
            }
        }
        if all.len() != offset {
            return None;
        }
        all.extend_from_slice(&line.data);
    }
    Some(all)
}

/// `00000010: 0001 0203 ...  text`, `00000010  00 01 02 ... |text|`, `0000020 0100 0302 ...`, `000010 00 01`. The ASCII column of
/// xxd starts after two blanks.
fn dump_line(line: &str) -> Result<Option<DumpLine<'_>>, RegisterError> {
    let Some((offset, rest)) = line.split_once(|c: char| c == ':' || c.is_whitespace()) else {
        // The last line of hexdump and od is an offset alone.
        let bare = (3..=8).contains(&line.len()) && line.bytes().all(|b| b.is_ascii_hexdigit());
        return Ok(bare.then_some(DumpLine { offset: line, data: vec![] }));
    };
    let offset = offset.strip_prefix("0x").unwrap_or(offset);
    if !(3..=8).contains(&offset.len()) || !offset.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Ok(None);
    }
    let colon = line.contains(':') && line.find(':') < line.find(char::is_whitespace);
    let rest = rest.trim_start().split('|').next().unwrap_or("");
    let columns = if colon { rest.split("  ").next().unwrap_or("") } else { rest };
    let groups: Vec<&str> = columns.split_whitespace().collect();
    let Some(first) = groups.first() else { return Ok(None) };
    let width = first.len();
    if !colon && (width == offset.len() || ![2, 4].contains(&width)) {
        return Ok(None);
    }
    let mut data = vec![];
    for group in groups {
        let bytes = group.len() / 2;
        let mut part = parse_hex(NAME, group, bytes)?;
        if !colon && width == 4 {
            part.reverse();
        }
        data.append(&mut part);
    }
    Ok(Some(DumpLine { offset, data }))
}

#[cfg(test)]
mod tests {
    use super::super::ext_csd::ExtCsd;
    use super::*;
    use std::fmt::Write;

    /// 512 bytes that differ from their neighbours, with 64 equal bytes in the middle.
    fn sample() -> [u8; 512] {
        std::array::from_fn(|i| if (256..320).contains(&i) { 0 } else { (i * 7 + i / 256) as u8 })
    }

    fn dump(line: impl Fn(usize, &[u8]) -> String) -> String {
        sample().chunks(16).enumerate().map(|(n, c)| line(n * 16, c) + "\n").collect()
    }

    fn spaced(chunk: &[u8], size: usize) -> String {
        chunk.chunks(size).map(super::super::hex).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn every_form_gives_the_same_bytes() {
        let want = ExtCsdBytes::from(&sample());
        let ascii = |c: &[u8]| c.iter().map(|&b| if (0x20..0x7f).contains(&b) { b as char } else { '.' }).collect::<String>();
        let words = |c: &[u8]| c.chunks(2).map(|w| format!("{:02x}{:02x}", w[1], w[0])).collect::<Vec<_>>().join(" ");
        for (form, text) in [
            ("one line", super::super::hex(&sample())),
            ("one line with 0x", format!("0x{}\n", super::super::hex(&sample()).to_uppercase())),
            ("lines without offsets", dump(|_, c| spaced(c, 1))),
            ("0x bytes", dump(|_, c| c.iter().map(|b| format!("0x{b:x}, ")).collect())),
            ("xxd", dump(|o, c| format!("{o:08x}: {}  {}", spaced(c, 2), ascii(c)))),
            ("hexdump -C", dump(|o, c| format!("{o:08x}  {}  {}  |{}|", spaced(&c[..8], 1), spaced(&c[8..], 1), ascii(c))) + "00000200\n"),
            ("hexdump", dump(|o, c| format!("{o:07x} {}", words(c))) + "0000200\n"),
            ("od -x", dump(|o, c| format!("{o:07o} {}", words(c))) + "0001000\n"),
            ("od -A x -t x1", dump(|o, c| format!("{o:06x} {}", spaced(c, 1))) + "000200\n"),
        ] {
            assert_eq!(parse(text.as_bytes()).as_ref(), Ok(&want), "{form}");
        }
        assert_eq!(parse(&sample()).unwrap(), want, "binary");
    }

    #[test]
    fn repeated_lines() {
        let mut text = String::new();
        for (n, c) in sample().chunks(16).enumerate() {
            match n {
                17 => text.push_str("*\n"),
                18 | 19 => {}
                _ => writeln!(text, "{:08x}  {}", n * 16, spaced(c, 1)).unwrap(),
            }
        }
        assert_eq!(parse(text.as_bytes()).unwrap(), ExtCsdBytes::from(&sample()));
    }

    #[test]
    fn damaged_forms_are_refused() {
        let full = dump(|o, c| format!("{o:08x}: {}", spaced(c, 2)));
        let say = |t: &str| parse(t.as_bytes()).unwrap_err().to_string();
        assert_eq!(say(""), "EXT_CSD: expected 512 bytes (1024 hex digits), found nothing");
        assert!(say(&full.lines().filter(|l| !l.starts_with("00000040")).collect::<Vec<_>>().join("\n")).contains("a line is missing"));
        assert_eq!(say(full.split_once("000001f0").unwrap().0), "EXT_CSD: expected 512 bytes (1024 hex digits), found 496 bytes");
        assert!(say(&full.replace("0007", "00z7")).contains("'z', which is not a hex digit"));
        assert!(say("hello").contains("not a hex digit"));
        assert!(parse(&[0, 255, 3]).unwrap_err().to_string().contains("found 3 bytes"));
    }

    #[test]
    fn mmc_utils_text() {
        let text = "  Extended CSD rev 1.8 (MMC 5.1)\nCache Size [CACHE_SIZE] is 512 KiB\n i.e. 512 KiB\n\
            Sector Count [SEC_COUNT: 0x00e90000]\nNative sector size [NATIVE_SECTOR_SIZE]: 0x01\n\
            eMMC Firmware Version: ABCD12\neMMC Life Time Estimation A [EXT_CSD_DEVICE_LIFE_TIME_EST_TYP_A]: 0x02\n\
            Command Queue Support [CMDQ_SUPPORT]: 0x01\nCommand Queue Depth [CMDQ_DEPTH]: 16\n [MIN_PERF_W_8_52: 0x00]\n";
        let e = ExtCsd::decode(&parse(text.as_bytes()).unwrap());
        assert_eq!((e.rev, e.cache, e.user_area), (Some(8), Some(512 << 10), Some(0x00e9_0000 * 512)));
        assert_eq!((e.native_sector, e.queue_depth, e.firmware.as_deref()), (Some(4096), Some(16), Some("ABCD12")));
        assert_eq!(e.life_a.map(|l| l.to_string()).as_deref(), Some("10 to 20 % of life used"));
        let binary = ExtCsd::decode(&parse(b"eMMC Firmware Version: \x07\xff\n [HC_ERASE_GRP_SIZE: 0x01]\n").unwrap());
        assert_eq!((binary.firmware, binary.erase_group), (None, Some(512 << 10)), "a version that is no text stays unknown");
        let say = |t: &str| parse(t.as_bytes()).unwrap_err().to_string();
        assert_eq!(say("[HC_ERASE_GRP_SIZE: 0x100]"), "EXT_CSD: HC_ERASE_GRP_SIZE: 0x100 does not fit its 1 byte(s)");
        assert_eq!(say("[HC_ERASE_GRP_SIZE: 0xzz]"), "EXT_CSD: HC_ERASE_GRP_SIZE: expected a number, found \"0xzz]\"");
        assert!(say("[CMDQ_DEPTH]: 33").contains("not 1 to 32"));
        assert!(say("[CACHE_SIZE] is many").contains("is N KiB"));
        assert!(say("[CACHE_SIZE] is 4000000000 KiB").contains("does not fit"));
    }
}

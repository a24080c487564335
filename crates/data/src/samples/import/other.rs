//! Lines that stand alone: rates, intervals, scatter points, device sizes, register dumps.

use super::{IntervalRow, RatesRow};
use crate::flashbench::format::{parse_rate, parse_size, parse_time};

/// "256KiB  912K/s" or "2MiB  2.584G/  906M/s  2.77G/s": a size and its rates. What follows the last rate is a remark.
pub fn rates(line: usize, text: &str) -> Option<RatesRow> {
    let (size, rates, _) = columns(text)?;
    let sound = !rates.is_empty() && rates.iter().all(|&r| r > 0.0) && size.fract() == 0.0;
    sound.then_some(RatesRow { line, size: size as u64, rates })
}

/// The same where nothing follows the last rate.
pub fn only_rates(line: usize, text: &str) -> Option<RatesRow> {
    rates(line, text).filter(|_| columns(text).is_some_and(|c| c.2.is_empty()))
}

/// A size, the rates behind it, and what follows them.
fn columns(text: &str) -> Option<(f64, Vec<f64>, &str)> {
    let size = parse_size(text)?;
    // "4MiB: 9.5M/s", "4MiB,9.5M/s".
    let mut rest = text[size.len..].trim_start();
    rest = rest.strip_prefix([':', '=', ',', ';']).map_or(rest, str::trim_start);
    let mut rates = vec![];
    while let Some(r) = parse_rate(rest) {
        rates.push(r.value);
        rest = rest[r.len..].trim_start();
        let more = rest.strip_prefix([',', ';']).map(str::trim_start).filter(|m| parse_rate(m).is_some());
        rest = more.unwrap_or(rest);
    }
    Some((size.value, rates, rest))
}

/// A row that ends within a number: "4MiB 865K/s 3.5", "16384 bytes: min 32µs avg 3".
pub fn is_broken(text: &str) -> bool {
    if let Some((_, _, rest)) = columns(text) {
        let of_a_rate = |c: char| c.is_ascii_digit() || matches!(c, '.' | ',' | 'e' | '+' | 'B' | 'K' | 'M' | 'G' | '/');
        return rest.starts_with(|c: char| c.is_ascii_digit()) && rest.chars().all(of_a_rate);
    }
    let size = text.split_once(" bytes: m").map(|x| x.0);
    size.is_some_and(|s| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit())) && interval(0, text).is_none()
}

/// "16384 bytes: min 32µs avg 38µs max 47.1µs: 512.176 MB/s".
pub fn interval(line: usize, text: &str) -> Option<IntervalRow> {
    let (size, rest) = text.split_once("bytes")?;
    let size = size.trim().parse().ok().filter(|s| (512..=1 << 40).contains(s))?;
    let after = |name: &str| parse_time(rest.split_once(name)?.1.trim_start_matches([' ', '\t', ':', '=']));
    let (min, avg, max) = (after("min")?, after("avg")?, after("max")?);
    // A read that failed at once takes no time.
    if min.value <= 0.0 {
        return None;
    }
    Some(IntervalRow { line, size, min: min.value / 1e3, avg: avg.value / 1e3, max: max.value / 1e3 })
}

/// "0.015625 0.019408": MiB and ms, six decimals each.
pub fn scatter(text: &str) -> Option<(f64, f64)> {
    let six = |w: &str| {
        w.split_once(['.', ',']).filter(|(a, b)| b.len() == 6 && !a.is_empty()).and_then(|_| w.replace(',', ".").parse::<f64>().ok())
    };
    let mut words = text.split_whitespace();
    let point = (six(words.next()?)?, six(words.next()?)?);
    words.next().is_none().then_some(point)
}

/// "Disk /dev/mmcblk0: 3965 MB, 3965190144 bytes", in any language: the size of a whole device.
pub fn device_size(text: &str) -> Option<u64> {
    let rest = &text[text.find("/dev/")?..];
    let rest = &rest[rest.find(": ")? + 2..];
    let words: Vec<&str> = rest.split([' ', ',']).filter(|w| !w.is_empty()).collect();
    let sizes = words.windows(2).filter(|w| w[1].starts_with(char::is_alphabetic)).filter_map(|w| w[0].parse::<u64>().ok());
    sizes.filter(|&s| (1 << 20..1 << 50).contains(&s) && s % 512 == 0).max()
}

/// Names of registers and attributes that say what a card declares.
const KEYS: [&str; 22] = [
    "cid",
    "csd",
    "scr",
    "ssr",
    "ext_csd",
    "extcsd",
    "name",
    "manfid",
    "oemid",
    "hwrev",
    "fwrev",
    "date",
    "serial",
    "type",
    "preferred_erase_size",
    "erase_size",
    "enhanced_area_size",
    "ocr",
    "dsr",
    "rca",
    "life_time",
    "pre_eol_info",
];

/// "ssr: 80000000:0800...", "preferred_erase_size: 4194304", "cid:0353..", or the line under "==> .../csd <==".
pub fn declared(text: &str, above: Option<&str>) -> Option<(String, String)> {
    if let Some(path) = above.and_then(|a| a.strip_prefix("==> ")?.strip_suffix(" <==")) {
        let key = path.rsplit('/').next()?;
        return (KEYS.contains(&key) && !text.is_empty() && !text.starts_with("==>")).then(|| (key.to_string(), text.to_string()));
    }
    let (key, value) = text.split_once(':')?;
    let key = key.rsplit('/').next()?.split('(').next()?.trim().to_ascii_lowercase();
    let hexish = |v: &str| v.len() >= 7 && v.chars().all(|c| c.is_ascii_hexdigit() || matches!(c, ':' | ' ' | 'x'));
    let value = value.trim();
    let register = matches!(key.as_str(), "cid" | "csd" | "scr" | "ssr" | "ext_csd" | "extcsd") && hexish(value);
    let attribute = key.ends_with("erase_size") && value.parse::<u64>().is_ok();
    (register || attribute).then(|| (key, value.to_string()))
}

/// "High-capacity erase unit size [HC_ERASE_GRP_SIZE: 0x10]": a field of a decoded EXT_CSD.
pub fn ext_csd_field(text: &str) -> Option<(String, String)> {
    let inside = &text[text.rfind('[')? + 1..];
    let (inside, after) = inside.split_once(']')?;
    let (key, value) = inside.split_once(':').unwrap_or((inside, after.trim_start_matches([':', ' '])));
    let (key, value) = (key.trim(), value.trim());
    let name = key.len() >= 4 && key.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_') && key.contains('_');
    (name && value.starts_with("0x")).then(|| (key.to_ascii_lowercase(), value.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_and_remarks() {
        let r = rates(1, "2MiB    2.584G/  906M/s   2.77G/s  ").unwrap();
        assert_eq!((r.size, r.rates), (2 << 20, vec![2.584e9, 906e6, 2.77e9]));
        assert_eq!(rates(1, "4MiB 14M/s").unwrap().rates, [14e6]);
        assert_eq!(rates(1, "256KiB  912K/s   <- slow").unwrap().rates, [912e3]);
        for text in ["4MiB: 9.5MB/s", "4MiB = 9.5 MBps", "4 MiB,9.5 MB/sec", "4MiB ; 9.5M/s"] {
            assert_eq!(rates(1, text).unwrap().rates, [9.5e6], "{text}");
        }
        assert_eq!(rates(1, "4MiB: 9.5 MiB/s, 8 MiBps").unwrap().rates, [9.5, 8.0].map(|r| r * 1_048_576.0));
        for bad in [
            "256KiB  91",
            "10+0 records in",
            "41943040 bytes (42 MB) copied, 3.7 s, 11.2 MB/s",
            "4MiB",
            "4MiB 0B/s",
            "M/s 4MiB",
            "4MiB: 9.5Mb/s",
            "4MiB 9.5Mbps",
        ] {
            assert!(rates(1, bad).is_none(), "{bad}");
        }
        for (text, broken) in [
            ("256KiB  91", true),
            ("4MiB 865K/s 3.5", true),
            ("4MiB 865K/s 3.56M", true),
            ("16384 bytes: min 32µs avg 3", true),
            ("4MiB 865K/s 3.56M/s", false),
            ("256KiB  912K/s   <- slow", false),
            ("4MiB", false),
            ("10485760 bytes (10 MB) copied", false),
        ] {
            assert_eq!(is_broken(text), broken, "{text}");
        }
    }

    #[test]
    fn other_lines() {
        let i = interval(1, "16384 bytes: min 32µs avg 38µs max 47.1µs: 512.176 MB/s").unwrap();
        assert_eq!((i.size, i.min, i.avg, i.max), (16384, 32.0, 38.0, 47.1));
        assert_eq!(scatter("0.015625\t0.019408"), Some((0.015625, 0.019408)));
        assert_eq!(scatter("0.015625 0.019408 1"), None);
        for t in [
            "Disk /dev/mmcblk0: 3965 MB, 3965190144 bytes",
            "Диск /dev/mmcblk0: 3965 МБ, 3965190144 байт",
            "Disk /dev/mmcblk0: 3.7 GiB, 3965190144 bytes, 7744512 sectors",
        ] {
            assert_eq!(device_size(t), Some(3_965_190_144), "{t}");
        }
        assert_eq!(device_size("/dev/mmcblk0p1            8192    15122431     7557120    b  W95 FAT32"), None);
    }

    #[test]
    fn dumps_are_handed_on() {
        let d = declared("ssr: 80000000:08000000:0400a001", None).unwrap();
        assert_eq!(d, ("ssr".into(), "80000000:08000000:0400a001".into()));
        assert_eq!(declared("preferred_erase_size: 4194304", None).unwrap().1, "4194304");
        assert_eq!(declared("4194304", Some("==> /sys/block/mmcblk1/device/preferred_erase_size <==")).unwrap().0, "preferred_erase_size");
        assert_eq!(declared("CID (raw)     : 02544d534530384702cdcf05a100f300", None).unwrap().0, "cid");
        assert!(declared("note: see below", None).is_none());
        assert_eq!(ext_csd_field("High-capacity erase unit size [HC_ERASE_GRP_SIZE: 0x10]").unwrap().0, "hc_erase_grp_size");
    }
}

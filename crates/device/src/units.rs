//! Units as people write them: sizes in KiB/MiB (1024), rates in kB/s, MB/s (1000), times in ns to s.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A number of bytes. Prints as KiB to TiB when exact ("512 MiB + 512 B" where one number would be long), parses "4MiB", "4M", "512", "1.5GiB".
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Default)]
#[serde(transparent)]
pub struct Bytes(pub u64);

/// Nanoseconds: a point on a device's own clock, or a duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Default)]
#[serde(transparent)]
pub struct Nanos(pub u64);

pub const KIB: u64 = 1 << 10;
pub const MIB: u64 = 1 << 20;
pub const GIB: u64 = 1 << 30;
pub const TIB: u64 = 1 << 40;
/// The sector of the SD and MMC world, in bytes.
pub const SECTOR: u64 = 512;

/// The greatest common divisor; the other number where one is 0.
pub fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let b = self.0;
        let text = match b {
            0 => "0 B".to_string(),
            _ if b >= TIB && b.is_multiple_of(TIB / 16) => scaled(b, TIB, "TiB"),
            _ if b >= TIB => format!("{:.2} TiB", b as f64 / TIB as f64),
            _ if b >= GIB && b.is_multiple_of(GIB / 16) => scaled(b, GIB, "GiB"),
            _ if b >= MIB && b.is_multiple_of(MIB / 16) => scaled(b, MIB, "MiB"),
            // A place: 524288.5 KiB are hard to read, and so are 524289 KiB.
            _ if b >= 64 * MIB && b.is_multiple_of(KIB / 2) => format!("{} + {}", Bytes(b / MIB * MIB), Bytes(b % MIB)),
            _ if b >= KIB && b.is_multiple_of(KIB / 2) => scaled(b, KIB, "KiB"),
            _ if b >= GIB => format!("{:.2} GiB", b as f64 / GIB as f64),
            _ if b >= MIB => format!("{:.2} MiB", b as f64 / MIB as f64),
            _ => format!("{b} B"),
        };
        f.pad(&text)
    }
}

fn scaled(b: u64, unit: u64, name: &str) -> String {
    if b.is_multiple_of(unit) { format!("{} {name}", b / unit) } else { format!("{} {name}", b as f64 / unit as f64) }
}

impl FromStr for Bytes {
    type Err = String;

    /// "4MiB", "4M", "4m", "512", "512 B", "1.5GiB"; "4MB" is 4 000 000.
    fn from_str(s: &str) -> Result<Self, String> {
        let t = s.trim();
        let split = t.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(t.len());
        let (digits, unit) = t.split_at(split);
        let number: f64 = digits.parse().map_err(|_| format!("'{s}' is not a size; write for example 4MiB or 4194304"))?;
        // Bits, as rates of a bus are told in them.
        if let "Kb" | "Mb" | "Gb" | "Tb" = unit.trim() {
            let (k, prefix) = (&unit.trim()[..1].replace('K', "k"), &unit.trim()[..1]);
            return Err(format!("'{s}' is a number of bits; for bytes write {digits}{k}B (1000) or {digits}{prefix}iB (1024)"));
        }
        let factor = match unit.trim().to_ascii_lowercase().as_str() {
            "" | "b" => 1,
            "s" => SECTOR,
            "k" | "kib" => KIB,
            "m" | "mib" => MIB,
            "g" | "gib" => GIB,
            "t" | "tib" => TIB,
            "kb" => 1_000,
            "mb" => 1_000_000,
            "gb" => 1_000_000_000,
            "tb" => 1_000_000_000_000,
            _ => {
                return Err(format!("'{s}' has the unknown unit '{}'; use KiB, MiB, GiB (1024) or kB, MB, GB (1000)", unit.trim()));
            }
        };
        let bytes = number * factor as f64;
        if !(0.0..=1e18).contains(&bytes) || bytes.fract() != 0.0 {
            return Err(format!("'{s}' is not a whole number of bytes below 10^18"));
        }
        Ok(Bytes(bytes as u64))
    }
}

impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = self.0 as f64;
        let text = match self.0 {
            0..1_000 => format!("{} ns", self.0),
            1_000..1_000_000 => format!("{} µs", three(ns / 1e3)),
            1_000_000..1_000_000_000 => format!("{} ms", three(ns / 1e6)),
            _ => format!("{} s", three(ns / 1e9)),
        };
        f.pad(&text)
    }
}

/// A size as on the box and as computers count: `32.0 GB (29.8 GiB)`.
pub fn as_sold(bytes: u64) -> String {
    let (gb, gib) = (bytes as f64 / 1e9, bytes as f64 / GIB as f64);
    if bytes >= TIB {
        format!("{:.2} TB ({:.2} TiB)", gb / 1e3, bytes as f64 / TIB as f64)
    } else if gb >= 1.0 {
        format!("{gb:.1} GB ({gib:.1} GiB)")
    } else if bytes < MIB {
        format!("{:.1} MB ({:.0} KiB)", bytes as f64 / 1e6, bytes as f64 / KIB as f64)
    } else {
        format!("{:.0} MB ({:.0} MiB)", bytes as f64 / 1e6, bytes as f64 / MIB as f64)
    }
}

/// Three significant digits, no exponent.
pub fn three(x: f64) -> String {
    match x.abs() {
        a if a >= 100.0 => format!("{x:.0}"),
        a if a >= 10.0 => format!("{x:.1}"),
        _ => format!("{x:.2}"),
    }
}

/// A ratio of times in words, in percent of the first time: 1.686 is "68.6 % slower", 0.867 "13.3 % faster". Of rates the inverse.
pub fn slower(ratio: f64) -> String {
    let word = if ratio < 1.0 { "faster" } else { "slower" };
    format!("{:.1} % {word}", 100.0 * (ratio - 1.0).abs())
}

/// A size as an option takes it: `4MiB`, or in bytes where that would not be exact.
pub fn option(b: u64) -> String {
    let short = Bytes(b).to_string().replace(' ', "");
    if short.parse() == Ok(Bytes(b)) { short } else { b.to_string() }
}

/// A size for people, to three digits.
pub fn about(b: u64) -> String {
    match b {
        b if b >= TIB => format!("{} TiB", three(b as f64 / TIB as f64)),
        b if b >= GIB => format!("{} GiB", three(b as f64 / GIB as f64)),
        b if b >= MIB => format!("{} MiB", three(b as f64 / MIB as f64)),
        b => Bytes(b).to_string(),
    }
}

/// Both ends of an interval, to as many digits as tell them apart, three at most behind the point.
pub fn ends(lo: f64, hi: f64) -> [String; 2] {
    let short = [three(lo), three(hi)];
    if short[0] != short[1] || lo == hi {
        return short;
    }
    (1..=3).map(|d| [format!("{lo:.d$}"), format!("{hi:.d$}")]).find(|e| e[0] != e[1]).unwrap_or(short)
}

/// From one end of a range to the other; one figure where both read alike.
pub fn between(low: &str, high: &str) -> String {
    if low == high { low.into() } else { format!("{low} to {high}") }
}

/// Bytes a second as kB/s or MB/s (1000), three significant digits.
pub fn rate(bytes_per_second: f64) -> String {
    match bytes_per_second {
        r if r >= 1e6 => format!("{} MB/s", three(r / 1e6)),
        r => format!("{} kB/s", three(r / 1e3)),
    }
}

/// Whole polls with a blank between thousands.
pub fn polls(n: f64) -> String {
    let digits = format!("{n:.0}");
    let mut out = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) && c.is_ascii_digit() && !out.ends_with('-') {
            out.push(' ');
        }
        out.push(c);
    }
    out + if digits == "1" { " poll" } else { " polls" }
}

impl Nanos {
    pub fn from_secs_f64(s: f64) -> Nanos {
        Nanos((s.max(0.0) * 1e9) as u64)
    }
    pub fn secs(self) -> f64 {
        self.0 as f64 / 1e9
    }
    pub fn micros(self) -> f64 {
        self.0 as f64 / 1e3
    }
    pub fn millis(self) -> f64 {
        self.0 as f64 / 1e6
    }
}

impl std::ops::Add for Nanos {
    type Output = Nanos;
    fn add(self, o: Nanos) -> Nanos {
        Nanos(self.0 + o.0)
    }
}

impl std::ops::Sub for Nanos {
    type Output = Nanos;
    /// Saturates at zero.
    fn sub(self, o: Nanos) -> Nanos {
        Nanos(self.0.saturating_sub(o.0))
    }
}

/// "60s", "2m", "1.5h", "1h30m", "90" (seconds).
///
/// # Errors
/// What is wrong with it, and how it is written.
pub fn parse_duration(s: &str) -> Result<Nanos, String> {
    let wrong = || format!("'{s}' is not a time; write for example 60s, 5m or 1h30m");
    let mut rest = s.trim();
    let mut secs = 0.0;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (digits, others) = rest.split_at(end);
        let end = others.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(others.len());
        let (unit, next) = others.split_at(end);
        let number: f64 = digits.parse().map_err(|_| wrong())?;
        secs += number
            * match unit.trim() {
                // A number alone is the whole time.
                "" if rest.len() == s.trim().len() => 1.0,
                "" => return Err(wrong()),
                "s" => 1.0,
                "ms" => 1e-3,
                "m" | "min" => 60.0,
                "h" => 3600.0,
                u => return Err(format!("'{s}' has the unknown unit '{u}'; use ms, s, m or h")),
            };
        rest = next;
    }
    if !(secs > 0.0 && secs < 1e8) {
        return Err(format!("'{s}' is not a time between 1 ms and three years"));
    }
    Ok(Nanos::from_secs_f64(secs))
}

/// Bytes a second, with their unit: "20kB", "20kB/s". A bare number is no rate anybody means.
///
/// # Errors
/// What is wrong with it, and how it is written.
pub fn parse_rate(s: &str) -> Result<Bytes, String> {
    let size = s.trim().strip_suffix("/s").unwrap_or(s.trim()).trim();
    let rate: Bytes = size.parse()?;
    match rate.0 {
        0 => Err("a rate above 0 is needed".into()),
        _ if size.ends_with(|c: char| c.is_ascii_digit()) => {
            Err(format!("'{s}' has no unit; write for example {size}kB for {size} kB a second, or {size}B"))
        }
        _ => Ok(rate),
    }
}

/// Seconds since 1970 as a day, UTC: "2011-02-23".
pub fn date_text(seconds: u64) -> String {
    // Days to civil, counted in eras of 400 years that begin in March (Hinnant).
    let z = (seconds / 86_400) as i64 + 719_468;
    let (era, day) = (z / 146_097, z % 146_097);
    let of_era = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let of_year = day - (365 * of_era + of_era / 4 - of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = era * 400 + of_era + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{:02}", of_year - (153 * shifted + 2) / 5 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_read_and_print() {
        for (text, bytes) in [("4MiB", 4 << 20), ("4m", 4 << 20), ("512", 512), ("1.5GiB", 3 << 29), ("4MB", 4_000_000), ("8s", 4096)] {
            assert_eq!(text.parse::<Bytes>().unwrap().0, bytes, "{text}");
        }
        for bad in ["", "x", "-1", "4 parsecs", "1.0001", "1e30", "..", "99999999999999999999", "4Kb", "1Gb"] {
            assert!(bad.parse::<Bytes>().is_err(), "{bad}");
        }
        assert!("2Gb".parse::<Bytes>().unwrap_err().ends_with("write 2GB (1000) or 2GiB (1024)"));
        assert!("2Kb".parse::<Bytes>().unwrap_err().ends_with("write 2kB (1000) or 2KiB (1024)"));
        assert_eq!("2gb".parse::<Bytes>().unwrap().0, 2_000_000_000);
        assert_eq!(Bytes(4128 * 1024).to_string(), "4128 KiB");
        assert_eq!(Bytes(12 << 20).to_string(), "12 MiB");
        assert_eq!(Bytes(3 << 19).to_string(), "1.5 MiB");
        assert_eq!(Bytes(513).to_string(), "513 B");
        assert_eq!(
            [(512 << 20) + 512, (7580 << 20) + 1536, (512 << 20) + (64 << 10), 15_641_088].map(|b| Bytes(b).to_string()),
            ["512 MiB + 512 B", "7580 MiB + 1.5 KiB", "512.0625 MiB", "15274.5 KiB"]
        );
        assert_eq!(option((512 << 20) + 512), "536871424");
        assert_eq!([between("141", "141"), between("140", "141")], ["141", "140 to 141"]);
        assert_eq!(
            [Bytes(101_376 << 30), Bytes(1536 << 30), Bytes((1 << 40) - (1 << 30))].map(|b| b.to_string()),
            ["99 TiB", "1.5 TiB", "1023 GiB"]
        );
        assert_eq!((as_sold(101_376 << 30), about(1536 << 30)), ("108.85 TB (99.00 TiB)".into(), "1.50 TiB".into()));
        assert_eq!([4 << 20, 513, (1 << 30) + 1].map(option), ["4MiB", "513B", "1073741825"]);
    }

    /// Percent of one time both ways: what is slower by a ratio and what is faster by it add up to the same times.
    #[test]
    fn slower_and_faster_count_in_the_same_time() {
        for (ratio, text) in [(1.686, "68.6 % slower"), (0.867, "13.3 % faster"), (2.0, "100.0 % slower"), (0.5, "50.0 % faster")] {
            assert_eq!(slower(ratio), text);
        }
    }

    #[test]
    fn days() {
        for (seconds, text) in
            [(0, "1970-01-01"), (951_782_400, "2000-02-29"), (1_298_419_200, "2011-02-23"), (1_767_225_599, "2025-12-31")]
        {
            assert_eq!(date_text(seconds), text);
        }
    }

    #[test]
    fn times_read_and_print() {
        assert_eq!(parse_duration("2m").unwrap(), Nanos(120_000_000_000));
        assert_eq!(parse_duration("1h30m").unwrap(), Nanos::from_secs_f64(5400.0));
        assert_eq!(parse_duration("1m 2.5s").unwrap(), Nanos::from_secs_f64(62.5));
        assert!(parse_duration("1h30").is_err() && parse_duration("").is_err() && parse_duration("-5s").is_err());
        assert!(parse_duration("0").is_err() && parse_duration("1 week").is_err() && parse_duration("nan").is_err());
        assert_eq!(Nanos(735_000).to_string(), "735 µs");
        assert_eq!(Nanos(1_080_000).to_string(), "1.08 ms");
    }
}

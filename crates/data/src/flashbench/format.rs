//! flashbench's own numbers: three significant digits and a unit, cut to a field of seven bytes.
//!
//! Times are whole `ns`, then `µs`, `ms` and `s`; sizes `B`, `KiB`, `MiB`, `GiB` (1024); rates `B/s`, `K/s`, `M/s`, `G/s`
//! (1000). Seconds and G/s carry four digits, so "2.584G/s" loses its last letter in the field, and a negative time,
//! always in ns, loses its unit from six digits on ("-412331"). 999.7 µs rounds to "1e+03µ".

/// Bytes of a printed number; what does not fit is cut off.
pub const FIELD: usize = 7;

const TIMES: [(&str, f64); 4] = [("ns", 1.0), ("µs", 1e3), ("ms", 1e6), ("s", 1e9)];
const SIZES: [(&str, f64); 4] = [("B", 1.0), ("KiB", 1024.0), ("MiB", 1_048_576.0), ("GiB", 1_073_741_824.0)];
const RATES: [(&str, f64); 4] = [("B/s", 1.0), ("K/s", 1e3), ("M/s", 1e6), ("G/s", 1e9)];

/// A duration in nanoseconds, as flashbench prints it.
pub fn time(ns: i64) -> String {
    let (unit, factor) = *TIMES.iter().rev().find(|t| ns as f64 >= t.1).unwrap_or(&TIMES[0]);
    if factor == 1.0 { cut(format!("{ns}ns")) } else { cut(format!("{}{unit}", significant(ns as f64 / factor, digits(unit)))) }
}

/// A size in bytes.
pub fn size(bytes: u64) -> String {
    unit_of(bytes as f64, &SIZES)
}

/// A rate in bytes a second.
pub fn rate(bytes_per_second: f64) -> String {
    unit_of(bytes_per_second, &RATES)
}

/// As `time`, but never cut: "-412µs" instead of "-412331", "1ms" instead of "1e+03µ".
pub fn neat_time(ns: i64) -> String {
    let x = ns.unsigned_abs() as f64;
    format!("{}{}", if ns < 0 { "-" } else { "" }, neat(x, &TIMES))
}

/// As `rate`, but never cut: "2.58G/s" instead of "2.584G/".
pub fn neat_rate(bytes_per_second: f64) -> String {
    neat(bytes_per_second, &RATES)
}

/// As `size`, but in a smaller unit where three digits would not be exact: "4128KiB" instead of "4.03MiB".
pub fn neat_size(bytes: u64) -> String {
    let exact = |s: &String| parse_size(s).is_some_and(|p| p.value == bytes as f64);
    let smaller = |unit: u64, name: &str| bytes.is_multiple_of(unit).then(|| format!("{}{name}", bytes / unit));
    let short = size(bytes);
    if exact(&short) { short } else { smaller(1 << 20, "MiB").or(smaller(1 << 10, "KiB")).unwrap_or_else(|| format!("{bytes}B")) }
}

/// Three digits and the unit in which they stay below 1000 after rounding. Nanoseconds and bytes are whole.
fn neat(x: f64, units: &[(&str, f64)]) -> String {
    let fits = |factor: f64| (x / factor) < 999.5;
    let (unit, factor) = *units.iter().find(|u| fits(u.1)).unwrap_or(&units[units.len() - 1]);
    let y = if factor == 1.0 { x.round() } else { x / factor };
    // Beyond the last unit the digits before the point are all there are.
    if y >= 999.5 { format!("{y:.0}{unit}") } else { format!("{}{unit}", significant(y, 3)) }
}

fn unit_of(x: f64, units: &[(&str, f64)]) -> String {
    let (unit, factor) = *units.iter().rev().find(|u| x >= u.1).unwrap_or(&units[0]);
    cut(format!("{}{unit}", significant(x / factor, digits(unit))))
}

fn digits(unit: &str) -> usize {
    if unit == "s" || unit.starts_with('G') { 4 } else { 3 }
}

fn cut(mut s: String) -> String {
    while s.len() > FIELD {
        s.pop();
    }
    s
}

/// A number as C's `%g` prints it: six significant digits.
pub fn general(x: f64) -> String {
    significant(x, 6)
}

/// C's `%.{n}g`: n significant digits, no trailing zeros, an exponent from 10^n on.
fn significant(x: f64, n: usize) -> String {
    if x == 0.0 || !x.is_finite() {
        return format!("{x}").to_lowercase();
    }
    let e = format!("{x:.*e}", n - 1);
    let (mantissa, exponent) = e.split_once('e').unwrap_or((&e, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let trim = |s: &str| if s.contains('.') { s.trim_end_matches('0').trim_end_matches('.').to_string() } else { s.to_string() };
    if (-4..n as i32).contains(&exponent) {
        trim(&format!("{x:.*}", (n as i32 - 1 - exponent).max(0) as usize))
    } else {
        format!("{}e{}{:02}", trim(mantissa), if exponent < 0 { '-' } else { '+' }, exponent.abs())
    }
}

/// A printed number: what the digits say, the unit's factor, and how much of it was printed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Printed {
    /// In ns, bytes or bytes a second.
    pub value: f64,
    /// Half a step of the last digit, in the same unit.
    pub half_step: f64,
    /// The unit, or a digit before it, fell off the end of the field.
    pub cut: bool,
    /// Bytes of text read.
    pub len: usize,
}

/// A time at the start of `s`, in ns. Reads what `time` writes and what mails and terminals make of it: a decimal comma,
/// "us", "μs" (Greek), a µ in the wrong character set, a blank before the unit.
pub fn parse_time(s: &str) -> Option<Printed> {
    let n = number(s)?;
    let rest = &s[n.len..];
    let gap = rest.len() - rest.trim_start_matches(' ').len();
    let gap = if gap <= 1 { gap } else { 0 };
    let unit = &rest[gap..];
    let done = |factor: f64, len: usize, cut: bool| Some(n.times(factor, gap + len, cut));
    for (name, factor) in [("ns", 1.0), ("ms", 1e6), ("us", 1e3), ("µs", 1e3), ("μs", 1e3)] {
        if unit.starts_with(name) {
            // Nanoseconds are whole.
            return done(factor, name.len(), false).map(|p| Printed { half_step: p.half_step.max(0.5), ..p });
        }
    }
    // One to three characters that are not ASCII (or a question mark), then s: a µ that lost its character set.
    let odd: usize = unit.chars().take_while(|c| !c.is_ascii() || *c == '?').map(char::len_utf8).sum();
    if (1..=9).contains(&odd) {
        let s = unit[odd..].starts_with('s') as usize;
        return done(1e3, odd + s, s == 0);
    }
    if gap == 0 && unit.starts_with('s') && n.value >= 0.0 {
        return done(1e9, 1, false);
    }
    // Only ns are printed below zero, so a negative number without its unit is ns; "1e+03" stands only before µ or m.
    let whole = !s[..n.len].contains(['e', '.', ',']);
    match unit.chars().next() {
        Some('n') if whole => done(1.0, 1, true),
        Some('u') if gap == 0 => done(1e3, 1, true),
        Some('m') if gap == 0 => done(1e6, 1, true),
        _ if n.value < 0.0 && whole => Some(n.times(1.0, 0, true)),
        _ => None,
    }
}

/// A size at the start of `s`, in bytes: "4MiB", "512KiB", "512B".
pub fn parse_size(s: &str) -> Option<Printed> {
    let n = number(s)?;
    let rest = &s[n.len..];
    let gap = rest.starts_with(' ') as usize;
    for (name, factor) in [("KiB", 1024.0), ("MiB", 1_048_576.0), ("GiB", 1_073_741_824.0), ("B", 1.0)] {
        let bounded = |u: &str| !u[name.len()..].starts_with(|c: char| c.is_alphanumeric() || c == '/');
        if n.value > 0.0 && rest[gap..].starts_with(name) && bounded(&rest[gap..]) && (gap == 0 || name != "B") {
            return Some(n.times(factor, gap + name.len(), false));
        }
    }
    None
}

/// A rate at the start of `s`, in bytes a second: "14M/s", "2.584G/", "1e+03K/"; also as other programs write it: "MB/s", "MiB/s",
/// "MBps", "MB/sec". Bits ("Mb/s") are none.
pub fn parse_rate(s: &str) -> Option<Printed> {
    let n = number(s).filter(|n| n.value >= 0.0)?;
    let rest = &s[n.len..];
    let unit = rest.strip_prefix(' ').unwrap_or(rest);
    let gap = rest.len() - unit.len();
    let (word, after) = unit.split_at(unit.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(unit.len()));
    // "Mps" and "Bps" are none.
    let (name, ps) = word.strip_suffix("ps").filter(|name| name.len() > 1).map_or((word, false), |name| (name, true));
    let factor = match name {
        "B" => 1.0,
        "K" | "k" | "KB" | "kB" => 1e3,
        "M" | "m" | "MB" | "mB" => 1e6,
        "G" | "g" | "GB" | "gB" => 1e9,
        "KiB" | "kiB" => 1024.0,
        "MiB" => 1_048_576.0,
        "GiB" => 1_073_741_824.0,
        _ => return None,
    };
    let ends = |after: &str| !after.starts_with(char::is_alphanumeric);
    let (more, cut) = match after {
        _ if ps => ends(after).then_some((0, false))?,
        _ if after.strip_prefix("/sec").is_some_and(ends) => (4, false),
        _ if after.starts_with("/s") => (2, false),
        _ if after.starts_with('/') => (1, true),
        // The field was full before the slash; "4m" is anything.
        _ if gap == 0 && ["B", "K", "k", "M", "G"].contains(&name) && n.len + 1 >= FIELD && ends(after) => (0, true),
        _ => return None,
    };
    Some(n.times(factor, gap + word.len() + more, cut))
}

struct Number {
    value: f64,
    half_step: f64,
    len: usize,
}

impl Number {
    fn times(&self, factor: f64, more: usize, cut: bool) -> Printed {
        Printed { value: self.value * factor, half_step: self.half_step * factor, cut, len: self.len + more }
    }
}

/// Sign, digits, point or comma, exponent. No more digits than any field holds.
fn number(s: &str) -> Option<Number> {
    let b = s.as_bytes();
    let mut i = (b.first() == Some(&b'-')) as usize;
    let start = i;
    while i < b.len() && b[i].is_ascii_digit() {
        i += 1;
    }
    let whole = i - start;
    let mut places = 0;
    if whole > 0 && i + 1 < b.len() && (b[i] == b'.' || b[i] == b',') && b[i + 1].is_ascii_digit() {
        i += 1;
        while i < b.len() && b[i].is_ascii_digit() {
            i += 1;
            places += 1;
        }
    }
    let mut exponent = 0;
    if i + 3 < b.len() + 1 && b.get(i) == Some(&b'e') && matches!(b.get(i + 1), Some(b'+' | b'-')) {
        let digits: usize = b[i + 2..].iter().take_while(|c| c.is_ascii_digit()).count();
        if (1..=3).contains(&digits) {
            exponent = s[i + 1..i + 2 + digits].parse().unwrap_or(0);
            i += 2 + digits;
        }
    }
    if whole == 0 || whole + places > 15 || i32::abs(exponent) > 15 {
        return None;
    }
    let value: f64 = s[..i].replace(',', ".").parse().ok()?;
    // Trailing zeros are not printed: "1.1ms" is 1.10.
    let last = (exponent - places as i32).min(value.abs().max(1e-9).log10().floor() as i32 - 2);
    Some(Number { value, half_step: 0.5 * 10f64.powi(last), len: i })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_what_flashbench_wrote() {
        let times = [(735_000, "735µs"), (1_080_000, "1.08ms"), (5_850, "5.85µs"), (57, "57ns"), (-3602, "-3602ns"), (0, "0ns")];
        for (ns, text) in times.into_iter().chain([(-49_389, "-49389n"), (-412_331, "-412331"), (999_700, "1e+03µ"), (1_000_000, "1ms")]) {
            assert_eq!(time(ns), text);
        }
        for (b, text) in [(4 << 20, "4MiB"), (512 << 10, "512KiB"), (512, "512B"), (3 << 19, "1.5MiB")] {
            assert_eq!(size(b), text);
        }
        for (r, text) in [(10.3e6, "10.3M/s"), (85e3, "85K/s"), (912e3, "912K/s"), (2.584e9, "2.584G/"), (2.77e9, "2.77G/s"), (6e6, "6M/s")]
        {
            assert_eq!(rate(r), text);
        }
    }

    #[test]
    fn neat_numbers_keep_digits_and_unit() {
        for (ns, text) in [(-412_331, "-412µs"), (999_700, "1ms"), (-22_560, "-22.6µs"), (33, "33ns"), (0, "0ns"), (1_234_567_890, "1.23s")]
        {
            assert_eq!(neat_time(ns), text);
        }
        for (r, text) in
            [(2.584e9, "2.58G/s"), (999.7e3, "1M/s"), (10.3e6, "10.3M/s"), (912e3, "912K/s"), (14.0, "14B/s"), (1.25e12, "1250G/s")]
        {
            assert_eq!(neat_rate(r), text);
        }
        for (b, text) in [(4128 << 10, "4128KiB"), (4 << 20, "4MiB"), (66048, "64.5KiB"), (513, "513B"), (3 << 19, "1.5MiB")] {
            assert_eq!(neat_size(b), text);
        }
        assert_eq!(general(1731.9212), "1731.92");
        assert_eq!(general(-1e-9), "-1e-09");
    }

    #[test]
    fn reads_what_it_writes() {
        for ns in [1, 57, 999, 1000, 5850, 12_345, 735_000, 1_080_000, 99_900_000, 1_234_000_000, -1, -3602] {
            let p = parse_time(&time(ns)).unwrap();
            assert!((p.value - ns as f64).abs() <= p.half_step + 1e-6 && p.len == time(ns).len(), "{ns}: {p:?}");
        }
        for r in [1.0, 999.0, 85_400.0, 10.3e6, 999.6e6, 2.584e9] {
            let p = parse_rate(&rate(r)).unwrap();
            assert!((p.value - r).abs() <= p.half_step * 1.001, "{r}: {p:?} {}", rate(r));
        }
        assert_eq!(parse_size("4MiB    8.79M/s").unwrap().value, 4_194_304.0);
        for (text, rate) in [("1.82m/s", 1.82e6), ("912k/s", 912e3), ("2.58g/s", 2.58e9)] {
            assert_eq!(parse_rate(text).map(|p| p.value), Some(rate), "{text}");
        }
        assert!(parse_rate("4m").is_none() && parse_rate("3 minutes").is_none());
    }

    #[test]
    fn reads_damaged_units() {
        for t in ["735us", "735μs", "735Âµs", "735┬╡s", "735\u{fffd}s", "735?s", "735 µs", "735,0µs", "735µ"] {
            assert_eq!(parse_time(t).map(|p| p.value), Some(735_000.0), "{t}");
        }
        let cut = parse_time("-412331").unwrap();
        assert!(cut.cut && cut.value == -412_331.0);
        assert!(parse_time("-49389n").unwrap().cut);
        assert_eq!(parse_time("1e+03Â").unwrap().value, 1e6);
        for bad in ["", "µs", "-", "12", "3.5", "x", "1.2.3q", "99999999999999999999ns"] {
            assert!(parse_time(bad).is_none(), "{bad}");
        }
        for bad in ["", "4", "4 M", "10.3", "M/s", "-3M/s", "7 bytes"] {
            assert!(parse_rate(bad).is_none(), "{bad}");
        }
        assert!(parse_size("41943040 bytes").is_none() && parse_size("4MB").is_none() && parse_size("10B/s").is_none());
    }
}

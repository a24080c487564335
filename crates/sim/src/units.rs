//! Sizes, times and rates as a model file writes them, and whole-number division without a divide instruction.

/// Bytes in a KiB.
pub const KIB: u64 = 1 << 10;
/// Bytes in a MiB.
pub const MIB: u64 = 1 << 20;
/// Bytes in a GiB.
pub const GIB: u64 = 1 << 30;

const SIZES: &[(&str, u64)] = &[("TiB", 1 << 40), ("GiB", GIB), ("MiB", MIB), ("KiB", KIB), ("B", 1)];
const SIZES_1000: &[(&str, u64)] = &[("TB", 1_000_000_000_000), ("GB", 1_000_000_000), ("MB", 1_000_000), ("kB", 1000)];
const TIMES: &[(&str, u64)] = &[("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1000), ("ns", 1)];
const RATES: &[(&str, u64)] = &[("GB/s", 1_000_000_000), ("MB/s", 1_000_000), ("kB/s", 1000), ("B/s", 1)];

fn parse(text: &str, units: &[&[(&str, u64)]]) -> Option<u64> {
    let t = text.trim();
    let split = t.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(t.len());
    let (digits, unit) = t.split_at(split);
    let factor = units.iter().copied().flatten().find(|u| u.0.eq_ignore_ascii_case(unit.trim()))?.1;
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() || fraction.contains('.') || fraction.len() > 9 {
        return None;
    }
    let whole = whole.parse::<u64>().ok()?.checked_mul(factor)?;
    let tens = 10u64.pow(fraction.len() as u32);
    let part = if fraction.is_empty() { 0 } else { fraction.parse::<u64>().ok()?.checked_mul(factor)? };
    if part % tens != 0 { None } else { whole.checked_add(part / tens) }
}

/// "4 MiB", "1.5GiB", "4 MB", "512 B" in bytes.
pub fn parse_size(text: &str) -> Option<u64> {
    parse(text, &[SIZES, SIZES_1000])
}

/// "165 us", "1.2ms", "3 s" in nanoseconds.
pub fn parse_time(text: &str) -> Option<u64> {
    parse(text, &[TIMES])
}

/// "20 MB/s" in bytes a second.
pub fn parse_rate(text: &str) -> Option<u64> {
    parse(text, &[RATES])
}

fn show(x: u64, units: &[(&str, u64)]) -> String {
    for &(name, factor) in units {
        if x >= factor
            && (x.is_multiple_of(factor) || (factor >= 1000 && x.is_multiple_of(factor / 1000 * if factor % 1024 == 0 { 128 } else { 1 })))
        {
            let thousandths = (u128::from(x) * 1000 / u128::from(factor)) as u64;
            if u128::from(thousandths) * u128::from(factor) == u128::from(x) * 1000 {
                let (whole, part) = (thousandths / 1000, thousandths % 1000);
                let text = if part == 0 { format!("{whole}") } else { format!("{whole}.{part:03}").trim_end_matches('0').to_string() };
                return format!("{text} {name}");
            }
        }
    }
    let (name, _) = units[units.len() - 1];
    format!("{x} {name}")
}

/// Prints a size so that [`parse_size`] gives it back.
pub fn show_size(bytes: u64) -> String {
    show(bytes, SIZES)
}

/// Prints a time so that [`parse_time`] gives it back.
pub fn show_time(ns: u64) -> String {
    show(ns, TIMES)
}

/// Prints a rate so that [`parse_rate`] gives it back.
pub fn show_rate(bytes_a_second: u64) -> String {
    show(bytes_a_second, RATES)
}

/// Picoseconds a byte at a rate; 0 for the rate 0, which stands for "no limit".
pub fn ps_per_byte(rate: u64) -> u64 {
    1_000_000_000_000u64.checked_div(rate).unwrap_or(0)
}

/// Division by a number known beforehand: a multiplication. Exact while dividend x divisor < 2^64, which sectors keep.
#[derive(Clone, Copy, Debug)]
pub struct Divider {
    magic: u64,
    by: u64,
}

impl Divider {
    /// Divides by `by`, which must not be 0.
    pub fn new(by: u64) -> Divider {
        assert!(by > 0, "divider of zero");
        Divider { magic: u64::MAX / by, by }
    }

    /// `n / by`, rounded down.
    #[inline]
    pub fn of(self, n: u64) -> u64 {
        ((u128::from(n + 1) * u128::from(self.magic)) >> 64) as u64
    }

    /// The divisor.
    #[inline]
    pub fn by(self) -> u64 {
        self.by
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_round_trip() {
        for x in [0, 1, 512, 1024, 4128 * KIB, 12 * MIB, 3 << 29, 7_948_206_080, 63_864_569_856, 1 << 40] {
            assert_eq!(parse_size(&show_size(x)), Some(x), "{}", show_size(x));
        }
        for x in [0, 1, 999, 1500, 165_000, 53_300, 1_234_567, 4_450_000, 2_000_000_000] {
            assert_eq!(parse_time(&show_time(x)), Some(x), "{}", show_time(x));
        }
        assert_eq!(show_size(4128 * KIB), "4128 KiB");
        assert_eq!(show_time(53_300), "53.3 us");
        assert_eq!(parse_rate("12.5 MB/s"), Some(12_500_000));
        assert_eq!(parse_size("1.5"), None);
        for bad in ["", "x", "4", "-1 B", "1.0001 B", "99999999999 TiB", "..1 B", "1e3 B"] {
            assert_eq!(parse_size(bad), None, "{bad}");
        }
    }

    #[test]
    fn division_is_exact() {
        for by in [1, 2, 3, 8, 129, 258, 8256, 24_576, 131_072] {
            let d = Divider::new(by);
            for n in (0..4000).chain([by - 1, by, by * 77 - 1, by * 77, (1 << 41) - 1, 1 << 41]) {
                assert_eq!(d.of(n), n / by, "{n} / {by}");
            }
        }
    }
}

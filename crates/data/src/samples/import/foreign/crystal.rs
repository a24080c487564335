//! What CrystalDiskMark prints, versions 3 to 8. Its MB/s are of 1000000 bytes.

use super::lines::number;
use super::{Benchmark, runs};
use crate::samples::metric::Metric;
use crate::units::{Bytes, KIB, MIB, three};

/// Its output, where the text holds some.
pub fn read(lines: &[&str]) -> Option<Result<Benchmark, String>> {
    lines.iter().any(|l| l.to_lowercase().contains("crystaldiskmark")).then_some(())?;
    let mut b = Benchmark { tool: "CrystalDiskMark", ..Benchmark::default() };
    let mut mixed = 0;
    for lines in runs(lines, |l| l.trim().starts_with("CrystalDiskMark"), |l| figures(l).is_some_and(|f| f.1.contains("MB/s"))) {
        run(lines, &mut b, &mut mixed);
    }
    if mixed > 0 {
        b.notes.push(format!("{mixed} figures of reads and writes together were left out"));
    }
    Some(if b.metrics.is_empty() { Err("CrystalDiskMark printed no figures; was it cut off?".into()) } else { Ok(b) })
}

/// What was measured, and the figures behind it.
fn figures(line: &str) -> Option<(&str, &str)> {
    line.rsplit_once(" : ").or_else(|| line.rsplit_once("):"))
}

/// "1 GiB (x5) [E: 0% (0/60GiB)]".
fn test(line: &str) -> Option<&str> {
    let line = line.trim();
    line.strip_prefix("Test :").or_else(|| line.strip_prefix("Test:")).map(str::trim)
}

/// "E: (60GiB)": a letter is given again to the next stick.
fn drive(line: &str) -> Option<String> {
    let (letter, rest) = test(line)?.split_once('[')?.1.split_once(' ')?;
    let size = rest.split_once('/').and_then(|r| Some(r.1.split_once(')')?.0)).map_or(String::new(), |s| format!(" ({s})"));
    letter.ends_with(':').then(|| format!("{letter}{size}"))
}

/// A rate, printed with three decimals. What stands behind a comma may be these, or thousands: IOPS and the block decide, where they are there.
fn rate(printed: &str, each: Option<(f64, u64)>, rounded: bool) -> Option<f64> {
    let word: String = printed.chars().filter(|c| !c.is_whitespace()).collect();
    let digits = |w: &str| !w.is_empty() && w.bytes().all(|b| b.is_ascii_digit());
    let three = word.split_once(',').is_some_and(|(a, b)| digits(a) && digits(b) && b.len() == 3);
    let large = number(&word)?;
    let decimals = three
        && match each {
            // Between a rate and a thousand times it lies, by ratio, thirty times it.
            Some((iops, block)) => iops * block as f64 / 1e6 < large / 1e3f64.sqrt(),
            None => !rounded,
        };
    Some(if decimals { large / 1e3 } else { large }).filter(|r| *r > 0.0)
}

/// One run; `mixed` counts figures of reads and writes together.
fn run(lines: &[&str], b: &mut Benchmark, mixed: &mut usize) {
    b.of([None, lines.iter().find_map(|l| drive(l)), None]);
    // Where it prints rates without decimals, their commas part thousands.
    let rounded = lines.iter().filter_map(|l| figures(l)?.1.split_once("MB/s")).any(|f| f.0.trim().bytes().all(|b| b.is_ascii_digit()));
    let mut section = "";
    for line in lines.iter().map(|l| l.trim()) {
        if line.starts_with("CrystalDiskMark") && b.version.is_none() {
            b.version = Some(line.split("(C)").next().unwrap_or(line).trim().into());
        }
        section = match line {
            "[Read]" => "read",
            "[Write]" => "write",
            "[Mix]" => "mixed",
            _ => section,
        };
        b.notes.extend(test(line).map(|t| format!("test: {t}")));
        let Some((label, figures)) = figures(line) else { continue };
        // What was not run is 0.
        let Some((printed, _)) = figures.split_once("MB/s").filter(|f| f.0.contains(|c| matches!(c, '1'..='9'))) else { continue };
        let low = label.to_lowercase();
        let order = match () {
            () if low.starts_with("seq") => "sequential",
            () if low.starts_with("r") => "random",
            () => continue,
        };
        let op = ["read", "write", "mix"].into_iter().find(|w| low.contains(&format!(" {w}"))).unwrap_or(section);
        if !["read", "write"].contains(&op) {
            *mixed += 1;
            continue;
        }
        let after = |key: &str| {
            let rest = low.split_once(key)?.1.trim_start_matches(['=', ' ']);
            rest.split(|c: char| !c.is_ascii_digit()).next()?.parse::<u64>().ok()
        };
        // Its KB are of 1024, whatever the version calls them.
        let sized = |unit: &str, factor: u64| {
            let head = low.split('(').next()?.split_once(unit)?.0;
            head.rsplit(|c: char| !c.is_ascii_digit()).next()?.parse::<u64>().ok()?.checked_mul(factor)
        };
        let block = ["kib", "kb", "mib", "mb"].iter().find_map(|u| sized(u, if u.starts_with('k') { KIB } else { MIB }));
        let depth = after("(qd").or(after("(q")).unwrap_or(1);
        let threads = after("t=").filter(|t| *t > 1).map_or(String::new(), |t| format!(", {t} threads"));
        let shown = block.map_or("block not stated".into(), |s| Bytes(s).to_string());
        let conditions = format!("{shown}, depth {depth}{threads}, CrystalDiskMark");
        let iops = figures.split_once('[').and_then(|f| number(f.1.split_once("IOPS")?.0.trim())).filter(|i| *i > 0.0);
        let Some(rate) = rate(printed, iops.zip(block), rounded) else { continue };
        b.metrics.push(Metric::new(&format!("{order} {op}"), conditions.clone(), "MB/s", &[rate]));
        if let Some(iops) = iops {
            if let Some(s) = block.filter(|s| (rate * 1e6 / iops / *s as f64 - 1.0).abs() > 0.05 + 0.1 / iops) {
                b.flags.push(format!("{label}: {} MB/s at {} IOPS are not {} each", three(rate), three(iops), Bytes(s)));
            }
            b.metrics.push(Metric::new(&format!("{order} {op}s a second"), conditions.clone(), "IOPS", &[iops]));
        }
        // From version 7 on the mean time stands there, too.
        let mean = figures.split_once('<').and_then(|f| number(f.1.split_once("us>")?.0.trim())).filter(|us| *us > 0.0);
        b.metrics.extend(mean.map(|us| Metric::new(&format!("{order} {op}, average time"), conditions, "µs", &[us])));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three decimals behind a comma, and thousands before one.
    #[test]
    fn commas_in_rates() {
        for (printed, each, rounded, want) in [
            ("95,103", None, false, 95.103),
            (" 3,544 ", Some((865.2, 4096)), false, 3.544),
            ("3,544", Some((865_234.0, 4096)), false, 3544.0),
            ("1,457", None, true, 1457.0),
            ("1,234.567", None, false, 1234.567),
            ("1.234,567", None, false, 1234.567),
            ("1 234,567", None, false, 1234.567),
            ("94.210", None, false, 94.21),
            ("0,011", Some((2.7, 4096)), false, 0.011),
        ] {
            assert_eq!(rate(printed, each, rounded), Some(want), "{printed}");
        }
        let text = "CrystalDiskMark 5.2.1\n   Sequential Read (Q= 32,T= 1) :    95,103 MB/s\n  Random Read 4KiB (Q= 32,T= 1) :     9,712 MB/s [  2.371,1 IOPS]";
        let b = read(&text.lines().collect::<Vec<_>>()).unwrap().unwrap();
        assert_eq!(b.metrics.iter().map(|m| m.value).collect::<Vec<_>>(), [95.103, 9.712, 2371.1]);
        assert!(b.flags.is_empty(), "{:?}", b.flags);
    }
}

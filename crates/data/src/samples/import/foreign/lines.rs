//! What tests print for people, a figure a line: agnostics (the Raspberry Pi card test), PiBenchmarks, and tables that scripts make of fio
//! and iozone.

use super::Benchmark;
use crate::samples::metric::Metric;
use crate::units::{Bytes, KIB};

/// agnostics or PiBenchmarks, where the lines hold their rows.
pub fn read(lines: &[&str]) -> Option<Result<Benchmark, String>> {
    if lines.iter().any(|l| agnostics_row(l).is_some_and(|r| r.0 != "prepare-file")) {
        return Some(Ok(agnostics(lines)));
    }
    (lines.iter().filter(|l| pi_row(l).is_some()).count() >= 3).then(|| Ok(pi_benchmarks(lines)))
}

/// A table of fio or iozone, whose cells stand between bars.
pub fn table(text: &str) -> Option<Result<Benchmark, String>> {
    if text.to_lowercase().contains("fio disk speed tests") {
        return Some(fio_table(text));
    }
    let head = |l: &str| l.contains("Block Size (KB)") && l.contains("Sequential Read (MB/s)");
    text.lines().any(head).then(|| iozone_table(text))
}

/// "1,457", "30.8", "1,234.5" and "1.234,5": of two kinds of separators the last is the decimal one; so is a comma before at most two digits.
pub fn number(word: &str) -> Option<f64> {
    let comma = word.rfind(',').filter(|&at| word.rfind('.').is_none_or(|point| point < at));
    let decimal = comma.is_some_and(|at| word.contains('.') || word.len() - at <= 3);
    let plain = if decimal { word.replace('.', "").replace(',', ".") } else { word.replace(',', "") };
    plain.parse().ok().filter(|v: &f64| v.is_finite() && *v >= 0.0)
}

/// Name, rate and IOPS of reads, rate and IOPS of writes; rates in KiB/s.
fn agnostics_row(line: &str) -> Option<(&str, [u32; 4])> {
    let mut parts = line.trim().split(';');
    let name = parts.next().filter(|n| ["prepare-file", "seq-write", "seq-read", "rand-4k-write", "rand-4k-read"].contains(n))?;
    let all: Vec<u32> = parts.map(|p| p.trim().parse().ok()).collect::<Option<_>>()?;
    Some((name, all.try_into().ok()?))
}

fn agnostics(lines: &[&str]) -> Benchmark {
    let mut b = Benchmark { tool: "agnostics", ..Benchmark::default() };
    let mut all: Vec<(&str, bool, Vec<f64>, Vec<f64>)> = vec![];
    for line in lines {
        if let Some((name, [read, reads, write, writes])) = agnostics_row(line) {
            let is_write = write > 0;
            let (rate, iops) = if is_write { (write, writes) } else { (read, reads) };
            let at = all.iter().position(|x| x.0 == name).unwrap_or_else(|| {
                all.push((name, is_write, vec![], vec![]));
                all.len() - 1
            });
            all[at].2.push(f64::from(rate));
            all[at].3.push(f64::from(iops));
        } else if let Some(said) = agnostics_verdict(line) {
            let of = |name: &str| all.iter().find(|x| x.0 == name).and_then(|x| Some((*x.2.last()?, *x.3.last()?)));
            let seen = match said.0 {
                "Sequential write" => of("seq-write").map(|x| x.0),
                "Random write" => of("rand-4k-write").map(|x| x.1),
                _ => of("rand-4k-read").map(|x| x.1),
            };
            if let Some(seen) = seen.filter(|s| (s - said.1).abs() > 1.0) {
                b.flags.push(format!("its verdict says {} {}, its figures {}: the figures count", said.0.to_lowercase(), said.1, seen));
            }
        } else if line.contains("Raspberry Pi Diagnostics - version") {
            b.version = line.split_once("version").map(|v| format!("agnostics {}", v.1.trim()));
        }
    }
    for (name, write, rates, iops) in all.iter().filter(|x| x.0 != "prepare-file") {
        let op = if *write { "write" } else { "read" };
        let random = name.starts_with("rand");
        // The block is not printed: a rate over its IOPS is one, rounded.
        let size = rates.iter().zip(iops).filter(|x| *x.1 > 0.0).map(|x| x.0 / x.1).fold(0.0, f64::max);
        let block = if random { Some(4) } else { [512, 4096].into_iter().find(|k| (size / f64::from(*k) - 1.0).abs() < 0.15) };
        let block = block.map_or("block not stated".into(), |k: u16| Bytes(u64::from(k) * KIB).to_string());
        let conditions = format!("{block}, agnostics");
        let order = if random { "random" } else { "sequential" };
        let kb: Vec<f64> = rates.iter().map(|r| r * 1.024).collect();
        b.metrics.push(Metric::new(&format!("{order} {op}"), conditions.clone(), "kB/s", &kb));
        if random {
            b.metrics.push(Metric::new(&format!("{order} {op}s a second"), conditions, "IOPS", iops));
        }
    }
    b
}

/// "Random write speed 213 IOPS (target 500) - FAIL".
fn agnostics_verdict(line: &str) -> Option<(&str, f64)> {
    let (what, rest) = line.split_once(" speed ")?;
    let what = ["Sequential write", "Random write", "Random read"].into_iter().find(|w| what.trim() == *w)?;
    rest.contains("(target").then_some(())?;
    Some((what, rest.split_whitespace().next()?.parse().ok()?))
}

/// Tool, test, value and unit of a row of PiBenchmarks.
fn pi_row(line: &str) -> Option<(&str, String, f64, String)> {
    let mut w = line.split_whitespace();
    let tool = w.next().filter(|t| ["HDParm", "DD", "FIO", "IOZone"].contains(t))?;
    let rest: Vec<&str> = w.collect();
    let at = rest.iter().rposition(|x| number(x).is_some())?;
    let unit = *rest.get(at + 1)?;
    (at > 0).then(|| (tool, rest[..at].join(" ").to_lowercase(), number(rest[at]).unwrap_or(0.0), unit.to_string()))
}

fn pi_benchmarks(lines: &[&str]) -> Benchmark {
    let mut b = Benchmark { tool: "PiBenchmarks", ..Benchmark::default() };
    for (tool, test, value, unit) in lines.iter().filter_map(|l| pi_row(l)) {
        let write = test.contains("write");
        let op = if write { "write" } else { "read" };
        let (metric, conditions, unit, value) = match (tool, unit.as_str()) {
            // What it took from memory says nothing of the card.
            ("HDParm", _) if test.contains("cached") => continue,
            // hdparm counts in 1024, dd in 1000.
            ("HDParm", "MB/sec") => ("sequential read".to_string(), "hdparm", "MB/s", value * 1.048_576),
            ("DD", "MB/s") => ("sequential write".to_string(), "dd", "MB/s", value),
            ("FIO", "IOPS") => (format!("random {op}s a second"), "4 KiB, fio", "IOPS", value),
            ("IOZone", "KB/s") if test.contains("random") => (format!("random {op}"), "4 KiB, iozone", "kB/s", value * 1.024),
            ("IOZone", "KB/s") => (format!("sequential {op}"), "4 KiB, iozone", "kB/s", value * 1.024),
            _ => continue,
        };
        b.metrics.push(Metric::new(&metric, format!("{conditions}, PiBenchmarks"), unit, &[value]));
    }
    b
}

/// Cells of a row parted by bars.
fn cells(line: &str) -> Vec<&str> {
    line.trim().trim_start_matches(['>', ' ']).trim_matches('|').split('|').map(str::trim).collect()
}

/// A table of fio's rates that a script prints; its MB/s are 1000 KiB/s.
fn fio_table(text: &str) -> Result<Benchmark, String> {
    let mut b = Benchmark { tool: "fio", version: Some("fio, table of a script".into()), ..Benchmark::default() };
    let mut sizes: Vec<Option<Bytes>> = vec![];
    for c in text.lines().map(cells).filter(|c| c.len() >= 2) {
        if c[0].eq_ignore_ascii_case("block size") {
            sizes = c[1..].iter().map(|s| s.split_whitespace().next()?.parse().ok()).collect();
            continue;
        }
        let (order, op) = match c[0].to_lowercase().as_str() {
            "read" => ("sequential", "read"),
            "write" => ("sequential", "write"),
            "randread" => ("random", "read"),
            "randwrite" => ("random", "write"),
            _ => continue,
        };
        for (cell, size) in c[1..].iter().zip(&sizes) {
            let mut w = cell.split_whitespace();
            let (Some(rate), Some(unit), Some(size)) = (w.next().and_then(number), w.next(), size) else { continue };
            let factor = match unit {
                "KB/s" => 1.024,
                "MB/s" => 1024.0,
                "GB/s" => 1_024_000.0,
                _ => continue,
            };
            let conditions = format!("{size}, depth not stated, fio");
            b.metrics.push(Metric::new(&format!("{order} {op}"), conditions, "kB/s", &[rate * factor]));
        }
    }
    if b.metrics.is_empty() { Err("the table has no rows that can be read".into()) } else { Ok(b) }
}

/// A table of iozone's rates that a script prints.
fn iozone_table(text: &str) -> Result<Benchmark, String> {
    let mut b = Benchmark { tool: "iozone", version: Some("iozone, table of a script".into()), ..Benchmark::default() };
    let mut heads: Vec<String> = vec![];
    for c in text.lines().map(cells).filter(|c| c.len() >= 2) {
        if c[0].starts_with("Block Size") {
            heads = c[1..].iter().map(|h| h.split(" (").next().unwrap_or("").to_lowercase()).collect();
        } else if let Some(kb) = c[0].parse::<u64>().ok().filter(|k| (1..=1 << 30).contains(k)) {
            for (cell, head) in c[1..].iter().zip(&heads) {
                if let Some(v) = number(cell).filter(|v| *v > 0.0) {
                    b.metrics.push(Metric::new(head, format!("{}, iozone table", Bytes(kb * KIB)), "MB/s", &[v]));
                }
            }
        }
    }
    b.notes.push("the table does not say whether its MB have 1000 or 1024 kB: the figures may be up to 5 % higher".into());
    if b.metrics.is_empty() { Err("the table has no rows that can be read".into()) } else { Ok(b) }
}

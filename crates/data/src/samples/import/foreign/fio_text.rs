//! What fio prints for people, and its logs of latencies.

use super::Benchmark;
use crate::samples::metric::{Metric, Over};
use crate::units::Bytes;

pub fn is_text(text: &str) -> bool {
    text.lines().any(|l| {
        let l = l.trim_start();
        (l.starts_with("read: IOPS=") || l.starts_with("write: IOPS="))
            || ((l.starts_with("read :") || l.starts_with("write:")) && l.contains("iops="))
    })
}

/// What follows a key up to a comma, a bracket or a blank.
fn after<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let rest = text.split_once(key)?.1.trim_start();
    rest.split([',', '(', ')', ' ', ';']).next().filter(|w| !w.is_empty())
}

/// "1.2k" and "855".
fn count(word: &str) -> Option<f64> {
    let (digits, factor) = match word.chars().last()? {
        'k' => (&word[..word.len() - 1], 1e3),
        'M' => (&word[..word.len() - 1], 1e6),
        _ => (word, 1.0),
    };
    digits.parse::<f64>().ok().map(|v| v * factor).filter(|v| v.is_finite() && *v > 0.0)
}

/// "3424KiB/s", "3506kB/s", and fio 2's "3424.5KB/s" of 1024 bytes, as kB/s.
fn rate(word: &str, old: bool) -> Option<f64> {
    let at = word.find(|c: char| c.is_ascii_alphabetic())?;
    let value: f64 = word[..at].parse().ok().filter(|v: &f64| v.is_finite() && *v > 0.0)?;
    let bytes = match (&word[at..], old) {
        ("B/s", _) => 1.0,
        ("KiB/s", _) | ("KB/s", true) => 1024.0,
        ("MiB/s", _) | ("MB/s", true) => 1_048_576.0,
        ("GiB/s", _) => 1_073_741_824.0,
        ("kB/s", _) => 1e3,
        ("MB/s", _) => 1e6,
        _ => return None,
    };
    Some(value * bytes / 1e3)
}

/// µs in a unit as fio names it.
fn micros(unit: &str) -> Option<f64> {
    [("nsec", 1e-3), ("usec", 1.0), ("msec", 1e3)].iter().find(|u| unit.contains(u.0)).map(|u| u.1)
}

pub fn text(all: &str) -> Result<Benchmark, String> {
    let mut b = Benchmark { tool: "fio", ..Benchmark::default() };
    // The depth of a job that was pasted without its first line.
    let later = all.split_once("latency ").and_then(|x| after(x.1, "depth="));
    let (mut order, mut depth, mut block) = ("", None::<&str>, None::<Bytes>);
    let mut now: Option<(String, String)> = None;
    let mut unit = 1.0;
    for line in all.lines().map(str::trim) {
        if line.starts_with("fio-") && b.version.is_none() {
            b.version = Some(line.into());
        }
        if line.contains("rw=") && line.contains("iodepth=") {
            let rw = after(line, "rw=").unwrap_or("");
            order = if rw.contains("rand") { "random" } else { "sequential" };
            depth = after(line, "iodepth=");
            block = after(line, "bs=").filter(|w| !w.is_empty()).or(after(line, "bs=(R) ")).and_then(|w| w.split('-').next()?.parse().ok());
            block = block.or_else(|| line.split_once("(R) ").and_then(|x| x.1.split(['-', ',']).next()?.trim().parse().ok()));
            continue;
        }
        let op = ["read", "write"].into_iter().find(|o| line.starts_with(o) && line[o.len()..].trim_start().starts_with(':'));
        let (iops, bandwidth) = (after(line, "IOPS=").or(after(line, "iops=")), after(line, "BW=").or(after(line, "bw=")));
        if let (Some(op), Some(iops)) = (op, iops.and_then(count)) {
            let old = line.contains("iops=");
            // In brackets stands the same in units of 1000.
            let exact = line.split_once('(').and_then(|x| rate(x.1.split(')').next()?, false)).filter(|_| !old);
            let kb = exact.or_else(|| rate(bandwidth?, old));
            let size = block.or_else(|| kb.map(|k| Bytes(((k * 1e3 / iops / 512.0).round() as u64).max(1) * 512)));
            let shown = size.map_or("block not stated".into(), |s| s.to_string());
            let conditions = format!("{shown}, depth {}, fio as text", depth.or(later).unwrap_or("not stated"));
            let what = format!("{order} {op}").trim().to_string();
            b.metrics.extend(kb.map(|k| Metric::new(&what, conditions.clone(), "kB/s", &[k])));
            b.metrics.push(Metric::new(&format!("{what}s a second"), conditions.clone(), "IOPS", &[iops]));
            now = Some((what, conditions));
        } else if let Some((what, conditions)) = &now {
            if line.starts_with("lat (") && line.contains("min=") {
                let Some(us) = micros(line) else { continue };
                for (key, name) in [("avg=", "average time"), ("max=", "longest time")] {
                    let v = after(line, key).and_then(count).map(|v| v * us);
                    b.metrics.extend(v.map(|v| Metric::new(&format!("{what}, {name}"), conditions.clone(), "µs", &[v])));
                }
            } else if line.contains("percentiles (") {
                unit = micros(line).unwrap_or(1.0);
            } else if let Some(p) = line.split_once("99.00th=[").and_then(|x| x.1.split(']').next()?.trim().parse::<f64>().ok()) {
                b.metrics.push(Metric::new(&format!("{what}, 99 % of the times"), conditions.clone(), "µs", &[p * unit]));
            }
        }
    }
    if b.metrics.is_empty() { Err("fio printed no figures that can be read".into()) } else { Ok(b) }
}

/// A row of a log: value, direction (0 read, 1 write, 2 trim), block.
fn row(line: &str) -> Option<(f64, u8, u64)> {
    let parts: Vec<u64> = line.split(',').map(|p| p.trim().parse().ok()).collect::<Option<_>>()?;
    let [_, value, direction, block, ..] = parts[..] else { return None };
    (parts.len() <= 6 && direction <= 2 && block >= 512 && block.is_multiple_of(512)).then_some((value as f64, direction as u8, block))
}

/// A log of fio's, by its rows; those of rates and of latencies differ in nothing but their names.
pub fn is_log(text: &str) -> bool {
    let mut lines = text.lines().filter(|l| !l.trim().is_empty());
    let first: Vec<&str> = lines.by_ref().take(12).collect();
    first.len() >= 4 && first.iter().all(|l| row(l).is_some())
}

pub fn log(name: &str, text: &str) -> Result<Benchmark, String> {
    let file = name.rsplit('/').next().unwrap_or(name).to_lowercase();
    let kind = ["clat", "slat", "lat"].into_iter().find(|k| file.contains(&format!("_{k}")));
    let Some(kind) = kind else {
        return Err(
            "it looks like a log of fio, but its name does not say of what: logs of latencies are named NAME_lat.1.log or NAME_clat.1.log"
                .into(),
        );
    };
    let mut b = Benchmark { tool: "fio", version: Some("fio, log of latencies".into()), ..Benchmark::default() };
    let mut groups: Vec<((u8, u64), Vec<f64>)> = vec![];
    let mut damaged = 0;
    for line in text.lines().filter(|l| !l.trim().is_empty()) {
        match row(line) {
            Some((ns, direction @ 0..=1, block)) => match groups.iter().position(|g| g.0 == (direction, block)) {
                Some(i) => groups[i].1.push(ns / 1e3),
                None if groups.len() < 64 => groups.push(((direction, block), vec![ns / 1e3])),
                None => damaged += 1,
            },
            Some(_) => {}
            None => damaged += 1,
        }
    }
    if damaged > 0 {
        b.notes.push(format!("{damaged} lines are damaged or of too many block sizes, and were left out"));
    }
    let what = match kind {
        "slat" => "submission",
        "clat" => "completion",
        _ => "whole",
    };
    b.notes.push(format!("times are taken as ns (fio 3), each of one request ({what} latency); with log_avg_msec they are means"));
    for ((direction, block), mut times) in groups {
        times.sort_by(f64::total_cmp);
        let op = if direction == 1 { "write" } else { "read" };
        b.notes.push(format!("{} {op}s of {}", times.len(), Bytes(block)));
        let conditions = format!("{}, fio log ({kind})", Bytes(block));
        let at = |share: f64| times[((times.len() as f64 * share) as usize).min(times.len() - 1)];
        let mean = times.iter().sum::<f64>() / times.len() as f64;
        for (name, v) in [("average time", mean), ("median time", at(0.5)), ("99 % of the times", at(0.99))] {
            b.metrics.push(Metric::new(&format!("{op}, {name}"), conditions.clone(), "µs", &[v]));
        }
        b.metrics.push(Metric::new(&format!("{op}, longest time"), conditions, "µs", &[at(1.0)]).over(Over::Longest));
    }
    if b.metrics.is_empty() { Err("the log holds no reads or writes".into()) } else { Ok(b) }
}

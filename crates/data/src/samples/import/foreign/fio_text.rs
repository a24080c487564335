//! What fio prints for people, and its logs of latencies.

use super::{Benchmark, a_second, is_mixed, jobs_text, runs, words_of};
use crate::samples::metric::{Metric, Over};
use crate::units::Bytes;

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

/// What a line that announces a job says of it: its name and group; the order, how deep, the blocks of reads and writes.
#[derive(Clone, Default)]
struct Job {
    name: String,
    order: &'static str,
    mixed: bool,
    depth: Option<String>,
    read: Option<Bytes>,
    write: Option<Bytes>,
}

/// "NAME: (g=0): rw=randwrite, bs=(R) 4096B-4096B, (W) 4096B-4096B, ..., iodepth=1", or the words of a command.
fn announced(line: &str) -> Option<Job> {
    let rw = after(line, "rw=")?;
    let depth = after(line, "iodepth=")?;
    let size = |w: &str| w.split(['-', ',']).next()?.trim().parse::<Bytes>().ok();
    let of = |key: &str| line.split_once(key).and_then(|x| size(x.1));
    let both = after(line, "bs=").and_then(size);
    Some(Job {
        name: line.split_once(": (g=").map_or("", |x| x.0).into(),
        order: if rw.contains("rand") { "random" } else { "sequential" },
        mixed: is_mixed(rw),
        depth: Some(depth.into()),
        read: of("(R) ").or(both),
        write: of("(W) ").or(both),
    })
}

/// The words of a command that starts fio.
fn started(line: &str) -> Option<Vec<String>> {
    words_of(line, "fio").filter(|w| w.iter().any(|w| w.starts_with("--")))
}

/// The file, device or directory that a command names for a job, or for all of them.
fn target(words: &[String], job: &str) -> Option<String> {
    let (mut now, mut all, mut own) = (None, None, None);
    for (i, word) in words.iter().enumerate() {
        let Some((key, value)) = word.split_once('=').or_else(|| Some((word.as_str(), words.get(i + 1)?.as_str()))) else { continue };
        match key {
            "--name" => now = Some(value),
            "--filename" | "--directory" if now.is_none() || now == Some("global") => all = Some(value),
            "--filename" | "--directory" if now == Some(job) => own = Some(value),
            _ => {}
        }
    }
    own.or(all).map(str::to_string)
}

/// "mmcblk0: ios=12/24700, merge=0/0": the disk that fio counted.
fn disk(line: &str) -> Option<String> {
    line.split_once(": ios=").map(|x| x.0.to_string())
}

/// What fio prints for people, where the text holds some.
pub fn read(lines: &[&str]) -> Option<Result<Benchmark, String>> {
    let lines: Vec<&str> = lines.iter().map(|l| l.trim()).collect();
    lines.iter().any(|l| is_rate(l)).then_some(())?;
    let mut b = Benchmark { tool: "fio", ..Benchmark::default() };
    b.version = lines.iter().find(|l| l.starts_with("fio-")).map(|l| l.to_string());
    let begins = |l: &str| l.starts_with("fio-") || announced(l).is_some() || started(l).is_some();
    for lines in runs(&lines, begins, is_rate) {
        run(lines, &mut b);
    }
    Some(if b.metrics.is_empty() { Err("fio printed no figures that can be read".into()) } else { Ok(b) })
}

/// One run: fio announces all its jobs first, then come the results, each below a line with the number of its group.
fn run(lines: &[&str], b: &mut Benchmark) {
    // One that is alone needs no name.
    let announced: Vec<Job> = lines.iter().filter_map(|l| announced(l)).collect();
    let alone = || if let [only] = &announced[..] { only.clone() } else { Job::default() };
    let command = lines.iter().find_map(|l| started(l)).unwrap_or_default();
    let counted = lines.iter().find_map(|l| disk(l));
    let origin = |name: &str| {
        let job = (!name.is_empty()).then(|| format!("job {name}"));
        [None, target(&command, name).or_else(|| counted.clone()), job]
    };
    let heads: Vec<(usize, &str, &str)> = lines
        .iter()
        .enumerate()
        .filter_map(|(i, l)| Some((i, l.split_once(": (groupid=").map_or("", |x| x.0), after(l, "(groupid=")?)))
        .collect();
    let first = heads.first().map_or(lines.len(), |h| h.0);
    b.of(origin(&alone().name));
    result(b, &lines[..first], &alone(), "");
    for (n, &(from, name, group)) in heads.iter().enumerate() {
        let lines = &lines[from..heads.get(n + 1).map_or(lines.len(), |h| h.0)];
        let mut of_name = announced.iter().filter(|j| j.name == name);
        let job = match (of_name.next(), of_name.next()) {
            (Some(job), None) => job.clone(),
            _ => alone(),
        };
        // Without group_reporting each job of several has a result of its own.
        let jobs = match heads.iter().filter(|h| (h.1, h.2) == (name, group)).count() as u32 {
            1 => jobs_text(after(lines[0], "jobs=").and_then(|n| n.parse().ok()), true),
            several => jobs_text(Some(several), false),
        };
        b.of(origin(name));
        result(b, lines, &job, &jobs);
    }
}

/// "read: IOPS=855, BW=...", and "read : io=..., bw=..., iops=855" of fio 2.
fn is_rate(line: &str) -> bool {
    operation(line).is_some() && (line.contains("IOPS=") || line.contains("iops="))
}

/// What a line of rates is of.
fn operation(line: &str) -> Option<&'static str> {
    ["read", "write"].into_iter().find(|o| line.starts_with(o) && line[o.len()..].trim_start().starts_with(':'))
}

/// The figures of one job, or of a group of them.
fn result(b: &mut Benchmark, lines: &[&str], job: &Job, jobs: &str) {
    // The depth of a job that was pasted without its first line.
    let later = lines.iter().find(|l| l.starts_with("latency ")).and_then(|l| after(l, "depth="));
    let depth = job.depth.as_deref().or(later).unwrap_or("not stated");
    // Where one result has both, they disturbed each other.
    let both = ["read", "write"].into_iter().all(|o| lines.iter().any(|l| operation(l) == Some(o)));
    let mixed = if job.mixed || both { " (mixed)" } else { "" };
    let mut now: Option<(String, String)> = None;
    let mut unit = 1.0;
    for line in lines {
        let (iops, bandwidth) = (after(line, "IOPS=").or(after(line, "iops=")), after(line, "BW=").or(after(line, "bw=")));
        if let (Some(op), Some(iops)) = (operation(line), iops.and_then(count)) {
            let old = line.contains("iops=");
            // In brackets stands the same in units of 1000.
            let exact = line.split_once('(').and_then(|x| rate(x.1.split(')').next()?, false)).filter(|_| !old);
            let kb = exact.or_else(|| rate(bandwidth?, old));
            let block = if op == "write" { job.write } else { job.read };
            let size = block.or_else(|| kb.map(|k| Bytes(((k * 1e3 / iops / 512.0).round() as u64).max(1) * 512)));
            let shown = size.map_or("block not stated".into(), |s| s.to_string());
            let conditions = format!("{shown}, depth {depth}{jobs}, fio as text");
            let what = format!("{} {op}{mixed}", job.order).trim().to_string();
            b.metrics.extend(kb.map(|k| Metric::new(&what, conditions.clone(), "kB/s", &[k])));
            b.metrics.push(Metric::new(&a_second(&what), conditions.clone(), "IOPS", &[iops]));
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

//! Results of other benchmarks: fio, f3 (f3probe, f3write, f3read), iozone; and, in files of their own, uFLIP, mfst, sdmon, uSD-FS,
//! agnostics, h2testw, CrystalDiskMark, PiBenchmarks, dd, hdparm. Each becomes figures under stated conditions; what contradicts itself is noted,
//! never repaired.

mod cards;
mod fio_text;
mod lines;
mod sdmon;
mod shell;
mod uflip;

use crate::samples::metric::Metric;
use crate::units::{Bytes, about};
use serde_json::Value;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// The programs whose output is read here, for people.
pub const PROGRAMS: &str =
    "fio (JSON, text, latency logs), f3, iozone, dd, hdparm, uFLIP, h2testw, CrystalDiskMark, agnostics, PiBenchmarks, mfst, sdmon, uSD-FS";

/// What one file holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Benchmark {
    /// "fio", "f3", "iozone", ...
    pub tool: &'static str,
    /// What the card is called, where the file says.
    pub name: Option<String>,
    /// Registers in hex, by name.
    pub registers: Vec<(String, String)>,
    /// Name and version as printed.
    pub version: Option<String>,
    /// Bytes of the device, where the file tells.
    pub capacity: Option<u64>,
    pub metrics: Vec<Metric>,
    /// What a reader must know.
    pub notes: Vec<String>,
    /// What does not fit together.
    pub flags: Vec<String>,
}

/// `None` where the text is none of these; an error where it is, and cannot be used. `name` is that of the file.
pub fn read(name: &str, text: &str) -> Option<Result<Benchmark, String>> {
    let mut found = one_of(name, text)?;
    if let Ok(b) = &mut found {
        passes(&mut b.metrics);
    }
    Some(found)
}

/// What was measured several times under the same conditions are passes of one figure.
fn passes(all: &mut Vec<Metric>) {
    let mut out: Vec<Metric> = vec![];
    let mut places = HashMap::new();
    for m in all.drain(..) {
        match places.entry((m.name.clone(), m.conditions.clone(), m.unit.clone())) {
            Entry::Vacant(v) => {
                v.insert(out.len());
                out.push(m);
            }
            Entry::Occupied(o) => {
                let old = &mut out[*o.get()];
                let values = |m: &Metric| if m.passes.is_empty() { vec![m.value] } else { m.passes.clone() };
                let both = [values(old), values(&m)].concat();
                *old = Metric::new(&m.name, m.conditions, &m.unit, &both).over(old.over);
            }
        }
    }
    *all = out;
}

fn one_of(name: &str, text: &str) -> Option<Result<Benchmark, String>> {
    if let Some(found) = cards::read(text) {
        return Some(found);
    }
    if text.trim_start().starts_with('{') || text.contains("\"fio version\"") {
        if !text.contains("\"fio version\"") {
            return None;
        }
        // fio may print warnings before its JSON, and a console colours and time stamps between the lines.
        let json = |text: &str| Some(fio(&text[text.find('{')?..]));
        let plain = || super::clean::lines(text.as_bytes()).into_iter().map(|l| l.text + "\n").collect::<String>();
        return json(text).map(|found| found.or_else(|why| json(&plain()).and_then(Result::ok).ok_or(why)));
    }
    if text.contains("Announced size:")
        || text.contains("Validating file")
        || text.contains("verage writing speed:")
        || text.contains("verage Writing speed:")
        || text.contains("Data OK:") && text.contains("Data LOST:")
    {
        return Some(f3(text));
    }
    if text.lines().any(|l| l.contains("reclen") && l.contains("rewrite")) {
        return Some(iozone(text));
    }
    if uflip::is_result(text) {
        return Some(uflip::read(text));
    }
    if fio_text::is_text(text) {
        return Some(fio_text::text(text));
    }
    if fio_text::is_log(text) {
        return Some(fio_text::log(name, text));
    }
    lines::read(text).or_else(|| shell::read(text))
}

/// Whether fio reads and writes at the same time by this word of `rw=`.
fn is_mixed(pattern: &str) -> bool {
    ["rw", "readwrite", "randrw"].contains(&pattern.split(':').next().unwrap_or(""))
}

/// "random reads a second (mixed)" of "random read (mixed)".
fn a_second(what: &str) -> String {
    match what.strip_suffix(" (mixed)") {
        Some(plain) => format!("{plain}s a second (mixed)"),
        None => format!("{what}s a second"),
    }
}

/// Several jobs of fio load a card as one of a greater depth does, so that they are a condition.
fn jobs_text(jobs: Option<u32>, together: bool) -> String {
    match jobs {
        Some(n) if n > 1 && together => format!(", {n} jobs"),
        Some(n) if n > 1 => format!(", one of {n} jobs"),
        _ => String::new(),
    }
}

fn fio(text: &str) -> Result<Benchmark, String> {
    // A second document may follow (several runs appended); the first one counts.
    let mut documents = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let v = documents
        .next()
        .ok_or("no JSON")?
        .map_err(|e| if e.is_eof() { format!("it ends too early ({e}), as if cut off") } else { e.to_string() })?;
    let mut b = Benchmark { tool: "fio", version: v["fio version"].as_str().map(str::to_string), ..Benchmark::default() };
    // What a shell says afterwards is none.
    if matches!(documents.next(), Some(Ok(Value::Object(_)))) {
        b.notes.push("the file holds more than one result; the first was read".into());
    }
    let jobs = v["jobs"].as_array().ok_or("it has no jobs")?;
    for job in jobs {
        let option = |k: &str| job["job options"][k].as_str().or(v["global options"][k].as_str());
        let name = job["jobname"].as_str().unwrap_or("job");
        if let Some(e) = job["error"].as_i64().filter(|&e| e != 0) {
            b.notes.push(format!("job {name} ended with error {e}; its figures were left out"));
            continue;
        }
        let pattern = option("rw").or(option("readwrite")).unwrap_or("");
        for op in ["read", "write"] {
            let r = &job[op];
            let iops = r["iops"].as_f64().unwrap_or(0.0);
            let rate = r["bw_bytes"].as_f64().or(r["bw"].as_f64().map(|k| k * 1024.0)).unwrap_or(0.0);
            if iops <= 0.0 || rate <= 0.0 {
                continue;
            }
            let order = if pattern.contains("rand") {
                "random"
            } else if pattern.is_empty() {
                ""
            } else {
                "sequential"
            };
            let mixed = if is_mixed(pattern) { " (mixed)" } else { "" };
            let size = rate / iops;
            // "4k", or one for reads and one for writes.
            let mut each = option("bs").or(option("blocksize")).into_iter().flat_map(|b| b.split(','));
            let first = each.next();
            let block = if op == "write" { each.next().or(first) } else { first };
            let block = block.and_then(|b| b.split('-').next()?.parse::<Bytes>().ok());
            let shown = block.unwrap_or(Bytes(((size / 512.0).round().max(1.0) * 512.0) as u64));
            if let Some(block) = block.filter(|x| (size / x.0 as f64 - 1.0).abs() > 0.05) {
                b.flags.push(format!("{name}, {op}: {rate:.0} B/s at {iops:.1} IOPS is {size:.0} B each, but the block size is {block}"));
            }
            let depth = option("iodepth").unwrap_or("1");
            let direct = if option("direct") == Some("1") { ", direct" } else { ", through the page cache" };
            let together = ["job options", "global options"]
                .iter()
                .any(|o| job[o].get("group_reporting").is_some() || v[o].get("group_reporting").is_some());
            let jobs = jobs_text(option("numjobs").and_then(|n| n.parse().ok()), together);
            let conditions = format!("{shown}, depth {depth}{jobs}{direct}");
            let what = format!("{order} {op}{mixed}").trim().to_string();
            let mut figure = |name: String, value: f64, unit: &str| {
                if value.is_finite() && value > 0.0 {
                    b.metrics.push(Metric::new(&name, conditions.clone(), unit, &[value]));
                }
            };
            figure(what.clone(), rate / 1e3, "kB/s");
            figure(a_second(&what), iops, "IOPS");
            let mut push = |suffix: &str, value: f64, unit: &str| figure(format!("{what}{suffix}"), value, unit);
            // fio 3 counts in ns, fio 2 in µs.
            let (latency, per_us) = if r["lat_ns"].is_object() { (&r["lat_ns"], 1e3) } else { (&r["lat"], 1.0) };
            let (completion, per_completed_us) = if r["clat_ns"].is_object() { (&r["clat_ns"], 1e3) } else { (&r["clat"], 1.0) };
            push(", average time", latency["mean"].as_f64().unwrap_or(0.0) / per_us, "µs");
            push(", longest time", latency["max"].as_f64().unwrap_or(0.0) / per_us, "µs");
            let p99 = completion["percentile"]["99.000000"].as_f64().unwrap_or(0.0);
            push(", 99 % of the times", p99 / per_completed_us, "µs");
            if let Some(max) = completion["max"].as_f64().filter(|m| *m > 0.0 && p99 > m * 1.02) {
                b.flags.push(format!("{name}, {op}: the 99 % time ({p99}) is above the longest ({max})"));
            }
        }
    }
    if b.metrics.is_empty() {
        return Err("fio did no reads or writes, or all jobs failed".into());
    }
    Ok(b)
}

/// "29.71 GB" in f3's units (1024), as bytes.
fn f3_size(text: &str) -> Option<f64> {
    let mut words = text.split_whitespace();
    let value: f64 = words.next()?.parse().ok()?;
    let unit = words.next()?.trim_end_matches("/s");
    let power = ["Byte", "KB", "MB", "GB", "TB", "PB"].iter().position(|u| unit.starts_with(u))?;
    Some(value * 1024f64.powi(power as i32))
}

/// What came back wrong. Sectors with the data of other sectors are the sign of a card that begins anew where its flash ends.
fn lost(all: &str, others: Option<String>) -> String {
    match others {
        Some(o) => format!(
            "counterfeit or damaged: {o} of the data that were written came back as other data, the sign of a wraparound, {all} are lost"
        ),
        None => format!("{all} of the data that were written did not come back"),
    }
}

fn f3(text: &str) -> Result<Benchmark, String> {
    let mut b = Benchmark { tool: "f3", ..Benchmark::default() };
    let exact = |rest: &str| -> Option<u64> {
        let n = rest.split_once('(')?.1;
        let (count, unit) = n.split_once(' ')?;
        let count: u64 = count.parse().ok()?;
        (unit.starts_with("blocks") || unit.starts_with("sectors")).then(|| count.checked_mul(512)).flatten()
    };
    let (mut usable, mut announced, mut ok, mut gone, mut over) = (None, None, None, None, None);
    for line in text.lines() {
        let low = line.trim().trim_start_matches(['>', ' ', '\t']).to_lowercase();
        let Some((key, _)) = low.split_once(':') else { continue };
        let rest = line.split_once(':').map_or("", |x| x.1).trim();
        let size = || exact(rest).map(|x| x as f64).or_else(|| f3_size(rest));
        match key.trim().trim_matches('*').trim_start_matches('*') {
            "average writing speed" => {
                b.metrics.extend(f3_size(rest).map(|r| Metric::new("sequential write", "1 GiB files", "kB/s", &[r / 1e3])))
            }
            "average reading speed" => {
                b.metrics.extend(f3_size(rest).map(|r| Metric::new("sequential read", "1 GiB files", "kB/s", &[r / 1e3])))
            }
            k if k.contains("usable") && k.contains("size") => usable = size(),
            "announced size" => announced = size(),
            "approximate cache size" => {
                if let Some(s) = size().filter(|s| *s > 0.0) {
                    b.metrics.push(Metric::new("write cache", "f3probe", "KiB", &[s / 1024.0]));
                }
            }
            "data ok" => ok = size(),
            "data lost" => gone = size(),
            "overwritten" => over = size(),
            "good news" | "bad news" => b.notes.push(line.trim().to_string()),
            _ => {}
        }
        if low.starts_with("f3 ") && b.version.is_none() {
            b.version = Some(line.trim().to_string());
        }
    }
    b.capacity = announced.map(|a| a as u64);
    if let Some(u) = usable {
        b.metrics.push(Metric::new("usable size", "f3probe", "MiB", &[u / 1048576.0]));
    }
    if let (Some(u), Some(a)) = (usable, announced)
        && u < a
    {
        b.flags.push(format!("counterfeit or damaged: {} of {} announced are usable", about(u as u64), about(a as u64)));
    }
    if let Some(x) = ok {
        b.metrics.push(Metric::new("data read back right", "f3read", "MiB", &[x / 1048576.0]));
    }
    if let Some(l) = gone.filter(|l| *l > 0.0) {
        b.flags.push(lost(&about(l as u64), over.filter(|o| *o > 0.0).map(|o| about(o as u64))));
    }
    if b.metrics.is_empty() {
        return Err("f3 printed no result; was it cut off?".into());
    }
    Ok(b)
}

const IOZONE: [(&str, &str); 13] = [
    ("write", "sequential write"),
    ("rewrite", "sequential rewrite"),
    ("read", "sequential read"),
    ("reread", "sequential reread"),
    ("read", "random read"),
    ("write", "random write"),
    ("read", "backward read"),
    ("rewrite", "record rewrite"),
    ("read", "stride read"),
    ("fwrite", "fwrite"),
    ("frewrite", "frewrite"),
    ("fread", "fread"),
    ("freread", "freread"),
];

/// Words with the column in which they end, counted in characters.
fn words(line: &str) -> Vec<(usize, String)> {
    let mut out: Vec<(usize, String)> = vec![];
    let mut word = String::new();
    for (i, c) in line.replace('\t', "        ").chars().chain([' ']).enumerate() {
        match (c.is_whitespace(), word.is_empty()) {
            (false, _) => word.push(c),
            (true, false) => out.push((i, std::mem::take(&mut word))),
            (true, true) => {}
        }
    }
    out
}

fn iozone(text: &str) -> Result<Benchmark, String> {
    let mut b = Benchmark { tool: "iozone", ..Benchmark::default() };
    let direct = if text.contains("O_DIRECT feature enabled") || text.contains(" -I ") { ", direct" } else { ", through the page cache" };
    if let Some(v) = text.lines().find(|l| l.contains("Version $Revision:")) {
        b.version = v.split_once("Version").map(|x| format!("iozone {}", x.1.replace("$Revision:", "").replace('$', "").trim()));
    }
    if text.contains("Output is in ops/sec") || text.contains("microseconds/op") {
        return Err("iozone printed operations or times instead of kBytes/sec; run it without -N and -O".into());
    }
    let mut columns: Vec<(usize, &'static str)> = vec![];
    for line in text.lines() {
        let w = words(line);
        if w.iter().any(|x| x.1 == "reclen") {
            let skip = w.iter().position(|x| x.1 == "reclen").unwrap_or(0) + 1;
            let mut left = IOZONE.iter();
            columns = w[skip..].iter().filter_map(|(end, name)| left.find(|c| c.0 == name).map(|c| (*end, c.1))).collect();
            columns.insert(0, (w[skip - 1].0, "reclen"));
            continue;
        }
        let numbers: Vec<(usize, f64)> = w.iter().filter_map(|(e, t)| Some((*e, t.parse::<f64>().ok()?))).collect();
        if columns.len() < 2 || numbers.len() < 3 || numbers.len() != w.len() {
            continue;
        }
        // Pasted text may be indented otherwise than its heading: the record size shows by how much. Tests that were not run leave
        // holes, so a number belongs to the column in which it ends.
        let shift = numbers[1].0 as i64 - columns[0].0 as i64;
        let kib = |n: f64| Bytes((n as u64).saturating_mul(1024));
        let (file, record) = (kib(numbers[0].1), kib(numbers[1].1));
        let mut last = 0;
        for (end, kb) in &numbers[2..] {
            let at = *end as i64 - shift;
            let near = columns.iter().enumerate().skip(last + 1).min_by_key(|(_, c)| (c.0 as i64 - at).abs());
            let Some((i, c)) = near.filter(|(_, c)| (c.0 as i64 - at).abs() <= 3) else {
                b.flags.push(format!("a row of {record} does not stand under its heading; it was left out"));
                break;
            };
            last = i;
            if *kb > 0.0 {
                // iozone's kByte is 1024 bytes.
                b.metrics.push(Metric::new(c.1, format!("{record} in {file}{direct}"), "kB/s", &[kb * 1.024]));
            }
        }
    }
    if b.metrics.is_empty() {
        return Err("iozone's table has no rows that can be read".into());
    }
    Ok(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(b: &Benchmark, name: &str, conditions: &str) -> f64 {
        b.metrics.iter().find(|m| m.name == name && m.conditions.starts_with(conditions)).unwrap_or_else(|| panic!("{b:#?}")).value
    }

    #[test]
    fn iozone_with_holes() {
        let head = "                                                              random    random     bkwd    record    stride\n              kB  reclen    write  rewrite    read    reread    read     write     read   rewrite      read   fwrite frewrite    fread  freread\n";
        let b = read(
            "f",
            &format!("\tO_DIRECT feature enabled\n{head}          102400    1024   314600   325053                     374715   325762\n"),
        )
        .unwrap()
        .unwrap();
        assert!((value(&b, "random write", "1 MiB") - 325_762.0 * 1.024).abs() < 1.0, "{b:#?}");
        assert!(!b.metrics.iter().any(|m| m.name == "sequential read"));
        let b = read("f", &format!("{head}          102400       4     2604     2666    12185    12207     9959     2652   \n"))
            .unwrap()
            .unwrap();
        assert!((value(&b, "random write", "4 KiB") - 2652.0 * 1.024).abs() < 0.1 && b.metrics.len() == 6);
        assert!(read("f", head).unwrap().is_err());
    }

    #[test]
    fn f3_real_and_counterfeit() {
        let b = read("f", "Bad news: The device `/dev/sdb' is a counterfeit of type limbo\n\n\t         *Usable* size: 7.86 GB (16477879 blocks)\n\t        Announced size: 15.33 GB (32155648 blocks)\n\tApproximate cache size: 1.00 MB (2048 blocks)\n").unwrap().unwrap();
        assert_eq!(b.capacity, Some(32_155_648 * 512));
        assert!(b.flags[0].starts_with("counterfeit") && value(&b, "write cache", "") == 1024.0);
        let b = read("f", "Average writing speed: 4.90 MB/s\nData OK: 29.71 GB (62301184 sectors)\nData LOST: 0.00 Byte (0 sectors)\nAverage reading speed: 9.42 MB/s").unwrap().unwrap();
        assert!((value(&b, "sequential write", "") - 4.90 * 1048.576).abs() < 1e-6 && b.flags.is_empty());
        // As h2testw's: what came back as other data is the sign of a wraparound.
        let wrapped = "Data OK: 1.17 GB (2453504 sectors)\nData LOST: 27.83 GB (58363904 sectors)\n\t       Corrupted: 0.00 Byte (0 sectors)\n\t     Overwritten: 27.83 GB (58363904 sectors)\nAverage reading speed: 9.42 MB/s";
        let b = read("f", wrapped).unwrap().unwrap();
        assert!(b.flags[0].starts_with("counterfeit or damaged: 27.8 GiB") && b.flags[0].contains("wraparound"), "{:?}", b.flags);
        let b =
            read("f", &wrapped.replace("Overwritten: 27.83 GB (58363904 sectors)", "Overwritten: 0.00 Byte (0 sectors)")).unwrap().unwrap();
        assert!(b.flags[0].ends_with("did not come back"), "{:?}", b.flags);
    }

    #[test]
    fn fio_three() {
        let text = r#"fio: warning
{"fio version":"fio-3.33","global options":{"bs":"4k","iodepth":"8","direct":"1"},"jobs":[{"jobname":"w","error":0,"job options":{"rw":"randwrite"},
 "read":{"iops":0,"bw_bytes":0},"write":{"iops":500.0,"bw_bytes":2048000,"lat_ns":{"mean":2000000.0,"max":90000000},"clat_ns":{"max":90000000,"percentile":{"99.000000":80000000}}}}]}"#;
        let b = read("f", text).unwrap().unwrap();
        assert_eq!(value(&b, "random writes a second", "4 KiB, depth 8, direct"), 500.0);
        assert_eq!((value(&b, "random write", "4 KiB"), value(&b, "random write, longest time", "4 KiB")), (2048.0, 90_000.0));
        assert!(b.flags.is_empty());
        // Without the sum of both, and with what a console prints around it.
        let part = text.replace(r#""lat_ns":{"mean":2000000.0,"max":90000000},"#, "");
        assert_eq!(value(&read("f", &part).unwrap().unwrap(), "random write, 99 % of the times", "4 KiB"), 80_000.0);
        let console: String = format!("{text}\nroot@pi:~# ").lines().map(|l| format!("[   12.3] \u{1b}[0m{l}\n")).collect();
        let b = read("f", &console).unwrap().unwrap();
        assert_eq!((value(&b, "random write", "4 KiB"), b.notes.len()), (2048.0, 0));
        let lie = text.replace("2048000", "9048000").replace("80000000}", "99000000}");
        assert_eq!(read("f", &lie).unwrap().unwrap().flags.len(), 2);
        assert!(read("f", &text[..300]).unwrap().unwrap_err().contains("cut off"));
        assert!(read("f", "{\"x\": 1}").is_none() && read("f", "hello").is_none());
    }
}

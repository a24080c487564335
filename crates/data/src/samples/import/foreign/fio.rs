//! fio's JSON.

use super::{Benchmark, a_second, is_mixed, jobs_text};
use crate::samples::metric::Metric;
use crate::units::Bytes;
use serde_json::Value;

/// The results that a text holds one after the other, whatever a shell says before them and between.
pub fn read(text: &str) -> Result<Benchmark, String> {
    let mut b = Benchmark { tool: "fio", ..Benchmark::default() };
    let (mut rest, mut results) = (text, 0);
    while let Some((_, from)) = rest.find('{').map(|at| rest.split_at(at)) {
        let mut documents = serde_json::Deserializer::from_str(from).into_iter::<Value>();
        let why = match documents.next() {
            Some(Ok(v)) => run(&v, &mut b).err().map(str::to_string),
            Some(Err(e)) if e.is_eof() => Some(format!("it ends too early ({e}), as if cut off")),
            Some(Err(e)) => Some(e.to_string()),
            None => Some("no JSON".into()),
        };
        match why {
            Some(why) if results == 0 => return Err(why),
            Some(why) => {
                b.notes.push(format!("what follows result {results} of fio was left out: {why}"));
                break;
            }
            None => results += 1,
        }
        rest = &from[documents.byte_offset()..];
    }
    if b.metrics.is_empty() {
        return Err("fio did no reads or writes, or all jobs failed".into());
    }
    Ok(b)
}

/// One result.
fn run(v: &Value, b: &mut Benchmark) -> Result<(), &'static str> {
    b.version = b.version.take().or(v["fio version"].as_str().map(str::to_string));
    let jobs = v["jobs"].as_array().ok_or("it has no jobs")?;
    for job in jobs {
        let option = |k: &str| job["job options"][k].as_str().or(v["global options"][k].as_str());
        let name = job["jobname"].as_str().unwrap_or("job");
        if let Some(e) = job["error"].as_i64().filter(|&e| e != 0) {
            b.notes.push(format!("job {name} ended with error {e}; its figures were left out"));
            continue;
        }
        b.of([None, option("filename").or(option("directory")).map(str::to_string), Some(format!("job {name}"))]);
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
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::{read, value};

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

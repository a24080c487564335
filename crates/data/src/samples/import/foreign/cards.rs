//! Results of other testers of cards: mfst (state and statistics), and the measurements of uSD-FS.

use super::{Benchmark, sdmon};
use crate::samples::metric::{Metric, Over};
use crate::units::Bytes;
use serde_json::Value;

/// One of these, where the text is one.
pub fn read(text: &str) -> Option<Result<Benchmark, String>> {
    let start = text.trim_start();
    if start.starts_with("Date/Time,Rounds Completed,Bytes Written") {
        return Some(mfst_stats(text));
    }
    if sdmon::is_text(text) {
        return Some(sdmon::read(text));
    }
    if !start.starts_with('{') {
        return None;
    }
    if text.contains("\"device_geometry\"") && text.contains("\"device_info\"") {
        return Some(parsed(text).and_then(|v| mfst(&v)));
    }
    if text.contains("\"registers_hex\"") {
        return Some(parsed(text).and_then(|v| p2(&v)));
    }
    None
}

fn parsed(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|e| if e.is_eof() { format!("it ends too early ({e}), as if cut off") } else { e.to_string() })
}

fn mfst(v: &Value) -> Result<Benchmark, String> {
    let mut b = Benchmark { tool: "mfst", version: v["version"].as_u64().map(|n| format!("mfst state {n}")), ..Benchmark::default() };
    let g = &v["device_geometry"];
    let (reported, found) = (g["reported_size"].as_u64(), g["detected_size"].as_u64());
    b.capacity = reported;
    if let (Some(r), Some(f)) = (reported, found)
        && f < r
    {
        b.flags.push(format!("counterfeit or damaged: {} of {} announced were found", Bytes(f), Bytes(r)));
    }
    let info = &v["device_info"];
    let block = info["block_size"].as_u64().map_or("block not stated".into(), |s| Bytes(s).to_string());
    for (key, name, conditions, unit, factor) in [
        ("sequential_read_speed", "sequential read", format!("{block}, mfst"), "kB/s", 1e-3),
        ("sequential_write_speed", "sequential write", format!("{block}, mfst"), "kB/s", 1e-3),
        ("random_read_iops", "random reads a second", "4 KiB, mfst".into(), "IOPS", 1.0),
        ("random_write_iops", "random writes a second", "4 KiB, mfst".into(), "IOPS", 1.0),
    ] {
        if let Some(x) = info[key].as_f64().filter(|x| *x > 0.0) {
            b.metrics.push(Metric::new(name, conditions, unit, &[x * factor]));
        }
    }
    let state = &v["state"];
    let rounds = |key: &str| state[key].as_u64().map(|n| n as f64);
    for (key, name) in [
        ("rounds_completed", "rounds written"),
        ("first_failure_round", "rounds to the first error"),
        ("rounds_to_0_1_threshold", "rounds to 0.1 % bad"),
        ("rounds_to_1_threshold", "rounds to 1 % bad"),
        ("ten_percent_failure_round", "rounds to 10 % bad"),
        ("twenty_five_percent_failure_round", "rounds to 25 % bad"),
    ] {
        b.metrics.extend(rounds(key).map(|n| Metric::new(name, "whole card, mfst", "rounds", &[n])));
    }
    match (rounds("rounds_completed"), rounds("first_failure_round")) {
        (Some(done), None) => b.notes.push(format!("no error in {done} rounds so far")),
        (_, Some(first)) => b.flags.push(format!("sectors failed from round {first} on")),
        (None, None) => {}
    }
    if b.metrics.is_empty() { Err("the state of mfst holds no figures".into()) } else { Ok(b) }
}

fn mfst_stats(text: &str) -> Result<Benchmark, String> {
    let mut b = Benchmark { tool: "mfst", version: Some("mfst statistics".into()), ..Benchmark::default() };
    let rows: Vec<Vec<f64>> = text
        .lines()
        .filter(|l| !l.starts_with("Date/Time"))
        .map(|l| l.split(',').skip(1).map_while(|c| c.trim().parse().ok()).collect::<Vec<f64>>())
        .filter(|r| r.len() == 10 && r.iter().all(|v| v.is_finite() && *v >= 0.0))
        .collect();
    for (column, name) in [(3, "sequential write"), (6, "sequential read")] {
        // An interval in which both were done shows the rate of neither.
        let rates: Vec<f64> = rows.iter().filter(|r| r[column] > 0.0 && r[9 - column] == 0.0).map(|r| r[column] / 1e3).collect();
        if !rates.is_empty() {
            b.metrics.push(Metric::new(name, "a minute each, mfst", "kB/s", &rates));
        }
    }
    if let Some(last) = rows.last() {
        b.metrics.push(Metric::new("rounds written", "whole card, mfst", "rounds", &[last[0]]));
        b.metrics.push(Metric::new("bad sectors", "whole card, mfst", "sectors", &[last[8]]));
        if last[8] > 0.0 {
            b.flags.push(format!("{} sectors failed", last[8]));
        }
    }
    if rows.is_empty() { Err("the statistics of mfst hold no rows that can be read".into()) } else { Ok(b) }
}

/// The measurements of uSD-FS: a card, its registers, and runs at several clocks.
fn p2(v: &Value) -> Result<Benchmark, String> {
    let mut b = Benchmark { tool: "uSD-FS", name: v["title"].as_str().map(str::to_string), ..Benchmark::default() };
    for (key, hex) in v["registers_hex"].as_object().into_iter().flatten() {
        if let Some(hex) = hex.as_str().filter(|h| !h.is_empty() && h.len() <= 128 && h.chars().all(|c| c.is_ascii_hexdigit())) {
            b.registers.push((key.to_lowercase(), hex.into()));
        }
    }
    let runs = v.as_object().into_iter().flatten().find_map(|x| x.1.as_array().filter(|a| a.iter().any(|r| r["rows"].is_array())));
    for run in runs.into_iter().flatten() {
        let clock = run["spi_khz"].as_f64().map_or("SPI".into(), |k| format!("SPI at {} MHz", k / 1e3));
        for r in run["rows"].as_array().into_iter().flatten() {
            let Some(op) = r["op"].as_str().map(|o| o.replace('_', " ")) else { continue };
            let size = r["bytes"].as_u64().map_or(String::new(), |s| format!("{}, ", Bytes(s)));
            let conditions = format!("{size}{clock}, uSD-FS");
            if r["error"] == true {
                b.notes.push(format!("{op}, {conditions}: failed"));
                continue;
            }
            let number = |key: &str| r[key].as_f64().filter(|x| *x > 0.0);
            b.metrics.extend(number("kb_s").map(|x| Metric::new(&op, conditions.clone(), "kB/s", &[x])));
            b.metrics.extend(number("avg_us").map(|x| Metric::new(&format!("{op}, average time"), conditions.clone(), "µs", &[x])));
            let longest =
                number("max_us").map(|x| Metric::new(&format!("{op}, longest time"), conditions.clone(), "µs", &[x]).over(Over::Longest));
            b.metrics.extend(longest);
            if let (Some(rate), Some(bytes), Some(us)) = (number("kb_s"), r["bytes"].as_f64(), number("avg_us"))
                && (bytes / us * 1e3 / rate - 1.0).abs() > 0.05 + 1.0 / rate
            {
                b.flags.push(format!("{op}, {conditions}: {rate} kB/s and {us} µs contradict each other"));
            }
        }
    }
    if b.metrics.is_empty() && b.registers.is_empty() { Err("the measurements hold no rows and no registers".into()) } else { Ok(b) }
}

//! Result files of uFLIP (FlashIO): RES_*.csv, one row a run of an experiment.

use super::Benchmark;
use crate::samples::metric::{Metric, Over};
use crate::units::Bytes;

/// Whether the heading is that of a result file.
pub fn is_result(text: &str) -> bool {
    let head = text.trim_start().lines().next().unwrap_or("");
    let names: Vec<&str> = head.split(';').map(str::trim).collect();
    names.len() >= 18 && ["Comment", "RunID", "Base", "IoSize", "AvgIO", "MaxIO"].iter().all(|n| names.contains(n))
}

/// What the runs of one experiment with one set of parameters took, in µs.
struct Group {
    key: String,
    what: String,
    mean: Vec<f64>,
    most: Vec<f64>,
}

pub fn read(text: &str) -> Result<Benchmark, String> {
    let mut b = Benchmark { tool: "uFLIP", version: Some("uFLIP (FlashIO)".into()), ..Benchmark::default() };
    let mut lines = text.trim_start().lines();
    let names: Vec<&str> = lines.next().unwrap_or("").split(';').map(str::trim).collect();
    let (mut groups, mut damaged): (Vec<Group>, usize) = (vec![], 0);
    for line in lines.filter(|l| !l.trim().is_empty()) {
        let cells: Vec<&str> = line.split(';').map(str::trim).collect();
        let text = |name: &str| names.iter().position(|n| *n == name).and_then(|i| cells.get(i)).copied().unwrap_or("");
        let number = |name: &str| text(name).parse::<f64>().ok().filter(|v| v.is_finite() && *v >= 0.0);
        let what = match text("Base") {
            "SR" => "sequential read",
            "RR" => "random read",
            "SW" => "sequential write",
            "RW" => "random write",
            _ => "",
        };
        let (Some(mean), Some(most), Some(size), false) = (number("AvgIO"), number("MaxIO"), number("IoSize"), what.is_empty()) else {
            damaged += 1;
            continue;
        };
        if most < mean {
            b.flags.push(format!("{}: the longest ({most} µs) is below the mean ({mean} µs)", text("Comment")));
        }
        b.capacity = b.capacity.or(number("TotFile").map(|s| (s.trunc() * 512.0) as u64).filter(|s| *s > 0));
        let mut conditions = format!("{}, {}", Bytes((size * 1024.0) as u64), text("Comment"));
        let mixed = ["SR", "RR", "SW", "RW"].contains(&text("Base1"));
        if mixed {
            conditions += &format!(", with {}", text("Base1"));
        }
        // What differs from one plain stream. An increment may be 0 (in place) or -1 (backwards).
        for (name, usual, word) in [
            ("PDeg", [1.0, 0.0], "parallel"),
            ("Order", [1.0, 1.0], "increment"),
            ("NbPart", [1.0, 0.0], "partitions"),
            ("Shift", [0.0, 0.0], "KiB shifted"),
            ("PauseIO", [0.0, 0.0], "µs pause"),
            ("Burst", [0.0, 0.0], "in a burst"),
            ("pauseBurst", [0.0, 0.0], "µs between bursts"),
            ("Ratio", [1.0, 1.0], "to one"),
        ] {
            let idle = name == "pauseBurst" && number("Burst").is_none_or(|n| n == 0.0) || name == "Ratio" && !mixed;
            if let Some(v) = text(name).parse::<f64>().ok().filter(|v| v.is_finite() && !usual.contains(v) && !idle) {
                conditions += &format!(", {v} {word}");
            }
        }
        let size = number("TSize").filter(|v| *v > 0.0).map_or(String::new(), |k| format!(", in {}", Bytes((k * 1024.0) as u64)));
        conditions += &size;
        let what = if mixed { format!("{what} (mixed)") } else { what.to_string() };
        match groups.iter().position(|g| g.what == what && g.key == conditions) {
            Some(i) => {
                groups[i].mean.push(mean);
                groups[i].most.push(most);
            }
            None if groups.len() < 5000 => groups.push(Group { key: conditions, what, mean: vec![mean], most: vec![most] }),
            None => damaged += 1,
        }
    }
    if damaged > 0 {
        b.notes.push(format!("{damaged} rows cannot be read and were left out"));
    }
    for g in groups {
        b.metrics.push(Metric::new(&format!("{}, average time", g.what), format!("{}, uFLIP", g.key), "µs", &g.mean));
        b.metrics.push(Metric::new(&format!("{}, longest time", g.what), format!("{}, uFLIP", g.key), "µs", &g.most).over(Over::Longest));
    }
    if b.metrics.is_empty() { Err("the result file of uFLIP has no rows that can be read".into()) } else { Ok(b) }
}

//! Figures of an entry: rates of a report's linear writes, and the rows of a record benchmark.

use crate::device::Op;
use crate::finding::Quantity;
use crate::report::Report;
use crate::samples::import::BenchPass;
use crate::samples::metric::{Metric, Over};
use crate::samples::records::contradiction;
use crate::samples::{Run, Sample};
use crate::units::Bytes;
use std::collections::BTreeMap;

/// Rates of linear writes, by size.
pub fn report_metrics(r: &Report) -> Vec<Metric> {
    let block =
        r.findings.value(Quantity::EraseBlock, 0.75).map(|b| (b, r.findings.value(Quantity::EraseBlockOffset, 0.75).unwrap_or(0.0)));
    let mut out = vec![];
    for run in r.runs.iter().filter(|run| run.experiment == "write-unit") {
        // A card that collects writes has fast ones and slow ones: a rate is all the bytes of a trial by all its time.
        let mut by: BTreeMap<u64, BTreeMap<(u32, u32), Vec<f64>>> = BTreeMap::new();
        for s in within_an_au(run, block) {
            by.entry(s.len).or_default().entry((s.cell, s.trial)).or_default().push(s.took.secs());
        }
        for (len, trials) in by.into_iter().filter(|t| t.0.is_power_of_two()) {
            let (n, seconds) = trials.values().flatten().fold((0u32, 0.0), |(n, s), t| (n + 1, s + t));
            if n < 2 || seconds <= 0.0 {
                continue;
            }
            let rate = |n: usize, seconds: f64| (len as f64 * n as f64 / 100.0 / seconds).round() / 10.0;
            // Thirty of them carry the interval as well as all.
            let rates: Vec<f64> = trials.values().take(30).map(|t| rate(t.len(), t.iter().sum::<f64>().max(1e-9))).collect();
            let m = Metric::new("sequential write, one AU", Bytes(len).to_string(), "kB/s", &rates);
            out.push(Metric { value: rate(n as usize, seconds), ..m });
        }
    }
    out
}

/// Writes that go on where the one before ended, in the same erase block (its size and offset, bytes): those that open one, behind a gap
/// or over its end, may wait for a merge, which is told as a merge cost and would make one size look slow beside the next.
fn within_an_au(run: &Run, block: Option<(f64, f64)>) -> Vec<Sample> {
    let au = |at: u64| block.map_or(0.0, |(size, offset)| ((at as f64 - offset) / size).floor());
    let mut last: Option<Sample> = None;
    let mut out = vec![];
    for s in run.samples.iter().filter(|s| matches!(s.op, Op::Write(_))) {
        let goes_on = last.is_some_and(|l| (l.cell, l.trial) == (s.cell, s.trial) && l.at + l.len == s.at && au(l.at) == au(s.at));
        if goes_on && au(s.at) == au(s.at + s.len - 1) {
            out.push(*s);
        }
        last = Some(*s);
    }
    out
}

/// Figures of a record benchmark, and what the consistency rule (G7) says of them. Longest and shortest are those of all
/// passes. `suffix` names further conditions.
pub fn bench_metrics(record: Option<u32>, suffix: &str, passes: &[BenchPass]) -> (Vec<Metric>, Vec<String>) {
    let conditions = record.map_or("records of unknown size".to_string(), |r| format!("{r} B records")) + suffix;
    let mut metrics = vec![];
    let mut flags = vec![];
    for (write, name) in [(true, "record write"), (false, "record read")] {
        let of: Vec<&BenchPass> = passes.iter().filter(|p| p.write == write).collect();
        if of.is_empty() {
            continue;
        }
        let wrong = |p: &&BenchPass| contradiction(record.map(u64::from), p.speed, [p.max, p.min, p.avg]);
        flags.extend(of.iter().filter_map(wrong).map(|why| format!("{name}, {conditions}: {why}")));
        let all = |f: &dyn Fn(&BenchPass) -> f64| of.iter().map(|p| f(p)).filter(|x| x.is_finite()).collect::<Vec<f64>>();
        // Where only speeds were published there are no times.
        let mut push = |name: &str, unit: &str, values: Vec<f64>, over: Over| {
            if !values.is_empty() {
                metrics.push(Metric::new(name, conditions.clone(), unit, &values).over(over));
            }
        };
        push(name, "kB/s", all(&|p| p.speed), Over::Median);
        push(&format!("{name}, longest time"), "µs", all(&|p| p.max), Over::Longest);
        push(&format!("{name}, shortest time"), "µs", all(&|p| p.min), Over::Shortest);
        push(&format!("{name}, average time"), "µs", all(&|p| p.avg), Over::Median);
    }
    (metrics, flags)
}

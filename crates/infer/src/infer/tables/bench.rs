//! File rates and the longest write from SdFat-style benchmarks (G1-G9), one buffer size at a time.
//!
//! A pass whose average and speed cannot belong together (G7: size / speed = average + a small loop) is left out. With records
//! shorter than a sector, two populations share the average: records that stay in the library's buffer and records that
//! make it write (G3).

use crate::finding::{Finding, Quantity};
use crate::infer::stats::{median, quantile};
use crate::samples::import::{BenchPass, BenchTest, Place, Tables};
use crate::samples::records::{contradiction, loop_time};
use crate::units::{between, rate, three};
use serde::{Deserialize, Deserializer, Serialize};

/// A library's buffer is one sector.
const SECTOR: f64 = 512.0;

/// What made the calls, and bytes of a record.
type Key = (Option<String>, Option<u32>);

/// One host and one record size: the passes in one direction, as one row of a table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    pub host: Option<String>,
    /// Bytes; `None` where the text does not name it.
    pub record: Option<u32>,
    pub write: bool,
    pub passes: usize,
    /// kB/s (1000): median of the passes.
    pub speed: f64,
    /// µs: the longest of all passes, the shortest of all, the median of the averages; not a number where none was printed.
    #[serde(deserialize_with = "or_nan")]
    pub max: f64,
    #[serde(deserialize_with = "or_nan")]
    pub min: f64,
    #[serde(deserialize_with = "or_nan")]
    pub avg: f64,
    /// File and line of the first pass.
    pub place: String,
}

/// JSON has null for what is not a number.
fn or_nan<'de, D: Deserializer<'de>>(d: D) -> Result<f64, D::Error> {
    Ok(Option::<f64>::deserialize(d)?.unwrap_or(f64::NAN))
}

/// All that was read, by host and record size, in the order of the text.
pub fn figures(tables: &Tables) -> Vec<Figure> {
    let mut out = vec![];
    for ((host, record), tests) in groups(tables) {
        for write in [true, false] {
            let all = passes(&tests, write);
            let Some(first) = all.first() else { continue };
            let of = |f: fn(&BenchPass) -> f64| all.iter().map(|p| f(p)).filter(|x| x.is_finite()).collect::<Vec<f64>>();
            let place = Place { line: first.line, ..tests[0].place };
            out.push(Figure {
                host: host.clone(),
                record,
                write,
                passes: all.len(),
                speed: median(&of(|p| p.speed)),
                max: quantile(&of(|p| p.max), 1.0),
                min: quantile(&of(|p| p.min), 0.0),
                avg: median(&of(|p| p.avg)),
                place: tables.at(place),
            });
        }
    }
    out
}

/// Rates of different record sizes, or of different hosts, are different things.
fn groups(tables: &Tables) -> Vec<(Key, Vec<&BenchTest>)> {
    let mut out: Vec<(Key, Vec<&BenchTest>)> = vec![];
    for t in &tables.bench {
        let key = (t.host.clone(), t.buffer);
        match out.iter_mut().find(|g| g.0 == key) {
            Some(g) => g.1.push(t),
            None => out.push((key, vec![t])),
        }
    }
    out
}

pub fn infer(tables: &Tables) -> Vec<Finding> {
    let groups = groups(tables);
    // One host and one record size speak: those with the most passes; of equals the larger records, which no buffer hides.
    let count = |g: &Vec<&BenchTest>| g.iter().map(|t| t.passes.len()).sum::<usize>();
    let mut out = vec![];
    for write in [true, false] {
        let sound = |g: &(Key, Vec<&BenchTest>)| passes(&g.1, write).iter().any(|p| impossible(p, g.0.1.map(u64::from)).is_none());
        let Some(main) = groups.iter().max_by_key(|g| (sound(g), count(&g.1), g.0.1)) else { continue };
        let mut of = judge(tables, main, write);
        if let Some(f) = of.first_mut() {
            for g in groups.iter().filter(|g| g.0 != main.0) {
                let record = g.0.1.map(u64::from);
                let all = passes(&g.1, write);
                let v: Vec<f64> = all.iter().filter(|p| impossible(p, record).is_none()).map(|p| p.speed).collect();
                if !v.is_empty() {
                    f.evidence.push(format!("{}: {} {}", size(&g.0), rate(median(&v) * 1e3), if write { "written" } else { "read" }));
                }
                f.caveats.extend(all.iter().filter_map(|p| Some(format!("line {}: {}", p.line, impossible(p, record)?))));
            }
        }
        out.extend(of);
    }
    out
}

/// "records of 100 B, Arduino".
fn size((host, record): &Key) -> String {
    let size = record.map_or("records of unknown size".to_string(), |b| format!("records of {b} B"));
    host.as_ref().map_or(size.clone(), |h| format!("{size}, {h}"))
}

fn passes<'a>(tests: &[&'a BenchTest], write: bool) -> Vec<&'a BenchPass> {
    tests.iter().flat_map(|t| &t.passes).filter(|p| p.write == write && p.speed > 0.0).collect()
}

/// Why a pass cannot be what it says; `None` when it can.
fn impossible(p: &BenchPass, record: Option<u64>) -> Option<String> {
    contradiction(record, p.speed, [p.max, p.min, p.avg])
}

fn judge(tables: &Tables, (key, tests): &(Key, Vec<&BenchTest>), write: bool) -> Vec<Finding> {
    let all = passes(tests, write);
    let (q, name) = if write { (Quantity::FileWriteRate, "write") } else { (Quantity::FileReadRate, "read") };
    if all.is_empty() {
        return vec![];
    }
    let record = key.1.map(u64::from);
    let bad: Vec<String> = all.iter().filter_map(|p| Some(format!("line {}: {}", p.line, impossible(p, record)?))).collect();
    let good: Vec<&BenchPass> = all.iter().copied().filter(|p| impossible(p, record).is_none()).collect();
    let place = tables.at(tests[0].place);
    let size = size(key);
    let from = |mut f: Finding| {
        f.from = vec![format!("file benchmark, {name} ({place}, {} {})", all.len(), if all.len() == 1 { "pass" } else { "passes" })];
        f.caveats.extend(bad.iter().cloned());
        f
    };
    if good.is_empty() {
        return vec![from(Finding::undecided(q, "no pass is consistent with itself"))];
    }
    let of = |f: fn(&BenchPass) -> f64| good.iter().map(|p| f(p)).filter(|x| x.is_finite()).collect::<Vec<f64>>();
    let speeds = of(|p| p.speed * 1e3);
    let (v, lo, hi) = (median(&speeds), quantile(&speeds, 0.0), quantile(&speeds, 1.0));
    // One host, several settings (shared and dedicated bus): no single rate.
    if hi > 2.0 * lo {
        let why = format!("passes differ from {} to {}: different settings, or a card that was busy", rate(lo), rate(hi));
        return vec![from(Finding::undecided(q, why))];
    }
    let mut f = Finding::decided(q, (v / 10.0).round() * 10.0, if good.len() > 1 { 0.92 } else { 0.85 });
    if good.len() > 1 {
        f.interval = Some([lo, hi].map(f64::round));
    } else {
        f = f.caveat("from one pass: how far passes differ is not known");
    }
    let (min, avg, max) = (median(&of(|p| p.min)), median(&of(|p| p.avg)), quantile(&of(|p| p.max), 1.0));
    let runs = format!("{} {}", good.len(), if good.len() == 1 { "pass" } else { "passes" });
    if !avg.is_finite() {
        return vec![from(f.evidence(format!("{size}, in {runs}; the times of single records were not published")))];
    }
    f = f.evidence(format!("{size}: {} µs each, {} on average, in {runs}", between(&three(min), &three(max)), three(avg)));
    if let Some(r) = record {
        let over = median(&good.iter().map(|p| loop_time(r, p.speed, p.avg)).collect::<Vec<_>>());
        f = f.evidence(format!("the loop around a record takes {} µs", three(over)));
    }
    if let Some(r) = record.map(|r| r as f64).filter(|&r| r < SECTOR && avg > 1.5 * min) {
        // A record of r bytes crosses the end of a sector r times in 512.
        let share = r / SECTOR;
        let direct = (avg - (1.0 - share) * min) / share;
        f = f.evidence(format!(
            "two populations: {:.0} % of the records stay in a buffer of one sector ({} µs), the others take about {} µs",
            100.0 * (1.0 - share),
            three(min),
            three(direct)
        ));
    }
    let mut out = vec![from(f)];
    if write {
        let worst = of(|p| p.max / 1e3);
        let (lo, hi) = (quantile(&worst, 0.0), quantile(&worst, 1.0));
        let mut w = Finding::decided(Quantity::WorstWriteMs, (hi * 100.0).round() / 100.0, 0.85)
            .evidence(format!("{size}: the longest call of {runs} took {} ms", super::span(worst.iter().copied())))
            .evidence(format!(
                "to keep writing at half of this rate through it, a buffer of {} kB is enough",
                three((v / 2.0 * hi / 1e3 / 1e3).max(0.01))
            ));
        if good.len() > 1 {
            w.interval = Some([lo, hi].map(|x| (x * 100.0).round() / 100.0));
        }
        if max > 10.0 * avg {
            w = w.caveat("seen in a file of a few MB: a longer one may show a longer one");
        }
        out.push(from(w));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::import::read;

    fn of(text: &str) -> Vec<Finding> {
        infer(&read(&[("t", text)]).unwrap())
    }

    /// G3, G5: records of 100 B.
    #[test]
    fn records_below_a_sector_show_two_populations() {
        let f =
            of("BUF_SIZE = 100 bytes\nWrite 278.40 KB/sec\nMaximum latency: 84916 usec, Minimum Latency: 84 usec, Avg Latency: 354 usec\n");
        assert!(f[0].number() == Some(278_400.0) && f[0].confidence >= 0.8, "{f:?}");
        assert!(f[0].evidence.iter().any(|e| e.contains("80 %") && e.contains("two populations")), "{f:?}");
        assert_eq!(f[1].number(), Some(84.92));
    }

    /// G7: the ATP card's 512 B write.
    #[test]
    fn a_pass_that_cannot_be_is_left_out() {
        let text =
            |speed: f64, avg: u32| format!("Buffer size 512 bytes\nwrite speed and latency\nspeed,max,min,avg\n{speed},62500,1184,{avg}\n");
        let f = of(&text(392.32, 1339));
        assert!(f[0].value.is_none() && f[0].caveats.iter().any(|c| c.contains("not of one pass")), "{f:?}");
        assert_eq!(of(&text(392.32, 1299))[0].number(), Some(392_320.0));
    }
}

//! Two classes of cards by their record benchmarks (G4, G6): how many times faster one is, at each size of a record.

use super::lots::{Centres, centres};
use crate::infer::stats::median;
use crate::samples::records::contradiction;
use crate::units::three;
use serde::Serialize;
use serde_json::Value;

/// One card at one size of a record.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub card: String,
    pub host: String,
    pub record: u64,
    pub write: bool,
    /// kB/s (1000).
    pub speed: f64,
    /// µs: longest, shortest, mean.
    pub times: [f64; 3],
}

/// One class against another at one size of a record.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ratio {
    pub record: u64,
    pub write: bool,
    /// Cards of each class that have the figure.
    pub cards: [usize; 2],
    /// kB/s: the median of each class.
    pub medians: [f64; 2],
    /// The first median over the second.
    pub ratio: f64,
    /// The slowest of the first class over the fastest of the second, and the fastest over the slowest.
    pub range: [f64; 2],
    /// Cards whose figures contradict themselves; they are not counted.
    pub left_out: Vec<String>,
    /// The cards were not all measured through one host.
    pub hosts: Vec<String>,
}

/// The passes of what `bench --json` writes; of several passes of one card at one size the median counts.
///
/// # Errors
/// The JSON is no benchmark.
pub fn rows(v: &Value) -> Result<Vec<Row>, String> {
    let benches = v["benches"].as_array().ok_or("it is not what `bench --json` writes")?;
    let mut out: Vec<(Row, Vec<f64>, Vec<f64>)> = vec![];
    for b in benches {
        let text = |key: &str| b[key].as_str().unwrap_or_default().to_string();
        for p in b["passes"].as_array().into_iter().flatten() {
            let number = |key: &str| p[key].as_f64().unwrap_or(f64::NAN);
            let row = Row {
                card: text("target"),
                host: text("host"),
                record: b["record"].as_u64().unwrap_or(0),
                write: p["write"].as_bool().unwrap_or(true),
                speed: number("speed_kb_s"),
                times: [number("max_us"), number("min_us"), number("avg_us")],
            };
            match out.iter_mut().find(|(r, ..)| (&r.card, &r.host, r.record, r.write) == (&row.card, &row.host, row.record, row.write)) {
                Some((r, speeds, means)) => {
                    speeds.push(row.speed);
                    means.push(row.times[2]);
                    (r.speed, r.times[2]) = (median(speeds), median(means));
                    (r.times[0], r.times[1]) = (r.times[0].max(row.times[0]), r.times[1].min(row.times[1]));
                }
                None => {
                    let (speed, mean) = (row.speed, row.times[2]);
                    out.push((row, vec![speed], vec![mean]));
                }
            }
        }
    }
    Ok(out.into_iter().map(|r| r.0).collect())
}

/// Every size of a record and direction that both classes have: writes first, the smallest record first.
pub fn classes(a: &[Row], b: &[Row]) -> Vec<Ratio> {
    let mut sizes: Vec<(bool, u64)> = a.iter().map(|r| (!r.write, r.record)).collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes.into_iter().filter_map(|(read, record)| ratio(a, b, record, !read)).collect()
}

fn ratio(a: &[Row], b: &[Row], record: u64, write: bool) -> Option<Ratio> {
    let mut left_out = vec![];
    let mut hosts: Vec<String> = vec![];
    let mut of = |rows: &[Row]| -> Vec<f64> {
        let mine = rows.iter().filter(|r| r.record == record && r.write == write && r.speed.is_finite());
        mine.filter(|r| {
            let wrong = contradiction(Some(record), r.speed, r.times).is_some();
            if wrong {
                left_out.push(r.card.clone());
            } else if !hosts.contains(&r.host) {
                hosts.push(r.host.clone());
            }
            !wrong
        })
        .map(|r| r.speed)
        .collect()
    };
    let (x, y) = (of(a), of(b));
    let Centres { medians, ratio, range } = centres(&x, &y)?;
    Some(Ratio { record, write, cards: [x.len(), y.len()], medians, ratio, range, left_out, hosts })
}

/// The ratios in words, the answer first in each line.
pub fn text(all: &[Ratio]) -> String {
    let mut out = String::new();
    for r in all {
        out += &format!(
            "{} in records of {} B: the first class is {:.2} times as fast as the second (medians of {} and {} kB/s, {} and {} cards; card against card {:.2} to {:.2})\n",
            if r.write { "writes" } else { "reads" },
            r.record,
            r.ratio,
            three(r.medians[0]),
            three(r.medians[1]),
            r.cards[0],
            r.cards[1],
            r.range[0],
            r.range[1]
        );
        if !r.left_out.is_empty() {
            out += &format!("  left out, because speed and mean contradict each other: {}\n", r.left_out.join(", "));
        }
    }
    let mut hosts: Vec<&str> = all.iter().flat_map(|r| r.hosts.iter().map(String::as_str)).collect();
    // The size of a cluster belongs to the card.
    hosts = hosts.into_iter().map(|h| h.split(", clusters").next().unwrap_or(h)).collect();
    hosts.sort_unstable();
    hosts.dedup();
    if hosts.len() > 1 {
        out +=
            &format!("  caution: they were measured through different hosts ({}), which alone can make the difference\n", hosts.join("; "));
    }
    if all.is_empty() {
        out += "the two classes have no size of a record in common: nothing to compare\n";
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(card: &str, record: u64, write: bool, speed: f64, times: [f64; 3]) -> Row {
        Row { card: card.into(), host: "uno".into(), record, write, speed, times }
    }

    /// G6: the published table, industrial against consumer cards; the row that contradicts itself is left out.
    #[test]
    fn industrial_against_consumer() {
        let industrial = [
            row("wintec", 512, true, 407.57, [85756.0, 1152.0, 1250.0]),
            row("swissbit", 512, true, 384.92, [67700.0, 1160.0, 1324.0]),
            row("atp", 512, true, 392.32, [62500.0, 1184.0, 1339.0]),
            row("wintec", 512, false, 488.39, [2088.0, 1032.0, 1043.0]),
            row("swissbit", 512, false, 486.68, [2096.0, 1036.0, 1046.0]),
            row("wintec", 100, true, 278.4, [84916.0, 84.0, 354.0]),
            row("swissbit", 100, true, 265.1, [72608.0, 84.0, 372.0]),
            row("wintec", 100, false, 338.89, [2164.0, 80.0, 289.0]),
            row("swissbit", 100, false, 338.07, [2172.0, 80.0, 290.0]),
        ];
        let consumer = [
            row("sandisk", 512, true, 152.31, [59452.0, 2132.0, 3355.0]),
            row("amazon", 512, true, 200.62, [191596.0, 2132.0, 2545.0]),
            row("sandisk", 512, false, 366.17, [2700.0, 1288.0, 1393.0]),
            row("amazon", 512, false, 391.0, [3020.0, 1164.0, 1304.0]),
            row("sandisk", 100, true, 127.41, [61372.0, 84.0, 778.0]),
            row("amazon", 100, true, 165.69, [191320.0, 84.0, 598.0]),
            row("sandisk", 100, false, 276.33, [3180.0, 80.0, 356.0]),
            row("amazon", 100, false, 290.17, [3108.0, 80.0, 339.0]),
        ];
        let all = classes(&industrial, &consumer);
        let found: Vec<(u64, bool, f64)> = all.iter().map(|r| (r.record, r.write, (r.ratio * 100.0).round() / 100.0)).collect();
        assert_eq!(found, [(100, true, 1.85), (512, true, 2.25), (100, false, 1.19), (512, false, 1.29)].map(|x| x), "{all:?}");
        assert_eq!(all[1].left_out, ["atp"]);
        assert!(text(&all).contains("2.25 times as fast") && !text(&all).contains("caution"));
        // One card that is far off does not carry its class, here as in `lots`.
        let odd = row("odd", 512, true, 4000.0, [1000.0, 100.0, 122.0]);
        let three = [consumer[0].clone(), consumer[1].clone(), odd];
        let r = &classes(&industrial, &three)[0];
        assert!(r.cards == [2, 3] && (r.medians[1] - 200.62).abs() < 1e-9 && (r.ratio - 396.245 / 200.62).abs() < 1e-6, "{r:?}");
        let other = [Row { host: "pico".into(), ..consumer[0].clone() }];
        assert!(text(&classes(&industrial, &other)).contains("different hosts"));
        assert!(text(&classes(&industrial, &[])).contains("nothing to compare"));
    }
}

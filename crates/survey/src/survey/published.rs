//! The cards of the source documents, as entries that come with the program.

use super::figures::bench_metrics;
use super::record::{Card, Record, SCHEMA, Source};
use crate::finding::{Finding, Findings, Quantity};
use crate::samples::import::BenchPass;
use crate::samples::metric::Metric;
use serde::Deserialize;

/// The reference entries that come with the program.
pub fn published() -> Vec<Record> {
    #[derive(Deserialize)]
    struct File {
        card: Vec<Published>,
    }
    #[derive(Deserialize)]
    struct Bench {
        record: u32,
        write: [f64; 4],
        read: [f64; 4],
    }
    #[derive(Deserialize)]
    struct Published {
        id: String,
        name: String,
        maker: Option<String>,
        part: Option<String>,
        kind: Option<String>,
        capacity: Option<u64>,
        price: Option<String>,
        source: String,
        url: String,
        host: Option<String>,
        #[serde(default)]
        notes: Vec<String>,
        #[serde(default)]
        metrics: Vec<(String, String, String, f64)>,
        #[serde(default)]
        bench: Vec<Bench>,
        #[serde(flatten)]
        found: std::collections::BTreeMap<String, toml::Value>,
    }
    let file: File = toml::from_str(include_str!("reference.toml")).unwrap_or_else(|e| unreachable!("the built-in table is tested: {e}"));
    let number = |v: &toml::Value| v.as_integer().map(|i| i as f64).or(v.as_float());
    file.card
        .into_iter()
        .map(|p| {
            let mut r = Record {
                schema: SCHEMA.into(),
                card: Card {
                    name: p.name,
                    maker: p.maker.filter(|m| m != "not named"),
                    part: p.part,
                    kind: p.kind,
                    capacity: p.capacity,
                    price: p.price,
                    ..Card::default()
                },
                source: Source {
                    format: "published".into(),
                    file: p.id.clone(),
                    citation: Some(p.source),
                    url: Some(p.url),
                    host: p.host,
                    ..Source::default()
                },
                id: p.id,
                notes: p.notes,
                metrics: p.metrics.into_iter().map(|(n, c, u, v)| Metric::new(&n, c, &u, &[v])).collect(),
                ..Record::default()
            };
            // Published values are taken as they are printed: 90 %, as our own calibration cannot reach them.
            let found = Quantity::ALL.iter().filter_map(|&q| Some(Finding::decided(q, number(p.found.get(q.key())?)?, 0.9)));
            r.findings = Findings(found.collect());
            for b in p.bench {
                let pass = |write: bool, x: [f64; 4]| BenchPass { line: 0, write, speed: x[0], max: x[1], min: x[2], avg: x[3] };
                let (m, f) = bench_metrics(Some(b.record), "", &[pass(true, b.write), pass(false, b.read)]);
                r.metrics.extend(m);
                r.flags.extend(f);
            }
            r
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_inconsistent_row_is_flagged() {
        let all = published();
        assert!(all.len() >= 19, "{}", all.len());
        let flagged: Vec<(&str, usize)> = all.iter().filter(|r| !r.flags.is_empty()).map(|r| (r.id.as_str(), r.flags.len())).collect();
        assert_eq!(flagged, [("ref-greiman-atp-slc-1gb", 1)], "G7");
        let atp = all.iter().find(|r| r.id == "ref-greiman-atp-slc-1gb").unwrap();
        assert!(atp.flags[0].contains("record write, 512 B"), "{:?}", atp.flags);
    }

    #[test]
    fn published_ratios() {
        // G6: at 100 B industrial over consumer 1.85 to write.
        let all = published();
        let of = |id: &str, name: &str, c: &str| {
            all.iter().find(|r| r.id == id).unwrap().metrics.iter().find(|m| m.name == name && m.conditions == c).unwrap().value
        };
        let rate = |ids: [&str; 2]| ids.iter().map(|i| of(i, "record write", "512 B records")).sum::<f64>() / 2.0;
        let ratio = rate(["ref-greiman-wintec-1gb", "ref-greiman-swissbit-1gb"])
            / rate(["ref-greiman-sandisk-c2-2gb", "ref-greiman-amazon-c10-4gb"]);
        assert!((ratio - 2.25).abs() < 0.01, "{ratio}");
    }
}

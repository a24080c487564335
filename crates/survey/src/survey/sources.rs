//! The formats that an entry can be made of.

use super::figures::{bench_metrics, report_metrics};
use super::record::{Card, OF_CHECK, Record, Source};
use super::{hosts, wiki};
use crate::finding::Findings;
use crate::host::declared::{Declared, Kind};
use crate::infer::combine::combine;
use crate::infer::tables;
use crate::infer::tables::bench::Figure;
use crate::infer::trace::infer_trace;
use crate::lab::bench::{Kind as What, Sample};
use crate::lab::experiment::Lab;
use crate::report::Report;
use crate::report::inferred::{Card as Found, Inferred};
use crate::samples::busy::Trace;
use crate::samples::import::{self, BenchPass, BenchTest, foreign};
use crate::samples::metric::{Metric, Over};
use crate::samples::{firmware, records::Pass};
use crate::units::Bytes;
use serde_json::Value;

impl Record {
    pub fn of_report(r: &Report) -> Record {
        let declared: Option<Declared> = serde_json::from_value(r.declared.clone()).ok();
        let d = declared.as_ref();
        let h = &r.host;
        let host: Vec<String> = [
            h.bus.clone(),
            (!h.machine.is_empty()).then(|| h.machine.clone()),
            (!h.kernel.is_empty()).then(|| format!("Linux {}", h.kernel)),
        ]
        .into_iter()
        .flatten()
        .collect();
        Record {
            card: Card {
                name: d.and_then(|d| d.name.clone()).or(r.target.model.clone()).unwrap_or_else(|| r.settings.asked.clone()),
                maker: d.and_then(|d| d.maker.clone()).or(h.vendor.clone()),
                ids: d.and_then(|d| d.ids.clone()),
                kind: d.and_then(|d| match d.kind {
                    Kind::Sd => Some("SD".to_string()),
                    Kind::Mmc => Some("eMMC".to_string()),
                    Kind::Usb => Some("USB".to_string()),
                    Kind::Other => None,
                }),
                capacity: Some(d.and_then(|d| d.capacity).unwrap_or(r.target.size)),
                made: d.and_then(|d| d.date.map(|d| d.to_string())),
                ..Card::default()
            },
            source: Source {
                format: "nandscope report".into(),
                seed: Some(r.settings.seed),
                simulated: r.target.kind == crate::host::facts::TargetKind::Simulated,
                tool: Some(format!("{} {}", r.tool.name, r.tool.version)),
                host: (!host.is_empty()).then(|| host.join(", ")),
                measured: (r.when > 0).then_some(r.when),
                ..Source::default()
            },
            findings: r.findings.clone(),
            metrics: report_metrics(r),
            notes: r.warnings.clone(),
            original: serde_json::to_value(r).unwrap_or_default(),
            ..Record::default()
        }
    }

    /// What `nandscope check --json` writes: whether the card is what it says, and how fast it was meanwhile.
    pub(super) fn of_check(v: Value) -> Result<Record, String> {
        let text = |key: &str| v[key].as_str().map(str::to_string);
        let findings: Findings = serde_json::from_value(v["findings"].clone()).map_err(|e| format!("is damaged: {e}"))?;
        findings.check()?;
        let target = text("target").ok_or("it names no target")?;
        let size = v["size"].as_u64().filter(|s| *s > 0).ok_or("it names no size")?;
        let mut metrics = vec![];
        for (key, name) in [
            ("sequential_write", "sequential write"),
            ("sequential_read", "sequential read"),
            ("random_write", "random write"),
            ("random_read", "random read"),
        ] {
            let m = &v["measured"][key];
            if let (Some(rate), Some(len)) = (m["bytes_per_second"].as_f64().filter(|r| *r > 0.0), m["len"].as_u64()) {
                metrics.push(Metric::new(name, format!("{}, one at a time, check", Bytes(len)), "kB/s", &[(rate / 100.0).round() / 10.0]));
            }
        }
        let failed = v["answers"].as_array().into_iter().flatten().filter(|a| a["verdict"] == "fail");
        let notes = failed.filter_map(|a| a["because"].as_str().map(str::to_string)).collect();
        Ok(Record {
            card: Card { name: text("model").unwrap_or_else(|| target.clone()), capacity: Some(size), ..Card::default() },
            source: Source {
                format: OF_CHECK.into(),
                simulated: target.starts_with("sim:") || target.ends_with(".toml"),
                tool: v["tool"]["version"].as_str().map(|version| format!("nandscope {version}")),
                ..Source::default()
            },
            findings,
            metrics,
            notes,
            original: v,
            ..Record::default()
        })
    }

    /// What `nandscope bench --json` writes: passes of one or more cards at one or several record sizes; and what `nandscope infer
    /// --json` makes of a log of a microcontroller.
    pub(super) fn of_benches(v: &Value) -> Result<Vec<Record>, String> {
        let one = [v.clone()];
        let benches = v["benches"].as_array().map_or(&one[..], Vec::as_slice);
        let mut cards: Vec<(&str, Vec<&Value>)> = vec![];
        for b in benches {
            let target = b["target"].as_str().unwrap_or_default();
            match cards.iter_mut().find(|c| c.0 == target) {
                Some(c) => c.1.push(b),
                None => cards.push((target, vec![b])),
            }
        }
        let found: Findings = serde_json::from_value(v["findings"].clone()).unwrap_or_default();
        let several = cards.len() > 1;
        let mut all = vec![];
        for (target, benches) in &cards {
            let original = if several { serde_json::json!({ "schema": v["schema"], "benches": benches }) } else { v.clone() };
            let mut r = Record::of_bench(target, benches)?;
            r.original = original;
            all.push(r);
        }
        match &mut all[..] {
            [only] => only.findings = found,
            [] if !found.0.is_empty() => {
                all.push(Record {
                    source: Source { format: "firmware log".into(), ..Source::default() },
                    findings: found,
                    original: v.clone(),
                    ..Record::default()
                });
            }
            _ => {}
        }
        let bare = |r: &Record| r.metrics.is_empty() && r.findings.0.is_empty();
        if all.is_empty() || all.iter().any(bare) { Err("the benchmark has no passes".into()) } else { Ok(all) }
    }

    fn of_bench(target: &str, benches: &[&Value]) -> Result<Record, String> {
        let mut r = Record { source: Source { format: "nandscope bench".into(), ..Source::default() }, ..Record::default() };
        let (card, options) = target.split_once('?').unwrap_or((target, ""));
        r.source.simulated = card.starts_with("sim:");
        r.card.name = target.into();
        if r.source.simulated {
            // The host is no part of the card, and neither is the seed.
            let (apart, own): (Vec<&str>, Vec<&str>) =
                options.split('&').filter(|o| !o.is_empty()).partition(|o| o.starts_with("host=") || o.starts_with("seed="));
            r.source.seed = apart.iter().find_map(|o| o.strip_prefix("seed=")?.parse().ok());
            r.card.name = [&[card][..], &own].concat().join("&").replacen('&', "?", 1);
        }
        let same_record = |b: &Value| benches.iter().filter(|o| o["record"] == b["record"]).count() > 1;
        for b in benches {
            r.card.capacity = r.card.capacity.or(b["capacity"].as_u64());
            let price = &b["price"];
            let amount = price.as_f64().or(price["amount"].as_f64());
            let text = match (price.as_str(), amount, price["currency"].as_str().or(b["currency"].as_str())) {
                (Some(t), _, _) => Some(t.to_string()),
                (None, Some(a), Some(c)) => Some(format!("{a} {c}")),
                (None, Some(a), None) => Some(a.to_string()),
                _ => None,
            };
            if let (None, Some(a), None) = (price.as_str(), amount, price["currency"].as_str().or(b["currency"].as_str()))
                && r.card.price.is_none()
            {
                r.notes.push(format!("the price of {a} has no currency, so that it is compared with none"));
            }
            r.card.price = text.or(r.card.price);
            r.source.tool = b["tool"]["version"].as_str().map(|t| format!("nandscope {t}")).or(r.source.tool);
            let host = b["host"].as_str().unwrap_or_default();
            r.source.host = Some(host.to_string()).filter(|h| !h.is_empty() && h != "a microcontroller");
            // What else the figures depend on: only equal conditions are compared.
            let mut suffix = String::new();
            if let Some(s) = b["sync"].as_str().filter(|s| *s != "synced at the end" && s.contains("synced")) {
                suffix += &format!(", {s}");
            }
            if let Some(c) = host.find("clusters of").filter(|_| same_record(b)) {
                suffix += &format!(", {}", &host[c..]);
            }
            let number = |p: &Value, key: &str| p[key].as_f64().unwrap_or(f64::NAN);
            let passes: Vec<BenchPass> = b["passes"]
                .as_array()
                .into_iter()
                .flatten()
                .map(|p| BenchPass {
                    line: 0,
                    write: p["write"].as_bool().unwrap_or(true),
                    speed: number(p, "speed_kb_s"),
                    max: number(p, "max_us"),
                    min: number(p, "min_us"),
                    avg: number(p, "avg_us"),
                })
                .collect();
            let (metrics, flags) = bench_metrics(b["record"].as_u64().and_then(|n| u32::try_from(n).ok()), &suffix, &passes);
            if b["cached"] == true {
                let cached = metrics.iter().filter(|m| m.unit == "kB/s");
                r.flags.extend(
                    cached.map(|m| format!("{}, {}: the kernel's page cache took the records: not of the card", m.name, m.conditions)),
                );
            }
            r.metrics.extend(metrics.into_iter().filter(|m| m.value.is_finite()));
            r.flags.extend(flags);
        }
        Ok(r)
    }

    /// What `nandscope frag --json` writes. Only figures of the same filesystem, clusters, calls and host are compared.
    pub(super) fn of_frag(v: Value) -> Result<Record, String> {
        let lab: Lab = serde_json::from_value(v.clone()).map_err(|e| e.to_string())?;
        let mut metrics = vec![];
        for c in &lab.conditions {
            let host = if lab.setup.host.is_empty() { String::new() } else { format!(", {}", lab.setup.host) };
            let around = format!(
                "{}, {}, clusters of {}, calls of {}{host}",
                c.state,
                lab.filesystem,
                Bytes(c.space.cluster),
                Bytes(lab.settings.workload.chunk)
            );
            for (kind, name) in [(What::Write, "file write"), (What::Read, "file read"), (What::Folder, "copy of a folder")] {
                let of: Vec<&Sample> = c.measured.samples.iter().filter(|s| s.kind == kind && s.took.0 > 0).collect();
                let mut sizes: Vec<u64> = of.iter().map(|s| s.size).collect();
                sizes.sort_unstable();
                sizes.dedup();
                for size in sizes {
                    let rounds: Vec<f64> = of.iter().filter(|s| s.size == size).map(|s| 60.0 / s.took.secs()).collect();
                    metrics.push(Metric::new(name, format!("{}, {around}", Bytes(size)), "ops/min", &rounds));
                }
            }
        }
        if metrics.is_empty() {
            return Err("nothing was measured in any state".into());
        }
        let card = if lab.setup.card.is_empty() { lab.target.clone() } else { lab.setup.card.clone() };
        let host = [lab.setup.slot.clone(), (!lab.setup.host.is_empty()).then(|| lab.setup.host.clone())];
        let host: Vec<String> = host.into_iter().flatten().collect();
        Ok(Record {
            card: Card { name: card, ..Card::default() },
            source: Source {
                format: "nandscope frag".into(),
                tool: Some(format!("nandscope {}", lab.version)),
                host: (!host.is_empty()).then(|| host.join(", ")),
                ..Source::default()
            },
            metrics,
            notes: lab.notes,
            original: v,
            ..Record::default()
        })
    }

    pub(super) fn of_benchmark(b: foreign::Benchmark, text: &str) -> Record {
        Record {
            card: Card { name: b.name.unwrap_or_default(), capacity: b.capacity, ..Card::default() },
            source: Source { format: b.tool.into(), tool: b.version, ..Source::default() },
            metrics: b.metrics,
            flags: b.flags,
            notes: b.notes,
            original: Value::String(text.into()),
            ..Record::default()
        }
    }

    /// Logs and pages of other programs.
    pub(super) fn of_text(name: &str, t: import::Text, text: &str) -> Result<Vec<Record>, String> {
        if let Some(figures) = t.figures {
            return Ok(vec![Record::of_benchmark(figures, text)]);
        }
        if t.wiki {
            return wiki::read(text);
        }
        let cards = import::pool(&[name.to_string()], vec![t.cards]);
        let several = cards.len() > 1;
        Ok(cards.into_iter().map(|c| Record::of_log(c, text, several)).collect())
    }

    /// What was concluded of logs; the logs themselves hold more.
    pub(super) fn of_inferred(v: Value) -> Result<Vec<Record>, String> {
        let tool = v["tool"]["version"].as_str().map(|t| format!("nandscope {t}"));
        let all = Inferred::from_value(v.clone())?;
        let several = all.cards.len() > 1;
        let one = |c: &Found| {
            let mut r = Record {
                card: Card {
                    name: c.name.clone().unwrap_or_default(),
                    capacity: c.declared.as_ref().and_then(|d| d.capacity),
                    ..Card::default()
                },
                source: Source { format: "log".into(), tool: tool.clone(), ..Source::default() },
                findings: c.findings.clone(),
                metrics: c.figures.clone(),
                flags: c.flags.clone(),
                notes: c.warnings.clone(),
                original: if several { Inferred { logs: c.files.clone(), cards: vec![c.clone()] }.value() } else { v.clone() },
                ..Record::default()
            };
            let mut sizes: Vec<Option<u32>> = c.records.iter().map(|f| f.record).collect();
            sizes.dedup();
            for size in sizes {
                let of = c.records.iter().filter(|f| f.record == size);
                r.source.host = r.source.host.take().or(of.clone().find_map(|f| f.host.clone()));
                let pass = |f: &Figure| BenchPass { line: 0, write: f.write, speed: f.speed, max: f.max, min: f.min, avg: f.avg };
                let (metrics, flags) = bench_metrics(size, "", &of.map(pass).collect::<Vec<_>>());
                r.metrics.extend(metrics);
                r.flags.extend(flags);
            }
            r
        };
        Ok(all.cards.iter().map(one).collect())
    }

    fn of_log(card: import::Card, text: &str, several: bool) -> Record {
        let t = card.tables;
        let mut r = Record { source: Source { format: "log".into(), ..Source::default() }, notes: t.notes.clone(), ..Record::default() };
        // A size of records that comes several times is one figure of more passes.
        let mut tests: Vec<BenchTest> = vec![];
        for b in &t.bench {
            r.card.capacity = r.card.capacity.or(b.card_gb.map(|g| (g * 1e9) as u64));
            match tests.iter_mut().find(|o| o.buffer == b.buffer) {
                Some(o) => o.passes.extend(&b.passes),
                None => tests.push(b.clone()),
            }
        }
        for b in &tests {
            r.source.tool = Some("SdFat bench".into());
            r.source.host = r.source.host.take().or(b.host.clone());
            let (metrics, flags) = bench_metrics(b.buffer, "", &b.passes);
            r.metrics.extend(metrics);
            r.flags.extend(flags);
        }
        if !(t.align.is_empty() && t.open.is_empty() && t.fat.is_empty()) {
            r.source.tool = Some("flashbench".into());
        }
        if t.bench.is_empty() || !(t.align.is_empty() && t.open.is_empty()) {
            r.findings = tables::infer(&t);
        }
        let mut sizes: Vec<u64> = t.device_sizes.iter().map(|s| s.1).collect();
        sizes.dedup();
        if let [only] = sizes[..] {
            r.card.capacity = Some(only);
        }
        let said = |key: &str| t.declared.iter().find(|d| d.key == key).map(|d| d.value.clone());
        r.card.name = said("name").or(card.identity.name().filter(|_| several)).unwrap_or_default();
        r.card.made = said("date");
        r.card.ids = said("manfid").map(|m| format!("{m}/{}", said("oemid").unwrap_or_else(|| "?".into())));
        // Headers of collected logs: "# card: ...", "# source: ...".
        let header = |key: &str| {
            text.lines().find_map(|l| l.strip_prefix('#')?.trim().strip_prefix(key)?.strip_prefix(':')).map(|v| v.trim().to_string())
        };
        if let Some(card) = header("card").filter(|c| !c.is_empty() && !several) {
            r.card.name = card;
        }
        r.source.url = header("source");
        let (host, note) = hosts::of_log(text);
        r.source.host = host.or(r.source.host);
        r.notes.extend(note);
        r.original = Value::String(text.into());
        r
    }

    /// A log of a microcontroller: calls of a file library, and how long the card was busy.
    pub(super) fn of_micro(log: firmware::Log, format: &str, text: &str) -> Result<Record, String> {
        let mut r = Record {
            source: Source { format: format.into(), host: Some(log.host).filter(|h| !h.is_empty()), ..Source::default() },
            notes: log.notes,
            original: Value::String(text.into()),
            ..Record::default()
        };
        let mut sizes: Vec<u64> = log.passes.iter().map(|p| p.record).collect();
        sizes.dedup();
        for size in sizes {
            let pass = |p: &Pass| {
                let (max, min) = p.max_min();
                BenchPass { line: 0, write: p.write, speed: p.speed(), max, min, avg: p.mean() }
            };
            let passes: Vec<BenchPass> = log.passes.iter().filter(|p| p.record == size).map(pass).collect();
            let (metrics, flags) = bench_metrics(u32::try_from(size).ok(), "", &passes);
            r.metrics.extend(metrics.into_iter().filter(|m| m.value.is_finite()));
            r.flags.extend(flags);
        }
        let mut found = vec![];
        for (mode, trace) in &log.busy {
            let mode = if mode == "none" { String::new() } else { format!(" with {mode}") };
            let mut part = infer_trace(trace);
            part.iter_mut().for_each(|f| f.from.push(format!("busy trace{mode}")));
            found.extend(part);
            r.metrics.extend(busy_metrics(trace, &mode));
        }
        r.findings = combine(&found);
        if r.metrics.is_empty() && r.findings.0.is_empty() { Err("it holds no calls and no busy times".into()) } else { Ok(r) }
    }
}

/// How long the card was busy: in polls, or in µs where the time of a poll is known.
fn busy_metrics(trace: &Trace, mode: &str) -> Vec<Metric> {
    let mut lengths: Vec<usize> = trace.transactions.iter().map(|t| t.data.len()).collect();
    lengths.sort_unstable();
    lengths.dedup();
    let what = match lengths[..] {
        [1] => "single blocks".to_string(),
        [n] => format!("{n} blocks a transaction"),
        _ => "transactions of several lengths".into(),
    };
    let (unit, factor) = trace.poll_ns.map_or(("polls", 1.0), |ns| ("µs", ns as f64 / 1e3));
    let of = |v: Vec<f64>, name: &str| {
        let longest = v.iter().copied().fold(0.0, f64::max);
        let mean = v.iter().sum::<f64>() / v.len() as f64;
        let one = |n: String, x: f64, over| Metric::new(&n, format!("{what}{mode}"), unit, &[x * factor]).over(over);
        let all = [one(format!("busy {name}, mean"), mean, Over::Median), one(format!("busy {name}, longest"), longest, Over::Longest)];
        if v.is_empty() { vec![] } else { all.to_vec() }
    };
    let data = trace.transactions.iter().flat_map(|t| &t.data).map(|&n| n as f64).collect();
    let stop = trace.transactions.iter().filter_map(|t| t.stop).map(|n| n as f64).collect();
    let whole = trace.transactions.iter().map(|t| t.data.iter().chain(&t.stop).sum::<u64>() as f64).collect();
    [of(data, "after a block"), of(stop, "after Stop Tran"), of(whole, "in a transaction")].concat()
}

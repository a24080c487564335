//! One entry of the survey: a card, where its figures come from, what was found, and the original as it was given.

use super::figures::{bench_metrics, report_metrics};
use crate::compare::Subject;
use crate::finding::Findings;
use crate::host::declared::{Declared, Kind};
use crate::infer::tables;
use crate::lab::bench::{Kind as What, Sample};
use crate::lab::experiment::{Lab, SCHEMA as FRAG};
use crate::report::{Report, SCHEMA as REPORT, privacy};
use crate::samples::import::{self, BenchPass, foreign};
use crate::samples::metric::Metric;
use crate::units::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

/// Name and version of the format of an entry.
pub const SCHEMA: &str = "nandscope-survey/1";

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Card {
    pub name: String,
    pub maker: Option<String>,
    /// Identity numbers as the card gives them: manufacturer and OEM, or vendor and product.
    pub ids: Option<String>,
    pub part: Option<String>,
    /// "SD", "eMMC", "USB", "CF", ...
    pub kind: Option<String>,
    /// Bytes.
    pub capacity: Option<u64>,
    /// Month and year.
    pub made: Option<String>,
    /// Free text with its currency.
    pub price: Option<String>,
    pub lot: Option<String>,
}

/// Where the figures come from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Source {
    /// "nandscope report", "log", "fio", "f3", "iozone", "published".
    pub format: String,
    /// Name of the file as it was added.
    pub file: String,
    /// SHA-256 of the original without serial numbers, in hex.
    pub sha256: String,
    /// Program and version that made it.
    pub tool: Option<String>,
    /// Who published it, and where.
    pub citation: Option<String>,
    pub url: Option<String>,
    /// Machine, reader, software.
    pub host: Option<String>,
    /// Seconds since 1970 of the measurement, where known.
    pub measured: Option<u64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Record {
    pub schema: String,
    /// The first twelve hex digits of the SHA-256, or the name of a reference entry.
    pub id: String,
    /// Seconds since 1970 when it was added.
    pub added: u64,
    pub card: Card,
    pub source: Source,
    pub findings: Findings,
    pub metrics: Vec<Metric>,
    /// What contradicts itself; such figures are kept and not relied on.
    pub flags: Vec<String>,
    pub notes: Vec<String>,
    /// The report as JSON, or the log as text; null for reference entries.
    pub original: Value,
}

/// What the one who adds an entry knows beside the file.
#[derive(Clone, Debug, Default)]
pub struct Told {
    pub name: Option<String>,
    pub maker: Option<String>,
    pub part: Option<String>,
    pub price: Option<String>,
    pub lot: Option<String>,
    pub url: Option<String>,
    pub note: Option<String>,
    pub with_serial: bool,
}

impl Record {
    /// Reads whatever `survey add` takes: a report, an entry of another survey, a log of flashbench or SdFat bench, fio's JSON, f3, iozone.
    ///
    /// # Errors
    /// One sentence: what the file is not, or where it is damaged.
    pub fn from_file(name: &str, bytes: &[u8], told: &Told, added: u64) -> Result<Record, String> {
        let text = String::from_utf8_lossy(bytes);
        if text.trim().is_empty() {
            return Err("it is empty".into());
        }
        let mut serials = vec![];
        let mut r = match text.trim_start().starts_with('{') {
            true => match foreign::read(&text) {
                Some(b) => Record::of_benchmark(b?, &text),
                None => Record::of_json(name, &text, told, &mut serials)?,
            },
            false => match foreign::read(&text) {
                Some(b) => Record::of_benchmark(b?, &text),
                None => Record::of_log(name, bytes, &text)?,
            },
        };
        let clean = r.schema.is_empty() && r.source.format == "nandscope report";
        r.schema = SCHEMA.into();
        r.added = added;
        let short = name.rsplit('/').next().unwrap_or(name).to_string();
        if r.source.file.is_empty() {
            r.source.file = short.clone();
        }
        if !told.with_serial {
            r = match clean {
                // The report was cleaned as a report; its file may still be named after the card.
                true => Record { source: Source { file: privacy::mask(&r.source.file, &serials), ..r.source.clone() }, ..r },
                false => r.without_serial(serials),
            };
        }
        let short = r.source.file.clone();
        let own = |said: &Option<String>, had: &mut Option<String>| {
            if said.is_some() {
                had.clone_from(said);
            }
        };
        own(&told.maker, &mut r.card.maker);
        own(&told.part, &mut r.card.part);
        own(&told.price, &mut r.card.price);
        own(&told.lot, &mut r.card.lot);
        own(&told.url, &mut r.source.url);
        r.notes.extend(told.note.clone());
        if let Some(n) = &told.name {
            r.card.name.clone_from(n);
        }
        if r.card.name.trim().is_empty() {
            r.card.name = short.rsplit_once('.').map_or(short.as_str(), |x| x.0).into();
        }
        let original = match &r.original {
            Value::String(s) => s.clone(),
            v => v.to_string(),
        };
        let hash = Sha256::digest(original.as_bytes()).iter().map(|b| format!("{b:02x}")).collect::<String>();
        r.id = hash[..12].into();
        r.source.sha256 = hash;
        Ok(r)
    }

    /// `serials` gets the serial numbers that it names.
    fn of_json(name: &str, text: &str, told: &Told, serials: &mut Vec<String>) -> Result<Record, String> {
        let cut = |e: serde_json::Error| if e.is_eof() { format!("it ends too early ({e}), as if cut off") } else { e.to_string() };
        let v: Value = serde_json::from_str(text).map_err(cut)?;
        match v["schema"].as_str() {
            Some(REPORT) if v.get("runs").is_some() => {
                let report = Report::from_value(v, name).map_err(|e| e.to_string())?;
                serials.extend(report.serials());
                Ok(Record::of_report(&if told.with_serial { report } else { report.without_serial() }))
            }
            Some(REPORT) => Err("it is what `infer` made of logs; add the logs themselves".into()),
            Some(SCHEMA) => {
                let inside = &v["original"];
                serials.extend([&inside["target"], &inside["declared"]].into_iter().flat_map(privacy::in_json));
                serde_json::from_value(v).map_err(|e| e.to_string())
            }
            Some("nandscope-bench/1") => Record::of_bench(&v),
            Some(FRAG) => Record::of_frag(v),
            Some(other) => Err(format!("its schema is {other}; this program reads {REPORT}, {SCHEMA} and fio's JSON")),
            None => Err("it is JSON, but neither a nandscope report nor a result of fio".into()),
        }
    }

    /// For what is shared: without the serial numbers of an entry that was kept with them.
    pub fn shared(self) -> Record {
        let serials: Vec<String> = [&self.original["target"], &self.original["declared"]].into_iter().flat_map(privacy::in_json).collect();
        // A report that lost them when it was added names none.
        if serials.is_empty() && !self.original.is_string() {
            return self;
        }
        self.without_serial(serials)
    }

    /// The same without these serial numbers and those that a log names: in the original, in every other text, and in the name
    /// of the file.
    fn without_serial(self, mut serials: Vec<String>) -> Record {
        if let Value::String(log) = &self.original {
            serials.extend(privacy::in_text(log));
            if let Ok(t) = import::read(&[("log", log.as_bytes())]) {
                let of = |key: &str| t.declared.iter().filter(|d| d.key == key).map(|d| d.value.clone()).collect::<Vec<_>>();
                serials.extend(of("serial"));
                // The serial number is bytes 9 to 12 of an SD card's CID, 10 to 13 of an eMMC's.
                let cids = of("cid").into_iter().filter(|c| c.len() == 32 && c.is_ascii());
                serials.extend(cids.flat_map(|c| [18..28, 18..26, 20..28].map(|digits| format!("0x{}", &c[digits]))));
            }
        }
        let Ok(mut value) = serde_json::to_value(&self) else { return self };
        privacy::hide(&mut value, &serials);
        serde_json::from_value(value).unwrap_or(self)
    }

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

    /// What `nandscope bench --json` writes: passes of one card at one or several record sizes.
    fn of_bench(v: &Value) -> Result<Record, String> {
        let one = [v.clone()];
        let benches = v["benches"].as_array().map_or(&one[..], Vec::as_slice);
        let mut r =
            Record { source: Source { format: "nandscope bench".into(), ..Source::default() }, original: v.clone(), ..Record::default() };
        for b in benches {
            let target = b["target"].as_str().unwrap_or_default();
            if r.card.name.is_empty() {
                r.card.name = target.into();
            } else if r.card.name != target {
                return Err(format!("it holds several cards ({}, {target}); add one file a card", r.card.name));
            }
            r.card.price = b["price"].as_str().map(str::to_string);
            r.source.tool = b["tool"]["version"].as_str().map(|t| format!("nandscope {t}"));
            r.source.host = b["host"].as_str().map(str::to_string);
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
            let (metrics, flags) = bench_metrics(b["record"].as_u64().and_then(|n| u32::try_from(n).ok()), &passes);
            r.metrics.extend(metrics.into_iter().filter(|m| m.value.is_finite()));
            r.flags.extend(flags);
        }
        if r.metrics.is_empty() { Err("the benchmark has no passes".into()) } else { Ok(r) }
    }

    /// What `nandscope frag --json` writes. Only figures of the same filesystem, clusters, calls and host are compared.
    fn of_frag(v: Value) -> Result<Record, String> {
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

    fn of_benchmark(b: foreign::Benchmark, text: &str) -> Record {
        Record {
            card: Card { capacity: b.capacity, ..Card::default() },
            source: Source { format: b.tool.into(), tool: b.version, ..Source::default() },
            metrics: b.metrics,
            flags: b.flags,
            notes: b.notes,
            original: Value::String(text.into()),
            ..Record::default()
        }
    }

    fn of_log(name: &str, bytes: &[u8], text: &str) -> Result<Record, String> {
        let cards = import::cards(&[(name, bytes)]).map_err(|e| e.to_string())?;
        if cards.len() > 1 {
            let names: Vec<String> = cards.iter().map(|c| c.identity.name().unwrap_or_else(|| "no name".into())).collect();
            return Err(format!("it holds {} cards ({}); add one file a card", cards.len(), names.join("; ")));
        }
        let t = import::read(&[(name, bytes)]).map_err(|e| e.to_string())?;
        let mut r = Record { source: Source { format: "log".into(), ..Source::default() }, notes: t.notes.clone(), ..Record::default() };
        for b in &t.bench {
            r.source.tool = Some("SdFat bench".into());
            r.source.host = r.source.host.take().or(b.host.clone());
            let (metrics, flags) = bench_metrics(b.buffer, &b.passes);
            r.metrics.extend(metrics);
            r.flags.extend(flags);
            r.card.capacity = r.card.capacity.or(b.card_gb.map(|g| (g * 1e9) as u64));
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
        r.card.name = said("name").unwrap_or_default();
        r.card.made = said("date");
        r.card.ids = said("manfid").map(|m| format!("{m}/{}", said("oemid").unwrap_or_else(|| "?".into())));
        // Headers of collected logs: "# card: ...", "# source: ...".
        let header = |key: &str| {
            text.lines().find_map(|l| l.strip_prefix('#')?.trim().strip_prefix(key)?.strip_prefix(':')).map(|v| v.trim().to_string())
        };
        if let Some(card) = header("card").filter(|c| !c.is_empty()) {
            r.card.name = card;
        }
        r.source.url = header("source");
        r.original = Value::String(text.into());
        Ok(r)
    }

    /// For [`crate::compare`]; the samples come from the report inside.
    pub fn subject(&self, label: &str) -> Subject {
        let runs = if self.source.format == "nandscope report" {
            serde_json::from_value::<Report>(self.original.clone()).map(|mut r| {
                r.runs.iter_mut().for_each(crate::samples::Run::index);
                r.runs
            })
        } else {
            Ok(vec![])
        };
        let identity = match (&self.card.part, &self.card.ids) {
            (Some(p), _) => Some(p.clone()),
            (None, Some(ids)) => Some(format!("{ids} {}", self.card.name)),
            (None, None) => None,
        };
        Subject {
            label: label.into(),
            name: self.card.name.clone(),
            identity,
            findings: self.findings.clone(),
            metrics: self.metrics.clone(),
            runs: runs.unwrap_or_default(),
        }
    }

    /// The report inside, where there is one.
    pub fn report(&self) -> Option<Report> {
        (self.source.format == "nandscope report").then(|| Report::from_value(self.original.clone(), &self.id).ok()).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_told_apart() {
        let told = Told::default();
        let read = |name: &str, text: &str| Record::from_file(name, text.as_bytes(), &told, 0);
        assert!(read("x", "").unwrap_err().contains("empty"));
        assert!(read("x.json", "{\"schema\":\"nandscope-report/1\",").unwrap_err().contains("cut off"));
        assert!(read("x.json", "{\"schema\":\"other/9\"}").unwrap_err().contains("other/9"));
        assert!(read("x.json", "{}").unwrap_err().contains("neither"));
        assert!(read("x.txt", "hello\n").unwrap_err().contains("nothing to read"));
        let r = read("logs/card.txt", include_str!("../../tests/data/sdfat/elehobica-05-sandisk-ultra-64gb_pico.txt")).unwrap();
        assert_eq!((r.card.name.as_str(), r.source.file.as_str(), r.flags.len()), ("Sandisk Ultra 64GB", "card.txt", 0));
        assert!(r.source.url.as_deref().unwrap().contains("pico_fatfs") && r.metrics[0].passes.len() == 2);
    }

    #[test]
    fn our_own_benchmark() {
        let one = |target: &str, record: u32| {
            format!(
                r#"{{"target":"{target}","host":"AVR","record":{record},"price":"5 EUR","passes":[{{"write":true,"speed_kb_s":200.0,"max_us":90000.0,"min_us":84.0,"avg_us":494.0}}]}}"#
            )
        };
        let file = |a: String, b: String| format!(r#"{{"schema":"nandscope-bench/1","benches":[{a},{b}]}}"#);
        let r = Record::from_file("b.json", file(one("sim:x", 100), one("sim:x", 512)).as_bytes(), &Told::default(), 0).unwrap();
        assert_eq!((r.card.name.as_str(), r.metrics[0].key().as_str(), r.metrics.len()), ("sim:x", "record-write-100-b-records", 6));
        let e = Record::from_file("b.json", file(one("sim:x", 100), one("sim:y", 100)).as_bytes(), &Told::default(), 0).unwrap_err();
        assert!(e.contains("several cards"), "{e}");
    }

    #[test]
    fn serial_numbers_in_logs_are_masked() {
        let text = include_str!("../../tests/data/flashbench/kingston-sa04g-2013_sysfs.txt");
        assert!(text.contains("cid"), "the test needs a CID");
        let r = Record::from_file("x", text.as_bytes(), &Told::default(), 0).unwrap();
        let kept = Record::from_file("x", text.as_bytes(), &Told { with_serial: true, ..Told::default() }, 0).unwrap();
        assert_ne!(r.original, kept.original);
        // The CID holds it in bytes 9 to 12; sysfs has it once more by itself.
        assert!(text.contains("35338909") && kept.original.to_string().contains("35338909"));
        assert!(!r.original.to_string().contains("35338909") && r.original.to_string().contains("02544d534130344711xxxx"));
    }
}

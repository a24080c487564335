//! One entry of the survey: a card, where its figures come from, what was found, and the original as it was given.

use super::hosts;
use crate::compare::Subject;
use crate::finding::Findings;
use crate::lab::experiment::SCHEMA as FRAG;
use crate::report::inferred::Inferred;
use crate::report::{Report, SCHEMA as REPORT, scrub};
use crate::samples::import::{self, File, ImportError, given};
use crate::samples::metric::{Metric, Over};
use crate::saved::counterfeit::{Counterfeit, genuine, loses};
use crate::saved::privacy;
use crate::units::MIB;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

/// Of what `nandscope check --json` writes.
const CHECK: &str = "nandscope-check/1";

/// Name and version of the format of an entry.
pub const SCHEMA: &str = "nandscope-survey/1";

/// Format of an entry that `nandscope check` wrote.
pub(super) const OF_CHECK: &str = "nandscope check";

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
    /// An amount and its currency, "5.75 USD".
    pub price: Option<String>,
    pub lot: Option<String>,
}

/// Where the figures come from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Source {
    /// "nandscope report", "nandscope bench", "log", "busy trace", "firmware log", "wiki", "fio", "f3", "iozone", "published".
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
    /// Of the order of the measurements, or of the simulated card.
    pub seed: Option<u64>,
    /// The card is a model.
    pub simulated: bool,
    /// Which of the cards of the file this is, from 1, where it holds several.
    pub number: Option<usize>,
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
    /// Bytes.
    pub size: Option<u64>,
    pub host: Option<String>,
    pub url: Option<String>,
    pub note: Option<String>,
    pub with_serial: bool,
}

impl Record {
    /// Reads a file of one card: a report, a bench, an entry of another survey, a log of flashbench or SdFat bench, a busy trace, a
    /// log of a microcontroller, a wiki table, fio's JSON, f3, iozone.
    ///
    /// # Errors
    /// One sentence: what the file is not, where it is damaged, or which cards it holds.
    pub fn from_file(name: &str, bytes: &[u8], told: &Told, added: u64) -> Result<Record, String> {
        let mut all = Record::all_from_file(name, bytes, told, added)?;
        match all.len() {
            1 => Ok(all.remove(0)),
            _ => {
                let names: Vec<&str> = all.iter().map(|r| r.card.name.as_str()).collect();
                Err(format!("it holds several cards ({}); add one file a card", names.join(", ")))
            }
        }
    }

    /// Reads a file of one or more cards.
    ///
    /// # Errors
    /// One sentence: what the file is not, or where it is damaged.
    pub fn all_from_file(name: &str, bytes: &[u8], told: &Told, added: u64) -> Result<Vec<Record>, String> {
        if bytes.iter().all(u8::is_ascii_whitespace) {
            return Err("it is empty".into());
        }
        let bytes = &*given::plain(bytes);
        let mut serials = vec![];
        let all = match import::open(0, name, bytes) {
            Ok(File::Own { schema, value }) => Record::of_json(name, &schema, value, told, &mut serials)?,
            Ok(File::Micro { log, format }) => vec![Record::of_micro(log, format, &String::from_utf8_lossy(bytes))?],
            Ok(File::Text(t)) => Record::of_text(name, t, &String::from_utf8_lossy(bytes))?,
            Err(ImportError::Json(_, why) | ImportError::Damaged(_, why)) => return Err(why),
            Err(why) => return Err(why.to_string()),
        };
        if all.len() > 1 && (told.name.is_some() || told.part.is_some()) {
            let names: Vec<&str> = all.iter().map(|r| r.card.name.as_str()).collect();
            return Err(format!("it holds {} cards ({}), but a name and a part number are of one", all.len(), names.join(", ")));
        }
        let several = all.len() > 1;
        let number = |i: usize, r: &Record| if several { Some(i + 1) } else { r.source.number };
        Ok(all.into_iter().enumerate().map(|(i, r)| (number(i, &r), r)).map(|(n, r)| r.finished(name, told, added, n, &serials)).collect())
    }

    /// With what the one who adds it knows, without serial numbers, and with its id.
    fn finished(mut self, name: &str, told: &Told, added: u64, number: Option<usize>, serials: &[String]) -> Record {
        let clean = self.schema.is_empty() && self.source.format == "nandscope report";
        self.schema = SCHEMA.into();
        self.added = added;
        self.source.number = number;
        if self.source.file.is_empty() {
            self.source.file = name.rsplit('/').next().unwrap_or(name).to_string();
        }
        let mut r = match (told.with_serial, clean) {
            (true, _) => self,
            // The report was cleaned as a report; its file may still be named after the card.
            (false, true) => Record { source: Source { file: privacy::mask(&self.source.file, serials), ..self.source.clone() }, ..self },
            (false, false) => self.without_serial(serials.to_vec()),
        };
        let own = |said: &Option<String>, had: &mut Option<String>| {
            if said.is_some() {
                had.clone_from(said);
            }
        };
        own(&told.maker, &mut r.card.maker);
        own(&told.part, &mut r.card.part);
        own(&told.price, &mut r.card.price);
        own(&told.lot, &mut r.card.lot);
        own(&told.host, &mut r.source.host);
        own(&told.url, &mut r.source.url);
        r.card.capacity = told.size.or(r.card.capacity);
        r.notes.extend(told.note.clone());
        if let Some(n) = &told.name {
            r.card.name.clone_from(n);
        }
        if r.card.name.trim().is_empty() {
            let short = &r.source.file;
            let stem = short.rsplit_once('.').map_or(short.as_str(), |x| x.0);
            r.card.name = r.source.number.map_or(stem.to_string(), |n| format!("{stem}, card {n}"));
        }
        let original = match &r.original {
            Value::String(s) => s.clone(),
            v => v.to_string(),
        };
        let hex = |d: &[u8]| d.iter().map(|b| format!("{b:02x}")).collect::<String>();
        r.source.sha256 = hex(&Sha256::digest(original.as_bytes()));
        // Cards of one file may share the original.
        r.id = match r.source.number {
            None => r.source.sha256[..12].into(),
            Some(n) => hex(&Sha256::digest(format!("{original}\ncard {n}").as_bytes()))[..12].into(),
        };
        r.plain()
    }

    /// Without characters that would steer a terminal, but for the original, which is never printed.
    pub fn plain(mut self) -> Record {
        let original = std::mem::take(&mut self.original);
        if let Ok(mut value) = serde_json::to_value(&self) {
            scrub(&mut value);
            self = serde_json::from_value(value).unwrap_or(self);
        }
        self.original = original;
        self
    }

    /// Whether the figure is one of those that contradict themselves. A flag that names no figure is of all (G7).
    pub fn flagged(&self, m: &Metric) -> bool {
        let names = |flag: &str, m: &Metric| {
            let name = m.name.split_once(", ").map_or(m.name.as_str(), |n| n.0);
            [name, m.name.as_str()].iter().any(|n| flag.starts_with(&format!("{n}, {}:", m.conditions)))
        };
        self.flags.iter().any(|f| names(f, m) || !self.metrics.iter().any(|other| names(f, other)))
    }

    /// An entry that an older version wrote had the median of the longest times.
    pub fn mend(&mut self) {
        for m in self.metrics.iter_mut().filter(|m| m.over == Over::Median && m.unit == "µs" && m.name.ends_with(", longest time")) {
            *m = m.clone().over(Over::Longest);
        }
    }

    /// `serials` gets the serial numbers that it names.
    fn of_json(name: &str, schema: &str, v: Value, told: &Told, serials: &mut Vec<String>) -> Result<Vec<Record>, String> {
        match schema {
            _ if Inferred::is(&v) => Record::of_inferred(v),
            REPORT => {
                let report = Report::from_value(v, name).map_err(|e| e.to_string())?;
                serials.extend(report.serials());
                Ok(vec![Record::of_report(&if told.with_serial { report } else { report.without_serial() })])
            }
            SCHEMA => {
                let inside = &v["original"];
                serials.extend([&inside["target"], &inside["declared"]].into_iter().flat_map(privacy::in_json));
                let mut r: Record = serde_json::from_value(v).map_err(|e| e.to_string())?;
                // Every entry has them; a result of another command under this schema has findings, and would look like one.
                if r.id.is_empty() || r.source.format.is_empty() {
                    return Err(format!("it says {SCHEMA} and is no entry of a survey: it names no source"));
                }
                r.mend();
                Ok(vec![r])
            }
            "nandscope-bench/1" => Record::of_benches(&v),
            FRAG => Ok(vec![Record::of_frag(v)?]),
            CHECK => Ok(vec![Record::of_check(v)?]),
            other => Err(format!("its schema is {other}; this program reads {REPORT}, {SCHEMA}, {CHECK} and fio's JSON")),
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

    /// The name of its file as it may be shared.
    pub fn shared_file(&self) -> String {
        let mut serials: Vec<String> =
            [&self.original["target"], &self.original["declared"]].into_iter().flat_map(privacy::in_json).collect();
        serials.extend(self.in_log());
        privacy::mask(&self.source.file, &serials)
    }

    /// Serial numbers that the log inside names.
    fn in_log(&self) -> Vec<String> {
        let mut serials = vec![];
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
        serials
    }

    /// The same without these serial numbers and those that a log names: in the original, in every other text, and in the name
    /// of the file.
    fn without_serial(self, mut serials: Vec<String>) -> Record {
        serials.extend(self.in_log());
        let Ok(mut value) = serde_json::to_value(&self) else { return self };
        privacy::hide(&mut value, &serials);
        serde_json::from_value(value).unwrap_or(self)
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
            failing: self.failing().unwrap_or(false).then(|| format!("failing: {}", self.why_failing())),
            counterfeit: self.counterfeit().map(|c| format!("{}: {}", c.word(), c.sizes())),
            label: label.into(),
            name: self.card.name.clone(),
            identity,
            findings: self.findings.clone(),
            metrics: self.metrics.iter().filter(|m| !self.flagged(m)).cloned().collect(),
            host: self.source.host.as_deref().map(hosts::class),
            simulated: self.source.simulated,
            left_out: self.flags.clone(),
            runs: runs.unwrap_or_default(),
        }
    }

    /// Bytes of the disk: they are in the report; a card may declare another number.
    fn reports(&self) -> Option<u64> {
        self.original["reported_bytes"].as_u64().or(self.card.capacity)
    }

    /// Set where the card holds less than it reports: by the findings of a report, or by what f3probe printed.
    pub fn counterfeit(&self) -> Option<Counterfeit> {
        let reports = self.reports()?;
        let usable = self.metrics.iter().find(|m| (m.name.as_str(), m.conditions.as_str()) == ("usable size", "f3probe"));
        // f3probe does not separate a damaged card from a false one.
        let by_f3 = usable.filter(|_| self.flags.iter().any(|f| f.starts_with("counterfeit"))).map(|m| (m.value * MIB as f64) as u64);
        Counterfeit::of(&self.findings, reports).or(by_f3.map(|u| Counterfeit { reports, holds: u, at_most: u, failing: true }))
    }

    /// Whether the card holds what it reports; none where nobody tested it.
    pub fn genuine(&self) -> Option<bool> {
        let whole = self.metrics.iter().any(|m| (m.name.as_str(), m.conditions.as_str()) == ("usable size", "f3probe"));
        match self.counterfeit() {
            Some(_) => Some(false),
            None => self.reports().and_then(|r| genuine(&self.findings, r)).or(whole.then_some(true)),
        }
    }

    /// Whether the card fails or loses what is written: by what a check said, or by the findings of a report.
    pub fn failing(&self) -> Option<bool> {
        match self.original["outcome"].as_str().filter(|_| self.source.format == OF_CHECK) {
            Some("failing") => Some(true),
            Some("not_known" | "gone") | None => loses(&self.findings).map(|_| true),
            Some(_) => Some(false),
        }
    }

    fn why_failing(&self) -> String {
        let check = self.source.format == OF_CHECK && !self.notes.is_empty();
        if check { self.notes.join("; ") } else { loses(&self.findings).unwrap_or_default().into() }
    }

    /// Bytes that are there: what a counterfeit holds, or all that a tested card reports.
    pub fn real_capacity(&self) -> Option<u64> {
        self.counterfeit().map(|c| c.holds).or_else(|| self.reports().filter(|_| self.genuine() == Some(true)))
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
        let r = read("logs/card.txt", include_str!("../../tests/figures/record-bench.txt")).unwrap();
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
        assert_eq!((r.card.name.as_str(), r.metrics[0].key().as_str(), r.metrics.len()), ("sim:x", "record-write-100-b-records", 8));
        let e = Record::from_file("b.json", file(one("sim:x", 100), one("sim:y", 100)).as_bytes(), &Told::default(), 0).unwrap_err();
        assert!(e.contains("several cards"), "{e}");
    }

    #[test]
    fn serial_numbers_in_logs_are_masked() {
        // Of a card described at http://www.bradfordembedded.com/2014/05/flashbenching
        let text = "==> /sys/block/mmcblk1/device/cid <==\n02544d5341303447113533890900d371\n\
                    ==> /sys/block/mmcblk1/device/serial <==\n0x35338909\n";
        assert!(text.contains("cid"), "the test needs a CID");
        let r = Record::from_file("x", text.as_bytes(), &Told::default(), 0).unwrap();
        let kept = Record::from_file("x", text.as_bytes(), &Told { with_serial: true, ..Told::default() }, 0).unwrap();
        assert_ne!(r.original, kept.original);
        // The CID holds it in bytes 9 to 12; sysfs has it once more by itself.
        assert!(text.contains("35338909") && kept.original.to_string().contains("35338909"));
        assert!(!r.original.to_string().contains("35338909") && r.original.to_string().contains("02544d534130344711xxxx"));
    }
}

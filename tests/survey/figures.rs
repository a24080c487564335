//! Figures in the survey and in `compare`: longest times, hosts, sizes, prices, flags, classes, and what files can be added.

use super::program::WIDE;
use super::shared;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

pub struct Lab {
    pub dir: tempfile::TempDir,
}

impl Lab {
    pub fn new() -> Lab {
        Lab { dir: tempfile::tempdir().unwrap() }
    }

    pub fn at(&self, name: &str) -> String {
        self.dir.path().join(name).to_str().unwrap().to_string()
    }

    pub fn file(&self, name: &str, text: &str) -> String {
        std::fs::write(self.at(name), text).unwrap();
        self.at(name)
    }

    /// Exit code, standard output, standard error.
    pub fn run(&self, args: &[&str]) -> (i32, String, String) {
        self.run_at(WIDE, args)
    }

    /// The same in so many columns.
    pub fn run_at(&self, columns: &str, args: &[&str]) -> (i32, String, String) {
        let mut program = Command::new(env!("CARGO_BIN_EXE_nandscope"));
        let out = program.args(args).env("COLUMNS", columns).current_dir(self.dir.path()).output().unwrap();
        (out.status.code().unwrap(), String::from_utf8(out.stdout).unwrap(), String::from_utf8(out.stderr).unwrap())
    }

    pub fn survey(&self, args: &[&str]) -> (i32, String, String) {
        self.run(&[&["survey", "--dir", "s"], args].concat())
    }

    pub fn entries(&self, conditions: &[&str]) -> Vec<Value> {
        let (_, list, err) = self.survey(&[&["search", "--json"], conditions].concat());
        assert_eq!(err, "");
        let id = |l: &str| serde_json::from_str::<Value>(l).unwrap()["id"].as_str().unwrap().to_string();
        list.lines().map(|l| serde_json::from_str(&self.survey(&["show", &id(l), "--json"]).1).unwrap()).collect()
    }

    pub fn bench(&self, name: &str, cards: &[&str], host: &str, extra: &[&str]) -> String {
        let targets: Vec<String> = cards.iter().map(|c| format!("sim:{c}{host}")).collect();
        let mut args = vec!["bench"];
        args.extend(targets.iter().map(String::as_str));
        args.extend(["--record", "100,512", "--file", "300kB", "-q", "--json", name]);
        args.extend(extra);
        let (code, _, err) = self.run(&args);
        assert_eq!(code, 0, "{err}");
        self.at(name)
    }
}

/// Logs of SdFat-like benchmarks; none where they are not at hand.
fn logs(what: &str) -> Option<Vec<PathBuf>> {
    let dir = shared::published(what, "sdfat")?;
    let mut all: Vec<PathBuf> =
        std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().path()).filter(|p| p.extension().is_some_and(|e| e == "txt")).collect();
    all.sort();
    Some(all)
}

fn add_logs(lab: &Lab, paths: &[PathBuf]) {
    let mut args = vec!["add"];
    args.extend(paths.iter().map(|p| p.to_str().unwrap()));
    assert_eq!(lab.survey(&args).0, 0);
}

fn metric<'a>(entry: &'a Value, name: &str) -> Option<&'a Value> {
    entry["metrics"].as_array().unwrap().iter().find(|m| m["name"] == name)
}

/// G2: the longest of the passes is the longest and the shortest the shortest, in every log; an entry that an older version wrote
/// is read so, too.
#[test]
fn longest_is_longest() {
    let Some(logs) = logs("the longest of several passes") else { return };
    let lab = Lab::new();
    add_logs(&lab, &logs);
    let mut checked = 0;
    for entry in lab.entries(&["format=log", "elehobica"]) {
        let text = entry["original"].as_str().unwrap();
        for (heading, what) in [("write speed", "record write"), ("read speed", "record read")] {
            let at = text.find(heading).unwrap();
            let rows: Vec<Vec<f64>> = text[at..]
                .lines()
                .skip(1)
                .take_while(|l| !l.contains("speed and"))
                .map(|l| l.split(',').filter_map(|w| w.trim().parse().ok()).collect())
                .filter(|r: &Vec<f64>| r.len() == 4)
                .collect();
            assert!(rows.len() > 1);
            let of = |i: usize, f: fn(f64, f64) -> f64| rows.iter().map(|r| r[i]).reduce(f).unwrap();
            let value = |name: &str| metric(&entry, &format!("{what}, {name}")).unwrap()["value"].as_f64().unwrap();
            assert_eq!((value("longest time"), value("shortest time")), (of(1, f64::max), of(2, f64::min)), "{}", entry["source"]["file"]);
            checked += 1;
        }
    }
    assert_eq!(checked, 24);
    let id = lab.entries(&["name=Sandisk Ultra 64GB", "host=rp2040"])[0]["id"].as_str().unwrap().to_string();
    let shown = || lab.survey(&["show", &id]).1;
    assert!(shown().contains("53151 µs (longest of 2 passes)"), "{}", shown());
    let path = lab.at(&format!("s/cards/{id}.json"));
    let mut old: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    for m in old["metrics"].as_array_mut().unwrap().iter_mut().filter(|m| m["name"] == "record write, longest time") {
        m["value"] = 36236.5.into();
        m.as_object_mut().unwrap().remove("over");
    }
    std::fs::write(&path, old.to_string()).unwrap();
    assert!(shown().contains("53151 µs (longest of 2 passes)"), "{}", shown());
    let beyond = lab.survey(&["search", "record-write-longest-time-512-b-records>53000", "name=Ultra"]).1;
    assert!(beyond.contains(&id), "{beyond}");
}

/// C4, C6: Uno, Pico and Pico 2 are kept apart; each card counts once on a host.
#[test]
fn hosts_are_never_mixed() {
    let Some(logs) = logs("figures of several hosts") else { return };
    let lab = Lab::new();
    add_logs(&lab, &logs);
    let key = "record-write-512-b-records";
    let (_, chart, _) = lab.survey(&["chart", "--figure", key]);
    for (host, cards) in [("Pico (rp2040)", 6), ("Pico 2 (rp2350)", 6), ("Arduino Uno (AVR, 16 MHz)", 4)] {
        let line = chart.lines().find(|l| l.starts_with(&format!("{host}: "))).unwrap_or_else(|| panic!("{host}:\n{chart}"));
        assert!(line.contains(&format!("over {cards} cards")), "{line}");
    }
    assert!(chart.contains("4 hosts: each by itself") && !chart.contains("the higher the rate"), "{chart}");
    // Any of its names chooses a host.
    for (name, host, not) in [
        ("rp2040", "Pico (rp2040)", "Pico 2"),
        ("rp2350", "Pico 2", "rp2040"),
        ("avr-16mhz-spi", "Arduino Uno", "Pico"),
        ("arduino uno", "Arduino Uno", "Pico"),
    ] {
        let one = lab.survey(&["chart", "--figure", key, "--host", name]).1;
        assert!(one.contains(host) && !one.contains(not) && !one.contains("hosts: each"), "{name}\n{one}");
        let found = lab.survey(&["search", &format!("{key}>1"), &format!("host={name}")]).1;
        assert!(!found.contains("not comparable"), "{found}");
    }
    assert!(lab.survey(&["search", &format!("{key}>1")]).1.contains("measured on 4 hosts, which are not comparable"));
    // The same log under another name, and twice on one host.
    let text = std::fs::read_to_string(logs.iter().find(|p| p.to_str().unwrap().ends_with("ultra-64gb_pico.txt")).unwrap()).unwrap();
    for n in 0..3 {
        let again = lab.file(&format!("again{n}.txt"), &text.replace("415.0834", &format!("41{n}.5")));
        assert_eq!(lab.survey(&["add", &again]).0, 0);
    }
    let pico = lab.survey(&["chart", "--figure", key, "--host", "rp2040"]).1;
    assert!(pico.contains("over 6 cards") && pico.contains("Sandisk Ultra 64GB (median of 4)"), "{pico}");
    let id = |host: &str| lab.entries(&["name=Kioxia", &format!("host={host}")])[0]["id"].as_str().unwrap().to_string();
    let (code, both, _) = lab.survey(&["compare", &id("rp2040"), &id("rp2350")]);
    assert!(both.contains("not compared: measured on Pico (rp2040) and on Pico 2 (rp2350)") && code == 3, "{code}\n{both}");
    let (_, both, _) = lab.survey(&["compare", &id("rp2040"), "--against", &id("rp2350")]);
    assert!(both.contains("no figure that both have") && both.contains("measured on Pico (rp2040), the others on Pico 2"), "{both}");
}

/// What stands behind a name.
fn figures_of<'a>(out: &'a str, name: &str) -> &'a str {
    let line = out.lines().find(|l| l.starts_with(name)).unwrap_or_else(|| panic!("{name}\n{out}"));
    line.split_once(" records").map_or("", |l| l.1)
}

/// G4, G6, G14: classes in one table, of published rows, of simulated cards on the same host, and of both.
#[test]
fn classes_have_a_ratio() {
    let lab = Lab::new();
    let oracle = [("write, 512", 2.25), ("read, 512", 1.29), ("write, 100", 1.85), ("read, 100", 1.19)];
    let ratios = |out: &str| -> Vec<f64> {
        let of = |w: &str| {
            let (kind, size) = w.split_once(", ").unwrap();
            figures_of(out, &format!("record {kind}, {size} B")).split_whitespace().last().unwrap().parse().unwrap()
        };
        oracle.iter().map(|o| of(o.0)).collect()
    };
    let refs = |ids: &[&str]| ids.iter().map(|i| format!("ref:greiman-{i}")).collect::<Vec<_>>();
    let (good, plain) = (refs(&["wintec-1gb", "swissbit-1gb"]), refs(&["sandisk-c2-2gb", "amazon-c10-4gb"]));
    let args: Vec<&str> = ["compare", &good[0], &good[1], "--against", &plain[0], &plain[1]].to_vec();
    let (code, out, _) = lab.run(&args);
    assert_eq!(code, 0);
    for (r, o) in ratios(&out).iter().zip(oracle) {
        assert!((r - o.1).abs() < 0.011, "{}: {r} for {}", o.0, o.1);
    }
    assert!(out.lines().count() < 30 && !out.contains("cannot be said") && out.contains("p cannot be below 0.33"), "{out}");
    let pairs = lab.run(&[&args[..], &["--pairs"]].concat()).1;
    let small = lab.run_at("80", &args).1;
    assert!(small.lines().all(|l| l.chars().count() <= 80) && small.contains("\nrecord write, 512 B records\n  2 396"), "{small}");
    assert!(pairs.starts_with(&out) && pairs.contains("A and B") && pairs.contains("A and D"), "{pairs}");
    // Turned round, the ratios are.
    let back = ratios(&lab.run(&["compare", &plain[0], &plain[1], "--against", &good[0], &good[1]]).1);
    assert!((back[0] - 1.0 / 2.245).abs() < 0.005, "{back:?}");
    // A row that contradicts itself is named and counts in no class.
    let atp = lab.run(&["compare", "ref:greiman-atp-slc-1gb", &good[0], "--against", &plain[0]]).1;
    let n = |w: &str| figures_of(&atp, w).split_whitespace().next().unwrap();
    assert_eq!((n("record write, 512 B"), n("record write, 100 B")), ("1", "2"), "{atp}");
    assert!(atp.contains("left out of Greiman's ATP SLC industrial: record write, 512 B records: inconsistent"), "{atp}");

    let host = "?host=avr-16mhz-spi";
    let industrial = lab.bench("industrial.json", &["wintec-1gb", "swissbit-1gb"], host, &[]);
    let consumer = lab.bench("consumer.json", &["sandisk-c2-2gb", "amazon-c10-4gb"], host, &[]);
    let modern = lab.bench("modern.json", &["modern-a1-32gb", "modern-a2-128gb"], host, &[]);
    for (r, o) in ratios(&lab.run(&["compare", &industrial, "--against", &consumer]).1).iter().zip(oracle) {
        assert!((r / o.1 - 1.0).abs() < 0.1, "{}: {r} for {}", o.0, o.1);
    }
    let json: Value = serde_json::from_str(&lab.run(&["compare", &industrial, "--against", &consumer, "--json", "-"]).1).unwrap();
    assert_eq!((json["lots"][0]["a"].as_array().unwrap().len(), json["cards"].as_array().unwrap().len()), (2, 4));
    // On the Uno the next generation is not slower: the models against the cards of 2012, measured there.
    let next = lab.run(&["compare", &modern, "--against", &plain[0], &plain[1]]).1;
    assert!(ratios(&next)[0] > 1.3 && next.contains("on Arduino Uno (AVR, 16 MHz)"), "{next}");
    // On another host it is not answered.
    let pico = lab.bench("pico.json", &["modern-a1-32gb"], "?host=rp2040-spi", &[]);
    let (_, none, _) = lab.run(&["compare", &pico, "--against", &plain[0], &plain[1]]);
    assert!(none.contains("no figure that both have") && none.contains("measured on Pico (rp2040), the others on Arduino Uno"), "{none}");
    assert_eq!(lab.survey(&["add", &industrial, &consumer, &modern, &pico]).1.lines().last(), Some("7 added, 0 already there, 0 skipped"));
    let chart = lab.survey(&["chart", "--host", "avr-16mhz-spi", "--figure", "record-write-512-b-records"]).1;
    assert!(chart.contains("over 10 cards") && chart.contains("(6 of them simulated)") && !chart.contains("Pico"), "{chart}");
    let lots = lab.survey(&["compare", "host=avr-16mhz-spi", "--against", "host=rp2040"]);
    assert!(lots.1.contains("no figure that both have"), "{lots:?}");
}

/// C7: a ratio is printed once, and no statement contradicts it.
#[test]
fn a_ratio_is_printed_once() {
    let lab = Lab::new();
    for (a, b, words) in [
        ("chan-128mb-sdc", "chan-512mb-sdc", "B is 2.8x slower, x0.36"),
        ("chan-512mb-sdc", "chan-128mb-mmc", "B is 6.5x faster, x6.50"),
        ("chan-128mb-mmc", "chan-128mb-sdc", "B is 2.4x slower, x0.42"),
    ] {
        let (code, out, _) = lab.run(&["compare", &format!("ref:{a}"), &format!("ref:{b}")]);
        let line = out.lines().find(|l| l.contains("record write")).unwrap();
        assert!(code == 0 && line.ends_with(words), "{line}");
        assert!(out.contains("  of these one figure each: no interval\n"), "{out}");
        assert!(!out.contains("cannot be said, x"), "{out}");
        for l in out.lines().filter(|l| l.starts_with("  A: ") || l.starts_with("  B: ")) {
            // What stands beside is another card.
            assert!(
                ["128 MB SDC", "512 MB SDC", "128 MB MMC"].iter().any(|c| l.contains(c) && !out.lines().take(2).any(|n| n.contains(c))),
                "{l}"
            );
        }
    }
}

/// Own results carry the size of the card; a card without one is named.
#[test]
fn sizes_are_kept_or_missed() {
    let lab = Lab::new();
    let cards = [("wintec-1gb", 1u64 << 30), ("modern-a1-32gb", 32_000_000_000), ("sandisk-c2-2gb", 2_000_000_000)];
    for (card, size) in cards {
        for host in ["", "?host=rp2040-spi"] {
            let name = format!("{card}{}.json", host.len());
            let file = lab.bench(&name, &[card], host, &["--no-read"]);
            assert_eq!(lab.survey(&["add", &file]).0, 0);
            let v: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
            let kept = v["benches"][0]["capacity"].as_u64().unwrap() as f64;
            assert!((kept / size as f64 - 1.0).abs() < 0.1, "{card}: {kept}");
        }
    }
    for e in lab.entries(&["sim"]) {
        assert!(e["card"]["capacity"].as_u64().is_some() && e["source"]["simulated"] == true, "{e}");
    }
    let log = |n: u32| format!("BUF_SIZE = 512 bytes\nwrite speed and latency\nspeed,max,min,avg\n{n}.5,90000,1000,1100\n");
    let (a, b) = (lab.file("without.txt", &log(300)), lab.file("with.txt", &log(310)));
    lab.survey(&["add", &a]);
    lab.survey(&["add", &b, "--size", "4GB", "--host", "Arduino Uno"]);
    let chart = lab.survey(&["chart", "--figure", "record-write-512-b-records"]).1;
    assert!(chart.contains("without a size: without (300 kB/s), not in the chart"), "{chart}");
    assert_eq!(lab.entries(&["name=with", "capacity>3GB"])[0]["card"]["capacity"], 4_000_000_000u64);
    let sim = lab.survey(&["chart", "--figure", "record-write-512-b-records", "simulated"]).1;
    assert!(sim.contains("sim:wintec-1gb") && !sim.contains("0 cards"), "{sim}");
    assert!(lab.survey(&["add", &a, "--size", "big"]).2.contains("big"));
}

/// G13: prices are kept with their currency, found by it, and never compared with others.
#[test]
fn prices_have_a_currency() {
    let lab = Lab::new();
    let log = |n: u32| {
        lab.file(&format!("{n}.txt"), &format!("BUF_SIZE = 512 bytes\nwrite speed and latency\nspeed,max,min,avg\n{n}.5,90000,1000,1100\n"))
    };
    let search = |c: &str| lab.survey(&["search", c]);
    assert!(search("price<10").1.contains("ref-greiman-atp-slc-1gb"), "5.75 USD is the only price");
    lab.survey(&["add", &log(300), "--price", "12 USD", "--size", "4GB", "--host", "Arduino Uno"]);
    let (_, found, _) = search("price<10");
    assert!(
        found.contains("1 card") && search("price>=12usd").1.contains("1 card") && search("price<$20").1.contains("2 cards"),
        "{found}"
    );
    lab.survey(&["add", &log(310), "--price", "7 €", "--size", "8GB", "--host", "Arduino Uno"]);
    let (code, _, err) = search("price<10");
    assert!(code == 2 && err.contains("prices in EUR, USD, which are not compared"), "{err}");
    assert!(search("price<10EUR").1.contains("1 card") && search("price<10USD").1.contains("1 card"));
    assert!(search("price<10GBP").2.contains("no card has a price in GBP"));
    for bad in ["cheap", "12", "1 2 EUR"] {
        assert_eq!(lab.survey(&["add", &log(320), "--price", bad]).0, 2, "{bad}");
    }
    let chart = lab.survey(&["chart", "--figure", "record-write-512-b-records", "--host", "Arduino Uno"]).1;
    assert!(chart.contains("25.0 kB/s/USD") && chart.contains("44.4 kB/s/EUR"), "{chart}");
    // What `bench` was told is kept: as text, as amount and currency, or as a number alone, which says so.
    let made = lab.bench("b.json", &["wintec-1gb"], "", &["--no-read"]);
    let v: Value = serde_json::from_str(&std::fs::read_to_string(made).unwrap()).unwrap();
    for (i, (price, kept)) in [
        (serde_json::json!("9.5 EUR"), "9.5 EUR"),
        (serde_json::json!({ "amount": 9.5, "currency": "EUR" }), "9.5 EUR"),
        (serde_json::json!(9.5), "9.5"),
    ]
    .into_iter()
    .enumerate()
    {
        let mut w = v.clone();
        w["benches"].as_array_mut().unwrap().iter_mut().for_each(|b| b["price"] = price.clone());
        let file = lab.file(&format!("p{i}.json"), &w.to_string());
        let out = lab.survey(&["add", &file]).1;
        let id = out.split_whitespace().next().unwrap().to_string();
        let shown = lab.survey(&["show", &id]).1;
        assert!(shown.lines().any(|l| l.trim_start().starts_with("price") && l.trim_end().ends_with(kept)), "{shown}");
        assert_eq!(shown.contains("no currency"), i == 2, "{shown}");
    }
}

/// G7: three ways in which figures contradict each other are flagged, and the card's other figures stay.
#[test]
fn contradictions_are_flagged_by_figure() {
    let lab = Lab::new();
    let log = |name: &str, row: &str| {
        lab.file(name, &format!("# host: Arduino Uno\nBUF_SIZE = 100 bytes\nwrite speed and latency\nspeed,max,min,avg\n240.5,90000,84,409\n\nBUF_SIZE = 512 bytes\nwrite speed and latency\nspeed,max,min,avg\n{row}\n"))
    };
    for (i, (row, says)) in [
        ("400.25,85756,1300,1250", "below the shortest of 1300"),
        ("600.25,85756,1152,800", "below the shortest of 1152"),
        ("407.57,85756,1152,1263", "inconsistent: 407.57 kB/s is 1256"),
        ("152.31,59452,2132,3369", "inconsistent: 152.31 kB/s is 3362"),
    ]
    .iter()
    .enumerate()
    {
        let file = log(&format!("card {i}.txt"), row);
        let out = lab.survey(&["add", &file, "--size", &format!("{}GB", i + 1)]).1;
        assert!(out.contains("flag: record write, 512 B records: ") && out.contains(says), "{row}\n{out}");
        assert_eq!(out.matches("flag:").count(), 1, "{out}");
    }
    let chart = |key: &str| lab.survey(&["chart", "--figure", key, "name=card"]).1;
    let small = chart("record-write-100-b-records");
    assert!(small.contains("over 4 cards") || small.contains("4 cards"), "{small}");
    assert!(!small.contains("left out"), "{small}");
    assert_eq!(chart("record-write-512-b-records").matches("left out: card ").count(), 4);
    // The published card whose 512 B row contradicts itself keeps its 100 B row.
    assert!(!lab.survey(&["chart", "--figure", "record-write-100-b-records", "atp"]).1.contains("left out"));
}

/// Names that nobody has are errors that name the nearest; a directory that is no survey is not made one by looking.
#[test]
fn misspelt_names_are_errors() {
    let lab = Lab::new();
    for (word, meant) in [
        ("open_aus_linaer>5", "open_aus_linear"),
        ("record-wirte-512-b-records>100", "record-write-512-b-records"),
        ("record-write-2048-b-record>1", "record-write-2048-b-records"),
        ("eraseblock=4MiB", "erase_block"),
        ("capacty>1", "capacity"),
    ] {
        let (code, out, err) = lab.survey(&["search", word]);
        assert!(code == 2 && out.is_empty() && err.contains(&format!("did you mean {meant}?")), "{word}: {err}");
    }
    assert!(lab.survey(&["search", "a_b<3"]).2.contains("no card has a figure named 'a-b'"));
    assert!(lab.survey(&["chart", "--figure", "record-write-512-b-record"]).2.contains("did you mean record-write-512-b-records?"));
    for args in [
        &["list"][..],
        &["search", "pqi"],
        &["show", "ref-olpc-good"],
        &["chart"],
        &["export"],
        &["compare", "ref-chan-128mb-sdc", "ref-chan-512mb-sdc"],
    ] {
        let (code, _, err) = lab.survey(args);
        assert!((code == 0 || code == 3) && err.contains("there is no survey in s"), "{args:?} {err}");
        assert!(!Path::new(&lab.at("s")).exists(), "{args:?}");
    }
    // C9: cards of which only words are known.
    for maker in ["pqi", "panasonic", "toshiba"] {
        let (code, out, _) = lab.survey(&["search", maker, "chan"]);
        assert!(code == 0 && out.contains("no figures") && out.contains("1 card"), "{out}");
        let shown = lab.survey(&["show", &format!("ref-chan-{maker}-sdc")]).1;
        assert!(shown.contains("no figures in the source"), "{shown}");
    }
    // Each column of the table has its own name, and a bound is told from a value and from nothing.
    let csv = lab.survey(&["export"]).1;
    let names: Vec<&str> = csv.lines().next().unwrap().split(',').collect();
    assert_eq!(names.iter().collect::<std::collections::HashSet<_>>().len(), names.len());
    for n in ["part", "lot", "price", "currency", "host", "file", "tool", "seed", "capacity_declared", "capacity_found"] {
        assert!(names.contains(&n), "{n}");
    }
}

/// F20, C10: rows of a wiki table, busy traces and firmware logs are entries, too.
#[test]
fn other_files_are_read() {
    let lab = Lab::new();
    let probe = lab.at("r.json");
    for card in ["flashbench-readme", "tlc-12mib"] {
        assert_eq!(lab.run(&["probe", &format!("sim:{card}"), "-q", "--json", &probe]).0, 0);
        assert_eq!(lab.survey(&["add", &probe]).0, 0);
    }
    let wiki = lab.at("wiki.txt");
    assert_eq!(lab.survey(&["export", "--format", "wiki", "-o", &wiki]).0, 0);
    let text = std::fs::read_to_string(&wiki).unwrap();
    let (code, out, err) = lab.run(&["survey", "--dir", "t", "add", &wiki]);
    assert!(code == 0 && out.ends_with(&format!("{} added, 0 already there, 0 skipped\n", text.lines().count() - 1)), "{out}{err}");
    let count = |dir: &str, c: &[&str]| lab.run(&[&["survey", "--dir", dir, "search"], c].concat()).1.lines().last().unwrap().to_string();
    for c in [
        &["erase_block=4MiB"][..],
        &["erase_block=12MiB"],
        &["open_aus_linear>=5"],
        &["open_aus_random<5"],
        &["page=8KiB"],
        &["fat_zone>0"],
    ] {
        let mut in_wiki = c.to_vec();
        in_wiki.push("format=wiki");
        assert_eq!(count("t", &in_wiki), count("s", c), "{c:?}");
    }
    // Two busy traces, whole numbers a line.
    let trace = |name: &str, every: usize, polls: u64| {
        let lines = (0..120).map(|i| format!("3 3 3 {} 2\n", if i % every == every - 1 { polls } else { 3 }));
        lab.file(name, &lines.collect::<String>())
    };
    let (a, b) = (trace("a.busy", 2, 30_000), trace("b.busy", 4, 90_000));
    let (code, out, err) = lab.run(&["compare", &a, &b]);
    assert!(code == 0 && out.contains("busy after a block, mean") && out.contains("polls"), "{out}{err}");
    assert!(out.contains("write buffer") && out.contains("4 KiB") && out.contains("8 KiB"), "{out}");
    assert!(lab.survey(&["add", &a, &b]).1.contains("2 added"));
    assert_eq!(count("s", &["format=busy trace", "write_buffer=4KiB"]), "1 card");
    // A text that is nothing of all this: the answer names what can be read.
    let (code, _, err) = lab.survey(&["add", &lab.file("x.txt", "hello\n")]);
    assert!(code == 1 && err.contains("busy trace") && err.contains("firmware") && err.contains("nothing to read"), "{err}");
}

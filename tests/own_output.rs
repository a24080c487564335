//! What the program prints is read back: record sizes, hosts and cards apart, each pass once; rows of 3 * 2^n; writes as writes.
//!
//! covers: C6, C7, F5, F6, G2, G5, Q1

use serde_json::Value;
use std::process::{Command, Stdio};

fn run(args: &[&str], input: Option<&str>) -> String {
    let mut c = Command::new(env!("CARGO_BIN_EXE_nandscope"));
    c.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = c.spawn().unwrap();
    let mut pipe = child.stdin.take().unwrap();
    let text = input.unwrap_or_default().to_string();
    let writer = std::thread::spawn(move || {
        use std::io::Write;
        let _ = pipe.write_all(text.as_bytes());
    });
    let out = child.wait_with_output().unwrap();
    writer.join().unwrap();
    assert!(matches!(out.status.code(), Some(0 | 3)), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

fn infer(text: &str) -> Value {
    serde_json::from_str(&run(&["infer", "-", "--json", "-"], Some(text))).unwrap()
}

#[test]
fn the_bench_is_read_back_figure_by_figure() {
    let dir = tempfile::tempdir().unwrap();
    let json = dir.path().join("b.json");
    for args in [
        vec!["sim:wintec-1gb"],
        vec!["sim:wintec-1gb", "sim:amazon-c10-4gb"],
        vec!["sim:amazon-c10-4gb", "sim:wintec-1gb", "sim:sandisk-c2-2gb", "--record", "100,512,4096"],
        vec!["sim:wintec-1gb?host=rp2040-spi", "--record", "512"],
    ] {
        let mut all = vec!["bench", "-q", "--file", "200kB", "--json", json.to_str().unwrap()];
        all.extend(&args);
        let text = run(&all, None);
        let want: Value = serde_json::from_str(&std::fs::read_to_string(&json).unwrap()).unwrap();
        let got = infer(&text);
        let cards = got["cards"].as_array().unwrap();
        let targets = args.iter().filter(|a| a.starts_with("sim:")).count();
        assert_eq!(cards.len(), targets, "{got:#}");
        let (mut asked, mut found) = (0, 0);
        for b in want["benches"].as_array().unwrap() {
            let card = cards.iter().find(|c| c["name"] == b["target"]).unwrap_or_else(|| panic!("{got:#}"));
            for p in b["passes"].as_array().unwrap() {
                asked += 1;
                let same = |r: &&Value| r["record"] == b["record"] && r["write"] == p["write"];
                let rows: Vec<&Value> = card["records"].as_array().unwrap().iter().filter(same).collect();
                assert_eq!(rows.len(), 1, "{card:#}");
                assert_eq!(rows[0]["passes"], 1, "{card:#}");
                let host = rows[0]["host"].as_str().unwrap();
                assert!(b["host"].as_str().unwrap().starts_with(host), "{host}");
                for (key, printed) in [("speed_kb_s", "speed"), ("max_us", "max"), ("min_us", "min"), ("avg_us", "avg")] {
                    let (x, y) = (p[key].as_f64().unwrap(), rows[0][printed].as_f64().unwrap());
                    assert!((x - y).abs() <= if key == "speed_kb_s" { 0.006 } else { 0.51 }, "{key}: {x} {y}");
                }
            }
            found = cards.iter().map(|c| c["records"].as_array().unwrap().len()).sum();
        }
        assert_eq!(asked, found, "nothing but what was measured");
    }
}

/// C7: a bench of one's own stands beside ChaN's cards, measured with records of the same size on such a host.
#[test]
fn a_bench_is_compared_with_chans_cards() {
    let dir = tempfile::tempdir().unwrap();
    let json = dir.path().join("b.json");
    let json = json.to_str().unwrap();
    for size in [&["--record", "2KiB"][..], &["--chunks", "2KiB"]] {
        run(&[&["bench", "sim:chan-sdc-512mb", "-q", "--file", "200kB", "--json", json], size].concat(), None);
        let text = run(&["compare", "ref:chan-512mb-sdc", json, "ref:chan-128mb-sdc"], None);
        let row =
            |with: &str| text.lines().filter(|l| l.starts_with("  record") && l.contains(", 2048 B records") && l.contains(with)).count();
        assert_eq!((row("28.0 kB/s"), row("77.0 kB/s"), row("234 kB/s"), row("328 kB/s")), (2, 1, 2, 1), "{text}");
        assert!(!text.contains("not compared") && !text.contains("left out"), "{text}");
        // Another host is another measurement.
        run(&[&["bench", "sim:chan-sdc-512mb?host=rp2040-spi", "-q", "--file", "200kB", "--json", json], size].concat(), None);
        assert!(run(&["compare", "ref:chan-512mb-sdc", json], None).contains("not compared"));
    }
}

#[test]
fn alignment_tables_are_read_back() {
    let model = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/cards/tlc-12mib.toml")).unwrap();
    let dir = tempfile::tempdir().unwrap();
    for (block, unit) in [("12 MiB", "48 KiB"), ("6 MiB", "48 KiB"), ("3 MiB", "48 KiB"), ("24 MiB", "48 KiB"), ("8 MiB", "32 KiB")] {
        let path = dir.path().join("card.toml");
        let text =
            model.replace("erase_block = \"12 MiB\"", &format!("erase_block = \"{block}\"")).replace("48 KiB\"", &format!("{unit}\""));
        std::fs::write(&path, text).unwrap();
        let bytes = |s: &str| {
            let (n, u) = s.split_once(' ').unwrap();
            n.parse::<i64>().unwrap() * if u == "MiB" { 1 << 20 } else { 1 << 10 }
        };
        for b in ["1024", "4096", "16384", "32768"] {
            let table = run(&["flashbench", "-q", "-a", "-b", b, &format!("sim:{}", path.display())], None);
            let got = infer(&table);
            let of = |key: &str| got["findings"].as_array().unwrap().iter().find(|f| f["quantity"] == key).unwrap().clone();
            let erase = of("erase_block");
            assert!(erase["value"] == bytes(block) && erase["confidence"].as_f64().unwrap() > 0.9, "{b}: {erase:#}");
            for (key, truth) in [("page", 16384), ("access_unit", bytes(unit))] {
                let f = of(key);
                assert!(f["value"].is_null() || f["value"] == truth, "{b}: {f:#}");
                assert!(b != "1024" || f["value"] == truth, "{b}: {f:#}");
            }
        }
    }
}

/// A table that ends above the erase block, or at it, says so.
#[test]
fn a_table_cut_off_above_the_block_says_so() {
    for (card, least) in [("sim:flashbench-readme", 4), ("sim:toshiba-emmc", 4), ("sim:toshiba-emmc", 16), ("sim:olpc-a-4gb", 8)] {
        let table = run(&["flashbench", "-q", "-a", "-b", "1024", card], None);
        let align = |l: &str| l.strip_prefix("align ").and_then(|l| l.split_whitespace().next()?.parse::<u64>().ok());
        let cut: Vec<&str> = table.lines().filter(|l| align(l).is_none_or(|a| a >= least << 20)).collect();
        let got = infer(&cut.join("\n"));
        let erase = got["findings"].as_array().unwrap().iter().find(|f| f["quantity"] == "erase_block").unwrap().clone();
        let why = erase["reason"].as_str().unwrap_or_default();
        assert!(why.starts_with(&format!("even the smallest row, {least} MiB,")), "{card}: {erase:#}");
    }
}

#[test]
fn write_alignment_is_spoken_of_as_writes() {
    for card in ["sim:toshiba-emmc", "sim:sandisk-emmc", "sim:flashbench-readme"] {
        let table = run(&["flashbench", "-A", "-q", "-b", "4096", card], None);
        let said = run(&["infer", "-"], Some(&table));
        assert!(!said.contains("a read across") && !said.contains("reads ") && !said.contains("wrap over"), "{said}");
        assert!(said.contains("unreliable"), "{said}");
    }
}

/// Whoever reads JSON of this program sees from its first object what it is.
#[test]
fn every_json_names_its_form() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_string();
    let (report, image) = (path("report.json"), path("card.img"));
    std::fs::File::create(&image).unwrap().set_len(64 << 20).unwrap();
    let run = |line: &str| {
        let line = line.replace("REPORT", &report).replace("IMAGE", &image);
        let out = std::process::Command::new(env!("CARGO_BIN_EXE_nandscope")).args(line.split(' ')).output().unwrap();
        (String::from_utf8(out.stdout).unwrap(), String::from_utf8_lossy(&out.stderr).into_owned())
    };
    run("probe sim:flashbench-readme -q --json REPORT");
    for line in [
        "list --json",
        "cards show null --json",
        "identify sim:toshiba-emmc --json",
        "probe sim:flashbench-readme --read-only -q --json",
        "infer REPORT --json",
        "report REPORT --json",
        "compare REPORT ref:chan-512mb-sdc --json",
        "check sim:null --read-only -q --json",
        "layout plan sim:flashbench-readme --for camera --report REPORT --json",
        "layout audit IMAGE --json",
        "layout check REPORT --start 1MiB --json",
        "layout prove sim:chan-sdc-512mb --rounds 3 --file 32KiB -q --json",
        "format IMAGE --dry-run --json",
        "erase sim:null --region 4MiB..5MiB -q --json",
        "sim null --pattern random-write-4k --requests 10 -q --json",
        "bench sim:null --file 64KiB -q --json",
        "ab sim:null --b split=8KiB --pairs 8 -q --json",
        "partitions sim:null --part 0..64MiB --time 1s -q --json",
    ] {
        let (said, error) = run(line);
        let value: serde_json::Value = serde_json::from_str(&said).unwrap_or_else(|e| panic!("{line}: {e}: {said} {error}"));
        let one = value.as_array().map_or(Some(&value), |all| all.first());
        let schema = one.map_or("nandscope-device/1", |o| o["schema"].as_str().unwrap_or("none"));
        assert!(schema.starts_with("nandscope-") && schema.contains('/'), "{line}: {schema}: {said}");
    }
}

/// A report without its samples is for sharing: it says the same, in a fraction of the size, and cannot be inferred again.
#[test]
fn a_report_without_samples_says_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_string();
    let [whole, less, least] = ["whole.json", "less.json", "least.json"].map(path);
    run(&["probe", "sim:usb-stick", "-q", "--json", &whole], None);
    run(&["probe", "sim:usb-stick", "-q", "--samples", "none", "--json", &less], None);
    run(&["report", &whole, "--samples", "none", "--json", &least], None);
    let size = |p: &str| std::fs::metadata(p).unwrap().len();
    assert!(size(&less) < 30_000 && size(&whole) > 5 * size(&less), "{} {}", size(&whole), size(&less));
    assert_eq!(std::fs::read(&less).unwrap(), std::fs::read(&least).unwrap());
    let said = |p: &str| run(&["report", p, "--brief"], None);
    let findings = |t: &str| t.lines().skip_while(|l| *l != "Findings").take_while(|l| !l.is_empty()).collect::<Vec<_>>().join("\n");
    assert_eq!(findings(&said(&whole)), findings(&said(&less)));
    // What the card is good for rests on single accesses, too.
    let answer = |t: &str| t.lines().take_while(|l| *l != "Findings").map(str::to_string).collect::<Vec<_>>().join("\n");
    let uses = |p: &str| answer(&run(&["report", p], None));
    assert!(uses(&whole).contains("without a gap keep") && uses(&whole).contains("small reads, median"), "{}", uses(&whole));
    assert_eq!(uses(&whole), uses(&less));
    let out = Command::new(env!("CARGO_BIN_EXE_nandscope")).args(["infer", &less]).output().unwrap();
    let why = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(out.status.code() == Some(1) && why.contains("without its samples"), "{why}");
    let page = path("page.html");
    run(&["report", &whole, "--samples", "none", "--html", &page], None);
    assert!(size(&page) < 100_000, "{}", size(&page));
    run(&["report", &whole, "--html", &page], None);
    assert!(size(&page) <= 700_000, "{}", size(&page));
}

/// Sizes are in the unit that a reader can hold: no line has thousands of KiB, none is longer than a terminal is wide.
#[test]
fn sizes_are_readable_and_lines_fit() {
    let dir = tempfile::tempdir().unwrap();
    let report = dir.path().join("r.json").to_str().unwrap().to_string();
    run(&["probe", "sim:toshiba-emmc", "-q", "--json", &report], None);
    for line in [
        "check sim:toshiba-emmc --class A1 --quick -q",
        "rate sim:modern-a1-32gb -q",
        "rate sim:sdxc-64gb --for dashcam -q",
        "probe sim:random-today?seed=21 --time 5m -q",
        "probe sim:sdxc-64gb --time 60s --details -q",
        "format sim:flashbench-readme --dry-run",
        "layout audit sim:flashbench-readme",
        "frag sim:usb-stick --size 64MiB --repeats 3 -q",
        "bench sim:amazon-c10-4gb --record 512 --file 1MB --log 20kB",
        "compare REPORT",
    ] {
        let args: Vec<String> = line.split(' ').map(|w| if w == "REPORT" { report.clone() } else { w.into() }).collect();
        let out = Command::new(env!("CARGO_BIN_EXE_nandscope")).args(&args).env("COLUMNS", "80").output().unwrap();
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        assert!(text.lines().count() > 0, "{line}: {}", String::from_utf8_lossy(&out.stderr));
        for l in text.lines() {
            assert!(l.chars().count() <= 80, "{line}: {l}");
        }
        for kib in text.split_whitespace().collect::<Vec<_>>().windows(2).filter(|w| w[1].starts_with("KiB")) {
            let digits = kib[0].trim_start_matches('(').split('.').next().unwrap_or_default();
            assert!(digits.len() < 5, "{line}: {} KiB", kib[0]);
        }
    }
}

//! The times are the card's: Debian's flashbench sees the card's structure, and the probe gives the card's truth.

use crate::bed::*;
use crate::common::{right, truth_of};
use nandscope::report::Report;
use nandscope_sim::{Model, Truth, cards};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// µs of "165µs", "1.08ms", "1e+03µs", "-3ns".
fn us(text: &str) -> f64 {
    let units = [("ns", 1e-3), ("µs", 1.0), ("us", 1.0), ("ms", 1e3), ("s", 1e6)];
    let found = units.iter().find_map(|(unit, factor)| Some(text.strip_suffix(unit)?.parse::<f64>().ok()? * factor));
    found.unwrap_or_else(|| panic!("'{text}' is no time"))
}

fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

#[test]
fn flashbench_sees_the_erase_block() {
    let _alone = alone();
    if !can("flashbench", true, &["flashbench"]) {
        return;
    }
    let server = Server::start(&["flashbench-readme"]);
    // Without --out it takes its standard input for its output and fails; with it, the table still goes to standard output.
    let text = run("flashbench", &["-a", &server.place, "--blocksize=1024", "--out=/dev/null"]);
    // align 4194304 pre 735µs on 1.08ms post 733µs diff 342µs
    let rows: Vec<(u64, f64)> = text
        .lines()
        .filter_map(|l| {
            let w: Vec<&str> = l.split_whitespace().collect();
            let value = |key: &str| w.iter().position(|x| *x == key).map(|i| w[i + 1]);
            Some((value("align")?.parse().unwrap(), us(value("diff")?)))
        })
        .collect();
    let part = |keep: fn(u64) -> bool| median(rows.iter().filter(|r| keep(r.0)).map(|r| r.1).collect());
    let (inside, across) = (part(|at| (1 << 16..1 << 22).contains(&at)), part(|at| at >= 1 << 22));
    println!("crossing costs {inside} us within an erase block, {across} us between two");
    // 148 to 171 µs against 294 to 324 µs on the real card.
    assert!(across > 1.5 * inside, "{text}");
    server.stop();
}

/// A request takes what the model says, or longer; the card's own time is in the trace.
#[test]
fn a_request_takes_its_modelled_time() {
    let _alone = alone();
    if !can("the time of a request", true, &["fio"]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let card = model(
        dir.path(),
        "one-ms",
        "[card]\ncapacity = \"64 MiB\"\ncommand = \"1 ms\"\n[nand]\npage = \"512 B\"\nerase_block = \"4 MiB\"\n[ftl]\nkind = \"none\"\n",
    );
    let seen = dir.path().join("seen.csv");
    let server = Server::start(&[&card, "--trace", seen.to_str().unwrap()]);
    let file = format!("--filename={}", server.place);
    // Four at a time: the card serves them one after the other, at absolute times, so that no lateness adds up.
    for (depth, requests) in [("1", 100u64), ("4", 400)] {
        let (depth, count) = (format!("--iodepth={depth}"), format!("--number_ios={requests}"));
        let mut args = vec!["--name=t", &file, "--direct=1", "--rw=randread", "--bs=4k", "--ioengine=libaio", &depth, &count];
        args.extend(["--size=64m", "--output-format=json"]);
        let json: serde_json::Value = serde_json::from_str(&run("fio", &args)).unwrap();
        let job = &json["jobs"][0]["read"];
        assert!(job["total_ios"].as_u64().unwrap() >= requests);
        assert!(job["lat_ns"]["min"].as_f64().unwrap() >= 1e6, "no answer comes early: {}", job["lat_ns"]);
    }
    server.stop();
    let reads: Vec<Traced> = trace(&seen).into_iter().filter(|t| t.op == "read").collect();
    assert!(reads.iter().all(|t| t.took >= 1_000_000 && t.len >= 512));
}

/// Cards probed at the same time: each waits for its card nearly all the time.
const AT_ONCE: usize = 4;

/// Every built-in card, probed as a real block device in real time. What is decided with confidence must be true.
#[test]
fn the_probe_tells_the_truth_in_real_time() {
    let _alone = alone();
    if !can("the probe in real time", true, &[]) {
        return;
    }
    let chosen = std::env::var("NANDSCOPE_SERVE_CARDS").ok();
    let time = std::env::var("NANDSCOPE_SERVE_TIME").unwrap_or("30s".into());
    let wanted = |name: &str| chosen.as_ref().is_none_or(|c| c.split(',').any(|n| n == name));
    let left = Mutex::new(cards::ALL.iter().filter(|c| wanted(c.0)).collect::<Vec<_>>());
    let (wrong, decided) = (Mutex::new(vec![]), AtomicUsize::new(0));
    assert!(!left.lock().unwrap().is_empty(), "no card has this name");
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some((name, text)) = { left.lock().unwrap().pop() } {
                    let model = Model::parse(text, name).unwrap();
                    let judged = judge(name, &model.truth(), &probe(name, &model, &time));
                    decided.fetch_add(judged.decided, Relaxed);
                    wrong.lock().unwrap().extend(judged.wrong);
                }
            });
        }
    });
    let (wrong, decided) = (wrong.into_inner().unwrap(), decided.into_inner());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(decided > 0 || chosen.is_some(), "nothing was decided on any card");
}

struct Judged {
    decided: usize,
    /// Confident and wrong.
    wrong: Vec<String>,
}

/// Compares a report with the truth, prints a line, and keeps the report where it is wrong.
fn judge(name: &str, truth: &Truth, report: &Report) -> Judged {
    let mut judged = Judged { decided: 0, wrong: vec![] };
    let mut line = format!("{name}:");
    for f in &report.findings.0 {
        let value = f.number().map(|v| f.quantity.show(v)).or(f.at_least.map(|a| format!(">={}", a.0))).unwrap_or("?".into());
        let true_value = truth_of(f.quantity, truth).map_or("-".into(), |v| f.quantity.show(v));
        let verdict = right(f, truth);
        judged.decided += usize::from(verdict.is_some());
        line += &format!(" [{} {value}/{true_value} {:.2}", f.quantity.key(), f.confidence);
        line += if verdict == Some(false) { " WRONG]" } else { "]" };
        if verdict == Some(false) && f.confidence >= 0.9 {
            judged.wrong.push(format!("{name}: {} = {value}, in truth {true_value}, confidence {:.2}", f.quantity.key(), f.confidence));
        }
    }
    println!("{line}");
    if line.contains("WRONG") {
        let path = std::env::temp_dir().join(format!("nandscope-wrong-{name}.json"));
        report.save(&path).unwrap();
        println!("the report is kept: {}", path.display());
    }
    judged
}

fn probe(card: &str, model: &Model, time: &str) -> Report {
    let server = Server::start(&[card, "--quiet"]);
    let size = run("blockdev", &["--getsize64", &server.place]);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("report.json");
    let args = ["probe", &server.place, "--write", "--consent", size.trim(), "--no-undo", "--time", time, "--quiet", "--json"];
    let out = nandscope().args(args).arg(&path).output().unwrap();
    // 3: nothing could be decided. A card with bad places ends the probe with an error, after the report.
    let said = String::from_utf8_lossy(&out.stderr);
    let bad = model.card.real_capacity < model.card.capacity || !model.fault.is_empty();
    let failed = bad && out.status.code() == Some(1) && said.contains("the card failed");
    assert!(failed || matches!(out.status.code(), Some(0 | 3)), "{card}: {said}");
    let report = Report::load(Path::new(&path)).unwrap();
    assert_eq!(report.target.path, server.place);
    assert!(report.cost.reads > 0, "{card}: the probe measured nothing");
    server.stop();
    report
}

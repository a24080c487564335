//! The times are the card's: Debian's flashbench sees the card's structure, and the probe gives the card's truth.

use crate::bed::*;
use crate::common::{right, truth_of, visible};
use nandscope::finding::Quantity;
use nandscope::report::Report;
use nandscope_sim::{Model, cards, random, unusual};
use std::path::Path;
use std::sync::Mutex;

/// µs of "165µs", "1.08ms", "1e+03µs", "-3ns"; flashbench has room for seven characters and prints -11952 ns as "-11952n".
fn us(text: &str) -> f64 {
    let units = [("ns", 1e-3), ("n", 1e-3), ("µs", 1.0), ("us", 1.0), ("ms", 1e3), ("s", 1e6)];
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

/// So many standard errors more may be wrong than was claimed.
const ERRORS: f64 = 2.6;

/// Cards probed at the same time: each waits for its card nearly all the time.
const AT_ONCE: usize = 4;

/// Every built-in card, probed as a real block device in real time. What is decided must be true as often as it claims, and most of
/// what the timing of a card shows plainly must be decided. Prints the table of docs/serve.md. NANDSCOPE_SERVE_CARDS chooses
/// among the built-in cards, NANDSCOPE_SERVE_RANDOM=1..41 takes random ones instead, unusual ones where it is `unusual:1..41`.
#[test]
fn the_probe_tells_the_truth_in_real_time() {
    let _alone = alone();
    if crate::skip::short("the probe of every card in real time") || !can("the probe in real time", true, &[]) {
        return;
    }
    let chosen = std::env::var("NANDSCOPE_SERVE_CARDS").ok();
    let time = std::env::var("NANDSCOPE_SERVE_TIME").unwrap_or("30s".into());
    let wanted = |name: &str| chosen.as_ref().is_none_or(|c| c.split(',').any(|n| n == name));
    let built_in = || cards::ALL.iter().filter(|c| wanted(c.0)).map(|(name, text)| Model::parse(text, name).unwrap()).collect();
    let drawn = std::env::var("NANDSCOPE_SERVE_RANDOM").ok().map(|range| drawn(&range));
    let all_built_in = chosen.is_none() && drawn.is_none();
    let left = Mutex::new(drawn.unwrap_or_else(built_in).into_iter().enumerate().collect::<Vec<_>>());
    let all = Mutex::new(vec![]);
    assert!(!left.lock().unwrap().is_empty(), "no card has this name");
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some((index, model)) = { left.lock().unwrap().pop() } {
                    let judged = judge(&model.name, &model, &probe(&model, &time));
                    all.lock().unwrap().push((index, judged));
                }
            });
        }
    });
    let mut all = all.into_inner().unwrap();
    all.sort_by_key(|j| j.0);
    println!("\n| card | {} |\n|---|{}", QUANTITIES.map(|q| q.key().replace('_', " ")).join(" | "), "---|".repeat(QUANTITIES.len()));
    all.iter().for_each(|(_, j)| println!("{}", j.row));
    let sum = |f: fn(&Judged) -> usize| all.iter().map(|(_, j)| f(j)).sum::<usize>();
    let (plain, found) = (sum(|j| j.plain), sum(|j| j.found));
    println!("\n{} right, {} wrong; of {plain} that show plainly {found} are found", sum(|j| j.right), sum(|j| j.untrue.len()));
    let claims: Vec<f64> = all.iter().flat_map(|(_, j)| j.claims.iter().copied()).collect();
    let expected: f64 = claims.iter().map(|p| 1.0 - p).sum();
    let error = claims.iter().map(|p| p * (1.0 - p)).sum::<f64>().sqrt();
    println!("wrong by what was claimed: {expected:.1}, give or take {error:.1}");
    let untrue: Vec<&str> = all.iter().flat_map(|(_, j)| &j.untrue).map(String::as_str).collect();
    assert!(untrue.len() as f64 <= expected + ERRORS * error, "{expected:.1} claimed:\n{}", untrue.join("\n"));
    // A busy machine hides some; half is far below what any machine here has shown.
    assert!(2 * found >= plain || !all_built_in, "too little was decided");
}

/// Random cards of these seeds; unusual ones after that word.
fn drawn(range: &str) -> Vec<Model> {
    let (kind, seeds) = range.rsplit_once(':').unwrap_or(("random", range));
    let (from, to) = seeds.split_once("..").expect("a range of seeds, as 1..41");
    let seeds = from.parse::<u64>().unwrap()..to.parse().unwrap();
    let card = |seed| if kind == "unusual" { unusual::card(seed) } else { random::card(seed) };
    let named = |seed| Model { name: format!("{kind}-{seed}"), ..card(seed) };
    seeds.map(named).collect()
}

/// The columns of the table.
const QUANTITIES: [Quantity; 10] = [
    Quantity::EraseBlock,
    Quantity::EraseBlockOffset,
    Quantity::Page,
    Quantity::AccessUnit,
    Quantity::WriteUnit,
    Quantity::OpenAusLinear,
    Quantity::OpenAusRandom,
    Quantity::CloseCostMs,
    Quantity::FatZone,
    Quantity::Mapping,
];

struct Judged {
    right: usize,
    /// Quantities that the card's timing shows plainly, and how many of them were found.
    plain: usize,
    found: usize,
    /// The confidence of each value and bound whose truth is known, and which of them are wrong.
    claims: Vec<f64>,
    untrue: Vec<String>,
    /// Its row of the table.
    row: String,
}

/// Compares a report with the truth, and keeps the report where it is wrong, or all of them in the directory NANDSCOPE_SERVE_KEEP.
fn judge(name: &str, model: &Model, report: &Report) -> Judged {
    let (truth, plain) = (model.truth(), visible(model));
    let mut j = Judged { right: 0, plain: plain.len(), found: 0, claims: vec![], untrue: vec![], row: format!("| {name} |") };
    for quantity in QUANTITIES {
        let finding = report.findings.0.iter().find(|f| f.quantity == quantity);
        let verdict = finding.and_then(|f| right(f, &truth));
        let exists = truth_of(quantity, &truth).is_some();
        let shown = finding.map(|f| f.number().map(|v| quantity.show(v)).or(f.at_least.map(|a| format!("≥ {}", a.0))).unwrap_or_default());
        j.row += &match (verdict, finding) {
            (Some(true), _) => " yes |".to_string(),
            (Some(false), Some(f)) => format!(" WRONG: {} ({:.0} %) |", shown.clone().unwrap_or_default(), 100.0 * f.confidence),
            _ if exists => " - |".to_string(),
            _ => "  |".to_string(),
        };
        j.right += usize::from(verdict == Some(true));
        j.found += usize::from(verdict == Some(true) && plain.contains(&quantity));
        let Some((is, f)) = verdict.zip(finding) else { continue };
        j.claims.push(f.confidence);
        if !is {
            let true_value = truth_of(quantity, &truth).map_or("-".into(), |v| quantity.show(v));
            let said = shown.unwrap_or_default();
            j.untrue.push(format!("{name}: {} = {said} at {:.2}, in truth {true_value}", quantity.key(), f.confidence));
        }
    }
    println!("{}", j.row);
    let kept = std::env::var_os("NANDSCOPE_SERVE_KEEP").map(|dir| Path::new(&dir).join(format!("{name}.json")));
    let wrong = (!j.untrue.is_empty()).then(|| std::env::temp_dir().join(format!("nandscope-wrong-{name}.json")));
    if let Some(path) = kept.or(wrong) {
        path.parent().map(std::fs::create_dir_all).transpose().unwrap();
        report.save(&path).unwrap();
        println!("the report is kept: {}", path.display());
    }
    j
}

fn probe(model: &Model, time: &str) -> Report {
    let (card, dir) = (&model.name, tempfile::tempdir().unwrap());
    let built_in = cards::ALL.iter().any(|c| c.0 == card);
    let file = dir.path().join(format!("{card}.toml"));
    std::fs::write(&file, model.to_toml()).unwrap();
    let server = Server::start(&[if built_in { card } else { file.to_str().unwrap() }, "--quiet"]);
    let size = run("blockdev", &["--getsize64", &server.place]);
    let path = dir.path().join("report.json");
    let args = ["probe", &server.place, "--write", "--consent", size.trim(), "--no-undo", "--time", time, "--quiet", "--json"];
    let out = nandscope().args(args).arg(&path).output().unwrap();
    // 3: nothing could be decided; 6: a counterfeit; 7: bad places, which are left out. One that mostly fails ends with an error, after the report.
    let said = String::from_utf8_lossy(&out.stderr);
    let fake = model.card.real_capacity < model.card.capacity;
    let failed = (fake || !model.fault.is_empty()) && out.status.code() == Some(1) && said.contains("the card failed");
    let named = fake && out.status.code() == Some(6) || !model.fault.is_empty() && out.status.code() == Some(7);
    assert!(failed || named || matches!(out.status.code(), Some(0 | 3)), "{card}: exit {:?}: {said}", out.status.code());
    let report = Report::load(Path::new(&path)).unwrap();
    assert_eq!(report.target.path, server.place);
    assert!(report.cost.reads > 0, "{card}: the probe measured nothing");
    let said = report.warnings.iter().any(|w| w.contains(&format!("a simulated card ({card}), served in real time")));
    assert!(said && !report.warnings.iter().any(|w| w.contains("not a card")), "{:?}", report.warnings);
    server.stop();
    report
}

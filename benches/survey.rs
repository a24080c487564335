//! 10 000 reports: how long adding takes and what a query costs. `cargo bench --bench survey [-- REPORTS]`
//!
//! The reports are one read-only probe of a simulated card, each with its own seed and name, so that each is another entry.

use nandscope::survey::{Place, Survey, record::Told};
use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

fn main() {
    let n: usize = std::env::args().skip(1).find_map(|a| a.parse().ok()).unwrap_or(10_000);
    let dir = tempfile::tempdir().unwrap();
    let base = dir.path().join("base.json");
    let done = Command::new(env!("CARGO_BIN_EXE_nandscope"))
        .args(["probe", "sim:flashbench-readme", "--quiet", "--json"])
        .arg(&base)
        .output()
        .unwrap();
    assert!(done.status.success());
    let text = std::fs::read_to_string(&base).unwrap();
    let reports = dir.path().join("reports");
    std::fs::create_dir(&reports).unwrap();
    let files: Vec<PathBuf> = (0..n)
        .map(|i| {
            let p = reports.join(format!("{i}.json"));
            std::fs::write(
                &p,
                text.replacen("\"seed\":1", &format!("\"seed\":{}", i + 2), 1).replacen("flashbench README", &format!("lab {i}"), 1),
            )
            .unwrap();
            p
        })
        .collect();
    println!("{n} reports of {} KiB", text.len() / 1024);
    let place = Place::Dir(dir.path().join("survey"));
    let began = Instant::now();
    let mut added = 0;
    Survey::open(&place)
        .unwrap()
        .add(&files, &Told::default(), 0, &mut |_, a| added += usize::from(matches!(a, nandscope::survey::Added::New { .. })))
        .unwrap();
    println!("add: {:.1} s ({added} new)", began.elapsed().as_secs_f64());
    for query in [
        &["lab 77"][..],
        &["erase_block=4MiB", "open_aus_linear>=2", "9999"],
        &["open_aus_linear>=50"],
        &["capacity>512MiB", "flags=0", "77"],
    ] {
        let words: Vec<String> = query.iter().map(|w| w.to_string()).collect();
        let mut open = vec![];
        let mut list = vec![];
        let mut hits = 0;
        for _ in 0..5 {
            let began = Instant::now();
            let mut s = Survey::open(&place).unwrap();
            open.push(began.elapsed().as_secs_f64() * 1e3);
            let began = Instant::now();
            hits = s.list(&words, Some(50), false).unwrap().1;
            list.push(began.elapsed().as_secs_f64() * 1e3);
        }
        let median = |v: &mut Vec<f64>| {
            v.sort_by(f64::total_cmp);
            v[v.len() / 2]
        };
        println!("{query:?}: {hits} cards; opening {:.0} ms, query {:.0} ms", median(&mut open), median(&mut list));
    }
}

//! The findings of every built-in card and of a hundred random ones, one line of JSON each, with a sum over what was measured: two
//! versions of the program can be compared line by line. `findings DIR` keeps the runs of each card there, `findings --again DIR`
//! judges them once more instead of probing.

#[path = "../tests/common/in_turn.rs"]
mod in_turn;

use nandscope::experiment;
use nandscope::finding::Findings;
use nandscope::infer::pipeline;
use nandscope::probe::{Plan, probe};
use nandscope::samples::Run;
use nandscope::units::Nanos;
use nandscope_sim::{Model, cards, random};
use std::sync::atomic::AtomicBool;

/// FNV-1a over every access.
fn sum(runs: &[Run]) -> u64 {
    let fields =
        runs.iter().flat_map(|r| &r.samples).flat_map(|s| [u64::from(s.cell), u64::from(s.role), s.at, s.len, s.start.0, s.took.0]);
    fields.fold(0xcbf2_9ce4_8422_2325, |h, x| (h ^ x).wrapping_mul(0x0100_0000_01b3))
}

fn told(name: &str, runs: &[Run], findings: &Findings) -> String {
    format!("{name} {:016x} {}", sum(runs), serde_json::to_string(findings).unwrap())
}

fn again(name: &str, dir: &str) -> String {
    let text = std::fs::read_to_string(format!("{dir}/{name}.json")).unwrap();
    let mut runs: Vec<Run> = serde_json::from_str(&text).unwrap();
    runs.iter_mut().for_each(Run::index);
    told(name, &runs, &pipeline::infer(&runs))
}

fn line(name: &str, model: &Model, seed: u64, keep: Option<&str>) -> String {
    let mut device = nandscope::device::SimDevice::new(model, seed).with_stamps();
    let region = 0..nandscope::device::Device::geometry(&device).size;
    let stop = AtomicBool::new(false);
    let time = Nanos::from_secs_f64(1800.0);
    let plan = Plan { experiments: experiment::probing(), region, time, writes: 8 << 30, seed, stop: &stop };
    let (runs, findings) = probe(&mut device, &plan, &mut |_| {});
    if let Some(dir) = keep {
        let text = serde_json::to_string(&runs).unwrap();
        std::fs::write(format!("{dir}/{name}.json"), text).unwrap();
    }
    told(name, &runs, &findings)
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (again_in, keep) = match &args[..] {
        [how, dir] if how == "--again" => (Some(dir), None),
        all => (None, all.first()),
    };
    let mut jobs: Vec<(String, Model, u64)> = vec![];
    for (name, text) in cards::ALL {
        jobs.push((name.to_string(), Model::parse(text, name).unwrap(), 1));
    }
    jobs.extend((1..=100).map(|seed| (format!("random-{seed}"), random::card(seed), seed)));
    let lines = in_turn::all(&jobs, |(name, model, seed)| {
        again_in.map_or_else(|| line(name, model, *seed, keep.map(String::as_str)), |dir| again(name, dir))
    });
    for l in lines {
        println!("{l}");
    }
}

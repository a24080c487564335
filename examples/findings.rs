//! The findings of every built-in card and of a hundred random ones, one line of JSON each, with a sum over what was measured: two
//! versions of the program can be compared line by line. A directory as argument keeps a report of the runs of each card there.

use nandscope::experiment;
use nandscope::probe::{Plan, probe};
use nandscope::samples::Run;
use nandscope::units::Nanos;
use nandscope_sim::{Model, cards, random};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// FNV-1a over every access.
fn sum(runs: &[Run]) -> u64 {
    let fields =
        runs.iter().flat_map(|r| &r.samples).flat_map(|s| [u64::from(s.cell), u64::from(s.role), s.at, s.len, s.start.0, s.took.0]);
    fields.fold(0xcbf2_9ce4_8422_2325, |h, x| (h ^ x).wrapping_mul(0x0100_0000_01b3))
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
    format!("{name} {:016x} {}", sum(&runs), serde_json::to_string(&findings).unwrap())
}

fn main() {
    let keep = std::env::args().nth(1);
    let mut jobs: Vec<(String, Model, u64)> = vec![];
    for (name, text) in cards::ALL {
        jobs.push((name.to_string(), Model::parse(text, name).unwrap(), 1));
    }
    jobs.extend((1..=100).map(|seed| (format!("random-{seed}"), random::card(seed), seed)));
    let (next, lines) = (AtomicUsize::new(0), Mutex::new(vec![String::new(); jobs.len()]));
    let work = || {
        while let Some((i, (name, model, seed))) = Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|i| Some((i, jobs.get(i)?))) {
            let told = line(name, model, *seed, keep.as_deref());
            lines.lock().unwrap()[i] = told;
        }
    };
    std::thread::scope(|s| {
        s.spawn(work);
        s.spawn(work);
    });
    for l in lines.into_inner().unwrap() {
        println!("{l}");
    }
}

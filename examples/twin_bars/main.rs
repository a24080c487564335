//! How well a twin predicts: each card is probed as by default, a twin fitted to the report, and the workloads of `workloads.rs` done on
//! the card and on the twin. `twin_bars [CARDS [FIRST]]`: so many random cards of the simulator, of the second family, in Markdown;
//! `twin_bars built NAME...` does it for built-in cards.
//!
//! `cargo build -p nandscope-bench-card && cargo run --example twin_bars -- 30`

mod workloads;

use nandscope::device::{Access, Consent, Device, Fill, Limits, Op, OpenOptions, SimDevice, open};
use nandscope::experiment;
use nandscope::probe::{Plan, probe};
use nandscope::saved::{Report, bare};
use nandscope::twin::check::{Checked, check};
use nandscope::twin::{Asked, Data, Twin, TwinError, fit};
use nandscope::units::Nanos;
use nandscope_sim::trace::Io;
use nandscope_sim::{Model, cards, random};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

enum Card {
    Sim(Box<Model>, u64),
    Program(String),
}

impl Card {
    /// A device of its own each time: filled, and never used before.
    fn device(&self, writes: u64) -> Box<dyn Device> {
        match self {
            Card::Sim(m, seed) => Box::new(SimDevice::new(m, *seed).with_stamps()),
            Card::Program(command) => {
                let o = open(&format!("exec:{command}"), &OpenOptions::default()).expect("bench-card runs");
                let consent = Consent::check(o.id(), None).expect("simulated");
                Box::new(o.writable(&consent, &Limits { budget: writes, ..Limits::default() }).expect("writable"))
            }
        }
    }
}

fn report(card: &Card, seed: u64) -> Report {
    let mut device = card.device(8 << 30);
    let size = device.geometry().size;
    let stop = AtomicBool::new(false);
    let plan = Plan {
        experiments: experiment::probing(),
        region: 0..size,
        time: Nanos::from_secs_f64(1800.0),
        writes: 8 << 30,
        seed,
        stop: &stop,
    };
    let (runs, findings) = probe(&mut *device, &plan, &mut |_| {});
    let mut r = bare(vec![]);
    (r.target.size, r.runs, r.findings) = (size, runs, findings);
    nandscope::advise::conclude(&mut r);
    r
}

fn measured(card: &Card, ios: &[Io]) -> Vec<Io> {
    let mut device = card.device(1 << 40);
    let op = |o: nandscope_sim::Op| if o == nandscope_sim::Op::Read { Op::Read } else { Op::Write(Fill::Random(1)) };
    let one = |io: &Io| {
        let t = device.access(Access { op: op(io.op), at: io.at, len: io.len }).ok()?;
        Some(Io { time: t.start.0, took: t.took.0.max(1), ..*io })
    };
    ios.iter().map_while(one).collect()
}

fn one(name: &str, card: &Card, all: &mut Vec<Checked>) -> String {
    let begun = Instant::now();
    let report = report(card, 1);
    let probed = begun.elapsed().as_secs_f64();
    let data = match Data::of(&[(name.to_string(), report)]) {
        Ok(d) => d,
        Err(e) => return format!("| {name} | {e} |"),
    };
    let stop = AtomicBool::new(false);
    let twin: Result<Twin, TwinError> = fit(&data, Asked { seed: 1, time: Duration::from_secs(60), stop: &stop, tell: &mut |_, _| {} });
    let twin = match twin {
        Ok(t) => t,
        Err(e) => return format!("| {name} | {e} |"),
    };
    if std::env::var_os("TWIN_SHOW").is_some() {
        eprintln!("{}\n{}", twin.toml(), serde_json::to_string_pretty(&twin.structure).unwrap());
        twin.worst.iter().for_each(|w| eprintln!("{w:?}"));
    }
    let mut cells = String::new();
    for (_, ios) in workloads::all(data.size, data.sector, 7) {
        let ios = measured(card, &ios);
        match check(&twin.model, &[], &ios, 1) {
            Ok(c) => {
                let rate = |x: Option<f64>| x.map_or("-".to_string(), |x| format!("{:.2}", x));
                cells += &format!(
                    " {:+.1} / {:.0} / {} {} |",
                    100.0 * c.throughput_error,
                    100.0 * c.within_tenth,
                    rate(c.precision),
                    rate(c.recall)
                );
                if twin.no_card.is_none() {
                    all.push(c);
                }
            }
            Err(e) => cells += &format!(" {e} |"),
        }
    }
    let kind = twin.structure.iter().find(|s| s.name == "mapping").map_or("", |s| s.value.as_str());
    let no = if twin.no_card.is_some() { "no twin: " } else { "" };
    format!(
        "| {name} | {no}{kind} | {:.1} | {:.0} |{cells} {} | {probed:.0} + {:.0} |",
        100.0 * twin.explained,
        100.0 * twin.within_tenth,
        data.rows.len(),
        twin.seconds
    )
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let mut jobs: Vec<(String, Vec<(String, Card)>)> = vec![];
    if args.first().is_some_and(|a| a == "built") {
        let of =
            |name: &String| (name.clone(), Card::Sim(Box::new(Model::parse(cards::text(name).expect("a card"), name).expect("valid")), 1));
        jobs.push(("Built-in cards".into(), args[1..].iter().map(of).collect()));
    } else {
        let n: u64 = args.first().and_then(|a| a.parse().ok()).unwrap_or(30);
        let first: u64 = args.get(1).and_then(|a| a.parse().ok()).unwrap_or(5001);
        let which = args.get(2).map(String::as_str).unwrap_or("both");
        if which != "second" {
            jobs.push((
                "Simulator".into(),
                (first..first + n).map(|s| (format!("random-{s}"), Card::Sim(Box::new(random::card(s)), s))).collect(),
            ));
        }
        let program = std::env::current_exe().expect("a path").parent().and_then(|p| p.parent()).expect("target").join("bench-card");
        let kinds = ["block", "switch", "pool", "page", "gradual", "single", "bend", "fresh"];
        let of = |s: u64| {
            let kind = kinds[(s % kinds.len() as u64) as usize];
            (format!("{kind} {s}"), Card::Program(format!("{} {kind} {s}", program.display())))
        };
        if which != "first" {
            jobs.push(("Second family".into(), (first..first + n).map(of).collect()));
        }
    }
    for (family, list) in jobs {
        println!("## {family}\n");
        println!("| card | mapping found | variance % | within 10 % | {} | accesses | s |", workloads::NAMES.join(" | "));
        println!("|---|---|---|---|{}---|---|", "---|".repeat(workloads::NAMES.len()));
        let mut all: Vec<Checked> = vec![];
        for (name, card) in &list {
            println!("{}", one(name, card, &mut all));
        }
        let of = |f: &dyn Fn(&Checked) -> Option<f64>| -> Vec<f64> { all.iter().filter_map(f).collect() };
        let errors = of(&|c| Some(c.throughput_error.abs()));
        let (near, n) = all.iter().fold((0.0, 0), |(a, n), c| (a + c.within_tenth * c.accesses as f64, n + c.accesses));
        let slow = |f: &dyn Fn(&Checked) -> Option<f64>| nandscope_sim_mean(&of(f));
        println!(
            "\n{} workloads: median throughput error {:.1} %, {:.1} % of all accesses within 10 %, slow accesses precision {:.2}, recall {:.2} (means of workloads)\n",
            all.len(),
            100.0 * nandscope::infer::stats::median(&errors),
            100.0 * near / f64::from(n.max(1) as u32),
            slow(&|c| c.precision),
            slow(&|c| c.recall),
        );
    }
}

fn nandscope_sim_mean(x: &[f64]) -> f64 {
    x.iter().sum::<f64>() / x.len().max(1) as f64
}

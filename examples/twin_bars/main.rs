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
use nandscope::twin::check::{Checked, check, compare};
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

/// ns of each access on the same card in a host whose requests take what they have to.
fn even(command: &str, ios: &[Io]) -> Vec<f64> {
    measured(&Card::Program(format!("{command} host=even")), ios).iter().map(|io| io.took as f64).collect()
}

fn one(name: &str, card: &Card, all: &mut Vec<Checked>, own: &mut Vec<Checked>) -> String {
    let begun = Instant::now();
    let report = report(card, 1);
    let probed = begun.elapsed().as_secs_f64();
    let data = match Data::of(&[(name.to_string(), report)]) {
        Ok(d) => d,
        Err(e) => return format!("| {name} | {e} |"),
    };
    let seconds = std::env::var("TWIN_SECONDS").ok().and_then(|s| s.parse().ok()).unwrap_or(60.0);
    let stop = AtomicBool::new(false);
    let twin: Result<Twin, TwinError> =
        fit(&data, Asked { seed: 1, time: Duration::from_secs_f64(seconds), stop: &stop, tell: &mut |_, _| {} });
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
                    // What the card's own model foresees: the rest comes by chance.
                    match card {
                        Card::Sim(m, _) => own.extend(check(m, &[], &ios, 1)),
                        Card::Program(command) => own.push(compare(&ios, &even(command, &ios), 0.0)),
                    }
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
        let (mut all, mut own): (Vec<Checked>, Vec<Checked>) = (vec![], vec![]);
        for (name, card) in &list {
            println!("{}", one(name, card, &mut all, &mut own));
        }
        println!("\n{}", summed("twins", &all));
        if !own.is_empty() {
            println!("{}", summed("the cards' own models, without chance", &own));
        }
        println!();
    }
}

fn summed(who: &str, all: &[Checked]) -> String {
    let errors: Vec<f64> = all.iter().map(|c| c.throughput_error.abs()).collect();
    let sum = |f: &dyn Fn(&Checked) -> f64| all.iter().map(f).sum::<f64>();
    let near = sum(&|c| c.within_tenth * c.accesses as f64) / sum(&|c| c.accesses as f64).max(1.0);
    let mean = |f: &dyn Fn(&Checked) -> Option<f64>| nandscope::infer::stats::mean(&all.iter().filter_map(f).collect::<Vec<_>>());
    // Slow ones that were foreseen, and those that were said to be slow.
    let both = sum(&|c| c.recall.unwrap_or(0.0) * c.slow as f64);
    let said = sum(&|c| c.said_slow as f64);
    format!(
        "{who}: {} workloads, median throughput error {:.1} %, {:.1} % of all accesses within 10 %, slow accesses precision {:.2}, recall {:.2} (means of workloads), {:.2} and {:.2} of all accesses",
        all.len(),
        100.0 * nandscope::infer::stats::median(&errors),
        100.0 * near,
        mean(&|c| c.precision),
        mean(&|c| c.recall),
        both / said.max(1.0),
        both / sum(&|c| c.slow as f64).max(1.0),
    )
}

//! Makes the lines of `today` in the table that turns scores into confidence (crates/infer/src/infer/confidence.tsv), and judges them:
//!
//! `fit_today probe KIND,KIND... FIRST CARDS OUT ASKED`: probes simulated cards of kinds that take turns (`today`, `old` or one of the second family;
//! `bench` are all of that), ASKED `all` that a probe of ten minutes and 8 GiB asks, `only` what it asks of today's cards, or what is asked on
//! request (`queue`, `flush`, `mixed-reads`, `discard`, `pauses`, `throttling`, `slc-fill`, `steady-state`), and keeps what each experiment said of them, a line of JSON each;
//! `fit_today fit FILE...`: prints the lines of the table;
//! `fit_today judge scores|MAP FILE...`: claimed against right by scores alone, or by the table MAP.

#[path = "../tests/common/bench_card.rs"]
mod bench_card;
#[path = "../tests/common/in_turn.rs"]
mod in_turn;
#[path = "../tests/common/monotone.rs"]
mod monotone;
#[path = "../tests/common/todays.rs"]
mod todays;
#[path = "../tests/common/todays_alone.rs"]
mod todays_alone;
#[path = "../tests/common/todays_bins.rs"]
mod todays_bins;
#[path = "../tests/common/todays_truth.rs"]
mod todays_truth;

use monotone::{hundredth, lines};
use nandscope::finding::{Finding, Findings, Quantity};
use nandscope::infer::combine::combine;
use nandscope::infer::confidence::{Key, Maps, Says, Source};
use nandscope::infer::pipeline::apart;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Mutex;
use todays::{Card, KINDS, Truth, by_name, cards, probe_all};
use todays_bins::{Answer, answers, table};

#[derive(Serialize, Deserialize)]
struct Line {
    kind: String,
    seed: u64,
    asked: String,
    /// The value, none where the card has none of it, and the factor within which it counts as right.
    truth: Vec<(Quantity, Option<f64>, f64)>,
    apart: Vec<Finding>,
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match &words[..] {
        ["probe", kinds, first, n, out, name] => {
            let kinds: Vec<&'static str> = kinds.split(',').flat_map(kind).collect();
            let all = cards(&kinds, first.parse().expect("FIRST is a number"), n.parse().expect("CARDS is a number"));
            let file = Mutex::new(std::fs::File::create(out).unwrap());
            probe_all(&all, by_name(name), |p, runs| {
                let truth = p.truth.iter().map(|(q, t)| (*q, Some(t.0).filter(|v| !v.is_nan()), t.1)).collect();
                let line = Line { kind: p.card.kind.into(), seed: p.card.seed, asked: (*name).into(), truth, apart: apart(runs) };
                writeln!(file.lock().unwrap(), "{}", serde_json::to_string(&line).unwrap()).unwrap();
            });
        }
        ["fit", files @ ..] => print!("{}", fit(&read(files))),
        ["judge", by, files @ ..] => {
            let maps = match *by {
                "scores" => Maps::default(),
                path => Maps::parse(&std::fs::read_to_string(path).unwrap()).unwrap(),
            };
            let mut all: BTreeMap<String, Vec<Answer>> = BTreeMap::new();
            for l in read(files) {
                let mut found = answers(l.card(), &l.truth(), &maps.told(Source::Probe, combine(&l.apart)));
                found.retain(|a| l.counts(a));
                all.entry(format!("{}, {}", l.card().family(), l.asked)).or_default().extend(found.clone());
                all.entry(format!("{}, together", l.card().family())).or_default().extend(found);
            }
            all.iter().for_each(|(name, a)| println!("{name}\n{}", table(a)));
        }
        _ => panic!("probe KIND,KIND... FIRST CARDS OUT ASKED, fit FILE..., or judge scores|MAP FILE..."),
    }
}

fn kind(name: &str) -> Vec<&'static str> {
    match name {
        "today" => vec!["today"],
        "old" => vec!["old"],
        "bench" => KINDS.into(),
        name => vec![KINDS.into_iter().find(|k| *k == name).expect("a kind")],
    }
}

impl Line {
    fn card(&self) -> Card {
        Card { kind: kind(&self.kind)[0], seed: self.seed }
    }

    /// All cards that are asked only this are mapped by page: of them no mapping can be wrong.
    fn counts(&self, a: &Answer) -> bool {
        self.asked == "all" || a.quantity != Quantity::Mapping
    }

    fn truth(&self) -> Truth {
        self.truth.iter().map(|(q, v, within)| (*q, (v.unwrap_or(f64::NAN), *within))).collect()
    }
}

/// Sorted, so that the order in which cards were probed does not matter.
fn read(files: &[&str]) -> Vec<Line> {
    let text: String = files.iter().map(|f| std::fs::read_to_string(f).unwrap()).collect();
    let mut all: Vec<Line> = text.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    all.sort_by_key(|l| (l.card(), l.asked.clone()));
    all
}

/// The maps, each family one witness of as much weight as another, however many answers it has.
fn fit(all: &[Line]) -> String {
    let mut given: Vec<(Key, &str, u32, bool)> = vec![];
    for l in all {
        let scores = Findings(combine(&l.apart).0);
        let found = answers(l.card(), &l.truth(), &scores);
        let found = found.iter().filter(|a| l.counts(a));
        given.extend(found.map(|a| ((Source::Today, a.quantity, Says::of(a.bound)), l.card().family(), hundredth(a.confidence), a.right)));
    }
    head(all) + &lines(&given)
}

/// Where they come from.
fn head(all: &[Line]) -> String {
    let mut out = "# today: of what experiments for today's cards spoke to; the simulator and the second family count alike.\n# Made by `cargo run \
                   --example fit_today fit`; the mapping only on cards that are asked all that a probe asks, for of the others none is mapped by block.\n"
        .to_string();
    let mut of: BTreeMap<(&str, &str), Vec<u64>> = BTreeMap::new();
    for l in all {
        let name = if l.card().family() == "simulator" { l.card().kind } else { "the second family" };
        of.entry((&l.asked, name)).or_default().push(l.seed);
    }
    for ((asked, name), seeds) in of {
        let asked = match asked {
            "all" => "all that a probe of ten minutes and 8 GiB asks",
            "only" => "only what it asks of today's cards",
            other => other,
        };
        let (first, last) = (seeds.iter().min().unwrap(), seeds.iter().max().unwrap());
        out += &format!("# {asked}: {} cards of {name}, seeds of {first} to {last}\n", seeds.len());
    }
    out
}

//! Makes the table that turns scores into confidence (crates/infer/src/infer/confidence.tsv), and judges it:
//!
//! `fit_confidence probe FAMILY FIRST CARDS OUT [minute]`: probes simulated cards (within a minute, as devices are unless asked) and keeps
//! what each experiment said of them, a line of JSON each (of one kind of the second generator: `bench-card:block`);
//! `fit_confidence logs FAMILY FIRST CARDS OUT`: the same of what flashbench's own pattern prints of them (with target/PROFILE/nandscope);
//! `fit_confidence fit FILE...`: prints the table; and to standard error how far experiments that speak to one quantity err together;
//! `fit_confidence score told|scores|MAP FILE...`: how good it was as it was told then, by scores alone, or by the table MAP now;
//! `fit_confidence steps MAP FILE...`: what each step of a map comes to on each family of cards;
//! `fit_confidence answers MAP FILE...`: what was right and what wrong on cards that are not kept for judging.

#[path = "../tests/common/bench_card.rs"]
mod bench_card;
#[path = "../tests/common/mod.rs"]
mod common;
#[path = "../tests/common/families.rs"]
mod families;
#[path = "../tests/common/in_turn.rs"]
mod in_turn;
#[path = "../tests/common/monotone.rs"]
mod monotone;
#[path = "../tests/common/score.rs"]
mod score;

use families::{Card, Family, JUDGED, KINDS, Probed, RESERVED, Truth, Within, cards, probe_all};
use monotone::{hundredth, lines};
use nandscope::finding::{Finding, Findings, Quantity};
use nandscope::infer::combine::{APART, combine, posterior};
use nandscope::infer::confidence::{Key, Maps, Source, key};
use nandscope::infer::pipeline::apart;
use nandscope::infer::tables;
use nandscope::report::Cost;
use nandscope::samples::import;
use nandscope_sim::{random, unusual};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Mutex;

#[derive(Serialize, Deserialize)]
struct Line {
    family: String,
    kind: String,
    seed: u64,
    /// Of a log, not of a probe.
    #[serde(default)]
    table: bool,
    apart: Vec<Finding>,
    /// What findings say to one another and reports do not keep.
    #[serde(default)]
    marks: Vec<Marks>,
    told: Findings,
    #[serde(default)]
    cost: Cost,
}

/// Of a finding: what its own form leaves out.
#[derive(Serialize, Deserialize)]
struct Marks {
    or_block: bool,
    off_grid: bool,
    counted_from: Option<u64>,
    disputed: bool,
    doubts: Option<(f64, f64)>,
}

impl Marks {
    fn of(f: &Finding) -> Marks {
        let Finding { or_block, off_grid, counted_from, disputed, doubts, .. } = *f;
        Marks { or_block, off_grid, counted_from, disputed, doubts }
    }

    fn mark(self, f: &mut Finding) {
        let Marks { or_block, off_grid, counted_from, disputed, doubts } = self;
        (f.or_block, f.off_grid, f.counted_from, f.disputed, f.doubts) = (or_block, off_grid, counted_from, disputed, doubts);
    }
}

impl Line {
    fn of(card: &Card, table: bool, apart: Vec<Finding>, told: Findings, cost: Cost) -> Line {
        let marks = apart.iter().map(Marks::of).collect();
        Line { family: card.family.name().into(), kind: card.kind.into(), seed: card.seed, table, apart, marks, told, cost }
    }
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match &words[..] {
        ["probe", family, first, n, out, within @ ..] => {
            let within = if within == ["minute"] { Within::AMinute } else { Within::Usual };
            let all = drawn(family, first, n);
            let file = Mutex::new(std::fs::File::create(out).unwrap());
            probe_all(&all, within, |p, runs| {
                let line = Line::of(&p.card, false, apart(runs), p.told.clone(), p.cost);
                writeln!(file.lock().unwrap(), "{}", serde_json::to_string(&line).unwrap()).unwrap();
            });
        }
        ["logs", family, first, n, out] => {
            let mut file = std::fs::File::create(out).unwrap();
            for card in drawn(family, first, n) {
                let Some(text) = log(&card) else { continue };
                let tables = import::read(&[("log", text)]).unwrap();
                let line = Line::of(&card, true, tables::apart(&tables), tables::infer(&tables), Cost::default());
                writeln!(file, "{}", serde_json::to_string(&line).unwrap()).unwrap();
            }
        }
        ["fit", files @ ..] => {
            let all = read(files);
            let of = |source: Source| all.iter().filter(|p| p.0 == source).map(|p| &p.1).collect::<Vec<&Probed>>();
            together(&of(Source::Probe));
            print!("{HEAD}");
            Source::ALL.into_iter().for_each(|s| print!("{}", fit(s, &of(s))));
        }
        ["score", by, files @ ..] => {
            let mut all = read(files);
            let maps = match *by {
                "told" => None,
                "scores" => Some(Maps::default()),
                path => Some(Maps::parse(&std::fs::read_to_string(path).unwrap()).unwrap()),
            };
            if let Some(maps) = maps {
                all.iter_mut().for_each(|(source, p)| p.told = maps.told(*source, combine(&p.apart)));
            }
            for (name, those) in by_family(all) {
                println!("{} cards, {name}\n{}", those.len(), score::table(&score::score(&those)));
            }
        }
        ["steps", path, files @ ..] => {
            let maps = Maps::parse(&std::fs::read_to_string(path).unwrap()).unwrap();
            print!("{}", by_step(&maps, &read(files)));
        }
        ["answers", path, files @ ..] => {
            let maps = Maps::parse(&std::fs::read_to_string(path).unwrap()).unwrap();
            let mut all = read(files);
            all.retain(|p| p.1.card.seed < RESERVED);
            all.iter_mut().for_each(|(source, p)| p.told = maps.told(*source, combine(&p.apart)));
            for (name, those) in by_family(all) {
                let said = |right: bool| if right { "right" } else { "wrong" };
                score::score(&those).answers.iter().for_each(|a| println!("{} {name}: {}", said(a.right), a.line));
            }
        }
        _ => panic!(
            "probe FAMILY FIRST CARDS OUT [minute], fit FILE..., steps MAP FILE..., answers MAP FILE..., or score told|scores|MAP FILE..."
        ),
    }
}

/// So many cards from a seed on: `random`, `unusual`, `bench-card` with its kinds one after the other, or one kind of it, `bench-card:block`.
fn drawn(family: &str, first: &str, n: &str) -> Vec<Card> {
    let (name, kind) = family.split_once(':').unwrap_or((family, ""));
    let family = Family::by_name(name).expect("random, unusual or bench-card");
    let (first, n) = (first.parse().expect("FIRST is a number"), n.parse().expect("CARDS is a number"));
    if kind.is_empty() {
        return cards(family, first, n);
    }
    let kind = KINDS.into_iter().find(|k| *k == kind).expect("a kind of the second generator");
    (first..first + n).map(|seed| Card { family, kind, seed }).collect()
}

fn read(files: &[&str]) -> Vec<(Source, Probed)> {
    let text: String = files.iter().map(|f| std::fs::read_to_string(f).unwrap()).collect();
    let one = |l: &str| {
        let mut l: Line = serde_json::from_str(l).unwrap();
        l.apart.iter_mut().zip(l.marks).for_each(|(f, marks)| marks.mark(f));
        let kind = KINDS.into_iter().find(|k| *k == l.kind).unwrap_or("");
        let card = Card { family: Family::by_name(&l.family).unwrap(), kind, seed: l.seed };
        let source = if l.table { Source::Table } else { Source::Probe };
        (source, Probed { truth: Truth::of_card(&card), card, apart: l.apart, told: l.told, cost: l.cost })
    };
    let mut all: Vec<(Source, Probed)> = text.lines().map(one).collect();
    all.sort_by_key(|p| (p.0, p.1.card.family, p.1.card.seed, p.1.card.kind));
    all
}

/// What flashbench's own pattern prints of a card whose erase block its user knows: reads across boundaries, and up to eight AUs in both
/// orders.
fn log(card: &Card) -> Option<String> {
    let dir = tempfile::tempdir().unwrap();
    let target = match card.family {
        Family::Bench => format!("exec:{} {} {}", bench_card::bench_card().display(), card.kind, card.seed),
        family => {
            let model = if family == Family::Random { random::card(card.seed) } else { unusual::card(card.seed) };
            let path = dir.path().join("card.toml");
            std::fs::write(&path, model.to_toml()).unwrap();
            path.display().to_string()
        }
    };
    let block = Truth::of_card(card).of(Quantity::EraseBlock).filter(|b| b.is_finite()).unwrap_or(4_194_304.0);
    let program = std::env::current_exe().unwrap().parent().unwrap().parent().unwrap().join("nandscope");
    let run = |args: &[&str]| {
        let out = std::process::Command::new(&program).arg("flashbench").arg(&target).args(args).arg("-q").output().unwrap();
        out.status.success().then(|| String::from_utf8(out.stdout).unwrap())
    };
    let erase = format!("{block}");
    let open = ["-O", "-0", "1-8", "-e", &erase];
    Some(run(&["-a", "-b", "1024"])? + &run(&open)? + &run(&[&open[..], &["-r"]].concat())?)
}

fn by_family(all: Vec<(Source, Probed)>) -> Vec<(String, Vec<Probed>)> {
    let mut out: Vec<(String, Vec<Probed>)> = vec![];
    for (source, p) in all {
        let name = format!("{} ({})", p.card.family.name(), source.key());
        match out.iter_mut().find(|o| o.0 == name) {
            Some(o) => o.1.push(p),
            None => out.push((name, vec![p])),
        }
    }
    out
}

/// What a card's scores name where the truth is known: each with its map, its score, and whether it is right.
fn answers(source: Source, p: &Probed) -> Vec<(Key, f64, bool)> {
    let one = |f: &Finding| {
        let (v, bound) = p.truth.of(f.quantity).and(score::answer(f))?;
        Some((key(source, f), f.confidence, p.truth.right(f.quantity, v, bound)))
    };
    combine(&p.apart).0.iter().filter_map(one).collect()
}

/// A line a step of each map: right of given on each family.
fn by_step(maps: &Maps, all: &[(Source, Probed)]) -> String {
    let mut counts: BTreeMap<(Key, usize, Family), (u32, u32)> = BTreeMap::new();
    for (source, p) in all {
        for (key, score, right) in answers(*source, p) {
            let step = maps.0.get(&key).map_or(0, |s| s.partition_point(|s| s.from <= score + 1e-9));
            let c = counts.entry((key, step, p.card.family)).or_default();
            *c = (c.0 + u32::from(right), c.1 + 1);
        }
    }
    let mut out = format!("{:<30}{:>6}{:>8}", "", "from", "claim");
    Family::ALL.iter().for_each(|f| out += &format!("{:>20}", f.name()));
    out.push('\n');
    let mut steps: Vec<(Key, usize)> = counts.keys().map(|c| (c.0, c.1)).collect();
    steps.dedup();
    for (key, i) in steps {
        let step = i.checked_sub(1).and_then(|i| maps.0.get(&key)?.get(i));
        let name = format!("{} {}", key.1.key(), key.2.key());
        out += &format!("{name:<30}{:>6.2}{:>8.3}", step.map_or(0.0, |s| s.from), step.map_or(0.0, |s| s.confidence));
        for family in Family::ALL {
            let (right, given) = counts.get(&(key, i, family)).copied().unwrap_or_default();
            let told = format!("{right}/{given} {:.3}", f64::from(right) / f64::from(given));
            out += &format!("{:>20}", if given == 0 { String::new() } else { told });
        }
        out.push('\n');
    }
    out
}

/// What a card counts: each family as much as another, however many of its cards there are.
fn weights(all: &[&Probed]) -> impl Fn(&Probed) -> f64 + use<> {
    let of = |family: Family| all.iter().filter(|p| p.card.family == family).count() as f64;
    let families = Family::ALL.into_iter().filter(|f| of(*f) > 0.0).count() as f64;
    let weights: BTreeMap<Family, f64> = Family::ALL.into_iter().map(|f| (f, all.len() as f64 / families / of(f).max(1.0))).collect();
    move |p| weights[&p.card.family]
}

/// What several experiments decide, and how good that is by how far they count as apart.
fn together(all: &[&Probed]) {
    let weight = weights(all);
    let judged = |q: &Quantity| *q != Quantity::CloseCostMs && *q != Quantity::EraseBlockOffset;
    let mut cases: Vec<(&Probed, Quantity, Vec<&Finding>)> = vec![];
    for &p in all {
        for q in JUDGED.into_iter().filter(judged).filter(|q| p.truth.of(*q).is_some()) {
            let here: Vec<&Finding> = p.apart.iter().filter(|f| f.quantity == q && f.value.is_some()).collect();
            if here.len() > 1 {
                cases.push((p, q, here));
            }
        }
    }
    let agree = |here: &[&Finding]| here.iter().all(|f| f.value == here[0].value);
    eprintln!("the surest of several that agree: share right; and of one alone");
    for bin in score::BINS.windows(2).rev() {
        let within = |c: f64| (bin[1]..bin[0]).contains(&c);
        let surest = |here: &[&Finding]| here.iter().map(|f| f.confidence).fold(0.0, f64::max);
        let those: Vec<_> = cases.iter().filter(|c| agree(&c.2) && within(surest(&c.2))).collect();
        let right = those.iter().filter(|c| c.0.truth.right(c.1, c.2[0].number().unwrap(), false)).count();
        let alone: Vec<bool> = all
            .iter()
            .flat_map(|p| p.apart.iter().map(move |f| (p, f)))
            .filter(|(p, f)| {
                judged(&f.quantity)
                    && f.value.is_some()
                    && within(f.confidence)
                    && p.truth.of(f.quantity).is_some()
                    && p.apart.iter().filter(|o| o.quantity == f.quantity && o.value.is_some()).count() == 1
            })
            .map(|(p, f)| p.truth.right(f.quantity, f.number().unwrap(), false))
            .collect();
        eprintln!(
            "  {:.2} to {:.2}: {right} of {}; {} of {}",
            bin[1],
            bin[0],
            those.len(),
            alone.iter().filter(|r| **r).count(),
            alone.len()
        );
    }
    for apart in [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0] {
        let (mut sum, mut n) = (0.0, 0.0);
        for (p, q, here) in &cases {
            let right: f64 = posterior(*q, here, apart).iter().filter(|v| p.truth.right(*q, v.0, false)).map(|v| v.1).sum();
            sum += weight(p) * right.max(score::FLOOR).ln();
            n += weight(p);
        }
        let same = cases.iter().filter(|c| agree(&c.2)).count();
        eprintln!("apart {apart}: log score {:.4} of {} combined, {same} of which agree (in use: {APART})", sum / n, cases.len());
    }
}

/// What the table begins with.
const HEAD: &str = "# What a finding's score comes to: the share of findings with such a score (from the one named on) that were right.\n\
# Simulated cards; no generator is the world. Made by `cargo run --example fit_confidence fit`, see METHODS.md.\n\
# Each family counts as much as another, in each map.\n\
# source\tquantity\tof\tfrom score\tconfidence\tright, weighted\tgiven, weighted\tfindings\n";

fn fit(source: Source, all: &[&Probed]) -> String {
    let mut answers: Vec<(Key, Family, u32, bool)> = vec![];
    for p in all {
        answers.extend(self::answers(source, p).into_iter().map(|(key, score, right)| (key, p.card.family, hundredth(score), right)));
    }
    let mut out = String::new();
    for family in Family::ALL {
        let those: Vec<&&Probed> = all.iter().filter(|p| p.card.family == family).collect();
        let mut seeds: Vec<u64> = those.iter().map(|p| p.card.seed).collect();
        seeds.sort_unstable();
        seeds.dedup();
        if let [first, .., last] = seeds[..] {
            let (n, name) = (those.len(), family.name());
            out += &format!("# {} of {name}: {n} cards, {} seeds of {first} to {last}\n", source.key(), seeds.len());
        }
    }
    out + &lines(&answers)
}

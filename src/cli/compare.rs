//! `nandscope compare A B [...]`: what differs, with which confidence, by how much; and how that compares with published cards.

use super::UNDECIDED;
use super::args::Output;
use super::outputs::place;
use crate::compare::{self, Difference, Experiment, Outcome, Subject};
use crate::finding::percent;
use crate::report::beside::{CARDS, beside, drawn};
use crate::report::html::compared;
use crate::report::words::grade;
use crate::samples::import::{self, given};
use crate::saved::Tool;
use crate::survey::published::published;
use crate::survey::record::{Record, Told};
use crate::units::{Nanos, three};
use anyhow::{Context, bail};
use clap::Args;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(Args)]
pub struct CompareArgs {
    /// Reports, results of bench, and whatever `infer` reads: logs of flashbench, SdFat bench, fio, f3, iozone, uFLIP and others; ref:NAME is a published
    /// card, 'ref:' lists them
    #[arg(required = true, value_name = "FILE")]
    files: Vec<String>,
    /// The cards named so far are one class or lot, those after this another
    #[arg(long, value_name = "FILE", num_args = 1..)]
    against: Vec<String>,
    /// With --against: compare the first card with each other one, too
    #[arg(long, requires = "against")]
    pairs: bool,
    /// Write the comparison as a web page, with the figures of the cards in common pictures, to a file, or to standard output with '-'
    #[arg(long, value_name = "F")]
    html: Option<PathBuf>,
    #[command(flatten)]
    out: Output,
}

pub fn run(a: CompareArgs) -> anyhow::Result<ExitCode> {
    let references = published();
    if a.files == ["ref:"] {
        let mut out = super::stdout();
        for (i, of) in references.chunk_by(|a, b| a.source.citation == b.source.citation).enumerate() {
            writeln!(out, "{}{}", if i == 0 { "" } else { "\n" }, of[0].source.citation.as_deref().unwrap_or(""))?;
            for r in of {
                writeln!(out, "  ref:{:<28} {}", r.id.trim_start_matches("ref-"), r.card.name)?;
            }
        }
        return Ok(ExitCode::SUCCESS);
    }
    let all: Vec<(&String, PathBuf)> = a.files.iter().chain(&a.against).map(|f| (f, place(f.as_ref()))).collect();
    if let Some((_, (name, _))) = all.iter().enumerate().find(|(i, (_, path))| all[..*i].iter().any(|before| before.1 == *path)) {
        tell!("{name} is given twice: it is compared with itself, and counts twice where cards are counted");
    }
    let (mut number, mut bad) = (0, vec![]);
    let mut read = |files: &[String]| -> anyhow::Result<Vec<Subject>> {
        let mut out = vec![];
        for f in files {
            for r in load(f, &references)?.unwrap_or_else(|why| {
                bad.push(why);
                vec![]
            }) {
                out.push(r.subject(&label(number)));
                number += 1;
            }
        }
        Ok(out)
    };
    let first = read(&a.files)?;
    let second = read(&a.against)?;
    // A file among several with nothing to read is left out, unless that leaves nothing to compare with.
    if !bad.is_empty() && (first.is_empty() || (second.is_empty() && !a.against.is_empty()) || first.len() + second.len() < 2) {
        bail!("{}", bad.join("; "));
    }
    bad.iter().for_each(|why| tell!("nandscope: left out: {}", super::harmless(why)));
    if first.len() + second.len() < 2 {
        // One card still has the published ones to stand beside.
        if compare::references(&first[0], &subjects(&references)).is_empty() {
            return Err(super::misuse("give at least two cards: there is no published figure to compare this one with"));
        }
    }
    finish(&first, &second, &references, a.pairs, a.html.as_deref(), &a.out)
}

/// A, B, ..., Z, A1, B1, ...
pub fn label(i: usize) -> String {
    let letter = char::from(b'A' + (i % 26) as u8);
    if i < 26 { letter.to_string() } else { format!("{letter}{}", i / 26) }
}

/// The cards of a file; inside, why it holds none.
fn load(name: &str, references: &[Record]) -> anyhow::Result<Result<Vec<Record>, String>> {
    if let Some(id) = name.strip_prefix("ref:") {
        return match references.iter().find(|r| r.id.strip_prefix("ref-") == Some(id)) {
            Some(r) => Ok(Ok(vec![r.clone()])),
            None => bail!("there is no published card '{id}'; `nandscope compare ref:` lists them"),
        };
    }
    let bytes = given::bytes(name.as_ref()).with_context(|| format!("cannot read {}", given::name(name.as_ref())))?;
    let read = Record::all_from_file(name, &bytes, &Told::default(), 0).map_err(|why| format!("{name}: {why}"));
    match read {
        Err(why) if import::open(0, name, &bytes).is_err_and(|e| e.is_nothing()) => Ok(Err(why)),
        Err(damaged) => bail!(damaged),
        Ok(all) => Ok(Ok(all)),
    }
}

fn subjects(references: &[Record]) -> Vec<Subject> {
    references.iter().map(|r| r.subject("")).collect()
}

/// Prints the comparison; also for `survey compare`. Of two classes only the classes, unless `pairs` are asked for.
pub fn finish(
    first: &[Subject],
    second: &[Subject],
    references: &[Record],
    pairs: bool,
    html: Option<&Path>,
    out: &Output,
) -> anyhow::Result<ExitCode> {
    let all: Vec<&Subject> = first.iter().chain(second).collect();
    let base = all[0];
    // What is compared itself is not compared once more as published.
    let published: Vec<Subject> = subjects(references).into_iter().filter(|p| all.iter().all(|s| s.name != p.name)).collect();
    let one_by_one = second.is_empty() || pairs;
    let with = if one_by_one { &all[1..] } else { &[] };
    let pairs: Vec<Pair> = with.iter().map(|b| Pair::of(base, b)).collect();
    let (lots, apart) = match second {
        [] => (vec![], vec![]),
        _ => (compare::lots(first, second), compare::hosts_apart(first, second)),
    };
    let beside = if one_by_one { &all[..] } else { &[] };
    let lines: Vec<String> =
        beside.iter().flat_map(|s| compare::references(s, &published).into_iter().map(|l| format!("{}: {l}", s.label))).collect();
    if out.json.is_some() || out.format.is_some() {
        let value = serde_json::json!({
            "schema": "nandscope-compare/1",
            "tool": Tool::this(),
            "cards": all.iter().enumerate().map(|(i, s)| serde_json::json!({ "label": s.label, "name": s.name, "identity": s.identity, "counterfeit": s.counterfeit, "failing": s.failing, "host": s.host, "simulated": s.simulated, "class": if second.is_empty() { 0 } else { 1 + usize::from(i >= first.len()) } })).collect::<Vec<_>>(),
            "pairs": pairs.iter().map(|p| serde_json::json!({ "a": base.label, "b": p.label, "headline": p.headline, "rewrites": p.rewrites, "findings": p.findings, "figures": p.metrics, "samples": p.samples })).collect::<Vec<_>>(),
            "lots": lots,
            "not_compared": apart,
            "references": lines,
        });
        out.write(&value)?;
    }
    if let Some(to) = html {
        let classes = if second.is_empty() { String::new() } else { lots_text(first, second, &lots, &apart) };
        super::write_text(to, &page(&all, &classes, &pairs, &lines))?;
    }
    if !out.is_stdout() && html.is_none() {
        let mut o = String::new();
        if !second.is_empty() {
            o += &lots_text(first, second, &lots, &apart);
        }
        if one_by_one {
            if !o.is_empty() {
                o.push('\n');
            }
            o += &text(&all, &pairs, &lines);
        }
        put!("{o}");
    }
    let decided = pairs.iter().any(|p| {
        p.findings.iter().chain(&p.metrics).any(|d| d.outcome != Outcome::Unclear || d.ratio.is_some())
            || p.samples.iter().any(|e| !e.conditions.is_empty())
    });
    Ok(if decided || !lines.is_empty() || !lots.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(UNDECIDED) })
}

/// Two classes beside each other: for each figure the number of cards, median and range, and the ratio of the medians.
pub fn lots_text(first: &[Subject], second: &[Subject], lots: &[compare::Lots], apart: &[String]) -> String {
    let mut o = String::new();
    let narrow = super::narrow();
    for (title, class) in [("first", first), ("second", second)] {
        let mut names: Vec<(String, usize)> = vec![];
        for s in class {
            let name = if s.simulated && !s.name.starts_with("sim:") { format!("{} (simulated)", s.name) } else { s.name.clone() };
            match names.iter_mut().find(|n| n.0 == name) {
                Some(n) => n.1 += 1,
                None => names.push((name, 1)),
            }
        }
        let list: Vec<String> = names.iter().map(|(n, k)| if *k > 1 { format!("{n} (x{k})") } else { n.clone() }).collect();
        let cards = if class.len() == 1 { "card" } else { "cards" };
        let column = if narrow { 0 } else { 6 };
        let _ = writeln!(o, "{title:<column$} {} {cards}: {}", class.len(), list.join(", "));
        for (s, c) in class.iter().filter_map(|s| Some((s, trouble(s)?))) {
            let _ = writeln!(o, "       {} {}", s.label, capitals(c));
        }
    }
    // What holds for all lines is said once.
    let none = lots.iter().all(|l| l.least > 0.05);
    let rows: Vec<[String; 7]> = lots.iter().map(|l| lots_row(l, none)).collect();
    let on = |l: &compare::Lots| l.host.as_deref().map_or("inside the cards".to_string(), |h| format!("on {h}"));
    let heads: Vec<String> = lots.iter().map(on).collect();
    let head = |on: &str| [on, "N", "FIRST", "N", "SECOND", "RATIO", ""].map(String::from);
    let all = || rows.iter().cloned().chain(heads.iter().map(|h| head(h)));
    let mut widths: [usize; 7] = std::array::from_fn(|i| all().map(|r| r[i].chars().count()).max().unwrap_or(0));
    // What does not fit on a line has its name on one of its own.
    let tall = widths.iter().sum::<usize>() + 6 > super::width();
    if tall {
        widths[0] = 1;
    }
    if !narrow && !rows.is_empty() {
        o += "\nmedians of N cards, with their range; RATIO: first to second\n";
    }
    let line = |row: &[String; 7]| {
        let [name, rest @ ..] = row;
        let bare = std::array::from_fn(|i| if i == 0 { String::new() } else { rest[i - 1].clone() });
        if tall { format!("{name}\n{}", lots_line(&bare, &widths)) } else { lots_line(row, &widths) }
    };
    for (i, (row, on)) in rows.iter().zip(&heads).enumerate() {
        if i == 0 || heads[i - 1] != *on {
            o += "\n";
            o += &if narrow { format!("{on}: median (range), N cards\n") } else { line(&head(on)) };
        }
        if !narrow {
            o += &line(row);
            continue;
        }
        let [what, n, a, m, b, ratio, verdict] = row;
        let ratio = if ratio == "-" { String::new() } else { format!("\n  first/second {ratio}") };
        let verdict = if verdict.is_empty() { String::new() } else { format!("\n  {verdict}") };
        let _ = writeln!(o, "{what}\n  first {a}, N {n}\n  second {b}, N {m}{ratio}{verdict}");
    }
    match lots.iter().map(|l| l.least).min_by(f64::total_cmp) {
        None => {
            let _ = writeln!(o, "\nno figure that both have");
        }
        Some(p) if none => {
            let _ = writeln!(o, "\nThe ratios are of these cards. For their lots or classes they are too few: p cannot be below {p:.2}.");
        }
        Some(_) => {}
    }
    apart.iter().for_each(|a| {
        let _ = writeln!(o, "not compared: {a}");
    });
    for s in first.iter().chain(second) {
        s.left_out.iter().for_each(|f| {
            let _ = writeln!(o, "left out of {}: {f}", s.name);
        });
    }
    o
}

/// What is compared, how many cards of the first have it and what they have, the same of the second, the ratio and what it means.
fn lots_row(l: &compare::Lots, none: bool) -> [String; 7] {
    let cell = |v: &[f64]| {
        let [mid, low, high] = compare::spread(v);
        // A range whose ends read alike says no more than the median.
        match l.quantity {
            _ if l.show(low) == l.show(high) => l.show(mid),
            Some(q) => format!("{} ({} to {})", q.show(mid), q.show(low), q.show(high)),
            None => format!("{} ({}-{}) {}", three(mid), three(low), three(high), l.unit),
        }
    };
    let verdict = if none { String::new() } else { l.verdict() };
    let ratio = l.ratio.map_or("-".to_string(), three);
    [l.what.clone(), l.a.len().to_string(), cell(&l.a), l.b.len().to_string(), cell(&l.b), ratio, verdict]
}

/// A row of the table of lots; numbers stand to the right.
fn lots_line(row: &[String; 7], widths: &[usize; 7]) -> String {
    let cell =
        |(i, (text, &w)): (usize, (&String, &usize))| if [1, 3, 5].contains(&i) { format!("{text:>w$}") } else { format!("{text:<w$}") };
    let cells: Vec<String> = row.iter().zip(widths).enumerate().map(cell).collect();
    cells.join(" ").trim_end().to_string() + "\n"
}

/// The comparison as a page.
fn page(all: &[&Subject], classes: &str, pairs: &[Pair], references: &[String]) -> String {
    let base = all[0];
    let fake = |s: &Subject| trouble(s).map_or(String::new(), |c| format!(" ({c})"));
    let cards: Vec<String> = all.iter().map(|s| format!("{}: {}{}", s.label, s.name, fake(s))).collect();
    let row = |d: &Difference, b: &str| [d.what.clone(), d.a.clone(), d.b.clone(), verdict(d, b, true)];
    let sections: Vec<compared::Pair> = pairs
        .iter()
        .map(|p| {
            let mut times = String::new();
            p.samples.iter().for_each(|e| experiment(&mut times, e, &base.label, &p.label));
            let lines = p.headline.iter().chain(&p.rewrites).cloned().chain(times.lines().map(|l| l.trim().to_string()));
            compared::Pair {
                title: format!("{} and {}", base.label, p.label),
                cards: [base.label.clone(), p.label.clone()],
                lines: lines.collect(),
                rows: p.findings.iter().chain(&p.metrics).map(|d| row(d, &p.label)).collect(),
            }
        })
        .collect();
    let all_drawn: Vec<_> = all.iter().map(|s| (format!("{} {}", s.label, s.name), drawn(&s.runs))).filter(|d| !d.1.is_empty()).collect();
    let mut notes = references.to_vec();
    if all_drawn.len() > CARDS {
        notes.insert(0, format!("a picture has room for {CARDS} cards: it shows the first that have its figure"));
    }
    compared::page("Cards compared", &cards, classes, &sections, &beside(&all_drawn), &notes)
}

struct Pair {
    label: String,
    headline: Vec<String>,
    rewrites: Vec<String>,
    findings: Vec<Difference>,
    metrics: Vec<Difference>,
    samples: Vec<Experiment>,
}

impl Pair {
    fn of(a: &Subject, b: &Subject) -> Pair {
        Pair {
            label: b.label.clone(),
            headline: compare::headline(a, b),
            rewrites: compare::rewrites(a, b),
            findings: compare::findings(a, b),
            metrics: compare::metrics(a, b),
            samples: compare::samples(a, b),
        }
    }
}

/// Counterfeit or failing, in words.
fn trouble(s: &Subject) -> Option<&String> {
    s.counterfeit.as_ref().or(s.failing.as_ref())
}

/// With its first word in capitals: what is said above everything else.
fn capitals(line: &str) -> String {
    let at = line.find(':').unwrap_or(line.len());
    line[..at].to_uppercase() + &line[at..]
}

/// The widest column of names.
const WIDEST: usize = 68;

/// The conditions that all figures end with, where they make the names too long for a column: these are said once.
fn shared(pairs: &[Pair]) -> String {
    let mut all = pairs.iter().flat_map(|p| &p.metrics).map(|d| &d.what[..]);
    let Some(first) = all.next() else { return String::new() };
    let (mut end, mut long) = (first, first.chars().count() > WIDEST);
    for what in all {
        long |= what.chars().count() > WIDEST;
        while !what.ends_with(end) {
            end = end.get(1..).and_then(|e| e.find(", ").map(|i| &e[i..])).unwrap_or_default();
        }
    }
    let whole = first.len() == end.len();
    // A name of its own stays to each.
    let end = if whole { end.find(", ").map_or("", |i| &end[i..]) } else { end };
    if long { end.to_string() } else { String::new() }
}

fn text(all: &[&Subject], pairs: &[Pair], references: &[String]) -> String {
    let mut o = String::new();
    for s in all {
        let _ = writeln!(
            o,
            "{}  {}{}",
            s.label,
            s.name,
            s.identity.as_ref().filter(|i| !i.contains(&s.name)).map(|i| format!(" ({i})")).unwrap_or_default()
        );
        if let Some(c) = trouble(s) {
            let _ = writeln!(o, "   {}", capitals(c));
        }
        s.left_out.iter().for_each(|f| {
            let _ = writeln!(o, "   left out: {f}");
        });
    }
    let a = &all[0].label;
    let shared = shared(pairs);
    for p in pairs {
        let _ = writeln!(o, "\n{a} and {}", p.label);
        p.headline.iter().chain(&p.rewrites).for_each(|h| {
            let _ = writeln!(o, "  {h}");
        });
        rows(&mut o, &p.findings, &shared, &p.label);
        rows(&mut o, &p.metrics, &shared, &p.label);
        if let Some(all) = shared.strip_prefix(", ").filter(|_| !p.metrics.is_empty()) {
            let _ = writeln!(o, "  each with {all}");
        }
        for e in &p.samples {
            experiment(&mut o, e, a, &p.label);
        }
        if p.findings.is_empty() && p.metrics.is_empty() && p.samples.is_empty() {
            let _ = writeln!(o, "  nothing that both measured");
        }
    }
    if !pairs.is_empty() && pairs.iter().any(|p| !p.samples.is_empty()) {
        let _ = writeln!(
            o,
            "\nOne measurement a card: a difference may be of the day or the reader as well as of the card; repeat each to know."
        );
    }
    if !references.is_empty() {
        let _ = writeln!(o, "\nBeside published cards (the host is part of the measurement)");
        references.iter().for_each(|r| {
            let _ = writeln!(o, "  {r}");
        });
    }
    o
}

/// Characters of a verdict without a ratio.
const USUAL: usize = 24;

/// A line each; a verdict that has no room beside its values stands below them. What is true of all is said once.
fn rows(o: &mut String, all: &[Difference], shared: &str, b: &str) {
    let named = |d: &Difference| d.what.strip_suffix(shared).unwrap_or(&d.what).to_string();
    let widest = |of: &dyn Fn(&Difference) -> String| all.iter().map(|d| of(d).chars().count()).max().unwrap_or(0);
    let [what, first, second] = [widest(&named), widest(&|d| d.a.clone()), widest(&|d| d.b.clone())];
    let common = all.first().and_then(|d| d.why.clone()).filter(|why| all.len() > 1 && all.iter().all(|d| d.why.as_ref() == Some(why)));
    let verdicts: Vec<String> = all.iter().map(|d| verdict(d, b, common.is_none())).collect();
    // Narrow gaps where that saves lines.
    let longest = verdicts.iter().map(|v| v.chars().count()).filter(|n| *n <= USUAL).max().unwrap_or(0);
    let gap = if 8 + what + first + second + longest <= super::width() { "  " } else { " " };
    for (d, verdict) in all.iter().zip(verdicts) {
        let head = format!("  {:<what$}{gap}{:<first$}{gap}{:<second$}{gap}", named(d), d.a, d.b);
        let beside = head.chars().count() + verdict.chars().count() <= super::width();
        let _ = match beside {
            true => writeln!(o, "{head}{verdict}"),
            false if head.trim_end().chars().count() > super::width() => {
                writeln!(o, "  {}\n    {} {gap}{}\n      {verdict}", named(d), d.a, d.b)
            }
            false => writeln!(o, "{}\n      {verdict}", head.trim_end()),
        };
    }
    if let Some(why) = common {
        let _ = writeln!(o, "  of these {why}");
    }
}

fn verdict(d: &Difference, b: &str, whole: bool) -> String {
    let words = d.words.as_ref().map(|w| format!("{b} is {w}, ")).unwrap_or_default();
    let ratio = match (d.ratio, &d.why) {
        (Some([r, low, high]), _) if low.is_finite() => format!("{words}x{} ({} to {})", three(r), three(low), three(high)),
        (Some([r, ..]), _) if !whole => format!("{words}x{}", three(r)),
        (Some([r, ..]), why) => format!("{words}x{}; {}", three(r), why.as_deref().unwrap_or("no interval")),
        (None, Some(why)) if whole => why.clone(),
        // The reason is said below, for all.
        (None, Some(why)) => why.split(':').next().unwrap_or(why).to_string(),
        (None, None) => String::new(),
    };
    let sure = || format!("({:.0} %, {})", percent(d.probability), grade(d.probability));
    let comma = if ratio.is_empty() { "" } else { ", " };
    match d.outcome {
        Outcome::Same => format!("same {}{comma}{ratio}", sure()),
        Outcome::Differs => format!("differs {}{comma}{ratio}", sure()),
        // One figure each is a ratio, and no statement that could be wrong.
        Outcome::Unclear if d.why.is_some() => ratio,
        Outcome::Unclear => format!("cannot be said{comma}{}", ratio.strip_prefix(&words).unwrap_or(&ratio)),
    }
}

fn micros(t: f64) -> Nanos {
    Nanos((t * 1e3).round() as u64)
}

fn experiment(o: &mut String, e: &Experiment, a: &str, b: &str) {
    let (n, differing) = (e.conditions.len(), e.differing());
    let [mid, low, high] = e.ratio;
    let times =
        format!("times of {b} are x{} those of {a} (median of {n} common conditions, {} to {})", three(mid), three(low), three(high));
    let _ = match e.outcome {
        Outcome::Same => writeln!(o, "  {}: no difference; {times}", e.name),
        Outcome::Unclear => writeln!(o, "  {}: no difference shown, and none excluded; {times}", e.name),
        Outcome::Differs if differing == 0 => writeln!(o, "  {}: differs; {times}", e.name),
        Outcome::Differs => writeln!(o, "  {}: differs, {differing} of them significant by themselves; {times}", e.name),
    };
    for c in e.conditions.iter().filter(|c| c.differs).take(3) {
        let [r, lo, hi] = c.ratio;
        let _ = writeln!(
            o,
            "    {}: {} against {}, {b} is {} (x{} to x{} of the time, p {:.0e})",
            c.label,
            micros(c.a),
            micros(c.b),
            compare::faster(1.0 / r),
            three(lo),
            three(hi),
            c.p.max(1e-99)
        );
    }
}

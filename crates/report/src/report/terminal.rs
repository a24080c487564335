//! The report as plain text: what it means, what was found and how sure that is, why, what it cost. Quotable in a mail (Q17).

use super::words::{explain, grade};
use super::{Report, plot};
use crate::advise::driver::driver;
use crate::advise::uses::{self, Verdict};
use crate::device::CardState;
use crate::experiment;
use crate::finding::{BY_PAGE, Finding, Findings, Quantity, percent};
use crate::infer::pipeline::figures;
use crate::samples::Ended;
use crate::units::{Bytes, GIB, MIB, Nanos, TIB, as_sold};
use std::fmt::Write;

/// How the text is dressed.
#[derive(Clone, Copy, Debug)]
pub struct Dress {
    pub colour: bool,
    pub width: usize,
    /// Evidence and caveats of every finding, reasons in full, plots, rules for a driver.
    pub details: bool,
    /// What every finding means, and what the card is good for: for a report that stands alone.
    pub explain: bool,
}

impl Default for Dress {
    fn default() -> Dress {
        Dress { colour: false, width: 100, details: true, explain: false }
    }
}

impl Dress {
    fn bold(&self, s: &str) -> String {
        if self.colour { format!("\x1b[1m{s}\x1b[0m") } else { s.to_string() }
    }
}

pub fn text(r: &Report, d: Dress) -> String {
    let mut out = banner(r, d);
    let what = r.target.model.as_deref().or(r.host.model.as_deref()).map(|m| format!(" ({m})")).unwrap_or_default();
    let mut head = String::new();
    wrapped(&mut head, "", &format!("{}{what}, {}", r.settings.asked, as_sold(r.target.size)), d.width);
    let _ = writeln!(out, "{}", head.replacen(&r.settings.asked, &d.bold(&r.settings.asked), 1));
    good_for(&mut out, r, d);
    list(&mut out, "What to do", &r.advice, d);
    let _ = writeln!(out, "{}", d.bold("Findings"));
    table(&mut out, &r.findings, d);
    out.push('\n');
    list(&mut out, "Warnings", &r.warnings, d);
    if d.details {
        why(&mut out, &r.findings, d);
        for lines in plots(r, d.width.min(100)) {
            lines.iter().for_each(|l| {
                let _ = writeln!(out, "{l}");
            });
            out.push('\n');
        }
        list(&mut out, "For a driver", &driver(&r.findings, &r.runs), d);
    }
    let c = &r.cost;
    let drive = c.bytes_written as f64 / r.target.size.max(1) as f64;
    let written = match c.writes {
        0 => "nothing written".to_string(),
        n => format!("{n} writes: {} written, {drive:.4} drive writes", size(c.bytes_written)),
    };
    let time = Nanos::from_secs_f64(c.seconds);
    wrapped(&mut out, "", &format!("{} reads ({}), {written}; {time} of the device's time", c.reads, size(c.bytes_read)), d.width);
    wrapped(&mut out, "", &state(r.state), d.width);
    if !d.details {
        wrapped(&mut out, "", "why, with evidence and plots: --details", d.width);
    }
    out
}

/// The findings alone.
pub fn table_text(r: &Report, d: Dress) -> String {
    let mut out = banner(r, d);
    table(&mut out, &r.findings, d);
    out
}

fn banner(r: &Report, d: Dress) -> String {
    match r.banner() {
        Some(line) => format!("{}\n\n", if d.colour { format!("\x1b[1;31m{line}\x1b[0m") } else { line }),
        None => String::new(),
    }
}

/// Uses by verdict; where terms are explained, each with its reason.
fn good_for(out: &mut String, r: &Report, d: Dress) {
    let all = uses::uses(r);
    if d.explain {
        let _ = writeln!(out, "{}", d.bold("Good for"));
        for u in &all {
            let gap = if d.width < NARROW { ":" } else { "" };
            wrapped(
                out,
                &format!("  {:<23}{:<14}", u.name, format!("{}{gap}", u.verdict.word())),
                &format!("{} [{}]", u.why, u.rests_on),
                d.width,
            );
        }
        out.push('\n');
        return;
    }
    let measured = all.iter().any(|u| u.verdict != Verdict::NotMeasured);
    for (title, verdict) in
        [("Good for", Verdict::Good), ("With care", Verdict::WithCare), ("Poor for", Verdict::Poor), ("Not measured", Verdict::NotMeasured)]
    {
        let names: Vec<&str> = all.iter().filter(|u| u.verdict == verdict).map(|u| u.name).collect();
        if measured && !names.is_empty() {
            let mut line = String::new();
            wrapped(&mut line, &format!("{title:<22}"), &names.join(", "), d.width);
            out.push_str(&line.replacen(title, &d.bold(title), 1));
        }
    }
    if measured {
        out.push('\n');
    }
}

/// What the flash went through before, which reads and writes depend on.
fn state(s: CardState) -> String {
    match s {
        CardState::Fresh => "state of the flash before: fresh, never written".into(),
        CardState::Erased => "state of the flash before: erased as a whole".into(),
        CardState::Filled => "state of the flash before: filled with data".into(),
        CardState::Aged => "state of the flash before: long in use".into(),
        CardState::Unknown => "state of the flash before: unknown (--state says it, --prepare makes it)".into(),
    }
}

/// Findings without a target: from pasted logs.
pub fn findings_text(findings: &Findings, advice: &[String], notes: &[String], d: Dress) -> String {
    let mut out = String::new();
    table(&mut out, findings, d);
    out.push('\n');
    list(&mut out, "What to do", advice, d);
    list(&mut out, "Warnings", notes, d);
    if d.details {
        why(&mut out, findings, d);
    }
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

/// Evidence and caveats of each finding.
fn why(out: &mut String, findings: &Findings, d: Dress) {
    findings.0.iter().for_each(|f| details(out, f, d));
}

/// A heading and its lines, and an empty one after them.
fn list(out: &mut String, title: &str, lines: &[String], d: Dress) {
    if !lines.is_empty() {
        let _ = writeln!(out, "{}", d.bold(title));
        lines.iter().for_each(|l| wrapped(out, "  - ", l, d.width));
        out.push('\n');
    }
}

/// Exact sizes where they are round, one or two decimals elsewhere; nothing above 1 MiB is in KiB.
pub fn size(b: u64) -> String {
    let round = if b >= GIB { GIB / 16 } else { MIB / 16 };
    match b {
        b if b < 10_000 => format!("{b} B"),
        b if b >= TIB => Bytes(b).to_string(),
        b if (b < MIB || b.is_multiple_of(round)) && Bytes(b).to_string().len() <= 9 => Bytes(b).to_string(),
        b if b < 1 << 20 => format!("{:.1} KiB", b as f64 / 1024.0),
        b if b < 1 << 30 => format!("{:.1} MiB", b as f64 / (1 << 20) as f64),
        b => format!("{:.2} GiB", b as f64 / (1 << 30) as f64),
    }
}

/// What a card that maps by page is judged by.
const TODAY: [Quantity; 28] = [
    Quantity::Mapping,
    Quantity::SlcCache,
    Quantity::RateCachedMbS,
    Quantity::RateSustainedMbS,
    Quantity::IdleTriggerMs,
    Quantity::IdleEmptyMbS,
    Quantity::SlcWhenFull,
    Quantity::SlcCacheEmpty,
    Quantity::MapWindowRead,
    Quantity::MapWindowWrite,
    Quantity::RandomWriteSteadyIops,
    Quantity::CollectionOnset,
    Quantity::Steady16kIops,
    Quantity::Steady64kIops,
    Quantity::Steady75Iops,
    Quantity::Steady50Iops,
    Quantity::DiscardRestores,
    Quantity::WriteAmplification,
    Quantity::OverProvisioning,
    Quantity::QueueGain,
    Quantity::QueueGainWrite,
    Quantity::ReadAfterWriteUs,
    Quantity::ReadSettlesMs,
    Quantity::PauseGain,
    Quantity::PauseMs,
    Quantity::FlushMs,
    Quantity::VolatileCache,
    Quantity::FlushWaits,
];

/// And what means nothing on it, unless it was found.
const OLD: [Quantity; 5] =
    [Quantity::EraseBlock, Quantity::OpenAusLinear, Quantity::OpenAusRandom, Quantity::CloseCostMs, Quantity::FatZone];

/// Findings in the order in which they are printed, and one line on those that mean nothing on this card: where the card maps by page and
/// was asked what today's cards are asked, these answers come first.
fn in_order(findings: &Findings) -> (Vec<&Finding>, Option<String>) {
    let all: Vec<&Finding> = findings.0.iter().collect();
    let by_page = findings.get(Quantity::Mapping).and_then(Finding::number) == Some(BY_PAGE);
    if !by_page || !all.iter().any(|f| TODAY[1..].contains(&f.quantity)) {
        return (all, None);
    }
    let (first, rest): (Vec<&Finding>, Vec<&Finding>) = all.into_iter().partition(|f| TODAY.contains(&f.quantity));
    let (old, rest): (Vec<&Finding>, Vec<&Finding>) =
        rest.into_iter().partition(|f| OLD.contains(&f.quantity) && f.number().is_none() && f.instead().is_none());
    let names: Vec<String> = old
        .iter()
        .map(|f| match f.at_least {
            Some(b) => format!("{} at least {}", f.quantity.title(), f.quantity.show(b.0)),
            None => f.quantity.title().to_string(),
        })
        .collect();
    let line = (!names.is_empty()).then(|| format!("no limit of a page-mapped card: {}", names.join("; ")));
    (first.into_iter().chain(rest).collect(), line)
}

fn table(out: &mut String, findings: &Findings, d: Dress) {
    let (all, old) = in_order(findings);
    for f in all {
        let title = format!("{:<TITLE$}", f.quantity.title());
        let line = match (f.number(), f.at_least) {
            _ if f.instead().is_some() => {
                let mut text = String::new();
                wrapped(&mut text, &title, f.instead().unwrap_or_default(), d.width);
                text.trim_end().to_string()
            }
            (Some(v), _) => {
                let shown = f.quantity.show(v);
                let sure = format!("{shown:<14}{:>3.0} %  {:<8}", percent(f.confidence), grade(f.confidence));
                let mut line = beside(&title, &sure, d);
                let gap = if d.width < NARROW { "\n  " } else { "" };
                if let Some([lo, hi]) = f.interval {
                    line += &format!("{gap}{}", f.quantity.range(lo, hi));
                } else if let Some(rival) = f.rivals.first().filter(|x| x.probability >= 0.005) {
                    let _ = write!(line, "{gap}else {} ({:.0} %)", f.quantity.show(rival.value.0), (rival.probability * 100.0).max(1.0));
                }
                if d.colour { line.replacen(&shown, &d.bold(&shown), 1) } else { line }
            }
            (None, Some(bound)) => {
                let bound = format!("at least {}", f.quantity.show(bound.0));
                beside(&title, &format!("{bound:<14}{:>3.0} %  {}", percent(f.confidence), grade(f.confidence)), d)
            }
            (None, None) => {
                let reason = f.reason.as_deref().unwrap_or("no reason given");
                let mut text = String::new();
                match d.details {
                    true => wrapped(&mut text, &format!("{title}undecided, because "), reason, d.width),
                    false => {
                        let room = if d.width < NARROW { d.width - 13 } else { d.width.saturating_sub(33) };
                        text = beside(&title, &format!("undecided: {}", first_clause(reason, room)), d);
                    }
                }
                text.trim_end().to_string()
            }
        };
        let _ = writeln!(out, "{}", line.trim_end());
    }
    if let Some(line) = old {
        wrapped(out, &format!("{:<22}", "block-mapped only"), &line, d.width);
    }
}

fn details(out: &mut String, f: &Finding, d: Dress) {
    if f.evidence.is_empty() && f.caveats.is_empty() && !d.explain {
        return;
    }
    let _ = writeln!(out, "{} ({})", f.quantity.title(), if f.from.is_empty() { "no experiment".into() } else { f.from.join(", ") });
    if d.explain {
        wrapped(out, "  ", &explain(f).join(" "), d.width);
    }
    for e in &f.evidence {
        wrapped(out, if d.explain { "  - " } else { "  " }, e, d.width);
    }
    if let (Some(reason), Some(_), None) = (&f.reason, f.at_least, f.instead()) {
        wrapped(out, "  ", reason, d.width);
    }
    for c in &f.caveats {
        wrapped(out, "  but ", c, d.width);
    }
    out.push('\n');
}

/// What one line of at most `width` characters says of a reason: of several experiments the first, without its name, cut between words.
fn first_clause(reason: &str, width: usize) -> String {
    let first = reason.split("; ").next().unwrap_or(reason);
    let first = first.split_once(": ").filter(|(name, _)| experiment::by_name(name).is_some()).map_or(first, |(_, why)| why);
    match lines(first, width).as_slice() {
        [whole] => whole.clone(),
        _ => format!("{} ...", lines(first, width.saturating_sub(4))[0]),
    }
}

/// The decisive plots: one for each experiment that decided something, else the first.
fn plots(r: &Report, width: usize) -> Vec<Vec<String>> {
    let mut out = vec![];
    for run in &r.runs {
        let Some(e) = experiment::by_name(&run.experiment) else { continue };
        let decided = r.findings.0.iter().any(|f| f.from.contains(&run.experiment) && (f.value.is_some() || f.at_least.is_some()));
        if decided || r.runs.len() == 1 || e.about().answers.contains(&Quantity::EraseBlock) && !e.about().writes {
            out.extend(figures(run).iter().map(|f| plot::braille(f, width, 8)).filter(|l| !l.is_empty()));
        }
    }
    out.truncate(4);
    out
}

/// Columns of a screen below which a table has no room beside the names of its rows.
pub const NARROW: usize = 60;
/// Columns of these names.
const TITLE: usize = 22;

/// A name and what stands beside it, in lines of their own on a narrow screen.
fn beside(title: &str, line: &str, d: Dress) -> String {
    if d.width < NARROW { format!("{}\n  {line}", title.trim_end()) } else { format!("{title:<TITLE$}{line}") }
}

pub(super) fn wrapped(out: &mut String, lead: &str, text: &str, width: usize) {
    let indent = lead.chars().count();
    let width = width.max(40);
    if width < NARROW && indent >= TITLE {
        let (title, rest) = lead.split_at(lead.char_indices().nth(TITLE).map_or(lead.len(), |c| c.0));
        let _ = writeln!(out, "{}", title.trim_end());
        let inner = 2 + title.len() - title.trim_start().len();
        for l in lines(&format!("{rest} {text}"), width - inner) {
            let _ = writeln!(out, "{:inner$}{l}", "");
        }
        return;
    }
    let mut all = lines_after(text, width.saturating_sub(indent), width.saturating_sub(indent.min(TITLE))).into_iter();
    let _ = writeln!(out, "{lead}{}", all.next().unwrap_or_default());
    all.for_each(|l| {
        let _ = writeln!(out, "{}{l}", " ".repeat(indent.min(TITLE)));
    });
}

/// Words in lines of at most `width` characters; a longer word has a line of its own.
pub fn lines(text: &str, width: usize) -> Vec<String> {
    lines_after(text, width, width)
}

/// The same; the first line has `first` characters.
fn lines_after(text: &str, first: usize, width: usize) -> Vec<String> {
    let mut all = vec![String::new()];
    for word in text.split_whitespace() {
        let room = if all.len() == 1 { first } else { width };
        let n = all.len() - 1;
        if !all[n].is_empty() && all[n].chars().count() + 1 + word.chars().count() > room {
            all.push(word.to_string());
        } else {
            let gap = if all[n].is_empty() { "" } else { " " };
            all[n] += gap;
            all[n] += word;
        }
    }
    all
}

/// What a run had too little of: time, or bytes that it may write.
pub fn out_of(what: &str) -> String {
    if what == "time" { what.to_string() } else { format!("writes ({what})") }
}

/// How a run ended, where that is worth a word.
pub fn ending(name: &str, ended: &Ended) -> Option<String> {
    match ended {
        Ended::Complete => None,
        Ended::Budget(what) => Some(format!("{name} stopped early: out of {}", out_of(what))),
        Ended::Interrupted => Some(format!("{name} was interrupted")),
        Ended::Failed(why) => Some(format!("{name} failed: {why}")),
    }
}

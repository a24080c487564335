//! A rating for people: the answers first, then the limits, then the conditions.

use super::rate::Rated;
use crate::rate::judge::{ForPurpose, shown};
use crate::rate::{Limit, State, Verdict};
use crate::report::terminal::{NARROW, lines, size};
use crate::units::{Bytes, between, three};

/// One screen.
pub(super) fn text(r: &Rated, colour: bool, width: usize) -> String {
    let paint = |v: Verdict, text: &str| {
        let code = match v {
            Verdict::Passes => "32",
            Verdict::Fails => "31;1",
            Verdict::NotDecided => "33",
        };
        if colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_string() }
    };
    let name = r.model.map_or(String::new(), |m| format!(" {m}"));
    let mut out = format!("{}{name}, {}\n", r.target, crate::units::as_sold(r.size));
    let named = |v: Verdict| r.ratings.iter().filter(|c| c.verdict == v).map(|c| c.class.as_str()).collect::<Vec<_>>().join(", ");
    let quick = if r.conditions == "quick" { " (quick)" } else { "" };
    let parts: Vec<String> = [(Verdict::Passes, quick), (Verdict::Fails, ""), (Verdict::NotDecided, "")]
        .into_iter()
        .filter(|(v, _)| !named(*v).is_empty())
        .map(|(v, q)| format!("{} {}{q}", paint(v, v.word()), named(v)))
        .collect();
    if !parts.is_empty() {
        out += &wrapped(&parts.join("; "), 0, width);
    }
    let declares = match &r.declared {
        Some(marks) => format!("declares {marks}\n"),
        None => "what the card declares is not shown here\n".to_string(),
    };
    if r.purpose.is_none() {
        out += &declares;
    }
    for w in &r.warnings {
        out += &wrapped(&format!("Warning: {w}"), 0, width);
    }
    if let Some(p) = &r.purpose {
        out += &purpose(p, r.conditions == "quick", &paint, width);
        out += &format!("  {declares}");
    }
    for c in r.ratings {
        let quick = if c.verdict == Verdict::Passes { quick } else { "" };
        out += &format!("\n{:<5}{}{quick}", c.class, paint(c.verdict, c.verdict.word()));
        let why = if c.verdict == Verdict::Passes { String::new() } else { format!(": {}", c.because) };
        let mut rest = lines(&why, width.saturating_sub(24)).into_iter();
        out += &format!("{}\n", rest.next().unwrap_or_default());
        rest.for_each(|l| out += &format!("     {l}\n"));
        c.limits.iter().for_each(|l| out += &limit(l, width));
    }
    let titles = [
        (State::NotMet, "Conditions of the procedures that were not met"),
        (State::NotKnowable, "Conditions that cannot be known from here"),
        (State::Met, "Conditions that were met"),
    ];
    for (state, title) in titles {
        let all: Vec<_> = r.conditions_of.iter().filter(|c| c.state == state).collect();
        if !all.is_empty() {
            out += &format!("\n{title}\n");
        }
        all.iter().for_each(|c| out += &wrapped(&format!("- {} ({}): {}", c.what, c.of.join(", "), c.because), 4, width));
    }
    out += match r.conditions {
        "quick" => "\nWhat a quick run cannot promise (--conditions spec is the whole procedure)\n",
        _ => "\nWhat this run cannot promise\n",
    };
    for n in &r.not_promised {
        out += &wrapped(&format!("- {n}"), 4, width);
    }
    let c = &r.cost;
    out + &format!("\n{} read, {} written; {:.1} s of the device's time\n", size(c.bytes_read), size(c.bytes_written), c.seconds)
}

/// Two blanks, then text broken at the width, the next lines `indent` deep.
fn wrapped(text: &str, indent: usize, width: usize) -> String {
    let first = if indent > 0 { 2 } else { 0 };
    let mut rest = lines(text, width.saturating_sub(indent.max(2))).into_iter();
    let mut out = format!("{:first$}{}\n", "", rest.next().unwrap_or_default());
    rest.for_each(|l| out += &format!("{:indent$}{l}\n", ""));
    out
}

fn limit(l: &Limit, width: usize) -> String {
    let (asks, sign) = (shown(l, l.asks), if l.at_most { "at most" } else { "at least" });
    let found = match (l.measured, l.interval, l.margin) {
        (Some(v), Some([lo, hi]), Some(margin)) => {
            let [lo, hi] = [lo, hi].map(|x| shown(l, x));
            let range = if lo == hi { String::new() } else { format!(" ({lo} to {hi})") };
            let margin = if v >= 1e12 { String::new() } else { format!(", margin {:+.0} %", 100.0 * margin) };
            format!("{}{range}{margin}", shown(l, v))
        }
        _ => "not measured".into(),
    };
    let because = l.because.as_deref().filter(|_| l.measured.is_some() && l.verdict != Verdict::Passes);
    if width < NARROW {
        let head = wrapped(&format!("{}: {} {sign} {asks}", l.what, l.verdict.word()), 5, width);
        return head
            + &std::iter::once(found.as_str())
                .chain(because)
                .map(|t| format!("     {}", wrapped(t, 7, width - 5).trim_start()))
                .collect::<String>();
    }
    let because = because.map_or(String::new(), |b| format!("\n       {b}"));
    format!("     {:<41} {:<12} {sign} {asks}\n       {found}{because}\n", l.what, l.verdict.word())
}

fn purpose(p: &ForPurpose, quick: bool, paint: &dyn Fn(Verdict, &str) -> String, width: usize) -> String {
    let head = match p.verdict {
        Verdict::Passes => "enough",
        Verdict::Fails => "NOT ENOUGH",
        Verdict::NotDecided => "not decided",
    };
    let mut out = wrapped(&format!("for {}: {}, {}", p.title, paint(p.verdict, head), p.because), 0, width);
    out += &wrapped(&format!("it needs {} ({})", p.needs, p.source), 5, width);
    if let Some(b) = p.request {
        out += &wrapped(&format!("measured with requests of {}", Bytes(b)), 5, width);
    }
    p.limits.iter().for_each(|l| out += &limit(l, width));
    if let Some(b) = p.buffer {
        out += &wrapped(&format!("buffer needed: {} in what was recorded", size(b)), 5, width);
    }
    if let Some(d) = p.drops {
        let [lo, hi] = d.chance_per_hour.map(|c| 100.0 * c);
        let recorded = if d.hours < 1.0 { format!("{} min", three(60.0 * d.hours)) } else { format!("{} h", three(d.hours)) };
        let range = if hi > 99.0 && lo < 1.0 {
            format!("too short for an hour to be judged{}", if quick { ": --conditions spec records one" } else { "" })
        } else {
            format!("chance of an overflow in an hour: {} % (95 %)", between(&three(lo), &three(hi)))
        };
        let text = format!("with a buffer of {}: {} overflows in {recorded} of recording; {range}", Bytes(d.buffer), d.seen);
        out += &wrapped(&text, 5, width);
    }
    out
}

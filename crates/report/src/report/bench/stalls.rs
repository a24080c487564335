//! Stalls and buffers in words.

use super::us;
use crate::infer::buffer::{Answer, Verdict, gigabytes, long};
use crate::infer::stalls::{LIMITS, Origin, Period, Stalls, far_apart};
use crate::samples::records::Pass;
use crate::units::{Bytes, Nanos, three};
use std::fmt::Write;

/// GB from which on their absence bounds the number of stalls to some use: 300 a GB and less.
const SAYS: f64 = 0.01;

pub(super) fn stall_text(out: &mut String, s: &Stalls, p: &Pass) {
    let times: Vec<String> =
        far_apart(p).iter().map(|g| format!("{} % of the calls take about {}", three(g.share * 100.0), us(g.median))).collect();
    let usual = match &times[..] {
        [] => format!("{}, five times the usual {}", us(s.threshold), us(s.usual)),
        _ => format!("{}, five times the longest of its usual times", us(s.threshold)),
    };
    if !times.is_empty() {
        let _ = writeln!(out, "  usual times: {}: too many of each to be stalls", times.join(", "));
    }
    // What is over in a millisecond is no stall, however short the others are.
    let above = if s.threshold > 1000.0 { usual } else { us(s.threshold) };
    if s.count == 0 {
        let gb = p.bytes() as f64 / 1e9;
        let bound = match gb >= SAYS {
            true => format!("fewer than {} a GB at 95 %", three(s.interval[1])),
            false => "too short a run to say how many a GB".into(),
        };
        let _ = writeln!(out, "  stalls: no call above {above}, in {}; {bound}", gigabytes(gb));
    } else {
        let _ = writeln!(
            out,
            "  stalls: {} call{} above {above}; median {}, longest {}; {} a GB ({} to {}); {} % of the time",
            s.count,
            if s.count == 1 { "" } else { "s" },
            us(s.median),
            us(s.longest),
            three(s.per_gb),
            three(s.interval[0]),
            three(s.interval[1]),
            three(s.cost * 100.0)
        );
        if s.kinds.is_empty() {
            rhythm(out, s, p, (s.in_bytes, s.in_time), "");
        }
        for k in &s.kinds {
            let _ = writeln!(out, "    {} of about {}, longest {}", k.count, us(k.median), us(k.longest));
            rhythm(out, s, p, (k.in_bytes, k.in_time), "  ");
        }
        if s.kinds.is_empty() && s.in_bytes.is_none() && s.in_time.is_none() && s.count >= 4 {
            let _ = writeln!(out, "    at no regular distance, in bytes or in time");
        }
    }
    let tail: Vec<String> = s.tail.iter().filter(|t| t.1 > 0 && t.0 >= 10.0).map(|t| format!("{} above {} ms", t.1, t.0)).collect();
    if !tail.is_empty() {
        let _ = writeln!(out, "    tail: {}", tail.join(", "));
    }
    // The wire takes its time in every call: only what goes beyond it can be busy.
    for (ms, what) in LIMITS {
        if p.write && s.beyond > ms * 1e3 {
            let _ = writeln!(
                out,
                "    the longest call takes {} more than the shortest that reach the card: above {ms} ms, the limit of: {what}",
                us(s.beyond)
            );
        }
    }
}

fn rhythm(out: &mut String, s: &Stalls, p: &Pass, (in_bytes, in_time): (Option<Period>, Option<Period>), indent: &str) {
    let show = |x: f64| three(x * 100.0);
    // What is printed as all of them is all of them.
    let part = |some: &str, all: &str, x: f64| match show(x) {
        _ if x >= 1.0 => all.to_string(),
        near if near.parse().is_ok_and(|n: f64| n >= 100.0) => all.to_string(),
        less => format!("{less} % {some}"),
    };
    // Places are known by the record; sectors are what a card has.
    let whole = |x: f64| Bytes((x / 512.0).round() as u64 * 512);
    if let Some(b) = in_bytes {
        let _ = write!(
            out,
            "    {indent}every {} ({}, {})",
            whole(b.length),
            part("of them are at a multiple", "all are at a multiple", b.on),
            part("of the multiples have one", "all multiples have one", b.filled)
        );
        let of = match s.origin {
            Origin::Card => "of the card",
            Origin::File => "of the file",
            Origin::Written => "written",
        };
        let at = whole(b.phase.rem_euclid(b.length));
        let at = if at.0 == 0 || at == whole(b.length) { "where each begins".to_string() } else { format!("{at} into each") };
        let _ = match b.fixed {
            true => writeln!(out, ", in calls that start {at}, counted from the first byte {of}"),
            false => writeln!(out, "; where in it differs each time the file is written, so the card counts what it writes and not places"),
        };
    }
    if let Some(t) = in_time {
        let _ = writeln!(
            out,
            "    {indent}every {} of {} ({} % of them)",
            Nanos(t.length as u64),
            if p.write { "writing" } else { "reading" },
            show(t.on)
        );
    }
    if let (Some(b), Some(t)) = (in_bytes, in_time)
        && (b.on - t.on).abs() < 0.1
    {
        let _ = writeln!(out, "    {indent}bytes or time: the rate was too even to say which of the two the card counts");
    }
}

/// What a logger needs, or why it cannot be said.
pub fn answer_text(a: &Answer) -> String {
    let head =
        format!("to log {} kB/s with less than one loss in {} of logging ({})", three(a.rate / 1e3), long(a.seconds()), gigabytes(a.gb));
    let Some(bytes) = a.bytes else {
        let no = if a.verdict == Verdict::TooSlow { "too slow: no buffer is large enough" } else { "undecided" };
        return format!("{head}: {no}, because {}", a.because);
    };
    let samples = if a.sample == 1 { "bytes come one by one".to_string() } else { format!("samples of {} B", a.sample) };
    let less = if a.sample == 1 { "one byte less".to_string() } else { "room for one sample less".into() };
    let losses = |n: u64| if n == 1 { "1 loss".to_string() } else { format!("{n} losses") };
    let replayed = a.replayed.map_or(String::new(), |[with, n]| format!("; replayed: {}, with {less}: {}", losses(with), losses(n)));
    let times = |n: u64| if n == 1 { "once".to_string() } else { format!("{n} times") };
    let halves =
        a.halves.map_or(String::new(), |(b, lost)| format!("; {b} B from the first half of the calls loses {} in the second", times(lost)));
    format!("{head} you need {bytes} B of buffer ({samples}): {}{replayed}{halves}", a.because)
}

//! A twin in words: what is believed, what it costs, what is explained and what is not; and how well one predicts.

use crate::infer::figure::{Figure, Series};
use crate::report::plot::braille;
use crate::twin::check::{Checked, Kind};
use crate::twin::text::time;
use crate::twin::{Cost, Twin};
use crate::units::{Bytes, between};
use nandscope_sim::model::State;
use std::fmt::Write;

/// A share as percent: never 100 unless it is all.
fn percent(share: f64) -> String {
    let p = 100.0 * share;
    if p < 100.0 && p > 99.9 { "over 99.9 %".into() } else { format!("{p:.1} %") }
}

fn probability(p: f64) -> String {
    if p > 0.99 { "over 99 %".into() } else { format!("{:.0} %", 100.0 * p) }
}

/// A twin that explains less of the variance than this is no model of the card.
const EXPLAINS: f64 = 0.5;

/// Everything about a fit.
pub fn text(t: &Twin, width: usize, plot: bool) -> String {
    let mut o = String::new();
    let _ = writeln!(o, "{}: {} accesses, {} structures compared in {:.0} s", t.of, t.accesses, t.structures, t.seconds);
    match &t.no_card {
        Some(why) => {
            let _ = writeln!(o, "no twin: {why}");
            let _ = writeln!(o, "\nThe best that was found all the same:");
        }
        None => {
            let all = if t.explained > 0.0 { percent(t.explained) } else { "nothing".into() };
            let near = percent(t.within_tenth);
            let _ = writeln!(o, "the twin explains {all} of the variance of their times; {near} of them are within 10 % of what it says");
        }
    }
    // A probability among structures none of which explains the times says nothing of the card.
    let explains = t.explained >= EXPLAINS;
    let how = match explains {
        // docs/twin.md has the count.
        true => "with probabilities among those compared (over 99 %: 77 of 100 right)",
        false => "the best of those compared, which does not explain most of the times",
    };
    let _ = writeln!(o, "\nStructure, {how}");
    let wide = t.structure.iter().map(|w| w.name.len()).max().unwrap_or(0);
    for w in &t.structure {
        if !explains {
            let _ = writeln!(o, "  {:<wide$}  {}", w.name, w.value);
            continue;
        }
        let rivals: Vec<String> = w.rivals.iter().take(2).map(|r| format!("{} {}", r.0, probability(r.1))).collect();
        let rivals = if rivals.is_empty() { String::new() } else { format!("; else {}", rivals.join(", ")) };
        let _ = writeln!(o, "  {:<wide$}  {} ({}{rivals})", w.name, w.value, probability(w.probability));
    }
    let _ = writeln!(o, "\nCosts, with 95 % intervals");
    let wide = t.costs.iter().map(|c| c.name.len()).max().unwrap_or(0);
    for c in &t.costs {
        let _ = writeln!(o, "  {:<wide$}  {}", c.name, cost(c));
    }
    if t.model.host.tick > 0 {
        let _ = writeln!(o, "  {:<wide$}  at multiples of {}", "answers of the host", time(t.model.host.tick as f64));
    }
    let n = &t.noise;
    let _ = writeln!(o, "  {:<wide$}  ± {}", "noise of a command", time(n.jitter_ns as f64));
    if n.tail_every > 0 {
        let late = between(&time(n.tail_ns as f64), &time(n.tail_cap_ns as f64));
        let _ = writeln!(o, "  {:<wide$}  one command in {}, {late}", "late by chance", n.tail_every);
    }
    for &(took, every, random) in &n.stalls {
        let how = if random { "at random, on average every" } else { "every" };
        let _ = writeln!(o, "  {:<wide$}  {}, {how} {} written", "stall", time(took as f64), Bytes(every));
    }
    let _ = writeln!(o, "\nWhat is explained of each experiment: share of the variance, accesses within 10 %");
    let wide = t.experiments.iter().map(|p| p.experiment.len()).max().unwrap_or(0);
    for p in &t.experiments {
        let part = p.explained.map_or("hardly varies".into(), |e| if e < 0.0 { "none".into() } else { percent(e) });
        let _ = writeln!(o, "  {:<wide$}  {part:>13}  {:>11}  of {} accesses", p.experiment, percent(p.within_tenth), p.accesses);
    }
    if !t.worst.is_empty() {
        let _ = writeln!(o, "\nWhat is not: conditions where most time is missing or too much, means");
        for q in &t.worst {
            let (m, p) = (time(q.measured_ns), time(q.predicted_ns));
            let _ = writeln!(o, "  {}, {}: measured {m}, predicted {p} ({} accesses)", q.experiment, q.condition, q.accesses);
        }
    }
    if plot {
        let series = vec![Series { name: "conditions".into(), points: t.points.iter().map(|p| (p[0], p[1])).collect() }];
        let title = "predicted time of each condition against the measured one: what is explained lies on the diagonal";
        let figure = Figure { title: title.into(), x: "measured, ms".into(), y: "ms".into(), log_x: true, log_y: true, series };
        let lines = braille(&figure, width.min(72), 12);
        if !lines.is_empty() {
            let _ = writeln!(o, "\n{}", lines.join("\n"));
        }
    }
    if let Some((what, p)) = &t.rival {
        let _ = writeln!(o, "\nBest rival: {what} ({})", probability(*p));
    }
    let _ = writeln!(o, "None of these structures, a mean for each condition instead: {}", probability(t.none_of_these));
    if t.no_card.is_none() {
        let state = if t.model.card.state == State::Empty { "empty, never written" } else { "full, every byte written once in order" };
        let _ = writeln!(o, "The twin begins {state}; --precondition of `sim` and `twin check` changes that.");
        t.assumed.iter().for_each(|a| {
            let _ = writeln!(o, "Assumed: {a}.");
        });
    }
    o
}

fn cost(c: &Cost) -> String {
    let each = if c.event.by_byte() { " a byte" } else { "" };
    match c.interval_ns {
        Some([low, high]) => format!("{}{each} ({})", time(c.ns), between(&time(low), &time(high))),
        None => format!("{}{each} (assumed, or not distinguished)", time(c.ns)),
    }
}

/// How far a prediction is from what was measured. No sign: what rounds to nothing has none.
fn off(error: f64) -> String {
    let share = format!("{:.1} %", 100.0 * error.abs());
    match error {
        _ if share == "0.0 %" => "0.0 % off what was measured".into(),
        e if e > 0.0 => format!("{share} above what was measured"),
        _ => format!("{share} below what was measured"),
    }
}

/// How well a twin predicts.
pub fn checked(c: &Checked, twin: &str, measured: &str, begins: &str) -> String {
    let mut o = String::new();
    let _ = writeln!(o, "{twin} against {measured}: {} accesses, {}; the twin begins {begins}", c.accesses, Bytes(c.bytes));
    let _ = writeln!(o, "  time            measured {:.3} s, predicted {:.3} s", c.measured_s, c.predicted_s);
    let _ = writeln!(o, "  throughput      predicted {}", off(c.throughput_error));
    let _ = writeln!(o, "  within 10 %     {} of the accesses", percent(c.within_tenth));
    let _ = writeln!(o, "  correlation     {}", c.correlation.map_or("none: all times are alike".into(), |r| format!("{r:.3}")));
    let share = |x: Option<f64>| x.map_or("none".into(), percent);
    let _ = match (c.slow, c.precision) {
        (0, None) => writeln!(o, "  slow accesses   none, and none predicted (more than 3 times the median of their kind)"),
        _ => writeln!(
            o,
            "  slow accesses   {} (more than 3 times the median of their kind); found {} of them; of those predicted {} were slow",
            c.slow,
            share(c.recall),
            share(c.precision)
        ),
    };
    let wrong = |k: &&Kind| (k.measured_ns - k.predicted_ns).abs() > 0.1 * k.measured_ns;
    let all: Vec<&Kind> = c.worst.iter().filter(wrong).collect();
    if all.is_empty() {
        let _ = writeln!(o, "  the mean of every kind and length of access is within 10 %");
        return o;
    }
    let _ = writeln!(o, "  where it goes wrong, means:");
    for k in all {
        let (m, p) = (time(k.measured_ns), time(k.predicted_ns));
        let _ = writeln!(o, "    {} of {}: measured {m}, predicted {p} ({} accesses)", k.op, Bytes(k.len), k.accesses);
    }
    o
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_is_not_off_has_no_sign() {
        let said = [0.0, -0.0, 4e-4, -4e-4, 0.021, -0.3].map(super::off);
        assert!(said[..4].iter().all(|s| s == "0.0 % off what was measured"), "{said:?}");
        assert_eq!(said[4..], ["2.1 % above what was measured", "30.0 % below what was measured"]);
    }
}

//! What `nandscope sim` prints for people.

use super::sim::Report;
use crate::infer::figure::{Figure, Series};
use crate::report::plot::braille;
use crate::report::terminal::{lines, size};
use crate::units::{Bytes, Nanos, three};
use nandscope_sim::Latencies;
use nandscope_sim::run::{Outcome, Stretch};
use std::fmt::Write;

/// Rows of the time line, at most.
const ROWS: usize = 16;
/// Lines of a plot.
const HEIGHT: usize = 6;

/// The whole text, lines of at most `width` columns where that is possible.
pub fn text(r: &Report, width: usize) -> String {
    let mut t = String::new();
    let o = &r.outcome;
    let _ = writeln!(t, "{} ({}), {}", r.card, r.about, size(r.capacity));
    let part = if r.region == [0, r.capacity] { String::new() } else { format!(", bytes {} to {}", r.region[0], r.region[1]) };
    let queue = if r.queue > 1 { format!(", {} under way", r.queue) } else { String::new() };
    let _ = writeln!(t, "{}{part}{queue}, seed {}\n", r.input, r.seed);
    let narrow = width < WIDE;
    if !narrow {
        let _ = write!(t, "{:<12}{:>9}", "latency", "requests");
        SHARES.iter().for_each(|s| t.push_str(&format!("{s:>8}")));
        t.push('\n');
    }
    let rows = [("reads", Some(&o.reads)), ("writes", Some(&o.writes)), ("other", Some(&o.others)), ("as recorded", r.recorded.as_ref())];
    for (name, l) in rows {
        if let Some(l) = l.filter(|l| l.count > 0) {
            let _ = writeln!(t, "{}", if narrow { latency_lines(name, l, width) } else { latency(name, l) });
        }
    }
    t.push('\n');
    for (what, value) in figures(r) {
        let mut rest = lines(&value, width.saturating_sub(22)).into_iter();
        let _ = writeln!(t, "{what:<22}{}", rest.next().unwrap_or_default());
        rest.for_each(|l| {
            let _ = writeln!(t, "{:22}{l}", "");
        });
    }
    for note in &r.notes {
        let _ = writeln!(t, "{:<22}{note}", "note");
    }
    malformed(&mut t, r);
    lost(&mut t, r);
    timeline(&mut t, o, width);
    t
}

/// Columns of the table of latencies.
const WIDE: usize = 77;
const SHARES: [&str; 7] = ["least", "mean", "50 %", "90 %", "99 %", "99.9 %", "longest"];

fn shares(l: &Latencies) -> [String; 7] {
    [l.least, l.mean.round() as u64, l.p50, l.p90, l.p99, l.p999, l.most].map(|ns| Nanos(ns).to_string())
}

fn latency(name: &str, l: &Latencies) -> String {
    shares(l).iter().fold(format!("{name:<12}{:>9}", l.count), |row, s| row + &format!("{s:>8}"))
}

/// The same where a row has no room.
fn latency_lines(name: &str, l: &Latencies, width: usize) -> String {
    let all: Vec<String> = SHARES.iter().zip(shares(l)).map(|(what, ns)| format!("{what} {ns}")).collect();
    let text = lines(&all.join(", "), width.saturating_sub(2)).join("\n  ");
    format!("latency of {} {name}\n  {text}", l.count)
}

/// One line a figure; what is all zero is left out.
fn figures(r: &Report) -> Vec<(&'static str, String)> {
    let o = &r.outcome;
    let mb = crate::units::rate;
    let mut all = vec![
        ("time", format!("{} of the card's own time", Nanos(o.took))),
        (
            "rate",
            match o.took {
                0 => "not known: the card took no time".into(),
                _ => format!("{} requests/s, {}", three(r.requests_per_second), mb(r.bytes_per_second)),
            },
        ),
    ];
    if o.bytes_read > 0 {
        all.push(("read", size(o.bytes_read)));
    }
    if o.bytes_written > 0 {
        all.push(("written", format!("{}, {} drive writes", size(o.bytes_written), significant(o.drive_writes))));
        all.push(("write amplification", three(o.write_amplification)));
    }
    all.push((
        "flash",
        format!("{} multi-plane pages read, {} write units programmed, {} copied", o.units_sensed, o.units_programmed, o.units_copied),
    ));
    if o.filled_up > 0 {
        all.push(("partly written units", format!("{} writes had to fill one up", o.filled_up)));
    }
    if o.merges_switch + o.merges_partial + o.merges_full > 0 {
        all.push(("merges", format!("{} switch, {} partial, {} full", o.merges_switch, o.merges_partial, o.merges_full)));
    }
    if o.collections > 0 {
        all.push(("garbage collection", format!("{} blocks emptied", o.collections)));
    }
    if let Some(w) = r.wear.as_ref().filter(|_| o.erases > 0) {
        let more = if w.dead > 0 { format!("; {} blocks are bad", w.dead) } else { String::new() };
        all.push((
            "wear",
            format!(
                "{} erasures, {} a block: {} to {}, standard deviation {}{more}",
                o.erases,
                significant(w.mean),
                w.least,
                w.most,
                significant(w.standard_deviation)
            ),
        ));
    }
    for (what, n, unit) in [("refreshes", o.refreshes, "blocks read too often were rewritten"), ("stalls", o.stalls, "")] {
        if n > 0 {
            all.push((what, format!("{n} {unit}").trim_end().to_string()));
        }
    }
    if o.folded > 0 {
        all.push(("folded back", format!("{} request{}", o.folded, if o.folded == 1 { "" } else { "s" })));
    }
    all
}

/// Three digits that mean something, for shares far below 1 too.
fn significant(x: f64) -> String {
    if x == 0.0 || x.abs() >= 0.1 {
        return three(x);
    }
    let digits = (2 - x.abs().log10().floor() as i32).clamp(0, 12) as usize;
    format!("{x:.digits$}")
}

fn malformed(t: &mut String, r: &Report) {
    if r.malformed == 0 {
        return;
    }
    let _ = writeln!(t, "\n{} lines of the trace could not be read and were left out:", r.malformed);
    for bad in r.malformed_lines.iter().take(10) {
        let _ = writeln!(t, "  line {}: {}: '{}'", bad.line, bad.reason, bad.text.escape_debug());
    }
    if r.malformed > 10 {
        let _ = writeln!(t, "  ... and {} more", r.malformed - 10);
    }
}

fn lost(t: &mut String, r: &Report) {
    let Some(lost) = &r.lost else { return };
    let bytes: u64 = lost.iter().map(|l| l.len).sum();
    let _ = writeln!(t, "\npower cut at the end: {} acknowledged writes lost, {}", lost.len(), Bytes(bytes));
    for l in lost.iter().take(10) {
        let _ = writeln!(t, "  write {}: {} bytes at {}", l.write, l.len, l.at);
    }
    if lost.len() > 10 {
        let _ = writeln!(t, "  ... and {} more", lost.len() - 10);
    }
}

/// A row of the time line: ns from the start of the run, seconds it lasts, and what happened in it.
struct Row {
    from: u64,
    seconds: f64,
    sum: Stretch,
}

/// The time line in at most `most` rows of, on average, `requests` requests or more. A last row that is much shorter than the
/// others is taken together with the one before, because its rate would mean nothing.
fn rows(o: &Outcome, most: usize, requests: u64) -> Vec<Row> {
    let n = o.timeline.len();
    let each = n.div_ceil(most).max((requests * n as u64).div_ceil(o.served.max(1)) as usize).max(1);
    let width = o.stretch * each as u64;
    let mut starts: Vec<usize> = (0..n).step_by(each).collect();
    if starts.len() > 1 && (o.took % width) * 2 < width {
        starts.pop();
    }
    let ends = starts.iter().skip(1).copied().chain([n]);
    let row = |(from, to): (&usize, usize)| {
        let begin = *from as u64 * o.stretch;
        let end = if to == n { o.took } else { to as u64 * o.stretch };
        let sum = o.timeline[*from..to].iter().fold(Stretch::default(), |a, b| Stretch {
            requests: a.requests + b.requests,
            bytes: a.bytes + b.bytes,
            worst: a.worst.max(b.worst),
        });
        Row { from: begin, seconds: end.saturating_sub(begin).max(1) as f64 / 1e9, sum }
    };
    starts.iter().zip(ends).map(row).collect()
}

/// Throughput and worst latency over time: two plots and a table.
fn timeline(t: &mut String, o: &Outcome, width: usize) {
    if o.took == 0 {
        return;
    }
    let dots = rows(o, 2 * width.min(100), 4);
    let at = |r: &Row| r.from as f64 / 1e9;
    let rate: Vec<(f64, f64)> = dots.iter().map(|r| (at(r), r.sum.bytes as f64 / 1e6 / r.seconds)).collect();
    let worst: Vec<(f64, f64)> = dots.iter().filter(|r| r.sum.requests > 0).map(|r| (at(r), r.sum.worst as f64 / 1e6)).collect();
    // A card that rewrites an erase block for each sector writes a few kB a second.
    let slow = rate.iter().all(|r| r.1 < 1.0);
    let (unit, rate) = if slow { ("kB/s", rate.into_iter().map(|r| (r.0, r.1 * 1e3)).collect()) } else { ("MB/s", rate) };
    for (title, y, points) in [("throughput over time", unit, rate), ("worst latency over time", "ms", worst)] {
        let most = points.iter().map(|p| p.1).fold(0.0, f64::max);
        let least = points.iter().map(|p| p.1).filter(|&y| y > 0.0).fold(f64::INFINITY, f64::min);
        let f = Figure {
            title: title.into(),
            x: "seconds".into(),
            y: y.into(),
            log_x: false,
            log_y: y == "ms" && most > 20.0 * least,
            series: vec![Series { name: y.into(), points }],
        };
        let plot = braille(&f, width.min(100), HEIGHT);
        if !plot.is_empty() {
            t.push('\n');
            plot.iter().for_each(|line| {
                let _ = writeln!(t, "{}", line.trim_end());
            });
        }
    }
    // The rate in requests goes first where there is no room: it follows from the others.
    let each = width >= 62;
    let head = if each { format!("{:>14}", "requests/s") } else { String::new() };
    let least = if each { 12 } else { 10 };
    let _ = writeln!(t, "\n{:>least$}{:>least$}{head}{:>least$}{:>least$}", "from", "requests", "rate", "longest");
    for r in rows(o, ROWS, 1) {
        let longest = if r.sum.requests == 0 { "-".to_string() } else { Nanos(r.sum.worst).to_string() };
        let _ = writeln!(
            t,
            "{:>least$}{:>least$}{}{:>least$}{:>least$}",
            Nanos(r.from).to_string(),
            r.sum.requests,
            if each { format!("{:>14}", three(r.sum.requests as f64 / r.seconds)) } else { String::new() },
            crate::units::rate(r.sum.bytes as f64 / r.seconds),
            longest
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscope_sim::run::{How, Pattern, run};
    use nandscope_sim::{Card, Model, cards};

    #[test]
    fn rows_hold_every_request_once() {
        let model = Model::parse(cards::text("modern-a1-32gb").unwrap_or_default(), "x").expect("a card of the crate");
        for n in [1, 2, 17, 400, 5000] {
            let ios = Pattern::parse("random-4k").expect("a pattern").ios(1 << 30, n, 1);
            let o = run(&mut Card::new(&model, 1), 0, ios, &How::default()).expect("served");
            for (most, least) in [(16, 1), (160, 4)] {
                let all = rows(&o, most, least);
                assert!(all.len() <= most && all.iter().map(|r| r.sum.requests).sum::<u64>() == n, "{n}: {}", all.len());
                let seconds: f64 = all.iter().map(|r| r.seconds).sum();
                assert!((seconds - o.took as f64 / 1e9).abs() < 1e-6, "{n}: {seconds}");
            }
        }
    }
}

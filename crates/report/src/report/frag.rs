//! What the fragmentation lab found: text, columns for gnuplot, figures.

use super::plot::bar;
use crate::infer::figure::{Figure, Series};
use crate::lab::answer::{self, Effect, Verdict, What};
use crate::lab::class::Class;
use crate::lab::expect::{self, Claim};
use crate::lab::experiment::{Lab, State};
use crate::lab::fragment::{Fragmentation, Map};
use crate::units::{Bytes, three};
use std::fmt::Write;

/// The whole report for a terminal or a mail. `profiles` are asked about in the end.
pub fn text(lab: &Lab, profiles: &[answer::Profile], width: usize) -> String {
    let mut o = String::new();
    let _ = writeln!(o, "{}, {} ({}), clusters of {}", lab.target, lab.filesystem, lab.label, cluster(lab));
    if !lab.setup.card.is_empty() {
        let slot = lab.setup.slot.as_ref().map_or(String::new(), |s| format!(" ({s})"));
        let _ =
            writeln!(o, "set-up: card {}{slot}; host {}; calls of {}", lab.setup.card, lab.setup.host, Bytes(lab.settings.workload.chunk));
    }
    for c in &lab.conditions {
        let _ = writeln!(o, "\n{}: {}", c.state, fragmentation(&c.fragmentation));
        if let Some(d) = &c.defragmented {
            let _ = writeln!(o, "  the defragmenter moved {} and took {:.0} s of the target's time", Bytes(d.bytes_moved), c.prepared);
        }
        o += &map(&c.map, width.min(100).saturating_sub(4));
        for n in &c.measured.notes {
            let _ = writeln!(o, "  note: {n}");
        }
    }
    for what in What::FILES {
        o += &chart(lab, what, width);
    }
    o += &folder(lab);
    if let Some(c) = &lab.class {
        o += &class(lab, c);
    }
    o += &answer_text(lab);
    for line in checks(lab) {
        let _ = writeln!(o, "{line}");
    }
    o += &advice(lab, profiles);
    for n in &lab.notes {
        let _ = writeln!(o, "note: {n}");
    }
    o
}

fn cluster(lab: &Lab) -> Bytes {
    Bytes(lab.conditions.first().map_or(0, |c| c.space.cluster))
}

/// One line: what a defragmenter's report says (P3).
pub fn fragmentation(f: &Fragmentation) -> String {
    if f.files == 0 {
        return format!("no files{}", free(f));
    }
    format!(
        "{} files, {:.0} % of them fragmented, {} pieces a file on average, {} at most{}",
        f.files,
        100.0 * f.fragmented_share(),
        three(f.extents_per_file()),
        f.most,
        free(f)
    )
}

fn free(f: &Fragmentation) -> String {
    f.free.map_or("; where the free space lies this filesystem does not say".into(), |s| {
        format!("; {} free in {} pieces, the largest {}", mib(s.bytes), s.extents, mib(s.largest))
    })
}

fn mib(b: u64) -> String {
    if b >= 1 << 20 { format!("{:.1} MiB", b as f64 / 1048576.0) } else { Bytes(b).to_string() }
}

/// The volume over its AUs: how full, and in how many pieces.
pub fn map(m: &Map, width: usize) -> String {
    let rows = 4;
    let m = m.joined(width.max(20) * rows);
    // A whole AU in one file is one piece.
    let shade = |used: f64| match used {
        u if u <= 0.005 => '.',
        u if u < 0.25 => '░',
        u if u < 0.6 => '▒',
        u if u < 0.95 => '▓',
        _ => '█',
    };
    let level = |pieces: u32| match pieces {
        0 | 1 => ' ',
        2..=3 => '·',
        4..=15 => '-',
        16..=63 => '+',
        _ => '#',
    };
    let mut o = format!(
        "  each character is {} of the volume; in use: . none ░ ▒ ▓ █ all; below it its pieces: · 2+ - 4+ + 16+ # 64+\n",
        mib(m.au)
    );
    for row in m.cells.chunks(width.max(20)) {
        let _ = writeln!(o, "  {}", row.iter().map(|c| shade(c.used)).collect::<String>());
        let pieces: String = row.iter().map(|c| level(c.pieces)).collect();
        if !pieces.trim_end().is_empty() {
            let _ = writeln!(o, "  {}", pieces.trim_end());
        }
    }
    o
}

/// A chart of bars on a log scale, one bar a state (P7).
fn chart(lab: &Lab, what: What, width: usize) -> String {
    let sizes = answer::sizes(lab);
    let all: Vec<_> =
        sizes.iter().map(|&s| (s, lab.conditions.iter().filter_map(|c| answer::rate(c, what, s)).collect::<Vec<_>>())).collect();
    let rates: Vec<f64> = all.iter().flat_map(|(_, r)| r.iter().map(|r| r.per_minute)).collect();
    if rates.is_empty() {
        return String::new();
    }
    let low = rates.iter().copied().fold(f64::INFINITY, f64::min);
    let high = rates.iter().copied().fold(0.0, f64::max);
    // From the decade below the slowest.
    let (a, b) = (low.log10().floor(), high.log10().max(low.log10().floor() + 1.0));
    let room = width.saturating_sub(48).clamp(16, 60);
    let mut o = format!("\n{}: operations per minute, log scale from {} on\n", what.name(), three(10f64.powf(a)));
    for (size, rates) in all {
        for (i, r) in rates.iter().enumerate() {
            let head = if i == 0 { Bytes(size).to_string() } else { String::new() };
            let drawn = bar((r.per_minute.log10() - a) / (b - a), room);
            let spread = (r.interval[1] - r.interval[0]) / 2.0 / r.per_minute;
            let spread = if spread >= 0.005 { format!(" ± {:.0} %", 100.0 * spread) } else { String::new() };
            let _ = writeln!(o, "{head:>8}  {:<13}{drawn:<room$} {}{spread}", r.state.name(), three(r.per_minute));
        }
    }
    o
}

fn folder(lab: &Lab) -> String {
    let mut o = String::new();
    for c in &lab.conditions {
        if let Some(r) = answer::rate(c, What::Folder, 0) {
            let [lo, hi] = r.interval;
            if o.is_empty() {
                o += "\ncopy of a folder of small files\n";
            }
            let _ = writeln!(
                o,
                "          {:<13}{} s ({} to {})",
                c.state.name(),
                three(60.0 / r.per_minute),
                three(60.0 / hi),
                three(60.0 / lo)
            );
        }
    }
    o
}

fn class(lab: &Lab, c: &Class) -> String {
    let mut o = format!(
        "\nthe specification's test, AU {}, RU {}: Pw {} MB/s, Pm {}, Pr {} MB/s, TFR {} ms, TFW {} ms (longest {} ms)\n",
        Bytes(c.au),
        Bytes(c.ru),
        three(c.pw),
        c.pm.map_or("not needed".into(), |p| format!("{} MB/s", three(p))),
        three(c.pr),
        three(c.tfr),
        three(c.tfw_mean),
        three(c.tfw_max)
    );
    for (used, measured, formula) in &c.used {
        let error = 100.0 * (formula / measured - 1.0);
        let _ = writeln!(
            o,
            "  {:>3.0} % of the RUs in use: {} MB/s, by P(Nu) {} MB/s ({error:+.0} %)",
            100.0 * used,
            three(*measured),
            three(*formula)
        );
    }
    o += &read_erase_write(c);
    for p in answer::predictions(lab, c) {
        let error = |by: f64| format!("{} s ({:+.0} %)", three(by), 100.0 * (by / p.measured - 1.0));
        let _ = writeln!(
            o,
            "  {} written on the {} volume: measured {} s; predicted by P(Nu) and TFW {}{}",
            Bytes(p.size),
            p.state,
            three(p.measured),
            error(p.formula),
            p.pieces.map_or(String::new(), |t| format!(", by single writes {}", error(t)))
        );
    }
    o
}

/// What was to be expected, held against what was found: where the effect begins, why there is none, what runs against it.
pub fn checks(lab: &Lab) -> Vec<String> {
    let mut out = vec![];
    if let Some(h) = expect::hidden(lab) {
        out.push(format!(
            "why no effect: {:.0} % of the files are in pieces, but no piece is shorter than a cluster of {}, and a call moves {}: being in \
             pieces adds no command. Smaller clusters show what it costs: --cluster 1KiB; with the memory of the PDA of 2002, too: --host pda",
            100.0 * h.share,
            Bytes(h.cluster),
            Bytes(h.chunk)
        ));
    }
    let small = answer::sizes(lab).into_iter().filter(|&s| s <= cluster(lab).0).max();
    for what in [What::Write, What::Read] {
        let Some(x) = expect::onset(lab, what) else { continue };
        let found = match x.small {
            Some(true) => "none found",
            Some(false) => "but one was found: an anomaly",
            None => "not decided",
        };
        if let Some(s) = small {
            out.push(format!(
                "check, {}: no effect expected up to one cluster ({}, measured at {}): {found}",
                what.name(),
                cluster(lab),
                Bytes(s)
            ));
        }
        let begins = match (x.none, x.from, x.saturated) {
            (_, None, _) => continue,
            (Some(a), Some(b), s) => (format!("between {} and {}", Bytes(a), Bytes(b)), s),
            (None, Some(b), s) => (format!("at {} or below", Bytes(b)), s),
        };
        let flat = match begins.1 {
            Some(s) if Some(s) != answer::sizes(lab).last().copied() => format!(", and is the same from {} on", Bytes(s)),
            _ => String::new(),
        };
        out.push(format!("check, {}: the effect begins {}{flat}", what.name(), begins.0));
    }
    for a in expect::anomalies(lab) {
        let e = &a.effect;
        let size = if e.what == What::Folder { String::new() } else { format!(" {}", Bytes(e.size)) };
        let verdict = if a.sure {
            "more than noise".to_string()
        } else {
            format!("may be noise: with {} comparisons one like this can come by chance; more --repeats decide it", a.of)
        };
        out.push(format!(
            "anomaly: {}{size} is {} {} than {} (probability by chance {}, {verdict})",
            e.what.name(),
            times(e),
            e.state,
            e.against,
            three(a.chance)
        ));
    }
    if !out.is_empty() {
        out.insert(0, String::new());
    }
    out
}

/// The answer to a claim that something is so many times slower in pieces.
pub fn claim(lab: &Lab, times: f64) -> String {
    let most = expect::worst(lab).filter(|e| e.ratio < 1.0).map_or("nothing is slower".to_string(), |e| {
        let size = if e.what == What::Folder { String::new() } else { format!(" {}", Bytes(e.size)) };
        format!("the most is {}, {}{size}", self::times(&e), e.what.name())
    });
    let text = match expect::claimed(lab, times) {
        Claim::Holds => format!("holds on this card: {most}"),
        Claim::Fails => format!("does not hold on this card with this set-up: {most}"),
        Claim::Undecided if expect::pair(lab).is_none() => "undecided: it needs the states fragmented and defragmented".into(),
        Claim::Undecided => format!("undecided: {most}; more --repeats decide it"),
    };
    format!("claim, {} times slower fragmented than defragmented: {text}", three(times))
}

/// T = R + E + W, as measured.
fn read_erase_write(c: &Class) -> String {
    let Some(r) = expect::read_erase_write(c) else {
        return "  T = R + E + W (a write first reads and erases what is there): undecided, because without discards W, a write to erased flash, \
                was not measured\n"
            .into();
    };
    let (first, last) = (&r.writes[0], &r.writes[r.writes.len() - 1]);
    let head = format!(
        "  T = R + E + W (a write first reads and erases what is there): {} to {} take {} to {} ms on used flash, {} to {} ms on erased",
        Bytes(first.0),
        Bytes(last.0),
        three(first.1),
        three(last.1),
        three(first.2),
        three(last.2)
    );
    let rest = format!("R + E is {} to {} ms", three(r.rest[0].max(0.0)), three(r.rest[1].max(0.0)));
    match r.verdict {
        Claim::Holds => format!("{head}: holds, {rest} whatever the length\n"),
        Claim::Fails if r.rest[1] * 10.0 <= last.2 => format!("{head}: does not hold, used flash is written as fast as erased\n"),
        Claim::Fails => format!("{head}: does not hold\n"),
        Claim::Undecided => format!("{head}: undecided, {rest}, and W varies no more than that\n"),
    }
}

fn times(e: &Effect) -> String {
    let slower = e.ratio < 1.0;
    let (r, lo, hi) =
        if slower { (1.0 / e.ratio, 1.0 / e.interval[1], 1.0 / e.interval[0]) } else { (e.ratio, e.interval[0], e.interval[1]) };
    let word = if slower { "slower" } else { "faster" };
    let spread = if (hi - lo) / r > 0.01 { format!(" ({} to {})", three(lo), three(hi)) } else { String::new() };
    format!("{} times {word}{spread}", three(r))
}

/// Two states and one kind of operation: names, and the effect at each size in words.
pub struct Answer {
    pub states: [State; 2],
    pub what: What,
    pub sizes: String,
}

/// What differs between each two states, in the order of the states.
pub fn answers(lab: &Lab) -> Vec<Answer> {
    let effects = answer::effects(lab);
    let mut out = vec![];
    for (i, a) in lab.conditions.iter().enumerate() {
        for b in &lab.conditions[i + 1..] {
            for what in What::FILES.into_iter().chain([What::Folder]) {
                let here = effects.iter().filter(|e| e.what == what && e.state == a.state && e.against == b.state);
                let parts: Vec<String> = here
                    .map(|e| {
                        let size = if what == What::Folder { String::new() } else { format!("{} ", Bytes(e.size)) };
                        match e.verdict {
                            Verdict::NoEffect => format!("{size}no effect"),
                            Verdict::Undecided => {
                                format!("{size}undecided, {} to {} times the rate", three(e.interval[0]), three(e.interval[1]))
                            }
                            _ => format!("{size}{}", times(e)),
                        }
                    })
                    .collect();
                if !parts.is_empty() {
                    out.push(Answer { states: [a.state, b.state], what, sizes: parts.join("; ") });
                }
            }
        }
    }
    out
}

fn answer_text(lab: &Lab) -> String {
    let mut o = String::new();
    let mut last = None;
    for a in answers(lab) {
        if last != Some(a.states) {
            let _ = writeln!(o, "\n{} against {}:", a.states[0], a.states[1]);
            last = Some(a.states);
        }
        let _ = writeln!(o, "  {}: {}", a.what.name(), a.sizes);
    }
    o
}

/// For each profile, by name, whether defragmenting is worth the trouble (P13).
pub fn uses(lab: &Lab, profiles: &[answer::Profile]) -> Vec<(String, String)> {
    let find = |s: State| lab.conditions.iter().find(|c| c.state == s);
    let Some(a) = find(State::Fragmented).or_else(|| find(State::AsIs)) else { return vec![] };
    let Some(b) = find(State::Defragmented).or_else(|| find(State::Blank)) else { return vec![] };
    let mut out = vec![];
    for p in profiles {
        let Some(g) = answer::gain(lab, a, b, p) else { continue };
        let [lo, hi] = g.interval;
        let verdict = match g.times {
            // What the rounds leave open is not advised.
            t if (t >= 1.1 && lo <= 1.0) || (t <= 0.9 && hi >= 1.0) || (t > 0.9 && t < 1.1 && (lo < 0.67 || hi > 1.5)) => {
                format!("undecided, {} to {} times the time {}: repeat with more rounds", three(lo), three(hi), a.state)
            }
            t if t >= 1.5 => format!("{} times faster {}: keep the volume defragmented, or format it now and then", three(t), b.state),
            t if t >= 1.1 => format!("{} times faster {}: worth it only if waiting hurts", three(t), b.state),
            t if t > 0.9 => format!("as fast {} as {}: do not defragment, it only wears the flash", b.state, a.state),
            t => format!("{} times slower {}: do not defragment", three(1.0 / t), b.state),
        };
        let outside =
            if g.outside > 0.0 { format!(" ({:.0} % of its sizes lie outside those measured)", 100.0 * g.outside) } else { String::new() };
        out.push((p.name.clone(), verdict + &outside));
    }
    out
}

fn advice(lab: &Lab, profiles: &[answer::Profile]) -> String {
    let all = uses(lab, profiles);
    let mut o = String::new();
    if !all.is_empty() {
        o += "\nwhat it means for a use (times of one operation between the sizes measured)\n";
    }
    for (name, verdict) in all {
        let _ = writeln!(o, "  {name:<16}{verdict}");
    }
    o
}

/// The three charts as figures: file size in bytes, operations per minute, both log (P7).
pub fn figures(lab: &Lab) -> Vec<Figure> {
    let sizes = answer::sizes(lab);
    let series = |what: What| {
        lab.conditions
            .iter()
            .map(|c| Series {
                name: c.state.name().into(),
                points: sizes.iter().filter_map(|&s| Some((s as f64, answer::rate(c, what, s)?.per_minute))).collect(),
            })
            .collect()
    };
    What::FILES
        .into_iter()
        .map(|w| Figure {
            title: format!("{}: operations per minute ({}, {})", w.name(), lab.target, lab.label),
            x: "file size".into(),
            y: "operations per minute".into(),
            log_x: true,
            log_y: true,
            series: series(w),
        })
        .collect()
}

/// Columns for gnuplot: one block an operation, a line a size; for each state the rate and its interval.
pub fn columns(lab: &Lab) -> String {
    let mut o = String::from(
        "# nandscope frag: operations per minute; plot with: set logscale xy; plot 'FILE' index 0 using 1:2 with linespoints\n",
    );
    for what in What::FILES {
        let names: Vec<String> = lab.conditions.iter().map(|c| format!("{0} {0}_low {0}_high", c.state.name().replace(' ', "_"))).collect();
        let _ = writeln!(o, "# {}\n# size {}", what.name(), names.join(" "));
        for s in answer::sizes(lab) {
            let cells: Vec<String> = lab
                .conditions
                .iter()
                .map(|c| {
                    answer::rate(c, what, s)
                        .map_or("- - -".into(), |r| format!("{:.4} {:.4} {:.4}", r.per_minute, r.interval[0], r.interval[1]))
                })
                .collect();
            let _ = writeln!(o, "{s} {}", cells.join(" "));
        }
        o += "\n\n";
    }
    o
}

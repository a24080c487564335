//! What the fragmentation lab found: text, columns for gnuplot, figures.

use super::plot::bar;
use super::terminal::wrapped;
use crate::advise::frag::{answers, checks, cluster, read_erase_write, uses};
use crate::infer::figure::{Figure, Series};
use crate::lab::answer::{self, What};
use crate::lab::class::Class;
use crate::lab::experiment::Lab;
use crate::lab::fragment::{Fragmentation, Map};
use crate::units::{Bytes, GIB, MIB, about, three};
use std::fmt::Write;

/// The whole report for a terminal or a mail, the answer first: what it means for the `profiles`.
pub fn text(lab: &Lab, profiles: &[answer::Profile], width: usize) -> String {
    let mut o = String::new();
    let _ = writeln!(o, "{}, {} ({}), clusters of {}", lab.target, lab.filesystem, lab.label, cluster(lab));
    if !lab.setup.card.is_empty() {
        let slot = lab.setup.slot.as_ref().map_or(String::new(), |s| format!(" ({s})"));
        let _ =
            writeln!(o, "set-up: card {}{slot}; host {}; calls of {}", lab.setup.card, lab.setup.host, Bytes(lab.settings.workload.chunk));
    }
    o += &advice(lab, profiles, width);
    o += &answer_text(lab);
    for c in &lab.conditions {
        let _ = writeln!(o, "\n{}: {}", c.state, fragmentation(&c.fragmentation));
        if let Some(d) = &c.defragmented {
            let _ = writeln!(o, "  the defragmenter moved {} and took {:.0} s of the target's time", about(d.bytes_moved), c.prepared);
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
    for line in checks(lab) {
        let _ = writeln!(o, "{line}");
    }
    for n in &lab.notes {
        let _ = writeln!(o, "note: {n}");
    }
    o
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
    f.free.map_or("; where the free space lies this filesystem does not say".into(), |s| match s.extents {
        1 => format!("; {} free in one piece", mib(s.bytes)),
        n => format!("; {} free in {n} pieces, the largest {}", mib(s.bytes), mib(s.largest)),
    })
}

fn mib(b: u64) -> String {
    match b {
        _ if b >= GIB => format!("{:.1} GiB", b as f64 / GIB as f64),
        _ if b >= MIB => format!("{:.1} MiB", b as f64 / MIB as f64),
        _ => Bytes(b).to_string(),
    }
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
            let spread = match spread {
                // Such an interval lies to one side: below nothing there is no rate.
                s if s > 1.0 || r.interval[1] > 2.0 * r.per_minute => {
                    format!(" ({} to {})", three(r.interval[0]), three(r.interval[1]))
                }
                s if s >= 0.005 => format!(" ± {:.0} %", 100.0 * s),
                _ => String::new(),
            };
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

fn answer_text(lab: &Lab) -> String {
    let mut o = String::new();
    let mut last = None;
    for a in answers(lab) {
        if last != Some(a.states) {
            let _ = writeln!(o, "\n{} against {} (less than {:.0} % is no effect):", a.states[0], a.states[1], 100.0 * answer::MATTERS);
            last = Some(a.states);
        }
        let _ = writeln!(o, "  {}: {}", a.what.name(), a.sizes);
    }
    o
}

fn advice(lab: &Lab, profiles: &[answer::Profile], width: usize) -> String {
    let all = uses(lab, profiles);
    let mut o = String::new();
    if !all.is_empty() {
        o += "\nwhat it means for a use (times of one operation between the sizes measured)\n";
    }
    for (name, verdict) in all {
        wrapped(&mut o, &format!("  {name:<18}"), &verdict, width);
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

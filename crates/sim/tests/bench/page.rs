//! The page of all cards, in Markdown: what each is, where its figures come from, and its published tables beside the
//! simulated ones.

use super::*;
use nandscope_sim::units::show_size;
use nandscope_sim::{Mapping, Model, Truth, cards};
use std::fmt::Write;

const HEAD: &str = "\
# Cards

The @ simulated cards of the program: what each is, where each figure comes from (letters: METHODS.md), and its published tables
beside those of the simulated card, measured in the way the tables were made. Cells read *published / simulated*. What is called *fitted* was chosen so that the tables agree;
what is called *typical* or *assumed* is published nowhere.
";

pub fn page() -> String {
    let mut t = HEAD.replace('@', &cards::ALL.len().to_string());
    t.push_str("\n| card | what it is |\n|---|---|\n");
    let models: Vec<Model> = cards::ALL.iter().map(|(name, text)| Model::parse(text, name).unwrap_or_else(|e| panic!("{e}"))).collect();
    for m in &models {
        let _ = writeln!(t, "| [{0}](#{0}) | {1} |", m.name, m.about);
    }
    for (m, (name, text)) in models.iter().zip(cards::ALL) {
        let _ = writeln!(t, "\n## {name}\n");
        // The head of the file: source, truth in words, what was fitted.
        for line in text.lines().take_while(|l| l.starts_with('#')) {
            let _ = writeln!(t, "{}", line.trim_start_matches('#').trim());
        }
        truth(&mut t, &m.truth());
        figures(&mut t, text);
        align(&mut t, name);
        open(&mut t, name);
        if m.host.buffer > 0 {
            t.push_str("\nIts records and rates, published beside simulated: [records.md](records.md).\n");
        }
    }
    t.push_str("\nMade by `cargo run -p nandscope-sim --example card_tables > docs/cards.md`; a test fails when it is behind.\n");
    t
}

fn truth(t: &mut String, of: &Truth) {
    let size = |x: u64| if x == 0 { "none".to_string() } else { show_size(x) };
    let count = |n: Option<u32>| n.map_or("no limit".to_string(), |n| n.to_string());
    let mapping = match of.mapping {
        Mapping::None => "none",
        Mapping::Block => "block",
        Mapping::Log => "log blocks",
        Mapping::Page => "page",
        Mapping::WriteThrough => "write-through",
    };
    t.push_str(
        "\n| erase block | offset | multi-plane page | page | write unit | open AUs sequential / random | merge | FAT zone | mapping |\n",
    );
    t.push_str("|---|---|---|---|---|---|---|---|---|\n");
    let _ = writeln!(
        t,
        "| {} | {} | {} | {} | {} | {} / {} | {} | {} | {mapping} |",
        size(of.erase_block),
        show_size(of.erase_block_offset),
        size(of.access_unit),
        size(of.page),
        size(of.write_unit),
        count(of.open_aus_linear),
        count(of.open_aus_random),
        of.close_cost_ns.map_or("-".to_string(), |ns| format!("{:.1} ms", ns as f64 / 1e6)),
        size(of.fat_zone),
    );
}

/// Where a table was published, by the requirement that holds it.
fn published(source: &str) -> &'static str {
    if source.starts_with('F') { "README, -O tables" } else { "MMC thread" }
}

/// The figures whose source or fit the file names.
fn figures(t: &mut String, text: &str) {
    let mut section = "";
    let mut rows = String::new();
    for line in text.lines().filter(|l| !l.starts_with('#')) {
        if let Some(name) = line.strip_prefix('[') {
            section = name.trim_end_matches(']').trim_start_matches('[').trim_end_matches(']');
        }
        if let Some((set, why)) = line.split_once(" # ")
            && let Some((key, value)) = set.split_once('=')
        {
            let dot = if section.is_empty() { "" } else { "." };
            let _ = writeln!(rows, "| `{section}{dot}{}` | {} | {} |", key.trim(), value.trim().trim_matches('"'), why.trim());
        }
    }
    if !rows.is_empty() {
        let _ = write!(t, "\n| figure | value | source |\n|---|---|---|\n{rows}");
    }
}

/// Alignment tables, in us.
fn align(t: &mut String, name: &str) {
    if name == "flashbench-readme" {
        let mut b = Bench::new(name);
        let stride = b.stride(1024);
        t.push_str("\nReads of 1 KiB, us (README, -a table):\n\n| align | pre | on | post | diff |\n|---|---|---|---|---|\n");
        for (align, p) in F4 {
            let f = b.align(align, stride, 1024);
            let cell = |i: usize| format!("{} / {:.1}", p[i], f[i]);
            let _ = writeln!(t, "| {} | {} | {} | {} | {} |", show_size(align), cell(0), cell(1), cell(2), cell(3));
        }
    }
    if name == "patriot-16gb" {
        let mut b = Bench::new(name);
        t.push_str("\nReads of 1 KiB, us:\n\n| align | diff |\n|---|---|\n");
        for (align, p) in PATRIOT {
            let _ = writeln!(t, "| {} | {p} / {:.1} |", show_size(align), b.align(align, 1536 * MIB, 1024)[3]);
        }
    }
}

/// Open-AU tables, in MB/s.
fn open(t: &mut String, name: &str) {
    let rate = |row: &(u64, f64)| row.0 as f64 / row.1 / 1000.0;
    for (_, source, n, rates) in OPEN.iter().filter(|t| t.0 == name) {
        let least = rates.last().map_or(MIB, |r| r.0);
        let rows = Bench::new(name).open_au(*n, 4 * MIB, least, false);
        let _ =
            writeln!(t, "\n{n} AUs interleaved, sequential, MB/s ({}):\n\n| block | rate | ms a block |\n|---|---|---|", published(source));
        for p in rates.iter() {
            let Some(f) = rows.iter().find(|f| f.0 == p.0) else { continue };
            let _ = writeln!(t, "| {} | {} / {:.3} | {:.2} / {:.2} |", show_size(p.0), p.1, rate(f), ms(p), f.1);
        }
    }
    for (_, rates) in OLPC.iter().filter(|t| t.0 == name) {
        t.push_str("\n2 AUs interleaved, random order, MB/s:\n\n| block | rate | ms a block |\n|---|---|---|\n");
        for (f, p) in Bench::new(name).open_au(2, 4 * MIB, 4 * KIB, true).iter().zip(rates).filter(|(_, p)| **p > 0.0) {
            let _ = writeln!(t, "| {} | {p} / {:.3} | {:.2} / {:.2} |", show_size(f.0), rate(f), ms(&(f.0, *p)), f.1);
        }
    }
}

//! Prints, in Markdown, what each card of the crate is and its published tables beside the simulated ones:
//! `cargo run -p nandscope-sim --example card_tables`

#[path = "../tests/bench/mod.rs"]
mod bench;

use bench::*;
use nandscope_sim::units::{show_size, show_time};
use nandscope_sim::{Model, Truth, cards};

fn main() {
    println!("# Cards\n\nEach card, its truth, and its published tables beside the simulated ones (published / simulated).\n");
    for (name, text) in cards::ALL {
        let model = Model::parse(text, name).unwrap_or_else(|e| panic!("{e}"));
        println!("## {name}\n\n{}\n", model.about);
        truth(&model.truth());
        align(name);
        open(name);
    }
}

fn truth(t: &Truth) {
    let size = |x: u64| if x == 0 { "none".to_string() } else { show_size(x) };
    let count = |n: Option<u32>| n.map_or("no limit".to_string(), |n| n.to_string());
    println!("| erase block | offset | access unit | page | write unit | open AUs linear / random | closing one | FAT zone | mapping |");
    println!("|---|---|---|---|---|---|---|---|---|");
    println!(
        "| {} | {} | {} | {} | {} | {} / {} | {} | {} | {:?} |\n",
        size(t.erase_block),
        show_size(t.erase_block_offset),
        size(t.access_unit),
        size(t.page),
        size(t.write_unit),
        count(t.open_aus_linear),
        count(t.open_aus_random),
        t.close_cost_ns.map_or("-".to_string(), show_time),
        size(t.fat_zone),
        t.mapping,
    );
}

/// Alignment tables, in us.
fn align(name: &str) {
    if name == "flashbench-readme" {
        let mut b = Bench::new(name);
        let stride = b.stride(1024);
        println!("Reads of 1 KiB, us (F4):\n\n| align | pre | on | post | diff |\n|---|---|---|---|---|");
        for (align, p) in F4 {
            let f = b.align(align, stride, 1024);
            let cell = |i: usize| format!("{} / {:.1}", p[i], f[i]);
            println!("| {} | {} | {} | {} | {} |", show_size(align), cell(0), cell(1), cell(2), cell(3));
        }
        println!();
    }
    if name == "patriot-16gb" {
        let mut b = Bench::new(name);
        println!("Reads of 1 KiB, us:\n\n| align | diff |\n|---|---|");
        for (align, p) in PATRIOT {
            println!("| {} | {p} / {:.1} |", show_size(align), b.align(align, 1536 * MIB, 1024)[3]);
        }
        println!();
    }
}

/// Open-AU tables, in MB/s.
fn open(name: &str) {
    let rate = |row: &(u64, f64)| row.0 as f64 / row.1 / 1000.0;
    for (_, source, n, rates) in OPEN.iter().filter(|t| t.0 == name) {
        let least = rates.last().map_or(MIB, |r| r.0);
        let rows = Bench::new(name).open_au(*n, 4 * MIB, least, false);
        println!("{n} AUs in turn, linear, MB/s ({source}):\n\n| block | rate | ms a block |\n|---|---|---|");
        for (p, f) in rates.iter().zip(&rows) {
            println!("| {} | {} / {:.3} | {:.2} / {:.2} |", show_size(p.0), p.1, rate(f), ms(p), f.1);
        }
        println!();
    }
    for (_, rates) in OLPC.iter().filter(|t| t.0 == name) {
        println!("2 AUs in turn, random order, MB/s:\n\n| block | rate | ms a block |\n|---|---|---|");
        for (f, p) in Bench::new(name).open_au(2, 4 * MIB, 4 * KIB, true).iter().zip(rates).filter(|(_, p)| **p > 0.0) {
            println!("| {} | {p} / {:.3} | {:.2} / {:.2} |", show_size(f.0), rate(f), ms(&(f.0, *p)), f.1);
        }
        println!();
    }
}

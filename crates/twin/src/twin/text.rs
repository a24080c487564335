//! The twin as a card model with comments: what is fitted, and what is assumed.

use super::result::Twin;
use crate::units::between;
use nandscope_sim::Event;
use std::fmt::Write;

/// The key of a card model that holds the cost of an event.
fn key(e: Event) -> &'static str {
    match e {
        Event::Command => "host.command",
        Event::Split => "host.split",
        Event::Wire => "host.rate",
        Event::After => "card.accept",
        Event::Sense => "nand.sense",
        Event::NextPage => "nand.next_page",
        Event::Lookup => "nand.lookup",
        Event::Flat => "nand.unwritten_read",
        Event::Program => "nand.program",
        Event::Load => "nand.load_rate",
        Event::Rest => "nand.rest_rate",
        Event::Commit => "nand.commit",
        Event::Change => "nand.change",
        Event::Stream => "card.stream_cost",
        Event::StreamByte => "card.stream_rate",
        Event::Copy => "nand.copy",
        Event::Erase => "nand.erase",
        Event::Close => "ftl.close",
        Event::CloseRandom => "ftl.close_random",
        Event::MapMiss => "ftl.map_miss",
        Event::MapSave => "ftl.map_save",
        Event::SlcProgram => "slc.program",
        Event::Discard => "card.discard",
        Event::Flush => "card.flush",
        Event::Late | Event::Heat | Event::Stall | Event::Noise | Event::Rounding => "",
    }
}

/// The keys that hold a part of the structure.
fn parts(name: &str) -> &'static [&'static str] {
    match name {
        "page" => &["nand.page"],
        "multi-plane page" => &["nand.access_unit"],
        "write unit" => &["nand.write_unit"],
        "erase block" => &["nand.erase_block"],
        "alignment offset" => &["nand.erase_block_offset"],
        "mapping" => &["ftl.kind"],
        "open AUs, sequential" => &["ftl.open_linear"],
        "open AUs, random" => &["ftl.open_random"],
        "evicts" => &["ftl.evict"],
        "FAT zone" => &["ftl.fat_zone"],
        "a merge copies" => &["ftl.copies"],
        "a log begins with" => &["ftl.begins_full"],
        "a log that is used up" => &["ftl.full_closes"],
        "a write at the start" => &["ftl.restarts"],
        "writes further on" => &["ftl.skips", "ftl.fills"],
        "cuts requests at" => &["host.max_request"],
        "reads ahead" => &["card.read_ahead"],
        "SLC cache" => &["slc.size"],
        "work left undone" => &["card.behind"],
        "streams at the full rate" => &["card.streams", "card.stream_memory", "card.stream_table"],
        "small writes in sequence" => &["card.combine", "card.combine_streams", "card.combine_starts"],
        "after each write" => &["host.flushes"],
        "data of writes" => &["card.overlap"],
        "write cache" => &["card.cache"],
        "wear levelling moves a block" => &["wear.static_every"],
        _ => &[],
    }
}

/// A time in a fitting unit.
pub fn time(ns: f64) -> String {
    match ns {
        n if n >= 1e6 => format!("{:.3} ms", n / 1e6),
        n if n >= 1e3 => format!("{:.2} µs", n / 1e3),
        n => format!("{n:.2} ns"),
    }
}

impl Twin {
    /// The card model as a TOML text.
    pub fn toml(&self) -> String {
        let mut notes: Vec<(String, String)> = vec![];
        for w in &self.structure {
            for k in parts(w.name) {
                notes.push((k.to_string(), format!("fitted, {:.0} %", 100.0 * w.probability)));
            }
        }
        if self.model.host.tick > 0 {
            notes.push(("host.tick".into(), "answers came at its multiples".into()));
            notes.push(("host.command".into(), "fitted, less what answers wait for the tick".into()));
        }
        for c in &self.costs {
            let each = if c.event.by_byte() { " a byte" } else { "" };
            let note = match c.interval_ns {
                Some([low, high]) => format!("fitted, 95 %: {}{each}", between(&time(low), &time(high))),
                None => "assumed, or what is left where parts were not told apart".into(),
            };
            notes.push((key(c.event).to_string(), note));
        }
        for k in ["host.jitter", "host.tail", "host.tail_every", "host.tail_cap", "stall.time", "stall.every_bytes"] {
            notes.push((k.into(), "fitted to what the structure leaves".into()));
        }
        for k in ["card.capacity", "card.sector"] {
            notes.push((k.into(), "as the target reports".into()));
        }
        let mut out = String::new();
        let _ = writeln!(out, "# A twin of {}: a card model fitted to {} accesses of it.", crate::shell::one_line(&self.of), self.accesses);
        let _ = writeln!(
            out,
            "# {:.1} % of the variance of the times explained, {:.0} % of the accesses within 10 %; {} structures compared, seed {}.",
            100.0 * self.explained,
            100.0 * self.within_tenth,
            self.structures,
            self.seed
        );
        for a in &self.assumed {
            let _ = writeln!(out, "# Assumed: {a}.");
        }
        let _ = writeln!(out, "# What has no comment was not looked at and is as a card model has it by default.");
        let mut section = String::new();
        for line in self.model.to_toml().lines() {
            if let Some(name) = line.strip_prefix('[') {
                section = format!("{}.", name.trim_matches(['[', ']']));
            }
            let full = line.split_once(" = ").map(|l| format!("{section}{}", l.0.trim()));
            let note = full.and_then(|k| notes.iter().find(|n| n.0 == k));
            let _ = match note {
                Some((_, note)) => writeln!(out, "{line} # {note}"),
                None => writeln!(out, "{line}"),
            };
        }
        out
    }
}

//! The result file of uFLIP (FlashIO 2.3): the same columns in the same order, so that old results can be put beside new ones.

use super::measured::{Format, Measured, Row};
use super::plan::{BURST_PAUSE_US, SIZE};
use crate::units::SECTOR;
use std::fmt::Write;

/// The columns; "Erase" is there twice.
pub const COLUMNS: [&str; 42] = [
    "Comment",
    "Key",
    "WG",
    "RunID",
    "PDeg",
    "ProcID",
    "Base",
    "Base1",
    "Ratio",
    "TS2",
    "Order",
    "NbPart",
    "Shift",
    "TSize",
    "PauseIO",
    "Burst",
    "IoSize",
    "AvgIO",
    "MinIO",
    "MaxIO",
    "stdD",
    "Erase",
    "InitEr",
    "EndEr",
    "Lost",
    "Time",
    "User",
    "Kernel",
    "IgnIO",
    "Offset",
    "pauseBurst",
    "CompName",
    "TimeStamp",
    "PauseExp",
    "Erase",
    "BenchID",
    "ExpID",
    "Buff",
    "Device",
    "TotFile",
    "IOC",
    "TO2",
];

/// KiB with one decimal.
fn kib(bytes: u64) -> String {
    format!("{:.1}", bytes as f64 / 1024.0)
}

/// As `ctime` prints it, UTC.
fn ctime(seconds: u64) -> String {
    let day = crate::units::date_text(seconds);
    let names = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let part = |i: usize| day.split('-').nth(i).and_then(|p| p.parse::<usize>().ok()).unwrap_or(1);
    let (h, m, s) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    let month = months[(part(1) - 1).min(11)];
    format!("{} {month} {:>2} {h:02}:{m:02}:{s:02} {}", names[(seconds / 86_400 % 7) as usize], part(2), part(0))
}

/// The whole file. `size`: bytes of the target; `host`: the name of this computer; `unbuffered`: accesses bypass the page cache.
pub fn file(m: &Measured, size: u64, host: &str, unbuffered: bool) -> String {
    let mut out = String::new();
    for (i, name) in COLUMNS.iter().enumerate() {
        let end = if i + 1 == COLUMNS.len() {
            " \n"
        } else if COLUMNS[i + 1] == "PauseExp" {
            ";  "
        } else {
            "; "
        };
        let _ = write!(out, "{name}{end}");
    }
    let buffers = if unbuffered { "NoBuff" } else { "FSBuff" };
    for (key, r) in m.rows.iter().enumerate() {
        row(&mut out, key, r, m, size, host, buffers);
    }
    out
}

fn row(out: &mut String, key: usize, r: &Row, m: &Measured, size: u64, host: &str, buffers: &str) {
    let Some(p) = &r.pattern else { return };
    let host: String = host.chars().filter(|c| c.is_ascii_graphic() && *c != ';').collect();
    let us = |x: f64| format!("{x:.0}");
    let fields = [
        r.code.clone(),
        format!("{:4}", key + 1),
        if r.crowded { "2" } else { "0" }.to_string(),
        format!("{:3}", r.run),
        p.streams.to_string(),
        r.stream.to_string(),
        p.base.name().into(),
        p.second.map_or("", super::plan::Base::name).to_string(),
        p.ratio.to_string(),
        kib(r.second_target),
        p.increment.to_string(),
        p.partitions.to_string(),
        kib(p.shift),
        kib(r.target),
        p.pause_us.to_string(),
        p.burst.to_string(),
        kib(p.size),
        us(r.mean_us),
        us(r.min_us),
        us(r.max_us),
        us(r.deviation_us),
        // Erases and the processor's time are not measured.
        "0".into(),
        "0".into(),
        "0".into(),
        us(r.lost_us),
        us(r.clock_us),
        "0".into(),
        "0".into(),
        r.ignored.to_string(),
        kib(r.offset),
        if p.burst > 0 { BURST_PAUSE_US } else { 0 }.to_string(),
        host,
        ctime(r.at),
        format!("{:.0}", m.pause.ms / 1000.0),
        "NO".into(),
        r.bench.to_string(),
        r.exp.to_string(),
        buffers.into(),
        "0".into(),
        (size / SECTOR).to_string(),
        r.count.to_string(),
        kib(r.second_offset),
    ];
    for f in fields {
        let _ = write!(out, "{f}; ");
    }
    out.push('\n');
}

/// The state in words, as the page and the text have it.
pub fn state(m: &Measured) -> String {
    match m.format {
        Format::AsIs => "the state of the flash was not enforced: what was written there before is part of the result".into(),
        _ if m.formatted == 0 => "the time was over before the region was written once: the state of the flash is as it was".into(),
        Format::Sequential => format!("the region was written once in sequential order before ({})", crate::units::about(m.formatted)),
        Format::Random => format!(
            "the region was written once by random writes of 128 KiB to {} before ({})",
            crate::units::Bytes(SECTOR.min(SIZE)),
            crate::units::about(m.formatted)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_those_of_the_published_list() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/published/uflip-res-columns.tsv");
        let Ok(text) = std::fs::read_to_string(path) else { return };
        let names: Vec<&str> = text.lines().filter(|l| !l.starts_with('#')).skip(1).filter_map(|l| l.split('\t').nth(1)).collect();
        assert_eq!(names, COLUMNS);
    }

    #[test]
    fn times_are_as_ctime_prints_them() {
        assert_eq!(ctime(0), "Thu Jan  1 00:00:00 1970");
        assert_eq!(ctime(1_287_500_000), "Tue Oct 19 14:53:20 2010");
    }
}

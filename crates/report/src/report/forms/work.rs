//! Facts of what was done to a card: erased, formatted, put back, defragmented, aged; and of requests through a simulated one.

use super::read::{judged, number};
use super::{Card, Fact, Facts, Verdict};
use crate::units::Bytes;
use serde_json::Value;

fn of_target(v: &Value) -> Vec<Card> {
    let target = v["target"].as_str().unwrap_or_default();
    vec![Card { id: target.into(), model: None, target: target.into() }]
}

fn bytes(v: &Value) -> Bytes {
    Bytes(v.as_u64().unwrap_or(0))
}

/// Metrics of the first card: key, name, unit.
fn metrics(f: &mut Facts, v: &Value, all: &[(&str, &str, &str)]) {
    for (key, name, unit) in all {
        f.all.extend(number(0, name, "", &v[key], unit));
    }
}

pub fn erased(f: &mut Facts, v: &Value) {
    f.cards = of_target(v);
    let done = &v["done"];
    let text = format!(
        "{} discarded, {} filled, {} at the ends left as they were",
        bytes(&done["discarded"]),
        bytes(&done["filled"]),
        bytes(&done["left"])
    );
    let whole = if done["stopped"] == true { Verdict::Fail } else { Verdict::Pass };
    f.all.push(judged(0, "erased", whole, &text, "Whether the region was erased to its end"));
    // What does not read back ends the command with an error.
    let (read_back, why) =
        if v["verified"] == true { (Verdict::Pass, "what was filled reads back") } else { (Verdict::Skip, "not read back") };
    f.all.push(judged(0, "reads_back", read_back, why, "Whether what was filled reads back"));
    metrics(f, done, &[("discarded", "erase_discarded", "B"), ("filled", "erase_filled", "B"), ("left", "erase_left", "B")]);
}

pub fn formatted(f: &mut Facts, v: &Value) {
    f.cards = of_target(v);
    let text = format!(
        "{}, clusters of {}, boundaries of {}",
        v["filesystem"].as_str().unwrap_or("?"),
        bytes(&v["cluster"]),
        bytes(&v["boundary"])
    );
    let done = if v["written"] == true { Verdict::Pass } else { Verdict::Skip };
    f.all.push(judged(0, "formatted", done, &text, "Whether the volume was written and read back"));
    metrics(
        f,
        v,
        &[
            ("cluster", "volume_cluster", "B"),
            ("clusters", "volume_clusters", ""),
            ("boundary", "volume_boundary", "B"),
            ("data", "volume_data_at", "B"),
            ("bytes", "format_written", "B"),
        ],
    );
    let partition = &v["partition"];
    metrics(f, partition, &[("start", "partition_start", "B"), ("size", "partition_size", "B")]);
}

/// One check a journal; where there is none, nothing waits to be put back.
pub fn undone(f: &mut Facts, v: &Value) {
    let all: Vec<&Value> = v["journals"].as_array().into_iter().flatten().collect();
    let help = "Whether what a run overwrote is back";
    if all.is_empty() {
        f.cards = vec![Card::default()];
        f.all.push(judged(0, "put_back", Verdict::Pass, "there is no journal", help));
    }
    for (i, j) in all.into_iter().enumerate() {
        let journal = j["journal"].as_str().unwrap_or_default().to_string();
        let id = j["target"].as_str().filter(|t| !t.is_empty()).map_or_else(|| journal.clone(), str::to_string);
        f.cards.push(Card { id, model: None, target: journal.clone() });
        let size = bytes(&j["bytes"]);
        let (verdict, text) = match j["state"].as_str() {
            Some("put_back") => (Verdict::Pass, format!("{size} put back and verified")),
            Some("kept") => (Verdict::Skip, format!("{size} can be put back")),
            Some("given_up") => (Verdict::Fail, format!("{size} given up")),
            _ => (Verdict::Fail, j["why"].as_str().map_or_else(|| "not all is back".to_string(), str::to_string)),
        };
        let fact = judged(i, "put_back", verdict, &text, help);
        f.all.push(Fact { conditions: journal, ..fact });
        f.all.extend(number(i, "undo", "", &j["bytes"], "B"));
    }
}

pub fn defragmented(f: &mut Facts, v: &Value) {
    f.cards = of_target(v);
    let count = |key: &str| v[key].as_u64().unwrap_or(0);
    let text = format!("{} of {} files in pieces, {} before", count("fragmented_after"), count("files"), count("fragmented_before"));
    let whole = if v["stopped"] == true { Verdict::Fail } else { Verdict::Pass };
    f.all.push(judged(0, "defragmented", whole, &text, "Whether all files were looked at"));
    metrics(
        f,
        v,
        &[
            ("files", "files", ""),
            ("fragmented_before", "files_in_pieces_before", ""),
            ("fragmented_after", "files_in_pieces", ""),
            ("directories_before", "directories_in_pieces_before", ""),
            ("directories_after", "directories_in_pieces", ""),
            ("bytes_moved", "defrag_moved", "B"),
        ],
    );
}

pub fn aged(f: &mut Facts, v: &Value) {
    f.cards = of_target(v);
    if let Some(n) = v["files_as_written"].as_u64() {
        let text = format!("{n} files are as they were written");
        f.all.push(judged(0, "files_kept", Verdict::Pass, &text, "Whether the files of an ageing read back as they were written"));
    }
    if let (Some(passes), Some(of)) = (v["passes"].as_u64(), v["of"].as_u64()) {
        let whole = if v["stopped"] == true { Verdict::Fail } else { Verdict::Pass };
        f.all.push(judged(0, "aged", whole, &format!("{passes} of {of} passes"), "Whether all passes of an ageing were done"));
    }
    metrics(
        f,
        v,
        &[
            ("passes", "age_passes", ""),
            ("files_made", "age_files_made", ""),
            ("files_removed", "age_files_removed", ""),
            ("bytes_written", "age_written", "B"),
        ],
    );
}

/// Rates, latencies and what the flash did.
pub fn simulated(f: &mut Facts, v: &Value) {
    let card = v["card"].as_str().unwrap_or_default();
    f.cards = vec![Card { id: card.into(), model: v["about"].as_str().map(str::to_string), target: card.into() }];
    let input = v["input"].as_str().unwrap_or_default();
    f.all.extend(number(0, "sim", input, &v["bytes_per_second"], "B/s"));
    f.all.extend(number(0, "sim_requests", input, &v["requests_per_second"], "IOPS"));
    let o = &v["outcome"];
    for kind in ["reads", "writes", "others"] {
        let all = &o[kind];
        if all["count"].as_u64().is_none_or(|n| n == 0) {
            continue;
        }
        f.all.extend(number(0, &format!("sim_{kind}"), input, &all["count"], ""));
        for (key, name) in
            [("mean", "mean"), ("p50", "median"), ("p99", "99_percent_below"), ("p999", "99_9_percent_below"), ("most", "longest")]
        {
            f.all.extend(number(0, &format!("sim_{kind}_{name}"), input, &all[key], "ns"));
        }
    }
    for (key, name, unit) in [
        ("write_amplification", "sim_write_amplification", "ratio"),
        ("drive_writes", "sim_drive_writes", ""),
        ("erases", "sim_erases", ""),
        ("collections", "sim_collections", ""),
        ("stalls", "sim_stalls", ""),
    ] {
        f.all.extend(number(0, name, input, &o[key], "").map(|x| Fact { unit: unit.into(), ..x }));
    }
    if let Some(lost) = v["lost"].as_array() {
        let verdict = if lost.is_empty() { Verdict::Pass } else { Verdict::Fail };
        let text = format!("{} acknowledged writes never reached the flash", lost.len());
        f.all.push(judged(
            0,
            "acknowledged_writes_kept",
            verdict,
            &text,
            "Whether what was acknowledged before a power cut is on the flash",
        ));
    }
}

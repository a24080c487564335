//! What to do about it: one sentence each, resting on a finding that is sure enough.

use crate::finding::{Findings, Quantity};
use crate::host::declared::Kind;
use crate::host::facts::TargetKind;
use crate::infer::stalls::{BUSY, busy_ms};
use crate::saved::Report;
use crate::saved::counterfeit::{Counterfeit, loses};
use crate::units::{Bytes, three};
use serde_json::json;

/// Below this nobody should re-partition a card.
const SURE: f64 = 0.75;

/// A gain worth a change of a driver.
const WORTH: f64 = 1.05;

/// A write that takes so many times as long as a merge is no merge.
const MERGED: f64 = 1.5;

/// First of all, where a card that says `says` bytes holds less, or loses what it is given.
pub fn distrust(f: &Findings, says: u64) -> Option<String> {
    if loses(f).is_some() {
        return Some(
            "give the card back, and keep nothing on it: what is written to it may be lost; `nandscope check` says how much of it".into(),
        );
    }
    let found = Counterfeit::of(f, says)?;
    if found.holds != found.at_most {
        // A size to keep to must have been seen to be there.
        return Some(format!(
            "give the card back, and keep nothing on it: it is a {}, and where its flash ends was not found",
            found.word()
        ));
    }
    Some(format!(
        "give the card back, or use its first {} only: it is a {}, and data written past that is lost or overwrites earlier data",
        Bytes(found.holds),
        found.word()
    ))
}

pub fn advice(f: &Findings) -> Vec<String> {
    let mut out = vec![];
    let value = |q| f.value(q, SURE);
    if let Some(e) = value(Quantity::EraseBlock) {
        let at = value(Quantity::EraseBlockOffset).unwrap_or(0.0);
        let first = if at > 0.0 {
            format!("{} plus multiples of {}", Bytes(at as u64), Bytes(e as u64))
        } else {
            format!("multiples of {}", Bytes(e as u64))
        };
        out.push(format!("start partitions and filesystem data at {first}"));
    }
    if let Some(w) = value(Quantity::WriteUnit).filter(|&w| w > 512.0) {
        // Small writes one after the other may be coalesced, and on a slow wire they take less time.
        out.push(format!("write at least {} at a time; for a smaller write on its own the card programs as much", Bytes(w as u64)));
    }
    let announced = value(Quantity::PreEraseGain).filter(|&g| g >= WORTH);
    if let Some(k) = value(Quantity::MultiBlockKnee).filter(|&k| k > 512.0) {
        let of = if announced.is_some() { "the best rate without announcing" } else { "the best rate" };
        out.push(format!("put {} or more into one write command: that reaches nine tenths of {of}", Bytes(k as u64)));
    }
    if let Some(g) = announced {
        out.push(format!("announce how many blocks a long write has (ACMD23): {} times as fast", three(g)));
    }
    if let Some(g) = value(Quantity::PreDefinedGain).filter(|&g| g >= WORTH) {
        out.push(format!("announce how many blocks a write has (CMD23): {} times as fast", three(g)));
    }
    let cost = value(Quantity::CloseCostMs).map(|c| format!(" (each incurs a merge: {} ms)", three(c))).unwrap_or_default();
    match value(Quantity::OpenAusLinear) {
        Some(0.0) => out.push("every write is a read-modify-write of an erase block: buffer as much as you can before writing".into()),
        Some(1.0) => {
            out.push(format!("write one erase block at a time, from front to back; writes that alternate between two are slow{cost}"))
        }
        Some(n) => out.push(format!("interleave writes to at most {n:.0} erase blocks; writes to more are slow{cost}")),
        None => {}
    }
    match value(Quantity::OpenAusRandom) {
        Some(0.0) if value(Quantity::OpenAusLinear) != Some(0.0) => {
            out.push(format!("avoid random writes: even inside one erase block each is slow{cost}; prefer log-structured filesystems"));
        }
        Some(1.0) => out.push("random writes are cheap inside 1 erase block at a time".into()),
        Some(n) if n > 0.0 => out.push(format!("random writes are cheap inside {n:.0} erase blocks at a time")),
        _ => {}
    }
    if let Some(z) = value(Quantity::FatZone).filter(|&z| z > 0.0) {
        out.push(format!("keep the FAT, or anything else written at random, in the first {}", Bytes(z as u64)));
    }
    let cache = f.get(Quantity::WriteCache).filter(|f| f.confidence >= SURE).and_then(|f| f.at_least);
    if let Some(c) = cache {
        out.push(format!(
            "{} in one go are written to a cache; more of them take longer until the card has had a pause",
            Bytes(c.0 as u64)
        ));
    }
    out
}

/// Of a card on which a small write takes longer than the SD standard allows, and much longer than the merges that were found.
pub(super) fn waits(r: &Report) -> Option<String> {
    let ms = r.accesses()?.longest_small_write_ns?.millis();
    let merge = r.findings.value(Quantity::CloseCostMs, SURE).unwrap_or(0.0);
    // An eMMC gives a limit of its own, and an image is no card.
    let other = r.target.kind == TargetKind::Image || r.declared["kind"] == json!(Kind::Mmc);
    (!other && ms > busy_ms(r.reports()).max(MERGED * merge)).then(|| {
        format!("give what must not wait a buffer: a write of 64 KiB or less took {} ms, and the SD standard allows {BUSY}", three(ms))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Finding;
    use crate::saved::accesses::Accesses;
    use crate::saved::bare;
    use crate::units::Nanos;

    #[test]
    fn a_long_wait_is_told_where_no_merge_says_it() {
        let of = |ms: u64, size: u64, merge: Option<f64>| {
            let mut r = bare(merge.map(|ms| Finding::decided(Quantity::CloseCostMs, ms, 0.95)).into_iter().collect());
            (r.target.size, r.target.offset) = (size, 0);
            r.accesses = Some(Accesses { longest_small_write_ns: Some(Nanos(ms * 1_000_000)), ..Accesses::default() });
            r
        };
        let told = |r: &Report| waits(r).is_some();
        assert!(told(&of(400, 16 << 30, None)) && !told(&of(200, 16 << 30, None)));
        assert!(told(&of(700, 64 << 30, None)) && !told(&of(400, 64 << 30, None)), "SDXC cards may take 500 ms");
        assert!(told(&of(700, 16 << 30, Some(300.0))) && !told(&of(400, 16 << 30, Some(300.0))));
        let mut emmc = of(700, 16 << 30, None);
        emmc.declared = json!({ "kind": "mmc" });
        assert!(!told(&emmc));
    }
}

//! An entry for the kernel's list of cards with quirks (drivers/mmc/core/quirks.h), where measurements support one: what was seen, the
//! entry, and a patch against a given copy of that file; where they do not, why not and what would decide it.

use crate::device::Op;
use crate::finding::{Quantity, percent};
use crate::host::declared::{Declared, Kind};
use crate::host::quirks;
use crate::host::registers::cid::Cid;
use crate::infer::ab::{Effect, Verdict};
use crate::saved::Report;
use crate::units::{about, three};
use serde::Serialize;
use serde_json::Value;

/// Above it a finding of one run supports an entry: the level of its interval.
const SURE: f64 = 0.95;
/// A gain closer to 1 than this is none to anybody (as the experiment `multi-block` has it).
const NEGLIGIBLE: f64 = 0.01;
/// Read time-out of an SD card (SD Physical Layer 4.6.2.1), which the kernel uses for cards above 2 GB, in ms.
const SD_READ_MS: f64 = 100.0;
/// Reads beyond the time-out: one may be the host's own delay.
const LEAST_LONG: usize = 3;

/// Name and version of the JSON form of a comparison of two settings.
pub const SCHEMA: &str = "nandscope-ab/1";

/// A comparison of two settings, as `ab --json` writes it.
#[derive(Clone, Debug)]
pub struct Compared {
    pub settings: [String; 2],
    pub load: String,
    pub effect: Option<Effect>,
    /// Bytes read back, and bytes that were wrong, under each setting.
    pub checked: [u64; 2],
    pub wrong: [u64; 2],
    /// Of a simulated card, which is no evidence of a real one.
    pub simulated: bool,
}

impl Compared {
    /// From the value of a file.
    ///
    /// # Errors
    /// What is missing in it.
    pub fn from_value(v: &Value) -> Result<Compared, String> {
        let text = |v: &Value| v.as_str().map(str::to_string).ok_or("a comparison without its two settings");
        let pair = |v: &Value| [v[0].as_u64().unwrap_or(0), v[1].as_u64().unwrap_or(0)];
        Ok(Compared {
            settings: [text(&v["settings"][0])?, text(&v["settings"][1])?],
            load: v["load"].as_str().unwrap_or("").into(),
            effect: serde_json::from_value(v["effect"].clone()).map_err(|e| e.to_string())?,
            checked: pair(&v["kept"]["checked"]),
            wrong: pair(&v["kept"]["wrong"]),
            simulated: v["target"]["kind"] == "simulated",
        })
    }

    /// The side that has a switch on and the side that has it off, where they differ in it: numbers of the settings.
    fn switched(&self, key: &str) -> Option<(usize, usize)> {
        let value = |s: &str| s.split(',').find_map(|p| p.trim().strip_prefix(key)?.strip_prefix('=').map(str::to_string));
        let on = |v: &Option<String>| v.as_deref().is_some_and(|v| v == "on" || v == "before");
        let (a, b) = (value(&self.settings[0]), value(&self.settings[1]));
        match (on(&a), on(&b)) {
            (true, false) => Some((0, 1)),
            (false, true) => Some((1, 0)),
            _ => None,
        }
    }

    /// Times with the switch on over those with it off, with the interval.
    fn ratio(&self, key: &str) -> Option<(f64, [f64; 2], Verdict)> {
        let (on, _) = self.switched(key)?;
        let e = self.effect.as_ref()?;
        Some(match (on, e.verdict) {
            (1, v) => (e.ratio, e.interval, v),
            (_, v) => {
                let turned = match v {
                    Verdict::Faster => Verdict::Slower,
                    Verdict::Slower => Verdict::Faster,
                    other => other,
                };
                (1.0 / e.ratio, [1.0 / e.interval[1], 1.0 / e.interval[0]], turned)
            }
        })
    }
}

/// What is known of one card.
pub struct Evidence<'a> {
    pub kind: Kind,
    pub cid: &'a Cid,
    pub ext_csd_rev: Option<u8>,
    pub reports: &'a [Report],
    pub compared: &'a [Compared],
}

/// What the measurements say of one quirk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Support {
    Supported,
    NotSupported,
    NotMeasured,
}

/// One quirk of the kernel's list, and whether this card has it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Proposal {
    /// Without `MMC_QUIRK_`.
    pub quirk: &'static str,
    pub support: Support,
    /// What was seen, or why nothing follows.
    pub why: String,
    /// The kernel's list has it for this card already.
    pub listed: bool,
    /// Table of the file, and the entry; where it is supported and not listed.
    pub entry: Option<Entry>,
}

/// An entry of a table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Entry {
    pub table: &'static str,
    pub text: String,
}

/// What is looked at, each with a proposal or the reason why there is none.
pub fn proposals(e: &Evidence) -> Vec<Proposal> {
    let listed = quirks::known(e.kind, e.cid, e.ext_csd_rev);
    let discard = if e.kind == Kind::Sd { "BROKEN_SD_DISCARD" } else { "TRIM_BROKEN" };
    let flush = if e.kind == Kind::Sd { "BROKEN_SD_CACHE" } else { "BROKEN_CACHE_FLUSH" };
    [("BLK_NO_CMD23", cmd23(e)), (discard, discards(e)), ("LONG_READ_TIME", long_reads(e)), (flush, flushes(e))]
        .into_iter()
        .map(|(quirk, (support, why))| {
            let mainline = listed.iter().any(|t| t.quirk == quirk && t.mainline);
            let entry = (support == Support::Supported && !mainline).then(|| entry(e, quirk, &why));
            Proposal { quirk, support, why, listed: mainline, entry }
        })
        .collect()
}

type Judged = (Support, String);

/// Slower with the length announced, or wrong data with it only.
fn cmd23(e: &Evidence) -> Judged {
    for c in e.compared {
        let Some((on, off)) = c.switched("cmd23") else { continue };
        if c.wrong[on] > 0 && c.wrong[off] == 0 && c.checked[off] > 0 {
            let why = format!(
                "with CMD23 {} of {} did not read back as written; ended by CMD12 all {} did",
                about(c.wrong[on]),
                about(c.checked[on]),
                about(c.checked[off])
            );
            return (Support::Supported, why);
        }
        if let Some((ratio, [low, high], verdict)) = c.ratio("cmd23") {
            let [low, high] = [low, high].map(|x| format!("{x:.3}"));
            let range = if low == high { String::new() } else { format!(" ({low} to {high})") };
            let seen = format!("writes that announce their length take {ratio:.3} of the time{range}, {}", data(c));
            return match verdict {
                Verdict::Slower => (Support::Supported, format!("CMD23 makes this card slower: {seen}")),
                Verdict::Faster => (Support::NotSupported, format!("CMD23 makes this card faster: {seen}")),
                Verdict::NoDifference => (Support::NotSupported, format!("CMD23 makes no difference: {seen}")),
                Verdict::Undecided => (Support::NotMeasured, format!("undecided: {seen}; more --pairs decide")),
            };
        }
    }
    let gains = e.reports.iter().filter_map(|r| r.findings.get(Quantity::PreDefinedGain));
    if let Some((gain, f)) = gains.filter_map(|f| Some((f.number()?, f))).next() {
        let seen = format!("writes are {} times as fast with CMD23 ({:.0} %)", three(gain), percent(f.confidence));
        let slower = gain < 1.0 - NEGLIGIBLE && f.confidence >= SURE;
        return match slower {
            true => (Support::Supported, format!("CMD23 makes this card slower: {seen}")),
            false if gain < 1.0 - NEGLIGIBLE => {
                (Support::NotMeasured, format!("{seen}: too little confidence for an entry; {}", run("cmd23")))
            }
            false => (Support::NotSupported, format!("{seen}: nothing is lost by it")),
        };
    }
    (Support::NotMeasured, format!("no comparison of writes with and without CMD23; {}", run("cmd23")))
}

fn run(switch: &str) -> String {
    format!("decided by: nandscope ab DEVICE --a {switch}=off --b {switch}=on --load linear --size 256KiB --write --consent ID --json F")
}

fn data(c: &Compared) -> &'static str {
    match (c.checked, c.wrong) {
        ([0, _] | [_, 0], _) => "the data were not checked",
        (_, [0, 0]) => "the data are right with both",
        _ => "the data are wrong",
    }
}

/// Data beside a discard that are lost.
fn discards(e: &Evidence) -> Judged {
    let Some((c, (on, off))) = e.compared.iter().find_map(|c| Some((c, c.switched("discard")?))) else {
        return (Support::NotMeasured, format!("no comparison with and without discard; {}", run("discard")));
    };
    match (c.checked[on] > 0 && c.checked[off] > 0, c.wrong[on], c.wrong[off]) {
        (false, ..) => (Support::NotMeasured, format!("what was written was not read back; {}", run("discard"))),
        (_, 0, 0) => {
            let why =
                format!("{} written beside discards read back as written, as {} without did", about(c.checked[on]), about(c.checked[off]));
            (Support::NotSupported, why)
        }
        // Discards reach beyond what they name: what the other side wrote is lost, too, and only they are new.
        (_, on, off) if on > 0 && off == 0 => {
            (Support::Supported, format!("{} written beside discards did not read back as written; without discards all did", about(on)))
        }
        (_, on, off) => {
            let why = format!(
                "{} were wrong with discards and {} without: either discards reach beyond what they name, or the card loses data without \
                 them; decided by the same comparison with --a default --b default",
                about(on),
                about(off)
            );
            (Support::NotMeasured, why)
        }
    }
}

/// Reads that take longer than the time-out that the card declares.
fn long_reads(e: &Evidence) -> Judged {
    if e.kind != Kind::Sd {
        let why = "the time-out of an eMMC follows from its CSD and the clock, which reports do not hold; a card that needs it shows \
                   read time-outs in the kernel's log";
        return (Support::NotMeasured, why.into());
    }
    let reads = || e.reports.iter().flat_map(|r| &r.runs).flat_map(|r| &r.samples).filter(|s| s.op == Op::Read);
    let all = reads().count();
    // A long request is many commands: only those of one block of a file system are held against a time-out.
    let small = || reads().filter(|s| s.len <= 64 << 10).map(|s| s.took.millis());
    let long: Vec<f64> = small().filter(|&ms| ms > SD_READ_MS).collect();
    let worst = small().fold(0.0, f64::max);
    if all == 0 {
        return (Support::NotMeasured, "no report holds timed reads; decided by: nandscope probe DEVICE --json F".into());
    }
    match long.len() {
        n if n >= LEAST_LONG => {
            let why = format!(
                "{n} of {} reads of 64 KiB or less took longer than the {SD_READ_MS:.0} ms that the standard allows, the longest {} ms. The \
                 kernel knows this quirk for MMC only, where it lengthens the time-out: an entry for an SD card does nothing",
                small().count(),
                three(worst)
            );
            (Support::NotSupported, why)
        }
        _ => {
            let why = format!(
                "the longest of {} reads of 64 KiB or less took {} ms; {SD_READ_MS:.0} ms are allowed",
                small().count(),
                three(worst)
            );
            (Support::NotSupported, why)
        }
    }
}

/// Flushes that fail or never end.
fn flushes(e: &Evidence) -> Judged {
    let faults: Vec<&str> =
        e.reports.iter().flat_map(|r| &r.runs).flat_map(|r| &r.faults).map(String::as_str).filter(|f| f.contains("flush")).collect();
    if let Some(last) = faults.last() {
        return (Support::Supported, format!("{} flushes failed, the last: {last}", faults.len()));
    }
    let flushed = e.reports.iter().flat_map(|r| &r.runs).flat_map(|r| &r.samples).filter(|s| s.op == Op::Flush).count();
    let cached = e.reports.iter().filter(|r| r.host.queue.as_ref().and_then(|q| q.write_cache.as_deref()) == Some("write back"));
    let writes = cached.map(|r| r.cost.writes).sum::<u64>();
    match flushed as u64 + writes {
        0 => (Support::NotMeasured, "no flush was sent: the kernel declares no write cache, or nothing was written".into()),
        n => (Support::NotSupported, format!("{n} flushes, none failed")),
    }
}

/// The entry, in the form of the kernel's tables. What was seen on one card is said of its month of production only.
fn entry(e: &Evidence, quirk: &str, why: &str) -> Entry {
    let (table, add) = match (quirk, e.kind) {
        ("BROKEN_SD_CACHE" | "BROKEN_SD_DISCARD", _) => ("mmc_sd_fixups", "add_quirk_sd"),
        (_, Kind::Sd) => ("mmc_blk_fixups", "add_quirk_sd"),
        _ => ("mmc_blk_fixups", "add_quirk_mmc"),
    };
    let c = e.cid;
    let mut text = String::from("\t/*\n");
    let seen = format!(
        "{} (revision {}.{}, made {:02}/{}): {why}. Seen on one card, so the entry is limited to its month.",
        c.name, c.hwrev, c.fwrev, c.date.month, c.date.year
    );
    let mut line = String::new();
    for word in seen.split_whitespace() {
        if line.len() + 1 + word.len() > 70 {
            text += &format!("\t * {}\n", line.trim());
            line.clear();
        }
        line += &format!(" {word}");
    }
    text += &format!("\t * {}\n\t */\n", line.trim());
    text += &format!(
        "\t_FIXUP_EXT(\"{}\", {:#04x}, {:#06x}, {}, {},\n\t\t   0, -1ull, SDIO_ANY_ID, SDIO_ANY_ID, {add},\n\t\t   MMC_QUIRK_{quirk}, EXT_CSD_REV_ANY),\n\n",
        c.name.replace('\\', "\\\\").replace('"', "\\\""),
        c.manfid,
        c.oemid,
        c.date.year,
        c.date.month
    );
    Entry { table, text }
}

/// A patch that puts entries at the ends of their tables, against the text of a quirks.h.
///
/// # Errors
/// The file has no such table, or it does not end as the kernel's do.
pub fn patch(source: &str, entries: &[&Entry]) -> Result<String, String> {
    let lines: Vec<&str> = source.lines().collect();
    let mut places: Vec<(usize, String)> = vec![];
    for e in entries {
        let head = lines.iter().position(|l| l.contains(&format!(" {}[]", e.table)) && l.contains("struct mmc_fixup"));
        let head = head.ok_or_else(|| format!("it has no table {}: is it drivers/mmc/core/quirks.h?", e.table))?;
        let end = lines[head..].iter().position(|l| l.trim().starts_with("END_FIXUP")).map(|n| head + n);
        let end = end.ok_or_else(|| format!("its table {} has no END_FIXUP", e.table))?;
        match places.iter_mut().find(|p| p.0 == end) {
            Some(p) => p.1 += &e.text,
            None => places.push((end, e.text.clone())),
        }
    }
    nandscope_stats::sort_by_key(&mut places, |p| p.0);
    let mut out = String::from("--- a/drivers/mmc/core/quirks.h\n+++ b/drivers/mmc/core/quirks.h\n");
    let (mut added, mut before) = (0, 0);
    for (at, text) in places {
        // Parts of a patch do not share lines.
        let (from, to) = (at.saturating_sub(3).max(before), (at + 3).min(lines.len()));
        before = to;
        let new = text.lines().count();
        out += &format!("@@ -{},{} +{},{} @@\n", from + 1, to - from, from + 1 + added, to - from + new);
        lines[from..at].iter().for_each(|l| out += &format!(" {l}\n"));
        text.lines().for_each(|l| out += &format!("+{l}\n"));
        lines[at..to].iter().for_each(|l| out += &format!(" {l}\n"));
        added += new;
    }
    Ok(out)
}

/// The card of a report, where it shows its CID.
pub fn declared(r: &Report) -> Option<Declared> {
    serde_json::from_value::<Declared>(r.declared.clone()).ok().filter(|d| d.cid.is_some())
}

#[cfg(test)]
#[path = "quirk_tests.rs"]
mod quirk_tests;

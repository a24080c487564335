//! What a layout costs on this card: each fault with what it costs where that was measured, and "harmless" where it is.
//!
//! Misalignment has no price of its own. A file system block that lies across two write units makes the card program two; metadata
//! in more AUs than the card keeps open closes one each time; a section that a log-structured file system believes to be one erase
//! block and is not makes the card copy the rest. Where none of these happens, a partition at 1 MiB is as good as any.

use super::disk::{Disk, Part, Volume, unit_word};
use super::grid::{Grid, Source};
use super::penalty::Penalties;
use crate::units::{Bytes, three};
use nandscope_fat::{FatType, Options, plan};
use serde::Serialize;
use std::collections::BTreeSet;

/// Does it cost anything on this card?
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Weight {
    /// Nothing, by what was measured.
    Harmless,
    /// It may, and was not measured.
    Unknown,
    /// By what was measured.
    Costs,
}

/// One observation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fault {
    /// "partition 1", or the table.
    pub place: String,
    pub what: String,
    pub weight: Weight,
    /// In words: the price, or why there is none, or what would tell.
    pub cost: String,
    /// Milliseconds an event, where measured.
    pub ms: Option<f64>,
}

/// What the factory made of a card by the SD convention, and whether it is still there (C25).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Factory {
    /// Field by field as the convention has it.
    Exact,
    /// Another layout with the data area on the boundary unit.
    Aligned,
    /// The data area is off the boundary unit: somebody formatted it without care.
    Lost,
    /// No FAT or exFAT volume to compare.
    Other,
}

/// Counts over one volume.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Count {
    pub place: String,
    pub name: String,
    pub count: u64,
    /// Of these, how many do not begin on a boundary of the grid.
    pub off: u64,
}

/// An audited target.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Audit {
    pub grid: Grid,
    pub disk: Disk,
    pub factory: Factory,
    pub counts: Vec<Count>,
    pub faults: Vec<Fault>,
}

impl Audit {
    /// The heaviest fault; none where there is none.
    pub fn worst(&self) -> Option<Weight> {
        self.faults.iter().map(|f| f.weight).max()
    }
}

fn fault(place: &str, what: String, weight: Weight, cost: impl Into<String>, ms: Option<f64>) -> Fault {
    Fault { place: place.into(), what, weight, cost: cost.into(), ms }
}

/// Who makes the layout of the SD convention (C27).
const BACK: &str = "`nandscope format`, the SD Association's SD Memory Card Formatter, or formatting in a device that complies with \
                    the SD standard brings the layout back";

/// Audits a target against a grid, with the penalties measured on this card.
pub fn audit(disk: Disk, grid: Grid, p: &Penalties) -> Audit {
    let mut a = Audit { grid, factory: factory(&disk), counts: vec![], faults: vec![], disk };
    let parts = a.disk.parts.clone();
    for part in &parts {
        let place = part.number.map_or("the volume".to_string(), |n| format!("partition {n}"));
        one(&mut a, part, &place, p);
    }
    for pair in parts.windows(2) {
        let end = pair[0].start.saturating_add(pair[0].size);
        if let [Some(m), Some(n)] = [pair[0].number, pair[1].number]
            && end > 0
            && end <= pair[1].start
            && a.grid.block(end - 1) == a.grid.block(pair[1].start)
        {
            let name = a.grid.source.unit_name();
            let what = format!("partition {m} ends and partition {n} begins in the same {name}");
            let cost = format!("one {name} is shared; it matters only for data at that edge");
            a.faults.push(fault("table", what, Weight::Harmless, cost, None));
        }
    }
    if a.factory == Factory::Lost {
        let unit = Grid::convention(a.disk.size).unit;
        let known = a.faults.iter().any(|f| f.weight == Weight::Costs) || p.write_unit.is_some();
        let what = format!("the SD layout is lost: the data area is not on a multiple of {}", Bytes(unit));
        let (weight, cost) = match (known, a.faults.iter().any(|f| f.weight == Weight::Costs)) {
            (true, true) => (Weight::Costs, format!("the cost is below; {BACK}")),
            (true, false) => (Weight::Harmless, "by what was measured this card does not mind".into()),
            _ => (Weight::Unknown, format!("a probe with --write, given as --report, has the cost on this card; {BACK}")),
        };
        a.faults.insert(0, fault("card", what, weight, &cost, None));
    }
    nandscope_stats::sort_by_key(&mut a.faults, |f| std::cmp::Reverse(f.weight));
    a
}

/// Is the volume where the SD convention would have put it? Only a whole disk can say.
fn factory(disk: &Disk) -> Factory {
    let first = disk.parts.iter().find_map(|p| Some((p, p.volume.as_ref()?)));
    let Some((part, v)) = first.filter(|(_, v)| disk.offset == 0 && (v.what.starts_with("FAT") || v.what == "exFAT")) else {
        return Factory::Other;
    };
    let kind = [FatType::Fat12, FatType::Fat16, FatType::Fat32, FatType::ExFat].into_iter().find(|k| k.to_string() == v.what);
    let same = plan(&Options { kind, ..Options::card(disk.size) }).is_ok_and(|l| {
        l.start() == part.start && l.start() + l.volume.data_start == v.data && l.volume.cluster == v.unit && disk.table == Some("MBR")
    });
    match () {
        () if same => Factory::Exact,
        () if v.data.is_multiple_of(Grid::convention(disk.size).unit) => Factory::Aligned,
        () => Factory::Lost,
    }
}

/// Units of size `unit` at `start`, `start + unit`, ...: how many `grain`s one touches on average, and how many it would at best.
fn touched(start: u64, unit: u64, grain: u64, first: u64) -> (f64, f64) {
    let (unit, grain) = (unit.max(1), grain.max(1));
    let start = start.wrapping_add(grain - first % grain);
    // The pattern repeats after at most grain / gcd units; a thousand are enough for an average.
    let n = 1024u64.min(grain);
    let count = |s: u64| (s + unit - 1) / grain - s / grain + 1;
    let average = |from: u64| (0..n).map(|i| count(from % grain + i * unit)).sum::<u64>() as f64 / n as f64;
    (average(start), average(0))
}

fn one(a: &mut Audit, part: &Part, place: &str, p: &Penalties) {
    let grid = a.grid;
    let name = grid.source.unit_name();
    let one = if name.starts_with('a') { "an" } else { "a" };
    if part.beyond {
        let cost = "the card is smaller than its table says; do not write to it before that is mended";
        a.faults.push(fault(place, "it reaches beyond the end of the target".into(), Weight::Costs, cost, None));
    }
    let Some(v) = &part.volume else {
        // A filesystem made here counts from the start of its partition: nothing it aligns would be aligned.
        if !grid.on(part.start) {
            let what = format!("it begins at {}, inside {one} {name}, and holds nothing known yet", Bytes(part.start));
            // Whatever the erase block is, clusters and pages of 4 KiB do not lie at odd sectors.
            let weight = if part.start.is_multiple_of(4096) { Weight::Unknown } else { Weight::Costs };
            let text = "begin it on a boundary before a filesystem is made; `nandscope layout plan` prints the commands";
            a.faults.push(fault(place, what, weight, text, None));
        }
        return;
    };
    if let (Some(claims), false) = (v.cut, part.beyond) {
        let what = format!("{} says it has {}, and there are {}", v.what, Bytes(claims), Bytes(part.size));
        let cost = "what lies beyond is lost; do not write to it, and look for the rest: an image may be cut off, a card counterfeit";
        a.faults.push(fault(place, what, Weight::Costs, cost, None));
    }
    let word = unit_word(v);
    clusters(a, v, place, word, p);
    if !grid.on(v.data) && !matches!(v.what.as_str(), "swap" | "btrfs") && !v.what.starts_with("ext") {
        let what = format!("the data area begins at {}, inside {one} {name}", Bytes(v.data));
        let into = (v.data + grid.unit - grid.first) % grid.unit;
        let share = format!("only the first {} of it share {one} {name} with what lies in front", crate::units::about(grid.unit - into));
        let weight = if matches!(grid.source, Source::Convention) { Weight::Unknown } else { Weight::Harmless };
        a.faults.push(fault(place, what, weight, share, None));
    }
    metadata(a, v, place, p);
    zone(a, v, place, p);
    for r in &v.repeats {
        let off = (0..r.count.min(100_000)).filter(|i| !grid.on(r.at + i * r.step)).count() as u64;
        a.counts.push(Count { place: place.into(), name: r.name.clone(), count: r.count, off });
        let whole = r.step.is_multiple_of(grid.unit) || grid.unit.is_multiple_of(r.step);
        if r.name == "sections" && (off > 0 || !whole) {
            sections(a, r.step, off, r.count, place, p);
        }
    }
    // Zones of one name are told together: a large ext4 has hundreds of inode tables.
    for z in v.zones.iter().filter(|z| z.len >= 4096 && z.mark != '#') {
        let across = grid.block(z.at + z.len - 1) - grid.block(z.at);
        let off = across.saturating_sub(z.len.div_ceil(grid.unit) - 1);
        match a.counts.iter_mut().find(|c| c.name == z.name && c.place == place) {
            Some(c) => (c.count, c.off) = (c.count + across + 1, c.off + off),
            None => a.counts.push(Count { place: place.into(), name: z.name.clone(), count: across + 1, off }),
        }
    }
}

/// Clusters or blocks against the write unit, else against what is read as one.
fn clusters(a: &mut Audit, v: &Volume, place: &str, word: &str, p: &Penalties) {
    let first = a.grid.first;
    if let Some(unit) = p.write_unit {
        let (now, best) = touched(v.data, v.unit, unit, first);
        if now > best + 0.01 {
            let what =
                format!("{word} of {} lie across write units of {}: {} instead of {}", Bytes(v.unit), Bytes(unit), three(now), three(best));
            let ms = p.one_more_unit().map(|t| t * (now - best));
            let text = match ms {
                Some(ms) => format!(
                    "{} ms more for each one written on its own ({:.0} % of the units it needs)",
                    three(ms),
                    100.0 * (now / best - 1.0)
                ),
                None => format!("{:.0} % more programming for each one written on its own", 100.0 * (now / best - 1.0)),
            };
            // A unit that costs nothing to touch again is no fault.
            let weight = if ms.is_some_and(|ms| ms < 0.005) { Weight::Harmless } else { Weight::Costs };
            a.faults.push(fault(place, what, weight, text, ms));
        }
        if v.unit < unit && now <= best + 0.01 && word == "clusters" {
            let what = format!("clusters of {} are smaller than the write unit of {}", Bytes(v.unit), Bytes(unit));
            let text = format!("a cluster written on its own costs as much as {}; large writes do not suffer", Bytes(unit));
            a.faults.push(fault(place, what, Weight::Harmless, text, None));
        }
    } else if let Some(page) = p.page.filter(|&page| touched(v.data, v.unit, page, first).0 > touched(v.data, v.unit, page, first).1 + 0.01)
    {
        let (now, best) = touched(v.data, v.unit, page, first);
        let what = format!(
            "{word} of {} lie across units of {} that are read as one: {} instead of {}",
            Bytes(v.unit),
            Bytes(page),
            three(now),
            three(best)
        );
        let ms = p.read_ms.get(&page).map(|t| t.max(0.0) * (now - best));
        let text = match ms {
            Some(ms) => format!(
                "{} µs more for each one read on its own; what writing costs was not measured (probe with --write)",
                three(ms * 1e3)
            ),
            None => "writing them was not measured; probe with --write".into(),
        };
        a.faults.push(fault(place, what, Weight::Costs, text, ms));
    } else if !v.data.abs_diff(first).is_multiple_of(v.unit.max(1)) && p.page.is_none() {
        let what = format!("{word} of {} do not lie on multiples of their own size", Bytes(v.unit));
        a.faults.push(fault(place, what, Weight::Unknown, "a probe with --write, given as --report, has the cost on this card", None));
    }
}

/// AUs that are written in turn while files are appended: the tables, the directory, and one for the data.
fn metadata(a: &mut Audit, v: &Volume, place: &str, p: &Penalties) {
    let wanted: &[char] = match v.what.as_str() {
        "FAT12" | "FAT16" | "FAT32" => &['F', 'R'],
        "exFAT" => &['F', 'R', 'B'],
        "ext2" | "ext3" | "ext4" => &['j', 'b'],
        _ => return,
    };
    // Of each zone one place is written at a time: its beginning stands for it. A zone of random writes needs no open AU.
    let mut seen = BTreeSet::new();
    let mut blocks = BTreeSet::new();
    for z in v.zones.iter().filter(|z| wanted.contains(&z.mark)) {
        // Bitmaps of many groups: one of them at a time.
        if (z.mark == 'F' || seen.insert(z.mark)) && z.at >= p.fat_zone {
            blocks.insert(a.grid.block(z.at));
        }
    }
    blocks.insert(u64::MAX);
    let need = blocks.len() as u32;
    let what = format!("appending to one file interleaves writes to {need} erase blocks: the data, and {} of metadata", need - 1);
    let Some(open) = p.open else { return };
    if open == 0 {
        return;
    }
    if need <= open {
        a.faults.push(fault(place, what, Weight::Harmless, format!("this card keeps {open} open"), None));
        return;
    }
    let text = match p.close_ms {
        Some(ms) => format!("this card keeps {open} open: each update of the metadata incurs at least one merge, {} ms", three(ms)),
        None => format!("this card keeps {open} open: each update of the metadata incurs at least one merge"),
    };
    a.faults.push(fault(place, what, Weight::Costs, text, p.close_ms));
}

/// Tables and root directory against the zone at the start of the card that takes random writes better than the rest.
fn zone(a: &mut Audit, v: &Volume, place: &str, p: &Penalties) {
    let tables = |z: &&super::disk::Zone| matches!(z.mark, 'F' | 'R');
    let Some(end) = v.zones.iter().filter(tables).map(|z| z.at.saturating_add(z.len)).max().filter(|_| p.fat_zone > 0) else { return };
    let first = v.zones.iter().filter(tables).map(|z| z.at).min().unwrap_or(0);
    let fast = Bytes(p.fat_zone);
    let times = p.zone_ms.map(|[inside, outside]| (three(inside), three(outside), outside - inside));
    if end <= p.fat_zone {
        let cost = times.map_or("random writes are cheap there".into(), |t| {
            format!("a random write takes {} ms there, {} ms in the rest of the card", t.0, t.1)
        });
        a.faults.push(fault(
            place,
            format!("its tables lie in the first {fast}, which this card writes fast"),
            Weight::Harmless,
            cost,
            None,
        ));
        return;
    }
    let part = if first >= p.fat_zone { "" } else { " in part" };
    let what =
        format!("its tables, at {} to {}, lie{part} outside the first {fast}, which this card writes fast", Bytes(first), Bytes(end));
    let advice = "`nandscope layout plan --for logger` prints a layout that has them there";
    let cost = times.as_ref().map_or(format!("each update of the tables takes longer than it must; {advice}"), |t| {
        format!("a random write takes {} ms where they are, {} ms in that zone; {advice}", t.1, t.0)
    });
    a.faults.push(fault(place, what, Weight::Costs, cost, times.map(|t| t.2)));
}

fn sections(a: &mut Audit, step: u64, off: u64, count: u64, place: &str, p: &Penalties) {
    let unit = a.grid.unit;
    let what = format!("{off} of {count} sections of {} do not begin on a boundary of {}", Bytes(step), Bytes(unit));
    let known = matches!(a.grid.source, Source::Found { .. } | Source::Given);
    match (known, p.close_ms) {
        (true, Some(ms)) => {
            let text =
                format!("cleaning a section leaves an erase block half used, which the card merges once more: {} ms each", three(ms));
            a.faults.push(fault(place, what, Weight::Costs, text, Some(ms)));
        }
        _ => {
            let text = "cleaning a section leaves an erase block half used; the price is not measured";
            a.faults.push(fault(place, what, Weight::Unknown, text, None));
        }
    }
}

/// For the reader: what the factory made.
pub fn factory_line(a: &Audit) -> Option<String> {
    let unit = Grid::convention(a.disk.size).unit;
    Some(match a.factory {
        Factory::Exact => "the layout is that of the SD convention, field by field".to_string(),
        Factory::Aligned => format!("the data area lies on the boundary unit of the SD convention ({})", Bytes(unit)),
        Factory::Lost => {
            format!("the layout is not that of the SD convention: its data area lies off the boundary unit of {}", Bytes(unit))
        }
        Factory::Other => return None,
    })
}

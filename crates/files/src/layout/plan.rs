//! From findings to exact commands, each with its reason, and never more precise than the findings are sure.

mod make;

use super::grid::{Grid, SURE, safe_unit};
use super::zone::{InZone, in_zone};
use crate::finding::{Findings, Quantity};
use crate::host::declared::Declared;
use crate::units::{Bytes, GIB, KIB, MIB, SECTOR};
pub(super) use make::part_name;
use make::{discards, fat, make, table, writers};
use nandscope_fat::Options;
use serde::Serialize;
use std::str::FromStr;

/// A file system of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Fs {
    Fat,
    Exfat,
    Ext4,
    F2fs,
    Btrfs,
    Swap,
}

/// What the card is for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// Boot partition with FAT32, root with ext4.
    RaspberryPi,
    /// One volume as the SD convention has it: a camera formats so, too.
    Camera,
    /// The same; the name of the association.
    SdAssociation,
    /// One volume for a few large files that grow.
    Logger,
    RootExt4,
    RootF2fs,
    RootBtrfs,
    /// File systems and their sizes in bytes; the last may take what is left.
    Custom(Vec<(Fs, Option<u64>)>),
}

/// Their names.
const PROFILES: [&str; 7] = ["raspberry-pi", "camera", "logger", "root-ext4", "root-f2fs", "root-btrfs", "sd-association"];

impl FromStr for Profile {
    type Err = String;

    /// A name, or "fat:512MiB,ext4" for partitions of one's own.
    fn from_str(s: &str) -> Result<Profile, String> {
        Ok(match s {
            "raspberry-pi" => Profile::RaspberryPi,
            "camera" => Profile::Camera,
            "sd-association" => Profile::SdAssociation,
            "logger" => Profile::Logger,
            "root-ext4" => Profile::RootExt4,
            "root-f2fs" => Profile::RootF2fs,
            "root-btrfs" => Profile::RootBtrfs,
            _ => {
                let usage = "there are raspberry-pi, camera, logger, root-ext4, root-f2fs, root-btrfs, sd-association, \
                             or partitions of your own such as fat:512MiB,ext4";
                let parts: Vec<&str> = s.split(',').collect();
                let mut out = vec![];
                let mut unsized_part = None;
                for (i, part) in parts.iter().enumerate() {
                    let (name, size) = part.split_once(':').map_or((*part, None), |(n, s)| (n, Some(s)));
                    let fs = match name {
                        "fat" | "fat16" | "fat32" => Fs::Fat,
                        "exfat" => Fs::Exfat,
                        "ext4" => Fs::Ext4,
                        "f2fs" => Fs::F2fs,
                        "btrfs" => Fs::Btrfs,
                        "swap" => Fs::Swap,
                        _ => {
                            let near = crate::device::nearest(s, PROFILES.into_iter());
                            let meant = near.map_or(String::new(), |n| format!(" did you mean {n}?"));
                            return Err(format!("'{name}' is no profile and no file system;{meant} {usage}"));
                        }
                    };
                    let size = size.map(str::parse::<Bytes>).transpose()?.map(|b| b.0);
                    if size.is_none() && i + 1 < parts.len() {
                        unsized_part = unsized_part.or(Some(*part));
                    }
                    out.push((fs, size));
                }
                if let Some(part) = unsized_part {
                    return Err(format!("'{part}' needs a size; only the last partition may take what is left"));
                }
                if out.len() > 4 {
                    return Err("an MBR has four partitions".into());
                }
                Profile::Custom(out)
            }
        })
    }
}

/// One command and why it is so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Step {
    pub command: String,
    pub why: String,
}

/// How one partition is best mounted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Mount {
    /// For people: the device and its options.
    pub command: String,
    /// `PART1`, `PART2`: as in the commands.
    pub device: String,
    /// As /etc/fstab has them.
    pub options: Vec<String>,
    pub why: String,
}

impl Mount {
    fn new(device: &str, options: &str, why: String) -> Mount {
        let each = options.split(',').map(str::to_string).collect();
        Mount { command: format!("{device}: {options}"), device: device.into(), options: each, why }
    }
}

/// One partition of a plan, in bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Planned {
    pub fs: Fs,
    pub start: u64,
    pub size: u64,
}

/// The whole plan.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Plan {
    /// What it rests on.
    pub basis: Vec<String>,
    pub parts: Vec<Planned>,
    pub steps: Vec<Step>,
    /// The same by another program.
    pub instead: Vec<Step>,
    /// Mount options, one partition each.
    pub mount: Vec<Mount>,
    pub notes: Vec<String>,
}

/// What is known of the card.
struct Known {
    /// Boundaries for partitions and data, and where the first lies.
    unit: u64,
    first: u64,
    /// The erase block itself, where sure.
    block: Option<u64>,
    write_unit: Option<u64>,
    /// AUs kept open for writes of any order, and for writes from front to back.
    open: Option<u64>,
    open_in_order: Option<u64>,
    close_ms: Option<f64>,
    /// Bytes from the start that take random writes well.
    zone: u64,
}

fn known(f: &Findings, size: u64, basis: &mut Vec<String>) -> Known {
    let value = |q| f.value(q, SURE);
    // Of a card of which nothing is known erase blocks may be larger than the convention asks for.
    let asked = Grid::convention(size).unit;
    let convention = asked.max(if size > GIB { 4 * MIB } else { MIB });
    let (unit, first, block) = match (Grid::found(f), f.get(Quantity::EraseBlock)) {
        (Ok(g), _) => {
            basis.push(g.to_string());
            (g.unit, g.first, Some(g.unit))
        }
        (Err(why), Some(doubtful)) if safe_unit(doubtful).is_some() => {
            let unit = safe_unit(doubtful).unwrap_or(convention);
            basis.push(format!("{why}; multiples of {} are right under every size the report allows", Bytes(unit)));
            (unit, 0, None)
        }
        (Err(why), _) => {
            let why = if f.0.is_empty() { "no report of this card was given".to_string() } else { why };
            basis.push(match convention == asked {
                true => format!("{why}; boundaries of {} by the SD convention for this size", Bytes(asked)),
                false => format!(
                    "{why}; the SD convention asks for boundaries of {} on a card of this size, and multiples of {} suit larger erase blocks, too",
                    Bytes(asked),
                    Bytes(convention)
                ),
            });
            (convention, 0, None)
        }
    };
    let write_unit = value(Quantity::WriteUnit).map(|v| v as u64).filter(|w| w.is_power_of_two() && (512..=16 * MIB).contains(w));
    match write_unit {
        Some(w) => basis.push(format!("write unit of {}, found", Bytes(w))),
        None => basis.push(match value(Quantity::WriteUnit) {
            Some(odd) => format!("write unit of {}, found; a stride is a power of two, so none is given", Bytes(odd as u64)),
            None => "the write unit is not known: no stride is given".into(),
        }),
    }
    let whole = |q: Quantity| value(q).map(|v| v as u64);
    let (scattered, open_in_order) = (whole(Quantity::OpenAusRandom), whole(Quantity::OpenAusLinear));
    let open = scattered.or(open_in_order);
    if let Some(n) = open {
        basis.push(match (n, open_in_order.filter(|o| *o > 0)) {
            (0, Some(o)) => format!("writes in random order incur a merge each; {o} {} can be open for writes in order", blocks(o)),
            (0, None) => "every write is a read-modify-write of an erase block".into(),
            (n, _) => format!("{n} {} can be open for writing at the same time", blocks(n)),
        });
    }
    let zone = f.get(Quantity::FatZone).filter(|z| z.confidence >= SURE).and_then(|z| z.number().or(z.at_least.map(|a| a.0)));
    let zone = zone.map_or(0, |z| z as u64);
    if zone > 0 {
        basis.push(format!("the first {} take random writes better than the rest, found", Bytes(zone)));
    }
    Known { unit, first, block, write_unit, open, open_in_order, close_ms: value(Quantity::CloseCostMs), zone }
}

fn blocks(n: u64) -> &'static str {
    if n == 1 { "erase block" } else { "erase blocks" }
}

impl Known {
    /// What a card does with writes to several places.
    fn keeps(&self, n: u64) -> String {
        match (n, self.open_in_order.filter(|o| *o > 0)) {
            (0, Some(_)) => "takes no write in random order without a merge".into(),
            (0, None) => "merges an erase block at every write".into(),
            (n, _) => format!("keeps {n} {} open", blocks(n)),
        }
    }

    fn up(&self, at: u64) -> u64 {
        self.first % self.unit + at.saturating_sub(self.first % self.unit).next_multiple_of(self.unit)
    }
    fn down(&self, at: u64) -> u64 {
        self.up((at + 1).saturating_sub(self.unit)).min(at)
    }
}

/// Makes the plan for a target of `size` bytes; `path` names it in the commands, `discard` says whether it takes discards, where
/// that is known.
///
/// # Errors
/// The partitions do not fit.
pub fn plan(profile: &Profile, findings: &Findings, size: u64, path: &str, discard: Option<bool>) -> Result<Plan, String> {
    let mut p = Plan { basis: vec![], parts: vec![], steps: vec![], instead: vec![], mount: vec![], notes: vec![] };
    let k = known(findings, size, &mut p.basis);
    let whole = |fs| vec![(fs, None)];
    let one_fat = if size > 32 * GIB { Fs::Exfat } else { Fs::Fat };
    let wanted = match profile {
        Profile::RaspberryPi => vec![(Fs::Fat, Some(512 * MIB)), (Fs::Ext4, None)],
        Profile::Camera | Profile::SdAssociation => {
            let l = nandscope_fat::plan(&Options::card(size)).map_err(|e| e.to_string())?;
            p.parts = vec![Planned { fs: one_fat, start: l.start(), size: l.volume.size }];
            p.steps.push(Step {
                command: format!("nandscope format {path} --consent ID"),
                why: "cameras expect the SD convention, and some write to the card by position: no other layout is safe for them".into(),
            });
            p.notes.push(
                "the SD Association's SD Memory Card Formatter makes the same layout, and so does the camera itself if it complies with the SD standard".into(),
            );
            if k.block.is_some_and(|b| !l.data_on_disk().is_multiple_of(b)) {
                let text = "the data area of the convention is not on a boundary of the erase block found; a camera will not mind, and would format it back";
                p.notes.push(text.into());
            }
            return Ok(p);
        }
        Profile::Logger => whole(one_fat),
        Profile::RootExt4 => whole(Fs::Ext4),
        Profile::RootF2fs => whole(Fs::F2fs),
        Profile::RootBtrfs => whole(Fs::Btrfs),
        Profile::Custom(parts) => parts.clone(),
    };
    let logger = *profile == Profile::Logger;
    let zoned = if logger { zoned(&mut p, &k, &wanted, size) } else { None };
    match &zoned {
        Some(z) => p.parts.push(Planned { fs: Fs::Fat, start: z.start, size: z.options.capacity }),
        None => place(&mut p, &k, &wanted, size)?,
    }
    table(&mut p, zoned.as_ref().map_or(k.unit, |z| z.unit), size, path);
    for (i, part) in p.parts.clone().iter().enumerate() {
        let name = part_name(path, i + 1);
        match &zoned {
            Some(z) => fat(&mut p, &z.options, z.unit, &name, Some(k.zone))?,
            None => make(&mut p, &k, part, &name, logger)?,
        }
    }
    writers(&mut p, &k, logger);
    p.notes.extend(discards(&p, discard));
    Ok(p)
}

/// The volume of a logger whose tables lie where the card takes random writes well: a log that grows changes them again and again.
fn zoned(p: &mut Plan, k: &Known, wanted: &[(Fs, Option<u64>)], size: u64) -> Option<InZone> {
    if k.zone == 0 {
        return None;
    }
    let cluster = Some(64 * KIB).filter(|c| size / c >= 65536 && k.unit.is_multiple_of(*c));
    let found = in_zone(k.zone, size, k.unit, k.first, k.write_unit.unwrap_or(0), cluster).filter(|_| wanted[0].0 == Fs::Fat);
    p.notes.push(match &found {
        Some(z) if k.block.is_some_and(|e| z.unit < e) => format!(
            "the FAT and the root directory lie in the first {}, which this card writes fast; the data area therefore begins inside an erase block, \
             on a multiple of {}: that costs nothing, since no cluster lies across two",
            Bytes(k.zone),
            Bytes(z.unit)
        ),
        Some(_) => format!("the FAT and the root directory lie in the first {}, which this card writes fast", Bytes(k.zone)),
        None => format!(
            "the first {} take random writes better than the rest, but are too small for the tables of a volume of this size: \
             a smaller volume (fat:SIZE) would have them there",
            Bytes(k.zone)
        ),
    });
    found
}

/// Starts and lengths on the boundaries.
fn place(p: &mut Plan, k: &Known, wanted: &[(Fs, Option<u64>)], size: u64) -> Result<(), String> {
    // The table needs the first sector; distributions leave a MiB for boot code.
    let mut at = k.up(k.unit.max(MIB));
    let gpt_tail = if size > 2048 * GIB { 33 * SECTOR } else { 0 };
    let end = k.down(size - gpt_tail.min(size));
    for &(fs, want) in wanted {
        let stop = match want {
            Some(n) => k.up(at.checked_add(n).ok_or("a partition larger than anything")?),
            None => end,
        };
        if stop > end || stop <= at {
            return Err(format!("the partitions do not fit {} with boundaries of {}", Bytes(size), Bytes(k.unit)));
        }
        p.parts.push(Planned { fs, start: at, size: stop - at });
        at = stop;
    }
    Ok(())
}

impl Plan {
    /// What the card says of itself, beside what was found, and what an eMMC lets nobody change back.
    pub fn declares(&mut self, d: &Declared, findings: &Findings) {
        match findings.value(Quantity::EraseBlock, SURE) {
            Some(found) => self.basis.push(d.beside_found(found as u64)),
            None => {
                self.basis
                    .extend(d.declared_au.as_ref().map(|au| format!("the card declares units of {} ({})", Bytes(au.bytes), au.source)));
            }
        }
        let Some(e) = &d.ext_csd else { return };
        let enhanced = e.enhanced_area.filter(|&b| b > 0);
        if let Some(area) = enhanced {
            self.notes.push(format!(
                "{} of this eMMC are an enhanced area (usually pseudo-SLC): what is written most belongs there",
                Bytes(area)
            ));
        } else if let Some(most) = e.enhanced_area_limit.filter(|&b| b > 0) {
            self.notes.push(format!(
                "this eMMC can make up to {} of itself an enhanced area (usually pseudo-SLC, faster and more durable, at twice the flash or more), once and \
                 for ever: `mmc enh_area set` of mmc-utils, before anything else is done to it",
                Bytes(most)
            ));
        }
        let boots = e.boots_from().map_or(String::new(), |b| format!("; it boots from {b}"));
        if let Some(boot) = e.boot_partition.filter(|&b| b > 0) {
            self.notes.push(format!("two boot partitions of {} lie outside this plan and are not touched{boots}", Bytes(boot)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Finding;

    fn findings(block: f64, confidence: f64, unit: Option<f64>, open: Option<f64>) -> Findings {
        let mut f = vec![Finding::decided(Quantity::EraseBlock, block, confidence).rivals([(2.0 * block, 0.2)])];
        f.extend(unit.map(|u| Finding::decided(Quantity::WriteUnit, u, 0.95)));
        f.extend(open.map(|n| Finding::decided(Quantity::OpenAusLinear, n, 0.9)));
        Findings(f)
    }

    fn commands(profile: &str, f: &Findings, size: u64) -> Vec<String> {
        plan(&profile.parse().unwrap(), f, size, "/dev/mmcblk0", None).unwrap().steps.into_iter().map(|s| s.command).collect()
    }

    #[test]
    fn what_an_emmc_declares_is_said() {
        use crate::host::declared::{RawRegisters, from_registers};
        use crate::host::registers::ext_csd::ExtCsdBytes;
        let with = |enhanced: u8| {
            let mut bytes = ExtCsdBytes::from(&[0; 512]);
            // Erase groups of 512 KiB, write-protect groups of 8 of them, 16 of those at most enhanced; boot partitions of 4 MiB.
            [(192, 7), (224, 1), (221, 8), (157, 16), (140, enhanced), (226, 32)].into_iter().for_each(|(at, v)| bytes.set(at, v));
            let (mut d, f) = (from_registers(RawRegisters::default()), findings(4194304.0, 0.97, None, None));
            d.ext_csd = Some(crate::host::registers::ext_csd::ExtCsd::decode(&bytes));
            let mut p = plan(&"root-ext4".parse().unwrap(), &f, 8 * GIB, "/dev/mmcblk0", None).unwrap();
            let (basis, notes) = (p.basis.len(), p.notes.len());
            p.declares(&d, &f);
            (p.basis[basis..].join("; "), p.notes[notes..].join("; "))
        };
        let (basis, notes) = with(0);
        assert_eq!(basis, "the card declares no unit to compare with");
        assert!(
            notes.contains("can make up to 64 MiB of itself an enhanced area") && notes.contains("two boot partitions of 4 MiB"),
            "{notes}"
        );
        assert!(with(2).1.starts_with("8 MiB of this eMMC are an enhanced area"), "{}", with(2).1);
    }

    #[test]
    fn parameters_come_from_the_findings() {
        let f = findings(4194304.0, 0.97, Some(16384.0), Some(2.0));
        let c = commands("root-ext4", &f, 8 * GIB);
        assert_eq!(c[0], "printf 'label: dos\\nstart=8192, size=16769024, type=83\\n' | sfdisk /dev/mmcblk0");
        assert_eq!(c[1], "mkfs.ext4 -b 4096 -E stride=4,stripe-width=1024,packed_meta_blocks=1 /dev/mmcblk0p1");
        assert_eq!(commands("root-f2fs", &f, 8 * GIB)[1], "mkfs.f2fs -s 2 -z 1 /dev/mmcblk0p1");
        let tlc = findings(3.0 * 1048576.0, 0.97, None, None);
        assert_eq!(commands("root-f2fs", &tlc, 8 * GIB)[1], "mkfs.f2fs -s 3 -z 1 /dev/mmcblk0p1");
        assert!(commands("logger", &findings(16777216.0, 0.9, None, None), 64 * GIB)[1].starts_with("mkfs.exfat -b 8388608 -c 131072"));
    }

    /// Never more precise than the confidence allows.
    #[test]
    fn doubt_leaves_parameters_out_and_coarsens_boundaries() {
        let f = findings(4194304.0, 0.7, None, None);
        let p = plan(&"root-ext4".parse().unwrap(), &f, 8 * GIB, "/dev/sdx", Some(true)).unwrap();
        assert_eq!(p.parts[0].start, 8 * MIB, "right for 4 and for 8 MiB");
        assert_eq!(p.steps[1].command, "mkfs.ext4 -b 4096 /dev/sdx1");
        assert!(p.basis[0].contains("70 % only"));
        let p = plan(&"root-f2fs".parse().unwrap(), &Findings::default(), 8 * GIB, "/dev/sdx", Some(true)).unwrap();
        assert_eq!(p.steps[1].command, "mkfs.f2fs /dev/sdx1");
        assert!(p.basis[0].contains("SD convention"));
    }

    #[test]
    fn the_journal_is_counted_against_open_aus() {
        let p = plan(&"root-ext4".parse().unwrap(), &findings(4194304.0, 0.9, None, Some(2.0)), 8 * GIB, "/dev/sdx", Some(true)).unwrap();
        assert!(p.notes.iter().any(|n| n.contains("need 4 open erase blocks; this card has 2")), "{:?}", p.notes);
        // Whether discards help depends on the reader.
        let note =
            |profile: &str, takes| plan(&profile.parse().unwrap(), &Findings::default(), 8 * GIB, "x", takes).unwrap().notes.join("\n");
        assert!(p.notes.iter().any(|n| n.contains("to each deletion; run fstrim")), "{:?}", p.notes);
        assert!(note("root-ext4", None).contains("where the card takes discards"));
        assert!(note("root-btrfs", Some(false)).contains("takes none") && note("root-f2fs", Some(true)).contains("the default of F2FS"));
        assert!(note("root-btrfs", Some(true)).contains("discard=async") && note("root-btrfs", None).contains("two minutes"));
    }

    /// A card that takes no scattered write without a merge still has an erase block open for writes in order.
    #[test]
    fn one_open_block_is_not_none() {
        let mut f = findings(4194304.0, 0.9, None, None);
        f.0.push(Finding::decided(Quantity::OpenAusRandom, 0.0, 0.99));
        f.0.push(Finding::decided(Quantity::OpenAusLinear, 1.0, 0.99));
        f.0.push(Finding::decided(Quantity::WriteUnit, 49152.0, 0.99));
        for profile in ["root-ext4", "root-f2fs", "root-btrfs"] {
            let p = plan(&profile.parse().unwrap(), &f, 8 * GIB, "/dev/sdx", Some(true)).unwrap();
            let all = format!("{p:?}");
            assert!(all.contains("1 erase block can be open for writes in order") && all.contains("write unit of 48 KiB, found"), "{all}");
            assert!(!all.contains("every write is") && !all.contains("keeps 0") && !all.contains("is not known"), "{all}");
        }
    }

    #[test]
    fn what_does_not_fit_is_an_error() {
        let none = Findings::default();
        assert!(plan(&"fat:3GiB,ext4:6GiB".parse().unwrap(), &none, 8 * GIB, "x", None).unwrap_err().contains("do not fit"));
        assert!(plan(&"root-ext4".parse().unwrap(), &none, MIB, "x", None).is_err());
        for wrong in ["", "ext5", "ext4,fat", "fat:1MiB,fat:1MiB,fat:1MiB,fat:1MiB,ext4", "fat:much"] {
            assert!(wrong.parse::<Profile>().is_err(), "{wrong}");
        }
    }
}

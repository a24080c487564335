//! `nandscope identify`: what a card declares about itself.

use super::args::Output;
use crate::device::{Target, missing};
use crate::host::declared::{self, Declared, DeclaredError, Kind, RawRegisters};
use crate::host::health::{self, HealthBlock};
use crate::host::live;
use crate::host::registers::erase::PreferredErase;
use crate::host::registers::ext_csd::ExtCsd;
use crate::host::registers::{Checksum, ext_csd_text, parse_array, parse_hex};
use crate::samples::import::given;
use crate::units::{Bytes, MIB};
use anyhow::{Context, anyhow, bail};
use clap::{Args, ValueEnum};
use std::fs;
use std::io::Read;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The bus a pasted register comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Bus {
    /// SD card.
    Sd,
    /// MultiMediaCard or eMMC.
    Mmc,
}

/// Say what a card declares: identity, capacity, AU, speed marks, erase units, health.
#[derive(Args, Debug)]
pub struct IdentifyArgs {
    /// Block device (/dev/mmcblk0, mmcblk0, /dev/sda), or any other target; needs no privileges, but the EXT_CSD of an eMMC is readable by root only
    #[arg(required_unless_present_any = ["cid", "csd", "scr", "ssr", "ext_csd", "dump", "health_block"])]
    #[arg(conflicts_with_all = ["cid", "csd", "scr", "ssr", "ext_csd", "dump"])]
    pub target: Option<String>,
    /// CID as 32 hex digits
    #[arg(long, value_name = "HEX", conflicts_with = "dump")]
    pub cid: Option<String>,
    /// CSD as 32 hex digits
    #[arg(long, value_name = "HEX", conflicts_with = "dump")]
    pub csd: Option<String>,
    /// SCR as 16 hex digits
    #[arg(long, value_name = "HEX", conflicts_with = "dump")]
    pub scr: Option<String>,
    /// SD status as 128 hex digits
    #[arg(long, value_name = "HEX", conflicts_with = "dump")]
    pub ssr: Option<String>,
    /// EXT_CSD: 512 bytes, a hex dump of them, or the text of `mmc extcsd read`; - for standard input
    #[arg(long, value_name = "FILE", conflicts_with = "dump")]
    pub ext_csd: Option<PathBuf>,
    /// Pasted text: head or grep over /sys/block/mmcblk0/device, udevadm info, `mmc extcsd read`; - for standard input
    #[arg(long, value_name = "FILE")]
    pub dump: Option<PathBuf>,
    /// Ask the card for its maker's health block (CMD56): one question chosen by the CID, two commands at the most; needs root and a
    /// slot of its own
    #[arg(long, requires = "target")]
    pub health: bool,
    /// A health block read elsewhere: 512 bytes, or hex digits of them; - for standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = ["target", "dump"])]
    pub health_block: Option<PathBuf>,
    /// Bus of the given registers, where they do not show it
    #[arg(long, value_enum, conflicts_with_all = ["target", "dump"])]
    pub bus: Option<Bus>,
    #[command(flatten)]
    out: Output,
    /// Show serial numbers (left out otherwise, also inside the CID)
    #[arg(long)]
    pub show_serial: bool,
    /// Where sysfs is, or a copy of it
    #[arg(long, value_name = "DIR", default_value = "/sys", hide = true)]
    pub sysfs: PathBuf,
}

/// Runs the subcommand.
pub fn run(args: IdentifyArgs) -> anyhow::Result<ExitCode> {
    let mut declared = collect(&args)?;
    if args.health {
        declared.health_block = Some(live::health_block(&declared).map_err(|why| anyhow!("no health block: {why}"))?);
    }
    let declared = if args.show_serial { declared } else { declared.without_serial() };
    let value = super::form("nandscope-identify/1", &declared);
    let to_stdout = args.out.put(|| Ok(format!("{value:#}\n")), || Ok(value.clone()))?;
    if !to_stdout {
        put!("{}", text(&declared));
    }
    Ok(ExitCode::SUCCESS)
}

/// Reads the declaration from wherever the arguments point.
pub fn collect(args: &IdentifyArgs) -> anyhow::Result<Declared> {
    if let Some(path) = &args.dump {
        let bytes = read(path)?;
        return declared::from_dump(&String::from_utf8_lossy(&given::plain(&bytes))).with_context(|| path.display().to_string());
    }
    if let Some(target) = &args.target {
        return from_target(target, &args.sysfs);
    }
    if args.ext_csd.is_some() && (args.ssr.is_some() || args.scr.is_some()) {
        return Err(super::misuse("--ssr and --scr belong to SD cards, --ext-csd to eMMC: give the registers of one card"));
    }
    let ext_csd = match &args.ext_csd {
        Some(path) => Some(ext_csd_text::parse(&read(path)?).with_context(|| path.display().to_string())?),
        None => None,
    };
    let raw = RawRegisters {
        kind: args.bus.map(|bus| if bus == Bus::Sd { Kind::Sd } else { Kind::Mmc }),
        cid: args.cid.as_deref().map(|t| parse_array("CID", t)).transpose()?,
        csd: args.csd.as_deref().map(|t| parse_array("CSD", t)).transpose()?,
        scr: args.scr.as_deref().map(|t| parse_array("SCR", t)).transpose()?,
        ssr: args.ssr.as_deref().map(|t| parse_array("SSR", t)).transpose()?,
        ext_csd,
    };
    raw.check()?;
    let mut declared = declared::from_registers(raw);
    if let Some(path) = &args.health_block {
        declared.health_block = Some(health_from(&read(path)?).with_context(|| path.display().to_string())?);
    }
    Ok(declared)
}

/// A health block as bytes or as hex digits, with lines of comment.
fn health_from(bytes: &[u8]) -> anyhow::Result<HealthBlock> {
    if bytes.len() == health::BLOCK {
        return Ok(health::decode(bytes)?);
    }
    let text = String::from_utf8_lossy(bytes);
    let digits: Vec<&str> = text.lines().filter(|l| !l.trim_start().starts_with('#')).collect();
    Ok(health::decode(&parse_hex("health block", &digits.join("\n"), health::BLOCK)?)?)
}

fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    /// No register dump is larger.
    const LIMIT: u64 = 16 * MIB;
    let mut bytes = vec![];
    if path == Path::new("-") {
        std::io::stdin().take(LIMIT).read_to_end(&mut bytes).context("cannot read standard input")?;
    } else {
        let file = fs::File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
        file.take(LIMIT).read_to_end(&mut bytes).with_context(|| format!("cannot read {}", path.display()))?;
    }
    Ok(bytes)
}

/// Is this file something that people read, and no image of a card?
fn is_text(path: &Path) -> anyhow::Result<bool> {
    let mut first = vec![];
    let file = fs::File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    file.take(4096).read_to_end(&mut first).with_context(|| format!("cannot read {}", path.display()))?;
    // The last character may be cut.
    let whole = std::str::from_utf8(&first).map_or_else(|e| e.error_len().is_none(), |_| true);
    Ok(whole && !first.contains(&0))
}

fn from_target(target: &str, sysfs: &Path) -> anyhow::Result<Declared> {
    let plain = |what: &str| {
        let mut nothing = declared::from_registers(RawRegisters::default());
        nothing.device = Some(target.to_string());
        nothing.notes = vec![what.to_string()];
        nothing
    };
    let path = match Target::of(target)? {
        Target::Program(_) => return Ok(plain("the protocol of programs and boards has no card registers: nothing is declared")),
        Target::Card(_) => return Ok(plain("a simulated target has no card registers: nothing is declared")),
        Target::Place(path) => path,
    };
    let Ok(meta) = fs::metadata(&path) else {
        if target.contains('/') {
            return Err(missing(target).into());
        }
        // Here the kernel's name of a disk will do.
        return live::declared(sysfs, target).map_err(|e| match e {
            DeclaredError::Sysfs(e) if e.kind() == std::io::ErrorKind::NotFound => missing(target).into(),
            e => e.into(),
        });
    };
    if meta.is_dir() {
        bail!("{target} is a folder; give the block device beneath it (findmnt -no SOURCE -T {target})");
    }
    if meta.is_file() && is_text(&path)? {
        return Err(super::misuse(format!(
            "{target} is a text and no card: registers copied from a card go to --dump, an EXT_CSD to --ext-csd; `nandscope infer` reads logs"
        )));
    }
    if !meta.file_type().is_block_device() {
        return Ok(plain(
            "a plain file has no card registers: nothing is declared (text copied from a card goes to --dump, an EXT_CSD to --ext-csd)",
        ));
    }
    let name = device_name(sysfs, meta.rdev()).or_else(|| path.file_name().map(|n| n.to_string_lossy().into_owned()));
    live::declared(sysfs, &name.unwrap_or_default()).with_context(|| target.to_string())
}

/// The kernel's name of a device number: the target of `<sysfs>/dev/block/MAJOR:MINOR`.
fn device_name(sysfs: &Path, number: u64) -> Option<String> {
    let major = (number >> 8 & 0xfff) | (number >> 32 & 0xffff_f000);
    let minor = (number & 0xff) | (number >> 12 & 0xffff_ff00);
    let link = sysfs.join(format!("dev/block/{major}:{minor}")).canonicalize().ok()?;
    Some(link.file_name()?.to_string_lossy().into_owned())
}

/// The declaration as aligned text.
pub fn text(d: &Declared) -> String {
    let mut rows: Vec<(&str, String)> = vec![];
    identity(d, &mut rows);
    sd_rows(d, &mut rows);
    if let Some(e) = &d.ext_csd {
        emmc_rows(e, &mut rows);
    }
    if let Some(h) = &d.health {
        let say = |label: &str, value: Option<String>| value.map(|v| format!("{label}: {v}"));
        let parts = [
            say("A", h.life_a.map(|l| l.to_string())),
            say("B", h.life_b.map(|l| l.to_string())),
            say("reserve", h.pre_eol.map(|p| p.to_string())),
        ];
        rows.push(("life time", parts.into_iter().flatten().collect::<Vec<_>>().join("; ")));
    }
    rows.extend(d.troubles.iter().map(|t| (if t.harmful { "known trouble" } else { "known" }, t.to_string())));
    if let Some(block) = &d.health_block {
        health_rows(block, &mut rows);
    }
    let mut out = headline(d) + "\n";
    for (label, value) in rows {
        out += &format!("  {label:<22}{value}\n");
    }
    if !d.read_from.is_empty() {
        out += &format!("  {:<22}{}\n", "registers", origins(d));
    }
    for warning in &d.warnings {
        out += &format!("  warning: {warning}\n");
    }
    for note in &d.notes {
        out += &format!("  note: {note}\n");
    }
    out
}

/// The health block of the maker, field by field.
fn health_rows(block: &HealthBlock, rows: &mut Vec<(&str, String)>) {
    rows.push(("health block", format!("layout {}", block.layout)));
    if let Some(life) = block.life_left_percent {
        rows.push(("life left", format!("{life} %")));
    }
    for e in &block.entries {
        rows.push(("", format!("{}: {}{}", e.title, e.value, if e.uncertain { " (read so by one program only)" } else { "" })));
    }
    rows.extend(block.doubts.iter().map(|d| ("doubt", d.clone())));
}

/// `CID, CSD from sysfs; SSR from the card (ACMD13)`.
fn origins(d: &Declared) -> String {
    let mut places: Vec<(&str, Vec<&str>)> = vec![];
    for (register, place) in &d.read_from {
        match places.iter_mut().find(|(p, _)| p == place) {
            Some((_, names)) => names.push(register),
            None => places.push((place, vec![register])),
        }
    }
    let parts: Vec<String> = places.iter().map(|(place, names)| format!("{} from {place}", names.join(", "))).collect();
    parts.join("; ")
}

/// Kind, name, maker and date in one line.
pub fn headline(d: &Declared) -> String {
    let kind = match d.kind {
        Kind::Sd => "SD card",
        Kind::Mmc if d.ext_csd.is_some() => "eMMC",
        Kind::Mmc => "eMMC or MMC",
        Kind::Usb => "USB storage",
        Kind::Other => "no card registers",
    };
    let mut line = d.device.as_ref().map_or(String::new(), |name| format!("{name}: ")) + kind;
    if let Some(name) = &d.name {
        line += &format!(" \"{name}\"");
    }
    if let Some(maker) = &d.maker {
        line += &format!(" by {maker}");
    }
    if let Some(date) = d.date {
        line += &format!(", made {date}");
    }
    line
}

fn size(bytes: u64) -> String {
    const GIB: u64 = 1 << 30;
    if bytes >= GIB { format!("{:.2} GiB ({bytes} bytes)", bytes as f64 / GIB as f64) } else { format!("{} ({bytes} bytes)", Bytes(bytes)) }
}

fn yes(flag: bool) -> &'static str {
    if flag { "yes" } else { "no" }
}

fn checksum(c: Checksum) -> &'static str {
    match c {
        Checksum::Good => "checksum right",
        Checksum::Absent => "checksum not delivered by the host",
        Checksum::Wrong { .. } => "checksum wrong",
    }
}

fn identity(d: &Declared, rows: &mut Vec<(&str, String)>) {
    if let Some(ids) = &d.ids {
        rows.push(("ids", ids.clone()));
    }
    if let Some(usb) = &d.usb {
        for (label, value) in [("vendor", usb.vendor()), ("release", usb.release.as_deref()), ("SCSI name", usb.inquiry.as_deref())] {
            rows.extend(value.map(|v| (label, v.to_string())));
        }
        rows.extend(usb.speed.as_ref().map(|s| ("bus speed", format!("{s} Mbit/s"))));
    }
    if let Some(cid) = &d.cid {
        rows.push(("revision", format!("{}.{} (hardware.firmware), CID {}", cid.hwrev, cid.fwrev, checksum(cid.checksum))));
    }
    if let Some(serial) = &d.serial {
        rows.push(("serial number", serial.clone()));
    }
    if let Some(csd) = &d.csd {
        let capacity = d.capacity.map_or("not in this register".to_string(), size);
        rows.push(("capacity", format!("{capacity}, {}", csd.family())));
        let clock = csd.tran_speed.map_or("reserved code".to_string(), |hz| format!("{} MHz", hz as f64 / 1e6));
        rows.push(("default bus clock", clock));
        if let Some(sector) = csd.erase_sector {
            let unit = if csd.erase_unit == Some(sector) { "the smallest erase" } else { "single blocks can be erased" };
            rows.push(("erase sector", format!("{} ({unit})", Bytes(sector))));
        }
        let protection = match (csd.permanent_write_protect, csd.temporary_write_protect) {
            (false, false) => "off",
            (true, _) => "permanent",
            (false, true) => "temporary",
        };
        rows.push(("write protection", protection.into()));
    } else if let Some(capacity) = d.capacity {
        rows.push(("capacity", size(capacity)));
    }
    match d.device_size {
        Some(bytes) if d.capacity != Some(bytes) => rows.push(("block device", size(bytes))),
        _ => {}
    }
    if matches!(d.kind, Kind::Sd | Kind::Mmc) {
        let label = if d.kind == Kind::Sd { "AU" } else { "erase group" };
        let missing = match d.kind {
            Kind::Sd if d.ssr.is_none() => "unknown: it stands in the SD status, which is not at hand",
            _ => "not declared",
        };
        rows.push((label, d.declared_au.as_ref().map_or(missing.into(), |au| format!("{} ({})", Bytes(au.bytes), au.source))));
    }
    if let Some(PreferredErase { bytes, why, .. }) = &d.preferred_erase_size {
        rows.push(("preferred_erase_size", format!("{}: {why}", Bytes(*bytes))));
    }
}

fn sd_rows(d: &Declared, rows: &mut Vec<(&str, String)>) {
    if let Some(scr) = &d.scr {
        let spec = scr.spec.as_deref().unwrap_or("unknown");
        rows.push(("SD specification", format!("{spec}, security {}", scr.security)));
        rows.push(("optional commands", scr.commands()));
        rows.push(("erased bits read as", scr.erased_bit.to_string()));
    }
    let Some(ssr) = d.ssr.as_ref().filter(|s| !s.is_blank()) else { return };
    let promise = ssr.promised_write_rate().map_or(String::new(), |r| format!(" (promises {r} MB/s written in sequence)"));
    rows.push(("speed", ssr.marks() + &promise));
    let movement = match ssr.performance_move {
        0 => "not given".to_string(),
        255 => "no move needed (infinite)".into(),
        n => format!("{n} MB/s"),
    };
    rows.push(("move performance", movement));
    rows.push((
        "erase time-out",
        match ssr.erase_seconds(u32::from(ssr.erase_size)) {
            Some(s) => format!("{s} s for {} AU ({} s + {} s)", ssr.erase_size, ssr.erase_timeout, ssr.erase_offset),
            None => "not given".into(),
        },
    ));
    if ssr.uhs_au.code != 0 {
        let meaning = ssr.uhs_au.bytes.map_or("not used by the specification".into(), |b| Bytes(b).to_string());
        rows.push(("AU in UHS modes", format!("{meaning} (code {})", ssr.uhs_au.code)));
    }
    if ssr.video_au_mib != 0 {
        rows.push(("AU for video", format!("{} MiB", ssr.video_au_mib)));
    }
    rows.push(("protected area", format!("{:#010x} as found", ssr.protected_area)));
    let queue = ssr.queue_depth.map_or("no command queue".into(), |depth| format!("command queue of {depth}"));
    rows.push(("queue and cache", format!("{queue}, {}", if ssr.cache { "cache" } else { "no cache" })));
    rows.push(("discard", format!("{}, full erase (FULE) {}", yes(ssr.discard), yes(ssr.fule))));
}

fn emmc_rows(e: &ExtCsd, rows: &mut Vec<(&str, String)>) {
    let mut push = |label, value: Option<String>| rows.extend(value.map(|v| (label, v)));
    let bytes = |b: Option<u64>| b.map(|b| Bytes(b).to_string());
    push("eMMC version", e.rev.map(|rev| format!("{} (EXT_CSD revision {rev})", e.version().unwrap_or("unknown"))));
    push("firmware", e.firmware.clone());
    push("write-protect group", bytes(e.write_protect_group));
    push("erase time-out", e.erase_timeout_ms.map(|ms| format!("{ms} ms for one erase group")));
    push("super page", bytes(e.super_page));
    push("large unit", bytes(e.large_unit));
    push(
        "native sector",
        e.native_sector
            .map(|n| format!("{n} B{}", e.data_sector.filter(|&d| d != n).map_or(String::new(), |d| format!(" ({d} B in use)")))),
    );
    let state = |on: Option<bool>| on.map_or("", |on| if on { ", on" } else { ", off" });
    push("cache", e.cache.map(|c| if c == 0 { "none".into() } else { format!("{}{}", Bytes(c), state(e.cache_on)) }));
    let sizes = [("read", e.optimal_read), ("write", e.optimal_write), ("trim", e.optimal_trim)];
    let sizes: Vec<String> = sizes.iter().filter_map(|(name, b)| b.map(|b| format!("{name} {}", Bytes(b)))).collect();
    push("optimal sizes", (!sizes.is_empty()).then(|| sizes.join(", ")));
    push("command queue", e.queue_depth.map(|n| if n == 0 { "none".into() } else { format!("{n} deep{}", state(e.queue_on)) }));
    push(
        "background operations",
        e.background_operations.map(|has| {
            let mode = match e.background_operations_on.map(|m| m & 3) {
                Some(1) => ", manual",
                Some(2) => ", automatic",
                Some(3) => ", manual and automatic",
                Some(_) => ", off",
                None => "",
            };
            format!("{}{}", if has { "supported" } else { "not supported" }, if has { mode } else { "" })
        }),
    );
    push("fastest bus mode", e.fastest_mode().map(|m| format!("{m}{}", if e.strobe == Some(true) { ", enhanced strobe" } else { "" })));
    push("boots from", e.boots_from().map(str::to_string));
    push("boot partitions", bytes(e.boot_partition).map(|b| format!("2 of {b}")));
    push("RPMB", bytes(e.rpmb));
    push("enhanced user area", e.enhanced_area.filter(|&b| b > 0).map(|b| Bytes(b).to_string()));
    push("trim, sanitize", e.trim.zip(e.sanitize).map(|(t, s)| format!("{}, {}", yes(t), yes(s))));
    push("erased bits read as", e.erased_bit.map(|b| b.to_string()));
    push("register", (e.known_bytes < 512).then(|| format!("only {} of 512 bytes given", e.known_bytes)));
}

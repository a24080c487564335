//! What a card on this machine declares: the registers that the kernel shows in sysfs and debugfs, and those it does not show
//! asked of the card itself.

use super::declared::{self, Builder, Declared, DeclaredError, Kind, RawRegisters, registers};
use super::health::{self, HealthBlock};
use super::registers::Date;
use super::registers::ext_csd::ExtCsdBytes;
use super::registers::sysfs;
use super::served::{self, Served};
use crate::device::mmc::{self, Register};
use rustix::fs::{Mode, OFlags, open};
use std::collections::BTreeMap;
use std::path::Path;

/// What the block device of this kernel name declares. Cards are asked on this machine only: a `root` other than `/sys` is a
/// copy of another one.
///
/// # Errors
/// There is no such block device.
pub fn declared(root: &Path, name: &str) -> Result<Declared, DeclaredError> {
    if root != Path::new("/sys") {
        return declared::from_sysfs(root, name);
    }
    let mut ask = |disk: &str, register| {
        // Opening without waiting for a medium, and without a claim: a card in use can be asked as well.
        let path = format!("/dev/{disk}");
        let file = open(&path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty());
        mmc::ask(file.map_err(|e| format!("cannot open {path}: {e}"))?, register)
    };
    let mut found = declared_on(root, name, Date::today(), Some(&mut ask))?;
    if let Some(server) = found.device.as_deref().and_then(served::by_name) {
        let Served { card, pid, .. } = &server;
        let gone = if server.alive() { "" } else { ", which is gone" };
        let text =
            format!("a simulated card ({card}), served by nandscope (process {pid}{gone}): it has no registers, nothing is declared");
        found.notes = vec![text];
    }
    Ok(found)
}

/// Asks the card for its maker's health block with the one question its identification allows: two commands at the most. Where the
/// question is one command, it is put twice, since some cards return rubbish that changes.
///
/// # Errors
/// In words why there is none: no SD card on a native host, a maker whose cards are not known to answer, no right to send commands,
/// no answer, or an answer that is no health block.
pub fn health_block(card: &Declared) -> Result<HealthBlock, String> {
    let (Some(cid), Kind::Sd, Some(disk)) = (&card.cid, card.kind, &card.device) else {
        return Err(
            "only an SD card in a slot of its own can be asked: a USB reader does not pass the command on, and an eMMC has its life \
                    time in the EXT_CSD"
                .into(),
        );
    };
    let none = || format!("no card of this maker ({:#04x}) is known to have one, and arguments are not tried at random", cid.manfid);
    let query = health::query_for(cid.manfid, cid.oemid).ok_or_else(none)?;
    let path = format!("/dev/{disk}");
    let ask = || {
        // As for registers; the kernel takes raw commands through a descriptor of the whole disk only.
        let file = open(&path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty());
        mmc::ask_maker(file.map_err(|e| format!("cannot open {path}: {e}"))?, query.first_write, query.argument)
    };
    let read = || health::decode_answer(&ask()?, &query).map_err(|e| e.to_string());
    let first = read()?;
    if query.first_write.is_none() {
        health::agree(&first, &read()?).map_err(|e| e.to_string())?;
    }
    Ok(first)
}

/// Sends the command for a register to the card behind the disk of this kernel name: its bytes, or why they cannot be had.
pub type Ask<'a> = dyn FnMut(&str, Register) -> Result<Vec<u8>, String> + 'a;

/// Declared from `<root>/class/block/<name>` on a given date; what the kernel does not show, the card is asked for.
///
/// # Errors
/// There is no such block device.
pub fn declared_on(root: &Path, name: &str, today: Date, ask: Option<&mut Ask>) -> Result<Declared, DeclaredError> {
    let mut attributes = sysfs::attributes(root, name)?;
    let (mut raw, problems) = registers(&attributes);
    let warnings = problems.iter().map(|p| format!("{p} (left out)")).collect();
    let shown = [("CID", raw.cid.is_some()), ("CSD", raw.csd.is_some()), ("SCR", raw.scr.is_some()), ("SSR", raw.ssr.is_some())];
    let mut read_from: BTreeMap<String, String> = shown.iter().filter(|s| s.1).map(|s| (s.0.to_string(), "sysfs".to_string())).collect();
    if raw.ext_csd.is_some() {
        read_from.insert("EXT_CSD".into(), "debugfs".into());
    }
    if let (Some(ask), Some(disk)) = (ask, attributes.commands.clone()) {
        let mut refused: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (register, label) in raw.missing() {
            match ask(&disk, register).and_then(|bytes| raw.put(register, &bytes)) {
                Ok(()) => drop(read_from.insert(label.into(), format!("the card ({})", register.command()))),
                Err(why) => refused.entry(why).or_default().push(format!("{label} ({})", register.command())),
            }
        }
        for (why, which) in refused {
            attributes.remarks.push(format!("{}: not shown by the kernel, and the card could not be asked: {why}", which.join(", ")));
        }
    }
    Ok(Builder { raw, attributes, today, read_from }.build(warnings))
}

impl RawRegisters {
    /// What this kind of card has and is not there. CID and CSD cannot be asked for while a card is in use.
    fn missing(&self) -> Vec<(Register, &'static str)> {
        let mut all = vec![];
        if self.kind == Some(Kind::Sd) && self.scr.is_none() {
            all.push((Register::Scr, "SCR"));
        }
        if self.kind == Some(Kind::Sd) && self.ssr.is_none() {
            all.push((Register::Ssr, "SSR"));
        }
        if self.kind == Some(Kind::Mmc) && self.ext_csd.is_none() {
            all.push((Register::ExtCsd, "EXT_CSD"));
        }
        all
    }

    fn put(&mut self, register: Register, bytes: &[u8]) -> Result<(), String> {
        let short = || format!("the answer has {} bytes", bytes.len());
        match register {
            Register::Scr => self.scr = Some(bytes.try_into().map_err(|_| short())?),
            Register::Ssr => self.ssr = Some(bytes.try_into().map_err(|_| short())?),
            Register::ExtCsd => self.ext_csd = Some(ExtCsdBytes::from(&<[u8; 512]>::try_from(bytes).map_err(|_| short())?)),
        }
        Ok(())
    }
}

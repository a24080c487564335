//! Raw MMC commands: writes whose form on the bus is chosen here and not by the kernel (C22 to C24).
//!
//! The block layer decides alone how a write reaches a card: CMD24 for one block, CMD23 + CMD25 where card and host know
//! CMD23, else CMD25 + CMD12. To compare those forms with the same data, `Port` sends them through `MMC_IOC_CMD` and
//! `MMC_IOC_MULTI_CMD`. It is reached only through `Commanded`, a device whose writes take the form that
//! [`Device::write_as`] asked for: so every raw write passes the same guard, budget and undo journal as any other write.
//!
//! What the kernel allows (read in the driver of 6.1, seen on 6.1.192):
//! - 512 KiB a command (`MMC_IOC_MAX_BYTES`), 255 commands an ioctl; root; whole disks, no partitions.
//! - After every ioctl command that writes, the driver polls CMD13 until the card is in the transfer state. An open-ended
//!   CMD25 leaves the card receiving, so the poll runs into its time-out and CMD12 is never sent. The card can be brought
//!   back by a CMD12 of its own, and the data are written; but the time is that of the poll, so no time is given: open-ended
//!   and ACMD23 transactions are [`DeviceError::Unsupported`] there. Kernels without that poll time them. Which kind it is,
//!   the first such transaction finds out.
//! - The driver takes any opcode 23 followed by CMD25 for CMD23, also after CMD55 (`mmc_blk_check_sbc`): ACMD23 would become
//!   CMD23 in silence. A CMD13 between the two keeps them apart.
//! - CID and CSD cannot be asked for while a card is selected: they come from sysfs, as read at power-up.

mod command;

use super::block::FileDevice;
use super::mmc_ioctl::Ioctl;
use super::{Access, Device, DeviceError, Fill, Geometry, Op, Result, Timed};
use crate::units::{Bytes, Nanos, SECTOR};
use command::CardFacts;
pub(super) use command::{Command, Payload, Wire};
use rustix::fd::OwnedFd;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::Path;

/// How a write of several blocks is put on the bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Multi {
    /// CMD24 for every block of 512 bytes.
    SingleBlocks,
    /// CMD25 with all blocks, ended by CMD12.
    OpenEnded,
    /// CMD23 with the number of blocks, then CMD25: ends by itself.
    PreDefined,
    /// ACMD23 with the number of blocks to erase ahead, then CMD25, ended by CMD12. SD only.
    Acmd23,
}

/// Why a host that knows no multi-block transactions refuses them.
pub const SINGLE_ONLY: &str = "the host of this model sends single blocks only";

impl Multi {
    pub const ALL: [Multi; 4] = [Multi::SingleBlocks, Multi::OpenEnded, Multi::PreDefined, Multi::Acmd23];

    /// The name for people, which also begins the reason when it is not supported.
    pub fn name(self) -> &'static str {
        match self {
            Multi::SingleBlocks => "single blocks (CMD24)",
            Multi::OpenEnded => "open-ended (CMD25, CMD12)",
            Multi::PreDefined => "pre-defined (CMD23, CMD25)",
            Multi::Acmd23 => "pre-erased (ACMD23, CMD25, CMD12)",
        }
    }

    /// `Unsupported` with the name of the form and the reason.
    pub fn unsupported(self, why: &str) -> DeviceError {
        DeviceError::Unsupported(format!("{}: {why}", self.name()))
    }
}

/// One write transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transaction {
    pub how: Multi,
    /// First byte; a multiple of 512.
    pub at: u64,
    /// Blocks of 512 bytes.
    pub blocks: u32,
    pub fill: Fill,
}

/// A register that a selected card sends when it is asked. CID and CSD are none of these: a card in use keeps them to itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Register {
    /// Configuration of an SD card, 8 bytes.
    Scr,
    /// Status of an SD card, 64 bytes.
    Ssr,
    /// 512 bytes of an MMC.
    ExtCsd,
}

impl Register {
    /// The command that asks for it.
    pub fn command(self) -> &'static str {
        match self {
            Register::Scr => "ACMD51",
            Register::Ssr => "ACMD13",
            Register::ExtCsd => "CMD8",
        }
    }
}

/// A card that takes commands: real or simulated.
pub trait CommandPort {
    /// Whether writes can take this form.
    ///
    /// # Errors
    /// `Unsupported` with the reason. Some reasons show only in the first transaction.
    fn supports(&self, how: Multi) -> Result<()>;

    /// Most blocks of 512 bytes one transaction can have.
    fn max_blocks(&self) -> u32;

    /// Sends one transaction and waits until the card is ready again.
    ///
    /// Returns the time from the first command to the ready card.
    ///
    /// # Errors
    /// `Unsupported` where this form cannot be sent or timed; `Io` where the card failed.
    fn transaction(&mut self, t: Transaction) -> Result<Nanos>;

    /// Switches the card's volatile write cache; returns whether it was on.
    ///
    /// # Errors
    /// `Unsupported` where there is none, or no command for it.
    fn cache(&mut self, on: bool) -> Result<bool> {
        let _ = on;
        Err(DeviceError::Unsupported("a write cache that can be switched".into()))
    }
}

/// A device that can also send its writes as raw commands.
pub(super) struct Commanded<D, P> {
    device: D,
    port: P,
    how: Option<Multi>,
    /// A timed write includes the flush of the card's volatile cache, as it does on the way through the kernel.
    flush: bool,
}

impl<D: Device, P: CommandPort> Commanded<D, P> {
    pub fn new(device: D, port: P, flush: bool) -> Commanded<D, P> {
        Commanded { device, port, how: None, flush }
    }
}

impl<D: Device, P: CommandPort> Device for Commanded<D, P> {
    fn geometry(&self) -> &Geometry {
        self.device.geometry()
    }

    fn access(&mut self, a: Access) -> Result<Timed> {
        let (Op::Write(fill), Some(how)) = (a.op, self.how) else { return self.device.access(a) };
        a.check(self.geometry())?;
        let blocks = u32::try_from(a.len / SECTOR).ok().filter(|&n| n <= self.port.max_blocks());
        let Some(blocks) = blocks else {
            let most = Bytes(u64::from(self.port.max_blocks()) * SECTOR);
            return Err(DeviceError::OutOfBounds(format!("a transaction of {} is longer than the {most} that can be sent", Bytes(a.len))));
        };
        let took = self.port.transaction(Transaction { how, at: a.at, blocks, fill })?;
        let mut timed = Timed { start: self.device.now() - took, took };
        if self.flush {
            timed.took = timed.took + self.device.access(Access { op: Op::Flush, at: 0, len: 0 })?.took;
        }
        Ok(timed)
    }

    fn batch(&mut self, all: &[Access], depth: u32) -> Result<Vec<Timed>> {
        match self.how {
            None => self.device.batch(all, depth),
            Some(_) => all.iter().map(|&a| self.access(a)).collect(),
        }
    }

    fn now(&self) -> Nanos {
        self.device.now()
    }

    fn idle(&mut self, d: Nanos) {
        self.device.idle(d);
    }

    fn load(&mut self, at: u64, into: &mut [u8]) -> Result<()> {
        self.device.load(at, into)
    }

    fn store(&mut self, at: u64, from: &[u8]) -> Result<()> {
        self.device.store(at, from)
    }
    fn discard_securely(&mut self, at: u64, len: u64) -> Result<()> {
        self.device.discard_securely(at, len)
    }

    fn get(&mut self, at: u64, into: &mut [u8]) -> Result<Timed> {
        self.device.get(at, into)
    }

    fn access_of(&mut self, a: Access, bytes: &[u8]) -> Result<Option<Timed>> {
        match self.how {
            None => self.device.access_of(a, bytes),
            Some(_) => Ok(None),
        }
    }

    fn put(&mut self, at: u64, from: &[u8]) -> Result<Timed> {
        match self.how {
            None => self.device.put(at, from),
            Some(how) => Err(how.unsupported("a raw transaction takes a fill, not bytes")),
        }
    }

    fn write_as(&mut self, how: Option<Multi>) -> Result<()> {
        if let Some(how) = how {
            self.port.supports(how)?;
        }
        self.how = how;
        Ok(())
    }

    fn switch_cache(&mut self, on: bool) -> Result<bool> {
        // What is in it reaches the medium first.
        self.device.access(Access { op: Op::Flush, at: 0, len: 0 })?;
        self.port.cache(on)
    }
}

/// Blocks one command can carry: the kernel takes 512 KiB.
const MOST_BLOCKS: u32 = (super::mmc_ioctl::MAX_BYTES / SECTOR) as u32;
/// Milliseconds for the poll after a CMD25 that CMD12 must end. A kernel that polls there fails after that time.
const OPEN_ENDED_MS: u32 = 100;
/// Error bits of R1 that mean that a write went wrong (SD Physical Layer 4.10.1, JESD84-B51 6.13): address out of range or
/// misaligned, block length, write protection, locked card, ECC, controller, general error.
const FAILED: u32 = 1 << 31 | 1 << 30 | 1 << 29 | 1 << 26 | 1 << 24 | 1 << 21 | 1 << 20 | 1 << 19;
/// CURRENT_STATE of R1 while a card waits for data.
const RECEIVING: u32 = 6;
/// Bytes of the EXT_CSD: CACHE_CTRL, and the first of CACHE_SIZE (JESD84-B51 7.4).
const CACHE_CTRL: usize = 33;
const CACHE_SIZE: usize = 249;
const TIMED_OUT: i32 = libc::ETIMEDOUT;

/// A card behind a wire.
pub(super) struct Port<W> {
    wire: W,
    card: CardFacts,
    /// Why open-ended transactions cannot be timed here, once that is known.
    open_ended: Option<&'static str>,
    data: Vec<u8>,
}

impl<W: Wire> Port<W> {
    pub fn new(wire: W, card: CardFacts) -> Port<W> {
        Port { wire, card, open_ended: None, data: vec![] }
    }

    fn status(&mut self) -> io::Result<u32> {
        let mut all = [Command::new(13, u32::from(self.card.rca) << 16)];
        self.wire.send(&mut all)?;
        Ok(all[0].response)
    }

    /// Brings a card that still waits for data back. True where it did.
    fn stop_if_receiving(&mut self) -> bool {
        let receiving = self.status().is_ok_and(|s| s >> 9 & 0xf == RECEIVING);
        if receiving {
            // Whether this helped, the next command shows.
            let _ = self.wire.send(&mut [stop()]);
        }
        receiving
    }
}

fn stop<'a>() -> Command<'a> {
    Command { busy: true, ..Command::new(12, 0) }
}

impl<W: Wire> CommandPort for Port<W> {
    fn supports(&self, how: Multi) -> Result<()> {
        let why = match how {
            _ if self.card.by_sector.is_none() => "whether this MMC counts addresses in blocks or in bytes is not known from here",
            Multi::PreDefined if !self.card.cmd23 => "the card does not offer CMD23",
            Multi::Acmd23 if !self.card.sd => "ACMD23 is a command of SD cards and this is an MMC",
            Multi::OpenEnded | Multi::Acmd23 => match self.open_ended {
                Some(why) => why,
                None => return Ok(()),
            },
            _ => return Ok(()),
        };
        Err(how.unsupported(why))
    }

    fn max_blocks(&self) -> u32 {
        MOST_BLOCKS
    }

    fn cache(&mut self, on: bool) -> Result<bool> {
        let none = |why: &str| Err(DeviceError::Unsupported(why.into()));
        if self.card.sd {
            return none("the write cache of an SD card: the kernel alone switches it, through registers that no raw command may reach");
        }
        let state = |wire: &mut W| {
            request(wire, Register::ExtCsd).map_err(|why| DeviceError::Unsupported(format!("a switch of the write cache: {why}")))
        };
        let before = state(&mut self.wire)?;
        if before[CACHE_SIZE..CACHE_SIZE + 4].iter().all(|&b| b == 0) {
            return none("this eMMC declares no write cache");
        }
        let was = before[CACHE_CTRL] & 1 == 1;
        if was == on {
            return Ok(was);
        }
        // SWITCH, access mode "write byte" (JESD84-B51 6.10.4).
        let argument = 3 << 24 | (CACHE_CTRL as u32) << 16 | u32::from(on) << 8;
        let sent = self.wire.send(&mut [Command { busy: true, timeout_ms: 1000, ..Command::new(6, argument) }]);
        sent.map_err(|e| match not_taken(&e) {
            Some(why) => DeviceError::Unsupported(format!("a switch of the write cache: {why}")),
            None => DeviceError::Io { op: "switch of the write cache", at: 0, len: 0, source: e },
        })?;
        if (state(&mut self.wire)?[CACHE_CTRL] & 1 == 1) != on {
            return none("the card did not switch its write cache");
        }
        Ok(was)
    }

    fn transaction(&mut self, t: Transaction) -> Result<Nanos> {
        self.supports(t.how)?;
        let Transaction { how, at, blocks, fill } = t;
        let len = u64::from(blocks) * SECTOR;
        let failed = |e: io::Error| DeviceError::Io { op: "raw write", at, len, source: e };
        let beyond = || DeviceError::OutOfBounds(format!("{len} bytes at {at} cannot be addressed by this card"));
        let unit = if self.card.by_sector == Some(true) { SECTOR } else { 1 };
        u32::try_from((at + len) / unit).map_err(|_| beyond())?;
        let address = |block: u64| ((at + block * SECTOR) / unit) as u32;
        let mut data = std::mem::take(&mut self.data);
        data.resize(len as usize, 0);
        fill.render(at, &mut data);
        let rca = u32::from(self.card.rca) << 16;
        let mut commands: Vec<Command> = match how {
            Multi::SingleBlocks => {
                data.chunks(SECTOR as usize).enumerate().map(|(i, b)| Command::new(24, address(i as u64)).out(b)).collect()
            }
            Multi::PreDefined => vec![Command::new(23, blocks), Command::new(25, address(0)).out(&data)],
            Multi::OpenEnded => vec![Command { timeout_ms: OPEN_ENDED_MS, ..Command::new(25, address(0)).out(&data) }, stop()],
            Multi::Acmd23 => vec![
                Command::new(23, blocks).app(),
                Command::new(13, rca),
                Command { timeout_ms: OPEN_ENDED_MS, ..Command::new(25, address(0)).out(&data) },
                stop(),
            ],
        };
        let mut took = Nanos(0);
        let mut sent = Ok(());
        for part in commands.chunks_mut(super::mmc_ioctl::MAX_COMMANDS) {
            match self.wire.send(part) {
                Ok(t) => took = took + t,
                Err(e) => {
                    sent = Err(e);
                    break;
                }
            }
        }
        let bad = commands.iter().filter(|c| matches!(c.payload, Payload::Out(_))).map(|c| c.response & FAILED).fold(0, |a, b| a | b);
        drop(commands);
        self.data = data;
        match sent {
            Ok(()) if bad != 0 => Err(failed(io::Error::other(format!("the card reports an error, status bits {bad:#010x}")))),
            Ok(()) => Ok(took),
            Err(e) => {
                let receiving = self.stop_if_receiving();
                match e.raw_os_error() {
                    Some(TIMED_OUT) if receiving && matches!(how, Multi::OpenEnded | Multi::Acmd23) => {
                        let why = "this kernel waits after CMD25 for a card that itself waits for CMD12, so its time cannot be taken";
                        self.open_ended = Some(why);
                        Err(how.unsupported(why))
                    }
                    _ => Err(not_taken(&e).map_or_else(|| failed(e), |why| how.unsupported(why))),
                }
            }
        }
    }
}

/// Why the kernel takes no such command, where it says so.
fn not_taken(e: &io::Error) -> Option<&'static str> {
    match e.raw_os_error()? {
        libc::EPERM | libc::EACCES => Some("raw commands need root (CAP_SYS_RAWIO) and the whole disk"),
        libc::ENOTTY | libc::ENOSYS | libc::EOPNOTSUPP => Some("this kernel or device has no raw MMC commands"),
        libc::EOVERFLOW => Some("the kernel does not take that much data in one command"),
        _ => None,
    }
}

/// The bytes of a register, or in words why they cannot be had.
fn request(wire: &mut impl Wire, register: Register) -> std::result::Result<Vec<u8>, String> {
    let (opcode, app, len) = match register {
        Register::Scr => (51, true, 8),
        Register::Ssr => (13, true, 64),
        Register::ExtCsd => (8, false, 512),
    };
    let mut bytes = vec![0; len];
    let command = Command { app, ..Command::new(opcode, 0).one_block(&mut bytes) };
    match wire.send(&mut [command]) {
        Ok(_) => Ok(bytes),
        Err(e) if e.raw_os_error() == Some(TIMED_OUT) => Err("the card does not answer".into()),
        Err(e) => Err(not_taken(&e).map_or_else(|| e.to_string(), str::to_string)),
    }
}

/// The device with raw commands, where it is the whole disk of an SD or MMC card; else as it was. `sys` is the sysfs directory
/// of the card.
pub(super) fn with_commands(device: FileDevice, sys: &Path) -> Box<dyn Device + Send> {
    match (CardFacts::read(sys, device.geometry().size), device.descriptor()) {
        (Some(card), Ok(file)) => {
            let flush = device.flush_writes;
            Box::new(Commanded::new(device, Port::new(Ioctl::new(file), card), flush))
        }
        _ => Box::new(device),
    }
}

/// Asks the card behind an MMC block device, whose whole disk `file` is (open in any way), for a register. Changes nothing.
///
/// # Errors
/// In words why it cannot be had: no right to send commands, no MMC, a card that does not answer.
pub fn ask(file: OwnedFd, register: Register) -> std::result::Result<Vec<u8>, String> {
    request(&mut Ioctl::new(file), register)
}

/// Reads the block that a card returns to CMD56 (GEN_CMD) with `argument`; `first_write` is the argument of a CMD56 that carries a
/// block of zeros to the card first, which some makers' cards ask for. Two commands at the most, nothing is tried twice: a host
/// may time out on the first command and the second works all the same.
///
/// # Errors
/// In words why there is no block: no right to send commands, no MMC, a card that does not answer.
pub fn ask_maker(file: OwnedFd, first_write: Option<u32>, argument: u32) -> std::result::Result<Vec<u8>, String> {
    general(&mut Ioctl::new(file), first_write, argument)
}

/// As [`ask_maker`], over any wire.
fn general(wire: &mut impl Wire, first_write: Option<u32>, argument: u32) -> std::result::Result<Vec<u8>, String> {
    /// Some cards need up to a second between the two commands; 100 ms was not enough for one of Kingston's.
    const BETWEEN: std::time::Duration = std::time::Duration::from_secs(1);
    const SELECT: u32 = 56;
    let refused = |e: &io::Error| not_taken(e).map(str::to_string);
    if let Some(argument) = first_write {
        let zeros = [0; SECTOR as usize];
        let write = Command { timeout_ms: 1000, ..Command::new(SELECT, argument).out(&zeros) };
        if let Err(e) = wire.send(&mut [write])
            && let Some(why) = refused(&e)
        {
            return Err(why);
        }
        std::thread::sleep(BETWEEN);
    }
    let mut block = vec![0; SECTOR as usize];
    let read = Command { timeout_ms: 1000, ..Command::new(SELECT, argument).one_block(&mut block) };
    match wire.send(&mut [read]) {
        Ok(_) => Ok(block),
        Err(e) if e.raw_os_error() == Some(TIMED_OUT) => Err("the card does not answer to CMD56: it has no health block".into()),
        Err(e) => Err(refused(&e).unwrap_or_else(|| e.to_string())),
    }
}

#[cfg(test)]
#[path = "mmc_tests.rs"]
mod tests;

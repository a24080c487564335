//! One command of the MMC bus, what carries it, and what must be known of a card to address it.

use crate::units::{Nanos, SECTOR};
use std::io;
use std::path::Path;

/// The data of a command.
pub(in crate::device) enum Payload<'a> {
    None,
    In(&'a mut [u8]),
    Out(&'a [u8]),
}

/// One command of the MMC bus.
pub(in crate::device) struct Command<'a> {
    pub opcode: u32,
    pub arg: u32,
    /// Preceded by CMD55.
    pub app: bool,
    /// R1b: the card may be busy after it.
    pub busy: bool,
    /// Bytes of a data block.
    pub block_size: u32,
    pub payload: Payload<'a>,
    /// Milliseconds the kernel waits for the card to be ready; 0 for its default.
    pub timeout_ms: u32,
    /// First word of the response. After a write this is every status the kernel polled, or-ed.
    pub response: u32,
}

impl<'a> Command<'a> {
    pub fn new(opcode: u32, arg: u32) -> Command<'a> {
        let (payload, timeout_ms) = (Payload::None, 0);
        Command { opcode, arg, app: false, busy: false, block_size: SECTOR as u32, payload, timeout_ms, response: 0 }
    }

    pub fn app(self) -> Command<'a> {
        Command { app: true, ..self }
    }

    pub fn out(mut self, data: &'a [u8]) -> Command<'a> {
        self.payload = Payload::Out(data);
        self
    }

    pub fn one_block(mut self, into: &'a mut [u8]) -> Command<'a> {
        self.block_size = into.len() as u32;
        self.payload = Payload::In(into);
        self
    }

    /// Response and command types in the kernel's bits (`MMC_RSP_*`, `MMC_CMD_*` of `linux/mmc/core.h`): R1 or R1b, also as SPI
    /// hosts want it, with or without data.
    pub fn flags(&self) -> u32 {
        const PRESENT: u32 = 1;
        const CRC: u32 = 1 << 2;
        const BUSY: u32 = 1 << 3;
        const OPCODE: u32 = 1 << 4;
        const WITH_DATA: u32 = 1 << 5;
        const SPI_S1: u32 = 1 << 7;
        const SPI_BUSY: u32 = 1 << 10;
        let data = if matches!(self.payload, Payload::None) { 0 } else { WITH_DATA };
        PRESENT | CRC | OPCODE | SPI_S1 | data | if self.busy { BUSY | SPI_BUSY } else { 0 }
    }
}

/// What carries commands to a card.
pub(in crate::device) trait Wire {
    /// Sends the commands in one go; returns the time it took.
    fn send(&mut self, all: &mut [Command]) -> io::Result<Nanos>;
}

/// What must be known of a card to address it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::device) struct CardFacts {
    /// SD, else MMC.
    pub sd: bool,
    /// Relative card address.
    pub rca: u16,
    /// Addresses count blocks of 512 bytes, else bytes; None where that cannot be told, and then nothing is sent.
    pub by_sector: Option<bool>,
    /// Takes CMD23.
    pub cmd23: bool,
}

impl CardFacts {
    /// Reads them from the sysfs directory of a card of `size` bytes, `/sys/block/mmcblkN/device`. None where this is no SD or
    /// MMC card.
    pub fn read(dir: &Path, size: u64) -> Option<CardFacts> {
        let text = |name: &str| std::fs::read_to_string(dir.join(name)).ok().map(|t| t.trim().to_string());
        let number = |name: &str| u32::from_str_radix(text(name)?.trim_start_matches("0x"), 16).ok();
        let sd = match text("type")?.as_str() {
            "SD" => true,
            "MMC" => false,
            _ => return None,
        };
        let csd: [u8; 16] = hex(&text("csd")?)?;
        let scr: Option<[u8; 8]> = text("scr").and_then(|t| hex(&t));
        // SD: CSD version 2 and later means blocks. MMC: bytes where the CSD gives the size (C_SIZE), blocks above 2 GiB (JESD84-B51
        // 6.4, and the kernel's rule). Between lies what the card answered at power-up, which sysfs does not show: its `ocr` is
        // what the host asked for.
        let c_size = u32::from(csd[6] & 3) << 10 | u32::from(csd[7]) << 2 | u32::from(csd[8]) >> 6;
        let by_sector = match (sd, c_size) {
            (true, _) => Some(csd[0] >> 6 > 0),
            (false, 0xfff) => (size > 2 << 30).then_some(true),
            (false, _) => Some(false),
        };
        // SD: CMD_SUPPORT in the SCR, bit 33. MMC: since version 3.1.
        let cmd23 = if sd { scr.is_some_and(|s| s[3] & 2 != 0) } else { csd[0] >> 2 & 0xf >= 3 };
        Some(CardFacts { sd, rca: number("rca")? as u16, by_sector, cmd23 })
    }
}

fn hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digits: Vec<u8> = text.chars().map(|c| c.to_digit(16).map(|d| d as u8)).collect::<Option<_>>()?;
    if digits.len() != 2 * N {
        return None;
    }
    Some(std::array::from_fn(|i| digits[2 * i] << 4 | digits[2 * i + 1]))
}

//! The numbers of the protocol, all big-endian on the wire, and how to read and write them.

use std::io::{self, Read};

pub const GREETING: u64 = 0x4e42_444d_4147_4943;
pub const OPTION: u64 = 0x4948_4156_454f_5054;
pub const OPTION_REPLY: u64 = 0x0003_e889_0455_65a9;
pub const REQUEST: u32 = 0x2560_9513;
pub const REPLY: u32 = 0x6744_6698;

/// Handshake flags, of the server and of the client alike.
pub const FIXED_NEWSTYLE: u16 = 1;
pub const NO_ZEROES: u16 = 2;

pub mod option {
    pub const EXPORT_NAME: u32 = 1;
    pub const ABORT: u32 = 2;
    pub const LIST: u32 = 3;
    pub const INFO: u32 = 6;
    pub const GO: u32 = 7;
}

pub mod reply {
    pub const ACK: u32 = 1;
    pub const SERVER: u32 = 2;
    pub const INFO: u32 = 3;
    pub const UNSUPPORTED: u32 = (1 << 31) | 1;
    pub const INVALID: u32 = (1 << 31) | 3;
    pub const UNKNOWN: u32 = (1 << 31) | 6;
    pub const BLOCK_SIZE_REQUIRED: u32 = (1 << 31) | 8;
    pub const TOO_BIG: u32 = (1 << 31) | 9;
}

pub mod info {
    pub const EXPORT: u16 = 0;
    pub const NAME: u16 = 1;
    pub const DESCRIPTION: u16 = 2;
    pub const BLOCK_SIZE: u16 = 3;
}

/// What the export can do: has flags, flush, FUA, trim, write-zeroes, several connections.
pub const EXPORT_FLAGS: u16 = 1 | 4 | 8 | 32 | 64 | 256;

pub mod command {
    pub const READ: u16 = 0;
    pub const WRITE: u16 = 1;
    pub const DISCONNECT: u16 = 2;
    pub const FLUSH: u16 = 3;
    pub const TRIM: u16 = 4;
    pub const WRITE_ZEROES: u16 = 6;
    /// Command flag: durable when answered.
    pub const FUA: u16 = 1;
    /// Command flag of write-zeroes: no trim instead.
    pub const NO_HOLE: u16 = 2;
}

pub mod error {
    pub const PERMISSION: u32 = 1;
    pub const IO: u32 = 5;
    pub const INVALID: u32 = 22;
    pub const NO_SPACE: u32 = 28;
    pub const OVERFLOW: u32 = 75;
}

/// Largest payload in bytes.
pub const LARGEST: u32 = 32 << 20;

fn bytes<const N: usize>(input: &mut impl Read) -> io::Result<[u8; N]> {
    let mut b = [0; N];
    input.read_exact(&mut b)?;
    Ok(b)
}

pub fn u16(input: &mut impl Read) -> io::Result<u16> {
    bytes(input).map(u16::from_be_bytes)
}

pub fn u32(input: &mut impl Read) -> io::Result<u32> {
    bytes(input).map(u32::from_be_bytes)
}

pub fn u64(input: &mut impl Read) -> io::Result<u64> {
    bytes(input).map(u64::from_be_bytes)
}

/// The error that ends a connection.
pub fn nonsense(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

//! The commands of a client that has chosen the card.

use super::wire::{self, LARGEST, REPLY, REQUEST, command, error, nonsense};
use crate::serve::{Due, Engine, Refused};
use rustix::io::Errno;
use std::io::{self, Read, Write};

/// Bytes of the head of a reply; the data of a read follows it in the same buffer, so that both go out at once.
const HEAD: usize = 16;
/// Zeroes are written in pieces of this size, in bytes.
const PIECE: u64 = 4 << 20;

struct Command {
    flags: u16,
    kind: u16,
    cookie: u64,
    at: u64,
    len: u32,
}

/// Serves until the client leaves.
///
/// # Errors
/// The connection broke, or the client does not keep to the protocol.
pub fn serve(input: &mut impl Read, output: &mut impl Write, engine: &Engine) -> io::Result<()> {
    let mut buffer = vec![0; HEAD];
    loop {
        if wire::u32(input)? != REQUEST {
            return Err(nonsense("request magic"));
        }
        let c = Command {
            flags: wire::u16(input)?,
            kind: wire::u16(input)?,
            cookie: wire::u64(input)?,
            at: wire::u64(input)?,
            len: wire::u32(input)?,
        };
        if c.kind == command::DISCONNECT {
            return Ok(());
        }
        let payload = if c.kind == command::WRITE { c.len } else { 0 };
        if payload > LARGEST {
            return Err(nonsense("payload length"));
        }
        let data = if c.kind == command::READ && c.len <= LARGEST { c.len } else { payload };
        buffer.resize(HEAD + data as usize, 0);
        if payload > 0 {
            input.read_exact(&mut buffer[HEAD..])?;
        }
        let outcome = run(&c, &mut buffer[HEAD..], engine);
        let code = match outcome {
            Ok(due) => {
                engine.wait(due);
                0
            }
            Err(Failure::Card(Refused { errno, due })) => {
                engine.wait(due);
                code(errno, &c, engine)
            }
            Err(Failure::Client(code)) => code,
        };
        buffer[..4].copy_from_slice(&REPLY.to_be_bytes());
        buffer[4..8].copy_from_slice(&code.to_be_bytes());
        buffer[8..HEAD].copy_from_slice(&c.cookie.to_be_bytes());
        let end = if c.kind == command::READ && code == 0 { buffer.len() } else { HEAD };
        output.write_all(&buffer[..end])?;
    }
}

enum Failure {
    Card(Refused),
    Client(u32),
}

impl From<Refused> for Failure {
    fn from(r: Refused) -> Failure {
        Failure::Card(r)
    }
}

fn run(c: &Command, data: &mut [u8], engine: &Engine) -> Result<Due, Failure> {
    let allowed = match c.kind {
        command::WRITE_ZEROES => command::FUA | command::NO_HOLE,
        _ => command::FUA,
    };
    if c.flags & !allowed != 0 {
        return Err(Failure::Client(error::INVALID));
    }
    let due = match c.kind {
        command::READ if c.len > LARGEST => return Err(Failure::Client(error::OVERFLOW)),
        command::READ => return Ok(engine.read(c.at, data)?),
        command::WRITE => engine.write(c.at, data)?,
        command::FLUSH if c.at != 0 || c.len != 0 => return Err(Failure::Client(error::INVALID)),
        command::FLUSH => return Ok(engine.flush()?),
        command::TRIM => engine.discard(c.at, c.len.into())?,
        command::WRITE_ZEROES if c.flags & command::NO_HOLE == 0 => engine.discard(c.at, c.len.into())?,
        command::WRITE_ZEROES => zeroes(c.at, c.len.into(), engine)?,
        _ => return Err(Failure::Client(error::INVALID)),
    };
    if c.flags & command::FUA == 0 { Ok(due) } else { Ok(engine.flush()?) }
}

fn zeroes(at: u64, len: u64, engine: &Engine) -> Result<Due, Refused> {
    let nothing = vec![0; len.clamp(1, PIECE) as usize];
    let end = at.saturating_add(len);
    let mut here = at;
    loop {
        let n = PIECE.min(end - here);
        let due = engine.write(here, &nothing[..n as usize])?;
        here += n;
        if here >= end {
            return Ok(due);
        }
        // Other clients get their turn between the pieces.
        engine.wait(due);
    }
}

fn code(errno: Errno, c: &Command, engine: &Engine) -> u32 {
    match errno {
        Errno::ROFS => error::PERMISSION,
        Errno::INVAL if c.kind != command::READ && c.at.saturating_add(c.len.into()) > engine.size() => error::NO_SPACE,
        Errno::INVAL => error::INVALID,
        _ => error::IO,
    }
}

//! The fixed newstyle negotiation, up to the point where the client has chosen the card or gone.

use super::wire::{self, EXPORT_FLAGS, FIXED_NEWSTYLE, GREETING, LARGEST, NO_ZEROES, OPTION, OPTION_REPLY, info, nonsense, option, reply};
use std::io::{self, Read, Write};

/// Largest option in bytes that is looked at; names have at most 4096.
const LARGEST_OPTION: u32 = 16 << 10;
/// Larger options than this are not even skipped.
const SKIPPED: u32 = 1 << 20;

/// What is offered.
pub struct Export<'a> {
    pub name: &'a str,
    pub about: &'a str,
    /// Bytes.
    pub size: u64,
    /// Bytes: the smallest request.
    pub sector: u32,
}

/// Talks until the client has chosen the export (true) or leaves (false).
///
/// # Errors
/// The connection broke, or the client does not keep to the protocol; it is to be closed.
pub fn negotiate(input: &mut impl Read, output: &mut impl Write, export: &Export) -> io::Result<bool> {
    let mut hello = Vec::with_capacity(18);
    hello.extend(GREETING.to_be_bytes());
    hello.extend(OPTION.to_be_bytes());
    hello.extend((FIXED_NEWSTYLE | NO_ZEROES).to_be_bytes());
    output.write_all(&hello)?;
    let flags = wire::u32(input)?;
    if flags & !u32::from(FIXED_NEWSTYLE | NO_ZEROES) != 0 || flags & u32::from(FIXED_NEWSTYLE) == 0 {
        return Err(nonsense("client flags"));
    }
    let zeroes = flags & u32::from(NO_ZEROES) == 0;
    loop {
        if wire::u64(input)? != OPTION {
            return Err(nonsense("option magic"));
        }
        let (which, len) = (wire::u32(input)?, wire::u32(input)?);
        if len > LARGEST_OPTION {
            if len > SKIPPED || which == option::EXPORT_NAME {
                return Err(nonsense("option length"));
            }
            io::copy(&mut input.by_ref().take(len.into()), &mut io::sink())?;
            answer(output, which, reply::TOO_BIG, b"the option is too long")?;
            continue;
        }
        let mut data = vec![0; len as usize];
        input.read_exact(&mut data)?;
        match which {
            option::EXPORT_NAME => {
                // This old option knows no error but a closed connection, and no block sizes.
                if !known(&data, export) || export.sector > 512 {
                    return Err(nonsense("export name"));
                }
                let mut all = Vec::with_capacity(134);
                all.extend(export.size.to_be_bytes());
                all.extend(EXPORT_FLAGS.to_be_bytes());
                all.extend([0; 124].iter().take(if zeroes { 124 } else { 0 }));
                output.write_all(&all)?;
                return Ok(true);
            }
            option::ABORT => {
                // The client may be gone already.
                let _ = answer(output, which, reply::ACK, &[]);
                return Ok(false);
            }
            option::LIST if !data.is_empty() => answer(output, which, reply::INVALID, b"list takes no data")?,
            option::LIST => {
                let mut entry = (export.name.len() as u32).to_be_bytes().to_vec();
                entry.extend(export.name.as_bytes());
                answer(output, which, reply::SERVER, &entry)?;
                answer(output, which, reply::ACK, &[])?;
            }
            option::INFO | option::GO => {
                if details(output, which, &data, export)? && which == option::GO {
                    return Ok(true);
                }
            }
            _ => answer(output, which, reply::UNSUPPORTED, &[])?,
        }
    }
}

fn known(name: &[u8], export: &Export) -> bool {
    name.is_empty() || name == export.name.as_bytes()
}

/// Answers INFO or GO; true where the export was found.
fn details(output: &mut impl Write, which: u32, mut data: &[u8], export: &Export) -> io::Result<bool> {
    let Some((name, wanted)) = parse(&mut data) else {
        answer(output, which, reply::INVALID, b"the request is malformed")?;
        return Ok(false);
    };
    if !known(name, export) {
        answer(output, which, reply::UNKNOWN, format!("there is one export here, '{}'", export.name).as_bytes())?;
        return Ok(false);
    }
    // Without being told, a client takes the smallest request to have 512 bytes.
    if which == option::GO && export.sector > 512 && !wanted.contains(&info::BLOCK_SIZE) {
        answer(output, which, reply::BLOCK_SIZE_REQUIRED, format!("the sector has {} bytes", export.sector).as_bytes())?;
        return Ok(false);
    }
    let mut send = |kind: u16, rest: &[u8]| {
        let mut all = kind.to_be_bytes().to_vec();
        all.extend(rest);
        answer(output, which, reply::INFO, &all)
    };
    let mut size = export.size.to_be_bytes().to_vec();
    size.extend(EXPORT_FLAGS.to_be_bytes());
    send(info::EXPORT, &size)?;
    if wanted.contains(&info::NAME) {
        send(info::NAME, export.name.as_bytes())?;
    }
    if wanted.contains(&info::DESCRIPTION) {
        send(info::DESCRIPTION, export.about.as_bytes())?;
    }
    let blocks: Vec<u8> = [export.sector, export.sector.max(4096), LARGEST].iter().flat_map(|n| n.to_be_bytes()).collect();
    send(info::BLOCK_SIZE, &blocks)?;
    answer(output, which, reply::ACK, &[])?;
    Ok(true)
}

/// The name and the kinds of information asked for; none where the lengths do not add up.
fn parse<'a>(data: &mut &'a [u8]) -> Option<(&'a [u8], Vec<u16>)> {
    let len = wire::u32(data).ok()? as usize;
    let (name, mut rest) = data.split_at_checked(len)?;
    let count = wire::u16(&mut rest).ok()?;
    if rest.len() != usize::from(count) * 2 {
        return None;
    }
    let wanted = rest.chunks_exact(2).map(|c| u16::from_be_bytes([c[0], c[1]])).collect();
    Some((name, wanted))
}

fn answer(output: &mut impl Write, which: u32, kind: u32, data: &[u8]) -> io::Result<()> {
    let mut all = Vec::with_capacity(20 + data.len());
    all.extend(OPTION_REPLY.to_be_bytes());
    all.extend(which.to_be_bytes());
    all.extend(kind.to_be_bytes());
    all.extend((data.len() as u32).to_be_bytes());
    all.extend(data);
    output.write_all(&all)
}

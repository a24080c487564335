//! Formats with one request a line.

use super::{Io, Sink, number, scaled, words};
use crate::request::Op;

/// `[us] file action [offset length]`, and `wait us` in version 2.
pub(super) fn fio(line: &[u8], stamped: bool, sink: &mut Sink) -> Result<(), &'static str> {
    if line.starts_with(b"fio version") {
        return Ok(());
    }
    let mut w = words(line);
    let mut time = sink.clock;
    if stamped {
        let us = number(w.next().unwrap_or_default()).ok_or("the time is not a number")?;
        time = us.checked_mul(1000).ok_or("the time is too large")?;
    }
    let file = w.next().unwrap_or_default();
    let action = w.next().ok_or("no action")?;
    let op = match action {
        b"read" => Op::Read,
        b"write" => Op::Write,
        b"trim" => Op::Discard,
        b"sync" | b"datasync" => Op::Flush,
        b"add" | b"open" | b"close" => return Ok(()),
        b"wait" => {
            // "file wait 0 us" in version 2: the number of microseconds stands in the place of the offset.
            let us = number(w.next().unwrap_or_default()).ok_or("the wait is not a number")?;
            sink.clock = sink.clock.saturating_add(us.saturating_mul(1000));
            return Ok(());
        }
        _ => return Err("unknown action"),
    };
    let (mut at, mut len) = (0, 0);
    if op != Op::Flush {
        at = number(w.next().unwrap_or_default()).ok_or("the offset is not a number")?;
        len = number(w.next().unwrap_or_default()).ok_or("the length is not a number")?;
        if len == 0 {
            return Err("the length is 0");
        }
    }
    let device = sink.device(file);
    sink.push(Io { time, op, at, len, took: 0 }, device);
    Ok(())
}

/// `Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime`, times in 100 ns.
pub(super) fn msr(line: &[u8], first: bool, sink: &mut Sink) -> Result<(), &'static str> {
    let mut w = line.split(|&b| b == b',').map(|w| w.trim_ascii());
    let mut next = || w.next().unwrap_or_default();
    let (stamp, host, disk, kind, at, len, took) = (next(), next(), next(), next(), next(), next(), next());
    let Some(ticks) = number(stamp) else {
        return if first { Ok(()) } else { Err("the time is not a number") };
    };
    let op = match kind {
        b"Read" | b"read" | b"R" => Op::Read,
        b"Write" | b"write" | b"W" => Op::Write,
        _ => return Err("neither Read nor Write"),
    };
    let at = number(at).ok_or("the offset is not a number")?;
    let len = number(len).filter(|&n| n > 0).ok_or("the size is not a number above 0")?;
    let took = number(took).ok_or("the response time is not a number")?;
    let mut name = host.to_vec();
    name.push(b',');
    name.extend_from_slice(disk);
    let device = sink.device(&name);
    // A file time of today overflows as ns: only differences count, so the century is taken off.
    let time = (ticks % 31_556_952_000_000_000).saturating_mul(100);
    sink.push(Io { time, op, at, len, took: took.saturating_mul(100) }, device);
    Ok(())
}

/// `time device lba sectors flag`: flag 1 = read, 0 = write. A time with a point is in ms (DiskSim).
pub(super) fn mqsim(line: &[u8], sink: &mut Sink) -> Result<(), &'static str> {
    let mut w = words(line);
    let mut next = || w.next().unwrap_or_default();
    let (stamp, device, lba, sectors, flag) = (next(), next(), next(), next(), next());
    let time = if stamp.contains(&b'.') { scaled(stamp, 6) } else { number(stamp) };
    let time = time.ok_or("the time is not a number")?;
    let at = number(lba).and_then(|n| n.checked_mul(512)).ok_or("the address is not a number")?;
    let len = number(sectors).and_then(|n| n.checked_mul(512)).filter(|&n| n > 0).ok_or("the size is not a number above 0")?;
    let op = match flag {
        b"0" => Op::Write,
        b"1" => Op::Read,
        _ => return Err("the flag is neither 0 nor 1"),
    };
    if w.next().is_some() {
        return Err("more than five columns");
    }
    let device = sink.device(device);
    sink.push(Io { time, op, at, len, took: 0 }, device);
    Ok(())
}

/// `start_ns took_ns op at len`, parted by tabs; what a write put down stands behind its name (`write:random:7`).
pub(super) fn columns(line: &[u8], sink: &mut Sink) -> Result<(), &'static str> {
    if line.starts_with(b"#") || line.starts_with(b"start_ns\t") {
        return Ok(());
    }
    let mut w = line.split(|&b| b == b'\t');
    let mut next = || w.next().unwrap_or_default();
    let (start, took, op, at, len) = (next(), next(), next(), next(), next());
    let time = number(start).ok_or("start_ns is not a number")?;
    let took = number(took).ok_or("took_ns is not a number")?;
    let op = match op.split(|&b| b == b':').next().unwrap_or_default() {
        b"read" => Op::Read,
        b"write" => Op::Write,
        b"discard" => Op::Discard,
        b"flush" => Op::Flush,
        _ => return Err("unknown op"),
    };
    let at = number(at).ok_or("at is not a number")?;
    let len = number(len).filter(|&n| n > 0 || op == Op::Flush).ok_or("len is not a number above 0")?;
    if w.next().is_some() {
        return Err("more than five columns");
    }
    let device = sink.device(b"");
    sink.push(Io { time, op, at, len, took }, device);
    Ok(())
}

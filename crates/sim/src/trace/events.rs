//! Formats of the kernel's block layer: several events a request.

use super::{Io, Sink, number, seconds, words};
use crate::request::Op;

/// The letters `R W D F` with modifiers; None for what moves no data (N).
fn op(rwbs: &[u8], len: u64) -> Option<Op> {
    let has = |b| rwbs.contains(&b);
    // An empty write that only flushes is written FWS.
    if has(b'F') && len == 0 {
        Some(Op::Flush)
    } else if has(b'D') {
        Some(Op::Discard)
    } else if has(b'R') {
        Some(Op::Read)
    } else if has(b'W') {
        Some(Op::Write)
    } else {
        None
    }
}

/// What moves data must say how much.
fn whole(op: Op, len: u64) -> Result<(), &'static str> {
    if len == 0 && op != Op::Flush { Err("no length") } else { Ok(()) }
}

/// `8,0 1 23 0.001234567 456 D WS 7904 + 8 [proc]`.
pub(super) fn blkparse(line: &[u8], sink: &mut Sink) -> Result<(), &'static str> {
    let mut w = words(line);
    let device = w.next().unwrap_or_default();
    if !device.contains(&b',') || !device[0].is_ascii_digit() {
        // The summary behind the events.
        return Ok(());
    }
    let (_cpu, _seq) = (w.next(), w.next());
    let time = seconds(w.next().unwrap_or_default()).ok_or("the time is not a number")?;
    let (_pid, action) = (w.next(), w.next().unwrap_or_default());
    let rwbs = w.next().unwrap_or_default();
    if !matches!(action, b"D" | b"C" | b"Q") {
        return if action.is_empty() { Err("no action") } else { Ok(()) };
    }
    let (at, len) = place(&mut w)?;
    let Some(op) = op(rwbs, len) else { return Ok(()) };
    whole(op, len)?;
    let device = sink.device(device);
    let io = Io { time, op, at, len, took: 0 };
    match action {
        b"D" => sink.push(io, device),
        b"C" => sink.complete(device, op, at, time),
        _ => sink.queued.push((io, device)),
    }
    Ok(())
}

/// `sector + n`; nothing for a flush.
fn place<'a>(w: &mut impl Iterator<Item = &'a [u8]>) -> Result<(u64, u64), &'static str> {
    let sector = w.next().unwrap_or_default();
    if sector.is_empty() || sector.starts_with(b"[") {
        return Ok((0, 0));
    }
    let at = number(sector).and_then(|n| n.checked_mul(512)).ok_or("the sector is not a number")?;
    match w.next() {
        Some(b"+") => {
            let len = number(w.next().unwrap_or_default()).and_then(|n| n.checked_mul(512));
            Ok((at, len.ok_or("the number of sectors is not a number")?))
        }
        Some(b"[0]") | None => Ok((at, 0)),
        Some(p) if p.starts_with(b"[") => Ok((at, 0)),
        Some(_) => Err("no + after the sector"),
    }
}

/// `proc-1 [000] d..1 12.345678: block_rq_issue: 7,0 WS 4096 () 7904 + 8 be,0,6 [fio]`.
pub(super) fn ftrace(line: &[u8], sink: &mut Sink) -> Result<(), &'static str> {
    let find = |what: &[u8]| line.windows(what.len()).position(|x| x == what);
    let (done, start, name) = match (find(b" block_rq_issue: "), find(b" block_rq_complete: ")) {
        (Some(i), _) => (false, i, b" block_rq_issue: ".len()),
        (_, Some(i)) => (true, i, b" block_rq_complete: ".len()),
        _ => return Ok(()),
    };
    let stamp = words(&line[..start]).last().unwrap_or_default();
    let time = seconds(stamp.strip_suffix(b":").unwrap_or(stamp)).ok_or("the time is not a number")?;
    let mut w = words(&line[start + name..]);
    let device = w.next().ok_or("no device")?;
    let rwbs = w.next().ok_or("no kind of request")?;
    if !done {
        number(w.next().unwrap_or_default()).ok_or("the bytes are not a number")?;
    }
    // The command in brackets is empty for requests of file systems, but may hold words.
    while !w.next().ok_or("no command in brackets")?.ends_with(b")") {}
    let (at, len) = place(&mut w)?;
    let Some(op) = op(rwbs, len) else { return Ok(()) };
    whole(op, len)?;
    let device = sink.device(device);
    if done {
        sink.complete(device, op, at, time);
    } else {
        sink.push(Io { time, op, at, len, took: 0 }, device);
    }
    Ok(())
}

/// Records of 48 bytes, each followed by `pdu_len` bytes.
pub(super) fn blktrace(bytes: &[u8], sink: &mut Sink) {
    const QUEUE: u32 = 1;
    const ISSUE: u32 = 7;
    const COMPLETE: u32 = 8;
    let mut at = 0;
    let mut record = 0;
    // Completions may stand in another processor's stretch of the file, before the issue.
    let mut completions = Vec::new();
    while at < bytes.len() {
        record += 1;
        let Some(r) = bytes.get(at..at + 48) else {
            return sink.bad(record, &bytes[at..], "the last record is cut off");
        };
        let big = match r[..4] {
            [0x07, 0x74, 0x61, 0x65] => false,
            [0x65, 0x61, 0x74, 0x07] => true,
            _ => return sink.bad(record, b"", "no blktrace record begins here"),
        };
        let int = |from: usize, n: usize| {
            let fold = |x: u64, b: &u8| x << 8 | u64::from(*b);
            if big { r[from..from + n].iter().fold(0, fold) } else { r[from..from + n].iter().rev().fold(0, fold) }
        };
        let (time, sector, len, action, device) = (int(8, 8), int(16, 8), int(24, 4), int(28, 4) as u32, int(36, 4));
        at += 48 + int(46, 2) as usize;
        let kinds = action >> 16;
        let op = match kinds {
            k if k & 1 << 13 != 0 => Op::Discard,
            k if k & 1 << 1 != 0 && len > 0 => Op::Write,
            k if k & 1 != 0 && len > 0 => Op::Read,
            k if k & 1 << 2 != 0 && len == 0 => Op::Flush,
            _ => continue,
        };
        // A notification carries names and clocks, no request.
        if kinds & 1 << 10 != 0 {
            continue;
        }
        let Some(place) = sector.checked_mul(512) else {
            sink.bad(record, b"", "the sector is too large");
            continue;
        };
        let device = sink.device(&device.to_le_bytes());
        let io = Io { time, op, at: place, len, took: 0 };
        match action & 0xffff {
            ISSUE => sink.push(io, device),
            COMPLETE => completions.push((device, op, place, time)),
            QUEUE => sink.queued.push((io, device)),
            _ => {}
        }
    }
    for (device, op, place, time) in completions {
        sink.complete(device, op, place, time);
    }
}

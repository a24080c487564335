//! Puts the old content back.

use super::super::aliases::Aliases;
use super::*;
use std::ops::Range;

/// After so many pieces that fail one after the other, parts are only tried as a whole until one works: each failure may take long.
const PATIENCE: usize = 16;
/// Told of a stretch: its place, what was saved of it, and what it holds.
type See<'a> = dyn FnMut(u64, &[u8], &[u8]) + 'a;
/// Smallest piece that is tried by itself where a larger one fails, in bytes.
const LEAST: usize = 4096;

/// What a piece did that was not put back.
const OTHERWISE: &str = "does not hold what was put back";

/// Puts back in ascending order what was `changed` (what does not read as it was, where that is not known), flushes, and verifies all;
/// latest first where that does not help. Goes on where a part fails.
///
/// # Errors
/// The journal cannot be read, or the medium refuses everything.
pub(super) fn put_back(file: &File, path: &Path, records: &[Record], changed: Option<&RangeSet>, dev: &mut dyn Device) -> Result<PutBack> {
    let mut order: Vec<Record> = records.to_vec();
    order.sort_by_key(|r| r.at);
    let mut joined = RangeSet::default();
    order.iter().for_each(|r| joined.insert(r.at..r.at + r.len));
    let mut done = Restored { bytes: order.iter().map(|r| r.len).sum(), ranges: joined.iter().count() as u64, wraps_at: None };
    // Neighbours go out together: few large writes are kinder to a card than many small ones.
    let parts: Vec<&[Record]> = parts_of(&order).collect();
    let mut lost = vec![];
    // A run mostly writes what is there already.
    let changed: Vec<Range<u64>> = match changed {
        Some(set) => set.iter().collect(),
        None => differs(file, path, &parts, dev, &mut |_, _, _| {})?.iter().map(|l| l.at..l.at + l.len).collect(),
    };
    let end = |p: &[Record]| p.iter().map(|r| r.at + r.len).max().unwrap_or(0);
    let touched: Vec<&[Record]> = parts.iter().filter(|p| changed.iter().any(|c| c.start < end(p) && p[0].at < c.end)).copied().collect();
    write_all(file, path, &touched, dev, &mut lost)?;
    let wrong = differs(file, path, &parts, dev, &mut |_, _, _| {})?;
    if wrong.is_empty() && lost.is_empty() {
        return Ok(PutBack { restored: done, lost });
    }
    let (mut aliases, sector, mut old) = (Aliases::default(), dev.geometry().sector, Vec::new());
    for part in &parts {
        content(file, path, part, &mut old)?;
        aliases.saved(part[0].at, &old, sector);
    }
    // The later record of a place shows through its other address now, and says how far apart the two are.
    differs(file, path, &parts, dev, &mut |at, saved, now| aliases.learn(at, saved, now, sector))?;
    let saved: Vec<&[Record]> = parts_of(records).collect();
    // Blank content says of no address that it shows there. The other way round, what the run had written shows in its place.
    if !aliases.known() {
        write_all(file, path, &saved, dev, &mut lost)?;
        differs(file, path, &parts, dev, &mut |at, saved, now| aliases.learn(at, saved, now, sector))?;
    }
    // Where two addresses are one place, the record that was saved later holds what the run had written to the other: latest first, so
    // that the oldest content stays.
    let latest: Vec<&[Record]> = saved.into_iter().rev().collect();
    lost.clear();
    write_all(file, path, &latest, dev, &mut lost)?;
    let wrong = differs(file, path, &parts, dev, &mut |at, saved, now| aliases.found(at, saved, now, sector))?;
    done.wraps_at = aliases.period();
    if done.wraps_at.is_none() {
        lost.extend(wrong);
        // What could not be written mostly reads otherwise, too: it is named once.
        lost.sort_by_key(|l| (l.at, l.why == OTHERWISE));
        let mut named = RangeSet::default();
        lost.retain(|l| {
            let fresh = !named.missing(l.at..l.at + l.len).is_empty();
            named.insert(l.at..l.at + l.len);
            fresh
        });
        lost = neighbours(lost);
    }
    done.bytes -= lost.iter().map(|l| l.len).sum::<u64>().min(done.bytes);
    Ok(PutBack { restored: done, lost })
}

/// What was tried so far.
#[derive(Default)]
struct Tries {
    /// Failures since the last success.
    failed: usize,
    worked: bool,
    first: Option<DeviceError>,
}

impl Tries {
    /// Keeps the failure of a place.
    ///
    /// # Errors
    /// It is no place that fails, but the target: it has gone, or takes no writes any more.
    fn failure(&mut self, e: DeviceError) -> Result<String> {
        if e.is_gone() {
            return Err(e);
        }
        if let DeviceError::Io { source, .. } = &e {
            use rustix::io::Errno;
            let whole = [Errno::ROFS, Errno::PERM, Errno::BADF];
            if whole.iter().any(|w| source.raw_os_error() == Some(w.raw_os_error())) {
                return Err(e);
            }
        }
        self.failed += 1;
        let why = why(&e);
        self.first.get_or_insert(e);
        Ok(why)
    }

    fn success(&mut self) {
        (self.failed, self.worked) = (0, true);
    }

    /// # Errors
    /// The first failure, where nothing worked.
    fn end(self) -> Result<()> {
        self.first.filter(|_| !self.worked).map_or(Ok(()), Err)
    }

    /// Does something with a part, and where that fails with each piece of it; what fails is lost.
    fn each(
        &mut self,
        at: u64,
        len: usize,
        step: usize,
        lost: &mut Vec<Lost>,
        act: &mut dyn FnMut(Range<usize>) -> Result<()>,
    ) -> Result<()> {
        let mut from = 0;
        // An error of the bus is over when it is tried again; one of the flash is not.
        let mut twice = |r: Range<usize>| match act(r.clone()) {
            Err(e) if !e.is_gone() && r.len() <= step => act(r),
            done => done,
        };
        match twice(0..len) {
            Ok(()) => {
                self.success();
                return Ok(());
            }
            Err(e) if self.failed >= PATIENCE || len <= step => {
                let why = self.failure(e)?;
                lost.push(Lost { at, len: len as u64, why });
                return Ok(());
            }
            Err(e) => drop(self.failure(e)?),
        }
        while from < len {
            let end = (from + step).min(len);
            match twice(from..end) {
                Ok(()) => self.success(),
                Err(e) => {
                    let why = self.failure(e)?;
                    let end = if self.failed > PATIENCE { len } else { end };
                    let (here, bytes) = (at + from as u64, (end - from) as u64);
                    match lost.last_mut() {
                        Some(l) if l.at + l.len == here && l.why == why => l.len += bytes,
                        _ => lost.push(Lost { at: here, len: bytes, why }),
                    }
                    from = end;
                    continue;
                }
            }
            from = end;
        }
        Ok(())
    }
}

/// Writes parts and flushes. A part that is refused is tried in small pieces.
fn write_all(file: &File, path: &Path, parts: &[&[Record]], dev: &mut dyn Device, lost: &mut Vec<Lost>) -> Result<()> {
    let (mut old, mut tries, step) = (Vec::new(), Tries::default(), LEAST.max(dev.geometry().sector as usize));
    for part in parts {
        content(file, path, part, &mut old)?;
        let at = part[0].at;
        tries.each(at, old.len(), step, lost, &mut |r| dev.store(at + r.start as u64, &old[r]))?;
    }
    tries.end()?;
    match dev.access(Access { op: Op::Flush, at: 0, len: 0 }) {
        // A medium that lost something anyway is verified all the same.
        Err(e) if lost.is_empty() => Err(e),
        _ => Ok(()),
    }
}

fn why(e: &DeviceError) -> String {
    match e {
        DeviceError::Io { op, source, .. } => format!("{op} failed: {source}"),
        other => other.to_string(),
    }
}

/// Runs of neighbours of at most `PIECE` bytes.
fn parts_of(records: &[Record]) -> impl Iterator<Item = &[Record]> {
    let mut start = 0;
    std::iter::from_fn(move || {
        let first = records.get(start)?;
        let mut end = first.at;
        let n = records[start..]
            .iter()
            .take_while(|r| {
                let fits = r.at == end && end + r.len - first.at <= PIECE;
                end += r.len;
                fits
            })
            .count();
        start += n;
        Some(&records[start - n..start])
    })
}

/// Old content of a run of neighbours.
fn content(file: &File, path: &Path, part: &[Record], into: &mut Vec<u8>) -> Result<()> {
    into.clear();
    for r in part {
        let from = into.len();
        into.resize(from + r.len as usize, 0);
        match r.from {
            Source::Byte(b) => into[from..].fill(b),
            Source::File(p) => file.read_exact_at(&mut into[from..], p).map_err(failed(path))?,
        }
    }
    Ok(())
}

/// What does not read as it was saved, as runs of sectors; each part of it is given to `see` as (place, saved, now).
fn differs(file: &File, path: &Path, parts: &[&[Record]], dev: &mut dyn Device, see: &mut See<'_>) -> Result<Vec<Lost>> {
    let (mut old, mut now, mut lost, mut tries) = (Vec::new(), Vec::new(), vec![], Tries::default());
    let sector = dev.geometry().sector as usize;
    for part in parts {
        content(file, path, part, &mut old)?;
        now.resize(old.len(), 0);
        let (at, mut wrong) = (part[0].at, vec![]);
        tries.each(at, old.len(), LEAST.max(sector), &mut lost, &mut |r| {
            let here = at + r.start as u64;
            dev.load(here, &mut now[r.clone()])?;
            compare(here, &old[r.clone()], &now[r], sector, &mut wrong, see);
            Ok(())
        })?;
        lost.append(&mut wrong);
    }
    tries.end()?;
    Ok(neighbours(lost))
}

/// In ascending order, neighbours of one reason as one.
fn neighbours(mut lost: Vec<Lost>) -> Vec<Lost> {
    lost.sort_by_key(|l| l.at);
    lost.dedup_by(|next, l| {
        let one = l.at + l.len == next.at && l.why == next.why;
        l.len += if one { next.len } else { 0 };
        one
    });
    lost
}

fn compare(at: u64, old: &[u8], now: &[u8], sector: usize, lost: &mut Vec<Lost>, see: &mut See<'_>) {
    if old == now {
        return;
    }
    see(at, old, now);
    for (i, (was, is)) in old.chunks(sector).zip(now.chunks(sector)).enumerate().filter(|(_, (was, is))| was != is) {
        let (here, len) = (at + (i * sector) as u64, was.len() as u64);
        debug_assert_eq!(was.len(), is.len());
        match lost.last_mut() {
            Some(l) if l.at + l.len == here && l.why == OTHERWISE => l.len += len,
            _ => lost.push(Lost { at: here, len, why: OTHERWISE.into() }),
        }
    }
}

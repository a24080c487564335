//! Puts the old content back.

use super::super::aliases::Aliases;
use super::*;

/// Puts records back in ascending order, flushes, and verifies; latest first where that does not read as it was.
///
/// # Errors
/// The medium failed, or holds something else, and not because two addresses are one place.
pub(super) fn put_back(file: &File, path: &Path, records: &[Record], dev: &mut dyn Device) -> Result<Restored> {
    let mut order: Vec<Record> = records.to_vec();
    order.sort_by_key(|r| r.at);
    let mut joined = RangeSet::default();
    order.iter().for_each(|r| joined.insert(r.at..r.at + r.len));
    let mut done = Restored { bytes: order.iter().map(|r| r.len).sum(), ranges: joined.iter().count() as u64, wraps_at: None };
    // Neighbours go out together: few large writes are kinder to a card than many small ones.
    let parts: Vec<&[Record]> = parts_of(&order).collect();
    let mut old = Vec::new();
    for part in &parts {
        content(file, path, part, &mut old)?;
        dev.store(part[0].at, &old)?;
    }
    dev.access(Access { op: Op::Flush, at: 0, len: 0 })?;
    let Some(first) = differs(file, path, &parts, dev, |_, _, _| true)? else { return Ok(done) };
    // Where two addresses are one place, the record that was saved later holds what the run had written to the other: latest first, so
    // that the oldest content stays.
    let saved: Vec<&[Record]> = parts_of(records).collect();
    for part in saved.iter().rev() {
        content(file, path, part, &mut old)?;
        dev.store(part[0].at, &old)?;
    }
    dev.access(Access { op: Op::Flush, at: 0, len: 0 })?;
    let (mut aliases, sector) = (Aliases::default(), dev.geometry().sector);
    for part in &parts {
        content(file, path, part, &mut old)?;
        aliases.saved(part[0].at, &old, sector);
    }
    differs(file, path, &parts, dev, |at, saved, now| {
        aliases.found(at, saved, now, sector);
        false
    })?;
    done.wraps_at = aliases.period();
    if done.wraps_at.is_none() {
        let source = io::Error::other("the medium does not hold what was put back");
        return Err(DeviceError::Io { op: "verification", at: first.0, len: first.1, source });
    }
    Ok(done)
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

/// The first part that does not read as it was saved; each of them is told (place, saved, now), until one is enough.
fn differs(
    file: &File,
    path: &Path,
    parts: &[&[Record]],
    dev: &mut dyn Device,
    mut told: impl FnMut(u64, &[u8], &[u8]) -> bool,
) -> Result<Option<(u64, u64)>> {
    let (mut old, mut now, mut first) = (Vec::new(), Vec::new(), None);
    for part in parts {
        content(file, path, part, &mut old)?;
        now.resize(old.len(), 0);
        dev.load(part[0].at, &mut now)?;
        if now != old {
            first = first.or(Some((part[0].at, old.len() as u64)));
            if told(part[0].at, &old, &now) {
                break;
            }
        }
    }
    Ok(first)
}

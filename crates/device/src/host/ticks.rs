//! How busy the kernel's queue of a block device was: card or host? (G10, U22)

use crate::host::requests::{KERNEL, Layer, Sizes};
use crate::units::{KIB, Nanos};
use std::path::PathBuf;

/// The statistics file of a block device.
#[derive(Debug)]
pub struct Queue(PathBuf);

/// Since boot: writes and what they held in sectors of 512 B; milliseconds: writes from entering the queue to their end, the device at work on anything, all requests waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticks {
    writes: u64,
    sectors: u64,
    writing_ms: u64,
    busy_ms: u64,
}

fn parse(text: &str) -> Option<Ticks> {
    let n: Vec<u64> = text.split_whitespace().map_while(|w| w.parse().ok()).collect();
    // Documentation/block/stat.rst: 4 writes, 6 sectors written, 7 write ticks, 9 io ticks.
    (n.len() >= 11).then(|| Ticks { writes: n[4], sectors: n[6], writing_ms: n[7], busy_ms: n[9] })
}

impl Queue {
    /// The queue of a device number; none where the kernel shows no such device.
    pub fn of((major, minor): (u32, u32)) -> Option<Queue> {
        let path = PathBuf::from(format!("/sys/dev/block/{major}:{minor}/stat"));
        path.exists().then_some(Queue(path))
    }

    pub fn read(&self) -> Option<Ticks> {
        parse(&std::fs::read_to_string(&self.0).ok()?)
    }

    /// The writes that the kernel sent to the device since then, of all its users, and the most it sends in one.
    pub fn layer(&self, before: Ticks) -> Option<Layer> {
        let now = self.read()?;
        let requests = now.writes.checked_sub(before.writes)?;
        let bytes = now.sectors.checked_sub(before.sectors)? * 512;
        // A partition has the queue of its disk.
        let dir = self.0.parent()?.canonicalize().ok()?;
        let dirs = [dir.join("queue"), dir.parent()?.join("queue")];
        let limit = dirs.iter().find_map(|d| std::fs::read_to_string(d.join("max_sectors_kb")).ok()?.trim().parse::<u64>().ok());
        let sizes = Sizes { requests, bytes, ..Sizes::default() };
        Some(Layer { name: KERNEL.into(), sizes, mean_only: true, limit: limit.map(|k| k * KIB) })
    }

    /// What was the device's since then, in words; `elapsed` ns passed for the caller.
    pub fn since(&self, before: Ticks, elapsed: u64) -> Option<String> {
        let now = self.read()?;
        let n = now.writes.checked_sub(before.writes)?;
        let busy = Nanos(now.busy_ms.saturating_sub(before.busy_ms) * 1_000_000);
        let mean = now.writing_ms.saturating_sub(before.writing_ms) as f64 / n.max(1) as f64;
        let share = 100.0 * busy.0 as f64 / elapsed.max(1) as f64;
        Some(format!(
            "the kernel sent {n} writes, {mean:.2} ms each from queue to end; it was at work for {busy} of {} ({:.0} %, for all its users): the rest is the host's",
            Nanos(elapsed),
            share.min(100.0)
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_kernel() {
        let t =
            parse("    9026    1203   581042     3456    18100    2401   955112    20211        0    12000    23667   0 0 0 0").unwrap();
        assert_eq!(t, Ticks { writes: 18100, sectors: 955_112, writing_ms: 20211, busy_ms: 12000 });
        assert!(parse("1 2 3").is_none() && parse("").is_none());
    }
}

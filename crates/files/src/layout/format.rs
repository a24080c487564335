//! Puts a new FAT or exFAT volume on a target and reads it back.

use crate::device::{Access, Device, DeviceError, Op, Result};
use crate::units::{Bytes, SECTOR, about};
use nandscope_fat::Layout;

/// Bytes a format may have to write: the layout itself, and whole sectors of the target around parts of them.
pub fn budget(layout: &Layout, sector: u64) -> u64 {
    let edges = layout.steps().len() as u64 * 2 * sector;
    layout.bytes_written() + edges
}

/// The sector a volume on this target should have. An image file may have a coarser grid of its own, which says nothing of the
/// card the image is for.
pub fn sector_of(device: &dyn Device, image: bool) -> u64 {
    if image { SECTOR } else { device.geometry().sector }
}

/// Writes the layout, flushing between its steps, and compares what reads back. `tick` is told the bytes done so far.
///
/// # Errors
/// The target failed, or does not hold what was written (`Io` with the position); sector 0 then says that a format was
/// interrupted, as long as it could be written.
pub fn apply(device: &mut dyn Device, layout: &Layout, tick: &mut dyn FnMut(u64)) -> Result<()> {
    let mut done = 0;
    let cell = std::cell::RefCell::new(device);
    layout.write(
        |at, bytes| {
            put(&mut **cell.borrow_mut(), at, bytes)?;
            done += bytes.len() as u64;
            tick(done);
            Ok(())
        },
        || cell.borrow_mut().access(Access { op: Op::Flush, at: 0, len: 0 }).map(|_| ()),
    )?;
    let device = cell.into_inner();
    match layout.verify(|at, into| device.load(at, into))? {
        None => Ok(()),
        Some(at) => {
            let source = std::io::Error::other("what reads back is not what was written");
            Err(DeviceError::Io { op: "write", at, len: SECTOR, source })
        }
    }
}

/// Stores whole 512-byte sectors on a target whose grid may be coarser: what shares a sector with them is kept.
fn put(device: &mut dyn Device, at: u64, bytes: &[u8]) -> Result<()> {
    let grain = device.geometry().sector;
    let end = at + bytes.len() as u64;
    if at.is_multiple_of(grain) && end.is_multiple_of(grain) {
        return device.store(at, bytes);
    }
    let from = at / grain * grain;
    let to = end.next_multiple_of(grain);
    let mut whole = vec![0; (to - from) as usize];
    device.load(from, &mut whole)?;
    whole[(at - from) as usize..(end - from) as usize].copy_from_slice(bytes);
    device.store(from, &whole)
}

/// What a volume leaves unused, where that is a tenth of the target or more.
pub fn warning(l: &Layout) -> Option<String> {
    let (used, all) = (l.start() + l.volume.size, l.options.capacity);
    (used < all / 10 * 9).then(|| {
        format!(
            "{} of {} stay unused: {} counts no more than {} clusters of {}; take larger clusters (leave out --cluster) or another --fs",
            about(all - used),
            about(all),
            l.volume.kind,
            l.volume.clusters,
            Bytes(l.volume.cluster)
        )
    })
}

/// The layout in a few lines, positions on the disk.
pub fn describe(l: &Layout) -> Vec<String> {
    let v = &l.volume;
    let base = l.options.offset + l.start();
    let mut out = vec![format!(
        "{} of {}, {} clusters of {}, {}",
        v.kind,
        about(v.size),
        v.clusters,
        Bytes(v.cluster),
        match l.options.convention {
            nandscope_fat::Convention::Sd if l.options.cluster.is_some() || l.options.kind.is_some() =>
                "on the boundaries of the SD convention",
            nandscope_fat::Convention::Sd => "by the SD convention",
            nandscope_fat::Convention::Grid { .. } => "on the grid of this card",
            nandscope_fat::Convention::Careless => "careless",
        }
    )];
    if l.partition.is_some() {
        out.push(format!("partition at {} (sector {})", Bytes(base), base / v.sector));
    }
    out.push(format!("{} of {} at {}", if v.fats == 2 { "two FATs" } else { "FAT" }, Bytes(v.fat_length), Bytes(base + v.fat_start)));
    if let Some(r) = v.root_start {
        out.push(format!("root directory at {}", Bytes(base + r)));
    }
    let data = base + v.data_start;
    let on = if l.boundary > v.sector { format!(", a boundary of {}", Bytes(l.boundary)) } else { String::new() };
    out.push(format!("data area at {}{on}", Bytes(data)));
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{Consent, Limits, OpenOptions, open};
    use crate::units::MIB;
    use nandscope_fat::{Options, plan, recognise};

    #[test]
    fn a_simulated_card_holds_the_volume_and_nothing_beyond_the_budget_is_written() {
        let o = open("sim:chan-sdc-512mb?content", &OpenOptions::default()).unwrap();
        let size = o.geometry().size;
        let layout = plan(&Options { label: Some("TEST".into()), ..Options::card(size) }).unwrap();
        let consent = Consent::check(o.id(), None).unwrap();
        let limits = Limits { budget: budget(&layout, 512), ..Limits::default() };
        let mut g = o.writable(&consent, &limits).unwrap();
        let mut last = 0;
        apply(&mut g, &layout, &mut |b| last = b).unwrap();
        assert_eq!(last, layout.bytes_written());
        let mut boot = vec![0; 512];
        g.load(layout.start(), &mut boot).unwrap();
        assert_eq!(recognise(&boot).unwrap(), layout.volume);
    }

    #[test]
    fn a_coarse_grid_keeps_what_lies_beside() {
        use crate::device::{Geometry, Timed};
        use crate::units::Nanos;
        struct Coarse(Vec<u8>, Geometry);
        impl Device for Coarse {
            fn geometry(&self) -> &Geometry {
                &self.1
            }
            fn access(&mut self, _: Access) -> Result<Timed> {
                Ok(Timed { start: Nanos(0), took: Nanos(0) })
            }
            fn now(&self) -> Nanos {
                Nanos(0)
            }
            fn idle(&mut self, _: Nanos) {}
            fn load(&mut self, at: u64, into: &mut [u8]) -> Result<()> {
                into.copy_from_slice(&self.0[at as usize..at as usize + into.len()]);
                Ok(())
            }
            fn store(&mut self, at: u64, from: &[u8]) -> Result<()> {
                assert!(at.is_multiple_of(4096) && from.len().is_multiple_of(4096));
                self.0[at as usize..at as usize + from.len()].copy_from_slice(from);
                Ok(())
            }
        }
        let size = 16 * MIB;
        let layout = plan(&Options::card(size)).unwrap();
        assert!(!layout.start().is_multiple_of(4096), "the point of this test");
        let geometry = Geometry { size, sector: 4096, max_request: None, offset: 0, write_cache: false };
        let mut d = Coarse(vec![0xee; size as usize], geometry);
        apply(&mut d, &layout, &mut |_| {}).unwrap();
        let data = (layout.start() + layout.volume.data_start) as usize;
        assert!(d.0[data..data + 100_000].iter().all(|&b| b == 0xee), "file content is not touched");
    }
}

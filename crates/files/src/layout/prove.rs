//! Did it help? The same files on the same card in several layouts, in turn (C26).
//!
//! Each round visits all layouts in an order of its own, formats, copies one large file in pieces and then writes small ones. Time
//! is that of the files, not of the format. The host in front of the card is one of little memory (one sector of tables, one of
//! data), as the cameras and microcontrollers have that suffer from a bad layout; a PC with a large cache hides part of it.

use super::disk::Disk;
use super::format;
use super::grid::Grid;
use crate::chance;
use crate::device::Device;
use crate::units::{Bytes, KIB, MIB, Nanos};
use crate::volume::{Cache, ExFatVolume, FatVolume, FileId, Host, Result, Shared, Volume, VolumeError};
use nandscope_fat::{Convention, FatType, Layout, Options, plan, recognise};
use nandscope_stats::{bootstrap_median, median};
use rand_pcg::rand_core::Rng;
use serde::Serialize;

/// One layout to try.
#[derive(Clone, Debug)]
pub struct Candidate {
    pub name: &'static str,
    pub layout: Layout,
}

/// The layouts for a target, and what must be said about those that are missing. `found` is what lies on the target.
///
/// # Errors
/// A layout that the target has no room for.
pub fn candidates(device: &mut dyn Device, found: &Disk, sector: u64, grid: Option<Grid>) -> Result<(Vec<Candidate>, Vec<String>)> {
    let g = device.geometry().clone();
    let options = |convention| Options { sector, offset: g.offset, convention, table: g.offset == 0, ..Options::card(g.size) };
    let of = |convention, kind| plan(&Options { kind, ..options(convention) }).map_err(|e| VolumeError::Unsupported(e.to_string()));
    let (mut all, mut notes) = (vec![], vec![]);
    let factory = factory(device, found, sector)?;
    let exfat = factory.as_ref().is_some_and(|l| l.volume.kind == FatType::ExFat);
    match factory {
        Some(layout) => all.push(Candidate { name: "as found", layout }),
        None => notes.push("no FAT or exFAT volume is on the target: the layout of its factory is gone. Makers format by the SD convention, whose row stands for it".into()),
    }
    let careless = of(Convention::Careless, None).or_else(|_| of(Convention::Careless, Some(FatType::Fat16)))?;
    all.push(Candidate { name: "careless", layout: careless });
    let sd = of(Convention::Sd, None)?;
    // Two things differ between careless FAT32 and exFAT by the convention: this one differs by the layout alone.
    if exfat || sd.volume.kind == FatType::ExFat {
        all.push(Candidate { name: "careless exFAT", layout: of(Convention::Careless, Some(FatType::ExFat))? });
    }
    // What a careless format changes together, one at a time.
    let (plain, broken) = (sd.volume.clone(), all.iter().find(|c| c.name == "careless").map(|c| c.layout.volume.clone()));
    if let Some(broken) = broken.filter(|_| plain.kind != FatType::ExFat) {
        let with = |convention, kind, cluster| {
            plan(&Options { kind: Some(kind), cluster: Some(cluster), ..options(convention) }).ok().filter(|l| l.volume.kind == kind)
        };
        let place = with(Convention::Careless, plain.kind, plain.cluster);
        let (kind, cluster) = (with(Convention::Sd, broken.kind, plain.cluster), with(Convention::Sd, plain.kind, broken.cluster));
        let both = || with(Convention::Sd, broken.kind, broken.cluster);
        let mut one = |name, layout: Option<Layout>| all.extend(layout.map(|layout| Candidate { name, layout }));
        one("careless place alone", place);
        match (broken.kind == plain.kind, broken.cluster == plain.cluster) {
            (true, true) => {}
            (false, false) if kind.is_none() || cluster.is_none() => {
                notes.push(format!(
                    "{} with clusters of {} cannot be had on this target, nor the other way round: type and cluster change together",
                    broken.kind,
                    Bytes(plain.cluster)
                ));
                one("type and cluster alone", both());
            }
            (same_kind, same_cluster) => {
                one("FAT type alone", kind.filter(|_| !same_kind));
                one("cluster alone", cluster.filter(|_| !same_cluster));
            }
        }
    }
    all.push(Candidate { name: "SD convention", layout: sd });
    match grid {
        Some(grid) => match of(Convention::Grid { unit: grid.unit, first: grid.first }, None) {
            Ok(layout) => all.push(Candidate { name: "measured", layout }),
            Err(e) => notes.push(format!("no layout on the measured grid: {e}")),
        },
        None => notes.push("no report with a sure erase block was given, so there is no measured layout".into()),
    }
    Ok((all, notes))
}

/// The layout of the first FAT or exFAT volume on the target, so that it can be made again.
fn factory(device: &mut dyn Device, disk: &Disk, sector: u64) -> Result<Option<Layout>> {
    let g = device.geometry().clone();
    let Some((part, v)) = disk.parts.iter().find_map(|p| Some((p, p.volume.as_ref()?))) else { return Ok(None) };
    if !(v.what.starts_with("FAT") || v.what == "exFAT") || part.beyond {
        return Ok(None);
    }
    let start = part.start - g.offset;
    let mut boot = vec![0; 512];
    device.load(start, &mut boot)?;
    let Ok(volume) = recognise(&boot) else { return Ok(None) };
    // A table is written where there was one; a volume from the first byte on has none.
    let options = Options { sector, offset: g.offset, table: part.number.is_some(), ..Options::card(g.size) };
    Ok(Layout::found(options, start, volume))
}

/// What is done in each layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Work {
    /// Bytes of the large file.
    pub large: u64,
    /// Bytes handed over at a time.
    pub chunk: u64,
    /// Small files, and the bytes of one.
    pub small: u32,
    pub small_size: u64,
    pub rounds: u32,
    pub seed: u64,
}

impl Default for Work {
    fn default() -> Work {
        Work { large: MIB, chunk: 16 * KIB, small: 16, small_size: 4 * KIB, rounds: 5, seed: 1 }
    }
}

impl Work {
    /// Most bytes a comparison writes: the formats, the data, and the tables and directories around them.
    pub fn budget(&self, all: &[Candidate], sector: u64) -> u64 {
        let files = 4 * (self.large + u64::from(self.small) * self.small_size.next_multiple_of(64 * KIB)) + 8 * MIB;
        let round: u64 = all.iter().map(|c| format::budget(&c.layout, sector) + files).sum();
        u64::from(self.rounds) * round
    }
}

/// A median with its interval of 95 %.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Rate {
    pub median: f64,
    pub interval: [f64; 2],
    /// What both are of.
    pub rounds: u32,
}

/// Fewest rounds that have an interval: the spread of one or two says nothing.
pub const FEWEST: u32 = 3;

impl Rate {
    fn of(x: &[f64]) -> Rate {
        let m = median(x);
        Rate { median: m, interval: bootstrap_median(x).unwrap_or([m, m]), rounds: x.len() as u32 }
    }

    /// Whether there were rounds enough for an interval.
    pub fn decided(&self) -> bool {
        self.rounds >= FEWEST
    }

    /// True where the intervals have no value in common.
    pub fn differs(&self, other: &Rate) -> bool {
        self.decided() && other.decided() && (self.interval[1] < other.interval[0] || other.interval[1] < self.interval[0])
    }
}

/// What one layout did.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outcome {
    pub name: &'static str,
    pub filesystem: String,
    pub cluster: u64,
    /// Where the data area begins on the disk, in bytes.
    pub data: u64,
    /// Copy of the large file, kB/s.
    pub copy: Rate,
    /// Small files a second.
    pub files: Rate,
}

/// Compares. `tick` is told turns done, of how many, and says whether to go on; what was done until then counts. It is asked
/// once more where an access failed: one that was refused because of the end is no failure.
///
/// # Errors
/// The target failed, or the budget is used up.
pub fn prove<D: Device + 'static>(
    device: &Shared<D>,
    all: &[Candidate],
    work: &Work,
    tick: &mut dyn FnMut(u32, u32) -> bool,
) -> Result<Vec<Outcome>> {
    let mut rng = chance::generator(work.seed);
    let mut rates: Vec<(Vec<f64>, Vec<f64>)> = vec![(vec![], vec![]); all.len()];
    'rounds: for round in 0..work.rounds {
        let mut order: Vec<usize> = (0..all.len()).collect();
        for i in (1..order.len()).rev() {
            order.swap(i, (rng.next_u64() % (i as u64 + 1)) as usize);
        }
        for (n, i) in order.into_iter().enumerate() {
            let (done, turns) = (round * all.len() as u32 + n as u32, work.rounds * all.len() as u32);
            if !tick(done, turns) {
                break 'rounds;
            }
            let (copy, files) = match once(device, &all[i].layout, work) {
                Err(_) if !tick(done, turns) => break 'rounds,
                timed => timed?,
            };
            rates[i].0.push(copy);
            rates[i].1.push(files);
        }
    }
    let done = all.iter().zip(&rates).filter(|(_, r)| !r.0.is_empty());
    Ok(done
        .map(|(c, (copy, files))| Outcome {
            name: c.name,
            filesystem: c.layout.volume.kind.to_string(),
            cluster: c.layout.volume.cluster,
            data: c.layout.data_on_disk(),
            copy: Rate::of(copy),
            files: Rate::of(files),
        })
        .collect())
}

/// Formats, copies, writes small files: kB/s and files a second.
fn once<D: Device + 'static>(device: &Shared<D>, layout: &Layout, work: &Work) -> Result<(f64, f64)> {
    format::apply(&mut device.clone(), layout, &mut |_| {})?;
    let start = layout.start();
    let mut v = Files::mount(Box::new(device.clone()), start, layout)?;
    let data: Vec<u8> = (0..work.chunk.max(work.small_size)).map(|i| ((i * 31) >> 3) as u8).collect();
    // The first file of a volume also makes its directory: not part of the comparison.
    write(&mut v, "first.bin", 1, 1, &data)?;
    let took = write(&mut v, "large.bin", work.large, work.chunk, &data)?;
    let copy = work.large as f64 / 1e3 / took.secs().max(1e-9);
    let began = v.now();
    for i in 0..work.small {
        write(&mut v, &format!("s{i:05}.bin"), work.small_size, work.small_size, &data)?;
    }
    let files = f64::from(work.small) / (v.now() - began).secs().max(1e-9);
    v.finish()?;
    Ok((copy, files))
}

fn write(v: &mut Files, name: &str, len: u64, chunk: u64, data: &[u8]) -> Result<Nanos> {
    let began = v.now();
    let file = v.create(name)?;
    let mut at = 0;
    while at < len {
        let n = chunk.min(len - at);
        v.write(file, at, &data[..n as usize])?;
        at += n;
    }
    v.close(file)?;
    Ok(v.now() - began)
}

/// A volume of either family, in the hands of a host with one sector of tables and one of data.
enum Files {
    Fat(Box<FatVolume>),
    ExFat(Box<ExFatVolume>),
}

impl Files {
    fn mount(device: Box<dyn Device>, start: u64, layout: &Layout) -> Result<Files> {
        let (range, host) = (start..start + layout.volume.size, Host::with(Cache::ONE_SECTOR));
        Ok(match layout.volume.kind {
            FatType::ExFat => Files::ExFat(Box::new(ExFatVolume::mount(device, range, host)?)),
            _ => Files::Fat(Box::new(FatVolume::mount(device, range, host)?)),
        })
    }

    fn now(&self) -> Nanos {
        match self {
            Files::Fat(v) => v.now(),
            Files::ExFat(v) => v.now(),
        }
    }

    fn create(&mut self, name: &str) -> Result<FileId> {
        Ok(match self {
            Files::Fat(v) => v.create(name)?.0,
            Files::ExFat(v) => v.create(name)?.0,
        })
    }

    fn write(&mut self, file: FileId, at: u64, data: &[u8]) -> Result<()> {
        match self {
            Files::Fat(v) => v.write(file, at, data).map(|_| ()),
            Files::ExFat(v) => v.write(file, at, data).map(|_| ()),
        }
    }

    fn close(&mut self, file: FileId) -> Result<()> {
        match self {
            Files::Fat(v) => v.close(file).map(|_| ()),
            Files::ExFat(v) => v.close(file).map(|_| ()),
        }
    }

    fn finish(self) -> Result<()> {
        match self {
            Files::Fat(v) => v.finish(),
            Files::ExFat(v) => v.finish(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::disk;
    use super::super::grid::Source;
    use super::*;
    use crate::device::{Consent, Limits, OpenOptions, open};

    fn run(card: &str, grid: Option<Grid>) -> Vec<Outcome> {
        let mut o = open(&format!("sim:{card}?content"), &OpenOptions::default()).unwrap();
        let found = disk::read(o.look()).unwrap();
        let (all, _) = candidates(o.look(), &found, 512, grid).unwrap();
        let work = Work { rounds: 3, large: 256 * KIB, small: 6, ..Work::default() };
        let consent = Consent::check(o.id(), None).unwrap();
        let g = o.writable(&consent, &Limits { budget: work.budget(&all, 512), ..Limits::default() }).unwrap();
        prove(&Shared::new(g), &all, &work, &mut |_, _| true).unwrap()
    }

    /// C26: on the 512 MB card a careless format costs "one several" of the speed of copying.
    #[test]
    fn a_careless_format_costs_most_of_the_speed_of_chans_card() {
        let out = run("chan-sdc-512mb", None);
        let of = |name| out.iter().find(|o| o.name == name).unwrap();
        let (sd, careless) = (of("SD convention"), of("careless"));
        let ratio = sd.copy.median / careless.copy.median;
        assert!(ratio > 2.0 && careless.copy.differs(&sd.copy), "{out:?}");
        assert!(careless.files.differs(&sd.files), "{out:?}");
    }

    /// C26: what the place of the partition costs by itself, and what the type of FAT and its clusters do.
    #[test]
    fn each_change_of_a_careless_format_has_its_own_price() {
        let out = run("chan-sdc-512mb", None);
        let of = |name| out.iter().find(|o| o.name == name).unwrap_or_else(|| panic!("no {name} in {out:?}"));
        let (sd, all, place, kind) = (of("SD convention"), of("careless"), of("careless place alone"), of("type and cluster alone"));
        assert_eq!((place.filesystem.as_str(), place.cluster), (sd.filesystem.as_str(), sd.cluster));
        assert_eq!((kind.filesystem.as_str(), kind.cluster), (all.filesystem.as_str(), all.cluster));
        assert!(!place.data.is_multiple_of(4096) && kind.data.is_multiple_of(4096), "{out:?}");
        let loss = |o: &Outcome| sd.copy.median / o.copy.median;
        // On this card the type with its small clusters costs nearly all: the place alone costs nothing, for the tables of FAT16 lie
        // in the fast first 512 KiB either way.
        assert!(loss(place) < 1.1 && loss(kind) > 2.0 && loss(all) > loss(place), "{} {} {}", loss(place), loss(kind), loss(all));
    }

    /// Cards above 32 GiB have exFAT: as found, without care, by the convention and on the grid of the card.
    #[test]
    fn an_exfat_card_is_compared_with_itself() {
        let grid = Grid { unit: 16 * MIB, first: 0, source: Source::Given };
        let out = run("sdxc-64gb", Some(grid));
        let of = |name| out.iter().find(|o| o.name == name).unwrap_or_else(|| panic!("no {name} in {out:?}"));
        assert_eq!(of("careless").filesystem, "FAT32");
        for name in ["careless exFAT", "SD convention", "measured"] {
            assert_eq!(of(name).filesystem, "exFAT");
        }
        assert_eq!(of("SD convention").data, 32 * MIB);
        assert!(!of("careless exFAT").data.is_multiple_of(4096) && of("measured").data.is_multiple_of(16 * MIB));
        assert!(out.iter().all(|o| o.copy.median > 0.0 && o.files.median > 0.0), "{out:?}");
    }

    /// P1: the answer can be "no difference".
    #[test]
    fn on_a_card_that_does_not_care_nothing_differs() {
        let grid = Grid { unit: 4 * MIB, first: 0, source: Source::Given };
        let out = run("null", Some(grid));
        let sd = out.iter().find(|o| o.name == "SD convention").unwrap();
        let same = out.iter().find(|o| o.name == "measured").unwrap();
        assert!((sd.copy.median / same.copy.median - 1.0).abs() < 0.05, "{out:?}");
    }
}

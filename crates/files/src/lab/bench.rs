//! The file benchmark of the lab: files of a few sizes written and read (P6), and a folder of small files copied (P8).

use crate::chance;
use crate::device::{DeviceError, Fill};
use crate::units::{Bytes, KIB, MIB, Nanos};
use crate::volume::{Label, Result, Volume, VolumeError};
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::Rng;
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicBool, Ordering};

/// Directory of the test files; removed at the end.
pub const DIRECTORY: &str = "NSBENCH";

/// What is measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workload {
    /// File sizes in bytes.
    pub sizes: Vec<u64>,
    /// Bytes of one read or write call.
    pub chunk: u64,
    /// Rounds that count; one more, in front, does not.
    pub repeats: u32,
    /// Small files in the folder; 0 = no folder.
    pub folder: u32,
    /// Largest of them, in bytes.
    pub folder_largest: u64,
    pub seed: u64,
}

impl Default for Workload {
    fn default() -> Workload {
        Workload {
            sizes: vec![512, 32 * KIB, 256 * KIB, 2 * MIB],
            chunk: 8 * KIB,
            repeats: 6,
            folder: 300,
            folder_largest: 10_000,
            seed: 1,
        }
    }
}

/// What was timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Make a file, write it, bring it to the medium, close it, remove it.
    Write,
    /// Open the file, read it, close it.
    Read,
    /// The folder: all files of it made and closed.
    Folder,
}

/// One timed operation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    pub kind: Kind,
    /// Bytes of the file, or of all files of the folder.
    pub size: u64,
    pub round: u32,
    pub took: Nanos,
    /// Pieces the file lay in; 0 = not known.
    pub extents: u32,
}

/// What could not be measured, and why.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    pub samples: Vec<Sample>,
    pub notes: Vec<String>,
    /// Files of the folder that found room.
    #[serde(default)]
    pub folder: u32,
}

/// Runs the workload: rounds in which the sizes come in random order, so that drift hits all alike.
///
/// # Errors
/// The volume failed. A volume without room for a size is no error: a note says so.
pub fn measure(volume: &mut dyn Volume, w: &Workload, stop: &AtomicBool, progress: &mut dyn FnMut(f64)) -> Result<Measured> {
    let mut out = Measured::default();
    let space = volume.space()?;
    // Room for the file, its directory entry, and what a kernel filesystem keeps for itself.
    let room = space.free.saturating_sub(16 * space.cluster + space.free / 50);
    let mut sizes = vec![];
    for &size in &w.sizes {
        match size <= room {
            true => sizes.push(size),
            false => out.notes.push(format!(
                "files of {} were left out: {} are free, {} of them for files",
                Bytes(size),
                three(space.free),
                three(room)
            )),
        }
    }
    let folder = folder(w, room, space.cluster);
    if folder.len() < w.folder as usize {
        out.notes.push(format!("the folder has {} files instead of {}: {} are free", folder.len(), w.folder, three(space.free)));
    }
    out.folder = folder.len() as u32;
    if sizes.is_empty() && folder.is_empty() {
        out.notes.push("nothing could be measured: no test file has room; remove files, or ask for smaller ones with --sizes".into());
        return Ok(out);
    }
    let data = content(w, &sizes, &folder);
    volume.make_dir(DIRECTORY)?;
    let done = rounds(volume, w, &sizes, &folder, &data, stop, progress, &mut out);
    let cleared = clear(volume);
    // What was timed until it was stopped counts; a device that takes nothing more then keeps the test files.
    let whole = |done: Result<()>| match done {
        Err(VolumeError::Device(DeviceError::Late)) if stop.load(Ordering::Relaxed) => Ok(()),
        other => other,
    };
    whole(done)?;
    whole(cleared.map(drop))?;
    Ok(out)
}

/// # Errors
/// It was stopped.
fn goes_on(stop: &AtomicBool) -> Result<()> {
    if stop.load(Ordering::Relaxed) { Err(DeviceError::Late.into()) } else { Ok(()) }
}

/// Removes what a run that was cut off left. Returns whether there was anything.
///
/// # Errors
/// The volume failed.
pub fn clear(volume: &mut dyn Volume) -> Result<bool> {
    let names = match volume.list(DIRECTORY) {
        Err(VolumeError::NotFound(_)) => return Ok(false),
        other => other?,
    };
    for e in names {
        volume.delete(&format!("{DIRECTORY}/{}", e.name))?;
    }
    volume.delete(DIRECTORY)?;
    volume.flush()?;
    Ok(true)
}

/// Bytes in three digits and a unit of 1024.
fn three(bytes: u64) -> String {
    match bytes {
        b if b >= MIB => format!("{} MiB", crate::units::three(b as f64 / MIB as f64)),
        b if b >= KIB => format!("{} KiB", crate::units::three(b as f64 / KIB as f64)),
        b => Bytes(b).to_string(),
    }
}

fn folder(w: &Workload, room: u64, cluster: u64) -> Vec<u64> {
    let mut rng = chance::generator(w.seed);
    let mut left = room / 2;
    let mut out = vec![];
    for _ in 0..w.folder {
        let len = 1 + rng.next_u64() % w.folder_largest.max(1);
        // A directory entry or an inode costs something, too.
        let takes = len.next_multiple_of(cluster) + 256;
        if takes > left {
            break;
        }
        left -= takes;
        out.push(len);
    }
    out
}

fn content(w: &Workload, sizes: &[u64], folder: &[u64]) -> Vec<u8> {
    let longest = sizes.iter().chain(folder).copied().max().unwrap_or(0).max(w.chunk);
    let mut data = vec![0; longest as usize];
    Fill::Random(w.seed).render(0, &mut data);
    data
}

#[allow(clippy::too_many_arguments)]
fn rounds(
    volume: &mut dyn Volume,
    w: &Workload,
    sizes: &[u64],
    folder: &[u64],
    data: &[u8],
    stop: &AtomicBool,
    progress: &mut dyn FnMut(f64),
    out: &mut Measured,
) -> Result<()> {
    let mut rng = Pcg64Mcg::new(u128::from(w.seed) << 8 | 3);
    let rounds = w.repeats + 1;
    for round in 0..rounds {
        // 0 stands for the folder.
        let mut order: Vec<u64> = sizes.iter().copied().chain((!folder.is_empty()).then_some(0)).collect();
        for i in (1..order.len()).rev() {
            order.swap(i, (rng.next_u64() % (i as u64 + 1)) as usize);
        }
        for (k, &size) in order.iter().enumerate() {
            if stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            let samples = match size {
                0 => vec![copy_folder(volume, w, folder, data, round, stop)?],
                n => one(volume, w, &data[..n as usize], round, stop)?,
            };
            // The first round only brings the volume into the state of the others.
            if round > 0 {
                out.samples.extend(samples);
            }
            progress((round as f64 + (k + 1) as f64 / order.len() as f64) / f64::from(rounds));
        }
    }
    Ok(())
}

fn write(volume: &mut dyn Volume, w: &Workload, path: &str, data: &[u8], stop: &AtomicBool) -> Result<()> {
    let (f, _) = volume.create(path)?;
    let mut done = Ok(());
    for (i, part) in data.chunks(w.chunk as usize).enumerate() {
        done = goes_on(stop).and_then(|()| volume.write(f, i as u64 * w.chunk, part).map(drop));
        if done.is_err() {
            break;
        }
    }
    // In-process, closing brings the file to the medium.
    if done.is_ok() && volume.label() == Label::Kernel {
        done = volume.sync(f).map(drop);
    }
    volume.close(f)?;
    done
}

fn one(volume: &mut dyn Volume, w: &Workload, data: &[u8], round: u32, stop: &AtomicBool) -> Result<Vec<Sample>> {
    let path = format!("{DIRECTORY}/T{}", data.len());
    let size = data.len() as u64;
    let start = volume.now();
    write(volume, w, &path, data, stop)?;
    let mut wrote = volume.now() - start;
    if volume.label() == Label::Kernel {
        // The page cache would answer instead of the card.
        volume.forget()?;
    }
    let mut back = vec![0; (w.chunk as usize).min(data.len())];
    let start = volume.now();
    let (f, _) = volume.open(&path)?;
    let (mut wrong, mut done) = (false, Ok(()));
    for (i, part) in data.chunks(w.chunk as usize).enumerate() {
        done = goes_on(stop);
        if done.is_err() {
            break;
        }
        volume.read(f, i as u64 * w.chunk, &mut back[..part.len()])?;
        wrong |= back[..part.len()] != *part;
    }
    volume.close(f)?;
    done?;
    let read = volume.now() - start;
    if wrong {
        return Err(VolumeError::Damaged(format!("{path} does not read back as it was written")));
    }
    let extents = match volume.extents(&path) {
        Ok(all) => all.len() as u32,
        Err(VolumeError::Unsupported(_)) => 0,
        Err(e) => return Err(e),
    };
    let start = volume.now();
    volume.delete(&path)?;
    volume.flush()?;
    wrote = wrote + (volume.now() - start);
    let sample = |kind, took| Sample { kind, size, round, took, extents };
    Ok(vec![sample(Kind::Write, wrote), sample(Kind::Read, read)])
}

fn copy_folder(volume: &mut dyn Volume, w: &Workload, folder: &[u64], data: &[u8], round: u32, stop: &AtomicBool) -> Result<Sample> {
    let start = volume.now();
    for (i, &len) in folder.iter().enumerate() {
        write(volume, w, &format!("{DIRECTORY}/S{i:05}"), &data[..len as usize], stop)?;
    }
    let took = volume.now() - start;
    for i in 0..folder.len() {
        volume.delete(&format!("{DIRECTORY}/S{i:05}"))?;
    }
    volume.flush()?;
    Ok(Sample { kind: Kind::Folder, size: folder.iter().sum(), round, took, extents: 0 })
}

use super::*;
use crate::device::{Access, DeviceError};
use crate::device::{Geometry, SimDevice, Timed};
use crate::lab::age::{self, Plan};
use crate::lab::fragment;
use crate::units::Nanos;
use crate::volume::{Cache, FatVolume, Format, Host, Shared, Volume};
use nandscope_sim::{Model, cards};
use std::cell::RefCell;
use std::process::Command;
use std::rc::Rc;

/// A disk in memory; with a counter it is cut off after so many writes.
#[derive(Clone)]
struct Disk {
    bytes: Rc<RefCell<Vec<u8>>>,
    geometry: Geometry,
    left: Rc<RefCell<u64>>,
}

impl Disk {
    fn new(bytes: Vec<u8>) -> Disk {
        let geometry = Geometry { size: bytes.len() as u64, sector: 512, max_request: None, offset: 0, write_cache: false };
        Disk { bytes: Rc::new(RefCell::new(bytes)), geometry, left: Rc::new(RefCell::new(u64::MAX)) }
    }
}

impl Device for Disk {
    fn geometry(&self) -> &Geometry {
        &self.geometry
    }
    fn access(&mut self, _: Access) -> std::result::Result<Timed, DeviceError> {
        Ok(Timed { start: Nanos(0), took: Nanos(1) })
    }
    fn now(&self) -> Nanos {
        Nanos(0)
    }
    fn idle(&mut self, _: Nanos) {}
    fn load(&mut self, at: u64, into: &mut [u8]) -> std::result::Result<(), DeviceError> {
        into.copy_from_slice(&self.bytes.borrow()[at as usize..at as usize + into.len()]);
        Ok(())
    }
    fn store(&mut self, at: u64, from: &[u8]) -> std::result::Result<(), DeviceError> {
        // A request of many sectors may be cut in the middle.
        for (i, sector) in from.chunks(512).enumerate() {
            let mut left = self.left.borrow_mut();
            if *left == 0 {
                return Err(DeviceError::Io { op: "write", at, len: from.len() as u64, source: std::io::Error::other("cut") });
            }
            *left -= 1;
            let at = at as usize + i * 512;
            self.bytes.borrow_mut()[at..at + sector.len()].copy_from_slice(sector);
        }
        Ok(())
    }
}

fn plan(fill: f64) -> Plan {
    Plan { passes: 5, smallest: 500, largest: 40_000, fill, ..Plan::default() }
}

/// An aged volume, and the state of its ageing.
fn aged(size: u64, cluster: u32, kind: FatType, fill: f64) -> (Disk, age::State) {
    let disk = Disk::new(vec![0; size as usize]);
    let how = Format { cluster: Some(cluster), kind: Some(kind) };
    let mut v = FatVolume::format(Box::new(disk.clone()), 0..size, &how, Host::with(Cache::TABLES)).unwrap();
    let done = age::age(&mut v, &plan(fill), &AtomicBool::new(false), &mut |_| {}).unwrap();
    v.finish().unwrap();
    (disk, done.state)
}

fn run(disk: &Disk) -> Result<Defragmented> {
    defragment(&mut disk.clone(), 0, &AtomicBool::new(false), &mut |_| {})
}

fn mount(disk: &Disk) -> FatVolume {
    let size = disk.geometry.size;
    FatVolume::mount(Box::new(disk.clone()), 0..size, Host::with(Cache::TABLES)).unwrap()
}

#[test]
fn all_files_end_in_one_piece_and_unchanged() {
    for (size, cluster, kind, fill) in [
        (4 << 20, 512, FatType::Fat16, 0.9),
        (40 << 20, 512, FatType::Fat32, 0.05),
        (8 << 20, 1024, FatType::Fat16, 0.98),
        (2 << 20, 512, FatType::Fat12, 0.9),
        (1 << 20, 1024, FatType::Fat12, 0.95),
    ] {
        let (disk, state) = aged(size, cluster, kind, fill);
        let before = fragment::of_tree(&mount(&disk).tree().unwrap());
        let done = run(&disk).unwrap();
        assert_eq!((done.files, done.fragmented_before), (before.files, before.fragmented));
        assert!(done.fragmented_before > 5, "{done:?}");
        assert_eq!((done.fragmented_after, done.stopped), (0, false));
        let mut v = mount(&disk);
        assert_eq!(age::verify(&mut v, &state).unwrap() + 2, u64::from(done.files));
        let after = fragment::of_tree(&v.tree().unwrap());
        assert_eq!(after.fragmented, 0);
        let (was, is) = (before.free.unwrap(), after.free.unwrap());
        assert!(was.bytes == is.bytes && is.largest * 10 > is.bytes * 8, "{was:?} {is:?}");
        drop(v);
        let image = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(image.path(), &*disk.bytes.borrow()).unwrap();
        if let Ok(out) = Command::new("fsck.fat").arg("-n").arg(image.path()).output() {
            assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stdout));
        }
        assert_eq!(run(&disk).unwrap().bytes_moved, 0, "there is nothing left to do");
    }
}

/// Cuts the defragmenter off after every sector it writes: each file is whole at once, and after fsck the volume is clean with
/// all of them. `check` compares every file.
fn cut_everywhere(disk: &Disk, every: u64, fsck_every: u64, check: &dyn Fn(&Disk) -> Result<()>) {
    let image = disk.bytes.borrow().clone();
    *disk.left.borrow_mut() = u64::MAX;
    let done = run(disk).unwrap();
    assert!(done.fragmented_before > 3 && done.fragmented_after + done.directories_after == 0, "{done:?}");
    let writes = u64::MAX - *disk.left.borrow();
    assert!(writes > 200, "{writes}");
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("cut.img");
    let (mut judged, mut states) = (0, std::collections::BTreeSet::new());
    for cut in 0..writes {
        let disk = Disk::new(image.clone());
        *disk.left.borrow_mut() = cut;
        assert!(run(&disk).is_err());
        *disk.left.borrow_mut() = u64::MAX;
        let v = recognise(&disk.bytes.borrow()[..512]).unwrap();
        let found = tree(&mut disk.clone(), 0, &v).unwrap_or_else(|e| panic!("cut after {cut}: {e}"));
        states.insert((found.lost > 0, found.copies_differ));
        if cut % every == 0 {
            check(&disk).unwrap_or_else(|e| panic!("cut after {cut}: {e}"));
        }
        if cut % fsck_every == 0 || (found.copies_differ && found.lost > 0 && cut % 13 == 0 && fsck_every > 13) {
            std::fs::write(&path, &*disk.bytes.borrow()).unwrap();
            let fsck = |how: &str| Command::new("fsck.fat").arg(how).arg(&path).output();
            let Ok(mend) = fsck("-a") else { continue };
            let clean = fsck("-n").unwrap();
            assert!(clean.status.success(), "cut after {cut}: {}", String::from_utf8_lossy(&mend.stdout));
            let mended = Disk::new(std::fs::read(&path).unwrap());
            check(&mended).unwrap_or_else(|e| panic!("cut after {cut}, mended: {e}"));
            // What belonged to nothing is a file now, and may have taken the last free cluster.
            assert!(run(&mended).is_ok() || free_clusters(&mended) == 0, "cut after {cut}, mended");
            check(&mended).unwrap();
            judged += 1;
        }
    }
    assert!(states.len() >= 3, "cuts fell into all phases: {states:?}");
    if judged == 0 {
        eprintln!("skipped in part: no fsck.fat");
    }
}

#[test]
fn a_cut_after_any_write_loses_nothing() {
    let (disk, state) = aged(5 << 19, 512, FatType::Fat16, 0.04);
    cut_everywhere(&disk, 7, 97, &|d| age::verify(&mut mount(d), &state).map(drop));
}

/// FAT12: entries that lie across two sectors (341, 682, ...) are torn by a cut.
#[test]
fn a_cut_after_any_write_loses_nothing_on_fat12() {
    let (disk, state) = aged(600 << 10, 512, FatType::Fat12, 0.9);
    let used = |d: &Disk| {
        mount(d).tree().unwrap().nodes.iter().flat_map(|n| n.chain.clone()).filter(|c| [341, 682, 1023, 1365].contains(c)).count()
    };
    assert!(used(&disk) >= 2, "clusters whose entries lie across two sectors are in files");
    cut_everywhere(&disk, 3, 61, &|d| age::verify(&mut mount(d), &state).map(drop));
}

/// Directories in many pieces, in each other, with files: path, seed and length of each.
fn with_directories(size: u64, kind: FatType) -> (Disk, Vec<(String, u64, usize)>) {
    let disk = Disk::new(vec![0; size as usize]);
    let how = Format { cluster: Some(512), kind: Some(kind) };
    let mut v = FatVolume::format(Box::new(disk.clone()), 0..size, &how, Host::with(Cache::TABLES)).unwrap();
    for d in ["A", "A/B", "A/B/C", "D"] {
        v.make_dir(d).unwrap();
    }
    let mut files = vec![];
    for i in 0..88u64 {
        let dir = ["A", "A/B/C", "D", "", "A/B"][(i % 5) as usize];
        let path = format!("{dir}{}F{i}.BIN", if dir.is_empty() { "" } else { "/" });
        let len = 1 + (i * 397 % 1900) as usize;
        let (f, _) = v.create(&path).unwrap();
        v.write(f, 0, &content(i, len)).unwrap();
        v.close(f).unwrap();
        if i % 3 == 0 {
            v.delete(&path).unwrap();
        } else {
            files.push((path, i, len));
        }
    }
    // Some grow behind the others.
    for (path, seed, len) in files.iter_mut().step_by(4) {
        let (f, _) = v.open(path).unwrap();
        v.write(f, 0, &content(*seed, *len + 1500)).unwrap();
        v.close(f).unwrap();
        *len += 1500;
    }
    v.finish().unwrap();
    (disk, files)
}

fn content(seed: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    crate::device::Fill::Random(seed).render(0, &mut bytes);
    bytes
}

fn all_there(disk: &Disk, files: &[(String, u64, usize)]) -> Result<()> {
    let mut v = mount(disk);
    for (path, seed, len) in files {
        let (f, _) = v.open(path)?;
        let mut back = vec![0; *len];
        v.read(f, 0, &mut back)?;
        v.close(f)?;
        if back != content(*seed, *len) {
            return Err(VolumeError::Damaged(path.clone()));
        }
    }
    Ok(())
}

#[test]
fn directories_move_too_and_a_cut_after_any_write_loses_nothing() {
    for (size, kind, every) in [(400 << 10, FatType::Fat12, 3), (5 << 19, FatType::Fat16, 11), (40 << 20, FatType::Fat32, 97)] {
        let (disk, files) = with_directories(size, kind);
        let before = mount(&disk).tree().unwrap();
        let broken = |t: &nandscope_fat::Tree| t.nodes.iter().filter(|n| n.directory && nandscope_fat::runs(&n.chain).len() > 1).count();
        assert!(broken(&before) >= 3, "{kind}: directories are in pieces");
        if kind == FatType::Fat32 {
            // An image of this size is not copied for each cut.
            let done = run(&disk).unwrap();
            assert_eq!((done.directories_before as usize, done.directories_after), (broken(&before), 0));
            all_there(&disk, &files).unwrap();
        } else {
            cut_everywhere(&disk, every, 41, &|d| all_there(d, &files));
        }
        let after = mount(&disk).tree().unwrap();
        assert_eq!(broken(&after), 0, "{kind}");
        let names = |t: &nandscope_fat::Tree| {
            let mut n: Vec<String> = t.nodes.iter().map(|n| n.path.clone()).collect();
            n.sort();
            n
        };
        assert_eq!(names(&before), names(&after));
        let image = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(image.path(), &*disk.bytes.borrow()).unwrap();
        if let Ok(out) = Command::new("fsck.fat").arg("-n").arg(image.path()).output() {
            assert!(out.status.success(), "{kind}: {}", String::from_utf8_lossy(&out.stdout));
        }
    }
}

#[test]
fn stopped_it_goes_on() {
    let (disk, state) = aged(4 << 20, 512, FatType::Fat16, 0.9);
    let mut stops = 0;
    loop {
        let stop = AtomicBool::new(false);
        let done = defragment(&mut disk.clone(), 0, &stop, &mut |x| stop.store(x > 0.0, Ordering::Relaxed)).unwrap();
        age::verify(&mut mount(&disk), &state).unwrap();
        if !done.stopped {
            break;
        }
        stops += 1;
        assert!(stops < 1000);
        if done.fragmented_after == 0 {
            break;
        }
        // From here on without a stop.
        run(&disk).unwrap();
    }
    assert!(stops > 0);
}

#[test]
fn what_cannot_be_defragmented_is_left_alone() {
    let blank = Disk::new(vec![0; 1 << 20]);
    assert!(matches!(run(&blank), Err(VolumeError::Foreign(_))));
    // A table that contradicts its copy, and a chain that runs in a circle.
    let (disk, _) = aged(4 << 20, 512, FatType::Fat16, 0.5);
    let v = recognise(&disk.bytes.borrow()[..512]).unwrap();
    let file = mount(&disk).tree().unwrap().nodes.into_iter().find(|n| n.chain.len() > 3).unwrap();
    let at = (v.fat_start + 2 * u64::from(file.chain[2])) as usize;
    let whole = disk.bytes.borrow().clone();
    disk.bytes.borrow_mut()[at + v.fat_length as usize] ^= 1;
    assert!(matches!(run(&disk), Err(VolumeError::Damaged(_))));
    *disk.bytes.borrow_mut() = whole;
    disk.bytes.borrow_mut()[at..at + 2].copy_from_slice(&(file.chain[0] as u16).to_le_bytes());
    let before = disk.bytes.borrow().clone();
    assert!(matches!(run(&disk), Err(VolumeError::Damaged(_))));
    let size = disk.geometry.size;
    let mounted = FatVolume::mount(Box::new(disk.clone()), 0..size, Host::with(Cache::TABLES));
    assert!(matches!(mounted.err(), Some(VolumeError::Damaged(_))));
    assert!(before == *disk.bytes.borrow());
}

#[test]
fn a_simulated_card_takes_its_time() {
    let card = Shared::new(SimDevice::new(&Model::parse(cards::text("cf-256mb").unwrap(), "x").unwrap(), 1).with_content());
    let how = Format { cluster: Some(1024), kind: Some(FatType::Fat16) };
    let mut v = FatVolume::format(Box::new(card.clone()), 0..8 << 20, &how, Host::with(Cache::TABLES)).unwrap();
    let state = age::age(&mut v, &plan(0.8), &AtomicBool::new(false), &mut |_| {}).unwrap().state;
    v.finish().unwrap();
    let start = card.now();
    let done = defragment(&mut card.clone(), 0, &AtomicBool::new(false), &mut |_| {}).unwrap();
    assert!((card.now() - start).secs() > done.bytes_moved as f64 / 3e6, "no faster than its bus");
    let mut v = FatVolume::mount(Box::new(card.clone()), 0..8 << 20, Host::with(Cache::TABLES)).unwrap();
    age::verify(&mut v, &state).unwrap();
}

/// Fills the volume with one more file, until this many clusters are free.
fn leave(disk: &Disk, free: u64) {
    let mut v = mount(disk);
    let (f, _) = v.create("LAST.BIN").unwrap();
    v.write(f, 0, &[7]).unwrap();
    let tree = v.tree().unwrap();
    let clusters: u64 = tree.free_runs().iter().map(|r| u64::from(r.1)).sum();
    let len = (1 + clusters - free) * tree.volume.cluster;
    v.write(f, 0, &content(7, len as usize)).unwrap();
    v.close(f).unwrap();
    v.finish().unwrap();
}

fn free_clusters(disk: &Disk) -> u64 {
    mount(disk).tree().unwrap().free_runs().iter().map(|r| u64::from(r.1)).sum()
}

/// Large files, and every free cluster inside the place of one of them.
#[test]
fn free_clusters_inside_the_place_of_a_file_are_enough() {
    for seed in [1, 2, 7] {
        let disk = Disk::new(vec![0; 16 << 20]);
        let how = Format { cluster: Some(16 << 10), kind: Some(FatType::Fat12) };
        let mut v = FatVolume::format(Box::new(disk.clone()), 0..16 << 20, &how, Host::with(Cache::TABLES)).unwrap();
        let plan = Plan { passes: 20, seed, ..Plan::default() };
        let state = age::age(&mut v, &plan, &AtomicBool::new(false), &mut |_| {}).unwrap().state;
        v.finish().unwrap();
        let done = run(&disk).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        assert!(done.fragmented_before > 5 && done.fragmented_after == 0, "{done:?}");
        age::verify(&mut mount(&disk), &state).unwrap();
    }
}

#[test]
fn one_free_cluster_is_enough_and_none_changes_nothing() {
    for (size, cluster, kind) in [
        (4 << 20, 512, FatType::Fat16),
        (40 << 20, 512, FatType::Fat32),
        (2 << 20, 512, FatType::Fat12),
        (1 << 20, 1024, FatType::Fat12),
        (16 << 20, 16 << 10, FatType::Fat12),
    ] {
        for free in 0..4 {
            let (disk, state) = aged(size, cluster, kind, 0.1);
            leave(&disk, free);
            assert_eq!(free_clusters(&disk), free);
            let before = disk.bytes.borrow().clone();
            let done = run(&disk);
            if free == 0 {
                assert!(matches!(done, Err(VolumeError::Full(_))), "{kind}: {done:?}");
                assert!(before == *disk.bytes.borrow(), "{kind}: a full volume stays as it is");
                continue;
            }
            let done = done.unwrap_or_else(|e| panic!("{kind}, {free} free: {e}"));
            assert!(done.fragmented_before > 3 && done.fragmented_after == 0, "{kind}, {free} free: {done:?}");
            age::verify(&mut mount(&disk), &state).unwrap();
            assert_eq!(free_clusters(&disk), free);
            assert_eq!(run(&disk).unwrap().bytes_moved, 0, "{kind}: there is nothing left to do");
        }
    }
}

/// With one free cluster a guest makes way where an entry of FAT12 lies across two sectors.
#[test]
fn a_cut_after_any_write_loses_nothing_where_one_cluster_is_free() {
    let (disk, state) = aged(400 << 10, 512, FatType::Fat12, 0.5);
    leave(&disk, 1);
    cut_everywhere(&disk, 3, 199, &|d| age::verify(&mut mount(d), &state).map(drop));
}

/// The entry of cluster 341 or 682 lies in two sectors: its file is whole after a cut between them, too.
#[test]
fn an_entry_across_two_sectors_is_never_torn() {
    let (disk, state) = aged(600 << 10, 512, FatType::Fat12, 0.8);
    let image = disk.bytes.borrow().clone();
    let mut tried = 0;
    for across in [341, 682] {
        for cut in 0.. {
            let disk = Disk::new(image.clone());
            let mut d = disk.clone();
            let volume = recognise(&image[..512]).unwrap();
            let found = tree(&mut d, 0, &volume).unwrap();
            let items = found.nodes.iter().filter(|n| !n.chain.is_empty());
            let items = items.map(|n| Item { chain: n.chain.clone(), entry: n.entry, directory: n.directory }).collect();
            let mut m = Mover::new(&mut d, 0, found, items);
            let (f, i) = m.owner[across as usize];
            let Some(&next) = m.items.get(f as usize).and_then(|x| x.chain.get(i as usize + 1)) else { break };
            // A half of the new number and a half of the old one are a third.
            let other = |n: u32| n >> 8 != next >> 8 && n >> 4 != next >> 4 && n & 0xf != next & 0xf && n & 0xff != next & 0xff;
            let Some(new) = m.free.iter().copied().find(|&n| other(n)) else { break };
            *disk.left.borrow_mut() = cut;
            let done = m.all(&[(next, new)]);
            drop(m);
            *disk.left.borrow_mut() = u64::MAX;
            age::verify(&mut mount(&disk), &state).unwrap_or_else(|e| panic!("cluster {across}, cut after {cut}: {e}"));
            tried += 1;
            if done.is_ok() {
                break;
            }
        }
    }
    assert!(tried > 20, "{tried}");
}

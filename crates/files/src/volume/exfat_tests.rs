use super::*;
use crate::device::{Consent, Limits, OpenOptions, open};
use crate::volume::{Cache, Shared, tree};
use nandscope_fat::{Options, plan};
use std::process::Command;

const SIZE: u64 = 64 * MIB;

/// An image with an empty exFAT volume from its first byte on.
fn image(dir: &std::path::Path, cluster: u64) -> (Shared<crate::device::Guard>, std::path::PathBuf) {
    let path = dir.join("volume.img");
    std::fs::File::create(&path).unwrap().set_len(SIZE).unwrap();
    let o = open(path.to_str().unwrap(), &OpenOptions::default()).unwrap();
    let consent = Consent::check(o.id(), Some(&SIZE.to_string())).unwrap();
    let g = o.writable(&consent, &Limits { budget: SIZE, ..Limits::default() }).unwrap();
    let mut shared = Shared::new(g);
    let layout = plan(&Options { kind: Some(FatType::ExFat), cluster: Some(cluster), table: false, ..Options::card(SIZE) }).unwrap();
    crate::layout::format::apply(&mut shared, &layout, &mut |_| {}).unwrap();
    (shared, path)
}

fn bytes(n: usize, seed: u8) -> Vec<u8> {
    (0..n).map(|i| (i * 7 + i / 251) as u8 ^ seed).collect()
}

#[test]
fn files_in_one_piece_and_in_many_are_read_back_and_pass_fsck() {
    let dir = tempfile::tempdir().unwrap();
    let (shared, path) = image(dir.path(), 32768);
    for cache in [Cache::ONE_SECTOR, Cache::NONE, Cache::TABLES] {
        let mut v = ExFatVolume::mount(Box::new(shared.clone()), 0..SIZE, Host::with(cache)).unwrap();
        let name = |n: &str| format!("{n} with a name of more than fifteen characters, {cache:?}").replace([':', '"'], "");
        let (whole, _) = v.create(&name("whole")).unwrap();
        let content = bytes(200_000, 1);
        for (i, part) in content.chunks(50_000).enumerate() {
            v.write(whole, i as u64 * 50_000, part).unwrap();
        }
        assert!(matches!(v.write(whole, 5, &[1]), Err(VolumeError::Unsupported(_))), "only at the end");
        v.close(whole).unwrap();
        assert!(matches!(v.create(&name("WHOLE")), Err(VolumeError::Unsupported(_))), "there already");
        // Two at a time take clusters in turn.
        let (a, b) = (v.create(&name("a")).unwrap().0, v.create(&name("b")).unwrap().0);
        for i in 0..4u64 {
            v.write(a, i * 40_000, &bytes(40_000, 2)).unwrap();
            v.write(b, i * 40_000, &bytes(40_000, 3)).unwrap();
        }
        v.close(a).unwrap();
        v.close(b).unwrap();
        assert!(v.write(a, 0, &[1]).is_err(), "closed");
        let (empty, _) = v.create(&name("empty")).unwrap();
        v.close(empty).unwrap();
        let volume = v.volume().clone();
        v.finish().unwrap();
        let mut device = shared.clone();
        let t = tree(&mut device, 0, &volume).unwrap();
        assert_eq!(t.lost, 0);
        let mut read = |name: &str| {
            let node = t.nodes.iter().find(|n| n.path == name).unwrap_or_else(|| panic!("no {name}"));
            let mut all = vec![];
            for &c in &node.chain {
                let mut part = vec![0; volume.cluster as usize];
                device.load(t.place(c), &mut part).unwrap();
                all.extend(part);
            }
            all.truncate(node.size as usize);
            (all, nandscope_fat::runs(&node.chain).len())
        };
        assert_eq!(read(&name("whole")), (content, 1));
        let (got, pieces) = read(&name("b"));
        assert!(got == bytes(40_000, 3).repeat(4) && pieces > 1, "{pieces} pieces");
        assert!(read(&name("empty")).0.is_empty());
    }
    fsck(&path);
}

fn fsck(path: &std::path::Path) {
    match Command::new("fsck.exfat").arg("-n").arg(path).output() {
        Ok(out) => assert!(out.status.success() && String::from_utf8_lossy(&out.stdout).contains("clean"), "{out:?}"),
        Err(e) => println!("skipped: fsck.exfat: {e}"),
    }
}

#[test]
fn the_root_directory_grows() {
    let dir = tempfile::tempdir().unwrap();
    let (shared, path) = image(dir.path(), 512);
    let mut v = ExFatVolume::mount(Box::new(shared.clone()), 0..SIZE, Host::with(Cache::ONE_SECTOR)).unwrap();
    for i in 0..40 {
        let (f, _) = v.create(&format!("file number {i}")).unwrap();
        v.write(f, 0, &bytes(700, i)).unwrap();
        v.close(f).unwrap();
    }
    let volume = v.volume().clone();
    v.finish().unwrap();
    // Mounted again, it goes on behind what is there.
    let mut v = ExFatVolume::mount(Box::new(shared.clone()), 0..SIZE, Host::with(Cache::NONE)).unwrap();
    assert!(matches!(v.create("file number 7"), Err(VolumeError::Unsupported(_))));
    let (f, _) = v.create("one more").unwrap();
    v.close(f).unwrap();
    v.finish().unwrap();
    let t = tree(&mut shared.clone(), 0, &volume).unwrap();
    assert_eq!((t.nodes.len(), t.lost), (1 + 41, 0));
    fsck(&path);
}

#[test]
fn a_full_volume_and_foreign_ones_are_errors() {
    let dir = tempfile::tempdir().unwrap();
    let (mut shared, _) = image(dir.path(), 32768);
    let mount = |s: &Shared<_>, range| ExFatVolume::mount(Box::new(s.clone()), range, Host::with(Cache::TABLES));
    assert!(matches!(mount(&shared, MIB..SIZE), Err(VolumeError::Foreign(_))));
    assert!(matches!(mount(&shared, 0..SIZE / 2), Err(VolumeError::Damaged(_))));
    let mut v = mount(&shared, 0..SIZE).unwrap();
    assert!(v.create("a:b").is_err() && v.create("").is_err() && v.create("Größe").is_err());
    let (f, _) = v.create("full").unwrap();
    let mut at = 0;
    let end = loop {
        match v.write(f, at, &vec![9; MIB as usize]) {
            Ok(_) => at += MIB,
            Err(e) => break e,
        }
    };
    assert!(matches!(end, VolumeError::Full(_)) && at > 60 * MIB, "{end} at {at}");
    v.finish().unwrap();
    // Without the bitmap in its directory it is damaged.
    let mut boot = [0; 512];
    shared.load(0, &mut boot).unwrap();
    let volume = recognise(&boot).unwrap();
    let root = volume.data_start + u64::from(volume.root_cluster.unwrap() - 2) * volume.cluster;
    shared.store(root, &[0; 512]).unwrap();
    assert!(matches!(mount(&shared, 0..SIZE), Err(VolumeError::Damaged(_))));
}

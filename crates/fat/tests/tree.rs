//! Reading what lies on a volume, and noticing that it contradicts itself.

use nandscope_fat::{FatType, Mark, Options, Tree, TreeError, plan, recognise, runs};

struct Disk {
    bytes: Vec<u8>,
    v: nandscope_fat::Volume,
}

impl Disk {
    /// A FAT16 volume with a file of three clusters under a long name, and a directory with an empty file.
    fn new() -> Disk {
        let layout = plan(&Options { table: false, ..Options::card(128 << 20) }).unwrap();
        let mut bytes = vec![0; 128 << 20];
        layout
            .write::<()>(
                |at, b| {
                    bytes[at as usize..][..b.len()].copy_from_slice(b);
                    Ok(())
                },
                || Ok(()),
            )
            .unwrap();
        let v = recognise(&bytes[layout.start() as usize..]).unwrap();
        assert_eq!(v.kind, FatType::Fat16);
        let mut d = Disk { bytes, v };
        for (c, n) in [(5, 9), (9, 10), (10, 0xffff), (7, 0xffff)] {
            d.table(c, n);
        }
        let root = d.v.root_start.unwrap() as usize;
        // The label of the volume, a removed file, then a long name in two parts, last part first.
        d.entry(root, b"LABEL      ", 0x08, 0, 0);
        d.entry(root + 32, b"\xe5ONE    BIN", 0x20, 5, 9);
        d.long(root + 64, 0x42, "me.txt");
        d.long(root + 96, 1, "A rather long");
        d.entry(root + 128, b"ARATHE~1TXT", 0x20, 5, 40_000);
        d.entry(root + 160, b"DIR        ", 0x10, 7, 0);
        let dir = d.v.data_start as usize + 5 * d.v.cluster as usize;
        d.entry(dir, b".          ", 0x10, 7, 0);
        d.entry(dir + 32, b"..         ", 0x10, 0, 0);
        d.entry(dir + 64, b"EMPTY   B  ", 0x20, 0, 0);
        d
    }

    fn table(&mut self, cluster: usize, next: u16) {
        for copy in 0..usize::from(self.v.fats) {
            self.one(copy, cluster, next);
        }
    }

    fn one(&mut self, copy: usize, cluster: usize, next: u16) {
        let at = self.v.fat_start as usize + copy * self.v.fat_length as usize + 2 * cluster;
        self.bytes[at..at + 2].copy_from_slice(&next.to_le_bytes());
    }

    fn entry(&mut self, at: usize, name: &[u8; 11], kind: u8, first: u16, size: u32) {
        let e = &mut self.bytes[at..at + 32];
        e[..11].copy_from_slice(name);
        e[11] = kind;
        e[26..28].copy_from_slice(&first.to_le_bytes());
        e[28..32].copy_from_slice(&size.to_le_bytes());
    }

    fn long(&mut self, at: usize, number: u8, text: &str) {
        let places = [1usize, 3, 5, 7, 9, 14, 16, 18, 20, 22, 24, 28, 30];
        let mut words = text.encode_utf16().chain([0]).chain(std::iter::repeat(0xffff));
        let e = &mut self.bytes[at..at + 32];
        (e[0], e[11]) = (number, 0x0f);
        for p in places {
            e[p..p + 2].copy_from_slice(&words.next().unwrap().to_le_bytes());
        }
    }

    fn read(&self) -> Result<Tree, String> {
        let read = |at: u64, into: &mut [u8]| {
            let from = self.bytes.get(at as usize..at as usize + into.len()).ok_or("behind the end")?;
            into.copy_from_slice(from);
            Ok(())
        };
        Tree::read(&self.v, read).map_err(|e: TreeError<&str>| match e {
            TreeError::Read(e) => e.to_string(),
            TreeError::Damaged(e) => e,
        })
    }
}

#[test]
fn files_directories_and_free_space() {
    let t = Disk::new().read().unwrap();
    let mut nodes: Vec<(&str, bool, u64, &[u32])> = t.nodes.iter().map(|n| (&n.path[..], n.directory, n.size, &n.chain[..])).collect();
    nodes.sort();
    assert_eq!(nodes, [("A rather longme.txt", false, 40_000, &[5u32, 9, 10][..]), ("DIR", true, 0, &[7]), ("DIR/EMPTY.B", false, 0, &[])]);
    assert_eq!((t.lost, t.copies_differ), (0, false));
    assert_eq!(runs(&[5, 9, 10]), [(5, 1), (9, 2)]);
    assert_eq!((t.mark(5), t.mark(10), t.mark(6)), (Mark::Next(9), Mark::End, Mark::Free));
    assert_eq!(t.free_runs()[..4], [(2, 3), (6, 1), (8, 1), (11, t.table.len() as u32 - 11)]);
    assert_eq!(t.place(5), t.volume.data_start + 3 * t.volume.cluster);
}

#[test]
fn each_contradiction_is_named() {
    let broken = |change: &dyn Fn(&mut Disk)| {
        let mut d = Disk::new();
        change(&mut d);
        d.read().unwrap_err()
    };
    assert!(broken(&|d| d.table(10, 5)).contains("twice"), "a circle");
    assert!(broken(&|d| d.table(9, 7)).contains("two files"), "two chains meet");
    assert!(broken(&|d| d.table(9, 0)).contains("free"));
    assert!(broken(&|d| d.table(9, 0xfff7)).contains("bad"));
    assert!(broken(&|d| d.table(9, 0xffef)).contains("not on the volume"));
    assert!(broken(&|d| d.table(9, 0xffff)).contains("clusters"), "too short for its size");
    let root = Disk::new().v.root_start.unwrap() as usize;
    assert!(broken(&|d| d.entry(root + 160, b"DIR        ", 0x10, 0, 0)).contains("without a cluster"));
    let mut d = Disk::new();
    d.bytes.truncate(d.v.data_start as usize);
    assert_eq!(d.read().unwrap_err(), "behind the end");
}

#[test]
fn what_fsck_mends_without_loss_is_told() {
    let mut d = Disk::new();
    d.table(20, 21);
    d.table(21, 0xffff);
    d.one(1, 30, 0xffff);
    let t = d.read().unwrap();
    assert_eq!((t.lost, t.copies_differ), (2, true));
}

/// An exFAT volume made by our own formatter, with a file in one piece, one in a chain, and a directory, entered by hand.
#[test]
fn exfat_files_with_and_without_a_chain() {
    let layout = plan(&Options { table: false, kind: Some(FatType::ExFat), ..Options::card(64 << 20) }).unwrap();
    let mut bytes = vec![0u8; 64 << 20];
    layout
        .write::<()>(
            |at, b| {
                bytes[at as usize..][..b.len()].copy_from_slice(b);
                Ok(())
            },
            || Ok(()),
        )
        .unwrap();
    let v = recognise(&bytes[layout.start() as usize..]).unwrap();
    let place = |c: u32| (v.data_start + u64::from(c - 2) * v.cluster) as usize;
    let read = |bytes: &[u8]| {
        Tree::read::<()>(&v, |at, into| {
            into.copy_from_slice(&bytes[at as usize..at as usize + into.len()]);
            Ok(())
        })
    };
    let empty = read(&bytes).unwrap();
    assert_eq!((empty.nodes.len(), empty.lost), (1, 0));
    let first = empty.free_runs()[0].0 + 10;
    let root = v.root_cluster.unwrap();
    let mut at = place(root) + bytes[place(root)..].chunks(32).position(|e| e[0] == 0).unwrap() * 32;
    let mut add = |bytes: &mut Vec<u8>, name: &str, directory: bool, first: u32, len: u64, one_piece: bool| {
        let mut e = [0u8; 96];
        (e[0], e[1], e[4]) = (0x85, 2, if directory { 0x10 } else { 0x20 });
        (e[32], e[33], e[35]) = (0xc0, if one_piece { 3 } else { 1 }, name.len() as u8);
        e[52..56].copy_from_slice(&first.to_le_bytes());
        e[56..64].copy_from_slice(&len.to_le_bytes());
        e[64] = 0xc1;
        for (i, c) in name.bytes().enumerate() {
            e[66 + 2 * i] = c;
        }
        bytes[at..at + 96].copy_from_slice(&e);
        at += 96;
    };
    add(&mut bytes, "whole", false, first, 3 * v.cluster, true);
    add(&mut bytes, "chain", false, first + 4, v.cluster + 1, false);
    add(&mut bytes, "dir", true, first + 8, v.cluster, true);
    for (c, n) in [(first + 4, first + 6), (first + 6, u32::MAX)] {
        let entry = v.fat_start as usize + 4 * c as usize;
        bytes[entry..entry + 4].copy_from_slice(&n.to_le_bytes());
    }
    // The bitmap is the first entry of its kind in the root directory.
    let e = place(root) + bytes[place(root)..].chunks(32).position(|e| e[0] == 0x81).unwrap() * 32;
    let bitmap = place(u32::from_le_bytes([0, 1, 2, 3].map(|i| bytes[e + 20 + i])));
    for c in [0, 1, 2, 4, 6, 8, 12].map(|k| first + k - 2) {
        bytes[bitmap + c as usize / 8] |= 1 << (c % 8);
    }
    let t = read(&bytes).unwrap();
    let chains: Vec<(&str, &[u32])> = t.nodes[1..].iter().map(|n| (&n.path[..], &n.chain[..])).collect();
    assert_eq!(chains, [("whole", &[first, first + 1, first + 2][..]), ("chain", &[first + 4, first + 6]), ("dir", &[first + 8])]);
    assert_eq!((t.lost, t.mark(first), t.mark(first + 2), t.mark(first + 3)), (1, Mark::Next(first + 1), Mark::End, Mark::Free));
    // A file whose clusters are marked as free.
    bytes[bitmap + (first as usize - 2) / 8] = 0;
    assert!(matches!(read(&bytes), Err(TreeError::Damaged(_))));
}

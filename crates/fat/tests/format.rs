//! New volumes of every capacity, judged by the tools people use and by figures of other formatters.

use nandscope_fat::{Convention, FatType, Layout, Options, Step, is_unfinished, plan, recognise, sd_units};
use proptest::prelude::*;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
static ZEROS: [u8; 1 << 20] = [0; 1 << 20];

/// A sparse file; zeros are not written.
fn sparse(path: &Path, size: u64) -> File {
    let f = OpenOptions::new().create(true).truncate(true).read(true).write(true).open(path).unwrap();
    f.set_len(size).unwrap();
    f
}

/// Writes the whole card and, into a second file, the volume alone, as the checkers want it.
fn images(layout: &Layout, dir: &Path) -> (PathBuf, PathBuf) {
    let (card, volume) = (dir.join("card.img"), dir.join("volume.img"));
    let whole = sparse(&card, layout.options.capacity);
    let alone = sparse(&volume, layout.volume.size);
    layout
        .write::<std::io::Error>(
            |at, bytes| {
                assert!(at + bytes.len() as u64 <= layout.options.capacity);
                if at > 0 && bytes == &ZEROS[..bytes.len()] {
                    return Ok(());
                }
                whole.write_all_at(bytes, at)?;
                match at.checked_sub(layout.start()) {
                    Some(inside) if inside < layout.volume.size => alone.write_all_at(bytes, inside),
                    _ => Ok(()),
                }
            },
            || Ok(()),
        )
        .unwrap();
    let differs = layout.verify::<std::io::Error>(|at, b| whole.read_exact_at(b, at)).unwrap();
    assert_eq!(differs, None);
    (card, volume)
}

fn have(program: &str) -> bool {
    let found = std::env::var_os("PATH").is_some_and(|p| std::env::split_paths(&p).any(|d| d.join(program).exists()));
    if !found {
        println!("skipped: there is no {program}");
    }
    found
}

fn run(program: &str, args: &[&str]) -> String {
    let out = Command::new(program).args(args).env("MTOOLS_SKIP_CHECK", "0").output().unwrap();
    let text = format!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    assert!(out.status.success(), "{program} {args:?}: {}\n{text}", out.status);
    text
}

/// What fsck, mtools and our own reader say of a layout.
fn judge(layout: &Layout) {
    let dir = tempfile::tempdir().unwrap();
    let (card, volume) = images(layout, dir.path());
    let mut boot = vec![0; 512];
    File::open(&volume).unwrap().read_exact_at(&mut boot, 0).unwrap();
    assert_eq!(recognise(&boot).as_ref(), Ok(&layout.volume), "{layout:?}");
    let volume = volume.to_str().unwrap();
    if layout.volume.kind == FatType::ExFat {
        if have("fsck.exfat") {
            let text = run("fsck.exfat", &["-n", volume]);
            assert!(text.contains("clean"), "{text}");
        }
        return;
    }
    if have("fsck.fat") {
        let text = run("fsck.fat", &["-n", "-v", volume]);
        assert!(text.contains(&format!("/{} clusters", layout.volume.clusters)), "{text}");
        // mtools and Linux must agree on the type.
        let bits = [("FAT12", "12 bit "), ("FAT16", "16 bit "), ("FAT32", "32 bit ")];
        let name = layout.volume.kind.to_string();
        let want = bits.iter().find(|b| b.0 == name).unwrap().1;
        assert!(text.contains(want), "{name}: {text}");
    }
    if have("mdir") {
        let place = format!("{}@@{}", card.display(), layout.start());
        let file = dir.path().join("hello");
        std::fs::write(&file, vec![7; 100_000]).unwrap();
        run("mcopy", &["-i", &place, file.to_str().unwrap(), "::HELLO.BIN"]);
        let text = run("mdir", &["-i", &place, "::"]);
        assert!(text.contains("HELLO") && text.contains("100 000"), "{text}");
        if let Some(l) = &layout.options.label {
            assert!(text.contains(&l.to_uppercase()), "{text}");
        }
    }
}

/// Capacities of the table in SD Part 2, its edges, real cards, and sizes that are no round number.
const CAPACITIES: &[u64] = &[
    8 * MIB,
    8 * MIB + 512,
    15_728_640 + 512 * 7,
    64 * MIB,
    64 * MIB + 512,
    65 * MIB,
    127_926_272,
    256 * MIB,
    488 * MIB,
    GIB,
    2_032_664_576,
    2 * GIB,
    2 * GIB + 512,
    2 * GIB + 8 * MIB,
    2 * GIB + 9 * MIB,
    3_965_190_144,
    32 * GIB,
    32 * GIB + 512,
    63_864_569_856,
    251_394_048 * 512,
    128 * GIB + 512,
    512 * GIB,
    1000 * GIB,
    2048 * GIB,
];

#[test]
fn sd_cards_of_every_capacity_pass_the_checkers() {
    for (i, &capacity) in CAPACITIES.iter().enumerate() {
        let label = (i % 2 == 0).then(|| "Nand 1".to_string());
        judge(&plan(&Options { label, serial: 0x1234_5678, ..Options::card(capacity) }).unwrap());
    }
}

#[test]
fn other_grids_types_and_places_pass_the_checkers() {
    let grid = |unit, first| Convention::Grid { unit, first };
    let o = |capacity, convention| Options { convention, ..Options::card(capacity) };
    let mut all = vec![
        o(4 * GIB, grid(12 * MIB, 0)),
        o(4 * GIB, grid(4128 * KIB, 0)),
        o(488 * MIB, grid(128 * KIB, 0)),
        o(GIB, grid(4 * MIB, MIB + 512)),
        o(64 * GIB, grid(24 * MIB, 5 * MIB)),
        o(488 * MIB, Convention::Careless),
        o(8 * GIB, Convention::Careless),
    ];
    for kind in [FatType::Fat12, FatType::Fat16, FatType::Fat32, FatType::ExFat] {
        let capacity = if kind == FatType::Fat12 { 32 * MIB } else { 1200 * MIB };
        all.push(Options { kind: Some(kind), ..Options::card(capacity) });
        // A partition as the target: no table, and its own place on the disk counts.
        all.push(Options { kind: Some(kind), table: false, offset: 63 * 512, ..Options::card(capacity) });
    }
    all.push(Options { kind: Some(FatType::Fat32), ..Options::card(200 * GIB) });
    all.push(Options { kind: Some(FatType::ExFat), cluster: Some(4 * KIB), ..Options::card(40 * GIB) });
    for o in all {
        let layout = plan(&o).unwrap();
        if let Convention::Grid { unit, first } = o.convention {
            assert_eq!(layout.data_on_disk() % unit, first % unit, "{layout:?}");
        }
        judge(&layout);
    }
}

/// C25: clusters and boundary units by capacity (SD Part 2, in the exfatprogs manual).
#[test]
fn clusters_and_boundaries_are_those_of_the_convention() {
    for &capacity in CAPACITIES {
        let l = plan(&Options::card(capacity)).unwrap();
        let (cluster, unit) = sd_units(capacity);
        assert_eq!((l.volume.cluster, l.boundary), (cluster, unit));
        assert_eq!(l.data_on_disk() % unit, 0);
        // All of the card is in use, but at the limits of FAT12 and FAT16, where 4084 and 65524 clusters are all there can be.
        let lost = capacity - (l.start() + l.volume.size);
        let full = [4084, 65524].contains(&l.volume.clusters);
        assert!(lost < if full { 10 * MIB } else { cluster }, "{capacity}: {lost}");
    }
}

/// Fields as SdFat's formatter makes them (field notes on its constants), where the two agree on the cluster.
#[test]
fn fields_agree_with_sdfat() {
    for capacity in [8 * GIB, 3_965_190_144, 32 * GIB] {
        let l = plan(&Options::card(capacity)).unwrap();
        let p = l.partition.unwrap();
        assert_eq!(p.start, 8192 * 512, "FAT32 partition at sector 8192");
        assert_eq!((p.start + l.volume.data_start) % (8192 * 512), 0);
        assert_eq!(l.volume.cluster, 64 * 512);
        assert!(l.volume.fat_start >= 9 * 512);
        assert_eq!(p.kind, if capacity < 8 * GIB { 0x0b } else { 0x0c });
    }
    for capacity in [60 * GIB, 64 * GIB, 251_394_048 * 512, 256_060_514_304, 512 * GIB, 1024 * GIB, 2048 * GIB] {
        // vs = ceil(log2 sectors); cluster 2^((vs-11)/2), FAT length and offset 2^((vs+1)/2), partition and heap twice that.
        let vs = (capacity / 512).next_power_of_two().trailing_zeros();
        let l = plan(&Options::card(capacity)).unwrap();
        let (cluster, fat) = (512u64 << ((vs - 11) / 2), 512u64 << vs.div_ceil(2));
        assert_eq!(l.volume.cluster, cluster);
        assert_eq!((l.volume.fat_start, l.volume.fat_length), (fat, fat));
        assert_eq!((l.start(), l.volume.data_start), (2 * fat, 2 * fat));
    }
    // 1 GB and 2 GB cards from the factory begin at sectors between one and two boundary units, with the data on a boundary.
    for capacity in [980 * MIB, 1938 * MIB] {
        let l = plan(&Options::card(capacity)).unwrap();
        assert_eq!(l.volume.kind, FatType::Fat16);
        assert!((128..256).contains(&(l.start() / 512)), "{}", l.start() / 512);
        assert_eq!(l.volume.fat_start, 512);
        assert_eq!(l.partition.unwrap().kind, 0x06);
    }
}

/// A 128 GB SDXC card as it left the factory (exfatprogs issue 145): 251394048 sectors, partition at sector 32768.
#[test]
fn a_factory_sdxc_card() {
    let l = plan(&Options::card(251_394_048 * 512)).unwrap();
    assert_eq!((l.start(), l.volume.fat_start, l.volume.fat_length), (32768 * 512, 8 * MIB, 8 * MIB));
    assert_eq!((l.volume.data_start, l.volume.cluster), (16 * MIB, 128 * KIB));
}

/// mkfs.exfat with the half boundary unit that its manual asks for makes the same boot sector fields.
#[test]
fn fields_agree_with_exfatprogs() {
    if !have("mkfs.exfat") {
        return;
    }
    for (capacity, half, cluster) in [
        (64 * GIB, "8M", "128K"),
        (251_394_048 * 512, "8M", "128K"),
        (200 * GIB, "16M", "256K"),
        (1024 * GIB, "32M", "512K"),
        (2048 * GIB, "32M", "512K"),
    ] {
        let layout = plan(&Options::card(capacity)).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("volume.img");
        let f = sparse(&path, capacity - layout.start());
        run("mkfs.exfat", &["-b", half, "-c", cluster, path.to_str().unwrap()]);
        let mut boot = vec![0; 512];
        f.read_exact_at(&mut boot, 0).unwrap();
        let theirs = recognise(&boot).unwrap();
        let ours = &layout.volume;
        assert_eq!((theirs.fat_start, theirs.data_start), (ours.fat_start, ours.data_start));
        assert_eq!((theirs.cluster, theirs.clusters, theirs.root_cluster), (ours.cluster, ours.clusters, ours.root_cluster));
        let mut theirs = vec![0; 96];
        f.read_exact_at(&mut theirs, ours.data_start + (u64::from(ours.root_cluster.unwrap()) - 2) * ours.cluster).unwrap();
        let root = layout.start() + ours.data_start + (u64::from(ours.root_cluster.unwrap()) - 2) * ours.cluster;
        let dir = layout.steps().into_iter().find_map(|s| match s {
            Step::Put { at, bytes } if at == root => Some(bytes),
            _ => None,
        });
        // Bitmap and up-case entries, byte for byte.
        assert_eq!(dir.unwrap()[32..96], theirs[32..96]);
    }
}

#[test]
fn impossible_wishes_are_errors_with_the_reason() {
    let err = |o: Options| plan(&o).unwrap_err().to_string();
    let card = Options::card(4 * GIB);
    assert!(err(Options { cluster: Some(3000), ..card.clone() }).contains("power of two"));
    assert!(err(Options { sector: 520, ..card.clone() }).contains("512 to 4096"));
    assert!(err(Options { offset: 100, ..card.clone() }).contains("inside a sector"));
    assert!(err(Options { label: Some("twelve chars".into()), ..card.clone() }).contains("11 characters"));
    assert!(err(Options { convention: Convention::Grid { unit: 1000, first: 0 }, ..card.clone() }).contains("boundaries"));
    assert!(err(Options::card(0)).contains("no FAT12 or FAT16"));
    assert!(err(Options::card(4096)).contains("fits 4096 bytes"));
    assert!(err(Options::card(3000 * GIB)).contains("2 TiB"));
    assert!(err(Options { kind: Some(FatType::Fat32), ..Options::card(32 * MIB) }).contains("no FAT32"));
    for kind in [None, Some(FatType::Fat32), Some(FatType::ExFat)] {
        let far = |mib: u64| Convention::Grid { unit: mib * MIB, first: 0 };
        let o = |mib| Options { kind, convention: far(mib), ..Options::card(100 * MIB) };
        assert!(err(o(64)).contains("boundaries every 64MiB; a smaller --align helps, such as 32MiB"), "{}", err(o(64)));
        plan(&o(32)).unwrap();
    }
    let far = Convention::Grid { unit: 16 * MIB, first: 0 };
    let small = err(Options { kind: Some(FatType::Fat32), convention: far, ..Options::card(20 * MIB) });
    assert!(small.contains("choose another type"), "no alignment makes room for it: {small}");
}

/// Wherever a format stops, sector 0 says so, and nothing looks like a volume until it is whole.
#[test]
fn an_interrupted_format_is_recognisable() {
    for capacity in [16 * MIB, 488 * MIB] {
        let layout = plan(&Options::card(capacity)).unwrap();
        let steps = layout.steps();
        // What was there before: a volume in the same place, and a table.
        let old = plan(&Options { serial: 1, ..Options::card(capacity) }).unwrap();
        let mut card = vec![0u8; capacity as usize];
        let apply = |card: &mut [u8], s: &Step| match s {
            Step::Zero { at, len } => card[*at as usize..(at + len) as usize].fill(0),
            Step::Put { at, bytes } => card[*at as usize..*at as usize + bytes.len()].copy_from_slice(bytes),
            Step::Flush => {}
        };
        old.steps().iter().for_each(|s| apply(&mut card, s));
        assert!(card[510] == 0x55);
        for (i, s) in steps.iter().enumerate() {
            apply(&mut card, s);
            let done = i + 2 >= steps.len();
            assert_eq!(is_unfinished(&card[..512]), !done, "after step {i} of {}", steps.len());
            assert_eq!(card[510..512] == [0x55, 0xaa], done);
        }
        assert_eq!(recognise(&card[layout.start() as usize..]).unwrap(), layout.volume);
    }
}

/// The same for a device that dies at any write: nothing is changed, or sector 0 says what happened.
#[test]
fn a_format_that_dies_at_any_write_is_recognisable() {
    for kind in [FatType::Fat16, FatType::Fat32, FatType::ExFat] {
        let capacity = 48 * MIB;
        let new = |serial| plan(&Options { kind: Some(kind), serial, ..Options::card(capacity) }).unwrap();
        let put = |card: &mut [u8], at: u64, b: &[u8]| card[at as usize..at as usize + b.len()].copy_from_slice(b);
        let mut old = vec![0x5au8; capacity as usize];
        let mut writes = 0;
        new(1)
            .write::<()>(
                |at, b| {
                    put(&mut old, at, b);
                    writes += 1;
                    Ok(())
                },
                || Ok(()),
            )
            .unwrap();
        assert!(writes > 5);
        for stop in 0..writes {
            let mut card = old.clone();
            let mut n = 0;
            let died = new(2).write(
                |at, b| {
                    if n == stop {
                        return Err(at);
                    }
                    n += 1;
                    put(&mut card, at, b);
                    Ok(())
                },
                || Ok(()),
            );
            assert!(died.is_err());
            if stop == 0 {
                assert!(card == old);
            } else {
                assert!(is_unfinished(&card[..512]) && recognise(&card).is_err(), "{kind} at write {stop}");
            }
        }
    }
}

#[test]
fn verify_finds_one_wrong_byte() {
    let layout = plan(&Options::card(16 * MIB)).unwrap();
    let mut card = vec![0xffu8; 16 * MIB as usize];
    let write = |at: u64, b: &[u8]| {
        card[at as usize..at as usize + b.len()].copy_from_slice(b);
        Ok::<(), ()>(())
    };
    layout.write(write, || Ok(())).unwrap();
    let check = |card: &[u8]| {
        layout
            .verify::<()>(|at, b| {
                b.copy_from_slice(&card[at as usize..at as usize + b.len()]);
                Ok(())
            })
            .unwrap()
    };
    assert_eq!(check(&card), None);
    for at in [0, 511, layout.start() + 3, layout.start() + layout.volume.fat_start + 100, layout.start() + layout.volume.data_start - 1] {
        let old = card[at as usize];
        card[at as usize] ^= 1;
        assert_eq!(check(&card), Some(at / 512 * 512));
        card[at as usize] = old;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    /// Whatever is asked, a layout lies inside the target, on its grid, and reads back as planned.
    #[test]
    fn layouts_stay_inside_and_on_the_grid(
        sectors in 100u64..5_000_000_000, small in any::<bool>(), shift in 9u32..13, offset in 0u64..100_000,
        unit in 1u64..50_000, first in 0u64..50_000, kind in 0usize..5, cluster in 0u32..12, which in 0u8..3, table in any::<bool>(),
    ) {
        let sector = 1u64 << shift;
        let sectors = if small { sectors % 100_000 } else { sectors };
        let kinds = [FatType::Fat12, FatType::Fat16, FatType::Fat32, FatType::ExFat];
        let o = Options {
            capacity: sectors * 512, sector, offset: offset * sector,
            convention: match which { 0 => Convention::Sd, 1 => Convention::Careless, _ => Convention::Grid { unit: unit * sector, first: first * sector } },
            kind: kinds.get(kind).copied(), cluster: (cluster > 0).then(|| sector << (cluster - 1)), table, label: Some("x".into()), serial: 7,
        };
        let Ok(l) = plan(&o) else { return Ok(()) };
        prop_assert!(l.start() + l.volume.size <= o.capacity);
        let unit = match o.convention { Convention::Sd => sd_units(o.capacity).1, Convention::Grid { unit, .. } => unit, Convention::Careless => sector };
        let first = match o.convention { Convention::Grid { first, .. } => first, _ => 0 };
        if table || l.volume.kind == FatType::ExFat || which != 1 {
            prop_assert_eq!(l.data_on_disk() % unit, first % unit, "{:?}", l);
        }
        let mut boot = None;
        for s in l.steps() {
            let (at, len) = match &s { Step::Zero { at, len } => (*at, *len), Step::Put { at, bytes } => (*at, bytes.len() as u64), Step::Flush => continue };
            prop_assert!(len > 0 && at % sector == 0 && len % sector == 0 && at + len <= o.capacity, "{at} {len}");
            if let Step::Put { at, bytes } = s && at == l.start() { boot = Some(bytes); }
        }
        let mut got = recognise(&boot.unwrap()).unwrap();
        if got.kind != FatType::ExFat { prop_assert_eq!(got.label.take(), Some("X".to_string())); }
        let mut want = l.volume.clone();
        want.label = None;
        prop_assert_eq!(got, want);
    }
}

//! Every parser of what lies on a card, against damaged and arbitrary bytes: no panic, no hang, no huge allocation. The same
//! entry points are targets for cargo-fuzz (fuzz/); this runs with every test, a fixed number of times from a fixed seed.

use nandscope::layout::audit::audit;
use nandscope::layout::penalty::Penalties;
use nandscope::layout::{Grid, Source, disk, draw};
use nandscope_fat::{FatType, Options, plan, recognise};
use proptest::prelude::*;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

const MIB: u64 = 1 << 20;

/// What a disk holds: positions and bytes.
type Pieces = Vec<(u64, Vec<u8>)>;

/// Parses, audits and draws what a disk of `size` bytes holds, whose content is given as pieces; the rest are zeros.
fn everything(pieces: &[(u64, Vec<u8>)], size: u64) -> usize {
    let mut asked = 0;
    let mut read = |at: u64, len: usize| {
        assert!(len <= 256 << 20, "{len} bytes at once");
        asked += 1;
        assert!(asked < 20_000, "a parser that does not end");
        let len = len.min(usize::try_from(size.checked_sub(at)?).ok()?).min(8 << 20);
        let mut out = vec![0; len];
        for (from, bytes) in pieces {
            let (a, b) = (at.max(*from), (at + len as u64).min(from + bytes.len() as u64));
            if a < b {
                out[(a - at) as usize..(b - at) as usize].copy_from_slice(&bytes[(a - from) as usize..(b - from) as usize]);
            }
        }
        Some(out)
    };
    let found = disk::parse(&mut read, 0, size, 512, false);
    let grid = Grid { unit: 4 * MIB, first: MIB, source: Source::Given };
    let penalties = Penalties { write_unit: Some(16384), open: Some(2), close_ms: Some(200.0), ..Penalties::default() };
    let lines = draw::draw(&found, &grid);
    assert!(lines.len() < 60);
    let a = audit(found, grid, &penalties);
    for part in &a.disk.parts {
        for z in part.volume.iter().flat_map(|v| &v.zones) {
            assert!(z.at + z.len <= size, "{z:?} reaches beyond {size}");
        }
    }
    a.disk.lines().len()
}

/// Heads of whole disks: our own formats, and those of the tools that are there.
fn seeds() -> Vec<(Pieces, u64)> {
    let mut out = vec![];
    for (size, kind) in [(16 * MIB, None), (488 * MIB, None), (4096 * MIB, None), (600 * MIB, Some(FatType::ExFat))] {
        let mut pieces = vec![];
        plan(&Options { kind, ..Options::card(size) })
            .unwrap()
            .write::<()>(
                |at, b| {
                    if b.iter().any(|&x| x != 0) {
                        pieces.push((at, b.to_vec()));
                    }
                    Ok(())
                },
                || Ok(()),
            )
            .unwrap();
        // The mark at the start was overwritten.
        pieces.remove(0);
        out.push((pieces, size));
    }
    let dir = tempfile::tempdir().unwrap();
    for tool in
        ["mkfs.ext4 -q", "mkfs.f2fs -q", "mkfs.btrfs -q -f", "mkswap -q", "printf 'label: gpt\\nsize=64M\\nsize=64M\\n' | sfdisk -q"]
    {
        let image = dir.path().join("image");
        std::fs::File::create(&image).unwrap().set_len(256 * MIB).unwrap();
        let path = std::env::var("PATH").unwrap_or_default() + ":/sbin:/usr/sbin";
        let ran = Command::new("sh").arg("-c").arg(format!("{tool} {} >/dev/null 2>&1", image.display())).env("PATH", path).status();
        if ran.is_ok_and(|s| s.success()) {
            out.push((heads(&image), 256 * MIB));
        } else {
            println!("skipped: {tool}");
        }
    }
    out
}

/// What is not zero in the first 48 MiB, in pieces of 4 KiB.
fn heads(image: &Path) -> Pieces {
    let bytes = std::fs::read(image).unwrap();
    let pages = bytes[..48 << 20].chunks(4096).enumerate();
    pages.filter(|(_, p)| p.iter().any(|&b| b != 0)).take(300).map(|(i, p)| (i as u64 * 4096, p.to_vec())).collect()
}

struct Rng(u64);

impl Rng {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n.max(1)
    }
}

#[test]
fn mutated_disks_never_panic_or_hang() {
    let mut rng = Rng(1);
    for (i, (pieces, size)) in seeds().into_iter().enumerate() {
        everything(&pieces, size);
        for _ in 0..400 {
            let mut bad = pieces.clone();
            for _ in 0..1 + rng.below(6) {
                // Structures gather in the first pieces.
                let which = if rng.below(3) > 0 { rng.below(4.min(bad.len() as u64)) } else { rng.below(bad.len() as u64) } as usize;
                let piece = &mut bad[which].1;
                let reach = if rng.below(2) == 0 { 2048 } else { 4096 };
                let at = rng.below(reach.min(piece.len() as u64)) as usize;
                let any = rng.below(256) as u8;
                let value = [0, 1, 0x7f, 0x80, 0xff, any][rng.below(6) as usize];
                for b in piece.iter_mut().skip(at).take(1 << rng.below(4)) {
                    *b = value;
                }
            }
            // A truncated disk, too.
            let size = if rng.below(8) == 0 { rng.below(size) / 512 * 512 } else { size };
            let began = Instant::now();
            everything(&bad, size.max(512));
            // Generous: a stuck parser takes forever, a busy machine does not take that long.
            assert!(began.elapsed() < Duration::from_secs(60), "seed {i}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 512..70_000), magic in 0usize..8, size in 512u64..1 << 41) {
        let mut bytes = bytes;
        let marks: [(usize, &[u8]); 7] = [
            (510, &[0x55, 0xaa]), (1080, &[0x53, 0xef]), (1024, &[0x10, 0x20, 0xf5, 0xf2]), (0x10040, b"_BHRfS_M"),
            (4086, b"SWAPSPACE2"), (3, b"EXFAT   "), (512, b"EFI PART"),
        ];
        if let Some((at, mark)) = marks.get(magic)
            && let Some(place) = bytes.get_mut(*at..at + mark.len())
        {
            place.copy_from_slice(mark);
        }
        let _ = recognise(&bytes);
        everything(&[(0, bytes)], size);
    }
}

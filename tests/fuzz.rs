//! Every parser of what comes from outside, against damaged and arbitrary bytes: no panic, no hang, no huge allocation. The same
//! functions are the targets of the coverage-guided fuzzer (fuzz/run.sh); this runs with every test, a fixed number of times from a
//! fixed seed, and makes the inputs the fuzzer begins with.

#[path = "common/skip.rs"]
mod skip;
#[path = "../fuzz/src/lib.rs"]
mod targets;

use nandscope_fat::{FatType, Options, plan};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use targets::Made;

const MIB: u64 = 1 << 20;
const PAGE: u64 = 4096;

/// Pages of a disk: number and bytes.
type Pages = Vec<(u64, Vec<u8>)>;

/// A new volume as we make it, its pages that are not all zeros.
fn ours(options: &Options) -> Pages {
    let mut pages: BTreeMap<u64, Vec<u8>> = BTreeMap::new();
    let put = |at: u64, bytes: &[u8]| {
        for (i, sector) in bytes.chunks(512).enumerate() {
            let at = at + 512 * i as u64;
            let page = pages.entry(at / PAGE).or_insert_with(|| vec![0; PAGE as usize]);
            page[(at % PAGE) as usize..][..sector.len()].copy_from_slice(sector);
        }
        Ok::<(), ()>(())
    };
    plan(options).unwrap().write(put, || Ok(())).unwrap();
    pages.into_iter().filter(|(_, p)| p.iter().any(|&b| b != 0)).collect()
}

/// Pages of an image that are not all zeros, the first of them.
fn pages(image: &Path) -> Pages {
    let bytes = std::fs::read(image).unwrap();
    let all = bytes.chunks(PAGE as usize).enumerate();
    all.filter(|(_, p)| p.iter().any(|&b| b != 0)).take(40).map(|(i, p)| (i as u64, p.to_vec())).collect()
}

fn sh(command: &str, dir: &Path) -> bool {
    let path = std::env::var("PATH").unwrap_or_default() + ":/sbin:/usr/sbin";
    let ran = Command::new("sh").args(["-c", &format!("({command}) >/dev/null 2>&1")]).current_dir(dir).env("PATH", path).status();
    let ok = ran.is_ok_and(|s| s.success());
    if !ok {
        skip::no_tool("a filesystem among the first inputs", command);
    }
    ok
}

/// Whole disks: our own formats, and those of the tools that are there.
fn disks() -> Vec<Vec<u8>> {
    let mut out = vec![];
    for (size, kind) in [(16 * MIB, None), (488 * MIB, None), (4096 * MIB, None), (600 * MIB, Some(FatType::ExFat))] {
        out.push(Made::input(size, &ours(&Options { kind, ..Options::card(size) })));
    }
    let dir = tempfile::tempdir().unwrap();
    for tool in [
        "mkfs.ext4 -q image",
        "mkfs.ext4 -q -O ^64bit,^extents image",
        "mkfs.ext2 -q -b 1024 image",
        "mkfs.f2fs -q image",
        "mkfs.btrfs -q -f image",
        "mkswap -q image",
        "mkfs.fat -F 32 image",
        "printf 'label: gpt\\nsize=64M\\nsize=64M\\n' | sfdisk -q image",
        "printf 'label: dos\\nsize=64M\\ntype=5\\nsize=8M\\nsize=8M\\n' | sfdisk -q image",
    ] {
        let image = dir.path().join("image");
        std::fs::File::create(&image).unwrap().set_len(256 * MIB).unwrap();
        if sh(tool, dir.path()) {
            out.push(Made::input(256 * MIB, &pages(&image)));
        }
    }
    out
}

/// FAT and exFAT volumes with files and directories on them.
fn trees() -> Vec<Vec<u8>> {
    let mut out = vec![];
    let dir = tempfile::tempdir().unwrap();
    let image = dir.path().join("image");
    let shapes =
        [(6 * MIB, FatType::Fat12, 8192), (6 * MIB, FatType::Fat16, 512), (40 * MIB, FatType::Fat32, 512), (4 * MIB, FatType::ExFat, 4096)];
    for (size, kind, cluster) in shapes {
        let options = Options { kind: Some(kind), cluster: Some(cluster), table: false, ..Options::card(size) };
        let empty = ours(&options);
        out.push(Made::input(size, &empty));
        std::fs::write(&image, vec![0; size as usize]).unwrap();
        let mut bytes = std::fs::read(&image).unwrap();
        empty.iter().for_each(|(n, p)| bytes[(n * PAGE) as usize..][..p.len()].copy_from_slice(p));
        std::fs::write(&image, bytes).unwrap();
        std::fs::write(dir.path().join("file"), vec![b'x'; 20_000]).unwrap();
        let fill = "mmd -i image ::d && mcopy -i image file '::d/a long name.txt' && mcopy -i image file ::B && mdel -i image ::B && mmd -i image ::d/e";
        if kind != FatType::ExFat && sh(fill, dir.path()) {
            out.push(Made::input(size, &pages(&image)));
        }
    }
    out
}

/// A report with few samples of each run: the form is what counts.
fn reports() -> Vec<Vec<u8>> {
    let mut out = vec![];
    for args in [&["run", "read-boundary", "sim:flashbench-readme"][..], &["run", "write-unit", "sim:chan-sdc-512mb", "--write"]] {
        let ran = Command::new(env!("CARGO_BIN_EXE_nandscope")).args(args).args(["-q", "--json", "-"]).output().unwrap();
        let mut report: serde_json::Value = serde_json::from_slice(&ran.stdout).unwrap();
        for run in report["runs"].as_array_mut().unwrap() {
            for column in run["samples"].as_object_mut().unwrap().values_mut() {
                match column {
                    serde_json::Value::Array(all) => all.truncate(20),
                    serde_json::Value::String(all) => all.truncate(20),
                    _ => {}
                }
            }
        }
        let text = report.to_string();
        assert!(nandscope::report::Report::parse(&text, "shortened").is_ok(), "{args:?}");
        out.push(text.into_bytes());
    }
    let finding = serde_json::json!({ "quantity": "erase_block", "value": 4194304, "confidence": 0.95, "interval": null, "rivals": [{ "value": 2097152, "probability": 0.05 }], "evidence": [], "caveats": [] });
    out.push(
        serde_json::json!({ "schema": "nandscope-report/1", "target": { "logs": [] }, "findings": [finding] }).to_string().into_bytes(),
    );
    out
}

/// Small files below a directory; links are not followed.
fn files(dir: &Path) -> Vec<Vec<u8>> {
    let mut out = vec![];
    let mut all: Vec<_> = std::fs::read_dir(dir).unwrap().map(|e| e.unwrap()).collect();
    all.sort_by_key(|e| e.path());
    for entry in all {
        match entry.file_type().unwrap() {
            t if t.is_dir() => out.extend(files(&entry.path())),
            t if t.is_file() => out.extend(std::fs::read(entry.path()).ok().filter(|b| b.len() < 20_000)),
            _ => {}
        }
    }
    out
}

/// One of each form, as in FORMATS.md.
fn traces() -> Vec<Vec<u8>> {
    let mut event = vec![];
    for n in [0x6561_7407u32, 1] {
        event.extend(n.to_le_bytes());
    }
    event.extend(5u64.to_le_bytes());
    event.extend(2048u64.to_le_bytes());
    for n in [4096u32, 2 << 16 | 7, 1, 0x0700_0000, 0, 0] {
        event.extend(n.to_le_bytes());
    }
    let text = [
        "fio version 2 iolog\n/dev/x add\n/dev/x open\n/dev/x write 4096 8192\n/dev/x wait 100 0\n/dev/x read 0 4096\n/dev/x close\n",
        "fio version 3 iolog\n1 /dev/x add\n2 /dev/x open\n3 /dev/x write 4096 8192\n9 /dev/x trim 0 4096\n10 /dev/x close\n",
        "  8,0    3        1     0.000000000   697  D   W 223490 + 8 [kjournald]\n  8,0    3        2     0.000100000     0  C   W 223490 + 8 [0]\n",
        "fio-1 [000] ..... 12.000001: block_rq_issue: 7,0 WS 4096 () 7904 + 8 be,0,6 [fio]\nfio-1 [000] ..... 12.000301: block_rq_complete: 7,0 WS () 7904 + 8 be,0,6 [0]\n",
        "128166372003061629,hm,1,Read,383496192,32768,113736\n128166372016382155,hm,1,Write,2822144,4096,93171\n",
        "0 0 2048 8 0\n1500 0 4096 16 1\n",
    ];
    text.iter().map(|t| t.as_bytes().to_vec()).chain([event]).collect()
}

/// A target: its name, its function, its first inputs.
type Target = (&'static str, fn(&[u8]), Vec<Vec<u8>>);

fn all() -> Vec<Target> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let boots: Vec<Vec<u8>> = trees().iter().map(|t| t[6 + 4 * usize::from(t[0])..][..512].to_vec()).collect();
    // Published logs lie beside the project, where they are at hand.
    let theirs = ["flashbench", "wirenboard", "sdfat", "registers", "agnostics", "cmd56", "fio", "mfst", "p2-usd"]
        .map(|d| here.join("../../shared/published").join(d));
    let logs = ["data", "published", "foreign"]
        .iter()
        .map(|d| here.join(d))
        .chain(theirs)
        .filter(|d| d.exists())
        .flat_map(|d| files(&d))
        .collect();
    vec![
        ("disk", targets::disk, disks()),
        ("boot", targets::boot, boots),
        ("tree", targets::tree, trees()),
        ("report", targets::report, reports()),
        ("log", targets::log, logs),
        ("trace", targets::trace, traces()),
    ]
}

/// Among the first inputs of the logs is a sound one of every program whose results are read.
#[test]
fn every_importer_is_fuzzed() {
    use nandscope::samples::import::foreign;
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/foreign");
    let read = |text: &[u8]| foreign::read("fuzz_lat.1.log", &String::from_utf8_lossy(text)).and_then(Result::ok).map(|b| b.tool);
    let tools: std::collections::BTreeSet<_> = files(&here).iter().filter_map(|f| read(f)).collect();
    let names = foreign::PROGRAMS.replace(" (JSON, text, latency logs)", "");
    let missing: Vec<&str> = names.split(", ").filter(|n| !tools.contains(n)).collect();
    assert!(missing.is_empty() && tools.len() == names.split(", ").count(), "without an input: {missing:?} of {tools:?}");
}

/// The fuzzer's first inputs are sound ones; with NANDSCOPE_SEEDS they are written below that directory.
#[test]
fn seeds_for_the_fuzzer() {
    for (name, run, seeds) in all() {
        assert!(seeds.len() >= 3, "{name}");
        for (i, seed) in seeds.iter().enumerate() {
            run(seed);
            if let Some(dir) = std::env::var_os("NANDSCOPE_SEEDS") {
                let dir = Path::new(&dir).join(name);
                std::fs::create_dir_all(&dir).unwrap();
                std::fs::write(dir.join(format!("seed{i:02}")), seed).unwrap();
            }
        }
    }
}

struct Rng(u64);

impl Rng {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n.max(1)
    }
}

#[test]
fn damaged_inputs_never_panic_or_hang() {
    let mut rng = Rng(1);
    for (name, run, seeds) in all() {
        for (i, seed) in seeds.iter().enumerate() {
            for _ in 0..4000 / seeds.len() {
                let mut bad = seed.clone();
                for _ in 0..1 + rng.below(6) {
                    // Structures gather at the beginning.
                    let reach = bad.len() as u64 >> rng.below(4);
                    let at = rng.below(reach) as usize;
                    let any = rng.below(256) as u8;
                    let value = [0, 1, 0x7f, 0x80, 0xff, any][rng.below(6) as usize];
                    bad.iter_mut().skip(at).take(1 << rng.below(4)).for_each(|b| *b = value);
                }
                // Cut off, too.
                if rng.below(8) == 0 {
                    bad.truncate(rng.below(bad.len() as u64) as usize);
                }
                let began = Instant::now();
                run(&bad);
                // Generous: a stuck parser takes forever, a busy machine does not take that long.
                assert!(began.elapsed() < Duration::from_secs(60), "{name}, seed {i}");
            }
        }
    }
}

/// A table of claims: huge sizes in a sound-looking boot sector ask for no memory.
#[test]
fn claims_of_terabytes_cost_nothing() {
    for (kind, size, clusters_at) in [(FatType::Fat32, 40 * MIB, None), (FatType::ExFat, 4 * MIB, Some(92))] {
        let options =
            Options { kind: Some(kind), cluster: Some(4096).filter(|_| kind == FatType::ExFat), table: false, ..Options::card(size) };
        let mut pages = ours(&options);
        let boot = &mut pages[0].1;
        match clusters_at {
            Some(at) => {
                boot[72..80].copy_from_slice(&(1u64 << 38).to_le_bytes());
                boot[at..at + 4].copy_from_slice(&0xffff_fff0u32.to_le_bytes());
                boot[84..88].copy_from_slice(&0x0400_0000u32.to_le_bytes());
                boot[88..92].copy_from_slice(&0x0500_0000u32.to_le_bytes());
            }
            None => {
                boot[32..36].copy_from_slice(&u32::MAX.to_le_bytes());
                boot[36..40].copy_from_slice(&0x0200_0000u32.to_le_bytes());
            }
        }
        let volume = nandscope_fat::recognise(boot).expect("it looks sound");
        assert!(volume.clusters > 1 << 27, "{volume:?}");
        let read = nandscope_fat::Tree::read(&volume, |_, _: &mut [u8]| -> Result<(), ()> { panic!("reads before it looks") });
        assert!(matches!(read, Err(nandscope_fat::TreeError::Damaged(why)) if why.contains("more than this program reads")));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 512..70_000), magic in 0usize..8, size in 1u64..1 << 32) {
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
        let pages: Pages = bytes.chunks(4096).enumerate().map(|(i, p)| (i as u64, p.to_vec())).collect();
        let input = Made::input(size * 512, &pages);
        targets::disk(&input);
        targets::tree(&input);
        targets::boot(&bytes);
        targets::report(&bytes);
        targets::log(&bytes);
        targets::trace(&bytes);
    }
}

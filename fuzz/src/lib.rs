//! What the fuzz targets run: one function a target, on any bytes whatever. tests/fuzz.rs runs the same functions without libFuzzer.

use nandscope::layout::audit::audit;
use nandscope::layout::penalty::Penalties;
use nandscope::layout::{Grid, Source, disk, draw};
use nandscope::report::Report;
use nandscope::samples::{busy, firmware, import};
use nandscope_fat::{Tree, TreeError, recognise};

/// Pages of a made-up disk.
const PAGE: u64 = 4096;
/// Most pages of one input.
const MOST_PAGES: usize = 64;

/// A disk as an input of the fuzzer: how many pages follow, its size in sectors (5 bytes), the number of each page (4 bytes),
/// the pages. What is not named is zeros; what is missing at the end, too.
pub struct Made<'a> {
    pub size: u64,
    numbers: Vec<u64>,
    pages: &'a [u8],
}

impl Made<'_> {
    /// Any bytes are a disk.
    pub fn of(data: &[u8]) -> Made<'_> {
        let number = |b: &[u8]| b.iter().rev().fold(0, |v, &d| v << 8 | u64::from(d));
        let (head, rest) = data.split_at(data.len().min(6));
        let count = head.first().map_or(0, |&n| usize::from(n) % (MOST_PAGES + 1));
        let (list, pages) = rest.split_at(rest.len().min(4 * count));
        let size = number(head.get(1..).unwrap_or(&[])).max(1) * 512;
        Made { size, numbers: list.chunks_exact(4).map(number).collect(), pages }
    }

    /// Fills a buffer from a byte of the disk.
    pub fn read(&self, at: u64, into: &mut [u8]) {
        into.fill(0);
        for (n, page) in self.numbers.iter().zip(self.pages.chunks(PAGE as usize)) {
            let from = n * PAGE;
            let (a, b) = (at.max(from), (at + into.len() as u64).min(from + page.len() as u64));
            if a < b {
                into[(a - at) as usize..(b - at) as usize].copy_from_slice(&page[(a - from) as usize..(b - from) as usize]);
            }
        }
    }

    /// The input that is this disk: pages by their numbers.
    pub fn input(size: u64, pages: &[(u64, Vec<u8>)]) -> Vec<u8> {
        let pages = &pages[..pages.len().min(MOST_PAGES)];
        let mut out = vec![pages.len() as u8];
        out.extend(&(size / 512).to_le_bytes()[..5]);
        pages.iter().for_each(|(n, _)| out.extend((*n as u32).to_le_bytes()));
        for (_, bytes) in pages {
            out.extend(bytes);
            out.resize(out.len() + PAGE as usize - bytes.len(), 0);
        }
        out
    }
}

/// MBR, GPT, FAT, exFAT, ext2/3/4, F2FS, btrfs, swap: parsed, audited, drawn. Nothing may ask for much at once or without end, or
/// claim a place outside the disk.
pub fn disk(data: &[u8]) {
    let made = Made::of(data);
    let mut asked = 0;
    let mut read = |at: u64, len: usize| {
        assert!(len <= 256 << 20, "{len} bytes at once");
        asked += 1;
        assert!(asked < 20_000, "a parser that does not end");
        let len = len.min(usize::try_from(made.size.checked_sub(at)?).ok()?).min(8 << 20);
        let mut out = vec![0; len];
        made.read(at, &mut out);
        Some(out)
    };
    let found = disk::parse(&mut read, 0, made.size, 512, false);
    let grid = Grid { unit: 4 << 20, first: 1 << 20, source: Source::Given };
    let lines = draw::draw(&found, &grid);
    assert!(lines.len() < 60);
    let known = Penalties { write_unit: Some(16384), open: Some(2), close_ms: Some(200.0), ..Penalties::default() };
    let a = audit(found, grid, &known);
    for zone in a.disk.parts.iter().flat_map(|p| p.volume.iter()).flat_map(|v| &v.zones) {
        assert!(zone.at + zone.len <= made.size, "{zone:?} reaches beyond {}", made.size);
    }
    assert!(a.disk.lines().len() < 100);
}

/// The boot sector of a FAT or exFAT volume.
pub fn boot(data: &[u8]) {
    if let Ok(v) = recognise(data) {
        assert!(v.data_start <= v.size && v.fat_start + v.fat_length <= v.size, "{v:?}");
    }
}

/// Directories and chains of a FAT or exFAT volume.
pub fn tree(data: &[u8]) {
    let made = Made::of(data);
    let mut boot = [0; 512];
    made.read(0, &mut boot);
    let Ok(volume) = recognise(&boot) else { return };
    // Tables of gigabytes are right for volumes of terabytes, and slow here.
    if volume.size > made.size || volume.clusters > 1 << 18 {
        return;
    }
    let mut total = 0;
    let tree = Tree::read(&volume, |at, into: &mut [u8]| {
        total += into.len();
        assert!(total < 1 << 30, "a volume of {} bytes is read more than once", volume.size);
        made.read(at, into);
        Ok::<(), ()>(())
    });
    match tree {
        Ok(tree) => {
            for node in &tree.nodes {
                assert!(node.chain.iter().all(|&c| tree.place(c) + volume.cluster <= volume.size), "{node:?}");
            }
            tree.free_runs();
        }
        Err(TreeError::Damaged(why)) => assert!(!why.is_empty()),
        Err(TreeError::Read(())) => unreachable!("reading does not fail here"),
    }
}

/// A saved report, and what the layout commands take from it.
pub fn report(data: &[u8]) {
    if let Ok(r) = Report::parse(&String::from_utf8_lossy(data), "fuzz") {
        let _ = Grid::found(&r.findings);
        Penalties::of(&r.findings, &r.runs);
        nandscope::layout::check::check(8 << 20, &r.findings);
        for profile in ["raspberry-pi", "logger", "root-f2fs", "root-btrfs"] {
            let _ = nandscope::layout::plan::plan(&profile.parse().expect("a profile"), &r.findings, 8 << 30, "x", None);
        }
    }
}

/// Pasted logs: flashbench, SdFat, other benchmarks, busy traces, the line protocol of the firmware, registers.
pub fn log(data: &[u8]) {
    // Tables are read once: what reads them takes most of the time.
    match import::open(0, "fuzz", data) {
        Ok(import::File::Text(t)) => drop(import::pool(&["fuzz".into()], vec![t.cards])),
        _ => drop(import::cards(&[("fuzz", data)])),
    }
    let text = String::from_utf8_lossy(data);
    if let Some(t) = busy::Trace::parse(&text) {
        t.print();
    }
    if firmware::is_log(data) {
        firmware::parse(&text);
    }
    let _ = import::foreign::read("fuzz_lat.1.log", &text);
    let _ = nandscope::host::registers::dump::parse(&text);
    let _ = nandscope::host::registers::ext_csd_text::parse(data);
}

/// Traces of requests: blktrace (binary), blkparse, ftrace, fio, MSR, MQSim; as what it is taken for, and as each of them.
pub fn trace(data: &[u8]) {
    use nandscope_sim::trace::{Format, parse};
    let _ = parse(data, None);
    for (format, _) in Format::ALL {
        let _ = parse(data, Some(format));
    }
}

//! `nandscope flashbench`: each of flashbench's measurement faults, and the way back from its lines to findings.
//!
//! The faults are numbered as docs/flashbench.md lists them.

mod common;

use nandscope::device::plain::Plain;
use nandscope::device::{Access, Device, DeviceError, Geometry, Op, Result, SimDevice, Timed};
use nandscope::finding::{Finding, Quantity};
use nandscope::flashbench::align::{Align, Table, Threes};
use nandscope::flashbench::interval::{self, Interval};
use nandscope::flashbench::job::{Aus, Job};
use nandscope::flashbench::pattern::Pattern;
use nandscope::flashbench::scatter::{self, Scatter};
use nandscope::flashbench::{Failure, Watch};
use nandscope::units::{KIB, MIB, Nanos};
use nandscope_sim::{Model, cards};
use std::io::Write;
use std::process::{Command, Stdio};

/// A device of constant speed that keeps what it was asked. A read is 100 µs and 1 µs a KiB.
fn plain(size: u64) -> Plain {
    Plain::new(size)
}

fn lines(job: &Job, d: &mut dyn Device) -> std::result::Result<(String, Vec<String>), Failure> {
    let mut out = vec![];
    let notes = job.run(d, &mut out, &mut Watch { stop: &mut || false, done: &mut |_, _| {} })?;
    Ok((String::from_utf8(out).unwrap(), notes))
}

fn align(block: u64) -> Align {
    Align { block, passes: 4, write: false, threes: Threes::Auto, seed: 1 }
}

fn table(a: &Align, d: &mut dyn Device) -> Table {
    a.run(d, &mut Watch { stop: &mut || false, done: &mut |_, _| {} }).unwrap()
}

fn aus(erase: u64, block: u64, count: u64) -> Aus {
    Aus { erase, block, count, start: 16 * MIB, spacing: 12, random: false, passes: 1 }
}

#[test]
fn fault_1_nothing_wraps_over_the_end() {
    let mut d = plain(64 * MIB);
    let e = Job::open_au(&aus(4 * MIB, 16 * KIB, 2), d.geometry(), 1).unwrap_err();
    assert!(matches!(&e, Failure::Device(DeviceError::Refused(t)) if t.contains("needs 68 MiB") && t.contains("--spacing=11 fits")), "{e}");
    let e = Job::open_au(&aus(4 * MIB, 16 * KIB, 2), plain(40 * MIB).geometry(), 1).unwrap_err();
    assert!(matches!(&e, Failure::Device(DeviceError::Refused(t)) if t.contains(", 1 AU fits")), "{e}");
    assert!(Job::find_fat(&Aus { count: 17, start: 0, ..aus(4 * MIB, 16 * KIB, 17) }, d.geometry(), 1).is_err());
    let reads = Scatter { order: 13, span: 1, block: 16 * KIB, passes: 1, seed: 1 };
    assert!(matches!(reads.cost(d.geometry()), Err(Failure::Device(DeviceError::Refused(t))) if t.contains("--scatter-order=12 fits")));
    let sizes = Interval { order: 15, passes: 8, seed: 1 };
    assert!(matches!(sizes.cost(d.geometry()), Err(Failure::Device(DeviceError::Refused(t))) if t.contains("--interval-order=")));
    // Sixteen AUs fit exactly, and stay inside.
    let job = Job::find_fat(&Aus { count: 16, start: 0, ..aus(4 * MIB, MIB, 16) }, d.geometry(), 1).unwrap();
    lines(&job, &mut d).unwrap();
    assert_eq!(d.seen.iter().map(|a| a.at + a.len).max(), Some(64 * MIB));
}

#[test]
fn fault_2_the_largest_alignments_show_no_step_of_their_own() {
    for size in [64 * MIB, 100 * MIB, 3_965_190_144, 512 * MIB - 512] {
        let mut d = plain(size);
        let rows = table(&align(1024), &mut d).rows;
        assert!(d.seen.iter().all(|a| a.len == 1024 && a.at + a.len <= size));
        assert!(rows.iter().all(|r| r.diff() == 0.0), "{rows:?}");
        // The top is the smallest power of two that is at least a seventh of the device; the last row is two blocks.
        assert!(rows[0].align * 7 >= size && rows[0].align / 2 * 7 < size, "{rows:?}");
        assert_eq!(rows.last().unwrap().align, 2048);
    }
}

#[test]
fn fault_3_many_aus_do_not_collide() {
    let d = plain(64 << 30);
    for (erase, count) in [(4 * MIB, 90), (8 * MIB, 50), (64 * MIB, 9)] {
        let a = Aus { start: Aus::default_start(erase, d.geometry()), ..aus(erase, MIB, count) };
        let cost = Job::open_au(&a, d.geometry(), 1).unwrap().cost(d.geometry()).unwrap();
        assert_eq!(cost.changed.len() as u64, count);
        assert!(cost.changed.iter().all(|c| c.1 == erase && c.0 % erase == 0), "{erase}");
    }
}

#[test]
fn fault_4_sizes_that_are_no_powers_of_two() {
    let mut d = plain(1 << 30);
    let (text, _) = lines(&Job::open_au(&aus(6 * MIB, 16 * KIB, 2), d.geometry(), 1).unwrap(), &mut d).unwrap();
    let sizes: Vec<&str> = text.lines().map(|l| l.split_whitespace().next().unwrap()).collect();
    assert_eq!(sizes, ["6MiB", "3MiB", "1.5MiB", "768KiB", "384KiB", "192KiB", "96KiB", "48KiB", "24KiB"]);
    let (text, _) = lines(&Job::open_au(&aus(4128 * KIB, 512 * KIB, 1), d.geometry(), 1).unwrap(), &mut d).unwrap();
    assert!(text.starts_with("4128KiB ") && text.contains("\n516KiB "), "{text}");
    // 12 MiB boundaries: rows 3*2^n appear, and only where they have something to say.
    let slow = |_: usize, a: Access| if a.at / (12 * MIB) != (a.at + a.len - 1) / (12 * MIB) { 200_000 } else { 0 };
    let mut d = plain(4 << 30).with(slow);
    let rows = table(&align(1024), &mut d).rows;
    for r in &rows {
        assert_eq!(r.diff() > 100_000.0, r.align.is_multiple_of(12 * MIB), "{r:?}");
    }
    assert!(rows.iter().any(|r| r.three));
    assert!(table(&align(1024), &mut plain(4 << 30)).rows.iter().all(|r| !r.three));
    let all = Align { threes: Threes::Always, ..align(1024) };
    assert!(table(&all, &mut plain(1 << 30)).rows.iter().any(|r| r.align == 192 * MIB));
}

#[test]
fn fault_5_scatter_is_told_and_repetition_rejects_outliers() {
    // One write in the second pass stalls.
    let stall = |n: usize, _: Access| if n == 60 { 900_000_000 } else { 0 };
    let a = Aus { passes: 3, ..aus(4 * MIB, 4 * MIB, 8) };
    let calm = lines(&Job::open_au(&a, &plain(1 << 30).geometry, 1).unwrap(), &mut plain(1 << 30)).unwrap().0;
    let mut d = plain(1 << 30).with(|n, _| if n == 28 { 900_000_000 } else { 0 });
    let (text, notes) = lines(&Job::open_au(&a, &d.geometry.clone(), 1).unwrap(), &mut d).unwrap();
    assert_eq!(text, calm);
    assert!(notes.iter().any(|n| n.contains("slowest write / median: 4MiB ") && !n.contains("4MiB 1.0")), "{notes:?}");
    let once = Aus { passes: 1, ..a };
    let mut d = plain(1 << 30).with(stall);
    let (_, notes) = lines(&Job::open_au(&Aus { block: MIB, ..once }, &d.geometry.clone(), 1).unwrap(), &mut d).unwrap();
    assert!(notes.iter().any(|n| n.contains("slowest")), "{notes:?}");
}

/// The table is the least of several passes, the same with stalls and without: the lines below it say what it does not show.
#[test]
fn stalls_stand_below_the_table_that_does_not_show_them() {
    // Of a hundred accesses so many stall for 115 ms.
    fn every<const N: u64>(n: usize, _: Access) -> u64 {
        let mixed = (n as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33;
        if mixed % 100 < N { 115_000_000 } else { 0 }
    }
    type Extra = fn(usize, Access) -> u64;
    let rates: [(u64, Extra); 5] = [(0, |_, _| 0), (1, every::<1>), (5, every::<5>), (20, every::<20>), (50, every::<50>)];
    for write in [false, true] {
        let calm = table(&Align { write, ..align(2048) }, &mut plain(256 * MIB));
        for (rate, extra) in rates {
            let t = table(&Align { write, passes: 16, ..align(2048) }, &mut plain(256 * MIB).with(extra));
            let shown =
                |rows: &[nandscope::flashbench::align::Row]| rows.iter().map(|r| (r.align, r.pre, r.on, r.post)).collect::<Vec<_>>();
            assert_eq!(shown(&t.rows), shown(&calm.rows), "{rate} %: the columns are as they were");
            let verb = if write { "write" } else { "read" };
            let line = t.notes.iter().find(|n| n.contains("times the figure of")).unwrap();
            let by_row = t.notes.iter().find(|n| n.starts_with(&format!("slowest {verb} / figure: "))).unwrap();
            if rate == 0 {
                assert!(line.starts_with(&format!("no {verb} took more")) && !by_row.contains("11"), "{line}; {by_row}");
                continue;
            }
            let share: f64 = line.split_once('(').unwrap().1.split_once(" %").unwrap().0.parse().unwrap();
            assert!((share / rate as f64 - 1.0).abs() < 0.3, "{rate} %: {line}");
            assert!(line.contains("the longest took 115ms, 1") && line.contains("the least of 16"), "{line}");
        }
    }
}

/// A card that coalesces what goes on where the last write ended, with so many pages programmed together.
fn coalescing(page: u64, unit: u64, after: u64, commit: &str) -> Model {
    let text = format!(
        "name = \"t\"\nabout = \"coalesces\"\n[host]\ncommand = \"150 us\"\nrate = \"25 MB/s\"\njitter = \"5 us\"\n[card]\n\
         capacity = \"2 GiB\"\ncommand = \"350 us\"\ncombine = true\ncombine_after = {after}\n[nand]\npage = \"{page} KiB\"\n\
         access_unit = \"{unit} KiB\"\nwrite_unit = \"{unit} KiB\"\nerase_block = \"4 MiB\"\nprogram = \"0.9 ms\"\ncommit = \"{commit}\"\n\
         rest_rate = \"20 MB/s\"\ncopy = \"2 ms\"\nerase = \"2 ms\"\n[ftl]\nkind = \"block-map\"\nopen_linear = 12\nopen_random = 12\n"
    );
    Model::parse(&text, "t").unwrap()
}

/// Q5: on the SanDisk of the quirks thread it was the write alignment that made the page stand out, and reads were flat. On cards that take
/// what goes on where the last write ended into a buffer, a write out of the blue rewrites what is programmed together: that shows, of any
/// size, at any block, with any seed; and what is named is that unit.
#[test]
fn write_alignment_shows_the_page_of_cards_that_coalesce() {
    let unit_of = |model: &Model, block: u64, seed: u64| {
        let mut d = SimDevice::new(model, seed);
        let rows = table(&Align { write: true, passes: 8, seed, ..align(block) }, &mut d).rows;
        let mut text = format!("# flashbench -A --blocksize={block} /dev/mmcblk0\n").into_bytes();
        nandscope::flashbench::align::print(&rows, &mut text).unwrap();
        let all = nandscope::infer::tables::infer(&nandscope::samples::import::read(&[("t", String::from_utf8(text).unwrap())]).unwrap());
        let page = all.get(Quantity::Page).unwrap().clone();
        (rows, all.get(Quantity::WriteUnit).unwrap().clone(), page)
    };
    let sandisk = Model::parse(cards::text("sandisk-emmc").unwrap(), "sandisk-emmc").unwrap();
    let cards = [
        (sandisk, 16),
        (coalescing(4, 8, 1, "0.5 ms"), 8),
        (coalescing(8, 32, 1, "3 ms"), 32),
        (coalescing(16, 16, 2, "1 ms"), 16),
        (coalescing(4, 64, 3, "4 ms"), 64),
    ];
    for (i, (model, unit)) in cards.iter().enumerate() {
        for (k, block) in [KIB, 2 * KIB, 4 * KIB].into_iter().filter(|b| 2 * b < unit * KIB).enumerate() {
            let seed = (i * 7 + k * 3) as u64;
            let (rows, f, page) = unit_of(model, block, seed);
            let name = format!("unit {unit} KiB, block {block}, seed {seed}");
            assert_eq!(f.number(), Some((unit * KIB) as f64), "{name}: {f:?}\n{rows:?}");
            for r in rows.iter().filter(|r| r.align < 64 * MIB) {
                let crosses = r.align.is_multiple_of(unit * KIB);
                assert_eq!(r.diff() > 500_000.0, crosses, "{name}: {r:?}");
                assert!(crosses || r.diff().abs() < 50_000.0, "{name}: {r:?}");
            }
            // A page may be smaller than what is programmed together.
            assert!(page.value.is_none(), "{name}: {page:?}");
        }
    }
}

/// Other programs and `infer` read the table as before.
#[test]
fn infer_reads_a_table_with_stalls_below_it() {
    let model =
        cards::text("flashbench-readme").unwrap().to_string() + "\n[[stall]]\non = \"read\"\ntime = \"115 ms\"\nevery_commands = 5\n";
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("stalls.toml");
    std::fs::write(&path, model).unwrap();
    let run = |args: &[&str]| String::from_utf8(Command::new(env!("CARGO_BIN_EXE_nandscope")).args(args).output().unwrap().stdout).unwrap();
    let log = run(&["flashbench", "-q", "-a", "-b", "1024", path.to_str().unwrap()]);
    assert!(log.contains("# pre: a read of 1KiB that ends at the boundary") && log.contains("took more than 4 times"), "{log}");
    let saved = dir.path().join("log");
    std::fs::write(&saved, &log).unwrap();
    let said = run(&["infer", saved.to_str().unwrap()]);
    assert!(said.lines().any(|l| l.starts_with("erase block") && l.contains("4 MiB")), "{said}");
    let plain = run(&["flashbench", "-q", "--plain", "-a", "-b", "1024", path.to_str().unwrap()]);
    assert!(plain.lines().all(|l| l.starts_with("align ")), "{plain}");
}

#[test]
fn fault_6_no_column_comes_first() {
    let mut d = plain(256 * MIB);
    table(&align(16 * KIB), &mut d);
    // Of reads around one boundary each kind is first somewhere.
    let n = d.seen.len() / 4;
    let (first, second) = (&d.seen[..n], &d.seen[n..2 * n]);
    assert_ne!(first, second, "two passes in the same order");
    let mut sorted: Vec<u64> = first.iter().map(|a| a.at).collect();
    sorted.sort_unstable();
    let mut again: Vec<u64> = second.iter().map(|a| a.at).collect();
    again.sort_unstable();
    assert_eq!(sorted, again);
    let ascending = first.windows(2).filter(|w| w[0].at < w[1].at).count() as f64 / n as f64;
    assert!((0.35..0.65).contains(&ascending), "{ascending}");
}

#[test]
fn fault_7_every_row_begins_with_whole_aus() {
    let mut d = plain(1 << 30);
    lines(&Job::open_au(&aus(4 * MIB, MIB, 3), d.geometry(), 1).unwrap(), &mut d).unwrap();
    let lens: Vec<u64> = d.seen.iter().map(|a| a.len / MIB).collect();
    let row = |len: u64, n: usize| [vec![4; 3], vec![len; n]].concat();
    assert_eq!(lens, [row(4, 3), row(2, 6), row(1, 12)].concat());
}

#[test]
fn fault_8_half_sectors_are_refused_before_anything_is_read() {
    for (block, sector) in [(512, 512), (4096, 4096), (0, 512), (1000, 512)] {
        let mut d = plain(256 * MIB);
        d.geometry.sector = sector;
        let e = align(block).cost(&d.geometry).unwrap_err();
        assert!(matches!(&e, Failure::Usage(t) if t.contains("two sectors")), "{e}");
    }
}

#[test]
fn fault_9_failed_accesses_are_no_measurements() {
    let mut d = Plain { fail_from: 10, ..plain(1 << 30) };
    let e = lines(&Job::open_au(&aus(4 * MIB, MIB, 2), &d.geometry.clone(), 1).unwrap(), &mut d).unwrap_err();
    assert!(matches!(e, Failure::Device(DeviceError::Io { .. })), "{e}");
    let mut d = Plain { fail_from: 0, ..plain(1 << 30) };
    assert!(align(1024).run(&mut d, &mut Watch { stop: &mut || false, done: &mut |_, _| {} }).is_err());
    // A row that was cut ends its line all the same.
    let job = Job::find_fat(&aus(4 * MIB, MIB, 6), &plain(1 << 30).geometry, 1).unwrap();
    let cut = |after: usize| {
        let (mut out, mut asked) = (vec![], 0);
        let mut stop = || {
            asked += 1;
            asked > after
        };
        let done = job.run(&mut plain(1 << 30), &mut out, &mut Watch { stop: &mut stop, done: &mut |_, _| {} });
        assert!(matches!(done, Err(Failure::Interrupted)), "{after}");
        String::from_utf8(out).unwrap()
    };
    let all: Vec<String> = (0..30).map(cut).collect();
    assert!(all.iter().all(|t| t.is_empty() || t.ends_with('\n')), "{all:?}");
    assert!(all.iter().any(|t| t.lines().last().is_some_and(|l| l.split_whitespace().count() == 3)), "{all:?}");
    // One bad place is left out and named.
    let text = cards::text("fake-error-16gb").unwrap();
    let mut d = SimDevice::new(&Model::parse(text, "fake").unwrap(), 1);
    let s = Scatter { order: 4, span: 1, block: 16 * KIB, passes: 2, seed: 1 };
    let (rows, _) = s.run(&mut d, &mut Watch { stop: &mut || false, done: &mut |_, _| {} }).unwrap();
    assert!(rows.iter().all(|r| r.1 < u64::MAX));
}

#[test]
fn fault_11_a_discard_has_its_place_before_its_length() {
    let mut d = plain(64 * MIB);
    let job = Job::Pattern { pattern: Pattern::parse("p", "discard 8 KiB at 1 MiB").unwrap(), set: vec![], seed: 1 };
    lines(&job, &mut d).unwrap();
    assert_eq!(d.seen, [Access { op: Op::Discard, at: MIB, len: 8 * KIB }]);
}

#[test]
fn fault_12_tests_that_read_do_not_write() {
    let mut d = plain(256 * MIB);
    let jobs = [
        Job::Align(align(16 * KIB)),
        Job::Scatter(Scatter { order: 9, span: 2, block: 16 * KIB, passes: 2, seed: 1 }),
        Job::Interval(Interval { order: 10, passes: 4, seed: 1 }),
    ];
    for job in jobs {
        assert!(job.cost(d.geometry()).unwrap().changed.is_empty());
        lines(&job, &mut d).unwrap();
    }
    assert!(d.seen.iter().all(|a| a.op == Op::Read));
}

#[test]
fn interval_finds_the_line() {
    let mut d = plain(256 * MIB);
    let (text, notes) = lines(&Job::Interval(Interval { order: 12, passes: 4, seed: 1 }), &mut d).unwrap();
    // 1 µs a KiB is 1024 MB/s.
    assert!(text.contains("\n1024 MB/s, 100µs access time\nbytes 512, time 100500 overhead 0\n") && notes.is_empty(), "{text}");
    assert!(text.starts_with("512 bytes: min 100µs avg 100µs max 100µs: 5.09453 MB/s\n") && text.lines().count() == 25, "{text}");
    let mut flat = plain(256 * MIB).with(|_, a| 10_000_000 - a.len);
    let mut out = vec![];
    let rows = vec![];
    assert!(interval::print(&rows, &mut out).unwrap()[0].contains("no rate"));
    assert!(Interval { order: 4, passes: 4, seed: 1 }.cost(flat.geometry()).is_err());
    let (text, notes) = lines(&Job::Interval(Interval { order: 9, passes: 2, seed: 1 }), &mut flat).unwrap();
    assert!(!text.contains("nan") && notes.len() <= 1, "{text}");
}

#[test]
fn scatter_prints_every_place_in_order() {
    let mut d = plain(256 * MIB);
    let mut out = vec![];
    let s = Scatter { order: 3, span: 2, block: 16 * KIB, passes: 3, seed: 1 };
    let (rows, _) = s.run(&mut d, &mut Watch { stop: &mut || false, done: &mut |_, _| {} }).unwrap();
    scatter::print(&rows, &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert!(text.starts_with("0.000000\t0.132000\n0.015625\t0.132000\n") && text.lines().count() == 8, "{text}");
    assert_eq!(d.seen.len(), 24);
}

/// The README's open-AU table, F16: within a fifth of every printed figure.
#[test]
fn the_readme_card_gives_the_readme_table() {
    let model = Model::parse(cards::text("flashbench-readme").unwrap(), "flashbench-readme").unwrap();
    for (n, want) in [(2, [8.79, 7.41, 6.87, 6.39, 6.27]), (3, [7.75, 5.03, 3.24, 1.76, 0.912])] {
        let mut d = SimDevice::new(&model, 1);
        let (text, _) = lines(&Job::open_au(&aus(4 * MIB, 256 * KIB, n), &d.geometry().clone(), 1).unwrap(), &mut d).unwrap();
        let tables = nandscope::samples::import::read(&[("t", &text)]).unwrap();
        let got: Vec<f64> = tables.open[0].rows.iter().map(|r| r.rate / 1e6).collect();
        assert_eq!(got.len(), want.len());
        for (g, w) in got.iter().zip(want) {
            assert!((g / w - 1.0).abs() < 0.2, "{n} AUs:\n{text}");
        }
    }
}

/// A device that keeps how long each access took.
struct Timing {
    inner: SimDevice,
    took: Vec<(u64, f64)>,
}

impl Device for Timing {
    fn geometry(&self) -> &Geometry {
        self.inner.geometry()
    }
    fn access(&mut self, a: Access) -> Result<Timed> {
        let timed = self.inner.access(a)?;
        self.took.push((a.len, timed.took.secs() * 1e3));
        Ok(timed)
    }
    fn now(&self) -> Nanos {
        self.inner.now()
    }
    fn idle(&mut self, d: Nanos) {
        self.inner.idle(d);
    }
    fn load(&mut self, at: u64, into: &mut [u8]) -> Result<()> {
        self.inner.load(at, into)
    }
    fn store(&mut self, at: u64, from: &[u8]) -> Result<()> {
        self.inner.store(at, from)
    }
}

/// Why the rows of few blocks are faster than the README's above the limit: as many writes of a row as AUs can be open find room, since each row
/// begins with the AUs written whole. The others take what a block of the README takes, whatever the seed of the card.
#[test]
fn above_the_limit_all_but_the_first_writes_take_the_readmes_time() {
    let model = Model::parse(cards::text("flashbench-readme").unwrap(), "flashbench-readme").unwrap();
    let open = model.truth().open_aus_linear.unwrap() as usize;
    for seed in [1, 8, 31] {
        let mut d = Timing { inner: SimDevice::new(&model, seed), took: vec![] };
        lines(&Job::open_au(&aus(4 * MIB, 256 * KIB, 3), &d.geometry().clone(), seed).unwrap(), &mut d).unwrap();
        for (block, readme) in [(2 * MIB, 417.0), (MIB, 324.0), (512 * KIB, 298.0), (256 * KIB, 287.0)] {
            let row: Vec<f64> = d.took.iter().filter(|t| t.0 == block).map(|t| t.1).collect();
            assert_eq!(row.len() as u64, 3 * 4 * MIB / block);
            let (first, rest) = row.split_at(open);
            let mean = rest.iter().sum::<f64>() / rest.len() as f64;
            assert!((mean / readme - 1.0).abs() < 0.07, "{block} B, seed {seed}: {mean:.0} ms, published {readme}");
            assert!(first.iter().all(|t| *t < 0.75 * mean), "{block} B, seed {seed}: {row:.0?}");
        }
    }
}

fn nandscope(args: &[&str], input: &[u8]) -> (String, i32) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_nandscope"))
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    let done = child.wait_with_output().unwrap();
    (String::from_utf8(done.stdout).unwrap(), done.status.code().unwrap_or(-1))
}

/// `flashbench ... sim:CARD | nandscope infer -` on every built-in card. Says how many findings were decided.
fn round_trip(options: &[&str]) -> usize {
    let mut wrong = vec![];
    let mut decided = 0;
    // A card without any time has no rates.
    for (name, text) in cards::ALL.iter().filter(|c| c.0 != "null") {
        let target = format!("sim:{name}");
        let (lines, code) = nandscope(&[&["flashbench", "-q"], options, &[&target]].concat(), b"");
        // A card that fails, or one without room, says so and prints no table.
        if code != 0 {
            assert!(matches!(code, 1 | 4), "{name}: exit {code}\n{lines}");
            continue;
        }
        let (json, code) = nandscope(&["infer", "-", "--json", "-"], lines.as_bytes());
        assert!(matches!(code, 0 | 3), "{name}: infer ends with {code} on\n{lines}");
        let value: serde_json::Value = serde_json::from_str(&json).unwrap();
        let findings: Vec<Finding> = serde_json::from_value(value["findings"].clone()).unwrap();
        let model = Model::parse(text, name).unwrap();
        // On a bus of 1 MB/s or less a printed rate hardly shows what the card does beside the transfer.
        if model.host.rate < 5_000_000 {
            continue;
        }
        let truth = model.truth();
        for f in findings {
            // Where planes are read together no boundary of their pages shows, and the table's smallest step is the unit.
            let unit = f.quantity == Quantity::Page && f.number() == Some(truth.access_unit as f64);
            match common::right(&f, &truth).map(|r| r || unit) {
                Some(true) => decided += 1,
                Some(false) if f.confidence >= 0.8 => {
                    wrong.push(format!("{name}: {} = {:?}, at least {:?}, {:.2}\n{lines}", f.quantity, f.value, f.at_least, f.confidence))
                }
                _ => {}
            }
        }
    }
    assert!(wrong.is_empty(), "{options:?}\n{}", wrong.join("\n"));
    decided
}

#[test]
fn alignment_tables_are_read_back() {
    let decided = round_trip(&["-a", "-b", "1024"]);
    assert!(decided >= 40, "{decided}");
}

#[test]
fn open_au_tables_are_read_back() {
    for order in [&["-O", "--open-au-nr=1-4"][..], &["-O", "--open-au-nr=1-4", "--random"][..]] {
        let decided = round_trip(order);
        assert!(decided >= 15, "{order:?}: {decided}");
    }
}

//! The cards of the source documents, measured the way the documents' tables were made, against those tables.

use nandscope_sim::{Card, Model, Request, cards};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

fn card(name: &str) -> Card {
    Card::new(&Model::parse(cards::text(name).expect("a card of the crate"), name).expect("a valid model"), 7)
}

/// Serves one request after another, each when the one before is done.
struct Bench {
    card: Card,
    now: u64,
}

impl Bench {
    fn new(name: &str) -> Bench {
        Bench { card: card(name), now: 0 }
    }

    fn took(&mut self, req: Request) -> u64 {
        let c = self.card.submit(self.now, req).expect("served");
        self.now = c.done;
        c.done - c.start
    }

    /// One row of an alignment table in us: pre, on, post, diff. Seven places a large stride apart, best of eight passes
    /// each, then the mean.
    fn align(&mut self, align: u64, block: u64) -> [f64; 4] {
        let seventh = self.card.capacity() / 7;
        let stride = (0..).map(|k| block << k).find(|&x| x >= seventh).expect("finite");
        let places: Vec<u64> = (0..7).map(|i| i * stride + align).filter(|p| p + align <= self.card.capacity()).collect();
        let mut sums = [0.0; 3];
        for &p in &places {
            let mut best = [u64::MAX; 3];
            for _ in 0..8 {
                for (best, at) in best.iter_mut().zip([p - block, p - block / 2, p]) {
                    *best = (*best).min(self.took(Request::read(at, block)));
                }
            }
            sums.iter_mut().zip(best).for_each(|(s, b)| *s += b as f64 / 1000.0 / places.len() as f64);
        }
        let [pre, on, post] = sums;
        [pre, on, post, on - (pre + post) / 2.0]
    }

    /// One open-AU table: for each block size from `erase` down to `least` the ms a block; every row rewrites the same
    /// AUs, twelve erase sizes apart from 16 MiB on, in turn.
    fn open_au(&mut self, n: u64, erase: u64, least: u64) -> Vec<(u64, f64)> {
        let mut rows = Vec::new();
        let mut block = erase;
        while block >= least {
            let mut total = 0;
            for k in 0..erase / block {
                for au in 0..n {
                    total += self.took(Request::write(16 * MIB + au * 12 * erase + k * block, block));
                }
            }
            rows.push((block, total as f64 / 1e6 / (n * erase / block) as f64));
            block /= 2;
        }
        rows
    }
}

fn near(what: &str, found: f64, published: f64, share: f64) {
    let off = found / published - 1.0;
    assert!(off.abs() <= share, "{what}: {found:.4} against {published:.4}: {:+.1} %", off * 100.0);
}

/// Rates in M/s to ms a block.
fn ms(rows: &[(u64, f64)]) -> Vec<(u64, f64)> {
    rows.iter().map(|&(block, rate)| (block, block as f64 / rate / 1000.0)).collect()
}

fn show(name: &str, rows: &[(u64, f64)]) {
    for (block, ms) in rows {
        println!("{name:20} {:>5} KiB {ms:8.2} ms {:8.3} M/s", block / KIB, *block as f64 / ms / 1000.0);
    }
}

/// Compares the ratios of two tables row by row, published against simulated.
fn ratios(what: &str, found: [&[(u64, f64)]; 2], published: [&[(u64, f64)]; 2], share: f64) {
    for &(block, above) in published[1] {
        let of = |t: &[(u64, f64)]| t.iter().find(|r| r.0 == block).map(|r| r.1);
        let Some(below) = of(published[0]) else { continue };
        let (Some(a), Some(b)) = (of(found[1]), of(found[0])) else { panic!("{what}: no row {block}") };
        near(&format!("{what} ratio at {} KiB", block / KIB), a / b, above / below, share);
    }
}

#[test]
fn readme_alignment() {
    // F4: align, pre, on, post, diff in us.
    let table: [(u64, [f64; 4]); 17] = [
        (134_217_728, [735.0, 1080.0, 780.0, 324.0]),
        (67_108_864, [736.0, 1050.0, 763.0, 300.0]),
        (33_554_432, [722.0, 1040.0, 763.0, 294.0]),
        (16_777_216, [727.0, 1050.0, 772.0, 302.0]),
        (8_388_608, [724.0, 1040.0, 768.0, 299.0]),
        (4_194_304, [741.0, 1080.0, 788.0, 317.0]),
        (2_097_152, [745.0, 950.0, 811.0, 171.0]),
        (1_048_576, [745.0, 945.0, 807.0, 169.0]),
        (524_288, [743.0, 936.0, 799.0, 165.0]),
        (262_144, [746.0, 948.0, 809.0, 171.0]),
        (131_072, [737.0, 935.0, 804.0, 165.0]),
        (65_536, [735.0, 925.0, 796.0, 159.0]),
        (32_768, [735.0, 925.0, 800.0, 157.0]),
        (16_384, [745.0, 911.0, 781.0, 148.0]),
        (8192, [785.0, 808.0, 725.0, 53.3]),
        (4096, [784.0, 788.0, 779.0, 5.85]),
        (2048, [787.0, 793.0, 789.0, 4.65]),
    ];
    let mut b = Bench::new("flashbench-readme");
    for (align, row) in table {
        let found = b.align(align, 1024);
        println!("{align:10} {found:7.1?}   published {row:?}");
        for (f, p) in found.iter().zip(row).take(3) {
            near(&format!("access at {align}"), *f, p, 0.15);
        }
        if align >= 8192 {
            near(&format!("step at {align}"), found[3], row[3], 0.15);
        } else {
            assert!(found[3].abs() < 10.0, "no step at {align}: {}", found[3]);
        }
    }
}

#[test]
fn readme_open_aus() {
    let two = ms(&[(4 * MIB, 8.79), (2 * MIB, 7.41), (MIB, 6.87), (512 * KIB, 6.39), (256 * KIB, 6.27)]);
    let three = ms(&[(4 * MIB, 7.75), (2 * MIB, 5.03), (MIB, 3.24), (512 * KIB, 1.76), (256 * KIB, 0.912)]);
    let mut b = Bench::new("flashbench-readme");
    let (f2, f3) = (b.open_au(2, 4 * MIB, 256 * KIB), b.open_au(3, 4 * MIB, 256 * KIB));
    show("2 AUs", &f2);
    show("3 AUs", &f3);
    for (f, p) in f2.iter().chain(&f3).zip(two.iter().chain(&three)) {
        near(&format!("ms a block of {} KiB", f.0 / KIB), f.1, p.1, 0.15);
    }
    ratios("3 against 2 AUs", [&f2, &f3], [&two, &three], 0.25);
}

#[test]
fn toshiba() {
    let six = ms(&[(4 * MIB, 5.91), (2 * MIB, 8.84), (MIB, 10.8), (512 * KIB, 13.0), (256 * KIB, 13.6)]);
    let seven = ms(&[(4 * MIB, 6.32), (2 * MIB, 8.63), (MIB, 10.5), (512 * KIB, 13.2), (256 * KIB, 13.0)]);
    let eight = ms(&[(4 * MIB, 6.65), (2 * MIB, 7.02), (MIB, 6.36), (512 * KIB, 3.17), (256 * KIB, 1.53)]);
    let mut b = Bench::new("toshiba-emmc");
    let found: Vec<_> = [6, 7, 8].iter().map(|&n| b.open_au(n, 4 * MIB, 256 * KIB)).collect();
    show("8 AUs", &found[2]);
    // Rows of 4 MiB depend on the runs before (see the card's file); their ratios do not.
    ratios("7 against 6 AUs", [&found[0], &found[1]], [&six, &seven], 0.25);
    ratios("8 against 7 AUs", [&found[1], &found[2]], [&seven, &eight], 0.25);
    for (f, p) in found[2].iter().zip(&eight).filter(|(f, _)| f.0 <= MIB) {
        near("the flat time of a block above the limit", f.1, p.1, 0.15);
    }
}

#[test]
fn toshiba_small_writes() {
    let table = ms(&[
        (512 * KIB, 10.0),
        (256 * KIB, 9.94),
        (128 * KIB, 10.1),
        (64 * KIB, 9.68),
        (32 * KIB, 8.5),
        (16 * KIB, 3.65),
        (8 * KIB, 1.73),
        (4 * KIB, 0.838),
        (2 * KIB, 0.417),
    ]);
    let mut b = Bench::new("toshiba-emmc");
    let found = b.open_au(1, 4 * MIB, 2 * KIB);
    show("1 AU", &found);
    for (block, p) in &table {
        let f = found.iter().find(|r| r.0 == *block).expect("row").1;
        near(&format!("ms a block of {} KiB", block / KIB), f, *p, 0.15);
    }
}

#[test]
fn sandisk() {
    let twenty = ms(&[(4 * MIB, 11.3), (2 * MIB, 12.8), (MIB, 9.87), (512 * KIB, 9.97), (256 * KIB, 9.13), (128 * KIB, 8.05)]);
    let one_more = ms(&[(4 * MIB, 11.2), (2 * MIB, 12.4), (MIB, 4.65), (512 * KIB, 1.95), (256 * KIB, 0.955)]);
    let two_more = ms(&[(4 * MIB, 11.6), (2 * MIB, 12.3), (MIB, 5.13), (512 * KIB, 2.57), (256 * KIB, 1.59), (128 * KIB, 1.16)]);
    let run = |n: u64| Bench::new("sandisk-emmc").open_au(n, 4 * MIB, 64 * KIB);
    let [f20, f21, f22] = [run(20), run(21), run(22)];
    show("20 AUs", &f20);
    show("21 AUs", &f21);
    show("22 AUs", &f22);
    for (f, p) in f20.iter().zip(&twenty) {
        near(&format!("20 AUs, ms a block of {} KiB", f.0 / KIB), f.1, p.1, 0.25);
    }
    // At 1 MiB and, for 22 AUs, below 256 KiB the part did better or worse than any simple rule of replacement.
    let shape = |t: &[(u64, f64)], least: u64| t.iter().copied().filter(|r| r.0 != MIB && r.0 >= least).collect::<Vec<_>>();
    ratios("21 against 20 AUs", [&f20, &f21], [&twenty, &shape(&one_more, 256 * KIB)], 0.25);
    ratios("22 against 20 AUs", [&f20, &f22], [&twenty, &shape(&two_more, 256 * KIB)], 0.25);
    for (a, b) in f21.iter().zip(&f22).filter(|(a, _)| a.0 < MIB) {
        assert!(b.1 < a.1, "22 AUs are faster than 21 at {} KiB", a.0 / KIB);
    }
}

#[test]
fn sandisk_reads_are_flat() {
    let mut b = Bench::new("sandisk-emmc");
    for align in (11..30).map(|k| 1u64 << k) {
        let diff = b.align(align, 1024)[3];
        assert!(diff.abs() < 8.0, "Q5: nothing to see at {align}: {diff}");
    }
}

//! The cards of the source documents, measured the way the documents' tables were made, against those tables.

mod bench;

use bench::*;

fn near(what: &str, found: f64, published: f64, share: f64) {
    let off = found / published - 1.0;
    println!("{what}: {found:.2} against {published:.2}: {:+.1} %", off * 100.0);
    assert!(off.abs() <= share, "{what}: {found:.4} against {published:.4}: {:+.1} %", off * 100.0);
}

/// The published table of a card with so many AUs.
fn table(card: &str, n: u64) -> Rates {
    OPEN.iter().find(|t| t.0 == card && t.2 == n).expect("published").3
}

/// Compares the ratio of two tables row by row, simulated against published, where both have a row and `which` wants it.
fn ratios(what: &str, found: [&[(u64, f64)]; 2], published: [Rates; 2], which: impl Fn(u64) -> bool) {
    for above in published[1].iter().filter(|r| which(r.0)) {
        let Some(below) = published[0].iter().find(|r| r.0 == above.0) else { continue };
        let of = |t: &[(u64, f64)]| t.iter().find(|r| r.0 == above.0).expect("simulated").1;
        near(&format!("{what}, ratio at {} KiB", above.0 / KIB), of(found[1]) / of(found[0]), ms(above) / ms(below), 0.25);
    }
}

#[test]
fn readme_alignment() {
    let mut b = Bench::new("flashbench-readme");
    let stride = b.stride(1024);
    assert_eq!(stride, F4[0].0, "the table begins where the tool begins on this card");
    for (align, row) in F4 {
        let found = b.align(align, stride, 1024);
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
    let [f2, f3] = [2, 3].map(|n| Bench::new("flashbench-readme").open_au(n, 4 * MIB, 256 * KIB, false));
    let [two, three] = [2, 3].map(|n| table("flashbench-readme", n));
    for (f, p) in f2.iter().chain(&f3).zip(two.iter().chain(three)) {
        near(&format!("ms a block of {} KiB", f.0 / KIB), f.1, ms(p), 0.15);
    }
    ratios("3 against 2 AUs", [&f2, &f3], [two, three], |_| true);
}

#[test]
fn toshiba() {
    // One after another on the same card, as in the thread.
    let mut b = Bench::new("toshiba-emmc");
    let found = [6, 7, 8].map(|n| b.open_au(n, 4 * MIB, 256 * KIB, false));
    let [six, seven, eight] = [6, 7, 8].map(|n| table("toshiba-emmc", n));
    // Rows of 4 MiB depend on the runs before (see the card's file); their ratios do not.
    ratios("7 against 6 AUs", [&found[0], &found[1]], [six, seven], |_| true);
    ratios("8 against 7 AUs", [&found[1], &found[2]], [seven, eight], |_| true);
    for (f, p) in found[2].iter().zip(eight).filter(|(f, _)| f.0 <= MIB) {
        near("the flat time of a block above the limit", f.1, ms(p), 0.15);
    }
}

#[test]
fn toshiba_small_writes() {
    let found = Bench::new("toshiba-emmc").open_au(1, 4 * MIB, 2 * KIB, false);
    for row in table("toshiba-emmc", 1).iter().filter(|r| r.0 <= 512 * KIB) {
        let f = found.iter().find(|r| r.0 == row.0).expect("row").1;
        near(&format!("ms a block of {} KiB", row.0 / KIB), f, ms(row), 0.15);
    }
}

#[test]
fn sandisk() {
    let [f20, f21, f22] = [20, 21, 22].map(|n| Bench::new("sandisk-emmc").open_au(n, 4 * MIB, 64 * KIB, false));
    let [twenty, one_more, two_more] = [20, 21, 22].map(|n| table("sandisk-emmc", n));
    for (f, p) in f20.iter().zip(twenty) {
        near(&format!("20 AUs, ms a block of {} KiB", f.0 / KIB), f.1, ms(p), 0.25);
    }
    ratios("21 against 20 AUs", [&f20, &f21], [twenty, one_more], |_| true);
    ratios("22 against 20 AUs", [&f20, &f22], [twenty, two_more], |_| true);
    for (f, p) in f21.iter().zip(one_more).chain(f22.iter().zip(two_more)) {
        near(&format!("21 and 22 AUs, ms a block of {} KiB", f.0 / KIB), f.1, ms(p), 0.25);
    }
    for (a, b) in f21.iter().zip(&f22).filter(|(a, _)| a.0 < MIB) {
        assert!(b.1 < a.1, "22 AUs are faster than 21 at {} KiB", a.0 / KIB);
    }
}

#[test]
fn sandisk_reads_are_flat() {
    let mut b = Bench::new("sandisk-emmc");
    for align in (11..30).map(|k| 1u64 << k) {
        let diff = b.align(align, 1 << 30, 1024)[3];
        assert!(diff.abs() < 8.0, "Q5: nothing to see at {align}: {diff}");
    }
}

/// The first row also pays for what was there before, and is left out, as are two rows that the cards' files call not fitted.
#[test]
fn olpc() {
    let unfitted = [("olpc-a-4gb", 512 * KIB), ("olpc-unusable", 2 * MIB), ("olpc-unusable", 8 * KIB), ("olpc-unusable", 4 * KIB)];
    for (name, rates) in OLPC {
        let rows = Bench::new(name).open_au(2, 4 * MIB, 4 * KIB, true);
        for (row, rate) in rows.iter().zip(rates).skip(1) {
            if rate > 0.0 && !unfitted.contains(&(name, row.0)) {
                near(&format!("{name}, ms a block of {} KiB", row.0 / KIB), row.1, ms(&(row.0, rate)), 0.25);
            }
        }
    }
}

/// Rows of the stick with 8 MiB erase blocks: high at its multiples, low at 12 MiB and below 8.
#[test]
fn patriot() {
    let mut b = Bench::new("patriot-16gb");
    for (align, published) in PATRIOT {
        let diff = b.align(align, 1536 * MIB, 1024)[3];
        if published > 100.0 {
            near("step", diff, published, 0.15);
        } else {
            assert!((10.0..60.0).contains(&diff), "the rows below are 19 to 44 us: {diff} at {align}");
        }
    }
}

//! The cost of certainty: what `probe` needs for its verdicts on each built-in card, against flashbench's hand procedure for
//! the same answers: `-a`, then `--open-au` for N = 1, 2, 4, ... and the bisection, linear and random, default options.
//!
//! At most 1 GiB is written, as on a card by default.
//!
//! Virtual time: the figures do not depend on the machine. `cargo bench --bench certainty`

#[path = "../tests/common/mod.rs"]
mod common;

use nandscope_sim::{Card, Model, Request, cards};

const MIB: u64 = 1 << 20;
/// flashbench's defaults: erase size 4 MiB, block size 16 KiB.
const ERASE: u64 = 4 * MIB;

/// One run of `--open-au`: every size from the erase size down to 16 KiB writes all of N AUs, 12 erase sizes apart.
fn open_au(card: &mut Card, now: &mut u64, n: u64, random: bool) -> u64 {
    let room = card.capacity().saturating_sub(16 * MIB + ERASE) / (12 * ERASE) + 1;
    let mut written = 0;
    for size in (0..9).map(|k| ERASE >> k) {
        let count = ERASE / size;
        for i in 0..count {
            let place = if random { (i * 5 + 3) % count } else { i };
            for au in 0..n.min(room) {
                let Ok(done) = card.submit(*now, Request::write(16 * MIB + au * 12 * ERASE + place * size, size)) else { return written };
                *now = done.done;
                written += size;
            }
        }
    }
    written
}

/// Bytes and seconds of the whole procedure by somebody who stops at the right N.
fn by_hand(model: &Model) -> (u64, f64) {
    let truth = model.truth();
    let (mut card, mut now, mut written) = (Card::new(model, 1), 0, 0);
    for random in [false, true] {
        let limit = if random { truth.open_aus_random } else { truth.open_aus_linear };
        let k = u64::from(limit.unwrap_or(64));
        let (mut fits, mut n) = (0, 1);
        while n <= k && n < 64 {
            written += open_au(&mut card, &mut now, n, random);
            (fits, n) = (n, n * 2);
        }
        let mut over = n.min(64);
        written += open_au(&mut card, &mut now, over, random);
        while limit.is_some() && over - fits > 1 {
            let middle = (fits + over) / 2;
            written += open_au(&mut card, &mut now, middle, random);
            if middle <= k { fits = middle } else { over = middle }
        }
    }
    (written, now as f64 / 1e9)
}

fn main() {
    println!("{:<20}{:>9}{:>11}{:>9}  {:>12}{:>10}  {:>8}", "card", "accesses", "written", "time", "by hand", "time", "written");
    for (name, text) in cards::ALL {
        let model = Model::parse(text, name).expect("a built-in card");
        let p = common::probe_within(&model, 1, true, 1 << 30, 1800.0);
        let (bytes, seconds) = by_hand(&model);
        let mib = |b: u64| format!("{:.1} MiB", b as f64 / MIB as f64);
        println!(
            "{name:<20}{:>9}{:>11}{:>7.0} s  {:>12}{:>8.0} s  {:>6.1} %",
            p.accesses,
            mib(p.bytes_written),
            p.seconds,
            mib(bytes),
            seconds,
            100.0 * p.bytes_written as f64 / bytes.max(1) as f64
        );
    }
}

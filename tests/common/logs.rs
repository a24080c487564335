//! What people post of a card: flashbench's commands in the shapes that published logs have, drawn with the seed of the card and run on it.
//!
//! Half of the logs come from our own tests, which prepare each row; the others from flashbench's loops as they were: nothing is prepared, a row
//! finds what the one before left, reads are made in one order and wrap over the end of the device.
#![allow(dead_code)]

use crate::bench_card::bench_card;
use crate::families::{Card, Family, Truth};
use nandscope::device::{Access, Consent, Device, Fill, Limits, Op, OpenOptions, SimDevice, open};
use nandscope::finding::Quantity;
use nandscope::flashbench::Watch;
use nandscope::flashbench::align::{Align, Threes};
use nandscope::flashbench::format::{rate, size, time};
use nandscope::flashbench::job::{Aus, Job};
use nandscope_sim::{random, unusual};
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::Rng;
use std::fmt::Write;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// Erase blocks from one AU to the next.
const SPACING: u64 = 12;
/// Bytes of the smallest erase block.
const SMALLEST: f64 = 65536.0;
/// Places of a row of `-a`.
const PLACES: u64 = 7;

struct Dice(Pcg64Mcg);

impl Dice {
    fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }
    fn chance(&mut self, p: f64) -> bool {
        self.unit() < p
    }
    fn below(&mut self, n: u64) -> u64 {
        (self.unit() * n as f64) as u64
    }
    fn pick<T: Copy>(&mut self, x: &[T]) -> T {
        x[self.below(x.len() as u64) as usize]
    }
}

/// One test of a post.
enum Test {
    Align { block: u64, runs: u64 },
    Fat { block: u64, aus: u64, runs: u64 },
    Open { block: u64, counts: Vec<u64>, random: bool },
}

/// A post: its tests, the AU size that its author took, and whether our own program ran them.
struct Post {
    tests: Vec<Test>,
    erase: u64,
    own: bool,
}

fn post(truth: &Truth, d: &mut Dice) -> Post {
    let counts = |d: &mut Dice| match d.below(6) {
        0 | 1 => (1..=7).collect(),
        2 => (1..=4).collect(),
        3 => (1..=5 + d.below(6)).collect(),
        4 => vec![1, 2, 4, 8, 16],
        _ => {
            let n = 1 + d.below(8);
            vec![n, n + 1, n + 2]
        }
    };
    let least = |d: &mut Dice| d.pick(&[4 * KIB, 16 * KIB, 16 * KIB, 16 * KIB, 64 * KIB]);
    let mut tests = vec![];
    match d.below(6) {
        // A script for a survey: everything, three times.
        0 => {
            tests.push(Test::Align { block: KIB, runs: 3 });
            tests.push(Test::Fat { block: d.pick(&[2, 4, 8]) * KIB, aus: 8, runs: 2 });
            let block = d.pick(&[4, 16]) * KIB;
            let most = d.pick(&[7, 7, 7, 5, 3]);
            for random in [false, true] {
                tests.push(Test::Open { block, counts: (1..=most).collect(), random });
            }
        }
        // A page about one card.
        1 | 2 => {
            tests.push(Test::Align { block: d.pick(&[1, 1, 4, 16]) * KIB, runs: 1 });
            if d.chance(0.5) {
                tests.push(Test::Fat { block: 16 * KIB, aus: 6, runs: 1 });
            }
            let (block, all) = (least(d), counts(d));
            tests.push(Test::Open { block, counts: all.clone(), random: false });
            if d.chance(0.6) {
                tests.push(Test::Open { block, counts: all, random: true });
            }
        }
        // A question: how many are open?
        3 => tests.push(Test::Open { block: d.pick(&[16, 64, 256]) * KIB, counts: counts(d), random: d.chance(0.3) }),
        4 => {
            let (block, all) = (least(d), counts(d));
            tests.push(Test::Open { block, counts: all.clone(), random: false });
            tests.push(Test::Open { block, counts: all, random: true });
        }
        // How large are its erase blocks?
        _ => tests.push(Test::Align { block: d.pick(&[1, 1, 1, 4, 16]) * KIB, runs: d.pick(&[1, 1, 2, 3]) }),
    }
    let own = d.chance(0.5);
    // Who asks about open AUs has mostly read a size off `-a`; others take the size that is taken for them.
    let block = truth.of(Quantity::EraseBlock).filter(|b| b.is_finite()).map(|b| b as u64);
    let erase = match block {
        Some(b) if d.chance(0.8) && (own || b.is_power_of_two()) => b,
        _ => 4 * MIB,
    };
    // Nobody waits for hours: of a large AU the smallest writes are left out.
    let patient = |block: u64| block.max(erase.next_power_of_two() / 1024);
    for test in &mut tests {
        if let Test::Fat { block, .. } | Test::Open { block, .. } = test {
            *block = patient(*block);
        }
    }
    Post { tests, erase, own }
}

/// The log of a card; `None` where a test has no room on it, or fails, and of erase blocks that no card sold has: a wear-levelling simulator
/// takes minutes for each of their many merges.
pub fn log(card: &Card) -> Option<String> {
    Truth::of_card(card).of(Quantity::EraseBlock).is_none_or(|b| b.is_nan() || b >= SMALLEST).then_some(())?;
    let mut d = Dice(Pcg64Mcg::new((u128::from(card.seed) << 64) | 0x6c6f_6773_0000 | card.family as u128));
    (0..8 + card.kind.len()).for_each(|_| _ = d.0.next_u64());
    let post = post(&Truth::of_card(card), &mut d);
    match card.family {
        Family::Random => run(&mut SimDevice::new(&random::card(card.seed), card.seed), &post, &mut d),
        Family::Unusual => run(&mut SimDevice::new(&unusual::card(card.seed), card.seed), &post, &mut d),
        Family::Bench => {
            let target = format!("exec:{} {} {}", bench_card().display(), card.kind, card.seed);
            let opened = open(&target, &OpenOptions::default()).unwrap();
            let consent = Consent::check(opened.id(), None).unwrap();
            run(&mut opened.writable(&consent, &Limits { budget: u64::MAX, ..Limits::default() }).unwrap(), &post, &mut d)
        }
    }
}

fn run(device: &mut dyn Device, post: &Post, d: &mut Dice) -> Option<String> {
    let g = device.geometry().clone();
    let mut out = String::new();
    if post.own {
        let _ = writeln!(out, "# nandscope 0.1.0, a card, {} bytes", g.size);
    }
    let own = |device: &mut dyn Device, out: &mut String, head: String, job: Result<Job, _>| {
        let mut lines = vec![];
        let (mut never, mut nothing) = (|| false, |_: Access, _| ());
        let job: Job = job.ok()?;
        job.run(device, &mut lines, &mut Watch { stop: &mut never, done: &mut nothing }).ok()?;
        *out += &format!("# flashbench {head} sim:card\n{}", String::from_utf8(lines).ok()?);
        Some(())
    };
    let erase = post.erase;
    let seed = d.below(1 << 32);
    for test in &post.tests {
        match (test, post.own) {
            (Test::Align { block, runs }, true) => {
                for _ in 0..*runs {
                    let job = Job::Align(Align { block: *block, passes: 8, write: false, threes: Threes::Auto, seed });
                    own(device, &mut out, format!("-a --blocksize={block} --count=8"), Ok(job))?;
                }
            }
            (Test::Align { block, runs }, false) => {
                for _ in 0..*runs {
                    let _ = writeln!(out, "$ sudo ./flashbench -a /dev/sdb --blocksize={block}");
                    align(device, *block, &mut out)?;
                }
            }
            (Test::Fat { block, aus, runs }, true) => {
                for _ in 0..*runs {
                    let a = Aus { erase, block: *block, count: *aus, start: 0, spacing: 1, random: false, passes: 1 };
                    let head = format!("-f --fat-nr={aus} --erasesize={erase} --blocksize={block} --offset=0");
                    own(device, &mut out, head, Job::find_fat(&a, &g, seed))?;
                }
            }
            (Test::Fat { block, aus, runs }, false) => {
                for _ in 0..*runs {
                    let _ = writeln!(out, "$ sudo ./flashbench -f /dev/sdb --fat-nr={aus} --erasesize={erase} --blocksize={block}");
                    find_fat(device, *block, *aus, erase, &mut out)?;
                }
            }
            (Test::Open { block, counts, random }, own_rows) => {
                let start = Aus::default_start(erase, &g);
                let order = if *random { " --random" } else { "" };
                for &n in counts {
                    let a = Aus { erase, block: (*block).min(erase), count: n, start, spacing: SPACING, random: *random, passes: 1 };
                    let job = Job::open_au(&a, &g, seed);
                    if own_rows {
                        let head = format!("-O --open-au-nr={n} --erasesize={erase} --blocksize={block}{order} --offset={start}");
                        own(device, &mut out, head, job)?;
                    } else {
                        job.ok()?;
                        let _ = writeln!(
                            out,
                            "$ sudo ./flashbench -O /dev/sdb --open-au-nr={n} --erasesize={erase} --blocksize={block}{order}"
                        );
                        open_au(device, &a, d, &mut out)?;
                    }
                }
            }
        }
    }
    Some(out)
}

/// Nanoseconds of one access; cut where it would lie beyond the end.
fn one(device: &mut dyn Device, op: Op, at: u64, len: u64) -> Option<f64> {
    let size = device.geometry().size;
    let at = at % size;
    let first = len.min(size - at);
    let mut took = device.access(Access { op, at, len: first }).ok()?.took.0;
    if first < len {
        took += device.access(Access { op, at: 0, len: len - first }).ok()?.took.0;
    }
    Some(took as f64)
}

/// flashbench's rows of `-a`: the least of several reads before, across and after seven places, then the mean of the places.
fn align(device: &mut dyn Device, block: u64, out: &mut String) -> Option<()> {
    const PASSES: usize = 8;
    let size = device.geometry().size;
    let mut top = block;
    while top * PLACES < size {
        top *= 2;
    }
    let mut row = top;
    while row >= 2 * block {
        let mut best = vec![[f64::INFINITY; 3]; PLACES as usize];
        for _ in 0..PASSES {
            for (i, b) in best.iter_mut().enumerate() {
                let at = row + i as u64 * top;
                for (b, at) in b.iter_mut().zip([at - block, at - block / 2, at]) {
                    *b = b.min(one(device, Op::Read, at, block)?);
                }
            }
        }
        let [pre, on, post] = [0, 1, 2].map(|k| best.iter().map(|b| b[k]).sum::<f64>() / PLACES as f64);
        let t = |ns: f64| time(ns as i64);
        let _ = writeln!(out, "align {row}\tpre {}\ton {}\tpost {}\tdiff {}", t(pre), t(on), t(post), t(on - (pre + post) / 2.0));
        row /= 2;
    }
    Some(())
}

fn find_fat(device: &mut dyn Device, block: u64, aus: u64, erase: u64, out: &mut String) -> Option<()> {
    if aus * erase > device.geometry().size {
        return None;
    }
    let mut chunk = erase;
    while chunk >= block {
        let mut line = format!("{:<7} ", size(chunk));
        for au in 0..aus {
            let mut sum = 0.0;
            for i in 0..erase / chunk {
                sum += one(device, Op::Write(Fill::Random(1)), au * erase + i * chunk, chunk)?;
            }
            line += &format!("{:<7}  ", rate(erase as f64 / sum * 1e9));
        }
        out.push_str(line.trim_end());
        out.push('\n');
        chunk /= 2;
    }
    Some(())
}

fn open_au(device: &mut dyn Device, a: &Aus, d: &mut Dice, out: &mut String) -> Option<()> {
    let mut chunk = a.erase;
    while chunk >= a.block {
        let mut places: Vec<u64> = (0..a.erase / chunk).collect();
        if a.random {
            (1..places.len()).rev().for_each(|i| places.swap(i, d.below(i as u64 + 1) as usize));
        }
        let mut sum = 0.0;
        for place in &places {
            for au in (0..a.count).rev() {
                sum += one(device, Op::Write(Fill::Random(1)), a.start + au * a.spacing * a.erase + place * chunk, chunk)?;
            }
        }
        let _ = writeln!(out, "{:<7} {:<8}", size(chunk), rate((a.erase * a.count) as f64 / sum * 1e9));
        chunk /= 2;
    }
    Some(())
}

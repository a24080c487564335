//! Requests a second through the pipes of `exec:`, with a card of the second family at the other end. Targets: 50 000 with 64 requests sent ahead, 8 000 one
//! by one. `cargo bench --bench exec`

#[path = "../tests/common/bench_card.rs"]
mod bench_card;

use nandscope::device::{Access, Device, Op, OpenOptions, open};
use std::time::Instant;

fn main() {
    // `cargo test --all-targets` starts benches, too, but without this.
    if !std::env::args().any(|a| a == "--bench") {
        return;
    }
    let target = format!("exec:{} block 4 host=quiet", bench_card::bench_card().display());
    let mut guard = open(&target, &OpenOptions::default()).expect("it starts").read_only();
    let pages = guard.geometry().size / 4096;
    let all: Vec<Access> = (0..400_000u64).map(|i| Access { op: Op::Read, at: i * 7919 % pages * 4096, len: 4096 }).collect();
    for _ in 0..3 {
        let begun = Instant::now();
        guard.batch(&all, 1).expect("it reads");
        let ahead = all.len() as f64 / begun.elapsed().as_secs_f64();
        let single = &all[..40_000];
        let begun = Instant::now();
        for &a in single {
            guard.access(a).expect("it reads");
        }
        println!("{ahead:.0} requests/s sent ahead, {:.0} one by one", single.len() as f64 / begun.elapsed().as_secs_f64());
    }
}

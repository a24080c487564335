//! How fast cards are simulated: requests and page programs a second, one thread, latency histogram included.
//!
//! `cargo bench -p nandscope-sim` prints each figure beside a calibration loop (dependent SplitMix64 steps), so that the
//! ratio travels between machines; `-- NAME` runs those whose name contains NAME.

use nandscope_sim::{Card, Histogram, Model, Request, Rng};
use std::hint::black_box;
use std::time::Instant;

fn card(text: &str) -> Card {
    Card::new(&Model::parse(text, "bench").unwrap_or_else(|e| panic!("{e}")), 1)
}

fn page_map(capacity: &str, block: &str, over: f64) -> String {
    format!(
        "name = \"page\"\n[host]\nrate = \"90 MB/s\"\n[card]\ncapacity = \"{capacity}\"\n[nand]\npage = \"4 KiB\"\nerase_block = \"{block}\"\nsense = \"60 us\"\n\
         program = \"200 us\"\ncopy = \"200 us\"\nerase = \"3 ms\"\n[ftl]\nkind = \"page-map\"\nover_provisioning = {over}\n"
    )
}

const AUS: &str = "name = \"aus\"\n[host]\nrate = \"20 MB/s\"\n[card]\ncapacity = \"32 GiB\"\n[nand]\npage = \"16 KiB\"\nerase_block = \"4 MiB\"\nsense = \"100 us\"\n\
                   program = \"1 ms\"\ncopy = \"1 ms\"\nerase = \"3 ms\"\nrest_rate = \"20 MB/s\"\n[ftl]\nkind = \"block-map\"\nopen_linear = 6\nopen_random = 6\nclose = \"20 ms\"\n";

/// Steps of the calibration loop a second, in millions.
fn calibration() -> f64 {
    let mut rng = Rng::new(1, 1);
    let n = 50_000_000u64;
    let start = Instant::now();
    let mut x = 0u64;
    for _ in 0..n {
        x ^= rng.next();
    }
    black_box(x);
    n as f64 / 1e6 / start.elapsed().as_secs_f64()
}

struct Row {
    name: &'static str,
    goal: f64,
}

impl Row {
    /// Runs `n` requests from `next` and prints millions a second.
    fn run(&self, card: &mut Card, n: u64, mut next: impl FnMut(u64) -> Request) {
        let mut histogram = Histogram::default();
        let before = card.counters().clone();
        let (mut now, start) = (0, Instant::now());
        for k in 0..n {
            let c = card.submit(now, next(k)).expect("served");
            histogram.add(c.done - c.start);
            now = c.done;
        }
        let secs = start.elapsed().as_secs_f64();
        let k = card.counters();
        let programs = (k.units_programmed + k.units_copied - before.units_programmed - before.units_copied) as f64;
        assert_eq!(histogram.count(), n, "served = submitted");
        println!(
            "{:34} {:8.2} M requests/s (goal {:5.1})  {:8.2} M programs/s  amplification {:.2}",
            self.name,
            n as f64 / secs / 1e6,
            self.goal,
            programs / secs / 1e6,
            programs / (k.bytes_written - before.bytes_written).max(1) as f64 * k.unit_bytes as f64,
        );
    }
}

fn main() {
    let only = std::env::args().skip(1).find(|a| !a.starts_with("--")).unwrap_or_default();
    let wanted = |name: &str| name.contains(&only);
    println!("calibration loop {:.0} M steps/s", calibration());
    let mut rng = Rng::new(7, 7);
    if wanted("page map 32 GB") {
        let start = Instant::now();
        let mut c = card(&page_map("32 GB", "4 MiB", 0.07));
        println!("{:34} {:8.2} ms (goal 100)", "precondition 32 GB", start.elapsed().as_secs_f64() * 1e3);
        let units = c.capacity() / 4096;
        for _ in 0..units / 2 {
            c.submit(0, Request::write(rng.below(units) * 4096, 4096)).expect("served");
        }
        Row { name: "page map 32 GB, 7 %, random", goal: 2.0 }.run(&mut c, 10_000_000, |_| Request::write(rng.below(units) * 4096, 4096));
        Row { name: "page map 32 GB, random reads", goal: 2.0 }.run(&mut c, 10_000_000, |_| Request::read(rng.below(units) * 4096, 4096));
    }
    if wanted("page map 8 GiB") {
        let mut c = card(&page_map("8 GiB", "4 MiB", 0.88));
        let units = c.capacity() / 4096;
        for _ in 0..2 * units {
            c.submit(0, Request::write(rng.below(units) * 4096, 4096)).expect("served");
        }
        Row { name: "page map 8 GiB, 88 %, random", goal: 5.0 }.run(&mut c, 10_000_000, |_| Request::write(rng.below(units) * 4096, 4096));
    }
    if wanted("open AUs") {
        let mut c = card(AUS);
        let units = c.capacity() / 16384;
        Row { name: "open AUs, random", goal: 10.0 }.run(&mut c, 20_000_000, |_| Request::write(rng.below(units) * 16384, 16384));
        Row { name: "open AUs, sequential", goal: 30.0 }.run(&mut c, 50_000_000, |k| Request::write(k % units * 16384, 16384));
        Row { name: "open AUs, random reads", goal: 10.0 }.run(&mut c, 20_000_000, |_| Request::read(rng.below(units) * 16384, 16384));
    }
}

//! How fast cards are simulated: requests and page programs a second, one thread, latency histogram included.
//!
//! `cargo bench -p nandscope-sim` prints each figure beside a calibration loop (dependent SplitMix64 steps), so that the
//! ratio travels between machines (time is that of the processor, not of the wall); `-- NAME` runs those whose name contains NAME.

use nandscope_sim::run::{How, run};
use nandscope_sim::trace::parse;
use nandscope_sim::{AHEAD, Card, Histogram, Model, Op, Request, Rng};
use std::hint::black_box;
use std::sync::LazyLock;
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

/// Steps of the calibration loop a second, in millions, on the quiet machine that the goals are for.
const QUIET: f64 = 600.0;

/// Places one behind the other, from 0 again behind the last of them.
fn in_order(places: u64) -> impl FnMut(u64) -> Request {
    let mut next = 0;
    move |_| {
        let at = next * 16384;
        next = if next + 1 == places { 0 } else { next + 1 };
        Request::write(at, 16384)
    }
}

/// Seconds this thread has had of a processor, so that a busy machine disturbs less; the clock where the system does not say.
fn seconds() -> f64 {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    let on_cpu = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let ns = on_cpu.and_then(|s| s.split_whitespace().next().and_then(|n| n.parse::<u64>().ok()));
    ns.map_or_else(|| START.elapsed().as_secs_f64(), |n| n as f64 / 1e9)
}

/// Steps of the calibration loop a second, in millions.
fn calibration() -> f64 {
    let mut rng = Rng::new(1, 1);
    let n = 10_000_000u64;
    let start = seconds();
    let mut x = 0u64;
    for _ in 0..n {
        x ^= rng.next();
    }
    black_box(x);
    n as f64 / 1e6 / (seconds() - start)
}

struct Row {
    name: &'static str,
    goal: f64,
}

impl Row {
    /// Runs `n` requests from `next` and prints millions a second.
    fn run(&self, card: &mut Card, n: u64, mut next: impl FnMut(u64) -> Request) {
        let before_loop = calibration();
        let mut histogram = Histogram::default();
        let before = card.counters().clone();
        let (mut now, start) = (0, seconds());
        for k in (0..n).step_by(AHEAD) {
            let requests: [Request; AHEAD] = std::array::from_fn(|i| next(k + i as u64));
            card.foresee(requests.iter().filter(|r| r.op == Op::Write).map(|r| r.at));
            for &r in requests.iter().take((n - k) as usize) {
                let c = card.submit(now, r).expect("served");
                histogram.add(c.done - c.start);
                now = c.done;
            }
        }
        let secs = seconds() - start;
        let k = card.counters();
        let programs = (k.units_programmed + k.units_copied - before.units_programmed - before.units_copied) as f64;
        assert_eq!(histogram.count(), n, "served = submitted");
        let loops = (before_loop + calibration()) / 2.0;
        let rate = n as f64 / secs / 1e6;
        // The goal is for a machine whose loop runs at QUIET; here it is that share of the loop of now.
        let share = rate / loops * 1000.0;
        let aim = self.goal / QUIET * 1000.0;
        println!(
            "{:34} goal {:4.1} M/s, {aim:5.1} a 1000 steps; measured {rate:6.2} M/s, {share:5.1} a 1000 steps: {:4.2} of the goal, {:.2} by the loop; \
             {:8.2} M programs/s, amplification {:.2}",
            self.name,
            self.goal,
            rate / self.goal,
            share / aim,
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
    if wanted("1 TB") {
        let before = resident();
        let mut c = card(&AUS.replace("32 GiB", "1000 GB"));
        let aus = c.capacity() >> 22;
        Row { name: "open AUs, 1 TB, random", goal: 10.0 }.run(&mut c, 5_000_000, |_| Request::write(rng.below(aus) << 22, 16384));
        println!("{:34} {:8.1} MB (goal 20)", "memory of a 1 TB card", (resident().saturating_sub(before)) as f64 / 1e6);
        drop(c);
        let before = resident();
        let mut c = card(&page_map("32 GB", "4 MiB", 0.07));
        let units = c.capacity() / 4096;
        for _ in 0..units {
            c.submit(0, Request::write(rng.below(units) * 4096, 4096)).expect("served");
        }
        println!("{:34} {:8.1} MB (goal 100)", "memory of a 32 GB page-mapped card", (resident().saturating_sub(before)) as f64 / 1e6);
    }
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
        Row { name: "open AUs, sequential", goal: 30.0 }.run(&mut c, 50_000_000, in_order(units));
        Row { name: "open AUs, random reads", goal: 10.0 }.run(&mut c, 20_000_000, |_| Request::read(rng.below(units) * 16384, 16384));
    }
    if wanted("accounting") {
        // What a fit does for each candidate: a card of 64 GB made anew, 10 000 accesses with their events.
        let model = Model::parse(&AUS.replace("32 GiB", "64 GB"), "bench").expect("a model");
        let all: Vec<Request> = (0..10_000u64)
            .map(|k| match k % 4 {
                0 => Request::read(rng.below(15_000) << 22, 16384),
                1 => Request::write(k / 4 * 16384, 16384),
                _ => Request::write((rng.below(12) << 22) + (rng.below(256) << 14), 16384),
            })
            .collect();
        let start = seconds();
        let mut sum = 0;
        for _ in 0..20 {
            let (mut c, mut now) = (Card::new(&model, 1).account(), 0);
            for &r in &all {
                now = c.submit(now, r).expect("served").done;
                sum += c.last_events().map_or(0, |e| e.0[0]);
            }
        }
        black_box(sum);
        println!("{:34} {:8.2} ms (goal 10)", "accounting, 64 GB, 10 000 accesses", (seconds() - start) * 1e3 / 20.0);
    }
    if wanted("log blocks") {
        let bast = "kind = \"log-block\"\ngroup = 1\nper_group = 1\npool = 32";
        let fast = "kind = \"log-block\"\npool = 32\nsequential = true";
        let aus = "kind = \"block-map\"\nopen_linear = 6\nopen_random = 6\nclose = \"20 ms\"";
        for (name, ftl) in [("log blocks, BAST, random", bast), ("log blocks, FAST, random", fast)] {
            let mut c = card(&AUS.replace(aus, ftl));
            let units = c.capacity() / 16384;
            let n = if ftl == bast { 4_000_000 } else { 2_000_000 };
            Row { name, goal: 2.0 }.run(&mut c, n, |_| Request::write(rng.below(units) * 16384, 16384));
        }
        let mut c = card(&AUS.replace(aus, fast));
        let units = c.capacity() / 16384;
        Row { name: "log blocks, FAST, sequential", goal: 2.0 }.run(&mut c, 20_000_000, in_order(units));
    }
    if wanted("trace") {
        for (name, text) in [("page map", page_map("8 GiB", "4 MiB", 0.07)), ("open AUs", AUS.to_string())] {
            let mut c = card(&text);
            let places = (8u64 << 30) / 4096;
            let (mut ascii, mut blk) = (String::new(), String::new());
            for k in 0..1_000_000u64 {
                let place = rng.below(places) * 8;
                ascii.push_str(&format!("{} 0 {place} 8 0\n", k * 10_000));
                blk.push_str(&format!("  8,0    1 {k:8} {:5}.{:09}   697  D  WS {place} + 8 [fio]\n", k / 10_000, k % 10_000 * 100_000));
            }
            for (kind, text) in [("MQSim ASCII", &ascii), ("blkparse", &blk)] {
                let start = seconds();
                let t = parse(text.as_bytes(), None).expect("a trace");
                let parsed = (seconds() - start) * 1e3;
                let o = run(&mut c, 0, t.ios, &How::default()).expect("served");
                let all = (seconds() - start) * 1e3;
                println!("{:34} {all:8.0} ms (goal 500), of which reading {parsed:.0} ms", format!("1 M lines of {kind}, {name}"));
                assert_eq!(o.served, 1_000_000);
            }
        }
    }
}

/// Bytes of memory in use by the process; 0 where the system does not say.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|l| l.starts_with("VmRSS:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|n| n.parse::<u64>().ok()).unwrap_or(0) * 1024
}

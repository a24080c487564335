//! What a served card costs and how late it answers: the time of a request through loop device, FUSE and server on a card
//! that needs no time, and the excess over 1 ms on a card that needs just that.
//!
//! Run it alone on the machine: `cargo bench --bench serve`. Needs root, FUSE and loop devices.

use nandscope::device::{self, Access, Device, Op, OpenOptions};
use nandscope::serve::fuse::{Options, Served};
use nandscope_sim::Model;

const ROUNDS: usize = 4000;
/// Requests before the first that counts.
const WARM_UP: usize = 200;

fn main() {
    // `cargo test --all-targets` starts benches, too, but without this.
    if !std::env::args().any(|a| a == "--bench") {
        return;
    }
    if !rustix::process::geteuid().is_root() {
        println!("skipped: the path to a served card: not root");
        return;
    }
    println!("{:<28}{:>9}{:>9}{:>9}{:>9}{:>9}   µs", "one at a time", "min", "p50", "p90", "p99", "max");
    for len in [1024, 4096, 65536, 524_288] {
        row(&format!("floor, {len} bytes"), &measure(0, len), 0);
    }
    for len in [1024, 4096, 524_288] {
        row(&format!("beyond 1 ms, {len} bytes"), &measure(1000, len), 1_000_000);
    }
}

/// Times in ns of random reads on a card that takes `us` for each.
fn measure(us: u64, len: u64) -> Vec<u64> {
    let text = format!(
        "name = \"fixed\"\nabout = \"a fixed time\"\n[card]\ncapacity = \"1 GiB\"\ncommand = \"{us} us\"\n[nand]\npage = \"512 B\"\n\
         erase_block = \"4 MiB\"\n[ftl]\nkind = \"none\"\n"
    );
    let model = Model::parse(&text, "fixed").expect("the model is valid");
    let served = Served::start(&model, 1, &Options::default()).expect("the card can be served");
    let name = served.device().display().to_string();
    let mut guard = device::open(&name, &OpenOptions::default()).expect("the device opens").read_only();
    // As a probe does.
    device::realtime();
    let mut times = Vec::with_capacity(ROUNDS);
    for i in 0..WARM_UP + ROUNDS {
        let at = (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) % (1 << 30) / len * len;
        let t = guard.access(Access { op: Op::Read, at, len }).expect("the read succeeds");
        if i >= WARM_UP {
            times.push(t.took.0);
        }
    }
    drop(guard);
    let stats = served.stats();
    println!("  the server's own lateness: {} us (median), {} us (99 %)", stats.late_p50, stats.late_p99);
    served.stop().expect("the card is removed");
    times.sort_unstable();
    times
}

fn row(what: &str, times: &[u64], beyond: u64) {
    let at = |per_mille: usize| (times[(times.len() - 1) * per_mille / 1000] as f64 - beyond as f64) / 1e3;
    println!("{what:<28}{:>9.1}{:>9.1}{:>9.1}{:>9.1}{:>9.1}", at(0), at(500), at(900), at(990), at(1000));
}

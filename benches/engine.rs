//! What an access costs beyond the bare system call: 4 KiB random reads at depth 1 on a loop device over memory, against a bare
//! `pread` loop and against fio's psync engine, side by side in one run.
//!
//! The three take turns in slices of 25 ms, in an order that changes every turn, so that drift of the machine hits all alike.
//! Each has a thread of its own that sleeps while it is not its turn, so that the scheduler owes all the same; fio is stopped
//! and continued by signals. One judge counts for all of them: the kernel's own count of reads of the device.
//! Target: at least 1.0 against fio. Needs root, loop devices and fio.

#[path = "../tests/blockdev/bed.rs"]
#[allow(dead_code)]
mod bed;
#[path = "../tests/common/skip.rs"]
mod skip;

use nandscope::device::{Access, Device, Op};
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng, SeedableRng};
use rustix::fs::{Mode, OFlags, open};
use rustix::process::{Pid, Signal, kill_process};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

const SIZE: u64 = 256 * bed::MIB;
const BLOCK: u64 = 4096;
const SLICE: Duration = Duration::from_millis(25);
/// Lets whoever's turn it is wake up before counting begins.
const WARM_UP: Duration = Duration::from_millis(5);
const TURNS: usize = 400;
const NAMES: [&str; 3] = ["nandscope", "bare pread", "fio psync"];

fn main() {
    // `cargo test --all-targets` starts benches, too, but without this.
    if !std::env::args().any(|a| a == "--bench") {
        return;
    }
    if let Some(why) = bed::no_loops() {
        println!("skipped: engine overhead: {why}");
        return;
    }
    let dir = bed::dir(true);
    let file = bed::image(dir.path(), SIZE);
    let device = bed::Loop::over(&file, &[]);
    println!("4 KiB random reads, depth 1, {} over memory; {TURNS} turns of {} ms", device.0, SLICE.as_millis());
    let mut fio = bed::have("fio", "fio's side of the engine overhead").then(|| Fio::start(&device));
    let name = device.0.clone();
    let ours = Worker::start(&device, move || {
        let mut guard = bed::opened(&name).expect("the loop device opens").read_only();
        // Through the whole stack: guard, checks, both readings of the clock.
        move |at| guard.access(Access { op: Op::Read, at, len: BLOCK }).map(|_| ()).expect("the read succeeds")
    });
    let name = device.0.clone();
    let bare = Worker::start(&device, move || {
        let file = open(name.as_str(), OFlags::RDONLY | OFlags::DIRECT, Mode::empty()).expect("the loop device opens");
        let mut memory = vec![0u8; 2 * BLOCK as usize];
        let skip = memory.as_ptr().align_offset(BLOCK as usize);
        move |at| rustix::io::pread(&file, &mut memory[skip..skip + BLOCK as usize], at).map(|_| ()).expect("the read succeeds")
    });
    let (mut reads, mut nanos) = ([0u64; 3], [0u64; 3]);
    let mut rates: [Vec<f64>; 3] = Default::default();
    for turn in 0..TURNS {
        for k in 0..3 {
            let who = (turn + if turn % 2 == 0 { k } else { 2 * k }) % 3;
            let (n, ns) = match (who, &mut fio) {
                (0, _) => ours.slice(),
                (1, _) => bare.slice(),
                (_, Some(fio)) => fio.slice(&device),
                (_, None) => continue,
            };
            reads[who] += n;
            nanos[who] += ns;
            rates[who].push(n as f64 / ns as f64 * 1e9);
        }
    }
    for (i, name) in NAMES.iter().enumerate() {
        if rates[i].is_empty() {
            continue;
        }
        let mean = reads[i] as f64 / nanos[i] as f64 * 1e9;
        rates[i].sort_by(f64::total_cmp);
        println!("{name:>10}: mean {mean:7.0} IOPS, median of the slices {:7.0} IOPS", rates[i][rates[i].len() / 2]);
    }
    for other in [1, 2] {
        if !rates[other].is_empty() {
            let mean = reads[0] as f64 * nanos[other] as f64 / (nanos[0] as f64 * reads[other] as f64);
            let median = rates[0][TURNS / 2] / rates[other][TURNS / 2];
            println!("nandscope / {}: {mean:.3} by the means, {median:.3} by the medians", NAMES[other]);
        }
    }
}

/// A thread that reads for one slice whenever it is told to, and answers with the reads and the ns it took.
struct Worker {
    go: mpsc::SyncSender<()>,
    done: mpsc::Receiver<(u64, u64)>,
}

impl Worker {
    fn start<R: FnMut(u64)>(device: &bed::Loop, make: impl FnOnce() -> R + Send + 'static) -> Worker {
        let ((go, told), (tell, done)) = (mpsc::sync_channel(0), mpsc::sync_channel(0));
        let name = device.name().to_string();
        std::thread::spawn(move || {
            let (mut read, mut random) = (make(), Pcg64Mcg::seed_from_u64(1));
            let mut read_for = |time| {
                let (before, begin) = (count(&name), Instant::now());
                while begin.elapsed() < time {
                    (0..16).for_each(|_| read(random.next_u64() % (SIZE / BLOCK) * BLOCK));
                }
                (count(&name) - before, begin.elapsed().as_nanos() as u64)
            };
            while told.recv().is_ok() {
                read_for(WARM_UP);
                if tell.send(read_for(SLICE)).is_err() {
                    return;
                }
            }
        });
        Worker { go, done }
    }

    fn slice(&self) -> (u64, u64) {
        self.go.send(()).expect("the thread lives");
        self.done.recv().expect("the thread lives")
    }
}

/// Reads the device has completed, as the kernel counts them.
fn count(device: &str) -> u64 {
    let text = std::fs::read_to_string(format!("/sys/block/{device}/stat")).expect("sysfs has the device");
    text.split_whitespace().next().and_then(|n| n.parse().ok()).expect("the first field is the number of reads")
}

/// fio, stopped except in its slices.
struct Fio(Child);

impl Fio {
    fn start(device: &bed::Loop) -> Fio {
        let filename = format!("--filename={}", device.0);
        let how = ["--name=psync", "--ioengine=psync", "--rw=randread", "--bs=4k", "--iodepth=1", "--direct=1", "--readonly"];
        // No record of what was read already, because the others keep none; one process, so that one signal stops it.
        let child = Command::new("fio")
            .args(how)
            .args(["--thread", "--norandommap", "--time_based", "--runtime=600", &filename])
            .stdout(Stdio::null())
            .spawn()
            .expect("fio starts");
        let mut fio = Fio(child);
        // Past its preparations when the device is being read.
        let before = count(device.name());
        while count(device.name()) < before + 1000 {
            std::thread::sleep(SLICE);
        }
        fio.send(Signal::STOP);
        fio
    }

    fn send(&mut self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).expect("fio is running");
    }

    fn slice(&mut self, device: &bed::Loop) -> (u64, u64) {
        self.send(Signal::CONT);
        std::thread::sleep(WARM_UP);
        let (before, begin) = (count(device.name()), Instant::now());
        std::thread::sleep(SLICE);
        let done = (count(device.name()) - before, begin.elapsed().as_nanos() as u64);
        self.send(Signal::STOP);
        done
    }
}

impl Drop for Fio {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

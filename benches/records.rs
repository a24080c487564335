//! What the record benchmark costs beside what it times: 100 B records on a file in memory against a bare `pwrite` loop, in turns;
//! and a simulated run of 50 000 records of 100 B. Targets: 2 us a record over the system call; one second for the run.
//! `cargo bench --bench records`

use nandscope::device::{Machine, SimDevice};
use nandscope::volume::Directory;
use nandscope::workload::library::Library;
use nandscope::workload::records::{Plan, Sync, run};
use nandscope::workload::volume_file::VolumeFile;
use nandscope_sim::{Model, cards};
use std::os::unix::fs::FileExt;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

const RECORDS: u64 = 50_000;

fn main() {
    // `cargo test --all-targets` starts benches, too, but without this.
    if !std::env::args().any(|a| a == "--bench") {
        return;
    }
    let stop = AtomicBool::new(false);
    let plan = Plan { file: RECORDS * 100, sync: Sync::Never, read: false, ..Plan::new(100) };
    let place = if std::path::Path::new("/dev/shm").is_dir() { "/dev/shm" } else { "/tmp" };
    let dir = tempfile::tempdir_in(place).expect("a directory in memory");
    let (mut ours, mut bare) = (vec![], vec![]);
    for _ in 0..21 {
        let mut volume = Directory::open(dir.path()).expect("the directory");
        let mut file = VolumeFile::new(&mut volume, 100).expect("no such file yet");
        let begun = Instant::now();
        run(&mut file, &plan, &stop, &mut |_, _, _| {}).expect("it writes");
        ours.push(begun.elapsed().as_nanos() as f64 / RECORDS as f64);
        file.delete().expect("it goes");
        let file = std::fs::File::create(dir.path().join("bare")).expect("a file");
        let begun = Instant::now();
        for i in 0..RECORDS {
            assert_eq!(file.write_at(&[7; 100], i * 100).expect("it writes"), 100);
        }
        bare.push(begun.elapsed().as_nanos() as f64 / RECORDS as f64);
    }
    let median = |v: &mut Vec<f64>| {
        v.sort_by(f64::total_cmp);
        v[v.len() / 2]
    };
    let (ours, bare) = (median(&mut ours), median(&mut bare));
    println!("a record of 100 B on {place}: {ours:.0} ns, a bare pwrite {bare:.0} ns: {:.0} ns more (target: below 2000)", ours - bare);
    let model = Model::parse(cards::text("wintec-1gb").expect("built in"), "wintec-1gb").expect("a model");
    let mut times: Vec<f64> = (0..5)
        .map(|seed| {
            let mut device = SimDevice::new(&model, seed);
            let mut file = Library::new(&mut device, Machine::of(&model).expect("a host"));
            let begun = Instant::now();
            run(&mut file, &Plan::new(100), &stop, &mut |_, _, _| {}).expect("it writes");
            begun.elapsed().as_secs_f64()
        })
        .collect();
    println!("50 000 records of 100 B written and read on a simulated card: {:.3} s (target: below 1)", median(&mut times));
}

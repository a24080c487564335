use super::*;
use crate::device::SimDevice;
use crate::volume::{Cache, Directory, FatVolume, Format, Host, Shared};
use nandscope_sim::{Model, cards};

fn volume(mib: u64) -> (Shared<SimDevice>, FatVolume) {
    let card = Shared::new(SimDevice::new(&Model::parse(cards::text("cf-256mb").unwrap(), "x").unwrap(), 1).with_content());
    let how = Format { cluster: Some(1024), kind: None };
    let v = FatVolume::format(Box::new(card.clone()), 0..mib << 20, &how, Host::with(Cache::TABLES)).unwrap();
    (card, v)
}

fn plan() -> Plan {
    Plan { passes: 6, largest: 400_000, ..Plan::default() }
}

fn run(v: &mut dyn Volume, plan: &Plan) -> Aged {
    age(v, plan, &AtomicBool::new(false), &mut |_| {}).unwrap()
}

/// Every file with its place.
fn places(v: &mut dyn Volume) -> Vec<(String, Vec<crate::volume::Extent>)> {
    let mut all: Vec<_> = v.list(DIRECTORY).unwrap().into_iter().map(|e| format!("{DIRECTORY}/{}", e.name)).collect();
    all.sort();
    all.into_iter().map(|p| (p.clone(), v.extents(&p).unwrap())).collect()
}

#[test]
fn the_same_plan_makes_the_same_volume_and_fills_it() {
    let make = |seed| {
        let (_card, mut v) = volume(10);
        let aged = run(&mut v, &Plan { seed, ..plan() });
        assert!(aged.files_removed > 10 && verify(&mut v, &aged.state).unwrap() > 10);
        let s = v.space().unwrap();
        let used = 1.0 - s.free as f64 / s.size as f64;
        assert!((0.85..0.92).contains(&used), "{used}");
        places(&mut v)
    };
    let one = make(1);
    assert!(one.iter().filter(|f| f.1.len() > 3).count() * 2 > one.len(), "most files are in pieces");
    assert_eq!(one, make(1));
    assert_ne!(one, make(2));
}

#[test]
fn a_run_that_was_stopped_goes_on() {
    let (_card, mut v) = volume(10);
    run(&mut v, &plan());
    let names = |v: &mut dyn Volume| {
        let mut n: Vec<String> = v.list(DIRECTORY).unwrap().into_iter().map(|e| e.name).filter(|n| n.starts_with('F')).collect();
        n.sort();
        n
    };
    let end = names(&mut v);
    // Stopped after every few steps, and started anew each time.
    let (_card, mut v) = volume(10);
    let mut runs = 0;
    loop {
        let stop = AtomicBool::new(false);
        let mut steps = 0;
        let aged = age(&mut v, &plan(), &stop, &mut |_| {
            steps += 1;
            stop.store(steps > 70, Ordering::Relaxed);
        })
        .unwrap();
        runs += 1;
        if !aged.stopped {
            assert_eq!(verify(&mut v, &aged.state).unwrap(), end.len() as u64);
            break;
        }
        assert!(runs < 200);
    }
    assert!(runs > 1);
    assert_eq!(names(&mut v), end);
    // More passes are added; another plan is refused.
    let more = run(&mut v, &Plan { passes: 8, ..plan() });
    assert_eq!(more.state.passes, 8);
    let other = age(&mut v, &Plan { seed: 9, passes: 8, ..plan() }, &AtomicBool::new(false), &mut |_| {});
    assert!(other.is_err());
    verify(&mut v, &more.state).unwrap();
    let free = v.space().unwrap().free;
    assert!(remove(&mut v).unwrap() > 0 && v.space().unwrap().free > free);
    assert!(v.list("").unwrap().is_empty() && state(&mut v).unwrap().is_none());
}

#[test]
fn a_changed_file_is_noticed() {
    let (_card, mut v) = volume(10);
    let aged = run(&mut v, &plan());
    let name = v.list(DIRECTORY).unwrap().into_iter().filter(|e| e.name.starts_with('F')).max_by_key(|e| e.len).unwrap();
    let (f, _) = v.open(&format!("{DIRECTORY}/{}", name.name)).unwrap();
    let mut byte = [0];
    v.read(f, name.len / 2, &mut byte).unwrap();
    v.write(f, name.len / 2, &[!byte[0]]).unwrap();
    v.close(f).unwrap();
    let why = verify(&mut v, &aged.state).unwrap_err().to_string();
    assert!(why.contains(&name.name), "{why}");
}

#[test]
fn a_volume_already_full_and_wrong_plans_are_refused() {
    let (_card, mut v) = volume(10);
    let (f, _) = v.create("mine").unwrap();
    let most = v.space().unwrap().size / 100 * 95;
    v.preallocate(f, most).unwrap();
    v.close(f).unwrap();
    let full = age(&mut v, &plan(), &AtomicBool::new(false), &mut |_| {});
    assert!(matches!(full, Err(VolumeError::Full(_))));
    assert_eq!(v.list("").unwrap().len(), 1, "nothing was made");
    for bad in [
        Plan { fill: 1.5, ..plan() },
        Plan { fill: f64::NAN, ..plan() },
        Plan { smallest: 0, ..plan() },
        Plan { largest: 10, ..plan() },
        Plan { passes: 0, ..plan() },
        Plan { piece: 1 << 30, ..plan() },
        Plan { together: 0, ..plan() },
    ] {
        assert!(bad.check().is_err(), "{bad:?}");
    }
}

#[test]
fn a_directory_ages_and_forgets_as_well() {
    let dir = tempfile::tempdir().unwrap();
    let mut v = Directory::open(dir.path()).unwrap();
    // The temporary directory may lie on a large disk: a fill level just above what is in use.
    let s = v.space().unwrap();
    let fill = (s.size - s.free) as f64 / s.size as f64 + 2e6 / s.size as f64;
    if !(0.01..0.98).contains(&fill) {
        eprintln!("skipped: the disk of {} is too empty or too full", dir.path().display());
        return;
    }
    let plan = Plan { passes: 3, largest: 50_000, fill, ..Plan::default() };
    match age(&mut v, &plan, &AtomicBool::new(false), &mut |_| {}) {
        // Others write to that disk at the same time.
        Err(VolumeError::Full(_)) => return,
        other => drop(verify(&mut v, &other.unwrap().state).unwrap()),
    }
    remove(&mut v).unwrap();
    assert!(v.list("").unwrap().is_empty());
}

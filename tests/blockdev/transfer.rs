//! Reads, writes and discards land where they should, and nowhere else.

use super::Test;
use super::bed::*;
use nandscope::device::trace::{Format, Trace};
use nandscope::device::{Access, Device, DeviceError, Fill, Limits, Op};
use nandscope::host::facts::TargetKind;
use nandscope::units::Nanos;
use std::fs::{self, File};
use std::path::Path;

pub const IMAGES: &[Test] = &[
    ("image_on_disk_and_in_memory", image_on_disk_and_in_memory),
    ("image_of_odd_or_no_size", image_of_odd_or_no_size),
    ("fio_replays_our_trace", fio_replays_our_trace),
];

pub const LOOPS: &[Test] = &[
    ("loop_geometry", loop_geometry),
    ("loop_on_disk_and_in_memory", loop_on_disk_and_in_memory),
    ("partition_keeps_to_itself", partition_keeps_to_itself),
    ("medium_errors_are_errors", medium_errors_are_errors),
];

fn write(at: u64, len: u64, fill: Fill) -> Access {
    Access { op: Op::Write(fill), at, len }
}

/// Writes all over a region of a target and compares every byte of the file behind it, which begins `offset` before.
fn exercise(target: &str, file: &Path, offset: u64) {
    let before = fs::read(file).unwrap();
    let mut want = before.clone();
    let region = MIB..3 * MIB;
    let mut g = writable(target, &Limits { region: Some(region.clone()), budget: 3 * MIB, undo: None }).unwrap();
    let sector = g.geometry().sector;
    let fills = [Fill::Zeros, Fill::Ones, Fill::Random(5), Fill::Stamp(6)];
    let mut last = Nanos(0);
    for (i, (at, len)) in
        [(MIB, sector), (3 * MIB - sector, sector), (MIB + 64 * sector, 65536), (2 * MIB, MIB), (MIB + 8192, 8192)].into_iter().enumerate()
    {
        let fill = fills[i % 4];
        let t = g.access(write(at, len, fill)).unwrap();
        assert!(t.start >= last && t.took > Nanos(0));
        last = t.start + t.took;
        fill.render(at, &mut want[(offset + at) as usize..(offset + at + len) as usize]);
    }
    // One that would leave the region at either end, and one beyond the device.
    let size = g.geometry().size;
    for (at, len) in
        [(MIB - sector, 2 * sector), (3 * MIB - sector, 2 * sector), (0, sector), (size - sector, 2 * sector), (u64::MAX - 511, 512)]
    {
        assert!(matches!(g.access(write(at, len, Fill::Ones)), Err(DeviceError::OutOfBounds(_))), "{at} {len}");
        assert!(matches!(g.access(Access { op: Op::Discard, at, len }), Err(DeviceError::OutOfBounds(_))), "{at} {len}");
    }
    for (at, len) in [(MIB + 100, sector), (MIB, 100), (MIB, 0)] {
        assert!(matches!(g.access(write(at, len, Fill::Ones)), Err(DeviceError::OutOfBounds(_))), "{at} {len}");
    }
    let spent = 2 * sector + 65536 + MIB + 8192;
    assert_eq!(g.budget_left(), 3 * MIB - spent);
    assert!(matches!(g.access(write(MIB, 2 * MIB, Fill::Ones)), Err(DeviceError::Budget(_))));
    // Untimed bytes, at any alignment for reading.
    g.store(MIB + 512 * 1024, &[0x42; 4096]).unwrap();
    want[(offset + MIB) as usize + 512 * 1024..][..4096].fill(0x42);
    let mut back = vec![0; 5001];
    g.load(MIB + 512 * 1024 - 903, &mut back).unwrap();
    assert_eq!(back, want[(offset + MIB) as usize + 512 * 1024 - 903..][..5001]);
    // A discard is a hole in the file; nothing beside it changes.
    let hole = Access { op: Op::Discard, at: 2 * MIB + 65536, len: 131_072 };
    match g.access(hole) {
        Ok(_) => want[(offset + hole.at) as usize..][..hole.len as usize].fill(0),
        Err(DeviceError::Unsupported(_)) => println!("note: no discard on {target}"),
        Err(e) => panic!("{e}"),
    }
    g.access(Access { op: Op::Flush, at: 0, len: 0 }).unwrap();
    g.access(Access { op: Op::Read, at: size - sector, len: sector }).unwrap();
    g.batch(&[Access { op: Op::Read, at: 0, len: MIB }, Access { op: Op::Read, at: 3 * MIB, len: sector }], 4).unwrap();
    let c = g.counters();
    // Refused accesses never reached a counter.
    assert_eq!((c.writes, c.bytes_written, c.flushes, c.failures), (6, spent + 4096, 1, 0));
    assert_eq!((c.reads, c.bytes_read), (4, 5001 + 2 * sector + MIB));
    assert!(c.busy > Nanos(0));
    drop(g);
    let now = fs::read(file).unwrap();
    let wrong = now.iter().zip(&want).position(|(a, b)| a != b);
    assert_eq!(wrong, None, "{target}: first wrong byte");
    assert_eq!(now.len(), before.len());
}

fn image_on_disk_and_in_memory() {
    for memory in [false, true] {
        let d = dir(memory);
        let file = image(d.path(), 4 * MIB);
        let o = opened(file.to_str().unwrap()).unwrap();
        assert_eq!((o.id().kind, o.id().size, o.id().consent_id()), (TargetKind::Image, 4 * MIB, "4194304".into()));
        assert!(o.facts().caveats.iter().any(|c| c.contains("not a card")));
        drop(o);
        exercise(file.to_str().unwrap(), &file, 0);
    }
}

fn image_of_odd_or_no_size() {
    let d = dir(false);
    let file = d.path().join("odd.img");
    fs::write(&file, vec![7; 1_070_001]).unwrap();
    let o = opened(file.to_str().unwrap()).unwrap();
    let g = o.geometry().clone();
    assert_eq!(g.size, 1_070_001 / g.sector * g.sector);
    let mut r = o.read_only();
    r.access(Access { op: Op::Read, at: g.size - g.sector, len: g.sector }).unwrap();
    assert!(r.load(g.size - 10, &mut [0; 11]).is_err());
    fs::write(&file, b"").unwrap();
    for (target, hint) in
        [(file.to_str().unwrap(), "truncate"), ("/dev/null", "nandscope list"), ("/", "nandscope list"), ("/no/such", "nandscope list")]
    {
        match opened(target) {
            Err(e @ DeviceError::Open { .. }) => assert!(e.to_string().contains(hint), "{e}"),
            other => panic!("{target}: {:?}", other.map(|_| ())),
        }
    }
}

fn fio_replays_our_trace() {
    if !have("fio", "replaying a trace") {
        return;
    }
    let d = dir(false);
    let file = image(d.path(), 4 * MIB);
    let log = d.path().join("trace.log");
    let g = writable(file.to_str().unwrap(), &Limits { budget: MIB, ..Limits::default() }).unwrap();
    let mut t = Trace::begin(g, File::create(&log).unwrap(), Format::Fio, file.to_str().unwrap()).unwrap();
    t.access(Access { op: Op::Read, at: 8192, len: 4096 }).unwrap();
    t.access(write(65536, 16384, Fill::Ones)).unwrap();
    t.access(Access { op: Op::Flush, at: 0, len: 0 }).unwrap();
    t.access(Access { op: Op::Read, at: 0, len: 512 }).unwrap();
    t.finish().unwrap();
    let option = format!("--read_iolog={}", log.display());
    let out = sh("fio", &["--name=replay", "--ioengine=psync", "--output-format=json", &option]);
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    let io = |dir: &str, what: &str| json["jobs"][0][dir][what].as_u64().unwrap();
    assert_eq!((io("read", "total_ios"), io("read", "io_bytes")), (2, 4608));
    assert_eq!((io("write", "total_ios"), io("write", "io_bytes")), (1, 16384));
}

fn loop_geometry() {
    let d = dir(false);
    let file = image(d.path(), 4 * MIB);
    for (options, sector) in [(&[][..], 512), (&["-b", "4096"][..], 4096)] {
        let l = Loop::over(&file, options);
        let o = opened(&l.0).unwrap();
        let g = o.geometry();
        assert_eq!((g.size, g.sector, g.offset), (4 * MIB, sector, 0));
        let f = o.facts();
        assert_eq!((f.kind, f.bus.as_deref(), f.direct, f.disk.as_deref()), (TargetKind::Disk, Some("loop"), true, Some(l.name())));
        let q = f.queue.as_ref().unwrap();
        assert_eq!(q.logical_block_size, Some(sector));
        assert_eq!(g.max_request, q.max_sectors_kb.map(|k| k * 1024));
        assert_eq!(g.write_cache, q.write_cache.as_deref() == Some("write back"));
        assert!(q.scheduler.as_ref().is_some_and(|s| !s.contains(['[', ' '])));
        // Facts go into the report and come back the same.
        let json = serde_json::to_string(f).unwrap();
        assert_eq!(&serde_json::from_str::<nandscope::host::facts::HostFacts>(&json).unwrap(), f);
    }
}

fn loop_on_disk_and_in_memory() {
    for (memory, options) in [(false, &[][..]), (true, &[][..]), (false, &["-b", "4096"][..])] {
        let d = dir(memory);
        let file = image(d.path(), 4 * MIB);
        let l = Loop::over(&file, options);
        exercise(&l.0, &file, 0);
    }
}

fn partition_keeps_to_itself() {
    let d = dir(false);
    let file = image(d.path(), 12 * MIB);
    // Begins off every power of two above 512 B.
    let l = Loop::partitioned(&file, &[(64, 1024), (2049, 8192)]);
    let part = format!("{}p2", l.0);
    let o = opened(&part).unwrap();
    assert_eq!((o.geometry().size, o.geometry().offset, o.id().offset), (4 * MIB, 2049 * 512, 2049 * 512));
    assert_eq!((o.facts().kind, o.facts().partition), (TargetKind::Partition, Some(2)));
    assert!(o.facts().queue.as_ref().unwrap().max_sectors_kb.is_some());
    drop(o);
    exercise(&part, &file, 2049 * 512);
}

fn medium_errors_are_errors() {
    let d = dir(false);
    let file = image(d.path(), 4 * MIB);
    let l = Loop::over(&file, &[]);
    let mut g = opened(&l.0).unwrap().read_only();
    // The file shrinks under the loop device: what lay behind its new end can no longer be read.
    File::options().write(true).open(&file).unwrap().set_len(MIB).unwrap();
    g.access(Access { op: Op::Read, at: 0, len: 4096 }).unwrap();
    let read = Access { op: Op::Read, at: 2 * MIB, len: 4096 };
    match g.access(read) {
        Err(DeviceError::Io { op: "read", at, len: 4096, .. }) => assert_eq!(at, 2 * MIB),
        other => panic!("{other:?}"),
    }
    assert!(matches!(g.load(2 * MIB, &mut [0; 100]), Err(DeviceError::Io { .. })));
    // One that is good to the middle is an error, too, not a shorter access.
    assert!(matches!(g.access(Access { op: Op::Read, at: MIB - 4096, len: 8192 }), Err(DeviceError::Io { .. })));
    assert_eq!(g.counters().failures, 3);
}

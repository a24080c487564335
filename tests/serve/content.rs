//! What is written comes back: file systems, fio's verification, and the requests as they were sent.

use crate::bed::*;
use nandscope::device::{self, Access, Consent, Device, Fill, Limits, Op, OpenOptions, Target, trace::Format};
use nandscope::serve::TraceFile;
use nandscope::serve::fuse::{Options, Served};

#[test]
fn requests_arrive_as_they_were_sent() {
    let _alone = alone();
    if !can("the requests a card sees", true, &[]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("seen.csv");
    let trace_file = TraceFile { path: path.clone(), format: Format::Columns };
    let options = Options { trace: Some(trace_file), write_cache: Some(true), realtime: false, ..Options::default() };
    let served = Served::start(&Target::card("null", None).unwrap().model, 1, &options).unwrap();
    let target = served.device().to_str().unwrap().to_string();
    let opened = device::open(&target, &OpenOptions { flush_writes: Some(false), ..OpenOptions::default() }).unwrap();
    let consent = Consent::check(opened.id(), Some(&opened.id().consent_id())).unwrap();
    let mut guard = opened.writable(&consent, &Limits { budget: 64 << 20, ..Limits::default() }).unwrap();
    let mut sent = vec![];
    for len in [512, 1024, 1536, 4096, 4608, 16384, 49152, 65536, 131_072, 524_288] {
        for at in [0, 512, 4096, 3 << 20, (4 << 20) - 512, (12 << 20) + 1536] {
            for op in [Op::Read, Op::Write(Fill::Random(7)), Op::Write(Fill::Zeros), Op::Write(Fill::Ones), Op::Discard] {
                sent.push(Access { op, at, len });
            }
        }
        sent.push(Access { op: Op::Flush, at: 0, len: 0 });
    }
    for &a in &sent {
        guard.access(a).unwrap();
    }
    drop(guard);
    let stats = served.stats();
    assert_eq!(served.stop().unwrap().left, Vec::<String>::new());
    assert_eq!(stats.done.flushes, 10 + 1, "ten of ours, one when the device was attached");
    let seen = trace(&path);
    // Opening looks at what is there, and before it the kernel does.
    let first = seen.iter().position(|t| t.op != "flush" && t.len == sent[0].len && t.at == sent[0].at).unwrap();
    let seen: Vec<(String, u64, u64)> = seen[first..].iter().map(|t| (t.op.clone(), t.at, t.len)).collect();
    let word = |op: Op| match op {
        Op::Write(Fill::Random(_)) => "write:random:0".to_string(),
        op => device::trace::word(op),
    };
    let sent: Vec<(String, u64, u64)> = sent.iter().map(|a| (word(a.op), a.at, a.len)).collect();
    assert_eq!(seen, sent);
}

/// The largest request that is declared reaches the card whole; a larger one in pieces of it, in order (C23).
#[test]
fn the_largest_request_is_what_is_declared() {
    let _alone = alone();
    if !can("large requests", true, &[]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("seen.csv");
    let trace_file = TraceFile { path: path.clone(), format: Format::Columns };
    let options = Options { trace: Some(trace_file), realtime: false, ..Options::default() };
    let served = Served::start(&Target::card("null", None).unwrap().model, 1, &options).unwrap();
    let opened = device::open(served.device().to_str().unwrap(), &OpenOptions::default()).unwrap();
    let consent = Consent::check(opened.id(), Some(&opened.id().consent_id())).unwrap();
    let mut guard = opened.writable(&consent, &Limits { budget: 64 << 20, ..Limits::default() }).unwrap();
    let most = guard.geometry().max_request.unwrap();
    assert!(most >= 512 << 10, "the kernel takes 128 pages at least: {most}");
    for op in [Op::Read, Op::Write(Fill::Random(3)), Op::Write(Fill::Zeros)] {
        guard.access(Access { op, at: 16 << 20, len: most }).unwrap();
        guard.access(Access { op, at: 32 << 20, len: 4 * most }).unwrap();
    }
    drop(guard);
    drop(served.stop().unwrap());
    let all: Vec<Traced> = trace(&path).into_iter().filter(|t| t.at >= 16 << 20 && t.op != "flush").collect();
    for seen in [&all[..5], &all[5..10], &all[10..]] {
        let places: Vec<(u64, u64)> = seen.iter().map(|t| (t.at, t.len)).collect();
        let wanted: Vec<(u64, u64)> = [(16 << 20, most)].into_iter().chain((0..4).map(|i| ((32 << 20) + i * most, most))).collect();
        assert_eq!(places, wanted, "the kernel cut other pieces than it declares: {all:?}");
    }
}

#[test]
fn ext4_lives_on_a_card() {
    let _alone = alone();
    if !can("ext4", true, &["mkfs.ext4", "fsck.ext4", "mount", "umount"]) {
        return;
    }
    let server = Server::start(&["null"]);
    let device = server.place.as_str();
    run("mkfs.ext4", &["-q", "-F", device, "256M"]);
    if !kernel_has("ext4") {
        crate::skip::skipped("mounting ext4", "a kernel without it");
        return;
    }
    let data = noise(3, 5 << 20);
    let mounted = Mounted::new(device, "ext4");
    std::fs::write(mounted.at.join("data"), &data).unwrap();
    std::fs::create_dir(mounted.at.join("dir")).unwrap();
    mounted.unmount();
    run("blockdev", &["--flushbufs", device]);
    run("fsck.ext4", &["-f", "-n", device]);
    let mounted = Mounted::new(device, "ext4");
    assert!(std::fs::read(mounted.at.join("data")).unwrap() == data, "the file came back changed");
    mounted.unmount();
    server.stop();
}

#[test]
fn fat_lives_on_a_card() {
    let _alone = alone();
    if !can("FAT", true, &["mkfs.fat", "fsck.fat"]) {
        return;
    }
    let server = Server::start(&["null"]);
    run("mkfs.fat", &["-I", "-F", "32", "-n", "SERVED", &server.place]);
    run("blockdev", &["--flushbufs", &server.place]);
    assert!(run("fsck.fat", &["-n", "-v", &server.place]).contains("FATs"));
    server.stop();
}

#[test]
fn fio_reads_back_what_it_wrote_and_replays_the_trace() {
    let _alone = alone();
    if !can("fio", true, &["fio"]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("seen.iolog");
    let server = Server::start(&["null", "--trace", log.to_str().unwrap()]);
    let file = format!("--filename={}", server.place);
    for engine in ["psync", "libaio"] {
        let engine = format!("--ioengine={engine}");
        let mut args = vec!["--name=v", &file, &engine, "--direct=1", "--rw=randwrite", "--bsrange=512-256k", "--blockalign=512"];
        args.extend(["--size=24m", "--iodepth=8", "--verify=crc32c", "--verify_fatal=1", "--do_verify=1", "--verify_state_save=0"]);
        run("fio", &args);
    }
    server.stop();
    let text = std::fs::read_to_string(&log).unwrap();
    assert!(text.starts_with("fio version 3 iolog\n") && text.trim_end().ends_with(" close"), "{}", &text[..200]);
    assert!(text.lines().filter(|l| l.contains(" write ")).count() > 100);
    let server = Server::start(&["null"]);
    let (redirect, from) = (format!("--replay_redirect={}", server.place), format!("--read_iolog={}", log.display()));
    run("fio", &["--name=r", "--direct=1", "--ioengine=psync", "--replay_no_stall=1", &redirect, &from]);
    server.stop();
}

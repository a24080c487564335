//! Traces: every format by a sample of its own, and what is wrong is counted and shown.

use nandscope_sim::run::{Fit, How, Pace, Pattern, run};
use nandscope_sim::trace::{Format, Io, Trace, TraceError, detect, parse};
use nandscope_sim::{Card, Fault, Model, Op, cards};

fn io(time: u64, op: Op, at: u64, len: u64, took: u64) -> Io {
    Io { time, op, at, len, took }
}

fn read(text: &str, format: Format) -> Trace {
    assert_eq!(detect(text.as_bytes()), Some(format), "{text}");
    parse(text.as_bytes(), None).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn fio_iologs() {
    let t = read(
        "fio version 3 iolog\n0 /tmp/f add\n1 /tmp/f open\n12 /tmp/f write 4096 8192\n20 /tmp/f read 0 512\n31 /tmp/f trim 0 4096\n40 /tmp/f datasync\n50 /tmp/f close\n",
        Format::FioV3,
    );
    let expected = [
        io(0, Op::Write, 4096, 8192, 0),
        io(8000, Op::Read, 0, 512, 0),
        io(19_000, Op::Discard, 0, 4096, 0),
        io(28_000, Op::Flush, 0, 0, 0),
    ];
    assert_eq!((&t.ios[..], t.bad, t.timed), (&expected[..], 0, true));
    let t = read("fio version 2 iolog\nf add\nf open\nf write 0 4096\nf wait 250 0\nf read 0 4096\nf close\n", Format::FioV2);
    assert_eq!((t.ios[1].time, t.timed), (250_000, false));
}

#[test]
fn blkparse_text() {
    let t = read(
        "  8,0    1        1     0.000000000   697  Q  WS 223490 + 8 [kjournald]\n  8,0    1        2     0.000001829   697  D  WS 223490 + 8 [kjournald]\n\
           8,0    3        3     0.000901829     0  C  WS 223490 + 8 [0]\n  8,0    1        4     0.002000000   697  D  FN [kworker/1:1]\n\
           8,16   1        5     0.003000000   697  D   R 64 + 16 [x y]\n\
         CPU1 (8,0):\n Reads Queued:           0,        0KiB\n",
        Format::Blkparse,
    );
    assert_eq!(t.ios, [io(0, Op::Write, 223_490 * 512, 4096, 900_000), io(1_998_171, Op::Flush, 0, 0, 0)]);
    assert_eq!((t.others, t.bad), (1, 0), "the other device is left out and counted");
    let queued = read("8,0 1 1 0.5 697 Q R 8 + 8 [a]\n8,0 1 2 0.7 697 Q R 16 + 8 [a]\n", Format::Blkparse);
    assert_eq!(queued.ios, [io(0, Op::Read, 4096, 4096, 0), io(200_000_000, Op::Read, 8192, 4096, 0)]);
}

#[test]
fn ftrace_events() {
    let t = read(
        "# tracer: nop\n#\n     fio-77    [001] .....  98.000100: block_rq_issue: 7,0 WS 4096 () 7904 + 8 be,0,6 [fio]\n\
         <...>-9 [000] d.h1. 98.000350: block_rq_complete: 7,0 WS () 7904 + 8 be,0,6 [0]\n\
              fio-77    [001] .....  98.100000: block_rq_issue: 7,0 R 512 () 0 + 1 [fio]\n\
              fio-77    [001] .....  98.100000: sched_switch: something else\n",
        Format::Ftrace,
    );
    assert_eq!(t.ios, [io(0, Op::Write, 7904 * 512, 4096, 250_000), io(99_900_000, Op::Read, 0, 512, 0)]);
}

#[test]
fn csv_and_ascii() {
    let t = read(
        "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime\n128166372003061629,usr,0,Read,7014609920,24576,41286\n128166372003061729,usr,0,Write,0,512,10\n",
        Format::Msr,
    );
    assert_eq!(t.ios, [io(0, Op::Read, 7_014_609_920, 24_576, 4_128_600), io(10_000, Op::Write, 0, 512, 1000)]);
    let t = read("48513000 0 8 16 0\r\n\r\n48514000 0 0 1 1\r\n", Format::Mqsim);
    assert_eq!(t.ios, [io(0, Op::Write, 4096, 8192, 0), io(1000, Op::Read, 0, 512, 0)]);
    let t = read("0.5 0 8 16 0\n1.25 0 0 1 1", Format::Mqsim);
    assert_eq!(t.ios[1].time, 750_000, "DiskSim counts ms");
}

#[test]
fn blktrace_records() {
    let record = |big: bool, time: u64, sector: u64, bytes: u32, action: u32, pdu: u16| {
        let mut r = Vec::new();
        let mut put = |n: u64, size: usize| {
            let all = n.to_be_bytes();
            let mut part = all[8 - size..].to_vec();
            if !big {
                part.reverse();
            }
            r.extend(part);
        };
        for (n, size) in [
            (0x6561_7407, 4),
            (1, 4),
            (time, 8),
            (sector, 8),
            (u64::from(bytes), 4),
            (u64::from(action), 4),
            (1, 4),
            (0x0080_0000, 4),
            (0, 4),
            (0, 2),
        ] {
            put(n, size);
        }
        put(u64::from(pdu), 2);
        r.extend(vec![0xee; pdu as usize]);
        r
    };
    let (write, issue, complete, queue) = (1 << 17 | 1 << 24, 7, 8, 1);
    for big in [false, true] {
        let mut bytes = record(big, 5, 0, 0, 1 << 26 | 2, 12);
        bytes.extend(record(big, 90, 64, 4096, write | queue, 0));
        bytes.extend(record(big, 1000, 64, 4096, write | complete, 0));
        bytes.extend(record(big, 100, 64, 4096, write | issue, 7));
        bytes.extend(record(big, 50, 0, 512, 1 << 16 | issue, 0));
        let t = parse(&bytes, None).unwrap();
        assert_eq!(t.format, Format::Blktrace);
        assert_eq!(t.ios, [io(0, Op::Read, 0, 512, 0), io(50, Op::Write, 32_768, 4096, 900)]);
        bytes.truncate(bytes.len() - 9);
        let t = parse(&bytes, None).unwrap();
        assert_eq!((t.ios.len(), t.bad, t.shown[0].line), (1, 1, 5));
    }
}

#[test]
fn what_is_wrong_is_counted_and_shown() {
    let t = read(
        "10 0 8 16 0\nrubbish\n20 0 8 16 2\n30 0 x 16 0\n40 0 8 0 0\n50 0 8 16 1 9\n60 0 8 16 1\n99999999999999999999999 0 1 1 1\n",
        Format::Mqsim,
    );
    assert_eq!((t.ios.len(), t.bad), (2, 6));
    let lines: Vec<(u64, &str)> = t.shown.iter().map(|b| (b.line, b.reason)).collect();
    assert_eq!(lines[0], (2, "the time is not a number"));
    assert_eq!(lines[1], (3, "the flag is neither 0 nor 1"));
    assert_eq!(lines[4], (6, "more than five columns"));
    assert_eq!(parse(b"hello\nworld\n", None), Err(TraceError::Unknown));
    assert_eq!(parse(b"", None), Err(TraceError::Unknown));
    let none = parse(b"a b c\n", Some(Format::Mqsim)).unwrap_err();
    assert!(matches!(none, TraceError::Empty { bad: 1, .. }));
    assert_eq!(none.to_string(), "no request in it; 1 lines could not be read, the first is line 1: the time is not a number: 'a b c'");
    // No input may do worse than that.
    let mut rng = nandscope_sim::Rng::new(1, 1);
    let formats = [Format::FioV2, Format::FioV3, Format::Blkparse, Format::Blktrace, Format::Ftrace, Format::Msr, Format::Mqsim];
    let alphabet = b"0123456789., +:[]()RWDFQC-\n\n\tread write block_rq_issue: \xff\x07\x74\x61\x65";
    for k in 0..20_000 {
        let n = rng.below(120);
        let bytes: Vec<u8> = (0..n).map(|_| alphabet[rng.below(alphabet.len() as u64) as usize]).collect();
        let _ = parse(&bytes, Some(formats[k % formats.len()]));
        let _ = parse(&bytes, None);
    }
}

#[test]
fn flushes_and_lengths() {
    let t = read("8,0 1 1 0.5 697 D FWS [jbd2]\n8,0 1 2 0.6 697 D FWFS 8 + 8 [jbd2]\n8,0 1 3 0.7 697 D R 64 [x]\n", Format::Blkparse);
    assert_eq!(t.ios, [io(0, Op::Flush, 0, 0, 0), io(100_000_000, Op::Write, 4096, 4096, 0)], "an empty write that only flushes");
    assert_eq!((t.bad, t.shown[0].line, t.shown[0].reason), (1, 3, "no length"));
    let t = read("x-1 [0] 1.0: block_rq_issue: 7,0 FF 0 () 0 + 0 [x]\nx-1 [0] 2.0: block_rq_issue: 7,0 W 0 () 8 + 0 [x]\n", Format::Ftrace);
    assert_eq!((t.ios.len(), t.ios[0].op, t.bad), (1, Op::Flush, 1));
}

#[test]
fn traces_are_fitted_to_a_region() {
    let mib = 1u64 << 20;
    let ios = [io(0, Op::Write, 0, 4096, 0), io(1, Op::Write, 600 * mib, 4096, 0), io(2, Op::Write, 1200 * mib - 4096, 4096, 0)];
    let places = |fit, region: std::ops::Range<u64>| {
        let mut c = card().with_content();
        let o = run(&mut c, 0, ios, &How { fit, region: Some(region.clone()), ..How::default() });
        o.map(|o| (o.folded, o.bytes_written))
    };
    assert!(places(Fit::Reject, 64 * mib..128 * mib).is_err());
    assert_eq!(places(Fit::Fold, 64 * mib..128 * mib), Ok((2, 12_288)));
    assert_eq!(places(Fit::Scale(1200 * mib), 64 * mib..128 * mib), Ok((0, 12_288)));
    // Nothing outside the region is ever touched: what lies there fails.
    let text = cards::text("flashbench-readme").unwrap();
    let mut model = Model::parse(text, "x").unwrap();
    for (at, len) in [(0, 64 * mib), (128 * mib, 0)] {
        let mut rule = nandscope_sim::model::FaultRule::default();
        (rule.on, rule.at, rule.len) = (nandscope_sim::model::On::Any, at, len);
        model.fault.push(rule);
    }
    let mut rng = nandscope_sim::Rng::new(3, 3);
    for fit in [Fit::Fold, Fit::Scale(1 << 40)] {
        let ios: Vec<Io> = (0..500).map(|k| io(k, Op::Write, rng.next() >> 24, 512 * (1 + rng.below(4000)), 0)).collect();
        let how = How { fit, region: Some(64 * mib..128 * mib), ..How::default() };
        let o = run(&mut Card::new(&model, 1), 0, ios, &how).unwrap_or_else(|e| panic!("{fit:?}: {e}"));
        assert_eq!(o.served, 500);
    }
}

#[test]
fn a_queue_serves_all_and_hides_waiting() {
    let model = Model::parse(cards::text("modern-a2-128gb").unwrap(), "x").unwrap();
    let p = Pattern::parse("random-read-4k").unwrap();
    let took = |depth| {
        let mut c = Card::new(&model, 1);
        let o = run(&mut c, 0, p.ios(1 << 34, 3000, 1), &How { depth, ..How::default() }).unwrap();
        assert_eq!((o.served, c.counters().reads, o.reads.count), (3000, 3000, 3000));
        assert_eq!(o.timeline.iter().map(|s| s.requests).sum::<u64>(), 3000);
        o.took
    };
    let (one, four, all) = (took(1), took(4), took(32));
    assert!(four < one && all <= four, "{one} {four} {all}");
}

fn card() -> Card {
    Card::new(&Model::parse(cards::text("flashbench-readme").unwrap(), "x").unwrap(), 1)
}

#[test]
fn runs_serve_what_is_submitted() {
    let ios = [io(0, Op::Write, 0, 4096, 0), io(5, Op::Read, 700, 10, 0), io(7, Op::Flush, 0, 0, 0), io(9, Op::Read, 1 << 40, 4096, 0)];
    let mut c = card();
    let gone = run(&mut c, 0, ios, &How::default()).unwrap_err();
    assert!(gone.number == 4 && matches!(gone.fault, Fault::OutOfRange { .. }), "{gone}");
    assert_eq!(c.counters().reads + c.counters().writes + c.counters().flushes, 3, "all before it were served");
    let mut c = card();
    let o = run(&mut c, 0, ios, &How { pace: Pace::AsRecorded, fit: Fit::Fold, ..How::default() }).unwrap();
    assert_eq!((o.served, o.folded, o.reads.count, o.writes.count, o.others.count), (4, 1, 2, 1, 1));
    assert!(o.reads.most >= o.writes.most - 9, "they waited for the write");
    assert_eq!(o.timeline.iter().map(|s| s.requests).sum::<u64>(), 4);
    assert!(o.timeline.len() <= 256);
}

#[test]
fn patterns() {
    let p = |t: &str| Pattern::parse(t).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(p("random-4k"), Pattern { random: true, reads: 0, size: 4096 });
    assert_eq!(p("sequential"), Pattern { random: false, reads: 0, size: 128 << 10 });
    assert_eq!(p("sequential-read-1m"), Pattern { random: false, reads: 100, size: 1 << 20 });
    assert_eq!(p("mixed-512"), Pattern { random: true, reads: 50, size: 512 });
    for bad in ["", "4k", "random-4x", "random-100", "fast"] {
        assert!(Pattern::parse(bad).is_err(), "{bad}");
    }
    let mut c = card();
    let all = p("random-4k").ios(c.capacity(), 500, 3);
    let o = run(&mut c, 0, all, &How::default()).unwrap();
    assert!(o.served == 500 && o.write_amplification > 50.0 && o.iops() < 20.0, "{o:?}");
}

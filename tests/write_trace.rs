//! The experiment `write-trace` and busy traces on simulated cards, against what the models say (C10 to C18).

#[path = "boards/run.rs"]
mod boards;
mod common;
#[path = "common/program.rs"]
mod program;
#[path = "common/skip.rs"]
mod skip;

use nandscope::device::{Machine, SimDevice};
use nandscope::finding::{Finding, Quantity};
use nandscope::infer::pipeline;
use nandscope::infer::trace::infer_trace;
use nandscope::samples::busy::Trace;
use nandscope::samples::{Ended, firmware};
use nandscope::workload::library::Library;
use nandscope::workload::records::{Plan, run as bench};
use nandscope::workload::traced::Traced;
use nandscope_sim::model::FtlKind;
use nandscope_sim::{Model, cards};
use program::program;
use std::sync::atomic::AtomicBool;

fn findings(model: &Model, seed: u64) -> Vec<Finding> {
    let run = common::run_alone("write-trace", model, seed, 1800);
    assert!(!matches!(run.ended, Ended::Failed(_)), "{}: {:?}", model.name, run.faults);
    pipeline::of_run(&run)
}

fn value(all: &[Finding], q: Quantity) -> Option<f64> {
    all.iter().find(|f| f.quantity == q).and_then(Finding::number)
}

/// What is decided must be what the model does: a rewrite policy only where there is none of the translation layers with a log,
/// the buffer's size, a fast start.
fn judge(model: &Model, all: &[Finding], wrong: &mut Vec<String>) {
    let through = model.ftl.kind == FtlKind::WriteThrough;
    let policy = if !through {
        0.0
    } else if model.ftl.through.buffer == 0 {
        1.0
    } else {
        2.0
    };
    for f in all.iter().filter(|f| f.value.is_some()) {
        let v = f.number().unwrap_or(0.0);
        let right = match f.quantity {
            Quantity::RewritePolicy => v == policy,
            Quantity::WriteBuffer => {
                v == model.ftl.through.buffer as f64 || v == model.nand.write_unit as f64 || v == model.ftl.page.unit as f64
            }
            Quantity::RewriteMs | Quantity::ChipClass => through,
            Quantity::FatZone => v == model.truth().fat_zone as f64,
            _ => false,
        };
        if !right {
            wrong.push(format!("{}: {:?} {v} at {:.2}: {:?}", model.name, f.quantity, f.confidence, f.evidence));
        }
    }
}

#[test]
fn chans_cards_are_told_apart() {
    let of = |name: &str| findings(&Model::parse(cards::text(name).unwrap(), name).unwrap(), 3);
    let small = of("chan-sdc-128mb");
    assert_eq!((value(&small, Quantity::RewritePolicy), value(&small, Quantity::ChipClass)), (Some(1.0), Some(1.0)), "{small:#?}");
    let large = of("chan-sdc-512mb");
    assert_eq!((value(&large, Quantity::RewritePolicy), value(&large, Quantity::WriteBuffer)), (Some(2.0), Some(4096.0)), "{large:#?}");
    assert_eq!((value(&large, Quantity::ChipClass), value(&large, Quantity::FatZone)), (Some(2.0), Some(524_288.0)), "{large:#?}");
    let ratio = value(&large, Quantity::RewriteMs).unwrap() / value(&small, Quantity::RewriteMs).unwrap();
    assert!((7.0..9.0).contains(&ratio), "C15: 8 times longer, not {ratio}");
}

/// C2: what the size of a card says of its chip stands beside what its times say.
#[test]
fn the_size_of_a_card_is_held_against_its_chip() {
    for (name, capacity, said) in [
        ("chan-sdc-128mb", "122 MiB", "either kind"),
        ("chan-sdc-128mb", "61 MiB", "either kind"),
        ("chan-sdc-128mb", "488 MiB", "unusual: cards above 128 MB"),
        ("chan-sdc-512mb", "488 MiB", "cards above 128 MB have chips of large blocks as a rule"),
        ("chan-sdc-512mb", "244 MiB", "cards above 128 MB have chips of large blocks as a rule"),
    ] {
        let text = cards::text(name).unwrap();
        let line = text.lines().find(|l| l.starts_with("capacity")).unwrap();
        let model = Model::parse(&text.replace(line, &format!("capacity = \"{capacity}\"")), name).unwrap();
        let all = findings(&model, 7);
        let chip = all.iter().find(|f| f.quantity == Quantity::ChipClass).unwrap();
        assert!(chip.evidence.iter().any(|e| e.contains(said)), "{name}, {capacity}: {chip:?}");
        assert_eq!(chip.evidence.iter().any(|e| e.starts_with("unusual")), said.starts_with("unusual"), "{chip:?}");
    }
}

/// C17: traces of cards that rewrite at other moments are not called slower or faster by what single calls wait; of the same policy they are.
#[test]
fn traces_of_two_policies_are_not_compared_call_by_call() {
    let dir = tempfile::tempdir().unwrap();
    let trace = |name: &str, line: &dyn Fn(u64) -> String| {
        let path = dir.path().join(name);
        let lines: Vec<String> = (0..160).map(|i| format!("{}: {}", 4096 + 4 * i, line(i))).collect();
        std::fs::write(&path, format!("# nandscope busy trace 1\n# poll_ns 4900\n{}\n", lines.join("\n"))).unwrap();
        path
    };
    for (stop, full) in [(3750u64, 28_900u64), (2900, 60_000)] {
        let end = trace("end", &|i| format!("3 3 3 3 s{}", stop + i % 9));
        let slower = trace("slower", &|i| format!("3 3 3 3 s{}", 2 * stop + i % 9));
        let buffer = trace("buffer", &|i| if i % 2 == 0 { "3 3 3 3 s90".into() } else { format!("3 3 3 {} s90", full + i % 9) });
        let compared = |a: &std::path::Path, b: &std::path::Path| {
            let out = program().arg("compare").args([a, b]).output().unwrap();
            let text = String::from_utf8(out.stdout).unwrap();
            let busy: Vec<String> = text.lines().filter(|l| l.starts_with("  busy ")).map(String::from).collect();
            assert!(!busy.is_empty(), "{text}{}", String::from_utf8_lossy(&out.stderr));
            (text, busy)
        };
        let (text, busy) = compared(&end, &buffer);
        assert!(text.contains("because the policies differ"), "{text}");
        assert!(busy.iter().all(|l| l.contains("not compared") && !l.contains("slower") && !l.contains("faster")), "{text}");
        let (text, busy) = compared(&end, &slower);
        assert!(busy.iter().any(|l| l.contains("slower")) && busy.iter().all(|l| !l.contains("not compared")), "{text}");
    }
}

#[test]
fn no_card_is_told_what_it_is_not() {
    let mut wrong = vec![];
    for (name, text) in cards::ALL {
        let model = Model::parse(text, name).unwrap();
        judge(&model, &findings(&model, 5), &mut wrong);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn random_cards_are_not_told_what_they_are_not() {
    let (mut wrong, mut n) = (vec![], 0);
    for seed in 0..40 {
        let model = nandscope_sim::random::card(seed);
        let all = findings(&model, seed);
        n += all.iter().filter(|f| f.value.is_some()).count();
        judge(&model, &all, &mut wrong);
    }
    assert!(wrong.len() * 20 <= n, "{} of {n} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// C10 to C14: the trace of a simulated card, printed, read again, and judged.
#[test]
fn a_printed_busy_trace_tells_the_same() {
    for (name, policy, buffer) in [("chan-sdc-128mb", 1.0, None), ("chan-sdc-512mb", 2.0, Some(4096.0))] {
        let model = Model::parse(cards::text(name).unwrap(), name).unwrap();
        let mut device = SimDevice::new(&model, 1);
        let machine = Machine::of(&model).unwrap();
        let mut traced = Traced::new(&mut device, machine.poll);
        let mut file = Library::new(&mut traced, machine);
        let plan = Plan { file: 200 * 2048, read: false, ..Plan::new(2048) };
        bench(&mut file, &plan, &AtomicBool::new(false), &mut |_, _, _| {}).unwrap();
        let trace = Trace { poll_ns: Some(machine.poll.0), transactions: traced.transactions, damaged: 0 };
        let read = Trace::parse(&trace.print()).unwrap();
        assert_eq!(read, trace);
        let all = infer_trace(&read);
        assert_eq!((value(&all, Quantity::RewritePolicy), value(&all, Quantity::WriteBuffer)), (Some(policy), buffer), "{all:#?}");
    }
}

/// The C example of the line protocol, compiled and read.
#[test]
fn the_firmware_example_is_understood() {
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("example");
    let cc = std::process::Command::new("cc")
        .args(["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-o"])
        .arg(&program)
        .args(["firmware/example.c", "firmware/nandscope.c"])
        .status();
    if cc.is_err() {
        skip::no_tool("the C example", "a C compiler");
        return;
    }
    assert!(cc.is_ok_and(|s| s.success()), "the example compiles without a warning");
    let out = std::process::Command::new(&program).output().unwrap().stdout;
    assert!(firmware::is_log(&out));
    let log = firmware::parse(&String::from_utf8(out).unwrap());
    assert_eq!((log.host.as_str(), log.poll_ns, log.passes[0].records), ("atmega64-9mhz-spi", Some(4900), 64));
    assert!(log.notes.iter().all(|n| !n.contains("damaged") && !n.contains("missing") && !n.contains("cut off")), "{:?}", log.notes);
    let all = infer_trace(&log.busy[0].1);
    assert_eq!((value(&all, Quantity::WriteBuffer), value(&all, Quantity::ChipClass)), (Some(4096.0), Some(2.0)), "{all:#?}");
}

/// A firmware may try both ways by turns, a few transactions each, with blocks of the FAT between: all of them count.
#[test]
fn ways_that_alternate_are_compared() {
    let line = |body: String| format!("ns:{body}*{:02x}\n", body.bytes().fold(0, |x, b| x ^ b));
    let mut text = line("1 host=uno poll_ns=4000 clock_us=4".into());
    for round in 0..10 {
        for (way, polls) in [("none", 30), ("acmd23", 20)] {
            text += &line(format!("m {way}"));
            text += &line("b 128 400".into());
            for i in 0..5 {
                text += &line(format!("b {} {polls} {polls} {polls} {} s300", 8192 + 4 * (round * 5 + i), polls + i));
            }
        }
    }
    let log = firmware::parse(&text);
    assert_eq!(log.busy.iter().map(|(way, t)| (way.as_str(), t.transactions.len())).collect::<Vec<_>>(), [("none", 60), ("acmd23", 60)]);
    let all = nandscope::infer::micro::findings(&log);
    let gain = all.get(Quantity::PreEraseGain).unwrap();
    assert!((gain.number().unwrap() - 422.0 / 382.0).abs() < 0.01 && gain.evidence[0].starts_with("4 blocks: 422 polls"), "{gain:?}");
}

fn lines(n: u64, line: impl Fn(u64) -> String) -> Vec<String> {
    (0..n).map(line).collect()
}

fn judged(poll_ns: Option<u64>, lines: &[String]) -> Vec<Finding> {
    let head = poll_ns.map_or(String::new(), |n| format!("# poll_ns {n}\n"));
    infer_trace(&Trace::parse(&format!("{head}{}\n", lines.join("\n"))).expect("a trace"))
}

/// C12, C13: the busy time after Stop Tran decides, however long a poll, a call and the wait are, with FAT sectors and lost lines.
#[test]
fn busy_after_stop_tran_is_never_ignored() {
    // A fifth of all combinations: each value meets each other one.
    let mut turn = 0;
    for poll in [500, 1000, 3000, 3900, 4900, 10_000] {
        for stop_us in [2000, 5000, 9000, 11_400, 14_500, 18_600, 40_000] {
            for blocks in [2u64, 4, 16, 128] {
                for (named, fat) in [(true, false), (true, true), (false, false), (false, true)] {
                    turn += 1;
                    if turn % 5 != 0 {
                        continue;
                    }
                    let polls = stop_us * 1000 / poll;
                    let mut all = lines(80, |i| {
                        let block = if named { format!("{}: ", 4096 + blocks * i) } else { String::new() };
                        let mark = if named { "s" } else { "" };
                        format!("{block}{}{mark}{}", "3 ".repeat(blocks as usize), polls + i % 7)
                    });
                    if fat {
                        for at in [60, 40, 20] {
                            all.insert(at, if named { format!("300: {polls}") } else { polls.to_string() });
                        }
                    }
                    all.remove(33);
                    let f = judged(Some(poll), &all);
                    let what = format!("{poll} ns, {stop_us} us, {blocks} blocks, named {named}, FAT {fat}: {f:#?}");
                    let policy = value(&f, Quantity::RewritePolicy);
                    assert_eq!(value(&f, Quantity::WriteBuffer), None, "{what}");
                    match stop_us {
                        0..3000 => assert_eq!(policy, Some(0.0), "{what}"),
                        3000..8000 => assert_eq!(policy, None, "{what}"),
                        _ => {
                            assert_eq!(policy, Some(1.0), "{what}");
                            let ms = value(&f, Quantity::RewriteMs).unwrap();
                            assert!((ms / (stop_us as f64 / 1e3) - 1.0).abs() < 0.03, "{what}");
                        }
                    }
                }
            }
        }
    }
}

/// C14: buffers of many sizes through lost, doubled and damaged lines, with lower confidence the more there are.
#[test]
fn a_buffer_is_found_through_lost_lines() {
    for (size, blocks, n) in [(8u64, 4u64, 100u64), (8, 4, 400), (4, 2, 100), (24, 8, 200), (16, 4, 200), (48, 4, 300), (80, 16, 200)] {
        let whole = lines(n, |i| {
            let mut line: String = (0..blocks).map(|k| if (i * blocks + k + 1).is_multiple_of(size) { "30003 " } else { "3 " }).collect();
            line.push('2');
            line
        });
        let confidence = |all: &[String]| {
            let f = judged(Some(4900), all);
            assert_eq!(
                (value(&f, Quantity::WriteBuffer), value(&f, Quantity::RewritePolicy)),
                (Some(512.0 * size as f64), Some(2.0)),
                "{size} {blocks} {n}: {f:#?}"
            );
            f.iter().find(|f| f.quantity == Quantity::WriteBuffer).unwrap().confidence
        };
        let all = confidence(&whole);
        assert!(all > 0.95, "{size}: {all}");
        for place in [10, n as usize / 2, n as usize - 10] {
            let mut lost = whole.clone();
            lost.remove(place);
            let mut doubled = whole.clone();
            doubled.insert(place, whole[place].clone());
            let mut cut = whole.clone();
            cut[place] = "3 3 3x".into();
            for changed in [lost, doubled, cut] {
                let one = confidence(&changed);
                assert!(one <= all && one > 0.8, "{size} {place}: {one} of {all}");
            }
        }
    }
}

/// Without the time of a poll nothing is said in milliseconds, at the end of a transaction or at a full buffer.
#[test]
fn without_a_poll_time_nothing_is_said_in_ms() {
    for long in [3_800u64, 12_000, 30_000, 90_000] {
        for every in [1, 2, 3] {
            let all = lines(150, |i| {
                format!("3 3 3 {} {}", if every > 1 && i % every == 0 { long } else { 3 }, if every > 1 { 2 } else { long })
            });
            let shown = format!("{:?}", judged(None, &all));
            assert!(!shown.contains(" ms") && !shown.contains("kB/s"), "{long}, {every}: {shown}");
        }
    }
}

/// What cannot be decided is not: every transaction ends where the buffer would be full.
#[test]
fn an_end_that_is_a_multiple_of_the_buffer_is_undecided() {
    for blocks in [4u64, 8, 16] {
        let all = lines(150, |i| format!("{}: {}30000", 4096 + blocks * i, "3 ".repeat(blocks as usize - 1)));
        let text = format!("# nandscope busy trace 1\n# poll_ns 1000\n{}\n", all.join("\n"));
        let f = infer_trace(&Trace::parse(&text).unwrap());
        assert_eq!((value(&f, Quantity::RewritePolicy), value(&f, Quantity::WriteBuffer)), (None, None), "{f:#?}");
        assert_eq!(value(&f, Quantity::RewritePolls), Some(29_997.0));
    }
}

/// The busy trace of a file that is written in records.
fn traced(model: &Model, file: u64, record: u64) -> Trace {
    let mut device = SimDevice::new(model, 1);
    let machine = Machine::of(model).unwrap();
    let mut traced = Traced::new(&mut device, machine.poll);
    let plan = Plan { file, read: false, ..Plan::new(record) };
    bench(&mut Library::new(&mut traced, machine), &plan, &AtomicBool::new(false), &mut |_, _, _| {}).unwrap();
    Trace { poll_ns: Some(machine.poll.0), transactions: traced.transactions, damaged: 0 }
}

/// C14: a large buffer is full once in hundreds of blocks. It is found, or undecided where an erase block may end there, and
/// "nothing is rewritten" is never said.
#[test]
fn a_buffer_that_is_seldom_full_is_found() {
    for kib in [48u64, 64, 72, 96, 120, 128, 256] {
        for record in [512u64, 2048, 8192, 32_768] {
            let mut model = Model::parse(cards::text("chan-sdc-512mb").unwrap(), "chan-sdc-512mb").unwrap();
            model.ftl.through.buffer = kib << 10;
            let all = infer_trace(&traced(&model, 1_000_000, record));
            let expected = if kib < 128 { (Some(2.0), Some((kib << 10) as f64)) } else { (None, None) };
            let found = (value(&all, Quantity::RewritePolicy), value(&all, Quantity::WriteBuffer));
            assert_eq!(found, expected, "{kib} KiB, records of {record} B: {all:#?}");
        }
    }
}

/// C16: chips whose rewrite takes 10 to 21 ms have erase blocks of 16 KiB; a larger unit that takes as long is programmed, and nothing is
/// rewritten for it.
#[test]
fn units_that_program_slowly_are_no_buffers_that_rewrite() {
    for (blocks, us, policy) in [
        (8, 12_000, Some(2.0)),
        (16, 20_000, Some(2.0)),
        (32, 9_000, None),
        (32, 20_000, None),
        (64, 12_000, None),
        (64, 142_000, Some(2.0)),
    ] {
        let busy = |i: u64| if (i + 1).is_multiple_of(blocks) { us } else { 3 };
        let all = lines(600, |t| {
            format!("{}: {} 3", 4096 + 4 * t, (4 * t..4 * t + 4).map(|i| busy(i).to_string()).collect::<Vec<_>>().join(" "))
        });
        let f = judged(Some(1000), &all);
        assert_eq!(value(&f, Quantity::RewritePolicy), policy, "{blocks} blocks, {us} us: {f:#?}");
        assert_eq!(value(&f, Quantity::WriteBuffer), Some(512.0 * blocks as f64), "{blocks} blocks, {us} us: {f:#?}");
    }
}

/// Single long waits are stalls where a card that rewrites would have many, and none says that nothing is rewritten where they are
/// as many as that.
#[test]
fn few_long_waits_are_no_proof_of_anything() {
    for (long, policy) in [(0u64, Some(0.0)), (1, Some(0.0)), (9, None)] {
        let mut x = 7u64;
        let mut places = std::collections::BTreeSet::new();
        while (places.len() as u64) < long {
            x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            places.insert(x >> 33 & 1023);
        }
        let all = lines(1024, |i| format!("{}: 3 3 3 {} 200", 4096 + 4 * i, if places.contains(&i) { 30_000 } else { 3 }));
        let f = judged(Some(4900), &all);
        assert_eq!(value(&f, Quantity::RewritePolicy), policy, "{long}: {f:#?}");
        assert_eq!(value(&f, Quantity::WriteBuffer), None, "{long}: {f:#?}");
    }
}

/// C10, C11: the traces of every simulated host, whatever it announces and however it splits, read back.
#[test]
fn the_traces_of_all_hosts_say_what_the_models_do() {
    use nandscope_sim::model::Transfer;
    let (mut wrong, mut n) = (vec![], 0);
    let names = ["chan-sdc-128mb", "chan-sdc-512mb", "sandisk-c2-2gb", "wintec-1gb", "amazon-c10-4gb", "chan-mmc-128mb", "sdxc-64gb"];
    for name in names {
        for transfer in [Transfer::OpenEnded, Transfer::Predefined, Transfer::Single] {
            for record in [512u64, 2048, 8192, 10_240, 65_536] {
                let mut model = Model::parse(cards::text(name).unwrap(), name).unwrap();
                model.host.transfer = transfer;
                let trace = traced(&model, 400_000.max(20 * record), record);
                let blocks: u64 = trace.transactions.iter().map(|t| t.data.len() as u64).sum();
                assert!(blocks * 512 >= 400_000 / record * record, "{name} {transfer:?} {record}: every block is in the trace");
                let all = infer_trace(&Trace::parse(&trace.print()).unwrap());
                n += all.iter().filter(|f| f.value.is_some()).count();
                let all: Vec<Finding> = all.into_iter().filter(|f| f.quantity != Quantity::RewritePolls).collect();
                let mut here = vec![];
                judge(&model, &all, &mut here);
                wrong.extend(here.into_iter().map(|w| format!("{transfer:?}, {record}: {w}")));
                // The 24 KiB of this card begin at 0.
                if name == "sandisk-c2-2gb" && value(&all, Quantity::WriteBuffer).is_some() {
                    assert!(!format!("{all:?}").contains(" plus "), "{all:?}");
                }
            }
        }
    }
    println!("{n} decided");
    assert!(wrong.is_empty() && n > 60, "{n} decided, wrong:\n{}", wrong.join("\n"));
}

/// C8, C20, C21: what the traces say of one rewrite, and the time of a read for the wire, give the published times of a write.
#[test]
fn a_rewrite_explains_the_published_rates() {
    use nandscope::infer::rewrite::{CHIP_BLOCKS, per_write, slow_down};
    // kB/s and ms a 2 KiB read, ms a 2 KiB write.
    let mut costs = vec![];
    for (name, read_ms, write_ms) in [("chan-sdc-128mb", 6.2, 26.6), ("chan-sdc-512mb", 8.8, 73.1)] {
        let model = Model::parse(cards::text(name).unwrap(), name).unwrap();
        let all = infer_trace(&traced(&model, 400_000, 2048));
        let cost = value(&all, Quantity::RewriteMs).unwrap();
        let each = read_ms + per_write(cost, value(&all, Quantity::WriteBuffer).map(|b| b as u64), 2048);
        println!("{name}: {each:.1} ms a write, published {write_ms}");
        assert!((each / write_ms - 1.0).abs() < 0.2, "{name}: {each} ms");
        costs.push(cost);
    }
    let expected = slow_down(CHIP_BLOCKS[0], CHIP_BLOCKS[1]);
    assert_eq!(expected, 8.0);
    assert!((costs[1] / costs[0] / expected - 1.0).abs() < 0.1, "{costs:?}");
}

//! Cards as a host sees them: order, determinism, limits, noise, stalls, faults, bytes.

use nandscope_sim::random;
use nandscope_sim::{Card, Data, Fault, Model, Op, Request, Rng, cards};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

fn model(name: &str) -> Model {
    Model::parse(cards::text(name).expect("a card of the crate"), name).expect("valid")
}

fn built(text: &str) -> Card {
    Card::new(&Model::parse(text, "test").unwrap_or_else(|e| panic!("{e}")), 1)
}

const BASE: &str = "name = \"t\"\n[card]\ncapacity = \"256 MiB\"\n[nand]\npage = \"4 KiB\"\nerase_block = \"1 MiB\"\nprogram = \"1 ms\"\n\
                    copy = \"1 ms\"\nerase = \"5 ms\"\n[ftl]\nkind = \"block-map\"\nopen_linear = 3\nopen_random = 1\n";

/// Random requests of every kind; a digest of all answers.
fn digest(m: &Model, seed: u64, n: u32) -> u64 {
    let mut card = Card::new(m, seed);
    let mut rng = Rng::new(99, 0);
    let sector = card.sector();
    let (mut now, mut sum, mut served) = (0, 0u64, 0);
    for _ in 0..n {
        let len = sector * (1 + rng.below(256));
        let at = sector * rng.below((card.capacity() - len) / sector + 1);
        let op = [Op::Read, Op::Write, Op::Write, Op::Discard][rng.below(4) as usize];
        let c = match card.submit(now, Request { op, at, len, data: Data::Other }) {
            Ok(c) => c,
            Err(Fault::Io { done, at, .. }) if at >= m.truth().real_capacity => {
                now = done;
                continue;
            }
            Err(e) => panic!("{}: {e}", m.name),
        };
        assert!(c.start >= now && c.done >= c.start);
        served += 1;
        sum = sum.rotate_left(5) ^ c.done;
        now = c.done + rng.below(1_000_000);
    }
    let k = card.counters();
    assert_eq!(k.reads + k.writes + k.discards, served, "served = submitted");
    sum
}

#[test]
fn the_same_seed_gives_the_same_answers() {
    for (name, _) in cards::ALL {
        let m = model(name);
        assert_eq!(digest(&m, 5, 3000), digest(&m, 5, 3000), "{name}");
    }
    assert_ne!(digest(&model("noisy"), 5, 3000), digest(&model("noisy"), 6, 3000));
}

/// The digest of every card, of this build and of every other one: debug, release, any machine, any number of threads.
/// It changes only when the cards or what they do change; the message says what to put in its place.
#[test]
fn answers_do_not_depend_on_the_build() {
    let all = || cards::ALL.iter().fold(0u64, |sum, (name, _)| sum.rotate_left(7) ^ digest(&model(name), 1, 1500));
    let random = || (0..100).fold(0u64, |sum, seed| sum.rotate_left(7) ^ digest(&random::card(seed), 1, 200));
    let threads: Vec<_> = (0..3).map(|_| std::thread::spawn(move || (all(), random()))).collect();
    let found: Vec<(u64, u64)> = threads.into_iter().map(|t| t.join().expect("no panic")).collect();
    assert_eq!(found, [found[0]; 3]);
    assert_eq!(found[0], DIGESTS, "now ({:#x}, {:#x})", found[0].0, found[0].1);
}
const DIGESTS: (u64, u64) = (0x941c_e9bd_8593_08ee, 0x26c9_4174_beee_1dfd);

#[test]
fn requests_off_the_card_are_refused_and_change_nothing() {
    let mut card = Card::new(&model("flashbench-readme"), 1);
    let end = card.capacity();
    let refused =
        [Request::read(end, 512), Request::write(end - 512, 1024), Request::read(u64::MAX - 511, 512), Request::write(0, end + 512)];
    for r in refused {
        assert!(matches!(card.submit(0, r), Err(Fault::OutOfRange { .. })), "{r:?}");
    }
    for r in [Request::read(1, 512), Request::write(0, 100), Request::read(0, 0)] {
        assert!(matches!(card.submit(0, r), Err(Fault::Misaligned { .. })), "{r:?}");
    }
    assert_eq!(card.counters().reads + card.counters().writes, 0);
    assert_eq!(card.submit(0, Request::read(end - 512, 512)).map(|c| c.start), Ok(0), "not busy with what it refused");
}

#[test]
fn one_command_at_a_time() {
    let mut card = Card::new(&model("flashbench-readme"), 1);
    let a = card.submit(100, Request::write(0, 4096)).unwrap();
    let b = card.submit(100, Request::read(0, 4096)).unwrap();
    assert_eq!((a.start, b.start), (100, a.done));
    let c = card.submit(b.done + 7, Request::read(0, 4096)).unwrap();
    assert_eq!(c.start, b.done + 7);
}

/// Writes one unit to each of `aus` AUs in turn, at the same place in each; ms of the last round.
fn round(card: &mut Card, aus: u64, order: &[u64]) -> f64 {
    let mut last = 0;
    for &k in order {
        last = (0..aus)
            .map(|au| {
                let c = card.submit(0, Request::write(au * MIB + k * 4 * KIB, 4 * KIB)).unwrap();
                c.done - c.start
            })
            .sum();
    }
    last as f64 / 1e6
}

#[test]
fn limits_of_open_aus() {
    let linear: Vec<u64> = (0..40).collect();
    let random = [7, 3, 9, 1, 200, 5, 11];
    for (aus, order, closes) in [(3, &linear[..], 0), (4, &linear, 4), (1, &random[..], 0), (2, &random, 1)] {
        let mut card = built(BASE);
        let ms = round(&mut card, aus, order);
        // Closing copies nearly 256 units of 1 ms and erases.
        let found = (ms - aus as f64) / 258.0 + 0.1;
        assert_eq!(found as u64, closes, "{aus} AUs: {ms} ms, {:?}", card.counters());
    }
    let mut card = built(&BASE.replace("open_random = 1", "open_random = 0"));
    assert!(round(&mut card, 1, &random) > 200.0, "limit 0: even one AU pays every time");
}

#[test]
fn a_whole_au_in_order_is_switched() {
    let mut card = built(BASE);
    for k in 0..256 {
        card.submit(0, Request::write(k * 4 * KIB, 4 * KIB)).unwrap();
    }
    let k = card.counters();
    assert_eq!((k.merges_switch, k.merges_partial, k.units_copied, k.erases), (1, 0, 0, 1));
    assert_eq!(k.write_amplification(), 1.0);
}

#[test]
fn the_fat_zone_opens_no_au() {
    let mut card = built(&format!("{BASE}fat_zone = \"1 MiB\"\n"));
    let mut rng = Rng::new(1, 1);
    for _ in 0..2000 {
        card.submit(0, Request::write(rng.below(256) * 4 * KIB, 4 * KIB)).unwrap();
    }
    assert_eq!(card.counters().erases, 0);
    card.submit(0, Request::write(MIB + 4 * KIB, 4 * KIB)).unwrap();
    card.submit(0, Request::write(MIB, 4 * KIB)).unwrap();
    let before = card.counters().units_copied;
    for au in 2..5 {
        card.submit(0, Request::write(au * MIB, 4 * KIB)).unwrap();
    }
    assert!(card.counters().units_copied > before, "behind the zone the limit holds");
}

#[test]
fn never_written_flash_reads_flat() {
    let text = BASE.replace(
        "[nand]",
        "state = \"empty\"\n[nand]\nsense = \"100 us\"\nlookup = \"50 us\"\nunwritten = \"flat\"\nunwritten_read = \"30 us\"",
    );
    let mut card = built(&text);
    let mut took = |at, len| card.submit(0, Request::read(at, len)).map(|c| c.done - c.start).unwrap();
    assert_eq!(took(MIB - 512, 1024), 30_000);
    assert_eq!(took(MIB, 1024), 30_000);
    let mut card = built(&text);
    card.submit(0, Request::write(MIB - 4096, 8192)).unwrap();
    let c = card.submit(0, Request::read(MIB - 512, 1024)).unwrap();
    assert_eq!(c.done - c.start, 300_000, "two units, two blocks");
    card.submit(0, Request { op: Op::Discard, at: 0, len: 2 * MIB, data: Data::Other }).unwrap();
    let c = card.submit(0, Request::read(MIB - 512, 1024)).unwrap();
    assert_eq!(c.done - c.start, 30_000);
}

#[test]
fn small_writes_that_follow_each_other_are_collected() {
    let text = BASE.replace("[nand]", "combine = true\n[nand]\nwrite_unit = \"16 KiB\"");
    let mut card = built(&text);
    for k in 0..16 {
        card.submit(0, Request::write(k * KIB, KIB)).unwrap();
    }
    assert_eq!((card.counters().units_programmed, card.counters().filled_up), (1, 0));
    card.submit(0, Request::write(16 * KIB, KIB)).unwrap();
    assert_eq!(card.counters().units_programmed, 1, "waits for more");
    let c = card.submit(0, Request::read(0, KIB)).unwrap();
    assert!(c.done - c.start >= 1_000_000 && card.counters().units_programmed == 2, "something else comes first");
}

#[test]
fn a_reader_splits_requests() {
    let text = format!("{BASE}[host]\ncommand = \"1 ms\"\nmax_request = \"64 KiB\"\n");
    let mut card = built(&text);
    let c = card.submit(0, Request::read(0, 256 * KIB)).unwrap();
    assert_eq!(c.done - c.start, 4_000_000);
    let c = card.submit(0, Request::read(0, 64 * KIB)).unwrap();
    assert_eq!(c.done - c.start, 1_000_000);
}

#[test]
fn a_read_cache_hides_the_flash() {
    let text = BASE.replace("[nand]", "read_ahead = \"64 KiB\"\n[nand]\nsense = \"100 us\"");
    let mut card = built(&text);
    let mut took = |at| card.submit(0, Request::read(at, 4 * KIB)).map(|c| c.done - c.start).unwrap();
    assert_eq!(took(0), 100_000);
    assert_eq!(took(0), 0);
    assert_eq!(took(8 * KIB), 0, "read ahead");
    assert_eq!(took(128 * KIB), 100_000);
    assert_eq!(took(0), 100_000, "only one stretch is kept");
    card.submit(0, Request::write(0, 4 * KIB)).unwrap();
    let c = card.submit(0, Request::read(0, 4 * KIB)).unwrap();
    assert_eq!(c.done - c.start, 100_000, "a write empties it");
}

#[test]
fn jitter_and_tail() {
    let text = format!("{BASE}[host]\ncommand = \"1 ms\"\njitter = \"20 us\"\ntail = \"1 ms\"\ntail_every = 100\ntail_cap = \"50 ms\"\n");
    let mut card = built(&text);
    let took: Vec<u64> = (0..20_000).map(|_| card.submit(0, Request::read(0, 4096)).map(|c| c.done - c.start).unwrap()).collect();
    let late = took.iter().filter(|&&t| t > 1_500_000).count();
    assert!((120..280).contains(&late), "one in a hundred: {late}");
    let worst = *took.iter().max().unwrap();
    assert!(worst > 5_000_000 && worst <= 51_200_000, "a heavy tail with an end: {worst}");
    let body: Vec<f64> = took.iter().filter(|&&t| t < 1_500_000).map(|&t| t as f64 / 1e3).collect();
    let mean = body.iter().sum::<f64>() / body.len() as f64;
    let sd = (body.iter().map(|t| (t - mean) * (t - mean)).sum::<f64>() / body.len() as f64).sqrt();
    assert!((mean - 1000.0).abs() < 1.0 && (sd - 20.0).abs() < 0.5, "{mean} +- {sd}");
}

#[test]
fn stalls_come_as_often_as_said() {
    for (rule, range) in [("every_bytes = \"1 MiB\"", 100..=100), ("every_commands = 10\nrandom = true", 2200..=2900)] {
        let mut card = built(&format!("{BASE}[[stall]]\non = \"write\"\ntime = \"200 ms\"\n{rule}\n"));
        let late = (0..25_600)
            .filter(|k| card.submit(0, Request::write(k % 256 * 4 * KIB, 4 * KIB)).map(|c| c.done - c.start).unwrap() >= 200_000_000)
            .count();
        assert!(range.contains(&late), "{rule}: {late}");
        assert_eq!(card.counters().stalls, late as u64, "never two at once at these rates");
        let c = card.submit(0, Request::read(0, 4 * KIB)).unwrap();
        assert!(c.done - c.start < 200_000_000, "reads do not stall");
    }
}

#[test]
fn faults() {
    let mut card = built(&format!("{BASE}[[fault]]\nkind = \"io\"\non = \"read\"\nat = \"1 MiB\"\nlen = \"4 KiB\"\n"));
    assert!(card.submit(0, Request::read(0, MIB)).is_ok());
    let bad = card.submit(0, Request::read(MIB - 512, 8192)).unwrap_err();
    assert!(matches!(bad, Fault::Io { op: Op::Read, at, len: 4096, .. } if at == MIB), "{bad}");
    assert!(card.submit(0, Request::write(MIB, 4096)).is_ok());
    let mut card = built(&format!("{BASE}[[fault]]\nkind = \"gone\"\nafter_commands = 2\n"));
    assert!(card.submit(0, Request::read(0, 512)).is_ok() && card.submit(0, Request::read(0, 512)).is_ok());
    assert_eq!(card.submit(0, Request::read(0, 512)), Err(Fault::Gone));
    let mut card = built(&format!("{BASE}[[fault]]\nkind = \"read-only\"\nafter_bytes = \"8 KiB\"\n"));
    assert!(card.submit(0, Request::write(0, 8192)).is_ok());
    assert_eq!(card.submit(0, Request::write(0, 512)), Err(Fault::ReadOnlyMedium));
    assert!(card.submit(0, Request::read(0, 512)).is_ok());
}

#[test]
fn bytes_come_back() {
    let mut card = built(BASE).with_content();
    let mut mirror = vec![0u8; 4 * MIB as usize];
    let mut rng = Rng::new(3, 3);
    for step in 0..4000u32 {
        let len = 1 + rng.below(20_000) as usize;
        let at = rng.below(4 * MIB - len as u64) as usize;
        match rng.below(4) {
            0 => {
                let (at, len) = (at & !511, (len & !511).max(512));
                card.submit(0, Request { op: Op::Discard, at: at as u64, len: len as u64, data: Data::Other }).unwrap();
                mirror[at..at + len].fill(0);
            }
            1 | 2 => {
                let bytes: Vec<u8> = (0..len).map(|i| (step as usize * 31 + i) as u8).collect();
                card.store(at as u64, &bytes).unwrap();
                mirror[at..at + len].copy_from_slice(&bytes);
            }
            _ => {
                let mut back = vec![1; len];
                card.load(at as u64, &mut back).unwrap();
                assert_eq!(back, mirror[at..at + len], "step {step}");
            }
        }
    }
    let before = card.clone();
    card.store(0, &[7; 5000]).unwrap();
    let r = Request::write(0, 4096);
    assert_eq!(card.submit(0, r), before.clone().submit(0, r), "storing changes no timing");
    assert_eq!(built(BASE).load(0, &mut [0; 4]), Err(Fault::NoContent));
}

#[test]
fn counterfeits() {
    let fake =
        |beyond: &str| built(&BASE.replace("[nand]", &format!("real_capacity = \"64 MiB\"\nbeyond = \"{beyond}\"\n[nand]"))).with_content();
    let mut back = [0; 4];
    let mut wrap = fake("wrap");
    wrap.store(3 * MIB, b"left").unwrap();
    wrap.store(67 * MIB, b"over").unwrap();
    wrap.load(3 * MIB, &mut back).unwrap();
    assert_eq!(&back, b"over", "the last write wins");
    let mut drop = fake("drop");
    drop.store(64 * MIB - 2, b"edge").unwrap();
    drop.load(64 * MIB - 2, &mut back).unwrap();
    assert_eq!(&back, b"ed\0\0");
    assert!(matches!(fake("error").store(64 * MIB, b"x"), Err(Fault::Io { .. })));
}

#[test]
fn garbage_collection_keeps_its_books() {
    let text = "name = \"p\"\n[card]\ncapacity = \"64 MiB\"\n[nand]\npage = \"4 KiB\"\nerase_block = \"256 KiB\"\nprogram = \"1 ms\"\ncopy = \"1 ms\"\nerase = \"5 ms\"\n\
                [ftl]\nkind = \"page-map\"\nover_provisioning = 0.15\n";
    for state in ["written", "empty"] {
        let mut card = built(&text.replace("[nand]", &format!("state = \"{state}\"\n[nand]")));
        let mut rng = Rng::new(8, 8);
        for _ in 0..200_000 {
            let at = rng.below(16_384) * 4 * KIB;
            let op = if rng.below(10) == 0 { Op::Discard } else { Op::Write };
            card.submit(0, Request { op, at, len: 4 * KIB, data: Data::Other }).unwrap();
        }
        let k = card.counters();
        let wa = k.write_amplification();
        assert!(k.collections > 3000 && (1.5..4.0).contains(&wa), "{state}: {wa} {k:?}");
    }
}

#[test]
fn a_large_card_is_small_in_memory() {
    let text = BASE.replace("256 MiB", "1 TiB").replace("1 MiB", "4 MiB");
    let mut card = built(&text);
    let c = card.submit(0, Request::write((1 << 40) - 4096, 4096)).unwrap();
    assert!(c.done > 0);
    assert!(built(&text).with_content().store((1 << 40) - 5, b"12345").is_ok());
}

/// C12 to C14: where in a transaction of eight blocks a card is busy. The sum is what the write took but for the wire.
#[test]
fn busy_times_tell_the_policy() {
    let busy = |ftl: &str, host: &str| {
        let text = format!(
            "name = \"b\"\n[host]\nrate = \"1 MB/s\"\n{host}\n[card]\ncapacity = \"16 MiB\"\nstop = \"10 us\"\n[nand]\npage = \"2 KiB\"\nerase_block = \"128 KiB\"\nprogram = \"1 ms\"\ncopy = \"1 ms\"\nerase = \"2 ms\"\n[ftl]\n{ftl}\n"
        );
        let mut card = Card::new(&Model::parse(&text, "b").unwrap(), 1);
        let done = card.submit(0, Request::write(1 << 20, 4096)).unwrap();
        let busy = card.busy();
        let [only] = &busy[..] else { panic!("one command: {busy:?}") };
        let all: Vec<u64> = only.data.iter().copied().chain(only.stop).collect();
        assert_eq!(all.iter().sum::<u64>() + 4_096_000, done.done - done.start, "{ftl}");
        all
    };
    let (through, open) = ("kind = \"write-through\"", "transfer = \"open-ended\"");
    let end = busy(through, open);
    assert_eq!((end.len(), end[..8].iter().sum::<u64>()), (9, 0), "all of it after Stop Tran: {end:?}");
    let end = busy(through, "");
    assert!(end.len() == 8 && end[7] > 60_000_000, "{end:?}");
    let buffer = busy(&format!("{through}\nbuffer = \"2 KiB\""), open);
    assert!(buffer[3] > 60_000_000 && buffer[7] == buffer[3] && buffer[8] == 10_000 && buffer[0] == 0, "{buffer:?}");
    let none = busy("kind = \"none\"", open);
    assert_eq!(none, [0, 0, 0, 1_000_000, 0, 0, 0, 1_000_000, 10_000]);
}

/// C10: a host of single blocks, and one whose reader splits, polls after each command: every block of a write is in the trace.
#[test]
fn every_command_of_a_write_has_its_busy_times() {
    let of = |host: &str, len: u64| {
        let text = format!(
            "name = \"b\"\n[host]\n{host}\n[card]\ncapacity = \"16 MiB\"\n[nand]\npage = \"512 B\"\nerase_block = \"16 KiB\"\nprogram = \"1 ms\"\ncopy = \"1 ms\"\n[ftl]\nkind = \"write-through\"\n[[stall]]\ntime = \"50 ms\"\nevery_commands = 2\n"
        );
        let mut card = Card::new(&Model::parse(&text, "b").unwrap(), 1);
        let mut out = vec![];
        for k in 0..2 {
            let c = card.submit(1 << 40, Request::write((1 << 20) + k * len, len)).unwrap();
            let busy = card.busy();
            let sum: u64 = busy.iter().flat_map(|b| b.data.iter().copied().chain(b.stop)).sum();
            assert_eq!(sum, c.done - c.start, "{host} {len}");
            let places: Vec<u64> = busy.iter().flat_map(|b| (0..b.data.len() as u64).map(|i| b.at + 512 * i)).collect();
            assert_eq!(places, (0..len / 512).map(|i| (1 << 20) + k * len + 512 * i).collect::<Vec<_>>());
            out.push(busy);
        }
        out
    };
    for (host, len, commands) in [
        ("transfer = \"single-block\"", 8192, 16),
        ("transfer = \"single-block\"", 512, 1),
        ("max_request = \"3 KiB\"", 8192, 3),
        ("", 65536, 1),
    ] {
        let all = of(host, len);
        assert_eq!(all[0].len(), commands, "{host}");
        let longest = |i: usize| all[i].iter().flat_map(|b| b.data.iter().copied()).max().unwrap();
        assert_eq!(longest(1) - longest(0), 50_000_000, "a pause is polled, too: {host} {len}");
    }
}

/// C24: announced blocks are erased while the data are on the wire, and a small buffer no longer rewrites at each of its boundaries.
#[test]
fn announced_blocks_are_erased_ahead() {
    use nandscope_sim::Announced;
    let text = |more: &str, pre: bool| {
        format!(
            "name = \"b\"\n[host]\nrate = \"1 MB/s\"\n[card]\ncapacity = \"16 MiB\"\npre_erase = {pre}\n[nand]\npage = \"2 KiB\"\nerase_block = \"128 KiB\"\nprogram = \"1 ms\"\ncopy = \"1 ms\"\nerase = \"2 ms\"\n[ftl]\nkind = \"write-through\"\n{more}\n"
        )
    };
    let took = |text: &str, what: Announced, len: u64| {
        let mut card = Card::new(&Model::parse(text, "b").unwrap(), 1);
        card.announce(what);
        let c = card.submit(0, Request::write(1 << 20, len)).unwrap();
        (c.done - c.start) / 1_000_000
    };
    for buffer in ["", "buffer = \"4 KiB\"", "buffer = \"12 KiB\""] {
        for len in [4096, 16384, 65536] {
            let without = took(&text(buffer, true), Announced::No, len);
            let with = took(&text(buffer, true), Announced::Erase, len);
            if buffer.contains("12") && len == 4096 {
                assert_eq!(with, without, "nothing fills the buffer: 1 MiB lies 4 KiB after a multiple of 12 KiB");
                continue;
            }
            assert!(with < without, "{buffer} {len}: {with} against {without}");
            assert_eq!(took(&text(buffer, false), Announced::Erase, len), took(&text(buffer, false), Announced::No, len), "{buffer}");
            // One rewrite: 64 units programmed or copied; the erasing is hidden by 4 ms and more on the wire.
            let wire = len * 1000 / 1_000_000;
            assert!((with as i64 - 64 - wire as i64).abs() <= 1, "{buffer} {len}: {with}");
        }
    }
}

/// Two discards whose harm falls on the same sectors leave none of them as it was.
#[test]
fn what_two_discards_harm_is_not_whole_again() {
    let mut card = built(&BASE.replace("[nand]", "discard_harms = \"64 KiB\"\n[nand]")).with_content();
    let written: Vec<u8> = (0..64 * KIB).map(|i| (i / 7) as u8).collect();
    card.store(MIB, &written).unwrap();
    let mut now = 0;
    for at in [16 * KIB, 40 * KIB] {
        now = card.submit(now, Request { op: Op::Discard, at: MIB + at, len: 4 * KIB, ..Request::write(0, 512) }).unwrap().done;
    }
    let mut back = vec![0; written.len()];
    card.load(MIB, &mut back).unwrap();
    let beside = |i: &u64| ![16, 40].contains(&(i * 512 / KIB / 4 * 4));
    for i in (0..128).filter(beside) {
        let sector = (i * 512) as usize..(i * 512 + 512) as usize;
        assert_ne!(back[sector.clone()], written[sector], "sector {i}");
    }
}

//! What only some cards have, each against a card without it.

use nandscope_sim::{Card, Counters, Data, Fault, Lost, Model, Op, Request, Rng};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const MS: u64 = 1_000_000;

/// A card of 64 MiB whose parts the tests add to: `card` and `nand` keys, the `ftl` table, further tables.
fn built(card: &str, nand: &str, ftl: &str, more: &str) -> Card {
    let text = format!(
        "name = \"t\"\n[card]\ncapacity = \"64 MiB\"\n{card}\n[nand]\npage = \"4 KiB\"\nerase_block = \"256 KiB\"\nprogram = \"1 ms\"\ncopy = \"1 ms\"\n\
         erase = \"5 ms\"\n{nand}\n[ftl]\n{ftl}\n{more}\n"
    );
    Card::new(&Model::parse(&text, "test").unwrap_or_else(|e| panic!("{e}\n{text}")), 1)
}

const AUS: &str = "kind = \"block-map\"\nopen_linear = 3\nopen_random = 3";
const PAGES: &str = "kind = \"page-map\"\nover_provisioning = 0.15";

struct Host {
    card: Card,
    now: u64,
}

impl Host {
    fn new(card: Card) -> Host {
        Host { card, now: 0 }
    }

    fn took(&mut self, req: Request) -> u64 {
        let c = self.card.submit(self.now, req).expect("served");
        self.now = c.done;
        c.done - c.start
    }

    fn write(&mut self, at: u64, len: u64) -> u64 {
        self.took(Request::write(at, len))
    }

    fn rest(&mut self, ns: u64) {
        self.now += ns;
    }

    /// Random 4 KiB writes over the whole card: total ns.
    fn scatter(&mut self, n: u64, seed: u64) -> u64 {
        let (mut rng, units) = (Rng::new(seed, 0), self.card.capacity() / (4 * KIB));
        (0..n).map(|_| self.write(rng.below(units) * 4 * KIB, 4 * KIB)).sum()
    }
}

#[test]
fn slc_is_fast_until_it_is_full() {
    for (full, after) in [("fold", 1_600_000), ("direct", 1_000_000)] {
        let slc = format!(
            "[slc]\nsize = \"1 MiB\"\nprogram = \"200 us\"\nfold = \"400 us\"\nfull = \"{full}\"\nbackground = true\nidle = \"50 ms\""
        );
        let mut h = Host::new(built("", "", AUS, &slc));
        let took: Vec<u64> = (0..300).map(|k| h.write(k * 4 * KIB, 4 * KIB)).collect();
        let fast = took.iter().take_while(|&&t| t == 200_000).count();
        assert_eq!(fast, 256, "{full}: 1 MiB is 256 units");
        // Folding a unit is its program and reading it back; a few carry the erasure of a whole AU.
        let mut late = took[256..300].to_vec();
        late.sort_unstable();
        assert!(late[22].abs_diff(after) < 200_000, "{full}: {:?}", &late[20..24]);
        h.rest(10_000 * MS);
        assert_eq!(h.write(2 * MIB, 4 * KIB), 200_000, "{full}: folded while at rest");
        h.rest(MS);
        assert_eq!(h.write(2 * MIB + 4 * KIB, 4 * KIB), 200_000);
    }
}

#[test]
fn dynamic_slc_shrinks_as_the_card_fills() {
    let slc = "[slc]\nsize = \"8 MiB\"\ndynamic = true\nprogram = \"200 us\"\nfull = \"direct\"\nbackground = true\n";
    let fast = |fill: u64| {
        let mut h = Host::new(built("state = \"empty\"", "", AUS, slc));
        for k in 0..fill {
            h.write(k * 256 * KIB, 256 * KIB);
        }
        h.rest(1_000_000 * MS);
        let from = fill * 256 * KIB;
        (0..2000).take_while(|k| h.write(from + k * 4 * KIB, 4 * KIB) == 200_000).count()
    };
    let (empty, half, most) = (fast(0), fast(128), fast(220));
    assert!(empty > 1800 && (900..1040).contains(&half) && (200..320).contains(&most), "{empty} {half} {most}");
}

#[test]
fn a_volatile_cache_answers_at_once_and_flushes() {
    let mut h = Host::new(built("cache = \"64 KiB\"\nflush = \"1 ms\"", "", AUS, ""));
    assert_eq!((0..16).map(|k| h.write(k * 4 * KIB, 4 * KIB)).sum::<u64>(), 0, "64 KiB fit");
    assert_eq!(h.write(64 * KIB, 4 * KIB), MS, "the oldest goes first");
    assert_eq!(h.took(Request { op: Op::Flush, at: 0, len: 0, data: Data::Other }), 17 * MS);
    assert_eq!(h.took(Request { op: Op::Flush, at: 0, len: 0, data: Data::Other }), MS, "empty");
}

/// Every write is stamped; after a power cut exactly the writes named as lost are gone, as far as they were named.
#[test]
fn data_read_is_data_written_even_after_a_power_cut() {
    let kinds = ["cache = \"96 KiB\"", "combine = true", "", "cache = \"32 KiB\"\nreal_capacity = \"16 MiB\"\nbeyond = \"wrap\""];
    for (kind, nand) in kinds.iter().flat_map(|k| [(k, ""), (k, "write_unit = \"16 KiB\"")]) {
        let mut card = built(kind, nand, AUS, "").with_content();
        let mut rng = Rng::new(5, 5);
        // Half of the writes go on where the last one ended.
        let (mut now, mut end, mut lost_ever) = (0, 0, 0);
        let real = card.model().truth().real_capacity;
        let mut durable = vec![0u8; MIB as usize / 512];
        for round in 0..200 {
            let mut pending: Vec<(u64, u64, u64, u8)> = vec![];
            for k in 0..rng.below(60) {
                let len = 512 * (1 + rng.below(60));
                let at = if rng.below(2) == 0 && end + len <= MIB { end } else { 512 * rng.below((MIB - len) / 512) };
                // On the counterfeit one, sometimes the same place under another address.
                let alias = if real < 64 * MIB && rng.below(2) == 0 { at + real } else { at };
                match rng.below(10) {
                    0 => {
                        now = card.submit(now, Request { op: Op::Flush, at: 0, len: 0, data: Data::Other }).unwrap().done;
                    }
                    1 => {
                        now = card.submit(now, Request { op: Op::Discard, at: alias, len, data: Data::Other }).unwrap().done;
                        pending.push((0, at, len, 0));
                    }
                    2 => now += rng.below(20) * MS,
                    _ => {
                        now = card.submit(now, Request::write(alias, len)).unwrap().done;
                        let stamp = (round * 7 + k * 3 + 1) as u8;
                        card.store(alias, &vec![stamp; len as usize]).unwrap();
                        pending.push((card.counters().writes, at, len, stamp));
                        end = at + len;
                    }
                }
            }
            let lost: Vec<Lost> = card.power_cut();
            lost_ever += lost.len();
            for (write, at, len, stamp) in pending {
                for s in at / 512..(at + len) / 512 {
                    let gone = |l: &&Lost| write >= l.write && (l.at % real..l.at % real + l.len).contains(&(s * 512));
                    if write == 0 || !lost.iter().any(|l| gone(&l)) {
                        durable[s as usize] = stamp;
                    }
                }
            }
            let mut back = vec![1; MIB as usize];
            card.load(0, &mut back).unwrap();
            for (s, sector) in back.chunks(512).enumerate() {
                assert!(
                    sector.iter().all(|&b| b == durable[s]),
                    "{kind} {nand}, round {round}, sector {s}: {} not {}",
                    sector[0],
                    durable[s]
                );
            }
        }
        if kind.is_empty() {
            assert_eq!(lost_ever, 0, "what has no volatile buffer loses nothing");
        } else {
            assert!(lost_ever > 30, "{kind} {nand}: {lost_ever}");
        }
    }
}

#[test]
fn worn_cards_turn_read_only() {
    for ftl in [AUS, PAGES] {
        let mut h = Host::new(built("", "", ftl, "[wear]\nendurance = 30\nspread = 20\nspare = 6\n"));
        let mut rng = Rng::new(2, 2);
        let mut n = 0u64;
        let end = loop {
            let r = Request::write(rng.below(16_384) * 4 * KIB, 4 * KIB);
            match h.card.submit(h.now, r) {
                Ok(c) => h.now = c.done,
                Err(e) => break e,
            }
            n += 1;
        };
        assert_eq!(end, Fault::ReadOnlyMedium);
        assert!(h.card.dead_blocks() >= 6 && n > 4000, "{ftl}: {n} writes, {} dead", h.card.dead_blocks());
        assert!(h.card.submit(h.now, Request::read(0, 4096)).is_ok(), "it still reads");
    }
}

#[test]
fn static_levelling_narrows_the_spread() {
    for ftl in [AUS, PAGES] {
        let spread = |more: &str| {
            let mut h = Host::new(built("", "", ftl, more));
            // Only a sixteenth of the card is ever written.
            let mut rng = Rng::new(2, 2);
            for _ in 0..200_000 {
                h.write(rng.below(1024) * 4 * KIB, 4 * KIB);
            }
            let e = h.card.erasures().expect("wear is followed").to_vec();
            (e.iter().max().unwrap() - e.iter().min().unwrap(), h.card.counters().clone())
        };
        let (without, _) = spread("[wear]\nspare = 4");
        let (with, k) = spread("[wear]\nspare = 4\nstatic_every = 5");
        assert!(with * 3 < without, "{ftl}: {with} against {without}");
        assert!(k.write_amplification() > 0.0);
    }
}

#[test]
fn reads_disturb() {
    let mut h = Host::new(built("", "sense = \"100 us\"", AUS, "[wear]\nread_disturb = 100"));
    let took: Vec<u64> = (0..250).map(|_| h.took(Request::read(0, 4096))).collect();
    assert_eq!(took.iter().filter(|&&t| t == 100_000).count(), 248);
    assert_eq!((took[99], h.card.counters().refreshes), (100_000 + 64 * MS + 5 * MS, 2));
}

#[test]
fn a_map_that_does_not_fit_makes_a_cliff_by_span() {
    let ftl = format!("{PAGES}\nmap_cache = \"8 MiB\"\nmap_span = \"1 MiB\"\nmap_miss = \"150 us\"");
    let mean = |span: u64| {
        let mut h = Host::new(built("", "sense = \"100 us\"", &ftl, ""));
        let mut rng = Rng::new(1, 1);
        let mut go = |n| (0..n).map(|_| h.took(Request::read(rng.below(span / 4096) * 4096, 4096))).sum::<u64>() / n;
        go(1000);
        go(4000)
    };
    assert_eq!(mean(8 * MIB), 100_000, "all in memory");
    let (double, all) = (mean(16 * MIB), mean(64 * MIB));
    assert!((170_000..180_000).contains(&double) && (228_000..236_000).contains(&all), "half and seven eighths miss: {double} {all}");
}

#[test]
fn a_translation_page_that_writes_changed_is_saved_before_it_gives_way() {
    let ftl = format!("{PAGES}\nmap_cache = \"2 MiB\"\nmap_span = \"1 MiB\"\nmap_miss = \"150 us\"\nmap_save = \"700 us\"");
    let mut h = Host::new(built("", "sense = \"100 us\"", &ftl, ""));
    for p in 0..2 {
        h.write(p * MIB, 4096);
    }
    let read: Vec<u64> = (2..5).map(|p| h.took(Request::read(p * MIB, 4096))).collect();
    assert_eq!(read, [950_000, 950_000, 250_000], "two that were written, then one that was read");
}

fn amplification(rule: &str) -> f64 {
    let mut h = Host::new(built("", "", &format!("{PAGES}\n{rule}"), ""));
    h.scatter(60_000, 3);
    let before: Counters = h.card.counters().clone();
    h.scatter(60_000, 4);
    (h.card.counters().units_copied - before.units_copied) as f64 / 60_000.0
}

#[test]
fn rules_of_collection_rank_as_known() {
    let [greedy, choice, two, fifo, benefit] =
        ["gc = \"greedy\"", "gc = \"d-choice\"\nchoices = 10", "gc = \"d-choice\"\nchoices = 2", "gc = \"fifo\"", "gc = \"cost-benefit\""]
            .map(amplification);
    // Greedy is best for uniform writes; d-choice comes near it with d; FIFO is worse; age brings nothing here.
    assert!(greedy < choice && choice < two && choice < fifo, "{greedy} {choice} {two} {fifo}");
    assert!(greedy < benefit && benefit <= fifo * 1.02, "{benefit}");
}

#[test]
fn collection_at_rest_takes_the_cost_from_the_writes() {
    let worst = |rule: &str, rest: u64| {
        let mut h = Host::new(built("", "", &format!("{PAGES}\n{rule}"), ""));
        h.scatter(20_000, 3);
        let mut rng = Rng::new(9, 9);
        (0..3000)
            .map(|_| {
                h.rest(rest);
                h.write(rng.below(16_384) * 4 * KIB, 4 * KIB)
            })
            .max()
            .unwrap()
    };
    let rules = ["foreground", "background", "preemptible"].map(|w| format!("when = \"{w}\"\nidle = \"2 ms\"\ngoal = 8"));
    let [never, always, put_off] = [worst(&rules[0], 20 * MS), worst(&rules[1], 20 * MS), worst(&rules[2], 20 * MS)];
    assert!(never > 30 * MS, "{never}");
    assert!(put_off == MS, "put off when a command comes: {put_off}");
    assert!(always > put_off && always <= never, "one that has begun is finished: {always}");
}

#[test]
fn a_hot_card_is_slower() {
    let mut h = Host::new(built("", "sense = \"1 ms\"", AUS, "[[throttle]]\nheat = \"1 MiB\"\ncool = \"1 MB/s\"\npercent = 250"));
    let took: Vec<u64> = (0..400).map(|_| h.took(Request::read(0, 4096))).collect();
    assert_eq!((took[0], took[399]), (MS, 2_500_000));
    h.rest(2_000 * MS);
    assert_eq!(h.took(Request::read(0, 4096)), MS, "cooled off");
}

#[test]
fn a_queue_hides_what_can_be_done_side_by_side() {
    let text = "[host]\ncommand = \"100 us\"\nrate = \"100 MB/s\"";
    let mut rng = Rng::new(1, 1);
    let all: Vec<Request> = (0..2000).map(|_| Request::read(rng.below(16_384) * 4096, 4096)).collect();
    let total = |card: &str, dies: &str, depth: u64| {
        let mut c = built(card, &format!("sense = \"400 us\"\n{dies}"), PAGES, text);
        let done = c.batch(0, &all, depth).expect("served");
        assert_eq!((done.len(), c.counters().reads), (2000, 2000));
        assert!(done.iter().all(|d| d.done >= d.start + 500_000));
        done.iter().map(|d| d.done).max().unwrap()
    };
    let one = total("queue = 32", "dies = 4", 1);
    assert_eq!(one, total("", "dies = 4", 32), "no queue, no gain");
    assert_eq!(one, total("queue = 32", "dies = 4", 1));
    let (many, single_die) = (total("queue = 32", "dies = 4", 32), total("queue = 32", "", 32));
    assert!(many * 3 < one && many >= one / 6, "four dies: {many} against {one}");
    assert!(single_die > many * 3, "one die has no side by side: {single_die}");
}

/// A stall holds up one die: at a depth of 8 a card loses no more than its stalls last, and gains over one at a time as it does without them.
#[test]
fn a_queue_goes_on_beside_a_stall() {
    let mut rng = Rng::new(2, 1);
    let draw: Vec<u64> = (0..2000).map(|_| rng.below(16_384) * 4096).collect();
    for (op, request) in [("read", Request::read as fn(u64, u64) -> Request), ("write", Request::write)] {
        let all: Vec<Request> = draw.iter().map(|&at| request(at, 4096)).collect();
        let total = |stall: &str, depth: u64| {
            let mut c = built("queue = 32", "sense = \"400 us\"\ndies = 4", PAGES, stall);
            let done = c.batch(0, &all, depth).expect("served");
            (done.iter().map(|d| d.done).max().unwrap(), c.counters().stalls)
        };
        let stall = format!("[[stall]]\non = \"{op}\"\ntime = \"5 ms\"\nevery_commands = 50");
        let [(alone, n), (deep, as_many)] = [1, 8].map(|depth| total(&stall, depth));
        assert_eq!((n, as_many), (40, 40), "{op}");
        let [plain, beside] = [1, 8].map(|depth| total("", depth).0);
        assert_eq!(alone, plain + n * 5 * MS, "{op}: one after the other each stall is waited for");
        assert!((beside..=beside + n * 5 * MS).contains(&deep), "{op}: {deep} with stalls, {beside} without");
        assert!(deep * 2 < alone && beside * 2 < plain, "{op}: no gain: {deep} of {alone}, {beside} of {plain}");
    }
}

#[test]
fn ways_of_sending() {
    let took = |transfer: &str| {
        let mut h = Host::new(built("stop = \"3 ms\"", "", AUS, &format!("[host]\ncommand = \"100 us\"\ntransfer = \"{transfer}\"")));
        h.write(0, 4096)
    };
    assert_eq!(took("pre-defined"), MS + 100_000);
    assert_eq!(took("open-ended"), MS + 3_100_000);
    assert_eq!(took("single-block"), 8 * (MS + 100_000), "each sector programs its unit");
}

#[test]
fn data_of_one_value_can_be_noted_only() {
    for (shortcut, zeros, ones) in [("none", MS, MS), ("zeros", 0, MS), ("ones", MS, 0), ("both", 0, 0)] {
        let mut h = Host::new(built(&format!("shortcut = \"{shortcut}\""), "", PAGES, ""));
        let mut took = |data| h.took(Request { op: Op::Write, at: 0, len: 4096, data });
        assert_eq!((took(Data::Zeros), took(Data::Ones), took(Data::Other)), (zeros, ones, MS), "{shortcut}");
    }
}

#[test]
fn small_writes_in_their_own_log_recover() {
    let per_write = |len: u64| {
        let ftl = "kind = \"block-map\"\nopen_linear = 1\nsmall_write = \"8 KiB\"\nsmall_log = \"2 MiB\"";
        let mut h = Host::new(built("", "", ftl, ""));
        let mut rng = Rng::new(1, 1);
        (0..4000).map(|_| h.write(rng.below(4) * 256 * KIB + rng.below(256 * KIB / len) * len, len)).sum::<u64>() / 4000
    };
    let (small, large) = (per_write(8 * KIB), per_write(16 * KIB));
    assert!(small * 8 < large, "up to 8 KiB they are cheap, above they close an AU each: {small} {large}");
}

#[test]
fn write_through_programs_erased_units_in_place() {
    let mut h = Host::new(built("", "", "kind = \"write-through\"", ""));
    // A block is 64 units of 1 ms, and 5 ms to erase.
    assert_eq!(h.write(0, 4 * KIB), 69 * MS);
    h.took(Request { op: Op::Discard, at: 0, len: 512 * KIB, data: Data::Other });
    assert_eq!((h.write(0, 4 * KIB), h.write(8 * KIB, 8 * KIB)), (MS, 2 * MS), "F10: erased flash is only programmed");
    assert_eq!(h.write(0, 4 * KIB), 8 * MS, "a rewrite copies the two units that hold data");
    h.took(Request { op: Op::Discard, at: 8 * KIB, len: 4 * KIB, data: Data::Other });
    assert_eq!(h.write(4 * KIB, 4 * KIB), MS, "never written since");
    assert_eq!(h.write(8 * KIB, 4 * KIB), 5 * MS + 3 * MS + MS, "discarded is not erased while others are there");
    assert_eq!(h.write(1024 * KIB, 4 * KIB), 69 * MS, "elsewhere nothing changed");
}

#[test]
fn write_through_rewrites_at_the_end_or_at_every_buffer() {
    let took = |ftl: &str, at: u64, len: u64| Host::new(built("", "", &format!("kind = \"write-through\"\n{ftl}"), "")).write(at, len);
    // A block is 64 units of 1 ms, and 5 ms to erase.
    assert_eq!(took("", 0, 4 * KIB), 69 * MS);
    assert_eq!(took("", 0, 64 * KIB), 69 * MS, "C13: one rewrite a transaction");
    assert_eq!(took("", 256 * KIB - 4096, 8 * KIB), 2 * 69 * MS);
    assert_eq!(took("buffer = \"4 KiB\"", 0, 64 * KIB), 16 * 69 * MS, "C14: one at every 4 KiB");
    let mut h = Host::new(built("", "", "kind = \"write-through\"\nbuffer = \"8 KiB\"", ""));
    assert_eq!((h.write(0, 4 * KIB), h.write(4 * KIB, 4 * KIB)), (MS, 69 * MS), "two writes share a rewrite");
    assert_eq!((h.write(64 * KIB, 4 * KIB), h.write(0, 4 * KIB)), (MS, 69 * MS), "what does not follow turns the buffer out");
    assert_eq!(took("buffer = \"64 KiB\"", 0, 60 * KIB), 15 * MS, "waits in the buffer");
    assert_eq!(took("fat_zone = \"512 KiB\"", 0, 4 * KIB), MS, "C18");
    assert_eq!(took("fat_zone = \"512 KiB\"", 512 * KIB, 4 * KIB), 69 * MS);
}

/// The power goes by a rule of the model: the request is not served, and the card names what it had promised and lost.
#[test]
fn a_power_cut_can_be_a_rule_of_the_model() {
    let mut h = Host::new(built("cache = \"64 KiB\"", "", AUS, "[[fault]]\nkind = \"power-cut\"\nafter_commands = 5"));
    for k in 0..5 {
        h.write(k * 4 * KIB, 4 * KIB);
    }
    assert_eq!(h.card.submit(h.now, Request::write(MIB, 4096)), Err(Fault::PowerCut));
    let lost: Vec<(u64, u64)> = h.card.lost().iter().map(|l| (l.write, l.at)).collect();
    assert_eq!(lost, [(1, 0), (2, 4096), (3, 8192), (4, 12_288), (5, 16_384)]);
    h.write(0, 4 * KIB);
    assert_eq!(h.card.lost().len(), 5, "it happens once, and the card goes on");
}

#[test]
fn heat_has_steps() {
    let steps = "[[throttle]]\nheat = \"1 MiB\"\ncool = \"1 MB/s\"\npercent = 150\n[[throttle]]\nheat = \"4 MiB\"\ncool = \"1 MB/s\"\npercent = 400";
    let mut h = Host::new(built("", "sense = \"1 ms\"", AUS, steps));
    let took: Vec<u64> = (0..2000).map(|_| h.took(Request::read(0, 4096))).collect();
    assert_eq!((took[0], took[500], took[1999]), (MS, 1_500_000, 4 * MS));
    h.rest(2_000 * MS);
    assert_eq!(h.took(Request::read(0, 4096)), 1_500_000, "cooled off by one step");
}

const KINDS: [&str; 5] = [
    AUS,
    PAGES,
    "kind = \"log-block\"\npool = 6\nsequential = true",
    "kind = \"log-block\"\ngroup = 1\nper_group = 1\npool = 4\norder = \"in-order\"",
    "kind = \"write-through\"\nbuffer = \"16 KiB\"",
];

/// Counting erasures block by block changes no time, and they add up to what the counters say.
#[test]
fn erasures_are_counted_block_by_block() {
    for ftl in KINDS {
        let mut plain = Host::new(built("", "", ftl, ""));
        let mut counted = Host::new(built("", "", ftl, "[wear]\ncount = true"));
        assert_eq!(plain.scatter(5000, 1), counted.scatter(5000, 1), "{ftl}");
        assert_eq!(plain.card.counters(), counted.card.counters(), "{ftl}");
        assert_eq!(plain.card.erasures(), None);
        let sum: u64 = counted.card.erasures().expect("counted").iter().map(|&e| u64::from(e)).sum();
        assert_eq!(sum, counted.card.counters().erases, "{ftl}");
        assert!(sum > 100, "{ftl}: {sum}");
    }
}

#[test]
fn every_kind_wears_out_and_levels() {
    // The first two have their own tests above.
    for ftl in &KINDS[2..] {
        let mut h = Host::new(built("", "", ftl, "[wear]\nendurance = 20\nspare = 5\nspread = 10"));
        let (mut rng, mut n) = (Rng::new(1, 1), 0u64);
        let end = loop {
            match h.card.submit(h.now, Request::write(rng.below(2048) * 4 * KIB, 4 * KIB)) {
                Ok(c) => h.now = c.done,
                Err(e) => break e,
            }
            n += 1;
            assert!(n < 2_000_000, "{ftl}: never wears out");
        };
        assert_eq!(end, Fault::ReadOnlyMedium, "{ftl}");
        let spread = |every: &str| {
            let mut h = Host::new(built("", "", ftl, &format!("[wear]\nspare = 4\n{every}")));
            let mut rng = Rng::new(2, 2);
            for _ in 0..30_000 {
                h.write(rng.below(1024) * 4 * KIB, 4 * KIB);
            }
            let e = h.card.erasures().expect("followed");
            e.iter().max().unwrap() - e.iter().min().unwrap()
        };
        let (without, with) = (spread(""), spread("static_every = 4"));
        assert!(with * 2 < without, "{ftl}: {with} against {without}");
    }
}

/// A queue changes when things are done, not what is done; a counterfeit and a card with faults are served one by one.
#[test]
fn a_queue_keeps_the_books() {
    for more in ["", "[[throttle]]\nheat = \"1 MiB\"\ncool = \"1 MB/s\"\npercent = 200", "[[stall]]\ntime = \"5 ms\"\nevery_commands = 50"]
    {
        for card in ["queue = 32", "queue = 32\nreal_capacity = \"16 MiB\"\nbeyond = \"drop\""] {
            let mut rng = Rng::new(4, 4);
            let ops = [Op::Read, Op::Write, Op::Write, Op::Flush, Op::Discard];
            let all: Vec<Request> = (0..3000)
                .map(|_| match ops[rng.below(5) as usize] {
                    Op::Flush => Request { op: Op::Flush, at: 0, len: 0, data: Data::Other },
                    op => Request { op, at: rng.below(16_000) * 4096, len: 4096 * (1 + rng.below(8)), data: Data::Other },
                })
                .collect();
            let run = |depth| {
                let mut c = built(card, "dies = 4\nsense = \"300 us\"", PAGES, more);
                let done = c.batch(0, &all, depth).expect("served");
                assert!(done.iter().all(|d| d.done >= d.start) && done.len() == all.len());
                (c.counters().clone(), done.iter().map(|d| d.done).max().unwrap())
            };
            let ((one, slow), (many, quick)) = (run(1), run(32));
            assert_eq!(one, many, "{card} {more}");
            assert!(quick <= slow, "{card} {more}: {quick} {slow}");
        }
    }
}

//! What is asked of today's cards, on cards of today drawn at random, against what their models say.

mod common;
#[path = "today/heat.rs"]
mod heat;
#[path = "common/todays_truth.rs"]
mod todays_truth;

use nandscope::device::{Access, Device, Fill, Op, SimDevice};
use nandscope::finding::{Finding, Quantity};
use nandscope::infer::pipeline;
use nandscope::units::{KIB, MIB, Nanos};
use nandscope_sim::model::{FtlKind, GcWhen, On, SlcFull, Stall, State, Unwritten};
use nandscope_sim::{Model, cards, random, today};

fn asked(experiment: &str, m: &Model, seed: u64) -> Vec<Finding> {
    pipeline::of_run(&common::run_alone(experiment, m, seed, 600))
}

fn of(all: &[Finding], q: Quantity) -> Option<&Finding> {
    all.iter().find(|f| f.quantity == q)
}

/// Right, wrong and undecided answers, and what was wrong.
#[derive(Default)]
struct Tally {
    right: usize,
    undecided: usize,
    wrong: Vec<String>,
    promised: f64,
}

impl Tally {
    fn add(&mut self, f: Option<&Finding>, truth: f64, within: f64, who: &str) {
        match f.and_then(|f| Some((f.number()?, f.confidence))) {
            None => {
                self.undecided += 1;
                if std::env::var_os("NANDSCOPE_SHOW").is_some() {
                    println!("{who}: truth {truth}: {f:?}");
                }
            }
            Some((v, c)) => {
                self.promised += c;
                if v <= truth * within && v >= truth / within {
                    self.right += 1;
                } else {
                    self.wrong.push(format!("{who}: {v} with {c:.2}, truth {truth}: {:?}", f.map(|f| &f.evidence)));
                }
            }
        }
    }

    /// At least such a share of all right, and as many of those decided as were promised, but for chance.
    fn check(&self, what: &str, share: f64) {
        let decided = self.right + self.wrong.len();
        let all = decided + self.undecided;
        println!("{what}: {} right, {} wrong, {} undecided of {all}", self.right, self.wrong.len(), self.undecided);
        for w in &self.wrong {
            println!("  {w}");
        }
        assert!(self.right as f64 >= share * all as f64, "{what}: {} of {all} right", self.right);
        let doubt = (decided as f64 - self.promised).max(0.0);
        assert!(self.wrong.len() as f64 <= doubt + 2.0 * doubt.sqrt() + 1.0, "{what}: {:?}", self.wrong);
    }
}

/// MB/s of sequential writes while there is room and long after, of the same card without noise.
fn rates(m: &Model, chunk: u64) -> (f64, f64) {
    let mut d = SimDevice::new(&random::quiet(m.clone()), 1);
    let mut write = |n: u64| {
        let begun = d.now();
        for i in 0..n {
            d.access(Access { op: Op::Write(Fill::Random(1)), at: (64 << 20) + i % 128 * chunk, len: chunk }).unwrap();
        }
        n as f64 * chunk as f64 * 1e3 / (d.now() - begun).0 as f64
    };
    let fast = write(32);
    write(m.slc.size / chunk + 64);
    (fast, write(400))
}

/// How many cards, and from which seed: those of the test itself, or of a longer run by hand.
fn seeds(few: u64) -> std::ops::Range<u64> {
    let get = |k: &str| std::env::var(k).ok().and_then(|v| v.parse::<u64>().ok());
    let from = get("NANDSCOPE_FROM").unwrap_or(100);
    from..from + get("NANDSCOPE_CARDS").unwrap_or(few)
}

#[test]
fn slc_caches_and_their_rates() {
    let [mut size, mut fast, mut slow, mut idle, mut full] = [(); 5].map(|()| Tally::default());
    let mut invented = vec![];
    for seed in seeds(12) {
        let m = today::card(seed);
        let all = asked("slc-cache", &m, seed);
        let (before, after) = rates(&m, 256 * KIB);
        // A bus slower than the flash shows no cache, nor does one that changes little.
        if m.slc.size == 0 || before < 1.4 * after {
            let f = of(&all, Quantity::SlcCache);
            if f.is_some_and(|f| f.value.is_some()) && m.slc.size == 0 {
                invented.push(format!("{seed}: {f:?}"));
            }
            continue;
        }
        let who = format!("seed {seed} ({:?})", m.slc.full == SlcFull::Fold);
        size.add(of(&all, Quantity::SlcCache), m.truth().slc_cache_full as f64, 1.1, &who);
        let folds = if m.slc.full == SlcFull::Fold { 1.0 } else { 2.0 };
        full.add(of(&all, Quantity::SlcWhenFull), folds, 1.0, &who);
        fast.add(of(&all, Quantity::RateCachedMbS), before, 1.05, &who);
        slow.add(of(&all, Quantity::RateSustainedMbS), after, 1.05, &who);
        idle.add(of(&all, Quantity::IdleTriggerMs), m.slc.idle as f64 / 1e6, 1.3, &who);
    }
    size.check("SLC cache", 0.8);
    full.check("when it is full", 0.8);
    fast.check("rate before", 0.6);
    slow.check("rate after", 0.5);
    idle.check("idle trigger", 0.3);
    assert!(invented.is_empty(), "{invented:?}");
}

#[test]
fn windows_of_the_map() {
    let [mut window, mut piece] = [(); 2].map(|()| Tally::default());
    for seed in seeds(12) {
        let m = today::card(seed);
        let p = &m.ftl.page;
        let all = asked("map-window", &m, seed);
        if p.map_cache == 0 || p.map_miss == 0 || p.map_cache * 2 > m.card.capacity {
            let f = of(&all, Quantity::MapWindowRead);
            assert!(p.map_cache > 0 || f.is_none_or(|f| f.value.is_none()), "seed {seed}: {f:?}");
            continue;
        }
        window.add(of(&all, Quantity::MapWindowRead), p.map_cache as f64, 1.5, &format!("seed {seed}"));
        piece.add(of(&all, Quantity::MapPiece), p.map_span as f64, 1.0, &format!("seed {seed}"));
    }
    window.check("map window", 0.85);
    piece.check("map piece", 0.8);
}

/// By page whether or not there is a cache; and the window of writes.
#[test]
fn page_mapped_and_windows_of_writes() {
    let [mut mapping, mut window] = [(); 2].map(|()| Tally::default());
    for seed in seeds(12) {
        let m = today::card(seed);
        mapping.add(of(&asked("page-mapping", &m, seed), Quantity::Mapping), 2.0, 1.0, &format!("seed {seed}"));
        let p = &m.ftl.page;
        let all = asked("map-window-write", &m, seed);
        if p.map_cache == 0 || p.map_miss == 0 || p.map_cache * 2 > m.card.capacity {
            let f = of(&all, Quantity::MapWindowWrite);
            assert!(p.map_cache > 0 || f.is_none_or(|f| f.value.is_none()), "seed {seed}: {f:?}");
            continue;
        }
        window.add(of(&all, Quantity::MapWindowWrite), p.map_cache as f64, 1.5, &format!("seed {seed}"));
    }
    mapping.check("mapping", 0.75);
    window.check("map window of writes", 0.7);
}

/// A card that was never written has nothing to copy, so that its merges cost nothing: it is filled before it is judged.
#[test]
fn merges_of_empty_cards_are_not_overlooked() {
    let mut wrong = vec![];
    for seed in seeds(12) {
        let mut m = random::card(seed);
        if m.ftl.kind != FtlKind::BlockMap || m.slc.size > 0 {
            continue;
        }
        (m.nand.unwritten, m.nand.unwritten_read, m.card.state) = (Unwritten::Flat, 5_000, State::Empty);
        wrong.extend(asked("page-mapping", &m, seed).into_iter().filter(|f| f.value.is_some()).map(|f| format!("seed {seed}: {f:?}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Cards that map by block are not said to map by page, nor to have a window.
#[test]
fn old_cards_have_none_of_it() {
    let mut wrong = vec![];
    for seed in seeds(10) {
        let m = random::card(seed);
        if matches!(m.ftl.kind, FtlKind::PageMap | FtlKind::None) {
            continue;
        }
        for f in ["slc-cache", "page-mapping", "map-window"].iter().flat_map(|e| asked(e, &m, seed)) {
            let none = f.quantity == Quantity::Mapping || f.quantity == Quantity::SlcCache && m.slc.size == 0;
            if none && f.value.is_some() {
                wrong.push(format!("seed {seed}: {f:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_queue_gains_and_none_gains_nothing() {
    let model = |name: &str| Model::parse(cards::text(name).unwrap(), name).unwrap();
    let gain = |m: &Model, seed| of(&asked("queue-depth", m, seed), Quantity::QueueGain).unwrap().number().unwrap();
    for seed in 1..4 {
        let m = model("modern-a2-128gb");
        assert!(gain(&m, seed) > 1.5, "seed {seed}: {}", gain(&m, seed));
        assert_eq!(gain(&model("modern-a1-32gb"), seed), 1.0);
    }
}

/// Stalls belong to single requests: a card that has some gains by its queue nonetheless.
#[test]
fn a_queue_gains_beside_stalls() {
    let [mut reads, mut writes] = [(); 2].map(|()| Tally::default());
    for seed in seeds(40) {
        let mut m = today::card(seed);
        if m.card.queue < 2 {
            continue;
        }
        m.stall = vec![Stall { on: On::Write, time: 20_000_000, every_bytes: 4 * MIB, every_commands: 0, random: true }];
        for (name, q, tally) in
            [("queue-depth", Quantity::QueueGain, &mut reads), ("queue-depth-write", Quantity::QueueGainWrite, &mut writes)]
        {
            let read = q == Quantity::QueueGain;
            let gain = |m: &Model| todays_truth::queue_gain(&mut SimDevice::new(m, seed), read);
            let truth = gain(&m);
            tally.add(of(&asked(name, &m, seed), q), truth, 1.05, &format!("seed {seed}"));
            let without = gain(&Model { stall: vec![], ..m.clone() });
            assert!(truth > 1.0 + (without - 1.0) / 2.0, "seed {seed}: {truth} with stalls, {without} without");
        }
    }
    reads.check("queue gain beside stalls", 0.8);
    writes.check("queue gain of writes beside stalls", 0.5);
}

/// The less data a card holds, the larger a cache that shrinks with them: sizes with the region full and empty.
#[test]
fn caches_of_empty_cards_are_larger() {
    let mut empty = Tally::default();
    for seed in seeds(24) {
        let m = today::card(seed);
        let (before, after) = rates(&m, 256 * KIB);
        // What takes longer than the time to fill and to empty four times is asked by more time, not by this test.
        if m.slc.size == 0 || m.slc.size > 256 * MIB || before < 1.4 * after {
            continue;
        }
        let found = common::probed(&["slc-cache", "slc-fill"], &m, seed, 1800);
        empty.add(found.get(Quantity::SlcCacheEmpty), m.truth().slc_cache as f64, 1.1, &format!("seed {seed}"));
    }
    empty.check("SLC cache of an empty card", 0.6);
}

/// Caches in the memory of a card, and whether a flush waits for what they hold; a card without one is not accused of anything.
#[test]
fn flushes_that_wait_and_that_do_not() {
    let [mut size, mut waits] = [(); 2].map(|()| Tally::default());
    let mut bounds = 0;
    for seed in seeds(24) {
        let m = todays_truth::with_flush(seed);
        let all = asked("flush", &m, seed);
        if m.card.cache == 0 {
            let said: Vec<_> = all.iter().filter(|f| f.quantity != Quantity::FlushMs && f.value.is_some()).collect();
            assert!(said.is_empty(), "seed {seed}: {said:?}");
            continue;
        }
        let who = format!("seed {seed}");
        let f = of(&all, Quantity::VolatileCache);
        if let Some(least) = f.and_then(|f| f.at_least) {
            assert!(least.0 <= m.card.cache as f64, "{who}: {f:?}");
            bounds += 1;
        }
        size.add(f, m.card.cache as f64, 1.15, &who);
        waits.add(of(&all, Quantity::FlushWaits), if m.card.flush_defers { 2.0 } else { 1.0 }, 1.0, &who);
        let cost = of(&all, Quantity::FlushMs).and_then(|f| f.number()).unwrap();
        let least = (m.card.flush + m.host.command) as f64 / 1e6;
        assert!(cost > 0.9 * least, "seed {seed}: {cost} ms, {least} at least");
    }
    size.check("volatile cache", 0.0);
    assert!(bounds + size.right >= 6, "{bounds} bounds and {} sizes", size.right);
    waits.check("flush waits", 0.3);
}

/// A small card, whose spare flash is soon used up: the rate found is that of long after.
#[test]
fn the_steady_rate_is_that_of_long_after() {
    let text = "name = \"steady\"\nabout = \"1 GiB by page\"\n[host]\ncommand = \"50 us\"\nrate = \"80 MB/s\"\njitter = \"5 us\"\n[card]\ncapacity = \"1 GiB\"\ncommand = \"50 us\"\n[nand]\npage = \"4 KiB\"\naccess_unit = \"4 KiB\"\nwrite_unit = \"4 KiB\"\nerase_block = \"1 MiB\"\nprogram = \"300 us\"\ncopy = \"350 us\"\nerase = \"3 ms\"\n[ftl]\nkind = \"page-map\"\nover_provisioning = 0.15\n";
    let m = Model::parse(text, "steady").unwrap();
    for seed in 1..3 {
        let all = pipeline::of_run(&common::run_alone("steady-state", &m, seed, 7200));
        let found = of(&all, Quantity::RandomWriteSteadyIops).unwrap();
        let mut d = SimDevice::new(&m, seed + 100);
        let (mut x, mut begun) = (seed, Nanos(0));
        for i in 0..1_500_000u64 {
            if i == 1_000_000 {
                begun = d.now();
            }
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            d.access(Access { op: Op::Write(Fill::Random(1)), at: (x >> 33) % (1 << 18) * 4096, len: 4096 }).unwrap();
        }
        let truth = 500_000.0 * 1e9 / (d.now() - begun).0 as f64;
        let v = found.number().unwrap_or_else(|| panic!("{found:?}"));
        println!("steady {v}, truth {truth}");
        assert!((v / truth - 1.0).abs() < 0.05, "{v} IOPS, {truth} long after: {found:?}");
        // The same card after its upper half was discarded, and with longer writes.
        for (q, size, half) in
            [(Quantity::Steady16kIops, 16, false), (Quantity::Steady64kIops, 64, false), (Quantity::Steady50Iops, 4, true)]
        {
            let mut d = SimDevice::new(&m, seed + 200);
            if half {
                d.access(Access { op: Op::Discard, at: 512 << 20, len: 512 << 20 }).unwrap();
            }
            let places = (if half { 512 } else { 1024 }) * 1024 / size;
            let (writes, mut x, mut begun) = (6_000_000 / size, seed, Nanos(0));
            for i in 0..writes {
                if i == writes / 2 {
                    begun = d.now();
                }
                x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                d.access(Access { op: Op::Write(Fill::Random(1)), at: (x >> 33) % places * size * 1024, len: size * 1024 }).unwrap();
            }
            let truth = (writes - writes / 2) as f64 * 1e9 / (d.now() - begun).0 as f64;
            let f = of(&all, q).unwrap();
            let v = f.number().unwrap_or_else(|| panic!("{f:?}"));
            println!("{q} {v}, truth {truth}");
            assert!((v / truth - 1.0).abs() < 0.05, "{v} IOPS, {truth} long after: {f:?}");
        }
        let back = of(&all, Quantity::DiscardRestores).and_then(|f| f.number()).unwrap();
        assert!(back > 1.5, "a card without data has nothing to collect: {back}");
    }
}

/// A card that does not write what is there already, at the same place.
struct Skips {
    inner: SimDevice,
    there: std::collections::HashMap<(u64, u64), Fill>,
    skipped: usize,
}

impl Device for Skips {
    fn geometry(&self) -> &nandscope::device::Geometry {
        self.inner.geometry()
    }
    fn access(&mut self, a: Access) -> nandscope::device::Result<nandscope::device::Timed> {
        if let Op::Write(fill) = a.op
            && self.there.insert((a.at, a.len), fill) == Some(fill)
        {
            self.skipped += 1;
            let (start, took) = (self.inner.now(), Nanos(100_000));
            self.inner.idle(took);
            return Ok(nandscope::device::Timed { start, took });
        }
        self.inner.access(a)
    }
    fn now(&self) -> Nanos {
        self.inner.now()
    }
    fn idle(&mut self, d: Nanos) {
        self.inner.idle(d);
    }
    fn load(&mut self, at: u64, into: &mut [u8]) -> nandscope::device::Result<()> {
        self.inner.load(at, into)
    }
    fn store(&mut self, at: u64, from: &[u8]) -> nandscope::device::Result<()> {
        self.inner.store(at, from)
    }
}

/// Places are written again and again, never with what is there: a card that skips such writes shows the cache that it has.
#[test]
fn a_card_that_skips_what_is_there_is_measured_all_the_same() {
    for (seed, experiment) in [(3, "slc-cache"), (4, "page-mapping"), (5, "pauses")] {
        let m = today::card(seed);
        let mut card = Skips { inner: SimDevice::new(&m, seed), there: Default::default(), skipped: 0 };
        let run = common::run_on(experiment, &mut card, &m, seed, 600);
        let longest = run.samples.iter().filter(|s| s.is_write()).count();
        assert!(card.skipped == 0 && longest > 500, "{experiment}: {} of {longest} writes skipped", card.skipped);
    }
}

/// Where writes need a piece of the map that is not in memory they take longer by that, with more places than pieces: it is no merge.
#[test]
fn fetching_the_map_is_no_merge() {
    for seed in 1..=6 {
        let mut m = today::card(seed);
        m.slc = Default::default();
        let p = &mut m.ftl.page;
        (p.map_span, p.map_miss) = ((1 + seed % 4) * MIB, (4 + seed) * 1_000_000);
        p.map_cache = (8 + 5 * seed) * p.map_span;
        let all = common::probed(&["write-unit", "open-au-linear", "open-au-random"], &m, seed, 600);
        let f = all.get(Quantity::Mapping);
        assert!(f.is_none_or(|f| f.number().is_none_or(|n| n == 2.0)), "seed {seed}: {f:?}");
    }
}

/// What a discard costs and what a discarded place reads as, on cards drawn at random.
#[test]
fn a_discard_is_timed_and_what_is_read_afterwards_is_told() {
    use nandscope_sim::model::Discarded;
    for seed in 1..=12 {
        let mut m = today::card(seed);
        m.card.discard = 200_000 + seed * 900_000;
        m.card.discarded = if seed % 2 == 0 { Discarded::Zeros } else { Discarded::Old };
        let run = common::run_with_stamps("discard", &m, seed, 120);
        let all = pipeline::of_run(&run);
        let reads = of(&all, Quantity::DiscardReads).unwrap();
        assert_eq!(reads.number(), Some(if seed % 2 == 0 { 0.0 } else { 2.0 }), "seed {seed}: {reads:?}");
        let cost = of(&all, Quantity::DiscardMs).unwrap();
        let truth = (m.card.discard + m.host.command + m.card.command) as f64 / 1e6;
        assert!(cost.number().is_some_and(|v| v >= 0.95 * truth && v <= 1.5 * truth + 1.0), "seed {seed}: {truth} ms, {cost:?}");
    }
}

/// Reads that wait for what a write cache still holds, and cards on which they do not wait.
#[test]
fn reads_right_after_writes() {
    let [mut longer, mut until, mut none] = [(); 3].map(|()| Tally::default());
    for seed in seeds(40) {
        let m = todays_truth::with_cache(seed);
        let (us, ms) = todays_truth::read_after_writes(&mut todays_truth::still(&m));
        let all = asked("mixed-reads", &m, seed);
        let who = format!("seed {seed}");
        if us == 0.0 {
            none.add(of(&all, Quantity::ReadAfterWriteUs), 0.0, 1.0, &who);
            assert!(of(&all, Quantity::ReadSettlesMs).is_none(), "{who}: {all:?}");
            continue;
        }
        longer.add(of(&all, Quantity::ReadAfterWriteUs), us, 1.15, &who);
        until.add(of(&all, Quantity::ReadSettlesMs), ms, 1.25, &who);
    }
    longer.check("reads after writes", 0.8);
    until.check("until when", 0.8);
    none.check("reads that do not wait", 0.7);
}

/// What a pause brings back, and how long it has to be; a card without a cache that is emptied at rest gains nothing.
#[test]
fn pauses_that_help_and_that_do_not() {
    let [mut gain, mut pause] = [(); 2].map(|()| Tally::default());
    for seed in seeds(40) {
        let mut m = today::card(seed);
        let who = format!("seed {seed}");
        let (times, ms) = todays_truth::pauses(&mut todays_truth::still(&m), m.slc.size);
        let all = asked("pauses", &m, seed);
        gain.add(of(&all, Quantity::PauseGain), times, 1.1, &who);
        if times > 1.1 {
            pause.add(of(&all, Quantity::PauseMs), ms, 1.5, &who);
        }
        if seed.is_multiple_of(4) {
            (m.slc, m.ftl.page.when) = (Default::default(), GcWhen::Foreground);
            let all = asked("pauses", &m, seed);
            let said = of(&all, Quantity::PauseGain).and_then(|f| f.number());
            assert!(said.is_none_or(|v| v == 1.0), "{who} without a cache: {all:?}");
        }
    }
    gain.check("gain of a pause", 0.6);
    pause.check("pause that helps", 0.8);
}

/// Amplification from the steady rates at three fills, against what the simulator copied; and a card that copies nothing has none.
#[test]
fn amplification_from_times() {
    let mut amplified = Tally::default();
    let (mut held, mut judged) = (0, 0);
    let mut flat = None;
    for seed in seeds(40) {
        let Some(m) = todays_truth::small(seed) else { continue };
        let (times, _) = todays_truth::amplification(&m);
        let all = pipeline::of_run(&common::run_alone("steady-state", &m, seed, 40_000));
        let who = format!("seed {seed}");
        amplified.add(of(&all, Quantity::WriteAmplification), times, 1.2, &who);
        // Whichever block a card empties, the flash that takes part lies within the interval.
        if let Some([low, high]) = of(&all, Quantity::OverProvisioning).and_then(|f| f.interval) {
            judged += 1;
            held += usize::from((low..=high).contains(&todays_truth::spare(&m)));
        }
        flat.get_or_insert((m, seed));
    }
    amplified.check("write amplification", 0.6);
    assert!(judged >= 3 && held * 10 >= judged * 8, "effective spare flash: {held} of {judged} intervals hold it");
    let (mut m, seed) = flat.unwrap();
    m.ftl.kind = FtlKind::None;
    m.slc = Default::default();
    let all = pipeline::of_run(&common::run_alone("steady-state", &m.checked().unwrap(), seed, 40_000));
    assert!(of(&all, Quantity::RandomWriteSteadyIops).unwrap().number().is_some(), "{all:?}");
    assert!(of(&all, Quantity::WriteAmplification).unwrap().number().is_none(), "{all:?}");
}

//! Cards that lie, drawn at random, of every kind, and honest ones beside them: `check` names the first within a minute of the device's
//! time and accuses none of the others. NANDSCOPE_CARDS=1000 says how many of each.

#[path = "common/in_turn.rs"]
mod in_turn;
#[path = "common/skip.rs"]
mod skip;

use nandscope::check::examine::{Order, examine};
use nandscope::check::judge::{Seen, answers};
use nandscope::check::measure::{WINDOW, displacing};
use nandscope::check::{Answer, Outcome};
use nandscope::device::{Access, Device, Fill, Op, SimDevice};
use nandscope::host::faults::Noticed;
use nandscope::units::Nanos;
use nandscope_sim::Model;
use nandscope_sim::faulty::{self, LIES, Lie};
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

const MIB: u64 = 1 << 20;

struct Checked {
    outcome: Outcome,
    answers: Vec<Answer>,
    seconds: f64,
    size: Option<f64>,
    sure: bool,
}

fn check(m: &Model, seed: u64, seconds: f64, window: u64, reinsert: bool) -> Checked {
    check_on(&mut SimDevice::new(m, seed).with_content(), seed, seconds, window, reinsert)
}

fn check_on(device: &mut SimDevice, seed: u64, seconds: f64, window: u64, reinsert: bool) -> Checked {
    let (stop, size, began) = (AtomicBool::new(false), device.geometry().size, device.now());
    let out = || Ok(true);
    let order = Order {
        region: 0..size,
        write: true,
        time: Nanos::from_secs_f64(seconds),
        put_back: false,
        seed,
        stop: &stop,
        window,
        reinsert: if reinsert { Some(&out) } else { None },
    };
    let (examined, noticed) = (examine(device, &order, &mut |_| {}).unwrap(), Noticed::default());
    let answers = answers(&Seen::of(size, &examined, &noticed));
    let found = examined.findings.get(nandscope::finding::Quantity::Capacity);
    let (sizes, sure) = (found.and_then(|f| f.number()), found.is_some_and(|f| f.confidence >= 0.9));
    Checked { outcome: Outcome::of(&answers), answers, seconds: (device.now() - began).secs(), size: sizes, sure }
}

/// Three of each kind, or 500.
fn cards() -> u64 {
    let asked = std::env::var("NANDSCOPE_CARDS").ok().and_then(|n| n.parse().ok());
    asked.unwrap_or_else(|| if skip::short("all but 42 random cards of 500") { 42 } else { 500 })
}

/// The first seed of a family; NANDSCOPE_SEEDS=300000 draws other cards.
fn seed(family: u64) -> u64 {
    std::env::var("NANDSCOPE_SEEDS").ok().and_then(|n| n.parse::<u64>().ok()).unwrap_or(0) + family
}

/// The longest a write may take by the SD standard (SDXC: 500 ms busy). A minute has 120 of these at the most, no matter what
/// is tried: too few for a fault in one place of 256, unless writes that follow each other take less.
const ALLOWED: f64 = 0.5;

/// Does the card without its fault take longer than the standard allows for 4 KiB, on average, written all over it or at random places of
/// 64 MiB?
fn slow(seed: u64) -> bool {
    const N: u64 = 32;
    let model = faulty::honest(seed);
    let mean = |step: u64| {
        let mut d = SimDevice::new(&model, seed);
        let from = d.geometry().size / (N + 1) / 4096 * 4096;
        for i in 1..=N {
            // 7 and 32 have no common divisor: neither upwards nor downwards.
            d.access(Access { op: Op::Write(Fill::Random(1)), at: from + i * 7 % N * step, len: 4096 }).unwrap();
        }
        d.now().secs() / N as f64
    };
    mean(model.card.capacity / (N + 2) / 4096 * 4096) > ALLOWED
        || mean((model.card.capacity / (N + 2)).min(2 * MIB) / 4096 * 4096) > ALLOWED
}

/// Runs `one` for each number.
fn all<T: Send>(n: u64, one: impl Fn(u64) -> T + Sync) -> Vec<T> {
    in_turn::all(&(0..n).collect::<Vec<u64>>(), |&i| one(i))
}

#[test]
fn no_honest_card_is_accused() {
    let seen = all(cards(), |i| {
        let seed = seed(70_000) + i;
        let c = check(&faulty::honest(seed), seed, 60.0, WINDOW, i % 4 == 0);
        assert!(!matches!(c.outcome, Outcome::Counterfeit | Outcome::Failing), "{seed}: {:#?}", c.answers);
        (c.outcome == Outcome::Fine, c.seconds)
    });
    let fine = seen.iter().filter(|s| s.0).count();
    println!("{fine} of {} honest cards are called fine, none is accused", seen.len());
    assert!(2 * fine > seen.len(), "{fine}");
}

#[test]
fn cards_that_lie_are_named_within_a_minute() {
    let n = cards();
    let seen = all(n, |i| {
        let lie = LIES[(i % LIES.len() as u64) as usize];
        let seed = seed(80_000) + i;
        let m = faulty::card(seed, lie);
        let c = check(&m, seed, 60.0, WINDOW, lie == Lie::Session);
        // The last access of a check may run over.
        let (named, slow) = (matches!(c.outcome, Outcome::Counterfeit | Outcome::Failing) && c.seconds < 61.0, slow(seed));
        if !named {
            println!("{}", m.to_toml());
            println!("{seed} {lie:?} (slow: {slow}) not named within a minute: {:?} after {:.0} s", c.outcome, c.seconds);
            c.answers.iter().take(3).for_each(|a| println!("    {:?} {:?}: {}", a.question, a.verdict, a.because));
        }
        // A size that is told is the right one.
        let border = matches!(lie, Lie::Wrap | Lie::Limbo | Lie::Error | Lie::Chain | Lie::Cached);
        if let Some(size) = c.size.filter(|s| c.sure && border && *s < m.card.capacity as f64) {
            let off = (size - m.card.real_capacity as f64).abs();
            assert!(
                off <= MIB as f64,
                "{seed} {lie:?}: says {size}, holds {} (front {}, repeats {})",
                m.card.real_capacity,
                m.card.front,
                m.card.repeats
            );
        }
        // What the minute could not show is not known; it is no pass.
        assert!(named || c.outcome != Outcome::Fine, "{seed} {lie:?}: {:#?}", c.answers);
        (lie, named, c.seconds, slow)
    });
    let mut kinds: BTreeMap<Lie, (u32, u32, f64)> = BTreeMap::new();
    for (lie, named, seconds, _) in &seen {
        let k = kinds.entry(*lie).or_default();
        *k = (k.0 + u32::from(*named), k.1 + 1, k.2.max(*seconds));
    }
    kinds.iter().for_each(|(lie, (named, of, most))| println!("{lie:?}: {named} of {of} named, at most {most:.0} s"));
    let of = |slow: bool| (seen.iter().filter(|s| s.3 == slow && s.1).count(), seen.iter().filter(|s| s.3 == slow).count());
    let ((named, all), (late, slow)) = (of(false), of(true));
    println!("{named} of {all} named; {late} of {slow} that are slower than the standard allows");
    assert!(slow * 5 < n as usize, "{slow} are too slow");
    assert!(named as f64 >= 0.995 * all as f64, "{named} of {all} within the standard");
    assert!((named + late) as f64 >= 0.995 * n as f64, "{} of {n}", named + late);
}

/// What a card holds accuses nobody: the same bytes at many places, sectors that an earlier check wrote and somebody copied elsewhere.
#[test]
fn old_content_accuses_no_honest_card() {
    for (seed, kind) in [(1, "zeros"), (2, "one pattern"), (3, "copies"), (4, "an earlier check, copied"), (5, "an earlier check")] {
        let m = faulty::honest(70_500 + seed);
        let mut device = SimDevice::new(&m, seed).with_content();
        let size = device.geometry().size;
        if kind.starts_with("an earlier check") {
            check_on(&mut device, seed, 60.0, WINDOW, false);
        }
        let mut bytes = vec![0; MIB as usize];
        match kind {
            "one pattern" => bytes.fill(0xa5),
            "copies" => Fill::Random(7).render(0, &mut bytes),
            "an earlier check, copied" => device.load(size / 3 / (4 * MIB) * 4 * MIB + 4 * MIB, &mut bytes).unwrap(),
            _ => {}
        }
        if kind != "an earlier check" {
            for i in 0..256 {
                device.store(size / 256 / MIB * MIB * i + i % 3 * 4096, &bytes).unwrap();
            }
        }
        let c = check_on(&mut device, seed + 50, 60.0, WINDOW, false);
        assert!(!matches!(c.outcome, Outcome::Counterfeit | Outcome::Failing), "{kind}: {:#?}", c.answers);
    }
}

/// A cache larger than what a check writes hides missing flash from it, and the answer says which size would. Taken out, or with as much
/// written, the card is named.
#[test]
fn a_large_cache_in_front_is_displaced_or_forgotten() {
    for (seed, front) in [(1, 96 * MIB), (2, 256 * MIB), (5, 512 * MIB)] {
        let mut m = faulty::honest(90_000 + seed);
        m.card.capacity = 16 << 30;
        (m.card.real_capacity, m.card.beyond, m.card.front) = (m.card.capacity / 4, nandscope_sim::model::Beyond::Drop, front);
        let mut m = Model::parse(&m.to_toml(), &m.name).unwrap();
        let hidden = check(&m, seed, 90.0, WINDOW, false);
        let told = hidden.outcome == Outcome::Counterfeit || hidden.answers[0].because.contains("a cache of more than");
        assert!(told || hidden.outcome == Outcome::NotKnown, "{:#?}", hidden.answers);
        let out = check(&m, seed, 90.0, WINDOW, true);
        assert_eq!(out.outcome, Outcome::Counterfeit, "{front}: {:#?}", out.answers);
        assert!(out.answers[0].because.contains("what was written at byte"), "{:#?}", out.answers);
        let more = check(&m, seed, 1800.0, displacing(front), false);
        assert_eq!(more.outcome, Outcome::Counterfeit, "{front}: {:#?}", more.answers);
        // One that wraps round behind its cache.
        m.card.beyond = nandscope_sim::model::Beyond::Wrap;
        let more = check(&m, seed, 1800.0, displacing(front), false);
        assert_eq!(more.outcome, Outcome::Counterfeit, "{front}: {:#?}", more.answers);
        // One that is a little larger than what was written still hides what was written last: no pass.
        m.card.front = displacing(front) - 8 * MIB;
        let nearly = check(&m, seed, 1800.0, displacing(front) - 16 * MIB, false);
        let (capacity, outcome) = (&nearly.answers[0], nearly.outcome);
        assert!(outcome != Outcome::Failing || capacity.verdict != nandscope::check::Verdict::Pass, "{front}: {:#?}", nearly.answers);
    }
}

/// Each fault in its own words.
#[test]
fn each_fault_has_its_own_words() {
    for (lie, words) in [
        (Lie::Wrap, "came back at byte"),
        (Lie::Chain, "addresses repeat after"),
        (Lie::Shows, "came back at byte"),
        (Lie::Bad, "did not come back"),
        (Lie::Changing, "read differently each time"),
        (Lie::Another, "show another place (at byte"),
        (Lie::Session, "it forgot what was written and flushed before it was taken out"),
        (Lie::Discard, "a small discard damages what lies beside it"),
    ] {
        for seed in [300, 301, 302] {
            let mut m = faulty::card(seed, lie);
            m.card.fails_every = m.card.fails_every.max(if lie == Lie::Session { 1 } else { 16 });
            let c = check(&m, seed, 90.0, WINDOW, lie == Lie::Session);
            let said: Vec<&str> = c.answers.iter().map(|a| a.because.as_str()).collect();
            // A bad part may lie where the check writes most.
            let with_evidence = said.iter().any(|s| s.contains(words) || lie == Lie::Bad && s.contains("show zeros"));
            assert!(with_evidence, "{seed} {lie:?} ({} MiB): {said:#?}", m.card.capacity / MIB);
        }
    }
    // Read-only in secret: every write is acknowledged, and none is kept.
    let mut m = faulty::honest(310);
    m.card.keeps = nandscope_sim::model::Keeps::Old;
    let c = check(&m, 1, 90.0, WINDOW, false);
    assert!(matches!(c.outcome, Outcome::Failing | Outcome::Counterfeit), "{:#?}", c.answers);
}

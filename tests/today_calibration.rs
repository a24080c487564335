//! Is what is told of today's cards at 85 % right 85 times of 100, no less and no more? Cards of two families (`common/todays.rs`), of seeds that nothing
//! was fitted to; what a single card of them says is never printed. NANDSCOPE_CARDS sets how many of each.

#[path = "common/bench_card.rs"]
mod bench_card;
#[path = "common/in_turn.rs"]
mod in_turn;
#[path = "common/todays.rs"]
mod todays;
#[path = "common/todays_alone.rs"]
mod todays_alone;
#[path = "common/todays_bins.rs"]
mod todays_bins;
#[path = "common/todays_truth.rs"]
mod todays_truth;

use nandscope::finding::Quantity;
use nandscope::infer::confidence::{Maps, Says, Source};
use todays::{Card, KINDS, by_name, cards, probe_all};
use todays_bins::{Answer, Bin, answers, bins, table};

/// Seeds that are kept for this.
const FIRST: u64 = 2_200_001;

/// What is told of so many cards of these kinds that are asked this.
fn told(kinds: &[&'static str], n: u64, asked: &str) -> Vec<Answer> {
    let n = std::env::var("NANDSCOPE_CARDS").map_or(n, |n| n.parse().expect("NANDSCOPE_CARDS is a number"));
    let all = probe_all(&cards(kinds, FIRST, n), by_name(asked), |_, _| {});
    let mut all: Vec<Answer> = all.iter().flat_map(|p| answers(p.card, &p.truth, &p.told)).collect();
    // Cards that are asked anything else are all mapped by page: of them no mapping can be wrong.
    all.retain(|a| asked == "all" || a.quantity != Quantity::Mapping);
    // What has no map keeps its score, for reasons that these cards know nothing of (docs/todays-cards.md).
    all.retain(|a| Maps::shipped().0.contains_key(&(Source::Today, a.quantity, Says::of(a.bound))));
    all
}

/// What is claimed is what is right, as far as so few cards can say; `docs/todays-cards.md` has the table of many.
fn holds(family: &str, all: &[Answer]) {
    println!("{family}\n{}", table(all));
    for b in bins(all) {
        assert!(b.holds(), "{family}: {b:?}");
    }
}

#[test]
fn cards_of_the_simulator() {
    let mut all = told(&["today"], 60, "only");
    all.extend(told(&["today", "old"], 8, "all"));
    assert!(all.len() > 150, "hardly anything was decided: {}", all.len());
    holds("simulator", &all);
}

#[test]
fn cards_of_the_second_family() {
    let mut all = told(&["page"], 24, "only");
    all.extend(told(&KINDS, 8, "all"));
    assert!(all.len() > 50, "hardly anything was decided: {}", all.len());
    holds("second family", &all);
}

/// What is asked on request, of how many cards.
#[test]
fn of_the_simulator_on_request() {
    let asked =
        [("queue", 30), ("flush", 30), ("mixed-reads", 30), ("discard", 20), ("pauses", 20), ("slc-fill", 20), ("steady-state", 12)];
    let all: Vec<Answer> = asked.iter().flat_map(|(name, n)| told(&["today"], *n, name)).collect();
    assert!(all.len() > 150, "hardly anything was decided: {}", all.len());
    holds("simulator, on request", &all);
}

#[test]
fn of_the_second_family_on_request() {
    let asked = [("queue", 12), ("flush", 24), ("mixed-reads", 40), ("discard", 20), ("pauses", 12), ("slc-fill", 6), ("steady-state", 1)];
    let all: Vec<Answer> = asked.iter().flat_map(|(name, n)| told(&["page"], *n, name)).collect();
    assert!(all.len() > 60, "hardly anything was decided: {}", all.len());
    holds("second family, on request", &all);
}

/// A bin is off where it lies further from its claim than three points and than chance would bring it, on either side.
#[test]
fn a_bin_that_is_off_is_seen() {
    let bin =
        |right: usize, given: usize| Bin { low: 0.8, high: 0.9, given, right, claimed: 0.85, error: (0.85 * 0.15 / given as f64).sqrt() };
    for (right, given, holds) in
        [(85, 100, true), (93, 100, true), (95, 100, false), (75, 100, false), (879, 1000, true), (881, 1000, false)]
    {
        assert_eq!(bin(right, given).holds(), holds, "{right} of {given}");
    }
    let card = Card { kind: "today", seed: 1 };
    let a = |confidence: f64, right: bool| Answer { card, quantity: Quantity::SlcCache, bound: false, confidence, right };
    let all = bins(&[a(0.65, true), a(0.92, true), a(0.92, false), a(0.99, true)]);
    assert_eq!(all.iter().map(|b| (b.low, b.right, b.given)).collect::<Vec<_>>(), [(0.6, 1, 1), (0.9, 1, 2), (0.95, 1, 1)]);
}

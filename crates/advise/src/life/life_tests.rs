use super::survey::{ALL, BRANDS, Brand};
use super::*;
use crate::finding::Finding;
use crate::saved::bare as report;
use std::collections::BTreeMap;

fn plain(size: u64) -> Card {
    Card { name: "a card".into(), size, flash: Flash::Tlc, flash_source: "test".into(), rated: None, done: 0.0, done_source: "test".into() }
}

fn one() -> Amplification {
    Amplification { low: 1.0, high: 1.0, counted: false, source: "test".into() }
}

fn daily(bytes: f64) -> Workload {
    Workload { name: "test".into(), per_day: [bytes; 2], source: "test".into(), writes: Writes::InOrder }
}

/// Cards of a brand inside the 80 % interval made without it, and all of them.
fn inside(b: &Brand) -> (u32, u32) {
    let s = spread(b.event, Some(b.name));
    let (low, high) = (s.quantile(0.1), s.quantile(0.9));
    let held = b.cards.iter().filter(|c| (low..=high).contains(&c.0)).map(|c| c.1).sum();
    (held, b.cards.iter().map(|c| c.1).sum())
}

/// Each brand of the survey left out in turn: the interval that the others give holds four of five of its cards, and not all of them.
#[test]
fn the_interval_of_80_percent_holds_on_brands_that_were_left_out() {
    for (event, says) in [(Event::FirstError, 82), (Event::SomeBad, 87)] {
        let sums = BRANDS.iter().filter(|b| b.event == event).map(inside).fold((0, 0), |s, x| (s.0 + x.0, s.1 + x.1));
        let share = f64::from(sums.0) / f64::from(sums.1);
        assert!(share >= 0.75, "{event:?}: too narrow, {} of {}", sums.0, sums.1);
        assert!(share <= 0.92, "{event:?}: so wide that it says nothing, {} of {}", sums.0, sums.1);
        assert_eq!((100.0 * share).round() as u32, says, "the text that is printed");
    }
    let text = life(plain(1 << 35), None, one()).assumptions.join("\n");
    assert!(text.contains("held 82 %") && text.contains("87 %"), "{text}");
    // A lognormal of mean and median alone would be too narrow for the first error.
    let narrow: u32 = BRANDS
        .iter()
        .filter(|b| b.event == Event::FirstError)
        .flat_map(|b| b.cards)
        .filter(|c| (399.0..=5648.0).contains(&c.0))
        .map(|c| c.1)
        .sum();
    assert!(narrow <= 12, "{narrow} of 22");
}

/// The table in the source is the published one, where that lies beside the repository.
#[test]
fn figures_are_those_of_the_survey() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/published/endurance.tsv");
    let Ok(text) = std::fs::read_to_string(path) else {
        println!("skipped: no published survey beside the repository");
        return;
    };
    let rows: Vec<Vec<&str>> = text.lines().filter(|l| !l.starts_with('#')).skip(1).map(|l| l.split('\t').collect()).collect();
    let number = |s: &str| s.parse::<f64>().ok();
    let event = |e: Event| match e {
        Event::FirstError => "first_error",
        Event::SomeBad => "0.1%_bad",
        Event::Death => "complete_failure",
    };
    for a in &ALL {
        let r = rows.iter().find(|r| r[0] == event(a.event) && r[1] == "all").unwrap();
        assert_eq!((r[2].parse::<usize>().unwrap(), number(r[3]), number(r[4])), (a.cards, Some(a.mean), Some(a.median)));
    }
    let mut seen = BTreeMap::new();
    for b in &BRANDS {
        let name = if b.name == "Silicon Power" { "SP (Silicon Power)" } else { b.name };
        let r = rows.iter().find(|r| r[0] == event(b.event) && r[1].starts_with(&format!("brand {name}"))).unwrap();
        *seen.entry(b.name).or_insert(0) += 1;
        let cards: u32 = b.cards.iter().map(|c| c.1).sum();
        assert_eq!(cards.to_string(), r[2], "{}", b.name);
        let all = || b.cards.iter().map(|c| c.0);
        assert_eq!((number(r[5]), number(r[6])), (all().reduce(f64::min), all().reduce(f64::max)), "{}", b.name);
        if let Some(mean) = number(r[3]) {
            let own = b.cards.iter().map(|c| c.0 * f64::from(c.1)).sum::<f64>() / f64::from(cards);
            assert!((own / mean - 1.0).abs() < 0.01, "{}: {own} for {mean}", b.name);
        }
    }
    assert_eq!(rows.iter().filter(|r| r[1].starts_with("brand ")).count(), seen.values().sum::<usize>(), "no brand is left out");
}

#[test]
fn years_follow_from_the_inputs() {
    let size = 32_000_000_000u64;
    let a = life(plain(size), Some(daily(32e9)), one());
    // One cycle a day.
    let (cycles, years) = (a.death.cycles, a.death.years.unwrap());
    assert!((cycles[1] - 3616.0).abs() < 5.0, "{cycles:?}");
    (0..3).for_each(|i| assert!((years[i] * 365.25 / cycles[i] - 1.0).abs() < 0.01, "{years:?} {cycles:?}"));
    assert!(cycles[0] < 1_300.0 && cycles[2] > 10_000.0);
    // Twice the card, or half the writes: twice the years. Four times the amplification: a quarter.
    let middle = |c: Card, w: f64, x: Amplification| life(c, Some(daily(w)), x).death.years.unwrap()[1];
    let base = middle(plain(size), 32e9, one());
    assert!((middle(plain(2 * size), 32e9, one()) / base - 2.0).abs() < 0.01);
    assert!((middle(plain(size), 16e9, one()) / base - 2.0).abs() < 0.01);
    assert!((middle(plain(size), 32e9, Amplification { low: 4.0, high: 4.0, ..one() }) * 4.0 / base - 1.0).abs() < 0.01);
    // An uncertain input widens the interval and moves its middle little.
    let wide = life(plain(size), Some(Workload { per_day: [8e9, 128e9], ..daily(0.0) }), one()).death.years.unwrap();
    assert!(wide[0] < years[0] && wide[2] > years[2] && (wide[1] / years[1] - 1.0).abs() < 0.1, "{wide:?} {years:?}");
    // Without a workload there are no years.
    assert!(life(plain(size), None, one()).death.years.is_none());
}

#[test]
fn a_used_card_has_less_left_and_a_survivor_more_than_the_rest_of_the_mean() {
    let mut last = f64::INFINITY;
    for done in [0.0, 500.0, 1500.0] {
        let left = life(Card { done, ..plain(1 << 35) }, None, one()).death.cycles;
        assert!(left[1] < last && left[0] < left[1] && left[1] < left[2], "{done}: {left:?}");
        assert!(left[1] > 3616.0 - done - 1.0, "a card that came so far is none of those that died before: {left:?}");
        last = left[1];
    }
    // Far beyond what any card of the survey did, something is still said, and nothing is negative.
    let left = life(Card { done: 1e6, ..plain(1 << 35) }, None, one()).death.cycles;
    assert!(left.iter().all(|l| l.is_finite() && *l >= 0.0), "{left:?}");
}

/// A card that was written more often than those of the survey lived: it says nothing, and never that a card dies before its first error.
#[test]
fn of_a_card_beyond_the_survey_nothing_is_said() {
    for done in [0.0, 1000.0, 3000.0, 5000.0, 20_000.0] {
        let l = life(Card { done, ..plain(1 << 35) }, Some(daily(32e9)), one());
        let (first, death) = (l.first_error.cycles, l.death.cycles);
        assert!(first.iter().zip(&death).all(|(f, d)| f <= d), "{done}: {first:?} {death:?}");
    }
    let beyond = |done| Card { done, ..plain(1 << 35) }.beyond();
    assert!(beyond(3000.0).is_none() && beyond(1e6).is_some_and(|why| why.contains("nine of ten")));
}

#[test]
fn kinds_of_flash_keep_their_order() {
    let middle = |flash| life(Card { flash, ..plain(1 << 35) }, None, one()).death.cycles[1];
    let all: Vec<f64> = [Flash::Qlc, Flash::Tlc, Flash::Mlc, Flash::Pslc, Flash::Slc].map(middle).to_vec();
    assert!(all.windows(2).all(|w| w[0] < w[1]), "{all:?}");
    let rated = life(Card { rated: Some(3464), ..plain(1 << 35) }, None, one());
    assert!((rated.death.cycles[1] / middle(Flash::Tlc) - 2.0).abs() < 0.01);
    assert!(rated.assumptions.iter().any(|a| a.contains("3464 cycles")));
}

#[test]
fn amplification_comes_from_what_was_found() {
    let found = |open: f64, block: f64, unit: f64| {
        report(vec![
            Finding::decided(Quantity::OpenAusRandom, open, 0.95),
            Finding::decided(Quantity::EraseBlock, block, 0.95),
            Finding::decided(Quantity::WriteUnit, unit, 0.95),
        ])
    };
    let a = Amplification::of(&report(vec![]), Writes::Scattered);
    assert!((a.low, a.high) == (1.0, 32.0) && a.source.starts_with("assumed"), "{a:?}");
    let good = Amplification::of(&found(8.0, 4e6, 16384.0), Writes::Scattered);
    let bad = Amplification::of(&found(1.0, 4_194_304.0, 16384.0), Writes::Scattered);
    assert!((good.low, good.high) == (1.0, 8.0) && good.source.starts_with("from what was measured"), "{good:?}");
    assert!((bad.low, bad.high) == (4.0, 1024.0), "{bad:?}");
    let shaky = report(vec![Finding::decided(Quantity::OpenAusRandom, 1.0, 0.5)]);
    assert_eq!(Amplification::of(&shaky, Writes::Scattered).high, 32.0, "what is not sure is not built upon");
    assert_eq!(Amplification::of(&found(1.0, 4e6, 4096.0), Writes::InOrder).high, 1.0);
}

#[test]
fn a_counterfeit_lasts_as_long_as_the_flash_it_has() {
    let mut r = report(vec![Finding::decided(Quantity::Capacity, (1u64 << 30) as f64, 0.98)]);
    crate::advise::conclude(&mut r);
    assert_eq!(Card::of(&r, None, None).size, 1 << 30);
}

#[test]
fn errors_seldom_announce_death() {
    let l = life(plain(1 << 35), None, one());
    assert!(l.announcement.contains("of 119 dead cards") && l.announcement.contains("55 had 1 %"), "{}", l.announcement);
}

#[test]
fn the_erase_block_found_stands_beside_the_one_counted() {
    let r = report(vec![Finding::decided(Quantity::EraseBlock, 4_194_304.0, 0.95)]);
    let mib = |low: f64, high: f64| [low * 1_048_576.0, high * 1_048_576.0];
    assert!(beside(&r, mib(3.9, 4.3)).unwrap().contains("they agree"));
    assert!(beside(&r, mib(31.6, 32.4)).unwrap().contains("7.90 to 8.10 of them"));
    assert!(beside(&r, mib(1.0, 2.0)).unwrap().contains("smaller"));
    assert_eq!(beside(&report(vec![]), mib(4.0, 4.1)), None);
}

//! Cards that get hot.

use super::{asked, common, of};
use nandscope::finding::Quantity;
use nandscope::infer::pipeline;
use nandscope::units::{KIB, MIB};
use nandscope_sim::{random, today};

/// Heat slows a card down after the bytes its model says, and rest brings it back; a card that does not get hot is not called hot.
#[test]
fn a_hot_card_is_told_from_one_that_is_not() {
    let mut told = 0;
    const ALL: u64 = 12;
    for seed in 1..=ALL {
        let mut m = random::card(seed);
        m.throttle.clear();
        (m.stall, m.wear) = (vec![], Default::default());
        let cold = common::run_alone("throttling", &m, seed, 200);
        let (bytes, ns) = cold.samples.iter().fold((0, 0), |a, s| (a.0 + s.len, a.1 + s.took.0));
        let cold = pipeline::of_run(&cold);
        let bound = of(&cold, Quantity::ThrottledAfterS).and_then(|f| f.at_least).map(|n| n.0);
        assert!(bound.is_some_and(|b| (190.0..=201.0).contains(&b)), "seed {seed}: {cold:?}");
        // Hot after 20 to 110 s, a quarter to twice as slow again, cooling at a tenth to a third of the rate at which it heats.
        let rate = bytes as f64 / (ns as f64 / 1e9);
        let cool = rate * (0.1 + 0.02 * seed as f64);
        let seconds = 20.0 + (seed as f64 * 37.0) % 90.0;
        let heat = ((rate - cool) * seconds) as u64;
        m.throttle = vec![nandscope_sim::model::Throttle { heat, cool: cool as u64, percent: 125 + 15 * seed }];
        let found = pipeline::of_run(&common::run_alone("throttling", &m, seed, 200));
        let f = of(&found, Quantity::ThrottledAfterS).unwrap();
        if f.number().is_some() {
            let [low, high] = f.interval.unwrap();
            assert!(low <= 1.03 * seconds && high >= 0.97 * seconds, "seed {seed}: {seconds} s, {f:?}");
            told += 1;
        } else {
            println!("seed {seed}: {seconds:.0} s, {} %: {f:?}", m.throttle[0].percent);
        }
    }
    assert!(told * 10 >= ALL * 8, "{told} of {ALL}");
}

/// Heat slows reads with the writes and a full cache does not: a card without an SLC cache has none when it gets hot, whether or not it cools in
/// the rests between.
#[test]
fn a_hot_card_has_no_slc_cache() {
    let mut seen = 0;
    for seed in 1..=8 {
        let mut m = today::card(seed);
        m.slc = Default::default();
        m.throttle = vec![nandscope_sim::model::Throttle {
            heat: (150 + 60 * (seed * 5 % 8)) * MIB,
            cool: [200 * KIB, 6 * MIB][seed as usize % 2],
            percent: 130 + 15 * seed,
        }];
        let all = asked("slc-cache", &m, seed);
        assert!(all.iter().all(|f| f.value.is_none() && f.at_least.is_none()), "seed {seed}: {all:?}");
        seen += usize::from(all[0].reason.as_ref().is_some_and(|r| r.contains("reads of other places")));
    }
    assert!(seen >= 5, "{seen} of 8 were seen to be slower");
}

//! Counterfeit cards (U33, U39): found to the byte where they wrap round, to 1 MiB where writes are lost or fail; and cards that are
//! what they say.

mod common;

use nandscope::device::SimDevice;
use nandscope::experiment::by_name;
use nandscope::finding::{Finding, Quantity};
use nandscope::probe::{Plan, probe};
use nandscope::units::Nanos;
use nandscope_sim::model::Beyond;
use nandscope_sim::{Model, cards, unusual};
use std::ops::Range;
use std::sync::atomic::AtomicBool;

const MIB: u64 = 1 << 20;

fn found(mut device: SimDevice, region: Option<Range<u64>>, time: f64) -> Finding {
    let stop = AtomicBool::new(false);
    let region = region.unwrap_or(0..nandscope::device::Device::geometry(&device).size);
    let experiments = vec![by_name("capacity").unwrap()];
    let plan = Plan { experiments, region, time: Nanos::from_secs_f64(time), writes: 1 << 30, seed: 1, stop: &stop };
    let (_, findings) = probe(&mut device, &plan, &mut |_| {});
    findings.get(Quantity::Capacity).unwrap().clone()
}

fn card(name: &str, real: u64, beyond: Beyond) -> Model {
    let mut m = Model::parse(cards::text(name).unwrap(), name).unwrap();
    m.card.real_capacity = if real > 0 { real } else { m.card.capacity };
    m.card.beyond = beyond;
    m
}

#[test]
fn the_flash_of_a_counterfeit_is_measured() {
    // No power of two, no multiple of anything that is written.
    for real in [700 * MIB + 12 * 512, 1024 * MIB, 5000 * MIB + 512] {
        let wraps = found(SimDevice::new(&card("modern-a1-32gb", real, Beyond::Wrap), 1).with_stamps(), None, 60.0);
        assert_eq!(wraps.number(), Some(real as f64), "{wraps:?}");
        for beyond in [Beyond::Drop, Beyond::Error] {
            let f = found(SimDevice::new(&card("modern-a1-32gb", real, beyond), 1).with_stamps(), None, 60.0);
            let [low, high] = f.interval.unwrap();
            assert!(low <= real as f64 + 4096.0 && real as f64 <= high && high - low <= MIB as f64, "{beyond:?} {real}: {f:?}");
            assert!((f.number().unwrap() - real as f64).abs() <= MIB as f64, "{f:?}");
        }
    }
}

#[test]
fn a_card_is_what_it_says_as_far_as_it_was_tried() {
    let model = card("modern-a1-32gb", 0, Beyond::Wrap);
    let size = model.card.capacity as f64;
    let whole = found(SimDevice::new(&model, 1).with_stamps(), None, 60.0);
    assert_eq!(whole.number(), Some(size), "{whole:?}");
    let part = found(SimDevice::new(&model, 1).with_stamps(), Some(64 * MIB..1024 * MIB), 60.0);
    assert!(part.value.is_none() && part.at_least.is_some_and(|a| a.0 > 1e9 && a.0 <= (1024 * MIB) as f64), "{part:?}");
    let cut = found(SimDevice::new(&model, 1).with_stamps(), None, 0.8);
    assert!(cut.value.is_none(), "{cut:?}");
    let forgets = found(SimDevice::new(&model, 1), None, 60.0);
    assert!(forgets.value.is_none() && forgets.reason.as_ref().is_some_and(|r| r.contains("keeps no content")), "{forgets:?}");
}

/// The search is cut by its share of the time and goes on: less is told then, and what is told is true.
#[test]
fn a_search_that_is_cut_tells_bounds() {
    let (mut least, mut whole) = (0, 0);
    for beyond in [Beyond::Wrap, Beyond::Drop, Beyond::Error] {
        let real = 5000 * MIB + 512;
        let model = card("olpc-c-8gb", real, beyond);
        for time in [0.2, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 10.0, 20.0, 40.0] {
            let f = found(SimDevice::new(&model, 1).with_stamps(), None, time);
            if let Some(bound) = &f.at_least {
                assert!(bound.0 <= real as f64, "{beyond:?} after {time} s: {f:?}");
                least += 1;
            }
            if let Some(c) = f.number() {
                let off = if beyond == Beyond::Wrap { 0.0 } else { MIB as f64 };
                assert!((c - real as f64).abs() <= off, "{beyond:?} after {time} s: {f:?}");
                whole += 1;
            }
        }
    }
    assert!(least > 2 && whole > 2, "{least} bounds, {whole} sizes");
}

/// Whatever else a card is, it is not called a counterfeit, nor a counterfeit whole.
#[test]
fn unusual_cards_are_not_mistaken() {
    let mut counterfeits = 0;
    for seed in 1..300 {
        let model = unusual::card(seed);
        let truth = model.truth();
        let f = found(SimDevice::new(&model, seed).with_stamps(), None, 600.0);
        counterfeits += u32::from(truth.real_capacity < model.card.capacity && f.value.is_some());
        assert!(common::right(&f, &truth) != Some(false), "{seed}: {f:?}, really {}", truth.real_capacity);
    }
    assert!(counterfeits > 3, "{counterfeits}");
}

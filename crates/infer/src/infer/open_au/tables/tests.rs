//! Tables made from times that are known.

use super::*;
use crate::samples::import::read;

/// Tables for N from 1; `ms` of N and size.
fn log(most: u32, random: bool, ms: impl Fn(u32, u64) -> f64) -> Vec<Finding> {
    infer(&read(&[("t", text(most, random, ms))]).unwrap())
}

fn text(most: u32, random: bool, ms: impl Fn(u32, u64) -> f64) -> String {
    let mut text = String::new();
    for n in 1..=most {
        text += &format!("AU={n}, {} access\n", if random { "random" } else { "sequential" });
        for size in (12..=22).rev().map(|k| 1u64 << k) {
            let rate = size as f64 / ms(n, size) * 1e3;
            text += &format!("{} {}\n", crate::flashbench::format::size(size), crate::flashbench::format::rate(rate));
        }
    }
    text
}

fn plain(size: u64) -> f64 {
    0.6 + size as f64 / 10e3
}

#[test]
fn a_cliff_a_decline_and_a_factor() {
    let cliff = log(6, false, |n, s| plain(s) + if n > 4 && s <= 1 << 20 { 400.0 } else { 0.0 });
    assert!(cliff[0].number() == Some(4.0) && cliff[0].confidence > 0.9, "{cliff:?}");
    assert!((cliff[1].number().unwrap() - 400.0).abs() < 20.0, "{cliff:?}");
    let decline = log(7, false, |n, s| plain(s) * (1.0 + 0.04 * n as f64));
    assert_eq!((decline[0].number(), decline[0].at_least.map(|b| b.0)), (None, Some(7.0)), "{decline:?}");
    assert!(decline[0].caveats.iter().any(|c| c.contains("decline")), "{decline:?}");
    let factor = log(7, false, |n, s| plain(s) * if n > 5 && s <= 1 << 20 { 2.0 } else { 1.0 });
    assert_eq!(factor[0].number(), Some(5.0), "{factor:?}");
}

/// A unit that was edited makes rates that no card has; nothing follows from them.
#[test]
fn rates_that_jump_a_thousandfold_are_not_read() {
    let right = text(4, false, |n, s| plain(s) + if n > 2 && s <= 1 << 20 { 400.0 } else { 0.0 });
    assert_eq!(infer(&read(&[("t", right.clone())]).unwrap())[0].number(), Some(2.0));
    let wrong = infer(&read(&[("t", right.replace("K/s", "M/s"))]).unwrap());
    assert!(wrong.iter().all(|f| f.value.is_none() && f.at_least.is_none()), "{wrong:?}");
    let why = wrong[0].reason.as_ref().unwrap();
    assert!(why.contains("rates jump from") && why.contains("is a unit wrong (K/s, M/s)?"), "{why}");
}

/// F16: above the limit the time of a write no longer depends on its size. Where it grows with it all the same, a count is no surer
/// than what another run contradicts, and a fall by less than the write itself is no limit at all.
#[test]
fn a_cut_without_flat_times_is_never_sure() {
    let at_least = |f: &Finding| f.at_least.map(|b| b.0);
    for (most, limit) in [(7, 3), (7, 5), (20, 5), (12, 8)] {
        for random in [false, true] {
            for factor in [1.4, 1.5, 1.7] {
                let f = &log(most, random, |n, s| plain(s) * if n > limit { factor } else { 1.0 })[0];
                assert!(f.value.is_none() && f.confidence < 0.9, "{most} {limit} {factor}: {f:?}");
                // The last two tables alone may be a drift that has begun.
                if factor == 1.4 && limit + 2 == most {
                    continue;
                }
                assert!(at_least(f) == Some(f64::from(limit)), "{most} {limit} {factor}: {f:?}");
                assert!(f.reason.as_ref().unwrap().contains("grows with the size"), "{most} {limit} {factor}: {f:?}");
            }
            for factor in [2.2, 3.0, 6.0] {
                let f = &log(most, random, |n, s| plain(s) * if n > limit { factor } else { 1.0 })[0];
                if random {
                    assert!(f.value.is_none() && f.reason.as_ref().unwrap().contains("grows with the size"), "{f:?}");
                    continue;
                }
                assert!(
                    f.value.is_none() && at_least(f) == Some(f64::from(limit)),
                    "whole AUs are slow, too: {most} {limit} {factor}: {f:?}"
                );
                let f = &log(most, random, |n, s| plain(s) * if n > limit && s <= 1 << 20 { factor } else { 1.0 })[0];
                assert!(f.number() == Some(f64::from(limit)) && f.confidence <= GROWS, "{most} {limit} {factor}: {f:?}");
                assert!(f.caveats.iter().any(|c| c.contains("grows with the size")), "{f:?}");
            }
            for cost in [100.0, 400.0] {
                let f = &log(most, random, |n, s| plain(s) + if n > limit && s <= 1 << 20 { cost } else { 0.0 })[0];
                assert!(f.number() == Some(f64::from(limit)) && f.confidence > 0.9, "{most} {limit} {cost}: {f:?}");
            }
        }
    }
    // A third of the rate lost by and by: a bound, and no sure one.
    let f = &log(7, false, |n, s| plain(s) * (1.0 + 0.08 * f64::from(n - 1)))[0];
    assert!(at_least(f) == Some(7.0) && f.confidence <= CONTRADICTED, "{f:?}");
}

/// What every write pays above a limit, and what is less than the write itself, is no merge: it would copy most of an AU.
#[test]
fn a_flat_cut_that_costs_less_than_the_write_is_a_bound() {
    let cut = |ms: f64| log(7, false, |n, s| plain(s) + if n > 4 && s <= 1 << 20 { ms } else { 0.0 }).swap_remove(0);
    for ms in [10.0, 15.0] {
        let f = cut(ms);
        assert_eq!((f.value.is_none(), f.at_least.map(|b| b.0)), (true, Some(4.0)), "{ms}: {f:?}");
        assert!(f.confidence <= CONTRADICTED && f.reason.as_ref().unwrap().contains("copies most of an AU"), "{ms}: {f:?}");
    }
    let f = cut(100.0);
    assert!(f.number() == Some(4.0) && f.confidence > 0.9, "{f:?}");
}

/// Random writes of one time whatever their size are merges where sequential ones take a part of it, and are none where these take
/// about as long.
#[test]
fn random_order_that_costs_nothing_shows_no_merges() {
    let sequential = |s: u64| 15.0 + s as f64 / 20e3;
    let random = |ms: f64| text(4, true, |_, s| if s <= 1 << 20 { ms } else { sequential(s) });
    let told = |random: &str, both: bool| {
        let other = if both { text(4, false, |_, s| sequential(s)) } else { String::new() };
        let all = infer(&read(&[("t", other + random)]).unwrap());
        all.into_iter().find(|f| f.quantity == Quantity::OpenAusRandom).unwrap()
    };
    let f = told(&random(40.0), true);
    assert!(f.number() != Some(0.0) && f.confidence <= CONTRADICTED, "{f:?}");
    // 40 ms are too short to copy a quarter of an AU of 4 MiB at the best rate, whatever sequential order shows.
    let f = told(&random(40.0), false);
    assert!(f.number() != Some(0.0) && f.confidence <= CONTRADICTED, "{f:?}");
    for (f, ms) in [(told(&random(80.0), false), 80.0), (told(&random(400.0), true), 400.0)] {
        assert!(f.number() == Some(0.0) && f.confidence > 0.7, "{ms}: {f:?}");
    }
}

#[test]
fn a_merge_costs_at_least_what_writes_take_longer() {
    let cost = |most: u32, ms: &dyn Fn(u32) -> f64| {
        let f = log(most, false, |n, s| plain(s) + if n > 4 && s <= 1 << 20 { ms(n) } else { 0.0 });
        f.into_iter().find(|f| f.quantity == Quantity::CloseCostMs).unwrap()
    };
    let half = cost(6, &|n| if n == 5 { 200.0 } else { 400.0 });
    assert!(half.value.is_none() && (half.at_least.unwrap().0 - 400.0).abs() < 20.0, "{half:?}");
    let (one, two) = (cost(5, &|_| 400.0), cost(6, &|_| 400.0));
    assert!(one.number().is_some() && one.confidence < 0.7 && two.confidence > 0.8, "{one:?} {two:?}");
}

#[test]
fn what_is_slower_than_programming_says_nothing_of_open_aus() {
    for random in [false, true] {
        for (rate, told) in [(3e3, false), (12e3, false), (140e3, false), (400e3, true), (3e6, true)] {
            let f = &log(8, random, |_, s| s as f64 / rate * 1e3)[0];
            assert_eq!(f.at_least.map(|b| b.0), told.then_some(8.0), "{rate} {f:?}");
            assert!(told || f.reason.as_ref().unwrap().contains("slower than flash"), "{f:?}");
        }
    }
}

#[test]
fn one_au_that_pays_for_random_writes_has_none_open() {
    let f = log(4, true, |_, s| plain(s) + if s <= 1 << 20 { 250.0 } else { 0.0 });
    assert!(f[0].number() == Some(0.0) && f[0].confidence > 0.7, "{f:?}");
}

/// With N one above the limit a card that throws out at random closes only some; fewer than the excess is impossible.
#[test]
fn stray_slowness_below_a_real_cliff_is_not_the_limit() {
    let f = log(7, false, |n, s| match n {
        7 if s <= 1 << 20 => plain(s) + 800.0,
        6 if (1 << 15..=1 << 17).contains(&s) => plain(s) * 1.7,
        _ => plain(s),
    });
    assert_eq!(f[0].number(), Some(6.0), "{f:?}");
}

#[test]
fn slow_eight_and_fast_twenty_are_not_one_card() {
    let text = |n: u32, slow: f64| {
        let row = |k: u32| format!("{} {}\n", crate::flashbench::format::size(1 << k), crate::flashbench::format::rate(10e6 / slow));
        format!("$ flashbench -O --open-au-nr={n} /dev/x\n{}", (15..=22).rev().map(row).collect::<String>())
    };
    let f = infer(&read(&[("t", text(4, 1.0) + &text(8, 20.0) + &text(20, 1.0))]).unwrap());
    assert!(f[0].value.is_none() && f[0].at_least.is_none(), "{f:?}");
    assert!(f[0].reason.as_ref().unwrap().contains("contradict"), "{f:?}");
}

/// Two tables of one number that differ tenfold are of two cards, or of one that was busy; a third one decides.
#[test]
fn repeats_that_differ_contradict() {
    let busy = |times: f64| text(1, false, |_, s| times * plain(s));
    let told = |more: &str| {
        infer(&read(&[("t", text(6, false, |n, s| plain(s) + if n > 3 { 300.0 } else { 0.0 }) + more)]).unwrap()).swap_remove(0)
    };
    assert_eq!(told("").number(), Some(3.0));
    assert_eq!(told(&busy(1.5)).number(), Some(3.0));
    let f = told(&busy(10.0));
    assert!(
        f.number().is_none() && f.reason.as_ref().unwrap().contains("one AU at t:") && f.reason.unwrap().contains("10"),
        "{:?}",
        f.evidence
    );
    assert_eq!(told(&(busy(10.0) + &busy(1.1))).number(), Some(3.0));
}

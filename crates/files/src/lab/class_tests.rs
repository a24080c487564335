use super::*;
use crate::device::SimDevice;
use nandscope_sim::{Model, cards};

fn measured(name: &str) -> Class {
    let m = Model::parse(cards::text(name).unwrap(), name).unwrap();
    let mut d = SimDevice::new(&m, 1);
    let size = d.geometry().size;
    let (_, ru) = units(size);
    let au = m.truth().erase_block.max(4 * ru);
    measure(&mut d, 0..size, au, ru, 8 * KIB, 1).unwrap()
}

#[test]
fn the_formula_is_that_of_the_specification() {
    // An empty AU is written at Pw; moving twice as slow as writing, half an AU in use: a third.
    assert_eq!(by_formula(64.0, 0.0, 6.0, 3.0), 6.0);
    assert!((by_formula(64.0, 32.0, 6.0, 3.0) - 2.0).abs() < 1e-12);
}

#[test]
fn a_card_that_copies_has_a_pm_and_one_that_does_not_has_none() {
    let c = measured("flashbench-readme");
    let pm = c.pm.expect("moving costs");
    assert!(c.pw > 1.0 && pm > 0.5 && c.pr > c.pw, "{c:?}");
    let at = |i: usize| c.used[i].1;
    assert!(at(0) > at(1) && at(1) > at(2), "the fuller the slower: {:?}", c.used);
    assert!((c.used[1].2 / c.used[1].1 - 1.0).abs() < 1e-6, "fitted there");
    let null = measured("null");
    assert_eq!(null.pm, None);
}

#[test]
fn a_region_too_small_is_refused() {
    let m = Model::parse(cards::text("flashbench-readme").unwrap(), "x").unwrap();
    let mut d = SimDevice::new(&m, 1);
    assert!(matches!(measure(&mut d, 0..16 * MIB, 4 * MIB, 64 * KIB, 8 * KIB, 1), Err(DeviceError::OutOfBounds(_))));
    assert!(matches!(measure(&mut d, 0..512 * MIB, 4 * MIB, 3 * MIB, 8 * KIB, 1), Err(DeviceError::OutOfBounds(_))));
}

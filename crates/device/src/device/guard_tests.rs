use super::super::Fill;
use super::super::fake::Fake;
use super::*;
use crate::host::facts::TargetKind;
use proptest::prelude::*;
use std::sync::atomic::Ordering;

const SIZE: u64 = 64 * 1024;

pub(in crate::device) fn id() -> TargetId {
    TargetId { path: "fake".into(), kind: TargetKind::Simulated, serial: None, model: None, size: SIZE, offset: 0 }
}

fn guarded(region: Option<Range<u64>>, budget: u64) -> (Guard, std::sync::Arc<std::sync::Mutex<Vec<u8>>>) {
    let fake = Fake::new(SIZE);
    let bytes = fake.bytes.clone();
    let consent = Consent::check(&id(), None).unwrap();
    let limits = Limits { region, budget, undo: None };
    (Guard::writing(Box::new(fake), id(), &consent, &limits).unwrap(), bytes)
}

fn write(at: u64, len: u64) -> Access {
    Access { op: Op::Write(Fill::Ones), at, len }
}

#[test]
fn a_read_only_guard_lets_no_change_pass() {
    let fake = Fake::new(SIZE);
    let bytes = fake.bytes.clone();
    let before = bytes.lock().unwrap().clone();
    let mut g = Guard::read_only(Box::new(fake), id());
    for a in [write(0, 512), Access { op: Op::Discard, at: 0, len: 512 }] {
        assert!(matches!(g.access(a), Err(DeviceError::ReadOnly(_))));
        assert!(matches!(g.batch(&[a], 4), Err(DeviceError::ReadOnly(_))));
    }
    assert!(matches!(g.store(0, &[0; 512]), Err(DeviceError::ReadOnly(_))));
    g.access(Access { op: Op::Read, at: 512, len: 1024 }).unwrap();
    g.access(Access { op: Op::Flush, at: 0, len: 0 }).unwrap();
    assert_eq!(*bytes.lock().unwrap(), before);
    let c = g.counters();
    assert_eq!((c.reads, c.bytes_read, c.flushes, c.writes, c.bytes_written), (1, 1024, 1, 0, 0));
    assert_eq!(c.busy, Nanos(200_000));
}

#[test]
fn the_budget_is_exact_and_a_refused_write_costs_nothing() {
    let (mut g, _) = guarded(None, 2048);
    g.access(write(0, 1024)).unwrap();
    assert!(matches!(g.access(write(0, 1536)), Err(DeviceError::Budget(_))));
    assert!(matches!(g.batch(&[write(0, 512), write(0, 1024)], 1), Err(DeviceError::Budget(_))), "a batch counts as a whole");
    assert_eq!((g.budget_left(), g.counters().writes), (1024, 1));
    g.access(write(4096, 1024)).unwrap();
    assert!(matches!(g.store(0, &[1; 512]), Err(DeviceError::Budget(_))));
    assert_eq!((g.budget_left(), g.counters().bytes_written), (0, 2048));
}

#[test]
fn a_failed_write_counts() {
    let mut fake = Fake::new(SIZE);
    fake.bad = Some(100);
    let consent = Consent::check(&id(), None).unwrap();
    let mut g = Guard::writing(Box::new(fake), id(), &consent, &Limits { budget: 1024, ..Limits::default() }).unwrap();
    assert!(matches!(g.access(write(0, 512)), Err(DeviceError::Io { .. })));
    let c = g.counters();
    assert_eq!((c.writes, c.bytes_written, c.failures, g.budget_left()), (1, 512, 1, 512));
}

#[test]
fn a_target_that_went_away_is_no_bad_sector() {
    let read = |at| Access { op: Op::Read, at, len: 512 };
    let mut fake = Fake::new(SIZE);
    fake.bad = Some(1024);
    let mut g = Guard::read_only(Box::new(fake), id());
    assert!(matches!(g.access(read(1024)), Err(DeviceError::Io { .. })));
    assert!(g.failures().gone().is_none() && g.failures().unreadable().iter().eq(std::iter::once(1024..1536)));
    g.access(read(0)).unwrap();
    let mut fake = Fake::new(SIZE);
    fake.out = true;
    let mut g = Guard::read_only(Box::new(fake), id());
    let calls: [&dyn Fn(&mut Guard) -> DeviceError; 3] =
        [&|g| g.access(read(0)).unwrap_err(), &|g| g.load(0, &mut [0; 512]).unwrap_err(), &|g| g.get(0, &mut [0; 512]).unwrap_err()];
    for call in calls {
        let e = call(&mut g);
        assert!(matches!(&e, DeviceError::Gone { target, .. } if target == "fake") && e.is_gone(), "{e}");
    }
    assert!(g.failures().gone().is_some_and(|why| why.starts_with("fake: it has gone: read of 512 bytes at 0 failed")));
    assert!(g.failures().unreadable().iter().next().is_none());
}

#[test]
fn a_target_that_hangs_is_no_bad_sector() {
    let read = |at| Access { op: Op::Read, at, len: 512 };
    // At once, or after it was read.
    for places in [vec![], vec![512], vec![0, 512, 1024, 4096]] {
        let fake = Fake::new(SIZE);
        let hung = fake.hung.clone();
        let mut g = Guard::read_only(Box::new(fake), id());
        for at in places {
            g.access(read(at)).unwrap();
        }
        hung.store(true, Ordering::Relaxed);
        let e = g.access(read(8192)).unwrap_err();
        assert!(e.is_gone() && e.to_string().contains("does not answer"), "{e}");
        assert!(g.failures().unreadable().iter().next().is_none());
    }
}

#[test]
fn regions_off_the_target_or_the_grid_are_refused() {
    let consent = Consent::check(&id(), None).unwrap();
    for region in [0..SIZE + 512, 512..512, 1..1024, 0..100, Range { start: 2048, end: 1024 }] {
        let limits = Limits { region: Some(region.clone()), budget: 1, undo: None };
        let made = Guard::writing(Box::new(Fake::new(SIZE)), id(), &consent, &limits);
        assert!(matches!(made, Err(DeviceError::OutOfBounds(_))), "{region:?}");
    }
}

proptest! {
    /// Whatever is asked: no byte outside the region changes, and the budget holds.
    #[test]
    fn nothing_outside_the_region_ever_changes(
        asks in proptest::collection::vec((0..4u8, 0..140u64, 0..40u64, any::<bool>()), 1..60),
        start in 0..64u64, len in 1..64u64, budget in 0..30_000u64,
    ) {
        let region = start * 512..(start + len) * 512;
        let (mut g, bytes) = guarded(Some(region.clone()), budget);
        let before = bytes.lock().unwrap().clone();
        for (kind, at, len, near_wrap) in asks {
            let at = if near_wrap { u64::MAX - 511 - at * 256 } else { at * 512 - at % 7 / 6 };
            let op = [Op::Write(Fill::Ones), Op::Discard, Op::Write(Fill::Random(2)), Op::Read][kind as usize];
            let a = Access { op, at, len: len * 512 };
            let _ = if len % 3 == 0 { g.batch(&[a, a], 1 + len as u32).map(drop) } else { g.access(a).map(drop) };
            if kind == 1 {
                let _ = g.store(at, &vec![9; (len * 512) as usize]);
            }
        }
        let after = bytes.lock().unwrap().clone();
        for (i, (a, b)) in before.iter().zip(&after).enumerate() {
            prop_assert!(a == b || region.contains(&(i as u64)), "byte {i} changed");
        }
        prop_assert!(g.counters().bytes_written <= budget);
    }
}

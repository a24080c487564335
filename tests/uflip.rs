//! uFLIP on devices whose start-up, period and pauses are known, and on a simulated card.

use nandscope::device::{Access, Device, Geometry, Op, Result, Timed};
use nandscope::uflip::measured::{Format, Measured};
use nandscope::uflip::plan::Base;
use nandscope::uflip::run::{Task, run};
use nandscope::uflip::{res, say};
use nandscope::units::{GIB, Nanos};
use std::sync::atomic::AtomicBool;

/// Reads take 300 µs, writes 1 ms; the first `start` writes are cheap, later each `every`th takes 20 ms; after a write reads are slow for `slow_ms`.
struct Planted {
    geometry: Geometry,
    now: Nanos,
    writes: u64,
    start: u64,
    every: u64,
    slow_ms: f64,
    last_write: Option<Nanos>,
}

impl Planted {
    fn new(start: u64, every: u64, slow_ms: f64) -> Planted {
        let geometry = Geometry { size: 4 * GIB, sector: 512, max_request: None, offset: 0, write_cache: false };
        Planted { geometry, now: Nanos(1), writes: 0, start, every, slow_ms, last_write: None }
    }
}

impl Device for Planted {
    fn geometry(&self) -> &Geometry {
        &self.geometry
    }
    fn access(&mut self, a: Access) -> Result<Timed> {
        let start = self.now;
        // A host is a little uneven.
        let uneven = 1.0 + 0.02 * ((self.now.0 / 7 % 97) as f64 / 97.0);
        let us = match a.op {
            Op::Write(_) => {
                let n = self.writes;
                self.writes += 1;
                if n >= self.start && (n - self.start).is_multiple_of(self.every) { 20_000.0 } else { 1000.0 }
            }
            _ if self.last_write.is_some_and(|w| (self.now - w).secs() * 1e3 < self.slow_ms) => 2000.0,
            _ => 300.0,
        };
        let took = Nanos((us * uneven * 1000.0) as u64);
        self.now = self.now + took;
        if matches!(a.op, Op::Write(_)) {
            self.last_write = Some(self.now);
        }
        Ok(Timed { start, took })
    }
    fn now(&self) -> Nanos {
        self.now
    }
    fn idle(&mut self, d: Nanos) {
        self.now = self.now + d;
    }
    fn load(&mut self, _: u64, _: &mut [u8]) -> Result<()> {
        Ok(())
    }
    fn store(&mut self, _: u64, _: &[u8]) -> Result<()> {
        Ok(())
    }
}

fn bench(device: &mut dyn Device, only: &[&str], seed: u64, writes: u64) -> Measured {
    let only: Vec<String> = only.iter().map(|o| o.to_string()).collect();
    let stop = AtomicBool::new(false);
    let task = Task {
        region: 0..device.geometry().size,
        format: Format::AsIs,
        only: &only,
        time: Nanos::from_secs_f64(1e6),
        writes,
        write: writes > 0,
        within: 0.05,
        most_runs: 4,
        seed,
        stop: &stop,
    };
    run(device, &task, &mut |_, _| ()).unwrap()
}

#[test]
fn planted_start_up_and_period_are_found() {
    let (mut starts, mut periods, seeds) = (0, 0, 40u64);
    for seed in 0..seeds {
        let (start, every) = (100 + 37 * seed, 5 + 5 * (seed % 19));
        let m = bench(&mut Planted::new(start, every, 0.0), &["ORD.W"], seed, GIB);
        let p = m.phases.iter().find(|p| p.base == Base::Sw).unwrap();
        starts += usize::from(p.start_up.abs_diff(start) <= 1 || start < 3 * every && p.start_up == 0);
        periods += usize::from(p.period.is_some_and(|p| p.abs_diff(every) <= 1));
    }
    assert!(starts >= 38 && periods >= 38, "of {seeds}: {starts} starts, {periods} periods");
}

#[test]
fn a_planted_pause_is_found_within_a_fifth() {
    for slow_ms in [250.0, 900.0, 2500.0] {
        let m = bench(&mut Planted::new(0, 1000, slow_ms), &["LOC.SW"], 1, GIB);
        let found = m.pause.slow_for_ms.unwrap();
        assert!((found / slow_ms - 1.0).abs() < 0.2 && m.pause.ms >= found && !m.pause.still_slow, "{slow_ms}: {:?}", m.pause);
    }
    let m = bench(&mut Planted::new(0, 1000, 0.0), &["LOC.SW"], 1, GIB);
    assert!(m.pause.slow_for_ms.unwrap() < 20.0 && m.pause.ms == 100.0, "{:?}", m.pause);
}

#[test]
fn without_writes_only_reads_run_and_what_is_left_out_is_said() {
    let mut d = Planted::new(0, 10, 0.0);
    let m = bench(&mut d, &["granularity", "bursts"], 1, 0);
    let done: Vec<&str> = m.done.iter().map(|d| d.experiment.code.as_str()).collect();
    assert_eq!((done, d.writes), (vec!["GRA.SR", "GRA.RR", "PBU.SR", "PBU.RR"], 0));
    assert_eq!(m.left_out.len(), 4);
    assert!(m.left_out.iter().all(|l| l.because.contains("--write")));
    // A few bytes: what writes more is left out, and nothing exceeds them.
    let mut d = Planted::new(0, 10, 0.0);
    let m = bench(&mut d, &[], 1, GIB);
    assert!(d.writes * 32768 <= GIB && m.left_out.iter().any(|l| l.because.contains("--writes")), "{}", d.writes);
}

/// Every row of the file has as many fields as there are columns, and one empty one, as FlashIO's have.
#[test]
fn result_files_have_the_columns() {
    let m = bench(&mut Planted::new(0, 10, 0.0), &["parallelism", "M.SR.RR", "pause"], 1, 0);
    let text = res::file(&m, 4 * GIB, "a;b", true);
    let mut rows = text.lines();
    assert!(rows.next().unwrap().ends_with("; TO2 "));
    assert!(rows.all(|r| r.split(';').count() == res::COLUMNS.len() + 1));
    // A row a stream: 1 + 2 + 4 + 8 + 16 of each run.
    let of = |code: &str| m.rows.iter().filter(|r| r.code == code && r.run == 0).count();
    assert_eq!((of("PAR.SR"), of("M.SR.RR"), of("PIO.SR")), (31, 15, 10));
    assert!(m.one_at_a_time && say::sentence(&m.done[0], &m).contains("interleaved"));
}

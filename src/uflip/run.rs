//! The experiments on a device: state, start-up, period and pause first, then each value until its interval is narrow.

use super::measured::{Done, Format, LeftOut, Measured, Pause, Phase, Point, Row};
use super::plan::{ALIGN, BURST_PAUSE_US, Base, Experiment, PAUSE_MS, Pattern, RUNS, SIZE, Vary};
use crate::device::{Access, Device, DeviceError, Fill, Op, Result};
use crate::units::Nanos;
use nandscope_stats::{deviation, mean, mean_within, median, period, quantile, start_up};
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::Rng;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

/// Accesses of each part of the run that finds the pause.
const SPE: u64 = 2048;
/// Accesses by which start-up and period are found.
const LONG: u64 = 20_480;
/// Pause before and after those, in s; of the time that is left at most this part.
const CALM_S: f64 = 10.0;
const CALM: f64 = 20.0;
/// A rest ends within this time of the signal that ends the program.
const REST_PIECE: Nanos = Nanos(200_000_000);
/// What to do, in which bounds.
pub struct Task<'a> {
    pub region: Range<u64>,
    pub format: Format,
    /// Codes of the experiments to run, or names of micro-benchmarks; all where none are given.
    pub only: &'a [String],
    /// On the device's own clock.
    pub time: Nanos,
    /// Most bytes written, what the state takes included.
    pub writes: u64,
    /// May anything be written?
    pub write: bool,
    /// Half of the interval at 95 %, as a share of the mean, at which repetitions end.
    pub within: f64,
    pub most_runs: u32,
    pub seed: u64,
    pub stop: &'a AtomicBool,
}

/// Experiments that are asked for, in the order of the plan.
///
/// # Errors
/// A name that is none.
pub fn chosen(only: &[String]) -> std::result::Result<Vec<Experiment>, String> {
    let all = super::plan::all();
    let fits = |e: &Experiment, o: &str| e.code.eq_ignore_ascii_case(o) || e.vary.name().eq_ignore_ascii_case(o);
    if let Some(o) = only.iter().find(|o| !all.iter().any(|e| fits(e, o))) {
        return Err(format!("'{o}' is no experiment and no micro-benchmark; write for example GRA.SR or granularity"));
    }
    Ok(all.into_iter().filter(|e| only.is_empty() || only.iter().any(|o| fits(e, o))).collect())
}

/// Accesses and bytes written of an experiment at the least number of runs.
pub fn cost(e: &Experiment, runs: u32) -> (u64, u64) {
    let all = e.values.iter().map(|&v| e.pattern(v, &|_| 0));
    let (n, bytes) = all.fold((0, 0), |(n, b), p| (n + p.count * p.streams, b + e.written(&p) * p.streams));
    (n * u64::from(runs), bytes * u64::from(runs))
}

pub(super) struct Bench<'a> {
    pub(super) device: &'a mut dyn Device,
    pub(super) task: &'a Task<'a>,
    rng: Pcg64Mcg,
    /// Where the next fresh area begins.
    pub(super) fresh: u64,
    fill: u64,
    deadline: Nanos,
    pub(super) written: u64,
    pub(super) out: Measured,
}

/// Runs them. What fails ends it, with what was measured.
pub fn run(device: &mut dyn Device, task: &Task, tell: &mut dyn FnMut(&str, f64)) -> std::result::Result<Measured, String> {
    let chosen = chosen(task.only)?;
    let pause = Pause { slow_for_ms: None, still_slow: false, ms: PAUSE_MS };
    let out = Measured {
        format: task.format,
        formatted: 0,
        phases: vec![],
        pause,
        rest_s: None,
        one_at_a_time: true,
        done: vec![],
        left_out: vec![],
        rows: vec![],
        ended: None,
    };
    let deadline = device.now() + task.time;
    let rng = Pcg64Mcg::new(u128::from(task.seed) << 1 | 1);
    let mut b = Bench { device, task, rng, fresh: task.region.start, fill: task.seed, deadline, written: 0, out };
    if let Err(e) = b.all(chosen, tell) {
        b.out.ended = Some(match e {
            DeviceError::Late if task.stop.load(Ordering::Relaxed) => "interrupted".into(),
            DeviceError::Late => "the time allowed is over".into(),
            e => e.to_string(),
        });
    }
    Ok(b.out)
}

impl Bench<'_> {
    fn all(&mut self, chosen: Vec<Experiment>, tell: &mut dyn FnMut(&str, f64)) -> Result<()> {
        tell("state", 0.0);
        self.format()?;
        tell("start-up and period", 0.02);
        let writing = self.task.write;
        let bases: Vec<Base> = Base::ALL
            .into_iter()
            .filter(|&b| (writing || !b.writes()) && chosen.iter().any(|e| e.base == b || e.second == Some(b)))
            .collect();
        for base in bases {
            self.phase(base)?;
        }
        self.pause()?;
        self.depth()?;
        let kept = self.choose(chosen);
        let whole: f64 = kept.iter().map(|k| k.1).sum::<f64>().max(1e-9);
        let mut before = 0.0;
        for (e, seconds) in kept {
            tell(&e.code, 0.05 + 0.95 * before / whole);
            let (code, bytes) = (e.code.clone(), cost(&e, RUNS).1);
            let done = self.experiment(e);
            // One that was cut short says itself which values are missing.
            let cut = self.out.done.last().is_some_and(|d| d.experiment.code == code);
            match done {
                Err(DeviceError::Late | DeviceError::Budget(_)) if cut && !self.task.stop.load(Ordering::Relaxed) => {}
                Err(DeviceError::Late) if !self.task.stop.load(Ordering::Relaxed) => {
                    let because = "the time allowed was over".to_string();
                    self.out.left_out.push(LeftOut { code, seconds, bytes, because });
                }
                Err(DeviceError::Budget(_)) => {
                    let because = "the bytes that may be written were used up".to_string();
                    self.out.left_out.push(LeftOut { code, seconds, bytes, because });
                }
                done => done?,
            }
            before += seconds;
        }
        Ok(())
    }

    /// Those that fit into time and bytes: the cheapest first, so that as many as possible are run.
    fn choose(&mut self, chosen: Vec<Experiment>) -> Vec<(Experiment, f64)> {
        let mean = |b: Base| self.out.phases.iter().find(|p| p.base == b).map(|p| p.mean_us / 1e6);
        let estimate = |e: &Experiment| -> Option<f64> {
            let one = mean(e.base)?;
            let each = e.second.map_or(Some(one), mean)?.max(one);
            let (n, _) = cost(e, RUNS);
            // Larger accesses take longer, and pauses are waited out.
            let size = if e.vary == Vary::Granularity { 1.6 } else { 1.0 };
            let waits: f64 = e.values.iter().map(|&v| self.waits(&e.pattern(v, &|_| 0))).sum::<f64>() * f64::from(RUNS);
            Some(n as f64 * each * size + waits + e.values.len() as f64 * f64::from(RUNS) * self.out.pause.ms / 1e3)
        };
        let mut all: Vec<(usize, Experiment, Option<f64>)> =
            chosen.into_iter().enumerate().map(|(i, e)| (i, e.clone(), estimate(&e))).collect();
        nandscope_stats::ascending(&mut all, |a| a.2.unwrap_or(f64::INFINITY));
        let (mut time, mut bytes) =
            ((self.deadline.0.saturating_sub(self.device.now().0)) as f64 / 1e9, self.task.writes.saturating_sub(self.written));
        let (mut kept, mut left_out) = (vec![], vec![]);
        for (i, e, seconds) in all {
            let writes = cost(&e, RUNS).1;
            let because = match seconds {
                None => Some("it writes; allow that with --write".to_string()),
                Some(s) if s > time => Some("it needs more time; allow more with --time".to_string()),
                Some(_) if writes > bytes => Some("it writes more; allow more with --writes".to_string()),
                Some(_) => None,
            };
            let s = seconds.unwrap_or(0.0);
            match because {
                Some(because) => left_out.push(LeftOut { code: e.code, seconds: s, bytes: writes, because }),
                None => {
                    time -= s;
                    bytes -= writes;
                    kept.push((i, e, s));
                }
            }
        }
        self.out.left_out = left_out;
        nandscope_stats::sort_by_key(&mut kept, |k| k.0);
        kept.into_iter().map(|k| (k.1, k.2)).collect()
    }

    /// Seconds of pauses in one run.
    fn waits(&self, p: &Pattern) -> f64 {
        let bursts = p.count.checked_div(p.burst).unwrap_or(0) * BURST_PAUSE_US;
        (p.pause_us * p.count + bursts) as f64 / 1e6
    }

    pub(super) fn late(&self) -> Result<()> {
        let over = self.task.stop.load(Ordering::Relaxed) || self.device.now() >= self.deadline;
        if over { Err(DeviceError::Late) } else { Ok(()) }
    }

    pub(super) fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.rng.next_u64()) * u128::from(n.max(1))) >> 64) as u64
    }

    /// In pieces, so that whoever ends the program need not wait for the whole rest.
    fn idle_ms(&mut self, ms: f64) {
        let mut left = Nanos::from_secs_f64(ms / 1e3).0;
        while left > 0 && !self.task.stop.load(Ordering::Relaxed) {
            let piece = left.min(REST_PIECE.0);
            self.device.idle(Nanos(piece));
            left -= piece;
        }
    }

    /// Lets the device settle. In little time that is short, which is said.
    fn calm(&mut self) {
        let left = self.deadline.0.saturating_sub(self.device.now().0) as f64 / 1e9;
        let rest = CALM_S.min(left / CALM);
        if rest < CALM_S {
            self.out.rest_s = Some(self.out.rest_s.map_or(rest, |r| r.min(rest)));
        }
        self.idle_ms(rest * 1e3);
    }

    /// Start-up and period of a baseline. A pattern of fewer accesses where time or bytes are short.
    fn phase(&mut self, base: Base) -> Result<()> {
        let most = if base.writes() { (self.task.writes - self.written) / 10 / SIZE } else { LONG };
        self.calm();
        let share = self.deadline.0.saturating_sub(self.device.now().0) / 20;
        let until = self.device.now() + Nanos(share);
        let e = Experiment { base, ..super::plan::all()[0].clone() };
        let p = Pattern { count: LONG.min(most), ignore: 0, ..e.pattern((SIZE / 512) as i64, &|_| 0) };
        let area = self.area(&p, base);
        let mut times = vec![];
        for k in 0..p.count {
            if self.device.now() >= until && times.len() >= 256 {
                break;
            }
            let at = self.place(&p, base, &area, k);
            times.push(self.access(base, at, SIZE)? * 1e6);
            if k % 64 == 0 {
                self.late()?;
            }
        }
        let found = start_up(&times);
        let after = found.map_or(0, |s| s.len);
        self.out.phases.push(Phase {
            base,
            accesses: times.len() as u64,
            start_up: after as u64,
            start_up_ratio: found.map(|s| s.ratio),
            period: period(&times[after..]).map(|p| p as u64),
            mean_us: if times.is_empty() { 0.0 } else { mean(&times[after..]) },
            times_us: times,
        });
        Ok(())
    }

    /// How long reads stay slow after random writes.
    fn pause(&mut self) -> Result<()> {
        if !self.task.write || self.out.phases.iter().all(|p| !p.base.writes()) {
            return Ok(());
        }
        self.calm();
        let n = SPE.min((self.task.writes - self.written) / 20 / SIZE);
        let e = &super::plan::all()[0];
        let p = Pattern { count: SPE, ..e.pattern((SIZE / 512) as i64, &|_| 0) };
        let (reads, writes) = (self.area(&p, Base::Sr), self.area(&p, Base::Rw));
        let mut before = vec![];
        for k in 0..SPE.min(512) {
            let at = self.place(&p, Base::Sr, &reads, k);
            before.push(self.access(Base::Sr, at, SIZE)?);
        }
        for k in 0..n {
            let at = self.place(&p, Base::Rw, &writes, k);
            self.access(Base::Rw, at, SIZE)?;
            self.late()?;
        }
        let began = self.device.now();
        let mut after = vec![];
        for k in 0..SPE {
            let at = self.place(&p, Base::Sr, &reads, k);
            let took = self.access(Base::Sr, at, SIZE)?;
            after.push((self.device.now(), took));
            self.late()?;
        }
        // Slow: the median of eight is above what nearly all reads took before.
        let usual = quantile(&before, 0.95).max(1.2 * median(&before));
        let slow = after.windows(8).rposition(|w| median(&w.iter().map(|x| x.1).collect::<Vec<_>>()) > usual);
        let slow_for = slow.map_or(0.0, |i| (after[i + 7].0 - began).secs() * 1e3);
        let still_slow = slow.is_some_and(|i| i + 8 >= after.len());
        self.out.pause = Pause { slow_for_ms: Some(slow_for), still_slow, ms: PAUSE_MS.max(1.2 * slow_for) };
        Ok(())
    }

    /// Does the target serve several requests at the same time?
    fn depth(&mut self) -> Result<()> {
        let Range { start, end } = self.task.region;
        let slots = (end - start) / SIZE;
        let whole = |depth: u32, b: &mut Self| -> Result<f64> {
            let all: Vec<Access> = (0..32).map(|_| Access { op: Op::Read, at: start + b.below(slots) * SIZE, len: SIZE }).collect();
            let times = b.device.batch(&all, depth)?;
            let first = times.iter().map(|t| t.start).min().unwrap_or(Nanos(0));
            let last = times.iter().map(|t| t.start + t.took).max().unwrap_or(first);
            Ok((last - first).secs())
        };
        let (one, many) = (whole(1, self)?, whole(16, self)?);
        self.out.one_at_a_time = many >= 0.8 * one;
        Ok(())
    }

    pub(super) fn access(&mut self, base: Base, at: u64, len: u64) -> Result<f64> {
        let op = if base.writes() {
            self.fill = self.fill.wrapping_add(1);
            self.written += len;
            Op::Write(Fill::Random(self.fill))
        } else {
            Op::Read
        };
        Ok(self.device.access(Access { op, at, len })?.took.secs())
    }

    fn experiment(&mut self, e: Experiment) -> Result<()> {
        let mut done = Done { experiment: e.clone(), points: vec![], left_out: vec![] };
        let sector = self.device.geometry().sector;
        let known: Vec<(Base, u64)> = self.out.phases.iter().map(|p| (p.base, p.start_up)).collect();
        // What a start-up of its own length does not leave room for is as uFLIP has it.
        let start = |b: Base| known.iter().find(|k| k.0 == b).map_or(0, |k| k.1).min(b.count());
        let mut result = Ok(());
        for &value in &e.values {
            let p = e.pattern(value, &start);
            if !p.size.is_multiple_of(sector) || !p.shift.is_multiple_of(sector) {
                done.left_out.push((value, format!("no multiple of the {sector} byte sector")));
                continue;
            }
            match self.value(&e, value, &p) {
                Ok(point) => done.points.push(point),
                Err(err) => {
                    let why = match &err {
                        DeviceError::Late => "the time allowed was over",
                        _ => "the bytes that may be written were used up, or the target failed",
                    };
                    let rest = e.values.iter().skip_while(|v| **v != value);
                    done.left_out.extend(rest.map(|&v| (v, why.to_string())));
                    result = Err(err);
                    break;
                }
            }
        }
        if !done.points.is_empty() {
            self.out.done.push(done);
        }
        result
    }

    fn value(&mut self, e: &Experiment, value: i64, p: &Pattern) -> Result<Point> {
        let (mut means, mut rates) = (vec![], vec![]);
        loop {
            let run = means.len() as u32;
            self.late()?;
            self.idle_ms(self.out.pause.ms);
            let rows = self.once(e, value, p, run)?;
            let n = rows.len() as f64;
            means.push(rows.iter().map(|r| r.mean_us).sum::<f64>() / n);
            let clock = rows.iter().map(|r| r.clock_us).fold(0.0, f64::max);
            rates.push(rows.iter().map(|r| r.count * p.size).sum::<u64>() as f64 / (clock / 1e6).max(1e-12));
            self.out.rows.extend(rows);
            let (m, [lo, hi]) = bounds(&means);
            let narrow = (hi - lo) / 2.0 <= self.task.within * m;
            let bytes = e.written(p) * p.streams;
            let room = self.task.writes.saturating_sub(self.written) > bytes;
            if means.len() as u32 >= RUNS && (narrow || means.len() as u32 >= self.task.most_runs || !room) {
                let x = e.x(value);
                return Ok(Point { value, x, runs: means.len() as u32, mean_us: m, interval_us: [lo, hi], narrow, rate: mean(&rates) });
            }
        }
    }

    /// One run; a row a stream.
    fn once(&mut self, e: &Experiment, value: i64, p: &Pattern, run: u32) -> Result<Vec<Row>> {
        let streams = p.streams.max(1);
        let areas: Vec<(Range<u64>, bool)> = if p.base.random() && streams > 1 {
            let Range { start, end } = self.task.region;
            let each = (end - start) / streams / ALIGN * ALIGN;
            (0..streams).map(|s| (start + s * each..start + (s + 1) * each, false)).collect()
        } else {
            (0..streams).map(|_| self.area(p, p.base)).collect()
        };
        let second = p.second.map(|b| self.area(p, b));
        let total = p.count * streams;
        let mut of_base = [0u64; 2];
        let mut all: Vec<(u64, Base, u64)> = Vec::with_capacity(total as usize);
        for i in 0..total {
            let (stream, k) = (i % streams, i / streams);
            let base = Experiment::base_of(p, k);
            let other = p.second == Some(base) && second.is_some() && base != p.base;
            let n = if p.second.is_some() { of_base[usize::from(other)] } else { k };
            of_base[usize::from(other)] += 1;
            let area = if other { second.clone().unwrap_or_else(|| areas[0].clone()) } else { areas[stream as usize].clone() };
            let at = self.place(p, base, &area, n);
            all.push((stream, base, at));
        }
        // No work of the journal may fall between two accesses.
        let mut ranges: Vec<(u64, u64)> = all.iter().filter(|a| a.1.writes()).map(|a| (a.2, p.size)).collect();
        ranges.sort_unstable();
        ranges.dedup();
        self.device.keep_old(&ranges)?;
        let began = self.device.now();
        let mut times: Vec<Vec<f64>> = vec![Vec::with_capacity(p.count as usize); streams as usize];
        if streams > 1 && !self.out.one_at_a_time {
            for part in all.chunks(64 * streams as usize) {
                let accesses: Vec<Access> = part
                    .iter()
                    .map(|&(_, base, at)| {
                        let op = if base.writes() {
                            self.fill = self.fill.wrapping_add(1);
                            self.written += p.size;
                            Op::Write(Fill::Random(self.fill))
                        } else {
                            Op::Read
                        };
                        Access { op, at, len: p.size }
                    })
                    .collect();
                for (t, a) in self.device.batch(&accesses, streams as u32)?.iter().zip(part) {
                    times[a.0 as usize].push(t.took.micros());
                }
                self.late()?;
            }
        } else {
            for (i, &(stream, base, at)) in all.iter().enumerate() {
                let took = self.access(base, at, p.size)?;
                times[stream as usize].push(took * 1e6);
                if p.pause_us > 0 {
                    self.device.idle(Nanos(p.pause_us * 1000));
                }
                if p.burst > 0 && (i as u64 + 1).is_multiple_of(p.burst) {
                    self.device.idle(Nanos(BURST_PAUSE_US * 1000));
                }
                if i % 256 == 0 {
                    self.late()?;
                }
            }
        }
        let clock_us = (self.device.now() - began).micros();
        let at = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |d| d.as_secs());
        let rows = times.iter().enumerate().map(|(s, t)| {
            let ignored = p.ignore.min(t.len() as u64 / 2);
            let counted = &t[ignored as usize..];
            let area = &areas[s];
            Row {
                code: e.code.clone(),
                bench: e.bench,
                exp: e.exp,
                value,
                run,
                stream: s as u64,
                pattern: Some(*p),
                mean_us: mean(counted),
                min_us: counted.iter().copied().fold(f64::INFINITY, f64::min),
                max_us: counted.iter().copied().fold(0.0, f64::max),
                deviation_us: deviation(counted),
                lost_us: (clock_us - times.iter().flatten().sum::<f64>()).max(0.0),
                clock_us,
                ignored,
                offset: area.0.start + p.shift,
                second_offset: second.as_ref().map_or(0, |a| a.0.start),
                count: t.len() as u64,
                target: area.0.end - area.0.start,
                second_target: second.as_ref().map_or(0, |a| a.0.end - a.0.start),
                crowded: area.1 || second.as_ref().is_some_and(|a| a.1),
                at,
            }
        });
        Ok(rows.collect())
    }
}

/// Mean of the runs with its bounds at 95 %.
fn bounds(means: &[f64]) -> (f64, [f64; 2]) {
    let (m, half) = mean_within(means);
    if means.len() < 2 {
        return (m, [0.0, f64::INFINITY]);
    }
    (m, [(m - half).max(0.0), m + half])
}

//! The record benchmark of SdFat (G1, G2, G8): a file written in records of one size, each call timed, then read back.

use super::{BenchFile, Result};
use crate::samples::records::{Pass, Round};
use crate::units::Nanos;
use std::sync::atomic::{AtomicBool, Ordering};

/// When data and directory entry are brought to the medium while a file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sync {
    Never,
    /// Once behind the last record, as SdFat has it.
    End,
    /// Behind every so many records; its time belongs to the call.
    Every(u64),
}

/// What to do.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Bytes of a record.
    pub record: u64,
    /// Bytes of the file; whole records are written.
    pub file: u64,
    pub passes: u32,
    /// Room for the file is set aside first.
    pub reserve: bool,
    /// The first call of a pass is left out of longest and shortest.
    pub skip_first: bool,
    pub sync: Sync,
    /// Reads the file back, as often as it was written.
    pub read: bool,
    /// Writes until this time of the target's clock, instead of `passes`.
    pub until: Option<Nanos>,
}

impl Plan {
    /// SdFat's bench: 5 MB, one pass, sync at the end.
    pub fn new(record: u64) -> Plan {
        let file = 5_000_000;
        Plan { record, file, passes: 1, reserve: false, skip_first: true, sync: Sync::End, read: true, until: None }
    }
}

/// How far it is: pass, of so many, share of the pass.
pub type Progress<'a> = &'a mut dyn FnMut(u32, u32, f64);

/// Runs the plan. A run of fixed time joins its passes into one; a run that is stopped returns what it has.
///
/// # Errors
/// The target fails, or the file does not fit.
pub fn run(file: &mut dyn BenchFile, plan: &Plan, stop: &AtomicBool, progress: Progress) -> Result<Vec<Pass>> {
    let mut out: Vec<Pass> = vec![];
    for write in [true, false] {
        if !write && !plan.read {
            break;
        }
        // A fixed time is one of writing; what was written last is read back.
        let plan = &Plan { until: plan.until.filter(|_| write), ..plan.clone() };
        let mut joined: Option<Pass> = None;
        let (mut n, began) = (0, file.now());
        while n < plan.passes || plan.until.is_some_and(|t| file.now() < t) {
            // A target without time never comes to the end of one.
            if stop.load(Ordering::Relaxed) || (n > 0 && n >= plan.passes && file.now() == began) {
                break;
            }
            let fresh = || Pass::new(write, plan.record, plan.skip_first);
            let mut pass = joined.take().unwrap_or_else(fresh);
            one(file, plan, &mut pass, stop, &mut |x| progress(n, plan.passes, x))?;
            if plan.until.is_some() {
                joined = Some(pass);
            } else {
                out.push(pass);
            }
            n += 1;
        }
        out.extend(joined);
    }
    out.retain(|p| p.records > 0);
    Ok(out)
}

/// One pass over the file, added to what the pass holds already.
fn one(file: &mut dyn BenchFile, plan: &Plan, pass: &mut Pass, stop: &AtomicBool, progress: &mut dyn FnMut(f64)) -> Result<()> {
    let write = pass.write;
    let reserve = plan.reserve.then_some(plan.file);
    pass.rounds.push(Round { first: pass.records, position: None });
    pass.opened = if write { file.create(reserve)? } else { file.open()? };
    let (earlier, begun) = (pass.elapsed.0, file.now());
    let records = plan.file / plan.record;
    for i in 0..records {
        if i % 1024 == 0 {
            if stop.load(Ordering::Relaxed) || (i > 0 && plan.until.is_some_and(|t| file.now() >= t)) {
                break;
            }
            progress(i as f64 / records as f64);
        }
        let mut took = if write { file.write(plan.record)? } else { file.read(plan.record)? };
        if let (true, Sync::Every(n)) = (write, plan.sync)
            && (i + 1) % n == 0
        {
            took = took + file.sync()?;
        }
        pass.add(took, earlier + (file.now() - begun).0);
        file.pause();
    }
    let synced = if write && plan.sync != Sync::Never { file.sync()? } else { Nanos(0) };
    pass.elapsed = Nanos(earlier) + (file.now() - begun);
    pass.closed = synced + file.close()?;
    pass.position = file.position();
    if let Some(r) = pass.rounds.last_mut() {
        r.position = pass.position;
    }
    Ok(())
}

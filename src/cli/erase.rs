//! `nandscope erase`: discard, secure discard or fill of a target or a part of it.

use super::args::{Dry, Named, Part, Written};
use super::progress::Progress;
use super::stop::Interrupt;
use crate::device::{self, CardState, DeviceError, Fill, Guard, Limits, OpenOptions};
use crate::host::facts::HostFacts;
use crate::layout::erase::{Done, How, Order, parts, run as erase, verify};
use crate::units::Bytes;
use anyhow::bail;
use clap::{Args, ValueEnum};
use std::ops::Range;
use std::process::ExitCode;

/// How to erase, as a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum HowArg {
    /// Tell the card that the data are no longer needed
    Discard,
    /// Tell the card to make the data unreadable
    Secure,
    /// Overwrite with zeros
    Zeroes,
    /// Overwrite with ones, what erased flash holds
    Ones,
    /// Overwrite with incompressible bytes
    Random,
    /// Overwrite each sector with its own address
    Stamp,
}

impl HowArg {
    /// The state of the region afterwards.
    pub fn state(self) -> CardState {
        if matches!(self, HowArg::Discard | HowArg::Secure) { CardState::Erased } else { CardState::Filled }
    }

    fn how(self) -> How {
        match self {
            HowArg::Discard => How::Discard,
            HowArg::Secure => How::SecureDiscard,
            HowArg::Zeroes => How::Fill(Fill::Zeros),
            HowArg::Ones => How::Fill(Fill::Ones),
            HowArg::Random => How::Fill(Fill::Random(1)),
            HowArg::Stamp => How::Fill(Fill::Stamp(1)),
        }
    }

    /// The order for a region; a discard keeps to the granularity the kernel reports.
    pub fn order(self, region: Range<u64>, sector: u64, facts: &HostFacts) -> Order {
        let granularity = facts.queue.as_ref().and_then(|q| q.discard_granularity).filter(|&g| g > 0).unwrap_or(sector);
        Order { region, how: self.how(), unit: granularity.next_multiple_of(sector), first: 0, ends: None }
    }
}

#[derive(Args)]
pub struct EraseArgs {
    /// /dev/..., an image file, sim:NAME, a card model PATH.toml, "exec:COMMAND ARGS" or serial:PORT
    #[arg(value_parser = super::target)]
    target: String,
    /// What to do
    #[arg(long = "how", value_enum, default_value = "discard")]
    how: HowArg,
    #[command(flatten)]
    named: Named,
    #[command(flatten)]
    dry: Dry,
    #[command(flatten)]
    part: Part,
    /// Units a discard keeps to: the erase block, or the erase group [default: what the kernel reports]
    #[arg(long, value_name = "SIZE")]
    align: Option<Bytes>,
    /// Fill with zeros what lies in the region beside whole units, instead of leaving it
    #[arg(long)]
    fill_ends: bool,
    /// Read back what was filled, and compare
    #[arg(long)]
    verify: bool,
    #[command(flatten)]
    out: Written,
    /// No progress
    #[arg(long, short)]
    quiet: bool,
}

pub fn run(a: EraseArgs) -> anyhow::Result<ExitCode> {
    let target = if a.verify { device::with_content(&a.target) } else { a.target.clone() };
    let mut opened = device::open(&target, &OpenOptions::default())?;
    let g = opened.geometry().clone();
    let region = a.part.of(&g)?;
    let mut order = a.how.order(region.clone(), g.sector, opened.facts());
    if let Some(unit) = a.align {
        if unit.0 == 0 || !unit.0.is_multiple_of(g.sector) {
            return Err(super::misuse(format!("--align {unit} is not a multiple of the {} byte sector", g.sector)));
        }
        order.unit = unit.0;
    }
    order.ends = a.fill_ends.then_some(Fill::Zeros);
    let whole = parts(&region, order.unit, order.first, g.offset).whole;
    if !matches!(order.how, How::Fill(_)) && order.ends.is_none() && whole.is_empty() {
        let why = format!(
            "the region holds no whole unit of {}, and nothing else is discarded; a smaller --align, or --fill-ends",
            Bytes(order.unit)
        );
        return Err(super::misuse(why));
    }
    if !a.quiet || a.dry.dry_run {
        for s in opened.signatures()? {
            tell!("will be lost: {s}");
        }
    }
    if a.dry.dry_run {
        let how = if matches!(order.how, How::Fill(_)) { "fill" } else { "discard" };
        tell!("would {how} bytes {} to {}, in units of {}", region.start, region.end, Bytes(order.unit));
        return Ok(a.dry.done(opened.id()));
    }
    let consent = a.named.check(opened.id())?;
    let budget = order.writes(g.offset);
    let mut guard = opened.writable(&consent, &Limits { region: Some(region.clone()), budget, undo: None })?;
    let done = erase_all(&mut guard, &order, a.quiet)?;
    let verified = a.verify && matches!(order.how, How::Fill(_)) && !done.stopped;
    if let (true, How::Fill(fill)) = (verified, order.how) {
        let mut bar = Progress::bytes("reading back", region.end - region.start, a.quiet);
        let done = verify(&mut guard, &region, fill, &mut |at| {
            bar.at(at);
            true
        });
        match done {
            // What was written and is not there.
            Err(e @ DeviceError::Io { op: "write", .. }) => {
                tell!("nandscope: {}", super::told(&e.into()));
                return Ok(ExitCode::from(super::FAILING));
            }
            other => other?,
        }
    }
    let state = if done.stopped || done.left > 0 { CardState::Unknown } else { a.how.state() };
    let value = serde_json::json!({ "schema": "nandscope-erase/1", "target": a.target, "region": [region.start, region.end], "unit": order.unit,
        "done": done, "verified": verified, "state": state });
    if !a.out.put(&value)? {
        say!("discarded {}, filled {}, state now: {state}", Bytes(done.discarded), Bytes(done.filled));
        if done.left > 0 {
            say!("{} at the ends of the region do not fill a unit of {} and are as they were", Bytes(done.left), Bytes(order.unit));
        }
    }
    if done.stopped {
        bail!("interrupted");
    }
    Ok(ExitCode::SUCCESS)
}

/// Erases with a progress bar; Ctrl-C ends it between two requests.
pub fn erase_all(guard: &mut Guard, order: &Order, quiet: bool) -> anyhow::Result<Done> {
    let stop = Interrupt::new()?;
    let mut bar = Progress::bytes("erasing", order.region.end - order.region.start, quiet);
    let done = erase(guard, order, &mut |at| {
        bar.at(at);
        !stop.came()
    });
    Ok(done?)
}

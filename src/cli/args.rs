//! Arguments that many commands have: each is defined once, so that it has one name, one form and one meaning.

use super::probe::{parse_region, region_of};
use crate::device::{Consent, DeviceError, Geometry, TargetId};
use crate::host::facts::TargetKind;
use crate::units::{Bytes, Nanos, parse_duration};
use clap::Args;
use std::ops::Range;

/// The name of the device that may be written.
#[derive(Args, Debug)]
pub struct Named {
    /// Names the device or image to be written: its serial number, or its size in bytes where it has none
    #[arg(long, value_name = "ID")]
    pub consent: Option<String>,
}

impl Named {
    /// Consent to write this target.
    ///
    /// # Errors
    /// `Refused` where it is missing or names another one.
    pub fn check(&self, id: &TargetId) -> Result<Consent, DeviceError> {
        Consent::check(id, self.consent.as_deref())
    }
}

/// Permission to write.
#[derive(Args, Debug)]
pub struct Writing {
    /// Allow writing; a device also needs --consent
    #[arg(long)]
    pub write: bool,
    #[command(flatten)]
    pub named: Named,
    #[command(flatten)]
    pub dry: Dry,
}

/// Only the plan.
#[derive(Args, Debug)]
pub struct Dry {
    /// Print what would be written and where, and end; needs no --consent
    #[arg(long)]
    pub dry_run: bool,
}

impl Dry {
    /// What was not done, and the consent that doing it needs.
    pub fn done(&self, id: &TargetId) -> std::process::ExitCode {
        match id.kind {
            TargetKind::Simulated => say!("nothing was read or written; without --dry-run it is"),
            _ => say!("nothing was measured or written; writing needs --consent {}", id.consent_id()),
        }
        std::process::ExitCode::SUCCESS
    }
}

/// How long, and with what chance.
#[derive(Args, Debug)]
pub struct Measuring {
    /// Most time for the measurement
    #[arg(long, value_parser = parse_duration)]
    pub time: Option<Nanos>,
    #[command(flatten)]
    pub chance: Chance,
}

impl Measuring {
    /// The time that is allowed, or this many seconds.
    pub fn time_or(&self, seconds: f64) -> Nanos {
        self.time.unwrap_or(Nanos::from_secs_f64(seconds))
    }
}

#[derive(Args, Debug)]
pub struct Chance {
    /// Seed of positions and order
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

/// Part of a target.
#[derive(Args, Debug)]
pub struct Part {
    /// Part of the target to use, as START..END, for example 64MiB..1GiB
    #[arg(long, value_name = "RANGE", value_parser = parse_region)]
    region: Option<(Option<Bytes>, Option<Bytes>)>,
}

impl Part {
    /// Its first byte, and its end where one is given; none where the whole target is meant.
    pub fn asked(&self) -> Option<(u64, Option<u64>)> {
        self.region.map(|(s, e)| (s.map_or(0, |b| b.0), e.map(|b| b.0)))
    }

    /// The part of this target.
    ///
    /// # Errors
    /// It is not part of the target, or not on its grid.
    pub fn of(&self, g: &Geometry) -> Result<Range<u64>, DeviceError> {
        region_of(self.asked(), g)
    }
}

//! `nandscope campaign`: a plan of cards and steps, worked through by as many workers as there are readers. What is done is kept in a directory, and where
//! several hosts share a list of cards, on their PostgreSQL server.

pub mod contention;
mod shared;
pub mod state;
mod turns;
mod work;

pub use shared::Shared;
pub use work::{Event, Host, Outcome, find, says, words, work};

use crate::units::{Nanos, parse_duration};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Name and version of the form of what `--json` writes.
pub const SCHEMA: &str = "nandscope-campaign/1";

/// What is done with a card, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Step {
    Check,
    Probe,
    Rate,
    /// A card model fitted to the probe.
    Twin,
    /// An audit of the layout with the probe's erase block.
    Layout,
}

impl Step {
    pub const ALL: [Step; 5] = [Step::Check, Step::Probe, Step::Rate, Step::Twin, Step::Layout];

    pub fn name(self) -> &'static str {
        match self {
            Step::Check => "check",
            Step::Probe => "probe",
            Step::Rate => "rate",
            Step::Twin => "twin",
            Step::Layout => "layout",
        }
    }

    /// It times accesses, so that it must not run beside others on one bus.
    pub fn times(self) -> bool {
        matches!(self, Step::Check | Step::Probe | Step::Rate)
    }

    /// It begins with the report of the probe.
    pub fn needs_probe(self) -> bool {
        matches!(self, Step::Twin | Step::Layout)
    }
}

/// Readers whose steps must not run at the same time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Bus {
    /// Reads alone and at the same time say which readers slow each other.
    #[default]
    Measure,
    /// One reader at a time.
    Shared,
    /// All at the same time.
    Apart,
}

/// One card of the plan.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Card {
    /// Its name in tables and in the state directory; the serial number or the target where it has none.
    pub name: Option<String>,
    pub target: Option<String>,
    /// The target as it is opened: a path in a plan begins where the plan is.
    #[serde(skip)]
    pub place: Option<String>,
    /// In whichever reader of whichever host it is.
    pub serial: Option<String>,
    pub lot: Option<String>,
    pub maker: Option<String>,
    pub part: Option<String>,
    pub price: Option<String>,
    /// Consent to write to this card: its serial number, or its size in bytes where it has none.
    pub consent: Option<String>,
    /// Whether experiments that write are run; simulated cards are written unless this is false.
    pub write: Option<bool>,
    pub steps: Option<Vec<Step>>,
}

impl Card {
    /// What names the card in this campaign.
    pub fn key(&self) -> &str {
        [&self.name, &self.serial, &self.target].into_iter().flatten().next().map_or("", String::as_str)
    }
}

/// Consent by a rule.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Rule {
    /// Serial numbers of cards that may be written.
    pub serials: Vec<String>,
    /// A file with one such number a line.
    pub file: Option<String>,
}

/// What is to be done.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Plan {
    /// Names the campaign where several hosts share it.
    pub name: Option<String>,
    /// Steps of each card that names none [default: check, probe].
    pub steps: Vec<Step>,
    /// Directory or postgres:// URL of the survey that results go to [default: "survey" in the state directory].
    pub survey: Option<String>,
    pub bus: Bus,
    /// Most cards at the same time.
    pub workers: Option<usize>,
    /// How long a host may be silent before its cards are given to others.
    pub lease: Option<String>,
    pub consent: Rule,
    /// Further words for the command of a step, as rate = ["--class", "C10"].
    pub options: BTreeMap<Step, Vec<String>>,
    pub card: Vec<Card>,
}

/// A target that is a path, and no absolute one, from the directory of the plan on.
fn beside(dir: &Path, target: &str) -> String {
    let path = if target.contains('/') || target.contains(".toml") { Path::new(target).is_relative() } else { dir.join(target).is_file() };
    let other = ["sim:", "exec:", "serial:"].iter().any(|o| target.starts_with(o));
    if path && !other { dir.join(target).display().to_string() } else { target.into() }
}

/// What a plan does not say for all cards: writing, and where results go.
const OF_THE_CAMPAIGN: [&str; 12] = [
    "--write",
    "--consent",
    "--no-undo",
    "--force",
    "--prepare",
    "--read-only",
    "--json",
    "--format",
    "--output",
    "-o",
    "--dry-run",
    "--twin",
];

/// Most words of a name that become a directory.
const LONGEST: usize = 60;

impl Plan {
    /// # Errors
    /// What is wrong with it, in words.
    pub fn parse(text: &str, dir: &Path) -> Result<Plan, String> {
        let mut plan: Plan = toml::from_str(text).map_err(|e| e.to_string())?;
        if plan.card.is_empty() {
            return Err("a plan has at least one [[card]] with `target` or `serial`".into());
        }
        if plan.steps.is_empty() {
            plan.steps = vec![Step::Check, Step::Probe];
        }
        let mut places = BTreeSet::new();
        for c in &plan.card {
            if c.target.is_none() == c.serial.is_none() {
                return Err(format!("card '{}' has either `target` or `serial`", c.key()));
            }
            if c.name.as_deref().is_some_and(|n| n.trim().is_empty()) {
                return Err(format!(
                    "card '{}': `name` is empty; leave it out, or give it one",
                    c.target.as_deref().or(c.serial.as_deref()).unwrap_or("")
                ));
            }
            if !places.insert(place(c.key())) {
                return Err(format!("two cards are called '{}'; give each a `name`", c.key()));
            }
            let steps = plan.steps_of(c);
            if steps.iter().any(|s| s.needs_probe()) && !steps.contains(&Step::Probe) {
                return Err(format!("card '{}': twin and layout begin with the report of the step probe; add that", c.key()));
            }
            if c.price.as_deref().is_some_and(|p| crate::advise::price::parse(p).is_err()) {
                return Err(format!("card '{}': a price has a currency, as '5.75 USD'", c.key()));
            }
        }
        for (step, words) in &plan.options {
            let bare = |w: &String| w.split('=').next().unwrap_or("").to_string();
            if let Some(w) = words.iter().find(|w| OF_THE_CAMPAIGN.contains(&bare(w).as_str())) {
                return Err(format!("options.{}: {w} is said for each card (`write`, `consent`), or is of the campaign", step.name()));
            }
        }
        for c in &mut plan.card {
            c.place = c.target.as_deref().map(|t| beside(dir, t));
        }
        if let Some(file) = plan.consent.file.clone() {
            let path = dir.join(&file);
            let text = std::fs::read_to_string(&path).map_err(|e| format!("consent.file: cannot read {}: {e}", path.display()))?;
            plan.consent
                .serials
                .extend(text.lines().map(|l| l.split('#').next().unwrap_or("").trim().to_string()).filter(|l| !l.is_empty()));
        }
        plan.lease()?;
        if plan.workers == Some(0) {
            return Err("`workers` is 1 or more".into());
        }
        if plan.name.as_deref().is_some_and(|n| n.trim().is_empty()) {
            return Err("`name` is empty; leave it out, or give it one".into());
        }
        if plan.server().is_some() && plan.name.is_none() {
            return Err("a campaign on a server has a `name`: hosts with the same name share its cards".into());
        }
        Ok(plan)
    }

    /// The server that hosts share.
    pub fn server(&self) -> Option<&str> {
        self.survey.as_deref().filter(|s| s.starts_with("postgres://") || s.starts_with("postgresql://"))
    }

    /// # Errors
    /// It is no time.
    pub fn lease(&self) -> Result<Nanos, String> {
        let lease = self.lease.as_deref().map_or(Ok(Nanos::from_secs_f64(60.0)), parse_duration)?;
        if lease.secs() < 1.0 { Err("`lease` is 1s or more".into()) } else { Ok(lease) }
    }

    /// Steps of a card, in their order.
    pub fn steps_of(&self, c: &Card) -> Vec<Step> {
        let asked = c.steps.as_ref().unwrap_or(&self.steps);
        Step::ALL.into_iter().filter(|s| asked.contains(s)).collect()
    }

    /// What of this plan decides what a step of a card does.
    pub fn asked(&self, c: &Card, step: Step) -> state::Asked {
        let write = match self.consent_of(c, c.serial.as_deref()) {
            _ if !step.times() || c.write == Some(false) => "no",
            Some(_) => "yes",
            None => "simulated",
        };
        let card = c.target.as_ref().or(c.serial.as_ref()).cloned().unwrap_or_default();
        state::Asked { card, write: write.into(), options: self.options.get(&step).cloned().unwrap_or_default() }
    }

    /// The name by which a card may be written, where the plan allows it: its own, or that of the rule.
    pub fn consent_of(&self, c: &Card, serial: Option<&str>) -> Option<String> {
        if c.write == Some(false) {
            return None;
        }
        let by_rule = || serial.filter(|s| self.consent.serials.iter().any(|l| l == s)).map(str::to_string);
        c.consent.clone().or_else(by_rule)
    }
}

/// The name as that of a directory: letters, digits, and a sum that keeps names apart that differ in other characters only.
pub fn place(key: &str) -> String {
    let plain: String = key.chars().map(|c| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' }).take(LONGEST).collect();
    if plain == key && !plain.starts_with('.') {
        return plain;
    }
    let sum = key.bytes().fold(0xcbf2_9ce4_8422_2325u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3));
    format!("{}-{:08x}", plain.trim_start_matches('.'), sum as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(text: &str) -> Result<Plan, String> {
        Plan::parse(text, Path::new("."))
    }

    #[test]
    fn what_is_wrong_is_named() {
        let card = "[[card]]\ntarget = 'sim:toshiba-emmc'\n";
        for (text, says) in [
            ("", "at least one [[card]]"),
            ("[[card]]\nname = ''\ntarget = 'sim:null'\n", "`name` is empty"),
            ("[[card]]\nname = 'x'\n", "either `target` or `serial`"),
            ("[[card]]\ntarget = '/dev/sda'\nserial = '1'\n", "either `target` or `serial`"),
            (&format!("{card}{card}"), "two cards are called 'sim:toshiba-emmc'"),
            (&format!("steps = ['twin']\n{card}"), "begin with the report of the step probe"),
            (&format!("steps = ['dance']\n{card}"), "unknown variant"),
            (&format!("lease = '1ms'\n{card}"), "`lease` is 1s or more"),
            (&format!("workers = 0\n{card}"), "`workers` is 1 or more"),
            (&format!("survey = 'postgres://x/y'\n{card}"), "has a `name`"),
            (&format!("{card}price = '5'\n"), "a price has a currency"),
            (&format!("{card}[options]\nprobe = ['--consent=1']\n"), "options.probe: --consent=1 is said for each card"),
            (&format!("{card}[consent]\nfile = 'nowhere'\n"), "consent.file: cannot read"),
        ] {
            let why = plan(text).unwrap_err();
            assert!(why.contains(says), "{text}: {why}");
        }
    }

    #[test]
    fn consent_is_of_a_card_or_of_a_serial_number_in_the_rule() {
        let p = plan("[consent]\nserials = ['0xa']\n[[card]]\nserial = '0xa'\n[[card]]\nserial = '0xb'\n[[card]]\ntarget = '/dev/sdc'\nconsent = '512'\n[[card]]\nserial = '0xa'\nname = 'n'\nwrite = false\n").unwrap();
        let of = |i: usize, serial: Option<&str>| p.consent_of(&p.card[i], serial);
        assert_eq!(of(0, Some("0xa")).as_deref(), Some("0xa"));
        assert_eq!(of(1, Some("0xb")), None);
        assert_eq!(of(2, None).as_deref(), Some("512"));
        assert_eq!(of(0, None), None, "a card without a serial number is in no list of serial numbers");
        assert_eq!(of(3, Some("0xa")), None);
        assert_eq!(p.steps_of(&p.card[0]), [Step::Check, Step::Probe]);
    }

    #[test]
    fn directories_keep_names_apart() {
        assert_eq!(place("A-17"), "A-17");
        assert_ne!(place("exec:a b"), place("exec:a_b"));
        assert_ne!(place("../x"), place("..:x"));
        assert!(!place("../x").starts_with('.') && !place("/dev/sda").contains('/'));
    }
}

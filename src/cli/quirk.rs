//! `nandscope quirk REPORT...`: an entry for the kernel's list of cards with quirks, where measurements support one.

use super::UNDECIDED;
use super::args::Output;
use crate::advise::quirk::{self, Compared, Entry, Evidence, Proposal, Support, proposals};
use crate::host::declared::Kind;
use crate::host::facts::TargetKind;
use crate::host::registers::cid::{Cid, CidLayout, likely};
use crate::host::registers::{Date, parse_array};
use crate::report::Report;
use crate::report::any::Saved;
use crate::report::terminal::lines as wrap;
use crate::saved::one_card;
use anyhow::{Context, bail};
use clap::Args;
use std::path::PathBuf;
use std::process::ExitCode;

const AFTER: &str = "\
A report is what --json of `probe`, `run` or `ab` wrote, all of one card. The comparisons that support an entry:
  nandscope ab DEVICE --a cmd23=off --b cmd23=on --load linear --size 256KiB --write --consent ID --json cmd23.json
  nandscope ab DEVICE --b discard=on --load linear --write --consent ID --json discard.json

Exit codes: 0 an entry is proposed, 3 none is.";

#[derive(Args)]
#[command(after_help = AFTER)]
pub struct QuirkArgs {
    /// Reports and comparisons of one card
    #[arg(required = true, value_name = "REPORT")]
    reports: Vec<PathBuf>,
    /// The card's CID, 32 hex digits, where the reports do not show it (a USB reader, a simulated card)
    #[arg(long, value_name = "HEX")]
    cid: Option<String>,
    /// The CID is that of an MMC or eMMC
    #[arg(long, requires = "cid")]
    mmc: bool,
    /// A copy of drivers/mmc/core/quirks.h: print a patch against it
    #[arg(long, value_name = "F")]
    source: Option<PathBuf>,
    #[command(flatten)]
    out: Output,
}

/// Runs the subcommand.
pub fn run(a: QuirkArgs) -> anyhow::Result<ExitCode> {
    let (mut named, mut compared): (Vec<(String, Report)>, Vec<Compared>) = (vec![], vec![]);
    let mut simulated: Vec<String> = vec![];
    for path in &a.reports {
        let name = path.display().to_string();
        match Saved::load(path)? {
            Saved::Compared(c) => {
                simulated.extend(c.simulated.then_some(name));
                compared.push(c);
            }
            other => {
                let report = other.report(&name)?;
                simulated.extend((report.target.kind == TargetKind::Simulated).then(|| name.clone()));
                named.push((name, report));
            }
        }
    }
    one_card(named.iter().map(|(name, r)| (name.as_str(), r))).map_err(anyhow::Error::msg)?;
    let reports: Vec<Report> = named.into_iter().map(|x| x.1).collect();
    let (kind, cid, ext_csd_rev) = card(&a, &reports)?;
    if !cid.date.possible(Date::today()) {
        bail!(
            "the production date {} of the CID cannot be, and an entry is limited to it: is the CID copied rightly, of this card, and of \
             an SD card (--mmc for an eMMC)?",
            cid.date
        );
    }
    let all = proposals(&Evidence { kind, cid: &cid, ext_csd_rev, reports: &reports, compared: &compared });
    let entries: Vec<&Entry> = all.iter().filter_map(|p| p.entry.as_ref()).collect();
    let patch = match &a.source {
        Some(path) if !entries.is_empty() => {
            let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
            Some(quirk::patch(&text, &entries).map_err(|e| anyhow::anyhow!("{}: {e}", path.display()))?)
        }
        _ => None,
    };
    let card =
        serde_json::json!({ "name": cid.name, "manfid": cid.manfid, "oemid": cid.oemid, "year": cid.date.year, "month": cid.date.month });
    let value =
        serde_json::json!({ "schema": "nandscope-quirk/1", "card": card, "proposals": all, "patch": patch, "simulated": simulated });
    if !a.out.write(&value)? {
        put!("{}", text(&cid, &all, patch.as_deref(), &simulated, super::width().min(100)));
    }
    Ok(if entries.is_empty() { ExitCode::from(UNDECIDED) } else { ExitCode::SUCCESS })
}

/// The one card that all is about.
fn card(a: &QuirkArgs, reports: &[Report]) -> anyhow::Result<(Kind, Cid, Option<u8>)> {
    if let Some(hex) = &a.cid {
        let bytes: [u8; 16] = parse_array("CID", hex)?;
        let (layout, why) = likely(&bytes, Date::today());
        let mmc = a.mmc || layout == CidLayout::Mmc;
        if let (false, Some(why)) = (a.mmc, why) {
            tell!("nandscope: {why}{}", if mmc { "" } else { ": if it is one, --mmc reads it so" });
        }
        return Ok(match mmc {
            true => (Kind::Mmc, Cid::mmc(&bytes, Some(4), None, Date::today()), None),
            false => (Kind::Sd, Cid::sd(&bytes), None),
        });
    }
    let mut found: Vec<(Kind, Cid, Option<u8>)> = vec![];
    for d in reports.iter().filter_map(quirk::declared) {
        let Some(cid) = d.cid else { continue };
        let known = found.iter().any(|f| (f.1.manfid, f.1.oemid, &f.1.name) == (cid.manfid, cid.oemid, &cid.name));
        if !known {
            found.push((d.kind, cid, d.ext_csd.as_ref().and_then(|e| e.rev)));
        }
    }
    match found.len() {
        1 => Ok(found.remove(0)),
        0 => bail!(
            "no report shows the card's identification (CID), by which the kernel knows it: give it with --cid, as /sys/block/mmcblkN/device/cid has it"
        ),
        _ => {
            let names: Vec<String> = found.iter().map(|f| f.1.name.clone()).collect();
            bail!("the reports are of several cards ({}): give those of one", names.join(", "))
        }
    }
}

fn text(cid: &Cid, all: &[Proposal], patch: Option<&str>, simulated: &[String], width: usize) -> String {
    let mut out =
        format!("{}, manufacturer {:#04x}, OEM {:#06x}, made {:02}/{}\n", cid.name, cid.manfid, cid.oemid, cid.date.month, cid.date.year);
    if !simulated.is_empty() {
        let what =
            format!("Measured on a simulated card ({}): no evidence of a real one, and not to be sent to anybody.", simulated.join(", "));
        wrap(&what, width).iter().for_each(|l| out += &format!("{l}\n"));
    }
    out += "\n";
    for p in all {
        let word = match (p.support, p.listed) {
            (Support::Supported, true) => "listed by the kernel already",
            (Support::Supported, false) => "an entry is supported",
            (Support::NotSupported, _) => "no entry",
            (Support::NotMeasured, _) => "not decided",
        };
        out += &format!("{:<20}{word}\n", p.quirk);
        wrap(&p.why, width.saturating_sub(4)).iter().for_each(|l| out += &format!("    {l}\n"));
    }
    if let Some(patch) = patch {
        return out + "\n" + patch;
    }
    for e in all.iter().filter_map(|p| p.entry.as_ref()) {
        out += &format!(
            "\nin drivers/mmc/core/quirks.h, before END_FIXUP of {} (--source F makes a patch):\n\n{}",
            e.table,
            e.text.trim_end_matches('\n')
        );
        out += "\n";
    }
    out
}

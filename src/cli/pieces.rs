//! `nandscope map` looks where the pieces of files lie, `nandscope defrag` puts them together, `nandscope age` scatters them.

use super::args::{Dry, Output, Written};
use super::files::{Place, PlanArgs, Target, cut_off, volume_error};
use super::frag::allowed;
use super::progress::Progress;
use super::stop;
use crate::device::Device;
use crate::lab::experiment::map_grid;
use crate::lab::fragment::{self, Map};
use crate::lab::mounted as lab_mounted;
use crate::lab::{age, defragment};
use crate::report::{frag as report, html, maps};
use crate::saved::Tool;
use crate::units::{Bytes, about};
use crate::volume::{Directory, Volume};
use anyhow::bail;
use clap::Args;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Args)]
pub struct MapArgs {
    #[command(flatten)]
    target: Target,
    /// Bytes of an AU [default: by capacity]
    #[arg(long, value_name = "SIZE")]
    au: Option<Bytes>,
    /// Write the map as one HTML page, too
    #[arg(long, value_name = "F")]
    html: Option<PathBuf>,
    /// Write the map as an SVG file, too
    #[arg(long, value_name = "F")]
    svg: Option<PathBuf>,
    #[command(flatten)]
    out: Output,
}

/// Looks at a volume, writes nothing to it.
pub fn map(a: MapArgs) -> anyhow::Result<ExitCode> {
    let (what, state, map) = match a.target.open(None)? {
        Place::Directory(mut d) => {
            let space = d.space().map_err(volume_error)?;
            let au = map_grid(a.au.map(|b| b.0).filter(|&b| b > 0), space.size);
            let (state, map) = looked(&mut d, au, a.target.quiet)?;
            (format!("{}, {} ({}): files below this directory", a.target.target, d.filesystem(), d.label()), state, map)
        }
        Place::Medium(m) => {
            let tree = m.tree(&a.target.target)?;
            let au = map_grid(a.au.map(|b| b.0).filter(|&b| b > 0), m.device.geometry().size);
            let mut what = format!("{}, {}, clusters of {}", a.target.target, tree.volume.kind, Bytes(tree.volume.cluster));
            if tree.lost > 0 || tree.copies_differ {
                let differ = if tree.copies_differ { ", the copies of the table differ" } else { "" };
                what += &format!("\nnote: {} clusters belong to nothing{differ}; fsck mends that", tree.lost);
            }
            (what, fragment::of_tree(&tree), Map::of_tree(&tree, m.range.start % au, au))
        }
    };
    let save = |path: &PathBuf, text: String| super::write_text(path, &text);
    if let Some(path) = &a.html {
        save(path, html::map_page(&a.target.target, &what, &state, &map))?;
    }
    if let Some(path) = &a.svg {
        save(path, maps::svg(&map))?;
    }
    let value = serde_json::json!({
        "schema": "nandscope-map/1", "tool": Tool::this(), "target": a.target.target, "volume": what, "au": map.au,
        "fragmentation": state,
    });
    if a.out.write(&value)? {
        return Ok(ExitCode::SUCCESS);
    }
    say!("{what}\n{}", report::fragmentation(&state));
    put!("{}", report::map(&map, super::width().min(100) - 4));
    Ok(ExitCode::SUCCESS)
}

/// Where the files below a directory lie: of a large one that takes minutes.
fn looked(d: &mut Directory, au: u64, quiet: bool) -> anyhow::Result<(fragment::Fragmentation, Map)> {
    let mut line = Progress::phases(quiet);
    let found = fragment::of_files(d, au, &mut |what, x| line.phase(what, x));
    line.end();
    found.map_err(volume_error)
}

#[derive(Args)]
pub struct DefragArgs {
    #[command(flatten)]
    target: Target,
    /// Directory on another disk for the files of a mounted card while it is formatted
    #[arg(long, value_name = "DIR")]
    spare: Option<PathBuf>,
    #[command(flatten)]
    dry: Dry,
    #[command(flatten)]
    out: Written,
}

/// Name and version of what `defrag` and `age` write for programs.
const DEFRAG: &str = "nandscope-defrag/1";
const AGE: &str = "nandscope-age/1";

/// Defragments a FAT volume in-process, where a cut at any moment loses no file; or a mounted filesystem.
pub fn defrag(a: DefragArgs) -> anyhow::Result<ExitCode> {
    a.target.writable()?;
    let m = match a.target.open(Some(u64::MAX).filter(|_| !a.dry.dry_run))? {
        Place::Medium(m) => m,
        Place::Directory(d) => return defrag_mounted(&a, d),
    };
    if a.dry.dry_run {
        say!("now: {}", report::fragmentation(&fragment::of_tree(&m.tree(&a.target.target)?)));
        say!("files in more than one piece are written once more, in one, within bytes {} to {}", m.range.start, m.range.end);
        return Ok(a.dry.done(&m.id));
    }
    drop(m.mount(&a.target.target)?);
    let stop = stop::on_signals(stop::Second::Ends)?;
    let mut line = Progress::phases(a.target.quiet);
    let mut device = m.device.clone();
    let done = defragment::defragment(&mut device, m.range.start, &stop, &mut |x| line.phase("defragmenting", x));
    line.end();
    let d = done.map_err(|e| cut_off(e, "every file is whole; run fsck.fat -a on the volume, then this command again"))?;
    let mut value = serde_json::to_value(d)?;
    (value["schema"], value["target"]) = (DEFRAG.into(), a.target.target.clone().into());
    if a.out.put(&value)? {
        return Ok(ExitCode::SUCCESS);
    }
    say!(
        "{} files; in more than one piece: {} before, {} after; {} moved",
        d.files,
        d.fragmented_before,
        d.fragmented_after,
        about(d.bytes_moved)
    );
    if d.directories_before > 0 {
        say!("directories in more than one piece: {} before, {} after", d.directories_before, d.directories_after);
    }
    if d.stopped {
        say!("stopped; the volume is whole, and the same command goes on");
    }
    Ok(ExitCode::SUCCESS)
}

fn defrag_mounted(a: &DefragArgs, mut d: Directory) -> anyhow::Result<ExitCode> {
    let space = d.space().map_err(volume_error)?;
    let au = map_grid(None, space.size);
    let before = looked(&mut d, au, a.target.quiet)?.0;
    if a.dry.dry_run {
        say!("now: {}", report::fragmentation(&before));
        say!(
            "{}",
            match d.filesystem() == "ext4" {
                true => "files in more than one piece are written once more by the filesystem itself",
                false => "its files are copied off, it is FORMATTED, and they are copied back; this needs --consent",
            }
        );
        return Ok(Dry::nothing());
    }
    let blank = if d.filesystem() == "ext4" { None } else { Some(allowed(&d, &a.target, a.spare.as_ref())?) };
    let mut line = Progress::phases(a.target.quiet);
    let done = lab_mounted::defragment(&mut d, blank.as_ref(), &mut |what, x| line.phase(what, x));
    line.end();
    let how = done.map_err(volume_error)?.to_string();
    let after = looked(&mut d, au, a.target.quiet)?.0;
    let value = serde_json::json!({ "schema": DEFRAG, "target": a.target.target, "files": after.files, "fragmented_before": before.fragmented,
        "fragmented_after": after.fragmented, "stopped": false, "how": how });
    if a.out.put(&value)? {
        return Ok(ExitCode::SUCCESS);
    }
    say!("{how}");
    say!("before: {}", report::fragmentation(&before));
    say!("after:  {}", report::fragmentation(&after));
    Ok(ExitCode::SUCCESS)
}

#[derive(Args)]
pub struct AgeArgs {
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    plan: PlanArgs,
    /// Remove everything an ageing made, instead
    #[arg(long, conflicts_with = "verify")]
    remove: bool,
    /// Read all its files back and compare them, instead
    #[arg(long)]
    verify: bool,
    #[command(flatten)]
    dry: Dry,
    #[command(flatten)]
    out: Written,
}

/// Ages a volume with files.
pub fn age(a: AgeArgs) -> anyhow::Result<ExitCode> {
    let plan = a.plan.plan()?;
    if !a.verify {
        a.target.writable()?;
    }
    let place = a.target.open(if a.verify || a.dry.dry_run { None } else { Some(u64::MAX) })?;
    if a.dry.dry_run {
        return would_age(&a, &plan, place);
    }
    let mut v = a.target.volume(place)?;
    let told = |mut value: serde_json::Value| {
        (value["schema"], value["target"]) = (AGE.into(), a.target.target.clone().into());
        a.out.put(&value)
    };
    if a.remove {
        let files = age::remove(&mut *v).map_err(volume_error)?;
        if !told(serde_json::json!({ "files_removed": files }))? {
            say!("{files} files removed");
        }
        return Ok(ExitCode::SUCCESS);
    }
    if a.verify {
        let Some(state) = age::state(&mut *v).map_err(volume_error)? else { bail!("{} holds no ageing", a.target.target) };
        let files = age::verify(&mut *v, &state).map_err(volume_error)?;
        if !told(serde_json::json!({ "files_as_written": files }))? {
            say!("{files} files are as they were written");
        }
        return Ok(ExitCode::SUCCESS);
    }
    let stop = stop::on_signals(stop::Second::Ends)?;
    stop::says("closing the files that are open");
    let mut line = Progress::phases(a.target.quiet);
    let done = age::age(&mut *v, &plan, &stop, &mut |p| {
        line.phase(&format!("ageing, pass {} of {}", p.passes + 1, p.of), f64::from(p.passes) / f64::from(p.of.max(1)));
    });
    line.end();
    let aged = done.map_err(|e| cut_off(e, "run fsck on the volume, then this command again: it goes on where it was"))?;
    if told(
        serde_json::json!({ "passes": aged.state.passes, "of": plan.passes, "files_made": aged.files_made, "files_removed": aged.files_removed,
        "bytes_written": aged.bytes_written, "stopped": aged.stopped }),
    )? {
        return Ok(ExitCode::SUCCESS);
    }
    say!(
        "{} of {} passes; {} files made, {} removed, {} MB written",
        aged.state.passes,
        plan.passes,
        aged.files_made,
        aged.files_removed,
        aged.bytes_written / 1_000_000
    );
    if aged.stopped {
        say!("stopped; the same command goes on, --remove removes what was made");
    }
    Ok(ExitCode::SUCCESS)
}

/// What ageing would write, and where.
fn would_age(a: &AgeArgs, plan: &age::Plan, mut place: Place) -> anyhow::Result<ExitCode> {
    let (size, id) = match &mut place {
        Place::Directory(d) => (d.space().map_err(volume_error)?.size, None),
        Place::Medium(m) => {
            m.must_be_formatted(&a.target.target)?;
            (m.range.end - m.range.start, Some(m.id.clone()))
        }
    };
    if a.remove {
        say!("would remove the files below {}", age::DIRECTORY);
    } else {
        say!(
            "would make files of {} to {} below {}, in {} passes: about {} written",
            Bytes(plan.smallest),
            Bytes(plan.largest),
            age::DIRECTORY,
            plan.passes,
            about(plan.writes(size))
        );
    }
    Ok(id.map_or_else(Dry::nothing, |id| a.dry.done(&id)))
}

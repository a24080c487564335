//! `nandscope layout`: where things lie on a card, and where they should.

use super::args::{Chance, Dry, Json, Named, Output};
use super::back::Back;
use super::progress::Progress;
use super::stop;
use super::{COUNTERFEIT, FAULTY, UNDECIDED, evidence, misuse};
use crate::advise::driver::driver;
use crate::device::{self, Guard, Limits, OpenOptions};
use crate::host::declared;
use crate::host::facts::TargetKind;
use crate::layout::audit::{Audit, Fault, Weight, audit, factory_line};
use crate::layout::check::{Answer, check};
use crate::layout::format;
use crate::layout::penalty::Penalties;
use crate::layout::plan::{Profile, plan};
use crate::layout::prove::{FEWEST, Outcome, Rate, Work, candidates, prove};
use crate::layout::script::{DEVICE, script};
use crate::layout::{Grid, Source, disk, draw};
use crate::saved::counterfeit::Counterfeit;
use crate::units::{Bytes, about, three};
use crate::volume::Shared;
use anyhow::{Context, anyhow};
use clap::{Args, Subcommand};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::Ordering;

#[derive(Args)]
pub struct LayoutArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// What lies where, what of it costs, and how much on this card
    Audit(AuditArgs),
    /// Commands that lay a card out better, each with its reason
    Plan(PlanArgs),
    /// Compare layouts on the card itself: files in each, round robin
    Prove(ProveArgs),
    /// Check where partitions start against a report
    Check(CheckArgs),
}

/// What lies where, what of it costs, and how much on this card
///
/// Reads only. Without a report the price of a fault is unknown, and that is said.
/// Exit codes: 0 nothing costs anything, 5 something does, 3 that was not measured.
#[derive(Args)]
struct AuditArgs {
    /// /dev/..., an image file, sim:NAME, a card model PATH.toml, "exec:COMMAND ARGS" or serial:PORT
    #[arg(value_parser = super::target)]
    target: String,
    /// A report of this card: its erase blocks and what things cost on it
    #[arg(long)]
    report: Option<PathBuf>,
    /// Erase block, where it is known from elsewhere
    #[arg(long, value_name = "SIZE")]
    align: Option<Bytes>,
    #[command(flatten)]
    out: Output,
}

/// Commands that lay a card out better, each with its reason
///
/// Prints a shell script and runs nothing: `layout plan ... > plan.sh`, read it, then `sh plan.sh`. The recommended way is what
/// runs; alternatives are comments. Reads the size of the target and nothing else.
#[derive(Args)]
struct PlanArgs {
    /// /dev/..., an image file, sim:NAME, a card model PATH.toml, "exec:COMMAND ARGS" or serial:PORT
    #[arg(value_parser = super::target)]
    target: String,
    /// raspberry-pi, camera, logger, root-ext4, root-f2fs, root-btrfs, sd-association, or partitions such as fat:512MiB,ext4
    #[arg(long = "for", value_name = "USE", value_parser = |s: &str| s.parse::<Profile>().map(|_| s.to_string()))]
    purpose: String,
    /// A report of this card
    #[arg(long)]
    report: Option<PathBuf>,
    #[command(flatten)]
    json: Json,
}

/// Compare layouts on the card itself: files in each, round robin
///
/// Formats the card once a layout and round, writes files, and puts the old content back at the end. Exit codes: 0 a difference
/// was found, 3 none was.
#[derive(Args)]
struct ProveArgs {
    /// /dev/..., an image file, sim:NAME, a card model PATH.toml, "exec:COMMAND ARGS" or serial:PORT
    #[arg(value_parser = super::target)]
    target: String,
    /// A report of this card, for a layout on its own erase blocks
    #[arg(long)]
    report: Option<PathBuf>,
    #[command(flatten)]
    named: Named,
    #[command(flatten)]
    dry: Dry,
    /// Bytes of the file that is copied
    #[arg(long, value_name = "SIZE", default_value = "1MiB")]
    file: Bytes,
    /// Bytes handed over at a time
    #[arg(long, value_name = "SIZE", default_value = "16KiB")]
    chunk: Bytes,
    /// Rounds; each tries every layout once
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(i64::from(FEWEST)..=100))]
    rounds: u32,
    /// Most bytes to write
    #[arg(long, value_name = "SIZE", default_value = "4GiB")]
    writes: Bytes,
    /// Leave the last layout on the card instead of putting the old content back
    #[arg(long)]
    no_undo: bool,
    #[command(flatten)]
    chance: Chance,
    #[command(flatten)]
    out: Output,
    /// No progress
    #[arg(long, short)]
    quiet: bool,
}

/// Check where partitions start against a report
///
/// Exit codes: 0 it is a boundary of the erase block, 5 it is none, 3 the report does not say, 6 the card holds less than it reports.
#[derive(Args)]
struct CheckArgs {
    /// A report that --json wrote
    report: PathBuf,
    /// Where a partition starts, from the beginning of the disk: bytes, 4MiB, or sectors as 2048s; may be given more than once
    #[arg(long, value_name = "SIZE", required = true)]
    start: Vec<Bytes>,
    #[command(flatten)]
    out: Output,
}

pub fn run(a: LayoutArgs) -> anyhow::Result<ExitCode> {
    match a.command {
        Command::Audit(a) => audit_target(a),
        Command::Plan(a) => plan_target(a),
        Command::Prove(a) => prove_target(a),
        Command::Check(a) => check_starts(a),
    }
}

fn audit_target(a: AuditArgs) -> anyhow::Result<ExitCode> {
    let evidence = a.report.as_deref().map(evidence::load).transpose()?;
    let mut opened = device::open(&device::with_content(&a.target), &OpenOptions::default())?;
    let g = opened.geometry().clone();
    let mut notes = vec![];
    let (mut grid, mut penalties) = (None, Penalties::default());
    if let Some(e) = &evidence {
        e.must_fit(g.size, g.offset)?;
        penalties = Penalties::of(&e.findings, &e.runs);
        match Grid::found(&e.findings) {
            Ok(found) => grid = Some(found),
            Err(why) => notes.push(format!("{}: {why}", e.name)),
        }
    }
    if let Some(unit) = a.align {
        if unit.0 < 4096 || !unit.0.is_multiple_of(512) {
            return Err(misuse(format!("--align {unit} cannot be an erase block; give a multiple of 512 bytes, 4 KiB or more")));
        }
        grid = Some(Grid { unit: unit.0, first: 0, source: Source::Given });
    }
    let disk_name = opened.facts().disk.clone();
    let declared = || {
        let d = declared::from_sysfs(Path::new("/sys"), disk_name.as_deref()?).ok()?;
        let unit = d.declared_au?.bytes;
        (unit >= 4096).then_some(Grid { unit, first: 0, source: Source::Declared })
    };
    let grid = grid.or_else(declared).unwrap_or_else(|| Grid::convention(g.offset + g.size));
    let found = disk::read(opened.look())?;
    let mut audit = audit(found, grid, &penalties);
    if let Some(c) = evidence.as_ref().and_then(|e| Counterfeit::of(&e.findings, g.offset + g.size)) {
        audit.faults.extend(beyond(&audit.disk, &c));
    }
    let mut value = super::form("nandscope-layout-audit/1", &audit);
    value["target"] = a.target.as_str().into();
    if !a.out.write(&value)? {
        print_audit(&a.target, &audit, &notes);
    }
    Ok(match audit.worst() {
        Some(Weight::Costs) => ExitCode::from(FAULTY),
        Some(Weight::Unknown) => ExitCode::from(UNDECIDED),
        _ => ExitCode::SUCCESS,
    })
}

/// What lies on flash that a counterfeit has not.
fn beyond(disk: &disk::Disk, c: &Counterfeit) -> Vec<Fault> {
    let cost = format!("this card is a {}: it {}; what is written beyond that is lost", c.word(), c.sizes());
    let over = disk.parts.iter().filter(|p| disk.offset + p.start + p.size > c.holds);
    over.map(|p| Fault {
        place: p.number.map_or("the volume".to_string(), |n| format!("partition {n}")),
        what: format!("ends at {}, beyond what the card holds", Bytes(disk.offset + p.start + p.size)),
        weight: Weight::Costs,
        cost: cost.clone(),
        ms: None,
    })
    .collect()
}

fn print_audit(target: &str, a: &Audit, notes: &[String]) {
    let nothing = a.disk.parts.iter().all(|p| p.number.is_none() && p.volume.is_none());
    if nothing && a.disk.table.is_none() && a.faults.is_empty() {
        say!("{target}: nothing to check: no partition table and no file system that is known here");
        notes.iter().for_each(|n| say!("{n}"));
        return;
    }
    say!("{target}: {}", a.grid);
    notes.iter().for_each(|n| say!("{n}"));
    a.disk.lines().iter().for_each(|l| say!("{l}"));
    a.disk
        .parts
        .iter()
        .filter_map(|p| p.volume.as_ref())
        .filter(|v| !v.told.is_empty())
        .for_each(|v| say!("{} was made with {}", v.what, v.told.join(", ")));
    if a.disk.parts.is_empty() {
        say!("nothing to check: no partition and no file system is on it");
        return;
    }
    if let Some(l) = factory_line(a) {
        say!("{l}");
    }
    say!();
    draw::draw(&a.disk, &a.grid).iter().for_each(|l| say!("{l}"));
    let off: Vec<_> = a.counts.iter().filter(|c| c.off > 0).collect();
    if !off.is_empty() {
        say!("\nAgainst the boundaries");
        for c in off {
            let repeated = matches!(c.name.as_str(), "block groups" | "sections");
            match repeated {
                true => say!("  {}: {} of {} {} do not begin on one", c.place, c.off, c.count, c.name),
                false => {
                    let verb = if c.name.ends_with('s') { "lie" } else { "lies" };
                    say!(
                        "  {}: {} {verb} in {} {}s and would fit {}",
                        c.place,
                        c.name,
                        c.count,
                        a.grid.source.unit_name(),
                        c.count - c.off
                    );
                }
            }
        }
    }
    for (weight, title) in [(Weight::Costs, "Costs"), (Weight::Unknown, "May cost; not measured"), (Weight::Harmless, "Harmless here")] {
        let these: Vec<_> = a.faults.iter().filter(|f| f.weight == weight).collect();
        if !these.is_empty() {
            say!("\n{title}");
            these.iter().for_each(|f| say!("  {}: {}\n    {}", f.place, f.what, f.cost));
        }
    }
    if a.faults.is_empty() {
        let known = if a.counts.iter().all(|c| c.off == 0) { "no alignment problems found" } else { "none of this is known to cost time" };
        say!("\n{known}");
    }
}

fn plan_target(a: PlanArgs) -> anyhow::Result<ExitCode> {
    let evidence = a.report.as_deref().map(evidence::load).transpose()?;
    let opened = device::open(&a.target, &OpenOptions::default())?;
    let g = opened.geometry().clone();
    if g.offset > 0 {
        return Err(anyhow!("{} is a partition; a plan is for a whole card", a.target));
    }
    let findings = match &evidence {
        Some(e) => {
            e.must_fit(g.size, g.offset)?;
            e.findings.clone()
        }
        None => Default::default(),
    };
    let discard = opened.facts().queue.as_ref().and_then(|q| q.discard_max_bytes).map(|most| most > 0);
    let profile: Profile = a.purpose.parse().map_err(|e: String| anyhow!(e))?;
    let fake = Counterfeit::of(&findings, g.size);
    if let Some(c) = fake
        && matches!(profile, Profile::Camera | Profile::SdAssociation)
    {
        let why = "the SD convention lays out all that it reports, and a camera would format it so again; for what is there: --for logger";
        return Err(anyhow!("this card is a {}: it {}; {why}", c.word(), c.sizes()));
    }
    // The script has variables for the card and its partitions.
    let name = if a.json.asked() { a.target.as_str() } else { DEVICE };
    let mut p = plan(&profile, &findings, fake.map_or(g.size, |c| c.holds), name, discard).map_err(|e| anyhow!(e))?;
    let fake = fake.map(|c| format!("{}: {}; the plan uses only what is there", c.word().to_uppercase(), c.sizes()));
    p.basis.splice(0..0, fake.clone());
    let runs = evidence.as_ref().map_or(&[][..], |e| &e.runs);
    let live = || declared::from_sysfs(Path::new("/sys"), opened.facts().disk.as_deref()?).ok();
    if let Some(d) = evidence.as_ref().and_then(|e| e.declared.clone()).or_else(live) {
        p.declares(&d, &findings);
    }
    p.notes.extend(driver(&findings, runs).into_iter().map(|rule| format!("for a driver: {rule}")));
    if a.json.asked() {
        let mut value = super::form("nandscope-layout-plan/1", &p);
        if let Some(fake) = fake {
            value["counterfeit"] = fake.into();
        }
        a.json.put(&value)?;
        return Ok(ExitCode::SUCCESS);
    }
    super::as_it_is(&script(&p, &a.target, &a.purpose));
    Ok(ExitCode::SUCCESS)
}

fn prove_target(a: ProveArgs) -> anyhow::Result<ExitCode> {
    let evidence = a.report.as_deref().map(evidence::load).transpose()?;
    if !(1..=16 << 20).contains(&a.chunk.0) || a.file.0 < a.chunk.0 {
        let why = format!("--chunk {} and --file {}: a chunk has 1 byte to 16 MiB and is no larger than the file", a.chunk, a.file);
        return Err(misuse(why));
    }
    let mut opened = device::open(&device::with_content(&a.target), &OpenOptions::default())?;
    let g = opened.geometry().clone();
    let (image, simulated) = (opened.facts().kind == TargetKind::Image, opened.facts().kind == TargetKind::Simulated);
    let mut grid = None;
    let mut notes = vec![];
    if let Some(e) = &evidence {
        e.must_fit(g.size, g.offset)?;
        match Grid::found(&e.findings) {
            Ok(found) => grid = Some(found),
            Err(why) => notes.push(format!("{}: {why}", e.name)),
        }
    }
    if image {
        notes.extend(opened.facts().caveats.iter().cloned());
    }
    let found = disk::read(opened.look())?;
    let sector = format::sector_of(opened.look(), image);
    let (all, more) = candidates(opened.look(), &found, sector, grid)?;
    notes.extend(more);
    let work = Work { large: a.file.0, chunk: a.chunk.0, rounds: a.rounds, seed: a.chance.seed, ..Work::default() };
    let budget = work.budget(&all, g.sector);
    if budget > a.writes.0 {
        let why = format!("this may write {}, and --writes allows {}; take fewer --rounds or allow more", about(budget), a.writes);
        return Err(misuse(why));
    }
    let (id, state) = (opened.id().clone(), opened.state());
    let undo = !simulated && !a.no_undo;
    if !a.quiet || a.dry.dry_run {
        let after = if undo { "the old content is put back at the end" } else { "what is on it is lost" };
        tell!("{}: {} layouts, {} rounds, at most {} written; {after}", a.target, all.len(), a.rounds, about(budget));
    }
    if a.dry.dry_run {
        return Ok(a.dry.done(&id));
    }
    let consent = a.named.check(&id)?;
    let guard = opened.writable(&consent, &Limits { region: None, budget, undo: undo.then(device::undo::default_dir) })?;
    let shared = Shared::new(guard);
    let stop = stop::on_signals(stop::Second::Ends)?;
    shared.with(|g| stop::keeps(g));
    if undo {
        // A slow card takes seconds for the access that is under way.
        stop::says("putting the old content back");
    }
    let mut bar = Progress::bytes("comparing", budget, a.quiet);
    let mut turns = (0, 0);
    let done = prove(&shared.until(&stop), &all, &work, &mut |n, of| {
        turns = (n, of);
        bar.at(budget / u64::from(of.max(1)) * u64::from(n));
        !stop.load(Ordering::Relaxed)
    });
    drop(bar);
    let interrupted = stop.load(Ordering::Relaxed);
    Back::begins(undo && !interrupted, false, a.quiet);
    let restored = shared.with(Guard::restore);
    restored.context("the old content was not put back; run `nandscope undo`")?;
    let outcomes = done?;
    let best = outcomes.iter().max_by(|a, b| a.copy.median.total_cmp(&b.copy.median));
    let differ = best.is_some_and(|b| outcomes.iter().any(|o| o.copy.differs(&b.copy) || o.files.differs(&b.files)));
    let value = serde_json::json!({ "schema": "nandscope-layout-prove/1", "target": id, "state": state, "work": work, "outcomes": outcomes, "notes": notes, "differ": differ });
    if !a.out.write(&value)? {
        print_outcomes(&outcomes, &work);
        notes.iter().for_each(|n| say!("{n}"));
    }
    if interrupted {
        let back = if undo { "; the old content is back" } else { "" };
        let rates = if outcomes.is_empty() { "nothing was compared" } else { "the rates are those of the turns until then" };
        tell!("nandscope: interrupted after {} of {} turns; {rates}{back}", turns.0, turns.1);
    }
    Ok(if differ { ExitCode::SUCCESS } else { ExitCode::from(UNDECIDED) })
}

fn print_outcomes(outcomes: &[Outcome], work: &Work) {
    let Some(sd) = outcomes.iter().find(|o| o.name == "SD convention") else { return };
    let rate = |r: &Rate| match r.decided() {
        true => format!("{} ({}-{})", three(r.median), three(r.interval[0]), three(r.interval[1])),
        false => three(r.median),
    };
    let mut rows = vec![["layout", "format", "data at", "copy kB/s, 95 %", "files/s, 95 %"].map(String::from)];
    rows.extend(outcomes.iter().map(|o| {
        let format = format!("{} {}", o.filesystem, Bytes(o.cluster));
        [o.name.to_string(), format, Bytes(o.data).to_string(), rate(&o.copy), rate(&o.files)]
    }));
    let wide = [0, 1, 2, 3, 4].map(|c| rows.iter().map(|r| r[c].chars().count()).max().unwrap_or(0));
    if wide.iter().sum::<usize>() + 4 <= super::width() {
        let [name, format, data, copy, files] = wide;
        for r in &rows {
            say!("{:<name$} {:<format$} {:>data$} {:>copy$} {:>files$}", r[0], r[1], r[2], r[3], r[4]);
        }
    } else {
        for [name, format, data, copy, files] in &rows[1..] {
            say!("{name}\n  {format} clusters, data at {data}\n  copy, kB/s (95 %): {copy}\n  small files/s (95 %): {files}");
        }
    }
    say!();
    for o in outcomes.iter().filter(|o| o.name != sd.name) {
        let against = |what: &str, mine: &Rate, theirs: &Rate| match (mine.rounds.min(theirs.rounds), mine.median / theirs.median) {
            (n, _) if n < FEWEST => format!("{what} undecided, because {n} {} too few", if n == 1 { "round is" } else { "rounds are" }),
            _ if !mine.differs(theirs) => format!("{what} no different"),
            (_, r) => format!("{what} {}x", three(r)),
        };
        say!(
            "{} against the SD convention: {}, {}",
            o.name,
            against("copy", &o.copy, &sd.copy),
            against("small files", &o.files, &sd.files)
        );
    }
    say!(
        "one file of {} in pieces of {}, then {} files of {}; a host with one sector of cache",
        Bytes(work.large),
        Bytes(work.chunk),
        work.small,
        Bytes(work.small_size)
    );
}

fn check_starts(a: CheckArgs) -> anyhow::Result<ExitCode> {
    let e = evidence::load(&a.report)?;
    let mut all: Vec<_> = a.start.iter().map(|s| check(s.0, &e.findings)).collect();
    let mut holds = u64::MAX;
    if let Some((size, 0)) = e.target {
        if let Some(s) = a.start.iter().find(|s| s.0 >= size) {
            return Err(super::misuse(format!("--start {s} lies beyond the end of the card of {}: it has {}", e.name, about(size))));
        }
        if let Some(c) = Counterfeit::of(&e.findings, size) {
            holds = c.holds;
            let fake = format!("this card is a {}: it {}; what is written beyond that is lost", c.word(), c.sizes());
            for s in &mut all {
                if s.start >= holds {
                    (s.answer, s.because) = (Answer::Wrong, vec![]);
                }
                s.because.push(fake.clone());
            }
        }
    }
    if !a.out.write(&super::form("nandscope-layout-check/1", &all))? {
        for c in &all {
            let word = match c.answer {
                _ if c.start >= holds => "beyond what the card holds",
                Answer::Right => "fine",
                Answer::Wrong => "not aligned",
                Answer::Undecided => "undecided",
            };
            say!("{}: {word}: {}", Bytes(c.start), c.because.join("; "));
        }
    }
    Ok(match () {
        () if holds < u64::MAX => ExitCode::from(COUNTERFEIT),
        () if all.iter().any(|c| c.answer == Answer::Wrong) => ExitCode::from(FAULTY),
        () if all.iter().any(|c| c.answer == Answer::Undecided) => ExitCode::from(UNDECIDED),
        () => ExitCode::SUCCESS,
    })
}

//! The command line: one file a command. Exit codes: 0 verdicts given, 1 error, 2 usage, 3 nothing could be decided, 4 refused for safety,
//! 5 the layout costs something, 6 counterfeit, 7 failing or not storing what it is told, 8 slower than its class or the rate asked for, 130 interrupted.

/// A line to standard output, broken at the width of what shows it; a reader that went away is no error.
macro_rules! say {
    () => { $crate::cli::put(format_args!("\n")) };
    ($($text:tt)*) => { $crate::cli::put(format_args!("{}\n", format_args!($($text)*))) };
}

/// The same without the end of a line.
macro_rules! put {
    ($($text:tt)*) => { $crate::cli::put(format_args!($($text)*)) };
}

/// A line to standard error. A terminal gets it broken at its width, anything else whole.
macro_rules! tell {
    ($($text:tt)*) => { $crate::cli::to_stderr(&format!($($text)*)) };
}

mod ab;
mod args;
mod back;
mod bench;
mod campaign;
mod campaign_table;
mod cards;
mod check;
mod compare;
mod complete;
mod config;
mod defect;
mod erase;
mod evidence;
mod files;
mod flashbench;
mod format;
mod frag;
pub mod identify;
mod idle;
mod infer;
mod infer_micro;
mod inferred;
mod layout;
mod life;
mod list;
mod outputs;
mod partitions;
mod pieces;
mod print;
mod probe;
mod progress;
mod quirk;
mod rate;
mod rate_text;
mod replay;
mod report;
mod serve;
mod sim;
mod sim_text;
mod stop;
mod survey;
mod sweep;
mod trace_file;
mod twin;
mod twin_text;
mod uflip;
mod undo;
mod usage;

use crate::device::DeviceError;
use anyhow::Context;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use print::{as_it_is, gone, page, put, stdout, to_stderr};
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;

/// Wrong usage.
const USAGE: u8 = 2;
/// Nothing could be decided.
pub const UNDECIDED: u8 = 3;
/// Refused for safety.
pub const REFUSED: u8 = 4;
/// The layout of the card costs something.
pub const FAULTY: u8 = 5;
/// The card holds less than it reports.
pub const COUNTERFEIT: u8 = 6;
/// Data that were written do not read back.
pub const FAILING: u8 = 7;
/// Slower than its class, or than a purpose needs.
pub const BELOW_CLASS: u8 = 8;

/// Times a flash card and says what is inside it, how sure it is, and what to do about it
#[derive(Parser)]
#[command(version, about, after_help = "'nandscope --help' says what a TARGET is and what exit codes mean; 'nandscope COMMAND -h' its options", after_long_help = AFTER)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const AFTER: &str = "\
A TARGET is a block device (/dev/mmcblk0, /dev/sda1), an image file, a simulated card (sim:NAME, sim:random?seed=7, or a model \
file PATH.toml, with settings as sim:NAME?seed=7&host=HOST), a program that behaves like a card (exec:COMMAND, quoted), or a board \
that speaks its protocol (serial:/dev/ttyACM0). Most commands take all these forms; COMMAND --help says which.

Nothing is written to a device without --consent ID, which `nandscope list` prints; commands that can do their work by reading alone \
want --write as well.

Sizes are 4MiB, 512KiB (1024), 4MB (1000) or 63s (sectors of 512 B); times 60s, 5m, 1h30m; rates 20kB/s.

Exit codes: 0 verdicts given, 1 error, 2 usage, 3 nothing could be decided, 4 refused for safety, 5 the layout costs something, \
6 counterfeit, 7 failing or not storing, 8 slower than its class or the rate asked for, 130 interrupted (Ctrl-C) before any of 5 to 8 was found.";

/// Commands by what somebody wants to do.
const JOBS: [(&str, &[&str]); 6] = [
    ("Measure a card", &["check", "rate", "probe", "run", "bench", "flashbench", "uflip", "ab", "partitions", "life", "replay"]),
    ("Find and identify", &["list", "identify"]),
    ("Lay out a card", &["layout", "format", "erase", "undo"]),
    ("Files and fragmentation", &["frag", "age", "map", "defrag"]),
    ("Reports and many cards", &["report", "infer", "compare", "campaign", "survey", "quirk"]),
    ("Simulated cards", &["cards", "sim", "twin", "serve", "sweep"]),
];

/// The command line with its commands listed by job.
fn command_line() -> clap::Command {
    let command = Cli::command();
    let mut listed = String::new();
    let about = |name: &str| command.find_subcommand(name).and_then(|c| c.get_about()).map(ToString::to_string).unwrap_or_default();
    for (job, names) in JOBS {
        listed += &format!("{job}:\n");
        for name in names {
            listed += &format!("  {name:<11} {}\n", about(name));
        }
    }
    let others: Vec<&str> =
        command.get_subcommands().map(clap::Command::get_name).filter(|n| !JOBS.iter().any(|j| j.1.contains(n))).collect();
    listed += &format!("Others: {}, help\n", others.join(", "));
    let shape = format!("{{about}}\n\n{{usage-heading}} {{usage}}\n\n{listed}\nOptions:\n{{options}}{{after-help}}");
    let command = command.help_template(shape).term_width(width().min(100));
    // Consent is to a write.
    let names: Vec<String> = command.get_subcommands().map(|c| c.get_name().to_string()).collect();
    names.iter().fold(command, |command, name| {
        command.mut_subcommand(name, |c| {
            let has = |id: &str| c.get_arguments().any(|a| a.get_id() == id);
            if has("write") && has("consent") { c.mut_arg("consent", |a| a.requires("write")) } else { c }
        })
    })
}

/// The words of the command line; `nandscope -q probe` is `nandscope probe -q`, and `--json -` is `--json=-`, which every command takes.
fn words() -> Vec<std::ffi::OsString> {
    let mut all: Vec<std::ffi::OsString> = vec![];
    let mut options = true;
    for word in std::env::args_os() {
        options &= word != "--";
        match all.last_mut().filter(|last| options && word == "-" && *last == "--json") {
            Some(last) => last.push("=-"),
            None => all.push(word),
        }
    }
    if all.len() > 2 && (all[1] == "-q" || all[1] == "--quiet") {
        all.swap(1, 2);
    }
    all
}

#[derive(Subcommand)]
enum Command {
    /// Check a card: genuine, keeps its data, errors, speed, health
    Check(check::CheckArgs),
    /// Rate a card by the SD speed classes, or for a purpose
    Rate(rate::RateArgs),
    /// Find out what is inside a card
    Probe(probe::ProbeArgs),
    /// How long a card will last, with every assumption
    Life(life::LifeArgs),
    /// Run one experiment
    Run(probe::RunArgs),
    /// Compare two settings of the host on one target
    Ab(ab::AbArgs),
    /// Probe the partitions of one device and compare them
    Partitions(partitions::PartitionsArgs),
    /// Time the records of a file, find stalls, size a buffer
    Bench(bench::BenchArgs),
    /// flashbench's tests, options and lines, its errors corrected
    Flashbench(flashbench::FlashbenchArgs),
    /// uFLIP's nine micro-benchmarks: 34 experiments
    Uflip(uflip::UflipArgs),
    /// List block devices and whether they may be probed
    List(list::ListArgs),
    /// List or show the built-in simulated cards
    Cards(cards::CardsArgs),
    /// Decode what a card declares in its registers, live or pasted
    Identify(identify::IdentifyArgs),
    /// Findings again from a report, or from logs of other tools
    Infer(infer::InferArgs),
    /// Propose an entry for the kernel's list of quirks
    Quirk(quirk::QuirkArgs),
    /// Print a saved report
    Report(report::ReportArgs),
    /// Expose a simulated card as a block device (loop or NBD)
    Serve(serve::ServeArgs),
    /// Where things lie on a card, against its erase blocks
    Layout(layout::LayoutArgs),
    /// Format a card with an aligned FAT or exFAT volume
    Format(format::FormatArgs),
    /// Discard or overwrite a card or a part of it
    Erase(erase::EraseArgs),
    /// Measure whether fragmentation matters on a card
    Frag(frag::FragArgs),
    /// Age a volume: passes of making and removing files
    Age(pieces::AgeArgs),
    /// Show how fragmented a volume is, and a map of it
    Map(pieces::MapArgs),
    /// Defragment a FAT volume
    Defrag(pieces::DefragArgs),
    /// Run a trace or a pattern of requests through a simulated card
    Sim(sim::SimArgs),
    /// Fit a card model to reports; see what it explains and predicts
    Twin(twin::TwinArgs),
    /// Probe simulated cards, or fit twins, in shards on many machines
    Sweep(sweep::SweepArgs),
    /// Time the requests of a trace on a target
    Replay(replay::ReplayArgs),
    /// Put back what an interrupted run overwrote
    Undo(undo::UndoArgs),
    /// Compare cards: what differs, by how much, how sure that is
    Compare(compare::CompareArgs),
    /// Check, probe and rate many cards; goes on after a crash
    Campaign(campaign::CampaignArgs),
    /// Keep, search and share results of many cards
    Survey(survey::SurveyArgs),
    /// Print completions for a shell
    Completions(complete::CompletionsArgs),
    /// Print the manual page, of the program or of one command
    Man(complete::ManArgs),
}

/// Runs the program.
pub fn main() -> ExitCode {
    defect::ends_the_program();
    answer(words())
}

/// Runs one command line, whose first word is the name of the program.
fn answer(words: Vec<std::ffi::OsString>) -> ExitCode {
    // What is wrong with the file of defaults keeps nobody from the help and the version.
    let (mut command, wrong) = match config::with_defaults(command_line()) {
        Ok(command) => (command, None),
        Err(why) => (command_line(), Some(why)),
    };
    let read = command.try_get_matches_from_mut(words.clone()).and_then(|m| Ok((Cli::from_arg_matches(&m)?, m)));
    let asks = |e: &clap::Error| !e.use_stderr();
    if let Some(why) = wrong.filter(|_| !read.as_ref().is_err_and(asks)) {
        eprintln!("nandscope: {}", harmless(&why));
        return ExitCode::from(USAGE);
    }
    let (cli, matches) = match read {
        Ok(both) => both,
        Err(help) if asks(&help) => {
            // clap ends with success even where nothing could be written.
            let failed = |e| ended(&anyhow::Error::new(e).context("cannot write to standard output"));
            return gone(help.print()).map_or_else(failed, |()| ExitCode::SUCCESS);
        }
        Err(e) => {
            eprint!("{}", usage::usage(&e, &words));
            return ExitCode::from(USAGE);
        }
    };
    let done = outputs::ready(&command, &matches).and_then(|()| run(cli.command));
    stop::code(done.unwrap_or_else(|e| ended(&e)))
}

/// Runs a command.
fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Check(a) => check::run(a),
        Command::Rate(a) => rate::run(a),
        Command::Probe(a) => probe::probe(a),
        Command::Life(a) => life::run(a),
        Command::Run(a) => probe::run(a),
        Command::Ab(a) => ab::run(a),
        Command::Partitions(a) => partitions::run(a),
        Command::Bench(a) => bench::run_bench(a),
        Command::Flashbench(a) => flashbench::run(a),
        Command::Uflip(a) => uflip::run(a),
        Command::List(a) => list::run(a),
        Command::Cards(a) => cards::run(a),
        Command::Identify(a) => identify::run(a),
        Command::Infer(a) => infer::run(a),
        Command::Quirk(a) => quirk::run(a),
        Command::Report(a) => report::run(a),
        Command::Serve(a) => serve::run(a),
        Command::Layout(a) => layout::run(a),
        Command::Format(a) => format::run(a),
        Command::Erase(a) => erase::run(a),
        Command::Frag(a) => frag::run(a),
        Command::Age(a) => pieces::age(a),
        Command::Map(a) => pieces::map(a),
        Command::Defrag(a) => pieces::defrag(a),
        Command::Sim(a) => sim::run(a),
        Command::Twin(a) => twin::run(a),
        Command::Sweep(a) => sweep::run(a),
        Command::Replay(a) => replay::run(a),
        Command::Undo(a) => undo::run(a),
        Command::Compare(a) => compare::run(a),
        Command::Campaign(a) => campaign::run(a),
        Command::Survey(a) => survey::run(a),
        Command::Completions(a) => complete::completions(a),
        Command::Man(a) => complete::man(&a),
    }
}

/// Says what ended a command early; the code to end with.
fn ended(e: &anyhow::Error) -> ExitCode {
    // A reader that went away is no error of ours.
    if e.chain().any(|c| c.downcast_ref::<std::io::Error>().is_some_and(|e| e.kind() == std::io::ErrorKind::BrokenPipe)) {
        return ExitCode::SUCCESS;
    }
    tell!("nandscope: {}", told(e));
    match e.downcast_ref::<DeviceError>() {
        Some(DeviceError::Refused(_)) => ExitCode::from(REFUSED),
        // A value that the command line parses but the target has no place for.
        Some(DeviceError::OutOfBounds(_)) => ExitCode::from(USAGE),
        _ if matches!(e.downcast_ref(), Some(crate::serve::ServeError::Remote(_))) => ExitCode::from(REFUSED),
        _ if matches!(e.downcast_ref(), Some(crate::survey::SurveyError::Query(_))) => ExitCode::from(USAGE),
        _ if matches!(e.downcast_ref(), Some(nandscope_fat::PlanError::Wrong(_))) => ExitCode::from(USAGE),
        _ => ExitCode::FAILURE,
    }
}

/// A value of an option that fits nothing here, though it can be read: wrong usage.
fn misuse(why: impl Into<String>) -> anyhow::Error {
    DeviceError::OutOfBounds(why.into()).into()
}

/// What is written as JSON, with the name of its form as a field: of a list in each of its objects.
fn form(schema: &str, value: &impl serde::Serialize) -> serde_json::Value {
    let mut value = serde_json::json!(value);
    let objects = match &mut value {
        serde_json::Value::Array(all) => all.iter_mut().collect(),
        one => vec![one],
    };
    objects.into_iter().filter_map(serde_json::Value::as_object_mut).for_each(|o| {
        o.insert("schema".into(), schema.into());
    });
    value
}

/// Writes a result as JSON where that is asked for, whole or not at all. True where it went to standard output, so that nothing else may.
fn write_json(to: Option<&Path>, value: &impl serde::Serialize) -> anyhow::Result<bool> {
    let Some(path) = to else { return Ok(false) };
    write_text(path, &(serde_json::to_string(value)? + "\n"))
}

/// The same of any text.
fn write_text(path: &Path, text: &str) -> anyhow::Result<bool> {
    if path.as_os_str() == "-" {
        gone(stdout().write_all(text.as_bytes()))?;
        return Ok(true);
    }
    crate::report::put(path, text).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(false)
}

/// Does this error say that the disk which holds an image has no room left?
fn disk_is_full(why: &str) -> bool {
    why.contains("(os error 28)")
}

/// Says that the card failed in the middle, and what to do: failing, or an error where it is the disk below an image that has no room.
fn card_failed(why: &str) -> ExitCode {
    tell!("nandscope: the card failed: {why}. {}; the findings so far stand", way_out(why));
    if disk_is_full(why) { ExitCode::FAILURE } else { ExitCode::from(FAILING) }
}

/// What to do about an access that failed.
fn way_out(why: &str) -> &'static str {
    if disk_is_full(why) { "The disk that holds it is full: make room there, or take another one" } else { "Try another reader or port" }
}

/// Colour only on a terminal, and never where NO_COLOR is set (no-color.org).
pub fn colour(out: &impl IsTerminal) -> bool {
    out.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty()) && std::env::var("TERM").is_ok_and(|t| t != "dumb")
}

/// Columns to print in: those of COLUMNS, else of the terminal, else 80, which a mail quotes without breaking lines.
pub fn width() -> usize {
    let asked = std::env::var("COLUMNS").ok().and_then(|c| c.parse().ok());
    let terminal = || rustix::termios::tcgetwinsize(std::io::stdout()).ok().map(|w| w.ws_col as usize);
    asked.or_else(terminal).filter(|w| (40..=1000).contains(w)).unwrap_or(80)
}

/// Is the screen too narrow for tables of figures, so that each row has lines of its own?
fn narrow() -> bool {
    width() < 72
}

/// A target as it is opened: a simulated card with `sim:` in front.
#[allow(clippy::unnecessary_wraps)]
fn target(s: &str) -> Result<String, std::convert::Infallible> {
    Ok(crate::device::target_name(s))
}

/// An error with its causes, those left out that it names already.
fn told(e: &anyhow::Error) -> String {
    let text = e
        .chain()
        .skip(1)
        .map(ToString::to_string)
        .fold(e.to_string(), |text, cause| if text.contains(&cause) { text } else { format!("{text}: {cause}") });
    harmless(&text)
}

/// A message that may quote what a file holds: nothing in it steers the terminal, and of a very long one the middle is left out.
fn harmless(text: &str) -> String {
    const ENDS: [usize; 2] = [600, 400];
    let plain: String =
        text.chars().flat_map(|c| if c.is_control() && c != '\n' { c.escape_default().collect::<Vec<_>>() } else { vec![c] }).collect();
    let all = plain.chars().count();
    if all <= ENDS[0] + ENDS[1] + 100 {
        return plain;
    }
    let at = |n: usize| plain.char_indices().nth(n).map_or(plain.len(), |x| x.0);
    format!("{} [{} characters left out] {}", &plain[..at(ENDS[0])], all - ENDS[0] - ENDS[1], &plain[at(all - ENDS[1])..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_its_job() {
        let command = Cli::command();
        for (_, names) in JOBS {
            names.iter().for_each(|n| assert!(command.find_subcommand(n).is_some(), "{n}"));
        }
        let others = ["completions", "man"];
        for c in command.get_subcommands().map(clap::Command::get_name) {
            let jobs = JOBS.iter().filter(|j| j.1.contains(&c)).count();
            assert_eq!(jobs, usize::from(!others.contains(&c)), "{c}");
        }
        command_line().debug_assert();
    }
}

//! The command line: one file a command. Exit codes: 0 verdicts given, 1 error, 2 usage, 3 nothing could be decided, 4 refused for safety.

mod cards;
mod compare;
mod complete;
mod flashbench;
pub mod identify;
mod infer;
mod list;
mod probe;
mod report;
mod serve;
mod sim;
mod sim_text;
mod survey;
mod undo;

use crate::device::DeviceError;
use clap::{Parser, Subcommand};
use std::io::IsTerminal;
use std::process::ExitCode;

/// Nothing could be decided.
pub const UNDECIDED: u8 = 3;
/// Refused for safety.
pub const REFUSED: u8 = 4;

/// Times a flash card and says what is inside it, how sure it is, and what to do about it.
#[derive(Parser)]
#[command(version, about, after_help = AFTER)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const AFTER: &str = "\
A TARGET is a block device (/dev/mmcblk0, /dev/sda1), an image file, or a simulated card (sim:NAME, sim:PATH.toml).
Nothing is written to a device without --write --consent ID; `nandscope list` prints the ID.

Exit codes: 0 verdicts given, 1 error, 2 usage, 3 nothing could be decided, 4 refused for safety.";

#[derive(Subcommand)]
enum Command {
    /// Find out what is inside a card
    Probe(probe::ProbeArgs),
    /// Run one experiment
    Run(probe::RunArgs),
    /// flashbench's tests, options and lines, without its faults
    Flashbench(flashbench::FlashbenchArgs),
    /// List block devices and whether they may be probed
    List(list::ListArgs),
    /// List or show the built-in simulated cards
    Cards(cards::CardsArgs),
    /// Decode what a card declares: its registers, live or pasted
    Identify(identify::IdentifyArgs),
    /// Infer again from a saved report
    Infer(infer::InferArgs),
    /// Print a saved report
    Report(report::ReportArgs),
    /// Show a simulated card as a block device
    Serve(serve::ServeArgs),
    /// Run a trace or a pattern of requests through a simulated card
    Sim(sim::SimArgs),
    /// Put back what an interrupted run overwrote
    Undo(undo::UndoArgs),
    /// Compare cards: what differs, how surely, by how much
    Compare(compare::CompareArgs),
    /// Keep, search and share results of many cards
    Survey(survey::SurveyArgs),
    /// Print completions for a shell
    Completions(complete::CompletionsArgs),
    /// Print the manual page
    Man,
}

/// Runs the program.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    let done = match cli.command {
        Command::Probe(a) => probe::probe(a),
        Command::Run(a) => probe::run(a),
        Command::Flashbench(a) => flashbench::run(a),
        Command::List(a) => list::run(a),
        Command::Cards(a) => cards::run(a),
        Command::Identify(a) => identify::run(a),
        Command::Infer(a) => infer::run(a),
        Command::Report(a) => report::run(a),
        Command::Serve(a) => serve::run(a),
        Command::Sim(a) => sim::run(a),
        Command::Undo(a) => undo::run(a),
        Command::Compare(a) => compare::run(a),
        Command::Survey(a) => survey::run(a),
        Command::Completions(a) => complete::completions(a),
        Command::Man => complete::man(),
    };
    done.unwrap_or_else(|e| {
        // A reader that went away is no error of ours.
        if e.chain().any(|c| c.downcast_ref::<std::io::Error>().is_some_and(|e| e.kind() == std::io::ErrorKind::BrokenPipe)) {
            return ExitCode::SUCCESS;
        }
        eprintln!("nandscope: {e:#}");
        match e.downcast_ref::<DeviceError>() {
            Some(DeviceError::Refused(_)) => ExitCode::from(REFUSED),
            _ => ExitCode::FAILURE,
        }
    })
}

/// Colour only on a terminal, and never where NO_COLOR is set (no-color.org).
pub fn colour(out: &impl IsTerminal) -> bool {
    out.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty()) && std::env::var("TERM").is_ok_and(|t| t != "dumb")
}

/// Columns of the terminal; 100 where there is none.
pub fn width() -> usize {
    rustix::termios::tcgetwinsize(std::io::stdout()).ok().map(|w| w.ws_col as usize).filter(|&w| w >= 40).unwrap_or(100)
}

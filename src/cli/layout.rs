//! `nandscope layout`: where things lie on a card, and where they should.

use super::{FAULTY, UNDECIDED, evidence};
use crate::layout::check::{Answer, check};
use crate::units::Bytes;
use clap::{Args, Subcommand};
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Args)]
pub struct LayoutArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Hold a start of partitions against what a report found
    Check(CheckArgs),
}

/// Exit codes: 0 it is a boundary of the erase block, 5 it is none, 3 the report does not say.
#[derive(Args)]
struct CheckArgs {
    /// A report that --json wrote
    report: PathBuf,
    /// Where partitions start, in bytes from the beginning of the disk
    #[arg(long, value_name = "SIZE", required = true)]
    start: Vec<Bytes>,
    /// Print the answer as JSON
    #[arg(long)]
    json: bool,
}

pub fn run(a: LayoutArgs) -> anyhow::Result<ExitCode> {
    match a.command {
        Command::Check(a) => check_starts(a),
    }
}

fn check_starts(a: CheckArgs) -> anyhow::Result<ExitCode> {
    let e = evidence::load(&a.report)?;
    let all: Vec<_> = a.start.iter().map(|s| check(s.0, &e.findings)).collect();
    if a.json {
        println!("{}", serde_json::json!(all));
    } else {
        for c in &all {
            let word = match c.answer {
                Answer::Right => "fine",
                Answer::Wrong => "not aligned",
                Answer::Undecided => "undecided",
            };
            println!("{}: {word}. {}", Bytes(c.start), c.because.join("; "));
        }
    }
    Ok(match () {
        () if all.iter().any(|c| c.answer == Answer::Wrong) => ExitCode::from(FAULTY),
        () if all.iter().any(|c| c.answer == Answer::Undecided) => ExitCode::from(UNDECIDED),
        () => ExitCode::SUCCESS,
    })
}

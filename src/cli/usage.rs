//! What a command line that is wrong is told.

use super::{Cli, JOBS};
use crate::device;
use clap::CommandFactory;

/// An error of the command line, with the name that all errors begin with, and what helps.
pub(super) fn usage(e: &clap::Error, words: &[std::ffi::OsString]) -> String {
    use clap::error::{ContextKind, ContextValue, ErrorKind};
    let word = |kind| match e.get(kind) {
        Some(ContextValue::String(s)) => Some(s.as_str()),
        _ => None,
    };
    let missing: Vec<&str> = match e.get(ContextKind::InvalidArg) {
        Some(ContextValue::Strings(all)) if e.kind() == ErrorKind::MissingRequiredArgument => all.iter().map(String::as_str).collect(),
        _ => vec![],
    };
    let unknown = word(ContextKind::InvalidArg).filter(|_| e.kind() == ErrorKind::UnknownArgument);
    let below = unknown.filter(|s| s.starts_with('-')).and_then(|s| {
        let below = |w: &&str| w.starts_with(s) && w.len() > 1 && w[1..].starts_with(|c: char| c.is_ascii_digit());
        words.iter().filter_map(|w| w.to_str()).find(below)
    });
    if let Some(word) = below {
        return format!("nandscope: '{word}' is below zero; no option takes that\n");
    }
    if missing == ["--write"] && words.iter().any(|w| w.to_string_lossy().starts_with("--consent")) {
        return "nandscope: --consent names what --write may write: add --write, or leave --consent out\n".into();
    }
    if let (ErrorKind::InvalidUtf8, Some(w)) = (e.kind(), words.iter().find(|w| w.to_str().is_none())) {
        return format!("nandscope: {w:?} is not UTF-8, and names are taken as that; give the file another name, or a link to it\n");
    }
    let text = plain(&e.to_string());
    // A command without its own commands gets its help.
    if e.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return text;
    }
    let file_of_json = words.windows(2).any(|w| w[0] == "--json" && unknown.is_some_and(|u| w[1] == u));
    let near = || {
        let wrong = word(ContextKind::InvalidSubcommand)?;
        let before = words.iter().skip(1).take_while(|w| *w != wrong).filter_map(|w| w.to_str());
        // What a command has of its own; `nandscope` itself has those of the jobs.
        match before.into_iter().find_map(|w| Cli::command().find_subcommand(w).cloned()) {
            Some(of) => {
                let own: Vec<&str> = of.get_subcommands().map(clap::Command::get_name).filter(|n| *n != "help").collect();
                Some(format!("'{}' has {}", of.get_name(), own.join(", ")))
            }
            None => device::nearest(wrong, JOBS.iter().flat_map(|j| j.1).copied()).map(|n| format!("did you mean {n}?")),
        }
    };
    // A word after --json is its file, and the target was meant.
    let taken = words.windows(2).find(|w| w[0] == "--json" && missing.iter().any(|m| m.contains("<TARGET>"))).and_then(|w| w[1].to_str());
    let taken = taken.map(|t| format!("--json took '{t}' for its file: name the target first, or the file as --json=FILE"));
    let hint = taken.or_else(|| match (missing.first(), e.kind()) {
        (Some(m), _) => HINTS.iter().find(|h| m.contains(h.0)).map(|h| h.1.to_string()),
        _ if file_of_json => Some("the file of --json is joined to it here: --json=FILE".into()),
        (None, ErrorKind::InvalidSubcommand) if !text.contains("similar subcommand") => near(),
        _ => None,
    });
    // An option of another command is no value.
    let lines = text.strip_prefix("error: ").unwrap_or(&text).split('\n').filter(|l| !l.contains("' as a value, use '-- "));
    let mut out = format!("nandscope: {}", lines.collect::<Vec<_>>().join("\n"));
    while let Some(at) = out.find("\n\n\n") {
        out.remove(at);
    }
    if let Some(hint) = hint {
        out = out.replacen("\n\nUsage:", &format!("\n\n  tip: {hint}\n\nUsage:"), 1);
    }
    out
}

/// Why a number is none, in the words of people who do not program.
fn plain(text: &str) -> String {
    let said = [
        ("invalid digit found in string", "a whole number is needed"),
        ("number too large to fit in target type", "the number is too large"),
        ("invalid float literal", "a number is needed"),
        (" is not in 1..18446744073709551615", " is too small: 1 or more"),
    ];
    let text = said.iter().fold(text.to_string(), |t, (from, to)| t.replace(from, to));
    let within = |text: &str| {
        let (before, after) = text.split_once(" is not in ")?;
        let (range, rest) = after.split_once('\n').unwrap_or((after, ""));
        let (least, most) = range.split_once("..=")?;
        Some(format!("{before} does not lie from {least} to {most}\n{rest}"))
    };
    within(&text).unwrap_or(text)
}

/// What somebody needs to know who left this out.
const HINTS: [(&str, &str); 8] = [
    ("--pattern", "for example --pattern random, or --trace with a trace of a real run"),
    ("<TARGET>", "'nandscope list' shows the devices, 'nandscope cards' the simulated cards"),
    ("<CARD>", "'nandscope cards' shows the simulated cards"),
    ("<EXPERIMENT>", "'nandscope run list' shows the experiments"),
    ("<REPORT>", "a report is what --json writes: nandscope probe TARGET --json card.json"),
    ("<FILE>", "a file that --json wrote, or the output of another tool"),
    ("--for <PURPOSE>", "a buffer is of a purpose, for example --for dashcam:4x20Mbit/s"),
    ("--for <USE>", "for example --for raspberry-pi, or partitions of your own: fat:512MiB,ext4"),
];

//! Where results go, tried before anything is measured: a path that cannot be written is no reason to measure in vain.

use super::{idle, misuse};
use anyhow::Context;
use clap::ArgMatches;
use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

/// What an option names.
#[derive(Clone, Copy)]
enum Kind {
    File,
    /// The beginning of the names of files.
    Prefix,
    /// Made where it is not there.
    Directory,
}

/// Options that name files in every command, but for the directory of a sweep.
const FILES: [&str; 4] = ["json", "output", "html", "gnuplot"];
/// Options of one command.
const OWN: [(&str, &str, Kind); 8] = [
    ("bench", "busy", Kind::File),
    ("bench", "svg", Kind::Directory),
    ("frag", "svg", Kind::Prefix),
    ("map", "svg", Kind::File),
    ("probe", "twin", Kind::File),
    ("replay", "out", Kind::File),
    ("sim", "latencies", Kind::File),
    ("uflip", "out", Kind::Directory),
];

/// Tries every path that a command line names for its results, and leaves nothing there.
///
/// # Errors
/// One cannot be written; or two results were to go to standard output, or an option would do nothing, which is wrong usage.
pub fn ready(line: &clap::Command, matches: &ArgMatches) -> anyhow::Result<()> {
    let (mut command, mut matches) = (line, matches);
    while let Some((name, inside)) = matches.subcommand() {
        let Some(found) = command.find_subcommand(name) else { break };
        (command, matches) = (found, inside);
    }
    idle::none(command, matches)?;
    let name = command.get_name();
    let value = |long: &str| -> Option<PathBuf> {
        let id = command.get_arguments().find(|a| a.get_long() == Some(long))?.get_id();
        matches.try_get_raw(id.as_str()).ok()??.next().map(PathBuf::from)
    };
    let dash = |p: PathBuf| p.as_os_str() == "-";
    // The form of a result, and not that of a trace.
    let of_result = |a: &clap::Arg| a.get_long() == Some("format") && a.get_possible_values().iter().any(|v| v.get_name() == "tap");
    let takes_form = value("format").is_some() && command.get_arguments().any(of_result);
    if takes_form && value("json").is_some_and(dash) && value("output").is_none_or(dash) {
        return Err(misuse("standard output takes one of --json and --format; give the other a file"));
    }
    let shared = FILES.iter().filter(|long| (name, **long) != ("sweep", "output")).map(|long| (*long, Kind::File));
    let own = OWN.iter().filter(|o| o.0 == name).map(|o| (o.1, o.2));
    for (path, kind) in shared.chain(own).filter_map(|(long, kind)| Some((value(long)?, kind))) {
        match kind {
            Kind::File if path.as_os_str() == "-" => {}
            Kind::File => file(&path)?,
            Kind::Prefix => file(&with(&path, "x"))?,
            Kind::Directory => directory(&path)?,
        }
    }
    Ok(())
}

fn with(path: &Path, end: &str) -> PathBuf {
    let mut all = path.as_os_str().to_os_string();
    all.push(end);
    all.into()
}

/// Can a result be put into this file?
///
/// # Errors
/// It cannot, in the words in which the end would say so.
pub fn file(path: &Path) -> anyhow::Result<()> {
    tried(path).with_context(|| format!("cannot write {}", path.display()))
}

/// As `report::put` writes it.
fn tried(path: &Path) -> io::Result<()> {
    if let Some(m) = fs::metadata(path).ok().filter(|m| !m.is_file()) {
        return match m.is_dir() {
            true => Err(rustix::io::Errno::ISDIR.into()),
            // Whoever reads a pipe waits for one writer, and a disk is refused at the end without being opened.
            false => Ok(()),
        };
    }
    let part = with(&fs::canonicalize(path).unwrap_or_else(|_| path.into()), ".part");
    match OpenOptions::new().write(true).create_new(true).open(&part) {
        // That of a program that was killed, or of another one that is going.
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => OpenOptions::new().write(true).open(&part).map(drop),
        Err(e) => Err(e),
        Ok(_) => fs::remove_file(&part),
    }
}

/// Can a result be put into this directory, or can it be made?
fn directory(path: &Path) -> anyhow::Result<()> {
    let there = path.ancestors().find(|p| p.as_os_str().is_empty() || p.exists()).unwrap_or(Path::new(""));
    let not = || format!("cannot write into {}", path.display());
    if !there.as_os_str().is_empty() && !there.is_dir() {
        return Err(io::Error::from(rustix::io::Errno::NOTDIR)).with_context(not);
    }
    tried(&there.join(format!(".nandscope-{}", std::process::id()))).with_context(not)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_written_is_as_it_was() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("old.json"), "old").unwrap();
        for ok in [at("new.json"), at("old.json"), "/dev/null".into()] {
            file(&ok).unwrap();
        }
        for bad in [at("none/x.json"), dir.path().into(), at("old.json/x")] {
            let why = format!("{:#}", file(&bad).unwrap_err());
            assert!(why.starts_with(&format!("cannot write {}: ", bad.display())), "{why}");
        }
        directory(&at("a/b")).unwrap();
        directory(dir.path()).unwrap();
        assert!(directory(&at("old.json/b")).is_err());
        let left: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(left, ["old.json"]);
        assert_eq!(fs::read_to_string(at("old.json")).unwrap(), "old");
    }
}

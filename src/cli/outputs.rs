//! Where results go, tried before anything is measured: a path that cannot be written is no reason to measure in vain.

use super::{idle, misuse};
use anyhow::Context;
use clap::ArgMatches;
use std::fs::{self, OpenOptions};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// What an option names.
#[derive(Clone, Copy)]
enum Kind {
    File,
    /// The beginning of the names of files.
    Prefix,
    /// Made where it is not there.
    Directory,
    /// One of these, as other options say, or a file that is opened anyhow before anything is measured.
    Other,
}

/// Options that name files in every command, but for the directory of a sweep.
const FILES: [&str; 4] = ["json", "output", "html", "gnuplot"];
/// Options of one command.
const OWN: [(&str, &str, Kind); 12] = [
    ("bench", "busy", Kind::File),
    ("bench", "svg", Kind::Directory),
    ("chart", "svg", Kind::File),
    ("export", "out", Kind::File),
    ("frag", "svg", Kind::Prefix),
    ("map", "svg", Kind::File),
    ("probe", "twin", Kind::File),
    ("replay", "out", Kind::File),
    ("report", "svg", Kind::Other),
    ("serve", "trace", Kind::Other),
    ("sim", "latencies", Kind::File),
    ("uflip", "out", Kind::Directory),
];

/// Commands whose results are reports: one may take the place of the one before.
const REPORTING: [&str; 4] = ["probe", "run", "infer", "report"];

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
    // The form of a result, and not that of a trace.
    let of_result = |a: &clap::Arg| a.get_long() == Some("format") && a.get_possible_values().iter().any(|v| v.get_name() == "tap");
    let prints_form = value("format").is_some() && value("output").is_none() && command.get_arguments().any(of_result);
    let shared = FILES.iter().filter(|long| (name, **long) != ("sweep", "output")).map(|long| (*long, Kind::File));
    let own = OWN.iter().filter(|o| o.0 == name).map(|o| (o.1, o.2));
    let named: Vec<(&str, PathBuf, Kind)> = shared.chain(own).filter_map(|(long, kind)| Some((long, value(long)?, kind))).collect();
    let printed = prints_form.then(|| ("format", PathBuf::from("-")));
    apart(&named.iter().map(|n| (n.0, n.1.clone())).chain(printed).collect::<Vec<_>>())?;
    let inputs: Vec<PathBuf> = command
        .get_arguments()
        .filter(|a| a.get_long().is_none_or(|long| named.iter().all(|n| n.0 != long)))
        .filter_map(|a| matches.try_get_raw(a.get_id().as_str()).ok()?)
        .flatten()
        .map(PathBuf::from)
        .collect();
    for (long, path, kind) in &named {
        if let Some(input) = inputs.iter().find(|i| reads(i, path)) {
            return Err(misuse(format!(
                "--{long} would overwrite {}, which is read or measured; give the result another name",
                input.display()
            )));
        }
        if !REPORTING.contains(&name) && is_report(path) {
            let why = "is a report of probe, whose samples this result would replace; give the result another name, or remove the report";
            return Err(misuse(format!("--{long}: {} {why}", path.display())));
        }
        match kind {
            Kind::File if path.as_os_str() == "-" => {}
            Kind::File => file(path)?,
            Kind::Prefix => file(&with(path, "x"))?,
            Kind::Directory => directory(path)?,
            Kind::Other => {}
        }
    }
    Ok(())
}

/// Is there a report with its samples, which nothing brings back? `--json a.json b.json` takes the first of two reports for its file.
fn is_report(path: &Path) -> bool {
    let mut begin = [0; 64];
    let read = fs::metadata(path).is_ok_and(|m| m.is_file()) && fs::File::open(path).and_then(|mut f| f.read(&mut begin)).is_ok();
    read && String::from_utf8_lossy(&begin)
        .replace(char::is_whitespace, "")
        .starts_with(&format!("{{\"schema\":\"{}", crate::report::SCHEMA))
}

/// Two results in one file: the second is all that is left; in standard output no program finds where the second begins.
fn apart(named: &[(&str, PathBuf)]) -> anyhow::Result<()> {
    for (i, (long, path)) in named.iter().enumerate() {
        // What is no file, as /dev/null, takes as many as it is given.
        let takes_one = path.as_os_str() == "-" || fs::metadata(path).map_or(true, |m| m.is_file());
        let Some((other, _)) = named[..i].iter().find(|n| takes_one && place(&n.1) == place(path)) else { continue };
        return Err(misuse(match path.as_os_str() == "-" {
            true => format!("standard output takes one of --{other} and --{long}; give the other a file"),
            false => format!("--{other} and --{long} name one file; each result needs its own"),
        }));
    }
    Ok(())
}

/// Where a file is, or will be.
pub fn place(path: &Path) -> PathBuf {
    let made = || {
        let parent = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Some(fs::canonicalize(parent).ok()?.join(path.file_name()?))
    };
    fs::canonicalize(path).ok().or_else(made).unwrap_or_else(|| path.into())
}

/// Is this word of a command line the file `result`, itself or behind a kind of target, as in `sim:model.toml`?
pub fn reads(word: &Path, result: &Path) -> bool {
    let is_file = |p: &Path| fs::metadata(p).is_ok_and(|m| m.is_file());
    let behind = word.to_str().and_then(|w| w.split_once(':')).map(|w| Path::new(w.1));
    is_file(result) && [Some(word), behind].into_iter().flatten().any(|p| is_file(p) && place(p) == place(result))
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
    fn results_go_where_nothing_else_is() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("card.json"), "{}").unwrap();
        std::os::unix::fs::symlink(at("card.json"), at("link")).unwrap();
        let of_model = PathBuf::from(format!("sim:{}", at("card.json").display()));
        for word in [at("card.json"), at("link"), at("./card.json"), of_model] {
            assert!(reads(&word, &at("card.json")), "{}", word.display());
        }
        assert!(!reads(&at("card.json"), &at("other.json")) && !reads(Path::new("sim:modern-a2-128gb"), &at("card.json")));
        assert!(!reads(Path::new("/dev/null"), Path::new("/dev/null")));
        let both = |a: &str, b: &str| apart(&[("json", at(a)), ("html", at(b))]);
        assert!(both("a", "b").is_ok() && both("a", "./a").is_err() && both("card.json", "link").is_err());
        assert!(apart(&[("json", "/dev/null".into()), ("html", "/dev/null".into())]).is_ok());
        let dash = PathBuf::from("-");
        assert!(apart(&[("json", dash.clone()), ("format", dash)]).is_err());
    }

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

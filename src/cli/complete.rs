//! `nandscope completions SHELL` and `nandscope man`: made from the definition of the command line, so they cannot fall behind.

use super::Cli;
use crate::device::nearest;
use crate::finding::Quantity;
use crate::workload::purpose;
use anyhow::Context;
use clap::builder::PossibleValuesParser;
use clap::{Args, CommandFactory};
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Args)]
pub struct CompletionsArgs {
    /// The shell
    shell: clap_complete::Shell,
}

pub fn completions(a: CompletionsArgs) -> anyhow::Result<ExitCode> {
    let mut text = vec![];
    clap_complete::generate(a.shell, &mut with_names(Cli::command(), a.shell), "nandscope", &mut text);
    super::stdout().write_all(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// Uses that `layout plan --for` knows.
const LAYOUTS: [&str; 7] = ["raspberry-pi", "camera", "logger", "root-ext4", "root-f2fs", "root-btrfs", "sd-association"];

/// The command line with names that a shell can propose where more than names is taken: cards, quantities, uses. Files and devices are still
/// proposed where nothing else fits; zsh has no such second choice, so cards are left out there.
fn with_names(mut c: clap::Command, shell: clap_complete::Shell) -> clap::Command {
    let layout = c.get_name() == "plan";
    let ids: Vec<clap::Id> = c.get_arguments().map(|a| a.get_id().clone()).collect();
    for id in ids {
        let names: Vec<&'static str> = match id.as_str() {
            "target" | "targets" | "card" if shell != clap_complete::Shell::Zsh => nandscope_sim::cards::ALL.iter().map(|c| c.0).collect(),
            "only" => Quantity::ALL.into_iter().map(Quantity::key).collect(),
            "purpose" if layout => LAYOUTS.to_vec(),
            "purpose" => purpose::NAMES.to_vec(),
            _ => continue,
        };
        c = c.mut_arg(id, |a| a.value_parser(PossibleValuesParser::new(names)));
    }
    let inside: Vec<String> = c.get_subcommands().map(|s| s.get_name().to_string()).collect();
    inside.iter().fold(c, |c, name| c.mut_subcommand(name, |s| with_names(s, shell)))
}

#[derive(Args)]
pub struct ManArgs {
    /// A command, as probe or cards show; the program itself where none is given
    command: Vec<String>,
    /// Write the page of the program and one for each command, also within commands, into a directory
    #[arg(long, value_name = "DIR", conflicts_with = "command")]
    dir: Option<PathBuf>,
}

/// Sections that every page ends with.
const ENDS: &str = ".SH \"EXIT STATUS\"
.TP\n0\nverdicts given
.TP\n1\nerror
.TP\n2\nwrong usage
.TP\n3\nnothing could be decided
.TP\n4\nrefused for safety
.TP\n5\nthe layout costs something
.TP\n6\nthe card is a counterfeit
.TP\n7\nfailing, or not storing what it is told
.TP\n8\nslower than its class or the rate asked for
.TP\n130\ninterrupted, as by Ctrl-C, before one of 5 to 8 was found; what was measured until then is written
.TP\n101\na defect of nandscope: the error says where
.SH ENVIRONMENT
.TP\nNO_COLOR\nno colour where it is set and not empty; there is none where the output is no terminal, either
.TP\nCOLUMNS\nwidth of the output
.TP\nXDG_STATE_HOME\nwhere undo journals are kept [default: ~/.local/state]
.TP\nXDG_CONFIG_HOME\nwhere the file with defaults is [default: ~/.config]
.TP\nNANDSCOPE_CONFIG\nanother file with defaults; empty: none
.TP\nXDG_DATA_HOME\nwhere the survey is kept [default: ~/.local/share]
.SH FILES
.TP\n$XDG_STATE_HOME/nandscope/*.undo\nold content of what an interrupted run overwrote; nandscope undo puts it back
.TP\n$XDG_CONFIG_HOME/nandscope/config.toml\ndefaults of options: for all commands that have one, and in a table such as [probe] for one command
.TP\n$XDG_DATA_HOME/nandscope/survey\nthe survey
";

/// What is tried first with a command.
const EXAMPLES: [(&str, &[&str]); 34] = [
    ("check", &["nandscope check /dev/mmcblk0", "nandscope check /dev/mmcblk0 --write --consent ID", "nandscope check sim:fake-wrap-32gb"]),
    (
        "probe",
        &[
            "nandscope probe /dev/mmcblk0 --json card.json",
            "nandscope probe /dev/mmcblk0 --write --consent ID --time 5m",
            "nandscope probe sim:toshiba-emmc --only erase_block",
        ],
    ),
    ("run", &["nandscope run list", "nandscope run capacity /dev/mmcblk0 --write --consent ID"]),
    ("bench", &["nandscope bench /mnt/card --write --log 20kB/s", "nandscope bench sim:wintec-1gb --record 512"]),
    ("infer", &["nandscope infer card.json", "nandscope infer flashbench.log", "fio ... --output-format=json | nandscope infer -"]),
    ("report", &["nandscope report card.json", "nandscope report card.json --html card.html"]),
    ("layout", &["nandscope layout audit /dev/mmcblk0 --report card.json", "nandscope layout plan /dev/mmcblk0 --for root-ext4"]),
    ("serve", &["nandscope serve toshiba-emmc", "nandscope serve fake-wrap-32gb --nbd tcp:127.0.0.1:10809"]),
    ("campaign", &["nandscope campaign plan.toml --dry-run", "nandscope campaign plan.toml --state runs"]),
    ("survey", &["nandscope survey add *.json --lot A", "nandscope survey list"]),
    ("life", &["nandscope life card.json"]),
    ("ab", &["nandscope ab /dev/mmcblk0 --b split=8KiB", "nandscope ab sim:toshiba-emmc --a default --b split=8KiB"]),
    ("partitions", &["nandscope partitions /dev/mmcblk0 --json parts.json"]),
    ("flashbench", &["nandscope flashbench -a /dev/mmcblk0", "nandscope flashbench -O --open-au-nr=5 sim:toshiba-emmc"]),
    ("list", &["nandscope list", "nandscope list --json"]),
    ("cards", &["nandscope cards", "nandscope cards show toshiba-emmc", "nandscope cards check my.toml"]),
    ("identify", &["nandscope identify /dev/mmcblk0"]),
    ("quirk", &["nandscope quirk card.json"]),
    ("format", &["nandscope format /dev/mmcblk0 --dry-run", "nandscope format /dev/mmcblk0 --consent ID"]),
    ("erase", &["nandscope erase /dev/mmcblk0 --dry-run", "nandscope erase /dev/mmcblk0 --how discard --consent ID"]),
    ("frag", &["nandscope frag sim:cf-256mb", "nandscope frag sim:cf-256mb --json frag.json"]),
    ("age", &["nandscope age sim:cf-256mb --passes 20"]),
    ("map", &["nandscope map /dev/mmcblk0p1"]),
    ("defrag", &["nandscope defrag /dev/mmcblk0p1 --consent ID"]),
    ("sim", &["nandscope sim page-mapped --pattern random-write-4k", "nandscope sim my.toml --trace log.iolog --latencies out.tsv"]),
    ("twin", &["nandscope twin card.json -o twin.toml", "nandscope twin check twin.toml measured.tsv"]),
    ("replay", &["nandscope replay log.iolog sim:toshiba-emmc"]),
    ("undo", &["nandscope undo --list", "nandscope undo"]),
    ("compare", &["nandscope compare a.json b.json", "nandscope compare a1.json a2.json --against b1.json b2.json"]),
    (
        "rate",
        &[
            "nandscope rate sim:modern-a1-32gb --class C10,V30,A1",
            "nandscope rate sim:modern-a1-32gb --for dashcam:4x20Mbit/s --conditions spec",
        ],
    ),
    ("uflip", &["nandscope uflip sim:patriot-16gb --only granularity,alignment --out results"]),
    ("sweep", &["nandscope sweep plan.toml -o results --shard 1/2", "nandscope sweep merge results"]),
    ("completions", &["nandscope completions bash > /etc/bash_completion.d/nandscope"]),
    ("man", &["nandscope man probe | man -l -", "nandscope man --dir /usr/local/share/man/man1"]),
];

/// Help is on every page, and what a command starts itself is nobody's.
fn shown(c: &&clap::Command) -> bool {
    c.get_name() != "help" && !c.is_hide_set()
}

/// Commands within a command, and in those, each with its words: "cards", "cards show".
fn below<'a>(c: &'a clap::Command, words: &str) -> Vec<(String, &'a clap::Command)> {
    let own = c.get_subcommands().filter(shown);
    own.flat_map(|c| {
        let words = format!("{words} {}", c.get_name()).trim_start().to_string();
        let inside = below(c, &words);
        std::iter::once((words, c)).chain(inside)
    })
    .collect()
}

/// The name of a page: nandscope-cards-show.
fn page_name(words: &str) -> String {
    format!("nandscope {words}").trim_end().replace(' ', "-")
}

/// One page: of the program or of a command, with a line for each command within it.
fn page(words: &str, command: &clap::Command) -> std::io::Result<Vec<u8>> {
    let mut text = vec![];
    let man = clap_mangen::Man::new(command.clone().bin_name(format!("nandscope {words}").trim_end()).display_name(page_name(words)))
        .section("1")
        .source(concat!("nandscope ", env!("CARGO_PKG_VERSION")))
        .manual("nandscope");
    man.render_title(&mut text)?;
    man.render_name_section(&mut text)?;
    man.render_synopsis_section(&mut text)?;
    man.render_description_section(&mut text)?;
    if command.get_arguments().any(|a| !a.is_hide_set()) {
        man.render_options_section(&mut text)?;
    }
    let inside: Vec<&clap::Command> = command.get_subcommands().filter(shown).collect();
    if !inside.is_empty() {
        writeln!(text, ".SH COMMANDS")?;
        for sub in &inside {
            let about = sub.get_about().map(ToString::to_string).unwrap_or_default();
            writeln!(text, ".TP\n.B {}\n{}", sub.get_name(), about)?;
        }
    }
    text.write_all(ENDS.as_bytes())?;
    let first = words.split(' ').next().filter(|w| !w.is_empty()).unwrap_or("check");
    let all: Vec<&str> = EXAMPLES.iter().filter(|e| e.0 == first).flat_map(|e| e.1.iter().copied()).collect();
    let own: Vec<&str> = all.iter().copied().filter(|line| line.contains(&format!("nandscope {words}"))).collect();
    // Of a command within another without one of its own, those of the other.
    for (i, line) in (if own.is_empty() { all } else { own }).iter().enumerate() {
        let head = if i == 0 { ".SH EXAMPLES\n" } else { "" };
        writeln!(text, "{head}.TP\n{}", line.replace('-', "\\-"))?;
    }
    let above = words.rsplit_once(' ').map_or("", |w| w.0);
    let also = (!words.is_empty()).then(|| page_name(above)).into_iter();
    let also = also.chain(inside.iter().map(|c| page_name(format!("{words} {}", c.get_name()).trim_start())));
    let also: Vec<String> = also.map(|n| format!(".BR {} (1)", n.replace('-', "\\-"))).collect();
    writeln!(text, ".SH \"SEE ALSO\"\n{}", also.join(",\n"))?;
    Ok(text)
}

/// # Errors
/// There is no such command; nothing can be written.
pub fn man(a: &ManArgs) -> anyhow::Result<ExitCode> {
    let whole = Cli::command();
    let all: Vec<(String, &clap::Command)> = std::iter::once((String::new(), &whole)).chain(below(&whole, "")).collect();
    if let Some(dir) = &a.dir {
        std::fs::create_dir_all(dir).with_context(|| format!("cannot make the directory {}", dir.display()))?;
        for (words, c) in &all {
            std::fs::write(dir.join(format!("{}.1", page_name(words))), page(words, c)?)?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let name = a.command.join(" ");
    let of = all.iter().find(|c| c.0 == name).ok_or_else(|| {
        let near = nearest(&name, all[1..].iter().map(|c| c.0.as_str()))
            .map_or("; 'nandscope -h' lists them".into(), |n| format!("; did you mean {n}?"));
        super::misuse(format!("there is no command '{name}'{near}"))
    })?;
    super::stdout().write_all(&page(&of.0, of.1)?)?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::error::ErrorKind;

    /// What completions propose is taken.
    #[test]
    fn completions_know_cards_and_uses() {
        let text = |shell| {
            let mut out = vec![];
            clap_complete::generate(shell, &mut with_names(Cli::command(), shell), "nandscope", &mut out);
            String::from_utf8(out).unwrap()
        };
        let (bash, zsh) = (text(clap_complete::Shell::Bash), text(clap_complete::Shell::Zsh));
        for name in ["toshiba-emmc", "open-au-linear", "close_cost_ms", "dashcam", "raspberry-pi"] {
            assert!(bash.contains(name), "{name}");
            assert!(zsh.contains(name) || name == "toshiba-emmc", "{name}");
        }
        let whole = Cli::command();
        let lines = LAYOUTS.iter().map(|u| format!("nandscope layout plan sim:null --for {u}"));
        for line in lines.chain(purpose::NAMES.iter().map(|u| format!("nandscope check sim:null --for {u}"))) {
            assert!(whole.clone().try_get_matches_from(line.split(' ')).is_ok(), "{line}");
        }
    }

    /// Every command has an example, and each is a command line that there is.
    #[test]
    fn examples_are_command_lines() {
        let whole = Cli::command();
        for c in whole.get_subcommands().map(clap::Command::get_name) {
            assert!(EXAMPLES.iter().any(|e| e.0 == c), "{c} has no example");
        }
        for line in EXAMPLES.iter().flat_map(|e| e.1) {
            let own = line.split(['|', '>']).map(str::trim).find(|p| p.starts_with("nandscope ")).unwrap_or_else(|| panic!("{line}"));
            let parsed = whole.clone().try_get_matches_from(own.split(' '));
            let why = parsed.err().filter(|e| !matches!(e.kind(), ErrorKind::DisplayHelp));
            assert!(why.is_none(), "{line}: {}", why.unwrap());
        }
    }
}

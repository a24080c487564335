//! A plan as a shell script: the recommended way runs, everything else is a comment.

use super::plan::{Plan, Step, part_name};
use crate::shell::word;
use std::fmt::Write;

/// The script. Device, partitions and consent are variables at the top, so that it is read and changed in one place; what must be
/// filled in stops the script with a word about it. The plan is one for [`DEVICE`].
pub fn script(p: &Plan, target: &str, purpose: &str) -> String {
    let mut o = String::from("#!/bin/sh\n");
    let _ = writeln!(o, "# lays out {} for: {purpose}. EVERYTHING ON THE CARD IS LOST.", plain(target));
    let _ = writeln!(o, "# Read it, then run it as root. It stops at the first command that fails.\nset -e\n");
    for b in &p.basis {
        let _ = writeln!(o, "# {}", plain(b));
    }
    let device = target.starts_with("/dev/");
    match device {
        true => _ = writeln!(o, "\nDEVICE={}", word(target)),
        false => _ = writeln!(o, "\nDEVICE=${{DEVICE:?name the card that is to be laid out, for example DEVICE=/dev/sdX}}"),
    }
    let used = |name: &str| p.steps.iter().any(|s| words(&s.command).any(|w| w == name));
    for n in 1..=p.parts.len() {
        match device {
            _ if !used(&part_name(DEVICE, n)) => {}
            true => _ = writeln!(o, "PART{n}={}", word(&part_name(target, n))),
            false => _ = writeln!(o, "PART{n}=${{PART{n}:?name the device of partition {n}, for example PART{n}=/dev/sdX{n}}}"),
        }
    }
    if p.steps.iter().any(|s| s.command.contains(CONSENT)) {
        let _ = writeln!(o, "CONSENT=${{CONSENT:?the ID that nandscope list prints for this card}}");
    }
    let shell = |command: &str| {
        let variable = |w: &str| w == DEVICE || (1..=p.parts.len()).any(|n| w == part_name(DEVICE, n));
        let text: Vec<String> = words(command).map(|w| if variable(w) { format!("\"${w}\"") } else { w.to_string() }).collect();
        text.join(" ").replace(CONSENT, "--consent \"$CONSENT\"")
    };
    for s in &p.steps {
        let _ = writeln!(o, "\n# {}\n{}", plain(&s.why), shell(&s.command));
    }
    let comments = |o: &mut String, title: &str, all: &[Step]| {
        if !all.is_empty() {
            let _ = writeln!(o, "\n# {title}");
            for s in all {
                let _ = writeln!(o, "#   {}\n#     {}", plain(&s.why), shell(&s.command));
            }
        }
    };
    comments(&mut o, "instead of one of the commands above:", &p.instead);
    if !p.mount.is_empty() {
        let _ = writeln!(o, "\n# mount options:");
        for s in &p.mount {
            let _ = writeln!(o, "#   {}  ({})", plain(&s.command), plain(&s.why));
        }
    }
    if !p.notes.is_empty() {
        o.push('\n');
        for n in &p.notes {
            let _ = writeln!(o, "# {}", plain(n));
        }
    }
    o
}

/// Stands for the card in the commands of a plan that becomes a script; its partitions are PART1, PART2.
pub const DEVICE: &str = "DEVICE";

/// What a command that writes wants to know, as it stands in the plan.
const CONSENT: &str = "--consent ID";

fn words(command: &str) -> impl Iterator<Item = &str> {
    command.split(' ')
}

/// Without line ends: what stands in a comment must stay in it.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

//! Commands to copy. Those that lay a card out are the layout plan's (`nandscope layout plan`), which is never more precise than
//! the findings are sure; what destroys data says so.

use crate::host::facts::TargetKind;
use crate::layout::plan::{Profile, plan};
use crate::saved::Report;

/// Stands for the whole card: a page is read on another day, when the same name may be another device. The plan calls the
/// partitions of it PART1, PART2.
const DEVICE: &str = "DEVICE";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    pub what: String,
    pub line: String,
    /// Overwrites what the card holds.
    pub destroys: bool,
}

/// Commands for one purpose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    pub title: &'static str,
    /// What was found, or assumed, that the commands rest on.
    pub basis: Vec<String>,
    pub commands: Vec<Command>,
    pub notes: Vec<String>,
}

/// What to do with a card, the harmless first.
pub fn groups(r: &Report) -> Vec<Group> {
    let mut out = vec![look(r)];
    // A partition has no table of its own; a plan is for the whole card.
    if r.target.kind != TargetKind::Partition {
        let uses = [
            (Profile::Logger, "For files and logs: one FAT or exFAT volume"),
            (Profile::RootExt4, "For a root filesystem: ext4"),
            (Profile::RootF2fs, "For a root filesystem: F2FS"),
        ];
        out.extend(uses.iter().filter_map(|(profile, title)| layout(r, profile, title)));
    }
    out
}

fn look(r: &Report) -> Group {
    let mut commands = vec![];
    let mut push = |what: &str, line: String| commands.push(Command { what: what.into(), line, destroys: false });
    if r.target.kind != TargetKind::Partition {
        push("see what lies across erase blocks now, and what that costs", format!("nandscope layout audit {DEVICE} --report report.json"));
    } else {
        push(
            "see whether this partition begins where an erase block begins",
            "cat /sys/class/block/PARTITION/start   # in sectors of 512 B".into(),
        );
    }
    if !r.settings.write && r.target.kind != TargetKind::Simulated {
        let what = "measure what only writes show; the old content is put back";
        push(what, format!("nandscope probe {DEVICE} --write --consent ID --json report.json"));
    }
    push("keep this result among those of other cards", "nandscope survey add report.json".into());
    let notes = vec![format!("{DEVICE} is the whole card, PART1 its first partition; 'nandscope list' prints their names.")];
    Group { title: "Look, and keep", basis: vec![], commands, notes }
}

fn layout(r: &Report, profile: &Profile, title: &'static str) -> Option<Group> {
    let discard = r.host.queue.as_ref().and_then(|q| q.discard_max_bytes).map(|most| most > 0);
    // A card too small for the boundaries gets no plan.
    let fake = r.is_counterfeit();
    let mut p = plan(profile, &r.findings, fake.map_or(r.target.size, |c| c.holds), DEVICE, discard).ok()?;
    if let Some(c) = fake {
        p.basis.insert(0, format!("{}: it {}; the plan uses only what is there", c.word(), c.sizes()));
    }
    let commands = p.steps.into_iter().map(|s| Command { what: s.why, line: s.command, destroys: true }).collect();
    let mount = p.mount.into_iter().map(|m| match m.command.split_once(": ") {
        Some((part, options)) => format!("mount {part} with {options}: {}", m.why),
        None => format!("{}: {}", m.command, m.why),
    });
    Some(Group { title, basis: p.basis, commands, notes: mount.chain(p.notes).collect() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::{Finding, Quantity};
    use crate::saved::bare as report;
    use crate::units::MIB;

    fn lines(r: &Report) -> Vec<String> {
        groups(r).into_iter().flat_map(|g| g.commands).filter(|c| c.destroys).map(|c| c.line).collect()
    }

    #[test]
    fn the_commands_are_those_of_the_plan() {
        let r = report(vec![
            Finding::decided(Quantity::EraseBlock, (4 * MIB) as f64, 0.97),
            Finding::decided(Quantity::WriteUnit, 16384.0, 0.97),
            Finding::decided(Quantity::OpenAusLinear, 2.0, 0.97),
        ]);
        let p = plan(&Profile::RootExt4, &r.findings, r.target.size, "DEVICE", None).unwrap();
        let all = lines(&r);
        assert!(p.steps.len() >= 2 && p.steps.iter().all(|s| all.contains(&s.command)), "{all:#?}");
        assert!(all.iter().any(|l| l.contains("stripe-width=1024") && l.ends_with("PART1")), "{all:#?}");
        let notes: Vec<String> = groups(&r).into_iter().flat_map(|g| g.notes).collect();
        assert!(notes.iter().any(|n| n.starts_with("mount PART1 with noatime,commit=60")), "{notes:#?}");
    }

    /// Never more precise than the confidence allows.
    #[test]
    fn doubt_leaves_parameters_out() {
        let doubt = report(vec![Finding::decided(Quantity::EraseBlock, (4 * MIB) as f64, 0.5)]);
        assert!(lines(&doubt).iter().all(|l| !l.contains("stripe") && !l.contains("mkfs.f2fs -s")), "{:#?}", lines(&doubt));
        assert!(groups(&doubt).iter().skip(1).all(|g| g.basis.iter().any(|b| b.contains("50 %"))), "{:#?}", groups(&doubt));
        let nothing = groups(&report(vec![]));
        assert!(nothing[1].basis.iter().any(|b| b.contains("SD convention")), "{:#?}", nothing[1]);
    }

    #[test]
    fn a_partition_gets_no_table_and_a_tiny_card_no_plan() {
        let mut r = report(vec![Finding::decided(Quantity::EraseBlock, (4 * MIB) as f64, 0.97)]);
        r.target.kind = TargetKind::Partition;
        assert_eq!((groups(&r).len(), lines(&r).len()), (1, 0));
        r.target.kind = TargetKind::Disk;
        r.target.size = 2 * MIB;
        assert_eq!(groups(&r).len(), 1);
    }
}

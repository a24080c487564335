//! Commands to copy, made from findings that are sure enough. What destroys data says so.

use super::Report;
use crate::finding::Quantity;
use crate::host::facts::TargetKind;
use crate::units::{Bytes, MIB};

const SURE: f64 = 0.75;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    pub what: String,
    pub line: String,
    /// Overwrites what the card holds.
    pub destroys: bool,
}

pub fn commands(r: &Report) -> Vec<Command> {
    let mut out = vec![];
    let mut push = |what: String, line: String, destroys: bool| out.push(Command { what, line, destroys });
    let erase = r.findings.value(Quantity::EraseBlock, SURE).map(|e| e as u64).filter(|&e| e >= 4096 && e.is_multiple_of(512));
    let at = r.findings.value(Quantity::EraseBlockOffset, SURE).map_or(0, |a| a as u64);
    if let (Some(e), TargetKind::Partition) = (erase, r.target.kind) {
        push(
            format!("see whether this partition begins at a multiple of {}", Bytes(e)),
            "cat /sys/class/block/PARTITION/start   # in sectors of 512 B".into(),
            false,
        );
    } else if let Some(e) = erase {
        // The first boundary that leaves room for a partition table.
        let first = at + (MIB.saturating_sub(at)).div_ceil(e) * e;
        push(
            format!("one partition that begins where an erase block begins, {}", Bytes(first)),
            format!("parted --script --align none DEVICE mklabel msdos mkpart primary {first}B 100%"),
            true,
        );
        if e.is_multiple_of(4096) {
            let blocks = e / 4096;
            let unit = r.findings.value(Quantity::WriteUnit, SURE).map_or(blocks, |w| (w as u64 / 4096).max(1));
            push(
                "ext4 that keeps its data together by erase blocks".into(),
                format!("mkfs.ext4 -E stride={unit},stripe_width={blocks} PARTITION"),
                true,
            );
        }
        if e.is_multiple_of(2 * MIB) && e > 0 {
            push("f2fs with sections as large as an erase block".into(), format!("mkfs.f2fs -s {} PARTITION", e / (2 * MIB)), true);
        }
    }
    if !r.settings.write && r.target.kind != TargetKind::Simulated {
        push(
            "measure what only writes can tell; the old content is put back".into(),
            "nandscope probe DEVICE --write --consent ID --json report.json".into(),
            false,
        );
    }
    push("keep this result among those of other cards".into(), "nandscope survey add report.json".into(), false);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Finding;
    use crate::report::tests::report;

    #[test]
    fn partitions_begin_on_a_boundary_behind_the_table() {
        for (e, at, first) in
            [(4 * MIB, 0, 4 * MIB), (16 << 10, 0, MIB), (12 * MIB, 5 * MIB, 5 * MIB), (6 * MIB, 512 << 10, (512 << 10) + 6 * MIB)]
        {
            let r = report(vec![
                Finding::decided(Quantity::EraseBlock, e as f64, 0.9),
                Finding::decided(Quantity::EraseBlockOffset, at as f64, 0.9),
            ]);
            let all = commands(&r);
            assert!(all[0].line.contains(&format!("primary {first}B")), "{all:?}");
            assert!(all[0].destroys);
        }
    }

    #[test]
    fn doubt_gives_no_partition_table() {
        let r = report(vec![Finding::decided(Quantity::EraseBlock, 4e6, 0.5)]);
        assert!(commands(&r).iter().all(|c| !c.destroys));
    }
}

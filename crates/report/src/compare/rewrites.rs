//! Two cards that rewrite erase blocks: by what factor, what explains it, and what cannot be compared (C15, C17, C20).

use super::Subject;
use crate::finding::{Finding, Quantity};
use crate::infer::rewrite::{CHIP_BLOCKS, per_write, slow_down};
use crate::units::{Bytes, KIB, three};

/// Whether both are known to rewrite, at different times.
pub fn policies_differ(a: &Subject, b: &Subject) -> bool {
    policy(a).zip(policy(b)).is_some_and(|(x, y)| x != y)
}

fn decided(s: &Subject, q: Quantity) -> Option<&Finding> {
    s.findings.get(q).filter(|f| f.value.is_some())
}

fn number(s: &Subject, q: Quantity) -> Option<f64> {
    decided(s, q).and_then(Finding::number)
}

/// 1 at the end of a transaction, 2 at a full buffer; none where nothing is rewritten.
fn policy(s: &Subject) -> Option<f64> {
    number(s, Quantity::RewritePolicy).filter(|p| *p > 0.0)
}

fn when(s: &Subject, policy: f64) -> String {
    match number(s, Quantity::WriteBuffer) {
        Some(b) if policy == 2.0 => format!("whenever its buffer of {} is full", Bytes(b as u64)),
        _ if policy == 2.0 => "whenever its buffer is full".into(),
        _ => "at the end of each transaction".into(),
    }
}

/// Bytes of the erase block and whether they were measured; else those of the kind of chip.
fn block(s: &Subject) -> Option<(u64, bool)> {
    let measured = number(s, Quantity::EraseBlock).map(|b| (b as u64, true));
    let of_chip = number(s, Quantity::ChipClass).map(|c| (CHIP_BLOCKS[usize::from(c == 2.0)], false));
    measured.or(of_chip)
}

/// Ratio b / a of two findings of one quantity, with the bounds of their intervals.
fn ratio(a: &Finding, b: &Finding) -> Option<(f64, f64, f64)> {
    let (x, y) = (a.number()?, b.number()?);
    let (i, j) = (a.interval.unwrap_or([x, x]), b.interval.unwrap_or([y, y]));
    (x > 0.0 && i[0] > 0.0 && j[0] > 0.0).then(|| (y / x, j[0] / i[1], j[1] / i[0]))
}

/// A factor, whole where it is.
fn whole(factor: f64) -> String {
    if factor.fract() == 0.0 { format!("{factor:.0}") } else { three(factor) }
}

/// Sentences on two cards that rewrite; none where either does not, or was not looked at.
pub fn rewrites(a: &Subject, b: &Subject) -> Vec<String> {
    let mut out = vec![];
    let counts = decided(a, Quantity::RewritePolls).zip(decided(b, Quantity::RewritePolls));
    let times = decided(a, Quantity::RewriteMs).zip(decided(b, Quantity::RewriteMs));
    let factor = |(low, high): (&Finding, &Finding)| {
        let swap = low.number() > high.number();
        ratio(if swap { high } else { low }, if swap { low } else { high }).map(|r| (if swap { &a.label } else { &b.label }, r))
    };
    // The same in polls is true whatever the time of a poll; times come first where hosts may differ.
    if let Some((x, y)) = counts.or(times)
        && let Some((longer, (r, low, high))) = factor((x, y))
    {
        let show = |f: &Finding| f.quantity.show(f.number().unwrap_or(0.0));
        let bounds = if three(low) == three(high) { String::new() } else { format!(" ({} to {})", three(low), three(high)) };
        let host = if counts.is_some() && times.is_none() { "; if both hosts take the same time for a poll" } else { "" };
        out.push(format!("one rewrite takes {} and {}: {longer} takes {r:.1} times as long{bounds}{host}", show(x), show(y)));
    }
    if let (Some((x, y)), true) = (times, counts.is_some()) {
        let show = |f: &Finding| f.quantity.show(f.number().unwrap_or(0.0));
        out.push(format!("in time: {} and {}", show(x), show(y)));
    }
    if let Some(((x, sure), (y, known))) = block(a).zip(block(b))
        && x != y
    {
        let from = if sure && known { "as measured" } else { "as chips of these kinds usually have" };
        let (small, large) = (x.min(y), x.max(y));
        out.push(format!(
            "expected of erase blocks of {} and {}, {from}: {} times as long for a write of less than either",
            Bytes(small),
            Bytes(large),
            whole(slow_down(small, large))
        ));
    }
    if let Some((p, q)) = policy(a).zip(policy(b)) {
        if p == q {
            out.push(format!("both rewrite {}", if when(a, p) == when(b, q) { when(a, p) } else { "whenever a buffer is full".into() }));
        } else {
            out.push(format!(
                "times of their writes are not directly comparable, because the policies differ: {} rewrites {}, {} {}; compare one rewrite, or a file",
                a.label,
                when(a, p),
                b.label,
                when(b, q)
            ));
        }
        if let Some((x, y)) = times {
            let each = |s: &Subject, f: &Finding, p: f64| {
                let buffer = number(s, Quantity::WriteBuffer).filter(|_| p == 2.0).map(|b| b as u64);
                per_write(f.number().unwrap_or(0.0), buffer, 2 * KIB)
            };
            let (m, n) = (each(a, x, p), each(b, y, q));
            out.push(format!("of a file written in calls of 2 KiB each call spends {} ms and {} ms on that", three(m), three(n)));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Findings;
    use crate::units::polls;

    fn card(label: &str, policy: f64, buffer: Option<f64>, polls: f64, poll_ns: Option<f64>) -> Subject {
        let mut all = vec![Finding::decided(Quantity::RewritePolicy, policy, 0.9), Finding::decided(Quantity::RewritePolls, polls, 0.9)];
        all[1].interval = Some([polls * 0.99, polls * 1.01]);
        all.extend(buffer.map(|b| Finding::decided(Quantity::WriteBuffer, b, 0.9)));
        if let Some(ns) = poll_ns {
            all.push(Finding::decided(Quantity::RewriteMs, polls * ns / 1e6, 0.9));
            all.push(Finding::decided(Quantity::ChipClass, if polls * ns > 24e6 { 2.0 } else { 1.0 }, 0.8));
        }
        Subject { label: label.into(), findings: Findings(all), ..Subject::default() }
    }

    #[test]
    fn counts_answer_without_the_time_of_a_poll() {
        for (x, y, factor) in [(3800.0, 30_000.0, "7.9"), (3755.0, 28_897.0, "7.7"), (500.0, 1250.0, "2.5")] {
            for swap in [false, true] {
                let (a, b) = (card("A", 1.0, None, x, None), card("B", 2.0, Some(4096.0), y, None));
                let lines = if swap { rewrites(&b, &a) } else { rewrites(&a, &b) };
                let said = lines.join("\n");
                assert!(
                    said.contains(&polls(x)) && said.contains(&polls(y)) && said.contains(&format!("B takes {factor} times as long")),
                    "{said}"
                );
                assert!(said.contains("not directly comparable, because the policies differ"), "{said}");
                assert!(said.contains("if both hosts") && !said.contains(" ms"), "{said}");
                assert!(policies_differ(&a, &b));
            }
        }
    }

    #[test]
    fn the_size_of_the_erase_block_explains_the_factor() {
        let (a, b) = (card("A", 1.0, None, 3800.0, Some(4900.0)), card("B", 2.0, Some(4096.0), 30_000.0, Some(4900.0)));
        let said = rewrites(&a, &b).join("\n");
        assert!(said.contains("16 KiB and 128 KiB") && said.contains("8 times as long"), "{said}");
        // Measured erase blocks say more than the kind of chip.
        let mut c = b.clone();
        c.findings.0.push(Finding::decided(Quantity::EraseBlock, 262_144.0, 0.9));
        assert!(rewrites(&a, &c).join("\n").contains("16 times as long"));
        // The same policy is comparable, and cards that rewrite nothing are not looked at.
        let d = card("D", 2.0, Some(4096.0), 15_000.0, Some(4900.0));
        assert!(!rewrites(&b, &d).join("\n").contains("not directly"), "{:?}", rewrites(&b, &d));
        assert!(rewrites(&a, &Subject::default()).is_empty());
    }
}

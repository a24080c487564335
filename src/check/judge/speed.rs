//! Rates against what classes and uses ask for.

use super::super::measure::{Measured, Rate};
use super::super::{Answer, Question, Verdict};
use super::{Seen, real_size};
pub use crate::host::class::Class;
use crate::units::{Bytes, rate, three};
use crate::workload::purpose::{Purpose, Writes};

/// What a limit says of a rate.
fn against(rate: Option<&Rate>, least: f64) -> Verdict {
    match rate {
        Some(r) if r.low >= least => Verdict::Pass,
        Some(r) if r.high < least => Verdict::Fail,
        _ => Verdict::NotKnown,
    }
}

pub(super) fn speed(s: &Seen) -> Answer {
    let (q, m) = (Question::Speed, s.measured);
    let bytes = |r: &Option<Rate>| r.map(|r| rate(r.bytes_per_second));
    let iops = |r: &Option<Rate>| r.map(|r| format!("{:.0} IOPS", r.iops()));
    let seen: Vec<String> = [
        ("sequential write", bytes(&m.sequential_write)),
        ("sequential read", bytes(&m.sequential_read)),
        ("random write", iops(&m.random_write)),
        ("random read", iops(&m.random_read)),
    ]
    .into_iter()
    .filter_map(|(what, v)| Some(format!("{what} {}", v?)))
    .collect();
    if seen.is_empty() {
        return Answer::new(q, Verdict::NotKnown, "no rate was measured");
    }
    let seen = seen.join(", ");
    let declared = s.declared.map_or(vec![], Class::declared);
    let classes: &[Class] = if s.classes.is_empty() { &declared } else { s.classes };
    let conditions = "one request at a time, card not filled or erased first";
    if classes.is_empty() {
        let text = format!("the card's class is not shown here: {seen} ({conditions}). A1 asks for 10 MB/s, 500 and 1500 IOPS");
        return Answer::new(q, Verdict::NotKnown, text).todo("name the class printed on the card: --class A1, C10, V30 ...");
    }
    let mut worst: Option<(Verdict, String)> = None;
    for c in classes {
        let (verdict, text) = class(c, m);
        let better = worst.as_ref().is_none_or(|(w, _)| weight(verdict) > weight(*w));
        if better {
            worst = Some((verdict, text));
        }
    }
    let (verdict, text) = worst.unwrap_or((Verdict::NotKnown, String::new()));
    Answer::new(q, verdict, format!("{text}: {seen} ({conditions})"))
}

/// The use the card is wanted for, against what was measured. As for a class, what the reader cannot reach decides nothing.
pub(super) fn purpose(s: &Seen, p: &Purpose) -> Answer {
    let (q, m) = (Question::Purpose, s.measured);
    let asks = format!("{} needs {} ({})", p.title, p.needs(), p.source);
    if real_size(s).is_some() {
        return Answer::new(q, Verdict::Fail, format!("no use for a card that holds less than it reports: {asks}"));
    }
    if m.sequential_write.is_none() {
        let why = if s.write { "too few writes were timed" } else { "writes were not measured" };
        return Answer::new(q, Verdict::NotKnown, format!("{why}; {asks}"))
            .todo(format!("measure them, what is overwritten is put back: nandscope check {}", s.with_writes));
    }
    let small = |n: f64| n * super::super::measure::SMALL as f64;
    let iops = |r: Option<&Rate>| r.map_or("not measured".into(), |r| format!("{:.0} a second", r.iops()));
    let bytes = |r: Option<&Rate>| r.map_or("not measured".into(), |r| rate(r.bytes_per_second));
    let mut limits = vec![("sequential writes", m.sequential_write.as_ref(), p.sequential_write, bytes(m.sequential_write.as_ref()))];
    if p.sequential_read > 0.0 {
        limits.push(("sequential reads", m.sequential_read.as_ref(), p.sequential_read, bytes(m.sequential_read.as_ref())));
    }
    if let Some([reads, writes]) = p.random {
        limits.push(("random writes of 4 KiB", m.random_write.as_ref(), small(writes), iops(m.random_write.as_ref())));
        limits.push(("random reads of 4 KiB", m.random_read.as_ref(), small(reads), iops(m.random_read.as_ref())));
    }
    let judged: Vec<(&str, Verdict, &String)> = limits.iter().map(|(name, r, least, seen)| (*name, against(*r, *least), seen)).collect();
    let of = |v: Verdict| judged.iter().filter(|j| j.1 == v).map(|j| format!("{} {}", j.0, j.2)).collect::<Vec<_>>().join(", ");
    let slow_reader = m.sequential_read.is_none_or(|r| r.high < 1.25 * p.sequential_write);
    if judged.iter().any(|j| j.1 == Verdict::Fail) {
        let text = format!("{}: {asks}", of(Verdict::Fail));
        if slow_reader {
            return Answer::new(q, Verdict::NotKnown, format!("{text}; reads are no faster, so the reader may be the limit"))
                .todo("try a faster reader");
        }
        return Answer::new(q, Verdict::Fail, format!("too slow: {text}")).todo("take a card of a higher class for this use");
    }
    if judged.iter().any(|j| j.1 == Verdict::NotKnown) {
        return Answer::new(q, Verdict::NotKnown, format!("near the limit: {}: {asks}", of(Verdict::NotKnown)))
            .todo("a longer check decides: --time 5m");
    }
    let longest = [m.sequential_write, m.random_write.filter(|_| p.writes != Writes::InOrder)].into_iter().flatten().map(|r| r.longest_ms);
    let wait = longest.fold(0.0, f64::max);
    // What comes in while the card does something else.
    let buffer = Bytes(((wait / 1e3 * p.sequential_write) as u64).next_multiple_of(1024));
    let window = Bytes(m.window[1] - m.window[0]);
    let text = format!(
        "{}: {asks}; the longest write took {} ms, which a buffer of {buffer} bridges. Measured within {window}: a longer recording may          be slower once a write cache is full",
        of(Verdict::Pass),
        three(wait)
    );
    Answer::new(q, Verdict::Pass, text)
}

fn weight(v: Verdict) -> u8 {
    match v {
        Verdict::Pass => 0,
        Verdict::NotKnown => 1,
        Verdict::Fail => 2,
    }
}

/// One class against what was measured: a limit that the reader itself cannot reach decides nothing.
fn class(c: &Class, m: &Measured) -> (Verdict, String) {
    let mut limits = vec![(
        "sequential write",
        against(m.sequential_write.as_ref(), c.sequential_write),
        format!("{:.0} MB/s", c.sequential_write / 1e6),
    )];
    if let Some([reads, writes]) = c.random {
        let of = |n: f64| n * super::super::measure::SMALL as f64;
        limits.push(("random write", against(m.random_write.as_ref(), of(writes)), format!("{writes:.0} IOPS")));
        limits.push(("random read", against(m.random_read.as_ref(), of(reads)), format!("{reads:.0} IOPS")));
    }
    let slow_reader = m.sequential_read.is_none_or(|r| r.high < 1.25 * c.sequential_write);
    let failed: Vec<String> = limits.iter().filter(|l| l.1 == Verdict::Fail).map(|l| format!("{} below {}", l.0, l.2)).collect();
    if !failed.is_empty() && c.queued && limits[0].1 != Verdict::Fail {
        return (Verdict::NotKnown, format!("{} is measured with the command queue, which was not used", c.name));
    }
    if !failed.is_empty() && slow_reader {
        return (
            Verdict::NotKnown,
            format!("{} cannot be decided: reads are no faster than the limit, so the reader may be the limit", c.name),
        );
    }
    if !failed.is_empty() {
        return (Verdict::Fail, format!("below {}: {}", c.name, failed.join(", ")));
    }
    if limits.iter().all(|l| l.1 == Verdict::Pass) {
        return (Verdict::Pass, format!("as {} asks", c.name));
    }
    let open: Vec<&str> = limits.iter().filter(|l| l.1 == Verdict::NotKnown).map(|l| l.0).collect();
    (Verdict::NotKnown, format!("{} is not decided for want of {}", c.name, open.join(" and ")))
}

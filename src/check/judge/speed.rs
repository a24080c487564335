//! Rates against what classes and uses ask for.

use super::super::measure::{Measured, Rate};
use super::super::{Answer, Question, Verdict};
use super::{Seen, real_size};
use crate::host::class;
pub use crate::host::class::Class;
use crate::host::declared::Kind;
use crate::infer::stalls::{BUSY, busy_ms};
use crate::units::{Bytes, rate, three};
use crate::workload::purpose::{Purpose, Writes};
use serde::Serialize;

/// What a limit says of a rate.
fn against(rate: Option<&Rate>, least: f64) -> Verdict {
    match rate {
        Some(r) if r.low >= least => Verdict::Pass,
        Some(r) if r.high < least => Verdict::Fail,
        _ => Verdict::NotKnown,
    }
}

/// May the reader be what keeps writes below this limit?
fn slow_reader(write: Option<&Rate>, read: Option<&Rate>, least: f64) -> bool {
    let bounds = |r: Option<&Rate>| r.map(|r| [r.low, r.high]);
    class::slow_reader(bounds(write), bounds(read), least)
}

/// The longest that a write kept a program waiting.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Wait {
    pub ms: f64,
    /// Longest that the SD standard lets a card of this size stay busy.
    pub allowed_ms: f64,
}

/// None where no write took longer than the SD standard allows, or where it says nothing: an eMMC gives a limit of its own. A large
/// request waits several times, so what one takes on average goes off.
pub fn long_wait(s: &Seen) -> Option<Wait> {
    let small = s.measured.random_write.map(|r| r.longest_ms);
    let large = s.measured.sequential_write.map(|r| r.longest_ms - r.len as f64 / r.bytes_per_second * 1e3);
    let ms = small.into_iter().chain(large).fold(0.0, f64::max);
    let allowed_ms = busy_ms(s.size);
    let judged = s.declared.is_none_or(|d| d.kind != Kind::Mmc);
    (judged && ms > allowed_ms).then_some(Wait { ms, allowed_ms })
}

/// What is said of it beside the rates.
fn waiting(s: &Seen) -> String {
    long_wait(s).map_or(String::new(), |w| format!("; the longest write took {} ms, and the SD standard allows {}", three(w.ms), BUSY))
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
    let wait = waiting(s);
    if classes.is_empty() {
        let text = format!("the card's class is not shown here: {seen} ({conditions}){wait}. A1 asks for 10 MB/s, 500 and 1500 IOPS");
        return Answer::new(q, Verdict::NotKnown, text).todo("name the class printed on the card: --class A1, C10, V30 ...");
    }
    let mut worst: Option<(Verdict, String, Next)> = None;
    for c in classes {
        let judged = class(c, m);
        let better = worst.as_ref().is_none_or(|w| weight(judged.0) > weight(w.0));
        if better {
            worst = Some(judged);
        }
    }
    let (verdict, text, next) = worst.unwrap_or((Verdict::NotKnown, String::new(), Next::Nothing));
    let names: Vec<&str> = s.classes.iter().map(|c| c.name.as_str()).collect();
    let with = if names.is_empty() { String::new() } else { format!(" --class {}", names.join(",")) };
    let answer = Answer::new(q, verdict, format!("{text}: {seen} ({conditions}){wait}"));
    next.told(s, &with).map_or(answer.clone(), |todo| answer.todo(todo))
}

/// What would decide a rate that is not known.
enum Next {
    Nothing,
    Longer,
    Reader,
    Queue,
}

impl Next {
    /// In words; `with` are the options that ask for it again.
    fn told(&self, s: &Seen, with: &str) -> Option<String> {
        match self {
            Next::Nothing => None,
            Next::Longer if s.write => Some(format!("give it more time: nandscope check {}{with} --time 15m", s.with_writes)),
            Next::Longer => Some(format!("measure writes, what is overwritten is put back: nandscope check {}{with}", s.with_writes)),
            Next::Reader => Some("try a faster reader".into()),
            Next::Queue => Some(format!("measure it with a queue: nandscope rate {}{with}", s.with_writes)),
        }
    }
}

/// The use the card is wanted for, against what was measured. As for a class, what the reader cannot reach decides nothing.
pub(super) fn purpose(s: &Seen, p: &Purpose) -> Answer {
    let (q, m) = (Question::Purpose, s.measured);
    let with = format!(" --for {}", p.name);
    let asks = format!("{} needs {} ({})", p.title, p.needs(), p.source);
    if real_size(s).is_some() {
        return Answer::new(q, Verdict::Fail, format!("no use for a card that holds less than it reports: {asks}"));
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
    let slow_reader = slow_reader(m.sequential_write.as_ref(), m.sequential_read.as_ref(), p.sequential_write);
    if judged.iter().any(|j| j.1 == Verdict::Fail) {
        let text = format!("{}: {asks}", of(Verdict::Fail));
        if slow_reader {
            return Answer::new(q, Verdict::NotKnown, format!("{text}; reads are no faster, so the reader may be the limit"))
                .todo("try a faster reader");
        }
        return Answer::new(q, Verdict::Fail, format!("too slow: {text}")).todo("take a card of a higher class for this use");
    }
    if m.sequential_write.is_none() {
        let why = if s.write { "too few writes were timed" } else { "writes were not measured" };
        return Answer { todo: Next::Longer.told(s, &with), ..Answer::new(q, Verdict::NotKnown, format!("{why}; {asks}")) };
    }
    if judged.iter().any(|j| j.1 == Verdict::NotKnown) {
        let text = format!("near the limit: {}: {asks}", of(Verdict::NotKnown));
        return Answer { todo: Next::Longer.told(s, &with), ..Answer::new(q, Verdict::NotKnown, text) };
    }
    let longest = [m.sequential_write, m.random_write.filter(|_| p.writes != Writes::InOrder)].into_iter().flatten().map(|r| r.longest_ms);
    let wait = longest.fold(0.0, f64::max);
    // What comes in while the card does something else.
    let buffer = Bytes(((wait / 1e3 * p.sequential_write) as u64).next_multiple_of(1024));
    let window = Bytes(m.window[1] - m.window[0]);
    // A logger writes less at once.
    let appended = if p.writes == Writes::Appended { " in large requests (`nandscope rate --for` writes smaller ones)" } else { "" };
    let text = format!(
        "{}{appended}: {asks}; the longest write took {} ms, which a buffer of {buffer} bridges. Measured within {window}: a longer recording may be slower once a write cache is full",
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

/// One class against what was measured: a limit that the reader itself cannot reach decides nothing, unless the card is slower still.
fn class(c: &Class, m: &Measured) -> (Verdict, String, Next) {
    let writes = m.sequential_write.as_ref();
    let mut limits = vec![("sequential write", against(writes, c.sequential_write), format!("{:.0} MB/s", c.sequential_write / 1e6))];
    if let Some([reads, writes]) = c.random {
        let of = |n: f64| n * super::super::measure::SMALL as f64;
        limits.push(("random write", against(m.random_write.as_ref(), of(writes)), format!("{writes:.0} IOPS")));
        limits.push(("random read", against(m.random_read.as_ref(), of(reads)), format!("{reads:.0} IOPS")));
    }
    let slow_reader = slow_reader(writes, m.sequential_read.as_ref(), c.sequential_write);
    let failed: Vec<String> = limits.iter().filter(|l| l.1 == Verdict::Fail).map(|l| format!("{} below {}", l.0, l.2)).collect();
    if !failed.is_empty() && c.queued && limits[0].1 != Verdict::Fail {
        let text = format!("{} is measured with the command queue, which was not used", c.name);
        return (Verdict::NotKnown, text, Next::Queue);
    }
    if !failed.is_empty() && slow_reader {
        let text = format!("{} cannot be decided: reads are no faster than the limit, so the reader may be the limit", c.name);
        return (Verdict::NotKnown, text, Next::Reader);
    }
    if !failed.is_empty() {
        return (Verdict::Fail, format!("below {}: {}", c.name, failed.join(", ")), Next::Nothing);
    }
    if limits.iter().all(|l| l.1 == Verdict::Pass) {
        return (Verdict::Pass, format!("as {} asks", c.name), Next::Nothing);
    }
    let open: Vec<String> = limits.iter().filter(|l| l.1 == Verdict::NotKnown).map(|l| format!("{} for {}", l.0, l.2)).collect();
    let text = format!("{} is not decided, too few timed or too near the limit: {}", c.name, open.join(" and "));
    (Verdict::NotKnown, text, Next::Longer)
}

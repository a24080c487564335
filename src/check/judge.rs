//! From what was measured to answers. Pure.

mod capacity;
mod speed;

use super::examine::Examined;
use super::measure::{Fates, Measured, STAYED};
use super::{Answer, Question, Verdict};
use crate::finding::Findings;
use crate::host::declared::{Declared, Kind};
use crate::host::faults::{Noticed, Trouble};
use crate::host::registers::ext_csd::{LifeTime, PreEol};
use crate::layout::disk::Disk;
use crate::layout::grid::Grid;
use crate::report::terminal::size;
use crate::units::{Bytes, as_sold};
use crate::workload::purpose::Purpose;
pub use capacity::{agreed, holds, real_size, word};
use capacity::{bounds, capacity};
pub use speed::{Class, Wait, long_wait};
use speed::{purpose, speed};

/// All that is known when a card is judged.
pub struct Seen<'a> {
    /// Bytes the card reports.
    pub size: u64,
    /// What `capacity` found; nothing where nothing was written.
    pub findings: &'a Findings,
    /// Places of the test of the capacity that did not keep what they were given, in no way that gives a size.
    pub broken: Option<&'a str>,
    pub measured: &'a Measured,
    pub write: bool,
    pub declared: Option<&'a Declared>,
    /// Why there is no health block, where it was asked for.
    pub no_health: Option<&'a str>,
    pub disk: Option<&'a Disk>,
    /// Classes to be measured against instead of those the card declares.
    pub classes: &'a [Class],
    /// What the card is wanted for.
    pub purpose: Option<&'a Purpose>,
    /// What the running system has noticed of this disk.
    pub noticed: &'a Noticed,
    /// The target and the options that allow writes, for advice.
    pub with_writes: &'a str,
}

impl<'a> Seen<'a> {
    /// What was measured, with writes, on a card of which nothing else is known.
    pub fn of(size: u64, examined: &'a Examined, noticed: &'a Noticed) -> Seen<'a> {
        Seen {
            size,
            findings: &examined.findings,
            broken: examined.broken.as_deref(),
            measured: &examined.measured,
            write: true,
            declared: None,
            no_health: None,
            disk: None,
            classes: &[],
            purpose: None,
            noticed,
            with_writes: "",
        }
    }
}

/// All answers, in the order of [`Question`].
pub fn answers(s: &Seen) -> Vec<Answer> {
    let first = vec![capacity(s), stores(s), errors(s), speed(s)];
    let purpose = s.purpose.map(|p| purpose(s, p));
    first.into_iter().chain(purpose).chain([health(s), troubles(s), partitions(s)]).collect()
}

/// The same of a target that went away, or whose answers are none: that its reads and writes succeed is not so.
pub fn of_gone(answers: Vec<Answer>, why: &str, garbled: bool) -> Vec<Answer> {
    let what = if garbled { "its last answer is none" } else { "it went away in the middle" };
    let errors = |a: Answer| match (a.question, a.verdict) {
        (Question::Errors, Verdict::Pass) => Answer::new(a.question, Verdict::NotKnown, format!("{what}: {why}; before: {}", a.because)),
        _ => a,
    };
    answers.into_iter().map(errors).collect()
}

/// The same of a check that was interrupted: what it did not come to is not known, whatever the reason would be otherwise.
pub fn of_interrupted(answers: Vec<Answer>, m: &Measured) -> Vec<Answer> {
    let only = |a: Answer| {
        let because = match (a.question, a.verdict) {
            (Question::Stores, Verdict::NotKnown) if m.fates.read > 0 => {
                format!("interrupted when {} were written and had read back as written", size(m.fates.read * super::measure::SMALL))
            }
            (Question::Stores, Verdict::NotKnown) => "interrupted before anything was written and read back".into(),
            (Question::Errors, Verdict::Pass) if m.ended.is_some() => {
                let of = |n: u64, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
                format!("interrupted after {} and {}, none of which failed", of(m.reads, "read"), of(m.writes, "write"))
            }
            (Question::Speed | Question::Purpose, Verdict::NotKnown) => "interrupted before enough was timed".into(),
            (Question::Capacity, Verdict::NotKnown) => a.because,
            _ => return a,
        };
        Answer::new(a.question, Verdict::NotKnown, because)
    };
    answers.into_iter().map(only).collect()
}

/// The same for an image file: what it passes says nothing of the card it was copied from, and its speed is that of the disk it lies on.
pub fn of_image(answers: Vec<Answer>) -> Vec<Answer> {
    of_file(answers, "an image file is as large as its disk lets it be", "an image file")
}

/// The same for a loop device over this file.
pub fn of_loop(answers: Vec<Answer>, file: &str) -> Vec<Answer> {
    of_file(
        answers,
        &format!("this is a loop device over the file {file}, which is as large as its disk lets it be"),
        "a loop device over a file",
    )
}

fn of_file(answers: Vec<Answer>, size: &str, what: &str) -> Vec<Answer> {
    let only = |a: Answer| {
        let (because, todo) = match (a.question, a.verdict) {
            (Question::Capacity, Verdict::Pass | Verdict::NotKnown) => (
                format!("{size}; only the card itself can be tested"),
                Some("check the card itself: nandscope list shows its name".to_string()),
            ),
            (Question::Stores, Verdict::Pass) => (format!("this is {what}, not the card; of the file: {}", a.because), None),
            (Question::Speed | Question::Purpose, _) => {
                (format!("{what} is as fast as the disk it lies on; only the card itself can be measured"), None)
            }
            _ => return a,
        };
        Answer { question: a.question, verdict: Verdict::NotKnown, because, todo }
    };
    answers.into_iter().map(only).collect()
}

/// One place in so many fails, of a card that fails in silence: what a pass must have been able to see.
const SILENT: f64 = 256.0;

/// The probability that `n` places at random miss a fault in one of `every`.
fn missing(n: u64, every: f64) -> f64 {
    (1.0 - 1.0 / every).powf(n as f64)
}

/// Of 100 checks that try `n` places at random, about how many miss a fault in one of `every`.
fn missed(n: u64, every: f64) -> String {
    let miss = 100.0 * missing(n, every);
    if miss < 0.5 { "fewer than 1 of 100 checks".into() } else { format!("{miss:.0} of 100 checks") }
}

fn stores(s: &Seen) -> Answer {
    let (q, f) = (Question::Stores, &s.measured.fates);
    let failing = "do not use this card; copy off what can still be read";
    if f.changing > 0 {
        let text = format!("{} of {} places that were read three times read differently each time", f.changing, f.read_again);
        return Answer::new(q, Verdict::Fail, text).todo(failing);
    }
    if f.lost() > 0 {
        let all = f.lost() == f.read && f.old == f.read;
        let text = if all { format!("every write was acknowledged and none was kept: {}", fates(f)) } else { fates(f) };
        return Answer::new(q, Verdict::Fail, text).todo(failing);
    }
    if let Some(why) = s.broken {
        return Answer::new(q, Verdict::Fail, why).todo(failing);
    }
    if let Some(f) = s.measured.beside_discards.as_ref().filter(|f| f.lost() > 0) {
        let todo = "do not let it discard: no mount option 'discard', no fstrim, no blkdiscard; better, replace it";
        return Answer::new(q, Verdict::Fail, format!("a small discard damages what lies beside it: {}", fates(f))).todo(todo);
    }
    if let Some([flushed, loose]) = &s.measured.reinserted {
        if flushed.lost() > 0 {
            let text = format!("it forgot what was written and flushed before it was taken out: {}", fates(flushed));
            return Answer::new(q, Verdict::Fail, text).todo(failing);
        }
        if loose.lost() > 0 {
            let text = format!("it lost what was written last, and acknowledged, when it was taken out: {}", fates(loose));
            return Answer::new(q, Verdict::Fail, text).todo("unmount it and wait some seconds before it is taken out; better, replace it");
        }
    }
    let later = &s.measured.later;
    if let (Some(first), None) = (later.lost.iter().min(), real_size(s)) {
        let n = later.read();
        let text = format!("{} of {n} places that read back at once did not at the end, the first at byte {first}", later.lost.len());
        return Answer::new(q, Verdict::Fail, text).todo(failing);
    }
    if s.measured.no_content {
        return Answer::new(q, Verdict::NotKnown, "this target keeps no content that could be read back");
    }
    if !s.write {
        let same =
            if f.read_again > 0 { format!("; {} places read three times were the same each time", f.read_again) } else { String::new() };
        return Answer::new(q, Verdict::NotKnown, format!("nothing was written{same}"));
    }
    if f.read == 0 {
        let why = s.measured.ended.as_deref().unwrap_or("nothing that was written could be read back");
        return Answer::new(q, Verdict::NotKnown, why.to_string());
    }
    let again =
        if f.read_again > 0 { format!(", {} places read three times were the same each time", f.read_again) } else { String::new() };
    // Cards that fail in silence do so at one place in two to some hundred; fewer pieces would not show the rarest of them.
    if missing(f.read, SILENT) > 0.05 {
        let wrote = size(f.read * super::measure::SMALL);
        let text = format!(
            "this card takes so long that only {wrote} could be written and read back, as written; a fault in one 4 KiB piece of {SILENT:.0} is missed in {}",
            missed(f.read, SILENT)
        );
        return Answer::new(q, Verdict::NotKnown, text).todo(format!("give it more time: nandscope check {} --time 15m", s.with_writes));
    }
    if let Some(what) = s.measured.untried {
        let wrote = size(f.read * super::measure::SMALL);
        let text = format!("all {wrote} that were written read back as written; not tried: {what}");
        let todo = match what == STAYED {
            true => "take it out when it is asked for, and press Enter when it is in again".to_string(),
            false => format!("give it more time: nandscope check {} --time 5m", s.with_writes),
        };
        return Answer::new(q, Verdict::NotKnown, text).todo(todo);
    }
    // What loses a whole command is met as often as commands are.
    let command = match s.measured.writes / 3 {
        0 => String::new(),
        n => format!(", in one write command of {n} in {}", missed(s.measured.writes, n as f64)),
    };
    let miss = format!("; a fault in one 4 KiB piece of 5000 is missed in {}{command}", missed(f.read, 5000.0));
    let more = match (&s.measured.beside_discards, &s.measured.reinserted) {
        (_, Some(_)) => ", also after it was taken out",
        (Some(_), _) => ", also beside small discards",
        _ => "",
    };
    let text = format!("all {} that were written read back as written{more}{again}{miss}", size(f.read * super::measure::SMALL));
    Answer::new(q, Verdict::Pass, text)
}

/// `12 of 1024 pieces of 4 KiB do not show what was written: 10 show the old content, ...`
fn fates(f: &Fates) -> String {
    let mut parts = vec![];
    let mut say = |n: u64, what: &str| {
        if n > 0 {
            parts.push(format!("{n} show {what}"));
        }
    };
    say(f.old, "what was there before");
    say(f.zeros, "zeros");
    say(f.ones, "0xff throughout");
    say(f.garbage, "something that was not written now");
    let mut text = format!("{} of {} pieces of 4 KiB do not show what was written: {}", f.lost(), f.read, parts.join(", "));
    if let Some(&(at, shown)) = f.another.first() {
        let n = f.another.len();
        let comma = if parts.is_empty() { "" } else { ", " };
        text += &format!("{comma}{n} show another place (at byte {at} what was written at {shown})");
    }
    text
}

fn errors(s: &Seen) -> Answer {
    let own = accesses(s);
    let Some(noticed) = s.noticed.text() else { return own };
    let because = format!("{}; {noticed}", own.because);
    // Reads and writes that failed before are of this card; what a file system or the bus met may have another cause.
    if own.verdict != Verdict::Fail && s.noticed.lines(Trouble::Io).is_some() {
        return Answer::new(Question::Errors, Verdict::Fail, because)
            .todo("the system met read or write errors of this card: try another reader and cable; if it stays so, copy off what can be read and replace the card");
    }
    let todo = own.todo.clone().or_else(|| {
        (s.noticed.file_system_errors() > 0)
            .then(|| "let fsck repair the file system, and see whether its count of errors grows".to_string())
    });
    Answer { because, todo, ..own }
}

/// What the check's own reads and writes met.
fn accesses(s: &Seen) -> Answer {
    let (q, m) = (Question::Errors, s.measured);
    let bad = m.unreadable.len() + m.unwritable.len();
    if bad == 0 && m.reads + m.writes == 0 {
        return Answer::new(q, Verdict::NotKnown, m.ended.clone().unwrap_or_else(|| "nothing could be tried".into()));
    }
    if bad == 0 {
        let writes = if m.writes > 0 { format!(" and {} writes", m.writes) } else { String::new() };
        return Answer::new(
            q,
            Verdict::Pass,
            match real_size(s).filter(|_| bounds(s).is_none()) {
                Some(real) => {
                    format!("{} reads{writes} within the first {}, none failed; {} places there", m.reads, as_sold(real), m.places)
                }
                None => format!("{} reads{writes}, none failed; {} places from the first to the last", m.reads, m.places),
            },
        );
    }
    if m.takes_no_writes() {
        let (which, more) = if m.writes == m.refused { ("all", "") } else { ("the last", " more") };
        let text = format!(
            "it takes no{more} writes: {which} {} of {} failed, and none of {} reads: the end of its life, or write-protected",
            m.refused, m.writes, m.reads
        );
        return Answer::new(q, Verdict::Fail, text)
            .todo("copy off what is on it, and look at its lock switch; if it still takes no writes in another reader, replace it");
    }
    let first = m.unreadable.first().or(m.unwritable.first()).copied().unwrap_or(0);
    let text = format!(
        "{} of {} reads and {} of {} writes failed, the first at {}",
        m.unreadable.len(),
        m.reads,
        m.unwritable.len(),
        m.writes,
        Bytes(first)
    );
    if real_size(s).is_some() {
        return Answer::new(q, Verdict::Fail, text);
    }
    Answer::new(q, Verdict::Fail, text).todo("try another reader and cable; if it stays so, copy off what can be read and replace the card")
}

fn health(s: &Seen) -> Answer {
    let q = Question::Health;
    let Some(d) = s.declared else { return Answer::new(q, Verdict::NotKnown, "this target has no registers") };
    if let Some(h) = &d.health {
        let spent = h.pre_eol == Some(PreEol::Urgent) || [h.life_a, h.life_b].contains(&Some(LifeTime::Exceeded));
        let say = |label: &str, v: Option<String>| v.map(|v| format!("{label}: {v}"));
        let parts = [
            say("life time A", h.life_a.map(|l| l.to_string())),
            say("B", h.life_b.map(|l| l.to_string())),
            say("reserve", h.pre_eol.map(|p| p.to_string())),
        ];
        let text = parts.into_iter().flatten().collect::<Vec<_>>().join("; ");
        let told = [h.life_a, h.life_b].iter().any(|l| matches!(l, Some(LifeTime::Used { .. } | LifeTime::Exceeded)));
        let known = told || matches!(h.pre_eol, Some(PreEol::Normal | PreEol::Warning | PreEol::Urgent));
        return match (spent, known) {
            (true, _) => Answer::new(q, Verdict::Fail, text).todo("replace it: by its own count its life is used up"),
            (false, true) => Answer::new(q, Verdict::Pass, text),
            (false, false) => Answer::new(q, Verdict::NotKnown, "the device does not report its life time"),
        };
    }
    if let Some(b) = &d.health_block {
        let doubts = b.doubts.iter().map(|d| format!("; {d}")).collect::<String>();
        let grown = b.grown_bad_blocks.map_or(String::new(), |n| format!(", {n} bad blocks since the factory"));
        return match b.life_left_percent {
            Some(life) if life <= 0.0 => Answer::new(q, Verdict::Fail, format!("{life} % of its life left{grown}{doubts}")),
            Some(life) => Answer::new(q, Verdict::Pass, format!("{life} % of its life left by its own count{grown}{doubts}")),
            None => Answer::new(q, Verdict::NotKnown, format!("its health block gives no life time{grown}{doubts}")),
        };
    }
    let why = match (s.no_health, d.kind) {
        (Some(why), _) => why.to_string(),
        (None, Kind::Sd) => {
            return Answer::new(q, Verdict::NotKnown, "SD cards report no wear by the standard")
                .todo("some industrial cards have a health block: --health");
        }
        (None, Kind::Usb) => "a USB reader hides what the card says of itself; use a slot of its own".into(),
        _ => "this target reports no wear".into(),
    };
    Answer::new(q, Verdict::NotKnown, why)
}

fn troubles(s: &Seen) -> Answer {
    let q = Question::Troubles;
    let Some(d) = s.declared.filter(|d| d.cid.is_some()) else {
        return Answer::new(q, Verdict::NotKnown, "the card's identification (CID) is not shown here");
    };
    let harmful: Vec<String> = d.troubles.iter().filter(|t| t.harmful).map(|t| format!("{} ({})", t.what, t.quirk)).collect();
    let advice: Vec<&str> = d.troubles.iter().filter(|t| t.harmful).map(|t| t.advice.as_str()).collect();
    if harmful.is_empty() {
        return Answer::new(q, Verdict::Pass, "none: the kernel's lists do not name this card");
    }
    // A trouble the kernel works around is no failure of this one card.
    Answer::new(q, Verdict::Pass, format!("listed: {}", harmful.join("; "))).todo(advice.join("; "))
}

fn partitions(s: &Seen) -> Answer {
    let q = Question::Partitions;
    let Some(disk) = s.disk else { return Answer::new(q, Verdict::NotKnown, "the partition table could not be read") };
    if disk.table.is_none() {
        return Answer::new(q, Verdict::Pass, "no partition table: nothing to check");
    }
    let grid = Grid::found(s.findings).unwrap_or_else(|_| Grid::convention(s.size));
    let starts: Vec<String> = disk.parts.iter().map(|p| Bytes(p.start).to_string()).collect();
    let end = real_size(s).unwrap_or(s.size);
    let beyond: Vec<String> = disk
        .parts
        .iter()
        .filter(|p| p.beyond || p.start.saturating_add(p.size) > end)
        .filter_map(|p| p.number)
        .map(|n| n.to_string())
        .collect();
    if !beyond.is_empty() {
        let text = format!("partition {} reaches beyond the end of the card ({})", beyond.join(", "), as_sold(end));
        return Answer::new(q, Verdict::Fail, text).todo("partition the card anew: nandscope layout plan");
    }
    let off: Vec<&String> = disk.parts.iter().zip(&starts).filter(|(p, _)| !grid.on(p.start)).map(|(_, s)| s).collect();
    let at = format!("start at {}", starts.join(" and "));
    if off.is_empty() {
        return Answer::new(q, Verdict::Pass, format!("{at}, on boundaries of {}: fine", Bytes(grid.unit)));
    }
    let text = format!("{at}; not on boundaries of {}, which may cost nothing on this card", Bytes(grid.unit));
    Answer::new(q, Verdict::NotKnown, text).todo("nandscope layout audit gives its cost")
}

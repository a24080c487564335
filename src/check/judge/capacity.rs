//! Is the flash as large as the card reports?

use super::{Seen, missed};
use crate::check::measure::Later;
use crate::check::{Answer, Question, Verdict};
use crate::finding::{Finding, Findings, NO_SIGN, Quantity, percent};
use crate::report::terminal::size;
use crate::saved::counterfeit::{Counterfeit, OR_FAILING, genuine};
use crate::units::{Bytes, MIB, as_sold};

/// How a card shows that it has fewer bytes than it reports, and how many.
enum Short {
    /// What `capacity` found.
    Found(Counterfeit),
    /// Nothing beyond can be read.
    Unreadable(u64),
    /// Addresses repeat after so many, behind a front that shows nowhere else.
    Repeats(u64, (u64, u64)),
    /// A cache hid it for a while.
    Hidden(u64),
}

fn short(s: &Seen) -> Option<Short> {
    let m = s.measured;
    // Writes that fail everywhere show no border.
    let found = Counterfeit::of(s.findings, s.size).filter(|c| !(c.failing && m.takes_no_writes())).map(Short::Found);
    let unreadable = || m.unreadable_end().map(Short::Unreadable);
    let repeats = || Some(Short::Repeats(m.repeats_after()?, m.repeating()?));
    found.or_else(unreadable).or_else(repeats).or_else(|| m.later.end().map(Short::Hidden))
}

/// Bytes that are there, where the card has fewer than it reports.
pub fn real_size(s: &Seen) -> Option<u64> {
    short(s).map(|short| match short {
        Short::Found(c) => c.holds,
        Short::Unreadable(real) | Short::Repeats(_, (real, _)) | Short::Hidden(real) => real,
    })
}

/// The findings, without a size that this check has refuted since: who reads them alone takes a counterfeit for genuine.
pub fn agreed(mut findings: Findings, size: u64, answers: &[Answer]) -> Findings {
    let refuted = answers.iter().find(|a| a.question == Question::Capacity && a.verdict != Verdict::Pass);
    if let Some(a) = refuted.filter(|_| genuine(&findings, size) == Some(true)) {
        let of_size = findings.0.iter_mut().filter(|f| f.quantity == Quantity::Capacity);
        of_size.for_each(|f| *f = f.clone().withdrawn(a.because.clone()));
    }
    findings
}

/// What a card is that has fewer bytes than it reports: where all beyond them fails it may be a genuine one that died.
pub fn word(s: &Seen) -> &'static str {
    match short(s) {
        Some(Short::Found(c)) => c.word(),
        Some(Short::Unreadable(_)) => OR_FAILING,
        _ => "counterfeit",
    }
}

/// The least and the most that is there, where the border was not found.
pub(super) fn bounds(s: &Seen) -> Option<(u64, u64)> {
    match short(s)? {
        Short::Found(c) => (c.holds != c.at_most).then_some((c.holds, c.at_most)),
        Short::Hidden(_) => s.measured.later.border(),
        Short::Repeats(_, bounds) => Some(bounds),
        Short::Unreadable(_) => None,
    }
}

/// What is there, in words, where that is less than the card reports.
pub fn holds(s: &Seen) -> Option<String> {
    let real = real_size(s)?;
    Some(match bounds(s) {
        Some((least, most)) => format!("between {} and {}", as_sold(least), as_sold(most)),
        None => format!("about {}", as_sold(real)),
    })
}

/// How a cache in front of missing flash showed itself.
fn hidden(later: &Later, real: u64) -> String {
    let after = if later.reinserted { "when it was put in again".into() } else { format!("after {} more was written", size(later.after)) };
    if let Some((at, place)) = later.shown.first() {
        let n = later.shown.len() - 1;
        return format!(
            "what was written at byte {at} read back at once; {after} it shows what was written at byte {place}, as {n} more places show others: addresses repeat after {}, behind a cache",
            Bytes(real)
        );
    }
    let first = later.lost.iter().min().copied().unwrap_or(real);
    let (n, more) = (later.lost.len() - 1, later.kept.len());
    format!(
        "what was written at byte {first} read back at once and was gone {after}, and at {n} places beyond it; {more} places before it are kept: a cache in front of missing flash"
    )
}

/// A card with fewer bytes than it reports, and what to do about it.
fn too_small(s: &Seen, short: &Short) -> Answer {
    let (reports, back) = (as_sold(s.size), "give the card back");
    let text = match short {
        Short::Found(_) => {
            let found = s.findings.get(Quantity::Capacity);
            let told = found.iter().flat_map(|f| &f.evidence).filter(|e| !e.starts_with("the card reports"));
            let seen: String = told.map(|e| format!("; {e}")).collect();
            format!("reports {reports}, holds {}{seen}", holds(s).unwrap_or_default())
        }
        Short::Unreadable(real) => format!("cannot be read beyond about {} of {reports}: counterfeit or failing", as_sold(*real)),
        Short::Hidden(real) => hidden(&s.measured.later, *real),
        Short::Repeats(period, _) => {
            let (at, place) = s.measured.repeats[0];
            let more = match s.measured.repeats.len() - 1 {
                0 => String::new(),
                n => format!(", and at {n} more places others"),
            };
            format!(
                "reports {reports}, and addresses repeat after {}: at byte {at}, where nothing was written, it shows what was written at byte {place}{more}",
                Bytes(*period)
            )
        }
    };
    let todo = match (short, bounds(s), real_size(s)) {
        (Short::Repeats(..), ..) => format!("{back}; data written behind the front that is kept overwrites earlier data"),
        (_, None, Some(real)) => format!("{back}; data written beyond {} is lost or overwrites earlier data", as_sold(real)),
        _ => format!("{back}; data written beyond the end of its flash is lost or overwrites earlier data"),
    };
    Answer::new(Question::Capacity, Verdict::Fail, text).todo(todo)
}

pub(super) fn capacity(s: &Seen) -> Answer {
    let q = Question::Capacity;
    if let Some(short) = short(s) {
        return too_small(s, &short);
    }
    let later = &s.measured.later;
    if !later.lost.is_empty() {
        let n = later.read();
        if later.reinserted && later.lost.len() == n {
            return Answer::new(q, Verdict::NotKnown, "none of the places that were written was kept when it was taken out");
        }
        let lost = later.lost.len();
        let text = format!("{lost} of {n} places that read back at once did not at the end: missing flash behind a cache, or bad flash");
        let todo = format!("a longer stretch decides: nandscope check {} --cache 2GiB --time 20m", s.with_writes);
        return Answer::new(q, Verdict::NotKnown, text).todo(todo);
    }
    // What kept its places only at once may keep them in a cache, and elsewhere it keeps nothing.
    let lost = s.measured.fates.lost();
    if lost > 0 && later.read() == 0 && genuine(s.findings, s.size) == Some(true) {
        let text = format!("its places read back at once and were not read again, and {lost} pieces written elsewhere are lost");
        let todo = format!("a longer test decides: nandscope check {} --time 15m", s.with_writes);
        return Answer::new(q, Verdict::NotKnown, text).todo(todo);
    }
    let found = s.findings.get(Quantity::Capacity);
    match found {
        Some(Finding { evidence, confidence, .. }) if genuine(s.findings, s.size) == Some(true) => {
            let seen = evidence.first().map_or(String::new(), |e| format!(": {e}"));
            let places = s.measured.later.kept.len() as u64;
            let miss = if places > 0 {
                format!("; a tenth of the card without flash is missed in {}", missed(places, 10.0))
            } else {
                String::new()
            };
            let cache = if s.measured.later.reinserted || s.measured.later.after == 0 {
                String::new()
            } else {
                // Whole MiB: as much was written at least.
                let after = s.measured.later.after;
                format!("; a cache of more than {} would hide it", size(if after > MIB { after / MIB * MIB } else { after }))
            };
            Answer::new(q, Verdict::Pass, format!("{} ({:.0} %){seen}{miss}{cache}", as_sold(s.size), percent(*confidence)))
        }
        _ if s.measured.takes_no_writes() => Answer::new(q, Verdict::NotKnown, "only writes show what a card keeps, and it takes none"),
        Some(f) => {
            let why = f.reason.as_deref().unwrap_or("the test gave no answer");
            let open = s.measured.unreadable.is_empty() && s.broken.is_none() && !why.starts_with(NO_SIGN);
            let sign = if open { "no sign of less than it reports, but the test did not finish: " } else { "" };
            // The command stands below.
            let (why, command) = why.split_once("; run: ").map_or((why, None), |(why, command)| (why, Some(command.to_string())));
            let command = command.unwrap_or_else(|| format!("nandscope run capacity {}", s.with_writes));
            Answer::new(q, Verdict::NotKnown, format!("{sign}{why}")).todo(format!("test the capacity alone: {command}"))
        }
        None => Answer::new(q, Verdict::NotKnown, "only writing and reading back can decide; all of the card can be addressed".to_string())
            .todo(format!("test it with writes, which are put back afterwards: nandscope check {}", s.with_writes)),
    }
}

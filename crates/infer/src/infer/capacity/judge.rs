//! What the places of a run say of the size.

use super::*;
use crate::finding::{LOSES, NO_SIGN, NOT_TESTED, Quantity, STOPPED, TARGET};
use crate::samples::Ended;
use crate::units::{Bytes, GIB, about, gcd, three};

/// What reads alone say of the size.
fn judge_reads(run: &Run) -> Finding {
    const Q: Quantity = Quantity::Capacity;
    let number = |key: &str| run.setting(key).unwrap_or(0);
    let (offset, reports) = (number("offset"), number("offset") + number("size"));
    let bad = run.samples.iter().filter(|s| s.role == UNREAD).count();
    let Some((good, first)) = read_border(run) else {
        let why = if bad > 0 {
            "some places cannot be read, and others beyond them can: bad flash"
        } else {
            "only writes show what a card keeps"
        };
        return Finding::undecided(Q, why);
    };
    let real = offset + (first / MIB * MIB).max(good + PLACE);
    let gib = |b: u64| three(b as f64 / GIB as f64);
    let text = format!("the card cannot be read beyond about {} GiB of {} GiB: counterfeit or failing", gib(real), gib(reports));
    let mut f = Finding::decided(Q, real as f64, if bad > 2 { 0.95 } else { 0.7 }).evidence(text);
    f.interval = Some([(offset + good) as f64, (offset + first) as f64]);
    f
}

/// What the run says of the size.
pub(super) fn judge(run: &Run) -> Finding {
    const Q: Quantity = Quantity::Capacity;
    let count = |role: u8| run.samples.iter().filter(|s| s.role == role).count();
    if run.cells.is_empty() {
        return Finding::undecided(Q, format!("{} is too small for the search", run.stretch()));
    }
    if run.cells[0].set.contains_key("reads") {
        return judge_reads(run);
    }
    let seen = last_seen(run);
    let kept = seen.values().filter(|role| **role == KEPT).count();
    let failing = count(FAILS) + count(UNREAD);
    // One place that was kept says nothing where hardly anything was written after it.
    let hardly = run.ended != Ended::Complete && kept <= 1 && stretch(run).is_none_or(|s| s.1 < CHUNK);
    if (if hardly { 0 } else { kept }) + count(LOST) + count(ANOTHER) + failing == 0 {
        let why = if keeps_nothing(run) { "this target keeps no content".to_string() } else { not_tested(run) };
        return Finding::undecided(Q, why);
    }
    if let Some(old) = run.samples.iter().find(|s| s.role == STALE) {
        let text = format!("what was written last, at byte {}, did not come back; what was written there first did", old.at);
        return Finding::undecided(Q, format!("{LOSES}: {STOPPED}")).evidence(text);
    }
    let number = |key: &str| run.setting(key).unwrap_or(0);
    let (offset, size, end) = (number("offset"), number("size"), number("end"));
    let reports = format!("{} GiB", three((offset + size) as f64 / GIB as f64));
    let says = format!("the card reports {reports}: it is a counterfeit");
    let aliases = aliases(run);
    if let Some((shows, place)) = irregular(run) {
        let text = format!("what was written at byte {place} came back at byte {shows}");
        let why = format!("{LOSES}: some addresses show what was written to others, without one rule for all of them");
        return Finding::undecided(Q, why).evidence(text);
    }
    if front_lost(run) && kept == 0 && aliases.is_empty() {
        return front(run);
    }
    let within = border(run).filter(|_| period(run).is_some());
    if let ([(shows, place), ..], None) = (&aliases[..], &within) {
        let real = aliases.iter().map(|(a, b)| a.abs_diff(*b)).fold(0, gcd);
        let text = format!("what was written at byte {place} came back at byte {shows}");
        // Places far apart may lie whole periods apart; the stretch shows at the first one.
        let end = period(run).map(|w| (w, inside(run, w)));
        let real = end.map_or(real, |e| e.0);
        // No flash is that small: what is written is shown elsewhere, by this much beside its place.
        if real < MIB {
            let why = format!("{LOSES}: what is written to one address is shown at another, {} away", Bytes(real));
            return Finding::undecided(Q, why).evidence(text);
        }
        if end.is_none_or(|e| e.1.is_some()) {
            // Addresses repeat, and the first round was not tried to its end, or they do not from the first one on.
            let came = searched(run).unwrap_or(PLACE);
            let (why, [least, most]) = match came >= real {
                true => {
                    ("a counterfeit: addresses repeat behind a front that was not searched for its end".into(), behind(run, &aliases, real))
                }
                false => {
                    let why =
                        format!("a counterfeit, of {} or a part of it: the search for where it wraps around was cut short", Bytes(real));
                    (why, [came, real])
                }
            };
            let mut f = Finding::at_least(Q, least as f64, 0.95, why).evidence(text).evidence(says);
            f.interval = Some([least as f64, most as f64]);
            return f;
        }
        let trust = if aliases.len() > 1 { 0.98 } else { 0.95 };
        return Finding::decided(Q, real as f64, trust).evidence(text).evidence(says);
    }
    if let Some(Border { kept, lost, places }) = within.or_else(|| border(run)) {
        let again = aliases.first().filter(|_| period(run).is_some());
        let real = offset + (lost / MIB * MIB).max(kept + PLACE);
        let text = match (count(UNREAD), failing > count(LOST)) {
            (unread, true) if 2 * unread > failing => {
                let about = three(real as f64 / GIB as f64);
                format!("the card cannot be read beyond about {about} GiB of {reports}: counterfeit or failing")
            }
            (_, fails) => {
                let failing = if fails { "fails" } else { "is lost" };
                let more = places[1] - 1;
                format!("what was written at byte {lost} {failing}, and at {more} places beyond it; at byte {kept} it is kept")
            }
        };
        let trust = if places[1] > 2 { 0.95 } else { 0.7 };
        let mut f = match lost - kept <= CLOSE {
            true => Finding::decided(Q, real as f64, trust),
            false => {
                let late = looks(run, LATER).any(|s| s.role == LOST);
                let why = if late {
                    "places were kept until more was written: a cache hides the border"
                } else {
                    "the search for the border was cut short"
                };
                Finding::at_least(Q, (offset + kept + PLACE) as f64, trust, why)
            }
        };
        let says = if failing > count(LOST) { format!("{says} or failing") } else { says };
        f = f.evidence(text);
        if let (Some((shows, place)), Some(w)) = (again, period(run)) {
            f = f.evidence(format!("what was written at byte {place} came back at byte {shows}: addresses repeat after {}", Bytes(w)));
        }
        f = f.evidence(says);
        f.interval = Some([(offset + kept + PLACE) as f64, (offset + lost) as f64]);
        return f;
    }
    if front_lost(run) {
        return front(run);
    }
    let lost: Vec<u64> = seen.iter().filter(|(_, role)| **role != KEPT).map(|(at, _)| *at).collect();
    if let Some(at) = lost.first() {
        let why = format!("{LOSES}: some places were lost, and others beyond them were not; bad flash rather than a counterfeit");
        let more = format!("nor at {} more of {} places", lost.len() - 1, seen.len());
        return Finding::undecided(Q, why).evidence(format!("what was written at byte {at} did not come back, {more}"));
    }
    let stamps: u64 = run.samples.iter().filter(|s| s.role == STAMP).map(|s| s.len).sum();
    let written = stamps + looks(run, LATER).next().and(run.setting(SINCE)).unwrap_or(0);
    let looks = count(NOTHING);
    let text = format!("{} places were kept, and {looks} sectors elsewhere show none of them", kept);
    // The search that was cut short left part of the region out.
    let tried = number("start") == 0 && end + number("sector") >= size;
    let f = match tried && run.ended == Ended::Complete {
        true => Finding::decided(Q, (offset + size) as f64, 0.95),
        false => {
            let end = match (&run.ended, tried) {
                (Ended::Failed(why), _) => format!("it ended early: {why}"),
                (_, false) => format!("{} ends there", run.stretch()),
                (Ended::Interrupted, true) => "it was interrupted there".into(),
                (Ended::Budget(what), true) if what != "time" => "the writes allowed were used up there".into(),
                (_, true) => "the time allowed ended there".into(),
            };
            let why = format!("{NO_SIGN} of less than the {reports} it reports; {} places checked; {end}", kept + looks);
            // What lies in front of the region was not tried: addresses may repeat there.
            let front = offset + number("start");
            let bound = if front == 0 { last_kept(run) } else { last_kept(run).saturating_sub(number("start")) };
            Finding::at_least(Q, bound as f64, 0.9, why)
        }
    };
    // A cache that only serves what lies past the flash never sees the stretch.
    let past = upper(run).map_or(0, |(at, len)| {
        let range = at..at + len;
        run.samples.iter().filter(|s| s.role == STAMP && range.contains(&s.at)).map(|s| s.len).sum()
    });
    let more = if past < written { format!(", or of more than {} for what lies past the flash", about(past)) } else { String::new() };
    f.evidence(text).caveat(format!("a cache of more than {}{more} would hide lost writes", about(written))).caveat(format!(
        "addresses that repeat only beyond the first {} would not show; `nandscope check` looks for them",
        stretch(run).map_or(String::new(), |(from, len)| Bytes(from + len).to_string())
    ))
}

/// The least and the most that is there where the stretch shows nowhere, although it would if all addresses repeated: what was kept in front
/// of the lowest place that shows at another, and what that place repeats after.
fn behind(run: &Run, aliases: &[(u64, u64)], apart: u64) -> [u64; 2] {
    let offset = run.setting("offset").unwrap_or(0);
    let lowest = aliases.iter().map(|(a, b)| *a.min(b)).min().unwrap_or(0);
    let kept = places_kept(run).into_iter().map(|at| at + PLACE).chain(stretch(run).map(|(from, len)| from + len));
    let least = kept.filter(|end| *end <= lowest).max().unwrap_or(PLACE);
    [offset + least, offset + lowest + apart]
}

/// What was written first is gone.
fn front(run: &Run) -> Finding {
    let at = run.cells.first().map_or(0, |c| c.bytes("from"));
    let others = last_seen(run).values().filter(|role| **role != KEPT).count();
    let more = if others > 0 { format!(", nor at {others} places beyond it") } else { String::new() };
    let why = format!("{LOSES}: what was written near its front was lost");
    Finding::undecided(Quantity::Capacity, why).evidence(format!("what was written at byte {at} did not come back{more}"))
}

/// Nothing was read back: says so, and about how long it would take.
fn not_tested(run: &Run) -> String {
    let mean = |role: u8, len: u64| {
        let took: Vec<f64> = run.samples.iter().filter(|s| s.role == role && s.len == len).map(|s| s.took.secs()).collect();
        (!took.is_empty()).then(|| took.iter().sum::<f64>() / took.len() as f64)
    };
    let Some(cell) = run.cells.first() else { return format!("not tested: {} is too small", run.stretch()) };
    let chunks = (cell.bytes("stretch") / CHUNK).max(1) as f64;
    // Written, and put back; a look costs about as much as the shortest write of the run.
    let wrote = mean(STAMP, PLACE).or(mean(STAMP, CHUNK)).map(|place| {
        let chunk = mean(STAMP, CHUNK).unwrap_or(place);
        let places = if place * FEW as f64 > ENOUGH.secs() { FEW as u64 } else { PLACES };
        2.0 * (places as f64 * place + chunks * chunk) + LOOKS as f64 * place.min(0.005)
    });
    let about = wrote.map_or(String::new(), |s| format!(" (about {:.0} s)", (s / 10.0).ceil() * 10.0));
    let why = match &run.ended {
        Ended::Complete => "nothing was read back",
        Ended::Budget(what) if what == "time" => "time ran out",
        Ended::Budget(_) => "the writes allowed were used up",
        Ended::Interrupted => "the run was interrupted",
        Ended::Failed(_) => "the run failed",
    };
    format!("{NOT_TESTED}, {why}; run: nandscope run capacity {TARGET}{about}")
}

/// End of the last place that was kept and is not shown elsewhere.
fn last_kept(run: &Run) -> u64 {
    let kept = run.samples.iter().filter(|s| s.role == KEPT).map(|s| s.at + s.len).max().unwrap_or(0);
    let looked = looks(run, "look").filter(|s| s.role == NOTHING).map(|s| s.at + s.len).max().unwrap_or(0);
    if run.ended == Ended::Complete { kept } else { kept.min(looked) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{Fill, Op};
    use crate::samples::{Cell, Sample};

    const SIZE: u64 = 1000 * MIB;

    /// The search on a card of 1000 MiB, with a stretch from 1 to 5 MiB, and a second cell.
    fn run(second: &str) -> Run {
        let mut run = Run::new("capacity");
        let size = SIZE as i64;
        run.setting =
            [("offset", 0), ("size", size), ("start", 0), ("end", size), ("sector", 512)].map(|(key, n)| (key.to_string(), n)).into();
        let first = [("from", MIB as i64), ("stretch", 4 * MIB as i64)];
        add(&mut run, Cell::new("all over", &first));
        add(&mut run, Cell::new(second, &[(second, 1)]));
        run
    }

    fn add(run: &mut Run, cell: Cell) {
        run.cells.push(Cell { id: run.cells.len() as _, ..cell });
    }

    fn sample(cell: usize, role: u8, mib: u64) -> Sample {
        let op = if role == STAMP { Op::Write(Fill::Zeros) } else { Op::Read };
        Sample { cell: cell as _, trial: 0, role, op, at: mib * MIB, len: PLACE, start: Nanos(0), took: Nanos(1000) }
    }

    /// Of the places at 100, 200 ... MiB, kept at first, some as they were seen at the end: other experiments wrote over the rest.
    fn seen(later: &[(u64, u8)]) -> Finding {
        let mut run = run("rest");
        run.extend((1..10).flat_map(|i| [STAMP, KEPT].map(|role| sample(1, role, 100 * i))));
        for &(mib, role) in later {
            run.extend([sample(run.cells.len(), role, mib)]);
            add(&mut run, Cell::new("once more", &[(LATER, (mib * MIB) as i64)]));
        }
        judge(&run)
    }

    #[test]
    fn a_place_that_was_not_read_again_tells_nothing_where_others_were_lost() {
        let f = seen(&[(200, KEPT), (400, LOST), (500, LOST), (900, LOST)]);
        let bounds = [(200 * MIB + PLACE) as f64, (400 * MIB) as f64];
        assert!(f.value.is_none() && f.interval == Some(bounds) && f.confidence >= 0.9, "{f:?}");
        // With one kept beyond those lost there is no border.
        let f = seen(&[(200, KEPT), (400, LOST), (500, LOST), (900, KEPT)]);
        assert!(f.interval.is_none() && f.reason.as_deref().is_some_and(|why| why.starts_with(LOSES)), "{f:?}");
        assert_eq!(seen(&[(200, KEPT), (900, KEPT)]).number(), Some(SIZE as f64));
    }

    /// The stretch shows nowhere, and what was written at 900 MiB shows at 620 MiB.
    #[test]
    fn addresses_that_repeat_behind_a_front_give_bounds() {
        let mut run = run("look");
        run.extend((5..995).step_by(4).map(|mib| sample(1, NOTHING, mib)));
        run.extend([(KEPT, 300), (ANOTHER, 900), (SHOWN, 620)].map(|(role, mib)| sample(0, role, mib)));
        let f = judge(&run);
        assert_eq!(f.interval, Some([(300 * MIB + PLACE) as f64, (900 * MIB) as f64]), "{f:?}");
    }
}

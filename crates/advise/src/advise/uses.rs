//! What a card is good for. Every verdict rests on a named measurement; where that is missing it says "not measured".

use crate::finding::{BY_PAGE, Finding, Quantity, percent};
use crate::samples::Ended;
use crate::saved::Report;
use crate::saved::accesses::Accesses;
use crate::saved::counterfeit::loses;
use crate::units::{Bytes, three};
use std::collections::BTreeSet;

/// Uses whose verdict rests on times of accesses, not on findings with a confidence of their own.
const BY_ACCESSES: [&str; 2] = ["camera or video", "boot or read-mostly"];

/// Below this a finding carries no verdict.
const SURE: f64 = 0.75;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    Good,
    WithCare,
    Poor,
    NotMeasured,
}

impl Verdict {
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Good => "good",
            Verdict::WithCare => "with care",
            Verdict::Poor => "poor",
            Verdict::NotMeasured => "not measured",
        }
    }
}

/// A use, what is to be said of it, and the measurement that says so.
#[derive(Clone, Debug, PartialEq)]
pub struct Use {
    pub name: &'static str,
    pub verdict: Verdict,
    pub why: String,
    /// The measurement, with its confidence or the number of accesses.
    pub rests_on: String,
}

pub fn uses(r: &Report) -> Vec<Use> {
    let accesses = r.accesses();
    let mut all = vec![root(r), logger(r, accesses), camera(r, accesses), swap(r), boot(accesses)];
    // One experiment alone says nothing of the rest of the card, not even that its flash is there.
    if experiments(r) < 2 {
        for u in all.iter_mut().filter(|u| u.verdict == Verdict::Good && BY_ACCESSES.contains(&u.name)) {
            u.verdict = Verdict::NotMeasured;
            u.why = format!("{}; that alone is no verdict, and no other experiment ran (nandscope probe runs them)", u.why);
        }
    }
    // What failed meanwhile is good for nothing before that is looked into, whatever was measured until then.
    if let Some(why) = failed(r) {
        for u in all.iter_mut().filter(|u| [Verdict::Good, Verdict::WithCare].contains(&u.verdict)) {
            (u.verdict, u.why) = (Verdict::NotMeasured, format!("the card failed while it was measured ({why})"));
        }
    }
    // What cannot be read back is lost, whatever it was written for.
    if accesses.is_some_and(|a| a.failed > 0) || !r.unreadable.is_empty() {
        for u in all.iter_mut().filter(|u| [Verdict::Good, Verdict::WithCare].contains(&u.verdict)) {
            (u.verdict, u.why) = (Verdict::Poor, "reads failed; a card that fails loses what it is given".into());
        }
    }
    if let Some(why) = loses(&r.findings) {
        for u in &mut all {
            (u.verdict, u.why, u.rests_on) = (Verdict::Poor, why.into(), Quantity::Capacity.title().into());
        }
    }
    // What is written beyond the flash is lost, and what is read there is not what was written.
    if let (Some(found), Some(c)) = (r.findings.get(Quantity::Capacity), r.is_counterfeit()) {
        for u in &mut all {
            u.verdict = Verdict::Poor;
            u.why = format!("{}: it {}; what is written beyond that is lost", c.word(), c.sizes());
            u.rests_on = format!("{} ({:.0} %)", Quantity::Capacity.title(), percent(found.confidence));
        }
    }
    all
}

/// What ended a run of a card that failed; of a report without samples by its warnings.
fn failed(r: &Report) -> Option<&str> {
    let of_run = r.runs.iter().find_map(|run| if let Ended::Failed(why) = &run.ended { Some(why.as_str()) } else { None });
    of_run.or_else(|| r.warnings.iter().find_map(|w| w.split_once(" failed: ").map(|told| told.1)))
}

/// Experiments that anything was concluded from.
fn experiments(r: &Report) -> usize {
    r.findings.0.iter().flat_map(|f| &f.from).collect::<BTreeSet<_>>().len()
}

/// A decided value or bound that is sure enough, with its text.
fn known(r: &Report, q: Quantity) -> Option<(f64, String)> {
    let f = r.findings.get(q).filter(|f| f.confidence >= SURE)?;
    let percent = percent(f.confidence);
    match (f.number(), f.at_least) {
        (Some(v), _) => Some((v, format!("{}: {} ({percent} %)", q.title(), q.show(v)))),
        (None, Some(b)) => Some((b.0, format!("{}: at least {} ({percent} %)", q.title(), q.show(b.0)))),
        (None, None) => None,
    }
}

/// AUs that stay open, or a bound on them. A card that is known to map pages has no limit, however sure writes were of none.
fn open(r: &Report, q: Quantity) -> Option<(f64, String)> {
    let by_page = || known(r, Quantity::Mapping).filter(|m| m.0 == BY_PAGE);
    known(r, q).or_else(|| r.findings.get(q)?.at_least.zip(by_page()).map(|(bound, (_, rests_on))| (bound.0, rests_on)))
}

fn missing(r: &Report, name: &'static str, q: Quantity, needs: &str) -> Use {
    let why = match r.findings.get(q) {
        Some(Finding { value: None, at_least: None, reason: Some(reason), .. }) => format!("undecided, because {reason}"),
        Some(f) => format!("only {:.0} % sure, too little for a verdict", percent(f.confidence)),
        None => format!("no run measured it{}", also(r, needs)),
    };
    Use { name, verdict: Verdict::NotMeasured, why, rests_on: q.title().into() }
}

/// What a report without its samples does not say.
fn left_out(name: &'static str, rests_on: &str) -> Use {
    let why = "this report was saved without the times of single accesses".into();
    Use { name, verdict: Verdict::NotMeasured, why, rests_on: rests_on.into() }
}

/// What writes would show was not left out for want of them where they were allowed.
fn also(r: &Report, needs: &str) -> String {
    if r.settings.write && needs == WRITES { String::new() } else { format!("; {needs}") }
}

const WRITES: &str = "it needs writes (--write --consent ID)";

fn root(r: &Report) -> Use {
    let name = "root filesystem";
    let q = Quantity::OpenAusRandom;
    let Some((n, rests_on)) = open(r, q) else { return missing(r, name, q, WRITES) };
    let cost = known(r, Quantity::CloseCostMs);
    let each = cost.as_ref().map_or(String::new(), |c| format!(", each switch beyond them costs {} ms", three(c.0)));
    let (verdict, why) = match n {
        n if n >= 4.0 => (
            Verdict::Good,
            format!(
                "takes scattered writes in {n:.0} erase blocks at a time; a journal, its data, inodes and directories stay inside that"
            ),
        ),
        n if n >= 1.0 => (
            Verdict::WithCare,
            format!(
                "takes scattered writes in only {n:.0} erase blocks at a time{each}; prefer a log-structured filesystem or a read-mostly root"
            ),
        ),
        _ if cost.as_ref().is_some_and(|c| c.0 < 5.0) => (
            Verdict::WithCare,
            format!("every scattered write makes it finish an erase block, which costs only {} ms here", three(cost.map_or(0.0, |c| c.0))),
        ),
        _ => (Verdict::Poor, format!("every scattered write makes it finish an erase block{each}")),
    };
    Use { name, verdict, why, rests_on }
}

fn logger(r: &Report, accesses: Option<Accesses>) -> Use {
    let name = "data logger";
    let q = Quantity::OpenAusLinear;
    let Some((n, mut rests_on)) = open(r, q) else { return missing(r, name, q, WRITES) };
    let zone = known(r, Quantity::FatZone).filter(|z| z.0 > 0.0);
    let mut why = match (&zone, n) {
        (_, n) if n >= 2.0 => format!("{n:.0} files can grow at a time: the log and the file table"),
        (Some(_), _) => "the file table lies in the FAT zone, so one open erase block is enough for the log".to_string(),
        (None, n) if n >= 1.0 => {
            "only one erase block can be written at a time; preallocate the file so that the table is not updated with each record".into()
        }
        _ => "every write makes it finish an erase block; collect as much as you can".into(),
    };
    let verdict = match n {
        n if n >= 2.0 || zone.is_some() => Verdict::Good,
        n if n >= 1.0 => Verdict::WithCare,
        _ => Verdict::Poor,
    };
    if let Some(z) = zone {
        rests_on = format!("{rests_on}; {}", z.1);
    }
    let worst = r.findings.0.iter().find(|f| f.quantity.key() == "worst_write_ms" && f.confidence >= SURE);
    let stall = worst
        .and_then(|f| Some((f.number()?, format!("longest write: {}", f.quantity.show(f.number()?)))))
        .or(accesses.and_then(|a| a.longest_small_write_ns).map(|t| (t.millis(), format!("longest write of 64 KiB or less: {t}"))))
        .or(accesses.and_then(|_| known(r, Quantity::CloseCostMs)));
    if let Some((ms, text)) = stall {
        why = format!("{why}; for 100 kB/s without a gap keep {:.0} kB of buffer for a wait of {} ms", (ms * 0.1).ceil(), three(ms));
        rests_on = format!("{rests_on}; {text}");
    }
    Use { name, verdict, why, rests_on }
}

fn camera(r: &Report, accesses: Option<Accesses>) -> Use {
    let name = "camera or video";
    let rests_on = "write-unit, its largest writes";
    let Some(accesses) = accesses else { return left_out(name, rests_on) };
    let Some(w) = accesses.sequential.filter(|w| w.bytes >= 64 << 10) else {
        let why = format!("no run wrote large pieces sequentially{}", also(r, WRITES));
        return Use { name, verdict: Verdict::NotMeasured, why, rests_on: rests_on.into() };
    };
    let rate = w.bytes_per_second / 1e6;
    let (verdict, fits) = match rate {
        x if x >= 30.0 => (Verdict::Good, "enough for what class V30 asks"),
        x if x >= 10.0 => (Verdict::Good, "enough for what class 10 asks"),
        x if x >= 2.0 => (Verdict::WithCare, "enough for photos, not for what class 10 asks"),
        _ => (Verdict::Poor, "below what class 2 asks"),
    };
    let why = format!("wrote {} MB/s sequentially, {fits}, on this host and in a short run; a longer one may be slower", three(rate));
    let rests_on = format!("write-unit: {} sequential writes of {}, the longest took {}", w.count, Bytes(w.bytes), w.longest_ns);
    Use { name, verdict, why, rests_on }
}

fn swap(r: &Report) -> Use {
    let name = "swap";
    let q = Quantity::OpenAusRandom;
    let Some((n, mut rests_on)) = open(r, q) else { return missing(r, name, q, WRITES) };
    let unit = known(r, Quantity::WriteUnit);
    let times = unit.as_ref().map_or(1.0, |u| (u.0 / 4096.0).max(1.0));
    let waste = if times > 1.0 { format!("; a page of 4 KiB costs as much as {}", Bytes((times * 4096.0) as u64)) } else { String::new() };
    if let Some(u) = unit {
        rests_on = format!("{rests_on}; {}", u.1);
    }
    let (verdict, why) = match n {
        n if n >= 4.0 && times <= 2.0 => (Verdict::Good, format!("takes scattered writes in {n:.0} erase blocks at a time{waste}")),
        n if n >= 2.0 => (Verdict::WithCare, format!("takes scattered writes in {n:.0} erase blocks at a time{waste}; keep swapping rare")),
        n => (Verdict::Poor, format!("takes scattered writes in {n:.0} erase blocks at a time{waste}")),
    };
    Use { name, verdict, why, rests_on }
}

/// A third and a tenth of the 1500 random reads of 4 KiB a second that cards of class A1 have at least (SD Physical Layer Specification 5.1). A probe
/// reads all over the card, one read at a time.
const QUICK: f64 = 500.0;
const SLOW: f64 = 150.0;

fn boot(accesses: Option<Accesses>) -> Use {
    let name = "boot or read-mostly";
    let Some(a) = accesses else { return left_out(name, "time of small reads") };
    let (t, faults) = (a.small_read_us, a.failed);
    if a.small_reads < 20 {
        return Use { name, verdict: Verdict::NotMeasured, why: "too few reads were made".into(), rests_on: "time of small reads".into() };
    }
    let rests_on = format!("{} small reads, median {} µs, {faults} failed", a.small_reads, three(t));
    let rate = 1e6 / t.max(1.0);
    let (verdict, slower) = match rate {
        r if r >= QUICK => (Verdict::Good, ""),
        r if r >= SLOW => (Verdict::WithCare, ", fewer than a third of what class A1 has: programs start slowly"),
        _ => (Verdict::Poor, ", less than a tenth of what class A1 has"),
    };
    match faults {
        0 => Use { name, verdict, why: format!("about {rate:.0} small reads a second{slower}; nothing needs to be written"), rests_on },
        n => Use { name, verdict: Verdict::Poor, why: format!("{n} accesses failed; a card that fails is no card to boot from"), rests_on },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Op;
    use crate::saved::accesses::Written;
    use crate::saved::bare as report;
    use crate::units::Nanos;

    fn verdict(r: &Report, name: &str) -> Verdict {
        uses(r).into_iter().find(|u| u.name == name).unwrap().verdict
    }

    #[test]
    fn nothing_measured_is_said_so() {
        let r = report(vec![]);
        assert!(uses(&r).iter().all(|u| u.verdict == Verdict::NotMeasured && !u.rests_on.is_empty()));
        let shaky = report(vec![Finding::decided(Quantity::OpenAusRandom, 12.0, 0.6)]);
        assert_eq!(verdict(&shaky, "root filesystem"), Verdict::NotMeasured);
    }

    #[test]
    fn a_card_that_failed_is_good_for_nothing_yet() {
        let mut r =
            report(vec![Finding::decided(Quantity::OpenAusRandom, 20.0, 0.95), Finding::decided(Quantity::OpenAusLinear, 20.0, 0.95)]);
        assert_eq!(verdict(&r, "root filesystem"), Verdict::Good);
        r.warnings.push("write-unit failed: write of 4096 bytes at 0 failed".into());
        assert!(uses(&r).iter().all(|u| u.verdict == Verdict::NotMeasured && (u.name != "root filesystem" || u.why.contains("failed"))));
    }

    #[test]
    fn a_card_with_failed_reads_is_good_for_nothing() {
        let mut r =
            report(vec![Finding::decided(Quantity::OpenAusRandom, 20.0, 0.95), Finding::decided(Quantity::OpenAusLinear, 20.0, 0.95)]);
        r.accesses = Some(Accesses { failed: 3, small_reads: 100, small_read_us: 300.0, ..Accesses::default() });
        assert!(uses(&r).iter().all(|u| ![Verdict::Good, Verdict::WithCare].contains(&u.verdict)));
        assert_eq!(verdict(&r, "data logger"), Verdict::Poor);
        // Where a report keeps nothing else of it: a place that was to be saved.
        r.accesses = Some(Accesses { small_reads: 100, small_read_us: 300.0, ..Accesses::default() });
        assert_eq!(verdict(&r, "data logger"), Verdict::Good);
        r.unreadable.push([0, 4096]);
        assert_eq!(verdict(&r, "data logger"), Verdict::Poor);
    }

    #[test]
    fn more_open_erase_blocks_are_never_worse() {
        let mut last = Verdict::Poor;
        for n in [0.0, 1.0, 2.0, 5.0, 20.0] {
            let cost = Finding::decided(Quantity::CloseCostMs, 200.0, 0.95);
            let r =
                report(vec![Finding::decided(Quantity::OpenAusRandom, n, 0.95), Finding::decided(Quantity::OpenAusLinear, n, 0.95), cost]);
            for name in ["root filesystem", "data logger", "swap"] {
                assert_ne!(verdict(&r, name), Verdict::NotMeasured);
            }
            assert!(verdict(&r, "root filesystem") <= last, "{n}");
            last = verdict(&r, "root filesystem");
        }
        assert_eq!(last, Verdict::Good);
        // A bound counts as what it is: at least so many.
        let r = report(vec![Finding::at_least(Quantity::OpenAusRandom, 64.0, 0.85, "x")]);
        assert_eq!(verdict(&r, "root filesystem"), Verdict::Good);
        // One that is not sure counts where the card maps pages, and has no limit.
        let bound = Finding::at_least(Quantity::OpenAusRandom, 64.0, 0.65, "x");
        for (mapping, told) in [(1.0, Verdict::NotMeasured), (BY_PAGE, Verdict::Good)] {
            let r = report(vec![bound.clone(), Finding::decided(Quantity::Mapping, mapping, 0.97)]);
            assert_eq!(verdict(&r, "root filesystem"), told);
        }
    }

    #[test]
    fn one_experiment_alone_makes_a_card_good_for_nothing() {
        let found = |q, from: &str| Finding { from: vec![from.into()], ..Finding::decided(q, 32768.0, 0.95) };
        let mut r = report(vec![found(Quantity::WriteUnit, "write-unit")]);
        let fast = Written { bytes: 512 << 10, bytes_per_second: 60e6, count: 5, longest_ns: Nanos(9_000_000) };
        r.accesses = Some(Accesses { sequential: Some(fast), small_reads: 50, small_read_us: 300.0, ..Accesses::default() });
        let camera = uses(&r).into_iter().find(|u| u.name == "camera or video").unwrap();
        assert!(camera.verdict == Verdict::NotMeasured && camera.why.contains("60.0 MB/s") && camera.rests_on.contains("write-unit"));
        assert_eq!(verdict(&r, "boot or read-mostly"), Verdict::NotMeasured);
        r.findings.0.push(found(Quantity::Page, "read-boundary"));
        assert_eq!(["camera or video", "boot or read-mostly"].map(|n| verdict(&r, n)), [Verdict::Good; 2]);
        // That it is too slow needs no others.
        r.findings.0.pop();
        let slow = Written { bytes_per_second: 1e6, ..fast };
        r.accesses = Some(Accesses { sequential: Some(slow), ..Accesses::default() });
        assert_eq!(verdict(&r, "camera or video"), Verdict::Poor);
    }

    #[test]
    fn the_buffer_follows_from_the_wait() {
        let r = report(vec![Finding::decided(Quantity::OpenAusLinear, 3.0, 0.95), Finding::decided(Quantity::CloseCostMs, 191.6, 0.95)]);
        let logger = uses(&r).into_iter().find(|u| u.name == "data logger").unwrap();
        assert!(logger.why.contains("20 kB of buffer"), "{} (G9: 100 kB/s x 191.6 ms = 19 kB)", logger.why);
        // The longest write counts, where writes were measured: 427 ms among merges of 154 ms.
        let mut r = r;
        let mut run = crate::samples::Run::new("open-au-linear");
        for (i, ms) in [2, 154, 427, 3].into_iter().enumerate() {
            run.samples.push(crate::samples::Sample {
                cell: 0,
                trial: i as u32,
                role: 0,
                op: Op::Write(crate::device::Fill::Zeros),
                at: i as u64 * 65536,
                len: 32768,
                start: Nanos(i as u64 * 1_000_000_000),
                took: Nanos(ms * 1_000_000),
            });
        }
        r.runs.push(run);
        let logger = uses(&r).into_iter().find(|u| u.name == "data logger").unwrap();
        assert!(logger.why.contains("43 kB of buffer for a wait of 427 ms"), "{}", logger.why);
        // Without its samples the report says the same; one of which nothing was kept names no buffer, for a merge is not the longest wait.
        assert_eq!(uses(&r.without_samples()), uses(&r));
        let bare = Report { runs: vec![], cost: crate::saved::Cost { writes: 4, ..Default::default() }, ..r };
        let of = |name: &str| uses(&bare).into_iter().find(|u| u.name == name).unwrap();
        assert!(!of("data logger").why.contains("buffer") && of("boot or read-mostly").why.contains("saved without the times"));
    }
}

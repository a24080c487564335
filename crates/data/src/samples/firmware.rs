//! The line protocol of `firmware/nandscope.c`: calls of a file library and busy polls, as a microcontroller prints them.
//!
//! `ns:` FIELDS `*` XX, where XX is the exclusive or of the characters between in hexadecimal; described in FORMATS.md.

use super::busy::{Trace, Transaction};
use super::records::Pass;
use crate::units::Nanos;
use std::collections::BTreeMap;

/// What a log of a microcontroller holds.
#[derive(Debug, Default)]
pub struct Log {
    /// What the firmware calls itself.
    pub host: String,
    pub poll_ns: Option<u64>,
    /// Step of the clock that timed the calls, µs.
    pub clock_us: u64,
    /// One pass for writes and one for reads, for each size of a record, in the order they came.
    pub passes: Vec<Pass>,
    /// Busy polls, by whether the number of blocks was announced: "none", "cmd23", "acmd23".
    pub busy: Vec<(String, Trace)>,
    /// What a reader should know.
    pub notes: Vec<String>,
}

/// Whether a text holds such a log at all.
pub fn is_log(bytes: &[u8]) -> bool {
    bytes.windows(5).any(|w| w == b"ns:1 ")
}

/// The fields of a line whose sum is right.
fn fields(line: &str) -> Option<Result<Vec<&str>, ()>> {
    let (body, sum) = line[line.find("ns:")? + 3..].split_once('*').unzip();
    let Some((body, sum)) = body.zip(sum) else { return Some(Err(())) };
    let right = body.bytes().fold(0, |x, b| x ^ b);
    let given = sum.get(..2).and_then(|s| u8::from_str_radix(s, 16).ok());
    Some(if given == Some(right) { Ok(body.split(' ').filter(|w| !w.is_empty()).collect()) } else { Err(()) })
}

/// No call takes longer than an hour, none is of more than 64 MiB.
fn call(f: &[&str]) -> Option<(u64, u64)> {
    let [bytes, us] = f else { return None };
    let (bytes, us): (u64, u64) = (bytes.parse().ok()?, us.parse().ok()?);
    (bytes <= 64 << 20 && us <= 3_600_000_000).then_some((bytes, us * 1000))
}

/// What is known of all calls of a run together: `t` WHAT BYTES CALLS SECONDS US SHORTEST LONGEST.
fn total(f: &[&str]) -> Option<Pass> {
    let [what @ ("w" | "r"), rest @ ..] = f else { return None };
    let n: Vec<u64> = rest.iter().map(|w| w.parse().ok()).collect::<Option<_>>()?;
    let [bytes, calls, seconds, us, shortest, longest] = n[..] else { return None };
    let sum = seconds * 1_000_000 + us;
    let sound = (1..=64 << 20).contains(&bytes)
        && (1..1 << 32).contains(&calls)
        && seconds < 1 << 32
        && shortest <= longest
        && longest <= 3_600_000_000
        && (calls * shortest..=calls * longest).contains(&sum);
    sound.then(|| Pass::unordered(*what == "w", bytes, calls, sum * 1000, [shortest * 1000, longest * 1000]))
}

/// A bin of the histogram of a run: `h` WHAT BYTES LOWEST HIGHEST CALLS.
fn bin(f: &[&str]) -> Option<(bool, u64, u64, u64)> {
    let [what @ ("w" | "r"), rest @ ..] = f else { return None };
    let n: Vec<u64> = rest.iter().map(|w| w.parse().ok()).collect::<Option<_>>()?;
    let [bytes, low, high, calls] = n[..] else { return None };
    (low <= high && high < 1 << 32 && (1..1 << 32).contains(&calls)).then_some((*what == "w", bytes, high * 1000, calls))
}

fn transaction(f: &[&str]) -> Option<Transaction> {
    let (block, rest) = f.split_first()?;
    let (stop, data) = match rest.split_last() {
        Some((s, data)) if s.starts_with('s') => (Some(s[1..].parse().ok()?), data),
        _ => (None, rest),
    };
    let data: Vec<u64> = data.iter().map(|w| w.parse().ok()).collect::<Option<_>>()?;
    let block = block.parse().ok()?;
    (!data.is_empty() && data.iter().chain(&stop).all(|n| *n < 1 << 32)).then_some(Transaction { block: Some(block), data, stop })
}

/// Why a board of `firmware/` has no result, in its own words.
pub fn refused(text: &str) -> Option<String> {
    let why = text.lines().rev().find_map(|l| l.split_once("no result: "))?.1;
    let plain: String = why.chars().filter(|c| !c.is_control()).take(160).collect();
    Some(plain.trim().to_string()).filter(|w| !w.is_empty())
}

/// Reads a log; lines of anything else are passed over, damaged ones are counted.
pub fn parse(text: &str) -> Log {
    let mut log = Log { clock_us: 1, ..Log::default() };
    let mut at: BTreeMap<(bool, u64), (usize, u64)> = BTreeMap::new();
    let (mut mode, mut good, mut damaged, mut said) = ("none".to_string(), 0u64, 0u64, None);
    let (mut opened, mut closed, mut orphans) = (None, None, 0u64);
    for line in text.lines() {
        let f = match fields(line) {
            None => continue,
            Some(Err(())) => {
                damaged += 1;
                continue;
            }
            Some(Ok(f)) => f,
        };
        good += 1;
        let understood = match f.split_first() {
            Some((&"1", settings)) => {
                for s in settings {
                    match s.split_once('=') {
                        Some(("host", h)) => log.host = h.into(),
                        Some(("poll_ns", n)) => log.poll_ns = n.parse().ok().filter(|n| (1..=10_000_000).contains(n)),
                        Some(("clock_us", n)) => log.clock_us = n.parse().ok().filter(|n| (1..=1_000_000).contains(n)).unwrap_or(1),
                        _ => {}
                    }
                }
                true
            }
            Some((&what @ ("w" | "r"), rest)) => call(rest).filter(|c| c.0 > 0).is_some_and(|(bytes, ns)| {
                let write = what == "w";
                let (i, time) = at.entry((write, bytes)).or_insert_with(|| {
                    let mut pass = Pass::new(write, bytes, false);
                    pass.opened = opened.unwrap_or(Nanos(0));
                    log.passes.push(pass);
                    (log.passes.len() - 1, 0)
                });
                *time += ns;
                log.passes[*i].add(Nanos(ns), *time);
                log.passes[*i].elapsed = Nanos(*time);
                true
            }),
            Some((&"o", rest)) => call(rest).map(|c| opened = Some(Nanos(c.1))).is_some(),
            Some((&"c", rest)) => call(rest).map(|c| closed = Some(Nanos(c.1))).is_some(),
            Some((&"s", rest)) => call(rest).is_some_and(|c| {
                // The last one counts.
                log.passes.last_mut().into_iter().for_each(|p| p.closed = Nanos(c.1));
                true
            }),
            Some((&"t", rest)) => total(rest).is_some_and(|mut pass| {
                pass.opened = opened.unwrap_or(Nanos(0));
                log.passes.push(pass);
                true
            }),
            Some((&"h", rest)) => bin(rest).is_some_and(|(write, bytes, most, calls)| {
                let of = |p: &&mut Pass| p.unordered && (p.write, p.record) == (write, bytes);
                match log.passes.iter_mut().rev().find(of) {
                    Some(p) => p.count(most, calls),
                    // The line of its run was lost: nobody knows what the calls add up to.
                    None => orphans += calls,
                }
                true
            }),
            Some((&"b", rest)) => transaction(rest).is_some_and(|t| {
                // A firmware may try both ways by turns.
                let here = log.busy.iter().position(|b| b.0 == mode).unwrap_or_else(|| {
                    log.busy.push((mode.clone(), Trace { poll_ns: log.poll_ns, ..Trace::default() }));
                    log.busy.len() - 1
                });
                log.busy[here].1.transactions.push(t);
                true
            }),
            Some((&"m", [how])) => {
                mode = how.to_string();
                true
            }
            Some((&"end", [n])) => n.parse().map(|n: u64| said = Some(n)).is_ok(),
            _ => false,
        };
        damaged += u64::from(!understood);
    }
    if let (Some(p), Some(c)) = (log.passes.last_mut(), closed) {
        p.closed = p.closed + c;
    }
    if damaged > 0 {
        log.notes.push(format!("{damaged} lines are damaged and were left out"));
    }
    match said {
        None => log.notes.push("the log has no last line: it was cut off".into()),
        Some(n) if n > good => log.notes.push(format!("{} of {n} lines are missing", n - good)),
        _ => {}
    }
    if orphans > 0 {
        log.notes.push(format!("{orphans} calls were left out: the line with the sum of their run is missing"));
    }
    for p in log.passes.iter().filter(|p| p.unordered) {
        let what = if p.write { "writes" } else { "reads" };
        if p.missing() > 0 {
            log.notes.push(format!(
                "{} of {} {what} of {} B are missing from the histogram: percentiles and tail are not known",
                p.missing(),
                p.records,
                p.record
            ));
            continue;
        }
        log.notes.push(format!(
            "{what} of {} B come as a histogram: a percentile is the upper end of its bin, and in what order the calls came is not known",
            p.record
        ));
    }
    if let Some(why) = refused(text) {
        log.notes.push(format!("the board ended with: {why}"));
    }
    if !log.passes.is_empty() {
        log.notes.push("speed is that of the calls alone: the firmware does not print the time between them".into());
    }
    log
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(body: &str) -> String {
        format!("ns:{body}*{:02x}\r\n", body.bytes().fold(0, |x, b| x ^ b))
    }

    /// A run of which only the histogram was printed: totals, percentiles, no order; and what is lost is counted.
    #[test]
    fn a_histogram_carries_what_it_can() {
        let mut text = line("1 host=uno poll_ns=0 clock_us=4") + &line("t w 512 1000 1 550000 1000 51000");
        text += &(line("h w 512 896 1023 990") + &line("h w 512 40960 49151 9"));
        let whole = text.clone() + &line("h w 512 49152 57343 1") + &line("end 6");
        let log = parse(&whole);
        let p = &log.passes[0];
        assert!(p.unordered && p.calls.is_empty() && log.passes.len() == 1);
        assert_eq!((p.records, p.total, p.max_min(), p.mean()), (1000, Nanos(1_550_000_000), (51_000.0, 1000.0), 1550.0));
        let percentile = [50.0, 99.5, 100.0].map(|q| p.percentile(q).round());
        assert!((1023.0..1025.0).contains(&percentile[0]) && (49_151.0..49_185.0).contains(&percentile[1]), "{percentile:?}");
        assert_eq!(percentile[2], 51_000.0, "no bin reaches above the longest call");
        assert!(log.notes.iter().all(|n| !n.contains("missing")) && log.notes.iter().any(|n| n.contains("order")), "{:?}", log.notes);
        // A bin that was lost on the way, and the line of the run.
        let log = parse(&(text.clone() + &line("end 6")));
        assert!(log.notes.iter().any(|n| n.contains("1 of 1000 writes of 512 B are missing from the histogram")), "{:?}", log.notes);
        let log = parse(&whole.replace("ns:t w", "ns:t x"));
        assert!(log.passes.is_empty() && log.notes.iter().any(|n| n.contains("1000 calls were left out")), "{:?}", log.notes);
        // Sums that cannot be.
        for bad in [
            "t w 512 1000 0 5000 1000 51000",
            "t w 512 0 0 0 1 1",
            "t w 512 10 99999999999 0 1 1",
            "h w 512 9 8 1",
            "h w 512 1 2 0",
            "t w 512 1",
        ] {
            let log = parse(&(line("1 host=x") + &line(bad) + &line("end 3")));
            assert!(log.passes.is_empty() && log.notes[0].starts_with("1 lines are damaged"), "{bad}: {:?}", log.notes);
        }
    }

    #[test]
    fn calls_polls_and_damage() {
        let mut text = format!("boot\n{}{}", line("1 host=uno poll_ns=4900 clock_us=4"), line("m cmd23"));
        for i in 0..10 {
            text += &format!("12:00:01 -> {}", line(&format!("w 512 {}", 1152 + 4 * i)));
        }
        text += &line("b 2048 3 3 3 28900 s4");
        text += "ns:w 512 99999*00\nns:w 51\n";
        text += &line("w 512 9999999999999");
        text += &line("end 16");
        let log = parse(&text);
        assert!(is_log(text.as_bytes()));
        let p = &log.passes[0];
        assert_eq!((p.write, p.record, p.records, p.max_min()), (true, 512, 10, (1188.0, 1152.0)));
        assert_eq!(log.busy[0].0, "cmd23");
        assert_eq!(log.busy[0].1.transactions[0], Transaction { block: Some(2048), data: vec![3, 3, 3, 28_900], stop: Some(4) });
        assert!(log.notes[0].starts_with("3 lines are damaged") && log.notes[1].contains("1 of 16"), "{:?}", log.notes);
    }
}

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

/// Reads a log; lines of anything else are passed over, damaged ones are counted.
pub fn parse(text: &str) -> Log {
    let mut log = Log { clock_us: 1, ..Log::default() };
    let mut at: BTreeMap<(bool, u64), (usize, u64)> = BTreeMap::new();
    let (mut mode, mut good, mut damaged, mut said) = ("none".to_string(), 0u64, 0u64, None);
    let (mut opened, mut closed) = (None, None);
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
            Some((&"s", rest)) => call(rest).is_some(),
            Some((&"b", rest)) => transaction(rest).is_some_and(|t| {
                if log.busy.last().is_none_or(|b| b.0 != mode) {
                    log.busy.push((mode.clone(), Trace { poll_ns: log.poll_ns, ..Trace::default() }));
                }
                log.busy.last_mut().is_some_and(|b| {
                    b.1.transactions.push(t);
                    true
                })
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
        p.closed = c;
    }
    if damaged > 0 {
        log.notes.push(format!("{damaged} lines are damaged and were left out"));
    }
    match said {
        None => log.notes.push("the log has no last line: it was cut off".into()),
        Some(n) if n > good => log.notes.push(format!("{} of {n} lines are missing", n - good)),
        _ => {}
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

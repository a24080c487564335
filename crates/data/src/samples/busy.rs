//! Busy traces in ChaN's form (C10 to C12): one line a write transaction, on it the number of polls the card was busy after each
//! data block, and after Stop Tran. Printed, and read from what a microcontroller sent over a serial line.

use std::fmt::Write;

/// One write transaction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Transaction {
    /// First block of 512 B on the card, where the line names it.
    pub block: Option<u64>,
    /// Polls after each data block.
    pub data: Vec<u64>,
    /// Polls after Stop Tran, where one was sent.
    pub stop: Option<u64>,
}

/// A busy trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// ns of one poll, where it is known.
    pub poll_ns: Option<u64>,
    pub transactions: Vec<Transaction>,
    /// Lines that were damaged and left out.
    pub damaged: usize,
}

/// The word a trace of ours begins with.
pub const HEAD: &str = "# nandscope busy trace 1";

/// A trace must have this many lines of numbers to be taken for one where nothing else says so.
const ENOUGH: usize = 12;

impl Trace {
    /// The trace in ChaN's form; the stop token is marked with an `s`, the first block stands before a colon.
    pub fn print(&self) -> String {
        let mut out = format!("{HEAD}\n");
        if let Some(ns) = self.poll_ns {
            let _ = writeln!(out, "# poll_ns {ns}");
        }
        for t in &self.transactions {
            let mut line = t.block.map_or(String::new(), |b| format!("{b}:"));
            t.data.iter().for_each(|n| line += &format!(" {n}"));
            if let Some(s) = t.stop {
                line += &format!(" s{s}");
            }
            let _ = writeln!(out, "{}", line.trim_start());
        }
        out
    }

    /// Reads a trace: ours, or lines of bare whole numbers, with the time stamps a terminal program puts before `->` or in
    /// brackets. Where no stop is marked, the last of several numbers is taken for it, as in ChaN's logs, unless the blocks that lines
    /// name leave none for it. `None` where the text is no such trace.
    pub fn parse(text: &str) -> Option<Trace> {
        let ours = text.lines().any(|l| l.trim() == HEAD);
        let mut out = Trace::default();
        let mut others = 0;
        for line in text.lines() {
            let line = line.rsplit("->").next().unwrap_or(line).trim();
            let line = if line.starts_with('[') { line.split_once(']').map_or(line, |l| l.1).trim() } else { line };
            if let Some(rest) = line.strip_prefix('#') {
                let mut words = rest.split_whitespace();
                if words.next() == Some("poll_ns") {
                    out.poll_ns = words.next().and_then(|w| w.parse().ok()).filter(|n| (1..=10_000_000).contains(n));
                }
                continue;
            }
            if line.is_empty() {
                continue;
            }
            match transaction(line) {
                Some(t) => out.transactions.push(t),
                None if line.starts_with(|c: char| c.is_ascii_digit()) => out.damaged += 1,
                None => others += 1,
            }
        }
        let marked = out.transactions.iter().any(|t| t.stop.is_some());
        let counted = out.all_are_blocks();
        if !marked && !ours && !counted {
            for t in out.transactions.iter_mut().filter(|t| t.data.len() > 1) {
                t.stop = t.data.pop();
            }
        }
        let n = out.transactions.len();
        let stops = out.transactions.iter().any(|t| t.stop.is_some());
        let plain = n >= ENOUGH && n > 2 * (others + out.damaged) && (stops || counted);
        (n > 0 && (ours || plain)).then_some(out)
    }
}

impl Trace {
    /// Whether every number of a line is a data block: of lines that name their first block, most begin where the line before ends if
    /// all its numbers are counted, and none would be left for Stop Tran.
    fn all_are_blocks(&self) -> bool {
        let steps: Vec<(u64, u64)> =
            self.transactions.windows(2).filter_map(|w| Some((w[1].block?.checked_sub(w[0].block?)?, w[0].data.len() as u64))).collect();
        let whole = steps.iter().filter(|s| s.0 == s.1).count();
        2 * whole > steps.len() && whole + 1 >= ENOUGH
    }
}

/// "2048: 3 3 3 3 s3810"; numbers may be parted by blanks, tabs or commas.
fn transaction(line: &str) -> Option<Transaction> {
    let (block, rest) = match line.split_once(':') {
        Some((b, rest)) => (Some(b.trim().parse().ok()?), rest),
        None => (None, line),
    };
    let mut t = Transaction { block, ..Transaction::default() };
    for word in rest.split([' ', '\t', ',']).filter(|w| !w.is_empty()) {
        if t.stop.is_some() {
            return None;
        }
        match word.strip_prefix(['s', 'S']) {
            Some(n) => t.stop = Some(n.parse().ok()?),
            None => t.data.push(word.parse().ok()?),
        }
    }
    // No transaction has more than 65535 blocks, no poll count more than a minute of nanoseconds.
    let sane = !t.data.is_empty() && t.data.len() <= 65_535 && t.data.iter().chain(&t.stop).all(|n| *n <= 60_000_000_000);
    sane.then_some(t)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_is_read_again() {
        let t = Trace {
            poll_ns: Some(4900),
            transactions: (0..20)
                .map(|i| Transaction { block: Some(2048 + 4 * i), data: vec![0, 1, 0, 3], stop: (i % 2 == 0).then_some(3800) })
                .collect(),
            damaged: 0,
        };
        assert_eq!(Trace::parse(&t.print()), Some(t));
    }

    #[test]
    fn a_pasted_serial_log() {
        let mut text = String::from("write test\nOpening...\n");
        for i in 0..20 {
            text += &format!("12:01:{i:02}.250 -> 3 3 3 3 {}\n", 3800 + i);
        }
        text += "12:02:00.000 -> 3 3 x\n";
        let t = Trace::parse(&text).unwrap();
        assert_eq!((t.transactions.len(), t.damaged), (20, 1));
        assert_eq!((t.transactions[3].data.len(), t.transactions[3].stop), (4, Some(3803)));
        // Blocks that count up by all numbers of a line leave none for Stop Tran; those that count up by one less leave the last.
        for (len, step) in [(1u64, 1), (4, 4), (8, 8), (9, 8), (5, 4)] {
            let text: String = (0..20).map(|i| format!("{}:{}\n", 4096 + step * i, " 7".repeat(len as usize))).collect();
            let t = Trace::parse(&text).unwrap();
            assert!(t.transactions.iter().all(|t| t.data.len() as u64 == step && t.stop.is_some() == (len > step)), "{len} {step}");
        }
        let single: String = (0..20).map(|i| format!("{i}\n")).collect();
        for other in [
            "",
            "hello",
            "1 2\n3 4",
            "4MiB 1.2M/s\n",
            &single,
            "0.5 1.2\n".repeat(40).as_str(),
            "99999999999999999999 1\n".repeat(20).as_str(),
        ] {
            assert_eq!(Trace::parse(other), None, "{other:?}");
        }
    }
}

//! SdFat bench: the table form ("speed,max,min,avg") and the text form of 2012.

use super::{BenchPass, BenchTest};

/// Where a reading of the bench stands.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct State {
    /// A table's passes follow: writes or reads.
    table: Option<bool>,
    /// "Write 80.33 KB/sec", waiting for its latencies.
    speed: Option<(bool, f64)>,
}

/// What a line of the bench says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Said {
    Pass(BenchPass),
    Buffer(u32),
    FileMb(f64),
    CardGb(f64),
    /// A heading: belongs to the bench and holds no figure.
    Heading,
}

pub fn line(state: &mut State, number: usize, text: &str) -> Option<Said> {
    let low = text.to_ascii_lowercase();
    if low.contains("speed and latency") {
        state.table = Some(low.contains("write"));
        return Some(Said::Heading);
    }
    if low.starts_with("speed,max,min,avg") || low.starts_with("kb/sec,usec") {
        state.table.get_or_insert(true);
        return Some(Said::Heading);
    }
    if let Some(write) = state.table {
        let parts: Vec<f64> = text.split(',').map_while(|p| p.trim().parse().ok()).filter(|x: &f64| x.is_finite() && *x >= 0.0).collect();
        if let [speed, max, min, avg] = parts[..] {
            return Some(Said::Pass(BenchPass { line: number, write, speed, max, min, avg }));
        }
    }
    let rate = |head: &str| low.strip_prefix(head)?.strip_suffix("kb/sec")?.trim().parse::<f64>().ok();
    if let Some(speed) = rate("write ").or_else(|| rate("read ")) {
        state.speed = Some((low.starts_with('w'), speed));
        return Some(Said::Heading);
    }
    if low.starts_with("maximum latency:") {
        let n: Vec<f64> = low.split(|c: char| !c.is_ascii_digit() && c != '.').filter_map(|w| w.parse().ok()).collect();
        let (write, speed) = state.speed.take()?;
        let [max, min, avg] = n[..] else { return None };
        return Some(Said::Pass(BenchPass { line: number, write, speed, max, min, avg }));
    }
    let after = |head: &str| {
        low.strip_prefix(head).and_then(|r| r.trim_start_matches([' ', '=', ':']).split([' ', 'm']).next()?.parse::<f64>().ok())
    };
    if let Some(b) = after("buffer size").or_else(|| after("buf_size")).filter(|b| (1.0..=1e9).contains(b)) {
        *state = State::default();
        return Some(Said::Buffer(b as u32));
    }
    if let Some(mb) = after("file size").or_else(|| after("file_size_mb")) {
        return Some(Said::FileMb(mb));
    }
    after("card size").map(Said::CardGb)
}

/// Adds what was said; a new buffer size begins a new test.
pub fn add(test: &mut BenchTest, said: Said) {
    match said {
        Said::Pass(p) => test.passes.push(p),
        Said::Buffer(b) => test.buffer = Some(b),
        Said::FileMb(m) => test.file_mb = Some(m),
        Said::CardGb(g) => test.card_gb = Some(g),
        Said::Heading => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passes(text: &str) -> Vec<BenchPass> {
        let mut s = State::default();
        text.lines()
            .enumerate()
            .filter_map(|(i, l)| match line(&mut s, i, l)? {
                Said::Pass(p) => Some(p),
                _ => None,
            })
            .collect()
    }

    #[test]
    fn both_forms() {
        let p = passes(
            "write speed and latency\nspeed,max,min,avg\nKB/Sec,usec,usec,usec\n80.3278, 214340, 2365, 6370\n\nread speed and latency\nspeed,max,min,avg\n1102.95,3047,416,463",
        );
        assert_eq!(p.len(), 2);
        assert!(p[0].write && p[0].max == 214_340.0 && !p[1].write && p[1].speed == 1102.95);
        let p = passes("Write 261.27 KB/sec\nMaximum latency: 81304 usec, Minimum Latency: 84 usec, Avg Latency: 378 usec");
        assert_eq!((p[0].write, p[0].speed, p[0].max, p[0].min, p[0].avg), (true, 261.27, 81_304.0, 84.0, 378.0));
        assert!(passes("1,2,3,4").is_empty());
        let mut s = State::default();
        assert_eq!(line(&mut s, 1, "BUF_SIZE = 512 bytes"), Some(Said::Buffer(512)));
        assert_eq!(line(&mut s, 1, "File size 5MB"), Some(Said::FileMb(5.0)));
        assert_eq!(line(&mut s, 1, "Card size:    63.83 GB (GB = 1E9 bytes)"), Some(Said::CardGb(63.83)));
    }
}

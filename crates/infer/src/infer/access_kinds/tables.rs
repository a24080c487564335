//! Does the content matter? From `flashbench -p`: zeros, ones and a mixed byte written in the same order at the same sizes.
//!
//! A controller that compresses, or that does not program what is erased anyway, writes some contents faster. Each size is
//! compared with itself; what random and linear order cost in one AU goes to the open-AU inference.

use crate::finding::{Finding, Quantity};
use crate::infer::stats::{mad, median};
use crate::samples::import::{OpenTest, ProgramTest, Rate, Tables};
use crate::units::MIB;

const CONTENTS: [&str; 3] = ["zeros", "ones", "0x5a"];
/// The AU that flashbench's program writes in.
const AU: u64 = 4 * MIB;
/// Differences below this nobody would call one.
const SMALLEST: f64 = 0.06;

pub fn infer(tables: &Tables) -> Vec<Finding> {
    let Some(first) = tables.program.first() else { return vec![] };
    let mut f = judge(&tables.program);
    let n = tables.program.len();
    f.from = vec![format!("access-kind table ({}, {n} {})", tables.at(first.place), if n == 1 { "run" } else { "runs" })];
    vec![f]
}

/// The same writes as tables of one open AU: linear columns and random ones.
pub fn one_au(tables: &Tables) -> Vec<OpenTest> {
    let mut out = vec![];
    for t in &tables.program {
        for (random, from) in [(false, 0), (true, 4)] {
            let rows: Vec<Rate> = t
                .rows
                .iter()
                .filter(|r| r.rates.len() == 8)
                .map(|r| Rate { line: r.line, size: r.size, rate: median(&r.rates[from..from + 3]) })
                .collect();
            if rows.len() >= 3 {
                out.push(OpenTest { place: t.place, n: Some(1), random: Some(random), erase_size: Some(AU), setting: None, rows });
            }
        }
    }
    out
}

fn judge(tests: &[ProgramTest]) -> Finding {
    let q = Quantity::ContentGain;
    // ln of each content against the mean of the three, by content; linear and random apart, then together.
    let mut all: [Vec<f64>; 3] = Default::default();
    let mut rest = vec![];
    for r in tests.iter().flat_map(|t| &t.rows).filter(|r| r.rates.len() == 8) {
        for from in [0, 4] {
            let ln: Vec<f64> = r.rates[from..from + 3].iter().map(|x| x.ln()).collect();
            let m = ln.iter().sum::<f64>() / 3.0;
            (0..3).for_each(|i| all[i].push(ln[i] - m));
        }
    }
    let n = all[0].len();
    if n < 8 {
        return Finding::undecided(q, format!("too few sizes to compare contents: {}", n / 2));
    }
    let middle: Vec<f64> = all.iter().map(|a| median(a)).collect();
    all.iter().zip(&middle).for_each(|(a, m)| rest.extend(a.iter().map(|x| x - m)));
    let noise = mad(&rest).max(0.004);
    let (hi, lo) = (0..3).fold((0, 0), |(h, l), i| (if middle[i] > middle[h] { i } else { h }, if middle[i] < middle[l] { i } else { l }));
    let gap = middle[hi] - middle[lo];
    let error = 2.2 * noise / (n as f64).sqrt();
    let text = format!(
        "{} are written at {:.0} % of the rate of {} (median over {} sizes, sequential and random; ± {:.0} %)",
        CONTENTS[lo],
        100.0 * (-gap).exp(),
        CONTENTS[hi],
        n / 2,
        (200.0 * error).max(1.0)
    );
    // The largest of three differences, so three and a half deviations of one.
    if gap > (3.5 * error).max(SMALLEST) {
        // Seen at most sizes, not carried by a few.
        let agree = (0..n).filter(|&i| all[hi][i] - all[lo][i] > 0.3 * gap).count() as f64 / n as f64;
        let trust = (0.55 + 0.35 * ((gap / error - 3.5) / 6.0).clamp(0.0, 1.0)).min(0.5 + 0.45 * agree);
        let x = (gap.exp() * 100.0).round() / 100.0;
        let mut f = Finding::decided(q, x, trust).rivals([(1.0, 1.0 - trust)]).evidence(text);
        f.interval = Some([(gap - 2.0 * error).exp(), (gap + 2.0 * error).exp()].map(|x| (x * 100.0).round() / 100.0));
        return f;
    }
    if error > 0.05 {
        return Finding::undecided(q, format!("the rates scatter by ± {:.0} %: a difference could hide in that", 100.0 * noise))
            .evidence(text);
    }
    let trust = if gap < 0.6 * SMALLEST { 0.88 } else { 0.74 };
    Finding::decided(q, 1.0, trust)
        .evidence(text)
        .caveat("all three contents are constant: a card that compresses shows it against random bytes only")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::import::read;

    fn log(rate: impl Fn(usize, u64) -> f64) -> Vec<Finding> {
        let mut text = String::from("$ flashbench -p /dev/sdb\n");
        for k in (9..=21).rev() {
            let cells: Vec<String> = (0..8).map(|i| crate::flashbench::format::rate(rate(i, 1 << k))).collect();
            text += &format!("{} {}\n", crate::flashbench::format::size(1 << k), cells.join("  "));
        }
        crate::infer::tables::infer(&read(&[("t", text)]).unwrap()).0
    }

    fn gain(f: &[Finding]) -> &Finding {
        f.iter().find(|f| f.quantity == Quantity::ContentGain).unwrap()
    }

    fn plain(size: u64) -> f64 {
        size as f64 / (0.0008 + size as f64 / 9e6)
    }

    #[test]
    fn contents_that_matter_and_contents_that_do_not() {
        let wander = |i: usize, s: u64| 1.0 + 0.01 * [(1.0), -1.0, 0.5, 0.0, -0.5][(i + s.trailing_zeros() as usize) % 5];
        let same = log(|i, s| plain(s) * wander(i, s));
        assert!(gain(&same).number() == Some(1.0) && gain(&same).confidence >= 0.8, "{same:?}");
        let ones = log(|i, s| plain(s) * wander(i, s) * if i % 4 == 1 { 1.6 } else { 1.0 });
        assert!((gain(&ones).number().unwrap() - 1.6).abs() < 0.05 && gain(&ones).confidence >= 0.8, "{ones:?}");
        let wild = log(|i, s| plain(s) * [0.4, 1.0, 2.0, 0.7, 1.3][(i * 3 + s.trailing_zeros() as usize * 2) % 5]);
        assert!(gain(&wild).value.is_none() || gain(&wild).confidence < 0.8, "{wild:?}");
    }

    #[test]
    fn random_writes_that_always_pay_are_seen() {
        let f = log(|i, s| if (4..7).contains(&i) { s as f64 / (0.25 + s as f64 / 9e6) } else { plain(s) });
        let random = f.iter().find(|f| f.quantity == Quantity::OpenAusRandom).unwrap();
        assert_eq!(random.number(), Some(0.0), "{random:?}");
    }
}

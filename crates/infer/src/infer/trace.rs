//! What a busy trace says (C10 to C17, C20): the polls after each data block and after Stop Tran, one line a transaction.
//!
//! Three explanations of where the long waits lie are held against each other: at the end of each transaction, at the multiples
//! of a buffer, or anywhere. Lines that were lost or doubled move the places of all that follow where no line names its block: the
//! grid of a buffer may then slip between two lines, at a price. Single blocks between longer transactions are sectors of a FAT or a
//! directory: they are no part of the row, and neither is the line after them, which a buffer that was turned out delays.

use super::rewrite::{CHIP_BLOCKS, PROGRAM_MS, at_the_end_of_what, class, expected, split};
use super::stats::{bootstrap_median, ln_any_order, median, quantile};
use crate::finding::{Finding, Quantity};
use crate::samples::busy::{Trace, Transaction};
use crate::units::{Bytes, SECTOR, polls, three};

/// Polls of an 8-bit machine take 4.3 to 5.4 µs (C21). Where a trace does not say, this stands for them in judging whether a wait
/// is a rewrite; no time is derived from it.
const USUAL_POLL_NS: f64 = 4900.0;

/// The least waits in ms that may be a rewrite of an erase block, and how often they are one: 32 pages of 512 B take 10 to 21 ms,
/// and a little less where most of them are new; many pages programmed as one take up to 20 ms (OLPC's cards); 64 pages of 2 KiB
/// take 34 ms or more, which no programming does.
const REWRITES: [(f64, f64); 3] = [(30.0, 1.0), (15.0, 0.75), (8.0, 0.65)];

/// Waits of so many ms are too long for programming, and stand out of the others by so many times. Chips whose rewrite takes that
/// long have erase blocks of 128 KiB or more (C2): such waits nearer to each other are not the ends of erase blocks.
const LONG: (f64, f64) = (REWRITES[0].0, 3.0);

/// Lines that are looked at: enough for a buffer of 1 MiB filled in transactions of 2 KiB.
const LINES: usize = 2000;

/// What the evidence of a trace begins with.
const WHAT: &str = "busy trace";

/// Finds nothing in fewer waits.
const LEAST: usize = 16;

const Q: [Quantity; 5] = [Quantity::RewritePolicy, Quantity::WriteBuffer, Quantity::RewriteMs, Quantity::RewritePolls, Quantity::ChipClass];

/// One wait.
#[derive(Clone, Copy, Debug)]
struct Wait {
    polls: f64,
    /// It is the end of the transaction: Stop Tran, or the last block where none was sent.
    end: bool,
    slow: bool,
}

/// One transaction of the row.
#[derive(Clone, Debug)]
struct Line {
    /// First block, counted on from the line before where it is not named.
    at: u64,
    named: bool,
    /// It goes on where the line before ended.
    follows: bool,
    waits: Vec<Wait>,
    /// Of the waits, how many are data blocks.
    blocks: u64,
}

fn is_single(t: &Transaction) -> bool {
    t.data.len() == 1 && t.stop.is_none()
}

/// The row of a trace, and the single blocks that stand between its lines.
fn row(trace: &Trace) -> (Vec<Line>, Vec<f64>) {
    let all = &trace.transactions;
    let blocks = |single: bool| all.iter().filter(|t| is_single(t) == single).map(|t| t.data.len()).sum::<usize>();
    let of_singles = blocks(true) > blocks(false);
    let (mut lines, mut others): (Vec<Line>, Vec<f64>) = (vec![], vec![]);
    let mut next = 0;
    let mut broken = true;
    for t in all {
        if is_single(t) && !of_singles {
            others.push(t.data[0] as f64);
            broken = true;
            continue;
        }
        let at = t.block.unwrap_or(next);
        let n = t.data.len();
        let wait = |p: u64, end: bool| Wait { polls: p as f64, end, slow: false };
        let mut waits: Vec<Wait> = t.data.iter().enumerate().map(|(k, p)| wait(*p, t.stop.is_none() && k + 1 == n)).collect();
        waits.extend(t.stop.map(|p| wait(p, true)));
        if lines.len() < LINES {
            lines.push(Line { at, named: t.block.is_some(), follows: !broken && at == next, waits, blocks: n as u64 });
        }
        next = at + n as u64;
        broken = false;
    }
    // Where hardly anything follows on, there is no row to be strict about.
    if lines.iter().filter(|l| l.follows).count() * 4 < lines.len() {
        lines.iter_mut().for_each(|l| l.follows = true);
    }
    (lines, others)
}

/// A grid of full buffers that fits a row.
#[derive(Clone, Debug)]
struct Grid {
    /// Blocks.
    size: u64,
    phase: u64,
    /// Waits that contradict it, and places where the row slips.
    off: usize,
    slips: usize,
    ln: f64,
}

/// The best grid of one size: a walk over the lines that may slip where lines do not name their blocks.
fn fit(lines: &[Line], size: u64, n: usize) -> Grid {
    let places = size as usize;
    let m = lines.len();
    // In nats: what one more contradiction, and one more slip to some other phase, costs.
    let (one, slip) = ((n as f64).ln(), (m as f64).ln() + (size as f64).ln());
    let mut state: Vec<(f64, usize, usize, u64)> = (0..size).map(|p| (0.0, 0, 0, p)).collect();
    for line in lines {
        if !line.named {
            let best = state.iter().copied().min_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or((0.0, 0, 0, 0));
            for s in &mut state {
                if best.0 + slip < s.0 {
                    *s = (best.0 + slip, best.1, best.2 + 1, best.3);
                }
            }
        }
        if !line.follows {
            continue;
        }
        let data = &line.waits[..line.blocks as usize];
        let slow = line.waits.iter().filter(|w| w.slow).count();
        for (phase, s) in state.iter_mut().enumerate() {
            // The first block that ends at a multiple of the size, from this phase on.
            let into = (line.at as usize + places - phase % places) % places;
            let mut off = slow;
            let mut k = places - 1 - into;
            while k < data.len() {
                if data[k].slow {
                    off -= 1
                } else {
                    off += 1
                }
                k += places;
            }
            s.0 += off as f64 * one;
            s.1 += off;
        }
    }
    let named = lines.iter().any(|l| l.named);
    let score = |s: &(f64, usize, usize, u64)| {
        if 2 * s.1 > n || s.2 * 10 > m {
            return f64::NEG_INFINITY;
        }
        // Half the belief is in grids that begin at the start of the card, where lines say where they are.
        let prior = match (named, s.3) {
            (true, 0) => 0.5f64.ln(),
            (true, _) => (0.5 / (size as f64 - 1.0).max(1.0)).ln(),
            (false, _) => -(size as f64).ln(),
        };
        let slipped = if named { 0.0 } else { ln_any_order(m, s.2) + (m as f64 + 1.0).ln() - s.2 as f64 * (size as f64).ln() };
        ln_any_order(n, s.1) + prior + slipped
    };
    // All phases count for the size; the best one is shown.
    let all: Vec<f64> = state.iter().map(score).collect();
    let best = all.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1)).map_or(0, |b| b.0);
    let s = state[best];
    Grid { size, phase: best as u64, off: s.1, slips: s.2, ln: super::stats::ln_sum_exp(&all) }
}

/// Whether chips come in so many blocks: 2^k, 3*2^k.
fn is_usual(blocks: u64) -> bool {
    blocks.is_power_of_two() || (blocks.is_multiple_of(3) && (blocks / 3).is_power_of_two())
}

/// Sizes of a buffer in blocks, and whether they are usual.
fn sizes() -> Vec<(u64, bool)> {
    (2..=2048).filter(|s| is_usual(*s) || *s <= 256).map(|s| (s, is_usual(s))).collect()
}

/// Judges a trace. Without the time of a poll, waits are given in polls and no chip is named.
pub fn infer_trace(trace: &Trace) -> Vec<Finding> {
    let (mut lines, others) = row(trace);
    let all: Vec<f64> = lines.iter().flat_map(|l| l.waits.iter().map(|w| w.polls)).collect();
    if all.len() < LEAST {
        return undecided(&format!("only {} waits were traced; {LEAST} are needed", all.len()));
    }
    let known = trace.poll_ns.map(|n| n as f64);
    let to_ms = known.unwrap_or(USUAL_POLL_NS) / 1e6;
    let unit = Unit { ms: known.map(|n| n / 1e6) };
    let beside = (!others.is_empty())
        .then(|| format!("{} single blocks (of a FAT or a directory) between those lines: {}", others.len(), unit.show(median(&others))));
    let ms: Vec<f64> = all.iter().map(|p| p * to_ms).collect();
    let mark =
        |lines: &mut [Line], border: f64| lines.iter_mut().flat_map(|l| &mut l.waits).for_each(|w| w.slow = w.polls * to_ms > border);
    let mut out = match split(&ms) {
        None => of_one_kind(&lines, &all, to_ms, unit),
        Some((border, ..)) => {
            mark(&mut lines, border);
            of_two_kinds(&lines, to_ms, unit)
        }
    };
    if let (None | Some(0.0), Some(border)) = (out[0].number(), longest_kind(&ms)) {
        mark(&mut lines, border);
        out = of_few_long(&lines, out, to_ms, unit);
    }
    // What was cut off in sending is one more thing the answer rests on.
    let (damaged, whole) = (trace.damaged as f64, trace.transactions.len() as f64);
    out.iter_mut().filter(|f| f.value.is_some()).for_each(|f| f.confidence *= 1.0 - damaged / (damaged + whole));
    if let Some(f) = out.iter_mut().find(|f| f.value.is_some()) {
        f.evidence.extend(beside);
    }
    if known.is_none() {
        let unknown = "the time of a poll is not known; a line '# poll_ns N' in the trace gives it";
        for f in &mut out {
            match f.quantity {
                Quantity::RewriteMs | Quantity::ChipClass if f.value.is_some() => {
                    // What is said in ms would be of a guessed poll.
                    let evidence = f.evidence.iter().filter(|e| e.starts_with(WHAT)).cloned().collect();
                    *f = Finding { evidence, ..Finding::undecided(f.quantity, unknown) }
                }
                Quantity::RewritePolicy if f.value.is_some() => {
                    f.confidence = f.confidence.min(REWRITES[1].1);
                    f.caveats.push(unknown.into());
                }
                _ => {}
            }
        }
    }
    out
}

/// The border below the longest waits, where these stand out. `split` takes a few for stalls, and the programming at the end of each
/// transaction for the slow ones; a large buffer is full once in a hundred blocks or more.
fn longest_kind(ms: &[f64]) -> Option<f64> {
    let mut v = ms.to_vec();
    v.sort_by(f64::total_cmp);
    let gap = |i: usize| v[i] / v[i - 1].max(0.5);
    let at = (v.len() / 2..v.len()).filter(|&i| v[i] >= LONG.0).max_by(|&a, &b| gap(a).total_cmp(&gap(b)))?;
    (gap(at) > LONG.1).then(|| (v[at - 1] + v[at]) / 2.0)
}

/// Judges a row by its few longest waits, which are marked, where `others` is what the rest of it says.
fn of_few_long(lines: &[Line], others: Vec<Finding>, to_ms: f64, unit: Unit) -> Vec<Finding> {
    let long: Vec<f64> = lines.iter().flat_map(|l| &l.waits).filter(|w| w.slow).map(|w| w.polls).collect();
    let usual = unit.show(median(&long));
    if long.len() >= 3 {
        let found = of_two_kinds(lines, to_ms, unit);
        if let (Some(2.0), Some(size)) = (found[0].number(), found[1].number()) {
            if size < CHIP_BLOCKS[1] as f64 {
                return found;
            }
            let either = "a buffer that is full, or an erase block that ends; the mapping, which a probe finds, would decide";
            return undecided(&format!("{usual} at every multiple of {}: {either}", Bytes(size as u64)));
        }
    }
    // A card that rewrites does so once an erase block at least; fewer than one in eight of these are stalls.
    let bytes = SECTOR * lines.iter().map(|l| l.blocks).sum::<u64>();
    if others[0].value.is_none() || (long.len() as u64) < bytes.div_ceil(8 * CHIP_BLOCKS[1]) {
        return others;
    }
    let of = lines.iter().map(|l| l.waits.len()).sum::<usize>();
    undecided(&format!("{} of {of} waits take {usual}, at no regular places: rewrites or stalls", long.len()))
}

fn undecided(why: &str) -> Vec<Finding> {
    Q.map(|q| Finding::undecided(q, why)).to_vec()
}

/// How waits are written.
#[derive(Clone, Copy)]
struct Unit {
    /// ms of a poll, where known.
    ms: Option<f64>,
}

impl Unit {
    fn show(self, n: f64) -> String {
        self.ms.map_or_else(|| polls(n), |ms| format!("{} ms ({})", three(n * ms), polls(n)))
    }
}

/// Every wait takes about the same.
fn of_one_kind(lines: &[Line], all: &[f64], to_ms: f64, unit: Unit) -> Vec<Finding> {
    let usual = median(all);
    let long = quantile(all, 0.99) * to_ms;
    // A poll takes 10 µs at most, on the slowest machines there are.
    let most = if unit.ms.is_some() { long } else { long * 10_000.0 / USUAL_POLL_NS };
    if most < PROGRAM_MS {
        let text = format!("{WHAT}: {} after each block and each transaction", unit.show(usual));
        let none = "nothing is rewritten in this row of writes";
        let mut out = undecided(none);
        out[0] = Finding::decided(Quantity::RewritePolicy, 0.0, 0.9).evidence(text);
        return out;
    }
    let rewrite = REWRITES.iter().find(|r| usual * to_ms >= r.0 && r.0 >= 15.0);
    if let (Some((_, sure)), true) = (rewrite, lines.iter().all(|l| l.waits.len() == 1)) {
        let text = format!("{WHAT}: {} after every block, each a transaction of its own", unit.show(usual));
        return at_the_end(all, to_ms, SECTOR, 0.9 * sure, text);
    }
    undecided(&format!("every wait takes about {}: a slow page, or a rewrite", unit.show(usual)))
}

/// `len` is what a transaction writes, in bytes.
fn at_the_end(waits: &[f64], to_ms: f64, len: u64, confidence: f64, text: String) -> Vec<Finding> {
    let ms: Vec<f64> = waits.iter().map(|p| p * to_ms).collect();
    let mut out = at_the_end_of_what(&ms, len, confidence, text);
    out.insert(3, of_polls(waits, confidence));
    out
}

fn of_polls(waits: &[f64], confidence: f64) -> Finding {
    Finding { interval: bootstrap_median(waits), ..Finding::decided(Quantity::RewritePolls, median(waits), confidence) }
}

fn of_two_kinds(lines: &[Line], to_ms: f64, unit: Unit) -> Vec<Finding> {
    let used: Vec<&Line> = lines.iter().filter(|l| l.follows).collect();
    let waits: Vec<Wait> = used.iter().flat_map(|l| l.waits.iter().copied()).collect();
    let (n, slow) = (waits.len(), waits.iter().filter(|w| w.slow).count());
    let of = |which: &dyn Fn(&Wait) -> bool| waits.iter().filter(|w| which(w)).map(|w| w.polls).collect::<Vec<f64>>();
    let (fast_ones, slow_ones) = (of(&|w| !w.slow), of(&|w| w.slow));
    let (fast, long) = (median(&fast_ones), median(&slow_ones));
    let ends = waits.iter().filter(|w| w.end).count();
    let off_end = waits.iter().filter(|w| w.slow != w.end).count();
    let ln_end = if 2 * off_end > n || ends == n { f64::NEG_INFINITY } else { ln_any_order(n, off_end) };
    let ln_chance = ln_any_order(n, slow);
    let all = sizes();
    let few = all.iter().filter(|s| s.1).count() as f64;
    let mut grids: Vec<Grid> = all
        .iter()
        .map(|&(size, usual)| {
            let g = fit(lines, size, n);
            Grid { ln: g.ln - (2.0 * if usual { few } else { all.len() as f64 - few }).ln(), ..g }
        })
        .collect();
    nandscope_stats::descending(&mut grids, |a| a.ln);
    let total = super::stats::ln_sum_exp(&grids.iter().map(|g| g.ln).chain([ln_end, ln_chance]).collect::<Vec<_>>());
    let p = |ln: f64| (ln - total).exp();
    // What most transactions write.
    let len = SECTOR * median(&used.iter().map(|l| l.blocks as f64).collect::<Vec<_>>()) as u64;
    let best = &grids[0];
    // A place in ten that contradicts is more than lines that were damaged.
    let fits = |off: usize| off * 10 <= slow;
    let shown = |q: &str, off: usize| if off == 0 { String::new() } else { format!("; {off} of {n} {q} contradict that") };
    let cost: Vec<f64> = slow_ones.iter().map(|w| w - fast).collect();
    let ms = median(&cost) * to_ms;
    let sure = REWRITES.iter().find(|r| ms >= r.0).map(|r| r.1);
    // Chips whose rewrite is that short have erase blocks of 16 KiB: a buffer as large rewrites nothing, its pages are programmed.
    let of_a_buffer = sure.filter(|_| ms >= REWRITES[0].0 || best.size * SECTOR < CHIP_BLOCKS[0]);
    if fits(off_end) && fits(best.off) && off_end.abs_diff(best.off) <= 2 && best.slips == 0 {
        let size = Bytes(best.size * SECTOR);
        let why = format!("every transaction ends at a multiple of {size}: its end or a full buffer; writes of another size would decide");
        let text = format!("{WHAT}: {} at the end of each transaction, {} elsewhere", unit.show(long), unit.show(fast));
        let mut out = undecided(&why);
        if let Some(sure) = sure {
            let p = 0.95 * sure * (p(ln_end) + p(best.ln)).min(0.97);
            let part = at_the_end(&cost, to_ms, len, p, text);
            out.iter_mut().zip(part).skip(2).for_each(|(o, f)| *o = f);
        }
        return out;
    }
    if p(ln_end) >= 0.8 && fits(off_end) {
        let stops = lines.iter().filter(|l| l.waits.len() as u64 > l.blocks).count() * 2 > lines.len();
        let place = if stops { "after Stop Tran" } else { "after the last block of each transaction" };
        let text = format!("{WHAT}: {} {place}, {} after most data blocks{}", unit.show(long), unit.show(fast), shown("waits", off_end));
        let p = p(ln_end).min(0.97) * (1.0 - off_end as f64 / slow as f64);
        if let Some(sure) = sure {
            return at_the_end(&cost, to_ms, len, p * sure, text);
        }
        let may = "may be the programming of pages or the rewriting of a small block";
        let mut out = undecided(&format!("{} at the end of each transaction {may}", unit.show(long)));
        if ms < PROGRAM_MS && unit.ms.is_some() {
            let none = format!("{} at the end of each transaction is the time of programming pages", unit.show(long));
            out = undecided(&none);
            out[0] = Finding::decided(Quantity::RewritePolicy, 0.0, 0.9 * p).evidence(text);
        }
        out[1] = Finding::undecided(Quantity::WriteBuffer, "the end of the transaction decides, not the filling of a buffer");
        return out;
    }
    let share = p(best.ln);
    if share < 0.6 || !fits(best.off) {
        let longest = quantile(&slow_ones, 0.99);
        if longest * to_ms < PROGRAM_MS && unit.ms.is_some() {
            let text = format!("{WHAT}: {} after {slow} of {n} blocks and ends, {} after the others", unit.show(long), unit.show(fast));
            let mut out = undecided("no wait is long enough for a rewrite");
            out[0] = Finding::decided(Quantity::RewritePolicy, 0.0, 0.9).evidence(text);
            return out;
        }
        return undecided(&format!(
            "{slow} of {n} waits take {}, the others {}, neither at the ends of transactions nor at regular places",
            unit.show(long),
            unit.show(fast)
        ));
    }
    if fast > 0.04 * long && fast * to_ms > 0.06 {
        let size = Bytes(best.size * SECTOR);
        return undecided(&format!(
            "every block takes {}, and those that reach a multiple of {size} {}: no buffer does that",
            unit.show(fast),
            unit.show(long)
        ));
    }
    // A buffer begins where its size says; a log of small writes is collected after so many of them, wherever they lie.
    if best.phase > 0 && lines.iter().all(|l| l.named) && !is_usual(best.size) {
        let (size, phase) = (Bytes(best.size * SECTOR), Bytes(best.phase * SECTOR));
        return undecided(&format!("{} at every multiple of {size} plus {phase}: no buffer has such a size and place", unit.show(long)));
    }
    let missing = match best.slips {
        0 => String::new(),
        1 => "; lines seem to be missing in one place".into(),
        s => format!("; lines seem to be missing in {s} places"),
    };
    let phase =
        if best.phase > 0 && lines.iter().any(|l| l.named) { format!(" plus {}", Bytes(best.phase * SECTOR)) } else { String::new() };
    let text = format!(
        "{WHAT}: {} after every multiple of {}{phase}, {} elsewhere{}{missing}",
        unit.show(long),
        Bytes(best.size * SECTOR),
        unit.show(fast),
        shown("waits", best.off)
    );
    let p_grid = share.min(0.97) * (1.0 - best.off as f64 / slow as f64) * (1.0 - best.slips as f64 / lines.len() as f64);
    let buffer = Finding::decided(Quantity::WriteBuffer, (best.size * SECTOR) as f64, p_grid)
        .rivals(grids.iter().skip(1).take(3).map(|g| ((g.size * SECTOR) as f64, p(g.ln))).filter(|r| r.1 > 0.005))
        .evidence(text.clone());
    let Some(sure) = of_a_buffer else {
        let programs = ms < PROGRAM_MS && unit.ms.is_some();
        let none = format!(
            "{} {}",
            unit.show(long),
            if programs {
                "is the time of programming pages"
            } else {
                "may be the programming of several pages or the rewriting of a block"
            }
        );
        let mut out = undecided(&none);
        if programs {
            out[0] = Finding::decided(Quantity::RewritePolicy, 0.0, 0.9 * p_grid).evidence(text);
        }
        out[1] = buffer;
        return out;
    };
    let all_ms: Vec<f64> = cost.iter().map(|c| c * to_ms).collect();
    let per = expected(ms, Some(best.size * SECTOR), 4 * SECTOR);
    let mut time = Finding::decided(Quantity::RewriteMs, ms, 0.95 * p_grid * sure).evidence(per);
    time.interval = bootstrap_median(&all_ms);
    let count = of_polls(&cost, 0.97 * p_grid);
    let policy = Finding::decided(Quantity::RewritePolicy, 2.0, p_grid * sure).evidence(text);
    vec![policy, buffer, time, count, class(ms, p_grid * sure)]
}

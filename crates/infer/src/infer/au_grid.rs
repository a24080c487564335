//! Where AUs begin and how large they are, from a walk of small writes and looks at boundaries that it predicts.

mod walk;

use super::beliefs::Case;
use super::figure::{Figure, Series};
use super::pipeline::Analysis;
use super::read_boundary::erase_block_prior;
use crate::finding::{Finding, Quantity, SAID};
use crate::infer::edges::{Between, Edges};
use crate::infer::stats::median;
use crate::samples::{Cell, Sample};
use crate::units::{Bytes, MIB};
pub use walk::*;

/// Judges runs of `au-grid`.
pub struct AuGrid;

pub(super) const ANALYSES: &[&dyn Analysis] = &[&AuGrid];

/// Roles of the samples.
pub const WALK: u8 = 0;
pub const LOOK: u8 = 1;
pub const FILL: u8 = 2;

/// Looks that found nothing, while none found a boundary, after which a walk says nothing.
const MISSED: usize = 2;

/// Looks of shorter writes that cost nothing at all, at which the search ends.
const QUIET: u32 = 2;

/// The most that long looks are trusted.
const GAPS: f64 = 0.88;

/// So many times as long as most takes a write of a long look that may have closed an AU.
const DEARER: f64 = 2.5;

/// Looks in a row that missed, or cost nothing, after which looks go from the middle of one AU to the middle of the next.
const ASTRAY: u32 = 2;

/// Writes below a unit that differ by less, as a share of what a unit takes longer, take the same time.
const ALIKE: f64 = 0.25;
/// So many of them at least show that nothing is gathered.
const ALONE: usize = 3;

/// Parts of the distance at which there must be no boundary.
pub const PARTS: [i64; 2] = [2, 3];

impl Analysis for AuGrid {
    fn name(&self) -> &'static str {
        "au-grid"
    }

    fn infer(&self, run: &Case) -> Vec<Finding> {
        let mut out = judge(run);
        for f in &mut out {
            f.caveats.push("unreliable once the card collects garbage all the time".into());
        }
        out
    }

    fn figures(&self, run: &Case) -> Vec<Figure> {
        let points = |role: u8| {
            run.samples.iter().filter(|s| s.role == role).map(|s| (s.at as f64 / MIB as f64, s.took.millis())).collect::<Vec<_>>()
        };
        vec![Figure {
            title: "time of small writes forwards".into(),
            x: "offset on the card, MiB".into(),
            y: "ms".into(),
            log_x: false,
            log_y: true,
            series: [("walk", WALK), ("look", LOOK)]
                .into_iter()
                .map(|(name, role)| Series { name: name.into(), points: points(role) })
                .filter(|s| !s.points.is_empty())
                .collect(),
        }]
    }
}

/// Where the search stands.
pub struct State {
    pub edges: Edges,
    pub cell: Cell,
    /// Lengths of the writes, largest first, and the one in use.
    pub lengths: Vec<u64>,
    pub level: usize,
    /// Looks that were right, and of them those at the present length.
    pub right: u32,
    pub here: u32,
    /// Looks at a half and at a third of the way between two boundaries, and how many of them crossed one.
    pub between: [(u32, u32); 2],
    /// Looks at the present length of which not even the first write paid.
    pub quiet: u32,
    /// Writes of the present length show nothing.
    pub blind: bool,
    pub looks: usize,
    /// The next look leaves a hole in the AU before the boundary.
    pub hole: bool,
    /// Looks go from the middle of one AU to the middle of the next, with gaps: what is closed then was written to as much as in the walk, and
    /// costs as much. An AU that holds little costs little to close where the card was never written, and one opened near its end may be full
    /// before the boundary.
    pub long: bool,
    /// Looks of the first length in a row that showed nothing.
    astray: u32,
    /// Most writes of a long look were slow: the card closes an AU for each that is out of order, and what short ones said is kept.
    closes_each: bool,
    /// What the walk alone says.
    walked: Edges,
    /// What one look with writes below a unit found, until another agrees.
    aside: Option<(i64, Between)>,
}

impl State {
    /// Is the distance known well enough, in units of so many bytes, or were there enough looks?
    pub fn enough(&self, unit: u64) -> bool {
        self.right >= 4 && self.edges.period[1] - self.edges.period[0] < unit as f64 / 4.0 || self.here >= 8
    }

    /// Is it time for long looks?
    pub fn lost(&self) -> bool {
        !self.long && !self.closes_each && self.astray >= ASTRAY
    }

    /// Begins with long looks: what short ones said is let go.
    pub fn begin_long(&mut self) {
        let visited: Vec<i64> = self.edges.seen.iter().map(|s| s.0).chain(std::mem::take(&mut self.edges.visited)).collect();
        self.edges = Edges { visited, ..self.walked.clone() };
        (self.long, self.right, self.here, self.level, self.quiet) = (true, 0, 0, 0, 0);
        (self.between, self.blind, self.hole, self.aside) = ([(0, 0); 2], false, false, None);
    }

    /// Has one look with writes of the present length found a boundary that another has yet to find?
    pub fn half_seen(&self) -> bool {
        self.aside.is_some()
    }

    /// A boundary found by writes that the card puts aside or gathers, and that may be slow because that is dealt with. Where they are `told_apart`
    /// from such, another look has to find it at the same place of an erase block, after another number of writes: then it counts, as both do.
    fn found_aside(&mut self, k: i64, found: Between, told_apart: bool, unit: u64) {
        let mut both = self.edges.clone();
        let (size, exact) = both.size(unit);
        let place = |k: i64, b: Between| [b.0, b.1].map(|at| at as i64 - k * size as i64);
        let same = |(k0, b0): (i64, Between)| {
            let ([a0, a1], [b0, b1]) = (place(k0, b0), place(k, found));
            a0 < b1 && b0 < a1
        };
        match self.aside.take() {
            None if told_apart && exact && both.look(k, Some(found)) => self.aside = Some((k, found)),
            Some(first) if told_apart && same(first) && both.look(first.0, Some(first.1)) && both.look(k, Some(found)) => {
                self.edges = both;
                (self.right, self.here) = (self.right + 2, self.here + 2);
                return;
            }
            _ => self.blind = true,
        }
        self.edges.visited.push(k);
    }

    /// Counts one more place that is part of the way to the next boundary, crossed or not; two that were make it a boundary.
    fn beside(&mut self, part: usize, crossed: bool) {
        let b = &mut self.between[part];
        *b = (b.0 + 1, b.1 + u32::from(crossed));
        // Boundaries between those met: some were passed without a cost that stood out, their AUs being open already.
        if *b == (2, 2) {
            self.edges.divide(PARTS[part]);
            // What was seen before says nothing of those between, nor of what lies between them.
            (self.right, self.between) = (0, [(0, 0); 2]);
        }
    }
}

/// What the looks of a run have shown so far; `None` before a walk met a row of boundaries.
pub fn replay(run: &Case) -> Option<State> {
    // Of two walks the one in smaller steps, if it met boundaries.
    let row = |c: &Cell| edges_of(run, c).filter(|e| e.walk.on >= 3 && e.walk.score() > 0.6);
    let (cell, edges) = run.cells.iter().rev().filter(|c| c.bytes("walk") > 0).find_map(|c| Some((c.clone(), row(c)?)))?;
    let (chunk, sector, unit) = (cell.bytes("chunk"), run.setting("sector").unwrap_or(512).max(512), unit(run));
    let mut lengths = vec![chunk];
    for l in [unit, unit / 8 / sector * sector, sector] {
        // What is paid besides merges would not stand out of shorter ones: their times are not known.
        if l >= sector && l < lengths[lengths.len() - 1] && cell.get("again") == 0 {
            lengths.push(l);
        }
    }
    let mut s = State {
        walked: edges.clone(),
        edges,
        cell,
        lengths,
        level: 0,
        right: 0,
        here: 0,
        between: [(0, 0); 2],
        quiet: 0,
        blind: false,
        looks: 0,
        hole: false,
        long: false,
        astray: 0,
        closes_each: false,
        aside: None,
    };
    let line = Line::new(run, &s.cell);
    let mut whole: Vec<i64> = vec![];
    for c in run.cells.iter().filter(|c| c.get("look") == 1) {
        s.looks += 1;
        let level = s.lengths.iter().position(|&l| l == c.bytes("chunk")).unwrap_or(0);
        if level != s.level {
            (s.level, s.here, s.quiet, s.aside) = (level, 0, 0, None);
        }
        let all: Vec<_> = run.of(c.id).collect();
        if c.bytes("stride") > c.bytes("chunk") {
            let slow = all.iter().skip(2).filter(|x| line.slow(x.len, x.took)).count();
            s.closes_each |= !s.long && slow * 2 > all.len();
            if s.closes_each {
                continue;
            }
            if !s.long {
                s.begin_long();
            }
            look_long(&mut s, c.get("k"), &all, &line);
            continue;
        }
        let mut pairs = all.windows(2).skip(c.bytes("gap") as usize);
        let found = pairs.find(|w| line.slow(w[1].len, w[1].took)).map(|w| (w[1].at, w[1].at + w[1].len));
        // The AU before was open already, so the one behind may be, too: that says nothing. Or shorter writes go to a log of
        // their own, and what is slow among them is the emptying of that.
        let quiet = all.first().is_none_or(|f| !line.slow(f.len, f.took));
        if quiet && (found.is_none() || level > 0) {
            s.edges.visited.push(c.get("k"));
            s.quiet += 1;
            s.astray += u32::from(level == 0);
            s.blind |= level > 0 && s.quiet >= QUIET;
            continue;
        }
        if let Some(part) = PARTS.iter().position(|&p| p == c.get("part")) {
            s.edges.visited.push(c.get("k"));
            // Where the first write did not pay for the AU it opened, a later one may: a buffer passes on so many writes late, wherever that is.
            s.beside(part, found.is_some() && !quiet);
            continue;
        }
        // Below one unit a card may put writes aside or combine them: then they cost little, or show no boundary.
        if s.lengths[level] < unit.min(chunk) {
            let Some(found) = found else {
                s.blind = true;
                continue;
            };
            let before: Vec<&Sample> = all[1..].iter().copied().take_while(|x| !line.slow(x.len, x.took)).collect();
            // Slow at once, steps before the boundary may come: the card incurs a merge for each write within a unit.
            if before.is_empty() {
                s.edges.visited.push(c.get("k"));
                s.blind = true;
                continue;
            }
            let quick = before.iter().map(|x| x.took.micros()).fold(f64::INFINITY, f64::min);
            if quick < 0.5 * line.usual {
                let alike = quick + ALIKE * (line.usual - quick);
                // The write that completes a unit may pay for an AU that its first one entered.
                let late = (found.1 + run.setting("offset").unwrap_or(0)).is_multiple_of(unit);
                s.found_aside(c.get("k"), found, !late && each_alone(&before, found, alike, unit), unit);
                continue;
            }
        }
        let hole = c.get("gap") == 1;
        // Where no unit is known, shorter writes may be gathered: they say nothing of the row that longer ones have shown.
        if level > 0 && run.believed.write_unit().is_none() && !s.edges.clone().look(c.get("k"), found) {
            s.edges.visited.push(c.get("k"));
            s.blind = true;
            continue;
        }
        if s.edges.look(c.get("k"), found) {
            s.right += 1;
            s.here += 1;
            s.astray = 0;
            if hole {
                // Those without a hole found the AU full, which some cards make it by copying what lies before, and then close for nothing.
                s.edges.visited.append(&mut whole);
                let visited = &s.edges.visited;
                s.edges.missed.retain(|k| !visited.contains(k));
            }
            s.hole = hole;
        } else {
            if !hole {
                whole.push(c.get("k"));
            }
            s.astray += u32::from(level == 0);
            s.hole = !hole;
        }
    }
    Some(s)
}

/// Are writes below a unit, before the one that crosses a boundary, not gathered? Then they take the same time, less than `alike` µs; one that
/// completes a unit, a whole number of them before the boundary, may take longer.
fn each_alone(before: &[&Sample], found: Between, alike: f64, unit: u64) -> bool {
    let is_alike = |x: &&&Sample| x.took.micros() < alike;
    let completes = |x: &&Sample| found.1.saturating_sub(x.at) % unit <= x.len + found.1 - found.0;
    before.iter().all(|x| is_alike(&x) || completes(x)) && before.iter().filter(is_alike).count() >= ALONE
}

/// A look from the middle of one AU to the middle of the next, with gaps. The first two writes pay for the AU they open; of the others the
/// slowest tells, for stalls of a host are many in so many writes.
fn look_long(s: &mut State, k: i64, all: &[&Sample], line: &Line) {
    // One that holds little, on a card that was never written, costs little to close; only the place makes a boundary of it. Where each of
    // these writes costs more than one in order does, that is no boundary.
    let took: Vec<f64> = all.iter().map(|s| s.took.micros()).collect();
    let usual = line.usual.max(median(&took));
    let slow = |i: &usize| took[*i] > DEARER * usual;
    // The second write into an AU may be the one that pays, as in the walk.
    let between = |i: usize| (all[i - 2].at + all[i - 2].len, all[i].at + all[i].len);
    let crossed: Vec<usize> = (2..all.len()).filter(slow).collect();
    let opened = (0..2.min(all.len())).any(|i| slow(&i));
    let Some(&most) = crossed.iter().max_by_key(|i| all[**i].took) else {
        // The AUs were open, or there is no boundary: no write was slow, or only the first.
        if opened {
            s.edges.missed.push(k)
        } else {
            s.edges.visited.push(k)
        }
        return;
    };
    if !s.edges.look(k, Some(between(most))) {
        return;
    }
    (s.right, s.here) = (s.right + 1, s.here + 1);
    // Where a buffer passes writes on late, what is slow may be the opening of the AU.
    if !opened {
        return;
    }
    // Alike places at a half and at a third of the way to the next, which this look has passed.
    let at = between(most).1 as f64;
    for (part, n) in PARTS.into_iter().enumerate() {
        let way = s.edges.period[0] / n as f64;
        let near = |i: &&usize| {
            let (lo, hi) = between(**i);
            [at - way, at + way].iter().any(|p| (lo as f64..=2.0 * hi as f64 - lo as f64).contains(p))
        };
        if s.between[part].0 < 2 {
            s.beside(part, crossed.iter().any(|i| near(&i)));
        }
    }
}

fn judge(run: &Case) -> Vec<Finding> {
    let q = Quantity::EraseBlock;
    let Some(cell) = run.cells.iter().rev().find(|c| c.bytes("walk") > 0) else {
        let why = match run.believed.number(Quantity::CloseCostMs) {
            Some(_) if !run.samples.is_empty() => "the run ended before a walk began",
            Some(_) => "reads name it; nothing was asked",
            None => run.believed.unmerged(),
        };
        return vec![Finding::undecided(q, why)];
    };
    let (slow, all) = slow_and_all(run, cell);
    if all > 8 && slow * 3 > all {
        return vec![Finding::undecided(q, "most writes of a walk forwards were slow: the card thrashes")];
    }
    let Some(s) = replay(run) else {
        let met = edges_of(run, cell).map_or(0, |e| e.walk.on);
        let why = format!("a walk over {} met {} boundaries at a steady distance", Bytes(walked(run, cell)), met);
        return vec![Finding::undecided(q, why)];
    };
    let e = &s.edges;
    let (size, exact) = e.size(unit(run));
    let text = format!(
        "a walk forwards {} every {}, at {} of {} boundaries, {} stray; {} of {} looks at others, up to {} away, find them",
        if cell.get("again") == 1 { "writes longer" } else { "meets a merge" },
        Bytes(size),
        e.walk.on,
        e.walk.expected,
        e.walk.stray,
        s.right,
        s.right + e.missed.len() as u32,
        Bytes(e.reach() * size),
    );
    // More AUs than stay open were written, so there must be more of them.
    let open = [Quantity::OpenAusLinear, Quantity::OpenAusRandom].into_iter().filter_map(|q| run.believed.whole(q)).max();
    if let Some(open) = open.filter(|k| (k + 1) * size > run.setting("size").unwrap_or(u64::MAX)) {
        let why = format!("{open} AUs stayed open, and the card has no room for so many of {}", Bytes(size));
        return vec![Finding::undecided(q, why).evidence(text)];
    }
    if e.at_left(cell.bytes("left"), cell.bytes("left_from"), size, cell.bytes("stride")) {
        let why = format!("merges come every {}, where AUs of the search before were left open, and may be of those", Bytes(size));
        return vec![Finding::undecided(q, why).evidence(text)];
    }
    // A buffer that is rewritten when it is full pays as regularly (C14), and is smaller than erase blocks of such a card.
    let on_card = |page: Option<f64>| erase_block_prior(size, page.map(|p| p as u64), run.setting("size").unwrap_or(0));
    let prior = run.believed.mean(Quantity::Page, on_card);
    if size < MIB && prior < SAID {
        let why =
            format!("writes are slow every {}, which is little for an erase block: a buffer of that size would show the same", Bytes(size));
        return vec![Finding::undecided(q, why).rivals([(size as f64, prior)]).evidence(text)];
    }
    // A row by chance, or pauses that come with the bytes written, would not be met far away, several times.
    let walk = ((e.walk.score() - 0.5) / 0.45).clamp(0.0, 1.0) * (1.0 - 0.5f64.powi(e.walk.on as i32 - 1));
    let right = (s.right as f64 + 0.5) / (s.right as f64 + e.missed.len() as f64 + 0.5);
    let trust = match s.right {
        // A page map that collects garbage is slow each time it has filled an erase block, wherever the writes go.
        0 if e.missed.len() >= MISSED => 0.0,
        0 => 0.8 * walk,
        1..3 => (0.5 + 0.5 * walk) * 0.9 * right,
        _ => (0.7 + 0.3 * walk) * 0.97 * right.powi(2),
    };
    let round = size.is_power_of_two() || (size.is_multiple_of(3) && (size / 3).is_power_of_two());
    // An odd size needs more: its multiples were met at few places, or the units it is counted in were guessed.
    let unsure = !round && (s.right < 3 || run.believed.write_unit().is_none());
    let trust = trust
        * if size < MIB { prior } else { 1.0 }
        * if exact && unsure {
            0.8
        } else if exact {
            1.0
        } else if round {
            0.9
        } else {
            0.6
        };
    // Looks with gaps pass over boundaries inside a group of erase blocks that share their logs.
    let trust = if s.long { trust.min(GAPS) } else { trust };
    if trust < 0.5 {
        let but = if s.right == 0 && e.missed.is_empty() {
            "no other boundary was looked at"
        } else {
            "boundaries predicted from them are not there"
        };
        let why = format!("slow writes of a walk forwards come about every {}, but {but}", Bytes(size));
        return vec![Finding::undecided(q, why).evidence(text)];
    }
    let found = Finding::decided(q, size as f64, trust)
        .rivals([(size as f64 * 2.0, (1.0 - trust) / 2.0), (size as f64 / 2.0, (1.0 - trust) / 4.0)])
        .evidence(text);
    vec![found, offset(run, e, size, trust)]
}

/// The score of erase blocks that do not begin at 0 but on the grid of write units: below those that begin at 0. `confidence.tsv` makes a
/// share of it.
const ELSEWHERE: f64 = 0.65;

/// Where partitions began for twenty-five years, behind 63 sectors: erase blocks may be placed for what begins there. Of six cards of the fit
/// whose boundary lies between 16 or 28 and 32 KiB all six have it there; of a wider stretch nothing is known.
const SECTORS_63: i64 = 63 * 512;
const WIDEST_63: i64 = 16 << 10;

/// Where boundaries begin: exactly, on the grid of units, or between two places.
fn offset(run: &Case, e: &Edges, size: u64, trust: f64) -> Finding {
    let q = Quantity::EraseBlockOffset;
    let Some((lo, hi)) = e.phase(size) else { return Finding::undecided(q, "the boundaries seen do not agree on one place") };
    let unit = unit(run) as i64;
    let sector = run.setting("sector").unwrap_or(512).max(512) as i64;
    // Units and the first erase block are counted from the start of the disk; a partition may begin between two units.
    let disk = run.setting("offset").unwrap_or(0) as i64;
    // Places on the unit's grid where the boundary may lie.
    let first = (lo + disk).div_euclid(unit) + ((lo + disk).rem_euclid(unit) != 0) as i64;
    let on_grid: Vec<i64> = (first..).map(|n| n * unit - disk).take_while(|&p| p < hi).take(3).collect();
    let text = format!("a boundary lies between {} and {}", Bytes(lo.max(0) as u64), Bytes(hi.max(0) as u64));
    let size = size as i64;
    let start = lo + (-disk - lo).rem_euclid(size);
    let old = SECTORS_63 - disk;
    let elsewhere = (trust * 0.97).min(ELSEWHERE);
    let mut f = match on_grid[..] {
        // The write that fills an AU may close it: then the stall comes in front of the boundary. Or the card begins there.
        _ if start == hi => Finding::decided(q, start.rem_euclid(size) as f64, (trust * 0.85).min(ELSEWHERE)).evidence(text),
        _ if hi - lo <= sector => {
            // No page begins there, so a log for the smallest writes may have moved it.
            let odd = (lo + disk) % 4096 != 0;
            return Finding::decided(q, lo.rem_euclid(size) as f64, if odd { trust * 0.85 } else { trust }).evidence(text);
        }
        _ if start > hi && (lo..hi).contains(&old) && hi - lo <= WIDEST_63 => {
            let units = on_grid.iter().filter(|p| **p != old).map(|p| (p.rem_euclid(size) as f64, (1.0 - elsewhere) / 4.0));
            Finding::decided(q, old.rem_euclid(size) as f64, elsewhere)
                .rivals(units)
                .evidence(format!("{text}, and partitions began at 63 sectors"))
        }
        [one] if run.believed.write_unit().is_some() && !run.believed.units_off_grid() => {
            // Nearly all cards begin there; nothing was measured that says so. One that does not begin at 0 may begin off that grid as well.
            let zero = (one + disk).rem_euclid(size) == 0;
            Finding::decided(q, one.rem_euclid(size) as f64, if zero { (trust * 0.97).min(0.88) } else { elsewhere })
                .evidence(format!("{text}, on the grid of write units"))
        }
        _ if start < hi => Finding::decided(q, start.rem_euclid(size) as f64, trust * 0.85).evidence(text),
        _ => Finding::undecided(q, format!("{text}; writes small enough to say more show none")),
    };
    f.interval = Some([lo.max(0) as f64, hi.max(0) as f64]);
    f
}

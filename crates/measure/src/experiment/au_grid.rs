//! Where do AUs begin, and how large are they, when reads do not say? (Q1, Q5-Q7)
//!
//! *Walk*: writes forwards, with gaps where an AU takes random writes, without where it does not, jumping ahead after every
//! slow one: entering an AU closes an older one. Either way no AU is ever full, for a full one is cheap to close. *Look*: each
//! boundary of the walk is known to one step only, so a boundary far away is predicted and written across in small steps: seen
//! there, it names the size a hundred times better, and speaks against pauses that come with the bytes written. Smaller
//! and smaller writes across one boundary then tell where it lies.
//!
//! What fools it: a card that thrashes (most writes of the walk are slow: undecided), small writes that the card puts aside or
//! combines (the search for the exact place ends there), AUs so large that the walk meets too few.

mod walk;

use super::read_boundary::erase_block_prior;
use super::slots::Slots;
use super::{About, Bench, Experiment, Figure, Series, Setup};
use crate::device::DeviceError;
use crate::finding::{Finding, Findings, Quantity, SAID};
use crate::infer::edges::Edges;
use crate::samples::{Cell, Run};
use crate::units::{Bytes, KIB, MIB};

use walk::*;

pub struct AuGrid;

static ABOUT: About = About {
    name: "au-grid",
    question: "Where do AUs begin, and how large are they, when reads do not say?",
    method: "a walk of small writes pays at every AU it enters; then small steps across boundaries predicted further and further away",
    writes: true,
    answers: &[Quantity::EraseBlock, Quantity::EraseBlockOffset],
    roles: &["walk", "look", "fill"],
    covers: "Q1, Q5-Q7",
};

const WALK: u8 = 0;
const LOOK: u8 = 1;
const FILL: u8 = 2;

/// Boundaries that a walk meets before the looks begin.
const MET: usize = 4;
/// Looks that found nothing, at which the search ends.
const MISSED: usize = 4;
/// The most looks: some fall on AUs that are open already and say nothing.
const LOOKS: usize = 32;
/// Looks of shorter writes that cost nothing at all, at which the search ends.
const QUIET: u32 = 2;
/// Parts of the distance at which there must be no boundary.
const PARTS: [i64; 2] = [2, 3];
/// Steps of a walk to an AU, at least, where steps grow.
const FINE: u64 = 32;
/// Nobody has reported more open AUs (U9).
const MOST_OPEN: u64 = 64;
/// Writes of one look, about.
const STEPS: f64 = 16.0;
/// Confidence at which nothing is left to ask.
const KNOWN: f64 = 0.9;

impl Experiment for AuGrid {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn needs(&self) -> &'static [&'static str] {
        super::MERGES
    }

    fn cells(&self, setup: &Setup) -> Vec<Cell> {
        let known = |q: Quantity, least: f64| setup.known.value(q, least);
        let read = known(Quantity::EraseBlock, KNOWN).and(known(Quantity::EraseBlockOffset, KNOWN));
        let Some(cost) = known(Quantity::CloseCostMs, 0.5).filter(|_| read.is_none()) else { return vec![] };
        let settings = setup.setting();
        let setting = |k: &str| settings.get(k).map(|&v| v.max(0) as u64);
        let Some(slots) = Slots::plan(&setting) else { return vec![] };
        // Writes as long as those that showed the cost: smaller ones may go to a log of their own.
        let chunk = slots.chunk;
        let window = (384 * MIB).min((setup.region.end - setup.region.start) / 4);
        let stride = if takes_random(setup) { (4 * chunk).max(64 * KIB) } else { chunk };
        let walk = walk(window, chunk, stride, (cost * 1e3) as u64);
        // A walk in order pays when as many AUs are open as may be; where nobody knows how many those are, they may be few now.
        let unknown = stride <= chunk && setting("open_aus_linear").is_none();
        vec![if unknown { fill(&setting, &walk).unwrap_or(walk) } else { walk }]
    }

    fn wants(&self, cell: &Cell, run: &Run) -> bool {
        if cell.get("look") == 1 || cell.get("fill") > 0 {
            return run.of(cell.id).next().is_none();
        }
        let (slow, all) = slow_and_all(run, cell);
        let thrash = all > 24 && slow * 2 > all;
        !thrash
            && finer(run, cell).is_none()
            && walked(run, cell) < cell.bytes("walk")
            && edges_of(run, cell)
                .is_none_or(|e| e.walk.on < MET || e.walk.score() < 0.85 || (e.period[1] - e.period[0]) * narrow(&e, cell) > e.period[0])
    }

    fn trial(&self, cell: &Cell, _n: u32, b: &mut Bench) -> Result<(), DeviceError> {
        let (chunk, line) = (cell.bytes("chunk"), Line::new(b.run, cell));
        if cell.get("fill") > 0 {
            // Until one has to be closed for it.
            for i in 0..cell.bytes("fill") {
                let took = b.write(FILL, cell.bytes("from") + i * cell.bytes("apart"), chunk)?;
                if line.slow(chunk, took) {
                    break;
                }
            }
            return Ok(());
        }
        if cell.get("look") == 1 {
            let (from, to) = (cell.bytes("from"), cell.bytes("to"));
            for i in 0.. {
                let at = from + i * chunk;
                // The first write opens the AU; one that is slow later has crossed.
                if at >= to || at + chunk > b.region.end || (line.slow(chunk, b.write(LOOK, at, chunk)?) && i > 0) {
                    break;
                }
            }
            return Ok(());
        }
        let stride = cell.bytes("stride");
        let last = b.run.of(cell.id).map(|s| s.at + s.len).max();
        let slow: Vec<u64> = b.run.of(cell.id).filter(|s| line.slow(s.len, s.took)).map(|s| s.at).collect();
        let between = slow.windows(2).last().map_or(0, |w| w[1].saturating_sub(w[0]));
        // Jump into the AU just entered, so that it is left with a hole at its front: the larger, the more closing it costs.
        // Not by the same length each time: all boundaries might lie in what is jumped over.
        let part = between / 8 / chunk * (50 + b.below(100)) / 100;
        let jump = if stride > chunk { stride - chunk } else { (2 + b.below(14)).max(part) * chunk };
        let mut at = last.map_or(walk_start(b.run, cell), |l| l + jump);
        // A large AU need not be met as exactly as a small one.
        let entered = slow.last().copied().unwrap_or(walk_start(b.run, cell));
        let most = if stride > chunk { 1 } else { line.longer() };
        for i in 0..64 {
            let times = 1 << (at.saturating_sub(entered) / (FINE * stride)).clamp(1, most).ilog2();
            let len = chunk * times;
            if at + len > b.region.end || (line.slow(len, b.write(WALK, at, len)?) && i > 0) {
                break;
            }
            at += stride * times;
        }
        Ok(())
    }

    fn more(&self, run: &Run) -> Vec<Cell> {
        let Some(first) = run.cells.iter().find(|c| c.bytes("walk") > 0) else {
            let filled = run.cells.first().filter(|c| c.get("fill") > 0);
            return filled.map(|c| walk(c.bytes("then"), c.bytes("chunk"), c.bytes("stride"), c.bytes("cost"))).into_iter().collect();
        };
        // The same with smaller steps, once.
        if let Some(stride) = finer(run, first) {
            // Elsewhere, for a card may keep AUs open that are written again.
            let from = run.of(first.id).map(|s| s.at + s.len).max().unwrap_or(0).next_multiple_of(MIB) + MIB;
            let mut again = walk(first.bytes("walk").min(24 * MIB), first.bytes("chunk"), stride, first.bytes("cost"));
            again.set.insert("from".into(), from as i64);
            return vec![again];
        }
        let Some(state) = replay(run) else { return vec![] };
        let never = run.cells.iter().all(|c| c.get("fill") == 0);
        let fill = if never && state.right == 0 && state.quiet > 0 { fill(&|k| run.setting(k), first) } else { None };
        fill.or_else(|| state.next(run)).into_iter().collect()
    }

    /// The cost of closing became known since.
    fn again(&self, run: &Run, known: &Findings) -> bool {
        let unread = known.value(Quantity::EraseBlock, KNOWN).is_none() || known.value(Quantity::EraseBlockOffset, KNOWN).is_none();
        run.samples.is_empty() && unread && known.value(Quantity::CloseCostMs, 0.5).is_some()
    }

    fn infer(&self, run: &Run) -> Vec<Finding> {
        let mut out = judge(run);
        for f in &mut out {
            f.caveats.push("write alignment is unreliable once a card thrashes".into());
        }
        out
    }

    fn figures(&self, run: &Run) -> Vec<Figure> {
        let points = |role: u8| {
            run.samples.iter().filter(|s| s.role == role).map(|s| (s.at as f64 / MIB as f64, s.took.millis())).collect::<Vec<_>>()
        };
        vec![Figure {
            title: "time of small writes forwards".into(),
            x: "MiB".into(),
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
struct State {
    edges: Edges,
    cell: Cell,
    /// Lengths of the writes, largest first, and the one in use.
    lengths: Vec<u64>,
    level: usize,
    /// Looks that were right, and of them those at the present length.
    right: u32,
    here: u32,
    /// Looks at a half and at a third of the way between two boundaries, and how many of them crossed one.
    between: [(u32, u32); 2],
    /// Looks at the present length of which not even the first write paid.
    quiet: u32,
    /// Writes of the present length show nothing.
    blind: bool,
    looks: usize,
}

fn replay(run: &Run) -> Option<State> {
    // Of two walks the one in smaller steps, if it met boundaries.
    let row = |c: &Cell| edges_of(run, c).filter(|e| e.walk.on >= 3 && e.walk.score() > 0.6);
    let (cell, edges) = run.cells.iter().rev().filter(|c| c.bytes("walk") > 0).find_map(|c| Some((c.clone(), row(c)?)))?;
    let (chunk, sector) = (cell.bytes("chunk"), run.setting("sector").unwrap_or(512).max(512));
    let mut lengths = vec![chunk];
    for l in [unit(run), unit(run) / 8 / sector * sector, sector] {
        if l >= sector && l < lengths[lengths.len() - 1] {
            lengths.push(l);
        }
    }
    let mut s = State { edges, cell, lengths, level: 0, right: 0, here: 0, between: [(0, 0); 2], quiet: 0, blind: false, looks: 0 };
    let line = Line::new(run, &s.cell);
    for c in run.cells.iter().filter(|c| c.get("look") == 1) {
        s.looks += 1;
        let level = s.lengths.iter().position(|&l| l == c.bytes("chunk")).unwrap_or(0);
        if level != s.level {
            (s.level, s.here, s.quiet) = (level, 0, 0);
        }
        let all: Vec<_> = run.of(c.id).collect();
        let found = all.windows(2).find(|w| line.slow(w[1].len, w[1].took)).map(|w| (w[1].at, w[1].at + w[1].len));
        // The AU before was open already, so the one behind may be, too: that says nothing. Or shorter writes go to a log of
        // their own, and what is slow among them is the emptying of that.
        let quiet = all.first().is_none_or(|f| !line.slow(f.len, f.took));
        if quiet && (found.is_none() || level > 0) {
            s.edges.visited.push(c.get("k"));
            s.quiet += 1;
            s.blind |= level > 0 && s.quiet >= QUIET;
            continue;
        }
        if let Some(part) = PARTS.iter().position(|&p| p == c.get("part")) {
            s.edges.visited.push(c.get("k"));
            let b = &mut s.between[part];
            *b = (b.0 + 1, b.1 + found.is_some() as u32);
            // Boundaries between those met: some were passed without a cost that stood out, their AUs being open already.
            if *b == (2, 2) {
                s.edges.divide(PARTS[part]);
                // What was seen before says nothing of those between, nor of what lies between them.
                (s.right, s.between) = (0, [(0, 0); 2]);
            }
            continue;
        }
        // Below one unit a card may put writes aside or combine them: then they cost little, or show no boundary.
        if s.lengths[level] < unit(run).min(chunk) {
            let quick = all.iter().skip(1).map(|x| x.took.micros()).fold(f64::INFINITY, f64::min);
            if found.is_none() || quick < 0.5 * line.usual {
                s.blind = true;
                continue;
            }
        }
        if s.edges.look(c.get("k"), found) {
            s.right += 1;
            s.here += 1;
        }
    }
    Some(s)
}

impl State {
    /// The next look, if there is something left to know.
    fn next(mut self, run: &Run) -> Option<Cell> {
        if self.edges.missed.len() >= MISSED || self.blind || self.looks >= LOOKS {
            return None;
        }
        // Inside the region with all its steps, half a distance further too, and not at its start, where a FAT zone may be.
        let (start, end) = (run.setting("start")?, run.setting("end")?);
        let ahead = self.edges.period[1] as u64 + 8 * self.lengths[0];
        let far = self.edges.window.end + (128.0 * self.edges.period[1]) as u64;
        let last = (start + (end - start) / 4).max(far).min(end.saturating_sub(ahead));
        let room = (start + (end - start) / 16 + 4 * self.lengths[0])..last;
        // Between two boundaries there should be none: one look at each place, and another if there is.
        let part = self.between.iter().position(|b| b.0 == 0 || *b == (1, 1)).filter(|_| self.right >= 3);
        if let Some((part, k)) = part.zip(self.edges.farthest(STEPS * self.lengths[0] as f64, &room)) {
            return Some(self.look(k, self.lengths[0], PARTS[part]));
        }
        while let Some(&len) = self.lengths.get(self.level) {
            let doubt = self.edges.period[1] - self.edges.period[0];
            let enough = match self.level {
                0 => self.right >= 4 && doubt < unit(run) as f64 / 4.0 || self.here >= 8,
                _ => self.here >= 2,
            };
            // What a longer step left open may need more than the usual number of steps.
            let k = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0].iter().find_map(|x| self.edges.farthest(x * STEPS * len as f64, &room));
            if let Some(k) = k.filter(|_| !enough) {
                return Some(self.look(k, len, 1));
            }
            (self.level, self.here) = (self.level + 1, 0);
        }
        None
    }

    /// `part`: 1 at the boundary, 2 or 3 that part of the way to the next.
    fn look(&self, k: i64, len: u64, part: i64) -> Cell {
        let [lo, hi] = self.edges.expect(k);
        let aside = if part > 1 { self.edges.period[0] / part as f64 } else { 0.0 };
        let from = ((lo + aside).max(0.0) as u64).saturating_sub(2 * len) / len * len;
        let to = ((hi + aside) as u64 + 2 * len).next_multiple_of(len);
        let set = [
            ("look", 1),
            ("k", k),
            ("part", part),
            ("from", from as i64),
            ("to", to as i64),
            ("chunk", len as i64),
            ("cost", self.cell.get("cost")),
        ];
        let label = if part > 1 { format!("beside boundary {k}, {}", Bytes(len)) } else { format!("boundary {k}, {}", Bytes(len)) };
        Cell::new(label, &set)
    }
}

fn judge(run: &Run) -> Vec<Finding> {
    let q = Quantity::EraseBlock;
    let Some(cell) = run.cells.iter().rev().find(|c| c.bytes("walk") > 0) else {
        let why = match run.setting("close_cost_us") {
            Some(_) => "reads name it; nothing was asked",
            None => super::unmerged(run),
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
        "a walk forwards pays for closing an AU every {}, at {} of {} boundaries, {} stray; {} of {} looks at others, up to {} away, find them",
        Bytes(size),
        e.walk.on,
        e.walk.expected,
        e.walk.stray,
        s.right,
        s.right + e.missed.len() as u32,
        Bytes(e.reach() * size),
    );
    // More AUs than stay open were written, so there must be more of them.
    let open = ["open_aus_linear", "open_aus_random"].into_iter().filter_map(|k| run.setting(k)).max();
    if let Some(open) = open.filter(|k| (k + 1) * size > run.setting("size").unwrap_or(u64::MAX)) {
        let why = format!("{open} AUs stayed open, and the card has no room for so many of {}", Bytes(size));
        return vec![Finding::undecided(q, why).evidence(text)];
    }
    // A buffer that is rewritten when it is full pays as regularly (C14), and is smaller than erase blocks of such a card.
    let prior = erase_block_prior(size, run.setting("page"), run.setting("size").unwrap_or(0));
    if size < MIB && prior < SAID {
        let why =
            format!("writes pay every {}, which is little for an erase block: a buffer of that size would show the same", Bytes(size));
        return vec![Finding::undecided(q, why).evidence(text)];
    }
    // A row by chance, or pauses that come with the bytes written, would not be met far away, several times.
    let walk = ((e.walk.score() - 0.5) / 0.45).clamp(0.0, 1.0) * (1.0 - 0.5f64.powi(e.walk.on as i32 - 1));
    let right = (s.right as f64 + 0.5) / (s.right as f64 + e.missed.len() as f64 + 0.5);
    let trust = match s.right {
        0 => 0.8 * walk,
        1..3 => (0.5 + 0.5 * walk) * 0.9 * right,
        _ => (0.7 + 0.3 * walk) * 0.97 * right.powi(2),
    };
    let round = size.is_power_of_two() || (size.is_multiple_of(3) && (size / 3).is_power_of_two());
    // An odd size needs more: its multiples were met at few places, or the units it is counted in were guessed.
    let unsure = !round && (s.right < 3 || run.setting("write_unit").is_none());
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
    if trust < 0.5 {
        let why =
            format!("slow writes of a walk forwards come about every {}, but boundaries predicted from them are not there", Bytes(size));
        return vec![Finding::undecided(q, why).evidence(text)];
    }
    let found = Finding::decided(q, size as f64, trust)
        .rivals([(size as f64 * 2.0, (1.0 - trust) / 2.0), (size as f64 / 2.0, (1.0 - trust) / 4.0)])
        .evidence(text);
    vec![found, offset(run, e, size, trust)]
}

/// Where boundaries begin: exactly, on the grid of units, or between two places.
fn offset(run: &Run, e: &Edges, size: u64, trust: f64) -> Finding {
    let q = Quantity::EraseBlockOffset;
    let Some((lo, hi)) = e.phase(size) else { return Finding::undecided(q, "the boundaries seen do not agree on one place") };
    let unit = unit(run) as i64;
    let sector = run.setting("sector").unwrap_or(512).max(512) as i64;
    // Places on the unit's grid where the boundary may lie.
    let first = lo.div_euclid(unit) + (lo.rem_euclid(unit) != 0) as i64;
    let on_grid: Vec<i64> = (first..).map(|n| n * unit).take_while(|&p| p < hi).take(3).collect();
    let text = format!("a boundary lies between {} and {}", Bytes(lo.max(0) as u64), Bytes(hi.max(0) as u64));
    let size = size as i64;
    let mut f = match on_grid[..] {
        _ if hi - lo <= sector => {
            // No page begins there, so a log for the smallest writes may have moved it.
            let odd = (lo + run.setting("offset").unwrap_or(0) as i64) % 4096 != 0;
            return Finding::decided(q, lo.rem_euclid(size) as f64, if odd { trust * 0.85 } else { trust }).evidence(text);
        }
        [one] if run.setting("write_unit").is_some() => {
            // Nearly all cards begin there; nothing was measured that says so.
            Finding::decided(q, one.rem_euclid(size) as f64, (trust * 0.97).min(0.88))
                .evidence(format!("{text}, on the grid of write units"))
        }
        _ if lo <= 0 && hi > 0 => Finding::decided(q, 0.0, trust * 0.85).evidence(text),
        _ => Finding::undecided(q, format!("{text}; writes small enough to say more show none")),
    };
    f.interval = Some([lo.max(0) as f64, hi.max(0) as f64]);
    f
}

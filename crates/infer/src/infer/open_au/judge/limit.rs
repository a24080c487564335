//! So many AUs stay open, and one more costs a closing: how surely, and what it says of the mapping.

use super::*;
use crate::finding::{CONTRADICTED, SAID};
use crate::units::GIB;

/// µs: no card takes longer to move a piece of its map, or to write a unit again.
const PIECE_US: f64 = 12_000.0;

/// The same where reads show that the map is in pieces, whose size is known then.
const LARGE_PIECE_US: f64 = 60_000.0;

const BARELY: &str = "slow writes come with many AUs, but cost little more than others";

/// Why so little is no merge.
const CHEAP: &str = "slow writes come with many AUs, but cost less than copying an erase block does at the rate this card writes: a change of place, \
                     or a piece of a map that is moved";

/// Bytes of an erase block that is not known, on a card of `LARGE` and more: half a MiB at least on any of these.
const LEAST_BLOCK: u64 = 512 * KIB;
const LARGE: i64 = GIB as i64;
/// So many slow writes are dear at least, and one in so many of them: more than stalls are.
const DEAR: usize = 3;
const DEAR_IN: usize = 4;

/// One write in so many is slow: more often than any host stalls (at most one in twenty, published for a PCIe reader).
const OFTEN: u32 = 5;

/// How sure what settled can be where a search to the end found no fewer AUs at rest once more of them had been slow: a table that evicts at random
/// looks so, and a full cache does.
const STAYED_SLOW: f64 = 0.65;

/// How sure a number can be that rests on something that was not looked at: a cache that may have been full, the end of a merge that goes on.
const GUESSED: f64 = 0.88;

/// How sure a limit can be, whatever the visits say.
struct Weights {
    /// That what costs more is a closing, 0 to 1.
    contrast: f64,
    /// That there is a limit at all.
    limited: f64,
    /// That the places were AUs of their own.
    known: f64,
    /// Nothing came and went.
    surely: bool,
}

impl Seen<'_> {
    pub(super) fn limit(&self) -> Vec<Finding> {
        let over = self.over();
        // As when the run ended in the first round with more.
        if over.is_empty() {
            let sure = self.sure(self.belief.proved);
            return self.settled(format!("no write was slow with more than {} AUs interleaved, though some were with fewer", self.k), sure);
        }
        let slow = self.closing(&over);
        if !self.always() && self.cheap(slow) {
            return if self.came_back() { self.settled(CHEAP.into(), 1.0) } else { self.neither(CHEAP.into()) };
        }
        let side_by_side = self.side_by_side();
        if side_by_side == Some(Neighbours::Together) && slow - self.base < LARGE_PIECE_US {
            return self.neither(format!(
                "{} AUs all over the card incur slow writes, and as many side by side do not: pieces of a map that hold several, or logs that several \
                 share",
                self.k + 1
            ));
        }
        let weights = self.weights(slow);
        if side_by_side == Some(Neighbours::Fewer) {
            let many = if self.random { "in sequential order".to_string() } else { self.belief.proved.to_string() };
            let why = format!(
                "{many} AUs all over the card settled, and as many side by side did not: the card keeps fewer open for each part of it"
            );
            let mut found = self.count(&over, &weights);
            found.iter_mut().filter(|f| f.quantity == self.q).for_each(|f| f.becomes(Finding::undecided(self.q, why.clone())));
            return found;
        }
        if self.held() == Some(true) {
            let found = self.at_least(&over, &weights, &self.held_on());
            return found.into_iter().map(|f| self.once(f, open_in_linear(self.run) as u32)).collect();
        }
        // Of so many, one or two more or less.
        if !weights.surely && self.k > if self.belief.ruled() { 20 } else { 16 } {
            let why = "with more, slow visits came and went: the times do not show how many more are kept open";
            return self.at_least(&over, &weights, why);
        }
        // Writes kept short for a slow bus may be shorter than a unit, and then be gathered as long as they go to one AU only.
        if self.short() && self.k == 1 && !self.random {
            let chunk = Bytes(self.slots.chunk);
            return self.neither(format!("writes of {chunk} may be coalesced into one unit as long as they go to one AU"));
        }
        if self.random && self.k == 0 && self.fills_soon(median(&over)) {
            return self.neither(format!(
                "writes of {} may fill the log of an erase block hardly larger every few of them, and then incur a merge with any number of AUs; \
                 shorter writes would decide it",
                Bytes(self.slots.chunk)
            ));
        }
        let found = self.count(&over, &weights);
        let k = f64::from(self.k);
        if self.rests_late() {
            let why = "any AU may be evicted, and until all of so many have come in writes are slow now and then, as with too many";
            return found.into_iter().map(|f| self.as_bound(f, k, CONTRADICTED, why)).collect();
        }
        let Some(share) = self.settled_at_a_cost() else { return found };
        let why = format!(
            "{k} settled, but {:.0} % of these writes took a little longer than with fewer: merges of AUs that hold little cost next to nothing",
            100.0 * share
        );
        found.into_iter().map(|f| self.as_bound(f, k - 1.0, 1.0, &why)).collect()
    }

    /// What AUs side by side showed. In random order they are not tried again: a card that keeps fewer for each part of it does so in that order, too.
    fn side_by_side(&self) -> Option<Neighbours> {
        match self.random {
            true => self.run.believed.neighbours.filter(|n| self.k > 0 && *n == Neighbours::Fewer),
            false => neighbours(self.run),
        }
    }

    /// The count as a bound, `at_most` as sure; other findings as they are.
    fn as_bound(&self, mut f: Finding, least: f64, at_most: f64, why: &str) -> Finding {
        if f.quantity == self.q && f.number() == Some(f64::from(self.k)) {
            f.becomes(Finding::at_least(self.q, least, f.confidence.min(at_most), why));
        }
        f
    }

    /// No number, but what settled, `at_most` as sure.
    fn settled(&self, why: String, at_most: f64) -> Vec<Finding> {
        let bound = self.at_rest(&why, at_most.min(0.78));
        bound.map_or_else(|| self.neither(why.clone()), |b| vec![b, Finding::undecided(Quantity::Mapping, why.clone())])
    }

    /// Does the card hold on to AUs written before, so that fewer in random order than in linear order says nothing? `None` where that is
    /// not known, and would have to be.
    fn held(&self) -> Option<bool> {
        let fewer = self.random && self.k > 0 && open_in_linear(self.run) > i64::from(self.k);
        if !fewer || at_random(&self.belief) {
            return Some(false);
        }
        still_open(self.run, self.line?).map(|open| !open)
    }

    fn held_on(&self) -> String {
        let n = open_in_linear(self.run);
        format!(
            "{n} AUs were kept open in sequential order before, and no longer are: the card holds on to AUs written before, and has room for fewer"
        )
    }

    fn weights(&self, slow: f64) -> Weights {
        let Seen { run, k, base, .. } = *self;
        // A cut that costs little more than the writes themselves may be something else: heat, or an erase block rewritten twice. Less
        // likely so where it costs more than moving a piece of a map or writing a unit anew.
        let dear = if rewrites(run).is_none() { ((slow - base - PIECE_US) / PIECE_US).clamp(0.0, 0.5) } else { 0.0 };
        let contrast = ((slow / base - 1.5) / 4.5).clamp(dear, 1.0);
        let limited = (1.0 - self.belief.by.p.last().map_or(0.0, |l| l.1)) * (0.4 + 0.6 * contrast);
        // Where AUs end is not known: one that lies across a boundary counts for two.
        let grid = run.grid();
        let placed = grid.phase.or(grid.about);
        // Or two places lie in one AU, where they had to be close.
        // Or neighbours share what is kept open for them, on a card too small to spread the AUs.
        let apart = self.slots.apart(k as usize + 1);
        let close = |e: u64| apart < 12 * e && k > 8;
        // Nor where the places were counted in others than those that are believed in now.
        let known = match grid.unit.filter(|u| run.believed.erase_block() == Some(*u)).zip(placed) {
            Some((e, _)) if close(e) => 0.89,
            Some(_) => 1.0,
            None if apart >= 64 * MIB => 0.89,
            None => 0.8,
        };
        Weights { contrast, limited, known, surely: self.surely() }
    }

    /// What a closing takes, in µs, of writes that were slow. Merges of AUs that are seen to have held no data copy nothing, and may take no
    /// longer than moving a piece of a map: where they are most, the others tell.
    fn closing(&self, over: &[f64]) -> f64 {
        let usual = median(over);
        let dear: Vec<f64> = over.iter().copied().filter(|t| t - self.base >= PIECE_US).collect();
        let some = dear.len() >= DEAR && DEAR_IN * dear.len() >= over.len();
        if usual - self.base < PIECE_US && some && empty_beside(self.run).is_some() { median(&dear) } else { usual }
    }

    /// Does a slow write of so many µs take too little longer for a merge, and no longer than moving a piece of a map may?
    fn cheap(&self, slow: f64) -> bool {
        let Seen { run, base, .. } = *self;
        let large = run.setting.get("size").is_some_and(|s| *s >= LARGE);
        let (block, piece) = match run.believed.pieces {
            Some(piece) => (Some(piece), LARGE_PIECE_US),
            None => (run.believed.erase_block().or(large.then_some(LEAST_BLOCK)), PIECE_US),
        };
        let copies = |block: u64| block as f64 / self.slots.chunk as f64 * base / FASTER;
        slow - base < piece && block.is_some_and(|b| slow - base < copies(b))
    }

    /// Rounds that came to rest prove that so many fit; without them the number rests on how often visits were slow.
    fn surely(&self) -> bool {
        let Seen { k, ref belief, .. } = *self;
        // A table that throws out at random is slow only now and then, and comes to rest late: one more may have fitted.
        let next = belief.last.iter().map(|v| v.n).filter(|&n| n > k).min();
        let beyond = belief.last.iter().filter(|v| Some(v.n) == next).flat_map(|v| &v.rounds).fold((0, 0), |a, r| (a.0 + r.1, a.1 + r.0));
        let scattered = beyond.0 * 4 < beyond.1 && k > 8;
        // Random replacement is followed only about: it tells one of a few, not of dozens.
        // Or it came to rest once, and not when it was opened anew.
        let restless = k > 8 && belief.last.iter().rev().find(|v| v.n == k).is_some_and(|v| !v.settled());
        belief.foretold() || k <= belief.proved.max(1) && !scattered && !restless
    }

    /// Did the run end before more AUs than stay open were opened anew? What was open before is thrown out by and by, which looks like
    /// one too many where no policy says when.
    fn half_tried(&self) -> bool {
        let over = |c: &&Cell| c.get("again") == 1 && c.get("random") == self.random as i64 && c.get("n") > self.k as i64;
        let anew = self.run.cells.iter().filter(over).any(|c| self.run.of(c.id).next().is_some());
        self.run.ended != Ended::Complete && !anew && !self.belief.foretold()
    }

    /// Were fewer AUs at rest again, once more of them had been slow? A limit lets them be; a cache that is full by then does not.
    fn came_back(&self) -> bool {
        let (run, k) = (self.run, i64::from(self.k));
        let line = self.line.unwrap_or(f64::INFINITY);
        let visit = |s: &Sample| {
            let cell = run.cell(s.cell).filter(|c| c.get("random") == self.random as i64 && s.role > 0)?;
            Some((cell.get("n"), s.took.micros() > line))
        };
        let since: Vec<(i64, bool)> = writes(run).filter_map(visit).skip_while(|&(n, slow)| !slow || n <= k).collect();
        // One AU alone closes none.
        let [more, fewer] =
            [2.max(k + 1)..=i64::MAX, 2..=k].map(|of| since.iter().filter(|v| of.contains(&v.0)).copied().collect::<Vec<_>>());
        let sum = |visits: &[(i64, bool)]| (visits.iter().filter(|v| v.1).count(), visits.len());
        let over = sum(&more);
        // As many visits as AUs, one in eight slow at most, and half as often as with more.
        let rested = |visits: &[(i64, bool)]| {
            let (slow, all) = sum(visits);
            all as i64 >= visits[0].0 && slow * 8 <= all && slow * over.1 * 2 <= over.0 * all
        };
        more.is_empty() || fewer.chunk_by(|a, b| a.0 == b.0).any(rested)
    }

    /// Were the writes shorter than a unit?
    fn short(&self) -> bool {
        self.slots.chunk < self.run.believed.write_unit().unwrap_or(16 * KIB)
    }

    /// Dozens, of which only those that came to rest are sure.
    fn at_least(&self, over: &[f64], w: &Weights, why: &str) -> Vec<Finding> {
        let Seen { run, q, base, ref belief, .. } = *self;
        let held = self.held() == Some(true);
        if held && belief.proved < 2 {
            return vec![Finding::undecided(q, why)];
        }
        let stayed_slow = !held && !self.came_back();
        if stayed_slow && run.ended != Ended::Complete {
            return self.neither(format!(
                "{} AUs settled, and with more writes were slow: a limit, or a cache that was full by then; the run ended before fewer AUs were at rest again",
                belief.proved
            ));
        }
        if !held && belief.proved <= 4 {
            return vec![Finding::undecided(q, format!("the cut lies near {}, but the times do not agree", self.k))];
        }
        let each = format!("{} ms a write of {}", three(base / 1e3), Bytes(self.slots.chunk));
        let text = format!("{} AUs interleaved, {}, settled: {each}", belief.proved, self.order());
        let fits = belief.by.p.iter().filter(|p| p.0 >= belief.proved).map(|p| p.1).sum::<f64>().min(w.known);
        let fits = fits.min(if stayed_slow { STAYED_SLOW } else { 0.87 });
        let least = Finding::at_least(q, belief.proved as f64, fits, why).evidence(text.clone());
        let mapping = match w.limited < 0.8 {
            true => Finding::undecided(Quantity::Mapping, BARELY),
            false => Finding::decided(Quantity::Mapping, 1.0, 0.65).evidence(text),
        };
        // What a closing costs is known all the same.
        let cost = (over.len() >= 3 && w.limited >= 0.8).then(|| self.close_cost(over, fits.min(0.8)));
        [least, mapping].into_iter().chain(cost).collect()
    }

    fn count(&self, over: &[f64], w: &Weights) -> Vec<Finding> {
        let Seen { run, random, k, top, base, .. } = *self;
        let (slow, chunk, once_more) = (median(over), self.slots.chunk, once_more(run));
        // A card that writes a unit once only takes a write that begins in the middle of one for random order.
        let grid = run.grid();
        let on_units = |unit: u64| chunk.is_multiple_of(unit) && grid.slack.is_none();
        let in_order = random || k > 1 || run.believed.write_unit().is_some_and(on_units) && grid.phase.is_some();
        // A cache that was filled before may have had room again, and was full in the middle of the search.
        // Nor is it known that the run ended before a cache was full, where one AU was not tried once more.
        let guessed = run.believed.filled().is_some() || once_more.is_none() || self.short() || !in_order || self.held().is_none();
        let most_sure = if self.half_tried() || k > 1 && !self.came_back() {
            0.8
        } else if guessed {
            GUESSED
        } else {
            0.98
        };
        let rest = if w.surely { 1.0 } else { 0.87 };
        let trust = (top * w.known * rest * (0.4 + 0.6 * w.contrast)).min(most_sure);
        let aus = |n: u32| format!("{n} AU{}", if n == 1 { "" } else { "s" });
        let text = match k {
            0 => format!(
                "one AU alone, {}, {}: {} ms a write; the fastest writes in sequential order: {} ms",
                self.order(),
                Bytes(chunk),
                three(slow / 1e3),
                three(quantile(&fast(run), 0.0) / 1e3)
            ),
            _ => format!(
                "{}, {}, {}: {} ms a write; {}: {} ms",
                if k == 1 { aus(k) } else { format!("{} interleaved", aus(k)) },
                self.order(),
                Bytes(chunk),
                three(base / 1e3),
                aus(k + 1),
                three(slow / 1e3)
            ),
        };
        let f = self.number(trust);
        let sure = f.confidence;
        // Of an erase block that is not known it cannot be told whether copying it takes so little.
        let little = trust < SAID && slow - base < PIECE_US && run.believed.erase_block().is_none();
        let mapping = match little {
            true => Finding::undecided(Quantity::Mapping, BARELY),
            false => self.mapping(w, trust, once_more.is_none(), text.clone()),
        };
        let mut f = f.evidence(text);
        if self.side_by_side() == Some(Neighbours::Together) {
            f = f.caveat("this is of AUs that lie apart: side by side more are kept open, as several share a log");
        }
        if grid.unit.is_none() {
            f = f.caveat(format!("erase block not known: AUs were taken {} apart", Bytes(self.slots.spacing)));
        }
        if let Some(free) = &self.belief.by.free {
            let (side, edge) = if free.start == 0 { ("before", free.end) } else { ("beyond", free.start) };
            f = f.caveat(format!(
                "writes {side} {} are never slow, however many AUs are interleaved: AUs there need no room in the table, and are not counted",
                Bytes(self.slots.at(edge))
            ));
        }
        let seen = self.stalls();
        if seen.0 > 0 {
            let longest = quantile(&references(run, self.line.unwrap_or(f64::INFINITY)), 1.0);
            f = f.caveat(format!("{} of {} reference writes stalled, the longest for {} ms", seen.0, seen.1, three(longest / 1e3)));
        }
        let cost = (over.len() >= 3 && trust >= SAID && !self.either() && !self.always()).then(|| self.close_cost(over, trust.min(sure)));
        [f, mapping].into_iter().chain(cost).collect()
    }

    /// The count with its rivals, or why it is none.
    fn number(&self, trust: f64) -> Finding {
        let Seen { q, k, .. } = *self;
        if trust < SAID {
            return Finding::undecided(q, format!("the cut lies near {k}, but the times do not agree"));
        }
        let p = &self.belief.by.p;
        let mut rivals: Vec<(f64, f64)> = p.iter().filter(|x| x.0 != k && x.1 > 0.005).map(|&(n, p)| (n as f64, p)).collect();
        nandscope_stats::descending(&mut rivals, |a| a.1);
        rivals.truncate(3);
        Finding::decided(q, k as f64, trust).rivals(rivals)
    }

    /// Not even one AU in linear order stays open: every write pays. In random order that may be so with either kind.
    fn always(&self) -> bool {
        self.k == 0 && (!self.random || self.run.believed.whole(Quantity::OpenAusLinear) == Some(0))
    }

    /// What linear order pays, which would tell what it means that random order always pays, is not known.
    fn either(&self) -> bool {
        let linear = || self.run.believed.whole(Quantity::OpenAusLinear).or(self.run.believed.linear_least().filter(|&n| n >= 4));
        self.k == 0 && self.random && linear().is_none()
    }

    /// The mapping that a limit shows. `ended`: the run did, before one AU was tried once more.
    fn mapping(&self, w: &Weights, trust: f64, ended: bool, text: String) -> Finding {
        if self.either() {
            return Finding::undecided(
                Quantity::Mapping,
                "every write in random order incurs a merge; whether sequential ones do is not known",
            );
        }
        if w.limited < 0.5 {
            return Finding::undecided(Quantity::Mapping, BARELY);
        }
        // Both orders together would make more of it than either knows. Random order alone may pay for another reason.
        let alone = self.random && self.k == 0 && self.run.believed.whole(Quantity::OpenAusLinear).is_none();
        let most = if trust < 0.75 || ended || self.short() {
            0.65
        } else if alone {
            0.88
        } else {
            0.97
        };
        Finding::decided(Quantity::Mapping, if self.always() { 3.0 } else { 1.0 }, w.limited.min(most)).evidence(text)
    }

    /// Slow ones of the visits where nothing can have closed, of how many.
    fn stalls(&self) -> (u32, u32) {
        self.line.map_or((0, 0), |l| stalls(self.run, l))
    }

    /// What closing an AU costs, from the visits in µs that paid for one; `trust` in their number. Not where one AU alone was slow as well, so
    /// often that it is no host that stalls: what is slow then is a buffer that is written back, with several closings at once or with none.
    fn close_cost(&self, over: &[f64], trust: f64) -> Finding {
        let mut c = self.cost_of_merges(over, trust);
        if let Some(times) = slowed(self.run, self.slots.chunk).filter(|_| c.value.is_some()) {
            c.confidence = c.confidence.min(MAYBE_HOT);
            c = c.caveat(format!(
                "writes that incur no merge became {} times slower meanwhile; on a card that is hot merges do so with them",
                three(times)
            ));
        }
        c
    }

    fn cost_of_merges(&self, over: &[f64], trust: f64) -> Finding {
        let hundredth = |ms: f64| (ms * 100.0).round() / 100.0;
        if let Some((ms, writes, n)) = in_steps(self.run, self.k.max(1)) {
            let c = Finding::decided(Quantity::CloseCostMs, hundredth(ms), trust.min(GUESSED));
            return c.evidence(format!("a merge goes on during the next {} writes, whatever AU they go to; seen {n} times", writes - 1));
        }
        let (slow, all) = self.stalls();
        if slow >= 2 && slow * OFTEN > all {
            let why = format!(
                "one AU alone was slow in {slow} of {all} writes, as when a buffer is written back: a slow write may be several merges, or part of one; \
                 writes longer than the buffer would decide it"
            );
            return Finding::undecided(Quantity::CloseCostMs, why);
        }
        let thousandth = |ms: f64| (ms * 1000.0).round() / 1000.0;
        let line = self.line.unwrap_or(f64::INFINITY);
        if let Some((cost, interval, n)) = after_one_write(self.run, &self.slots, line).filter(|_| !self.random) {
            let c = Finding::decided(Quantity::CloseCostMs, thousandth(cost), trust.min(0.95));
            let c = Finding { interval: Some(interval), ..c };
            return c.evidence(format!("{n} writes that incurred a merge, one write into each erase block, sequential order"));
        }
        let cost: Vec<f64> = over.iter().map(|t| (t - self.base) / 1e3).collect();
        // What is copied depends on how full the AU is: costs that differ are not yet that of a whole one.
        let spread = (quantile(&cost, 0.75) - quantile(&cost, 0.25)) / median(&cost);
        let most = if spread < 0.08 { 0.95 } else { 0.85 };
        let mut c = Finding::decided(Quantity::CloseCostMs, hundredth(median(&cost)), trust.min(most));
        // How much was in them is not known: so much more an AU with one write may cost. In random order it costs something else.
        let more = filled(self.run, &self.slots).filter(|_| !self.random);
        c.interval = bootstrap_median(&cost).zip(more).map(|([lo, hi], more)| [hundredth(lo), hundredth(hi * more)]);
        c.evidence(format!("{} writes that incurred a merge, {} order", over.len(), self.order()))
    }
}

/// How many times slower writes to one AU alone became, where that is much: since the run began, or since those of earlier runs.
pub(super) fn slowed(run: &Case, chunk: u64) -> Option<f64> {
    let medians = medians(run, |c| c.get("n") == 1 && [0, CONTROL].contains(&c.get("random")));
    let (first, last) = (medians.first()?, medians.last()?);
    let before = run.believed.fastest.get(&chunk).filter(|f| f.0 >= 4).map(|f| f.1 as f64 / 1e3);
    let since = before.map(|b| last / b).filter(|times| *times > SLOWED_SINCE);
    since.or(Some(last / first).filter(|times| *times > SLOWED))
}

/// Medians of a run that differ so much are no noise, and so much a median from the fastest write of earlier runs.
const SLOWED: f64 = 1.3;
const SLOWED_SINCE: f64 = 1.5;

/// What a merge costs is no surer where the card became slow: a cache may have been full, or the card is hot.
const MAYBE_HOT: f64 = 0.7;

/// Milliseconds of a merge that is done in steps, how many writes pay for one, and how often that was seen: with no more AUs than stay open,
/// the first writes after AUs were opened take equally long, the last of them less, and all others a write's own time. Cards answer within
/// 250 ms at most (SD Physical Layer Specification, busy of a write), and cut what takes longer.
pub(super) fn in_steps(run: &Case, k: u32) -> Option<(f64, usize, usize)> {
    let mut seen: Vec<(f64, usize)> = vec![];
    for cell in run.cells.iter().filter(|c| (0..=1).contains(&c.get("random")) && (1..=i64::from(k)).contains(&c.get("n"))) {
        let samples: Vec<&Sample> = run.of(cell.id).filter(|s| s.is_write()).collect();
        for trial in samples.chunk_by(|a, b| a.trial == b.trial) {
            let t: Vec<f64> = trial.iter().map(|s| s.took.micros()).collect();
            let base = t.iter().copied().fold(f64::INFINITY, f64::min);
            let slow = t.iter().take_while(|t| **t > SLOW_STEP * base).count();
            // What is left for the last may be little.
            let n = slow + usize::from(slow >= 3 && t.get(slow).is_some_and(|t| *t > REST * base));
            let settled = t.len() > n && t[n..].iter().all(|t| *t <= SLOW_STEP * base);
            let later = trial[..n].iter().filter(|s| s.role > 0).count();
            if n < 3 || !settled || later < 2 {
                continue;
            }
            let (middle, last) = (&t[1..n - 1], t[n - 1]);
            let alike = middle.iter().all(|t| (t - middle[0]).abs() <= ALIKE * middle[0]);
            if alike && t[0] >= (1.0 - ALIKE) * middle[0] && last <= (1.0 + ALIKE) * middle[0] {
                seen.push((t[..n].iter().map(|t| t - base).sum::<f64>() / 1e3, n));
            }
        }
    }
    // What was opened before may have left more to do, or have begun.
    nandscope_stats::ascending(&mut seen, |s| s.0);
    (seen.len() >= 2).then(|| {
        let (ms, writes) = seen[(seen.len() - 1) / 2];
        (ms, writes, seen.len())
    })
}

/// A step takes so many times as long as a write, what is left for the last one so many times, and steps differ by this part.
const SLOW_STEP: f64 = 2.0;
const REST: f64 = 1.2;
const ALIKE: f64 = 0.1;

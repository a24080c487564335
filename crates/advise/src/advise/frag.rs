//! What being in pieces costs, in words: what was expected and what was found, what differs between states, whether a claim holds, and
//! whether defragmenting is worth the trouble.

use crate::lab::answer::{self, Effect, Verdict, What};
use crate::lab::class::Class;
use crate::lab::expect::{self, Claim};
use crate::lab::experiment::{Lab, State};
use crate::units::{Bytes, between, three};

/// Bytes of a cluster of the volume.
pub fn cluster(lab: &Lab) -> Bytes {
    Bytes(lab.conditions.first().map_or(0, |c| c.space.cluster))
}

/// What was to be expected, held against what was found: where the effect begins, why there is none, what runs against it.
pub fn checks(lab: &Lab) -> Vec<String> {
    let mut out = vec![];
    if let Some(h) = expect::hidden(lab) {
        out.push(format!(
            "why no effect: {:.0} % of the files are in pieces, but no piece is shorter than a cluster of {}, and a call moves {}: being in \
             pieces adds no command. Smaller clusters show what it costs: --cluster 1KiB; with the memory of the PDA of 2002, too: --host pda",
            100.0 * h.share,
            Bytes(h.cluster),
            Bytes(h.chunk)
        ));
    }
    let small = answer::sizes(lab).into_iter().filter(|&s| s <= cluster(lab).0).max();
    for what in [What::Write, What::Read] {
        let Some(x) = expect::onset(lab, what) else { continue };
        let found = match x.small {
            Some(true) => "none found",
            Some(false) => "but one was found: an anomaly",
            None => "not decided",
        };
        if let Some(s) = small {
            out.push(format!(
                "check, {}: no effect expected up to one cluster ({}, measured at {}): {found}",
                what.name(),
                cluster(lab),
                Bytes(s)
            ));
        }
        let begins = match (x.none, x.from, x.saturated) {
            (_, None, _) => continue,
            (Some(a), Some(b), s) => (format!("between {} and {}", Bytes(a), Bytes(b)), s),
            (None, Some(b), s) => (format!("at {} or below", Bytes(b)), s),
        };
        let flat = match begins.1 {
            Some(s) if Some(s) != answer::sizes(lab).last().copied() => format!(", and is the same from {} on", Bytes(s)),
            _ => String::new(),
        };
        out.push(format!("check, {}: the effect begins {}{flat}", what.name(), begins.0));
    }
    for a in expect::anomalies(lab) {
        let e = &a.effect;
        let size = if e.what == What::Folder { String::new() } else { format!(" {}", Bytes(e.size)) };
        let verdict = if a.sure {
            "more than noise".to_string()
        } else {
            format!("may be noise: with {} comparisons one like this can come by chance; more --repeats decide it", a.of)
        };
        out.push(format!(
            "anomaly: {}{size} is {} {} than {} (probability by chance {}, {verdict})",
            e.what.name(),
            times(e),
            e.state,
            e.against,
            three(a.chance)
        ));
    }
    if !out.is_empty() {
        out.insert(0, String::new());
    }
    out
}

/// The answer to a claim that something is so many times slower in pieces.
pub fn claim(lab: &Lab, times: f64) -> String {
    let most = expect::worst(lab).filter(|e| e.ratio < 1.0).map_or("nothing is slower".to_string(), |e| {
        let size = if e.what == What::Folder { String::new() } else { format!(" {}", Bytes(e.size)) };
        format!("the most is {}, {}{size}", self::times(&e), e.what.name())
    });
    let text = match expect::claimed(lab, times) {
        Claim::Holds => format!("holds on this card: {most}"),
        Claim::Fails => format!("does not hold on this card with this set-up: {most}"),
        Claim::Undecided if expect::pair(lab).is_none() => "undecided: it needs the states fragmented and defragmented".into(),
        Claim::Undecided => format!("undecided: {most}; more --repeats decide it"),
    };
    format!("claim, {} times slower fragmented than defragmented: {text}", three(times))
}

/// T = R + E + W, as measured; one line.
pub fn read_erase_write(c: &Class) -> String {
    let Some(r) = expect::read_erase_write(c) else {
        return "  T = R + E + W (a write first reads and erases what is there): undecided, because without discards W, a write to erased flash, \
                was not measured\n"
            .into();
    };
    let (first, last) = (&r.writes[0], &r.writes[r.writes.len() - 1]);
    let head = format!(
        "  T = R + E + W (a write first reads and erases what is there): {} to {} take {} to {} ms on used flash, {} to {} ms on erased",
        Bytes(first.0),
        Bytes(last.0),
        three(first.1),
        three(last.1),
        three(first.2),
        three(last.2)
    );
    let rest = format!("R + E is {} ms", between(&three(r.rest[0].max(0.0)), &three(r.rest[1].max(0.0))));
    match r.verdict {
        Claim::Holds => format!("{head}: holds, {rest} whatever the length\n"),
        Claim::Fails if r.rest[1] * 10.0 <= last.2 => format!("{head}: does not hold, used flash is written as fast as erased\n"),
        Claim::Fails => format!("{head}: does not hold\n"),
        Claim::Undecided => format!("{head}: undecided, {rest}, and W varies no more than that\n"),
    }
}

fn times(e: &Effect) -> String {
    let slower = e.ratio < 1.0;
    let (r, lo, hi) =
        if slower { (1.0 / e.ratio, 1.0 / e.interval[1], 1.0 / e.interval[0]) } else { (e.ratio, e.interval[0], e.interval[1]) };
    let word = if slower { "slower" } else { "faster" };
    let spread = if (hi - lo) / r > 0.01 { format!(" ({} to {})", three(lo), three(hi)) } else { String::new() };
    format!("{} times {word}{spread}", three(r))
}

/// Two states and one kind of operation: names, and the effect at each size in words.
pub struct Answer {
    pub states: [State; 2],
    pub what: What,
    pub sizes: String,
}

/// What differs between each two states, in the order of the states.
pub fn answers(lab: &Lab) -> Vec<Answer> {
    let effects = answer::effects(lab);
    let mut out = vec![];
    for (i, a) in lab.conditions.iter().enumerate() {
        for b in &lab.conditions[i + 1..] {
            for what in What::FILES.into_iter().chain([What::Folder]) {
                let here = effects.iter().filter(|e| e.what == what && e.state == a.state && e.against == b.state);
                let parts: Vec<String> = here
                    .map(|e| {
                        let size = if what == What::Folder { String::new() } else { format!("{} ", Bytes(e.size)) };
                        match e.verdict {
                            Verdict::NoEffect => format!("{size}no effect"),
                            Verdict::Undecided => {
                                let range = format!("{} to {} times the rate", three(e.interval[0]), three(e.interval[1]));
                                format!("{size}undecided, {}", too_few(lab, e.size).unwrap_or(range))
                            }
                            _ => format!("{size}{}", times(e)),
                        }
                    })
                    .collect();
                if !parts.is_empty() {
                    out.push(Answer { states: [a.state, b.state], what, sizes: parts.join("; ") });
                }
            }
        }
    }
    out
}

/// What is said where so few rounds were measured of this size that nothing is compared.
fn too_few(lab: &Lab, size: u64) -> Option<String> {
    let of = |c| [What::Write, What::Read, What::Folder].map(|w| answer::rate(c, w, size));
    let rounds = lab.conditions.iter().flat_map(of).flatten().map(|r| r.rounds).min()?;
    (rounds < answer::ROUNDS)
        .then(|| format!("{rounds} {} too few (--repeats {})", if rounds == 1 { "round is" } else { "rounds are" }, answer::ROUNDS))
}

/// For each profile, by name, whether defragmenting is worth the trouble (P13).
pub fn uses(lab: &Lab, profiles: &[answer::Profile]) -> Vec<(String, String)> {
    let find = |s: State| lab.conditions.iter().find(|c| c.state == s);
    let Some(a) = find(State::Fragmented).or_else(|| find(State::AsIs)) else { return vec![] };
    let Some(b) = find(State::Defragmented).or_else(|| find(State::Blank)) else { return vec![] };
    let mut out = vec![];
    for p in profiles {
        let Some(g) = answer::gain(lab, a, b, p) else { continue };
        let [lo, hi] = g.interval;
        let few = answer::sizes(lab).into_iter().find_map(|s| too_few(lab, s));
        let verdict = match g.times {
            _ if few.is_some() => format!("undecided: {}", few.unwrap_or_default()),
            _ if g.outside > 0.5 => "undecided: most of its sizes were not measured (--sizes)".into(),
            // What the rounds leave open is not advised.
            t if (t >= 1.1 && lo <= 1.0) || (t <= 0.9 && hi >= 1.0) || (t > 0.9 && t < 1.1 && (lo < 0.67 || hi > 1.5)) => {
                format!("undecided, {} to {} times the time {}: repeat with more rounds", three(lo), three(hi), a.state)
            }
            t if t >= 1.5 => format!("{} times faster {}: keep the volume defragmented, or format it now and then", three(t), b.state),
            t if t >= 1.1 => format!("{} times faster {}: worth it only if waiting hurts", three(t), b.state),
            t if t > 0.9 => format!("as fast {} as {}: do not defragment, it only wears the flash", b.state, a.state),
            t => format!("{} times slower {}: do not defragment", three(1.0 / t), b.state),
        };
        let outside =
            if g.outside > 0.0 { format!(" ({:.0} % of its sizes lie outside those measured)", 100.0 * g.outside) } else { String::new() };
        out.push((p.name.clone(), verdict + &outside));
    }
    out
}

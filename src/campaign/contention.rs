//! Which readers slow each other: reads alone, then at the same time, and what sysfs says of the hubs between.

use crate::device::{Access, Device, Op, OpenOptions, open};
use crate::host::facts::TargetKind;
use crate::host::sysfs::Sys;
use nandscope_stats::bootstrap_ratio;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Barrier;
use std::time::{Duration, Instant};

/// A reader that may share a bus.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Reader {
    pub target: String,
    /// From the root hub of a USB bus to the hub that the reader hangs on; the host of an MMC card.
    pub hubs: Vec<String>,
}

/// What the reads said of one reader.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Slowed {
    pub target: String,
    /// With which others at the same time: all of "usb1", "all" of the host, or one other target.
    pub with: String,
    /// Time of a read beside the others over that of one alone, with its 95 % interval.
    pub ratio: [f64; 3],
}

/// Readers by the lane in which they take turns; a reader without one may run at any time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Lanes {
    pub lanes: BTreeMap<String, Vec<String>>,
    pub measured: Vec<Slowed>,
}

impl Lanes {
    pub fn of(&self, target: &str) -> Option<&str> {
        self.lanes.iter().find(|l| l.1.iter().any(|t| t == target)).map(|l| l.0.as_str())
    }

    /// Who takes turns, with the most that was measured of them; or that nobody has to.
    pub fn lines(&self) -> Vec<String> {
        let most = |of: &dyn Fn(&str) -> bool| {
            let all = self.measured.iter().filter(|m| of(&m.target)).map(|m| m.ratio);
            let [middle, low, high] = all.max_by(|a, b| a[1].total_cmp(&b[1]))?;
            Some(format!("{middle:.2} times as long ({low:.2} to {high:.2})"))
        };
        let turns = |(name, who): (&String, &Vec<String>)| {
            let most = most(&|t| who.iter().any(|w| w == t)).map_or(String::new(), |m| format!(": reads beside others take up to {m}"));
            format!("{} take turns ({name}){most}", who.join(", "))
        };
        let free = most(&|t| self.of(t).is_none());
        let others = if self.lanes.is_empty() { "the readers" } else { "the other readers" };
        let free = free.map(|m| format!("{others} do not slow each other: reads beside others take {m} at most"));
        self.lanes.iter().map(turns).chain(free).collect()
    }

    /// All in one.
    pub fn one(readers: &[Reader]) -> Lanes {
        let all = readers.iter().map(|r| r.target.clone()).collect();
        Lanes { lanes: BTreeMap::from([("all".to_string(), all)]), measured: vec![] }
    }
}

/// A read takes longer beside others by more than this, with the whole of its interval: they share something.
const SLOWER: f64 = 1.05;

/// The reader of a target, where it is a disk of this host.
pub fn reader(target: &str, sys: &Sys) -> Option<Reader> {
    let path = std::fs::canonicalize(target).ok()?;
    let dev = crate::host::safety::device_number(&path)?;
    let hubs = sys.node(dev).ok()?.hubs();
    Some(Reader { target: target.into(), hubs })
}

/// More readers than this are not tried two by two.
const MOST_FOR_PAIRS: usize = 8;

/// Reads of all readers, alone and beside each other.
struct Measuring<'a> {
    readers: &'a [Reader],
    times: &'a mut dyn FnMut(&[usize]) -> Vec<Vec<f64>>,
    measured: Vec<Slowed>,
}

impl Measuring<'_> {
    /// Reads some at the same time, and says whether that slowed one of them. `before` is what each took without.
    fn slowed(&mut self, who: &[usize], with: &dyn Fn(usize) -> String, before: &[Vec<f64>], beside: &[Vec<f64>]) -> bool {
        let mut any = false;
        for (k, &i) in who.iter().enumerate().filter(|(k, i)| before[**i].len() > 2 && beside[*k].len() > 2) {
            let ratio = bootstrap_ratio(&before[i], &beside[k]);
            any |= ratio[1] > SLOWER;
            self.measured.push(Slowed { target: self.readers[i].target.clone(), with: with(i), ratio });
        }
        any
    }

    /// Readers of a group that was slow: who slows whom, two by two. The whole group where no two of them alone do.
    fn parted(&mut self, name: &str, who: &[usize], before: &[Vec<f64>]) -> Vec<(String, Vec<usize>)> {
        if !(3..=MOST_FOR_PAIRS).contains(&who.len()) {
            return vec![(name.to_string(), who.to_vec())];
        }
        let mut group: Vec<usize> = (0..who.len()).collect();
        for a in 0..who.len() {
            for b in a + 1..who.len() {
                let pair = [who[a], who[b]];
                let beside = (self.times)(&pair);
                let other = |i: usize| self.readers[if i == pair[0] { pair[1] } else { pair[0] }].target.clone();
                let names: Vec<String> = pair.iter().map(|&i| other(i)).collect();
                let with = |i: usize| names[usize::from(i != pair[0])].clone();
                if self.slowed(&pair, &with, before, &beside) {
                    let (from, to) = (group[b], group[a]);
                    group.iter_mut().filter(|g| **g == from).for_each(|g| *g = to);
                }
            }
        }
        let members = |g: usize| who.iter().zip(&group).filter(|x| *x.1 == g).map(|x| *x.0).collect::<Vec<_>>();
        let parts: Vec<Vec<usize>> = (0..who.len()).map(members).filter(|m| m.len() > 1).collect();
        match parts.len() {
            0 => vec![(name.to_string(), who.to_vec())],
            1 => vec![(name.to_string(), parts.into_iter().next().unwrap_or_default())],
            _ => parts.into_iter().enumerate().map(|(n, p)| (format!("{name}, {}", n + 1), p)).collect(),
        }
    }
}

/// Finds who shares what. `times` reads from some readers, at the same time, and gives what each read of each of them took.
pub fn lanes(readers: &[Reader], times: &mut dyn FnMut(&[usize]) -> Vec<Vec<f64>>) -> Lanes {
    if readers.len() < 2 {
        return Lanes::default();
    }
    let alone: Vec<Vec<f64>> = (0..readers.len()).map(|i| times(&[i]).pop().unwrap_or_default()).collect();
    let mut before = alone.clone();
    let mut m = Measuring { readers, times, measured: vec![] };
    let mut by_root: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (i, r) in readers.iter().enumerate() {
        if let Some(root) = r.hubs.first() {
            by_root.entry(root).or_default().push(i);
        }
    }
    let mut shared = vec![];
    for (root, who) in by_root.iter().filter(|g| g.1.len() > 1) {
        let beside = (m.times)(who);
        if m.slowed(who, &|_| root.to_string(), &before, &beside) {
            shared.extend(m.parted(root, who, &alone));
        }
        // What the host as a whole costs is on top of that.
        for (k, &i) in who.iter().enumerate() {
            before[i].clone_from(&beside[k]);
        }
    }
    let all: Vec<usize> = (0..readers.len()).collect();
    // One hub with all readers was measured already.
    if !by_root.values().any(|g| g.len() == all.len()) {
        // A lane has one reader at a time: one of each, and those without.
        let first: Vec<usize> = all.iter().copied().filter(|i| !shared.iter().any(|s| s.1[1..].contains(i))).collect();
        if first.len() > 1 {
            let base: Vec<Vec<f64>> =
                all.iter().map(|&i| if shared.iter().any(|s| s.1[0] == i) { vec![] } else { before[i].clone() }).collect();
            let beside = (m.times)(&first);
            if m.slowed(&first, &|_| "all".into(), &base, &beside) {
                let found = if shared.is_empty() { m.parted("all", &all, &alone) } else { vec![("all".into(), all)] };
                shared = found;
            }
        }
    }
    let names = |who: Vec<usize>| who.iter().map(|&i| readers[i].target.clone()).collect();
    Lanes { lanes: shared.into_iter().map(|(name, who)| (name, names(who))).collect(), measured: m.measured }
}

/// How long one reader is read, and with how much at a time.
const READING: Duration = Duration::from_millis(400);
const LONGEST: Duration = Duration::from_secs(5);
const LEAST_READS: usize = 12;
const LEN: u64 = 256 << 10;

/// Reads these targets at the same time; nanoseconds of each read. None of a target that cannot be read.
pub fn read(targets: &[&str]) -> Vec<Vec<f64>> {
    let together = Barrier::new(targets.len());
    std::thread::scope(|scope| {
        let of = |target: &str| {
            let opened =
                open(target, &OpenOptions::default()).ok().filter(|o| matches!(o.facts().kind, TargetKind::Disk | TargetKind::Partition));
            let mut guard = opened.map(|o| o.read_only());
            together.wait();
            let (began, mut took) = (Instant::now(), vec![]);
            let Some(guard) = guard.as_mut() else { return took };
            let slots = guard.geometry().size / LEN;
            let mut at = 0;
            while slots > 0 && (began.elapsed() < READING || (took.len() < LEAST_READS && began.elapsed() < LONGEST)) {
                match guard.access(Access { op: Op::Read, at: at % slots * LEN, len: LEN }) {
                    Ok(t) => took.push(t.took.0 as f64),
                    Err(_) => break,
                }
                at += 1;
            }
            took
        };
        let all: Vec<_> = targets.iter().map(|t| scope.spawn(move || of(t))).collect();
        all.into_iter().map(|h| h.join().unwrap_or_default()).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn readers(of: &[(&str, &[&str])]) -> Vec<Reader> {
        of.iter().map(|(t, h)| Reader { target: t.to_string(), hubs: h.iter().map(ToString::to_string).collect() }).collect()
    }

    /// Reads of 10 ms with 5 % of noise; `factor` is how much slower a reader is beside these others.
    fn fake(seed: u64, factor: impl Fn(usize, &[usize]) -> f64) -> impl FnMut(&[usize]) -> Vec<Vec<f64>> {
        let mut state = seed;
        move |who: &[usize]| {
            who.iter()
                .map(|&i| {
                    let slow = factor(i, who);
                    (0..40)
                        .map(|_| {
                            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                            1e7 * slow * (1.0 + 0.05 * ((state >> 33) as f64 / f64::from(1u32 << 31)))
                        })
                        .collect()
                })
                .collect()
        }
    }

    /// Readers of one hub that slow each other take turns; those of another hub, as alike as they look, do not.
    #[test]
    fn only_those_that_slow_each_other_take_turns() {
        let all = readers(&[("a", &["usb1"]), ("b", &["usb1", "1-4"]), ("c", &["usb2"]), ("d", &["usb2"]), ("e", &[])]);
        for seed in 1..20 {
            let shares = |i: usize, who: &[usize]| if i < 2 && who.contains(&(1 - i)) { 1.8 } else { 1.0 };
            let l = lanes(&all, &mut fake(seed, shares));
            assert_eq!(l.lanes, BTreeMap::from([("usb1".to_string(), vec!["a".to_string(), "b".to_string()])]), "{seed}: {l:?}");
            assert_eq!((l.of("b"), l.of("c")), (Some("usb1"), None));
        }
    }

    /// A host that is too slow for all at once, though no hub is shared.
    #[test]
    fn what_the_host_shares_is_found_without_a_hub() {
        let all = readers(&[("a", &["usb1"]), ("b", &["usb2"]), ("c", &["mmc0"])]);
        for seed in 1..20 {
            let l = lanes(&all, &mut fake(seed, |_, who| if who.len() > 2 { 1.3 } else { 1.0 }));
            assert_eq!(l.lanes.get("all").map(Vec::len), Some(3), "{seed}: {l:?}");
            let l = lanes(&all, &mut fake(seed, |_, _| 1.0));
            assert!(l.lanes.is_empty() && l.measured.len() == 3, "{seed}: {l:?}");
        }
    }

    /// Of four readers that sysfs says nothing of two share something: they alone take turns, and both pairs are found where there are two.
    #[test]
    fn pairs_are_found_without_a_hub() {
        let all = readers(&[("/a", &[]), ("/b", &[]), ("/c", &[]), ("/d", &[])]);
        for seed in 1..20 {
            let shares = |i: usize, who: &[usize]| if i.is_multiple_of(2) && who.contains(&(2 - i)) { 1.7 } else { 1.0 };
            let l = lanes(&all, &mut fake(seed, shares));
            assert_eq!(l.lanes, BTreeMap::from([("all".to_string(), vec!["/a".to_string(), "/c".to_string()])]), "{seed}: {l:?}");
            let lines = l.lines();
            assert!(lines[0].starts_with("/a, /c take turns (all): reads beside others take up to 1.") && lines.len() == 2, "{lines:?}");
            assert!(l.measured.iter().any(|m| m.target == "/a" && m.with == "/c" && (1.6..1.8).contains(&m.ratio[0])), "{l:?}");
            let l = lanes(&all, &mut fake(seed, |i, who| if who.contains(&((i + 2) % 4)) { 1.7 } else { 1.0 }));
            assert_eq!(l.lanes.values().map(Vec::len).collect::<Vec<_>>(), [2, 2], "{seed}: {l:?}");
        }
    }

    /// Two hubs, each full, need no third lane: one reader of each at a time is as fast as alone.
    #[test]
    fn two_full_hubs_are_two_lanes() {
        let all = readers(&[("a", &["usb1"]), ("b", &["usb1"]), ("c", &["usb2"]), ("d", &["usb2"])]);
        for seed in 1..20 {
            let beside = |i: usize, who: &[usize]| if who.iter().any(|&j| j != i && j / 2 == i / 2) { 2.0 } else { 1.0 };
            let l = lanes(&all, &mut fake(seed, beside));
            assert_eq!(l.lanes.len(), 2, "{seed}: {l:?}");
        }
    }
}

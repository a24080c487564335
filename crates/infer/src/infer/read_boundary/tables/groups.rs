//! Runs that were taken the same way, pooled: the median of each row, and how much runs differ.

use super::PLACES;
use crate::infer::stats::{mad, median};
use crate::samples::import::{AlignTest, Tables};

/// 2^9 to 2^50 and three quarters of each: a table with more rows is none of flashbench's.
const MOST_ROWS: usize = 84;

/// Median over runs of one row; times in µs.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) align: u64,
    pub(super) diff: f64,
    pub(super) pre: f64,
    pub(super) on: f64,
    pub(super) post: f64,
}

/// Rows that were taken the same way.
pub(super) struct Group {
    pub(super) rows: Vec<Row>,
    pub(super) runs: usize,
    pub(super) size: Option<u64>,
    pub(super) place: String,
    /// Median scatter of a row between runs, µs; NaN with one run.
    pub(super) repeat: f64,
    /// Rows of writes instead of reads.
    pub(super) write: bool,
    /// Rows of this program, whose places never wrap over the end.
    pub(super) own: bool,
}

impl Group {
    /// One of the largest rows, whose reads wrap over the end of the device.
    pub(super) fn wraps(&self, r: &Row) -> bool {
        !self.own && self.rows.len() >= 10 && r.align * 2 >= self.rows[0].align
    }

    /// "read" or "write".
    pub(super) fn access(&self) -> &'static str {
        if self.write { "write" } else { "read" }
    }
}

/// Writes or reads, and the alignments of the rows.
type Key = (bool, Vec<u64>);

/// Runs with the same rows are pooled, whichever file they are in.
pub(super) fn groups(tables: &Tables) -> Vec<Group> {
    let mut keys: Vec<(Key, Vec<&AlignTest>)> = vec![];
    for t in tables.align.iter().filter(|t| (2..=MOST_ROWS).contains(&t.rows.len())) {
        let key = (t.write, t.rows.iter().map(|r| r.align).collect::<Vec<u64>>());
        match keys.iter_mut().find(|k| k.0 == key) {
            Some(k) => k.1.push(t),
            None => keys.push((key, vec![t])),
        }
    }
    // A run that was cut short is part of the longer one with the same first rows.
    nandscope_stats::sort_by_key(&mut keys, |k| std::cmp::Reverse(k.0.1.len()));
    let mut merged: Vec<(Key, Vec<&AlignTest>)> = vec![];
    for (key, tests) in keys {
        match merged.iter_mut().find(|m| m.0.0 == key.0 && m.0.1.starts_with(&key.1)) {
            Some(m) => m.1.extend(tests),
            None => merged.push((key, tests)),
        }
    }
    beside(&mut merged);
    merged.into_iter().map(|(key, tests)| group(tables, &key.1, &tests)).collect()
}

/// Whether no row of a run is a power of two: such a run was taken to go between those of an ordinary one.
pub(super) fn only_threes<'a>(mut aligns: impl Iterator<Item = &'a u64>) -> bool {
    aligns.all(|a| !a.is_power_of_two())
}

/// Rows of 3 * 2^n that were taken by themselves go into those of 2^n beside them, as this program prints them.
fn beside(merged: &mut Vec<(Key, Vec<&AlignTest>)>) {
    let Some(at) = merged.iter().position(|m| only_threes(m.0.1.iter())) else { return };
    let ordinary = |m: &(Key, Vec<&AlignTest>)| m.0.0 == merged[at].0.0 && m.0.1.iter().all(|a| a.is_power_of_two());
    let Some(into) = merged.iter().position(ordinary) else { return };
    let (key, tests) = merged.remove(at);
    let whole = &mut merged[into - usize::from(into > at)];
    whole.0.1.extend(key.1);
    whole.0.1.sort_unstable_by_key(|&a| std::cmp::Reverse(a));
    whole.1.extend(tests);
}

/// How much neighbouring rows of one run differ, in µs: steps are few, so most of it is noise.
fn roughness(t: &AlignTest) -> f64 {
    let of = |two: bool| {
        let y: Vec<f64> = t.rows.iter().filter(|r| r.align.is_power_of_two() == two).map(|r| r.diff).collect();
        y.windows(2).map(|w| w[1] - w[0]).collect::<Vec<_>>()
    };
    mad(&[of(true), of(false)].concat())
}

/// Runs in which nothing else went on: those that are at most three times as rough as the calmest.
fn calm<'a>(tests: &[&'a AlignTest]) -> Vec<&'a AlignTest> {
    let base = median(&tests.iter().flat_map(|t| t.rows.iter().map(|r| r.pre)).collect::<Vec<_>>());
    let rough: Vec<f64> = tests.iter().map(|t| roughness(t)).collect();
    let long = tests.iter().map(|t| t.rows.len()).max().unwrap_or(0);
    let whole = tests.iter().zip(&rough).filter(|x| x.0.rows.len() * 3 >= long * 2).map(|x| *x.1);
    let line = 3.0 * whole.fold(f64::INFINITY, f64::min).max(0.004 * base);
    tests.iter().zip(&rough).filter(|x| x.1.is_nan() || *x.1 <= line).map(|x| *x.0).collect()
}

/// One run by itself.
pub(super) fn alone(tables: &Tables, t: &AlignTest) -> Group {
    group(tables, &t.rows.iter().map(|r| r.align).collect::<Vec<_>>(), &[t])
}

fn group(tables: &Tables, key: &[u64], tests: &[&AlignTest]) -> Group {
    let tests = &calm(tests)[..];
    let mut scatter = vec![];
    let rows = key.iter().map(|&align| {
        let here: Vec<_> = tests.iter().filter_map(|t| t.rows.iter().find(|r| r.align == align)).collect();
        let of = |f: fn(&crate::samples::import::AlignRow) -> f64| median(&here.iter().map(|r| f(r)).collect::<Vec<_>>());
        if here.len() >= 3 {
            scatter.push(mad(&here.iter().map(|r| r.diff).collect::<Vec<_>>()));
        }
        Row { align, diff: of(|r| r.diff), pre: of(|r| r.pre), on: of(|r| r.on), post: of(|r| r.post) }
    });
    // The runs with this row may all be too rough.
    let rows: Vec<Row> = rows.filter(|r| !r.diff.is_nan()).collect();
    let mut sizes: Vec<Option<u64>> = tests.iter().map(|t| t.device_size).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let top = key.first().copied().unwrap_or(0);
    // The largest alignment is the smallest power of two that is at least a seventh of the device: a check on the size.
    let size =
        (sizes.len() == 1).then_some(sizes[0]).flatten().filter(|&s| top.is_power_of_two() && s <= PLACES * top && 2 * s > PLACES * top);
    Group {
        rows,
        runs: tests.len(),
        size,
        place: tables.at(tests[0].place),
        repeat: median(&scatter),
        write: tests[0].write,
        own: tests.iter().all(|t| t.own),
    }
}

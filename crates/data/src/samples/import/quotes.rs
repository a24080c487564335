//! Tables that a mail quotes from the one before: measured once, printed twice.

use super::Tables;
use std::collections::HashMap;
use std::hash::Hash;

/// Leaves out every table whose rows all stand in one earlier table of the same test, whoever is said to have measured it.
pub fn drop_repeats<'a>(all: impl Iterator<Item = &'a mut Tables>) {
    let (mut align, mut open, mut bench) = (Seen::default(), Seen::default(), Seen::default());
    for t in all {
        t.align
            .retain(|a| align.add(&a.rows.iter().map(|r| (a.write, r.align, [r.pre, r.on, r.post].map(f64::to_bits))).collect::<Vec<_>>()));
        t.open.retain(|o| open.add(&o.rows.iter().map(|r| (o.n, o.random, o.erase_size, r.size, r.rate.to_bits())).collect::<Vec<_>>()));
        t.bench.retain(|b| {
            let rows = b.passes.iter().map(|p| (b.buffer, b.host.clone(), p.write, [p.speed, p.max, p.min, p.avg].map(f64::to_bits)));
            bench.add(&rows.collect::<Vec<_>>())
        });
    }
}

/// Rows, and the table in which each came first.
struct Seen<K> {
    first: HashMap<K, usize>,
    tables: usize,
}

impl<K> Default for Seen<K> {
    fn default() -> Self {
        Seen { first: HashMap::new(), tables: 0 }
    }
}

impl<K: Hash + Eq + Clone> Seen<K> {
    /// Whether this table has a row that no single earlier one had.
    fn add(&mut self, rows: &[K]) -> bool {
        let known = |r: &K| self.first.get(r).copied();
        let repeated = rows.first().and_then(known).is_some_and(|i| rows.iter().all(|r| known(r) == Some(i)));
        if !repeated {
            for r in rows {
                self.first.entry(r.clone()).or_insert(self.tables);
            }
            self.tables += 1;
        }
        !repeated
    }
}

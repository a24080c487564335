//! AUs side by side, once it is known how many stay open all over the card: a table of open AUs does not ask how far apart they lie.

use super::*;

/// The order of a cell that writes as many AUs side by side, and then one more.
pub const NEIGHBOURS: i64 = 7;

/// Roles in such a cell: rounds over as many as stay open, and over one more; or over as many others all over the card, which a card that holds on to
/// what was written before does not keep open either.
pub const AS_MANY: u8 = 1;
pub const ONE_MORE: u8 = 2;
pub const ELSEWHERE: u8 = 3;

/// Rounds in a row without a slow visit, after which AUs have come to rest.
pub const AT_REST: usize = 2;

/// What AUs side by side show that AUs all over the card do not.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Neighbours {
    /// One more than stay open are never slow: what is kept is a piece of a map that holds several AUs, or a log that several share.
    Together,
    /// As many as stay open do not come to rest: the card keeps fewer for each part of it.
    Fewer,
}

/// So much of the last rounds is slow where fewer are kept.
const OFTEN: f64 = 0.25;

/// `None` where they are as any others, or that was not tried to the end.
pub(in crate::infer) fn neighbours(run: &Case) -> Option<Neighbours> {
    let cell = run.cells.iter().find(|c| c.get("random") == NEIGHBOURS)?;
    let (n, line) = (cell.get("n") as usize, slow_line(run)?);
    // Of the last two rounds over so many: visits, and slow ones.
    let last = |role: u8, n: usize| {
        let slow: Vec<bool> = run.of(cell.id).filter(|s| s.role == role).map(|s| s.took.micros() > line).collect();
        let whole = slow.len() / n * n;
        (whole >= (AT_REST + 1) * n).then(|| slow[whole - AT_REST * n..whole].iter().filter(|s| **s).count())
    };
    match (last(AS_MANY, n)?, last(ONE_MORE, n + 1)) {
        (0, Some(0)) => Some(Neighbours::Together),
        (slow, None) if slow > 1 && slow as f64 >= OFTEN * (AT_REST * n) as f64 => (last(ELSEWHERE, n)? == 0).then_some(Neighbours::Fewer),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{Fill, Op};
    use crate::infer::beliefs::Beliefs;
    use crate::units::Nanos;

    /// Rounds over five AUs side by side, over six, and over five elsewhere, each with so many slow visits.
    fn seen(as_many: &[usize], one_more: &[usize], elsewhere: &[usize]) -> Option<Neighbours> {
        let mut run = Run::new("open-au-linear");
        run.cells = vec![
            Cell::new("5 AUs side by side, then one more", &[("n", 5), ("random", NEIGHBOURS)]),
            Cell { id: 1, ..Cell::new("1 AU", &[("n", 1), ("random", 0)]) },
        ];
        let rounds = |role: u8, n: usize, slow: &[usize]| {
            let each: Vec<(u8, bool)> = slow.iter().flat_map(|late| (0..n).map(move |i| (role, i < *late))).collect();
            each
        };
        let visits = [rounds(AS_MANY, 5, as_many), rounds(ONE_MORE, 6, one_more), rounds(ELSEWHERE, 5, elsewhere)].concat();
        let alone = vec![(1, 1, false); 6];
        run.extend(alone.into_iter().chain(visits.into_iter().map(|(role, slow)| (0, role, slow))).map(|(cell, role, slow)| {
            let took = Nanos(if slow { 200_000_000 } else { 1_000_000 });
            Sample { cell, trial: 0, role, op: Op::Write(Fill::Zeros), at: 0, len: 64 * KIB, start: Nanos(0), took }
        }));
        neighbours(&Case { run: &run, believed: &Beliefs::default() })
    }

    #[test]
    fn side_by_side_shows_what_a_table_of_aus_does_not() {
        // A table of five, that takes a while to let go of others.
        assert_eq!(seen(&[3, 1, 0, 0], &[2, 1], &[]), None);
        assert_eq!(seen(&[3, 1, 0, 0], &[1, 0, 0], &[]), Some(Neighbours::Together));
        assert_eq!(seen(&[5, 4, 4], &[], &[2, 0, 0]), Some(Neighbours::Fewer));
        // A table that holds on to others.
        assert_eq!(seen(&[5, 4, 4], &[], &[4, 3, 4]), None);
        // Cut, or a host that stalls.
        assert_eq!((seen(&[5, 4], &[], &[]), seen(&[5, 4, 4], &[], &[])), (None, None));
        assert_eq!((seen(&[3, 1, 0, 0], &[0, 0], &[]), seen(&[], &[], &[])), (None, None));
        assert_eq!(seen(&[3, 1, 1, 0, 1, 0, 1, 0, 1, 0, 0, 1], &[], &[1, 0, 0]), None);
    }
}

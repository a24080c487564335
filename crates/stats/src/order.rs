//! Sorting. What is sorted is moved only after its places are known: one sort for all types, where each would else have its own
//! (5 kB of program for every closure that the standard library's `sort_by` is given). What sorts millions keeps that one.

use std::cmp::Ordering;

/// Sorts by a number, the least first and NaN last; what has the same number keeps its order.
pub fn ascending<T>(all: &mut [T], number: impl Fn(&T) -> f64) {
    let places = places(all.iter().map(number).collect());
    arrange(all, places);
}

/// Sorts by a number, NaN and the greatest first; what has the same number keeps its order.
pub fn descending<T>(all: &mut [T], number: impl Fn(&T) -> f64) {
    let places = places(all.iter().map(|one| -number(one)).collect());
    arrange(all, places);
}

/// Sorts as the method of slices of that name does.
pub fn sort_by<T>(all: &mut [T], compare: impl Fn(&T, &T) -> Ordering) {
    let places = compared(all.len(), &|i, j| compare(&all[i], &all[j]));
    arrange(all, places);
}

/// Sorts as the method of slices of that name does.
pub fn sort_by_key<T, K: Ord>(all: &mut [T], key: impl Fn(&T) -> K) {
    sort_by(all, |a, b| key(a).cmp(&key(b)));
}

/// Where what belongs at each of `n` places is now, by what `compare` says of two places.
fn compared(n: usize, compare: &dyn Fn(usize, usize) -> Ordering) -> Vec<usize> {
    let mut places: Vec<usize> = (0..n).collect();
    places.sort_by(|&i, &j| compare(i, j));
    places
}

/// Where what belongs at each place is now, by a number.
fn places(numbers: Vec<f64>) -> Vec<usize> {
    let mut places: Vec<usize> = (0..numbers.len()).collect();
    places.sort_by(|&i, &j| numbers[i].total_cmp(&numbers[j]));
    places
}

/// Moves everything along its cycle.
fn arrange<T>(all: &mut [T], mut places: Vec<usize>) {
    for start in 0..all.len() {
        let mut at = start;
        loop {
            let from = std::mem::replace(&mut places[at], at);
            if from == start {
                break;
            }
            all.swap(at, from);
            at = from;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_is_that_of_a_stable_sort() {
        let numbers = [3.0, -0.0, f64::NAN, 0.0, 3.0, f64::INFINITY, -7.5, 3.0, f64::NEG_INFINITY, 0.0, 1e-300];
        for n in 0..numbers.len() {
            // Every rotation, each with its own cycles.
            let mut all: Vec<(f64, usize)> = (0..n).map(|i| (numbers[(i * 7 + n) % numbers.len()], i)).collect();
            let mut expected = all.clone();
            expected.sort_by(|a, b| a.0.total_cmp(&b.0));
            ascending(&mut all, |a| a.0);
            assert_eq!(format!("{all:?}"), format!("{expected:?}"));
            expected.sort_by(|a, b| b.0.total_cmp(&a.0));
            descending(&mut all, |a| a.0);
            assert_eq!(format!("{all:?}"), format!("{expected:?}"));
            expected.sort_by_key(|a| a.1 % 3);
            sort_by_key(&mut all, |a| a.1 % 3);
            assert_eq!(format!("{all:?}"), format!("{expected:?}"));
            expected.sort_by(|a, b| a.0.abs().total_cmp(&b.0.abs()));
            sort_by(&mut all, |a, b| a.0.abs().total_cmp(&b.0.abs()));
            assert_eq!(format!("{all:?}"), format!("{expected:?}"));
        }
    }
}

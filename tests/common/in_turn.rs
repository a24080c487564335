//! Jobs that take turns on the processors.

use std::sync::atomic::{AtomicUsize, Ordering};

/// What `one` makes of each job, in their order; as many at a time as there are processors.
pub fn all<T: Sync, R: Send>(jobs: &[T], one: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut out = vec![];
        while let Some((i, job)) = Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|i| Some((i, jobs.get(i)?))) {
            out.push((i, one(job)));
        }
        out
    };
    let mut done: Vec<(usize, R)> = std::thread::scope(|s| {
        let threads: Vec<_> = (0..std::thread::available_parallelism().map_or(2, usize::from)).map(|_| s.spawn(work)).collect();
        threads.into_iter().flat_map(|t| t.join().unwrap()).collect()
    });
    done.sort_by_key(|d| d.0);
    done.into_iter().map(|d| d.1).collect()
}

//! Who may measure at the same time: lanes with so many places each.

use std::collections::HashMap;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// What steps share: a bus, or the processors of this host.
pub type Lane = String;

#[derive(Default)]
pub struct Turns {
    taken: Mutex<HashMap<Lane, usize>>,
    free: Condvar,
}

/// A place in each of some lanes, given back at its end.
pub struct Turn<'a> {
    turns: &'a Turns,
    lanes: Vec<(Lane, usize)>,
}

impl Turns {
    /// Waits for a place in all these lanes at once; none where `alive` says no first.
    pub fn take(&self, lanes: &[(Lane, usize)], alive: &mut dyn FnMut() -> bool) -> Option<Turn<'_>> {
        loop {
            if !alive() {
                return None;
            }
            let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
            if lanes.iter().all(|(l, most)| taken.get(l).is_none_or(|n| n < most)) {
                lanes.iter().for_each(|(l, _)| *taken.entry(l.clone()).or_default() += 1);
                return Some(Turn { turns: self, lanes: lanes.to_vec() });
            }
            drop(self.free.wait_timeout(taken, Duration::from_millis(100)).unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// A place for what is running already, full or not.
    pub fn force(&self, lanes: &[(Lane, usize)]) -> Turn<'_> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        lanes.iter().for_each(|(l, _)| *taken.entry(l.clone()).or_default() += 1);
        Turn { turns: self, lanes: lanes.to_vec() }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut taken = self.turns.taken.lock().unwrap_or_else(PoisonError::into_inner);
        for (l, _) in &self.lanes {
            taken.entry(l.clone()).and_modify(|n| *n -= 1);
        }
        self.turns.free.notify_all();
    }
}

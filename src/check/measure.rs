//! What `check` does to a card: writes and reads a window in the order of the SD Association's test for application classes (writes
//! first, reads afterwards over the same window), looks whether everything reads back, and reads single places all over the card.
//!
//! All that is written carries its own address and the number of the pass, so that each wrong sector says what became of it: the old
//! content, another sector's, zeros, or something that differs from reading to reading.

mod accesses;
mod afterwards;
pub use afterwards::STAYED;
mod measured;
mod repeats;

use crate::device::ranges::RangeSet;
use crate::device::{Device, DeviceError, Result};
use crate::units::{KIB, MIB, Nanos};
pub use measured::{Fates, Later, Measured, Rate};
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::Rng;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

/// Bytes of a random access, as the application classes have it.
pub const SMALL: u64 = 4 * KIB;
/// Bytes of a sequential request: what most hosts send in one command.
const LARGE: u64 = 512 * KIB;
/// Bytes by which it is found out whether a card can take those in the time there is.
const GROWING: [u64; 4] = [4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB];
/// The window begins at a multiple of it: the boundary unit of SDHC and SDXC cards.
const ALIGN: u64 = 4 * MIB;
/// Bytes of the window, where the card has room and nothing else is asked for.
pub const WINDOW: u64 = 64 * MIB;
/// What is put back is read once more to see that it is there, and lies in the order of its places: by so much longer than writing it.
const PUTTING_BACK: f64 = 1.3;
/// Shares of the time for writes are smaller by this factor where putting back takes as long again.
const LESS: f64 = 1.5;
/// The pass of everything written is a number below this, added to the number of the check.
const PASSES: u64 = 8;
/// Bytes around small discards that are the check's own and read back as written; the second where there are no more.
const AROUND: [u64; 2] = [MIB, 16 * SMALL];
/// Share of the time for reading the stretch that the test of the capacity wrote.
const STRETCH: f64 = 0.15;
/// Random writes, and random reads, at the most.
const MOST_SMALL: usize = 2048;
/// Requests of a group: groups are compared to learn how much a rate varies.
const GROUP: usize = 8;
/// Share of the time for what was written all over the card, and for taking it out.
const AT_LAST: f64 = 0.1;
/// Time for what is written before and read after the card is taken out, at least.
const AFTER: Nanos = Nanos(5_000_000_000);
/// Pieces read three times.
const AGAIN: usize = 64;
/// Places all over the card that are read once.
const PLACES: usize = 512;

/// What to do, in which bounds.
pub struct Task<'a> {
    pub region: Range<u64>,
    pub write: bool,
    /// On the device's own clock.
    pub deadline: Nanos,
    /// What is written is put back afterwards, before the deadline; what was written before this takes so long.
    pub put_back: Option<Nanos>,
    pub seed: u64,
    pub stop: &'a AtomicBool,
    /// Bytes of the window: [`WINDOW`], or more to displace a larger cache.
    pub window: u64,
    /// What the test of the capacity left on the card.
    pub placed: &'a Placed,
    /// Has the card taken out and put in again.
    pub reinsert: Option<&'a dyn Fn() -> Result<bool>>,
}

/// What the test of the capacity wrote, with sectors that carry their address and its own number.
#[derive(Clone, Debug, Default)]
pub struct Placed {
    /// Places all over the card that showed what was written there.
    pub places: Vec<u64>,
    /// The stretch near the front, as (first byte, bytes); none where the card holds less than it reports: others may have landed in it.
    pub stretch: Option<(u64, u64)>,
    /// The longest write of one of the places.
    pub longest: Nanos,
}

/// About how long it takes to put back what took so long to write for the first time.
pub fn putting_back(written: Nanos) -> Nanos {
    Nanos((written.0 as f64 * PUTTING_BACK) as u64)
}

/// Bytes to write in one stretch so that a cache of this size keeps nothing from before: what is written over again within the stretch
/// may take the place of what it replaces.
pub fn displacing(cache: u64) -> u64 {
    if cache < WINDOW { WINDOW } else { (cache + cache / 16).next_multiple_of(ALIGN) + WINDOW / 4 }
}

/// The window that a check of this region uses: writes stay inside it.
pub fn window(region: &Range<u64>, most: u64) -> Range<u64> {
    let room = region.end - region.start;
    // One that is asked for may take more of the card.
    let share = if most > WINDOW { 2 } else { 8 };
    let len = (room / share).min(most) / ALIGN * ALIGN;
    // Not at the start, where cards may take writes better than elsewhere.
    let from = (region.start + room / 3).next_multiple_of(ALIGN);
    from..(from + len).min(region.end)
}

/// Checks the card. What fails is part of the answer; only a card that is gone ends it early.
pub fn measure(device: &mut dyn Device, task: &Task, tell: &mut dyn FnMut(&'static str, f64)) -> Measured {
    let window = window(&task.region, task.window);
    let out = Measured { window: [window.start, window.end], ..Measured::default() };
    let rng = Pcg64Mcg::new(u128::from(task.seed) << 1 | 1);
    // Others in each check of a device: what an earlier one left on a card that keeps nothing now is not taken for this one's.
    let stamps = (task.seed ^ device.now().0).wrapping_mul(PASSES);
    let mut m = Check {
        device,
        task,
        window,
        rng,
        stamps,
        out,
        last: BTreeMap::new(),
        failures: 0,
        strange: vec![],
        large: LARGE,
        kept: BTreeMap::new(),
        apart: task.placed.longest,
        wrote: None,
        deadline: task.deadline - task.put_back.unwrap_or_default(),
        saved: RangeSet::default(),
    };
    if let Err(e) = m.all(tell) {
        m.out.ended = Some(match e {
            DeviceError::Late if task.stop.load(Ordering::Relaxed) => "interrupted".into(),
            DeviceError::Late => "out of time".into(),
            e => e.to_string(),
        });
    }
    m.out.unreadable.sort_unstable();
    m.out.unwritable.sort_unstable();
    m.out
}

/// A check under way.
struct Check<'a> {
    device: &'a mut dyn Device,
    task: &'a Task<'a>,
    window: Range<u64>,
    rng: Pcg64Mcg,
    /// What the first pass carries beside addresses.
    stamps: u64,
    out: Measured,
    /// What the stamps of a piece that was written and not yet read carry beside their address.
    last: BTreeMap<u64, u64>,
    /// The same of pieces that read back as written.
    kept: BTreeMap<u64, u64>,
    /// Failed accesses in a row.
    failures: u32,
    /// Places that showed what nobody wrote: looked at again.
    strange: Vec<u64>,
    /// Bytes of a sequential write.
    large: u64,
    /// The longest write far away from the one before: a card may first have to merge.
    apart: Nanos,
    /// Where the last write began, and how long it took.
    wrote: Option<(u64, Nanos)>,
    /// On the device's clock, without the time for putting back; waiting for people does not count.
    deadline: Nanos,
    /// What will be put back.
    saved: RangeSet,
}

impl Check<'_> {
    fn all(&mut self, tell: &mut dyn FnMut(&'static str, f64)) -> Result<()> {
        let last = self.deadline - self.until(1.0 - AT_LAST);
        if self.task.write {
            self.deadline = self.deadline - last;
        }
        let cut = match self.window_and_places(tell) {
            Err(DeviceError::Late) if !self.task.stop.load(Ordering::Relaxed) => Err(DeviceError::Late),
            done => {
                done?;
                Ok(())
            }
        };
        if self.out.no_content || !self.task.write {
            return cut;
        }
        self.deadline = self.deadline + last;
        tell("places written first", 0.9);
        let cut = self.later(false).and(cut);
        if let Some(ask) = self.task.reinsert {
            tell("taken out and put in", 0.95);
            let untried = self.out.untried.replace("what is left after it was taken out");
            self.reinserted(ask)?;
            if self.out.untried != Some(STAYED) {
                self.out.untried = untried;
            }
        }
        cut
    }

    /// All that needs neither what was written before nor people.
    fn window_and_places(&mut self, tell: &mut dyn FnMut(&'static str, f64)) -> Result<()> {
        tell("places all over the card", 0.0);
        self.scan()?;
        if let Some(end) = self.out.unreadable_end() {
            self.window = window(&(self.task.region.start..end), self.task.window);
            self.out.window = [self.window.start, self.window.end];
        }
        if self.task.write {
            tell("what the test of the capacity wrote", 0.1);
            self.stretch()?;
        }
        let room = !self.window.is_empty();
        // Shares of the time left at each step; what one does not use goes to the next.
        if room && self.task.write {
            tell("sequential write", 0.1);
            let large = self.pace(0.15)?;
            let took = self.write(large, self.sequential(large), 1, 0.3)?;
            self.out.sequential_write = Rate::of(large, &took);
            self.large = large;
            tell("random write", 0.3);
            let places = self.random();
            let took = self.write(SMALL, places, 2, 0.35)?;
            self.out.random_write = Rate::of(SMALL, &took);
            self.flush();
            self.repeats()?;
        }
        if room {
            tell("random read", 0.5);
            let places = self.random();
            let took = self.read(SMALL, places, 0.3)?;
            self.out.random_read = Rate::of(SMALL, &took);
            tell("sequential read", 0.6);
            let took = self.read(LARGE, self.sequential(LARGE), 0.4)?;
            self.out.sequential_read = Rate::of(LARGE, &took);
        }
        if self.task.write && !self.out.no_content {
            tell("beside a discard", 0.8);
            self.beside()?;
        }
        tell("the same places again", 0.8);
        self.again()
    }

    /// Bytes of a sequential request that the card takes within a share of the time left: pieces grow until the next would be too long.
    fn pace(&mut self, share: f64) -> Result<u64> {
        let until = self.until(share);
        for len in GROWING {
            let took = self.write(len, vec![self.window.start], 1, share)?;
            let Some(took) = took.first() else { return Ok(len) };
            // The next one is at most four times as long.
            if self.device.now() + Nanos(took.0.saturating_mul(4)) > until {
                return Ok(len);
            }
        }
        Ok(LARGE)
    }

    /// What the sectors of a pass carry beside their address.
    fn stamp(&self, pass: u64) -> u64 {
        self.stamps.wrapping_add(pass)
    }

    /// Did a pass of this check write that?
    fn wrote_it(&self, number: u64) -> bool {
        number.wrapping_sub(self.stamps) < PASSES
    }

    fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.rng.next_u64()) * u128::from(n)) >> 64) as u64
    }

    /// The window from its start.
    fn sequential(&self, len: u64) -> Vec<u64> {
        (self.window.start..self.window.end).step_by(len as usize).filter(|at| at + len <= self.window.end).collect()
    }

    /// Places of the window in random order; each at most once.
    fn random(&mut self) -> Vec<u64> {
        let mut all: Vec<u64> = (self.window.start..self.window.end).step_by(SMALL as usize).collect();
        let n = all.len().min(MOST_SMALL);
        for i in 0..n {
            let j = i as u64 + self.below((all.len() - i) as u64);
            all.swap(i, j as usize);
        }
        all.truncate(n);
        all
    }

    /// When a share of the time left will be gone.
    fn until(&self, share: f64) -> Nanos {
        let now = self.device.now();
        now + Nanos::from_secs_f64((self.deadline - now).secs() * share)
    }

    /// Some places three times, with others between, so that no cache answers: a healthy card shows the same each time.
    fn again(&mut self) -> Result<()> {
        if self.out.no_content {
            return Ok(());
        }
        let until = self.until(0.9);
        let span = (self.task.region.end - self.task.region.start) / SMALL;
        let strange: Vec<u64> = self.strange.iter().copied().take(AGAIN / 2).collect();
        let places = (strange.len() as u64..AGAIN as u64).map(|i| match i % 2 {
            0 if !self.window.is_empty() => self.window.start + self.below((self.window.end - self.window.start) / SMALL) * SMALL,
            _ => self.task.region.start + self.below(span) * SMALL,
        });
        let places: Vec<u64> = strange.iter().copied().chain(places).collect();
        let mut seen: BTreeMap<u64, Vec<Vec<u8>>> = BTreeMap::new();
        let mut bytes = vec![0; SMALL as usize];
        for _ in 0..3 {
            for &at in &places {
                if self.device.now() >= until {
                    return Ok(());
                }
                self.look_at(at, &mut bytes, &mut |_, bytes| seen.entry(at).or_default().push(bytes.to_vec()))?;
                if self.out.no_content {
                    return Ok(());
                }
            }
        }
        let three = seen.values().filter(|v| v.len() >= 3);
        self.out.fates.read_again = three.clone().count() as u64;
        self.out.fates.changing = three.filter(|v| v.iter().any(|b| *b != v[0])).count() as u64;
        Ok(())
    }

    /// Single places from the first to the last, one in each part of the card.
    fn scan(&mut self) -> Result<()> {
        let Range { start, end } = self.task.region;
        let parts = ((end - start) / SMALL).min(PLACES as u64).max(1);
        let part = (end - start) / parts / SMALL * SMALL;
        let mut bytes = vec![0; SMALL as usize];
        let until = self.until(0.2);
        for n in spread(parts) {
            if self.device.now() >= until {
                break;
            }
            let inside = self.below((part / SMALL).max(1)) * SMALL;
            // The last place is the last there is.
            let at = if n + 1 == parts { end / SMALL * SMALL - SMALL } else { start + n * part + inside };
            self.one(at.max(start), &mut bytes)?;
            // Most of a counterfeit may be unreadable.
            self.failures = 0;
            self.out.places += 1;
        }
        Ok(())
    }
}

/// The numbers below one in bit-reversed order: what runs out of time has still looked everywhere.
fn spread(n: u64) -> impl Iterator<Item = u64> {
    let bits = (64 - n.saturating_sub(1).leading_zeros()).max(1);
    (0..1u64 << bits).map(move |i| i.reverse_bits() >> (64 - bits)).filter(move |i| *i < n)
}

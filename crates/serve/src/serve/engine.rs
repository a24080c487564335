//! The card in real time: takes requests as they arrive and says when each is to be answered.

use super::bus::Bus;
use super::clock;
use super::recorder::{Line, Recorder};
use crate::device::{Access, Counters, Fill, Op, errno, request};
use crate::units::Nanos;
use nandscope_sim::{Card, Fault, Model, Queue};
use rustix::io::Errno;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::sync::mpsc::Sender;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Compared with, to see what a write is made of.
static ZEROS: [u8; 4096] = [0; 4096];
static ONES: [u8; 4096] = [0xff; 4096];
/// Answers later than this many µs are counted together.
const LATEST: usize = 4096;

/// When a request is to be answered: ns of CLOCK_MONOTONIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Due(pub u64);

/// A request the card did not serve: what to tell the host, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// EIO for a bad place, ENODEV for a card that is gone, EROFS for one that takes no more writes, EINVAL off the sector
    /// grid or beyond the end.
    pub errno: Errno,
    pub due: Due,
}

/// What was served so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Stats {
    /// Requests, with the time that the card took for them. One that failed counts among the failures only.
    pub done: Counters,
    /// Erase blocks erased.
    pub erases: u64,
    /// Bytes programmed for each byte written; 0 before the first write.
    pub write_amplification: f64,
    /// How long after its deadline the middle answer was ready, in µs.
    pub late_p50: u32,
    /// The same for the 99th of a hundred.
    pub late_p99: u32,
}

/// A simulated card with its clock tied to CLOCK_MONOTONIC. It keeps what is written.
pub struct Engine {
    inner: Mutex<Inner>,
    /// The card's time 0 on CLOCK_MONOTONIC, ns.
    origin: u64,
    size: u64,
    sector: u64,
    cut: AtomicBool,
    /// A copy for those who look on: the server writes it only where nobody looks just now, so that it waits for no one.
    shown: Mutex<Stats>,
    /// Answers by how late they were, in µs.
    late: Box<[AtomicU32]>,
    /// What the card shares with others.
    bus: Option<Bus>,
    /// Answers need not come in the order of the requests.
    queues: bool,
}

struct Inner {
    card: Card,
    /// What the card works on side by side, where it has a queue.
    queue: Option<Queue>,
    done: Counters,
    trace: Option<Sender<Line>>,
}

impl Inner {
    fn stats(&self) -> Stats {
        let c = self.card.counters();
        Stats { done: self.done, erases: c.erases, write_amplification: c.write_amplification(), ..Stats::default() }
    }
}

impl Engine {
    /// A new card of this model; its life begins now.
    pub fn new(model: &Model, seed: u64, trace: Option<&Recorder>) -> Engine {
        let card = Card::new(model, seed).with_content();
        let sector = card.sector();
        let queue = (model.card.queue > 1).then(|| Queue::new(&card, 0, model.card.queue));
        Engine {
            size: card.capacity() / sector * sector,
            sector,
            origin: trace.map_or_else(clock::now, |t| t.origin),
            queues: queue.is_some(),
            inner: Mutex::new(Inner { card, queue, done: Counters::default(), trace: trace.map(Recorder::sender) }),
            cut: AtomicBool::new(false),
            shown: Mutex::default(),
            late: (0..=LATEST).map(|_| AtomicU32::new(0)).collect(),
            bus: None,
        }
    }

    /// All data goes over this bus.
    #[must_use]
    pub fn on(mut self, bus: Option<Bus>) -> Engine {
        self.bus = bus;
        self
    }

    /// Bytes of the card, whole sectors.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Does the card work on several requests side by side?
    pub fn queues(&self) -> bool {
        self.queues
    }

    /// Bytes of a sector: the grid of every request.
    pub fn sector(&self) -> u64 {
        self.sector
    }

    /// From now on every request is refused at once, as if the card had been pulled out.
    pub fn cut(&self) {
        self.cut.store(true, Relaxed);
    }

    /// The card is taken out and put in again: what only its electronics held is gone.
    pub fn reinsert(&self) {
        self.lock().card.power_cut();
    }

    /// The trace ends here, and what is shown is complete.
    pub fn end_trace(&self) {
        let mut inner = self.lock();
        inner.trace = None;
        *self.shown.lock().unwrap_or_else(PoisonError::into_inner) = inner.stats();
    }

    /// Reads into `into`; the bytes are there at once, the host is to have them at the time returned.
    ///
    /// # Errors
    /// What the card refuses.
    pub fn read(&self, at: u64, into: &mut [u8]) -> Result<Due, Refused> {
        let mut inner = self.lock();
        let due = self.submit(&mut inner, Op::Read, at, into.len() as u64)?;
        inner.card.load(at, into).map_err(|f| self.refused(&mut inner, due, &f))?;
        Ok(due)
    }

    /// Writes `from`.
    ///
    /// # Errors
    /// What the card refuses; nothing is stored then.
    pub fn write(&self, at: u64, from: &[u8]) -> Result<Due, Refused> {
        let made_of = |pattern: &[u8; 4096]| from.chunks(4096).all(|c| c == &pattern[..c.len()]);
        let fill = match from.first() {
            Some(0) if made_of(&ZEROS) => Fill::Zeros,
            Some(0xff) if made_of(&ONES) => Fill::Ones,
            _ => Fill::Random(0),
        };
        let mut inner = self.lock();
        let due = self.submit(&mut inner, Op::Write(fill), at, from.len() as u64)?;
        inner.card.store(at, from).map_err(|f| self.refused(&mut inner, due, &f))?;
        Ok(due)
    }

    /// Says that a range is no longer needed; it reads as zeros then.
    ///
    /// # Errors
    /// What the card refuses.
    pub fn discard(&self, at: u64, len: u64) -> Result<Due, Refused> {
        self.submit(&mut self.lock(), Op::Discard, at, len)
    }

    /// Makes everything acknowledged so far durable.
    ///
    /// # Errors
    /// What the card refuses.
    pub fn flush(&self) -> Result<Due, Refused> {
        self.submit(&mut self.lock(), Op::Flush, 0, 0)
    }

    /// Waits until an answer is due, and notes how late it is.
    pub fn wait(&self, due: Due) {
        clock::wait_until(due.0);
        let late = (clock::now() - due.0) / 1000;
        self.late[(late as usize).min(LATEST)].fetch_add(1, Relaxed);
    }

    /// What was served so far.
    pub fn stats(&self) -> Stats {
        let late: Vec<u64> = self.late.iter().map(|n| n.load(Relaxed).into()).collect();
        let all: u64 = late.iter().sum();
        let quantile = |per_cent: u64| {
            let mut left = (all * per_cent).div_ceil(100);
            late.iter().position(|&n| {
                left = left.saturating_sub(n);
                left == 0
            })
        };
        let shown = *self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        Stats { late_p50: quantile(50).unwrap_or(0) as u32, late_p99: quantile(99).unwrap_or(0) as u32, ..shown }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn submit(&self, inner: &mut Inner, op: Op, at: u64, len: u64) -> Result<Due, Refused> {
        let arrived = clock::now();
        if self.cut.load(Relaxed) {
            inner.done.failures += 1;
            return Err(Refused { errno: Errno::NODEV, due: Due(arrived) });
        }
        let start = arrived - self.origin;
        let r = request(Access { op, at, len });
        let done = match &mut inner.queue {
            Some(queue) => queue.submit(&mut inner.card, start, r),
            None => inner.card.submit(start, r),
        };
        let mut done = done.map_err(|f| self.refused(inner, Due(arrived), &f))?.done;
        if let Some(bus) = self.bus.as_ref().filter(|_| matches!(op, Op::Read | Op::Write(_))) {
            done = bus.answered(arrived, self.origin + done, op != Op::Read, len) - self.origin;
        }
        inner.done.add(op, len);
        inner.done.busy = inner.done.busy + Nanos(done - start);
        if let Ok(mut shown) = self.shown.try_lock() {
            *shown = inner.stats();
        }
        if let Some(trace) = &inner.trace {
            // A trace that can no longer be written is reported by the recorder.
            let _ = trace.send(Line { start, took: done - start, op, at, len });
        }
        Ok(Due(self.origin + done))
    }

    fn refused(&self, inner: &mut Inner, at_once: Due, fault: &Fault) -> Refused {
        inner.done.failures += 1;
        let due = match *fault {
            Fault::Io { done, .. } => at_once.max(Due(self.origin + done)),
            _ => at_once,
        };
        Refused { errno: errno(fault), due }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads and writes of two seconds each, so that it does not matter when they come; nobody waits for them.
    fn engine(queue: u64) -> Engine {
        let text = format!(
            "name = \"q\"\n[card]\ncapacity = \"64 MiB\"\nqueue = {queue}\n[nand]\npage = \"4 KiB\"\naccess_unit = \"4 KiB\"\nwrite_unit = \"4 KiB\"\n\
             erase_block = \"1 MiB\"\nsense = \"2 s\"\nprogram = \"2 s\"\ndies = 4\n[ftl]\nkind = \"none\"\n"
        );
        Engine::new(&Model::parse(&text, "q").unwrap(), 1, None)
    }

    /// Seconds until each of these pages is read, from now on.
    fn dues(e: &Engine, pages: &[u64]) -> Vec<f64> {
        let begun = clock::now();
        let mut bytes = vec![0; 4096];
        pages.iter().map(|p| (e.read(p * 4096, &mut bytes).unwrap().0 - begun) as f64 / 1e9).collect()
    }

    #[test]
    fn a_card_with_a_queue_works_on_several_requests() {
        let pages: Vec<u64> = (0..32).collect();
        let (with, without) = (engine(32), engine(0));
        assert!(with.queues() && !without.queues());
        let last = |e: &Engine| dues(e, &pages).last().copied().unwrap();
        let (with, without) = (last(&with), last(&without));
        assert!((60.0..70.0).contains(&without), "one after the other: {without} s");
        assert!((15.0..25.0).contains(&with), "on four dies: {with} s");
    }

    /// Data that were read go over the wire in the order of the requests; writes need none of it once they are sent.
    #[test]
    fn a_write_to_a_die_that_is_free_overtakes() {
        let written = |e: &Engine| [0, 4, 1].map(|p: u64| e.write(p * 4096, &[7; 4096]).unwrap());
        let all = written(&engine(32));
        assert!(all[2] < all[1], "{all:?}");
        // A place in the queue is needed all the same.
        let all = written(&engine(2));
        assert!(all[2].0 > all[0].0 + 1_000_000_000, "{all:?}");
    }
}

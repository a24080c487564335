//! A device that notes how long the card was busy after each block of every write (C10).

use crate::device::{Access, Busy, Device, Geometry, Op, Result, Timed, mmc};
use crate::samples::busy::Transaction;
use crate::units::{Nanos, SECTOR};

/// Most transactions noted: 5 MB in records of 512 B are 10 000.
const MOST: usize = 200_000;

/// Wraps a device.
pub struct Traced<'a> {
    inner: &'a mut dyn Device,
    /// Of one look at a busy card; 0 = nothing is noted.
    poll: Nanos,
    pub transactions: Vec<Transaction>,
}

impl<'a> Traced<'a> {
    pub fn new(inner: &'a mut dyn Device, poll: Nanos) -> Traced<'a> {
        Traced { inner, poll, transactions: vec![] }
    }
}

impl Device for Traced<'_> {
    fn geometry(&self) -> &Geometry {
        self.inner.geometry()
    }

    fn access(&mut self, a: Access) -> Result<Timed> {
        let timed = self.inner.access(a)?;
        if let (Op::Write(_), true) = (a.op, self.poll.0 > 0 && self.transactions.len() < MOST)
            && let Some(busy) = self.inner.busy()
        {
            let polls = |ns: u64| ns / self.poll.0;
            self.transactions.extend(busy.into_iter().map(|b| Transaction {
                block: Some(b.at / SECTOR),
                data: b.data.into_iter().map(polls).collect(),
                stop: b.stop.map(polls),
            }));
        }
        Ok(timed)
    }

    fn now(&self) -> Nanos {
        self.inner.now()
    }

    fn idle(&mut self, d: Nanos) {
        self.inner.idle(d);
    }

    fn load(&mut self, at: u64, into: &mut [u8]) -> Result<()> {
        self.inner.load(at, into)
    }

    fn store(&mut self, at: u64, from: &[u8]) -> Result<()> {
        self.inner.store(at, from)
    }

    fn busy(&mut self) -> Option<Vec<Busy>> {
        self.inner.busy()
    }

    fn write_as(&mut self, how: Option<mmc::Multi>) -> Result<()> {
        self.inner.write_as(how)
    }
}

//! A device that notes how long the card was busy after each block of every write (C10), and the sizes of the writes and of the commands
//! that the card got for them (C23).

use crate::device::{Access, Busy, Device, Geometry, Op, Result, Timed, mmc};
use crate::host::requests::{CARD, KERNEL, Layer, Sizes};
use crate::samples::busy::Transaction;
use crate::units::{Nanos, SECTOR};

/// Most transactions noted: 5 MB in records of 512 B are 10 000.
const MOST: usize = 200_000;

/// Wraps a device.
pub struct Traced<D> {
    inner: D,
    /// Of one look at a busy card; 0 = busy times are not noted.
    poll: Nanos,
    /// Bytes of a call of the application.
    call: u64,
    sent: Sizes,
    /// Of the commands of the bus, where the target knows them.
    commands: Option<Sizes>,
    pub transactions: Vec<Transaction>,
}

impl<D: Device> Traced<D> {
    pub fn new(inner: D, poll: Nanos) -> Traced<D> {
        Traced { inner, poll, call: 0, sent: Sizes::default(), commands: None, transactions: vec![] }
    }

    /// The application writes so many bytes at a time.
    pub fn of_calls(self, call: u64) -> Traced<D> {
        Traced { call, ..self }
    }

    /// What `above` sent so far, and what the card got, or the most that the device says it takes in one piece.
    pub fn layers(&self, above: &str) -> Vec<Layer> {
        let layer = |name: &str, sizes: &Sizes, limit| Layer { name: name.into(), sizes: sizes.clone(), mean_only: false, limit };
        let below = match &self.commands {
            Some(c) => Some(layer(CARD, c, None)),
            None => self.geometry().max_request.map(|m| layer(KERNEL, &self.sent, Some(m))),
        };
        [layer(above, &self.sent, self.geometry().max_request)].into_iter().chain(below).collect()
    }

    /// What was counted so far does not count.
    pub fn forget(&mut self) {
        (self.sent, self.commands) = (Sizes::default(), None);
    }

    fn count(&mut self, len: u64) {
        self.sent.add(len, self.call);
        let noted = self.poll.0 > 0 && self.transactions.len() < MOST;
        // One sector is one command.
        if len <= SECTOR && !noted && self.commands.is_some() {
            self.commands.iter_mut().for_each(|c| c.add(len, self.call));
            return;
        }
        let Some(busy) = self.inner.busy() else { return };
        let commands = self.commands.get_or_insert_default();
        busy.iter().for_each(|b| commands.add(b.data.len() as u64 * self.inner.geometry().sector, self.call));
        if noted {
            let polls = |ns: u64| ns / self.poll.0;
            self.transactions.extend(busy.into_iter().map(|b| Transaction {
                block: Some(b.at / SECTOR),
                data: b.data.into_iter().map(polls).collect(),
                stop: b.stop.map(polls),
            }));
        }
    }
}

impl<D: Device> Device for Traced<D> {
    fn geometry(&self) -> &Geometry {
        self.inner.geometry()
    }

    fn access(&mut self, a: Access) -> Result<Timed> {
        let timed = self.inner.access(a)?;
        if let Op::Write(_) = a.op {
            self.count(a.len);
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

    fn discard_securely(&mut self, at: u64, len: u64) -> Result<()> {
        self.inner.discard_securely(at, len)
    }

    fn get(&mut self, at: u64, into: &mut [u8]) -> Result<Timed> {
        self.inner.get(at, into)
    }

    fn put(&mut self, at: u64, from: &[u8]) -> Result<Timed> {
        let timed = self.inner.put(at, from)?;
        self.count(from.len() as u64);
        Ok(timed)
    }

    fn write_as(&mut self, how: Option<mmc::Multi>) -> Result<()> {
        self.inner.write_as(how)
    }
}

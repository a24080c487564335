//! What an access set off, counted by kind: the time of an access is the sum of events times costs, plus what the host adds by chance.
//!
//! A card counts only where it is asked to ([`crate::Card::account`]). Which events an access causes follows from the structure of the
//! card and from the accesses before; their costs do not enter, except where work is put off or hidden: reads that sense ahead
//! (`nand.pipelined`), data that come in meanwhile (`card.overlap`), an SLC cache, a volatile write cache, work left undone (`card.behind`), collection in the background, heat. There the card needs its costs to run, and
//! what it waits for or saves comes as time ([`Event::Late`], [`Event::Heat`]).

use crate::model::{Model, Transfer};
use crate::units::ps_per_byte;
use serde::Serialize;

macro_rules! events {
    ($($(#[$d:meta])* $v:ident = $w:literal),+ $(,)?) => {
        /// A kind of event. Its cost is a time of the card model, or one unit of time for the last five.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Event { $($(#[$d])* $v),+ }
        impl Event {
            /// All kinds, in their order.
            pub const ALL: [Event; [$(Event::$v),+].len()] = [$(Event::$v),+];

            /// What it is called, in plain words.
            pub fn name(self) -> &'static str {
                match self { $(Event::$v => $w),+ }
            }
        }
    };
}

events! {
    /// A command of the bus: `host.command` and `card.command`.
    Command = "command",
    /// A further command of a request that the reader cuts: `host.split`.
    Split = "further command of a cut request",
    /// Bytes on the wire: by `host.rate` or `card.rate`.
    Wire = "byte on the bus",
    /// A write command's status, stop and acceptance: `host.status`, `card.accept`, `card.stop`.
    After = "end of a write command",
    /// Access units sensed: `nand.sense`.
    Sense = "multi-plane page read",
    /// Further pages of an access unit: `nand.next_page`.
    NextPage = "further page of a multi-plane page",
    /// Erase blocks looked up by reads: `nand.lookup`.
    Lookup = "erase block looked up",
    /// Reads of flash that was never written: `nand.unwritten_read`.
    Flat = "read of unwritten flash",
    /// Write units programmed: `nand.program`.
    Program = "write unit programmed",
    /// Bytes of writes that go into the registers of the flash: by `nand.load_rate`.
    Load = "byte into the registers of the flash",
    /// Bytes of partly written units filled up: by `nand.rest_rate`.
    Rest = "byte of a write unit filled up",
    /// Ends of programming: `nand.commit`.
    Commit = "end of programming",
    /// Writes in another erase block than the write before, and boundaries that a write crosses: `nand.change`.
    Change = "change of erase block",
    /// Write units programmed, times the streams beyond those served at the full rate: `card.stream_cost`.
    Stream = "write unit with one more stream",
    /// Bytes that go into the registers or fill up a unit, times these streams: by `card.stream_rate`.
    StreamByte = "byte with one more stream",
    /// Write units copied inside the card: `nand.copy`.
    Copy = "write unit copied",
    /// Erase blocks erased: `nand.erase`.
    Erase = "erase block erased",
    /// Merges: `ftl.close`.
    Close = "merge",
    /// Merges of an AU written in random order: `ftl.close_random`, or `ftl.close` where that is 0.
    CloseRandom = "merge after random order",
    /// Pieces of the map fetched: `ftl.map_miss`.
    MapMiss = "translation page fetched",
    /// Pieces of the map that were changed and give way to others: `ftl.map_save`.
    MapSave = "translation page saved",
    /// Write units programmed into the SLC cache: `slc.program`.
    SlcProgram = "write unit put into the SLC cache",
    /// Discards: `card.discard`.
    Discard = "discard",
    /// Flushes: `card.flush`.
    Flush = "flush",
    /// ns waited for work put off earlier, less what was put off or hidden now.
    Late = "ns of work put off",
    /// ns added because the card is hot.
    Heat = "ns of throttling",
    /// ns of stalls.
    Stall = "ns of stalls",
    /// ns by which the host was late, or early where it is negative.
    Noise = "ns of the host's noise",
    /// ps cut off where the card counts in whole ns; they are taken away.
    Rounding = "ps of rounding",
}

/// Kinds of events.
pub const KINDS: usize = Event::ALL.len();

impl Event {
    /// Counted in bytes: its cost is the time of one, by a rate.
    pub fn by_byte(self) -> bool {
        matches!(self, Event::Wire | Event::Load | Event::Rest | Event::StreamByte)
    }
}

/// How many events of each kind an access caused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Events(pub [i64; KINDS]);

impl Events {
    /// How many of this kind.
    #[inline]
    pub fn get(&self, e: Event) -> i64 {
        self.0[e as usize]
    }

    #[inline]
    pub(crate) fn add(&mut self, e: Event, n: u64) {
        self.0[e as usize] += n as i64;
    }

    /// ps the access took by these costs: whole ns, where they are those of the card.
    pub fn ps(&self, costs: &Costs) -> i64 {
        let ps: i128 = self.0.iter().zip(&costs.0).map(|(&n, &c)| i128::from(n) * i128::from(c)).sum();
        ps as i64
    }
}

/// What one event of each kind costs, in ps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Costs(pub [i64; KINDS]);

impl Costs {
    /// The costs of a model.
    pub fn of(m: &Model) -> Costs {
        let rate = [m.host.rate, m.card.rate].into_iter().filter(|&r| r > 0).min().unwrap_or(0);
        let close = match m.ftl.kind {
            crate::model::FtlKind::LogBlock => m.ftl.log.close,
            _ => m.ftl.block.close,
        };
        let stop = if m.host.transfer == Transfer::OpenEnded { m.card.stop } else { 0 };
        let ns = |e: Event| match e {
            Event::Command => m.host.command + m.card.command,
            Event::Split => m.host.split,
            Event::After => m.card.accept + m.host.status + stop,
            Event::Sense => m.nand.sense,
            Event::NextPage => m.nand.next_page,
            Event::Lookup => m.nand.lookup,
            Event::Flat => m.nand.unwritten_read,
            Event::Program => m.nand.program,
            Event::Commit => m.nand.commit,
            Event::Change => m.nand.change,
            Event::Stream => m.card.stream_cost,
            Event::Copy => m.nand.copy,
            Event::Erase => m.nand.erase,
            Event::Close => close,
            Event::CloseRandom if m.ftl.block.close_random > 0 => m.ftl.block.close_random,
            Event::CloseRandom => close,
            Event::MapMiss => m.ftl.page.map_miss,
            Event::MapSave => m.ftl.page.map_save,
            Event::SlcProgram => m.slc.program,
            Event::Discard => m.card.discard,
            Event::Flush => m.card.flush,
            Event::Late | Event::Heat | Event::Stall | Event::Noise => 1,
            Event::Wire | Event::Load | Event::Rest | Event::StreamByte | Event::Rounding => 0,
        };
        let mut costs = Event::ALL.map(|e| ns(e) as i64 * 1000);
        costs[Event::Wire as usize] = ps_per_byte(rate) as i64;
        costs[Event::Load as usize] = ps_per_byte(m.nand.load_rate) as i64;
        costs[Event::StreamByte as usize] = ps_per_byte(m.card.stream_rate) as i64;
        costs[Event::Rest as usize] = ps_per_byte(m.nand.rest_rate) as i64;
        costs[Event::Rounding as usize] = -1;
        Costs(costs)
    }
}

/// The books of a card that counts events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ledger {
    /// Of the access that is under way, or of the last one.
    pub now: Events,
    /// What the data in the collecting buffer will cause.
    pub pending: Events,
}

impl Ledger {
    /// Bytes that cost `ps` each, together cut to whole ns.
    pub fn bytes(&mut self, e: Event, bytes: u64, ps: u64) {
        Ledger::count(&mut self.now, e, bytes, ps);
    }

    pub fn count(to: &mut Events, e: Event, bytes: u64, ps: u64) {
        to.add(e, bytes);
        to.add(Event::Rounding, (u128::from(bytes) * u128::from(ps) % 1000) as u64);
    }
}

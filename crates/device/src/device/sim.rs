//! A simulated card as a device. Its clock is virtual: completions and pauses move it, so a long probe takes seconds and gives
//! the same result every time.

mod commands;

use super::mmc::{CommandPort, Multi, Transaction};
use super::{Access, Busy, Device, DeviceError, Fill, Geometry, Op, Result, Timed};
use crate::units::{Nanos, SECTOR};
use nandscope_sim::model::Profile;
use nandscope_sim::{Card, Completion, Data, Fault, Model, Request};
use rustix::io::Errno;

/// Which of the bytes written a simulated card can be asked for.
#[derive(Clone, Copy, PartialEq)]
enum Keeps {
    Nothing,
    /// Those that carry their address; all else that was written reads as zeros.
    Stamps,
    All,
}

/// A card in virtual time.
pub struct SimDevice {
    card: Card,
    geometry: Geometry,
    keeps: Keeps,
    now: u64,
    /// How writes are put on the bus.
    how: Option<Multi>,
}

impl SimDevice {
    /// A new card of this model at time 0. It keeps no content: a write costs its time and is forgotten.
    pub fn new(model: &Model, seed: u64) -> SimDevice {
        let card = Card::new(model, seed);
        let sector = card.sector();
        let geometry = Geometry {
            size: card.capacity() / sector * sector,
            sector,
            max_request: Some(model.host.max_request).filter(|&m| m > 0),
            offset: 0,
            // A declared cache is flushed as part of every timed write, as on a block device; what a card combines inside
            // without saying so is not.
            write_cache: model.card.cache > 0 || model.host.flushes,
        };
        SimDevice { card, geometry, keeps: Keeps::Nothing, now: 0, how: None }
    }

    /// The same card, keeping from now on what is written.
    pub fn with_content(self) -> SimDevice {
        SimDevice { card: self.card.with_content(), keeps: Keeps::All, ..self }
    }

    /// The same card, keeping stamped sectors only: all that experiments look at, without the memory and the time of the rest.
    pub fn with_stamps(self) -> SimDevice {
        SimDevice { card: self.card.with_content(), keeps: Keeps::Stamps, ..self }
    }

    /// The card itself: its model and its counters.
    pub fn card(&self) -> &Card {
        &self.card
    }

    /// Several accesses side by side in the card's own queue.
    fn queued(&mut self, all: &[Access], depth: u32) -> Result<Vec<Timed>> {
        let requests: Vec<Request> = all.iter().map(|&a| a.check(&self.geometry).map(|()| request(a))).collect::<Result<_>>()?;
        let first = all.first().copied();
        let done = self
            .card
            .batch(self.now, &requests, u64::from(depth))
            .map_err(|f| first.map_or(DeviceError::Unsupported("an empty batch".into()), |a| error(a.op.name(), a.at, a.len, f)))?;
        for a in all {
            if let Op::Write(fill) = a.op
                && (self.keeps == Keeps::All || self.keeps == Keeps::Stamps && matches!(fill, Fill::Stamp(_)))
            {
                let mut bytes = vec![0; a.len as usize];
                fill.render(a.at, &mut bytes);
                self.store(a.at, &bytes)?;
            }
        }
        self.now = done.iter().map(|c| c.done).max().unwrap_or(self.now).max(self.now);
        Ok(done.iter().map(|c| Timed { start: Nanos(c.start), took: Nanos(c.done - c.start) }).collect())
    }

    /// The time of an access; what a write puts down is not kept.
    fn time(&mut self, at: u64, a: Access) -> Result<Completion> {
        let done = self.card.submit(at, request(a));
        if let Err(Fault::Io { done, .. }) = &done {
            self.now = self.now.max(*done);
        }
        done.map_err(|f| error(a.op.name(), a.at, a.len, f))
    }

    fn submit(&mut self, at: u64, a: Access) -> Result<Completion> {
        let done = self.time(at, a)?;
        let kept = |fill: Fill| self.keeps == Keeps::All || self.keeps == Keeps::Stamps && matches!(fill, Fill::Stamp(_));
        if let Op::Write(fill) = a.op
            && kept(fill)
        {
            let mut bytes = vec![0; a.len as usize];
            fill.render(a.at, &mut bytes);
            self.store(a.at, &bytes)?;
        }
        Ok(done)
    }
}

fn blocks(len: u64) -> u32 {
    u32::try_from(len / SECTOR).unwrap_or(u32::MAX)
}

/// The request to a card that an access is.
pub fn request(a: Access) -> Request {
    let (op, data) = match a.op {
        Op::Read => (nandscope_sim::Op::Read, Data::Other),
        Op::Write(Fill::Zeros) => (nandscope_sim::Op::Write, Data::Zeros),
        Op::Write(Fill::Ones) => (nandscope_sim::Op::Write, Data::Ones),
        Op::Write(_) => (nandscope_sim::Op::Write, Data::Other),
        Op::Discard => (nandscope_sim::Op::Discard, Data::Other),
        Op::Flush => (nandscope_sim::Op::Flush, Data::Other),
    };
    Request { op, at: a.at, len: a.len, data }
}

/// The error number with which a block device would answer.
pub fn errno(fault: &Fault) -> Errno {
    match fault {
        Fault::OutOfRange { .. } | Fault::Misaligned { .. } | Fault::NoContent => Errno::INVAL,
        Fault::Io { .. } | Fault::PowerCut => Errno::IO,
        Fault::Gone => Errno::NODEV,
        Fault::ReadOnlyMedium => Errno::ROFS,
    }
}

fn error(op: &'static str, at: u64, len: u64, f: Fault) -> DeviceError {
    match f {
        Fault::OutOfRange { .. } | Fault::Misaligned { .. } => DeviceError::OutOfBounds(f.to_string()),
        Fault::NoContent => DeviceError::Unsupported(f.to_string()),
        _ => DeviceError::Io { op, at, len, source: errno(&f).into() },
    }
}

impl Device for SimDevice {
    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn access(&mut self, a: Access) -> Result<Timed> {
        a.check(&self.geometry)?;
        let start = self.now;
        if let (Op::Write(fill), Some(how)) = (a.op, self.how) {
            let took = self.transaction(Transaction { how, at: a.at, blocks: blocks(a.len), fill })?;
            return Ok(Timed { start: Nanos(start), took });
        }
        let mut done = self.submit(start, a)?.done;
        if self.geometry.write_cache && !self.card.model().host.flushes && matches!(a.op, Op::Write(_)) {
            done = self.submit(done, Access { op: Op::Flush, at: 0, len: 0 })?.done;
        }
        self.now = done;
        Ok(Timed { start: Nanos(start), took: Nanos(done - start) })
    }

    /// The host hands over `depth` accesses at once, then one more whenever one is done.
    fn batch(&mut self, all: &[Access], depth: u32) -> Result<Vec<Timed>> {
        if self.how.is_some() {
            return all.iter().map(|&a| self.access(a)).collect();
        }
        if depth > 1 && self.card.model().card.queue > 1 {
            return self.queued(all, depth);
        }
        let (depth, begun) = (depth.max(1) as usize, self.now);
        let mut out: Vec<Timed> = Vec::with_capacity(all.len());
        for (i, &a) in all.iter().enumerate() {
            a.check(&self.geometry)?;
            let start = i.checked_sub(depth).map_or(begun, |j| (out[j].start + out[j].took).0);
            self.now = self.submit(start, a)?.done;
            out.push(Timed { start: Nanos(start), took: Nanos(self.now - start) });
        }
        Ok(out)
    }

    fn now(&self) -> Nanos {
        Nanos(self.now)
    }

    fn idle(&mut self, d: Nanos) {
        self.now = self.now.saturating_add(d.0);
    }

    fn load(&mut self, at: u64, into: &mut [u8]) -> Result<()> {
        self.card.load(at, into).map_err(|f| error("read", at, into.len() as u64, f))
    }

    fn store(&mut self, at: u64, from: &[u8]) -> Result<()> {
        self.card.store(at, from).map_err(|f| error("write", at, from.len() as u64, f))
    }

    fn busy(&mut self) -> Option<Vec<Busy>> {
        Some(self.card.busy().into_iter().map(|b| Busy { at: b.at, data: b.data, stop: b.stop }).collect())
    }

    fn access_of(&mut self, a: Access, bytes: &[u8]) -> Result<Option<Timed>> {
        if self.keeps == Keeps::Nothing {
            return Ok(None);
        }
        let timed = self.access(a)?;
        self.store(a.at, bytes)?;
        Ok(Some(timed))
    }

    fn put(&mut self, at: u64, from: &[u8]) -> Result<Timed> {
        let a = Access { op: Op::Write(Fill::Random(0)), at, len: from.len() as u64 };
        a.check(&self.geometry)?;
        if let Some(how) = self.how {
            return Err(how.unsupported("a raw transaction takes a fill, not bytes"));
        }
        let start = self.now;
        self.now = self.time(start, a)?.done;
        if self.keeps != Keeps::Nothing {
            self.store(at, from)?;
        }
        Ok(Timed { start: Nanos(start), took: Nanos(self.now - start) })
    }

    fn reinsert(&mut self) -> Result<()> {
        self.card.power_cut();
        Ok(())
    }

    fn discard_securely(&mut self, at: u64, len: u64) -> Result<()> {
        if !self.card.model().card.secure_discard {
            return Err(DeviceError::Unsupported("the model of this card has no secure discard; overwrite instead".into()));
        }
        self.access(Access { op: Op::Discard, at, len }).map(|_| ())
    }

    fn write_as(&mut self, how: Option<Multi>) -> Result<()> {
        how.map_or(Ok(()), |h| self.supports(h))?;
        self.how = how;
        Ok(())
    }

    fn switch_cache(&mut self, on: bool) -> Result<bool> {
        let none = || DeviceError::Unsupported("the model of this card has no write cache".into());
        let (was, ns) = self.card.switch_cache(on).ok_or_else(none)?;
        self.now += ns;
        Ok(was)
    }
}

/// A microcontroller with a file library, as far as it costs time of its own (C6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    /// The host profile, where it is one unchanged.
    pub name: &'static str,
    /// A call by itself.
    pub call: Nanos,
    /// Copying between buffers, ns for 1000 bytes.
    pub copy: u64,
    /// Between two calls of a benchmark.
    pub pause: Nanos,
    /// One look at a busy card.
    pub poll: Nanos,
    /// A sector of the FAT is kept apart from the data.
    pub fat_buffer: bool,
}

impl Machine {
    /// The machine of a model; none where its host is no microcontroller.
    pub fn of(model: &Model) -> Option<Machine> {
        let h = &model.host;
        (h.buffer > 0).then(|| Machine {
            name: h.profile().map_or("a host of its own", Profile::name),
            call: Nanos(h.call),
            copy: 1_000_000_000_000u64.checked_div(h.copy).unwrap_or(0),
            pause: Nanos(h.pause),
            poll: Nanos(h.poll),
            fat_buffer: h.fat_buffer,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Consent, Limits, OpenOptions, Target, open};
    use super::*;

    fn device(name: &str) -> SimDevice {
        let t = Target::card(name, None).unwrap();
        SimDevice::new(&t.model, t.seed)
    }

    #[test]
    fn every_built_in_card_opens_and_gives_the_same_times_twice() {
        for (name, _) in nandscope_sim::cards::ALL {
            let run = || {
                let mut o = open(&format!("sim:{name}?seed=3"), &OpenOptions::default()).unwrap();
                assert_eq!(o.signatures().unwrap(), []);
                let size = o.geometry().size;
                let consent = Consent::check(o.id(), None).unwrap();
                let mut g = o.writable(&consent, &Limits { budget: 1 << 20, ..Limits::default() }).unwrap();
                let mut times = Vec::new();
                for i in 0..50u64 {
                    let at = i * 7_654_321 * 512 % (size - 65536) / 65536 * 65536;
                    let op = if i % 3 == 0 { Op::Write(Fill::Random(i)) } else { Op::Read };
                    match g.access(Access { op, at, len: 16384 }) {
                        Ok(t) => times.push(t),
                        // A fake may say at once that it has no flash there.
                        Err(e) => {
                            assert!(name.starts_with("fake-"), "{name}: {e}");
                            return times;
                        }
                    }
                }
                assert_eq!(g.counters().bytes_written, 17 * 16384);
                times
            };
            let times = run();
            assert_eq!(times, run(), "{name}");
            assert!(times.windows(2).all(|w| w[1].start == w[0].start + w[0].took), "{name}: no time is lost between accesses");
        }
    }

    #[test]
    fn the_seed_matters_where_there_is_noise() {
        let times = |seed: u64| {
            let mut d = device(&format!("noisy?seed={seed}"));
            (0..20).map(|i| d.access(Access { op: Op::Read, at: i << 20, len: 4096 }).unwrap().took).collect::<Vec<_>>()
        };
        assert_eq!(times(1), times(1));
        assert_ne!(times(1), times(2));
    }

    #[test]
    fn time_passes_by_accesses_and_pauses_only() {
        let mut d = device("flashbench-readme");
        let t = d.access(Access { op: Op::Read, at: 0, len: 4096 }).unwrap();
        assert_eq!(d.now(), t.took);
        d.idle(Nanos(5));
        assert_eq!(d.now(), t.took + Nanos(5));
        assert_eq!(d.access(Access { op: Op::Read, at: 0, len: 4096 }).unwrap().start, t.took + Nanos(5));
    }

    #[test]
    fn single_blocks_cost_a_command_each_and_put_the_same_on_the_card() {
        let mut d = device("flashbench-readme").with_content();
        let write = |at| Access { op: Op::Write(Fill::Stamp(2)), at, len: 32768 };
        let took = |d: &mut SimDevice, how, at| {
            d.write_as(how).unwrap();
            // The first write opens the AU.
            d.access(write(at)).unwrap();
            d.access(write(at + 32768)).unwrap().took
        };
        let (kernel, multi, single) =
            (took(&mut d, None, 0), took(&mut d, Some(Multi::PreDefined), 4 << 20), took(&mut d, Some(Multi::SingleBlocks), 8 << 20));
        assert!(kernel.0.abs_diff(multi.0) * 50 < multi.0, "the same but for the noise: {kernel} {multi}");
        assert!(single.0 > 2 * multi.0, "{single} {multi}");
        let mut bytes = vec![0; 32768];
        for at in [0, 4 << 20, 8 << 20] {
            d.load(at, &mut bytes).unwrap();
            assert_eq!(super::super::fill::read_stamp(&bytes[32256..]), Some((at + 32256, 2)));
        }
        assert!(matches!(d.write_as(Some(Multi::Acmd23)), Err(DeviceError::Unsupported(_))));
        assert_eq!(d.how, Some(Multi::SingleBlocks), "a refused form changes nothing");
    }

    #[test]
    fn the_model_of_the_host_says_which_forms_there_are() {
        let text = nandscope_sim::cards::text("null").unwrap();
        let card = |host: &str, stop: &str| {
            let text = text.replacen("[card]\n", &format!("[host]\n{host}\n[card]\n{stop}\n"), 1);
            SimDevice::new(&Model::parse(&text, "host.toml").unwrap(), 1)
        };
        let forms = |d: &SimDevice| Multi::ALL.into_iter().filter(|&m| d.supports(m).is_ok()).collect::<Vec<_>>();
        let mut plain = card("", "stop = \"700 us\"");
        assert_eq!(forms(&plain), [Multi::SingleBlocks, Multi::OpenEnded, Multi::PreDefined]);
        let mut took = |how| {
            plain.write_as(Some(how)).unwrap();
            plain.access(Access { op: Op::Write(Fill::Ones), at: 0, len: 4096 }).unwrap().took
        };
        assert_eq!(took(Multi::OpenEnded), took(Multi::PreDefined) + Nanos(700_000));
        assert_eq!(forms(&card("transfer = \"open-ended\"", "")), [Multi::OpenEnded]);
        assert_eq!(forms(&card("transfer = \"single-block\"", "")), [Multi::SingleBlocks]);
        assert_eq!(forms(&card("max_request = \"64 KiB\"", "")), [Multi::SingleBlocks]);
        let e = card("transfer = \"single-block\"", "").supports(Multi::PreDefined).unwrap_err();
        assert!(e.to_string().contains("single blocks only"), "{e}");
    }

    #[test]
    fn depth_shows_as_waiting_on_a_card_that_serves_one_at_a_time() {
        let reads: Vec<Access> = (0..8).map(|i| Access { op: Op::Read, at: i << 22, len: 4096 }).collect();
        let mut one = device("flashbench-readme");
        let single = one.batch(&reads, 1).unwrap();
        let mut four = device("flashbench-readme");
        let deep = four.batch(&reads, 4).unwrap();
        assert_eq!(one.now(), four.now(), "the card is no faster");
        assert!(deep[3].took > single[3].took + single[2].took);
        assert_eq!(deep[0].start, deep[3].start);
        assert_eq!(deep[4].start, deep[0].start + deep[0].took);
    }

    #[test]
    fn content_is_kept_on_request_and_undo_brings_it_back() {
        let mut without = device("flashbench-readme");
        assert!(matches!(without.load(0, &mut [0; 512]), Err(DeviceError::Unsupported(_))));
        let dir = tempfile::tempdir().unwrap();
        let o = open("sim:flashbench-readme", &OpenOptions::default()).unwrap();
        let consent = Consent::check(o.id(), None).unwrap();
        let limits = Limits { budget: 1 << 20, undo: Some(dir.path().into()), ..Limits::default() };
        let mut g = o.writable(&consent, &limits).unwrap();
        let mut before = vec![0; 65536];
        g.load(1 << 20, &mut before).unwrap();
        g.access(Access { op: Op::Write(Fill::Stamp(4)), at: 1 << 20, len: 65536 }).unwrap();
        let mut after = vec![0; 65536];
        g.load(1 << 20, &mut after).unwrap();
        assert_eq!(super::super::fill::read_stamp(&after[512..]), Some(((1 << 20) + 512, 4)));
        assert_eq!(g.restore().unwrap().unwrap().bytes, 65536);
        g.load(1 << 20, &mut after).unwrap();
        assert_eq!(after, before);
    }

    /// A card with these faults.
    fn faulty(rule: &str) -> SimDevice {
        let text = format!("{}\n[[fault]]\n{rule}\n", nandscope_sim::cards::text("null").unwrap());
        SimDevice::new(&Model::parse(&text, "faulty.toml").unwrap(), 1)
    }

    #[test]
    fn faults_come_out_as_errors_of_the_medium_and_time_goes_on() {
        let code = |r: Result<Timed>| match r {
            Err(DeviceError::Io { source, .. }) => source.raw_os_error(),
            other => panic!("{other:?}"),
        };
        let read = |at| Access { op: Op::Read, at, len: 4096 };
        let mut d = faulty("kind = \"io\"\non = \"read\"\nat = \"1 MiB\"\nlen = \"4 KiB\"");
        d.access(read(0)).unwrap();
        let before = d.now();
        assert_eq!(code(d.access(read(1 << 20))), Some(Errno::IO.raw_os_error()));
        assert!(d.now() >= before);
        d.access(read(2 << 20)).unwrap();
        let mut d = faulty("kind = \"gone\"\nafter_commands = 2");
        let last = (0..5).map(|i| d.access(read(i * 4096))).find(Result::is_err).expect("it disappears");
        assert_eq!(code(last), Some(Errno::NODEV.raw_os_error()));
        let mut d = faulty("kind = \"read-only\"\nafter_bytes = \"8 KiB\"");
        let write = |at| Access { op: Op::Write(Fill::Ones), at, len: 4096 };
        let last = (0..5).map(|i| d.access(write(i * 4096))).find(Result::is_err).expect("it turns read-only");
        assert_eq!(code(last), Some(Errno::ROFS.raw_os_error()));
        d.access(read(0)).unwrap();
    }
}

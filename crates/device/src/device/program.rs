//! A device behind a program (`exec:COMMAND ARGS`) or a serial port (`serial:/dev/ttyACM0`): one request a line, one answer a line, times on
//! its own clock. The protocol is in docs/exec.md.

mod hello;
mod line;

pub use hello::is_name;

use super::fill::read_stamp;
use super::trace::{parse_word, word};
use super::{Access, Device, DeviceError, Fill, Geometry, Op, Result, Timed};
use crate::units::{MIB, Nanos, SECTOR};
use hello::{BEGIN, Hello, words};
use line::Line;
use std::collections::HashMap;
use std::fmt::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Bits per second where none are given; USB ports ignore it.
const BAUD: u32 = 115_200;
/// A board that has just been plugged in or reset needs so long to say what it is.
const BOOT: Duration = Duration::from_secs(10);
/// Seeds from here on stand for bytes that no pattern makes; they are kept on this side.
const KEPT: u64 = 0xf000_0000_0000_0000;

/// A device that is spoken to; clones are the same device.
#[derive(Clone)]
pub struct Program(Arc<Mutex<Talk>>);

struct Talk {
    line: Line,
    target: String,
    hello: Hello,
    geometry: Geometry,
    /// End of the last access, on the device's clock.
    now: u64,
    /// Why it is of no use any more, and whether what it said is the reason.
    dead: Option<(String, bool)>,
    /// Requests that were not sent yet.
    out: String,
    /// Sectors that hold bytes no pattern makes: the seed that stands for them, and the bytes.
    kept: HashMap<u64, (u64, Vec<u8>)>,
    next_seed: u64,
    /// What is read must be put back later, so that a `?` is an error.
    strict: bool,
}

impl Program {
    /// Starts or opens the target and reads what it says of itself.
    ///
    /// # Errors
    /// `Open` where it cannot be started, or is no such device.
    pub fn open(target: &str) -> Result<Program> {
        let open = |why: String| DeviceError::Open { target: target.into(), why };
        let (mut line, first) = match target.strip_prefix("serial:") {
            Some(port) => {
                let (path, baud) = port.rsplit_once('@').map_or((port, None), |(p, b)| (p, Some(b)));
                let baud =
                    baud.map_or(Ok(BAUD), |b| b.parse().map_err(|_| open(format!("'{b}' is no speed; write for example @115200"))))?;
                let hint = "write serial:PORT[@BAUD], as serial:/dev/ttyACM0";
                if path.is_empty() {
                    return Err(open(format!("no port after serial:; {hint}")));
                }
                let mut line = Line::serial(path, baud).map_err(|e| open(format!("{e}; {hint}")))?;
                let first = greet(&mut line).map_err(open)?;
                (line, first)
            }
            None => {
                let command = words(target.strip_prefix("exec:").unwrap_or(target)).map_err(open)?;
                let hint = "; write exec:COMMAND ARGS, in quotes for the shell";
                let mut line = Line::start(&command).map_err(|e| open(format!("{e}{hint}")))?;
                let first = line.next(Nanos(0)).map(|l| String::from_utf8_lossy(l).into_owned()).map_err(open)?;
                (line, first)
            }
        };
        let hello = Hello::parse(&first).map_err(open)?;
        if let Some(seconds) = hello.timeout {
            line.timeout = Duration::from_secs(seconds);
        }
        let geometry =
            Geometry { size: hello.size, sector: hello.sector, max_request: hello.max_request, offset: 0, write_cache: hello.write_cache };
        let mut talk = Talk {
            line,
            target: target.into(),
            hello,
            geometry,
            now: 0,
            dead: None,
            out: String::new(),
            kept: HashMap::new(),
            next_seed: KEPT,
            strict: false,
        };
        // What time it is there: a board may have run for days.
        talk.line.send(b"i 0\n").map_err(open)?;
        talk.take(Access { op: Op::Flush, at: 0, len: 0 }, Nanos(0), None).map_err(|e| match e {
            DeviceError::Gone { why, .. } => open(why),
            e => open(e.to_string()),
        })?;
        Ok(Program(Arc::new(Mutex::new(talk))))
    }

    fn talk(&self) -> MutexGuard<'_, Talk> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A card that a write changes for good: what the device says, and a board unless it says otherwise.
    pub fn is_real(&self) -> bool {
        let t = self.talk();
        t.hello.real.unwrap_or(t.target.starts_with("serial:"))
    }

    /// The name it gave itself.
    pub fn name(&self) -> Option<String> {
        self.talk().hello.name.clone()
    }

    /// From now on what cannot be put back is not read without an error.
    pub fn must_be_put_back(&self) {
        self.talk().strict = true;
    }

    /// The device to send accesses to.
    pub fn device(&self) -> Spoken {
        Spoken { geometry: self.talk().geometry.clone(), program: self.clone() }
    }
}

/// Asks a board for its first line until it comes; what it says while it starts is passed over.
fn greet(line: &mut Line) -> std::result::Result<String, String> {
    let (begun, usual) = (Instant::now(), std::mem::replace(&mut line.timeout, Duration::from_millis(500)));
    let mut heard = String::new();
    while begun.elapsed() < BOOT {
        line.send(b"\n")?;
        while let Ok(l) = line.next(Nanos(0)) {
            let text = String::from_utf8_lossy(l);
            if let Some(at) = text.find(BEGIN) {
                let first = text[at..].to_string();
                // It may have been asked several times by now.
                while line.next(Nanos(0)).is_ok() {}
                line.timeout = usual;
                return Ok(first);
            }
            heard = text.chars().take(60).collect();
        }
    }
    let what = if heard.is_empty() { "nothing".into() } else { format!("{heard:?}") };
    Err(format!(
        "the board says {what}, not 'nandscope-device 1 ...', within {} s; its firmware must answer (firmware/device.c)",
        BOOT.as_secs()
    ))
}

impl Talk {
    fn fail<T>(&mut self, why: String) -> Result<T> {
        self.ends(why, false)
    }

    /// What it said is no answer.
    fn garbled<T>(&mut self, why: String) -> Result<T> {
        self.ends(why, true)
    }

    fn ends<T>(&mut self, why: String, garbled: bool) -> Result<T> {
        let (why, garbled) = self.dead.get_or_insert((why, garbled)).clone();
        Err(DeviceError::Gone { target: self.target.clone(), why, garbled })
    }

    fn alive(&mut self) -> Result<()> {
        match self.dead.clone() {
            Some((why, garbled)) => self.ends(why, garbled),
            None => Ok(()),
        }
    }

    fn queue(&mut self, a: Access) {
        let Access { op, at, len } = a;
        let _ = match op {
            Op::Read => writeln!(self.out, "r {at} {len}"),
            Op::Discard => writeln!(self.out, "d {at} {len}"),
            Op::Flush => writeln!(self.out, "f"),
            Op::Write(fill) => writeln!(self.out, "w {at} {len} {}", name_of(fill)),
        };
    }

    fn push(&mut self) -> Result<()> {
        let sent = self.line.send(self.out.as_bytes());
        self.out.clear();
        sent.or_else(|why| self.fail(why))
    }

    /// Takes one answer; `content` gets what follows the times.
    fn take(&mut self, a: Access, more: Nanos, content: Option<&mut String>) -> Result<Timed> {
        let line = match self.line.next(more) {
            Ok(line) => line,
            Err(why) => return self.fail(why),
        };
        let Ok(text) = std::str::from_utf8(line) else { return self.garbled("it answers with bytes that are no text".into()) };
        if let Some(why) = text.strip_prefix('!') {
            let why = why.trim();
            if why.starts_with("unsupported") {
                return Err(DeviceError::Unsupported(format!("{} by {}", a.op.name(), self.target)));
            }
            let source = std::io::Error::other(if why.is_empty() {
                "the device says no more".into()
            } else {
                why.chars().take(200).collect::<String>()
            });
            return Err(DeviceError::Io { op: a.op.name(), at: a.at, len: a.len, source });
        }
        let mut fields = text.splitn(3, ' ');
        let mut number = || fields.next().and_then(|f| f.parse::<u64>().ok());
        let times = number().zip(number()).filter(|(s, t)| s.checked_add(*t).is_some_and(|e| e < u64::MAX / 4));
        let Some((start, took)) = times else {
            let shown: String = text.chars().take(60).collect();
            return self.garbled(format!("it answers {shown:?} to a {}; an answer is START_NS TOOK_NS (docs/exec.md)", a.op.name()));
        };
        let rest = fields.next().unwrap_or("");
        let may_go_on = self.hello.content && a.op == Op::Read;
        if !may_go_on && !rest.trim().is_empty() {
            let shown: String = rest.chars().take(60).collect();
            return self.garbled(format!(
                "its answer to a {} goes on with {shown:?}; only reads of a device with content=yes do (docs/exec.md)",
                a.op.name()
            ));
        }
        if let Some(into) = content {
            into.clear();
            into.push_str(rest);
        }
        if start < self.now {
            let now = self.now;
            return self.garbled(format!("its clock goes back: a {} begins at {start} ns, the one before ended at {now} ns", a.op.name()));
        }
        self.now = start + took;
        Ok(Timed { start: Nanos(start), took: Nanos(took) })
    }

    /// All in order, as many ahead as the device takes. A write includes its flush where there is a cache.
    fn series(&mut self, all: &[Access], flush: bool) -> Result<Vec<Timed>> {
        self.alive()?;
        let after = flush && self.geometry.write_cache;
        let flushed = |a: &Access| after && matches!(a.op, Op::Write(_));
        let requests: Vec<(usize, Access)> = (all.iter().enumerate())
            .flat_map(|(i, &a)| {
                let more = flushed(&a).then_some((i, Access { op: Op::Flush, at: 0, len: 0 }));
                std::iter::once((i, a)).chain(more)
            })
            .collect();
        let mut out: Vec<Timed> = Vec::with_capacity(all.len());
        let (ahead, mut sent, mut wrong) = (self.hello.ahead, 0, None);
        for done in 0..requests.len() {
            // Half of what may be under way is sent at once: fewer, longer messages.
            if sent - done <= ahead / 2 && wrong.is_none() {
                let to = requests.len().min(done + ahead);
                requests[sent..to].iter().for_each(|r| self.queue(r.1));
                sent = to;
                self.push()?;
            }
            if done == sent {
                break;
            }
            let (i, a) = requests[done];
            match self.take(a, Nanos(0), None) {
                Err(e @ DeviceError::Gone { .. }) => return Err(e),
                Err(e) => wrong = wrong.or(Some(e)),
                Ok(t) if out.len() > i => out[i].took = t.start + t.took - out[i].start,
                Ok(t) => out.push(t),
            }
        }
        wrong.map_or(Ok(out), Err)
    }

    /// One access, without the lists of a series.
    fn one(&mut self, a: Access) -> Result<Timed> {
        if self.geometry.write_cache && matches!(a.op, Op::Write(_)) {
            return self.series(&[a], true).map(|t| t[0]);
        }
        self.alive()?;
        self.queue(a);
        self.push()?;
        self.take(a, Nanos(0), None)
    }

    /// Reads, and puts what was read where it belongs.
    fn fetch(&mut self, at: u64, into: &mut [u8]) -> Result<Timed> {
        self.alive()?;
        if !self.hello.content && self.strict {
            return self.lost(at, into.len());
        }
        if !self.hello.content {
            return Err(DeviceError::Unsupported(format!("{} keeps no content that could be read back", self.target)));
        }
        let a = Access { op: Op::Read, at, len: into.len() as u64 };
        self.queue(a);
        self.push()?;
        let mut text = String::new();
        let timed = self.take(a, Nanos(0), Some(&mut text))?;
        if text.trim() == "?" {
            return self.unknown(at, into).map(|()| timed);
        }
        let mut words = text.split_ascii_whitespace();
        let mut done = 0;
        while done < into.len() {
            let piece = words.next().and_then(|l| l.parse::<usize>().ok()).zip(words.next());
            let whole = |n: &usize| *n > 0 && n.is_multiple_of(SECTOR as usize) && done + n <= into.len();
            let Some((n, fill)) = piece.filter(|(n, _)| whole(n)) else {
                let shown: String = text.chars().take(60).collect();
                return self
                    .garbled(format!("it says {shown:?} of {} bytes read; content is LEN FILL pairs that fill the read, or ?", a.len));
            };
            let part = &mut into[done..done + n];
            let here = at + done as u64;
            // A counterfeit shows what was written for another place.
            let (named, made_for) = fill.split_once('@').map_or((fill, Some(here)), |(f, at)| (f, at.parse().ok()));
            match (fill, parse_word(&format!("write:{named}")), made_for) {
                ("?", ..) => self.unknown(here, part)?,
                (_, Some(Op::Write(fill)), Some(place)) if place.is_multiple_of(SECTOR) => self.put_down(place, fill, part)?,
                _ => {
                    let shown: String = fill.chars().take(40).collect();
                    return self.garbled(format!(
                        "it names the content {shown:?}; a fill is zeros, ones, byte:N, random:SEED, stamp:SEED, any of them with @AT, or ?"
                    ));
                }
            }
            done += n;
        }
        Ok(timed)
    }

    fn put_down(&self, at: u64, fill: Fill, into: &mut [u8]) -> Result<()> {
        fill.render(at, into);
        let Fill::Random(seed) = fill else { return Ok(()) };
        if self.strict && seed < KEPT {
            return self.lost(at, into.len());
        }
        for (i, sector) in into.chunks_mut(SECTOR as usize).enumerate() {
            if let Some((_, bytes)) = self.kept.get(&(at / SECTOR + i as u64)).filter(|k| k.0 == seed) {
                sector.copy_from_slice(bytes);
            }
        }
        Ok(())
    }

    fn lost<T>(&self, at: u64, len: usize) -> Result<T> {
        let why = format!(
            "{} cannot hand over the {len} bytes at {at}, so they could not be put back; probe and run write there with --no-undo",
            self.target
        );
        Err(DeviceError::Unsupported(why))
    }

    /// Bytes that are no known pattern: nothing that was written here can look like them.
    fn unknown(&self, at: u64, into: &mut [u8]) -> Result<()> {
        if self.strict {
            return self.lost(at, into.len());
        }
        Fill::Random(!KEPT).render(at, into);
        Ok(())
    }

    /// The pattern that makes these bytes.
    fn pattern(at: u64, bytes: &[u8]) -> Option<Fill> {
        let first = *bytes.first()?;
        if bytes.iter().all(|&b| b == first) {
            return Some(match first {
                0 => Fill::Zeros,
                255 => Fill::Ones,
                b => Fill::Byte(b),
            });
        }
        let fill = Fill::Stamp(read_stamp(bytes)?.1);
        let mut same = vec![0; bytes.len()];
        fill.render(at, &mut same);
        (same == bytes).then_some(fill)
    }

    /// Writes these very bytes, in one request where that is possible.
    fn bytes(&mut self, at: u64, from: &[u8]) -> Result<Timed> {
        let len = from.len() as u64;
        if let Some(fill) = Self::pattern(at, from) {
            return self.series(&[Access { op: Op::Write(fill), at, len }], false).map(|t| t[0]);
        }
        if self.hello.real.unwrap_or(self.target.starts_with("serial:")) {
            let step = self.geometry.sector;
            let sector =
                |(i, s)| Some(Access { op: Op::Write(Self::pattern(at + i as u64 * step, s)?), at: at + i as u64 * step, len: step });
            let all: Option<Vec<Access>> = from.chunks(step as usize).enumerate().map(sector).collect();
            let Some(all) = all else {
                return Err(DeviceError::Unsupported(format!("{} takes patterns, and these {len} bytes at {at} are none", self.target)));
            };
            let done = self.series(&all, false)?;
            let (first, last) = (done[0], done[done.len() - 1]);
            return Ok(Timed { start: first.start, took: last.start + last.took - first.start });
        }
        self.next_seed += 1;
        let seed = self.next_seed;
        let done = self.series(&[Access { op: Op::Write(Fill::Random(seed)), at, len }], false)?;
        if self.hello.content {
            for (i, sector) in from.chunks(SECTOR as usize).enumerate() {
                self.kept.insert(at / SECTOR + i as u64, (seed, sector.to_vec()));
            }
        }
        Ok(done[0])
    }
}

fn name_of(fill: Fill) -> String {
    word(Op::Write(fill)).trim_start_matches("write:").to_string()
}

/// The device as everything else sees it.
pub struct Spoken {
    program: Program,
    geometry: Geometry,
}

impl Device for Spoken {
    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn access(&mut self, a: Access) -> Result<Timed> {
        a.check(&self.geometry)?;
        self.program.talk().one(a)
    }

    fn batch(&mut self, all: &[Access], _depth: u32) -> Result<Vec<Timed>> {
        all.iter().try_for_each(|a| a.check(&self.geometry))?;
        self.program.talk().series(all, true)
    }

    fn sends_ahead(&self) -> bool {
        self.program.talk().hello.ahead > 1
    }

    fn now(&self) -> Nanos {
        Nanos(self.program.talk().now)
    }

    fn idle(&mut self, d: Nanos) {
        let mut t = self.program.talk();
        if d.0 == 0 || t.dead.is_some() {
            return;
        }
        let _ = writeln!(t.out, "i {}", d.0);
        // An error shows at the next access.
        let _ = t.push().and_then(|()| t.take(Access { op: Op::Flush, at: 0, len: 0 }, d, None));
    }

    fn load(&mut self, at: u64, into: &mut [u8]) -> Result<()> {
        // Structures on a card begin and end anywhere in a sector.
        let (sector, end) = (self.geometry.sector, at + into.len() as u64);
        let whole = at / sector * sector..end.next_multiple_of(sector);
        if whole != (at..end) {
            let mut bytes = vec![0; (whole.end - whole.start) as usize];
            self.load(whole.start, &mut bytes)?;
            into.copy_from_slice(&bytes[(at - whole.start) as usize..][..into.len()]);
            return Ok(());
        }
        Access { op: Op::Read, at, len: into.len() as u64 }.check(&self.geometry)?;
        let mut t = self.program.talk();
        let mut at = at;
        for part in into.chunks_mut(MIB as usize) {
            t.fetch(at, part)?;
            at += part.len() as u64;
        }
        Ok(())
    }

    fn store(&mut self, at: u64, from: &[u8]) -> Result<()> {
        self.put(at, from).map(|_| ())
    }

    fn get(&mut self, at: u64, into: &mut [u8]) -> Result<Timed> {
        Access { op: Op::Read, at, len: into.len() as u64 }.check(&self.geometry)?;
        self.program.talk().fetch(at, into)
    }

    fn put(&mut self, at: u64, from: &[u8]) -> Result<Timed> {
        Access { op: Op::Write(Fill::Zeros), at, len: from.len() as u64 }.check(&self.geometry)?;
        self.program.talk().bytes(at, from)
    }
}

//! Walking a pattern: once without a device, to learn and check every access, then for real.

use super::{At, Data, Expr, How, Item, Order, Pattern, Reduce, Room, Running, Set, Statement, Steps, Verb};
use crate::chance;
use crate::device::{Access, Device, Fill, MAX_ACCESS, Op};
use crate::flashbench::{Failure, format};
use crate::units::{Bytes, Nanos};
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::Rng;
use std::io::Write;

/// Accesses a pattern may make.
const ACCESSES: u64 = 10_000_000;
/// Statements it may carry out, and values of one loop.
const STEPS: u64 = 100_000_000;
/// What flashbench writes where it says "random".
const CONSTANT: u8 = 0x5a;
/// Pauses in all.
const PAUSE: u64 = 24 * 3600 * 1_000_000_000;

/// What a pattern does.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cost {
    pub reads: u64,
    pub bytes_read: u64,
    pub writes: u64,
    pub bytes_written: u64,
    pub discards: u64,
    pub bytes_discarded: u64,
    /// Pauses it asks for.
    pub pause: Nanos,
    /// What is overwritten or discarded: (start, length), ascending, apart from each other.
    pub changed: Vec<(u64, u64)>,
}

impl Cost {
    pub fn accesses(&self) -> u64 {
        self.reads + self.writes + self.discards
    }

    fn add(&mut self, a: Access) {
        match a.op {
            Op::Read => (self.reads, self.bytes_read) = (self.reads + 1, self.bytes_read + a.len),
            Op::Write(_) => (self.writes, self.bytes_written) = (self.writes + 1, self.bytes_written + a.len),
            Op::Discard => (self.discards, self.bytes_discarded) = (self.discards + 1, self.bytes_discarded + a.len),
            Op::Flush => {}
        }
        if matches!(a.op, Op::Write(_) | Op::Discard) {
            self.changed.push((a.at, a.len));
            if self.changed.len() >= 1 << 16 {
                self.changed = merged(std::mem::take(&mut self.changed));
            }
        }
    }
}

/// Ranges (start, length) joined where they touch, ascending.
pub fn merged(mut all: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    all.sort_unstable();
    let mut out: Vec<(u64, u64)> = vec![];
    for (at, len) in all {
        match out.last_mut() {
            Some(last) if at <= last.0 + last.1 => last.1 = last.1.max(at + len - last.0),
            _ => out.push((at, len)),
        }
    }
    out
}

/// Why a walk ends: the text, or what it met.
enum Stop {
    Wrong(At, String),
    Other(Failure),
}

type Step<T> = Result<T, Stop>;

/// What the walk meets.
trait Ground {
    /// `measured`: a reducer waits for its time.
    fn access(&mut self, a: Access, measured: bool) -> Step<Nanos>;
    fn pause(&mut self, d: Nanos);
    fn print(&mut self, text: &dyn Fn() -> String) -> Step<()>;
}

struct Planned(Cost);

impl Ground for Planned {
    fn access(&mut self, a: Access, measured: bool) -> Step<Nanos> {
        let _ = measured;
        self.0.add(a);
        Ok(Nanos(0))
    }
    fn pause(&mut self, d: Nanos) {
        self.0.pause = self.0.pause + d;
    }
    fn print(&mut self, _: &dyn Fn() -> String) -> Step<()> {
        Ok(())
    }
}

struct Live<'a, 'b> {
    device: &'a mut dyn Device,
    out: &'a mut dyn Write,
    how: Running<'b>,
}

impl Ground for Live<'_, '_> {
    fn access(&mut self, a: Access, measured: bool) -> Step<Nanos> {
        if (self.how.stop)() {
            return Err(Stop::Other(Failure::Interrupted));
        }
        let took = self.device.access(a).map_err(|e| Stop::Other(e.into()))?.took;
        (self.how.done)(a, took, measured);
        Ok(took)
    }
    fn pause(&mut self, d: Nanos) {
        self.device.idle(d);
    }
    fn print(&mut self, text: &dyn Fn() -> String) -> Step<()> {
        let failed = |e| Stop::Other(Failure::Output(e));
        self.out.write_all(text().as_bytes()).map_err(failed)?;
        self.out.flush().map_err(failed)
    }
}

pub(super) fn cost(p: &Pattern, set: &[Set], room: &Room) -> Result<Cost, Failure> {
    let mut ground = Planned(Cost::default());
    walk(p, set, room, 0, &mut ground)?;
    let mut cost = ground.0;
    cost.changed = merged(cost.changed);
    Ok(cost)
}

pub(super) fn run(
    p: &Pattern,
    set: &[Set],
    room: &Room,
    device: &mut dyn Device,
    out: &mut dyn Write,
    how: Running<'_>,
) -> Result<(), Failure> {
    let seed = how.seed;
    walk(p, set, room, seed, &mut Live { device, out, how })
}

fn walk(p: &Pattern, set: &[Set], room: &Room, seed: u64, ground: &mut dyn Ground) -> Result<(), Failure> {
    if let Some((name, _)) = set.iter().find(|s| p.params.iter().all(|q| q.name != s.0)) {
        return Err(p.wrong(At { line: 1, column: 1 }, format!("it has no parameter '{name}'; it has {}", p.parameters().join(", "))));
    }
    let mut w =
        Walker { room, ground, names: vec![], values: vec![], aside: 0, rng: chance::generator(seed), accesses: 0, steps: 0, pause: 0 };
    let mut go = || {
        for param in &p.params {
            let v = match set.iter().rev().find(|s| s.0 == param.name) {
                Some(s) => s.1,
                None => w.number(&param.value)?,
            };
            w.tick(param.at)?;
            w.names.push((&param.name, v));
        }
        w.block(&p.body)
    };
    go().map_err(|s| match s {
        Stop::Wrong(at, what) => p.wrong(at, what),
        Stop::Other(e) => e,
    })
}

/// Bytes and nanoseconds of one access, or of several reduced to one.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Value {
    bytes: f64,
    ns: f64,
}

struct Walker<'a> {
    room: &'a Room,
    ground: &'a mut dyn Ground,
    names: Vec<(&'a str, i128)>,
    /// One list for every reducer that is open.
    values: Vec<Vec<Value>>,
    /// Blocks that are carried out and not measured.
    aside: u32,
    rng: Pcg64Mcg,
    accesses: u64,
    steps: u64,
    pause: u64,
}

/// The value of an expression, checked.
pub(super) fn value(e: &Expr, name: &dyn Fn(&str) -> Option<i128>) -> Result<i128, (At, String)> {
    match e {
        Expr::Number(n) => Ok(*n),
        Expr::Name(n, at) => name(n).ok_or_else(|| (*at, format!("'{n}' has no value"))),
        Expr::Binary(sign, a, b, at) => {
            let (a, b) = (value(a, name)?, value(b, name)?);
            let v = match sign {
                '+' => a.checked_add(b),
                '-' => a.checked_sub(b),
                '*' => a.checked_mul(b),
                '/' | '%' if b == 0 => return Err((*at, "division by zero".into())),
                '/' => a.checked_div(b),
                '%' => a.checked_rem(b),
                _ => u32::try_from(b).ok().filter(|b| *b < 63).and_then(|b| a.checked_mul(1 << b)),
            };
            v.filter(|v| v.unsigned_abs() < 1 << 63).ok_or_else(|| (*at, "the number lies outside 2^63".into()))
        }
    }
}

impl<'a> Walker<'a> {
    fn number(&self, e: &Expr) -> Step<i128> {
        let name = |n: &str| self.names.iter().rev().find(|x| x.0 == n).map(|x| x.1);
        value(e, &name).map_err(|(at, what)| Stop::Wrong(at, what))
    }

    fn tick(&mut self, at: At) -> Step<()> {
        self.steps += 1;
        if self.steps > STEPS { Err(Stop::Wrong(at, format!("the pattern takes more than {STEPS} steps"))) } else { Ok(()) }
    }

    fn block(&mut self, body: &'a [Statement]) -> Step<()> {
        let known = self.names.len();
        for s in body {
            self.statement(s)?;
        }
        self.names.truncate(known);
        Ok(())
    }

    fn statement(&mut self, s: &'a Statement) -> Step<()> {
        match s {
            Statement::Let { name, value } => {
                let v = self.number(value)?;
                self.names.push((name, v));
            }
            Statement::For { name, steps, order, body, at } => {
                let mut all = self.steps(steps, *at)?;
                match order {
                    Order::Forwards => {}
                    Order::Backwards => all.reverse(),
                    Order::Shuffled(when) => {
                        if when.as_ref().map(|w| self.number(w)).transpose()?.unwrap_or(1) != 0 {
                            self.shuffle(&mut all);
                        }
                    }
                }
                for v in all {
                    self.tick(*at)?;
                    self.names.push((name, v));
                    self.block(body)?;
                    self.names.pop();
                }
            }
            Statement::Repeat { times, body, at } => {
                let n = self.number(times)?;
                if n < 0 {
                    return Err(Stop::Wrong(*at, format!("nothing can be repeated {n} times")));
                }
                for _ in 0..n {
                    self.tick(*at)?;
                    self.block(body)?;
                }
            }
            Statement::Access { verb, len, place, at } => self.access(*verb, len, place, *at)?,
            Statement::Flush => {
                self.ground.access(Access { op: Op::Flush, at: 0, len: 0 }, false)?;
            }
            Statement::Wait { time, at } => {
                let ns = u64::try_from(self.number(time)?).map_err(|_| Stop::Wrong(*at, "a pause is not negative".into()))?;
                self.pause = self.pause.saturating_add(ns);
                if self.pause > PAUSE {
                    return Err(Stop::Wrong(*at, "the pauses take more than a day".into()));
                }
                self.ground.pause(Nanos(ns));
            }
            Statement::Reduce(r) => {
                let v = self.reduce(r)?;
                if let (Some(outer), 0) = (self.values.last_mut(), self.aside) {
                    outer.push(v);
                }
            }
            Statement::Print { items, at } => {
                for item in items {
                    self.item(item, *at)?;
                }
            }
            Statement::Prepare(body) => {
                self.aside += 1;
                self.block(body)?;
                self.aside -= 1;
            }
            Statement::Newline => self.ground.print(&|| "\n".into())?,
        }
        Ok(())
    }

    fn steps(&mut self, steps: &Steps, at: At) -> Step<Vec<i128>> {
        let mut out = vec![];
        let mut push = |v: i128| {
            out.push(v);
            if out.len() as u64 > ACCESSES { Err(Stop::Wrong(at, format!("a loop over more than {ACCESSES} values"))) } else { Ok(()) }
        };
        match steps {
            Steps::Count { from, to, step } => {
                let (mut v, to, step) = (self.number(from)?, self.number(to)?, self.number(step)?);
                if step <= 0 {
                    return Err(Stop::Wrong(at, format!("a step of {step} never arrives; use 'backwards' to go down")));
                }
                while v < to {
                    push(v)?;
                    v += step;
                }
            }
            Steps::Halves { from, to } | Steps::Doubles { from, to } => {
                let (mut v, to) = (self.number(from)?, self.number(to)?);
                if v <= 0 || to <= 0 {
                    return Err(Stop::Wrong(at, "halving and doubling need numbers above 0".into()));
                }
                let down = matches!(steps, Steps::Halves { .. });
                while if down { v >= to } else { v <= to } {
                    push(v)?;
                    // Half a sector cannot be written: the halves end there.
                    if down && (v % 2 != 0 || v / 2 % i128::from(self.room.sector) != 0) {
                        break;
                    }
                    v = if down { v / 2 } else { v * 2 };
                }
            }
        }
        Ok(out)
    }

    fn shuffle(&mut self, all: &mut [i128]) {
        for i in (1..all.len()).rev() {
            let j = ((u128::from(self.rng.next_u64()) * (i as u128 + 1)) >> 64) as usize;
            all.swap(i, j);
        }
    }

    fn access(&mut self, verb: Verb, len: &Expr, place: &Expr, at: At) -> Step<()> {
        let (len, place) = (self.number(len)?, self.number(place)?);
        let (word, op) = match verb {
            Verb::Read => ("read", Op::Read),
            Verb::Write(Data::Zeros) => ("write", Op::Write(Fill::Zeros)),
            Verb::Write(Data::Ones) => ("write", Op::Write(Fill::Ones)),
            Verb::Write(Data::Constant) => ("write", Op::Write(Fill::Byte(CONSTANT))),
            Verb::Write(Data::Random) => ("write", Op::Write(Fill::Random(self.accesses + 1))),
            Verb::Discard => ("discard", Op::Discard),
        };
        let wrong = |what: String| Err(Stop::Wrong(at, format!("a {word} of {len} bytes at {place}: {what}")));
        let sector = i128::from(self.room.sector);
        if len <= 0 {
            return wrong("it has no length".into());
        }
        if len % sector != 0 || place % sector != 0 {
            return wrong(format!("position and length must be multiples of the {sector} byte sector"));
        }
        if place < i128::from(self.room.region.start) || place + len > i128::from(self.room.region.end) {
            let (a, b) = (Bytes(self.room.region.start), Bytes(self.room.region.end));
            return wrong(format!("it leaves the region, which reaches from {a} to {b}; nothing wraps"));
        }
        if len > i128::from(MAX_ACCESS) && verb != Verb::Discard {
            return wrong(format!("one access has at most {}", Bytes(MAX_ACCESS)));
        }
        self.accesses += 1;
        if self.accesses > ACCESSES {
            return Err(Stop::Wrong(at, format!("the pattern makes more than {ACCESSES} accesses")));
        }
        let measured = self.aside == 0 && !self.values.is_empty();
        let took = self.ground.access(Access { op, at: place as u64, len: len as u64 }, measured)?;
        if let (Some(v), true) = (self.values.last_mut(), measured) {
            v.push(Value { bytes: len as f64, ns: took.0 as f64 });
        }
        Ok(())
    }

    fn reduce(&mut self, r: &'a Reduce) -> Step<Value> {
        self.values.push(vec![]);
        self.block(&r.body)?;
        let mut all = self.values.pop().unwrap_or_default();
        if all.is_empty() && self.aside > 0 {
            return Ok(Value { bytes: 0.0, ns: 0.0 });
        }
        if all.is_empty() {
            return Err(Stop::Wrong(r.at, "nothing is measured inside this block".into()));
        }
        let sum = |f: fn(&Value) -> f64| all.iter().map(f).sum::<f64>();
        let n = all.len() as f64;
        Ok(match r.how {
            How::Total => Value { bytes: sum(|v| v.bytes), ns: sum(|v| v.ns) },
            How::Mean => Value { bytes: sum(|v| v.bytes) / n, ns: sum(|v| v.ns) / n },
            _ => {
                nandscope_stats::ascending(&mut all, |a| a.ns);
                let last = all.len() - 1;
                match r.how {
                    How::Min => all[0],
                    How::Max => all[last],
                    _ => {
                        let (a, b) = (all[last / 2], all[all.len() / 2]);
                        Value { bytes: (a.bytes + b.bytes) / 2.0, ns: (a.ns + b.ns) / 2.0 }
                    }
                }
            }
        })
    }

    fn item(&mut self, item: &'a Item, at: At) -> Step<()> {
        let text = match item {
            Item::Text(t) => t.clone(),
            Item::Number(e) => self.number(e)?.to_string(),
            Item::Size(e) => match u64::try_from(self.number(e)?) {
                Ok(b) => field(format::neat_size(b)),
                Err(_) => return Err(Stop::Wrong(at, "a size is not negative".into())),
            },
            Item::Rate(r) => {
                let v = self.reduce(r)?;
                // A device without any time of its own has no rate.
                field(if v.ns > 0.0 { format::neat_rate(v.bytes / v.ns * 1e9) } else { "-".into() })
            }
            Item::Time(r) => field(format::neat_time(self.reduce(r)?.ns.round() as i64)),
        };
        self.ground.print(&|| text.clone())
    }
}

/// Columns are seven wide.
fn field(text: String) -> String {
    format!("{text:<7}")
}

//! The table of a campaign: a line a card, a column a step; on a terminal it stays in place while the campaign runs.

use super::campaign::{note, word};
use crate::campaign::state::{Dir, RESULT, Stands};
use crate::campaign::{Card, Event, Outcome, Plan, Step, find};
use crate::host::sysfs::Sys;
use serde_json::{Value, json};
use std::io::{IsTerminal, Write};
use std::time::Instant;

/// One card.
pub struct Row {
    key: String,
    target: Option<String>,
    lot: Option<String>,
    steps: Vec<(Step, Stands, &'static str)>,
    outcome: Outcome,
}

impl Row {
    pub fn of(c: &Card, steps: &[Step], dir: &Dir, outcome: &Outcome) -> Row {
        let one = |s: &Step| {
            let stands = dir.stands(c.key(), *s);
            let word = word(*s, &stands, &dir.step(c.key(), *s).join(RESULT));
            (*s, stands, word)
        };
        let steps = steps.iter().map(one).collect();
        Row { key: c.key().into(), target: find(c, &Sys::default()).map(|f| f.0), lot: c.lot.clone(), steps, outcome: outcome.clone() }
    }

    /// Nothing is left to do.
    pub fn whole(&self) -> bool {
        match self.outcome {
            Outcome::Whole | Outcome::Cut(_) => true,
            Outcome::Elsewhere { done, .. } => done,
            _ => false,
        }
    }

    /// Exit codes of its steps that are done.
    pub fn codes(&self) -> impl Iterator<Item = u8> {
        self.steps.iter().filter_map(|s| if let Stands::Done(e) = &s.1 { Some(e.code) } else { None })
    }

    pub fn json(&self, dir: &Dir) -> Value {
        let step = |(s, stands, word): &(Step, Stands, &str)| {
            let (end, done) = match stands {
                Stands::Done(e) => (Some(e), true),
                Stands::Failed(e) => (Some(e), false),
                _ => (None, false),
            };
            json!({
                "step": s, "says": word, "code": end.map(|e| e.code), "seconds": end.map(|e| e.seconds), "host": end.and_then(|e| e.host.as_ref()),
                "result": done.then(|| dir.step(&self.key, *s).join(RESULT)),
            })
        };
        let note = Some(note(&self.outcome)).filter(|n| !n.is_empty());
        json!({ "card": self.key, "target": self.target, "lot": self.lot, "done": self.whole(), "note": note, "steps": self.steps.iter().map(step).collect::<Vec<_>>() })
    }
}

/// All cards.
pub fn table(rows: &[Row], width: usize) -> String {
    let steps: Vec<Step> = Step::ALL.into_iter().filter(|s| rows.iter().any(|r| r.steps.iter().any(|x| x.0 == *s))).collect();
    let head = ["card", "lot"].into_iter().chain(steps.iter().map(|s| s.name())).map(str::to_string).collect::<Vec<_>>();
    let line = |r: &Row| {
        let of = |s: &Step| r.steps.iter().find(|x| x.0 == *s).map_or("", |x| x.2).to_string();
        let mut cells = vec![r.key.clone(), r.lot.clone().unwrap_or_default()];
        cells.extend(steps.iter().map(of));
        cells.push(note(&r.outcome));
        cells
    };
    lines(&[vec![head], rows.iter().map(line).collect()].concat(), width)
}

/// Columns as wide as they have to be; a long name loses its middle, and notes stand below where they do not fit.
fn lines(cells: &[Vec<String>], width: usize) -> String {
    const NAME: usize = 28;
    let count = |s: &String| s.chars().count();
    let short = |s: &String| {
        let n = count(s);
        if n <= NAME {
            s.clone()
        } else {
            s.chars().take(NAME / 2 - 1).chain("..".chars()).chain(s.chars().skip(n - NAME / 2 + 1)).collect()
        }
    };
    let columns = cells[0].len();
    let cells: Vec<Vec<String>> =
        cells.iter().map(|l| l.iter().enumerate().map(|(i, c)| if i == 0 { short(c) } else { c.clone() }).collect()).collect();
    let widths: Vec<usize> = (0..columns).map(|i| cells.iter().filter_map(|l| l.get(i)).map(count).max().unwrap_or(0)).collect();
    let used: usize = widths.iter().filter(|w| **w > 0).map(|w| w + 2).sum();
    let mut out = String::new();
    for l in &cells {
        let row: String = (0..columns).filter(|i| widths[*i] > 0).map(|i| format!("{:<w$}  ", l[i], w = widths[i])).collect();
        let note = l.get(columns).map_or("", String::as_str);
        match note {
            "" => out += row.trim_end(),
            n if used + n.chars().count() <= width => out += &format!("{row}{n}"),
            n => out += &format!("{}\n    {n}", row.trim_end()),
        }
        out.push('\n');
    }
    out
}

/// What is seen while it runs: the table in place on a terminal, else a line a step.
pub struct Live<'a> {
    plan: &'a Plan,
    /// What is said of the bus, below the table.
    bus: Vec<String>,
    dir: &'a Dir,
    quiet: bool,
    terminal: bool,
    /// Lines of the table that stand there.
    shown: usize,
    now: Vec<Option<(Step, &'static str, Instant)>>,
    notes: Vec<String>,
    drawn: Option<Instant>,
}

impl<'a> Live<'a> {
    pub fn new(plan: &'a Plan, dir: &'a Dir, bus: Vec<String>, quiet: bool) -> Live<'a> {
        let n = plan.card.len();
        let terminal = std::io::stderr().is_terminal() && std::env::var("TERM").is_ok_and(|t| t != "dumb");
        if !quiet && !terminal {
            bus.iter().for_each(|l| tell!("{l}"));
        }
        Live { plan, bus, dir, quiet, terminal, shown: 0, now: vec![None; n], notes: vec![String::new(); n], drawn: None }
    }

    pub fn show(&mut self, e: Option<Event>) {
        if self.quiet {
            return;
        }
        let began = Instant::now();
        let said = match &e {
            None => None,
            Some(Event::Waits(i, s)) => {
                self.now[*i] = Some((*s, "waiting", began));
                None
            }
            Some(Event::Begins(i, s)) => {
                self.now[*i] = Some((*s, "running", began));
                None
            }
            Some(Event::GoesOn(i, s)) => {
                self.now[*i] = Some((*s, "goes on", began));
                Some((*i, format!("{} goes on", s.name())))
            }
            Some(Event::Ends(i, s, end)) => {
                self.now[*i] = None;
                Some((*i, format!("{} {}, {:.1} s", s.name(), crate::campaign::says(*s, end.code), end.seconds)))
            }
            Some(Event::Stopped(i, why)) => {
                self.now[*i] = None;
                self.notes[*i].clone_from(why);
                Some((*i, why.clone()))
            }
            Some(Event::Whole(i)) => {
                self.now[*i] = None;
                None
            }
        };
        if !self.terminal {
            if let Some((i, text)) = said {
                tell!("{}: {text}", self.plan.card[i].key());
            }
        } else if self.drawn.is_none_or(|d| d.elapsed().as_millis() > 200) {
            self.draw();
        }
    }

    fn draw(&mut self) {
        let rows = rustix::termios::tcgetwinsize(std::io::stderr()).map_or(24, |w| w.ws_row as usize);
        let most = rows.saturating_sub(self.bus.len()).max(6) - 2;
        let steps: Vec<Step> = Step::ALL.into_iter().filter(|s| self.plan.card.iter().any(|c| self.plan.steps_of(c).contains(s))).collect();
        let head = ["card", "lot"].into_iter().chain(steps.iter().map(|s| s.name())).map(str::to_string).collect::<Vec<_>>();
        let line = |(i, c): (usize, &Card)| {
            let own = self.plan.steps_of(c);
            let of = |s: &Step| match self.now[i] {
                _ if !own.contains(s) => String::new(),
                Some((now, what, since)) if now == *s => format!("{what} {} s", since.elapsed().as_secs()),
                _ => word(*s, &self.dir.stands(c.key(), *s), &self.dir.step(c.key(), *s).join(RESULT)).to_string(),
            };
            let mut cells = vec![c.key().to_string(), c.lot.clone().unwrap_or_default()];
            cells.extend(steps.iter().map(of));
            cells.push(self.notes[i].clone());
            cells
        };
        // Of more cards than lines those come first that something is done with.
        let mut order: Vec<usize> = (0..self.plan.card.len()).collect();
        if order.len() >= most {
            nandscope_stats::sort_by_key(&mut order, |i| self.now[*i].is_none());
            order.truncate(most - 1);
        }
        let rows = order.into_iter().map(|i| line((i, &self.plan.card[i])));
        let mut text = lines(&std::iter::once(head).chain(rows).collect::<Vec<_>>(), super::width());
        self.bus.iter().for_each(|l| text += &format!("{}\n", l.chars().take(super::width()).collect::<String>()));
        let up = if self.shown > 0 { format!("\x1b[{}A", self.shown) } else { String::new() };
        let _ = write!(std::io::stderr(), "{up}\x1b[J{text}");
        self.shown = text.lines().count();
        self.drawn = Some(Instant::now());
    }

    /// Takes the table away; the one at the end is printed where results go.
    pub fn end(&mut self) {
        if self.shown > 0 {
            let _ = write!(std::io::stderr(), "\x1b[{}A\x1b[J", self.shown);
            self.shown = 0;
        }
    }
}

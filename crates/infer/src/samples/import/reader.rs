//! Walks the lines of one file and gathers rows into tests.

use super::card::{self, Card, Identity};
use super::clean::Line;
use super::command::{Context, Kind, command, heading, setting};
use super::named::{host, named};
use super::{
    AlignTest, BenchPass, BenchTest, Declared, FatTest, IntervalTest, OpenTest, Place, ProgramTest, Rate, RatesRow, ScatterTest, Tables,
};
use super::{align, other, sdfat};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Current {
    None,
    Align,
    Open,
    Columns(Kind),
    Interval,
    Scatter,
}

struct Reader {
    file: usize,
    tables: Tables,
    /// The card that `tables` are of.
    identity: Identity,
    /// Parts of the log that came before, perhaps of other cards.
    parts: Vec<Card>,
    /// Sizes of disks by name: `fdisk -l` lists them all.
    sizes: Vec<(String, u64)>,
    context: Context,
    current: Current,
    /// A command or heading came since the last row.
    fresh: bool,
    sdfat: sdfat::State,
    /// Blocks of rows under the loop in the context: their index in `tables.open`.
    looped: Vec<usize>,
    damaged: usize,
    nameless: usize,
    /// The beginning of an alignment row that a mail may have wrapped.
    wrapped: Option<Line>,
    /// Line of the last row with several columns.
    row: usize,
    /// What follows was printed by this program.
    own: bool,
    /// What was changed last: "page_size = 0".
    setting: Option<String>,
    /// The beginning of a command that a mail may have wrapped.
    held: Option<Line>,
    /// Record size, host and file of the passes to come.
    bench: BenchTest,
    bench_fresh: bool,
    /// Record sizes that the text names.
    records: Vec<u32>,
    /// The last card that the text spoke of, tested or not.
    spoken: Identity,
}

/// The cards of one file, none when it holds nothing, and the last card that its words name.
pub fn read(file: usize, name: &str, lines: &[Line]) -> (Vec<Card>, Identity) {
    let mut r = Reader {
        file,
        tables: Tables::default(),
        identity: Identity::default(),
        parts: vec![],
        sizes: vec![],
        context: Context::default(),
        current: Current::None,
        fresh: true,
        sdfat: sdfat::State::default(),
        looped: vec![],
        damaged: 0,
        nameless: 0,
        wrapped: None,
        row: 0,
        own: false,
        setting: None,
        held: None,
        bench: BenchTest::default(),
        bench_fresh: true,
        records: vec![],
        spoken: Identity::default(),
    };
    let mut above: Option<&str> = None;
    for line in lines {
        r.unwrapped(line, above);
        if !line.text.is_empty() {
            above = Some(&line.text);
        }
    }
    if let Some(head) = r.held.take() {
        r.line(&head, None);
    }
    r.end(name)
}

impl Reader {
    /// A command that names no device may go on in the next line: "./flashbench -O -0 8  -b 512" above "/dev/block/mmcblk0p9".
    fn unwrapped(&mut self, line: &Line, above: Option<&str>) {
        if line.text.is_empty() {
            return;
        }
        if let Some(head) = self.held.take() {
            let joined = Line { number: head.number, text: format!("{} {}", head.text, line.text) };
            if !line.text.contains("flashbench") && command(&joined.text).is_some_and(|c| c.disk.is_some()) {
                return self.line(&joined, above);
            }
            self.line(&head, None);
        }
        if line.text.contains("flashbench -") && !line.text.contains("/dev/") && !super::card::names_own(&line.text) {
            self.held = Some(line.clone());
            return;
        }
        self.line(line, above);
    }

    fn line(&mut self, line: &Line, above: Option<&str>) {
        let text = line.text.as_str();
        if text.is_empty() {
            return;
        }
        if let Some(head) = self.wrapped.take() {
            let joined = Line { number: head.number, text: format!("{} {text}", head.text) };
            if !text.starts_with("align") && align::row(head.number, &joined.text).is_some() {
                return self.line(&joined, None);
            }
            // Into three lines.
            if ["on ", "on\t", "post", "pre"].iter().any(|w| text.starts_with(w)) && joined.text.len() < 200 {
                self.wrapped = Some(joined);
                return;
            }
            self.damaged += 1;
        }
        let place = Place { file: self.file, line: line.number };
        // Most lines are rows, which name no card.
        let row = text.starts_with("align ") || text.starts_with(|c: char| c.is_ascii_digit());
        if let Some(label) = (!row).then(|| card::label(text)).flatten() {
            self.speaks_of(Identity { label: Some(label), maker: card::maker(text), ..Identity::default() });
        }
        if let Some(cid) = (!row).then(|| card::cid(text)).flatten() {
            self.speaks_of(Identity { cid: Some(cid), ..Identity::default() });
        }
        if text.starts_with('#') {
            // A comment, unless it is the root prompt.
            self.own = text.starts_with("# nandscope ") || self.own && !text.contains("/flashbench");
            match command(text) {
                Some(c) => self.announce(c),
                None => {
                    self.tables.ignored_lines += 1;
                    self.set(text);
                    self.names(text);
                    // Our own heading ends in the size of the target.
                    let size = text.strip_prefix("# nandscope ").and_then(|t| t.rsplit(", ").next()?.strip_suffix(" bytes")?.parse().ok());
                    if let Some(size) = size {
                        self.speaks_of(Identity { size: Some(size), ..Identity::default() });
                        self.tables.device_sizes.push((place, size));
                    }
                }
            }
            return;
        }
        if let Some(row) = align::row(line.number, text) {
            let last = last_two(self.tables.align.last().map(|t| &t.rows[..]), |r| r.align);
            if self.begins(Current::Align, last, row.align) {
                let (write, own, setting) = (self.context.write, self.own, self.setting.clone());
                self.tables.align.push(AlignTest { place, write, own, setting, ..AlignTest::default() });
            }
            if let Some(t) = self.tables.align.last_mut() {
                t.rows.push(row);
            }
        } else if align::damaged(text) {
            self.wrapped = Some(line.clone());
        } else if let Some(row) = other::rates(line.number, text) {
            self.rates(place, row);
        } else if let Some(row) = other::interval(line.number, text) {
            if self.begins(Current::Interval, [0, 0], 0) {
                self.tables.interval.push(IntervalTest { place, rows: vec![] });
            }
            if let Some(t) = self.tables.interval.last_mut() {
                t.rows.push(row);
            }
        } else if let Some(point) = other::scatter(text) {
            if self.begins(Current::Scatter, [0, 0], 0) {
                self.tables.scatter.push(ScatterTest { place, points: vec![] });
            }
            if let Some(t) = self.tables.scatter.last_mut() {
                t.points.push(point);
            }
        } else if let Some(more) = self.wrapped_row(line.number).and_then(|_| other::more_rates(text)) {
            if let Some(row) = self.wrapped_row(line.number) {
                row.rates.extend(more);
            }
        } else if let Some(c) = command(text) {
            self.own = false;
            self.announce(c);
        } else if let Some(size) = other::device_size(text) {
            self.sized(place, text, size);
        } else if let Some((key, value)) = other::declared(text, above).or_else(|| other::ext_csd_field(text)) {
            self.tables.declared.push(Declared { place, key, value });
        } else {
            let said = sdfat::line(&mut self.sdfat, place, text, &text.to_ascii_lowercase());
            let bench = !said.is_empty();
            said.into_iter().for_each(|s| self.bench(place, s));
            match heading(text).filter(|_| !bench) {
                // A heading may name the card as well: "The Sandisk one has 20 AUs."
                Some(c) => {
                    self.names(text);
                    self.announce_heading(c);
                }
                None if !bench => {
                    self.tables.ignored_lines += 1;
                    self.names(text);
                }
                None => {}
            }
            self.set(text);
        }
    }

    /// A card or a machine that a line of prose names.
    fn names(&mut self, text: &str) {
        let card = named(text);
        let maker = card::maker(text);
        if let Some(h) = host(text) {
            // The first word on it holds, until a short line names another.
            if self.bench.host.is_none() || text.split_whitespace().count() <= 8 {
                self.bench(Place { file: self.file, line: 0 }, sdfat::Said::Host(h));
            }
        }
        if card.is_none() && text.len() > 200 && self.spoken.named.is_none() {
            // Whole paragraphs: only to say what a text without any figures is about.
            let found = text.split(". ").find_map(|s| Some((named(s)?, card::maker(s))));
            if let Some((named, maker)) = found {
                self.spoken = Identity { maker, named: Some(named), ..Identity::default() };
            }
        }
        if card.is_some() || maker.is_some() {
            return self.speaks_of(Identity { maker, named: card, ..Identity::default() });
        }
        let device = (text.contains("evice") || text.contains("DEVICE")).then(|| card::path(text)).flatten();
        if device.is_some() {
            self.speaks_of(Identity { path: device, ..Identity::default() });
        }
    }

    fn set(&mut self, text: &str) {
        if let Some(s) = setting(text) {
            self.setting = Some(s);
        }
    }

    /// The lines that follow are of this card. Where that contradicts what is known, or may do so, a new part begins.
    fn speaks_of(&mut self, mut new: Identity) {
        if new.maker.is_some() || new.named.is_some() {
            self.spoken = Identity { path: None, ..new.clone() };
        }
        if let Some(p) = &new.path {
            new.size = new.size.or(self.sizes.iter().rfind(|s| s.0 == *p).map(|s| s.1));
        }
        let tested = self.has_tests();
        if tested && new.label.is_some() && self.identity.label.is_none() {
            self.identity.label = Some("the first card".into());
        }
        let conflict = new.conflicts(&self.identity);
        // A name that comes after the tables of a card without one is of what follows, or of nothing.
        let nameless = self.identity.maker.is_none() && self.identity.named.is_none();
        let late = nameless && (new.maker.is_some() || new.named.is_some());
        if !tested || !(conflict || late || new.hints(&self.identity)) {
            // Before the first test the latest word counts.
            let mut old = std::mem::replace(&mut self.identity, new);
            if conflict {
                (old.size, old.cid, old.label) = (None, None, None);
            }
            self.identity.learn(&old);
            return;
        }
        self.close_loop();
        self.setting = None;
        if new.path.is_none()
            && new.label.is_none()
            && new.cid.is_none()
            && self.identity.path.as_ref().is_none_or(|p| !p.starts_with("sim:"))
        {
            // The reader stays where it is when cards are swapped.
            new.path = self.identity.path.clone();
        }
        let tables = std::mem::take(&mut self.tables);
        self.parts.push(Card { identity: std::mem::replace(&mut self.identity, new), tables });
        self.current = Current::None;
        self.fresh = true;
        self.context = Context::default();
    }

    fn has_tests(&self) -> bool {
        let t = &self.tables;
        [t.align.len(), t.open.len(), t.fat.len(), t.program.len(), t.interval.len(), t.scatter.len()].iter().any(|&n| n > 0)
            || t.bench.iter().any(|b| !b.passes.is_empty())
    }

    /// A disk's size: another size of the disk that was tested is another card.
    fn sized(&mut self, place: Place, text: &str, size: u64) {
        if let Some(path) = card::path(text) {
            self.sizes.retain(|s| s.0 != path);
            self.sizes.push((path.clone(), size));
            // Machines have dozens of disks.
            if self.sizes.len() > 256 {
                self.sizes.remove(0);
            }
            if self.identity.path.as_ref().is_none_or(|p| *p == path) {
                self.speaks_of(Identity { size: Some(size), path: Some(path), ..Identity::default() });
            }
        }
        self.tables.device_sizes.push((place, size));
    }

    /// The row that the line before this one ended, where it may go on.
    fn wrapped_row(&mut self, line: usize) -> Option<&mut RatesRow> {
        if self.row + 1 != line || self.fresh {
            return None;
        }
        match self.current {
            Current::Columns(Kind::Program) => self.tables.program.last_mut().and_then(|t| t.rows.last_mut()),
            Current::Columns(_) => self.tables.fat.last_mut().and_then(|t| t.rows.last_mut()),
            _ => None,
        }
    }

    fn announce(&mut self, c: Context) {
        self.close_loop();
        if c.disk.is_some() {
            self.speaks_of(Identity { path: c.disk.clone(), ..Identity::default() });
        }
        self.context = c;
        self.fresh = true;
    }

    /// A heading adds to what the command said; "Linear access" alone opens a section whose N is still to come.
    fn announce_heading(&mut self, c: Context) {
        self.close_loop();
        let old = std::mem::take(&mut self.context);
        self.context = Context {
            random: c.random.or(old.random),
            erase_size: old.erase_size,
            block_size: old.block_size,
            kind: c.kind,
            disk: old.disk,
            write: old.write && c.kind == Some(Kind::Align),
            n: c.n,
            queue: vec![],
        };
        self.fresh = true;
    }

    /// Whether a row begins a new test: another kind, a new announcement, or sizes that start again. `last`: the sizes of the last
    /// two rows, 0 where there are none; a table that was sorted the other way grows.
    fn begins(&mut self, kind: Current, last: [u64; 2], now: u64) -> bool {
        let again = match last {
            [_, 0] => false,
            [0, only] => now == only,
            [a, b] if b > a => now <= b,
            [_, b] => now >= b,
        };
        let new = self.current != kind || self.fresh || (now > 0 && again);
        self.current = kind;
        self.fresh = false;
        new
    }

    fn rates(&mut self, place: Place, row: RatesRow) {
        let kind = match self.context.kind {
            _ if row.rates.len() == 1 => Kind::Open,
            Some(k @ (Kind::Fat | Kind::Program)) => k,
            // flashbench -p has eight columns and goes down from 2 MiB, where -f goes down from the erase size.
            _ if row.rates.len() == 8 && self.current == Current::Columns(Kind::Program) => Kind::Program,
            _ => Kind::Fat,
        };
        if kind != Kind::Open {
            self.row = row.line;
            let rows = match kind {
                Kind::Program => self.tables.program.last().map(|t| &t.rows[..]),
                _ => self.tables.fat.last().map(|t| &t.rows[..]),
            };
            let last = last_two(rows, |r| r.size);
            if self.begins(Current::Columns(kind), last, row.size) {
                let c = &self.context;
                match kind {
                    Kind::Program => self.tables.program.push(ProgramTest { place, rows: vec![] }),
                    _ => self.tables.fat.push(FatTest { place, random: c.random == Some(true), erase_size: c.erase_size, rows: vec![] }),
                }
            }
            match kind {
                Kind::Program => self.tables.program.last_mut().map(|t| t.rows.push(row)),
                _ => self.tables.fat.last_mut().map(|t| t.rows.push(row)),
            };
            return;
        }
        // A lone rate in a find-FAT table is a row that was interrupted.
        if self.context.kind == Some(Kind::Fat) && matches!(self.current, Current::Columns(_)) && !self.fresh {
            self.damaged += 1;
            return;
        }
        let last = last_two(self.tables.open.last().map(|t| &t.rows[..]), |r| r.size);
        let fresh = self.fresh;
        if self.begins(Current::Open, last, row.size) {
            let c = &self.context;
            // Rows that start again without a word in between belong to a run that nobody named.
            let named = fresh && c.kind == Some(Kind::Open);
            if !named && c.queue.is_empty() {
                self.nameless += 1;
            }
            if !c.queue.is_empty() {
                self.looped.push(self.tables.open.len());
            }
            self.tables.open.push(OpenTest {
                place,
                n: if named && c.queue.is_empty() { c.n } else { None },
                random: c.random,
                erase_size: c.erase_size,
                setting: self.setting.clone(),
                rows: vec![],
            });
        }
        if let Some(t) = self.tables.open.last_mut() {
            t.rows.push(Rate { line: row.line, size: row.size, rate: row.rates[0] });
        }
    }

    /// Names the blocks of a shell loop, if there are as many as the loop had values.
    fn close_loop(&mut self) {
        if self.looped.len() == self.context.queue.len() {
            for (&i, &n) in self.looped.iter().zip(&self.context.queue) {
                self.tables.open[i].n = Some(n);
            }
        } else {
            self.nameless += self.looped.len();
        }
        self.looped.clear();
    }

    fn bench(&mut self, place: Place, said: sdfat::Said) {
        use sdfat::Said;
        let fresh = match said {
            Said::Pass(p) | Said::Again(p) => {
                let last = self.tables.bench.last();
                // A heading with nothing under it leaves its empty test to the passes that follow.
                if last.is_none() || self.bench_fresh {
                    self.tables.bench.push(BenchTest { place, ..self.bench.clone() });
                }
                self.bench_fresh = false;
                if matches!(said, Said::Again(_)) && self.repeats(&p) {
                    return;
                }
                if let Some(t) = self.tables.bench.last_mut() {
                    t.passes.push(p);
                }
                return;
            }
            Said::Heading => return,
            Said::Card(card) => {
                let maker = card.words.iter().find_map(|w| card::maker(w));
                self.speaks_of(Identity { maker, named: Some(card), ..Identity::default() });
                return;
            }
            Said::Target(target, host) => {
                self.bench = BenchTest { host: host.or(self.bench.host.take()), ..BenchTest::default() };
                let named = Identity { label: Some(target), ..Identity::default() };
                if self.identity.label != named.label {
                    self.speaks_of(named);
                }
                true
            }
            Said::Size(n) => {
                self.records.extend(n);
                self.bench.buffer = n;
                true
            }
            Said::Host(h) => self.bench.host.replace(h.clone()) != Some(h),
            Said::FileMb(m) => self.bench.file_mb.replace(m) != Some(m),
            Said::CardGb(gb) => {
                // The bench names the card by its size, to 10 MB.
                let size = Some((gb * 100.0).round() as u64 * 10_000_000).filter(|&s| s > 0);
                if self.identity.size.is_none_or(|s| s % 10_000_000 == 0) {
                    self.speaks_of(Identity { size, ..Identity::default() });
                }
                self.bench.card_gb.replace(gb) != Some(gb)
            }
        };
        self.bench_fresh |= fresh;
    }

    /// Whether a pass in another form stands already among those of this card and record size, or of a part before it.
    fn repeats(&self, p: &BenchPass) -> bool {
        let near = |a: f64, b: f64| a.is_nan() || b.is_nan() || (a - b).abs() <= 0.01 + 1e-4 * b.abs();
        let like = |o: &BenchPass| o.write == p.write && near(p.speed, o.speed) && near(p.max, o.max) && near(p.avg, o.avg);
        let of = |t: &BenchTest| t.buffer == self.bench.buffer && t.passes.iter().any(like);
        let parts = self.parts.iter().rev().take(256).filter(|c| c.identity.same(&self.identity)).flat_map(|c| &c.tables.bench);
        self.tables.bench.iter().rev().take(64).chain(parts).any(of)
    }

    fn end(mut self, name: &str) -> (Vec<Card>, Identity) {
        self.close_loop();
        self.damaged += self.wrapped.is_some() as usize;
        self.parts.push(Card { identity: self.identity, tables: self.tables });
        for t in self.parts.iter_mut().map(|p| &mut p.tables) {
            t.bench.retain(|t| !t.passes.is_empty());
            // A scatter plot has at least 2^8 points; fewer such lines are something else.
            t.scatter.retain(|t| t.points.len() >= 64);
            // Sorted the other way, it is the same table.
            t.align.iter_mut().for_each(|t| t.rows.sort_by_key(|r| std::cmp::Reverse(r.align)));
            t.open.iter_mut().for_each(|t| t.rows.sort_by_key(|r| std::cmp::Reverse(r.size)));
            t.fat.iter_mut().for_each(|t| t.rows.sort_by_key(|r| std::cmp::Reverse(r.size)));
            t.program.iter_mut().for_each(|t| t.rows.sort_by_key(|r| std::cmp::Reverse(r.size)));
            for b in &mut t.bench {
                t.notes.extend(records_by_figures(b, &self.records).map(|note| format!("{name}: {note}")));
            }
        }
        // Before parts are joined: a quotation under another card's name is of neither.
        super::quotes::drop_repeats(self.parts.iter_mut().map(|p| &mut p.tables));
        // What prose at the end names has no tables.
        self.parts.retain(|p| !p.tables.is_empty());
        let mut cards = card::join_parts(self.parts);
        cards.retain(|c| !c.tables.is_empty());
        for c in &mut cards {
            // Of all the disks a log lists only the one that was tested counts, where that is known.
            if let Some(size) = c.identity.size.filter(|s| c.tables.device_sizes.iter().any(|d| d.1 == *s)) {
                c.tables.device_sizes.retain(|d| d.1 == size);
            }
            let mut sizes: Vec<u64> = c.tables.device_sizes.iter().map(|s| s.1).collect();
            sizes.sort_unstable();
            sizes.dedup();
            if let [only] = sizes[..] {
                c.tables.align.iter_mut().for_each(|t| t.device_size = Some(only));
            }
        }
        if let Some(t) = cards.first_mut().map(|c| &mut c.tables) {
            if self.damaged > 0 {
                t.notes.push(format!("{name}: {} rows are cut short and were left out", self.damaged));
            }
            if self.nameless > 0 {
                t.notes.push(format!("{name}: {} open-AU tables without a word on how many AUs were written", self.nameless));
            }
        }
        (cards, self.spoken)
    }
}

/// Sizes of the last two rows of a table, 0 where there are none.
fn last_two<T>(rows: Option<&[T]>, size: impl Fn(&T) -> u64) -> [u64; 2] {
    let rows = rows.unwrap_or(&[]);
    let at = |k: usize| rows.len().checked_sub(k).map_or(0, |i| size(&rows[i]));
    [at(2), at(1)]
}

/// Speed times average is the size of a record but for the loop around it, a few µs. Where the heading above is of other records,
/// or none is there, the size that the figures fit is taken: of those that the text names, or 100 and 512 B, which the bench has.
fn records_by_figures(t: &mut BenchTest, named: &[u32]) -> Option<String> {
    let all: Vec<f64> = t.passes.iter().map(|p| p.speed * p.avg / 1e3).filter(|b| b.is_finite() && *b > 0.0).collect();
    let fits = |size: u32| !all.is_empty() && all.iter().all(|b| (0.92..1.03).contains(&(b / size as f64)));
    // No loop takes as long as the call, and none takes less than no time.
    let impossible = |size: u32| all.iter().any(|b| *b > 1.2 * size as f64 || *b < 0.5 * size as f64);
    if t.buffer.is_some_and(|b| !impossible(b)) {
        return None;
    }
    let mut sizes: Vec<u32> = named.iter().copied().chain([100, 512]).filter(|&s| fits(s)).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let [size] = sizes[..] else { return None };
    let was = t.buffer.replace(size);
    was.map(|b| {
        format!(
            "the figures of line {} are of records of {size} B (speed times average), not of the {b} B named above them",
            t.passes[0].line
        )
    })
}

#[cfg(test)]
mod tests {
    use super::super::{Tables, read};

    fn of(text: &str) -> Tables {
        read(&[("paste", text)]).unwrap()
    }

    #[test]
    fn the_quirks_thread() {
        let t = of("# ./flashbench -O -0 7  -b 512 /dev/block/mmcblk0p9\n4MiB    6.32M/s\n256KiB  13M/s\n^[[A^[[D^[[A128KiB  12.3M/s\n\
                    # ./flashbench -O -0 2  -b 512 /dev/block/mmcblk0p9\n# ./flashbench -O -0 22  -b 512 /dev/block/mmcblk0p9\n4MiB    11.6M/s\n");
        let n: Vec<_> = t.open.iter().map(|o| (o.n, o.rows.len())).collect();
        assert_eq!(n, [(Some(7), 3), (Some(22), 1)]);
    }

    #[test]
    fn headings_without_rows_do_not_leak() {
        let t = of(
            "== AU=6, linear access ==\n== AU=7, linear access ==\nRandom access\n== AU=1, random access ==\n4MiB 1M/s\n2MiB 1M/s\n4MiB 2M/s",
        );
        let n: Vec<_> = t.open.iter().map(|o| (o.n, o.random)).collect();
        assert_eq!(n, [(Some(1), Some(true)), (None, Some(true))]);
    }

    #[test]
    fn a_loop_names_its_blocks_only_when_they_are_complete() {
        let head = "$ for i in 1 2; do ./flashbench -O --open-au-nr=$i /dev/x; done\n";
        let t = of(&format!("{head}4MiB 9M/s\n2MiB 9M/s\n4MiB 8M/s\n2MiB 8M/s"));
        assert_eq!(t.open.iter().map(|o| o.n).collect::<Vec<_>>(), [Some(1), Some(2)]);
        let t = of(&format!("{head}4MiB 9M/s\n2MiB 9M/s"));
        assert_eq!(t.open[0].n, None);
        assert!(t.notes[0].contains("how many AUs"));
    }

    #[test]
    fn tables_are_told_apart() {
        let t = of("$ flashbench -f /dev/x\n4MiB    865K/s   3.56M/s  3.01M/s\n2MiB    4.3M/s   4.88M/s  5.11M/s\n1MiB  3M/s\n^C\n\
                    $ flashbench -p /dev/x\n2MiB 1M/s 1M/s 1M/s 9M/s 1M/s 1M/s 1M/s 9M/s\n\
                    $ flashbench -i --interval-order=3 /dev/x\n512 bytes: min 32µs avg 38µs max 47.1µs: 512.176 MB/s");
        assert_eq!((t.fat.len(), t.fat[0].rows.len(), t.program.len(), t.interval.len(), t.open.len()), (1, 2, 1, 1, 0));
        assert!(t.notes[0].contains("cut short"));
    }

    #[test]
    fn nothing_is_an_error_with_a_hint() {
        let e = read(&[("empty.txt", "hello\n10+0 records in\n")]).unwrap_err().to_string();
        assert!(e.contains("empty.txt") && e.contains("align 4194304"), "{e}");
        assert!(read::<&str, &str>(&[]).is_err());
    }

    #[test]
    fn writes_across_boundaries_are_kept_apart() {
        let row = "align 4194304 pre 741µs on 1.08ms post 788µs diff 317µs";
        let t = of(&format!("# ./flashbench -a -b 512 /dev/block/mmcblk0p9\n{row}\n# ./flashbench -A -b 512 /dev/block/mmcblk0p9\n{row}"));
        assert_eq!(t.align.iter().map(|a| a.write).collect::<Vec<_>>(), [false, true]);
    }

    #[test]
    fn rows_that_a_mail_wrapped_are_joined() {
        let t = of(
            "> align 4194304 pre 741µs on 1.08ms\n> post 788µs diff 317µs\n> align 2097152 pre 1ms\n> align 1048576 pre 1ms on 1ms post 1ms diff 0ns",
        );
        assert_eq!(t.align[0].rows.iter().map(|r| r.align).collect::<Vec<_>>(), [4_194_304, 1_048_576]);
        assert_eq!(t.notes.len(), 1);
    }

    #[test]
    fn comments_say_nothing() {
        let t = of("# author_open_au_linear: 3\n# flashbench -O: AU=9\n4MiB 9M/s\n2MiB 9M/s");
        assert_eq!(t.open[0].n, None);
    }
}

//! Walks the lines of one file and gathers rows into tests.

mod cards;
mod end;
mod labels;
mod rows;
mod unread;
mod wrapped;

use super::card::{self, Card, Identity, Kernel};
use super::clean::{Line, STOPPED};
use super::command::{Context, Kind, command, heading, is_open, is_rest, setting};
use super::prefix::is_row;
use super::{BenchTest, Declared, IntervalTest, Place, ScatterTest, Tables};
use super::{align, other, sdfat};
use wrapped::broken_word;

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
    /// Cards by disk, as the kernel's log has them.
    kernel: Vec<(String, Kernel)>,
    context: Context,
    current: Current,
    /// A command or heading came since the last row.
    fresh: bool,
    sdfat: sdfat::State,
    /// Blocks of rows under the loop in the context: their index in `tables.open`.
    looped: Vec<usize>,
    /// The command was ended before its time, and no row came since.
    stopped: bool,
    /// Headings since the last command, their figures taken out.
    labels: Vec<String>,
    /// Numbers of AUs in the head of a table with one column for each, and its tests in `tables.open`.
    columns: (Vec<u32>, Vec<usize>),
    /// Commands of which no row was read, with the first line below that might be one.
    unread: unread::Unread,
    damaged: usize,
    nameless: usize,
    /// The beginning of a row that a mail or a terminal may have wrapped.
    wrapped: Option<Line>,
    /// The last row with several columns, with the number of the line that it ended in.
    row: Option<Line>,
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
        kernel: vec![],
        context: Context::default(),
        current: Current::None,
        fresh: true,
        sdfat: sdfat::State::default(),
        looped: vec![],
        stopped: false,
        labels: vec![],
        columns: Default::default(),
        unread: Default::default(),
        damaged: 0,
        nameless: 0,
        wrapped: None,
        row: None,
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
    r.end(name, lines)
}

impl Reader {
    /// A command may go on in the next line: where it names no device ("./flashbench -O -0 8  -b 512" above "/dev/block/mmcblk0p9"), or
    /// where a mail or a terminal broke it.
    fn unwrapped(&mut self, line: &Line, above: Option<&str>) {
        if line.text.is_empty() {
            return;
        }
        if let Some(head) = self.held.take() {
            let another = line.text.contains("flashbench");
            let with =
                |between: &str| Line { number: head.number, depth: head.depth, text: format!("{}{between}{}", head.text, line.text) };
            let names = |l: &Line| command(&l.text).is_some_and(|c| c.disk.is_some());
            if !another && (is_rest(&line.text) || is_open(&head.text)) && !is_row(&line.text) {
                // There may be more of it.
                self.held = Some(with(if head.text.ends_with('=') { "" } else { " " }));
                return;
            }
            if !another && !names(&head) && names(&with(" ")) {
                return self.line(&with(" "), above);
            }
            if let Some(whole) = (!another).then(|| broken_word(&head, line)).flatten() {
                self.held = Some(whole);
                return;
            }
            self.line(&head, None);
        }
        if line.text.contains("flashbench -") || line.text.contains("flashbench /dev/") {
            if super::card::names_own(&line.text) {
                return self.line(line, above);
            }
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
        if let Some(head) = self.wrapped.take()
            && self.rejoined(head, line)
        {
            return;
        }
        if text == STOPPED {
            self.stopped = true;
            return;
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
        if text.starts_with('#') && !(text.starts_with("##") && heading(text).is_some()) {
            // A comment, unless it is the root prompt, or a heading in a page's own marks.
            self.own = text.starts_with("# nandscope ") || self.own && !text.contains("/flashbench");
            match command(text) {
                Some(c) => self.announce(c, line.number),
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
        if align::damaged(text) && align::goes_on(text) {
            self.wrapped = Some(line.clone());
        } else if let Some(row) = align::row(line.number, text) {
            self.align(place, row);
        } else if align::damaged(text) || other::is_broken(text) {
            self.wrapped = Some(line.clone());
        } else if let Some(row) = other::rates(line.number, text) {
            self.row = Some(line.clone());
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
        } else if self.goes_on(line) {
        } else if let Some(c) = command(text) {
            self.own = false;
            self.announce(c, line.number);
        } else if let Some(size) = other::device_size(text) {
            self.sized(place, text, size);
        } else if let Some((disk, card)) = Kernel::line(text) {
            self.tables.ignored_lines += 1;
            self.appears(disk, card);
        } else if let Some((key, value)) = other::declared(text, above).or_else(|| other::ext_csd_field(text)) {
            self.tables.declared.push(Declared { place, key, value });
        } else {
            let said = sdfat::line(&mut self.sdfat, place, text, &text.to_ascii_lowercase());
            let bench = !said.is_empty();
            said.into_iter().for_each(|s| self.bench(place, s));
            self.unread.line(text);
            match heading(text).filter(|_| !bench) {
                Some(c) if self.heads_columns(text, c.random) => {}
                // A heading may name the card as well: "The Sandisk one has 20 AUs."
                Some(c) => {
                    self.names(text);
                    self.announce_heading(c, text);
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

    fn set(&mut self, text: &str) {
        if let Some(s) = setting(text) {
            self.setting = Some(s);
        }
    }

    fn announce(&mut self, c: Context, line: usize) {
        self.close_loop();
        self.labels_below();
        self.columns.0.clear();
        self.unread.command(line, c.kind.is_some_and(|k| k != Kind::Program));
        if c.disk.is_some() {
            self.speaks_of(Identity { path: c.disk.clone(), ..Identity::default() });
        }
        self.context = c;
        self.fresh = true;
    }

    /// A heading adds to what the command said; "Linear access" alone opens a section whose N is still to come.
    fn announce_heading(&mut self, c: Context, text: &str) {
        self.close_loop();
        self.columns.0.clear();
        self.labels.push(text.chars().filter(|c| !c.is_ascii_digit()).collect());
        let old = std::mem::take(&mut self.context);
        // A sentence below a command does not change what it was told; a few words are the heading of one table.
        let told = self.fresh && old.n.is_some() && !old.default_n && card::first_words(text, 5).len() > 4;
        self.context = Context {
            random: c.random.or(old.random),
            erase_size: old.erase_size,
            block_size: old.block_size,
            kind: c.kind,
            disk: old.disk,
            write: old.write && c.kind == Some(Kind::Align),
            n: if told { old.n } else { c.n },
            default_n: false,
            queue: vec![],
        };
        self.fresh = true;
    }
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
        // Ended by hand, it went through the first of its values; what comes without a command after that is of nothing.
        let t = of(&format!("{head}4MiB 9M/s\n2MiB 9M/s\n4MiB 8M/s\n^C\n{head}4MiB 7M/s\n2MiB 7M/s\n^C\n"));
        assert_eq!(t.open.iter().map(|o| o.n).collect::<Vec<_>>(), [Some(1), Some(2), Some(1)]);
        let t = of(&format!("{head}^C\n4MiB 9M/s\n2MiB 9M/s"));
        assert_eq!(t.open[0].n, None);
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

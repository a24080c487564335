//! A card model: how one card works, with every figure a file may set, its unit and its range.

use crate::form::{Choice, Form, Mode, ModelError, Need::*};
use crate::units::{GIB, KIB, MIB};

/// The longest time a model may name: 100 s.
const T: u64 = 100_000_000_000;
/// The largest size a model may name: 4 TiB.
const S: u64 = 4096 * GIB;
/// The fastest rate a model may name: 100 GB/s.
const R: u64 = 100_000_000_000;

macro_rules! words {
    ($(#[$m:meta])* $name:ident { $($(#[$d:meta])* $v:ident = $w:literal),+ $(,)? }) => {
        $(#[$m])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
        #[allow(missing_docs)]
        pub enum $name { #[default] $($(#[$d])* $v),+ }
        impl Choice for $name {
            const ALL: &'static [(Self, &'static str)] = &[$((Self::$v, $w)),+];
        }
    };
}

/// The words a model file may use.
mod kinds {
    use super::Choice;
    words!(
        /// What the card held before the first request.
        State { Written = "written", Empty = "empty" }
    );
    words!(
        /// What a read of never written flash costs.
        Unwritten { AsWritten = "as-written", Flat = "flat" }
    );
    words!(
        /// What happens behind the real capacity of a counterfeit card.
        Beyond { Wrap = "wrap", Drop = "drop", Error = "error" }
    );
    words!(
        /// How the card finds its data.
        FtlKind { None = "none", BlockMap = "block-map", PageMap = "page-map" }
    );
    words!(
        /// Which open AU is closed when another one is needed.
        Evict { Lru = "lru", Fifo = "fifo", Random = "random", Counter = "counter" }
    );
    words!(
        /// What closing an AU written in random order copies.
        MergeRandom { Rest = "rest", Whole = "whole" }
    );
    words!(
        /// Which operation a rule looks at.
        On { Write = "write", Read = "read", Any = "any" }
    );
    words!(
        /// What goes wrong.
        FaultKind { Io = "io", Gone = "gone", ReadOnly = "read-only" }
    );
}
pub use kinds::*;

/// The machine and the reader around the card.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Host {
    /// ns a command costs outside the card: software, interrupt, USB.
    pub command: u64,
    /// Bytes a second on the wire; 0 = no limit.
    pub rate: u64,
    /// Bytes after which a request is split in several commands; 0 = never.
    pub max_request: u64,
    /// ns for each further command of a split request, on top of what a command costs.
    pub split: u64,
    /// ns, standard deviation of the normal part of the jitter of a command.
    pub jitter: u64,
    /// ns, the smallest delay of the heavy tail (Pareto with exponent 2).
    pub tail: u64,
    /// One command in so many gets a tail delay; 0 = none.
    pub tail_every: u64,
    /// ns, the largest tail delay.
    pub tail_cap: u64,
}

/// The controller and what it claims.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct CardPart {
    /// Bytes the host may address.
    pub capacity: u64,
    /// Bytes of the smallest access.
    pub sector: u64,
    /// ns the controller spends on any command.
    pub command: u64,
    /// Bytes a second the controller can move; 0 = no limit.
    pub rate: u64,
    /// Bytes that really exist; 0 = all of them.
    pub real_capacity: u64,
    /// What happens behind `real_capacity`.
    pub beyond: Beyond,
    /// What the card held before the first request.
    pub state: State,
    /// Bytes the card remembers around the last read; 0 = no read cache.
    pub read_ahead: u64,
    /// Collects small writes that follow each other inside one write unit.
    pub combine: bool,
    /// ns a discard command costs.
    pub discard: u64,
    /// ns a flush costs.
    pub flush: u64,
}

/// The flash and how long it takes.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Nand {
    /// Bytes of a page.
    pub page: u64,
    /// Bytes of the pages read or programmed together (planes).
    pub access_unit: u64,
    /// Bytes below which a write costs as much as one of this size.
    pub write_unit: u64,
    /// Bytes of an erase block as the FTL uses it: the AU.
    pub erase_block: u64,
    /// Bytes before the first boundary of an erase block.
    pub erase_block_offset: u64,
    /// ns to bring one access unit into the registers.
    pub sense: u64,
    /// ns to take a further page out of the registers.
    pub next_page: u64,
    /// ns to find another erase block (map, die).
    pub lookup: u64,
    /// Whether the next access unit is sensed while this one is on the wire.
    pub pipelined: bool,
    /// What a read of never written flash costs.
    pub unwritten: Unwritten,
    /// ns of such a read, when flat.
    pub unwritten_read: u64,
    /// ns to program one write unit.
    pub program: u64,
    /// Bytes a second at which the rest of a partly written unit is filled up; 0 = at once.
    pub rest_rate: u64,
    /// ns at the end of each write command.
    pub commit: u64,
    /// ns to copy one write unit inside the card.
    pub copy: u64,
    /// ns to erase one erase block.
    pub erase: u64,
}

/// A table of open AUs with a log each.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct BlockMap {
    /// How many AUs can be open.
    pub open_linear: u64,
    /// How many of them can be in random order; 0 = none.
    pub open_random: u64,
    /// Which one is closed when there is no room.
    pub evict: Evict,
    /// `counter`: groups of the table, taken in turn with every write.
    pub groups: u64,
    /// ns to close an AU, on top of copying and erasing.
    pub close: u64,
    /// ns to close one written in random order, instead of `close`; 0 = the same.
    pub close_random: u64,
    /// Bytes of the blocks an AU is merged by; 0 = the whole AU.
    pub merge_span: u64,
    /// What closing an AU in random order copies.
    pub merge_random: MergeRandom,
    /// Bytes from the start that take random writes without opening an AU; 0 = none.
    pub fat_zone: u64,
}

/// A map of every unit with garbage collection.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct PageMap {
    /// Spare flash over the capacity, as a share of the capacity.
    pub over_provisioning: f64,
    /// Bytes of one entry of the map; 0 = the write unit.
    pub unit: u64,
    /// Erased blocks kept in hand.
    pub reserve: u64,
}

/// How the card finds its data.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Ftl {
    /// Which kind.
    pub kind: FtlKind,
    /// Settings of `block-map`.
    pub block: BlockMap,
    /// Settings of `page-map`.
    pub page: PageMap,
}

/// A pause for work the host did not ask for.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Stall {
    /// Operations that run into it.
    pub on: On,
    /// ns it lasts.
    pub time: u64,
    /// One after so many bytes; 0 = counted in commands.
    pub every_bytes: u64,
    /// One after so many commands; 0 = counted in bytes.
    pub every_commands: u64,
    /// Drawn by chance with that mean instead of regular.
    pub random: bool,
}

/// Something that goes wrong.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct FaultRule {
    /// What.
    pub kind: FaultKind,
    /// Operations it hits (`io`).
    pub on: On,
    /// First byte of the bad range (`io`).
    pub at: u64,
    /// Bytes of the bad range (`io`).
    pub len: u64,
    /// Begins after so many commands.
    pub after_commands: u64,
    /// Begins after so many bytes written.
    pub after_bytes: u64,
}

/// A card model. [`Model::parse`] is the only way to a checked one.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Model {
    /// Short name, as in the file name.
    pub name: String,
    /// What it stands for.
    pub about: String,
    /// The machine and the reader.
    pub host: Host,
    /// The controller.
    pub card: CardPart,
    /// The flash.
    pub nand: Nand,
    /// The translation layer.
    pub ftl: Ftl,
    /// Pauses.
    pub stall: Vec<Stall>,
    /// Faults.
    pub fault: Vec<FaultRule>,
}

impl Host {
    fn keys(&mut self, f: &mut Form) {
        f.time("command", May, &mut self.command, 0..=T, "cost of a command outside the card: software, interrupt, reader");
        f.rate("rate", May, &mut self.rate, 0..=R, "bus rate; 0 = no limit");
        f.size("max_request", May, &mut self.max_request, 0..=GIB, "a longer request is split in several commands; 0 = never");
        f.time("split", May, &mut self.split, 0..=T, "extra cost of each further command of a split request");
        f.time("jitter", May, &mut self.jitter, 0..=T, "standard deviation of the cost of a command");
        f.time("tail", May, &mut self.tail, 0..=T, "smallest delay of the heavy tail (Pareto, exponent 2)");
        f.count("tail_every", May, &mut self.tail_every, 0..=1_000_000_000, "one command in so many has a tail delay; 0 = none");
        f.time("tail_cap", May, &mut self.tail_cap, 0..=T, "largest delay of the heavy tail; 0 = a hundred times `tail`");
    }
}

impl CardPart {
    fn keys(&mut self, f: &mut Form) {
        f.size("capacity", Must, &mut self.capacity, 64 * KIB..=S, "bytes the host may address");
        f.size("sector", May, &mut self.sector, 512..=4096, "smallest access: 512 or 4096");
        f.time("command", May, &mut self.command, 0..=T, "time the controller spends on any command");
        f.rate("rate", May, &mut self.rate, 0..=R, "rate of the controller; the slower of this and `host.rate` counts; 0 = no limit");
        f.size("real_capacity", May, &mut self.real_capacity, 0..=S, "flash that really exists (counterfeits); 0 = all of it");
        f.choice("beyond", May, &mut self.beyond, "behind `real_capacity`: wraps round, drops writes, or gives errors");
        f.choice("state", May, &mut self.state, "what the card held before the first request");
        f.size(
            "read_ahead",
            May,
            &mut self.read_ahead,
            0..=64 * MIB,
            "read cache: what one read brings in, in whole access units; 0 = none",
        );
        f.flag("combine", &mut self.combine, "collects small writes that follow each other inside one write unit (one buffer)");
        f.time("discard", May, &mut self.discard, 0..=T, "cost of a discard");
        f.time("flush", May, &mut self.flush, 0..=T, "cost of a flush");
    }
}

impl Nand {
    fn keys(&mut self, f: &mut Form) {
        f.size("page", Must, &mut self.page, 512..=16 * MIB, "page: a multiple of the sector");
        f.size(
            "access_unit",
            May,
            &mut self.access_unit,
            0..=64 * MIB,
            "pages read or programmed together: a multiple of the page; 0 = one page",
        );
        f.size("write_unit", May, &mut self.write_unit, 0..=64 * MIB, "unit of programming; 0 = the access unit");
        f.size(
            "erase_block",
            Must,
            &mut self.erase_block,
            4 * KIB..=4 * GIB,
            "erase block (AU): any multiple of access unit and write unit",
        );
        f.size(
            "erase_block_offset",
            May,
            &mut self.erase_block_offset,
            0..=4 * GIB,
            "bytes before the first boundary; pages count from there too",
        );
        f.time("sense", May, &mut self.sense, 0..=T, "reading an access unit out of the cells");
        f.time("next_page", May, &mut self.next_page, 0..=T, "taking a further page of the same access unit");
        f.time("lookup", May, &mut self.lookup, 0..=T, "finding another erase block");
        f.flag("pipelined", &mut self.pipelined, "senses the next access unit while the last one is on the bus");
        f.choice("unwritten", May, &mut self.unwritten, "reads of never written flash cost the same, or a flat time without structure");
        f.time("unwritten_read", May, &mut self.unwritten_read, 0..=T, "that flat time");
        f.time("program", May, &mut self.program, 0..=T, "programming a write unit");
        f.rate("rest_rate", May, &mut self.rest_rate, 0..=R, "filling up the rest of a partly written unit; 0 = costs nothing");
        f.time("commit", May, &mut self.commit, 0..=T, "busy time at the end of each write command");
        f.time("copy", May, &mut self.copy, 0..=T, "copying a write unit inside the card");
        f.time("erase", May, &mut self.erase, 0..=T, "erasing an erase block");
    }
}

impl Ftl {
    fn keys(&mut self, f: &mut Form) {
        f.choice("kind", Must, &mut self.kind, "how the card finds its data");
        let doc = matches!(f.mode, Mode::Doc(_));
        if doc || self.kind == FtlKind::BlockMap {
            let b = &mut self.block;
            f.count("open_linear", Must, &mut b.open_linear, 1..=4096, "block-map: AUs that can be open at once");
            f.count("open_random", May, &mut b.open_random, 0..=4096, "block-map: of these, how many in random order; 0 = none");
            f.choice("evict", May, &mut b.evict, "block-map: which AU is closed for another; `counter` = the oldest of a group of the table, the group given by a counter of writes");
            f.count("groups", May, &mut b.groups, 1..=4096, "block-map, `counter`: groups of the table");
            f.time("close", May, &mut b.close, 0..=T, "block-map: closing an AU, on top of copying and erasing");
            f.time("close_random", May, &mut b.close_random, 0..=T, "block-map: the same for one written in random order; 0 = `close`");
            f.size("merge_span", May, &mut b.merge_span, 0..=GIB, "block-map: an AU is merged by blocks of this size; 0 = whole");
            f.choice(
                "merge_random",
                May,
                &mut b.merge_random,
                "block-map: closing after random order copies what is missing, or everything",
            );
            f.size(
                "fat_zone",
                May,
                &mut b.fat_zone,
                0..=GIB,
                "block-map: bytes from the start that take random writes without opening an AU",
            );
        }
        if doc || self.kind == FtlKind::PageMap {
            let p = &mut self.page;
            f.ratio("over_provisioning", Must, &mut p.over_provisioning, 0.001..=10.0, "page-map: spare flash as a share of the capacity");
            f.size("unit", May, &mut p.unit, 0..=MIB, "page-map: bytes of one entry of the map; 0 = the write unit");
            f.count("reserve", May, &mut p.reserve, 1..=1024, "page-map: erased blocks kept in hand");
        }
    }
}

impl Stall {
    fn keys(&mut self, f: &mut Form) {
        f.choice("on", May, &mut self.on, "operations that can run into it");
        f.time("time", Must, &mut self.time, 1..=T, "how long it lasts");
        f.size("every_bytes", May, &mut self.every_bytes, 0..=S, "one after so many bytes");
        f.count("every_commands", May, &mut self.every_commands, 0..=1_000_000_000, "one after so many commands");
        f.flag("random", &mut self.random, "drawn by chance with that mean");
        if matches!(f.mode, Mode::Read(_)) && (self.every_bytes == 0) == (self.every_commands == 0) {
            f.fail("every_bytes", "set exactly one of every_bytes and every_commands".into());
        }
    }
}

impl FaultRule {
    fn keys(&mut self, f: &mut Form) {
        f.choice("kind", Must, &mut self.kind, "an error in a range, the card disappears, or takes no more writes");
        f.choice("on", May, &mut self.on, "`io`: operations it hits");
        f.size("at", May, &mut self.at, 0..=S, "`io`: first byte of the range");
        f.size("len", May, &mut self.len, 0..=S, "`io`: bytes of the range; 0 = to the end");
        f.count("after_commands", May, &mut self.after_commands, 0..=u64::MAX >> 1, "begins after so many commands");
        f.size("after_bytes", May, &mut self.after_bytes, 0..=1 << 60, "begins after so many bytes written");
    }
}

impl Model {
    fn keys(&mut self, f: &mut Form) {
        f.text("name", Must, &mut self.name, "short name");
        f.text("about", May, &mut self.about, "what the model stands for");
        f.table("host", May, |f| self.host.keys(f));
        f.table("card", Must, |f| self.card.keys(f));
        f.table("nand", Must, |f| self.nand.keys(f));
        f.table("ftl", Must, |f| self.ftl.keys(f));
        f.list("stall", &mut self.stall, Stall::keys);
        f.list("fault", &mut self.fault, FaultRule::keys);
    }

    /// The model with every default, before a file is read.
    pub(crate) fn blank() -> Model {
        let mut m = Model::default();
        m.card.sector = 512;
        m.ftl.page.reserve = 2;
        m.ftl.block.groups = 1;
        m
    }

    /// Reads a model. `file` only names the text in messages.
    pub fn parse(text: &str, file: &str) -> Result<Model, ModelError> {
        let table: toml::Table = text.parse().map_err(|e: toml::de::Error| ModelError {
            file: file.to_string(),
            key: "TOML".to_string(),
            reason: e.to_string().trim_end().to_string(),
        })?;
        let mut form = Form::new(Mode::Read(table), file);
        let mut model = Model::blank();
        model.keys(&mut form);
        form.finish();
        if form.error.is_none() {
            model.settle();
            if let Err((key, reason)) = model.check() {
                form.fail(key, reason);
            }
        }
        form.error.map_or(Ok(model), Err)
    }

    /// Writes the model so that [`Model::parse`] gives the same one back.
    pub fn to_toml(&self) -> String {
        let mut form = Form::new(Mode::Write(String::new()), &self.name);
        self.clone().keys(&mut form);
        match form.mode {
            Mode::Write(text) => text,
            _ => unreachable!("a form keeps its mode"),
        }
    }

    /// The table of all keys, in Markdown, as FORMATS.md has it.
    pub fn key_table() -> String {
        let mut form = Form::new(Mode::Doc("| key | kind | default | meaning |\n|---|---|---|---|\n".into()), "");
        Model::blank().keys(&mut form);
        match form.mode {
            Mode::Doc(text) => text,
            _ => unreachable!("a form keeps its mode"),
        }
    }

    /// Bytes the host may address.
    pub fn capacity(&self) -> u64 {
        self.card.capacity
    }

    /// Bytes of the smallest access.
    pub fn sector(&self) -> u64 {
        self.card.sector
    }

    /// Puts the real size where 0 stands for "the same as another".
    pub(crate) fn settle(&mut self) {
        let n = &mut self.nand;
        if n.access_unit == 0 {
            n.access_unit = n.page;
        }
        if n.write_unit == 0 {
            n.write_unit = n.access_unit;
        }
        if self.ftl.page.unit == 0 {
            self.ftl.page.unit = n.write_unit;
        }
        if self.host.tail_cap == 0 {
            self.host.tail_cap = self.host.tail.saturating_mul(100).min(T);
        }
        if self.card.real_capacity == 0 {
            self.card.real_capacity = self.card.capacity;
        }
    }

    /// What one key alone cannot show.
    fn check(&self) -> Result<(), (&'static str, String)> {
        let (c, n, h) = (&self.card, &self.nand, &self.host);
        let multiple = |key: &'static str, x: u64, of: u64, what: &str| {
            if x.is_multiple_of(of) { Ok(()) } else { Err((key, format!("{x} is not a multiple of {what} ({of})"))) }
        };
        if self.name.is_empty() || !self.name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c)) {
            return Err(("name", "must be one word of letters, digits, '-', '_' and '.'".into()));
        }
        if c.sector != 512 && c.sector != 4096 {
            return Err(("card.sector", format!("{} is neither 512 nor 4096", c.sector)));
        }
        multiple("card.capacity", c.capacity, c.sector, "card.sector")?;
        multiple("card.real_capacity", c.real_capacity, c.sector, "card.sector")?;
        if c.real_capacity > c.capacity {
            return Err(("card.real_capacity", "is larger than card.capacity".into()));
        }
        multiple("nand.page", n.page, c.sector, "card.sector")?;
        multiple("nand.access_unit", n.access_unit, n.page, "nand.page")?;
        multiple("nand.write_unit", n.write_unit, c.sector, "card.sector")?;
        multiple("nand.erase_block", n.erase_block, n.access_unit, "nand.access_unit")?;
        multiple("nand.erase_block", n.erase_block, n.write_unit, "nand.write_unit")?;
        multiple("nand.erase_block_offset", n.erase_block_offset, c.sector, "card.sector")?;
        if n.erase_block_offset >= n.erase_block {
            return Err(("nand.erase_block_offset", "must be smaller than nand.erase_block".into()));
        }
        if n.erase_block > c.capacity {
            return Err(("nand.erase_block", "is larger than card.capacity".into()));
        }
        multiple("host.max_request", h.max_request, c.sector, "card.sector")?;
        if h.tail_every > 0 && h.tail == 0 {
            return Err(("host.tail", "must be given where host.tail_every is".into()));
        }
        match self.ftl.kind {
            FtlKind::None => {}
            FtlKind::BlockMap => {
                let b = &self.ftl.block;
                if b.open_random > b.open_linear {
                    return Err(("ftl.open_random", "is larger than ftl.open_linear: an AU in random order is an open AU".into()));
                }
                if b.groups > b.open_linear {
                    return Err(("ftl.groups", "is larger than ftl.open_linear".into()));
                }
                if b.merge_span > 0 {
                    multiple("ftl.merge_span", b.merge_span, n.write_unit, "nand.write_unit")?;
                    multiple("nand.erase_block", n.erase_block, b.merge_span, "ftl.merge_span")?;
                }
                multiple("ftl.fat_zone", b.fat_zone, c.sector, "card.sector")?;
            }
            FtlKind::PageMap => {
                let p = &self.ftl.page;
                multiple("ftl.unit", p.unit, c.sector, "card.sector")?;
                multiple("nand.erase_block", n.erase_block, p.unit, "ftl.unit")?;
                let spare = (c.capacity as f64 * p.over_provisioning) as u64 / n.erase_block;
                if spare < p.reserve + 2 {
                    let need = p.reserve + 2;
                    return Err(("ftl.over_provisioning", format!("leaves {spare} spare erase blocks; at least {need} are needed")));
                }
                if (c.capacity / p.unit) as f64 * (1.0 + p.over_provisioning) >= (1u64 << 31) as f64 {
                    return Err(("ftl.unit", "more than 2^31 units of flash; take a larger unit".into()));
                }
            }
        }
        Ok(())
    }
}

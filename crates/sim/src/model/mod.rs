//! A card model: how one card works, with every figure a file may set, its unit and its range.

mod check;
mod keys;
mod kinds;
mod parts;
mod profile;

use crate::form::{Form, Mode, ModelError, Need::*};
pub use kinds::*;
pub use parts::*;

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
    /// The SLC cache.
    pub slc: Slc,
    /// Wear.
    pub wear: Wear,
    /// Heat.
    pub throttle: Vec<Throttle>,
    /// Pauses.
    pub stall: Vec<Stall>,
    /// Faults.
    pub fault: Vec<FaultRule>,
    /// Bad areas.
    pub area: Vec<Area>,
}

impl Model {
    fn keys(&mut self, f: &mut Form) {
        f.text("name", Must, &mut self.name, "short name");
        f.text("about", May, &mut self.about, "what the model stands for");
        f.table("host", May, |f| self.host.keys(f));
        f.table("card", Must, |f| self.card.keys(f));
        f.table("nand", Must, |f| self.nand.keys(f));
        f.table("ftl", Must, |f| self.ftl.keys(f));
        f.table("slc", May, |f| self.slc.keys(f));
        f.table("wear", May, |f| self.wear.keys(f));
        f.list("throttle", &mut self.throttle, Throttle::keys);
        f.list("stall", &mut self.stall, Stall::keys);
        f.list("fault", &mut self.fault, FaultRule::keys);
        f.list("area", &mut self.area, Area::keys);
    }

    /// The model with every default, before a file is read.
    pub(crate) fn blank() -> Model {
        let mut m = Model::default();
        m.card.sector = 512;
        m.ftl.page.reserve = 2;
        m.ftl.block.groups = 1;
        m.nand.dies = 1;
        (m.ftl.page.choices, m.ftl.page.goal, m.ftl.page.map_span) = (8, 16, 4 << 20);
        m
    }

    /// Reads a model. `file` only names the text in messages.
    pub fn parse(text: &str, file: &str) -> Result<Model, ModelError> {
        let table: toml::Table = text.parse().map_err(|e: toml::de::Error| {
            let at = e.span().map_or(0, |s| s.start.min(text.len()));
            let above = &text.as_bytes()[..at];
            let line = 1 + above.iter().filter(|b| **b == b'\n').count();
            let column = 1 + above.iter().rev().take_while(|b| **b != b'\n').count();
            let reason = format!("line {line}, column {column}: {}; a card model is TOML", e.message().trim_end().replace('\n', ", "));
            ModelError { file: file.to_string(), key: "TOML".to_string(), reason }
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

    /// This model, with the real sizes where 0 stands for another's, if one key contradicts no other. For models made by a program: the ranges
    /// of single keys are not looked at.
    ///
    /// # Errors
    /// The key and what is wrong with it.
    pub fn checked(mut self) -> Result<Model, ModelError> {
        self.settle();
        match self.check() {
            Ok(()) => Ok(self),
            Err((key, reason)) => Err(ModelError { file: self.name.clone(), key: key.to_string(), reason }),
        }
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
            self.host.tail_cap = self.host.tail.saturating_mul(100).min(100_000_000_000);
        }
        if self.card.real_capacity == 0 {
            self.card.real_capacity = self.card.capacity;
        }
    }
}

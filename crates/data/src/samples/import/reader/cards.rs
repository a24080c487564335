//! Which card the lines are of.

use super::super::card::{self, Card, Identity, Kernel};
use super::super::command::Context;
use super::super::named::{host, named};
use super::super::{Place, sdfat};
use super::{Current, Reader};

impl Reader {
    /// A card or a machine that a line of prose names.
    pub(super) fn names(&mut self, text: &str) {
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

    /// The lines that follow are of this card. Where that contradicts what is known, or may do so, a new part begins.
    pub(super) fn speaks_of(&mut self, mut new: Identity) {
        if new.maker.is_some() || new.named.is_some() {
            self.spoken = Identity { path: None, ..new.clone() };
        }
        if let Some(p) = &new.path {
            new.size = new.size.or(self.sizes.iter().rfind(|s| s.0 == *p).map(|s| s.1));
            new.kernel = new.kernel.or_else(|| self.kernel.iter().rfind(|k| k.0 == *p).map(|k| k.1.clone()));
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
                (old.size, old.cid, old.label, old.kernel) = (None, None, None, None);
            }
            self.identity.learn(&old);
            return;
        }
        self.close_loop();
        self.labels_below();
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
        self.columns = Default::default();
    }

    pub(super) fn has_tests(&self) -> bool {
        let t = &self.tables;
        [t.align.len(), t.open.len(), t.fat.len(), t.program.len(), t.interval.len(), t.scatter.len()].iter().any(|&n| n > 0)
            || t.bench.iter().any(|b| !b.passes.is_empty())
    }

    /// A disk's size: another size of the disk that was tested is another card.
    pub(super) fn sized(&mut self, place: Place, text: &str, size: u64) {
        if let Some(path) = card::path(text) {
            remember(&mut self.sizes, &path, size);
            if self.identity.path.as_ref().is_none_or(|p| *p == path) {
                self.speaks_of(Identity { size: Some(size), path: Some(path), ..Identity::default() });
            }
        }
        self.tables.device_sizes.push((place, size));
    }

    /// The kernel found this card: where the disk was tested with another one, that was another card.
    pub(super) fn appears(&mut self, disk: String, card: Kernel) {
        remember(&mut self.kernel, &disk, card.clone());
        if self.identity.path.as_ref().is_none_or(|p| *p == disk) {
            self.speaks_of(Identity { kernel: Some(card), path: Some(disk), ..Identity::default() });
        }
    }
}

/// The latest word on a disk.
fn remember<T>(all: &mut Vec<(String, T)>, disk: &str, what: T) {
    all.retain(|s| s.0 != disk);
    all.push((disk.to_string(), what));
    // Machines have dozens of disks.
    if all.len() > 256 {
        all.remove(0);
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::cards;

    fn run(on: f64) -> String {
        (12..24).map(|k| format!("align {} pre 700µs on {on}µs post 700µs diff {}µs\n", 1u64 << k, on - 700.0)).collect()
    }

    /// Another product is another card, and so is another address of the same product where both were tested; the disk that was tested counts.
    #[test]
    fn the_kernel_names_cards() {
        let of = |first: &str, second: &str| {
            let text =
                format!("{first}\n$ flashbench -a /dev/mmcblk0\n{}{second}\n$ flashbench -a /dev/mmcblk0\n{}", run(900.0), run(950.0));
            cards(&[("log", text)]).unwrap().into_iter().map(|c| c.identity.name().unwrap()).collect::<Vec<_>>()
        };
        let (su, sd) = ("[ 7.1] mmcblk0: mmc0:b368 SU08G 7.40 GiB", "mmcblk0: mmc0:e624 SD08G 7.40 GiB");
        assert_eq!(of(su, sd), ["mmcblk0, SU08G 7.40 GiB at mmc0:b368", "mmcblk0, SD08G 7.40 GiB at mmc0:e624"]);
        assert_eq!(of(su, &su.replace("b368", "0007")).len(), 2);
        for again in [su, "mmcblk1: mmc1:0001 MMC04G 3.64 GiB", "mmcblk0: p1"] {
            assert_eq!(of(su, again), ["mmcblk0, SU08G 7.40 GiB at mmc0:b368"], "{again}");
        }
    }

    #[test]
    fn a_quotation_may_be_of_another_card() {
        let quoted = |t: &str| t.lines().map(|l| format!("> {l}\n")).collect::<String>();
        let notes = |text: String| cards(&[("mail", text)]).unwrap().remove(0).tables.notes;
        let doubts = notes(format!("{}\nAnd mine:\n{}", quoted(&run(900.0)), run(950.0)));
        assert!(doubts[0].contains("line 1 and of line 15 differently; two cards?"), "{doubts:?}");
        // What is quoted from the same text was measured once.
        assert!(notes(format!("{}\nAs I wrote:\n{}", quoted(&run(900.0)), run(900.0))).is_empty());
        assert!(notes(quoted(&format!("{}\n{}", run(900.0), run(950.0)))).is_empty());
    }
}

//! Which card a part of a log belongs to: one paste may hold several.
//!
//! Registers, sizes and numbered headings part cards for certain. A device path or a maker's name in the text only hints:
//! a reader that was plugged in again has a new path, and prose names other cards. A hint counts only where both sides hold
//! a test of one kind, because then the parts would be pooled.

use super::Tables;
use super::named::Named;

/// What is known of the card that the lines speak of.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Identity {
    /// "card 2", as a heading names it.
    pub label: Option<String>,
    /// Maker named in the text.
    pub maker: Option<&'static str>,
    /// Device of the commands, without the partition.
    pub path: Option<String>,
    /// Bytes.
    pub size: Option<u64>,
    pub cid: Option<String>,
    /// As running text names it: "2GB SanDisk class 2".
    pub named: Option<Named>,
    /// As the kernel's log has it.
    pub kernel: Option<Kernel>,
}

/// "mmcblk0: mmc0:b368 SU08G 7.40 GiB": what the kernel says when a card appears.
#[derive(Clone, Debug, PartialEq)]
pub struct Kernel {
    /// "mmc0:b368": cards choose it themselves, most of them always the same one.
    address: String,
    /// "SU08G 7.40 GiB".
    product: String,
}

impl Kernel {
    /// The disk and its card.
    pub fn line(text: &str) -> Option<(String, Kernel)> {
        let mut words = text.split_whitespace().skip_while(|w| !w.starts_with("mmcblk"));
        let disk = words.next()?.strip_suffix(':')?;
        let address = words.next()?;
        let (host, id) = address.split_once(':')?;
        let digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
        let found = digits(disk.strip_prefix("mmcblk")?) && digits(host.strip_prefix("mmc")?);
        if !found || id.len() != 4 || !id.bytes().all(|b| b.is_ascii_hexdigit()) {
            return None;
        }
        // The name may have blanks, or be missing; the boot partitions of eMMC say "partition 1" instead.
        let rest: Vec<&str> = words.take_while(|w| !w.starts_with('(')).collect();
        let [.., size, "GiB" | "MiB" | "TiB"] = rest[..] else { return None };
        size.parse::<f64>().ok()?;
        Some((disk.to_string(), Kernel { address: address.to_string(), product: rest.join(" ") }))
    }
}

/// The way out where tables seem to be of two cards.
pub const KEPT_APART: &str = "A line 'card 1' or 'card 2' above the tables keeps two cards apart";

/// Makers whose cards fill the lists, as they are written there.
const MAKERS: [&str; 30] = [
    "sandisk",
    "kingston",
    "samsung",
    "toshiba",
    "transcend",
    "lexar",
    "sony",
    "panasonic",
    "patriot",
    "adata",
    "verbatim",
    "pny",
    "kioxia",
    "micron",
    "corsair",
    "intenso",
    "integral",
    "goodram",
    "hama",
    "medion",
    "delkin",
    "swissbit",
    "apacer",
    "netac",
    "hynix",
    "strontium",
    "wintec",
    "atp",
    "pqi",
    "hitachi",
];

/// Whether a word in lower case is a maker's name.
pub fn is_maker(word: &str) -> bool {
    MAKERS.contains(&word)
}

impl Identity {
    /// Certainly not the same card: something hard is known of both and differs.
    pub fn conflicts(&self, o: &Identity) -> bool {
        let registers = self.native() && o.native() && differ(&self.cid, &o.cid);
        let product = |i: &Identity| i.kernel.as_ref().map(|k| k.product.clone());
        differ(&self.label, &o.label) || differ(&self.size, &o.size) || registers || differ(&product(self), &product(o))
    }

    /// A card on a USB reader has no CID to be read: one in such a log is of another card.
    fn native(&self) -> bool {
        self.path.as_ref().is_none_or(|p| !p.starts_with("sd"))
    }

    /// Certainly the same card.
    pub fn same(&self, o: &Identity) -> bool {
        let equal = |a: &Option<String>, b: &Option<String>| a.is_some() && a == b;
        let registers = self.native() && o.native() && equal(&self.cid, &o.cid);
        let named = matches!((&self.named, &o.named), (Some(a), Some(b)) if a.same(b));
        !self.conflicts(o) && (equal(&self.label, &o.label) || registers || named || (self.size.is_some() && self.size == o.size))
    }

    /// Another maker, another name, another simulated card: in files of their own certainly another card.
    fn another(&self, o: &Identity) -> bool {
        let simulated = |i: &Identity| i.path.as_ref().is_some_and(|p| p.starts_with("sim:"));
        differ(&self.maker, &o.maker) || self.named_otherwise(o) || (simulated(self) && simulated(o) && self.path != o.path)
    }

    fn named_otherwise(&self, o: &Identity) -> bool {
        matches!((&self.named, &o.named), (Some(a), Some(b)) if !a.same(b))
    }

    /// Something that names the card is known of both, and the same.
    fn likely(&self, o: &Identity) -> bool {
        self.same(o) || (self.maker.is_some() && self.maker == o.maker && !self.another(o) && !self.conflicts(o))
    }

    /// Perhaps another card.
    pub fn hints(&self, o: &Identity) -> bool {
        differ(&self.maker, &o.maker) || differ(&self.path, &o.path) || differ(&self.kernel, &o.kernel) || self.named_otherwise(o)
    }

    /// Takes over what is known of the same card.
    pub fn learn(&mut self, o: &Identity) {
        let mut o = o.clone();
        // What names another card says nothing of this one; where it was plugged in stays.
        if self.named_otherwise(&o) {
            o = Identity { path: o.path, ..Identity::default() };
        }
        // A name says who made it.
        if self.named.is_some() {
            o.maker = None;
        }
        self.label = self.label.take().or(o.label);
        self.maker = self.maker.take().or(o.maker);
        self.path = self.path.take().or(o.path);
        self.size = self.size.or(o.size);
        self.cid = self.cid.take().or(o.cid);
        self.named = self.named.take().or(o.named);
        self.kernel = self.kernel.take().or(o.kernel);
    }

    /// Whether anything but the place it was plugged in, or its maker, is known of it.
    pub fn is_certain(&self) -> bool {
        self.label.is_some() || self.size.is_some() || self.cid.is_some() || self.named.is_some() || self.kernel.is_some()
    }

    /// For people.
    pub fn name(&self) -> Option<String> {
        let size = self.size.map(|s| format!("{s} bytes"));
        // The name says what the maker's word would.
        let maker = self.maker.filter(|_| self.named.is_none()).map(str::to_string);
        let named = self.named.as_ref().map(|n| n.name.clone());
        let kernel = self.kernel.as_ref().map(|k| format!("{} at {}", k.product, k.address));
        let parts: Vec<String> = [self.label.clone(), named, maker, self.path.clone(), kernel, size].into_iter().flatten().collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    }
}

fn differ<T: PartialEq>(a: &Option<T>, b: &Option<T>) -> bool {
    matches!((a, b), (Some(a), Some(b)) if a != b)
}

/// One card of a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Card {
    pub identity: Identity,
    pub tables: Tables,
}

impl Card {
    /// Whether pooling would mix measurements of one kind.
    fn shares_a_kind(&self, o: &Card) -> bool {
        let kinds = |t: &Tables| {
            [t.align.len(), t.open.len(), t.fat.len(), t.program.len(), t.interval.len(), t.scatter.len(), t.bench.len()].map(|n| n > 0)
        };
        kinds(&self.tables).iter().zip(kinds(&o.tables)).any(|(a, b)| *a && b)
    }

    /// The same card for all that can be told.
    fn joins(&self, o: &Card, alone: bool) -> bool {
        if self.identity.conflicts(&o.identity) {
            return false;
        }
        // Files given together are of one card unless they say otherwise; a reader that was plugged in again has a new path.
        self.identity.same(&o.identity)
            || (alone && !self.identity.another(&o.identity))
            || !self.identity.hints(&o.identity)
            || (!alone && !self.shares_a_kind(o))
    }

    fn take(&mut self, o: Card) {
        self.identity.learn(&o.identity);
        self.tables.join(o.tables);
    }
}

/// A text goes back to one of the last cards that it spoke of; nobody writes of more.
const RECENT: usize = 256;

/// Parts of one file, in their order, joined where they are one card.
pub fn join_parts(parts: Vec<Card>) -> Vec<Card> {
    let mut out: Vec<Card> = vec![];
    for p in parts {
        // Where only hints part the cards, the latest that fits is meant.
        let recent = out.len().saturating_sub(RECENT)..out.len();
        let same = recent.clone().find(|&i| out[i].identity.same(&p.identity));
        match same.or_else(|| recent.rev().find(|&i| out[i].joins(&p, false))) {
            Some(i) => out[i].take(p),
            None => out.push(p),
        }
    }
    out
}

/// Cards of several files: files of one card each are of the same one unless they say otherwise.
pub fn join_files(files: Vec<Vec<Card>>) -> Vec<Card> {
    let mut out: Vec<Card> = vec![];
    for cards in files {
        let alone = cards.len() == 1;
        let before = out.len();
        for c in cards {
            let mut fits = (0..before).filter(|&i| out[i].joins(&c, true));
            let only = fits.next().filter(|_| alone && fits.next().is_none());
            let same = (out.len().saturating_sub(RECENT)..out.len()).find(|&i| out[i].identity.same(&c.identity));
            // A file that names no card is of the one card there is, never of any of several.
            match same.or_else(|| (0..before).find(|&i| out[i].identity.likely(&c.identity))).or(only) {
                Some(i) => out[i].take(c),
                None => out.push(c),
            }
        }
    }
    out
}

/// The first words of a text; what parts them is neither letter nor digit.
pub fn first_words(text: &str, most: usize) -> Vec<&str> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty()).take(most).collect()
}

/// "Card 2", "=== SD card B: Kingston 4GB ===": a heading that numbers cards.
pub fn label(text: &str) -> Option<String> {
    if !["card", "Card", "CARD", "stick", "Stick", "ample", "icro"].iter().any(|w| text.contains(w)) {
        return None;
    }
    let low = text.to_ascii_lowercase();
    let words = first_words(&low, 10);
    if words.len() > 9 {
        return None;
    }
    let at = words.iter().position(|w| matches!(*w, "card" | "stick" | "sample" | "microsd" | "sdcard")).filter(|&i| i <= 1)?;
    // "sd card 2", "micro sd card no 2".
    if at == 1 && !matches!(words[0], "sd" | "micro" | "microsd" | "usb" | "memory" | "mmc" | "cf" | "test" | "tf") {
        return None;
    }
    let next = words.get(at + 1).copied().filter(|w| !matches!(*w, "no" | "nr" | "number")).or(words.get(at + 2).copied())?;
    let unit = |w: &str| matches!(w, "gb" | "mb" | "gib" | "mib" | "g" | "m" | "k" | "bit" | "aus" | "au" | "of" | "x" | "times");
    if words.iter().skip_while(|w| **w != next).nth(1).is_some_and(|w| unit(w)) {
        return None;
    }
    let numbered = next.len() <= 2 && next.chars().all(|c| c.is_ascii_digit());
    let lettered = next.len() == 1 && next.chars().all(|c| c.is_ascii_alphabetic()) && next != "a" && next != "i";
    // "card a" is a heading only where nothing but a name follows it.
    let first = next == "a" && (words.len() == at + 2 || text.trim_start_matches(['=', '-', '*', '#', ' ']).chars().any(|c| c == ':'));
    (numbered || lettered || first).then(|| format!("card {next}"))
}

/// The maker a line names, if it names one and no more.
pub fn maker(text: &str) -> Option<&'static str> {
    if text.len() > 200 {
        return None;
    }
    let low = text.to_ascii_lowercase();
    // An address names whoever sells, a target of our own a card that is not spoken of.
    let address = |w: &str| w.contains("://") || w.contains("sim:");
    let low = if address(&low) { low.split_whitespace().filter(|w| !address(w)).collect::<Vec<_>>().join(" ") } else { low };
    let mut named =
        low.split(|c: char| !c.is_alphanumeric()).filter(|w| w.len() >= 3).filter_map(|w| MAKERS.iter().find(|m| **m == w).copied());
    let one = named.next()?;
    named.all(|m| m == one).then_some(one)
}

/// Names of targets that only nandscope has.
const OWN: [&str; 3] = ["sim:", "exec:", "serial:"];

/// Is a target of our own named in this text?
pub fn names_own(text: &str) -> bool {
    OWN.iter().any(|o| text.contains(o))
}

/// "/dev/mmcblk0p9" is a part of "/dev/mmcblk0", "/dev/sdb1" of "/dev/sdb".
pub fn disk(path: &str) -> Option<String> {
    if let Some(card) = path.strip_prefix("sim:") {
        return (!card.is_empty()).then(|| format!("sim:{}", card.split('?').next().unwrap_or(card)));
    }
    if OWN.iter().any(|o| path.starts_with(o)) {
        return Some(path.to_string());
    }
    let rest = path.strip_prefix("/dev/")?;
    let name: String = rest.trim_end_matches([':', ',', ';', ')', '.', '"', '\'']).to_string();
    let name = name.rsplit('/').next().filter(|n| n.len() >= 2)?;
    if matches!(name, "null" | "zero" | "random" | "urandom" | "stdout" | "stderr") || name.starts_with("tty") {
        return None;
    }
    let without = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let whole = match without.strip_suffix('p') {
        Some(w) if without.len() < name.len() && w.ends_with(|c: char| c.is_ascii_digit()) => w,
        _ if without.len() < name.len() && (name.starts_with("sd") || name.starts_with("hd")) => without,
        _ => name,
    };
    Some(whole.to_string())
}

/// The first device a text names.
pub fn path(text: &str) -> Option<String> {
    text.split(|c: char| c.is_whitespace() || matches!(c, '=' | '(' | '«' | '"' | '\'')).find_map(disk)
}

/// A CID anywhere in a line: "cid:0353445355...".
pub fn cid(text: &str) -> Option<String> {
    if !["cid", "CID", "Cid"].iter().any(|w| text.contains(w)) {
        return None;
    }
    let low = text.to_ascii_lowercase();
    let at = low.find("cid")?;
    let hex = low[at..].split(|c: char| !c.is_ascii_hexdigit()).find(|w| w.len() == 32)?;
    Some(hex.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_names_a_card() {
        for (t, want) in [
            ("==== Card 2 ====", Some("card 2")),
            ("SD card #3 (Kingston 4GB)", Some("card 3")),
            ("Card B:", Some("card b")),
            ("Card A: no name", Some("card a")),
            ("card a bit slow", None),
            ("the card I bought 2 weeks ago", None),
            ("4 cards", None),
            ("SD Card Association", None),
            ("SD card 8 GB", None),
        ] {
            assert_eq!(label(t).as_deref(), want, "{t}");
        }
        assert_eq!(maker("The Sandisk one has 20 AUs."), Some("sandisk"));
        assert_eq!(maker("Sandisk against Toshiba"), None);
        for (p, want) in [
            ("/dev/block/mmcblk0p9", "mmcblk0"),
            ("/dev/sdb1", "sdb"),
            ("/dev/sdb", "sdb"),
            ("/dev/mmcblk1", "mmcblk1"),
            ("/dev/nvme0n1p2", "nvme0n1"),
            ("/dev/loop0", "loop0"),
        ] {
            assert_eq!(disk(p).as_deref(), Some(want), "{p}");
        }
        assert_eq!(path("of=/dev/null"), None);
        for (text, want) in [
            ("[ 3.2] mmcblk0: mmc0:b368 SU08G 7.40 GiB", Some("SU08G 7.40 GiB")),
            ("mmcblk1: mmc1:0001 M MC 3.64 GiB (ro)", Some("M MC 3.64 GiB")),
            ("mmcblk1boot0: mmc1:0001 MMC04G partition 1 2.00 MiB", None),
            ("mmcblk0: p1 p2", None),
        ] {
            assert_eq!(Kernel::line(text).map(|k| k.1.product).as_deref(), want, "{text}");
        }
        assert_eq!(cid("man:0x82 cid:824a544e43617264204000081100e200 csd:40").as_deref(), Some("824a544e43617264204000081100e200"));
    }
}

//! Which card a part of a log belongs to: one paste may hold several.
//!
//! Registers, sizes and numbered headings part cards for certain. A device path or a maker's name in the text only hints:
//! a reader that was plugged in again has a new path, and prose names other cards. A hint counts only where both sides hold
//! a test of one kind, because then the parts would be pooled.

use super::Tables;

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
}

/// Makers whose cards fill the lists, as they are written there.
const MAKERS: [&str; 26] = [
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
];

impl Identity {
    /// Certainly not the same card: something hard is known of both and differs.
    pub fn conflicts(&self, o: &Identity) -> bool {
        let registers = self.native() && o.native() && differ(&self.cid, &o.cid);
        differ(&self.label, &o.label) || differ(&self.size, &o.size) || registers
    }

    /// A card on a USB reader has no CID to be read: one in such a log is of another card.
    fn native(&self) -> bool {
        self.path.as_ref().is_none_or(|p| !p.starts_with("sd"))
    }

    /// Certainly the same card.
    pub fn same(&self, o: &Identity) -> bool {
        let equal = |a: &Option<String>, b: &Option<String>| a.is_some() && a == b;
        let registers = self.native() && o.native() && equal(&self.cid, &o.cid);
        !self.conflicts(o) && (equal(&self.label, &o.label) || registers || (self.size.is_some() && self.size == o.size))
    }

    /// Perhaps another card.
    pub fn hints(&self, o: &Identity) -> bool {
        differ(&self.maker, &o.maker) || differ(&self.path, &o.path)
    }

    /// Takes over what is known of the same card.
    pub fn learn(&mut self, o: &Identity) {
        let o = o.clone();
        self.label = self.label.take().or(o.label);
        self.maker = self.maker.take().or(o.maker);
        self.path = self.path.take().or(o.path);
        self.size = self.size.or(o.size);
        self.cid = self.cid.take().or(o.cid);
    }

    /// For people.
    pub fn name(&self) -> Option<String> {
        let size = self.size.map(|s| format!("{s} bytes"));
        let parts: Vec<String> =
            [self.label.clone(), self.maker.map(str::to_string), self.path.clone(), size].into_iter().flatten().collect();
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
        // Files given together are of one card unless they say otherwise.
        self.identity.same(&o.identity) || alone || !self.identity.hints(&o.identity) || !self.shares_a_kind(o)
    }

    fn take(&mut self, o: Card) {
        self.identity.learn(&o.identity);
        self.tables.join(o.tables);
    }
}

/// Parts of one file, in their order, joined where they are one card.
pub fn join_parts(parts: Vec<Card>) -> Vec<Card> {
    let mut out: Vec<Card> = vec![];
    for p in parts {
        // Where only hints part the cards, the latest that fits is meant.
        let same = out.iter().position(|c| c.identity.same(&p.identity));
        match same.or_else(|| out.iter().rposition(|c| c.joins(&p, false))) {
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
        for c in cards {
            let same = out.iter().position(|o| o.identity.same(&c.identity));
            match same.or_else(|| out.iter().position(|o| alone && o.joins(&c, true))) {
                Some(i) => out[i].take(c),
                None => out.push(c),
            }
        }
    }
    out
}

/// "Card 2", "=== SD card B: Kingston 4GB ===": a heading that numbers cards.
pub fn label(text: &str) -> Option<String> {
    let plain: String = text.chars().map(|c| if c.is_alphanumeric() { c.to_ascii_lowercase() } else { ' ' }).collect();
    let words: Vec<&str> = plain.split_whitespace().collect();
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
    let mut named = MAKERS.into_iter().filter(|m| {
        low.match_indices(m).any(|(i, _)| {
            let before = low[..i].chars().next_back().is_none_or(|c| !c.is_alphanumeric());
            before && low[i + m.len()..].chars().next().is_none_or(|c| !c.is_alphanumeric())
        })
    });
    let one = named.next()?;
    named.next().is_none().then_some(one)
}

/// "/dev/mmcblk0p9" is a part of "/dev/mmcblk0", "/dev/sdb1" of "/dev/sdb".
pub fn disk(path: &str) -> Option<String> {
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
        assert_eq!(cid("man:0x82 cid:824a544e43617264204000081100e200 csd:40").as_deref(), Some("824a544e43617264204000081100e200"));
    }
}

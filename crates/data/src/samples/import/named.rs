//! Cards and hosts as running text names them: "2GB SanDisk class 2 card", "128MB SDC", "ATmega64 @9.2MHz".

use serde::Serialize;

/// A card named by its capacity.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Named {
    /// As it stands in the text.
    pub name: String,
    /// Bytes of 1000, as on the label.
    pub capacity: u64,
    /// What tells it from others of the same capacity, in lower case.
    pub words: Vec<String>,
}

impl Named {
    /// Texts shorten names and mistake classes: one word that tells the card apart is enough.
    pub fn same(&self, o: &Named) -> bool {
        self.capacity == o.capacity && (self.words.iter().any(|w| o.words.contains(w)) || self.words.is_empty() && o.words.is_empty())
    }
}

/// Words that call something a card.
const CARDS: [&str; 17] = [
    "card",
    "cards",
    "sd",
    "sdc",
    "sdhc",
    "sdxc",
    "mmc",
    "emmc",
    "microsd",
    "microsdhc",
    "microsdxc",
    "tf",
    "cf",
    "stick",
    "drive",
    "sdcard",
    "compactflash",
];
/// Words that every card may carry.
const COMMON: [&str; 25] = [
    "a",
    "an",
    "the",
    "my",
    "new",
    "old",
    "class",
    "industrial",
    "grade",
    "secure",
    "digital",
    "slc",
    "mlc",
    "tlc",
    "memory",
    "flash",
    "high",
    "speed",
    "micro",
    "u1",
    "u3",
    "card",
    "cards",
    "sd",
    "stick",
];

fn starts_number(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_digit())
}

/// "4GB", "64 GB" in two words, "128MB": bytes of 1000.
fn capacity(word: &str) -> Option<u64> {
    // Most words are none, and this is asked of each.
    if !starts_number(word) {
        return None;
    }
    let low = word.to_ascii_lowercase();
    let digits = low.bytes().take_while(u8::is_ascii_digit).count();
    let n: u64 = low[..digits].parse().ok().filter(|n| (1..=4096).contains(n))?;
    let factor = match &low[digits..] {
        "mb" => 1_000_000,
        "gb" | "gib" => 1_000_000_000,
        "tb" => 1_000_000_000_000,
        _ => return None,
    };
    Some(n * factor)
}

/// The one card that a text names by its capacity; `None` where it names none, or several.
pub fn named(text: &str) -> Option<Named> {
    if text.len() > 400 || !text.bytes().any(|b| matches!(b, b'B' | b'b')) || !text.bytes().any(|b| b.is_ascii_digit()) {
        return None;
    }
    let words: Vec<&str> = text
        .split_whitespace()
        .filter(|w| !w.contains("://"))
        .map(|w| w.trim_matches(|c: char| !c.is_alphanumeric()))
        .filter(|w| !w.is_empty())
        .collect();
    let mut found: Option<Named> = None;
    let mut i = 0;
    while i < words.len() {
        let (bytes, len) = match capacity(words[i]) {
            Some(b) => (b, 1),
            // "16 GB".
            None => match words.get(i + 1).filter(|_| starts_number(words[i])).and_then(|u| capacity(&format!("{}{u}", words[i]))) {
                Some(b) => (b, 2),
                None => {
                    i += 1;
                    continue;
                }
            },
        };
        if let Some(n) = one(&words, i, len, bytes) {
            if found.as_ref().is_some_and(|f| !f.same(&n)) {
                return None;
            }
            found.get_or_insert(n);
        }
        i += len;
    }
    found
}

/// The card whose capacity stands at `at`: up to the word that calls it a card, no more than six words on.
fn one(words: &[&str], at: usize, len: usize, capacity: u64) -> Option<Named> {
    let low = |w: &str| w.to_ascii_lowercase();
    let makes = |w: &str| super::card::is_maker(&low(w)) || matches!(low(w).as_str(), "amazon" | "amazonbasics");
    let behind = &words[at + len..words.len().min(at + len + 7)];
    let end = behind.iter().position(|w| CARDS.contains(&low(w).as_str()));
    // "ATP 1GB": the maker may stand before.
    let names = |w: &str| capital(w) && !COMMON.contains(&low(w).as_str());
    let first = if at > 0 && (makes(words[at - 1]) || end.is_some() && names(words[at - 1]) && at == 1) { at - 1 } else { at };
    let titled = at == 0 && words.len() <= len + 4 && behind.first().is_some_and(|w| capital(w));
    let last = match end {
        // Between the size and "card" stand names, not a sentence.
        Some(e) if behind[..e].iter().all(|w| !sentence(&low(w))) => at + len + e,
        _ if titled => words.len() - 1,
        _ if behind.first().is_some_and(|w| makes(w)) => at + len,
        _ if first < at => at + len - 1,
        _ => return None,
    };
    // The word "card" itself is no name; "SDC" is.
    let shown = if low(words[last]).starts_with("card") { last } else { last + 1 };
    let all = &words[first..shown.max(at + len).min(words.len())];
    let tells = |i: usize, w: &str| {
        let w = low(w);
        let inside = i + first >= at && i + first < at + len;
        // "class 10".
        let class = i > 0 && low(all[i - 1]) == "class";
        (!inside && !class && !COMMON.contains(&w.as_str())).then_some(w)
    };
    let names: Vec<String> = all.iter().enumerate().filter_map(|(i, w)| tells(i, w)).collect();
    Some(Named { name: all.join(" "), capacity, words: names })
}

fn capital(w: &str) -> bool {
    w.starts_with(|c: char| c.is_uppercase()) && !w.ends_with("B/s")
}

/// Words that make a sentence of what stands between a size and "card".
fn sentence(w: &str) -> bool {
    matches!(
        w,
        "of" | "in"
            | "on"
            | "is"
            | "was"
            | "and"
            | "or"
            | "with"
            | "for"
            | "to"
            | "the"
            | "a"
            | "my"
            | "this"
            | "that"
            | "boundary"
            | "unit"
            | "file"
            | "files"
            | "from"
            | "at"
            | "free"
            | "block"
            | "blocks"
            | "erase"
            | "write"
            | "read"
            | "than"
            | "partition"
    )
}

/// The machine a text names: "ATmega64 @9.2MHz", "Arduino Uno", "Pico (rp2040)".
pub fn host(text: &str) -> Option<String> {
    const HOSTS: [&str; 12] =
        ["arduino", "atmega", "teensy", "esp32", "esp8266", "rp2040", "rp2350", "stm32", "ipaq", "raspberry", "beaglebone", "pico"];
    const MODELS: [&str; 6] = ["uno", "mega", "due", "nano", "zero", "leonardo"];
    let mut words = text.split_whitespace().map(|w| w.trim_matches(|c: char| !c.is_alphanumeric() && c != '@'));
    let begins = |w: &str, h: &str| w.as_bytes().get(..h.len()).is_some_and(|b| b.eq_ignore_ascii_case(h.as_bytes()));
    let name = words.find(|w| w.len() >= 4 && HOSTS.iter().any(|h| begins(w, h)))?;
    let next = words.next().unwrap_or("");
    let low = next.to_ascii_lowercase();
    let more = next.starts_with('@')
        || MODELS.contains(&low.as_str())
        || low.starts_with("pi")
        || low.starts_with("rp2")
        || name.eq_ignore_ascii_case("ipaq");
    Some(if more && !next.is_empty() { format!("{name} {next}") } else { name.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cards_in_running_text() {
        for (text, name) in [
            ("1GB Wintec card", Some("1GB Wintec")),
            ("4GB Amazon class 10 card http://www.amazon.com/x-4GB", Some("4GB Amazon class 10")),
            (
                "An ATP 1GB Secure Digital SLC Industrial Grade card for $5.75 when I bought it.",
                Some("ATP 1GB Secure Digital SLC Industrial Grade"),
            ),
            ("Here is the result of running bench on a 64GB SDXC card.", Some("64GB SDXC")),
            ("128MB SDC", Some("128MB SDC")),
            ("Swissbit 1GB card", Some("Swissbit 1GB")),
            ("with a 256MB SanDisk CF card in the expansion pack", Some("256MB SanDisk CF")),
            ("4GB Amazon class 4", Some("4GB Amazon class 4")),
            ("new 16 GB class 10 card here", Some("16 GB class 10")),
            ("value. This indicates that whatever the memory card does on a 4 MB", None),
            ("boundary does not happen at other boundaries", None),
            ("They are both 4MB aligned.", None),
            ("(mmcblk0p6 is only 40mb, p9 is 314 mb)", None),
            ("1GB Wintec: 278.40 KB/sec 1GB Swissbit: Write 265.10 KB/sec", None),
            ("the last block of 128 MB and the card", None),
        ] {
            assert_eq!(named(text).map(|n| n.name).as_deref(), name, "{text}");
        }
        let of = |t: &str| named(t).unwrap();
        assert!(of("4GB Amazon class 4 card").same(&of("4GB Amazon class 10 card")));
        assert!(of("2GB Sandisk class 2 card").same(&of("a 2GB SanDisk card")));
        assert!(!of("1GB Wintec card").same(&of("1GB Swissbit card")) && !of("128MB SDC").same(&of("128MB MMC")));
    }

    #[test]
    fn hosts_in_running_text() {
        assert_eq!(host("a cheap 8 bit MCU (ATmega64 @9.2MHz) on the assumption").as_deref(), Some("ATmega64 @9.2MHz"));
        assert_eq!(host("poor performance with Arduino SD libraries").as_deref(), Some("Arduino"));
        assert_eq!(host("Pico (rp2040) board").as_deref(), Some("Pico rp2040"));
        assert_eq!(host("nothing here"), None);
    }
}

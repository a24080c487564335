//! One name for a host, however a log, a bench or a page writes it: a rate is of the card and of the host, so that figures are
//! compared within one host only (C6).

/// Names of hosts, and the words by which each is known.
const KNOWN: [(&str, &[&str]); 5] = [
    ("Arduino Uno (AVR, 16 MHz)", &["arduino uno", "avr-16mhz", "atmega328", "atmega328p"]),
    ("ATmega64 (9.2 MHz)", &["atmega64"]),
    ("Pico 2 (rp2350)", &["rp2350", "pico 2", "pico2"]),
    ("Pico (rp2040)", &["rp2040", "raspberry pi pico"]),
    ("FAT in-process", &["in-process"]),
];

/// Whether `word` stands in `text` by itself; both in small letters.
fn has(text: &str, word: &str) -> bool {
    let apart = |c: Option<char>| !c.is_some_and(char::is_alphanumeric);
    text.match_indices(word).any(|(i, _)| apart(text[..i].chars().next_back()) && apart(text[i + word.len()..].chars().next()))
}

/// The known host that a text names.
pub fn known(text: &str) -> Option<&'static str> {
    let low = text.to_lowercase();
    KNOWN.iter().find(|(_, words)| words.iter().any(|w| has(&low, w))).map(|k| k.0)
}

/// The name under which figures of this host are compared. A real card behind a file system in this program is of its machine.
pub fn class(host: &str) -> String {
    let machine = host.contains("Linux");
    match known(host) {
        Some(k) if !machine => k.into(),
        _ => host.split(", clusters of").next().unwrap_or(host).trim().into(),
    }
}

/// The host that a log names in a short line of its own or in its header; the second is what it says where it names several.
pub fn of_log(text: &str) -> (Option<String>, Option<String>) {
    let said = |key: &str| {
        let lines = text.lines().filter_map(|l| l.strip_prefix('#'));
        lines.filter_map(|l| l.trim().strip_prefix(key)?.strip_prefix(':')).map(|v| v.trim().to_string()).find(|v| !v.is_empty())
    };
    if let Some(host) = said("host") {
        return (Some(host), None);
    }
    // Longer lines are prose, which speaks of hosts without being measured there.
    let short = text.lines().map(str::trim).filter(|l| l.len() <= 60 && !l.starts_with('#') && known(l).is_some());
    let mut found: Vec<&str> = vec![];
    for l in short {
        if !found.iter().any(|f| known(f) == known(l)) {
            found.push(l);
        }
    }
    let spi = text.lines().any(|l| l.trim() == "SPI configured");
    match found[..] {
        [] => (said("command").filter(|c| known(c).is_some()).and_then(|c| known(&c).map(str::to_string)), None),
        [one] => (Some(format!("{one}{}", if spi { ", SPI" } else { "" })), None),
        _ => (None, Some(format!("the log names several hosts ({}), so that none is kept; add it with --host", found.join(", ")))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_host_has_many_names() {
        for (host, name) in [
            ("Arduino Uno, SPI, SdFat", "Arduino Uno (AVR, 16 MHz)"),
            ("avr-16mhz-spi, clusters of 16 KiB", "Arduino Uno (AVR, 16 MHz)"),
            ("avr-16mhz-spi, clusters of 32 KiB", "Arduino Uno (AVR, 16 MHz)"),
            ("ATmega64 at 9.2 MHz, SPI", "ATmega64 (9.2 MHz)"),
            ("atmega64-9mhz-spi", "ATmega64 (9.2 MHz)"),
            ("ATmega644 at 20 MHz", "ATmega644 at 20 MHz"),
            ("Pico (rp2040), SPI", "Pico (rp2040)"),
            ("rp2040-spi, clusters of 8 KiB", "Pico (rp2040)"),
            ("Pico 2 (rp2350)", "Pico 2 (rp2350)"),
            ("FAT16 in-process, clusters of 4 KiB", "FAT in-process"),
            ("FAT32 in-process, aarch64, Linux 6.1.0, clusters of 4 KiB", "FAT32 in-process, aarch64, Linux 6.1.0"),
            ("by the kernel's ext4, x86_64, Linux 6.1.0", "by the kernel's ext4, x86_64, Linux 6.1.0"),
        ] {
            assert_eq!(class(host), name, "{host}");
        }
    }

    #[test]
    fn a_log_says_where_it_was_measured() {
        let of = |t: &str| of_log(t).0.unwrap_or_default();
        assert_eq!(of(include_str!("../../tests/figures/record-bench.txt")), "Pico (rp2040), SPI");
        assert_eq!(class(&of("Pico 2 (rp2350)\nSPI configured\nBUF_SIZE = 512 bytes\n")), "Pico 2 (rp2350)");
        assert_eq!(of("# host: bench 7, reader B\nPico (rp2040)\n"), "bench 7, reader B");
        assert_eq!(of("BUF_SIZE = 512 bytes\n"), "");
        let (host, note) = of_log("Pico (rp2040)\n80,1,1,1\nPico 2 (rp2350)\n");
        assert!(host.is_none() && note.unwrap().contains("several hosts"));
    }
}

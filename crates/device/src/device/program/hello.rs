//! Names of targets behind a program, and the line with which such a device begins.

use crate::units::{MIB, SECTOR};

/// What a device says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// Bytes.
    pub size: u64,
    /// Bytes of a logical sector.
    pub sector: u64,
    /// What was written can be read back, as far as it is a pattern.
    pub content: bool,
    /// Writes may lie in a volatile cache until a flush.
    pub write_cache: bool,
    /// Requests that may be sent before the first answer came.
    pub ahead: usize,
    /// A real card, which a write changes for good.
    pub real: Option<bool>,
    /// Longer requests become several commands, in bytes.
    pub max_request: Option<u64>,
    /// Longest wait for an answer, in seconds.
    pub timeout: Option<u64>,
    /// Its name.
    pub name: Option<String>,
}

/// How every first line begins.
pub const BEGIN: &str = "nandscope-device ";
/// Bytes of the largest card that a register can declare (SDUC), and of the largest logical sectors of a Linux disk.
const LARGEST: u64 = 128 << 40;
const LARGEST_SECTOR: u64 = 64 << 10;
/// More than this is never sent ahead.
const MOST_AHEAD: u64 = 64;

impl Hello {
    /// Reads the first line.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(line: &str) -> Result<Hello, String> {
        let shown = || line.chars().take(80).collect::<String>();
        let rest = line.strip_prefix(BEGIN).ok_or_else(|| {
            format!("its first line is {:?}; it begins 'nandscope-device 1 size=BYTES sector=BYTES' (docs/exec.md)", shown())
        })?;
        let (version, rest) = rest.split_once(' ').unwrap_or((rest, ""));
        if version != "1" {
            return Err(format!("it speaks version {version:?} of the protocol; this nandscope knows version 1"));
        }
        let (rest, name) = match rest.split_once("name=") {
            // A terminal would obey what it is shown.
            Some((before, name)) if before.is_empty() || before.ends_with(' ') => {
                (before, Some(name.chars().filter(|c| !c.is_control()).collect::<String>().trim().to_string()))
            }
            _ => (rest, None),
        };
        let mut hello = Hello {
            size: 0,
            sector: SECTOR,
            content: false,
            write_cache: false,
            ahead: 1,
            real: None,
            max_request: None,
            timeout: None,
            name: name.filter(|n| !n.is_empty()),
        };
        for word in rest.split_ascii_whitespace() {
            let (key, value) = word.split_once('=').ok_or_else(|| format!("its first line holds {word:?}, which is no KEY=VALUE"))?;
            let number = || value.parse::<u64>().map_err(|_| format!("its first line says {word:?}, which is no whole number"));
            let yes = || match value {
                "yes" => Ok(true),
                "no" => Ok(false),
                _ => Err(format!("its first line says {word:?}; write {key}=yes or {key}=no")),
            };
            let within = |least: u64, most: u64| match number()? {
                n if (least..=most).contains(&n) => Ok(n),
                _ => Err(format!("its first line says {word:?}; {key} is a number from {least} to {most} (docs/exec.md)")),
            };
            match key {
                "size" => hello.size = number()?,
                "sector" => hello.sector = number()?,
                "content" => hello.content = yes()?,
                "write_cache" => hello.write_cache = yes()?,
                "real" => hello.real = Some(yes()?),
                "ahead" => hello.ahead = within(1, MOST_AHEAD)? as usize,
                "max_request" => hello.max_request = Some(within(SECTOR, LARGEST)?),
                "timeout" => hello.timeout = Some(within(1, 3600)?),
                // A later version may say more of itself.
                _ => {}
            }
        }
        let Hello { size, sector, .. } = hello;
        if !sector.is_power_of_two() || !(SECTOR..=LARGEST_SECTOR).contains(&sector) {
            return Err(format!("its first line says sector={sector}; a sector is a power of two from {SECTOR} to {LARGEST_SECTOR} bytes"));
        }
        if !(MIB..=LARGEST).contains(&size) || !size.is_multiple_of(sector) {
            return Err(format!(
                "its first line says size={size}; it must be a multiple of the {sector} byte sector, at least {MIB} and at most {LARGEST}"
            ));
        }
        Ok(hello)
    }
}

/// Splits a command line at blanks; what stands in quotes, single or double, stays together.
///
/// # Errors
/// A quote has no end.
pub fn words(text: &str) -> Result<Vec<String>, String> {
    let (mut out, mut word, mut quote) = (vec![], None::<String>, None);
    for c in text.chars() {
        match (quote, c) {
            (Some(q), c) if c == q => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, c) if c.is_whitespace() => out.extend(word.take()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    match quote {
        Some(q) => Err(format!("the quote {q} in the command has no end")),
        None => {
            out.extend(word);
            Ok(out)
        }
    }
}

/// Is this the name of a program or a port rather than of a file or a device?
pub fn is_name(target: &str) -> bool {
    target.starts_with("exec:") || target.starts_with("serial:")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_lines_are_read() {
        let h = Hello::parse("nandscope-device 1 size=1048576 sector=4096 content=yes ahead=64 real=yes colour=red name=A card = mine")
            .unwrap();
        assert_eq!((h.size, h.sector, h.content, h.ahead, h.real), (MIB, 4096, true, 64, Some(true)));
        assert_eq!(h.name.as_deref(), Some("A card = mine"));
        assert_eq!(Hello::parse("nandscope-device 1 size=2097152 name=").unwrap().name, None);
        assert_eq!(Hello::parse("nandscope-device 1 size=2097152 name=\x1b[31mred\x07").unwrap().name.as_deref(), Some("[31mred"));
        for (line, says) in [
            ("hello", "first line"),
            ("nandscope-device 2 size=1048576", "version"),
            ("nandscope-device 1 size=1000000", "size=1000000"),
            ("nandscope-device 1 size=1048576 sector=513", "power of two"),
            ("nandscope-device 1 size=1073741824 sector=1073741824", "power of two from 512 to 65536"),
            ("nandscope-device 1 size=18446744073709551104", "at most 140737488355328"),
            ("nandscope-device 1 size=-1", "whole number"),
            ("nandscope-device 1 size=1048576 content=maybe", "content=yes or content=no"),
            ("nandscope-device 1 size=1048576 ahead=65", "ahead is a number from 1 to 64"),
            ("nandscope-device 1 size=1048576 max_request=0", "max_request is a number from 512"),
            ("nandscope-device 1 size=1048576 timeout=0", "timeout is a number from 1 to 3600"),
            ("nandscope-device 1 size=1048576 quick", "KEY=VALUE"),
            ("nandscope-device 1", "size=0"),
        ] {
            let e = Hello::parse(line).unwrap_err();
            assert!(e.contains(says), "{line}: {e}");
        }
    }

    #[test]
    fn commands_are_split_at_blanks_outside_quotes() {
        assert_eq!(words("python3 'my card.py'  a\"b c\"d ''").unwrap(), ["python3", "my card.py", "ab cd", ""]);
        assert!(words("a 'b").unwrap_err().contains("no end"));
        assert!(words("  ").unwrap().is_empty());
    }
}

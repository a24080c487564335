//! Serial numbers: where they stand, and how they are taken out of what is shared.

use serde_json::Value;

/// Stands where a serial number stood.
const MASK: &str = "(serial left out)";
/// A name below this directory is made of vendor, model and serial number.
const BY_ID: &str = "/dev/disk/by-id/";

/// Serial numbers that a piece of JSON names, as text.
pub fn in_json(v: &Value) -> Vec<String> {
    match v {
        Value::Object(o) => {
            let own = o.get("serial").and_then(|s| match s {
                Value::String(s) => Some(s.clone()),
                Value::Number(n) => Some(n.as_u64().map_or_else(|| n.to_string(), |n| format!("{n:#010x}"))),
                _ => None,
            });
            own.into_iter().chain(o.values().flat_map(in_json)).collect()
        }
        Value::Array(a) => a.iter().flat_map(in_json).collect(),
        _ => vec![],
    }
}

/// Serial numbers in a log, by the word before them: `Serial number: 0X7C2A1B3D`, `ID_SERIAL_SHORT=...`, `iSerial 3 0123456789`.
pub fn in_text(text: &str) -> Vec<String> {
    text.lines().filter_map(in_line).collect()
}

fn in_line(line: &str) -> Option<String> {
    let lower = line.to_ascii_lowercase();
    let at = lower.find("serial")?;
    let mut rest = line[at + "serial".len()..].trim_start();
    for word in ["_short", "_number", "number", "no.", "no", "(psn)"] {
        if rest.to_ascii_lowercase().starts_with(word) {
            rest = rest[word.len()..].trim_start();
        }
    }
    let value = match rest.strip_prefix([':', '=']) {
        Some(value) => value.trim_start(),
        // lsusb gives the number of the string first.
        None if at > 0 && lower[..at].ends_with('i') => rest.split_once(' ')?.1.trim_start(),
        None if lower.trim_start().starts_with("serial") => rest,
        None => return None,
    };
    let token = value.split(|c: char| c.is_whitespace() || [',', ';', '"', '\''].contains(&c)).find(|t| !t.is_empty())?;
    (token.len() >= 4 && token.chars().any(|c| c.is_ascii_digit())).then(|| token.to_string())
}

/// Takes the serial numbers out of a text, in any case of letters, with and without "0x", and names below /dev/disk/by-id.
pub fn mask(text: &str, serials: &[String]) -> String {
    let mut out = text.to_string();
    for s in serials.iter().filter(|s| s.trim().len() >= 4) {
        out = replace(&out, s, MASK);
        // Inside a register the digits stand by themselves.
        if let Some(digits) = s.strip_prefix("0x").or(s.strip_prefix("0X")).filter(|d| d.len() >= 8) {
            out = replace(&out, digits, &"x".repeat(digits.len()));
        }
    }
    let mut done = String::new();
    let mut rest = out.as_str();
    while let Some(at) = rest.find(BY_ID) {
        let (before, from) = rest.split_at(at + BY_ID.len());
        let end = from.find(|c: char| c.is_whitespace() || ['"', '\'', ',', ';', ')'].contains(&c)).unwrap_or(from.len());
        // The partition may stay.
        let part = from[..end].rfind("-part").map_or("", |p| &from[p..end]);
        done.push_str(before);
        done.push_str("...");
        done.push_str(part);
        rest = &from[end..];
    }
    done + rest
}

/// `str::replace` that takes small and capital ASCII letters for the same.
fn replace(text: &str, what: &str, with: &str) -> String {
    let (lower, what) = (text.to_ascii_lowercase(), what.to_ascii_lowercase());
    let mut out = String::new();
    let mut from = 0;
    for (at, _) in lower.match_indices(&what) {
        out.push_str(&text[from..at]);
        out.push_str(with);
        from = at + what.len();
    }
    out + &text[from..]
}

/// Sets every `serial` to null and masks all other texts.
pub fn hide(v: &mut Value, serials: &[String]) {
    match v {
        Value::Object(o) => {
            for (key, value) in o.iter_mut() {
                if key == "serial" { *value = Value::Null } else { hide(value, serials) }
            }
        }
        Value::Array(a) => a.iter_mut().for_each(|x| hide(x, serials)),
        Value::String(s) => {
            let masked = mask(s, serials);
            if masked != *s {
                *s = masked;
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serial_numbers_are_found_by_their_names() {
        for (line, serial) in [
            ("Serial number: 0X7C2A1B3D", "0X7C2A1B3D"),
            ("serial: 0x35338909", "0x35338909"),
            ("serial=0x35338909", "0x35338909"),
            ("E: ID_SERIAL_SHORT=60A44C413A", "60A44C413A"),
            ("  iSerial                 3 0123456789ABC", "0123456789ABC"),
            ("serial (PSN): 0xcf05a100", "0xcf05a100"),
        ] {
            assert_eq!(in_text(line), [serial], "{line}");
        }
        for none in ["serial port at 115200 baud", "write 4096 in serial order", "Serial number: none", "a serial killer app 12345"] {
            assert_eq!(in_text(none), Vec::<String>::new(), "{none}");
        }
    }

    #[test]
    fn masks_reach_registers_paths_and_other_letters() {
        let all = ["0xcf05a100".to_string()];
        let masked = mask("cid 0353445355303847 80CF05A100 00c7, card 0XCF05A100 at /dev/disk/by-id/mmc-SU08G_0xdeadbeef-part2, ok", &all);
        assert_eq!(masked, "cid 0353445355303847 80xxxxxxxx 00c7, card (serial left out) at /dev/disk/by-id/...-part2, ok");
        assert_eq!(mask("nothing here", &all), "nothing here");
        assert_eq!(mask("12 and 12", &["12".to_string()]), "12 and 12", "too short to be told from any other number");
    }
}

//! What sdmon prints of a card's health block. It is often no valid JSON: units outside of quotes, a comma too many, several readings in one file.

use super::Benchmark;
use crate::samples::metric::Metric;

pub fn is_text(text: &str) -> bool {
    let says = |key: &str| text.lines().any(|l| l.trim_start().starts_with(key));
    ["\"device\":", "\"version\":", "\"date\":"].into_iter().all(says) && text.contains("\"/dev/mmc") && !text.contains("\"schema\"")
}

/// Its keys without blanks, in small letters, and what they are here.
const FIELDS: [(&[&str], &str, &str); 15] = [
    (&["healthstatuspercentused"], "health used", "%"),
    (&["enduranceremainlifepercent", "remainingcardlife", "remaininglife", "remaininglifetimepercent"], "life remaining", "%"),
    (&["goodblockratepercent"], "good blocks", "%"),
    (&["minerasecount", "minimumerasecnt", "dataareaminimumerasecnt"], "least erases of a block", "erases"),
    (&["maxerasecount", "maximumerasecnt", "dataareamaximumerasecnt", "userareamaxcyclecnt"], "most erases of a block", "erases"),
    (&["avgerasecount", "averageerasecnt", "dataareaaverageerasecnt", "userareaaveragecyclecnt"], "mean erases of a block", "erases"),
    (&["totalerasecount", "dataareatotalerasecnt", "userareatotalcyclecnt"], "erases in all", "erases"),
    (&["spareblockcount", "runtimespareblockscnt", "spareblockcnt", "userareaspareblockscnt"], "spare blocks", "blocks"),
    (&["initialbadblockcount", "factorybadblockcnt"], "bad blocks from the start", "blocks"),
    (&["laterbadblockcount", "newbadblockscnt", "grownbadblockcnt", "userarearuntimebadblockscnt"], "bad blocks since", "blocks"),
    // It misspells one of them.
    (&["powerupcount", "powercyclecnt", "powercuclecnt", "powerontimes"], "power cycles", "times"),
    (&["abnormalpoweroffcount", "abnormalpowerloss"], "power losses", "times"),
    (&["totalrefreshcount", "userarearefreshcnt"], "blocks refreshed", "times"),
    (&["totalwritecrccnt"], "write checksum errors", "times"),
    (&["interfacecrccnt"], "checksum errors of the interface", "times"),
];

/// All `"KEY": VALUE`, in order; a value ends with its line, its brackets, or before the next key.
fn fields(text: &str) -> Vec<(String, &str)> {
    let mut out = vec![];
    let mut rest = text;
    while let Some((_, from)) = rest.split_once('"') {
        let Some((key, tail)) = from.split_once('"').filter(|(key, _)| !key.contains('\n')) else {
            rest = from;
            continue;
        };
        rest = tail;
        let Some(value) = tail.trim_start_matches(' ').strip_prefix(':') else { continue };
        let value = value.trim_start_matches(' ');
        let line = value.find('\n').unwrap_or(value.len());
        let end = match value.starts_with('[') {
            true => value.find(']').map_or(line, |i| i + 1),
            false => value.find(", \"").unwrap_or(line).min(line),
        };
        let plain = key.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_lowercase();
        out.push((plain, value[..end].trim().trim_end_matches(',').trim()));
        rest = &value[end..];
    }
    out
}

/// 45, 98.20, "0x33", 100%, or the bytes of a number, the highest first: ["0x00","0x01","0x86","0xa0"].
fn number(text: &str) -> Option<f64> {
    let one = |word: &str| -> Option<f64> {
        let word = word.trim().trim_matches('"').trim_end_matches('%').trim();
        match word.strip_prefix("0x") {
            Some(hex) => u32::from_str_radix(hex, 16).ok().map(f64::from),
            None => word.parse().ok(),
        }
    };
    let value = match text.strip_prefix('[').and_then(|t| t.strip_suffix(']')) {
        Some(bytes) if bytes.split(',').count() <= 6 => {
            bytes.split(',').map(one).try_fold(0.0, |all, b| b.filter(|b| (0.0..256.0).contains(b)).map(|b| all * 256.0 + b))
        }
        Some(_) => None,
        None => one(text),
    };
    value.filter(|v| v.is_finite() && *v >= 0.0)
}

/// Whose signature this is, as sdmon prints the first two bytes.
fn maker(signature: &str) -> Option<&'static str> {
    match signature {
        "0x44 0x53" | "0x53 0x44" => Some("SanDisk"),
        "0x44 0x57" => Some("WD"),
        "0x70 0x58" => Some("Longsys"),
        _ => None,
    }
}

pub fn read(text: &str) -> Result<Benchmark, String> {
    // Each reading begins with its version.
    let mut starts: Vec<usize> = text.match_indices("\"version\":").map(|x| x.0).collect();
    starts.dedup();
    let ends = starts.iter().skip(1).copied().chain([text.len()]);
    let readings: Vec<_> = starts.iter().zip(ends).map(|(&from, to)| fields(&text[from..to])).collect();
    let says = |all: &[(String, &str)], key: &str| all.iter().find(|f| f.0 == key).map(|f| f.1.trim_matches('"').to_string());
    let signatures: Vec<String> = readings.iter().filter_map(|r| says(r, "signature")).collect();
    if signatures.windows(2).any(|w| w[0] != w[1]) {
        return Err(format!(
            "{} readings begin with different bytes ({}): what the card returns is no health block",
            readings.len(),
            signatures.join("; ")
        ));
    }
    // The last one is how the card is now.
    let last = readings.last().ok_or("sdmon's output has no reading")?;
    let mut b = one(last)?;
    if readings.len() > 1 {
        b.notes.push(format!("{} readings; the last one was taken", readings.len()));
    }
    Ok(b)
}

fn one(all: &[(String, &str)]) -> Result<Benchmark, String> {
    let says = |key: &str| all.iter().find(|f| f.0 == key).map(|f| f.1.trim_matches('"').to_string());
    let mut b = Benchmark { tool: "sdmon", version: says("version").map(|v| format!("sdmon {v}")), ..Benchmark::default() };
    // These fields are those of SanDisk and WD alone.
    if let (Some(signature), true) = (says("signature"), all.iter().any(|f| f.0 == "healthstatuspercentused")) {
        let whose = match maker(&signature) {
            Some("SanDisk" | "WD") => None,
            Some(other) => Some(format!("{other}'s, whose fields lie elsewhere")),
            None => Some("not SanDisk's".into()),
        };
        if let Some(whose) = whose {
            return Err(format!(
                "the health block has the signature {signature}, which is {whose}: sdmon read its fields out of other bytes"
            ));
        }
    }
    for (_, why) in all.iter().filter(|f| ["error", "error1"].contains(&f.0.as_str())) {
        b.notes.push(format!("sdmon says: {}", why.trim_matches('"')));
    }
    let (mut read, mut ones) = (vec![], 0);
    for (key, value) in all {
        let Some((_, name, unit)) = FIELDS.iter().find(|f| f.0.contains(&key.as_str())) else { continue };
        let Some(n) = number(value).filter(|_| !read.contains(name)) else { continue };
        read.push(*name);
        ones += usize::from([655.35, 65_535.0, 4_294_967_295.0].contains(&n));
        // More than all can be used up, but not be left.
        if *unit == "%" && n > 100.0 && *name != "health used" {
            b.flags.push(format!("{name}: {n} % cannot be; the field is not what sdmon takes it for"));
            continue;
        }
        if *name == "power cycles" && n == 0.0 {
            b.flags.push("power cycles: 0 cannot be of a card that answers".into());
            continue;
        }
        if *name == "health used" {
            b.notes.push("health used counts begun percents: 1 % is 0 to 0.99 %".into());
        }
        b.metrics.push(Metric::new(name, "health block, sdmon", unit, &[n]));
    }
    if ones >= 3 {
        return Err("sdmon read nothing but ones: the card has no health block here".into());
    }
    let of = |name: &str| b.metrics.iter().find(|m| m.name == name).map(|m| m.value);
    if let (least, Some(mean), Some(most)) =
        (of("least erases of a block").unwrap_or(0.0), of("mean erases of a block"), of("most erases of a block"))
        && !(least <= mean && mean <= most)
    {
        b.flags.push(format!("erases of blocks contradict each other: {least} at the least, {mean} on average, {most} at most"));
    }
    if b.metrics.is_empty() {
        let why = b.notes.first().map_or(String::new(), |n| format!(": {n}"));
        return Err(format!("sdmon read no health block{why}"));
    }
    Ok(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(signature: &str, fields: &str) -> String {
        format!(
            "{{\n\"version\": \"v0.9\",\n\"date\": \"2026-01-01T00:00:00.000Z\",\n\"device\":\"/dev/mmcblk0\",\n\"signature\":\"{signature}\",\n{fields}\n\"success\":true\n}}\n"
        )
    }

    fn value(b: &Benchmark, name: &str) -> Option<f64> {
        b.metrics.iter().find(|m| m.name == name).map(|m| m.value)
    }

    #[test]
    fn both_names_of_one_layout_and_no_other() {
        for (signature, ok) in [("0x44 0x53", true), ("0x44 0x57", true), ("0x70 0x58", false), ("0x0 0x4", false)] {
            let t = text(signature, "\"healthStatusPercentUsed\": 3,\n\"powerOnTimes\": 25,");
            assert!(is_text(&t));
            match read(&t) {
                Ok(b) => assert!(ok && value(&b, "health used") == Some(3.0) && value(&b, "power cycles") == Some(25.0), "{b:?}"),
                Err(why) => assert!(!ok && why.contains(signature), "{why}"),
            }
        }
        assert!(read(&text("0x70 0x58", "\"healthStatusPercentUsed\": 3,")).unwrap_err().contains("Longsys's"));
    }

    #[test]
    fn bytes_of_a_number_and_the_last_reading() {
        let fields = |n: u32| {
            format!(
                "\"User area total cycle cnt\": [\"0x00\",\"0x00\",\"0x08\",\"0xb6\"], \"Power cycle cnt\": [\"0\",\"0\",\"0\",\"{n}\"],"
            )
        };
        let b = read(&(text("0x53 0x77", &fields(19)) + &text("0x53 0x77", &fields(21)))).unwrap();
        assert_eq!((value(&b, "erases in all"), value(&b, "power cycles")), (Some(2230.0), Some(21.0)));
        assert!(b.notes.iter().any(|n| n.starts_with("2 readings")), "{:?}", b.notes);
        let why = read(&(text("0x0 0x4", &fields(1)) + &text("0xa4 0x81", &fields(2)))).unwrap_err();
        assert!(why.contains("different bytes"), "{why}");
    }

    #[test]
    fn what_cannot_be_is_said() {
        let b = read(&text("0x9 0x41", "\"Remaining life\": 453%,\n\"Power cucle cnt\": 0,\n\"Grown bad block cnt\": 165535,")).unwrap();
        assert_eq!((b.flags.len(), b.metrics.len()), (2, 1), "{b:?}");
        // A figure that only contains such digits is none of ones.
        assert!(read(&text("", "\"totalEraseCount\": 165535,\n\"avgEraseCount\": 65535,\n\"maxEraseCount\": 65535,")).is_ok());
        assert!(read(&text("", "\"totalEraseCount\": 4294967295,\n\"avgEraseCount\": 65535,\n\"maxEraseCount\": 65535,")).is_err());
    }
}

//! iozone's table.

use super::{Benchmark, runs, words_of};
use crate::samples::metric::Metric;
use crate::units::Bytes;

/// Its columns, in their order.
const COLUMNS: [(&str, &str); 13] = [
    ("write", "sequential write"),
    ("rewrite", "sequential rewrite"),
    ("read", "sequential read"),
    ("reread", "sequential reread"),
    ("read", "random read"),
    ("write", "random write"),
    ("read", "backward read"),
    ("rewrite", "record rewrite"),
    ("read", "stride read"),
    ("fwrite", "fwrite"),
    ("frewrite", "frewrite"),
    ("fread", "fread"),
    ("freread", "freread"),
];

/// Words with the column in which they end, counted in characters.
fn words(line: &str) -> Vec<(usize, String)> {
    let mut out: Vec<(usize, String)> = vec![];
    let mut word = String::new();
    for (i, c) in line.replace('\t', "        ").chars().chain([' ']).enumerate() {
        match (c.is_whitespace(), word.is_empty()) {
            (false, _) => word.push(c),
            (true, false) => out.push((i, std::mem::take(&mut word))),
            (true, true) => {}
        }
    }
    out
}

/// Its tables, where the text holds some.
pub fn read(lines: &[&str]) -> Option<Result<Benchmark, String>> {
    lines.iter().any(|l| l.contains("reclen") && l.contains("rewrite")).then_some(())?;
    let mut b = Benchmark { tool: "iozone", ..Benchmark::default() };
    if let Some(v) = lines.iter().find(|l| l.contains("Version $Revision:")) {
        b.version = v.split_once("Version").map(|x| format!("iozone {}", x.1.replace("$Revision:", "").replace('$', "").trim()));
    }
    let mut refused = None;
    let begins = |l: &str| l.contains("Performance Test of File I/O") || words_of(l, "iozone").is_some_and(|w| w.len() > 1);
    for lines in runs(lines, begins, |l| l.contains("reclen")) {
        refused = run(lines, &mut b).err().or(refused);
    }
    Some(if b.metrics.is_empty() { Err(refused.unwrap_or("iozone's table has no rows that can be read").into()) } else { Ok(b) })
}

/// The file that a command was pointed at: "-f FILE", "-f/mnt/FILE".
fn target(line: &str) -> Option<String> {
    let words = words_of(line, "iozone")?;
    let at = words.iter().position(|w| w.starts_with("-f"))?;
    let joined = &words[at][2..];
    if joined.is_empty() { words.get(at + 1).cloned() } else { Some(joined.to_string()) }
}

/// One run, of any number of rows.
fn run(lines: &[&str], b: &mut Benchmark) -> Result<(), &'static str> {
    let says = |what: &str| lines.iter().any(|l| l.contains(what));
    if says("Output is in ops/sec") || says("microseconds/op") {
        return Err("iozone printed operations or times instead of kBytes/sec; run it without -N and -O");
    }
    b.of([None, lines.iter().find_map(|l| target(l)), None]);
    let direct = if says("O_DIRECT feature enabled") || says(" -I ") { ", direct" } else { ", through the page cache" };
    let mut columns: Vec<(usize, &'static str)> = vec![];
    for line in lines {
        let w = words(line);
        if w.iter().any(|x| x.1 == "reclen") {
            let skip = w.iter().position(|x| x.1 == "reclen").unwrap_or(0) + 1;
            let mut left = COLUMNS.iter();
            columns = w[skip..].iter().filter_map(|(end, name)| left.find(|c| c.0 == name).map(|c| (*end, c.1))).collect();
            columns.insert(0, (w[skip - 1].0, "reclen"));
            continue;
        }
        let numbers: Vec<(usize, f64)> = w.iter().filter_map(|(e, t)| Some((*e, t.parse::<f64>().ok()?))).collect();
        if columns.len() < 2 || numbers.len() < 3 || numbers.len() != w.len() {
            continue;
        }
        // Pasted text may be indented otherwise than its heading: the record size shows by how much. Tests that were not run leave
        // holes, so a number belongs to the column in which it ends.
        let shift = numbers[1].0 as i64 - columns[0].0 as i64;
        let kib = |n: f64| Bytes((n as u64).saturating_mul(1024));
        let (file, record) = (kib(numbers[0].1), kib(numbers[1].1));
        let mut last = 0;
        for (end, kb) in &numbers[2..] {
            let at = *end as i64 - shift;
            let near = columns.iter().enumerate().skip(last + 1).min_by_key(|(_, c)| (c.0 as i64 - at).abs());
            let Some((i, c)) = near.filter(|(_, c)| (c.0 as i64 - at).abs() <= 3) else {
                b.flags.push(format!("a row of {record} does not stand under its heading; it was left out"));
                break;
            };
            last = i;
            if *kb > 0.0 {
                // iozone's kByte is 1024 bytes.
                b.metrics.push(Metric::new(c.1, format!("{record} in {file}{direct}"), "kB/s", &[kb * 1.024]));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::{read, value};

    #[test]
    fn iozone_with_holes() {
        let head = "                                                              random    random     bkwd    record    stride\n              kB  reclen    write  rewrite    read    reread    read     write     read   rewrite      read   fwrite frewrite    fread  freread\n";
        let b = read(
            "f",
            &format!("\tO_DIRECT feature enabled\n{head}          102400    1024   314600   325053                     374715   325762\n"),
        )
        .unwrap()
        .unwrap();
        assert!((value(&b, "random write", "1 MiB") - 325_762.0 * 1.024).abs() < 1.0, "{b:#?}");
        assert!(!b.metrics.iter().any(|m| m.name == "sequential read"));
        let b = read("f", &format!("{head}          102400       4     2604     2666    12185    12207     9959     2652   \n"))
            .unwrap()
            .unwrap();
        assert!((value(&b, "random write", "4 KiB") - 2652.0 * 1.024).abs() < 0.1 && b.metrics.len() == 6);
        assert!(read("f", head).unwrap().is_err());
    }
}

//! What f3probe, f3write and f3read print.

use super::{Benchmark, lost, runs, words_of};
use crate::samples::metric::Metric;
use crate::units::about;

/// The output of one of its programs, where the text holds some.
pub fn read(lines: &[&str]) -> Option<Result<Benchmark, String>> {
    let any = |w: &str| lines.iter().any(|l| l.contains(w));
    let speed = ["verage writing speed:", "verage Writing speed:"].into_iter().any(any);
    if !(any("Announced size:") || any("Validating file") || speed || any("Data OK:") && any("Data LOST:")) {
        return None;
    }
    let mut b = Benchmark { tool: "f3", ..Benchmark::default() };
    let begins = |l: &str| target(l).is_some() || is_banner(l) || row(l).is_some_and(|(k, _)| k == "data ok" || is_usable(&k));
    let result = |l: &str| row(l).is_some_and(|(k, _)| ["average writing speed", "data lost", "announced size"].contains(&k.as_str()));
    for lines in runs(lines, begins, result) {
        run(lines, &mut b);
    }
    Some(if b.metrics.is_empty() && b.flags.is_empty() { Err("f3 printed no result; was it cut off?".into()) } else { Ok(b) })
}

/// "F3 read 8.0".
fn is_banner(line: &str) -> bool {
    line.trim().to_lowercase().starts_with("f3 ")
}

fn is_usable(key: &str) -> bool {
    key.contains("usable") && key.contains("size")
}

/// What a command was pointed at: the directory of f3write and f3read, the device of f3probe.
fn target(line: &str) -> Option<String> {
    let words = ["f3write", "f3read", "f3probe"].into_iter().find_map(|p| words_of(line, p))?;
    let place = words.into_iter().skip(1).rfind(|w| !w.starts_with('-')).filter(|w| w == "." || w.contains('/'))?;
    Some(if place.len() > 1 { place.trim_end_matches('/').to_string() } else { place })
}

/// "Average writing speed: 4.90 MB/s": its key in small letters, and what follows.
fn row(line: &str) -> Option<(String, &str)> {
    let (key, rest) = line.split_once(':')?;
    Some((key.trim().trim_matches('*').to_lowercase(), rest.trim()))
}

/// "29.71 GB", or "29,71 GB" as some languages have it, in f3's units (1024), as bytes.
fn size_of(text: &str) -> Option<f64> {
    let mut words = text.split_whitespace();
    let value: f64 = words.next()?.replace(',', ".").parse().ok()?;
    let unit = words.next()?.trim_end_matches("/s");
    let power = ["Byte", "KB", "MB", "GB", "TB", "PB"].iter().position(|u| unit.starts_with(u))?;
    Some(value * 1024f64.powi(power as i32))
}

/// "(62301184 sectors)", as bytes.
fn exact(text: &str) -> Option<u64> {
    let (count, unit) = text.split_once('(')?.1.split_once(' ')?;
    let count: u64 = count.parse().ok()?;
    (unit.starts_with("blocks") || unit.starts_with("sectors")).then(|| count.checked_mul(512)).flatten()
}

/// Writing or reading the files of one volume, or a probe of one device.
fn run(lines: &[&str], b: &mut Benchmark) {
    b.of([None, lines.iter().find_map(|l| target(l)), None]);
    let (mut usable, mut announced, mut ok, mut gone, mut over) = (None, None, None, None, None);
    for line in lines {
        if is_banner(line) && b.version.is_none() {
            b.version = Some(line.trim().to_string());
        }
        let Some((key, rest)) = row(line) else { continue };
        let size = || exact(rest).map(|x| x as f64).or_else(|| size_of(rest));
        let rate = |what: &str| size_of(rest).map(|r| Metric::new(what, "1 GiB files", "kB/s", &[r / 1e3]));
        match key.as_str() {
            "average writing speed" => b.metrics.extend(rate("sequential write")),
            "average reading speed" => b.metrics.extend(rate("sequential read")),
            k if is_usable(k) => usable = size(),
            "announced size" => announced = size(),
            "approximate cache size" => {
                if let Some(s) = size().filter(|s| *s > 0.0) {
                    b.metrics.push(Metric::new("write cache", "f3probe", "KiB", &[s / 1024.0]));
                }
            }
            "data ok" => ok = size(),
            "data lost" => gone = size(),
            "overwritten" => over = size(),
            "good news" | "bad news" => b.notes.push(line.trim().to_string()),
            _ => {}
        }
    }
    b.capacity = b.capacity.or(announced.map(|a| a as u64));
    let size = |name: &str, how: &str, x: f64| Metric::new(name, how, "MiB", &[x / 1048576.0]);
    b.metrics.extend(usable.map(|u| size("usable size", "f3probe", u)));
    if let (Some(u), Some(a)) = (usable, announced)
        && u < a
    {
        b.flags.push(format!("counterfeit or damaged: {} of {} announced are usable", about(u as u64), about(a as u64)));
    }
    b.metrics.extend(ok.map(|x| size("data read back right", "f3read", x)));
    if let Some(l) = gone.filter(|l| *l > 0.0) {
        b.flags.push(lost(&about(l as u64), over.filter(|o| *o > 0.0).map(|o| about(o as u64))));
    }
}

#[cfg(test)]
mod tests {
    use super::super::{read, value};

    /// A loss without any figure, below a heading of its own.
    #[test]
    fn a_loss_is_never_left_out() {
        let text = "SanDisk:\nData LOST: 512.00 MB (1048576 sectors)\nKingston:\nData OK: 1.50 GB (3145728 sectors)\nData LOST: 0.00 Byte (0 sectors)\n";
        for text in [text, &text.replace("SanDisk:\n", "$ f3read /media/a\n").replace("Kingston:\n", "$ f3read /media/b\n")] {
            let b = read("f", text).unwrap().unwrap();
            assert!(b.flags.len() == 1 && b.flags[0].contains("512 MiB"), "{b:?}");
        }
    }

    #[test]
    fn f3_real_and_counterfeit() {
        let b = read("f", "Bad news: The device `/dev/sdb' is a counterfeit of type limbo\n\n\t         *Usable* size: 7.86 GB (16477879 blocks)\n\t        Announced size: 15.33 GB (32155648 blocks)\n\tApproximate cache size: 1.00 MB (2048 blocks)\n").unwrap().unwrap();
        assert_eq!(b.capacity, Some(32_155_648 * 512));
        assert!(b.flags[0].starts_with("counterfeit") && value(&b, "write cache", "") == 1024.0);
        let b = read("f", "Average writing speed: 4.90 MB/s\nData OK: 29.71 GB (62301184 sectors)\nData LOST: 0.00 Byte (0 sectors)\nAverage reading speed: 9.42 MB/s").unwrap().unwrap();
        assert!((value(&b, "sequential write", "") - 4.90 * 1048.576).abs() < 1e-6 && b.flags.is_empty());
        // As h2testw's: what came back as other data is the sign of a wraparound.
        let wrapped = "Data OK: 1.17 GB (2453504 sectors)\nData LOST: 27.83 GB (58363904 sectors)\n\t       Corrupted: 0.00 Byte (0 sectors)\n\t     Overwritten: 27.83 GB (58363904 sectors)\nAverage reading speed: 9.42 MB/s";
        let b = read("f", wrapped).unwrap().unwrap();
        assert!(b.flags[0].starts_with("counterfeit or damaged: 27.8 GiB") && b.flags[0].contains("wraparound"), "{:?}", b.flags);
        let b =
            read("f", &wrapped.replace("Overwritten: 27.83 GB (58363904 sectors)", "Overwritten: 0.00 Byte (0 sectors)")).unwrap().unwrap();
        assert!(b.flags[0].ends_with("did not come back"), "{:?}", b.flags);
    }
}

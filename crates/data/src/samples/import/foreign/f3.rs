//! What f3probe, f3write and f3read print.

use super::{Benchmark, lost};
use crate::samples::metric::Metric;
use crate::units::about;

/// "29.71 GB" in f3's units (1024), as bytes.
fn size_of(text: &str) -> Option<f64> {
    let mut words = text.split_whitespace();
    let value: f64 = words.next()?.parse().ok()?;
    let unit = words.next()?.trim_end_matches("/s");
    let power = ["Byte", "KB", "MB", "GB", "TB", "PB"].iter().position(|u| unit.starts_with(u))?;
    Some(value * 1024f64.powi(power as i32))
}

pub fn read(text: &str) -> Result<Benchmark, String> {
    let mut b = Benchmark { tool: "f3", ..Benchmark::default() };
    let exact = |rest: &str| -> Option<u64> {
        let n = rest.split_once('(')?.1;
        let (count, unit) = n.split_once(' ')?;
        let count: u64 = count.parse().ok()?;
        (unit.starts_with("blocks") || unit.starts_with("sectors")).then(|| count.checked_mul(512)).flatten()
    };
    let (mut usable, mut announced, mut ok, mut gone, mut over) = (None, None, None, None, None);
    for line in text.lines() {
        let low = line.trim().trim_start_matches(['>', ' ', '\t']).to_lowercase();
        let Some((key, _)) = low.split_once(':') else { continue };
        let rest = line.split_once(':').map_or("", |x| x.1).trim();
        let size = || exact(rest).map(|x| x as f64).or_else(|| size_of(rest));
        match key.trim().trim_matches('*').trim_start_matches('*') {
            "average writing speed" => {
                b.metrics.extend(size_of(rest).map(|r| Metric::new("sequential write", "1 GiB files", "kB/s", &[r / 1e3])))
            }
            "average reading speed" => {
                b.metrics.extend(size_of(rest).map(|r| Metric::new("sequential read", "1 GiB files", "kB/s", &[r / 1e3])))
            }
            k if k.contains("usable") && k.contains("size") => usable = size(),
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
        if low.starts_with("f3 ") && b.version.is_none() {
            b.version = Some(line.trim().to_string());
        }
    }
    b.capacity = announced.map(|a| a as u64);
    if let Some(u) = usable {
        b.metrics.push(Metric::new("usable size", "f3probe", "MiB", &[u / 1048576.0]));
    }
    if let (Some(u), Some(a)) = (usable, announced)
        && u < a
    {
        b.flags.push(format!("counterfeit or damaged: {} of {} announced are usable", about(u as u64), about(a as u64)));
    }
    if let Some(x) = ok {
        b.metrics.push(Metric::new("data read back right", "f3read", "MiB", &[x / 1048576.0]));
    }
    if let Some(l) = gone.filter(|l| *l > 0.0) {
        b.flags.push(lost(&about(l as u64), over.filter(|o| *o > 0.0).map(|o| about(o as u64))));
    }
    if b.metrics.is_empty() {
        return Err("f3 printed no result; was it cut off?".into());
    }
    Ok(b)
}

#[cfg(test)]
mod tests {
    use super::super::{read, value};

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

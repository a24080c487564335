//! What h2testw prints, in English and in German. MByte and GByte are of 1024.

use super::lines::number;
use super::{Benchmark, lost, runs};
use crate::samples::metric::Metric;
use crate::units::{Bytes, MIB};

/// Its output, where the text holds some.
pub fn read(lines: &[&str]) -> Option<Result<Benchmark, String>> {
    let low: Vec<String> = lines.iter().map(|l| l.to_lowercase()).collect();
    let any = |what: &str| low.iter().any(|l| l.contains(what));
    let rates = ["writing speed:", "schreibrate:", "reading speed:", "leserate:"];
    let rate = |l: &String| rates.iter().any(|r| l.trim().starts_with(r)) && l.contains("mbyte/s");
    if !(any("h2testw") || any("mbyte/s") && any("sectors)") || low.iter().any(rate)) {
        return None;
    }
    let mut b = Benchmark { tool: "h2testw", ..Benchmark::default() };
    for lines in runs(lines, |l| l.to_lowercase().contains("byte ok"), |l| is_lost(&l.to_lowercase())) {
        run(lines, &mut b);
    }
    Some(if b.metrics.is_empty() && b.flags.is_empty() { Err("h2testw printed no result; was it cut off?".into()) } else { Ok(b) })
}

fn is_lost(low: &str) -> bool {
    low.contains("data lost") || low.contains("daten verloren")
}

/// "(15633408 sectors)", as bytes.
fn sectors(line: &str) -> Option<u64> {
    let inside = line.split_once('(')?.1;
    let at = inside.find("sect").or_else(|| inside.find("sekt"))?;
    inside[..at].split([' ', ',']).rfind(|w| !w.is_empty())?.parse::<u64>().ok()?.checked_mul(512)
}

fn run(lines: &[&str], b: &mut Benchmark) {
    let (mut ok, mut gone, mut over) = (None, None, None);
    for printed in lines.iter().map(|l| l.trim()) {
        let low = printed.to_lowercase();
        let line = low.as_str();
        let rate = |l: &str| {
            let v = l.split_once(':')?.1.split_whitespace().next()?;
            number(v).map(|v| v * MIB as f64 / 1e3).filter(|v| *v > 0.0)
        };
        if line.starts_with("h2testw") {
            b.version = Some(printed.into());
        } else if line.starts_with("writing speed") || line.starts_with("schreibrate") {
            b.metrics.extend(rate(line).map(|r| Metric::new("sequential write", "1 GiB files, h2testw", "kB/s", &[r])));
        } else if line.starts_with("reading speed") || line.starts_with("leserate") {
            b.metrics.extend(rate(line).map(|r| Metric::new("sequential read", "1 GiB files, h2testw", "kB/s", &[r])));
        } else if is_lost(line) {
            gone = sectors(line);
        } else if line.contains("overwritten") || line.contains("überschrieben") {
            over = sectors(line.trim_start_matches("details:"));
        } else if line.contains("byte ok") {
            ok = sectors(line);
        } else if line.starts_with("warning: only")
            || line.starts_with("warnung: nur")
            || line.starts_with("test finished without")
            || line.starts_with("test fehlerfrei")
        {
            b.notes.push(printed.into());
        }
    }
    b.metrics.extend(ok.map(|x| Metric::new("data read back right", "h2testw", "MiB", &[x as f64 / MIB as f64])));
    if let Some(l) = gone.filter(|l| *l > 0) {
        b.flags.push(lost(&Bytes(l).to_string(), over.filter(|o| *o > 0).map(|o| Bytes(o).to_string())));
    }
}

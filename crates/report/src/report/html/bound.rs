//! A page stays small whatever it is made of: of long series fewer points are drawn, long texts are cut, long lists end. What was
//! left out is said where it was.

use crate::lab::experiment::Lab;
use crate::report::Report;
use crate::report::figures::{Detail, Plot};
use crate::samples::Ended;
use serde_json::Value;

/// Bytes a page should have at most: what opens at once on a phone, and what a mail takes.
pub const MOST: usize = 700_000;
/// Bytes of data to download, as base64, that a page has room for.
const DATA: usize = 250_000;
/// Bytes of the tables of all runs together.
const TABLES: usize = 120_000;
/// Bytes of all texts of a report together.
const TEXTS: usize = 60_000;
/// Runs that are shown.
const RUNS: usize = 40;
/// States of a volume that are shown; `frag` measures three.
const STATES: usize = 8;
/// Characters of a text and entries of a list that are kept, the first that fits.
const CUTS: [(usize, usize); 5] = [(2000, 200), (600, 60), (200, 30), (80, 12), (40, 6)];

/// The same of an experiment of `frag`: of its states the first, its texts cut.
pub fn lab(lab: &Lab) -> Lab {
    let mut out = lab.clone();
    out.conditions.truncate(STATES);
    cut_text(&mut out.target, 600);
    cut_text(&mut out.filesystem, 600);
    cut_text(&mut out.version, 600);
    out
}

/// Renders with as much detail as there is room for. `figures`: all of them; their details are set for each try.
pub fn fitted(figures: &mut Vec<Plot>, mut render: impl FnMut(&[Plot], usize) -> String) -> String {
    let all = figures.len();
    let mut page = String::new();
    for (script, drawn, rows, most) in [
        (3000, 500, 100, usize::MAX),
        (1200, 300, 100, usize::MAX),
        (600, 150, 60, usize::MAX),
        (300, 80, 30, usize::MAX),
        (120, 40, 15, 150),
        (60, 20, 8, 60),
        (30, 15, 4, 24),
    ] {
        if figures.len() > most {
            // The plots of the experiments say more than those of the single accesses.
            nandscope_stats::sort_by_key(figures, |p| p.raw);
            figures.truncate(most);
        }
        figures.iter_mut().for_each(|p| p.detail = Detail { script, drawn, rows });
        page = render(figures, all - figures.len());
        if page.len() <= MOST {
            break;
        }
    }
    page
}

/// Tables, one of each item, with as many rows as there is room for.
pub fn tables<T>(items: &[T], render: impl Fn(&T, usize) -> String) -> Vec<String> {
    let mut all = vec![];
    for rows in [300, 100, 40, 15, 5, 1] {
        all = items.iter().map(|i| render(i, rows)).collect();
        if all.iter().map(String::len).sum::<usize>() <= TABLES {
            break;
        }
    }
    all
}

/// The text if there is room for it as something to download.
pub fn download(text: String) -> Option<String> {
    (text.len().div_ceil(3) * 4 <= DATA).then_some(text)
}

fn cut_text(text: &mut String, most: usize) {
    let Some((at, _)) = text.char_indices().nth(most) else { return };
    let left = text[at..].chars().count();
    text.truncate(at);
    *text += &format!(" [{left} more characters are not shown]");
}

/// Cuts texts, and lists of anything but numbers, however deep.
fn cut(v: &mut Value, (characters, entries): (usize, usize)) {
    match v {
        Value::String(s) => cut_text(s, characters),
        Value::Array(all) => {
            if all.len() > entries && !all[0].is_number() && !all[0].is_array() {
                let left = all.len() - entries;
                let texts = all.iter().all(Value::is_string);
                all.truncate(entries);
                if texts {
                    all.push(format!("and {left} more, which are not shown").into());
                }
            }
            all.iter_mut().for_each(|x| cut(x, (characters, entries)));
        }
        Value::Object(all) => {
            if all.len() > entries.max(60) {
                *all = std::mem::take(all).into_iter().take(entries.max(60)).collect();
            }
            all.iter_mut().for_each(|x| cut(x.1, (characters, entries)));
        }
        _ => {}
    }
}

/// JSON with its texts cut until all of it but numbers is at most [`TEXTS`] long.
pub fn value(v: &Value) -> Value {
    let mut out = v.clone();
    for c in CUTS {
        if texts(&out) <= TEXTS {
            break;
        }
        cut(&mut out, c);
    }
    out
}

/// Bytes of texts and names in it.
fn texts(v: &Value) -> usize {
    match v {
        Value::String(s) => s.len(),
        Value::Array(all) => all.iter().map(texts).sum(),
        Value::Object(all) => all.iter().map(|(k, x)| k.len() + texts(x)).sum(),
        _ => 0,
    }
}

/// A report with its texts cut where they are too long for a page, and how many runs were left out.
pub fn report(r: &Report) -> (Report, usize) {
    let mut out = r.clone();
    let mut runs = std::mem::take(&mut out.runs);
    let whole = serde_json::to_value(&out).unwrap_or_default();
    if texts(&whole) > TEXTS {
        out = serde_json::from_value(value(&whole)).unwrap_or_else(|_| {
            // What no cut makes short enough is left out.
            out.declared = Value::Null;
            out
        });
    }
    // All runs count, also those that are not shown.
    out.accesses = r.accesses();
    let left = runs.len().saturating_sub(RUNS);
    runs.truncate(RUNS);
    for run in &mut runs {
        cut_text(&mut run.experiment, 80);
        run.cells.iter_mut().for_each(|c| cut_text(&mut c.label, 120));
        run.faults.truncate(50);
        run.faults.iter_mut().for_each(|f| cut_text(f, 200));
        if let Ended::Failed(why) = &mut run.ended {
            cut_text(why, 600);
        }
    }
    out.runs = runs;
    (out, left)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{Fill, Op};
    use crate::finding::{Finding, Quantity};
    use crate::report::bare as report;
    use crate::report::html::{bench_page, page};
    use crate::samples::{Cell, Run, Sample};
    use crate::units::Nanos;
    use serde_json::json;

    fn run(name: &str, samples: u64, cells: u32, label: &str) -> Run {
        let mut run = Run::new(name);
        run.cells = (0..cells)
            .map(|id| serde_json::from_value::<Cell>(json!({ "id": id, "label": format!("{label}{id}"), "set": {} })).unwrap())
            .collect();
        run.extend((0..samples).map(|i| Sample {
            cell: (i % u64::from(cells)) as u32,
            start: Nanos(i * 1_000_003),
            took: Nanos(200_000 + i * 7919 % 90_000 + if i == samples / 3 { 777_000_000 } else { 0 }),
            at: i * 524_287 % (1 << 33) / 512 * 512,
            len: 4096,
            op: if i % 3 == 0 { Op::Write(Fill::Ones) } else { Op::Read },
            trial: 0,
            role: 0,
        }));
        run
    }

    /// Whatever grows, the page does not: samples, runs, cells, their names, notes, evidence, what a card declares.
    #[test]
    fn a_page_is_bounded() {
        let long = "<b>&".repeat(400_000);
        let many = |f: &dyn Fn(&mut Report)| {
            let mut r = report(vec![Finding::decided(Quantity::EraseBlock, 4194304.0, 0.99)]);
            f(&mut r);
            let p = page(&r);
            assert!(p.len() <= MOST, "{}", p.len());
            p
        };
        let p = many(&|r| r.runs = vec![run("scatter", 100_000, 4, "c"), run("read-boundary", 50_000, 3000, "c")]);
        assert!(p.contains("points of each series are drawn") && p.contains("777"), "the slowest stays");
        assert!(p.contains("without the single accesses"));
        many(&|r| r.runs = (0..300).map(|i| run(&format!("own-{i}"), 200, 3, "c")).collect());
        let p = many(&|r| r.runs = vec![run("scatter", 3000, 1000, &long[..4000])]);
        assert!(p.contains("more characters are not shown"));
        many(&|r| r.runs = vec![run(&long, 30, 2, "c")]);
        many(&|r| r.warnings = vec![long.clone(), "short".into()]);
        many(&|r| r.warnings = vec!["a note of some length that comes again and again".into(); 20_000]);
        many(&|r| r.findings.0[0].evidence = vec![long.clone(); 3]);
        many(&|r| r.target.model = Some(long.clone()));
        many(&|r| r.declared = json!({ "name": long.clone(), "notes": vec![long.clone(); 4] }));
        // What is of a usual size is whole.
        let mut r = report(vec![]);
        r.warnings = vec!["x".repeat(5000)];
        r.runs = vec![run("scatter", 400, 4, "c")];
        let p = page(&r);
        assert!(p.contains(&"x".repeat(5000)) && p.contains("JSON with every access") && !p.contains("not shown"));
    }

    #[test]
    fn the_page_of_a_benchmark_is_bounded() {
        let pass = |n: u64| {
            json!({ "write": true, "records": n, "speed_kb_s": 1.5, "max_us": 9.0, "min_us": 1.0, "avg_us": 2.0,
                "histogram_ns": (0..n).map(|i| [1000 + i, 1]).collect::<Vec<_>>(),
                "timeline": { "stretch_ns": 1000, "worst_ns": (0..n).collect::<Vec<_>>() },
                "stall_places": (0..n).map(|i| [i * 4096, i * 1000, 2]).collect::<Vec<_>>(),
                "stall_text": vec!["every 4 MiB"; 3] })
        };
        let bench = |n, passes| json!({ "target": "<img src=x>", "host": "h", "record": 512, "passes": vec![pass(n); passes] });
        for v in [
            json!({ "benches": [bench(200_000, 2)] }),
            json!({ "benches": vec![bench(300, 2); 150] }),
            json!({ "benches": [{ "target": "x".repeat(3_000_000), "record": 512, "passes": [pass(3)] }] }),
        ] {
            let p = bench_page(&v).unwrap();
            assert!(p.len() <= MOST && !p.contains("<img"), "{}", p.len());
        }
    }
}

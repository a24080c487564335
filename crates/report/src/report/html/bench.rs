//! The page of a benchmark: what to do, the table, how long the calls took, where the stalls lie. It is made from the JSON alone.

use super::sections::{glossary, scroll};
use super::{bound, data, scripts, shell, style};
use crate::infer::figure::{Figure, Series};
use crate::report::figures::{Detail, Plot, slug};
use crate::units::{Nanos, three};
use maud::{Markup, html};
use serde_json::Value;

fn lines<'a>(v: &'a Value, key: &str) -> impl Iterator<Item = &'a str> {
    v[key].as_array().into_iter().flatten().filter_map(Value::as_str)
}

fn text<'a>(v: &'a Value, key: &str) -> &'a str {
    v[key].as_str().unwrap_or_default()
}

fn number(v: &Value, key: &str) -> f64 {
    v[key].as_f64().unwrap_or(f64::NAN)
}

/// Rows of numbers.
fn points(v: &Value) -> Vec<Vec<f64>> {
    let row = |r: &Value| r.as_array().into_iter().flatten().map(|x| x.as_f64().unwrap_or(f64::NAN)).collect();
    v.as_array().into_iter().flatten().map(row).collect()
}

fn figure(title: String, [x, y]: [&str; 2], log: [bool; 2], points: Vec<(f64, f64)>) -> Option<Plot> {
    if points.len() < 2 {
        return None;
    }
    let series = vec![Series { name: "calls".into(), points }];
    let name = slug(&title);
    let figure = Figure { title, x: x.into(), y: y.into(), log_x: log[0], log_y: log[1], series };
    Some(Plot { name, experiment: "bench".into(), raw: false, figure, detail: Detail::default() })
}

/// Histogram, time line, and the places of the stalls of each pass.
fn plots(b: &Value) -> Vec<Plot> {
    let mut out = vec![];
    for (i, p) in b["passes"].as_array().into_iter().flatten().enumerate() {
        let word = if p["write"].as_bool().unwrap_or(true) { "write" } else { "read" };
        let what = format!(
            "{word} calls of {} B, {}{}",
            b["record"],
            text(b, "target"),
            if i > 1 { format!(", pass {}", i + 1) } else { String::new() }
        );
        let mut bins: std::collections::BTreeMap<i64, f64> = Default::default();
        for r in points(&p["histogram_ns"]).iter().filter(|r| r.len() == 2 && r[0] > 0.0) {
            *bins.entry((r[0].log2() * 8.0).floor() as i64).or_default() += r[1];
        }
        let bars = bins.iter().map(|(k, n)| (((*k as f64 + 0.5) / 8.0).exp2() / 1e6, *n)).collect();
        out.extend(figure(format!("How long {what} took"), ["ms", "calls"], [true, true], bars));
        let stretch = number(&p["timeline"], "stretch_ns") / 1e9;
        let worst = p["timeline"]["worst_ns"].as_array().into_iter().flatten().enumerate();
        let line = worst.map(|(i, w)| (i as f64 * stretch, w.as_f64().unwrap_or(0.0) / 1e6)).collect();
        out.extend(figure(format!("Longest over time: {what}"), ["s", "ms"], [false, false], line));
        let places = points(&p["stall_places"]).iter().filter(|r| r.len() == 3).map(|r| (r[0] / 1048576.0, r[1] / 1e6)).collect();
        let of = if p["position"].is_null() { "file" } else { "card" };
        out.extend(figure(
            format!("Stalls by their place: {what}"),
            [&format!("MiB from the start of the {of}"), "ms"],
            [false, false],
            places,
        ));
    }
    out
}

fn us(p: &Value, key: &str) -> String {
    Nanos((number(p, key) * 1e3) as u64).to_string()
}

fn table(all: &[&Value]) -> Markup {
    scroll(
        "Speed and latency",
        &html! {
            table.stack {
                caption { "Speed and latency of each pass" }
                thead { tr { @for h in ["Target", "Record", "Calls", "Records", "Speed", "Longest", "Shortest", "Mean", "Lost to longer calls"] { th scope="col" { (h) } } } }
                tbody { @for b in all { @for p in b["passes"].as_array().into_iter().flatten() { tr {
                    th scope="row" { (text(b, "target")) }
                    td data-head="record" { (b["record"]) " B" } td { @if p["write"].as_bool().unwrap_or(true) { "write" } @else { "read" } }
                    td data-head="records" { (p["records"]) } td data-head="speed" { (three(number(p, "speed_kb_s"))) " kB/s" }
                    td data-head="longest" { (us(p, "max_us")) } td data-head="shortest" { (us(p, "min_us")) } td data-head="mean" { (us(p, "avg_us")) }
                    td data-head="lost" { @if let Some(ns) = p["lost_ns"].as_u64() { (Nanos(ns)) } @else { "-" } }
                } } } }
            }
        },
    )
}

fn run(b: &Value, id: usize, plots: &[Plot]) -> Markup {
    html! {
        section aria-labelledby=(format!("run-{id}")) {
            h2 id=(format!("run-{id}")) { (text(b, "target")) ", records of " (b["record"]) " B" }
            p { (text(b, "title")) "." }
            @if b["cached"].as_bool() == Some(true) {
                p.care { "The kernel's page cache took these records: the figures are of the memory, not of the card." }
            } @else if let Some(worst) = b["worst"].as_str() { p { strong { (worst) "." } } }
            @for l in lines(b, "request_text") { p { (l) "." } }
            @if lines(b, "buffer_text").next().is_some() {
                h3 { "Buffer for a logger" }
                ul { @for l in lines(b, "buffer_text") { li { (l) } } }
            }
            @for p in b["passes"].as_array().into_iter().flatten() {
                @let said: Vec<&str> = lines(p, "stall_text").collect();
                @if !said.is_empty() {
                    h3 { @if p["write"].as_bool().unwrap_or(true) { "Stalls of writes" } @else { "Stalls of reads" } }
                    ul { @for l in said { li { (l) } } }
                }
            }
            @if b["kernel"].as_bool() == Some(true) { p.care { "The kernel reads ahead into its page cache: most of the read calls are of the memory, not of the card." } }
            @for n in lines(b, "notes") { p.muted { "Note: " (n) "." } }
            @for p in plots { (super::sections::figure(p)) }
        }
    }
}

/// The page of what `bench --json` wrote.
///
/// # Errors
/// It holds no benchmark.
pub fn page(v: &Value) -> Result<String, String> {
    let v = &bound::value(v);
    let one = [v.clone()];
    let all: Vec<&Value> = v["benches"].as_array().map_or(&one[..], Vec::as_slice).iter().filter(|b| b["passes"].is_array()).collect();
    if all.is_empty() {
        return Err("there is no benchmark in it".into());
    }
    let mut targets: Vec<&str> = all.iter().map(|b| text(b, "target")).collect();
    targets.dedup();
    let title = format!("Records: {}", targets.join(", "));
    let mut figures: Vec<Plot> = vec![];
    for (i, b) in all.iter().enumerate() {
        figures.extend(plots(b).into_iter().map(|p| Plot { experiment: i.to_string(), ..p }));
    }
    Ok(bound::fitted(&mut figures, |figures, _| whole(v, &all, &title, figures)))
}

fn whole(v: &Value, all: &[&Value], title: &str, figures: &[Plot]) -> String {
    let of = |i: usize| figures.iter().filter(|p| p.experiment == i.to_string()).cloned().collect::<Vec<Plot>>();
    let first = all[0];
    let advice: Vec<&Value> = v["advice"].as_array().into_iter().flatten().filter(|a| a["lines"].is_array()).collect();
    let classes: Vec<&str> = lines(&v["classes"], "text").collect();
    let body = html! {
        a.skip href="#main" { "Skip to what to do" }
        header {
            p.tool { "nandscope " (text(&first["tool"], "version")) ": how long a card takes for each record of a file" }
            h1 { (title) }
            @let hosts: std::collections::BTreeSet<&str> = all.iter().map(|b| text(b, "host")).collect();
            p.muted { "Measured through " (hosts.into_iter().collect::<Vec<_>>().join("; ")) "." }
        }
        nav aria-label="On this page" {
            ul {
                li { a href="#advice" { "What to do" } }
                li { a href="#table" { "Speed and latency" } }
                @for (i, b) in all.iter().enumerate() { li { a href=(format!("#run-{i}")) { (text(b, "target")) ", " (b["record"]) " B" } } }
                li { a href="#glossary" { "Glossary" } }
            }
        }
        main id="main" tabindex="-1" {
            section aria-labelledby="advice" {
                h2 id="advice" { "What to do" }
                @if advice.is_empty() { p { "Nothing follows from what was measured." } }
                @for a in &advice {
                    @if advice.len() > 1 { h3 { (text(a, "target")) } }
                    ul { @for l in lines(a, "lines") { li { (l) } } }
                }
            }
            section aria-labelledby="table" {
                h2 id="table" { "Speed and latency" }
                (table(all))
                p.muted { "Lost to longer calls: the mean less the shortest, times the records." }
                @if all.iter().flat_map(|b| b["passes"].as_array().into_iter().flatten()).any(|p| p["left_out"].as_bool() == Some(true)) {
                    p.muted { "Longest and shortest leave out the first call of each pass, as SdFat's bench does." }
                }
                @if !classes.is_empty() { h3 { "Class against class" } ul { @for l in &classes { li { (l) } } } }
            }
            @for (i, b) in all.iter().enumerate() { (run(b, i, &of(i))) }
            (glossary())
        }
        footer {
            @if let Some(text) = bound::download(v.to_string()) {
                p { a href=(data::address("application/json", &text)) download="bench.json" { "Download the data" } " (JSON with every figure)" }
            } @else { p { "The data are in the file that `bench --json` writes; they are too large for a page." } }
            p.muted { "Plots: uPlot 1.6.32, MIT licence, (c) 2022 Leon Sorokin. This page needs no network." }
        }
        (scripts(figures, None))
    };
    shell(title, &style(), &body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_page_of_hostile_figures_fetches_nothing() {
        let pass = json!({ "write": true, "records": 3, "speed_kb_s": 1.5, "max_us": 9.0, "min_us": 1.0, "avg_us": null, "histogram_ns": [[1000, 2], [5000, 1]],
            "timeline": { "stretch_ns": 1000, "worst_ns": [1, 2] }, "stall_places": [[0, 1, 2], ["x", 2, 3], [7]], "stall_text": ["<script>alert(1)</script>"] });
        let v = json!({ "benches": [{ "target": "<img src=x>", "host": "</script>", "record": 512, "passes": [pass] }] });
        let p = page(&v).unwrap();
        assert!(!p.contains("<img") && !p.contains("<script>alert") && p.contains("&lt;img src=x&gt;"));
        assert!(page(&json!({ "benches": [] })).is_err() && page(&json!({})).is_err());
    }
}

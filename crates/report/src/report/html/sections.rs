//! The parts of the page, top to bottom.

use crate::advise::commands::groups;
use crate::advise::driver::driver;
use crate::advise::uses::{self, Verdict};
use crate::device::Op;
use crate::experiment;
use crate::finding::{Finding, percent};
use crate::host::declared::Declared;
use crate::host::facts::TargetKind;
use crate::infer::stalls::BUSY_MS;
use crate::infer::stats::{bootstrap_median, median, quantile};
use crate::report::figures::{Plot, is_bound, op_name, show, summary, x_in_bytes};
use crate::report::terminal::{ending, size};
use crate::report::words::{GLOSSARY, READING, explain, grade};
use crate::report::{Report, svg};
use crate::samples::Run;
use crate::units::{Bytes, Nanos, as_sold, date_text, three};
use maud::{Markup, PreEscaped, html};

pub const CONTENTS: [(&str, &str); 8] = [
    ("uses", "Good for"),
    ("advice", "What to do"),
    ("verdicts", "Findings"),
    ("declared", "Declared and found"),
    ("stalls", "Stalls"),
    ("commands", "Commands"),
    ("numbers", "Numbers"),
    ("glossary", "Glossary"),
];

/// What the card is called.
pub fn name(r: &Report) -> String {
    r.target.model.clone().filter(|m| !m.trim().is_empty()).unwrap_or_else(|| r.settings.asked.clone())
}

pub fn head(r: &Report, title: &str) -> Markup {
    let made = if r.when > 0 { format!(", {}", date_text(r.when)) } else { String::new() };
    let kind = match r.target.kind {
        TargetKind::Disk => "whole device",
        TargetKind::Partition => "partition",
        TargetKind::Image => "image file",
        TargetKind::Simulated => "simulated card",
    };
    html! {
        header {
            @if let Some(line) = r.banner() { p.counterfeit role="alert" { (line) } }
            p.tool { "nandscope " (r.tool.version) ": what is inside a flash card, measured by timing it" }
            h1 { (title) }
            p { (as_sold(r.target.size)) ", " (kind) " " code { (r.settings.asked) } (made) }
            @if let Some(line) = way(r) { p.muted { "Measured through " (line) "." } }
        }
    }
}

fn way(r: &Report) -> Option<String> {
    let h = &r.host;
    let parts: Vec<String> =
        [h.bus.clone(), (!h.kernel.is_empty()).then(|| format!("Linux {}", h.kernel)), (!h.machine.is_empty()).then(|| h.machine.clone())]
            .into_iter()
            .flatten()
            .collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

fn decided(f: &Finding) -> bool {
    f.value.is_some() || f.at_least.is_some()
}

fn value(f: &Finding) -> String {
    match (f.number(), f.at_least) {
        _ if f.instead().is_some() => f.instead().and_then(|t| t.split([';', ',']).next()).unwrap_or_default().into(),
        (Some(v), _) => f.quantity.show(v),
        (None, Some(b)) => format!("at least {}", f.quantity.show(b.0)),
        (None, None) => "undecided".into(),
    }
}

/// Empty where there is neither an interval nor a rival worth a word.
fn runner_up(f: &Finding) -> String {
    if let Some([lo, hi]) = f.interval {
        return f.quantity.range(lo, hi);
    }
    f.rivals
        .first()
        .filter(|x| x.probability >= 0.005)
        .map_or(String::new(), |x| format!("{} ({:.0} %)", f.quantity.show(x.value.0), (x.probability * 100.0).max(1.0)))
}

fn confidence(f: &Finding) -> Markup {
    if !decided(f) {
        return html! { "-" };
    }
    let percent = percent(f.confidence);
    html! { span.bar aria-hidden="true" { span style=(format!("width:{percent}%")) {} } (percent) " % " span.muted { (grade(f.confidence)) } }
}

/// A table that can be scrolled with the keyboard where it is wider than the screen.
pub fn scroll(label: &str, table: &Markup) -> Markup {
    html! { div.scroll role="region" tabindex="0" aria-label=(label) { (table) } }
}

/// Findings, the decided ones first.
fn in_order(r: &Report) -> Vec<&Finding> {
    let mut all: Vec<&Finding> = r.findings.0.iter().collect();
    nandscope_stats::sort_by_key(&mut all, |f| !decided(f));
    all
}

/// The findings as a table; `linked` to what is said of each further down, else with the reason where one is undecided.
pub fn table(r: &Report, linked: bool) -> Markup {
    let all = in_order(r);
    let at = |f: &Finding| format!("#f-{}", f.quantity.key());
    let rows = html! {
        table.stack {
            caption { "What was found, how sure it is, and what else it could be" }
            thead { tr { th scope="col" { "What" } th scope="col" { "Found" } th scope="col" { "Confidence" } th scope="col" { "Runner-up or interval" } } }
            tbody { @for f in &all { tr {
                th scope="row" { @if linked { a href=(at(f)) { (f.quantity.title()) } } @else { (f.quantity.title()) } }
                td.value { (value(f)) }
                td.conf { (confidence(f)) }
                td {
                    @if decided(f) { (runner_up(f)) }
                    @else if linked { a href=(at(f)) aria-label=(format!("why {} is undecided", f.quantity.title())) { "why" } }
                    @else { (f.reason.as_deref().unwrap_or_default()) }
                }
            } } }
        }
    };
    html! {
        @if linked { (scroll("Findings", &rows)) }
        @else { section aria-labelledby="verdicts" { h2 id="verdicts" { "Findings" } @if all.is_empty() { p { "Nothing was measured." } } @else { (scroll("Findings", &rows)) } } }
    }
}

pub fn verdicts(r: &Report, plots: &[Plot]) -> Markup {
    let all = in_order(r);
    // A plot stands with the first finding that rests on it.
    let mut shown: Vec<&str> = vec![];
    let mut own = |f: &Finding| -> [Vec<&Plot>; 2] {
        let rests: Vec<&Plot> = plots.iter().filter(|p| !p.raw && f.from.contains(&p.experiment)).collect();
        let (mine, above): (Vec<&Plot>, Vec<&Plot>) = rests.into_iter().partition(|p| !shown.contains(&p.name.as_str()));
        shown.extend(mine.iter().map(|p| p.name.as_str()));
        [mine, above]
    };
    let articles: Vec<Markup> = all.iter().map(|f| article(f, &own(f))).collect();
    let rest: Vec<&Plot> = plots.iter().filter(|p| !p.raw && !shown.contains(&p.name.as_str())).collect();
    html! {
        section aria-labelledby="verdicts" {
            h2 id="verdicts" { "Findings" }
            @if all.is_empty() { p { "Nothing was measured." } } @else {
                (table(r, true))
                div.cards {
                    @for a in &articles { (a) }
                    @if !rest.is_empty() { article { h3 { "Also measured" } @for p in &rest { (figure(p)) } } }
                }
            }
        }
    }
}

/// A finding in words, with the plots it rests on: those of its own, and links to those that stand further up.
fn article(f: &Finding, [plots, above]: &[Vec<&Plot>; 2]) -> Markup {
    let [what, means] = explain(f);
    html! {
        article id=(format!("f-{}", f.quantity.key())) {
            h3 { (f.quantity.title()) ": " span.value { (value(f)) } }
            p.sure {
                @if decided(f) {
                    (confidence(f))
                    @if !runner_up(f).is_empty() { ", " @if f.interval.is_some() { "interval " } @else { "runner-up " } (runner_up(f)) }
                }
                @else if let Some(why) = f.instead() { (why) "." }
                @else { "Undecided, because " (f.reason.as_deref().unwrap_or("no reason was given")) "." }
            }
            p { (what) " " (means) }
            @for p in plots { (figure(p)) }
            @if !above.is_empty() { p { "See " @for (i, p) in above.iter().enumerate() { @if i > 0 { ", " } a href=(format!("#fig-{}", p.name)) { (p.figure.title) } } "." } }
            @if !f.evidence.is_empty() || !f.caveats.is_empty() {
                details {
                    summary { "Evidence" @if !f.from.is_empty() { span.muted { " from " (f.from.join(", ")) } } }
                    ul { @for e in &f.evidence { li { (e) } } @for c in &f.caveats { li { strong { "but " } (c) } } }
                }
            }
        }
    }
}

/// Points of the longest series, where not all are drawn.
fn thinned(p: &Plot) -> Option<usize> {
    p.figure.series.iter().map(|s| s.points.len()).max().filter(|n| *n > p.detail.drawn)
}

/// The drawing, its words, and its numbers.
pub fn figure(p: &Plot) -> Markup {
    let f = &p.figure;
    let id = format!("fig-{}", p.name);
    html! {
        figure id=(id) data-figure=(p.name) {
            figcaption { (f.title) }
            div.static { (PreEscaped(svg::inline(f, &id, p.detail.drawn))) }
            @if let Some(n) = thinned(p) { p.muted { "At most " (p.detail.drawn) " points of each series are drawn (" (p.detail.script) " where the script runs), of " (n) ": of every stretch the lowest and the highest." } }
            @if !p.raw {
                details {
                    summary { "Numbers of this plot" }
                    @for s in f.series.iter().filter(|s| !is_bound(s)) {
                        (scroll(&format!("{} {}", f.title, s.name), &html! {
                            table.numbers {
                                caption { (s.name) @if s.points.len() > p.detail.rows { ", the first " (p.detail.rows) " of " (s.points.len()) } }
                                thead { tr { th scope="col" { (f.x) } th scope="col" { (f.y) } } }
                                tbody { @for q in s.points.iter().take(p.detail.rows) { tr { th scope="row" { (show(q.0, x_in_bytes(f))) } td { (show(q.1, false)) } } } }
                            }
                        }))
                    }
                }
            } @else { p.muted { (summary(f)) } }
        }
    }
}

pub fn declared(r: &Report) -> Markup {
    let d: Option<Declared> = serde_json::from_value(r.declared.clone()).ok();
    html! {
        section aria-labelledby="declared" {
            h2 id="declared" { "Declared and found" }
            @match &d {
                None => p { "The card declares nothing here" @if r.target.kind == TargetKind::Simulated { ": it is simulated" } "." },
                Some(d) => {
                    p { "What a card says of itself is a claim; what was found is what its timing shows." }
                    (scroll("Declared and found", &html! {
                        table {
                            caption { "What the card declares beside what was found" }
                            thead { tr { th scope="col" { "What" } th scope="col" { "Declared" } th scope="col" { "Found" } } }
                            tbody { @for (what, said, found) in beside(r, d) { tr { th scope="row" { (what) } td { (said) } td { (found) } } } }
                        }
                    }))
                    @if let Some(e) = r.findings.value(crate::finding::Quantity::EraseBlock, 0.5) { p { (d.beside_found(e as u64)) } }
                    @if !d.warnings.is_empty() || !d.notes.is_empty() { ul { @for w in d.warnings.iter().chain(&d.notes) { li { (w) } } } }
                }
            }
        }
    }
}

fn beside(r: &Report, d: &Declared) -> Vec<(&'static str, String, String)> {
    let found = |q| {
        r.findings
            .get(q)
            .filter(|f| decided(f))
            .map_or("not decided".to_string(), |f| format!("{} ({:.0} %)", value(f), percent(f.confidence)))
    };
    let size_of = |b: Option<u64>| b.map(size);
    use crate::finding::Quantity as Q;
    let rows = [
        ("name", d.name.clone(), String::new()),
        ("maker", d.maker.clone(), String::new()),
        ("identity numbers", d.ids.clone(), String::new()),
        ("made", d.date.map(|d| d.to_string()), String::new()),
        ("capacity", size_of(d.capacity), format!("{} by the block device", size(r.target.size))),
        (
            "allocation unit, erase block",
            d.declared_au.as_ref().map(|a| format!("{} ({})", Bytes(a.bytes), a.source)),
            found(Q::EraseBlock),
        ),
        (
            "erase size the kernel prefers",
            d.preferred_erase_size.as_ref().map(|p| format!("{} ({})", Bytes(p.bytes), p.why)),
            found(Q::EraseBlock),
        ),
        ("speed marks", d.ssr.as_ref().map(|s| s.marks()), String::new()),
        (
            "largest request",
            r.host.queue.as_ref().and_then(|q| q.max_sectors_kb).map(|k| Bytes(k * 1024).to_string()),
            found(Q::LargestRequest),
        ),
    ];
    rows.into_iter().filter_map(|(what, said, found)| Some((what, said?, if found.is_empty() { "-".into() } else { found }))).collect()
}

pub fn stalls(r: &Report, plots: &[Plot]) -> Markup {
    let about_stalls = |f: &&Finding| ["stall", "worst", "wait", "longest"].iter().any(|w| f.quantity.key().contains(w));
    let named: Vec<&Finding> = r.findings.0.iter().filter(about_stalls).collect();
    let rows: Vec<(&Run, &'static str, Vec<f64>)> = r
        .runs
        .iter()
        .flat_map(|run| {
            ["read", "write"].map(|op| {
                (
                    run,
                    op,
                    run.samples.iter().filter(|s| op_name(&s.op) == op && s.op != Op::Flush).map(|s| s.took.millis()).collect::<Vec<f64>>(),
                )
            })
        })
        .filter(|x| x.2.len() >= 20)
        .collect();
    html! {
        section aria-labelledby="stalls" {
            h2 id="stalls" { "Stalls" }
            @for f in &named { p { strong { (f.quantity.title()) ": " (value(f)) } @if decided(f) { ", " (format!("{:.0} %", percent(f.confidence))) } @else { ", because " (f.reason.as_deref().unwrap_or("?")) } } }
            @if rows.is_empty() { p { "Not measured: too few accesses were made." } } @else {
                p { "The longest accesses of every run. The specification allows a card 250 ms of busy time for a write, 500 ms for SDXC. "
                    "The experiments make a card finish erase blocks on purpose, so long writes in them are no surprise; a long access where the others of its kind are short is." }
                (scroll("Stalls", &html! {
                    table {
                        caption { "Times of the accesses, in ms" }
                        thead { tr { th scope="col" { "Run" } th scope="col" { "Accesses" } th scope="col" { "Median" } th scope="col" { "99 %" } th scope="col" { "Longest" } @for most in BUSY_MS { th scope="col" { "Over " (most) " ms" } } } }
                        tbody { @for (run, op, t) in &rows { tr {
                            th scope="row" { (run.experiment) ", " (op) "s" }
                            td { (t.len()) } td { (three(median(t))) } td { (three(quantile(t, 0.99))) } td { (three(quantile(t, 1.0))) }
                            @for most in BUSY_MS { td { (t.iter().filter(|x| **x > most).count()) } }
                        } } }
                    }
                }))
                @for p in plots.iter().filter(|p| p.raw && p.figure.log_x) { (figure(p)) }
            }
        }
    }
}

pub fn uses(r: &Report) -> Markup {
    html! {
        section aria-labelledby="uses" {
            h2 id="uses" { "Good for" }
            (scroll("Good for", &html! {
                table.stack {
                    caption { "Typical uses, each with the measurement the verdict rests on" }
                    thead { tr { th scope="col" { "Use" } th scope="col" { "Verdict" } th scope="col" { "Why" } th scope="col" { "Rests on" } } }
                    tbody { @for u in uses::uses(r) { tr {
                        th scope="row" { (u.name) }
                        td { span class=(match u.verdict { Verdict::Good => "good", Verdict::WithCare => "care", Verdict::Poor => "poor", Verdict::NotMeasured => "muted" }) { (u.verdict.word()) } }
                        td { (u.why) } td { (u.rests_on) }
                    } } }
                }
            }))
        }
    }
}

pub fn advice(r: &Report) -> Markup {
    html! {
        section aria-labelledby="advice" {
            h2 id="advice" { "What to do" }
            @if r.advice.is_empty() { p { "Nothing is known with enough confidence for advice." } }
            ul { @for a in &r.advice { li { (a) } } }
            @if !r.warnings.is_empty() { h3 { "Warnings" } ul { @for w in &r.warnings { li { (w) } } } }
        }
    }
}

/// Rules for a driver, and the commands that lay out such a card.
pub fn commands(r: &Report) -> Markup {
    let rules = driver(&r.findings, &r.runs);
    html! {
        section aria-labelledby="commands" {
            h2 id="commands" { "Commands" }
            @if !rules.is_empty() { h3 { "For a driver" } ul { @for a in &rules { li { (a) } } } }
            @for g in groups(r) {
                h3.use { (g.title) }
                @if !g.basis.is_empty() { p.muted { "Rests on: " (g.basis.join("; ")) "." } }
                @for c in &g.commands {
                    div.command {
                        p { (c.what) @if c.destroys { strong.poor { " (destroys what the card holds)" } } }
                        pre tabindex="0" { code { (c.line) } }
                    }
                }
                @if !g.notes.is_empty() { ul { @for n in &g.notes { li { (n) } } } }
            }
        }
    }
}

/// `conditions`: the table of each run; `left`: figures and runs that the page has no room for.
pub fn raw(r: &Report, plots: &[Plot], conditions: &[String], left: [usize; 2]) -> Markup {
    html! {
        section aria-labelledby="numbers" {
            h2 id="numbers" { "Numbers" }
            @for (n, what) in left.into_iter().zip(["plots", "runs"]).filter(|l| l.0 > 0) {
                p.muted { (n) " more " (what) " are in the report and not on this page, which would be too large for them." }
            }
            details {
                summary { "Where and when every access was made" }
                @for p in plots.iter().filter(|p| p.raw && !p.figure.log_x) { (figure(p)) }
            }
            @for (run, conditions) in r.runs.iter().zip(conditions) {
                details {
                    summary { (run.experiment) ": " (run.cells.len()) (if run.cells.len() == 1 { " condition, " } else { " conditions, " }) (run.samples.len()) " accesses" }
                    @if let Some(e) = experiment::by_name(&run.experiment) { p { (e.about().question) " " (e.about().method) } }
                    @if let Some(end) = ending(&run.experiment, &run.ended) { p { (end) } }
                    (PreEscaped(conditions))
                    @if !run.faults.is_empty() { p { "Failed accesses:" } ul { @for f in run.faults.iter().take(50) { li { (f) } } } }
                }
            }
            details {
                summary { "Settings, host and cost" }
                pre tabindex="0" { (serde_json::to_string_pretty(&serde_json::json!({
                    "target": r.target, "host": r.host, "settings": r.settings, "cost": r.cost, "tool": r.tool, "declared": r.declared,
                })).unwrap_or_default()) }
            }
        }
    }
}

/// Conditions of a run; of very many the first `most`.
pub fn conditions(run: &Run, most: usize) -> String {
    let roles: &[&str] = experiment::by_name(&run.experiment).map_or(&[], |e| e.about().roles);
    let rows = run.cells.iter().take(most).flat_map(|c| {
        let mut of: std::collections::BTreeMap<u8, Vec<f64>> = Default::default();
        run.of(c.id).for_each(|s| of.entry(s.role).or_default().push(s.took.micros()));
        of.into_iter().map(move |(role, t)| (c.label.clone(), role, t))
    });
    scroll(
        &run.experiment,
        &html! {
            table.numbers {
                caption { "Times of each condition in µs" @if run.cells.len() > most { ", the first " (most) " of " (run.cells.len()) } }
                thead { tr { th scope="col" { "Condition" } th scope="col" { "Access" } th scope="col" { "Number" } th scope="col" { "Shortest" } th scope="col" { "Median" } th scope="col" { "95 % interval" } th scope="col" { "Longest" } } }
                tbody { @for (label, role, t) in rows { tr {
                    th scope="row" { (label) }
                    td { (roles.get(role as usize).map_or_else(|| role.to_string(), |r| r.to_string())) }
                    td { (t.len()) } td { (three(quantile(&t, 0.0))) } td { (three(median(&t))) }
                    td { @if t.len() > 2000 { "-" } @else if let Some([a, b]) = bootstrap_median(&t) { (three(a)) " to " (three(b)) } @else { "-" } }
                    td { (three(quantile(&t, 1.0))) }
                } } }
            }
        },
    )
    .into_string()
}

pub fn glossary() -> Markup {
    html! {
        section aria-labelledby="glossary" {
            h2 id="glossary" { "Glossary" }
            dl { @for (term, text) in GLOSSARY { dt { (term) } dd { (text) } } }
            h3 { "Where to read on" }
            // Text, no links: the page asks nothing of a network.
            ul { @for (title, address) in READING { li { (title) ": " code { (address) } } } }
        }
    }
}

/// `data`: the whole report, where there is room for it; `findings`: the same without the accesses.
pub fn foot(r: &Report, data: Option<&str>, findings: Option<&str>) -> Markup {
    let c = &r.cost;
    html! {
        footer {
            p { (c.reads) " reads (" (size(c.bytes_read)) "), "
                @if c.writes > 0 { (c.writes) " writes (" (size(c.bytes_written)) ", " (format!("{:.4}", c.bytes_written as f64 / r.target.size.max(1) as f64)) " drive writes)" } @else { "nothing written" }
                ", " (Nanos::from_secs_f64(c.seconds)) " of the device's time." }
            @if let Some(data) = data {
                p { a href=(data) download="report.json" { "Download the data" }
                    " (JSON with every access; " code { "nandscope infer report.json" } " infers again from it)" }
            } @else {
                p { @if let Some(findings) = findings { a href=(findings) download="findings.json" { "Download the findings" } " (JSON without the single accesses). " }
                    "All accesses are in the report this page was made from; they are too large for a page." }
            }
            p.muted { "Plots: uPlot 1.6.32, MIT licence, (c) 2022 Leon Sorokin. This page needs no network." }
        }
    }
}

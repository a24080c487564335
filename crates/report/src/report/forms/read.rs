//! The facts in the JSON of each command.

use super::{Card, Fact, Facts, Verdict, base, differences, verdicts, words, work};
use crate::finding::{Finding, Findings, Unit, percent};
use crate::samples::metric::Metric;
use crate::units::{Bytes, three};
use serde_json::Value;

/// Seconds of a year.
const YEAR: f64 = 365.25 * 86_400.0;

pub fn read(v: &Value) -> Result<Facts, String> {
    // Commands that answer several questions write a list of answers.
    let first = if v.is_array() { &v[0] } else { v };
    let schema = first["schema"].as_str().ok_or("it has no schema")?;
    let tool = &first["tool"];
    let said = tool["version"].as_str().or_else(|| tool.as_str().and_then(|t| t.rsplit(' ').next()));
    let mut f = Facts {
        schema: schema.into(),
        version: said.unwrap_or(env!("CARGO_PKG_VERSION")).into(),
        when: first["when"].as_u64().filter(|w| *w > 0),
        ..Facts::default()
    };
    match f.command() {
        "report" => report(&mut f, v)?,
        "infer" => inferred(&mut f, v)?,
        "check" => checked(&mut f, v)?,
        "bench" => bench(&mut f, v)?,
        "ab" => differences::ab(&mut f, v),
        "compare" => differences::compared(&mut f, v),
        "layout-audit" => audit(&mut f, v),
        "layout-check" => starts(&mut f, v),
        "layout-prove" => proved(&mut f, v),
        "life" => life(&mut f, v),
        "partitions" => partitions(&mut f, v)?,
        "frag" => frag(&mut f, v),
        "replay" => replayed(&mut f, v),
        "campaign" => verdicts::campaign(&mut f, v),
        "rate" => verdicts::rated(&mut f, v),
        "uflip" => verdicts::uflip(&mut f, v),
        "twin" => verdicts::twin(&mut f, v),
        "twin-check" => verdicts::twin_checked(&mut f, v),
        "map" => verdicts::mapped(&mut f, v),
        "sweep-merged" => verdicts::merged(&mut f, v),
        "quirk" => verdicts::quirk(&mut f, v),
        "identify" => verdicts::identified(&mut f, v),
        "survey" => surveyed(&mut f, v)?,
        "erase" => work::erased(&mut f, v),
        "format" => work::formatted(&mut f, v),
        "undo" => work::undone(&mut f, v),
        "defrag" => work::defragmented(&mut f, v),
        "age" => work::aged(&mut f, v),
        "sim" => work::simulated(&mut f, v),
        _ => return Err(format!("{schema} holds no findings, metrics or verdicts that have another form than JSON")),
    }
    Ok(f)
}

/// A card by what its target says.
pub(super) fn card(target: &Value) -> Card {
    let text = |k: &str| target[k].as_str().filter(|s| !s.is_empty()).map(str::to_string);
    let path = text("path").or_else(|| target.as_str().map(str::to_string)).unwrap_or_default();
    let model = text("model");
    let id = match target["kind"].as_str() {
        Some("simulated" | "image") => path.clone(),
        _ => text("serial").or_else(|| model.clone()).unwrap_or_else(|| path.clone()),
    };
    Card { id, model, target: path }
}

pub(super) fn empty(card: usize, group: &'static str, name: &str) -> Fact {
    Fact {
        card,
        group,
        name: words(name, '_'),
        conditions: String::new(),
        value: None,
        at_least: None,
        unit: String::new(),
        interval: None,
        confidence: None,
        verdict: Verdict::Measured,
        text: String::new(),
        help: String::new(),
    }
}

/// A number under conditions, in the unit it was printed in.
pub(super) fn number(card: usize, name: &str, conditions: &str, value: &Value, unit: &str) -> Option<Fact> {
    let value = value.as_f64().filter(|v| v.is_finite())?;
    let (in_base, base_unit) = base(value, unit);
    Some(Fact {
        conditions: conditions.into(),
        value: Some(in_base),
        unit: base_unit,
        text: format!("{} {unit}", three(value)).trim().into(),
        help: format!("{} as measured", name.replace('_', " ")),
        ..empty(card, "metric", name)
    })
}

pub(super) fn between(mut f: Fact, interval: &Value, unit: &str) -> Fact {
    let end = |i: usize| interval[i].as_f64().filter(|v| v.is_finite()).map(|v| base(v, unit).0);
    f.interval = end(0).zip(end(1)).map(|(a, b)| [a, b]);
    f
}

pub(super) fn judged(card: usize, name: &str, verdict: Verdict, text: &str, help: &str) -> Fact {
    Fact { verdict, text: text.into(), help: help.into(), ..empty(card, "check", name) }
}

fn finding(card: usize, f: &Finding) -> Fact {
    let row = f.quantity.row();
    // Their keys end in the unit of the JSON, which is another one here.
    let name = ["_mb_s", "_ms", "_us", "_polls", "_s"].iter().find_map(|u| row.key.strip_suffix(u)).unwrap_or(row.key);
    let (factor, unit) = match row.unit {
        Unit::Bytes => ("B", None),
        Unit::BytesPerSecond => ("B/s", None),
        Unit::MegabytesPerSecond => ("MB/s", None),
        Unit::PerSecond => ("IOPS", None),
        Unit::Seconds => ("s", None),
        Unit::Milliseconds => ("ms", None),
        Unit::Microseconds => ("µs", None),
        Unit::Polls => ("", Some("polls")),
        Unit::Times => ("", Some("ratio")),
        Unit::Percent => ("", Some("percent")),
        Unit::Count | Unit::Code => ("", None),
    };
    let in_base = |v: f64| base(v, factor).0;
    let value = f.number();
    let text = match (value, f.at_least) {
        (Some(v), _) => format!("{}, {:.0} %", f.quantity.show(v), percent(f.confidence)),
        (None, Some(least)) => format!("at least {}: {}", f.quantity.show(least.0), f.reason.as_deref().unwrap_or("")),
        (None, None) => f.reason.clone().unwrap_or_else(|| "undecided".into()),
    };
    let codes: Vec<String> = row.codes.iter().map(|c| format!("{} {}", c.0, c.1)).collect();
    let codes = if codes.is_empty() { String::new() } else { format!(" ({})", codes.join(", ")) };
    Fact {
        value: value.map(in_base),
        at_least: f.at_least.map(|n| in_base(n.0)),
        unit: unit.map_or_else(|| base(0.0, factor).1, str::to_string),
        interval: f.interval.map(|i| i.map(in_base)),
        confidence: Some(f.confidence),
        verdict: if value.is_some() || f.at_least.is_some() { Verdict::Measured } else { Verdict::Skip },
        text,
        help: format!("{}{codes}: {}", row.title, row.what).trim_end_matches([' ', ':']).into(),
        ..empty(card, "finding", name)
    }
}

fn findings(card: usize, v: &Value) -> Result<Vec<Fact>, String> {
    let all: Findings = if v.is_null() { Findings::default() } else { serde_json::from_value(v.clone()).map_err(|e| e.to_string())? };
    all.check()?;
    Ok(all.0.iter().map(|f| finding(card, f)).collect())
}

/// What it took, where a result says so.
pub(super) fn cost(f: &mut Facts, v: &Value) {
    for (key, name, unit) in
        [("bytes_read", "measuring_read", "B"), ("bytes_written", "measuring_written", "B"), ("seconds", "measuring", "s")]
    {
        let help = "What the measurement took, on the clock of the device".into();
        f.all.extend(number(0, name, "", &v[key], unit).map(|x| Fact { help, ..x }));
    }
}

/// "model", where one is declared; else what the reader says.
fn declared(target: &Value, declared: &Value) -> Card {
    let mut c = card(target);
    if let Some(name) = declared["name"].as_str() {
        c.model = Some(name.into());
    }
    c
}

fn report(f: &mut Facts, v: &Value) -> Result<(), String> {
    f.cards = vec![declared(&v["target"], &v["declared"])];
    let size = |k: &str| v[k].as_u64().map_or("?".into(), |b| Bytes(b).to_string());
    let help = "Whether the flash is as large as the card reports";
    f.all.push(match v["counterfeit"].as_bool() {
        Some(true) => {
            judged(0, "capacity_genuine", Verdict::Fail, &format!("reports {}, holds {}", size("reported_bytes"), size("real_bytes")), help)
        }
        Some(false) => judged(0, "capacity_genuine", Verdict::Pass, &format!("holds the {} it reports", size("reported_bytes")), help),
        None => judged(0, "capacity_genuine", Verdict::Skip, "not decided; writes decide it", help),
    });
    let found = findings(0, &v["findings"])?;
    f.all.extend(found);
    cost(f, &v["cost"]);
    Ok(())
}

fn inferred(f: &mut Facts, v: &Value) -> Result<(), String> {
    for (i, c) in v["cards"].as_array().into_iter().flatten().enumerate() {
        let files: Vec<&str> = c["files"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let (name, target) = (c["name"].as_str().map(str::to_string), files.join(", "));
        f.cards.push(Card { id: name.clone().unwrap_or_else(|| target.clone()), model: name, target });
        let found = findings(i, &c["findings"])?;
        f.all.extend(found);
        figures(f, i, &c["figures"])?;
        for r in c["records"].as_array().into_iter().flatten() {
            let name = if r["write"] == true { "record_write" } else { "record_read" };
            let record = r["record"].as_u64().map_or("records of unknown size".into(), |b| format!("{b} B records"));
            let host = r["host"].as_str().map_or(String::new(), |h| format!(", {h}"));
            let conditions = record + &host;
            f.all.extend(number(i, name, &conditions, &r["speed"], "kB/s"));
            for (key, end) in [("max", "longest"), ("min", "shortest"), ("avg", "average")] {
                f.all.extend(number(i, &format!("{name}_{end}"), &conditions, &r[key], "µs"));
            }
        }
        flags(f, i, &c["flags"]);
    }
    Ok(())
}

/// What other programs printed.
fn figures(f: &mut Facts, card: usize, all: &Value) -> Result<(), String> {
    for m in all.as_array().into_iter().flatten() {
        let m: Metric = serde_json::from_value(m.clone()).map_err(|e| e.to_string())?;
        f.all.extend(number(card, &m.name, &m.conditions, &m.value.into(), &m.unit));
    }
    Ok(())
}

/// What contradicts itself in it.
fn flags(f: &mut Facts, card: usize, all: &Value) {
    for flag in all.as_array().into_iter().flatten().filter_map(Value::as_str) {
        f.all.push(judged(card, "figures_agree", Verdict::Fail, flag, "What was printed does not contradict itself"));
    }
}

/// One entry of a survey.
fn surveyed(f: &mut Facts, v: &Value) -> Result<(), String> {
    let name = v["card"]["name"].as_str().map(str::to_string);
    let target = v["source"]["file"].as_str().unwrap_or_default().to_string();
    f.cards = vec![Card { id: v["id"].as_str().unwrap_or_default().into(), model: name, target }];
    f.when = v["source"]["measured"].as_u64().filter(|w| *w > 0);
    f.all.extend(number(0, "card_capacity", "", &v["card"]["capacity"], "B"));
    let found = findings(0, &v["findings"])?;
    f.all.extend(found);
    figures(f, 0, &v["metrics"])?;
    flags(f, 0, &v["flags"]);
    Ok(())
}

fn checked(f: &mut Facts, v: &Value) -> Result<(), String> {
    let model = v["model"].as_str().map(str::to_string);
    let target = v["target"].as_str().unwrap_or_default().to_string();
    // Of a simulated card the model is a sentence.
    let id = model.clone().filter(|_| target.starts_with('/')).unwrap_or_else(|| target.clone());
    f.cards = vec![Card { id, model, target }];
    for a in v["answers"].as_array().into_iter().flatten() {
        let verdict = match a["verdict"].as_str() {
            Some("pass") => Verdict::Pass,
            Some("fail") => Verdict::Fail,
            _ => Verdict::Skip,
        };
        let name = a["question"].as_str().unwrap_or("question");
        f.all.push(judged(0, name, verdict, a["because"].as_str().unwrap_or(""), "The answers of `nandscope check`"));
    }
    for what in ["sequential_write", "sequential_read", "random_write", "random_read"] {
        let m = &v["measured"][what];
        let conditions = m["len"].as_u64().map_or(String::new(), |l| Bytes(l).to_string());
        let rate = number(0, what, &conditions, &m["bytes_per_second"], "B/s");
        f.all.extend(rate.map(|r| between(r, &serde_json::json!([m["low"], m["high"]]), "B/s")));
        f.all.extend(number(0, &format!("{what}_longest"), &conditions, &m["longest_ms"], "ms"));
    }
    let found = findings(0, &v["findings"])?;
    f.all.extend(found);
    cost(f, &serde_json::json!({ "bytes_written": v["written"], "seconds": v["seconds"] }));
    Ok(())
}

fn bench(f: &mut Facts, v: &Value) -> Result<(), String> {
    // Logs of several microcontrollers are several results in one.
    for c in v["cards"].as_array().into_iter().flatten() {
        bench(f, c)?;
    }
    if let Some(name) = v["name"].as_str() {
        f.cards.push(Card { id: name.into(), model: None, target: name.into() });
        let found = findings(f.cards.len() - 1, &v["findings"])?;
        f.all.extend(found);
    }
    for b in v["benches"].as_array().into_iter().flatten() {
        let target = b["target"].as_str().unwrap_or_default();
        let i = f.cards.iter().position(|c| c.target == target).unwrap_or_else(|| {
            f.cards.push(Card { id: target.into(), model: None, target: target.into() });
            f.cards.len() - 1
        });
        let passes: Vec<&Value> = b["passes"].as_array().into_iter().flatten().collect();
        for (nth, p) in passes.iter().enumerate() {
            let kind = p["write"] == true;
            let alike = |q: &&&Value| (q["write"] == true) == kind;
            let number_of = passes[..nth].iter().filter(alike).count() + 1;
            let pass = if passes.iter().filter(alike).count() > 1 { format!(", pass {number_of}") } else { String::new() };
            let text = |k: &str| b[k].as_str().unwrap_or("?").to_string();
            let conditions = format!("{} B records, {}, {}{pass}", b["record"], text("host"), text("sync"));
            let name = if kind { "record_write" } else { "record_read" };
            f.all.extend(number(i, name, &conditions, &p["speed_kb_s"], "kB/s"));
            for (key, end) in [("max_us", "longest"), ("min_us", "shortest"), ("avg_us", "average")] {
                f.all.extend(number(i, &format!("{name}_{end}"), &conditions, &p[key], "µs"));
            }
            for q in p["percentiles_us"].as_array().into_iter().flatten().filter(|q| q[0] == 99.0 || q[0] == 99.9) {
                f.all.extend(number(i, &format!("{name}_{}_percent_below", q[0]), &conditions, &q[1], "µs"));
            }
        }
        for x in b["buffers"].as_array().into_iter().flatten() {
            let rate = x["rate"].as_f64().map_or("?".into(), crate::units::rate);
            let mut fact = match number(i, "logger_buffer", &format!("{} B records, logging {rate}", b["record"]), &x["bytes"], "B") {
                Some(fact) => fact,
                None => Fact { verdict: Verdict::Skip, ..empty(i, "metric", "logger_buffer") },
            };
            fact.text = x["because"].as_str().unwrap_or("").into();
            f.all.push(fact);
        }
    }
    Ok(())
}

/// The word of a list of conditions that a verdict is about.
fn place(mut f: Fact, conditions: &str) -> Fact {
    f.conditions = conditions.into();
    f
}

fn audit(f: &mut Facts, v: &Value) {
    f.cards = vec![card(&v["target"])];
    let faults: Vec<&Value> = v["faults"].as_array().into_iter().flatten().collect();
    let help = "Whether what lies on the card begins where it costs nothing";
    if faults.is_empty() {
        f.all.push(judged(0, "layout", Verdict::Pass, "no alignment problems found", help));
    }
    for x in faults {
        let text = |k: &str| x[k].as_str().unwrap_or("");
        let verdict = match text("weight") {
            "costs" => Verdict::Fail,
            "harmless" => Verdict::Pass,
            _ => Verdict::Skip,
        };
        let fact = judged(0, "layout", verdict, &format!("{}: {}", text("what"), text("cost")), help);
        f.all.push(place(fact, &format!("{}, {}", text("place"), text("what"))));
    }
}

fn starts(f: &mut Facts, v: &Value) {
    f.cards = vec![Card { id: "card of the report".into(), ..Card::default() }];
    for x in v.as_array().into_iter().flatten() {
        let verdict = match x["answer"].as_str() {
            Some("right") => Verdict::Pass,
            Some("wrong") => Verdict::Fail,
            _ => Verdict::Skip,
        };
        let because: Vec<&str> = x["because"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let start = x["start"].as_u64().map_or("?".into(), |b| Bytes(b).to_string());
        let fact = judged(0, "start_aligned", verdict, &because.join("; "), "Whether a start is a boundary of the erase block");
        f.all.push(Fact { confidence: x["probability"].as_f64(), ..place(fact, &start) });
    }
}

fn proved(f: &mut Facts, v: &Value) {
    f.cards = vec![card(&v["target"])];
    for o in v["outcomes"].as_array().into_iter().flatten() {
        let conditions = format!("{}, {}", o["name"].as_str().unwrap_or("?"), o["filesystem"].as_str().unwrap_or("?"));
        for (key, name, unit) in [("copy", "file_copy", "kB/s"), ("files", "small_files", "files/s")] {
            let x = number(0, name, &conditions, &o[key]["median"], unit);
            f.all.extend(x.map(|x| between(x, &o[key]["interval"], unit)));
        }
    }
}

fn life(f: &mut Facts, v: &Value) {
    let c = &v["card"];
    let name = c["name"].as_str().unwrap_or("?");
    f.cards = vec![Card { id: name.into(), model: Some(name.into()), target: String::new() }];
    let workload = v["workload"]["name"].as_str().unwrap_or("");
    for key in ["first_error", "death"] {
        let w = &v[key];
        for (part, unit, factor) in [("years", "s", YEAR), ("bytes", "B", 1.0), ("cycles", "", 1.0)] {
            // An estimate has no more digits than these.
            let at = |i: usize| w[part][i].as_f64().map(|x| format!("{:.2e}", x * factor).parse().unwrap_or(x * factor));
            let Some(middle) = at(1) else { continue };
            let name = match part {
                "years" => format!("until_{key}"),
                "bytes" => format!("written_until_{key}"),
                _ => format!("until_{key}_{part}"),
            };
            let shown = match part {
                "years" if middle > 100.0 * YEAR => "more than 100 years".into(),
                "years" => format!("{} years", three(middle / YEAR)),
                "bytes" => format!("{} GB written", three(middle / 1e9)),
                _ => format!("{middle} {part}"),
            };
            f.all.push(Fact {
                conditions: if part == "cycles" { String::new() } else { workload.into() },
                value: Some(middle),
                unit: base(0.0, unit).1,
                interval: at(0).zip(at(2)).map(|(a, b)| [a, b]),
                text: format!("{shown}: half of such cards last longer; the interval holds 80 % of them"),
                help: "How long a card lasts, estimated from cards that were worn out".into(),
                ..empty(0, "estimate", &name)
            });
        }
    }
}

fn partitions(f: &mut Facts, v: &Value) -> Result<(), String> {
    let whole = card(&v["target"]);
    for (i, p) in v["partitions"].as_array().into_iter().flatten().enumerate() {
        let name = p["name"].as_str().unwrap_or("?");
        f.cards.push(Card { id: format!("{} {name}", whole.id), ..whole.clone() });
        let found = findings(i, &p["findings"])?;
        f.all.extend(found);
    }
    Ok(())
}

fn frag(f: &mut Facts, v: &Value) {
    f.cards = vec![card(&v["target"])];
    let label = v["label"].as_str().unwrap_or("");
    for (key, name, unit) in [
        ("pw", "class_write", "MB/s"),
        ("pm", "class_move", "MB/s"),
        ("pr", "class_read", "MB/s"),
        ("tfr", "fat_read", "ms"),
        ("tfw_mean", "fat_write", "ms"),
        ("tfw_max", "fat_write_longest", "ms"),
    ] {
        f.all.extend(number(0, name, label, &v["class"][key], unit));
    }
    for c in v["conditions"].as_array().into_iter().flatten() {
        let of = |key: &str| c["fragmentation"][key].as_f64();
        let share = of("fragmented").zip(of("files")).map(|(some, all)| some / all.max(1.0));
        let state = c["state"].as_str().unwrap_or("?");
        let fact = share.and_then(|s| number(0, "fragmented_files", state, &s.into(), ""));
        f.all.extend(fact.map(|x| Fact { unit: "ratio".into(), ..x }));
    }
}

fn replayed(f: &mut Facts, v: &Value) {
    let target = v["target"].as_str().unwrap_or_default();
    f.cards = vec![Card { id: target.into(), model: None, target: target.into() }];
    let trace = v["trace"].as_str().unwrap_or("");
    let help = "Whether all requests of the trace succeeded";
    let verdict = match v["failed"].as_str() {
        Some(why) => judged(0, "requests_done", Verdict::Fail, why, help),
        None => judged(0, "requests_done", Verdict::Pass, &format!("{} requests", v["requests"]), help),
    };
    f.all.push(verdict);
    for (key, name, unit) in [
        ("bytes_per_second", "replay", "B/s"),
        ("seconds", "replay", "s"),
        ("bytes_read", "replay_read", "B"),
        ("bytes_written", "replay_written", "B"),
    ] {
        f.all.extend(number(0, name, trace, &v[key], unit));
    }
}

//! The facts in a comparison: two settings of one card, or two cards.

use super::read::{between, card, cost, empty, judged, number};
use super::{Card, Fact, Facts, Verdict};
use crate::units::three;
use serde_json::Value;

pub(super) fn ab(f: &mut Facts, v: &Value) {
    f.cards = vec![card(&v["target"])];
    let side = |i: usize| v["settings"][i].as_str().unwrap_or("?");
    let conditions = format!("{}: B {} over A {}", v["load"].as_str().unwrap_or(""), side(1), side(0));
    let effect = &v["effect"];
    let verdict = effect["verdict"].as_str().unwrap_or("undecided").replace('_', " ");
    match number(0, "time_ratio", &conditions, &effect["ratio"], "") {
        Some(x) => f.all.push(Fact {
            unit: "ratio".into(),
            verdict: if verdict == "undecided" { Verdict::Skip } else { Verdict::Measured },
            text: format!("B is {verdict}: {} of the time of A", three(effect["ratio"].as_f64().unwrap_or(f64::NAN))),
            help: "Time of setting B over that of setting A".into(),
            ..between(x, &effect["interval"], "")
        }),
        None => f.all.push(Fact { conditions, verdict: Verdict::Skip, text: "too few pairs".into(), ..empty(0, "metric", "time_ratio") }),
    }
    let kept = &v["kept"];
    let sum = |k: &str| (0..2).filter_map(|i| kept[k][i].as_u64()).sum::<u64>();
    let help = "Whether what was written under each setting read back as written";
    let (checked, wrong) = (sum("checked"), sum("wrong"));
    let verdict = match () {
        () if wrong > 0 || kept["unread"].as_u64().is_some_and(|n| n > 0) => Verdict::Fail,
        () if checked > 0 => Verdict::Pass,
        () => Verdict::Skip,
    };
    f.all.push(judged(0, "data_kept", verdict, &format!("{wrong} of {checked} bytes wrong"), help));
    cost(f, &v["cost"]);
}

pub(super) fn compared(f: &mut Facts, v: &Value) {
    let label = |i: usize| v["cards"][i]["label"].as_str().unwrap_or("?").to_string();
    for c in v["cards"].as_array().into_iter().flatten() {
        let name = c["name"].as_str().unwrap_or("?");
        f.cards.push(Card {
            id: format!("{} {name}", c["label"].as_str().unwrap_or("?")),
            model: Some(name.into()),
            target: c["identity"].as_str().unwrap_or("").into(),
        });
    }
    for p in v["pairs"].as_array().into_iter().flatten() {
        let Some(i) = (0..f.cards.len()).find(|&i| p["b"] == label(i)) else { continue };
        let all = ["findings", "figures"].into_iter().flat_map(|k| p[k].as_array().into_iter().flatten());
        for d in all {
            let text = |k: &str| d[k].as_str().unwrap_or("");
            // "sequential write, one AU, 512 B": what is compared, and under which conditions.
            let (name, conditions) = text("what").split_once(", ").unwrap_or((text("what"), ""));
            let over = format!("over {}{}{conditions}", p["a"].as_str().unwrap_or("?"), if conditions.is_empty() { "" } else { ", " });
            let ratio = d["ratio"][0].as_f64();
            f.all.push(Fact {
                group: "difference",
                conditions: over,
                value: ratio,
                unit: "ratio".into(),
                interval: d["ratio"][1].as_f64().zip(d["ratio"][2].as_f64()).map(|(a, b)| [a, b]),
                confidence: d["probability"].as_f64(),
                verdict: if text("outcome") == "unclear" { Verdict::Skip } else { Verdict::Measured },
                text: format!("{}: {} against {}", text("outcome"), text("b"), text("a")),
                help: "Ratio of two cards".into(),
                ..empty(i, "difference", &format!("{name}_compared"))
            });
        }
    }
    for l in v["lots"].as_array().into_iter().flatten() {
        let what = l["what"].as_str().unwrap_or("?");
        let host = l["host"].as_str().map_or(String::new(), |h| format!(", {h}"));
        let (name, conditions) = what.split_once(", ").unwrap_or((what, ""));
        let p = l["p"].as_f64().map_or(String::new(), |p| format!(", p {}", three(p)));
        f.all.push(Fact {
            group: "difference",
            conditions: format!("first class over second{}{conditions}{host}", if conditions.is_empty() { "" } else { ", " }),
            value: l["ratio"].as_f64(),
            unit: "ratio".into(),
            verdict: if l["ratio"].is_null() { Verdict::Skip } else { Verdict::Measured },
            text: format!("{} and {} cards{p}", l["a"].as_array().map_or(0, Vec::len), l["b"].as_array().map_or(0, Vec::len)),
            help: "Ratio of the medians of two classes of cards".into(),
            ..empty(0, "difference", &format!("{name}_classes"))
        });
    }
}

//! The facts of commands that end in verdicts of their own: `rate`, `uflip`, `twin`, `map`, `sweep merge`, `quirk`, `identify`, `campaign`.

use super::read::{between, card, empty, judged, number};
use super::{Card, Fact, Facts, Verdict, base};
use serde_json::Value;

fn list(v: &Value) -> impl Iterator<Item = &Value> {
    v.as_array().into_iter().flatten()
}

fn text(v: &Value) -> &str {
    v.as_str().unwrap_or("")
}

fn word(v: &Value) -> Verdict {
    match v.as_str() {
        Some("passes" | "met") => Verdict::Pass,
        Some("fails" | "not_met") => Verdict::Fail,
        _ => Verdict::Skip,
    }
}

/// A verdict a class, one a limit with what was measured, one a condition of the procedure.
pub fn rated(f: &mut Facts, v: &Value) {
    let (model, target) = (v["model"].as_str().map(str::to_string), text(&v["target"]).to_string());
    let id = model.clone().filter(|_| target.starts_with('/')).unwrap_or_else(|| target.clone());
    f.cards = vec![Card { id, model, target }];
    let mut all: Vec<(&str, &str, &str, &Value)> = vec![];
    let kept = "Whether the card keeps what the class promises";
    all.extend(list(&v["ratings"]).map(|r| ("class_kept", kept, text(&r["class"]), r)));
    if v["for"].is_object() {
        all.push(("purpose_kept", "Whether the card is enough for the purpose", text(&v["for"]["title"]), &v["for"]));
    }
    for (name, help, class, r) in all {
        let fact = judged(0, name, word(&r["verdict"]), text(&r["because"]), help);
        f.all.push(Fact { conditions: class.into(), ..fact });
        for l in list(&r["limits"]) {
            let unit = text(&l["unit"]);
            let of = format!("{class}, {}", text(&l["what"]));
            let asks = l["asks"].as_f64().map_or(0.0, |a| base(a, unit).0);
            let text = format!("{} {asks}", if l["at_most"] == true { "at most" } else { "at least" });
            let help = "A limit of a class, and what was measured of it, in base units".to_string();
            let fact = match number(0, "class_limit", &of, &l["measured"], unit) {
                Some(x) => between(x, &l["interval"], unit),
                None => Fact { conditions: of, ..empty(0, "check", "class_limit") },
            };
            f.all.push(Fact { group: "check", verdict: word(&l["verdict"]), text, help, ..fact });
        }
    }
    for c in list(&v["conditions_of"]) {
        // A condition that was not met makes a verdict weaker; it is no fault of the card.
        let verdict = if word(&c["state"]) == Verdict::Pass { Verdict::Pass } else { Verdict::Skip };
        let fact = judged(0, "condition_met", verdict, text(&c["because"]), "Whether a condition of the procedure was met");
        f.all.push(Fact { conditions: text(&c["what"]).into(), ..fact });
    }
    super::read::cost(f, &v["cost"]);
}

/// The mean time of an access and the rate at each value of each experiment.
pub fn uflip(f: &mut Facts, v: &Value) {
    f.cards = vec![card(&v["target"])];
    for d in list(&v["measured"]["done"]) {
        let code = text(&d["code"]);
        for p in list(&d["points"]) {
            let of = format!("{code}, {}", p["value"]);
            f.all.extend(number(0, "uflip_access", &of, &p["mean_us"], "µs").map(|x| between(x, &p["interval_us"], "µs")));
            f.all.extend(number(0, "uflip", &of, &p["rate"], "B/s"));
        }
    }
    for l in list(&v["measured"]["left_out"]) {
        let fact = judged(0, "uflip_experiment", Verdict::Skip, text(&l["because"]), "An experiment of uFLIP that was not run");
        f.all.push(Fact { conditions: text(&l["code"]).into(), ..fact });
    }
    super::read::cost(f, &v["cost"]);
}

/// How well a twin explains its card, and each part of its structure with its probability.
pub fn twin(f: &mut Facts, v: &Value) {
    let of = text(&v["of"]).to_string();
    f.cards = vec![Card { id: of.clone(), model: None, target: of }];
    let help = "Whether a card model explains what was measured";
    match v["no_card"].as_str() {
        Some(why) => f.all.push(judged(0, "twin_found", Verdict::Skip, why, help)),
        None => f.all.push(judged(0, "twin_found", Verdict::Pass, &format!("{} structures compared", v["structures"]), help)),
    }
    for (key, name) in [("explained", "twin_explained"), ("within_tenth", "twin_within_tenth")] {
        f.all.extend(number(0, name, "", &v[key], "").map(|x| Fact { unit: "ratio".into(), ..x }));
    }
    for s in list(&v["structure"]) {
        let name = format!("twin_{}", text(&s["name"]));
        let help = "A part of the structure that fits best, with its probability among those that were compared".into();
        f.all.push(Fact { confidence: s["probability"].as_f64(), text: text(&s["value"]).into(), help, ..empty(0, "structure", &name) });
    }
    for c in list(&v["costs"]) {
        let fact = number(0, "twin_cost", text(&c["name"]), &c["ns"], "ns");
        f.all.extend(fact.map(|x| between(x, &c["interval_ns"], "ns")));
    }
}

/// A number without a unit, with what it is.
fn share(name: &str, of: &str, value: &Value, unit: &str, help: &str) -> Option<Fact> {
    number(0, name, of, value, "").map(|x| Fact { unit: unit.into(), help: help.into(), ..x })
}

/// How far a twin is from what was measured, in all and for each kind of access.
pub fn twin_checked(f: &mut Facts, v: &Value) {
    let twin = text(&v["twin"]).to_string();
    f.cards = vec![Card { id: twin.clone(), model: Some(twin), target: text(&v["measured"]).into() }];
    for (key, name, unit, help) in [
        ("accesses", "twin_accesses", "", "Accesses that were measured"),
        ("throughput_error", "twin_throughput_error", "ratio", "Predicted throughput over measured throughput, less 1"),
        ("within_tenth", "twin_within_tenth", "ratio", "Share of the accesses predicted within 10 %"),
        ("correlation", "twin_correlation", "ratio", "Correlation of measured and predicted times"),
        ("slow", "twin_slow_accesses", "", "Accesses that took more than 3 times the median of their kind"),
        ("precision", "twin_slow_precision", "ratio", "Of the accesses predicted to be slow, how many were"),
        ("recall", "twin_slow_recall", "ratio", "Of the slow accesses, how many were predicted"),
    ] {
        f.all.extend(share(name, "", &v[key], unit, help));
    }
    for (key, name) in [("measured_s", "twin_time_measured"), ("predicted_s", "twin_time_predicted")] {
        f.all.extend(number(0, name, "", &v[key], "s"));
    }
    for k in list(&v["worst"]) {
        let of = format!("{}, {} B", text(&k["op"]), k["len"]);
        for (key, name) in [("measured_ns", "twin_access_measured"), ("predicted_ns", "twin_access_predicted")] {
            f.all.extend(number(0, name, &of, &k[key], "ns"));
        }
    }
}

/// How fragmented a volume is.
pub fn mapped(f: &mut Facts, v: &Value) {
    f.cards = vec![card(&v["target"])];
    let x = &v["fragmentation"];
    for (value, name, unit, help) in [
        (&x["files"], "files", "", "Files with content"),
        (&x["fragmented"], "files_in_pieces", "", "Files in more than one piece"),
        (&x["extents"], "pieces", "", "Pieces of all files"),
        (&x["most"], "most_pieces", "", "Most pieces of one file"),
        (&x["bytes"], "in_files", "bytes", "Bytes in files"),
        (&x["free"]["bytes"], "free", "bytes", "Free space"),
        (&x["free"]["extents"], "free_pieces", "", "Pieces of the free space"),
        (&x["free"]["largest"], "free_largest", "bytes", "The largest piece of the free space"),
    ] {
        f.all.extend(share(name, "", value, unit, help));
    }
}

/// How often a quantity was decided in a sweep, and how often rightly.
pub fn merged(f: &mut Facts, v: &Value) {
    f.cards = vec![Card { id: "sweep".into(), ..Card::default() }];
    f.all.extend(share("sweep_jobs", "", &v["jobs"], "", "Jobs of the sweep"));
    for (quantity, t) in v["quantities"].as_object().into_iter().flatten() {
        for (key, help) in [
            ("jobs", "Jobs that asked for a quantity"),
            ("decided", "Of those, how many decided it"),
            ("judged", "Of those, how many have a truth"),
            ("right", "Of those, how many are right"),
        ] {
            f.all.extend(share(&format!("sweep_quantity_{key}"), quantity, &t[key], "", help));
        }
    }
}

/// One check a quirk: an entry that is supported is a trouble of the card.
pub fn quirk(f: &mut Facts, v: &Value) {
    let name = text(&v["card"]["name"]).to_string();
    f.cards = vec![Card { id: name.clone(), model: Some(name.clone()), target: name }];
    for p in list(&v["proposals"]) {
        let verdict = match p["support"].as_str() {
            Some("supported") => Verdict::Fail,
            Some("not_supported") => Verdict::Pass,
            _ => Verdict::Skip,
        };
        let fact =
            judged(0, "works_without_quirk", verdict, text(&p["why"]), "Whether the card needs no entry in the kernel's list of quirks");
        f.all.push(Fact { conditions: text(&p["quirk"]).into(), ..fact });
    }
}

/// Sizes and wear that a card declares, and what the kernel's lists say of it.
pub fn identified(f: &mut Facts, v: &Value) {
    let own = |k: &str| v[k].as_str().map(str::to_string);
    let target = own("device").unwrap_or_else(|| "registers".into());
    let id = own("serial").or_else(|| own("name")).unwrap_or_else(|| target.clone());
    f.cards = vec![Card { id, model: own("name"), target }];
    for (value, name) in [
        (&v["capacity"], "declared_capacity"),
        (&v["device_size"], "device_size"),
        (&v["declared_au"]["bytes"], "declared_au"),
        (&v["preferred_erase_size"]["bytes"], "preferred_erase_size"),
        (&v["erase_size"], "smallest_erase"),
    ] {
        let help = "What the card declares, or the kernel shows of it".into();
        f.all.extend(number(0, name, "", value, "B").map(|x| Fact { help, ..x }));
    }
    worn(f, &v["health"]);
    for t in list(&v["troubles"]) {
        let verdict = if t["harmful"] == true { Verdict::Fail } else { Verdict::Pass };
        let fact =
            judged(0, "no_known_trouble", verdict, text(&t["what"]), "Whether the kernel's lists hold nothing harmful against the card");
        f.all.push(Fact { conditions: text(&t["quirk"]).into(), ..fact });
    }
}

/// Life used, as upper ends in percent, and the verdict on it; none of codes that are reserved or not given.
fn worn(f: &mut Facts, health: &Value) {
    let mut said: Vec<(String, Verdict)> = vec![];
    for (key, label) in [("life_a", "A"), ("life_b", "B")] {
        let life = &health[key];
        let exceeded = life == "exceeded";
        let percent = if exceeded { Value::from(100) } else { life["used"]["to"].clone() };
        let Some(fact) = number(0, "life_used", label, &percent, "%") else { continue };
        let text = if exceeded { "estimated life exceeded".into() } else { format!("up to {percent} % of life used") };
        said.push((format!("{label}: {text}"), if exceeded { Verdict::Fail } else { Verdict::Pass }));
        f.all.push(Fact { text, help: "Life that the card estimates to be used, at most".into(), ..fact });
    }
    let pre_eol = match text(&health["pre_eol"]) {
        "normal" => Some((1, "normal", Verdict::Pass)),
        "warning" => Some((2, "80 % of the reserve used", Verdict::Pass)),
        "urgent" => Some((3, "90 % of the reserve used", Verdict::Fail)),
        _ => None,
    };
    if let Some((code, text, verdict)) = pre_eol {
        let help = "Reserve of spare blocks: 1 normal, 2 80 % used, 3 90 % used".into();
        f.all.extend(number(0, "pre_eol", "", &code.into(), "").map(|x| Fact { help, text: text.into(), ..x }));
        said.push((format!("reserve: {text}"), verdict));
    }
    if !said.is_empty() {
        let verdict = if said.iter().any(|s| s.1 == Verdict::Fail) { Verdict::Fail } else { Verdict::Pass };
        let text = said.into_iter().map(|s| s.0).collect::<Vec<_>>().join("; ");
        f.all.push(judged(0, "life_left", verdict, &text, "Whether the card's own estimate leaves it life"));
    }
}

/// One check a step of a card.
pub fn campaign(f: &mut Facts, v: &Value) {
    for (i, c) in list(&v["cards"]).enumerate() {
        let name = text(&c["card"]).to_string();
        f.cards.push(Card { id: name.clone(), model: None, target: name });
        let lot = c["lot"].as_str().map_or(String::new(), |l| format!("lot {l}"));
        for s in list(&c["steps"]) {
            let verdict = match s["code"].as_u64() {
                Some(0) => Verdict::Pass,
                None | Some(3) => Verdict::Skip,
                _ => Verdict::Fail,
            };
            let why = if s["code"].is_null() { text(&c["note"]) } else { text(&s["says"]) };
            let fact = judged(i, &format!("step_{}", text(&s["step"])), verdict, why, "How a step of the campaign ended");
            f.all.push(Fact { conditions: lot.clone(), ..fact });
            f.all.extend(number(i, &format!("step_{}", text(&s["step"])), &lot, &s["seconds"], "s"));
        }
        let beside = list(&v["bus"]["measured"]).filter(|m| m["target"].is_string() && m["target"] == c["target"]);
        for m in beside {
            let [middle, low, high] = [0, 1, 2].map(|k| m["ratio"][k].as_f64());
            let fact = number(i, "read_beside_others", text(&m["with"]), &m["ratio"][0], "");
            f.all.extend(fact.map(|x| Fact {
                unit: "ratio".into(),
                interval: low.zip(high).map(|(a, b)| [a, b]),
                text: format!("{:.2} times", middle.unwrap_or(f64::NAN)),
                help: "Time of a read while the other readers are read, over that of one alone".into(),
                ..x
            }));
        }
    }
}

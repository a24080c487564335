//! Prometheus' text format: each metric with HELP and TYPE, in base units, a sample a card and condition.

use super::{Fact, Facts, Verdict};
use std::collections::BTreeMap;
use std::fmt::Write;

/// A metric: its help, and a value for each set of labels.
#[derive(Default)]
struct Family {
    help: String,
    samples: BTreeMap<String, f64>,
}

/// Within quotes.
fn label(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// In a line of HELP.
fn help(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\n', " ")
}

/// `erase_block` in bytes is `erase_block_bytes`; a unit that the name ends with already is not said twice.
fn named(name: &str, unit: &str) -> String {
    if unit.is_empty() || name.ends_with(&format!("_{unit}")) { format!("nandscope_{name}") } else { format!("nandscope_{name}_{unit}") }
}

pub fn text(f: &Facts) -> String {
    let mut families: BTreeMap<String, Family> = BTreeMap::new();
    let mut put = |name: String, about: &str, labels: String, value: f64| {
        let family = families.entry(name).or_default();
        if family.help.is_empty() {
            family.help = help(about);
        }
        // One that comes twice under the same conditions is numbered: the collector refuses a repeated sample.
        let mut key = labels.clone();
        let mut n = 1;
        while family.samples.contains_key(&key) {
            n += 1;
            key = format!("{labels},again=\"{n}\"");
        }
        family.samples.insert(key, value);
    };
    for (i, c) in f.cards.iter().enumerate() {
        // Two cards of one model are two cards.
        let same = f.cards[..i].iter().filter(|o| o.id == c.id).count();
        let card = if same == 0 { label(&c.id) } else { format!("{} {}", label(&c.id), same + 1) };
        let info = format!(
            "card=\"{card}\",model=\"{}\",target=\"{}\",version=\"{}\"",
            label(c.model.as_deref().unwrap_or("")),
            label(&c.target),
            label(&f.version)
        );
        put("nandscope_card_info".into(), "The card, what it was measured as, and by which version", info, 1.0);
        if let Some(when) = f.when {
            put("nandscope_measured_timestamp_seconds".into(), "When it was measured", format!("card=\"{card}\""), when as f64);
        }
        for x in f.all.iter().filter(|x| x.card == i) {
            sample(x, &card, &mut put);
        }
    }
    let mut out = String::new();
    for (name, family) in families {
        let _ = write!(out, "# HELP {name} {}\n# TYPE {name} gauge\n", family.help);
        for (labels, value) in family.samples {
            let _ = writeln!(out, "{name}{{{labels}}} {value}");
        }
    }
    out
}

fn sample(x: &Fact, card: &str, put: &mut impl FnMut(String, &str, String, f64)) {
    let conditions = if x.conditions.is_empty() { String::new() } else { format!(",conditions=\"{}\"", label(&x.conditions)) };
    let labels = format!("card=\"{card}\"{conditions}");
    let finite = |v: Option<f64>| v.filter(|v| v.is_finite());
    if let Some(v) = finite(x.value) {
        put(named(&x.name, &x.unit), &x.help, labels.clone(), v);
    }
    if let Some(v) = finite(x.at_least) {
        put(named(&format!("{}_at_least", x.name), &x.unit), &format!("{} (a lower bound)", x.help), labels.clone(), v);
    }
    if let Some([low, high]) = x.interval.filter(|i| i.iter().all(|v| v.is_finite())) {
        put(named(&format!("{}_low", x.name), &x.unit), &format!("{} (lower end of the interval)", x.help), labels.clone(), low);
        put(named(&format!("{}_high", x.name), &x.unit), &format!("{} (upper end of the interval)", x.help), labels.clone(), high);
    }
    if let Some(c) = finite(x.confidence) {
        let about = format!("Probability that {} is right; 0 where it is undecided", x.name);
        put(named(&format!("{}_confidence", x.name), "ratio"), &about, labels, c);
    }
    if x.group == "check" {
        let labels = format!("card=\"{card}\",check=\"{}\"{conditions}", label(&x.name));
        let decided = matches!(x.verdict, Verdict::Pass | Verdict::Fail);
        put(
            "nandscope_check_decided".into(),
            "1 where a check passed or failed, 0 where it is not known",
            labels.clone(),
            f64::from(u8::from(decided)),
        );
        if decided {
            put(
                "nandscope_check_passed".into(),
                "1 for pass, 0 for fail; absent where it is not known",
                labels,
                f64::from(u8::from(x.verdict == Verdict::Pass)),
            );
        }
    }
}

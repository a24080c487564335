//! JUnit XML: a test suite a card, a test case a fact.

use super::{Fact, Facts, Verdict};
use crate::units::date_text;
use std::fmt::Write;

/// What XML takes in a text or an attribute; other control characters are no part of it.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\n' | '\t' => out.push(' '),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => {}
            c => out.push(c),
        }
    }
    out
}

/// Valid both for Jenkins and for the schema of Ant's reports, which is stricter: each suite has a number, a host and a time, and what
/// passes has its text in the suite. Where no time was kept it is the beginning of 1970.
pub fn junit(f: &Facts) -> String {
    let of = |card: usize| f.all.iter().filter(move |x| x.card == card);
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n");
    let when = f.when.unwrap_or(0);
    let stamp = format!("{}T{:02}:{:02}:{:02}", date_text(when), when / 3600 % 24, when / 60 % 60, when % 60);
    for (i, c) in f.cards.iter().enumerate() {
        let count = |v: Verdict| of(i).filter(|x| x.verdict == v).count();
        // A step of a campaign has a time of its own; of everything else none was kept.
        let took = |x: &Fact| {
            let same = |y: &&Fact| y.name == x.name && y.conditions == x.conditions && y.unit == "seconds";
            if x.name.starts_with("step_") && x.unit.is_empty() { of(i).find(same).and_then(|y| y.value).unwrap_or(0.0) } else { 0.0 }
        };
        let _ = writeln!(
            out,
            "  <testsuite name=\"{}\" package=\"nandscope\" id=\"{i}\" timestamp=\"{stamp}\" hostname=\"localhost\" tests=\"{}\" \
             failures=\"{}\" errors=\"0\" skipped=\"{}\" time=\"{}\">",
            escaped(&format!("nandscope {}: {}", f.command(), c.id)),
            of(i).count(),
            count(Verdict::Fail),
            count(Verdict::Skip),
            of(i).fold(0.0, |all, x| all + took(x))
        );
        out += "    <properties>\n";
        let when = f.when.map(|w| w.to_string());
        let all = [("target", Some(&c.target)), ("model", c.model.as_ref()), ("version", Some(&f.version)), ("when", when.as_ref())];
        for (name, value) in all {
            if let Some(v) = value {
                let _ = writeln!(out, "      <property name=\"{name}\" value=\"{}\"/>", escaped(v));
            }
        }
        out += "    </properties>\n";
        of(i).for_each(|x| case(&mut out, f.command(), x, took(x)));
        let passed = of(i).filter(|x| !matches!(x.verdict, Verdict::Fail | Verdict::Skip) && !x.text.is_empty());
        let said: Vec<String> = passed.map(|x| format!("{}: {}", escaped(&x.title()), escaped(&x.text))).collect();
        let _ = writeln!(out, "    <system-out>{}</system-out>\n    <system-err/>\n  </testsuite>", said.join("\n"));
    }
    out + "</testsuites>\n"
}

fn case(out: &mut String, command: &str, x: &Fact, took: f64) {
    let title = escaped(&x.title());
    let _ = write!(out, "    <testcase classname=\"nandscope.{command}.{}\" name=\"{title}\" time=\"{took}\"", x.group);
    let text = escaped(&x.text);
    let _ = match x.verdict {
        Verdict::Fail => writeln!(out, ">\n      <failure type=\"{}\" message=\"{text}\"/>\n    </testcase>", x.group),
        Verdict::Skip => writeln!(out, ">\n      <skipped message=\"{text}\"/>\n    </testcase>"),
        _ => writeln!(out, "/>"),
    };
}

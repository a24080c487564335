//! JUnit XML: a test suite a card, a test case a fact.

use super::{Fact, Facts, Verdict};
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

pub fn junit(f: &Facts) -> String {
    let of = |card: usize| f.all.iter().filter(move |x| x.card == card);
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"nandscope\">\n");
    for (i, c) in f.cards.iter().enumerate() {
        let count = |v: Verdict| of(i).filter(|x| x.verdict == v).count();
        let _ = writeln!(
            out,
            "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"0\" skipped=\"{}\" time=\"0\">",
            escaped(&format!("nandscope {}: {}", f.command(), c.id)),
            of(i).count(),
            count(Verdict::Fail),
            count(Verdict::Skip)
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
        of(i).for_each(|x| case(&mut out, f.command(), x));
        out += "  </testsuite>\n";
    }
    out + "</testsuites>\n"
}

fn case(out: &mut String, command: &str, x: &Fact) {
    let _ = write!(out, "    <testcase classname=\"nandscope.{command}.{}\" name=\"{}\" time=\"0\"", x.group, escaped(&x.title()));
    let text = escaped(&x.text);
    let _ = match x.verdict {
        Verdict::Fail => writeln!(out, ">\n      <failure message=\"{text}\"/>\n    </testcase>"),
        Verdict::Skip => writeln!(out, ">\n      <skipped message=\"{text}\"/>\n    </testcase>"),
        _ if text.is_empty() => writeln!(out, "/>"),
        _ => writeln!(out, ">\n      <system-out>{text}</system-out>\n    </testcase>"),
    };
}

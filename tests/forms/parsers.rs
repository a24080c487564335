//! Parsers of the forms that results are written in; each panics where the programs that read the form would refuse it.

use std::collections::BTreeSet;

/// Rows of CSV (RFC 4180).
pub fn csv(text: &str) -> Vec<Vec<String>> {
    let (mut rows, mut row, mut cell, mut quoted) = (vec![], vec![], String::new(), false);
    let mut all = text.chars().peekable();
    while let Some(c) = all.next() {
        match c {
            '"' if quoted && all.peek() == Some(&'"') => cell.push(all.next().unwrap()),
            '"' => quoted = !quoted,
            ',' if !quoted => row.push(std::mem::take(&mut cell)),
            '\r' if !quoted => {}
            '\n' if !quoted => {
                row.push(std::mem::take(&mut cell));
                rows.push(std::mem::take(&mut row));
            }
            c => cell.push(c),
        }
    }
    assert!(!quoted && cell.is_empty() && row.is_empty(), "ends within a row");
    rows
}

/// The same text, or the same number but for the last digit of reading JSON.
pub fn same(a: &str, b: &str) -> bool {
    let near = |a: f64, b: f64| (a - b).abs() <= 1e-12 * a.abs();
    a == b || a.parse().ok().zip(b.parse().ok()).is_some_and(|(a, b)| near(a, b))
}

/// Names and values: of an element, or of a sample.
pub type Pairs = Vec<(String, String)>;

/// Samples of Prometheus' text format: name, labels, value. Panics where the collector of node_exporter would refuse the file.
pub fn prometheus(text: &str) -> Vec<(String, Pairs, f64)> {
    assert!(text.ends_with('\n'), "no end of the last line");
    let word = |w: &str| {
        w.starts_with(|c: char| c.is_ascii_lowercase()) && w.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
    };
    let (mut out, mut seen, mut helped, mut typed) = (vec![], BTreeSet::new(), BTreeSet::new(), String::new());
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').expect("a help text");
            assert!(!help.is_empty() && helped.insert(name.to_string()), "HELP of {name} twice, or empty");
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert!(helped.contains(name) && kind == "gauge", "{line}");
            typed = name.to_string();
        } else {
            let (name, rest) = line.split_once('{').unwrap();
            assert!(name == typed && word(name), "{line}: its TYPE is not above it");
            let (labels, rest) = quoted_labels(rest);
            assert!(labels.iter().all(|l| word(&l.0)), "{line}");
            assert!(seen.insert((name.to_string(), labels.clone())), "twice: {line}");
            out.push((name.to_string(), labels, rest.trim().parse().unwrap()));
        }
    }
    out
}

fn quoted_labels(mut rest: &str) -> (Pairs, &str) {
    let mut out = vec![];
    loop {
        let (name, after) = rest.split_once("=\"").unwrap();
        let (mut value, mut end) = (String::new(), 0);
        let mut chars = after.char_indices();
        while let Some((i, c)) = chars.next() {
            match c {
                '\\' => value.push(match chars.next().unwrap().1 {
                    'n' => '\n',
                    c => c,
                }),
                '"' => {
                    end = i + 1;
                    break;
                }
                c => value.push(c),
            }
        }
        out.push((name.to_string(), value));
        match after[end..].strip_prefix(',') {
            Some(more) => rest = more,
            None => return (out, after[end..].strip_prefix('}').unwrap()),
        }
    }
}

/// Elements of an XML document in order, with their attributes; panics where it is not well formed or breaks the schema of JUnit.
pub fn junit(text: &str) -> Vec<(String, Pairs)> {
    let (mut open, mut out): (Vec<String>, Vec<(String, Pairs)>) = (vec![], vec![]);
    let mut last = 0;
    let mut rest = text.strip_prefix("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n").unwrap();
    while let Some(at) = rest.find('<') {
        assert!(!rest[..at].contains('>') && !rest[..at].chars().any(|c| c.is_control() && c != '\n'), "{}", &rest[..at]);
        let end = rest.find('>').unwrap();
        let tag = &rest[at + 1..end];
        rest = &rest[end + 1..];
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(name));
            assert!(name != "testsuite" || last == 3, "a suite ends without its texts");
            continue;
        }
        let (tag, closed) = tag.strip_suffix('/').map_or((tag, false), |t| (t, true));
        let (name, mut attributes) = tag.split_once(' ').map_or((tag, ""), |x| x);
        let mut all = vec![];
        while let Some((key, after)) = attributes.split_once("=\"") {
            let (value, after) = after.split_once('"').unwrap();
            assert!(!value.contains('<'));
            let value = value.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&");
            all.push((key.trim().to_string(), value));
            attributes = after;
        }
        let within: &[&str] = match open.last().map(String::as_str) {
            None => &["testsuites"],
            Some("testsuites") => &["testsuite"],
            Some("testsuite") => &["properties", "testcase", "system-out", "system-err"],
            Some("properties") => &["property"],
            Some("testcase") => &["failure", "skipped"],
            Some(other) => panic!("nothing stands in {other}"),
        };
        assert!(within.contains(&name), "{name} in {open:?}");
        // What both the schema of Jenkins' plug-in for test results (junit-10.xsd) and that of Ant's reports (JUnit.xsd of Windy Road)
        // know of each. The second takes no text of a test case, and wants the children of a suite in this order, the last two always.
        let order = ["properties", "testcase", "system-out", "system-err"];
        let place = |n: &str| order.iter().position(|o| *o == n).unwrap_or(0);
        if open.last().is_some_and(|o| o == "testsuite") {
            assert!(
                place(name) >= last && (name == "testcase" || place(name) != last || name == "properties"),
                "{name} after {}",
                order[last]
            );
            last = place(name);
        } else if name == "testsuite" {
            last = 0;
        }
        let may: &[&str] = match name {
            "testsuite" => &["name", "tests", "failures", "errors", "time", "skipped", "timestamp", "hostname", "id", "package"],
            "testcase" => &["name", "time", "classname"],
            "property" => &["name", "value"],
            "failure" | "skipped" => &["type", "message"],
            _ => &[],
        };
        assert!(all.iter().all(|a: &(String, String)| may.contains(&a.0.as_str())), "{name}: {all:?}");
        let needs: &[&str] = match name {
            "testsuite" => &["name", "tests", "failures", "errors", "skipped", "time", "timestamp", "hostname", "id", "package"],
            "testcase" => &["classname", "name", "time"],
            "property" => &["name", "value"],
            "failure" => &["message", "type"],
            "skipped" => &["message"],
            _ => &[],
        };
        if name == "testsuite" {
            let of = |key: &str| all.iter().find(|a| a.0 == key).map_or("", |a| &a.1);
            let suites = out.iter().filter(|e: &&(String, Pairs)| e.0 == "testsuite").count();
            assert!(of("id") == suites.to_string() && !of("name").trim().is_empty(), "{all:?}");
            let shape: String = of("timestamp").chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
            assert_eq!(shape, "0000-00-00T00:00:00", "{all:?}");
        }
        assert!(needs.iter().all(|n| all.iter().any(|a| a.0 == *n)), "{name}: {all:?}");
        out.push((name.to_string(), all));
        if !closed {
            open.push(name.to_string());
        }
    }
    assert!(open.is_empty(), "{open:?}");
    out
}

pub fn attribute<'a>(e: &'a (String, Pairs), name: &str) -> &'a str {
    e.1.iter().find(|a| a.0 == name).map_or("", |a| &a.1)
}

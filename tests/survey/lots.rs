//! Lots of cards: one table, lists, tables for statistics, a page.

use super::figures::Lab;
use std::process::Command;

/// Lots at a glance: one table, each figure with the number of its cards.
#[test]
fn lots_at_a_glance() {
    let lab = Lab::new();
    for (lot, rates) in [("A", [300, 302, 305]), ("B", [150, 155, 149]), ("C", [310, 299, 303])] {
        for r in rates {
            let f = lab.file(
                &format!("{lot}{r}.txt"),
                &format!("BUF_SIZE = 512 bytes\nwrite speed and latency\nspeed,max,min,avg\n{r}.5,90000,1000,1100\n"),
            );
            lab.survey(&["add", &f, "--lot", lot, "--host", "Arduino Uno"]);
        }
    }
    let (code, out, err) = lab.run_at("80", &["survey", "--dir", "s", "compare", "--by", "lot"]);
    assert!(code == 0 && err.is_empty(), "{out}{err}");
    // In 80 columns the third lot stands below the others.
    let line = |name: &str| -> Vec<String> {
        let cells = |l: &str| l[name.len()..].split("  ").map(|c| c.trim().to_string()).filter(|c| !c.is_empty()).collect::<Vec<_>>();
        out.lines().filter(|l| l.starts_with(name)).flat_map(cells).collect()
    };
    assert_eq!((line("lot  "), line("cards")), (["A", "B", "C"].map(String::from).to_vec(), ["3", "3", "3"].map(String::from).to_vec()));
    assert!(out.contains("\nrates: Arduino Uno"), "{out}");
    assert_eq!(line("counterfeit"), ["not tested"; 3]);
    let rates = line("record write, 512 B records");
    // Three against three, apart altogether, is 2 of 20 ways: no star.
    assert_eq!(rates, ["302 kB/s (300 to 306)", "150 kB/s x0.50 (150 to 156)", "304 kB/s (300 to 310)"].map(String::from));
    assert!(out.lines().take(8).all(|l| l.chars().count() <= 110), "{out}");
    assert!(lab.survey(&["compare", "--by", "lot", "lot=A"]).1.contains("no figure that two lots have"));
    let (_, two, _) = lab.survey(&["compare", "lot=A", "--against", "lot=B"]);
    assert!(two.contains("first  3 cards") && two.contains("second 3 cards") && two.contains("2.01"), "{two}");
}

/// The cells of a line of CSV.
fn cells(line: &str) -> Vec<String> {
    let (mut out, mut quoted) = (vec![String::new()], false);
    for c in line.chars() {
        match c {
            '"' => quoted = !quoted,
            ',' if !quoted => out.push(String::new()),
            c => out.last_mut().unwrap().push(c),
        }
    }
    out
}

/// Two lots of a genuine card and of a counterfeit, probed.
fn two_lots(lab: &Lab) {
    for (card, lot) in [("usb-stick", "A"), ("fake-wrap-32gb", "B")] {
        let mut files = vec![];
        for seed in ["3", "4"] {
            let json = format!("{lot}{seed}.json");
            let code = lab.run(&["probe", &format!("sim:{card}?seed={seed}"), "--seed", seed, "-q", "--json", &json]).0;
            assert!([0, 6].contains(&code), "{card}: {code}");
            files.push(json);
        }
        let files: Vec<&str> = files.iter().map(String::as_str).collect();
        assert_eq!(lab.survey(&[&["add", "--lot", lot, "--price", "4.90 EUR"], &files[..]].concat()).0, 0);
    }
}

/// Lists fit a terminal, own cards stand before published ones, which can be left out; a table for statistics has a value a line.
#[test]
fn lists_tables_and_sites_of_lots() {
    let lab = Lab::new();
    two_lots(&lab);
    let out = Command::new(env!("CARGO_BIN_EXE_nandscope"))
        .args(["survey", "--dir", "s", "list"])
        .env("COLUMNS", "80")
        .current_dir(lab.dir.path())
        .output()
        .unwrap();
    let list = String::from_utf8(out.stdout).unwrap();
    assert!(list.lines().all(|l| l.chars().count() <= 80), "{list}");
    let at = |what: &str| list.find(what).unwrap_or_else(|| panic!("{what}: {list}"));
    assert!(at("4.90 EUR") < at("Published") && at("Published") < at("ref-"), "{list}");
    assert!(list.contains("COUNTERFEIT: 4.3 GB") && list.contains("32.0 GB"), "{list}");
    let (_, own, _) = lab.survey(&["list", "--no-published"]);
    assert!(own.ends_with("4 cards\n") && !own.contains("ref-"), "{own}");
    assert_eq!(lab.survey(&["search", "published=no"]).1, own);
    assert_eq!(lab.survey(&["search", "published=maybe"]).0, 2);
    for either in [&["lot=A or lot=B"][..], &["lot=A", "or", "lot=B"], &["lot=A", "or", "counterfeit=yes"]] {
        assert_eq!(lab.survey(&[&["search", "--no-published"], either].concat()).1, own, "{either:?}");
    }
    assert!(lab.survey(&["search", "lot=A", "or", "lot=B", "counterfeit=yes"]).1.ends_with("2 cards\n"), "binds the two beside it");
    for whose in [&["search", "lot=A", "or"][..], &["search", "lot=A", "or", "--no-published"], &["chart", "lot=A", "or"]] {
        let (code, _, err) = lab.survey(whose);
        assert!(code == 2 && err.contains("stands between two conditions"), "{whose:?}: {err}");
    }

    let (_, long, _) = lab.survey(&["export", "--format", "long", "--no-published"]);
    let rows: Vec<Vec<String>> = long.lines().map(cells).collect();
    let column = |name: &str| rows[0].iter().position(|c| c == name).unwrap();
    let mut names = rows[0].clone();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), rows[0].len(), "{:?}", rows[0]);
    let of = |lot: &str, what: &str| -> Vec<&Vec<String>> {
        rows.iter().filter(|r| r[column("quantity")] == what && r[column("lot")] == lot).collect()
    };
    let fakes = of("B", "capacity_found");
    assert_eq!(fakes.len(), 2);
    for r in fakes {
        assert_eq!(["value", "unit", "counterfeit"].map(|c| r[column(c)].as_str()), ["4294967296", "B", "yes"], "{r:?}");
    }
    let merges = of("A", "close_cost_ms");
    assert_eq!(merges.len(), 2);
    for r in merges {
        let number = |c: &str| r[column(c)].parse::<f64>().unwrap_or_else(|_| panic!("{c}: {r:?}"));
        assert!(number("low") <= number("value") && number("value") <= number("high") && r[column("unit")] == "ms", "{r:?}");
    }

    // A page a card: what it is and what it cost, in less than 100 kB; with all accesses only where that is asked for.
    for (args, least, most) in [(&[][..], 10_000, 100_000), (&["--samples", "all", "lot=A"][..], 200_000, 700_000)] {
        assert_eq!(lab.survey(&[&["site", "web", "--no-published"], args].concat()).0, 0);
        let pages = std::fs::read_dir(lab.dir.path().join("web/cards")).unwrap().map(|e| e.unwrap().path());
        let pages: Vec<String> =
            pages.map(|p| std::fs::read_to_string(p).unwrap()).filter(|p| args.is_empty() || p.contains("USB stick")).collect();
        assert_eq!(pages.len(), if args.is_empty() { 4 } else { 2 });
        for p in pages {
            assert!((least..=most).contains(&p.len()), "{args:?}: {}", p.len());
            assert!(p.contains("4.90 EUR") && p.contains(".json"), "price and file");
        }
        std::fs::remove_dir_all(lab.dir.path().join("web")).unwrap();
    }

    let (_, chart, _) = lab.run_at("80", &["survey", "--dir", "s", "chart", "--figure", "sequential-write-one-au-1-kib"]);
    assert!(chart.contains("RATE PER PRICE") && chart.contains("kB/s/EUR") && chart.contains("USB stick"), "{chart}");
    assert!(chart.lines().all(|l| l.chars().count() <= 80), "{chart}");

    let (code, _, err) = lab.survey(&["compare", "--by", "lot", "--html", "lots.html"]);
    let sheet = std::fs::read_to_string(lab.at("lots.html")).unwrap();
    assert_eq!(code, 0, "{err}");
    assert!(sheet.contains("2 of 2") && sheet.contains("0 of 2") && sheet.len() < 40_000, "{}", sheet.len());
    assert!(sheet.matches("<tr>").count() <= 41, "one sheet");
}

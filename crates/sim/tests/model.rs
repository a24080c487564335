//! Model files: every card reads, checks and writes itself; every mistake is named with file, key and reason.

use nandscope_sim::{Card, Mapping, Model, Request, Rng, cards};

const GOOD: &str = r#"
name = "test"
[host]
rate = "20 MB/s"
[card]
capacity = "1 GiB"
[nand]
page = "8 KiB"
erase_block = "4128 KiB"
erase_block_offset = "1 MiB"
[ftl]
kind = "block-map"
open_linear = 4
open_random = 2
"#;

fn error(text: &str) -> String {
    match Model::parse(text, "x.toml") {
        Ok(_) => panic!("accepted:\n{text}"),
        Err(e) => e.to_string(),
    }
}

#[test]
fn every_card_writes_itself() {
    for (name, text) in cards::ALL {
        let model = Model::parse(text, name).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(model.name, *name);
        assert!(!model.about.is_empty(), "{name}");
        let again = Model::parse(&model.to_toml(), name).unwrap_or_else(|e| panic!("{e}\n{}", model.to_toml()));
        assert_eq!(again, model, "{name}");
    }
}

#[test]
fn the_truth_follows_from_the_model() {
    let truth = Model::parse(GOOD, "x").unwrap().truth();
    assert_eq!((truth.erase_block, truth.erase_block_offset), (4128 << 10, 1 << 20));
    assert_eq!((truth.open_aus_linear, truth.open_aus_random, truth.mapping), (Some(4), Some(2), Mapping::Block));
    assert!(!truth.read_boundary_visible, "no sense time, no step");
    let of = |name| Model::parse(cards::text(name).unwrap(), name).unwrap().truth();
    let readme = of("flashbench-readme");
    assert_eq!((readme.page, readme.access_unit, readme.erase_block), (8 << 10, 16 << 10, 4 << 20));
    assert_eq!((readme.read_steps.page_ns, readme.read_steps.access_unit_ns, readme.read_steps.erase_block_ns), (53_000, 165_000, 303_000));
    assert_eq!(of("toshiba-emmc").write_unit, 32 << 10);
    assert_eq!(of("sandisk-emmc").open_aus_linear, Some(20));
    assert_eq!(of("page-mapped").open_aus_linear, None);
    assert_eq!(of("usb-stick").open_aus_random, Some(0));
    assert_eq!(of("null").mapping, Mapping::None);
    assert_eq!(of("null").erase_block, 0);
}

#[test]
fn mistakes_are_named() {
    let cases: &[(&str, &str, &str)] = &[
        ("page = \"8 KiB\"", "page = \"8 parsecs\"", "x.toml: nand.page: \"8 parsecs\" is not a size"),
        ("page = \"8 KiB\"", "page = -1", "x.toml: nand.page: -1 is not a size"),
        ("page = \"8 KiB\"", "page = 1000", "x.toml: nand.page: 1000 is not a multiple of card.sector (512)"),
        ("page = \"8 KiB\"", "", "x.toml: nand.page: is missing"),
        ("page = \"8 KiB\"", "page = \"5 GiB\"", "x.toml: nand.page: 5 GiB lies outside 512 B to 16 MiB"),
        ("open_linear = 4", "open_linear = 0", "x.toml: ftl.open_linear: 0 lies outside 1 to 4096"),
        ("open_linear = 4", "open_linear = 1", "x.toml: ftl.open_random: is larger than ftl.open_linear"),
        ("open_linear = 4", "open_liner = 4", "x.toml: ftl.open_linear: is missing"),
        ("rate = \"20 MB/s\"", "rat = \"20 MB/s\"", "x.toml: host.rat: is not a key here; known are buffer, call, command"),
        (
            "kind = \"block-map\"",
            "kind = \"blockmap\"",
            "x.toml: ftl.kind: \"blockmap\" is none of none, block-map, log-block, write-through, page-map",
        ),
        (
            "erase_block = \"4128 KiB\"",
            "erase_block = \"4100 KiB\"",
            "x.toml: nand.erase_block: 4198400 is not a multiple of nand.access_unit",
        ),
        ("offset = \"1 MiB\"", "offset = \"5 MiB\"", "x.toml: nand.erase_block_offset: must be smaller than nand.erase_block"),
        ("capacity = \"1 GiB\"", "capacity = 1073741825", "x.toml: card.capacity: 1073741825 is not a multiple of card.sector"),
        ("capacity = \"1 GiB\"", "capacity = \"1 MiB\"", "x.toml: nand.erase_block: is larger than card.capacity"),
        ("name = \"test\"", "name = \"a b\"", "x.toml: name: must be one word"),
        ("name = \"test\"", "name = ", "x.toml: TOML: line 2, column 8"),
        ("[host]", "[[stall]]\ntime = \"1 ms\"\n[host]", "x.toml: stall[0].every_bytes: set exactly one of"),
        ("[host]", "stall = 3\n[host]", "x.toml: stall: is not a list"),
        ("[host]", "[[fault]]\nkind = \"fire\"\n[host]", "x.toml: fault[0].kind: \"fire\" is none of io, gone, read-only"),
        ("[host]", "[host]\ntail = \"2 ms\"\ntail_cap = \"1 ms\"", "x.toml: host.tail_cap: is smaller than host.tail"),
        ("[host]", "[slc]\nsize = \"2 GiB\"\n[host]", "x.toml: slc.size: is larger than card.capacity"),
        (
            "open_linear = 4",
            "open_linear = 4\nfat_zone = \"1 GiB\"\nsmall_write = \"4 KiB\"",
            "x.toml: ftl.small_log: small_write and small_log go together",
        ),
        ("[card]", "[nand]\n[card]", "x.toml: TOML: line 8, column 2: duplicate key"),
    ];
    assert!(Model::parse(GOOD, "x.toml").is_ok());
    for (from, to, expected) in cases {
        assert!(GOOD.contains(from), "{from}");
        let message = error(&GOOD.replacen(from, to, 1));
        assert!(message.starts_with(expected), "{message}\ninstead of\n{expected}");
    }
    assert!(error("").starts_with("x.toml: name: is missing"));
    let none = GOOD.replace("block-map\"\nopen_linear = 4\nopen_random = 2", "none\"\n[wear]\nbad = 1");
    assert!(error(&none).starts_with("x.toml: wear: is followed only where"), "{}", error(&none));
    let pages = GOOD.replace("block-map", "page-map").replace("open_linear = 4\nopen_random = 2", "over_provisioning = 0.01");
    assert!(error(&pages).starts_with("x.toml: ftl.over_provisioning: leaves 2 spare erase blocks"), "{}", error(&pages));
}

#[test]
fn formats_md_lists_every_key() {
    let table = Model::key_table();
    for key in
        ["`name`", "`host.rate`", "`nand.erase_block`", "`ftl.open_linear`", "`ftl.over_provisioning`", "`stall[].time`", "`fault[].at`"]
    {
        assert!(table.contains(key), "{key} in\n{table}");
    }
    assert!(table.contains("| `nand.page` | size | required |"));
    let formats = include_str!("../../../FORMATS.md");
    assert!(formats.contains(&table), "FORMATS.md is behind; cargo run -p nandscope-sim --example key_table prints the table");
    let example = formats.split("```toml\n").nth(1).and_then(|t| t.split("```").next()).expect("an example");
    assert_eq!(Model::parse(example, "FORMATS.md").unwrap_or_else(|e| panic!("{e}")).truth().open_aus_random, Some(2));
}

/// Whatever a file holds, the answer is a model that makes a card, or a message with file, key and reason.
#[test]
fn no_file_does_worse_than_an_error() {
    let mut rng = Rng::new(4, 4);
    let words = [
        "0",
        "1",
        "\"4 MiB\"",
        "\"1 TiB\"",
        "\"1 us\"",
        "true",
        "[]",
        "{}",
        "-5",
        "9999999999",
        "\"\"",
        "1e300",
        "nan",
        "\"lru\"",
        "\"page-map\"",
    ];
    let (mut good, mut bad) = (0, 0);
    for k in 0..6000usize {
        let mut lines: Vec<String> = cards::ALL[k % cards::ALL.len()].1.lines().map(str::to_string).collect();
        for _ in 0..1 + rng.below(2) {
            let i = rng.below(lines.len() as u64) as usize;
            match rng.below(3) {
                0 => drop(lines.remove(i)),
                1 => {
                    let other = cards::ALL[rng.below(cards::ALL.len() as u64) as usize].1.lines().nth(i).unwrap_or("x").to_string();
                    lines[i] = other;
                }
                _ => {
                    if let Some((key, _)) = lines[i].clone().split_once('=') {
                        lines[i] = format!("{key}= {}", words[rng.below(words.len() as u64) as usize]);
                    }
                }
            }
        }
        match Model::parse(&lines.join("\n"), "mutant.toml") {
            Ok(m) => {
                good += 1;
                assert_eq!(Model::parse(&m.to_toml(), "again").unwrap_or_else(|e| panic!("{e}")), m);
                if good % 8 == 0 {
                    let mut card = Card::new(&m, 1);
                    let _ = card.submit(0, Request::write(0, m.card.sector));
                    let _ = card.submit(0, Request::read(m.card.capacity - m.card.sector, m.card.sector));
                }
            }
            Err(e) => {
                bad += 1;
                assert!(e.file == "mutant.toml" && !e.key.is_empty() && !e.reason.is_empty());
            }
        }
    }
    assert!(good > 1000 && bad > 1000, "{good} {bad}");
}

/// Every key of every kind of card with impossible values: either a message that names the key (or the one it clashes with), or
/// a card that serves requests. What a card takes of memory stays bounded.
#[test]
fn every_key_stands_impossible_values() {
    let values = [
        "0",
        "-1",
        "1",
        "513",
        "9223372036854775807",
        "nan",
        "inf",
        "-inf",
        "1e300",
        "0.5",
        "true",
        "\"\"",
        "\"-4 KiB\"",
        "\"1e9 MiB\"",
        "\"4 TiB\"",
        "\"99999999999999999999 GiB\"",
        "\"3 MiB\"",
        "\"100 s\"",
        "\"1 B/s\"",
        "\"NaN\"",
        "[]",
        "{}",
        "[[]]",
        "1979-05-27",
        "\"\\u0000\"",
        "4294967296",
        "16777216",
        "4096",
    ];
    let base = |ftl: &str| {
        format!(
            "name = \"t\"\n[card]\ncapacity = \"1 GiB\"\n[nand]\npage = \"8 KiB\"\nerase_block = \"4 MiB\"\nprogram = \"1 ms\"\n[ftl]\n{ftl}\n"
        )
    };
    let kinds = [
        ("none", ""),
        ("block-map", "open_linear = 4\nopen_random = 2"),
        ("log-block", "pool = 4"),
        ("page-map", "over_provisioning = 0.07"),
        ("write-through", ""),
    ];
    let table = Model::key_table();
    let keys: Vec<&str> = table.lines().filter_map(|l| l.strip_prefix("| `")?.split('`').next()).collect();
    assert!(keys.len() > 80, "{}", keys.len());
    let (mut good, mut bad) = (0u32, 0u32);
    for (kind, more) in kinds {
        for key in &keys {
            for value in values {
                let (place, last) = key.rsplit_once('.').unwrap_or(("", key));
                let mut doc: toml::Table = base(&format!("kind = \"{kind}\"\n{more}")).parse().expect("valid");
                let set: toml::Value = format!("x = {value}").parse::<toml::Table>().expect("a value")["x"].clone();
                let list = place.strip_suffix("[]");
                match (place, list) {
                    ("", _) => drop(doc.insert(last.into(), set)),
                    (_, Some(list)) => {
                        let least: toml::Table = match list {
                            "stall" => "time = 1000\nevery_commands = 7".parse(),
                            "fault" => "kind = \"io\"\nat = \"512 MiB\"".parse(),
                            "area" => "at = \"64 MiB\"\nlen = \"1 MiB\"\ndoes = \"drop\"".parse(),
                            _ => "heat = \"1 MiB\"\ncool = \"1 MB/s\"\npercent = 120".parse(),
                        }
                        .expect("valid");
                        let mut one = least;
                        one.insert(last.into(), set);
                        doc.insert(list.into(), toml::Value::Array(vec![one.into()]));
                    }
                    _ => {
                        let part = doc.entry(place).or_insert_with(|| toml::Table::new().into());
                        part.as_table_mut().expect("a table").insert(last.into(), set);
                    }
                }
                match Model::parse(&doc.to_string(), "x.toml") {
                    Err(e) => {
                        bad += 1;
                        let table = e.key.split(['.', '[']).next().unwrap_or("");
                        let named = e.to_string().contains(last) || ["card", "nand", "ftl", "host", "wear"].contains(&table);
                        assert!(named && e.file == "x.toml" && !e.reason.is_empty(), "{kind} {key} = {value}: {e}");
                    }
                    Ok(m) => {
                        good += 1;
                        let mut card = Card::new(&m, 1);
                        let size = m.card.capacity;
                        let sector = m.card.sector;
                        for k in 0..6u64 {
                            let at = size / 6 / sector * sector * k;
                            for r in [
                                Request::write(at, sector.max(16 << 10).min(size - at)),
                                Request::read(at, sector),
                                Request::write(at, sector),
                            ] {
                                let _ = card.submit(0, r);
                            }
                        }
                        card.power_cut();
                    }
                }
            }
        }
    }
    assert!(good > 1500 && bad > 5000, "{good} {bad}");
    // 2 GB where the system says: a slip of the pen must not take the machine down.
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|l| l.strip_prefix("VmHWM:")).and_then(|l| l.split_whitespace().next()?.parse::<u64>().ok());
    assert!(peak.unwrap_or(0) < 2_000_000, "{peak:?} kB at most");
}

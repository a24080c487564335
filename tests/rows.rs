//! What the five documents describe, as a user types it, beside the figures of the documents and with other sizes, counts and spellings.
//!
//! covers: C1, C2, C3, C19, F1, F2, F3, F12, F14, F15, F17, F18, F19, G11, G12, Q2, Q3, Q4, Q5, Q9, Q12

#[path = "common/program.rs"]
mod program;

use nandscope_sim::cards;
use program::program;
use serde_json::Value;
use std::path::Path;

const MIB: u64 = 1 << 20;

/// Exit code, what was printed, and what was said beside it.
fn ran(args: &str) -> (Option<i32>, String, String) {
    let out = program().args(args.split_whitespace()).output().unwrap();
    (out.status.code(), String::from_utf8(out.stdout).unwrap(), String::from_utf8(out.stderr).unwrap())
}

fn ok(args: &str) -> String {
    let (code, out, err) = ran(args);
    assert_eq!(code, Some(0), "{args}: {out}{err}");
    out
}

/// A built-in card with other values.
fn card(dir: &Path, name: &str, changed: &[(&str, &str)]) -> String {
    let mut lines: Vec<String> = cards::text(name).unwrap().lines().map(str::to_string).collect();
    for (key, value) in changed {
        let at = lines.iter().position(|l| l.starts_with(&format!("{key} = "))).unwrap_or_else(|| panic!("{name} has no {key}"));
        lines[at] = format!("{key} = {value}");
    }
    let path = dir.join(format!("{name}.toml"));
    std::fs::write(&path, lines.join("\n")).unwrap();
    path.display().to_string()
}

fn json(args: &str) -> Value {
    let (_, out, err) = ran(&format!("{args} --json -"));
    serde_json::from_str(&out).unwrap_or_else(|e| panic!("{args}: {e}: {out}{err}"))
}

/// The value of a finding, or what it is at least.
fn found(report: &Value, quantity: &str) -> (Option<f64>, Option<f64>) {
    let f = report["findings"].as_array().unwrap().iter().find(|f| f["quantity"] == quantity).unwrap_or_else(|| panic!("{report:#}"));
    (f["value"].as_f64(), f["at_least"].as_f64())
}

/// C1, C2, C3: a sector that is rewritten costs a whole erase block, 32 and 256 times as much as was sent; a whole one costs itself.
#[test]
fn a_sector_costs_an_erase_block() {
    let dir = tempfile::tempdir().unwrap();
    let amplification = |card: &str, size: u64| {
        let r = json(&format!("sim {card} --pattern random-write-{size} --requests 300 -q"));
        r["outcome"]["write_amplification"].as_f64().unwrap_or_else(|| panic!("{r:#}"))
    };
    for (name, page, block) in [("chan-sdc-128mb", "512 B", 16u64), ("chan-sdc-512mb", "2 KiB", 128)] {
        let text = cards::text(name).unwrap();
        assert!(text.contains(&format!("page = \"{page}\"")) && text.contains(&format!("erase_block = \"{block} KiB\"")), "{name}");
        for block in [block, block / 2, block * 4] {
            let card = card(dir.path(), name, &[("erase_block", &format!("\"{block} KiB\""))]);
            let one = amplification(&card, 512);
            assert!((one / (2 * block) as f64 - 1.0).abs() < 0.02, "{name}, {block} KiB: {one}");
            // The first rewrites at the end of a write, the second whenever its buffer of 4 KiB is full.
            let (whole, due) = (amplification(&card, block << 10), if name == "chan-sdc-128mb" { 1.0 } else { block as f64 / 4.0 });
            assert!((whole / due - 1.0).abs() < 0.02, "{name}, {block} KiB: {whole}");
        }
    }
    let advice = ok("probe sim:chan-sdc-128mb");
    assert!(advice.contains("for a smaller write on its own the card programs as much"), "{advice}");
}

/// C19: open and close are timed apart from the writes, and closing costs more where no fast zone holds the FAT.
#[test]
fn open_and_close_are_timed_apart() {
    let dir = tempfile::tempdir().unwrap();
    let with = card(dir.path(), "chan-sdc-512mb", &[]);
    let times = |card: &str| {
        let r = json(&format!("bench {card} --record 2KiB --file 300kB --no-read -q"));
        let p = &r["benches"][0]["passes"][0];
        (p["open_us"].as_f64().unwrap(), p["close_us"].as_f64().unwrap(), p["elapsed_ns"].as_f64().unwrap() / 1e3)
    };
    let (open, close, elapsed) = times(&with);
    assert!(open > 0.0 && close > open && close < elapsed / 10.0, "{open} {close} {elapsed}");
    let without = card(dir.path(), "chan-sdc-512mb", &[("fat_zone", "\"0 B\"")]);
    assert!(times(&without).1 > 5.0 * close, "{:?} {close}", times(&without));
    let text = ok(&format!("bench {with} --record 2KiB --file 300kB --no-read -q"));
    assert!(text.contains("open ") && text.contains("last sync and close "), "{text}");
}

/// Microseconds of "738µs", "1.04ms", "-687ns".
fn us(text: &str) -> f64 {
    let at = text.find(|c: char| c.is_alphabetic() || c == 'µ').unwrap_or_else(|| panic!("{text}"));
    let n: f64 = text[..at].parse().unwrap();
    n * match &text[at..] {
        "ns" => 1e-3,
        "µs" => 1.0,
        "ms" => 1e3,
        "s" => 1e6,
        other => panic!("{other}"),
    }
}

/// F1, F2, F3, F12: reads only, any multiple of 1 KiB, the largest alignment first and down to twice the block, diff as it is defined,
/// and the columns in words below.
#[test]
fn alignment_tables_are_flashbenchs() {
    for (card, block, first) in [
        ("flashbench-readme", 1024u64, 128 * MIB),
        ("flashbench-readme", 2048, 128 * MIB),
        ("flashbench-readme", 3072, 192 * MIB),
        ("flashbench-readme", 65_536, 128 * MIB),
        ("toshiba-emmc", 4096, 2048 * MIB),
        ("olpc-c-8gb", 1024, 2048 * MIB),
    ] {
        let (_, out, err) = ran(&format!("flashbench -a -b {block} sim:{card}"));
        assert!(err.contains("writes nothing"), "{err}");
        let rows: Vec<Vec<&str>> = out.lines().filter(|l| l.starts_with("align ")).map(|l| l.split('\t').collect()).collect();
        let align = |r: &Vec<&str>| r[0].strip_prefix("align ").unwrap().parse::<u64>().unwrap();
        let aligns: Vec<u64> = rows.iter().map(align).collect();
        assert_eq!(aligns[0], first, "{card}: {out}");
        assert!(aligns.windows(2).all(|w| w[0] > w[1]), "{aligns:?}");
        let last = *aligns.last().unwrap();
        assert!(last >= 2 * block && last < 4 * block, "{card} {block}: {last}");
        for r in &rows {
            let of = |k: usize, name: &str| us(r[k].strip_prefix(name).unwrap_or_else(|| panic!("{r:?}")).trim());
            let [pre, on, post, diff] = [of(1, "pre"), of(2, "on"), of(3, "post"), of(4, "diff")];
            // Each is printed with three digits.
            let rounded = 0.005 * (pre + on + post);
            assert!((on - (pre + post) / 2.0 - diff).abs() <= rounded.max(5.0), "{r:?}");
        }
        for words in ["# pre: a read of", "on: one across it", "post: one that begins at it", "diff = on - (pre + post) / 2"] {
            assert!(out.contains(words), "{out}");
        }
    }
    for block in ["512", "1536", "1000", "0"] {
        let (code, out, err) = ran(&format!("flashbench -a -b {block} sim:flashbench-readme"));
        assert!(code == Some(2) && out.is_empty() && err.lines().count() <= 4, "{block}: {code:?} {out}{err}");
    }
}

/// F14, F15: flashbench's spellings of one test give the same rows, largest first, in M/s of 10^6.
#[test]
fn spellings_of_the_open_au_test_are_one() {
    let rows = |args: &str| -> Vec<String> {
        let out = ok(&format!("flashbench -q {args}"));
        out.lines().filter(|l| !l.starts_with('#')).map(|l| l.trim_end().to_string()).collect()
    };
    let plain = rows("-O -0 3 -e 4MiB -b 1MiB sim:flashbench-readme");
    let sizes: Vec<&str> = plain.iter().map(|r| r.split_whitespace().next().unwrap()).collect();
    assert_eq!(sizes, ["4MiB", "2MiB", "1MiB"]);
    assert!(plain.iter().all(|r| r.ends_with("M/s") || r.ends_with("K/s")), "{plain:?}");
    for other in [
        "-O -03 -e 4194304 -b 1048576 sim:flashbench-readme",
        "--open-au --open-au-nr=3 --erasesize=4MiB --blocksize=1M sim:flashbench-readme",
        "sim:flashbench-readme -b 1M -e 4M --open-au-n=3 -O",
        "-O0 3 -e 4096K -b 1024K sim:flashbench-readme",
    ] {
        assert_eq!(rows(other), plain, "{other}");
    }
    assert_eq!(
        rows("-rO0 3 -e 4MiB -b 1MiB sim:flashbench-readme"),
        rows("--random --open-au --open-au-nr 3 -e 4MiB -b 1MiB sim:flashbench-readme")
    );
    let odd = rows("-O -0 2 -e 6291456 -b 98304 sim:flashbench-readme");
    assert_eq!(odd.last().unwrap().split_whitespace().next(), Some("96KiB"), "{odd:?}");
}

/// F17, F18, F19: the cut is found by itself, in both orders, as two numbers.
#[test]
fn two_numbers_of_open_aus() {
    let dir = tempfile::tempdir().unwrap();
    for (linear, random) in [(6, 2), (5, 0), (9, 1), (12, 5), (3, 3)] {
        let changed = [("open_linear", linear.to_string()), ("open_random", random.to_string())];
        let card = card(dir.path(), "flashbench-readme", &changed.each_ref().map(|(k, v)| (*k, v.as_str())));
        let r = json(&format!("probe {card} -q"));
        assert_eq!(found(&r, "open_aus_linear"), (Some(f64::from(linear)), None), "{linear}/{random}");
        assert_eq!(found(&r, "open_aus_random"), (Some(f64::from(random)), None), "{linear}/{random}");
    }
}

/// G11, G12: why small records stall is part of the help; the model of the 64 GB card shows it: dead space, collections, a tail.
#[test]
fn small_records_and_why_they_stall() {
    let help = ok("bench --help").replace('\n', " ");
    for words in
        ["dead until erased", "an erase block of 256 KiB", "static wear levelling", "eight levels of charge", "fewer than 100 electrons"]
    {
        assert!(help.contains(words), "{words}: {help}");
    }
    // 16 KiB of flash for each sector, and the collections; the industrial card keeps sectors together.
    let of = |card: &str| {
        json(&format!("sim {card} --pattern sequential-write-512 --requests 4000 -q"))["outcome"]["write_amplification"].as_f64()
    };
    let (small, industrial) = (of("sdxc-64gb").unwrap(), of("wintec-1gb").unwrap());
    assert!(small > 32.0 && industrial < 2.0, "{small} {industrial}");
    let r = json("bench sim:sdxc-64gb --record 100 --no-read -q");
    let longest = r["benches"][0]["passes"][0]["max_us"].as_f64().unwrap();
    assert!((longest / 192_708.0 - 1.0).abs() < 0.1, "{longest}");
}

/// Q2: what does not fit is refused with the figure, never wrapped.
#[test]
fn aus_that_do_not_fit_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    for (mib, aus, spacing, needs) in [
        (314u64, 7, 12, None),
        (314, 8, 12, Some(356)),
        (314, 20, 12, Some(932)),
        (314, 50, 2, Some(412)),
        (40, 2, 12, Some(68)),
        (40, 3, 2, None),
        (40, 4, 2, Some(44)),
    ] {
        let path = dir.path().join("card.img");
        std::fs::File::create(&path).unwrap().set_len(mib * MIB).unwrap();
        let (code, _, err) = ran(&format!("flashbench -O -0 {aus} -e 4MiB -b 1MiB --spacing {spacing} {} --dry-run", path.display()));
        match needs {
            None => assert_eq!(code, Some(0), "{mib} {aus}: {err}"),
            Some(n) => {
                assert!(code == Some(4) && err.contains(&format!("needs {n} MiB")) && err.contains("would wrap"), "{mib} {aus}: {err}")
            }
        }
    }
}

/// Q3, Q4: the place of a partition counts, and one of a few erase blocks says that it is too small.
#[test]
fn partitions_have_places_of_their_own() {
    let start = 1024 * MIB + 512;
    let text = ok(&format!("partitions sim:toshiba-emmc --part 42MiB..82MiB --part {start}..{} --part 2GiB..2304MiB", start + 314 * MIB));
    assert!(text.contains("part 1: begins 2 MiB past a multiple of the erase block of 4 MiB (99 %)"), "{text}");
    assert!(text.contains("part 1: holds only 10 erase blocks: too few to spread writes over"), "{text}");
    assert!(text.contains("part 2: begins 512 B past a multiple") && !text.contains("part 2: holds only"), "{text}");
    assert!(text.contains("part 3: begins on a multiple of the erase block of 4 MiB"), "{text}");
}

/// Q5: where reads are flat, writes across boundaries show the page, of whatever size.
#[test]
fn writes_show_what_reads_hide() {
    let dir = tempfile::tempdir().unwrap();
    for (page, kib) in [("16 KiB", 16u64), ("8 KiB", 8), ("32 KiB", 32)] {
        let text = cards::text("sandisk-emmc").unwrap();
        assert!(text.contains("write_unit = \"16 KiB\"") || text.contains("page = \"16 KiB\""), "{text}");
        let path = dir.path().join("card.toml");
        std::fs::write(&path, text.replace("\"16 KiB\"", &format!("\"{page}\""))).unwrap();
        let diff = |what: &str| -> Vec<(u64, f64)> {
            let out = ok(&format!("flashbench {what} -q -b 1024 {}", path.display()));
            let rows = out.lines().filter_map(|l| l.strip_prefix("align "));
            rows.map(|l| (l.split('\t').next().unwrap().parse().unwrap(), us(l.rsplit("diff").next().unwrap().trim()))).collect()
        };
        assert!(diff("-a").iter().all(|d| d.1.abs() < 30.0), "reads");
        for (align, d) in diff("-A") {
            assert_eq!(d > 500.0, align >= kib << 10, "{page}: {align} {d}");
        }
    }
}

/// Q9: a run that is cut gives graded bounds, never more than the truth.
#[test]
fn short_runs_give_bounds() {
    let mut bounds = 0;
    for (card, truth) in [("toshiba-emmc", 7.0), ("sandisk-emmc", 20.0), ("olpc-a1-4gb", f64::NAN)] {
        for time in ["2s", "4s", "8s", "12s", "20s", "45s"] {
            let r = json(&format!("probe sim:{card} -q --time {time}"));
            for order in ["open_aus_linear", "open_aus_random"] {
                let (value, least) = found(&r, order);
                bounds += usize::from(least.is_some());
                if !truth.is_nan() {
                    assert!(
                        value.is_none_or(|v| v == truth) && least.is_none_or(|v| v <= truth),
                        "{card} {time} {order}: {value:?} {least:?}"
                    );
                }
            }
        }
    }
    assert!(bounds >= 6, "{bounds} bounds");
}

/// Q12: the largest blocks show nothing, and nothing is concluded from them; with rows of a quarter AU and less the cut is there.
#[test]
fn the_largest_blocks_decide_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log.txt");
    for (card, aus, truth) in [("toshiba-emmc", "6-8", 7.0), ("sandisk-emmc", "19-22", 20.0), ("olpc-b-4gb", "1-8", f64::NAN)] {
        let whole = ok(&format!("flashbench -q -O -0 {aus} -e 4MiB -b 128K sim:{card}"));
        let judged = |text: &str| {
            std::fs::write(&path, text).unwrap();
            found(&json(&format!("infer {}", path.display())), "open_aus_linear").0
        };
        let cut: Vec<&str> = whole.lines().filter(|l| l.starts_with('#') || l.starts_with("4MiB") || l.starts_with("2MiB")).collect();
        assert_eq!(judged(&cut.join("\n")), None, "{card}");
        if !truth.is_nan() {
            assert_eq!(judged(&whole), Some(truth), "{card}");
        }
    }
}

//! What a person meets first: experiments run alone, undecided answers and the way out of them, card models as targets, plans as
//! scripts, text that fits a mail.

use nandscope::layout::zone::in_zone;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

fn nandscope(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_nandscope")).args(args).env_remove("COLUMNS").output().unwrap()
}

fn text(out: &Output) -> String {
    String::from_utf8_lossy(&out.stdout).into_owned()
}

/// A built-in card with lines of its model replaced or put behind a heading.
fn card(dir: &Path, base: &str, changes: &[(&str, &str)]) -> String {
    let mut model = nandscope_sim::cards::text(base).unwrap().to_string();
    for (key, line) in changes {
        let old: Vec<&str> = model.lines().collect();
        let named = |l: &&str| !key.starts_with('[') && l.split('=').next().is_some_and(|k| k.trim() == *key);
        let mut new: Vec<&str> = vec![];
        let found = old.iter().any(named);
        for l in old {
            new.push(if named(&l) { line } else { l });
            if !found && l.trim() == *key {
                new.push(line);
            }
        }
        model = new.join("\n") + "\n";
    }
    let path =
        dir.join(format!("{base}-{}.toml", changes.iter().map(|c| c.1.replace(|c: char| !c.is_alphanumeric(), "")).collect::<String>()));
    std::fs::write(&path, model).unwrap();
    path.display().to_string()
}

fn report(args: &[&str]) -> Value {
    let out = nandscope(&[args, &["-q", "--json", "-"]].concat());
    serde_json::from_slice(&out.stdout).unwrap_or_else(|e| panic!("{args:?}: {e}: {}", String::from_utf8_lossy(&out.stderr)))
}

fn finding<'a>(r: &'a Value, key: &str) -> &'a Value {
    r["findings"].as_array().unwrap().iter().find(|f| f["quantity"] == key).unwrap_or(&Value::Null)
}

fn advice(r: &Value) -> String {
    r["advice"].as_array().unwrap().iter().map(|a| a.as_str().unwrap().to_string() + "\n").collect()
}

#[test]
fn an_experiment_run_alone_measures_what_it_needs_first() {
    let dir = tempfile::tempdir().unwrap();
    for zone in [MIB, 3 * MIB, 4 * MIB] {
        let model = card(dir.path(), "usb-stick", &[("fat_zone", &format!("fat_zone = \"{} KiB\"", zone / KIB))]);
        for seed in ["1", "2"] {
            let r = report(&["run", "fat-zone", &model, "--seed", seed]);
            assert_eq!(finding(&r, "fat_zone")["value"], zone, "{}", finding(&r, "fat_zone"));
            let told = r["warnings"].to_string();
            assert!(told.contains("fat-zone needs what other experiments find") && told.contains("open-au-random"), "{told}");
        }
    }
    for (experiment, target) in [
        ("write-boundary", "sim:toshiba-emmc"),
        ("write-boundary", "sim:flashbench-readme"),
        ("au-grid", "sim:sandisk-emmc"),
        ("au-grid", "sim:flashbench-readme"),
    ] {
        let r = report(&["run", experiment, target]);
        let block = finding(&r, "erase_block");
        assert_eq!(block["value"], 4 * MIB, "{experiment} {target}: {block}");
        let own = r["runs"].as_array().unwrap().iter().find(|x| x["experiment"] == experiment).unwrap();
        // Where reads name the erase block, the walk has nothing left to ask.
        let asked = own["samples"]["at"].as_array().is_some_and(|a| !a.is_empty());
        assert!(asked || target == "sim:flashbench-readme" && experiment == "au-grid", "{experiment} {target} sent nothing");
    }
    // Where nothing can be said, the reason is the true one.
    let r = report(&["run", "fat-zone", "sim:toshiba-emmc"]);
    assert!(
        finding(&r, "fat_zone")["reason"].as_str().unwrap().contains("random writes are as fast as sequential ones"),
        "{}",
        finding(&r, "fat_zone")
    );
    let r = report(&["run", "fat-zone", "sim:usb-stick", "--region", "8MiB.."]);
    assert!(finding(&r, "fat_zone")["reason"].as_str().unwrap().contains("--region 0.."), "{}", finding(&r, "fat_zone"));
}

/// Boundaries that begin off the grid: where they begin is found, or nothing is said, and the way to look at them is.
#[test]
fn erase_blocks_off_the_grid_are_placed() {
    let dir = tempfile::tempdir().unwrap();
    let behind = dir.path().join("behind.json");
    let mut found = 0;
    for at in [512, 1536, 2560, 7680, 32_256, 131_072 + 512, MIB + 6656] {
        for base in ["flashbench-readme", "tlc-12mib"] {
            let line = format!("erase_block_offset = \"{} KiB\"", at as f64 / 1024.0);
            let model = card(dir.path(), base, &[("[nand]", &line)]);
            for args in [&["--read-only"][..], &[]] {
                let mut r = report(&[&["probe", &model, "--time", "10m"], args].concat());
                let f = finding(&r, "erase_block_offset");
                if let Some(v) = f["value"].as_u64() {
                    let near =
                        f["interval"].as_array().is_some_and(|i| i[0].as_f64() <= Some(at as f64) && i[1].as_f64() >= Some(at as f64));
                    assert!(v == at || near, "{base} {at} {args:?}: {f}");
                    found += usize::from(v == at);
                }
                if f["value"] == at && finding(&r, "page")["value"].is_null() {
                    let lines = advice(&r);
                    assert!(lines.contains(&format!("losetup -f --show -o {at} ")) && !lines.contains("--prepare"), "{lines}");
                    // No loop device can be made of a program.
                    r["settings"]["asked"] = "exec:./rig".into();
                    std::fs::write(&behind, r.to_string()).unwrap();
                    let again = nandscope(&["infer", behind.to_str().unwrap(), "--json"]);
                    let lines = advice(&serde_json::from_slice(&again.stdout).unwrap());
                    assert!(lines.contains(&format!("a program that adds {at} ")) && !lines.contains("losetup"), "{lines}");
                }
            }
        }
    }
    assert!(found >= 20, "only {found} of 28 were placed");
}

#[test]
fn an_undecided_answer_names_its_own_way_out() {
    let dir = tempfile::tempdir().unwrap();
    let flat = ("[nand]", "unwritten = \"flat\"\nunwritten_read = \"100 us\"");
    for block in ["erase_block = \"4 MiB\"", "erase_block = \"2 MiB\""] {
        let empty = card(dir.path(), "flashbench-readme", &[("[card]", "state = \"empty\""), ("erase_block", block), flat]);
        let r = report(&["probe", &empty, "--read-only"]);
        let lines = advice(&r);
        assert_eq!((finding(&r, "page")["value"].is_null(), r["state"].as_str()), (true, Some("fresh")));
        assert!(lines.contains("reads of empty flash show no boundaries") && !lines.contains("losetup"), "{lines}");
        assert!(!lines.contains("--prepare random"), "writes in part of it are enough: {lines}");
        let shown = text(&nandscope(&["probe", &empty, "--read-only"]));
        assert!(shown.contains("state of the flash before: fresh, never written"), "{shown}");
        // With writes the erase block is found, and the page where they went.
        let r = report(&["probe", &empty, "--time", "10m"]);
        assert!(!finding(&r, "page")["value"].is_null() && !finding(&r, "erase_block")["value"].is_null(), "{}", finding(&r, "page"));
        assert!(!advice(&r).contains("--prepare random"), "{}", advice(&r));
        // The command that is named decides it as well.
        let command = lines.lines().find_map(|l| l.split_once(": nandscope ")).unwrap().1;
        let words: Vec<&str> = command.split_whitespace().collect();
        let r = report(&[&words[..], &["--time", "10m"]].concat());
        assert!(!finding(&r, "page")["value"].is_null(), "{command}: {}", finding(&r, "page"));
    }
    // Hidden from reads: data are there, so filling would change nothing, and writes find it.
    let lines = advice(&report(&["probe", "sim:sandisk-emmc", "--read-only"]));
    assert!(lines.contains("hides its erase block from reads") && !lines.contains("--prepare"), "{lines}");
    assert!(lines.contains("nandscope probe sim:sandisk-emmc"), "{lines}");
    // Reads say all they can: only the rest needs writes.
    let lines = advice(&report(&["probe", "sim:flashbench-readme", "--read-only"]));
    assert!(lines.contains("only writes can measure") && !lines.contains("--prepare") && !lines.contains("hides"), "{lines}");
    // Nothing open, nothing to do.
    let lines = advice(&report(&["probe", "sim:flashbench-readme"]));
    assert!(!lines.contains("nandscope probe"), "{lines}");
}

#[test]
fn a_card_model_is_a_simulated_card_everywhere() {
    let dir = tempfile::tempdir().unwrap();
    let model = card(dir.path(), "chan-sdc-512mb", &[]);
    for args in [
        &["probe", &model, "--read-only", "-q", "--time", "20s"][..],
        &["run", "interval", &model, "-q"],
        &["flashbench", "-a", "-c", "1", "-q", &model],
        &["layout", "audit", &model],
        &["layout", "plan", &model, "--for", "logger"],
        &["format", &model, "--dry-run"],
        &["erase", &model, "--region", "4MiB..5MiB", "-q"],
        &["partitions", &model, "--part", "0..64MiB", "--time", "5s", "-q"],
        &["ab", &model, "--b", "split=8KiB", "--load", "read", "--pairs", "8", "-q"],
        &["bench", &model, "--file", "64KiB", "-q"],
        &["map", &format!("{model}?seed=3")],
    ] {
        let out = nandscope(args);
        let said = text(&out) + &String::from_utf8_lossy(&out.stderr);
        assert!(matches!(out.status.code(), Some(0 | 3 | 5)) || args[0] == "map" && said.contains("no FAT volume"), "{args:?}: {said}");
        assert!(!said.contains("image file"), "{args:?}: {said}");
    }
    // Text that is no model says so; it is never measured as an image.
    let wrong = dir.path().join("Cargo.toml");
    std::fs::write(&wrong, "[package]\nname = \"x\"\n").unwrap();
    let out = nandscope(&["probe", wrong.to_str().unwrap()]);
    assert!(out.status.code() == Some(1) && String::from_utf8_lossy(&out.stderr).contains("Cargo.toml"), "{out:?}");
    for size in [0, 1, 512, 4096, MIB - 1] {
        let small = dir.path().join("small.img");
        std::fs::File::create(&small).unwrap().set_len(size).unwrap();
        let out = nandscope(&["probe", small.to_str().unwrap()]);
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert!(out.status.code() == Some(1) && said.contains("1 MiB or more") && said.contains("truncate -s"), "{size}: {said}");
    }
}

fn programs(dir: &Path) -> (PathBuf, PathBuf) {
    let (bin, log) = (dir.join("bin"), dir.join("log"));
    std::fs::create_dir(&bin).unwrap();
    for name in ["sfdisk", "parted", "mkfs.fat", "mkfs.exfat", "mkfs.ext4", "mkfs.f2fs", "mkfs.btrfs", "mkswap", "nandscope"] {
        use std::os::unix::fs::PermissionsExt;
        let path = bin.join(name);
        std::fs::write(
            &path,
            format!("#!/bin/sh\n[ -t 0 ] || [ {name} != sfdisk ] || cat > /dev/null\necho {name} \"$@\" >> {}\n", log.display()),
        )
        .unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    (bin, log)
}

/// A plan is a script that parses and does exactly the recommended way: one table, one file system a partition.
#[test]
fn a_plan_is_a_script_that_runs_one_way() {
    let dir = tempfile::tempdir().unwrap();
    let (bin, log) = programs(dir.path());
    let path = format!("{}:/usr/bin:/bin", bin.display());
    for (profile, parts) in [
        ("logger", 1),
        ("raspberry-pi", 2),
        ("root-ext4", 1),
        ("root-f2fs", 1),
        ("root-btrfs", 1),
        ("camera", 1),
        ("fat:64MiB,swap:32MiB,ext4", 3),
    ] {
        for target in ["sim:flashbench-readme", "sim:toshiba-emmc", "sim:sdxc-64gb"] {
            let script = dir.path().join("plan.sh");
            std::fs::write(&script, nandscope(&["layout", "plan", target, "--for", profile]).stdout).unwrap();
            let source = std::fs::read_to_string(&script).unwrap();
            assert!(source.starts_with("#!/bin/sh\n") && source.contains("\nset -e\n"), "{source}");
            assert!(Command::new("bash").arg("-n").arg(&script).status().unwrap().success(), "{source}");
            // Nothing runs while the card is not named.
            let _ = std::fs::remove_file(&log);
            let blank = Command::new("sh").arg(&script).env_clear().env("PATH", &path).output().unwrap();
            assert!(!blank.status.success() && !log.exists(), "{profile} {target}: ran without a card");
            let mut run = Command::new("sh");
            run.arg(&script).env_clear().env("PATH", &path).env("DEVICE", "/dev/a card").env("CONSENT", "4711");
            (1..=parts).for_each(|n| _ = run.env(format!("PART{n}"), format!("/dev/part {n}")));
            let out = run.output().unwrap();
            assert!(out.status.success(), "{profile} {target}: {out:?}\n{source}");
            let done = std::fs::read_to_string(&log).unwrap();
            let lines: Vec<&str> = done.lines().collect();
            if profile == "camera" {
                assert_eq!(lines, ["nandscope format /dev/a card --consent 4711"]);
                continue;
            }
            assert_eq!(lines[0], "sfdisk /dev/a card", "{done}");
            assert_eq!(lines.len(), 1 + parts, "{profile} {target}: {done}");
            for (n, line) in lines[1..].iter().enumerate() {
                assert!(line.starts_with("mk") || line.starts_with("nandscope format"), "{done}");
                assert!(line.contains(&format!("/dev/part {}", n + 1)), "{done}");
            }
        }
    }
}

/// The tables of the logger's volume lie in the zone that the report holds, and a FAT sector there is as fast as the zone.
#[test]
fn the_plan_for_a_logger_puts_the_fat_into_the_fast_zone() {
    use nandscope::device::{Access, Device, Fill, Op, SimDevice};
    let dir = tempfile::tempdir().unwrap();
    for zone in [384 * KIB, 512 * KIB, MIB, 3 * MIB, 4 * MIB] {
        let model = card(dir.path(), "chan-sdc-512mb", &[("fat_zone", &format!("fat_zone = \"{} KiB\"", zone / KIB))]);
        let known = dir.path().join("known.json");
        let known = known.to_str().unwrap();
        nandscope(&["probe", &model, "-q", "--json", known]);
        let r: Value = serde_json::from_slice(&std::fs::read(known).unwrap()).unwrap();
        assert_eq!(finding(&r, "fat_zone")["value"], zone);
        let p: Value =
            serde_json::from_str(&text(&nandscope(&["layout", "plan", &model, "--for", "logger", "--report", known, "--json"]))).unwrap();
        let start = p["parts"][0]["start"].as_u64().unwrap();
        let command = p["steps"][1]["command"].as_str().unwrap();
        let after = |flag: &str| {
            let mut words = command.split(' ').skip_while(|w| *w != flag);
            words.nth(1).unwrap().parse::<u64>().unwrap()
        };
        let (fat, cluster) = (start + after("-R") * 512, after("-s") * 512);
        let clusters = p["parts"][0]["size"].as_u64().unwrap() / cluster;
        let end = fat + 2 * (clusters * 2).next_multiple_of(cluster) + 512 * 32;
        assert!(end <= zone, "zone {zone}: the tables lie at {fat} to {end}: {command}");
        let parsed = nandscope_sim::Model::parse(&std::fs::read_to_string(&model).unwrap(), "x").unwrap();
        let mut device = SimDevice::new(&parsed, 1);
        let mut slowest = |from: u64| {
            let write = |i: u64| Access { op: Op::Write(Fill::Random(i)), at: from + i * 37 % 16 * 512, len: 512 };
            (0..24).map(|i| device.access(write(i)).unwrap().took.millis()).skip(8).fold(0.0, f64::max)
        };
        let (planned, inside, outside) = (slowest(fat), slowest(8 * KIB), slowest(128 * MIB));
        assert!(planned <= 1.2 * inside && outside > 5.0 * planned, "zone {zone}: {planned} ms, {inside} inside, {outside} outside");
    }
    assert!(in_zone(16 * KIB, 488 * MIB, 64 * KIB, 0, 0, None).is_none());
}

#[test]
fn the_audit_names_tables_outside_the_fast_zone() {
    let dir = tempfile::tempdir().unwrap();
    let known = dir.path().join("known.json");
    let known = known.to_str().unwrap();
    nandscope(&["probe", "sim:chan-sdc-512mb", "-q", "--json", known]);
    let image = dir.path().join("card.img");
    let size = 488 * MIB;
    let name = image.to_str().unwrap();
    let consent = size.to_string();
    for (align, outside) in [("4MiB", true), ("64KiB", false)] {
        std::fs::File::create(&image).unwrap().set_len(size).unwrap();
        let out = nandscope(&["format", name, "--consent", &consent, "--align", align, "-q"]);
        assert!(out.status.success(), "{out:?}");
        let said = text(&nandscope(&["layout", "audit", name, "--report", known]));
        let (yes, no) = ("outside the first 512 KiB", "its tables lie in the first 512 KiB");
        let (want, not) = if outside { (yes, no) } else { (no, yes) };
        assert!(said.contains(want) && !said.contains(not) && said.contains(" ms"), "{align}: {said}");
    }
}

#[test]
fn a_format_that_leaves_most_of_the_card_unused_says_so() {
    for (args, warns) in [
        (&["sim:chan-sdc-512mb", "--cluster", "512"][..], true),
        (&["sim:chan-sdc-512mb", "--cluster", "1024", "--fs", "fat16"], true),
        (&["sim:toshiba-emmc", "--fs", "fat16"], true),
        (&["sim:chan-sdc-512mb"], false),
        (&["sim:chan-sdc-512mb", "--cluster", "16KiB"], false),
        (&["sim:toshiba-emmc"], false),
        (&["sim:sdxc-64gb"], false),
        (&["sim:toshiba-emmc", "--cluster", "4096", "--fs", "fat32"], false),
    ] {
        let out = nandscope(&[&["format", "--dry-run"], args].concat());
        assert!(out.status.success(), "{args:?}: {out:?}");
        assert_eq!(text(&out).contains("stay unused"), warns, "{args:?}: {}", text(&out));
    }
}

/// Columns stay apart, and where blocks begin is said for the disk and for the partition.
#[test]
fn columns_of_partitions_do_not_run_together() {
    for parts in [&["4MiB..318MiB", "318MiB..358MiB"][..], &["5MiB..300MiB", "1234MiB..2GiB", "3GiB..4GiB"]] {
        let args: Vec<&str> =
            ["partitions", "sim:toshiba-emmc", "-q"].into_iter().chain(parts.iter().flat_map(|p| ["--part", p])).collect();
        let said = text(&nandscope(&args));
        let table: Vec<&str> = said.lines().skip(2).take_while(|l| !l.is_empty()).collect();
        for line in &table[1..] {
            let cells: Vec<&str> = line.split("  ").map(str::trim).filter(|c| !c.is_empty()).collect();
            assert_eq!(cells.len(), 1 + parts.len(), "{line}\n{said}");
        }
        let row = |name: &str| table.iter().find(|l| l.trim_start().starts_with(name)).unwrap_or_else(|| panic!("{name}: {said}"));
        assert!(row("in the partition").contains(if parts.len() == 2 { "2 MiB (" } else { "3 MiB (" }), "{said}");
    }
}

#[test]
fn the_text_of_a_probe_fits_a_mail() {
    for (columns, args) in [
        (None, &["sim:flashbench-readme", "--details"][..]),
        (None, &["sim:flashbench-readme"]),
        (None, &["sim:sdxc-64gb", "-q"]),
        (None, &["sim:sandisk-emmc", "--read-only"]),
        (None, &["sim:chan-sdc-512mb"]),
        (None, &["sim:usb-stick"]),
        (Some(60), &["sim:modern-a1-32gb", "--read-only"]),
        (Some(120), &["sim:flashbench-readme", "--read-only", "--details"]),
    ] {
        let mut c = Command::new(env!("CARGO_BIN_EXE_nandscope"));
        c.args([&["probe"], args].concat()).env_remove("COLUMNS");
        columns.map(|n: usize| c.env("COLUMNS", n.to_string()));
        let said = text(&c.output().unwrap());
        let most = columns.unwrap_or(80).max(80);
        let long: Vec<&str> = said.lines().filter(|l| l.chars().count() > most && l.split_whitespace().count() > 1).collect();
        assert!(long.is_empty(), "{args:?}: {long:#?}");
        if columns == Some(120) {
            assert!(said.lines().any(|l| l.chars().count() > 90), "{said}");
        }
    }
}

/// What a driver is told rests on a measurement; where there is none, nothing is said.
#[test]
fn rules_for_a_driver_rest_on_measurements() {
    for (args, rules) in [
        (&["sim:toshiba-emmc"][..], &["write in multiples of 32 KiB", "at most 7 streams"][..]),
        (&["sim:flashbench-readme"], &["write in multiples of 16 KiB", "keeps 2 erase blocks open", "reliable writes"]),
        (&["sim:usb-stick"], &["in the first 4 MiB", "takes no scattered writes without a merge"]),
        (&["sim:flashbench-readme", "--read-only"], &[]),
        (&["sim:null"], &[]),
    ] {
        let said = text(&nandscope(&[&["probe", "--details"], args].concat())).split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(said.contains("For a driver"), !rules.is_empty(), "{args:?}: {said}");
        for rule in rules {
            assert!(said.contains(rule), "{args:?}: {rule}: {said}");
        }
    }
}

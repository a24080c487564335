//! The printed commands are run as they are on image files, and what the tools made is read back by the audit.

#[path = "common/program.rs"]
mod program;
#[path = "common/skip.rs"]
mod skip;

use nandscope_fat::{Convention, Options, plan};
use program::program;
use rustix::fs::SeekFrom;
use serde_json::Value;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
static ZEROS: [u8; 1 << 20] = [0; 1 << 20];

fn nandscope(args: &[&str]) -> (Option<i32>, String) {
    let out = program().args(args).output().unwrap();
    assert!(!out.stdout.is_empty(), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
    (out.status.code(), String::from_utf8(out.stdout).unwrap())
}

fn have(programs: &[&str]) -> bool {
    let path = std::env::var("PATH").unwrap_or_default() + ":/sbin:/usr/sbin";
    let missing: Vec<&str> = programs.iter().copied().filter(|p| !std::env::split_paths(&path).any(|d| d.join(p).exists())).collect();
    if !missing.is_empty() {
        skip::no_tool("commands on an image", &missing.join(", "));
    }
    missing.is_empty()
}

fn sh(command: &str, dir: &Path) -> String {
    let path = std::env::var("PATH").unwrap_or_default() + ":/sbin:/usr/sbin";
    let out = Command::new("sh").args(["-c", command]).current_dir(dir).env("PATH", path).output().unwrap();
    let text = format!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    assert!(out.status.success(), "{command}: {}\n{text}", out.status);
    text
}

fn sparse(path: &Path, size: u64) -> File {
    let f = OpenOptions::new().create(true).truncate(true).read(true).write(true).open(path).unwrap();
    f.set_len(size).unwrap();
    f
}

/// A report that found this erase block and write unit, as `infer` writes it for pasted logs.
fn report(path: &Path, block: u64, unit: u64) {
    let finding = |q: &str, v: u64| serde_json::json!({ "quantity": q, "value": v, "confidence": 0.95, "interval": null, "rivals": [], "evidence": [], "caveats": [] });
    let value = serde_json::json!({
        "schema": "nandscope-report/1", "target": { "logs": [] },
        "findings": [finding("erase_block", block), finding("write_unit", unit), finding("open_aus_linear", 3)],
    });
    std::fs::write(path, value.to_string()).unwrap();
}

/// Copies what is not zero; holes are passed over.
fn copy(from: &Path, to: &File, at: u64) {
    let f = File::open(from).unwrap();
    let mut piece = vec![0; 1 << 20];
    let mut end = 0;
    while let Ok(mut here) = rustix::fs::seek(&f, SeekFrom::Data(end)) {
        end = rustix::fs::seek(&f, SeekFrom::Hole(here)).unwrap();
        while here < end {
            let n = (end - here).min(1 << 20) as usize;
            f.read_exact_at(&mut piece[..n], here).unwrap();
            if piece[..n] != ZEROS[..n] {
                to.write_all_at(&piece[..n], at + here).unwrap();
            }
            here += n as u64;
        }
    }
}

/// Runs the commands of a plan (with `instead` those of the other program for the table) and gives the audit of the result.
fn made(profile: &str, size: u64, block: u64, unit: u64, parted: bool) -> Option<Value> {
    let dir = tempfile::tempdir().unwrap();
    let (card, known) = (dir.path().join("card.img"), dir.path().join("known.json"));
    let disk = sparse(&card, size);
    report(&known, block, unit);
    let known = known.to_str().unwrap();
    let (_, text) = nandscope(&["layout", "plan", card.to_str().unwrap(), "--for", profile, "--report", known, "--json"]);
    let p: Value = serde_json::from_str(&text).unwrap();
    let parts = p["parts"].as_array().unwrap().clone();
    for (i, part) in parts.iter().enumerate() {
        sparse(&dir.path().join(format!("PART{}", i + 1)), part["size"].as_u64().unwrap());
    }
    let mut steps: Vec<String> = p["steps"].as_array().unwrap().iter().map(|s| s["command"].as_str().unwrap().to_string()).collect();
    if parted {
        steps[0] = p["instead"][0]["command"].as_str().unwrap().to_string();
    }
    for s in &steps {
        let program = if s.contains("| sfdisk") { "sfdisk" } else { s.split(' ').next().unwrap() };
        if program == "nandscope" {
            let mut words: Vec<String> = s.trim_end_matches(" --consent ID").split(' ').skip(1).map(str::to_string).collect();
            let target = if words[1].starts_with("PART") { dir.path().join(&words[1]) } else { card.clone() };
            words[1] = target.display().to_string();
            words.extend(["--consent".into(), std::fs::metadata(&target).unwrap().len().to_string()]);
            // A file that stands for a partition does not know where that lies.
            if s.contains("PART") {
                words.push("--no-table".into());
            }
            nandscope(&words.iter().map(String::as_str).collect::<Vec<_>>());
            continue;
        }
        if !have(&[program]) {
            return None;
        }
        sh(s, dir.path());
    }
    for (i, part) in parts.iter().enumerate() {
        copy(&dir.path().join(format!("PART{}", i + 1)), &disk, part["start"].as_u64().unwrap());
    }
    let (_, text) = nandscope(&["layout", "audit", card.to_str().unwrap(), "--report", known, "--json"]);
    let a: Value = serde_json::from_str(&text).unwrap();
    for (part, found) in parts.iter().zip(a["disk"]["parts"].as_array().unwrap()) {
        assert_eq!(part["start"], found["start"], "{profile}: {steps:?}");
        assert_eq!(part["start"].as_u64().unwrap() % block, 0);
        let fs = part["fs"].as_str().unwrap();
        let what = found["volume"]["what"].as_str().unwrap_or("nothing").to_lowercase();
        assert!(what.starts_with(fs), "{profile}: planned {fs}, found {what} after {steps:?}");
        if matches!(fs, "fat" | "exfat" | "f2fs") {
            assert_eq!(found["volume"]["data"].as_u64().unwrap() % block, 0, "{profile}: data area after {steps:?}: {found}");
        }
    }
    Some(a)
}

/// A table that lies in one erase block more than it needs is either counted as a cost, or said to be none that is known; not both that it
/// would fit fewer and that there is nothing to say.
#[test]
fn an_audit_does_not_contradict_itself() {
    if !have(&["mkfs.ext4", "mkfs.fat"]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (mut off, mut clean) = (0, 0);
    for (size, make) in [
        ("300M", "mkfs.ext4 -q"),
        ("256M", "mkfs.fat -F 16 -R 30"),
        ("96M", "mkfs.ext4 -q -b 1024"),
        ("64M", "mkfs.fat -F 16 -a"),
        ("500M", "mkfs.fat -F 32 -R 2048"),
    ] {
        sh(&format!("rm -f v.img; truncate -s {size} v.img; {make} v.img"), dir.path());
        let (_, said) = nandscope(&["layout", "audit", dir.path().join("v.img").to_str().unwrap()]);
        let against = said.contains("would fit") || said.contains("do not begin on one");
        assert!(!(against && said.contains("no alignment problems found")), "{make}: {said}");
        let any = ["\nCosts\n", "\nMay cost", "\nHarmless", "nothing to say", "none of this is known to cost time"];
        assert!(any.iter().any(|t| said.contains(t)), "{make}: {said}");
        off += u32::from(against && said.contains("none of this is known to cost time"));
        clean += u32::from(!against);
    }
    assert!(off > 0 && clean + off > 1, "{off} {clean}");
}

#[test]
fn plans_make_what_they_promise() {
    for (profile, size, block, unit) in [
        ("raspberry-pi", 4 * GIB, 4 * MIB, 16384),
        ("root-ext4", 2 * GIB, 3 * MIB, 16384),
        ("root-f2fs", 2 * GIB, 12 * MIB, 16384),
        ("root-btrfs", 3 * GIB, 4 * MIB, 16384),
        ("logger", 6 * GIB, 4 * MIB, 32768),
        ("exfat", 2 * GIB, 16 * MIB, 32768),
        ("exfat", 2 * GIB, 24 * MIB, 32768),
        ("camera", GIB, 4 * MIB, 16384),
        ("sd-association", 33 * GIB, 4 * MIB, 16384),
        ("fat:64MiB,swap:64MiB,ext4", GIB, 3 * MIB, 8192),
    ] {
        if matches!(profile, "camera" | "sd-association") {
            let dir = tempfile::tempdir().unwrap();
            let card = dir.path().join("card.img");
            sparse(&card, size);
            let name = card.to_str().unwrap();
            let (_, text) = nandscope(&["layout", "plan", name, "--for", profile]);
            let command = text.lines().find(|l| l.starts_with("nandscope format ")).unwrap_or_else(|| panic!("{text}"));
            let consent = size.to_string();
            let words = command.split(' ').skip(1).map(|w| match w {
                "\"$DEVICE\"" => name,
                "\"$CONSENT\"" => consent.as_str(),
                w => w,
            });
            let words: Vec<&str> = words.collect();
            assert_eq!(nandscope(&words).0, Some(0));
            let (code, text) = nandscope(&["layout", "audit", name]);
            assert!(code == Some(0) && text.contains("that of the SD convention, field by field"), "{text}");
            continue;
        }
        let Some(a) = made(profile, size, block, unit, false) else { continue };
        let text = a.to_string();
        match profile {
            "raspberry-pi" => assert!(text.contains("stride 16 KiB") && text.contains("stripe width 4096 KiB"), "{text}"),
            "root-f2fs" => {
                assert!(text.contains("6 segments a section"), "{text}");
                let sections = a["counts"].as_array().unwrap().iter().find(|c| c["name"] == "sections").unwrap();
                assert_eq!(sections["off"], 0, "{sections}");
            }
            "root-btrfs" => assert!(text.contains("metadata chunk") && text.contains("system chunk"), "{text}"),
            _ => {}
        }
    }
}

#[test]
fn the_other_table_program_makes_the_same() {
    if have(&["parted"]) {
        made("raspberry-pi", 4 * GIB, 4 * MIB, 16384, true);
    }
}

/// Each file system and table as its own tool makes it: what it is, and the parts it is made of.
#[test]
fn every_file_system_and_table_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let card = dir.path().join("card.img");
    for (program, command, what, parts) in [
        ("mkfs.ext2", "mkfs.ext2 -q card.img", "ext2", &["superblock", "group descriptors", "block and inode bitmaps", "inode tables"][..]),
        ("mkfs.ext3", "mkfs.ext3 -q card.img", "ext3", &["journal", "inode tables"]),
        ("mkfs.ext4", "mkfs.ext4 -q card.img", "ext4", &["journal", "inode tables"]),
        ("mkfs.f2fs", "mkfs.f2fs -q card.img", "F2FS", &["superblocks", "checkpoint", "segment table", "node table", "segment summaries"]),
        ("mkfs.btrfs", "mkfs.btrfs -q card.img", "btrfs", &["superblock", "system chunk", "metadata chunk"]),
        ("mkswap", "mkswap -q card.img", "swap", &["header"]),
        ("mkfs.fat", "mkfs.fat -F 12 -s 128 card.img 200000", "FAT12", &["boot sectors", "FAT 1", "FAT 2", "root directory"]),
        ("mkfs.fat", "mkfs.fat -F 16 card.img", "FAT16", &["boot sectors", "FAT 1", "FAT 2", "root directory"]),
        ("mkfs.fat", "mkfs.fat -F 32 card.img", "FAT32", &["boot sectors", "FAT 1", "FAT 2", "root directory"]),
        ("mkfs.exfat", "mkfs.exfat card.img", "exFAT", &["boot sectors", "FAT", "allocation bitmap", "root directory"]),
    ] {
        if !have(&[program]) {
            continue;
        }
        sparse(&card, 256 * MIB);
        sh(command, dir.path());
        let (_, text) = nandscope(&["layout", "audit", card.to_str().unwrap(), "--align", "4MiB", "--json"]);
        let a: Value = serde_json::from_str(&text).unwrap();
        let volume = &a["disk"]["parts"][0]["volume"];
        assert_eq!((&volume["what"], &volume["cut"]), (&what.into(), &Value::Null), "{command}: {volume}");
        let names: Vec<&str> = volume["zones"].as_array().unwrap().iter().map(|z| z["name"].as_str().unwrap()).collect();
        assert!(parts.iter().all(|p| names.contains(p)), "{command}: {names:?}");
        // The drawing has a letter for each.
        let (_, text) = nandscope(&["layout", "audit", card.to_str().unwrap(), "--align", "4MiB"]);
        assert!(parts.iter().all(|p| text.contains(p) || p.starts_with("FAT ")), "{text}");
    }
    if !have(&["sfdisk"]) {
        return;
    }
    for (script, table, numbers) in [
        ("label: gpt\\nsize=64M\\nsize=64M\\n", "GPT", &[1, 2][..]),
        ("label: dos\\nsize=64M\\ntype=5\\nsize=8M\\nsize=8M\\n", "MBR", &[1, 5, 6]),
    ] {
        sparse(&card, 256 * MIB);
        sh(&format!("printf '{script}' | sfdisk -q card.img"), dir.path());
        let (_, text) = nandscope(&["layout", "audit", card.to_str().unwrap(), "--json"]);
        let a: Value = serde_json::from_str(&text).unwrap();
        let found: Vec<i64> = a["disk"]["parts"].as_array().unwrap().iter().map(|p| p["number"].as_i64().unwrap()).collect();
        assert_eq!((a["disk"]["table"].as_str(), found.as_slice()), (Some(table), numbers));
    }
}

/// The journal is where e2fsprogs says it is.
#[test]
fn the_journal_of_ext4_is_found() {
    if !have(&["mkfs.ext4", "debugfs"]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let card = dir.path().join("card.img");
    sparse(&card, 3 * GIB);
    sh("mkfs.ext4 -q card.img", dir.path());
    let text = sh("debugfs -R 'blocks <8>' card.img 2>/dev/null", dir.path());
    let first: u64 = text.split_whitespace().next().unwrap().parse().unwrap();
    let (_, text) = nandscope(&["layout", "audit", card.to_str().unwrap(), "--json"]);
    let a: Value = serde_json::from_str(&text).unwrap();
    let zones = a["disk"]["parts"][0]["volume"]["zones"].as_array().unwrap().clone();
    let journal = zones.iter().find(|z| z["name"] == "journal").unwrap();
    assert_eq!(journal["at"].as_u64().unwrap(), first * 4096);
    let groups = a["counts"].as_array().unwrap().iter().find(|c| c["name"] == "block groups").unwrap();
    assert_eq!(groups["count"], 24);
}

/// C25, C26: the price of a careless format comes from the report of the card, and a sound one costs nothing.
#[test]
fn the_audit_tells_the_price_of_a_careless_format_on_this_card() {
    let dir = tempfile::tempdir().unwrap();
    let known = dir.path().join("chan.json");
    let known = known.to_str().unwrap();
    nandscope(&["probe", "sim:chan-sdc-512mb", "--json", known, "--quiet"]);
    let size = 488 * MIB;
    let card = dir.path().join("card.img");
    for (convention, code) in [(Convention::Sd, 0), (Convention::Careless, 5)] {
        let f = sparse(&card, size);
        plan(&Options { convention, ..Options::card(size) }).unwrap().write(|at, b| f.write_all_at(b, at), || Ok(())).unwrap();
        let (got, text) = nandscope(&["layout", "audit", card.to_str().unwrap(), "--report", known]);
        assert_eq!(got, Some(code), "{text}");
        if code == 5 {
            assert!(text.contains("the SD layout is lost") && text.contains("clusters of 4 KiB lie across write units"), "{text}");
            assert!(text.contains(" ms more for each one written on its own"), "{text}");
        } else {
            assert!(text.contains("that of the SD convention, field by field"), "{text}");
        }
        // Without a report nobody knows. What brings the layout back is named either way (C27).
        let (got, unknown) = nandscope(&["layout", "audit", card.to_str().unwrap()]);
        assert_eq!(got, Some(if code == 5 { 3 } else { 0 }));
        for text in [text, unknown] {
            let named = ["`nandscope format`", "SD Memory Card Formatter", "complies with the SD standard"]
                .iter()
                .filter(|w| text.contains(**w))
                .count();
            assert_eq!(named, if code == 5 { 3 } else { 0 }, "{text}");
        }
    }
}

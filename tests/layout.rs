//! Format, erase and layouts on image files, through the program: what they write, and that they write nothing else.

use nandscope::device::Fill;
use nandscope_fat::{Options, Step, plan, recognise};
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

const MIB: u64 = 1 << 20;

fn nandscope(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_nandscope")).args(args).output().unwrap()
}

fn ok(args: &[&str]) -> String {
    let out = nandscope(args);
    assert!(out.status.success(), "{args:?}: {}\n{}", out.status, String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

/// An image full of bytes that depend on their place.
fn image(path: &Path, size: u64) -> Vec<u8> {
    let mut bytes = vec![0; size as usize];
    Fill::Random(5).render(0, &mut bytes);
    fs::write(path, &bytes).unwrap();
    bytes
}

fn first_difference(a: &[u8], b: &[u8]) -> Option<usize> {
    assert_eq!(a.len(), b.len());
    if a == b { None } else { (0..a.len()).find(|&i| a[i] != b[i]) }
}

#[test]
fn format_writes_what_it_says_and_no_byte_more() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("card.img");
    let name = path.to_str().unwrap();
    for (size, extra) in [(16 * MIB, &[][..]), (48 * MIB, &["--fs", "exfat", "--label", "Größe"]), (40 * MIB, &["--align", "3MiB"])] {
        let mut want = image(&path, size);
        let consent = size.to_string();
        let args = [&["format", name, "--consent", &consent, "--volume-id", "12345678", "-q"], extra].concat();
        ok(&args);
        let got = fs::read(&path).unwrap();
        // The volume is where the program says it is, and everything that is not its own is as before.
        let json: serde_json::Value = serde_json::from_str(&ok(&[&args[..], &["--dry-run", "--json"]].concat())).unwrap();
        let start = json["partition"]["start"].as_u64().unwrap();
        let volume = recognise(&got[start as usize..]).unwrap();
        assert_eq!(volume.serial, 0x1234_5678);
        let convention = match extra {
            ["--align", _] => nandscope_fat::Convention::Grid { unit: 3 * MIB, first: 0 },
            _ => nandscope_fat::Convention::Sd,
        };
        let (kind, label) =
            if extra.contains(&"exfat") { (Some(nandscope_fat::FatType::ExFat), Some("Größe".into())) } else { (None, None) };
        let layout = plan(&Options { convention, kind, label, serial: 0x1234_5678, ..Options::card(size) }).unwrap();
        assert_eq!(layout.volume, volume);
        for step in layout.steps() {
            match step {
                Step::Zero { at, len } => want[at as usize..(at + len) as usize].fill(0),
                Step::Put { at, bytes } => want[at as usize..at as usize + bytes.len()].copy_from_slice(&bytes),
                Step::Flush => {}
            }
        }
        assert_eq!(first_difference(&got, &want), None, "{args:?}");
    }
}

#[test]
fn erase_touches_no_byte_outside_its_region() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("card.img");
    let name = path.to_str().unwrap();
    let size = 24 * MIB;
    let consent = size.to_string();
    for (how, region, align, touched) in [
        ("discard", "3MiB..21MiB", "4MiB", 4 * MIB..20 * MIB),
        ("zeroes", "3149824..5MiB", "4MiB", 3_149_824..5 * MIB),
        ("random", "0..1MiB", "4MiB", 0..MIB),
        ("stamp", "23MiB..", "4MiB", 23 * MIB..24 * MIB),
        ("discard", "5MiB..7MiB", "4MiB", 0..0),
    ] {
        let before = image(&path, size);
        let mut args = vec!["erase", name, "--how", how, "--region", region, "--align", align, "--consent", &consent, "-q"];
        if how != "discard" {
            args.push("--verify");
        }
        ok(&args);
        let after = fs::read(&path).unwrap();
        let (a, b) = (touched.start as usize, touched.end as usize);
        assert_eq!(first_difference(&before[..a], &after[..a]), None, "{how} {region}");
        assert_eq!(first_difference(&before[b..], &after[b..]), None, "{how} {region}");
        assert!(a == b || before[a..b] != after[a..b]);
        if matches!(how, "discard" | "zeroes") {
            assert!(after[a..b].iter().all(|&x| x == 0));
        }
    }
}

#[test]
fn without_consent_nothing_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("card.img");
    let before = image(&path, 16 * MIB);
    for args in [&["format"][..], &["erase"], &["erase", "--how", "ones"], &["format", "--erase", "zeroes"]] {
        for consent in [&[][..], &["--consent", "16777215"]] {
            let out = nandscope(&[&args[..1], &[path.to_str().unwrap()], &args[1..], consent].concat());
            assert_eq!(out.status.code(), Some(4), "{args:?}");
            assert_eq!(first_difference(&before, &fs::read(&path).unwrap()), None);
        }
    }
}

/// The state of the flash is in every report (F10).
#[test]
fn reports_carry_the_state_of_the_flash() {
    let state = |args: &[&str]| {
        let out = nandscope(&[&["run", "read-boundary", "sim:null", "-q", "--time", "1s", "--json", "-"], args].concat());
        let text = String::from_utf8(out.stdout).unwrap();
        serde_json::from_str::<serde_json::Value>(&text).unwrap()["state"].as_str().unwrap().to_string()
    };
    assert_eq!(state(&[]), "fresh");
    assert_eq!(state(&["--state", "aged"]), "aged");
    assert_eq!(state(&["--prepare", "ones", "--region", "0..64MiB"]), "filled");
    assert_eq!(state(&["--prepare", "discard", "--region", "0..64MiB"]), "erased");
}

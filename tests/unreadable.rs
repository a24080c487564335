//! Cards some of whose places cannot be read: those are left out and named, the rest is measured, and the exit code says that the card
//! fails, as it does of one of which most cannot be read. One that went away is an error.

use std::path::Path;
use std::process::Command;

const SIZE: u64 = 3728 << 20;

/// A card of the library with these faults.
fn card(dir: &Path, name: &str, faults: &str) -> String {
    let path = dir.join(name);
    std::fs::write(&path, std::fs::read_to_string("cards/olpc-a-4gb.toml").unwrap() + faults).unwrap();
    path.display().to_string()
}

fn bad(at: u64, len: u64) -> String {
    format!("\n[[fault]]\nkind = \"io\"\non = \"read\"\nat = {at}\nlen = {len}\n")
}

fn ran(args: &[&str]) -> (Option<i32>, String, String) {
    let out = Command::new(env!("CARGO_BIN_EXE_nandscope")).args(args).output().unwrap();
    let [text, err] = [&out.stdout, &out.stderr].map(|t| String::from_utf8_lossy(t).into_owned());
    (out.status.code(), text, err)
}

#[test]
fn places_that_cannot_be_read_are_left_out_and_named() {
    let dir = tempfile::tempdir().unwrap();
    // 1 % of the card in 200 places off every grid, and a twentieth of it in one.
    let step = SIZE / 200;
    let scattered: String =
        (0..200).map(|i| bad((i * step + i * 7919 * 4096 % (step / 2)) / 4096 * 4096, step / 100 / 4096 * 4096)).collect();
    for (name, faults) in [("scattered.toml", scattered), ("region.toml", bad(SIZE / 5 * 2 / 4096 * 4096, SIZE / 20 / 4096 * 4096))] {
        let card = card(dir.path(), name, &faults);
        for more in [&["--time", "10m"][..], &["--read-only", "--time", "3m"]] {
            let (code, text, err) = ran(&[&["probe", &card, "--json", "-"], more].concat());
            assert_eq!(code, Some(7), "{name} {more:?}: {err}");
            let report: serde_json::Value = serde_json::from_str(&text).unwrap();
            let finding = |q: &str| report["findings"].as_array().unwrap().iter().find(|f| f["quantity"] == q).unwrap()["value"].clone();
            assert_eq!(finding("erase_block"), 4.0 * f64::from(1 << 20), "{name} {more:?}: the rest is measured");
            let places = report["unreadable"].as_array().unwrap();
            let warned =
                report["warnings"].as_array().unwrap().iter().filter_map(|w| w.as_str()).any(|w| w.starts_with("reads failed at "));
            assert!(warned && !places.is_empty(), "{name} {more:?}: {} {}", report["warnings"], report["unreadable"]);
        }
    }
}

#[test]
fn a_card_that_went_away_is_an_error_and_one_that_can_hardly_be_read_fails() {
    let dir = tempfile::tempdir().unwrap();
    let gone = card(dir.path(), "gone.toml", "\n[[fault]]\nkind = \"gone\"\nafter_commands = 500\n");
    for command in ["check", "check --read-only", "probe", "rate --class V30", "uflip --time 2m"] {
        let (code, text, err) = ran(&[&command.split(' ').collect::<Vec<_>>()[..], &[&gone]].concat());
        assert!(code == Some(1) && err.contains("it has gone"), "{command}: {text}{err}");
        assert!(!command.starts_with("check") || text.contains("This card WENT AWAY during the check."), "{command}: {text}");
        assert!(!text.contains("is fine") && !text.contains("COUNTERFEIT") && !text.contains("FAILING"), "{command}: {text}");
    }
    let most = card(dir.path(), "most.toml", &bad(1 << 20, SIZE));
    for more in [&["probe", &most][..], &["run", "read-boundary", &most], &["partitions", &most, "--part", "64MiB..128MiB"]] {
        let (code, _, err) = ran(more);
        assert!(code == Some(7) && err.contains("the card failed"), "{more:?}: {err}");
    }
}

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
        if touched.is_empty() {
            let out = nandscope(&args);
            let err = String::from_utf8_lossy(&out.stderr);
            assert!(out.status.code() == Some(2) && err.contains("no whole unit of 4 MiB"), "{:?} {err}", out.status);
        } else {
            ok(&args);
        }
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
    let dir = tempfile::tempdir().unwrap();
    let model = dir.path().join("new.toml");
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("cards/null.toml")).unwrap();
    fs::write(&model, text.replacen("[card]\n", "[card]\nstate = \"empty\"\n", 1)).unwrap();
    let new = format!("sim:{}", model.display());
    let log = dir.path().join("log.txt");
    fs::write(&log, "align 4194304\tpre 741µs\ton 1.08ms\tpost 788µs\tdiff 317µs\n".repeat(3)).unwrap();
    let state = |args: &[&str]| {
        let out = nandscope(args);
        let value: serde_json::Value =
            serde_json::from_slice(&out.stdout).unwrap_or_else(|e| panic!("{args:?}: {e}: {}", String::from_utf8_lossy(&out.stderr)));
        let holder = if value["benches"].is_array() { &value["benches"][0] } else { &value };
        holder["state"].as_str().unwrap_or_else(|| panic!("{args:?}: no state")).to_string()
    };
    let run = |args: &[&str]| state(&[&["run", "read-boundary", "-q", "--time", "1s", "--json", "-"], args].concat());
    // A simulated card is as its model says; one cannot look into a real one.
    assert_eq!(run(&["sim:null"]), "filled");
    assert_eq!(run(&[&new]), "fresh");
    assert_eq!(run(&["sim:null", "--state", "aged"]), "aged");
    assert_eq!(run(&["sim:null", "--prepare", "ones", "--region", "0..64MiB"]), "filled");
    assert_eq!(run(&["sim:null", "--prepare", "discard", "--region", "0..64MiB"]), "erased");
    let image_path = dir.path().join("card.img");
    image(&image_path, 48 * MIB);
    let name = image_path.to_str().unwrap();
    assert_eq!(run(&[name]), "unknown");
    assert_eq!(state(&["probe", &new, "-q", "--time", "1s", "--json", "-"]), "fresh");
    assert_eq!(state(&["partitions", &new, "--part", "0..64MiB", "-q", "--time", "1s", "--json", "-"]), "fresh");
    assert_eq!(state(&["ab", &new, "--b", "split=8KiB", "--pairs", "8", "-q", "--json", "-"]), "fresh");
    assert_eq!(state(&["bench", "sim:null", "--file", "20kB", "--record", "512", "--state", "aged", "-q", "--json", "-"]), "aged");
    assert_eq!(state(&["layout", "prove", &new, "--rounds", "3", "--file", "32KiB", "-q", "--json"]), "fresh");
    assert_eq!(state(&["infer", log.to_str().unwrap(), "--json", "-"]), "unknown");
}

/// What is cut off says so, once, and the exit code tells scripts.
#[test]
fn an_image_that_was_cut_off_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("card.img");
    let name = path.to_str().unwrap();
    let f = fs::File::create(&path).unwrap();
    f.set_len(64 * MIB).unwrap();
    for (args, what) in [(&["--no-table"][..], "FAT16"), (&["--no-table", "--fs", "exfat"], "exFAT"), (&[], "partition 1")] {
        f.set_len(64 * MIB).unwrap();
        ok(&[&["format", name, "--consent", &(64 * MIB).to_string(), "-q"], args].concat());
        assert_eq!(nandscope(&["layout", "audit", name]).status.code(), Some(0));
        f.set_len(20 * MIB).unwrap();
        let out = nandscope(&["layout", "audit", name]);
        let text = String::from_utf8_lossy(&out.stdout);
        assert_eq!(out.status.code(), Some(5), "{text}");
        let wanted = if args.is_empty() { "reaches beyond the end of the target" } else { "says it has 64" };
        assert!(text.contains(what) && text.contains(wanted), "{text}");
    }
}

/// One clear error with a hint for what cannot be done; 1 for errors, 2 for usage, 4 for refusals.
#[test]
fn wrong_wishes_are_one_clear_error() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("card.img");
    let before = image(&path, 16 * MIB);
    let (name, empty, bad) = (path.to_str().unwrap(), dir.path().join("empty.img"), dir.path().join("bad.json"));
    fs::write(&empty, b"").unwrap();
    fs::write(&bad, "{}").unwrap();
    let (empty, bad) = (empty.to_str().unwrap(), bad.to_str().unwrap());
    for (args, code, words) in [
        (&["layout", "audit", "/dev/nosuch"][..], 1, "'nandscope list' shows the devices"),
        (&["layout", "audit", empty], 1, "truncate -s 1G card.img"),
        (&["layout", "audit", name, "--report", bad], 1, "is not a nandscope report"),
        (&["layout", "audit", name, "--align", "5"], 2, "cannot be an erase block"),
        (&["layout", "plan", name, "--for", "nonsense"], 2, "there are raspberry-pi, camera"),
        (&["layout", "plan", name, "--for", "fat:1GiB,ext4"], 1, "do not fit"),
        (&["layout", "check", bad, "--start", "8MiB"], 1, "is not a nandscope report"),
        (&["layout", "prove", name], 4, "--consent 16777216"),
        (&["layout", "prove", name, "--writes", "1MiB"], 2, "take fewer --rounds or allow more"),
        (&["format", name, "--fs", "fat32"], 1, "choose another type or cluster"),
        (&["format", name, "--align", "16MiB"], 1, "a smaller --align helps, such as 4MiB"),
        (&["format", name, "--volume-id", "xyz"], 2, "eight hexadecimal digits are needed, such as 1234-ABCD"),
        (&["format", name, "--cluster", "3000"], 2, "a power of two"),
        (&["format", name, "--measured", bad], 1, "is not a nandscope report"),
        (&["format", name], 4, "--consent 16777216"),
        (&["erase", name, "--how", "wipe"], 2, "discard, secure, zeroes, ones, random, stamp"),
        (&["erase", name, "--region", "5..3"], 2, "before it begins"),
        (&["erase", name, "--how", "secure", "--consent", "16777216"], 1, "overwrite instead"),
        (&["erase", "sim:null", "--how", "secure"], 1, "overwrite instead"),
    ] {
        let out = nandscope(args);
        let error = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(code), "{args:?}: {error}");
        assert!(error.contains(words), "{args:?}: {error}");
        assert_eq!(error.matches("nandscope: ").count() + error.matches("error: ").count(), 1, "{args:?}: {error}");
    }
    assert_eq!(first_difference(&before, &fs::read(&path).unwrap()), None);
}

/// `| head` is no error: a reader that goes away ends nothing in a panic, and what was asked for is done.
#[test]
fn a_reader_that_goes_away_does_no_harm() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("card.img");
    image(&path, 16 * MIB);
    let name = path.to_str().unwrap();
    for args in
        [&["format", name, "--consent", "16777216", "-q"][..], &["layout", "audit", name], &["layout", "plan", name, "--for", "camera"]]
    {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let out = Command::new(env!("CARGO_BIN_EXE_nandscope")).args(args).stdout(writer).output().unwrap();
        let error = String::from_utf8_lossy(&out.stderr);
        assert!(out.status.success() && error.is_empty(), "{args:?}: {} {error}", out.status);
    }
    assert!(ok(&["layout", "audit", name]).contains("field by field"));
}

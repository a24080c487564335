//! Every command that writes keeps to its target: each byte outside is compared.

use super::Test;
use super::bed::{self, Loop, MIB, sh};
use nandscope::device::{Consent, Device, Fill, Limits, OpenOptions, open};
use nandscope::layout::{erase, format};
use nandscope_fat::{Options, Step, plan};
use std::ops::Range;
use std::path::Path;
use std::process::Command;

pub const IMAGES: &[Test] = &[("a_simulated_card_keeps_its_stamps", simulated)];
pub const LOOPS: &[Test] = &[
    ("writing_commands_stay_inside_a_partition", partition),
    ("writing_commands_stay_inside_an_image_in_a_larger_file", window),
    ("format_tells_the_kernel_of_the_new_partition", told),
    ("secure_discard_on_a_device_without_is_one_clear_error", secure),
];

/// Each command that writes, small.
const COMMANDS: &[&str] = &[
    "format TARGET",
    "format TARGET --fs exfat --label AB",
    "format TARGET --align 3MiB --fs fat16",
    "format TARGET --erase stamp",
    "erase TARGET",
    "erase TARGET --how zeroes --verify",
    "erase TARGET --how random --region 1MiB..2097664 --verify",
    "erase TARGET --how discard --region 700416..9MiB --align 1MiB --fill-ends",
    "format TARGET",
    "layout prove TARGET --rounds 3 --file 64KiB",
    "layout prove TARGET --rounds 3 --file 64KiB --no-undo",
    "format TARGET --fs exfat",
    "layout prove TARGET --rounds 3 --file 64KiB --no-undo",
    "format TARGET --fs fat16 --cluster 4KiB",
    "age TARGET --passes 1 --fill 0.3 --largest 1MB",
    "defrag TARGET",
    "frag TARGET --states fragmented,blank --passes 1 --fill 0.3 --largest 1MB --sizes 512,32KiB --repeats 2 --folder 3",
];

/// Runs all commands on a device that is `inside` of a file; afterwards everything outside must be as it was.
fn run_all(device: &str, file: &Path, inside: Range<u64>) {
    let before = std::fs::read(file).unwrap();
    let consent = (inside.end - inside.start).to_string();
    let state = bed::dir(false);
    for command in COMMANDS {
        let args: Vec<&str> = command.split(' ').map(|a| if a == "TARGET" { device } else { a }).collect();
        let out = Command::new(env!("CARGO_BIN_EXE_nandscope"))
            .args(&args)
            .args(["--consent", &consent, "--quiet"])
            .env("XDG_STATE_HOME", state.path())
            .output()
            .unwrap();
        // 3: no difference was found, or nothing could be decided.
        let fine = out.status.success() || (out.status.code() == Some(3) && matches!(args[0], "layout" | "frag"));
        assert!(fine, "{args:?}: {}\n{}", out.status, String::from_utf8_lossy(&out.stderr));
        let after = std::fs::read(file).unwrap();
        let (a, b) = (inside.start as usize, inside.end as usize);
        assert!(before[..a] == after[..a], "{args:?} wrote in front of its target");
        assert!(before[b..] == after[b..], "{args:?} wrote behind its target");
    }
    let after = std::fs::read(file).unwrap();
    assert!(
        before[inside.start as usize..inside.end as usize] != after[inside.start as usize..inside.end as usize],
        "nothing was written at all"
    );
}

fn partition() {
    let dir = bed::dir(true);
    // An odd beginning, as a PC of old chose it, and neighbours on both sides.
    let (start, count) = (8255u32, 98_000u32);
    let file = bed::image(dir.path(), 64 * MIB);
    let l = Loop::partitioned(&file, &[(63, 8192), (start, count), (start + count, 2048)]);
    let begin = u64::from(start) * 512;
    run_all(&format!("{}p2", l.0), &file, begin..begin + u64::from(count) * 512);
}

fn window() {
    let dir = bed::dir(true);
    let file = bed::image(dir.path(), 64 * MIB);
    let (at, len) = (3 * MIB + 4096, 48 * MIB);
    let l = Loop::over(&file, &["--offset", &at.to_string(), "--sizelimit", &len.to_string()]);
    run_all(&l.0, &file, at..at + len);
}

fn told() {
    let dir = bed::dir(true);
    let file = bed::image(dir.path(), 64 * MIB);
    let l = Loop::over(&file, &["--partscan"]);
    let out = Command::new(env!("CARGO_BIN_EXE_nandscope"))
        .args(["format", &l.0, "--consent", &(64 * MIB).to_string(), "--quiet", "--json"])
        .output()
        .unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let made: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    // A kernel that reads no tables has no file to look at.
    let listed = format!("/sys/class/block/{}p1/start", l.name());
    match std::fs::read_to_string(&listed) {
        Ok(start) => assert_eq!(start.trim().parse::<u64>().unwrap() * 512, made["partition"]["start"].as_u64().unwrap()),
        Err(e) => crate::skip::skipped("partitions of a loop device", &format!("this kernel made none: {listed}: {e}")),
    }
}

fn secure() {
    let dir = bed::dir(true);
    let file = bed::image(dir.path(), 16 * MIB);
    let before = std::fs::read(&file).unwrap();
    let l = Loop::over(&file, &[]);
    for target in [l.0.as_str(), file.to_str().unwrap()] {
        if target != l.0 {
            sh("losetup", &["-d", &l.0]);
        }
        let out = Command::new(env!("CARGO_BIN_EXE_nandscope"))
            .args(["erase", target, "--how", "secure", "--consent", &(16 * MIB).to_string(), "--quiet"])
            .output()
            .unwrap();
        let error = String::from_utf8_lossy(&out.stderr);
        let last = error.lines().last().unwrap_or_default();
        assert_eq!(out.status.code(), Some(1), "{error}");
        assert!(last.contains("has no secure discard; overwrite instead"), "{error}");
        assert!(before == std::fs::read(&file).unwrap(), "something was written");
    }
}

/// Erasing and formatting on simulated cards that hold stamps; the eMMC has a secure discard, the SD card has none.
fn simulated() {
    let size = 24 * MIB;
    for (card, has) in [("emmc51-8gb", true), ("flashbench-readme", false)] {
        let o = open(&format!("sim:{card}?content"), &OpenOptions::default()).unwrap();
        let consent = Consent::check(o.id(), None).unwrap();
        let mut g = o.writable(&consent, &Limits { budget: 1 << 40, ..Limits::default() }).unwrap();
        let mut want = vec![0; size as usize];
        Fill::Stamp(3).render(0, &mut want);
        g.store(0, &want).unwrap();
        let mut got = vec![0; size as usize];
        let region = 3 * MIB + 512..13 * MIB + 1024;
        let hows = [erase::How::Fill(Fill::Random(1)), erase::How::Discard, erase::How::SecureDiscard, erase::How::Fill(Fill::Ones)];
        for how in hows {
            let order = erase::Order { region: region.clone(), how, unit: MIB, first: 0, ends: None };
            let whole = erase::parts(&region, MIB, 0, 0).whole;
            let done = erase::run(&mut g, &order, &mut |_| true);
            if how == erase::How::SecureDiscard && !has {
                let why = done.unwrap_err().to_string();
                assert!(why.contains("no secure discard; overwrite instead"), "{why}");
                continue;
            }
            done.unwrap();
            match how {
                erase::How::Fill(fill) => fill.render(region.start, &mut want[region.start as usize..region.end as usize]),
                _ => want[whole.start as usize..whole.end as usize].fill(0),
            }
            g.load(0, &mut got).unwrap();
            assert!(got == want, "{card}: {how:?}");
        }
        // A format changes what it lists as its steps, and no byte more.
        let layout = plan(&Options { table: true, ..Options::card(size) }).unwrap();
        format::apply(&mut g, &layout, &mut |_| {}).unwrap();
        for step in layout.steps() {
            match step {
                Step::Zero { at, len } => want[at as usize..(at + len) as usize].fill(0),
                Step::Put { at, bytes } => want[at as usize..at as usize + bytes.len()].copy_from_slice(&bytes),
                Step::Flush => {}
            }
        }
        g.load(0, &mut got).unwrap();
        assert!(got == want, "{card}: format");
    }
}

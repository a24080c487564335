//! A name of a target means the same to every command: the same card, or the same error.

use std::path::Path;
use std::process::{Command, Output};

/// Every command that takes a target, with what else it needs; `{}` is the target.
const COMMANDS: [&[&str]; 22] = [
    &["check", "{}", "-q"],
    &["rate", "{}", "-q", "--class", "C10"],
    &["uflip", "{}", "-q", "--only", "ORD.R"],
    &["probe", "{}", "-q"],
    &["run", "read-boundary", "{}", "-q"],
    &["ab", "{}", "--a", "default", "--b", "split=8KiB", "--load", "read"],
    &["partitions", "{}"],
    &["bench", "{}", "-q"],
    &["flashbench", "-a", "{}"],
    &["identify", "{}"],
    &["serve", "{}", "-q"],
    &["layout", "audit", "{}"],
    &["layout", "plan", "{}", "--for", "camera"],
    &["layout", "prove", "{}"],
    &["format", "{}"],
    &["erase", "{}"],
    &["frag", "{}", "-q"],
    &["map", "{}", "-q"],
    &["defrag", "{}", "-q"],
    &["sim", "{}", "--pattern", "random-read-4k", "-q"],
    &["cards", "show", "{}"],
    &["replay", "trace.txt", "{}", "--out", "measured.tsv", "-q"],
];
/// As `map`: takes a target and a plan.
const AGE: &[&str] = &["age", "{}", "-q"];
/// Take none.
const OTHERS: [&str; 14] =
    ["twin", "sweep", "campaign", "life", "list", "infer", "quirk", "report", "undo", "compare", "survey", "completions", "man", "help"];

fn run(dir: &Path, args: &[&str], target: &str) -> Output {
    let args = args.iter().map(|a| a.replace("{}", target));
    Command::new(env!("CARGO_BIN_EXE_nandscope")).args(args).current_dir(dir).output().expect("it starts")
}

fn dir() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let shown = run(dir.path(), &["cards", "show", "{}"], "null");
    std::fs::write(dir.path().join("card.toml"), shown.stdout).unwrap();
    std::fs::write(dir.path().join("wrong.toml"), "name = 7").unwrap();
    std::fs::write(dir.path().join("trace.txt"), "fio version 2 iolog\ncard add\ncard open\ncard read 4096 4096\n").unwrap();
    dir
}

#[test]
fn every_command_is_in_the_table() {
    let out = run(Path::new("."), &["help"], "");
    let text = String::from_utf8(out.stdout).unwrap();
    let listed = text.split_once("\nOptions:").unwrap().0;
    let known: Vec<&str> = COMMANDS.iter().map(|c| c[0]).chain([AGE[0]]).chain(OTHERS).collect();
    let mut seen = 0;
    for name in listed.lines().filter_map(|l| l.strip_prefix("  ")?.split_whitespace().next()) {
        assert!(known.contains(&name), "does '{name}' take a target? Put it into the table");
        seen += 1;
    }
    assert!(seen > 20, "{text}");
}

#[test]
fn what_names_nothing_is_the_same_error_everywhere() {
    let dir = dir();
    for (target, says) in [
        ("sim:nosuch", "there is no card 'nosuch'"),
        ("sim:usb-stik", "did you mean sim:usb-stick?"),
        ("usb-stik", "did you mean sim:usb-stick?"),
        ("sim:null?seed=x", "'x' is no seed"),
        ("null?sead=1", "did you mean seed?"),
        ("sim:null?host=toaster", "there is no host 'toaster'"),
        ("sim:./card.toml?speed=1", "unknown setting 'speed=1'"),
        ("./nosuch.toml", "'nandscope cards' lists"),
        ("wrong.toml?seed=3", "wrong.toml"),
        ("/dev/nosuch", "'nandscope list' shows the devices"),
        ("./nosuch.img", "'nandscope list' shows the devices"),
    ] {
        let mut first: Option<String> = None;
        for command in COMMANDS.iter().chain([&AGE]) {
            let out = run(dir.path(), command, target);
            let text = String::from_utf8_lossy(&out.stderr).to_string();
            let (_, error) = text.split_once("cannot open ").unwrap_or_else(|| panic!("{command:?} {target}: {text}"));
            assert_eq!(out.status.code(), Some(1), "{command:?} {target}: {text}");
            assert!(error.contains(says), "{command:?} {target}: {text}");
            let first = first.get_or_insert(error.trim_end().to_string());
            // identify takes the kernel's name of a disk as well, and says that there is none.
            assert!(error.starts_with(first.as_str()) && (error.trim_end() == first || command[0] == "identify"), "{command:?}: {error}");
        }
    }
}

#[test]
fn every_form_of_a_card_is_the_same_card_everywhere() {
    let dir = dir();
    // Whatever a command prints of a card, it prints it of each form of its name.
    let plain = |out: &Output, forms: &[&str]| {
        let mut names: Vec<String> = forms.iter().flat_map(|f| [format!("sim:{f}"), f.to_string()]).collect();
        names.extend(names.clone().iter().filter_map(|n| Some(n.split_once('?')?.0.to_string())));
        names.sort_by_key(|n| std::cmp::Reverse(n.len()));
        names
            .iter()
            .fold(String::from_utf8_lossy(&out.stdout).to_string(), |text, n| text.replace(n.as_str(), "IT"))
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
    };
    for forms in [
        &["null", "sim:null", "sim:null?seed=1"][..],
        &["usb-stick?seed=7", "sim:usb-stick?seed=7", "sim:usb-stick?seed=7&content"],
        &["card.toml", "./card.toml", "sim:card.toml", "sim:./card.toml", "card.toml?seed=1"],
    ] {
        for command in [
            &["identify", "{}"][..],
            &["layout", "plan", "{}", "--for", "camera"],
            &["sim", "{}", "--pattern", "random-write-4k", "--requests", "200", "-q"],
            &["cards", "show", "{}"],
            &["flashbench", "-a", "--count=1", "{}"],
            &["run", "interval", "{}", "-q"],
        ] {
            let mut first: Option<String> = None;
            for form in forms {
                let out = run(dir.path(), command, form);
                assert!(
                    out.status.code().is_some_and(|c| c != 1 && c != 2),
                    "{command:?} {form}: {}",
                    String::from_utf8_lossy(&out.stderr)
                );
                let text = plain(&out, forms);
                assert_eq!(&text, first.get_or_insert(text.clone()), "{command:?} {form}");
            }
        }
    }
}

#[test]
fn what_is_no_simulated_card_is_the_same_error_where_one_is_needed() {
    let dir = dir();
    std::fs::write(dir.path().join("null"), [0; 512]).unwrap();
    for (target, says) in [("exec:true", "no simulated card"), ("null", "the built-in card is sim:null"), (".", "no simulated card")] {
        for command in [&["serve", "{}", "-q"][..], &["sim", "{}", "--pattern", "random-read-4k", "-q"], &["cards", "show", "{}"]] {
            let out = run(dir.path(), command, target);
            let text = String::from_utf8_lossy(&out.stderr).to_string();
            assert!(out.status.code() == Some(1) && text.contains(says), "{command:?} {target}: {text}");
        }
    }
    let two = run(dir.path(), &["sim", "{}", "--seed", "2", "--pattern", "random-read-4k", "-q"], "sim:null?seed=1");
    assert!(String::from_utf8_lossy(&two.stderr).contains("two seeds"));
    for (target, says) in
        [("sim:null?seed=1&seed=2", "?seed is given twice"), ("sim:null?host=pi-sdio&host=pi-sdio", "?host is given twice")]
    {
        let out = run(dir.path(), &["sim", "{}", "--pattern", "random-read-4k", "-q"], target);
        let text = String::from_utf8_lossy(&out.stderr).to_string();
        assert!(out.status.code() == Some(1) && text.contains(says), "{target}: {text}");
    }
}

/// The plan, and nothing else: no consent is asked for and nothing is touched.
#[test]
fn a_dry_run_touches_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let image = dir.path().join("card.img");
    let content: Vec<u8> = (0..64u32 << 20).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    std::fs::write(&image, &content).unwrap();
    let trace = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&trace, "fio version 2 iolog\ncard add\ncard open\ncard write 4096 4096\n").unwrap();
    let help = |c: &str| run(dir.path(), &[c, "--help"], "");
    let path = image.to_str().unwrap();
    let all = [
        &["probe", path, "--write", "--dry-run"][..],
        &["run", "write-unit", path, "--write", "--dry-run"],
        &["check", path, "--write", "--dry-run"],
        &["rate", path, "--write", "--dry-run"],
        &["uflip", path, "--write", "--dry-run"],
        &["ab", path, "--a", "default", "--b", "split=8KiB", "--write", "--dry-run"],
        &["erase", path, "--how", "zeroes", "--region", "4MiB..8MiB", "--dry-run"],
        &["partitions", path, "--part", "0..16MiB", "--part", "16MiB..32MiB", "--write", "--dry-run"],
        &["bench", path, "--dry-run"],
        &["replay", trace.path().to_str().unwrap(), path, "--dry-run"],
        &["format", path, "--dry-run"],
        &["frag", path, "--dry-run"],
        &["flashbench", path, "-p", "--dry-run"],
        &["layout", "prove", path, "--dry-run"],
    ];
    // These need something to work on: below, and where runs are interrupted.
    let others = ["age", "defrag", "undo"];
    for command in COMMANDS.iter().map(|c| c[0]).filter(|c| *c != "layout" && *c != "cards") {
        let can = String::from_utf8_lossy(&help(command).stdout).contains("--dry-run");
        assert_eq!(can, all.iter().any(|a| a[0] == command) || others.contains(&command), "{command} --dry-run");
    }
    for args in all {
        let out = std::process::Command::new(env!("CARGO_BIN_EXE_nandscope"))
            .args(args)
            .current_dir(dir.path())
            .env("XDG_STATE_HOME", dir.path())
            .output()
            .unwrap();
        let (said, plan) = (String::from_utf8(out.stdout).unwrap(), String::from_utf8(out.stderr).unwrap());
        assert_eq!(out.status.code(), Some(0), "{args:?}: {said}{plan}");
        let consent = said.contains("--consent 67108864") || args[0] == "format" && said.contains("nothing written");
        assert!(consent, "{args:?}: {said}{plan}");
        assert!(std::fs::read(&image).unwrap() == content, "{args:?} wrote");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "{args:?} left a file");
    }
    for (command, says) in [("age", "about 622 MiB written"), ("defrag", "now: no files")] {
        let out = run(dir.path(), &[command, path, "--dry-run"], "");
        assert_eq!(out.status.code(), Some(1), "{command}: {}", String::from_utf8_lossy(&out.stderr));
        assert!(run(dir.path(), &["format", path, "-q", "--consent", "67108864"], "").status.success());
        let content = std::fs::read(&image).unwrap();
        let out = run(dir.path(), &[command, path, "--dry-run"], "");
        let said = String::from_utf8_lossy(&out.stdout).replace("\n  ", " ");
        assert!(out.status.success() && said.contains(says) && said.contains("--consent 67108864"), "{said}");
        assert!(std::fs::read(&image).unwrap() == content, "{command} wrote");
        std::fs::write(&image, vec![0; 64 << 20]).unwrap();
    }
    // Of a simulated card it says what it would do, too.
    let out = std::process::Command::new(env!("CARGO_BIN_EXE_nandscope")).args(["probe", "sim:noisy", "--dry-run"]).output().unwrap();
    assert!(String::from_utf8(out.stderr).unwrap().contains("will write at most") && out.status.success());
}

/// Defaults from a file: they hold until something is given, and never allow a write.
#[test]
fn defaults_of_ones_own() {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().join("nandscope");
    std::fs::create_dir(&home).unwrap();
    let nandscope = |config: &str, args: &[&str]| {
        std::fs::write(home.join("config.toml"), config).unwrap();
        let out = Command::new(env!("CARGO_BIN_EXE_nandscope"))
            .args(args)
            .current_dir(dir.path())
            .env("XDG_CONFIG_HOME", dir.path())
            .env_remove("NANDSCOPE_CONFIG")
            .output()
            .unwrap();
        let text = |b: Vec<u8>| String::from_utf8(b).unwrap();
        (out.status.code().unwrap(), text(out.stdout), text(out.stderr))
    };
    let probe = ["probe", "sim:null", "--dry-run"];
    let config = "[probe]\ntime = '9m'\nread-only = true\n[survey]\ndir = 'kept'\n";
    let (code, _, plan) = nandscope(config, &probe);
    assert!(code == 0 && plan.contains("at most 540 s") && plan.contains("will write nothing"), "{plan}");
    let (_, _, plan) = nandscope(config, &[&probe[..], &["--time", "2m"]].concat());
    assert!(plan.contains("at most 120 s"), "{plan}");
    assert!(nandscope(config, &["survey", "list"]).2.contains("there is no survey in kept"));
    assert!(!nandscope(config, &["survey", "--dir", "other", "list"]).2.contains("kept"));
    for (config, said) in [
        ("[probe]\nwrite = true", "'write' is given each time"),
        ("consent = '1'", "'consent' is given each time"),
        ("[probe]\ntmie = '1m'", "probe has no option 'tmie'; did you mean time?"),
        ("[probe]\ntime = 'soon'", "'soon' is not a time"),
    ] {
        let (code, out, err) = nandscope(config, &probe);
        assert!(code == 2 && out.is_empty() && err.contains(said) && err.contains("config.toml"), "{config}: {err}");
    }
}

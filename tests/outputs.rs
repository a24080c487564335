//! A path that cannot be written is told before anything is measured, and nothing is left where a result does not come to be.

use std::fs;
use std::process::Command;

#[test]
fn paths_are_tried_first() {
    let dir = tempfile::tempdir().unwrap();
    let run = |words: &[&str]| {
        let out = Command::new(env!("CARGO_BIN_EXE_nandscope")).args(words).current_dir(dir.path()).output().unwrap();
        let text = |b: Vec<u8>| String::from_utf8(b).unwrap();
        (out.status.code().unwrap(), text(out.stdout), text(out.stderr))
    };
    fs::write(dir.path().join("file"), "kept").unwrap();
    let card = "sim:toshiba-emmc";
    for words in [
        &["rate", card, "--json", "nodir/x"][..],
        &["check", card, "--json", "nodir/x"],
        &["check", card, "--format", "csv", "-o", "nodir/x"],
        &["check", card, "--history", "file"],
        &["probe", card, "--json", "nodir/x"],
        &["probe", card, "--twin", "nodir/x"],
        &["run", "scatter", card, "--json", "nodir/x"],
        &["ab", card, "--b", "split=8KiB", "--json", "nodir/x"],
        &["partitions", card, "--json", "nodir/x"],
        &["bench", card, "--html", "nodir/x"],
        &["bench", card, "--svg", "file/x"],
        &["frag", card, "--html", "nodir/x"],
        &["frag", card, "--svg", "nodir/x"],
        &["frag", card, "--gnuplot", "nodir/x"],
        &["uflip", card, "--out", "file/x"],
        &["erase", card, "--json=nodir/x"],
        &["layout", "prove", card, "--json", "nodir/x"],
    ] {
        let (code, out, err) = run(words);
        assert_eq!(code, 1, "{words:?}: {out}{err}");
        assert!(out.is_empty() && err.lines().last().is_some_and(|l| l.starts_with("nandscope: cannot ")), "{words:?}: {out}{err}");
    }
    let (code, out, err) = run(&["check", card, "--json", "-", "--format", "csv"]);
    assert!(code == 2 && out.is_empty() && err.lines().count() == 1, "{code} {out}{err}");
    let (code, ..) = run(&["ab", card, "--b", "default", "--json", "x.json", "--pairs", "1"]);
    assert_eq!(code, 2);
    let left: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left, ["file"]);
    assert_eq!(fs::read_to_string(dir.path().join("file")).unwrap(), "kept");
}

/// A result takes the place of nothing that is read or measured, nor of another result.
#[test]
fn results_replace_no_input() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).to_str().unwrap().to_string();
    let (a, b, image, model, log) = (at("a.json"), at("b.json"), at("card.img"), at("card.toml"), at("log"));
    assert_eq!(nandscope(&["probe", "sim:null", "-q", "--read-only", "--time", "1s", "--json", &a]).2, "");
    fs::copy(&a, &b).unwrap();
    fs::write(&image, vec![7; 64 << 20]).unwrap();
    fs::write(&model, nandscope(&["cards", "show", "null"]).1).unwrap();
    fs::write(&log, "104857600 bytes (105 MB, 100 MiB) copied, 10.0 s, 10.5 MB/s\n").unwrap();
    let held = || [&a, &b, &image, &model, &log].map(|p| fs::read(p).unwrap());
    let before = held();
    let named = format!("sim:{model}");
    for (words, why) in [
        (&["probe", &image, "-q", "--read-only", "--time", "1s", "--json", &image][..], "would overwrite"),
        (&["check", &image, "--quick", "--json", &image], "would overwrite"),
        (&["map", &image, "--svg", &image], "would overwrite"),
        (&["probe", &named, "-q", "--read-only", "--twin", &model], "would overwrite"),
        (&["compare", &a, &b, "--json", &b], "would overwrite"),
        (&["compare", "--json", &a, &b], "is a report of probe"),
        (&["report", &a, "--html", &a], "would overwrite"),
        (&["report", &a, "--format", "csv", "-o", &a], "would overwrite"),
        (&["twin", &a, "-o", &a], "would overwrite"),
        (&["infer", &log, "--json", &log], "would overwrite"),
        (&["flashbench", "-a", &named, "--out", &model], "the target itself"),
        (&["check", "sim:null", "--quick", "--json", &at("x"), "--format", "csv", "-o", &at("x")], "name one file"),
        (&["report", &a, "--json", "-", "--html", "-"], "standard output takes one"),
        (&["probe", "sim:null", "--json", "-", "--twin", "-"], "standard output takes one"),
    ] {
        let (code, out, err) = nandscope(words);
        assert!(code == Some(2) && out.is_empty() && err.contains(why), "{words:?}: {code:?} {out}{err}");
        assert!(held() == before, "{words:?}");
    }
    // A report takes the place of the one before it.
    assert_eq!(nandscope(&["probe", "sim:null", "-q", "--read-only", "--time", "1s", "--json", &a]).2, "");
    let (_, out, err) = nandscope(&["probe", "sim:cf-256mb", "-q", "--time", "20s", "--twin", "-"]);
    assert!(out.is_empty() || out.starts_with("name = "), "{out}{err}");
}

#[test]
fn an_access_of_nothing_is_refused() {
    for load in ["read", "linear", "random", "unaligned"] {
        let words = ["ab", "sim:null", "--b", "split=8KiB", "--load", load, "--size", "0"];
        let out = Command::new(env!("CARGO_BIN_EXE_nandscope")).args(words).output().unwrap();
        let err = String::from_utf8_lossy(&out.stderr);
        assert!(out.status.code() == Some(2) && err.contains("a sector or more"), "{load}: {:?} {err}", out.status);
    }
}

fn nandscope(words: &[&str]) -> (Option<i32>, String, String) {
    let out = Command::new(env!("CARGO_BIN_EXE_nandscope")).args(words).output().unwrap();
    let text = |b: Vec<u8>| String::from_utf8(b).unwrap();
    (out.status.code(), text(out.stdout), text(out.stderr))
}

/// Whoever gives an option expects something of it: one that would do nothing is wrong usage, with what to do instead.
#[test]
fn an_option_that_would_do_nothing_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let report = dir.path().join("a.json").to_str().unwrap().to_string();
    assert_eq!(nandscope(&["probe", "sim:null", "-q", "--read-only", "--time", "1s", "--json", &report]).2, "");
    let link = dir.path().join("b.json").to_str().unwrap().to_string();
    std::os::unix::fs::symlink(&report, &link).unwrap();
    let card = "sim:cf-256mb";
    for (words, why) in [
        (&["rate", card, "--buffer", "1MiB"][..], "--for dashcam"),
        (&["frag", card, "--dry-run", "--au", "0"], "--au 0"),
        (&["frag", card, "--dry-run", "--piece", "0"], "--piece 0"),
        (&["age", card, "--dry-run", "--piece", "0"], "--piece 0"),
        (&["frag", card, "--dry-run", "--spare", "/tmp"], "leave it out"),
        (&["frag", card, "--dry-run", "--system-disk"], "leave it out"),
        (&["report", &report, "--samples", "none"], "--json F"),
        (&["report", &report, "--samples", "none", "--format", "csv"], "--json F"),
        (&["ab", card, "--b", "split=8KiB,split=4KiB"], "given twice"),
        (&["probe", card, "--only", "page", "--json"], "a file"),
        (&["probe", card, "--only", "page", "--format", "csv"], "a file"),
    ] {
        let (code, out, err) = nandscope(words);
        assert!(code == Some(2) && out.is_empty() && err.starts_with("nandscope: ") && err.contains(why), "{words:?}: {code:?} {out}{err}");
    }
    // The same card twice is said, and compared.
    for words in [["compare", &report, &report], ["compare", &report, &link]] {
        let (code, out, err) = nandscope(&words);
        assert!(matches!(code, Some(0 | 3)) && !out.is_empty() && err.contains("given twice"), "{words:?}: {code:?} {out}{err}");
    }
    // Where it acts it is taken.
    let other = dir.path().join("c.json").to_str().unwrap().to_string();
    let only = ["probe", card, "-q", "--read-only", "--time", "1s", "--only", "page", "--json", &other];
    assert!(matches!(nandscope(&only).0, Some(0 | 3)) && fs::metadata(&other).is_ok());
    let shared = dir.path().join("d.json").to_str().unwrap().to_string();
    nandscope(&["report", &other, "--samples", "none", "--json", &shared]);
    assert!(fs::metadata(&shared).unwrap().len() < fs::metadata(&other).unwrap().len());
}

/// A value that fits nothing is wrong usage in every command.
#[test]
fn bad_values_are_wrong_usage() {
    let dir = tempfile::tempdir().unwrap();
    let plan = dir.path().join("plan.toml");
    fs::write(&plan, "nonsense = 3\n").unwrap();
    let (plan, text) = (plan.to_str().unwrap(), dir.path().join("text"));
    fs::write(&text, "hello\n").unwrap();
    for (words, why) in [
        (&["frag", "sim:cf-256mb", "--cluster", "3"][..], "power of two"),
        (&["bench", "sim:cf-256mb", "--cluster", "3"], "power of two"),
        (&["bench", "sim:wintec-1gb", "--file", "2GB"], "does not fit on sim:wintec-1gb, which has"),
        (&["bench", "sim:wintec-1gb", "--file", "2GB", "--dry-run"], "give a smaller --file"),
        (&["bench", "sim:cf-256mb", "--chunks", "0"], "1 byte to 64 MiB"),
        (&["bench", "sim:cf-256mb", "--chunks", "x"], "--chunks"),
        (&["man", "nosuch"], "'nandscope -h' lists them"),
        (&["campaign", plan], "unknown field"),
        (&["sweep", plan, "-o", "/tmp"], "unknown field"),
        (&["identify", text.to_str().unwrap()], "--dump"),
        (&["flashbench", "-s", "--scatter-span", "0", "sim:null"], "--scatter-span=0"),
        (&["uflip", "sim:null", "--only", "nosuch"], "nosuch"),
        (&["erase", "sim:cf-256mb", "--region", "1MiB..2MiB", "--align", "4MiB"], "no whole unit of 4 MiB"),
        (&["rate", "sim:toshiba-emmc", "--region", "0..1MiB", "--class", "C2"], "behind a file system's tables"),
        (&["rate", "sim:toshiba-emmc", "--for", "logger:1B/s"], "1kB/s to 1GB/s"),
    ] {
        let (code, out, err) = nandscope(words);
        assert!(code == Some(2) && out.is_empty() && err.contains(why), "{words:?}: {code:?} {out}{err}");
    }
}

/// An error of standard output names it, and `-` is standard output for every command that writes JSON.
#[test]
fn standard_output_is_named_and_taken() {
    let dir = tempfile::tempdir().unwrap();
    let report = dir.path().join("a.json").to_str().unwrap().to_string();
    nandscope(&["probe", "sim:null", "-q", "--read-only", "--time", "1s", "--json", &report]);
    let survey = dir.path().join("survey").to_str().unwrap().to_string();
    for words in [
        &["list"][..],
        &["infer", &report],
        &["report", &report],
        &["report", &report, "--json"],
        &["report", &report, "--figure", "list"],
        &["survey", "--dir", &survey, "list"],
        &["survey", "--dir", &survey, "show", "ref-chan-512mb-sdc"],
        &["completions", "bash"],
        &["man"],
        &["compare", "ref:"],
        &["cards"],
    ] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let out = Command::new(env!("CARGO_BIN_EXE_nandscope")).args(words).stdout(full).output().unwrap();
        let err = String::from_utf8(out.stderr).unwrap();
        let named =
            err.lines().last().is_some_and(|l| l.starts_with("nandscope: cannot write to standard output: No space left on device"));
        assert!(named && err.matches("cannot write").count() == 1 && out.status.code() == Some(1), "{words:?}: {err}");
    }
    for words in [
        &["format", "sim:cf-256mb", "--dry-run"][..],
        &["erase", "sim:cf-256mb"],
        &["layout", "plan", "sim:cf-256mb", "--for", "logger"],
        &["list"],
        &["cards", "show", "null"],
        &["survey", "--dir", &survey, "list"],
        &["compare", "ref:chan-512mb-sdc", "ref:chan-128mb-sdc"],
    ] {
        let (code, out, err) = nandscope(&[words, &["--json", "-"]].concat());
        let first = out.lines().next().unwrap_or_default().trim_start();
        assert!(matches!(code, Some(0 | 3)) && first.starts_with(['{', '[']), "{words:?}: {code:?} {out}{err}");
    }
}

/// What Ctrl-C ends early ends alike.
#[test]
fn interrupted_commands_have_one_exit_code() {
    use rustix::process::{Pid, Signal, kill_process};
    let dir = tempfile::tempdir().unwrap();
    let plan = dir.path().join("plan.toml");
    fs::write(&plan, "cards = [\"toshiba-emmc\"]\nseeds = 100000\n").unwrap();
    let out = dir.path().join("out");
    for words in [
        &["sweep", plan.to_str().unwrap(), "-q", "-o", out.to_str().unwrap()][..],
        &["frag", "sim:cf-256mb", "-q", "--passes", "100000"],
        &["bench", "sim:wintec-1gb", "-q", "--for", "10000h"],
        &["uflip", "sim:patriot-16gb", "-q", "--time", "10000h"],
        &["erase", "sim:sdxc-64gb", "--how", "random", "-q"],
    ] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_nandscope"))
            .args(words)
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        // Once it hears signals.
        let hears = || {
            let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
            let caught = status.lines().find_map(|l| l.strip_prefix("SigCgt:")).map_or("0", str::trim).to_string();
            u64::from_str_radix(&caught, 16).unwrap() >> 1 & 1 == 1
        };
        while !hears() {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        kill_process(Pid::from_raw(child.id() as i32).unwrap(), Signal::INT).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(130), "{words:?}");
    }
}

/// The first Ctrl-C ends a run cleanly and puts the old content back; a second one meanwhile ends it at once, and says what is not back.
#[test]
fn a_second_signal_ends_at_once_and_says_what_is_not_back() {
    use rustix::process::{Pid, Signal, kill_process};
    use std::time::{Duration, Instant};
    let dir = tempfile::tempdir().unwrap();
    let (slow, state, errors) = (dir.path().join("slow"), dir.path().join("state"), dir.path().join("errors"));
    // A real card of zeros, whose writes take a second each once the file is there.
    let card = dir.path().join("card.sh");
    let script = "echo nandscope-device 1 size=67108864 sector=512 content=yes real=yes name=slow\nn=0\nwhile read w at len fill; do\n\
                  n=$((n+1000000))\ncase $w in q) exit;; r) echo \"$n 500000 $len zeros\";;\n\
                  w) [ -e SLOW ] && sleep 1 || sleep 0.02; echo \"$n 500000\";; *) echo \"$n 0\";; esac\ndone\n";
    fs::write(&card, script.replace("SLOW", slow.to_str().unwrap())).unwrap();
    let target = format!("exec:sh {}", card.display());
    let journals = || fs::read_dir(state.join("nandscope")).map_or(0, Iterator::count);
    let until = |what: &dyn Fn() -> bool| {
        let began = Instant::now();
        while !what() {
            assert!(began.elapsed() < Duration::from_secs(30), "{}", fs::read_to_string(&errors).unwrap_or_default());
            std::thread::sleep(Duration::from_millis(10));
        }
    };
    let said = || fs::read_to_string(&errors).unwrap();
    for twice in [false, true] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_nandscope"))
            .args(["run", "write-unit", &target, "--write", "--consent", "slow", "-q", "--time", "1h"])
            .env("XDG_STATE_HOME", &state)
            .stdout(std::process::Stdio::null())
            .stderr(fs::File::create(&errors).unwrap())
            .spawn()
            .unwrap();
        let signal = || kill_process(Pid::from_raw(child.id() as i32).unwrap(), Signal::INT).unwrap();
        until(&|| journals() == 1);
        std::thread::sleep(Duration::from_millis(500));
        if twice {
            fs::write(&slow, "").unwrap();
        }
        signal();
        until(&|| said().contains("interrupted; putting the old content back"));
        if twice {
            signal();
        }
        assert_eq!(child.wait().unwrap().code(), Some(130), "{}", said());
        assert_eq!(said().contains("the old content is NOT put back: nandscope undo "), twice, "{}", said());
        assert_eq!(journals(), usize::from(twice), "{}", said());
    }
    fs::remove_file(&slow).unwrap();
    let out = Command::new(env!("CARGO_BIN_EXE_nandscope")).arg("undo").env("XDG_STATE_HOME", &state).output().unwrap();
    assert!(out.status.success() && journals() == 0, "{}", String::from_utf8_lossy(&out.stderr));
}

/// On a narrow screen tables become lines that fit.
#[test]
fn tables_fit_a_narrow_screen() {
    let dir = tempfile::tempdir().unwrap();
    let card = |name: &str| {
        let path = dir.path().join(format!("{name}.json")).to_str().unwrap().to_string();
        nandscope(&["probe", &format!("sim:{name}"), "-q", "--time", "10s", "--json", &path]);
        path
    };
    let [a, b] = ["toshiba-emmc", "sandisk-emmc"].map(card);
    for words in [
        &["cards"][..],
        &["check", "sim:toshiba-emmc", "--quick"],
        &["probe", "sim:toshiba-emmc", "--read-only"],
        &["rate", "sim:toshiba-emmc", "-q"],
        &["report", &a],
        &["sim", "page-mapped", "--pattern", "random-write-4k"],
        &["compare", &a, "--against", &b],
        &["compare", &a, &b],
        &["survey", "compare", "ref-greiman-wintec-1gb", "--against", "ref-greiman-sandisk-c2-2gb"],
        &["layout", "prove", "sim:cf-256mb", "--file", "64KiB", "-q"],
    ] {
        let usual = (words[0] == "layout").then_some(80);
        for columns in [40].into_iter().chain(usual) {
            let out = Command::new(env!("CARGO_BIN_EXE_nandscope")).args(words).env("COLUMNS", columns.to_string()).output().unwrap();
            let said = String::from_utf8(out.stdout).unwrap();
            let wide: Vec<&str> = said.lines().filter(|l| l.chars().count() > columns).collect();
            assert!(wide.is_empty() && said.lines().count() > 5, "{words:?}: {wide:#?}");
        }
    }
}

/// A warning of the report stands above what is made of it.
#[test]
fn a_counterfeit_is_named_where_its_life_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("fake.json").to_str().unwrap().to_string();
    assert_eq!(nandscope(&["probe", "sim:fake-wrap-32gb", "-q", "--time", "2m", "--json", &path]).0, Some(6));
    let said = nandscope(&["life", &path]).1;
    assert!(said.starts_with("COUNTERFEIT: "), "{said}");
    let json: serde_json::Value = serde_json::from_str(&nandscope(&["life", &path, "--json", "-"]).1).unwrap();
    assert!(json["warning"].as_str().is_some_and(|w| w.starts_with("COUNTERFEIT: ")), "{json}");
}

/// A dry run of a check says what would be read and written, where and for how long.
#[test]
fn a_dry_check_says_what_it_would_do() {
    let dir = tempfile::tempdir().unwrap();
    let image = dir.path().join("card.img");
    fs::File::create(&image).unwrap().set_len(64 << 20).unwrap();
    let image = image.to_str().unwrap();
    for (words, said) in [
        (
            &["check", "sim:toshiba-emmc", "--dry-run"][..],
            ["at most 90.0 s", "would write up to about 200 MiB in bytes 0 to", "would read up to about"],
        ),
        (&["check", "sim:toshiba-emmc", "--read-only", "--dry-run"], ["at most 90.0 s", "would write nothing", "read up to about 80 MiB"]),
        (
            &["check", image, "--write", "--dry-run"],
            ["kept in a journal", "would write up to about 144 MiB in bytes 0 to 67108864", "which is put back"],
        ),
    ] {
        let (code, _, err) = nandscope(words);
        let err = err.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(code == Some(0) && said.iter().all(|s| err.contains(s)), "{words:?}: {err}");
    }
}

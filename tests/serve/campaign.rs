//! A campaign over eight served cards, killed at random ten times.

use crate::bed::{self, Server};
use crate::skip;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Processes of steps below this directory.
fn steps_of(dir: &Path) -> Vec<i32> {
    let one = |e: fs::DirEntry| {
        let pid: i32 = e.file_name().to_str()?.parse().ok()?;
        let words = String::from_utf8_lossy(&fs::read(e.path().join("cmdline")).ok()?).into_owned();
        (words.contains("\0campaign\0step\0") && words.contains(dir.to_str()?)).then_some(pid)
    };
    fs::read_dir("/proc").unwrap().filter_map(|e| one(e.ok()?)).collect()
}

fn campaign(dir: &Path, words: &[&str]) -> Command {
    let mut c = bed::nandscope();
    c.args(["campaign", "plan.toml"]).args(words).current_dir(dir).env("XDG_STATE_HOME", dir.join("journals"));
    c
}

#[test]
fn eight_cards_killed_ten_times() {
    let what = "a campaign over eight served cards, killed ten times";
    if skip::short(what) || !bed::can(what, true, &[]) {
        return;
    }
    let _alone = bed::alone();
    let t = tempfile::tempdir().unwrap();
    let (dir, state) = (t.path(), t.path().join("plan.campaign"));
    let cards: Vec<Server> = (0..8).map(|i| Server::start(&[&format!("sim:toshiba-emmc?seed={}", 50 + i)])).collect();
    let mut plan = String::from(
        "steps = ['check', 'probe', 'twin', 'layout']\nbus = 'shared'\n[options]\ncheck = ['--time', '3s']\nprobe = ['--time', '2s', '--writes', '32MiB']\ntwin = ['--time', '200ms']\n",
    );
    let old = bed::noise(7, 1 << 20);
    for (i, c) in cards.iter().enumerate() {
        // Content that must be there afterwards, in the middle of the card and at its beginning.
        for at in [0u64, 3 << 30] {
            let mut f = fs::OpenOptions::new().write(true).open(&c.place).unwrap();
            std::io::Seek::seek(&mut f, std::io::SeekFrom::Start(at)).unwrap();
            std::io::Write::write_all(&mut f, &old).unwrap();
            f.sync_all().unwrap();
        }
        let size = bed::run("blockdev", &["--getsize64", &c.place]);
        plan +=
            &format!("[[card]]\nname = 'card {i}'\ntarget = '{}'\nconsent = '{}'\nlot = '{}'\n", c.place, size.trim(), ["A", "B"][i % 2]);
    }
    fs::write(dir.join("plan.toml"), plan).unwrap();
    let mut state_of = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos() as u64;
    eprintln!("chance {state_of}");
    for n in 0..10 {
        let mut child = campaign(dir, &["-q"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        state_of = state_of.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        std::thread::sleep(Duration::from_millis(1000 + (state_of >> 33) % 4000));
        let _ = child.kill();
        child.wait().unwrap();
        while n % 2 == 0 && !steps_of(&state).is_empty() {
            for pid in steps_of(&state) {
                let _ = rustix::process::kill_process(rustix::process::Pid::from_raw(pid).unwrap(), rustix::process::Signal::KILL);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    let out = campaign(dir, &["-q", "--json"]).output().unwrap();
    let v: Value = serde_json::from_slice(&out.stdout).unwrap_or_else(|e| panic!("{e}: {out:?}"));
    let done = |c: &Value| c["done"] == true && c["steps"].as_array().unwrap().iter().all(|s| s["code"].is_u64());
    assert!(v["cards"].as_array().unwrap().len() == 8 && v["cards"].as_array().unwrap().iter().all(done), "{v}");
    assert!(fs::read_dir(dir.join("journals/nandscope")).map_or(0, Iterator::count) == 0, "something is left to put back");
    // Steps that time accesses never overlap on the bus that the plan says is shared.
    let events = fs::read_to_string(state.join("events.jsonl")).unwrap();
    let mut on_bus: Option<String> = None;
    for e in events.lines().filter_map(|l| serde_json::from_str::<Value>(l).ok()) {
        let who = format!("{} {}", e["card"], e["step"]);
        match e["event"].as_str() {
            // What still runs is named right after this.
            Some("starts") => on_bus = None,
            Some("begins" | "goes_on") if e["lanes"].to_string().contains("bus") => {
                assert!(on_bus.is_none(), "{on_bus:?} and {who} at the same time\n{events}");
                on_bus = Some(who);
            }
            Some("ends") if on_bus.as_ref() == Some(&who) => on_bus = None,
            _ => {}
        }
    }
    for c in &cards {
        for at in [0usize, 3 << 30] {
            let mut f = fs::File::open(&c.place).unwrap();
            std::io::Seek::seek(&mut f, std::io::SeekFrom::Start(at as u64)).unwrap();
            let mut now = vec![0; old.len()];
            std::io::Read::read_exact(&mut f, &mut now).unwrap();
            assert!(now == old, "{}: what was at byte {at} is not back", c.place);
        }
    }
    cards.into_iter().for_each(Server::stop);
}

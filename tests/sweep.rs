//! Sweeps: any number of shards, threads and interruptions gives the result of one process.

#[path = "common/skip.rs"]
mod skip;
#[path = "sweep/slurm.rs"]
mod slurm;

use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

const PLAN: &str = "cards = ['random', 'sim:flashbench-readme']\nseeds = 2\nfirst_seed = 11\ntime = '2s'\nwrites = '8MiB'\n[set]\n'host.jitter' = ['0 us', '40 us']\n";

fn nandscope(dir: &Path, words: &[&str]) -> (String, String, i32) {
    let out = Command::new(env!("CARGO_BIN_EXE_nandscope")).args(words).current_dir(dir).output().unwrap();
    let text = |b: Vec<u8>| String::from_utf8(b).unwrap();
    (text(out.stdout), text(out.stderr), out.status.code().unwrap_or(-1))
}

fn well(dir: &Path, words: &[&str]) -> String {
    let (out, why, code) = nandscope(dir, words);
    assert_eq!(code, 0, "{words:?}: {out}{why}");
    out
}

/// A directory with a plan.
fn begun(plan: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("plan.toml"), plan).unwrap();
    dir
}

/// What one process with one thread makes of the plan.
fn alone(dir: &Path) -> String {
    well(dir, &["sweep", "plan.toml", "-o", "one", "-q", "--threads", "1"]);
    well(dir, &["sweep", "merge", "one"]);
    std::fs::read_to_string(dir.join("one/merged.jsonl")).unwrap()
}

fn shards(dir: &Path) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().path()).collect();
    all.retain(|p| p.to_str().unwrap().contains("shard-"));
    all.sort();
    all
}

#[test]
fn any_number_of_shards_gives_the_result_of_one() {
    let dir = begun(PLAN);
    let one = alone(dir.path());
    let lines: Vec<Value> = one.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!((lines.len(), lines[0]["schema"].as_str()), (9, Some("nandscope-sweep/1")));
    assert_eq!(lines[1..].iter().map(|l| l["job"].as_u64().unwrap()).collect::<Vec<_>>(), (0..8).collect::<Vec<_>>());
    // Seeds, cards and settings are what the plan says, each once.
    let different: BTreeSet<String> = lines[1..].iter().map(|l| format!("{} {} {}", l["of"], l["seed"], l["set"])).collect();
    assert_eq!(different.len(), 8);
    assert!(
        lines[1..].iter().all(|l| l["result"]["accesses"].as_u64().unwrap() > 20 && l["result"]["findings"].as_array().unwrap().len() > 5)
    );
    assert!(different.iter().any(|d| d == "\"random\" 11 {\"host.jitter\":\"0 us\"}"), "{different:?}");
    for (n, threads) in [(3, "1"), (5, "2")] {
        let to = format!("of{n}");
        for i in (1..=n).rev() {
            well(dir.path(), &["sweep", "plan.toml", "-o", &to, "-q", "--threads", threads, "--shard", &format!("{i}/{n}")]);
        }
        well(dir.path(), &["sweep", "merge", &to, "-o", "m.jsonl"]);
        assert_eq!(std::fs::read_to_string(dir.path().join("m.jsonl")).unwrap(), one, "{n} shards");
    }
}

/// Killed at any time, and cut at any byte, it goes on and ends the same.
#[test]
fn it_goes_on_where_it_stopped() {
    let dir = begun(PLAN);
    let one = alone(dir.path());
    // Killed while it works.
    let mut child = Command::new(env!("CARGO_BIN_EXE_nandscope"))
        .args(["sweep", "plan.toml", "-o", "killed", "-q", "--threads", "2"])
        .current_dir(dir.path())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let file = dir.path().join("killed/shard-0001-of-0001.jsonl");
    while child.try_wait().unwrap().is_none() && std::fs::read(&file).map_or(0, |b| b.len()) < 1500 {
        std::thread::sleep(Duration::from_millis(2));
    }
    let _ = child.kill();
    child.wait().unwrap();
    let had = std::fs::read_to_string(&file).unwrap().lines().count() - 1;
    let out = well(dir.path(), &["sweep", "plan.toml", "-o", "killed", "-q"]);
    assert!(out.contains(&format!("{} of them done now", 8 - had)) || had > 0 && out.contains("of them done now"), "{had}: {out}");
    well(dir.path(), &["sweep", "merge", "killed"]);
    assert_eq!(std::fs::read_to_string(dir.path().join("killed/merged.jsonl")).unwrap(), one);
    // Cut at bytes here and there, with rubbish at the end.
    let whole = std::fs::read(shards(&dir.path().join("one"))[0].clone()).unwrap();
    for (i, rubbish) in [(0, &b""[..]), (1, b"{\"job\""), (2, b"\0\0\0\n"), (3, b"\xff\n{\"job\": 3, \"result\": {}}\n")] {
        let to = dir.path().join(format!("cut{i}"));
        std::fs::create_dir(&to).unwrap();
        let first = whole.iter().position(|b| *b == b'\n').unwrap() + 1;
        let end = [0, first + 10, whole.len() / 2, whole.len() - 1][i];
        std::fs::write(to.join("shard-0001-of-0001.jsonl"), [&whole[..end], rubbish].concat()).unwrap();
        if i == 2 {
            let (_, why, code) = nandscope(dir.path(), &["sweep", "merge", "cut2"]);
            assert!(code == 1 && why.contains("jobs are not done, the first is job"), "{why}");
        }
        well(dir.path(), &["sweep", "plan.toml", "-o", to.to_str().unwrap(), "-q"]);
        well(dir.path(), &["sweep", "merge", to.to_str().unwrap()]);
        assert_eq!(std::fs::read_to_string(to.join("merged.jsonl")).unwrap(), one, "cut {i}");
    }
}

#[test]
fn what_does_not_belong_together_is_said() {
    let plan = "cards = ['null']\nseeds = 3\ntime = '1s'\nwrite = false\n";
    let dir = begun(plan);
    well(dir.path(), &["sweep", "plan.toml", "-o", "s", "-q", "--shard", "1/2"]);
    std::fs::write(dir.path().join("other.toml"), plan.replace("3", "4")).unwrap();
    let (_, why, code) = nandscope(dir.path(), &["sweep", "other.toml", "-o", "s", "-q", "--shard", "1/2"]);
    assert!(code == 1 && why.contains("is of another plan"), "{why}");
    well(dir.path(), &["sweep", "other.toml", "-o", "s", "-q", "--shard", "2/2"]);
    let (_, why, code) = nandscope(dir.path(), &["sweep", "merge", "s"]);
    assert!(code == 1 && why.contains("is of another plan or version than"), "{why}");
    // A result that was changed.
    std::fs::remove_file(dir.path().join("s/shard-0002-of-0002.jsonl")).unwrap();
    well(dir.path(), &["sweep", "plan.toml", "-o", "s", "-q", "--shard", "2/2"]);
    well(dir.path(), &["sweep", "plan.toml", "-o", "s", "-q"]);
    assert_eq!(well(dir.path(), &["sweep", "merge", "s", "-q"]), "");
    let path = dir.path().join("s/shard-0001-of-0001.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace("\"accesses\":", "\"accesses\":1")).unwrap();
    let (_, why, code) = nandscope(dir.path(), &["sweep", "merge", "s"]);
    assert!(code == 1 && why.contains("two results that differ"), "{why}");
    // What the last job would meet is said before the first one.
    for (bad, says) in [
        ("cards = ['null', 'nosuch']\nseeds = 3", "nosuch"),
        ("cards = ['null']\nseeds = 3\n[set]\n'host.nosuch' = [1]", "nosuch"),
        ("cards = ['null']\nseeds = 3\n[set]\n'host.jitter' = ['1 us', 'soon']", "soon"),
        ("reports = ['plan.toml']\nseeds = 3", "plan.toml"),
        ("seeds = ", "plan.toml"),
    ] {
        std::fs::write(dir.path().join("plan.toml"), bad).unwrap();
        let (_, why, code) = nandscope(dir.path(), &["sweep", "plan.toml", "-o", "bad", "-q"]);
        assert!(code == 2 && why.contains(says) && !dir.path().join("bad").exists(), "{bad}: {why}");
    }
    let (_, why, code) = nandscope(dir.path(), &["sweep", "merge", "nowhere"]);
    assert!(code == 1 && why.contains("nowhere"), "{why}");
}

/// The merged counts are those of the lines; a card with a known truth is found.
#[test]
fn counts_are_those_of_the_lines() {
    let dir = begun("cards = ['flashbench-readme']\nseeds = 2\n");
    let one = alone(dir.path());
    let json = well(dir.path(), &["sweep", "merge", "one", "--json"]);
    let v: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(v["schema"], "nandscope-sweep-merged/1");
    let block = &v["quantities"]["erase_block"];
    assert_eq!((block["jobs"].as_u64(), block["decided"].as_u64(), block["right"].as_u64()), (Some(2), Some(2), Some(2)), "{json}");
    assert_eq!(one.matches("\"quantity\":\"erase_block\"").count(), 2);
}

/// Twins of reports.
#[test]
fn twins_are_swept() {
    let dir = begun("reports = ['r.json']\nseeds = 1\n");
    nandscope(dir.path(), &["probe", "sim:flashbench-readme", "-q", "--json", "r.json"]);
    let one = alone(dir.path());
    let line: Value = serde_json::from_str(one.lines().nth(1).unwrap()).unwrap();
    assert!(line["result"]["model"].as_str().is_some_and(|m| m.contains("erase_block")), "{line}");
    well(dir.path(), &["sweep", "plan.toml", "-o", "again", "-q"]);
    well(dir.path(), &["sweep", "merge", "again"]);
    assert_eq!(std::fs::read_to_string(dir.path().join("again/merged.jsonl")).unwrap(), one);
}

/// The job script, with what Slurm sets for each task of an array.
#[test]
fn the_job_array_gives_the_result_of_one() {
    let dir = begun(PLAN);
    let one = alone(dir.path());
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/contrib/slurm/sweep.sbatch");
    for task in 1..=3 {
        let done = Command::new("sh")
            .args([script, "plan.toml", "array"])
            .current_dir(dir.path())
            .envs([
                ("NANDSCOPE", env!("CARGO_BIN_EXE_nandscope")),
                ("SLURM_ARRAY_TASK_MAX", "3"),
                ("SLURM_ARRAY_TASK_ID", &task.to_string()),
            ])
            .output()
            .unwrap();
        assert!(done.status.success(), "{done:?}");
    }
    well(dir.path(), &["sweep", "merge", "array"]);
    assert_eq!(std::fs::read_to_string(dir.path().join("array/merged.jsonl")).unwrap(), one);
}

/// The job script on a Slurm of one node.
#[test]
fn slurm_gives_the_result_of_one() {
    let what = "a sweep as a job array of Slurm";
    if skip::short(what) {
        return;
    }
    if let Some(program) = slurm::missing() {
        return skip::no_tool(what, &format!("{program} (Debian's slurmctld, slurmd, slurm-client and munge)"));
    }
    let slurm = match slurm::Slurm::start() {
        Ok(s) => s,
        Err(why) => return skip::skipped(what, &format!("Slurm does not run here: {why}")),
    };
    let dir = begun(PLAN);
    let one = alone(dir.path());
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/contrib/slurm/sweep.sbatch");
    let done = slurm
        .command("sbatch")
        .args(["--wait", "--array=1-3", script, "plan.toml", "slurm"])
        .current_dir(dir.path())
        .env("NANDSCOPE", env!("CARGO_BIN_EXE_nandscope"))
        .output()
        .unwrap();
    assert!(done.status.success(), "{done:?}");
    well(dir.path(), &["sweep", "merge", "slurm"]);
    assert_eq!(std::fs::read_to_string(dir.path().join("slurm/merged.jsonl")).unwrap(), one);
}

#[test]
fn the_dask_script_gives_the_result_of_one() {
    let what = "a sweep on a Dask cluster of two processes";
    if skip::short(what) {
        return;
    }
    let found = Command::new("python3").args(["-c", "import dask.distributed"]).stderr(Stdio::null()).status();
    if !found.is_ok_and(|s| s.success()) {
        return skip::skipped(what, "dask.distributed is not installed");
    }
    let dir = begun(PLAN);
    let one = alone(dir.path());
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/contrib/dask/sweep.py");
    let done = Command::new("python3")
        .args([script, "plan.toml", "dask", "--shards", "4", "--workers", "2"])
        .current_dir(dir.path())
        .env("NANDSCOPE", env!("CARGO_BIN_EXE_nandscope"))
        .output()
        .unwrap();
    assert!(done.status.success(), "{done:?}");
    assert_eq!(std::fs::read_to_string(dir.path().join("dask/merged.jsonl")).unwrap(), one);
}

//! Campaigns that are killed: at any time, alone or with what they started, and resumed. Nothing that was done is done again, nothing is lost; several
//! hosts on one PostgreSQL server share their cards.

#[path = "survey/server.rs"]
mod server;
#[path = "common/skip.rs"]
mod skip;

use serde_json::Value;
use server::Server;
use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::fs;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const NANDSCOPE: &str = env!("CARGO_BIN_EXE_nandscope");

fn command(dir: &Path, words: &[&str]) -> Command {
    let mut c = Command::new(NANDSCOPE);
    c.args(words).current_dir(dir).env("XDG_STATE_HOME", dir.join("journals"));
    c
}

fn nandscope(dir: &Path, words: &[&str]) -> (String, String, i32) {
    let out = command(dir, words).output().unwrap();
    let text = |b: Vec<u8>| String::from_utf8(b).unwrap();
    (text(out.stdout), text(out.stderr), out.status.code().unwrap())
}

fn begin(dir: &Path, words: &[&str]) -> Child {
    command(dir, words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// Processes of steps below this directory.
fn steps_of(dir: &Path) -> Vec<i32> {
    let one = |e: fs::DirEntry| {
        let pid: i32 = e.file_name().to_str()?.parse().ok()?;
        let words = String::from_utf8_lossy(&fs::read(e.path().join("cmdline")).ok()?).into_owned();
        (words.contains("\0campaign\0step\0") && words.contains(dir.to_str()?)).then_some(pid)
    };
    fs::read_dir("/proc").unwrap().filter_map(|e| one(e.ok()?)).collect()
}

fn kill(pid: i32) {
    let _ = rustix::process::kill_process(rustix::process::Pid::from_raw(pid).unwrap(), rustix::process::Signal::KILL);
}

/// Kills it as a power cut does: with all that it started, or alone.
fn end(child: &mut Child, dir: &Path, all: bool) {
    let _ = child.kill();
    child.wait().unwrap();
    while all && !steps_of(dir).is_empty() {
        steps_of(dir).into_iter().for_each(kill);
        std::thread::sleep(Duration::from_millis(5));
    }
    // A process loses its words before its locks. One that died before it made its lock holds none.
    let locked = || places(dir, "part").iter().filter(|p| p.join("lock").exists()).count();
    while all && locked() > interrupted(dir).len() {
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Card and step of each directory below `cards` with this end.
fn places(state: &Path, end: &str) -> Vec<PathBuf> {
    let below = |d: &Path| fs::read_dir(d).into_iter().flatten().map(|e| e.unwrap().path()).filter(|p| p.is_dir()).collect::<Vec<_>>();
    let all = below(&state.join("cards")).into_iter().flat_map(|c| below(&c));
    all.filter(|s| s.extension().map_or("", |e| e.to_str().unwrap()) == end).collect()
}

/// Steps that had begun and that no process holds any more.
fn interrupted(state: &Path) -> Vec<(PathBuf, u64, i64, i64)> {
    use std::os::unix::fs::MetadataExt;
    let free = |p: &PathBuf| {
        let Ok(f) = fs::File::open(p.join("lock")) else { return true };
        rustix::fs::flock(f.as_fd(), rustix::fs::FlockOperation::NonBlockingLockExclusive).is_ok()
    };
    let meta = |p: &PathBuf| fs::metadata(p).unwrap();
    // Each beginning makes a directory of its own.
    let one = |p: PathBuf| (p.with_extension(""), meta(&p).ino(), meta(&p.join("lock")).ctime(), meta(&p.join("lock")).ctime_nsec());
    places(state, "part").into_iter().filter(free).filter(|p| p.join("lock").exists()).map(one).collect()
}

fn events(state: &Path) -> Vec<Value> {
    fs::read_to_string(state.join("events.jsonl")).unwrap().lines().filter_map(|l| serde_json::from_str(l).ok()).collect()
}

/// Numbers that look random, other ones each run of the test, and printed where it fails.
struct Chance(u64);

impl Chance {
    fn new() -> Chance {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos() as u64;
        eprintln!("chance {now}");
        Chance(now | 1)
    }
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

const PLAN: &str = "
steps = ['check', 'probe', 'rate', 'twin', 'layout']
[options]
probe = ['--time', '10s']
twin = ['--time', '300ms']
rate = ['--class', 'C10']
[[card]]
target = 'sim:toshiba-emmc'
lot = 'A'
[[card]]
target = 'sim:toshiba-emmc?seed=9'
name = 'second'
lot = 'A'
[[card]]
target = 'sim:flashbench-readme'
lot = 'B'
[[card]]
target = \"exec:python3 card.py\"
name = 'a program'
steps = ['probe', 'twin']
lot = 'B'
[[card]]
target = 'sim:fake-wrap-32gb'
name = 'fake'
";

/// A card of three open AUs that notes what is written to it.
const CARD: &str = r#"
import os, sys
AU, OPEN, now = 4 << 20, [], 0
with open("started", "a") as f: f.write("%d\n" % os.getpid())
print("nandscope-device 1 size=268435456 sector=512", flush=True)
for line in sys.stdin:
    what, *n = line.split()
    took = 200000
    if what == "q": break
    if what == "i": took = int(n[0])
    if what in "rw": took += int(n[1]) * 80
    if what == "w" and int(n[0]) // AU not in OPEN:
        took += 90000000
        OPEN = (OPEN + [int(n[0]) // AU])[-3:]
    print(now, took, flush=True)
    now += took
"#;

/// Ten kills at random, five of the campaign alone and five of everything: each step is begun once, and once more for each time that it was interrupted.
#[test]
fn killed_ten_times_and_resumed() {
    let t = tempfile::tempdir().unwrap();
    let (dir, state) = (t.path(), t.path().join("plan.campaign"));
    fs::write(dir.join("plan.toml"), PLAN).unwrap();
    fs::write(dir.join("card.py"), CARD).unwrap();
    let mut chance = Chance::new();
    let mut cut = std::collections::BTreeSet::new();
    let mut done: BTreeMap<PathBuf, Vec<u8>> = BTreeMap::new();
    for n in 0..10 {
        let mut child = begin(dir, &["campaign", "plan.toml", "-q"]);
        std::thread::sleep(Duration::from_millis(100 + chance.below(700)));
        end(&mut child, &state, n % 2 == 0);
        cut.extend(interrupted(&state));
        for p in places(&state, "") {
            let now = fs::read(p.join("result.json")).unwrap();
            assert_eq!(done.entry(p.clone()).or_insert_with(|| now.clone()), &now, "{} changed", p.display());
        }
    }
    let (out, err, code) = nandscope(dir, &["campaign", "plan.toml", "--json"]);
    assert_eq!(code, 6, "a card is counterfeit\n{out}\n{err}");
    let v: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&v["schema"], v["cards"].as_array().unwrap().len()), (&"nandscope-campaign/1".into(), 5));
    assert!(v["cards"].as_array().unwrap().iter().all(|c| c["done"] == true), "{out}");
    // The counterfeit stops after its check.
    assert_eq!(places(&state, "").len(), 3 * 5 + 2 + 1, "{out}");
    assert!(places(&state, "part").is_empty() && places(&state, "failed").is_empty());
    for (p, was) in &done {
        assert!(&fs::read(p.join("result.json")).unwrap() == was, "{} was done again", p.display());
    }
    let mut begun: BTreeMap<PathBuf, usize> = BTreeMap::new();
    for e in events(&state).iter().filter(|e| e["event"] == "begins") {
        // The command names the directory that it writes to.
        let word = e["command"].as_array().unwrap().iter().find_map(|w| w.as_str()?.strip_prefix("--json=")).unwrap();
        *begun.entry(Path::new(word).parent().unwrap().with_extension("")).or_default() += 1;
    }
    assert_eq!(begun.len(), places(&state, "").len());
    let mut again = 0;
    for (p, n) in &begun {
        let cut = cut.iter().filter(|c| &c.0 == p).count();
        // Not more often; less often where it was killed between its directory and the line that says that it begins.
        assert!(*n <= 1 + cut, "{}: begun {n} times, interrupted {cut} times", p.display());
        again += n - 1;
    }
    eprintln!("{} steps, {again} begun again", begun.len());
    // A program's card was opened once for each time that its probe began.
    let probe = begun.iter().find(|b| b.0.to_string_lossy().contains("a_program") && b.0.ends_with("probe")).unwrap();
    let started = fs::read_to_string(dir.join("started")).unwrap().lines().count();
    assert!(started <= *probe.1, "started {started} times, begun {} times", probe.1);

    let (list, _, _) = nandscope(dir, &["survey", "--dir", "plan.campaign/survey", "list", "--no-published", "--json"]);
    // Four probes, and the check of the counterfeit.
    assert_eq!(list.matches("\"id\"").count(), 5, "{list}");
    let page = fs::read_to_string(state.join("lots.html")).unwrap();
    assert!(page.contains(">A<") && page.contains(">B<"), "{page}");
    // Once more: nothing is left to do.
    let begins = || events(&state).iter().filter(|e| e["event"] == "begins").count();
    let before = begins();
    let (out, _, code) = nandscope(dir, &["campaign", "plan.toml"]);
    assert!(code == 6 && out.contains("5 of 5 cards are done") && out.contains("check says counterfeit"), "{out}");
    assert_eq!(begins(), before);
}

fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut c = Chance(seed | 1);
    (0..len).map(|_| c.below(256) as u8).collect()
}

/// An image that is written by consent: killed in the middle of a probe, its old content comes back before the probe begins again.
#[test]
fn what_an_interrupted_step_overwrote_is_put_back() {
    let t = tempfile::tempdir().unwrap();
    let (dir, state) = (t.path(), t.path().join("s"));
    let old = noise(std::process::id().into(), 24 << 20);
    fs::write(dir.join("card.img"), &old).unwrap();
    let plan = |consent: &str| {
        format!("steps = ['probe']\n[options]\nprobe = ['--time', '2s', '--writes', '16MiB']\n[[card]]\ntarget = 'card.img'\n{consent}")
    };
    fs::write(dir.join("plan.toml"), plan(&format!("consent = '{}'", old.len()))).unwrap();
    let words = ["campaign", "plan.toml", "--state", "s", "-q"];
    let mut found = false;
    for n in 0..20 {
        let mut child = begin(dir, &words);
        // As soon as something was overwritten.
        let journal = || {
            fs::read_dir(dir.join("journals/nandscope")).is_ok_and(|d| d.flatten().any(|f| f.metadata().is_ok_and(|m| m.len() > 1 << 20)))
        };
        while !journal() && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(2));
        }
        end(&mut child, &state, true);
        found = fs::read(dir.join("card.img")).unwrap() != old;
        if found || n == 19 || !places(&state, "").is_empty() {
            break;
        }
    }
    if found {
        let (_, err, code) = nandscope(dir, &words);
        assert!(code == 0 && events(&state).iter().any(|e| e["event"] == "put_back"), "{code}: {err}\n{:?}", events(&state));
    } else {
        eprintln!("the probe was never killed between two writes");
    }
    assert!(fs::read(dir.join("card.img")).unwrap() == old, "the old content is not back");
    // Another card in its place is refused, and left alone.
    fs::write(dir.join("card.img"), &old[..20 << 20]).unwrap();
    fs::remove_dir_all(state.join("cards/card.img/probe")).unwrap();
    let (out, _, code) = nandscope(dir, &words);
    assert!(code == 1 && out.contains("not the card this campaign began with"), "{out}");
    assert!(fs::read(dir.join("card.img")).unwrap() == old[..20 << 20]);
    // Without consent nothing is written; a wrong one is refused by the step.
    fs::write(dir.join("card.img"), &old).unwrap();
    for (consent, says) in [("", "1 of 1 cards are done"), ("consent = '7'", "does not name")] {
        fs::write(dir.join("plan.toml"), plan(consent)).unwrap();
        let (out, err, _) = nandscope(dir, &["campaign", "plan.toml", "--state", &format!("s{}", consent.len())]);
        assert!(out.contains(says), "{out}{err}");
        assert!(fs::read(dir.join("card.img")).unwrap() == old);
    }
}

#[test]
fn plans_and_mistakes() {
    let t = tempfile::tempdir().unwrap();
    let dir = t.path();
    fs::write(
        dir.join("plan.toml"),
        "[[card]]\nserial = '0xnone'\n[[card]]\ntarget = 'sim:toshiba-emmc'\nwrite = false\nsteps = ['check']\n",
    )
    .unwrap();
    let (out, _, code) = nandscope(dir, &["campaign", "plan.toml", "--dry-run"]);
    assert!(code == 1 && out.contains("in no reader of this host") && out.contains("sim:toshiba-emmc: check; read only"), "{out}");
    assert!(!dir.join("plan.campaign").exists());
    let (out, _, code) = nandscope(dir, &["campaign", "plan.toml", "--format", "tap"]);
    assert!(code == 1 && out.starts_with("TAP version 13") && out.contains("step_check"), "{out}");
    for (plan, says) in
        [("", "at least one [[card]]"), ("[[card]]\ntarget = 'sim:nosuch'\n", "there is no card"), ("x = 1\n", "unknown field")]
    {
        fs::write(dir.join("bad.toml"), plan).unwrap();
        let (out, err, code) = nandscope(dir, &["campaign", "bad.toml", "-q"]);
        assert!(code == 2 && err.contains(says) && !dir.join("bad.campaign").exists(), "{plan}: {out}{err}");
    }
    // An image that something else uses, as a step that was left alone does, is met when it is its turn, and keeps no other card from its own.
    let image = fs::File::create(dir.join("used.img")).unwrap();
    image.set_len(64 << 20).unwrap();
    rustix::fs::flock(&image, rustix::fs::FlockOperation::LockExclusive).unwrap();
    fs::write(dir.join("used.toml"), "steps = ['check']\n[[card]]\ntarget = 'used.img'\n[[card]]\ntarget = 'sim:usb-stick'\n").unwrap();
    let (out, err, code) = nandscope(dir, &["campaign", "used.toml", "-q"]);
    assert!(code == 1 && out.contains("in use") && out.contains("1 of 2 cards are done"), "{out}{err}");
    // A path in a plan begins where the plan is, wherever the command is given.
    fs::create_dir_all(dir.join("sub/cards")).unwrap();
    fs::copy("cards/usb-stick.toml", dir.join("sub/cards/mine.toml")).unwrap();
    fs::write(dir.join("sub/p.toml"), "steps = ['check']\noptions.check = ['--quick']\n[[card]]\ntarget = 'cards/mine.toml'\n").unwrap();
    for at in ["sub/p.toml".to_string(), dir.join("sub/p.toml").display().to_string()] {
        let (out, err, code) = nandscope(dir, &["campaign", &at, "-q"]);
        assert!(code == 0 && out.contains("1 of 1 cards are done"), "{out}{err}");
        fs::remove_dir_all(dir.join("sub/p.campaign")).unwrap();
    }
    let (_, err, code) = nandscope(dir, &["campaign", "nowhere.toml"]);
    assert!(code == 1 && err.contains("cannot read nowhere.toml"), "{err}");
}

/// What was done is of the plan it was done by: another card, or other options, are told and not passed off as done.
#[test]
fn a_plan_that_changed_does_not_keep_old_results() {
    let t = tempfile::tempdir().unwrap();
    let dir = t.path();
    let plan = |second: &str, class: &str| {
        let card =
            |name: &str, target: &str| format!("[[card]]\nname = '{name}'\ntarget = '{target}'\nlot = 'L'\nsteps = ['check', 'rate']\n");
        let options = format!("[options]\nrate = ['--class', '{class}']\n");
        fs::write(dir.join("plan.toml"), options + &card("one", "sim:usb-stick") + &card("two", second)).unwrap();
    };
    let go = |more: &[&str]| nandscope(dir, &[&["campaign", "plan.toml", "-q"], more].concat());
    plan("sim:toshiba-emmc", "C4");
    let (out, err, _) = go(&[]);
    assert!(out.contains("2 of 2 cards are done"), "{out}{err}");
    let (out, ..) = go(&["--dry-run"]);
    assert!(out.contains("two") && out.contains("check, rate done"), "{out}");
    plan("sim:toshiba-emmc?seed=2", "C4");
    let (out, _, code) = go(&[]);
    assert!(code == 1 && out.contains("1 of 2 cards are done"), "{out}");
    assert!(out.contains("check was done with sim:toshiba-emmc,") && out.contains("remove"), "{out}");
    plan("sim:toshiba-emmc", "C6");
    let (out, _, code) = go(&[]);
    assert!(code == 1 && out.contains("rate was done with --class C4, and the plan says --class C6"), "{out}");
    // A counterfeit is one of its lot, though there is no probe of it.
    fs::write(
        dir.join("fakes.toml"),
        "[[card]]\nname = 'a'\ntarget = 'sim:fake-wrap-32gb'\nlot = 'L'\n[[card]]\nname = 'b'\ntarget = 'sim:usb-stick'\nlot = 'L'\nsteps = ['check', 'probe', 'layout']\n",
    )
    .unwrap();
    let (out, _, code) = nandscope(dir, &["campaign", "fakes.toml", "-q"]);
    assert!(code == 6 && out.contains("check says counterfeit") && out.contains("nothing to check"), "{out}");
    let (out, ..) = nandscope(dir, &["survey", "--dir", "fakes.campaign/survey", "compare", "--by", "lot"]);
    let line = out.lines().find(|l| l.starts_with("counterfeit")).unwrap();
    assert!(line.contains("1 of 2"), "{out}");
    // So is a card that fails: it takes no more writes after a while.
    let (model, ..) = nandscope(dir, &["cards", "show", "modern-a1-32gb"]);
    let model = model.split("# The truth").next().unwrap().to_string();
    fs::write(dir.join("ro.toml"), model + "\n[[fault]]\nkind = \"read-only\"\nafter_bytes = \"20 MiB\"\n").unwrap();
    fs::write(dir.join("failing.toml"), "[[card]]\nname = 'a'\ntarget = 'ro.toml'\nlot = 'L'\n").unwrap();
    let (out, err, code) = nandscope(dir, &["campaign", "failing.toml", "-q"]);
    assert!(code == 7 && out.contains("check says failing"), "{out}{err}");
    let survey = |args: &[&str]| nandscope(dir, &[&["survey", "--dir", "failing.campaign/survey"], args].concat()).0;
    let out = survey(&["compare", "--by", "lot"]);
    assert!(out.lines().any(|l| l.starts_with("failing") && l.contains("1 of 1")), "{out}");
    assert!(survey(&["list"]).contains("FAILING") && survey(&["search", "failing=yes"]).contains("1 card"));
    assert!(fs::read_to_string(dir.join("failing.campaign/lots.html")).unwrap().contains("failing"));
    // What went wrong stands in the table, with the place of the rest.
    fs::write(
        dir.join("bad.toml"),
        "[options]\nrate = ['--region', '900GiB..901GiB']\n[[card]]\ntarget = 'sim:usb-stick'\nsteps = ['rate']\n",
    )
    .unwrap();
    let (out, ..) = nandscope(dir, &["campaign", "bad.toml", "-q"]);
    assert!(out.contains("ends at 901 GiB") && out.contains("log.txt"), "{out}");
}

/// Times that one of the hosts dies.
const DEATHS: usize = 10;

/// Three hosts share the cards; one dies again and again, alone or with all that it started, and what it held goes to the others or back to it.
#[test]
fn hosts_share_cards_and_a_dead_one_gives_its_card_back() {
    let what = "campaigns of several hosts on PostgreSQL";
    if skip::short(what) {
        return;
    }
    let Some(server) = Server::start() else { return skip::no_tool(what, "Debian's postgresql") };
    let t = tempfile::tempdir().unwrap();
    let dir = t.path();
    let mut plan = format!(
        "name = 'shared'\nsurvey = '{}'\nlease = '2s'\nworkers = 1\nsteps = ['check', 'probe', 'twin']\n[options]\nprobe = ['--time', '20s']\ntwin = ['--time', '200ms']\n",
        server.url
    );
    const CARDS: usize = 16;
    for seed in 1..=CARDS {
        plan += &format!(
            "[[card]]\nname = 'card {seed}'\ntarget = 'sim:random?seed={}'\nlot = '{}'\n",
            40_000 + seed,
            if seed % 2 == 0 { "even" } else { "odd" }
        );
    }
    fs::write(dir.join("plan.toml"), plan).unwrap();
    let mut chance = Chance::new();
    let (mut others, mut held) = (vec![], BTreeSet::new());
    for death in 0..DEATHS {
        let mut dead = begin(dir, &["campaign", "plan.toml", "--state", "dead", "-q"]);
        std::thread::sleep(Duration::from_millis(200 + chance.below(800)));
        end(&mut dead, &dir.join("dead"), death % 2 == 0);
        held.extend(interrupted(&dir.join("dead")).into_iter().map(|i| (i.0, i.1)));
        // Alone at first, so that there is something to die over.
        if death == 2 {
            others = ["a", "b"].map(|s| begin(dir, &["campaign", "plan.toml", "--state", s, "-q"])).into_iter().collect::<Vec<Child>>();
        }
    }
    assert!(!held.is_empty(), "no death hit a step");
    for mut o in others {
        let code = o.wait().unwrap().code();
        assert!([Some(0), Some(6), Some(7)].contains(&code), "{code:?}");
    }
    let mut db = nandscope::survey::db::Db::postgres(&server.url).unwrap();
    let rows = db.query("SELECT card, state, taken, host FROM campaign_cards ORDER BY number", &[]).unwrap();
    assert!(rows.len() == CARDS && rows.iter().all(|r| r[1].text() == "done"), "{rows:?}");
    // Each card was taken once, and once more after each death of the host that held it.
    let taken: i64 = rows.iter().filter_map(|r| r[2].int()).sum();
    assert!((CARDS as i64..=(CARDS + DEATHS) as i64).contains(&taken), "{rows:?}");
    let hosts: BTreeSet<String> = rows.iter().map(|r| r[3].text()).collect();
    assert!(hosts.len() > 1, "{hosts:?}");
    let steps = db.query("SELECT card, step FROM campaign_steps", &[]).unwrap();
    assert!(steps.len() >= 2 * CARDS, "{steps:?}");
    // Nothing that is in the tables was begun by two hosts after it was done: begun once more only after a death.
    let begun: usize = ["dead", "a", "b"].iter().map(|s| events(&dir.join(s)).iter().filter(|e| e["event"] == "begins").count()).sum();
    assert!(begun <= steps.len() + DEATHS, "{begun} begun, {} done", steps.len());
    // The dead host comes back: it has nothing to do and shows everything.
    let (out, err, code) = nandscope(dir, &["campaign", "plan.toml", "--state", "dead"]);
    assert!(code != 1 && out.contains(&format!("{CARDS} of {CARDS} cards are done")), "{out}{err}");
    let (list, _, _) = nandscope(dir, &["survey", "--db", &server.url, "list", "--no-published", "--json"]);
    assert_eq!(list.matches("\"id\"").count(), CARDS, "{list}");
}

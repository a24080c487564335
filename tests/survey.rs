//! The survey through the command line: the same story on a directory and on a PostgreSQL server that this test starts on loopback.
//!
//! Needs Debian's `postgresql` for the second; without it, it says in one line what it skips.

#[path = "survey/figures.rs"]
mod figures;
#[path = "survey/lots.rs"]
mod lots;
#[path = "common/program.rs"]
mod program;
#[path = "survey/serial.rs"]
mod serial;
#[path = "survey/server.rs"]
mod server;
#[path = "common/shared.rs"]
mod shared;
#[path = "common/skip.rs"]
mod skip;

use nandscope::survey::db::{Db, MIGRATIONS, Val};
use server::Server;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const FIO: &str = r#"{"fio version":"fio-3.33","global options":{"bs":"4k","iodepth":"1","direct":"1"},"jobs":[{"jobname":"w","error":0,"job options":{"rw":"randwrite"},
 "read":{"iops":0,"bw_bytes":0},"write":{"iops":500.0,"bw_bytes":2048000,"lat_ns":{"mean":2000000.0,"max":90000000},"clat_ns":{"max":90000000,"percentile":{"99.000000":80000000}}}}]}"#;
const F3: &str = "Bad news: The device `/dev/sdb' is a counterfeit of type limbo\n\t *Usable* size: 7.86 GB (16477879 blocks)\n\tAnnounced size: 15.33 GB (32155648 blocks)\n";
const IOZONE: &str = "\tCommand line used: iozone -e -I -a -s 100M -r 4k -i 0 -i 1 -i 2\n                                                              random    random     bkwd    record    stride\n              kB  reclen    write  rewrite    read    reread    read     write     read   rewrite      read   fwrite frewrite    fread  freread\n          102400       4     2604     2666    12185    12207     9959     2652\n";
/// G7: 100 B at 200 kB/s take 500 µs each; an average of 900 µs is of another pass.
const G7: &str = "BUF_SIZE = 100 bytes\nwrite speed and latency\nspeed,max,min,avg\nKB/Sec,usec,usec,usec\n200.0,90000,84,900\n";

fn nandscope(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_nandscope")).args(args).output().unwrap()
}

struct Store<'a> {
    place: [&'a str; 2],
}

impl Store<'_> {
    fn run(&self, code: i32, args: &[&str]) -> (String, String) {
        let all: Vec<&str> = ["survey"].into_iter().chain(self.place).chain(args.iter().copied()).collect();
        let out = nandscope(&all);
        let (o, e) = (String::from_utf8(out.stdout).unwrap(), String::from_utf8(out.stderr).unwrap());
        assert_eq!(out.status.code(), Some(code), "{args:?}\n{o}\n{e}");
        (o, e)
    }
}

/// Two reports, logs of five other programs, and files that are none.
fn files(dir: &Path) -> Vec<PathBuf> {
    let mut out = vec![];
    for card in ["flashbench-readme", "toshiba-emmc"] {
        let path = dir.join(format!("{card}.json"));
        let done = nandscope(&["probe", &format!("sim:{card}"), "--quiet", "--json", path.to_str().unwrap()]);
        assert!(done.status.success(), "{done:?}");
        out.push(path);
    }
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    for (name, text) in [
        ("openau.txt", std::fs::read_to_string(data.join("figures/open-au.txt")).unwrap()),
        ("bench.txt", std::fs::read_to_string(data.join("figures/record-bench.txt")).unwrap()),
        ("fio.json", FIO.into()),
        ("f3.txt", F3.into()),
        ("iozone.txt", IOZONE.into()),
        ("inconsistent.txt", G7.into()),
    ] {
        std::fs::write(dir.join(name), text).unwrap();
        out.push(dir.join(name));
    }
    out
}

fn text(paths: &[PathBuf]) -> Vec<&str> {
    paths.iter().map(|p| p.to_str().unwrap()).collect()
}

/// Returns what must be equal on every kind of store.
fn story(s: &Store, files: &[PathBuf], dir: &Path) -> [String; 3] {
    let (list, _) = s.run(0, &["list", "--all"]);
    assert!(list.contains("ref-greiman-atp-slc-1gb") && list.contains("flagged"), "reference entries come with it:\n{list}");
    // Without the line that says that they are published ones.
    let before = list.lines().count() - 1;

    let mut add = vec!["add"];
    add.extend(text(files));
    let (out, _) = s.run(0, &add);
    assert!(
        out.contains("8 added, 0 already there, 0 skipped") && out.contains("flag: record write, 100 B records: inconsistent: "),
        "{out}"
    );
    assert!(out.contains("flag: counterfeit"), "{out}");
    let (out, _) = s.run(0, &add);
    assert!(out.contains("0 added, 8 already there"), "{out}");

    // A damaged file is named, the others go in.
    let (cut, good) = (dir.join("cut.json"), dir.join("more.txt"));
    std::fs::write(&cut, &std::fs::read(&files[0]).unwrap()[..3000]).unwrap();
    std::fs::write(&good, format!("{G7}195.0,90000,84,505\n")).unwrap();
    let (out, err) = s.run(1, &["add", cut.to_str().unwrap(), good.to_str().unwrap(), "/nonexistent"]);
    assert!(out.contains("1 added, 0 already there, 2 skipped"), "{out}");
    assert!(err.contains("cut.json") && err.contains("cut off") && err.contains("/nonexistent"), "{err}");

    let found = |conditions: &[&str]| {
        let mut args = vec!["search"];
        args.extend(conditions);
        s.run(0, &args).0
    };
    let big = found(&["open_aus_linear>=5"]);
    assert!(big.contains("Toshiba") && !big.contains("flashbench README: 4 MiB"), "{big}");
    assert!(found(&["erase_block=4MiB", "format=report"]).contains("2 cards"));
    assert!(found(&["GREIMAN", "record-write-100-b-records>200"]).contains("3 cards"), "Wintec, Swissbit, ATP");
    assert!(found(&["flags>0"]).contains("4 cards"), "ATP, the counterfeit, and the two made up");
    // A counterfeit stands out, whoever found it, and is found by what it holds.
    let fakes = found(&["counterfeit=yes"]);
    assert!(fakes.contains("1 card\n") && fakes.contains("COUNTERFEIT: 8.4 GB"), "{fakes}");
    assert_eq!(found(&["real_capacity<8GiB", "capacity>8GiB"]), fakes);
    assert!(s.run(3, &["search", "real_capacity>8GiB", "counterfeit=yes"]).0.contains("0 cards"));
    assert!(s.run(2, &["search", "counterfeit=maybe"]).1.contains("yes, no or unknown"));
    let genuine = found(&["counterfeit=no"]);
    assert!(genuine.contains("Toshiba") && !genuine.contains("COUNTERFEIT"), "probed with writes: {genuine}");
    let json: serde_json::Value = serde_json::from_str(found(&["counterfeit=yes", "--json"]).lines().next().unwrap()).unwrap();
    assert_eq!((&json["counterfeit"], json["real_capacity"].as_u64()), (&true.into(), Some(16_477_879 * 512)));
    assert_eq!(s.run(3, &["search", "nosuchcardanywhere"]).0.lines().last(), Some("0 cards"));
    assert!(s.run(2, &["search", "erase_block=big"]).1.contains("not a number"));
    assert!(s.run(2, &["search", "colour=red"]).1.contains("there is no 'colour'"));

    let id = |what: &str| found(&[what]).lines().nth(1).unwrap().split_whitespace().next().unwrap().to_string();
    let (a, b) = (id("name=flashbench README: 4"), id("name=Toshiba eMMC of 2011"));
    assert!(s.run(0, &["show", &a[..6]]).0.contains("open AUs, sequential  2"));
    assert!(s.run(1, &["show", "zzzz"]).1.contains("no entry"));
    assert!(s.run(1, &["show", "ref-g"]).1.contains("several"));
    let whole: serde_json::Value = serde_json::from_str(&s.run(0, &["show", &a, "--json"]).0).unwrap();
    assert!(whole["original"]["runs"].as_array().unwrap().len() > 3, "the samples are kept");
    let (compared, _) = s.run(0, &["compare", &a, &b]);
    assert!(compared.contains("B has 7 open AUs (sequential) instead of 2") || compared.contains("differs"), "{compared}");

    // C4, C7, C9: speed against size; what contradicts itself is left out of the statement (G7).
    let (chart, _) = s.run(3, &["chart", "--figure", "record-write-512-b-records", "greiman"]);
    assert!(
        chart.contains("left out: Greiman's ATP SLC industrial (392 kB/s)") && chart.contains("Wintec industrial is 2.68 times as fast"),
        "{chart}"
    );
    assert!(s.run(0, &["chart", "--figure", "list"]).0.contains("record-write-512-b-records"));
    assert!(s.run(2, &["chart", "--figure", "nosuch"]).1.contains("--figure list"));
    assert!(s.run(0, &["chart", "--svg", "-"]).0.starts_with("<?xml"));

    let csv = s.run(0, &["export"]).0;
    assert_eq!(csv.lines().count(), before - 2 + 9 + 1, "one line a card and the heading");
    assert_eq!(s.run(0, &["export", "--format", "jsonl"]).0.lines().count(), before - 2 + 9);
    let wiki = s.run(0, &["export", "--format", "wiki"]).0;
    assert!(wiki.lines().all(|l| l.starts_with("|| ") && l.ends_with(" ||") && l.matches("||").count() == 12), "{wiki}");

    let site = dir.join(format!("site-{}", s.place[0].trim_start_matches('-')));
    s.run(0, &["site", site.to_str().unwrap()]);
    let index = std::fs::read_to_string(site.join("index.html")).unwrap();
    assert_eq!(index.matches("<tr data-words").count(), before - 2 + 9);
    // Cards of one name are told apart by their files, on a phone as well.
    assert!(index.contains("class=\"muted file\"") && index.contains("<table class=\"stack\""), "{index}");
    assert!(std::fs::read_to_string(site.join(format!("cards/{a}.html"))).unwrap().contains("All cards"));

    assert!(s.run(2, &["remove", "ref-olpc-good"]).1.contains("reference entry"));
    // By the beginning of its id, as `show` takes it.
    assert!(s.run(0, &["remove", &b[..b.len() - 1]]).0.contains(&format!("removed {b}")));
    assert!(s.run(1, &["show", &b]).1.contains("no entry"));
    s.run(0, &["add", files[1].to_str().unwrap()]);

    // Six programs add twenty files each, five of them in common with all.
    let many = dir.join(format!("many-{}", s.place[0].trim_start_matches('-')));
    std::fs::create_dir_all(&many).unwrap();
    let log = |n: usize| {
        let p = many.join(format!("{n}.txt"));
        std::fs::write(&p, format!("BUF_SIZE = 512 bytes\nwrite speed and latency\nspeed,max,min,avg\n{}.5,90000,1000,1100\n", 300 + n))
            .unwrap();
        p.to_str().unwrap().to_string()
    };
    let children: Vec<_> = (0..6)
        .map(|k| {
            let mine: Vec<String> = (0..5).chain(10 + k * 15..25 + k * 15).map(log).collect();
            Command::new(env!("CARGO_BIN_EXE_nandscope")).arg("survey").args(s.place).arg("add").args(&mine).output()
        })
        .collect();
    for c in children {
        let c = c.unwrap();
        assert!(c.status.success(), "{}", String::from_utf8_lossy(&c.stderr));
    }
    assert!(found(&["record-write-512-b-records>=300", "format=log", "record-write-512-b-records<400"]).contains("95 cards"));
    [csv, wiki, index]
}

#[test]
fn a_directory_and_a_server_tell_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let files = files(dir.path());
    let survey = dir.path().join("survey");
    let here = story(&Store { place: ["--dir", survey.to_str().unwrap()] }, &files, dir.path());
    let Some(server) = Server::start() else {
        skip::no_tool("a survey on a server", "PostgreSQL (Debian package postgresql)");
        return;
    };
    let there = story(&Store { place: ["--db", &server.url] }, &files, dir.path());
    assert_eq!(here, there);
    for place in [["--dir", survey.to_str().unwrap()], ["--db", &server.url]] {
        names_are_only_names(&Store { place }, dir.path());
    }
    // Tables of version 1 are brought to today's, with what they hold.
    let mut db = Db::postgres(&server.url).unwrap();
    db.batch("DROP TABLE cards, facts, damaged, meta").unwrap();
    old(&mut db);
    assert!(Store { place: ["--db", &server.url] }.run(0, &["list"]).0.contains("Card of version one"));
    assert_eq!(db.query("SELECT value FROM meta WHERE key = 'version'", &[]).unwrap()[0][0], Val::Int(MIGRATIONS.len() as i64));
    db.execute("UPDATE meta SET value = $1 WHERE key = 'version'", &[Val::Int(99)]).unwrap();
    assert!(Store { place: ["--db", &server.url] }.run(1, &["list"]).1.contains("newer nandscope"));
}

/// SQL, markup, NUL and paths as names of cards, in words to search for and in ids: nothing but the cards that were added changes.
fn names_are_only_names(s: &Store, dir: &Path) {
    let names = [
        "x'); DROP TABLE cards; --",
        "\"; DELETE FROM cards WHERE \"1\"=\"1",
        "$1 || $2 \\' E'\\\\'",
        "%_%' OR 1=1 --",
        "../../etc/passwd",
        "<script>alert(1)</script>",
        "back\\slash\ttab",
    ];
    let count = || s.run(0, &["list", "--all", "--json"]).0.lines().count();
    let before = count();
    for (i, name) in names.iter().enumerate() {
        let path = dir.join("named.txt");
        std::fs::write(&path, format!("4MiB {0}.{i}M/s\n2MiB 1{0}.{i}M/s\n1MiB 5M/s\n512KiB 4M/s\n", 3 + i)).unwrap();
        let fields = ["--name", "--maker", "--part", "--host", "--lot", "--url", "--note"].into_iter().flat_map(|f| [f, name]);
        let args: Vec<&str> = ["add", path.to_str().unwrap()].into_iter().chain(fields).collect();
        s.run(0, &args);
        assert_eq!(count(), before + i + 1, "{name}");
        // Whatever these find, they change nothing.
        for args in [["search", "--", name], ["show", "--", name], ["remove", "--", name]] {
            let all: Vec<&str> = ["survey"].into_iter().chain(s.place).chain(args).collect();
            let out = nandscope(&all);
            let err = String::from_utf8_lossy(&out.stderr);
            assert!(matches!(out.status.code(), Some(0..=3)) && !err.contains("panicked") && !err.contains("syntax"), "{args:?}: {err}");
            if args[0] == "remove" && out.status.success() {
                s.run(0, &["add", path.to_str().unwrap(), "--name", name]);
            }
        }
        assert_eq!(count(), before + i + 1, "{name}");
    }
    // A NUL, which PostgreSQL cannot keep.
    let text = std::fs::read_to_string(dir.join("toshiba-emmc.json")).unwrap();
    let mut report: serde_json::Value = serde_json::from_str(&text).unwrap();
    report["target"]["model"] = "nul\0byte\u{1b}[2J".into();
    std::fs::write(dir.join("nul.json"), report.to_string()).unwrap();
    s.run(0, &["add", dir.join("nul.json").to_str().unwrap()]);
    assert_eq!(count(), before + names.len() + 1);
}

/// Tables as the first version made them, with one card.
fn old(db: &mut Db) {
    db.batch("CREATE TABLE meta (key TEXT PRIMARY KEY, value BIGINT NOT NULL)").unwrap();
    db.batch(MIGRATIONS[0]).unwrap();
    db.batch(
        "INSERT INTO meta (key, value) VALUES ('version', 1);
         INSERT INTO cards (id, name, format, file, added, flags, words, summary, json) VALUES ('aaaaaaaaaaaa', 'Card of version one', 'log', 'x', 0, 0, 'card', '', '{}')",
    )
    .unwrap();
}

#[test]
fn the_files_are_the_truth() {
    let dir = tempfile::tempdir().unwrap();
    let survey = dir.path().join("survey");
    let s = Store { place: ["--dir", survey.to_str().unwrap()] };
    for n in 0..3 {
        let p = dir.path().join(format!("{n}.txt"));
        std::fs::write(&p, format!("BUF_SIZE = 512 bytes\nwrite speed and latency\nspeed,max,min,avg\n{}.5,90000,1000,1100\n", 300 + n))
            .unwrap();
        s.run(0, &["add", p.to_str().unwrap()]);
    }
    let (all, _) = s.run(0, &["list"]);
    let index = survey.join("index.sqlite");
    // Without the index, with a ruined one, and with one of version 1 the list is the same.
    for ruin in [&|p: &Path| std::fs::remove_file(p).unwrap(), &|p: &Path| {
        std::fs::write(p, "no database at all, but long enough to look like a page of one".repeat(99)).unwrap()
    }] as [&dyn Fn(&Path); 2]
    {
        for end in ["-wal", "-shm"] {
            let _ = std::fs::remove_file(survey.join(format!("index.sqlite{end}")));
        }
        ruin(&index);
        assert_eq!(s.run(0, &["list"]).0, all);
    }
    std::fs::remove_file(&index).unwrap();
    old(&mut Db::sqlite(&index).unwrap());
    assert!(s.run(0, &["list"]).0.contains("Card of version one"));
    std::fs::remove_file(&index).unwrap();
    // A file that somebody damaged is named and skipped, one that is put back returns, one that is taken away goes.
    let cards: Vec<PathBuf> = std::fs::read_dir(survey.join("cards")).unwrap().map(|e| e.unwrap().path()).collect();
    let content = std::fs::read(&cards[0]).unwrap();
    std::fs::write(&cards[0], &content[..content.len() / 2]).unwrap();
    let (list, err) = s.run(0, &["list"]);
    assert!(err.contains(cards[0].to_str().unwrap()) && err.contains("cut off"), "{err}");
    assert_eq!(list.lines().count(), all.lines().count() - 1);
    std::fs::write(&cards[0], content).unwrap();
    assert_eq!(s.run(0, &["list"]).0, all);
    std::fs::remove_file(&cards[1]).unwrap();
    assert_eq!(s.run(0, &["list"]).0.lines().count(), all.lines().count() - 1);
}

/// Pages of the index that contradict each other, an index cut in the middle: it is made anew from the files, in the middle of a
/// command, too.
#[test]
fn a_ruined_index_is_made_anew() {
    let dir = tempfile::tempdir().unwrap();
    let survey = dir.path().join("survey");
    let s = Store { place: ["--dir", survey.to_str().unwrap()] };
    let logs: Vec<PathBuf> = (0..60).map(|n| log(dir.path(), n)).collect();
    let (most, last) = logs.split_at(59);
    let mut add = vec!["add"];
    add.extend(text(most));
    s.run(0, &add);
    let (all, _) = s.run(0, &["list", "--all"]);
    let index = survey.join("index.sqlite");
    let whole = std::fs::read(&index).unwrap();
    assert!(whole.len() > 3 * 32768, "the test needs several pages: {}", whole.len());
    // The first page stays: everything behind it is noise, or gone, or zeros.
    let noise: Vec<u8> = whole.iter().enumerate().map(|(i, b)| if i < 32768 { *b } else { (i * 7 + 13) as u8 }).collect();
    let zeros: Vec<u8> = whole.iter().enumerate().map(|(i, b)| if i < 32768 { *b } else { 0 }).collect();
    for ruin in [&noise, &zeros, &whole[..40_000].to_vec(), &vec![]] {
        for args in [&["list", "--all"][..], &["search", "sdfat", "--all"], &["export"], &["show", "ref-olpc-good"]] {
            std::fs::write(&index, ruin).unwrap();
            assert!(!s.run(0, args).0.is_empty());
        }
        assert_eq!(s.run(0, &["list", "--all"]).0, all);
    }
    std::fs::write(&index, noise).unwrap();
    assert!(s.run(0, &["add", last[0].to_str().unwrap()]).0.contains("1 added"));
    assert_eq!(s.run(0, &["list", "--all"]).0.lines().count(), all.lines().count() + 1);
}

fn log(dir: &Path, n: usize) -> PathBuf {
    let p = dir.join(format!("log-{n}.txt"));
    std::fs::write(&p, format!("BUF_SIZE = 512 bytes\nwrite speed and latency\nspeed,max,min,avg\n{}.5,90000,1000,1100\n", 300 + n))
        .unwrap();
    p
}

/// Programs that open a survey which does not exist yet, and add the same files in another order.
fn at_once(place: [&str; 2], dir: &Path) {
    let mut files: Vec<PathBuf> = (0..40).map(|n| log(dir, n)).collect();
    let children: Vec<_> = (0..6)
        .map(|k| {
            files.rotate_left(7 * k);
            let mut c = Command::new(env!("CARGO_BIN_EXE_nandscope"));
            c.arg("survey").args(place).arg("add").args(&files).stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
            c.spawn().unwrap()
        })
        .collect();
    let mut new = 0;
    for c in children {
        let out = c.wait_with_output().unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        let said = String::from_utf8(out.stdout).unwrap();
        let counts: Vec<usize> = said.lines().last().unwrap().split(|c: char| !c.is_ascii_digit()).filter_map(|w| w.parse().ok()).collect();
        assert_eq!((counts[0] + counts[1], counts[2]), (40, 0), "{said}");
        new += counts[0];
    }
    assert_eq!(new, 40, "each file is new to one of them only");
    assert!(Store { place }.run(0, &["search", "format=log", "--limit", "7"]).0.contains("7 of 40 cards; 33 more"), "lists come in parts");
}

#[test]
fn many_open_a_new_survey_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let survey = dir.path().join("new");
    at_once(["--dir", survey.to_str().unwrap()], dir.path());
    let left: Vec<_> = std::fs::read_dir(survey.join("cards")).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert!(left.len() == 40 && left.iter().all(|n| n.to_str().unwrap().ends_with(".json")), "{left:?}");
    let Some(server) = Server::start() else {
        skip::no_tool("a survey on a server", "PostgreSQL (Debian package postgresql)");
        return;
    };
    at_once(["--db", &server.url], dir.path());
}

/// What is no report, or not a whole one, or of another version: one sentence that names the file and what is wrong with it.
#[test]
fn files_that_cannot_be_read_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str, text: &str| {
        let p = dir.path().join(name);
        std::fs::write(&p, text).unwrap();
        p.to_str().unwrap().to_string()
    };
    let good = dir.path().join("good.json").to_str().unwrap().to_string();
    assert!(nandscope(&["probe", "sim:flashbench-readme", "--read-only", "--quiet", "--json", &good]).status.success());
    let whole = std::fs::read_to_string(&good).unwrap();
    let mut value: serde_json::Value = serde_json::from_str(&whole).unwrap();
    let without = |key: &str| {
        let mut v = value.clone();
        v.as_object_mut().unwrap().remove(key);
        v.to_string()
    };
    let files = [
        (at("cut.json", &whole[..whole.len() / 2]), "cut off"),
        (at("cut-early.json", &whole[..40]), "cut off"),
        (at("newer.json", &whole.replacen("nandscope-report/1", "nandscope-report/2", 1)), "nandscope-report/2"),
        (at("lab.json", "{\"schema\":\"nandscope-frag/9\"}"), "nandscope-frag/9"),
        (at("none.json", &without("schema")), "schema"),
        (at("no-findings.json", &without("findings")), "findings"),
        (at("array.json", "[1,2,3]"), ""),
        (at("empty.json", ""), ""),
        (at("bytes.json", "\u{0}\u{1}\u{2}nonsense"), ""),
        (dir.path().to_str().unwrap().to_string(), ""),
    ];
    for (file, says) in &files {
        for args in [
            &["report", file.as_str()][..],
            &["report", file, "--html", "page.html"],
            &["compare", file, &good],
            &["survey", "--dir", "s", "add", file],
        ] {
            let out = Command::new(env!("CARGO_BIN_EXE_nandscope")).args(args).current_dir(dir.path()).output().unwrap();
            let err = String::from_utf8_lossy(&out.stderr);
            assert_eq!(out.status.code(), Some(1), "{args:?}: {err}");
            let short = Path::new(file).file_name().unwrap().to_str().unwrap();
            assert!(err.lines().count() == 1 && err.contains(short), "{args:?}: {err}");
            // `compare` and `survey` name kinds of files that only `report` does not know, and the other way round.
            let known = *says != "schema" && !(file.ends_with("lab.json") && args[0] != "report");
            assert!(!known || err.contains(says), "{args:?}: {err}");
        }
    }
    assert!(!dir.path().join("page.html").exists(), "no page of nothing");
    // A sample of a condition that is not there.
    value["runs"][0]["cells"].as_array_mut().unwrap().truncate(1);
    let odd = at("odd.json", &value.to_string());
    for args in [&["report", odd.as_str()][..], &["survey", "--dir", "s", "add", &odd]] {
        let out = Command::new(env!("CARGO_BIN_EXE_nandscope")).args(args).current_dir(dir.path()).output().unwrap();
        assert!(out.status.code() == Some(1) && String::from_utf8_lossy(&out.stderr).contains("cell"), "{out:?}");
    }
    // Something else where the directory should be.
    let out = Command::new(env!("CARGO_BIN_EXE_nandscope")).args(["survey", "--dir", &good, "list"]).output().unwrap();
    assert!(out.status.code() == Some(1) && String::from_utf8_lossy(&out.stderr).contains("good.json"), "{out:?}");
}

/// What is no file is written to, and stays what it is.
#[test]
fn a_page_into_a_pipe() {
    let dir = tempfile::tempdir().unwrap();
    let (json, pipe) = (dir.path().join("r.json"), dir.path().join("pipe"));
    assert!(nandscope(&["probe", "sim:flashbench-readme", "--read-only", "--quiet", "--json", json.to_str().unwrap()]).status.success());
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let from = pipe.clone();
    let reader = std::thread::spawn(move || std::fs::read_to_string(from).unwrap());
    let out = nandscope(&["report", json.to_str().unwrap(), "--html", pipe.to_str().unwrap()]);
    assert!(out.status.success(), "{out:?}");
    use std::os::unix::fs::FileTypeExt;
    assert!(std::fs::metadata(&pipe).unwrap().file_type().is_fifo());
    assert!(reader.join().unwrap().ends_with("</html>"));
}

#[test]
fn one_card_measured_twice_is_no_difference_and_two_cards_are() {
    let dir = tempfile::tempdir().unwrap();
    let report = |card: &str, seed: &str| {
        let path = dir.path().join(format!("{card}-{seed}.json")).to_str().unwrap().to_string();
        assert!(nandscope(&["probe", &format!("sim:{card}"), "--seed", seed, "--quiet", "--json", &path]).status.success());
        path
    };
    let compare = |a: &str, b: &str| -> serde_json::Value {
        let out = nandscope(&["compare", a, b, "--json", "-"]);
        assert!(out.status.success(), "{out:?}");
        serde_json::from_slice::<serde_json::Value>(&out.stdout).unwrap()["pairs"][0].clone()
    };
    let all = |v: &serde_json::Value, key: &str| v[key].as_array().unwrap().clone();
    let (a, again, other) = (report("toshiba-emmc", "1"), report("toshiba-emmc", "2"), report("flashbench-readme", "1"));
    let same = compare(&a, &again);
    assert!(all(&same, "findings").iter().all(|d| d["outcome"] != "differs"), "{:#}", same["findings"]);
    let runs = all(&same, "samples");
    assert!(runs.len() >= 4 && runs.iter().all(|e| e["outcome"] != "differs"), "{runs:#?}");
    assert!(runs.iter().filter(|e| e["outcome"] == "same").count() >= 2, "no difference is an answer");
    let differ = compare(&other, &a);
    let what = |name: &str| all(&differ, "findings").into_iter().find(|d| d["what"] == name).unwrap();
    assert!(what("open AUs, sequential")["outcome"] == "differs" && what("erase block")["outcome"] == "same", "{differ:#}");
    assert!(all(&differ, "samples").iter().filter(|e| e["outcome"] == "differs").count() >= 2, "{differ:#}");
}

//! Serial numbers stay where they were read.

use super::*;

/// Serial numbers in a report, in logs, in names of files: nowhere in what is kept or shared unless it is asked for.
#[test]
fn serial_numbers_stay_at_home() {
    const SERIAL: &str = "cf05a1b7";
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).to_str().unwrap().to_string();
    let plain = at("plain.json");
    assert!(nandscope(&["probe", "sim:flashbench-readme", "--read-only", "--quiet", "--json", &plain]).status.success());
    let mut r: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&plain).unwrap()).unwrap();
    r["target"]["serial"] = format!("0x{SERIAL}").into();
    r["target"]["path"] = format!("/dev/disk/by-id/mmc-SU08G_0x{SERIAL}").into();
    r["settings"]["asked"] = format!("/dev/disk/by-id/mmc-SU08G_0x{SERIAL}-part1").into();
    r["warnings"] = serde_json::json!([format!("card 0x{} is slow", SERIAL.to_uppercase())]);
    r["declared"] = serde_json::json!({ "serial": format!("0x{SERIAL}"), "cid": { "raw": format!("0353445355303847 80{SERIAL}00c7") } });
    let report = at(&format!("mmc-SU08G_0x{SERIAL}.json"));
    std::fs::write(&report, r.to_string()).unwrap();
    let log = at("bench.txt");
    std::fs::write(
        &log,
        format!(
            "Serial number: 0X{}\nBUF_SIZE = 512 bytes\nwrite speed and latency\nspeed,max,min,avg\n300.5,90000,1000,1100\n",
            SERIAL.to_uppercase()
        ),
    )
    .unwrap();
    let tree = |from: &str| -> String {
        let mut next = vec![PathBuf::from(from)];
        let mut all = String::new();
        while let Some(p) = next.pop() {
            if p.is_dir() {
                next.extend(std::fs::read_dir(&p).unwrap().map(|e| e.unwrap().path()));
            } else {
                all += &String::from_utf8_lossy(&std::fs::read(&p).unwrap()).to_lowercase();
            }
        }
        all
    };
    // What may be shared: the page, the JSON, the figures; a page holds its data in base64, so that is looked into, too.
    let (page, json, figures) = (at("page.html"), at("out.json"), at("figures"));
    let shared = |extra: &[&str]| {
        let args = [&["report", report.as_str(), "--html", &page, "--json", &json, "--svg", &figures][..], extra].concat();
        assert!(matches!(nandscope(&args).status.code(), Some(0 | 3)));
        let html = std::fs::read_to_string(&page).unwrap();
        let data = html.split("base64,").nth(1).unwrap().split('"').next().unwrap();
        html.to_lowercase() + &unpack(data).to_lowercase() + &tree(&json) + &tree(&figures)
    };
    assert!(!shared(&[]).contains(SERIAL));
    assert!(shared(&["--with-serial"]).contains(SERIAL), "and it is found where it is asked for");
    let (out, store, site) = (nandscope(&["compare", &report, &log, "--json", "-"]), at("store"), at("site"));
    assert!(!String::from_utf8_lossy(&out.stdout).to_lowercase().contains(SERIAL), "{out:?}");
    let story = |s: &Store, extra: &[&str]| {
        let _ = std::fs::remove_dir_all(&site);
        s.run(0, &[&["add", report.as_str(), &log][..], extra].concat());
        let (list, _) = s.run(0, &["list", "--json"]);
        let mut all = list.clone();
        for line in list.lines() {
            let id = serde_json::from_str::<serde_json::Value>(line).unwrap()["id"].as_str().unwrap().to_string();
            all += &s.run(0, &["show", &id, "--json"]).0;
            all += &s.run(0, &["show", &id]).0;
        }
        for format in ["csv", "jsonl", "wiki"] {
            all += &s.run(0, &["export", "--format", format]).0;
        }
        s.run(0, &["site", &site]);
        all.to_lowercase() + &tree(&site)
    };
    let here = Store { place: ["--dir", &store] };
    let found = story(&here, &[]);
    assert!(found.contains("su08g") || found.contains("flashbench readme"), "the card itself is there");
    assert!(!found.contains(SERIAL) && !tree(&store).contains(SERIAL));
    // An entry that was kept with its serial number loses it on the way into another survey.
    let (kept, again) = (at("kept"), at("again"));
    let kept = Store { place: ["--dir", &kept] };
    assert!(story(&kept, &["--with-serial"]).contains(SERIAL));
    // What such a survey gives away is clean all the same.
    let give = |extra: &[&str]| {
        let _ = std::fs::remove_dir_all(&site);
        kept.run(0, &[&["site", site.as_str()][..], extra].concat());
        ["csv", "jsonl", "wiki"]
            .iter()
            .map(|f| kept.run(0, &[&["export", "--format", f][..], extra].concat()).0.to_lowercase())
            .collect::<String>()
            + &tree(&site)
    };
    assert!(!give(&[]).contains(SERIAL));
    assert!(give(&["--with-serial"]).contains(SERIAL));
    let entries: Vec<PathBuf> = std::fs::read_dir(at("kept/cards")).unwrap().map(|e| e.unwrap().path()).collect();
    assert!(tree(&at("kept/cards")).contains(SERIAL));
    let mut add = vec!["add"];
    add.extend(text(&entries));
    Store { place: ["--dir", &again] }.run(0, &add);
    assert!(!tree(&again).contains(SERIAL));
    let Some(server) = Server::start() else {
        skip::no_tool("a survey on a server", "PostgreSQL (Debian package postgresql)");
        return;
    };
    assert!(!story(&Store { place: ["--db", &server.url] }, &[]).contains(SERIAL));
}

/// Base64, for looking into what a page carries.
fn unpack(text: &str) -> String {
    const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let bits: Vec<u32> = text.bytes().filter_map(|b| ALPHABET.iter().position(|a| *a == b)).map(|p| p as u32).collect();
    let bytes = bits.chunks(4).flat_map(|c| {
        let v = c.iter().fold(0, |v, b| v << 6 | b) << (6 * (4 - c.len()));
        (0..c.len() - 1).map(move |i| (v >> (16 - 8 * i)) as u8)
    });
    String::from_utf8_lossy(&bytes.collect::<Vec<u8>>()).into_owned()
}

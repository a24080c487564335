//! Which served cards slow each other: alone against together, on buses that some of them share.

use crate::bed::{self, Server};
use crate::skip;
use nandscope::campaign::contention::{Reader, lanes, read, reader};
use nandscope::host::sysfs::Sys;
use serde_json::Value;
use std::fs;
use std::path::Path;

/// A card that reads 256 KiB in 50 ms, so that a machine that is busy adds little.
const CARD: &str = "name = \"slow\"\n[host]\nrate = \"5.2 MB/s\"\n[card]\ncapacity = \"64 MiB\"\n[nand]\npage = \"512 B\"\nerase_block = \"4 MiB\"\n[ftl]\nkind = \"none\"\n";

/// sysfs as it would be with each device behind these hubs.
fn sysfs(dir: &Path, of: &[(&str, &str)]) -> Sys {
    let real = Sys::default();
    for (device, hubs) in of {
        let dev = nandscope::host::safety::device_number(Path::new(device)).unwrap();
        let name = device.trim_start_matches("/dev/");
        let home = dir.join(format!("devices/pci0000:00/0000:00:14.0/{hubs}/host0/target0:0:0/0:0:0:0/block/{name}"));
        fs::create_dir_all(&home).unwrap();
        for file in ["dev", "size", "ro", "removable"] {
            let from = real.sys.join(format!("dev/block/{}:{}/{file}", dev.0, dev.1));
            fs::write(home.join(file), fs::read(from).unwrap()).unwrap();
        }
        fs::create_dir_all(dir.join("dev/block")).unwrap();
        std::os::unix::fs::symlink(&home, dir.join(format!("dev/block/{}:{}", dev.0, dev.1))).unwrap();
    }
    Sys { sys: dir.into(), ..real }
}

#[test]
fn readers_that_share_a_bus_are_found() {
    let what = "which served cards slow each other";
    if skip::short(what) || !bed::can(what, true, &[]) {
        return;
    }
    let _alone = bed::alone();
    let t = tempfile::tempdir().unwrap();
    let dir = t.path();
    fs::write(dir.join("slow.toml"), CARD).unwrap();
    let (card, hub) = (dir.join("slow.toml").display().to_string(), dir.join("hub").display().to_string());
    // Two of four on one bus of 6 MB/s: each alone moves 5.2 MB/s.
    let start = |shared: bool| match shared {
        true => Server::start(&[&card, "--bus", &hub, "--bus-rate", "6MB/s"]),
        false => Server::start(&[&card]),
    };
    let cards = [true, false, true, false].map(start);
    let places: Vec<&str> = cards.iter().map(|c| c.place.as_str()).collect();
    let usb = |n: usize, port: usize| format!("usb{n}/{n}-1/{n}-1.{port}/{n}-1.{port}:1.0");
    let hubs = [usb(1, 1), usb(2, 1), usb(1, 2), usb(2, 2)];
    let of: Vec<(&str, &str)> = places.iter().copied().zip(hubs.iter().map(String::as_str)).collect();
    let sys = sysfs(&dir.join("sys"), &of);
    let readers: Vec<Reader> = places.iter().map(|p| reader(p, &sys).unwrap()).collect();
    assert_eq!(readers[0].hubs, ["usb1", "1-1"]);
    assert_eq!(readers[3].hubs, ["usb2", "2-1"]);
    // A burst of other work may slow a reader that shares nothing: that is measured once more.
    let alike = |mut expected: Vec<&str>, measure: &mut dyn FnMut() -> Vec<String>| {
        expected.sort_unstable();
        let mut measure = || {
            let mut found = measure();
            found.sort_unstable();
            found
        };
        let mut found = measure();
        for _ in 0..2 {
            if found != expected {
                found = measure();
            }
        }
        assert_eq!(found, expected);
    };
    let together = vec![places[0], places[2]];
    alike(together.clone(), &mut || {
        let l = lanes(&readers, &mut |who| read(&who.iter().map(|&i| places[i]).collect::<Vec<_>>()));
        eprintln!("{:?} {:?}", l.lines(), l.measured);
        let slowed = |target: &str| l.measured.iter().find(|m| m.target == target).unwrap().ratio[0];
        // 6 MB/s for two that could move 10.4.
        assert!(slowed(places[0]).max(slowed(places[2])) > 1.4 && l.lanes.contains_key("usb1"), "{l:?}");
        l.of(places[0]).map(|lane| l.lanes[lane].clone()).unwrap_or_default().into_iter().chain(l.of(places[1]).map(String::from)).collect()
    });
    // The whole command knows no hub of a loop device, and finds the two among four by pairs; it says so in what it prints, in JSON and on the page.
    let mut plan = String::from("steps = ['probe']\n[options]\nprobe = ['--time', '1s', '--writes', '1MiB']\n");
    for (i, p) in places.iter().enumerate() {
        plan += &format!("[[card]]\nname = 'card {i}'\ntarget = '{p}'\nlot = '{}'\n", ["A", "B"][i % 2]);
    }
    fs::write(dir.join("plan.toml"), plan).unwrap();
    let mut n = 0;
    alike(together, &mut || {
        n += 1;
        let state = format!("s{n}");
        let out = bed::nandscope()
            .args(["campaign", "plan.toml", "--state", &state, "--json=out.json", "--format", "csv", "-o", "out.csv"])
            .current_dir(dir)
            .output()
            .unwrap();
        let v: Value = serde_json::from_slice(&fs::read(dir.join("out.json")).unwrap_or_else(|e| panic!("{e}: {out:?}"))).unwrap();
        let (said, shown) = (String::from_utf8_lossy(&out.stderr), String::from_utf8_lossy(&out.stdout));
        eprintln!("{said}{shown}");
        assert!(fs::read_to_string(dir.join("out.csv")).unwrap().contains("read_beside_others"), "{v}");
        let page = fs::read_to_string(dir.join(&state).join("lots.html")).unwrap();
        let lanes = v["bus"]["lanes"].as_object().unwrap();
        assert!(
            !lanes.is_empty() && [&said, &shown].iter().all(|t| t.contains("take turns")) && page.contains("take turns"),
            "{said}{shown}{v}"
        );
        lanes.values().flat_map(|l| l.as_array().unwrap()).map(|t| t.as_str().unwrap().to_string()).collect()
    });
    cards.into_iter().for_each(Server::stop);
}

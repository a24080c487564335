//! Every way to end leaves nothing behind, and what cannot start says why.

use crate::bed::*;
use std::fs;
use std::path::Path;

/// Neither the device nor the mount of a server that has ended. Servers of others may be there.
fn nothing_left(server: &Server, dir: &Path) {
    assert!(!Path::new(&server.place).exists(), "{} is left", server.place);
    assert!(!served_at(dir), "{} is left mounted", dir.display());
}

#[test]
fn a_signal_under_load_leaves_nothing() {
    let _alone = alone();
    if !can("a signal under load", true, &["fio"]) {
        return;
    }
    for (signal, card) in [("TERM", "null"), ("INT", "page-mapped")] {
        let dir = tempfile::tempdir().unwrap();
        let at = dir.path().to_str().unwrap();
        let mut server = Server::start(&[card, "--mount", at]);
        assert!(served_at(dir.path()));
        assert!(dir.path().join("card").exists());
        let file = format!("--filename={}", server.place);
        let mut args = vec!["--name=load", &file, "--direct=1", "--rw=randrw", "--bs=16k", "--ioengine=libaio", "--iodepth=16"];
        args.extend(["--numjobs=3", "--time_based", "--runtime=120"]);
        let mut load = Background::start("fio", &args);
        let stat = format!("/sys/block/{}/stat", server.place.trim_start_matches("/dev/"));
        let done = || fs::read_to_string(&stat).unwrap().split_whitespace().next().unwrap().parse::<u64>().unwrap();
        assert!(until(30, || done() > 100), "fio does not get going");
        server.signal(signal);
        assert_eq!(server.end(), Some(0), "{}", server.said());
        nothing_left(&server, dir.path());
        assert!(until(10, || load.0.try_wait().unwrap().is_some()), "fio goes on");
        assert!(fs::read_dir(dir.path()).unwrap().next().is_none(), "the directory is as it was");
    }
}

#[test]
fn a_killed_server_makes_room_for_the_next() {
    let _alone = alone();
    if !can("a killed server", true, &[]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path().to_str().unwrap();
    let mut server = Server::start(&["null", "--mount", at]);
    server.signal("KILL");
    assert_eq!(server.end(), None);
    assert!(attached(&server.place), "a killed server cannot detach");
    assert!(fs::read(&server.place).is_err(), "but nothing hangs: its device answers with errors");
    // Whoever meets the device is told what it is.
    let out = nandscope().args(["probe", &server.place]).output().unwrap();
    let said = String::from_utf8_lossy(&out.stderr);
    assert_eq!((out.status.code(), said.lines().count()), (Some(1), 1), "{said}");
    assert!(said.contains("the server of this simulated card is gone") && said.contains("losetup -d"), "{said}");
    let out = run(env!("CARGO_BIN_EXE_nandscope"), &["identify", &server.place]);
    assert!(out.contains("a simulated card (null), served by nandscope") && out.contains("which is gone"), "{out}");
    assert!(run(env!("CARGO_BIN_EXE_nandscope"), &["list"]).contains("simulated card null (server gone)"));
    let next = Server::start(&["null", "--mount", at]);
    let told = |next: &Server| next.said().lines().any(|l| l.contains("had left") && l.contains(at) && l.contains(&server.place));
    assert!(until(5, || told(&next)), "{}", next.said());
    assert!(next.place == server.place || !attached(&server.place), "the device of the killed server is still there");
    assert!(served_at(dir.path()));
    next.stop();
    nothing_left(&server, dir.path());
}

#[test]
fn a_mounted_card_is_named_and_waited_for() {
    let _alone = alone();
    if !can("a mounted card", true, &["mkfs.ext4"]) || !kernel_has("ext4") {
        return;
    }
    let mut server = Server::start(&["null"]);
    run("mkfs.ext4", &["-q", "-F", &server.place, "64M"]);
    let mounted = Mounted::new(&server.place, "ext4");
    server.signal("TERM");
    assert!(until(10, || server.said().contains(&format!("umount {}", mounted.at.display()))), "{}", server.said());
    assert!(server.child.try_wait().unwrap().is_none(), "it serves on");
    fs::write(mounted.at.join("late"), "still writable").unwrap();
    mounted.unmount();
    assert_eq!(server.end(), Some(0), "{}", server.said());
    nothing_left(&server, Path::new("/"));

    let mut server = Server::start(&["null"]);
    run("mkfs.ext4", &["-q", "-F", &server.place, "64M"]);
    let mounted = Mounted::new(&server.place, "ext4");
    server.signal("TERM");
    server.signal("TERM");
    assert_eq!(server.end(), Some(1), "{}", server.said());
    assert!(server.said().contains("remains and answers"), "{}", server.said());
    run("umount", &["-l", mounted.at.to_str().unwrap()]);
    assert!(until(10, || !attached(&server.place)), "it goes with its last user");
    // The bare device that is left goes with the next server.
    Server::start(&["null"]).stop();
    assert!(!Path::new(&server.place).exists());
}

#[test]
fn two_cards_at_once() {
    let _alone = alone();
    if !can("two cards", true, &[]) {
        return;
    }
    let (a, b) = (Server::start(&["null"]), Server::start(&["flashbench-readme"]));
    assert_ne!(a.place, b.place);
    a.stop();
    assert!(attached(&b.place));
    b.stop();
}

/// One line, exit code 1, nothing on standard output, nothing left.
/// Every start looks for what others have left, and a device given back is at once another server's.
#[test]
fn servers_that_come_and_go_take_nothing_from_each_other() {
    let _alone = alone();
    if !can("servers that come and go", true, &[]) {
        return;
    }
    std::thread::scope(|scope| {
        for card in ["null", "noisy", "usb-stick", "page-mapped", "cf-256mb", "olpc-good"] {
            scope.spawn(move || {
                for _ in 0..6 {
                    let server = Server::start(&[card, "--quiet"]);
                    let name = server.place.trim_start_matches("/dev/");
                    let label = nandscope::host::served::by_name(name).expect("its device is a served card");
                    assert_eq!((label.pid, label.card.as_str()), (server.child.id(), card), "{name} is another's");
                    server.stop();
                }
            });
        }
    });
}

fn refuses(args: &[&str], because: &str) {
    ends(1, args, because);
}

fn ends(code: i32, args: &[&str], because: &str) {
    let out = nandscope().arg("serve").args(args).output().unwrap();
    let said = String::from_utf8_lossy(&out.stderr);
    assert_eq!((out.status.code(), out.stdout.len(), said.lines().count()), (Some(code), 0, 1), "{args:?}: {said}");
    assert!(said.contains(because), "{args:?}: {said}");
}

/// In a mount namespace whose /dev holds only what is given.
fn refuses_with(nodes: &str, because: &str) {
    let script = format!("mount -t tmpfs none /dev && {nodes} exec {} serve null", env!("CARGO_BIN_EXE_nandscope"));
    let out = output("unshare", &["-m", "sh", "-c", &script]);
    let said = String::from_utf8_lossy(&out.stderr);
    assert_eq!((out.status.code(), out.stdout.len(), said.lines().count()), (Some(1), 0, 1), "{said}");
    assert!(said.contains(because), "{said}");
}

#[test]
fn without_fuse_or_loop_devices_it_says_so() {
    let _alone = alone();
    if !can("machines without FUSE or loop devices", true, &["unshare", "mknod"]) {
        return;
    }
    refuses_with("", "no FUSE");
    refuses_with("mknod /dev/fuse c 10 229 &&", "no loop devices");
    refuses_with("mknod /dev/fuse c 10 229 && mknod /dev/loop-control c 10 237 &&", "cannot attach the card");
}

#[test]
fn what_cannot_be_served_is_one_error() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    refuses(&["no-such-card"], "cannot open no-such-card");
    refuses(&["sim:no-such-card"], "there is no card 'no-such-card'");
    refuses(&[&path("absent.toml")], "No such file");
    fs::write(dir.path().join("wrong.toml"), "name = 5").unwrap();
    refuses(&[&path("wrong.toml")], "wrong.toml");
    fs::write(dir.path().join("file"), "x").unwrap();
    refuses(&["null", "--nbd", &format!("unix:{}", path("file"))], "no socket");
    // What is refused for safety has a code of its own.
    ends(4, &["null", "--nbd", "tcp:0.0.0.0:0"], "--allow-remote");
    if !can("mount points in the way", true, &[]) {
        return;
    }
    refuses(&["null", "--mount", &path("absent")], "No such file");
    refuses(&["null", "--mount", &path("file")], "not a directory");
    refuses(&["null", "--mount", dir.path().to_str().unwrap()], "not empty");
    refuses(&["null", "--mount", "/proc"], "is in use");
    refuses(&["null", "--trace", &path("absent/trace")], "cannot write the trace");
    let own = tempfile::tempdir().unwrap();
    let at = own.path().to_str().unwrap();
    let first = Server::start(&["null", "--mount", at]);
    refuses(&["null", "--mount", at], "is in use");
    first.stop();
    assert!(!served_at(own.path()));
    assert!(own.path().exists());
}

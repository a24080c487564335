//! NBD, as libnbd and QEMU speak it.

use crate::bed::*;
use std::fs;

fn served(card: &str) -> (tempfile::TempDir, Server) {
    let dir = tempfile::tempdir().unwrap();
    let address = format!("unix:{}/card.sock", dir.path().display());
    let server = Server::start(&[card, "--nbd", &address]);
    (dir, server)
}

#[test]
fn nbdinfo_sees_the_card() {
    let _alone = alone();
    if !can("nbdinfo", false, &["nbdinfo"]) {
        return;
    }
    let (dir, server) = served("flashbench-readme");
    let all = run("nbdinfo", &["--list", "--json", &server.place]);
    let all: serde_json::Value = serde_json::from_str(&all).unwrap();
    let export = &all["exports"][0];
    assert_eq!(export["export-name"], "flashbench-readme");
    assert_eq!(export["export-size"], 768 << 20);
    for (key, value) in
        [("is_read_only", false), ("can_flush", true), ("can_fua", true), ("can_trim", true), ("can_zero", true), ("can_multi_conn", true)]
    {
        assert_eq!(export[key], value, "{key}");
    }
    assert_eq!(export["block_size_minimum"], 512);
    assert_eq!(run("nbdinfo", &["--size", &server.place]).trim(), (768u64 << 20).to_string());
    server.stop();
    assert!(fs::read_dir(dir.path()).unwrap().next().is_none(), "the socket is left");
}

#[test]
fn nbdcopy_and_qemu_img_carry_an_image_there_and_back() {
    let _alone = alone();
    if !can("nbdcopy and qemu-img", false, &["nbdcopy", "qemu-img"]) {
        return;
    }
    for address in ["unix", "tcp:127.0.0.1:0"] {
        let dir = tempfile::tempdir().unwrap();
        let at = if address == "unix" { format!("unix:{}/card.sock", dir.path().display()) } else { address.into() };
        let small = model(
            dir.path(),
            "small",
            "[card]\ncapacity = \"48 MiB\"\n[nand]\npage = \"512 B\"\nerase_block = \"4 MiB\"\n[ftl]\nkind = \"none\"\n",
        );
        let server = Server::start(&[&small, "--nbd", &at]);
        let uri = server.place.as_str();
        let path = |name: &str| dir.path().join(name).display().to_string();
        let mut image = noise(5, 48 << 20);
        image[(7 << 20)..(19 << 20)].fill(0);
        fs::write(path("in.img"), &image).unwrap();
        run("nbdcopy", &["--connections=4", "--flush", &path("in.img"), uri]);
        run("nbdcopy", &[uri, &path("out.img")]);
        assert!(fs::read(path("out.img")).unwrap() == image, "nbdcopy over {uri}");
        image.rotate_left(1 << 20);
        fs::write(path("in.img"), &image).unwrap();
        run("qemu-img", &["convert", "-n", "-f", "raw", "-O", "raw", &path("in.img"), uri]);
        run("qemu-img", &["convert", "-f", "raw", "-O", "raw", uri, &path("out.img")]);
        assert!(fs::read(path("out.img")).unwrap() == image, "qemu-img over {uri}");
        assert!(run("qemu-img", &["info", "-f", "raw", uri]).contains("48 MiB"));
        server.stop();
    }
}

#[test]
fn a_second_server_and_a_killed_one() {
    let _alone = alone();
    if !can("NBD servers on one socket", false, &["nbdinfo"]) {
        return;
    }
    let (dir, mut first) = served("null");
    let address = format!("unix:{}/card.sock", dir.path().display());
    let said = Server::try_start(&["null", "--nbd", &address]).err().expect("a second server started");
    assert!(said.contains("another server listens") && said.lines().count() == 1, "{said}");
    run("nbdinfo", &["--size", &first.place]);
    first.signal("KILL");
    first.end();
    let next = Server::start(&["null", "--nbd", &address]);
    run("nbdinfo", &["--size", &next.place]);
    next.stop();
}

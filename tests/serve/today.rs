//! Today's cards as block devices: what they are asked beyond a probe, and how many requests reach them at a time.

use crate::bed::*;
use nandscope::finding::Quantity;
use std::path::Path;

/// A card with a queue and four dies, whose reads and writes take so long that a busy host keeps up with them.
fn queued(dir: &Path) -> String {
    let text = "[host]\ncommand = \"20 us\"\nrate = \"90 MB/s\"\n[card]\ncapacity = \"256 MiB\"\ncommand = \"50 us\"\nqueue = 32\n[nand]\npage = \"4 KiB\"\n\
                write_unit = \"4 KiB\"\naccess_unit = \"4 KiB\"\nerase_block = \"1 MiB\"\nsense = \"4 ms\"\nprogram = \"4 ms\"\ndies = 4\n\
                [ftl]\nkind = \"page-map\"\nover_provisioning = 0.15\n";
    model(dir, "queued", text)
}

#[test]
fn each_experiment_answers_on_a_served_card() {
    let _alone = alone();
    if !can("today's experiments on a served card", true, &["blockdev"]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(&[&queued(dir.path())]);
    let id = run("blockdev", &["--getsize64", &server.place]).trim().to_string();
    let asked = [
        ("mixed-reads", "10s", Quantity::ReadAfterWriteUs),
        ("pauses", "10s", Quantity::PauseGain),
        ("throttling", "5s", Quantity::ThrottledAfterS),
        ("queue-depth", "30s", Quantity::QueueGain),
        ("queue-depth-write", "60s", Quantity::QueueGainWrite),
        ("discard", "20s", Quantity::DiscardMs),
    ];
    for (experiment, time, quantity) in asked {
        let json = dir.path().join(format!("{experiment}.json"));
        let args = ["run", experiment, &server.place, "--write", "--consent", &id, "--time", time, "-q", "--json", json.to_str().unwrap()];
        let out = nandscope().args(args).env("XDG_STATE_HOME", dir.path()).output().unwrap();
        let text = String::from_utf8_lossy(&out.stderr);
        assert!(matches!(out.status.code(), Some(0 | 3)), "{experiment}: {text}");
        let report: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&json).unwrap()).unwrap();
        let all = report["findings"].as_array().unwrap();
        let f = all.iter().find(|f| f["quantity"] == quantity.key()).unwrap_or_else(|| panic!("{experiment} says nothing: {text}"));
        assert!(f["value"].is_number() || f["at_least"].is_number() || f["reason"].is_string(), "{f}");
        // Four dies: two to four times as many with a queue, whatever else the host does; undecided where it does much else.
        if let (Quantity::QueueGain | Quantity::QueueGainWrite, Some(gain)) = (quantity, f["value"].as_f64()) {
            assert!((1.3..5.0).contains(&gain), "{f}");
        }
    }
    server.stop();
}

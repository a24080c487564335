//! `nandscope bench` as it is called.

use super::program::program;
use std::path::Path;
use std::process::Output;

fn bench(args: &[&str], dir: &Path) -> (Output, String) {
    let out = program().args(args).current_dir(dir).output().unwrap();
    let text = format!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    (out, text)
}

fn good(args: &[&str], dir: &Path) -> String {
    let (out, text) = bench(args, dir);
    assert!(out.status.success(), "{args:?}: {text}");
    text
}

/// An image as `format` makes it has a partition table; the file goes into the volume inside.
#[test]
fn an_image_that_format_made_can_be_timed() {
    let dir = tempfile::tempdir().unwrap();
    for (mb, options) in [(64u64, &[][..]), (300, &["--fs", "fat32"]), (40, &["--no-table"])] {
        let (size, path) = ((mb << 20).to_string(), dir.path().join("f.img"));
        std::fs::File::create(&path).unwrap().set_len(mb << 20).unwrap();
        good(&[&["format", "f.img", "--consent", &size, "-q"], options].concat(), dir.path());
        let run = ["bench", "f.img", "--write", "--consent", &size, "--record", "512", "--file", "100kB", "-q"];
        let text = good(&run, dir.path());
        assert_eq!(text.contains("in the FAT volume of partition 1"), options != ["--no-table"], "{text}");
        assert!(text.contains("0.10 MB in records of 512 B") && text.contains("Linux "), "{text}");
    }
    std::fs::File::create(dir.path().join("empty.img")).unwrap().set_len(8 << 20).unwrap();
    let (out, text) = bench(&["bench", "empty.img", "--write", "--consent", "8388608", "-q"], dir.path());
    assert!(!out.status.success() && text.contains("nandscope format empty.img"), "{text}");
}

/// In a directory the card is timed, or the page cache is named; it never sizes a buffer.
#[test]
fn the_page_cache_is_no_card() {
    let dir = tempfile::tempdir().unwrap();
    let run = ["bench", ".", "--write", "--system-disk", "--record", "512", "--file", "10kB", "--log", "20kB", "-q"];
    let text = good(&run, dir.path());
    assert!(text.contains("synced after each") && !text.contains("page cache took"), "{text}");
    assert!(text.contains("Linux ") && text.contains("reads ahead"), "{text}");
    for sync in ["end", "never"] {
        let text = good(&[&run[..], &["--sync", sync]].concat(), dir.path());
        let second = text.lines().nth(1).unwrap();
        assert!(second.contains("page cache took these records"), "the plain words come first: {text}");
        assert!(text.contains("undecided, because the kernel's page cache took the records") && !text.contains("you need"), "{text}");
    }
    let (out, text) = bench(&["bench", "nosuchdir"], dir.path());
    assert!(!out.status.success() && text.contains("cannot open nosuchdir") && !text.contains("--write"), "{text}");
}

/// A line of the protocol of `firmware/`.
fn line(body: &str) -> String {
    format!("ns:{body}*{:02x}\n", body.bytes().fold(0, |x, b| x ^ b))
}

/// Percentiles of half a histogram would be those of the calls that happened to come through.
#[test]
fn a_histogram_with_lines_missing_has_no_percentiles() {
    let dir = tempfile::tempdir().unwrap();
    let head = line("1 host=uno poll_ns=0 clock_us=4") + &line("o 0 21000") + &line("t w 512 2048 7 225248 1200 150000");
    let (fast, slow) = (line("h w 512 1024 1279 2016"), line("h w 512 131072 163839 32"));
    let said = |name: &str, text: &str| {
        std::fs::write(dir.path().join(name), text).unwrap();
        good(&["infer", name, "--log", "20kB"], dir.path())
    };
    for (text, lost) in [(head.clone(), 2048), (format!("{head}{}{slow}", fast.replace("2016", "2O16")), 2016)] {
        let text = said("cut.txt", &text);
        assert!(text.contains(&format!("percentiles and tail are not known: {lost} of 2048 calls are missing")), "{text}");
        assert!(!text.contains("50 %") && !text.contains("tail:") && text.contains("longest write 150 ms"), "{text}");
    }
    let text = said("whole.txt", &(head + &fast + &slow));
    assert!(text.contains("50 % 1.28 ms") && text.contains("tail: 2048 above 1 ms, 32 above 10 ms"), "{text}");
}

/// Where half of the calls are slow they are no usual time of which a stall is five times as long.
#[test]
fn two_usual_times_are_both_named() {
    let dir = tempfile::tempdir().unwrap();
    let calls: String = (0..64).map(|i| line(&format!("w 2048 {}", if i % 2 == 0 { 6076 + i } else { 148_000 + 10 * i }))).collect();
    std::fs::write(dir.path().join("half.txt"), line("1 host=uno clock_us=4") + &calls + &line("end 66")).unwrap();
    let text = good(&["infer", "half.txt", "--log", "20kB"], dir.path());
    let (a, b) = ("50.0 % of the calls take about 6.1", "50.0 % of the calls take about 148 ms: too many of each to be stalls");
    assert!(text.contains(a) && text.contains(b) && !text.contains("the usual 148 ms"), "{text}");
}

/// A run that is asked about a logger is long, says what it carries as time, and what a day takes.
#[test]
fn a_logger_is_asked_for_a_day() {
    let dir = tempfile::tempdir().unwrap();
    for (card, rate) in [("sim:wintec-1gb", "100kB"), ("sim:amazon-c10-4gb?host=rp2040-spi", "20kB/s")] {
        let text = good(&["bench", card, "--record", "512", "--no-read", "-q", "--log", rate], dir.path());
        assert!(text.contains(" begun ") && text.contains("of logging"), "{text}");
        let before = text.find("one in a day takes").expect("what would decide it");
        assert!(before < text.find("you need").unwrap() && text.contains("--loss-time 24h --for "), "{text}");
        // As much as was asked for, and no more.
        let short = good(&["bench", card, "--record", "512", "--no-read", "-q", "--log", rate, "--file", "1MB"], dir.path());
        assert!(short.contains(": 1.00 MB in records"), "{short}");
        let day = good(&["bench", card, "--record", "512", "--no-read", "-q", "--log", rate, "--loss-time", "1d"], dir.path());
        assert!(day.contains("undecided, because") && day.contains("what decides it: nandscope bench"), "{day}");
    }
    let full = good(&["bench", "sim:amazon-c10-4gb", "--record", "512", "--no-read", "-q", "--log", "202kB", "--file", "5MB"], dir.path());
    assert!(full.contains("undecided, because the card takes no more than 204 kB/s"), "{full}");
    // More than the card takes is a clear no, for scripts too.
    let (out, text) = bench(
        &["bench", "sim:amazon-c10-4gb", "--record", "512", "--no-read", "-q", "--log", "300kB,20kB", "--file", "5MB", "--json", "a.json"],
        dir.path(),
    );
    assert!(out.status.code() == Some(8) && text.contains("too slow: no buffer is large enough, because the card takes no more"), "{text}");
    let saved: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(dir.path().join("a.json")).unwrap()).unwrap();
    let verdicts: Vec<_> = saved["benches"][0]["buffers"].as_array().unwrap().iter().map(|b| b["verdict"].as_str().unwrap()).collect();
    assert_eq!(verdicts, ["too_slow", "enough"]);
    let (out, text) = bench(&["bench", "sim:null", "--log", "20"], dir.path());
    assert!(!out.status.success() && text.contains("20kB"), "{text}");
}

#[test]
fn the_largest_request_that_reached_the_card() {
    let dir = tempfile::tempdir().unwrap();
    // Target, calls, what reached the card, and who cut them: the card's model says the one, the cluster the other.
    for (target, record, largest, who) in [
        ("sim:usb-stick", "512KiB", 122_880, "cut by the FAT32 volume, for the device takes no more in one piece"),
        ("sim:usb-stick", "64KiB", 65_536, "stay whole"),
        ("sim:modern-a1-32gb", "1MiB", 1 << 20, "stay whole"),
        ("sim:chan-sdc-512mb", "64KiB", 16_384, "cut by the file library"),
        ("sim:chan-sdc-128mb", "2KiB", 2048, "stay whole"),
        ("sim:wintec-1gb", "100", 512, "are joined"),
        ("single.toml", "4KiB", 512, "cut by the driver or the reader"),
    ] {
        let model = nandscope_sim::cards::text("chan-sdc-512mb").unwrap();
        let transfer = model.lines().find(|l| l.starts_with("transfer")).unwrap_or("[host]");
        let single = if transfer == "[host]" { "[host]\ntransfer = \"single-block\"" } else { "transfer = \"single-block\"" };
        std::fs::write(dir.path().join("single.toml"), model.replacen(transfer, single, 1)).unwrap();
        let (json, _) = bench(&["bench", target, "--record", record, "--file", "2MB", "--no-read", "-q", "--json", "-"], dir.path());
        let v: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
        let b = &v["benches"][0];
        let layers = b["requests"].as_array().unwrap();
        assert_eq!(layers.last().unwrap()["name"], "card", "{target}: {layers:?}");
        assert_eq!(layers.last().unwrap()["sizes"]["largest"], largest, "{target}: {layers:?}");
        let text = b["request_text"][0].as_str().unwrap();
        assert!(text.starts_with("largest write that reached the card: ") && text.contains(who), "{target}: {text}");
    }
    // An image has no card behind it, and says so by what it names.
    let image = dir.path().join("card.img");
    std::fs::File::create(&image).unwrap().set_len(64 << 20).unwrap();
    good(&["format", image.to_str().unwrap(), "--consent", "67108864", "-q"], dir.path());
    let args =
        ["bench", image.to_str().unwrap(), "--write", "--consent", "67108864", "--record", "64KiB", "--file", "1MB", "--no-read", "-q"];
    let out = good(&args, dir.path());
    assert!(out.contains("largest write that was sent to the device: 64 KiB; calls of 64 KiB stay whole"), "{out}");
}

#[test]
fn classes_prices_and_a_page() {
    let dir = tempfile::tempdir().unwrap();
    let run =
        ["bench", "sim:wintec-1gb", "sim:swissbit-1gb", "--against", "sim:sandisk-c2-2gb", "sim:amazon-c10-4gb", "--count-first", "-q"];
    let text =
        good(&[&run[..], &["--price", "40 USD", "--price", "5.75 eur", "--json", "b.json", "--html", "a.html"]].concat(), dir.path());
    // Published: 2.25 and 1.29 at 512 B, 1.85 and 1.19 at 100 B.
    for (what, published) in [
        ("writes in records of 512 B", 2.25),
        ("reads in records of 512 B", 1.29),
        ("writes in records of 100 B", 1.85),
        ("reads in records of 100 B", 1.19),
    ] {
        let line = text.lines().find(|l| l.starts_with(what)).unwrap_or_else(|| panic!("{what}: {text}"));
        let found: f64 = line.split("class is ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
        assert!((found / published - 1.0f64).abs() < 0.05, "{line}");
    }
    assert!(text.contains("costs 40 USD") && text.contains("for each EUR") && text.contains("cannot be compared"), "{text}");
    assert!(text.contains("  min us  avg us\n") && text.contains("What to do with sim:wintec-1gb"), "{text}");
    let json: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(dir.path().join("b.json")).unwrap()).unwrap();
    assert_eq!(json["benches"][0]["price"], "40 USD");
    good(&["report", "b.json", "--html", "b.html"], dir.path());
    let page = |name: &str| std::fs::read_to_string(dir.path().join(name)).unwrap();
    for word in ["What to do", "Stalls of writes", "Stalls by their place", "2.23 times as fast", "wear levelling"] {
        assert!(page("a.html").contains(word) && page("b.html").contains(word), "{word}");
    }
    // One card of one record size has a price, too.
    let text = good(&["bench", "sim:swissbit-1gb", "--record", "512", "--no-read", "-q", "--price", "5.75 USD"], dir.path());
    assert!(text.contains("costs 5.75 USD: ") && text.contains(" kB/s for each USD"), "{text}");
    let (out, text) = bench(&["bench", "sim:null", "--price", "40"], dir.path());
    assert!(!out.status.success() && text.contains("write for example '40 EUR'"), "{text}");
}

/// Size of a record, cluster and sync: advice from what was measured.
#[test]
fn advice_names_what_was_measured() {
    let dir = tempfile::tempdir().unwrap();
    let text = good(&["bench", "sim:chan-sdc-512mb", "--record", "1000,1024", "--no-read", "-q", "--file", "100kB"], dir.path());
    assert!(text.contains("Write 1024 B at a time"), "{text}");
    let text = good(&["bench", "sim:wintec-1gb", "--record", "512", "--sync", "end,1", "--no-read", "-q"], dir.path());
    assert!(text.contains("synced after each only 136 kB/s, 67 % less"), "{text}");
    for card in ["sim:chan-sdc-512mb", "sim:wintec-1gb"] {
        let run = ["bench", card, "--record", "512", "--cluster", "512,16KiB", "--no-read", "-q", "--file", "300kB"];
        let text = good(&run, dir.path());
        assert!(text.contains("Format with clusters of 16 KiB") || text.contains("cluster makes no difference"), "{text}");
        let rows: Vec<&str> = text.lines().filter(|l| l.trim_start().starts_with("512 ")).collect();
        assert!(matches!(rows[..], [a, b] if a.contains(" 512 B ") && b.contains(" 16 KiB ")), "each row names its cluster: {text}");
    }
    let run = ["bench", "sim:wintec-1gb", "--record", "512", "--sync", "end,1", "--no-read", "-q", "--file", "100kB"];
    let text = good(&run, dir.path());
    let rows: Vec<&str> = text.lines().filter(|l| l.trim_start().starts_with("512 ")).collect();
    assert!(matches!(rows[..], [a, b] if a.contains("at the end") && b.contains("after each")), "each row names its sync: {text}");
    let run = ["bench", "sim:wintec-1gb", "--chunks", "512,4KiB", "--sync", "end,1", "--no-read", "-q", "--file", "100kB"];
    let text = good(&run, dir.path());
    assert_eq!(text.matches("  chunk ").count(), 2, "a table for each: {text}");
    let text = good(&["bench", "sim:null", "--record", "512", "--no-read", "-q", "--file", "10kB"], dir.path());
    assert!(text.contains("--chunks sweep") && text.contains("--sync end,1"), "where nothing was varied, the command that does: {text}");
}

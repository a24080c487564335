//! The program in a virtual machine with a stock Debian kernel: real MMC cards (a virtual host with a card model, and QEMU's
//! SDHCI), a USB reader, a mounted card. See docs/vm.md.
//!
//! `tests/vm/setup.sh` prepares the machine under target/vm; without it one line says what is skipped. NANDSCOPE_VM=1 makes
//! that a failure, NANDSCOPE_VM=0 skips without trying.

#[path = "common/skip.rs"]
mod skip;

use serde_json::Value;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

/// Registers as tests/vm/vmmc/vmmc.c sets them, for 128 MiB.
const CID: &str = "fe564d5643415244101234567801a101";
const CSD: &str = "400e00325b59000000ff7f800a400001";
const SCR: &str = "0235800200000000";
const SSR: &str = "80000000000000000400900001040000";

type Test = (&'static str, fn(&Guest));

const TESTS: &[Test] = &[
    ("the_guest_ran_every_item", complete),
    ("list_shows_the_card_and_its_consent", list),
    ("identify_reads_the_registers_of_the_card", identify),
    ("probe_finds_the_erase_block", probe),
    ("probe_finds_another_erase_block_than_declared", probe_12mib),
    ("what_the_kernel_does_not_show_the_card_is_asked_for", asked),
    ("an_emmc_declares_its_ext_csd", emmc),
    ("an_emmc_takes_raw_commands", emmc_multi_block),
    ("writing_needs_consent", consent),
    ("multi_block_measures_raw_commands", multi_block),
    ("raw_writes_are_undone", undone),
    ("raw_writes_stay_inside_the_region", inside),
    ("a_card_without_cmd23_is_told_apart", no_cmd23),
    ("a_mounted_card_is_refused_and_kept", mounted),
    ("linux_mounts_what_format_made", formats),
    ("a_secure_discard_reaches_an_emmc_and_no_byte_outside", secure),
    ("the_fragmentation_lab_on_vfat_and_exfat", lab),
    ("check_reads_health_blocks_and_weighs_two_of_them", health),
    ("check_writes_and_puts_back", checked),
    ("sdhci_with_byte_addresses_works", sdhci),
    ("a_usb_reader_has_no_raw_commands", usb),
    ("the_kernel_does_not_complain", kernel_log),
];

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.iter().any(|a| a == "--list") {
        return ExitCode::SUCCESS;
    }
    let filter = args.iter().find(|a| !a.starts_with('-'));
    let chosen: Vec<&Test> = TESTS.iter().filter(|(n, _)| filter.is_none_or(|f| n.contains(f.as_str()))).collect();
    if chosen.is_empty() {
        return ExitCode::SUCCESS;
    }
    let wish = std::env::var("NANDSCOPE_VM").unwrap_or_default();
    if wish == "0" {
        return ExitCode::SUCCESS;
    }
    if let Some(why) = missing() {
        skip::skipped("the VM test", &why);
        return if wish == "1" { ExitCode::FAILURE } else { ExitCode::SUCCESS };
    }
    let guest = match Guest::run() {
        Ok(guest) => guest,
        Err(why) => {
            println!("test the_guest_runs ... FAILED\n{why}");
            return ExitCode::FAILURE;
        }
    };
    let mut failed = vec![];
    for (name, test) in &chosen {
        let ok = catch_unwind(|| test(&guest)).is_ok();
        if !ok {
            failed.push(name);
        }
        println!("test {name} ... {}", if ok { "ok" } else { "FAILED" });
    }
    println!("\ntest result: {} passed; {} failed {failed:?}", chosen.len() - failed.len(), failed.len());
    if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn vm() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).parent().map(|t| t.join("vm")).expect("a target directory")
}

fn missing() -> Option<String> {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return Some("the guest is an amd64 machine and is prepared on one".into());
    }
    let file = ["vmlinux", "initramfs.stamp", "vmmc.stamp"].into_iter().map(|f| vm().join(f)).find(|f| !f.exists())?;
    Some(format!("{} is missing; tests/vm/setup.sh fetches QEMU and a Debian kernel (150 MB)", file.display()))
}

/// What the guest left behind.
struct Guest {
    out: PathBuf,
    console: String,
}

impl Guest {
    fn run() -> Result<Guest, String> {
        let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vm");
        let mut console = String::new();
        for script in ["setup.sh", "run.sh"] {
            let done = Command::new(here.join(script))
                .env("VM_DIR", vm())
                .env("NANDSCOPE", env!("CARGO_BIN_EXE_nandscope"))
                .stdin(Stdio::null())
                .output()
                .map_err(|e| format!("{script}: {e}"))?;
            let text = format!("{}{}", String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
            if !done.status.success() {
                return Err(format!("{script} failed with {}:\n{text}", done.status));
            }
            console += &text;
        }
        Ok(Guest { out: vm().join("share/out"), console })
    }

    fn text(&self, file: &str) -> String {
        let path = self.out.join(file);
        std::fs::read(&path)
            .map_or_else(|e| panic!("{}: {e}\n{}", path.display(), self.console), |b| String::from_utf8_lossy(&b).into_owned())
    }

    fn code(&self, item: &str) -> i32 {
        self.text(&format!("{item}.rc")).trim().parse().unwrap()
    }

    fn error(&self, item: &str) -> String {
        self.text(&format!("{item}.err"))
    }

    fn json(&self, item: &str) -> Value {
        let text = self.text(&format!("{item}.out"));
        serde_json::from_str(&text).unwrap_or_else(|e| panic!("{item}: {e}: {text}\n{}", self.error(item)))
    }
}

fn finding(report: &Value, quantity: &str) -> Value {
    let all = report["findings"].as_array().unwrap_or_else(|| panic!("no findings in {report}"));
    all.iter().find(|f| f["quantity"] == quantity).unwrap_or_else(|| panic!("no {quantity} in {all:?}")).clone()
}

fn device<'a>(list: &'a Value, path: &str) -> &'a Value {
    list.as_array().unwrap().iter().find(|d| d["path"] == path).unwrap_or_else(|| panic!("no {path} in {list}"))
}

fn complete(g: &Guest) {
    assert!(g.out.join("complete").exists(), "{}", g.console);
}

fn list(g: &Guest) {
    let all = g.json("list");
    let d = device(&all, "/dev/mmcblk0");
    assert_eq!((&d["bus"], &d["model"], &d["free"]), (&"mmc".into(), &"VCARD".into(), &true.into()), "{d}");
    assert_eq!((&d["consent"], &d["size"]), (&"0x12345678".into(), &134_217_728.into()), "{d}");
}

fn identify(g: &Guest) {
    let r = g.json("identify");
    assert_eq!((&r["cid"]["raw"], &r["csd"]["raw"], &r["scr"]["raw"]), (&CID.into(), &CSD.into(), &SCR.into()));
    let ssr = r["ssr"]["raw"].as_str().unwrap();
    assert!(ssr.starts_with(SSR) && ssr.len() == 128 && ssr[32..].bytes().all(|b| b == b'0'), "{ssr}");
    assert_eq!((&r["cid"]["manfid"], &r["cid"]["name"], &r["ssr"]["au"]["bytes"]), (&0xfe.into(), &"VCARD".into(), &4_194_304.into()));
    assert_eq!(r["preferred_erase_size"]["is_kernel_guess"], false, "the SSR gives an AU");
    assert_eq!((&r["read_from"]["CSD"], &r["read_from"]["SSR"]), (&"sysfs".into(), &"sysfs".into()));
}

fn asked(g: &Guest) {
    let r = g.json("asked");
    assert_eq!((&r["read_from"]["SCR"], &r["read_from"]["SSR"]), (&"the card (ACMD51)".into(), &"the card (ACMD13)".into()), "{r}");
    assert_eq!((&r["scr"]["raw"], &r["ssr"]["au"]["bytes"]), (&SCR.into(), &4_194_304.into()));
    assert_eq!(g.code("not-allowed"), 0, "{}", g.error("not-allowed"));
    let text = g.text("not-allowed.out");
    assert!(text.contains("SCR (ACMD51), SSR (ACMD13): not shown by the kernel") && text.contains("CAP_SYS_RAWIO"), "{text}");
}

fn emmc(g: &Guest) {
    let r = g.json("emmc-identify");
    assert_eq!(
        (&r["kind"], &r["name"], &r["date"]),
        (&"mmc".into(), &"VEMMC1".into(), &serde_json::json!({"year": 2023, "month": 1})),
        "{r}"
    );
    assert_eq!((&r["capacity"], &r["serial"]), (&4_294_967_296u64.into(), &"0x12345678".into()));
    let e = &r["ext_csd"];
    assert_eq!(
        (&e["erase_group"], &e["write_protect_group"], &e["firmware"]),
        (&524_288.into(), &8_388_608.into(), &"fw 1.0".into()),
        "{e}"
    );
    assert_eq!((&r["declared_au"]["bytes"], &r["preferred_erase_size"]["is_kernel_guess"]), (&524_288.into(), &true.into()), "{r}");
    assert_eq!(r["read_from"]["EXT_CSD"], "debugfs");
    let text = g.text("emmc-asked.out");
    for part in [
        "EXT_CSD from the card (CMD8)",
        "B: 20 to 30 % of life used",
        "4 MiB: on eMMC always the kernel's guess: by capacity, in whole erase groups of 512 KiB",
    ] {
        assert!(text.contains(part), "no {part:?} in {text}");
    }
    // Read boundaries lie every 2 MiB, the erase group says 512 KiB.
    erase_block(g, "emmc-probe", 2 << 20);
    let warnings = g.json("emmc-probe")["warnings"].to_string();
    assert!(warnings.contains("the 2 MiB found is 4 times the declared 512 KiB"), "{warnings}");
}

fn emmc_multi_block(g: &Guest) {
    let r = g.json("emmc-multi-block");
    let (before, after) = (sums(g, "emmc-before"), sums(g, "emmc-after"));
    assert_ne!(before[1], after[1], "raw writes went somewhere else");
    assert_eq!((&before[0], &before[2]), (&after[0], &after[2]), "raw writes went to a wrong address");
    let gain = finding(&r, "multi_block_gain");
    assert!(gain["value"].as_f64().is_some_and(|v| v > 20.0), "{gain}");
    assert!(gain["evidence"][0].as_str().unwrap().contains("pre-defined (CMD23, CMD25)"), "{gain}");
    let f = finding(&r, "pre_erase_gain");
    assert!(f["reason"].as_str().unwrap().contains("ACMD23 is a command of SD cards"), "{f}");
}

fn erase_block(g: &Guest, item: &str, bytes: u64) {
    let r = g.json(item);
    assert_eq!(g.code(item), 0, "{}", g.error(item));
    for (quantity, value) in [("erase_block", bytes), ("erase_block_offset", 0)] {
        let f = finding(&r, quantity);
        assert!(f["value"] == value && f["confidence"].as_f64().unwrap() > 0.8, "{f}");
    }
    assert_eq!(r["cost"]["bytes_written"], 0);
}

fn probe(g: &Guest) {
    erase_block(g, "probe", 4 << 20);
}

fn probe_12mib(g: &Guest) {
    erase_block(g, "probe-12mib", 12 << 20);
}

fn consent(g: &Guest) {
    assert_eq!(g.code("no-consent"), 4);
    assert!(g.error("no-consent").contains("--consent 0x12345678"), "{}", g.error("no-consent"));
}

fn multi_block(g: &Guest) {
    let r = g.json("multi-block");
    assert_eq!(g.code("multi-block"), 0, "{}", g.error("multi-block"));
    // By the model 1225 us for one block and 26800 us for 1024: 46.8 times, less what the kernel adds to both.
    let gain = finding(&r, "multi_block_gain");
    let evidence = gain["evidence"][0].as_str().unwrap();
    assert!((30.0..47.0).contains(&gain["value"].as_f64().unwrap()), "{gain}");
    assert!(evidence.contains("CMD24") && evidence.contains("pre-defined (CMD23, CMD25)"), "raw commands on both sides: {gain}");
    // Nine tenths of the rate at 512 KiB are reached at 152 KiB by the model; what the kernel adds to each block makes it the length below.
    let knee = finding(&r, "multi_block_knee");
    let told = knee["value"].as_u64().or(knee["at_least"].as_u64());
    let reason = knee["reason"].as_str().unwrap_or_default();
    assert!(told.map_or(reason.starts_with("it may lie at"), |b| (128 << 10..=256 << 10).contains(&b)), "{knee}");
    let largest = finding(&r, "largest_request");
    let declared: u64 = g.text("max_sectors_kb").trim().parse().unwrap();
    assert_eq!(largest["value"], declared << 10, "{largest}");
    // The kernel of this guest polls after CMD25: said, and not timed.
    for quantity in ["pre_defined_gain", "pre_erase_gain"] {
        let f = finding(&r, quantity);
        assert!(f["value"].is_null() && f["reason"].as_str().unwrap().contains("this kernel waits"), "{f}");
    }
    assert_eq!(
        r["runs"][0]["faults"].as_array().unwrap().len(),
        2,
        "one reason for each form that cannot be sent: {}",
        r["runs"][0]["faults"]
    );
}

/// Sums of what lies below, inside and above the region.
fn sums(g: &Guest, item: &str) -> [String; 3] {
    let lines: Vec<String> = g.text(&format!("{item}.out")).lines().map(str::to_string).collect();
    lines.try_into().unwrap_or_else(|l| panic!("{item}: {l:?}"))
}

fn undone(g: &Guest) {
    let (before, after) = (sums(g, "before"), sums(g, "after"));
    assert!(before[0] != before[1] && before[1] != before[2], "the parts must differ to be told apart");
    assert_eq!(before, after);
}

fn inside(g: &Guest) {
    let (before, after) = (sums(g, "before"), sums(g, "left-after"));
    assert_ne!(before[1], after[1], "nothing was written");
    assert_eq!((&before[0], &before[2]), (&after[0], &after[2]), "something was written outside the region");
}

fn no_cmd23(g: &Guest) {
    let r = g.json("no-cmd23");
    let f = finding(&r, "pre_defined_gain");
    assert!(f["reason"].as_str().unwrap().contains("does not offer CMD23"), "{f}");
    let gain = finding(&r, "multi_block_gain");
    assert!(gain["value"].as_f64().unwrap() > 10.0 && gain["caveats"][0].as_str().unwrap().contains("by way of the kernel"), "{gain}");
}

fn mounted(g: &Guest) {
    for item in ["mounted", "mounted-write"] {
        assert_eq!(g.code(item), 4, "{}", g.error(item));
        let e = g.error(item);
        assert!(e.contains("is mounted at /mnt/card") && e.contains("umount /mnt/card"), "{e}");
    }
    assert_eq!(g.code("mounted-identify"), 0, "registers can be read of a card in use");
    assert_eq!(g.code("mounted-content"), 0, "the file on the card has changed");
    assert_ne!(g.code("unmounted"), 4, "{}", g.error("unmounted"));
}

/// One answer of a check.
fn answer(g: &Guest, item: &str, question: &str) -> (String, String) {
    let r = g.json(item);
    let all = r["answers"].as_array().unwrap_or_else(|| panic!("no answers in {r}"));
    let a = all.iter().find(|a| a["question"] == question).unwrap_or_else(|| panic!("no {question} in {all:?}"));
    (a["verdict"].as_str().unwrap().into(), a["because"].as_str().unwrap().into())
}

fn health(g: &Guest) {
    let pass = |item| {
        let (verdict, because) = answer(g, item, "health");
        assert_eq!(verdict, "pass", "{item}: {because}");
        because
    };
    let because = pass("check-health");
    assert!(because.contains("67 % of its life left") && because.contains("2 bad blocks since the factory"), "{because}");
    // 64 MiB and more were written by this host, and twice as many reached the flash, in blocks of 4 MiB.
    let wear = &g.json("check-again")["wear"];
    let holds = |what: &str, true_value: f64, most: f64| {
        let range: Vec<f64> = wear[what].as_array().unwrap_or_else(|| panic!("{wear}")).iter().map(|v| v.as_f64().unwrap()).collect();
        assert!(range[0] <= true_value && true_value <= range[1] && range[1] / range[0] < most, "{what}: {wear}");
    };
    holds("amplification", 2.0, 1.4);
    holds("superblock", 4_194_304.0, 1.3);
    let changes = g.json("check-again")["changes"].to_string();
    assert!(changes.contains("write amplification, counted over") && changes.contains("superblock"), "{changes}");
    assert!(g.text("check-text.out").contains("67 % of its life left"));
    // A card that does not answer, and a maker of whom nothing is known: said, and nobody is accused.
    let (verdict, because) = answer(g, "check-silent", "health");
    assert!(verdict == "not_known" && because.contains("no health block"), "{because}");
    let sent = g.text("silent-commands");
    assert!((1..=2).contains(&sent.lines().count()) && sent.lines().all(|l| l.contains("arg 110005f1")), "{sent}");
    let (verdict, because) = answer(g, "check-unknown", "health");
    assert!(verdict == "not_known" && because.contains("no card of this maker (0x42)"), "{because}");
    let because = pass("check-emmc");
    assert!(because.contains("20 to 30 %"), "{because}");
    for item in ["check-health", "check-again", "check-silent", "check-unknown", "check-emmc"] {
        assert_eq!(g.code(item), 3, "nothing was written: {}", g.error(item));
    }
}

fn checked(g: &Guest) {
    assert_eq!(g.code("check-write"), 0, "{}{}", g.text("check-write.out"), g.error("check-write"));
    for question in ["capacity", "stores", "errors", "purpose"] {
        assert_eq!(answer(g, "check-write", question).0, "pass", "{question}");
    }
    assert!(answer(g, "check-write", "purpose").1.contains("100 kB/s"));
    let (before, after) = (sums(g, "check-before"), sums(g, "check-after"));
    assert!(before[0] != before[1] && before == after, "{before:?} {after:?}");
}

/// Sizes from 8 MiB to 2 TiB by the SD convention, another grid, no table, a card in the slot.
fn formats(g: &Guest) {
    let sizes: [(&str, &str, u64); 12] = [
        ("8mib", "FAT12", 8 << 20),
        ("60mib", "FAT12", 60 << 20),
        ("488mib", "FAT16", 488 << 20),
        ("2gb", "FAT16", 2_000_683_008),
        ("4gb", "FAT32", 3_965_190_144),
        ("32gib", "FAT32", 32 << 30),
        ("64gb", "exFAT", 63_864_569_856),
        ("256gb", "exFAT", 256_060_514_304),
        ("2tib", "exFAT", 2 << 40),
        ("12mib-blocks", "FAT32", 3_965_190_144),
        ("no-table", "exFAT", 512 << 20),
        ("card", "FAT16", 64 << 20),
    ];
    for (name, fs, size) in sizes {
        for item in ["format", "mount"] {
            let item = format!("{item}-{name}");
            assert_eq!(g.code(&item), 0, "{item}: {}", g.error(&item));
        }
        // Linux sees the whole of it: blocks of 1 KiB in the second column.
        let df = g.text(&format!("mount-{name}.out"));
        let kib: u64 = df.split_whitespace().nth(1).and_then(|n| n.parse().ok()).unwrap_or_else(|| panic!("{name}: {df}"));
        assert!(kib * 1024 <= size && kib as f64 * 1024.0 > 0.97 * size as f64 - 24e6, "{name}: {kib} KiB of {size}");
        let audit = g.json(&format!("audit-{name}"));
        let volume = &audit["disk"]["parts"][0]["volume"];
        assert_eq!(volume["what"], fs, "{name}: {audit}");
        let want = match name {
            "12mib-blocks" | "no-table" => continue,
            _ => "exact",
        };
        assert_eq!(audit["factory"], want, "{name}: {audit}");
    }
    let at = g.json("audit-12mib-blocks")["disk"]["parts"][0]["volume"]["data"].as_u64().unwrap();
    assert!(at.is_multiple_of(12 << 20), "{at}");
    let log = g.text("dmesg");
    let bad: Vec<&str> = log.lines().filter(|l| l.contains("FAT-fs (loop0)") || l.contains("FAT-fs (mmcblk0p1)")).collect();
    assert!(bad.is_empty(), "the kernel complains: {bad:?}");
}

fn secure(g: &Guest) {
    assert_eq!(g.code("secure-sd"), 1);
    assert!(g.error("secure-sd").contains("has no secure discard; overwrite instead"), "{}", g.error("secure-sd"));
    assert_eq!(g.code("secure"), 0, "{}", g.error("secure"));
    let done = g.json("secure");
    assert_eq!((&done["done"]["discarded"], &done["done"]["left"], &done["state"]), (&(16u64 << 20).into(), &0.into(), &"erased".into()));
    let (before, after) = (sums(g, "secure-before"), sums(g, "secure-after"));
    assert_eq!((&before[0], &before[2]), (&after[0], &after[2]), "bytes outside the region have changed");
    // The sum of 16 MiB of zeros.
    assert_ne!(before[1], after[1]);
    assert!(after[1].starts_with("2c7ab85a893283e98c931e9511add182"), "{}", after[1]);
    assert_eq!(g.code("discard-emmc"), 0, "{}", g.error("discard-emmc"));
}

/// P2, P3, P5, P6, P14: the lab by the kernel, labelled so; what was on the card is on it afterwards.
fn lab(g: &Guest) {
    for (kind, files) in [("vfat", "FAT16"), ("exfat", "exFAT")] {
        let text = |item: &str| g.text(&format!("lab-{kind}-{item}.out"));
        for item in ["format", "age", "verify", "map", "defrag", "again", "remove", "frag", "noise", "device"] {
            assert_eq!(g.code(&format!("lab-{kind}-{item}")), 0, "{kind} {item}: {}", g.error(&format!("lab-{kind}-{item}")));
        }
        assert!(text("age").starts_with("4 of 4 passes; "), "{}", text("age"));
        let map = text("map");
        assert!(map.contains(&format!("{kind} (kernel)")) && map.contains(" free in "), "{map}");
        let line = map.lines().nth(1).unwrap();
        let share: u32 = line.split(" files, ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
        assert!(share > 30, "{kind} fragments: {line}");
        assert_eq!(g.code(&format!("lab-{kind}-refused")), 4);
        assert!(g.error(&format!("lab-{kind}-refused")).contains("--consent 0x12345678"), "{}", g.error(&format!("lab-{kind}-refused")));
        let defrag = text("defrag");
        let (before, after) = (defrag.lines().find(|l| l.starts_with("before:")), defrag.lines().find(|l| l.starts_with("after:")));
        assert!(before.unwrap().contains(line.split(", ").nth(1).unwrap()), "{defrag}");
        assert!(after.unwrap().contains(" 0 % of them fragmented"), "{defrag}");
        let r = g.json(&format!("lab-{kind}-frag"));
        assert_eq!((&r["label"], &r["filesystem"]), (&"kernel".into(), &kind.into()));
        let states: Vec<&str> = r["conditions"].as_array().unwrap().iter().map(|c| c["state"].as_str().unwrap()).collect();
        assert_eq!(states, ["as-is", "fragmented", "defragmented", "blank"]);
        for c in r["conditions"].as_array().unwrap() {
            assert_eq!(c["measured"]["samples"].as_array().unwrap().len(), 3 * 7, "{c}");
            assert!(c["fragmentation"]["free"]["bytes"].as_u64().unwrap() > 1 << 20, "{c}");
        }
        let pieces = |i: usize| r["conditions"][i]["fragmentation"]["extents"].as_u64().unwrap();
        assert!(pieces(1) > pieces(2) && pieces(3) == 0, "{}, {}, {}", pieces(1), pieces(2), pieces(3));
        assert!(!g.text(&format!("lab-{kind}-left")).contains("NSAGE") && !g.text(&format!("lab-{kind}-left")).contains("nandscope-spare"));
        assert!(text("device").contains(files), "{}", text("device"));
    }
}

fn sdhci(g: &Guest) {
    let r = g.json("sdhci-identify");
    assert_eq!((&r["cid"]["raw"], &r["csd"]["layout"]), (&"aa585951454d552101deadbeef006200".into(), &"sd_v1".into()));
    let r = g.json("sdhci-multi-block");
    let (how, role) = (&r["runs"][0]["cells"], &r["runs"][0]["samples"]["cell"]);
    let single = how.as_array().unwrap().iter().filter(|c| c["set"]["how"] == 0 && c["set"]["ask"].is_null()).map(|c| &c["id"]);
    let taken = role.as_array().unwrap();
    assert!(single.clone().count() == 7 && single.clone().all(|id| taken.contains(id)), "CMD24 was not sent in all lengths: {how}");
    let (before, after) = (sums(g, "sdhci-before"), sums(g, "sdhci-after"));
    assert_ne!(before[1], before[2]);
    assert_eq!(before, after, "raw writes went to a wrong address or were not undone");
}

fn usb(g: &Guest) {
    let list = g.json("usb-list");
    let d = device(&list, "/dev/sda");
    assert_eq!((&d["bus"], &d["removable"], &d["free"]), (&"usb".into(), &true.into(), &true.into()), "{d}");
    let r = g.json("usb-identify");
    assert!(r["cid"].is_null() && r["usb"]["vendor_id"] == 0x46f4, "{r}");
    let r = g.json("usb-probe");
    assert_eq!(g.code("usb-probe"), 3, "{}", g.error("usb-probe"));
    assert!(finding(&r, "erase_block")["value"].is_null(), "a disk of zeros has no erase block: {r}");
    assert!(r["warnings"].as_array().unwrap().iter().any(|w| w.as_str().unwrap().contains("USB bridge")), "{}", r["warnings"]);
    let r = g.json("usb-multi-block");
    let f = finding(&r, "pre_defined_gain");
    assert!(f["reason"].as_str().unwrap().contains("no raw MMC commands"), "{f}");
    let gain = finding(&r, "multi_block_gain");
    assert!(gain["value"].as_f64().is_some_and(|v| v > 1.0), "{gain}");
}

fn kernel_log(g: &Guest) {
    let log = g.text("dmesg");
    let bad: Vec<&str> =
        log.lines().filter(|l| ["Call Trace", "WARNING:", "BUG:", "Oops", "I/O error"].iter().any(|b| l.contains(b))).collect();
    assert!(log.contains("mmc0: new") && bad.is_empty(), "{bad:?}");
}

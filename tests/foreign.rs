//! Results of other benchmarks come in by the one door: figures under stated conditions, in the units their programs mean, and what contradicts itself
//! is said. The samples in tests/foreign/ were written for this test in the form of each program, with figures of ordinary cards; whole published
//! files are read from ../shared/published.
//!
//! covers: F6, U20

#[path = "common/shared.rs"]
mod shared;
#[path = "common/skip.rs"]
mod skip;

use nandscope::samples::import::foreign::Benchmark;
use nandscope::samples::import::{File, open};
use shared::published;
use std::path::Path;
use std::process::Command;

fn sample(name: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/foreign").join(name)).unwrap()
}

fn read(name: &str, text: &str) -> Result<Benchmark, String> {
    match open(0, name, text.as_bytes()) {
        Ok(File::Text(t)) => t.figures.ok_or("no figures".into()),
        Ok(other) => Err(format!("{other:?}")),
        Err(e) => Err(e.to_string()),
    }
}

/// The figure of this name and these conditions, in base units of its kind: kB/s, µs, IOPS.
fn value(b: &Benchmark, name: &str, conditions: &str) -> f64 {
    let all: Vec<_> = b.metrics.iter().filter(|m| m.name == name && m.conditions.starts_with(conditions)).collect();
    assert_eq!(all.len(), 1, "{name}, {conditions}: {b:#?}");
    if all[0].unit == "MB/s" { all[0].value * 1e3 } else { all[0].value }
}

/// Figures as they are printed, in the units that each program means (its source or manual).
#[test]
fn figures_in_the_units_their_programs_mean() {
    const MIB: f64 = 1_048.576;
    for (file, tool, name, conditions, want) in [
        // h2testw: MByte = 2^20.
        ("h2testw.txt", "h2testw", "sequential write", "1 GiB files", 9.71 * MIB),
        ("h2testw.txt", "h2testw", "data read back right", "", 15_675_392.0 * 512.0 / 1_048_576.0),
        ("h2testw-german.txt", "h2testw", "sequential read", "1 GiB files", 17.4 * MIB),
        // CrystalDiskMark: MB = 10^6, in every version.
        ("crystaldiskmark-8.txt", "CrystalDiskMark", "random write", "4 KiB, depth 1,", 2608.0),
        ("crystaldiskmark-8.txt", "CrystalDiskMark", "sequential read", "1 MiB, depth 8,", 94_512.0),
        ("crystaldiskmark-8.txt", "CrystalDiskMark", "random reads a second", "4 KiB, depth 32,", 2542.0),
        ("crystaldiskmark-6.txt", "CrystalDiskMark", "random read", "4 KiB, depth 8, 8 threads", 7013.0),
        ("crystaldiskmark-6.txt", "CrystalDiskMark", "sequential write", "block not stated, depth 32", 34_120.0),
        ("crystaldiskmark-3.txt", "CrystalDiskMark", "random write", "512 KiB, depth 1", 1190.0),
        ("crystaldiskmark-3.txt", "CrystalDiskMark", "random writes a second", "4 KiB, depth 32", 2.7),
        // hdparm MB = 2^20, dd MB = 10^6, iozone KB = 1024.
        ("pibenchmarks.txt", "PiBenchmarks", "sequential read", "hdparm", 41.70 * MIB),
        ("pibenchmarks.txt", "PiBenchmarks", "sequential write", "dd", 25_300.0),
        ("dd.txt", "dd", "sequential write", "1 MiB, dd, to the device", 268_435.456 / 15.1172),
        ("dd.txt", "dd", "sequential read", "1 MiB, dd, to the device", 268_435.456 / 12.0411),
        ("hdparm.txt", "hdparm", "sequential read", "hdparm, through the page cache", 130.0 / 3.01 * MIB),
        ("pibenchmarks.txt", "PiBenchmarks", "random write", "4 KiB, iozone", 3341.0 * 1.024),
        ("pibenchmarks.txt", "PiBenchmarks", "random writes a second", "4 KiB, fio", 855.0),
        // uFLIP: µs; two runs are two passes, the longest is that of all.
        ("uflip-RES.csv", "uFLIP", "sequential read, average time", "32 KiB, GRA.SR", (1810.4 + 1808.0) / 2.0),
        ("uflip-RES.csv", "uFLIP", "random write, longest time", "32 KiB, GRA.RW", 251_004.0),
        ("uflip-RES.csv", "uFLIP", "random write, average time", "32 KiB, PAU.RW, 5000 µs pause", 22_110.0),
        ("job_clat.1.log", "fio", "read, longest time", "4 KiB, fio log (clat)", 251_000.0),
        // fio: what is read and written at the same time, and by how many jobs, are conditions; each job has its own blocks.
        ("fio.json", "fio", "random read (mixed)", "4 KiB, depth 4, 2 jobs, direct", 2048.0),
        ("fio.json", "fio", "random writes a second (mixed)", "16 KiB, depth 4, 2 jobs, direct", 500.0),
        ("fio.json", "fio", "sequential read, longest time", "1 MiB, depth 1, direct", 61_000.0),
        ("fio.txt", "fio", "random write", "4 KiB, depth 1, 2 jobs, fio as text", 1024.0),
        ("fio.txt", "fio", "random write, 99 % of the times", "4 KiB, depth 1, 2 jobs", 40_000.0),
        ("fio.txt", "fio", "sequential read", "1 MiB, depth 8, fio as text", 20_900.0),
        // f3 and iozone count in 1024.
        ("f3.txt", "f3", "sequential read", "1 GiB files", 18.70 * MIB),
        ("iozone.txt", "iozone", "random write", "4 KiB in 100 MiB, direct", 980.0 * 1.024),
        ("sbc-bench.txt", "iozone", "sequential reread", "16 KiB in 100 MiB, direct", 17_250.0 * 1.024),
        ("agnostics.log", "agnostics", "sequential write", "4 MiB", 20_480.0 * 1.024),
        ("agnostics.log", "agnostics", "random reads a second", "4 KiB", 2000.0),
        // mfst: bytes a second; only minutes of one kind.
        ("mfst-state.json", "mfst", "sequential read", "120 KiB", 90_000.0),
        ("mfst-stats.csv", "mfst", "sequential write", "a minute each", 30_500.0),
        ("sdmon.txt", "sdmon", "power cycles", "health block", 41.0),
        ("usd-fs.json", "uSD-FS", "raw read", "4 KiB, SPI at 25 MHz", 2000.0),
    ] {
        let b = read(file, &sample(file)).unwrap_or_else(|e| panic!("{file}: {e}"));
        let got = value(&b, name, conditions);
        assert!(b.tool == tool && (got / want - 1.0).abs() < 1e-9, "{file}: {name}: {got}, not {want}");
    }
    assert_eq!(read("uflip-RES.csv", &sample("uflip-RES.csv")).unwrap().capacity, Some(15_625_216 * 512));
    // More sectors than any number of bytes holds: the largest number, and no crash.
    assert_eq!(read("uflip-RES.csv", &sample("uflip-RES.csv").replace("15625216", "1e19")).unwrap().capacity, Some(u64::MAX));
    // Runs of other orders and mixes are no passes of one experiment.
    let uflip = sample("uflip-RES.csv");
    let (head, row) = uflip.split_once('\n').unwrap();
    let row = row.lines().next().unwrap();
    let columns: Vec<&str> = head.split(';').map(str::trim).collect();
    let with = |name: &str, value: &str| {
        let mut cells: Vec<&str> = row.split(';').collect();
        cells[columns.iter().position(|c| *c == name).unwrap()] = value;
        cells.join(";")
    };
    let mixed = with("Base1", "RW").replace("; 0; 0.0; 1; 1;", "; 4; 0.0; 1; 1;");
    let all = [head.to_string(), row.to_string(), with("Order", "-1"), with("Order", "0"), with("Base1", "RW"), mixed].join("\n");
    let b = read("RES.csv", &all).unwrap();
    let kinds: Vec<&str> = b.metrics.iter().filter(|m| m.name.ends_with("average time")).map(|m| m.conditions.as_str()).collect();
    assert!(kinds.len() == 5 && kinds.iter().any(|k| k.contains("-1 increment")), "{kinds:?}");
    // What failed is said.
    assert!(read("u", &sample("usd-fs.json")).unwrap().notes.iter().any(|n| n.starts_with("raw write, 4 KiB") && n.ends_with("failed")));
}

/// Nothing contradicts itself in the samples but the counterfeit; what does is said.
#[test]
fn contradictions_are_said() {
    for entry in std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/foreign")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let b = read(&name, &sample(&name)).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(b.flags.len(), usize::from(name == "h2testw.txt"), "{name}: {:?}", b.flags);
    }
    assert!(read("h", &sample("h2testw.txt")).unwrap().flags[0].starts_with("counterfeit or damaged: 22630.5 MiB"));
    for (file, from, to, says) in [
        ("crystaldiskmark-6.txt", "338.9 IOPS", "938.9 IOPS", "are not 4 KiB each"),
        ("uflip-RES.csv", "61210.7", "261210.7", "is below the mean"),
        ("h2testw.txt", "22.1 GByte overwritten (46347264 sectors)", "0 KByte overwritten (0 sectors)", "did not come back"),
    ] {
        let bad = sample(file).replace(from, to);
        assert!(bad != sample(file));
        let b = read(file, &bad).unwrap();
        assert!(b.flags.iter().any(|f| f.contains(says)), "{file}: {:?}", b.flags);
    }
    // A log of rates looks like one of latencies.
    let why = read("job_bw.1.log", &sample("job_clat.1.log")).unwrap_err();
    assert!(why.contains("does not say of what"), "{why}");
}

/// What a card lost once stays said, whatever a later run found; the least that came back is the figure.
#[test]
fn of_several_runs_the_worst_counts() {
    let good = sample("f3.txt");
    let bad = good.replace("Data LOST: 0.00 Byte (0 sectors)", "Data LOST: 1.00 GB (2097152 sectors)").replace("62301184", "60204032");
    let h2testw = (sample("h2testw.txt"), sample("h2testw-german.txt"));
    for (one, two, says) in [
        (&bad, &good, "did not come back"),
        (&good, &bad, "did not come back"),
        (&h2testw.0, &h2testw.1, "counterfeit"),
        (&h2testw.1, &h2testw.0, "counterfeit"),
    ] {
        let b = read("x", &format!("{one}{two}")).unwrap();
        assert!(b.flags.len() == 1 && b.flags[0].contains(says), "{:?}", b.flags);
        assert_eq!(b.metrics.iter().find(|m| m.name == "sequential write").unwrap().passes.len(), 2);
    }
    for both in [format!("{bad}{good}"), format!("{good}{bad}")] {
        assert_eq!(value(&read("x", &both).unwrap(), "data read back right", ""), 60_204_032.0 / 2048.0);
    }
    // Two cards: which of them it was.
    let b = read("x", &format!("SanDisk 8GB card:\n{bad}\nKingston 16GB card:\n{good}")).unwrap();
    assert!(b.flags.len() == 1 && b.flags[0].ends_with("did not come back (SanDisk 8GB card)"), "{:?}", b.flags);
    assert_eq!(value(&b, "data read back right", "f3read, Kingston 16GB card"), 62_301_184.0 / 2048.0);
}

/// Repeats on one thing are passes; the same on two disks, drives, files, cards or jobs is never averaged.
#[test]
fn different_things_are_kept_apart() {
    let dd = |of: &str, s: u32| {
        format!(
            "$ dd if=/dev/zero of={of} bs=1M count=100 oflag=direct\n100+0 records in\n100+0 records out\n104857600 bytes (105 MB, 100 MiB) copied, {s}.0 s, 1 MB/s\n"
        )
    };
    let hdparm = |of: &str, mb: u32| format!("{of}:\n Timing buffered disk reads: {mb} MB in  3.00 seconds\n\n");
    let crystal =
        |of: &str, mb: u32| sample("crystaldiskmark-8.txt").replace("94.512", &format!("{mb}.000")).replace("[E:", &format!("[{of}:"));
    let under = |title: &str, file: &str, from: &str, to: &str| {
        let changed = sample(file).replace(from, to);
        assert!(changed != sample(file));
        format!("{title}\n{changed}\n")
    };
    let iozone = |title: &str, kb: &str| under(title, "iozone.txt", " 1210 ", kb);
    let h2testw = |title: &str, rate: &str| under(title, "h2testw-german.txt", "9,85", rate);
    let fio = |of: &str, k: u32| {
        format!(
            "$ fio --name=w --filename={of} --rw=randwrite --bs=4k\nw: (g=0): rw=randwrite, bs=(R) 4096B-4096B, (W) 4096B-4096B, ioengine=psync, iodepth=1\nfio-3.33\n\
             w: (groupid=0, jobs=1): err= 0: pid=1\n  write: IOPS={k}, BW={k}kB/s ({k}kB/s)(96.7MiB/60001msec)\nDisk stats (read/write):\n"
        )
    };
    let json = |of: &str, n: u32| {
        format!(
            r#"{{"fio version":"fio-3.33","jobs":[{{"jobname":"w","error":0,"job options":{{"rw":"randwrite","bs":"4k","filename":"{of}"}},"write":{{"iops":{n},"bw_bytes":{}}}}}]}}"#,
            n * 4096
        )
    };
    let (a, b) = ("/dev/sda", "/dev/mmcblk0");
    for (same, other, name) in [
        ([dd(a, 10), dd(a, 20)], dd(b, 40), "sequential write"),
        ([hdparm(a, 30), hdparm(a, 60)], hdparm(b, 90), "sequential read"),
        ([crystal("E", 50), crystal("E", 60)], crystal("F", 90), "sequential read"),
        (
            [iozone("Card A (SanDisk)", " 1000 "), iozone("Card A (SanDisk)", " 2000 ")],
            iozone("Card B (Samsung)", " 4000 "),
            "sequential write",
        ),
        ([h2testw("SanDisk:", "5,00"), h2testw("Run 2:", "6,00")], h2testw("Kingston:", "9,00"), "sequential write"),
        ([fio(a, 100), fio(a, 200)], fio(b, 400), "random write"),
        ([json(a, 100), json(a, 200)], json(b, 400), "random write"),
    ] {
        let one = read("x", &same[0]).unwrap();
        let base = &one.metrics.iter().find(|m| m.name == name).unwrap().conditions;
        let values = |text: &str| {
            let b = read("x", text).unwrap();
            b.metrics.into_iter().filter(|m| m.name == name && m.conditions.starts_with(base)).collect::<Vec<_>>()
        };
        let together = values(&same.concat());
        assert!(together.len() == 1 && together[0].passes.len() == 2, "{together:?}");
        let apart = values(&[&same.concat(), &other].map(String::as_str).concat());
        assert_eq!(apart.iter().map(|m| m.passes.len()).collect::<Vec<_>>(), [2, 0], "{apart:?}");
        assert!(apart[0].conditions != apart[1].conditions && apart[0].conditions.starts_with(&together[0].conditions), "{apart:?}");
        assert_eq!(apart[0].value, together[0].value);
    }
    // Two orders of one name are two jobs.
    let two = format!("{}{}", fio(a, 100), fio(a, 200).replace("rw=randwrite", "rw=write"));
    let b = read("x", &two).unwrap();
    assert_eq!((value(&b, "random write", "4 KiB, depth 1"), value(&b, "sequential write", "4 KiB, depth 1")), (100.0, 200.0));
}

/// Behind what a mail or a logger puts in front of each line, every program is read as it is without.
#[test]
fn what_stands_in_front_of_lines_comes_off() {
    for entry in std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/foreign")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let text = sample(&name);
        let plain = read(&name, &text).unwrap();
        for front in ["> ", "> > ", "Feb  3 10:00:01 pi bench[222]: ", "[12:01:33] "] {
            let behind: String = text.lines().map(|l| format!("{front}{l}\n")).collect();
            let b = read(&name, &behind).unwrap_or_else(|e| panic!("{name}, {front}: {e}"));
            assert_eq!((b.tool, b.metrics, b.flags), (plain.tool, plain.metrics.clone(), plain.flags.clone()), "{name}, {front}");
        }
    }
}

/// One file with what several programs printed: all figures of each.
#[test]
fn several_programs_in_one_file() {
    let files = ["dd.txt", "hdparm.txt", "f3.txt", "iozone.txt", "fio.txt", "h2testw-german.txt", "crystaldiskmark-8.txt"];
    let all = read("x", &files.map(sample).join("\n")).unwrap();
    let mut count = 0;
    for file in files {
        let b = read(file, &sample(file)).unwrap();
        count += b.metrics.len();
        let missing = b.metrics.iter().find(|m| !all.metrics.contains(m));
        assert!(missing.is_none(), "{file}: {missing:?}\n{all:#?}");
        assert!(all.version.as_deref().is_some_and(|v| v.contains(b.version.as_deref().unwrap_or(b.tool))), "{:?}", all.version);
    }
    assert_eq!((all.tool, all.metrics.len()), ("several programs", count));
    let json = read("x", &format!("{}\n{}", sample("dd.txt"), sample("fio.json"))).unwrap();
    assert_eq!(json.metrics.len(), ["dd.txt", "fio.json"].map(|f| read(f, &sample(f)).unwrap().metrics.len()).iter().sum::<usize>());
    // What cannot be read of one of them is said.
    let cut = read("x", &format!("{}\nCrystalDiskMark 8.0.4\n", sample("hdparm.txt"))).unwrap();
    assert!(
        cut.tool == "hdparm" && cut.notes.iter().any(|n| n.starts_with("left out: CrystalDiskMark printed no figures")),
        "{:?}",
        cut.notes
    );
}

/// A cut file gives what it holds or says that it is cut; never a figure that the whole one has not.
#[test]
fn cut_files_make_nothing_up() {
    for entry in std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/foreign")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let text = sample(&name);
        let whole = read(&name, &text).unwrap();
        let names: Vec<_> = whole.metrics.iter().map(|m| (&m.name, &m.conditions)).collect();
        let lines: Vec<&str> = text.lines().collect();
        for n in 0..lines.len() {
            if let Ok(b) = read(&name, &(lines[..n].join("\n") + "\n")) {
                let strange = b.metrics.iter().find(|m| !names.contains(&(&m.name, &m.conditions)));
                assert!(strange.is_none(), "{name}, {n} lines: {strange:?}");
            }
        }
    }
}

/// Figures of published files, as they stand in them (the file is the source).
#[test]
fn published_files_are_read() {
    for (file, tool, name, conditions, want) in [
        ("agnostics/amazon-basics-64gb-queue-on.log", "agnostics", "random writes a second", "4 KiB", 1480.0),
        ("agnostics/amazon-basics-64gb-queue-on.log", "agnostics", "sequential write", "4 MiB", 74_706.0 * 1.024),
        ("agnostics/bsimmo-2021.log", "agnostics", "sequential write", "512 KiB", 11_603.0 * 1.024),
        ("agnostics/intenso-32-fail.log", "agnostics", "random writes a second", "4 KiB", 213.0),
        ("mfst/made-up-state-genuine.json", "mfst", "rounds to the first error", "whole card", 408.0),
        ("mfst/made-up-state-genuine.json", "mfst", "sequential write", "120 KiB", 31_201.117_25),
        ("mfst/made-up-stats.csv", "mfst", "bad sectors", "whole card", 3.0),
        ("p2-usd/lexar-mssd0-64gb.json", "uSD-FS", "raw write", "32 KiB, SPI at 22.5 MHz", 1949.0),
        ("cmd56/sandisk-industrial.sdmon.txt", "sdmon", "health used", "", 1.0),
        ("cmd56/transcend-230i-32.sdmon.txt", "sdmon", "spare blocks", "", 51.0),
        ("cmd56/adata-iudd33k-64.sdmon.txt", "sdmon", "life remaining", "", 100.0),
        ("cmd56/swissbit-s56u.sdmon.txt", "sdmon", "life remaining", "", 99.0),
        ("cmd56/swissbit-s56u.sdmon.txt", "sdmon", "erases in all", "", 2230.0),
        ("cmd56/swissbit-s56u.sdmon.txt", "sdmon", "power cycles", "", 19.0),
        // The later of two readings.
        ("cmd56/adata-iudd33k-64.sdmon.txt", "sdmon", "power cycles", "", 8.0),
        ("cmd56/sandisk-2021-04.sdmon.txt", "sdmon", "health used", "", 1.0),
        ("cmd56/sandisk-2021-04.sdmon.txt", "sdmon", "power cycles", "", 25.0),
        ("fio/edge-lab-sd-randrw-4k.txt", "fio", "random write (mixed)", "4 KiB, depth 256, 4 jobs", 3518.0),
        ("fio/edge-lab-sd-randrw-4k.txt", "fio", "random read (mixed), 99 % of the times", "4 KiB, depth 256, 4 jobs", 760_000.0),
        ("fio/sige5-emmc-64-table.txt", "fio", "random write", "16 MiB", 145_210.0 * 1.024),
        ("fio/xpi-emmc-8-iozone-table.txt", "iozone", "random read", "4 KiB", 17_150.0),
    ] {
        let Some(path) = published("published results of other benchmarks", file) else { return };
        let b = read(file, &std::fs::read_to_string(path).unwrap()).unwrap_or_else(|e| panic!("{file}: {e}"));
        let got = value(&b, name, conditions);
        assert!(b.tool == tool && (got / want - 1.0).abs() < 1e-3, "{file}: {name}: {got}, not {want}");
    }
    // The program's own bug: its verdicts say 0 IOPS.
    let text = |file: &str| std::fs::read_to_string(published("published results of other benchmarks", file).unwrap()).unwrap();
    assert_eq!(read("v015", &text("agnostics/v015-false-fail.log")).unwrap().flags.len(), 2);
    // A life of 453 % is none; where nothing was read, that is said.
    let b = read("apacer", &text("cmd56/apacer-msd32gca-2022.sdmon.txt")).unwrap();
    assert!(b.flags[0].contains("453 % cannot be") && !b.metrics.iter().any(|m| m.name == "life remaining"), "{b:?}");
    // Of blocks that are none, nothing is taken for a figure.
    for (file, says) in [
        ("open-failed-not-root", "device open failed"),
        ("apacer-slc-garbage", "different bytes (0x0 0x4; 0xa4 0x81)"),
        ("viofo-64-longsys-misread", "Longsys's"),
        ("sandisk-industrial-64-ff", "nothing but ones"),
    ] {
        let why = read("x", &text(&format!("cmd56/{file}.sdmon.txt"))).unwrap_err();
        assert!(why.contains(says), "{file}: {why}");
    }
}

/// Every published file of these kinds is read or refused with a reason of its own.
#[test]
fn every_published_file_has_an_answer() {
    let mut read_well = 0;
    for (dir, end, least) in [("agnostics", "log", 19), ("p2-usd", "json", 15), ("cmd56", "sdmon.txt", 10), ("fio", "txt", 5)] {
        let Some(dir) = published("published results of other benchmarks", dir) else { return };
        let mut good = 0;
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_string();
            if !name.ends_with(end) {
                continue;
            }
            match read(&name, &String::from_utf8_lossy(&std::fs::read(&path).unwrap())) {
                Ok(b) => {
                    assert!(b.metrics.iter().all(|m| m.value.is_finite() && !m.unit.is_empty()), "{name}");
                    good += 1;
                }
                Err(why) => assert!(why.len() > 20 && !why.contains("nothing to read"), "{name}: {why}"),
            }
        }
        assert!(good >= least, "{end}: {good} of at least {least}");
        read_well += good;
    }
    assert!(read_well > 40);
}

/// `compare` and `survey add` read what `infer` reads.
#[test]
fn all_commands_read_them() {
    let dir = tempfile::tempdir().unwrap();
    let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/foreign");
    let run = |words: &[&str]| {
        let out = Command::new(env!("CARGO_BIN_EXE_nandscope")).args(words).current_dir(&home).env("HOME", dir.path()).output().unwrap();
        (String::from_utf8(out.stdout).unwrap(), String::from_utf8(out.stderr).unwrap(), out.status.code().unwrap())
    };
    let (text, why, code) = run(&["compare", "crystaldiskmark-6.txt", "crystaldiskmark-8.txt"]);
    assert!(code == 0 && text.contains("random read, 4 KiB, depth 32, CrystalDiskMark"), "{text}{why}");
    let survey = dir.path().join("s");
    let add = [
        "survey",
        "--dir",
        survey.to_str().unwrap(),
        "add",
        "h2testw.txt",
        "pibenchmarks.txt",
        "uflip-RES.csv",
        "job_clat.1.log",
        "crystaldiskmark-3.txt",
    ];
    let (text, why, code) = run(&add);
    assert!(code == 0 && text.contains("5 added, 0 already there, 0 skipped"), "{text}{why}");
    let (text, why, code) = run(&["infer", "h2testw.txt"]);
    assert!(code == 6 && text.contains("counterfeit or damaged"), "{text}{why}");
    // What a card did not keep is no lack of a verdict.
    let lost = sample("f3.txt").replace("Data LOST: 0.00 Byte (0 sectors)", "Data LOST: 1.00 GB (2097152 sectors)");
    std::fs::write(dir.path().join("lost.txt"), lost).unwrap();
    let (text, why, code) = run(&["infer", dir.path().join("lost.txt").to_str().unwrap()]);
    assert!(code == 7 && text.contains("did not come back"), "{text}{why}");
    std::fs::write(dir.path().join("twice.txt"), std::fs::read_to_string(dir.path().join("lost.txt")).unwrap() + &sample("f3.txt"))
        .unwrap();
    let (text, why, code) = run(&["infer", dir.path().join("twice.txt").to_str().unwrap()]);
    assert!(code == 7 && text.contains("did not come back"), "{text}{why}");
    // What came back as other data is the sign of a wraparound, by whichever program.
    let wrapped = sample("f3.txt").replace("Overwritten: 0.00 Byte (0 sectors)", "Overwritten: 1.00 GB (2097152 sectors)");
    assert!(wrapped != sample("f3.txt"));
    std::fs::write(dir.path().join("wrapped.txt"), wrapped.replace("LOST: 0.00 Byte (0 sectors)", "LOST: 1.00 GB (2097152 sectors)"))
        .unwrap();
    let (text, why, code) = run(&["infer", dir.path().join("wrapped.txt").to_str().unwrap()]);
    assert!(code == 6 && text.contains("wraparound"), "{text}{why}");
    // What is compressed is named so, and left out among others.
    let packed = dir.path().join("r.json.gz");
    std::fs::write(&packed, [0x1f, 0x8b, 8, 0, 0, 0, 0, 0]).unwrap();
    let packed = packed.to_str().unwrap();
    for words in [&["infer", packed][..], &["report", packed], &["compare", "f3.txt", packed]] {
        let (_, why, _) = run(words);
        assert!(why.contains("compressed (gzip)") && why.contains("gunzip") && why.len() < 400, "{words:?}: {why}");
    }
}

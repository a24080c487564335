//! Published logs of real cards, and logs of random ones: what is said of them is right, or nothing is said.
//!
//! The logs are others' and lie beside the project (`../shared/published`); each file's header says where it comes from. Where they
//! are not there, the tests that need them say so. The answers of all of them are in `docs/published.md`, which `NANDSCOPE_WRITE=1 cargo test --test published`
//! writes anew.

#[path = "published/adversary.rs"]
mod adversary;
#[path = "published/cards.rs"]
mod cards;
#[path = "published/forum.rs"]
mod forum;
#[path = "published/hostile.rs"]
mod hostile;
#[path = "published/page.rs"]
mod page;
#[path = "published/score.rs"]
mod score;
#[path = "common/shared.rs"]
mod shared;
#[path = "common/skip.rs"]
mod skip;

use cards::{Dice, Kind, Reads, Shown, Writes};
use nandscope::finding::{Finding, Findings, Quantity};
use nandscope::infer::tables::infer;
use nandscope::samples::import::{AlignTest, Tables, cards, read};
use nandscope::units::Bytes;
use score::{SURE, Score, answer};
use shared::published;

/// The folders of logs, and what lies in them that nobody who knows cards has read.
const FOLDERS: [&str; 4] = ["flashbench", "wirenboard", "sdfat", "registers"];
const UNREAD: [&str; 2] = ["codesec-sandisk-sl16g_align", "issue13-h3po_align"];

/// "wirenboard/result_1": name and bytes of every log; none where they are not at hand, which it says.
fn logs(what: &str) -> Option<Vec<(String, Vec<u8>)>> {
    let mut out = vec![];
    for folder in FOLDERS {
        for e in std::fs::read_dir(published(what, folder)?).unwrap() {
            let path = e.unwrap().path();
            let stem = path.file_stem().unwrap().to_string_lossy().into_owned();
            if path.extension().is_some_and(|x| x == "txt") && !UNREAD.contains(&stem.as_str()) {
                out.push((format!("{folder}/{stem}"), std::fs::read(&path).unwrap()));
            }
        }
    }
    out.sort();
    assert!(out.len() >= 50, "../shared/published is not complete: {} logs", out.len());
    Some(out)
}

fn of(logs: &[(String, Vec<u8>)], names: &[&str]) -> Findings {
    let files: Vec<(String, Vec<u8>)> = logs.iter().filter(|l| names.contains(&l.0.as_str())).cloned().collect();
    assert_eq!(files.len(), names.len(), "{names:?}");
    infer(&read(&files).unwrap())
}

fn infer_text(text: &str) -> Findings {
    infer(&read(&[("log", text)]).unwrap())
}

/// What somebody who knows cards reads from each log, written from the raw rows while the inference was made; see the random cards for what it was not made on. Several values: any of them
/// may be meant. "-": nothing can be read. ">=": no limit shows up to there.
const EXPERT: &str = "
flashbench/arnd-readme_align                erase_block 4M      page 8K         access_unit 16K
flashbench/arnd-readme_openau               open_aus_linear 2
flashbench/gist-shuhaowu-a_openau           open_aus_linear -
flashbench/issue16-mpeter50_align           erase_block -       page -          access_unit -
flashbench/kingston-sa04g-2013_align        erase_block 4M?     page 16K        access_unit 16K
flashbench/kingston-sa04g-2013_findfat      fat_zone 0
flashbench/kingston-sa04g-2013_openau-linear    open_aus_linear 3
flashbench/kingston-sa04g-2013_openau-random    open_aus_random 3
flashbench/patriot-xporter-xt-16g_align     erase_block 8M      page -          access_unit -
flashbench/simmonds-sandisk-4g_align        erase_block 512K?   page 4K?,8K?    access_unit 8K?
wirenboard/result_1     erase_block 4M,8M   page -   access_unit -   open_aus_linear 4   open_aus_random 4,0
wirenboard/result_1_2   erase_block 4M      page -   access_unit -   open_aus_linear 4   open_aus_random 4,0   fat_zone 8M
wirenboard/result_1_3   erase_block 4M      page -   access_unit -
wirenboard/result_3     erase_block 4M      page 16K access_unit 16K open_aus_linear >=5  fat_zone 0
wirenboard/result_3_2   erase_block 4M      page 16K access_unit 16K open_aus_linear 6    fat_zone 0
wirenboard/result_3_3   erase_block 4M      page 16K access_unit 16K open_aus_linear 6    open_aus_random 6     fat_zone 0
wirenboard/result_3_4   erase_block 4M      page 16K access_unit 16K open_aus_linear 6    fat_zone 0
wirenboard/result_3_5   open_aus_linear >=6 open_aus_random >=2
wirenboard/result_5     erase_block 4M      page 16K access_unit 16K
wirenboard/result_5_2   erase_block 4M      page 16K access_unit 16K open_aus_linear 3    open_aus_random 3     fat_zone 0
wirenboard/result_7     erase_block 4M      page 8K  access_unit 8K  open_aus_linear 3    open_aus_random 3     fat_zone 8M
wirenboard/result_9     erase_block 4M      page -   access_unit -   open_aus_linear 4    open_aus_random 4,0   fat_zone 8M
wirenboard/result_11    erase_block 4M      page 4K,16K  access_unit 16K open_aus_linear 3 open_aus_random 3    fat_zone 0
wirenboard/result_13    erase_block 4M      page 4K,16K  access_unit 16K
wirenboard/result_13_2  erase_block 4M      page 4K,16K  access_unit 16K open_aus_linear 3 open_aus_random 3    fat_zone 0?,8M?
wirenboard/result_15    erase_block 4M      page 4K,16K  access_unit 16K open_aus_linear 3 open_aus_random >=3  fat_zone 8M
wirenboard/result_15_1  erase_block 4M      page 4K,16K  access_unit 16K open_aus_linear 3 open_aus_random 3    fat_zone 8M
wirenboard/result_15_2  erase_block 4M      page 4K,16K  access_unit 16K
wirenboard/result_19    erase_block 4M      page 16K access_unit 16K open_aus_linear >=7  open_aus_random >=6,6 fat_zone 0?
wirenboard/result_19_2  erase_block 4M      page 16K access_unit 16K
wirenboard/result_21    erase_block 4M      page 4K,16K  access_unit 16K open_aus_linear 3 open_aus_random 3    fat_zone 8M
wirenboard/result_27    erase_block 4M      page -   access_unit -   open_aus_linear >=7  open_aus_random 0     fat_zone 8M
wirenboard/result_29_1  erase_block -       page 16K access_unit 16K open_aus_linear >=7  open_aus_random >=7   fat_zone 0
wirenboard/result_29_2  erase_block -       page 16K access_unit 16K open_aus_linear >=7  open_aus_random >=7   fat_zone 0
wirenboard/result_29_3  erase_block -       page 16K access_unit 16K open_aus_linear >=7  open_aus_random >=7   fat_zone 0
";

/// One reading: values that agree with it, a bound, and whether it is only a likelihood.
struct Reading {
    log: &'static str,
    quantity: Quantity,
    text: &'static str,
    values: Vec<f64>,
    bound: Option<f64>,
    weak: bool,
}

fn readings() -> Vec<Reading> {
    let mut out = vec![];
    for line in EXPERT.lines().filter(|l| !l.is_empty()) {
        let words: Vec<&'static str> = line.split_whitespace().collect();
        for pair in words[1..].chunks(2) {
            let quantity = Quantity::ALL.into_iter().find(|q| q.key() == pair[0]).unwrap();
            let number = |w: &str| w.trim_start_matches(">=").trim_end_matches('?').parse::<Bytes>().unwrap().0 as f64;
            let parts: Vec<&str> = pair[1].split(',').filter(|w| *w != "-").collect();
            out.push(Reading {
                log: words[0],
                quantity,
                text: pair[1],
                values: parts.iter().filter(|w| !w.starts_with('>')).map(|w| number(w)).collect(),
                bound: parts.iter().find(|w| w.starts_with('>')).map(|w| number(w)),
                weak: pair[1].contains('?'),
            });
        }
    }
    out
}

/// An answer given for sure that the reading does not allow.
fn contradicts(f: &Finding, r: &Reading) -> bool {
    if f.confidence < SURE {
        return false;
    }
    let most = r.values.iter().copied().fold(r.bound.unwrap_or(0.0), f64::max);
    match (f.number(), f.at_least.map(|b| b.0)) {
        (Some(v), _) => !r.values.contains(&v),
        (None, Some(b)) => b > most,
        _ => false,
    }
}

fn decided(f: &Finding, r: &Reading) -> bool {
    match r.bound {
        Some(bound) => f.at_least.is_some_and(|b| b.0 >= bound - 1.0) || f.number().is_some_and(|v| r.values.contains(&v)),
        None => f.number().is_some_and(|v| r.values.contains(&v)),
    }
}

#[test]
fn published_logs_are_read_as_an_expert_reads_them() {
    let Some(logs) = logs("published logs are read as an expert reads them") else { return };
    let all: Vec<(String, Findings)> = logs.iter().map(|l| (l.0.clone(), infer(&read(&[(&l.0, &l.1)]).unwrap()))).collect();
    let (mut can, mut does, mut surely) = (0, 0, 0);
    for r in readings() {
        let findings = &all.iter().find(|a| a.0 == r.log).unwrap().1;
        let f = findings.get(r.quantity).unwrap_or_else(|| panic!("{}: no {}", r.log, r.quantity.key()));
        println!("{:<42} {:<16} {:>8} | {}", r.log, r.quantity.key(), r.text, answer(f));
        assert!(!contradicts(f, &r), "{}: {} read as {} is {f:?}", r.log, r.quantity.key(), r.text);
        if !r.values.is_empty() && !r.weak || r.bound.is_some() {
            can += 1;
            does += decided(f, &r) as u32;
            surely += (decided(f, &r) && f.confidence >= SURE) as u32;
        }
    }
    println!("decided {does} of {can}, {surely} of them for sure");
    assert!(does * 10 >= can * 9, "only {does} of {can} readable quantities were decided");
}

/// Runs of one card: alone they may be undecided, but never say different things; together they say what an expert reads.
#[test]
fn runs_of_one_card_get_one_answer() {
    let Some(logs) = logs("runs of one card get one answer") else { return };
    let same: [&[&str]; 7] = [
        &["wirenboard/result_1", "wirenboard/result_1_2", "wirenboard/result_1_3"],
        &["wirenboard/result_3", "wirenboard/result_3_2", "wirenboard/result_3_3", "wirenboard/result_3_4", "wirenboard/result_3_5"],
        &["wirenboard/result_5", "wirenboard/result_5_2"],
        &["wirenboard/result_13", "wirenboard/result_13_2"],
        &["wirenboard/result_15", "wirenboard/result_15_1", "wirenboard/result_15_2"],
        &["wirenboard/result_19", "wirenboard/result_19_2"],
        &["wirenboard/result_29_1", "wirenboard/result_29_2", "wirenboard/result_29_3"],
    ];
    let readings = readings();
    for names in same {
        let single: Vec<Findings> = names.iter().map(|n| of(&logs, &[n])).collect();
        let pooled = of(&logs, names);
        for q in Quantity::ALL.into_iter().filter(|&q| q != Quantity::CloseCostMs) {
            let sure: Vec<f64> = single.iter().filter_map(|f| f.value(q, SURE)).collect();
            assert!(sure.iter().all(|v| *v == sure[0]), "{names:?} {}: {sure:?}", q.key());
            // A value above the bound of another run.
            let bounds = single.iter().filter_map(|f| f.get(q)).filter(|f| f.confidence >= SURE).filter_map(|f| f.at_least);
            assert!(sure.iter().all(|v| bounds.clone().all(|b| b.0 <= *v)), "{names:?} {}", q.key());
            if let Some(f) = pooled.get(q) {
                println!("{:<24} {:<16} {}", names[0], q.key(), answer(f));
                for r in readings.iter().filter(|r| r.quantity == q && names.contains(&r.log) && r.bound.is_none()) {
                    assert!(!contradicts(f, r), "{names:?} {}: {f:?}", q.key());
                    assert!(r.values.is_empty() || r.weak || decided(f, r), "pooled {names:?} {}: {f:?}", q.key());
                }
            }
        }
    }
}

/// The CID in a log of a card on a USB reader is of another card: it parts nothing. Sizes do.
#[test]
fn files_are_parted_by_what_they_say() {
    let Some(logs) = logs("files are parted by what they say") else { return };
    let files = |names: &[&str]| logs.iter().filter(|l| names.iter().any(|n| l.0.starts_with(n))).cloned().collect::<Vec<_>>();
    assert_eq!(cards(&files(&["wirenboard/result_3"])).unwrap().len(), 1);
    assert_eq!(cards(&files(&["wirenboard/result_5", "wirenboard/result_15"])).unwrap().len(), 2);
    for log in &logs {
        assert_eq!(cards(std::slice::from_ref(log)).unwrap().len(), 1, "{}", log.0);
    }
}

/// What a shorter log would have held: each run alone, fewer AUs, one number of AUs left out, every second size. Less may be
/// said, nothing else.
#[test]
fn parts_of_logs_say_nothing_else() {
    let Some(logs) = logs("parts of logs say nothing else") else { return };
    let readings = readings();
    let (mut asked, mut answered, mut wrong) = (0, 0, vec![]);
    for (name, bytes) in logs {
        let whole = read(&[(&name, &bytes)]).unwrap();
        let mut parts: Vec<(String, Tables)> = vec![];
        let empty = Tables { align: vec![], open: vec![], fat: vec![], ..whole.clone() };
        for (i, t) in whole.align.iter().enumerate() {
            parts.push((format!("run {i}"), Tables { align: vec![t.clone()], ..empty.clone() }));
            let nameless = AlignTest { device_size: None, rows: t.rows[..t.rows.len() - 2].to_vec(), ..t.clone() };
            parts.push((format!("run {i}, two rows less"), Tables { align: vec![nameless], ..empty.clone() }));
        }
        for (i, t) in whole.fat.iter().enumerate() {
            parts.push((format!("find-FAT {i}"), Tables { fat: vec![t.clone()], ..empty.clone() }));
        }
        for k in 1..=8 {
            let keep = |f: &dyn Fn(u32) -> bool| whole.open.iter().filter(|t| t.n.is_some_and(f)).cloned().collect::<Vec<_>>();
            parts.push((format!("up to {k} AUs"), Tables { open: keep(&|n| n <= k), ..empty.clone() }));
            parts.push((format!("from {k} AUs"), Tables { open: keep(&|n| n >= k), ..empty.clone() }));
            parts.push((format!("without {k} AUs"), Tables { open: keep(&|n| n != k), ..empty.clone() }));
        }
        let mut thin = Tables { open: whole.open.clone(), ..empty.clone() };
        thin.open.iter_mut().for_each(|t| t.rows = t.rows.iter().step_by(2).copied().collect());
        parts.push(("every second size".into(), thin));
        for (what, part) in parts {
            for f in infer(&part).0 {
                if let Some(r) = readings.iter().find(|r| r.log == name && r.quantity == f.quantity) {
                    if contradicts(&f, r) {
                        wrong.push(format!("{name}, {what}: {} read as {} is {}", r.quantity.key(), r.text, answer(&f)));
                    }
                    asked += 1;
                    answered += (f.confidence >= SURE) as u32;
                }
            }
        }
    }
    println!("{answered} of {asked} asked of parts were answered for sure");
    assert!(asked > 500);
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn noise_is_called_noise() {
    let Some(logs) = logs("noise is called noise") else { return };
    let f = of(&logs, &["flashbench/issue16-mpeter50_align"]);
    for q in [Quantity::EraseBlock, Quantity::Page, Quantity::AccessUnit] {
        let f = f.get(q).unwrap();
        assert!(f.value.is_none() && f.at_least.is_none() && f.reason.is_some(), "{f:?}");
    }
    assert!(f.get(Quantity::EraseBlock).unwrap().reason.as_ref().unwrap().contains("noise"));
}

/// Q10, Q11 and Q14: the mail in which the numbers of open AUs were read off by hand.
#[test]
fn the_quirks_thread() {
    let toshiba = "Actually the Toshiba one seems to have 7 AUs if I interpret this correctly.
# ./flashbench -O -0 6  -b 512 /dev/block/mmcblk0p9\n4MiB    5.91M/s\n2MiB    8.84M/s\n1MiB    10.8M/s\n512KiB  13M/s\n256KiB  13.6M/s\n
# ./flashbench -O -0 7  -b 512 /dev/block/mmcblk0p9\n4MiB    6.32M/s\n2MiB    8.63M/s\n1MiB    10.5M/s\n512KiB  13.2M/s\n256KiB  13M/s
^[[A^[[D^[[A128KiB  12.3M/s
# ./flashbench -O -0 8  -b 512 /dev/block/mmcblk0p9\n4MiB    6.65M/s\n2MiB    7.02M/s\n1MiB    6.36M/s\n512KiB  3.17M/s\n256KiB  1.53M/s\n";
    let f = infer_text(toshiba);
    assert_eq!(f.value(Quantity::OpenAusLinear, SURE), Some(7.0), "{f:?}");
    let sandisk = "# ./flashbench -O -0 20  -b 512 /dev/block/mmcblk0p9
4MiB    11.3M/s\n2MiB    12.8M/s\n1MiB    9.87M/s\n512KiB  9.97M/s\n256KiB  9.13M/s\n128KiB  8.05M/s
# ./flashbench -O -0 50  -b 512 /dev/block/mmcblk0p9\n4MiB    7.19M/s
# ./flashbench -O -0 2  -b 512 /dev/block/mmcblk0p9
# ./flashbench -O -0 22  -b 512 /dev/block/mmcblk0p9
4MiB    11.6M/s\n2MiB    12.3M/s\n1MiB    5.13M/s\n512KiB  2.57M/s\n256KiB  1.59M/s\n128KiB  1.16M/s\n64KiB   776K/s
# ./flashbench -O -0 21  -b 512 /dev/block/mmcblk0p9\n4MiB    11.2M/s\n2MiB    12.4M/s\n1MiB    4.65M/s\n512KiB  1.95M/s\n256KiB  955K/s\n";
    let f = infer_text(sandisk);
    assert_eq!(f.value(Quantity::OpenAusLinear, 0.7), Some(20.0), "{f:?}");
    let one = "# ./flashbench -O -0 1  -b 512 /dev/block/mmcblk0p9
4MiB    6.42M/s\n2MiB    7.79M/s\n1MiB    9.22M/s\n512KiB  10M/s\n256KiB  9.94M/s\n128KiB  10.1M/s\n64KiB   9.68M/s\n32KiB   8.5M/s
16KiB   3.65M/s\n8KiB    1.73M/s\n4KiB    838K/s\n2KiB    417K/s\n";
    let f = infer_text(one);
    assert_eq!(f.value(Quantity::WriteUnit, 0.7), Some(32768.0), "{f:?}");
    // Two cards in one mail: eight are slow and twenty are fast. Neither limit may be given.
    let both = infer_text(&format!("{toshiba}{sandisk}"));
    let f = both.get(Quantity::OpenAusLinear).unwrap();
    assert!(f.value.is_none() || f.confidence < SURE, "{f:?}");
}

/// Damage of every kind: cut anywhere, bytes flipped, escapes and prompts in between. Never a panic, and what is left
/// intact is still read.
#[test]
fn damaged_logs_do_no_harm() {
    let Some(logs) = logs("damaged logs do no harm") else { return };
    let mut d = Dice::new(7);
    let all = logs;
    for (name, bytes) in all.iter().filter(|l| l.1.len() < 4000) {
        for cut in 0..bytes.len() {
            drop(read(&[(name, &bytes[..cut])]));
        }
    }
    for (name, bytes) in &all {
        for round in 0..4 {
            let mut b = bytes.clone();
            match round {
                0 => b.truncate(d.below(b.len())),
                1 => (0..1 + b.len() / 50).for_each(|_| {
                    let i = d.below(b.len());
                    b[i] = (d.unit() * 256.0) as u8;
                }),
                2 => (0..20).for_each(|_| {
                    let i = d.below(b.len());
                    let junk: &[u8] = d.pick(&[
                        b"\x1b[31m",
                        b"^C",
                        b"\r",
                        b"^[[A",
                        b"\x08\x08",
                        b"&micro;",
                        b"\xff\xfe",
                        b"<b>",
                        b"\n> ",
                        b"99999999999999999999",
                    ]);
                    b.splice(i..i, junk.iter().copied());
                }),
                _ => b = (0..b.len()).map(|_| b[d.below(b.len())]).collect(),
            }
            if let Ok(t) = read(&[(name, &b)]) {
                let f = infer(&t);
                assert!(f.0.iter().all(|f| f.confidence.is_finite() && (0.0..=1.0).contains(&f.confidence)), "{name}");
            }
        }
    }
}

/// The same log, dressed as mails, terminals and web pages dress it, gives the same tables.
#[test]
fn dressed_logs_read_the_same() {
    let Some(logs) = logs("dressed logs read the same") else { return };
    let name = "wirenboard/result_5_2";
    let (_, bytes) = logs.into_iter().find(|l| l.0 == name).unwrap();
    let text = String::from_utf8(bytes).unwrap();
    let text = text.split_once("# ---- raw ----\n").unwrap().1;
    let plain = read(&[(name, text)]).unwrap();
    let strip = |t: &Tables| {
        let align: Vec<Vec<(u64, f64)>> = t.align.iter().map(|a| a.rows.iter().map(|r| (r.align, r.diff)).collect()).collect();
        let open: Vec<_> = t.open.iter().map(|o| (o.n, o.random, o.rows.iter().map(|r| (r.size, r.rate)).collect::<Vec<_>>())).collect();
        let fat: Vec<_> = t.fat.iter().map(|f| f.rows.iter().map(|r| r.rates.clone()).collect::<Vec<_>>()).collect();
        (align, open, fat)
    };
    assert!(plain.align.len() == 3 && plain.open.len() == 11 && plain.fat.len() == 3);
    let dressed = [
        text.replace('\n', "\r\n"),
        text.lines().map(|l| format!("> > {l}\n")).collect(),
        text.replace('\t', "    ").replace('µ', "u"),
        text.replace('µ', "Âµ"),
        text.replace('µ', "&micro;").replace('\t', "&nbsp;"),
        text.lines().map(|l| format!("\u{1b}[0m{l}\u{1b}[K\n")).collect(),
        text.lines().map(|l| if l.starts_with("align") { format!("{}\n", l.replace('.', ",")) } else { format!("{l}\n") }).collect(),
        format!("# author_erase_block: 512KiB\n# flashbench says AU=9 random\n# ---- raw ----\n{text}"),
    ];
    for t in dressed {
        assert_eq!(strip(&read(&[(name, &t)]).unwrap()), strip(&plain), "{}", &t[..200]);
    }
    // Latin-1: one byte a letter.
    let latin: Vec<u8> = text.chars().map(|c| if (c as u32) < 256 { c as u8 } else { b'?' }).collect();
    assert_eq!(strip(&read(&[(name, &latin)]).unwrap()), strip(&plain));
}

/// Numbers in the published logs are printed as flashbench prints them, and read back to the same.
#[test]
fn published_numbers_survive_a_round_trip() {
    let Some(logs) = logs("published numbers survive a round trip") else { return };
    use nandscope::flashbench::format;
    let mut seen = 0;
    for (name, bytes) in logs {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let text = text.split_once("# ---- raw ----\n").unwrap().1;
        for line in text.lines().filter(|l| l.starts_with("align ")) {
            for word in line.split_whitespace().filter(|w| w.ends_with("µs") || w.ends_with("ms") || w.ends_with("ns")) {
                let p = format::parse_time(word).unwrap();
                assert_eq!(format::time(p.value.round() as i64), word, "{name}: {line}");
                seen += 1;
            }
        }
        for line in text.lines().filter(|l| l.contains("iB ") && l.contains("/s")) {
            for word in line.split_whitespace().skip(1).filter(|w| w.ends_with("/s")) {
                let p = format::parse_rate(word).unwrap();
                assert_eq!(format::rate(p.value), word, "{name}: {line}");
                seen += 1;
            }
        }
    }
    assert!(seen > 5000, "{seen}");
}

/// Logs of random cards: of what is said for sure at most one in forty is wrong, and at least four fifths of what shows is
/// said. `NANDSCOPE_CARDS=5000` makes more of them.
#[test]
fn random_cards_are_read_right() {
    let many: u64 = std::env::var("NANDSCOPE_CARDS").ok().and_then(|n| n.parse().ok()).unwrap_or(150);
    let mut score = Score::default();
    for seed in 0..many {
        let mut d = Dice::new(1000 + seed);
        let card = Reads::new(&mut d);
        let f = infer_text(&card.log(&mut d));
        score.add("erase block", seed, f.get(Quantity::EraseBlock).unwrap(), card.erase_block.map(|v| v as f64), card.shows_block());
        score.add("page", seed, f.get(Quantity::Page).unwrap(), card.page.map(|v| v as f64), card.shows_page());
        // Planes whose cost drowns leave the page as the unit.
        let unit = if card.shows_planes() {
            card.access_unit
        } else {
            f.value(Quantity::AccessUnit, 0.0).map(|v| v as u64).filter(|v| Some(*v) == card.page).or(card.access_unit)
        };
        score.add("multi-plane page", seed, f.get(Quantity::AccessUnit).unwrap(), unit.map(|v| v as f64), card.shows_planes());
        let card = Writes::new(&mut d);
        let f = infer_text(&card.log(&mut d));
        let q = if card.random { Quantity::OpenAusRandom } else { Quantity::OpenAusLinear };
        let Some(f) = f.get(q) else { continue };
        let name = match card.kind {
            Kind::Factor(_) => "open AUs, factor",
            Kind::Never => "open AUs, never",
            _ => "open AUs, cliff",
        };
        match card.shows() {
            Shown::Limit(k) => score.add(name, seed, f, Some(k as f64), true),
            Shown::AtLeast(k) => score.bound(name, seed, f, card.limit, k),
            Shown::Nothing => score.add(name, seed, f, Some(card.limit as f64), false),
        }
    }
    println!("{}", score.table());
    let all = score.all();
    assert!(all.wrong * 40 <= all.sure, "{} of {} sure answers are wrong", all.wrong, all.sure);
    assert!(all.found * 5 >= all.shown * 4, "only {} of {} that show were decided", all.found, all.shown);
}

/// `NANDSCOPE_SEED=117 cargo test --test published one_random_card -- --nocapture --ignored` shows one card of the test above.
#[test]
#[ignore = "prints one random card's logs"]
fn one_random_card() {
    let seed: u64 = std::env::var("NANDSCOPE_SEED").ok().and_then(|n| n.parse().ok()).unwrap_or(0);
    let mut d = Dice::new(1000 + seed);
    let card = Reads::new(&mut d);
    let reads = card.log(&mut d);
    println!("capacity {} block {:?} page {:?} unit {:?}\n{reads}", card.capacity, card.erase_block, card.page, card.access_unit);
    println!("{:#?}", infer_text(&reads));
    let card = Writes::new(&mut d);
    let writes = card.log(&mut d);
    println!("limit {} {:?} random {}\n{writes}\n{:#?}", card.limit, card.kind, card.random, infer_text(&writes));
}
/// `NANDSCOPE_LOG=result_29 cargo test --test published one_log -- --nocapture --ignored` tells all that is said of some logs.
#[test]
#[ignore = "prints the findings of published logs"]
fn one_log() {
    let Some(logs) = logs("one log") else { return };
    let part = std::env::var("NANDSCOPE_LOG").unwrap_or_default();
    for (name, bytes) in logs.iter().filter(|l| l.0.contains(&part)) {
        let tables = read(&[(name, bytes)]).unwrap();
        println!("{name}: {}; {} lines ignored {:?}", tables.summary(), tables.ignored_lines, tables.notes);
        for f in infer(&tables).0 {
            println!("  {:<16} {} {}", f.quantity.key(), answer(&f), f.reason.as_deref().unwrap_or(""));
            f.evidence.iter().chain(&f.caveats).for_each(|e| println!("      {e}"));
        }
    }
}

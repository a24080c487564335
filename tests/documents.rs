//! The five documents that the program was made after, as they stand, and what mail programs and people make of them: every card
//! is found, every figure stands at its record size and host, and nothing is made up where a document has none.
//!
//! covers: C6, C8, F5, F6, F16, G1, G2, G5, G7, Q1, Q8, Q10, Q11, Q13, Q14

#[path = "documents/made.rs"]
mod made;
#[path = "common/skip.rs"]
mod skip;

use nandscope::finding::{Findings, Quantity};
use nandscope::infer::tables::apart::apart;
use nandscope::infer::tables::bench::{Figure, figures};
use nandscope::infer::tables::infer;
use nandscope::infer::tables::sides::sides;
use nandscope::samples::import::{Card, ImportError, cards};
use std::path::PathBuf;

const SURE: f64 = 0.8;

/// A stored document; `None`, with a line, where the folder is absent.
fn stored(name: &str) -> Option<String> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../shared/sources").join(name);
    let text = std::fs::read_to_string(&path).ok();
    if text.is_none() {
        skip::skipped(name, "the stored documents are not here");
    }
    text
}

fn of(text: &str) -> Vec<Card> {
    cards(&[("post.txt", text)]).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

fn said(c: &Card) -> Findings {
    infer(&c.tables)
}

fn sure(c: &Card, q: Quantity) -> Option<f64> {
    said(c).value(q, SURE)
}

/// Whose tables they are, the limit, the write unit.
fn answers(all: &[Card]) -> Vec<(Option<&'static str>, Option<f64>, Option<f64>)> {
    let one = |c: &Card| (c.identity.maker, sure(c, Quantity::OpenAusLinear), sure(c, Quantity::WriteUnit));
    let mut out: Vec<_> = all.iter().map(one).collect();
    out.sort_by_key(|a| a.0);
    out
}

const TOSHIBA: (Option<&str>, Option<f64>, Option<f64>) = (Some("toshiba"), Some(7.0), Some(32768.0));
const SANDISK: (Option<&str>, Option<f64>, Option<f64>) = (Some("sandisk"), Some(20.0), None);

/// The thread in pieces: what stands before the tables, the Toshiba's, the SanDisk's, the Toshiba's of one AU.
fn halves() -> Option<[String; 4]> {
    let text = stored("mmc-quirks-thread.txt")?;
    let (head, rest) = text.split_once("Actually the Toshiba one").unwrap();
    let (tosh, rest) = rest.split_once("The Sandisk one has 20 AUs.").unwrap();
    let (sand, one) = rest.split_once("> However, the drop").unwrap();
    Some([
        head.to_string(),
        format!("Actually the Toshiba one{tosh}"),
        format!("The Sandisk one has 20 AUs.{sand}"),
        format!("> However, the drop{one}"),
    ])
}

#[test]
fn the_thread_as_it_is_holds_two_cards() {
    let Some(text) = stored("mmc-quirks-thread.txt") else { return };
    let all = of(&text);
    assert_eq!(answers(&all), [SANDISK, TOSHIBA]);
    let toshiba = all.iter().find(|c| c.identity.maker == Some("toshiba")).unwrap();
    // Q14: the splitting patch on and off.
    let pairs = sides(&toshiba.tables);
    assert_eq!(pairs.len(), 1, "{pairs:?}");
    assert!(pairs[0].settings[1].as_deref() == Some("page_size = 0") && pairs[0].rows.len() == 11, "{pairs:?}");
    assert!(pairs[0].verdict.starts_with("no difference"), "{}", pairs[0].verdict);
    // Q8: faster with more of them, at the lines that show it.
    let f = said(toshiba);
    let f = f.get(Quantity::OpenAusLinear).unwrap();
    assert!(f.evidence.iter().any(|e| e.contains("6 AUs interleaved are faster than one AU: 256 KiB")), "{f:?}");
    assert!(f.evidence.iter().any(|e| e.contains("13M/s with 7 AUs, 1.53M/s with 8 AUs (post.txt:62, 69)")), "{f:?}");
}

#[test]
fn quoting_wrapping_and_prompts_change_nothing() {
    let Some(text) = stored("mmc-quirks-thread.txt") else { return };
    let lines = |f: &dyn Fn(&str) -> String| text.lines().map(f).collect::<String>();
    let dressed = [
        lines(&|l| format!("> {l}\n")),
        lines(&|l| format!(">> > {l}\r\n")),
        // Commands wrapped before the device, and after the number.
        text.replace("  -b 512 /dev", "  -b 512\n/dev"),
        lines(&|l| format!("> {}\n", l.replace("  -b 512 /dev", "  -b 512\n> /dev"))),
        text.replace("# ./flash", "root@android:/ # ./flash"),
        text.replace("# ./flash", "shell@android:/data $ ./flash"),
        text.replace("# ./flash", "$ sudo ./flash"),
        lines(&|l| format!("{}\n", l.replace("    ", "\t"))),
        // The answer quotes all of it below its own words, and one table once more.
        format!("{text}\n\nOn Sunday the other wrote:\n{}", lines(&|l| format!("> {l}\n"))),
        format!(
            "{text}\nAbout the Sandisk:\n> # ./flashbench -O -0 8  -b 512 /dev/block/mmcblk0p9\n> 4MiB    6.65M/s\n> 2MiB    7.02M/s\n> 1MiB    6.36M/s\n> 512KiB  3.17M/s\n> 256KiB  1.53M/s\n"
        ),
    ];
    for t in dressed {
        assert_eq!(answers(&of(&t)), [SANDISK, TOSHIBA], "{t}");
    }
}

#[test]
fn order_devices_and_makers_may_be_others() {
    let Some([head, tosh, sand, one]) = halves() else { return };
    let other = |s: &str, disk: &str| s.replace("mmcblk0", disk);
    // The second half first; other devices, for one or for both.
    for t in [
        format!("{head}{sand}{tosh}{one}"),
        format!("{sand}{tosh}{one}"),
        format!("{head}{tosh}{}{one}", other(&sand, "mmcblk1")),
        format!("{head}{}{sand}{}", other(&tosh, "mmcblk1"), other(&one, "mmcblk1")),
        format!("{}{}", other(&sand, "sdb"), other(&format!("{tosh}{one}"), "sdc")),
    ] {
        assert_eq!(answers(&of(&t)), [SANDISK, TOSHIBA], "{t}");
    }
    // Other makers' names, in both orders.
    for (a, b) in [("Kingston", "Samsung"), ("Samsung", "Kingston"), ("Transcend", "Lexar")] {
        let name = |s: &str| s.replace("Toshiba", a).replace("toshiba", a).replace("Sandisk", b).replace("sandisk", b);
        let all = of(&name(&format!("{head}{tosh}{sand}{one}")));
        let limit = |maker: &str| {
            let c = all.iter().find(|c| c.identity.maker.is_some_and(|m| m.eq_ignore_ascii_case(maker))).unwrap();
            sure(c, Quantity::OpenAusLinear)
        };
        assert_eq!((all.len(), limit(a), limit(b)), (2, Some(7.0), Some(20.0)));
    }
    // A third card.
    let third = "And the Kingston:\n".to_string()
        + &[(2, ["9.1M/s", "9M/s", "8.9M/s", "8.8M/s"]), (3, ["8.2M/s", "4.1M/s", "1.7M/s", "880K/s"])]
            .map(|(n, r)| {
                format!(
                    "# ./flashbench -O -0 {n} -b 512 /dev/block/mmcblk0p9\n4MiB    9.3M/s\n2MiB {}\n1MiB {}\n512KiB {}\n256KiB {}\n",
                    r[0], r[1], r[2], r[3]
                )
            })
            .concat();
    for t in [format!("{tosh}{sand}{third}{one}"), format!("{third}{sand}{tosh}{one}")] {
        let all = of(&t);
        assert_eq!(all.len(), 3, "{t}");
        let kingston = all.iter().find(|c| c.identity.maker == Some("kingston")).unwrap();
        assert_eq!(said(kingston).value(Quantity::OpenAusLinear, 0.7), Some(2.0), "{:?}", said(kingston));
        assert_eq!(answers(&all)[1..], [SANDISK, TOSHIBA]);
    }
    // Nobody is named, and the device is the same: no number at all, and the way out.
    let bare = |s: &str| s.replace("Toshiba", "first").replace("toshiba", "first").replace("Sandisk", "other").replace("sandisk", "other");
    let all = of(&bare(&format!("{tosh}{sand}{one}")));
    for c in &all {
        let f = said(c);
        let f = f.get(Quantity::OpenAusLinear).unwrap();
        assert!(f.value.is_none() && f.reason.as_ref().unwrap().contains("card 2"), "{f:?}");
    }
    // What is said of another card below the tables does not name theirs.
    for c in of(&format!("{}\n> For the sandisk drive, it's funny\n", bare(&tosh))) {
        assert_eq!(c.identity.maker, None, "{:?}", c.identity);
        assert_eq!(sure(&c, Quantity::OpenAusLinear), Some(7.0));
    }
    // Device names alone keep them apart in one text.
    let all = of(&bare(&format!("{tosh}{}", other(&sand, "mmcblk1"))));
    assert_eq!(all.iter().map(|c| sure(c, Quantity::OpenAusLinear)).collect::<Vec<_>>(), [Some(7.0), Some(20.0)]);
}

#[test]
fn files_of_two_cards_are_kept_apart() {
    let Some([_, tosh, sand, one]) = halves() else { return };
    let tosh = format!("{tosh}{one}");
    let two = |a: &str, b: &str| cards(&[("a.txt", a), ("b.txt", b)]).unwrap();
    assert_eq!(answers(&two(&tosh, &sand)), [SANDISK, TOSHIBA]);
    assert_eq!(answers(&two(&sand, &tosh)), [SANDISK, TOSHIBA]);
    assert_eq!(answers(&two(&tosh, &sand.replace("mmcblk0", "mmcblk1"))), [SANDISK, TOSHIBA]);
    // The same file twice, and the whole beside a part of it, count once.
    let whole = format!("{tosh}{sand}");
    for (a, b) in [(&tosh, &tosh), (&sand, &sand)] {
        let all = two(a, b);
        assert_eq!((all.len(), all[0].tables.open.len()), (1, of(a)[0].tables.open.len()));
    }
    for (a, b) in [(&whole, &sand), (&sand, &whole), (&whole, &whole)] {
        assert_eq!(answers(&two(a, b)), [SANDISK, TOSHIBA]);
    }
    // Two runs of one card whose files say so, or say nothing against it.
    let (low, high) = tosh.split_once("# ./flashbench -O -0 8").unwrap();
    let all = two(low, &format!("The Toshiba again, in another reader\n# ./flashbench -O -0 8{}", high.replace("mmcblk0", "sdb")));
    let f = said(&all[0]);
    let f = f.get(Quantity::OpenAusLinear).unwrap();
    assert!(all.len() == 1 && f.number().or(f.at_least.map(|b| b.0)) == Some(7.0), "{f:?}");
    // Files that name nobody and cannot be of one card are judged by themselves.
    let bare = |s: &str| s.replace("Toshiba", "first").replace("Sandisk", "other").replace("sandisk", "other").replace("toshiba", "first");
    for (a, b) in [(bare(&tosh), bare(&sand)), (bare(&sand), bare(&tosh))] {
        let all = two(&a, &b);
        let parts = apart(&all[0].tables).expect("contradicting files");
        let mut limits: Vec<_> = parts.iter().map(|t| infer(t).value(Quantity::OpenAusLinear, SURE).unwrap()).collect();
        limits.sort_by(f64::total_cmp);
        assert_eq!((all.len(), limits), (1, vec![7.0, 20.0]));
    }
    assert!(apart(&two(&bare(low), &bare(&format!("# ./flashbench -O -0 8{high}")))[0].tables).is_none());
}

/// Card, record size, then kB/s, longest, shortest and mean of writes and of reads (G5).
type Row = (&'static str, u32, [f64; 4], [f64; 4]);
const GREIMAN: [Row; 11] = [
    ("1GB Wintec", 100, [278.40, 84916.0, 84.0, 354.0], [338.89, 2164.0, 80.0, 289.0]),
    ("1GB Swissbit", 100, [265.10, 72608.0, 84.0, 372.0], [338.07, 2172.0, 80.0, 290.0]),
    ("2GB Sandisk", 100, [127.41, 61372.0, 84.0, 778.0], [276.33, 3180.0, 80.0, 356.0]),
    ("4GB Amazon", 100, [165.69, 191320.0, 84.0, 598.0], [290.17, 3108.0, 80.0, 339.0]),
    ("64GB SDXC", 100, [116.69, 192708.0, 84.0, 851.0], [296.70, 2980.0, 80.0, 331.0]),
    ("ATP 1GB", 100, [258.95, 69400.0, 84.0, 380.0], [329.38, 2240.0, 80.0, 298.0]),
    ("1GB Wintec", 512, [407.57, 85756.0, 1152.0, 1250.0], [488.39, 2088.0, 1032.0, 1043.0]),
    ("1GB Swissbit", 512, [384.92, 67700.0, 1160.0, 1324.0], [486.68, 2096.0, 1036.0, 1046.0]),
    ("2GB Sandisk", 512, [152.31, 59452.0, 2132.0, 3355.0], [366.17, 2700.0, 1288.0, 1393.0]),
    ("4GB Amazon", 512, [200.62, 191596.0, 2132.0, 2545.0], [391.00, 3020.0, 1164.0, 1304.0]),
    ("ATP 1GB", 512, [392.32, 62500.0, 1184.0, 1339.0], [469.41, 2164.0, 1072.0, 1085.0]),
];

fn named<'a>(all: &'a [Card], name: &str) -> &'a Card {
    let is = |c: &&Card| c.identity.name().is_some_and(|n| n.to_lowercase().starts_with(&name.to_lowercase()));
    all.iter().find(is).unwrap_or_else(|| panic!("no {name} in {:?}", all.iter().map(|c| c.identity.name()).collect::<Vec<_>>()))
}

fn figure(c: &Card, record: u32, write: bool) -> Figure {
    let of: Vec<Figure> = figures(&c.tables).into_iter().filter(|f| f.record == Some(record) && f.write == write).collect();
    assert_eq!(of.len(), 1, "{record} B of {:?}: {of:?}", c.identity.name());
    of[0].clone()
}

fn eleven_rows(text: &str) {
    let all = of(text);
    assert_eq!(all.len(), 6, "{:?}\n{text}", all.iter().map(|c| c.identity.name()).collect::<Vec<_>>());
    for (name, record, write, read) in GREIMAN {
        for (is_write, want) in [(true, write), (false, read)] {
            let f = figure(named(&all, name), record, is_write);
            assert_eq!([f.speed, f.max, f.min, f.avg], want, "{name}, {record} B\n{text}");
            assert_eq!((f.passes, f.host.as_deref()), (1, Some("Arduino")), "{name}, {record} B");
        }
    }
    let count: usize = all.iter().map(|c| figures(&c.tables).len()).sum();
    assert_eq!(count, 22);
    // G7: the one row whose speed and mean are of two passes is flagged, and no other.
    for c in &all {
        let flagged = said(c).0.iter().any(|f| f.caveats.iter().any(|x| x.contains("not of one pass")));
        assert_eq!(flagged, c.identity.name().unwrap().starts_with("ATP"), "{:?}", c.identity);
    }
}

#[test]
fn the_industrial_cards_have_eleven_rows() {
    let Some(text) = stored("greiman-industrial-cards.txt") else { return };
    eleven_rows(&text);
    // With the line breaks that the forum had.
    let broken = text
        .replace(" card Write ", " card\nWrite ")
        .replace("bytes Write ", "bytes\nWrite ")
        .replace("KB/sec Maximum", "KB/sec\nMaximum")
        .replace("usec Read", "usec\n\nRead");
    eleven_rows(&broken);
    eleven_rows(&broken.replace("usec, Avg", "usec,\nAvg"));
    eleven_rows(&text.lines().map(|l| format!("> {l}\r\n")).collect::<String>());
    // Wrapped where a mail program wraps.
    for width in [60, 72, 80, 100] {
        let mut out = String::new();
        for line in text.lines() {
            let mut column = 0;
            for w in line.split(' ') {
                if column > 0 && column + w.len() > width {
                    out.push('\n');
                    column = 0;
                }
                out += w;
                out.push(' ');
                column += w.len() + 1;
            }
            out.push('\n');
        }
        eleven_rows(&out);
    }
}

#[test]
fn the_microcontroller_page_has_three_cards() {
    let Some(text) = stored("chan-write-performance.txt") else { return };
    let all = of(&text);
    assert_eq!(all.len(), 3, "{:?}", all.iter().map(|c| c.identity.name()).collect::<Vec<_>>());
    for (name, write, read) in [("128MB SDC", 77.0, 328.0), ("512MB SDC", 28.0, 234.0), ("128MB MMC", 182.0, 312.0)] {
        for (is_write, want) in [(true, write), (false, read)] {
            let f = figure(named(&all, name), 2048, is_write);
            assert_eq!((f.speed, f.host.as_deref(), f.passes), (want, Some("ATmega64 @9.2MHz"), 1), "{name}");
            assert!(f.max.is_nan(), "no latency was published");
        }
        let f = said(named(&all, name));
        assert_eq!(f.value(Quantity::FileWriteRate, SURE), Some(write * 1e3));
        assert!(f.get(Quantity::WorstWriteMs).is_none(), "{f:?}");
    }
}

#[test]
fn the_readme_has_one_card_and_the_study_no_figures() {
    if let Some(text) = stored("flashbench-readme.txt") {
        let all = of(&text);
        assert_eq!(all.len(), 1);
        let f = said(&all[0]);
        let value = |q| f.value(q, SURE);
        assert_eq!(value(Quantity::EraseBlock), Some(4194304.0));
        assert_eq!((value(Quantity::Page), value(Quantity::AccessUnit)), (Some(8192.0), Some(16384.0)));
        assert_eq!(value(Quantity::OpenAusLinear), Some(2.0));
        // What was averaged is what is named: 512 and 256 KiB of 4 MiB.
        let cost = f.get(Quantity::CloseCostMs).unwrap();
        assert!(cost.evidence.iter().any(|e| e.contains("256 KiB to 512 KiB (1/16 to 1/8 AU)")), "{cost:?}");
    }
    if let Some(text) = stored("pocketpc-cf-fragmentation.txt") {
        let e = cards(&[("study.txt", text)]).unwrap_err();
        assert!(matches!(&e, ImportError::Prose(file, card) if file == "study.txt" && card.contains("256MB SanDisk CF")), "{e}");
        assert!(!e.to_string().contains('\n') && e.to_string().contains("no figures"), "{e}");
    }
}

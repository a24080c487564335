//! Logs as people paste them into forums, mails, issues and chats, with what an expert reads from each. Written by hand after
//! the way such posts look; the cards are made up, so that no published card can be tuned to.

use super::score::SURE;
use nandscope::finding::{Findings, Quantity};
use nandscope::infer::tables::infer;
use nandscope::samples::import::{cards, read};

fn of(text: &str) -> Findings {
    infer(&read(&[("post", text)]).unwrap())
}

fn value(f: &Findings, q: Quantity) -> Option<f64> {
    f.get(q).and_then(|f| f.number())
}

fn sure(f: &Findings, q: Quantity) -> Option<f64> {
    f.value(q, SURE)
}

const MIB: f64 = 1048576.0;
const KIB: f64 = 1024.0;

/// A mail with quoting and wrapped lines: 8 MiB blocks, pages of 8 KiB; the two largest rows wrap.
#[test]
fn a_quoted_mail_with_wrapped_lines() {
    let mail = "On Tue, 12 Jun 2012, Jan wrote:
> Hi all, new 16 GB class 10 card here:
>
> $ sudo ./flashbench -a /dev/mmcblk0 --blocksize=1024
> align 4294967296        pre 1.02ms      on 1.21ms       post 1.01ms
> diff 195µs
> align 2147483648        pre 1.01ms      on 1.3ms        post 1.03ms
> diff 280µs
> align 1073741824        pre 1.02ms      on 1.29ms       post 1.01ms
> diff 275µs
> align 536870912 pre 1.02ms      on 1.29ms       post 1.02ms     diff 270µs
> align 268435456 pre 1.01ms      on 1.29ms       post 1.02ms     diff 275µs
> align 134217728 pre 1.02ms      on 1.3ms        post 1.01ms     diff 285µs
> align 67108864  pre 1.02ms      on 1.29ms       post 1.02ms     diff 270µs
> align 33554432  pre 1.02ms      on 1.3ms        post 1.02ms     diff 280µs
> align 16777216  pre 1.01ms      on 1.29ms       post 1.02ms     diff 275µs
> align 8388608   pre 1.02ms      on 1.3ms        post 1.01ms     diff 285µs
> align 4194304   pre 1.02ms      on 1.13ms       post 1.02ms     diff 110µs
> align 2097152   pre 1.01ms      on 1.13ms       post 1.02ms     diff 115µs
> align 1048576   pre 1.02ms      on 1.13ms       post 1.02ms     diff 110µs
> align 524288    pre 1.02ms      on 1.13ms       post 1.01ms     diff 115µs
> align 262144    pre 1.01ms      on 1.12ms       post 1.02ms     diff 105µs
> align 131072    pre 1.02ms      on 1.13ms       post 1.02ms     diff 110µs
> align 65536     pre 1.02ms      on 1.13ms       post 1.02ms     diff 110µs
> align 32768     pre 1.02ms      on 1.12ms       post 1.01ms     diff 105µs
> align 16384     pre 1.01ms      on 1.13ms       post 1.02ms     diff 115µs
> align 8192      pre 1.02ms      on 1.13ms       post 1.02ms     diff 110µs
> align 4096      pre 1.02ms      on 1.02ms       post 1.02ms     diff -3021ns
> align 2048      pre 1.02ms      on 1.03ms       post 1.02ms     diff 5.5µs

Looks like 8MB to me.

	Arnd
";
    let f = of(mail);
    assert_eq!(sure(&f, Quantity::EraseBlock), Some(8.0 * MIB), "{f:?}");
    assert_eq!(sure(&f, Quantity::Page), Some(8.0 * KIB), "{f:?}");
}

/// German forum, decimal commas, MB/s; a cliff between 3 and 4.
#[test]
fn decimal_commas_and_another_unit() {
    let post = "Hallo zusammen, hier meine Werte (Billigkarte aus dem Supermarkt):
[code]
# ./flashbench -O --open-au-nr=2 --erasesize=4194304 --blocksize=16384 /dev/sdb
4MiB    7,9 MB/s
2MiB    8,02 MB/s
1MiB    7,95 MB/s
512KiB  7,8 MB/s
256KiB  7,6 MB/s
128KiB  7,33 MB/s
64KiB   6,9 MB/s
32KiB   5,8 MB/s
16KiB   4,1 MB/s
# ./flashbench -O --open-au-nr=3 --erasesize=4194304 --blocksize=16384 /dev/sdb
4MiB    7,8 MB/s
2MiB    8,0 MB/s
1MiB    7,9 MB/s
512KiB  7,7 MB/s
256KiB  7,5 MB/s
128KiB  7,3 MB/s
64KiB   6,8 MB/s
32KiB   5,7 MB/s
16KiB   4,0 MB/s
# ./flashbench -O --open-au-nr=4 --erasesize=4194304 --blocksize=16384 /dev/sdb
4MiB    7,1 MB/s
2MiB    5,2 MB/s
1MiB    3,1 MB/s
512KiB  1,62 MB/s
256KiB  820 kB/s
128KiB  411 kB/s
64KiB   206 kB/s
^C
[/code]
Bei 4 bricht es ein, oder?";
    assert_eq!(sure(&of(post), Quantity::OpenAusLinear), Some(3.0), "{:?}", of(post));
}

/// An issue on a forge: markdown, a table with bars, no N for one of the runs.
#[test]
fn a_markdown_issue() {
    let post = "### Card is slow\n```\n$ flashbench --open-au --open-au-nr=1 /dev/mmcblk0\n4MiB    11.2M/s \n2MiB    11.1M/s \n1MiB    11.2M/s \n512KiB  11M/s   \n256KiB  10.9M/s \n128KiB  10.6M/s \n64KiB   10M/s   \n32KiB   8.9M/s  \n16KiB   7.2M/s  \n```\n\
        and with `--random`:\n```\n$ flashbench --open-au --open-au-nr=1 --random /dev/mmcblk0\n4MiB    11.1M/s \n2MiB    7.9M/s \n1MiB    4.4M/s \n512KiB  2.25M/s   \n256KiB  1.14M/s \n128KiB  570K/s \n64KiB   286K/s   \n32KiB   143K/s  \n16KiB   71.2K/s  \n```\n";
    let f = of(post);
    // Random order pays in a single AU already; linear does not.
    assert_eq!(sure(&f, Quantity::OpenAusRandom), Some(0.0), "{f:?}");
    assert!(f.get(Quantity::OpenAusLinear).is_none_or(|f| f.number() != Some(0.0)), "{f:?}");
}

/// Slow decline, no cliff: "at least 7" and nothing more.
#[test]
fn a_decline_without_a_cliff() {
    let mut post =
        String::from("Script started on Sat 03 Mar 2012 10:12:44 AM CET\r\n\u{1b}[01;32mme@box\u{1b}[00m:\u{1b}[01;34m~\u{1b}[00m$ ");
    for n in 1..=7 {
        post += &format!("./flashbench -O --open-au-nr={n} /dev/sdd\r\n");
        for k in (14..=22).rev() {
            let rate = 14.0 / (1.0 + 0.05 * n as f64) / (1.0 + 12e3 / (1u64 << k) as f64);
            let (s, u) = if k >= 20 { (1u64 << (k - 20), "MiB") } else { (1 << (k - 10), "KiB") };
            post += &format!("{:<8}{rate:.1}M/s \r\n", format!("{s}{u}"));
        }
        post += "\u{1b}[01;32mme@box\u{1b}[00m:\u{1b}[01;34m~\u{1b}[00m$ ";
    }
    let f = of(&post);
    let f = f.get(Quantity::OpenAusLinear).unwrap();
    assert!(f.value.is_none() && f.at_least.is_some_and(|b| b.0 == 7.0) && f.confidence >= SURE, "{f:?}");
}

/// Only a factor of two, and small writes recover.
#[test]
fn a_factor_of_two_that_small_writes_escape() {
    let table = |n: u32| {
        let mut t = format!("AU = {n}, linear\n");
        for k in (12..=22).rev() {
            let fast = 9.4 / (1.0 + 6e3 / (1u64 << k) as f64);
            let r = if n > 5 && (15..=20).contains(&k) { fast / 2.05 } else { fast };
            let (s, u) = if k >= 20 { (1u64 << (k - 20), "MiB") } else { (1 << (k - 10), "KiB") };
            t += &format!("{s}{u}\t{r:.2}M/s\n");
        }
        t
    };
    let f = of(&(1..=8).map(table).collect::<String>());
    // Large and small sizes are slow alike, which merges are not: likely, and no more.
    assert_eq!(f.value(Quantity::OpenAusLinear, 0.6), Some(5.0), "{f:?}");
    assert_eq!(sure(&f, Quantity::OpenAusLinear), None);
}

/// A reader that adds more noise than the card has signal.
#[test]
fn a_noisy_reader_says_nothing() {
    let diffs =
        [312.0, -155.0, 88.0, 410.0, -290.0, 35.0, 501.0, -77.0, 190.0, -260.0, 340.0, 12.0, -118.0, 277.0, 90.0, -30.0, 222.0, -401.0];
    let rows: String = diffs
        .iter()
        .enumerate()
        .map(|(i, d)| format!("align {}\tpre 1.4ms\ton {:.2}ms\tpost 1.5ms\tdiff {d}µs\n", (1u64 << 33) >> i, 1.45 + d / 1e3))
        .collect();
    let f = of(&rows);
    for q in [Quantity::EraseBlock, Quantity::Page, Quantity::AccessUnit] {
        assert!(sure(&f, q).is_none(), "{f:?}");
    }
}

/// Two cards in one post, each with its sizes from fdisk.
#[test]
fn two_cards_in_one_post_are_kept_apart() {
    let open = |n: u32, k: u32| {
        let mut t = format!("$ sudo ./flashbench -O --open-au-nr={n} /dev/sdb\n");
        for (size, z) in
            [("4MiB", 4096.0), ("2MiB", 2048.0), ("1MiB", 1024.0), ("512KiB", 512.0), ("256KiB", 256.0), ("128KiB", 128.0), ("64KiB", 64.0)]
        {
            let ms = z / 9.0 + 1.0 + if n > k && z <= 1024.0 { 300.0 } else { 0.0 };
            t += &format!("{size:<8}{:.3}M/s\n", z * 1.024 / ms);
        }
        t
    };
    let mut post = String::from("First the old one:\nDisk /dev/sdb: 3965 MB, 3965190144 bytes\n");
    (2..=4).for_each(|n| post += &open(n, 2));
    post += "now the new card\nDisk /dev/sdb: 7948 MB, 7948206080 bytes\n";
    (4..=7).for_each(|n| post += &open(n, 5));
    let all = cards(&[("post", &post)]).unwrap();
    assert_eq!(all.len(), 2, "{all:?}");
    let limits: Vec<Option<f64>> = all.iter().map(|c| sure(&infer(&c.tables), Quantity::OpenAusLinear)).collect();
    assert_eq!(limits, [Some(2.0), Some(5.0)]);
    // Named in prose only, as in the thread of the SanDisk and the Toshiba eMMC.
    let mut post = String::from("The Kingston one:\n");
    (2..=4).for_each(|n| post += &open(n, 2));
    post += "And here is the Samsung.\n";
    (4..=7).for_each(|n| post += &open(n, 5));
    let all = cards(&[("post", &post)]).unwrap();
    assert_eq!(all.iter().map(|c| c.identity.maker).collect::<Vec<_>>(), [Some("kingston"), Some("samsung")]);
    // The same card in two files, in two readers: pooled.
    let (a, b) = ((2..=3).map(|n| open(n, 3)).collect::<String>(), (4..=5).map(|n| open(n, 3).replace("sdb", "sdc")).collect::<String>());
    let all = cards(&[("a", &a), ("b", &b)]).unwrap();
    assert_eq!(all.len(), 1);
    let f = infer(&all[0].tables);
    assert_eq!(value(&f, Quantity::OpenAusLinear), Some(3.0), "{f:?}");
}

/// One card whose log names another maker in passing stays one card.
#[test]
fn prose_about_other_cards_does_not_cut_a_log() {
    let rows: String = (11..=29)
        .rev()
        .map(|k| {
            format!(
                "align {} pre 700µs on {}µs post 700µs diff {}µs\n",
                1u64 << k,
                700 + if k >= 22 { 300 } else { 120 },
                if k >= 22 { 300 } else { 120 }
            )
        })
        .collect();
    let post = format!(
        "My Lexar card.\n{rows}My Sandisk looks different.\n$ ./flashbench -O --open-au-nr=2 /dev/sdb\n4MiB 9M/s\n2MiB 9M/s\n1MiB 9M/s\n512KiB 9M/s\n"
    );
    assert_eq!(cards(&[("post", &post)]).unwrap().len(), 1);
}

/// An interval and a scatter plot, and a find-FAT run whose rows a mail wrapped.
#[test]
fn the_other_tests() {
    let mut post = String::from("$ ./flashbench -i --interval-order=10 /dev/sdb\n");
    for k in 0..10 {
        let s = 512u64 << k;
        let us = 420.0 + s as f64 / 19.5;
        post += &format!("{s} bytes: min {us:.0}µs avg {:.0}µs max {:.0}µs: 1 MB/s\n", us * 1.01, us * 1.2);
    }
    post += "$ ./flashbench -s /dev/sdb -o -\n";
    for i in 0..512 {
        post += &format!("{:.6}\t{:.6}\n", i as f64 * 7.5, if i < 9 { 0.61 } else { 0.84 } + [0.004, -0.003, 0.001][i % 3]);
    }
    let f = of(&post);
    assert!((sure(&f, Quantity::AccessTimeUs).unwrap() - 420.0).abs() < 25.0, "{f:?}");
    assert!((sure(&f, Quantity::ReadRate).unwrap() / 19.5e6 - 1.0).abs() < 0.06, "{f:?}");
    assert_eq!(value(&f, Quantity::OddRegions), Some(1.0), "{f:?}");
    let mut fat = String::from("> $ ./flashbench --find-fat --fat-nr=8 /dev/sdb\n");
    for (s, first, rest) in [
        ("4MiB", "3.1M/s", "4.2M/s"),
        ("2MiB", "4.2M/s", "4.3M/s"),
        ("1MiB", "4.1M/s", "3.9M/s"),
        ("512KiB", "4.2M/s", "2.1M/s"),
        ("256KiB", "4M/s", "1.1M/s"),
        ("128KiB", "4.1M/s", "560K/s"),
        ("64KiB", "3.9M/s", "280K/s"),
        ("32KiB", "3.6M/s", "140K/s"),
        ("16KiB", "3.1M/s", "70K/s"),
    ] {
        fat += &format!("> {s}   {first}   {rest}   {rest}   {rest}   {rest}\n> {rest}   {rest}   {rest}\n");
    }
    let f = of(&fat);
    assert_eq!(value(&f, Quantity::FatZone), Some(4.0 * MIB), "{f:?}");
}

/// SdFat's bench from a serial monitor, and the registers of the card around it.
#[test]
fn a_bench_from_a_serial_monitor() {
    let post = "Use a freshly formatted SD for best performance.\nType any character to start\nFreeStack: 1305\nType is FAT32\nCard size: 15.93 GB (GB = 1E9 bytes)\n\n\
        Manufacturer ID: 0X1B\nOEM ID: SM\nProduct: 00000\nRevision: 1.0\nSerial number: 0XB2C4D5E6\nManufacturing date: 5/2014\n\n\
        FILE_SIZE_MB = 5\nBUF_SIZE = 512 bytes\nStarting write test, please wait.\n\nwrite speed and latency\nspeed,max,min,avg\nKB/Sec,usec,usec,usec\n\
        251.30,82620,1724,2031\n252.82,81336,1720,2019\n\nStarting read test, please wait.\n\nread speed and latency\nspeed,max,min,avg\nKB/Sec,usec,usec,usec\n469.40,2468,1024,1084\n469.48,2460,1024,1084\n\nDone\n";
    let f = of(post);
    assert!((sure(&f, Quantity::FileWriteRate).unwrap() / 252e3 - 1.0).abs() < 0.01, "{f:?}");
    assert!((sure(&f, Quantity::FileReadRate).unwrap() / 469.4e3 - 1.0).abs() < 0.01, "{f:?}");
    assert_eq!(sure(&f, Quantity::WorstWriteMs), Some(82.62), "{f:?}");
    assert!(f.get(Quantity::EraseBlock).is_none(), "{f:?}");
}

/// A chat log with time stamps and nicknames, a table that ^C cut, and a gap in the numbers.
#[test]
fn a_chat_log_with_a_gap() {
    let mut post = String::new();
    for (n, ms) in [(1, 0.0), (4, 0.0), (8, 380.0)] {
        post += &format!("[14:0{n}] <joe> $ ./flashbench -O --open-au-nr={n} /dev/mmcblk0\n");
        for (size, z) in [("4MiB", 4096.0), ("2MiB", 2048.0), ("1MiB", 1024.0), ("512KiB", 512.0), ("256KiB", 256.0), ("128KiB", 128.0)] {
            post += &format!("[14:0{n}] <joe> {size:<8}{:.3}M/s\n", z * 1.024 / (z / 15.0 + 0.8 + if z <= 1024.0 { ms } else { ms / 3.0 }));
        }
        post += "[14:09] <joe> ^C\n";
    }
    let f = of(&post);
    let f = f.get(Quantity::OpenAusLinear).unwrap();
    assert!(f.value.is_none() && f.at_least.is_some_and(|b| b.0 == 4.0) && f.confidence >= SURE, "{f:?}");
}

/// A card whose reads hide everything, posted as HTML.
#[test]
fn flat_reads_from_a_web_page() {
    let rows: String = (11..=30)
        .rev()
        .map(|k| {
            let w = [2.0, -3.0, 1.0, 4.0, -1.0][k % 5];
            format!("align {} pre 533&micro;s on {:.0}&micro;s post 536&micro;s diff {:.2}&micro;s<br>\n", 1u64 << k, 534.5 + w, w + 0.01)
        })
        .collect();
    let f = of(&format!("<pre>\n{rows}</pre>"));
    assert!(value(&f, Quantity::EraseBlock).is_none() && value(&f, Quantity::Page).is_none(), "{f:?}");
    assert!(f.get(Quantity::EraseBlock).unwrap().reason.as_ref().unwrap().contains("alike"), "{f:?}");
}

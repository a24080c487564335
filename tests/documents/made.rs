//! Tables made up as people write them: other sizes, other orders, rows that are missing.

use super::*;

/// Rows of 3 * 2^n beside rows of 2^n: `step` is felt by the multiples of each size.
fn rows(sizes: &[(u64, f64)], smallest: u64, seed: u64) -> String {
    let mut x = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut noise = || {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        (x >> 40) as f64 / (1u64 << 24) as f64 * 4.0 - 2.0
    };
    let mut all: Vec<u64> = (10..=32).flat_map(|k| [1u64 << k, 3 << (k - 1)]).filter(|a| (smallest..=1 << 32).contains(a)).collect();
    all.sort_unstable_by_key(|a| std::cmp::Reverse(*a));
    let row = |a: u64| {
        let step: f64 = sizes.iter().filter(|s| a.is_multiple_of(s.0)).map(|s| s.1).sum();
        let d = step + noise();
        format!("align {a}\tpre 506µs\ton {:.0}µs\tpost 505µs\tdiff {d:.3}µs\n", 505.5 + d)
    };
    all.into_iter().map(row).collect()
}

#[test]
fn rows_of_three_times_a_power_of_two() {
    const KIB: u64 = 1024;
    const MIB: u64 = 1 << 20;
    // Page, planes, erase block.
    let kinds: [[u64; 3]; 8] = [
        [16 * KIB, 48 * KIB, 12 * MIB],
        [16 * KIB, 48 * KIB, 6 * MIB],
        [8 * KIB, 24 * KIB, 3 * MIB],
        [8 * KIB, 16 * KIB, 3 * MIB],
        [16 * KIB, 32 * KIB, 24 * MIB],
        [8 * KIB, 24 * KIB, 8 * MIB],
        [16 * KIB, 32 * KIB, 4 * MIB],
        [4 * KIB, 8 * KIB, 3 * MIB / 2],
    ];
    for [page, unit, block] in kinds {
        for (seed, smallest) in [(1, 2), (2, 3), (3, 4), (4, 8), (5, 2), (6, 4), (7, 32), (8, 64)].map(|(s, k)| (s, k * KIB)) {
            let text = rows(&[(page, 25.0), (unit, 65.0), (block, 110.0)], smallest, seed);
            let f = said(&of(&text)[0]);
            let name = format!("{page} {unit} {block} from {smallest}, seed {seed}: {f:?}");
            assert_eq!(f.value(Quantity::EraseBlock, SURE), Some(block as f64), "{name}");
            // What half of it would show where no row shows it: only then it is known.
            let known = |size: u64| {
                (10..=32)
                    .flat_map(|k| [1u64 << k, 3 << (k - 1)])
                    .any(|a| a >= smallest && a.is_multiple_of(size / 2) && !a.is_multiple_of(size))
            };
            assert_eq!(f.value(Quantity::AccessUnit, SURE), known(unit).then_some(unit as f64), "{name}");
            match f.value(Quantity::Page, 0.6) {
                Some(p) => assert_eq!(p, page as f64, "{name}"),
                None => assert!(smallest * 2 >= page, "{name}"),
            }
            assert!(f.0.iter().all(|f| f.caveats.iter().all(|c| !c.contains("outlier"))), "{name}");
        }
    }
}

#[test]
fn sizes_and_orders_of_rows_as_people_write_them() {
    let plain = rows(&[(16 << 10, 90.0), (4 << 20, 150.0)], 2048, 9);
    let want = said(&of(&plain)[0]);
    assert_eq!(want.value(Quantity::EraseBlock, SURE), Some(4194304.0));
    let rewrite = |f: &dyn Fn(u64) -> String| {
        let one = |l: &str| {
            let (head, rest) = l.split_once('\t').unwrap();
            format!("align {}\t{rest}\n", f(head.trim_start_matches("align ").parse().unwrap()))
        };
        plain.lines().map(one).collect::<String>()
    };
    let grouped = |a: u64, with: &str| {
        let s = a.to_string();
        let head = s.len() % 3;
        let groups: Vec<&str> = std::iter::once(&s[..head])
            .filter(|g| !g.is_empty())
            .chain((0..s.len() / 3).map(|i| &s[head + 3 * i..head + 3 * i + 3]))
            .collect();
        groups.join(with)
    };
    let unit = |a: u64, blank: &str, names: [&str; 3]| match a {
        a if a.is_multiple_of(1 << 30) => format!("{}{blank}{}", a >> 30, names[2]),
        a if a.is_multiple_of(1 << 19) => format!("{}{blank}{}", a as f64 / 1048576.0, names[1]),
        a => format!("{}{blank}{}", a as f64 / 1024.0, names[0]),
    };
    let reversed: String = plain.lines().rev().map(|l| format!("{l}\n")).collect();
    for text in [
        rewrite(&|a| unit(a, "", ["KiB", "MiB", "GiB"])),
        rewrite(&|a| unit(a, " ", ["KiB", "MiB", "GiB"])),
        rewrite(&|a| unit(a, "", ["K", "M", "G"])),
        rewrite(&|a| grouped(a, ",")),
        rewrite(&|a| grouped(a, ".")),
        reversed.clone(),
        format!("{reversed}$ flashbench -a /dev/sdb\n{plain}"),
        format!("{plain}{reversed}"),
    ] {
        let all = of(&text);
        assert_eq!(all[0].tables.align[0].rows.len(), plain.lines().count(), "{text}");
        let f = said(&all[0]);
        for q in [Quantity::EraseBlock, Quantity::Page, Quantity::AccessUnit] {
            assert_eq!(f.value(q, SURE), want.value(q, SURE), "{q}\n{text}");
        }
    }
    // Open-AU tables sorted the other way.
    let table = |n: u32, slow: f64| {
        let row = |k: u32| format!("{}KiB {:.1}M/s\n", 1 << k, 9.0 / slow);
        format!("$ flashbench -O --open-au-nr={n} /dev/sdb\n{}", (5..=12).map(row).collect::<String>())
    };
    let all = of(&[(1, 1.0), (2, 1.0), (3, 1.0), (4, 20.0)].map(|(n, s)| table(n, s)).concat());
    assert_eq!(all[0].tables.open.len(), 4);
    // All sizes are slow alike, whole AUs too, which merges are not: a bound.
    let found = said(&all[0]);
    let f = found.get(Quantity::OpenAusLinear).unwrap();
    assert_eq!((f.number(), f.at_least.map(|b| b.0)), (None, Some(3.0)), "{f:?}");
}

#[test]
fn what_a_log_has_no_rows_for_is_not_absent() {
    let cut: String = rows(&[(16 << 10, 90.0), (4 << 20, 150.0)], 256 << 10, 3);
    let f = said(&of(&cut)[0]);
    let f = f.get(Quantity::Page).unwrap();
    let why = f.reason.as_deref().unwrap();
    assert!(f.value.is_none() && (why.contains("no rows below 256 KiB") || why.contains("at or below 128 KiB")), "{f:?}");
}

/// Q1: writes across boundaries are spoken of as writes, with the warning, and without what only reads do.
#[test]
fn writes_across_boundaries_are_writes() {
    for (seed, sizes) in [(1, vec![(32 << 10, 400.0)]), (2, vec![(16 << 10, 150.0), (4 << 20, 900.0)]), (3, vec![])] {
        let table = rows(&sizes, 2048, seed);
        for head in [
            "# ./flashbench -A -b 1024 /dev/mmcblk0p6\n",
            "$ flashbench -A -b 1024 /dev/sdb\n",
            "# nandscope 1.0, x, 4294967296 bytes\n# flashbench -A --blocksize=1024 sim:x\n",
        ] {
            let f = said(&of(&format!("{head}{table}"))[0]);
            for f in &f.0 {
                let all = [&f.evidence, &f.caveats].into_iter().flatten().chain(&f.reason).cloned().collect::<Vec<_>>().join("; ");
                assert!(!all.contains("read"), "{all}");
                assert!(all.contains("unreliable"), "{all}");
                assert!(!head.starts_with("# nandscope") || !all.contains("wrap"), "{all}");
            }
        }
    }
}

/// A knee that one table shows and others deny is none.
#[test]
fn a_write_unit_is_held_against_all_tables() {
    let table = |n: u32, ms: &dyn Fn(f64) -> f64| {
        let row = |k: u32| format!("{}KiB {:.3}M/s\n", 1 << k, (1u64 << k) as f64 * 1.024 / ms((1u64 << k) as f64));
        format!("$ flashbench -O --open-au-nr={n} -b 1024 /dev/sdb\n{}", (0..=12).rev().map(row).collect::<String>())
    };
    for unit in [4.0, 8.0, 16.0] {
        let knee = |k: f64| 0.2 + k.max(unit) / 1.4;
        // Two AUs: everything below 32 KiB goes through a log that is slower than whole 32 KiB.
        let log = |k: f64| if k < 32.0 { k.max(unit) * 2.7 } else { 0.2 + k / 1.4 };
        let alone = said(&of(&table(1, &knee))[0]);
        assert_eq!(alone.value(Quantity::WriteUnit, SURE), Some(unit * 1024.0), "{alone:?}");
        let both = said(&of(&format!("{}{}", table(1, &knee), table(2, &log)))[0]);
        let f = both.get(Quantity::WriteUnit).unwrap();
        assert!(f.value.is_none() && f.reason.as_ref().unwrap().contains("with 2 AUs interleaved a write takes"), "{f:?}");
        let agree = said(&of(&format!("{}{}{}", table(1, &knee), table(2, &knee), table(3, &|_| 300.0)))[0]);
        assert_eq!(agree.value(Quantity::WriteUnit, SURE), Some(unit * 1024.0), "{agree:?}");
    }
}

/// Q14 in other words, with and without an effect.
#[test]
fn the_same_test_before_and_after_a_change() {
    let table = |run: u32, slow_below: u64, factor: f64| {
        let row = |k: u32| {
            let base = 10.0 / (1.0 + 40.0 / (1u64 << k) as f64) * (1.0 + 0.004 * ((k * 7) % 5) as f64);
            // No two runs print the same.
            let run = if k.is_multiple_of(2) { 1.0 + 0.01 * run as f64 } else { 1.0 };
            format!("{}KiB {:.2}M/s\n", 1 << k, base * run * if 1 << k < slow_below { factor } else { 1.0 })
        };
        format!("# ./flashbench -O -0 1 -b 512 /dev/block/mmcblk0p9\n{}", (1..=12).rev().map(row).collect::<String>())
    };
    for change in [
        "# echo 0 > /sys/block/mmcblk0/device/page_size",
        "$ echo 128 | sudo tee x\n$ sudo hdparm -W0 /dev/sdb",
        "without the patch:",
        "=== patched kernel ===",
    ] {
        let verdict = |text: &str| {
            let all = of(text);
            let s = sides(&all[0].tables);
            assert_eq!(s.len(), 1, "{text}: {s:?}");
            s[0].verdict.clone()
        };
        let none = verdict(&format!("{}{change}\n{}", table(1, 0, 1.0), table(2, 0, 1.0)));
        assert!(none.starts_with("no difference"), "{none}");
        let small = verdict(&format!("{}{change}\n{}", table(1, 0, 1.0), table(2, 8, 0.5)));
        assert!(small.starts_with("a difference at 4 KiB") && small.contains("2 KiB"), "{small}");
        let all = verdict(&format!("{}{change}\n{}", table(1, 0, 1.0), table(2, 1 << 40, 1.3)));
        assert!(all.contains("faster"), "{all}");
    }
    assert!(sides(&of(&format!("{}{}", table(1, 0, 1.0), table(2, 0, 1.0)))[0].tables).is_empty(), "a repeat is no change");
}

/// A slow decline is given with the span over the sizes that the quoted rows lie in; one AU is not compared with itself.
#[test]
fn quoted_figures_agree_with_what_is_said_of_them() {
    let table = |n: u32| {
        let row = |k: u32| {
            let part = 1.0 - 0.055 * (n - 1) as f64 * (k as f64 / 12.0);
            format!("{}KiB {:.2}M/s\n", 1 << k, 9.0 * part)
        };
        format!("$ flashbench -O --open-au-nr={n} /dev/sdb\n{}", (5..=12).rev().map(row).collect::<String>())
    };
    let all = of(&(1..=7).map(table).collect::<String>());
    let f = said(&all[0]);
    let f = f.get(Quantity::OpenAusLinear).unwrap();
    let remark = f.caveats.iter().find(|c| c.contains("slow decline")).unwrap_or_else(|| panic!("{f:?}"));
    assert!(remark.contains("with 7 AUs") && remark.contains("of the rate of one AU") && remark.contains("by size"), "{remark}");
    let f = said(&of(&table(1))[0]);
    let f = f.get(Quantity::OpenAusLinear).unwrap();
    assert!(f.evidence.iter().all(|e| e.matches("with").count() == 1), "{f:?}");
}

//! Declared registers: real dumps against figures worked out by hand from the specifications, the sysfs reader on a copied tree,
//! the `identify` subcommand, and arbitrary input that must never panic.

#[path = "registers/any.rs"]
mod any;
#[path = "common/shared.rs"]
mod shared;
#[path = "common/skip.rs"]
mod skip;

use clap::Parser;
use identify::{IdentifyArgs, collect, run, text};
use nandscope::device::mmc::Register;
use nandscope::host::declared::{self, Declared, Kind, RawRegisters};
use nandscope::host::live;
use nandscope::host::registers::cid::Cid;
use nandscope::host::registers::csd::Csd;
use nandscope::host::registers::ext_csd::{ExtCsd, ExtCsdBytes, LifeTime, PreEol};
use nandscope::host::registers::scr::Scr;
use nandscope::host::registers::ssr::Ssr;
use nandscope::host::registers::{Checksum, Date, dump, ext_csd_text, parse_array, parse_hex};
use std::path::PathBuf;

use nandscope::cli::identify;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const TODAY: Date = Date { year: 2026, month: 11 };

fn data(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/registers").join(name)
}

/// A dump that somebody published; none where it is not at hand, which it says.
fn dump_of(name: &str) -> Option<PathBuf> {
    shared::published("what real cards declare", name)
}

fn from_file(name: &str) -> Option<Declared> {
    Some(declared::from_dump_on(&std::fs::read_to_string(dump_of(name)?).unwrap(), TODAY).unwrap())
}

fn from_tree(name: &str) -> Declared {
    declared::from_sysfs_on(&data("sysfs"), name, TODAY).unwrap()
}

#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    identify: IdentifyArgs,
}

fn arguments(args: &[&str]) -> IdentifyArgs {
    Cli::try_parse_from([&["identify"], args].concat()).unwrap_or_else(|e| panic!("{e}")).identify
}

/// The value printed after a label.
fn row<'a>(text: &'a str, label: &str) -> &'a str {
    let line = text.lines().find(|l| l.starts_with(&format!("  {label:<22}"))).unwrap_or_else(|| panic!("no {label:?} in\n{text}"));
    line[24..].trim_end()
}

#[test]
fn kingston_canvas_go_plus() {
    let Some(d) = from_file("registers/ssr-kingston-canvas-go-plus-64g.txt") else { return };
    let ssr = d.ssr.as_ref().unwrap();
    assert_eq!(d.kind, Kind::Sd);
    assert_eq!((ssr.bus_width, ssr.secured, ssr.card_type, ssr.protected_area), (Some(4), false, 0, 0x0800_0000));
    assert_eq!((ssr.speed_class, ssr.performance_move), (Some(10), 0));
    assert_eq!((ssr.au.code, ssr.au.bytes), (9, Some(4 * MIB)));
    assert_eq!((ssr.erase_size, ssr.erase_timeout, ssr.erase_offset), (1, 6, 3), "0x0001, 0x1b = 000110 11");
    assert_eq!(ssr.erase_seconds(10), Some(63.0), "10 AU * 6 s + 3 s");
    assert_eq!((ssr.uhs_grade, ssr.uhs_au.bytes), (3, Some(4 * MIB)), "0x39");
    assert_eq!((ssr.video_class, ssr.video_au_mib, ssr.suspension_address), (30, 8, 0));
    assert_eq!((ssr.app_class, ssr.queue_depth), (2, Some(32)), "0x02, 0xff = 11111 111");
    assert!(ssr.cache && ssr.host_maintenance && ssr.card_maintenance && ssr.discard && ssr.fule);
    assert_eq!(ssr.marks(), "speed class 10, U3, V30, A2");
    assert_eq!(d.declared_au.as_ref().unwrap().bytes, 4 * MIB);
    assert_eq!(d.warnings, [] as [&str; 0]);
    let text = text(&d);
    assert_eq!(row(&text, "AU"), "4 MiB (SSR AU_SIZE code 9)");
    assert_eq!(row(&text, "speed"), "speed class 10, U3, V30, A2 (promises 30 MB/s written in sequence)");
    assert_eq!(row(&text, "erase time-out"), "9 s for 1 AU (6 s + 3 s)");
    assert_eq!(row(&text, "queue and cache"), "command queue of 32, cache");
    assert_eq!(row(&text, "discard"), "yes, full erase (FULE) yes");
}

#[test]
fn goodram_irdm() {
    let Some(d) = from_file("registers/ssr-goodram-irdm-v30-a2-64g.txt") else { return };
    let ssr = d.ssr.as_ref().unwrap();
    assert_eq!((ssr.au.code, ssr.au.bytes, ssr.uhs_au.bytes), (10, Some(8 * MIB), Some(8 * MIB)));
    assert_eq!((ssr.erase_size, ssr.erase_timeout, ssr.erase_offset), (256, 63, 1), "0x0100, 0xfd = 111111 01");
    assert_eq!(ssr.erase_seconds(256), Some(64.0));
    assert_eq!((ssr.uhs_grade, ssr.video_class, ssr.video_au_mib, ssr.app_class), (3, 30, 8, 2));
    assert_eq!((ssr.queue_depth, ssr.cache, ssr.host_maintenance, ssr.card_maintenance), (Some(8), true, false, false), "0x3c = 00111 100");
    assert_eq!((ssr.discard, ssr.fule), (false, false));
    assert!(d.notes.iter().any(|n| n.contains("AU codes above 9 count only")), "{:?}", d.notes);
}

#[test]
fn a_text_that_is_no_dump_is_an_error() {
    for text in
        ["root:x:0:0::/root:/bin/sh\nman:x:6:12:man:/var/cache/man:/usr/sbin/nologin\n", "Date: Mon, 3 Feb\nType: text\n", "name: me\n"]
    {
        let why = declared::from_dump(text).unwrap_err().to_string();
        assert!(why.contains("found no register"), "{text}: {why}");
    }
    assert!(declared::from_dump("man:0x000003 oem:0x5344\n").is_ok());
}

#[test]
fn kingston_2013_from_a_head_dump() {
    let Some(d) = from_file("flashbench/kingston-sa04g-2013_sysfs.txt") else { return };
    assert_eq!((d.kind, d.device.as_deref(), d.name.as_deref()), (Kind::Sd, Some("mmcblk1"), Some("SA04G")));
    assert_eq!((d.ids.as_deref(), d.date), (Some("0x02/0x544d \"TM\""), Some(Date { year: 2013, month: 3 })));
    assert_eq!((d.capacity, d.erase_size), (Some(3_904_897_024), Some(512)), "as fdisk says in the same dump");
    let cid = d.cid.as_ref().unwrap();
    assert_eq!((cid.checksum, cid.hwrev, cid.fwrev, cid.serial), (Checksum::Good, 1, 1, Some(0x3533_8909)));
    let scr = d.scr.as_ref().unwrap();
    assert_eq!((scr.spec.as_deref(), scr.cmd20, scr.cmd23), (Some("3.0x"), false, false));
    let erase = d.preferred_erase_size.as_ref().unwrap();
    assert_eq!((erase.bytes, erase.is_kernel_guess), (4 * MIB, None), "no SSR in the dump, and the guess would be the same");
    assert!(erase.why.contains("may measure nothing") && d.declared_au.is_none());
    assert_eq!(d.warnings, [] as [&str; 0]);
}

#[test]
fn toshiba_2015_from_notes() {
    let Some(d) = from_file("registers/sysfs-toshiba-se08g-2015.txt") else { return };
    assert_eq!((d.name.as_deref(), d.date), (Some("SE08G"), Some(Date { year: 2015, month: 3 })));
    assert_eq!(d.capacity, Some(15_200 * 512 * KIB), "C_SIZE 0x3b5f = 15199");
    assert_eq!(d.cid.as_ref().unwrap().checksum, Checksum::Absent);
    let (csd, scr) = (d.csd.as_ref().unwrap(), d.scr.as_ref().unwrap());
    assert_eq!((csd.family(), csd.tran_speed, csd.permanent_write_protect), ("SDHC (up to 32 GiB)", Some(25_000_000), false));
    assert_eq!((scr.erased_bit, scr.bus_widths.as_slice(), scr.commands().starts_with("none")), (1, [1, 4].as_slice(), true));
    assert_eq!(d.preferred_erase_size.as_ref().unwrap().is_kernel_guess, None);
    assert_eq!(d.warnings, [] as [&str; 0]);
    let text = text(&d);
    assert_eq!(row(&text, "AU"), "unknown: it stands in the SD status, which is not at hand");
    assert_eq!(row(&text, "capacity"), "7.42 GiB (7969177600 bytes), SDHC (up to 32 GiB)");
    assert!(text.starts_with("SD card \"SE08G\" by Toshiba/Kioxia (also sold by Kingston and others), made 03/2015\n"), "{text}");
}

#[test]
fn emmc_excerpts() {
    let Some(d) = from_file("registers/extcsd-samsung-8g-emmc51.txt") else { return };
    let e = d.ext_csd.as_ref().unwrap();
    assert_eq!((d.kind, d.capacity), (Kind::Mmc, Some(7_634_944 * KIB)), "0x00e90000 sectors");
    assert_eq!((e.erase_group, e.write_protect_group), (Some(512 * KIB), Some(8 * MIB)));
    assert_eq!((e.cache, e.super_page, e.large_unit), (Some(8 * MIB), Some(32 * KIB), Some(8 * MIB)));
    assert_eq!((e.erase_timeout_ms, e.native_sector, e.life_a), (Some(300), Some(512), None));
    assert_eq!(d.declared_au.as_ref().unwrap().source, "EXT_CSD HC_ERASE_GRP_SIZE");
    assert!(d.notes[0].contains("write-protect group of 8 MiB"), "{:?}", d.notes);

    let Some(d) = from_file("registers/extcsd-arista-8g-emmc50.txt") else { return };
    let e = d.ext_csd.as_ref().unwrap();
    assert_eq!(d.capacity, Some(7_902_068_736), "0x00eb8000 sectors");
    assert_eq!((e.erase_group, e.write_protect_group, e.cache), (Some(8 * MIB), Some(8 * MIB), Some(128 * KIB)));
    assert_eq!(e.erase_timeout_ms, Some(5100), "0x11 * 300 ms");
    assert_eq!(d.declared_au.as_ref().unwrap().bytes, 8 * MIB);
    assert_eq!(row(&text(&d), "register"), "only 13 of 512 bytes given", "5 single bytes, 2 fields of 4");
}

/// CID and CSD lines of labelled cards, read natively (published flashbench logs), with their capacities.
#[test]
fn identities_of_real_cards() {
    for (cid, csd, name, date, capacity, warning) in [
        ("03534453553034478022ed3d8100db00", "400e00325b5900001d8a7f800a404000", "SU04G", (2013, 11), 3_965_190_144, None),
        ("035344534c303847801977e2a000e900", "400e00325b5900003b377f800a404000", "SL08G", (2014, 9), 7_948_206_080, None),
        ("2750485344384742307c7ddc2100e100", "400e00325b59000039af7f800a400000", "SD8GB", (2014, 1), 7_742_685_184, None),
        ("744a60555344202010a5a2038a00f601", "400e00325b5900003c1d7f800a400001", "USD", (2015, 6), 8_068_792_320, None),
        ("413432534438474220a070df2800e200", "400e00325b5900003adf7f800a400000", "SD8GB", (2014, 2), 7_902_068_736, Some("genuine")),
        ("0000003030303030ff000016ca00e200", "400e00325b5900001d877f800a400000", "00000", (2014, 2), 3_963_617_280, Some("zero ids")),
    ] {
        let d = declared::from_registers_on(
            RawRegisters { cid: Some(parse_array("CID", cid).unwrap()), csd: Some(parse_array("CSD", csd).unwrap()), ..Default::default() },
            TODAY,
        );
        assert_eq!((d.kind, d.name.as_deref(), d.capacity), (Kind::Sd, Some(name), Some(capacity)), "{cid}");
        assert_eq!(d.date, Some(Date { year: date.0, month: date.1 }));
        assert_eq!(d.csd.as_ref().unwrap().copy, csd.contains("0a4040"), "{csd}: the COPY bit");
        match warning {
            Some(part) => assert!(d.warnings.iter().any(|w| w.contains(part)), "{:?}", d.warnings),
            None => assert_eq!(d.warnings, [] as [&str; 0], "{cid}"),
        }
    }
}

#[test]
fn sysfs_of_an_emulated_card() {
    let d = from_tree("mmcblk0");
    assert_eq!((d.kind, d.name.as_deref(), d.capacity, d.device_size), (Kind::Sd, Some("QEMU!"), Some(2 << 30), Some(2 << 30)));
    assert_eq!(d.ids.as_deref(), Some("0xaa/0x5859 \"XY\""));
    let erase = d.preferred_erase_size.as_ref().unwrap();
    assert_eq!((erase.bytes, erase.is_kernel_guess), (4 * MIB, Some(true)));
    assert!(d.declared_au.is_none() && d.beside_found(MIB).contains("only the kernel's guess"));
    assert!(d.warnings.iter().any(|w| w.contains("SSR is all zeros")), "{:?}", d.warnings);
    assert!(d.warnings.iter().any(|w| w.contains("0xaa is not in the table")));
    assert_eq!(row(&text(&d), "erase sector"), "64 KiB (single blocks can be erased)");
    let partition = from_tree("mmcblk0p1");
    assert_eq!(partition, d, "a partition belongs to its disk");
}

#[test]
fn sysfs_of_an_emmc() {
    let d = from_tree("mmcblk1");
    let e = d.ext_csd.as_ref().unwrap();
    assert_eq!((d.kind, d.name.as_deref(), d.date), (Kind::Mmc, Some("8GTF4R"), Some(Date { year: 2017, month: 9 })));
    assert_eq!((d.capacity, d.device_size), (Some(7_818_182_656), Some(7_818_182_656)));
    assert_eq!((e.queue_depth, e.optimal_write, e.strobe), (Some(16), Some(16 * KIB), Some(true)));
    let health = d.health.unwrap();
    assert_eq!((health.life_a, health.life_b), (Some(LifeTime::Used { from: 0, to: 10 }), Some(LifeTime::Used { from: 10, to: 20 })));
    assert_eq!(health.pre_eol, Some(PreEol::Normal));
    let erase = d.preferred_erase_size.as_ref().unwrap();
    assert_eq!((erase.bytes, erase.is_kernel_guess), (4 * MIB, Some(true)));
    assert!(erase.why.contains("erase groups of 512 KiB"), "{}", erase.why);
    assert_eq!(d.warnings, [] as [&str; 0]);
    let text = text(&d);
    assert_eq!(row(&text, "life time"), "A: 0 to 10 % of life used; B: 10 to 20 % of life used; reserve: normal");
    assert_eq!(row(&text, "command queue"), "16 deep, off");
    assert_eq!(row(&text, "background operations"), "supported, automatic");
    assert_eq!(row(&text, "cache"), "8 MiB, on");
    assert_eq!(row(&text, "optimal sizes"), "read 32 KiB, write 16 KiB, trim 4 KiB");
    assert_eq!(row(&text, "fastest bus mode"), "HS400, enhanced strobe");
    assert_eq!(row(&text, "boot partitions"), "2 of 4 MiB");

    let boot = from_tree("mmcblk1boot0");
    assert_eq!((boot.name, boot.device_size), (d.name, None));
    assert!(boot.notes[0].contains("hardware partition"));
}

#[test]
fn sysfs_of_a_reader_and_of_nothing() {
    let d = from_tree("sda");
    let usb = d.usb.as_ref().unwrap();
    assert_eq!((d.kind, usb.vendor_id, usb.product_id, usb.release.as_deref()), (Kind::Usb, 0x05e3, 0x0751, Some("1404")));
    assert_eq!((d.name.as_deref(), d.serial.as_deref()), (Some("USB3.0 Card Reader"), Some("000000001404")));
    assert_eq!((usb.inquiry.as_deref(), usb.looks_like_reader), (Some("Generic STORAGE DEVICE"), true));
    assert!(d.notes[0].starts_with("a card reader on USB: the registers"), "{:?}", d.notes);
    assert_eq!(d.device_size, Some(124_735_488 * 512));

    let d = from_tree("loop0");
    assert_eq!((d.kind, d.device_size, d.notes.len()), (Kind::Other, Some(MIB), 1));
    assert!(d.notes[0].contains("no card registers"));

    for name in ["mmcblk9", "", "../block", "a/b"] {
        assert!(declared::from_sysfs(&data("sysfs"), name).is_err(), "{name:?}");
    }
}

#[test]
fn a_damaged_register_is_a_warning_in_sysfs_and_an_error_in_a_dump() {
    let d = from_tree("mmcblk2");
    assert_eq!(d.warnings, ["CSD: expected 16 bytes (32 hex digits), found 11 bytes (left out)"]);
    assert_eq!((d.name.as_deref(), d.capacity), (Some("SU04G"), None));
    assert_eq!(d.preferred_erase_size.unwrap().is_kernel_guess, None);
    let error = declared::from_dump("cid: 03534453553034478022ed3d8100db00\ncsd: 400e0032\n").unwrap_err();
    assert_eq!(error.to_string(), "CSD: expected 16 bytes (32 hex digits), found 4 bytes");
}

#[test]
fn values_that_do_not_fit_each_other() {
    let say = |dump: &str| declared::from_dump_on(dump, TODAY).unwrap().warnings.join("; ");
    let card = "cid:03534453553034478022ed3d8100db00\ncsd:400e00325b5900001d8a7f800a404000\n";
    assert_eq!(say(card), "");
    assert_eq!(say(&format!("{card}manfid:0x000003\noemid:0x5344\nname:SU04G\ndate:11/2013\nserial:0x22ed3d81\nsize:7744512\n")), "");
    for (line, part) in [
        ("manfid:0x000027", "manfid is not the one"),
        ("oemid:0x5048", "oemid is not the one"),
        ("name:SD8GB", "name is not the one"),
        ("date:11/2014", "date is not the one"),
        ("serial:0x1", "serial is not the one"),
        ("size:100", "the block device has 51200"),
        ("scr:0225000000000000\nssr:80000000 00000000 04009000 00001000", "UHS came with specification 3"),
        ("scr:0235800000000000\nssr:80000000 00000000 04009000 0000001e", "the SCR says 3.0x"),
        ("ext_csd:00", "EXT_CSD"),
    ] {
        let rest = if line.contains("ssr") { "0".repeat(96) } else { String::new() };
        let found =
            declared::from_dump_on(&format!("{card}{line}{rest}\n"), TODAY).map_or_else(|e| e.to_string(), |d| d.warnings.join("; "));
        assert!(found.contains(part), "{line}: {found}");
    }
    assert!(say("cid:035344534c3038478019771111005200\ncsd:400e00325b5900003b377f800a404000\n").contains("SDHC was specified in 2006"));
}

/// A row of the kernel's for all cards of a maker says nothing of one that does not declare what the row calls broken.
#[test]
fn a_trouble_with_what_the_card_does_not_declare_is_none() {
    let card = |ssr: &str| format!("cid:03534453443032478022ed3d8100b500\nscr:0225000000000000\nssr:{ssr}\n");
    let quirks =
        |dump: &str| -> Vec<String> { declared::from_dump_on(dump, TODAY).unwrap().troubles.into_iter().map(|t| t.quirk).collect() };
    let without = format!("80000000{}", "0".repeat(120));
    let d = declared::from_dump_on(&card(&without), TODAY).unwrap();
    assert!(d.troubles.is_empty() && d.notes.join(" ").contains("does not declare discard"), "{d:?}");
    // Bit 313 of the SD status.
    let with = format!("80000000{}02{}", "0".repeat(40), "0".repeat(78));
    assert_eq!(quirks(&card(&with)), ["BROKEN_SD_DISCARD"]);
    assert_eq!(quirks(&card(&"0".repeat(128))), ["BROKEN_SD_DISCARD"], "a blank status says nothing");
}

#[test]
fn health_of_sysfs_is_not_believed_blindly() {
    let d = declared::from_dump("type: MMC\nlife_time: 0xff 0x0b\npre_eol_info: 0x07\n").unwrap();
    assert_eq!(d.health.unwrap().life_a, Some(LifeTime::Reserved { code: 0xff }));
    let all = d.warnings.join("; ");
    assert!(all.contains("life_time A is 0xff") && all.contains("life is exceeded") && all.contains("pre_eol_info is 0x07"), "{all}");
}

#[test]
fn emmc_date_is_settled_by_the_kernel() {
    // Year code 13 without an EXT_CSD: 2010 or 2026; the kernel's date attribute decides.
    let card = "type: MMC\ncid: 15010038475446345207123456789d00\n";
    let open = declared::from_dump_on(card, TODAY).unwrap();
    assert_eq!((open.date.unwrap().year, open.notes.join(" ").contains("can also mean 2010")), (2026, true));
    let settled = declared::from_dump_on(&format!("{card}date: 09/2010\n"), TODAY).unwrap();
    assert_eq!((settled.date, settled.notes), (Some(Date { year: 2010, month: 9 }), vec![]));
    // So does the revision of the EXT_CSD, which sysfs shows: code 4 means 2017 from revision 5 on; 14 means 2011, before there was a revision 8.
    let of = |code: char, rev: &str| {
        let card = format!("type: MMC\ncid: 15010038475446345207123456788{code}00\nrev: {rev}\n");
        let d = declared::from_dump_on(&card, TODAY).unwrap();
        (d.date.unwrap().year, d.notes.len(), d.warnings.join(" ").contains("older than eMMC 5.1 of 2015"))
    };
    assert_eq!((of('4', "0x8"), of('4', "0x4"), of('e', "0x8")), ((2017, 0, false), (2001, 0, false), (2011, 0, true)));
}

#[test]
fn identify_from_registers_on_the_command_line() {
    let args = arguments(&[
        "--cid",
        "02:54:4d:53 41303447113533890900D371",
        "--csd",
        "0x400e00325b5900001d177f800a40008d",
        "--scr",
        "0235800001000000",
    ]);
    let d = collect(&args).unwrap();
    assert_eq!((d.kind, d.name.as_deref(), d.capacity), (Kind::Sd, Some("SA04G"), Some(3_904_897_024)));
    let error = collect(&arguments(&["--ssr", "0400"])).unwrap_err();
    assert_eq!(format!("{error:#}"), "SSR: expected 64 bytes (128 hex digits), found 2 bytes");
    let error = collect(&arguments(&["--scr", "02358000010000zz"])).unwrap_err();
    assert_eq!(format!("{error:#}"), "SCR: expected 8 bytes (16 hex digits), found 'z', which is not a hex digit: copy the digits alone");
    let Some(file) = dump_of("registers/extcsd-samsung-8g-emmc51.txt") else { return };
    let d = collect(&arguments(&["--ext-csd", file.to_str().unwrap()])).unwrap();
    assert_eq!((d.kind, d.declared_au.unwrap().bytes), (Kind::Mmc, 512 * KIB));
    let d = collect(&arguments(&["--cid", "15010038475446345207123456789400", "--bus", "mmc"])).unwrap();
    assert_eq!(d.name.as_deref(), Some("8GTF4R"));
    let error = collect(&arguments(&["--ext-csd", file.to_str().unwrap(), "--scr", "0235800001000000"])).unwrap_err();
    assert!(error.to_string().contains("one card"));
    for wrong in [&[] as &[&str], &["/dev/sda", "--cid", "00"], &["--dump", "x", "--csd", "00"]] {
        assert!(Cli::try_parse_from([&["identify"], wrong].concat()).is_err(), "{wrong:?}");
    }
}

#[test]
fn identify_a_target() {
    let tree = data("sysfs");
    let on = |target: &str| collect(&arguments(&[target, "--sysfs", tree.to_str().unwrap()]));
    assert_eq!(on("mmcblk1").unwrap().name.as_deref(), Some("8GTF4R"));
    assert!(format!("{:#}", on("mmcblk9").unwrap_err()).contains("cannot open mmcblk9"));
    assert_eq!(
        on("/no/such/device").unwrap_err().to_string(),
        "cannot open /no/such/device: No such file or directory (os error 2); 'nandscope list' shows the devices, 'nandscope cards' the simulated cards (sim:NAME)"
    );
    assert!(on(tree.to_str().unwrap()).unwrap_err().to_string().contains("is a folder"));
    // A text is no card; what is no text may be an image of one.
    assert!(on(data("README.md").to_str().unwrap()).unwrap_err().to_string().contains("go to --dump"));
    let image = tempfile::NamedTempFile::new().unwrap();
    image.as_file().set_len(4096).unwrap();
    let file = on(image.path().to_str().unwrap()).unwrap();
    assert_eq!((file.kind, file.notes[0].starts_with("a plain file has no card registers")), (Kind::Other, true));
    assert!(on("sim:any").unwrap_err().to_string().contains("there is no card 'any'"));
    assert!(on("sim:null").unwrap().notes[0].contains("simulated target has no card registers"));
    let error = collect(&arguments(&["--dump", "/no/such/dump"])).unwrap_err();
    assert!(format!("{error:#}").starts_with("cannot read /no/such/dump"), "{error:#}");
}

#[test]
fn serial_numbers_are_left_out_unless_asked_for() {
    let out = std::env::temp_dir().join(format!("nandscope-identify-{}.json", std::process::id()));
    let Some(dump) = dump_of("flashbench/kingston-sa04g-2013_sysfs.txt") else { return };
    let json = |extra: &[&str]| -> String {
        let args = [&["--dump", dump.to_str().unwrap(), "--json", out.to_str().unwrap()], extra].concat();
        run(arguments(&args)).unwrap();
        std::fs::read_to_string(&out).unwrap()
    };
    let hidden = json(&[]);
    assert!(!hidden.contains("35338909") && !hidden.contains("892569865"), "neither hex nor decimal (0x35338909)");
    assert!(hidden.contains("02544d534130344711xxxxxxxx00d371"));
    let shown = json(&["--show-serial"]);
    assert!(shown.contains("\"serial\": \"0x35338909\"") && shown.contains("02544d5341303447113533890900d371"));
    let read_back: Declared = serde_json::from_str(&shown).unwrap();
    assert_eq!(read_back.capacity, Some(3_904_897_024), "a saved declaration can be read again");
    std::fs::remove_file(&out).unwrap();

    let reader = from_tree("sda").without_serial();
    assert!(!text(&reader).contains("000000001404") && !serde_json::to_string(&reader).unwrap().contains("000000001404"));
    assert!(text(&from_tree("sda")).contains("000000001404"));
}

/// A register whose bits are all alike, or whose revision cannot be, comes from no card: an error, where it was pasted.
#[test]
fn impossible_registers_are_refused() {
    let (zeros, ones) = ("0".repeat(32), "f".repeat(32));
    for (option, name) in [("--cid", "CID"), ("--csd", "CSD")] {
        for value in [&zeros, &ones] {
            let e = format!("{:#}", collect(&arguments(&[option, value])).unwrap_err());
            assert!(e.starts_with(&format!("{name}: all bits are alike")) && e.lines().count() == 1, "{e}");
        }
    }
    assert!(declared::from_dump_on(&format!("csd:{ones}\n"), TODAY).is_err());
    let file = std::env::temp_dir().join(format!("nandscope-ext-csd-{}", std::process::id()));
    for (bytes, why) in [(vec![0xff; 512], "all bits are alike"), ((0..512).map(|i| i as u8).collect(), "revision 192")] {
        std::fs::write(&file, bytes).unwrap();
        let e = format!("{:#}", collect(&arguments(&["--ext-csd", file.to_str().unwrap()])).unwrap_err());
        assert!(e.contains(why), "{e}");
    }
    std::fs::remove_file(&file).unwrap();
}

/// What sysfs and debugfs do not show, the card is asked for, and where each register came from is said.
#[test]
fn missing_registers_are_asked_for() {
    let mut asked = vec![];
    let d = live::declared_on(
        &data("sysfs"),
        "mmcblk1boot0",
        TODAY,
        Some(&mut |disk, register| {
            asked.push((disk.to_string(), register));
            Ok(vec![])
        }),
    )
    .unwrap();
    assert_eq!(asked, [], "all is there: {:?}", d.read_from);
    assert_eq!((d.read_from["CSD"].as_str(), d.read_from["EXT_CSD"].as_str()), ("sysfs", "debugfs"));
    assert_eq!(row(&text(&d), "registers"), "CID, CSD from sysfs; EXT_CSD from debugfs");

    // The same machine without debugfs, and a card without SCR and SSR.
    let dir = tempfile::tempdir().unwrap();
    let copy = |from: &str, to: &str| assert!(std::process::Command::new("cp").args(["-a", from, to]).status().unwrap().success());
    copy(data("sysfs").to_str().unwrap(), dir.path().to_str().unwrap());
    let root = dir.path().join("sysfs");
    std::fs::remove_dir_all(root.join("kernel")).unwrap();
    let card = root.join("class/block/mmcblk0/device").canonicalize().unwrap();
    ["scr", "ssr"].iter().for_each(|f| std::fs::remove_file(card.join(f)).unwrap());
    let mut ext_csd = vec![0; 512];
    (ext_csd[175], ext_csd[192], ext_csd[224], ext_csd[269]) = (1, 8, 2, 3);
    let mut asked = vec![];
    let d = live::declared_on(
        &root,
        "mmcblk1boot0",
        TODAY,
        Some(&mut |disk, register| {
            asked.push((disk.to_string(), register));
            Ok(ext_csd.clone())
        }),
    )
    .unwrap();
    assert_eq!(asked, [("mmcblk1".to_string(), Register::ExtCsd)], "the whole disk is asked");
    assert_eq!((d.read_from["EXT_CSD"].as_str(), d.declared_au.unwrap().bytes), ("the card (CMD8)", MIB));
    let d = live::declared_on(
        &root,
        "mmcblk0p1",
        TODAY,
        Some(&mut |_, register| match register {
            Register::Scr => Ok(vec![2; 7]),
            _ => Err("raw commands need root".into()),
        }),
    )
    .unwrap();
    assert!(d.scr.is_none() && d.ssr.is_none());
    for part in ["SSR (ACMD13): not shown by the kernel, and the card could not be asked: raw commands need root", "the answer has 7 bytes"]
    {
        assert!(d.notes.iter().any(|n| n.contains(part)), "{part}: {:?}", d.notes);
    }
    assert_eq!(live::declared(&root, "mmcblk0").unwrap(), declared::from_sysfs(&root, "mmcblk0").unwrap(), "a copy of another machine");
}

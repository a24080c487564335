//! Known troubles: cards that the Linux kernel treats in a special way, and what that means for their owner.
//!
//! Facts of `drivers/mmc/core/quirks.h`, mainline 7.2 and Raspberry Pi's 6.18; the words are our own. SDIO devices are left out. A row
//! applies when everything it names equals the card's; no row has an upper revision, so a card that was mended in a later revision
//! is listed by its date.

use super::declared::Kind;
use super::registers::cid::Cid;
use serde::{Deserialize, Serialize};

/// What a card is known for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trouble {
    /// The kernel's name, without `MMC_QUIRK_`.
    pub quirk: String,
    /// What such cards do.
    pub what: String,
    /// What it means for the user.
    pub advice: String,
    /// False for what a kernel lists as working, such as a command queue that is trusted.
    pub harmful: bool,
    /// Mainline has the row.
    pub mainline: bool,
    /// Raspberry Pi's kernel has the row.
    pub raspberry_pi: bool,
}

/// The bus a row is limited to.
#[derive(Clone, Copy, PartialEq)]
enum On {
    Sd,
    Mmc,
    Any,
}

/// Kernels that have a row.
#[derive(Clone, Copy, PartialEq)]
enum In {
    Both,
    Mainline,
    Pi,
}

struct Row {
    on: On,
    /// Product names of the CID; none: any.
    names: &'static [&'static str],
    manfid: u32,
    oemid: Option<u16>,
    /// First and last year.
    years: Option<(u16, u16)>,
    month: Option<u8>,
    /// Hardware and firmware revision, year and month from which on, compared in this order.
    from: Option<(u8, u8, u16, u8)>,
    ext_csd_rev: Option<u8>,
    quirks: &'static [&'static str],
    within: In,
}

const ROW: Row = Row {
    on: On::Any,
    names: &[],
    manfid: 0,
    oemid: None,
    years: None,
    month: None,
    from: None,
    ext_csd_rev: None,
    quirks: &[],
    within: In::Both,
};

const SAMSUNG_MOVINAND: &[&str] = &["M8G2FA", "MAG4FA", "MBG8FA", "MCGAFA", "VAL00M", "VYL00M", "KYL00M", "VZL00M"];

#[rustfmt::skip]
const ROWS: &[Row] = &[
    Row { on: On::Sd, names: &["SD64G"], manfid: 0x9f, oemid: Some(0x5449), years: Some((2019, 2019)), month: Some(11), quirks: &["BROKEN_SD_CACHE"], within: In::Mainline, ..ROW },
    Row { on: On::Sd, manfid: 0x9f, oemid: Some(0x5449), years: Some((2019, 2022)), quirks: &["BROKEN_SD_CACHE"], within: In::Pi, ..ROW },
    Row { on: On::Sd, names: &["ASTC"], manfid: 0x12, oemid: Some(0x3456), years: Some((2022, 2022)), month: Some(2), quirks: &["BROKEN_SD_CACHE", "BROKEN_SD_POWEROFF_NOTIFY"], ..ROW },
    Row { on: On::Sd, names: &["0016G"], manfid: 0x5d, oemid: Some(0x5342), years: Some((2019, 2019)), month: Some(1), quirks: &["NO_UHS_DDR50_TUNING"], ..ROW },
    Row { on: On::Sd, manfid: 0x03, oemid: Some(0x5344), quirks: &["BROKEN_SD_DISCARD"], ..ROW },
    Row { on: On::Sd, manfid: 0x1b, oemid: Some(0x534d), years: Some((2023, 2023)), quirks: &["BROKEN_SD_CACHE"], within: In::Pi, ..ROW },
    Row { on: On::Sd, manfid: 0x03, oemid: Some(0x5344), years: Some((2019, 2020)), quirks: &["BROKEN_SD_CACHE"], within: In::Pi, ..ROW },
    Row { on: On::Sd, manfid: 0xad, oemid: Some(0x4c53), from: Some((1, 0, 0, 0)), quirks: &["WORKING_SD_CQ"], within: In::Pi, ..ROW },
    Row { on: On::Sd, manfid: 0x74, oemid: Some(0x4a60), from: Some((2, 0, 2026, 4)), quirks: &["WORKING_SD_CQ"], within: In::Pi, ..ROW },
    Row { names: &["SEM02G", "SEM04G", "SEM08G", "SEM16G", "SEM32G"], manfid: 0x02, oemid: Some(0x0100), quirks: &["INAND_CMD38"], ..ROW },
    Row { on: On::Mmc, names: &["SDMB-32", "SDM032"], manfid: 0x02, quirks: &["BLK_NO_CMD23"], ..ROW },
    Row { on: On::Mmc, names: &["MMC08G", "MMC16G", "MMC32G"], manfid: 0x11, quirks: &["BLK_NO_CMD23"], ..ROW },
    Row { on: On::Sd, names: &["AF SD"], manfid: 0x09, quirks: &["BLK_NO_CMD23"], ..ROW },
    Row { on: On::Sd, names: &["APUSD"], manfid: 0x27, oemid: Some(0x5048), quirks: &["BLK_NO_CMD23"], ..ROW },
    Row { on: On::Mmc, manfid: 0x13, oemid: Some(0x0200), quirks: &["LONG_READ_TIME"], ..ROW },
    Row { on: On::Mmc, names: &["008GE0"], manfid: 0x11, quirks: &["LONG_READ_TIME"], ..ROW },
    Row { on: On::Mmc, names: SAMSUNG_MOVINAND, manfid: 0x15, quirks: &["SEC_ERASE_TRIM_BROKEN"], ..ROW },
    Row { on: On::Mmc, names: &["V10008", "V10016"], manfid: 0x70, quirks: &["TRIM_BROKEN"], ..ROW },
    Row { on: On::Mmc, names: &["Q2J54A"], manfid: 0x13, oemid: Some(0x014e), quirks: &["TRIM_BROKEN", "BROKEN_CACHE_FLUSH"], ..ROW },
    Row { on: On::Mmc, names: &["M62704"], manfid: 0x70, oemid: Some(0x0100), quirks: &["TRIM_BROKEN"], ..ROW },
    Row { on: On::Mmc, names: &["IY2964", "IB2932"], manfid: 0x70, oemid: Some(0x0100), quirks: &["FIXED_SECURE_ERASE_TRIM_TIME"], ..ROW },
    Row { names: &["SD16G", "SD32G", "SD64G"], manfid: 0x41, oemid: Some(0x3432), quirks: &["ERASE_BROKEN"], within: In::Pi, ..ROW },
    Row { names: &["SD64G", "SD128", "SD256", "SD512"], manfid: 0x27, oemid: Some(0x5048), quirks: &["ERASE_BROKEN"], within: In::Pi, ..ROW },
    Row { manfid: 0x90, oemid: Some(0x014a), ext_csd_rev: Some(5), quirks: &["BROKEN_HPI"], ..ROW },
    Row { manfid: 0xfe, oemid: Some(0x014e), ext_csd_rev: Some(6), quirks: &["BROKEN_HPI"], ..ROW },
    Row { on: On::Mmc, manfid: 0x45, quirks: &["BROKEN_MDT"], ..ROW },
];

/// What a quirk means: what such cards do, and what follows for the user.
fn meaning(quirk: &str) -> (&'static str, &'static str) {
    match quirk {
        "BROKEN_SD_CACHE" => (
            "accepts a cache flush and never finishes it, at least while the command queue is on",
            "use a kernel that has this row, or keep cache and command queue off",
        ),
        "BROKEN_SD_POWEROFF_NOTIFY" => {
            ("never reports that it is ready to be powered off", "nothing to do: the kernel does not wait for it")
        }
        "NO_UHS_DDR50_TUNING" => ("answers with I/O errors after tuning in DDR50", "nothing to do on kernels that have this row"),
        "BROKEN_SD_DISCARD" => (
            "declares discard and does not carry it out",
            "do not mount with -o discard and do not count on fstrim; erase the card to give space back",
        ),
        "WORKING_SD_CQ" => ("its command queue is trusted", "the kernel switches the queue on: random access gains"),
        "INAND_CMD38" => ("takes the argument of an erase from an EXT_CSD byte", "nothing to do: the kernel sends it so"),
        "BLK_NO_CMD23" => (
            "is slower, or locks up, with counted multi-block transfers (CMD23)",
            "let the driver use open-ended transfers; firmware of your own must not send CMD23",
        ),
        "LONG_READ_TIME" => ("reads take longer than its CSD says", "allow longer time-outs in firmware of your own"),
        "SEC_ERASE_TRIM_BROKEN" => ("a secure erase or trim can destroy it", "never use secure erase or secure trim (blkdiscard --secure)"),
        "TRIM_BROKEN" => ("a trim does not leave zeros, or destroys data", "do not use discard, and do not count on zeros after it"),
        "BROKEN_CACHE_FLUSH" => ("a cache flush without a write before it fails", "nothing to do: the kernel flushes only after writes"),
        "FIXED_SECURE_ERASE_TRIM_TIME" => ("a secure erase takes about 2 s whatever its size", "erase in large pieces"),
        "ERASE_BROKEN" => (
            "small erases can corrupt data beside them",
            "do not mount with -o discard and do not run fstrim; use a kernel that has this row",
        ),
        "BROKEN_HPI" => ("may fail when a high-priority interrupt is used", "nothing to do on kernels that have this row"),
        "BROKEN_MDT" => ("codes its production date in another way", "do not trust the date"),
        _ => ("", ""),
    }
}

/// What the kernel's lists say of the card with this identification; `ext_csd_rev` is byte 192 of an eMMC.
pub fn known(kind: Kind, cid: &Cid, ext_csd_rev: Option<u8>) -> Vec<Trouble> {
    let revision = (cid.hwrev, cid.fwrev, cid.date.year, cid.date.month);
    let applies = |r: &&Row| {
        let bus = match r.on {
            On::Any => true,
            On::Sd => kind == Kind::Sd,
            On::Mmc => kind == Kind::Mmc,
        };
        bus && r.manfid == cid.manfid
            && (r.names.is_empty() || r.names.contains(&cid.name.as_str()))
            && r.oemid.is_none_or(|o| o == cid.oemid)
            && r.years.is_none_or(|(from, to)| (from..=to).contains(&cid.date.year))
            && r.month.is_none_or(|m| m == cid.date.month)
            && r.from.is_none_or(|least| revision >= least)
            && r.ext_csd_rev.is_none_or(|rev| Some(rev) == ext_csd_rev)
    };
    let mut out: Vec<Trouble> = vec![];
    for row in ROWS.iter().filter(applies) {
        for quirk in row.quirks {
            let (mainline, raspberry_pi) = (row.within != In::Pi, row.within != In::Mainline);
            if let Some(same) = out.iter_mut().find(|t| t.quirk == *quirk) {
                same.mainline |= mainline;
                same.raspberry_pi |= raspberry_pi;
                continue;
            }
            let (what, advice) = meaning(quirk);
            let harmful = *quirk != "WORKING_SD_CQ";
            out.push(Trouble { quirk: (*quirk).into(), what: what.into(), advice: advice.into(), harmful, mainline, raspberry_pi });
        }
    }
    out
}

impl std::fmt::Display for Trouble {
    /// `declares discard and does not carry it out (BROKEN_SD_DISCARD in Linux): do not mount ...`
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kernel = match (self.mainline, self.raspberry_pi) {
            (true, _) => "Linux",
            _ => "Raspberry Pi's Linux",
        };
        write!(f, "{} ({} in {kernel}): {}", self.what, self.quirk, self.advice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::registers::{Date, parse_array};

    fn quirks(cid: &str) -> (String, String) {
        let all = known(Kind::Sd, &Cid::sd(&parse_array("CID", cid).unwrap()), None);
        let names = |keep: fn(&Trouble) -> bool| {
            let names: Vec<&str> = all.iter().filter(|t| keep(t)).map(|t| t.quirk.as_str()).collect();
            if names.is_empty() { "-".to_string() } else { names.join("|") }
        };
        (names(|t| t.mainline), names(|t| t.raspberry_pi))
    }

    /// CIDs of real cards (P2-uSD-FS, the linux-mmc list) and what the two kernels' rules give for them.
    #[test]
    fn real_cards() {
        let both = |m: &str, p: &str| (m.to_string(), p.to_string());
        assert_eq!(quirks("ad4c5355534430302035841e2ea19727"), both("-", "WORKING_SD_CQ"), "Longsys 2.0");
        assert_eq!(
            quirks("035344534e31323880f79e34f6013c63"),
            both("BROKEN_SD_DISCARD", "BROKEN_SD_DISCARD|BROKEN_SD_CACHE"),
            "SanDisk 2019"
        );
        assert_eq!(quirks("035054535330384730daaee8ad00f9bb"), both("-", "-"), "SanDisk's id with another OEM");
        assert_eq!(quirks("9f544953443634476136980065013b00"), both("BROKEN_SD_CACHE", "BROKEN_SD_CACHE"), "Kingston 2019/11");
        assert_eq!(quirks("9f54495344363447614b1004af017400"), both("-", "-"), "Kingston 2023/04");
        assert_eq!(quirks("12345641535443002000000f1401764d"), both("-", "-"), "Gigastone 2023/06");
    }

    /// The table of published CIDs, where it lies beside the repository.
    #[test]
    fn published_cases() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/published/quirk-cases.tsv");
        let Ok(text) = std::fs::read_to_string(path) else {
            println!("skipped: no published CIDs beside the repository");
            return;
        };
        let rows: Vec<Vec<&str>> = text.lines().filter(|l| !l.starts_with('#')).skip(1).map(|l| l.split('\t').collect()).collect();
        assert!(rows.len() >= 15);
        for r in rows {
            assert_eq!(quirks(r[1]), (r[5].to_string(), r[6].to_string()), "{}", r[0]);
        }
    }

    #[test]
    fn rows_hold_in_their_bounds_only() {
        let mut cid = Cid::sd(&parse_array("CID", "9f544953443634476136980065013b00").unwrap());
        let at = |cid: &Cid, kind| known(kind, cid, None).iter().map(|t| (t.mainline, t.raspberry_pi)).collect::<Vec<_>>();
        assert_eq!(at(&cid, Kind::Sd), [(true, true)]);
        assert_eq!(at(&cid, Kind::Mmc), [], "a row for SD cards");
        cid.date = Date { year: 2019, month: 10 };
        assert_eq!(at(&cid, Kind::Sd), [(false, true)], "mainline names the month");
        cid.date = Date { year: 2023, month: 1 };
        assert_eq!(at(&cid, Kind::Sd), []);
        // A revision counts before its date.
        (cid.manfid, cid.oemid, cid.hwrev, cid.fwrev) = (0x74, 0x4a60, 2, 0);
        cid.date = Date { year: 2026, month: 3 };
        assert_eq!(at(&cid, Kind::Sd), []);
        cid.fwrev = 1;
        cid.date = Date { year: 2020, month: 1 };
        assert_eq!(at(&cid, Kind::Sd), [(false, true)], "revision 2.1 is newer than 2.0 of any date");
        // eMMC by its EXT_CSD revision.
        (cid.manfid, cid.oemid) = (0x90, 0x014a);
        assert_eq!(known(Kind::Mmc, &cid, Some(5)).len(), 1);
        assert_eq!(known(Kind::Mmc, &cid, Some(6)).len(), 0);
        assert_eq!(known(Kind::Mmc, &cid, None).len(), 0);
    }

    #[test]
    fn every_quirk_has_a_meaning() {
        for quirk in ROWS.iter().flat_map(|r| r.quirks) {
            let (what, advice) = meaning(quirk);
            assert!(!what.is_empty() && !advice.is_empty(), "{quirk}");
        }
    }
}

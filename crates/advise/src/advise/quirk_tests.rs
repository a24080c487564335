use super::*;
use crate::finding::Finding;
use crate::host::registers::parse_array;
use crate::samples::{Run, Sample};
use crate::saved::bare as report;
use crate::units::Nanos;

/// A card that no list names: Lexar's published CID (P2-uSD-FS), with the OEM id of nobody.
fn cid() -> Cid {
    Cid::sd(&parse_array("CID", "c94d604d535344306134490f1ea194b1").unwrap())
}

fn effect(ratio: f64, half: f64) -> Effect {
    let [low, high] = [ratio * (1.0 - half), ratio * (1.0 + half)];
    let verdict = match () {
        _ if high < 1.0 => Verdict::Faster,
        _ if low > 1.03 => Verdict::Slower,
        _ if low > 0.97 && high < 1.03 => Verdict::NoDifference,
        _ => Verdict::Undecided,
    };
    Effect { pairs: 24, ratio, interval: [low, high], p: 0.001, alpha: 0.05, margin: 0.03, noise: [0.0; 2], verdict }
}

fn compared(a: &str, b: &str, ratio: f64, half: f64, wrong: [u64; 2]) -> Compared {
    let settings = [a.to_string(), b.to_string()];
    Compared { settings, load: "linear".into(), effect: Some(effect(ratio, half)), checked: [1 << 24; 2], wrong, simulated: false }
}

fn judge(kind: Kind, reports: &[Report], all: &[Compared]) -> Vec<Proposal> {
    proposals(&Evidence { kind, cid: &cid(), ext_csd_rev: None, reports, compared: all })
}

fn of<'a>(all: &'a [Proposal], quirk: &str) -> &'a Proposal {
    all.iter().find(|p| p.quirk == quirk).unwrap()
}

#[test]
fn nothing_measured_proposes_nothing_and_says_what_would_decide() {
    let all = judge(Kind::Sd, &[], &[]);
    assert!(all.iter().all(|p| p.support == Support::NotMeasured && p.entry.is_none()), "{all:?}");
    assert!(of(&all, "BLK_NO_CMD23").why.contains("nandscope ab DEVICE"));
}

/// Both sides, whichever of the settings is A: slower or broken proposes; faster, alike, uncertain and wrong with both do not.
#[test]
fn cmd23_is_proposed_where_it_costs_or_breaks() {
    for (a, b, turn) in [("cmd23=off", "cmd23=on", false), ("cmd23=on", "cmd23=off", true)] {
        let ratio = |r: f64| if turn { 1.0 / r } else { r };
        let wrong = |on: u64, off: u64| if turn { [on, off] } else { [off, on] };
        let one = |r: f64, half: f64, w: [u64; 2]| judge(Kind::Sd, &[], &[compared(a, b, ratio(r), half, w)])[0].clone();
        assert_eq!(one(1.4, 0.05, [0, 0]).support, Support::Supported);
        assert_eq!(one(0.8, 0.05, [0, 0]).support, Support::NotSupported);
        assert_eq!(one(1.0, 0.02, [0, 0]).support, Support::NotSupported);
        assert_eq!(one(1.02, 0.2, [0, 0]).support, Support::NotMeasured);
        let broken = one(1.0, 0.02, wrong(4096, 0));
        assert!(broken.support == Support::Supported && broken.why.contains("did not read back"), "{broken:?}");
        assert_eq!(one(1.0, 0.02, wrong(4096, 4096)).support, Support::NotSupported, "wrong with both is not CMD23's doing");
    }
    // By the experiment's own finding.
    let found = |gain: f64, confidence: f64| {
        let r = report(vec![Finding::decided(Quantity::PreDefinedGain, gain, confidence)]);
        judge(Kind::Mmc, std::slice::from_ref(&r), &[])[0].support
    };
    assert_eq!(
        [found(0.7, 0.98), found(0.7, 0.8), found(1.0, 0.98), found(1.3, 0.98)],
        [Support::Supported, Support::NotMeasured, Support::NotSupported, Support::NotSupported]
    );
}

#[test]
fn discards_that_reach_further_are_proposed_and_healthy_ones_are_not() {
    for (kind, quirk) in [(Kind::Sd, "BROKEN_SD_DISCARD"), (Kind::Mmc, "TRIM_BROKEN")] {
        let one = |wrong| of(&judge(kind, &[], &[compared("default", "discard=on", 1.0, 0.02, wrong)]), quirk).clone();
        assert_eq!(one([0, 512]).support, Support::Supported);
        assert_eq!(one([0, 0]).support, Support::NotSupported);
        let both = one([512, 512]);
        assert!(both.support == Support::NotMeasured && both.why.contains("default"), "{both:?}");
    }
}

#[test]
fn long_reads_and_failing_flushes() {
    let mut r = report(vec![]);
    let mut run = Run::new("read-boundary");
    let read = |i: u64, ms: u64| Sample {
        cell: 0,
        trial: i as u32,
        role: 0,
        op: Op::Read,
        at: 0,
        len: 4096,
        start: Nanos(0),
        took: Nanos(ms * 1_000_000),
    };
    run.samples.extend((0..50).map(|i| read(i, 1)));
    r.runs.push(run);
    let says = |r: &Report, quirk| of(&judge(Kind::Sd, std::slice::from_ref(r), &[]), quirk).clone();
    assert!(says(&r, "LONG_READ_TIME").why.contains("the longest of 50"));
    r.runs[0].samples.extend((0..5).map(|i| read(i, 400)));
    let p = says(&r, "LONG_READ_TIME");
    assert!(p.why.contains("5 of 55 reads") && p.entry.is_none() && p.why.contains("for MMC only"), "{p:?}");
    assert_eq!(says(&r, "BROKEN_SD_CACHE").support, Support::NotMeasured);
    r.runs[0].faults.push("flush of 0 bytes at 0 failed: Connection timed out (os error 110)".into());
    let p = says(&r, "BROKEN_SD_CACHE");
    assert!(p.support == Support::Supported && p.entry.as_ref().unwrap().table == "mmc_sd_fixups", "{p:?}");
}

/// As the kernel's file is built, in few lines of our own.
const FILE: &str = "#include \"card.h\"

static const struct mmc_fixup __maybe_unused mmc_sd_fixups[] = {
\tMMC_FIXUP(CID_NAME_ANY, 0x01, 0x0002, add_quirk_sd,
\t\t  MMC_QUIRK_BROKEN_SD_DISCARD),

\tEND_FIXUP
};

static const struct mmc_fixup __maybe_unused mmc_blk_fixups[] = {
#define SOMETHING 1
\tEND_FIXUP
};
";

#[test]
fn the_patch_applies_and_names_the_card() {
    let both = [compared("cmd23=off", "cmd23=on", 1.4, 0.05, [0, 0]), compared("default", "discard=on", 1.0, 0.02, [0, 512])];
    let all = judge(Kind::Sd, &[], &both);
    let entries: Vec<&Entry> = all.iter().filter_map(|p| p.entry.as_ref()).collect();
    assert_eq!(entries.iter().map(|e| e.table).collect::<Vec<_>>(), ["mmc_blk_fixups", "mmc_sd_fixups"]);
    let text = patch(FILE, &entries).unwrap();
    let c = cid();
    let name = format!("_FIXUP_EXT(\"{}\", {:#04x}, {:#06x}, {}, {},", c.name, c.manfid, c.oemid, c.date.year, c.date.month);
    assert!(text.matches(&name).count() == 2 && text.contains("MMC_QUIRK_BLK_NO_CMD23, EXT_CSD_REV_ANY),"), "{text}");
    // git applies it, whatever its own idea of the file is.
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(dir.path().join("drivers/mmc/core")).unwrap();
    let file = dir.path().join("drivers/mmc/core/quirks.h");
    std::fs::write(&file, FILE).unwrap();
    std::fs::write(dir.path().join("p.patch"), &text).unwrap();
    let done = std::process::Command::new("git").args(["apply", "--verbose", "p.patch"]).current_dir(dir.path()).output();
    let Ok(done) = done else {
        println!("skipped: no git to apply a patch with");
        return;
    };
    assert!(done.status.success(), "{}\n{text}", String::from_utf8_lossy(&done.stderr));
    let now = std::fs::read_to_string(&file).unwrap();
    assert_eq!(now.matches("END_FIXUP").count(), 2);
    assert!(now.find("BROKEN_SD_DISCARD, EXT_CSD").unwrap() < now.find("mmc_blk_fixups").unwrap());
    assert!(patch("int main;\n", &entries).unwrap_err().contains("no table"));
}

#[test]
fn what_the_kernel_lists_is_not_proposed_again() {
    // SanDisk: broken discard is listed for all of them.
    let sandisk = Cid::sd(&parse_array("CID", "035344414747434580dd1c1144011355").unwrap());
    let all = [compared("default", "discard=on", 1.0, 0.02, [0, 512])];
    let p = proposals(&Evidence { kind: Kind::Sd, cid: &sandisk, ext_csd_rev: None, reports: &[], compared: &all });
    let p = of(&p, "BROKEN_SD_DISCARD");
    assert!(p.listed && p.support == Support::Supported && p.entry.is_none(), "{p:?}");
}

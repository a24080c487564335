use super::*;

#[test]
fn every_entry_is_complete_and_itself() {
    for (i, q) in Quantity::ALL.into_iter().enumerate() {
        let r = q.row();
        assert_eq!((q as usize, serde_json::to_value(q).unwrap()), (i, r.key.into()), "{q}");
        assert!(!r.title.is_empty() && r.title.chars().count() < 22, "{q}: it has a column of 22 letters");
        for text in std::iter::once(r.what).chain(r.means.iter().map(|m| m.1)) {
            assert!(text.ends_with('.') && text.len() > 20, "{q}: {text}");
        }
        // What applies always stands last, so that nothing behind it is never said.
        assert!(r.means.iter().rev().skip(1).all(|m| m.0 != When::Always), "{q}");
        assert_eq!(r.unit == Unit::Code, !r.codes.is_empty(), "{q}: a choice has words, and nothing else has");
        assert!(r.codes.windows(2).all(|w| w[0].0 < w[1].0), "{q}: codes in order");
    }
    let mut keys: Vec<&str> = TABLE.iter().map(|r| r.key).collect();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), Quantity::ALL.len());
}

#[test]
fn values_as_people_write_them() {
    use Quantity::*;
    for (q, v, shown) in [
        (EraseBlock, 4_194_304.0, "4 MiB"),
        (FatZone, 0.0, "none"),
        (FatZone, 8192.0, "8 KiB"),
        (Page, 0.0, "0 B"),
        (OpenAusLinear, 0.0, "0"),
        (OpenAusRandom, 5.0, "5"),
        (OddRegions, 0.0, "none"),
        (OddRegions, 3.0, "3"),
        (CloseCostMs, 12.5, "12.5 ms"),
        (AccessTimeUs, 588.0, "588 µs"),
        (ReadRate, 22_200_000.0, "22.2 MB/s"),
        (MultiBlockGain, 1.0, "1.00x"),
        (ContentGain, 1.0, "none"),
        (ContentGain, 2.0, "2.00x"),
        (RewritePolicy, 0.0, "none"),
        (RewritePolicy, 1.0, "at the end"),
        (RewritePolicy, 2.0, "full buffer"),
        (Mapping, 1.0, "block-mapped"),
        (Mapping, 3.0, "read-modify-write"),
        (Mapping, 7.0, "read-modify-write"),
        (ChipClass, 1.0, "small pages"),
        (ChipClass, 2.0, "large or MLC"),
    ] {
        assert_eq!(q.show(v), shown, "{q}");
    }
}

/// An interval is in the unit of the value beside it.
#[test]
fn intervals_have_the_unit_of_their_value() {
    let [mib, gib] = [f64::from(1 << 20), f64::from(1 << 30)];
    for (lo, hi, shown) in [
        (8.0 * 1024.0, 12.0 * 1024.0, "8.00 to 12.0 KiB"),
        (518.0 * mib, 526.0 * mib, "518 to 526 MiB"),
        (0.9 * gib, 1.1 * gib, "922 to 1126 MiB"),
        (1579.0 * mib, 2233.0 * mib, "1.54 to 2.18 GiB"),
        (2047.7 * mib, 2048.3 * mib, "2047.7 to 2048.3 MiB"),
    ] {
        assert_eq!(Quantity::MapWindowRead.range(lo, hi), shown);
    }
}

use super::*;
use proptest::prelude::*;

fn put(b: &mut [u8], at: usize, value: u64, bytes: usize) {
    b[at..at + bytes].copy_from_slice(&value.to_le_bytes()[..bytes]);
}

/// A boot sector with this many clusters of `per` sectors; FAT32 form from 65525 on.
fn boot(clusters: u64, per: u64, label: &[u8; 11]) -> Vec<u8> {
    let mut b = vec![0; 512];
    b[..3].copy_from_slice(&[0xeb, 0x58, 0x90]);
    put(&mut b, 11, 512, 2);
    b[13] = per as u8;
    b[16] = 2;
    b[21] = 0xf8;
    b[510..].copy_from_slice(&[0x55, 0xaa]);
    let (bits, form32) = if clusters < 4085 { (12, false) } else { (if clusters < 65525 { 16 } else { 32 }, clusters >= 65525) };
    let fat = ((clusters + 2) * bits).div_ceil(8 * 512);
    let (reserved, root, ext) = if form32 { (32, 0, 66) } else { (4, 512, 38) };
    put(&mut b, 14, reserved, 2);
    put(&mut b, 17, root, 2);
    put(&mut b, if form32 { 36 } else { 22 }, fat, if form32 { 4 } else { 2 });
    put(&mut b, 32, reserved + 2 * fat + root * 32 / 512 + clusters * per, 4);
    if form32 {
        put(&mut b, 44, 2, 4);
    }
    b[ext] = 0x29;
    put(&mut b, ext + 1, 0x1234_5678, 4);
    b[ext + 5..ext + 16].copy_from_slice(label);
    b
}

#[test]
fn the_type_follows_from_the_number_of_clusters() {
    for (clusters, kind) in [
        (1, FatType::Fat12),
        (4084, FatType::Fat12),
        (4085, FatType::Fat16),
        (65524, FatType::Fat16),
        (65525, FatType::Fat32),
        (1 << 20, FatType::Fat32),
    ] {
        let v = recognise(&boot(clusters, 8, b"CAMERA     ")).unwrap();
        assert_eq!((v.kind, u64::from(v.clusters), v.cluster), (kind, clusters, 4096));
        assert_eq!((v.label.as_deref(), v.serial, v.too_few_clusters), (Some("CAMERA"), 0x1234_5678, false));
        assert_eq!(v.size, v.data_start + clusters * 4096);
    }
}

#[test]
fn the_parts_lie_where_the_specification_puts_them() {
    // 65536 clusters of 64 sectors: 32 reserved, two tables of 513 sectors.
    let v = recognise(&boot(65536, 64, b"NO NAME    ")).unwrap();
    assert_eq!((v.fat_start, v.fat_length, v.data_start, v.cluster), (32 * 512, 513 * 512, (32 + 2 * 513) * 512, 32768));
    assert_eq!((v.label, v.root_start, v.root_cluster), (None, None, Some(2)));
    // 5000 clusters: 4 reserved, two tables of 20 sectors, a root directory of 32 sectors.
    let v = recognise(&boot(5000, 4, b"NO NAME    ")).unwrap();
    assert_eq!((v.fat_start, v.root_start, v.data_start), (4 * 512, Some(44 * 512), 76 * 512));
}

#[test]
fn fat32_form_with_too_few_clusters_is_fat32_with_a_mark() {
    let mut b = boot(70000, 1, b"NO NAME    ");
    // The same tables for fewer sectors: 30000 clusters are left.
    let total = u64::from(u32_at(&b, 32)) - 40000;
    put(&mut b, 32, total, 4);
    let v = recognise(&b).unwrap();
    assert_eq!((v.kind, v.clusters, v.too_few_clusters), (FatType::Fat32, 30000, true));
}

fn exfat_boot() -> Vec<u8> {
    let mut b = vec![0; 512];
    b[..11].copy_from_slice(b"\xeb\x76\x90EXFAT   ");
    put(&mut b, 72, 249_724_928, 8);
    put(&mut b, 80, 16384, 4);
    put(&mut b, 84, 16384, 4);
    put(&mut b, 88, 32768, 4);
    put(&mut b, 92, 975_360, 4);
    put(&mut b, 96, 4, 4);
    put(&mut b, 100, 0xcafe_f00d, 4);
    b[108..111].copy_from_slice(&[9, 8, 1]);
    b[510..].copy_from_slice(&[0x55, 0xaa]);
    b
}

#[test]
fn exfat_of_a_128_gb_card() {
    let v = recognise(&exfat_boot()).unwrap();
    assert_eq!((v.kind, v.cluster, v.data_start, v.fat_start, v.fat_length), (FatType::ExFat, 128 << 10, 16 << 20, 8 << 20, 8 << 20));
    assert_eq!((v.clusters, v.root_cluster, v.serial, v.size), (975_360, Some(4), 0xcafe_f00d, 249_724_928 * 512));
}

#[test]
fn each_broken_field_is_named() {
    let fat: [(usize, u64, usize, &str); 10] = [
        (11, 500, 2, "BPB_BytsPerSec"),
        (13, 0, 1, "BPB_SecPerClus"),
        (13, 3, 1, "BPB_SecPerClus"),
        (14, 0, 2, "BPB_RsvdSecCnt"),
        (16, 0, 1, "BPB_NumFATs"),
        (21, 0x12, 1, "BPB_Media"),
        (36, 0, 4, "BPB_FATSz32"),
        (36, 9, 4, "BPB_FATSz32"),
        (32, 5, 4, "BPB_TotSec32"),
        (44, 1, 4, "BPB_RootClus"),
    ];
    for (at, value, bytes, field) in fat {
        let mut b = boot(70000, 8, b"NO NAME    ");
        put(&mut b, at, value, bytes);
        assert_eq!(recognise(&b), Err(NotFat::Field(field)), "{at}");
    }
    let exfat: [(usize, u64, usize, &str); 10] = [
        (40, 1, 1, "MustBeZero"),
        (108, 8, 1, "BytesPerSectorShift"),
        (109, 17, 1, "SectorsPerClusterShift"),
        (110, 3, 1, "NumberOfFats"),
        (72, 100, 8, "VolumeLength"),
        (80, 23, 4, "FatOffset"),
        (84, 1, 4, "FatLength"),
        (88, 16384, 4, "ClusterHeapOffset"),
        (92, 976_000, 4, "ClusterCount"),
        (96, 1, 4, "FirstClusterOfRootDirectory"),
    ];
    for (at, value, bytes, field) in exfat {
        let mut b = exfat_boot();
        put(&mut b, at, value, bytes);
        assert_eq!(recognise(&b), Err(NotFat::Field(field)), "{at}");
    }
    assert_eq!(recognise(&[0; 511]), Err(NotFat::Short));
    assert_eq!(recognise(&[0; 512]), Err(NotFat::Signature));
}

proptest! {
    /// Whatever is changed in a good boot sector: no panic, and what is recognised fits into the volume it describes.
    #[test]
    fn arbitrary_bytes_never_panic_and_never_overlap(
        base in 0..4usize, edits in proptest::collection::vec((0..512usize, any::<u8>()), 0..24),
    ) {
        let mut b = [boot(3000, 4, b"A          "), boot(9000, 4, b"B          "), boot(80000, 4, b"C          "), exfat_boot()][base].clone();
        for (at, value) in edits {
            b[at] = value;
        }
        if let Ok(v) = recognise(&b) {
            prop_assert!(v.fat_start + u64::from(v.fats) * v.fat_length <= v.data_start);
            prop_assert!(u128::from(v.data_start) + u128::from(v.clusters) * u128::from(v.cluster) <= u128::from(v.size));
            // Where a cluster lies and which lies there are one rule, up to the last of them.
            for c in [2, v.clusters / 2 + 2, v.clusters + 1] {
                let at = v.place(c);
                prop_assert!(at == v.data_start + u64::from(c - 2) * v.cluster);
                prop_assert!([at, at + v.cluster - 1].iter().all(|&a| v.cluster_at(a) == Some(c)));
            }
            prop_assert_eq!(v.data_start.checked_sub(1).and_then(|a| v.cluster_at(a)), None);
        }
    }

    #[test]
    fn noise_never_panics(mut b in proptest::collection::vec(any::<u8>(), 0..1024)) {
        if b.len() >= 512 {
            b[510..512].copy_from_slice(&[0x55, 0xaa]);
            b[0] = 0xe9;
        }
        let _ = recognise(&b);
    }
}

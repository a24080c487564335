//! Partition tables, FAT, exFAT, ext4, F2FS, btrfs and swap on a disk that begins with these bytes; audited and drawn.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nandscope::layout::audit::audit;
use nandscope::layout::penalty::Penalties;
use nandscope::layout::{Grid, Source, disk, draw};

fuzz_target!(|data: &[u8]| {
    let size = 1u64 << 36;
    let mut read = |at: u64, len: usize| {
        let len = len.min(usize::try_from(size.checked_sub(at)?).ok()?).min(8 << 20);
        let mut out = vec![0; len];
        let have = data.get(usize::try_from(at).ok()?..).unwrap_or(&[]);
        let n = have.len().min(len);
        out[..n].copy_from_slice(&have[..n]);
        Some(out)
    };
    let found = disk::parse(&mut read, 0, size, 512, false);
    let grid = Grid { unit: 4 << 20, first: 0, source: Source::Given };
    draw::draw(&found, &grid);
    audit(found, grid, &Penalties { write_unit: Some(16384), open: Some(2), ..Penalties::default() });
});

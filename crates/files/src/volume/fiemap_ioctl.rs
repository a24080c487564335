//! FIEMAP: where the filesystem keeps a file (kernel documentation, filesystems/fiemap).

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// `_IOWR('f', 11, struct fiemap)` of `linux/fs.h`.
const FS_IOC_FIEMAP: libc::c_ulong = 0xc020_660b;
/// Extents asked for at a time.
const MOST: usize = 512;
/// `struct fiemap` is four 8-byte words, each `struct fiemap_extent` behind it seven.
const HEAD: usize = 4;
const EACH: usize = 7;
const LAST: u64 = 0x1;
/// The place is not known, not given out yet, or not that of plain data (encoded, inline in the inode).
const NO_PLACE: u64 = 0x2 | 0x4 | 0x8 | 0x200;

/// Pieces of a file: place in the file, place on the medium, length, all in bytes. Holes and pieces without a place of their
/// own are left out.
///
/// # Errors
/// `EOPNOTSUPP` or `ENOTTY` where the filesystem cannot tell.
pub fn extents(file: BorrowedFd<'_>) -> io::Result<Vec<(u64, u64, u64)>> {
    let mut all = vec![];
    let mut from = 0u64;
    loop {
        let mut words = vec![0u64; HEAD + MOST * EACH];
        words[0] = from;
        words[1] = u64::MAX - from;
        // fm_flags and fm_mapped_extents are 0; fm_extent_count is the low half of the fourth word on little-endian machines.
        let count = (MOST as u32).to_ne_bytes();
        words[3] = u64::from_ne_bytes([count[0], count[1], count[2], count[3], 0, 0, 0, 0]);
        // SAFETY: FIEMAP writes the head and at most fm_extent_count extents behind it, for which `words` has room.
        let rc = unsafe { libc::ioctl(file.as_raw_fd(), FS_IOC_FIEMAP as _, words.as_mut_ptr()) };
        if rc != 0 {
            return Err(io::Error::last_os_error());
        }
        let mapped = words[2].to_ne_bytes();
        let mapped = u32::from_ne_bytes([mapped[4], mapped[5], mapped[6], mapped[7]]) as usize;
        let mut last = mapped == 0;
        for e in words[HEAD..].chunks_exact(EACH).take(mapped.min(MOST)) {
            let half = e[5].to_ne_bytes();
            let flags = u64::from(u32::from_ne_bytes([half[0], half[1], half[2], half[3]]));
            if flags & NO_PLACE == 0 {
                all.push((e[0], e[1], e[2]));
            }
            last |= flags & LAST != 0;
            from = e[0].saturating_add(e[2].max(1));
        }
        if last {
            return Ok(all);
        }
    }
}

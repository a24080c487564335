//! Where a mounted filesystem has free space (GETFSMAP, kernel documentation `ioctl_getfsmap(2)`), and where it keeps one block
//! of a file (FIBMAP, for filesystems without FIEMAP).

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// `_IOWR('X', 59, struct fsmap_head)` of `linux/fsmap.h`.
const FS_IOC_GETFSMAP: libc::c_ulong = 0xc0c0_583b;
/// `_IO(0x00, 1)` and `_IO(0x00, 2)` of `linux/fs.h`.
const FIBMAP: libc::c_ulong = 1;
const FIGETBSZ: libc::c_ulong = 2;
/// Records asked for at a time.
const MOST: usize = 512;
/// `struct fsmap_head` without its two keys is eight 8-byte words, each `struct fsmap` eight, too.
const HEAD: usize = 8;
const EACH: usize = 8;
/// The owner is one of the kernel's own codes; that of free space.
const SPECIAL: u32 = 0x10;
const FREE: u64 = 1;
const LAST: u32 = 0x20;

fn halves(word: u64) -> (u32, u32) {
    let b = word.to_ne_bytes();
    (u32::from_ne_bytes([b[0], b[1], b[2], b[3]]), u32::from_ne_bytes([b[4], b[5], b[6], b[7]]))
}

fn word(low: u32, high: u32) -> u64 {
    let (a, b) = (low.to_ne_bytes(), high.to_ne_bytes());
    u64::from_ne_bytes([a[0], a[1], a[2], a[3], b[0], b[1], b[2], b[3]])
}

/// Free pieces of the filesystem `file` lies on: place and length in bytes, ascending.
///
/// # Errors
/// `EOPNOTSUPP` or `ENOTTY` where the filesystem cannot tell (ext4 and XFS can).
pub fn free(file: BorrowedFd<'_>) -> io::Result<Vec<(u64, u64)>> {
    let mut out = vec![];
    let mut low = [0u64; EACH];
    loop {
        let mut words = vec![0u64; HEAD + (2 + MOST) * EACH];
        words[1] = word(MOST as u32, 0);
        words[HEAD..HEAD + EACH].copy_from_slice(&low);
        // The second key: everything.
        words[HEAD + EACH..HEAD + EACH + 5].fill(u64::MAX);
        // SAFETY: GETFSMAP reads the head with its two keys and writes at most fmh_count records, for which `words` has room.
        let rc = unsafe { libc::ioctl(file.as_raw_fd(), FS_IOC_GETFSMAP as _, words.as_mut_ptr()) };
        if rc != 0 {
            return Err(io::Error::last_os_error());
        }
        let (_, got) = halves(words[1]);
        let records = &words[HEAD + 2 * EACH..][..(got as usize).min(MOST) * EACH];
        let mut last = got == 0;
        for r in records.chunks_exact(EACH) {
            let (_, flags) = halves(r[0]);
            if flags & SPECIAL != 0 && r[2] == FREE {
                out.push((r[1], r[4]));
            }
            last |= flags & LAST != 0;
            low.copy_from_slice(r);
        }
        if last {
            return Ok(out);
        }
    }
}

/// Pieces of a file, asked for a block every `step` bytes: place in the file, place on the medium, length, in bytes; neighbours
/// are not joined. Holes are left out.
///
/// # Errors
/// `EINVAL` where the filesystem cannot tell, `EPERM` without root.
pub fn blocks(file: BorrowedFd<'_>, len: u64, step: u64) -> io::Result<Vec<(u64, u64, u64)>> {
    let mut size: libc::c_int = 0;
    // SAFETY: FIGETBSZ writes one int.
    if unsafe { libc::ioctl(file.as_raw_fd(), FIGETBSZ as _, &raw mut size) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let size = u64::try_from(size).unwrap_or(0).max(1);
    let step = step.next_multiple_of(size).max(size);
    let mut out = vec![];
    for at in (0..len).step_by(step as usize) {
        let Ok(mut block) = libc::c_int::try_from(at / size) else { break };
        // SAFETY: FIBMAP reads and writes one int.
        if unsafe { libc::ioctl(file.as_raw_fd(), FIBMAP as _, &raw mut block) } != 0 {
            return Err(io::Error::last_os_error());
        }
        // 0 = a hole.
        if block != 0 {
            out.push((at, u64::from(block.unsigned_abs()) * size, step));
        }
    }
    Ok(out)
}

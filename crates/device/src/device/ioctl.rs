//! The system calls for which there is no safe wrapper.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// `_IO(0x12, 119)` of `linux/fs.h`; takes `uint64_t[2]`: start and length in bytes.
const BLKDISCARD: libc::c_ulong = 0x1277;
/// `_IO(0x12, 125)`, the same arguments.
const BLKSECDISCARD: libc::c_ulong = 0x127d;

/// Tells the device that `len` bytes at `start` are no longer needed; with `secure`, that they must not be readable any more.
///
/// # Errors
/// `EOPNOTSUPP` where the device has no such discard, `EBADF` on a read-only descriptor, `EINVAL` off the sector grid.
pub fn discard(fd: BorrowedFd<'_>, start: u64, len: u64, secure: bool) -> io::Result<()> {
    let range = [start, len];
    let request = if secure { BLKSECDISCARD } else { BLKDISCARD };
    // SAFETY: both requests read two u64 from the pointer, which `range` provides for the length of the call.
    let rc = unsafe { libc::ioctl(fd.as_raw_fd(), request as _, range.as_ptr()) };
    if rc == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// `_IO(0x12, 95)`; no argument.
const BLKRRPART: libc::c_ulong = 0x125f;

/// Makes the kernel read the partition table of a disk again.
///
/// # Errors
/// `EBUSY` while a partition is in use, `EINVAL` where the disk has no partitions (loop devices without them, partitions).
pub fn read_table_again(fd: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: the request takes no argument.
    let rc = unsafe { libc::ioctl(fd.as_raw_fd(), BLKRRPART as _, 0) };
    if rc == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Puts the calling thread into SCHED_FIFO at `priority` (1 to 99); threads and programs it starts do not inherit it.
///
/// # Errors
/// `EPERM` without CAP_SYS_NICE and without a fitting RLIMIT_RTPRIO.
pub fn fifo(priority: i32) -> io::Result<()> {
    // The kernel's own call and its parameter block of one number: musl has no such function.
    let param: libc::c_int = priority;
    // SAFETY: pid 0 is the calling thread; the parameter block is valid for the length of the call.
    let rc = unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, &raw const param) };
    if rc == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

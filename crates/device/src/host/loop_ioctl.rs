//! The ioctls of loop devices (`linux/loop.h`), for which there is no safe wrapper.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

const LOOP_CLR_FD: libc::c_ulong = 0x4c01;
const LOOP_GET_STATUS64: libc::c_ulong = 0x4c05;
const LOOP_CONFIGURE: libc::c_ulong = 0x4c0a;
const LOOP_CTL_ADD: libc::c_ulong = 0x4c80;
const LOOP_CTL_REMOVE: libc::c_ulong = 0x4c81;
const LOOP_CTL_GET_FREE: libc::c_ulong = 0x4c82;

/// Make the partitions on the device visible.
pub const PARTSCAN: u32 = 8;
/// Bypass the page cache of the file behind the device.
pub const DIRECT_IO: u32 = 16;
/// Bytes of the free text that a loop device keeps.
pub const LABEL: usize = 64;

/// `struct loop_info64`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Info {
    device: u64,
    inode: u64,
    rdevice: u64,
    offset: u64,
    size_limit: u64,
    number: u32,
    encrypt_type: u32,
    encrypt_key_size: u32,
    flags: u32,
    file_name: [u8; LABEL],
    crypt_name: [u8; 64],
    encrypt_key: [u8; 32],
    init: [u64; 2],
}

impl Info {
    const EMPTY: Info = Info {
        device: 0,
        inode: 0,
        rdevice: 0,
        offset: 0,
        size_limit: 0,
        number: 0,
        encrypt_type: 0,
        encrypt_key_size: 0,
        flags: 0,
        file_name: [0; LABEL],
        crypt_name: [0; 64],
        encrypt_key: [0; 32],
        init: [0; 2],
    };
}

/// `struct loop_config`.
#[repr(C)]
struct Config {
    fd: u32,
    block_size: u32,
    info: Info,
    reserved: [u64; 8],
}

/// What a loop device says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// The text it was labelled with.
    pub label: String,
    /// [`DIRECT_IO`] and other flags.
    pub flags: u32,
}

fn call(fd: BorrowedFd<'_>, request: libc::c_ulong, number: libc::c_long) -> io::Result<u32> {
    // SAFETY: the requests passed here take a number, not a pointer.
    let rc = unsafe { libc::ioctl(fd.as_raw_fd(), request as _, number) };
    u32::try_from(rc).map_err(|_| io::Error::last_os_error())
}

/// Makes a new loop device and gives its number. `control` is /dev/loop-control.
///
/// # Errors
/// `EPERM` without privileges.
pub fn add(control: BorrowedFd<'_>) -> io::Result<u32> {
    call(control, LOOP_CTL_ADD, -1)
}

/// Removes an unused loop device.
///
/// # Errors
/// `EBUSY` while it is in use.
pub fn remove(control: BorrowedFd<'_>, number: u32) -> io::Result<()> {
    call(control, LOOP_CTL_REMOVE, number.into()).map(drop)
}

/// The number of a loop device that nothing is attached to.
///
/// # Errors
/// None is left and none can be made.
pub fn free(control: BorrowedFd<'_>) -> io::Result<u32> {
    call(control, LOOP_CTL_GET_FREE, 0)
}

/// Attaches a file to a loop device. `block_size` in bytes is the grain of requests, `label` at most 63 bytes.
///
/// # Errors
/// `EBUSY` where something is attached already.
pub fn configure(device: BorrowedFd<'_>, file: BorrowedFd<'_>, block_size: u32, flags: u32, label: &str) -> io::Result<()> {
    let mut info = Info { flags, ..Info::EMPTY };
    let n = label.len().min(LABEL - 1);
    info.file_name[..n].copy_from_slice(&label.as_bytes()[..n]);
    let config = Config { fd: file.as_raw_fd() as u32, block_size, info, reserved: [0; 8] };
    // SAFETY: LOOP_CONFIGURE reads one `struct loop_config`, whose layout `Config` has, for the length of the call.
    let rc = unsafe { libc::ioctl(device.as_raw_fd(), LOOP_CONFIGURE as _, &raw const config) };
    if rc == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Label and flags of a loop device.
///
/// # Errors
/// `ENXIO` where nothing is attached.
pub fn status(device: BorrowedFd<'_>) -> io::Result<Status> {
    let mut info = Info::EMPTY;
    // SAFETY: LOOP_GET_STATUS64 writes one `struct loop_info64`, whose layout `Info` has; any bytes are a valid `Info`.
    let rc = unsafe { libc::ioctl(device.as_raw_fd(), LOOP_GET_STATUS64 as _, &raw mut info) };
    if rc != 0 {
        return Err(io::Error::last_os_error());
    }
    let end = info.file_name.iter().position(|&b| b == 0).unwrap_or(LABEL);
    Ok(Status { label: String::from_utf8_lossy(&info.file_name[..end]).into_owned(), flags: info.flags })
}

/// Detaches the file: at once where nobody else has the device open, else when the last one closes it.
///
/// # Errors
/// `ENXIO` where nothing is attached.
pub fn clear(device: BorrowedFd<'_>) -> io::Result<()> {
    call(device, LOOP_CLR_FD, 0).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_structures_have_the_kernels_sizes() {
        assert_eq!(size_of::<Info>(), 232);
        assert_eq!(size_of::<Config>(), 304);
    }
}

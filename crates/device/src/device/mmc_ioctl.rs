//! Raw MMC commands through the ioctls of the Linux MMC block driver (`linux/mmc/ioctl.h`).

use super::mmc::{Command, Payload, Wire};
use crate::units::Nanos;
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::time::{ClockId, clock_gettime};
use std::io;

/// `struct mmc_ioc_cmd` of `linux/mmc/ioctl.h`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct IocCmd {
    write_flag: libc::c_int,
    is_acmd: libc::c_int,
    opcode: u32,
    arg: u32,
    response: [u32; 4],
    flags: libc::c_uint,
    blksz: libc::c_uint,
    blocks: libc::c_uint,
    postsleep_min_us: libc::c_uint,
    postsleep_max_us: libc::c_uint,
    data_timeout_ns: libc::c_uint,
    cmd_timeout_ms: libc::c_uint,
    pad: u32,
    data_ptr: u64,
}

/// Most bytes of one command (`MMC_IOC_MAX_BYTES`).
pub(super) const MAX_BYTES: u64 = 512 << 10;
/// Most commands of one `MMC_IOC_MULTI_CMD` (`MMC_IOC_MAX_CMDS`).
pub(super) const MAX_COMMANDS: usize = 255;

/// `struct mmc_ioc_multi_cmd`, with room for the most commands the kernel takes.
#[repr(C)]
struct IocMulti {
    count: u64,
    commands: [IocCmd; MAX_COMMANDS],
}

/// `_IOWR(MMC_BLOCK_MAJOR, 0, struct mmc_ioc_cmd)`; the major number is 179.
const MMC_IOC_CMD: libc::Ioctl = libc::_IOWR::<IocCmd>(179, 0);
/// `_IOWR(MMC_BLOCK_MAJOR, 1, struct mmc_ioc_multi_cmd)`, whose size is that of the count alone.
const MMC_IOC_MULTI_CMD: libc::Ioctl = libc::_IOWR::<u64>(179, 1);

/// An open MMC block device.
pub(super) struct Ioctl {
    file: OwnedFd,
    multi: Box<IocMulti>,
}

impl Ioctl {
    /// Sends to the whole disk behind `file`.
    pub fn new(file: OwnedFd) -> Ioctl {
        Ioctl { file, multi: Box::new(IocMulti { count: 0, commands: [IocCmd::default(); MAX_COMMANDS] }) }
    }
}

impl Wire for Ioctl {
    fn send(&mut self, all: &mut [Command]) -> io::Result<Nanos> {
        if all.is_empty() || all.len() > MAX_COMMANDS {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        for (c, k) in all.iter_mut().zip(&mut self.multi.commands) {
            let (write, data, len) = match &mut c.payload {
                Payload::None => (false, std::ptr::null(), 0),
                Payload::In(b) => (false, b.as_mut_ptr().cast_const(), b.len()),
                Payload::Out(b) => (true, b.as_ptr(), b.len()),
            };
            let size = c.block_size.max(1);
            if len as u64 > MAX_BYTES || !len.is_multiple_of(size as usize) {
                return Err(io::Error::from_raw_os_error(libc::EINVAL));
            }
            *k = IocCmd {
                write_flag: (write || c.busy).into(),
                is_acmd: c.app.into(),
                opcode: c.opcode,
                arg: c.arg,
                flags: c.flags(),
                blksz: if len > 0 { size } else { 0 },
                blocks: len as u32 / size,
                cmd_timeout_ms: c.timeout_ms,
                data_ptr: data as u64,
                ..IocCmd::default()
            };
        }
        self.multi.count = all.len() as u64;
        let fd = self.file.as_raw_fd();
        let start = now();
        let rc = if let [_] = all {
            // SAFETY: the kernel reads and writes one mmc_ioc_cmd at the pointer and moves exactly blksz * blocks bytes at
            // data_ptr, which are the bytes of the slice borrowed in `all` for longer than the call (its length is a multiple of
            // blksz, checked above); it writes to them only for a command without write_flag, and then the slice is a `&mut`.
            unsafe { libc::ioctl(fd, MMC_IOC_CMD, &raw mut self.multi.commands[0]) }
        } else {
            // SAFETY: as above, for `count` commands, which the array holds.
            unsafe { libc::ioctl(fd, MMC_IOC_MULTI_CMD, &raw mut *self.multi) }
        };
        let failed = io::Error::last_os_error();
        let took = now() - start;
        for (c, k) in all.iter_mut().zip(&self.multi.commands) {
            c.response = k.response[0];
        }
        if rc == 0 { Ok(took) } else { Err(failed) }
    }
}

/// CLOCK_MONOTONIC_RAW: never stepped, never slewed.
fn now() -> Nanos {
    let t = clock_gettime(ClockId::MonotonicRaw);
    Nanos(t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers of `linux/mmc/ioctl.h` on the architectures with the usual ioctl encoding.
    #[test]
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "arm", target_arch = "riscv64"))]
    fn the_kernel_interface_is_as_its_header_says() {
        assert_eq!(size_of::<IocCmd>(), 72);
        assert_eq!(std::mem::offset_of!(IocMulti, commands), 8);
        assert_eq!(MMC_IOC_CMD as u32, 0xc048_b300);
        assert_eq!(MMC_IOC_MULTI_CMD as u32, 0xc008_b301);
    }

    #[test]
    fn a_file_that_is_no_card_is_an_error() {
        let file = std::fs::File::open("/dev/null").unwrap();
        let mut wire = Ioctl::new(file.into());
        let e = wire.send(&mut [Command::new(13, 0)]).unwrap_err();
        assert_eq!(e.raw_os_error(), Some(libc::ENOTTY));
        assert_eq!(wire.send(&mut []).unwrap_err().raw_os_error(), Some(libc::EINVAL));
    }
}

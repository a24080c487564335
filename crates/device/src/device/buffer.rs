//! Page-aligned memory for direct I/O, faulted in when it is made, so that no page fault falls into a timed access.

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
use std::ffi::c_void;
use std::io;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

const PAGE: usize = 4096;
const HUGE: usize = 2 << 20;
/// Shorter requests have few enough pages for any queue.
const HUGE_FROM: usize = 64 << 10;

/// A block of zeroed memory that begins on a page; on a huge page from 64 KiB on, where the system gives one. Pages of 4 KiB lie
/// anywhere in memory, and each is a segment of its own: a queue that takes 128 segments then cuts a request at 512 KiB.
pub struct Buffer {
    map: NonNull<c_void>,
    map_len: usize,
    data: NonNull<u8>,
    len: usize,
}

impl Buffer {
    /// Allocates at least `len` bytes (rounded up to whole pages; `len` 0 gives one page).
    ///
    /// # Errors
    /// Out of memory, or the locked-memory limit is reached.
    pub fn new(len: usize) -> io::Result<Buffer> {
        let len = len.max(1).next_multiple_of(PAGE);
        let huge = len >= HUGE_FROM;
        let map_len = if huge { len.next_multiple_of(HUGE) + HUGE } else { len };
        // SAFETY: a fresh private anonymous mapping placed by the kernel aliases nothing.
        let map = unsafe { mmap_anonymous(std::ptr::null_mut(), map_len, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE)? };
        let skip = if huge { (map as usize).next_multiple_of(HUGE) - map as usize } else { 0 };
        if huge {
            // Best effort: without huge pages the buffer works as well.
            // SAFETY: the range lies inside the mapping made above.
            let _ = unsafe { madvise(map, map_len, Advice::LinuxHugepage) };
        }
        // SAFETY: skip < HUGE and map_len >= len + HUGE where skip can be other than 0.
        let data = unsafe { map.cast::<u8>().add(skip) };
        let (Some(map), Some(data)) = (NonNull::new(map), NonNull::new(data)) else {
            return Err(io::ErrorKind::OutOfMemory.into());
        };
        let mut buffer = Buffer { map, map_len, data, len };
        // Touches every page: reading would map the shared zero page only.
        buffer.fill(0);
        Ok(buffer)
    }

    /// Bytes that surely lie in one piece of physical memory: those of a huge page, else of a page.
    pub fn piece(&self) -> u64 {
        let at = self.as_ptr() as u64;
        let maps = std::fs::read_to_string("/proc/self/smaps").unwrap_or_default();
        if self.len >= HUGE_FROM && huge_at(&maps, at) { HUGE as u64 } else { PAGE as u64 }
    }

    /// Replaces the buffer by a larger one when it is shorter than `len`; the content is then lost. Says whether it was.
    pub fn grow(&mut self, len: usize) -> io::Result<bool> {
        if len <= self.len {
            return Ok(false);
        }
        *self = Buffer::new(len.next_power_of_two())?;
        Ok(true)
    }
}

/// True where the mapping that holds this address has huge pages (field AnonHugePages of /proc/PID/smaps).
fn huge_at(smaps: &str, at: u64) -> bool {
    let mut inside = false;
    for line in smaps.lines() {
        let first = line.split_whitespace().next().unwrap_or("");
        let range = first.split_once('-').and_then(|(a, b)| Some(u64::from_str_radix(a, 16).ok()?..u64::from_str_radix(b, 16).ok()?));
        if let Some(range) = range {
            inside = range.contains(&at);
        } else if inside && first == "AnonHugePages:" {
            return line.split_whitespace().nth(1) != Some("0");
        }
    }
    false
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: exactly the mapping made in `new`; no slice of it can outlive `self`.
        let _ = unsafe { munmap(self.map.as_ptr(), self.map_len) };
    }
}

impl Deref for Buffer {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        // SAFETY: `data` points at `len` initialised bytes inside the mapping, which lives as long as `self`.
        unsafe { std::slice::from_raw_parts(self.data.as_ptr(), self.len) }
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`, and `&mut self` makes the access exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.data.as_ptr(), self.len) }
    }
}

// SAFETY: the mapping is owned by this value alone and is not tied to a thread.
unsafe impl Send for Buffer {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_aligned_zeroed_and_grow() {
        for len in [0, 1, 4096, 4097, 65536, 1 << 20, 2 << 20, (2 << 20) + 1, 12 << 20] {
            let mut b = Buffer::new(len).unwrap();
            assert!(b.len() >= len);
            assert_eq!(b.as_ptr() as usize % if len >= HUGE_FROM { HUGE } else { PAGE }, 0, "{len}");
            assert!(b.iter().all(|&x| x == 0));
            let last = b.len() - 1;
            b[last] = 7;
            assert!(!b.grow(len).unwrap());
            let more = b.len() + 1;
            assert!(b.grow(more).unwrap());
            assert!(b.len() >= more && b.iter().all(|&x| x == 0));
        }
    }

    #[test]
    fn the_system_says_whether_memory_is_in_one_piece() {
        let smaps =
            "7f00-7f10 rw-p 00000000 00:00 0\nSize: 4 kB\nAnonHugePages: 0 kB\n8000-9000 rw-p 0 00:00 0 [heap]\nAnonHugePages: 2048 kB\n";
        assert!(!huge_at(smaps, 0x7f00) && huge_at(smaps, 0x8fff) && !huge_at(smaps, 0x9000) && !huge_at("", 0));
        assert_eq!(Buffer::new(4096).unwrap().piece(), 4096);
        let large = Buffer::new(1 << 20).unwrap().piece();
        assert!(large == 4096 || large == 2 << 20, "{large}");
    }
}

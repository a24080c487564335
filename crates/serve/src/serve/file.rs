//! The card as a file: a FUSE filesystem with one file in it, which bypasses the page cache.
//!
//! One thread reads requests from the kernel and submits them to the card in the order of their arrival. What is not due at
//! once it leaves to a second thread, which answers at the deadlines, the earliest first, so that the next request is submitted when it
//! arrives and not when the one before is done.

use super::clock;
use super::engine::{Due, Engine, Refused};
use crate::device::{Realtime, realtime};
use fuser::{
    Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, InitFlags, KernelConfig, LockOwner, OpenFlags,
    ReplyAttr, ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyStatfs, ReplyWrite, Request, WriteFlags,
};
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::ffi::OsStr;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, Once, OnceLock, PoisonError};
use std::time::{Duration, SystemTime};

/// The file's name inside the mount.
pub const NAME: &str = "card";

const ROOT: INodeNo = INodeNo::ROOT;
const CARD: INodeNo = INodeNo(2);
/// Nothing about the file ever changes.
const FOREVER: Duration = Duration::from_secs(1 << 30);
/// Answers that are due sooner than this (ns) are given by the thread that took the request.
const SOON: u64 = 100_000;
/// With so many answers under way nobody waits for one alone, and the card has others to work on while an answer is late by what waking up takes: the
/// thread sleeps up to the deadline. Spinning before each of thousands of deadlines a second would take half a processor away from the host.
const MANY: usize = 4;
/// Largest request in bytes that the kernel is asked to send in one piece; it allows less (`fs.fuse.max_pages_limit`).
const LARGEST: u32 = 16 << 20;

/// An answer to give when it is due.
enum Answer {
    Data(ReplyData, Vec<u8>),
    Written(ReplyWrite, u32),
    Done(ReplyEmpty),
}

impl Answer {
    fn give(self, shelf: &Shelf) {
        match self {
            Answer::Data(reply, bytes) => {
                reply.data(&bytes);
                shelf.put(bytes);
            }
            Answer::Written(reply, n) => reply.written(n),
            Answer::Done(reply) => reply.ok(),
        }
    }

    fn refuse(self, why: Errno) {
        match self {
            Answer::Data(reply, _) => reply.error(why),
            Answer::Written(reply, _) => reply.error(why),
            Answer::Done(reply) => reply.error(why),
        }
    }
}

/// Buffers that were used before: their memory is there already.
#[derive(Default)]
struct Shelf(Mutex<Vec<Vec<u8>>>);

impl Shelf {
    fn take(&self, len: usize) -> Vec<u8> {
        let mut bytes = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default();
        bytes.resize(len, 0);
        bytes
    }

    fn put(&self, bytes: Vec<u8>) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() < 16 {
            all.push(bytes);
        }
    }
}

type Waiting = (Result<Due, Refused>, Answer);

/// An answer that waits for its time; of two at one time the request that came first.
struct Later {
    due: Due,
    number: u64,
    what: Waiting,
}

impl Ord for Later {
    fn cmp(&self, other: &Later) -> Ordering {
        (other.due, other.number).cmp(&(self.due, self.number))
    }
}

impl PartialOrd for Later {
    fn partial_cmp(&self, other: &Later) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Later {
    fn eq(&self, other: &Later) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Later {}

/// What the filesystem and the answering thread share.
struct Shared {
    engine: Arc<Engine>,
    shelf: Shelf,
    /// Answers handed over and not given yet.
    waiting: AtomicUsize,
}

impl Shared {
    fn give(&self, (outcome, answer): Waiting) {
        match outcome {
            Ok(due) => {
                self.engine.wait(due);
                answer.give(&self.shelf);
            }
            Err(Refused { errno, due }) => {
                self.engine.wait(due);
                answer.refuse(Errno::from_i32(errno.raw_os_error()));
            }
        }
    }
}

/// The filesystem.
pub struct CardFile {
    shared: Arc<Shared>,
    later: Sender<Waiting>,
    wants_realtime: bool,
    once: Once,
    granted: Arc<OnceLock<Realtime>>,
    born: SystemTime,
}

impl CardFile {
    /// A filesystem over a card; starts the answering thread, which ends with it.
    pub fn new(engine: Arc<Engine>, wants_realtime: bool, granted: Arc<OnceLock<Realtime>>) -> CardFile {
        let shared = Arc::new(Shared { engine, shelf: Shelf::default(), waiting: AtomicUsize::new(0) });
        let (later, queue) = channel();
        let theirs = Arc::clone(&shared);
        std::thread::spawn(move || answer(&theirs, &queue, wants_realtime));
        CardFile { shared, later, wants_realtime, once: Once::new(), granted, born: SystemTime::now() }
    }

    fn engine(&self) -> &Engine {
        &self.shared.engine
    }

    fn reply(&self, outcome: Result<Due, Refused>, answer: Answer) {
        let due = outcome.as_ref().map_or_else(|r| r.due, |&d| d);
        // A card with a queue takes the next request meanwhile: nobody waits where requests are taken.
        let soon = if self.engine().queues() { 1 } else { SOON };
        if self.shared.waiting.load(SeqCst) == 0 && due.0.saturating_sub(clock::now()) < soon {
            return self.shared.give((outcome, answer));
        }
        self.shared.waiting.fetch_add(1, SeqCst);
        if let Err(e) = self.later.send((outcome, answer)) {
            self.shared.waiting.fetch_sub(1, SeqCst);
            self.shared.give(e.0);
        }
    }

    /// The requests come on a thread that this library did not start, so it asks for its rights with the first one.
    fn begin(&self) {
        self.once.call_once(|| {
            if self.wants_realtime {
                let _ = self.granted.set(rights());
            }
        });
    }

    fn attr(&self, ino: INodeNo) -> Option<FileAttr> {
        let (kind, size, perm, nlink) = match ino {
            ROOT => (FileType::Directory, 0, 0o500, 2),
            CARD => (FileType::RegularFile, self.engine().size(), 0o600, 1),
            _ => return None,
        };
        let t = self.born;
        Some(FileAttr {
            ino,
            size,
            blocks: size / 512,
            atime: t,
            mtime: t,
            ctime: t,
            crtime: t,
            kind,
            perm,
            nlink,
            uid: rustix::process::geteuid().as_raw(),
            gid: rustix::process::getegid().as_raw(),
            rdev: 0,
            blksize: self.engine().sector() as u32,
            flags: 0,
        })
    }
}

/// Real-time priority, locked memory, and the promise that this thread's memory never waits for the device it serves.
fn rights() -> Realtime {
    let mut got = realtime();
    if let Err(e) = rustix::process::configure_io_flusher_behavior(true) {
        got.denied.push(format!("IO-flusher state ({e}): a host short of memory may wait for this device for ever"));
    }
    got
}

fn answer(shared: &Shared, queue: &Receiver<Waiting>, wants_realtime: bool) {
    if wants_realtime {
        rights();
    }
    let mut all = BinaryHeap::new();
    let mut number = 0;
    let mut later = |all: &mut BinaryHeap<Later>, what: Waiting| {
        let due = what.0.as_ref().map_or_else(|r| r.due, |&d| d);
        all.push(Later { due, number, what });
        number += 1;
    };
    loop {
        let Some(next) = all.peek() else {
            match queue.recv() {
                Ok(what) => later(&mut all, what),
                Err(_) => return,
            }
            continue;
        };
        // What is due earlier may still come.
        let left = next.due.0.saturating_sub(clock::now());
        let spin = if all.len() < MANY { clock::SPIN } else { 0 };
        if left > spin {
            match queue.recv_timeout(Duration::from_nanos(left - spin)) {
                Ok(what) => later(&mut all, what),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => clock::wait_until(next.due.0),
            }
            continue;
        }
        while let Ok(what) = queue.try_recv() {
            later(&mut all, what);
        }
        if let Some(next) = all.pop() {
            shared.give(next.what);
            shared.waiting.fetch_sub(1, SeqCst);
        }
    }
}

impl Filesystem for CardFile {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> std::io::Result<()> {
        // Best effort all of it: an old kernel serves in smaller pieces or one after the other.
        let _ = config.add_capabilities(InitFlags::FUSE_ASYNC_DIO);
        let _ = config.set_max_write(LARGEST);
        let _ = config.set_max_background(256);
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match self.attr(CARD) {
            Some(attr) if parent == ROOT && name == NAME => reply.entry(&FOREVER, &attr, Generation(0)),
            _ => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.attr(ino) {
            Some(attr) => reply.attr(&FOREVER, &attr),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn readdir(&self, _: &Request, ino: INodeNo, _: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        if ino != ROOT {
            return reply.error(Errno::ENOTDIR);
        }
        let all = [(ROOT, FileType::Directory, "."), (ROOT, FileType::Directory, ".."), (CARD, FileType::RegularFile, NAME)];
        for (i, (ino, kind, name)) in all.into_iter().enumerate().skip(offset as usize) {
            if reply.add(ino, i as u64 + 1, kind, name) {
                break;
            }
        }
        reply.ok();
    }

    /// The block size said here becomes the grain of discards on the loop device.
    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        let sector = self.engine().sector();
        reply.statfs(self.engine().size() / sector, 0, 0, 1, 0, sector as u32, 255, sector as u32);
    }

    fn open(&self, _: &Request, ino: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        self.begin();
        match ino {
            CARD => reply.opened(FileHandle(0), FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES),
            _ => reply.error(Errno::EISDIR),
        }
    }

    fn read(&self, _: &Request, _: INodeNo, _: FileHandle, at: u64, size: u32, _: OpenFlags, _: Option<LockOwner>, reply: ReplyData) {
        // A file ends where it ends; the card knows no short reads.
        let len = self.engine().size().saturating_sub(at).min(size.into());
        if len == 0 {
            return reply.data(&[]);
        }
        let mut bytes = self.shared.shelf.take(len as usize);
        let outcome = self.engine().read(at, &mut bytes);
        self.reply(outcome, Answer::Data(reply, bytes));
    }

    fn write(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        at: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        if at >= self.engine().size() {
            return reply.error(Errno::ENOSPC);
        }
        let outcome = self.engine().write(at, data);
        self.reply(outcome, Answer::Written(reply, data.len() as u32));
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        let outcome = self.engine().flush();
        self.reply(outcome, Answer::Done(reply));
    }

    fn fallocate(&self, _: &Request, _: INodeNo, _: FileHandle, at: u64, len: u64, mode: i32, reply: ReplyEmpty) {
        // Only holes are understood: they are discards. Zeroes that must stay allocated are then written by the host.
        if mode & libc::FALLOC_FL_PUNCH_HOLE == 0 {
            return reply.error(Errno::EOPNOTSUPP);
        }
        let outcome = self.engine().discard(at, len);
        self.reply(outcome, Answer::Done(reply));
    }
}

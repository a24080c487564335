//! File-level targets: something with files on it that can be timed. A mounted directory (`kernel`: the kernel's filesystem and
//! page cache) or a FAT volume on any device (`in-process`: the crate `fatfs` with a cache that is named and sized here).
//! Results carry the label, since allocators differ.
//!
//! Every operation is timed by the target's own clock, so that a volume on a simulated card runs in virtual time.

mod cache;
mod directory;
mod exfat;
mod fat;
#[allow(unsafe_code)]
mod fiemap_ioctl;
#[allow(unsafe_code)]
mod fsmap_ioctl;
mod shared;
mod store;

pub use directory::Directory;
pub use exfat::ExFatVolume;
pub use fat::{FatVolume, Format, tree};
pub use shared::Shared;

use crate::device::{DeviceError, Timed};
use crate::units::Nanos;
use serde::{Deserialize, Serialize};

/// Who stands between the files and the medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Label {
    /// The FAT layer of this program, on a device of its own.
    InProcess,
    /// The kernel's filesystem, mounted.
    Kernel,
}

impl std::fmt::Display for Label {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Label::InProcess => "in-process",
            Label::Kernel => "kernel",
        })
    }
}

/// An open file of one volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileId(u32);

/// One name in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub name: String,
    /// Bytes; 0 for a directory.
    pub len: u64,
    pub directory: bool,
}

/// A piece of a file that lies in one run on the medium. All in bytes; `at` counts from the start of the volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Where the piece begins in the file.
    pub file: u64,
    pub at: u64,
    pub len: u64,
}

/// How full a volume is, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Space {
    pub size: u64,
    pub free: u64,
    /// The unit in which files get room.
    pub cluster: u64,
}

/// The memory of the in-process FAT layer. Real hosts differ in nothing more than in this.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cache {
    /// Sectors of tables and directories that are kept; 0 = each look and each change goes to the card.
    pub meta: usize,
    /// Sectors of file data that are kept; 0 = none, so that a part of a sector is read, changed and written each time.
    pub data: usize,
    /// Whole sectors of file data go past the cache, both ways (SdFat, FatFs, direct I/O); only parts of sectors stay in it.
    /// Else they are written at once and kept for reading.
    pub direct: bool,
    /// Changed tables, directories and parts of sectors stay in the cache until they must go, or until `sync`, `close` or
    /// `flush`; else they are written at once.
    pub write_back: bool,
}

impl Cache {
    /// No memory at all.
    pub const NONE: Cache = Cache { meta: 0, data: 0, direct: true, write_back: false };
    /// One sector for tables and one for data, as SdFat and FatFs on a microcontroller have.
    pub const ONE_SECTOR: Cache = Cache { meta: 1, data: 1, direct: true, write_back: true };
    /// All tables and directories; file data goes straight to the card.
    pub const TABLES: Cache = Cache { meta: usize::MAX, data: 0, direct: true, write_back: true };
}

/// The machine that runs the in-process FAT layer. Its times are added to virtual clocks only: on a real device the
/// processor takes its own time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    pub cache: Cache,
    /// What each operation costs outside the card.
    pub call: Nanos,
    /// What an operation with a name (create, open, close, delete, make a directory) costs on top of that.
    pub name: Nanos,
    /// Bytes a second at which data passes between the caller and the cache or card; 0 = at no cost.
    pub copy: u64,
    /// Longest request in bytes; 0 = as long as the device takes in one piece.
    pub request: u64,
}

impl Host {
    /// A machine that costs nothing, with this cache.
    pub const fn with(cache: Cache) -> Host {
        Host { cache, call: Nanos(0), name: Nanos(0), copy: 0, request: 0 }
    }
}

/// Why a file operation failed.
#[derive(Debug, thiserror::Error)]
pub enum VolumeError {
    #[error("{0}")]
    Device(#[from] DeviceError),
    #[error("{0}: there is no such file or directory on the volume")]
    NotFound(String),
    /// The volume is full; what was written until then is there.
    #[error("the volume is full: {0}")]
    Full(String),
    /// No filesystem this target can work with; the text says what it is.
    #[error("{0}")]
    Foreign(String),
    /// The filesystem contradicts itself; nothing was changed.
    #[error("the filesystem is damaged: {0}; repair it with fsck first")]
    Damaged(String),
    #[error("not possible here: {0}")]
    Unsupported(String),
    /// Refused for safety; the text names what is in the way.
    #[error("{0}")]
    Refused(String),
    #[error("{op} {path}: {source}")]
    Io { op: &'static str, path: String, source: std::io::Error },
}

pub type Result<T> = std::result::Result<T, VolumeError>;

/// A volume with files. Paths are relative, parts separated by `/`.
pub trait Volume {
    fn label(&self) -> Label;

    /// The filesystem: "FAT32", "ext4".
    fn filesystem(&self) -> String;

    /// The target's own clock.
    fn now(&self) -> Nanos;

    /// Lets time pass: sleeps, or advances the virtual clock.
    fn idle(&mut self, d: Nanos);

    /// A new file, or an old one emptied, open for reading and writing.
    fn create(&mut self, path: &str) -> Result<(FileId, Timed)>;

    /// A file that is there, open for reading and writing.
    fn open(&mut self, path: &str) -> Result<(FileId, Timed)>;

    /// Writes all of `data` at byte `at`, at most at the end of the file. What a failed write had written is there.
    fn write(&mut self, file: FileId, at: u64, data: &[u8]) -> Result<Timed>;

    /// Gives `len` bytes at `at` of a file, about to be written, their place on the medium at once, as far as the filesystem can:
    /// kernels that wait until they know the whole file would give it one piece.
    fn settle(&mut self, _file: FileId, _at: u64, _len: u64) -> Result<()> {
        Ok(())
    }

    /// Fills `into` from byte `at`; a file that ends before is an error.
    fn read(&mut self, file: FileId, at: u64, into: &mut [u8]) -> Result<Timed>;

    /// Gives an empty file room for `len` bytes, which are then its length; their content is not defined.
    fn preallocate(&mut self, file: FileId, len: u64) -> Result<Timed>;

    /// Brings the file and what leads to it to the medium.
    fn sync(&mut self, file: FileId) -> Result<Timed>;

    /// Ends the use of a file. In-process this brings it to the medium as `sync` does; the kernel may keep it.
    fn close(&mut self, file: FileId) -> Result<Timed>;

    /// Removes a file that is not open, or an empty directory.
    fn delete(&mut self, path: &str) -> Result<Timed>;

    fn make_dir(&mut self, path: &str) -> Result<Timed>;

    /// Names in a directory ("" = the root), in no particular order.
    fn list(&mut self, path: &str) -> Result<Vec<Entry>>;

    /// Where a file lies, in the order of the file, neighbours joined.
    fn extents(&mut self, path: &str) -> Result<Vec<Extent>>;

    fn space(&mut self) -> Result<Space>;

    /// Free pieces of the volume, ascending: place and length in bytes. None where the filesystem does not say.
    fn free_runs(&mut self) -> Result<Option<Vec<(u64, u64)>>> {
        Ok(None)
    }

    /// Brings everything to the medium.
    fn flush(&mut self) -> Result<Timed>;

    /// Writes what is changed and forgets what is cached, so that the next read comes from the medium.
    fn forget(&mut self) -> Result<()>;
}

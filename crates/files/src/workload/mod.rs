//! Benchmarks at the level of files: what an application sees of a card.

pub mod library;
pub mod purpose;
pub mod records;
pub mod traced;
pub mod volume_file;

use crate::device::DeviceError;
use crate::units::Nanos;

#[derive(Debug, thiserror::Error)]
pub enum WorkloadError {
    #[error(transparent)]
    Device(#[from] DeviceError),
    #[error(transparent)]
    Volume(#[from] crate::volume::VolumeError),
    /// Nothing was done; the text says why and what to do.
    #[error("{0}")]
    Refused(String),
}

pub type Result<T> = std::result::Result<T, WorkloadError>;

/// One file, as a benchmark sees it. Calls return how long they took on the clock of the target.
pub trait BenchFile {
    /// Makes the file new and empty; room for `reserve` bytes is set aside where that can be done.
    fn create(&mut self, reserve: Option<u64>) -> Result<Nanos>;
    /// Opens it again, to be read from its start.
    fn open(&mut self) -> Result<Nanos>;
    /// Appends `len` bytes.
    fn write(&mut self, len: u64) -> Result<Nanos>;
    /// Reads the next `len` bytes; fewer at the end of the file.
    fn read(&mut self, len: u64) -> Result<Nanos>;
    /// Brings data and directory entry to the medium.
    fn sync(&mut self) -> Result<Nanos>;
    /// Closes it, which brings data and directory entry to the medium.
    fn close(&mut self) -> Result<Nanos>;
    /// Where the file begins on the target, in bytes, where it is known to lie in one piece.
    fn position(&self) -> Option<u64> {
        None
    }
    /// The clock of the target.
    fn now(&self) -> Nanos;
    /// The time a benchmark needs between two calls, where it does not pass by itself.
    fn pause(&mut self) {}
}

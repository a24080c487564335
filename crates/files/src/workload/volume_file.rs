//! A file on any volume: in-process on a device, or in a mounted directory.

use super::{BenchFile, Result, WorkloadError};
use crate::units::Nanos;
use crate::volume::{FileId, Volume};

/// The file a benchmark writes; it is deleted when the benchmark is done.
pub const NAME: &str = "NSBENCH.DAT";

/// One file on a volume.
pub struct VolumeFile<'a> {
    volume: &'a mut dyn Volume,
    file: Option<FileId>,
    pos: u64,
    buffer: Vec<u8>,
    position: Option<u64>,
}

impl<'a> VolumeFile<'a> {
    /// A file of which no call is longer than `longest` bytes.
    ///
    /// # Errors
    /// A file of that name is there already: it is not ours.
    pub fn new(volume: &'a mut dyn Volume, longest: u64) -> Result<VolumeFile<'a>> {
        if volume.list("")?.iter().any(|e| e.name.eq_ignore_ascii_case(NAME)) {
            return Err(WorkloadError::Refused(format!("a file {NAME} is there already; remove it, it may be of an earlier run")));
        }
        let mut x = 0x6e61_6e64u32;
        let buffer = (0..longest).map(|_| {
            x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (x >> 24) as u8
        });
        Ok(VolumeFile { volume, file: None, pos: 0, buffer: buffer.collect(), position: None })
    }

    fn file(&self) -> Result<FileId> {
        self.file.ok_or_else(|| WorkloadError::Refused("the file is not open".into()))
    }

    /// Takes the file off the volume again.
    pub fn delete(mut self) -> Result<()> {
        if self.file.is_some() {
            self.close()?;
        }
        self.volume.delete(NAME)?;
        self.volume.flush()?;
        Ok(())
    }
}

impl BenchFile for VolumeFile<'_> {
    fn create(&mut self, reserve: Option<u64>) -> Result<Nanos> {
        let (file, timed) = self.volume.create(NAME)?;
        let mut took = timed.took;
        if let Some(len) = reserve {
            took = took + self.volume.preallocate(file, len)?.took;
        }
        (self.file, self.pos, self.position) = (Some(file), 0, None);
        Ok(took)
    }

    fn open(&mut self) -> Result<Nanos> {
        // What a cache holds would be read from there.
        self.volume.forget()?;
        let (file, timed) = self.volume.open(NAME)?;
        (self.file, self.pos) = (Some(file), 0);
        Ok(timed.took)
    }

    fn write(&mut self, len: u64) -> Result<Nanos> {
        let (file, pos) = (self.file()?, self.pos);
        let timed = self.volume.write(file, pos, &self.buffer[..len as usize])?;
        self.pos += len;
        Ok(timed.took)
    }

    fn read(&mut self, len: u64) -> Result<Nanos> {
        let (file, pos) = (self.file()?, self.pos);
        let timed = self.volume.read(file, pos, &mut self.buffer[..len as usize])?;
        self.pos += len;
        Ok(timed.took)
    }

    fn sync(&mut self) -> Result<Nanos> {
        let file = self.file()?;
        Ok(self.volume.sync(file)?.took)
    }

    fn close(&mut self) -> Result<Nanos> {
        let Some(file) = self.file.take() else { return Ok(Nanos(0)) };
        let took = self.volume.close(file)?.took;
        // Known only now, and only where the file lies in one piece.
        if let Ok(extents) = self.volume.extents(NAME)
            && let [only] = extents[..]
        {
            self.position = Some(only.at);
        }
        Ok(took)
    }

    fn position(&self) -> Option<u64> {
        self.position
    }

    fn now(&self) -> Nanos {
        self.volume.now()
    }
}

//! A device that stays in the hands of its owner while a volume uses it: its counters can be read afterwards.

use crate::device::{Access, Busy, Device, DeviceError, Geometry, Result, Timed, mmc};
use crate::units::Nanos;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A handle to a device; clones are handles to the same one.
pub struct Shared<D> {
    device: Rc<RefCell<D>>,
    geometry: Geometry,
    stop: Option<Arc<AtomicBool>>,
}

impl<D> Clone for Shared<D> {
    fn clone(&self) -> Shared<D> {
        Shared { device: Rc::clone(&self.device), geometry: self.geometry.clone(), stop: self.stop.clone() }
    }
}

impl<D: Device> Shared<D> {
    pub fn new(device: D) -> Shared<D> {
        Shared { geometry: device.geometry().clone(), device: Rc::new(RefCell::new(device)), stop: None }
    }

    /// A handle that refuses every access once the flag is set, for what is thrown away when it is interrupted.
    #[must_use]
    pub fn until(&self, stop: &Arc<AtomicBool>) -> Shared<D> {
        Shared { stop: Some(Arc::clone(stop)), ..self.clone() }
    }

    /// The device, for an access.
    fn sends(&self) -> Result<std::cell::RefMut<'_, D>> {
        match &self.stop {
            Some(stop) if stop.load(Ordering::Relaxed) => Err(DeviceError::Late),
            _ => Ok(self.device.borrow_mut()),
        }
    }

    /// Looks at the device itself.
    pub fn with<T>(&self, look: impl FnOnce(&mut D) -> T) -> T {
        look(&mut self.device.borrow_mut())
    }
}

impl<D: Device> Device for Shared<D> {
    fn geometry(&self) -> &Geometry {
        &self.geometry
    }
    fn access(&mut self, a: Access) -> Result<Timed> {
        self.sends()?.access(a)
    }
    fn batch(&mut self, all: &[Access], depth: u32) -> Result<Vec<Timed>> {
        self.sends()?.batch(all, depth)
    }
    fn now(&self) -> Nanos {
        self.device.borrow().now()
    }
    fn idle(&mut self, d: Nanos) {
        self.device.borrow_mut().idle(d);
    }
    fn load(&mut self, at: u64, into: &mut [u8]) -> Result<()> {
        self.sends()?.load(at, into)
    }
    fn store(&mut self, at: u64, from: &[u8]) -> Result<()> {
        self.sends()?.store(at, from)
    }
    fn get(&mut self, at: u64, into: &mut [u8]) -> Result<Timed> {
        self.sends()?.get(at, into)
    }
    fn put(&mut self, at: u64, from: &[u8]) -> Result<Timed> {
        self.sends()?.put(at, from)
    }
    fn busy(&mut self) -> Option<Vec<Busy>> {
        self.device.borrow_mut().busy()
    }
    fn write_as(&mut self, how: Option<mmc::Multi>) -> Result<()> {
        self.device.borrow_mut().write_as(how)
    }
}

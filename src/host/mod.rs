//! What the host says about its block devices, and who uses them.

pub mod facts;
pub mod list;
pub mod mounts;
pub mod partitions;
pub mod safety;
pub mod signatures;
pub mod sysfs;

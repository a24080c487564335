//! What the host says about its block devices, who uses them, and what a card declares.

pub mod declared;
pub mod facts;
pub mod list;
pub mod mounts;
pub mod partitions;
pub mod queue;
pub mod registers;
pub mod safety;
pub mod signatures;
pub mod sysfs;

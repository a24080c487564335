//! What the host says about its block devices, who uses them, and what a card declares.

pub mod class;
pub mod declared;
pub mod facts;
pub mod faults;
pub mod health;
pub mod list;
pub mod live;
#[allow(unsafe_code)]
pub mod loop_ioctl;
pub mod mounts;
pub mod partitions;
pub mod queue;
pub mod quirks;
pub mod registers;
pub mod requests;
pub mod safety;
pub mod served;
pub mod signatures;
pub mod sysfs;
pub mod ticks;
pub mod wear;

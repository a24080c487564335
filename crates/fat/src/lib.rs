//! FAT12/16/32 and exFAT volumes as they lie on flash: what a boot sector says, where a new volume's parts should go, and the
//! bytes of a new volume. No I/O: the caller reads and writes.
//!
//! ```
//! use nandscope_fat::{Options, plan, recognise};
//! let layout = plan(&Options::card(64 << 20)).unwrap();
//! let mut card = vec![0u8; 64 << 20];
//! layout.write::<()>(
//!     |at, bytes| { card[at as usize..][..bytes.len()].copy_from_slice(bytes); Ok(()) },
//!     || Ok(()),
//! ).unwrap();
//! let volume = recognise(&card[layout.start() as usize..]).unwrap();
//! assert_eq!(volume, layout.volume);
//! ```
#![warn(missing_docs)]

mod plan;
mod recognise;
mod tree;
mod upcase;
mod write;

pub use plan::{Convention, Layout, Options, Partition, PlanError, plan, sd_units};
pub use recognise::{FatType, NotFat, Volume, recognise};
pub use tree::{Mark, Node, Tree, TreeError, runs};
pub use write::{Step, is_unfinished};

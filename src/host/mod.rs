//! What the host knows about a target before anything is timed.

pub mod declared;
pub mod registers;

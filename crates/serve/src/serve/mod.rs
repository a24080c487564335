//! A simulated card that other programs can use: as a block device of this machine ([`fuse`]), or over the network block
//! device protocol, for virtual machines ([`nbd`]).
//!
//! Both hand every request to one [`Engine`], which ties the card's virtual clock to the real one: a request is submitted at
//! the time it arrived, and answered when the card would have been done with it.

mod bus;
mod clock;
mod engine;
mod file;
pub mod fuse;
mod loop_device;
pub mod nbd;
mod recorder;

pub use bus::Shared;
pub use engine::{Due, Engine, Refused, Stats};
pub use recorder::TraceFile;

use std::io;

/// Why a card cannot be served. The text ends with what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Something is in the way: a mount point or a socket in use, an address that is not this machine's own.
    #[error("{0}")]
    InTheWay(String),
    /// The address can be reached from other machines, and nobody allowed that.
    #[error("{0}")]
    Remote(String),
    /// The system refused.
    #[error("{what}: {cause}{hint}")]
    System { what: String, cause: io::Error, hint: &'static str },
}

impl ServeError {
    fn system(what: impl Into<String>, cause: impl Into<io::Error>) -> ServeError {
        let cause = cause.into();
        let hint = match cause.kind() {
            io::ErrorKind::PermissionDenied => "; run it as root, or serve over NBD, which needs no privileges: --nbd unix:PATH",
            _ => "",
        };
        ServeError::System { what: what.into(), cause, hint }
    }
}

pub type Result<T> = std::result::Result<T, ServeError>;

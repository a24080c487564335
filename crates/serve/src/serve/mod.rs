//! A simulated card that other programs can use: as a block device of this machine ([`fuse`]), or over the network block
//! device protocol, for virtual machines ([`nbd`]).
//!
//! Both hand every request to one [`Engine`], which ties the card's virtual clock to the real one: a request is submitted at
//! the time it arrived, and answered when the card would have been done with it.

mod clock;
mod engine;
mod file;
pub mod fuse;
mod loop_device;
pub mod nbd;
mod recorder;

pub use engine::{Due, Engine, Refused, Stats};
pub use recorder::TraceFile;

use nandscope_sim::Model;
use std::io;

/// Why a card cannot be served. The text ends with what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// There is no such card, or its model is wrong.
    #[error("{0}")]
    Card(String),
    /// Something is in the way: a mount point or a socket in use, an address that is not this machine's own.
    #[error("{0}")]
    InTheWay(String),
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

/// The model behind `NAME`, `sim:NAME`, `PATH.toml` or `sim:PATH.toml`.
///
/// # Errors
/// `Card`: no such card, the file cannot be read, or it is no valid model.
pub fn model(card: &str) -> Result<Model> {
    let place = card.strip_prefix("sim:").unwrap_or(card);
    let parsed = if place.ends_with(".toml") || place.contains('/') {
        let text = crate::device::model_text(place.as_ref()).map_err(|e| ServeError::Card(format!("cannot read {place}: {e}")))?;
        Model::parse(&text, place)
    } else {
        let text = nandscope_sim::cards::text(place).ok_or_else(|| {
            let names: Vec<&str> = nandscope_sim::cards::ALL.iter().map(|c| c.0).collect();
            ServeError::Card(format!("there is no card '{place}'; built in are {}; a file is named PATH.toml", names.join(", ")))
        })?;
        Model::parse(text, place)
    };
    parsed.map_err(|e| ServeError::Card(e.to_string()))
}

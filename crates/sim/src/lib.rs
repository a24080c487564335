//! Flash cards in virtual time, with known ground truth.
//!
//! A [`Model`] (a TOML text) says how a card works: pages, erase blocks, a table of open AUs or a page map, bus, noise,
//! faults. A [`Card`] made from it answers requests with times in nanoseconds. Nothing here reads a clock, a file or the
//! network; the same model, seed and requests give the same answers on every machine.
//!
//! ```
//! use nandscope_sim::{Card, Model, Request};
//! let model = Model::parse(nandscope_sim::cards::text("flashbench-readme").unwrap(), "flashbench-readme.toml")?;
//! let mut card = Card::new(&model, 1);
//! let done = card.submit(0, Request::read(4 << 20, 1024))?;
//! assert!(done.done > done.start);
//! assert_eq!(model.truth().erase_block, 4 << 20);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![warn(missing_docs)]

/// The examples of the README, run as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub mod account;
mod buffer;
mod card;
pub mod cards;
mod content;
mod counters;
mod events;
pub mod faulty;
mod form;
pub mod ftl;
mod histogram;
mod host;
pub mod model;
mod nand;
mod places;
pub mod random;
mod request;
mod rng;
pub mod run;
pub mod today;
mod told;
pub mod trace;
mod truth;
pub mod units;
pub mod unusual;
mod wear;

pub use account::{Costs, Event, Events};
pub use buffer::Lost;
pub use card::{AHEAD, Announced, Busy, Card, Queue};
pub use counters::Counters;
pub use form::ModelError;
pub use histogram::{Histogram, Latencies};
pub use model::Model;
pub use request::{Completion, Data, Fault, Op, Request};
pub use rng::Rng;
pub use told::Told;
pub use truth::{Mapping, Steps, Truth};

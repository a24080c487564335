//! Histories to bring a volume into a state, what that state is, and what it costs: does defragmenting matter on this card?

pub mod age;
pub mod answer;
pub mod bench;
pub mod class;
pub mod defragment;
pub mod expect;
pub mod experiment;
pub mod fragment;
pub mod mounted;
mod moves;
pub mod offload;

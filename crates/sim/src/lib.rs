//! A flash card in virtual time. No I/O, no clock, no unsafe code; the same (model, seed, requests) give the same answers.
#![warn(missing_docs)]

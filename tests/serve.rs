//! Simulated cards as real block devices and over NBD, met by the programs people use: mkfs, fsck, fio, flashbench, nbdinfo,
//! nbdcopy, qemu-img, and our own probe in real time.
//!
//! What needs root, FUSE, loop devices or a program that is not there says in one line what it skips and why.
//! `NANDSCOPE_SERVE_CARDS=a,b` restricts the probed cards, `NANDSCOPE_SERVE_TIME=60s` gives each of them that long.

#[path = "serve/bed.rs"]
mod bed;
#[path = "serve/campaign.rs"]
mod campaign;
#[path = "serve/checked.rs"]
mod checked;
mod common;
#[path = "serve/content.rs"]
mod content;
#[path = "serve/contention.rs"]
mod contention;
#[path = "serve/fakes.rs"]
mod fakes;
#[path = "serve/hostile.rs"]
mod hostile;
#[path = "serve/lab.rs"]
mod lab;
#[path = "serve/leaving.rs"]
mod leaving;
#[path = "serve/network.rs"]
mod network;
#[path = "common/program.rs"]
mod program;
#[path = "common/skip.rs"]
mod skip;
#[path = "serve/timing.rs"]
mod timing;
#[path = "serve/today.rs"]
mod today;

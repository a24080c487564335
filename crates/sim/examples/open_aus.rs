//! Writes 1 to N + 2 AUs in turn on a card and prints the time of a 64 KiB write: the cliff behind the number of open AUs.
//!
//! `cargo run -p nandscope-sim --example open_aus -- toshiba-emmc`

use nandscope_sim::{Card, Model, Request, cards};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let name = std::env::args().nth(1).unwrap_or_else(|| "flashbench-readme".to_string());
    let model = Model::parse(cards::text(&name).ok_or("no such card")?, &name)?;
    let truth = model.truth();
    println!(
        "{name}: {}; the truth is {} open AUs",
        model.about,
        truth.open_aus_linear.map_or("any number of".to_string(), |n| n.to_string())
    );
    let (au, size) = (truth.erase_block, 64 << 10);
    for n in 1..=u64::from(truth.open_aus_linear.unwrap_or(6)) + 2 {
        let mut card = Card::new(&model, 1);
        let (mut now, mut total, writes) = (0, 0, 16);
        for k in 0..writes {
            for i in 0..n {
                let at = truth.erase_block_offset + (4 + 3 * i) * au + k * size;
                let done = card.submit(now, Request::write(at, size))?;
                total += done.done - done.start;
                now = done.done;
            }
        }
        println!("{n:3} AUs: {:8.2} ms a write, {} closed", total as f64 / 1e6 / (n * writes) as f64, card.counters().merges_partial);
    }
    Ok(())
}

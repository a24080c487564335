//! Prints the page of all cards: `cargo run -p nandscope-sim --example card_tables > docs/cards.md`

#[path = "../tests/bench/mod.rs"]
mod bench;

fn main() {
    print!("{}", bench::page::page());
}

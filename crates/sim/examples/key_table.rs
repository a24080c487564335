//! Prints the table of model keys that FORMATS.md holds: `cargo run -p nandscope-sim --example key_table`.

fn main() {
    print!("{}", nandscope_sim::Model::key_table());
}

//! Write amplification of greedy collection under uniform random writes, against theory.

use nandscope_sim::{Card, Model, Request, Rng};

/// a/(a + W(-a e^-a)) with Lambert's W, principal branch; a = physical over logical size (Xiang and Kurkoski, arXiv 1110.4245).
fn closed_form(a: f64) -> f64 {
    let z = -a * (-a).exp();
    let mut w = z;
    for _ in 0..200 {
        w -= (w * w.exp() - z) / (w.exp() * (w + 1.0));
    }
    a / (a + w)
}

/// Amplification in steady state: `units` logical units of 4 KiB, blocks of `pages`.
fn simulated(units: u64, pages: u64, over: f64, rounds: u64) -> f64 {
    let text = format!(
        "name = \"wa\"\n[card]\ncapacity = {}\n[nand]\npage = \"4 KiB\"\nerase_block = {}\n[ftl]\nkind = \"page-map\"\nover_provisioning = {over}\nreserve = 1\n",
        units * 4096,
        pages * 4096
    );
    let mut card = Card::new(&Model::parse(&text, "wa").unwrap_or_else(|e| panic!("{e}")), 1);
    let mut rng = Rng::new(pages, 11);
    let mut go = |n: u64| {
        let before = card.counters().clone();
        for _ in 0..n {
            card.submit(0, Request::write(rng.below(units) * 4096, 4096)).expect("served");
        }
        let k = card.counters();
        let programmed = k.units_programmed + k.units_copied - before.units_programmed - before.units_copied;
        programmed as f64 / n as f64
    };
    go(3 * units);
    go(rounds * units)
}

fn check(units: u64, pages: u64, over: f64, share: f64) {
    let (found, theory) = (simulated(units, pages, over, 3), closed_form(1.0 + over));
    println!("over-provisioning {over}, {pages} pages a block: {found:.4} against {theory:.4} ({:+.2} %)", (found / theory - 1.0) * 100.0);
    assert!((found / theory - 1.0).abs() <= share, "{over} {pages}: {found} against {theory}");
}

#[test]
fn theory_is_met() {
    assert!((closed_form(1.3) - 2.3642).abs() < 1e-3);
    check(1 << 21, 1024, 0.3, 0.005);
    check(1 << 21, 1024, 0.15, 0.005);
    check(1 << 20, 256, 0.15, 0.015);
    check(1 << 20, 256, 0.3, 0.015);
}

#[test]
fn published_simulation_is_met() {
    let found = simulated(1 << 20, 256, 0.3, 3);
    assert!((found - 2.35).abs() <= 0.02, "{found} against 2.35 (Xiang and Kurkoski)");
}

/// Bux and Iliadis 2010: amplification rises with the pages of a block and falls with the number of blocks.
#[test]
fn small_sizes_behave_as_theory_says() {
    let by_pages: Vec<f64> = [8, 32, 128].iter().map(|&p| simulated(256 * p, p, 0.25, 12)).collect();
    assert!(by_pages.windows(2).all(|w| w[1] > w[0] * 1.01), "pages: {by_pages:?}");
    // The reserve is the same share of the spare flash everywhere, so that only the number of blocks differs.
    let by_blocks: Vec<f64> = [32, 128, 1024].iter().map(|&b| simulated(b * 64, 64, 0.25, 20)).collect();
    assert!(by_blocks.windows(2).all(|w| w[1] < w[0]), "blocks: {by_blocks:?}");
}

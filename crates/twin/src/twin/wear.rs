//! What a twin makes of writes: bytes that its flash programs for each byte of the host, against sequential writes.

use nandscope_sim::model::{FtlKind, State};
use nandscope_sim::run::{Fit, How, Pattern, run};
use nandscope_sim::trace::Io;
use nandscope_sim::{Card, Model, Op};

/// Bytes of the sequential writes that the others are held against, at least.
const SEQUENTIAL: u64 = 64 << 20;

/// Least and most, of a card that was never written and of a full one: the requests run once to come into a steady state, and are counted
/// when they run again. Places beyond the card are folded back into it; reads are left out, since they program nothing.
///
/// # Errors
/// The model copies nothing by its nature, nothing is written, or the model refuses a request.
pub fn amplification(model: &Model, ios: &[Io], seed: u64) -> Result<[f64; 2], String> {
    if model.ftl.kind == FtlKind::None {
        return Err(format!("{} has no mapping that could copy anything: it does not say how much is programmed", model.name));
    }
    let all: Vec<Io> = ios.iter().filter(|io| io.op != Op::Read).copied().collect();
    let written: u64 = all.iter().filter(|io| io.op == Op::Write).map(|io| io.len).sum();
    if written == 0 {
        return Err("nothing is written".into());
    }
    let in_order = Pattern { random: false, reads: 0, size: 128 << 10 };
    let n = written.max(SEQUENTIAL) / in_order.size;
    let in_order: Vec<Io> = in_order.ios(model.card.capacity, n, seed).collect();
    let mut out = [f64::INFINITY, 0.0];
    for state in [State::Empty, State::Written] {
        let mut m = model.clone();
        m.card.state = state;
        let counted = |ios: &[Io]| -> Result<f64, String> {
            let mut card = Card::new(&m, seed);
            let how = How { fit: Fit::Fold, ..How::default() };
            let first = run(&mut card, 0, ios.iter().copied(), &how).map_err(|e| e.to_string())?;
            run(&mut card, first.took, ios.iter().copied(), &how).map(|o| o.write_amplification).map_err(|e| e.to_string())
        };
        let ratio = counted(&all)? / counted(&in_order)?.max(f64::MIN_POSITIVE);
        out = [out[0].min(ratio), out[1].max(ratio)];
    }
    Ok(out.map(|x| x.max(1.0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscope_sim::cards;

    fn of(card: &str, pattern: &str, n: u64) -> [f64; 2] {
        let model = Model::parse(cards::text(card).unwrap(), card).unwrap();
        let ios: Vec<Io> = Pattern::parse(pattern).unwrap().ios(model.card.capacity, n, 3).collect();
        amplification(&model, &ios, 1).unwrap()
    }

    #[test]
    fn sequential_writes_are_the_measure_and_scattered_ones_cost_more() {
        for card in ["flashbench-readme", "page-mapped", "modern-a1-32gb"] {
            let [low, high] = of(card, "sequential-128k", 1024);
            assert!(low >= 1.0 && high < 1.1, "{card}: {low} to {high}");
        }
        // Two AUs are kept open: each write of 4 KiB elsewhere copies most of an erase block of 4 MiB.
        let [low, high] = of("flashbench-readme", "random-4k", 400);
        assert!(low > 100.0 && high <= 1100.0, "{low} to {high}");
        let [low, high] = of("page-mapped", "random-4k", 4000);
        assert!(low >= 1.0 && high < 20.0, "{low} to {high}");
    }

    #[test]
    fn what_programs_nothing_is_refused() {
        let model = Model::parse(cards::text("null").unwrap(), "null").unwrap();
        let ios: Vec<Io> = Pattern::parse("random-4k").unwrap().ios(1 << 20, 10, 1).collect();
        assert!(amplification(&model, &ios, 1).is_err());
        let model = Model::parse(cards::text("page-mapped").unwrap(), "page-mapped").unwrap();
        assert!(amplification(&model, &[], 1).unwrap_err().contains("nothing is written"));
    }
}

//! Any request on any card: served, or refused with a fault, and never worse. Debug builds check every sum on the way.

use nandscope_sim::{Card, Data, Fault, Op, Request, Rng, random};

#[test]
fn any_card_stands_any_request() {
    let mut rng = Rng::new(77, 7);
    let (mut served, mut refused) = (0u64, 0u64);
    for seed in 5000..5400 {
        let m = random::card(seed);
        let mut card = Card::new(&m, seed);
        if seed % 4 == 0 {
            card = card.with_content();
        }
        let (capacity, sector) = (card.capacity(), card.sector());
        let mut now = 0u64;
        for _ in 0..150 {
            let at = match rng.below(6) {
                0 => capacity - sector * rng.below(40),
                1 => rng.next(),
                2 => sector * rng.below(64),
                _ => sector * rng.below(capacity / sector),
            };
            let len = match rng.below(6) {
                0 => rng.next(),
                1 => sector * rng.below(1 << 17),
                _ => sector * rng.below(300),
            };
            let (op, data) =
                ([Op::Read, Op::Write, Op::Write, Op::Discard, Op::Flush][rng.below(5) as usize], [Data::Zeros, Data::Ones, Data::Other]);
            let req = Request { op, at, len, data: data[rng.below(3) as usize] };
            let before = card.counters().clone();
            match card.submit(now, req) {
                Ok(c) => {
                    assert!(c.start >= now && c.done >= c.start, "seed {seed}: {req:?} {c:?}");
                    now = c.done + [0, 0, 1000, 1 << 30, 1 << 40][rng.below(5) as usize];
                    served += 1;
                }
                Err(Fault::OutOfRange { .. } | Fault::Misaligned { .. }) => {
                    assert_eq!(card.counters(), &before, "seed {seed}: a refused request leaves no trace");
                    refused += 1;
                }
                Err(e) => panic!("seed {seed}: {e}"),
            }
            if rng.below(50) == 0 {
                card.power_cut();
            }
        }
        let k = card.counters();
        assert!(k.write_amplification().is_finite() && k.drive_writes() >= 0.0);
        let all: Vec<Request> = (0..40).map(|_| Request::read(sector * rng.below(m.card.real_capacity / sector), sector)).collect();
        let done = card.batch(now, &all, 32).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        assert_eq!(done.len(), all.len());
    }
    assert!(served > 25_000 && refused > 10_000, "{served} {refused}");
}

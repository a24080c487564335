//! Generators of chance from the seeds that users give.
//!
//! `Pcg64Mcg` sets the lowest bit of its state. A seed that stands there as it is would be the same as its neighbour, so all of its bits
//! lie above.

use rand_pcg::Pcg64Mcg;

/// The generator of a seed: another one for each.
pub fn generator(seed: u64) -> Pcg64Mcg {
    Pcg64Mcg::new(u128::from(seed) << 1 | 1)
}

/// One of many generators of a seed, by number: for each number another one for each seed.
pub fn stream(seed: u64, number: u64) -> Pcg64Mcg {
    // The highest bit of a seed would be shifted out.
    let kept = u128::from(seed >> 63) << 64;
    Pcg64Mcg::new(((u128::from(seed) << 64 | u128::from(number)) << 1 | 1) ^ kept)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_pcg::rand_core::Rng;
    use std::collections::HashSet;

    #[test]
    fn each_seed_has_a_generator_of_its_own() {
        let seeds: Vec<u64> = (0..64).flat_map(|k| [k, 1 << k, (1 << k) - 1, u64::MAX - k]).collect();
        let many = seeds.iter().collect::<HashSet<_>>().len();
        let first = |mut r: Pcg64Mcg| (r.next_u64(), r.next_u64());
        let different = |of: &dyn Fn(u64) -> Pcg64Mcg| seeds.iter().map(|&s| first(of(s))).collect::<HashSet<_>>().len();
        assert_eq!(different(&generator), many);
        for number in [0, 1, 7, u64::MAX / 2, u64::MAX] {
            assert_eq!(different(&|s| stream(s, number)), many, "stream {number}");
        }
    }
}

//! The one source of chance: SplitMix64 (Steele, Lea, Flood 2014), so that a seed means the same on every machine.
//! Only integer steps and the exactly rounded float operations are used; no `ln`, no `exp`.

/// A stream of pseudo-random numbers.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// The stream number `stream` of this seed: streams do not disturb each other.
    pub fn new(seed: u64, stream: u64) -> Rng {
        let mut r = Rng(seed ^ stream.wrapping_mul(0xd6e8_feb8_6659_fd93));
        r.next();
        r
    }

    /// 64 uniform bits.
    #[inline]
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in `0..n`; 0 for n = 0.
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(n)) >> 64) as u64
    }

    /// Uniform in `(0, 1]`, a multiple of 2^-53.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        ((self.next() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    /// Roughly normal, mean 0, variance 1: twelve uniforms summed.
    pub fn normal(&mut self) -> f64 {
        let mut sum = 0u64;
        for _ in 0..3 {
            let x = self.next();
            sum += (x & 0xffff) + ((x >> 16) & 0xffff) + ((x >> 32) & 0xffff) + (x >> 48);
        }
        sum as f64 / 65_535.0 - 6.0
    }

    /// Heavy tail: at least 1, infinite variance (Pareto with exponent 2), cut at `cap`.
    pub fn tail(&mut self, cap: f64) -> f64 {
        (1.0 / self.unit().sqrt()).min(cap)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments() {
        let mut r = Rng::new(1, 2);
        let n = 100_000;
        let (mut sum, mut square, mut over) = (0.0, 0.0, 0);
        for _ in 0..n {
            let x = r.normal();
            sum += x;
            square += x * x;
            over += u32::from(r.tail(100.0) > 10.0);
        }
        assert!((sum / n as f64).abs() < 0.01 && (square / n as f64 - 1.0).abs() < 0.02);
        assert!((800..1200).contains(&over), "P(tail > 10) is 1 %: {over}");
    }
}

//! Draws: a small generator of its own, so that a seed gives the same card everywhere.

/// A multiply-with-carry generator (Marsaglia, lag 1, 64 bits).
pub struct Chance(u64, u64);

impl Chance {
    /// Begins with a seed; neighbouring seeds give unrelated draws.
    pub fn new(seed: u64) -> Self {
        let mut c = Chance(seed ^ 0x853c_49e6_748f_ea9b, (seed >> 7) | 1);
        for _ in 0..12 {
            c.next();
        }
        c
    }

    fn next(&mut self) -> u64 {
        let wide = u128::from(self.0) * 0xffeb_b71d_94fc_daf9 + u128::from(self.1);
        self.0 = wide as u64;
        self.1 = (wide >> 64) as u64;
        self.0 ^ self.1
    }

    /// From 0 to 1, without 1.
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Below `n`.
    pub fn below(&mut self, n: u64) -> u64 {
        (self.unit() * n as f64) as u64
    }

    /// Whether something of this probability happens.
    pub fn with(&mut self, p: f64) -> bool {
        self.unit() < p
    }

    /// One of these.
    pub fn of<T: Copy>(&mut self, some: &[T]) -> T {
        some[self.below(some.len() as u64) as usize]
    }

    /// Between the two, evenly on a logarithmic scale.
    pub fn span(&mut self, low: f64, high: f64) -> f64 {
        low * (high / low).powf(self.unit())
    }

    /// Exponential with this mean.
    pub fn wait(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.unit()).ln()
    }

    /// Normal with mean 0 and deviation 1.
    pub fn normal(&mut self) -> f64 {
        (-2.0 * (1.0 - self.unit()).ln()).sqrt() * (std::f64::consts::TAU * self.unit()).cos()
    }
}

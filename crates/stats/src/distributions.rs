//! Distributions and special functions.

/// ln Gamma (Lanczos, g = 7, nine terms), good to about 1e-13 for x > 0.
pub fn ln_gamma(x: f64) -> f64 {
    const C: [f64; 9] = [
        0.999_999_999_999_809_9,
        676.520_368_121_885_1,
        -1_259.139_216_722_402_8,
        771.323_428_777_653_1,
        -176.615_029_162_140_6,
        12.507_343_278_686_905,
        -0.138_571_095_265_720_12,
        9.984_369_578_019_572e-6,
        1.505_632_735_149_311_6e-7,
    ];
    let x = x - 1.0;
    let t = x + 7.5;
    let a = C.iter().enumerate().skip(1).fold(C[0], |a, (i, c)| a + c / (x + i as f64));
    0.5 * (2.0 * std::f64::consts::PI).ln() + (x + 0.5) * t.ln() - t + a.ln()
}

/// ln of the ways to choose `k` of `n`.
pub fn ln_choose(n: f64, k: f64) -> f64 {
    ln_gamma(n + 1.0) - ln_gamma(k + 1.0) - ln_gamma(n - k + 1.0)
}

/// ln of the probability that just these `k` of `n` are the odd ones, where any number of them is as likely.
pub fn ln_any_order(n: usize, k: usize) -> f64 {
    -(n as f64 + 1.0).ln() - ln_choose(n as f64, k as f64)
}

/// ln of the beta-binomial probability of k successes in n, with a Beta(a, b) prior on the rate.
pub fn ln_beta_binomial(k: f64, n: f64, a: f64, b: f64) -> f64 {
    let ln_beta = |x: f64, y: f64| ln_gamma(x) + ln_gamma(y) - ln_gamma(x + y);
    ln_choose(n, k) + ln_beta(k + a, n - k + b) - ln_beta(a, b)
}

/// ln(sum(exp(x))) without overflow.
pub fn ln_sum_exp(x: &[f64]) -> f64 {
    let top = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if top == f64::NEG_INFINITY { top } else { top + x.iter().map(|a| (a - top).exp()).sum::<f64>().ln() }
}

/// Complementary error function, to 1.2e-7 (Numerical Recipes' rational Chebyshev fit).
pub fn erfc(x: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.5 * x.abs());
    const C: [f64; 10] = [
        -1.265_512_23,
        1.000_023_68,
        0.374_091_96,
        0.096_784_18,
        -0.186_288_06,
        0.278_868_07,
        -1.135_203_98,
        1.488_515_87,
        -0.822_152_23,
        0.170_872_77,
    ];
    let poly = C.iter().rev().fold(0.0, |s, c| s * t + c);
    let v = t * (-x * x + poly).exp();
    if x >= 0.0 { v } else { 2.0 - v }
}

/// The chance that a standard normal variable lies `z` standard deviations or more from its mean, either way.
pub fn two_sided(z: f64) -> f64 {
    erfc(z / std::f64::consts::SQRT_2).min(1.0)
}

/// Cumulated normal distribution, to 1e-7 (Abramowitz and Stegun 26.2.17).
pub fn normal(z: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.231_641_9 * z.abs());
    let series = [0.319_381_530, -0.356_563_782, 1.781_477_937, -1.821_255_978, 1.330_274_429];
    let sum: f64 = series.iter().rev().fold(0.0, |s, c| (s + c) * t);
    let tail = (-z * z / 2.0).exp() / std::f64::consts::TAU.sqrt() * sum;
    if z > 0.0 { 1.0 - tail } else { tail }
}

/// Its inverse, by halving.
pub fn normal_inverse(p: f64) -> f64 {
    let (mut low, mut high) = (-9.0f64, 9.0f64);
    while high - low > 1e-9 {
        let middle = (low + high) / 2.0;
        if normal(middle) < p { low = middle } else { high = middle }
    }
    (low + high) / 2.0
}

/// Student's t at 97.5 % for a mean of so many values: n - 1 degrees of freedom, from a table to 9, then 1.96 + 2.4 / df, within 1.5 % of it
/// from there on. Of fewer than two values as of two.
pub fn student_975(n: usize) -> f64 {
    const T: [f64; 9] = [12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26];
    T.get(n.saturating_sub(2)).copied().unwrap_or_else(|| 1.96 + 2.4 / (n - 1) as f64)
}

/// Student's t with three degrees of freedom, which forgives outliers; not normalised.
pub fn t3_kernel(x: f64) -> f64 {
    (1.0 + x * x / 3.0).powi(-2)
}

/// Student's t density with three degrees of freedom, of width `scale`.
pub fn t3_density(x: f64, scale: f64) -> f64 {
    0.3675 / scale / (1.0 + (x / scale).powi(2) / 3.0).powi(2)
}

/// Density of the normal distribution with mean `m` and standard deviation `s`.
pub fn normal_density(x: f64, m: f64, s: f64) -> f64 {
    (-0.5 * ((x - m) / s).powi(2)).exp() / s / 2.5066
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of Abramowitz and Stegun: tables 6.1, 7.1, 26.1 and 26.10.
    #[test]
    fn textbook_values() {
        assert!((ln_gamma(5.0) - 24f64.ln()).abs() < 1e-12);
        assert!((ln_gamma(0.5) - std::f64::consts::PI.sqrt().ln()).abs() < 1e-12);
        // A uniform prior makes every count equally likely.
        assert!((ln_beta_binomial(3.0, 9.0, 1.0, 1.0) - (0.1f64).ln()).abs() < 1e-12);
        assert!((ln_sum_exp(&[1000.0, 1000.0]) - 1000.0 - 2f64.ln()).abs() < 1e-12);
        for (x, value) in [(0.0, 1.0), (0.5, 0.479_500_1), (1.0, 0.157_299_2), (2.0, 0.004_677_7), (-1.0, 1.842_700_8)] {
            assert!((erfc(x) - value).abs() < 3e-7, "erfc({x}) = {}", erfc(x));
        }
        for (z, value) in [(0.0, 0.5), (1.0, 0.841_344_7), (1.96, 0.975_002_1), (-2.0, 0.022_750_1), (3.0, 0.998_650_1)] {
            assert!((normal(z) - value).abs() < 2e-7, "normal({z}) = {}", normal(z));
            assert!((normal_inverse(value) - z).abs() < 2e-5, "{z}");
            // Both are of one distribution.
            assert!((two_sided(z.abs()) - 2.0 * (1.0 - normal(z.abs()))).abs() < 1e-6);
        }
        for (n, t) in [(2, 12.706), (3, 4.303), (4, 3.182), (5, 2.776), (6, 2.571), (10, 2.262)] {
            assert!((student_975(n) / t - 1.0f64).abs() < 2e-3, "{n} values");
        }
        // The density of Student's t with three degrees of freedom at 0 is 2 / (pi sqrt 3).
        assert!((t3_density(0.0, 1.0) - 0.367_552_6).abs() < 1e-4 && (t3_density(2.0, 2.0) * 2.0 - t3_density(1.0, 1.0)).abs() < 1e-12);
        assert!((t3_kernel(1.0) - 0.5625).abs() < 1e-12 && (normal_density(1.0, 1.0, 2.0) - 0.199_471_1).abs() < 1e-5);
    }
}

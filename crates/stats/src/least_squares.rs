//! Lines through points.

/// The line of least weighted squares through (x, y, weight): y at 0, and what each x adds. `None` where the points allow none: fewer than
/// two places, or no weight. A weight of 1 / y^2 makes the relative error least.
pub fn line(points: impl Iterator<Item = (f64, f64, f64)> + Clone) -> Option<(f64, f64)> {
    let sum = |f: &dyn Fn(f64, f64) -> f64| points.clone().map(|(x, y, w)| f(x, y) * w).sum::<f64>();
    let (w, wx, wy, wxx, wxy) = (sum(&|_, _| 1.0), sum(&|x, _| x), sum(&|_, y| y), sum(&|x, _| x * x), sum(&|x, y| x * y));
    let d = w * wxx - wx * wx;
    let each = (w * wxy - wx * wy) / d;
    (d.is_finite() && d > 1e-9 * w * wxx).then(|| ((wy - each * wx) / w, each))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn textbook_values() {
        let of = |p: &[(f64, f64, f64)]| line(p.iter().copied());
        // Anscombe's first set: 3.0001 + 0.5001 x.
        let x = [10.0, 8.0, 13.0, 9.0, 11.0, 14.0, 6.0, 4.0, 12.0, 7.0, 5.0];
        let y = [8.04, 6.95, 7.58, 8.81, 8.33, 9.96, 7.24, 4.26, 10.84, 4.82, 5.68];
        let all: Vec<(f64, f64, f64)> = x.iter().zip(y).map(|(&x, y)| (x, y, 1.0)).collect();
        let (at, each) = of(&all).unwrap();
        assert!((at - 3.000_091).abs() < 1e-6 && (each - 0.500_091).abs() < 1e-6, "{at} {each}");
        // A weight is how often a point counts.
        let twice: Vec<(f64, f64, f64)> = all.iter().copied().chain([all[2]]).collect();
        let weighted: Vec<(f64, f64, f64)> = all.iter().enumerate().map(|(i, p)| (p.0, p.1, if i == 2 { 2.0 } else { 1.0 })).collect();
        let (a, b) = (of(&twice).unwrap(), of(&weighted).unwrap());
        assert!((a.0 - b.0).abs() < 1e-9 && (a.1 - b.1).abs() < 1e-9);
        for none in [&[][..], &[(1.0, 2.0, 1.0)], &[(1.0, 2.0, 1.0), (1.0, 3.0, 1.0)], &[(1.0, 2.0, 0.0), (2.0, 3.0, 0.0)]] {
            assert_eq!(of(none), None);
        }
    }
}

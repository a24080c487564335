//! Least squares with coefficients that are not negative, for a handful of unknowns.

/// The x with no negative element that minimises x'Ax - 2b'x, where A = `a` is symmetric and positive semidefinite: of the least
/// squares solutions over every subset of the unknowns (Kuhn-Tucker), the best one that is not negative. Unknowns that
/// others make superfluous are 0. The work doubles with each unknown.
pub fn nonnegative<const N: usize>(a: &[[f64; N]; N], b: &[f64; N]) -> [f64; N] {
    let mut best = ([0.0; N], 0.0);
    // Unknowns that nothing depends on are in no solution.
    let nothing: u32 = (0..N).filter(|&k| a[k][k] == 0.0).map(|k| 1 << k).sum();
    for set in (1u32..1 << N).filter(|set| set & nothing == 0) {
        if let Some(x) = solve(a, b, set) {
            let gain = x.iter().zip(b).map(|(x, b)| x * b).sum();
            if gain > best.1 && x.iter().all(|&x| x >= 0.0) {
                best = (x, gain);
            }
        }
    }
    best.0
}

/// Solves Ax = b over the unknowns in `set`, the others being 0, by Cholesky's method; `None` where they depend on each other.
fn solve<const N: usize>(a: &[[f64; N]; N], b: &[f64; N], set: u32) -> Option<[f64; N]> {
    let mut index = [0; N];
    let mut n = 0;
    for k in (0..N).filter(|k| set >> k & 1 == 1) {
        index[n] = k;
        n += 1;
    }
    let (mut l, mut y, mut x) = ([[0.0; N]; N], [0.0; N], [0.0; N]);
    for i in 0..n {
        for j in 0..i {
            let sum: f64 = (0..j).map(|k| l[i][k] * l[j][k]).sum();
            l[i][j] = (a[index[i]][index[j]] - sum) / l[j][j];
        }
        let own = a[index[i]][index[i]];
        let left = own - (0..i).map(|k| l[i][k] * l[i][k]).sum::<f64>();
        if left.is_nan() || left <= 1e-9 * own {
            return None;
        }
        l[i][i] = left.sqrt();
        y[i] = (b[index[i]] - (0..i).map(|k| l[i][k] * y[k]).sum::<f64>()) / l[i][i];
    }
    for i in (0..n).rev() {
        let sum: f64 = (i + 1..n).map(|k| l[k][i] * x[index[k]]).sum();
        x[index[i]] = (y[i] - sum) / l[i][i];
    }
    Some(x)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn normal(rows: &[[f64; 4]], t: &[f64]) -> ([[f64; 4]; 4], [f64; 4]) {
        let (mut a, mut b) = ([[0.0; 4]; 4], [0.0; 4]);
        for (r, t) in rows.iter().zip(t) {
            for i in 0..4 {
                b[i] += r[i] * t;
                for j in 0..4 {
                    a[i][j] += r[i] * r[j];
                }
            }
        }
        (a, b)
    }

    #[test]
    fn an_unknown_that_would_be_negative_is_zero() {
        // t = 3 - x, and one column twice.
        let rows: Vec<[f64; 4]> = (0..6).map(|i| [1.0, i as f64, 1.0, (i % 2) as f64]).collect();
        let t: Vec<f64> = (0..6).map(|i| 3.0 - i as f64).collect();
        let (a, b) = normal(&rows, &t);
        let x = nonnegative(&a, &b);
        assert!(x[1] == 0.0 && (x[0] == 0.0 || x[2] == 0.0), "{x:?}");
        // What is left is their mean.
        assert!((x[0] + x[2] - 0.5).abs() < 1e-9, "{x:?}");
    }

    proptest! {
        /// Kuhn-Tucker: the gradient is zero where x is positive, and points outwards where x is 0.
        #[test]
        fn nothing_near_is_better(v in prop::collection::vec(prop::array::uniform5(0.0f64..10.0), 6..20)) {
            let rows: Vec<[f64; 4]> = v.iter().map(|r| [r[0], r[1], r[2], r[3]]).collect();
            let t: Vec<f64> = v.iter().map(|r| r[4]).collect();
            let (a, b) = normal(&rows, &t);
            let x = nonnegative(&a, &b);
            for i in 0..4 {
                let gradient = (0..4).map(|j| a[i][j] * x[j]).sum::<f64>() - b[i];
                let scale = 1e-6 * b[i].max(1.0);
                prop_assert!(x[i] >= 0.0 && gradient > -scale && (x[i] == 0.0 || gradient < scale), "{x:?} {gradient}");
            }
        }
    }
}

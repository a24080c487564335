//! Statistics, one of each: every room that needs a quantile, a line, a rank or a distribution takes it from here.
//!
//! Sources: Hyndman and Fan, Sample Quantiles in Statistical Packages (1996), for the type of quantile; Abramowitz and Stegun, Handbook of
//! Mathematical Functions; Press et al., Numerical Recipes; Efron and Tibshirani, An Introduction to the Bootstrap; Conover, Practical
//! Nonparametric Statistics.

mod change;
mod distributions;
mod least_squares;
mod order;
mod ranks;
mod resample;
mod robust;

pub use change::{StartUp, period, start_up, two_levels};
pub use distributions::{
    erfc, ln_any_order, ln_beta_binomial, ln_choose, ln_gamma, ln_sum_exp, normal, normal_density, normal_inverse, student_975, t3_density,
    t3_kernel, two_sided,
};
pub use least_squares::line;
pub use order::{ascending, descending, sort_by, sort_by_key};
pub use ranks::{correlation_with_next, larger, mann_whitney, mann_whitney_z, mean_ranks, shift};
pub use resample::{bootstrap_median, bootstrap_medians, bootstrap_ratio, expanded};
pub use robust::{Estimate, deviation, location, low_difference, mad, mean, mean_within, median, quantile, two_kinds};

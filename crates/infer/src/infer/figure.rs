//! Plots as values: what the samples of a run look like, whoever draws them.

/// A plot: one or several series over one x axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    pub title: String,
    pub x: String,
    pub y: String,
    pub log_x: bool,
    pub log_y: bool,
    pub series: Vec<Series>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    pub name: String,
    pub points: Vec<(f64, f64)>,
}

/// What the names of the series end in that hold the 95 % bounds of another one.
pub const LOW: &str = " (95 % low)";
pub const HIGH: &str = " (95 % high)";

/// x, value, lower and upper bound.
pub type Bounded = (f64, f64, f64, f64);

impl Series {
    /// A series and its bounds. Points without a finite interval get none.
    pub fn with_bounds(name: &str, points: &[Bounded]) -> Vec<Series> {
        let series = |name: String, y: &dyn Fn(&Bounded) -> f64| Series {
            name,
            points: points.iter().map(|p| (p.0, if y(p).is_finite() { y(p) } else { p.1 })).collect(),
        };
        vec![series(name.into(), &|p| p.1), series(format!("{name}{LOW}"), &|p| p.2), series(format!("{name}{HIGH}"), &|p| p.3)]
    }
}

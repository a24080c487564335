//! A figure that a benchmark printed: a rate or a time under stated conditions.

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Metric {
    /// What was done: "record write", "random read", ...
    pub name: String,
    /// Under which conditions: "100 B records", "4 KiB, depth 1". Only equal conditions are compared.
    pub conditions: String,
    /// The median of the passes, or the one value that was printed.
    pub value: f64,
    /// kB/s, MB/s (1000), IOPS, ms, µs.
    pub unit: String,
    /// Passes, where there were several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub passes: Vec<f64>,
}

impl Metric {
    pub fn new(name: &str, conditions: impl Into<String>, unit: &str, passes: &[f64]) -> Metric {
        let mut sorted = passes.to_vec();
        sorted.sort_by(f64::total_cmp);
        let n = sorted.len();
        let value = if n == 0 { f64::NAN } else { (sorted[(n - 1) / 2] + sorted[n / 2]) / 2.0 };
        let passes = if n > 1 { passes.to_vec() } else { vec![] };
        Metric { name: name.into(), conditions: conditions.into(), value, unit: unit.into(), passes }
    }

    /// True where more is better.
    pub fn more_is_better(&self) -> bool {
        ["B/s", "IOPS", "ops"].iter().any(|u| self.unit.contains(u))
    }

    /// Name and conditions as one word, for searching: "record-write-100-b-records".
    pub fn key(&self) -> String {
        let text = format!("{} {}", self.name, self.conditions).to_lowercase();
        text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|w| !w.is_empty()).collect::<Vec<_>>().join("-")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_the_passes() {
        let m = Metric::new("record write", "100 B records", "kB/s", &[3.0, 1.0, 2.0]);
        assert_eq!((m.value, m.passes.len(), m.more_is_better()), (2.0, 3, true));
        assert_eq!(Metric::new("x", "", "ms", &[4.0]).passes.len(), 0);
        assert_eq!(m.key(), "record-write-100-b-records");
    }
}

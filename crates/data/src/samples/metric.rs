//! A figure that a benchmark printed: a rate or a time under stated conditions.

use serde::{Deserialize, Serialize};

/// What the value of a figure is of its passes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Over {
    #[default]
    Median,
    Longest,
    Shortest,
}

impl Over {
    fn is_median(&self) -> bool {
        *self == Over::Median
    }

    /// "median", "longest", "shortest".
    pub fn word(self) -> &'static str {
        match self {
            Over::Median => "median",
            Over::Longest => "longest",
            Over::Shortest => "shortest",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Metric {
    /// What was done: "record write", "random read", ...
    pub name: String,
    /// Under which conditions: "100 B records", "4 KiB, depth 1". Only equal conditions are compared.
    pub conditions: String,
    /// The median, longest or shortest of the passes, or the one value that was printed.
    pub value: f64,
    /// kB/s, MB/s (1000), IOPS, ms, µs.
    pub unit: String,
    /// Passes, where there were several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub passes: Vec<f64>,
    #[serde(default, skip_serializing_if = "Over::is_median")]
    pub over: Over,
}

impl Metric {
    pub fn new(name: &str, conditions: impl Into<String>, unit: &str, passes: &[f64]) -> Metric {
        let mut sorted = passes.to_vec();
        sorted.sort_by(f64::total_cmp);
        let n = sorted.len();
        let value = if n == 0 { f64::NAN } else { (sorted[(n - 1) / 2] + sorted[n / 2]) / 2.0 };
        let passes = if n > 1 { passes.to_vec() } else { vec![] };
        Metric { name: name.into(), conditions: conditions.into(), value, unit: unit.into(), passes, over: Over::Median }
    }

    /// The same with the longest or shortest of the passes as its value.
    pub fn over(mut self, over: Over) -> Metric {
        self.over = over;
        let all = self.passes.iter().copied();
        match over {
            Over::Median => {}
            Over::Longest => self.value = all.fold(self.value, f64::max),
            Over::Shortest => self.value = all.fold(self.value, f64::min),
        }
        self
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
        // The longest of several passes is the longest, whatever their number; one value stays what it is.
        for passes in [&[53151.0, 19322.0][..], &[4.0, 9.0, 5.0], &[7.0, 1.0, 2.0, 3.0], &[6.0]] {
            let (max, min) = passes.iter().fold((f64::MIN, f64::MAX), |(a, b), &x| (a.max(x), b.min(x)));
            let of = |over| Metric::new("x", "", "µs", passes).over(over);
            assert_eq!((of(Over::Longest).value, of(Over::Shortest).value), (max, min));
            let again: Metric = serde_json::from_str(&serde_json::to_string(&of(Over::Longest)).unwrap()).unwrap();
            assert_eq!(again, of(Over::Longest));
        }
    }
}

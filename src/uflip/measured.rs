//! What was measured, as it is said and saved.

use super::plan::{Base, Experiment, Pattern, SIZE, Vary};
use serde::Serialize;

/// The state of the flash before the experiments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// As it is: nothing is enforced
    AsIs,
    /// The region written once in sequential order
    Sequential,
    /// uFLIP's state: the region written once by random writes of 128 KiB to 512 B
    Random,
}

/// Start-up and period of a baseline.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Phase {
    pub base: Base,
    pub accesses: u64,
    /// Accesses until it is steady; 0 where it is from the first one.
    pub start_up: u64,
    /// Mean time in the start-up over that afterwards.
    pub start_up_ratio: Option<f64>,
    /// Accesses after which times repeat.
    pub period: Option<u64>,
    /// Mean time of an access afterwards, in µs.
    pub mean_us: f64,
    /// Each access, in µs, for a picture.
    #[serde(skip)]
    pub times_us: Vec<f64>,
}

/// The pause between experiments.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Pause {
    /// How long reads stay slow after random writes, in ms; none where it was not measured.
    pub slow_for_ms: Option<f64>,
    /// They were still slow at the end.
    pub still_slow: bool,
    /// What is waited between two runs, in ms.
    pub ms: f64,
}

/// One run of one value by one stream.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    pub code: String,
    pub bench: u32,
    pub exp: u32,
    pub value: i64,
    pub run: u32,
    pub stream: u64,
    #[serde(skip)]
    pub pattern: Option<Pattern>,
    pub mean_us: f64,
    pub min_us: f64,
    pub max_us: f64,
    pub deviation_us: f64,
    /// Between the accesses, in µs.
    pub lost_us: f64,
    /// The whole run, in µs.
    pub clock_us: f64,
    pub ignored: u64,
    pub offset: u64,
    pub second_offset: u64,
    pub count: u64,
    /// Bytes of the areas.
    pub target: u64,
    pub second_target: u64,
    /// The region is smaller than what the plan asks for, so that an area was used again.
    pub crowded: bool,
    /// Seconds since 1970 at its end.
    pub at: u64,
}

/// A value over its runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Point {
    pub value: i64,
    pub x: f64,
    pub runs: u32,
    /// Mean time of an access, in µs, with its bounds at 95 %.
    pub mean_us: f64,
    pub interval_us: [f64; 2],
    /// The interval is as narrow as was asked for.
    pub narrow: bool,
    /// Bytes a second of all streams together, over the clock time.
    pub rate: f64,
}

/// An experiment as it was measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Done {
    #[serde(flatten)]
    pub experiment: Experiment,
    pub points: Vec<Point>,
    /// Values that were left out, and why.
    pub left_out: Vec<(i64, String)>,
}

/// An experiment that was not run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LeftOut {
    pub code: String,
    pub seconds: f64,
    pub bytes: u64,
    pub because: String,
}

/// A baseline that became slower or faster while the experiments ran.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Drift {
    pub base: Base,
    /// Mean times of an access where nothing is varied, in µs, in the order of the run: the experiment, the time.
    pub means_us: Vec<(String, f64)>,
}

impl Measured {
    /// Baselines whose times differ by half or more between two experiments that both hold them.
    pub fn drifts(&self) -> Vec<Drift> {
        let plain = |d: &Done, b: Base| {
            let e = &d.experiment;
            let value = match e.vary {
                Vary::Granularity => (SIZE / 512) as i64,
                Vary::Partitioning | Vary::Order | Vary::Parallelism => 1,
                Vary::Pause => 0,
                Vary::Mix if e.second == Some(b) => 0,
                _ => return None,
            };
            let fits = e.base == b || e.vary == Vary::Mix;
            d.points.iter().find(|p| fits && p.value == value).map(|p| (e.code.clone(), p.mean_us))
        };
        let of = |b: Base| {
            let first = self.phases.iter().filter(|p| p.base == b).map(|p| (format!("SIO.{}", b.name()), p.mean_us));
            let means_us: Vec<(String, f64)> = first
                .chain(self.done.iter().filter(|d| d.experiment.vary != Vary::Mix || d.experiment.base != b).filter_map(|d| plain(d, b)))
                .collect();
            Drift { base: b, means_us }
        };
        let wide = |d: &Drift| {
            let (lo, hi) = d.means_us.iter().fold((f64::INFINITY, 0.0f64), |(l, h), m| (l.min(m.1), h.max(m.1)));
            hi > 1.5 * lo
        };
        Base::ALL.into_iter().map(of).filter(wide).collect()
    }
}

/// Everything.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Measured {
    pub format: Format,
    /// Bytes that bringing the device into that state wrote.
    pub formatted: u64,
    pub phases: Vec<Phase>,
    pub pause: Pause,
    /// The shortest rest before a baseline, in s, where the time did not allow the usual one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rest_s: Option<f64>,
    /// Sixteen reads at once take as long as sixteen one by one.
    pub one_at_a_time: bool,
    pub done: Vec<Done>,
    pub left_out: Vec<LeftOut>,
    #[serde(skip)]
    pub rows: Vec<Row>,
    pub ended: Option<String>,
}

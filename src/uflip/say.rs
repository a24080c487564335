//! What an experiment says, in one sentence, and as a figure: what uFLIP leaves to the eye.

use super::measured::{Done, Drift, Measured, Phase, Point};
use super::plan::{Base, Vary};
use crate::infer::figure::{Bounded, Figure, Series};
use crate::units::{Bytes, rate, three};

/// Differences below this are called none.
const ALIKE: f64 = 0.1;

fn ms(us: f64) -> String {
    if us < 1000.0 { format!("{} µs", three(us)) } else { format!("{} ms", three(us / 1000.0)) }
}

/// Times as much or little as another one, where the intervals do not overlap and it matters.
fn differs(a: &Point, b: &Point) -> bool {
    let apart = a.interval_us[0] > b.interval_us[1] || b.interval_us[0] > a.interval_us[1];
    apart && (a.mean_us / b.mean_us - 1.0).abs() > ALIKE
}

/// A sentence for each experiment.
pub fn sentence(d: &Done, m: &Measured) -> String {
    let e = &d.experiment;
    let Some(first) = d.points.first() else { return "not measured".into() };
    let at = |v: i64| d.points.iter().find(|p| p.value == v);
    let shown = |p: &Point| match e.vary {
        Vary::Granularity | Vary::Alignment | Vary::Locality => Bytes(p.x as u64).to_string(),
        _ => p.value.to_string(),
    };
    let unsure = d.points.iter().filter(|p| !p.narrow).count();
    let text = match e.vary {
        Vary::Granularity => granularity(d),
        Vary::Alignment => {
            let base = m.phases.iter().find(|p| p.base == e.base).map(|p| p.mean_us);
            let last = d.points.last().unwrap_or(first);
            match d.points.iter().find(|p| !differs(p, last)).filter(|p| p.value != first.value) {
                Some(p) => format!(
                    "cheap from a shift of {} on; shifted by {} it takes {} times as long",
                    shown(p),
                    shown(first),
                    three(first.mean_us / last.mean_us)
                ),
                None => {
                    let much = base.map_or(String::new(), |b| format!(" ({} unshifted)", ms(b)));
                    format!("all shifts alike: {}{much}", ms(last.mean_us))
                }
            }
        }
        // From the smallest target: up to where it costs what the smallest costs.
        Vary::Locality | Vary::Partitioning | Vary::Parallelism if e.vary != Vary::Parallelism => {
            let what = if e.vary == Vary::Locality { "a target of " } else { "" };
            let unit = if e.vary == Vary::Locality { "" } else { " partitions" };
            let limit = first.interval_us[1].max(first.mean_us * 1.5);
            let last = d.points.iter().take_while(|p| p.mean_us <= limit).last().unwrap_or(first);
            let end = d.points.last().unwrap_or(first);
            if last.value == end.value {
                format!("alike up to {what}{}{unit}: {}", shown(end), ms(end.mean_us))
            } else {
                format!(
                    "cheap up to {what}{}{unit} ({}); at {}{unit} {} times as long",
                    shown(last),
                    ms(first.mean_us),
                    shown(end),
                    three(end.mean_us / first.mean_us)
                )
            }
        }
        Vary::Parallelism => {
            let best = d.points.iter().max_by(|a, b| a.rate.total_cmp(&b.rate)).unwrap_or(first);
            let last = d.points.last().unwrap_or(first);
            let note = if m.one_at_a_time { " (served one at a time: interleaved streams)" } else { "" };
            let gain = best.rate / first.rate;
            if gain > 1.0 + ALIKE {
                format!("{} times the rate with {} streams{note}", three(gain), best.value)
            } else if last.rate < first.rate / (1.0 + ALIKE) {
                format!("no gain; {} streams have {} of the rate of one{note}", last.value, three(last.rate / first.rate))
            } else {
                format!("the same rate with 1 to {} streams: {}{note}", last.value, rate(last.rate))
            }
        }
        Vary::Order => {
            let one = at(1).unwrap_or(first);
            let times = |v: i64, name: &str| {
                at(v).map(|p| {
                    if differs(p, one) {
                        format!("{name} {} times as long", three(p.mean_us / one.mean_us))
                    } else {
                        format!("{name} alike")
                    }
                })
            };
            let all: Vec<String> =
                [times(-1, "backwards"), times(0, "in place"), times(256, "with gaps of 8 MiB")].into_iter().flatten().collect();
            format!("against ascending order ({}): {}", ms(one.mean_us), all.join(", "))
        }
        Vary::Mix => mix(d, m),
        Vary::Pause | Vary::Bursts => {
            let (best, of) = (
                d.points.iter().min_by(|a, b| a.mean_us.total_cmp(&b.mean_us)).unwrap_or(first),
                if e.vary == Vary::Pause { first } else { d.points.last().unwrap_or(first) },
            );
            if differs(best, of) && best.mean_us < of.mean_us {
                let with =
                    if e.vary == Vary::Pause { format!("pauses of {} µs", best.value) } else { format!("bursts of {}", best.value) };
                format!("rest helps: {} with {with}, {} of {}", ms(best.mean_us), three(best.mean_us / of.mean_us), ms(of.mean_us))
            } else {
                format!("rest does not help: {}", ms(of.mean_us))
            }
        }
        Vary::Locality | Vary::Partitioning => String::new(),
    };
    match unsure {
        0 => text,
        n => format!("{text}; wider interval than asked for: {n} of {} values", d.points.len()),
    }
}

/// A fixed cost and a rate: the line through time over size with relative weights.
fn granularity(d: &Done) -> String {
    let of = |p: &Point| (p.x, p.mean_us, 1.0 / p.mean_us.powi(2).max(1e-12));
    let powers: Vec<&Point> = d.points.iter().filter(|p| (p.value as u64).is_power_of_two()).collect();
    let Some((fixed, each)) = nandscope_stats::line(powers.iter().map(|p| of(p))) else { return "too few sizes".into() };
    let off = powers.iter().map(|p| (p.mean_us / (fixed + each * p.x) - 1.0).abs()).fold(0.0, f64::max);
    let fits = if off < 0.25 { String::new() } else { format!(", off by up to {:.0} %", 100.0 * off) };
    // Odd sizes against the power of two above.
    let odd: Vec<f64> = d
        .points
        .iter()
        .filter(|p| !(p.value as u64).is_power_of_two())
        .filter_map(|p| Some(p.mean_us / powers.iter().find(|q| q.value == p.value + 1)?.mean_us))
        .collect();
    let odd = odd.iter().copied().fold(0.0, f64::max);
    let odd = if odd > 1.0 + ALIKE {
        format!("; odd sizes take up to {} times as long as the next power of two", three(odd))
    } else {
        String::new()
    };
    if each > 1e-9 {
        format!("{} each and {} beyond that{fits}{odd}", ms(fixed.max(0.0)), rate(1e6 / each))
    } else {
        format!("{} each, whatever the size{odd}", ms(fixed))
    }
}

/// Against what both would take one by one.
fn mix(d: &Done, m: &Measured) -> String {
    let e = &d.experiment;
    // The second base alone is one of the values, measured at the same time.
    let alone = d.points.iter().find(|p| p.value == 0).map(|p| p.mean_us);
    let mean = |b: Base| m.phases.iter().find(|p| p.base == b).map(|p| p.mean_us);
    let (Some(a), Some(b)) = (mean(e.base), alone.or_else(|| e.second.and_then(mean))) else {
        return "the bases were not measured alone".into();
    };
    let expected = |p: &Point| {
        let r = p.value.unsigned_abs() as f64;
        match p.value {
            0 => b,
            v if v > 0 => (b + r * a) / (r + 1.0),
            _ => (a + r * b) / (r + 1.0),
        }
    };
    let off = |p: &&Point| p.mean_us / expected(p);
    let Some(worst) = d.points.iter().max_by(|x, y| off(x).total_cmp(&off(y))) else { return String::new() };
    let ratio = off(&worst);
    if ratio > 1.0 + 2.0 * ALIKE {
        format!("mixed they take up to {} times what both take alone (ratio {})", three(ratio), worst.value)
    } else {
        format!("mixed they take what both take alone ({:+.0} % at the most)", 100.0 * (ratio - 1.0))
    }
}

/// What changed while the experiments ran.
pub fn drift(d: &Drift) -> String {
    let least = d.means_us.iter().min_by(|a, b| a.1.total_cmp(&b.1));
    let most = d.means_us.iter().max_by(|a, b| a.1.total_cmp(&b.1));
    let of = |x: Option<&(String, f64)>| x.map_or(String::new(), |x| format!("{} in {}", ms(x.1), x.0));
    format!(
        "the card did not stay the same: {} took {} and {}; experiments far apart cannot be compared. --state random, or more accesses before, may settle it",
        d.base.name(),
        of(least),
        of(most)
    )
}

/// Start-up and period in words.
pub fn phase(p: &Phase) -> String {
    let start = match (p.start_up, p.start_up_ratio) {
        (0, _) | (_, None) => "steady from the first access".to_string(),
        (n, Some(r)) => format!("a start-up of {n} accesses at {} of the time afterwards", three(r)),
    };
    let repeats = p.period.map_or("no period found".to_string(), |n| format!("repeats after {n} accesses"));
    format!("{} {}, {start}, {repeats}; {} accesses", p.base.name(), ms(p.mean_us), p.accesses)
}

/// The figure of an experiment: mean time over the parameter, with the bounds of the runs.
pub fn figure(d: &Done) -> Figure {
    let e = &d.experiment;
    let log_x =
        matches!(e.vary, Vary::Granularity | Vary::Alignment | Vary::Locality | Vary::Partitioning | Vary::Parallelism | Vary::Bursts);
    let mut points: Vec<Bounded> =
        d.points.iter().map(|p| (p.x, p.mean_us / 1e3, p.interval_us[0].max(p.mean_us * 0.01) / 1e3, p.interval_us[1] / 1e3)).collect();
    nandscope_stats::ascending(&mut points, |a| a.0);
    let name = match e.second {
        Some(b) => format!("{} and {}", e.base.name(), b.name()),
        None => e.base.name().to_string(),
    };
    Figure {
        title: format!("{}: {}", e.code, e.vary.name()),
        x: e.vary.axis().into(),
        y: "ms".into(),
        log_x,
        log_y: true,
        series: Series::with_bounds(&name, &points),
    }
}

/// The figure of a baseline: each access.
pub fn phase_figure(p: &Phase) -> Figure {
    let step = (p.times_us.len() / 4000).max(1);
    let points = p.times_us.iter().enumerate().step_by(step).map(|(i, t)| (i as f64, t / 1e3)).collect();
    Figure {
        title: format!("SIO.{}: each access", p.base.name()),
        x: "access".into(),
        y: "ms".into(),
        log_x: false,
        log_y: true,
        series: vec![Series { name: p.base.name().into(), points }],
    }
}

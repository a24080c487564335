//! One figure of several cards in one picture: a line a card.

use crate::infer::figure::{Figure, Series};
use crate::infer::pipeline;
use crate::samples::Run;

/// Cards in one picture: as many as there are colours.
pub const CARDS: usize = 6;
/// Points of a card in such a picture; of more, neighbours are averaged, so that the lines can be followed.
const POINTS: usize = 120;

/// Experiments of today's cards whose figures say more than a number: rates over what was written, over fill, over the queue and the window, and
/// over time under load.
const TODAY: [&str; 10] = [
    "slc-cache",
    "slc-fill",
    "map-window",
    "map-window-write",
    "steady-state",
    "queue-depth",
    "queue-depth-write",
    "mixed-reads",
    "pauses",
    "throttling",
];

/// What the experiments of a card draw, with the name of each.
pub fn drawn(runs: &[Run]) -> Vec<(String, Figure)> {
    let all = runs.iter().flat_map(|r| pipeline::figures(r).into_iter().map(|f| (r.experiment.clone(), f)));
    all.filter(|(_, f)| f.series.iter().any(|s| s.points.len() > 1)).collect()
}

/// The same, of the experiments for today's cards only.
pub fn drawn_today(runs: &[Run]) -> Vec<(String, Figure)> {
    drawn(runs).into_iter().filter(|(name, _)| TODAY.contains(&name.as_str())).collect()
}

/// Each figure that two of the cards have, with the main series of the first [`CARDS`] that have it.
pub fn beside(cards: &[(String, Vec<(String, Figure)>)]) -> Vec<Figure> {
    let mut out: Vec<(String, Figure)> = vec![];
    for (card, figures) in cards {
        // An experiment that ran twice is drawn as it ended.
        let mut seen = vec![];
        for (name, f) in figures.iter().rev() {
            let Some(main) = f.series.iter().find(|s| s.points.len() > 1) else { continue };
            if seen.contains(&(name, &f.title)) {
                continue;
            }
            seen.push((name, &f.title));
            let same = |o: &&mut (String, Figure)| o.0 == *name && (&o.1.title, &o.1.x, &o.1.y) == (&f.title, &f.x, &f.y);
            let series = Series { name: card.clone(), points: averaged(&main.points) };
            match out.iter_mut().find(same) {
                Some(o) if o.1.series.len() < CARDS => o.1.series.push(series),
                Some(_) => {}
                None => out.push((name.clone(), Figure { series: vec![series], ..f.clone() })),
            }
        }
    }
    nandscope_stats::sort_by_key(&mut out, |o| TODAY.iter().position(|t| *t == o.0).unwrap_or(TODAY.len()));
    out.into_iter().map(|o| o.1).filter(|f| f.series.len() > 1).collect()
}

/// Means of neighbours along x.
fn averaged(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let all: Vec<(f64, f64)> = points.iter().copied().filter(|p| p.0.is_finite() && p.1.is_finite()).collect();
    let size = all.len().div_ceil(POINTS).max(1);
    let mean = |c: &[(f64, f64)]| {
        let (x, y) = c.iter().fold((0.0, 0.0), |s, p| (s.0 + p.0, s.1 + p.1));
        (x / c.len() as f64, y / c.len() as f64)
    };
    all.chunks(size).map(mean).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(title: &str, n: usize, y: f64) -> (String, Figure) {
        let points = (0..n).map(|i| (i as f64, y)).collect();
        let series = vec![Series { name: "first fill".into(), points }, Series { name: "other".into(), points: vec![(0.0, 1.0); 3] }];
        ("slc-cache".into(), Figure { title: title.into(), x: "MiB".into(), y: "MB/s".into(), log_x: false, log_y: false, series })
    }

    #[test]
    fn a_line_a_card_and_nothing_that_one_card_has_alone() {
        let cards: Vec<_> = ["A", "B", "C"]
            .iter()
            .enumerate()
            .map(|(i, c)| {
                let mut all = vec![figure("rate", 1000, 10.0 * (i + 1) as f64)];
                if i == 0 {
                    all.push(figure("alone", 5, 1.0));
                }
                (c.to_string(), all)
            })
            .collect();
        let out = beside(&cards);
        assert_eq!(out.len(), 1);
        let f = &out[0];
        assert_eq!(f.series.iter().map(|s| s.name.as_str()).collect::<Vec<_>>(), ["A", "B", "C"]);
        assert!(f.series.iter().all(|s| s.points.len() <= POINTS), "lines that can be followed");
        assert_eq!((f.series[1].points[3].1, f.series[2].points[0].1), (20.0, 30.0));
    }

    #[test]
    fn what_is_drawn_are_experiments() {
        assert!(TODAY.iter().all(|t| crate::infer::all().any(|a| a.name() == *t)));
    }

    #[test]
    fn of_two_runs_the_last_and_of_many_cards_six() {
        let cards: Vec<_> = (0..9).map(|i| (format!("{i}"), vec![figure("rate", 4, 1.0), figure("rate", 4, 2.0)])).collect();
        let out = beside(&cards);
        assert_eq!((out.len(), out[0].series.len()), (1, CARDS));
        assert!(out[0].series.iter().all(|s| s.points[0].1 == 2.0));
    }
}

//! Speed against the size of the card, over many cards and by maker: does speed grow with density, as one would think, or fall
//! (C4, C9)? Which card is the slow one, and by what factor (C7)?

use super::db::Val;
use super::{Result, Survey, SurveyError, query};
use crate::compare::{Trend, trend};
use crate::experiment::{Figure, Series};
use crate::infer::stats::median;
use std::collections::BTreeMap;

/// One card in a chart.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    pub id: String,
    pub name: String,
    /// Empty where nobody knows.
    pub maker: String,
    /// Bytes.
    pub capacity: u64,
    pub value: f64,
    /// The entry has figures that contradict themselves: drawn, and left out of every statement.
    pub flagged: bool,
}

/// A figure of many cards.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// As in a search: "record-write-512-b-records".
    pub key: String,
    pub unit: String,
    /// By size, the largest first.
    pub points: Vec<Point>,
}

/// Rates that several cards of known size have, the one with the most cards first.
///
/// # Errors
/// The database.
pub fn keys(s: &mut Survey) -> Result<Vec<(String, usize)>> {
    let rows = s.query(
        "SELECT f.key, COUNT(DISTINCT f.id) FROM facts f JOIN cards c ON c.id = f.id
         WHERE c.capacity > 0 AND f.value > 0 AND f.shown LIKE '%B/s' GROUP BY f.key HAVING COUNT(DISTINCT f.id) >= 3
         ORDER BY COUNT(DISTINCT f.id) DESC, f.key",
        &[],
    )?;
    Ok(rows.into_iter().map(|r| (r[0].text(), r[1].int().unwrap_or(0) as usize)).collect())
}

/// The figure `key` of all cards that meet the conditions and whose size is known.
///
/// # Errors
/// A condition that cannot be understood, or the database.
pub fn chart(s: &mut Survey, key: &str, words: &[String]) -> Result<Chart> {
    let conditions: Vec<query::Condition> =
        words.iter().map(|w| query::parse(w)).collect::<std::result::Result<_, _>>().map_err(SurveyError::Query)?;
    let (sql, values) = query::all(&conditions, 1);
    let values: Vec<Val> = [key.into()].into_iter().chain(values).collect();
    let rows = s.query(
        &format!(
            "SELECT c.id, c.name, COALESCE(c.maker, ''), c.capacity, v.value, v.shown, c.flags
             FROM (SELECT id, value, shown FROM facts WHERE key = $1 AND value > 0) v
             JOIN (SELECT * FROM cards WHERE {sql} AND capacity > 0) c ON c.id = v.id
             ORDER BY c.capacity DESC, c.id{{C}}"
        ),
        &values,
    )?;
    let unit = rows.first().map(|r| r[5].text()).and_then(|t| t.split_whitespace().last().map(str::to_string)).unwrap_or_default();
    let points = rows
        .iter()
        .map(|r| Point {
            id: r[0].text(),
            name: r[1].text(),
            maker: r[2].text(),
            capacity: r[3].int().unwrap_or(0) as u64,
            value: if let Val::Real(v) = r[4] { v } else { f64::NAN },
            flagged: r[6].int().unwrap_or(0) > 0,
        })
        .collect();
    Ok(Chart { key: key.into(), unit, points })
}

/// Cards of one maker.
#[derive(Clone, Debug, PartialEq)]
pub struct Maker {
    pub name: String,
    pub cards: usize,
    /// Median, lowest, highest.
    pub values: [f64; 3],
}

impl Chart {
    fn sound(&self) -> impl Iterator<Item = &Point> {
        self.points.iter().filter(|p| !p.flagged)
    }

    /// Does the figure go with the size of the card?
    pub fn trend(&self) -> Option<Trend> {
        trend(&self.sound().map(|p| (p.capacity as f64, p.value)).collect::<Vec<_>>())
    }

    /// Slowest and fastest card.
    pub fn ends(&self) -> Option<(&Point, &Point)> {
        let by = |a: &&Point, b: &&Point| a.value.total_cmp(&b.value);
        Some((self.sound().min_by(by)?, self.sound().max_by(by)?))
    }

    /// The fastest maker first; cards of unknown make come last.
    pub fn makers(&self) -> Vec<Maker> {
        let mut by: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        self.sound().for_each(|p| by.entry(p.maker.as_str()).or_default().push(p.value));
        let mut all: Vec<Maker> = by
            .into_iter()
            .map(|(name, v)| {
                let (lo, hi) = v.iter().fold((f64::INFINITY, 0f64), |(l, h), &x| (l.min(x), h.max(x)));
                Maker { name: name.into(), cards: v.len(), values: [median(&v), lo, hi] }
            })
            .collect();
        all.sort_by(|a, b| a.name.is_empty().cmp(&b.name.is_empty()).then(b.values[0].total_cmp(&a.values[0])));
        all
    }

    /// The key as words.
    fn name(&self) -> String {
        let words = self.key.split('-').map(|w| match w {
            "b" => "B",
            "kib" => "KiB",
            "mib" => "MiB",
            "au" => "AU",
            "aus" => "AUs",
            w => w,
        });
        words.collect::<Vec<_>>().join(" ")
    }

    /// A point a card, a series a maker: the five with the most cards, all others together, and what is flagged.
    pub fn figure(&self) -> Figure {
        let mut makers = self.makers();
        makers.retain(|m| !m.name.is_empty());
        makers.sort_by(|a, b| b.cards.cmp(&a.cards).then(a.name.cmp(&b.name)));
        let named: Vec<&str> = makers.iter().take(4).map(|m| m.name.as_str()).collect();
        let group = |p: &Point| {
            match () {
                _ if p.flagged => "flagged",
                _ if named.contains(&p.maker.as_str()) => p.maker.as_str(),
                _ if named.is_empty() => "cards",
                _ => "others",
            }
            .to_string()
        };
        let mut series: Vec<Series> = vec![];
        // From right to left, so that nobody takes the cards of a maker for points of a line.
        for p in &self.points {
            let (name, point) = (group(p), (p.capacity as f64, p.value));
            match series.iter_mut().find(|s| s.name == name) {
                Some(s) => s.points.push(point),
                None => series.push(Series { name, points: vec![point] }),
            }
        }
        Figure {
            title: format!("{} against the size of the card", self.name()),
            x: "size of the card".into(),
            y: self.unit.clone(),
            log_x: true,
            // Less than one power of ten is read better from zero.
            log_y: self.ends().is_some_and(|(a, b)| b.value >= 10.0 * a.value),
            series,
        }
    }

    /// What the chart says, in one or two sentences.
    pub fn says(&self) -> String {
        let n = self.sound().count();
        let mut out = match self.trend() {
            None => format!("{n} cards, too few of different sizes to say whether the rate goes with the size"),
            Some(t) if t.p <= 0.05 && t.rho < 0.0 => {
                format!("the larger the card, the lower the rate: rank correlation {:.2} over {n} cards, p = {:.3}", t.rho, t.p)
            }
            Some(t) if t.p <= 0.05 => {
                format!("the larger the card, the higher the rate: rank correlation {:.2} over {n} cards, p = {:.3}", t.rho, t.p)
            }
            Some(t) => format!("no connection of rate and size shown: rank correlation {:.2} over {n} cards, p = {:.2}", t.rho, t.p),
        };
        if let Some((slow, fast)) = self.ends().filter(|(a, b)| a.value < b.value) {
            out +=
                &format!("; {} is the slowest, {} is {} times as fast", slow.name, fast.name, crate::units::three(fast.value / slow.value));
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn card(maker: &str, capacity: u64, value: f64, flagged: bool) -> Point {
        Point { id: format!("{maker}{capacity}"), name: format!("{maker} {capacity}"), maker: maker.into(), capacity, value, flagged }
    }

    /// C4: on ChaN's cards speed falls with density; what contradicts itself is drawn and counts nowhere (G7).
    #[test]
    fn speed_that_falls_with_size() {
        let mut points: Vec<Point> = (0..6).map(|i| card(["A", "B"][i % 2], 512 >> i, 10.0 * (i + 1) as f64, false)).collect();
        points.push(card("A", 8, 9999.0, true));
        let c = Chart { key: "record-write-512-b-records".into(), unit: "kB/s".into(), points };
        let t = c.trend().unwrap();
        assert!((t.rho + 1.0).abs() < 1e-12 && t.n == 6 && t.p < 0.01, "{t:?}");
        let says = c.says();
        assert!(
            says.contains("the larger the card, the lower the rate")
                && says.contains("A 512 is the slowest")
                && says.contains("6.00 times"),
            "{says}"
        );
        let f = c.figure();
        assert_eq!(f.series.iter().map(|s| (s.name.as_str(), s.points.len())).collect::<Vec<_>>(), [("A", 3), ("B", 3), ("flagged", 1)]);
        assert!(f.series.iter().all(|s| s.points.len() == 1 || !crate::report::figures::is_line(s)), "cards are no line");
        assert_eq!(c.makers()[0].values, [40.0, 20.0, 60.0]);
    }
}

//! Speed against the size of the card, over many cards and by maker: does speed grow with density, as one would think, or fall
//! (C4, C9)? Which card is the slow one, and by what factor (C7)? Every statement is of one host (C6).

use super::db::Val;
use super::{Result, Survey, hosts, query};
use crate::advise::price;
use crate::compare::{Trend, trend};
use crate::finding::Quantity;
use crate::infer::figure::{Figure, Series};
use crate::infer::stats::median;
use std::collections::BTreeMap;

/// One card in a chart.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    pub id: String,
    pub name: String,
    /// Empty where nobody knows.
    pub maker: String,
    /// Bytes; 0 where nobody said.
    pub capacity: u64,
    pub value: f64,
    /// The figure contradicts another of its entry: drawn, and left out of every statement.
    pub flagged: bool,
    /// One name for each host; empty where nobody said.
    pub host: String,
    pub simulated: bool,
    /// Amount and currency.
    pub price: Option<(f64, String)>,
    /// Entries of this card on this host; the value is their median.
    pub entries: usize,
}

/// A figure of many cards.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// As in a search: "record-write-512-b-records".
    pub key: String,
    pub unit: String,
    /// By size, the largest first; each card once.
    pub points: Vec<Point>,
    /// Cards whose size nobody said: they have no place in the chart.
    pub unsized_cards: Vec<Point>,
    /// Empty where nobody said, or where several were asked for.
    pub host: String,
}

/// Rates that several cards of known size have, the one with the most cards first.
///
/// # Errors
/// The database.
pub fn keys(s: &mut Survey) -> Result<Vec<(String, usize)>> {
    let rows = s.query(
        "SELECT f.key, COUNT(DISTINCT f.id) FROM facts f JOIN cards c ON c.id = f.id
         WHERE c.capacity > 0 AND f.value > 0 AND (f.shown LIKE '%B/s' OR f.shown LIKE '%IOPS') GROUP BY f.key HAVING COUNT(DISTINCT f.id) >= 3
         ORDER BY COUNT(DISTINCT f.id) DESC, f.key",
        &[],
    )?;
    Ok(rows.into_iter().map(|r| (r[0].text(), r[1].int().unwrap_or(0) as usize)).collect())
}

/// The figure `key` of all cards that meet the conditions, a chart a host, the one with the most cards first. `host` is any name of
/// a host, or part of one.
///
/// # Errors
/// A condition that cannot be understood, a figure that no card has, or the database.
pub fn charts(s: &mut Survey, key: &str, words: &[String], host: Option<&str>) -> Result<Vec<Chart>> {
    let conditions = s.conditions(words)?;
    let (sql, values) = query::all(&conditions, 1);
    let values: Vec<Val> = [key.into()].into_iter().chain(values).collect();
    let rows = s.query(
        &format!(
            "SELECT c.id, c.name, COALESCE(c.maker, ''), c.capacity, v.value, v.shown, v.flagged, COALESCE(c.host_class, ''), c.simulated, c.price
             FROM (SELECT id, value, shown, flagged FROM facts WHERE key = $1 AND value > 0) v
             JOIN (SELECT * FROM cards WHERE {sql}) c ON c.id = v.id
             ORDER BY c.capacity DESC, c.id{{C}}"
        ),
        &values,
    )?;
    if rows.is_empty() && s.query("SELECT 1 FROM facts WHERE key = $1 LIMIT 1", &[key.into()])?.is_empty() {
        return Err(s.no_figure(key, key));
    }
    // What is shown of a finding is in a unit that suits its value; the value is in that of its quantity.
    let own = Quantity::ALL.iter().find(|q| q.key() == key).map(|q| q.row().unit.symbol().to_string());
    let last = |t: String| t.split_whitespace().last().map(str::to_string);
    let unit = own.or_else(|| rows.first().map(|r| r[5].text()).and_then(last)).unwrap_or_default();
    let points = rows.iter().map(|r| Point {
        id: r[0].text(),
        name: r[1].text(),
        maker: r[2].text(),
        capacity: r[3].int().unwrap_or(0).max(0) as u64,
        value: if let Val::Real(v) = r[4] { v } else { f64::NAN },
        flagged: r[6].int() == Some(1),
        host: r[7].text(),
        simulated: r[8].int() == Some(1),
        price: price::parse(&r[9].text()).ok(),
        entries: 1,
    });
    let wanted = |p: &Point| match host {
        None => true,
        Some(h) => hosts::known(h).map_or_else(|| p.host.to_lowercase().contains(&h.to_lowercase()), |k| p.host == k),
    };
    let mut out: Vec<Chart> = vec![];
    for p in points.filter(wanted) {
        let c = match out.iter().position(|c| c.host == p.host) {
            Some(i) => &mut out[i],
            None => {
                out.push(Chart { key: key.into(), unit: unit.clone(), points: vec![], unsized_cards: vec![], host: p.host.clone() });
                out.last_mut().unwrap_or_else(|| unreachable!("just pushed"))
            }
        };
        if p.capacity > 0 { c.points.push(p) } else { c.unsized_cards.push(p) }
    }
    out.iter_mut().for_each(Chart::once);
    nandscope_stats::sort_by(&mut out, |a, b| {
        b.points.len().cmp(&a.points.len()).then(a.host.is_empty().cmp(&b.host.is_empty())).then(a.host.cmp(&b.host))
    });
    Ok(out)
}

/// For the name of a host in a sentence.
pub fn host_name(host: &str) -> &str {
    if host.is_empty() { "host not stated" } else { host }
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
    /// Several entries of one card, and several cards of one model, are one point: their median. Which of the two they are, no entry
    /// says, and neither makes another pair of size and speed.
    fn once(&mut self) {
        let mut kept: Vec<Point> = vec![];
        for all in [std::mem::take(&mut self.points), std::mem::take(&mut self.unsized_cards)] {
            let mut groups: Vec<Vec<Point>> = vec![];
            for p in all {
                let same = |q: &Point| q.name.to_lowercase() == p.name.to_lowercase() && q.capacity == p.capacity && q.flagged == p.flagged;
                match groups.iter_mut().find(|g| same(&g[0])) {
                    Some(g) => g.push(p),
                    None => groups.push(vec![p]),
                }
            }
            kept.extend(groups.into_iter().map(|g| {
                let value = median(&g.iter().map(|p| p.value).collect::<Vec<_>>());
                let price = g.iter().find_map(|p| p.price.clone());
                Point { value, price, entries: g.len(), ..g[0].clone() }
            }));
        }
        (self.points, self.unsized_cards) = kept.into_iter().partition(|p| p.capacity > 0);
    }

    /// Rate for one of the currency, where the card has a price above 0.
    pub fn per_price(p: &Point) -> Option<(f64, &str)> {
        p.price.as_ref().filter(|(v, _)| *v > 0.0).map(|(v, code)| (p.value / v, code.as_str()))
    }

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
        nandscope_stats::sort_by(&mut all, |a, b| a.name.is_empty().cmp(&b.name.is_empty()).then(b.values[0].total_cmp(&a.values[0])));
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
        nandscope_stats::sort_by(&mut makers, |a, b| b.cards.cmp(&a.cards).then(a.name.cmp(&b.name)));
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
            title: match self.host.as_str() {
                "" => format!("{} against the size of the card", self.name()),
                host => format!("{} against the size of the card, on {host}", self.name()),
            },
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
        let cards = if n == 1 { "card" } else { "cards" };
        let models = self.sound().filter(|p| p.simulated).count();
        let mut out = match self.trend() {
            None => format!("{n} {cards}, too few of different sizes to say whether the rate goes with the size"),
            Some(t) if t.p <= 0.05 && t.rho < 0.0 => {
                format!("the larger the card, the lower the rate: rank correlation {:.2} over {n} cards, p = {:.3}", t.rho, t.p)
            }
            Some(t) if t.p <= 0.05 => {
                format!("the larger the card, the higher the rate: rank correlation {:.2} over {n} cards, p = {:.3}", t.rho, t.p)
            }
            Some(t) => format!("no connection of rate and size shown: rank correlation {:.2} over {n} cards, p = {:.2}", t.rho, t.p),
        };
        if models > 0 {
            out += &format!(" ({})", if models == n { "all simulated".to_string() } else { format!("{models} of them simulated") });
        }
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
        Point {
            id: format!("{maker}{capacity}"),
            name: format!("{maker} {capacity}"),
            maker: maker.into(),
            capacity,
            value,
            flagged,
            host: "h".into(),
            simulated: false,
            price: None,
            entries: 1,
        }
    }

    /// C4: on ChaN's cards speed falls with density; what contradicts itself is drawn and counts nowhere (G7).
    #[test]
    fn speed_that_falls_with_size() {
        let mut points: Vec<Point> = (0..6).map(|i| card(["A", "B"][i % 2], 512 >> i, 10.0 * (i + 1) as f64, false)).collect();
        points.push(card("A", 8, 9999.0, true));
        let c = Chart { key: "record-write-512-b-records".into(), unit: "kB/s".into(), points, unsized_cards: vec![], host: "h".into() };
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
    /// Three entries of one card are one card; what is flagged does not move the median of what is not.
    #[test]
    fn each_card_counts_once() {
        for n in [1usize, 2, 5] {
            let mut points: Vec<Point> = (0..n).map(|i| card("A", 8, 10.0 + i as f64, false)).collect();
            points.push(card("A", 16, 4.0, false));
            points.push(card("A", 8, 900.0, true));
            let mut c =
                Chart { key: "k".into(), unit: "kB/s".into(), points, unsized_cards: vec![card("A", 0, 5.0, false)], host: "h".into() };
            c.once();
            let seen: Vec<(u64, f64, usize)> = c.points.iter().map(|p| (p.capacity, p.value, p.entries)).collect();
            assert_eq!(seen, [(8, 10.0 + (n - 1) as f64 / 2.0, n), (16, 4.0, 1), (8, 900.0, 1)]);
            assert_eq!(c.unsized_cards.len(), 1);
        }
    }
}

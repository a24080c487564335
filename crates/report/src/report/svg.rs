//! A figure as SVG: for a file of its own, and for pages where no script runs.

use super::figures::{FOOT, bounds, is_bound, is_histogram, is_line, points, show, summary, thin, x_in_bytes};
use crate::infer::figure::Figure;
use std::fmt::Write;

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 320.0;
const LEFT: f64 = 62.0;
const RIGHT: f64 = 14.0;
const BOTTOM: f64 = 44.0;
/// Colours of the series, dark enough for white (AA for graphics), kept apart by the shape of their points, too.
const COLOURS: [&str; 6] = ["#1f5fa8", "#a8480c", "#1d7044", "#7a3bb8", "#9c1f5c", "#5a5a12"];
/// Points of a series in a static picture.
pub const MOST: usize = 500;

/// An axis: values to a unit interval.
struct Axis {
    lo: f64,
    hi: f64,
    base: Option<f64>,
}

impl Axis {
    fn over(values: impl Iterator<Item = f64>, base: Option<f64>, from_zero: bool) -> Axis {
        let values: Vec<f64> = values.filter(|v| base.is_none() || *v > 0.0).collect();
        let base = base.filter(|_| !values.is_empty());
        let scaled = values.iter().map(|&v| base.map_or(v, |b| v.log(b)));
        let (mut lo, mut hi) = scaled.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
        if !lo.is_finite() {
            (lo, hi) = (0.0, 1.0);
        }
        if base.is_none() && from_zero {
            lo = lo.min(0.0);
        }
        if hi - lo < 1e-9 {
            (lo, hi) = (lo - 0.5, hi + 0.5);
        }
        let room = (hi - lo) * 0.04;
        if base.is_none() && from_zero && lo == 0.0 {
            Axis { lo, hi: hi + room, base }
        } else {
            Axis { lo: lo - room, hi: hi + room, base }
        }
    }

    /// 0 to 1; values that a logarithm does not take lie at the lower end.
    fn at(&self, v: f64) -> f64 {
        let x = match self.base {
            Some(_) if v <= 0.0 => self.lo,
            Some(b) => v.log(b),
            None => v,
        };
        ((x - self.lo) / (self.hi - self.lo)).clamp(0.0, 1.0)
    }

    fn ticks(&self, about: usize) -> Vec<f64> {
        if let Some(b) = self.base {
            let (lo, hi) = (self.lo.ceil() as i32, self.hi.floor() as i32);
            let step = (((hi - lo) as usize) / about.max(1) + 1) as i32;
            let whole: Vec<f64> = (lo..=hi).step_by(step.max(1) as usize).map(|k| b.powi(k)).collect();
            if whole.len() >= 2 {
                return whole;
            }
            // Less than one power: the ends and the middle.
            return [0.06, 0.5, 0.94].map(|t| b.powf(self.lo + (self.hi - self.lo) * t)).to_vec();
        }
        let raw = (self.hi - self.lo) / about as f64;
        let magnitude = 10f64.powf(raw.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].iter().map(|m| m * magnitude).find(|s| *s >= raw).unwrap_or(raw);
        let first = (self.lo / step).ceil();
        (0..=2 * about)
            .map(|i| (first + i as f64) * step)
            .take_while(|v| *v <= self.hi + 1e-12)
            .map(|v| if v.abs() < step * 1e-6 { 0.0 } else { v })
            .collect()
    }
}

pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// A file that stands alone: white ground, its own colours.
pub fn file(f: &Figure) -> String {
    let mut style = "text{font:13px sans-serif;fill:#1a1a1a}.grid{stroke:#ddd}.frame{stroke:#767676;fill:none}".to_string();
    for (i, c) in COLOURS.iter().enumerate() {
        let _ = write!(style, ".s{i}{{stroke:{c};fill:{c}}}");
    }
    format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{}\n", draw(f, "figure", Some(&style), MOST))
}

/// For a page that has the classes `grid`, `frame`, `s0` to `s5` in its own style. `id` must be unique in the page.
/// At most about `most` points of each series are drawn.
pub fn inline(f: &Figure, id: &str, most: usize) -> String {
    draw(f, id, None, most)
}

fn draw(f: &Figure, id: &str, style: Option<&str>, most: usize) -> String {
    let drawn: Vec<_> = f.series.iter().filter(|s| !is_bound(s) && !s.points.is_empty()).collect();
    let named = drawn.len() > 1 || style.is_some();
    let places = if named { in_rows(drawn.iter().map(|s| s.name.as_str())) } else { vec![] };
    let rows = places.last().map_or(usize::from(named), |last| last.1 + 1);
    let title = if style.is_some() { 30.0 } else { 10.0 };
    // A long legend takes nothing from the plot.
    let height = HEIGHT + rows.saturating_sub(1) as f64 * LEGEND;
    let top = title + rows as f64 * LEGEND;
    let (w, h) = (WIDTH - LEFT - RIGHT, height - top - BOTTOM);
    let xs = Axis::over(points(f).map(|p| p.0), f.log_x.then_some(2.0), false);
    let bars = is_histogram(f);
    let ys = Axis::over(points(f).map(|p| p.1).chain(bars.then_some(FOOT)), f.log_y.then_some(10.0), true);
    let x = |v: f64| LEFT + xs.at(v) * w;
    let y = |v: f64| top + (1.0 - ys.at(v)) * h;
    let bytes = x_in_bytes(f);
    let mut o = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-labelledby=\"{id}-t {id}-d\"><title id=\"{id}-t\">{}</title><desc id=\"{id}-d\">{}</desc>",
        escape(&f.title),
        escape(&summary(f))
    );
    if let Some(style) = style {
        let _ = write!(
            o,
            "<style>{style}</style><rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#fff\"/><text x=\"{LEFT}\" y=\"20\" font-weight=\"bold\">{}</text>",
            escape(&f.title)
        );
    }
    for v in xs.ticks(8) {
        let _ = write!(
            o,
            "<path class=\"grid\" d=\"M{:.1} {top}v{h}\"/><text x=\"{0:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            x(v),
            top + h + 16.0,
            show(v, bytes)
        );
    }
    for v in ys.ticks(5) {
        let _ = write!(
            o,
            "<path class=\"grid\" d=\"M{LEFT} {:.1}h{w}\"/><text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            y(v),
            LEFT - 6.0,
            y(v) + 4.0,
            show(v, false)
        );
    }
    let _ = write!(o, "<rect class=\"frame\" x=\"{LEFT}\" y=\"{top}\" width=\"{w}\" height=\"{h}\"/>");
    let _ = write!(o, "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>", LEFT + w / 2.0, height - 8.0, escape(&f.x));
    let _ = write!(o, "<text transform=\"translate(14 {:.1}) rotate(-90)\" text-anchor=\"middle\">{}</text>", top + h / 2.0, escape(&f.y));
    for (i, s) in drawn.iter().enumerate() {
        let class = i % COLOURS.len();
        let kept: Vec<(f64, f64)> = s.points.iter().copied().filter(|p| p.0.is_finite() && p.1.is_finite()).collect();
        let kept = thin(&kept, most);
        if let Some((low, high)) = bounds(f, &s.name).filter(|b| b.0.points.len() <= most) {
            let _ = write!(o, "<path class=\"s{class}\" stroke-width=\"1.2\" opacity=\"0.55\" d=\"");
            for (a, b) in low.points.iter().zip(&high.points) {
                let _ = write!(o, "M{:.1} {:.1}V{:.1}m-3 0h6M{:.1} {:.1}h6", x(a.0), y(a.1), y(b.1), x(a.0) - 3.0, y(a.1));
            }
            o.push_str("\"/>");
        }
        if bars {
            // As wide as the closest two allow.
            let gap = kept.windows(2).map(|p| (x(p[1].0) - x(p[0].0)).abs()).filter(|d| *d > 0.0).fold(12.0, f64::min);
            let wide = (0.8 * gap).max(1.5);
            let _ = write!(o, "<path class=\"s{class}\" style=\"stroke:none\" opacity=\"0.85\" d=\"");
            kept.iter().for_each(|p| {
                let _ = write!(o, "M{:.1} {:.1}h{wide:.1}V{:.1}h-{wide:.1}z", x(p.0) - wide / 2.0, y(p.1), top + h);
            });
            o.push_str("\"/>");
        } else if is_line(s) {
            let _ = write!(o, "<polyline class=\"s{class}\" style=\"fill:none\" stroke-width=\"1.6\"{} points=\"", dash(i));
            kept.iter().for_each(|p| {
                let _ = write!(o, "{:.1},{:.1} ", x(p.0), y(p.1));
            });
            o.push_str("\"/>");
        }
        let size = if is_line(s) { 2.6 } else { 1.7 };
        if !bars {
            let _ = write!(o, "<path class=\"s{class}\" stroke=\"none\" style=\"stroke:none\" d=\"");
            kept.iter().for_each(|p| mark(&mut o, i, x(p.0), y(p.1), size));
            o.push_str("\"/>");
        }
        if let Some(&(from, row)) = places.get(i) {
            let base = title + (row + 1) as f64 * LEGEND;
            let _ = write!(o, "<path class=\"s{class}\" style=\"stroke:none\" d=\"");
            mark(&mut o, i, from + 5.0, base - 11.0, 4.0);
            let _ = write!(o, "\"/><text x=\"{:.1}\" y=\"{:.1}\">{}</text>", from + 14.0, base - 7.0, escape(&s.name));
        }
    }
    o.push_str("</svg>");
    o
}

/// Height of a row of the legend.
const LEGEND: f64 = 20.0;

/// Where the names of a legend stand: x, and the row. A name that does not fit beside those before begins a row.
fn in_rows<'a>(names: impl Iterator<Item = &'a str>) -> Vec<(f64, usize)> {
    let mut next = (LEFT, 0);
    let place = |name: &str| {
        let wide = 30.0 + 7.2 * name.chars().count() as f64;
        if next.0 > LEFT && next.0 + wide > WIDTH {
            next = (LEFT, next.1 + 1);
        }
        let here = next;
        next.0 += wide;
        here
    };
    names.map(place).collect()
}

fn dash(i: usize) -> &'static str {
    ["", " stroke-dasharray=\"6 3\"", " stroke-dasharray=\"2 3\"", " stroke-dasharray=\"8 3 2 3\""][i % 4]
}

/// Circle, square, triangle, diamond.
fn mark(o: &mut String, i: usize, x: f64, y: f64, r: f64) {
    let _ = match i % 4 {
        0 => write!(o, "M{:.1} {y:.1}a{r} {r} 0 1 0 {:.1} 0a{r} {r} 0 1 0 {:.1} 0", x - r, 2.0 * r, -2.0 * r),
        1 => write!(o, "M{:.1} {:.1}h{:.1}v{:.1}h{:.1}z", x - r, y - r, 2.0 * r, 2.0 * r, -2.0 * r),
        2 => write!(o, "M{x:.1} {:.1}l{r} {:.1}h{:.1}z", y - r, 2.0 * r, -2.0 * r),
        _ => write!(o, "M{x:.1} {:.1}l{r} {r}l-{r} {r}l-{r} -{r}z", y - r),
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::infer::figure::{HIGH, LOW, Series};

    fn figure() -> Figure {
        let line = |d: f64| (9..23).map(|k| ((1u64 << k) as f64, 10.0 + d + k as f64)).collect::<Vec<_>>();
        Figure {
            title: "a < b & c".into(),
            x: "size of the write".into(),
            y: "ms".into(),
            log_x: true,
            log_y: true,
            series: vec![
                Series { name: "m".into(), points: line(0.0) },
                Series { name: format!("m{LOW}"), points: line(-1.0) },
                Series { name: format!("m{HIGH}"), points: line(1.0) },
            ],
        }
    }

    #[test]
    fn a_file_stands_alone_and_is_well_formed() {
        let s = file(&figure());
        assert!(s.contains("a &lt; b &amp; c") && !s.contains("a < b") && s.contains("MiB"), "{s}");
        assert_eq!(s.matches("<polyline").count(), 1, "bounds are no lines of their own");
        assert_eq!(s.matches("<text").count(), s.matches("</text>").count());
        assert!(!s.contains("NaN") && !s.contains("inf"));
    }

    /// Names of eight cards are longer than a line: none runs off the picture, and the plot keeps its height.
    #[test]
    fn a_long_legend_takes_several_rows() {
        let series = |i: usize| Series {
            name: format!("card {i} of a rather long name, as files have"),
            points: vec![(1.0, 1.0), (2.0, i as f64 + 2.0)],
        };
        let drawn = inline(&Figure { series: (0..8).map(series).collect(), ..figure() }, "f", 100);
        let size = |s: &str| -> (f64, f64) {
            let view = s.split("viewBox=\"0 0 ").nth(1).unwrap().split('"').next().unwrap();
            let (w, h) = view.split_once(' ').unwrap();
            (w.parse().unwrap(), h.parse().unwrap())
        };
        let (w, h) = size(&drawn);
        let names: Vec<(f64, f64)> = (0..8)
            .map(|i| {
                let text = drawn.split("<text x=\"").find(|t| t.contains(&format!(">card {i} "))).unwrap();
                let number = |of: &str| of.split('"').next().unwrap().parse().unwrap();
                (number(text), number(text.split("y=\"").nth(1).unwrap()))
            })
            .collect();
        assert!(names.iter().all(|n| n.0 + 7.2 * 42.0 <= w), "{names:?}");
        assert!(names.windows(2).all(|n| n[0].1 < n[1].1 || n[0].0 < n[1].0), "{names:?}");
        let frame =
            |s: &str| s.split("class=\"frame\"").nth(1).unwrap().split("height=\"").nth(1).unwrap().split('"').next().unwrap().to_string();
        let one = inline(&Figure { series: (0..2).map(|i| Series { name: i.to_string(), ..series(i) }).collect(), ..figure() }, "f", 100);
        assert_eq!(frame(&drawn), frame(&one));
        assert!(h > size(&one).1);
    }

    #[test]
    fn a_histogram_has_bars() {
        let points = vec![(1.0, 3474.0), (2.0, 1.0), (200.0, 24.0)];
        let f = Figure { x: "ms".into(), y: "accesses".into(), series: vec![Series { name: "read".into(), points }], ..figure() };
        let s = file(&f);
        // No line joins classes, and a single access is a bar, too.
        assert!(!s.contains("<polyline") && s.matches("z").count() >= 3 && !s.contains("NaN"), "{s}");
        let path = s.split("opacity=\"0.85\" d=\"").nth(1).unwrap().split('"').next().unwrap();
        let tops: Vec<f64> =
            path.split('M').skip(1).map(|b| b.split(' ').nth(1).unwrap().split('h').next().unwrap().parse().unwrap()).collect();
        let foot: f64 = path.split('V').nth(1).unwrap().split('h').next().unwrap().parse().unwrap();
        assert!(tops.len() == 3 && tops[0] < tops[2] && tops[2] < tops[1] && tops[1] < foot - 3.0, "{tops:?} {foot}");
    }

    #[test]
    fn odd_figures_do_not_break_it() {
        let mut f = figure();
        f.series = vec![Series { name: "one".into(), points: vec![(1.0, 0.0), (1.0, f64::NAN), (-1.0, -5.0)] }];
        for (log_x, log_y) in [(true, true), (false, false), (true, false), (false, true)] {
            let s = file(&Figure { log_x, log_y, ..f.clone() });
            assert!(!s.contains("NaN") && !s.contains("inf"), "{s}");
        }
        f.series.clear();
        assert!(file(&f).ends_with("</svg>\n"));
    }

    #[test]
    fn ticks_are_few_and_round() {
        let a = Axis::over([0.0, 317.0].into_iter(), None, true);
        assert_eq!(a.ticks(5), [0.0, 100.0, 200.0, 300.0]);
        let a = Axis::over([512.0, (1u64 << 26) as f64].into_iter(), Some(2.0), false);
        assert!(a.ticks(8).len() <= 9 && a.ticks(8).contains(&512.0));
    }
}

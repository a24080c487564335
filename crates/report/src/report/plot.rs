//! Plots of braille dots: two by four to a character.

use super::figures::is_bound;
use crate::infer::figure::Figure;
use crate::units::three;

/// A plot of `width` by `height` characters, axes and title included in the lines returned.
pub fn braille(f: &Figure, width: usize, height: usize) -> Vec<String> {
    let all: Vec<(f64, f64)> = f
        .series
        .iter()
        .filter(|s| !is_bound(s))
        .flat_map(|s| s.points.iter().copied())
        .filter(|p| p.0.is_finite() && p.1.is_finite())
        .collect();
    if all.len() < 2 || width < 24 || height < 4 {
        return vec![];
    }
    let x_of = |v: f64| if f.log_x { v.max(1e-9).log2() } else { v };
    let positive = all.iter().map(|p| p.1).filter(|&y| y > 0.0).fold(f64::INFINITY, f64::min);
    let log_y = f.log_y && positive.is_finite();
    let y_of = |v: f64| if log_y { v.max(positive).log10() } else { v };
    let bounds = |g: &dyn Fn(&(f64, f64)) -> f64| {
        let (lo, hi) = all.iter().map(g).fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
        if hi > lo { (lo, hi) } else { (lo - 0.5, hi + 0.5) }
    };
    let (x0, x1) = bounds(&|p| x_of(p.0));
    let (mut y0, y1) = bounds(&|p| y_of(p.1));
    if !log_y && y0 > 0.0 {
        y0 = 0.0;
    }
    let label = |v: f64| three(if log_y { 10f64.powf(v) } else { v });
    let margin = [y0, y1].iter().map(|&v| label(v).chars().count()).max().unwrap_or(4).max(f.y.chars().count()) + 1;
    let columns = width.saturating_sub(margin + 1).max(8);
    let (w, h) = (columns * 2, height * 4);
    let mut dots = vec![0u8; columns * height];
    for (x, y) in &all {
        let px = (((x_of(*x) - x0) / (x1 - x0)) * (w - 1) as f64).round() as usize;
        let py = ((1.0 - (y_of(*y) - y0) / (y1 - y0)) * (h - 1) as f64).round().clamp(0.0, (h - 1) as f64) as usize;
        let bit = [[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]][py % 4][px % 2];
        dots[py / 4 * columns + (px / 2).min(columns - 1)] |= bit;
    }
    let mut lines = super::terminal::lines(&f.title, width);
    for row in 0..height {
        let tag = match row {
            0 => label(y1),
            _ if row == height - 1 => label(y0),
            _ if row == height / 2 => f.y.clone(),
            _ => String::new(),
        };
        let text: String =
            dots[row * columns..(row + 1) * columns].iter().map(|&d| char::from_u32(0x2800 + d as u32).unwrap_or(' ')).collect();
        lines.push(format!("{tag:>margin$} {}", text.replace('\u{2800}', " ").trim_end()));
    }
    let name = |v: f64| {
        let v = if f.log_x { v.exp2() } else { v };
        if f.log_x && v >= 512.0 && !(f.x == "ms" || f.x.ends_with(", ms")) {
            bytes(v.round() as u64)
        } else {
            three(v).trim_end_matches(".00").to_string()
        }
    };
    let (a, b) = (name(x0), name(x1));
    let gap = columns.saturating_sub(a.chars().count() + b.chars().count());
    let middle = if f.x.chars().count() + 2 <= gap { format!("{:^gap$}", f.x) } else { " ".repeat(gap) };
    lines.push(format!("{:margin$} {a}{middle}{b}", ""));
    lines
}

/// Bytes as they are where that is short.
fn bytes(b: u64) -> String {
    let exact = crate::units::Bytes(b).to_string();
    if exact.len() <= 9 { exact } else { super::terminal::size(b) }
}

/// A bar over `part` (0 to 1) of `width` characters, in eighths of one.
pub fn bar(part: f64, width: usize) -> String {
    let eighths = (part.clamp(0.0, 1.0) * width as f64 * 8.0).round().max(1.0) as usize;
    let rest = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"][eighths % 8];
    "█".repeat(eighths / 8) + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::infer::figure::Series;

    #[test]
    fn a_step_looks_like_one() {
        let points = (11..28).map(|k| ((1u64 << k) as f64, if k < 22 { 160.0 } else { 310.0 })).collect();
        let f = Figure {
            title: "t".into(),
            x: "alignment".into(),
            y: "µs".into(),
            log_x: true,
            log_y: false,
            series: vec![Series { name: "s".into(), points }],
        };
        let lines = braille(&f, 60, 6);
        assert_eq!(lines.len(), 8);
        assert!(
            lines[1].contains("310") && lines.last().unwrap().contains("2 KiB") && lines.last().unwrap().contains("128 MiB"),
            "{lines:#?}"
        );
        // The high half is at the top right, the low half in the middle left.
        let dots = |line: &str| line.chars().position(|c| c as u32 > 0x2800);
        assert!(dots(&lines[1]) > Some(30) && lines[2..6].iter().any(|l| dots(l).is_some_and(|at| at < 12)), "{lines:#?}");
    }

    /// A time of more than 512 ms is no size.
    #[test]
    fn an_axis_of_times_ends_in_a_time() {
        for (x, end) in [("ms", "1586"), ("longest, ms", "1586"), ("block size", "1586 B")] {
            let points = vec![(0.08, 40_234.0), (1586.0, 1.0)];
            let series = vec![Series { name: "s".into(), points }];
            let f = Figure { title: "t".into(), x: x.into(), y: "calls".into(), log_x: true, log_y: true, series };
            assert!(braille(&f, 60, 6).last().unwrap().ends_with(&format!(" {end}")), "{x}: {:?}", braille(&f, 60, 6));
        }
    }

    #[test]
    fn nothing_to_plot_is_no_plot() {
        let f = Figure { title: "t".into(), x: "x".into(), y: "y".into(), log_x: true, log_y: true, series: vec![] };
        assert!(braille(&f, 60, 6).is_empty());
    }
}

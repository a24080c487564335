//! Maps of a volume over the erase blocks of its card, as drawings: for the page, and alone.

use crate::lab::fragment::{Cell, Map};
use crate::units::Bytes;
use std::fmt::Write;

/// Cells of a row.
const COLUMNS: usize = 64;
/// Rows at most: neighbours are joined beyond that.
const ROWS: usize = 24;
/// Pieces from which on a cell is of the next colour: one file or free space alone, 2, 4, 16, 64.
const PIECES: [u32; 4] = [2, 4, 16, 64];
/// Colours of a drawing that stands alone; in the page its style sheet has them.
const COLOURS: &str =
    "<style>.empty{fill:#e4e8ec}.m0{fill:#6f9fd0}.m1{fill:#3f72a8}.m2{fill:#c98a2b}.m3{fill:#b5551b}.m4{fill:#8c1d2b}</style>";

/// The map as it is drawn: cells joined until they have room.
pub fn shown(m: &Map) -> Map {
    m.joined(COLUMNS * ROWS)
}

fn level(c: &Cell) -> usize {
    PIECES.iter().filter(|p| c.pieces >= **p).count()
}

/// The volume as squares, a row of 64 after another: the fuller the square, the more is in use; the colour tells the pieces. Colours
/// are those of the classes `empty` and `m0` to `m4`.
pub fn squares(m: &Map, id: &str, what: &str) -> String {
    drawing(m, id, what, "")
}

/// The same as a file of its own.
pub fn svg(m: &Map) -> String {
    let m = shown(m);
    let what = format!("{}; blue: up to 3 pieces, yellow: up to 15, orange: up to 63, red: more", summary(&m));
    drawing(&m, "map", &what, COLOURS) + "\n"
}

fn drawing(m: &Map, id: &str, what: &str, style: &str) -> String {
    const SIDE: f64 = 12.0;
    let rows = m.cells.len().div_ceil(COLUMNS).max(1);
    let mut o = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" role=\"img\" aria-labelledby=\"{id}-t\"><title id=\"{id}-t\">{}</title>{style}",
        COLUMNS as f64 * SIDE,
        rows as f64 * SIDE,
        super::svg::escape(what)
    );
    for (i, c) in m.cells.iter().enumerate() {
        let (x, y) = ((i % COLUMNS) as f64 * SIDE, (i / COLUMNS) as f64 * SIDE);
        let _ = write!(o, "<path class=\"empty\" d=\"M{x} {y}h11v11h-11z\"/>");
        // The part in use rises from the bottom of the square; the least of it is seen.
        let high = if c.used <= 0.005 { 0.0 } else { (c.used * 11.0).clamp(1.0, 11.0) };
        if high > 0.0 {
            let _ = write!(o, "<path class=\"m{}\" d=\"M{x} {:.1}h11v{high:.1}h-11z\"/>", level(c), y + 11.0 - high);
        }
    }
    o + "</svg>"
}

/// What a map shows, in words.
pub fn summary(m: &Map) -> String {
    let n = m.cells.len();
    let used = m.cells.iter().filter(|c| c.used > 0.005).count();
    let worst = m.cells.iter().enumerate().max_by_key(|(_, c)| c.pieces);
    let worst = worst.map_or(String::new(), |(i, c)| format!("; most pieces: {} in the one at {}", c.pieces, Bytes(i as u64 * m.au)));
    format!("{n} squares of {}, {used} of them in use{worst}", Bytes(m.au))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn squares_tell_use_and_pieces() {
        let cell = |used, pieces| Cell { used, pieces, begins: pieces };
        let m = Map { au: 4 << 20, cells: vec![cell(0.0, 1), cell(1.0, 1), cell(0.5, 5), cell(0.001, 90), cell(0.02, 64)] };
        let g = squares(&m, "x", "a < b");
        assert_eq!(g.matches("class=\"empty\"").count(), 5);
        assert!(
            g.contains("a &lt; b") && g.contains("class=\"m0\" d=\"M12 0.0h11v11.0") && g.contains("class=\"m2\" d=\"M24 5.5h11v5.5"),
            "{g}"
        );
        assert!(g.contains("class=\"m4\" d=\"M48 10.0h11v1.0") && g.matches("class=\"m").count() == 3, "next to nothing is nothing: {g}");
        assert_eq!(summary(&m), "5 squares of 4 MiB, 3 of them in use; most pieces: 90 in the one at 12 MiB");
        let large = Map { au: 1 << 20, cells: vec![cell(1.0, 1); 100_000] };
        assert!(shown(&large).cells.len() <= COLUMNS * ROWS);
    }
}

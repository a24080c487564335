//! A target drawn over its erase blocks: one line an erase block, where anything but file content lies.

use super::disk::Disk;
use super::grid::Grid;
use crate::units::Bytes;

/// Cells of one erase block.
const WIDTH: u64 = 64;
/// Lines at most.
const MOST: usize = 24;

struct Painted {
    at: u64,
    end: u64,
    mark: char,
}

/// The drawing and its legend, as lines of plain text.
pub fn draw(disk: &Disk, grid: &Grid) -> Vec<String> {
    let mut all: Vec<Painted> = vec![];
    let mut legend: Vec<(char, String)> = vec![];
    let mut know = |mark: char, name: &str| {
        if !legend.iter().any(|l| l.0 == mark) {
            legend.push((mark, name.to_string()));
        }
    };
    let end = disk.offset.saturating_add(disk.size);
    let mut paint = |at: u64, len: u64, mark: char| all.push(Painted { at, end: at.saturating_add(len).min(end), mark });
    if let Some(t) = disk.table {
        paint(disk.offset, if t == "GPT" { 34 * 512 } else { 512 }, 'T');
        know('T', t);
    }
    // Later layers lie on top: content below, what describes it above.
    for p in &disk.parts {
        match &p.volume {
            Some(v) => {
                let from =
                    if v.what == "swap" || v.what.starts_with("FAT") || v.what == "exFAT" || v.what == "F2FS" { v.data } else { v.at };
                paint(from, v.at.saturating_add(v.len).saturating_sub(from), '#');
                know('#', "file content and free space");
                for z in &v.zones {
                    paint(z.at, z.len, z.mark);
                    know(z.mark, if z.mark == 'F' { "FAT" } else { &z.name });
                }
            }
            None => {
                paint(p.start, p.size, '?');
                know('?', "unknown");
            }
        }
    }
    let first_block = grid.block(disk.offset);
    let last_block = grid.block(end.saturating_sub(1));
    let row = |block: u64| -> String {
        let begin = if grid.first > 0 { (grid.first + block * grid.unit).saturating_sub(grid.unit) } else { block * grid.unit };
        let here: Vec<&Painted> = all.iter().filter(|p| p.at < begin.saturating_add(grid.unit) && p.end > begin).collect();
        (0..WIDTH)
            .map(|i| {
                let a = begin + grid.unit * i / WIDTH;
                let b = (begin + grid.unit * (i + 1) / WIDTH).max(a + 1);
                if a >= end || b <= disk.offset {
                    return ' ';
                }
                let over = |p: &&&Painted| p.at < b && p.end > a;
                here.iter().rev().filter(over).find(|p| p.mark != '#').or_else(|| here.iter().find(over)).map_or('.', |p| p.mark)
            })
            .collect()
    };
    // Only blocks where something begins or ends can differ from their neighbours, and the ones beside those.
    let mut special: Vec<u64> = vec![first_block, last_block];
    for p in &all {
        for at in [p.at, p.end.saturating_sub(1)] {
            let b = grid.block(at);
            special.extend([b.saturating_sub(1).max(first_block), b, (b + 1).min(last_block)]);
        }
    }
    special.sort_unstable();
    special.dedup();
    // A damaged volume may claim thousands of places.
    special.truncate(20 * MOST);
    let mut out = vec![];
    let mut before: Option<String> = None;
    let mut last_shown = None;
    for &b in &special {
        let line = row(b);
        if before.as_deref() == Some(&line) && b != last_block {
            continue;
        }
        if let Some(l) = last_shown.filter(|&l| b > l + 1) {
            out.push(format!("{:>12}  ... {} more like it", "", b - l - 1));
        }
        out.push(format!("{:>12} |{line}|", start_of(b, grid)));
        last_shown = Some(b);
        before = Some(line);
        if out.len() >= MOST {
            out.push(format!("{:>12}  ... and so on, {} {}s in all", "", last_block - first_block + 1, grid.source.unit_name()));
            break;
        }
    }
    let mut names: Vec<String> = legend.into_iter().map(|(m, n)| format!("{m} {n}")).collect();
    names.push(". free".into());
    out.push(format!("{:>12}  {}", "", names.join(", ")));
    out
}

fn start_of(block: u64, grid: &Grid) -> String {
    let at = if grid.first > 0 { (grid.first + block * grid.unit).saturating_sub(grid.unit) } else { block * grid.unit };
    Bytes(at).to_string()
}

//! Commands below which no row could be read: somebody wrote the figures in a form of his own, and should know that they were left out.

/// So many lines with figures are a table.
const LINES: usize = 4;
/// Notes of one file.
const MOST: usize = 3;

#[derive(Default)]
pub(super) struct Unread {
    /// The line of the last command that has tables, as long as no row came.
    asked: Option<usize>,
    /// The first line with figures below it, and how many there are.
    first: Option<String>,
    lines: usize,
    found: Vec<(usize, String)>,
}

impl Unread {
    /// A command at this line, which prints a table or does not.
    pub fn command(&mut self, line: usize, prints: bool) {
        if let Some((asked, first)) = self.asked.take().zip(self.first.take()).filter(|_| self.lines >= LINES) {
            self.found.push((asked, first));
        }
        (self.asked, self.first, self.lines) = (prints.then_some(line), None, 0);
    }

    pub fn row(&mut self) {
        self.asked = None;
    }

    /// A line that is no row.
    pub fn line(&mut self, text: &str) {
        let figures = text.split_whitespace().filter(|w| w.contains(|c: char| c.is_ascii_digit())).count();
        if self.asked.is_some() && (figures > 1 || text.contains([',', ';']) && figures > 0) {
            self.lines += 1;
            self.first.get_or_insert_with(|| text.chars().take(60).collect());
        }
    }

    pub fn notes(&self, name: &str) -> Vec<String> {
        let one = |(line, first): &(usize, String)| {
            format!(
                "{name}:{line}: no row below this command could be read; the first line with figures is \"{first}\" (flashbench prints \"4MiB    8.79M/s\")"
            )
        };
        let mut out: Vec<String> = self.found.iter().take(MOST).map(one).collect();
        if let Some(more) = self.found.len().checked_sub(MOST).filter(|&m| m > 0) {
            out.push(format!("{name}: {more} more commands without a row that could be read"));
        }
        out
    }
}

//! Tables as kubectl writes them: headers in capitals, columns of even width, fitted to a terminal.

use super::error::Error;
use super::screen::{Screen, Style};

/// Between two columns.
const GAP: usize = 3;
/// The same where there is not room enough.
const CRAMPED: usize = 2;
/// No column is cut to less than this.
const LEAST: usize = 6;

/// A word in a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cell {
    text: String,
    style: Style,
}

impl Cell {
    pub(crate) fn styled(text: impl Into<String>, style: Style) -> Self {
        Self { text: text.into(), style }
    }

    fn width(&self) -> usize {
        self.text.chars().count()
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::styled(text, Style::Plain)
    }
}

/// Rows of words.
#[derive(Debug)]
pub(crate) struct Table {
    header: Vec<Cell>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    pub(crate) fn new(header: &[&str]) -> Self {
        Self {
            header: header.iter().map(|title| Cell::styled(*title, Style::Strong)).collect(),
            rows: Vec::new(),
        }
    }

    pub(crate) fn row(&mut self, cells: Vec<Cell>) {
        self.rows.push(cells);
    }

    pub(crate) fn without_header(mut self, without: bool) -> Self {
        if without {
            self.header.clear();
        }
        self
    }

    /// Shows it, with every line after `indent`.
    pub(crate) fn show(&self, screen: &mut Screen, indent: usize) -> Result<(), Error> {
        let header = (!self.header.is_empty()).then_some(&self.header);
        let mut widths = Vec::new();
        for row in self.rows.iter().chain(header) {
            widths.resize(widths.len().max(row.len()), 0);
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = cell.width().max(*width);
            }
        }
        let gap = match screen.width() {
            Some(room) => fit(&mut widths, room.saturating_sub(indent)),
            None => GAP,
        };
        for row in header.into_iter().chain(&self.rows) {
            let mut line = " ".repeat(indent);
            let last = row.iter().rposition(|cell| !cell.text.is_empty()).unwrap_or_default();
            for (place, (cell, width)) in row.iter().zip(&widths).enumerate().take(last + 1) {
                let text = cut(&cell.text, *width);
                let fill = width - text.chars().count();
                line.push_str(&screen.paint(&text, cell.style));
                if place < last {
                    line.push_str(&" ".repeat(fill + gap));
                }
            }
            screen.say(line.trim_end())?;
        }
        Ok(())
    }
}

/// Takes from the widest columns until all fit, or nothing can be taken any more; from the first one, which names things,
/// at last. Returns what is left between two columns.
fn fit(widths: &mut [usize], room: usize) -> usize {
    let over = |widths: &[usize], gap: usize| {
        widths.iter().sum::<usize>() + gap * widths.len().saturating_sub(1) > room
    };
    if !over(widths, GAP) {
        return GAP;
    }
    while over(widths, CRAMPED) {
        let others = (1..widths.len()).filter(|place| widths[*place] > LEAST);
        let widest = others.max_by_key(|place| widths[*place]).unwrap_or_default();
        if widths[widest] <= LEAST {
            break;
        }
        widths[widest] -= 1;
    }
    CRAMPED
}

fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let kept: String = text.chars().take(width.saturating_sub(1)).collect();
    format!("{kept}…")
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    /// What was written.
    #[derive(Clone, Default)]
    struct Paper(Arc<Mutex<Vec<u8>>>);

    impl std::io::Write for Paper {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn shown(table: &Table, width: Option<usize>, colour: bool) -> String {
        let paper = Paper::default();
        let mut screen =
            Screen::new(Box::new(paper.clone()), Box::new(Paper::default()), width, colour, None);
        table.show(&mut screen, 0).unwrap();
        drop(screen);
        String::from_utf8(paper.0.lock().unwrap().clone()).unwrap()
    }

    fn table() -> Table {
        let mut table = Table::new(&["NODE", "STATE", "WHY"]);
        table.row(vec!["worker-1".into(), Cell::styled("current", Style::Good), "".into()]);
        let why = "a sentence that is far too long for a narrow terminal";
        table.row(vec!["a-rather-long-name.example.com".into(), "away".into(), why.into()]);
        table
    }

    #[test]
    fn a_pipe_gets_everything_in_even_columns_without_colour() {
        let text = shown(&table(), None, false);
        assert_eq!(text.lines().nth(1), Some("worker-1                         current"));
        assert!(text.contains("narrow terminal") && !text.contains('\u{1b}'), "{text}");
    }

    #[test]
    fn a_narrow_terminal_gets_lines_that_fit() {
        for width in [40, 60, 80] {
            let text = shown(&table(), Some(width), false);
            let longest = text.lines().map(|line| line.chars().count()).max().unwrap();
            assert!(longest <= width, "{longest} in {width}:\n{text}");
            assert!(text.contains('…'), "{text}");
        }
    }

    #[test]
    fn colours_take_no_room() {
        let text = shown(&table(), Some(60), true);
        assert!(text.contains("\u{1b}[32mcurrent\u{1b}[0m"), "{text}");
        let plain = text.replace("\u{1b}[32m", "").replace("\u{1b}[1m", "").replace("\u{1b}[0m", "");
        assert_eq!(plain, shown(&table(), Some(60), false));
    }
}

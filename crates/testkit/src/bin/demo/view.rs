//! The board for a person: a table redrawn in place on a terminal, a line for each step anywhere else.

use std::{
    collections::VecDeque,
    io::{self, IsTerminal as _, Write as _},
    time::{Duration, Instant},
};

use terminal_size::{Height, Width, terminal_size};
use tokio::time::interval;

use crate::board::{Note, Shared};

mod paint;
mod table;
pub(crate) mod words;

use paint::Paint;

/// How often the table is drawn.
const FRAME: Duration = Duration::from_millis(100);
/// Without cursor, and without wrapping where the window is narrower than the table.
const BEGIN: &str = "\x1b[?25l\x1b[?7l";
const END: &str = "\x1b[?7h\x1b[?25h";

/// Shows the board.
pub(crate) struct View {
    board: Shared,
    began: Instant,
    /// On a terminal: how to paint, and how many lines stand there to be drawn over.
    screen: Option<Screen>,
}

struct Screen {
    paint: Paint,
    drawn: usize,
}

impl View {
    pub(crate) fn new(board: Shared) -> Self {
        let height = table::height(board.lock().replicas.len());
        Self { board, began: Instant::now(), screen: Screen::fits(height).then(Screen::new) }
    }

    /// Shows what happens, for ever: returns when nobody reads it any more.
    pub(crate) async fn show(&mut self) -> io::Error {
        let mut frames = interval(FRAME);
        loop {
            frames.tick().await;
            if let Err(error) = self.draw() {
                return error;
            }
        }
    }

    /// Shows the last state, and gives the terminal back.
    pub(crate) fn finish(&mut self) {
        // If nobody reads it, there is nobody to tell.
        let _ = self.draw();
        if self.screen.take().is_some() {
            let _ = write!(io::stdout(), "{END}");
            let _ = io::stdout().flush();
        }
    }

    fn draw(&mut self) -> io::Result<()> {
        let (notes, table) = {
            let mut board = self.board.lock();
            let table = self.screen.as_ref().map(|screen| table::lines(&board, screen.paint));
            (std::mem::take(&mut board.notes), table.unwrap_or_default())
        };
        let text = match &mut self.screen {
            Some(screen) => screen.frame(notes, &table),
            None => plain(notes, self.began.elapsed()),
        };
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes())?;
        out.flush()
    }
}

impl Drop for View {
    fn drop(&mut self) {
        self.finish();
    }
}

impl Screen {
    fn new() -> Self {
        Self { paint: Paint::from_environment(), drawn: 0 }
    }

    /// Whether there is a terminal that can show the table.
    fn fits(lines: usize) -> bool {
        let capable = std::env::var_os("TERM").is_some_and(|term| term != "dumb");
        let room = terminal_size().is_some_and(|(Width(width), Height(height))| {
            usize::from(width) >= table::WIDTH / 2 && usize::from(height) > lines
        });
        io::stdout().is_terminal() && capable && room
    }

    /// What is over goes above the table and stays there; the table is drawn over itself.
    fn frame(&mut self, notes: VecDeque<Note>, table: &[String]) -> String {
        let up = if self.drawn > 0 { format!("\x1b[{}A", self.drawn) } else { String::new() };
        let done = notes.into_iter().filter_map(|note| match note {
            Note::Done(line) => Some(format!(" {} {line}", self.paint.good("✓"))),
            Note::Failed(line) => Some(format!(" {} {line}", self.paint.bad("✗"))),
            Note::Step(_) => None,
        });
        let lines = done.chain(table.iter().cloned()).map(|line| format!("\r{line}\x1b[K\n"));
        let frame = [BEGIN.to_owned(), up].into_iter().chain(lines).collect();
        self.drawn = table.len();
        frame
    }
}

fn plain(notes: VecDeque<Note>, elapsed: Duration) -> String {
    let line = |note| match note {
        Note::Step(text) | Note::Done(text) | Note::Failed(text) => {
            format!("demo: {:>5.1}s  {text}\n", elapsed.as_secs_f64())
        }
    };
    notes.into_iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_over_stays_above_a_table_that_is_drawn_over_itself() {
        let mut screen = Screen { paint: Paint::plain(), drawn: 0 };
        let table = ["one".to_owned(), "two".to_owned()];
        let first = screen.frame(VecDeque::from([Note::Step("hidden".to_owned())]), &table);
        assert_eq!(first, format!("{BEGIN}\rone\x1b[K\n\rtwo\x1b[K\n"));
        let next = screen.frame(VecDeque::from([Note::Done("round 1".to_owned())]), &table);
        assert_eq!(next, format!("{BEGIN}\x1b[2A\r ✓ round 1\x1b[K\n\rone\x1b[K\n\rtwo\x1b[K\n"));
    }

    #[test]
    fn without_a_terminal_each_step_is_a_line() {
        let notes = VecDeque::from([Note::Step("a".to_owned()), Note::Done("b".to_owned())]);
        assert_eq!(plain(notes, Duration::from_millis(1_240)), "demo:   1.2s  a\ndemo:   1.2s  b\n");
    }
}

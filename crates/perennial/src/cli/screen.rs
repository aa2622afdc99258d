//! Where a command speaks: a terminal with a width and colours, or a pipe without either.
//!
//! Whoever only looks stops where nobody listens any more. Whoever has work to do goes on without a word: see
//! [`Screen::go_on`].

use std::io::{self, BufRead, ErrorKind, IsTerminal as _, Write};

use super::error::Error;
use crate::args::operate::Color;
use crate::config::Surroundings;

/// The least width that a table is fitted to.
const LEAST: usize = 40;

/// Where a command speaks, and whom it may ask.
pub struct Screen {
    out: Box<dyn Write + Send>,
    err: Box<dyn Write + Send>,
    /// A person who can be asked.
    person: Option<Box<dyn BufRead + Send>>,
    /// The terminal's width; `None` where it is no terminal.
    width: Option<usize>,
    colour: bool,
    /// What cannot be said stops nothing.
    goes_on: bool,
    /// The first thing that could not be said, and why.
    unsaid: Option<io::Error>,
}

/// How a word is shown on a terminal with colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Style {
    /// As it is.
    #[default]
    Plain,
    /// All is well.
    Good,
    /// Worth a look.
    Notice,
    /// Something is wrong, or gone.
    Bad,
    /// Beside the point.
    Faint,
    /// A heading.
    Strong,
}

impl Style {
    fn code(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Good => "32",
            Self::Notice => "33",
            Self::Bad => "31",
            Self::Faint => "2",
            Self::Strong => "1",
        }
    }
}

impl Screen {
    /// The process's own.
    #[must_use]
    pub fn of_process(color: Color, around: &Surroundings) -> Self {
        let terminal = io::stdout().is_terminal();
        let plain = around.variable("NO_COLOR").is_some()
            || around.variable("TERM").is_some_and(|term| term == "dumb");
        let colour = match color {
            Color::Auto => terminal && !plain,
            Color::Always => true,
            Color::Never => false,
        };
        let width = terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
        let asks = terminal && io::stdin().is_terminal();
        Self::new(
            Box::new(io::BufWriter::new(io::stdout())),
            Box::new(io::stderr()),
            if terminal { Some(width.unwrap_or(80)) } else { None },
            colour,
            asks.then(|| Box::new(io::BufReader::new(io::stdin())) as Box<_>),
        )
    }

    /// Any other: `width` is that of a terminal, `person` one who can be asked.
    #[must_use]
    pub fn new(
        out: Box<dyn Write + Send>,
        err: Box<dyn Write + Send>,
        width: Option<usize>,
        colour: bool,
        person: Option<Box<dyn BufRead + Send>>,
    ) -> Self {
        Self { out, err, person, width, colour, goes_on: false, unsaid: None }
    }

    /// From now on what cannot be said stops nothing: there is work to do, or the exit status is the answer.
    pub(crate) fn go_on(&mut self) {
        self.goes_on = true;
    }

    fn said(&mut self, said: io::Result<()>) -> Result<(), Error> {
        match said {
            Err(error) if self.goes_on => {
                self.unsaid.get_or_insert(error);
                Ok(())
            }
            said => said.map_err(Error::Output),
        }
    }

    /// What tables have to fit into.
    pub(crate) fn width(&self) -> Option<usize> {
        self.width.map(|width| width.max(LEAST))
    }

    /// A text in a style, where there are colours.
    pub(crate) fn paint(&self, text: &str, style: Style) -> String {
        if !self.colour || style == Style::Plain || text.is_empty() {
            return text.to_owned();
        }
        format!("\u{1b}[{}m{text}\u{1b}[0m", style.code())
    }

    /// Says a line.
    pub(crate) fn say(&mut self, line: impl std::fmt::Display) -> Result<(), Error> {
        let said = writeln!(self.out, "{line}");
        self.said(said)
    }

    /// Writes bytes as they are.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let said = self.out.write_all(bytes);
        self.said(said)
    }

    /// Says a line that is not part of the answer.
    pub(crate) fn note(&mut self, line: impl std::fmt::Display) -> Result<(), Error> {
        self.flush()?;
        let said = writeln!(self.err, "{line}");
        self.said(said)
    }

    /// Says how far it got, on one line of a terminal; elsewhere nothing.
    pub(crate) fn progress(&mut self, done: usize, of: usize) -> Result<(), Error> {
        if self.width.is_none() {
            return Ok(());
        }
        let end = if done == of { "\r\u{1b}[K" } else { "" };
        let line = format!("\r{done} of {of}{end}");
        let said = self.err.write_all(line.as_bytes()).and_then(|()| self.err.flush());
        self.said(said)
    }

    /// Asks a person, unless they said yes before. Nobody there is no yes, nor is one who was not shown it all.
    pub(crate) fn confirm(&mut self, question: &str, yes: bool) -> Result<bool, Error> {
        if yes {
            return Ok(true);
        }
        self.flush()?;
        let Some(person) = self.person.as_mut().filter(|_| self.unsaid.is_none()) else {
            return Err(Error::said(
                "nobody is there to ask: give --yes, or --dry-run to see what it would do",
            ));
        };
        write!(self.err, "{question} [y/N] ").and_then(|()| self.err.flush()).map_err(Error::Output)?;
        let mut answer = String::new();
        person.read_line(&mut answer).map_err(Error::Output)?;
        Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
    }

    /// Lets go of what is held back.
    fn flush(&mut self) -> Result<(), Error> {
        let said = self.out.flush();
        self.said(said)
    }

    /// The last word. A reader who left wanted no more; anything else that could not be said is told.
    pub(crate) fn finish(&mut self) -> Result<(), Error> {
        self.flush()?;
        match self.unsaid.take() {
            Some(error) if error.kind() != ErrorKind::BrokenPipe => Err(Error::Output(error)),
            _ => Ok(()),
        }
    }
}

//! What can be wrong with a template, told so that its author can put it right.

use minijinja::{Error, ErrorKind};

/// Why a template gives no page.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// Larger than any sensible template, so it is not even read.
    #[error("the template has {bytes} bytes; at most {limit} are allowed")]
    TooLarge {
        /// The size found.
        bytes: usize,
        /// The size allowed.
        limit: usize,
    },
    /// Written for Go's text/template.
    #[error("line {line}: {found} is Go's template syntax, and pages are written in Jinja's: {hint}")]
    Go {
        /// Where, counted from 1.
        line: usize,
        /// What was found there.
        found: String,
        /// How to write it.
        hint: &'static str,
    },
    /// Not a template: a tag that is not closed, an unknown filter, a step that is not offered here.
    #[error("{}{message}", at(*.line))]
    Syntax {
        /// Where, counted from 1.
        line: Option<usize>,
        /// What is wrong.
        message: String,
    },
    /// A name that nothing stands for, a value that does not fit.
    #[error("{}{message}", at(*.line))]
    Values {
        /// Where, counted from 1.
        line: Option<usize>,
        /// What is wrong.
        message: String,
    },
    /// More work, or larger values, than a page of so many endpoints is worth.
    #[error("{}the template asks for too much work: {message}", at(*.line))]
    TooMuch {
        /// Where, counted from 1.
        line: Option<usize>,
        /// What was too much.
        message: String,
    },
    /// The page is larger than any sensible page.
    #[error("the page has {bytes} bytes; at most {limit} are allowed")]
    PageTooLarge {
        /// The size made.
        bytes: usize,
        /// The size allowed.
        limit: usize,
    },
    /// The template engine failed in a way it should not.
    #[error("the template engine failed on this template, which is a bug: please report it")]
    Engine,
}

impl TemplateError {
    /// A fixed word for metrics and conditions.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::TooLarge { .. } => "template_too_large",
            Self::Go { .. } => "template_go",
            Self::Syntax { .. } => "template_syntax",
            Self::Values { .. } => "template_values",
            Self::TooMuch { .. } => "template_too_much",
            Self::PageTooLarge { .. } => "page_too_large",
            Self::Engine => "template_engine",
        }
    }

    /// Where it is, counted from 1, if that is known.
    #[must_use]
    pub fn line(&self) -> Option<usize> {
        match self {
            Self::Go { line, .. } => Some(*line),
            Self::Syntax { line, .. } | Self::Values { line, .. } | Self::TooMuch { line, .. } => *line,
            Self::TooLarge { .. } | Self::PageTooLarge { .. } | Self::Engine => None,
        }
    }
}

fn at(line: Option<usize>) -> String {
    line.map(|line| format!("line {line}: ")).unwrap_or_default()
}

/// Longer texts are cut: a value from a template has no place in a status.
const SHOWN: usize = 300;

impl From<Error> for TemplateError {
    fn from(error: Error) -> Self {
        // What went wrong inside a filter says more than that it did.
        let mut inner: &dyn std::error::Error = &error;
        while let Some(source) = inner.source() {
            inner = source;
        }
        let inner = inner.downcast_ref::<Error>().unwrap_or(&error);
        let line = error.line().or(inner.line());
        let mut message = match inner.detail() {
            Some(detail) => detail.to_owned(),
            None => inner.kind().to_string(),
        };
        if let Some((end, _)) = message.char_indices().nth(SHOWN) {
            message.truncate(end);
            message.push('…');
        }
        match inner.kind() {
            ErrorKind::SyntaxError => Self::Syntax { line, message },
            ErrorKind::OutOfFuel if inner.detail().is_none() => {
                Self::TooMuch { line, message: "it takes too many steps".to_owned() }
            }
            ErrorKind::OutOfFuel => Self::TooMuch { line, message },
            _ => Self::Values { line, message },
        }
    }
}

//! Pages from templates.
//!
//! Templates are MiniJinja's, and anybody who may write a Listing may write one: it runs inside a process that serves
//! the whole cluster. So nothing in a template may cost more than the page is worth. MiniJinja counts steps, but one
//! step can make or walk a text of any size. Here everything that makes or walks a value is weighed:
//!
//! ```text
//! source ─ scan ─> tokens ─ parse ─> tree ─ guard ─> tree whose every growing step is weighed ─ run ─> page
//!          size,             no step has         unknown filters,                              steps (fuel),
//!          Go's syntax       a long chain        recursion refused                             weight (budget)
//! ```

mod budget;
mod context;
mod engine;
mod error;
mod filters;
mod go;
mod guarded;
mod scan;

pub use context::Facts;
pub use error::TemplateError;

use super::page::Format;

/// The largest template, in bytes.
pub const MAX_TEMPLATE: usize = 256 * 1024;

/// The largest page, in bytes.
pub const MAX_PAGE: usize = 16 * 1024 * 1024;

/// A template that was found to be sound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    source: String,
    format: Format,
}

impl Template {
    /// Checks a template: what cannot be known before it is rendered is the values it uses.
    pub fn new(source: impl Into<String>, format: Format) -> Result<Self, TemplateError> {
        let source = source.into();
        engine::check(&source)?;
        Ok(Self { source, format })
    }

    /// The page that is made where no template is named.
    #[must_use]
    pub fn standard(format: Format) -> Self {
        let source = match format {
            Format::Html => include_str!("template/pages/standard.html"),
            Format::Json => include_str!("template/pages/standard.json"),
            Format::Text => include_str!("template/pages/standard.txt"),
        };
        Self { source: source.to_owned(), format }
    }

    /// The text of the template.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    /// What its page is written in.
    #[must_use]
    pub fn format(&self) -> Format {
        self.format
    }

    /// The page: equal facts give equal bytes.
    pub fn render(&self, facts: &Facts<'_>) -> Result<String, TemplateError> {
        engine::render(&self.source, self.format, facts)
    }
}

#[cfg(test)]
mod tests;

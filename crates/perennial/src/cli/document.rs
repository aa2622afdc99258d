//! Answers as data.

use serde::Serialize;

use super::error::Error;
use super::screen::Screen;
use crate::args::operate::Document;

/// A list of things, as kubectl's own.
#[derive(Debug, Serialize)]
pub(crate) struct Items<T> {
    items: Vec<T>,
}

impl<T> Items<T> {
    pub(crate) fn new(items: Vec<T>) -> Self {
        Self { items }
    }
}

/// Writes it whole.
pub(crate) fn write(screen: &mut Screen, value: &impl Serialize, how: Document) -> Result<(), Error> {
    let text = match how {
        Document::Json => {
            serde_json::to_string_pretty(value).map_err(|error| Error::said(error.to_string()))?
        }
        Document::Yaml => serde_saphyr::to_string(value).map_err(|error| Error::said(error.to_string()))?,
    };
    screen.say(text.trim_end())
}

//! The name of a version: when it was published, and what is in it.

use std::fmt;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{Timestamp, Unit};
use perennial_core::lister::Page;

const EXTENSIONS: [&str; 3] = ["html", "json", "txt"];
const FORMAT: &str = "%Y-%m-%dT%H-%M-%S%.3f";

/// `2026/11/15/2026-11-15T12-00-00.123Z-0a1b2c3d.html`. In order of time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Name {
    at: Timestamp,
    digest: String,
    extension: &'static str,
}

impl Name {
    pub(super) fn of(page: &Page, now: Timestamp) -> Self {
        let extension = match page.content_type.split(';').next().unwrap_or_default().trim() {
            "text/html" => "html",
            "application/json" => "json",
            _ => "txt",
        };
        let digest = page.stamp.digest.to_string().chars().take(8).collect();
        // What is finer than the name says would make two names of one.
        Self { at: now.round(Unit::Millisecond).unwrap_or(now), digest, extension }
    }

    pub(super) fn at(&self) -> Timestamp {
        self.at
    }

    pub(super) fn digest(&self) -> &str {
        &self.digest
    }

    /// Reads a name back, and nothing that is not one to the letter.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let file = text.rsplit('/').next()?;
        let (stem, extension) = file.rsplit_once('.')?;
        let extension = EXTENSIONS.into_iter().find(|known| *known == extension)?;
        let (time, digest) = stem.split_once("Z-")?;
        let at = DateTime::strptime(FORMAT, time).ok()?.to_zoned(TimeZone::UTC).ok()?.timestamp();
        let hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if digest.len() != 8 || !digest.bytes().all(hex) {
            return None;
        }
        let name = Self { at, digest: digest.to_owned(), extension };
        (name.to_string() == text).then_some(name)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { at, digest, extension } = self;
        let at = at.to_zoned(TimeZone::UTC);
        write!(f, "{}/{}Z-{digest}.{extension}", at.strftime("%Y/%m/%d"), at.strftime(FORMAT))
    }
}

#[cfg(test)]
mod tests {
    use perennial_core::lister::Versions;
    use proptest::prelude::*;

    use super::*;

    fn page(content_type: &str) -> Page {
        Page::new("body".to_owned(), content_type.to_owned(), 1, Versions::default())
    }

    #[test]
    fn a_name_says_when_and_what() {
        let now: Timestamp = "2026-11-15T12:00:00.1234Z".parse().unwrap();
        for (content_type, extension) in [
            ("text/html; charset=utf-8", "html"),
            ("application/json", "json"),
            ("text/plain; charset=utf-8", "txt"),
            ("image/png", "txt"),
        ] {
            let name = Name::of(&page(content_type), now);
            let digest = &page("").stamp.digest.to_string()[..8];
            assert_eq!(name.to_string(), format!("2026/11/15/2026-11-15T12-00-00.123Z-{digest}.{extension}"));
            assert_eq!(Name::parse(&name.to_string()), Some(name));
        }
    }

    #[test]
    fn nothing_else_is_a_name() {
        for other in [
            "",
            "index.html",
            "index.json",
            "2026/11/15/notes.txt",
            "2026/11/15/2026-11-15T12-00-00.123Z-0a1b2c3d",
            "2026/11/15/2026-11-15T12-00-00.123Z-0a1b2c3d.css",
            "2026/11/15/2026-11-15T12-00-00.123Z-0A1B2C3D.html",
            "2026/11/15/2026-11-15T12-00-00.123Z-0a1b2c3.html",
            "2026/11/15/2026-11-15T12-00-00Z-0a1b2c3d.html",
            "2026/11/14/2026-11-15T12-00-00.123Z-0a1b2c3d.html",
            "2026/11/31/2026-11-31T12-00-00.123Z-0a1b2c3d.html",
            "2026-11-15T12-00-00.123Z-0a1b2c3d.html",
            "/2026/11/15/2026-11-15T12-00-00.123Z-0a1b2c3d.html",
            "x/2026/11/15/2026-11-15T12-00-00.123Z-0a1b2c3d.html",
            "2026/11/15/../15/2026-11-15T12-00-00.123Z-0a1b2c3d.html",
            " 2026/11/15/2026-11-15T12-00-00.123Z-0a1b2c3d.html",
        ] {
            assert_eq!(Name::parse(other), None, "{other:?}");
        }
    }

    proptest! {
        #[test]
        fn text_and_back(millisecond in 0i64..253_402_300_799_000) {
            let name = Name::of(&page("text/html"), Timestamp::from_millisecond(millisecond).unwrap());
            prop_assert_eq!(Name::parse(&name.to_string()), Some(name));
        }

        #[test]
        fn any_text_is_a_name_to_the_letter_or_none(text in "[0-9a-fTZ./-]{0,60}|.{0,60}") {
            prop_assert!(Name::parse(&text).is_none_or(|name| name.to_string() == text));
        }
    }
}

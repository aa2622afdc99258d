//! The log: text for a person, JSON for a machine, on standard error, in UTC.
//!
//! A plain level is about Perennial; its libraries say at most `info`. Whoever wants more gives filter
//! directives. Panics go through the log too, so that a machine finds them where it looks. Under a storm of lines of
//! one kind most are left out and counted, see [`Storm`], unless somebody asks for `debug`.

use std::error::Error as StdError;

use tracing::Subscriber;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;

mod storm;

pub use storm::Storm;

/// How to log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogConfig {
    /// For a person or for a machine.
    pub format: Format,
    /// What is said.
    pub filter: Filter,
    /// Whether text may be coloured.
    pub color: bool,
}

/// What a log line looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// One readable line.
    Text,
    /// One JSON object a line.
    Json,
}

impl Format {
    /// Reads a format's name; the error says what is allowed.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text.to_ascii_lowercase().as_str() {
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            _ => Err("text or json".to_owned()),
        }
    }
}

/// Filter directives that were checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter(String);

impl Default for Filter {
    fn default() -> Self {
        Self::of_level("info")
    }
}

impl Filter {
    /// Reads a level or filter directives; the error says what is allowed.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if let Some(level) = level(text) {
            return Ok(Self::of_level(level));
        }
        // `tracing` takes any bare word for a module's name, and so a misspelt level for "say all".
        let words = text.split(',').map(str::trim);
        let misspelt =
            !text.contains('[') && words.clone().any(|word| !word.contains('=') && level(word).is_none());
        // Levels are the last part of a directive; each may be in the older spelling too.
        let directives: Vec<&str> = words.map(|word| level(word).unwrap_or(word)).collect();
        let directives = if text.contains('[') { text.to_owned() } else { directives.join(",") };
        if misspelt || EnvFilter::builder().parse(&directives).is_err() {
            return Err(
                "error, warn, info, debug, trace, or directives such as perennial=debug,info".to_owned()
            );
        }
        Ok(Self(directives))
    }

    /// Whether somebody wants to see everything.
    fn is_detailed(&self) -> bool {
        ["debug", "trace"].into_iter().any(|level| self.0.to_ascii_lowercase().contains(level))
    }

    fn of_level(level: &str) -> Self {
        Self(match level {
            "debug" | "trace" => format!("info,perennial={level},perennial_core={level}"),
            _ => level.to_owned(),
        })
    }
}

/// A level by any of its names, older operators' spellings among them.
fn level(word: &str) -> Option<&'static str> {
    match word.to_ascii_lowercase().as_str() {
        "off" => Some("off"),
        "critical" | "fatal" | "error" => Some("error"),
        "warn" | "warning" => Some("warn"),
        "info" => Some("info"),
        "debug" => Some("debug"),
        "trace" => Some("trace"),
        _ => None,
    }
}

/// A log that could not be set up: another one was there before.
#[derive(Debug, thiserror::Error)]
#[error("cannot set up the log: {0}")]
pub struct Error(#[from] tracing::subscriber::SetGlobalDefaultError);

/// Sets the process's log up. What is returned tells what a storm left out.
pub fn init(config: &LogConfig) -> Result<Storm, Error> {
    let storm = Storm::default();
    tracing::subscriber::set_global_default(subscriber(config, &storm, std::io::stderr))?;
    std::panic::set_hook(Box::new(|panic| {
        let location = panic.location().map(ToString::to_string);
        let message = panic.payload_as_str().unwrap_or("(no message)");
        tracing::error!(location, backtrace = %std::backtrace::Backtrace::capture(), "panic: {message}");
    }));
    Ok(storm)
}

/// An error and its causes in one line, for a log field.
#[must_use]
pub fn chain(error: &dyn StdError) -> String {
    let mut line = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        // Many errors already repeat their cause.
        if !line.contains(&cause_text) {
            line = format!("{line}: {cause_text}");
        }
        next = cause.source();
    }
    line
}

fn subscriber<W>(config: &LogConfig, storm: &Storm, writer: W) -> Box<dyn Subscriber + Send + Sync>
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    let LogConfig { format, filter, color } = config;
    let limited = (!filter.is_detailed()).then(|| storm.clone());
    let builder = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new(&filter.0))
        .with_ansi(*color && *format == Format::Text)
        .with_writer(writer);
    match format {
        Format::Text => Box::new(builder.with_target(false).finish().with(limited)),
        Format::Json => {
            Box::new(builder.json().flatten_event(true).with_span_list(false).finish().with(limited))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn logged(format: Format, filter: &str, speak: impl FnOnce()) -> String {
        let lines = Lines::default();
        let config = LogConfig { format, filter: Filter::parse(filter).unwrap(), color: false };
        let writer = lines.clone();
        let storm = Storm::default();
        let subscriber = subscriber(&config, &storm, move || writer.clone());
        tracing::subscriber::with_default(subscriber, || {
            speak();
            storm.tell();
        });
        let bytes = lines.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn every_spelling_of_a_level_is_understood() {
        for (spelling, level) in [
            ("WARNING", "warn"),
            ("Warning", "warn"),
            ("warn", "warn"),
            ("CRITICAL", "error"),
            ("fatal", "error"),
            ("ERROR", "error"),
            ("Info", "info"),
            (" info ", "info"),
        ] {
            assert_eq!(Filter::parse(spelling), Ok(Filter::of_level(level)), "{spelling}");
        }
    }

    #[test]
    fn debug_is_about_perennial_and_not_its_libraries() {
        let text = logged(Format::Text, "DEBUG", || {
            tracing::debug!(target: "perennial::keeper", "ours");
            tracing::debug!(target: "hyper", "theirs");
            tracing::info!(target: "hyper", "louder");
        });
        assert!(text.contains("ours") && text.contains("louder") && !text.contains("theirs"), "{text}");
    }

    #[test]
    fn directives_choose_for_each_module() {
        let text = logged(Format::Text, "hyper=debug,WARNING", || {
            tracing::info!(target: "perennial", "ours");
            tracing::debug!(target: "hyper", "theirs");
        });
        assert!(text.contains("theirs") && !text.contains("ours"), "{text}");
    }

    #[test]
    fn broken_levels_are_refused_with_what_is_allowed() {
        for broken in ["loud", "warnn", "perennial=loud", "info,warnn", "=", "[", ""] {
            let error = Filter::parse(broken).unwrap_err();
            assert!(error.contains("error, warn, info, debug, trace"), "{broken}: {error}");
        }
        assert_eq!(Format::parse("xml"), Err("text or json".to_owned()));
    }

    #[test]
    fn a_machine_gets_one_object_a_line_with_the_fields_at_its_top() {
        let text = logged(Format::Json, "info", || {
            tracing::info!(node = "n1", uid = "u-1", "restored");
            tracing::warn!("second");
        });
        let lines: Vec<serde_json::Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[0]["node"], "n1");
        assert_eq!(lines[0]["message"], "restored");
        assert_eq!(lines[1]["level"], "WARN");
        assert!(lines[0]["timestamp"].as_str().unwrap().ends_with('Z'));
    }

    #[test]
    fn a_person_gets_a_line_without_escapes_when_colours_are_off() {
        let text = logged(Format::Text, "info", || tracing::info!(node = "n1", "restored"));
        assert!(text.contains("INFO restored node=\"n1\"") && !text.contains('\u{1b}'), "{text}");
        assert!(text.split_whitespace().next().unwrap().ends_with('Z'), "{text}");
    }

    #[test]
    fn a_storm_of_one_kind_is_cut_short_and_hides_nothing_else() {
        let storm = || {
            for number in 0..5000 {
                tracing::info!(node = number, "restored");
                if number % 1000 == 0 {
                    tracing::error!(number, "disk on fire");
                }
            }
        };
        let text = logged(Format::Json, "info", storm);
        let lines: Vec<serde_json::Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let said = |message: &str| lines.iter().filter(|line| line["message"] == message).count();
        assert_eq!(said("disk on fire"), 5);
        let told: Vec<_> = lines.iter().filter(|line| line["like"] == "restored").collect();
        assert_eq!((told.len(), told[0]["level"].as_str()), (1, Some("INFO")), "{told:?}");
        let left_out = usize::try_from(told[0]["left_out"].as_u64().unwrap()).unwrap();
        assert_eq!(said("restored") + left_out, 5000);
        assert!(left_out > 4000, "{left_out}");
        let text = logged(Format::Json, "debug", storm);
        assert_eq!(text.lines().count(), 5005, "whoever asks for all gets all");
    }

    #[test]
    fn a_chain_of_causes_is_one_line_that_repeats_nothing() {
        #[derive(Debug, thiserror::Error)]
        #[error("cannot start")]
        struct Outer(#[source] std::io::Error);
        let error = Outer(std::io::Error::other("disk on fire"));
        assert_eq!(chain(&error), "cannot start: disk on fire");
    }
}

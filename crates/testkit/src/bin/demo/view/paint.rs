//! A few colours, or none.

/// How text is painted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Paint {
    colours: bool,
}

impl Paint {
    /// With colours unless `NO_COLOR` is set to something (<https://no-color.org>).
    pub(super) fn from_environment() -> Self {
        Self { colours: std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()) }
    }

    #[cfg(test)]
    pub(super) fn plain() -> Self {
        Self { colours: false }
    }

    #[cfg(test)]
    pub(super) fn colourful() -> Self {
        Self { colours: true }
    }

    pub(super) fn good(self, text: &str) -> String {
        self.with("32", text)
    }

    pub(super) fn attention(self, text: &str) -> String {
        self.with("33", text)
    }

    pub(super) fn bad(self, text: &str) -> String {
        self.with("1;31", text)
    }

    pub(super) fn strong(self, text: &str) -> String {
        self.with("1", text)
    }

    pub(super) fn faint(self, text: &str) -> String {
        self.with("2", text)
    }

    fn with(self, code: &str, text: &str) -> String {
        if self.colours && !text.is_empty() { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

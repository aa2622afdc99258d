//! What can be wrong with a policy, told so that it can be put right in one go.

use std::fmt;

/// Why a policy was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// The text is larger than any sensible policy, so it is not even read.
    #[error("the policy has {bytes} bytes; at most {limit} are allowed")]
    TooLarge {
        /// The size found.
        bytes: usize,
        /// The size allowed.
        limit: usize,
    },
    /// Not YAML.
    #[error("the policy is not valid YAML: {message}")]
    Yaml {
        /// Where, counted from 1, if the parser knows.
        line: Option<u64>,
        /// What the parser says, with line and column.
        message: String,
    },
    /// YAML, with keys, types or values that are not allowed: all of them.
    #[error("the policy has {}", list(.0))]
    Values(Vec<Problem>),
}

impl PolicyError {
    /// A fixed word for metrics.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::TooLarge { .. } => "policy_too_large",
            Self::Yaml { .. } => "policy_yaml",
            Self::Values(_) => "policy_values",
        }
    }

    /// The values that are not allowed; empty where the text could not be read at all.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        match self {
            Self::Values(problems) => problems,
            Self::TooLarge { .. } | Self::Yaml { .. } => &[],
        }
    }
}

/// One value that is not allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where it stands: `rules[1].labels.include[0]`.
    pub path: String,
    /// The value as written.
    pub value: String,
    /// What is wrong with it and what is allowed, to be read after the value: `must be a list`.
    pub allowed: String,
}

/// Longer values are cut when they are shown: a log line is no place for a kilobyte of glob.
const SHOWN: usize = 80;

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, value, allowed } = self;
        match value.char_indices().nth(SHOWN) {
            None => write!(f, "{path}: {value:?} {allowed}"),
            Some((end, _)) => write!(f, "{path}: {:?}… {allowed}", &value[..end]),
        }
    }
}

fn list(problems: &[Problem]) -> String {
    use fmt::Write as _;
    let mut text = match problems.len() {
        1 => "1 problem".to_owned(),
        many => format!("{many} problems"),
    };
    for problem in problems {
        // Writing into a String cannot fail.
        let _ = write!(text, "\n  {problem}");
    }
    text
}

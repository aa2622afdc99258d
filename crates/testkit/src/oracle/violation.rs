//! A promise that was broken.

use std::fmt;

/// Which of the six points of "What must never break", or that things did not come to rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Breach {
    /// 1: something kept was lost.
    Lost,
    /// 2: something was taken from a node or a record.
    Taken,
    /// 3: something was given more than once, or to one who had got its own.
    GivenTwice,
    /// 4: an older or made-up word stands over a newer one.
    OlderWon,
    /// 5: something was written though nothing changed.
    Noise,
    /// 6: a node could not join.
    Refused,
    /// Node and record did not come to agree in time.
    Unsettled,
}

impl Breach {
    /// The promise, in the design's words.
    #[must_use]
    pub fn promise(self) -> &'static str {
        match self {
            Self::Lost => "1. Nothing kept is lost",
            Self::Taken => "2. Nothing is taken",
            Self::GivenTwice => "3. Given once",
            Self::OlderWon => "4. Newer wins",
            Self::Noise => "5. Silence",
            Self::Refused => "6. Nodes always join",
            Self::Unsettled => "Records converge",
        }
    }
}

/// A promise that was broken, and what led to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which.
    pub breach: Breach,
    /// About which node.
    pub node: String,
    /// At which version.
    pub version: u64,
    /// What is wrong.
    pub what: String,
    /// What happened to that node, oldest first.
    pub timeline: Vec<String>,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { breach, node, version, what, timeline } = self;
        writeln!(f, "{} — broken for {node} at version {version}: {what}", breach.promise())?;
        timeline.iter().try_for_each(|line| writeln!(f, "  {line}"))
    }
}

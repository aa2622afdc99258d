//! The scenarios, in the order in which they are played.

use clap::ValueEnum;

use crate::stage::Stage;

mod born;
mod bucket;
mod fleet;
mod host;
mod returns;
mod rights;
mod storm;
mod upgrade;

/// What users do.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Scenario {
    /// Nodes are deleted and return
    Returns,
    /// Nodes are born with their labels
    Born,
    /// Many at once, while keepers are killed and rolled
    Storm,
    /// Upgrade, roll back, uninstall, reinstall
    Upgrade,
    /// What accounts and pods may do
    Rights,
    /// nginx that lists itself
    Fleet,
    /// The page in a bucket
    Bucket,
    /// The .deb on a host
    Host,
}

impl Scenario {
    /// All of them.
    pub(crate) const ALL: [Self; 8] = [
        Self::Returns,
        Self::Born,
        Self::Storm,
        Self::Upgrade,
        Self::Rights,
        Self::Fleet,
        Self::Bucket,
        Self::Host,
    ];

    /// As it is typed.
    pub(crate) fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// What is shown.
    pub(crate) fn what(self) -> &'static str {
        match self {
            Self::Returns => {
                "a deleted node that returns has what it was given; another machine under its name has not"
            }
            Self::Born => {
                "a deleted node that returns is born with its labels, and behind a gate until it has the rest"
            }
            Self::Storm => {
                "all nodes are deleted and return while a keeper is killed and the others are rolled: nothing is lost"
            }
            Self::Upgrade => "upgrade to another image, roll back, uninstall, reinstall: records survive",
            Self::Rights => "pods run under the restricted level, and no account can do what it should not",
            Self::Fleet => {
                "every nginx of a fleet serves the list of exactly those that are ready, however it is scaled"
            }
            Self::Bucket => {
                "the page in a bucket is readable by anyone, and its credentials are in their Secret alone"
            }
            Self::Host => "the .deb is installed, its unit is clean, and what it starts keeps a label",
        }
    }

    /// Why it cannot be played here, if it cannot.
    pub(crate) fn impossible(self, stage: &Stage) -> Option<String> {
        match self {
            Self::Returns | Self::Born | Self::Storm | Self::Upgrade | Self::Host => {
                stage.cannot_return_nodes()
            }
            Self::Bucket => stage.cannot_reach_us(),
            Self::Rights | Self::Fleet => None,
        }
        .or_else(|| if matches!(self, Self::Host) { host::impossible() } else { None })
    }

    /// Plays it. Good, or why not.
    pub(crate) async fn play(self, stage: &Stage) -> anyhow::Result<()> {
        match self {
            Self::Returns => returns::play(stage).await,
            Self::Born => born::play(stage).await,
            Self::Storm => storm::play(stage).await,
            Self::Upgrade => upgrade::play(stage).await,
            Self::Rights => rights::play(stage).await,
            Self::Fleet => fleet::play(stage).await,
            Self::Bucket => bucket::play(stage).await,
            Self::Host => host::play(stage).await,
        }
    }
}

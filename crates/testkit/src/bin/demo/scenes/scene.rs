//! The scenes: which there are, and how they are told.

use crate::{replicas::Work, view::words};

/// One of them.
#[derive(Clone, Copy)]
pub(super) enum Scene {
    /// Some nodes go and come back.
    Maintenance,
    /// One replica is killed while half of the fleet comes back.
    OneKilled,
    /// One replica is frozen while nodes go and come back, and wakes when all is done.
    OnePaused,
    /// All replicas are killed, and nobody watches while nodes go and come back.
    NobodyWatches,
    /// All nodes of a zone go at once.
    ZoneFails,
    /// Nodes go and come back twice, faster than anybody can follow.
    Flapping,
    /// All replicas are killed in the middle of giving labels back.
    KilledGiving,
}

/// In the order in which they are played, again and again.
pub(super) const SCENES: [Scene; 7] = [
    Scene::Maintenance,
    Scene::OneKilled,
    Scene::OnePaused,
    Scene::NobodyWatches,
    Scene::ZoneFails,
    Scene::Flapping,
    Scene::KilledGiving,
];

impl Scene {
    /// What it is called, if this replica is the one that suffers.
    pub(super) fn name(self, victim: &str) -> String {
        match self {
            Self::Maintenance => "maintenance".to_owned(),
            Self::OneKilled => format!("{victim} killed"),
            Self::OnePaused => format!("{victim} paused"),
            Self::NobodyWatches => "all killed".to_owned(),
            Self::ZoneFails => "a zone fails".to_owned(),
            Self::Flapping => "flapping".to_owned(),
            Self::KilledGiving => "all killed midway".to_owned(),
        }
    }

    /// What the replicas said that they did of the kind that this scene is about.
    pub(super) fn telling(self, work: Work) -> String {
        match self {
            Self::NobodyWatches | Self::KilledGiving => format!(", {}", words::count(work.proofs, "proof")),
            _ if work.takeovers == 0 => String::new(),
            _ => format!(", {}", words::count(work.takeovers, "takeover")),
        }
    }
}

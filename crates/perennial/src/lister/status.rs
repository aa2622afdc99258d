//! What a Listing's status should say: a projection of what is known, compared with what it says already.
//!
//! Every replica projects, and writes where it is its turn and the two differ. So whoever publishes tells of it, a
//! replica that only looks on finds nothing to say, and one that takes over goes on from what was said.

use jiff::Timestamp;
use perennial_core::lister::{Held, Stamp};

use super::listing::{Condition, DestinationStatus, ListingStatus};
use super::order::OrderError;

/// How far a listing got.
#[derive(Clone, Debug)]
pub(crate) enum Stage {
    /// Nothing is known yet.
    Starting,
    /// The spec cannot be carried out.
    Invalid(OrderError),
    /// There is no template, or it is broken.
    NoPage {
        /// In one word.
        reason: &'static str,
        /// In a sentence, with what to do.
        message: String,
    },
    /// There is no such Service.
    NoService(String),
    /// A guard keeps the last good page.
    Held(Held, Stamp),
    /// This is the page.
    Page(Stamp),
}

impl Stage {
    /// What keeps a page from being published, in one word and in a sentence.
    pub(crate) fn trouble(&self) -> Option<(&'static str, String)> {
        match self {
            Self::Starting | Self::Page(_) => None,
            Self::Invalid(error) => Some(("InvalidSpec", error.to_string())),
            Self::NoPage { reason, message } => Some((*reason, message.clone())),
            Self::NoService(name) => Some((
                "ServiceNotFound",
                format!("there is no Service {name:?} in this namespace, nor EndpointSlices of it"),
            )),
            Self::Held(held, _) => Some(("Held", held.to_string())),
        }
    }
}

/// What a status is made from.
pub(crate) struct View<'a> {
    pub(crate) stage: &'a Stage,
    pub(crate) generation: Option<i64>,
    /// What the status says already.
    pub(crate) said: &'a ListingStatus,
    /// What is known of each destination.
    pub(crate) destinations: Vec<DestinationStatus>,
}

/// What the status should say.
pub(crate) fn project(view: &View<'_>, now: Timestamp) -> ListingStatus {
    let View { stage, generation, said, destinations } = view;
    let published = match stage {
        Stage::Page(page) => everywhere(destinations, page).then_some(page),
        _ => None,
    };
    let digest = published.map(|page| page.digest.to_string());
    let news = published.is_some() && digest != said.digest;
    let last = destinations.iter().filter_map(|one| one.last_published.clone()).max();
    let last = last.or_else(|| (news && destinations.is_empty()).then(|| time(now)));
    let conditions = [ready(view, published.is_some()), held(stage)];
    ListingStatus {
        observed_generation: *generation,
        endpoints: published.and_then(|page| u32::try_from(page.endpoints).ok()).or(said.endpoints),
        digest: digest.or_else(|| said.digest.clone()),
        last_published: last.or_else(|| said.last_published.clone()),
        conditions: conditions
            .into_iter()
            .flatten()
            .map(|said_now| said_now.condition(*generation, &said.conditions, now))
            .collect(),
        destinations: destinations.clone(),
    }
}

/// A time as Kubernetes writes it.
pub(crate) fn time(now: Timestamp) -> String {
    format!("{now:.0}")
}

/// Whether every destination has this page.
fn everywhere(destinations: &[DestinationStatus], page: &Stamp) -> bool {
    let digest = page.digest.to_string();
    destinations.iter().all(|one| one.digest.as_ref() == Some(&digest) && one.reason.is_none())
}

/// A condition before it has a time.
struct Said {
    kind: &'static str,
    status: &'static str,
    reason: &'static str,
    message: String,
}

impl Said {
    fn condition(self, generation: Option<i64>, before: &[Condition], now: Timestamp) -> Condition {
        let Self { kind, status, reason, message } = self;
        let same = before.iter().find(|one| one.kind == kind && one.status == status);
        Condition {
            kind: kind.to_owned(),
            status: status.to_owned(),
            reason: reason.to_owned(),
            message,
            last_transition_time: same.map_or_else(|| time(now), |one| one.last_transition_time.clone()),
            observed_generation: generation,
        }
    }
}

/// `Ready`, or `None` to leave it as it is: a page on its way is no news.
fn ready(view: &View<'_>, published: bool) -> Option<Said> {
    let said = |status, reason, message: String| Some(Said { kind: "Ready", status, reason, message });
    if let Some((reason, message)) = view.stage.trouble() {
        return said("False", reason, message);
    }
    match view.stage {
        Stage::Page(_) => {
            let failing: Vec<String> = view
                .destinations
                .iter()
                .filter_map(|one| Some(format!("{}: {}", one.name, one.message.as_ref()?)))
                .collect();
            if !failing.is_empty() {
                return said("False", "DestinationFailing", failing.join("; "));
            }
            if published && view.destinations.is_empty() {
                return said("True", "Served", "the page is served by Perennial itself".to_owned());
            }
            if published {
                return said("True", "Published", "every destination has the current page".to_owned());
            }
            let before = view.said.conditions.iter().find(|one| one.kind == "Ready");
            match before {
                Some(before) if before.status == "True" => {
                    said("True", "Published", "every destination has the current page".to_owned())
                }
                _ => said("Unknown", "Publishing", "the page is on its way".to_owned()),
            }
        }
        _ => said("Unknown", "Starting", "waiting for the Service's endpoints".to_owned()),
    }
}

fn held(stage: &Stage) -> Option<Said> {
    let said = |status, reason, message: String| Some(Said { kind: "Held", status, reason, message });
    match stage {
        Stage::Held(held, page) => said(
            "True",
            held.reason(),
            format!("{held}; to publish it all the same: annotate with {}={}", super::RELEASE, page.digest),
        ),
        Stage::Starting => None,
        Stage::Invalid(_) | Stage::NoPage { .. } | Stage::NoService(_) | Stage::Page(_) => {
            said("False", "NotHeld", "no guard holds a page".to_owned())
        }
    }
}

#[cfg(test)]
mod tests;

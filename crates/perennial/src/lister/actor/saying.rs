//! What is told of a listing: its status, and how it stands.

use perennial_core::kept::Digest;
use perennial_core::lister::{Stamp, Versions};
use tokio::time::Instant;
use tracing::debug;

use super::Actor;
use crate::cluster::{ApiError, backoff};
use crate::lister::listing::ListingStatus;
use crate::lister::say::say;
use crate::lister::standings::Standing;
use crate::lister::status::{Stage, View, project};

/// How long a status that was written is left to the watch to tell of.
const HEARD: std::time::Duration = std::time::Duration::from_millis(100);

impl Actor {
    /// Brings the status up to date, where it is this replica's turn.
    pub(super) fn say(&mut self) {
        let seen = self.seen.borrow().clone();
        let Some(object) = &seen.object else { return };
        if matches!(self.stage, Stage::Starting) && !object.status.conditions.is_empty() {
            return;
        }
        let view = View {
            stage: &self.stage,
            generation: object.generation,
            said: &object.status,
            destinations: self.places.statuses(),
        };
        let status = project(&view, self.shared.cluster.now());
        if status == object.status {
            self.unsaid = None;
            self.places.told();
            return;
        }
        let since = *self.unsaid.get_or_insert_with(Instant::now);
        let turn = self.say_after.max(since + self.delay());
        if self.saying.is_empty() && turn <= Instant::now() {
            self.saying.spawn(say(self.shared.clone(), self.id.clone(), object.clone(), status));
        }
    }

    pub(super) fn said(&mut self, said: Result<(), ApiError>) {
        match said {
            Ok(()) => self.unheard = 0,
            Err(error) => {
                self.unheard += 1;
                self.shared.cluster.metrics().error(error.kind());
                if matches!(error, ApiError::Forbidden(_)) {
                    self.shared.cluster.metrics().forbidden.tell(&error);
                }
                debug!(listing = %self.id, %error, "cannot write the status");
            }
        }
        // The watch tells what came of it.
        self.say_after = Instant::now() + backoff(self.unheard).max(HEARD);
    }

    /// Tells whoever scrapes how the listing stands.
    pub(super) fn stand(&mut self) {
        let held = matches!(self.stage, Stage::Held(..));
        let trouble = self.stage.trouble().is_some();
        self.troubled = trouble.then(|| self.troubled.unwrap_or_else(Instant::now));
        let stale = match self.stage {
            Stage::Starting => Some(self.start),
            Stage::Page(_) => self.places.stale(),
            Stage::Invalid(_) | Stage::NoPage { .. } | Stage::NoService(_) | Stage::Held(..) => self.troubled,
        };
        self.stands.tell(Standing {
            endpoints: self.page.as_ref().map_or(0, |page| page.stamp.endpoints),
            held,
            failing: trouble && !held || self.places.fail(),
            stale,
        });
    }
}

/// The last good page, as a status tells of it.
pub(super) fn last_good(status: &ListingStatus) -> Option<Stamp> {
    Some(Stamp {
        digest: Digest::parse(status.digest.as_deref()?)?,
        endpoints: status.endpoints?.try_into().ok()?,
        versions: Versions::default(),
    })
}

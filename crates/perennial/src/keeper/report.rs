//! Tells people and machines what came of a plan: one log line, metrics, and an Event where it matters.

use std::borrow::Cow;

use jiff::Timestamp;
use perennial_core::keeper::{Body, Live, Notice, Patch, Why, Write};
use tracing::{debug, info, warn};
use uuid::Uuid;

use super::ledger::{Entry, Name};
use super::metrics::Metrics;
use super::window::{Kind, Story};
use crate::cluster::{About, Clock, Teller, Told};

/// How many keys an Event or a log line names before it only counts.
const NAMED: usize = 12;

/// The voice of the keeper.
pub(crate) struct Report {
    pub(crate) metrics: std::sync::Arc<Metrics>,
    pub(crate) teller: Teller,
    /// For whoever looks at the status page, where there is one.
    pub(crate) story: Option<Story>,
    pub(crate) clock: Clock,
}

impl Report {
    /// A record was written. It is news where it holds something else than before.
    pub(crate) fn wrote(&self, name: &Name, write: &Write, transition: &'static str, news: bool) {
        let record = &write.record;
        let uid = record.incarnation.uid;
        self.metrics.saves.inc(transition);
        if record.went_back() {
            self.metrics.churn.inc();
        }
        let (labels, waiting) = (record.kept.labels.len(), record.waiting.len());
        let (version, sequence) = (record.version, record.sequence);
        match transition {
            "close" => info!(node = %name, %uid, labels, waiting, version, sequence, "recorded the end"),
            // What comes of it has a line of its own.
            "give" => debug!(node = %name, %uid, labels, waiting, version, sequence, "about to restore"),
            _ if !news => {
                debug!(node = %name, %uid, labels, waiting, version, sequence, "the record follows the node again");
            }
            _ => info!(node = %name, %uid, labels, waiting, version, sequence, "recorded"),
        }
        if let Some(notice) = write.notice {
            self.notice(name, uid, notice);
        }
    }

    fn notice(&self, name: &Name, uid: Uuid, notice: Notice) {
        let message = match notice {
            Notice::Unproved => {
                "the node's end lies before etcd's history: its last recorded state is used, and changes made \
                 right before its deletion may be missing"
            }
            Notice::OtherMachine => {
                "another machine bears this name (its providerID differs): nothing was restored; the old state \
                 is in the record's `previous`"
            }
            Notice::PrivilegedDropped => {
                "another machine bears this name (its providerID differs): privileged labels were not restored"
            }
            Notice::Rewritten => "the record was unreadable and is written anew from the living node",
        };
        let reason = match notice {
            Notice::OtherMachine | Notice::PrivilegedDropped => "RestoreSkipped",
            Notice::Rewritten => "RecordUnreadable",
            Notice::Unproved => notice.reason(),
        };
        self.metrics.notices.inc(notice.reason());
        warn!(node = %name, %uid, reason = notice.reason(), message);
        self.recount(Kind::Warning, name, Some(uid), message);
        let message = message.to_owned();
        self.teller.tell(Told {
            about: about(name, Some(uid)),
            reason: reason.into(),
            message,
            warning: true,
        });
    }

    pub(crate) fn patched(
        &self,
        name: &Name,
        patch: &Patch,
        live: Option<&Live>,
        ready: bool,
        now: Timestamp,
    ) {
        let Patch { uid, labels, annotations, taints, cordon, unset, withheld, .. } = patch;
        if !unset.is_empty() {
            let keys = list(&unset.iter().map(String::as_str).collect::<Vec<_>>());
            info!(node = %name, %uid, keys, "born with what it had lost: taken back");
        }
        if patch.opens {
            debug!(node = %name, %uid, "the gate is open");
        }
        let keys: Vec<&str> = labels.keys().chain(annotations.keys()).map(String::as_str).collect();
        let keys = keys.into_iter().chain(taints.iter().map(|taint| taint.key.as_str())).collect::<Vec<_>>();
        if keys.is_empty() && !cordon {
            debug!(node = %name, %uid, withheld, "nothing was missing");
            return;
        }
        let seconds = live.map_or(0.0, |live| now.duration_since(live.created).as_secs_f64().max(0.0));
        self.metrics.restores.inc();
        self.metrics.after_ready.inc_by(u64::from(ready));
        self.metrics.labels_restored.inc_by(labels.len() as u64);
        self.metrics.restore_seconds.observe(seconds);
        let named = list(&keys);
        info!(node = %name, %uid, labels = labels.len(), withheld, keys = named, "restored");
        let message = format!("restored {named}{}", if *cordon { ", cordoned" } else { "" });
        if let Some(story) = &self.story {
            story.restored(name, *uid, seconds, Some(message.clone()), now);
        }
        let reason = "MetadataRestored";
        self.teller.tell(Told {
            about: about(name, Some(*uid)),
            reason: reason.into(),
            message,
            warning: false,
        });
    }

    pub(crate) fn unreadable(&self, name: &Name, entry: &Entry) {
        let Some(Body::Unreadable { why, hint, aside: false }) = entry.seen().map(|seen| &seen.body) else {
            return;
        };
        self.metrics.notices.inc("RecordUnreadable");
        warn!(node = %name, uid = hint.map(display), why, "the record cannot be read; its bytes are copied aside");
        let message =
            format!("the record cannot be read ({why}); its bytes are copied aside, nothing is given");
        let uid = entry.line.live().map(|live| live.uid);
        // Without the reason: it may quote what is in the record.
        self.recount(Kind::Warning, name, uid, "the record cannot be read: its bytes are copied aside");
        let reason = "RecordUnreadable";
        self.teller.tell(Told { about: about(name, uid), reason: reason.into(), message, warning: true });
    }

    /// A node is left as it is, though something is owed to it.
    pub(crate) fn skipped(&self, name: &Name, entry: Option<&Entry>, why: Why) {
        self.metrics.skips.inc(why.as_str());
        let uid = entry.and_then(|entry| entry.line.live()).map(|live| live.uid);
        let message = match why {
            Why::IdentityUnknown => {
                "privileged labels, or all under `identity: provider`, wait until spec.providerID is known and \
                 matches (on bare metal: set `privileged.withoutProviderID` in the policy)"
            }
            Why::NewerSchema => "the record was written by a newer perennial: upgrade this one",
            Why::Unreadable => "the record cannot be read: nothing is given from it",
            _ => {
                debug!(node = %name, uid = uid.map(display), why = why.as_str(), "left as it is");
                return;
            }
        };
        info!(node = %name, uid = uid.map(display), why = why.as_str(), message);
        self.recount(Kind::Skipped, name, uid, message);
        let (reason, message) = ("RestoreSkipped", message.to_owned());
        self.teller.tell(Told { about: about(name, uid), reason: reason.into(), message, warning: true });
    }

    pub(crate) fn too_large(&self, name: &Name, uid: Option<Uuid>, bytes: usize) {
        self.metrics.refused.inc();
        warn!(node = %name, uid = uid.map(display), bytes, "what is kept of this node does not fit into a ConfigMap: not recorded");
        let message =
            format!("what is kept of this node takes {bytes} bytes and does not fit into a ConfigMap");
        self.recount(Kind::Warning, name, uid, message.clone());
        let reason = "RecordTooLarge";
        self.teller.tell(Told { about: about(name, uid), reason: reason.into(), message, warning: true });
    }
}

impl Report {
    /// Tells it to whoever looks at the status page.
    pub(crate) fn recount(
        &self,
        kind: Kind,
        name: &Name,
        uid: Option<Uuid>,
        text: impl Into<Cow<'static, str>>,
    ) {
        if let Some(story) = &self.story {
            story.tell(kind, name, uid, text, self.clock.now());
        }
    }
}

/// Some keys by name, the rest by number.
fn list(keys: &[&str]) -> String {
    let named = keys.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
    match keys.len().saturating_sub(NAMED) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

fn about(node: &Name, uid: Option<Uuid>) -> About {
    About { api_version: "v1", kind: "Node", namespace: None, name: node.to_string(), uid }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lists_are_counted_rather_than_named() {
        assert_eq!(list(&["a", "b"]), "a, b");
        let keys = vec!["k"; NAMED + 3];
        assert!(list(&keys).ends_with("k and 3 more"), "{}", list(&keys));
    }
}

//! Folds what came of plans into the ledger.

use std::time::Duration;

use jiff::Timestamp;
use perennial_core::keeper::{Body, RecordSight};
use perennial_core::record::Version;
use tokio::task;
use tokio::time::Instant;
use tracing::{debug, error, info, warn};
use uuid::Uuid;

use super::apply::{Doubt, Outcome};
use super::ledger::{Name, Urgency};
use super::window::Kind;
use super::{Keeper, Worker};
use crate::cluster::{ApiError, backoff};

/// However long somebody asks to wait: a proxy's hour is not ours.
const LONGEST: Duration = Duration::from_mins(1);

/// For so many slow retries something that cannot be read is asked for again.
const PATIENCE: u32 = 3;

/// How often a permission is asked for again soon, before it counts as missing and is retried slowly.
const AT_FIRST: u32 = 5;

impl Keeper {
    pub(super) fn folded(&mut self, done: Result<(task::Id, Outcome), task::JoinError>) {
        let id = done.as_ref().map_or_else(task::JoinError::id, |(id, _)| *id);
        let Some(Worker { name, rank, removal, span }) = self.workers.remove(&id) else { return };
        match done {
            Ok((_, outcome)) => {
                if let Some(span) = span {
                    span.end(&outcome);
                }
                self.count(rank, &outcome);
                self.fold(&name, outcome, removal);
            }
            Err(error) => {
                // A bug to see. It must not take the other lines along, nor leave this one busy for ever.
                let uid = self.uid(&name);
                error!(node = %name, uid, %error, "work panicked: it is tried again slowly");
                self.api.cluster().metrics().error("panic");
                self.ledger.done(&name);
                self.ledger.put_off(&name, Instant::now() + self.config.retry_slowly, Urgency::Restore);
                self.look(&name);
            }
        }
    }

    /// Counts what replicas do for each other, and twice.
    fn count(&self, rank: usize, outcome: &Outcome) {
        let metrics = &self.membership.metrics;
        match outcome {
            Outcome::Wrote { .. } | Outcome::Patched { .. } | Outcome::Erased(..) if rank > 0 => {
                metrics.takeovers.inc();
            }
            // Only replicas write records; a Node may change for any reason but that it bears the mark.
            Outcome::Overtaken(read) => match &**read {
                Outcome::Node(Ok(node)) if !node.is_marked(&self.config.installation) => {}
                _ => drop(metrics.duplicates.inc()),
            },
            _ => {}
        }
    }

    /// Folds what came of a plan into its line, and looks at it again. `removal` is the last removal of the record that was
    /// known when the plan was made.
    fn fold(&mut self, name: &Name, outcome: Outcome, removal: Version) {
        let now = self.now();
        self.ledger.done(name);
        match outcome {
            Outcome::Overtaken(read) => {
                self.api.cluster().metrics().error("conflict");
                let failures = self.ledger.entry(name).map_or(0, |entry| entry.failures);
                self.ledger.overtaken(name, Instant::now() + backoff(failures.saturating_add(1)));
                self.take(name, *read, now, removal);
            }
            Outcome::PastUnreadable(uid, error) => self.past_unreadable(name, uid, &error, now),
            Outcome::Failed(error, doubt) => self.failed(name, &error, doubt, Urgency::Restore),
            // To say it again does no harm, and nothing else waits for it.
            Outcome::Untold(error) => self.failed(name, &error, Doubt::None, Urgency::Later),
            // Whatever is more urgent than collection does not wait for a person.
            Outcome::Braked => self.ledger.braked(name, Instant::now() + self.config.retry_slowly),
            // What is read again after a failure is no progress yet: whoever fails at every other step has to slow down.
            outcome @ (Outcome::Node(_) | Outcome::Record(_)) => self.take(name, outcome, now, removal),
            outcome => {
                self.ledger.succeeded(name);
                self.take(name, outcome, now, removal);
            }
        }
        self.look(name);
    }

    /// Folds what was read or written.
    fn take(&mut self, name: &Name, outcome: Outcome, now: Timestamp, removal: Version) {
        match outcome {
            Outcome::Node(Ok(node)) => {
                let (installation, policy) = (&self.config.installation, &self.policy);
                let uid = node.metadata.uid;
                if self.ledger.node_read(name, node, installation, policy, now) {
                    self.ledger.entry_mut(name).line.node_found(uid, removal);
                } else {
                    self.ledger.hold(name);
                }
            }
            Outcome::Node(Err(version)) => {
                if !self.ledger.node_absent(name, version, now) {
                    self.ledger.hold(name);
                }
            }
            Outcome::Record(Err(version)) => {
                if !self.ledger.record_absent(name, version, &self.policy, now) {
                    self.ledger.hold(name);
                }
            }
            Outcome::Record(Ok(object)) => {
                if self.ledger.record_read(name, &object) {
                    self.report.unreadable(name, self.ledger.entry_mut(name));
                } else {
                    self.ledger.hold(name);
                }
            }
            Outcome::Proved(end) => {
                self.metrics.proofs.inc("proved");
                self.unreadable_pasts.remove(&end.uid);
                debug!(node = %name, uid = %end.uid, version = end.version, "proved an end from history");
                self.ledger.entry_mut(name).line.node_ended(end);
            }
            Outcome::Lost(uid) => {
                self.metrics.proofs.inc("lost");
                self.unreadable_pasts.remove(&uid);
                self.ledger.end_lost(name, uid);
            }
            Outcome::EndRead(uid, id) => self.ledger.entry_mut(name).line.end_read(uid, id),
            Outcome::Wrote { object, write, transition, created, news, untold } => {
                self.report.wrote(name, &write, transition, news);
                let uid = write.record.incarnation.uid;
                let created = created.then_some(removal);
                self.ledger.record_written(name, &object, write.record, created);
                if untold {
                    self.ledger.entry_mut(name).line.untold = Some(uid);
                }
            }
            Outcome::Patched { node, ready, patch } => {
                self.ledger.node_read(name, node, &self.config.installation, &self.policy, now);
                let entry = self.ledger.entry(name);
                let live = entry.as_ref().and_then(|entry| entry.line.live());
                self.report.patched(name, &patch, live, ready, now);
            }
            Outcome::Told(uid) => {
                let line = &mut self.ledger.entry_mut(name).line;
                (line.told, line.untold) = (Some(uid), None);
            }
            Outcome::SetAside => {
                if let RecordSight::Seen(seen) = &mut self.ledger.entry_mut(name).line.record
                    && let Body::Unreadable { aside, .. } = &mut seen.body
                {
                    *aside = true;
                }
            }
            Outcome::Erased(why, version) => {
                self.metrics.erases.inc(why.as_str());
                let uid = self.uid(name);
                info!(node = %name, uid, why = why.as_str(), "erased the record");
                let text = format!("the record was erased: {}", why.as_str().replace('_', " "));
                self.report.recount(Kind::Erased, name, None, text);
                self.ledger.record_erased(name, version, why);
            }
            Outcome::TooLarge(bytes) => {
                let uid = self.ledger.entry(name).and_then(|entry| entry.uid());
                self.report.too_large(name, uid, bytes);
                // A gate before it is opened in time all the same.
                if self.ledger.entry(name).is_some_and(|entry| entry.line.is_gated()) {
                    let again = Instant::now() + self.config.retry_slowly;
                    self.ledger.put_off(name, again, Urgency::Restore);
                } else {
                    self.ledger.hold(name);
                }
            }
            Outcome::WouldHave(what) => {
                let uid = self.uid(name);
                info!(node = %name, uid, plan = what, "dry run: this would be done");
                self.ledger.hold(name);
            }
            Outcome::Idle
            | Outcome::Braked
            | Outcome::Overtaken(_)
            | Outcome::Untold(_)
            | Outcome::PastUnreadable(..)
            | Outcome::Failed(..) => {}
        }
    }

    /// What happened to a node cannot be read, whoever is asked. After a while that is taken for history that is gone: a node that
    /// is back does not wait for ever.
    fn past_unreadable(&mut self, name: &Name, uid: Uuid, error: &ApiError, now: Timestamp) {
        let (since, tries) = self.unreadable_pasts.entry(uid).or_insert((Instant::now(), 0));
        *tries += 1;
        if *tries < AT_FIRST || since.elapsed() < PATIENCE * self.config.retry_slowly {
            self.failed(name, error, Doubt::None, Urgency::Restore);
            return;
        }
        self.api.cluster().metrics().error(error.kind());
        warn!(node = %name, %uid, %error, "the API server cannot tell how this node ended: what is recorded counts");
        self.unreadable_pasts.remove(&uid);
        self.ledger.succeeded(name);
        // The machine of an end that is known, or the end itself.
        let read =
            self.ledger.entry(name).is_some_and(|entry| entry.line.ends.iter().any(|end| end.uid == uid));
        self.take(name, if read { Outcome::EndRead(uid, None) } else { Outcome::Lost(uid) }, now, 0);
    }

    /// Puts a line off after a failure, but for what is more urgent, and has whatever is in doubt read again.
    fn failed(&mut self, name: &Name, error: &ApiError, doubt: Doubt, at_most: Urgency) {
        self.api.cluster().metrics().error(error.kind());
        let slowly = self.config.retry_slowly;
        let uid = self.uid(name);
        let failures = self.ledger.entry_mut(name).failures;
        match doubt {
            Doubt::Record => self.ledger.record_doubted(name),
            Doubt::Node => self.ledger.node_doubted(name),
            Doubt::None => {}
        }
        let wait = backoff(failures.saturating_add(1));
        let wait = match error {
            ApiError::Forbidden(_) => {
                self.api.cluster().metrics().forbidden.tell(error);
                // An API server that is just starting refuses what it grants a moment later.
                if failures < AT_FIRST { wait.min(slowly) } else { slowly }
            }
            ApiError::Throttled(Some(asked)) => wait.max(*asked).min(LONGEST),
            _ => wait,
        };
        match error {
            ApiError::Forbidden(_) => {}
            _ if failures == 4 => {
                warn!(node = %name, uid, %error, "still failing, still trying");
                // Not in the API server's words, which may quote a label's value.
                let text = format!("failed 5 times, still trying: {}", error.kind());
                self.report.recount(Kind::Warning, name, None, text);
            }
            _ => debug!(node = %name, uid, %error, ?wait, "failed, trying again"),
        }
        self.ledger.put_off(name, Instant::now() + wait, at_most);
    }

    /// The incarnation a log line is about.
    fn uid(&self, name: &Name) -> Option<String> {
        Some(self.ledger.entry(name)?.uid()?.to_string())
    }
}

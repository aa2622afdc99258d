//! Comes into step with the cluster, and stays there: lists, histories, another policy, the passes over everything.

use std::sync::Arc;

use perennial_core::keeper::{Seen, expired};
use perennial_core::policy::Policy;
use perennial_core::record::{State, Version};
use tokio::task::{JoinError, JoinSet};
use tracing::{debug, info, warn};

use super::check::{self, Checked};
use super::spans::Spans;
use super::{Keeper, Streams};

impl Keeper {
    /// Another history: nothing that was seen before counts.
    pub(super) fn begin_anew(&mut self) {
        warn!("the cluster's history is another one (etcd restored?): everything is listed anew");
        self.metrics.histories.inc();
        self.restart();
    }

    /// Lists everything anew.
    fn restart(&mut self) {
        self.ready.unmark();
        self.work.abort_all();
        while self.work.try_join_next().is_some() {}
        self.work = JoinSet::new();
        self.workers.clear();
        self.unreadable_pasts.clear();
        self.ledger.reset();
        self.spans = Spans::new(self.config.tracer.clone());
        self.head = 0;
        self.relisted();
        self.streams = Streams::start(&self.api, &self.policy);
    }

    /// Lists everything anew under another policy. What the ledger holds stays: ends that no record has yet
    /// are nowhere else.
    pub(super) fn change_policy(&mut self, policy: Arc<Policy>) {
        info!(digest = %policy.digest(), "the policy changed: everything is looked at anew");
        self.policy = policy;
        self.ledger.judge_anew();
        self.relisted();
        self.streams = Streams::start(&self.api, &self.policy);
    }

    /// Once both lists are complete: judges histories, fetches the contents of closed records, looks at what is not as it should
    /// be.
    pub(super) fn sync(&mut self) {
        if self.checks.is_empty()
            && let Some(suspect) = self.ledger.suspect()
        {
            self.checks.spawn(check::suspect(self.api.clone(), suspect.clone()));
        }
        if !self.synced && self.checks.is_empty() && self.ledger.is_synced() {
            self.ledger.index_machines(self.policy.finds_by_machine());
            // A list says where history stood. Only what claims to be later is to be judged by another answer, for which the API
            // server takes its time: some ten milliseconds of every start.
            if self.listed == self.head && self.ledger.recorded() <= self.head {
                self.judged();
            } else {
                self.checks.spawn(check::head(self.api.clone(), self.head));
            }
        }
    }

    /// A list is complete: whatever was being checked is checked anew.
    pub(super) fn relisted(&mut self) {
        self.synced = false;
        self.checks = JoinSet::new();
    }

    /// The safety net: judges histories and looks at every line again. It reads nothing that agrees.
    pub(super) fn resync(&mut self) {
        if self.synced && self.checks.is_empty() {
            self.checks.spawn(check::head(self.api.clone(), self.head));
        }
    }

    pub(super) fn checked(&mut self, checked: Result<Checked, JoinError>) {
        match checked {
            Ok(Checked::Head(head)) if head < self.head => self.begin_anew(),
            Ok(Checked::Head(head)) => {
                self.judge_histories(head);
                if self.synced {
                    self.look_at_all();
                    let counts = self.ledger.counts();
                    debug!(nodes = counts.nodes, pending = counts.pending, "looked at everything again");
                } else {
                    self.judged();
                }
            }
            Ok(Checked::Closed(page)) => {
                for object in &page.items {
                    if let Some(name) = self.ledger.record_fetched(object) {
                        self.report.unreadable(&name, self.ledger.entry_mut(&name));
                    }
                }
                match page.metadata.next.filter(|next| !next.is_empty()) {
                    None => self.in_step(),
                    next => {
                        self.checks.spawn(check::closed(self.api.clone(), next));
                    }
                }
            }
            Ok(Checked::ClosedLater) => self.in_step(),
            Ok(Checked::Suspected(true)) => self.begin_anew(),
            Ok(Checked::Suspected(false)) => {
                debug!("an answer was older than it should be");
                self.ledger.clear_suspect();
            }
            Err(error) => {
                tracing::error!(%error, "a check panicked: it is made again");
                self.api.cluster().metrics().error("panic");
            }
        }
    }

    /// Histories are judged: what is left to read is what restores are made of.
    fn judged(&mut self) {
        if self.ledger.counts().absent == 0 {
            self.in_step();
        } else {
            self.checks.spawn(check::closed(self.api.clone(), None));
        }
    }

    fn in_step(&mut self) {
        self.synced = true;
        // Most were looked at when the second of node and record was listed.
        for name in self.ledger.not_current() {
            self.look(&name);
        }
        self.records = self.ledger.counts().records;
        info!(nodes = self.ledger.counts().nodes, records = self.records, "in step with the cluster");
        self.ready.mark();
        self.membership.announce();
    }

    fn judge_histories(&mut self, head: Version) {
        self.head = head;
        let foreign = self.ledger.judge_histories(head);
        if foreign.is_empty() {
            return;
        }
        warn!(
            records = foreign.len(),
            "records were written in another history: their versions do not count"
        );
        for name in foreign {
            self.look(&name);
        }
    }

    /// Marks what lies beyond the cap, and looks at whatever may be due for removal.
    pub(super) fn collect(&mut self) {
        if !self.synced {
            return;
        }
        self.records = self.ledger.counts().records;
        let now = self.now();
        let (mut closed, mut due) = (Vec::new(), Vec::new());
        for (name, entry) in self.ledger.spent() {
            let Some(summary) = entry.seen().and_then(Seen::summary) else { continue };
            if summary.state == State::Closed {
                closed.push((summary.since, name.clone(), entry.line.over_cap));
            }
            if expired(&summary, &self.policy, now).is_some() {
                due.push(name.clone());
            }
        }
        closed.sort();
        let over = closed.len().saturating_sub(self.policy.max_absent());
        for (place, (_, name, was_over)) in closed.into_iter().enumerate() {
            let is_over = place < over;
            if is_over || was_over {
                self.ledger.entry_mut(&name).line.over_cap = is_over;
                due.push(name);
            }
        }
        for name in due {
            self.look(&name);
        }
    }
}

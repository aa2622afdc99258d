//! Carries out one plan for one node, and says what came of it.

use std::sync::Arc;

use jiff::SignedDuration;
use perennial_core::keeper::{End, Erasure, Mark, Patch, Plan, Seen, Write};
use perennial_core::kept::Digest;
use perennial_core::policy::Policy;
use perennial_core::record::{Record, State, Summary, TooLarge, Version};
use serde_json::json;
use tracing::{debug, warn};
use uuid::Uuid;

use super::api::Api;
use super::brake::Brake;
use super::ledger::Name;
use super::object::{NodeObject, RecordObject};
use super::prove::{machine_at_end, prove};
use crate::cluster::{ApiError, Chosen};

/// What came of a plan. Whatever was read or written is folded into the line, which is then decided again.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// The node as it is, or the version at which there was none.
    Node(Result<NodeObject, Version>),
    /// The record as it is, or a version at which there was none.
    Record(Result<RecordObject, Version>),
    /// An end, from history.
    Proved(End),
    /// History does not tell the end of this incarnation.
    Lost(Uuid),
    /// The API server cannot tell how this incarnation ended though it answers otherwise, and says why not.
    PastUnreadable(Uuid, ApiError),
    /// The `providerID` that this incarnation had at its end, as far as history tells.
    EndRead(Uuid, Option<String>),
    /// The record was written.
    Wrote {
        /// Its metadata as they are now.
        object: RecordObject,
        /// With what.
        write: Box<Write>,
        /// What it was, by name.
        transition: &'static str,
        /// There was none before.
        created: bool,
        /// It holds something else than the one before it.
        news: bool,
        /// It is open now, and the node's status could not be made to say so.
        untold: bool,
    },
    /// The node was patched.
    Patched {
        /// As it is now.
        node: NodeObject,
        /// It was Ready by then.
        ready: bool,
        /// With what.
        patch: Box<Patch>,
    },
    /// The status of this incarnation says that it has its own.
    Told(Uuid),
    /// It could not be made to say so.
    Untold(ApiError),
    /// Somebody was faster; this is what is there now.
    Overtaken(Box<Outcome>),
    /// There was nothing to do.
    Idle,
    /// An unreadable record's bytes are safe.
    SetAside,
    /// The record of this version is gone.
    Erased(Erasure, Version),
    /// The brake is on.
    Braked,
    /// The record would not fit.
    TooLarge(usize),
    /// Dry run: this would have been done.
    WouldHave(&'static str),
    /// It failed. Where it may have happened all the same, what is known has to be read again.
    Failed(ApiError, Doubt),
}

impl Outcome {
    /// As spans spell it.
    pub(crate) fn as_str(&self) -> &'static str {
        match self {
            Self::Node(_) => "read_node",
            Self::Record(_) => "read_record",
            Self::Proved(_) => "proved",
            Self::Lost(_) => "lost",
            Self::PastUnreadable(..) => "past_unreadable",
            Self::EndRead(..) => "read_end",
            Self::Wrote { .. } => "wrote",
            Self::Patched { .. } => "patched",
            Self::Told(_) => "told",
            Self::Untold(_) => "untold",
            Self::Overtaken(_) => "overtaken",
            Self::Idle => "idle",
            Self::SetAside => "set_aside",
            Self::Erased(..) => "erased",
            Self::Braked => "braked",
            Self::TooLarge(_) => "too_large",
            Self::WouldHave(_) => "would_have",
            Self::Failed(..) => "failed",
        }
    }
}

/// What has to be read again after a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Doubt {
    /// Nothing.
    None,
    /// The record.
    Record,
    /// The node.
    Node,
}

/// What every plan is carried out with.
#[derive(Clone)]
pub(crate) struct Apply {
    pub(crate) api: Api,
    pub(crate) brake: Arc<Brake>,
    pub(crate) policy: Arc<Policy>,
    pub(crate) dry_run: bool,
    /// Nodes are told in their status that they have their own.
    pub(crate) condition: bool,
    /// How many records there are, for the brake's share.
    pub(crate) records: usize,
    /// How long the brake, once on, is not asked again.
    pub(crate) ask_again: SignedDuration,
}

impl Apply {
    /// Carries out `plan`. `seen` is the record it was decided on, which every write is conditioned on.
    pub(crate) async fn carry_out(self, name: &Name, plan: Plan, seen: Option<Seen>) -> Outcome {
        if self.dry_run && writes(&plan) {
            return Outcome::WouldHave(plan.as_str());
        }
        let transition = plan.as_str();
        let over = seen.is_some();
        let doubt = match &plan {
            Plan::Patch(_) => Doubt::Node,
            plan if writes(plan) => Doubt::Record,
            _ => Doubt::None,
        };
        let result = match plan {
            Plan::Rest(_) | Plan::Wait { .. } => return Outcome::Idle,
            Plan::ReadRecord => self.api.read_record(name).await.map(Outcome::Record),
            Plan::ReadNode => self.api.read_node(name).await.map(Outcome::Node),
            Plan::Prove { uid, from, to } => self.prove(name, uid, from, to).await,
            Plan::ReadEnd { uid, deleted } => {
                let id = machine_at_end(&self.api, name, uid, deleted).await;
                self.of_the_past(uid, id.map(|id| Outcome::EndRead(uid, id))).await
            }
            Plan::Save(write) | Plan::Close(write) | Plan::Give(write) => {
                self.write(write, transition, seen.as_ref()).await
            }
            Plan::Patch(patch) => self.patch(name, patch).await,
            Plan::Tell { uid, since } => {
                let told = self.api.tell_restored(name, uid, since).await;
                Ok(told.map_or_else(Outcome::Untold, |()| Outcome::Told(uid)))
            }
            Plan::SetAside => self.set_aside(name, seen.as_ref()).await,
            Plan::Erase(why) => self.erase(name, why, seen.as_ref()).await,
        };
        match result {
            Ok(outcome) => outcome,
            // Where there was no record to write over, what is not found is the namespace.
            Err(ApiError::NotFound) if doubt == Doubt::Record && !over => {
                Outcome::Failed(ApiError::NotFound, Doubt::None)
            }
            Err(ApiError::Conflict(_) | ApiError::NotFound) => self.overtaken(name, doubt).await,
            Err(error) => {
                let doubt = if error.may_have_happened() { doubt } else { Doubt::None };
                Outcome::Failed(error, doubt)
            }
        }
    }

    /// Somebody was faster: what they wrote decides, so it is read at once.
    async fn overtaken(&self, name: &Name, doubt: Doubt) -> Outcome {
        let read = match doubt {
            Doubt::Node => self.api.read_node(name).await.map(Outcome::Node),
            Doubt::Record | Doubt::None => self.api.read_record(name).await.map(Outcome::Record),
        };
        match read {
            Ok(outcome) => Outcome::Overtaken(Box::new(outcome)),
            Err(error) => Outcome::Failed(error, Doubt::None),
        }
    }

    async fn prove(&self, name: &Name, uid: Uuid, from: Version, to: Version) -> Result<Outcome, ApiError> {
        let end = prove(&self.api, &self.policy, name, uid, from, to).await;
        self.of_the_past(uid, end.map(|end| end.map_or(Outcome::Lost(uid), Outcome::Proved))).await
    }

    /// What was asked about the past. An API server that cannot read an old version, because its store does not keep them or what
    /// it kept cannot be decoded, fails for good; one that answers nothing else at that moment says nothing about the past.
    async fn of_the_past(&self, uid: Uuid, asked: Result<Outcome, ApiError>) -> Result<Outcome, ApiError> {
        match asked {
            Err(error @ (ApiError::Invalid(_) | ApiError::Server(..) | ApiError::Malformed(_))) => {
                self.api.cluster().head(self.api.nodes(), &Chosen::All).await?;
                Ok(Outcome::PastUnreadable(uid, error))
            }
            asked => asked,
        }
    }

    async fn write(
        &self,
        mut write: Write,
        transition: &'static str,
        seen: Option<&Seen>,
    ) -> Result<Outcome, ApiError> {
        if let Err(TooLarge(bytes)) = write.record.fit() {
            return Ok(Outcome::TooLarge(bytes));
        }
        if write.braked && !self.allowed().await? {
            return Ok(Outcome::Braked);
        }
        let over = seen.map(|seen| (seen.uid, seen.version));
        let before = seen.and_then(Seen::summary);
        let mut untold = false;
        if self.condition && opens(&write.record, before.as_ref()) {
            // First: once the record is open, no other replica looks any more whether it was said.
            let uid = write.record.incarnation.uid;
            match self.api.tell_restored(&write.record.node, uid, self.api.cluster().now()).await {
                // Whoever refuses that shall not keep anything from being recorded. It may be for good, or until what was
                // granted just now is known everywhere: this replica says it again.
                Err(error @ (ApiError::Forbidden(_) | ApiError::Invalid(_))) => {
                    warn!(node = write.record.node, %error, "the condition cannot be set, trying again");
                    untold = true;
                }
                told => told?,
            }
        }
        let news = before.map(|summary| summary.digest) != Some(write.record.kept.digest());
        let object = self.api.write_record(&write.record, over).await?;
        let created = over.is_none();
        Ok(Outcome::Wrote { object, write: Box::new(write), transition, created, news, untold })
    }

    async fn patch(&self, name: &Name, patch: Box<Patch>) -> Result<Outcome, ApiError> {
        let (node, ready) = self.api.patch_node(name, &patch).await?;
        if self.condition && patch.mark != Mark::None {
            // As soon as may be. Should this fail, it is said when the record is opened.
            if let Err(error) = self.api.tell_restored(name, patch.uid, self.api.cluster().now()).await {
                debug!(node = %name, %error, "the condition is set later");
            }
        }
        Ok(Outcome::Patched { node, ready, patch })
    }

    /// Copies the bytes of an unreadable record into a ConfigMap of its own, named by what is in it.
    async fn set_aside(&self, name: &Name, seen: Option<&Seen>) -> Result<Outcome, ApiError> {
        let object = match self.api.read_record(name).await? {
            Ok(object) if Some(object.metadata.resource_version) == seen.map(|seen| seen.version) => object,
            changed => return Ok(Outcome::Record(changed)),
        };
        let content = json!({ "data": object.data, "binaryData": object.binary_data });
        let digest = Digest::of(format!("{name}\n{content}").as_bytes());
        let aside = format!("node-record-aside.{digest}");
        let body = json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": aside,
                "labels": { "app.kubernetes.io/managed-by": "perennial" },
                "annotations": { "perennial.dev/node": &**name },
            },
            "data": object.data,
            "binaryData": object.binary_data,
        });
        match self.api.write_config_map::<serde::de::IgnoredAny>(&aside, &body, false).await {
            // The same bytes are safe already.
            Ok(_) | Err(ApiError::Conflict(_)) => Ok(Outcome::SetAside),
            Err(error) => Err(error),
        }
    }

    async fn erase(&self, name: &Name, why: Erasure, seen: Option<&Seen>) -> Result<Outcome, ApiError> {
        let Some(seen) = seen else { return Ok(Outcome::Idle) };
        if why.is_braked() && !self.allowed().await? {
            return Ok(Outcome::Braked);
        }
        self.api.erase_record(name, seen).await?;
        Ok(Outcome::Erased(why, seen.version))
    }

    async fn allowed(&self) -> Result<bool, ApiError> {
        let limit = self.policy.brake().limit(self.records);
        self.brake.allows(&self.api, limit, self.api.cluster().now(), self.ask_again).await
    }
}

/// Whether the record begins to follow this life: it has all its own.
fn opens(record: &Record, before: Option<&Summary>) -> bool {
    let followed = |before: &Summary| before.state == State::Open && before.uid == record.incarnation.uid;
    record.state == State::Open && !before.is_some_and(followed)
}

/// Whether a plan changes anything in the cluster.
fn writes(plan: &Plan) -> bool {
    match plan {
        Plan::Save(_)
        | Plan::Close(_)
        | Plan::Give(_)
        | Plan::Patch(_)
        | Plan::Tell { .. }
        | Plan::SetAside
        | Plan::Erase(_) => true,
        Plan::Rest(_)
        | Plan::Wait { .. }
        | Plan::ReadRecord
        | Plan::ReadNode
        | Plan::Prove { .. }
        | Plan::ReadEnd { .. } => false,
    }
}

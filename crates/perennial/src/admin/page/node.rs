//! One node, when a person opens it: what is on it against what is recorded, read from the API server at that moment.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::StatusCode;
use jiff::Timestamp;
use perennial_core::keeper::compare::{Kind, Row, compare};
use perennial_core::keeper::{Body, Mark};
use perennial_core::kept::{Content, Kept};
use perennial_core::policy::Policy;
use perennial_core::ranks;
use perennial_core::record::Record;
use serde_json::{Value, json};
use tokio::sync::{Semaphore, watch};
use tokio::time::Instant;

use super::{RosterSlot, Sources};
use crate::keeper::Window;
use crate::keeper::api::Api;
use crate::keeper::window::LineView;
use crate::members::Role;

/// How many nodes are read at once, and how many in a second: each costs the API server two small reads.
const AT_ONCE: usize = 4;
const PER_SECOND: u32 = 10;
/// How long the keeper and the API server may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    NoSuchNode,
    TooMany,
    NotNow,
    Unread,
}

impl Refused {
    pub(super) fn status(self) -> StatusCode {
        match self {
            Self::NoSuchNode => StatusCode::NOT_FOUND,
            Self::TooMany => StatusCode::TOO_MANY_REQUESTS,
            Self::NotNow => StatusCode::SERVICE_UNAVAILABLE,
            Self::Unread => StatusCode::BAD_GATEWAY,
        }
    }

    pub(super) fn words(self) -> &'static str {
        match self {
            Self::NoSuchNode => "the ledger has no node of this name",
            Self::TooMany => "too many nodes are being looked at: try again in a moment",
            Self::NotNow => "the keeper does not answer: try again in a moment",
            Self::Unread => "the API server does not answer: try again in a moment",
        }
    }
}

/// Where one node is looked at. It can only read.
pub(super) struct Desk {
    window: Window,
    api: Api,
    roster: RosterSlot,
    policy: watch::Receiver<Arc<Policy>>,
    values: bool,
    room: Semaphore,
    /// How many were read in the second that began then.
    rate: Mutex<(Instant, u32)>,
}

impl Desk {
    pub(super) fn new(window: Window, api: Api, sources: &Sources) -> Self {
        Self {
            window,
            api,
            roster: sources.roster.clone(),
            policy: sources.policy.clone(),
            values: sources.config.values,
            room: Semaphore::new(AT_ONCE),
            rate: Mutex::new((Instant::now(), 0)),
        }
    }

    /// The node as JSON. Only nodes that the ledger has are read.
    pub(super) async fn look(&self, name: &str) -> Result<String, Refused> {
        let _room = self.room.try_acquire().map_err(|_| Refused::TooMany)?;
        if !self.in_time() {
            return Err(Refused::TooMany);
        }
        let line = tokio::time::timeout(PATIENCE, self.window.line(name)).await.ok().flatten();
        let line = line.ok_or(Refused::NotNow)?.ok_or(Refused::NoSuchNode)?;
        let reads = async { tokio::join!(self.api.read_node(name), self.api.read_record(name)) };
        let (node, record) = tokio::time::timeout(PATIENCE, reads).await.map_err(|_| Refused::Unread)?;
        let (node, record) = (node.map_err(|_| Refused::Unread)?, record.map_err(|_| Refused::Unread)?);
        let policy = self.policy.borrow().clone();
        let live =
            node.ok().map(|node| node.into_live(self.api.installation(), &policy, self.api.cluster().now()));
        let body = record.ok().map(|object| object.whole(name, self.api.seals()).body);
        let recorded = match &body {
            Some(Body::Whole(record)) => Some(&**record),
            _ => None,
        };
        let content = live.as_ref().and_then(|live| live.content.as_ref());
        let view = json!({
            "name": name,
            "line": told(&line),
            "live": live.as_ref().map(|live| json!({
                "uid": live.uid,
                "created": live.created.as_millisecond(),
                "terminating": live.terminating,
                "restored": live.mark != Mark::None,
            })),
            "record": body.as_ref().map(about),
            "labels": labels(content, recorded, &policy, self.values),
            "others": others(content, recorded, &policy),
            "first": self.first(name),
        });
        Ok(view.to_string())
    }

    /// Counts one more, unless this second has had its share.
    fn in_time(&self) -> bool {
        let mut rate = self.rate.lock().unwrap_or_else(PoisonError::into_inner);
        if rate.0.elapsed() >= Duration::from_secs(1) {
            *rate = (Instant::now(), 0);
        }
        rate.1 += 1;
        rate.1 <= PER_SECOND
    }

    /// Who comes first for this node.
    fn first(&self, name: &str) -> Option<String> {
        let roster = self.roster.get()?.borrow().clone();
        let keepers = roster.members().iter().filter(|member| member.roles.contains(&Role::Capture));
        let keepers: Vec<&str> = keepers.map(|member| member.name.as_str()).collect();
        let at = ranks::shares(&keepers, [name]).iter().position(|share| *share == 1)?;
        Some(keepers[at].to_owned())
    }
}

fn told(line: &LineView) -> Value {
    let LineView { cell, why, failures, pending_seconds } = line;
    json!({ "state": cell.as_str(), "why": why, "failures": failures, "pendingSeconds": pending_seconds })
}

/// The record without its content.
fn about(body: &Body) -> Value {
    let record = match body {
        Body::Whole(record) => record,
        Body::Newer => return json!({ "broken": "written by a newer perennial" }),
        // Not why: that may quote what is in it.
        _ => return json!({ "broken": "it cannot be read" }),
    };
    let previous = record.previous.iter().map(|previous| {
        json!({ "at": previous.captured_at.as_millisecond(), "labels": previous.kept.labels.len() })
    });
    json!({
        "state": record.state.as_str(),
        "uid": record.incarnation.uid,
        "sequence": record.sequence,
        "captured": record.captured_at.as_millisecond(),
        "deleted": record.deleted_at.map(Timestamp::as_millisecond),
        "given": record.given,
        "paused": record.paused,
        "unproved": record.unproved.is_some(),
        "previous": previous.collect::<Vec<_>>(),
    })
}

/// Each label: on the node, in the record, and how the two compare. Values only where they may be shown.
fn labels(live: Option<&Content>, record: Option<&Record>, policy: &Policy, values: bool) -> Vec<Value> {
    let shown = |value: Option<String>| value.map(|value| if values { json!(value) } else { json!(true) });
    let rows = compare(live, record, policy).into_iter().filter(|row| row.kind == Kind::Label);
    rows.map(|Row { kind: _, key, recorded, live, how }| {
        json!({ "key": key, "live": shown(live), "record": shown(recorded), "how": how.as_str() })
    })
    .collect()
}

/// What else is kept, in numbers.
fn others(live: Option<&Content>, record: Option<&Record>, policy: &Policy) -> Value {
    let recorded = record.map(Record::labels);
    let kept = |live: &Content| Some(policy.rule_for(&live.labels, recorded.as_deref())?.keep(live));
    let live = live.map(|live| kept(live).unwrap_or_default());
    let count = |kept: &Kept| json!({ "annotations": kept.annotations.len(), "taints": kept.taints.len(), "cordoned": kept.unschedulable });
    json!({ "live": live.as_ref().map(count), "record": record.map(|record| count(&record.kept)) })
}

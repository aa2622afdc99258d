//! The brake: what shrinks or erases records without a person's hand stops beyond a day's allowance.
//!
//! The count is kept in a ConfigMap, so that it holds over all replicas and restarts. Once the allowance is
//! spent the brake stays on until somebody confirms, by annotating that ConfigMap.

use std::sync::atomic::{AtomicBool, Ordering};

use jiff::{SignedDuration, Timestamp};
use perennial_core::kept::Pairs;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::Mutex;
use tracing::{error, info};

use super::api::Api;
use crate::cluster::ApiError;

/// The ConfigMap that keeps the count.
pub(crate) const NAME: &str = "perennial-brake";
/// The annotation by which a person confirms: it releases the brake for another day's allowance.
pub(crate) const CONFIRM: &str = "perennial.dev/confirm";
const KEY: &str = "brake.json";
/// How many are reserved at once. What a dying replica had reserved counts as spent.
const CHUNK: usize = 10;
/// How often other replicas may be faster before it is tried again later.
const OVERTAKEN: u32 = 10;
const DAY: SignedDuration = SignedDuration::from_hours(24);

/// What the ConfigMap holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Count {
    /// When the day began.
    since: Timestamp,
    /// How much of it is spent.
    spent: usize,
    /// The allowance ran out, and nobody has confirmed yet.
    engaged: bool,
}

/// This replica's hand on the brake.
#[derive(Debug, Default)]
pub(crate) struct Brake {
    reserved: Mutex<Reserved>,
    /// What the last question was answered with.
    engaged: AtomicBool,
}

#[derive(Debug, Default)]
struct Reserved {
    left: usize,
    /// It was on, and is not asked again before this time.
    on_until: Option<Timestamp>,
}

#[derive(Debug, Deserialize)]
struct Stored {
    metadata: StoredMeta,
    #[serde(default)]
    data: Option<Pairs>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct StoredMeta {
    resource_version: String,
    #[serde(default)]
    annotations: Option<Pairs>,
}

impl Brake {
    /// Asks to shrink or erase one record, under a day's allowance of `limit`. False: the brake is on.
    /// Whoever is told so may be told the same until `ask_again` has passed, without another call.
    pub(crate) async fn allows(
        &self,
        api: &Api,
        limit: usize,
        now: Timestamp,
        ask_again: SignedDuration,
    ) -> Result<bool, ApiError> {
        let mut reserved = self.reserved.lock().await;
        if reserved.on_until.is_some_and(|until| now < until) {
            return Ok(false);
        }
        if reserved.left == 0 {
            reserved.left = reserve(api, limit, now).await?;
            self.engaged.store(reserved.left == 0, Ordering::Relaxed);
            reserved.on_until = (reserved.left == 0).then_some(now + ask_again);
        }
        if reserved.left == 0 {
            return Ok(false);
        }
        reserved.left -= 1;
        Ok(true)
    }

    /// Whether it is on, as far as this replica had to ask.
    pub(crate) fn is_engaged(&self) -> bool {
        self.engaged.load(Ordering::Relaxed)
    }
}

/// Reserves some of the allowance; 0 if the brake is on.
async fn reserve(api: &Api, limit: usize, now: Timestamp) -> Result<usize, ApiError> {
    let mut overtaken = 0;
    loop {
        let stored: Option<Stored> = api.read_config_map(NAME).await?;
        let confirmed = stored.as_ref().is_some_and(is_confirmed);
        let before = stored.as_ref().and_then(|stored| stored.data.as_ref()?.get(KEY));
        // A count that cannot be read counts as spent: a person has to look.
        let before = before.map(|text| {
            serde_json::from_str(text).unwrap_or(Count { since: now, spent: limit, engaged: true })
        });
        let (after, granted) = spend(before.clone(), confirmed, limit, now);
        if before.as_ref() == Some(&after) && !confirmed {
            return Ok(granted);
        }
        let version = stored.as_ref().map(|stored| stored.metadata.resource_version.as_str());
        let replace = version.is_some();
        match api.write_config_map::<serde::de::IgnoredAny>(NAME, &body(&after, version), replace).await {
            Ok(_) => {}
            Err(ApiError::Conflict(_)) if overtaken < OVERTAKEN => {
                overtaken += 1;
                continue;
            }
            Err(error) => return Err(error),
        }
        let was_engaged = before.is_some_and(|before| before.engaged);
        if after.engaged && !was_engaged {
            error!(
                limit,
                "the brake is on: nothing more is erased or shrunk until somebody confirms with \
                 `kubectl -n {} annotate configmap {NAME} {CONFIRM}=yes`",
                api.namespace()
            );
        }
        if was_engaged && !after.engaged {
            info!(limit, "the brake was released by a person's confirmation");
        }
        return Ok(granted);
    }
}

fn is_confirmed(stored: &Stored) -> bool {
    stored
        .metadata
        .annotations
        .as_ref()
        .and_then(|pairs| pairs.get(CONFIRM))
        .is_some_and(|word| word == "yes")
}

/// The count after asking, and how many were granted.
fn spend(before: Option<Count>, confirmed: bool, limit: usize, now: Timestamp) -> (Count, usize) {
    let fresh = Count { since: now, spent: 0, engaged: false };
    let mut count = match before {
        Some(_) if confirmed => fresh,
        Some(count) if count.engaged => return (count, 0),
        Some(count) if now.duration_since(count.since) < DAY => count,
        _ => fresh,
    };
    let granted = CHUNK.min(limit.saturating_sub(count.spent));
    count.spent += granted;
    count.engaged = granted == 0;
    (count, granted)
}

fn body(count: &Count, version: Option<&str>) -> Value {
    let text = serde_json::to_string(count).unwrap_or_default();
    let mut body = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "name": NAME, "labels": { "app.kubernetes.io/managed-by": "perennial" } },
        "data": { KEY: text },
    });
    if let Some(version) = version {
        body["metadata"]["resourceVersion"] = json!(version);
    }
    body
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(hours: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_hours(hours)
    }

    /// Asks until nothing is granted, and counts.
    fn spend_all(mut count: Option<Count>, limit: usize, now: Timestamp) -> (Count, usize) {
        let mut total = 0;
        loop {
            let (after, granted) = spend(count, false, limit, now);
            if granted == 0 {
                return (after, total);
            }
            total += granted;
            count = Some(after);
        }
    }

    #[test]
    fn a_days_allowance_is_granted_and_not_one_more() {
        for limit in [0, 1, 9, 10, 11, 137] {
            let (count, total) = spend_all(None, limit, at(0));
            assert_eq!((total, count.engaged), (limit, true), "{limit}");
        }
    }

    #[test]
    fn a_new_day_brings_a_new_allowance_unless_the_brake_is_on() {
        let half = Count { since: at(0), spent: 50, engaged: false };
        assert_eq!(spend(Some(half.clone()), false, 50, at(23)).1, 0);
        assert_eq!(spend(Some(half), false, 50, at(25)).1, CHUNK);
        let engaged = Count { since: at(0), spent: 50, engaged: true };
        assert_eq!(spend(Some(engaged), false, 50, at(1000)).1, 0);
    }

    #[test]
    fn a_confirmation_releases_it() {
        let engaged = Count { since: at(0), spent: 50, engaged: true };
        let (count, granted) = spend(Some(engaged), true, 50, at(1));
        assert_eq!((granted, count.spent, count.engaged), (CHUNK, CHUNK, false));
    }
}

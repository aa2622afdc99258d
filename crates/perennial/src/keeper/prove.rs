//! Looks an end up in etcd's history.

use perennial_core::keeper::{Answer, End, Proof, Verdict};
use perennial_core::policy::Policy;
use perennial_core::record::Version;
use uuid::Uuid;

use super::api::Api;
use crate::cluster::ApiError;

/// Proves the end of `uid`, which lived at `from` and was gone at `to`; `None` if history does not tell.
pub(crate) async fn prove(
    api: &Api,
    policy: &Policy,
    name: &str,
    uid: Uuid,
    from: Version,
    to: Version,
) -> Result<Option<End>, ApiError> {
    let mut proof = Proof::new(from, to);
    while let Some(at) = proof.next() {
        let answer = match api.read_node_at(name, at, false).await {
            Ok(Some(node)) if node.metadata.uid == uid => Answer::Alive(node),
            Ok(_) => Answer::Gone,
            Err(ApiError::Expired) => Answer::Expired,
            Err(error) => return Err(error),
        };
        proof.answer(at, answer);
    }
    let Verdict::Proved { last, deleted } = proof.verdict() else { return Ok(None) };
    // The bisection read metadata alone; the machine's identity, taints and cordon are in the whole object.
    let whole = match api.read_node_at(name, deleted - 1, true).await {
        Ok(whole) => whole.filter(|whole| whole.metadata.uid == uid),
        // Taints and cordon that were not read are not gone: rather no proof than a wrong one.
        Err(ApiError::Expired) if policy.needs_spec() => return Ok(None),
        Err(ApiError::Expired) => None,
        Err(error) => return Err(error),
    };
    // A machine that was not read is asked for once more, where it matters.
    Ok(Some(whole.unwrap_or(last).into_end(deleted, api.installation(), policy, api.cluster().now())))
}

/// The `providerID` that `uid` had right before its deletion; `None` where it had none, or history does not tell.
pub(crate) async fn machine_at_end(
    api: &Api,
    name: &str,
    uid: Uuid,
    deleted: Version,
) -> Result<Option<String>, ApiError> {
    match api.read_node_at(name, deleted.saturating_sub(1), true).await {
        Ok(node) => {
            let node = node.filter(|node| node.metadata.uid == uid);
            Ok(node.and_then(|node| node.provider_id().map(str::to_owned)))
        }
        Err(ApiError::Expired) => Ok(None),
        Err(error) => Err(error),
    }
}

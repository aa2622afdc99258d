//! Every call the keeper makes, each with its precondition and its deadline.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderValue, Request};
use jiff::Timestamp;
use kube::api::{DeleteParams, GetParams, ListParams, PatchParams, PostParams, Preconditions, VersionMatch};
use kube::core::request::{Error, Request as Resource};
use perennial_core::keeper::born::{GATE, GATE_EFFECT, STAMP_PREFIX};
use perennial_core::keeper::{Patch, Seen};
use perennial_core::kept::{Pairs, Taint};
use perennial_core::record::{DATA_KEY, Record, SEAL, Seals, Version, record_name};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::{Value, json};
use uuid::Uuid;

use super::object::{NodeObject, PatchedNode, RecordObject};
use crate::cluster::{ApiError, Cluster, ConfigMap, List, PAGE, PROTOBUF};

/// The label that carries a record's state.
pub(crate) const STATE_LABEL: &str = "perennial.dev/state";
/// Asks for an object's metadata alone.
const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
/// The condition of a Node that has its own.
const CONDITION: &str = "perennial.dev/MetadataRestored";

/// The API server, as the keeper uses it.
#[derive(Clone)]
pub(crate) struct Api {
    cluster: Cluster,
    namespace: String,
    installation: String,
    seals: Option<Arc<Seals>>,
    nodes: Resource,
    records: Resource,
}

impl Api {
    pub(crate) fn new(
        cluster: Cluster,
        namespace: &str,
        installation: &str,
        seals: Option<Arc<Seals>>,
    ) -> Self {
        Self {
            cluster,
            namespace: namespace.to_owned(),
            installation: installation.to_owned(),
            seals,
            nodes: Resource::new("/api/v1/nodes"),
            records: Resource::new(format!("/api/v1/namespaces/{namespace}/configmaps")),
        }
    }

    pub(crate) fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    pub(crate) fn nodes(&self) -> &Resource {
        &self.nodes
    }

    pub(crate) fn records(&self) -> &Resource {
        &self.records
    }

    pub(crate) fn namespace(&self) -> &str {
        &self.namespace
    }

    pub(crate) fn installation(&self) -> &str {
        &self.installation
    }

    /// What records are sealed with, where they are.
    pub(crate) fn seals(&self) -> Option<&Seals> {
        self.seals.as_deref()
    }

    /// Reads a Node by name, consistently: the Node, or the version at which there was none.
    pub(crate) async fn read_node(&self, name: &str) -> Result<Result<NodeObject, Version>, ApiError> {
        // A list waits until the API server's cache has caught up with etcd, some ten milliseconds.
        match self.cluster.call(self.nodes.get(name, &GetParams::default())).await {
            Ok(node) => return Ok(Ok(node)),
            // This does not say as of when, and a watch may know better: a list does say.
            Err(ApiError::NotFound) => {}
            Err(error) => return Err(error),
        }
        let list: List<NodeObject> = self.cluster.call(self.nodes.list(&by_name(name))).await?;
        let version = list.metadata.resource_version;
        Ok(list.items.into_iter().find(|node| node.metadata.name == name).ok_or(version))
    }

    /// Reads a Node as it was at a version of the past.
    pub(crate) async fn read_node_at(
        &self,
        name: &str,
        version: Version,
        whole: bool,
    ) -> Result<Option<NodeObject>, ApiError> {
        let params = ListParams {
            resource_version: Some(version.to_string()),
            version_match: Some(VersionMatch::Exact),
            ..by_name(name)
        };
        let request = if whole { self.nodes.list(&params) } else { self.nodes.list_metadata(&params) };
        let list: List<NodeObject> = self.cluster.call(request).await?;
        Ok(list.items.into_iter().find(|node| node.metadata.name == name))
    }

    /// Patches a Node, if it is still the incarnation and the version that was decided on: as it is now, and whether
    /// it is Ready.
    pub(crate) async fn patch_node(&self, name: &str, patch: &Patch) -> Result<(NodeObject, bool), ApiError> {
        let set = |(key, value): (String, String)| (key, Some(value));
        let marked = patch.mark.annotation(&self.installation, patch.uid);
        // A node that bears its mark needs no stamp.
        let stamp = (format!("{STAMP_PREFIX}{}", self.installation), patch.stamp.clone());
        let annotations = patch.annotations.clone().into_iter().chain(marked).map(set).chain([stamp]);
        let mut body = json!({
            "metadata": {
                "uid": patch.uid,
                "resourceVersion": patch.version.to_string(),
                "annotations": annotations.collect::<BTreeMap<_, _>>(),
            },
        });
        if !(patch.labels.is_empty() && patch.unset.is_empty()) {
            let unset = patch.unset.iter().map(|key| (key.clone(), None));
            let labels = patch.labels.clone().into_iter().map(set).chain(unset);
            body["metadata"]["labels"] = json!(labels.collect::<BTreeMap<_, _>>());
        }
        if patch.cordon {
            body["spec"]["unschedulable"] = json!(true);
        }
        if patch.opens || !patch.taints.is_empty() {
            let gate = Taint { key: GATE.to_owned(), effect: GATE_EFFECT.to_owned(), value: String::new() };
            let opened = if patch.opens { &[gate][..] } else { &[] };
            let taints = self.taints_with(name, patch.version, &patch.taints, opened).await?;
            body["spec"]["taints"] = json!(taints);
        }
        let params = PatchParams { field_manager: Some("perennial".to_owned()), ..PatchParams::default() };
        // The cheapest kind of patch (`bench writes`): the others make the API server write and read the whole node as JSON.
        // It merges maps and replaces the list of taints, as they do.
        let patch = kube::api::Patch::Strategic(body);
        let patched = self.cluster.call(self.nodes.patch(name, &params, &patch)).await;
        patched.map(PatchedNode::into_node)
    }

    /// Says in a Node's status that it has its own, if it is still that incarnation.
    pub(crate) async fn tell_restored(
        &self,
        name: &str,
        uid: Uuid,
        since: Timestamp,
    ) -> Result<(), ApiError> {
        let since = since.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let condition = json!({
            "type": CONDITION,
            "status": "True",
            "reason": "Restored",
            "message": "Perennial has given what it remembers of this node, if anything",
            "lastHeartbeatTime": since,
            "lastTransitionTime": since,
        });
        let body = json!({ "metadata": { "uid": uid }, "status": { "conditions": [condition] } });
        let params = PatchParams { field_manager: Some("perennial".to_owned()), ..PatchParams::default() };
        let patch = kube::api::Patch::Strategic(body);
        let request = self.nodes.patch_subresource("status", name, &params, &patch);
        match self.cluster.call::<IgnoredAny>(request).await {
            // It is gone, and whoever bears its name now is another: without a version that is no conflict to the API server.
            Ok(_) | Err(ApiError::NotFound | ApiError::Conflict(_)) => Ok(()),
            Err(ApiError::Invalid(why)) if why.contains("metadata.uid") => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// The taints of a node at this version as they are, to the letter, but without some and with others. A patch
    /// replaces the list, so what others put there (and when) has to be in it; the patch's version makes that exact.
    pub(crate) async fn taints_with(
        &self,
        name: &str,
        version: Version,
        added: &[Taint],
        removed: &[Taint],
    ) -> Result<Vec<Value>, ApiError> {
        let node: Value = self.cluster.call(self.nodes.get(name, &GetParams::default())).await?;
        if node["metadata"]["resourceVersion"] != json!(version.to_string()) {
            return Err(ApiError::Conflict("the node changed".to_owned()));
        }
        let mut taints = node["spec"]["taints"].as_array().cloned().unwrap_or_default();
        for taint in added.iter().chain(removed) {
            taints.retain(|other| other["key"] != taint.key || other["effect"] != taint.effect);
        }
        taints.extend(added.iter().map(|taint| json!(taint)));
        Ok(taints)
    }

    /// Reads a record whole: the record, or a version at which there was none.
    pub(crate) async fn read_record(&self, node: &str) -> Result<Result<RecordObject, Version>, ApiError> {
        let name = record_name(node);
        if let Some(object) = self.read_config_map(&name).await? {
            return Ok(Ok(object));
        }
        // As with nodes.
        let list: List<RecordObject> = self.cluster.call(self.records.list(&by_name(&name))).await?;
        let version = list.metadata.resource_version;
        Ok(list.items.into_iter().find(|object| object.metadata.name == name).ok_or(version))
    }

    /// Reads any ConfigMap of the keeper's namespace.
    pub(crate) async fn read_config_map<T: DeserializeOwned>(
        &self,
        name: &str,
    ) -> Result<Option<T>, ApiError> {
        match self.cluster.call(self.records.get(name, &GetParams::default())).await {
            Ok(object) => Ok(Some(object)),
            Err(ApiError::NotFound) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes a record over the one that was seen, or where there was none. Its metadata come back: what it holds is known.
    pub(crate) async fn write_record(
        &self,
        record: &Record,
        over: Option<(Uuid, Version)>,
    ) -> Result<RecordObject, ApiError> {
        let name = record_name(&record.node);
        let text = record.to_json();
        let mut annotations = record.annotations();
        if let Some(seals) = &self.seals {
            annotations.insert(SEAL.to_owned(), seals.seal(&record.node, &text));
        }
        let labels = Pairs::from([
            ("app.kubernetes.io/managed-by".to_owned(), "perennial".to_owned()),
            (STATE_LABEL.to_owned(), record.state.as_str().to_owned()),
        ]);
        let data = Pairs::from([(DATA_KEY.to_owned(), text)]);
        let map = ConfigMap::new(&self.namespace, &name, labels, annotations, data);
        let map = match over {
            Some((uid, version)) => map.over(uid, version),
            None => map,
        };
        let request = self.config_map_written(&name, map.to_body(), over.is_some());
        let request = request.map(|mut request| {
            let headers = request.headers_mut();
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(PROTOBUF));
            headers.insert(ACCEPT, HeaderValue::from_static(METADATA));
            request
        });
        self.cluster.call(request).await
    }

    /// Creates a ConfigMap, or replaces one whose version is in the body.
    pub(crate) async fn write_config_map<T: DeserializeOwned>(
        &self,
        name: &str,
        body: &Value,
        replace: bool,
    ) -> Result<T, ApiError> {
        self.cluster.call(self.config_map_written(name, body.to_string().into_bytes(), replace)).await
    }

    fn config_map_written(
        &self,
        name: &str,
        body: Vec<u8>,
        replace: bool,
    ) -> Result<Request<Vec<u8>>, Error> {
        let params = PostParams { field_manager: Some("perennial".to_owned()), ..PostParams::default() };
        if replace { self.records.replace(name, &params, body) } else { self.records.create(&params, body) }
    }

    /// Removes a record, if it is still the one that was seen.
    pub(crate) async fn erase_record(&self, node: &str, seen: &Seen) -> Result<(), ApiError> {
        let preconditions = Preconditions {
            uid: Some(seen.uid.to_string()),
            resource_version: Some(seen.version.to_string()),
        };
        let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
        let _: IgnoredAny = self.cluster.call(self.records.delete(&record_name(node), &params)).await?;
        Ok(())
    }

    /// One page of the closed records, with their content.
    pub(crate) async fn closed_records(&self, next: Option<String>) -> Result<List<RecordObject>, ApiError> {
        let params = ListParams {
            label_selector: Some(format!("{STATE_LABEL}=closed")),
            limit: Some(PAGE),
            continue_token: next,
            ..ListParams::default()
        };
        self.cluster.call(self.records.list(&params)).await
    }
}

fn by_name(name: &str) -> ListParams {
    ListParams { field_selector: Some(format!("metadata.name={name}")), ..ListParams::default() }
}

//! The `Listing` custom resource, as typed by whoever owns it.
//!
//! The schema in `deploy/crds` is made from these types, and refuses most mistakes where they are made. What a schema
//! cannot say is checked by [`super::order`], and told by the Listing's status.

#![allow(unreachable_pub, reason = "derived schemas repeat these types inside functions")]
#![allow(clippy::duplicated_attributes, reason = "columns of a table have types, often the same")]

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::destination::CannedAcl;

/// What is published of a Service's endpoints: where to, how, and when not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "perennial.dev",
    version = "v1alpha1",
    kind = "Listing",
    namespaced,
    status = "ListingStatus",
    category = "perennial",
    doc = "A page that lists the endpoints of a Service, published whenever they change",
    printcolumn(name = "Service", type_ = "string", json_path = ".spec.service"),
    printcolumn(name = "Endpoints", type_ = "integer", json_path = ".status.endpoints"),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].status"
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].reason"
    ),
    printcolumn(name = "Published", type_ = "date", json_path = ".status.lastPublished"),
    printcolumn(name = "Digest", type_ = "string", json_path = ".status.digest", priority = 1),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct ListingSpec {
    /// The Service whose endpoints are listed, in the Listing's own namespace.
    #[schemars(length(min = 1, max = 63))]
    pub service: String,
    /// Which endpoints: those that are `ready`, those that are `serving` (also while they terminate), or `all`.
    #[serde(default)]
    pub endpoints: Which,
    /// What the page looks like. Without one it is a plain page that is made for people.
    #[serde(default)]
    pub template: TemplateSpec,
    /// Where the page is published. Without any it is only served by Perennial itself.
    #[serde(default)]
    #[schemars(length(max = 8))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub destinations: Vec<DestinationSpec>,
    /// How often it may be published.
    #[serde(default)]
    pub pace: PaceSpec,
    /// What is not published without a person's consent.
    #[serde(default)]
    pub guards: GuardsSpec,
}

/// Which endpoints are listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Which {
    /// Those that are ready for traffic.
    #[default]
    Ready,
    /// Those that serve, also while they terminate.
    Serving,
    /// Every one.
    All,
}

/// What a page is written in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Written {
    /// HTML: values are escaped for it.
    #[default]
    Html,
    /// JSON: values are written as JSON.
    Json,
    /// Plain text: nothing is escaped.
    Text,
}

/// What the page looks like.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("!(has(self.inline) && has(self.configMap))")
    .message("give the template inline or from a configMap, not both"))]
pub struct TemplateSpec {
    /// What it is written in: how values are escaped, and what it is served as.
    #[serde(default)]
    pub format: Written,
    /// The template itself, in the syntax of Jinja.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 65_536))]
    pub inline: Option<String>,
    /// A ConfigMap of the same namespace that holds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_map: Option<KeyRef>,
    /// What it is served as, where the format's own content type does not fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 255))]
    pub content_type: Option<String>,
}

/// A key of a ConfigMap in the Listing's own namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KeyRef {
    /// The ConfigMap.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// The key in it.
    #[schemars(length(min = 1, max = 253))]
    pub key: String,
}

/// One place a page is published to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("has(self.s3) != has(self.configMap)")
    .message("a destination is either s3 or configMap"))]
pub struct DestinationSpec {
    /// Its name, for the status.
    #[schemars(length(min = 1, max = 63), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub name: String,
    /// A bucket of any server that speaks S3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub s3: Option<S3Spec>,
    /// A ConfigMap of the same namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_map: Option<ConfigMapSpec>,
}

/// A bucket of any server that speaks S3.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct S3Spec {
    /// The server, such as `https://s3.eu-central-1.amazonaws.com`.
    #[schemars(length(max = 1024), regex(pattern = r"^https?://[^/?#@\s]+/?$"))]
    pub endpoint: String,
    /// The bucket. It has to exist.
    #[schemars(length(min = 3, max = 63))]
    pub bucket: String,
    /// The object.
    #[serde(default = "index_html")]
    #[schemars(length(min = 1, max = 1024))]
    pub key: String,
    /// The region that requests are signed for.
    #[serde(default = "us_east_1")]
    #[schemars(length(min = 1, max = 63))]
    pub region: String,
    /// Whether the bucket stands in the path (most servers) or in the host name (AWS).
    #[serde(default = "yes")]
    pub path_style: bool,
    /// The canned ACL that objects get, such as `public-read`. Without one none is sent: many servers refuse them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acl: Option<CannedAcl>,
    /// How long others may keep it; the current page is asked for anew each time unless this says otherwise.
    #[serde(default = "no_cache")]
    #[schemars(length(max = 255))]
    pub cache_control: String,
    /// Whether writes are conditional, so that a late one cannot replace a newer page. Switch it off only for servers
    /// that refuse conditions.
    #[serde(default = "yes")]
    pub conditional: bool,
    /// The Secret of the same namespace with the credentials.
    pub credentials: CredentialsSpec,
    /// A ConfigMap of the same namespace with the certificates (PEM) that the server's is checked against.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca: Option<KeyRef>,
    /// Former pages, each under a key of its own. Without it only the current page is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history: Option<HistorySpec>,
}

/// Where credentials are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CredentialsSpec {
    /// The Secret.
    #[schemars(length(min = 1, max = 253))]
    pub secret: String,
    /// Its key with the access key's id.
    #[serde(default = "access_key")]
    #[schemars(length(min = 1, max = 253))]
    pub access_key: String,
    /// Its key with the secret part.
    #[serde(default = "secret_key")]
    #[schemars(length(min = 1, max = 253))]
    pub secret_key: String,
    /// Its key with a session token, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub session_token: Option<String>,
}

/// How much of former pages is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HistorySpec {
    /// What their keys begin with.
    #[serde(default = "history")]
    #[schemars(length(min = 1, max = 512))]
    pub prefix: String,
    /// How many are kept.
    #[serde(default = "a_hundred")]
    #[schemars(range(min = 1, max = 10_000))]
    pub keep: u32,
    /// For how long, such as `720h`.
    #[serde(default = "thirty_days")]
    #[schemars(length(max = 32))]
    pub max_age: String,
}

/// A ConfigMap of the same namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigMapSpec {
    /// The ConfigMap. It is made where there is none; one that somebody else made is not touched.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// The key in it.
    #[serde(default = "index_html")]
    #[schemars(length(min = 1, max = 253))]
    pub key: String,
}

/// How often a page may be published.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PaceSpec {
    /// The least time between two publications, and the quiet that is waited for while changes keep coming.
    #[serde(default = "pace_min")]
    #[schemars(length(max = 32))]
    pub min: String,
    /// The longest that a change waits for quiet.
    #[serde(default = "pace_max")]
    #[schemars(length(max = 32))]
    pub max: String,
}

impl Default for PaceSpec {
    fn default() -> Self {
        Self { min: pace_min(), max: pace_max() }
    }
}

/// What is not published without a person's consent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GuardsSpec {
    /// A page with fewer endpoints is held.
    #[serde(default = "one")]
    #[schemars(range(max = 100_000))]
    pub min_endpoints: u32,
    /// A page that lost more than this share of the last one's endpoints is held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 99))]
    pub max_shrink_percent: Option<u8>,
}

impl Default for GuardsSpec {
    fn default() -> Self {
        Self { min_endpoints: one(), max_shrink_percent: None }
    }
}

/// What came of a Listing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListingStatus {
    /// The generation of the spec that this is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// How many endpoints the current page lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoints: Option<u32>,
    /// The current page's digest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// When a page was last published.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub last_published: Option<String>,
    /// `Ready`: every destination has the current page. `Held`: a guard keeps the last good one.
    #[serde(default)]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
    /// Each destination by its name.
    #[serde(default)]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub destinations: Vec<DestinationStatus>,
}

/// What is true of a Listing, as Kubernetes says it everywhere.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// What it is about.
    #[serde(rename = "type")]
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// Why, in one word.
    pub reason: String,
    /// Why, in a sentence.
    pub message: String,
    /// When the status last changed.
    #[schemars(extend("format" = "date-time"))]
    pub last_transition_time: String,
    /// The generation of the spec that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}

/// What came of one destination.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DestinationStatus {
    /// Its name.
    pub name: String,
    /// The digest of the page that is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// When a page was last written there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub last_published: Option<String>,
    /// What is wrong with it, in one word; absent where nothing is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What is wrong with it and what to do, in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

fn index_html() -> String {
    "index.html".to_owned()
}

fn us_east_1() -> String {
    "us-east-1".to_owned()
}

fn no_cache() -> String {
    "no-cache".to_owned()
}

fn access_key() -> String {
    "AWS_ACCESS_KEY_ID".to_owned()
}

fn secret_key() -> String {
    "AWS_SECRET_ACCESS_KEY".to_owned()
}

fn history() -> String {
    "history/".to_owned()
}

fn thirty_days() -> String {
    "720h".to_owned()
}

fn pace_min() -> String {
    "250ms".to_owned()
}

fn pace_max() -> String {
    "1s".to_owned()
}

fn yes() -> bool {
    true
}

fn one() -> u32 {
    1
}

fn a_hundred() -> u32 {
    100
}

#[cfg(test)]
mod tests;

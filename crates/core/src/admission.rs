//! What the API server asks before a Node is created or deleted, and what it is answered, as `admission.k8s.io/v1` spells it.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::keeper::born::{Birth, CONTROL_PLANE, GATE, GATE_EFFECT, STAMP_PREFIX, stamp};
use crate::kept::Pairs;
use crate::policy::syntax::is_subdomain;

const VERSION: &str = "admission.k8s.io/v1";
const KIND: &str = "AdmissionReview";
/// Whoever sets this on a Node deletes it without waiting for its record. The configuration of the webhook knows it too, so
/// that it counts when nobody answers.
pub const BREAK_GLASS: &str = "perennial.dev/delete-unrecorded";

/// What a newborn's annotations may take with its stamp: the API server refuses more than 256 KiB.
const ANNOTATIONS: usize = 192 * 1024;

/// Why a question cannot be answered.
#[derive(Debug, thiserror::Error)]
pub enum Broken {
    /// It is something else.
    #[error("not an AdmissionReview of {VERSION} that asks something: {0}")]
    NotAReview(String),
    /// Its Node is none.
    #[error("the Node in it cannot be read: {0}")]
    Node(String),
}

/// A Node that is about to be created.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comer {
    /// `metadata.name`.
    pub name: String,
    /// `metadata.labels`.
    pub labels: Pairs,
    /// `metadata.annotations`.
    pub annotations: Pairs,
    /// `spec.providerID`.
    pub machine: Option<String>,
    /// The keys of its taints; `None` where it brings no list of them.
    pub taints: Option<Vec<String>>,
    /// The gate is among them.
    pub gated: bool,
    /// It has a `spec`.
    pub specified: bool,
}

impl Comer {
    /// Whether it is to run the control plane itself, as it says.
    #[must_use]
    pub fn is_control_plane(&self) -> bool {
        let mut keys = self.labels.keys().chain(self.taints.iter().flatten());
        keys.any(|key| CONTROL_PLANE.contains(&key.as_str()))
    }
}

/// What is asked about a Node.
#[derive(Debug)]
pub struct Asked<T> {
    /// The question's own name.
    pub uid: String,
    /// Nothing comes of it, whatever is answered.
    pub dry_run: bool,
    /// The Node, where the question is about one at all.
    pub node: Option<T>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Review {
    api_version: String,
    kind: String,
    request: Option<Question>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Question {
    uid: String,
    operation: String,
    resource: Resource,
    #[serde(default)]
    sub_resource: Option<String>,
    #[serde(default)]
    dry_run: Option<bool>,
    #[serde(default)]
    object: Option<Box<RawValue>>,
    #[serde(default)]
    old_object: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
struct Resource {
    #[serde(default)]
    group: String,
    resource: String,
}

/// A Node that has no uid yet.
#[derive(Deserialize)]
struct Newborn {
    metadata: NewbornMeta,
    #[serde(default)]
    spec: Option<NewbornSpec>,
}

#[derive(Deserialize)]
struct NewbornMeta {
    /// One whose name the API server is to make up has none.
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    labels: Option<Pairs>,
    #[serde(default)]
    annotations: Option<Pairs>,
}

#[derive(Deserialize)]
struct NewbornSpec {
    #[serde(rename = "providerID", default)]
    provider_id: Option<String>,
    #[serde(default)]
    taints: Option<Vec<NewbornTaint>>,
}

#[derive(Deserialize)]
struct NewbornTaint {
    key: String,
    #[serde(default)]
    effect: String,
}

/// A Node that is about to be deleted.
#[derive(Deserialize)]
struct Going {
    metadata: GoingMeta,
}

#[derive(Deserialize)]
struct GoingMeta {
    name: String,
    #[serde(default)]
    annotations: Option<Pairs>,
}

impl Asked<Comer> {
    /// Reads what is asked before a Node is created.
    pub fn to_create(body: &[u8]) -> Result<Self, Broken> {
        let question = question(body)?;
        let node: Option<Newborn> = node(&question, "CREATE", question.object.as_deref())?;
        let comer = node.and_then(|Newborn { metadata, spec }| {
            let specified = spec.is_some();
            let (machine, taints) = spec.map(|spec| (spec.provider_id, spec.taints)).unwrap_or_default();
            let is_gate = |taint: &NewbornTaint| taint.key == GATE && taint.effect == GATE_EFFECT;
            Some(Comer {
                name: metadata.name?,
                labels: metadata.labels.unwrap_or_default(),
                annotations: metadata.annotations.unwrap_or_default(),
                machine: machine.filter(|machine| !machine.is_empty()),
                gated: taints.iter().flatten().any(is_gate),
                taints: taints.map(|taints| taints.into_iter().map(|taint| taint.key).collect()),
                specified,
            })
        });
        Ok(question.about(comer))
    }
}

impl Asked<String> {
    /// Reads what is asked before a Node is deleted. One that somebody deletes whatever happens is not asked about.
    pub fn to_delete(body: &[u8]) -> Result<Self, Broken> {
        let question = question(body)?;
        let going: Option<Going> = node(&question, "DELETE", question.old_object.as_deref())?;
        let broken = |going: &Going| {
            going
                .metadata
                .annotations
                .as_ref()
                .is_some_and(|annotations| annotations.contains_key(BREAK_GLASS))
        };
        if let Some(going) = &going
            && !is_subdomain(&going.metadata.name)
        {
            // It is to become part of a path.
            return Err(Broken::Node(format!("{:?} is no name of a Node", going.metadata.name)));
        }
        // Its name alone: anybody may ask, and what it bears is not to be learned from them.
        Ok(question.about(going.filter(|going| !broken(going)).map(|going| going.metadata.name)))
    }
}

impl Question {
    fn about<T>(self, node: Option<T>) -> Asked<T> {
        Asked { uid: self.uid, dry_run: self.dry_run.unwrap_or_default(), node }
    }
}

fn question(body: &[u8]) -> Result<Question, Broken> {
    let review: Review =
        serde_json::from_slice(body).map_err(|error| Broken::NotAReview(error.to_string()))?;
    if (review.api_version.as_str(), review.kind.as_str()) != (VERSION, KIND) {
        return Err(Broken::NotAReview(format!("{} {}", review.api_version, review.kind)));
    }
    review.request.ok_or_else(|| Broken::NotAReview("it has no request".to_owned()))
}

/// The Node of a question about this operation. Anything else is let pass: a configuration that asks too much does no harm.
fn node<T: DeserializeOwned>(
    question: &Question,
    operation: &str,
    object: Option<&RawValue>,
) -> Result<Option<T>, Broken> {
    let Question { resource, sub_resource, .. } = question;
    let whole = sub_resource.as_deref().unwrap_or_default().is_empty();
    let nodes = resource.group.is_empty() && resource.resource == "nodes" && whole;
    if question.operation != operation || !nodes {
        return Ok(None);
    }
    let parse = |raw: &RawValue| serde_json::from_str(raw.get());
    object.map(parse).transpose().map_err(|error| Broken::Node(error.to_string()))
}

/// What is answered.
#[derive(Debug, PartialEq)]
pub enum Answer {
    /// It may happen, as it is.
    Yes,
    /// It may happen, with these changes (a JSON patch).
    With(Vec<Value>),
    /// It must not happen, and this is why.
    No(String),
}

impl Answer {
    /// A newborn is given these labels, and a gate where more is owed to it, and a stamp that says so.
    #[must_use]
    pub fn born(comer: &Comer, birth: &Birth, installation: &str) -> Self {
        let Birth { labels, owed } = birth;
        // A stamp that does not fit would have the registration refused: then all of it follows in the restore.
        let brings: usize = comer.annotations.iter().map(|(key, value)| key.len() + value.len()).sum();
        let fits = brings + stamp(labels, true).len() < ANNOTATIONS;
        let (nothing, owed) = (Pairs::new(), *owed);
        let labels = if fits { labels } else { &nothing };
        let stamp_key = format!("{STAMP_PREFIX}{installation}");
        let mut patch = added("labels", &comer.labels, labels);
        // One that it brings itself is to be opened, too: its kubelet was told to, or it is a copy of another life.
        let gate = owed || comer.gated;
        patch.extend((gate && !comer.gated).then(|| gated(comer)));
        if gate || !labels.is_empty() {
            let stamped = Pairs::from([(stamp_key, stamp(labels, gate))]);
            patch.extend(added("annotations", &comer.annotations, &stamped));
        } else if comer.annotations.contains_key(&stamp_key) {
            // It was copied from a node of another life, with its stamp.
            patch.push(json!({ "op": "remove", "path": path("annotations", &stamp_key) }));
        }
        if patch.is_empty() { Self::Yes } else { Self::With(patch) }
    }

    /// A node is not deleted before it is recorded.
    #[must_use]
    pub fn not_recorded(name: &str) -> Self {
        Self::No(format!(
            "Perennial could not record what is kept of node {name} in time, and would forget it; try again, or delete it \
             all the same: kubectl annotate node {name} {BREAK_GLASS}=true"
        ))
    }

    /// As the API server wants it, for the question of this name.
    #[must_use]
    pub fn to(&self, uid: &str) -> Value {
        let mut response = json!({ "uid": uid, "allowed": !matches!(self, Self::No(_)) });
        match self {
            Self::Yes => {}
            Self::With(patch) => {
                response["patchType"] = json!("JSONPatch");
                response["patch"] = json!(BASE64_STANDARD.encode(json!(patch).to_string()));
            }
            Self::No(why) => response["status"] = json!({ "code": 403, "message": why }),
        }
        json!({ "apiVersion": VERSION, "kind": KIND, "response": response })
    }
}

/// What adds these pairs to those that are there.
fn added(field: &str, there: &Pairs, pairs: &Pairs) -> Vec<Value> {
    if pairs.is_empty() {
        return Vec::new();
    }
    // A map that is empty may be missing.
    if there.is_empty() {
        return vec![json!({ "op": "add", "path": format!("/metadata/{field}"), "value": pairs })];
    }
    let add =
        |(key, value): (&String, &String)| json!({ "op": "add", "path": path(field, key), "value": value });
    pairs.iter().map(add).collect()
}

/// What puts the gate up.
fn gated(comer: &Comer) -> Value {
    let gate = json!({ "key": GATE, "effect": GATE_EFFECT });
    match &comer.taints {
        Some(_) => json!({ "op": "add", "path": "/spec/taints/-", "value": gate }),
        None if comer.specified => json!({ "op": "add", "path": "/spec/taints", "value": [gate] }),
        None => json!({ "op": "add", "path": "/spec", "value": { "taints": [gate] } }),
    }
}

/// Where a key is, as a JSON pointer.
fn path(field: &str, key: &str) -> String {
    format!("/metadata/{field}/{}", key.replace('~', "~0").replace('/', "~1"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs<const N: usize>(pairs: [(&str, &str); N]) -> Pairs {
        pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).into()
    }

    fn review(operation: &str, resource: &str, objects: &Value) -> Vec<u8> {
        let mut request = json!({
            "uid": "u",
            "kind": { "group": "", "version": "v1", "kind": "Node" },
            "resource": { "group": "", "version": "v1", "resource": resource },
            "operation": operation,
            "userInfo": { "username": "system:node:a" },
            "dryRun": false,
        });
        request.as_object_mut().unwrap().extend(objects.as_object().unwrap().clone());
        json!({ "apiVersion": VERSION, "kind": KIND, "request": request }).to_string().into_bytes()
    }

    #[test]
    fn a_newborn_is_read_with_what_it_brings() {
        let node = json!({
            "metadata": { "name": "a", "labels": { "b": "1" }, "annotations": { "c": "2" } },
            "spec": { "providerID": "m1" },
        });
        let asked =
            Asked::to_create(&review("CREATE", "nodes", &json!({ "object": node, "oldObject": null })));
        let asked = asked.unwrap();
        let comer = asked.node.unwrap();
        assert_eq!((asked.uid.as_str(), asked.dry_run, comer.name.as_str()), ("u", false, "a"));
        assert_eq!((comer.labels, comer.annotations), (pairs([("b", "1")]), pairs([("c", "2")])));
        assert_eq!(comer.machine.as_deref(), Some("m1"));
        assert!(!comer.gated);
    }

    #[test]
    fn a_gate_that_it_brings_is_known_by_its_effect_too() {
        for (effect, gated) in [(json!("NoSchedule"), true), (json!("NoExecute"), false)] {
            let taints = json!([{ "key": "a", "effect": "NoSchedule" }, { "key": GATE, "effect": effect }]);
            let node = json!({ "metadata": { "name": "a" }, "spec": { "taints": taints } });
            let asked = Asked::to_create(&review("CREATE", "nodes", &json!({ "object": node }))).unwrap();
            assert_eq!(asked.node.unwrap().gated, gated, "{effect}");
        }
    }

    #[test]
    fn a_newborn_may_bring_nothing() {
        for node in [
            json!({ "metadata": { "name": "a" } }),
            json!({ "metadata": { "name": "a", "labels": null, "annotations": null }, "spec": null }),
            json!({ "metadata": { "name": "a" }, "spec": { "providerID": "" } }),
        ] {
            let asked = Asked::to_create(&review("CREATE", "nodes", &json!({ "object": node }))).unwrap();
            let comer = asked.node.unwrap();
            assert!(comer.labels.is_empty() && comer.annotations.is_empty() && comer.machine.is_none());
        }
    }

    #[test]
    fn whatever_is_no_node_that_comes_is_let_pass() {
        let node = json!({ "object": { "metadata": { "name": "a" } } });
        for body in [
            review("UPDATE", "nodes", &node),
            review("CREATE", "pods", &node),
            review("CREATE", "nodes", &json!({ "object": null })),
            review("CREATE", "nodes", &json!({ "object": { "metadata": { "generateName": "a-" } } })),
            review("CREATE", "nodes", &json!({ "subResource": "status", "object": {} })),
        ] {
            assert!(Asked::to_create(&body).unwrap().node.is_none());
        }
    }

    #[test]
    fn what_is_no_question_is_told_of() {
        let long = format!("{}1{}", "[".repeat(1000), "]".repeat(1000));
        for body in [
            "",
            "null",
            "{}",
            "[]",
            "\u{0}",
            &long,
            r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}"#,
            r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{}}"#,
            r#"{"apiVersion":"admission.k8s.io/v1beta1","kind":"AdmissionReview","request":null}"#,
        ] {
            let broken = Asked::to_create(body.as_bytes()).unwrap_err();
            assert!(matches!(broken, Broken::NotAReview(_)), "{body}: {broken}");
            assert!(matches!(Asked::to_delete(body.as_bytes()), Err(Broken::NotAReview(_))), "{body}");
        }
    }

    #[test]
    fn a_node_that_is_none_is_told_of() {
        for name in ["", "?", "../secrets", "a/b", "A", "a b", "a%2e"] {
            let body = review("DELETE", "nodes", &json!({ "oldObject": { "metadata": { "name": name } } }));
            assert!(matches!(Asked::to_delete(&body), Err(Broken::Node(_))), "{name}");
        }
        for object in [json!({}), json!([]), json!({ "metadata": { "name": 1 } })] {
            let body = review("CREATE", "nodes", &json!({ "object": object }));
            assert!(matches!(Asked::to_create(&body), Err(Broken::Node(_))), "{object}");
            let body = review("DELETE", "nodes", &json!({ "oldObject": object }));
            assert!(matches!(Asked::to_delete(&body), Err(Broken::Node(_))), "{object}");
        }
    }

    #[test]
    fn one_that_goes_is_read_unless_somebody_broke_the_glass() {
        let node = |annotations: Value| {
            let metadata = json!({
                "name": "a",
                "uid": "00000000-0000-0000-0000-000000000001",
                "resourceVersion": "7",
                "creationTimestamp": "2026-01-01T00:00:00Z",
                "annotations": annotations,
            });
            review("DELETE", "nodes", &json!({ "object": null, "oldObject": { "metadata": metadata } }))
        };
        assert_eq!(Asked::to_delete(&node(json!({}))).unwrap().node.as_deref(), Some("a"));
        assert!(Asked::to_delete(&node(json!({ BREAK_GLASS: "" }))).unwrap().node.is_none());
    }

    #[test]
    fn what_is_given_is_added_and_stamped() {
        let given = pairs([("a", "1"), ("example.com/b~c", "2")]);
        let birth = Birth { labels: given.clone(), owed: false };
        let bare = Answer::born(&Comer::default(), &birth, "x");
        let stamp = "a=1 example.com/b~c=2";
        let expected = vec![
            json!({ "op": "add", "path": "/metadata/labels", "value": given }),
            json!({ "op": "add", "path": "/metadata/annotations", "value": { "born.perennial.dev/x": stamp } }),
        ];
        assert_eq!(bare, Answer::With(expected));
        let comer = Comer { labels: pairs([("d", "")]), annotations: pairs([("e", "")]), ..Comer::default() };
        let expected = vec![
            json!({ "op": "add", "path": "/metadata/labels/a", "value": "1" }),
            json!({ "op": "add", "path": "/metadata/labels/example.com~1b~0c", "value": "2" }),
            json!({ "op": "add", "path": "/metadata/annotations/born.perennial.dev~1x", "value": stamp }),
        ];
        assert_eq!(Answer::born(&comer, &birth, "x"), Answer::With(expected));
    }

    #[test]
    fn a_gate_stands_among_the_taints_that_it_brings() {
        let birth = Birth { labels: Pairs::new(), owed: true };
        let gate = json!({ "key": "perennial.dev/unrestored", "effect": "NoSchedule" });
        let comer = |specified, taints| Comer { taints, specified, ..Comer::default() };
        let expected = [
            (comer(false, None), "/spec", json!({ "taints": [gate] })),
            (comer(true, None), "/spec/taints", json!([gate])),
            (comer(true, Some(vec!["a".to_owned()])), "/spec/taints/-", gate.clone()),
        ];
        for (comer, path, value) in expected {
            let Answer::With(patch) = Answer::born(&comer, &birth, "x") else { panic!("nothing") };
            assert_eq!(patch[0], json!({ "op": "add", "path": path, "value": value }));
            assert_eq!(patch[1]["value"], json!({ "born.perennial.dev/x": "gated" }));
        }
        for birth in [birth, Birth::default()] {
            let brings = Comer { gated: true, ..comer(true, Some(vec![GATE.to_owned()])) };
            let Answer::With(patch) = Answer::born(&brings, &birth, "x") else { panic!("nothing") };
            assert_eq!(patch.len(), 1, "it is there already, and somebody has to open it: {patch:?}");
            assert_eq!(patch[0]["value"], json!({ "born.perennial.dev/x": "gated" }));
        }
    }

    #[test]
    fn a_stamp_that_would_not_fit_is_not_put_on_a_node() {
        let many =
            |number: usize| (0..number).map(|key| (format!("example.com/{key}"), "x".repeat(63))).collect();
        let birth = |number| Birth { labels: many(number), owed: false };
        assert!(matches!(Answer::born(&Comer::default(), &birth(1000), "x"), Answer::With(_)));
        assert_eq!(Answer::born(&Comer::default(), &birth(5000), "x"), Answer::Yes);
        let annotations = pairs([("note", &"x".repeat(180 * 1024))]);
        let full = Comer { annotations, ..Comer::default() };
        assert_eq!(Answer::born(&full, &birth(1000), "x"), Answer::Yes);
    }

    #[test]
    fn where_nothing_is_given_nothing_is_changed_but_for_the_stamp_of_another_life() {
        let nothing = Birth::default();
        assert_eq!(Answer::born(&Comer::default(), &nothing, "x"), Answer::Yes);
        let annotations = pairs([("born.perennial.dev/x", "a=1")]);
        let copied = Comer { annotations, ..Comer::default() };
        let expected = json!({ "op": "remove", "path": "/metadata/annotations/born.perennial.dev~1x" });
        assert_eq!(Answer::born(&copied, &nothing, "x"), Answer::With(vec![expected]));
        assert_eq!(Answer::born(&copied, &nothing, "other"), Answer::Yes);
    }

    #[test]
    fn answers_are_spelled_as_the_api_server_wants_them() {
        let yes = Answer::Yes.to("u");
        assert_eq!(yes["response"], json!({ "uid": "u", "allowed": true }));
        let with = Answer::With(vec![json!({ "op": "remove", "path": "/a" })]).to("u");
        let patch = BASE64_STANDARD.decode(with["response"]["patch"].as_str().unwrap()).unwrap();
        assert_eq!(patch, br#"[{"op":"remove","path":"/a"}]"#);
        assert_eq!(with["response"]["patchType"], "JSONPatch");
        let no = Answer::not_recorded("a").to("u");
        assert_eq!(no["response"]["allowed"], false);
        assert!(no["response"]["status"]["message"].as_str().unwrap().contains("node a "));
    }
}

//! Mistakes in values are refused when they are made, with the key; what passes is a policy that the keeper takes.

use perennial_core::policy::Policy;
use serde_json::{Value, json};

use crate::rendered::{FLEET, PERENNIAL, examples, is, objects, render, render_example, root};

/// Renders with these values.
fn with(chart: &str, values: &Value) -> Result<String, String> {
    let file = tempfile::NamedTempFile::with_suffix(".json").unwrap();
    std::fs::write(file.path(), values.to_string()).unwrap();
    render(chart, "perennial", &["--values", file.path().to_str().unwrap()])
}

/// The policy in a rendered chart.
fn policy(rendered: &str) -> String {
    let objects = objects(rendered);
    let of_policy = |object: &&Value| is(object, "ConfigMap") && !object["data"]["policy.yaml"].is_null();
    let policy = objects.iter().find(of_policy).unwrap();
    policy["data"]["policy.yaml"].as_str().unwrap().to_owned()
}

#[test]
fn mistakes_in_values_are_refused_with_their_key() {
    let rule = |rule: Value| json!({ "policy": { "rules": [rule] } });
    for (values, word) in [
        (json!({ "replica": 3 }), "replica"),
        (json!({ "replicas": 0 }), "/replicas"),
        (json!({ "replicas": "3" }), "/replicas"),
        (json!({ "dryRun": "yes" }), "/dryRun"),
        (json!({ "image": { "digest": "sha256:abc" } }), "/image/digest"),
        (json!({ "image": { "tag": "a b" } }), "/image/tag"),
        (json!({ "keeper": { "split": true } }), "/split"),
        (json!({ "keeper": { "resync": "often" } }), "/keeper/resync"),
        (json!({ "keeper": { "enabled": false } }), "nothing to do"),
        (
            json!({ "dryRun": true, "keeper": { "enabled": false }, "lister": { "enabled": true } }),
            "nothing to do",
        ),
        (json!({ "lister": { "grants": [{ "namespace": "shop" }] } }), "/lister/grants/0"),
        (
            json!({ "lister": { "grants": [{ "namespace": "Shop", "secrets": ["a"] }] } }),
            "/lister/grants/0/namespace",
        ),
        (json!({ "lister": { "grants": [{ "secrets": ["a"] }] } }), "namespace"),
        (json!({ "metrics": { "secure": true }, "dryRun": true }), "metrics.certificates=given"),
        (json!({ "metrics": { "secure": true }, "datadog": { "enabled": true } }), "datadog.enabled"),
        (json!({ "metrics": { "certificates": "mine" } }), "/metrics/certificates"),
        (json!({ "policy": { "rule": [] } }), "/policy"),
        (json!({ "policy": { "rules": [] } }), "/policy/rules"),
        (json!({ "policy": { "retention": 30 } }), "/policy/retention"),
        (json!({ "policy": { "retention": "30" } }), "/policy/retention"),
        (json!({ "policy": { "brake": { "share": 2 } } }), "/policy/brake/share"),
        (json!({ "policy": { "brake": { "share": "200%" } } }), "/policy/brake/share"),
        (json!({ "policy": { "maxAbsent": 0 } }), "/policy/maxAbsent"),
        (json!({ "policy": { "narrow": "later" } }), "/policy/narrow"),
        (rule(json!({ "identity": "uid" })), "/policy/rules/0/identity"),
        (rule(json!({ "merge": "sometimes" })), "/policy/rules/0/merge"),
        (rule(json!({ "labels": { "includes": ["*"] } })), "/policy/rules/0/labels"),
        (rule(json!({ "labels": { "include": "*" } })), "/policy/rules/0/labels/include"),
        (rule(json!({ "labels": { "include": [""] } })), "/policy/rules/0/labels/include/0"),
        (rule(json!({ "taints": { "excludeDefaults": true } })), "/policy/rules/0/taints"),
        (rule(json!({ "name": "a b" })), "/policy/rules/0/name"),
        (json!({ "networkPolicy": { "egress": { "ports": [0] } } }), "/networkPolicy/egress/ports/0"),
        (json!({ "statusPage": { "enabled": "off" } }), "/statusPage/enabled"),
        (json!({ "statusPage": { "hosts": ["http://a.b"] } }), "/statusPage/hosts/0"),
        (json!({ "traces": { "endpoint": "collector:4318" } }), "/traces/endpoint"),
        (json!({ "traces": { "sample": 2 } }), "/traces/sample"),
    ] {
        let told = with(PERENNIAL, &values).expect_err(word);
        assert!(told.contains(word), "{values}: {word} is not in {told}");
    }
    for (values, word) in [
        (json!({ "publish": { "mode": "sometimes" } }), "/publish/mode"),
        (json!({ "publish": { "mode": "listing" } }), "/publish/bucket"),
        (
            json!({ "publish": { "mode": "cronJob", "bucket": { "endpoint": "https://a", "name": "abc" } } }),
            "/publish/secret/name",
        ),
        (
            json!({ "publish": { "mode": "cronJob", "bucket": { "endpoint": "https://a:b@c", "name": "abc" }, "secret": { "name": "a" } } }),
            "/publish/bucket/endpoint",
        ),
        (json!({ "autoscaling": { "targetCPUUtilizationPercentage": 0 } }), "/autoscaling/targetCPU"),
        (json!({ "page": { "endpoints": "some" } }), "/page/endpoints"),
    ] {
        let told = with(FLEET, &values).expect_err(word);
        assert!(told.contains(word), "{values}: {word} is not in {told}");
    }
}

#[test]
fn the_status_page_and_traces_are_flags_that_the_binary_takes() {
    let flags = |values: &Value| -> Vec<String> {
        let rendered = objects(&with(PERENNIAL, values).unwrap());
        let deployment = rendered.iter().find(|object| is(object, "Deployment")).unwrap();
        let arguments = deployment["spec"]["template"]["spec"]["containers"][0]["args"].as_array().unwrap();
        let arguments: Vec<String> = arguments.iter().map(|one| one.as_str().unwrap().to_owned()).collect();
        let typed = ["perennial".to_owned()].into_iter().chain(arguments.clone());
        perennial::args::Args::try_from_list(typed).unwrap();
        let ours = |one: &String| one.starts_with("--page") || one.starts_with("--otlp");
        arguments.into_iter().filter(ours).collect()
    };
    assert!(flags(&json!({})).is_empty());
    assert_eq!(flags(&json!({ "statusPage": { "enabled": false } })), ["--page=off"]);
    assert_eq!(flags(&json!({ "statusPage": { "values": true } })), ["--page-values"]);
    let hosts = json!({ "statusPage": { "hosts": ["fleet.example.com", "*.corp.example"] } });
    assert_eq!(flags(&hosts), ["--page-hosts=fleet.example.com,*.corp.example"]);
    let traces = json!({ "traces": { "endpoint": "http://collector:4318", "sample": 0.1 } });
    assert_eq!(flags(&traces), ["--otlp-endpoint=http://collector:4318", "--otlp-sample=0.1"]);
}

#[test]
fn the_policies_of_all_examples_are_taken_by_the_keeper() {
    for example in examples(PERENNIAL) {
        let policy = policy(&render_example(PERENNIAL, "perennial", example.as_deref()));
        Policy::parse(&policy).unwrap_or_else(|error| panic!("{example:?}: {error}\n{policy}"));
    }
}

#[test]
fn every_policy_in_the_documentation_can_be_given_as_values_and_means_the_same() {
    let page = std::fs::read_to_string(root().join("docs/policy.md")).unwrap();
    let blocks: Vec<&str> =
        page.split("```yaml\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert!(blocks.len() > 3);
    for block in blocks {
        let values: Value = serde_saphyr::from_str(block).unwrap();
        let rendered =
            with(PERENNIAL, &json!({ "policy": values })).unwrap_or_else(|error| panic!("{error}\n{block}"));
        let (given, written) = (Policy::parse(&policy(&rendered)).unwrap(), Policy::parse(block).unwrap());
        assert_eq!(given.digest(), written.digest(), "{block}");
    }
}

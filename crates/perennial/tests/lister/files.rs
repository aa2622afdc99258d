//! The files of `deploy`: the real API server takes them, refuses mistakes, and they grant what is needed and no more.

use std::collections::BTreeSet;
use std::path::Path;

use k8s_openapi::api::rbac::v1::{ClusterRole, PolicyRule, Role};
use kube::Api;
use perennial_testkit::{AuditEntry, eventually};
use serde_json::{Value, json};
use tokio::process::Command;

use crate::world::{LINES, SOON, World, lines};

const DEPLOY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy");

/// What kubectl says to a file that the API server is asked about, and does not keep.
async fn apply(world: &World, file: &Path) -> Result<(), String> {
    let output = Command::new(world.plane.assets().kubectl())
        .arg("--kubeconfig")
        .arg(world.plane.kubeconfig_for_admin().unwrap())
        .args(["apply", "--dry-run=server", "-f"])
        .arg(file)
        .output()
        .await
        .unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    if output.status.success() { Ok(()) } else { Err(told) }
}

#[tokio::test]
async fn the_definition_and_the_examples_are_accepted() {
    let world = World::without_lister().await;
    let shop = json!({ "metadata": { "name": "shop" } });
    let namespaces: Api<k8s_openapi::api::core::v1::Namespace> = Api::all(world.client());
    namespaces.create(&kube::api::PostParams::default(), &serde_json::from_value(shop).unwrap()).await.ok();
    let mut files = vec![Path::new(DEPLOY).join("crds/listings.perennial.dev.yaml")];
    let examples = std::fs::read_dir(Path::new(DEPLOY).join("examples")).unwrap();
    files.extend(examples.map(|file| file.unwrap().path()));
    assert!(files.len() > 3, "{files:?}");
    for file in files {
        assert_eq!(apply(&world, &file).await, Ok(()), "{}", file.display());
    }
}

#[tokio::test]
async fn mistakes_are_refused_where_they_are_made() {
    let world = World::without_lister().await;
    let folder = tempfile::tempdir().unwrap();
    let s3 =
        json!({ "endpoint": "https://s3.example.com", "bucket": "pages", "credentials": { "secret": "x" } });
    let to = |destination: Value| json!({ "service": "web", "destinations": [destination] });
    let with = |key: &str, value: Value| {
        let mut s3 = s3.clone();
        s3[key] = value;
        to(json!({ "name": "a", "s3": s3 }))
    };
    for (spec, word) in [
        (json!({}), "spec.service"),
        (json!({ "service": "" }), "spec.service"),
        (json!({ "service": "web", "endpoints": "some" }), "spec.endpoints"),
        (
            json!({ "service": "web", "template": { "inline": "a", "configMap": { "name": "a", "key": "b" } } }),
            "not both",
        ),
        (to(json!({ "name": "a" })), "either s3 or configMap"),
        (to(json!({ "name": "a", "s3": s3, "configMap": { "name": "b" } })), "either s3 or configMap"),
        (to(json!({ "name": "A b", "configMap": { "name": "b" } })), "name"),
        (with("endpoint", json!("ftp://example.com")), "endpoint"),
        (with("endpoint", json!("https://user:secret@example.com")), "endpoint"),
        (with("acl", json!("everybody")), "acl"),
        (with("credentials", Value::Null), "credentials"),
        (with("history", json!({ "keep": 0 })), "keep"),
        (json!({ "service": "web", "guards": { "maxShrinkPercent": 100 } }), "maxShrinkPercent"),
    ] {
        let file = folder.path().join("listing.json");
        let listing = json!({
            "apiVersion": "perennial.dev/v1alpha1",
            "kind": "Listing",
            "metadata": { "name": "web", "namespace": world.namespace },
            "spec": spec,
        });
        std::fs::write(&file, listing.to_string()).unwrap();
        let told = apply(&world, &file).await.expect_err(word);
        assert!(told.contains(word), "{word}: {told}");
    }
}

/// Verb, group and resource.
type Grant = (String, String, String);

fn grants(rules: Option<Vec<PolicyRule>>) -> BTreeSet<Grant> {
    let mut grants = BTreeSet::new();
    for rule in rules.unwrap_or_default() {
        for group in rule.api_groups.unwrap() {
            for resource in rule.resources.iter().flatten() {
                grants.extend(rule.verbs.iter().map(|verb| (verb.clone(), group.clone(), resource.clone())));
            }
        }
    }
    grants
}

/// Everything that the lister's account asked for.
fn asked(world: &World) -> Vec<AuditEntry> {
    let account = format!("system:serviceaccount:{}:perennial", world.namespace);
    let of_lister =
        |entry: &AuditEntry| entry.user == account && entry.resource != "selfsubjectaccessreviews";
    world.plane.audit_of(of_lister).unwrap()
}

fn used(world: &World) -> BTreeSet<Grant> {
    let entries = asked(world).into_iter();
    let grants = entries.map(|entry| {
        let resource = match entry.subresource.as_str() {
            "" => entry.resource,
            part => format!("{}/{part}", entry.resource),
        };
        (entry.verb, entry.group, resource)
    });
    grants.collect()
}

#[tokio::test]
async fn the_permissions_in_the_files_are_enough_and_every_one_of_them_is_used() {
    let mut world = World::alone().await;
    world.start_lister("a").await;
    world.secret("listing-bucket", &[("AWS_ACCESS_KEY_ID", "a"), ("AWS_SECRET_ACCESS_KEY", "b")]).await;
    world.config_map("template", "page", LINES).await;
    let bucket = json!({
        "endpoint": "http://127.0.0.1:9", "bucket": "pages", "credentials": { "secret": "listing-bucket" },
    });
    world
        .listing(
            "web",
            json!({
                "service": "web",
                "template": { "format": "text", "configMap": { "name": "template", "key": "page" } },
                "destinations": [
                    { "name": "out", "configMap": { "name": "out" } },
                    { "name": "bucket", "s3": bucket },
                ],
            }),
        )
        .await;
    world.is("web", "False", "ServiceNotFound").await;
    world.endpoints("web", &["10.0.0.1"]).await;
    world.says("out", &lines(&["10.0.0.1"])).await;
    world.endpoints("web", &["10.0.0.2"]).await;
    world.says("out", &lines(&["10.0.0.2"])).await;
    world.told("DestinationFailing").await;
    let refused: Vec<_> = asked(&world).into_iter().filter(|entry| entry.code == 403).collect();
    assert!(refused.is_empty(), "{refused:?}");
    // Whatever watch breaks, histories are compared before it goes on. (A server that is just starting refuses what
    // it grants a moment later.)
    world.plane.restart_apiserver().await.unwrap();
    let listed = ["listings", "endpointslices", "configmaps", "leases"];
    eventually(SOON, "all watches go on", || async {
        let used = used(&world);
        let missing: Vec<_> = listed
            .iter()
            .filter(|resource| !used.iter().any(|(verb, _, one)| verb == "list" && one == **resource))
            .collect();
        if missing.is_empty() { Ok(Some(())) } else { Err(anyhow::anyhow!("{missing:?}")) }
    })
    .await
    .unwrap();
    world.listers.remove("a").unwrap().stop().await;
    let mut granted = BTreeSet::new();
    let cluster_roles: Api<ClusterRole> = Api::all(world.client());
    granted.extend(grants(cluster_roles.get("perennial-lister").await.unwrap().rules));
    let roles: Api<Role> = Api::namespaced(world.client(), &world.namespace);
    for role in ["perennial-lister", "perennial-listings"] {
        granted.extend(grants(roles.get(role).await.unwrap().rules));
    }
    assert_eq!(used(&world), granted);
}

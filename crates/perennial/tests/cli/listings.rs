//! listings: what is published.

use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use perennial::lister::listing::Listing;
use perennial_testkit::ControlPlane;
use serde_json::json;

use crate::person::{Person, compare};
use crate::world::World;

#[tokio::test]
async fn listings_are_listed_once_the_cluster_knows_them() {
    let world = World::on(ControlPlane::builder().without_audit().start().await.unwrap(), "").await;
    let person = world.person();
    let told = person.says("listings").await.bad();
    assert_eq!(
        told,
        "error: the server doesn't have a resource type \"listings\": kubectl apply -f deploy/crds\n"
    );

    world.plane.install_listings().await.unwrap();
    assert_eq!(person.says("listings").await.err, "No listings found.\n");
    let listings: Api<Listing> = Api::namespaced(world.plane.admin(), "default");
    for name in ["web", "api"] {
        let listing = json!({
            "apiVersion": "perennial.dev/v1alpha1", "kind": "Listing",
            "metadata": { "name": name }, "spec": { "service": name },
        });
        let listing: Listing = serde_json::from_value(listing).unwrap();
        listings.create(&PostParams::default(), &listing).await.unwrap();
    }
    let status = json!({ "status": {
        "endpoints": 3, "digest": "0123456789abcdef0", "lastPublished": "2026-05-01T12:00:00Z", "conditions": [{
            "type": "Ready", "status": "False", "reason": "Held", "message": "a guard keeps the last good page",
            "lastTransitionTime": "2026-05-01T12:00:00Z",
        }],
    } });
    listings.patch_status("web", &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
    let shown = |text: String| text.lines().map(unaged).collect::<Vec<_>>().join("\n");
    compare("listings", &shown(person.says("listings").await.good()));
    compare("listings-wide", &shown(person.says("listings -o wide").await.good()));
    assert_eq!(person.says("listings kube-system").await.err, "No listings found.\n");
    assert!(person.says("listings default -o name").await.good().starts_with("listing.perennial.dev/api\n"));
    let nobody = world.plane.kubeconfig_for_service_account("default", "nobody").await.unwrap();
    let told = Person::with(&nobody, world.namespace()).says("listings").await.bad();
    assert!(told.starts_with("Error from server (Forbidden): listings.perennial.dev is forbidden"), "{told}");
}

/// Without how many days ago that May was.
fn unaged(line: &str) -> String {
    let words = line.split(' ').map(|word| {
        let days = word.strip_suffix('d').is_some_and(|days| days.parse::<u32>().is_ok());
        if days { "[age]" } else { word }
    });
    words.collect::<Vec<_>>().join(" ")
}

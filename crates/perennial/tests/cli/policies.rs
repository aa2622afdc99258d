//! policy check: what a policy would mean for this very cluster.

use serde_json::{Value, json};

use crate::person::compare;
use crate::world::{World, pairs};

const POLICY: &str = "
rules:
  - name: web
    selector: pool=web
    labels: { include: [\"*\"], exclude: [\"scratch.example.com/*\"] }
  - name: rest
    labels: { include: [\"team\"] }
";

#[tokio::test]
async fn a_policy_is_checked_by_itself_and_against_the_cluster() {
    let mut world = World::start().await;
    let web = pairs([("pool", "web"), ("team", "blue"), ("scratch.example.com/x", "1")]);
    let role = "node-role.kubernetes.io/db";
    for (name, labels) in [
        ("web-1", web.clone()),
        ("web-2", web.clone()),
        ("db-1", pairs([("team", "red"), (role, ""), ("rack", "r1")])),
    ] {
        world.register(name, &labels).await;
        world.recorded(name, &labels).await;
    }
    world.delete("web-2").await;
    world.closed("web-2", &web).await;
    world.stop_keeper().await;
    world.label("web-1", "team", None).await;
    world.label("web-1", "new", Some("yes")).await;
    let file = world.file("policy.yaml");
    std::fs::write(&file, POLICY).unwrap();
    let line = format!("policy check {}", file.display());
    let plain = |text: String| text.replace(&file.display().to_string(), "policy.yaml");
    let person = world.person();
    compare("policy", &plain(person.says(&line).await.good()));
    compare("policy-cluster", &plain(person.says(&format!("{line} --against-cluster")).await.all()));
    compare(
        "policy-cluster-wide",
        &plain(person.says(&format!("{line} --against-cluster -o wide")).await.all()),
    );
    let json = person.says(&format!("{line} --against-cluster -o json")).await.good();
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["items"][0]["refused"], json!([role, "rack"]));

    std::fs::write(&file, "rules: [{ name: a, identity: nobody }, { labels: { include: 7 } }]").unwrap();
    compare("policy-broken", &plain(person.says(&line).await.bad()));
}

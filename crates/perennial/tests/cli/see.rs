//! nodes, show, status, diff: what people see.

use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use perennial_core::record::State;
use serde_json::{Value, json};

use crate::person::compare;
use crate::world::{Labels, World, pairs};

fn labels() -> Labels {
    pairs([("team", "blue"), ("pool", "web")])
}

impl World {
    /// Puts a policy where the chart puts it.
    async fn chart_policy(&self, name: &str, policy: &str) {
        let map = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": { "name": name, "labels": { "app.kubernetes.io/name": "perennial" } },
            "data": { "policy.yaml": policy },
        });
        let params = PatchParams::apply("test").force();
        self.config_maps().patch(name, &params, &Patch::Apply(map)).await.unwrap();
    }
}

/// A fleet in which something of everything is to be seen.
async fn fleet() -> World {
    let mut world = World::without_keeper("").await;
    world.start_member("keeper-1").await;
    for name in ["away-1", "returned-1", "paused-1", "steady-1"] {
        world.register(name, &labels()).await;
        world.recorded(name, &labels()).await;
    }
    world.register("bare-1", &pairs([("kubernetes.io/os", "linux")])).await;
    world.annotate("paused-1", "perennial.dev/pause", Some("true")).await;
    world.record_becomes("paused-1", "is paused", |record| record.paused).await;
    for name in ["away-1", "returned-1"] {
        world.delete(name).await;
        world.closed(name, &labels()).await;
    }
    world.register("returned-1", &pairs([])).await;
    world.is_marked("returned-1").await;
    world.record_becomes("returned-1", "is open", |record| record.state == State::Open).await;
    world.label("steady-1", "team", Some("red")).await;
    world.recorded("steady-1", &pairs([("team", "red"), ("pool", "web")])).await;
    world.event("returned-1", "MetadataRestored").await;
    world
}

#[tokio::test]
async fn what_there_is_to_see_is_shown_in_every_form() {
    let world = fleet().await;
    let person = world.person();
    compare("nodes", &person.says("nodes").await.good());
    compare("nodes-narrow", &person.at_terminal(44).says("nodes").await.good());
    compare("nodes-colour", &person.at_terminal(100).in_colour().says("nodes").await.good());
    compare("nodes-wide", &person.says("nodes -o wide").await.good());
    compare("nodes-name", &person.says("nodes --state absent,paused -o name").await.good());
    compare("nodes-selected", &person.says("nodes -l team=red --no-headers").await.good());
    compare("nodes-none", &person.says("nodes --state unreadable").await.all());
    compare("nodes-missing", &person.says("nodes steady-1 nobody").await.all());
    compare("show", &person.says("show returned-1").await.good());
    compare("show-colour", &person.at_terminal(80).in_colour().says("show steady-1").await.good());
    compare("show-away", &person.says("show away-1").await.good());
    compare("status", &person.says("status").await.good());
    compare("diff-none", &person.says("diff").await.all());

    let by = |key: &str| {
        let (person, line) = (person.clone(), format!("nodes --sort-by {key} --no-headers -o name"));
        async move { person.says(&line).await.good() }
    };
    assert!(by("state").await.starts_with("node/paused-1\nnode/away-1\n"), "{}", by("state").await);
    assert!(by("restored").await.starts_with("node/returned-1\n"));

    let json: Value = serde_json::from_str(&person.says("nodes -o json").await.good()).unwrap();
    let returned =
        json["items"].as_array().unwrap().iter().find(|item| item["node"] == "returned-1").unwrap();
    assert_eq!((&returned["state"], &returned["labels"]), (&json!("current"), &json!(2)));
    assert!(returned["restoredAt"].is_string() && returned["recordedAt"].is_string(), "{returned}");
    let yaml: Value = serde_saphyr::from_str(&person.says("nodes -o yaml").await.good()).unwrap();
    assert_eq!(yaml["items"][0]["node"], json["items"][0]["node"]);
    let json: Value = serde_json::from_str(&person.says("status -o json").await.good()).unwrap();
    assert_eq!((&json["nodes"], &json["states"]["absent"]), (&json!(4), &json!(1)));
    assert_eq!(json["members"][0]["name"], "keeper-1");
    let json: Value = serde_json::from_str(&person.says("show steady-1 -o json").await.good()).unwrap();
    assert_eq!(json["record"]["previous"][0]["kept"]["labels"]["team"], "blue");
}

#[tokio::test]
async fn the_policy_is_that_of_the_chart_and_another_one_is_warned_of() {
    let mut world = World::without_keeper("rules: [{ name: teams, labels: { include: [team] } }]").await;
    world.start_member("keeper-1").await;
    world.register("worker-1", &labels()).await;
    world.recorded("worker-1", &pairs([("team", "blue")])).await;
    let person = world.person();
    let doubted = person.says("nodes --no-headers").await;
    assert!(doubted.err.starts_with("Warning: replicas run under another policy"), "{doubted:?}");
    assert!(doubted.out.starts_with("worker-1   pending"), "{doubted:?}");
    for line in ["restore worker-1", "rollback --all --to 1m --yes", "import --from-namespace default"] {
        let refused = person.says(line).await.bad();
        assert!(refused.contains("replicas run under another policy"), "{line}: {refused}");
    }
    world.chart_policy("my-policy", "rules: [{ labels: { include: [7 }]").await;
    let told = person.says("nodes --no-headers").await.err;
    assert!(
        told.contains("Warning: configmap/my-policy holds no policy") && told.contains("another policy"),
        "{told}"
    );
    let told = person.says("restore worker-1").await.bad();
    assert!(
        told.starts_with("error: configmap/my-policy holds no policy") && told.contains("--policy"),
        "{told}"
    );
    world.chart_policy("other-policy", "{}").await;
    world.chart_policy("my-policy", "rules: [{ labels: { include: [team] } }]").await;
    let sure = person.says("nodes --no-headers").await;
    assert!(sure.err.is_empty() && sure.out.starts_with("worker-1   current"), "{sure:?}");
    let status = person.says("status").await.good();
    assert!(status.contains("Policy:   configmap/my-policy ("), "{status}");
    // What the chart has put there is no record, and no reason to refuse what kubectl says of all.
    let all = world.config_maps().list(&ListParams::default()).await.unwrap();
    let file = world.file("all.json");
    std::fs::write(&file, serde_json::to_string(&all).unwrap()).unwrap();
    let told = person.says(&format!("import {} --dry-run", file.display())).await.good();
    assert_eq!(told, "node/worker-1 unchanged (1 label)\n");
}

#[tokio::test]
async fn nothing_is_written_where_nobody_can_tell_what_replicas_keep() {
    let mut world = World::start().await;
    world.register("worker-1", &labels()).await;
    world.recorded("worker-1", &labels()).await;
    world.stop_keeper().await;
    world.label("worker-1", "team", None).await;
    let person = world.person();
    let refused = async |why: &str| {
        for line in ["restore worker-1", "rollback --all --to 1m --yes", "import --from-namespace default"] {
            let told = person.says(line).await.bad();
            assert!(told.contains(why) && told.contains("--policy FILE"), "{line}: {told}");
        }
    };
    refused("error: no replica is seen at work in namespace").await;
    let dry = person.says("restore worker-1 --dry-run").await;
    assert!(dry.err.starts_with("Warning: no replica is seen"), "{dry:?}");
    assert!(dry.good().contains("would be restored"));
    // One that cannot be read may be the one; of two, either.
    world.chart_policy("my-policy", "{").await;
    refused("error: configmap/my-policy holds no policy").await;
    world.chart_policy("my-policy", "rules: [{ labels: { include: [team] } }]").await;
    world.chart_policy("other-policy", "{}").await;
    refused("no replica is seen at work").await;
    assert_eq!(world.labels("worker-1").await, pairs([("pool", "web")]));
    // The only one there is, is the installation's own.
    world.config_maps().delete("other-policy", &DeleteParams::default()).await.unwrap();
    person.says("restore worker-1").await.good();
    assert_eq!(world.labels("worker-1").await, labels());
}

#[tokio::test]
async fn what_differs_is_shown_while_nobody_records_it() {
    let mut world = World::start().await;
    world.register("worker-1", &labels()).await;
    world.recorded("worker-1", &labels()).await;
    world.stop_keeper().await;
    world.label("worker-1", "team", Some("red")).await;
    world.label("worker-1", "pool", None).await;
    world.label("worker-1", "new", Some("yes")).await;
    world.register("worker-2", &pairs([("team", "blue")])).await;
    let person = world.person();
    compare("diff", &person.says("diff").await.all());
    compare("diff-colour", &person.in_colour().says("diff worker-1").await.all());
    compare("status-pending", &person.says("status").await.good());
}

#[tokio::test]
async fn something_that_changes_back_and_forth_is_pointed_out_and_so_is_a_broken_record() {
    let world = World::start().await;
    world.register("worker-1", &labels()).await;
    world.recorded("worker-1", &labels()).await;
    for team in ["red", "blue", "red"] {
        world.label("worker-1", "team", Some(team)).await;
        world.recorded("worker-1", &pairs([("team", team), ("pool", "web")])).await;
    }
    world.register("worker-2", &labels()).await;
    world.recorded("worker-2", &labels()).await;
    world.delete("worker-2").await;
    world.closed("worker-2", &labels()).await;
    world.edit_record("worker-2", "{").await;
    let person = world.person();
    let told = person.says("status").await.good();
    assert!(told.contains("back and forth") && told.contains("worker-1   2"), "{told}");
    assert!(told.contains("1 unreadable"), "{told}");
    let shown = person.says("show worker-2").await.good();
    assert!(shown.contains("cannot be read: EOF"), "{shown}");
}

//! export and import: to another cluster, from a backup, from older tools.

use std::os::unix::fs::PermissionsExt as _;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{ListParams, PostParams};
use perennial_core::record::State;
use serde_json::json;
use uuid::Uuid;

use crate::person::compare;
use crate::world::{Labels, World, pairs};

const NODE: &str = "worker-1";

fn labels() -> Labels {
    pairs([("team", "blue"), ("example.com/rack", "r12")])
}

/// Every ConfigMap there is, so that it can be seen that nothing changed.
async fn everything(world: &World) -> Vec<ConfigMap> {
    world.config_maps().list(&ListParams::default()).await.unwrap().items
}

#[tokio::test]
async fn records_move_to_another_cluster_and_nodes_that_join_there_get_them() {
    let old = World::start().await;
    for name in [NODE, "worker-2"] {
        old.register(name, &labels()).await;
        old.recorded(name, &labels()).await;
    }
    let file = old.file("records.jsonl");
    let told = old.hand().says(&format!("export -f {}", file.display())).await;
    assert!(told.err.contains("2 records are in"), "{told:?}");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let text = std::fs::read_to_string(&file).unwrap();
    assert_eq!(old.hand().says("export").await.good().lines().count(), text.lines().count());
    compare("export", &text);

    // Another cluster, with a keeper at work and one of the nodes there already.
    let new = World::start().await;
    new.register("worker-2", &pairs([])).await;
    let kept = new.file("records.jsonl");
    std::fs::copy(&file, &kept).unwrap();
    let line = format!("import {}", kept.display());
    compare("import-dry-run", &new.hand().says(&format!("{line} --dry-run")).await.all());
    assert!(new.record(NODE).await.is_none());
    new.hand().says(&line).await.good();
    let record = new.record(NODE).await.unwrap();
    assert_eq!((record.state, record.version, record.incarnation.uid), (State::Closed, 0, Uuid::nil()));
    new.labels_become("worker-2", &labels()).await;
    new.register(NODE, &pairs([])).await;
    new.labels_become(NODE, &labels()).await;
    new.record_becomes(NODE, "is open", |record| record.state == State::Open).await;
}

#[tokio::test]
async fn what_is_there_is_overwritten_only_by_a_persons_word_and_stays_among_former_states() {
    let world = World::start().await;
    world.register(NODE, &labels()).await;
    world.recorded(NODE, &labels()).await;
    let file = world.file("records.jsonl");
    world.hand().says(&format!("export -f {}", file.display())).await.good();
    let red = pairs([("team", "red")]);
    world.patch(NODE, json!({ "metadata": { "labels": { "team": "red", "example.com/rack": null } } })).await;
    world.recorded(NODE, &red).await;
    world.delete(NODE).await;
    let closed = world.closed(NODE, &red).await;

    let line = format!("import {}", file.display());
    let told = world.hand().says(&line).await.good();
    assert!(told.contains("left alone: it has a record already"), "{told}");
    assert_eq!(world.record(NODE).await.unwrap(), closed);
    let told = world.hand().says(&format!("{line} --overwrite")).await.bad();
    assert!(told.contains("nobody is there to ask"), "{told}");
    world.hand().says(&format!("{line} --overwrite --yes")).await.good();
    let record = world.closed(NODE, &labels()).await;
    assert_eq!(record.previous[0].kept.labels, red);
    assert_eq!((record.sequence, record.version), (closed.sequence + 1, closed.version));
    let again = world.hand().says(&format!("{line} --overwrite --yes")).await.good();
    assert!(again.contains("unchanged"), "{again}");
    world.register(NODE, &pairs([])).await;
    world.labels_become(NODE, &labels()).await;
}

#[tokio::test]
async fn a_record_that_cannot_be_read_is_left_alone_and_said_to_be_one() {
    let mut world = World::start().await;
    world.register(NODE, &labels()).await;
    world.recorded(NODE, &labels()).await;
    let file = world.file("records.jsonl");
    world.hand().says(&format!("export -f {}", file.display())).await.good();
    let text = world.config_map(NODE).await.unwrap().data.unwrap()["record.json"].clone();
    world.delete(NODE).await;
    world.closed(NODE, &labels()).await;
    world.stop_keeper().await;
    let line = format!("import {}", file.display());
    for (broken, why) in [
        (
            "{".to_owned(),
            "left alone: it has a record that cannot be read (`perennial forget worker-1` removes it)",
        ),
        (
            text.replace("\"schema\": 1", "\"schema\": 99"),
            "left alone: a newer perennial wrote its record; import with that one",
        ),
    ] {
        world.edit_record(NODE, &broken).await;
        let told = world.hand().says(&line).await.good();
        assert_eq!(told, format!("node/{NODE} {why} (2 labels)\n"));
        let told = world.hand().says(&format!("{line} --overwrite --yes")).await.bad();
        assert_eq!(told, format!("node/{NODE} {why} (2 labels)\n"));
        assert_eq!(world.config_map(NODE).await.unwrap().data.unwrap()["record.json"], broken);
    }
    // What it says to do is what helps.
    world.edit_record(NODE, "{").await;
    world.hand().says(&format!("forget {NODE} --yes")).await.good();
    world.hand().says(&line).await.good();
    world.start_keeper().await;
    world.register(NODE, &pairs([])).await;
    world.labels_become(NODE, &labels()).await;
}

#[tokio::test]
async fn a_node_that_lives_gets_what_it_lacks_of_an_overwritten_record_and_keeps_its_own() {
    let world = World::start().await;
    world.register(NODE, &labels()).await;
    world.recorded(NODE, &labels()).await;
    let file = world.file("records.jsonl");
    world.hand().says(&format!("export -f {}", file.display())).await.good();
    world.patch(NODE, json!({ "metadata": { "labels": { "team": "red", "example.com/rack": null } } })).await;
    world.recorded(NODE, &pairs([("team", "red")])).await;
    world.hand().says(&format!("import {} --overwrite --yes", file.display())).await.good();
    let both = pairs([("team", "red"), ("example.com/rack", "r12")]);
    world.labels_become(NODE, &both).await;
    world.record_becomes(NODE, "is open", |record| record.state == State::Open).await;
    world.recorded(NODE, &both).await;
}

#[tokio::test]
async fn broken_input_is_refused_as_a_whole_and_changes_nothing() {
    let world = World::start().await;
    world.register(NODE, &labels()).await;
    world.recorded(NODE, &labels()).await;
    world.caught_up().await;
    let file = world.file("records.jsonl");
    world.hand().says(&format!("export -f {}", file.display())).await.good();
    let text = std::fs::read_to_string(&file).unwrap();
    let before = everything(&world).await;
    let line = format!("import {} --overwrite --yes", file.display());
    for (broken, word) in [
        (text.replace("\"team\":\"blue\"", "\"team\":\"no value!\""), "cannot be a label"),
        (text.lines().take(1).collect(), "the file is not whole"),
        (text.replace("\"schema\":1", "\"schema\":99"), "is newer than"),
        ("hello".to_owned(), "neither an export nor a list of ConfigMaps"),
        ("kind: ConfigMap\nmetadata: { name: app }".to_owned(), "--skip-unknown"),
    ] {
        std::fs::write(&file, &broken).unwrap();
        let told = world.hand().says(&line).await.bad();
        assert!(told.contains("nothing was imported") && told.contains(word), "{broken}: {told}");
    }
    let told = world.hand().says("import /nonexistent").await.bad();
    assert!(told.contains("/nonexistent") && told.contains("No such file"), "{told}");
    assert_eq!(everything(&world).await, before);
}

#[tokio::test]
async fn what_older_tools_left_in_the_cluster_is_read_from_their_namespace() {
    let world = World::start().await;
    let older = format!("older-{}", world.namespace());
    world.plane.service_account(&older, "older").await.unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(world.plane.admin(), &older);
    let state = json!({ "nodeName": NODE, "labels": labels(), "capturedAt": "2026-05-01T12:00:00Z" });
    for (name, data) in [
        ("node-labels-worker-1", json!({ "state.json": state.to_string() })),
        (
            "worker-2",
            json!({
                "team": "red", "example.com-SLASH-rack": "r13", "kubernetes.io-SLASH-hostname": "worker-2",
                "label_version": "4",
            }),
        ),
    ] {
        let map = serde_json::from_value(json!({ "metadata": { "name": name }, "data": data })).unwrap();
        maps.create(&PostParams::default(), &map).await.unwrap();
    }
    let person = world.hand();
    compare("import-older", &person.says(&format!("import --from-namespace {older} --dry-run")).await.all());
    person.says(&format!("import --from-namespace {older}")).await.good();
    for (name, expected) in
        [(NODE, labels()), ("worker-2", pairs([("team", "red"), ("example.com/rack", "r13")]))]
    {
        world.register(name, &pairs([])).await;
        world.labels_become(name, &expected).await;
    }
}

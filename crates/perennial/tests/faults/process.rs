//! The real binary: probes, metrics, log, signals.

use std::process::Command;
use std::time::Duration;

use perennial_core::record::State;
use perennial_testkit::{KeeperBuilder, KeeperProcess, eventually};
use serde_json::Value;

use crate::world::{NAMESPACE, SOON, World, pairs};

/// The binary, under the keeper's own account.
pub(crate) async fn keeper_for(world: &World) -> KeeperBuilder {
    let kubeconfig = world.plane.kubeconfig_for_service_account(NAMESPACE, "perennial").await.unwrap();
    KeeperProcess::builder(env!("CARGO_BIN_EXE_perennial"), world.plane.logs())
        .kubeconfig(kubeconfig)
        .namespace(NAMESPACE)
        .arg("--log-format=json")
}

/// The lines of its log.
fn log(keeper: &KeeperProcess) -> Vec<Value> {
    keeper.log().unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

async fn logs(keeper: &KeeperProcess, words: &str) {
    eventually(SOON, &format!("the log says {words:?}"), || async {
        let log = keeper.log()?;
        if log.contains(words) { Ok(Some(())) } else { Err(anyhow::anyhow!("{log}")) }
    })
    .await
    .unwrap();
}

async fn counts(keeper: &KeeperProcess, metric: &str, expected: f64) {
    eventually(SOON, &format!("{metric} is {expected}"), || async {
        let value = keeper.metrics().await?.get(metric).copied().unwrap_or_default();
        let equal = (value - expected).abs() < f64::EPSILON;
        if equal { Ok(Some(())) } else { Err(anyhow::anyhow!("{value}")) }
    })
    .await
    .unwrap();
}

async fn signal(keeper: &KeeperProcess, name: &str) {
    let pid = keeper.pid().await.unwrap().to_string();
    assert!(Command::new("kill").args([name, &pid]).status().unwrap().success());
}

#[tokio::test]
async fn a_right_that_is_missing_is_named_in_the_servers_own_words() {
    let world = World::alone("").await;
    world.plane.service_account(NAMESPACE, "nobody").await.unwrap();
    let kubeconfig = world.plane.kubeconfig_for_service_account(NAMESPACE, "nobody").await.unwrap();
    let keeper = KeeperProcess::builder(env!("CARGO_BIN_EXE_perennial"), world.plane.logs())
        .kubeconfig(kubeconfig)
        .namespace(NAMESPACE);
    let keeper = keeper.spawn().await.unwrap();
    // Watches are asked for in protobuf, and refused in it.
    logs(&keeper, "cannot watch resource \\\"nodes\\\" in API group").await;
}

#[tokio::test]
async fn without_an_api_server_it_is_live_but_not_ready_and_becomes_so_when_there_is_one() {
    let world = World::alone("").await;
    let builder = keeper_for(&world).await;
    world.register("worker-1", &pairs([("team", "blue")])).await;
    world.plane.stop_apiserver().await.unwrap();
    let keeper = builder.spawn().await.unwrap();
    logs(&keeper, "cannot watch, still trying").await;
    for page in ["/livez", "/healthz"] {
        assert_eq!(keeper.get(page).await.unwrap(), "ok\n");
    }
    let refusal = format!("{:#}", keeper.get("/readyz").await.unwrap_err());
    assert!(refusal.contains("waiting for: keeper"), "{refusal}");

    world.plane.start_apiserver().await.unwrap();
    keeper.ready(SOON).await.unwrap();
    assert_eq!(keeper.get("/readyz").await.unwrap(), "ok\n");
    world.recorded("worker-1", &pairs([("team", "blue")])).await;
    keeper.check().await.unwrap();
}

#[tokio::test]
async fn its_metrics_and_its_log_tell_a_nodes_story() {
    let world = World::alone("").await;
    let keeper = keeper_for(&world).await.arg("--open-after=200ms").start().await.unwrap();
    let labels = pairs([("team", "blue"), ("example.com/rack", "r12")]);
    let first = world.register("worker-1", &labels).await.metadata.uid.unwrap();
    world.recorded("worker-1", &labels).await;
    world.delete("worker-1").await;
    let second = world.register("worker-1", &pairs([])).await.metadata.uid.unwrap();
    world.labels_become("worker-1", &labels).await;
    world.record_becomes("worker-1", "is open", |record| record.state == State::Open).await;

    for (metric, value) in [
        ("perennial_nodes", 1.0),
        ("perennial_nodes_current", 1.0),
        ("perennial_nodes_current_ratio", 1.0),
        ("perennial_pending", 0.0),
        ("perennial_restores_total", 1.0),
        ("perennial_labels_restored_total", 2.0),
        ("perennial_restore_seconds_count", 1.0),
        ("perennial_saves_total{kind=\"save\"}", 2.0),
        ("perennial_saves_total{kind=\"give\"}", 1.0),
        ("perennial_churn_total", 0.0),
        ("perennial_histories_total", 0.0),
        ("perennial_relists_total", 0.0),
    ] {
        counts(&keeper, metric, value).await;
    }

    let about: Vec<_> = log(&keeper).into_iter().filter(|line| line.get("node").is_some()).collect();
    let said = |uid: &str| -> Vec<String> {
        let lines = about.iter().filter(|line| line["uid"] == uid);
        lines.map(|line| line["message"].as_str().unwrap().to_owned()).collect()
    };
    assert!(about.iter().all(|line| line["node"] == "worker-1"), "{about:?}");
    assert_eq!(said(&first), ["recorded"]);
    assert_eq!(said(&second), ["restored"], "one line a decision that changed something");
    keeper.stop().await.unwrap();
    fields_are_documented(&log(&keeper));
}

/// Every field of every line has a row in docs/logs.md.
fn fields_are_documented(lines: &[Value]) {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/logs.md");
    let page = std::fs::read_to_string(page).unwrap();
    for line in lines {
        for field in line.as_object().unwrap().keys() {
            assert!(page.contains(&format!("| `{field}`")), "docs/logs.md has no {field:?}, as in {line}");
        }
    }
}

#[tokio::test]
async fn the_first_signal_records_the_ends_it_holds_and_ends_well() {
    let world = World::alone("").await;
    let keeper = keeper_for(&world).await.arg("--close-after=10m").start().await.unwrap();
    let labels = pairs([("team", "blue")]);
    for name in ["worker-1", "worker-2", "worker-3"] {
        world.register(name, &labels).await;
        world.recorded(name, &labels).await;
    }
    counts(&keeper, "perennial_nodes", 3.0).await;
    world.label("worker-1", "team", Some("green")).await;
    world.delete("worker-1").await;
    world.delete("worker-2").await;
    counts(&keeper, "perennial_nodes", 1.0).await;

    let status = keeper.stop().await.unwrap();
    assert_eq!(status.code(), Some(0), "{status}");
    let ends = [("worker-1", pairs([("team", "green")])), ("worker-2", labels)];
    for (name, labels) in ends {
        let record = world.record(name).await.unwrap();
        assert_eq!((record.state, record.kept.labels), (State::Closed, labels), "{name}");
    }
    assert_eq!(world.record("worker-3").await.unwrap().state, State::Open);
}

/// It cannot drain, since the API server is frozen; a second signal ends it at once.
async fn the_second_signal(name: &str, code: i32) {
    let world = World::alone("").await;
    let keeper = keeper_for(&world).await.arg("--close-after=10m").start().await.unwrap();
    let labels = pairs([("team", "blue")]);
    world.register("worker-1", &labels).await;
    world.recorded("worker-1", &labels).await;
    world.delete("worker-1").await;
    counts(&keeper, "perennial_nodes", 0.0).await;
    world.plane.pause_apiserver().await.unwrap();
    signal(&keeper, "-TERM").await;
    logs(&keeper, "finishing what is under way").await;
    keeper.check().await.unwrap();

    signal(&keeper, name).await;
    let status = keeper.ended(Duration::from_mins(1)).await.unwrap();
    assert_eq!(status.code(), Some(code), "{status}");
    logs(&keeper, "left at once").await;
    world.plane.resume_apiserver().await.unwrap();
}

#[tokio::test]
async fn a_second_sigterm_leaves_at_once() {
    the_second_signal("-TERM", 143).await;
}

#[tokio::test]
async fn a_sigint_after_a_sigterm_leaves_at_once() {
    the_second_signal("-INT", 130).await;
}

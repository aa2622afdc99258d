//! The fleet of `nginx`: what its sidecar, its `CronJob` and its test are told to do, they can do with its account.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use http::Method;
use perennial_testkit::{ControlPlane, S3Server, eventually};
use serde_json::{Value, json};
use tokio::process::Command;

use crate::accepted::{apply, prepared};
use crate::granted::may;
use crate::rendered::{FLEET, chart, is, objects, render_example};

const SOON: Duration = Duration::from_mins(1);
const NAMESPACE: &str = "shop";

/// Installs the chart with an example, as far as a control plane alone can have it.
async fn install(plane: &ControlPlane, example: &str) -> Vec<Value> {
    let example = chart(FLEET).join("examples").join(example);
    let objects = objects(&render_example(FLEET, NAMESPACE, Some(&example)));
    let kept: Vec<Value> = objects.iter().filter(|object| !is(object, "Pod")).cloned().collect();
    apply(plane, &kept).await;
    objects
}

fn only<'a>(objects: &'a [Value], kind: &str) -> &'a Value {
    let mut found = objects.iter().filter(|object| is(object, kind));
    let one = found.next().unwrap();
    assert!(found.next().is_none(), "more than one {kind}");
    one
}

/// What a container is told, with paths and addresses of here in place of those there.
fn told(container: &Value, here: &[(&str, &str)]) -> Vec<String> {
    let arguments = container["args"].as_array().unwrap().iter().map(|argument| argument.as_str().unwrap());
    let replaced = arguments.map(|argument| {
        let there = here.iter().find(|(flag, _)| argument.starts_with(&format!("{flag}=")));
        there.map_or_else(|| argument.to_owned(), |(flag, value)| format!("{flag}={value}"))
    });
    replaced.collect()
}

async fn endpoints(plane: &ControlPlane, addresses: &[&str]) {
    let endpoint = |address: &&str| json!({ "addresses": [address], "conditions": { "ready": true } });
    let slice = json!({
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": "nginx-fleet-1", "namespace": NAMESPACE, "labels": { "kubernetes.io/service-name": "nginx-fleet" },
        },
        "addressType": "IPv4",
        "ports": [{ "name": "http", "port": 8080 }],
        "endpoints": addresses.iter().map(endpoint).collect::<Vec<_>>(),
    });
    apply(plane, &[slice]).await;
}

/// A container of the fleet, as a process with the fleet's account.
async fn container(plane: &ControlPlane, arguments: &[String]) -> Command {
    let kubeconfig = plane.kubeconfig_for_service_account(NAMESPACE, FLEET).await.unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_perennial"));
    command.args(arguments).arg("--kubeconfig").arg(kubeconfig).args(["--namespace", NAMESPACE]);
    command.stderr(Stdio::null()).kill_on_drop(true);
    command
}

async fn ends_well(mut command: Command) {
    let output = command.stderr(Stdio::piped()).output().await.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

async fn lists(page: &Path, addresses: &[&str]) -> String {
    eventually(SOON, &format!("the page lists {addresses:?}"), || async {
        let page = std::fs::read_to_string(page).unwrap_or_default();
        let listed = page.matches("<li>").count();
        let all = addresses.iter().all(|address| page.contains(address)) && listed == addresses.len();
        if all { Ok(Some(page)) } else { Err(anyhow::anyhow!("{page:?}")) }
    })
    .await
    .unwrap()
}

#[tokio::test]
async fn sidecar_cron_job_and_test_do_what_they_are_told() {
    let (plane, server) = tokio::join!(prepared(), S3Server::start());
    let server = server.unwrap();
    server.create_bucket("fleet-pages").await.unwrap();
    server.publish_bucket("fleet-pages").await.unwrap();
    let objects = install(&plane, "cronjob.yaml").await;
    let folder = tempfile::tempdir().unwrap();
    let (page, template) = (folder.path().join("index.html"), folder.path().join("page.template"));
    let text = only(&objects, "ConfigMap")["data"]["page.template"].as_str().unwrap();
    std::fs::write(&template, text).unwrap();
    let public = format!("{}/fleet-pages/index.html", server.url());
    let here = [
        ("--file", page.to_str().unwrap()),
        ("--template", template.to_str().unwrap()),
        ("--bucket-url", server.url()),
        ("--verify", &public),
    ];
    endpoints(&plane, &["10.0.0.1"]).await;

    let sidecar = &only(&objects, "Deployment")["spec"]["template"]["spec"]["initContainers"][0];
    let mut following = container(&plane, &told(sidecar, &here)).await.spawn().unwrap();
    lists(&page, &["10.0.0.1"]).await;
    endpoints(&plane, &["10.0.0.1", "10.0.0.2"]).await;
    let shown = lists(&page, &["10.0.0.1", "10.0.0.2"]).await;

    let job = &only(&objects, "CronJob")["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"][0];
    let made = only(&objects, "Secret");
    assert_eq!(job["envFrom"][0]["secretRef"]["name"], made["metadata"]["name"]);
    let keys: Vec<&String> = made["stringData"].as_object().unwrap().keys().collect();
    let credentials = server.credentials();
    let mut once = container(&plane, &told(job, &here)).await;
    once.env(keys[0], &credentials.access_key).env(keys[1], &credentials.secret_key);
    ends_well(once).await;
    let published = server.ask(Method::GET, "/fleet-pages/index.html", "").await.unwrap();
    assert_eq!(String::from_utf8(published.body.to_vec()).unwrap(), shown);

    let test = &only(&objects, "Pod")["spec"]["containers"][0];
    ends_well(container(&plane, &told(test, &here)).await).await;

    following.kill().await.unwrap();
    let ours = format!("system:serviceaccount:{NAMESPACE}:{FLEET}");
    let refused = plane.audit_of(|entry| entry.code == 403 && entry.user == ours).unwrap();
    assert!(refused.is_empty(), "{refused:#?}");
}

#[tokio::test]
async fn the_lister_may_read_the_one_secret_of_a_listing_and_the_fleet_none() {
    let plane = prepared().await;
    install(&plane, "listing.yaml").await;
    eventually(SOON, "the lister may read the Secret", || async {
        let lister = plane.service_account("perennial", "perennial").await?;
        Ok(may(lister, "get secrets shop fleet-bucket").await.then_some(()))
    })
    .await
    .unwrap();
    let lister = plane.service_account("perennial", "perennial").await.unwrap();
    for denied in
        ["get secrets shop other", "list secrets shop", "get configmaps shop", "get secrets perennial"]
    {
        assert!(!may(lister.clone(), denied).await, "the lister may {denied}");
    }
    let fleet = plane.service_account(NAMESPACE, FLEET).await.unwrap();
    for denied in
        ["get secrets shop fleet-bucket", "list pods shop", "get services shop other", "list endpoints shop"]
    {
        assert!(!may(fleet.clone(), denied).await, "the fleet may {denied}");
    }
}

//! A fleet of nginx that lists itself: every one of them serves the page of all that are ready.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use anyhow::{Context as _, ensure};
use futures::future::{select_all, try_join_all};
use k8s_openapi::api::{
    core::v1::{Pod, Service},
    discovery::v1::EndpointSlice,
};
use kube::{Api, api::ListParams};
use perennial_testkit::eventually;

use crate::{
    stage::{Ground, PATIENCE, SHOP, Stage, chart, step},
    web::Whom,
};

const TRUE_PAGES: &str = "every nginx serves the list of exactly the ready ones";
/// How many ask at once when it is loaded, and for how long at most.
const LOAD: (usize, Duration) = (8, Duration::from_mins(3));

pub(super) async fn play(stage: &Stage) -> anyhow::Result<()> {
    install(stage, "--set autoscaling.enabled=false,replicas=1").await?;
    no_token(stage).await?;
    truthful(stage, 1, "one nginx").await?;
    step("helm test");
    stage.helm(&format!("test nginx-fleet --namespace {SHOP} --timeout 3m")).await?;
    for count in [10, 2] {
        stage.kubectl(&format!("scale deployment/nginx-fleet --namespace {SHOP} --replicas {count}")).await?;
        truthful(stage, count, &format!("scaled to {count}")).await?;
    }
    killed(stage).await?;
    // A cluster of ours has them, or does not start.
    if matches!(stage.ground, Ground::Ours(_)) || stage.kubectl("top nodes").await.is_ok() {
        autoscaled(stage).await?;
    } else {
        step("SKIPPED: the autoscaler, since this cluster serves no metrics");
    }
    stage.helm(&format!("uninstall nginx-fleet --namespace {SHOP} --wait --timeout 3m")).await.map(drop)
}

/// Installs the fleet, or changes it.
pub(super) async fn install(stage: &Stage, settings: &str) -> anyhow::Result<()> {
    let nginx = stage.nginx.as_deref().and_then(|image| image.rsplit_once(':'));
    let nginx = nginx.map_or_else(String::new, |(name, tag)| {
        format!("--set nginx.image.repository={name},nginx.image.tag={tag}")
    });
    let (chart, tag) = (chart("nginx-fleet"), &stage.version);
    stage
        .helm(&format!(
            "upgrade --install nginx-fleet {chart} --namespace {SHOP} --set perennial.image.tag={tag} {nginx} --wait \
             --timeout 5m {settings}"
        ))
        .await
        .map(drop)
}

/// The pods that the Service takes for ready, and their addresses.
pub(super) async fn ready(stage: &Stage) -> anyhow::Result<BTreeMap<String, String>> {
    let slices: Api<EndpointSlice> = Api::namespaced(stage.client.clone(), SHOP);
    let of_it = ListParams::default().labels("kubernetes.io/service-name=nginx-fleet");
    let endpoints =
        slices.list(&of_it).await?.items.into_iter().filter_map(|slice| slice.endpoints).flatten();
    let ready = endpoints.filter(|endpoint| {
        endpoint.conditions.as_ref().is_some_and(|conditions| conditions.ready.unwrap_or(true))
    });
    Ok(ready
        .filter_map(|endpoint| Some((endpoint.target_ref?.name?, endpoint.addresses.into_iter().next()?)))
        .collect())
}

/// So many are ready, each of them serves the list of exactly those, and the Service reaches each.
async fn truthful(stage: &Stage, count: usize, what: &str) -> anyhow::Result<()> {
    let began = Instant::now();
    let fleet = eventually(PATIENCE, &format!("{count} are ready"), || async {
        let fleet = ready(stage).await?;
        ensure!(fleet.len() == count, "{fleet:?}");
        Ok(Some(fleet))
    })
    .await?;
    let (scaled, began) = (began.elapsed(), Instant::now());
    eventually(PATIENCE, TRUE_PAGES, || async { pages_are_true(stage, &fleet).await.map(Some) }).await?;
    let listed = began.elapsed();
    let asked = reaches_all(stage, &fleet).await?;
    step(&format!(
        "{what}: ready after {scaled:.1?}; {listed:.1?} later every one served the list of exactly those; the Service reached \
         all of them in {asked} requests"
    ));
    Ok(())
}

async fn pages_are_true(stage: &Stage, fleet: &BTreeMap<String, String>) -> anyhow::Result<()> {
    let expected: BTreeSet<String> = fleet.values().cloned().collect();
    let expected = &expected;
    try_join_all(fleet.iter().map(async |(name, address)| {
        let page = stage.ask(&Whom::Pod(name.clone(), address.clone())).await?;
        ensure!(page.served_by == *name, "{} answered for {name}", page.served_by);
        let listed = page.addresses();
        ensure!(listed == *expected, "{name} lists {listed:?}, and ready are {expected:?}");
        Ok(())
    }))
    .await
    .map(drop)
}

/// Asks the Service until each has answered, and nobody else. A kube-proxy hears of changes in its own time.
async fn reaches_all(stage: &Stage, fleet: &BTreeMap<String, String>) -> anyhow::Result<usize> {
    let service = &service(stage).await?;
    eventually(PATIENCE, "the Service reaches all that are ready, and nobody else", || async {
        let (mut seen, mut asked) = (BTreeSet::new(), 0);
        while seen.len() < fleet.len() {
            let page = stage.ask(service).await?;
            ensure!(fleet.contains_key(&page.served_by), "{} answered, which is not ready", page.served_by);
            seen.insert(page.served_by);
            asked += 1;
            ensure!(asked < 100 * fleet.len(), "{seen:?} alone answered, of {fleet:?}");
        }
        Ok(Some(asked))
    })
    .await
}

async fn service(stage: &Stage) -> anyhow::Result<Whom> {
    let services: Api<Service> = Api::namespaced(stage.client.clone(), SHOP);
    let address = services.get("nginx-fleet").await?.spec.and_then(|spec| spec.cluster_ip);
    Ok(Whom::Service("nginx-fleet".to_owned(), address.context("the Service has no address")?))
}

/// One goes without a word; the others say so, and go on.
async fn killed(stage: &Stage) -> anyhow::Result<()> {
    let before = ready(stage).await?;
    let (victim, address) = before.first_key_value().context("nobody is ready")?;
    stage.kubectl(&format!("delete pod {victim} --namespace {SHOP} --grace-period=0 --force")).await?;
    let began = Instant::now();
    eventually(PATIENCE, &format!("{victim} is on no page"), || async {
        let fleet = ready(stage).await?;
        ensure!(!fleet.contains_key(victim), "it is ready");
        for (name, other) in &fleet {
            let page = stage.ask(&Whom::Pod(name.clone(), other.clone())).await?;
            ensure!(!page.addresses().contains(address), "{name} still lists {address}");
        }
        Ok(Some(()))
    })
    .await?;
    step(&format!("{victim} was killed, and was on no page after {:.1?}", began.elapsed()));
    truthful(stage, before.len(), "another one came in its place").await
}

/// The autoscaler sees load, and that it is over.
async fn autoscaled(stage: &Stage) -> anyhow::Result<()> {
    stage.kubectl(&format!("scale deployment/nginx-fleet --namespace {SHOP} --replicas 1")).await?;
    truthful(stage, 1, "scaled to 1, and an autoscaler set over it").await?;
    let bounds = "autoscaling.minReplicas=1,autoscaling.maxReplicas=5,autoscaling.scaleDownSeconds=5";
    install(stage, &format!("--set {bounds}")).await?;
    let service = service(stage).await?;
    let (many, limit) = LOAD;
    let load = (0..many).map(|_| {
        Box::pin(async {
            loop {
                // What nobody answers while pods come and go is no failure of the load.
                let _ = stage.ask(&service).await;
            }
        })
    });
    let began = Instant::now();
    let grown = eventually(limit, "the autoscaler has added pods, and every page is true", || async {
        let fleet = ready(stage).await?;
        ensure!(fleet.len() > 1, "{} is ready", fleet.len());
        pages_are_true(stage, &fleet).await?;
        Ok(Some(fleet.len()))
    });
    let grown = tokio::select! {
        grown = grown => grown?,
        ((), ..) = select_all(load) => 0,
    };
    step(&format!("under load there were {grown} after {:.1?}, and every page said so", began.elapsed()));
    // It may still add some, so how many come and go is told when it has come to rest.
    truthful(stage, 1, "after the load the autoscaler took them away again").await
}

/// nginx has no business with the API server, and cannot have any.
async fn no_token(stage: &Stage) -> anyhow::Result<()> {
    let pods: Api<Pod> = Api::namespaced(stage.client.clone(), SHOP);
    let pods = pods.list(&ListParams::default().labels("app.kubernetes.io/component=nginx")).await?;
    let containers = pods.items.iter().filter_map(|pod| pod.spec.as_ref()).flat_map(|spec| &spec.containers);
    let nginx: Vec<_> = containers.filter(|container| container.name == "nginx").collect();
    ensure!(!nginx.is_empty(), "there is no nginx");
    for mount in nginx.iter().filter_map(|container| container.volume_mounts.as_ref()).flatten() {
        ensure!(!mount.mount_path.contains("serviceaccount"), "nginx has a token in {}", mount.mount_path);
    }
    Ok(())
}

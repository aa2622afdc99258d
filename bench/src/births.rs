//! A node that comes back is born with its labels: what the webhook adds to its registration, and how long the rest takes.

use std::fs;
use std::time::{Duration, Instant};

use anyhow::ensure;
use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use perennial_core::keeper::born::is_kubelets_own;
use perennial_testkit::{ControlPlane, Port, company_labels, eventually, node_name, registration};
use serde_json::json;

use crate::compare::{REST, is_whole};
use crate::contender::{Contender, NAMESPACE};
use crate::prepared;
use crate::report::{Times, ratio};
use crate::sight::Sight;

/// So many nodes come back, one after the other, in each turn.
const SINGLES: usize = 100;
/// So many turns with the webhook, and as many without.
const ROUNDS: usize = 3;
const SOON: Duration = Duration::from_mins(5);
/// What a kubelet may not set itself, and on no machine that anybody could tell apart.
const ROLE: &str = "node-role.kubernetes.io/bench";
const POLICY: &str = "rules: [{privileged: {withoutProviderID: true}}]\n";
const WEBHOOK: &str = "perennial-webhook";

#[derive(Default)]
struct Turn {
    /// From the registration until its answer.
    created: Vec<Duration>,
    /// From the answer until all of its labels are there, the role too.
    whole: Vec<Duration>,
    /// How many were answered with all plain labels.
    born_with: usize,
}

pub(crate) async fn run(nodes: usize) -> anyhow::Result<()> {
    println!("bench: births, {nodes} nodes, {ROUNDS} turns of {SINGLES} with the webhook and without");
    let plane = prepared::start(nodes).await?;
    let kubeconfig = plane.kubeconfig_for_keeper(NAMESPACE).await?;
    let all: Api<Node> = Api::all(plane.admin());
    let role = Patch::Merge(json!({ "metadata": { "labels": { ROLE: "" } } }));
    for number in 0..SINGLES {
        all.patch(&node_name(number * nodes / SINGLES), &PatchParams::default(), &role).await?;
    }
    let policy = plane.folder().join("policy.yaml");
    fs::write(&policy, POLICY)?;
    let (port, policy) = (Port::claim()?, policy.display().to_string());
    let webhook = ["--webhook-hosts=127.0.0.1", "--webhook-address", &port.address(), "--policy", &policy];
    let mut records = Sight::of_records(&plane, NAMESPACE).await?;
    let url = format!("https://{}", port.address());
    plane.install_webhook(NAMESPACE, &url, false).await?;
    let running = Contender::Perennial.start_with(&plane, &kubeconfig, &webhook)?;
    records.quiet(REST).await?;

    let (mut without, mut with) = (Turn::default(), Turn::default());
    for _ in 0..ROUNDS {
        asked(&plane, nodes, false).await?;
        turn(&plane, nodes, &mut without).await?;
        asked(&plane, nodes, true).await?;
        turn(&plane, nodes, &mut with).await?;
    }
    running.stop().await?;
    ensure!(without.born_with == 0, "without a webhook nobody is born with anything");
    let Turn { created, whole, born_with } = with;
    let (created, whole) = (Times::new(created), Times::new(whole));
    let (bare, later) = (Times::new(without.created), Times::new(without.whole));
    let more = ratio(created.percentile(50), bare.percentile(50));
    println!("bench:   registration without    {bare}");
    println!("bench:   registration with       {created}  ({more:.2} x at p50)");
    println!("bench:   born with plain labels  {born_with} of {}", created.count());
    println!("bench:   answer to all, without  {later}");
    println!("bench:   answer to all, with     {whole}  (the privileged rest)");
    Ok(())
}

/// Has the API server ask, or not. Returns once it does.
async fn asked(plane: &ControlPlane, nodes: usize, wanted: bool) -> anyhow::Result<()> {
    let hooks: Api<MutatingWebhookConfiguration> = Api::all(plane.admin());
    let operations = if wanted { json!(["CREATE"]) } else { json!(["CONNECT"]) };
    let rule =
        json!({ "apiGroups": [""], "apiVersions": ["v1"], "resources": ["nodes"], "operations": operations });
    let patch = json!({ "webhooks": [{ "name": "born.perennial.dev", "rules": [rule] }] });
    hooks.patch(WEBHOOK, &PatchParams::default(), &Patch::Strategic(patch)).await?;
    let probe = nodes - 1;
    let mut sight = Sight::of_nodes(plane).await?;
    eventually(SOON, "the API server has heard of it", || async {
        let born = comes_back(plane, probe).await?;
        Ok((is_born_with(&born, probe) == wanted).then_some(()))
    })
    .await?;
    sight.quiet(REST).await
}

async fn comes_back(plane: &ControlPlane, index: usize) -> anyhow::Result<Node> {
    let nodes: Api<Node> = Api::all(plane.admin());
    nodes.delete(&node_name(index), &DeleteParams::default()).await?;
    Ok(nodes.create(&PostParams::default(), &registration(index)).await?)
}

/// Whether it has all that a kubelet may set itself.
fn is_born_with(node: &Node, index: usize) -> bool {
    let labels = node.metadata.labels.clone().unwrap_or_default();
    let mut given = company_labels(index).into_iter().filter(|(key, _)| is_kubelets_own(key));
    given.all(|(key, value)| labels.get(&key) == Some(&value))
}

async fn turn(plane: &ControlPlane, nodes: usize, turn: &mut Turn) -> anyhow::Result<()> {
    let all: Api<Node> = Api::all(plane.admin());
    let mut sight = Sight::of_nodes(plane).await?;
    for number in 0..SINGLES {
        let index = number * nodes / SINGLES;
        all.delete(&node_name(index), &DeleteParams::default()).await?;
        let registration = registration(index);
        let asked = Instant::now();
        let node = all.create(&PostParams::default(), &registration).await?;
        let answered = Instant::now();
        turn.created.push(answered - asked);
        turn.born_with += usize::from(is_born_with(&node, index));
        let mut born = false;
        let whole = sight.until(|seen| {
            if seen.name() != node_name(index) {
                return false;
            }
            born |= seen.is_new();
            born && is_whole(seen, index) && seen.labels().contains_key(ROLE)
        });
        turn.whole.push(whole.await?.saturating_duration_since(answered));
        // What it is marked with is in its record before it goes again.
        sight.quiet(Duration::from_millis(50)).await?;
    }
    Ok(())
}

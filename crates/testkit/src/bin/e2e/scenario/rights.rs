//! What pods and accounts may do: what they need, and no more.

use anyhow::ensure;

use crate::stage::{NAMESPACE, SHOP, Stage, step};

/// What no account of ours may do, wherever it is.
const NOBODY: [&str; 26] = [
    "get secrets -A",
    "list secrets -A",
    "watch secrets -A",
    "get secrets -n perennial",
    "get secrets -n kube-system",
    "create secrets -n perennial",
    "create nodes",
    "delete nodes",
    "deletecollection nodes",
    "update nodes",
    "patch nodes --subresource=status",
    "get nodes --subresource=proxy",
    "create pods -A",
    "create pods -n perennial",
    "create pods --subresource=exec -n perennial",
    "delete pods -n perennial",
    "patch deployments.apps -n perennial",
    "list configmaps -A",
    "get configmaps -n kube-system",
    "update configmaps -n default",
    "list events -A",
    "update leases.coordination.k8s.io -n kube-node-lease",
    "create serviceaccounts --subresource=token -n perennial",
    "create clusterrolebindings.rbac.authorization.k8s.io",
    "escalate clusterroles.rbac.authorization.k8s.io",
    "impersonate users",
];

/// For each account of an installation in parts: what it may do, and what only its neighbours may.
const PARTS: [(&str, &[&str], &[&str]); 3] = [
    (
        "perennial-capture",
        &["list nodes", "delete configmaps -n perennial", "create events -n default"],
        &["patch nodes", "list listings.perennial.dev -A", "list endpointslices.discovery.k8s.io -A"],
    ),
    (
        "perennial-restore",
        &["patch nodes", "update configmaps -n perennial"],
        &["delete configmaps -n perennial", "list listings.perennial.dev -A"],
    ),
    (
        "perennial-lister",
        &[
            "list listings.perennial.dev -A",
            "patch listings.perennial.dev --subresource=status -A",
            "get services -A",
        ],
        &["list nodes", "patch nodes", "get configmaps -n perennial", "patch listings.perennial.dev -A"],
    ),
];

/// What an account is kept from when it really tries.
const TRIED: [&str; 5] = [
    "get secrets --all-namespaces",
    "delete node --all --dry-run=server",
    "create configmap intruder --namespace kube-system --from-literal=a=b",
    "run intruder --image=perennial --namespace perennial",
    "create clusterrolebinding intruder --clusterrole=cluster-admin --user=intruder",
];

pub(super) async fn play(stage: &Stage) -> anyhow::Result<()> {
    restricted(stage).await?;
    step("one account: whatever it should not do is denied, whatever it needs is allowed");
    stage.install("").await?;
    let keeper = ["list nodes", "watch nodes", "patch nodes", "update configmaps -n perennial"];
    allowed(stage, "perennial", &keeper).await?;
    denied(stage, "perennial", &NOBODY).await?;
    denied(stage, "perennial", &["list listings.perennial.dev -A", "get services -A"]).await?;
    really_denied(stage, "perennial").await?;

    step("a dry run: nothing may be written at all");
    stage.install("--set dryRun=true").await?;
    denied(
        stage,
        "perennial",
        &["patch nodes", "create configmaps -n perennial", "create events -n default"],
    )
    .await?;

    step("an account for each part: recording may not write to Nodes, the lister may not see them");
    stage.install("--set split=true,keeper.split=true,lister.enabled=true,replicas=1").await?;
    for (account, may, may_not) in PARTS {
        allowed(stage, account, may).await?;
        denied(stage, account, may_not).await?;
        denied(stage, account, &NOBODY).await?;
    }
    if stage.cannot_return_nodes().is_none() {
        let node = &stage.nodes().await?[0];
        stage.label(node, "example.com/parts=three").await?;
        let given = stage.given(node).await?;
        stage.delete_and_return(std::slice::from_ref(node)).await?;
        stage.has(node, &given).await?;
        stage.take_all(node).await?;
        step(&format!("with no more than that, {node} was deleted, returned, and has its label"));
    }
    Ok(())
}

/// The namespaces take no pod that could do more, and ours run there.
async fn restricted(stage: &Stage) -> anyhow::Result<()> {
    let privileged = r#"{"apiVersion":"v1","spec":{"containers":[{"name":"c","image":"perennial","securityContext":{"privileged":true}}]}}"#;
    for namespace in [NAMESPACE, SHOP] {
        let words =
            ["run", "intruder", "--image=perennial", "--namespace", namespace, "--overrides", privileged];
        let refused = stage.console.kubectl(words).await;
        let why = refused.err().map(|error| error.to_string()).unwrap_or_default();
        ensure!(why.contains("violates PodSecurity \"restricted"), "a privileged pod in {namespace}: {why}");
    }
    step("the namespaces enforce the restricted level: a privileged pod is refused, ours run");
    Ok(())
}

async fn allowed(stage: &Stage, account: &str, verbs: &[&str]) -> anyhow::Result<()> {
    for words in verbs {
        let answer = can(stage, account, words).await?;
        ensure!(answer, "{account} may not {words}, and has to");
    }
    Ok(())
}

async fn denied(stage: &Stage, account: &str, verbs: &[&str]) -> anyhow::Result<()> {
    for words in verbs {
        let answer = can(stage, account, words).await?;
        ensure!(!answer, "{account} may {words}, and should not");
    }
    Ok(())
}

async fn can(stage: &Stage, account: &str, words: &str) -> anyhow::Result<bool> {
    let mut kubectl = stage.console.kubectl_command();
    // Where the namespace is not named, it must not be one in which more is allowed.
    let user = format!("--as=system:serviceaccount:{NAMESPACE}:{account}");
    let output = kubectl.args(["auth", "can-i"]).args(words.split_whitespace()).arg(user).output().await?;
    match String::from_utf8_lossy(&output.stdout).trim() {
        "yes" => Ok(true),
        // With a reason or without.
        answer if answer.starts_with("no") => Ok(false),
        _ => anyhow::bail!("kubectl auth can-i {words}: {}", String::from_utf8_lossy(&output.stderr).trim()),
    }
}

/// With the account's own token, not in its name.
async fn really_denied(stage: &Stage, account: &str) -> anyhow::Result<()> {
    let console = stage.console_of(NAMESPACE, account).await?;
    let nodes = console.kubectl(["get", "nodes", "--output", "name"]).await?;
    ensure!(!nodes.is_empty(), "the token of {account} is of no use");
    for words in TRIED {
        let why = match console.kubectl(words.split_whitespace()).await {
            Ok(said) => anyhow::bail!("{account} was not kept from `kubectl {words}`: {said}"),
            Err(error) => error.to_string(),
        };
        ensure!(why.contains("forbidden"), "`kubectl {words}` failed for another reason: {why}");
    }
    step(&format!("{} of these really tried with the account's own token: forbidden", TRIED.len()));
    Ok(())
}

//! The page of the fleet in a bucket, by a Listing and by a `CronJob`.

use std::{collections::BTreeSet, time::Instant};

use anyhow::{Context as _, ensure};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use perennial_testkit::{Credentials, S3Server, cluster::HOST, eventually};

use super::fleet;
use crate::{
    stage::{PATIENCE, SHOP, Stage, step},
    web::addresses,
};

const BUCKET: &str = "fleet-pages";

pub(super) async fn play(stage: &Stage) -> anyhow::Result<()> {
    let s3 = S3Server::builder().also_at(HOST).start().await?;
    s3.create_bucket(BUCKET).await?;
    s3.publish_bucket(BUCKET).await?;
    secret(stage, s3.credentials()).await?;
    let result = published(stage, &s3).await;
    // Nobody but the stage is asked for diagnostics.
    if result.is_err() {
        let logs = s3.logs().join("versitygw.log");
        let _ = std::fs::copy(logs, crate::stage::folder().join("versitygw.log"));
    }
    result?;
    stage.helm(&format!("uninstall nginx-fleet --namespace {SHOP} --wait --timeout 3m")).await?;
    stage.kubectl(&format!("delete secret pages --namespace {SHOP}")).await.map(drop)
}

async fn published(stage: &Stage, s3: &S3Server) -> anyhow::Result<()> {
    stage.install("--set lister.enabled=true").await?;
    let bucket = format!(
        "--set autoscaling.enabled=false,publish.secret.name=pages,publish.bucket.name={BUCKET},publish.bucket.endpoint={}",
        s3.url_at(HOST)
    );
    fleet::install(stage, &format!("{bucket} --set replicas=2,publish.mode=listing")).await?;
    readable(stage, s3, "index.html", "a Listing: two nginx").await?;
    stage.kubectl(&format!("scale deployment/nginx-fleet --namespace {SHOP} --replicas 4")).await?;
    stage.console.rolled_out(SHOP, "deployment/nginx-fleet", PATIENCE).await?;
    readable(stage, s3, "index.html", "scaled to four").await?;
    stage
        .kubectl(&format!("wait listing/nginx-fleet --namespace {SHOP} --for=condition=Ready --timeout=5m"))
        .await?;
    let refused = s3.get_as_stranger(&format!("/{BUCKET}?list-type=2")).await?;
    ensure!(!refused.status.is_success(), "a stranger may list the bucket: {}", refused.text());
    secret_only(stage, s3.credentials(), "Listing").await?;

    step("a CronJob instead, its Job begun by hand");
    let once = "--set replicas=4,publish.mode=cronJob,publish.bucket.key=once.html";
    fleet::install(stage, &format!("{bucket} {once}")).await?;
    stage.kubectl(&format!("create job once --from=cronjob/nginx-fleet --namespace {SHOP}")).await?;
    stage.kubectl(&format!("wait job/once --namespace {SHOP} --for=condition=Complete --timeout=5m")).await?;
    readable(stage, s3, "once.html", "by the Job").await?;
    // Its log and its pod are looked at, too, hence now.
    secret_only(stage, s3.credentials(), "CronJob").await?;
    stage.kubectl(&format!("delete job once --namespace {SHOP}")).await.map(drop)
}

/// Anybody gets the page, and it lists exactly the ready ones.
async fn readable(stage: &Stage, s3: &S3Server, key: &str, what: &str) -> anyhow::Result<()> {
    let began = Instant::now();
    let count = eventually(PATIENCE, "anybody can read the page of exactly the ready ones", || async {
        let page = s3.get_as_stranger(&format!("/{BUCKET}/{key}")).await?.good()?;
        let listed = addresses(&page.text());
        let ready: BTreeSet<String> = fleet::ready(stage).await?.into_values().collect();
        ensure!(!ready.is_empty() && listed == ready, "listed are {listed:?}, ready are {ready:?}");
        Ok(Some(ready.len()))
    })
    .await?;
    step(&format!("{what}: {:.1?} later anybody reads of exactly {count} in the bucket", began.elapsed()));
    Ok(())
}

/// The one place where credentials are, made as `make configure` makes it.
async fn secret(stage: &Stage, credentials: &Credentials) -> anyhow::Result<()> {
    let Credentials { access_key, secret_key } = credentials;
    let manifest = serde_json::json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": { "name": "pages", "namespace": SHOP },
        "data": {
            "AWS_ACCESS_KEY_ID": BASE64_STANDARD.encode(access_key),
            "AWS_SECRET_ACCESS_KEY": BASE64_STANDARD.encode(secret_key),
        },
    });
    // Not by `apply`, which would copy them into an annotation.
    let file = stage.private().join("secret.json");
    std::fs::write(&file, manifest.to_string())?;
    stage.kubectl(&format!("create --filename {}", file.display())).await?;
    std::fs::remove_file(file).context("removing the credentials")
}

/// Nothing else that the cluster knows or says has them in it.
async fn secret_only(stage: &Stage, credentials: &Credentials, kind: &str) -> anyhow::Result<()> {
    let folder = tempfile::tempdir_in(stage.private())?;
    // Logs of all pods, events, and every object but Secrets: what a bundle has.
    stage.console.diagnostics(folder.path()).await?;
    let words: Vec<String> = [&credentials.access_key, &credentials.secret_key]
        .into_iter()
        .flat_map(|word| [word.clone(), BASE64_STANDARD.encode(word)])
        .collect();
    let (mut files, mut bytes) = (0, 0);
    let mut folders = vec![folder.path().to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = String::from_utf8_lossy(&std::fs::read(&path)?).into_owned();
            let found = words.iter().any(|word| text.contains(word.as_str()));
            ensure!(!found, "credentials are in {}", path.display());
            files += 1;
            bytes += text.len();
        }
    }
    let objects = std::fs::read_to_string(folder.path().join("kubectl/objects.yaml"))?;
    for kind in ["Pod", "ConfigMap", kind] {
        ensure!(objects.contains(&format!("  kind: {kind}\n")), "no {kind} was looked at");
    }
    let logs = std::fs::read_dir(folder.path().join("kubectl/logs"))?.count();
    ensure!(logs > 0, "no logs were looked at");
    step(&format!(
        "credentials are in none of {files} files ({bytes} bytes) of logs, events, status, pods, ConfigMaps"
    ));
    Ok(())
}

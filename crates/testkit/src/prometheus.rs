//! A real Prometheus, Debian's, that scrapes every second.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, bail};
use http::Request;
use kube::Client;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    endpoint::{Endpoint, anonymous},
    port::Port,
    process::Launch,
    server::Server,
    workdir::Workdir,
};

const READY: Duration = Duration::from_mins(1);

/// A running Prometheus. Stopped and removed on drop.
pub struct Prometheus {
    // Dropped in this order: the process first, then the folder that it writes to.
    _server: Server,
    /// One for all questions: there are many.
    client: Client,
    _workdir: Workdir,
}

/// One series of an answer: its labels, and its value now.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Without the metric's name.
    pub labels: BTreeMap<String, String>,
    /// It may be no number at all.
    pub value: f64,
}

impl Prometheus {
    /// Starts one that scrapes these (each an address `127.0.0.1:PORT`, and the labels of what it serves) under the job
    /// `perennial`, and evaluates these rules, every second.
    pub async fn start(targets: &[(String, BTreeMap<&str, &str>)], rules: &Path) -> anyhow::Result<Self> {
        let targets =
            targets.iter().map(|(address, labels)| json!({ "targets": [address], "labels": labels }));
        let job = json!({ "job_name": "perennial", "static_configs": targets.collect::<Vec<_>>() });
        Self::with_jobs(&[job], &[rules]).await
    }

    /// Starts one that scrapes these, as its `scrape_configs` have them, and evaluates these rules, every second.
    pub async fn with_jobs(jobs: &[Value], rules: &[&Path]) -> anyhow::Result<Self> {
        let workdir = Workdir::create("perennial-prometheus-")?;
        let (port, config) = (Port::claim()?, workdir.path().join("prometheus.yml"));
        fs::write(&config, configuration(jobs, rules).to_string())?;
        let flag = |name: &str, path: &Path| format!("--{name}={}", path.display());
        let launch = Launch::new("prometheus", program()?, workdir.logs().join("prometheus.log")).args([
            flag("config.file", &config),
            flag("storage.tsdb.path", &workdir.folder("data")?),
            format!("--web.listen-address={}", port.address()),
        ]);
        let endpoint = Endpoint::http(&port);
        let client = endpoint.client(&anonymous())?;
        let server = Server::new(launch, port, endpoint, anonymous()).health("/-/ready");
        server.start(READY).await?;
        Ok(Self { _server: server, client, _workdir: workdir })
    }

    /// What an expression is now.
    pub async fn query(&self, expression: &str) -> anyhow::Result<Vec<Sample>> {
        #[derive(Deserialize)]
        struct Answer {
            result: Vec<Series>,
        }
        #[derive(Deserialize)]
        struct Series {
            metric: BTreeMap<String, String>,
            value: (f64, String),
        }
        let answer = self.get(&format!("/api/v1/query?query={}", escaped(expression))).await;
        let answer: Answer = serde_json::from_value(answer.with_context(|| expression.to_owned())?)?;
        let samples = answer.result.into_iter().map(|Series { mut metric, value: (_, value) }| {
            metric.remove("__name__");
            Ok(Sample { labels: metric, value: value.parse()? })
        });
        samples.collect()
    }

    /// One of its own pages under `/api/v1`: the `data` of the answer.
    pub async fn get(&self, path: &str) -> anyhow::Result<Value> {
        let text = self.client.request_text(Request::get(path).body(Vec::new())?).await?;
        let mut answer: Value = serde_json::from_str(&text)?;
        Ok(answer["data"].take())
    }
}

fn configuration(jobs: &[Value], rules: &[&Path]) -> Value {
    json!({
        "global": { "scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s" },
        "rule_files": rules,
        "scrape_configs": jobs,
    })
}

/// Where it is, among all that is on the path.
fn program() -> anyhow::Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found =
        std::env::split_paths(&path).map(|folder| folder.join("prometheus")).find(|file| file.is_file());
    match found {
        Some(program) => Ok(program),
        None => bail!("no prometheus on the path: run `dev/prerequisites prometheus`"),
    }
}

/// As it may stand in an address.
fn escaped(text: &str) -> String {
    text.bytes().fold(String::new(), |mut escaped, byte| {
        if byte.is_ascii_alphanumeric() {
            escaped.push(char::from(byte));
        } else {
            // Writing to a string does not fail.
            let _ = write!(escaped, "%{byte:02X}");
        }
        escaped
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expression_survives_an_address() {
        assert_eq!(escaped("a{b=\"c d\"}"), "a%7Bb%3D%22c%20d%22%7D");
    }
}

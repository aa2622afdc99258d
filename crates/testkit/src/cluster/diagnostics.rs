//! All that may tell why something failed, in one folder.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::Context as _;
use tokio::{process::Command, time::timeout};

use super::{
    command::{command, run},
    console::Console,
    layout::{CONTROL_PLANE, Layout, WORKERS},
    machine::{Machine, search_path},
};

/// For each question: a cluster that is broken must not hold up the telling.
const PATIENCE: Duration = Duration::from_secs(30);

/// What kubectl is asked, and the file that the answer goes to.
const QUESTIONS: [(&str, &[&str]); 8] = [
    ("nodes.txt", &["get", "nodes", "-o", "wide", "--show-labels"]),
    ("nodes-described.txt", &["describe", "nodes"]),
    ("pods.txt", &["get", "pods", "-A", "-o", "wide"]),
    ("pods-described.txt", &["describe", "pods", "-A"]),
    ("events.txt", &["get", "events", "-A", "--sort-by=.lastTimestamp"]),
    ("everything.txt", &["get", "all,configmaps,leases,endpointslices,hpa,ingress", "-A", "-o", "wide"]),
    ("top.txt", &["top", "nodes"]),
    ("releases.txt", &["get", "secrets", "-A", "-l", "owner=helm"]),
];

/// What the host is asked.
const HOST: [(&str, &[&str]); 5] = [
    ("processes.txt", &["ps", "axfo", "pid,stat,etime,rss,args"]),
    ("memory.txt", &["free", "-m"]),
    ("disks.txt", &["df", "-h"]),
    ("network.txt", &["ip", "address"]),
    ("routes.txt", &["ip", "route"]),
];

impl Console {
    /// Writes what kubectl says of everything into a folder, Secrets excepted, and the logs of all pods. What cannot be
    /// had is told in its place.
    pub async fn diagnostics(&self, folder: &Path) -> anyhow::Result<()> {
        let folder = folder.join("kubectl");
        fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
        for (file, question) in QUESTIONS {
            answer(&folder.join(file), self.asking().args(question)).await?;
        }
        self.objects(&folder).await?;
        self.pod_logs(&folder.join("logs")).await
    }

    /// Every kind of object, whole.
    async fn objects(&self, folder: &Path) -> anyhow::Result<()> {
        let kinds = ask(self.asking().args(["api-resources", "--verbs=list", "-o", "name"])).await;
        let kinds = kinds.unwrap_or_default();
        // Credentials have no place in what may be handed on; events are there already.
        let kinds: Vec<&str> =
            kinds.lines().filter(|kind| *kind != "secrets" && !kind.starts_with("events")).collect();
        answer(
            &folder.join("objects.yaml"),
            self.asking().args(["get", "-A", "-o", "yaml", &kinds.join(",")]),
        )
        .await
    }

    async fn pod_logs(&self, folder: &Path) -> anyhow::Result<()> {
        fs::create_dir_all(folder)?;
        let names = r#"-o=jsonpath={range .items[*]}{.metadata.namespace} {.metadata.name}{"\n"}{end}"#;
        let pods = ask(self.asking().args(["get", "pods", "-A", names])).await.unwrap_or_default();
        for (namespace, pod) in pods.lines().filter_map(|line| line.split_once(' ')) {
            for (ending, which) in [("log", "--previous=false"), ("previous.log", "--previous=true")] {
                let log = folder.join(format!("{namespace}.{pod}.{ending}"));
                let question =
                    ["logs", "-n", namespace, pod, "--all-containers", "--prefix", "--timestamps", which];
                match ask(self.asking().args(question)).await {
                    Ok(said) => fs::write(log, said)?,
                    // Most have not run before.
                    Err(_) if which.ends_with("true") => {}
                    Err(error) => fs::write(log, format!("{error:#}\n"))?,
                }
            }
        }
        Ok(())
    }

    fn asking(&self) -> Command {
        let mut kubectl = self.kubectl_command();
        kubectl.arg("--request-timeout=20s");
        kubectl
    }
}

/// The logs of all programs of a cluster of ours, how they were run, and what the machines look like.
pub(super) async fn machines(layout: &Layout, folder: &Path) -> anyhow::Result<()> {
    copy_logs(&layout.logs(), &folder.join("logs"))?;
    let names = (1..=WORKERS).map(|worker| format!("worker-{worker}")).chain([CONTROL_PLANE.to_owned()]);
    for name in names {
        let machine = Machine::new(&name, layout.machine(&name), &layout.logs());
        let told = folder.join("machines").join(&name);
        fs::create_dir_all(&told)?;
        let questions: [(&str, &[&str]); 4] = [
            ("processes.txt", &["ps", "axfo", "pid,stat,etime,rss,args"]),
            ("network.txt", &["ip", "address"]),
            ("routes.txt", &["ip", "route"]),
            ("rules.txt", &["nft", "list", "ruleset"]),
        ];
        for (file, question) in questions {
            match machine.command(question[0]) {
                Ok(mut command) => answer(&told.join(file), command.args(&question[1..])).await?,
                Err(off) => fs::write(told.join(file), format!("{off:#}\n"))?,
            }
        }
    }
    for (file, question) in HOST {
        let mut command = command(question[0]);
        command.args(&question[1..]).env("PATH", search_path());
        answer(&folder.join(file), &mut command).await?;
    }
    Ok(())
}

async fn ask(command: &mut Command) -> anyhow::Result<String> {
    timeout(PATIENCE, run(command)).await.context("no answer")?
}

async fn answer(file: &PathBuf, command: &mut Command) -> anyhow::Result<()> {
    let said = ask(command).await.unwrap_or_else(|error| format!("{error:#}\n"));
    fs::write(file, said).with_context(|| format!("writing {}", file.display()))
}

fn copy_logs(from: &Path, to: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from).with_context(|| format!("reading {}", from.display()))? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_logs(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

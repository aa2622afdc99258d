//! What scenarios have: a cluster, the image on its nodes, kubectl, helm and the charts.

use std::{
    fs, mem,
    path::{Path, PathBuf},
    process::Command,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use anyhow::ensure;
use kube::Client;
use perennial_testkit::cluster::{Cluster, Console};
use tempfile::TempDir;

use crate::args::Args;

/// For each condition. Ten times what any takes on a busy machine of two cores.
pub(crate) const PATIENCE: Duration = Duration::from_mins(5);
/// Where Perennial is.
pub(crate) const NAMESPACE: &str = "perennial";
/// Where the fleet is.
pub(crate) const SHOP: &str = "perennial-shop";
/// The definition of Listings, which an uninstall leaves.
const DEFINITION: &str = "listings.perennial.dev";
/// Two folders below the workspace.
const TESTKIT: &str = env!("CARGO_MANIFEST_DIR");

/// Machines on names that are recycled, and all others with all that can be kept.
const POLICY: &str = r#"
policy:
  rules:
    - name: spot
      selector: lifecycle=spot
      identity: provider
    - name: others
      annotations: { include: ["example.com/*"] }
      taints: { include: ["example.com/*"] }
      cordon: true
"#;

/// Whose cluster it is.
pub(crate) enum Ground {
    /// Ours, which goes with us.
    Ours(Cluster),
    /// Somebody's, with a command that restarts a kubelet if there is one.
    Theirs { restart_kubelet: Option<String> },
}

/// Where it all takes place.
pub(crate) struct Stage {
    pub(crate) ground: Ground,
    pub(crate) console: Console,
    pub(crate) client: Client,
    /// The version, which is the image's tag too.
    pub(crate) version: String,
    /// The image of nginx, as name and tag; the chart's own if there is none.
    pub(crate) nginx: Option<String>,
    /// The package for hosts.
    pub(crate) deb: PathBuf,
    image: PathBuf,
    /// For kubeconfigs and values, which are no part of what a failure leaves.
    private: TempDir,
    /// What is ours on a cluster of somebody else, by kind and name.
    brought: Mutex<Vec<String>>,
}

impl Stage {
    /// Brings up a cluster, unless there is one.
    pub(crate) async fn find(args: &Args) -> anyhow::Result<Self> {
        let version = env!("CARGO_PKG_VERSION").to_owned();
        let image = args.image.clone().unwrap_or_else(|| printed("dev/image/build", "--print"));
        let deb = args.deb.clone().unwrap_or_else(package);
        let (ground, console) = match &args.kubeconfig {
            None => {
                ensure!(image.is_file(), "no image in {}: make image", image.display());
                // Only one that outlives us can be kept.
                let cluster =
                    if args.keep { Cluster::start_detached().await? } else { Cluster::start().await? };
                let console = cluster.console().clone();
                (Ground::Ours(cluster), console)
            }
            Some(kubeconfig) => {
                let restart_kubelet = args.restart_kubelet.clone();
                (Ground::Theirs { restart_kubelet }, Console::new(kubeconfig)?)
            }
        };
        let client = console.client().await?;
        let local = || matches!(ground, Ground::Ours(_)).then(|| "localhost/nginx:local".to_owned());
        let nginx = args.nginx.clone().or_else(local);
        let private = tempfile::Builder::new().prefix("perennial-e2e-").tempdir()?;
        let brought = Mutex::default();
        Ok(Self { ground, console, client, version, nginx, deb, image, private, brought })
    }

    /// Brings onto it what all scenarios need.
    pub(crate) async fn set_up(&self) -> anyhow::Result<()> {
        self.import().await?;
        let definition = format!("get crd {DEFINITION} --ignore-not-found --output name");
        if self.kubectl(&definition).await?.is_empty() {
            self.bring(&format!("crd {DEFINITION}"));
        }
        for namespace in [NAMESPACE, SHOP] {
            self.create_namespace(namespace).await?;
        }
        fs::write(self.values(), format!("image: {{ tag: \"{}\" }}\n{POLICY}", self.version))?;
        Ok(())
    }

    /// Runs kubectl with these words, and returns what it says.
    pub(crate) async fn kubectl(&self, words: &str) -> anyhow::Result<String> {
        self.console.kubectl(words.split_whitespace()).await
    }

    /// Runs helm, likewise.
    pub(crate) async fn helm(&self, words: &str) -> anyhow::Result<String> {
        self.console.helm(words.split_whitespace()).await
    }

    /// Installs or upgrades Perennial to the values of all scenarios, and these.
    pub(crate) async fn install(&self, settings: &str) -> anyhow::Result<()> {
        let (chart, values) = (chart("perennial"), self.values());
        self.helm(&format!(
            "upgrade --install perennial {chart} --namespace {NAMESPACE} --values {} --wait --timeout 5m {settings}",
            values.display()
        ))
        .await?;
        self.console.rolled_out(NAMESPACE, "deployment", PATIENCE).await
    }

    /// Puts the image onto the nodes, under its own name and another one: the next version. Where that is done by
    /// hand, there is one name alone.
    pub(crate) async fn import(&self) -> anyhow::Result<()> {
        let Ground::Ours(cluster) = &self.ground else { return Ok(()) };
        cluster.import_image(&self.image).await?;
        let name = "docker.io/library/perennial";
        cluster.tag_image(&format!("{name}:{}", self.version), &format!("{name}:{NEXT}")).await
    }

    /// The settings of an upgrade that replaces all pods.
    pub(crate) fn next(&self) -> String {
        match self.ground {
            Ground::Ours(_) => format!("--set image.tag={NEXT}"),
            Ground::Theirs { .. } => format!("--set podAnnotations.version={NEXT}"),
        }
    }

    /// The cluster as an account sees it, by a kubeconfig that is made as docs/install.md says.
    pub(crate) async fn console_of(&self, namespace: &str, account: &str) -> anyhow::Result<Console> {
        let path = self.private.path().join(format!("{account}.kubeconfig"));
        let token =
            self.kubectl(&format!("create token {account} --namespace {namespace} --duration 1h")).await?;
        fs::write(&path, self.kubectl("config view --minify --flatten").await?)?;
        let console = Console::new(&path)?;
        console.kubectl(["config", "unset", "users"]).await?;
        let token = format!("--token={}", token.trim());
        console.kubectl(["config", "set-credentials", account, &token]).await?;
        console.kubectl(["config", "set-context", "--current", &format!("--user={account}")]).await?;
        Ok(console)
    }

    /// Why nodes cannot be made to return, if they cannot.
    pub(crate) fn cannot_return_nodes(&self) -> Option<String> {
        match &self.ground {
            Ground::Ours(_) | Ground::Theirs { restart_kubelet: Some(_) } => None,
            Ground::Theirs { restart_kubelet: None } => {
                Some("nobody said how a kubelet of this cluster is restarted (RESTART_KUBELET)".to_owned())
            }
        }
    }

    /// Why pods cannot reach a server beside us, if they cannot.
    pub(crate) fn cannot_reach_us(&self) -> Option<String> {
        match self.ground {
            Ground::Ours(_) => None,
            Ground::Theirs { .. } => Some("pods of this cluster do not reach an S3 server here".to_owned()),
        }
    }

    /// Writes all that may tell why something failed into a folder.
    pub(crate) async fn diagnostics(&self, folder: &Path) -> anyhow::Result<()> {
        match &self.ground {
            Ground::Ours(cluster) => cluster.diagnostics(folder).await,
            Ground::Theirs { .. } => self.console.diagnostics(folder).await,
        }
    }

    /// Takes down what is ours, and removes from a cluster of somebody else what we brought.
    pub(crate) async fn leave(self, keep: bool) -> anyhow::Result<()> {
        if let Ground::Ours(cluster) = self.ground {
            if keep {
                say(&format!("the cluster is left up: KUBECONFIG={}", self.console.kubeconfig().display()));
                return Ok(());
            }
            return cluster.stop();
        }
        let brought = mem::take(&mut *self.brought.lock().unwrap_or_else(PoisonError::into_inner));
        if brought.contains(&format!("namespace {SHOP}")) {
            self.helm(&format!("uninstall nginx-fleet --namespace {SHOP} --ignore-not-found")).await?;
            self.helm(&format!("uninstall perennial --namespace {NAMESPACE} --ignore-not-found")).await?;
        }
        for thing in &brought {
            self.kubectl(&format!("delete {thing} --ignore-not-found")).await?;
        }
        for node in self.nodes().await? {
            self.take_all(&node).await?;
        }
        Ok(())
    }

    fn bring(&self, thing: &str) {
        self.brought.lock().unwrap_or_else(PoisonError::into_inner).push(thing.to_owned());
    }

    /// A folder that goes with us, and is no part of what a failure leaves.
    pub(crate) fn private(&self) -> &Path {
        self.private.path()
    }

    /// The values of all scenarios.
    fn values(&self) -> PathBuf {
        self.private.path().join("values.yaml")
    }

    /// All pods there satisfy the restricted level, or are refused.
    async fn create_namespace(&self, name: &str) -> anyhow::Result<()> {
        let there = self.kubectl(&format!("get namespace {name} --ignore-not-found --output name")).await?;
        ensure!(there.is_empty(), "the namespace {name} is there already: it is somebody's");
        self.bring(&format!("namespace {name}"));
        self.kubectl(&format!("create namespace {name}")).await?;
        self.kubectl(&format!("label namespace {name} pod-security.kubernetes.io/enforce=restricted"))
            .await?;
        Ok(())
    }
}

/// The tag of the image that is upgraded to.
pub(crate) const NEXT: &str = "next";

/// Tells how it goes on.
pub(crate) fn say(what: &str) {
    println!("e2e: {what}");
}

/// Tells a step of a scenario.
pub(crate) fn step(what: &str) {
    say(&format!("  {what}"));
}

/// A file or folder of the repository.
pub(crate) fn path(name: &str) -> PathBuf {
    Path::new(TESTKIT).ancestors().nth(2).unwrap_or(Path::new(".")).join(name)
}

/// A chart of ours.
pub(crate) fn chart(name: &str) -> String {
    path("charts").join(name).display().to_string()
}

/// Where everything goes that a run leaves.
pub(crate) fn folder() -> PathBuf {
    path("target/e2e")
}

/// What a script of ours prints: the place of what it makes.
fn printed(script: &str, argument: &str) -> PathBuf {
    let printed =
        Command::new(path(script)).arg(argument).output().map(|output| output.stdout).unwrap_or_default();
    path(String::from_utf8_lossy(&printed).trim())
}

fn package() -> PathBuf {
    let found = fs::read_dir(path("target/deb")).into_iter().flatten().flatten().map(|entry| entry.path());
    found
        .filter(|path| path.extension().is_some_and(|ending| ending == "deb"))
        .max()
        .unwrap_or_else(|| path("target/deb"))
}

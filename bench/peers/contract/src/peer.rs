//! A peer as a child process.

use std::{path::Path, time::Duration};

use anyhow::{Context, ensure};
use perennial_testkit::{Launch, Process};

/// A peer that is asked to end finishes what it has begun.
const GRACE: Duration = Duration::from_secs(20);

/// In a second, as the kernel counts CPU for everybody.
const TICKS: f64 = 100.0;

/// A program, and its run if it runs.
pub(crate) struct Peer {
    name: String,
    launch: Launch,
    process: Option<Process>,
}

impl Peer {
    pub(crate) fn new(
        program: &Path,
        kubeconfig: &Path,
        namespace: &str,
        logs: &Path,
    ) -> anyhow::Result<Self> {
        let name = program.file_name().context("a path of a program")?.to_string_lossy().into_owned();
        let program = program.canonicalize().with_context(|| format!("no {}", program.display()))?;
        let launch = Launch::new(&name, program, logs.join(format!("{name}.log")))
            .env("KUBECONFIG", kubeconfig)
            .env("NAMESPACE", namespace);
        Ok(Self { name, launch, process: None })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn start(&mut self) -> anyhow::Result<()> {
        self.process = Some(self.launch.start()?);
        Ok(())
    }

    /// Asks it to end, and sees that it does.
    pub(crate) async fn stop(&mut self) -> anyhow::Result<()> {
        let mut process = self.process.take().context("it does not run")?;
        let status = process.stop(GRACE).await?;
        // By itself, or of the signal.
        ensure!(status.success() || status.code().is_none(), "{} ended with {status}", self.name);
        Ok(())
    }

    /// Fails with the end of its log if it has died, or if it should be running and does not.
    pub(crate) fn check(&mut self) -> anyhow::Result<()> {
        self.process.as_mut().context("it does not run")?.check()
    }

    /// Seconds of CPU that it has used.
    pub(crate) fn cpu(&self) -> anyhow::Result<f64> {
        let stat = self.proc("stat")?;
        // Fields are counted from the name, which is in parentheses and may hold anything.
        let fields = stat.rsplit(") ").next().unwrap_or_default().split(' ');
        let ticks: f64 = fields.skip(11).take(2).filter_map(|field| field.parse::<f64>().ok()).sum();
        Ok(ticks / TICKS)
    }

    /// The most memory that it has had at once, and what it has now.
    pub(crate) fn memory(&self) -> anyhow::Result<String> {
        let status = self.proc("status")?;
        let wanted = |line: &&str| line.starts_with("VmHWM") || line.starts_with("VmRSS");
        Ok(status.lines().filter(wanted).collect::<Vec<_>>().join(", ").replace('\t', " "))
    }

    fn proc(&self, file: &str) -> anyhow::Result<String> {
        let pid = self.process.as_ref().context("it does not run")?.pid();
        Ok(std::fs::read_to_string(format!("/proc/{pid}/{file}"))?)
    }

    /// What it has said so far.
    pub(crate) fn said(&self) -> String {
        std::fs::read_to_string(self.launch.log()).unwrap_or_default()
    }
}

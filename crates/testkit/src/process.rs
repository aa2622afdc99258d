//! A child process: started with a log file, watched for early death, stopped whatever happens.
//!
//! [`Launch`] says what to run and can be used again for a restart. [`Process`] is one run of it. The child is in
//! a process group of its own, so that Ctrl-C in a terminal reaches only us and we decide the order of things. It
//! dies with us: by [`Drop`] in the ordinary case, by the kernel in any other (see [`spawner`]).

use std::{
    ffi::OsString,
    fmt, fs,
    future::Future,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    time::Duration,
};

use anyhow::{Context, anyhow};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};

use crate::{eventually::eventually, log};

pub(crate) mod spawner;

/// The environment that children get of ours. Whatever else is set (`ETCD_…`, `LOG_LEVEL`) must not steer a test.
const PASSED_ON: [&str; 5] = ["PATH", "HOME", "TMPDIR", "RUST_BACKTRACE", "LLVM_PROFILE_FILE"];

/// What to run, and where its output goes.
#[derive(Clone, Debug)]
pub struct Launch {
    name: String,
    program: PathBuf,
    arguments: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    log: PathBuf,
}

impl Launch {
    /// A program without arguments. Its output is appended to the file `log`.
    pub fn new(name: impl Into<String>, program: impl Into<PathBuf>, log: impl Into<PathBuf>) -> Self {
        Self {
            name: name.into(),
            program: program.into(),
            arguments: Vec::new(),
            environment: Vec::new(),
            log: log.into(),
        }
    }

    /// Adds one argument.
    #[must_use]
    pub fn arg(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<A: Into<OsString>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// Sets an environment variable. Of our own only a few are passed on, `PATH` and `HOME` among them.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// The file that the output goes to.
    #[must_use]
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// Starts it, and does not wait for anything.
    pub fn start(&self) -> anyhow::Result<Process> {
        let log = fs::File::options().create(true).append(true).open(&self.log);
        let log = log.with_context(|| format!("opening {}", self.log.display()))?;
        // `setpriv` asks the kernel for the signal and then becomes the program, under the same pid.
        let mut command = Command::new("setpriv");
        command
            .args(["--pdeathsig", "KILL", "--"])
            .arg(&self.program)
            .args(&self.arguments)
            .env_clear()
            .envs(PASSED_ON.iter().filter_map(|name| Some((name, std::env::var_os(name)?))))
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        let child = spawner::spawn(command).with_context(|| format!("starting {} by setpriv", self.name))?;
        Ok(Process { name: self.name.clone(), child, log: self.log.clone() })
    }
}

/// A running child. Killed on drop.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until the probe answers (see [`eventually()`]); fails at once when the process dies before, and shows
    /// the tail of its log in either case.
    pub async fn until<T, F, Fut>(&mut self, within: Duration, what: &str, probe: F) -> anyhow::Result<T>
    where
        F: FnMut() -> Fut,
        Fut: Future<Output = anyhow::Result<Option<T>>>,
    {
        let log = self.log.clone();
        let name = self.name.clone();
        tokio::select! {
            died = self.death() => Err(died.into()),
            answer = eventually(within, what, probe) => answer.with_context(|| {
                format!("{name} runs, but its log ends so:\n{}", log::tail(&log))
            }),
        }
    }

    /// Waits until it has ended by itself.
    pub async fn wait(&mut self, within: Duration) -> anyhow::Result<ExitStatus> {
        let what = format!("{} ends", self.name);
        let child = &mut self.child;
        eventually(within, &what, || {
            let ended = child.try_wait();
            async move { Ok(ended?) }
        })
        .await
    }

    /// Asks it to end (SIGTERM), and kills it if it has not after `grace`.
    pub async fn stop(&mut self, grace: Duration) -> anyhow::Result<ExitStatus> {
        if let Some(status) = self.child.try_wait()? {
            return Ok(status);
        }
        self.signal(Signal::SIGTERM)?;
        // One that is paused would not hear it; one that is quick has ended by now.
        let _ = self.signal(Signal::SIGCONT);
        match self.wait(grace).await {
            Ok(status) => Ok(status),
            Err(_) => self.kill(),
        }
    }

    /// Kills it (SIGKILL) and waits for its end.
    pub fn kill(&mut self) -> anyhow::Result<ExitStatus> {
        self.child.kill().with_context(|| format!("killing {}", self.name))?;
        Ok(self.child.wait()?)
    }

    /// Freezes it (SIGSTOP), and returns when it stands still.
    pub async fn pause(&mut self) -> anyhow::Result<()> {
        self.signal(Signal::SIGSTOP)?;
        let stat = format!("/proc/{}/stat", self.pid());
        eventually(Duration::from_secs(5), &format!("{} stands still", self.name), || async {
            let stat = fs::read_to_string(&stat)?;
            // The state follows the name, which is in parentheses and may hold anything.
            let state = stat.rsplit(") ").next().unwrap_or_default();
            if state.starts_with('T') { Ok(Some(())) } else { Err(anyhow!("{state}")) }
        })
        .await
    }

    /// Lets it go on after [`Process::pause`] (SIGCONT).
    pub fn resume(&mut self) -> anyhow::Result<()> {
        self.signal(Signal::SIGCONT)
    }

    /// Fails with the tail of the log if it has ended.
    pub fn check(&mut self) -> anyhow::Result<()> {
        match self.child.try_wait()? {
            None => Ok(()),
            Some(status) => Err(self.died(status).into()),
        }
    }

    fn signal(&mut self, signal: Signal) -> anyhow::Result<()> {
        // Nobody but us reaps it, so until this says that it has ended the pid is its own.
        self.check()?;
        let pid = Pid::from_raw(i32::try_from(self.pid())?);
        kill(pid, signal).with_context(|| format!("sending {signal} to {}", self.name))
    }

    async fn death(&mut self) -> Died {
        let mut ticks = tokio::time::interval(Duration::from_millis(25));
        loop {
            ticks.tick().await;
            if let Ok(Some(status)) = self.child.try_wait() {
                return self.died(status);
            }
        }
    }

    fn died(&self, status: ExitStatus) -> Died {
        Died { name: self.name.clone(), status, tail: log::tail(&self.log) }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Fails only when it has ended and been reaped already, which is what is wanted.
        let _ = self.kill();
    }
}

/// A process ended that should have run on.
#[derive(Debug)]
pub struct Died {
    /// What was run.
    pub name: String,
    /// How it ended.
    pub status: ExitStatus,
    /// The last lines of its log.
    pub tail: String,
}

impl fmt::Display for Died {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} died ({}); its log ends so:\n{}", self.name, self.status, self.tail)
    }
}

impl std::error::Error for Died {}

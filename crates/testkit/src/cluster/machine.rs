//! A machine without hardware: namespaces for processes, mounts, network and name, and runit to supervise in them.
//!
//! All that runs on it descends from its first process, and the kernel kills and unmounts everything when that one
//! dies. So there is no tear-down that could forget something.

use std::{
    fs,
    io::ErrorKind,
    os::unix::{fs::PermissionsExt as _, process::CommandExt as _},
    path::{Path, PathBuf},
    process::{Child, Command as StdCommand, Stdio},
    thread,
    time::Duration,
};

use anyhow::{Context, anyhow, bail, ensure};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use tokio::process::Command;

use super::{
    command::{command, run},
    life::Life,
    wait::wait_until,
};
use crate::{eventually::eventually, log, process::spawner};

const BOOT: &str = include_str!("boot.sh");
/// Milliseconds when nothing else runs.
const PATIENCE: Duration = Duration::from_mins(1);
/// How long a program may take to end before it is killed.
const GRACE: &str = "20";

/// Whether machines go on when the process that started them is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bond {
    /// They die with it, whatever it dies of.
    Owned,
    /// They go on.
    Detached,
}

/// A program that a machine runs. It is started again when it ends.
#[derive(Debug)]
pub(super) struct Service {
    pub(super) name: &'static str,
    pub(super) program: PathBuf,
    pub(super) arguments: Vec<String>,
    /// Where the programs are that it runs itself, before all others.
    pub(super) path: PathBuf,
}

/// One machine: its folder, and what is done with it. Whether it runs is seen by its first process.
#[derive(Clone, Debug)]
pub(super) struct Machine {
    name: String,
    folder: PathBuf,
    logs: PathBuf,
}

impl Machine {
    pub(super) fn new(name: &str, folder: PathBuf, logs: &Path) -> Self {
        Self { name: name.to_owned(), folder, logs: logs.join(name) }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// A file of its configuration.
    pub(super) fn etc(&self, file: &str) -> PathBuf {
        self.folder.join("etc").join(file)
    }

    /// Makes a new machine with empty disks, or the disks of this one empty.
    pub(super) fn create(&self) -> anyhow::Result<()> {
        match fs::remove_dir_all(&self.folder) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(error).with_context(|| format!("removing {}", self.folder.display()));
            }
            _ => {}
        }
        for folder in ["etc", "lib", "log", "services"] {
            fs::create_dir_all(self.folder.join(folder))?;
        }
        fs::create_dir_all(&self.logs)?;
        let id = format!("{:032x}\n", rand::random::<u128>());
        fs::write(self.folder.join("machine-id"), id)?;
        Ok(())
    }

    /// Writes down how a program is run. It does not run before [`Machine::up`].
    pub(super) fn install(&self, service: &Service) -> anyhow::Result<()> {
        let folder = self.folder.join("services").join(service.name);
        let log = quoted(&self.logs.join(format!("{}.log", service.name)).display().to_string());
        fs::create_dir_all(&folder)?;
        fs::write(folder.join("down"), "")?;
        let words: Vec<String> = std::iter::once(service.program.display().to_string())
            .chain(service.arguments.iter().cloned())
            .map(|word| quoted(&word))
            .collect();
        let path = quoted(&service.path.display().to_string());
        let start = format!(
            "#!/bin/sh\nexport PATH={path}:\"$PATH\"\nexec >>{log} 2>&1\nexec {}\n",
            words.join(" \\\n  ")
        );
        let end = format!("#!/bin/sh\necho \"{} ended with status $1\" >>{log}\n", service.name);
        for (file, text) in [("run", start), ("finish", end)] {
            let file = folder.join(file);
            fs::write(&file, text)?;
            fs::set_permissions(&file, fs::Permissions::from_mode(0o755))?;
        }
        Ok(())
    }

    /// Switches it on. Nothing runs on it yet.
    pub(super) async fn boot(&self, bond: Bond) -> anyhow::Result<()> {
        let mark = self.folder.join("init");
        let _ = fs::remove_file(&mark);
        let log = self.logs.join("boot.log");
        let output = fs::File::options().create(true).append(true).open(&log)?;
        let (wrapper, options): (_, &[&str]) = match bond {
            Bond::Owned => ("setpriv", &["--pdeathsig", "KILL", "--", "unshare"]),
            Bond::Detached => ("setsid", &["unshare"]),
        };
        let mut boot = StdCommand::new(wrapper);
        boot.args(options)
            .args(["--mount", "--uts", "--ipc", "--net", "--pid", "--fork", "--kill-child"])
            .args(["sh", "-c", BOOT, "boot"])
            .arg(&self.folder)
            .arg(&self.name)
            .env_clear()
            .env("PATH", search_path())
            .env("HOME", "/root")
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output);
        if bond == Bond::Owned {
            // `setsid` makes a group by itself, and only if it does not lead one already.
            boot.process_group(0);
        }
        let child = spawner::spawn(boot).with_context(|| format!("starting {} by {wrapper}", self.name))?;
        let mut booting = Booting(Some(child));
        let ended = eventually(PATIENCE, &format!("{} is switched on", self.name), || {
            let ended = booting.0.as_mut().and_then(|child| child.try_wait().ok().flatten());
            let on = mark.exists();
            async move { Ok(if on { Some(None) } else { ended.map(Some) }) }
        })
        .await?;
        if let Some(status) = ended {
            bail!("{} cannot be switched on ({status}): {}", self.name, log::tail(&log));
        }
        if let Some(mut child) = booting.0.take() {
            // Somebody has to bury it when the machine is switched off while we go on.
            thread::spawn(move || child.wait());
        }
        Ok(())
    }

    /// Switches it off, without a warning to anybody.
    pub(super) fn cut_power(&self) -> anyhow::Result<()> {
        let Some(init) = self.init() else { return Ok(()) };
        let pid = Pid::from_raw(init.pid);
        let _ = kill(pid, Signal::SIGKILL);
        // The last thing that the kernel does is to let go of the first process.
        wait_until(PATIENCE, &format!("{} is switched off", self.name), || match self.init() {
            None => Ok(()),
            Some(init) => Err(anyhow!("process {} is still there", init.pid)),
        })?;
        let _ = fs::remove_file(self.folder.join("init"));
        Ok(())
    }

    /// The process id of its first process as the host sees it, while it is on.
    pub(super) fn pid(&self) -> anyhow::Result<i32> {
        let init = self.init().with_context(|| format!("{} is switched off", self.name))?;
        Ok(init.pid)
    }

    /// A command that runs on it.
    pub(super) fn command(&self, program: &str) -> anyhow::Result<Command> {
        let mut enter = self.nsenter(&["--mount", "--uts", "--ipc", "--net", "--pid"])?;
        enter.arg(program).env("PATH", search_path());
        Ok(enter)
    }

    /// A command of the host that sees its network, and the host's processes and files.
    pub(super) fn network_command(&self, program: &str) -> anyhow::Result<Command> {
        let mut enter = self.nsenter(&["--net"])?;
        enter.arg(program).env("PATH", search_path());
        Ok(enter)
    }

    fn nsenter(&self, namespaces: &[&str]) -> anyhow::Result<Command> {
        let mut enter = command("nsenter");
        enter.arg("--target").arg(self.pid()?.to_string()).args(namespaces).arg("--");
        Ok(enter)
    }

    /// Starts a program.
    pub(super) async fn up(&self, service: &str) -> anyhow::Result<()> {
        self.supervised(service).await?;
        self.sv(&["up"], service).await
    }

    /// Ends a program, and returns when it has ended.
    pub(super) async fn down(&self, service: &str) -> anyhow::Result<()> {
        self.sv(&["-w", GRACE, "force-stop"], service).await
    }

    /// Kills a program. It is started again, as any that ends.
    pub(super) async fn kill(&self, service: &str) -> anyhow::Result<()> {
        self.sv(&["kill"], service).await
    }

    /// runit finds what it has to supervise some moments after it started.
    async fn supervised(&self, service: &str) -> anyhow::Result<()> {
        let ready = self.folder.join("services").join(service).join("supervise/ok");
        eventually(PATIENCE, &format!("{service} is supervised on {}", self.name), || async {
            ensure!(self.init().is_some(), "{} is switched off", self.name);
            // The pipe is there before anybody listens.
            if ready.exists() { Ok(self.sv(&["status"], service).await.ok()) } else { Ok(None) }
        })
        .await
    }

    async fn sv(&self, order: &[&str], service: &str) -> anyhow::Result<()> {
        let folder = self.folder.join("services").join(service);
        run(command("sv").args(order).arg(folder).env("PATH", search_path())).await?;
        Ok(())
    }

    /// The first process, if it lives.
    fn init(&self) -> Option<Life> {
        Life::recorded(&self.folder.join("init"))
    }
}

/// A machine that nobody could find yet. Dropped, it is switched off.
struct Booting(Option<Child>);

impl Drop for Booting {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Root's programs may not be on the path of who became root.
pub(super) fn search_path() -> String {
    format!(
        "{}:/usr/local/sbin:/usr/sbin:/sbin",
        std::env::var("PATH").unwrap_or_else(|_| "/usr/bin:/bin".into())
    )
}

/// A word for a shell.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_whose_first_process_is_another_by_now_is_off() {
        let folder = tempfile::tempdir().unwrap();
        let machine = Machine::new("worker-1", folder.path().to_owned(), folder.path());
        let pid = std::process::id();
        let ours = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        fs::write(folder.path().join("init"), &ours).unwrap();
        assert!(machine.pid().is_ok());
        let started = Life::parse(&ours).unwrap().started;
        let earlier = ours.replace(&started.to_string(), &(started - 1).to_string());
        fs::write(folder.path().join("init"), earlier).unwrap();
        assert!(machine.pid().unwrap_err().to_string().contains("worker-1 is switched off"));
        machine.cut_power().unwrap();
    }

    #[test]
    fn a_word_is_quoted_for_a_shell() {
        assert_eq!(quoted("it's $HOME"), r"'it'\''s $HOME'");
    }
}

//! A working folder that goes away with its owner, whatever end the owner comes to.
//!
//! [`Drop`] removes it in the ordinary case. For the others (a signal, `abort`, SIGKILL) a janitor waits at the
//! other end of a pipe: a shell in its own process group, which removes the folder when the pipe breaks and does
//! nothing when it is told that all is done.

use std::{
    fs,
    io::Write,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
};

use anyhow::Context;

/// Files may still be written by children that are being killed at the same moment, hence the second try.
const JANITOR: &str = r#"read -r _ && exit; rm -rf -- "$1" 2>/dev/null || { sleep 1; rm -rf -- "$1"; }"#;
/// Set to keep the logs of tests that succeed, too.
const KEEP_LOGS: &str = "PERENNIAL_KEEP_LOGS";

/// A temporary folder with a folder for logs in it.
#[derive(Debug)]
pub(crate) struct Workdir {
    path: PathBuf,
    janitor: Child,
    keep_logs: bool,
}

impl Workdir {
    pub(crate) fn create(prefix: &str) -> anyhow::Result<Self> {
        let path =
            tempfile::Builder::new().prefix(prefix).tempdir().context("making a working folder")?.keep();
        fs::create_dir(path.join("logs"))?;
        let janitor = Command::new("sh")
            .args(["-c", JANITOR, "janitor"])
            .arg(&path)
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("starting sh")?;
        Ok(Self { path, janitor, keep_logs: std::env::var_os(KEEP_LOGS).is_some() })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Where logs go: kept when the thread panics.
    pub(crate) fn logs(&self) -> PathBuf {
        self.path.join("logs")
    }

    /// Keeps the logs whatever happens.
    pub(crate) fn keep_logs(&mut self) {
        self.keep_logs = true;
    }

    /// Makes a folder in it.
    pub(crate) fn folder(&self, name: &str) -> anyhow::Result<PathBuf> {
        let path = self.path.join(name);
        fs::create_dir(&path).with_context(|| format!("making {}", path.display()))?;
        Ok(path)
    }

    fn remove_all_but_logs(&self) -> std::io::Result<()> {
        for entry in fs::read_dir(&self.path)? {
            let entry = entry?;
            if entry.file_name() == "logs" {
                continue;
            }
            if entry.file_type()?.is_dir() {
                fs::remove_dir_all(entry.path())?;
            } else {
                fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }
}

impl Drop for Workdir {
    fn drop(&mut self) {
        let removed = if self.keep_logs || thread::panicking() {
            eprintln!("logs kept in {}", self.logs().display());
            self.remove_all_but_logs()
        } else {
            fs::remove_dir_all(&self.path)
        };
        match removed {
            Ok(()) => {
                if let Some(mut pipe) = self.janitor.stdin.take() {
                    let _ = pipe.write_all(b"done\n");
                }
            }
            // The pipe closes without a word: the janitor's turn.
            Err(error) => eprintln!("{} could not be removed: {error}", self.path.display()),
        }
        // Closes the pipe first.
        let _ = self.janitor.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_goes_with_its_owner() {
        let workdir = Workdir::create("perennial-test-").unwrap();
        let path = workdir.path().to_owned();
        fs::write(path.join("file"), "content").unwrap();
        drop(workdir);
        assert!(!path.exists());
    }

    #[test]
    fn logs_stay_when_the_owner_panics() {
        let (tell, told) = std::sync::mpsc::channel();
        let panicked = thread::spawn(move || {
            let workdir = Workdir::create("perennial-test-").unwrap();
            fs::write(workdir.logs().join("a.log"), "last words").unwrap();
            fs::create_dir(workdir.path().join("data")).unwrap();
            tell.send(workdir.path().to_owned()).unwrap();
            panic!("on purpose");
        });
        assert!(panicked.join().is_err());
        let path = told.recv().unwrap();
        assert_eq!(fs::read_to_string(path.join("logs/a.log")).unwrap(), "last words");
        assert!(!path.join("data").exists());
        fs::remove_dir_all(path).unwrap();
    }

    #[test]
    fn the_janitor_removes_the_folder_of_an_owner_who_vanished() {
        let mut workdir = std::mem::ManuallyDrop::new(Workdir::create("perennial-test-").unwrap());
        // What the kernel does when the owner is killed.
        drop(workdir.janitor.stdin.take());
        workdir.janitor.wait().unwrap();
        assert!(!workdir.path().exists());
    }
}

//! Running commands to their end.

use std::{
    ffi::OsStr,
    io::{Seek as _, Write as _},
    process::Stdio,
    time::Duration,
};

use anyhow::{Context, bail};
use tokio::{process::Command, time::timeout};

/// Longer than any of them takes on a machine that does anything at all.
const PATIENCE: Duration = Duration::from_mins(10);

/// A command whose child does not outlive us.
pub(super) fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    // In a group of its own: Ctrl-C is for us, and we end it in order.
    command.kill_on_drop(true).process_group(0).stdin(Stdio::null());
    command
}

/// Runs it with this text on its standard input.
pub(super) async fn feed(command: &mut Command, input: &str) -> anyhow::Result<String> {
    let mut file = tempfile::tempfile()?;
    file.write_all(input.as_bytes())?;
    file.rewind()?;
    run(command.stdin(file)).await
}

/// Runs it to its end, and returns what it said. A failure shows what it complained of.
pub(super) async fn run(command: &mut Command) -> anyhow::Result<String> {
    let what = words(command);
    let ended = timeout(PATIENCE, command.output()).await;
    let output =
        ended.with_context(|| format!("{what} does not end"))?.with_context(|| format!("starting {what}"))?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr);
        bail!("{what} failed ({}): {}", output.status, format!("{said}{complaint}").trim());
    }
    Ok(said)
}

/// The command as one would type it, for messages.
fn words(command: &Command) -> String {
    let command = command.as_std();
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(OsStr::to_string_lossy).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_a_command_says_is_returned() {
        assert_eq!(run(command("echo").arg("hello")).await.unwrap(), "hello\n");
        assert_eq!(feed(&mut command("cat"), "fed").await.unwrap(), "fed");
    }

    #[tokio::test]
    async fn a_failure_shows_the_command_and_what_it_complained_of() {
        let error = run(command("sh").args(["-c", "echo broken >&2; exit 3"])).await.unwrap_err().to_string();
        assert!(error.contains("sh -c") && error.contains("broken") && error.contains('3'), "{error}");
    }
}

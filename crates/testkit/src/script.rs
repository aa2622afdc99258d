//! Scripts that drive a real browser (`dev/page`), and what they ask for while they run.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, bail};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpListener;

use crate::{log, process::Launch};

/// Runs a script of `dev/page` against `url`, with its log in `folder`. Whatever it asks for goes to `answer`; the
/// script goes on when that is done. Returns what it printed.
///
/// Pictures go to the folder that the environment variable `SCREENSHOTS` names, if there is one.
pub async fn run_script(
    script: &str,
    url: &str,
    folder: &Path,
    within: Duration,
    mut answer: impl AsyncFnMut(&str) -> anyhow::Result<()>,
) -> anyhow::Result<String> {
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../dev/page");
    if !scripts.join("node_modules/.package-lock.json").exists() {
        bail!("what drives the browser is not installed: run make browser");
    }
    let questions = TcpListener::bind(("127.0.0.1", 0)).await?;
    let port = questions.local_addr()?.port();
    let output = folder.join(format!("{script}.log"));
    let mut launch = Launch::new(script, "node", &output)
        .arg(scripts.join(script))
        .arg(url)
        .env("ASK_PORT", port.to_string());
    if let Some(shots) = std::env::var_os("SCREENSHOTS") {
        launch = launch.arg(shots);
    }
    if let Some(browser) = std::env::var_os("CHROMIUM") {
        launch = launch.env("CHROMIUM", browser);
    }
    let mut process = launch.start()?;
    let talk = async {
        let (stream, _) = questions.accept().await?;
        let (read, mut write) = stream.into_split();
        let mut lines = BufReader::new(read).lines();
        while let Some(question) = lines.next_line().await? {
            let done = match answer(&question).await {
                Ok(()) => "done\n".to_owned(),
                Err(error) => format!("{error:#}\n").replace('\n', " ") + "\n",
            };
            write.write_all(done.as_bytes()).await?;
        }
        // It has nothing more to ask.
        std::future::pending::<anyhow::Result<()>>().await
    };
    let ended = tokio::select! {
        // One that ended in the middle of a question has more to say in its log.
        _ = talk => process.wait(within).await,
        ended = process.wait(within) => ended,
    };
    let printed = std::fs::read_to_string(&output).unwrap_or_default();
    let status = ended.with_context(|| format!("{script} did not end:\n{}", log::tail(&output)))?;
    if !status.success() {
        bail!("{script} failed ({status}):\n{printed}");
    }
    Ok(printed)
}

//! What may happen to an S3 server: it is stopped, killed, frozen, and its disk fills up. Address and data stay.

use std::{fs, io, io::Write, path::PathBuf, time::Duration};

use anyhow::{Context, ensure};

use super::{S3Server, builder::READY};

const GRACE: Duration = Duration::from_millis(500);

impl S3Server {
    /// Stops it.
    pub async fn stop(&self) -> anyhow::Result<()> {
        self.server.stop(GRACE).await.map(drop)
    }

    /// Kills it (SIGKILL), in the middle of whatever it does.
    pub async fn kill(&self) -> anyhow::Result<()> {
        self.server.kill().await.map(drop)
    }

    /// Starts it where it was, with what it had, and returns when it is ready.
    pub async fn start_again(&self) -> anyhow::Result<()> {
        self.server.start(READY).await
    }

    /// Freezes it: connections stay open, and nothing answers.
    pub async fn pause(&self) -> anyhow::Result<()> {
        self.server.pause().await
    }

    /// Lets it go on.
    pub async fn resume(&self) -> anyhow::Result<()> {
        self.server.resume().await
    }

    /// Its process id, unless it is stopped.
    pub async fn pid(&self) -> Option<u32> {
        self.server.pid().await
    }

    /// Fills its disk to the last byte. It must have one of its own ([`super::S3Builder::space`]).
    pub async fn fill(&self) -> anyhow::Result<()> {
        let path = self.filler().await?;
        let mut filler = fs::File::create(&path).with_context(|| format!("making {}", path.display()))?;
        loop {
            match filler.write_all(&[b'x'; 4096]) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::StorageFull => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Makes space again after [`S3Server::fill`].
    pub async fn empty(&self) -> anyhow::Result<()> {
        Ok(fs::remove_file(self.filler().await?)?)
    }

    /// A file beside the buckets, by the way that leads to the server's own mounts.
    async fn filler(&self) -> anyhow::Result<PathBuf> {
        ensure!(self.small, "the S3 server has no disk of its own, and all of ours is too much to fill");
        let pid = self.pid().await.context("the S3 server does not run")?;
        Ok(PathBuf::from(format!("/proc/{pid}/root{}/filler", self.data.display())))
    }
}

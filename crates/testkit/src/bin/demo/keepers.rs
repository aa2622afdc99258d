//! The keepers of the demo: started, asked, killed, frozen and woken, one by one or all at once.

use std::{convert::Infallible, ffi::OsString, path::Path, time::Duration};

use anyhow::Context;
use futures::future::{join_all, try_join_all};
use perennial_testkit::{KeeperBuilder, KeeperProcess};
use tokio::time::{interval, timeout};

use crate::{
    board::Shared,
    replicas::{State, Word},
};

/// How often each is asked what it did.
const ASKED: Duration = Duration::from_millis(250);
/// How long we wait for the answer. One that is frozen never gives it.
const ANSWER: Duration = Duration::from_secs(1);

/// All replicas. Killed on drop.
pub(crate) struct Keepers {
    all: Vec<KeeperProcess>,
    board: Shared,
}

impl Keepers {
    /// None yet.
    pub(crate) fn none(board: Shared) -> Self {
        Self { all: Vec::new(), board }
    }

    /// Starts those that the board names, and returns when all are ready.
    pub(crate) async fn start(
        &mut self,
        kubeconfig: &Path,
        namespace: &str,
        logs: &Path,
        arguments: &[OsString],
    ) -> anyhow::Result<()> {
        let program = KeeperProcess::beside_current_exe()?;
        let names: Vec<String> = self.board.lock().replicas.iter().map(|one| one.name.clone()).collect();
        let start = |name| {
            let builder = KeeperProcess::builder(&program, logs).kubeconfig(kubeconfig).namespace(namespace);
            let builder = builder.arg("--roles=keeper,lister").arg("--member").arg(name);
            arguments.iter().fold(builder, KeeperBuilder::arg).start()
        };
        self.all = try_join_all(names.iter().map(start)).await.context("starting the keepers")?;
        self.board.lock().replicas.iter_mut().for_each(|one| one.state = State::Up);
        Ok(())
    }

    /// Where the first serves its status page: also after it was killed and started again.
    pub(crate) fn page(&self) -> &str {
        self.all.first().map_or("", KeeperProcess::url)
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.all.len()
    }

    /// Kills one (kill -9).
    pub(crate) async fn kill(&self, place: usize) -> anyhow::Result<()> {
        self.all[place].kill9().await?;
        self.board.lock().killed(place);
        Ok(())
    }

    /// Kills all (kill -9).
    pub(crate) async fn kill_all(&self) -> anyhow::Result<()> {
        try_join_all((0..self.count()).map(|place| self.kill(place))).await.map(drop)
    }

    /// Freezes one (SIGSTOP).
    pub(crate) async fn pause(&self, place: usize) -> anyhow::Result<()> {
        self.board.lock().paused(place);
        self.all[place].pause().await
    }

    /// Starts again whoever is killed, and wakes whoever is frozen. Returns when all are ready.
    pub(crate) async fn raise(&self) -> anyhow::Result<()> {
        try_join_all((0..self.count()).map(|place| self.raise_one(place))).await.map(drop)
    }

    async fn raise_one(&self, place: usize) -> anyhow::Result<()> {
        match self.state(place) {
            State::Up => return Ok(()),
            State::Paused => self.all[place].resume().await?,
            State::Killed | State::Starting => {
                self.board.lock().replicas[place].state = State::Starting;
                self.all[place].start_again().await.context("starting a keeper again")?;
            }
        }
        self.board.lock().replicas[place].state = State::Up;
        Ok(())
    }

    /// Fails if one that should run has ended by itself.
    pub(crate) async fn check(&self) -> anyhow::Result<()> {
        for (place, keeper) in self.all.iter().enumerate() {
            if self.state(place) != State::Killed {
                keeper.check().await?;
            }
        }
        Ok(())
    }

    /// Asks all that are up what they did, again and again, for ever.
    pub(crate) async fn listen(&self) -> Infallible {
        let mut rounds = interval(ASKED);
        loop {
            rounds.tick().await;
            self.ask().await;
        }
    }

    /// Asks all that are up what they did. One that does not answer in time keeps its last word.
    pub(crate) async fn ask(&self) {
        let up = (0..self.count()).filter(|place| self.state(*place) == State::Up);
        join_all(up.map(|place| async move {
            if let Ok(Ok(metrics)) = timeout(ANSWER, self.all[place].metrics()).await {
                self.board.lock().replicas[place].said(Word::read(&metrics));
            }
        }))
        .await;
    }

    fn state(&self, place: usize) -> State {
        self.board.lock().replicas[place].state
    }
}

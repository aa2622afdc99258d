//! What happens to the fleet: rounds of scenes, each of which ends when all labels are back.

use std::{
    collections::HashSet,
    future::Future,
    time::{Duration, Instant},
};

use futures::{StreamExt as _, TryStreamExt as _, stream};
use perennial_testkit::{eventually, kubelet_labels};
use rand::{
    Rng as _, SeedableRng as _,
    rngs::StdRng,
    seq::{IndexedRandom as _, SliceRandom as _},
};
use tokio::time::{sleep, sleep_until};

use crate::{
    args::Args, board::Shared, cluster::Cluster, edit::Edit, keepers::Keepers, replicas::Replica, view::words,
};

mod scene;

use scene::{SCENES, Scene};

/// Rounds that are played however short the time is: all up, one killed, one paused, all down.
const ALWAYS: usize = 4;
/// So many requests are under way at most.
const CONCURRENCY: usize = 64;
const ZONE: &str = "topology.kubernetes.io/zone";

/// A node that goes, perhaps a moment after somebody changed a label.
struct Leaver {
    index: usize,
    last: Option<Edit>,
}

/// Plays scenes until the time is over.
pub(crate) struct Scenes<'a> {
    cluster: &'a Cluster,
    keepers: &'a Keepers,
    board: Shared,
    random: StdRng,
    lasting: Duration,
    patience: Duration,
    /// How long one step of a scene takes, so that a person can follow.
    beat: Duration,
    /// The replica whose turn it is to suffer: its place, and its name.
    victim: (usize, String),
}

impl<'a> Scenes<'a> {
    pub(crate) fn new(cluster: &'a Cluster, board: Shared, args: &Args) -> Self {
        Self {
            cluster,
            keepers: cluster.keepers(),
            board,
            random: StdRng::seed_from_u64(args.seed),
            lasting: args.lasting,
            patience: args.patience,
            beat: (args.lasting / 20).clamp(Duration::from_millis(100), Duration::from_millis(1_500)),
            victim: (0, String::new()),
        }
    }

    /// Ends early when labels stay away, or are given twice.
    pub(crate) async fn play(mut self) -> anyhow::Result<()> {
        let began = Instant::now();
        self.board.lock().began = began;
        for (round, scene) in SCENES.into_iter().cycle().enumerate() {
            if round >= ALWAYS && began.elapsed() >= self.lasting {
                break;
            }
            self.keepers.check().await?;
            let place = round % self.keepers.count();
            self.victim = (place, self.board.lock().replicas[place].name.clone());
            self.board.lock().round = round + 1;
            let before = self.board.lock().work();

            let leavers = self.perform(scene).await?;
            let title = format!(
                "{:<3}{:<19}{:<26}",
                round + 1,
                scene.name(&self.victim.1),
                summary(&leavers).replace(" go,", ",").replace(" just", "")
            );
            let Some(took) = self.all_whole().await else {
                self.keepers.check().await?;
                self.board.fail(format!("{title}not in {}", words::duration(self.patience)));
                break;
            };
            self.aftermath(scene, &leavers).await?;
            self.keepers.ask().await;
            let again = self.board.lock().lives.given_again();
            if again > 0 {
                self.board.fail(format!("{title}{} given twice", nodes(again)));
                break;
            }
            let (took, work) = (words::duration(took), self.board.lock().work() - before);
            self.board.done(format!("{title}whole in {took}{}", scene.telling(work)));
            self.who_does_what();
        }
        Ok(())
    }

    async fn perform(&mut self, scene: Scene) -> anyhow::Result<Vec<Leaver>> {
        match scene {
            Scene::Maintenance => self.maintenance().await,
            Scene::OneKilled => self.one_killed().await,
            Scene::OnePaused => self.one_paused().await,
            Scene::NobodyWatches => self.nobody_watches().await,
            Scene::ZoneFails => self.zone_fails().await,
            Scene::Flapping => self.flapping().await,
            Scene::KilledGiving => self.killed_giving().await,
        }
    }

    /// What follows when all nodes have their labels: whoever is killed or frozen comes back.
    async fn aftermath(&mut self, scene: Scene, leavers: &[Leaver]) -> anyhow::Result<()> {
        let name = self.victim.1.clone();
        match scene {
            Scene::OneKilled => {
                self.now(format!("{name} starts again"));
                self.keepers.raise().await
            }
            Scene::OnePaused => {
                self.now("people work on the nodes that are back".to_owned());
                self.people_on(leavers).await?;
                self.now(format!("{name} wakes up, with old news: it must not undo anything"));
                self.keepers.raise().await?;
                sleep(self.beat).await;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    async fn maintenance(&mut self) -> anyhow::Result<Vec<Leaver>> {
        let leavers = self.leavers(0.2, |_| true);
        self.now(format!("maintenance: {}", summary(&leavers)));
        self.go(&leavers, self.beat).await?;
        self.now("people work on the others".to_owned());
        self.people(&leavers).await?;
        self.now(format!("{} return bare", nodes(leavers.len())));
        self.come_back(&leavers, self.beat).await?;
        Ok(leavers)
    }

    async fn one_killed(&mut self) -> anyhow::Result<Vec<Leaver>> {
        let leavers = self.leavers(0.5, |_| true);
        let (place, name) = self.victim.clone();
        self.now(format!("half of the fleet: {}", summary(&leavers)));
        self.go(&leavers, self.beat).await?;
        self.people(&leavers).await?;
        self.now(format!("{} return bare, and {name} is killed halfway (kill -9)", nodes(leavers.len())));
        let interrupt = async {
            sleep(self.beat / 2).await;
            self.keepers.kill(place).await
        };
        tokio::try_join!(self.come_back(&leavers, self.beat), interrupt)?;
        self.or_alone(format!("{name} is dead: the others take over")).await?;
        Ok(leavers)
    }

    async fn one_paused(&mut self) -> anyhow::Result<Vec<Leaver>> {
        let leavers = self.leavers(0.25, |_| true);
        let (place, name) = self.victim.clone();
        let (seen, unseen) = leavers.split_at(leavers.len() / 2);
        self.now(format!("{} go", nodes(seen.len())));
        self.go(seen, self.beat).await?;
        self.keepers.pause(place).await?;
        self.now(format!("{name} is paused (SIGSTOP), {}", summary(unseen)));
        self.go(unseen, self.beat).await?;
        self.now(format!("{name} is paused, {} return bare", nodes(leavers.len())));
        self.come_back(&leavers, self.beat).await?;
        self.or_alone(format!("{name} is paused: the others take over")).await?;
        Ok(leavers)
    }

    /// Where there are others, they do what is to be done; one that is alone must be up for that.
    async fn or_alone(&self, others: String) -> anyhow::Result<()> {
        if self.keepers.count() > 1 {
            self.now(others);
            return Ok(());
        }
        self.now(format!("{} is alone, and goes on", self.victim.1));
        self.keepers.raise().await
    }

    async fn nobody_watches(&mut self) -> anyhow::Result<Vec<Leaver>> {
        let leavers = self.leavers(0.25, |_| true);
        let (seen, unseen) = leavers.split_at(leavers.len() / 2);
        self.now(format!("{} go", nodes(seen.len())));
        self.go(seen, self.beat).await?;
        self.keepers.kill_all().await?;
        self.now(format!("kill -9 for all replicas: nobody watches, {}", summary(unseen)));
        self.go(unseen, self.beat).await?;
        self.people(&leavers).await?;
        let dying = &seen[..seen.len() / 4];
        self.now(format!("nobody watches: {} return bare, {} die again", nodes(seen.len()), dying.len()));
        self.come_back(seen, self.beat).await?;
        spread(dying, Duration::ZERO, |leaver| self.cluster.delete(leaver.index)).await?;
        self.come_back(dying, Duration::ZERO).await?;
        self.now(format!("all replicas start again, {} return bare", nodes(unseen.len())));
        tokio::try_join!(self.keepers.raise(), self.come_back(unseen, self.beat))?;
        Ok(leavers)
    }

    async fn zone_fails(&mut self) -> anyhow::Result<Vec<Leaver>> {
        let zone = self.zone();
        let leavers = self.leavers(1.0, |index| kubelet_labels(index).get(ZONE) == Some(&zone));
        self.now(format!("zone {zone} fails: {}", summary(&leavers)));
        self.go(&leavers, Duration::ZERO).await?;
        self.people(&leavers).await?;
        self.now(format!("zone {zone} is back: {} return bare at once", nodes(leavers.len())));
        self.come_back(&leavers, Duration::ZERO).await?;
        Ok(leavers)
    }

    async fn flapping(&mut self) -> anyhow::Result<Vec<Leaver>> {
        let leavers = self.leavers(0.15, |_| true);
        self.now("people work".to_owned());
        self.people(&leavers).await?;
        self.now(format!("{} flap: they go, return, go, return", nodes(leavers.len())));
        let this = &*self;
        spread(&leavers, self.beat, |leaver| async move {
            this.go_one(leaver).await?;
            this.cluster.bring_back(leaver.index).await?;
            this.cluster.delete(leaver.index).await?;
            this.cluster.bring_back(leaver.index).await
        })
        .await?;
        Ok(leavers)
    }

    async fn killed_giving(&mut self) -> anyhow::Result<Vec<Leaver>> {
        let zone = self.zone();
        let leavers = self.leavers(1.0, |index| kubelet_labels(index).get(ZONE) == Some(&zone));
        self.now(format!("zone {zone} fails: {}", summary(&leavers)));
        self.go(&leavers, self.beat).await?;
        self.people(&leavers).await?;
        self.now(format!("{} return bare, and all replicas are killed halfway", nodes(leavers.len())));
        let interrupt = async {
            sleep(self.beat / 2).await;
            self.keepers.kill_all().await?;
            sleep(self.beat / 2).await;
            self.keepers.raise().await
        };
        tokio::try_join!(self.come_back(&leavers, self.beat), interrupt)?;
        Ok(leavers)
    }

    // ── Choices: all made before anything is done, so that the same seed makes the same ones ──

    /// A share of those nodes, whole ones; every third with a label changed right before.
    fn leavers(&mut self, share: f64, among: impl Fn(usize) -> bool) -> Vec<Leaver> {
        let board = self.board.lock();
        let mut there: Vec<usize> =
            (0..board.nodes()).filter(|index| among(*index) && board.is_whole(*index)).collect();
        there.shuffle(&mut self.random);
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
        let count = (there.len() as f64 * share).ceil() as usize;
        let mut leave = |(place, index): (usize, usize)| {
            let last = place.is_multiple_of(3).then(|| Edit::choose(board.wanted(index), &mut self.random));
            Leaver { index, last }
        };
        there.into_iter().take(count).enumerate().map(&mut leave).collect()
    }

    fn zone(&mut self) -> String {
        let index = self.random.random_range(0..self.board.lock().nodes());
        kubelet_labels(index).remove(ZONE).unwrap_or_default()
    }

    // ── Deeds ──

    /// People change labels of some nodes that stay.
    async fn people(&mut self, leavers: &[Leaver]) -> anyhow::Result<()> {
        let leaving = indexes(leavers);
        self.edit_one_in(10, |index| !leaving.contains(&index)).await
    }

    /// People change labels of some of these nodes.
    async fn people_on(&mut self, leavers: &[Leaver]) -> anyhow::Result<()> {
        let back = indexes(leavers);
        self.edit_one_in(3, |index| back.contains(&index)).await
    }

    async fn edit_one_in(&mut self, several: usize, among: impl Fn(usize) -> bool) -> anyhow::Result<()> {
        let edits: Vec<(usize, Edit)> = {
            let board = self.board.lock();
            let there: Vec<usize> =
                (0..board.nodes()).filter(|index| among(*index) && board.is_whole(*index)).collect();
            let chosen: Vec<usize> =
                there.choose_multiple(&mut self.random, there.len().div_ceil(several)).copied().collect();
            let mut edit = |index| (index, Edit::choose(board.wanted(index), &mut self.random));
            chosen.into_iter().map(&mut edit).collect()
        };
        spread(&edits, self.beat, |(index, edit)| self.cluster.edit(*index, edit)).await
    }

    async fn go(&self, leavers: &[Leaver], over: Duration) -> anyhow::Result<()> {
        spread(leavers, over, |leaver| self.go_one(leaver)).await
    }

    async fn go_one(&self, leaver: &Leaver) -> anyhow::Result<()> {
        if let Some(edit) = &leaver.last {
            self.cluster.edit(leaver.index, edit).await?;
        }
        self.cluster.delete(leaver.index).await
    }

    async fn come_back(&self, leavers: &[Leaver], over: Duration) -> anyhow::Result<()> {
        spread(leavers, over, |leaver| self.cluster.bring_back(leaver.index)).await
    }

    /// Waits until every node is there with every label: how long that took, unless it took too long.
    async fn all_whole(&self) -> Option<Duration> {
        let (began, nodes) = (Instant::now(), self.board.lock().nodes());
        eventually(self.patience, "all whole", || async {
            let whole = self.board.lock().whole();
            Ok((whole == nodes).then(|| began.elapsed()))
        })
        .await
        .ok()
    }

    /// For those who see no table.
    fn who_does_what(&self) {
        let tell = |replica: &Replica| {
            let (share, work) = (words::percent(replica.share()), replica.work());
            format!("{} {share} {} {} {}", replica.name, work.restores, work.takeovers, work.duplicates)
        };
        let told: Vec<String> = self.board.lock().replicas.iter().map(tell).collect();
        self.board.aside(format!("share, restores, takeovers, duplicates: {}", told.join("; ")));
    }

    fn now(&self, text: String) {
        self.board.now(text);
    }
}

/// Does something to each, evenly spread over a time.
async fn spread<'i, T, F, Fut>(items: &'i [T], over: Duration, act: F) -> anyhow::Result<()>
where
    F: Fn(&'i T) -> Fut,
    Fut: Future<Output = anyhow::Result<()>>,
{
    let began = tokio::time::Instant::now();
    let step = over / u32::try_from(items.len().max(1))?;
    stream::iter(items)
        .zip(stream::iter(0..))
        .map(|(item, place)| {
            let deed = act(item);
            async move {
                sleep_until(began + step * place).await;
                deed.await
            }
        })
        .buffer_unordered(CONCURRENCY)
        .try_collect()
        .await
}

fn indexes(leavers: &[Leaver]) -> HashSet<usize> {
    leavers.iter().map(|leaver| leaver.index).collect()
}

fn nodes(count: usize) -> String {
    words::count(count, "node")
}

fn summary(leavers: &[Leaver]) -> String {
    let last = leavers.iter().filter(|leaver| leaver.last.is_some()).count();
    format!("{} go, {last} just relabelled", nodes(leavers.len()))
}

//! Makes things go wrong, and right again.

use std::time::Duration;

use anyhow::{Context, anyhow};
use perennial_testkit::{eventually, oracle::Told};
use tokio::time::sleep;

use crate::{cluster::Cluster, plan::Fault};

/// How long replicas may need to notice that versions run backwards.
const NOTICE: Duration = Duration::from_mins(1);

impl Cluster {
    /// Makes all of it happen, one after the other.
    pub(crate) async fn break_things(&mut self, faults: &[Fault]) -> anyhow::Result<()> {
        for fault in faults {
            self.note(format!("{fault:?}"));
            self.foresee(fault);
            self.break_thing(fault).await.with_context(|| format!("{fault:?}"))?;
        }
        self.listen().await
    }

    async fn break_thing(&mut self, fault: &Fault) -> anyhow::Result<()> {
        if fault.is_of_all_servers() {
            self.mend_all().await?;
        }
        let plane = &self.plane;
        match fault {
            Fault::Kill(replica) => self.replicas[*replica].kill().await,
            Fault::Stop(replica) => self.replicas[*replica].stop().await,
            Fault::Start(replica) => self.replicas[*replica].start_again().await,
            Fault::Pause(replica) => self.replicas[*replica].pause().await,
            Fault::Resume(replica) => self.replicas[*replica].resume().await,
            Fault::Join => self.join().await,
            Fault::Leave => match self.replicas.pop() {
                Some(mut replica) => replica.stop().await,
                None => Ok(()),
            },
            Fault::RestartApi => plane.restart_apiserver().await,
            Fault::KillApi(down) => {
                plane.kill_apiserver().await?;
                sleep(*down).await;
                plane.start_apiserver().await
            }
            Fault::FreezeApi(frozen) => {
                plane.pause_apiserver().await?;
                sleep(*frozen).await;
                plane.resume_apiserver().await
            }
            Fault::KillEtcd(down) => {
                plane.kill_etcd().await?;
                sleep(*down).await;
                plane.start_etcd().await
            }
            Fault::FreezeEtcd(frozen) => {
                plane.pause_etcd().await?;
                sleep(*frozen).await;
                plane.resume_etcd().await
            }
            Fault::FillEtcd(full) => {
                plane.fill_etcd(true).await?;
                sleep(*full).await;
                plane.fill_etcd(false).await
            }
            Fault::Harm(server, harm) => self.harm(*server, *harm).await,
            Fault::Mend(server) => self.mend(*server).await,
            Fault::Leader(harm, while_) => self.harm_leader(*harm, *while_).await,
            Fault::Compact => {
                let version = self.oracle.fence().await?;
                self.oracle.tell(Told::Compacted(version));
                plane.compact(version).await
            }
            Fault::Snapshot => {
                self.oracle.fence().await?;
                self.snapshot = Some(plane.snapshot_etcd().await?);
                Ok(())
            }
            Fault::Restore => self.restore().await,
            Fault::Wire(replica, wire) => {
                // As old as what was true before the last few dozen changes.
                let old =
                    self.oracle.look(perennial_testkit::oracle::Judge::version).saturating_sub(40).max(1);
                self.replicas[*replica].bend(*wire, old);
                Ok(())
            }
            Fault::Lift(replica) => {
                self.replicas[*replica].lift();
                Ok(())
            }
        }
    }

    /// Turns etcd back, and waits until every replica has noticed: who writes on before is a confused one, but who
    /// is asleep until versions have caught up could never know.
    async fn restore(&mut self) -> anyhow::Result<()> {
        let Some(snapshot) = self.snapshot.take() else { return Ok(()) };
        self.ready().await?;
        let mut noticed = Vec::new();
        for replica in &self.replicas {
            noticed.push(replica.histories().await?.unwrap_or_default());
        }
        self.oracle.suspend().await?;
        self.plane.restore_etcd(&snapshot).await?;
        self.oracle.restored(snapshot.revision)?;
        for (number, (replica, before)) in self.replicas.iter().zip(noticed).enumerate() {
            eventually(NOTICE, &format!("replica {number} notices that versions ran backwards"), || async {
                let now = replica.histories().await?;
                if now.is_none_or(|now| now > before) { Ok(Some(())) } else { Err(anyhow!("{now:?}")) }
            })
            .await?;
        }
        self.ready().await?;
        self.oracle.fence().await?;
        self.oracle.tell(Told::Noticed);
        Ok(())
    }

    /// Nothing goes wrong any more, but who is down stays down. Returns whether there are some who are and some who
    /// are not: these have to do the work of those.
    pub(crate) async fn ease(&mut self) -> anyhow::Result<bool> {
        self.note("all is healed but for those who are down".to_owned());
        self.snapshot = None;
        self.mend_all().await?;
        for replica in &mut self.replicas {
            replica.ease().await?;
        }
        self.ready().await?;
        self.listen().await?;
        let down = self.replicas.iter().filter(|replica| replica.is_down()).count();
        Ok(0 < down && down < self.replicas.len())
    }

    /// Everything runs, and as many replicas as at first.
    pub(crate) async fn heal(&mut self, replicas: usize) -> anyhow::Result<()> {
        self.note("all is healed".to_owned());
        self.snapshot = None;
        self.foresee_start_of_all(replicas);
        while self.replicas.len() > replicas {
            if let Some(mut replica) = self.replicas.pop() {
                replica.heal().await?;
                replica.stop().await?;
            }
        }
        self.mend_all().await?;
        for replica in &mut self.replicas {
            replica.heal().await?;
        }
        self.ready().await?;
        self.listen().await
    }
}

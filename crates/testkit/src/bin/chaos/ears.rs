//! Who hears everything, so that the oracle excuses what the design excuses and nothing else.
//!
//! A replica's watches go on where they broke, so one that is paused, cut off or kept waiting hears everything, late.
//! One that is started hears everything from its first complete list on. One that has to list anew, or that is told
//! less than the truth, may have missed something: that ends when all is calm.

use perennial_testkit::oracle::Told;

use crate::{
    cluster::Cluster,
    plan::{Fault, Harm, Server, Wire},
};

/// What a replica hears.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hearing {
    /// Everything after this version.
    Since(u64),
    /// It lists, and hears everything once it is in step.
    Starting,
    /// It may miss things.
    Deaf,
}

/// What a replica hears, and whether it is hampered in what it does about it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ears {
    hearing: Hearing,
    /// It was paused, or its wire or the control plane was bent.
    hampered: bool,
    /// Its wire was bent: writes of its may arrive after its death, and its next life may be told to list anew.
    bent: bool,
}

impl Ears {
    pub(crate) fn starting() -> Self {
        Self { hearing: Hearing::Starting, hampered: false, bent: false }
    }

    fn start(&mut self) {
        self.hearing = if self.bent { Hearing::Deaf } else { Hearing::Starting };
        self.hampered = self.bent;
    }

    fn missed(self) -> u64 {
        match self.hearing {
            Hearing::Since(version) => version,
            Hearing::Starting | Hearing::Deaf => u64::MAX,
        }
    }
}

/// Whether a replica that is bent like this may miss an end for good.
fn deafens(wire: Wire) -> bool {
    match wire {
        Wire::Drop
        | Wire::Swap
        | Wire::Expire
        | Wire::StaleLists
        | Wire::EmptyLists
        | Wire::ThinLists
        | Wire::BreakLists => true,
        Wire::LagNodes(_)
        | Wire::LagRecords(_)
        | Wire::HoldNodes
        | Wire::HoldRecords
        | Wire::Duplicate
        | Wire::Replay
        | Wire::CutStreams
        | Wire::Partition
        | Wire::PartitionNodes
        | Wire::PartitionMembers
        | Wire::HoldMembers
        | Wire::LoseReplies
        | Wire::Refuse(_)
        | Wire::Throttle
        | Wire::DelayWrites(_)
        | Wire::HangWrites
        | Wire::Dribble => false,
    }
}

impl Cluster {
    /// Tells what will be missed, before it is.
    pub(crate) fn foresee(&mut self, fault: &Fault) {
        match fault {
            Fault::Start(replica) => self.replicas[*replica].ears.start(),
            Fault::Pause(replica) => self.replicas[*replica].ears.hampered = true,
            Fault::Wire(replica, wire) => {
                let ears = &mut self.replicas[*replica].ears;
                (ears.hampered, ears.bent) = (true, true);
                if deafens(*wire) {
                    ears.hearing = Hearing::Deaf;
                }
            }
            // The API server's memory of events begins with itself, and ends with etcd. A watch that goes on at another
            // server finds what that one remembers.
            Fault::RestartApi
            | Fault::KillApi(_)
            | Fault::Harm(Server::Api(_), Harm::Kill)
            | Fault::Mend(Server::Api(_))
            | Fault::KillEtcd(_)
            | Fault::Restore => {
                for replica in &mut self.replicas {
                    replica.ears.hearing = Hearing::Deaf;
                    replica.ears.hampered = true;
                }
            }
            Fault::Harm(..)
            | Fault::Leader(..)
            | Fault::FreezeApi(_)
            | Fault::FreezeEtcd(_)
            | Fault::FillEtcd(_) => {
                for replica in &mut self.replicas {
                    replica.ears.hampered = true;
                }
            }
            Fault::Join => return self.oracle.tell(Told::Missed { by_one: u64::MAX, by_all: u64::MAX }),
            // Those who end are reckoned with until it is certain that nothing of theirs will come.
            Fault::Kill(_)
            | Fault::Stop(_)
            | Fault::Leave
            | Fault::Resume(_)
            | Fault::Mend(Server::Member(_))
            | Fault::Compact
            | Fault::Snapshot
            | Fault::Lift(_) => return,
        }
        self.reckon();
    }

    /// All who are down will be started.
    pub(crate) fn foresee_start_of_all(&mut self) {
        for replica in self.replicas.iter_mut().filter(|replica| replica.is_down()) {
            replica.ears.start();
        }
        // They count from now on, though they are down.
        let by_one = self.replicas.iter().map(|replica| replica.ears.missed()).max().unwrap_or_default();
        self.oracle.tell(Told::Missed { by_one, by_all: u64::MAX });
    }

    /// Tells who hears everything now: those who were started and are in step, and no longer those who have ended.
    pub(crate) async fn listen(&mut self) -> anyhow::Result<()> {
        let mut in_step = Vec::new();
        for (number, replica) in self.replicas.iter().enumerate() {
            if replica.ears.hearing == Hearing::Starting && !replica.is_down() && replica.is_ready().await {
                in_step.push(number);
            }
        }
        // Whatever was written so far is judged by what could be missed so far.
        let version = self.oracle.fence().await?;
        for number in in_step {
            self.replicas[number].ears.hearing = Hearing::Since(version);
        }
        self.reckon();
        Ok(())
    }

    /// All is calm, and everybody is in step.
    pub(crate) fn calm(&mut self, version: u64) {
        for replica in &mut self.replicas {
            let hearing = Hearing::Since(version);
            replica.ears = Ears { hearing, hampered: false, bent: false };
        }
        self.oracle.tell(Told::Calm);
        self.reckon();
    }

    fn reckon(&self) {
        let may_write = |ears: &Ears, down: bool| !down || ears.bent;
        let all = self.replicas.iter().map(|replica| (replica.ears, replica.is_down()));
        let all: Vec<Ears> =
            all.filter(|(ears, down)| may_write(ears, *down)).map(|(ears, _)| ears).collect();
        let by_one = all.iter().map(|ears| ears.missed()).max().unwrap_or_default();
        // Who is hampered may see an end and not act, or not see that there is one who will.
        let hampered = all.iter().any(|ears| ears.hampered);
        let least = all.iter().map(|ears| ears.missed()).min().filter(|_| !hampered);
        self.oracle.tell(Told::Missed { by_one, by_all: least.unwrap_or(u64::MAX) });
    }
}

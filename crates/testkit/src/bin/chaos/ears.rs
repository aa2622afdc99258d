//! Who hears everything, so that the oracle excuses what the design excuses and nothing else.
//!
//! A replica's watches go on where they broke, so one that is paused, cut off or kept waiting hears everything, late.
//! One that is started hears everything from its first complete list on. One that is told less than the truth may have
//! missed something: that ends when all is calm. One whose server was restarted may have to list anew: what it asks the
//! API server for says how far it had heard, and what it may have missed is what lies between that and its list.
//!
//! Watches end and are asked for again every few seconds, on any server. One that is asked for from before a failure may
//! be refused; one from after it is not.

use perennial_testkit::{
    oracle::{Told, Versions},
    proxy::{Call, Verb},
};

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
#[derive(Clone, Debug)]
pub(crate) struct Ears {
    hearing: Hearing,
    thread: Thread,
    /// The control plane failed, and its watch may be refused until it is asked for from this version or a later one:
    /// from `u64::MAX` while the failure lasts.
    broke: Option<u64>,
    /// It was paused, or its wire was bent.
    hampered: bool,
    /// The control plane failed: it may not have been able to write, nor to see who else is there.
    shaken: bool,
    /// Its wire was bent: writes of its may arrive after its death, and its next life may be told to list anew.
    bent: bool,
    /// It is about to end, and what it holds in memory with it.
    ending: bool,
}

impl Ears {
    pub(crate) fn starting() -> Self {
        Self {
            hearing: Hearing::Starting,
            thread: Thread::default(),
            broke: None,
            hampered: false,
            shaken: false,
            bent: false,
            ending: false,
        }
    }

    /// It hears everything after this version. Its next call has this index, and so often it had to list anew.
    fn since(version: u64, call: u64, unobserved: u64) -> Self {
        let thread = Thread { heard: version, call, unobserved, ..Thread::default() };
        Self { hearing: Hearing::Since(version), thread, ..Self::starting() }
    }

    fn start(&mut self) {
        let (bent, shaken) = (self.bent, self.shaken);
        let hearing = if bent { Hearing::Deaf } else { Hearing::Starting };
        *self = Self { hearing, hampered: bent, bent, shaken, ..Self::starting() };
    }

    /// The versions of the ends that it may have missed.
    fn missed(&self) -> Versions {
        let Hearing::Since(version) = self.hearing else { return Versions::all() };
        let missed = Versions::up_to(version).union(&self.thread.gaps);
        match self.thread.listing.or(self.broke.map(|_| self.thread.heard)) {
            Some(heard) => missed.union(&Versions::between(heard, u64::MAX)),
            None => missed,
        }
    }

    /// Its watch goes on, if no list is under way and it was asked for from after the failure.
    fn take_up(&mut self) {
        let after = self.broke.is_some_and(|broke| self.thread.heard >= broke);
        if after && self.thread.listing.is_none() {
            self.broke = None;
        }
    }
}

/// How a replica follows the nodes, by what it asked the API server for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Thread {
    /// Everything up to this version was heard, or lies in a gap.
    heard: u64,
    /// It lists anew. Until then it had heard everything up to this version.
    listing: Option<u64>,
    /// What it may have missed.
    gaps: Versions,
    /// Calls before this one were looked at.
    call: u64,
    /// How often it was done listing anew, by its own count, and by these calls.
    unobserved: u64,
}

impl Thread {
    /// Looks at further calls. A watch that is taken up says in its query how far the replica had heard.
    fn follow(&mut self, calls: &[Call]) {
        for call in calls {
            self.call = self.call.max(call.index + 1);
            // One node by its name, now or in the past, is no list.
            let nodes = call.resource == "nodes" && call.name.is_none();
            let whole = !call.query.split('&').any(|part| part == "limit=1");
            match call.verb {
                Verb::Watch if nodes => {
                    let from = call.query.split('&').find_map(|part| part.strip_prefix("resourceVersion="));
                    let from = from.and_then(|from| from.parse().ok()).unwrap_or(self.heard);
                    self.listed(from);
                    self.heard = self.heard.max(from);
                }
                Verb::ListWatch | Verb::List if nodes && whole => {
                    self.listing.get_or_insert(self.heard);
                }
                _ => {}
            }
        }
    }

    /// The list under way was complete by this version.
    fn listed(&mut self, version: u64) {
        if let Some(heard) = self.listing.take() {
            self.gaps = self.gaps.union(&Versions::between(heard, version));
            self.unobserved += 1;
            self.heard = self.heard.max(version);
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
            // The API server's memory of events begins with itself, and ends with etcd.
            // With several, a watch that goes on at another one finds what that one remembers. Nobody knows here which server a
            // watch is asked for from next, nor whether one that lost etcd for a while began its memory anew. So this is lenient:
            // every replica may have to list anew.
            Fault::RestartApi
            | Fault::KillApi(_)
            | Fault::KillEtcd(_)
            | Fault::Harm(Server::Api(_), Harm::Kill | Harm::Cut)
            | Fault::Harm(Server::Member(_), _)
            | Fault::Mend(_)
            | Fault::Leader(..) => return self.shake(),
            // Everybody lists everything anew.
            Fault::Restore => {
                for replica in &mut self.replicas {
                    replica.ears.start();
                    replica.ears.shaken = true;
                }
            }
            // Watches there are silent, and go on elsewhere.
            Fault::Harm(Server::Api(_), Harm::Freeze | Harm::Hold | Harm::Delay(_))
            | Fault::FreezeApi(_)
            | Fault::FreezeEtcd(_)
            | Fault::FillEtcd(_) => {
                for replica in &mut self.replicas {
                    replica.ears.shaken = true;
                }
            }
            Fault::Join => {
                let (_, by_all) = self.missed();
                return self.oracle.tell(Told::Missed { by_one: Versions::all(), by_all });
            }
            // What they hold in memory may go with them; what they have sent may still arrive.
            Fault::Kill(replica) | Fault::Stop(replica) => self.replicas[*replica].ears.ending = true,
            Fault::Leave => {
                if let Some(replica) = self.replicas.last_mut() {
                    replica.ears.ending = true;
                }
            }
            Fault::Resume(_) | Fault::Compact | Fault::Snapshot | Fault::Lift(_) => return,
        }
        self.reckon();
    }

    /// The control plane fails so that servers may forget events.
    pub(crate) fn shake(&mut self) {
        for replica in &mut self.replicas {
            replica.ears.broke = Some(u64::MAX);
            replica.ears.shaken = true;
        }
        self.reckon();
    }

    /// All who are down will be started, and those beyond so many will end.
    pub(crate) fn foresee_start_of_all(&mut self, replicas: usize) {
        for replica in self.replicas.iter_mut().skip(replicas) {
            replica.ears.ending = true;
        }
        for replica in self.replicas.iter_mut().filter(|replica| replica.is_down()) {
            replica.ears.start();
        }
        // They count from now on, though they are down.
        let all = self.replicas.iter().map(|replica| replica.ears.missed());
        let by_one = all.fold(Versions::none(), |all, one| all.union(&one));
        let (_, by_all) = self.missed();
        self.oracle.tell(Told::Missed { by_one, by_all });
    }

    /// Tells who hears everything now: those who were started and are in step, those who took up a watch that broke, and
    /// no longer those who have ended.
    pub(crate) async fn listen(&mut self) -> anyhow::Result<()> {
        let (mut in_step, mut listed) = (Vec::new(), Vec::new());
        for (number, replica) in self.replicas.iter_mut().enumerate() {
            if replica.is_down() {
                replica.ears.broke = None;
            } else if replica.ears.hearing == Hearing::Starting && replica.is_ready().await {
                in_step.extend(replica.unobserved().await.map(|unobserved| (number, unobserved)));
            } else if matches!(replica.ears.hearing, Hearing::Since(_)) && replica.take_up().await {
                listed.push(number);
            }
        }
        let united = self.are_united().await;
        // Whatever was written so far is judged by what could be missed so far.
        let version = self.oracle.fence().await?;
        for (number, unobserved) in in_step {
            let replica = &mut self.replicas[number];
            let Ears { broke, shaken, .. } = replica.ears;
            replica.ears = Ears { broke, shaken, ..Ears::since(version, replica.calls(), unobserved) };
        }
        for number in listed {
            self.replicas[number].ears.thread.listed(version);
        }
        for replica in &mut self.replicas {
            replica.ears.ending &= !replica.is_down();
            replica.ears.shaken &= !united;
            // The failure is over, or does not get worse: servers that began anew remember what comes after this version.
            replica.ears.broke = replica.ears.broke.map(|broke| broke.min(version));
        }
        self.reckon();
        Ok(())
    }

    /// Whether everybody who runs is told of everything, knows of all others, and has nothing under way.
    async fn are_united(&self) -> bool {
        let up: Vec<_> = self.replicas.iter().filter(|replica| !replica.is_down()).collect();
        for replica in &up {
            if replica.ears.broke.is_some() || !replica.sees_members(up.len()).await {
                return false;
            }
        }
        true
    }

    /// All is calm, and everybody is in step.
    pub(crate) async fn calm(&mut self, version: u64) -> anyhow::Result<()> {
        for replica in &mut self.replicas {
            let unobserved = replica.unobserved().await;
            replica.ears = match unobserved {
                Some(unobserved) => Ears::since(version, replica.calls(), unobserved),
                None => Ears::starting(),
            };
        }
        self.oracle.tell(Told::Calm);
        self.reckon();
        Ok(())
    }

    fn reckon(&self) {
        let (by_one, by_all) = self.missed();
        self.oracle.tell(Told::Missed { by_one, by_all });
    }

    /// What one of those who may write may have missed, and what was missed by everybody who is able to act.
    fn missed(&self) -> (Versions, Versions) {
        let may_write = self.replicas.iter().filter(|replica| !replica.is_down() || replica.ears.bent);
        let by_one =
            may_write.clone().fold(Versions::none(), |all, replica| all.union(&replica.ears.missed()));
        // Who is hampered may see an end and not act, or not see that there is one who will.
        let hampered = may_write.clone().any(|replica| replica.ears.hampered || replica.ears.shaken);
        let stays = may_write.filter(|replica| !hampered && !replica.is_down() && !replica.ears.ending);
        let by_all = stays.fold(Versions::all(), |all, replica| all.intersection(&replica.ears.missed()));
        (by_one, by_all)
    }
}

impl crate::replica::Replica {
    /// Looks at how it follows the nodes. Returns whether a list that it had to make anew is complete, and no watch is said
    /// to have been taken up since.
    async fn take_up(&mut self) -> bool {
        // First this: what is counted was done by the calls that are looked at then.
        let unobserved = self.unobserved().await;
        let follows = self.follows_nodes();
        let calls = self.calls_since(self.ears.thread.call);
        self.ears.thread.follow(&calls);
        let listed = self.ears.thread.listing.is_some()
            && unobserved.is_some_and(|unobserved| unobserved == self.ears.thread.unobserved + 1);
        if follows {
            self.ears.take_up();
        }
        listed && follows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(index: u64, verb: Verb, query: &str) -> Call {
        Call {
            index,
            verb,
            resource: "nodes".to_owned(),
            namespace: None,
            name: None,
            subresource: None,
            path: "/api/v1/nodes".to_owned(),
            query: query.to_owned(),
        }
    }

    fn ears(calls: &[Call]) -> Ears {
        let mut ears = Ears::since(10, 0, 0);
        ears.thread.follow(calls);
        ears
    }

    #[test]
    fn a_watch_that_is_taken_up_where_it_broke_misses_nothing() {
        let ears = ears(&[
            call(3, Verb::Watch, "watch=true&resourceVersion=20"),
            call(4, Verb::List, "limit=1"),
            call(5, Verb::Watch, "watch=true&resourceVersion=20"),
        ]);
        assert_eq!(ears.missed(), Versions::up_to(10));
        assert_eq!(ears.thread.call, 6);
    }

    #[test]
    fn a_replica_that_lists_anew_may_miss_what_lies_between_its_watch_and_its_list() {
        let calls = [
            call(3, Verb::Watch, "watch=true&resourceVersion=20"),
            call(4, Verb::ListWatch, "watch=true&sendInitialEvents=true"),
        ];
        let listing = ears(&calls);
        assert_eq!(listing.missed(), Versions::up_to(10).union(&Versions::between(20, u64::MAX)));
        let mut listed = listing.clone();
        listed.thread.listed(30);
        assert_eq!(listed.missed(), Versions::up_to(10).union(&Versions::between(20, 30)));
        let mut again = listing;
        again.thread.follow(&[call(5, Verb::Watch, "watch=true&resourceVersion=28")]);
        assert_eq!(again.missed(), Versions::up_to(10).union(&Versions::between(20, 28)));
        assert_eq!(again.thread.unobserved, 1);
    }

    #[test]
    fn until_a_watch_is_asked_for_from_after_a_failure_everything_after_the_last_word_may_be_missed() {
        let mut ears = ears(&[call(3, Verb::Watch, "watch=true&resourceVersion=20")]);
        for broke in [u64::MAX, 30] {
            ears.broke = Some(broke);
            ears.take_up();
            assert_eq!(ears.missed(), Versions::up_to(10).union(&Versions::between(20, u64::MAX)));
        }
        // Watches end and go on all the time; this one may still be refused.
        ears.thread.follow(&[call(4, Verb::Watch, "watch=true&resourceVersion=29")]);
        ears.take_up();
        assert_eq!(ears.missed(), Versions::up_to(10).union(&Versions::between(29, u64::MAX)));
        ears.thread.follow(&[call(5, Verb::Watch, "watch=true&resourceVersion=30")]);
        ears.take_up();
        assert_eq!(ears.missed(), Versions::up_to(10));
    }

    #[test]
    fn a_list_after_a_failure_is_a_watch_taken_up() {
        let mut ears = ears(&[call(3, Verb::ListWatch, "watch=true&sendInitialEvents=true")]);
        ears.broke = Some(30);
        ears.take_up();
        assert_eq!(ears.missed(), Versions::all());
        ears.thread.listed(30);
        ears.take_up();
        assert_eq!(ears.missed(), Versions::up_to(30));
    }

    #[test]
    fn a_node_that_is_read_by_its_name_is_no_list() {
        let mut past = call(3, Verb::List, "fieldSelector=metadata.name%3Da&resourceVersion=15");
        past.name = Some("a".to_owned());
        assert_eq!(ears(&[past]).missed(), Versions::up_to(10));
    }

    #[test]
    fn one_that_is_started_again_counts_once_it_is_in_step() {
        let mut ears = ears(&[]);
        ears.start();
        assert_eq!(ears.missed(), Versions::all());
    }
}

//! Draws what goes wrong with one server of several, and knows in what state it left them.

use std::{collections::BTreeSet, time::Duration};

use rand::{Rng as _, rngs::StdRng, seq::IndexedRandom as _};

use super::{Fault, Shape};

/// One server of several.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Server {
    /// An API server.
    Api(usize),
    /// An etcd member.
    Member(usize),
}

/// What goes wrong with a server, until it is mended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Harm {
    /// SIGKILL.
    Kill,
    /// SIGSTOP.
    Freeze,
    /// Its connections break: those of an API server to etcd, those of a member to the others.
    Cut,
    /// The same connections are silent.
    Hold,
    /// The same connections are slow.
    Delay(Duration),
}

pub(super) struct Servers {
    all: Shape,
    harmed: BTreeSet<Server>,
}

impl Servers {
    pub(super) fn new(all: Shape) -> Self {
        Self { all, harmed: BTreeSet::new() }
    }

    /// What goes wrong next, or is mended; nothing where there is one of each.
    pub(super) fn next(&mut self, random: &mut StdRng) -> Option<Fault> {
        let harmed: Vec<Server> = self.harmed.iter().copied().collect();
        let well = self.may_be_harmed();
        let mended = harmed.choose(random).copied();
        if let Some(server) = mended.filter(|_| well.is_empty() || random.random_bool(0.4)) {
            self.harmed.remove(&server);
            return Some(Fault::Mend(server));
        }
        let late = Duration::from_millis(random.random_range(50..1_000));
        let harms = [Harm::Kill, Harm::Freeze, Harm::Freeze, Harm::Cut, Harm::Hold, Harm::Delay(late)];
        let harm = *harms.choose(random)?;
        let members_are_well = harmed.iter().all(|server| matches!(server, Server::Api(_)));
        if self.all.etcd_members > 2 && members_are_well && random.random_bool(0.2) {
            return Some(Fault::Leader(harm, Duration::from_millis(random.random_range(500..3_000))));
        }
        let server = *well.choose(random)?;
        self.harmed.insert(server);
        Some(Fault::Harm(server, harm))
    }

    /// People are connected to the first API server, and that to the first member: both stay well. So does a majority of
    /// the members.
    fn may_be_harmed(&self) -> Vec<Server> {
        let harmed = self.harmed.iter().filter(|server| matches!(server, Server::Member(_))).count();
        let members = if harmed < (self.all.etcd_members - 1) / 2 { self.all.etcd_members } else { 0 };
        let all = (1..self.all.api_servers).map(Server::Api).chain((1..members).map(Server::Member));
        all.filter(|server| !self.harmed.contains(server)).collect()
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng as _;

    use super::*;

    #[test]
    fn the_first_server_and_a_majority_of_the_members_are_never_harmed() {
        let shape = Shape { nodes: 1, replicas: 1, api_servers: 3, etcd_members: 3 };
        let (mut servers, mut random) = (Servers::new(shape), StdRng::seed_from_u64(1));
        let mut harmed = BTreeSet::new();
        for _ in 0..1_000 {
            match servers.next(&mut random) {
                Some(Fault::Harm(server, _)) => assert!(harmed.insert(server), "{server:?} twice"),
                Some(Fault::Mend(server)) => assert!(harmed.remove(&server), "{server:?} was well"),
                Some(Fault::Leader(..)) => {
                    assert!(harmed.iter().all(|server| matches!(server, Server::Api(_))));
                }
                other => panic!("{other:?}"),
            }
            assert!(!harmed.contains(&Server::Api(0)) && !harmed.contains(&Server::Member(0)));
            assert!(harmed.iter().filter(|server| matches!(server, Server::Member(_))).count() <= 1);
        }
    }

    #[test]
    fn one_of_each_is_left_alone() {
        let shape = Shape { nodes: 1, replicas: 1, api_servers: 1, etcd_members: 1 };
        assert_eq!(Servers::new(shape).next(&mut StdRng::seed_from_u64(1)), None);
    }
}

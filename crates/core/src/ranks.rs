//! Who comes first for a name: ownership is a delay, not a lock.
//!
//! Every member ranks all members for every name by rendezvous hashing, from their names alone, so that two that
//! know the same members agree without a word, and one that joins or leaves moves only its own share. Rank 0 acts
//! at once, rank r after r × takeover if there is still something to do. Two that disagree do the same work twice,
//! and the data fences that. Only what history does not tell is decided by who waits for whom: see [`Turn`].

use std::time::Duration;

use crate::kept::Digest;

/// Whose turn a plan is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Turn {
    /// The first in line acts at once.
    Anyone,
    /// This replica did not see what it is about to look for: one who did may act first.
    Witness,
    /// History does not tell either: everyone who may have seen it goes first.
    Everyone,
}

/// The members that share some work, as one of them sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ranks {
    me: u64,
    /// Without `me`.
    others: Vec<u64>,
    /// Whether `me` does this work too.
    included: bool,
}

impl Ranks {
    /// The ranks among `members`, as `me` sees them. One that is not among them comes after all of them.
    #[must_use]
    pub fn new<'a>(me: &str, members: impl IntoIterator<Item = &'a str>) -> Self {
        let mut ranks = Self { me: Digest::of(me.as_bytes()).number(), ..Self::default() };
        for member in members {
            if member == me {
                ranks.included = true;
            } else {
                ranks.others.push(Digest::of(member.as_bytes()).number());
            }
        }
        ranks.others.sort_unstable();
        ranks.others.dedup();
        ranks
    }

    /// How many members there are.
    #[must_use]
    pub fn members(&self) -> usize {
        self.others.len() + usize::from(self.included)
    }

    /// This member's place in line for a name.
    #[must_use]
    pub fn rank(&self, name: &str) -> usize {
        if !self.included {
            return self.others.len();
        }
        let name = Digest::of(name.as_bytes()).number();
        let mine = (score(self.me, name), self.me);
        self.others.iter().filter(|other| (score(**other, name), **other) > mine).count()
    }

    /// How long this member leaves a name to others, from when there is something to do about it. So many
    /// `others`, whatever they do, may have seen what it did not.
    #[must_use]
    pub fn delay(&self, name: &str, turn: Turn, others: usize, takeover: Duration) -> Duration {
        let rank = self.rank(name);
        let places = match turn {
            Turn::Anyone => rank,
            Turn::Witness => rank + usize::from(others > 0),
            Turn::Everyone => rank + others + 1,
        };
        takeover.saturating_mul(u32::try_from(places).unwrap_or(u32::MAX))
    }
}

/// For how many of the names each member comes first.
#[must_use]
pub fn shares<'a>(members: &[&str], names: impl IntoIterator<Item = &'a str>) -> Vec<usize> {
    let numbers: Vec<u64> = members.iter().map(|member| Digest::of(member.as_bytes()).number()).collect();
    let mut shares = vec![0; members.len()];
    for name in names {
        let name = Digest::of(name.as_bytes()).number();
        let first = numbers.iter().enumerate().max_by_key(|(_, member)| (score(**member, name), **member));
        if let Some((first, _)) = first {
            shares[first] += 1;
        }
    }
    shares
}

/// The weight of a member for a name: splitmix64's finalizer over both.
fn score(member: u64, name: u64) -> u64 {
    let mut mixed = member ^ name.rotate_left(32);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TAKEOVER: Duration = Duration::from_secs(5);

    fn names(count: usize) -> Vec<String> {
        (0..count).map(|at| format!("replica-{at}")).collect()
    }

    fn ranks(me: &str, members: &[String]) -> Ranks {
        Ranks::new(me, members.iter().map(String::as_str))
    }

    #[test]
    fn shares_are_what_each_member_finds_for_itself() {
        let (members, nodes) = (names(5), (0..200).map(|at| format!("node-{at}")).collect::<Vec<_>>());
        let by_name: Vec<&str> = members.iter().map(String::as_str).collect();
        let shares = shares(&by_name, nodes.iter().map(String::as_str));
        for (member, share) in members.iter().zip(&shares) {
            let ranks = ranks(member, &members);
            assert_eq!(nodes.iter().filter(|node| ranks.rank(node) == 0).count(), *share);
        }
        assert_eq!(shares.iter().sum::<usize>(), nodes.len());
    }

    proptest! {
        #[test]
        fn members_that_know_the_same_members_take_different_places(count in 1usize..=50, node in "[a-z0-9.-]{1,40}") {
            let members = names(count);
            let mut places: Vec<usize> = members.iter().map(|me| ranks(me, &members).rank(&node)).collect();
            places.sort_unstable();
            prop_assert_eq!(places, (0..count).collect::<Vec<_>>());
        }

        #[test]
        fn one_that_leaves_moves_nobody_but_those_behind_it(count in 2usize..20, node in "[a-z]{1,9}") {
            let before = names(count);
            let (gone, left) = before.split_last().unwrap();
            let left_at = ranks(gone, &before).rank(&node);
            for me in left {
                let rank = ranks(me, &before).rank(&node);
                prop_assert_eq!(ranks(me, left).rank(&node), rank - usize::from(rank > left_at));
            }
        }
    }

    #[test]
    fn everyone_gets_about_a_fair_share() {
        for count in [2, 3, 10, 50] {
            let members = names(count);
            let all = 10_000;
            for me in &members {
                let ranks = ranks(me, &members);
                let mine = (0..all).filter(|at| ranks.rank(&format!("node-{at}")) == 0).count();
                let fair = all / count;
                assert!(
                    mine > fair * 7 / 10 && mine < fair * 13 / 10,
                    "{me} of {count}: {mine}, fair is {fair}"
                );
            }
        }
    }

    #[test]
    fn alone_there_is_nobody_to_wait_for_but_in_doubt() {
        let alone = ranks("a", &["a".to_owned()]);
        assert_eq!(alone.delay("node", Turn::Anyone, 0, TAKEOVER), Duration::ZERO);
        assert_eq!(alone.delay("node", Turn::Witness, 0, TAKEOVER), Duration::ZERO);
        assert_eq!(alone.delay("node", Turn::Everyone, 0, TAKEOVER), TAKEOVER);
    }

    #[test]
    fn in_doubt_everybody_goes_first() {
        let members = names(5);
        for me in &members {
            let ranks = ranks(me, &members);
            let last = TAKEOVER * 4;
            assert!(ranks.delay("node", Turn::Anyone, 4, TAKEOVER) <= last);
            assert!(ranks.delay("node", Turn::Everyone, 4, TAKEOVER) > last);
        }
    }

    #[test]
    fn one_without_the_role_comes_last() {
        let members = names(3);
        assert_eq!(ranks("reader", &members).rank("node"), 3);
        assert_eq!(Ranks::new("reader", []).delay("node", Turn::Anyone, 0, TAKEOVER), Duration::ZERO);
    }

    #[test]
    fn a_name_twice_among_the_members_counts_once() {
        let twice = ["a", "b", "b", "a"].map(str::to_owned);
        assert_eq!(ranks("a", &twice).members(), 2);
    }

    #[test]
    fn ranks_are_the_same_in_every_binary() {
        let members = names(4);
        let order =
            |node: &str| -> Vec<usize> { members.iter().map(|me| ranks(me, &members).rank(node)).collect() };
        assert_eq!([order("worker-1"), order("worker-2")], [vec![0, 3, 1, 2], vec![1, 0, 3, 2]]);
    }
}

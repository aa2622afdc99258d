//! The members' Leases as the watch tells of them, judged by our own clock.
//!
//! A member is alive for as long as its Lease changed within the time that the Lease itself states. Wall clocks
//! are never compared: what counts is when this process saw a version that it had not seen before.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use perennial_core::kept::Digest;
use tokio::time::Instant;

use super::lease::{LeaseKey, LeaseObject};
use super::roster::Role;

/// A Lease that was not renewed for so many times its duration is nobody's any more.
const LONG: u32 = 10;

/// The Leases that were seen, by name.
#[derive(Debug)]
pub(crate) struct Others {
    /// The name of our own Lease.
    me: String,
    leases: BTreeMap<String, Lease>,
    list: u32,
    /// Our own Lease, as last read or written.
    own: Option<LeaseKey>,
    /// This process wrote it.
    written: bool,
    /// Another process wrote it after we did.
    contested: Option<String>,
    told: bool,
}

#[derive(Debug)]
struct Lease {
    key: LeaseKey,
    member: String,
    roles: Vec<Role>,
    policy: Option<Digest>,
    duration: Option<Duration>,
    /// When it was last seen to change.
    changed: Instant,
    list: u32,
}

impl Lease {
    fn dies(&self, default: Duration) -> Instant {
        self.changed + self.duration.unwrap_or(default)
    }

    fn is_long_dead(&self, now: Instant, default: Duration) -> bool {
        self.changed + self.duration.unwrap_or(default) * LONG <= now
    }
}

/// A member that is alive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Live<'a> {
    pub(crate) name: &'a str,
    pub(crate) roles: &'a [Role],
    pub(crate) policy: Option<Digest>,
}

impl Others {
    pub(crate) fn new(me: &str) -> Self {
        let leases = BTreeMap::new();
        Self { me: me.to_owned(), leases, list: 0, own: None, written: false, contested: None, told: false }
    }

    pub(crate) fn listing(&mut self) {
        self.list += 1;
    }

    /// A list is complete: what it lacked is gone. A member that is missed by mistake does not know it, and at worst
    /// its work is done twice, until its next renewal tells of it and of its policy again.
    pub(crate) fn listed(&mut self) {
        let list = self.list;
        self.leases.retain(|_, lease| lease.list == list);
    }

    pub(crate) fn seen(&mut self, object: &LeaseObject, now: Instant) {
        let Some(member) = object.member().map(str::to_owned) else { return };
        let key = object.key();
        if key.name == self.me {
            if self.own.as_ref().is_none_or(|own| own.uid != key.uid || own.version < key.version) {
                self.contested = self.written.then(|| object.holder().to_owned());
                self.own = Some(key);
            }
            return;
        }
        let (roles, policy, duration) = (object.roles(), object.policy(), object.duration());
        let known = self.leases.get(&key.name).filter(|known| known.key == key);
        let changed = known.map_or(now, |known| known.changed);
        self.leases.insert(
            key.name.clone(),
            Lease { key, member, roles, policy, duration, changed, list: self.list },
        );
    }

    pub(crate) fn removed(&mut self, object: &LeaseObject) {
        let key = object.key();
        if self.own.as_ref().is_some_and(|own| own.uid == key.uid) {
            self.own = None;
        }
        self.leases.retain(|_, lease| lease.key.uid != key.uid);
    }

    /// Another history: nothing that was seen counts.
    pub(crate) fn forget(&mut self) {
        self.leases.clear();
        self.own = None;
    }

    /// Our own Lease, to be written over.
    pub(crate) fn own(&self) -> Option<LeaseKey> {
        self.own.clone()
    }

    /// Our own Lease was written.
    pub(crate) fn wrote(&mut self, lease: &LeaseObject) {
        let key = lease.key();
        if self.own.as_ref().is_none_or(|own| own.uid != key.uid || own.version < key.version) {
            self.own = Some(key);
        }
        self.written = true;
    }

    /// Our own Lease is gone.
    pub(crate) fn lost(&mut self) {
        self.own = None;
    }

    /// Whether another process writes our Lease as well. Says so once.
    pub(crate) fn contested(&mut self, holder: &str) -> bool {
        let contested = self.contested.take().is_some_and(|other| other != holder);
        contested && !std::mem::replace(&mut self.told, true)
    }

    /// The other members that are alive.
    pub(crate) fn live(&self, now: Instant, default: Duration) -> Vec<Live<'_>> {
        let alive = self.leases.values().filter(|lease| lease.dies(default) > now);
        alive.map(|lease| Live { name: &lease.member, roles: &lease.roles, policy: lease.policy }).collect()
    }

    /// The policies that others run under. One whose Lease ran out may well be at work: it counts until it is
    /// long dead, or gone.
    pub(crate) fn policies(&self, now: Instant, default: Duration) -> BTreeSet<Digest> {
        let there = self.leases.values().filter(|lease| !lease.is_long_dead(now, default));
        there.filter_map(|lease| lease.policy).collect()
    }

    /// When the next of them dies, unless it renews; far away where nobody is left to die.
    pub(crate) fn next_death(&self, default: Duration) -> Instant {
        let now = Instant::now();
        let deaths = self.leases.values().map(|lease| lease.dies(default)).filter(|at| *at > now);
        deaths.min().unwrap_or(now + Duration::from_hours(1))
    }

    /// Leases whose members are long dead.
    pub(crate) fn long_dead(&self, now: Instant, default: Duration) -> Vec<LeaseKey> {
        let long = self.leases.values().filter(|lease| lease.is_long_dead(now, default));
        long.map(|lease| lease.key.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const DEFAULT: Duration = Duration::from_secs(15);

    fn lease(member: &str, version: u64, spec: &Value) -> LeaseObject {
        serde_json::from_value(json!({
            "metadata": {
                "name": format!("perennial-member.{member}"),
                "uid": uuid::Uuid::from_u128(member.len() as u128),
                "resourceVersion": version.to_string(),
                "annotations": { "perennial.dev/roles": "capture,sing,restore" },
            },
            "spec": spec,
        }))
        .unwrap()
    }

    fn spec(seconds: i64) -> Value {
        json!({ "holderIdentity": "x_1", "leaseDurationSeconds": seconds })
    }

    fn alive(others: &Others, now: Instant) -> Vec<&str> {
        others.live(now, DEFAULT).iter().map(|live| live.name).collect()
    }

    fn after(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[tokio::test]
    async fn a_member_lives_for_as_long_as_its_lease_says_after_it_last_changed() {
        let (mut others, start) = (Others::new("perennial-member.me"), Instant::now());
        others.seen(&lease("a", 1, &spec(15)), start);
        assert_eq!(alive(&others, start + after(14)), ["a"]);
        assert_eq!(others.next_death(DEFAULT), start + after(15));
        assert!(alive(&others, start + after(15)).is_empty());
        others.seen(&lease("a", 2, &spec(15)), start + after(20));
        assert_eq!(alive(&others, start + after(30)), ["a"]);
    }

    #[tokio::test]
    async fn a_version_that_was_seen_before_is_no_sign_of_life() {
        let (mut others, start) = (Others::new("perennial-member.me"), Instant::now());
        others.seen(&lease("a", 1, &spec(15)), start);
        others.listing();
        others.seen(&lease("a", 1, &spec(15)), start + after(14));
        others.listed();
        assert!(alive(&others, start + after(15)).is_empty());
    }

    #[tokio::test]
    async fn one_that_leaves_or_is_not_listed_is_gone_at_once() {
        let (mut others, start) = (Others::new("perennial-member.me"), Instant::now());
        for member in ["a", "bb", "ccc"] {
            others.seen(&lease(member, 1, &spec(15)), start);
        }
        others.removed(&lease("a", 9, &spec(15)));
        assert_eq!(alive(&others, start), ["bb", "ccc"]);
        others.listing();
        others.seen(&lease("ccc", 1, &spec(15)), start);
        others.listed();
        assert_eq!(alive(&others, start), ["ccc"]);
    }

    #[tokio::test]
    async fn broken_leases_count_by_our_own_duration_and_nobody_lives_for_ever() {
        let start = Instant::now();
        for broken in [json!(null), json!({}), spec(0), spec(-5)] {
            let mut others = Others::new("perennial-member.me");
            others.seen(&lease("a", 1, &broken), start);
            assert_eq!(alive(&others, start + after(14)), ["a"], "{broken}");
            assert!(alive(&others, start + after(15)).is_empty(), "{broken}");
        }
        let mut others = Others::new("perennial-member.me");
        others.seen(&lease("a", 1, &spec(i64::MAX)), start);
        assert!(alive(&others, start + after(301)).is_empty());
    }

    #[tokio::test]
    async fn roles_that_are_not_known_here_are_passed_over() {
        let (mut others, start) = (Others::new("perennial-member.me"), Instant::now());
        others.seen(&lease("a", 1, &spec(15)), start);
        assert_eq!(others.live(start, DEFAULT)[0].roles, [Role::Capture, Role::Restore]);
    }

    #[tokio::test]
    async fn a_policy_that_is_not_told_or_broken_is_nobodys() {
        let (mut others, start) = (Others::new("perennial-member.me"), Instant::now());
        let digest = Digest::of(b"policy");
        for (version, (told, policy)) in
            (1..).zip([(json!(null), None), (json!("7"), None), (json!(digest.to_string()), Some(digest))])
        {
            let mut object =
                json!({ "metadata": { "name": "perennial-member.a", "uid": uuid::Uuid::nil() } });
            object["metadata"]["resourceVersion"] = json!(version.to_string());
            if !told.is_null() {
                object["metadata"]["annotations"] = json!({ "perennial.dev/policy": told });
            }
            others.seen(&serde_json::from_value(object).unwrap(), start);
            assert_eq!(others.live(start, DEFAULT)[0].policy, policy, "{told}");
        }
    }

    #[tokio::test]
    async fn the_policy_of_one_whose_lease_ran_out_counts_until_it_is_long_dead() {
        let (mut others, start) = (Others::new("perennial-member.me"), Instant::now());
        let digest = Digest::of(b"policy");
        let mut object = json!({
            "metadata": { "name": "perennial-member.a", "uid": uuid::Uuid::nil(), "resourceVersion": "1" },
        });
        object["metadata"]["annotations"] = json!({ "perennial.dev/policy": digest.to_string() });
        others.seen(&serde_json::from_value(object).unwrap(), start);
        assert!(others.live(start + after(15), DEFAULT).is_empty());
        assert_eq!(others.policies(start + after(149), DEFAULT), BTreeSet::from([digest]));
        assert!(others.policies(start + after(150), DEFAULT).is_empty());
    }

    #[tokio::test]
    async fn other_leases_of_the_namespace_are_nobodys() {
        let (mut others, start) = (Others::new("perennial-member.me"), Instant::now());
        let mut leader = json!({ "metadata": { "name": "cert-manager", "uid": uuid::Uuid::nil(), "resourceVersion": "1" } });
        others.seen(&serde_json::from_value(leader.clone()).unwrap(), start);
        leader["metadata"]["name"] = json!("perennial-member.");
        others.seen(&serde_json::from_value(leader).unwrap(), start);
        assert!(alive(&others, start).is_empty());
        assert!(others.long_dead(start + after(100_000), DEFAULT).is_empty(), "and not ours to remove");
    }

    #[tokio::test]
    async fn only_what_is_long_dead_is_removed() {
        let (mut others, start) = (Others::new("perennial-member.me"), Instant::now());
        others.seen(&lease("a", 1, &spec(15)), start);
        others.seen(&lease("me", 1, &spec(15)), start);
        assert!(others.long_dead(start + after(149), DEFAULT).is_empty());
        let dead = others.long_dead(start + after(150), DEFAULT);
        assert_eq!(dead.iter().map(|key| key.name.as_str()).collect::<Vec<_>>(), ["perennial-member.a"]);
    }

    #[tokio::test]
    async fn a_namesake_is_told_once_and_a_dead_predecessor_is_not() {
        let (mut others, start) = (Others::new("perennial-member.me"), Instant::now());
        others.seen(&lease("me", 1, &spec(15)), start);
        assert!(!others.contested("me_2"), "it was there before us");
        others.wrote(&lease("me", 2, &spec(15)));
        others.seen(&lease("me", 2, &spec(15)), start);
        assert!(!others.contested("me_2"), "that is our own");
        others.seen(&lease("me", 3, &spec(15)), start);
        assert!(others.contested("me_2"));
        others.seen(&lease("me", 4, &spec(15)), start);
        assert!(!others.contested("me_2"));
    }
}

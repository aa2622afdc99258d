//! Labels that give a node rights come back onto the same machine alone, and are not lost while they wait.

use perennial_core::record::{Record, State};

use crate::world::{Labels, MARK, World, pairs};

const NODE: &str = "worker-1";
const WITHOUT_PROVIDER: &str = "rules: [{privileged: {withoutProviderID: true}}]";

fn plain() -> Labels {
    pairs([("team", "blue")])
}

fn rights() -> Labels {
    pairs([("node-role.kubernetes.io/gpu", ""), ("node-restriction.kubernetes.io/tenant", "blue")])
}

fn all() -> Labels {
    plain().into_iter().chain(rights()).collect()
}

fn waiting(record: &Record) -> Labels {
    record.waiting.iter().map(|(key, waiting)| (key.clone(), waiting.value.clone())).collect()
}

impl World {
    /// A node with rights, recorded, and away.
    async fn with_rights_away(&self, provider: Option<&str>) {
        match provider {
            Some(provider) => self.machine(NODE, provider, &all()).await,
            None => self.register(NODE, &all()).await,
        };
        let known = |record: &Record| {
            record.kept.labels == all() && record.incarnation.provider_id.as_deref() == provider
        };
        self.record_becomes(NODE, "knows its machine", known).await;
        self.delete(NODE).await;
        self.record_becomes(NODE, "is closed", |record| record.state == State::Closed).await;
    }

    /// Got its plain labels back, while the others wait.
    async fn rights_wait(&self) {
        self.labels_become(NODE, &plain()).await;
        let open = |record: &Record| record.state == State::Open && waiting(record) == rights();
        self.record_becomes(NODE, "is open while rights wait", open).await;
        self.caught_up_but(1).await;
        assert_eq!(self.labels(NODE).await, plain());
    }

    /// Got everything, and nothing waits any more.
    async fn rights_are_back(&self) {
        self.labels_become(NODE, &all()).await;
        let settled = |record: &Record| {
            record.state == State::Open && record.kept.labels == all() && record.waiting.is_empty()
        };
        self.record_becomes(NODE, "holds everything and nothing waits", settled).await;
        self.caught_up().await;
    }
}

#[tokio::test]
async fn rights_come_back_with_the_rest_onto_the_same_machine() {
    let world = World::start().await;
    world.with_rights_away(Some("cloud://a")).await;
    world.machine(NODE, "cloud://a", &pairs([])).await;
    world.rights_are_back().await;
    let node = world.node(NODE).await;
    let mark = format!("{},privileged", node.metadata.uid.unwrap());
    assert_eq!(node.metadata.annotations, Some(pairs([(MARK, &mark)])));
    // It is what it was: no former state, and nothing that went back and forth.
    let record = world.record(NODE).await.unwrap();
    let former: Vec<_> = record.previous.iter().map(|previous| &previous.kept.labels).collect();
    assert!(!former.contains(&&plain()), "{former:?}");
    assert_eq!((record.churn(), world.metric("churn_total").to_string()), (0, "0".to_owned()));
}

#[tokio::test]
async fn rights_wait_for_the_provider_id_and_come_back_with_it() {
    let world = World::start().await;
    world.with_rights_away(Some("cloud://a")).await;
    world.register(NODE, &pairs([])).await;
    world.rights_wait().await;

    world.identify(NODE, "cloud://a").await;
    world.rights_are_back().await;
}

#[tokio::test]
async fn privileged_labels_follow_the_provider_id_though_the_replicas_clock_is_two_hours_ahead() {
    let world = World::without_keeper("").await;
    let keeper = world.start_keeper_with_clock(2, "").await;
    world.with_rights_away(Some("cloud://a")).await;
    world.register(NODE, &pairs([])).await;
    world.labels_become(NODE, &plain()).await;
    let open = |record: &Record| record.state == State::Open && waiting(record) == rights();
    world.record_becomes(NODE, "is open while privileged labels wait", open).await;

    world.identify(NODE, "cloud://a").await;
    world.labels_become(NODE, &all()).await;
    assert!(keeper.stop().await.unwrap().success());
}

#[tokio::test]
async fn rights_that_wait_survive_another_death() {
    let world = World::start().await;
    world.with_rights_away(Some("cloud://a")).await;
    world.register(NODE, &pairs([])).await;
    world.rights_wait().await;
    world.delete(NODE).await;
    let closed = |record: &Record| record.state == State::Closed && waiting(record) == rights();
    world.record_becomes(NODE, "is closed with rights that wait", closed).await;

    world.machine(NODE, "cloud://a", &pairs([])).await;
    world.rights_are_back().await;
}

#[tokio::test]
async fn rights_that_wait_survive_a_restart_of_the_keeper() {
    let mut world = World::start().await;
    world.with_rights_away(Some("cloud://a")).await;
    world.register(NODE, &pairs([])).await;
    world.rights_wait().await;
    world.stop_keeper().await;
    world.identify(NODE, "cloud://a").await;
    world.start_keeper().await;
    world.rights_are_back().await;
}

#[tokio::test]
async fn rights_are_dropped_and_told_when_another_machine_bears_the_name() {
    let world = World::start().await;
    world.with_rights_away(Some("cloud://a")).await;
    world.machine(NODE, "cloud://b", &pairs([])).await;

    let dropped = |record: &Record| record.state == State::Open && record.waiting.is_empty();
    let record = world.record_becomes(NODE, "is open without rights", dropped).await;
    assert_eq!(record.kept.labels, plain());
    let event = world.event(NODE, "RestoreSkipped").await;
    assert!(event.message.unwrap().contains("another machine"));
    world.caught_up().await;
    assert_eq!(world.labels(NODE).await, plain());
}

#[tokio::test]
async fn rights_that_wait_are_dropped_when_the_machine_turns_out_to_be_another() {
    let world = World::start().await;
    world.with_rights_away(Some("cloud://a")).await;
    world.register(NODE, &pairs([])).await;
    world.rights_wait().await;

    world.identify(NODE, "cloud://b").await;
    world.record_becomes(NODE, "is without rights", |record| record.waiting.is_empty()).await;
    world.caught_up().await;
    assert_eq!(world.labels(NODE).await, plain());
}

#[tokio::test]
async fn on_bare_metal_rights_wait_for_a_person() {
    let world = World::start().await;
    world.with_rights_away(None).await;
    world.register(NODE, &pairs([])).await;
    world.rights_wait().await;
    let event = world.event(NODE, "RestoreSkipped").await;
    assert!(event.message.unwrap().contains("withoutProviderID"));
}

#[tokio::test]
async fn on_bare_metal_rights_come_back_by_name_where_the_policy_says_so() {
    let world = World::with_policy(WITHOUT_PROVIDER).await;
    world.with_rights_away(None).await;
    world.register(NODE, &pairs([])).await;
    world.rights_are_back().await;
}

#[tokio::test]
async fn rights_that_waited_on_bare_metal_come_back_once_the_policy_says_so() {
    let world = World::start().await;
    world.with_rights_away(None).await;
    world.register(NODE, &pairs([])).await;
    world.rights_wait().await;
    world.change_policy(WITHOUT_PROVIDER);
    world.rights_are_back().await;
}

#[tokio::test]
async fn a_person_who_sets_a_right_while_it_waits_has_the_last_word() {
    let world = World::start().await;
    world.with_rights_away(Some("cloud://a")).await;
    world.register(NODE, &pairs([])).await;
    world.rights_wait().await;
    world.label(NODE, "node-restriction.kubernetes.io/tenant", Some("red")).await;
    let mut expected = all();
    expected.insert("node-restriction.kubernetes.io/tenant".to_owned(), "red".to_owned());

    world.identify(NODE, "cloud://a").await;
    world.labels_become(NODE, &expected).await;
    world.recorded(NODE, &expected).await;
    world.caught_up().await;
    assert_eq!(world.labels(NODE).await, expected);
}

#[tokio::test]
async fn rights_of_a_machine_that_nobody_read_while_it_lived_come_back_onto_it() {
    let mut world = World::without_keeper("").await;
    let again = async |world: &World| drop(world.machine(NODE, "cloud://a", &pairs([])).await);
    let _proxy = world.passed_by("cloud://a", &all(), again).await;
    world.rights_are_back().await;
}

#[tokio::test]
async fn rights_of_a_machine_that_nobody_read_while_it_lived_are_not_anothers() {
    let mut world = World::without_keeper("").await;
    let other = async |world: &World| drop(world.machine(NODE, "cloud://b", &pairs([])).await);
    let _proxy = world.passed_by("cloud://a", &all(), other).await;
    world.labels_become(NODE, &plain()).await;
    world.record_becomes(NODE, "is without rights", |record| record.waiting.is_empty()).await;
    world.caught_up().await;
    assert_eq!(world.labels(NODE).await, plain());
}

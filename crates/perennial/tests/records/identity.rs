//! Which node gets a record back: by its name, or by its machine.

use k8s_openapi::api::core::v1::Node;
use perennial_core::record::{Record, State};
use perennial_testkit::proxy::{Fault, Matcher, Proxy};
use serde_json::json;

use crate::world::{Labels, World, connect, pairs};

const NODE: &str = "worker-1";
const PROVIDER: &str = "rules: [{identity: provider}]";
const MACHINE: &str = "rules: [{identity: machine}]";

fn labels() -> Labels {
    pairs([("team", "blue"), ("example.com/rack", "r12")])
}

impl World {
    /// A node of this name on this machine.
    pub(crate) async fn machine(&self, name: &str, provider: &str, labels: &Labels) -> Node {
        self.create(json!({
            "metadata": { "name": name, "labels": labels },
            "spec": { "providerID": provider },
        }))
        .await
    }

    /// The cloud controller says which machine a node is.
    pub(crate) async fn identify(&self, name: &str, provider: &str) {
        self.patch(name, json!({ "spec": { "providerID": provider } })).await;
    }

    /// A machine that was recorded under this name and is away.
    async fn machine_away(&self, name: &str, provider: &str) -> Record {
        self.machine(name, provider, &labels()).await;
        self.recorded(name, &labels()).await;
        self.delete(name).await;
        self.closed(name, &labels()).await
    }

    /// A machine bore the name and is gone before the keeper, which runs, hears of either: it never read who that
    /// was. Whatever happens meanwhile it hears of with it.
    pub(crate) async fn passed_by(
        &mut self,
        provider: &str,
        labels: &Labels,
        meanwhile: impl AsyncFnOnce(&Self),
    ) -> Proxy {
        let proxy = Proxy::start(self.kubeconfig()).await.unwrap();
        let account = connect(proxy.kubeconfig()).await;
        self.interpose(|_| (account, ()));
        self.start_keeper().await;
        let held = proxy.inject(Matcher::watches("nodes"), Fault::Hold);
        self.machine(NODE, provider, labels).await;
        self.delete(NODE).await;
        meanwhile(self).await;
        held.lift();
        proxy
    }
}

#[tokio::test]
async fn under_identity_provider_another_machine_gets_nothing_and_the_old_state_stays_for_undo() {
    let world = World::with_policy(PROVIDER).await;
    let before = world.machine_away(NODE, "cloud://a").await;

    let own = pairs([("team", "red")]);
    let born = world.machine(NODE, "cloud://b", &own).await;
    let record = world.recorded(NODE, &own).await;
    assert_eq!(record.state, State::Open);
    assert_eq!(record.incarnation.provider_id.as_deref(), Some("cloud://b"));
    assert_eq!(record.previous[0].kept, before.kept);
    assert_eq!(record.previous[0].incarnation, before.incarnation);
    let event = world.event(NODE, "RestoreSkipped").await;
    assert!(event.message.unwrap().contains("another machine"));
    world.caught_up().await;
    assert_eq!(world.node(NODE).await, born);
}

#[tokio::test]
async fn under_identity_provider_the_same_machine_gets_its_own_back() {
    let world = World::with_policy(PROVIDER).await;
    world.machine_away(NODE, "cloud://a").await;
    world.machine(NODE, "cloud://a", &pairs([])).await;
    world.labels_become(NODE, &labels()).await;
}

#[tokio::test]
async fn under_identity_provider_a_machine_that_is_not_known_yet_waits_until_it_is() {
    let world = World::with_policy(PROVIDER).await;
    world.machine_away(NODE, "cloud://a").await;

    let born = world.register(NODE, &pairs([])).await;
    world.caught_up_but(1).await;
    assert_eq!(world.node(NODE).await, born);

    world.identify(NODE, "cloud://a").await;
    world.labels_become(NODE, &labels()).await;
}

#[tokio::test]
async fn under_identity_provider_a_machine_that_turns_out_to_be_another_gets_nothing() {
    let world = World::with_policy(PROVIDER).await;
    world.machine_away(NODE, "cloud://a").await;
    world.register(NODE, &pairs([("own", "yes")])).await;
    world.caught_up_but(1).await;

    world.identify(NODE, "cloud://b").await;
    let record = world.recorded(NODE, &pairs([("own", "yes")])).await;
    assert_eq!(record.previous[0].kept.labels, labels());
    world.caught_up().await;
    assert_eq!(world.labels(NODE).await, pairs([("own", "yes")]));
}

#[tokio::test]
async fn under_identity_machine_a_machine_finds_its_record_under_a_new_name() {
    let world = World::with_policy(MACHINE).await;
    world.machine_away(NODE, "cloud://a").await;

    world.machine("worker-2", "cloud://a", &pairs([("own", "yes")])).await;
    let mut all = labels();
    all.extend(pairs([("own", "yes")]));
    world.labels_become("worker-2", &all).await;
    let record = world.recorded("worker-2", &all).await;
    assert_eq!(record.incarnation.provider_id.as_deref(), Some("cloud://a"));
}

#[tokio::test]
async fn under_identity_machine_a_new_name_is_found_in_records_of_an_earlier_keeper_too() {
    let mut world = World::with_policy(MACHINE).await;
    world.machine_away(NODE, "cloud://a").await;
    world.stop_keeper().await;
    world.start_keeper().await;

    world.machine("worker-2", "cloud://a", &pairs([])).await;
    world.labels_become("worker-2", &labels()).await;
}

#[tokio::test]
async fn under_identity_machine_a_machine_may_be_back_before_its_end_is_recorded() {
    let world = World::with_policy(MACHINE).await;
    world.machine(NODE, "cloud://a", &labels()).await;
    world.recorded(NODE, &labels()).await;
    world.delete(NODE).await;
    world.machine("worker-2", "cloud://a", &pairs([])).await;
    world.labels_become("worker-2", &labels()).await;
}

#[tokio::test]
async fn under_identity_machine_the_latest_of_its_names_counts() {
    let world = World::with_policy(MACHINE).await;
    world.machine_away(NODE, "cloud://a").await;
    world.machine("worker-2", "cloud://a", &pairs([])).await;
    world.labels_become("worker-2", &labels()).await;
    world.label("worker-2", "team", Some("red")).await;
    let latest = pairs([("team", "red"), ("example.com/rack", "r12")]);
    world.recorded("worker-2", &latest).await;
    world.delete("worker-2").await;
    world.closed("worker-2", &latest).await;

    world.machine("worker-3", "cloud://a", &pairs([])).await;
    world.labels_become("worker-3", &latest).await;
}

#[tokio::test]
async fn under_identity_machine_another_machine_of_the_same_name_gets_nothing() {
    let world = World::with_policy(MACHINE).await;
    world.machine_away(NODE, "cloud://a").await;
    let born = world.machine(NODE, "cloud://b", &pairs([("own", "yes")])).await;
    world.recorded(NODE, &pairs([("own", "yes")])).await;
    world.caught_up().await;
    assert_eq!(world.node(NODE).await, born);
}

#[tokio::test]
async fn a_machine_that_returns_to_its_first_name_gets_what_it_bore_last() {
    let world = World::with_policy(MACHINE).await;
    world.machine_away(NODE, "cloud://a").await;
    world.machine("worker-2", "cloud://a", &pairs([])).await;
    world.labels_become("worker-2", &labels()).await;
    world.label("worker-2", "team", Some("red")).await;
    let latest = pairs([("team", "red"), ("example.com/rack", "r12")]);
    world.recorded("worker-2", &latest).await;
    world.delete("worker-2").await;
    world.machine(NODE, "cloud://a", &pairs([])).await;
    world.labels_become(NODE, &latest).await;
}

#[tokio::test]
async fn a_machine_that_nobody_read_while_it_lived_is_remembered_with_its_end() {
    let mut world = World::without_keeper(PROVIDER).await;
    let _proxy = world.passed_by("cloud://a", &labels(), async |_| {}).await;
    let record = world.closed(NODE, &labels()).await;
    assert_eq!(record.incarnation.provider_id.as_deref(), Some("cloud://a"));
    world.machine(NODE, "cloud://a", &pairs([])).await;
    world.labels_become(NODE, &labels()).await;
}

#[tokio::test]
async fn a_machine_that_nobody_read_while_it_lived_gets_its_own_back() {
    let mut world = World::without_keeper(PROVIDER).await;
    let again = async |world: &World| drop(world.machine(NODE, "cloud://a", &pairs([])).await);
    let _proxy = world.passed_by("cloud://a", &labels(), again).await;
    world.labels_become(NODE, &labels()).await;
}

#[tokio::test]
async fn what_a_machine_left_that_nobody_read_while_it_lived_is_not_given_to_an_unknown_one() {
    let mut world = World::without_keeper(PROVIDER).await;
    let other = async |world: &World| drop(world.register(NODE, &pairs([("own", "yes")])).await);
    let _proxy = world.passed_by("cloud://a", &labels(), other).await;
    world.closed(NODE, &labels()).await;
    world.caught_up_but(1).await;
    assert_eq!(world.labels(NODE).await, pairs([("own", "yes")]));

    world.identify(NODE, "cloud://b").await;
    let record = world.recorded(NODE, &pairs([("own", "yes")])).await;
    assert_eq!(record.previous[0].kept.labels, labels());
    world.caught_up().await;
    assert_eq!(world.labels(NODE).await, pairs([("own", "yes")]));
}

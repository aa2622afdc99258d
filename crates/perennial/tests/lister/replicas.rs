//! Several listers: one publishes, the others stand by, and none undoes what a newer one said.

use perennial_core::ranks::Ranks;
use perennial_testkit::eventually;
use perennial_testkit::proxy::{Fault, Matcher, Proxy};

use crate::world::{SOON, World, into_config_map, lines, stamps};

/// A listing for which this member comes first.
fn first_for(world: &World, member: &str) -> String {
    let ranks = Ranks::new(member, ["a", "b"]);
    let names = (0..).map(|number| format!("web-{number}"));
    names.into_iter().find(|name| ranks.rank(&format!("{}/{name}", world.namespace)) == 0).unwrap()
}

async fn both_know_each_other(world: &World) {
    eventually(SOON, "both know each other", || async {
        let live: Vec<f64> = world.listers.values().map(|one| one.metric("member_live")).collect();
        if live == [2.0, 2.0] { Ok(Some(())) } else { Err(anyhow::anyhow!("{live:?}")) }
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn one_publishes_and_both_serve() {
    let mut world = World::start().await;
    world.start_lister("b").await;
    both_know_each_other(&world).await;
    let name = first_for(&world, "a");
    world.endpoints("web", &["10.0.0.1"]).await;
    world.listing(&name, into_config_map("web")).await;
    world.is(&name, "True", "Published").await;
    for last in 2..=6 {
        let address = format!("10.0.0.{last}");
        world.endpoints("web", &[&address]).await;
        world.says("out", &lines(&[&address])).await;
        for lister in ["a", "b"] {
            world.serves(lister, &name, &lines(&[&address])).await;
        }
    }
    assert!(world.listers["a"].metric("listing_published_total") >= 6.0);
}

#[tokio::test]
async fn a_dead_lister_is_covered_by_the_other() {
    let mut world = World::start().await;
    world.start_lister("b").await;
    both_know_each_other(&world).await;
    let name = first_for(&world, "a");
    world.endpoints("web", &["10.0.0.1"]).await;
    world.listing(&name, into_config_map("web")).await;
    world.is(&name, "True", "Published").await;
    world.listers.remove("a").unwrap().crash();
    world.endpoints("web", &["10.0.0.2"]).await;
    world.says("out", &lines(&["10.0.0.2"])).await;
    eventually(SOON, "the other tells that it published", || async {
        Ok((world.listers["b"].metric("listing_published_total") >= 1.0).then_some(()))
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn one_that_lags_never_puts_an_older_page_over_a_newer_one() {
    let mut world = World::without_lister().await;
    let proxy = Proxy::start(world.kubeconfig()).await.unwrap();
    let kubeconfig = proxy.kubeconfig().to_owned();
    world.start_lister_through("a", &kubeconfig).await;
    world.start_lister("b").await;
    both_know_each_other(&world).await;
    let name = first_for(&world, "a");
    world.endpoints("web", &["10.0.0.1"]).await;
    world.listing(&name, into_config_map("web")).await;
    world.is(&name, "True", "Published").await;
    let journal = stamps(&world, "out");
    // The first in line hears of slices late, and of nothing else.
    let lag = proxy.inject(Matcher::watches("endpointslices"), Fault::Lag(std::time::Duration::from_secs(2)));
    for last in 2..=12 {
        let address = format!("10.0.0.{last}");
        world.endpoints("web", &[&address]).await;
        world.says("out", &lines(&[&address])).await;
    }
    lag.lift();
    world.endpoints("web", &["10.0.0.13"]).await;
    world.says("out", &lines(&["10.0.0.13"])).await;
    let seen = journal.lock().unwrap().clone();
    assert!(seen.len() >= 12, "{seen:?}");
    for pair in seen.windows(2) {
        assert!(pair[1].endpoints >= pair[0].endpoints, "{pair:?}");
    }
}

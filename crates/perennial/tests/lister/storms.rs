//! Many endpoints, and many changes.

use std::time::Instant;

use perennial_testkit::eventually;

use crate::world::{SOON, World, into_config_map};

/// The addresses of one of many slices, in this state of it.
fn addresses(slice: usize, state: usize) -> Vec<String> {
    (0..100).map(|number| format!("10.{}.{slice}.{number}", state % 200)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_endpoints_that_keep_changing_end_up_right_and_within_the_pace() {
    let world = World::start().await;
    for slice in 0..100 {
        world.slice("web", slice, &addresses(slice, 0)).await;
    }
    world.listing("web", into_config_map("web")).await;
    world.is("web", "True", "Published").await;
    assert_eq!(world.status("web").await.endpoints, Some(10_000));
    let (before, started) = (world.listers["a"].metric("listing_published_total"), Instant::now());
    let changes = 200;
    for change in 1..=changes {
        world.slice("web", change % 100, &addresses(change % 100, change)).await;
    }
    let mut expected: Vec<std::net::Ipv4Addr> = (0..100)
        .flat_map(|slice| {
            let last = (1..=changes).rev().find(|change| change % 100 == slice).unwrap_or(0);
            addresses(slice, last)
        })
        .map(|address| address.parse().unwrap())
        .collect();
    expected.sort_unstable();
    let expected: Vec<String> = expected.iter().map(ToString::to_string).collect();
    let text = expected.join("\n") + "\n";
    eventually(SOON, "the last state is published", || async {
        let now = world.published("out", "index.html").await.unwrap_or_default();
        Ok((now == text).then_some(()))
    })
    .await
    .unwrap();
    // Pages are at least 250 ms apart, however long all of this took.
    let published = world.listers["a"].metric("listing_published_total") - before;
    let most = started.elapsed().as_secs_f64() / 0.25 + 2.0;
    assert!(published <= most, "{published} pages where {most} are allowed");
    let settled = world.listers["a"].metric("listing_published_total");
    world.slice("web", 0, &addresses(0, 100)).await;
    world.slice("web", 0, &addresses(0, changes)).await;
    world.is("web", "True", "Published").await;
    assert!(world.listers["a"].metric("listing_published_total") <= settled + 2.0);
}

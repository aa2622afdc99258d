//! Callers who ask too much, or never finish: each is refused or let go, and the API server is answered meanwhile.

use crate::hook::Hook;
use crate::world::{World, pairs};

/// The most that a question may take.
const MOST: usize = 4 * 1024 * 1024;

/// A head that announces a body of this length.
fn announce(length: usize) -> String {
    format!("POST /born HTTP/1.1\r\nhost: a\r\ncontent-length: {length}\r\n\r\n")
}

/// What somebody is answered who says this, and no more.
async fn status(world: &World, hook: &Hook, said: &str) -> u16 {
    let mut caller = hook.call(world).await;
    caller.say(said).await;
    caller.hear().await.0
}

#[tokio::test]
async fn who_asks_too_much_is_refused() {
    let mut world = World::without_keeper("").await;
    let hook = world.start_with_hook().await;
    let long = format!("POST /born HTTP/1.1\r\nhost: a\r\nx: {}\r\n\r\n", "x".repeat(32 * 1024));
    let unmeasured = "POST /born HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n";
    for (said, refused) in [(announce(MOST + 1).as_str(), 413), (unmeasured, 411), (long.as_str(), 431)] {
        assert_eq!(status(&world, &hook, said).await, refused);
    }
    for path in ["/born", "/gone"] {
        let (refused, _) = hook.call(&world).await.post(path, &" ".repeat(MOST)).await;
        assert_eq!(refused, 400, "it is read, and says nothing");
    }
    world.is_asked().await;
}

#[tokio::test]
async fn who_announces_much_and_sends_nothing_keeps_nobody_waiting_and_is_let_go() {
    let mut world = World::without_keeper("").await;
    let hook = world.start_with_hook().await;
    let labels = pairs([("team", "blue")]);
    world.register("worker-1", &labels).await;
    world.recorded("worker-1", &labels).await;
    world.delete("worker-1").await;
    let mut callers = Vec::new();
    for _ in 0..40 {
        let mut caller = hook.call(&world).await;
        caller.say(&announce(MOST)).await;
        callers.push(caller);
    }
    // They would be let go after 5 s; the API server waits for one.
    let born = world.join("worker-1").await.metadata.labels.unwrap();
    assert_eq!(born.get("team").map(String::as_str), Some("blue"), "{born:?}");
    for caller in callers {
        assert_eq!(caller.hear().await.0, 408);
    }
}

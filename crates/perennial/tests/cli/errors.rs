//! No permission, no such node, no server: said as kubectl says it.

use perennial_testkit::Port;

use crate::person::{Person, compare};
use crate::world::World;

#[tokio::test]
async fn what_is_not_there_or_not_allowed_is_said_as_kubectl_says_it() {
    let world = World::without_keeper("").await;
    let person = world.person();
    let hand = world.hand();
    for line in ["show nobody", "restore nobody", "forget nobody --yes", "pause nobody", "diff nobody"] {
        let heard = hand.says(line).await;
        assert_eq!(heard.code, if line.starts_with("diff") { 2 } else { 1 }, "{line}");
        assert_eq!(heard.bad(), "Error from server (NotFound): nodes \"nobody\" not found\n", "{line}");
    }
    let nobody = world.plane.kubeconfig_for_service_account(world.namespace(), "nobody").await.unwrap();
    let nobody = Person::with(&nobody, world.namespace());
    for line in
        ["nodes", "show a", "status", "diff", "restore a", "rollback --all --to 1m", "pause a", "export"]
    {
        let told = nobody.says(line).await.bad();
        assert!(told.starts_with("Error from server (Forbidden): configmaps"), "{line}: {told}");
    }
    compare("forbidden", &nobody.says("nodes").await.all());
    let told = person.says("nodes --state ready").await.bad();
    assert!(told.contains("\"ready\" is not allowed; allowed: unreadable,"), "{told}");
    let told = person.says("nodes -l a=b=c").await.bad();
    assert!(told.starts_with("error: --selector:"), "{told}");
    let told = person.says("nodes --context other").await.bad();
    assert!(told.contains("has no context \"other\""), "{told}");
    let told = person.says("nodes --policy /nonexistent").await.bad();
    assert!(told.starts_with("error: --policy:"), "{told}");
    assert_eq!(person.says("nodes").await.err, "No nodes found.\n");
}

#[tokio::test]
async fn a_server_that_is_down_is_said_to_be() {
    let port = Port::claim().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("config");
    let config = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{{ name: a, context: {{ cluster: a, user: a }} }}]\n\
         clusters: [{{ name: a, cluster: {{ server: \"http://127.0.0.1:{}\" }} }}]\nusers: [{{ name: a, user: {{}} }}]\n",
        port.number()
    );
    std::fs::write(&kubeconfig, config).unwrap();
    let heard = Person::with(&kubeconfig, "perennial").says("nodes").await;
    assert_eq!(heard.code, 1);
    let told = heard.err.replace(&port.number().to_string(), "PORT");
    compare("server-down", &told);
}

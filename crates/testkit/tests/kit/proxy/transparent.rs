//! Left alone, the proxy changes nothing.

use futures::StreamExt;
use http::{Request, header};
use http_body_util::BodyExt as _;
use k8s_openapi::api::core::v1::{ConfigMap, Node};
use kube::{
    Api, Client, Config, Error,
    api::{ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams},
    config::{KubeConfigOptions, Kubeconfig},
    core::PartialObjectMeta,
};
use perennial_testkit::{eventually, proxy::Matcher};
use serde_json::json;

use super::world::{SOON, Watch, World, config_map, named, plane};

/// What comes back for a request: status, the headers that say what it is, and the bytes.
async fn ask(client: &Client, path: &str, accept: &str, gzip: bool) -> (u16, Vec<String>, Vec<u8>) {
    let mut request = Request::get(path).header(header::ACCEPT, accept);
    if gzip {
        request = request.header(header::ACCEPT_ENCODING, "gzip");
    }
    let response = client.send(request.body(Vec::new().into()).unwrap()).await.unwrap();
    let named = [header::CONTENT_TYPE, header::CONTENT_ENCODING].map(|name| {
        response.headers().get(name).map_or(String::new(), |value| value.to_str().unwrap().to_owned())
    });
    let status = response.status().as_u16();
    (status, named.to_vec(), response.into_body().collect_bytes().await.unwrap().to_vec())
}

#[tokio::test]
async fn answers_are_the_api_servers_byte_for_byte() {
    let world = World::new().await;
    let mut large = config_map("large");
    large.data = Some([("text".to_owned(), "perennial ".repeat(20_000))].into());
    world.direct.create(&PostParams::default(), &large).await.unwrap();
    let (direct, through) = (plane().await.0.admin(), world.client());
    // The version of a list moves on with what others write, unless it is asked for.
    let all = format!("/api/v1/namespaces/{}/configmaps", world.namespace);
    let list = format!("{all}?resourceVersion={}&resourceVersionMatch=Exact", world.version().await);
    let metadata = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
    for (path, accept, gzip) in [
        (list.clone(), "application/json", false),
        (list.clone(), "application/json", true),
        (list.clone(), metadata, false),
        (list.clone(), "application/vnd.kubernetes.protobuf", false),
        (all.clone() + "/large", "application/json", false),
        (all.clone() + "/nobody", "application/json", false),
        ("/version".to_owned(), "application/json", false),
        ("/nothing".to_owned(), "application/json", false),
    ] {
        let expected = ask(&direct, &path, accept, gzip).await;
        assert!(ask(&through, &path, accept, gzip).await == expected, "{path} {accept}");
        assert_eq!(expected.1[1] == "gzip", gzip);
    }
}

#[tokio::test]
async fn writes_and_their_conflicts_pass() {
    let world = World::new().await;
    let made = world.through.create(&PostParams::default(), &config_map("a")).await.unwrap();
    world.set("a", "1").await;
    let stale = json!({
        "metadata": { "resourceVersion": made.metadata.resource_version },
        "data": { "is": "2" },
    });
    match world.through.patch("a", &PatchParams::default(), &Patch::Merge(&stale)).await {
        Err(Error::Api(status)) => assert_eq!((status.code, status.reason.as_str()), (409, "Conflict")),
        other => panic!("{other:?}"),
    }
    let fresh = Patch::Merge(json!({ "data": { "is": "2" } }));
    world.through.patch("a", &PatchParams::default(), &fresh).await.unwrap();
    let now: ConfigMap = world.direct.get("a").await.unwrap();
    assert_eq!(now.data.unwrap()["is"], "2");
}

#[tokio::test]
async fn streams_pass() {
    let world = World::new().await;
    world.create("a").await;
    let mut listed = world.watch().await;
    assert_eq!(listed.list().await, ["ADDED a"]);
    let version = world.version().await.to_string();
    let mut watch = Watch::start(&world.through, &WatchParams::default().timeout(2), &version).await;
    world.set("a", "1").await;
    assert_eq!(listed.next().await, "MODIFIED a=1");
    // The API server ends it by itself.
    assert_eq!(watch.take(2).await, ["MODIFIED a=1", "END"]);
}

#[tokio::test]
async fn a_stream_passes_in_protobuf_where_that_is_allowed() {
    let world = World::new().await;
    world.create("a").await;
    let path = format!(
        "/api/v1/namespaces/{}/configmaps?watch=true&sendInitialEvents=true&allowWatchBookmarks=true\
         &resourceVersionMatch=NotOlderThan&timeoutSeconds=20",
        world.namespace
    );
    let protobuf = "application/vnd.kubernetes.protobuf;stream=watch";
    let ask = async |through: Client| {
        let accept = format!("{protobuf},application/json");
        let request = Request::get(&path).header(header::ACCEPT, accept).body(Vec::new().into()).unwrap();
        let response = through.send(request).await.unwrap();
        let kind = response.headers()[header::CONTENT_TYPE].to_str().unwrap().to_owned();
        (kind, response)
    };
    assert_eq!(ask(World::new().await.client()).await.0, "application/json");
    world.proxy.carry_protobuf();
    let (kind, response) = ask(world.client()).await;
    assert_eq!(kind, protobuf);
    let mut body = response.into_body().into_data_stream();
    let first = body.next().await.unwrap().unwrap();
    assert!(first.windows(4).any(|window| window == b"k8s\0"), "objects in protobuf");
    eventually(SOON, "the list is over", || async { Ok(world.proxy.follows("configmaps").then_some(())) })
        .await
        .unwrap();
    world.proxy.cut(&Matcher::streams());
    while let Some(Ok(_)) = body.next().await {}
    drop(body);
    eventually(SOON, "the stream is over", || async {
        Ok((!world.proxy.follows("configmaps")).then_some(()))
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn metadata_of_nodes_passes_by_the_kubeconfig() {
    let world = World::new().await;
    let name = format!("node-{}", world.namespace);
    let kubeconfig = Kubeconfig::read_from(world.proxy.kubeconfig()).unwrap();
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    let client = Client::try_from(config).unwrap();
    let node = Node { metadata: named(&name), ..Node::default() };
    Api::all(client.clone()).create(&PostParams::default(), &node).await.unwrap();
    let nodes: Api<PartialObjectMeta<Node>> = Api::all(client);
    let field = format!("metadata.name={name}");
    let list = nodes.list(&ListParams::default().fields(&field)).await.unwrap();
    assert_eq!(list.items[0].metadata.name.as_ref(), Some(&name));
    let parameters = WatchParams::default().initial_events().fields(&field);
    let mut events = nodes.watch(&parameters, "0").await.unwrap().boxed();
    match events.next().await.unwrap().unwrap() {
        WatchEvent::Added(node) => assert_eq!(node.metadata.name, Some(name)),
        other => panic!("{other:?}"),
    }
}

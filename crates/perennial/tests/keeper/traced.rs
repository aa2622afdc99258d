//! Traces, as a collector gets them.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::routing::post;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use perennial::config::TraceConfig;
use perennial::traces::Traces;
use prost::Message as _;
use tokio_util::task::AbortOnDropHandle;

use crate::world::{World, pairs};

/// A collector that keeps what it gets.
struct Collector {
    config: TraceConfig,
    spans: Arc<Mutex<Vec<Span>>>,
    _serving: AbortOnDropHandle<()>,
}

impl Collector {
    async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}/v1/traces", listener.local_addr().unwrap()).parse().unwrap();
        let spans = Arc::<Mutex<Vec<Span>>>::default();
        let routes = Router::new().route("/v1/traces", post(take)).with_state(spans.clone());
        let serving = tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
        let config = TraceConfig { endpoint, share: 1.0 };
        Self { config, spans, _serving: AbortOnDropHandle::new(serving) }
    }
}

async fn take(State(spans): State<Arc<Mutex<Vec<Span>>>>, body: Bytes) {
    let request = ExportTraceServiceRequest::decode(body).unwrap();
    let scopes = request.resource_spans.into_iter().flat_map(|of_resource| of_resource.scope_spans);
    spans.lock().unwrap().extend(scopes.flat_map(|of_scope| of_scope.spans));
}

fn attribute(span: &Span, key: &str) -> Option<String> {
    let found = span.attributes.iter().find(|pair| pair.key == key)?;
    match found.value.as_ref()?.value.as_ref()? {
        Value::StringValue(text) => Some(text.clone()),
        _ => None,
    }
}

/// A node's life with a return, and whether it got its own back.
async fn a_return(world: &World) {
    let labels = pairs([("team", "blue")]);
    world.register("worker-1", &labels).await;
    world.recorded("worker-1", &labels).await;
    world.delete("worker-1").await;
    world.closed("worker-1", &labels).await;
    world.register("worker-1", &pairs([])).await;
    world.labels_become("worker-1", &labels).await;
    world.caught_up().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restore_is_one_trace_of_what_was_seen_decided_and_done() {
    let collector = Collector::start().await;
    let traces = Traces::start(&collector.config, "one", "perennial").unwrap();
    let mut world = World::without_keeper("").await;
    world.configure(|config| config.tracer = Some(traces.tracer()));
    world.start_keeper().await;
    a_return(&world).await;
    world.stop_keeper().await;
    traces.stop().await;

    let spans = collector.spans.lock().unwrap().clone();
    let of_plan = |plan: &str, name: &str| -> Vec<&Span> {
        let named = spans.iter().filter(|span| span.name == name);
        named.filter(|span| attribute(span, "perennial.plan").as_deref() == Some(plan)).collect()
    };
    let patches = of_plan("patch", "apply");
    let [patch] = patches[..] else { panic!("one restore: {spans:#?}") };
    assert_eq!(attribute(patch, "perennial.outcome").as_deref(), Some("patched"));
    let trace: Vec<&Span> = spans.iter().filter(|span| span.trace_id == patch.trace_id).collect();
    let root = trace.iter().find(|span| span.parent_span_id.is_empty()).expect("a root");
    assert_eq!((root.name.as_str(), &root.span_id), ("keep", &patch.parent_span_id));
    assert_eq!(attribute(root, "k8s.node.name").as_deref(), Some("worker-1"));
    assert!(attribute(root, "k8s.node.uid").is_some());
    for span in &trace {
        let inside = span.start_time_unix_nano >= root.start_time_unix_nano
            && span.end_time_unix_nano <= root.end_time_unix_nano;
        assert!(inside && span.end_time_unix_nano >= span.start_time_unix_nano, "{span:?} in {root:?}");
    }
    let observed: Vec<_> = trace.iter().filter(|span| span.name == "observe").collect();
    assert_eq!(observed.len(), 1);
    assert_eq!(attribute(observed[0], "perennial.cause").as_deref(), Some("node_applied"));
    for (plan, outcome) in [("give", "wrote"), ("patch", "patched")] {
        for name in ["decide", "apply"] {
            let found: Vec<_> =
                of_plan(plan, name).into_iter().filter(|span| span.trace_id == root.trace_id).collect();
            assert_eq!(found.len(), 1, "{plan}, {name}: {trace:#?}");
            let said = attribute(found[0], "perennial.outcome");
            assert_eq!(said.as_deref(), (name == "apply").then_some(outcome));
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_collector_that_is_away_disturbs_nobody() {
    let gone = Collector::start().await.config;
    let traces = Traces::start(&gone, "one", "perennial").unwrap();
    let mut world = World::without_keeper("").await;
    world.configure(|config| config.tracer = Some(traces.tracer()));
    world.start_keeper().await;
    a_return(&world).await;
    world.stop_keeper().await;
    traces.stop().await;
}

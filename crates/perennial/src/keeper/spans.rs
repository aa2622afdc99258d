//! Traces of the keeper's work: what was seen of a node, what was decided, and what came of it.
//!
//! ```text
//! keep ─────────────────────────────────────────────── from what was seen until the line rests
//!  ├ observe    what made it pending
//!  ├ decide     from when it was due until it began
//!  ├ apply      the write or read itself, with its outcome
//!  ├ decide …
//! ```
//! A replica that only looks on while another acts makes no spans. Without a tracer this is nothing at all.

use std::collections::HashMap;
use std::time::{Duration, SystemTime};

use opentelemetry::trace::{Span as _, Status, TraceContextExt as _, Tracer as _};
use opentelemetry::{Context, KeyValue};

use super::apply::Outcome;
use super::ledger::Name;
use crate::traces::Tracer;

/// The traces of all lines that are pending.
pub(super) struct Spans(Option<Inner>);

struct Inner {
    tracer: Tracer,
    lines: HashMap<Name, Trace>,
}

/// A line that is pending.
struct Trace {
    seen: SystemTime,
    cause: &'static str,
    /// Once this replica acts.
    root: Option<Context>,
}

/// What is being applied.
pub(super) struct Applying(opentelemetry_sdk::trace::Span);

impl Spans {
    pub(super) fn new(tracer: Option<Tracer>) -> Self {
        Self(tracer.map(|tracer| Inner { tracer, lines: HashMap::new() }))
    }

    pub(super) fn are_wanted(&self) -> bool {
        self.0.is_some()
    }

    /// Something was seen of a node.
    pub(super) fn observe(&mut self, name: &Name, cause: &'static str) {
        if let Some(inner) = &mut self.0 {
            let trace = || Trace { seen: SystemTime::now(), cause, root: None };
            inner.lines.entry(name.clone()).or_insert_with(trace);
        }
    }

    /// Nobody has to act any more.
    pub(super) fn settle(&mut self, name: &Name) {
        if let Some(trace) = self.0.as_mut().and_then(|inner| inner.lines.remove(name))
            && let Some(root) = trace.root
        {
            root.span().end();
        }
    }

    /// It is begun with a plan, that was due for so long.
    pub(super) fn apply(
        &mut self,
        name: &Name,
        uid: Option<String>,
        plan: &'static str,
        rank: usize,
        waited: Duration,
    ) -> Option<Applying> {
        self.observe(name, "look");
        let Inner { tracer, lines } = self.0.as_mut()?;
        let trace = lines.get_mut(name)?;
        let root = trace.root.get_or_insert_with(|| begin(tracer, name, uid, trace.seen, trace.cause));
        let now = SystemTime::now();
        let rank = i64::try_from(rank).unwrap_or(i64::MAX);
        let about = [KeyValue::new("perennial.plan", plan), KeyValue::new("perennial.rank", rank)];
        let decide =
            tracer.span_builder("decide").with_start_time(now - waited).with_attributes(about.clone());
        tracer.build_with_context(decide, root).end_with_timestamp(now);
        let apply = tracer.span_builder("apply").with_start_time(now).with_attributes(about);
        Some(Applying(tracer.build_with_context(apply, root)))
    }
}

fn begin(
    tracer: &Tracer,
    name: &Name,
    uid: Option<String>,
    seen: SystemTime,
    cause: &'static str,
) -> Context {
    let node = KeyValue::new("k8s.node.name", name.to_string());
    let about = std::iter::once(node).chain(uid.map(|uid| KeyValue::new("k8s.node.uid", uid)));
    let keep = tracer.span_builder("keep").with_start_time(seen).with_attributes(about);
    let root = Context::new().with_span(tracer.build_with_context(keep, &Context::new()));
    let observe = tracer
        .span_builder("observe")
        .with_start_time(seen)
        .with_attributes([KeyValue::new("perennial.cause", cause)]);
    tracer.build_with_context(observe, &root).end_with_timestamp(seen);
    root
}

impl Applying {
    /// This came of it.
    pub(super) fn end(mut self, outcome: &Outcome) {
        self.0.set_attribute(KeyValue::new("perennial.outcome", outcome.as_str()));
        if let Outcome::Failed(error, _) | Outcome::Untold(error) = outcome {
            self.0.set_attribute(KeyValue::new("error.type", error.kind()));
            // Not in the API server's words, which may quote a label's value.
            self.0.set_status(Status::error(error.kind()));
        }
        self.0.end();
    }
}

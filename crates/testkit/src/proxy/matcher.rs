//! Which calls, and which events of a stream, a fault meets.

use std::{fmt, sync::Arc};

use super::{Call, Verb, event::Event};

type When = Arc<dyn Fn(&Call) -> bool + Send + Sync>;

/// Picks calls. Whatever is not asked for may be anything.
///
/// For a fault that meets events (see [`super::Fault`]) it picks the streams by their call, and the events in
/// them by the object's name and by type.
#[derive(Clone, Default)]
#[must_use]
pub struct Matcher {
    verbs: Vec<Verb>,
    resource: Option<String>,
    namespace: Option<String>,
    name: Option<String>,
    event: Option<String>,
    news: bool,
    query: Vec<(String, bool)>,
    when: Option<When>,
}

impl Matcher {
    /// Every call.
    pub fn any() -> Self {
        Self::default()
    }

    /// Every call about a resource, by its plural: `nodes`.
    pub fn on(resource: &str) -> Self {
        Self { resource: Some(resource.to_owned()), ..Self::default() }
    }

    /// The lists of a resource: those in one answer, and those as a stream.
    pub fn lists(resource: &str) -> Self {
        Self::on(resource).verbs([Verb::List, Verb::ListWatch])
    }

    /// The streams of a resource: watches, and lists with the watch that follows.
    pub fn watches(resource: &str) -> Self {
        Self::on(resource).verbs([Verb::Watch, Verb::ListWatch])
    }

    /// Every stream.
    pub fn streams() -> Self {
        Self::any().verbs([Verb::Watch, Verb::ListWatch])
    }

    /// Whatever changes something.
    pub fn writes() -> Self {
        Self::any().verbs([Verb::Create, Verb::Update, Verb::Patch, Verb::Delete, Verb::DeleteCollection])
    }

    /// Only one of these verbs.
    pub fn verbs(mut self, verbs: impl IntoIterator<Item = Verb>) -> Self {
        self.verbs = verbs.into_iter().collect();
        self
    }

    /// Only in this namespace.
    pub fn in_namespace(mut self, namespace: &str) -> Self {
        self.namespace = Some(namespace.to_owned());
        self
    }

    /// Only this object.
    pub fn named(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }

    /// Only events of this type: `ADDED`, `MODIFIED`, `DELETED`, `BOOKMARK`.
    pub fn event(mut self, event: &str) -> Self {
        self.event = Some(event.to_owned());
        self
    }

    /// Only events after a streamed list, none of its items.
    pub fn news(mut self) -> Self {
        self.news = true;
        self
    }

    /// Only with this text in the query.
    pub fn query(mut self, text: &str) -> Self {
        self.query.push((text.to_owned(), true));
        self
    }

    /// Only without this text in the query.
    pub fn no_query(mut self, text: &str) -> Self {
        self.query.push((text.to_owned(), false));
        self
    }

    /// Only if this says so.
    pub fn when(mut self, when: impl Fn(&Call) -> bool + Send + Sync + 'static) -> Self {
        self.when = Some(Arc::new(when));
        self
    }

    /// Whether the call is one of them.
    #[must_use]
    pub fn takes(&self, call: &Call) -> bool {
        self.takes_stream(call) && self.name.as_ref().is_none_or(|name| call.name.as_ref() == Some(name))
    }

    /// Whether events of this call may be among them.
    pub(super) fn takes_stream(&self, call: &Call) -> bool {
        let is = |wanted: &Option<String>, it: Option<&str>| {
            wanted.as_deref().is_none_or(|wanted| it == Some(wanted))
        };
        (self.verbs.is_empty() || self.verbs.contains(&call.verb))
            && is(&self.resource, Some(&call.resource))
            && is(&self.namespace, call.namespace.as_deref())
            && self.query.iter().all(|(text, present)| call.query.contains(text) == *present)
            && self.when.as_ref().is_none_or(|when| when(call))
    }

    /// Whether the event, of a stream that was picked, is one of them.
    pub(super) fn takes_event(&self, event: &Event) -> bool {
        let is = |wanted: &Option<String>, it: &str| wanted.as_deref().is_none_or(|wanted| it == wanted);
        is(&self.name, &event.name) && is(&self.event, &event.kind) && !(self.news && event.initial)
    }
}

impl fmt::Debug for Matcher {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { verbs, resource, namespace, name, event, news, query, when } = self;
        let mut out = out.debug_struct("Matcher");
        if !verbs.is_empty() {
            out.field("verbs", verbs);
        }
        for (key, value) in
            [("resource", resource), ("namespace", namespace), ("name", name), ("event", event)]
        {
            if let Some(value) = value {
                out.field(key, value);
            }
        }
        if !query.is_empty() {
            out.field("query", query);
        }
        if *news {
            out.field("news", news);
        }
        if when.is_some() {
            out.field("when", &"..");
        }
        out.finish()
    }
}

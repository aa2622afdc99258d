//! What one listing's page is made from, as the API server tells of it: the Service's slices, and the template where
//! a ConfigMap holds it.

use futures::future::pending;
use kube::core::request::Request as Resource;
use perennial_core::kept::Pairs;
use perennial_core::record::Version;
use serde::Deserialize;

use super::listing::KeyRef;
use super::order::{Order, Source};
use super::slices::{SliceObject, Slices};
use crate::cluster::{ApiError, Chosen, Cluster, Event, Followed, Following, Meta, Target};

/// The label that names a slice's Service.
const SERVICE_NAME: &str = "kubernetes.io/service-name";

/// A ConfigMap with a template.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct TemplateObject {
    metadata: Meta,
    #[serde(default)]
    data: Option<Pairs>,
}

impl Followed for TemplateObject {
    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

/// Any object, of which only the metadata matters.
#[derive(Deserialize)]
struct Bare {
    metadata: Meta,
}

/// What is known of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Text {
    /// Nobody has looked yet.
    Unknown,
    /// There is none, for this reason.
    Missing(String),
    /// This one; none is the one that comes with Perennial.
    Known(Option<String>),
}

/// What one listing's page is made from.
pub(crate) struct Sources {
    cluster: Cluster,
    namespace: String,
    service: Option<Service>,
    template: Option<Template>,
}

struct Service {
    name: String,
    slices: Slices,
    following: Following<SliceObject>,
}

struct Template {
    from: KeyRef,
    text: Text,
    /// What a list under way holds; it counts when the list is complete.
    coming: Option<Text>,
    version: Version,
    following: Following<TemplateObject>,
}

/// Everything, read directly.
pub(crate) struct Read {
    service: Option<(String, Vec<SliceObject>, Version)>,
    template: Option<(KeyRef, Option<TemplateObject>, Version)>,
    /// The version of the Listing, and as of when it is that.
    pub(crate) listing: Option<(Version, Version)>,
}

impl Read {
    /// As of when it is true.
    pub(crate) fn version(&self) -> Version {
        let service = self.service.as_ref().map(|(_, _, version)| *version);
        let template = self.template.as_ref().map(|(_, _, version)| *version);
        service.max(template).unwrap_or(0)
    }
}

impl Sources {
    pub(crate) fn new(cluster: Cluster, namespace: &str) -> Self {
        Self { cluster, namespace: namespace.to_owned(), service: None, template: None }
    }

    /// Follows what this order names. What is followed already stays.
    pub(crate) fn aim(&mut self, order: &Order) {
        if self.service.as_ref().is_none_or(|service| service.name != order.service) {
            let following = Following::start(&self.cluster, self.slices_of(&order.service));
            self.service =
                Some(Service { name: order.service.clone(), slices: Slices::default(), following });
        }
        match &order.template {
            Source::ConfigMap(from)
                if self.template.as_ref().is_some_and(|template| template.from == *from) => {}
            Source::ConfigMap(from) => {
                let following = Following::start(&self.cluster, self.config_map(&from.name));
                let (text, coming) = (Text::Unknown, None);
                self.template = Some(Template { from: from.clone(), text, coming, version: 0, following });
            }
            Source::BuiltIn | Source::Text(_) => self.template = None,
        }
    }

    fn slices_of(&self, service: &str) -> Target {
        let path = format!("/apis/discovery.k8s.io/v1/namespaces/{}/endpointslices", self.namespace);
        let chosen = Chosen::Labelled(SERVICE_NAME, service.to_owned());
        Target { what: "endpointslices", resource: Resource::new(path), chosen, whole: true }
    }

    fn config_map(&self, name: &str) -> Target {
        let resource = Resource::new(format!("/api/v1/namespaces/{}/configmaps", self.namespace));
        Target { what: "templates", resource, chosen: Chosen::Named(name.to_owned()), whole: true }
    }

    /// The slices, once a list of them was complete.
    pub(crate) fn slices(&self) -> Option<&Slices> {
        self.service.as_ref().map(|service| &service.slices).filter(|slices| slices.is_complete())
    }

    /// Whether the template that an order asks for is there, or known to be missing.
    pub(crate) fn knows_template(&self, order: &Order) -> bool {
        let unknown = |template: &Template| template.text == Text::Unknown;
        !matches!(order.template, Source::ConfigMap(_)) || !self.template.as_ref().is_none_or(unknown)
    }

    /// The template that an order asks for, and its version.
    pub(crate) fn template(&self, order: &Order) -> (Text, Version) {
        match (&order.template, &self.template) {
            (Source::BuiltIn, _) => (Text::Known(None), 0),
            (Source::Text(text), _) => (Text::Known(Some(text.clone())), 0),
            (Source::ConfigMap(_), Some(template)) => (template.text.clone(), template.version),
            (Source::ConfigMap(_), None) => (Text::Unknown, 0),
        }
    }

    /// Waits for the next event and folds it in. Says whether anything changed. May be dropped at any time.
    pub(crate) async fn next(&mut self) -> bool {
        let Self { cluster: _, namespace: _, service, template } = self;
        let slice = async {
            match service.as_mut() {
                Some(service) => service.following.next().await,
                None => pending().await,
            }
        };
        let text = async {
            match template.as_mut() {
                Some(template) => template.following.next().await,
                None => pending().await,
            }
        };
        tokio::select! {
            event = slice => self.slice_event(event),
            event = text => self.template_event(event),
        }
    }

    fn slice_event(&mut self, event: Event<SliceObject>) -> bool {
        let Some(service) = self.service.as_mut() else { return false };
        let slices = &mut service.slices;
        match event {
            Event::Listing => slices.listing(),
            Event::Unchanged(_) | Event::Unobserved(_) | Event::Reached(_) => {}
            Event::Applied(slice) => return slices.applied(slice),
            Event::Deleted(slice) => return slices.deleted(&slice),
            Event::Listed(version) => return slices.listed(version),
            Event::OtherHistory => {
                slices.begin_anew();
                let name = service.name.clone();
                let following = Following::start(&self.cluster, self.slices_of(&name));
                if let Some(service) = self.service.as_mut() {
                    service.following = following;
                }
            }
        }
        false
    }

    fn template_event(&mut self, event: Event<TemplateObject>) -> bool {
        let Some(template) = self.template.as_mut() else { return false };
        match event {
            Event::Listing => template.coming = Some(template.none()),
            Event::Unchanged(_) | Event::Unobserved(_) | Event::Reached(_) => {}
            Event::Applied(object) => {
                let text = template.read(&object);
                if let Some(coming) = template.coming.as_mut() {
                    *coming = text;
                    return false;
                }
                return template.know(text, object.metadata.resource_version);
            }
            Event::Deleted(object) => {
                return template.know(template.none(), object.metadata.resource_version);
            }
            Event::Listed(version) => {
                let text = template.coming.take().unwrap_or_else(|| template.none());
                return template.know(text, version);
            }
            Event::OtherHistory => {
                template.version = 0;
                let name = template.from.name.clone();
                let following = Following::start(&self.cluster, self.config_map(&name));
                if let Some(template) = self.template.as_mut() {
                    template.following = following;
                }
            }
        }
        false
    }

    fn listing(&self, name: &str) -> Target {
        let path = format!("/apis/perennial.dev/v1alpha1/namespaces/{}/listings", self.namespace);
        let chosen = Chosen::Named(name.to_owned());
        Target { what: "listings", resource: Resource::new(path), chosen, whole: false }
    }

    /// Reads everything directly, with the Listing of this name: as new as the API server itself.
    pub(crate) fn read(&self, listing: Option<&str>) -> impl Future<Output = Result<Read, ApiError>> + use<> {
        let listing = listing.map(|name| self.listing(name));
        let cluster = self.cluster.clone();
        let service = self.service.as_ref().map(|service| service.name.clone());
        let service = service.map(|name| (self.slices_of(&name), name));
        let template = self.template.as_ref().map(|template| template.from.clone());
        let template = template.map(|from| (self.config_map(&from.name), from));
        async move {
            let service = match service {
                Some((target, name)) => {
                    let (slices, version) = cluster.list(&target).await?;
                    Some((name, slices, version))
                }
                None => None,
            };
            let template = match template {
                Some((target, from)) => {
                    let (objects, version) = cluster.list::<TemplateObject>(&target).await?;
                    Some((from, objects.into_iter().next(), version))
                }
                None => None,
            };
            let listing = match listing {
                Some(target) => {
                    let (objects, version) = cluster.list::<Bare>(&target).await?;
                    objects.first().map(|object| (object.metadata.resource_version, version))
                }
                None => None,
            };
            Ok(Read { service, template, listing })
        }
    }

    /// Takes in what was read, unless something else is followed meanwhile. Says whether anything changed.
    pub(crate) fn take(&mut self, read: Read) -> bool {
        let Read { service, template, listing: _ } = read;
        let mut changed = false;
        if let (Some((name, slices, version)), Some(followed)) = (service, self.service.as_mut())
            && followed.name == name
        {
            changed |= followed.slices.read(slices, version);
        }
        if let (Some((from, object, version)), Some(followed)) = (template, self.template.as_mut())
            && followed.from == from
        {
            let text = object.map_or_else(|| followed.none(), |object| followed.read(&object));
            changed |= followed.know(text, version);
        }
        changed
    }
}

impl Template {
    fn none(&self) -> Text {
        Text::Missing(format!("there is no ConfigMap {:?} in this namespace", self.from.name))
    }

    fn read(&self, object: &TemplateObject) -> Text {
        let KeyRef { name, key } = &self.from;
        match object.data.as_ref().and_then(|data| data.get(key)) {
            Some(text) => Text::Known(Some(text.clone())),
            None => Text::Missing(format!("the ConfigMap {name:?} has no key {key:?}")),
        }
    }

    /// Says whether anything changed. What is older than what is known says nothing.
    fn know(&mut self, text: Text, version: Version) -> bool {
        if version < self.version {
            return false;
        }
        self.version = version;
        let changed = self.text != text;
        self.text = text;
        changed
    }
}

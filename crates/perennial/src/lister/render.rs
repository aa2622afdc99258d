//! Makes a page, beside everything else: a large or a hostile one must not hold up what others wait for.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kube::api::GetParams;
use kube::core::request::Request as Resource;
use perennial_core::lister::{Facts, Page, Slice, Template, TemplateError, Versions, merge};
use tracing::debug;

use super::order::{Id, Order};
use crate::cluster::{ApiError, Cluster};

/// What a page is made from.
pub(crate) struct Material {
    pub(crate) id: Id,
    pub(crate) order: Arc<Order>,
    /// The template's text; none is the one that comes with Perennial.
    pub(crate) template: Option<String>,
    pub(crate) slices: Vec<Slice>,
    pub(crate) versions: Versions,
}

/// What came of it.
pub(crate) struct Made {
    pub(crate) page: Result<Arc<Page>, TemplateError>,
    /// The Service exists, as far as anybody can tell.
    pub(crate) service: bool,
    /// How long it took.
    pub(crate) took: Duration,
}

/// Makes a page.
pub(crate) async fn make(cluster: Cluster, material: Material) -> Made {
    // Slices are proof enough; without any it may be that nothing is ready, or that there is no such Service.
    let service = !material.slices.is_empty() || exists(&cluster, &material).await;
    let started = Instant::now();
    let page = tokio::task::spawn_blocking(move || render(&material)).await;
    let page = page.unwrap_or_else(|panic| {
        tracing::error!(error = %panic, "making a page failed");
        Err(TemplateError::Engine)
    });
    Made { page: page.map(Arc::new), service, took: started.elapsed() }
}

fn render(material: &Material) -> Result<Page, TemplateError> {
    let Material { id, order, template, slices, versions } = material;
    let template = match template {
        Some(text) => Template::new(text, order.format)?,
        None => Template::standard(order.format),
    };
    let endpoints = merge(slices, order.select);
    let history = order.history_link();
    let (service, namespace) = (order.service.as_str(), id.namespace.as_str());
    let facts = Facts { service, namespace, endpoints: &endpoints, history: history.as_deref() };
    let body = template.render(&facts)?;
    Ok(Page::new(body, order.content_type.clone(), endpoints.len(), *versions))
}

async fn exists(cluster: &Cluster, material: &Material) -> bool {
    let services = Resource::new(format!("/api/v1/namespaces/{}/services", material.id.namespace));
    let request = services.get_metadata(&material.order.service, &GetParams::default());
    match cluster.call::<serde::de::IgnoredAny>(request).await {
        Ok(_) => true,
        Err(ApiError::NotFound) => false,
        Err(error) => {
            if matches!(error, ApiError::Forbidden(_)) {
                cluster.metrics().forbidden.tell(&error);
            }
            debug!(listing = %material.id, %error, "cannot tell whether the Service exists");
            true
        }
    }
}

//! The current pages, served by every replica: a small cluster needs no bucket.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use axum::Router;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use perennial_core::lister::Page;

use super::order::Id;

/// The pages of all listings, and what keeps them from being published.
#[derive(Clone, Debug, Default)]
pub struct Pages(Arc<RwLock<BTreeMap<Id, Shown>>>);

/// What is shown of a listing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shown {
    /// `None` while there is nothing to show yet.
    pub(crate) page: Option<Arc<Page>>,
    /// What keeps a newer one from being published, in one word and in a sentence.
    pub(crate) trouble: Option<(&'static str, String)>,
}

impl Pages {
    /// The listing exists.
    pub(crate) fn expect(&self, id: &Id) {
        self.write(|pages| {
            pages.entry(id.clone()).or_default();
        });
    }

    /// Its page is this one from now on.
    pub(crate) fn show(&self, id: &Id, page: Arc<Page>) {
        self.write(|pages| {
            pages.entry(id.clone()).or_default().page = Some(page);
        });
    }

    /// This keeps its page from being published, or nothing does.
    pub(crate) fn trouble(&self, id: &Id, trouble: Option<(&'static str, String)>) {
        self.write(|pages| {
            if let Some(shown) = pages.get_mut(id) {
                shown.trouble = trouble;
            }
        });
    }

    /// All of them.
    pub(crate) fn all(&self) -> Vec<(Id, Shown)> {
        let pages = self.0.read().unwrap_or_else(PoisonError::into_inner);
        pages.iter().map(|(id, shown)| (id.clone(), shown.clone())).collect()
    }

    /// The listing is gone.
    pub(crate) fn remove(&self, id: &Id) {
        self.write(|pages| {
            pages.remove(id);
        });
    }

    /// `None` if there is no such listing.
    #[expect(clippy::option_option, reason = "no listing, no page yet, and a page are three answers")]
    fn find(&self, id: &Id) -> Option<Option<Arc<Page>>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(id).map(|shown| shown.page.clone())
    }

    fn write(&self, change: impl FnOnce(&mut BTreeMap<Id, Shown>)) {
        change(&mut self.0.write().unwrap_or_else(PoisonError::into_inner));
    }
}

/// `GET /listings/NAMESPACE/NAME`.
pub fn routes(pages: Pages) -> Router {
    Router::new().route("/listings/{namespace}/{name}", get(show).with_state(pages))
}

async fn show(
    State(pages): State<Pages>,
    Path((namespace, name)): Path<(String, String)>,
    headers: HeaderMap,
) -> Response {
    let id = Id { namespace, name };
    match pages.find(&id) {
        None => (StatusCode::NOT_FOUND, "no such listing\n").into_response(),
        Some(None) => {
            let later = [(header::RETRY_AFTER, "1")];
            (StatusCode::SERVICE_UNAVAILABLE, later, "nothing to show yet: see the Listing's status\n")
                .into_response()
        }
        Some(Some(page)) => answer(&page, headers.get(header::IF_NONE_MATCH)),
    }
}

fn answer(page: &Page, known: Option<&HeaderValue>) -> Response {
    let tag = format!("\"{}\"", page.stamp.digest);
    let content_type = HeaderValue::from_str(&page.content_type)
        .unwrap_or(HeaderValue::from_static("application/octet-stream"));
    let common = [
        (header::ETAG, HeaderValue::from_str(&tag).unwrap_or(HeaderValue::from_static("\"\""))),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        (header::CONTENT_TYPE, content_type),
        // A page is somebody's own HTML, beside probes and metrics: it must not run scripts here.
        (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static("sandbox")),
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    ];
    if known.is_some_and(|known| names(known, &tag)) {
        return (StatusCode::NOT_MODIFIED, common).into_response();
    }
    (common, page.body.clone()).into_response()
}

/// Whether an If-None-Match names this tag. Weak and strong tags are the same to it.
fn names(known: &HeaderValue, tag: &str) -> bool {
    let Ok(known) = known.to_str() else { return false };
    known.split(',').map(str::trim).any(|one| one == "*" || one.trim_start_matches("W/") == tag)
}

#[cfg(test)]
mod tests {
    use axum::body::{Body, to_bytes};
    use http::Request;
    use perennial_core::lister::Versions;
    use tower::ServiceExt as _;

    use super::*;

    fn pages() -> Pages {
        let pages = Pages::default();
        let page = Page::new("<p>hi".to_owned(), "text/html".to_owned(), 1, Versions::default());
        pages.show(&id("web"), Arc::new(page));
        pages.expect(&id("soon"));
        pages
    }

    fn id(name: &str) -> Id {
        Id { namespace: "shop".to_owned(), name: name.to_owned() }
    }

    async fn ask(path: &str, known: Option<&str>) -> (StatusCode, HeaderMap, String) {
        let mut request = Request::get(path);
        if let Some(known) = known {
            request = request.header(header::IF_NONE_MATCH, known);
        }
        let request = request.body(Body::empty()).unwrap();
        let (parts, body) = routes(pages()).oneshot(request).await.unwrap().into_parts();
        let bytes = to_bytes(body, 1000).await.unwrap();
        (parts.status, parts.headers, String::from_utf8(bytes.to_vec()).unwrap())
    }

    #[tokio::test]
    async fn a_page_comes_with_its_tag_and_once_known_without_its_body() {
        let (status, headers, body) = ask("/listings/shop/web", None).await;
        assert_eq!((status, body.as_str()), (StatusCode::OK, "<p>hi"));
        assert_eq!(headers[header::CONTENT_TYPE], "text/html");
        let tag = headers[header::ETAG].to_str().unwrap().to_owned();
        for known in [tag.clone(), format!("W/{tag}"), format!("\"other\", {tag}"), "*".to_owned()] {
            let (status, headers, body) = ask("/listings/shop/web", Some(&known)).await;
            assert_eq!((status, body.as_str()), (StatusCode::NOT_MODIFIED, ""), "{known}");
            assert_eq!(headers[header::ETAG], tag);
        }
        let (status, _, body) = ask("/listings/shop/web", Some("\"other\"")).await;
        assert_eq!((status, body.as_str()), (StatusCode::OK, "<p>hi"));
    }

    #[tokio::test]
    async fn what_is_not_there_and_what_is_not_there_yet_are_told_apart() {
        assert_eq!(ask("/listings/shop/other", None).await.0, StatusCode::NOT_FOUND);
        let (status, headers, _) = ask("/listings/shop/soon", None).await;
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
        assert!(headers.contains_key(header::RETRY_AFTER));
    }
}

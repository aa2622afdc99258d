//! Pages, buckets, and servers that tests share: each has a bucket or a namespace of its own.

use std::time::Duration;

use perennial::lister::destination::{Credentials, Destination, Error, Found, Put, S3Settings, Secret};
use perennial_core::lister::{Page, Versions};
use perennial_testkit::{ControlPlane, S3Server};
use tokio::sync::OnceCell;

/// How long anything may take on a loaded machine. Nothing waits this long unless it fails.
pub(crate) const SOON: Duration = Duration::from_mins(1);

/// One that is never broken on purpose. It ends with this process.
pub(crate) async fn server() -> &'static S3Server {
    static SERVER: OnceCell<S3Server> = OnceCell::const_new();
    SERVER.get_or_init(|| async { S3Server::start().await.unwrap() }).await
}

/// One that is never broken on purpose. It ends with this process.
pub(crate) async fn controlplane() -> &'static ControlPlane {
    static PLANE: OnceCell<ControlPlane> = OnceCell::const_new();
    PLANE.get_or_init(|| async { ControlPlane::start().await.unwrap() }).await
}

/// A page that says so, as it is made from the endpoints at this version.
pub(crate) fn page(text: &str, version: u64) -> Page {
    let versions = Versions { listing: 7, template: 0, endpoints: version };
    Page::new(text.to_owned(), "text/html; charset=utf-8".to_owned(), 3, versions)
}

/// As our own library takes them.
pub(crate) fn credentials(of: &perennial_testkit::Credentials) -> Credentials {
    Credentials {
        access_key: Secret::new(&of.access_key),
        secret_key: Secret::new(&of.secret_key),
        session_token: None,
    }
}

/// A bucket of its own on a server, and how to reach a page in it.
pub(crate) async fn bucket(server: &S3Server) -> S3Settings {
    let bucket = format!("pages-{:08x}", rand::random::<u32>());
    server.create_bucket(&bucket).await.unwrap();
    S3Settings {
        endpoint: Some(server.url().to_owned()),
        ..S3Settings::new(bucket, "index.html", credentials(server.credentials()))
    }
}

/// What there is at these settings.
pub(crate) fn destination(settings: &S3Settings) -> Destination {
    Destination::s3(settings.clone(), None).unwrap()
}

/// What a lister does: looks, and writes over what it found.
pub(crate) async fn publish(destination: &Destination, page: &Page) -> Result<Put, Error> {
    let found = destination.look().await?;
    destination.put(page, found.as_ref().map(|found| &found.tag)).await
}

/// What is there; it must be there.
pub(crate) async fn found(destination: &Destination) -> Found {
    destination.look().await.unwrap().unwrap()
}

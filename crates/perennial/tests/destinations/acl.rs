//! The canned ACL is sent, and honoured by the one server here that knows it.

use http::Method;
use perennial::lister::destination::{CannedAcl, Destination, HistorySettings, S3Settings};
use perennial_testkit::MotoServer;

use crate::world::{credentials, page, publish};

#[tokio::test]
async fn strangers_read_a_page_if_its_acl_says_so_and_only_then() {
    let moto = MotoServer::start().await.unwrap();
    moto.create_bucket("pages").await.unwrap();
    for (key, acl, readable) in [
        ("public.html", Some(CannedAcl::PublicRead), true),
        ("private.html", Some(CannedAcl::Private), false),
        ("default.html", None, false),
    ] {
        let settings = S3Settings {
            endpoint: Some(moto.url().to_owned()),
            acl,
            ..S3Settings::new("pages", key, credentials(moto.credentials()))
        };
        let history = HistorySettings::new(&format!("history of {key}"), 10, HistorySettings::AGE).unwrap();
        let destination = Destination::s3(settings, Some(history)).unwrap();
        publish(&destination, &page("hello", 1)).await.unwrap();
        let now = "2026-11-15T12:00:00Z".parse().unwrap();
        destination.keep(&page("hello", 1), now).await.unwrap();

        let index = format!("history%20of%20{key}/index.html");
        for path in [key, &index] {
            let reply = moto.get_as_stranger(&format!("/pages/{path}")).await.unwrap();
            assert_eq!(reply.status.is_success(), readable, "{path}: {reply:?}");
        }
        let grants =
            moto.ask(Method::GET, &format!("/pages/{key}?acl=")).await.unwrap().good().unwrap().text();
        assert_eq!(grants.contains("groups/global/AllUsers"), readable, "{key}: {grants}");
    }
}

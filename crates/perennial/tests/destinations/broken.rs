//! What people get wrong, and what they are told.

use std::time::{Duration, SystemTime};

use perennial::lister::destination::{Destination, Error, S3Settings, Secret, SettingsError};
use perennial_testkit::{Port, S3Server};

use crate::wire::{Fault, Wire, babbler};
use crate::world::{bucket, destination, found, page, publish, server};

/// What a look and a put both fail with.
async fn refused(settings: &S3Settings) -> Error {
    let destination = destination(settings);
    let look = destination.look().await.unwrap_err();
    let put = destination.put(&page("page", 1), None).await.unwrap_err();
    assert_eq!(look.kind(), put.kind(), "{look} / {put}");
    put
}

#[tokio::test]
async fn a_wrong_secret_key_is_told() {
    let mut settings = bucket(server().await).await;
    settings.credentials.secret_key = Secret::new("wrong");
    let error = refused(&settings).await;
    assert_eq!((error.kind(), error.retryable()), ("auth", false));
    assert!(error.to_string().contains("SignatureDoesNotMatch"), "{error}");
}

#[tokio::test]
async fn a_wrong_access_key_is_told() {
    let mut settings = bucket(server().await).await;
    settings.credentials.access_key = Secret::new("AKNOBODY");
    let error = refused(&settings).await;
    assert_eq!((error.kind(), error.retryable()), ("auth", false));
    assert!(error.to_string().contains("InvalidAccessKeyId"), "{error}");
}

#[tokio::test]
async fn a_missing_bucket_is_told() {
    let settings = S3Settings { bucket: "nowhere".to_owned(), ..bucket(server().await).await };
    let error = refused(&settings).await;
    assert_eq!((&error, error.retryable()), (&Error::NoBucket, false));
    assert!(error.to_string().contains("create it"), "{error}");
}

#[tokio::test]
async fn a_clock_that_is_off_is_told() {
    let settings = bucket(server().await).await;
    let slow = || SystemTime::now() - Duration::from_hours(1);
    let fast = || SystemTime::now() + Duration::from_hours(1);
    for clock in [slow as fn() -> SystemTime, fast] {
        let error = refused(&S3Settings { clock, ..settings.clone() }).await;
        assert_eq!((error.kind(), error.retryable()), ("clock_skew", false));
        assert!(error.to_string().contains("set them right"), "{error}");
    }
    publish(&destination(&settings), &page("page", 1)).await.unwrap();
}

#[tokio::test]
async fn a_wrong_region_is_told() {
    let settings = S3Settings { region: "eu-south-9".to_owned(), ..bucket(server().await).await };
    let error = refused(&settings).await;
    assert_eq!((error.kind(), error.retryable()), ("elsewhere", false));
}

#[tokio::test]
async fn an_endpoint_where_nobody_listens_is_told() {
    let port = Port::claim().unwrap();
    let endpoint = Some(format!("http://{}", port.address()));
    let error = refused(&S3Settings { endpoint, ..bucket(server().await).await }).await;
    assert_eq!((error.kind(), error.retryable()), ("unreachable", true));
    assert!(error.to_string().contains("nobody listens there"), "{error}");
}

#[tokio::test]
async fn a_host_that_nobody_knows_is_told() {
    let endpoint = Some("https://s3.nowhere.invalid".to_owned());
    let error = refused(&S3Settings { endpoint, ..bucket(server().await).await }).await;
    assert_eq!((error.kind(), error.retryable()), ("unreachable", true));
    assert!(error.to_string().contains("its name is not known"), "{error}");
}

#[tokio::test]
async fn who_is_no_s3_server_is_told_and_says_nothing() {
    let settings = bucket(server().await).await;
    let wire = Wire::to(server().await.url()).await;
    let through = S3Settings { endpoint: Some(wire.url.clone()), ..settings.clone() };
    let inside = "root:x:0:0 hunter2";
    let header = |name| vec![(name, inside.to_owned())];
    for (status, headers, body, kind) in [
        (200, vec![], format!("<html>{inside}</html>"), "not_s3"),
        (404, vec![], inside.to_owned(), "not_s3"),
        (403, vec![], format!("<Error><Code>{inside}</Code></Error>"), "not_s3"),
        (200, header("x-amz-meta-perennial-digest"), inside.to_owned(), "not_s3"),
        (
            302,
            vec![("location", format!("{}/elsewhere", server().await.url()))],
            inside.to_owned(),
            "elsewhere",
        ),
        (500, vec![], inside.repeat(100_000), "server"),
        (
            403,
            vec![],
            format!("<Error><Code>AccessDenied</Code><Message>{inside}</Message></Error>"),
            "denied",
        ),
    ] {
        wire.fault(Some(Fault::Say(status, headers, body)));
        let error = refused(&through).await;
        assert_eq!(error.kind(), kind, "{status}");
        let shown = format!("{error} {error:?}");
        assert!(!shown.contains("hunter2") && !shown.contains("root:"), "{shown}");
    }
    // One that is found has said something, too, which nobody sees.
    wire.fault(Some(Fault::Say(200, header("etag"), inside.to_owned())));
    let found = found(&destination(&through)).await;
    assert!(!format!("{found:?}").contains("hunter2"), "{found:?}");
}

#[tokio::test]
async fn who_does_not_even_speak_http_is_told() {
    let address = babbler().await;
    let settings = bucket(server().await).await;
    let plain = S3Settings { endpoint: Some(format!("http://{address}")), ..settings.clone() };
    assert_eq!(refused(&plain).await, Error::NotS3(None));
    let tls = S3Settings { endpoint: Some(format!("https://{address}")), ..settings };
    assert_eq!(refused(&tls).await, Error::Tls("the server does not speak TLS"));
}

#[tokio::test]
async fn a_server_is_trusted_if_its_authority_is_given() {
    let server = S3Server::builder().tls().start().await.unwrap();
    let settings = bucket(&server).await;
    let error = refused(&settings).await;
    assert_eq!((error.kind(), error.retryable()), ("tls", false));
    assert!(error.to_string().contains("nobody we trust"), "{error}");

    let authorities = Some(server.authority().unwrap());
    let trusting = destination(&S3Settings { authorities: authorities.clone(), ..settings.clone() });
    publish(&trusting, &page("page", 1)).await.unwrap();
    assert_eq!(found(&trusting).await.stamp, Some(page("page", 1).stamp));

    // The same server under a name that its certificate does not have.
    let elsewhere = server.url().replace("127.0.0.1", "[::ffff:127.0.0.1]");
    let misled = S3Settings { endpoint: Some(elsewhere), authorities, ..settings.clone() };
    assert_eq!(refused(&misled).await, Error::Tls("the server's certificate is for another name"));

    // Another's authority.
    let other = S3Server::builder().tls().start().await.unwrap();
    let misled = S3Settings { authorities: Some(other.authority().unwrap()), ..settings };
    assert_eq!(refused(&misled).await.kind(), "tls");
}

#[tokio::test]
async fn settings_that_cannot_be_right_are_refused_before_anybody_is_asked() {
    let settings = bucket(server().await).await;
    let refused = |settings| Destination::s3(settings, None).err().unwrap();
    let mut broken = settings.clone();
    broken.credentials.secret_key = Secret::new("line break\n");
    assert_eq!(refused(broken), SettingsError::Credentials);
    let broken = S3Settings { cache_control: Some("no\r\ncache".to_owned()), ..settings.clone() };
    assert_eq!(
        refused(broken).to_string(),
        r#"the cache-control "no\r\ncache" has letters that a header may not have"#
    );
    let broken = S3Settings { key: "../index.html".to_owned(), ..settings };
    assert!(matches!(refused(broken), SettingsError::Key(..)));
}

use proptest::prelude::*;

use super::super::credentials::Secret;
use super::*;

fn settings(endpoint: Option<&str>, bucket: &str) -> S3Settings {
    let credentials = Credentials {
        access_key: Secret::new("key"),
        secret_key: Secret::new("secret"),
        session_token: None,
    };
    S3Settings { endpoint: endpoint.map(str::to_owned), ..S3Settings::new(bucket, "index.html", credentials) }
}

fn address(settings: &S3Settings) -> String {
    let Address { scheme, authority, path } = Address::of(settings).unwrap();
    format!("{scheme}://{authority}{path}")
}

#[test]
fn the_bucket_is_in_the_path_wherever_an_endpoint_is_given() {
    for (endpoint, expected) in [
        (None, "https://pages.s3.us-east-1.amazonaws.com/"),
        (Some("http://127.0.0.1:9000"), "http://127.0.0.1:9000/pages/"),
        (Some("http://[::1]:9000/"), "http://[::1]:9000/pages/"),
        (Some("https://s3.example.com/"), "https://s3.example.com/pages/"),
        (Some("https://s3.example.com:443"), "https://s3.example.com/pages/"),
        (Some("http://s3.example.com:443"), "http://s3.example.com:443/pages/"),
        (Some("fra1.digitaloceanspaces.com"), "https://fra1.digitaloceanspaces.com/pages/"),
        (Some("https://pages.fra1.digitaloceanspaces.com"), "https://pages.fra1.digitaloceanspaces.com/"),
    ] {
        assert_eq!(address(&settings(endpoint, "pages")), expected);
    }
}

#[test]
fn the_bucket_is_in_the_host_name_where_that_is_asked_for() {
    let asked =
        S3Settings { path_style: Some(false), ..settings(Some("https://s3.example.com:8443"), "pages") };
    assert_eq!(address(&asked), "https://pages.s3.example.com:8443/");
    let both = S3Settings { path_style: Some(true), ..settings(None, "pages") };
    assert_eq!(address(&both), "https://s3.us-east-1.amazonaws.com/pages/");
    assert_eq!(address(&settings(None, "my.pages")), "https://s3.us-east-1.amazonaws.com/my.pages/");
}

#[test]
fn an_endpoint_that_is_none_is_told() {
    for (endpoint, why) in [
        ("", "cannot be read"),
        ("ftp://s3.example.com", "neither https:// nor http://"),
        ("https://s3.example.com/pages", "do not belong there"),
        ("https://s3.example.com?a=b", "do not belong there"),
        ("https://key:secret@s3.example.com", "credentials do not belong"),
        ("https://", "cannot be read"),
        ("https://s3 example.com", "cannot be read"),
        ("https://s3.example.com\r\nHost: other", "cannot be read"),
    ] {
        let error = Address::of(&settings(Some(endpoint), "pages")).unwrap_err().to_string();
        assert!(error.contains(why) && !error.contains("secret"), "{endpoint:?}: {error}");
    }
}

#[test]
fn names_that_no_server_takes_are_refused() {
    for bucket in ["", "a/b", "a b", "..", ".hidden", "a?b", "bücket", &"b".repeat(256)] {
        let error = Address::of(&settings(None, bucket)).unwrap_err();
        assert_eq!(error, SettingsError::Bucket(bucket.to_owned()));
    }
    for region in ["", "us east", "a/b", "us.east"] {
        let given = S3Settings { region: region.to_owned(), ..settings(None, "pages") };
        assert_eq!(Address::of(&given).unwrap_err(), SettingsError::Region(region.to_owned()));
    }
}

#[test]
fn keys_that_somebody_would_change_on_the_way_are_refused() {
    for key in ["index.html", "a/b c/ü.html", "a+b=c&d", ".well-known/x"] {
        check_key(key).unwrap();
    }
    for key in ["", "/a", "a/", "a//b", "a/../b", ".", "a\nb", &"k".repeat(901)] {
        assert!(check_key(key).is_err(), "{key:?}");
    }
}

#[test]
fn an_acl_is_one_that_s3_knows() {
    for acl in CannedAcl::ALL {
        assert_eq!(acl.as_str().parse(), Ok(acl));
    }
    let error = "public".parse::<CannedAcl>().unwrap_err().to_string();
    assert!(error.starts_with(r#"the ACL "public" is not one of private, public-read"#), "{error}");
}

proptest! {
    #[test]
    fn any_endpoint_is_read_or_refused(endpoint in ".{0,60}") {
        if let Ok(address) = Address::of(&settings(Some(&endpoint), "pages")) {
            let whole = format!("{}://{}{}index.html", address.scheme, address.authority, address.path);
            prop_assert!(whole.parse::<Uri>().is_ok(), "{}", whole);
        }
    }
}

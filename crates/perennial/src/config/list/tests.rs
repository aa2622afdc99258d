//! What `perennial list` makes of flags and variables, and what every broken value is told.

use std::collections::HashMap;
use std::ffi::OsString;

use super::*;
use crate::args::{Args, Command};

const CREDENTIALS: [(&str, &str); 2] =
    [("PERENNIAL_BUCKET_KEY", "the-key"), ("PERENNIAL_BUCKET_SECRET", "the-secret")];

fn check_with(flags: &[&str], variables: &[(&str, &str)]) -> Result<ListConfig, Error> {
    let variables: HashMap<String, OsString> =
        variables.iter().map(|(name, value)| ((*name).to_owned(), OsString::from(value))).collect();
    let around =
        Surroundings::new(move |name| variables.get(name).cloned(), "/nonexistent/namespace".into(), false);
    match Args::try_from_list(["perennial", "list"].iter().chain(flags)).unwrap().command {
        Command::List(args) => ListConfig::check(&args, &around),
        _ => panic!("list was typed"),
    }
}

fn told(flags: &[&str], variables: &[(&str, &str)]) -> String {
    check_with(flags, variables).expect_err("a broken value passed").to_string()
}

fn order(config: &ListConfig) -> &Order {
    match &config.what {
        What::Order(order) => order,
        What::Listing(id) => panic!("{id}"),
    }
}

fn bucket(config: &ListConfig) -> &Bucket {
    config
        .places
        .iter()
        .find_map(|place| match &place.kind {
            PlaceKind::S3(bucket) => Some(&**bucket),
            _ => None,
        })
        .unwrap()
}

#[test]
fn a_service_and_a_file_are_enough() {
    let config = check_with(&["--service", "web", "--file", "/srv/index.html"], &[]).unwrap();
    let order = order(&config);
    assert_eq!((order.service.as_str(), order.format), ("web", Format::Html));
    assert_eq!((order.pace.min().as_millis(), order.pace.max().as_millis()), (250, 1000));
    assert_eq!(order.guards, Guards::default());
    assert!(!config.once && !config.dry_run && config.admin.is_none() && config.template.is_none());
    assert!(
        matches!(&config.places[0].kind, PlaceKind::File { path, history: None } if path.ends_with("index.html"))
    );
}

#[test]
fn the_older_tools_variables_and_defaults_are_honoured() {
    let folder = tempfile::tempdir().unwrap();
    let template = folder.path().join("page.template");
    std::fs::write(&template, "{{ count }}").unwrap();
    let variables = [
        ("BUCKET_KEY", "the-key"),
        ("BUCKET_SECRET", "the-secret"),
        ("BUCKET_URL", "fra1.example.com"),
        ("BUCKET_NAME", "pages"),
        ("SERVICE_NAME", "web"),
        ("TEMPLATE_NAME", template.to_str().unwrap()),
    ];
    let config = check_with(&[], &variables).unwrap();
    let bucket = bucket(&config);
    assert_eq!((bucket.bucket.as_str(), bucket.key.as_str()), ("pages", "index.html"));
    assert_eq!(
        (bucket.endpoint.as_deref(), bucket.acl),
        (Some("fra1.example.com"), Some(CannedAcl::PublicRead))
    );
    assert_eq!(order(&config).template, Source::Text("{{ count }}".to_owned()));
    assert_eq!(config.template.as_deref(), Some(template.as_path()));
    assert!(config.honoured.contains(&"BUCKET_NAME") && config.honoured.contains(&"SERVICE_NAME"));
    let without = &variables[..5];
    let told = told(&[], without);
    assert!(told.contains("index.template"), "its default template counts: {told}");
}

#[test]
fn a_bucket_of_our_own_flags_sends_no_acl_unless_it_is_given() {
    let flags = ["--service", "web", "--bucket", "pages", "--key", "web.json"];
    let config = check_with(&flags, &CREDENTIALS).unwrap();
    assert_eq!((bucket(&config).acl, order(&config).format), (None, Format::Json));
    let public = check_with(&[&flags[..], &["--acl", "public-read"]].concat(), &CREDENTIALS).unwrap();
    assert_eq!(bucket(&public).acl, Some(CannedAcl::PublicRead));
}

#[test]
fn credentials_come_from_the_first_pair_that_is_given_and_are_never_shown() {
    let flags = ["--service", "web", "--bucket", "pages"];
    for (key, secret) in names::CREDENTIALS {
        let config = check_with(&flags, &[(key, "access-me"), (secret, "hide-me")]).unwrap();
        let shown = format!("{config:?}");
        assert!(!shown.contains("hide-me") && !shown.contains("access-me"), "{shown}");
        let half = told(&flags, &[(key, "access-me")]);
        assert!(half.contains(secret) && !half.contains("access-me"), "{half}");
    }
    assert!(told(&flags, &[]).contains("PERENNIAL_BUCKET_KEY"));
}

#[test]
fn a_listing_is_named_with_its_namespace() {
    let config = check_with(&["--listing", "shop/web", "--file", "x"], &[]).unwrap();
    assert!(matches!(&config.what, What::Listing(id) if id.to_string() == "shop/web"));
    for broken in ["web", "/web", "shop/", "a/b/c", "Shop/web"] {
        assert!(told(&["--listing", broken, "--file", "x"], &[]).starts_with("--listing: "), "{broken}");
    }
}

#[test]
fn what_is_missing_or_broken_is_named() {
    let web = ["--service", "web", "--file", "x.html"];
    for (flags, word) in [
        (vec!["--file", "x"], "what to list is missing"),
        (vec!["--service", "web"], "a destination is missing"),
        (vec!["--service", "web", "--listing", "a/b", "--file", "x"], "exclude each other"),
        ([&web[..], &["--pace", "1s"]].concat(), "--pace: "),
        ([&web[..], &["--pace", "2s:1s"]].concat(), "--pace: "),
        ([&web[..], &["--endpoints", "some"]].concat(), "--endpoints: "),
        ([&web[..], &["--format", "pdf"]].concat(), "--format: "),
        ([&web[..], &["--min-endpoints", "many"]].concat(), "--min-endpoints: "),
        ([&web[..], &["--max-shrink", "0"]].concat(), "--max-shrink: "),
        ([&web[..], &["--max-shrink", "100"]].concat(), "--max-shrink: "),
        ([&web[..], &["--history", "0"]].concat(), "--history: "),
        ([&web[..], &["--template", "/nonexistent"]].concat(), "--template: "),
        ([&web[..], &["--acl", "public", "--bucket", "b"]].concat(), "--acl: "),
    ] {
        let told = told(&flags, &CREDENTIALS);
        assert!(told.contains(word), "{flags:?}: {told}");
    }
    assert!(check_with(&["--service", "web", "--dry-run"], &[]).unwrap().places.is_empty());
}

#[test]
fn a_template_in_gos_syntax_is_refused_with_a_hint() {
    let folder = tempfile::tempdir().unwrap();
    let template = folder.path().join("index.template");
    std::fs::write(&template, "{{ range .Items }}{{ .Name }}{{ end }}").unwrap();
    let told = told(&["--service", "web", "--file", "x", "--template", template.to_str().unwrap()], &[]);
    assert!(told.contains("Go's template syntax") && told.contains("{% for"), "{told}");
}

//! `perennial check`: whether `perennial run` would work with what it is given. Nothing is changed.
//!
//! Each finding is a line on standard output: `ok` or `FAIL`, what was looked at, and what to do. What is given is checked
//! before any of this, by [`crate::config`].

mod permissions;

use std::fmt::Write as _;
use std::time::Duration;

use http::Uri;
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use kube::api::PostParams;
use kube::{Api, Client};
use tokio::time::error::Elapsed;
use tokio::time::timeout;

use crate::ask;
use crate::config::Config;
use permissions::Permission;

/// The minor versions of Kubernetes 1 that Perennial is made for.
const MINORS: std::ops::RangeInclusive<u32> = 33..=36;
/// How long a whole answer may take: a little longer than the client waits for its beginning.
const WHOLE: Duration = Duration::from_secs(70);

/// What was found: lines for a person, and whether all is well.
#[derive(Debug, Default)]
pub struct Findings {
    lines: String,
    failed: usize,
}

impl Findings {
    fn ok(&mut self, what: impl std::fmt::Display) {
        // Writing to a String cannot fail.
        let _ = writeln!(self.lines, "ok    {what}");
    }

    fn fail(&mut self, what: impl std::fmt::Display) {
        self.failed += 1;
        let _ = writeln!(self.lines, "FAIL  {what}");
    }

    fn note(&mut self, what: impl std::fmt::Display) {
        let _ = writeln!(self.lines, "note  {what}");
    }

    /// Whether nothing is wrong.
    #[must_use]
    pub fn all_is_well(&self) -> bool {
        self.failed == 0
    }

    /// Each finding in a line.
    #[must_use]
    pub fn lines(&self) -> &str {
        &self.lines
    }
}

/// Looks at all of it, whatever is found on the way.
pub async fn check(client: &Client, config: &Config, ready: Option<&Uri>) -> Findings {
    let mut findings = Findings::default();
    let policy =
        config.policy.path().map_or_else(|| "built in".to_owned(), |path| path.display().to_string());
    findings.ok(format_args!("settings and policy ({policy})"));
    if server(client, &mut findings).await {
        allowed(client, config, &mut findings).await;
        if config.lister.is_some() {
            listings(client, &mut findings).await;
        }
    }
    if let Some(ready) = ready {
        replica(ready, &mut findings).await;
    }
    findings
}

/// Whether the API server answers, and in which version.
async fn server(client: &Client, findings: &mut Findings) -> bool {
    let version = match whole(client.apiserver_version()).await {
        Ok(version) => version,
        Err(error) => {
            findings.fail(format_args!("the API server does not answer: {error}"));
            return false;
        }
    };
    findings.ok(format_args!("the API server answers ({})", version.git_version));
    let minor: String = version.minor.chars().take_while(char::is_ascii_digit).collect();
    if version.major != "1" || !minor.parse().is_ok_and(|minor: u32| MINORS.contains(&minor)) {
        let (first, last) = (MINORS.start(), MINORS.end());
        findings.note(format_args!("Perennial is made for Kubernetes 1.{first} to 1.{last}"));
    }
    true
}

/// An answer that has begun must also end.
async fn whole<T>(answer: impl Future<Output = kube::Result<T>>) -> kube::Result<T> {
    let late = |elapsed: Elapsed| Err(kube::Error::Service(elapsed.into()));
    timeout(WHOLE, answer).await.unwrap_or_else(late)
}

/// Whether the account may do all that is needed.
async fn allowed(client: &Client, config: &Config, findings: &mut Findings) {
    let reviews: Api<SelfSubjectAccessReview> = Api::all(client.clone());
    let needed = permissions::needed(config);
    let count = needed.len();
    let mut granted = 0;
    for permission in needed {
        match whole(reviews.create(&PostParams::default(), &review(&permission))).await {
            Ok(answer) if answer.status.as_ref().is_some_and(|status| status.allowed) => granted += 1,
            Ok(_) => findings
                .fail(format_args!("this account may not {}: see deploy/rbac*.yaml", told(&permission))),
            Err(error) => {
                findings.fail(format_args!(
                    "nobody says whether this account may {}: {error}",
                    told(&permission)
                ));
            }
        }
    }
    if granted == count {
        findings.ok(format_args!("this account may do all that is needed ({count} permissions)"));
    }
}

fn review(permission: &Permission) -> SelfSubjectAccessReview {
    let Permission { verb, group, resource, subresource, namespace, name } = permission;
    let attributes = ResourceAttributes {
        verb: Some((*verb).to_owned()),
        group: Some((*group).to_owned()),
        resource: Some((*resource).to_owned()),
        subresource: subresource.map(str::to_owned),
        namespace: namespace.clone(),
        name: name.clone(),
        ..ResourceAttributes::default()
    };
    let spec = SelfSubjectAccessReviewSpec {
        resource_attributes: Some(attributes),
        ..SelfSubjectAccessReviewSpec::default()
    };
    SelfSubjectAccessReview { spec, ..SelfSubjectAccessReview::default() }
}

fn told(permission: &Permission) -> String {
    let Permission { verb, group, resource, subresource, namespace, name } = permission;
    let mut told = format!("{verb} {resource}");
    if let Some(part) = subresource {
        told = format!("{told}/{part}");
    }
    if !group.is_empty() {
        told = format!("{told}.{group}");
    }
    if let Some(name) = name {
        told = format!("{told} {name}");
    }
    match namespace {
        Some(namespace) => format!("{told} in {namespace}"),
        None => told,
    }
}

/// Whether the API server knows what a Listing is.
async fn listings(client: &Client, findings: &mut Findings) {
    match whole(client.list_api_group_resources("perennial.dev/v1alpha1")).await {
        Ok(known) if known.resources.iter().any(|resource| resource.name == "listings") => {
            findings.ok("Listings are known");
        }
        Err(error) if !matches!(&error, kube::Error::Api(status) if status.code == 404) => {
            findings.fail(format_args!("nobody says whether Listings are known: {error}"));
        }
        _ => findings.fail("Listings are not known: kubectl apply -f deploy/crds"),
    }
}

/// Whether a replica is ready, or becomes it in a moment.
async fn replica(ready: &Uri, findings: &mut Findings) {
    match ask::until(ready, async |answer| answer.map(drop)).await {
        Ok(()) => findings.ok(format_args!("{ready} says ready")),
        Err(why) => findings.fail(format_args!("{ready}: {why}; see kubectl get pods, and their logs")),
    }
}

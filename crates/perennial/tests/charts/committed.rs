//! The manifests in `deploy`, for people without Helm: what the chart renders, so that there is one source of truth.

use std::fmt::Write as _;

use crate::rendered::{PERENNIAL, render, root};

/// Stands for the namespace of a team, which applies the file in its own.
const TEAM: &str = "the-namespace-of-a-team";

/// A file of `deploy`: what is said above it, and what Helm is asked for.
struct Manifest {
    file: &'static str,
    about: &'static str,
    arguments: &'static [&'static str],
}

const MANIFESTS: &[Manifest] = &[
    Manifest {
        file: "perennial.yaml",
        about: "The keeper, three replicas, with all that surrounds it: kubectl create namespace perennial, set the image, apply.\n\
                No Namespace is in here: deleting by this file must not take the records along.",
        arguments: &["--skip-tests"],
    },
    Manifest {
        file: "lister.yaml",
        about: "The lister beside it, with an account of its own, and the definition of Listings.",
        arguments: &[
            "--skip-tests",
            "--set",
            "split=true,keeper.enabled=false,lister.enabled=true,priorityClass.create=false,flowControl.enabled=false,networkPolicy.enabled=false",
        ],
    },
    Manifest {
        file: "rbac.yaml",
        about: "Everything the keeper may do, and nothing it does not need: a test runs it with exactly this, and fails if\n\
                a verb is missing or unused.",
        arguments: &[
            "--show-only",
            "templates/rbac-keeper.yaml",
            "--show-only",
            "templates/serviceaccount.yaml",
        ],
    },
    Manifest {
        file: "webhook.yaml",
        about: "What the API server asks before a Node is created (docs/born.md), beside perennial.yaml: `perennial run` there needs\n\
                --webhook-address=:8443 --webhook-name=perennial-webhook, and a port of the name webhook, which the NetworkPolicy there\n\
                has to open, from wherever the API server asks.",
        arguments: &["--show-only", "templates/webhook.yaml", "--set", "webhook.enabled=true"],
    },
    Manifest {
        file: "webhook-strict.yaml",
        about: "Beside webhook.yaml: a node is deleted only once what is kept of it is recorded. Where Perennial is away, no node can be\n\
                deleted, but for one with the annotation perennial.dev/delete-unrecorded.",
        arguments: &[
            "--show-only",
            "templates/webhook-strict.yaml",
            "--set",
            "webhook.enabled=true,webhook.strict=true",
        ],
    },
    Manifest {
        file: "metrics.yaml",
        about: "Metrics by HTTPS, for those alone who may read them (docs/security.md), beside perennial.yaml: `perennial run` there\n\
                needs --metrics-address=:8444 --metrics-name=perennial-metrics, and a port of the name metrics, which the NetworkPolicy there\n\
                has to open.",
        arguments: &["--show-only", "templates/metrics.yaml", "--set", "metrics.secure=true"],
    },
    Manifest {
        file: "rbac-lister.yaml",
        about: "Everything the lister may do for all namespaces, and nothing it does not need: a test runs it with exactly this\n\
                and rbac-listings.yaml, and fails if a verb is missing or unused. Secrets are not here: see there.",
        arguments: &[
            "--show-only",
            "templates/rbac-lister.yaml",
            "--show-only",
            "templates/serviceaccount.yaml",
            "--set",
            "keeper.enabled=false,lister.enabled=true",
        ],
    },
    Manifest {
        file: "rbac-listings.yaml",
        about: "What a team grants in its own namespace so that its Listings may use what lies there: apply it with -n NAMESPACE.\n\
                Leave out what your Listings do not name, and name the Secrets, as here: nothing else of the namespace is read.",
        arguments: &[
            "--show-only",
            "templates/rbac-listings.yaml",
            "--set",
            "lister.enabled=true,lister.grants[0].namespace=the-namespace-of-a-team,lister.grants[0].configMaps=true",
            "--set",
            "lister.grants[0].secrets={listing-bucket}",
        ],
    },
];

/// What Helm renders, without what is Helm's own: nobody who applies this with kubectl has a release.
fn manifest(manifest: &Manifest) -> String {
    let rendered = render(PERENNIAL, "perennial", manifest.arguments).unwrap();
    let mut text = String::new();
    for line in manifest.about.lines() {
        writeln!(text, "# {line}").unwrap();
    }
    text.push_str(
        "#\n# Made from charts/perennial: UPDATE_DOCS=1 cargo test -p perennial --test charts committed\n",
    );
    let of_helm = ["# Source: ", "app.kubernetes.io/managed-by: Helm", "helm.sh/", "argocd.argoproj.io/"];
    let team = format!("namespace: {TEAM}");
    for line in rendered.lines() {
        let line = line.trim_end();
        let bare = line.trim_start();
        let unwanted = line.is_empty() || bare == team || of_helm.iter().any(|begin| bare.starts_with(begin));
        if !unwanted {
            writeln!(text, "{line}").unwrap();
        }
    }
    text.replace("  annotations:\n  labels:", "  labels:")
}

#[test]
fn the_manifests_are_what_the_chart_renders() {
    for one in MANIFESTS {
        let (path, made) = (root().join("deploy").join(one.file), manifest(one));
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(&path, &made).unwrap();
        }
        let committed = std::fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(
            committed, made,
            "deploy/{} is old: UPDATE_DOCS=1 cargo test -p perennial --test charts committed",
            one.file
        );
    }
}

#[test]
fn nothing_of_helm_and_no_namespace_is_in_them() {
    for one in MANIFESTS {
        let made = manifest(one);
        for object in crate::rendered::objects(&made) {
            assert_ne!(object["kind"], "Namespace", "{}", one.file);
            assert!(object["metadata"]["annotations"].is_null(), "{}: {object}", one.file);
        }
        assert!(!made.contains("Helm") && !made.contains(TEAM), "{}", one.file);
    }
}

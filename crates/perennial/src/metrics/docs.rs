//! docs/metrics.md, written from the registry itself and from the file of alerts.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use prometheus_client::registry::Registry;

use super::{encode, section};
use crate::config::PolicyMetrics;
use crate::{cluster, keeper, lister, members, webhook};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/metrics.md");
const ALERTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../charts/perennial/files/alerts.yaml");

const INTRODUCTION: &str = "\
# Metrics

Generated from the binary: `UPDATE_DOCS=1 cargo test -p perennial --lib docs` writes it anew.

Every replica serves its own on the admin port under `/metrics`, as OpenMetrics text; by HTTPS, for those alone who may read
them, with `--metrics-address` ([security.md](security.md#metrics-for-those-who-may-read-them)). No label bears the name of a node, a
namespace or a listing: their number is the same for ten nodes and for a hundred thousand. Counters by kind are there from
the start, at 0.

Every replica watches the whole fleet, so gauges of the fleet are the same on all of them but for moments: join them by
`max` (or `min`), not by `sum`. Counters count what this replica did: join them by `sum`. A histogram also has `_bucket`,
`_sum` and `_count`.
";

/// What to do about each, in the order of the sections.
const ADVICE: &[(&str, &str)] = &[
    ("perennial_nodes", "Compare it with `kubectl get nodes`; another number means that this replica lags."),
    ("perennial_nodes_current", "See `perennial_nodes_current_ratio`."),
    (
        "perennial_nodes_current_ratio",
        "Below 1 for long: see `perennial_pending_by_age`, then `perennial_skips_total` and `perennial_errors_total`.",
    ),
    (
        "perennial_pending",
        "High for a moment in a storm. If it stays: `perennial_errors_total`, `perennial_request_seconds`.",
    ),
    (
        "perennial_pending_by_age",
        "What is in `longer` waits for a person: the log and the Events of the node say for what.",
    ),
    ("perennial_pending_oldest_seconds", "As `perennial_pending_by_age`."),
    (
        "perennial_unrestored",
        "Nodes without what was theirs. `perennial_skips_total` says why, and the Events of the node.",
    ),
    (
        "perennial_unrestored_oldest_seconds",
        "Longer than a minute: see the Events of the node and `perennial_restore_failing`.",
    ),
    (
        "perennial_restore_failing",
        "See the line `still failing, still trying` in the log: it names the node and the error.",
    ),
    ("perennial_records", "One a node, and one for each that is away."),
    (
        "perennial_records_absent",
        "Grows where names never return: see `retention` and `maxAbsent` in the policy.",
    ),
    (
        "perennial_records_unreadable",
        "Somebody edited a record, or a newer version runs beside this one. Copies are in `node-record-aside.*`.",
    ),
    ("perennial_brake_held", "Look at what is to be erased or shrunk before you confirm: docs/operate.md."),
    (
        "perennial_brake_engaged",
        "Nothing is lost while it is on. Confirm or change the policy: docs/operate.md.",
    ),
    (
        "perennial_dry_run",
        "Seen enough: `dryRun: false`. Nothing grows old meanwhile, and no alert misses what is not recorded.",
    ),
    (
        "perennial_inflight",
        "At `--concurrency` for long: the API server is slow, see `perennial_request_seconds`.",
    ),
    ("perennial_saves_total", "Many `save` without a person at work: see `perennial_churn_total`."),
    ("perennial_erases_total", "`forgotten` is a person's word, the others are collection."),
    (
        "perennial_skips_total",
        "`identity_unknown`: no `spec.providerID` yet, or bare metal (`privileged.withoutProviderID`). `newer_schema`: upgrade. `unreadable`: see above.",
    ),
    ("perennial_notices_total", "Each has an Event on its node that says what happened."),
    ("perennial_proofs_total", "`lost`: the end lies before etcd's history, the recorded state was given."),
    ("perennial_restores_total", "What it is for."),
    (
        "perennial_restored_after_ready_total",
        "Workloads may have been placed before the labels were back: see `perennial_restore_seconds`.",
    ),
    ("perennial_labels_restored_total", "What it is for."),
    (
        "perennial_churn_total",
        "Two hands set the same label to different values. The page and `perennial status` name the nodes, and count the same.",
    ),
    ("perennial_records_refused_total", "Keep fewer annotations: a ConfigMap holds 1 MiB."),
    (
        "perennial_histories_total",
        "etcd was restored from a snapshot, or records came from another cluster. Everything was listed anew.",
    ),
    (
        "perennial_unobserved_total",
        "The API server was away for longer than its history. Ends were proved from etcd's.",
    ),
    (
        "perennial_unobserved_seconds_total",
        "Longer than etcd's history (5 to 10 minutes) means ends that nobody can prove.",
    ),
    (
        "perennial_restore_seconds",
        "Seconds, most of them the kubelet's own. Slow: `perennial_queue_seconds`, `perennial_request_seconds`.",
    ),
    ("perennial_queue_seconds", "Above a second: more `--concurrency`, or a slow API server."),
    ("perennial_member_live", "Fewer than replicas: see their logs, and the Leases in the namespace."),
    ("perennial_member_share", "About one divided by the replicas."),
    ("perennial_member_takeovers_total", "A replica is dead, paused or slow."),
    (
        "perennial_member_duplicates_total",
        "Harmless. Many: replicas do not see each other's Leases, or `--takeover` is short.",
    ),
    (
        "perennial_member_renewals_failed_total",
        "Others take this replica for dead. It goes on; see `perennial_errors_total`.",
    ),
    (
        "perennial_errors_total",
        "`forbidden`: the log names the permission. `throttled`: priority and fairness. `conflict` is ordinary. `panic` is a bug.",
    ),
    ("perennial_relists_total", "Ordinary after long outages of the API server."),
    (
        "perennial_view_age_seconds",
        "Up to 10 s is usual, up to a minute with hundreds of Listings. Older than two watches and 10 s: the replica is not ready.",
    ),
    ("perennial_events_dropped_total", "Events are best effort, ten a second. The log has them all."),
    ("perennial_request_seconds", "The API server's own latency, as seen from here."),
    ("perennial_requests_inflight", "Watches are not counted."),
    (
        "perennial_births_total",
        "`unanswered` is usual for a kubelet that starts again and has its Node. If nodes that return are among them, the watch lags behind by more than 0.1 s.",
    ),
    (
        "perennial_deaths_total",
        "`refused`: somebody could not delete a node, because its record could not be written; see `perennial_errors_total`.",
    ),
    ("perennial_webhook_broken_total", "Somebody who is not the API server talks to the webhook."),
    (
        "perennial_webhook_seconds",
        "The API server waits for 1 s at a birth, and every second of it delays a registration.",
    ),
    (
        "perennial_webhook_certificate",
        "0 for more than a minute: the log says what is not in order with the Secret of the webhook.",
    ),
    ("perennial_listings", "Compare it with `kubectl get listings -A`."),
    ("perennial_listing_endpoints", "A sudden drop: see the Service, and the guards of its Listing."),
    (
        "perennial_listings_held",
        "`kubectl get listings -A` names them; the condition `Held` says how to release the page.",
    ),
    ("perennial_listings_failing", "`kubectl get listings -A` names them; the condition `Ready` says why."),
    ("perennial_listing_stale_seconds", "As the two above: whatever is held or failing is stale as well."),
    ("perennial_listing_published_total", "What it is for."),
    ("perennial_listing_held_total", "See `perennial_listings_held`."),
    (
        "perennial_listing_failed_total",
        "The condition `Ready` of the Listing has the same word and what to do.",
    ),
    ("perennial_listing_publish_seconds", "The destination's own latency, for the most part."),
    ("perennial_listing_render_seconds", "Slow: a long page, or a costly template."),
    ("perennial_policy_reloads_total", "`failed`: see `perennial_policy_refused`."),
    (
        "perennial_policy_refused",
        "The log says which key of the policy is wrong. The one before it is in force.",
    ),
    ("perennial_build_info", "Two versions for long: a rollout that hangs."),
    ("process_resident_memory_bytes", "See docs/operate.md."),
    ("process_virtual_memory_bytes", ""),
    ("process_threads", ""),
    ("process_open_fds", "Near `process_max_fds`: too many connections to the admin port."),
    ("process_max_fds", ""),
    ("process_start_time_seconds", "Changes often: the process restarts, see `kubectl describe pod`."),
    ("process_cpu_seconds_total", ""),
];

/// One metric, as it is scraped.
#[derive(Debug, Default)]
struct Metric {
    kind: String,
    help: String,
    labels: BTreeMap<String, BTreeSet<String>>,
}

/// A title and what is registered under it.
fn sections() -> Vec<(&'static str, Registry)> {
    let of = |register: fn(&mut Registry)| {
        let mut registry = Registry::default();
        register(section(&mut registry));
        registry
    };
    vec![
        ("Nodes and their records", of(|registry| drop(keeper::Metrics::register(registry)))),
        ("Replicas", of(|registry| drop(members::Metrics::register(registry)))),
        ("The API server", of(|registry| drop(cluster::Metrics::register(registry)))),
        ("The webhook", of(|registry| drop(webhook::Metrics::register(registry)))),
        ("Listings", of(|registry| drop(lister::Metrics::register(registry)))),
        ("The policy", of(|registry| drop(PolicyMetrics::register(registry)))),
        ("The process", super::registry()),
    ]
}

/// The metrics of an exposition, in its order, by the names that queries use.
fn scraped(text: &str) -> Vec<(String, Metric)> {
    let mut metrics: Vec<(String, Metric)> = Vec::new();
    for line in text.lines() {
        if let Some((name, help)) = line.strip_prefix("# HELP ").and_then(|rest| rest.split_once(' ')) {
            let help = help.trim_end_matches('.').to_owned();
            metrics.push((name.to_owned(), Metric { help, ..Metric::default() }));
        } else if let Some((_, kind)) = line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' ')) {
            let (name, metric) = metrics.last_mut().unwrap();
            let suffix = match kind {
                "counter" => "_total",
                "info" => "_info",
                _ => "",
            };
            *name = format!("{name}{suffix}");
            metric.kind = kind.to_owned();
        } else if let Some((_, labels)) = line.split_once('{').filter(|_| !line.starts_with('#')) {
            let metric = &mut metrics.last_mut().unwrap().1;
            for label in labels.split_once('}').unwrap().0.split(',') {
                let (name, value) = label.split_once('=').unwrap();
                if name != "le" {
                    metric
                        .labels
                        .entry(name.to_owned())
                        .or_default()
                        .insert(value.trim_matches('"').to_owned());
                }
            }
        }
    }
    metrics
}

/// The alerts whose expression names a metric.
fn alerts(name: &str) -> Vec<String> {
    let file = std::fs::read_to_string(ALERTS).unwrap_or_default();
    let mut found = Vec::new();
    let mut alert = "";
    for line in file.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix("- alert: ") {
            alert = name;
        }
        let words = |line: &str| {
            line.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
                .any(|word| word == name || word.strip_suffix("_count").is_some_and(|word| word == name))
        };
        if line.starts_with("expr: ") && words(line) {
            found.push(format!("[{alert}](alerts.md#{})", alert.to_lowercase()));
        }
    }
    found
}

fn page() -> String {
    let advice: BTreeMap<&str, &str> = ADVICE.iter().copied().collect();
    let mut page = INTRODUCTION.to_owned();
    for (title, registry) in sections() {
        write!(
            page,
            "\n## {title}\n\n| metric | type | | what to do about it |\n| --- | --- | --- | --- |\n"
        )
        .unwrap();
        for (name, Metric { kind, help, labels }) in scraped(&encode(&registry)) {
            let labelled = labels.keys().cloned().collect::<Vec<_>>().join(", ");
            let labelled = if labelled.is_empty() { labelled } else { format!("{{{labelled}}}") };
            let mut cell = help;
            for (label, values) in labels.iter().filter(|_| kind != "info") {
                let values = values.iter().map(|value| format!("`{value}`")).collect::<Vec<_>>().join(", ");
                write!(cell, "<br>{label}: {values}").unwrap();
            }
            let advice = advice.get(name.as_str()).copied();
            let advice = advice.unwrap_or_else(|| panic!("nothing says what to do about {name}"));
            let alerts = alerts(&name);
            let alerts =
                if alerts.is_empty() { String::new() } else { format!("<br>Alert: {}", alerts.join(", ")) };
            let advice = format!("{advice}{alerts}");
            let advice = advice.trim_start_matches("<br>");
            writeln!(page, "| `{name}{labelled}` | {kind} | {cell} | {advice} |").unwrap();
        }
    }
    page
}

#[test]
fn the_page_of_metrics_is_what_the_registry_says() {
    let page = page();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(PAGE, &page).unwrap();
    }
    let written = std::fs::read_to_string(PAGE).unwrap_or_default();
    assert_eq!(written, page, "docs/metrics.md is old: UPDATE_DOCS=1 cargo test -p perennial --lib docs");
}

#[test]
fn nothing_is_said_of_metrics_that_are_not_there() {
    let known: BTreeSet<String> = sections()
        .iter()
        .flat_map(|(_, registry)| scraped(&encode(registry)).into_iter().map(|(name, _)| name))
        .collect();
    let said: Vec<&str> = ADVICE.iter().map(|(name, _)| *name).collect();
    assert!(said.iter().all(|name| known.contains(*name)), "{said:?} against {known:?}");
    assert_eq!(said.iter().collect::<BTreeSet<_>>().len(), said.len(), "some are there twice");
}

#[test]
fn no_name_of_ours_is_without_prefix_or_help() {
    for (title, registry) in sections() {
        for (name, metric) in scraped(&encode(&registry)) {
            assert!(name.starts_with("perennial_") || name.starts_with("process_"), "{title}: {name}");
            assert!(!metric.help.is_empty() && !metric.kind.is_empty(), "{name}: {metric:?}");
        }
    }
}

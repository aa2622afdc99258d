//! What is on the dashboard, question by question.
//!
//! Every replica sees the whole fleet: gauges of it are joined by max (or min, where less is worse), counters by sum.

use super::panel::Kind::{Bars, Heatmap, Lines, Ranking, Stack, Stat};
use super::panel::Panel;

/// A question, and the panels that answer it.
pub(crate) type Row = (&'static str, Vec<Panel>);

pub(crate) fn rows() -> Vec<Row> {
    vec![
        ("Is every node's memory current?", current()),
        ("What came back, when, how fast?", restored()),
        ("What was skipped, and why?", skipped()),
        ("Who does the work?", members()),
        ("What is remembered?", records()),
        ("Are the pages of Listings current?", listings()),
        ("Does the API server answer?", requests()),
        ("What does it cost?", process()),
    ]
}

/// A number that should be 0.
fn none_expected(title: &'static str, about: &'static str, metric: &str, colour: &'static str) -> Panel {
    Panel::new(Stat, title, about).of(&format!("max({metric}{{}})"), "").from(1.0, colour)
}

/// How long something has been waiting that should not wait for long.
fn wait(title: &'static str, about: &'static str, metric: &str, bad: f64) -> Panel {
    let panel = Panel::new(Stat, title, about).of(&format!("max({metric}{{}})"), "").unit("s");
    panel.from(60.0, "orange").from(bad, "red")
}

/// How often things happen; each a counter and its name.
fn events(title: &'static str, about: &'static str, counters: &[(&str, &'static str)]) -> Panel {
    counters.iter().fold(Panel::new(Bars, title, about), |panel, (counter, name)| {
        panel.of(&format!("sum(increase({counter}{{}}[$__rate_interval]))"), name)
    })
}

/// How often each kind of a thing happens.
fn kinds(title: &'static str, about: &'static str, counter: &str) -> Panel {
    Panel::new(Bars, title, about)
        .of(&format!("sum by (kind) (increase({counter}{{}}[$__rate_interval]))"), "{{kind}}")
}

/// The same for each replica.
fn each(kind: super::panel::Kind, title: &'static str, about: &'static str, expression: &str) -> Panel {
    Panel::new(kind, title, about)
        .of(&format!("sum by (pod, instance) ({expression})"), "{{pod}} {{instance}}")
}

fn current() -> Vec<Panel> {
    vec![
        Panel::new(Stat, "Current", "Share of nodes whose record says what is on them now.")
            .of("min(perennial_nodes_current_ratio{})", "")
            .unit("percentunit")
            .low_is_bad()
            .from(0.99, "orange")
            .from(0.999, "green"),
        none_expected("Wait for their own", "Nodes that are back and still lack what was theirs.", "perennial_unrestored", "orange"),
        wait("Longest wait", "Of the node that has waited longest for what was its own.", "perennial_unrestored_oldest_seconds", 300.0),
        none_expected("Cannot be restored", "Nodes whose restore failed five times in a row or more.", "perennial_restore_failing", "red"),
        Panel::new(Stat, "Replicas", "That are alive, as they see each other.")
            .of("max(perennial_member_live{})", "")
            .low_is_bad()
            .from(1.0, "orange")
            .from(2.0, "green"),
        Panel::new(Stat, "Alerts", "Of Perennial that fire now. Grafana's list of alerts names them; docs/alerts.md says what to do.")
            .of(r#"count(ALERTS{alertname=~"Perennial.*",alertstate="firing"}) or vector(0)"#, "")
            .from(1.0, "red"),
        Panel::new(Lines, "Nodes", "Nodes there are, and those whose record is current.")
            .of("max(perennial_nodes{})", "there")
            .of("min(perennial_nodes_current{})", "current"),
        Panel::new(Stack, "Pending, by age", "Nodes about which somebody has to act. Seconds are usual; what grows old is stuck.")
            .of("max by (age) (perennial_pending_by_age{})", "{{age}}"),
        Panel::new(Lines, "Oldest", "How long the oldest of them has been waiting.")
            .of("max(perennial_pending_oldest_seconds{})", "pending")
            .of("max(perennial_unrestored_oldest_seconds{})", "not restored")
            .unit("s"),
    ]
}

fn restored() -> Vec<Panel> {
    let counted = |title, about, counter: &str| {
        Panel::new(Stat, title, about).of(&format!("round(sum(increase({counter}{{}}[$__range])))"), "")
    };
    let within = |title, about, quantile: &str| {
        let buckets = "sum by (le) (increase(perennial_restore_seconds_bucket{}[$__range]))";
        Panel::new(Stat, title, about)
            .of(&format!("histogram_quantile({quantile}, {buckets})"), "")
            .unit("s")
            .from(10.0, "orange")
            .from(60.0, "red")
    };
    vec![
        counted(
            "Restored",
            "Nodes that got back what they lacked, in the time shown.",
            "perennial_restores_total",
        ),
        counted("Labels put back", "In the time shown.", "perennial_labels_restored_total"),
        counted(
            "After Ready",
            "Restores at which the node was Ready already: pods may have been scheduled before.",
            "perennial_restored_after_ready_total",
        ),
        within("Half within", "Of its creation half of the nodes were restored within this time.", "0.5"),
        within(
            "99 of 100 within",
            "Of its creation nearly every node was restored within this time.",
            "0.99",
        ),
        none_expected("Not restored now", "Nodes that still wait.", "perennial_unrestored", "orange"),
        events(
            "Restores",
            "When nodes came back, and at how many the Node was Ready already.",
            &[
                ("perennial_restores_total", "restored"),
                ("perennial_restored_after_ready_total", "of these after Ready"),
            ],
        ),
        Panel::new(Lines, "From creation to restore", "How long a node that returns is without its own.")
            .quantiles("perennial_restore_seconds", "$__rate_interval")
            .unit("s"),
        Panel::new(Heatmap, "From creation to restore, each", "The same, all of them.")
            .of("sum by (le) (increase(perennial_restore_seconds_bucket{}[$__rate_interval]))", "{{le}}"),
    ]
}

fn skipped() -> Vec<Panel> {
    let ranking = |title, about, counter: &str| {
        Panel::new(Ranking, title, about)
            .of(&format!("sort_desc(round(sum by (kind) (increase({counter}{{}}[$__range]))))"), "{{kind}}")
    };
    vec![
        ranking(
            "Skipped",
            "Decisions to leave a node as it is though it is not settled, in the time shown, by reason (docs/operate.md).",
            "perennial_skips_total",
        ),
        ranking(
            "Told",
            "What a person should look at, in the time shown; an Event on the node says more.",
            "perennial_notices_total",
        )
        .from(1.0, "orange"),
        ranking("Erased", "Records removed in the time shown, by reason.", "perennial_erases_total"),
        kinds("Skips", "When it was.", "perennial_skips_total"),
        kinds("Notices", "When it was.", "perennial_notices_total"),
        Panel::new(
            Lines,
            "Brake",
            "1 while collection and shrinking are stopped, and how many records wait behind it.",
        )
        .of("max(perennial_brake_engaged{})", "engaged")
        .of("max(perennial_brake_held{})", "held"),
    ]
}

fn members() -> Vec<Panel> {
    vec![
        each(Stack, "Share of the nodes", "For which each replica comes first.", "perennial_member_share{}")
            .unit("percentunit"),
        each(Bars, "Records written", "By replica.", "increase(perennial_saves_total{}[$__rate_interval])"),
        each(Lines, "In hand", "Nodes that each replica works on at this moment.", "perennial_inflight{}"),
        Panel::new(
            Lines,
            "From due to begun",
            "How long work waits in line. It grows when a replica has more to do than it may do at once.",
        )
        .quantiles("perennial_queue_seconds", "$__rate_interval")
        .unit("s"),
        each(
            Lines,
            "Replicas alive",
            "As each replica sees them; they should agree.",
            "perennial_member_live{}",
        ),
        events(
            "Beside each other",
            "Writes in place of one that did not act in time, writes that lost to another's (which harms nothing), Leases not renewed.",
            &[
                ("perennial_member_takeovers_total", "took over"),
                ("perennial_member_duplicates_total", "twice"),
                ("perennial_member_renewals_failed_total", "Lease not renewed"),
            ],
        ),
    ]
}

fn records() -> Vec<Panel> {
    vec![
        Panel::new(Lines, "Records", "All, those of nodes that are away, and those that cannot be read.")
            .of("max(perennial_records{})", "records")
            .of("max(perennial_records_absent{})", "away")
            .of("max(perennial_records_unreadable{})", "unreadable"),
        kinds(
            "Records written",
            "By transition: the node changed (save), went (close), returned (give).",
            "perennial_saves_total",
        ),
        kinds("Ends looked up", "In etcd's history, because nobody had seen them.", "perennial_proofs_total"),
        events(
            "Back and forth",
            "What is kept of a node went back to the state that it had just left (A, B, A): something keeps setting old values.",
            &[("perennial_churn_total", "churn")],
        ),
        events(
            "Out of the ordinary",
            "Records too large for a ConfigMap; versions that ran backwards, as after etcd was restored.",
            &[
                ("perennial_records_refused_total", "too large"),
                ("perennial_histories_total", "other history"),
            ],
        ),
        Panel::new(
            Lines,
            "Policy",
            "Changes of the file by result, and 1 while it is broken and the one before is in force.",
        )
        .of("sum by (result) (increase(perennial_policy_reloads_total{}[$__rate_interval]))", "{{result}}")
        .of("max(perennial_policy_refused{})", "broken"),
    ]
}

fn listings() -> Vec<Panel> {
    vec![
        Panel::new(Stat, "Listings", "That are followed.").of("max(perennial_listings{})", ""),
        Panel::new(Stat, "Endpoints", "On all pages together.").of("max(perennial_listing_endpoints{})", ""),
        none_expected("Held", "Listings whose page a guard holds back.", "perennial_listings_held", "orange"),
        none_expected("Failing", "Listings whose page cannot be made or published.", "perennial_listings_failing", "red"),
        wait("Oldest page not out", "How long a page that is wanted has not been published.", "perennial_listing_stale_seconds", 1800.0)
            .wide(8),
        events(
            "Pages",
            "Written to a destination, and held back by a guard.",
            &[("perennial_listing_published_total", "published"), ("perennial_listing_held_total", "held")],
        ),
        kinds("Pages not written", "By kind of failure.", "perennial_listing_failed_total"),
        Panel::new(Lines, "From wanted to published", "For each destination; and how long the page took to make.")
            .quantiles("perennial_listing_publish_seconds", "$__rate_interval")
            .of("histogram_quantile(0.99, sum by (le) (rate(perennial_listing_render_seconds_bucket{}[$__rate_interval])))", "making, 99 %")
            .unit("s"),
    ]
}

fn requests() -> Vec<Panel> {
    vec![
        Panel::new(Lines, "Calls", "How long they take, watches not counted.")
            .quantiles("perennial_request_seconds", "$__rate_interval")
            .unit("s"),
        each(Stack, "Calls a second", "By replica.", "rate(perennial_request_seconds_count{}[$__rate_interval])").unit("reqps"),
        kinds("Failed calls", "By kind. Conflicts are part of the protocol; `forbidden` is a permission that is missing.", "perennial_errors_total"),
        each(Lines, "Calls under way", "By replica.", "perennial_requests_inflight{}"),
        events(
            "Watches",
            "Lists that were needed because a watch could not go on, those of Nodes among them, and Events that were dropped.",
            &[
                ("perennial_relists_total", "listed anew"),
                ("perennial_unobserved_total", "nodes unobserved"),
                ("perennial_events_dropped_total", "Events dropped"),
            ],
        ),
        Panel::new(Lines, "Age of the view", "How long ago a watch last told how far it got: of each kind the one that did so longest ago, on whichever replica. Ten seconds are usual.")
            .of("max by (kind) (perennial_view_age_seconds{})", "{{kind}}")
            .unit("s"),
        each(Bars, "Unobserved", "Seconds of the Node watch that each replica missed. Ends in them are looked up in etcd's history.", "increase(perennial_unobserved_seconds_total{}[$__rate_interval])").unit("s"),
    ]
}

/// A metric that every program has, of ours alone.
fn own(metric: &str) -> String {
    format!("{metric} and on (cluster, namespace, job, instance) perennial_build_info{{}}")
}

fn process() -> Vec<Panel> {
    vec![
        each(Lines, "Memory", "By replica.", &own("process_resident_memory_bytes{}")).unit("bytes"),
        each(
            Lines,
            "CPU",
            "Cores in use, by replica.",
            &own("rate(process_cpu_seconds_total{}[$__rate_interval])"),
        ),
        each(Lines, "Open files", "By replica.", &own("process_open_fds{}")),
        each(Lines, "Threads", "By replica.", &own("process_threads{}")),
        each(Lines, "Up for", "By replica.", &own("(time() - process_start_time_seconds{})")).unit("s"),
        Panel::new(Stack, "Versions", "Replicas of each: two during a rollout.")
            .of("count by (version) (perennial_build_info{})", "{{version}}"),
    ]
}

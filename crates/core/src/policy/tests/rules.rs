//! Rules: which one speaks for a node, and what it says.

use jiff::SignedDuration;

use super::{pairs, policy, rule};
use crate::kept::{Content, Pairs, Taint};
use crate::policy::{Brake, Identity, Narrow, Policy, is_privileged};

fn taint(key: &str, effect: &str, value: &str) -> Taint {
    Taint { key: key.into(), effect: effect.into(), value: value.into() }
}

#[test]
fn the_first_rule_that_matches_speaks_for_a_node() {
    let policy = policy(
        "rules: [{name: gpu, selector: 'pool=gpu'}, {name: prod, selector: 'tier in (prod,canary)'}, {selector: '!pool'}]",
    );
    for (live, recorded, expected) in [
        (pairs([("pool", "gpu"), ("tier", "prod")]), None, Some("gpu")),
        (pairs([("pool", "cpu"), ("tier", "prod")]), None, Some("prod")),
        (pairs([]), None, Some("rule-3")),
        (pairs([("pool", "cpu")]), None, None),
        (pairs([]), Some(pairs([("pool", "gpu")])), Some("gpu")),
        (pairs([("pool", "cpu")]), Some(pairs([("pool", "gpu")])), None),
    ] {
        let found = policy.rule_for(&live, recorded.as_ref());
        assert_eq!(found.map(crate::policy::Rule::name), expected, "{live:?} {recorded:?}");
    }
}

#[test]
fn exclude_wins_over_include() {
    let rule = rule("rules: [{labels: {include: ['*', 'example.com/a'], exclude: ['example.com/*']}}]");
    for (key, expected) in [("team", true), ("example.com/a", false), ("example.com/b", false)] {
        assert_eq!(rule.keeps_label(key), expected, "{key}");
    }
}

#[test]
fn an_empty_include_keeps_nothing_and_still_speaks_for_the_node() {
    let rule = rule("rules: [{labels: {include: []}}]");
    assert!(!rule.keeps_label("team"));
}

#[test]
fn taints_are_kept_sorted_and_once_for_each_key_and_effect() {
    let rule = rule("rules: [{taints: {include: ['*']}, cordon: true}]");
    let taints = vec![
        taint("b", "NoSchedule", "1"),
        taint("a", "NoSchedule", "2"),
        taint("a", "NoExecute", "3"),
        taint("b", "NoSchedule", "0"),
        taint("node.kubernetes.io/not-ready", "NoExecute", ""),
    ];
    let kept = rule.keep(&Content { taints, unschedulable: true, ..Content::default() });
    assert_eq!(
        kept.taints,
        [taint("a", "NoExecute", "3"), taint("a", "NoSchedule", "2"), taint("b", "NoSchedule", "0")]
    );
    assert!(kept.unschedulable);
}

#[test]
fn whole_nodes_are_watched_only_where_a_rule_keeps_taints_or_cordon() {
    for (yaml, spec, annotations) in [
        ("", false, false),
        ("rules: [{taints: {include: [a]}}]", true, false),
        ("rules: [{taints: {exclude: [a]}}]", false, false),
        ("rules: [{cordon: true}]", true, false),
        ("rules: [{selector: a}, {cordon: true}]", true, false),
        ("rules: [{annotations: {include: ['a*']}}]", false, true),
    ] {
        let policy = policy(yaml);
        assert_eq!((policy.needs_spec(), policy.keeps_annotations()), (spec, annotations), "{yaml}");
    }
}

#[test]
fn a_value_is_overwritten_only_where_the_policy_says_so() {
    for (merge, team, other) in [
        ("missing", false, false),
        ("overwrite", true, true),
        ("{overwrite: [team, 'example.com/*']}", true, false),
        ("{overwrite: []}", false, false),
    ] {
        let rule = rule(&format!("rules: [{{merge: {merge}}}]"));
        assert_eq!((rule.overwrites_label("team"), rule.overwrites_label("other")), (team, other), "{merge}");
        assert_eq!(rule.overwrites_annotation("team"), team, "{merge}");
        assert_eq!(rule.overwrites_taint("example.com/x"), team, "{merge}");
    }
}

#[test]
fn identity_is_needed_where_it_is_asked_for_or_a_privileged_label_is_kept() {
    let (plain, worker) = (pairs([("team", "x")]), pairs([("node-role.kubernetes.io/worker", "")]));
    for (yaml, labels, expected) in [
        ("", &plain, false),
        ("", &worker, true),
        ("rules: [{labels: {exclude: ['node-role.kubernetes.io/*']}}]", &worker, false),
        ("rules: [{identity: provider}]", &plain, true),
        ("rules: [{identity: machine}]", &plain, true),
        ("rules: [{identity: name}]", &plain, false),
    ] {
        assert_eq!(rule(yaml).needs_identity(labels), expected, "{yaml} {labels:?}");
    }
    assert_eq!(rule("rules: [{identity: machine}]").identity(), Identity::Machine);
    assert!(rule("rules: [{privileged: {withoutProviderID: true}}]").privileged_without_provider());
}

#[test]
fn privileged_labels_are_those_a_kubelet_may_not_give_itself() {
    for (key, expected) in [
        ("node-role.kubernetes.io/worker", true),
        ("node-restriction.kubernetes.io/x", true),
        ("pci.node-restriction.kubernetes.io/x", true),
        ("xnode-restriction.kubernetes.io/x", false),
        ("x.node-role.kubernetes.io/x", false),
        ("node-role.kubernetes.io", false),
        ("team", false),
        ("example.com/node-role.kubernetes.io", false),
    ] {
        assert_eq!(is_privileged(key), expected, "{key}");
    }
}

#[test]
fn settings_are_read_in_all_their_spellings() {
    for (text, seconds) in [
        ("30d", 2_592_000),
        ("12h", 43_200),
        ("90s", 90),
        ("1h30m", 5400),
        ("1h 30m", 5400),
        ("2w", 1_209_600),
    ] {
        let policy = policy(&format!("retention: {text}\nemptyRetention: {text}\n"));
        let expected = SignedDuration::from_secs(seconds);
        assert_eq!((policy.retention(), policy.empty_retention()), (expected, expected), "{text}");
    }
    for (text, expected) in [("0.25", 0.25), ("25%", 0.25), ("'25 %'", 0.25), ("0", 0.0), ("1", 1.0)] {
        let brake = policy(&format!("brake: {{atLeast: 7, share: {text}}}")).brake();
        assert_eq!(brake, Brake { at_least: 7, share: expected }, "{text}");
    }
    assert_eq!(policy("maxAbsent: 1").max_absent(), 1);
    assert_eq!(policy("narrow: now").narrow(), Narrow::Now);
    assert_eq!(policy("narrow: atNextChange").narrow(), Narrow::AtNextChange);
}

#[test]
fn the_brake_allows_the_greater_of_a_number_and_a_share() {
    let brake = Brake { at_least: 100, share: 0.1 };
    for (records, expected) in [(0, 100), (1000, 100), (1001, 100), (5000, 500), (100_000, 10_000)] {
        assert_eq!(brake.limit(records), expected, "{records}");
    }
    assert_eq!(Brake { at_least: 0, share: 0.0 }.limit(5000), 0);
}

#[test]
fn the_older_operators_prefix_becomes_one_rule() {
    let policy = Policy::for_label_prefix("example.com/, team-").unwrap();
    let rule = policy.rule_for(&Pairs::new(), None).unwrap();
    for (key, expected) in [
        ("example.com/a", true),
        ("team-a", true),
        ("team", false),
        ("sub.example.com/a", false),
        ("other", false),
    ] {
        assert_eq!(rule.keeps_label(key), expected, "{key}");
    }
    let named = Policy::for_label_prefix("feature.node.kubernetes.io/").unwrap();
    let rule = named.rule_for(&Pairs::new(), None).unwrap();
    assert!(rule.keeps_label("feature.node.kubernetes.io/x"), "asked for by name");
}

#[test]
fn a_prefix_that_no_label_can_have_is_refused_and_names_the_variable() {
    for prefixes in ["", " ", ",", "a b", "größe", "a=b", &"a".repeat(600)] {
        let error = Policy::for_label_prefix(prefixes).unwrap_err();
        assert!(error.to_string().contains("PERSIST_LABEL_PREFIX"), "{prefixes:?}: {error}");
    }
    // Taken literally: a star in a prefix is no glob.
    let policy = Policy::for_label_prefix("*").unwrap();
    assert!(!policy.rule_for(&Pairs::new(), None).unwrap().keeps_label("team"));
}

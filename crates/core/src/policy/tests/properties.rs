//! What must hold for any node and any text.

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

use super::rule;
use crate::kept::{Content, Kept, Pairs, Taint};
use crate::policy::{Policy, Rule};

fn rules() -> Vec<Rule> {
    [
        "",
        "rules: [{labels: {excludeDefaults: false}, annotations: {include: ['*']}, taints: {include: ['*']}, cordon: true}]",
        "rules: [{labels: {include: ['a*'], exclude: ['*b']}, annotations: {include: [b]}, taints: {include: ['?']}}]",
        "rules: [{labels: {include: []}}]",
    ]
    .map(rule)
    .into()
}

fn key() -> impl Strategy<Value = String> {
    prop_oneof![
        "[ab]{1,3}",
        "[ab]{1,2}/[ab]{1,2}",
        "(perennial.dev|node.kubernetes.io|projectcalico.org|karpenter.sh)/[ab]",
        Just("kubernetes.io/hostname".to_owned()),
    ]
}

fn pairs() -> impl Strategy<Value = Pairs> {
    btree_map(key(), "[ab]{0,2}", 0..8)
}

fn content() -> impl Strategy<Value = Content> {
    let taint = (key(), "No(Schedule|Execute)", "[ab]?").prop_map(|(key, effect, value)| Taint {
        key,
        effect,
        value,
    });
    (pairs(), pairs(), vec(taint, 0..6), any::<bool>()).prop_map(
        |(labels, annotations, taints, unschedulable)| Content {
            labels,
            annotations,
            taints,
            unschedulable,
            born: Pairs::new(),
            gated: false,
        },
    )
}

fn as_content(kept: &Kept) -> Content {
    let Kept { labels, annotations, taints, unschedulable } = kept.clone();
    Content { labels, annotations, taints, unschedulable, ..Content::default() }
}

proptest! {
    #[test]
    fn what_is_kept_is_kept_again(content in content()) {
        for rule in rules() {
            let kept = rule.keep(&content);
            prop_assert_eq!(&rule.keep(&as_content(&kept)), &kept);
        }
    }

    #[test]
    fn nothing_is_invented_or_changed(content in content()) {
        for rule in rules() {
            let Kept { labels, annotations, taints, unschedulable } = rule.keep(&content);
            prop_assert!(labels.iter().all(|(key, value)| content.labels.get(key) == Some(value)));
            prop_assert!(annotations.iter().all(|(key, value)| content.annotations.get(key) == Some(value)));
            prop_assert!(taints.iter().all(|taint| content.taints.contains(taint)));
            prop_assert!(!unschedulable || content.unschedulable);
        }
    }

    #[test]
    fn a_key_is_kept_exactly_where_the_rule_says_so(content in content()) {
        for rule in rules() {
            let kept = rule.keep(&content);
            for key in content.labels.keys() {
                prop_assert_eq!(kept.labels.contains_key(key), rule.keeps_label(key), "{}", key);
            }
            for key in content.annotations.keys() {
                prop_assert_eq!(kept.annotations.contains_key(key), rule.keeps_annotation(key), "{}", key);
            }
            for taint in &content.taints {
                let found = kept.taints.iter().any(|other| other.same_slot(taint));
                prop_assert_eq!(found, rule.keeps_taint(&taint.key), "{}", &taint.key);
            }
        }
    }

    #[test]
    fn the_order_of_taints_on_the_node_does_not_matter(content in content()) {
        let mut turned = content.clone();
        turned.taints.reverse();
        for rule in rules() {
            prop_assert_eq!(rule.keep(&content), rule.keep(&turned));
        }
    }

    #[test]
    fn any_text_is_read_or_refused_without_a_panic(text in "\\PC*") {
        let _ = Policy::parse(&text);
        let _ = Policy::for_label_prefix(&text);
    }

    #[test]
    fn any_text_in_any_field_is_read_or_refused_without_a_panic(text in "\\PC{0,20}", glob in "[a*?\\[\\]{},!^/-]{0,12}") {
        for value in [text, glob] {
            let value = serde_json::Value::String(value);
            for yaml in [
                format!("rules: [{{name: {value}, selector: {value}, identity: {value}, merge: {value}}}]"),
                format!("rules: [{{labels: {{include: [{value}], exclude: [{value}]}}, taints: {{include: [{value}]}}}}]"),
                format!("rules: [{{merge: {{overwrite: [{value}]}}}}]"),
                format!("{{retention: {value}, emptyRetention: {value}, brake: {{share: {value}}}, narrow: {value}}}"),
            ] {
                let _ = Policy::parse(&yaml);
            }
        }
    }
}

//! The digest: equal for equal meaning, and for nothing else.

use super::policy;

const BASE: &str =
    "rules: [{name: a, selector: 'x=1,y', labels: {include: [p, q]}, merge: {overwrite: [m, n]}}]";

#[test]
fn what_does_not_change_the_meaning_does_not_change_the_digest() {
    let base = policy(BASE).digest();
    for same in [
        "# a comment\nrules:\n  - name: a\n    selector: y, x in (1)\n    labels:\n      include: [q, p, p]\n    merge:\n      overwrite: [n, m]\n",
        "rules: [{name: other, selector: 'x==1,y', labels: {include: [p, q], exclude: []}, cordon: false, merge: {overwrite: [m, n]}}]",
        &format!(
            "{BASE}\nretention: 1d\nemptyRetention: 2h\nmaxAbsent: 3\nbrake: {{atLeast: 1, share: 1%}}\nnarrow: now\n"
        ),
    ] {
        assert_eq!(policy(same).digest(), base, "{same}");
    }
    let words = ["merge: overwrite", "merge: {overwrite: ['*']}"]
        .map(|merge| policy(&format!("rules: [{{{merge}}}]")));
    assert_eq!(words[0].digest(), words[1].digest());
}

#[test]
fn what_changes_the_meaning_changes_the_digest() {
    let rules = [
        "",
        "selector: a",
        "selector: '!a'",
        "labels: {include: []}",
        "labels: {include: [a]}",
        "labels: {exclude: [a]}",
        "labels: {excludeDefaults: false}",
        "annotations: {include: [a]}",
        "annotations: {include: ['*']}",
        "taints: {include: [a]}",
        "cordon: true",
        "merge: overwrite",
        "merge: {overwrite: [a]}",
        "identity: provider",
        "identity: machine",
        "privileged: {withoutProviderID: true}",
    ];
    let mut digests: Vec<_> =
        rules.iter().map(|rule| policy(&format!("rules: [{{{rule}}}]")).digest()).collect();
    digests.push(policy("rules: [{selector: a}, {}]").digest());
    digests.push(policy("rules: [{selector: a}, {selector: b}]").digest());
    digests.push(policy("rules: [{selector: b}, {selector: a}]").digest());
    digests.sort_unstable();
    let all = digests.len();
    digests.dedup();
    assert_eq!(digests.len(), all);
}

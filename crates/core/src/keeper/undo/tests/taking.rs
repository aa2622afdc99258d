//! What is taken under [`Scope::Exact`], and where nothing is.

use super::*;

/// A record that holds `now` and held `then`, both under the default policy.
fn held(now: &[(&str, &str)], then: &[(&str, &str)]) -> Record {
    before(record(labels(now), 30), labels(then), 10)
}

fn exactly(record: &Record, node: &Live, policy: &Policy) -> Result<Undo, Refusal> {
    let content = node.content.as_ref().unwrap();
    undo(record, &in_force(record, at(15)).unwrap(), node, content, policy, Scope::Exact)
}

fn node() -> Live {
    live(Some("m1"), &[("a", "1"), ("b", "1")])
}

#[test]
fn what_another_policy_may_have_left_out_is_not_taken() {
    let policy = Policy::default();
    let mut record = held(&[("a", "1"), ("b", "1")], &[("a", "2")]);
    assert_eq!(exactly(&record, &node(), &policy).unwrap().labels, set(&[("a", Some("2")), ("b", None)]));
    for then in [Some(Digest::of(b"narrow")), None] {
        record.previous[0].policy = then;
        let refusal = exactly(&record, &node(), &policy).unwrap_err();
        assert_eq!(refusal, Refusal::OtherPolicy { then, what: "the label b".to_owned() });
        assert!(refusal.is_about_taking());
        let past = in_force(&record, at(15)).unwrap();
        let away = rewrite(&record, &past, &policy, Scope::Exact, at(40));
        assert_eq!(away, Err(refusal));
        // Giving back is another matter.
        let content = node().content.unwrap();
        let given = undo(&record, &past, &node(), &content, &policy, Scope::Reset).unwrap();
        assert_eq!(given.labels, set(&[("a", Some("2"))]));
        let away = rewrite(&record, &past, &policy, Scope::Reset, at(40)).unwrap().unwrap();
        assert_eq!(away.kept, labels(&[("a", "2"), ("b", "1")]));
    }
}

#[test]
fn another_policy_is_no_reason_to_refuse_where_nothing_would_be_taken() {
    let mut record = held(&[("a", "1")], &[("a", "2"), ("b", "1")]);
    record.previous[0].policy = None;
    let undo = exactly(&record, &node(), &Policy::default()).unwrap();
    assert_eq!(undo.labels, set(&[("a", Some("2"))]));
}

#[test]
fn what_another_rule_of_the_policy_may_have_left_out_is_not_taken() {
    // Which rule chose that state hangs on labels that are not kept.
    let pools = "rules: [{ selector: kubernetes.io/os=windows, labels: { include: [a] } }, {}]";
    let policy = Policy::parse(pools).unwrap();
    let mut record = held(&[("a", "1"), ("b", "1")], &[("a", "1")]);
    record.previous[0].policy = Some(policy.digest());
    let refusal = exactly(&record, &node(), &policy).unwrap_err();
    assert_eq!(refusal, Refusal::OtherRule { what: "the label b".to_owned() });
    // What all of them keep is another matter.
    let mut record = held(&[("a", "1"), ("b", "1")], &[("b", "1")]);
    record.previous[0].policy = Some(policy.digest());
    assert_eq!(exactly(&record, &node(), &policy).unwrap().labels, set(&[("a", None)]));
}

#[test]
fn what_no_record_has_seen_is_not_taken() {
    // The keeper was away, or the node is paused: `b` may be older than that state.
    let record = held(&[("a", "1")], &[("a", "2")]);
    let refusal = exactly(&record, &node(), &Policy::default()).unwrap_err();
    assert_eq!(refusal, Refusal::NotRecorded { what: "the label b".to_owned() });
}

#[test]
fn privileged_labels_go_with_the_same_machine_alone() {
    let record = held(&[("a", "1"), (ROLE, "")], &[("a", "1")]);
    let bears = |machine| live(Some(machine), &[("a", "1"), (ROLE, "")]);
    let same = exactly(&record, &bears("m1"), &Policy::default()).unwrap();
    assert_eq!((same.labels, same.withheld), (set(&[(ROLE, None)]), vec![]));
    let other = exactly(&record, &bears("m2"), &Policy::default()).unwrap();
    assert_eq!((other.labels, other.withheld), (set(&[]), vec![ROLE.to_owned()]));

    let mut away = held(&[("a", "1"), (ROLE, "")], &[("a", "2")]);
    away.previous[0].incarnation = Incarnation { uid: Uuid::nil(), provider_id: Some("m0".to_owned()) };
    assert_eq!(rewritten(&away, Scope::Exact).unwrap().kept, labels(&[("a", "2"), (ROLE, "")]));
}

#[test]
fn what_today_is_not_kept_stays_in_a_rewritten_record() {
    let record = held(&[("a", "1"), ("b", "1"), ("kubernetes.io/os", "linux")], &[("a", "1")]);
    let next = rewritten(&record, Scope::Exact).unwrap();
    assert_eq!(next.kept, labels(&[("a", "1"), ("kubernetes.io/os", "linux")]));
}

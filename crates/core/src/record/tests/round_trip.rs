//! What is written is read back.

use jiff::Timestamp;
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use uuid::Uuid;

use super::record;
use crate::keeper::Body;
use crate::kept::{Digest, Kept, Pairs, Taint};
use crate::record::{
    Incarnation, Previous, Record, SCHEMA, State, Summary, Unproved, Waiting, WaitingKeys, record_name,
    record_node,
};

fn pairs() -> impl Strategy<Value = Pairs> {
    btree_map(".{0,8}", ".{0,8}", 0..3)
}

fn kept() -> impl Strategy<Value = Kept> {
    let taint = ("[a-c]", "[a-c]", ".{0,3}");
    (pairs(), pairs(), vec(taint, 0..3), any::<bool>()).prop_map(
        |(labels, annotations, taints, unschedulable)| {
            let taints =
                taints.into_iter().map(|(key, effect, value)| Taint { key, effect, value }).collect();
            Kept { labels, annotations, taints, unschedulable }
        },
    )
}

fn incarnation() -> impl Strategy<Value = Incarnation> {
    (any::<u128>(), option::of(".{0,8}"))
        .prop_map(|(uid, provider_id)| Incarnation { uid: Uuid::from_u128(uid), provider_id })
}

fn waiting() -> impl Strategy<Value = WaitingKeys> {
    let waiting =
        (".{0,4}", option::of(".{0,4}")).prop_map(|(value, provider_id)| Waiting { value, provider_id });
    btree_map(".{0,4}", waiting, 0..3)
}

fn time() -> impl Strategy<Value = Timestamp> {
    (0i64..4_000_000_000, 0i32..1_000_000_000)
        .prop_map(|(second, nano)| Timestamp::new(second, nano).unwrap())
}

fn state() -> impl Strategy<Value = State> {
    prop_oneof![Just(State::Open), Just(State::Closed), Just(State::Giving)]
}

prop_compose! {
    fn records()(
        (node, state, incarnation, version) in (".{1,8}", state(), incarnation(), any::<u64>()),
        (kept, waiting) in (kept(), waiting()),
        previous in vec((incarnation(), kept(), waiting(), time(), option::of(any::<u128>())), 0..3),
        (captured_at, kept_since, deleted_at, sequence) in (time(), option::of(time()), option::of(time()), any::<u64>()),
        (policy, unproved) in (any::<u128>(), option::of((any::<u128>(), self::state(), self::kept()))),
        (given, paused) in (any::<bool>(), any::<bool>()),
    ) -> Record {
        let previous = previous
            .into_iter()
            .map(|(incarnation, kept, waiting, captured_at, policy)| {
                let policy = policy.map(|policy| Digest::of(&policy.to_be_bytes()));
                Previous { incarnation, kept, waiting, captured_at, policy }
            })
            .collect();
        Record {
            schema: SCHEMA, node, state, incarnation, version, kept, waiting, previous, captured_at, kept_since, deleted_at,
            sequence, policy: Digest::of(&policy.to_be_bytes()),
            unproved: unproved.map(|(uid, from, later)| Unproved { uid: Uuid::from_u128(uid), from, later }),
            given, paused,
        }
    }
}

proptest! {
    #[test]
    fn a_record_is_read_as_it_was_written(record in records()) {
        prop_assert_eq!(Record::parse(&record.node, Some(&record.to_json())), Ok(record.clone()));
    }

    #[test]
    fn a_record_in_memory_is_read_as_it_was_written(record in records()) {
        let body = Body::Whole(Box::new(record));
        prop_assert_eq!(postcard::from_bytes(&postcard::to_stdvec(&body).unwrap()), Ok(body));
    }

    #[test]
    fn a_summary_is_read_from_annotations_as_it_was_written(record in records()) {
        let pairs = record.annotations();
        prop_assert_eq!(Summary::from_annotations(&pairs), Some(record.summary()));
        prop_assert_eq!(Summary::uid_hint(&pairs), Some(record.incarnation.uid));
        let name = record_name(&record.node);
        prop_assert_eq!(record_node(&name, Summary::node_hint(&pairs)), Some(record.node.as_str()));
    }

    #[test]
    fn no_text_makes_a_record_panic(text in ".{0,200}") {
        prop_assert!(Record::parse("worker-1", Some(&text)).is_err());
    }

    #[test]
    fn a_changed_byte_never_makes_a_record_panic(record in records(), at in any::<prop::sample::Index>(), byte in 0u8..128) {
        let mut bytes = record.to_json().into_bytes();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        if let Ok(text) = String::from_utf8(bytes) {
            let _ = Record::parse(&record.node, Some(&text));
        }
    }

    #[test]
    fn equal_kept_states_have_equal_digests_and_others_do_not(one in kept(), other in kept()) {
        prop_assert_eq!(one == other, one.digest() == other.digest());
        prop_assert_eq!(Digest::parse(&one.digest().to_string()), Some(one.digest()));
    }
}

#[test]
fn a_summary_that_is_missing_or_broken_makes_the_record_be_read() {
    let whole = record().annotations();
    let summary = whole["perennial.dev/summary"].as_str();
    let read = |text: &str| {
        Summary::from_annotations(&Pairs::from([("perennial.dev/summary".to_owned(), text.to_owned())]))
    };
    assert!(Summary::from_annotations(&whole).is_some());
    assert_eq!(Summary::from_annotations(&Pairs::new()), None);
    assert_eq!(read(""), None);
    let words: Vec<&str> = summary.split(' ').collect();
    for word in words.iter().filter(|word| word.contains('=')) {
        let without: Vec<&str> = words.iter().copied().filter(|other| other != word).collect();
        assert_eq!(read(&without.join(" ")), None, "without {word}");
        let (key, _) = word.split_once('=').unwrap();
        for broken in ["", "x", "-1", "0.5", "\u{0}", "="] {
            assert_eq!(read(&summary.replace(word, &format!("{key}={broken}"))), None, "{key}: {broken:?}");
        }
    }
    assert_eq!(read(&format!("{summary} provider=x")), None);
    assert_eq!(read(&summary.replace("schema=1", "schema=2")), None, "another schema's is not trusted");
    assert_eq!(read(&format!("{summary} later=1")), read(summary), "a later build may say more");
    assert_eq!(read(&summary.replace(' ', "\n")), None);
    assert_eq!(read(&summary[..summary.len() / 2]), None);
}

#[test]
fn the_node_is_named_where_the_records_name_does_not_tell_it() {
    let mut record = record();
    assert_eq!(Summary::node_hint(&record.annotations()), None);
    record.node = format!("{}.{}", "a".repeat(200), "b".repeat(52));
    assert_eq!(Summary::node_hint(&record.annotations()), Some(record.node.as_str()));
}

#[test]
fn the_text_of_a_record_is_what_people_expect_to_read() {
    let text = record().to_json();
    for line in
        [r#""schema": 1"#, r#""node": "worker-1""#, r#""state": "open""#, r#""resourceVersion": "10""#]
    {
        assert!(text.contains(line), "{text}");
    }
    for absent in ["waiting", "previous", "deletedAt", "unproved", "given", "paused", "providerID"] {
        assert!(!text.contains(absent), "{absent} says nothing here: {text}");
    }
}

//! Whatever a line says, `decide` answers, and its answer keeps the promises that hold for every line.

use std::sync::{Arc, LazyLock};

use jiff::{SignedDuration, Timestamp};
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use uuid::Uuid;

use super::dsl::*;
use crate::keeper::{
    Body, Context, Created, End, Erasure, Hand, Kin, Line, Live, Mark, Patch, Plan, Provider, RecordSight,
    Removal, Seen, Sight, Why, Write, decide,
};
use crate::kept::{Content, Kept, Pairs};
use crate::policy::{Identity, Policy, is_privileged};
use crate::record::{Record, State, Unproved, Version, Waiting};

pub(super) static POLICIES: LazyLock<Vec<Arc<Policy>>> = LazyLock::new(|| {
    [
        "",
        "rules: [{merge: overwrite}]",
        "rules: [{merge: {overwrite: [a]}}]",
        "rules: [{identity: provider}]",
        "rules: [{identity: machine}]",
        "rules: [{taints: {include: [\"*\"]}, annotations: {include: [a]}, cordon: true}]",
        "rules: [{selector: a=1}]",
        "rules: [{selector: a=1, labels: {include: [a]}}, {labels: {include: [b]}}]",
        "rules: [{privileged: {withoutProviderID: true}}]",
        "narrow: now\nrules: [{labels: {include: [b]}}]",
    ]
    .map(|yaml| Arc::new(policy(yaml)))
    .into()
});

fn uid() -> impl Strategy<Value = Uuid> {
    prop_oneof![Just(U1), Just(U2), Just(U3)]
}

fn version() -> impl Strategy<Value = Version> {
    0u64..8
}

pub(super) fn labels() -> impl Strategy<Value = Pairs> {
    let key = prop_oneof![Just("a"), Just("b"), Just(ROLE), Just("kubernetes.io/hostname")];
    btree_map(key.prop_map(str::to_owned), "[12]", 0..4)
}

pub(super) fn content() -> impl Strategy<Value = Content> {
    let taints = vec((prop_oneof![Just("a"), Just("b")], "[12]"), 0..3);
    (labels(), btree_map("[ab]", "[12]", 0..2), taints, any::<bool>()).prop_map(
        |(labels, annotations, taints, unschedulable)| {
            let taints = taints.into_iter().map(|(key, value)| taint(key, &value)).collect();
            Content { labels, annotations, taints, unschedulable, ..Content::default() }
        },
    )
}

fn machine_id() -> impl Strategy<Value = Option<String>> {
    option::of(prop_oneof![Just("m1".to_owned()), Just("m2".to_owned())])
}

fn mark() -> impl Strategy<Value = Mark> {
    prop_oneof![3 => Just(Mark::None), 1 => Just(Mark::Given), 1 => Just(Mark::Full)]
}

fn hand() -> impl Strategy<Value = Hand> {
    (prop_oneof![6 => Just(None), 1 => any::<bool>().prop_map(Some)], prop::bool::weighted(0.1))
        .prop_map(|(pause, forget)| Hand { pause, forget })
}

fn time() -> impl Strategy<Value = Timestamp> {
    let ago = prop_oneof![Just(0), Just(2), Just(600), Just(7_200), Just(4_000_000)];
    ago.prop_map(|seconds| NOW - SignedDuration::from_secs(seconds))
}

prop_compose! {
    fn lives()(
        (uid, version, mark, hand, created) in (uid(), version(), mark(), hand(), time()),
        (content, settled, terminating) in (content(), prop::bool::weighted(0.2), prop::bool::weighted(0.2)),
        (provider, gated) in (option::of(machine_id()), prop::bool::weighted(0.1)),
    ) -> (Live, bool) {
        let content = Content { gated, ..content };
        let provider = provider.map_or(Provider::Unread, Provider::Read);
        (Live { created, terminating, mark, hand, provider, content: Some(content), ..live(uid, version) }, settled)
    }
}

prop_compose! {
    fn ends()(
        (uid, version, mark, hand) in (uid(), version(), mark(), hand()),
        (content, provider, seen_at) in (content(), option::of(machine_id()), time()),
    ) -> End {
        let provider = provider.map_or(Provider::Unread, Provider::Read);
        End { content, mark, hand, provider, seen_at, ..end(uid, version) }
    }
}

prop_compose! {
    fn records()(
        (state, uid, version) in (prop_oneof![Just(State::Open), Just(State::Closed), Just(State::Giving)], uid(), version()),
        (content, provider, since) in (content(), machine_id(), time()),
        waiting in option::of(("[12]", machine_id())),
        unproved in option::of((uid(), any::<bool>())),
        (given, paused, last) in (any::<bool>(), prop::bool::weighted(0.2), prop::bool::weighted(0.1)),
        policy in 0..POLICIES.len(),
    ) -> Record {
        let Content { labels, annotations, taints, unschedulable, .. } = content;
        let mut record = match state {
            State::Open => open(uid, version),
            State::Closed => closed(uid, version),
            State::Giving => giving(uid, version),
        };
        record.incarnation.provider_id = provider;
        record.kept = Kept { labels, annotations, taints, unschedulable };
        record.kept.taints.sort();
        if let Some((value, provider_id)) = waiting {
            record.kept.labels.remove(ROLE);
            record.waiting.insert(ROLE.to_owned(), Waiting { value, provider_id });
        }
        record.unproved = unproved.map(|(uid, open)| {
            Unproved::new(uid, if open { State::Open } else { State::Giving })
        });
        record.captured_at = since;
        record.deleted_at = record.deleted_at.map(|_| since);
        record.given = given && state == State::Open;
        record.paused = paused;
        if last {
            record.sequence = u64::MAX;
        }
        record.under(&POLICIES[policy])
    }
}

fn bodies() -> impl Strategy<Value = Body> {
    prop_oneof![
        8 => records().prop_map(|record| Body::Whole(Box::new(record))),
        3 => records().prop_map(|record| Body::Summary(record.summary())),
        1 => option::of(uid()).prop_map(|hint| Body::Unread { hint }),
        1 => (option::of(uid()), any::<bool>())
            .prop_map(|(hint, aside)| Body::Unreadable { why: String::new(), hint, aside }),
        1 => Just(Body::Newer),
    ]
}

fn sights() -> impl Strategy<Value = (Sight, bool)> {
    prop_oneof![
        1 => Just((Sight::Unlisted, false)),
        2 => Just((Sight::Missing, false)),
        4 => (version(), option::of(time())).prop_map(|(at, looked)| (Sight::Absent { at, looked, missing: false }, false)),
        8 => lives().prop_map(|(live, settled)| (Sight::Live(Box::new(live)), settled)),
    ]
}

prop_compose! {
    fn lines()(
        (sight, settled) in sights(),
        mut held in vec(ends(), 0..3),
        record in prop_oneof![
            1 => Just(RecordSight::Unlisted),
            3 => Just(RecordSight::None),
            12 => (bodies(), prop::bool::weighted(0.1), any::<bool>()).prop_map(|(body, foreign, sealed)| {
                RecordSight::Seen(Box::new(Seen { uid: U4, version: 1000, foreign, sealed, body }))
            }),
        ],
        (vanished, lost) in (option::weighted(0.1, (uid(), version())), option::of(uid())),
        kin in option::weighted(0.2, prop_oneof![
            Just(Kin::Open(15)),
            records().prop_map(|record| Kin::Closed(Box::new(Record { state: State::Closed, ..record }))),
        ]),
        (awaited, over_cap, hindered) in any::<(bool, bool, bool)>(),
        (removal, created) in (
            option::weighted(0.2, (version(), version(), option::of(uid()))),
            option::weighted(0.1, version()),
        ),
        agreed in prop::bool::weighted(0.2),
        (policy, rollout) in (0..POLICIES.len(), any::<bool>()),
        (capture, restore) in (prop::bool::weighted(0.8), prop::bool::weighted(0.8)),
    ) -> Case {
        held.sort_by_key(|end| end.version);
        held.dedup_by_key(|end| end.uid);
        let kin = kin.map(Box::new);
        let removal = removal.map(|(at, until, life)| Removal { at, until, life });
        let created = created.and_then(|knew| match &record {
            RecordSight::Seen(seen) => Some(Created { uid: seen.uid, version: seen.version, knew }),
            _ => None,
        });
        let line = Line {
            sight, ends: held, record, vanished, lost, kin, awaited, over_cap, agreed: None, told: None, untold: None, hindered,
            removal, created, erased: None,
        };
        let (policy, seals, condition) = (POLICIES[policy].clone(), false, false);
        let mut case = Case { line, policy, now: NOW, capture, restore, rollout, seals, condition };
        case = if settled { case.settled() } else { case.judged() };
        let sequence = case.line.seen().and_then(Seen::summary).map(|summary| summary.sequence);
        case.line.agreed = case.line.live().map(|live| live.digest).zip(sequence).filter(|_| agreed);
        case
    }
}

fn written(plan: &Plan) -> Option<&Write> {
    match plan {
        Plan::Save(write) | Plan::Close(write) | Plan::Give(write) => Some(write),
        _ => None,
    }
}

fn changes_something(plan: &Plan) -> bool {
    written(plan).is_some() || matches!(plan, Plan::Patch(_) | Plan::Erase(_))
}

fn check(line: &Line, cx: &Context<'_>, plan: &Plan) -> Result<(), TestCaseError> {
    let summary = line.seen().and_then(Seen::summary);
    if matches!(line.sight, Sight::Missing | Sight::Unlisted) || line.record == RecordSight::Unlisted {
        prop_assert!(!changes_something(plan), "nothing is known for sure");
    }
    if matches!(line.seen().map(|seen| &seen.body), Some(Body::Newer)) {
        prop_assert!(plan == &Plan::Rest(Why::NewerSchema) || is_gated(line), "nothing is read from it");
    }
    if !cx.capture {
        prop_assert!(!matches!(plan, Plan::Save(_) | Plan::Close(_) | Plan::Erase(_)), "capture is off");
    }
    if !cx.restore {
        prop_assert!(!matches!(plan, Plan::Give(_) | Plan::Patch(_)), "restore is off");
    }
    if let (Some(live), Some(record)) = (line.live(), &summary) {
        let lags = live.version < record.version || live.uid != record.uid && live.version == record.version;
        prop_assert!(!lags || plan == &Plan::Rest(Why::Lagging), "this replica lags");
    }
    match plan {
        Plan::Save(write) => check_save(line, write)?,
        Plan::Give(write) => check_give(line, write)?,
        Plan::Close(write) => prop_assert_eq!(write.record.state, State::Closed),
        Plan::Patch(patch) => check_patch(line, cx, patch)?,
        Plan::Erase(why) => check_erase(line, cx, *why)?,
        Plan::Prove { from, to, .. } => {
            prop_assert!(from <= to || line.vanished.is_some(), "{} to {}", from, to);
        }
        _ => {}
    }
    if let Some(write) = written(plan) {
        let seen = summary.map_or(0, |summary| summary.sequence);
        prop_assert_eq!(write.record.sequence, seen.saturating_add(1));
        prop_assert!(
            write.record.version >= summary.map_or(0, |summary| summary.version),
            "versions only grow"
        );
        prop_assert_eq!((write.record.node.as_str(), write.record.schema), (NODE, 1));
        check_waiting(line, cx, &write.record)?;
    }
    Ok(())
}

fn is_gated(line: &Line) -> bool {
    line.live().and_then(|live| live.content.as_ref()).is_some_and(|content| content.gated)
}

fn check_save(line: &Line, write: &Write) -> Result<(), TestCaseError> {
    let live = line.live().expect("only the living are saved");
    let Record { state, incarnation, version, paused, .. } = &*write.record;
    prop_assert_eq!((*state, incarnation.uid, *version), (State::Open, live.uid, live.version));
    prop_assert_eq!(*paused, live.hand.pause == Some(true));
    prop_assert!(!live.hand.forget);
    Ok(())
}

fn check_give(line: &Line, write: &Write) -> Result<(), TestCaseError> {
    let live = line.live().expect("only the living are given anything");
    let Record { state, incarnation, version, kept, .. } = &*write.record;
    prop_assert_eq!((*state, incarnation.uid, *version), (State::Giving, live.uid, live.version));
    prop_assert!(live.mark == Mark::None && !live.terminating, "given once, and never to the dying");
    prop_assert!(live.hand.pause != Some(true) && !live.hand.forget);
    prop_assert!(!kept.labels.keys().any(|key| is_privileged(key)), "privileged keys wait");
    let repaired = line.seen().and_then(Seen::summary).is_some_and(|record| record.unproved);
    prop_assert!(!write.record.is_empty() || repaired, "there is something to give");
    if let Some(record) = line.seen().and_then(Seen::summary) {
        prop_assert!(!(record.uid == live.uid && record.state == State::Open && record.given), "given twice");
    }
    Ok(())
}

fn check_patch(line: &Line, cx: &Context<'_>, patch: &Patch) -> Result<(), TestCaseError> {
    let live = line.live().expect("only the living are patched");
    let content = live.content.as_ref().expect("what is missing is known");
    prop_assert_eq!(patch.opens, content.gated);
    if patch.mark == Mark::None {
        let opens = Patch { opens: true, ..self::patch(live.uid, live.version, Mark::None, &[]) };
        prop_assert_eq!(patch, &opens, "a gate is opened, and nothing else");
        return Ok(());
    }
    let Some(Body::Whole(record)) = line.seen().map(|seen| &seen.body) else {
        return Err(TestCaseError::fail("a patch without a record"));
    };
    prop_assert_eq!((patch.uid, patch.version), (live.uid, live.version));
    prop_assert!(!live.terminating && patch.mark != Mark::None);
    prop_assert_eq!(record.incarnation.uid, live.uid);
    let waits = |key: &String| record.waiting.contains_key(key);
    let owed = record.state == State::Giving && live.mark == Mark::None;
    let others = !patch.annotations.is_empty() || !patch.taints.is_empty() || patch.cordon;
    prop_assert!(owed || patch.labels.keys().all(waits) && !patch.labels.is_empty() && !others, "not giving");
    let rule = cx.policy.rule_for(&content.labels, Some(&record.labels())).expect("a rule spoke");
    // What another policy recorded is given as well, unless this one was narrowed at once.
    let theirs = record.policy != cx.policy.digest();
    for (key, value) in &patch.labels {
        prop_assert!(rule.keeps_label(key) || theirs);
        prop_assert!(!content.labels.contains_key(key) || rule.overwrites_label(key), "{} changed", key);
        let remembered =
            record.kept.labels.get(key).or(record.waiting.get(key).map(|waiting| &waiting.value));
        prop_assert_eq!(Some(value), remembered);
        if let Some(waiting) = record.waiting.get(key) {
            let Provider::Read(id) = &live.provider else { return Err(TestCaseError::fail("unread")) };
            prop_assert_eq!(id, &waiting.provider_id);
            prop_assert!(id.is_some() || rule.privileged_without_provider());
        }
    }
    for key in patch.annotations.keys() {
        prop_assert!(rule.keeps_annotation(key) || theirs);
        prop_assert!(!content.annotations.contains_key(key) || rule.overwrites_annotation(key));
    }
    for taint in &patch.taints {
        prop_assert!(rule.keeps_taint(&taint.key) || theirs);
        let there = content.taints.iter().any(|other| other.same_slot(taint));
        prop_assert!(!there || rule.overwrites_taint(&taint.key));
    }
    Ok(())
}

fn check_erase(line: &Line, cx: &Context<'_>, why: Erasure) -> Result<(), TestCaseError> {
    let forgets = |hand: Hand| hand.forget;
    match (&line.sight, why) {
        (_, Erasure::Forgotten) => {
            let said = line.live().is_some_and(|live| forgets(live.hand));
            prop_assert!(said || line.ends.iter().any(|end| forgets(end.hand)), "nobody said so");
        }
        (Sight::Live(live), Erasure::Empty) => {
            let summary = line.seen().and_then(Seen::summary).expect("a record");
            prop_assert!(
                live.bare && summary.empty,
                "a living node's record is erased only if both are empty"
            );
        }
        (Sight::Absent { looked: Some(looked), .. }, _) => {
            let summary = line.seen().and_then(Seen::summary).expect("a record");
            prop_assert_eq!(summary.state, State::Closed);
            prop_assert!(cx.now.duration_since(*looked) < SignedDuration::from_mins(1), "looked long ago");
        }
        other => return Err(TestCaseError::fail(format!("erased: {other:?}"))),
    }
    Ok(())
}

/// Privileged keys that wait stay, until they are on the node or it is another machine's.
fn check_waiting(line: &Line, cx: &Context<'_>, record: &Record) -> Result<(), TestCaseError> {
    let Some(Body::Whole(before)) = line.seen().map(|seen| &seen.body) else { return Ok(()) };
    let Some(waiting) = before.waiting.get(ROLE) else { return Ok(()) };
    let known = |id: Option<&str>| id.is_some() && id != waiting.provider_id.as_deref();
    let live = line.live();
    let rule = live
        .and_then(|live| live.content.as_ref())
        .and_then(|content| cx.policy.rule_for(&content.labels, Some(&before.labels())));
    let dropped = live.is_some_and(|live| known(live.provider.id()) || live.mark != Mark::None)
        || line.ends.iter().any(|end| {
            end.hand.forget
                || end.mark == Mark::Full
                || end.content.labels.contains_key(ROLE)
                || known(end.provider.id())
        })
        || rule.is_some_and(|rule| rule.identity() != Identity::Name)
        // A person had forgotten all that is in it.
        || line.is_created_late();
    let there = record.waiting.contains_key(ROLE)
        || record.kept.labels.contains_key(ROLE)
        || live
            .and_then(|live| live.content.as_ref())
            .is_some_and(|content| content.labels.contains_key(ROLE));
    prop_assert!(dropped || there, "a waiting key is lost");
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn every_line_is_decided_and_no_promise_is_broken(case in lines()) {
        let cx = case.context();
        let plan = decide(NODE, &case.line, &cx);
        if let Err(TestCaseError::Fail(reason)) = check(&case.line, &cx, &plan) {
            return Err(TestCaseError::fail(format!("{reason}\n{plan:#?}")));
        }
    }
}

//! Each guard taken out gives a counterexample.
//!
//! Guards are taken out where the model meets the rules: what is fed to them, or what is done with their plans.
//! The rules themselves are those of production.

use super::bounds::{Budget, Config};
use super::check::breaks;
use super::machines::{TOLD, UNTOLD};
use super::state::{BARE, Labels, PROVIDER, WIDE};

/// A guard that can be taken out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Guard {
    /// A record write is a compare-and-swap.
    Swap,
    /// A Node patch carries uid and version.
    PatchVersion,
    /// The record says giving before the Node is touched.
    GivingFirst,
    /// Only a proved end is given.
    Proof,
    /// A newborn's end is merged.
    Merge,
    /// A mark is heeded.
    Mark,
    /// A replica that lags rests.
    Lagging,
    /// A node that a list lacks is read before it counts as gone.
    NodeAbsence,
    /// A record that a list lacks is read before it counts as gone.
    RecordAbsence,
    /// Ends are held until a record holds them.
    Ends,
    /// In doubt, everyone who saw the end goes first.
    Everyone,
    /// A replica that may have missed an end leaves the turn to those who hold it.
    Witness,
    /// What was closed in doubt is repaired.
    Repair,
    /// A direct read of a life that the watch has not told of is not folded.
    ReadAhead,
    /// A record of a life that the watch has not told of waits for the watch.
    ReadUnknown,
    /// What waits for the watch is looked at again when a list takes the watch's place.
    Held,
    /// Records of another history are judged.
    Histories,
    /// A record that was collected takes nothing along that came after it.
    Collected,
    /// A record that was removed takes nothing along that ended after that.
    Removal,
    /// A read that does not find the record leaves it to the watch to tell when it was removed.
    RemovalRead,
    /// Who the machine is, is compared.
    Machine,
    /// Privileged keys wait in the record.
    Waiting,
    /// What another machine displaces goes into `previous`.
    Previous,
    /// A young node without a `providerID` is asked again.
    AskAgain,
    /// An end whose machine was not read is no end without a machine.
    ReadEnd,
    /// What a node was born with counts as missing.
    Stamp,
}

/// Two replicas, and as much of everything as the counterexamples need.
fn world(steps: u8, budget: Budget) -> Config {
    let config = Config::new("a guard is taken out", steps, 3);
    Config { budget: Budget { steps, lives: 3, ..budget }, ..config }
}

/// Every life is born labelled.
const LABELLED: [&[Labels]; 2] = [&[Labels([1, 0])], &[Labels([0, 1])]];

const CALM: Budget = Config::new("", 0, 0).budget;

#[test]
fn without_compare_and_swap_there_is_a_counterexample() {
    breaks(world(4, CALM), Guard::Swap);
}

#[test]
fn without_uid_and_version_on_the_patch_there_is_a_counterexample() {
    breaks(world(4, Budget { pauses: 1, ..CALM }), Guard::PatchVersion);
}

#[test]
fn without_giving_before_the_node_is_touched_there_is_a_counterexample() {
    breaks(world(6, Budget { crashes: 1, ..CALM }), Guard::GivingFirst);
}

#[test]
fn without_proof_there_is_a_counterexample() {
    breaks(world(4, Budget { crashes: 1, ..CALM }), Guard::Proof);
}

#[test]
fn without_merging_a_newborns_end_there_is_a_counterexample() {
    breaks(world(4, CALM), Guard::Merge);
}

#[test]
fn without_heeding_the_mark_there_is_a_counterexample() {
    breaks(world(4, CALM), Guard::Mark);
}

#[test]
fn without_the_lagging_row_there_is_a_counterexample() {
    breaks(world(4, CALM), Guard::Lagging);
}

#[test]
fn when_a_node_missing_from_a_list_counts_as_gone_there_is_a_counterexample() {
    breaks(world(3, Budget { blanks: 1, ..CALM }), Guard::NodeAbsence);
}

#[test]
fn when_a_record_missing_from_a_list_counts_as_gone_there_is_a_counterexample() {
    let config = world(3, Budget { blanks: 1, ..CALM });
    breaks(Config { replicas: &[WIDE], ..config }, Guard::RecordAbsence);
}

#[test]
fn when_ends_are_dropped_too_early_there_is_a_counterexample() {
    breaks(world(4, Budget { compactions: 1, ..CALM }), Guard::Ends);
}

#[test]
fn when_a_doubt_is_acted_on_at_once_there_is_a_counterexample() {
    breaks(world(4, Budget { compactions: 1, ..CALM }), Guard::Everyone);
}

#[test]
fn when_a_replica_that_has_just_listed_gives_at_once_there_is_a_counterexample() {
    let config = world(5, CALM);
    let births: [&[Labels]; 2] = [&[Labels([1, 0])], &[Labels([0, 1])]];
    breaks(Config { replicas: &[WIDE], joiners: &[WIDE], births, keys: 0, ..config }, Guard::Witness);
}

#[test]
fn without_the_repair_of_doubts_there_is_a_counterexample() {
    breaks(world(4, Budget { compactions: 1, ..CALM }), Guard::Repair);
}

#[test]
fn when_a_read_ahead_of_the_watch_is_folded_there_is_a_counterexample() {
    // A patch that comes too late reads the node: the life that it finds is not the next one.
    let config = world(7, CALM);
    let births: [&[Labels]; 2] = [&[Labels([1, 0])], &[BARE, Labels([0, 1])]];
    let budget = Budget { lives: 4, ..config.budget };
    breaks(Config { births, keys: 0, budget, ..config }, Guard::ReadAhead);
}

#[test]
fn when_a_record_ahead_of_the_watch_is_acted_on_there_is_a_counterexample() {
    let config = world(5, CALM);
    breaks(Config { births: LABELLED, ..config }, Guard::ReadUnknown);
}

#[test]
fn when_what_waits_for_the_watch_is_not_looked_at_after_a_list_there_is_a_counterexample() {
    let config = world(6, Budget { relists: 1, ..CALM });
    breaks(Config { replicas: &[WIDE], keys: 0, ..config }, Guard::Held);
}

#[test]
fn when_histories_are_not_judged_there_is_a_counterexample() {
    breaks(world(4, Budget { moves: 1, ..CALM }), Guard::Histories);
}

#[test]
fn when_a_collected_record_counts_as_removed_by_a_person_there_is_a_counterexample() {
    let config = world(4, Budget { over_cap: 1, ..CALM });
    breaks(Config { replicas: &[WIDE], joiners: &[WIDE], births: LABELLED, ..config }, Guard::Collected);
}

#[test]
fn when_a_removed_record_takes_later_lives_along_there_is_a_counterexample() {
    let config = world(4, Budget { removals: 1, ..CALM });
    breaks(Config { births: LABELLED, keys: 0, ..config }, Guard::Removal);
}

#[test]
fn when_a_record_that_is_not_found_counts_as_removed_just_now_there_is_a_counterexample() {
    let config = world(4, Budget { removals: 1, ..CALM });
    breaks(Config { births: LABELLED, keys: 0, ..config }, Guard::RemovalRead);
}

#[test]
fn when_machines_are_not_compared_before_waiting_keys_are_given_there_is_a_counterexample() {
    breaks(Config { machines: UNTOLD, keys: 0, ..world(4, CALM) }, Guard::Machine);
}

#[test]
fn when_machines_are_not_compared_before_anything_is_given_there_is_a_counterexample() {
    let config = world(4, CALM);
    breaks(Config { replicas: &[PROVIDER, PROVIDER], machines: TOLD, keys: 0, ..config }, Guard::Machine);
}

#[test]
fn when_a_write_drops_what_waits_there_is_a_counterexample() {
    breaks(Config { machines: UNTOLD, keys: 0, ..world(4, CALM) }, Guard::Waiting);
}

#[test]
fn when_a_machine_is_not_asked_for_again_there_is_a_counterexample() {
    breaks(Config { machines: UNTOLD, keys: 0, ..world(4, CALM) }, Guard::AskAgain);
}

#[test]
fn when_another_machine_displaces_what_nobody_keeps_there_is_a_counterexample() {
    let config = world(4, CALM);
    breaks(Config { replicas: &[PROVIDER, PROVIDER], machines: TOLD, keys: 0, ..config }, Guard::Previous);
}

#[test]
fn when_an_unread_machine_counts_as_none_there_is_a_counterexample() {
    let config = world(4, CALM);
    breaks(Config { replicas: &[PROVIDER, PROVIDER], machines: UNTOLD, keys: 0, ..config }, Guard::ReadEnd);
}

#[test]
fn when_privileged_keys_of_an_unread_machine_are_nobodys_there_is_a_counterexample() {
    breaks(Config { machines: UNTOLD, keys: 0, ..world(4, CALM) }, Guard::ReadEnd);
}

#[test]
fn when_what_a_node_was_born_with_counts_as_its_own_there_is_a_counterexample() {
    let births: [&[Labels]; 2] = [&[Labels([1, 0])], &[Labels([2, 0]), BARE]];
    breaks(Config { webhook: true, births, keys: 0, ..world(5, CALM) }, Guard::Stamp);
}

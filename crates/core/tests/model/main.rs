//! The keeper's protocol, explored exhaustively within small bounds.
//!
//! Every state of a small world is visited: one node name with up to three lives, two or three replicas whose
//! streams lag apart, and whatever may go wrong. The replicas run the very functions that run in production
//! (`decide`, the folds of `Line`, `Proof`, `Plan::turn`, a real `Policy`); what is modelled is the world around
//! them: the API server, the streams, and the ledger's ways with what they say.
//!
//! ```text
//!   bounds ──> model: what may happen ──> observe, apply: what a replica hears and does ──> core
//!                        │                                       │
//!                      canon: states that are the same         truth: what must be so, whoever says what
//! ```
//! What each test explores is in its [`Config`]; states, depth and bounds are printed (`-- --nocapture`).
//! `make model` explores more of the same: `MODEL_DEPTH=full`, optimised, some minutes and some gigabytes.
//!
//! Not in this model: time (what `decide` waits for is over at once; retentions pass when nobody lags), ranks (who
//! comes first: in doubt, whoever saw the end), annotations and taints, `identity: machine`, unreadable records,
//! pause and forget by annotation, gates, conditions, seals and strict mode, two histories that meet in one version by
//! chance.

mod apply;
mod bounds;
mod canon;
mod check;
mod guards;
mod machines;
mod model;
mod observe;
mod show;
mod state;
mod truth;

use bounds::{Budget, Config};
use check::{explore, full};
use machines::{NEVER_TOLD, TOLD, UNTOLD};
use state::{BARE, Labels, NARROW, PROVIDER, WIDE};

#[test]
fn two_replicas_that_lag() {
    explore(Config::new("two replicas that lag", if full() { 7 } else { 5 }, 3));
}

#[test]
fn three_replicas_that_lag() {
    let config = Config::new("three replicas that lag", if full() { 5 } else { 4 }, 3);
    explore(Config { replicas: &[WIDE, WIDE, WIDE], ..config });
}

#[test]
fn every_life_is_born_labelled() {
    let config = Config::new("every life is born labelled", if full() { 6 } else { 5 }, 3);
    explore(Config { births: [&[Labels([1, 0])], &[Labels([0, 1]), Labels([2, 0]), BARE]], ..config });
}

#[test]
fn a_webhook_that_may_be_behind() {
    let config = Config::new("a webhook that may be behind", if full() { 6 } else { 5 }, 3);
    explore(Config { webhook: true, ..config });
}

#[test]
fn a_webhook_a_crash_and_a_lost_reply() {
    let config = Config::new("a webhook, a crash and a lost reply", if full() { 5 } else { 4 }, 3);
    let budget = Budget { crashes: 1, lost: 1, ..config.budget };
    explore(Config { webhook: true, budget, ..config });
}

#[test]
fn a_webhook_and_newborns_with_labels_of_their_own() {
    let config =
        Config::new("a webhook and newborns with labels of their own", if full() { 5 } else { 4 }, 3);
    explore(Config {
        webhook: true,
        births: [&[Labels([1, 0])], &[Labels([0, 1]), BARE]],
        keys: 2,
        ..config
    });
}

#[test]
fn a_webhook_and_a_person_who_removes_the_record() {
    let config = Config::new("a webhook and a person who removes the record", if full() { 5 } else { 4 }, 3);
    let budget = Budget { removals: 1, ..config.budget };
    explore(Config { webhook: true, keys: usize::from(full()), budget, ..config });
}

#[test]
fn a_joiner() {
    let config = Config::new("a joiner", if full() { 6 } else { 5 }, 3);
    explore(Config { replicas: &[WIDE], joiners: &[WIDE], ..config });
}

#[test]
fn a_joiner_that_missed_a_whole_life() {
    let config = Config::new("a joiner that missed a whole life", if full() { 6 } else { 5 }, 3);
    let births: [&[Labels]; 2] = [&[Labels([1, 0])], &[Labels([0, 1])]];
    explore(Config { replicas: &[WIDE], joiners: &[WIDE], births, keys: usize::from(full()), ..config });
}

#[test]
fn a_crash_and_a_paused_writer() {
    let config = Config::new("a crash and a paused writer", if full() { 5 } else { 4 }, 3);
    explore(Config { budget: Budget { crashes: 1, pauses: 1, ..config.budget }, ..config });
}

#[test]
fn two_crashes() {
    let config = Config::new("two crashes", if full() { 6 } else { 4 }, 3);
    explore(Config { budget: Budget { crashes: 2, ..config.budget }, ..config });
}

#[test]
fn two_paused_writers() {
    let config = Config::new("two paused writers", if full() { 5 } else { 3 }, 3);
    explore(Config { budget: Budget { pauses: 2, ..config.budget }, ..config });
}

#[test]
fn a_lost_reply_and_a_crash() {
    let config = Config::new("a lost reply and a crash", if full() { 5 } else { 4 }, 3);
    explore(Config { budget: Budget { lost: 1, crashes: 1, ..config.budget }, ..config });
}

#[test]
fn watches_with_gaps() {
    let config = Config::new("watches with gaps", if full() { 5 } else { 4 }, 3);
    explore(Config { budget: Budget { relists: 2, ..config.budget }, ..config });
}

#[test]
fn a_watch_with_a_gap_and_a_crash() {
    let config = Config::new("a watch with a gap, and a crash", if full() { 5 } else { 4 }, 3);
    explore(Config { budget: Budget { relists: 1, crashes: 1, ..config.budget }, ..config });
}

#[test]
fn lists_that_lack_what_is_there() {
    let config = Config::new("lists that lack what is there", if full() { 5 } else { 4 }, 3);
    explore(Config { budget: Budget { blanks: 1, ..config.budget }, ..config });
}

#[test]
fn a_history_that_is_lost() {
    let config = Config::new("a history that is lost", if full() { 5 } else { 4 }, 3);
    explore(Config { budget: Budget { compactions: 1, crashes: 1, ..config.budget }, ..config });
}

#[test]
fn a_history_that_is_lost_while_a_witness_is_paused() {
    let config =
        Config::new("a history that is lost while a witness is paused", if full() { 5 } else { 4 }, 3);
    let births: [&[Labels]; 2] = [&[Labels([1, 0])], &[BARE, Labels([0, 1])]];
    explore(Config { births, budget: Budget { compactions: 1, pauses: 1, ..config.budget }, ..config });
}

#[test]
fn a_history_that_is_lost_over_a_gap() {
    let config = Config::new("a history that is lost over a gap", if full() { 5 } else { 4 }, 3);
    explore(Config { budget: Budget { compactions: 1, relists: 1, ..config.budget }, ..config });
}

#[test]
fn versions_that_run_backwards() {
    let config = Config::new("versions that run backwards", if full() { 4 } else { 3 }, 3);
    explore(Config { budget: Budget { restores: 1, pauses: 1, ..config.budget }, ..config });
}

#[test]
fn records_of_another_history() {
    let config = Config::new("records of another history", if full() { 5 } else { 3 }, 3);
    explore(Config { budget: Budget { moves: 1, ..config.budget }, ..config });
}

#[test]
fn a_collector() {
    let config = Config::new("a collector", if full() { 6 } else { 4 }, 3);
    let budget = Budget { late: 1, over_cap: 1, crashes: 1, ..config.budget };
    explore(Config { births: [&[Labels([1, 0])], &[Labels([0, 1])]], budget, ..config });
}

#[test]
fn a_person_who_removes_the_record() {
    let config = Config::new("a person who removes the record", if full() { 5 } else { 4 }, 3);
    let later: &[Labels] = if full() { &[BARE, Labels([0, 1])] } else { &[BARE] };
    explore(Config {
        births: [&[Labels([1, 0])], later],
        budget: Budget { removals: 1, ..config.budget },
        ..config
    });
}

#[test]
fn a_person_who_removes_the_record_and_a_paused_writer() {
    let config =
        Config::new("a person who removes the record, and a paused writer", if full() { 4 } else { 3 }, 3);
    let budget = Budget { removals: 1, pauses: 1, ..config.budget };
    explore(Config { keys: usize::from(full()), budget, ..config });
}

#[test]
fn two_policies() {
    let config = Config::new("two policies", if full() { 5 } else { 4 }, 3);
    explore(Config { replicas: &[WIDE, NARROW], births: [&[Labels([1, 1])], &[BARE]], keys: 2, ..config });
}

#[test]
fn privileged_keys_that_wait() {
    let config = Config::new("privileged keys that wait", if full() { 6 } else { 5 }, 3);
    explore(Config { machines: UNTOLD, keys: 0, ..config });
}

#[test]
fn privileged_keys_that_wait_and_a_hand() {
    let config = Config::new("privileged keys that wait, and a hand", if full() { 6 } else { 4 }, 2);
    explore(Config { machines: TOLD, keys: 0, roles: true, ..config });
}

#[test]
fn privileged_keys_of_a_machine_that_is_known_late() {
    let config =
        Config::new("privileged keys of a machine that is known late", if full() { 6 } else { 5 }, 2);
    explore(Config { machines: NEVER_TOLD, keys: 0, ..config });
}

#[test]
fn privileged_keys_that_wait_over_a_crash() {
    let config = Config::new("privileged keys that wait over a crash", if full() { 5 } else { 4 }, 2);
    let budget = Budget { crashes: 1, ..config.budget };
    explore(Config { machines: UNTOLD, keys: 0, budget, ..config });
}

#[test]
fn privileged_keys_that_wait_for_a_paused_writer() {
    let config = Config::new("privileged keys that wait for a paused writer", if full() { 5 } else { 4 }, 2);
    let budget = Budget { pauses: 1, lost: u8::from(full()), ..config.budget };
    explore(Config { machines: UNTOLD, keys: 0, budget, ..config });
}

#[test]
fn privileged_keys_that_wait_after_a_lost_reply() {
    let config = Config::new("privileged keys that wait after a lost reply", if full() { 5 } else { 4 }, 2);
    let budget = Budget { lost: 1, crashes: u8::from(full()), ..config.budget };
    explore(Config { machines: UNTOLD, keys: 0, budget, ..config });
}

#[test]
fn nothing_for_another_machine() {
    let config = Config::new("nothing for another machine", if full() { 6 } else { 5 }, 3);
    explore(Config { replicas: &[PROVIDER, PROVIDER], machines: UNTOLD, keys: 0, ..config });
}

#[test]
fn nothing_for_another_machine_over_a_crash() {
    let config = Config::new("nothing for another machine over a crash", if full() { 5 } else { 4 }, 3);
    let budget = Budget { crashes: 1, lost: u8::from(full()), ..config.budget };
    explore(Config {
        replicas: &[PROVIDER, PROVIDER],
        machines: TOLD,
        keys: usize::from(full()),
        budget,
        ..config
    });
}

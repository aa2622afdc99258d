//! The figures as tables of a page.

use std::fmt::Write as _;

use super::{EVERYONE, PERENNIAL, short};
use crate::contender::Contender;
use crate::results::{Case, Results, Sample, Who};

pub(super) const GO: Who = Who::Contender(Contender::ControllerRuntime);
pub(super) const KOPF: Who = Who::Contender(Contender::Kopf);

/// Everything that was measured: medians, how far the rounds were apart, and how many times Perennial's.
pub(super) fn table(results: &Results) -> String {
    let mut table = String::from("| |");
    for who in EVERYONE {
        let _ = write!(table, " {} |", who.name());
    }
    table.push_str("\n| --- |");
    table.push_str(&" --- |".repeat(EVERYONE.len()));
    table.push('\n');
    for case in Case::ALL {
        let _ = write!(table, "| {}, {} |", case.title(), case.unit());
        for who in EVERYONE {
            let _ = write!(table, " {} |", cell(results, case, who));
        }
        table.push('\n');
    }
    table
}

pub(super) fn cell(results: &Results, case: Case, who: Who) -> String {
    let Some(samples) = results.samples.get(&case).and_then(|all| all.get(&who)) else {
        return "–".to_owned();
    };
    let (Some(figures), Some(median)) = (results.figures(case, who), results.median(case, who)) else {
        let why = samples.iter().find_map(|sample| match sample {
            Sample::DidNotFinish { did_not_finish } => Some(did_not_finish.as_str()),
            Sample::Figure(_) => None,
        });
        return format!("did not finish {}", why.unwrap_or_default());
    };
    let mut cell = short(median);
    if let [least, .., most] = figures.as_slice() {
        let _ = write!(cell, " ({}–{})", short(*least), short(*most));
    }
    match results.median(case, PERENNIAL) {
        Some(own) if who != PERENNIAL && own > 0.0 => {
            let _ = write!(cell, "<br>{} ×", short(median / own));
        }
        _ => {}
    }
    if who == PERENNIAL { format!("**{cell}**") } else { cell }
}

/// A goal, and where we are.
struct Goal {
    what: &'static str,
    wanted: &'static str,
    is: Option<f64>,
    /// What bare requests reach, where that says something: nobody writes sooner, or reads with less, than they do.
    bare: Option<f64>,
    reached: fn(f64) -> bool,
}

/// What we set out to reach, and where we are.
fn wanted(results: &Results) -> [Goal; 11] {
    let median = |case, who| results.median(case, who);
    let ratio = |case, one, other| Some(median(case, one)? / median(case, other)?);
    [
        Goal {
            what: "mass return, to the limit's rate for the same writes",
            wanted: "≥ 0.9 ×",
            is: ratio(Case::Mass, PERENNIAL, Who::Limit),
            bare: None,
            reached: |is| is >= 0.9,
        },
        Goal {
            what: "whole fleet recorded, to the limit's rate",
            wanted: "≥ 0.9 ×",
            is: ratio(Case::Capture, PERENNIAL, Who::Limit),
            bare: None,
            reached: |is| is >= 0.9,
        },
        Goal {
            what: "change to durable record, p50, to controller-runtime's",
            wanted: "≤ 0.7 ×",
            is: ratio(Case::ChangeP50, PERENNIAL, GO),
            bare: ratio(Case::ChangeP50, Who::Limit, GO),
            reached: |is| is <= 0.7,
        },
        Goal {
            what: "the same, p99",
            wanted: "≤ 1 ×",
            is: ratio(Case::ChangeP99, PERENNIAL, GO),
            bare: ratio(Case::ChangeP99, Who::Limit, GO),
            reached: |is| is <= 1.0,
        },
        Goal {
            what: "change to durable record, p50, beyond a bare write's, in ms",
            wanted: "≤ 1",
            is: median(Case::ChangeP50, PERENNIAL)
                .zip(median(Case::ChangeP50, Who::Limit))
                .map(|(own, bare)| own - bare),
            bare: None,
            reached: |is| is <= 1.0,
        },
        Goal {
            what: "re-created node to labels back, p50, to controller-runtime's",
            wanted: "≤ 0.7 ×",
            is: ratio(Case::ReturnP50, PERENNIAL, GO),
            bare: ratio(Case::ReturnP50, Who::Limit, GO),
            reached: |is| is <= 0.7,
        },
        Goal {
            what: "memory, steady, in MiB",
            wanted: "≤ 48",
            is: median(Case::MemorySteady, PERENNIAL),
            bare: None,
            reached: |is| is <= 48.0,
        },
        Goal {
            what: "memory, peak, in MiB",
            wanted: "≤ 64",
            is: median(Case::MemoryPeak, PERENNIAL),
            bare: None,
            reached: |is| is <= 64.0,
        },
        Goal {
            what: "CPU for a heartbeat, controller-runtime's to ours",
            wanted: "≥ 4 ×",
            is: ratio(Case::Heartbeat, GO, PERENNIAL),
            bare: ratio(Case::Heartbeat, GO, Who::Limit),
            reached: |is| is >= 4.0,
        },
        Goal {
            what: "CPU for a heartbeat, kopf's to ours",
            wanted: "≥ 40 ×",
            is: ratio(Case::Heartbeat, KOPF, PERENNIAL),
            bare: ratio(Case::Heartbeat, KOPF, Who::Limit),
            reached: |is| is >= 40.0,
        },
        Goal {
            what: "start to in step, to a bare stream of the same bytes",
            wanted: "≤ 1.2 ×",
            is: ratio(Case::Synced, PERENNIAL, Who::Limit),
            bare: None,
            reached: |is| is <= 1.2,
        },
    ]
}

/// The same as a table.
pub(super) fn goals(results: &Results) -> String {
    let mut table =
        String::from("| | wanted | measured | by bare requests | |\n| --- | --- | --- | --- | --- |\n");
    for Goal { what, wanted, is, bare, reached } in wanted(results) {
        let met = match (is, bare) {
            (Some(is), _) if reached(is) => "reached",
            (Some(_), Some(bare)) if !reached(bare) => "**not reached**, nor by bare requests",
            (Some(_), _) => "**not reached**",
            (None, _) => "**not measured**",
        };
        let [is, bare] = [is, bare].map(|figure| figure.map_or_else(|| "–".to_owned(), short));
        let _ = writeln!(table, "| {what} | {wanted} | {is} | {bare} | {met} |");
    }
    let behind = behind(results);
    let met = if behind.is_empty() { "reached" } else { "**not reached**" };
    let behind =
        if behind.is_empty() { "everywhere".to_owned() } else { format!("not in: {}", behind.join("; ")) };
    let _ = writeln!(table, "| ahead of every peer | in every case | {behind} | – | {met} |");
    table
}

/// The cases in which somebody is better than Perennial, and whether by more than one round differs from another.
pub(super) fn behind(results: &Results) -> Vec<String> {
    let peers = EVERYONE.into_iter().filter(|who| !matches!(who, Who::Limit) && *who != PERENNIAL);
    let peers: Vec<Who> = peers.collect();
    let mut behind = Vec::new();
    for case in Case::ALL {
        let own = results.median(case, PERENNIAL);
        for who in &peers {
            let other = results.median(case, *who);
            let better = match (own, other) {
                (Some(own), Some(other)) if case.more_is_better() => other > own,
                (Some(own), Some(other)) => other < own,
                (None, Some(_)) => true,
                (_, None) => false,
            };
            if better {
                let level = if are_level(results, case, *who) { ", within the spread of rounds" } else { "" };
                behind.push(format!("{} ({}{level})", case.title(), who.name()));
            }
        }
    }
    behind
}

/// Whether the best of one's rounds is no worse than the worst of the other's, and the other way round.
fn are_level(results: &Results, case: Case, who: Who) -> bool {
    let spread = |who| {
        let figures = results.figures(case, who)?;
        Some((*figures.first()?, *figures.last()?))
    };
    spread(PERENNIAL).zip(spread(who)).is_some_and(|(own, other)| own.0 <= other.1 && other.0 <= own.1)
}

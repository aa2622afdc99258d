//! Replicas that share the work, as a table.

use std::fmt::Write as _;

use super::short;
use crate::replicas::{NUMBERS, Sharing, Turn};
use crate::results::median;

/// One row a number of replicas: medians, how far the rounds were apart, and how many times what one replica does.
pub(super) fn table(sharing: &Sharing) -> String {
    let mut table = String::from(
        "| replicas | whole fleet recorded, records/s | mass return, nodes/s | one's part of the writes | computed by all, s | memory of one at most, MiB |\n\
         | --- | --- | --- | --- | --- | --- |\n",
    );
    for replicas in NUMBERS {
        let turns = |of: fn(&Turn) -> f64, replicas: usize| -> Vec<f64> {
            sharing.turns.iter().filter(|turn| turn.replicas == replicas).map(of).collect()
        };
        let cell = |of: fn(&Turn) -> f64| {
            let (own, one) = (turns(of, replicas), turns(of, 1));
            let cell = spread(&own);
            match (median(&own), median(&one)) {
                (Some(own), Some(one)) if replicas > 1 => format!("{cell}<br>{} ×", short(own / one)),
                _ => cell,
            }
        };
        let parts: Vec<f64> =
            of_all(sharing, replicas, |turn| &turn.shares).map(|part| 100.0 * part).collect();
        let memory: Vec<f64> = of_all(sharing, replicas, |turn| &turn.memory).collect();
        let _ = writeln!(
            table,
            "| {replicas} | {} | {} | {} % | {} | {} |",
            cell(|turn| turn.recorded),
            cell(|turn| turn.given),
            spread(&parts),
            cell(|turn| turn.computed),
            spread(&memory)
        );
    }
    table
}

fn of_all(sharing: &Sharing, replicas: usize, of: fn(&Turn) -> &Vec<f64>) -> impl Iterator<Item = f64> {
    sharing.turns.iter().filter(move |turn| turn.replicas == replicas).flat_map(of).copied()
}

/// The median, the least and the most.
fn spread(figures: &[f64]) -> String {
    let Some(median) = median(figures) else { return "–".to_owned() };
    let (least, most) = figures
        .iter()
        .fold((f64::MAX, f64::MIN), |(least, most), figure| (least.min(*figure), most.max(*figure)));
    if figures.len() < 2 {
        short(median)
    } else {
        format!("{} ({}–{})", short(median), short(least), short(most))
    }
}

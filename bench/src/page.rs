//! The figures for people: a table in the terminal; docs/performance.md and its pictures, of the files in `bench/results`.

use std::fmt::Write as _;

use crate::contender::Contender;
use crate::results::{Case, Results, Who};

#[cfg(test)]
mod growth;
#[cfg(test)]
mod markdown;
#[cfg(test)]
mod picture;
#[cfg(test)]
mod sharing;
#[cfg(test)]
mod sizes;
#[cfg(test)]
mod soaked;

const PERENNIAL: Who = Who::Contender(Contender::Perennial);
const EVERYONE: [Who; 5] = [
    Who::Limit,
    PERENNIAL,
    Who::Contender(Contender::ControllerRuntime),
    Who::Contender(Contender::KubeRs),
    Who::Contender(Contender::Kopf),
];

/// The medians for a terminal, and how many times Perennial's.
pub(crate) fn plain(results: &Results) -> String {
    let mut table = format!("{:<48}", "median (times Perennial's)");
    for who in EVERYONE {
        let _ = write!(table, "{:>22}", who.name());
    }
    for case in Case::ALL {
        let best = if case.more_is_better() { ", more is better" } else { "" };
        let _ = write!(table, "\n{:<48}", format!("{}, {}{best}", case.title(), case.unit()));
        for who in EVERYONE {
            let times = results.median(case, who).zip(results.median(case, PERENNIAL));
            let cell = match (times, results.median(case, who)) {
                (Some((figure, own)), _) if own > 0.0 => {
                    format!("{} ({}x)", short(figure), short(figure / own))
                }
                (_, Some(figure)) => short(figure),
                (_, None) if results.samples.get(&case).is_some_and(|all| all.contains_key(&who)) => {
                    "did not finish".to_owned()
                }
                (_, None) => "-".to_owned(),
            };
            let _ = write!(table, "{cell:>22}");
        }
    }
    table.push('\n');
    table
}

/// Three digits are all that such a figure is worth.
fn short(figure: f64) -> String {
    match figure {
        figure if figure >= 100.0 => format!("{figure:.0}"),
        figure if figure >= 10.0 => format!("{figure:.1}"),
        figure => format!("{figure:.2}"),
    }
}

#[cfg(test)]
mod tests;

//! A long time of churn, as a table and as lines over time.

use std::fmt::Write as _;

use super::picture::{WIDTH, framed};
use super::short;
use crate::soak::{Churned, Soaked};

const TOP: f64 = 56.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 24.0;
const TALL: f64 = 220.0;
const BELOW: f64 = 48.0;
const COLOURS: [&str; 3] = ["#1a7f37", "#0969da", "#8250df"];

/// What was done, and the quarters.
pub(super) fn table(soaked: &Soaked) -> String {
    let Soaked { setting, nodes, minutes, seed, churned, lives, records, given, excused, .. } = soaked;
    let Churned { changes, returns, beats, late } = churned;
    let mut table = format!(
        "Measured on {} at {}, {}: {minutes} minutes, {nodes} nodes, {} replicas, seed {seed}. {changes} labels changed, {returns} nodes \
         went and returned, {beats} heartbeats; {late} half seconds were too short for what was to be done in them. The oracle saw \
         {lives} lives, {records} records written and {given} nodes given their own, {excused} of them excused because history was gone. \
         No promise was broken, and nothing was pending at the end.\n\n\
         | median, MiB | first quarter | second | third | last |\n| --- | --- | --- | --- | --- |\n",
        setting.began,
        setting.commit,
        setting.machine,
        soaked.memory.len()
    );
    for (number, quarters) in soaked.quarters().into_iter().enumerate() {
        let cells: Vec<String> = quarters.into_iter().map(short).collect();
        let _ = writeln!(table, "| replica {} | {} |", number + 1, cells.join(" | "));
    }
    table
}

/// Memory over time, from nothing up.
pub(super) fn picture(soaked: &Soaked) -> String {
    let most = soaked.memory.iter().flatten().copied().fold(0.0, f64::max);
    let high = (most / 16.0).ceil().max(1.0) * 16.0;
    let bottom = TOP + TALL;
    let height = |mebibytes: f64| bottom - mebibytes / high * TALL;
    let across = |part: f64| LEFT + part * (WIDTH - LEFT - RIGHT);
    let mut body = String::new();
    let mut line = 0.0;
    while line <= high {
        let at = height(line);
        let _ = writeln!(
            body,
            r##"  <line x1="{LEFT:.0}" y1="{at:.1}" x2="{:.0}" y2="{at:.1}" stroke="#eaeef2"/><text x="{:.0}" y="{:.1}" font-size="11" text-anchor="end" fill="#57606a">{line:.0}</text>"##,
            across(1.0),
            LEFT - 6.0,
            at + 4.0
        );
        line += 16.0;
    }
    for (part, minutes) in [(0.0, 0), (0.5, soaked.minutes / 2), (1.0, soaked.minutes)] {
        let anchor = if part > 0.9 { "end" } else { "middle" };
        let _ = writeln!(
            body,
            r##"  <text x="{:.1}" y="{:.1}" font-size="11" text-anchor="{anchor}" fill="#57606a">{minutes} min</text>"##,
            across(part),
            bottom + 16.0
        );
    }
    for (number, samples) in soaked.memory.iter().enumerate() {
        let colour = COLOURS[number % COLOURS.len()];
        let last = f64::from(u32::try_from(samples.len().max(2) - 1).unwrap_or(u32::MAX));
        let points: Vec<String> = (0_u32..)
            .zip(samples)
            .map(|(at, mebibytes)| format!("{:.1},{:.1}", across(f64::from(at) / last), height(*mebibytes)))
            .collect();
        let _ = writeln!(
            body,
            r#"  <polyline points="{}" fill="none" stroke="{colour}" stroke-width="1.5"/>"#,
            points.join(" ")
        );
        let at = LEFT + 110.0 * f64::from(u32::try_from(number).unwrap_or_default());
        let _ = writeln!(
            body,
            r##"  <rect x="{at:.0}" y="{:.0}" width="12" height="12" rx="3" fill="{colour}"/><text x="{:.0}" y="{:.0}" font-size="12" fill="#1f2328">replica {}</text>"##,
            bottom + 26.0,
            at + 18.0,
            bottom + 36.0,
            number + 1
        );
    }
    let title = format!("Memory of each replica while {} nodes churn, MiB", soaked.nodes);
    framed(&title, bottom + BELOW, &body)
}

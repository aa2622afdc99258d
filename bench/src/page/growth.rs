//! How the figures grow with the fleet: a table, and a picture of lines.

use std::fmt::Write as _;

use super::picture::{WIDTH, colour, framed};
use super::{EVERYONE, PERENNIAL, short};
use crate::results::{Case, Results, Who};

const TOP: f64 = 56.0;
/// One of the charts, two beside each other, and what of it is its own: the rest is for words.
const CHART: (f64, f64) = (WIDTH / 2.0, 270.0);
const LEFT: f64 = 64.0;
const RIGHT: f64 = 128.0;
const ABOVE: f64 = 26.0;
const BELOW: f64 = 52.0;
/// Names at the ends of lines are at least so far apart.
const APART: f64 = 14.0;

/// What a line tells more of than a row of figures.
const SHOWN: [Case; 4] = [Case::MemoryPeak, Case::Start, Case::Heartbeat, Case::ChangeP50];

/// Perennial's medians, a column a size, and what a node adds where that is what matters.
pub(super) fn table(all: &[Results]) -> String {
    let mut table = String::from("| |");
    for results in all {
        let _ = write!(table, " {} nodes |", results.nodes);
    }
    let _ = write!(table, " for each further node |\n| --- |{}\n", " --- |".repeat(all.len() + 1));
    for case in Case::ALL {
        let _ = write!(table, "| {}, {} |", case.title(), case.unit());
        for results in all {
            let cell = results.median(case, PERENNIAL).map_or_else(|| "–".to_owned(), short);
            let _ = write!(table, " {cell} |");
        }
        let _ = writeln!(table, " {} |", each(all, case).unwrap_or_default());
    }
    table
}

/// What a node adds, from the smallest fleet to the largest.
pub(super) fn each(all: &[Results], case: Case) -> Option<String> {
    let (factor, unit) = match case {
        Case::Start => (1e6, "µs"),
        Case::MemorySteady | Case::MemoryPeak | Case::MemoryAbsent => (1024.0 * 1024.0, "B"),
        Case::Bytes => (1e6, "B"),
        _ => return None,
    };
    let (first, last) = (all.first()?, all.last()?);
    let more = last.nodes.checked_sub(first.nodes).filter(|more| *more > 0)?;
    let grown = last.median(case, PERENNIAL)? - first.median(case, PERENNIAL)?;
    Some(format!("{} {unit}", short(factor * grown / f64::from(u32::try_from(more).ok()?))))
}

/// The same for everyone: both axes by powers of ten, so that what grows with the fleet is a straight line.
pub(super) fn picture(all: &[Results]) -> String {
    let mut body = String::new();
    for (number, case) in (0_u8..).zip(SHOWN) {
        let at = (f64::from(number % 2) * CHART.0, TOP + f64::from(number / 2) * CHART.1);
        body.push_str(&chart(all, case, at));
    }
    let rows = f64::from(u8::try_from(SHOWN.len().div_ceil(2)).unwrap_or(u8::MAX));
    framed("How it grows with the fleet: Perennial, its peers and the limit", TOP + rows * CHART.1, &body)
}

/// A line through the points: how far along the fleet's axis, and the figure.
type Line = (Who, Vec<(f64, f64)>);

fn chart(all: &[Results], case: Case, (x, y): (f64, f64)) -> String {
    let lines: Vec<Line> = EVERYONE.into_iter().filter_map(|who| line(all, case, who)).collect();
    let figures = || lines.iter().flat_map(|(_, points)| points.iter().map(|(_, figure)| *figure));
    let (low, high) = (figures().fold(f64::MAX, f64::min).log10(), figures().fold(0.0, f64::max).log10());
    let (low, high) = ((low - 0.05).floor(), (high + 0.05).ceil());
    let (bottom, tall) = (y + CHART.1 - BELOW, CHART.1 - ABOVE - BELOW);
    let across = |along: f64| x + LEFT + along * (CHART.0 - LEFT - RIGHT);
    let height = |figure: f64| bottom - (figure.log10() - low) / (high - low) * tall;

    let mut body = String::new();
    let _ = writeln!(
        body,
        r##"  <text x="{:.0}" y="{:.0}" font-size="14" font-weight="600" fill="#1f2328">{}, {}</text>"##,
        x + 24.0,
        y + 10.0,
        case.title(),
        case.unit()
    );
    let mut power = low;
    while power <= high {
        let at = height(10_f64.powf(power));
        let _ = writeln!(
            body,
            r##"  <line x1="{:.1}" y1="{at:.1}" x2="{:.1}" y2="{at:.1}" stroke="#eaeef2"/><text x="{:.1}" y="{:.1}" font-size="11" text-anchor="end" fill="#57606a">{}</text>"##,
            across(0.0),
            across(1.0),
            across(0.0) - 6.0,
            at + 4.0,
            10_f64.powf(power)
        );
        power += 1.0;
    }
    for results in all {
        if let Some(along) = along(all, results) {
            let _ = writeln!(
                body,
                r##"  <text x="{:.1}" y="{:.1}" font-size="11" text-anchor="middle" fill="#57606a">{}</text>"##,
                across(along),
                bottom + 16.0,
                thousands(results.nodes)
            );
        }
    }
    let mut names: Vec<(f64, Who)> = Vec::new();
    for (who, points) in &lines {
        let path: Vec<String> = points
            .iter()
            .map(|(along, figure)| format!("{:.1},{:.1}", across(*along), height(*figure)))
            .collect();
        let wide = if *who == PERENNIAL { 3 } else { 1 };
        let _ = writeln!(
            body,
            r#"  <polyline points="{}" fill="none" stroke="{}" stroke-width="{wide}"/>"#,
            path.join(" "),
            colour(*who)
        );
        for (along, figure) in points {
            let _ = writeln!(
                body,
                r#"  <circle cx="{:.1}" cy="{:.1}" r="3" fill="{}"/>"#,
                across(*along),
                height(*figure),
                colour(*who)
            );
        }
        names.extend(points.last().map(|(_, figure)| (height(*figure), *who)));
    }
    names.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    let mut above = f64::MIN;
    for (at, who) in names {
        let at = at.max(above + APART);
        above = at;
        let weight = if who == PERENNIAL { 600 } else { 400 };
        let _ = writeln!(
            body,
            r##"  <text x="{:.1}" y="{:.1}" font-size="12" font-weight="{weight}" fill="#1f2328">{}</text>"##,
            across(1.0) + 10.0,
            at + 4.0,
            who.name()
        );
    }
    body
}

fn line(all: &[Results], case: Case, who: Who) -> Option<Line> {
    let point = |results: &Results| {
        Some((along(all, results)?, results.median(case, who).filter(|figure| *figure > 0.0)?))
    };
    let points: Vec<_> = all.iter().filter_map(point).collect();
    (points.len() > 1).then_some((who, points))
}

/// How far along the axis a fleet is, by powers of ten: the smallest at 0, the largest at 1.
pub(super) fn along(all: &[Results], results: &Results) -> Option<f64> {
    let power = |results: &Results| Some(f64::from(u32::try_from(results.nodes).ok()?).log10());
    let (first, last) = (power(all.first()?)?, power(all.last()?)?);
    (last > first).then_some((power(results)? - first) / (last - first))
}

fn thousands(nodes: usize) -> String {
    if nodes.is_multiple_of(1000) { format!("{} k", nodes / 1000) } else { nodes.to_string() }
}

//! The figures as bars: one row a case, everyone beside each other, longer is more.

use std::fmt::Write as _;

use super::{EVERYONE, short};
use crate::contender::Contender;
use crate::results::{Case, Results, Who};

pub(super) const WIDTH: f64 = 960.0;
const LEFT: f64 = 150.0;
/// Room for the figure behind a bar.
const RIGHT: f64 = 120.0;
const BAR: f64 = 16.0;
const GAP: f64 = 34.0;
const TOP: f64 = 56.0;

/// The cases that a picture tells more of than a table.
const SHOWN: [Case; 7] = [
    Case::Capture,
    Case::Mass,
    Case::ChangeP50,
    Case::ReturnP50,
    Case::Start,
    Case::Heartbeat,
    Case::MemoryPeak,
];

/// One picture of a run.
pub(super) fn picture(results: &Results) -> String {
    let (mut body, mut y) = (String::new(), TOP);
    for case in SHOWN {
        let rows = EVERYONE.map(|who| (who, results.median(case, who)));
        let most = rows.iter().filter_map(|(_, figure)| *figure).fold(0.0, f64::max);
        if most <= 0.0 {
            continue;
        }
        let better = if case.more_is_better() { "more is better" } else { "less is better" };
        let _ = writeln!(
            body,
            r##"  <text x="24" y="{:.0}" font-size="14" font-weight="600" fill="#1f2328">{}, {} <tspan font-weight="400" fill="#57606a">({better})</tspan></text>"##,
            y,
            case.title(),
            case.unit()
        );
        y += 8.0;
        for (who, figure) in rows {
            // Nobody to compare with: what has no limit has no bar for it.
            if figure.is_none() && who == Who::Limit {
                continue;
            }
            let length = figure.unwrap_or_default() / most * (WIDTH - LEFT - RIGHT);
            let text = figure.map_or_else(|| "did not finish".to_owned(), short);
            let weight = if who == Who::Contender(Contender::Perennial) { 600 } else { 400 };
            let _ = writeln!(
                body,
                r##"  <text x="{:.0}" y="{:.1}" font-size="12" text-anchor="end" font-weight="{weight}" fill="#1f2328">{}</text><rect x="{LEFT:.0}" y="{:.1}" width="{:.1}" height="{:.0}" rx="3" fill="{}"/><text x="{:.1}" y="{:.1}" font-size="12" font-weight="{weight}" fill="#1f2328">{text}</text>"##,
                LEFT - 8.0,
                y + BAR - 4.0,
                who.name(),
                y,
                length.max(1.0),
                BAR - 3.0,
                colour(who),
                LEFT + length.max(1.0) + 6.0,
                y + BAR - 4.0,
            );
            y += BAR;
        }
        y += GAP;
    }
    framed(&format!("Perennial, its peers and the limit at {} nodes", results.nodes), y - GAP + 24.0, &body)
}

/// A picture of this height, under its title.
pub(super) fn framed(title: &str, height: f64, body: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH:.0} {height:.0}\" role=\"img\" aria-labelledby=\"t\" \
         font-family=\"system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif\">\n  <title id=\"t\">{title}</title>\n  \
         <rect width=\"{WIDTH:.0}\" height=\"{height:.0}\" rx=\"12\" fill=\"#ffffff\"/>\n  <text x=\"24\" y=\"30\" \
         font-size=\"16\" font-weight=\"600\" fill=\"#1f2328\">{title}</text>\n{body}</svg>\n"
    )
}

pub(super) fn colour(who: Who) -> &'static str {
    match who {
        Who::Limit => "#d0d7de",
        Who::Contender(Contender::Perennial) => "#1a7f37",
        Who::Contender(_) => "#8c959f",
    }
}

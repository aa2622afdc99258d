//! The table: the board in some lines of 80 columns.

use std::time::Duration;

use super::{
    paint::Paint,
    words::{clock, count, duration, percent, thousands},
};
use crate::{
    board::{Board, Counts},
    replicas::{Replica, State},
};

/// How wide it is at most.
pub(super) const WIDTH: usize = 80;
/// How wide the bar is.
const BAR: usize = 66;

/// How many lines it has.
pub(super) fn height(replicas: usize) -> usize {
    16 + replicas
}

pub(super) fn lines(board: &Board, paint: Paint) -> Vec<String> {
    let counts = board.counts();
    let above = [
        String::new(),
        heading(board, paint),
        paint.faint(&"─".repeat(WIDTH)),
        row("now", &cut(&board.now, WIDTH - 12), paint),
        row("fleet", &bar(counts, paint), paint),
        row("", &legend(counts, paint), paint),
        String::new(),
        row("replicas", &replicas_heading(paint), paint),
    ];
    let replicas = board.replicas.iter().map(|one| row("", &replica(one, paint), paint));
    let below = [
        String::new(),
        row("people", &people(board), paint),
        row("restored", &restored(board), paint),
        row("latency", &latency("all replicas up", &board.latencies, paint), paint),
        row("", &latency("through a kill or a pause", &board.latencies_through_fault, paint), paint),
        row("", &paint.faint("from the answer to a node's creation to the sight of all its labels"), paint),
        row("page", &page(board), paint),
        String::new(),
    ];
    above.into_iter().chain(replicas).chain(below).collect()
}

fn page(board: &Board) -> String {
    let (page, mut took) = (&board.page, board.page.latencies.clone());
    took.sort_unstable();
    match (took.get(took.len() / 2), took.last()) {
        (Some(middle), Some(last)) => format!(
            "{} of the Service web; {} shown, p50 {}, max {}",
            count(page.endpoints, "endpoint"),
            count(took.len(), "change"),
            duration(*middle),
            duration(*last)
        ),
        _ => "nothing is published yet".to_owned(),
    }
}

fn heading(board: &Board, paint: Paint) -> String {
    let title = " Perennial";
    let fleet = format!(
        "  {}, {}, seed {}",
        count(board.nodes(), "node"),
        count(board.labels(), "label"),
        board.seed
    );
    let time = match board.round {
        0 => String::new(),
        round => format!("round {round}   {} of {} ", clock(board.began.elapsed()), clock(board.lasting)),
    };
    let fleet = cut(&fleet, WIDTH - width(title) - width(&time) - 1);
    let gap = WIDTH - width(title) - width(&fleet) - width(&time);
    format!("{}{fleet}{}{time}", paint.strong(title), " ".repeat(gap))
}

fn row(name: &str, value: &str, paint: Paint) -> String {
    if value.is_empty() {
        return String::new();
    }
    format!(" {} {value}", paint.faint(&format!("{name:<10}")))
}

fn columns([who, share, restores, takeovers, duplicates]: [&str; 5]) -> [String; 2] {
    [format!("{who:<18}"), format!("{share:>13}{restores:>11}{takeovers:>12}{duplicates:>13}")]
}

fn replicas_heading(paint: Paint) -> String {
    paint.faint(&columns(["", "share", "restores", "takeovers", "duplicates"]).concat())
}

fn replica(replica: &Replica, paint: Paint) -> String {
    let state = match replica.state {
        State::Starting => format!("◌ {} starts", replica.name),
        State::Up => format!("● {} up", replica.name),
        State::Killed => format!("✗ {} killed", replica.name),
        State::Paused => format!("‖ {} paused", replica.name),
    };
    let (share, work) = (percent(replica.share()), replica.work());
    let [restores, takeovers, duplicates] = [work.restores, work.takeovers, work.duplicates].map(thousands);
    let [who, numbers] = columns([&state, &share, &restores, &takeovers, &duplicates]);
    // Of one that is not up we know only what was heard last.
    match replica.state {
        State::Up => format!("{}{numbers}", paint.good(&who)),
        State::Starting | State::Paused => format!("{}{}", paint.attention(&who), paint.faint(&numbers)),
        State::Killed => format!("{}{}", paint.bad(&who), paint.faint(&numbers)),
    }
}

fn bar(Counts { whole, waiting, away }: Counts, paint: Paint) -> String {
    let all = (whole + waiting + away).max(1);
    // Whatever is there at all is seen: at least one cell of the bar.
    let cells = |part: usize| if part == 0 { 0 } else { (part * BAR / all).max(1) };
    let (waiting, away) = (cells(waiting), cells(away));
    let whole = if whole == 0 { 0 } else { BAR.saturating_sub(waiting + away) };
    let [whole, waiting, away] = [("█", whole), ("▒", waiting), ("·", away)].map(|(cell, n)| cell.repeat(n));
    format!("{}{}{}", paint.good(&whole), paint.attention(&waiting), paint.faint(&away))
}

fn legend(Counts { whole, waiting, away }: Counts, paint: Paint) -> String {
    format!(
        "{} {:<18} {} {:<24} {} {}",
        paint.good("█"),
        format!("{} whole", thousands(whole)),
        paint.attention("▒"),
        format!("{} waiting for labels", thousands(waiting)),
        paint.faint("·"),
        format_args!("{} away", thousands(away)),
    )
}

fn people(board: &Board) -> String {
    format!("{} changed, {} deleted", count(board.edits, "label"), count(board.deletions, "node"))
}

fn restored(board: &Board) -> String {
    count(board.latencies.len() + board.latencies_through_fault.len(), "node")
}

fn latency(name: &str, measured: &[Duration], paint: Paint) -> String {
    let mut measured = measured.to_vec();
    measured.sort_unstable();
    let Some(max) = measured.last() else { return paint.faint(&format!("{name:<26} -")) };
    let half = measured[measured.len() / 2];
    format!("{name:<26} p50 {:<10} max {}", duration(half), duration(*max))
}

fn cut(text: &str, width: usize) -> String {
    if self::width(text) <= width {
        return text.to_owned();
    }
    text.chars().take(width - 1).chain(['…']).collect()
}

fn width(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::replicas::Word;

    const METRICS: [&str; 3] =
        ["perennial_restores_total", "perennial_member_takeovers_total", "perennial_member_duplicates_total"];

    fn board() -> Board {
        let mut board = Board::new(5_000, 9, Duration::from_hours(1), u64::from(u32::MAX));
        board.now = "many things happen ".repeat(10);
        board.replicas[0].state = State::Up;
        board.replicas[0].said(Word::read(&METRICS.map(|name| (name.to_owned(), 1_234_567.0)).into()));
        board.killed(1);
        board.paused(2);
        (board.round, board.edits, board.deletions) = (240, 1_234_567, 1_234_567);
        board.latencies = vec![Duration::from_mins(50); 3];
        board.latencies_through_fault = vec![Duration::from_mins(50); 3];
        for index in 0..4_000 {
            board.saw(
                &perennial_testkit::node_name(index),
                "u",
                &perennial_testkit::company_labels(index % 3_900),
                Instant::now(),
            );
        }
        board
    }

    #[test]
    fn the_fullest_table_fits_80_columns() {
        let lines = lines(&board(), Paint::plain());
        assert_eq!(lines.len(), height(9));
        for line in lines {
            assert!(width(&line) <= WIDTH, "{}: {line}", width(&line));
            assert!(!line.contains('\x1b'), "{line}");
        }
    }

    #[test]
    fn colours_change_nothing_but_colours() {
        let board = board();
        let strip = |line: &String| {
            let mut text = String::new();
            let mut parts = line.split("\x1b[");
            text.push_str(parts.next().unwrap());
            parts.for_each(|part| text.push_str(part.split_once('m').unwrap().1));
            text
        };
        let colourful: Vec<String> = lines(&board, Paint::colourful()).iter().map(strip).collect();
        let plain = lines(&board, Paint::plain());
        // The heading tells the time.
        assert_eq!(colourful[2..], plain[2..]);
    }

    #[test]
    fn every_state_that_occurs_has_its_part_of_the_bar() {
        let cells = |whole, waiting, away| {
            let bar = bar(Counts { whole, waiting, away }, Paint::plain());
            ["█", "▒", "·"].map(|cell| bar.matches(cell).count())
        };
        assert_eq!(cells(300, 0, 0), [BAR, 0, 0]);
        assert_eq!(cells(298, 1, 1), [BAR - 2, 1, 1]);
        assert_eq!(cells(0, 0, 300), [0, 0, BAR]);
    }
}

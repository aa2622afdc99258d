//! `perennial show`: one node against its record, its Events and its former states.

use jiff::Timestamp;
use perennial_core::kept::Kept;
use perennial_core::record::{Past, Record};
use serde::Serialize;

use super::compare::{Row, changes, compare};
use super::desk::Desk;
use super::document;
use super::error::Error;
use super::events::{Restores, Told};
use super::fleet::Entry;
use super::screen::{Screen, Style};
use super::standing::Standing;
use super::table::{Cell, Table};
use super::times::age;
use crate::args::operate::ShowArgs;
use crate::config::DeskConfig;

/// How many keys of a change are named before they are only counted.
const NAMED: usize = 6;

/// A node, as data.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Shown<'a> {
    node: &'a str,
    state: Standing,
    #[serde(skip_serializing_if = "Option::is_none")]
    restored_at: Option<Timestamp>,
    kept: Vec<Row>,
    #[serde(skip_serializing_if = "Option::is_none")]
    record: Option<&'a Record>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unreadable: Option<&'a str>,
    events: &'a [Told],
}

pub(crate) async fn run(args: &ShowArgs, config: &DeskConfig, screen: &mut Screen) -> Result<u8, Error> {
    let desk = Desk::open(config).await?;
    if let Some(doubt) = desk.doubt() {
        screen.note(doubt)?;
    }
    let entry = desk.known(&args.node).await?;
    let events = desk.events(&args.node).await;
    let restores = Restores::of(events.as_deref().unwrap_or_default());
    let kept = compare(&entry, &desk.policy);
    if let Some(how) = args.output {
        let shown = Shown {
            node: &entry.name,
            state: entry.standing,
            restored_at: restores.at(&entry),
            kept,
            record: entry.record(),
            unreadable: entry.unreadable(),
            events: events.as_deref().unwrap_or_default(),
        };
        document::write(screen, &shown, how)?;
        return Ok(0);
    }
    head(&entry, &restores, &desk, screen)?;
    heading("Kept", kept.is_empty(), screen)?;
    let gone = entry.live().is_none();
    kept.iter().try_for_each(|row| row.show(screen, gone))?;
    former(&entry, &desk, screen)?;
    match events {
        Ok(events) => tell(&events, desk.now(), screen)?,
        Err(error) => screen.say(format_args!("Events: {error}"))?,
    }
    Ok(0)
}

fn heading(title: &str, empty: bool, screen: &mut Screen) -> Result<(), Error> {
    let title = screen.paint(&format!("{title}:"), Style::Strong);
    screen.say(if empty { format!("{title}   none") } else { title })
}

fn head(entry: &Entry, restores: &Restores, desk: &Desk, screen: &mut Screen) -> Result<(), Error> {
    let now = desk.now();
    let mut say = |title: &str, text: String| {
        let title = screen.paint(&format!("{title}:"), Style::Strong);
        let fill = " ".repeat(11_usize.saturating_sub(strip(&title)));
        screen.say(format_args!("{title}{fill}{text}"))
    };
    say("Node", entry.name.clone())?;
    say("State", entry.standing.as_str().to_owned())?;
    if let Some(live) = entry.live() {
        let mut life = format!("{}, created {} ago", live.uid, age(live.created, now));
        if entry.is_restored() {
            life = format!("{life}, restored {} ago", restores.age(entry, now));
        }
        say("Life", life)?;
        if let Some(machine) = live.provider.id() {
            say("Machine", machine.to_owned())?;
        }
    }
    if let Some(why) = entry.unreadable() {
        say("Record", format!("cannot be read: {why}"))?;
    }
    if let Some(record) = entry.record() {
        let Record { state, sequence, captured_at, .. } = record;
        let mut text =
            format!("{}, recorded {} ago, sequence {sequence}", state.as_str(), age(*captured_at, now));
        if let Some(at) = record.deleted_at {
            text = format!("{text}, gone {} ago", age(at, now));
        }
        if record.unproved.is_some() {
            text.push_str(", its end is not proved");
        }
        say("Record", text)?;
    }
    let rule = entry.labels().and_then(|labels| {
        let recorded = entry.record().map(Record::labels);
        desk.policy.rule_for(labels, recorded.as_deref())
    });
    if let Some(rule) = rule {
        say("Rule", format!("{} ({})", rule.name(), desk.policy_from))?;
    }
    Ok(())
}

/// How wide a text is without its colours.
fn strip(text: &str) -> usize {
    let coloured = text.strip_prefix("\u{1b}[1m").and_then(|text| text.strip_suffix("\u{1b}[0m"));
    coloured.unwrap_or(text).chars().count()
}

fn former(entry: &Entry, desk: &Desk, screen: &mut Screen) -> Result<(), Error> {
    let Some(record) = entry.record() else { return Ok(()) };
    heading("Former states", record.previous.is_empty(), screen)?;
    if record.previous.is_empty() {
        return Ok(());
    }
    let uid = entry.live().map_or(record.incarnation.uid, |live| live.uid);
    let mut table = Table::new(&["AGE", "RECORDED", "LIFE", "LABELS", "WHAT CHANGED AFTERWARDS"]);
    let all: Vec<Past<'_>> = record.states().collect();
    for pair in all.windows(2) {
        let [after, past] = pair else { continue };
        let life = if past.incarnation.uid == uid { "this" } else { "another" };
        table.row(vec![
            age(past.captured_at, desk.now()).into(),
            format!("{:.0}", past.captured_at).into(),
            life.into(),
            past.labels().len().to_string().into(),
            changed(&whole(past), &whole(after)).into(),
        ]);
    }
    table.show(screen, 2)
}

/// A state with the labels that waited: they move to and fro while a node returns.
fn whole(past: &Past<'_>) -> Kept {
    Kept { labels: past.labels().into_owned(), ..past.kept.clone() }
}

/// What became of one state in the next, in a few words.
fn changed(before: &Kept, after: &Kept) -> String {
    let mut words: Vec<String> =
        changes(before, after).into_iter().map(|(sign, words)| format!("{sign}{words}")).collect();
    let more = words.len().saturating_sub(NAMED);
    words.truncate(NAMED);
    if more > 0 {
        words.push(format!("and {more} more"));
    }
    words.join(" ")
}

fn tell(events: &[Told], now: Timestamp, screen: &mut Screen) -> Result<(), Error> {
    heading("Events", events.is_empty(), screen)?;
    if events.is_empty() {
        return Ok(());
    }
    let mut table = Table::new(&["AGE", "TYPE", "REASON", "MESSAGE"]);
    for Told { at, kind, reason, message, .. } in events {
        let style = if kind == "Warning" { Style::Notice } else { Style::Plain };
        let cells = [at.map_or_else(|| "-".to_owned(), |at| age(at, now)), kind.clone()];
        let mut cells: Vec<Cell> = cells.map(|text| Cell::styled(text, style)).into();
        cells.extend([reason.as_str().into(), message.as_str().into()]);
        table.row(cells);
    }
    table.show(screen, 2)
}

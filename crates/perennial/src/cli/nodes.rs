//! `perennial nodes`: every node, and how it stands.

use std::cmp::Reverse;

use jiff::Timestamp;
use perennial_core::policy::Selector;
use perennial_core::record::{Record, State};
use serde::Serialize;

use super::desk::Desk;
use super::document::{self, Items};
use super::error::Error;
use super::events::Restores;
use super::fleet::Entry;
use super::screen::Screen;
use super::standing::Standing;
use super::table::{Cell, Table};
use super::times::age_of;
use crate::args::operate::{Document, NodesArgs, Output, SortBy};
use crate::config::DeskConfig;

/// A node, as data.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Row<'a> {
    node: &'a str,
    state: Standing,
    labels: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    recorded_at: Option<Timestamp>,
    restored: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    restored_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    deleted_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    record: Option<State>,
    #[serde(skip_serializing_if = "Option::is_none")]
    uid: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sequence: Option<u64>,
    previous: usize,
    waiting: usize,
    paused: bool,
}

pub(crate) async fn run(args: &NodesArgs, config: &DeskConfig, screen: &mut Screen) -> Result<u8, Error> {
    let states = args.state.iter().map(|text| Standing::parse(text).map_err(Error::Said));
    let states: Vec<Standing> = states.collect::<Result<_, _>>()?;
    let selector = args.selector.as_deref().map(Selector::parse).transpose();
    let selector = selector.map_err(|why| Error::Said(format!("--selector: {why}")))?;
    let desk = Desk::open(config).await?;
    if let Some(doubt) = desk.doubt() {
        screen.note(doubt)?;
    }
    let restores = desk.restores().await?;
    let mut entries = desk.fleet().await?;
    let missing = |name: &&String| !entries.iter().any(|entry| entry.name == **name);
    let missing: Vec<String> = args.names.iter().filter(missing).cloned().collect();
    entries.retain(|entry| {
        let nothing = perennial_core::kept::Pairs::new();
        let recorded = entry.record().map(Record::labels);
        let labels = entry.labels().unwrap_or(&nothing);
        (args.names.is_empty() || args.names.contains(&entry.name))
            && (states.is_empty() || states.contains(&entry.standing))
            && selector.as_ref().is_none_or(|selector| selector.matches(labels, recorded.as_deref()))
    });
    sort(&mut entries, args.sort_by, &restores);
    show(&entries, &restores, &desk, args, screen)?;
    for name in &missing {
        screen.note(Error::NotFound(format!("nodes {name:?}")))?;
    }
    Ok(u8::from(!missing.is_empty()))
}

/// By name within whatever else.
fn sort(entries: &mut [Entry], by: SortBy, restores: &Restores) {
    match by {
        SortBy::Name => {}
        SortBy::State => entries.sort_by_key(|entry| entry.standing),
        SortBy::Labels => entries.sort_by_key(|entry| Reverse(labels(entry))),
        SortBy::Recorded => entries.sort_by_key(|entry| Reverse(entry.recorded())),
        SortBy::Restored => {
            let at = |entry: &Entry| restores.at(entry).or_else(|| Some(entry.live()?.created));
            entries.sort_by_key(|entry| Reverse(at(entry).filter(|_| entry.is_restored())));
        }
    }
}

/// How many labels are kept of it.
fn labels(entry: &Entry) -> usize {
    entry.record().map_or(0, |record| record.labels().len())
}

fn show(
    entries: &[Entry],
    restores: &Restores,
    desk: &Desk,
    args: &NodesArgs,
    screen: &mut Screen,
) -> Result<(), Error> {
    let rows = || entries.iter().map(|entry| row(entry, restores)).collect();
    match args.output {
        Some(Output::Json) => return document::write(screen, &Items::new(rows()), Document::Json),
        Some(Output::Yaml) => return document::write(screen, &Items::new(rows()), Document::Yaml),
        Some(Output::Name) => {
            return entries.iter().try_for_each(|entry| screen.say(format_args!("node/{}", entry.name)));
        }
        Some(Output::Wide) | None if entries.is_empty() => return screen.note("No nodes found."),
        Some(Output::Wide) | None => {}
    }
    let wide = args.output == Some(Output::Wide);
    let mut header = vec!["NODE", "STATE", "LABELS", "RECORDED", "RESTORED"];
    if wide {
        header.extend(["RECORD", "WAITING", "FORMER", "SEQUENCE", "UID"]);
    }
    let mut table = Table::new(&header);
    for entry in entries {
        let Row { labels, recorded_at, record, uid, sequence, previous, waiting, .. } = row(entry, restores);
        let mut cells: Vec<Cell> = vec![
            entry.name.as_str().into(),
            Cell::styled(entry.standing.as_str(), entry.standing.style()),
            labels.to_string().into(),
            age_of(recorded_at, desk.now()).into(),
            restores.age(entry, desk.now()).into(),
        ];
        if wide {
            cells.push(record.map_or("-", State::as_str).into());
            cells.push(waiting.to_string().into());
            cells.push(previous.to_string().into());
            cells.push(sequence.map_or_else(|| "-".to_owned(), |sequence| sequence.to_string()).into());
            cells.push(uid.unwrap_or_else(|| "-".to_owned()).into());
        }
        table.row(cells);
    }
    table.without_header(args.no_headers).show(screen, 0)
}

fn row<'a>(entry: &'a Entry, restores: &Restores) -> Row<'a> {
    let record = entry.record();
    let uid = entry.live().map(|live| live.uid).or_else(|| entry.seen()?.names());
    Row {
        node: &entry.name,
        state: entry.standing,
        labels: labels(entry),
        recorded_at: entry.recorded(),
        restored: entry.is_restored(),
        restored_at: restores.at(entry),
        deleted_at: record.and_then(|record| record.deleted_at),
        record: record.map(|record| record.state),
        uid: uid.map(|uid| uid.to_string()),
        sequence: record.map(|record| record.sequence),
        previous: record.map_or(0, |record| record.previous.len()),
        waiting: record.map_or(0, |record| record.waiting.len()),
        paused: entry.standing == Standing::Paused,
    }
}

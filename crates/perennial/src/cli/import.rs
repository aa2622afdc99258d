//! `perennial import`: records of another cluster, of a backup, or of an older tool.
//!
//! ```text
//! file or ConfigMaps ──read──> what is remembered of each node ──check──> all good, or every problem and nothing written
//!                                                                   └──> records of nodes that are away ──> conditional writes
//! ```
//! A record becomes that of a node that is away and whose life nobody here knows: closed, of version 0 and of no uid. So
//! whatever node of that name joins is given it, and no version of the other cluster is ever compared with one of this.

mod check;
mod read;

use std::io::Read as _;
use std::path::Path;

use futures::StreamExt as _;
use jiff::Timestamp;
use perennial_core::keeper::Body;
use perennial_core::keeper::undo::replaced;
use perennial_core::record::{Incarnation, PREVIOUS, Previous, Record, SCHEMA, Seals, State, record_name};
use uuid::Uuid;

use super::desk::Desk;
use super::error::Error;
use super::screen::Screen;
use super::writes::settle;
use crate::args::operate::ImportArgs;
use crate::config::DeskConfig;
use crate::keeper::RecordObject;
use read::ConfigMap;

/// How many problems are told before they are only counted.
const TOLD: usize = 20;
/// How many records are written at once.
const AT_ONCE: usize = 8;

/// What to do about one record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Create,
    Overwrite,
    /// What is there says the same.
    Same,
    /// There is one already.
    LeaveAlone,
    /// There is one that cannot be read: nobody knows what would be lost.
    Unreadable,
    /// There is one that a newer binary wrote.
    Newer,
}

impl Step {
    fn words(self, node: &str, dry_run: bool) -> String {
        let words = match (self, dry_run) {
            (Self::Create, false) => "imported",
            (Self::Create, true) => "would be imported (dry run)",
            (Self::Overwrite, false) => "overwritten",
            (Self::Overwrite, true) => "would be overwritten (dry run)",
            (Self::Same, _) => "unchanged",
            (Self::LeaveAlone, _) => "left alone: it has a record already (--overwrite replaces it)",
            (Self::Unreadable, _) => {
                return format!(
                    "left alone: it has a record that cannot be read (`perennial forget {node}` removes it)"
                );
            }
            (Self::Newer, _) => "left alone: a newer perennial wrote its record; import with that one",
        };
        words.to_owned()
    }

    /// Whether it is not what somebody asked for who wants records overwritten.
    fn refuses(self) -> bool {
        matches!(self, Self::Unreadable | Self::Newer)
    }
}

pub(crate) async fn run(args: &ImportArgs, config: &DeskConfig, screen: &mut Screen) -> Result<u8, Error> {
    let desk = Desk::open(config).await?;
    desk.certain(config, args.dry_run, screen)?;
    let now = desk.now();
    let read = match (&args.from_namespace, &args.file) {
        (Some(namespace), _) => {
            read::config_maps(config_maps(&desk, namespace).await?, &desk.policy, args.skip_unknown, now)
        }
        (None, file) => {
            read::text(&text(file.as_deref().unwrap_or("-"))?, &desk.policy, args.skip_unknown, now)
        }
    };
    let found = read.and_then(|read| check::check(read.found).map(|found| (found, read.notes)));
    let (found, notes) = found.map_err(|problems| refused(&problems))?;
    for note in notes {
        screen.note(note)?;
    }
    let records: Vec<Record> = found.into_iter().map(|found| as_away(found.record, now)).collect();
    if records.is_empty() {
        screen.note("There is nothing to import.")?;
        return Ok(0);
    }
    let overwritten = plan(&desk, &records, args, screen).await?;
    if args.dry_run {
        return Ok(0);
    }
    let question = format!("Overwrite {overwritten} records? What they say stays in their former states.");
    if overwritten > 0 && !screen.confirm(&question, args.yes)? {
        screen.note("Nothing was changed.")?;
        return Ok(1);
    }
    write(&desk, &records, args.overwrite, screen).await
}

/// Every problem in words, and that nothing was written.
fn refused(problems: &[String]) -> Error {
    let mut lines: Vec<&str> = problems.iter().map(String::as_str).take(TOLD).collect();
    let more = format!("and {} more", problems.len().saturating_sub(TOLD));
    if problems.len() > TOLD {
        lines.push(&more);
    }
    Error::Said(format!("nothing was imported:\n  {}", lines.join("\n  ")))
}

fn text(file: &str) -> Result<String, Error> {
    let failed = |source| Error::File { path: Path::new(file).to_owned(), source };
    if file != "-" {
        return std::fs::read_to_string(file).map_err(failed);
    }
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).map_err(failed)?;
    Ok(text)
}

async fn config_maps(desk: &Desk, namespace: &str) -> Result<Vec<ConfigMap>, Error> {
    let resource = kube::core::request::Request::new(format!("/api/v1/namespaces/{namespace}/configmaps"));
    let (objects, _) = desk.list::<ConfigMap>("configmaps", &resource, true).await?;
    Ok(objects)
}

/// The record as that of a node that is away, of no life that anybody here knows.
fn as_away(record: Record, now: Timestamp) -> Record {
    let nobody = |incarnation: Incarnation| Incarnation { uid: Uuid::nil(), ..incarnation };
    let previous = record.previous.into_iter();
    Record {
        schema: SCHEMA,
        state: State::Closed,
        incarnation: nobody(record.incarnation),
        version: 0,
        previous: previous
            .map(|previous| Previous { incarnation: nobody(previous.incarnation), ..previous })
            .collect(),
        // Its time here begins now.
        deleted_at: Some(now),
        sequence: 1,
        unproved: None,
        given: false,
        ..record
    }
}

/// What to do about a record where this one is there.
fn step(
    record: &Record,
    there: Option<&RecordObject>,
    seals: Option<&Seals>,
    overwrite: bool,
) -> (Step, Option<Box<Record>>) {
    let Some(object) = there else { return (Step::Create, None) };
    match object.whole(&record.node, seals).body {
        Body::Whole(before) if before.kept == record.kept && before.waiting == record.waiting => {
            (Step::Same, None)
        }
        Body::Whole(before) if overwrite => (Step::Overwrite, Some(before)),
        Body::Whole(_) => (Step::LeaveAlone, None),
        Body::Newer => (Step::Newer, None),
        Body::Unreadable { .. } | Body::Unread { .. } | Body::Summary(_) => (Step::Unreadable, None),
    }
}

/// Says what there is to do, and returns how many records would be overwritten.
async fn plan(
    desk: &Desk,
    records: &[Record],
    args: &ImportArgs,
    screen: &mut Screen,
) -> Result<usize, Error> {
    let (there, _) = desk.list::<RecordObject>("configmaps", desk.api.records(), true).await?;
    let there: std::collections::HashMap<String, RecordObject> =
        there.into_iter().map(|object| (object.metadata.name.clone(), object)).collect();
    let mut overwritten = 0;
    for record in records {
        let (step, _) = step(record, there.get(&record_name(&record.node)), desk.api.seals(), args.overwrite);
        overwritten += usize::from(step == Step::Overwrite);
        if args.dry_run {
            screen.say(told(record, step, true))?;
        }
    }
    Ok(overwritten)
}

fn told(record: &Record, step: Step, dry_run: bool) -> String {
    let labels = match record.labels().len() {
        1 => "1 label".to_owned(),
        more => format!("{more} labels"),
    };
    format!("node/{} {} ({labels})", record.node, step.words(&record.node, dry_run))
}

async fn write(desk: &Desk, records: &[Record], overwrite: bool, screen: &mut Screen) -> Result<u8, Error> {
    let each = records.iter().map(|record| async move {
        (record, settle(async || write_one(desk, record, overwrite).await).await)
    });
    let mut each = futures::stream::iter(each).buffered(AT_ONCE);
    let (mut seen, mut failed) = (0, 0);
    while let Some((record, done)) = each.next().await {
        seen += 1;
        screen.progress(seen, records.len())?;
        match done {
            Ok(step) if overwrite && step.refuses() => {
                failed += 1;
                screen.note(told(record, step, false))?;
            }
            Ok(step) => screen.say(told(record, step, false))?,
            Err(error) => {
                failed += 1;
                screen.note(format_args!("node/{}: {error}", record.node))?;
            }
        }
    }
    Ok(u8::from(failed > 0))
}

async fn write_one(desk: &Desk, record: &Record, overwrite: bool) -> Result<Step, Error> {
    let there = desk.told(desk.api.read_config_map::<RecordObject>(&record_name(&record.node)).await)?;
    let (step, before) = step(record, there.as_ref(), desk.api.seals(), overwrite);
    let next = match (step, before) {
        (Step::Create, _) => record.clone(),
        (Step::Overwrite, Some(before)) => over(&before, record, desk.now()),
        _ => return Ok(step),
    };
    let seen = there.map(|object| object.whole(&record.node, desk.api.seals()));
    desk.write_record(next, seen.as_ref()).await?;
    Ok(step)
}

/// An imported record in the place of one of this cluster, which it remembers.
fn over(before: &Record, record: &Record, now: Timestamp) -> Record {
    // Of a node that lives, whatever version it was recorded at is not to hold up what it gets.
    let version = if before.state == State::Closed { before.version } else { 0 };
    // Here it holds from now on, however old it is: an undo to yesterday finds what was here yesterday.
    let mut next = replaced(before, Record { version, captured_at: now, ..record.clone() });
    next.previous.extend(record.previous.iter().cloned());
    next.previous.truncate(PREVIOUS);
    next
}

#[cfg(test)]
mod tests;

//! `perennial pause` and `resume`: a person's word on one node.
//!
//! A living node bears it as an annotation, which the keeper reads. Of a node that is away its record remembers it.

use perennial_core::keeper::mark::PAUSE;
use perennial_core::record::{Record, State};

use super::desk::Desk;
use super::error::Error;
use super::fleet::Entry;
use super::screen::Screen;
use super::writes::settle;
use crate::args::operate::HandArgs;
use crate::config::DeskConfig;

pub(crate) async fn run(
    args: &HandArgs,
    pause: bool,
    config: &DeskConfig,
    screen: &mut Screen,
) -> Result<u8, Error> {
    let desk = Desk::connect(config).await?;
    let mut failed = false;
    for name in &args.names {
        match settle(async || put(&desk, &desk.known(name).await?, pause).await).await {
            Ok(words) => screen.say(format_args!("node/{name} {words}"))?,
            Err(error) => {
                failed = true;
                screen.note(error)?;
            }
        }
    }
    Ok(u8::from(failed))
}

async fn put(desk: &Desk, entry: &Entry, pause: bool) -> Result<&'static str, Error> {
    let Some(live) = entry.live() else { return put_away(desk, entry, pause).await };
    // What an earlier life left behind ends by a word of its own alone.
    let remembered = entry.record().is_some_and(|record| record.paused && record.incarnation.uid != live.uid);
    let (value, words) = match (pause, live.hand.pause) {
        (true, Some(true)) => return Ok("is paused already"),
        (true, _) => (Some("true"), "paused"),
        (false, None) if !remembered => return Ok("is not paused"),
        (false, Some(false)) => return Ok("is not paused"),
        (false, _) => (remembered.then_some("false"), "resumed"),
    };
    desk.annotate(&entry.name, live, PAUSE, value).await?;
    Ok(words)
}

async fn put_away(desk: &Desk, entry: &Entry, pause: bool) -> Result<&'static str, Error> {
    let name = &entry.name;
    let Some(record) = entry.record() else {
        return Err(Error::Said(format!("node {name:?} is away, and its record cannot be read")));
    };
    match (pause, record.paused) {
        (true, true) => return Ok("is paused already (it is away)"),
        (false, false) => return Ok("is not paused (it is away)"),
        _ => {}
    }
    if record.state != State::Closed {
        return Err(not_closed(name));
    }
    let next = Record {
        paused: pause,
        sequence: record.sequence.saturating_add(1),
        // What it holds does not change by that.
        kept_since: Some(record.held_since()),
        ..record.clone()
    };
    desk.write_record(next, entry.seen()).await?;
    Ok(if pause { "paused (it is away)" } else { "resumed (it is away)" })
}

/// A node that is gone, and whose end no replica has recorded yet.
pub(crate) fn not_closed(name: &str) -> Error {
    Error::Said(format!(
        "node {name:?} is gone and its end is not recorded yet: a replica does that within seconds; try again"
    ))
}

//! `perennial diff`: how living nodes differ from their records.

use super::compare::{Row, compare};
use super::desk::Desk;
use super::error::Error;
use super::fleet::Entry;
use super::screen::{Screen, Style};
use crate::args::operate::DiffArgs;
use crate::config::DeskConfig;

pub(crate) async fn run(args: &DiffArgs, config: &DeskConfig, screen: &mut Screen) -> Result<u8, Error> {
    let desk = Desk::open(config).await?;
    if let Some(doubt) = desk.doubt() {
        screen.note(doubt)?;
    }
    let entries = if args.names.is_empty() {
        desk.fleet().await?
    } else {
        let mut entries = Vec::new();
        for name in &args.names {
            entries.push(desk.known(name).await?);
        }
        entries
    };
    let mut found = false;
    for entry in entries {
        let differences = differences(&entry, &desk);
        if let Some(why) = entry.unreadable() {
            screen.note(format_args!("the record of node {:?} cannot be read: {why}", entry.name))?;
        }
        if differences.is_empty() {
            continue;
        }
        found = true;
        let state = screen.paint(entry.standing.as_str(), entry.standing.style());
        let name = screen.paint(&entry.name, Style::Strong);
        screen.say(format_args!("node/{name} ({state})"))?;
        for row in &differences {
            row.show(screen, false)?;
        }
    }
    Ok(u8::from(found))
}

/// Only of one that lives: what is away differs in everything.
fn differences(entry: &Entry, desk: &Desk) -> Vec<Row> {
    if entry.live().is_none() || entry.unreadable().is_some() {
        return Vec::new();
    }
    compare(entry, &desk.policy).into_iter().filter(Row::differs).collect()
}

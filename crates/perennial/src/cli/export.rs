//! `perennial export`: all records as JSON lines.
//!
//! The first line says what it is and how many records follow, so that a file that was cut short is refused. Each further
//! line is one record, as it stands in its ConfigMap: one line a node can be searched, compared and taken out with the
//! tools that everybody has.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use jiff::Timestamp;
use perennial_core::keeper::Body;
use perennial_core::record::Record;
use serde::{Deserialize, Serialize};

use super::desk::Desk;
use super::error::Error;
use super::screen::Screen;
use crate::args::operate::ExportArgs;
use crate::config::DeskConfig;
use crate::keeper::RecordObject;

/// The format that is written, and the newest that is read.
pub(crate) const FORMAT: u32 = 1;

/// The first line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Header {
    /// The format.
    pub(crate) perennial_export: u32,
    pub(crate) exported_at: Timestamp,
    /// How many follow.
    pub(crate) records: usize,
}

pub(crate) async fn run(args: &ExportArgs, config: &DeskConfig, screen: &mut Screen) -> Result<u8, Error> {
    let desk = Desk::connect(config).await?;
    let (objects, _) = desk.list::<RecordObject>("configmaps", desk.api.records(), true).await?;
    let mut records: Vec<Record> = Vec::new();
    let mut unread = 0;
    for object in objects {
        let Some(node) = object.node() else { continue };
        match object.whole(node, desk.api.seals()).body {
            Body::Whole(record) => records.push(*record),
            body => {
                unread += 1;
                let why = match body {
                    Body::Unreadable { why, .. } => why,
                    _ => "it was written by a newer perennial".to_owned(),
                };
                screen.note(format_args!(
                    "the record of node {node:?} is left out, it cannot be read: {why}"
                ))?;
            }
        }
    }
    records.sort_by(|a, b| a.node.cmp(&b.node));
    let text = written(&records, desk.now());
    match &args.file {
        None => screen.write(text.as_bytes())?,
        Some(path) => {
            let path = Path::new(path);
            let failed = |source| Error::File { path: path.to_owned(), source };
            replace(path, text.as_bytes()).map_err(failed)?;
            screen.note(format_args!("{} records are in {}.", records.len(), path.display()))?;
        }
    }
    Ok(u8::from(unread > 0))
}

pub(crate) fn written(records: &[Record], now: Timestamp) -> String {
    let header = Header { perennial_export: FORMAT, exported_at: now, records: records.len() };
    // Plain data: it cannot fail to serialize.
    let mut text = serde_json::to_string(&header).unwrap_or_default();
    for record in records {
        text.push('\n');
        text.push_str(&serde_json::to_string(record).unwrap_or_default());
    }
    text.push('\n');
    text
}

/// Replaces a file as a whole, or not at all. Labels may tell more than everybody should know.
fn replace(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let beside = path.with_file_name(format!(".{name}.{}", std::process::id()));
    let write = || {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        std::fs::rename(&beside, path)
    };
    write().inspect_err(|_| drop(std::fs::remove_file(&beside)))
}

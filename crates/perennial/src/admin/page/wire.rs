//! What goes over the wire: small, because a fleet may have 100,000 nodes and a phone may look at it.

use bytes::Bytes;
use jiff::Timestamp;
use perennial_core::kept::Digest;
use serde::Serialize;
use serde_json::{Value, json};

use crate::keeper::ledger::Name;
use crate::keeper::window::{Cell, Happened, Series, WITHIN};
use crate::lister::Pages;

/// One message of a stream of server-sent events. JSON has no line breaks of its own.
pub(super) fn message(kind: &str, data: &impl Serialize) -> Bytes {
    let data = serde_json::to_string(data).unwrap_or_default();
    format!("event: {kind}\ndata: {data}\n\n").into()
}

/// All names and their states, sorted by name.
///
/// Names are written one after the other with a blank between, each as two digits (base 36) for how much it shares
/// with the one before, and the rest. What all of them end in is written once.
pub(super) fn fleet(lines: &[(Name, Cell)]) -> Value {
    let tail = common_tail(lines);
    let (mut names, mut cells) = (String::new(), String::with_capacity(lines.len()));
    let mut before = "";
    for (name, cell) in lines {
        let name = name.strip_suffix(tail).unwrap_or(name);
        let shared = name.bytes().zip(before.bytes()).take_while(|(one, other)| one == other).count();
        // Nobody cuts a letter in half, whatever somebody calls a node.
        let shared = (0..=shared.min(36 * 36 - 1)).rev().find(|at| name.is_char_boundary(*at)).unwrap_or(0);
        let digit = |number: usize| char::from_digit(u32::try_from(number).unwrap_or(0), 36).unwrap_or('0');
        names.push(digit(shared / 36));
        names.push(digit(shared % 36));
        // Names of nodes have no blanks; one that has is shown with another sign in its place.
        names.extend(name[shared..].chars().map(|c| if c == ' ' { '\u{b7}' } else { c }));
        names.push(' ');
        cells.push(char::from(cell.letter()));
        before = name;
    }
    names.pop();
    json!({ "tail": tail, "names": names, "cells": cells })
}

/// What all names end in, from a dot on.
fn common_tail(lines: &[(Name, Cell)]) -> &str {
    let Some((first, _)) = lines.first().filter(|_| lines.len() > 1) else { return "" };
    let Some(mut at) = first.find('.') else { return "" };
    while !lines.iter().all(|(name, _)| name.ends_with(&first[at..])) {
        match first[at + 1..].find('.') {
            Some(next) => at += 1 + next,
            None => return "",
        }
    }
    &first[at..]
}

/// Lines that changed: names by the letter of their state, `-` for those that are gone.
pub(super) fn changes(changed: &[(Name, Option<Cell>)]) -> Value {
    let mut by_letter = serde_json::Map::new();
    for (name, cell) in changed {
        let letter = cell.map_or('-', |cell| char::from(cell.letter()));
        let names = by_letter.entry(letter.to_string()).or_insert_with(|| json!([]));
        if let Some(names) = names.as_array_mut() {
            names.push(json!(&**name));
        }
    }
    Value::Object(by_letter)
}

pub(super) fn event(event: &Happened) -> Value {
    json!([event.sequence, event.at, event.kind.as_str(), &*event.name, &*event.text])
}

/// A series: `[slot, restored, left, slowest, share, [times]]` for each slot in which something happened.
pub(super) fn series(series: &Series, now: Timestamp) -> Value {
    let slot = |slot: &crate::keeper::window::Slot| {
        let share = slot.share.map(|share| (share * 1e6).floor() / 1e6);
        json!([
            slot.number,
            slot.restored,
            slot.left,
            (slot.slowest * 10.0).round() / 10.0,
            share,
            slot.times
        ])
    };
    let slots: Vec<Value> = series.since(now.as_millisecond()).map(slot).collect();
    json!({ "seconds": series.seconds, "slots": series.slots, "within": WITHIN, "data": slots })
}

/// As much of a digest as tells two of them apart.
pub(super) fn short(digest: Digest) -> String {
    digest.to_string().chars().take(12).collect()
}

/// The listings: what they are, how many endpoints, what is wrong.
pub(super) fn listings(pages: &Pages) -> Value {
    let listing = |(id, shown): (crate::lister::order::Id, crate::lister::pages::Shown)| {
        let page = shown.page.as_ref();
        let digest = page.map(|page| short(page.stamp.digest));
        json!({
            "namespace": id.namespace,
            "name": id.name,
            "endpoints": page.map(|page| page.stamp.endpoints),
            "bytes": page.map(|page| page.body.len()),
            "type": page.map(|page| &page.content_type),
            "digest": digest,
            "trouble": shown.trouble,
        })
    };
    Value::Array(pages.all().into_iter().map(listing).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(names: &[&str]) -> Vec<(Name, Cell)> {
        names.iter().map(|name| ((*name).into(), Cell::Current)).collect()
    }

    #[test]
    fn names_are_written_once_as_far_as_they_are_the_same() {
        let fleet = fleet(&lines(&["ip-1.eu.internal", "ip-12.eu.internal", "ip-2.eu.internal"]));
        assert_eq!(fleet, json!({ "tail": ".eu.internal", "names": "00ip-1 042 032", "cells": "ccc" }));
    }

    #[test]
    fn only_what_all_names_end_in_is_their_tail() {
        assert_eq!(fleet(&lines(&["a.x.y", "b.z.y"]))["tail"], ".y");
        assert_eq!(fleet(&lines(&["a.x", "b"]))["tail"], "");
        assert_eq!(fleet(&lines(&["a.x"]))["tail"], "");
        assert_eq!(fleet(&[])["names"], "");
    }

    #[test]
    fn a_name_of_odd_letters_harms_nobody() {
        let fleet = fleet(&lines(&["a\u{e4}1 x", "a\u{e5}2"]));
        assert_eq!(fleet["names"], "00a\u{e4}1\u{b7}x 01\u{e5}2");
    }

    #[test]
    fn changes_are_told_by_state() {
        let changed =
            [("a".into(), Some(Cell::Absent)), ("b".into(), None), ("c".into(), Some(Cell::Absent))];
        assert_eq!(changes(&changed), json!({ "a": ["a", "c"], "-": ["b"] }));
    }
}

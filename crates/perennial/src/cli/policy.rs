//! `perennial policy check`: what a policy means, before it is in force.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use perennial_core::kept::{Content, Kept};
use perennial_core::policy::{Policy, Rule, is_privileged};
use perennial_core::record::Record;
use serde::Serialize;

use super::desk::Desk;
use super::document::{self, Items};
use super::error::Error;
use super::fleet::Entry;
use super::screen::{Screen, Style};
use super::table::{Cell, Table};
use crate::args::operate::{Document, Output, PolicyCheckArgs};
use crate::config::{DeskConfig, PolicySource};

/// What the policy means for one node, as data.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Meaning {
    node: String,
    /// The rule that speaks for it, if any does.
    rule: Option<String>,
    /// Whether the node is away.
    absent: bool,
    /// What of it is kept.
    kept: Vec<String>,
    /// What of that is not recorded now.
    new: Vec<String>,
    /// What is recorded, missing on the node, and would be given.
    restored: Vec<String>,
    /// What of that waits for the machine's identity.
    waits: Vec<String>,
    /// What is recorded and would not be kept or given any more.
    refused: Vec<String>,
}

pub(crate) async fn run(
    args: &PolicyCheckArgs,
    config: &DeskConfig,
    screen: &mut Screen,
) -> Result<u8, Error> {
    let path = PathBuf::from(&args.file);
    let source = PolicySource::file(path.clone()).map_err(|error| Error::Said(error.to_string()))?;
    let policy = source.subscribe().borrow().clone();
    if !args.against_cluster {
        return alone(&args.file, &policy, args.output, screen);
    }
    let config = DeskConfig { policy: Some((path, policy)), ..config.clone() };
    let desk = Desk::open(&config).await?;
    let meanings: Vec<Meaning> =
        desk.fleet().await?.iter().map(|entry| meaning(entry, &desk.policy)).collect();
    let document =
        |how| move |screen: &mut Screen, meanings| document::write(screen, &Items::new(meanings), how);
    match args.output {
        Some(Output::Json) => document(Document::Json)(screen, meanings)?,
        Some(Output::Yaml) => document(Document::Yaml)(screen, meanings)?,
        Some(Output::Name) => {
            let changed = |meaning: &&Meaning| !meaning.new.is_empty() || !meaning.refused.is_empty();
            let mut changed = meanings.iter().filter(changed);
            changed.try_for_each(|meaning| screen.say(format_args!("node/{}", meaning.node)))?;
        }
        Some(Output::Wide) => wide(&args.file, &meanings, screen)?,
        None => table(&args.file, &meanings, screen)?,
    }
    Ok(0)
}

/// The rules by themselves.
fn alone(file: &str, policy: &Arc<Policy>, output: Option<Output>, screen: &mut Screen) -> Result<u8, Error> {
    #[derive(Serialize)]
    struct Told<'a> {
        rule: &'a str,
        nodes: String,
        identity: &'a str,
    }
    let rules = policy.rules().iter().map(|rule| Told {
        rule: rule.name(),
        nodes: rule.selector().to_string(),
        identity: rule.identity().as_str(),
    });
    let document = match output {
        Some(Output::Json) => Some(Document::Json),
        Some(Output::Yaml) => Some(Document::Yaml),
        _ => None,
    };
    if let Some(how) = document {
        document::write(screen, &Items::new(rules.collect()), how)?;
        return Ok(0);
    }
    screen.say(format_args!("{file} is a policy ({})", policy.digest()))?;
    let mut table = Table::new(&["RULE", "NODES", "IDENTITY"]);
    for Told { rule, nodes, identity } in rules {
        table.row(vec![rule.into(), if nodes.is_empty() { "all" } else { &nodes }.into(), identity.into()]);
    }
    table.show(screen, 0)?;
    Ok(0)
}

fn meaning(entry: &Entry, policy: &Policy) -> Meaning {
    let nothing = Content::default();
    let content = entry.live().and_then(|live| live.content.as_ref());
    let recorded = entry.record().map(Record::labels);
    let rule = policy.rule_for(&content.unwrap_or(&nothing).labels, recorded.as_deref());
    let remembered = entry.record().map_or_else(BTreeSet::new, all_keys);
    let mut meaning = Meaning { node: entry.name.clone(), absent: content.is_none(), ..Meaning::default() };
    let Some(rule) = rule else {
        meaning.refused = remembered.into_iter().collect();
        return meaning;
    };
    meaning.rule = Some(rule.name().to_owned());
    let bears = content.map_or_else(BTreeSet::new, |content| keys(&rule.keep(content)));
    let (given, refused): (BTreeSet<String>, BTreeSet<String>) =
        remembered.into_iter().partition(|key| keeps(rule, key));
    meaning.new = bears.difference(&given).cloned().collect();
    let missing: Vec<String> = given.difference(&bears).cloned().collect();
    meaning.waits = missing.iter().filter(|key| is_privileged(key)).cloned().collect();
    meaning.restored = missing;
    meaning.refused = refused.into_iter().collect();
    meaning.kept = if meaning.absent { given } else { bears }.into_iter().collect();
    meaning
}

/// Everything in it, each by a word of its own.
fn keys(kept: &Kept) -> BTreeSet<String> {
    let Kept { labels, annotations, taints, unschedulable } = kept;
    let annotations = annotations.keys().map(|key| format!("annotation {key}"));
    let taints = taints.iter().map(|taint| format!("taint {}:{}", taint.key, taint.effect));
    let cordon = unschedulable.then(|| "cordon".to_owned());
    labels.keys().cloned().chain(annotations).chain(taints).chain(cordon).collect()
}

fn all_keys(record: &Record) -> BTreeSet<String> {
    let mut keys = keys(&record.kept);
    keys.extend(record.waiting.keys().cloned());
    keys
}

/// Whether a rule keeps what a word of [`keys`] stands for.
fn keeps(rule: &Rule, word: &str) -> bool {
    if word == "cordon" {
        return rule.keeps_cordon();
    }
    if let Some(key) = word.strip_prefix("annotation ") {
        return rule.keeps_annotation(key);
    }
    match word.strip_prefix("taint ") {
        Some(slot) => rule.keeps_taint(slot.rsplit_once(':').map_or(slot, |(key, _)| key)),
        None => rule.keeps_label(word),
    }
}

fn table(file: &str, meanings: &[Meaning], screen: &mut Screen) -> Result<(), Error> {
    let mut table = Table::new(&["NODE", "RULE", "KEPT", "NEW", "RESTORED", "REFUSED"]);
    for Meaning { node, rule, absent, kept, new, restored, waits: _, refused } in meanings {
        let number = |list: &Vec<String>, style| {
            Cell::styled(list.len().to_string(), if list.is_empty() { Style::Plain } else { style })
        };
        table.row(vec![
            if *absent { format!("{node} (absent)") } else { node.clone() }.into(),
            rule.as_deref().unwrap_or("none").into(),
            number(kept, Style::Plain),
            number(new, Style::Good),
            number(restored, Style::Good),
            number(refused, Style::Bad),
        ]);
    }
    table.show(screen, 0)?;
    sum(file, meanings, screen)
}

fn wide(file: &str, meanings: &[Meaning], screen: &mut Screen) -> Result<(), Error> {
    for Meaning { node, rule, absent, kept, new, restored, waits, refused } in meanings {
        let name = screen.paint(node, Style::Strong);
        let rule = rule.as_deref().map_or("no rule matches it".to_owned(), |rule| format!("rule {rule}"));
        screen.say(format_args!("node/{name} ({rule}{})", if *absent { ", absent" } else { "" }))?;
        for key in kept {
            let note = if new.contains(key) { "   (new)" } else { "" };
            screen.say(format_args!("    kept      {key}{note}"))?;
        }
        for key in restored {
            let note = if waits.contains(key) { "   (waits for the machine's identity)" } else { "" };
            let line = screen.paint(&format!("  + restored  {key}"), Style::Good);
            screen.say(format_args!("{line}{note}"))?;
        }
        for key in refused {
            screen.say(screen.paint(&format!("  - refused   {key}"), Style::Bad))?;
        }
    }
    sum(file, meanings, screen)
}

fn sum(file: &str, meanings: &[Meaning], screen: &mut Screen) -> Result<(), Error> {
    let count =
        |of: fn(&Meaning) -> &Vec<String>| meanings.iter().map(|meaning| of(meaning).len()).sum::<usize>();
    let unmanaged = meanings.iter().filter(|meaning| meaning.rule.is_none()).count();
    screen.note(format_args!(
        "{file}: of {} nodes {} keys are kept, {} of them new; {} would be restored, {} refused; {unmanaged} nodes match no rule.",
        meanings.len(),
        count(|meaning| &meaning.kept),
        count(|meaning| &meaning.new),
        count(|meaning| &meaning.restored),
        count(|meaning| &meaning.refused),
    ))
}

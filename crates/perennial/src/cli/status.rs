//! `perennial status`: the fleet in a few lines, and who does the work.

use std::collections::BTreeMap;

use perennial_core::ranks::Ranks;
use serde::Serialize;

use super::desk::{Desk, Member};
use super::document;
use super::error::Error;
use super::fleet::Entry;
use super::screen::{Screen, Style};
use super::standing::Standing;
use super::table::{Cell, Table};
use super::times::age_of;
use crate::args::operate::StatusArgs;
use crate::config::DeskConfig;
use crate::keeper::{BRAKE, RecordObject, ratio};
use crate::members::Role;

/// How many of those that change back and forth are named.
const NAMED: usize = 5;

/// The fleet, as data.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Status {
    nodes: usize,
    current: usize,
    share_current: f64,
    records: usize,
    states: BTreeMap<&'static str, usize>,
    policy: PolicyInForce,
    /// Unknown where it cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    brake_engaged: Option<bool>,
    members: Vec<MemberRow>,
    back_and_forth: Vec<Churn>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct PolicyInForce {
    from: String,
    digest: String,
    agreed: bool,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct MemberRow {
    name: String,
    alive: bool,
    roles: Vec<&'static str>,
    share: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    renewed_at: Option<jiff::Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    policy: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Churn {
    node: String,
    times: usize,
}

pub(crate) async fn run(args: &StatusArgs, config: &DeskConfig, screen: &mut Screen) -> Result<u8, Error> {
    let desk = Desk::open(config).await?;
    if let Some(doubt) = desk.doubt() {
        screen.note(doubt)?;
    }
    let entries = desk.fleet().await?;
    let brake = desk.told(desk.api.read_config_map::<RecordObject>(BRAKE).await)?;
    let status = status(&entries, &desk, brake.as_ref());
    if let Some(how) = args.output {
        document::write(screen, &status, how)?;
        return Ok(0);
    }
    show(&status, &desk, screen)?;
    Ok(0)
}

fn status(entries: &[Entry], desk: &Desk, brake: Option<&RecordObject>) -> Status {
    let living: Vec<&Entry> = entries.iter().filter(|entry| entry.node.is_some()).collect();
    // What is as it should be counts, also where nothing is kept.
    let settled =
        |entry: &&&Entry| matches!(entry.standing, Standing::Current | Standing::Bare | Standing::Unmanaged);
    let current = living.iter().filter(settled).count();
    let mut states = BTreeMap::new();
    for entry in entries {
        *states.entry(entry.standing.as_str()).or_default() += 1;
    }
    let members = desk.members.iter().flatten();
    let mut back_and_forth: Vec<Churn> = entries
        .iter()
        .filter_map(|entry| Some((entry, entry.record()?.churn())))
        .filter(|(_, times)| *times > 0)
        .map(|(entry, times)| Churn { node: entry.name.clone(), times })
        .collect();
    back_and_forth.sort_by_key(|churn| std::cmp::Reverse(churn.times));
    back_and_forth.truncate(NAMED);
    let own = desk.policy.digest();
    Status {
        nodes: living.len(),
        current,
        share_current: ratio(current, living.len()),
        records: entries.iter().filter(|entry| entry.seen().is_some()).count(),
        states,
        policy: PolicyInForce {
            from: desk.policy_from.clone(),
            digest: own.to_string(),
            agreed: desk.digests().iter().all(|digest| *digest == own),
        },
        brake_engaged: brake.map_or(Some(false), engaged),
        members: members.map(|member| member_row(member, &living, desk)).collect(),
        back_and_forth,
    }
}

fn engaged(brake: &RecordObject) -> Option<bool> {
    let text = brake.data.as_ref()?.get("brake.json")?;
    serde_json::from_str::<serde_json::Value>(text).ok()?["engaged"].as_bool()
}

fn member_row(member: &Member, living: &[&Entry], desk: &Desk) -> MemberRow {
    let alive = member.is_alive(desk.now());
    let works =
        |other: &&Member| other.keeps() && other.is_alive(desk.now()) && other.policy == member.policy;
    let names = desk.members.iter().flatten().filter(works).map(|other| other.name.as_str());
    let ranks = Ranks::new(&member.name, names);
    let first = |entry: &&&Entry| alive && member.keeps() && ranks.rank(&entry.name) == 0;
    MemberRow {
        name: member.name.clone(),
        alive,
        roles: member.roles.iter().map(|role| Role::as_str(*role)).collect(),
        share: if living.is_empty() { 0.0 } else { ratio(living.iter().filter(first).count(), living.len()) },
        renewed_at: member.renewed,
        policy: member.policy.map(|digest| digest.to_string()),
    }
}

fn show(status: &Status, desk: &Desk, screen: &mut Screen) -> Result<(), Error> {
    let Status {
        nodes,
        current,
        share_current,
        records,
        states,
        policy,
        brake_engaged,
        members,
        back_and_forth,
    } = status;
    let mut say = |title: &str, text: String, style: Style| {
        let fill = " ".repeat(10_usize.saturating_sub(title.len() + 1));
        let (title, text) = (screen.paint(&format!("{title}:"), Style::Strong), screen.paint(&text, style));
        screen.say(format_args!("{title}{fill}{text}"))
    };
    let whole = if current == nodes { Style::Good } else { Style::Notice };
    say("Nodes", format!("{nodes}, {current} of them current ({:.1} %)", share_current * 100.0), whole)?;
    let known = Standing::ALL
        .iter()
        .filter_map(|one| Some(format!("{} {}", states.get(one.as_str())?, one.as_str())));
    say("States", known.collect::<Vec<_>>().join(", "), Style::Plain)?;
    say("Records", records.to_string(), Style::Plain)?;
    let agreed = if policy.agreed { "" } else { ", and replicas run under another" };
    say("Policy", format!("{} ({}){agreed}", policy.from, policy.digest), Style::Plain)?;
    match brake_engaged {
        Some(false) => say("Brake", "off".to_owned(), Style::Plain)?,
        Some(true) => {
            let how = format!(
                "on: nothing is erased until somebody confirms with kubectl -n {} annotate configmap {BRAKE} perennial.dev/confirm=yes",
                desk.api.namespace()
            );
            say("Brake", how, Style::Bad)?;
        }
        None => say("Brake", "unreadable".to_owned(), Style::Bad)?,
    }
    screen.say("")?;
    match &desk.members {
        Err(error) => screen.say(format_args!("Members: {error}"))?,
        Ok(_) if members.is_empty() => {
            screen.say(screen.paint("No replica is at work in this namespace.", Style::Bad))?;
        }
        Ok(_) => show_members(members, desk, screen)?,
    }
    if !back_and_forth.is_empty() {
        screen.say("")?;
        screen.say(screen.paint("Something keeps changing these back and forth:", Style::Notice))?;
        let mut table = Table::new(&["NODE", "TIMES"]);
        for Churn { node, times } in back_and_forth {
            table.row(vec![node.as_str().into(), times.to_string().into()]);
        }
        table.show(screen, 0)?;
    }
    Ok(())
}

fn show_members(members: &[MemberRow], desk: &Desk, screen: &mut Screen) -> Result<(), Error> {
    let mut table = Table::new(&["MEMBER", "ALIVE", "ROLES", "SHARE", "RENEWED", "POLICY"]);
    for MemberRow { name, alive, roles, share, renewed_at, policy } in members {
        let (word, style) = if *alive { ("yes", Style::Good) } else { ("no", Style::Bad) };
        table.row(vec![
            name.as_str().into(),
            Cell::styled(word, style),
            roles.join(",").into(),
            format!("{:.0} %", share * 100.0).into(),
            age_of(*renewed_at, desk.now()).into(),
            policy.as_deref().map_or("-", |digest| digest.get(..8).unwrap_or(digest)).into(),
        ]);
    }
    table.show(screen, 0)
}

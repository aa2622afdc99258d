//! Tells a path in a few words a step.

use std::fmt;

use perennial_core::keeper::{Body, RecordSight, Sight};

use super::machines::role;
use super::state::{Replica, State, kept, life};

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.server.node() {
            None => write!(f, "no node @{}", self.server.node_head())?,
            Some(node) => {
                write!(
                    f,
                    "node U{}{:?} born {:?}{} {:?} @{}",
                    node.life,
                    node.labels.0,
                    node.born.0,
                    node.machine,
                    node.mark,
                    self.server.node_head()
                )?;
            }
        }
        match self.server.record() {
            None => write!(f, "; no record")?,
            Some((version, stored)) => {
                let record = &stored.record;
                let (state, life) = (record.state.as_str(), life(record.incarnation.uid));
                let doubt = if record.unproved.is_some() { "?" } else { "" };
                write!(
                    f,
                    "; {state}(U{life}){doubt}{:?}@{} #{version}",
                    kept(&record.kept).0,
                    record.version
                )?;
                let role = role(&record.kept.labels);
                if role != 0 {
                    write!(f, " role {role}")?;
                }
                for waiting in record.waiting.values() {
                    write!(f, " role {} waits for {:?}", waiting.value, waiting.provider_id)?;
                }
                if let Some(id) = &record.incarnation.provider_id {
                    write!(f, " of {id}")?;
                }
            }
        }
        self.replicas.iter().try_for_each(|replica| write!(f, " | {replica}"))
    }
}

impl fmt::Display for Replica {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.up {
            return write!(f, "down");
        }
        match &self.line.sight {
            Sight::Unlisted => write!(f, "unlisted")?,
            Sight::Missing => write!(f, "missing")?,
            Sight::Absent { at, .. } => write!(f, "absent@{at}")?,
            Sight::Live(live) => write!(f, "U{} {:?}@{}", life(live.uid), live.mark, live.version)?,
        }
        for end in &self.line.ends {
            let labels = super::state::Labels::of(&end.content.labels);
            write!(f, " +U{}{:?} {:?}@{}", life(end.uid), labels.0, end.mark, end.version)?;
            if let Some(id) = end.provider.id() {
                write!(f, " of {id}")?;
            }
        }
        match &self.line.record {
            RecordSight::Unlisted => write!(f, " unlisted")?,
            RecordSight::None => write!(f, " none")?,
            RecordSight::Seen(seen) => {
                let body = match &seen.body {
                    Body::Summary(_) => "by metadata",
                    Body::Whole(_) => "whole",
                    _ => "unread",
                };
                let foreign = if seen.foreign { " foreign" } else { "" };
                write!(f, " #{} {body}{foreign}", seen.version)?;
            }
        }
        if let Some(plan) = &self.plan {
            write!(f, " about to {}", plan.0.as_str())?;
        }
        Ok(())
    }
}

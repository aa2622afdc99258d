//! The configuration of the commands for people: which cluster, and whose records.

use std::path::PathBuf;
use std::sync::Arc;

use perennial_core::policy::Policy;
use perennial_core::record::Seals;

use super::source::Sources;
use super::{Connect, Error, PolicySource, Surroundings, check, find_connect, find_namespace, seals};
use crate::args::operate::DeskArgs;
use crate::args::settings as names;

/// What every command for people needs to know.
#[derive(Clone, Debug)]
pub struct DeskConfig {
    /// How to reach the API server.
    pub connect: Connect,
    /// The namespace the records live in.
    pub namespace: String,
    /// The name part of the mark.
    pub installation: String,
    /// The policy in force and where it is from, if somebody said so.
    pub policy: Option<(PathBuf, Arc<Policy>)>,
    /// What records are sealed with, where they are.
    pub seals: Option<Arc<Seals>>,
}

impl DeskConfig {
    /// Checks what was typed against what surrounds the process.
    pub fn check(args: &DeskArgs, around: &Surroundings) -> Result<Self, Error> {
        let DeskArgs { kubeconfig, context, namespace, installation, policy, record_key, color: _ } = args;
        let mut sources = Sources::new(around);
        let connect = find_connect(&mut sources, kubeconfig.as_deref(), context.as_deref())?;
        let namespace = find_namespace(&mut sources, around, namespace.as_deref())?;
        let installation =
            sources.checked(&names::INSTALLATION, installation.as_deref(), check::installation)?;
        let policy = match sources.find(&names::POLICY, policy.as_deref())? {
            None => None,
            Some(given) => {
                let path = PathBuf::from(given.value);
                let file = PolicySource::file(path.clone());
                let file = file.map_err(|source| Error::Policy { key: given.key, source })?;
                let policy = file.subscribe().borrow().clone();
                Some((path, policy))
            }
        };
        Ok(Self {
            connect,
            installation: installation.unwrap_or_else(|| namespace.clone()),
            namespace,
            policy,
            seals: seals::find(&mut sources, record_key.as_deref(), false)?,
        })
    }
}

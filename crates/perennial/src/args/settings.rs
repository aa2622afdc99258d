//! The names of the settings: one table, from which help, docs and the lookup are made.

use std::borrow::Cow;

/// A setting's names: its flag, its variable, and the variable of an older operator it also answers to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Setting {
    /// The long flag, with its dashes.
    pub(crate) flag: &'static str,
    /// The environment variable.
    pub(crate) env: &'static str,
    /// The variable that an older operator used for the same thing.
    pub(crate) older: Option<&'static str>,
}

/// A setting without an older name.
const fn setting(flag: &'static str, env: &'static str) -> Setting {
    Setting { flag, env, older: None }
}

/// A setting that an older operator had too.
const fn inherited(flag: &'static str, env: &'static str, older: &'static str) -> Setting {
    Setting { flag, env, older: Some(older) }
}

pub(crate) const KUBECONFIG: Setting = setting("--kubeconfig", "PERENNIAL_KUBECONFIG");
pub(crate) const CONTEXT: Setting = setting("--context", "PERENNIAL_CONTEXT");
pub(crate) const NAMESPACE: Setting = inherited("--namespace", "PERENNIAL_NAMESPACE", "OPERATOR_NAMESPACE");
pub(crate) const INSTALLATION: Setting = setting("--installation", "PERENNIAL_INSTALLATION");
pub(crate) const ROLES: Setting = setting("--roles", "PERENNIAL_ROLES");
pub(crate) const LISTING_NAMESPACE: Setting = setting("--listing-namespace", "PERENNIAL_LISTING_NAMESPACE");
pub(crate) const POLICY: Setting = setting("--policy", "PERENNIAL_POLICY");
pub(crate) const RESYNC: Setting = inherited("--resync", "PERENNIAL_RESYNC", "RESYNC_INTERVAL_SECONDS");
pub(crate) const CONCURRENCY: Setting = setting("--concurrency", "PERENNIAL_CONCURRENCY");
pub(crate) const NO_CAPTURE: Setting = setting("--no-capture", "PERENNIAL_NO_CAPTURE");
pub(crate) const NO_RESTORE: Setting = setting("--no-restore", "PERENNIAL_NO_RESTORE");
pub(crate) const DRY_RUN: Setting = setting("--dry-run", "PERENNIAL_DRY_RUN");
pub(crate) const MEMBER: Setting = setting("--member", "PERENNIAL_MEMBER");
pub(crate) const ADMIN_ADDRESS: Setting = setting("--admin-address", "PERENNIAL_ADMIN_ADDRESS");
pub(crate) const LOG_FORMAT: Setting = setting("--log-format", "PERENNIAL_LOG_FORMAT");
pub(crate) const LOG_LEVEL: Setting = inherited("--log-level", "PERENNIAL_LOG", "LOG_LEVEL");
pub(crate) const TAKEOVER: Setting = setting("--takeover", "PERENNIAL_TAKEOVER");
pub(crate) const LEASE_DURATION: Setting = setting("--lease-duration", "PERENNIAL_LEASE_DURATION");
pub(crate) const CLOSE_AFTER: Setting = setting("--close-after", "PERENNIAL_CLOSE_AFTER");
pub(crate) const OPEN_AFTER: Setting = setting("--open-after", "PERENNIAL_OPEN_AFTER");
pub(crate) const COLLECT_EVERY: Setting = setting("--collect-every", "PERENNIAL_COLLECT_EVERY");

/// The older operator's whole policy: the prefix of the labels it kept. It has no flag of its own, for
/// a policy file says it better.
pub(crate) const LABEL_PREFIX: &str = "PERSIST_LABEL_PREFIX";

/// Every setting that has a flag.
pub(crate) const ALL: &[Setting] = &[
    KUBECONFIG,
    CONTEXT,
    NAMESPACE,
    INSTALLATION,
    POLICY,
    RESYNC,
    CONCURRENCY,
    NO_CAPTURE,
    NO_RESTORE,
    DRY_RUN,
    ROLES,
    LISTING_NAMESPACE,
    MEMBER,
    ADMIN_ADDRESS,
    LOG_FORMAT,
    LOG_LEVEL,
    TAKEOVER,
    LEASE_DURATION,
    CLOSE_AFTER,
    OPEN_AFTER,
    COLLECT_EVERY,
];

impl Setting {
    /// The setting behind a flag, given as clap names it: without dashes.
    pub(crate) fn of_flag(long: &str) -> Option<&'static Self> {
        ALL.iter().find(|setting| setting.flag.strip_prefix("--") == Some(long))
    }

    /// The variables that are looked up, the newer name first, as help and docs show them.
    pub(crate) fn variables(&self) -> Cow<'static, str> {
        match self.older {
            None => self.env.into(),
            Some(older) => format!("{}, then {older}", self.env).into(),
        }
    }
}

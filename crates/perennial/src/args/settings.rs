//! The names of the settings: one table, from which help, docs and the lookup are made.

use std::borrow::Cow;

/// A setting's names: its flag, its variable, and the variable of an older operator it also answers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
pub(crate) const SERVICE: Setting = inherited("--service", "PERENNIAL_SERVICE", "SERVICE_NAME");
pub(crate) const LISTING: Setting = setting("--listing", "PERENNIAL_LISTING");
pub(crate) const ENDPOINTS: Setting = setting("--endpoints", "PERENNIAL_ENDPOINTS");
pub(crate) const TEMPLATE: Setting = inherited("--template", "PERENNIAL_TEMPLATE", "TEMPLATE_NAME");
pub(crate) const FORMAT: Setting = setting("--format", "PERENNIAL_FORMAT");
pub(crate) const FILE: Setting = setting("--file", "PERENNIAL_FILE");
pub(crate) const CONFIG_MAP: Setting = setting("--config-map", "PERENNIAL_CONFIG_MAP");
pub(crate) const BUCKET: Setting = inherited("--bucket", "PERENNIAL_BUCKET", "BUCKET_NAME");
pub(crate) const BUCKET_URL: Setting = inherited("--bucket-url", "PERENNIAL_BUCKET_URL", "BUCKET_URL");
pub(crate) const BUCKET_REGION: Setting = setting("--bucket-region", "PERENNIAL_BUCKET_REGION");
pub(crate) const BUCKET_CA: Setting = setting("--bucket-ca", "PERENNIAL_BUCKET_CA");
pub(crate) const KEY: Setting = inherited("--key", "PERENNIAL_KEY", "TEMPLATE_OUTPUT");
pub(crate) const ACL: Setting = inherited("--acl", "PERENNIAL_ACL", "BUCKET_PRIVILEGE");
pub(crate) const HISTORY: Setting = setting("--history", "PERENNIAL_HISTORY");
pub(crate) const PACE: Setting = setting("--pace", "PERENNIAL_PACE");
pub(crate) const MIN_ENDPOINTS: Setting = setting("--min-endpoints", "PERENNIAL_MIN_ENDPOINTS");
pub(crate) const MAX_SHRINK: Setting = setting("--max-shrink", "PERENNIAL_MAX_SHRINK");
pub(crate) const ONCE: Setting = setting("--once", "PERENNIAL_ONCE");
pub(crate) const VERIFY: Setting = setting("--verify", "PERENNIAL_VERIFY");
pub(crate) const POLICY: Setting = setting("--policy", "PERENNIAL_POLICY");
pub(crate) const RESYNC: Setting = inherited("--resync", "PERENNIAL_RESYNC", "RESYNC_INTERVAL_SECONDS");
pub(crate) const CONCURRENCY: Setting = setting("--concurrency", "PERENNIAL_CONCURRENCY");
pub(crate) const NO_CAPTURE: Setting = setting("--no-capture", "PERENNIAL_NO_CAPTURE");
pub(crate) const NO_RESTORE: Setting = setting("--no-restore", "PERENNIAL_NO_RESTORE");
pub(crate) const DRY_RUN: Setting = setting("--dry-run", "PERENNIAL_DRY_RUN");
pub(crate) const MEMBER: Setting = setting("--member", "PERENNIAL_MEMBER");
pub(crate) const ADMIN_ADDRESS: Setting = setting("--admin-address", "PERENNIAL_ADMIN_ADDRESS");
pub(crate) const PAGE: Setting = setting("--page", "PERENNIAL_PAGE");
pub(crate) const PAGE_VALUES: Setting = setting("--page-values", "PERENNIAL_PAGE_VALUES");
pub(crate) const PAGE_HOSTS: Setting = setting("--page-hosts", "PERENNIAL_PAGE_HOSTS");
pub(crate) const METRICS_ADDRESS: Setting = setting("--metrics-address", "PERENNIAL_METRICS_ADDRESS");
pub(crate) const METRICS_NAME: Setting = setting("--metrics-name", "PERENNIAL_METRICS_NAME");
pub(crate) const METRICS_CERTIFICATES: Setting =
    setting("--metrics-certificates", "PERENNIAL_METRICS_CERTIFICATES");
pub(crate) const WEBHOOK_ADDRESS: Setting = setting("--webhook-address", "PERENNIAL_WEBHOOK_ADDRESS");
pub(crate) const WEBHOOK_NAME: Setting = setting("--webhook-name", "PERENNIAL_WEBHOOK_NAME");
pub(crate) const WEBHOOK_HOSTS: Setting = setting("--webhook-hosts", "PERENNIAL_WEBHOOK_HOSTS");
pub(crate) const WEBHOOK_CERTIFICATES: Setting =
    setting("--webhook-certificates", "PERENNIAL_WEBHOOK_CERTIFICATES");
pub(crate) const RECORD_KEY: Setting = setting("--record-key", "PERENNIAL_RECORD_KEY");
pub(crate) const ACCEPT_UNSEALED: Setting = setting("--accept-unsealed", "PERENNIAL_ACCEPT_UNSEALED");
pub(crate) const CONDITION: Setting = setting("--condition", "PERENNIAL_CONDITION");
pub(crate) const GATE: Setting = setting("--gate", "PERENNIAL_GATE");
pub(crate) const LOG_FORMAT: Setting = setting("--log-format", "PERENNIAL_LOG_FORMAT");
pub(crate) const LOG_LEVEL: Setting = inherited("--log-level", "PERENNIAL_LOG", "LOG_LEVEL");
// These two have the names that every OpenTelemetry program knows.
pub(crate) const OTLP_ENDPOINT: Setting = setting("--otlp-endpoint", "OTEL_EXPORTER_OTLP_ENDPOINT");
pub(crate) const OTLP_SAMPLE: Setting = setting("--otlp-sample", "OTEL_TRACES_SAMPLER_ARG");
pub(crate) const TAKEOVER: Setting = setting("--takeover", "PERENNIAL_TAKEOVER");
pub(crate) const LEASE_DURATION: Setting = setting("--lease-duration", "PERENNIAL_LEASE_DURATION");
pub(crate) const CLOSE_AFTER: Setting = setting("--close-after", "PERENNIAL_CLOSE_AFTER");
pub(crate) const OPEN_AFTER: Setting = setting("--open-after", "PERENNIAL_OPEN_AFTER");
pub(crate) const COLLECT_EVERY: Setting = setting("--collect-every", "PERENNIAL_COLLECT_EVERY");
pub(crate) const URL: Setting = setting("--url", "PERENNIAL_URL");

/// The older operator's whole policy: the prefix of the labels it kept. It has no flag of its own, for
/// a policy file says it better.
pub(crate) const LABEL_PREFIX: &str = "PERSIST_LABEL_PREFIX";

/// The pairs of variables that may hold a bucket's credentials, the first that is given wins. They have no flags: the
/// list of processes shows those to everybody.
pub(crate) const CREDENTIALS: [(&str, &str); 4] = [
    ("PERENNIAL_BUCKET_KEY", "PERENNIAL_BUCKET_SECRET"),
    ("BUCKET_KEY", "BUCKET_SECRET"),
    ("SPACES_KEY", "SPACES_SECRET"),
    ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"),
];
/// A session token, for credentials that need one.
pub(crate) const SESSION_TOKEN: [&str; 2] = ["PERENNIAL_BUCKET_TOKEN", "AWS_SESSION_TOKEN"];

/// Every setting of `perennial list` that has a flag.
pub(crate) const LIST: &[Setting] = &[
    KUBECONFIG,
    CONTEXT,
    NAMESPACE,
    SERVICE,
    LISTING,
    ENDPOINTS,
    TEMPLATE,
    FORMAT,
    FILE,
    CONFIG_MAP,
    BUCKET,
    BUCKET_URL,
    BUCKET_REGION,
    BUCKET_CA,
    KEY,
    ACL,
    HISTORY,
    PACE,
    MIN_ENDPOINTS,
    MAX_SHRINK,
    ONCE,
    DRY_RUN,
    VERIFY,
    ADMIN_ADDRESS,
    LOG_FORMAT,
    LOG_LEVEL,
];

/// Every setting of `perennial run` that has a flag.
pub(crate) const RUN: &[Setting] = &[
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
    CONDITION,
    RECORD_KEY,
    ACCEPT_UNSEALED,
    ROLES,
    LISTING_NAMESPACE,
    MEMBER,
    ADMIN_ADDRESS,
    PAGE,
    PAGE_VALUES,
    PAGE_HOSTS,
    METRICS_ADDRESS,
    METRICS_NAME,
    METRICS_CERTIFICATES,
    WEBHOOK_ADDRESS,
    WEBHOOK_NAME,
    WEBHOOK_HOSTS,
    WEBHOOK_CERTIFICATES,
    GATE,
    LOG_FORMAT,
    LOG_LEVEL,
    OTLP_ENDPOINT,
    OTLP_SAMPLE,
    TAKEOVER,
    LEASE_DURATION,
    CLOSE_AFTER,
    OPEN_AFTER,
    COLLECT_EVERY,
];

/// What `perennial check` has besides the settings of `perennial run`.
pub(crate) const CHECK: &[Setting] = &[URL];

impl Setting {
    /// The setting behind a flag, given as clap names it: without dashes.
    pub(crate) fn of_flag(long: &str) -> Option<&'static Self> {
        RUN.iter().chain(LIST).chain(CHECK).find(|setting| setting.flag.strip_prefix("--") == Some(long))
    }

    /// The variables that are looked up, the newer name first, as help and docs show them.
    pub(crate) fn variables(&self) -> Cow<'static, str> {
        match self.older {
            None => self.env.into(),
            Some(older) => format!("{}, then {older}", self.env).into(),
        }
    }
}

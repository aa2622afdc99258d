//! What one listing is to do: checked, ready to be carried out.
//!
//! It comes from a `Listing`, or from the command line of `perennial list`. After this nobody sees a raw string.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use jiff::SignedDuration;
use perennial_core::lister::{Format, Guards, Pace, Select};
use serde::Deserialize as _;

use super::destination::{CannedAcl, Credentials, HistorySettings};
use super::listing::{
    ConfigMapSpec, CredentialsSpec, DestinationSpec, GuardsSpec, HistorySpec, KeyRef, ListingSpec, PaceSpec,
    S3Spec, TemplateSpec, Which, Written,
};

/// The longest that changes may be held back, or two publications kept apart.
const LONGEST_PACE: Duration = Duration::from_hours(24);
/// The longest that former pages may be kept.
const LONGEST_HISTORY: Duration = Duration::from_hours(24 * 3660);

/// Which listing: the name it goes by everywhere.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// What one listing is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// The Service whose endpoints are listed.
    pub service: String,
    /// Which of them.
    pub select: Select,
    /// What the page looks like.
    pub template: Source,
    /// What it is written in.
    pub format: Format,
    /// What it is served as.
    pub content_type: String,
    /// Where it is published.
    pub places: Vec<Place>,
    /// How often.
    pub pace: Pace,
    /// When not.
    pub guards: Guards,
}

/// Where a template comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// The one for this format that comes with Perennial.
    BuiltIn,
    /// This text.
    Text(String),
    /// A key of a ConfigMap.
    ConfigMap(KeyRef),
}

/// Where a page is published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: PlaceKind,
}

/// What a place is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlaceKind {
    /// An object in a bucket.
    S3(Box<Bucket>),
    /// A key of a ConfigMap.
    ConfigMap {
        /// The ConfigMap.
        name: String,
        /// The key.
        key: String,
    },
    /// A file. Only `perennial list` has these: what runs for everybody must not write files for anybody.
    File {
        /// Where it is.
        path: PathBuf,
        /// Former pages.
        history: Option<HistorySettings>,
    },
}

/// An object in a bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// The server; Amazon's own where there is none.
    pub endpoint: Option<String>,
    /// The bucket.
    pub bucket: String,
    /// The object.
    pub key: String,
    /// The region that requests are signed for.
    pub region: String,
    /// Whether the bucket stands in the path; by the endpoint where nobody says so.
    pub path_style: Option<bool>,
    /// What everybody may do with it.
    pub acl: Option<CannedAcl>,
    /// How long others may keep it.
    pub cache_control: String,
    /// Whether writes are conditional.
    pub conditional: bool,
    /// Who writes.
    pub credentials: CredentialsFrom,
    /// What the server's certificate is checked against.
    pub ca: Option<CaFrom>,
    /// Former pages.
    pub history: Option<HistorySettings>,
}

/// Where credentials come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CredentialsFrom {
    /// A Secret, read when they are needed.
    Secret(CredentialsSpec),
    /// These.
    Given(Credentials),
}

/// Where certificates come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CaFrom {
    /// A ConfigMap, read when they are needed.
    ConfigMap(KeyRef),
    /// This PEM.
    Given(String),
}

/// What the schema let pass and cannot be done all the same.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {problem}")]
pub struct OrderError {
    path: String,
    problem: String,
}

fn refuse(path: impl Into<String>, problem: impl Into<String>) -> OrderError {
    OrderError { path: path.into(), problem: problem.into() }
}

impl Order {
    /// Where the page finds its history: a link relative to itself, from the first place that has one.
    #[must_use]
    pub fn history_link(&self) -> Option<String> {
        self.places.iter().find_map(|place| match &place.kind {
            PlaceKind::S3(bucket) => bucket.history.as_ref().map(HistorySettings::link),
            PlaceKind::File { history, .. } => history.as_ref().map(HistorySettings::link),
            PlaceKind::ConfigMap { .. } => None,
        })
    }

    /// Whether the other makes the same page of the same endpoints.
    #[must_use]
    pub fn makes_the_same(&self, other: &Self) -> bool {
        let Self { service, select, template, format, content_type, places: _, pace: _, guards: _ } = self;
        let same = (service, select, template) == (&other.service, &other.select, &other.template);
        same && (format, content_type) == (&other.format, &other.content_type)
            && self.history_link() == other.history_link()
    }

    /// Reads a Listing's spec.
    pub fn from_value(spec: &serde_json::Value) -> Result<Self, OrderError> {
        let spec = ListingSpec::deserialize(spec).map_err(|error| refuse("spec", error.to_string()))?;
        Self::check(spec)
    }

    /// Checks a Listing's spec.
    pub fn check(spec: ListingSpec) -> Result<Self, OrderError> {
        let ListingSpec { service, endpoints, template, destinations, pace, guards } = spec;
        let TemplateSpec { format, inline, config_map, content_type } = template;
        let template = match (inline, config_map) {
            (None, None) => Source::BuiltIn,
            (Some(text), None) => Source::Text(text),
            (None, Some(key)) => Source::ConfigMap(key),
            (Some(_), Some(_)) => {
                return Err(refuse("spec.template", "give it inline or from a configMap, not both"));
            }
        };
        let format = Format::from(format);
        let content_type = match content_type {
            None => format.content_type().to_owned(),
            Some(given) if http::HeaderValue::from_str(&given).is_ok() && !given.trim().is_empty() => given,
            Some(given) => {
                return Err(refuse("spec.template.contentType", format!("{given:?} is no content type")));
            }
        };
        let places: Vec<Place> = destinations.into_iter().map(place).collect::<Result<_, _>>()?;
        for (at, place) in places.iter().enumerate() {
            if places[..at].iter().any(|other| other.name == place.name) {
                return Err(refuse("spec.destinations", format!("two are called {:?}", place.name)));
            }
        }
        Ok(Self {
            service,
            select: endpoints.into(),
            template,
            format,
            content_type,
            places,
            pace: check_pace(&pace)?,
            guards: guards.into(),
        })
    }
}

fn place(spec: DestinationSpec) -> Result<Place, OrderError> {
    let DestinationSpec { name, s3, config_map } = spec;
    let path = format!("spec.destinations[{name}]");
    let kind = match (s3, config_map) {
        (Some(s3), None) => PlaceKind::S3(Box::new(bucket(s3, &path)?)),
        (None, Some(ConfigMapSpec { name, key })) => PlaceKind::ConfigMap { name, key },
        _ => return Err(refuse(path, "a destination is either s3 or configMap")),
    };
    Ok(Place { name, kind })
}

fn bucket(spec: S3Spec, path: &str) -> Result<Bucket, OrderError> {
    let S3Spec {
        endpoint,
        bucket,
        key,
        region,
        path_style,
        acl,
        cache_control,
        conditional,
        credentials,
        ca,
        history,
    } = spec;
    let history = history.map(|history| former(&history, path)).transpose()?;
    Ok(Bucket {
        endpoint: Some(endpoint),
        bucket,
        key,
        region,
        path_style: Some(path_style),
        acl,
        cache_control,
        conditional,
        credentials: CredentialsFrom::Secret(credentials),
        ca: ca.map(CaFrom::ConfigMap),
        history,
    })
}

fn former(spec: &HistorySpec, path: &str) -> Result<HistorySettings, OrderError> {
    let HistorySpec { prefix, keep, max_age } = spec;
    let path = format!("{path}.s3.history");
    let age = duration(&format!("{path}.maxAge"), max_age, LONGEST_HISTORY)?;
    let count = usize::try_from(*keep).unwrap_or(usize::MAX);
    HistorySettings::new(prefix, count, age).map_err(|error| refuse(path, error.to_string()))
}

fn check_pace(spec: &PaceSpec) -> Result<Pace, OrderError> {
    let min = duration("spec.pace.min", &spec.min, LONGEST_PACE)?;
    let max = duration("spec.pace.max", &spec.max, LONGEST_PACE)?;
    Pace::new(min, max).map_err(|error| refuse("spec.pace", error.to_string()))
}

fn duration(path: &str, text: &str, longest: Duration) -> Result<Duration, OrderError> {
    text.parse::<SignedDuration>()
        .ok()
        .and_then(|duration| Duration::try_from(duration).ok())
        .filter(|duration| *duration <= longest)
        .ok_or_else(|| refuse(path, format!("{text:?} is not a duration such as 250ms, 90s, 5m or 720h")))
}

impl From<Which> for Select {
    fn from(which: Which) -> Self {
        match which {
            Which::Ready => Self::Ready,
            Which::Serving => Self::Serving,
            Which::All => Self::All,
        }
    }
}

impl From<Written> for Format {
    fn from(written: Written) -> Self {
        match written {
            Written::Html => Self::Html,
            Written::Json => Self::Json,
            Written::Text => Self::Text,
        }
    }
}

impl From<GuardsSpec> for Guards {
    fn from(GuardsSpec { min_endpoints, max_shrink_percent }: GuardsSpec) -> Self {
        Self { min_endpoints: min_endpoints.try_into().unwrap_or(usize::MAX), max_shrink_percent }
    }
}

#[cfg(test)]
mod tests;

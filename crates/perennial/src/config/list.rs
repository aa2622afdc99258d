//! The configuration of `perennial list`: checked once, ready to use.

use std::io::Read as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use perennial_core::lister::{Format, Guards, Pace, Select, Template};

use super::source::{Given, Sources};
use super::{Connect, Error, Surroundings, check, find_connect, find_log};
use crate::args::{ListArgs, settings as names};
use crate::lister::destination::{CannedAcl, Credentials, HistorySettings, S3Settings, Secret};
use crate::lister::order::{Bucket, CaFrom, CredentialsFrom, Id, Order, Place, PlaceKind, Source};
use crate::log::LogConfig;

/// What a page is called where nobody says so.
const KEY: &str = "index.html";
/// What the older tool took for a template where nobody said so, and what it let everybody do.
const OLDER_TEMPLATE: &str = "index.template";
const OLDER_ACL: CannedAcl = CannedAcl::PublicRead;
const PACE: &str = "250ms:1s";
/// The most that is read of a file with certificates or a template.
const LARGEST: u64 = 1 << 20;

/// Everything `perennial list` needs to know.
#[derive(Debug)]
pub struct ListConfig {
    /// How to reach the API server.
    pub connect: Connect,
    /// The Service's namespace; the client's own where there is none.
    pub namespace: Option<String>,
    /// What is published.
    pub what: What,
    /// Where it is published.
    pub places: Vec<Place>,
    /// The template's file, which is followed.
    pub template: Option<PathBuf>,
    /// Publish the page as it is now, and end.
    pub once: bool,
    /// Show the page, and end.
    pub dry_run: bool,
    /// See whether the page at this address is the current one, and end.
    pub verify: Option<http::Uri>,
    /// Where probes, metrics and the page are served; `None` is nowhere.
    pub admin: Option<SocketAddr>,
    /// How to log.
    pub log: LogConfig,
    /// The older tool's variables that were honoured, to be told in the log.
    pub honoured: Vec<&'static str>,
}

/// What is published.
#[derive(Debug)]
pub enum What {
    /// This.
    Order(Box<Order>),
    /// What a Listing says.
    Listing(Id),
}

impl ListConfig {
    /// Checks what was typed against what surrounds the process.
    pub fn check(args: &ListArgs, around: &Surroundings) -> Result<Self, Error> {
        let mut sources = Sources::new(around);
        let sources = &mut sources;
        let connect = find_connect(sources, args.kubeconfig.as_deref(), args.context.as_deref())?;
        let namespace = sources.checked(&names::NAMESPACE, args.namespace.as_deref(), check::namespace)?;
        let once = sources.switch(&names::ONCE, args.once)?;
        let dry_run = sources.switch(&names::DRY_RUN, args.dry_run)?;
        let verify = sources.checked(&names::VERIFY, args.verify.as_deref(), check::address)?;
        let admin = args.admin_address.as_deref();
        let admin = sources.checked(&names::ADMIN_ADDRESS, admin, check::listen)?.flatten();
        let log = find_log(sources, args.log_format.as_deref(), args.log_level.as_deref())?;
        let Destinations { places, older, published_as } = Destinations::find(sources, args)?;
        if places.is_empty() && !dry_run && verify.is_none() && admin.is_none() {
            return Err(Error::Missing {
                what: "a destination",
                remedy: "give --file, --config-map or --bucket; --dry-run shows the page on the terminal",
            });
        }
        let service = sources.checked(&names::SERVICE, args.service.as_deref(), check::namespace)?;
        let listing = sources.checked(&names::LISTING, args.listing.as_deref(), id)?;
        let mut template = None;
        let what = match (service, listing) {
            (Some(service), None) => {
                template = find_template(sources, args, older)?;
                What::Order(Box::new(find_order(sources, args, service, &published_as, template.as_deref())?))
            }
            (None, Some(id)) => What::Listing(id),
            (Some(_), Some(_)) => {
                return Err(Error::Conflict {
                    first: names::SERVICE.flag,
                    second: names::LISTING.flag,
                    remedy: "a Listing names its own Service; give one of them",
                });
            }
            (None, None) => {
                return Err(Error::Missing {
                    what: "what to list",
                    remedy: "give --service NAME, or --listing NAMESPACE/NAME",
                });
            }
        };
        let honoured = std::mem::take(&mut sources.honoured);
        Ok(Self { connect, namespace, what, places, template, once, dry_run, verify, admin, log, honoured })
    }
}

/// Where the page goes, and what it is called there.
struct Destinations {
    places: Vec<Place>,
    /// The bucket came from the older tool's variables, whose defaults count then.
    older: bool,
    published_as: String,
}

impl Destinations {
    fn find(sources: &mut Sources<'_>, args: &ListArgs) -> Result<Self, Error> {
        let key = sources.checked(&names::KEY, args.key.as_deref(), check::not_empty)?;
        let key = key.unwrap_or_else(|| KEY.to_owned());
        let history = sources.checked(&names::HISTORY, args.history.as_deref(), |text| {
            let count = text.parse().map_err(|_| "a number of pages, such as 100".to_owned())?;
            HistorySettings::new(HistorySettings::PREFIX, count, HistorySettings::AGE)
                .map_err(|error| error.to_string())
        })?;
        let (mut places, mut older, mut published_as) = (Vec::new(), false, key.clone());
        if let Some(bucket) = sources.find(&names::BUCKET, args.bucket.as_deref())? {
            older = Some(bucket.key) == names::BUCKET.older;
            let bucket = find_bucket(sources, args, bucket, key.clone(), history.clone(), older)?;
            places.push(Place { name: "bucket".to_owned(), kind: PlaceKind::S3(Box::new(bucket)) });
        }
        if let Some(name) =
            sources.checked(&names::CONFIG_MAP, args.config_map.as_deref(), check::not_empty)?
        {
            places.push(Place { name: "config-map".to_owned(), kind: PlaceKind::ConfigMap { name, key } });
        }
        if let Some(file) = sources.checked(&names::FILE, args.file.as_deref(), check::not_empty)? {
            if places.is_empty() {
                published_as.clone_from(&file);
            }
            let kind = PlaceKind::File { path: PathBuf::from(file), history };
            places.push(Place { name: "file".to_owned(), kind });
        }
        Ok(Self { places, older, published_as })
    }
}

fn find_bucket(
    sources: &mut Sources<'_>,
    args: &ListArgs,
    bucket: Given,
    key: String,
    history: Option<HistorySettings>,
    older: bool,
) -> Result<Bucket, Error> {
    let region = args.bucket_region.as_deref();
    let region = sources.checked(&names::BUCKET_REGION, region, check::not_empty)?;
    let acl = sources.checked(&names::ACL, args.acl.as_deref(), |text| {
        text.parse::<CannedAcl>().map_err(|error| error.to_string())
    })?;
    let ca = match sources.find(&names::BUCKET_CA, args.bucket_ca.as_deref())? {
        Some(file) => Some(CaFrom::Given(read(file)?)),
        None => None,
    };
    Ok(Bucket {
        endpoint: sources.checked(&names::BUCKET_URL, args.bucket_url.as_deref(), check::not_empty)?,
        bucket: bucket.value,
        key,
        region: region.unwrap_or_else(|| S3Settings::REGION.to_owned()),
        path_style: None,
        acl: acl.or(older.then_some(OLDER_ACL)),
        cache_control: "no-cache".to_owned(),
        conditional: true,
        credentials: CredentialsFrom::Given(find_credentials(sources)?),
        ca,
        history,
    })
}

/// The first pair of variables that is given. Half a pair is a mistake, not a reason to look further.
fn find_credentials(sources: &mut Sources<'_>) -> Result<Credentials, Error> {
    for (key, secret) in names::CREDENTIALS {
        let (access_key, secret_key) = (sources.secret(key)?, sources.secret(secret)?);
        let missing = match (access_key, secret_key) {
            (Some(access_key), Some(secret_key)) => {
                let mut session_token = None;
                for name in names::SESSION_TOKEN {
                    session_token = session_token.or(sources.secret(name)?);
                }
                let session_token = session_token.map(Secret::new);
                return Ok(Credentials {
                    access_key: Secret::new(access_key),
                    secret_key: Secret::new(secret_key),
                    session_token,
                });
            }
            (None, None) => continue,
            (Some(_), None) => secret,
            (None, Some(_)) => key,
        };
        return Err(Error::Missing { what: missing, remedy: "the other half of the credentials is given" });
    }
    Err(Error::Missing {
        what: "who may write to the bucket",
        remedy: "set PERENNIAL_BUCKET_KEY and PERENNIAL_BUCKET_SECRET",
    })
}

/// The template's file: given, or the older tool's default where its variables are used.
fn find_template(sources: &mut Sources<'_>, args: &ListArgs, older: bool) -> Result<Option<PathBuf>, Error> {
    let given = sources.checked(&names::TEMPLATE, args.template.as_deref(), check::not_empty)?;
    Ok(given.or_else(|| older.then(|| OLDER_TEMPLATE.to_owned())).map(PathBuf::from))
}

fn find_order(
    sources: &mut Sources<'_>,
    args: &ListArgs,
    service: String,
    published_as: &str,
    template: Option<&Path>,
) -> Result<Order, Error> {
    let select = sources.checked(&names::ENDPOINTS, args.endpoints.as_deref(), |text| match text {
        "ready" => Ok(Select::Ready),
        "serving" => Ok(Select::Serving),
        "all" => Ok(Select::All),
        _ => Err("ready, serving or all".to_owned()),
    })?;
    let format = sources.checked(&names::FORMAT, args.format.as_deref(), |text| match text {
        "html" => Ok(Format::Html),
        "json" => Ok(Format::Json),
        "text" => Ok(Format::Text),
        _ => Err("html, json or text".to_owned()),
    })?;
    let format = format.unwrap_or_else(|| format_of(published_as));
    let template = match template {
        None => Source::BuiltIn,
        Some(path) => {
            let given = Given { key: names::TEMPLATE.flag, value: path.display().to_string() };
            let text = read(given.clone())?;
            // A mistake in it is found here, not in the log of a pod that runs.
            Template::new(text.as_str(), format).map_err(|error| given.refuse(error.to_string()))?;
            Source::Text(text)
        }
    };
    let pace = sources.find(&names::PACE, args.pace.as_deref())?;
    let pace = pace.unwrap_or(Given { key: names::PACE.flag, value: PACE.to_owned() });
    let pace = self::pace(&pace.value).map_err(|allowed| pace.refuse(allowed))?;
    let min_endpoints = args.min_endpoints.as_deref();
    let min_endpoints = sources.checked(&names::MIN_ENDPOINTS, min_endpoints, |text| {
        text.parse::<usize>().map_err(|_| "a number of endpoints".to_owned())
    })?;
    let max_shrink_percent = sources.checked(&names::MAX_SHRINK, args.max_shrink.as_deref(), |text| {
        let percent =
            text.trim_end_matches('%').parse::<u8>().ok().filter(|percent| (1..100).contains(percent));
        percent.ok_or_else(|| "1 to 99".to_owned())
    })?;
    Ok(Order {
        service,
        select: select.unwrap_or_default(),
        template,
        format,
        content_type: format.content_type().to_owned(),
        places: Vec::new(),
        pace,
        guards: Guards {
            min_endpoints: min_endpoints.unwrap_or(Guards::default().min_endpoints),
            max_shrink_percent,
        },
    })
}

/// What a page of this name is written in.
fn format_of(name: &str) -> Format {
    match Path::new(name).extension().and_then(|extension| extension.to_str()) {
        None | Some("html" | "htm" | "xhtml") => Format::Html,
        Some("json") => Format::Json,
        Some(_) => Format::Text,
    }
}

fn id(text: &str) -> Result<Id, String> {
    let parts = text
        .split_once('/')
        .filter(|(namespace, name)| !namespace.is_empty() && !name.is_empty() && !name.contains('/'));
    let (namespace, name) = parts.ok_or_else(|| "NAMESPACE/NAME".to_owned())?;
    Ok(Id { namespace: check::namespace(namespace)?, name: name.to_owned() })
}

fn pace(text: &str) -> Result<Pace, String> {
    let allowed = || "two durations, the longer one last, such as 250ms:1s".to_owned();
    let (min, max) = text.split_once(':').ok_or_else(allowed)?;
    let duration = check::duration(super::WITHIN_MINUTES);
    Pace::new(duration(min).map_err(|_| allowed())?, duration(max).map_err(|_| allowed())?)
        .map_err(|_| allowed())
}

/// What a file holds.
fn read(given: Given) -> Result<String, Error> {
    let mut text = String::new();
    let file = std::fs::File::open(&given.value);
    match file.and_then(|file| file.take(LARGEST).read_to_string(&mut text)) {
        Ok(_) => Ok(text),
        Err(error) => Err(given.refuse(format!("a file that can be read ({error})"))),
    }
}

#[cfg(test)]
mod tests;

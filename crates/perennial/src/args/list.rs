//! The flags of `perennial list`, as typed.

use clap::Args as ClapArgs;

pub(super) const LONG_ABOUT: &str = "\
Publishes the endpoints of one Service as a page, whenever they change: to a bucket, a ConfigMap or a file.

It needs no custom resource and no permissions but to read EndpointSlices (and, for a ConfigMap, to write it). It \
follows the endpoints until it is stopped; with --once it publishes the page as it is now and ends, for a CronJob.

Credentials of a bucket come from the environment alone, where no list of processes shows them: \
PERENNIAL_BUCKET_KEY and PERENNIAL_BUCKET_SECRET, or BUCKET_KEY and BUCKET_SECRET, SPACES_KEY and SPACES_SECRET, \
AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.";

pub(super) const EXAMPLES: &str = "\
Examples:
  See the page on the terminal, and publish nothing:
    perennial list --service web --dry-run

  Beside nginx in a pod: keep a file current that it serves
    perennial list --service web --file /usr/share/nginx/html/index.html

  Into a bucket that anyone can read, once, as a CronJob does:
    perennial list --once --service web --bucket pages --bucket-url https://s3.example.com --acl public-read

  Does everybody get the page as it should be now?
    perennial list --service web --verify http://web.shop.svc/

  What a Listing says, into a file here:
    perennial list --listing shop/web --file index.html

An older tool's variables are honoured: BUCKET_NAME, BUCKET_URL, BUCKET_PRIVILEGE, TEMPLATE_NAME, TEMPLATE_OUTPUT,
SERVICE_NAME. Where BUCKET_NAME is given its defaults count too: public-read, index.template, index.html.
Exit status: 0 published, or stopped by a signal; 1 where --once could not publish a page, or --verify found another
one; 2 for a mistake in what was given.";

/// The flags of `perennial list`.
#[derive(Clone, Debug, Default, ClapArgs)]
pub struct ListArgs {
    /// Kubeconfig to connect with; otherwise $KUBECONFIG, ~/.kube/config, or the pod's own account
    #[arg(long, value_name = "PATH", help_heading = "Cluster")]
    pub kubeconfig: Option<String>,

    /// Context of the kubeconfig; otherwise its current one
    #[arg(long, value_name = "NAME", help_heading = "Cluster")]
    pub context: Option<String>,

    /// Namespace of the Service; otherwise the pod's own, or that of the kubeconfig's context
    #[arg(long, value_name = "NAME", help_heading = "Cluster")]
    pub namespace: Option<String>,

    /// The Service whose endpoints are listed
    #[arg(long, value_name = "NAME", help_heading = "Page")]
    pub service: Option<String>,

    /// Follow this Listing instead: its Service, its template, its guards, but the destinations given here
    #[arg(long, value_name = "NAMESPACE/NAME", help_heading = "Page")]
    pub listing: Option<String>,

    /// Which endpoints: `ready`, `serving` (also while they terminate) or `all` [default: ready]
    #[arg(long, value_name = "WHICH", help_heading = "Page")]
    pub endpoints: Option<String>,

    /// A template of one's own, in the syntax of Jinja; otherwise a page that is made for people
    ///
    /// The file is read again when it changes; a broken new version is told, and the last good page stays.
    #[arg(long, value_name = "FILE", help_heading = "Page")]
    pub template: Option<String>,

    /// What the page is written in: `html`, `json` or `text`; otherwise by the name it is published under
    #[arg(long, value_name = "FORMAT", help_heading = "Page")]
    pub format: Option<String>,

    /// A file, replaced whole each time
    #[arg(long, value_name = "PATH", help_heading = "Destinations")]
    pub file: Option<String>,

    /// A ConfigMap of the same namespace
    #[arg(long, value_name = "NAME", help_heading = "Destinations")]
    pub config_map: Option<String>,

    /// A bucket of any server that speaks S3
    #[arg(long, value_name = "NAME", help_heading = "Destinations")]
    pub bucket: Option<String>,

    /// The bucket's server; otherwise Amazon's
    #[arg(long, value_name = "URL", help_heading = "Destinations")]
    pub bucket_url: Option<String>,

    /// The region that requests are signed for [default: us-east-1]
    #[arg(long, value_name = "NAME", help_heading = "Destinations")]
    pub bucket_region: Option<String>,

    /// Certificates (PEM) to check the bucket's server against; otherwise the system's
    #[arg(long, value_name = "FILE", help_heading = "Destinations")]
    pub bucket_ca: Option<String>,

    /// What the page is called in the bucket or the ConfigMap [default: index.html]
    #[arg(long, value_name = "NAME", help_heading = "Destinations")]
    pub key: Option<String>,

    /// The canned ACL of objects in the bucket, such as `public-read`; none is sent otherwise
    #[arg(long, value_name = "ACL", help_heading = "Destinations")]
    pub acl: Option<String>,

    /// How many former pages are kept beside the page, in the bucket and the file; none otherwise
    #[arg(long, value_name = "N", help_heading = "Destinations")]
    pub history: Option<String>,

    /// How often the page may be published, from:to [default: 250ms:1s]
    ///
    /// The first change goes out at once. While more keep coming, the first time is the quiet that is waited for and
    /// the least time between two pages, the second the longest that a change waits.
    #[arg(long, value_name = "MIN:MAX", help_heading = "Pace and guards")]
    pub pace: Option<String>,

    /// A page with fewer endpoints is not published; the last one stays [default: 1]
    #[arg(long, value_name = "N", help_heading = "Pace and guards")]
    pub min_endpoints: Option<String>,

    /// A page that lost more than this share of the last one's endpoints is not published, in percent
    #[arg(long, value_name = "PERCENT", help_heading = "Pace and guards")]
    pub max_shrink: Option<String>,

    /// Publish the page as it is now, and end
    #[arg(long, help_heading = "Operating")]
    pub once: bool,

    /// Show the page on the terminal, publish nothing, and end
    #[arg(long, help_heading = "Operating")]
    pub dry_run: bool,

    /// See whether the page at this address is the current one, or becomes it in a moment, and end
    #[arg(long, value_name = "URL", help_heading = "Operating")]
    pub verify: Option<String>,

    /// Where probes, metrics and the page itself are served, or `off` [default: off]
    #[arg(long, value_name = "ADDRESS", help_heading = "Operating")]
    pub admin_address: Option<String>,

    /// `text` for a person or `json` for a machine; otherwise text on a terminal, json elsewhere
    #[arg(long, value_name = "FORMAT", help_heading = "Operating")]
    pub log_format: Option<String>,

    /// `error`, `warn`, `info`, `debug`, `trace`, or filter directives [default: info]
    #[arg(long, value_name = "LEVEL", help_heading = "Operating")]
    pub log_level: Option<String>,
}

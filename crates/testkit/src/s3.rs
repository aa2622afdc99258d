//! Real S3 servers: versitygw over a folder, and moto in memory.
//!
//! versitygw checks signatures and honours conditions, bucket policies and versions, but ignores the ACL of an
//! object. moto honours that one, and is no guard of anything else: it takes any signature and none.
//!
//! | file | what |
//! | --- | --- |
//! | `builder` | options of versitygw, and its start |
//! | `faults` | stop, start, pause, kill, and a disk that is full |
//! | `ask` | requests as anybody makes them, signed or not |
//! | `moto` | the other server |

use std::path::{Path, PathBuf};

use http::Method;

use crate::{pki::Authority, server::Server, workdir::Workdir};

mod ask;
mod builder;
mod faults;
mod moto;

pub use ask::{Credentials, S3Reply};
pub use builder::S3Builder;
pub use moto::MotoServer;

/// A running versitygw. Stopped and removed on drop.
pub struct S3Server {
    // Dropped in this order: the process first, then the folder that it writes to.
    server: Server,
    credentials: Credentials,
    authority: Authority,
    /// Where it keeps its buckets, as it sees it itself.
    data: PathBuf,
    /// Whether that is a small disk of its own.
    small: bool,
    workdir: Workdir,
}

impl S3Server {
    /// Starts one as it comes.
    pub async fn start() -> anyhow::Result<Self> {
        Self::builder().start().await
    }

    /// Starts one with options.
    #[must_use]
    pub fn builder() -> S3Builder {
        S3Builder::default()
    }

    /// Its address, `http://127.0.0.1:PORT`, or with `https` if it was asked for.
    pub fn url(&self) -> &str {
        self.server.endpoint().url()
    }

    /// Its address for those who do not share its loopback: the same port, at an address that [`S3Builder::also_at`] named.
    pub fn url_at(&self, address: &str) -> String {
        self.url().replace("127.0.0.1", address)
    }

    /// Who may do everything here.
    pub fn credentials(&self) -> &Credentials {
        &self.credentials
    }

    /// The authority that signed its certificate, in PEM.
    pub fn authority(&self) -> anyhow::Result<String> {
        Ok(std::fs::read_to_string(self.authority.certificate())?)
    }

    /// Where its log is. It is kept when the thread panics that drops the server.
    pub fn logs(&self) -> PathBuf {
        self.workdir.logs()
    }

    /// A folder that goes away with the server.
    pub fn folder(&self) -> &Path {
        self.workdir.path()
    }

    /// Makes a bucket that is closed to strangers.
    pub async fn create_bucket(&self, bucket: &str) -> anyhow::Result<()> {
        self.ask(Method::PUT, &format!("/{bucket}"), "").await?.good().map(drop)
    }

    /// Lets anybody read what is in a bucket, by its policy.
    pub async fn publish_bucket(&self, bucket: &str) -> anyhow::Result<()> {
        let policy = serde_json::json!({
            "Version": "2012-10-17",
            "Statement": [{
                "Effect": "Allow",
                "Principal": "*",
                "Action": "s3:GetObject",
                "Resource": format!("arn:aws:s3:::{bucket}/*"),
            }],
        });
        self.ask(Method::PUT, &format!("/{bucket}?policy="), policy.to_string()).await?.good().map(drop)
    }

    /// One request in the name of whoever may do everything, e.g. for `/bucket/key`.
    pub async fn ask(&self, method: Method, path: &str, body: impl Into<Vec<u8>>) -> anyhow::Result<S3Reply> {
        ask::ask(self.server.endpoint(), Some(&self.credentials), method, path, body.into()).await
    }

    /// A page as a stranger gets it.
    pub async fn get_as_stranger(&self, path: &str) -> anyhow::Result<S3Reply> {
        ask::ask(self.server.endpoint(), None, Method::GET, path, Vec::new()).await
    }
}

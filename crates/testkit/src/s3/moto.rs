//! moto's server: the one that honours the ACL of an object.

use std::time::Duration;

use http::Method;

use super::ask::{self, Credentials, S3Reply};
use crate::{
    assets,
    endpoint::{Endpoint, anonymous},
    port::Port,
    process::Launch,
    server::Server,
    workdir::Workdir,
};

/// Python reads a great many files first.
const READY: Duration = Duration::from_mins(2);

/// A running moto. What it has is in memory, and gone when it is dropped.
pub struct MotoServer {
    server: Server,
    credentials: Credentials,
    _workdir: Workdir,
}

impl MotoServer {
    /// Starts one, and returns when it is ready. Installs it first where it is not installed yet.
    pub async fn start() -> anyhow::Result<Self> {
        let program = assets::moto()?;
        let workdir = Workdir::create("perennial-moto-")?;
        let port = Port::claim()?;
        let endpoint = Endpoint::http(&port);
        let launch = Launch::new("moto", program, workdir.logs().join("moto.log")).args([
            "--host",
            "127.0.0.1",
            "--port",
            &port.number().to_string(),
        ]);
        let server = Server::new(launch, port, endpoint, anonymous()).health("/moto-api/data.json");
        server.start(READY).await?;
        Ok(Self { server, credentials: Credentials::make_up(), _workdir: workdir })
    }

    /// Its address, `http://127.0.0.1:PORT`.
    pub fn url(&self) -> &str {
        self.server.endpoint().url()
    }

    /// What it takes; it would take anything.
    pub fn credentials(&self) -> &Credentials {
        &self.credentials
    }

    /// Makes a bucket.
    pub async fn create_bucket(&self, bucket: &str) -> anyhow::Result<()> {
        self.ask(Method::PUT, &format!("/{bucket}")).await?.good().map(drop)
    }

    /// One signed request.
    pub async fn ask(&self, method: Method, path: &str) -> anyhow::Result<S3Reply> {
        ask::ask(self.server.endpoint(), Some(&self.credentials), method, path, Vec::new()).await
    }

    /// A page as a stranger gets it.
    pub async fn get_as_stranger(&self, path: &str) -> anyhow::Result<S3Reply> {
        ask::ask(self.server.endpoint(), None, Method::GET, path, Vec::new()).await
    }
}

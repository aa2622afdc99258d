//! An HTTP address and whom to trust there. One client serves for Kubernetes, for etcd's gateway and for the
//! keeper's own pages: kube's, which is there anyway.

use std::time::Duration;

use anyhow::Context;
use http::{Request, Uri};
use kube::{Client, Config, config::AuthInfo};
use tokio::time::timeout;

use crate::{
    pki::{Authority, Credential},
    port::Port,
};

/// Whatever is asked of a server on the loopback address by this crate takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Clone, Debug)]
pub(crate) struct Endpoint {
    url: String,
    root: Option<Vec<u8>>,
}

impl Endpoint {
    pub(crate) fn http(port: &Port) -> Self {
        Self { url: format!("http://{}", port.address()), root: None }
    }

    pub(crate) fn https(port: u16, authority: &Authority) -> Self {
        Self { url: format!("https://127.0.0.1:{port}"), root: Some(authority.root()) }
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// A client as a program would have it. It lives on the runtime that it is made on, so it is not kept.
    pub(crate) fn client(&self, identity: &AuthInfo) -> anyhow::Result<Client> {
        Ok(Client::try_from(self.config(identity)?)?)
    }

    /// One request, made once: the text of a good answer, an error for any other.
    pub(crate) async fn ask(&self, identity: &AuthInfo, request: Request<Vec<u8>>) -> anyhow::Result<String> {
        let mut config = self.config(identity)?;
        config.default_retry = false;
        let client = Client::try_from(config)?;
        let what = request.uri().path().to_owned();
        timeout(PATIENCE, client.request_text(request))
            .await
            .with_context(|| format!("{}{what} does not answer", self.url))?
            .with_context(|| format!("asking {}{what}", self.url))
    }

    /// [`Endpoint::ask`] for a page.
    pub(crate) async fn get(&self, identity: &AuthInfo, path: &str) -> anyhow::Result<String> {
        self.ask(identity, Request::get(path).body(Vec::new())?).await
    }

    fn config(&self, identity: &AuthInfo) -> anyhow::Result<Config> {
        let mut config = Config::new(self.url.parse::<Uri>()?);
        config.root_cert = self.root.clone().map(|root| vec![root]);
        config.auth_info = identity.clone();
        Ok(config)
    }
}

/// Nobody in particular.
pub(crate) fn anonymous() -> AuthInfo {
    AuthInfo::default()
}

/// The holder of a certificate.
pub(crate) fn certified(credential: &Credential) -> AuthInfo {
    AuthInfo {
        client_certificate: Some(credential.certificate.display().to_string()),
        client_key: Some(credential.key.display().to_string()),
        ..AuthInfo::default()
    }
}

/// The bearer of a token.
pub(crate) fn bearer(token: String) -> AuthInfo {
    AuthInfo { token: Some(token.into()), ..AuthInfo::default() }
}

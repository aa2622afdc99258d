//! The wire to an S3 server: one request, one answer, both bounded.
//!
//! It follows no redirects, asks no environment for a proxy, and trusts either the system's authorities or those that are
//! given.

use std::error::Error as StdError;
use std::io;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{CertificateError, RootCertStore};

use super::super::error::Error;
use super::settings::SettingsError;
use crate::https::{self, HttpsClient};

/// A client for one server.
#[derive(Clone)]
pub(super) struct Http {
    client: HttpsClient,
    deadline: Duration,
}

/// An answer, good or bad.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    /// Its body, or as much as was wanted of it.
    pub(super) body: Bytes,
}

impl Http {
    /// Trusts these authorities, in PEM, or else the system's.
    pub(super) fn new(authorities: Option<&str>, deadline: Duration) -> Result<Self, SettingsError> {
        let roots = match authorities {
            Some(pem) => given(pem)?,
            None => https::authorities_of_the_system(),
        };
        let client = https::client(roots).map_err(|_| SettingsError::Authorities("TLS cannot be set up"))?;
        Ok(Self { client, deadline })
    }

    /// Asks once, and reads no more than `limit` bytes of the answer; more is an error, unless the rest is not wanted.
    pub(super) async fn send(&self, request: Request<Full<Bytes>>, limit: usize) -> Result<Answer, Error> {
        tokio::time::timeout(self.deadline, self.exchange(request, limit))
            .await
            .unwrap_or(Err(Error::Timeout))
    }

    async fn exchange(&self, request: Request<Full<Bytes>>, limit: usize) -> Result<Answer, Error> {
        let (parts, body) = self.client.request(request).await.map_err(|error| sort(&error))?.into_parts();
        let body = match Limited::new(body, limit).collect().await {
            Ok(body) => body.to_bytes(),
            // A body that is not wanted, or of somebody who is no S3 server: it is dropped with its connection.
            Err(error) if error.is::<LengthLimitError>() => Bytes::new(),
            Err(_) => return Err(Error::Lost),
        };
        Ok(Answer { status: parts.status.as_u16(), headers: parts.headers, body })
    }
}

fn given(pem: &str) -> Result<RootCertStore, SettingsError> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
        let certificate = certificate.map_err(|_| SettingsError::Authorities("it is not PEM"))?;
        roots.add(certificate).map_err(|_| SettingsError::Authorities("one of them is broken"))?;
    }
    if roots.is_empty() {
        return Err(SettingsError::Authorities("there is none in it"));
    }
    Ok(roots)
}

/// What a failure to get any answer means. Texts are our own: those of others may name what is in a certificate.
fn sort(error: &hyper_util::client::legacy::Error) -> Error {
    if let Some(tls) = find::<rustls::Error>(error) {
        return Error::Tls(explain(tls));
    }
    if find::<hyper::Error>(error).is_some_and(hyper::Error::is_parse) {
        return Error::NotS3(None);
    }
    if !error.is_connect() {
        return Error::Lost;
    }
    Error::Unreachable(match find::<io::Error>(error).map(io::Error::kind) {
        Some(io::ErrorKind::ConnectionRefused) => "nobody listens there",
        Some(io::ErrorKind::TimedOut) => "nobody answers there",
        Some(io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable) => "there is no way to it",
        _ if says_dns(error) => "its name is not known",
        _ => "the connection fails",
    })
}

fn explain(error: &rustls::Error) -> &'static str {
    match error {
        rustls::Error::InvalidCertificate(reason) => match reason {
            CertificateError::UnknownIssuer => "nobody we trust signed the server's certificate",
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                "the server's certificate is over"
            }
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                "the server's certificate is not valid yet"
            }
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                "the server's certificate is for another name"
            }
            _ => "the server's certificate cannot be used",
        },
        rustls::Error::InvalidMessage(_) => "the server does not speak TLS",
        _ => "the handshake fails",
    }
}

fn says_dns(error: &(dyn StdError + 'static)) -> bool {
    causes(error).any(|cause| cause.to_string().contains("dns error"))
}

/// The first cause of this type.
fn find<'a, T: StdError + 'static>(error: &'a (dyn StdError + 'static)) -> Option<&'a T> {
    causes(error).find_map(|cause| cause.downcast_ref())
}

/// An error and its causes. An [`io::Error`] keeps its own in a drawer, and names only what is behind that.
fn causes<'a>(error: &'a (dyn StdError + 'static)) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    std::iter::successors(Some(error), |error: &&'a (dyn StdError + 'static)| {
        match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            Some(inner) => Some(inner),
            None => (*error).source(),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authorities_that_are_none_are_told() {
        let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        for (pem, why) in [
            ("", "there is none in it"),
            ("no certificate", "there is none in it"),
            (broken, "one of them is broken"),
            ("-----BEGIN CERTIFICATE-----\n!!!!\n-----END CERTIFICATE-----\n", "it is not PEM"),
        ] {
            let error = Http::new(Some(pem), Duration::from_secs(1)).err().unwrap();
            assert_eq!(error, SettingsError::Authorities(why), "{pem:?}");
        }
    }
}

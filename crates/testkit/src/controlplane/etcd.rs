//! How etcd is run: one member, TLS and client certificates, no waiting for the disk.

use std::path::Path;

use crate::{pki::Credential, port::Port, process::Launch};

pub(super) struct Etcd<'a> {
    pub(super) program: &'a Path,
    pub(super) log: &'a Path,
    pub(super) data: &'a Path,
    pub(super) port: &'a Port,
    pub(super) authority: &'a Path,
    pub(super) server: &'a Credential,
}

impl Etcd<'_> {
    pub(super) fn launch(&self) -> Launch {
        let url = format!("https://{}", self.port.address());
        Launch::new("etcd", self.program, self.log)
            .arg(format!("--data-dir={}", self.data.display()))
            .arg(format!("--listen-client-urls={url}"))
            .arg(format!("--advertise-client-urls={url}"))
            // A single member never talks to a peer.
            .arg("--listen-peer-urls=http://127.0.0.1:0")
            .arg(format!("--cert-file={}", self.server.certificate.display()))
            .arg(format!("--key-file={}", self.server.key.display()))
            .arg(format!("--trusted-ca-file={}", self.authority.display()))
            .arg("--client-cert-auth=true")
            // What is lost when the machine dies was a test's.
            .arg("--unsafe-no-fsync=true")
            .arg("--quota-backend-bytes=8589934592")
            .arg("--log-level=warn")
    }
}

//! How etcd is run: TLS and client certificates, no waiting for the disk, and several members in the clear on loopback.

use std::path::Path;

use crate::{pki::Credential, port::Port, process::Launch};

pub(super) struct Flags<'a> {
    /// Its own among the members.
    pub(super) name: &'a str,
    pub(super) program: &'a Path,
    pub(super) log: &'a Path,
    pub(super) data: &'a Path,
    pub(super) port: &'a Port,
    pub(super) authority: &'a Path,
    pub(super) server: &'a Credential,
    pub(super) peers: Option<Peers<'a>>,
}

/// How a member of several finds the others, and they find it.
pub(super) struct Peers<'a> {
    /// Where it listens to them.
    pub(super) port: &'a Port,
    /// Where they find it: at the relay before that.
    pub(super) advertised: u16,
    /// All members, as `--initial-cluster` has them.
    pub(super) all: &'a str,
}

impl Flags<'_> {
    pub(super) fn launch(&self) -> Launch {
        let url = format!("https://{}", self.port.address());
        let launch = Launch::new(self.name, self.program, self.log)
            .arg(format!("--name={}", self.name))
            .arg(format!("--data-dir={}", self.data.display()))
            .arg(format!("--listen-client-urls={url}"))
            .arg(format!("--advertise-client-urls={url}"))
            .arg(format!("--cert-file={}", self.server.certificate.display()))
            .arg(format!("--key-file={}", self.server.key.display()))
            .arg(format!("--trusted-ca-file={}", self.authority.display()))
            .arg("--client-cert-auth=true")
            // What is lost when the machine dies was a test's.
            .arg("--unsafe-no-fsync=true")
            .arg("--quota-backend-bytes=8589934592")
            .arg("--log-level=warn");
        // A single member never talks to a peer.
        let Some(peers) = &self.peers else { return launch.arg("--listen-peer-urls=http://127.0.0.1:0") };
        launch
            .arg(format!("--listen-peer-urls=http://{}", peers.port.address()))
            .arg(format!("--initial-advertise-peer-urls=http://127.0.0.1:{}", peers.advertised))
            .arg(format!("--initial-cluster={}", peers.all))
    }
}

//! A certificate authority for one control plane: who trusts it trusts nobody else's.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::atomic::{AtomicUsize, Ordering},
};

use anyhow::Context;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose,
};

/// A certificate and its key, as files.
#[derive(Clone, Debug)]
pub(crate) struct Credential {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
}

/// Signs certificates and writes them into a folder.
pub(crate) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    folder: PathBuf,
    issued: AtomicUsize,
}

impl Authority {
    pub(crate) fn create(folder: PathBuf) -> anyhow::Result<Self> {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "perennial test authority");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;
        let authority = Self { issuer, folder, issued: AtomicUsize::new(0) };
        write(&authority.certificate(), &authority.issuer.pem())?;
        Ok(authority)
    }

    /// The file with the authority's own certificate.
    pub(crate) fn certificate(&self) -> PathBuf {
        self.folder.join("ca.crt")
    }

    /// The authority's own certificate, as clients take it.
    pub(crate) fn root(&self) -> Vec<u8> {
        self.issuer.der().to_vec()
    }

    /// Writes the authority's own key beside its certificate, for who signs in its name.
    pub(crate) fn hand_out_key(&self) -> anyhow::Result<Credential> {
        let credential = Credential { certificate: self.certificate(), key: self.folder.join("ca.key") };
        write(&credential.key, &self.issuer.key().serialize_pem())?;
        Ok(credential)
    }

    /// For a server on the loopback address.
    pub(crate) fn server(&self, name: &str) -> anyhow::Result<Credential> {
        // etcd's HTTP gateway is a client of etcd with the server's certificate.
        self.host(name, None, &["127.0.0.1", "localhost"])
    }

    /// For one who is a server under these names and addresses, and a client too.
    pub(crate) fn host(&self, user: &str, group: Option<&str>, names: &[&str]) -> anyhow::Result<Credential> {
        let params = CertificateParams::new(names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>())?;
        let usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        self.issue(user, group, usages, params)
    }

    /// For a client: Kubernetes takes the common name for the user and the organization for the group.
    pub(crate) fn client(&self, user: &str, group: Option<&str>) -> anyhow::Result<Credential> {
        self.issue(user, group, vec![ExtendedKeyUsagePurpose::ClientAuth], CertificateParams::default())
    }

    /// A key pair alone, as (public, private) files: what service account tokens are signed with.
    pub(crate) fn signing_key(&self, name: &str) -> anyhow::Result<(PathBuf, PathBuf)> {
        let pair = KeyPair::generate()?;
        let public = self.folder.join(format!("{name}.pub"));
        let private = self.folder.join(format!("{name}.key"));
        write(&public, &pair.public_key_pem())?;
        write(&private, &pair.serialize_pem())?;
        Ok((public, private))
    }

    fn issue(
        &self,
        name: &str,
        group: Option<&str>,
        usages: Vec<ExtendedKeyUsagePurpose>,
        mut params: CertificateParams,
    ) -> anyhow::Result<Credential> {
        params.distinguished_name.remove(DnType::CommonName);
        params.distinguished_name.push(DnType::CommonName, name);
        if let Some(group) = group {
            params.distinguished_name.push(DnType::OrganizationName, group);
        }
        params.extended_key_usages = usages;
        params.use_authority_key_identifier_extension = true;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?;
        // Two callers may ask for the same name at once.
        let number = self.issued.fetch_add(1, Ordering::Relaxed);
        let credential = Credential {
            certificate: self.folder.join(format!("{name}-{number}.crt")),
            key: self.folder.join(format!("{name}-{number}.key")),
        };
        write(&credential.certificate, &certificate.pem())?;
        write(&credential.key, &key.serialize_pem())?;
        Ok(credential)
    }
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    fs::write(path, text).with_context(|| format!("writing {}", path.display()))
}

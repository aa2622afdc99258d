//! Certificates: whether those that are held are good, and better ones.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose, date_time_ymd,
};
use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier as _;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::sign::CertifiedKey;
use serde_json::{Value, json};

use super::Lives;

/// A clock may be behind ours by this much, and still takes the first certificate for valid.
const SKEW: Duration = Duration::from_mins(5);

/// The keys of the Secret. Those of the pair that is served now have the names that every tool knows.
const AUTHORITIES: &str = "ca.crt";
const CURRENT: (&str, &str) = ("tls.crt", "tls.key");
const NEXT: (&str, &str) = ("next.crt", "next.key");

/// A certificate and its key, as PEM.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Pair {
    pub(super) certificate: String,
    key: String,
}

impl Pair {
    /// What a server needs.
    pub(super) fn certified(&self) -> Result<CertifiedKey, String> {
        let chain = CertificateDer::pem_slice_iter(self.certificate.as_bytes());
        let chain: Vec<_> = chain.collect::<Result<_, _>>().map_err(|error| format!("tls.crt: {error}"))?;
        let key = PrivateKeyDer::from_pem_slice(self.key.as_bytes());
        let key = key.map_err(|error| format!("tls.key: {error}"))?;
        CertifiedKey::from_der(chain, key, &ring::default_provider()).map_err(|error| error.to_string())
    }

    /// Whether somebody who trusts these authorities takes it for each of the hosts, at this time: the key is its own, too.
    fn is_good(&self, authorities: &str, hosts: &[String], at: SystemTime) -> bool {
        let judged = || {
            let certified = self.certified().ok()?;
            let (first, rest) = certified.cert.split_first()?;
            let mut roots = RootCertStore::empty();
            roots.add_parsable_certificates(pem_list(authorities));
            let provider = Arc::new(ring::default_provider());
            let verifier =
                WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build().ok()?;
            let at = UnixTime::since_unix_epoch(at.duration_since(SystemTime::UNIX_EPOCH).ok()?);
            let takes = |host: &String| {
                let name = ServerName::try_from(host.as_str()).ok()?;
                verifier.verify_server_cert(first, rest, &name, &[], at).ok()
            };
            hosts.iter().all(|host| takes(host).is_some()).then_some(())
        };
        judged().is_some()
    }
}

/// What the Secret holds.
#[derive(Clone, Default, PartialEq, Eq)]
pub(super) struct Held {
    authorities: String,
    current: Option<Pair>,
    next: Option<Pair>,
}

impl Held {
    /// Reads it. What is missing or cannot be read is not there.
    pub(super) fn read(data: Option<&BTreeMap<String, String>>) -> Self {
        let text = |key: &str| {
            let bytes = BASE64_STANDARD.decode(data?.get(key)?).ok()?;
            String::from_utf8(bytes).ok()
        };
        let pair = |(certificate, key)| Some(Pair { certificate: text(certificate)?, key: text(key)? });
        Self { authorities: text(AUTHORITIES).unwrap_or_default(), current: pair(CURRENT), next: pair(NEXT) }
    }

    /// As a Secret holds it; what is not there is to be removed.
    pub(super) fn data(&self) -> Value {
        let text = |text: &str| BASE64_STANDARD.encode(text);
        let mut data = json!({ AUTHORITIES: text(&self.authorities) });
        for ((certificate, key), pair) in [(CURRENT, &self.current), (NEXT, &self.next)] {
            data[certificate] = json!(pair.as_ref().map(|pair| text(&pair.certificate)));
            data[key] = json!(pair.as_ref().map(|pair| text(&pair.key)));
        }
        data
    }

    /// Whom to trust.
    pub(super) fn authorities(&self) -> &str {
        &self.authorities
    }

    /// What to serve with.
    pub(super) fn current(&self) -> Option<&Pair> {
        self.current.as_ref()
    }

    /// Whether what there is to serve with is taken for each of the hosts now.
    pub(super) fn is_good(&self, hosts: &[String], now: SystemTime) -> bool {
        self.current.as_ref().is_some_and(|pair| pair.is_good(&self.authorities, hosts, now))
    }

    /// What should be held instead, if anything.
    pub(super) fn better(
        &self,
        hosts: &[String],
        now: SystemTime,
        lives: &Lives,
    ) -> Result<Option<Self>, rcgen::Error> {
        let good = |pair: &Option<Pair>, at| {
            pair.as_ref().is_some_and(|pair| pair.is_good(&self.authorities, hosts, at))
        };
        if !good(&self.current, now) {
            // Nothing can be served now: there is nothing to wait for.
            let (authority, pair) = make(hosts, now - SKEW, now + lives.whole)?;
            return Ok(Some(Self { authorities: authority, current: Some(pair), next: None }));
        }
        if good(&self.current, now + lives.renew) {
            return Ok(None);
        }
        let later = now + lives.renew;
        if !(good(&self.next, now) && good(&self.next, later)) {
            let (authority, pair) = make(hosts, now, now + lives.whole)?;
            let authorities = self.authorities_of_current(hosts, now) + &authority;
            return Ok(Some(Self { authorities, current: self.current.clone(), next: Some(pair) }));
        }
        // It was good that long ago, so it was there.
        let known = good(&self.next, now - lives.known);
        Ok(known.then(|| Self {
            authorities: self.authorities.clone(),
            current: self.next.clone(),
            next: None,
        }))
    }

    /// The authority of what is served now, without those before it.
    fn authorities_of_current(&self, hosts: &[String], now: SystemTime) -> String {
        let Some(current) = &self.current else { return String::new() };
        let ends = self.authorities.match_indices(END).map(|(at, _)| at + END.len());
        let mut from = 0;
        for end in ends {
            let one = self.authorities[from..end].trim();
            from = end;
            if current.is_good(one, hosts, now) {
                return format!("{one}\n");
            }
        }
        self.authorities.clone()
    }
}

const END: &str = "-----END CERTIFICATE-----";

fn pem_list(text: &str) -> Vec<CertificateDer<'static>> {
    CertificateDer::pem_slice_iter(text.as_bytes()).filter_map(Result::ok).collect()
}

/// A certificate for these hosts, good for this time, and its authority.
fn make(hosts: &[String], from: SystemTime, to: SystemTime) -> Result<(String, Pair), rcgen::Error> {
    let lasting = |params: &mut CertificateParams| {
        let since = |time: SystemTime| {
            date_time_ymd(1970, 1, 1) + time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
        };
        params.not_before = since(from);
        params.not_after = since(to);
    };
    let mut authority = CertificateParams::default();
    lasting(&mut authority);
    authority.distinguished_name.push(DnType::CommonName, "perennial authority");
    authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate()?)?;
    let mut server = CertificateParams::new(hosts)?;
    lasting(&mut server);
    server.distinguished_name.push(DnType::CommonName, "perennial");
    server.use_authority_key_identifier_extension = true;
    server.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let key = KeyPair::generate()?;
    let certificate = server.signed_by(&key, &authority)?;
    Ok((authority.pem(), Pair { certificate: certificate.pem(), key: key.serialize_pem() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIVES: Lives = Lives {
        whole: Duration::from_hours(90),
        renew: Duration::from_hours(30),
        known: Duration::from_hours(1),
        look: Duration::from_secs(1),
    };

    fn hosts() -> Vec<String> {
        vec!["webhook.perennial.svc".to_owned(), "127.0.0.1".to_owned()]
    }

    fn at(hours: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_hours(24 * 365 * 50 + hours)
    }

    fn better(held: &Held, hours: u64) -> Option<Held> {
        held.better(&hosts(), at(hours), &LIVES).unwrap()
    }

    fn first() -> Held {
        better(&Held::default(), 0).unwrap()
    }

    /// Whether what is served by one who holds this is taken by those who were told of these authorities.
    fn is_trusted(held: &Held, told: &Held, hours: u64) -> bool {
        held.current.as_ref().unwrap().is_good(&told.authorities, &hosts(), at(hours))
    }

    #[test]
    fn the_first_certificate_is_good_for_every_host_and_no_other() {
        let held = first();
        let current = held.current().unwrap();
        for hours in [0, 1, 89] {
            assert!(current.is_good(held.authorities(), &hosts(), at(hours)), "{hours}");
        }
        assert!(!current.is_good(held.authorities(), &hosts(), at(91)));
        assert!(!current.is_good(held.authorities(), &["other.svc".to_owned()], at(1)));
        assert!(!current.is_good("", &hosts(), at(1)));
        assert!(better(&held, 1).is_none());
    }

    #[test]
    fn a_secret_gives_back_what_was_put_into_it() {
        let held = better(&first(), 61).unwrap();
        let data: BTreeMap<String, String> = serde_json::from_value(held.data()).unwrap();
        assert!(Held::read(Some(&data)) == held);
        assert!(Held::read(None) == Held::default());
        assert_eq!(first().data()["next.crt"], Value::Null);
    }

    #[test]
    fn it_is_renewed_without_a_moment_in_which_what_is_served_is_not_trusted() {
        let mut held = first();
        let mut renewed = 0;
        for hours in 1..1000 {
            let Some(better) = better(&held, hours) else { continue };
            // One replica has written: others serve what they held, or this, and the API server was told either.
            for (served, told) in [(&held, &better), (&better, &held), (&better, &better)] {
                assert!(is_trusted(served, told, hours), "{hours}");
            }
            renewed += usize::from(better.current != held.current);
            assert!(pem_list(&better.authorities).len() <= 2);
            held = better;
        }
        assert!(renewed > 10, "{renewed}");
    }

    #[test]
    fn the_next_one_is_served_only_after_its_authority_was_known_for_a_while() {
        let held = first();
        let with_next = better(&held, 61).unwrap();
        assert!(with_next.current == held.current && with_next.next.is_some());
        assert!(better(&with_next, 61).is_none());
        let served = better(&with_next, 62).unwrap();
        assert!(served.current == with_next.next && served.next.is_none());
        assert!(served.authorities == with_next.authorities);
    }

    #[test]
    fn what_cannot_be_used_is_made_anew() {
        let good = first();
        let other = better(&Held::default(), 0).unwrap();
        let pair = good.current.clone().unwrap();
        let broken = [
            Held { authorities: String::new(), ..good.clone() },
            Held { authorities: "nonsense".to_owned(), ..good.clone() },
            Held { authorities: other.authorities.clone(), ..good.clone() },
            Held { current: None, ..good.clone() },
            Held { current: Some(Pair { key: other.current.unwrap().key, ..pair.clone() }), ..good.clone() },
            Held { current: Some(Pair { key: "nonsense".to_owned(), ..pair.clone() }), ..good.clone() },
            Held { current: Some(Pair { certificate: String::new(), ..pair }), ..good.clone() },
        ];
        for held in broken {
            let better = better(&held, 1).unwrap();
            assert!(is_trusted(&better, &better, 1));
        }
        let named = good.better(&["other.svc".to_owned()], at(1), &LIVES).unwrap();
        assert!(named.is_some(), "the names changed");
        assert!(better(&good, 200).is_some(), "it expired while nobody was there");
    }

    #[test]
    fn a_next_one_that_cannot_be_used_is_made_anew_and_what_is_served_stays() {
        let held = better(&first(), 61).unwrap();
        let broken =
            Held { next: Some(Pair { key: String::new(), ..held.next.clone().unwrap() }), ..held.clone() };
        let better = better(&broken, 62).unwrap();
        assert!(better.current == held.current && better.next != broken.next);
        assert!(is_trusted(&better, &better, 62));
    }
}

//! Seals: whoever may write ConfigMaps in the namespace, but does not have the key, makes no record that is believed.
//!
//! A seal is an HMAC-SHA256 over the node's name and the record's text. It says that a holder of the key wrote this of this
//! node at some time, not that it is the newest that was written.

use std::fmt;

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use crate::kept::Pairs;

/// The annotation of a record's ConfigMap that is its seal.
pub const SEAL: &str = "perennial.dev/seal";
/// What a key has at least: as many bytes as the hash.
const SHORTEST: usize = 32;
/// What a key has at most.
const LONGEST: usize = 1024;
/// How many keys there may be: one that seals, and those before it.
const MOST: usize = 8;
/// So that a seal of something else, by the same key, is none of these.
const CONTEXT: &[u8] = b"perennial record 1\0";

/// Why keys cannot be used. No key is quoted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    /// There is none.
    #[error("there is no key in it: one a line, such as `openssl rand -hex 32` makes them")]
    NoKey,
    /// There are too many.
    #[error("there are more than {MOST} keys in it")]
    TooMany,
    /// One is too short, or too long.
    #[error(
        "the key in line {0} has not {SHORTEST} to {LONGEST} bytes: take one such as `openssl rand -hex 32` makes it"
    )]
    Length(usize),
}

/// The keys of this installation: the first seals, any of them is believed.
#[derive(Clone)]
pub struct Seals {
    keys: Vec<Hmac<Sha256>>,
    /// Records without a seal are believed, and sealed: for the time in which seals are brought in.
    unsealed: bool,
}

impl fmt::Debug for Seals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Seals").field("keys", &self.keys.len()).field("unsealed", &self.unsealed).finish()
    }
}

impl Seals {
    /// Reads keys, one a line. Empty lines and those that begin with `#` are passed over.
    pub fn parse(text: &str, unsealed: bool) -> Result<Self, SealError> {
        let mut keys = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if !(SHORTEST..=LONGEST).contains(&line.len()) {
                return Err(SealError::Length(number + 1));
            }
            keys.push(Hmac::new_from_slice(line.as_bytes()).map_err(|_| SealError::Length(number + 1))?);
        }
        match keys.len() {
            0 => Err(SealError::NoKey),
            number if number > MOST => Err(SealError::TooMany),
            _ => Ok(Self { keys, unsealed }),
        }
    }

    /// The seal of a record's text.
    #[must_use]
    pub fn seal(&self, node: &str, text: &str) -> String {
        let first = self.keys.iter().take(1);
        let bytes = first.flat_map(|key| over(key, node, text).finalize().into_bytes());
        let digit = |half: u8| char::from_digit(u32::from(half), 16).unwrap_or_default();
        bytes.flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
    }

    /// Whether a record's text is believed, by the seal that its annotations bear.
    pub fn check(&self, node: &str, text: &str, annotations: Option<&Pairs>) -> Result<(), &'static str> {
        let Some(seal) = annotations.and_then(|annotations| annotations.get(SEAL)) else {
            return if self.unsealed { Ok(()) } else { Err("it bears no seal") };
        };
        let bytes = bytes(seal).ok_or("its seal is none")?;
        let believed = self.keys.iter().any(|key| over(key, node, text).verify_slice(&bytes).is_ok());
        if believed { Ok(()) } else { Err("its seal is broken: somebody without the key wrote it") }
    }
}

fn over(key: &Hmac<Sha256>, node: &str, text: &str) -> Hmac<Sha256> {
    let mut mac = key.clone();
    for part in [CONTEXT, node.as_bytes(), b"\0", text.as_bytes()] {
        mac.update(part);
    }
    mac
}

fn bytes(hex: &str) -> Option<Vec<u8>> {
    if hex.len() != 64 || !hex.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "0123456789abcdef0123456789abcdef";
    const OTHER: &str = "an-other-key-an-other-key-an-other-key";

    fn seals(text: &str) -> Seals {
        Seals::parse(text, false).unwrap()
    }

    fn bearing(seal: &str) -> Pairs {
        Pairs::from([(SEAL.to_owned(), seal.to_owned())])
    }

    #[test]
    fn what_was_sealed_is_believed_of_this_node_and_as_it_was() {
        let seals = seals(KEY);
        let seal = bearing(&seals.seal("a", "text"));
        assert_eq!(seals.check("a", "text", Some(&seal)), Ok(()));
        for (node, text) in [("b", "text"), ("a", "text "), ("a", ""), ("a\0text", "")] {
            assert!(seals.check(node, text, Some(&seal)).is_err(), "{node:?} {text:?}");
        }
        assert!(self::seals(OTHER).check("a", "text", Some(&seal)).is_err());
    }

    #[test]
    fn the_first_key_seals_and_any_is_believed() {
        let (old, new) = (seals(KEY), seals(&format!("# made today\n{OTHER}\n\n  {KEY}\n")));
        assert_eq!(new.check("a", "text", Some(&bearing(&old.seal("a", "text")))), Ok(()));
        assert!(old.check("a", "text", Some(&bearing(&new.seal("a", "text")))).is_err());
        assert_eq!(new.seal("a", "text"), seals(OTHER).seal("a", "text"));
    }

    #[test]
    fn a_record_without_a_seal_is_believed_only_while_seals_are_brought_in() {
        assert!(seals(KEY).check("a", "text", None).is_err());
        let brought_in = Seals::parse(KEY, true).unwrap();
        assert_eq!(brought_in.check("a", "text", None), Ok(()));
        for broken in ["", "00", "zz", &"0".repeat(64), &"é".repeat(32), &"g".repeat(64)] {
            assert!(brought_in.check("a", "text", Some(&bearing(broken))).is_err(), "{broken:?}");
        }
    }

    #[test]
    fn keys_that_are_none_are_refused_and_not_quoted() {
        let many = format!("{KEY}\n").repeat(9);
        let long = "x".repeat(1025);
        for (text, expected) in [
            ("", SealError::NoKey),
            ("# nothing\n\n", SealError::NoKey),
            ("short", SealError::Length(1)),
            (&long, SealError::Length(1)),
            (&format!("{KEY}\nshort"), SealError::Length(2)),
            (&many, SealError::TooMany),
        ] {
            let error = Seals::parse(text, false).unwrap_err();
            assert_eq!(error, expected, "{text:?}");
            assert!(!error.to_string().contains("short ") || !text.contains("short "), "{error}");
        }
        assert!(!format!("{:?}", seals(KEY)).contains("0123"));
    }

    #[test]
    fn a_seal_stays_what_it_is() {
        // Records outlive builds. By another hand: printf 'perennial record 1\0worker-1\0{}' | openssl dgst -sha256 -hmac KEY.
        let expected = "32969df69e3a373479392ef77591dde6ceda181525f8ec931ae565ae9c587284";
        assert_eq!(seals(KEY).seal("worker-1", "{}"), expected);
    }
}

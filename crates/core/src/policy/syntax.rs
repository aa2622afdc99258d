//! The syntax of label keys and values, as the API server checks it.

/// A qualified name: up to 63 characters, with an optional DNS subdomain and a slash before it.
#[must_use]
pub fn is_key(text: &str) -> bool {
    match text.split_once('/') {
        Some((prefix, name)) => is_subdomain(prefix) && is_name(name),
        None => is_name(text),
    }
}

/// Empty, or like a key without a prefix.
#[must_use]
pub fn is_value(text: &str) -> bool {
    text.is_empty() || is_name(text)
}

/// Whether the API server takes this as a label of any object. What it does not take it refuses with everything beside it.
#[must_use]
pub fn is_label(key: &str, value: &str) -> bool {
    is_key(key) && is_value(value)
}

/// 1 to 63 letters, digits, `-`, `_`, `.`, with a letter or digit at both ends.
pub(super) fn is_name(text: &str) -> bool {
    let ends_well = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    bytes.len() <= 63
        && ends_well(bytes.first())
        && ends_well(bytes.last())
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte))
}

/// A DNS subdomain, as the name of a node is one too.
#[must_use]
pub fn is_subdomain(text: &str) -> bool {
    let is_part = |part: &str| {
        !part.is_empty()
            && !part.starts_with('-')
            && !part.ends_with('-')
            && part.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
    };
    text.len() <= 253 && text.split('.').all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_values_are_told_from_other_text_as_the_api_server_does() {
        let (long, longer) = ("a".repeat(63), "a".repeat(64));
        for (text, key, value) in [
            ("team", true, true),
            ("Team_1.x-y", true, true),
            ("example.com/team", true, false),
            ("node-role.kubernetes.io/worker", true, false),
            ("", false, true),
            ("/team", false, false),
            ("example.com/", false, false),
            ("a/b/c", false, false),
            ("Example.com/team", false, false),
            ("-a.example/team", false, false),
            ("a..b/team", false, false),
            ("-team", false, false),
            ("team.", false, false),
            ("tea m", false, false),
            ("größe", false, false),
            (&long, true, true),
            (&longer, false, false),
        ] {
            assert_eq!((is_key(text), is_value(text)), (key, value), "{text:?}");
        }
    }
}

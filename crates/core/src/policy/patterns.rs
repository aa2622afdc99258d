//! Globs over label, annotation and taint keys.
//!
//! `*` stands for any run of characters, **also across `/`**: a key has at most one slash, and people who
//! write `example.com/*`, `*.example.com/*` or `*` mean exactly what a plain text glob does. `?` is one
//! character, `[ab]` one of these, `{a,b}` either. Case counts, as it does in Kubernetes.
//!
//! Patterns are checked and compiled once, when the policy is read; a match allocates nothing.

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

/// A key has at most 253 + 1 + 63 characters; nobody needs a longer glob to describe one.
const MAX_LENGTH: usize = 512;

/// What is said of a pattern that is refused.
pub(super) const ALLOWED: &str = "a glob over keys: letters, digits, `-`, `_`, `.`, `/`, with `*` (any text, also across `/`), `?`, \
     `[ab]` and `{a,b}`; at most 512 characters";

/// A compiled list of globs that matches if one of them does.
#[derive(Clone, Default)]
pub(super) struct Patterns {
    /// As written, sorted and without doubles: the order of globs has no meaning.
    globs: Vec<String>,
    set: GlobSet,
}

impl Patterns {
    /// Compiles globs of which each passed [`check`]. Together they may still be too large.
    pub(super) fn compile<'a>(globs: impl IntoIterator<Item = &'a str>) -> Result<Self, globset::Error> {
        let mut globs: Vec<String> = globs.into_iter().map(str::to_owned).collect();
        globs.sort_unstable();
        globs.dedup();
        let mut set = GlobSetBuilder::new();
        for glob in &globs {
            set.add(build(glob)?);
        }
        Ok(Self { set: set.build()?, globs })
    }

    pub(super) fn matches(&self, key: &str) -> bool {
        self.set.is_match(key)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.globs.is_empty()
    }

    pub(super) fn globs(&self) -> &[String] {
        &self.globs
    }
}

/// Compiled sets cannot be compared, but they are made from nothing but the globs.
impl PartialEq for Patterns {
    fn eq(&self, other: &Self) -> bool {
        self.globs == other.globs
    }
}

impl std::fmt::Debug for Patterns {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(&self.globs).finish()
    }
}

/// Whether a pattern is one that some key could match; the error says what is wrong with it.
pub(super) fn check(pattern: &str) -> Result<(), String> {
    if pattern.is_empty() {
        return Err("is empty".to_owned());
    }
    if pattern.len() > MAX_LENGTH {
        return Err(format!("has {} characters", pattern.len()));
    }
    // Catches `team=blue` and stray blanks, which would otherwise be globs that silently match nothing.
    if let Some(stray) = pattern.chars().find(|c| !c.is_ascii_alphanumeric() && !"-_./*?[]{},!^".contains(*c))
    {
        return Err(format!("has {stray:?}, which no key has"));
    }
    build(pattern).map(drop).map_err(|error| error.kind().to_string())
}

/// Whether a pattern is nothing but stars: everything.
pub(super) fn is_everything(pattern: &str) -> bool {
    !pattern.is_empty() && pattern.bytes().all(|byte| byte == b'*')
}

/// Whether a pattern is a plain key, without a glob in it.
pub(super) fn is_plain(pattern: &str) -> bool {
    !pattern.contains(['*', '?', '[', ']', '{', '}'])
}

fn build(glob: &str) -> Result<globset::Glob, globset::Error> {
    GlobBuilder::new(glob).literal_separator(false).backslash_escape(false).build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_means_what_people_expect_of_keys() {
        for (glob, key, expected) in [
            ("*", "team", true),
            ("*", "example.com/team", true),
            ("feature.node.kubernetes.io/*", "feature.node.kubernetes.io/cpu-cpuid.AVX", true),
            ("feature.node.kubernetes.io/*", "feature.node.kubernetes.io", false),
            ("feature.node.kubernetes.io/*", "intel.feature.node.kubernetes.io/sgx", false),
            ("*.cluster.x-k8s.io/*", "node.cluster.x-k8s.io/pool", true),
            ("*.cluster.x-k8s.io/*", "cluster.x-k8s.io/pool", false),
            ("*/uninitialized", "node.cloudprovider.kubernetes.io/uninitialized", true),
            ("*/uninitialized", "uninitialized", false),
            ("*agent-not-ready", "node.cilium.io/agent-not-ready", true),
            ("*agent-not-ready", "agent-not-ready", true),
            ("team", "team", true),
            ("team", "example.com/team", false),
            ("team", "team-b", false),
            ("Team", "team", false),
            ("te?m", "team", true),
            ("example.com/{a,b}", "example.com/b", true),
            ("example.com/[ab]", "example.com/c", false),
            ("*.gz", "example.com/a.gz", true),
            ("**/team", "example.com/team", true),
        ] {
            check(glob).unwrap();
            let patterns = Patterns::compile([glob]).unwrap();
            assert_eq!(patterns.matches(key), expected, "{glob} on {key}");
        }
    }

    #[test]
    fn a_pattern_that_no_key_can_match_is_refused() {
        for (pattern, said) in [
            ("", "empty"),
            ("[", "unclosed character class"),
            ("[z-a]", "invalid range"),
            ("{a", "unclosed alternate"),
            ("a}", "unopened alternate"),
            ("team=blue", "'='"),
            (" team", "' '"),
            ("a\\*", "'\\\\'"),
            ("größe", "'ö'"),
            (&"a".repeat(513), "513 characters"),
        ] {
            let error = check(pattern).unwrap_err();
            assert!(error.contains(said), "{pattern}: {error}");
        }
    }
}

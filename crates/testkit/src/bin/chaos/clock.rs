//! Wrong clocks, by libfaketime. Time that is measured, and not told, runs as ever.

use std::{ffi::OsString, path::PathBuf};

use anyhow::Context;

/// Names a libfaketime that is elsewhere.
const VARIABLE: &str = "LIBFAKETIME";
/// Where distributions put it: `/usr/lib`, with or without a folder for the machine's kind.
const FOLDER: &str = "faketime/libfaketimeMT.so.1";

/// The environment of a process whose clock is wrong by so many hours.
pub(crate) fn wrong_by(hours: i64) -> anyhow::Result<Vec<(&'static str, OsString)>> {
    if hours == 0 {
        return Ok(Vec::new());
    }
    let library = library().with_context(|| {
        format!(
            "wrong clocks need libfaketime: install faketime (`dev/prerequisites clocks`), or set {VARIABLE}"
        )
    })?;
    Ok(vec![
        ("LD_PRELOAD", library.into()),
        ("FAKETIME", format!("{hours:+}h").into()),
        // Its name since 0.9.10, and before.
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1".into()),
        ("DONT_FAKE_MONOTONIC", "1".into()),
    ])
}

fn library() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os(VARIABLE) {
        return Some(named.into());
    }
    let plain = ["/usr/lib", "/usr/lib64", "/usr/local/lib"].map(PathBuf::from);
    let by_kind = std::fs::read_dir("/usr/lib").into_iter().flatten().flatten().map(|entry| entry.path());
    plain.into_iter().chain(by_kind).map(|folder| folder.join(FOLDER)).find(|library| library.is_file())
}

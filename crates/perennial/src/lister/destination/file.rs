//! Files in a folder, replaced whole: whoever reads one reads the old page or the new one, never a part.
//!
//! A new file is written beside the old one, brought to the disk, and renamed over it. What a crash leaves of that bears a
//! name of ours and is removed at the next start.
//!
//! A file has no stamp: its tag is the digest of its bytes. The swap is not atomic against another writer of the same
//! file, so there must be only one; that is so for a sidecar.

use std::fmt;
use std::fs::{self, File, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use perennial_core::kept::Digest;

use super::error::Said;
use super::store::{Object, Over};
use super::{Error, Found, Put, Tag};

/// How the files end that are not finished.
const UNFINISHED: &str = ".perennial-unfinished";

/// A folder with the page in it, and its history below.
#[derive(Clone, Debug)]
pub(super) struct Folder {
    root: PathBuf,
}

impl Folder {
    /// The folder of a file, and the file's name in it. Removes what an earlier crash left.
    pub(super) fn of(path: &Path) -> Result<(Self, String), Error> {
        let none = || Error::File(Said::text(&format!("{} is no name of a file", path.display())));
        let name = path.file_name().and_then(|name| name.to_str()).ok_or_else(none)?;
        let root = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let folder = Self { root: root.to_owned() };
        folder.clean().map_err(|error| explain(&error, root))?;
        Ok((folder, name.to_owned()))
    }

    fn clean(&self) -> io::Result<()> {
        for entry in fs::read_dir(&self.root)? {
            let entry = entry?;
            if entry.file_name().to_str().is_some_and(|name| name.ends_with(UNFINISHED)) {
                fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }

    pub(super) async fn look(&self, key: &str) -> Result<Option<Found>, Error> {
        let read = self.read(key).await?;
        Ok(read.map(|(tag, bytes)| Found { tag, stamp: None, digest: Some(Digest::of(&bytes)) }))
    }

    pub(super) async fn read(&self, key: &str) -> Result<Option<(Tag, Bytes)>, Error> {
        self.blocking(key, |path| match fs::read(path) {
            Ok(bytes) => Ok(Some((tag(&bytes), bytes.into()))),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        })
        .await
    }

    pub(super) async fn write(&self, key: &str, object: Object, over: Over<'_>) -> Result<Put, Error> {
        let found = self.read(key).await?.map(|(tag, _)| tag);
        let free = match over {
            Over::Nothing => found.is_none(),
            Over::This(wanted) => found.as_ref() == Some(wanted),
        };
        if !free {
            return Ok(Put::Conflict);
        }
        let written = tag(&object.body);
        let root = self.root.clone();
        self.blocking(key, move |path| replace(&root, path, &object.body)).await?;
        Ok(Put::Written(written))
    }

    pub(super) async fn remove(&self, key: &str) -> Result<(), Error> {
        let root = self.root.clone();
        self.blocking(key, move |path| {
            match fs::remove_file(path) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            // The folders of days on which nothing is left. One that is not empty stays, and says so.
            let above = path.ancestors().skip(1).take_while(|folder| *folder != root);
            above.map(fs::remove_dir).take_while(Result::is_ok).for_each(drop);
            Ok(())
        })
        .await
    }

    pub(super) async fn list(&self, prefix: &str) -> Result<Vec<String>, Error> {
        let root = self.root.clone();
        let below = prefix.trim_end_matches('/');
        let mut keys = self.blocking(below, move |path| files(&root, path)).await?;
        keys.retain(|key| key.starts_with(prefix));
        Ok(keys)
    }

    async fn blocking<T: Send + 'static>(
        &self,
        key: &str,
        act: impl FnOnce(&Path) -> io::Result<T> + Send + 'static,
    ) -> Result<T, Error> {
        let path = self.root.join(key);
        let done =
            tokio::task::spawn_blocking(move || act(&path).map_err(|error| explain(&error, &path))).await;
        done.unwrap_or_else(|_| Err(Error::File(Said::text("the program is ending"))))
    }
}

impl fmt::Display for Folder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.root.display())
    }
}

fn tag(bytes: &[u8]) -> Tag {
    Tag::new(Digest::of(bytes).to_string())
}

/// Writes a file beside, and renames it over. It is always beside the page itself, also for what goes below, so that there
/// is one folder to clean.
fn replace(root: &Path, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(root);
    if folder != root {
        fs::create_dir_all(folder)?;
    }
    let unfinished = root.join(format!(".{:016x}{UNFINISHED}", rand::random::<u64>()));
    let written = write(&unfinished, bytes).and_then(|()| fs::rename(&unfinished, path));
    if written.is_err() {
        // It may not have come to be.
        let _ = fs::remove_file(&unfinished);
    }
    written?;
    // The new name is in the folder, and shall be there after a power cut, too.
    File::open(folder)?.sync_all()
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::options().write(true).create_new(true).open(path)?;
    // Whoever serves it is somebody else, whatever our umask says.
    file.set_permissions(Permissions::from_mode(0o644))?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// All files below a folder, as keys.
fn files(root: &Path, folder: &Path) -> io::Result<Vec<String>> {
    let mut keys = Vec::new();
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(keys),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            keys.extend(files(root, &entry.path())?);
        } else if kind.is_file()
            && let Some(key) = entry.path().strip_prefix(root).ok().and_then(Path::to_str)
        {
            keys.push(key.to_owned());
        }
    }
    Ok(keys)
}

fn explain(error: &io::Error, path: &Path) -> Error {
    let what = match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            return Error::Full(Said::text(&path.display().to_string()));
        }
        ErrorKind::NotFound => "its folder does not exist: create it, or mount it there".to_owned(),
        ErrorKind::NotADirectory => "what should be its folder is a file".to_owned(),
        ErrorKind::IsADirectory => "a folder is in its place: choose another name".to_owned(),
        ErrorKind::PermissionDenied => {
            "it may not be written by us: change its owner or mode, or ours".to_owned()
        }
        ErrorKind::ReadOnlyFilesystem => "it is mounted read-only: mount it with write access".to_owned(),
        _ => error.to_string(),
    };
    Error::File(Said::text(&format!("{}: {what}", path.display())))
}

//! A page in a file, for a server beside us.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use perennial::lister::destination::{Destination, Put};
use perennial_core::kept::Digest;
use tempfile::TempDir;

use crate::world::{found, page, publish};

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

fn names(folder: &TempDir) -> Vec<String> {
    let names = fs::read_dir(folder.path()).unwrap();
    names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[tokio::test]
async fn a_page_comes_back_by_its_digest() {
    let folder = folder();
    let path = folder.path().join("index.html");
    let destination = Destination::file(&path, None).unwrap();
    assert_eq!(destination.look().await, Ok(None));
    for text in ["one", "two", ""] {
        assert!(matches!(publish(&destination, &page(text, 1)).await, Ok(Put::Written(_))));
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
        let found = found(&destination).await;
        assert_eq!((found.stamp, found.digest), (None, Some(Digest::of(text.as_bytes()))));
    }
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o644);
    assert_eq!(names(&folder), ["index.html"]);
    assert_eq!(destination.to_string(), format!("file {}", path.display()));
}

#[tokio::test]
async fn what_somebody_else_wrote_meanwhile_is_a_conflict() {
    let folder = folder();
    let path = folder.path().join("index.html");
    let destination = Destination::file(&path, None).unwrap();
    publish(&destination, &page("one", 1)).await.unwrap();
    let seen = found(&destination).await;
    fs::write(&path, "theirs").unwrap();
    assert_eq!(destination.put(&page("two", 2), Some(&seen.tag)).await, Ok(Put::Conflict));
    assert_eq!(destination.put(&page("two", 2), None).await, Ok(Put::Conflict));
    assert_eq!(fs::read_to_string(&path).unwrap(), "theirs");
}

#[tokio::test]
async fn whoever_reads_it_reads_a_whole_page() {
    let folder = folder();
    let path = folder.path().join("index.html");
    let destination = Destination::file(&path, None).unwrap();
    let pages = [page(&"a".repeat(100_000), 1), page(&"b".repeat(100_000), 2)];
    publish(&destination, &pages[0]).await.unwrap();
    let reader = tokio::task::spawn_blocking({
        let path = path.clone();
        move || {
            (0..200).all(|_| {
                let text = fs::read_to_string(&path).unwrap();
                text.len() == 100_000 && text.bytes().all(|byte| byte == text.as_bytes()[0])
            })
        }
    });
    for page in pages.iter().cycle().skip(1).take(20) {
        publish(&destination, page).await.unwrap();
    }
    assert!(reader.await.unwrap());
}

#[tokio::test]
async fn what_a_crash_left_is_removed_at_the_start_and_nothing_else() {
    let folder = folder();
    for name in [".0123456789abcdef.perennial-unfinished", ".hidden", "other.html"] {
        fs::write(folder.path().join(name), "x").unwrap();
    }
    Destination::file(&folder.path().join("index.html"), None).unwrap();
    let mut left = names(&folder);
    left.sort();
    assert_eq!(left, [".hidden", "other.html"]);
}

#[tokio::test]
async fn a_folder_that_is_not_there_is_told() {
    let folder = folder();
    let error = Destination::file(&folder.path().join("none/index.html"), None).err().unwrap();
    assert_eq!((error.kind(), error.retryable()), ("file", false));
    assert!(error.to_string().contains("does not exist: create it"), "{error}");
    for path in ["/", "..", ""] {
        assert!(Destination::file(path.as_ref(), None).is_err(), "{path:?}");
    }
}

#[tokio::test]
async fn a_folder_in_the_place_of_the_page_is_told() {
    let folder = folder();
    let path = folder.path().join("index.html");
    fs::create_dir(&path).unwrap();
    let destination = Destination::file(&path, None).unwrap();
    let error = destination.look().await.unwrap_err();
    assert!(error.to_string().contains("a folder is in its place"), "{error}");
}

#[tokio::test]
async fn a_folder_that_may_not_be_written_is_told() {
    // Where nobody may write, root included.
    let destination = Destination::file("/proc/index.html".as_ref(), None).unwrap();
    let error = destination.put(&page("page", 1), None).await.unwrap_err();
    assert_eq!(error.kind(), "file");
    assert!(error.to_string().starts_with("/proc/index.html: "), "{error}");
}

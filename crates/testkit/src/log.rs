//! The log file of a child process.

use std::{
    fs::File,
    io::{Read, Seek, SeekFrom},
    path::Path,
};

const TAIL_BYTES: u64 = 16 * 1024;
const TAIL_LINES: usize = 30;

/// The last lines of a log, or the reason why they cannot be read.
pub(crate) fn tail(path: &Path) -> String {
    read_end(path).unwrap_or_else(|error| format!("(its log cannot be read: {error})"))
}

fn read_end(path: &Path) -> std::io::Result<String> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
    let mut end = Vec::new();
    file.read_to_end(&mut end)?;
    let text = String::from_utf8_lossy(&end);
    let lines: Vec<&str> = text.lines().collect();
    Ok(lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_is_the_last_lines() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let lines: Vec<String> = (0..5_000).map(|line| format!("line {line}")).collect();
        std::fs::write(file.path(), lines.join("\n")).unwrap();
        let tail = tail(file.path());
        assert_eq!(tail.lines().count(), TAIL_LINES);
        assert!(tail.ends_with("line 4999"), "{tail}");
    }

    #[test]
    fn a_log_that_is_not_there_is_told() {
        assert!(tail(Path::new("/nonexistent/log")).contains("cannot be read"));
    }
}

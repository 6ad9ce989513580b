//! The last lines of a log, for messages.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

/// Number of lines in a message.
const LINES: usize = 20;
/// Largest part of the log that is read, for logs with long lines.
const BYTES: u64 = 8 * 1024;

/// The last lines written after the first `start_bytes` of the log. Empty if there are no such lines or the
/// log cannot be read.
pub(crate) fn last_lines(log: &Path, start_bytes: u64) -> Vec<String> {
    let read = || -> std::io::Result<(u64, Vec<u8>)> {
        let mut file = File::open(log)?;
        let end = file.metadata()?.len();
        let from = start_bytes.max(end.saturating_sub(BYTES));
        file.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        file.take(BYTES).read_to_end(&mut bytes)?;
        Ok((from, bytes))
    };
    let Ok((from, bytes)) = read() else {
        return Vec::new();
    };
    let text = String::from_utf8_lossy(&bytes);
    let mut lines: Vec<&str> = text.lines().collect();
    // The first line is cut somewhere in the middle, and must not appear as a complete line.
    if from > start_bytes && lines.len() > 1 {
        lines.remove(0);
    }
    let skip = lines.len().saturating_sub(LINES);
    lines[skip..]
        .iter()
        .map(|line| line.trim_end().to_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_start_and_only_whole_lines_are_shown() {
        let log = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(log.path(), "earlier start\nfirst\nsecond\n").unwrap();
        assert_eq!(last_lines(log.path(), 14), ["first", "second"]);
        assert_eq!(last_lines(log.path(), 27), Vec::<String>::new());

        let long: String = (0..2000).map(|n| format!("line {n}\n")).collect();
        std::fs::write(log.path(), long).unwrap();
        let lines = last_lines(log.path(), 0);
        assert_eq!(lines.len(), LINES);
        assert_eq!(lines.first().unwrap(), "line 1980");
        assert_eq!(last_lines(Path::new("/nowhere"), 0), Vec::<String>::new());
    }

    #[test]
    fn one_line_longer_than_what_is_read_is_shown_from_its_middle() {
        let log = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(log.path(), "x".repeat(20_000)).unwrap();
        assert_eq!(last_lines(log.path(), 0), ["x".repeat(8192)]);
    }
}

//! The result of a generator in a pod, sent through the pod's log.
//!
//! A recording is written as base64 between two marks, with its length and digest. Its lines are short enough
//! that a container runtime does not cut them. The reader detects a log that was rotated, cut off or mixed
//! with other lines.

use std::io::Write;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::digest::sha256;

const BEGIN: &str = "-----BEGIN WEIGH RESULT";
const END: &str = "-----END WEIGH RESULT-----";
/// Length of a line in bytes. Container runtimes cut lines at 16 KiB.
const LINE: usize = 8 * 1024;
/// Maximum size of a result in bytes. By default, a kubelet keeps 10 MiB of a log.
pub(crate) const BYTES_MOST: usize = 6 << 20;

/// Writes a result.
///
/// # Errors
/// When it is too long for a log, or cannot be written.
pub fn write(to: &mut impl Write, result: &[u8]) -> Result<(), String> {
    if result.len() > BYTES_MOST {
        return Err(format!(
            "the result has {} bytes, but at most {BYTES_MOST} fit into the log of a pod. Measure fewer variants or fewer separate requests",
            result.len()
        ));
    }
    let text = STANDARD.encode(result);
    let mut write = || -> std::io::Result<()> {
        writeln!(to, "{BEGIN} {} {}", result.len(), sha256(result))?;
        for line in text.as_bytes().chunks(LINE) {
            to.write_all(line)?;
            to.write_all(b"\n")?;
        }
        writeln!(to, "{END}")?;
        to.flush()
    };
    write().map_err(|error| format!("the result cannot be written: {error}"))
}

/// The result in a log.
///
/// # Errors
/// When it is missing or incomplete.
pub fn read(log: &str) -> Result<Vec<u8>, String> {
    let missing = || "its log contains no result".to_owned();
    let mut lines = log.lines();
    let head = lines
        .find(|line| line.starts_with(BEGIN))
        .ok_or_else(missing)?;
    let mut words = head[BEGIN.len()..].split_whitespace();
    let (length, digest) = words.next().zip(words.next()).ok_or_else(missing)?;
    let mut text = String::new();
    let mut is_whole = false;
    for line in lines {
        if line == END {
            is_whole = true;
            break;
        }
        text.push_str(line.trim());
        if text.len() > BYTES_MOST * 2 {
            return Err("the result in its log is too long".to_owned());
        }
    }
    let cut = || "its log contains only a part of the result".to_owned();
    let result = STANDARD.decode(&text).map_err(|_| cut())?;
    let is_right = length.parse() == Ok(result.len()) && sha256(&result) == digest;
    match is_whole && is_right {
        true => Ok(result),
        false => Err(cut()),
    }
}

/// The last lines of a log outside of a result: the generator's messages before it failed.
pub(crate) fn last_words(log: &str) -> String {
    let said = log.lines().filter(|line| !line.trim().is_empty());
    let said: Vec<&str> = said.filter(|line| !line.starts_with("-----")).collect();
    let last = said.iter().rev().take(2).rev();
    let shortened = last.map(|line| line.chars().take(400).collect::<String>());
    shortened.collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(result: &[u8]) -> String {
        let mut log = Vec::new();
        write(&mut log, result).expect("a buffer takes it");
        String::from_utf8(log).expect("text")
    }

    #[test]
    fn a_result_comes_out_as_it_went_in_whatever_is_around_it() {
        let result: Vec<u8> = (0..=250).cycle().take(100_000).collect();
        let log = written(&result);
        assert!(log.lines().all(|line| line.len() <= LINE));
        assert_eq!(read(&format!("before\n{log}after\n")), Ok(result));
    }

    #[test]
    fn a_result_that_was_cut_or_changed_is_none() {
        let log = written(&[7; 50_000]);
        let lines: Vec<&str> = log.lines().collect();
        assert!(read("").unwrap_err().contains("no result"));
        // The beginning of the log was rotated away.
        assert!(
            read(&lines[1..].join("\n"))
                .unwrap_err()
                .contains("no result")
        );
        for cut in [
            lines[..lines.len() - 1].join("\n"),
            [&lines[..2], &lines[3..]].concat().join("\n"),
            log.replacen("BwcH", "BwcI", 1),
        ] {
            assert_eq!(
                read(&cut),
                Err("its log contains only a part of the result".to_owned())
            );
        }
        assert!(write(&mut Vec::new(), &vec![0; BYTES_MOST + 1]).is_err());
    }

    #[test]
    fn last_words_are_no_result() {
        assert_eq!(
            last_words("a\n\nb\nc\n-----END WEIGH RESULT-----\n"),
            "b; c"
        );
    }
}

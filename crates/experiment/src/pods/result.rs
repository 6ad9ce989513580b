//! The result of a generator in a pod, sent through the pod's log.
//!
//! A recording is compressed and written as base64 between two marks, with its length and digest. Its lines are
//! short enough that a container runtime does not cut them. The reader detects a log that was rotated, cut off
//! or mixed with other lines.
//!
//! A kubelet looks every 10 s for logs above 10 MiB, and then keeps only the part from then on within reach.
//! It leaves the logs of ended containers alone. So a generator writes its result at once and ends.

use std::io::Write;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::digest::sha256;
use crate::files::{packed, unpacked};

const BEGIN: &str = "-----BEGIN WEIGH RESULT";
/// The last line of a result.
pub(super) const END: &str = "-----END WEIGH RESULT-----";
/// Length of a line in bytes. Container runtimes cut lines at 16 KiB.
const LINE: usize = 8 * 1024;
/// Maximum size of a compressed result in bytes. Writing it takes about a second, so a kubelet that looks for
/// long logs rarely comes in between.
const PACKED_MOST: usize = 24 << 20;
/// Maximum size of a result in bytes before compression.
const BYTES_MOST: usize = 256 << 20;

/// The reason why a log contains no whole result.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Unread {
    /// It has no mark of a result.
    Absent,
    /// It has only the end of a result.
    BeginningLost,
    /// It has only a part of a result, or other lines in it.
    Incomplete,
}

impl Unread {
    /// True if the missing lines may still arrive.
    pub(crate) fn may_arrive(&self) -> bool {
        *self != Unread::BeginningLost
    }

    /// The reason in words.
    pub(crate) fn words(&self) -> &'static str {
        match self {
            Unread::Absent => "its log contains no result",
            Unread::BeginningLost => {
                "its log contains only the end of the result, because the kubelet has rotated the log. A larger `containerLogMaxSize` of the kubelet prevents this"
            }
            Unread::Incomplete => "its log contains only a part of the result",
        }
    }
}

/// Writes a result.
///
/// # Errors
/// When it is too long for a log, or cannot be written.
pub fn write(to: &mut impl Write, result: &[u8]) -> Result<(), String> {
    let packed = packed(result);
    check_size(result.len(), packed.len())?;
    let text = STANDARD.encode(packed);
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

fn check_size(bytes: usize, compressed: usize) -> Result<(), String> {
    match bytes > BYTES_MOST || compressed > PACKED_MOST {
        false => Ok(()),
        true => Err(format!(
            "the result has {bytes} bytes, compressed {compressed}, but at most {PACKED_MOST} compressed bytes go through the log of a pod. Measure fewer variants or fewer separate requests"
        )),
    }
}

/// The result in a log.
///
/// # Errors
/// When it is missing or incomplete.
pub(crate) fn read(log: &str) -> Result<Vec<u8>, Unread> {
    let mut lines = log.lines();
    let Some(head) = lines.find(|line| line.starts_with(BEGIN)) else {
        return Err(match log.lines().any(|line| line == END) {
            true => Unread::BeginningLost,
            false => Unread::Absent,
        });
    };
    let mut words = head[BEGIN.len()..].split_whitespace();
    let numbers = words.next().zip(words.next());
    let (length, digest) = numbers.ok_or(Unread::Incomplete)?;
    let length: usize = length.parse().map_err(|_| Unread::Incomplete)?;
    let mut text = String::new();
    let mut is_whole = false;
    for line in lines {
        is_whole = line == END;
        if is_whole || text.len() > PACKED_MOST * 2 {
            break;
        }
        text.push_str(line.trim());
    }
    if !is_whole || length > BYTES_MOST {
        return Err(Unread::Incomplete);
    }
    let packed = STANDARD.decode(&text).map_err(|_| Unread::Incomplete)?;
    let result = unpacked(packed, length as u64).map_err(|_| Unread::Incomplete)?;
    match result.len() == length && sha256(&result) == digest {
        true => Ok(result),
        false => Err(Unread::Incomplete),
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
    use recording::Recording;
    use recording::sample::SampleRun;

    use super::*;
    use crate::pods::packed_files::noise;

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
    fn several_mebibytes_arrive_byte_for_byte() {
        let result = noise(8 << 20);
        let log = written(&result);
        assert!(log.len() > 10 << 20, "{}", log.len());
        assert_eq!(read(&log), Ok(result));
    }

    #[test]
    fn a_long_recording_becomes_short_and_arrives_whole() {
        let mut recording = SampleRun::open().variant("a", 700.0).build();
        let json = |recording: &Recording| serde_json::to_vec(recording).expect("JSON");
        while json(&recording).len() < 7 << 20 {
            recording.rounds.extend(recording.rounds.clone());
        }
        let bytes = json(&recording);
        let log = written(&bytes);
        assert!(log.len() < bytes.len() / 2, "{}", log.len());
        let text = String::from_utf8(read(&log).expect("whole")).expect("text");
        let read = Recording::from_json(&text).expect("a recording");
        assert_eq!(json(&read), bytes);
    }

    #[test]
    fn a_log_that_was_rotated_is_told_from_one_that_still_grows() {
        let log = written(&noise(50_000));
        let lines: Vec<&str> = log.lines().collect();
        assert_eq!(read(""), Err(Unread::Absent));
        // The kubelet has rotated the log within the result.
        assert_eq!(read(&lines[2..].join("\n")), Err(Unread::BeginningLost));
        assert!(!Unread::BeginningLost.may_arrive());
        let changed = log.replacen(&lines[1][..4], "AAAA", 1);
        for cut in [
            lines[..lines.len() - 1].join("\n"),
            [&lines[..2], &lines[3..]].concat().join("\n"),
            changed,
        ] {
            assert_eq!(read(&cut), Err(Unread::Incomplete));
        }
        assert!(Unread::Incomplete.may_arrive() && Unread::Absent.may_arrive());
    }

    #[test]
    fn a_result_that_no_log_takes_is_refused_with_its_size() {
        assert_eq!(check_size(BYTES_MOST, PACKED_MOST), Ok(()));
        let refused = check_size(30 << 20, PACKED_MOST + 1).unwrap_err();
        assert!(refused.contains("compressed 25165825"), "{refused}");
        assert!(refused.contains("at most 25165824"), "{refused}");
    }

    #[test]
    fn last_words_are_no_result() {
        assert_eq!(
            last_words("a\n\nb\nc\n-----END WEIGH RESULT-----\n"),
            "b; c"
        );
    }
}

//! One JSON value a line, over a pipe or a socket.

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Collects bytes and returns complete lines.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    bytes: Vec<u8>,
}

impl Lines {
    /// Reads once. Returns false if the other side is gone.
    pub(crate) fn fill(&mut self, from: &mut impl Read) -> bool {
        let mut chunk = [0; 16 * 1024];
        loop {
            match from.read(&mut chunk) {
                Ok(0) => return false,
                Ok(count) => {
                    self.bytes.extend_from_slice(&chunk[..count]);
                    return true;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // No data yet, but the other side still exists.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return true,
                Err(_) => return false,
            }
        }
    }

    /// The next complete line, without its line end.
    pub(crate) fn next_line(&mut self) -> Option<Vec<u8>> {
        let end = self.bytes.iter().position(|byte| *byte == b'\n')?;
        let mut line: Vec<u8> = self.bytes.drain(..=end).collect();
        line.pop();
        Some(line)
    }

    /// Returns the next value. A line that cannot be parsed is an error.
    pub(crate) fn next_value<T: DeserializeOwned>(&mut self) -> Option<io::Result<T>> {
        let line = self.next_line()?;
        Some(serde_json::from_slice(&line).map_err(io::Error::from))
    }

    /// Waits for one value. If the other side ends first, that is an error.
    pub(crate) fn wait_value<T: DeserializeOwned>(
        &mut self,
        from: &mut impl Read,
    ) -> io::Result<T> {
        loop {
            if let Some(value) = self.next_value() {
                return value;
            }
            if !self.fill(from) {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
}

/// Writes a value and a line end in one write.
pub(crate) fn write_value<T: Serialize>(to: &mut impl Write, value: &T) -> io::Result<()> {
    // One system call for a line, not one for each piece of the value.
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    to.write_all(&line)?;
    to.flush()
}

/// Waits at most `timeout` until one of `sources` can be read (or is closed). Returns one flag per source. A
/// signal ends the wait early, with all flags false.
pub(crate) fn wait_readable(
    sources: &[&dyn AsFd],
    timeout: Option<Duration>,
) -> io::Result<Vec<bool>> {
    let mut polled: Vec<PollFd<'_>> = sources
        .iter()
        .map(|source| PollFd::from_borrowed_fd(source.as_fd(), PollFlags::IN))
        .collect();
    let timeout = timeout.map(|timeout| Timespec {
        // A timeout beyond 292 billion years is clipped.
        tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: timeout.subsec_nanos().into(),
    });
    match poll(&mut polled, timeout.as_ref()) {
        Ok(_) => Ok(polled.iter().map(|fd| !fd.revents().is_empty()).collect()),
        Err(rustix::io::Errno::INTR) => Ok(vec![false; sources.len()]),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_cut_in_two_arrives_whole_and_the_end_is_an_error() {
        let mut lines = Lines::default();
        assert!(lines.fill(&mut &b"[1,"[..]));
        assert!(lines.next_line().is_none());
        assert!(lines.fill(&mut &b"2]\n[3]\n[4"[..]));
        let mut nothing: &[u8] = b"";
        assert_eq!(lines.wait_value::<Vec<i32>>(&mut nothing).unwrap(), [1, 2]);
        assert_eq!(lines.wait_value::<Vec<i32>>(&mut nothing).unwrap(), [3]);
        let error = lines.wait_value::<Vec<i32>>(&mut nothing).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }
}

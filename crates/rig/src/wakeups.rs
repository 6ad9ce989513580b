//! Signals as a readable pipe that can be polled, without code in a signal handler.
//!
//! The signals are caught, not ignored. When a system's program is executed, a caught signal returns to its
//! default, but an ignored signal stays ignored. A server that ignores SIGTERM could not be stopped
//! gracefully.

use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::{flag, low_level};

/// Becomes readable when a child ends or a signal requests the end of this process.
#[derive(Debug)]
pub(crate) struct Wakeups {
    pipe: UnixStream,
    asked_to_end: Arc<AtomicBool>,
}

impl Wakeups {
    pub(crate) fn new() -> io::Result<Self> {
        let (pipe, writer) = UnixStream::pair()?;
        // `clear` reads until the pipe is empty, and must not block then.
        pipe.set_nonblocking(true)?;
        let asked_to_end = Arc::new(AtomicBool::new(false));
        for signal in [SIGTERM, SIGINT, SIGHUP, SIGQUIT] {
            // The flag is registered first, because a woken thread must already see it.
            flag::register(signal, Arc::clone(&asked_to_end))?;
            low_level::pipe::register(signal, writer.try_clone()?)?;
        }
        low_level::pipe::register(SIGCHLD, writer)?;
        Ok(Self { pipe, asked_to_end })
    }

    /// Discards earlier wake-ups. Call it before checking the state that they may announce.
    pub(crate) fn clear(&self) {
        let mut pipe = &self.pipe;
        let mut bytes = [0; 256];
        while pipe.read(&mut bytes).is_ok_and(|count| count > 0) {}
    }

    /// True if SIGTERM, SIGINT, SIGHUP or SIGQUIT has arrived.
    pub(crate) fn asked_to_end(&self) -> bool {
        self.asked_to_end.load(Ordering::Relaxed)
    }
}

impl AsFd for Wakeups {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }
}

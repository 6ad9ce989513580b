//! Signals as something that can be polled, without code in a signal handler.
//!
//! The signals are caught, not ignored: what is caught goes back to its default
//! when a system's program is executed, what is ignored would stay ignored in
//! it, and a server that ignores SIGTERM cannot be asked to stop.

use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::{flag, low_level};

/// Becomes readable when a child ends or when this process is asked to end.
#[derive(Debug)]
pub(crate) struct Wakeups {
    pipe: UnixStream,
    asked_to_end: Arc<AtomicBool>,
}

impl Wakeups {
    pub(crate) fn new() -> io::Result<Self> {
        let (pipe, writer) = UnixStream::pair()?;
        // `clear` reads until nothing is left, and must not wait then.
        pipe.set_nonblocking(true)?;
        let asked_to_end = Arc::new(AtomicBool::new(false));
        for signal in [SIGTERM, SIGINT, SIGHUP, SIGQUIT] {
            // The flag first: a thread that is woken must already see it.
            flag::register(signal, Arc::clone(&asked_to_end))?;
            low_level::pipe::register(signal, writer.try_clone()?)?;
        }
        low_level::pipe::register(SIGCHLD, writer)?;
        Ok(Self { pipe, asked_to_end })
    }

    /// Forgets the wake-ups so far; to be called before looking at what they
    /// may be about.
    pub(crate) fn clear(&self) {
        let mut pipe = &self.pipe;
        let mut bytes = [0; 256];
        while pipe.read(&mut bytes).is_ok_and(|count| count > 0) {}
    }

    /// Whether SIGTERM, SIGINT, SIGHUP or SIGQUIT has come.
    pub(crate) fn asked_to_end(&self) -> bool {
        self.asked_to_end.load(Ordering::Relaxed)
    }
}

impl AsFd for Wakeups {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }
}

//! Ctrl-C and related signals, as a flag that long work checks.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

use crate::exit::Exit;

/// True once the user has asked `weigh` to stop.
#[derive(Clone, Debug)]
pub struct StopSignal(Arc<AtomicBool>);

impl StopSignal {
    /// Listens for SIGINT, SIGTERM and SIGHUP. The first signal starts an orderly end. The second signal
    /// exits at once, and the keeper cleans up.
    ///
    /// # Errors
    ///
    /// When the operating system refuses to install a handler.
    pub fn listen() -> io::Result<StopSignal> {
        let asked = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            // The order matters: the shutdown handler runs first, and sees the flag only if an earlier signal
            // has set it.
            flag::register_conditional_shutdown(
                signal,
                i32::from(Exit::Interrupted.code()),
                Arc::clone(&asked),
            )?;
            flag::register(signal, Arc::clone(&asked))?;
        }
        Ok(StopSignal(asked))
    }

    /// A signal that nobody has sent. Only for tests.
    #[cfg(test)]
    pub(crate) fn unasked() -> StopSignal {
        StopSignal(Arc::new(AtomicBool::new(false)))
    }

    /// A signal that was sent. Only for tests.
    #[cfg(test)]
    pub(crate) fn asked() -> StopSignal {
        StopSignal(Arc::new(AtomicBool::new(true)))
    }

    /// True if the user has asked `weigh` to stop.
    pub fn is_asked(&self) -> bool {
        // Relaxed suffices, because the flag publishes no other memory.
        self.0.load(Ordering::Relaxed)
    }

    /// The flag itself, for loops in other crates.
    pub fn flag(&self) -> &AtomicBool {
        &self.0
    }
}

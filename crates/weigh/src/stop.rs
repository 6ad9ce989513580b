//! Ctrl-C and its relatives as a flag that long work looks at.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

use crate::exit::Exit;

/// Set once the user has asked `weigh` to stop.
#[derive(Clone, Debug)]
pub(crate) struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Listens for SIGINT, SIGTERM and SIGHUP. The first one asks for an orderly
    /// end; the second one leaves at once, and the keeper cleans up.
    ///
    /// # Errors
    ///
    /// When the operating system refuses to install a handler.
    pub(crate) fn listen() -> io::Result<Stop> {
        let asked = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            // Order matters: the shutdown handler runs first and sees the flag
            // only when an earlier signal has set it.
            flag::register_conditional_shutdown(
                signal,
                i32::from(Exit::Interrupted.code()),
                Arc::clone(&asked),
            )?;
            flag::register(signal, Arc::clone(&asked))?;
        }
        Ok(Stop(asked))
    }

    /// Has the user asked `weigh` to stop?
    pub(crate) fn is_asked(&self) -> bool {
        // The flag publishes no other memory; it only has to be seen soon.
        self.0.load(Ordering::Relaxed)
    }

    /// The flag itself, for loops in other rooms.
    pub(crate) fn flag(&self) -> &AtomicBool {
        &self.0
    }
}

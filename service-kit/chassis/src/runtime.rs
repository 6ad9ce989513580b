//! The runtime of a thread.

use std::io;

use tokio::runtime::{Builder, LocalOptions, LocalRuntime};

use crate::tracker::count_rests;

/// Creates a runtime on the current thread, for tasks that stay on it.
///
/// # Errors
/// Fails if the system has no more file descriptors.
pub fn runtime() -> io::Result<LocalRuntime> {
    count_rests(&mut Builder::new_current_thread())
        .enable_all()
        .build_local(LocalOptions::default())
}

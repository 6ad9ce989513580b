//! The runtime of a thread.

use std::io;

use tokio::runtime::{Builder, LocalOptions, LocalRuntime};

use crate::tracker::count_rests;

/// A runtime on the thread that asks for it, for tasks that stay there.
///
/// # Errors
/// When the system has no more file descriptors.
pub fn runtime() -> io::Result<LocalRuntime> {
    count_rests(&mut Builder::new_current_thread())
        .enable_all()
        .build_local(LocalOptions::default())
}

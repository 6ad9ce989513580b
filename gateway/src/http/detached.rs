//! Work that continues after its client has disconnected.

use std::cell::Cell;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::graphql::planning;

thread_local! {
    static IS_STOPPED: Cell<bool> = const { Cell::new(false) };
}

/// Ends the work of this thread with its client from now on. The runtime is about to be dropped, and
/// the drop of a request must not spawn tasks on it.
pub(crate) fn stop() {
    IS_STOPPED.set(true);
}

/// Continues work after its client has disconnected, unless the worker has stopped.
fn spawn(work: impl Future<Output = ()> + 'static) {
    if !IS_STOPPED.get() {
        tokio::task::spawn_local(planning::without_client(work));
    }
}

/// The work for a request. It continues after its client has disconnected, because a mutation that stops half
/// way leaves inconsistent data. With `early_cancel` it ends with the client.
pub(crate) struct DetachOnDrop<F: Future + 'static> {
    work: Option<Pin<Box<F>>>,
    is_cancelled: bool,
}

impl<F: Future + 'static> DetachOnDrop<F> {
    /// The work. `is_cancelled` is true if it ends with its client.
    pub(crate) fn new(work: Pin<Box<F>>, is_cancelled: bool) -> Self {
        Self {
            work: Some(work),
            is_cancelled,
        }
    }
}

impl<F: Future + 'static> Future for DetachOnDrop<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let work = self.work.as_mut().expect("polled after its end");
        let output = std::task::ready!(work.as_mut().poll(context));
        // Finished work must not be started again by `drop`.
        self.work = None;
        Poll::Ready(output)
    }
}

impl<F: Future + 'static> Drop for DetachOnDrop<F> {
    fn drop(&mut self) {
        if let Some(work) = self.work.take()
            && !self.is_cancelled
        {
            spawn(async {
                work.await;
            });
        }
    }
}

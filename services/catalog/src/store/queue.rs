//! Threads with a bounded job queue: SQLite's writer, and the readers for statements that are too slow for a
//! worker.

use std::io;
use std::sync::mpsc::{self, Receiver, SyncSender, TrySendError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::sync::oneshot;

use super::StoreError;
use crate::clock;

/// A job for a thread that has a `C`.
type Job<C> = Box<dyn FnOnce(&mut C) + Send>;

/// Sends jobs to the threads.
pub(super) struct Queue<C> {
    jobs: SyncSender<Job<C>>,
}

impl<C> Clone for Queue<C> {
    fn clone(&self) -> Self {
        let jobs = self.jobs.clone();
        Self { jobs }
    }
}

/// The threads. They end when the last queue to them is dropped.
pub(super) struct Threads(Vec<JoinHandle<()>>);

impl Threads {
    /// Waits for the last job.
    pub(super) fn join(self) {
        for thread in self.0 {
            // A panicking thread has already printed its message.
            let _ = thread.join();
        }
    }
}

/// Starts a thread for each connection. If more than `waiting_max` jobs wait for a thread, further jobs are
/// refused.
pub(super) fn start<C: Send + 'static>(
    name: &str,
    connections: Vec<C>,
    waiting_max: usize,
) -> io::Result<(Queue<C>, Threads)> {
    let (jobs, arriving) = mpsc::sync_channel(waiting_max);
    let arriving = Arc::new(Mutex::new(arriving));
    let threads = connections.into_iter().map(|mut connection| {
        let arriving = Arc::clone(&arriving);
        let work = move || {
            while let Some(job) = next(&arriving) {
                job(&mut connection);
            }
        };
        thread::Builder::new().name(name.to_owned()).spawn(work)
    });
    let threads = threads.collect::<io::Result<Vec<_>>>()?;
    Ok((Queue { jobs }, Threads(threads)))
}

/// The next job. `None` if there will be no more jobs.
fn next<C>(arriving: &Mutex<Receiver<Job<C>>>) -> Option<Job<C>> {
    // One thread waits for a job and the other threads wait for the lock. Jobs run without the lock, so a
    // panic cannot leave an inconsistent state.
    let arriving = arriving.lock().unwrap_or_else(PoisonError::into_inner);
    arriving.recv().ok()
}

impl<C> Queue<C> {
    /// Runs `work` on a thread. `work` receives the rest of `time` after the wait.
    pub(super) async fn ask<T: Send + 'static>(
        &self,
        time: Duration,
        work: impl FnOnce(&mut C, Duration) -> T + Send + 'static,
    ) -> Result<T, StoreError> {
        let (answer, done) = oneshot::channel();
        let asked = clock::now();
        let job: Job<C> = Box::new(move |connection| {
            let left = time.saturating_sub(asked.elapsed());
            if answer.is_closed() {
                // The client has left. Jobs of a flood of such clients cost no work.
                return;
            }
            // The error "too slow" must also mean that the job will not run later.
            let outcome = (!left.is_zero()).then(|| work(connection, left));
            // The receiver is gone if the client left meanwhile. The work is already done.
            let _ = answer.send(outcome);
        });
        self.jobs.try_send(job).map_err(|error| match error {
            TrySendError::Full(_) => StoreError::Busy,
            TrySendError::Disconnected(_) => StoreError::Away,
        })?;
        let outcome = done.await.map_err(|_| StoreError::Away)?;
        outcome.ok_or(StoreError::TooSlow(time))
    }
}

//! Serving, from a bound port to the last connection.

use std::future::Future;
use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::task::Poll;

use tokio::runtime::LocalRuntime;
use tokio::signal::unix::{SignalKind, signal};

use crate::accept::accept;
use crate::connection_table::ConnectionTable;
use crate::listener::Listener;
use crate::worker::Worker;

/// Prints the address, assigns connections to workers until a stop signal, and returns when every worker is
/// done.
///
/// # Errors
/// Fails if signals or the listener cannot be set up.
///
/// # Panics
/// Panics if there is no worker.
pub fn serve(
    runtime: &LocalRuntime,
    listener: TcpListener,
    table: &Arc<ConnectionTable>,
    workers: Vec<Worker>,
) -> io::Result<()> {
    let address = listener.local_addr()?;
    runtime.block_on(async {
        // Before the address is printed: a process that waits for the line may stop the service immediately.
        let stopped = stop_signal()?;
        let scheme = scheme(workers.iter().any(Worker::is_secured));
        telemetry::announce(&format!("listening on {scheme}://{address}"));
        tracing::info!(%address, workers = workers.len(), "started");
        deal_out(listener, table, &workers, stopped).await
    })?;
    tracing::info!("stopping");
    Worker::finish_all(workers);
    tracing::info!("stopped");
    Ok(())
}

/// The scheme of a service's URLs.
#[must_use]
pub fn scheme(is_secured: bool) -> &'static str {
    if is_secured { "https" } else { "http" }
}

/// Completes at the first SIGTERM or SIGINT.
///
/// # Errors
/// Fails if the signal handlers cannot be installed.
pub fn stop_signal() -> io::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(std::future::poll_fn(move |task| {
        // Both are polled, so that either of them wakes the task.
        let terminated = terminate.poll_recv(task).is_ready();
        if terminated || interrupt.poll_recv(task).is_ready() {
            return Poll::Ready(());
        }
        Poll::Pending
    }))
}

/// Accepts until `stopped` and assigns connections to workers in turn. A single worker accepts itself.
async fn deal_out(
    listener: TcpListener,
    table: &Arc<ConnectionTable>,
    workers: &[Worker],
    stopped: impl Future<Output = ()>,
) -> io::Result<()> {
    crate::listener::prepare(&listener)?;
    if let [only] = workers {
        only.listen(listener);
        stopped.await;
        return Ok(());
    }
    let mut turns = workers.iter().cycle();
    let give = async |stream, slot| {
        let worker = turns.next().expect("there is at least one worker");
        worker.give(stream, slot);
    };
    accept(Listener::new(listener)?, table, give, stopped).await;
    Ok(())
}

//! Accepts connections, and pauses if the process has too many.

use std::future::Future;
use std::io;
use std::net::TcpStream;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use crate::connection_table::{ConnectionTable, Slot};
use crate::listener::Listener;

/// Pause after an error of `accept`.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Pause after a connection was accepted while nearly all places are taken.
const CROWD_PAUSE: Duration = Duration::from_millis(1);

/// Maximum number of pauses for workers that have not taken their connections. The workers may be busy, but
/// an endless wait would keep all clients out.
const CROWD_PAUSES_MAX: u32 = 100;

/// Logs an error of `accept`, and waits a moment.
pub async fn pause_after(table: &ConnectionTable, error: &io::Error) {
    // Most likely the process has no file descriptors left until connections end. Without the pause, `accept`
    // would fail in a busy loop.
    if table.accept_failed(error) {
        tokio::time::sleep(ACCEPT_PAUSE).await;
    }
}

/// Waits a moment if nearly all places are taken. The loop that accepts connections calls it.
///
/// During the pause, idle connections end and workers read the first requests of new connections. Clients
/// wait in the system's queue. Workers on a busy processor need longer for that. Without the pause, the next
/// client would find all places taken.
pub async fn pause_in_crowd(table: &ConnectionTable) {
    for _ in 0..CROWD_PAUSES_MAX {
        if !table.is_crowded() {
            return;
        }
        tokio::time::sleep(CROWD_PAUSE).await;
        if !table.has_arriving() {
            return;
        }
    }
}

/// Accepts and counts connections until `stopped`, and passes on the admitted ones. Then the listener is
/// closed.
///
/// Connections are counted here and not by the worker. A connection that waits to be counted has a file
/// descriptor, and a crowd of uncounted connections would use all descriptors.
pub async fn accept(
    listener: Listener,
    table: &Arc<ConnectionTable>,
    mut give: impl AsyncFnMut(TcpStream, Slot),
    stopped: impl Future<Output = ()>,
) {
    let mut stopped = pin!(stopped);
    let mut accepting = pin!(async {
        loop {
            match std::future::poll_fn(|task| listener.poll_accept(task)).await {
                Ok((stream, peer)) => {
                    // Refused connections are closed at once, before they reach a worker.
                    if let Ok(slot) = table.take(Some(peer.ip())) {
                        give(stream, slot.given()).await;
                    }
                    pause_in_crowd(table).await;
                }
                Err(error) => pause_after(table, &error).await,
            }
        }
    });
    std::future::poll_fn(|task| {
        // First, so that a flood of connections cannot delay the stop.
        if stopped.as_mut().poll(task).is_ready() {
            return Poll::Ready(());
        }
        accepting.as_mut().poll(task)
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::{Most, Timeouts};
    use crate::tracker::Tracker;

    fn pausing(table: &Arc<ConnectionTable>) -> bool {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap();
        let some = CROWD_PAUSE * 20;
        let pause = pause_in_crowd(table);
        runtime.block_on(async { tokio::time::timeout(some, pause).await.is_err() })
    }

    #[test]
    fn a_crowd_waits_for_a_worker_to_take_up_what_it_was_given() {
        let table = ConnectionTable::new(Most {
            total: 8,
            per_address: 8,
        });
        let slots: Vec<Slot> = (0..8).map(|_| table.take(None).unwrap().given()).collect();
        assert!(pausing(&table));
        let tracker = Tracker::new(Arc::clone(&table), Timeouts::default());
        let taken: Vec<_> = slots.into_iter().map(|slot| tracker.begin(slot)).collect();
        // All places are still taken. That is no reason to wait for long.
        assert!(!pausing(&table));
        drop(taken);
    }

    #[test]
    fn a_connection_that_is_lost_on_its_way_to_a_worker_is_not_waited_for() {
        let table = ConnectionTable::new(Most {
            total: 1,
            per_address: 1,
        });
        drop(table.take(None).unwrap().given());
        let _here = table.take(None).unwrap();
        assert!(!pausing(&table));
    }
}

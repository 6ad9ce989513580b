//! The connections of a worker, with their limits.
//!
//! `chassis` counts and tracks them as for the services on hyper. The HTTP libraries accept them and have
//! their own timers, which have less information. No library distinguishes clients, makes room for new
//! connections, or closes connections of clients that do not read.

use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use chassis::{ConnectionTable, Slot, Tracked, Tracker};
use tokio::sync::Mutex;

use crate::reply::Reply;
use crate::startup::Setup;

/// The connections of one worker. A handle, which is cheap to copy.
#[derive(Clone, Debug)]
pub struct Connections {
    table: Arc<ConnectionTable>,
    tracker: Tracker,
    /// Held while a new connection is admitted.
    door: Rc<Mutex<()>>,
}

impl Connections {
    /// Starts without connections. A client may take `head_timeout` for the head of a request.
    #[must_use]
    pub fn new(setup: &Setup, head_timeout: Duration) -> Self {
        let config = &setup.config;
        let limits = config.connections.limits(head_timeout, config.stop_timeout);
        Self {
            table: Arc::clone(&setup.table),
            tracker: Tracker::new(Arc::clone(&setup.table), limits.timeouts),
            door: Rc::default(),
        }
    }

    /// Begins to track a connection that was counted when it was accepted.
    #[must_use]
    pub fn watched(&self, slot: Slot) -> Tracked {
        self.tracker.begin(slot)
    }

    /// Takes a connection. `None` if too many are open, and the caller must close it.
    pub async fn begin(&self, peer: Option<IpAddr>) -> Option<Tracked> {
        // One at a time, because the library hands over many at once. If nearly all places are taken, idle
        // connections must end before the next new connection is admitted.
        let _door = self.door.lock().await;
        let tracked = self.tracker.begin(self.table.take(peer).ok()?);
        chassis::pause_in_crowd(&self.table).await;
        Some(tracked)
    }

    /// Sweeps the connections until the runtime ends.
    pub async fn watch(self) {
        self.tracker.watch().await;
    }

    /// Lets every connection finish its requests. Returns after the last connection has ended.
    pub async fn finish(&self) {
        self.tracker.finish().await;
    }
}

/// Waits for the turn of a request, computes its response, and records it.
pub async fn answered(
    tracked: &Tracked,
    method: &str,
    answer: impl Future<Output = Reply>,
) -> Reply {
    let exchange = tracked.http1_request();
    exchange.turn().await;
    let reply = answer.await;
    // The libraries omit the body of a response to HEAD.
    let is_written = method != "HEAD";
    exchange.handed(if is_written { reply.body.len() } else { 0 });
    reply
}

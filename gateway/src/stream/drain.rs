//! The time at which a response in several parts must end.

use std::pin::pin;
use std::rc::Rc;
use std::time::{Duration, Instant};

use futures_util::future::{Either, select};

use crate::process::beginning::Beginning;

/// The stop of a worker, for responses that still run. They must end shortly before the worker cuts their
/// connections.
#[derive(Debug, Default)]
pub(crate) struct Drain(Beginning<Option<Instant>>);

/// Time for the last part of a response before its connection is cut. At most a quarter of the drain time.
const LAST_PART_TIME: Duration = Duration::from_millis(500);

impl Drain {
    /// Begins now. The worker cuts connections after `limit`.
    pub(crate) fn begin(&self, now: Instant, limit: Duration) {
        let last_part = LAST_PART_TIME.min(limit / 4);
        self.0.begin(now.checked_add(limit - last_part));
    }

    /// Waits until the worker begins to stop. Returns the time at which responses must end.
    pub(crate) async fn begun(&self) -> Option<Instant> {
        self.0.begun().await
    }
}

/// The time limit of a response in several parts.
#[derive(Clone, Debug)]
pub(crate) struct Term {
    /// The end of the time for the whole request.
    pub(crate) deadline: Option<Instant>,
    /// The end of the worker.
    pub(crate) drain: Rc<Drain>,
}

/// The reason why a response must end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The limit of `traffic_shaping.router.timeout` has passed.
    TimedOut,
    /// The gateway stops, and its time to drain is nearly over.
    Stopping,
}

impl Term {
    /// Waits until the response must end.
    pub(crate) async fn over(&self) -> End {
        let late = until(self.deadline);
        let stopped = async { until(self.drain.begun().await).await };
        match select(pin!(late), pin!(stopped)).await {
            Either::Left(_) => End::TimedOut,
            Either::Right(_) => End::Stopping,
        }
    }
}

/// Waits until `time`. Never returns if it is `None`.
pub(crate) async fn until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time.into()).await,
        None => std::future::pending().await,
    }
}

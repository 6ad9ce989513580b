//! The time at which an answer in parts has to end.

use std::pin::pin;
use std::rc::Rc;
use std::time::{Duration, Instant};

use futures_util::future::{Either, select};

use crate::process::beginning::Beginning;

/// The end of a worker for the answers under way. They end shortly before the worker cuts their
/// connections.
#[derive(Debug, Default)]
pub(crate) struct Drain(Beginning<Option<Instant>>);

/// The time for the last part of an answer before its connection is cut. A quarter of the time to
/// drain if that is shorter.
const LAST_PART_TIME: Duration = Duration::from_millis(500);

impl Drain {
    /// Begins now. The worker cuts connections after `limit`.
    pub(crate) fn begin(&self, now: Instant, limit: Duration) {
        let last_part = LAST_PART_TIME.min(limit / 4);
        self.0.begin(now.checked_add(limit - last_part));
    }

    /// Waits until the worker begins to stop. Returns the time at which answers have to end.
    pub(crate) async fn begun(&self) -> Option<Instant> {
        self.0.begun().await
    }
}

/// The time that an answer in parts may take.
#[derive(Clone, Debug)]
pub(crate) struct Term {
    /// The end of the time for the whole request.
    pub(crate) deadline: Option<Instant>,
    /// The end of the worker.
    pub(crate) drain: Rc<Drain>,
}

/// The reason why an answer has to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// `traffic_shaping.router.timeout`.
    TimedOut,
    /// The gateway stops, and its time to drain is nearly over.
    Stopping,
}

impl Term {
    /// Waits until the answer has to end.
    pub(crate) async fn over(&self) -> End {
        let late = until(self.deadline);
        let stopped = async { until(self.drain.begun().await).await };
        match select(pin!(late), pin!(stopped)).await {
            Either::Left(_) => End::TimedOut,
            Either::Right(_) => End::Stopping,
        }
    }
}

/// Waits until a time. Waits for ever if there is none.
pub(crate) async fn until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time.into()).await,
        None => std::future::pending().await,
    }
}

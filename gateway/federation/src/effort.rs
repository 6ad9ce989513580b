//! Limits on the preparation of one operation, and ways to end it early.
//!
//! The planner checks its cancellation token during the search. The other phases do not, so the size of the
//! operation limits them. The gateway measures this size before they start.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hive_router_query_planner::utils::cancellation::{CancellationError, CancellationToken};

use crate::refusal::Refusal;

/// Maximum number of selections of a small operation, with fragments expanded. Most operations are small: the
/// largest operation of a page or an app has a few hundred.
const QUICK_SELECTIONS: u64 = 1_000;

/// Planning time for a small operation.
const QUICK_TIME: Duration = Duration::from_millis(100);

/// Signals that no client waits for an operation any more. Clones share the signal.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<State>);

#[derive(Debug, Default)]
struct State {
    is_asked: AtomicBool,
    running: Mutex<Option<Arc<CancellationToken>>>,
}

impl Stop {
    /// Requests the end of the work.
    pub fn ask(&self) {
        let running = self.running();
        // Under the lock. Work that starts now either reads the signal or is cancelled here.
        self.0.is_asked.store(true, Ordering::Relaxed);
        if let Some(token) = &*running {
            token.cancel();
        }
    }

    /// True after a call of [`Stop::ask`].
    #[must_use]
    pub fn is_asked(&self) -> bool {
        // Relaxed, because `token` reads it under the lock. Other readers may see it a little late.
        self.0.is_asked.load(Ordering::Relaxed)
    }

    fn token(&self, time: Duration) -> Arc<CancellationToken> {
        let token = Arc::new(CancellationToken::with_timeout(time));
        let mut running = self.running();
        if self.is_asked() {
            token.cancel();
        }
        *running = Some(Arc::clone(&token));
        token
    }

    fn running(&self) -> std::sync::MutexGuard<'_, Option<Arc<CancellationToken>>> {
        // A token is replaced in one step, so a poisoned lock still contains a valid token.
        let running = self.0.running.lock();
        running.unwrap_or_else(PoisonError::into_inner)
    }
}

/// Limits on the work for one operation.
#[derive(Clone, Debug)]
pub struct Effort {
    selections_max: u64,
    time: Duration,
    stop: Stop,
}

impl Effort {
    /// The limits for a small operation. A larger operation is refused with [`Refusal::wants_more`].
    #[must_use]
    pub fn quick(full: Duration, stop: Stop) -> Self {
        Effort {
            selections_max: QUICK_SELECTIONS,
            time: QUICK_TIME.min(full),
            stop,
        }
    }

    /// The full time limit. An operation that takes longer is refused permanently.
    #[must_use]
    pub fn full(time: Duration, stop: Stop) -> Self {
        Effort {
            selections_max: u64::MAX,
            time,
            stop,
        }
    }

    pub(crate) fn start(&self) -> Work<'_> {
        Work {
            effort: self,
            token: self.stop.token(self.time),
        }
    }

    fn is_full(&self) -> bool {
        self.selections_max == u64::MAX
    }
}

/// The work on one operation, with its cancellation token.
pub(crate) struct Work<'a> {
    effort: &'a Effort,
    pub(crate) token: Arc<CancellationToken>,
}

impl Work<'_> {
    /// Refuses an operation with more selections than this effort allows.
    pub(crate) fn admit(&self, selections: u64) -> Result<(), Refusal> {
        if selections > self.effort.selections_max {
            return Err(Refusal::more());
        }
        Ok(())
    }

    /// Refuses an operation after its time limit, or if no client waits for it.
    pub(crate) fn go_on(&self) -> Result<(), Refusal> {
        match self.token.bail_if_cancelled() {
            Ok(()) => Ok(()),
            Err(CancellationError::Cancelled) => Err(Refusal::stopped()),
            Err(CancellationError::TimedOut) if self.effort.is_full() => {
                Err(Refusal::out_of_time(self.effort.time))
            }
            Err(CancellationError::TimedOut) => Err(Refusal::more()),
        }
    }

    /// Like [`Work::go_on`], for an optional step. If the full time limit is over, the work continues without
    /// this step.
    pub(crate) fn go_on_without(&self) -> Result<(), Refusal> {
        match self.token.bail_if_cancelled() {
            Err(CancellationError::TimedOut) if self.effort.is_full() => Ok(()),
            _ => self.go_on(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_left_out_is_tried_again_with_the_full_effort_first() {
        let begun = |effort: &Effort| effort.start().go_on_without();
        let stop = Stop::default();
        let quick = Effort::quick(Duration::ZERO, stop.clone());
        assert!(begun(&quick).unwrap_err().wants_more());
        let full = Effort::full(Duration::ZERO, stop.clone());
        assert!(full.start().go_on().is_err());
        assert_eq!(begun(&full), Ok(()));
        stop.ask();
        let long = Effort::full(Duration::from_secs(3600), stop);
        assert_eq!(begun(&long), Err(Refusal::stopped()));
    }

    #[test]
    fn stopping_reaches_work_that_runs_and_work_that_starts_later() {
        let stop = Stop::default();
        let effort = Effort::full(Duration::from_secs(3600), stop.clone());
        let running = effort.start();
        assert!(running.go_on().is_ok());
        stop.ask();
        assert_eq!(running.go_on(), Err(Refusal::stopped()));
        assert_eq!(effort.start().go_on(), Err(Refusal::stopped()));
    }

    #[test]
    fn only_the_full_effort_refuses_for_good() {
        let quick = Effort::quick(Duration::ZERO, Stop::default());
        assert!(quick.start().go_on().unwrap_err().wants_more());
        assert!(quick.start().admit(QUICK_SELECTIONS).is_ok());
        assert!(quick.start().admit(QUICK_SELECTIONS + 1).is_err());
        let full = Effort::full(Duration::ZERO, Stop::default());
        let refusal = full.start().go_on().unwrap_err();
        assert!(!refusal.wants_more() && refusal.internal);
        assert!(full.start().admit(u64::MAX).is_ok());
    }
}

//! Plans operations on separate threads that all workers share.
//!
//! Each text is first planned with a small effort. Operations that exceed it wait in a second queue. At least
//! one thread never takes jobs from the second queue. So a client with expensive operations delays only
//! expensive operations. Both queues together are bounded. A job without a waiting client is removed.

use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::thread;
use std::time::Duration;

use gateway_federation::{Effort, Grants, OperationRequest, Overrides, Stop};
use tokio::sync::oneshot;

use crate::graphql::engine::{Engine, Outcome};
use crate::process::clock;
use crate::process::metrics::Planning as Counts;

/// Minimum number of threads: one for large jobs, one for small jobs.
const THREADS_MIN: usize = 2;

tokio::task_local! {
    /// Set while work continues after its client has disconnected.
    static CLIENT_IS_GONE: ();
}

/// Marks work as having no client. Such work does not wait for a plan.
pub(crate) async fn without_client(work: impl Future<Output = ()>) {
    CLIENT_IS_GONE.scope((), work).await;
}

/// The reason why there is no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotPlanned {
    /// The queue is full, or the operation waited too long.
    Overloaded,
    /// The client has disconnected.
    ClientGone,
    /// The planner panicked, or the gateway is stopping.
    Failed,
}

/// An operation to plan.
pub(crate) struct Order {
    pub(crate) engine: Engine,
    pub(crate) query: String,
    pub(crate) operation_name: Option<String>,
    pub(crate) overrides: Overrides,
    pub(crate) grants: Option<Grants>,
}

/// The planning limits of a configuration.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allowed {
    /// Maximum number of waiting orders.
    pub(crate) queue_size: usize,
    /// Time limit for waiting, and again for the work itself.
    pub(crate) timeout: Duration,
}

/// The planning threads. After a drop, they end when their current jobs are done.
pub(crate) struct Planning(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    /// Notified when there is work for one more thread.
    arrived: Condvar,
    counts: Arc<Counts>,
    /// Maximum number of threads that work on large jobs at a time.
    large_max: usize,
}

#[derive(Default)]
struct State {
    small: VecDeque<Job>,
    large: VecDeque<Job>,
    large_running: usize,
    last_id: u64,
    is_over: bool,
}

struct Job {
    id: u64,
    order: Order,
    timeout: Duration,
    stop: Stop,
    reply: oneshot::Sender<Outcome>,
}

impl Planning {
    /// Starts `threads` threads, but at least two.
    pub(crate) fn start(threads: usize, counts: Arc<Counts>) -> io::Result<Self> {
        let threads = threads.max(THREADS_MIN);
        let planning = Self::without_threads(threads - 1, counts);
        for number in 0..threads {
            let shared = Arc::clone(&planning.0);
            let work = move || while shared.work_once() {};
            let name = format!("planning-{number}");
            thread::Builder::new().name(name).spawn(work)?;
        }
        Ok(planning)
    }

    fn without_threads(large_max: usize, counts: Arc<Counts>) -> Self {
        Self(Arc::new(Shared {
            state: Mutex::default(),
            arrived: Condvar::new(),
            counts,
            large_max,
        }))
    }

    /// Number of waiting operations.
    pub(crate) fn queued(&self) -> usize {
        self.0.lock().queued()
    }

    /// Waits for the planned operation or its rejection.
    pub(crate) async fn plan(&self, order: Order, allowed: Allowed) -> Result<Outcome, NotPlanned> {
        let (mut ticket, reply) = self.submit(order, allowed)?;
        let mut answer = pin!(while_wanted(reply));
        // The first limit is for waiting, the second for the work. The second is doubled for the parts of the
        // work that cannot be interrupted.
        for limit in [allowed.timeout, allowed.timeout.saturating_mul(2)] {
            if let Ok(answer) = tokio::time::timeout(limit, answer.as_mut()).await {
                ticket.is_over = !matches!(answer, Err(NotPlanned::ClientGone));
                return answer;
            }
            if ticket.leave_queue() {
                self.0.counts.shed();
                return Err(NotPlanned::Overloaded);
            }
        }
        // The work continues, so that its result reaches the cache.
        ticket.is_over = true;
        self.0.counts.shed();
        Err(NotPlanned::Overloaded)
    }

    fn submit(
        &self,
        order: Order,
        allowed: Allowed,
    ) -> Result<(Ticket, oneshot::Receiver<Outcome>), NotPlanned> {
        let (sender, reply) = oneshot::channel();
        let stop = Stop::default();
        let mut state = self.0.lock();
        if state.queued() >= allowed.queue_size {
            drop(state);
            self.0.counts.shed();
            return Err(NotPlanned::Overloaded);
        }
        state.last_id += 1;
        let id = state.last_id;
        state.small.push_back(Job {
            id,
            order,
            timeout: allowed.timeout,
            stop: stop.clone(),
            reply: sender,
        });
        drop(state);
        self.0.arrived.notify_one();
        let ticket = Ticket {
            shared: Arc::clone(&self.0),
            id,
            stop,
            is_over: false,
        };
        Ok((ticket, reply))
    }
}

impl Drop for Planning {
    fn drop(&mut self) {
        self.0.lock().is_over = true;
        self.0.arrived.notify_all();
    }
}

/// The reply, or an error if the client has disconnected.
async fn while_wanted(mut reply: oneshot::Receiver<Outcome>) -> Result<Outcome, NotPlanned> {
    std::future::poll_fn(|context| {
        // Checked at each poll, because the work may have moved to a task without a client since the last
        // one.
        if CLIENT_IS_GONE.try_with(|()| ()).is_ok() {
            return Poll::Ready(Err(NotPlanned::ClientGone));
        }
        Pin::new(&mut reply)
            .poll(context)
            .map_err(|_| NotPlanned::Failed)
    })
    .await
}

/// The handle of a job. Dropping it before the job is done cancels the job.
struct Ticket {
    shared: Arc<Shared>,
    id: u64,
    stop: Stop,
    is_over: bool,
}

impl Ticket {
    /// Removes the job from its queue. Returns true if it was in a queue.
    fn leave_queue(&mut self) -> bool {
        let job = self.shared.lock().take(self.id);
        self.is_over |= job.is_some();
        job.is_some()
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if !self.is_over && !self.leave_queue() {
            self.stop.ask();
        }
    }
}

impl State {
    fn queued(&self) -> usize {
        self.small.len() + self.large.len()
    }

    fn take(&mut self, id: u64) -> Option<Job> {
        let queues = [&mut self.small, &mut self.large];
        queues.into_iter().find_map(|queue| {
            let place = queue.iter().position(|job| job.id == id)?;
            queue.remove(place)
        })
    }

    /// The next job, and true if it is large.
    fn next(&mut self, large_max: usize) -> Option<(Job, bool)> {
        // One large job may always run, otherwise a stream of small jobs would block it for ever. More large
        // jobs run only if no small job waits.
        let takes_large =
            self.large_running == 0 || (self.small.is_empty() && self.large_running < large_max);
        if takes_large && let Some(job) = self.large.pop_front() {
            self.large_running += 1;
            return Some((job, true));
        }
        Some((self.small.pop_front()?, false))
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // No code panics while it holds this lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a job and does it. Returns false at the end of the planning threads.
    fn work_once(&self) -> bool {
        let mut state = self.lock();
        let (job, is_large) = loop {
            if state.is_over {
                return false;
            }
            if let Some(next) = state.next(self.large_max) {
                break next;
            }
            state = self
                .arrived
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        };
        drop(state);
        let start = clock::now();
        // The planner catches its own panics. This catches all other panics, so that no job ends a thread.
        let outcome = catch_unwind(AssertUnwindSafe(|| job.make(is_large)));
        self.counts.worked(clock::now().duration_since(start));
        let mut state = self.lock();
        state.large_running -= usize::from(is_large);
        match outcome {
            Ok(Err(refusal)) if refusal.wants_more() && !job.stop.is_asked() => {
                state.large.push_back(job);
            }
            Ok(outcome) => {
                drop(state);
                // Fails if the client no longer waits.
                let _ = job.reply.send(outcome);
            }
            Err(_) => log::error!("planning panicked"),
        }
        // A large job that had to wait for this one may run now.
        self.arrived.notify_one();
        true
    }
}

impl Job {
    fn make(&self, is_large: bool) -> Outcome {
        let stop = self.stop.clone();
        let effort = if is_large {
            Effort::full(self.timeout, stop)
        } else {
            Effort::quick(self.timeout, stop)
        };
        let requested = OperationRequest {
            query: &self.order.query,
            operation_name: self.order.operation_name.as_deref(),
            overrides: &self.order.overrides,
            grants: self.order.grants.as_ref(),
        };
        self.order.engine.make(&requested, &effort)
    }
}

#[cfg(test)]
mod tests;

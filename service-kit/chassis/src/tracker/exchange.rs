//! One request on a connection: its turn to start, its records, and work that may outlive it.

use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use super::{Order, Protocol, State};
use crate::connection_table::Cause;

/// Number of requests that a client may cancel beyond the number that were answered.
const RESETS_MAX: u32 = 100;
/// Ticks after which a client may cancel without being counted, because it has waited long.
const PATIENCE_TICKS: u32 = 10;

/// A request and its response, until the system or HTTP/2 has accepted the last byte.
#[derive(Debug)]
pub struct Exchange {
    pub(super) state: Rc<State>,
    /// The tick at which the request began.
    began: u32,
    is_answered: bool,
}

impl Exchange {
    pub(super) fn begin(state: &Rc<State>) -> Self {
        Self {
            began: state.registry.now(),
            state: Rc::clone(state),
            is_answered: false,
        }
    }

    /// Waits for the turn of this request.
    ///
    /// It lets other connections go first if this connection was already served in its current turn. It lets
    /// other clients go first if a long pass already started a request of this client.
    ///
    /// HTTP/1.1 servers read one request after another while more requests are buffered. Without turns, a
    /// client that pipelines many requests would get all its responses before any other client. HTTP/2
    /// streams are separate tasks.
    pub async fn turn(&self) {
        let state = &self.state;
        // A loop, because hyper may poll again in the same turn.
        while state.was_served_in_turn() {
            state.next_pass().await;
        }
        let (passes, client) = (&state.registry.passes, state.slot.network());
        if !passes.begins(client) {
            let line = passes.line(client);
            let _first = line.first().await;
            while !passes.admits(client) {
                state.next_pass().await;
            }
        }
        state.served.set(Some(state.turn.get()));
    }

    /// Records work for this request. The work lasts until the returned guard is dropped.
    #[must_use]
    pub fn work(&self) -> Work {
        let working = &self.state.working;
        working.set(working.get() + 1);
        Work(Rc::clone(&self.state))
    }

    /// Number of requests of this connection in progress, including cancelled requests.
    #[must_use]
    pub fn working(&self) -> u32 {
        self.state.working.get()
    }

    /// Hands the response over to a server that writes it itself, with a body of `bytes` bytes.
    ///
    /// The server must write all of them, or the connection never counts as idle again.
    pub fn handed(mut self, bytes: usize) {
        self.note_answer();
        let state = &self.state;
        if state.held.get() == 0 {
            state.taken.set(state.registry.now());
        }
        state.held.set(state.held.get() + bytes);
        state.registry.add_unsent(bytes);
        if let Some(gauge) = &*state.gauge.borrow() {
            gauge.handed(bytes);
        }
    }

    pub(super) fn note_answer(&mut self) {
        self.is_answered = true;
        let answered = &self.state.answered;
        answered.set(answered.get().saturating_add(1));
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        let state = &self.state;
        state.ended();
        // The clock is read only for the few requests without a response.
        let waited = || state.registry.now().wrapping_sub(self.began);
        if self.is_answered || waited() > PATIENCE_TICKS {
            return;
        }
        let cancelled = state.cancelled.get().saturating_add(1);
        state.cancelled.set(cancelled);
        // Each cancelled request costs a client a few bytes and the service the work of a whole request.
        if cancelled > RESETS_MAX.saturating_add(state.answered.get()) {
            state.end(Order::Drop, Cause::Resets);
        }
    }
}

/// Work for a request, which may outlive its connection. The connection counts as open until it ends.
#[derive(Debug)]
pub struct Work(Rc<State>);

impl Drop for Work {
    fn drop(&mut self) {
        self.0.working.set(self.0.working.get() - 1);
    }
}

impl State {
    /// True if a request was admitted in the current turn of this connection.
    fn was_served_in_turn(&self) -> bool {
        self.protocol.get() == Protocol::Http1 && self.served.get() == Some(self.turn.get())
    }

    /// Waits until the next pass begins.
    async fn next_pass(&self) {
        let passes = &self.registry.passes;
        let pass = passes.current();
        self.next_turn().await;
        passes.looked(pass);
    }

    /// Waits until the runtime has polled for events of other connections. A task that only wakes itself
    /// would prevent that poll.
    async fn next_turn(&self) {
        let turn = self.turn.get();
        loop {
            runtime_looked().await;
            // Servers may poll the work for a request again although its waker was not called. actix always
            // does. No turn has passed in that case. HTTP/2 streams have no turns of their own.
            if self.protocol.get() != Protocol::Http1 || self.turn.get() != turn {
                return;
            }
        }
    }
}

/// Waits until the runtime has polled for events.
///
/// `yield_now` alone is ready at any second poll. A task that wakes itself polls it again before the runtime
/// has polled for events. The task of actix does so while a client has sent a lot of data.
async fn runtime_looked() {
    let mut yielding = pin!(tokio::task::yield_now());
    let mut look: Option<Arc<Look>> = None;
    poll_fn(|task| {
        if let Some(look) = &look {
            return match look.is_over.load(Ordering::Relaxed) {
                true => Poll::Ready(()),
                false => Poll::Pending,
            };
        }
        let own = look.insert(Arc::new(Look {
            is_over: AtomicBool::new(false),
            task: task.waker().clone(),
        }));
        let waker = Waker::from(Arc::clone(own));
        // The runtime wakes it after it has polled for events.
        yielding.as_mut().poll(&mut Context::from_waker(&waker))
    })
    .await;
}

/// A waker that distinguishes a poll of the runtime for events from other wake-ups of a task.
struct Look {
    is_over: AtomicBool,
    task: Waker,
}

impl Wake for Look {
    fn wake(self: Arc<Self>) {
        self.is_over.store(true, Ordering::Relaxed);
        self.task.wake_by_ref();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_that_wakes_itself_does_not_count_as_a_look_of_the_runtime() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .event_interval(31)
            .build()
            .unwrap();
        let polls = tokio::task::LocalSet::new().block_on(&runtime, async {
            let task = tokio::task::spawn_local(async {
                let mut looked = pin!(runtime_looked());
                let mut polls = 0;
                poll_fn(|task| {
                    polls += 1;
                    task.waker().wake_by_ref();
                    looked.as_mut().poll(task)
                })
                .await;
                polls
            });
            task.await.unwrap()
        });
        assert!(polls > 10, "{polls}");
    }
}

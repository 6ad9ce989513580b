//! Accepts and counts connections before they reach a worker of ntex.
//!
//! ntex's own acceptor takes all queued connections and passes them to its workers through unbounded queues.
//! They would be counted only there. Each of them has a file descriptor, so a crowd of clients would use all
//! descriptors. ntex would then accept no connection for half a second.

use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use chassis::{ConnectionTable, Listener};
use ntex::service::ServiceFactory;
use ntex::time::{Millis, sleep};
use ntex_server::{Server, ServerConfiguration};
use tokio::sync::watch;

use crate::connections::Accepted;

/// The state of the acceptor, as ntex reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// No worker accepts connections yet, or again.
    Waiting,
    Accepting,
    Stopped,
}

/// Interval between checks that all workers have finished.
const LOOK: Millis = Millis(20);

/// Receives ntex's reports if its workers accept connections. A handle, which is cheap to copy.
#[derive(Clone, Debug)]
pub(crate) struct Door {
    state: watch::Sender<State>,
    working: Working,
}

/// Number of running workers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Working(Arc<AtomicUsize>);

impl Working {
    pub(crate) fn begins(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a worker that has no connection left.
    pub(crate) fn ends(&self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Door {
    /// Starts in the waiting state, because no worker runs yet.
    pub(crate) fn new() -> Self {
        Self {
            state: watch::Sender::new(State::Waiting),
            working: Working::default(),
        }
    }

    /// The counter of running workers.
    pub(crate) fn working(&self) -> &Working {
        &self.working
    }

    /// Waits until the server stops and all workers have finished.
    ///
    /// The library also waits for its workers. But it sometimes misses a worker's message from another
    /// thread, and then waits for its whole timeout.
    pub(crate) async fn finished(&self) {
        let mut told = self.state.subscribe();
        // An error is also the end: no sender is left.
        let _ = told.wait_for(|it| *it == State::Stopped).await;
        // The stopping code waits until there is no receiver.
        drop(told);
        while self.working.0.load(Ordering::Relaxed) > 0 {
            sleep(LOOK).await;
        }
    }

    fn tell(&self, told: State) {
        self.state.send_if_modified(|state| {
            let is_news = *state != State::Stopped && *state != told;
            if is_news {
                *state = told;
            }
            is_news
        });
    }

    /// Accepts connections until the server stops.
    pub(crate) fn accept(
        &self,
        listener: TcpListener,
        table: Arc<ConnectionTable>,
        server: Server<Accepted>,
    ) -> io::Result<impl Future<Output = ()> + use<>> {
        let listener = Listener::new(listener)?;
        let (mut told, mut ended) = (self.state.subscribe(), self.state.subscribe());
        let give = async move |stream, slot| {
            let mut accepted = Accepted { stream, slot };
            // The server refuses connections while no worker accepts them, for instance before the first
            // workers run.
            while let Err(refused) = server.process(accepted) {
                accepted = refused;
                let state = told.wait_for(|it| *it != State::Waiting).await;
                if !state.is_ok_and(|it| *it == State::Accepting) {
                    return;
                }
            }
        };
        Ok(async move {
            let stopped = async {
                // An error is also the end: no sender is left.
                let _ = ended.wait_for(|it| *it == State::Stopped).await;
            };
            chassis::accept(listener, &table, give, stopped).await;
        })
    }
}

/// Creates the workers, and receives ntex's reports about their state.
#[derive(Clone)]
pub(crate) struct Workers<M> {
    make: M,
    door: Door,
}

impl<M> Workers<M> {
    /// Each worker calls `make` once.
    pub(crate) fn new(make: M, door: Door) -> Self {
        Self { make, door }
    }
}

impl<M, F> ServerConfiguration for Workers<M>
where
    M: Fn() -> F + Clone + Send + 'static,
    F: ServiceFactory<Accepted> + 'static,
{
    type Item = Accepted;
    type Factory = F;

    async fn create(&self) -> Result<F, ()> {
        Ok((self.make)())
    }

    fn paused(&self) {
        self.door.tell(State::Waiting);
    }

    fn resumed(&self) {
        self.door.tell(State::Accepting);
    }

    fn terminate(&self) {
        self.door.tell(State::Stopped);
    }

    async fn stop(&self) {
        self.door.tell(State::Stopped);
        // Waits until the listener is closed.
        self.door.state.closed().await;
    }
}

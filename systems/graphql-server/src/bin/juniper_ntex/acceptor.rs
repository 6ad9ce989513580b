//! Accepts connections and counts them before a worker of ntex hears of them.
//!
//! ntex's own acceptor takes all that the system has queued, and hands them to its workers through queues
//! without a bound, where they wait to be counted. Each of them has a file descriptor, so a crowd of
//! clients used all of them up, and ntex then accepts nobody for half a second.

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

/// What the acceptor has been told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// No worker takes connections.
    Waiting,
    Accepting,
    Stopped,
}

/// How often it is looked whether all workers have finished.
const LOOK: Millis = Millis(20);

/// Where ntex says whether its workers take connections. A handle, which is cheap to copy.
#[derive(Clone, Debug)]
pub(crate) struct Door {
    state: watch::Sender<State>,
    working: Working,
}

/// How many workers are up.
#[derive(Clone, Debug, Default)]
pub(crate) struct Working(Arc<AtomicUsize>);

impl Working {
    pub(crate) fn begins(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// It has no connection left.
    pub(crate) fn ends(&self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Door {
    /// Closed: no worker is up yet.
    pub(crate) fn new() -> Self {
        Self {
            state: watch::Sender::new(State::Waiting),
            working: Working::default(),
        }
    }

    /// Where workers say that they are up.
    pub(crate) fn working(&self) -> &Working {
        &self.working
    }

    /// Waits until the door is shut for good and all workers have finished.
    ///
    /// The library waits for them as well, but misses now and then what a worker tells it from another
    /// thread; then it waits for as long as it may.
    pub(crate) async fn finished(&self) {
        let mut told = self.state.subscribe();
        // An error is the end as well: there is nobody left to tell.
        let _ = told.wait_for(|it| *it == State::Stopped).await;
        // Who stops waits until nobody listens.
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

    /// Accepts until the door is shut for good.
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
            // Refused while no worker takes any, as when the first are not up yet.
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
                // An error is the end as well: there is nobody left to tell.
                let _ = ended.wait_for(|it| *it == State::Stopped).await;
            };
            chassis::accept(listener, &table, give, stopped).await;
        })
    }
}

/// What makes the workers, and hears from ntex how they do.
#[derive(Clone)]
pub(crate) struct Workers<M> {
    make: M,
    door: Door,
}

impl<M> Workers<M> {
    /// `make` is called once by each worker.
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
        // Until the listener is closed.
        self.door.state.closed().await;
    }
}

//! What happens to a fetch before its extensions: the rate limit, and the deduplication of equal
//! queries.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use bytes::Bytes;
use gateway_extensions::{Exchange, SubgraphCall, SubgraphOutcome};
use gateway_federation::{Fetch, GraphqlError, OperationKind, SubgraphAnswer, SubgraphRequest};
use http::HeaderMap;
use tokio::sync::OnceCell;

use crate::clock;
use crate::serving::Serving;

/// The subgraphs as one request of a client sees them.
pub(crate) struct Subgraphs<'a> {
    serving: &'a Serving,
    exchange: &'a Exchange,
}

impl<'a> Subgraphs<'a> {
    pub(crate) fn new(serving: &'a Serving, exchange: &'a Exchange) -> Self {
        Self { serving, exchange }
    }

    async fn send(&self, request: &SubgraphRequest<'_>) -> SubgraphAnswer {
        let call = SubgraphCall {
            body: request.body.clone(),
            is_query: request.kind == OperationKind::Query,
        };
        let extensions = &self.serving.extensions;
        answer(
            extensions
                .fetch(request.subgraph, self.exchange, call)
                .await,
        )
    }
}

impl Fetch for Subgraphs<'_> {
    async fn fetch(&self, request: SubgraphRequest<'_>) -> SubgraphAnswer {
        let shaping = &self.serving.generation.subgraphs[request.subgraph];
        if let Some(rate) = &shaping.rate
            && !rate.admits(clock::now())
        {
            let message = "Your request has been rate limited";
            return SubgraphAnswer::from_error(GraphqlError::new(message, "REQUEST_RATE_LIMITED"));
        }
        // A mutation is never shared: two clients that ask for the same change want it twice.
        if !shaping.deduplicates || request.kind != OperationKind::Query {
            return self.send(&request).await;
        }
        let key = Key {
            subgraph: request.subgraph,
            body: request.body.clone(),
            headers: shaping
                .depends_on_client
                // The client's headers as they arrived. What extensions make of them is not known
                // yet, but depends only on them.
                .then(|| text_of(&self.exchange.client.headers)),
        };
        // Boxed: `OnceCell` keeps a future in several places while it waits. Unboxed, it made the work
        // of every request 10 KiB larger, shared or not, and all of that is moved to the heap.
        let send = Box::pin(self.send(&request));
        self.serving.flights.join(key, send).await
    }

    async fn give_way(&self) {
        // The runtime looks at sockets and timers before it comes back, which waking the task at
        // once would put off.
        tokio::task::yield_now().await;
    }
}

fn answer(outcome: SubgraphOutcome) -> SubgraphAnswer {
    let errors = outcome.problems.into_iter().map(|problem| GraphqlError {
        message: problem.message,
        extensions: problem.extensions,
        ..GraphqlError::default()
    });
    SubgraphAnswer {
        body: outcome.body,
        errors: errors.collect(),
    }
}

fn text_of(headers: &HeaderMap) -> Vec<u8> {
    let mut text = Vec::new();
    for (name, value) in headers {
        text.extend_from_slice(name.as_str().as_bytes());
        text.push(b':');
        text.extend_from_slice(value.as_bytes());
        text.push(b'\n');
    }
    text
}

/// What makes two fetches equal: the requests they send are equal.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    subgraph: usize,
    body: Bytes,
    headers: Option<Vec<u8>>,
}

/// The fetches of one worker that are under way, where equal ones are sent once.
#[derive(Debug, Default)]
pub(crate) struct Flights {
    cells: RefCell<HashMap<Key, Rc<OnceCell<SubgraphAnswer>>>>,
}

impl Flights {
    /// The answer to a fetch: from `send`, or from an equal fetch that is under way. When the
    /// client whose request sent it disconnects, another waiting request sends it again.
    async fn join(&self, key: Key, send: impl Future<Output = SubgraphAnswer>) -> SubgraphAnswer {
        let cell = Rc::clone(self.cells.borrow_mut().entry(key.clone()).or_default());
        // Two: the table's and ours.
        if Rc::strong_count(&cell) > 2 {
            log::debug!("a fetch joins an equal one");
        }
        // Before the wait, so that a request that is dropped in the middle removes its entry as
        // well.
        let leaving = LeaveOnDrop {
            flights: self,
            key,
            cell,
        };
        leaving.cell.get_or_init(|| send).await.clone()
    }
}

/// Removes a fetch from those under way when its answer has arrived or no request waits for it.
struct LeaveOnDrop<'a> {
    flights: &'a Flights,
    key: Key,
    cell: Rc<OnceCell<SubgraphAnswer>>,
}

impl Drop for LeaveOnDrop<'_> {
    fn drop(&mut self) {
        let mut cells = self.flights.cells.borrow_mut();
        // Two: the table's and ours.
        let is_over = self.cell.initialized() || Rc::strong_count(&self.cell) <= 2;
        let is_ours = cells
            .get(&self.key)
            .is_some_and(|cell| Rc::ptr_eq(cell, &self.cell));
        if is_over && is_ours {
            // Not ours: an equal fetch that began after this one was answered has the entry.
            cells.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn key(body: &'static str) -> Key {
        Key {
            subgraph: 0,
            body: Bytes::from_static(body.as_bytes()),
            headers: None,
        }
    }

    fn run(future: impl Future<Output = ()>) {
        tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap()
            .block_on(future);
    }

    #[test]
    fn equal_fetches_under_way_are_sent_once() {
        run(async {
            let (flights, sent) = (Flights::default(), Cell::new(0));
            let send = || async {
                sent.set(sent.get() + 1);
                tokio::task::yield_now().await;
                SubgraphAnswer::from_body("x")
            };
            let fetches = [
                flights.join(key("a"), send()),
                flights.join(key("a"), send()),
                flights.join(key("b"), send()),
            ];
            let mut fetches = fetches.map(Box::pin);
            // The first poll of each joins; then they are awaited in turn.
            std::future::poll_fn(|cx| {
                for fetch in &mut fetches {
                    let _ = fetch.as_mut().poll(cx);
                }
                std::task::Poll::Ready(())
            })
            .await;
            for fetch in fetches {
                assert_eq!(fetch.await.body, "x");
            }
            assert_eq!(sent.get(), 2);
            assert!(flights.cells.borrow().is_empty());
            flights.join(key("a"), send()).await;
            assert_eq!(sent.get(), 3);
        });
    }

    #[test]
    fn a_fetch_whose_client_went_away_leaves_nothing_behind() {
        run(async {
            let flights = Flights::default();
            let never = flights.join(key("a"), std::future::pending());
            let mut never = Box::pin(never);
            std::future::poll_fn(|cx| {
                assert!(never.as_mut().poll(cx).is_pending());
                std::task::Poll::Ready(())
            })
            .await;
            assert_eq!(flights.cells.borrow().len(), 1);
            drop(never);
            assert!(flights.cells.borrow().is_empty());
        });
    }
}

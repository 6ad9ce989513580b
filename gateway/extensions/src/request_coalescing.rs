//! Merges identical in-flight queries to one subgraph into one request.

use std::cell::RefCell;
use std::collections::HashMap;
use std::pin::pin;
use std::rc::Rc;

use tokio::sync::OnceCell;

use crate::request_key::RequestKey;

/// The in-flight requests to one subgraph.
#[derive(Debug)]
pub(crate) struct RequestCoalescing<T> {
    cells: RefCell<HashMap<RequestKey, Rc<OnceCell<T>>>>,
}

impl<T> Default for RequestCoalescing<T> {
    fn default() -> Self {
        Self {
            cells: RefCell::default(),
        }
    }
}

impl<T: Clone> RequestCoalescing<T> {
    /// The response to a request: from `send`, or from an identical request in flight. If the client of the
    /// sending request disconnects, another waiting request sends again. A response that is not `is_for_all`
    /// belongs to the sending request alone. The waiting requests then send their own.
    pub(crate) async fn join(
        &self,
        key: RequestKey,
        is_for_all: impl FnOnce(&T) -> bool,
        send: impl Future<Output = T>,
    ) -> T {
        let cell = Rc::clone(self.cells.borrow_mut().entry(key.clone()).or_default());
        // Two references: the table's and ours.
        if Rc::strong_count(&cell) > 2 {
            log::debug!("a fetch joins an equal one");
        }
        // Created before the wait, so that a request that is dropped while it waits also removes its entry.
        let leaving = LeaveOnDrop {
            in_flight: self,
            key,
            cell,
        };
        let mut send = pin!(send);
        let mut is_own = false;
        let answer = leaving
            .cell
            .get_or_init(|| {
                is_own = true;
                send.as_mut()
            })
            .await;
        if is_own || is_for_all(answer) {
            return answer.clone();
        }
        drop(leaving);
        log::debug!(
            "a fetch that joined another is sent by itself, because the answer is for one client"
        );
        send.await
    }
}

/// Removes a request from the table when its response has arrived or no request waits for it.
struct LeaveOnDrop<'a, T> {
    in_flight: &'a RequestCoalescing<T>,
    key: RequestKey,
    cell: Rc<OnceCell<T>>,
}

impl<T> Drop for LeaveOnDrop<'_, T> {
    fn drop(&mut self) {
        let mut cells = self.in_flight.cells.borrow_mut();
        // Two references: the table's and ours.
        let is_over = self.cell.initialized() || Rc::strong_count(&self.cell) <= 2;
        let is_ours = cells
            .get(&self.key)
            .is_some_and(|cell| Rc::ptr_eq(cell, &self.cell));
        if is_over && is_ours {
            // The entry is not ours. It belongs to an identical request that began after this one ended.
            cells.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use bytes::Bytes;
    use http::HeaderMap;

    use super::*;

    fn key(body: &'static str) -> RequestKey {
        RequestKey::new(
            None,
            &HeaderMap::new(),
            &Bytes::from_static(body.as_bytes()),
        )
    }

    fn for_all<T>(_: &T) -> bool {
        true
    }

    fn run(future: impl Future<Output = ()>) {
        tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap()
            .block_on(future);
    }

    #[test]
    fn equal_requests_under_way_are_sent_once() {
        run(async {
            let (in_flight, sent) = (RequestCoalescing::default(), Cell::new(0));
            let send = || async {
                sent.set(sent.get() + 1);
                tokio::task::yield_now().await;
                "x"
            };
            let fetches = [
                in_flight.join(key("a"), for_all, send()),
                in_flight.join(key("a"), for_all, send()),
                in_flight.join(key("b"), for_all, send()),
            ];
            let mut fetches = fetches.map(Box::pin);
            // The first poll lets each request join. Then the test awaits them in turn.
            std::future::poll_fn(|cx| {
                for fetch in &mut fetches {
                    let _ = fetch.as_mut().poll(cx);
                }
                std::task::Poll::Ready(())
            })
            .await;
            for fetch in fetches {
                assert_eq!(fetch.await, "x");
            }
            assert_eq!(sent.get(), 2);
            assert!(in_flight.cells.borrow().is_empty());
            in_flight.join(key("a"), for_all, send()).await;
            assert_eq!(sent.get(), 3);
        });
    }

    #[test]
    fn an_answer_that_is_for_one_goes_to_the_request_that_sent_it_alone() {
        run(async {
            let (in_flight, sent) = (RequestCoalescing::default(), Cell::new(0));
            let send = || async {
                tokio::task::yield_now().await;
                sent.set(sent.get() + 1);
                sent.get()
            };
            let join = || Box::pin(in_flight.join(key("a"), |_| false, send()));
            let mut fetches = [join(), join(), join()];
            std::future::poll_fn(|cx| {
                for fetch in &mut fetches {
                    assert!(fetch.as_mut().poll(cx).is_pending());
                }
                std::task::Poll::Ready(())
            })
            .await;
            let mut answers = Vec::new();
            for fetch in fetches {
                answers.push(fetch.await);
            }
            answers.sort_unstable();
            assert_eq!(answers, [1, 2, 3]);
            assert!(in_flight.cells.borrow().is_empty());
        });
    }

    #[test]
    fn a_request_whose_client_went_away_leaves_nothing_behind() {
        run(async {
            let in_flight = RequestCoalescing::<()>::default();
            let never = in_flight.join(key("a"), for_all, std::future::pending());
            let mut never = Box::pin(never);
            std::future::poll_fn(|cx| {
                assert!(never.as_mut().poll(cx).is_pending());
                std::task::Poll::Ready(())
            })
            .await;
            assert_eq!(in_flight.cells.borrow().len(), 1);
            drop(never);
            assert!(in_flight.cells.borrow().is_empty());
        });
    }
}

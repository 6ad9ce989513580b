//! Equal queries to one subgraph that are under way at the same time, and are sent once.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use bytes::Bytes;
use http::HeaderMap;
use tokio::sync::OnceCell;

/// What makes two requests equal: all that is sent and can differ, once header rules, scripts and
/// coprocessors are through with it. The method is always POST, and a subgraph has flights of its
/// own.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    body: Bytes,
    /// The address, where it is not the subgraph's own, and the headers; empty without either.
    head: Vec<u8>,
}

impl Key {
    /// `moved_to` is the address that a stage has chosen instead of the subgraph's own.
    pub(crate) fn new(moved_to: Option<&str>, headers: &HeaderMap, body: &Bytes) -> Self {
        let mut head = Vec::new();
        if let Some(address) = moved_to {
            head.extend_from_slice(address.as_bytes());
            // No name of a header is empty, so this line cannot be mistaken for a header.
            head.extend_from_slice(b"\n:\n");
        }
        for (name, value) in headers {
            head.extend_from_slice(name.as_str().as_bytes());
            head.push(b':');
            // No value has a line end.
            head.extend_from_slice(value.as_bytes());
            head.push(b'\n');
        }
        Self {
            body: body.clone(),
            head,
        }
    }
}

/// The requests to one subgraph that are under way.
#[derive(Debug)]
pub(crate) struct Flights<T> {
    cells: RefCell<HashMap<Key, Rc<OnceCell<T>>>>,
}

impl<T> Default for Flights<T> {
    fn default() -> Self {
        Self {
            cells: RefCell::default(),
        }
    }
}

impl<T: Clone> Flights<T> {
    /// The answer to a request: from `send`, or from an equal request that is under way. When the
    /// client whose request sent it disconnects, another waiting request sends it again.
    pub(crate) async fn join(&self, key: Key, send: impl Future<Output = T>) -> T {
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

/// Removes a request from those under way when its answer has arrived or no one waits for it.
struct LeaveOnDrop<'a, T> {
    flights: &'a Flights<T>,
    key: Key,
    cell: Rc<OnceCell<T>>,
}

impl<T> Drop for LeaveOnDrop<'_, T> {
    fn drop(&mut self) {
        let mut cells = self.flights.cells.borrow_mut();
        // Two: the table's and ours.
        let is_over = self.cell.initialized() || Rc::strong_count(&self.cell) <= 2;
        let is_ours = cells
            .get(&self.key)
            .is_some_and(|cell| Rc::ptr_eq(cell, &self.cell));
        if is_over && is_ours {
            // Not ours: an equal request that began after this one was answered has the entry.
            cells.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use http::HeaderName;

    use super::*;

    fn key(body: &'static str) -> Key {
        Key::new(
            None,
            &HeaderMap::new(),
            &Bytes::from_static(body.as_bytes()),
        )
    }

    fn run(future: impl Future<Output = ()>) {
        tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap()
            .block_on(future);
    }

    #[test]
    fn requests_are_equal_when_all_that_is_sent_is_equal() {
        let headers = |lines: &[(&'static str, &str)]| -> HeaderMap {
            let line = |(name, value): &(&'static str, &str)| {
                (HeaderName::from_static(name), value.parse().unwrap())
            };
            lines.iter().map(line).collect()
        };
        let body = Bytes::from_static(b"{}");
        let keys = [
            Key::new(None, &headers(&[]), &body),
            Key::new(None, &headers(&[]), &Bytes::from_static(b"{ }")),
            Key::new(None, &headers(&[("x-a", "1")]), &body),
            Key::new(None, &headers(&[("x-a", "2")]), &body),
            Key::new(None, &headers(&[("x-a", "1"), ("x-b", "2")]), &body),
            Key::new(Some("http://a/"), &headers(&[]), &body),
            Key::new(Some("http://b/"), &headers(&[]), &body),
            Key::new(Some("http://a/"), &headers(&[("x-a", "1")]), &body),
        ];
        for (index, one) in keys.iter().enumerate() {
            for (other_index, other) in keys.iter().enumerate() {
                assert_eq!(one == other, index == other_index, "{one:?} {other:?}");
            }
        }
    }

    #[test]
    fn equal_requests_under_way_are_sent_once() {
        run(async {
            let (flights, sent) = (Flights::default(), Cell::new(0));
            let send = || async {
                sent.set(sent.get() + 1);
                tokio::task::yield_now().await;
                "x"
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
                assert_eq!(fetch.await, "x");
            }
            assert_eq!(sent.get(), 2);
            assert!(flights.cells.borrow().is_empty());
            flights.join(key("a"), send()).await;
            assert_eq!(sent.get(), 3);
        });
    }

    #[test]
    fn a_request_whose_client_went_away_leaves_nothing_behind() {
        run(async {
            let flights = Flights::<()>::default();
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

//! Divides the completion of events into turns.
//!
//! One event may have thousands of clients on a worker, and it is completed for each of them. All completions
//! at once would block other requests.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use tokio::sync::oneshot;

/// Maximum number of completions in a turn. Then other tasks of the thread run.
const EVENTS_AT_ONCE: usize = 32;
/// Maximum number of event bytes in a turn, unless it has a single event.
const BYTES_AT_ONCE: usize = 64 << 10;

/// Limits the number of completions that begin in a turn.
#[derive(Debug, Default)]
pub(crate) struct CompletionTurns(RefCell<TurnState>);

#[derive(Debug, Default)]
struct TurnState {
    /// Completions that have begun in this turn.
    count: usize,
    bytes: usize,
    /// Completions that wait for another turn, in the order of their arrival.
    waiting: VecDeque<(usize, oneshot::Sender<()>)>,
    /// True if another turn is scheduled.
    is_followed: bool,
}

impl TurnState {
    fn begin(&mut self, bytes: usize) {
        self.count += 1;
        self.bytes += bytes;
    }

    fn has_room(&self) -> bool {
        self.count < EVENTS_AT_ONCE && self.bytes < BYTES_AT_ONCE
    }

    /// Begins another turn. Returns false if no completion was waiting.
    fn next(&mut self) -> bool {
        (self.count, self.bytes) = (0, 0);
        while self.has_room()
            && let Some((bytes, waiting)) = self.waiting.pop_front()
        {
            // A completion without its client uses no part of the turn.
            if waiting.send(()).is_ok() {
                self.begin(bytes);
            }
        }
        self.is_followed = self.count > 0;
        self.is_followed
    }
}

impl CompletionTurns {
    /// Waits until an event with `bytes` bytes may be completed.
    pub(crate) async fn take(self: &Rc<Self>, bytes: usize) {
        let (waits, is_first) = {
            let mut turn = self.0.borrow_mut();
            let waits = if turn.has_room() && turn.waiting.is_empty() {
                turn.begin(bytes);
                None
            } else {
                let (sender, receiver) = oneshot::channel();
                turn.waiting.push_back((bytes, sender));
                Some(receiver)
            };
            (waits, !std::mem::replace(&mut turn.is_followed, true))
        };
        if is_first {
            tokio::task::spawn_local(Rc::clone(self).go_on());
        }
        if let Some(waits) = waits {
            // An error means that the thread ends, and this task with it.
            let _ = waits.await;
        }
    }

    /// Schedules turns for as long as completions begin.
    async fn go_on(self: Rc<Self>) {
        loop {
            tokio::task::yield_now().await;
            if !self.0.borrow_mut().next() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use tokio::runtime::Builder;
    use tokio::task::{LocalSet, spawn_local, yield_now};

    use super::*;

    /// The maximum number of completions between two turns of other tasks, if `events` events of `bytes`
    /// bytes arrive at once.
    fn most_at_once(events: usize, bytes: usize) -> usize {
        let runtime = Builder::new_current_thread().build().unwrap();
        LocalSet::new().block_on(&runtime, async move {
            let (turns, begun) = (
                Rc::<CompletionTurns>::default(),
                Rc::<Cell<usize>>::default(),
            );
            for _ in 0..events {
                let (turns, begun) = (Rc::clone(&turns), Rc::clone(&begun));
                spawn_local(async move {
                    turns.take(bytes).await;
                    begun.set(begun.get() + 1);
                });
            }
            let (mut most, mut before) = (0, 0);
            while before < events {
                yield_now().await;
                most = most.max(begun.get() - before);
                before = begun.get();
            }
            most
        })
    }

    #[test]
    fn other_work_has_its_turn_between_the_clients_of_one_event() {
        assert_eq!(most_at_once(5, 10), 5);
        // Parts of two turns may run between two turns of the other tasks.
        assert!((1..=2 * EVENTS_AT_ONCE).contains(&most_at_once(1_000, 10)));
        assert!((1..=2).contains(&most_at_once(100, BYTES_AT_ONCE)));
        assert!((1..=4).contains(&most_at_once(100, BYTES_AT_ONCE / 2)));
    }

    #[test]
    fn those_whose_client_left_take_no_place() {
        let mut turn = TurnState::default();
        let (sender, receiver) = oneshot::channel();
        turn.waiting.push_back((10, sender));
        drop(receiver);
        assert!(!turn.next());
        assert_eq!((turn.count, turn.bytes), (0, 0));
    }
}

//! Records the finished requests, and wakes the tasks that wait for them.

use std::cell::RefCell;
use std::task::{Poll, Waker};

pub(super) struct Gate(RefCell<Passed>);

struct Passed {
    done: Vec<bool>,
    waiting: Vec<Waker>,
}

impl Gate {
    pub(super) fn new(requests: usize) -> Self {
        Self(RefCell::new(Passed {
            done: vec![false; requests],
            waiting: Vec::new(),
        }))
    }

    pub(super) fn open(&self, index: usize) {
        let mut passed = self.0.borrow_mut();
        if let Some(done) = passed.done.get_mut(index) {
            *done = true;
        }
        for waker in passed.waiting.drain(..) {
            waker.wake();
        }
    }

    pub(super) fn has_passed(&self, requests: &[usize]) -> bool {
        let passed = self.0.borrow();
        let is_done = |index: &usize| passed.done.get(*index).is_none_or(|it| *it);
        requests.iter().all(is_done)
    }

    pub(super) async fn wait_for(&self, requests: &[usize]) {
        std::future::poll_fn(|task| {
            if self.has_passed(requests) {
                return Poll::Ready(());
            }
            let mut passed = self.0.borrow_mut();
            passed.waiting.push(task.waker().clone());
            Poll::Pending
        })
        .await;
    }
}

//! An event that happens once, with any number of waiting tasks.

use std::cell::Cell;

use tokio::sync::Notify;

/// An event that happens once in a thread, with a value.
#[derive(Debug)]
pub(crate) struct Beginning<T: Copy> {
    value: Cell<Option<T>>,
    began: Notify,
}

impl<T: Copy> Default for Beginning<T> {
    fn default() -> Self {
        Self {
            value: Cell::default(),
            began: Notify::new(),
        }
    }
}

impl<T: Copy> Beginning<T> {
    /// Triggers the event with this value.
    pub(crate) fn begin(&self, value: T) {
        self.value.set(Some(value));
        self.began.notify_waiters();
    }

    /// Waits for the event and returns its value.
    pub(crate) async fn begun(&self) -> T {
        loop {
            // Created before the check, so that an event in between is not missed.
            let began = self.began.notified();
            if let Some(value) = self.value.get() {
                return value;
            }
            began.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn who_waits_and_who_comes_later_get_the_value() {
        let beginning = Beginning::default();
        let mut waiting = pin!(beginning.begun());
        assert_eq!(waiting.as_mut().now_or_never(), None);
        beginning.begin(3);
        assert_eq!(waiting.now_or_never(), Some(3));
        assert_eq!(beginning.begun().now_or_never(), Some(3));
    }
}

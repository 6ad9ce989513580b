//! Messages with planned times, and waits until these times. WebSocket and gRPC have both.

use std::future::ready;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use model::PlannedMessage;
use tokio::sync::oneshot::Receiver;

use super::{EngineState, Place};
use crate::clock::{Clock, to_ns};

/// A wait until a planned time.
pub(super) type Alarm<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// The times of the load's clock, as something to wait for.
pub(super) trait Alarms {
    /// Returns a wait until this time.
    fn at(&self, due_ns: u64) -> Alarm<'_>;
}

/// A message and the time of its next send.
pub(super) struct Planned {
    pub(super) part: usize,
    pub(super) due_ns: u64,
    pub(super) gap_ns: Option<u64>,
    /// The number of further sends. `None` for no limit.
    pub(super) left: Option<u64>,
}

impl Planned {
    pub(super) fn new(part: usize, message: &PlannedMessage, start_ns: u64) -> Planned {
        let every = message.every.map(to_ns);
        Planned {
            part,
            due_ns: start_ns.saturating_add(to_ns(message.after)),
            gap_ns: every,
            left: match every {
                None => Some(message.count.unwrap_or(1)),
                Some(_) => message.count,
            },
        }
    }
}

/// Waits of a place, which the pacer of its thread ends to the microsecond.
pub(super) struct PlaceAlarms<'a> {
    pub(super) state: &'a EngineState,
    pub(super) place: Place,
}

/// A wait of a place. It leaves the queue if it is dropped before its time.
struct Waiting<'a> {
    state: &'a EngineState,
    place: Place,
    due_ns: u64,
    resumed: Receiver<()>,
    is_over: bool,
}

impl Future for Waiting<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        // There is no sender if the load was stopped.
        let resumed = Pin::new(&mut self.resumed).poll(context);
        self.is_over = resumed.is_ready();
        if resumed == Poll::Ready(Ok(())) {
            self.state.spin_until(Some(self.due_ns));
        }
        resumed.map(|_| ())
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        self.state.endpoints[self.place.lane].forget(self.place.index);
        let mut lanes = self.state.lanes.borrow_mut();
        lanes[self.place.lane].queue.forget(self.place.index);
    }
}

impl Alarms for PlaceAlarms<'_> {
    fn at(&self, due_ns: u64) -> Alarm<'_> {
        let PlaceAlarms { state, place } = *self;
        let Some(resumed) = state.begin_wait(place, due_ns) else {
            return Box::pin(ready(()));
        };
        Box::pin(Waiting {
            state,
            place,
            due_ns,
            resumed,
            is_over: false,
        })
    }
}

/// Waits of a single conversation, without a load.
pub(super) struct PlainAlarms {
    pub(super) clock: Clock,
}

impl Alarms for PlainAlarms {
    fn at(&self, due_ns: u64) -> Alarm<'_> {
        let left_ns = due_ns.saturating_sub(self.clock.now_ns());
        Box::pin(tokio::time::sleep(Duration::from_nanos(left_ns)))
    }
}

#[cfg(test)]
mod tests {
    use model::MessageContent;

    use super::*;

    #[test]
    fn a_repeated_message_keeps_its_plan() {
        let message = PlannedMessage {
            content: MessageContent::Text("a".to_owned()),
            after: std::time::Duration::from_nanos(5),
            every: Some(std::time::Duration::from_nanos(100)),
            count: Some(3),
        };
        let planned = Planned::new(0, &message, 1000);
        assert_eq!((planned.due_ns, planned.left), (1005, Some(3)));
        let once = PlannedMessage {
            every: None,
            count: None,
            ..message
        };
        assert_eq!(Planned::new(0, &once, 1000).left, Some(1));
    }
}

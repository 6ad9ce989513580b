//! The body of a response: the part that waits for its client, and the time that it has waited.
//!
//! Over HTTP/1.1 the socket shows progress. Over HTTP/2 a client may read all frames and still block a
//! response by granting it no window. So each part of a response is counted in the epoch of its last
//! progress. A connection has four cells: the current epoch and the three before. An epoch is half of the
//! write timeout, so a part in the oldest cell has waited for 1 to 1.5 times that timeout. This needs neither
//! a list of responses nor a clock.

use std::io::IoSlice;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use hyper::body::{Body, Buf, Frame, SizeHint};

use super::io::PROGRESS_BYTES;
use super::{Exchange, State};

/// A body that is tracked until it is written.
#[derive(Debug)]
pub struct TrackedBody<B> {
    body: B,
    /// Ends with the body, although parts of the body may wait longer.
    exchange: Exchange,
}

impl Exchange {
    /// Wraps the body of the response, so that it is tracked until it is written.
    #[must_use]
    pub fn answer<B>(mut self, body: B) -> TrackedBody<B> {
        self.note_answer();
        TrackedBody {
            body,
            exchange: self,
        }
    }
}

impl<B: Body + Unpin> Body for TrackedBody<B> {
    type Data = Portion<B::Data>;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        task: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, B::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(task);
        let state = &self.exchange.state;
        frame.map_ok(|frame| frame.map_data(|data| Portion::new(data, Rc::clone(state))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A part of a response that is not written yet.
#[derive(Debug)]
pub struct Portion<D: Buf> {
    data: D,
    state: Rc<State>,
    /// The epoch of the part's last progress.
    epoch: u32,
    /// Bytes written since the last progress.
    credit: usize,
}

impl<D: Buf> Portion<D> {
    fn new(data: D, state: Rc<State>) -> Self {
        state.active.set(state.active.get() + 1);
        if state.unsent.get() == 0 {
            state.taken.set(state.registry.now());
        }
        state.unsent.set(state.unsent.get() + data.remaining());
        state.registry.add_unsent(data.remaining());
        let epoch = state.registry.epoch.get();
        state.add_waiting(epoch);
        Self {
            data,
            state,
            epoch,
            credit: 0,
        }
    }
}

impl<D: Buf> Drop for Portion<D> {
    fn drop(&mut self) {
        let state = &self.state;
        state.unsent.set(state.unsent.get() - self.data.remaining());
        state.end_waiting(self.epoch);
        state.ended();
    }
}

impl State {
    fn add_waiting(&self, epoch: u32) {
        let cell = &self.waiting[epoch as usize % 4];
        cell.set(cell.get() + 1);
    }

    fn end_waiting(&self, epoch: u32) {
        let cell = &self.waiting[epoch as usize % 4];
        cell.set(cell.get() - 1);
    }

    /// True if a part of a response has waited for its client for the whole write timeout.
    pub(super) fn has_stalled_answer(&self) -> bool {
        let oldest = self.registry.epoch.get().wrapping_sub(3);
        self.waiting[oldest as usize % 4].get() > 0
    }
}

impl<D: Buf> Buf for Portion<D> {
    fn remaining(&self) -> usize {
        self.data.remaining()
    }

    fn chunk(&self) -> &[u8] {
        self.data.chunk()
    }

    fn chunks_vectored<'a>(&'a self, into: &mut [IoSlice<'a>]) -> usize {
        self.data.chunks_vectored(into)
    }

    fn advance(&mut self, count: usize) {
        self.data.advance(count);
        let state = &self.state;
        state.unsent.set(state.unsent.get() - count);
        state.taken.set(state.registry.now());
        self.credit += count;
        let now = state.registry.epoch.get();
        if self.credit >= PROGRESS_BYTES && self.epoch != now {
            state.end_waiting(self.epoch);
            state.add_waiting(now);
            self.epoch = now;
            self.credit = 0;
        }
    }
}

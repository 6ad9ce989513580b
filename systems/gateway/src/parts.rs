//! Answers whose body goes on: what is sent in parts, for how long it may go on, and what it holds
//! until its end.
//!
//! What makes the parts is a stream that owns all it needs (`Rc`s of the generation and the
//! exchange, so a reload leaves it alone). Only the body drives it: while the connection takes
//! no bytes nothing is made, and when the client leaves, the body is dropped with everything under
//! way. A stream never yields without having waited for something, and ends itself when its
//! [`Term`] is over: with an honest last part, as the connection would be cut a moment later.

use std::convert::Infallible;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use bytes::Bytes;
use chassis::Work;
use futures_util::Stream;
use futures_util::future::{Either, select};
use http::StatusCode;
use hyper::body::{Body, Frame, SizeHint};

use crate::account::Account;
use crate::admission::Permit;
use crate::beginning::Beginning;

/// The body of any answer.
pub(crate) enum Outgoing {
    /// All of it; nothing once it was taken.
    Whole(Option<Bytes>),
    /// A first part and what follows.
    Parts(Box<Parts>),
}

/// A body in parts.
pub(crate) struct Parts {
    first: Option<Bytes>,
    rest: Option<Rest>,
    /// Written when it is dropped: with the status behind the last part, else as of a client that
    /// left.
    account: Option<(Account, StatusCode)>,
}

/// What follows the first part of an answer.
#[must_use]
pub(crate) struct Rest {
    parts: Pin<Box<dyn Stream<Item = Part>>>,
    /// Writes the first part, which is the reply that passes the stages.
    opener: fn(&[u8]) -> Bytes,
    /// Whether it goes on for as long as the client wants. Such an answer counts as a request until it
    /// begins.
    is_endless: bool,
    /// Held so that limits count the request to its end.
    held: (Option<Permit>, Option<Work>),
}

/// One part as it is sent.
#[derive(Debug, Default)]
pub(crate) struct Part {
    /// With whatever the format puts around it.
    pub(crate) body: Bytes,
    /// Errors of the execution in it.
    pub(crate) error_count: usize,
    /// Whether something is missing because of `limits`.
    pub(crate) is_cut: bool,
}

impl Rest {
    /// What follows; the stream's end is the end of the body.
    pub(crate) fn new(parts: impl Stream<Item = Part> + 'static) -> Self {
        Self {
            parts: Box::pin(parts),
            opener: Multipart::first,
            is_endless: false,
            held: (None, None),
        }
    }

    /// What follows the opening of an answer that goes on for as long as the client wants.
    pub(crate) fn endless(
        parts: impl Stream<Item = Part> + 'static,
        opener: fn(&[u8]) -> Bytes,
    ) -> Self {
        Self {
            opener,
            is_endless: true,
            ..Self::new(parts)
        }
    }

    /// The first part as it is sent.
    pub(crate) fn first(&self, body: &[u8]) -> Bytes {
        (self.opener)(body)
    }

    /// Whether it goes on for as long as the client wants.
    pub(crate) fn is_endless(&self) -> bool {
        self.is_endless
    }

    /// Keeps the place among the requests that are worked on, unless it would be for as long as the
    /// client wants.
    pub(crate) fn hold_permit(&mut self, permit: Permit) {
        self.held.0 = Some(permit).filter(|_| !self.is_endless);
    }

    /// Keeps the place among the requests of the connection.
    pub(crate) fn hold_work(&mut self, work: Work) {
        self.held.1 = Some(work);
    }
}

impl Outgoing {
    /// A body in parts that begins with `first`.
    ///
    /// What is counted and logged of a request is written at the end of its answer, or at the beginning
    /// of one that is endless.
    pub(crate) fn parts(
        first: Bytes,
        rest: Rest,
        (account, status): (Account, StatusCode),
    ) -> Self {
        let account = if rest.is_endless() {
            account.close(status);
            None
        } else {
            Some((account, status))
        };
        Self::Parts(Box::new(Parts {
            first: Some(first),
            rest: Some(rest),
            account,
        }))
    }
}

impl From<Bytes> for Outgoing {
    fn from(body: Bytes) -> Self {
        Self::Whole((!body.is_empty()).then_some(body))
    }
}

impl Body for Outgoing {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        task: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let bytes = match self.get_mut() {
            Self::Whole(body) => body.take(),
            Self::Parts(parts) => ready!(parts.poll_next(task)),
        };
        Poll::Ready(bytes.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(body) => body.is_none(),
            Self::Parts(parts) => parts.first.is_none() && parts.rest.is_none(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(body) => SizeHint::with_exact(body.as_ref().map_or(0, Bytes::len) as u64),
            Self::Parts(_) => SizeHint::default(),
        }
    }
}

impl Parts {
    fn poll_next(&mut self, task: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(first));
        }
        let Some(rest) = &mut self.rest else {
            return Poll::Ready(None);
        };
        match ready!(rest.parts.as_mut().poll_next(task)) {
            Some(part) => {
                if let Some((account, _)) = &mut self.account {
                    account.add(part.error_count, part.is_cut);
                }
                Poll::Ready(Some(part.body))
            }
            None => {
                self.rest = None;
                if let Some((account, status)) = self.account.take() {
                    account.close(status);
                }
                Poll::Ready(None)
            }
        }
    }
}

/// The end of a worker, as answers see it that are under way: when they say their last word, before
/// connections are cut.
#[derive(Debug, Default)]
pub(crate) struct Drain(Beginning<Option<Instant>>);

/// The time before connections are cut in which an answer says its last word, unless the whole time
/// to drain is short.
const LAST_WORD: Duration = Duration::from_millis(500);

impl Drain {
    /// Begins now; connections are cut after `limit`.
    pub(crate) fn begin(&self, now: Instant, limit: Duration) {
        let word = LAST_WORD.min(limit / 4);
        self.0.begin(now.checked_add(limit - word));
    }

    /// Waits until the worker begins to stop, and gives the time at which answers say their last
    /// word.
    pub(crate) async fn begun(&self) -> Option<Instant> {
        self.0.begun().await
    }
}

/// How long an answer may go on.
#[derive(Clone, Debug)]
pub(crate) struct Term {
    /// When the time of the whole request is over.
    pub(crate) deadline: Option<Instant>,
    /// The end of the worker.
    pub(crate) drain: Rc<Drain>,
}

/// Why an answer had to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// `traffic_shaping.router.timeout`.
    TimedOut,
    /// The gateway stops, and its time to drain is nearly over.
    Stopping,
}

impl Term {
    /// Waits until the answer has to say its last word.
    pub(crate) async fn over(&self) -> End {
        let late = until(self.deadline);
        let stopped = async { until(self.drain.begun().await).await };
        match select(pin!(late), pin!(stopped)).await {
            Either::Left(_) => End::TimedOut,
            Either::Right(_) => End::Stopping,
        }
    }
}

/// Waits until then; for ever where there is no such time.
pub(crate) async fn until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time.into()).await,
        None => std::future::pending().await,
    }
}

/// The format of a `multipart/mixed` body.
///
/// The boundary behind a part is sent with it, so that a client need not wait for more to know that
/// the part is whole.
pub(crate) struct Multipart;

impl Multipart {
    /// What stands before the first part.
    const START: &'static [u8] = b"\r\n--graphql";
    const HEAD: &'static [u8] = b"\r\ncontent-type: application/json\r\n\r\n";
    const BOUNDARY: &'static [u8] = b"\r\n--graphql";
    /// What stands behind the boundary of the last part.
    pub(crate) const END: &'static [u8] = b"--\r\n";

    /// The first part; there are more.
    pub(crate) fn first(json: &[u8]) -> Bytes {
        let text = [Self::START, Self::HEAD, json, Self::BOUNDARY];
        text.concat().into()
    }

    /// A further part.
    pub(crate) fn next(json: &[u8], is_last: bool) -> Bytes {
        let end = if is_last { Self::END } else { b"" };
        [Self::HEAD, json, Self::BOUNDARY, end].concat().into()
    }
}

impl std::fmt::Debug for Rest {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Rest")
    }
}

//! The body of a response in the form for the HTTP server, whole or in parts.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{Response, StatusCode};
use hyper::body::{Body, Frame, SizeHint};

use crate::http::account::Account;
use crate::http::reply::Reply;
use crate::stream::parts::BodyTail;

/// The body of any response.
pub(crate) enum Outgoing {
    /// The whole body. `None` after the server has taken it.
    Whole(Option<Bytes>),
    /// A first part and later parts.
    Parts(Box<Parts>),
}

/// A body in several parts.
pub(crate) struct Parts {
    first: Option<Bytes>,
    rest: Option<BodyTail>,
    /// Written on drop. It gets the status if the last part was sent. Otherwise the client has disconnected.
    account: Option<(Account, StatusCode)>,
}

impl Outgoing {
    /// A body in parts that begins with `first`.
    ///
    /// The account of the request is written at the end of the response, or at its beginning if the response
    /// is endless.
    pub(crate) fn parts(
        first: Bytes,
        rest: BodyTail,
        account: Account,
        status: StatusCode,
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

/// The response in the form for the HTTP server.
pub(crate) fn response(reply: Reply) -> Response<Outgoing> {
    let mut response = Response::new(reply.body.into());
    *response.status_mut() = reply.status;
    *response.headers_mut() = reply.headers;
    response
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
        match ready!(rest.poll_part(task)) {
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

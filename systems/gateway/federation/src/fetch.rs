//! The interface to subgraphs: one request, one answer.
//!
//! The crate opens no socket. The caller passes a [`Fetch`], which turns a
//! [`SubgraphRequest`] into a [`SubgraphAnswer`] with its own stages and connections; tests
//! pass a function.

use std::ops::Range;
use std::task::Poll;

use bytes::Bytes;

use crate::error::GraphqlError;

/// What kind of operation a document or a fetch is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OperationKind {
    /// Reads; its fetches may run side by side.
    Query,
    /// Writes; its root fields run one after the other.
    Mutation,
    /// Goes on: its one root field gives an answer for each event.
    Subscription,
}

impl OperationKind {
    /// The GraphQL keyword.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            OperationKind::Query => "query",
            OperationKind::Mutation => "mutation",
            OperationKind::Subscription => "subscription",
        }
    }
}

/// One request that the plan makes of one subgraph.
#[derive(Debug, Clone)]
pub struct SubgraphRequest<'a> {
    /// Index into [`Supergraph::subgraphs`](crate::Supergraph::subgraphs).
    pub subgraph: usize,
    /// The subgraph's name, as in the supergraph.
    pub name: &'a str,
    /// The subgraph's routing URL, as in the supergraph.
    pub url: &'a str,
    /// The operation text, minified.
    pub operation: &'a str,
    /// The operation's name, `<client's>__<subgraph>__<n>`; absent when the client's has none.
    pub operation_name: Option<&'a str>,
    /// Only queries may be de-duplicated in flight or retried. A subscription's is not sent again: it
    /// asks for the event that is being answered, see
    /// [`Prepared::subscription`](crate::Prepared::subscription).
    pub kind: OperationKind,
    /// Position of the fetch in its plan, counted from 0.
    pub fetch_index: usize,
    /// The whole request body as JSON, in the order `query`, `operationName`, `variables`.
    pub body: Bytes,
    /// Where in `body` the object of variables stands, when there is one.
    pub variables: Option<Range<usize>>,
}

/// The result of a [`SubgraphRequest`].
#[derive(Debug, Clone, Default)]
pub struct SubgraphAnswer {
    /// The body, expected to be a GraphQL response; empty when nothing was received.
    pub body: Bytes,
    /// Errors that the gateway adds in front of the body's own: a refused connection, a
    /// status that is not 2xx, a stage that answered instead. With errors here, an empty
    /// body is not reported as malformed a second time.
    pub errors: Vec<GraphqlError>,
}

impl SubgraphAnswer {
    /// An answer with nothing but its body.
    #[must_use]
    pub fn from_body(body: impl Into<Bytes>) -> Self {
        SubgraphAnswer {
            body: body.into(),
            errors: Vec::new(),
        }
    }

    /// An answer that is nothing but a failure.
    #[must_use]
    pub fn from_error(error: GraphqlError) -> Self {
        SubgraphAnswer {
            body: Bytes::new(),
            errors: vec![error],
        }
    }
}

/// Carries requests to subgraphs.
///
/// The future need not be `Send`: a request stays on the thread that accepted it.
pub trait Fetch {
    /// Asks one subgraph. Failures are answers with errors, so that the other fetches of
    /// the plan go on.
    fn fetch(&self, request: SubgraphRequest<'_>) -> impl Future<Output = SubgraphAnswer>;

    /// Lets the other requests of this thread go on; called now and then while a large response
    /// is made, so that their answers, timers and limits do not have to wait for its end.
    ///
    /// What is here wakes its task at once; a runtime has better ways.
    fn give_way(&self) -> impl Future<Output = ()> {
        let mut has_waited = false;
        std::future::poll_fn(move |context| {
            if std::mem::replace(&mut has_waited, true) {
                return Poll::Ready(());
            }
            context.waker().wake_by_ref();
            Poll::Pending
        })
    }
}

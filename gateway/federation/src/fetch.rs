//! The interface to subgraphs: one request, one response.
//!
//! The crate opens no socket. The caller passes a [`Fetch`], which turns a [`SubgraphRequest`] into a
//! [`SubgraphAnswer`] with its own stages and connections. Tests pass a function.

use std::ops::Range;
use std::task::Poll;

use bytes::Bytes;

use crate::error::GraphqlError;

/// Kind of an operation or of a fetch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OperationKind {
    /// An operation that reads. Its fetches may run in parallel.
    Query,
    /// An operation that writes. Its root fields run one after the other.
    Mutation,
    /// An operation that stays open. Its single root field returns a response for each event.
    Subscription,
}

impl OperationKind {
    /// The GraphQL keyword of the kind.
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
    /// The minified text of the operation.
    pub operation: &'a str,
    /// The name of the operation, `<client's>__<subgraph>__<n>`. `None` if the client's operation has no
    /// name.
    pub operation_name: Option<&'a str>,
    /// Kind of the operation. Only queries may be de-duplicated in flight or retried. A subscription is not
    /// sent again, because its response is the current event. See
    /// [`Prepared::subscription`](crate::Prepared::subscription).
    pub kind: OperationKind,
    /// Position of the fetch in its plan, counted from 0.
    pub fetch_index: usize,
    /// The whole request body as JSON, in the order `query`, `operationName`, `variables`.
    pub body: Bytes,
    /// Range of the object of variables in `body`. `None` if there are no variables.
    pub variables: Option<Range<usize>>,
}

/// The response to a [`SubgraphRequest`].
#[derive(Debug, Clone, Default)]
pub struct SubgraphAnswer {
    /// The body, expected to be a GraphQL response. Empty if the subgraph sent no body.
    pub body: Bytes,
    /// Errors that the gateway adds before the errors of the body. Examples are a refused connection, a
    /// status other than 2xx, and a stage that responded instead of the subgraph. If there are errors here,
    /// an empty body is not reported as malformed.
    pub errors: Vec<GraphqlError>,
}

impl SubgraphAnswer {
    /// A response with a body and without gateway errors.
    #[must_use]
    pub fn from_body(body: impl Into<Bytes>) -> Self {
        SubgraphAnswer {
            body: body.into(),
            errors: Vec::new(),
        }
    }

    /// A failed response with one error and an empty body.
    #[must_use]
    pub fn from_error(error: GraphqlError) -> Self {
        SubgraphAnswer {
            body: Bytes::new(),
            errors: vec![error],
        }
    }
}

/// Sends requests to subgraphs.
///
/// The future does not have to be `Send`, because a request stays on the thread that accepted it.
pub trait Fetch {
    /// Sends one request to a subgraph. A failure is a response with errors, so that the other fetches of the
    /// plan continue.
    fn fetch(&self, request: SubgraphRequest<'_>) -> impl Future<Output = SubgraphAnswer>;

    /// Lets the other requests of this thread run. Called repeatedly while a large response is written, so
    /// that it does not delay their responses, timers and limits.
    ///
    /// This default wakes its task immediately. A runtime has better ways.
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

//! The step before the extensions of a subgraph request: the rate limit.

use gateway_extensions::{Exchange, SubgraphCall, SubgraphOutcome};
use gateway_federation::{Fetch, GraphqlError, OperationKind, SubgraphAnswer, SubgraphRequest};

use crate::process::clock;
use crate::process::worker_state::WorkerState;

/// The subgraphs of one client request.
pub(crate) struct Subgraphs<'a> {
    serving: &'a WorkerState,
    exchange: &'a Exchange,
}

impl<'a> Subgraphs<'a> {
    pub(crate) fn new(serving: &'a WorkerState, exchange: &'a Exchange) -> Self {
        Self { serving, exchange }
    }

    async fn send(&self, request: &SubgraphRequest<'_>) -> SubgraphAnswer {
        let call = SubgraphCall {
            body: request.body.clone(),
            is_query: request.kind == OperationKind::Query,
        };
        let extensions = &self.serving.extensions;
        answer(
            extensions
                .fetch(request.subgraph, self.exchange, call)
                .await,
        )
    }
}

impl Fetch for Subgraphs<'_> {
    async fn fetch(&self, request: SubgraphRequest<'_>) -> SubgraphAnswer {
        let shaping = &self.serving.generation.subgraphs[request.subgraph];
        if let Some(rate) = &shaping.rate
            && !rate.admits(clock::now())
        {
            return SubgraphAnswer::from_error(rate_limited());
        }
        self.send(&request).await
    }

    async fn give_way(&self) {
        // The runtime polls sockets and timers before this task runs again. An immediate wake-up would delay
        // them.
        tokio::task::yield_now().await;
    }
}

/// The error if the rate limit of a subgraph is reached.
pub(crate) fn rate_limited() -> GraphqlError {
    GraphqlError::new("Your request has been rate limited", "REQUEST_RATE_LIMITED")
}

pub(crate) fn answer(outcome: SubgraphOutcome) -> SubgraphAnswer {
    let errors = outcome.problems.into_iter().map(|problem| GraphqlError {
        message: problem.message,
        extensions: problem.extensions,
        ..GraphqlError::default()
    });
    SubgraphAnswer {
        body: outcome.body,
        errors: errors.collect(),
    }
}

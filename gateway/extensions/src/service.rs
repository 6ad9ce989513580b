//! One of the four services, with its configured stages in their order.
//!
//! Requests: token, script, coprocessor. Responses: coprocessor, script.

use std::rc::Rc;

use gateway_upstream::Client;

use crate::condition::ConditionInput;
use crate::coprocessor::{CoprocessorError, CoprocessorStage, StageCall, failed_response};
use crate::environment::Environment;
use crate::exchange::{Exchange, Response, StageRequest, Step};
use crate::failure::{FetchProblem, json_response};
use crate::observer::Observer;
use crate::script::{Layers, Place};
use crate::token::Tokens;

/// The parts that all services of a worker share.
pub(crate) struct Shared {
    pub(crate) client: Client,
    pub(crate) observer: Rc<dyn Observer>,
    pub(crate) environment: Environment,
}

/// The configured stages of one service of one worker.
pub struct Service {
    pub(crate) shared: Rc<Shared>,
    pub(crate) subgraph: Option<Rc<str>>,
    /// True if `traffic_shaping` applies to this subgraph.
    pub(crate) is_shaped: bool,
    pub(crate) tokens: Option<Tokens>,
    pub(crate) layers: Option<Layers>,
    pub(crate) request: Option<CoprocessorStage>,
    pub(crate) response: Option<CoprocessorStage>,
}

impl Service {
    /// Runs the request stages. A break contains the response to continue with. The stages around the stage
    /// that broke have seen this response already.
    pub async fn request(&self, exchange: &Exchange, request: &mut StageRequest) -> Step {
        self.request_of(exchange, request, "").await
    }

    /// Runs the response stages.
    pub async fn response(&self, exchange: &Exchange, response: &mut Response) {
        self.response_of(exchange, response, "").await;
    }

    pub(crate) async fn request_of(
        &self,
        exchange: &Exchange,
        request: &mut StageRequest,
        subgraph_request_id: &str,
    ) -> Step {
        if let Some(tokens) = &self.tokens
            && let Step::Break(response) = tokens
                .check(&self.shared.client, &exchange.context, &request.headers)
                .await
        {
            return Step::Break(response);
        }
        if let Some(layers) = &self.layers
            && let Step::Break(response) =
                layers.request(&self.place(exchange, subgraph_request_id), request)
        {
            return Step::Break(response);
        }
        let Some(stage) = &self.request else {
            return Step::Continue;
        };
        if !stage.applies(&self.input(exchange, Some(request), None)) {
            return Step::Continue;
        }
        let call = self.stage_call(exchange, subgraph_request_id);
        let mut response = match stage.request(&call, request).await {
            Ok(Step::Continue) => return Step::Continue,
            Ok(Step::Break(response)) => response,
            Err(error) => self.failed(stage, &error),
        };
        // The script wraps the coprocessor, so it sees the coprocessor's final response.
        if let Some(layers) = &self.layers {
            layers.response(&self.place(exchange, subgraph_request_id), &mut response);
        }
        Step::Break(response)
    }

    pub(crate) async fn response_of(
        &self,
        exchange: &Exchange,
        response: &mut Response,
        subgraph_request_id: &str,
    ) {
        if let Some(stage) = &self.response
            && stage.applies(&self.input(exchange, None, Some(response)))
        {
            let call = self.stage_call(exchange, subgraph_request_id);
            if let Err(error) = stage.response(&call, response).await {
                *response = self.failed(stage, &error);
            }
        }
        if let Some(layers) = &self.layers {
            layers.response(&self.place(exchange, subgraph_request_id), response);
        }
    }

    /// True if a stage sees responses. Then they must be valid GraphQL responses.
    pub(crate) fn has_response_stages(&self) -> bool {
        self.layers.is_some() || self.response.is_some()
    }

    fn failed(&self, stage: &CoprocessorStage, error: &CoprocessorError) -> Response {
        log::error!(
            "{} of {}: {error}",
            stage.kind.as_str(),
            stage.endpoint.as_str()
        );
        let Some(subgraph) = &self.subgraph else {
            return failed_response(error);
        };
        // Without `traffic_shaping`, there is no promised time limit. Then the coprocessor's timeout is an
        // ordinary failure.
        let problem = if error.is_timeout() && self.is_shaped {
            FetchProblem::timed_out()
        } else if error.is_crowded() {
            FetchProblem::crowded(subgraph)
        } else {
            // The reason contains internal addresses, so it stays in the log.
            FetchProblem::http(subgraph, "a coprocessor failed", None)
        };
        let body = serde_json::json!({ "errors": [problem.to_value()] });
        json_response(http::StatusCode::OK, body.to_string())
    }

    fn stage_call<'a>(
        &'a self,
        exchange: &'a Exchange,
        subgraph_request_id: &'a str,
    ) -> StageCall<'a> {
        StageCall {
            client: &self.shared.client,
            observer: &*self.shared.observer,
            exchange,
            subgraph: self
                .subgraph
                .as_deref()
                .map(|name| (name, subgraph_request_id)),
        }
    }

    fn input<'a>(
        &'a self,
        exchange: &'a Exchange,
        request: Option<&'a StageRequest>,
        response: Option<&'a Response>,
    ) -> ConditionInput<'a> {
        ConditionInput {
            request,
            response,
            subgraph: self.subgraph.as_deref(),
            ..ConditionInput::new(exchange, &*self.shared.environment)
        }
    }

    fn place<'a>(&self, exchange: &'a Exchange, subgraph_request_id: &'a str) -> Place<'a> {
        Place {
            exchange,
            subgraph_request_id,
        }
    }
}

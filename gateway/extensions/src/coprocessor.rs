//! Calls to a coprocessor. The protocol is implemented here only.
//!
//! Bodies travel as text. The gateway cuts the parts to send out of the bytes that pass through it anyway,
//! and cuts the returned parts out of the coprocessor's response. It never builds a JSON tree of them.

mod answer;
mod message;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use gateway_config::{BodyParts, ContextParts, Coprocessor, CoprocessorClient, Stage};
use gateway_upstream::{Call, Client, EndpointError, Policy, SendError, UpstreamEndpoint};
use http::header::{self, HeaderMap, HeaderValue};
use http::{Method, StatusCode};

use crate::address::{endpoint, http2};
use crate::condition::{ConditionInput, holds};
use crate::exchange::{Exchange, Response, StageRequest, Step};
use crate::failure;
use crate::json::ResponseParts;
use crate::observer::{Observer, StageKind};
use answer::{Answer, Control};

const FIXED_HEADERS: &[u8] = b"content-type: application/json\r\naccept: application/json\r\n";

/// The reason why a coprocessor call failed.
#[derive(Debug, thiserror::Error)]
pub enum CoprocessorError {
    /// No response arrived.
    #[error("coprocessor did not answer: {0}")]
    Send(#[from] SendError),
    /// The status of the response is not 2xx.
    #[error("coprocessor answered with status {0}")]
    Status(StatusCode),
    /// The response violates the protocol.
    #[error("coprocessor's answer cannot be used: {0}")]
    Answer(String),
}

impl CoprocessorError {
    pub(crate) fn is_timeout(&self) -> bool {
        matches!(self, Self::Send(error) if error.is_timeout())
    }

    pub(crate) fn is_crowded(&self) -> bool {
        matches!(self, Self::Send(error) if error.is_crowded())
    }
}

/// One configured stage. Building its message and applying a response are pure functions. Only the call
/// between them uses the network.
pub struct CoprocessorStage {
    pub(crate) kind: StageKind,
    pub(crate) stage: Stage,
    pub(crate) endpoint: UpstreamEndpoint,
    pub(crate) timeout: Duration,
    pub(crate) validates: bool,
    /// The supergraph schema as a JSON string, rendered once.
    pub(crate) sdl: Option<Arc<str>>,
}

impl CoprocessorStage {
    /// The stage of this kind, or `None` if it is not configured. `sdl` is the supergraph schema as a JSON
    /// string.
    pub fn new(
        kind: StageKind,
        config: &Coprocessor,
        sdl: &Arc<str>,
    ) -> Result<Option<Self>, EndpointError> {
        let Some(stage) = stage_of(kind, config) else {
            return Ok(None);
        };
        let written = stage.url.as_ref().unwrap_or(&config.url);
        Ok(Some(Self {
            kind,
            endpoint: endpoint(written, policy(&config.client))?,
            timeout: *config.timeout,
            validates: config.response_validation,
            sdl: stage.sdl.then(|| Arc::clone(sdl)),
            stage: stage.clone(),
        }))
    }

    /// True if the stage's condition holds.
    pub(crate) fn applies(&self, input: &ConditionInput<'_>) -> bool {
        self.stage
            .condition
            .as_ref()
            .is_none_or(|condition| holds(condition, input))
    }

    /// Sends a request and applies the response to it.
    pub(crate) async fn request(
        &self,
        call: &StageCall<'_>,
        request: &mut StageRequest,
    ) -> Result<Step, CoprocessorError> {
        let sent = self.request_message(call.exchange, call.subgraph, request);
        let answer = self.send(call, sent).await?;
        self.apply_to_request(call.exchange, &answer, request)
    }

    /// The message about a request. At subgraph stages, `subgraph` contains the subgraph's name and the id of
    /// the request.
    pub fn request_message(
        &self,
        exchange: &Exchange,
        subgraph: Option<(&str, &str)>,
        request: &StageRequest,
    ) -> Vec<u8> {
        message::of_request(self, exchange, subgraph, request)
    }

    /// Applies the changes in a coprocessor response to a request.
    pub fn apply_to_request(
        &self,
        exchange: &Exchange,
        answer: &[u8],
        request: &mut StageRequest,
    ) -> Result<Step, CoprocessorError> {
        let answer = Answer::read(answer, self.kind)?;
        // The context comes first, because its entries apply even if the request ends here.
        if let Some(entries) = &answer.context {
            self.upsert(exchange, entries);
        }
        if let Control::Break(status) = answer.required_control()? {
            return Ok(Step::Break(answer.into_break(self.kind, status)));
        }
        if let Some(text) = answer.body {
            request.body = answer::request_body(self.kind, text)?;
        }
        // At the router, the target selects the endpoint, which is settled before any stage runs.
        if let Some(uri) = answer.uri.filter(|_| !self.kind.is_router()) {
            request.uri = uri
                .parse()
                .map_err(|error| CoprocessorError::Answer(format!("uri `{uri}`: {error}")))?;
        }
        if let Some(headers) = answer.headers {
            request.headers = headers;
        }
        Ok(Step::Continue)
    }

    /// Sends a response and applies the coprocessor's response to it.
    pub(crate) async fn response(
        &self,
        call: &StageCall<'_>,
        response: &mut Response,
    ) -> Result<(), CoprocessorError> {
        let sent = self.response_message(call.exchange, call.subgraph, response);
        let answer = self.send(call, sent).await?;
        self.apply_to_response(call.exchange, &answer, response)
    }

    /// The message about a response.
    pub fn response_message(
        &self,
        exchange: &Exchange,
        subgraph: Option<(&str, &str)>,
        response: &Response,
    ) -> Vec<u8> {
        message::of_response(self, exchange, subgraph, response)
    }

    /// Applies the changes in a coprocessor response to a response.
    pub fn apply_to_response(
        &self,
        exchange: &Exchange,
        answer: &[u8],
        response: &mut Response,
    ) -> Result<(), CoprocessorError> {
        let answer = Answer::read(answer, self.kind)?;
        let is_ended = matches!(answer.control, Some(Control::Break(_)));
        if let Some(text) = answer.body {
            // The body comes first, because it may be rejected. Then the response must still be unchanged.
            let is_part = response.part.is_some() && !is_ended;
            let body = self.response_body(text, &response.body, is_part)?;
            response.body = body;
        }
        if is_ended && response.part.is_some() {
            self.end_parts(response, answer.body.is_some());
        }
        match answer.control {
            None => {}
            Some(Control::Continue) => response.status = StatusCode::OK,
            Some(Control::Break(status)) => response.status = status,
        }
        // Only response stages delete entries. At request stages an omitted entry means "unchanged".
        if let Some(entries) = &answer.context {
            self.upsert(exchange, entries);
            self.delete_missing(exchange, entries);
        }
        if let Some(headers) = answer.headers {
            response.headers = headers;
        }
        Ok(())
    }

    async fn send(
        &self,
        call: &StageCall<'_>,
        message: Vec<u8>,
    ) -> Result<Bytes, CoprocessorError> {
        let mut headers = HeaderMap::new();
        let trace = call.exchange.trace.as_ref();
        let to = &self.endpoint;
        let mut span = gateway_telemetry::sending(trace, &Method::POST, to, to, &mut headers);
        if let Some(span) = &mut span {
            span.set("coprocessor.stage", self.kind.as_str());
            if let Some((subgraph, _)) = call.subgraph {
                span.set("subgraph.name", subgraph.to_owned());
            }
        }
        let started = tokio::time::Instant::now();
        let http_call = Call {
            method: Method::POST,
            headers: &headers,
            rendered_headers: FIXED_HEADERS,
            body: message.into(),
            timeout: Some(self.timeout),
            reply_bytes_max: None,
            // A coprocessor may be called twice for one request, because a repeated decision does no harm.
            is_idempotent: true,
        };
        let reply = call.client.send(&self.endpoint, http_call).await;
        // Counted before errors return, so that the metrics include failed calls.
        let succeeded = matches!(&reply, Ok(reply) if reply.status.is_success());
        call.observer
            .coprocessor(self.kind, succeeded, started.elapsed());
        gateway_telemetry::sent(span, &reply);
        let reply = reply?;
        if !succeeded {
            return Err(CoprocessorError::Status(reply.status));
        }
        Ok(reply.body)
    }

    fn upsert(&self, exchange: &Exchange, entries: &serde_json::Map<String, serde_json::Value>) {
        for (key, value) in entries {
            let key = match self.stage.context {
                ContextParts::Deprecated => crate::context::new_name(key),
                _ => key,
            };
            exchange.context.insert(key, value.clone());
        }
    }

    /// At response stages, deletes the entries that the coprocessor received and did not return.
    fn delete_missing(
        &self,
        exchange: &Exchange,
        entries: &serde_json::Map<String, serde_json::Value>,
    ) {
        let gone: Vec<String> = exchange.context.entries(|all| {
            let visible = all.keys().filter(|key| match &self.stage.context {
                ContextParts::Nothing => false,
                ContextParts::All | ContextParts::Deprecated => true,
                ContextParts::Selective(keys) => keys.contains(key),
            });
            visible
                .filter(|key| match self.stage.context {
                    // A coprocessor may return an old or a new name. Both keep the entry.
                    ContextParts::Deprecated => {
                        !entries.contains_key(crate::context::old_name(key))
                            && !entries.contains_key(*key)
                    }
                    _ => !entries.contains_key(*key),
                })
                .cloned()
                .collect()
        });
        for key in gone {
            exchange.context.remove(&key);
        }
    }

    /// Turns a part into the last part of its response, because this client must not receive the later parts.
    fn end_parts(&self, response: &mut Response, is_replaced: bool) {
        response.part = None;
        let json = HeaderValue::from_static("application/json");
        response.headers.insert(header::CONTENT_TYPE, json);
        if !self.kind.is_router() {
            let parts = ResponseParts::read(&response.body).unwrap_or_default();
            let body = parts.without_part().write();
            response.body = body;
        } else if !is_replaced {
            // The frame of a part is not a GraphQL response.
            response.body = Bytes::new();
        }
    }

    fn response_body(
        &self,
        text: &serde_json::value::RawValue,
        original: &Bytes,
        is_part: bool,
    ) -> Result<Bytes, CoprocessorError> {
        if self.kind.is_router() {
            return answer::text_body(text);
        }
        let parts = match ResponseParts::read(text.get().as_bytes()) {
            Ok(parts) => parts,
            Err(_) if !self.validates => return Ok(original.clone()),
            Err(error) => return Err(CoprocessorError::Answer(format!("body: {error}"))),
        };
        // Parsed only if a part of the old body is needed.
        let before = || ResponseParts::read(original).unwrap_or_default();
        let mut merged = match self.stage.body {
            BodyParts::Selected {
                data,
                errors,
                extensions,
            } => {
                let old = before();
                let is_empty =
                    // Stages receive `[]` and `{}` for absent parts. If they return these unchanged, no empty
                    // member must be added.
                    |text: &serde_json::value::RawValue| matches!(text.get(), "[]" | "{}");
                ResponseParts {
                    data: if data { parts.data } else { old.data },
                    errors: if errors { parts.errors } else { old.errors }
                        .filter(|text| !is_empty(text)),
                    extensions: if extensions {
                        parts.extensions
                    } else {
                        old.extensions
                    }
                    .filter(|text| !is_empty(text)),
                    ..old
                }
            }
            _ => parts,
        };
        if is_part {
            merged.keep_part(&before());
        }
        if self.validates
            && let Err(reason) = merged.check()
            // A body that was not a GraphQL response before need not be one now.
            && before().check().is_ok()
        {
            return Err(CoprocessorError::Answer(format!("body: {reason}")));
        }
        Ok(merged.write())
    }
}

fn stage_of(kind: StageKind, config: &Coprocessor) -> Option<&Stage> {
    match kind {
        StageKind::RouterRequest => config.router.request.as_ref(),
        StageKind::RouterResponse => config.router.response.as_ref(),
        StageKind::SupergraphRequest => config.supergraph.request.as_ref(),
        StageKind::SupergraphResponse => config.supergraph.response.as_ref(),
        StageKind::ExecutionRequest => config.execution.request.as_ref(),
        StageKind::ExecutionResponse => config.execution.response.as_ref(),
        StageKind::SubgraphRequest => config.subgraph.request.as_ref(),
        StageKind::SubgraphResponse => config.subgraph.response.as_ref(),
    }
}

fn policy(client: &CoprocessorClient) -> Policy {
    let usual = Policy::default();
    Policy {
        trust: None,
        http2: http2(client.experimental_http2),
        pool_idle_timeout: client.pool_idle_timeout.as_ref().map(|time| **time),
        keep_alive_interval: client
            .experimental_http2_keep_alive_interval
            .as_ref()
            .map(|time| **time),
        keep_alive_timeout: client
            .experimental_http2_keep_alive_timeout
            .as_ref()
            .map_or(usual.keep_alive_timeout, |time| **time),
        connections_max: None,
    }
}

/// The inputs of a call besides its message.
pub(crate) struct StageCall<'a> {
    pub(crate) client: &'a Client,
    pub(crate) observer: &'a dyn Observer,
    pub(crate) exchange: &'a Exchange,
    /// The name of the subgraph and the id of its request, at subgraph stages.
    pub(crate) subgraph: Option<(&'a str, &'a str)>,
}

/// The client's response if a coprocessor failed, for the stages that have a client. Only the log contains
/// the reason.
pub(crate) fn failed_response(error: &CoprocessorError) -> Response {
    if error.is_timeout() {
        failure::timeout()
    } else if error.is_crowded() {
        failure::crowded()
    } else {
        failure::internal()
    }
}

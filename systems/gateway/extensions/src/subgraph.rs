//! A fetch from one subgraph: header rules, stages, the call, stages again.

use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use gateway_config::Compression;
use gateway_upstream::{Call, Endpoint, Reply, SendError};
use http::{HeaderMap, Method, StatusCode, header};
use serde_json::{Value, json};

use crate::encoding;
use crate::exchange::{Exchange, Request, Response, Step};
use crate::failure::FetchProblem;
use crate::flights::{Flights, Key};
use crate::header_rules::Rules;
use crate::identifier;
use crate::json::ResponseParts;
use crate::service::{Service, Shared};

/// Written at send time, behind whatever the stages left.
const FIXED_HEADERS: &[u8] = b"content-type: application/json\r\n\
    accept: application/json, application/graphql-response+json\r\n";

/// What a plan wants from a subgraph.
#[derive(Debug)]
pub struct SubgraphCall {
    /// The whole request body as JSON.
    pub body: Bytes,
    /// Whether it is a query, which may be sent again when a connection breaks.
    pub is_query: bool,
}

/// What came of it.
#[derive(Debug, Default)]
pub struct SubgraphOutcome {
    /// The body, expected to be a GraphQL response; empty when nothing was received.
    pub body: Bytes,
    /// What the gateway adds in front of the body's own errors.
    pub problems: Vec<FetchProblem>,
    /// The status of the answer, when there was one.
    pub status: Option<StatusCode>,
}

/// The answer to a request, or why there is none: one for all that were joined.
type Sent = Result<Reply, Rc<SendError>>;

pub(crate) struct Subgraph {
    pub(crate) index: usize,
    pub(crate) name: Rc<str>,
    pub(crate) endpoint: Endpoint,
    pub(crate) rules: Rules,
    pub(crate) timeout: Option<Duration>,
    pub(crate) compression: Option<Compression>,
    /// Where equal queries that are under way are sent once.
    pub(crate) flights: Option<Flights<Sent>>,
    pub(crate) service: Option<Service>,
    pub(crate) shared: Rc<Shared>,
}

impl Subgraph {
    pub(crate) async fn call(&self, exchange: &Exchange, call: SubgraphCall) -> SubgraphOutcome {
        let mut headers = HeaderMap::new();
        if !self.rules.is_empty() {
            let client = &exchange.client.headers;
            self.rules.apply(
                client,
                &exchange.context,
                &exchange.client_body,
                &mut headers,
            );
        }
        match &self.service {
            None => {
                let (body, is_query) = (call.body, call.is_query);
                let sent = match &self.flights {
                    None => {
                        self.send_alone(&self.endpoint, headers, body, is_query)
                            .await
                    }
                    // Boxed here and below: the work of a request has room for the largest of its
                    // parts and is moved to the heap whole, so that each request would pay for what
                    // few configurations use.
                    Some(_) => Box::pin(self.send(&self.endpoint, headers, body, is_query)).await,
                };
                self.judge(sent)
            }
            Some(service) => Box::pin(self.through(service, exchange, headers, call)).await,
        }
    }

    async fn through(
        &self,
        service: &Service,
        exchange: &Exchange,
        headers: HeaderMap,
        call: SubgraphCall,
    ) -> SubgraphOutcome {
        let id = identifier::uuid_v4();
        let mut request = Request {
            method: Method::POST,
            uri: self.endpoint.uri().clone(),
            headers,
            body: call.body,
        };
        // A break is taken as it is: its body is a response already, so it is not judged again.
        if let Step::Break(response) = service.request_of(exchange, &mut request, &id).await {
            return SubgraphOutcome {
                body: response.body,
                problems: Vec::new(),
                status: Some(response.status),
            };
        }
        // The usual case: the endpoint with its pool, whose address needs no check.
        let sent = if request.uri == *self.endpoint.uri() {
            let sending = self.send(&self.endpoint, request.headers, request.body, call.is_query);
            sending.await
        } else {
            match self.endpoint.moved_to(&request.uri) {
                Ok(moved) => {
                    self.send(&moved, request.headers, request.body, call.is_query)
                        .await
                }
                Err(error) => return self.unsendable(&error.to_string()),
            }
        };
        if !service.has_response_stages() {
            return self.judge(sent);
        }
        let mut response = self.in_form(sent);
        service.response_of(exchange, &mut response, &id).await;
        SubgraphOutcome {
            body: response.body,
            problems: Vec::new(),
            status: Some(response.status),
        }
    }

    /// Sends what rules and stages have left, or waits for an equal query that is under way. It is
    /// compared here and not earlier: what two clients ask alike may be sent with the names of two
    /// tenants.
    async fn send(
        &self,
        endpoint: &Endpoint,
        headers: HeaderMap,
        body: Bytes,
        is_query: bool,
    ) -> Sent {
        match &self.flights {
            // A mutation is never shared: two clients that ask for the same change want it twice.
            Some(flights) if is_query => {
                let is_moved = !std::ptr::eq(endpoint, &self.endpoint);
                let key = Key::new(is_moved.then(|| endpoint.as_str()), &headers, &body);
                // Boxed: `OnceCell` keeps a future in several places while it waits. Unboxed, it
                // made the work of every request 10 KiB larger, shared or not, and all of that is
                // moved to the heap.
                let send = Box::pin(self.send_alone(endpoint, headers, body, is_query));
                flights.join(key, send).await
            }
            _ => self.send_alone(endpoint, headers, body, is_query).await,
        }
    }

    async fn send_alone(
        &self,
        endpoint: &Endpoint,
        mut headers: HeaderMap,
        body: Bytes,
        is_query: bool,
    ) -> Sent {
        // The fixed header says it; a rule's value would make two.
        headers.remove(header::CONTENT_TYPE);
        let body = match self.compression {
            None => body,
            Some(compression) => {
                headers.insert(header::CONTENT_ENCODING, encoding::name(compression));
                encoding::compress(compression, &body)
            }
        };
        let started = tokio::time::Instant::now();
        let call = Call {
            method: Method::POST,
            headers: &headers,
            rendered_headers: FIXED_HEADERS,
            body,
            timeout: self.timeout,
            reply_bytes_max: None,
            is_idempotent: is_query,
        };
        let sent = self.shared.client.send(endpoint, call).await;
        let status = sent.as_ref().ok().map(|reply| reply.status.as_u16());
        self.shared
            .observer
            .subgraph(self.index, status, started.elapsed());
        sent.map_err(Rc::new)
    }

    fn unsendable(&self, reason: &str) -> SubgraphOutcome {
        SubgraphOutcome {
            problems: vec![FetchProblem::http(&self.name, reason, None)],
            ..SubgraphOutcome::default()
        }
    }

    /// Tells GraphQL responses from everything else that can come back.
    fn judge(&self, sent: Sent) -> SubgraphOutcome {
        let mut reply = match sent {
            Ok(reply) => reply,
            Err(error) if error.is_timeout() => {
                log::warn!("subgraph `{}`: {error}", self.name);
                return SubgraphOutcome {
                    problems: vec![FetchProblem::timed_out()],
                    ..SubgraphOutcome::default()
                };
            }
            Err(error) => {
                log::warn!("subgraph `{}`: {error}", self.name);
                return self.unsendable(&error.to_string());
            }
        };
        // Before the content type is judged: what arrives compressed may be JSON all the same.
        if let Some(coding) = reply.content_encoding() {
            match encoding::expand(coding, &reply.body) {
                Ok(body) => reply.body = body,
                Err(reason) => return self.unsendable(&reason),
            }
        }
        let status = reply.status;
        let kind = content_kind(reply.content_type());
        let mut outcome = SubgraphOutcome {
            body: Bytes::new(),
            problems: Vec::new(),
            status: Some(status),
        };
        if status.is_success() {
            match kind {
                Kind::Json | Kind::Graphql => outcome.body = reply.body,
                Kind::Other(reason) => {
                    outcome
                        .problems
                        .push(FetchProblem::http(&self.name, &reason, Some(status)))
                }
            }
            return outcome;
        }
        // The wording of Apollo's router, on which clients and dashboards rely.
        let words = status.canonical_reason().unwrap_or("unknown status");
        let reason = format!("{}: {words}", status.as_u16());
        outcome
            .problems
            .push(FetchProblem::http(&self.name, &reason, Some(status)));
        // With an error status a JSON body counts only if it is a response; a proxy's `{"error":…}`
        // is not.
        let is_response = ResponseParts::read(&reply.body).is_ok_and(|parts| parts.check().is_ok());
        match kind {
            Kind::Json | Kind::Graphql if is_response => outcome.body = reply.body,
            Kind::Json => {
                let raw = String::from_utf8_lossy(&reply.body);
                let reason = if raw.is_empty() {
                    "<empty response body>"
                } else {
                    &raw
                };
                outcome
                    .problems
                    .push(FetchProblem::malformed(&self.name, reason));
            }
            Kind::Graphql | Kind::Other(_) => {}
        }
        outcome
    }

    /// What response stages see: a GraphQL response, whatever came back.
    fn in_form(&self, sent: Sent) -> Response {
        let mut headers = sent.as_ref().map(Reply::headers).unwrap_or_default();
        encoding::end_message_headers(&mut headers);
        let mut outcome = self.judge(sent);
        if outcome.problems.is_empty() {
            let checked = ResponseParts::read(&outcome.body)
                .map_err(|error| error.to_string())
                .and_then(|parts| parts.check().map_err(|reason| reason.to_string()));
            // A body that is not a response must not reach stages as one.
            if let Err(reason) = checked {
                outcome.body = Bytes::new();
                outcome
                    .problems
                    .push(FetchProblem::malformed(&self.name, &reason));
            }
        }
        if !outcome.problems.is_empty() {
            outcome.body = merged(&outcome);
        }
        Response {
            // No status means that no response came; stages see the gateway's error in a response
            // with 200.
            status: outcome.status.unwrap_or(StatusCode::OK),
            headers,
            body: outcome.body,
        }
    }
}

/// The body with the problems in front of its own errors.
fn merged(outcome: &SubgraphOutcome) -> Bytes {
    let mut body: Value =
        serde_json::from_slice(&outcome.body).unwrap_or_else(|_| json!({ "data": null }));
    let mut errors: Vec<Value> = outcome
        .problems
        .iter()
        .map(FetchProblem::to_value)
        .collect();
    if let Some(Value::Array(own)) = body.get_mut("errors") {
        errors.append(own);
    }
    body["errors"] = errors.into();
    body.to_string().into()
}

enum Kind {
    Json,
    Graphql,
    Other(String),
}

fn content_kind(value: Option<&[u8]>) -> Kind {
    const EXPECTED: &str = "expected content-type: application/json or content-type: \
                            application/graphql-response+json";
    let Some(value) = value else {
        return Kind::Other(format!(
            "subgraph response does not contain 'content-type' header; {EXPECTED}"
        ));
    };
    let essence = value.split(|byte| *byte == b';').next().unwrap_or(value);
    // `split` yields one part at least.
    let essence = essence.trim_ascii();
    if essence.eq_ignore_ascii_case(b"application/json") {
        Kind::Json
    } else if essence.eq_ignore_ascii_case(b"application/graphql-response+json") {
        Kind::Graphql
    } else {
        let found = String::from_utf8_lossy(value);
        Kind::Other(format!(
            "subgraph response contains unsupported content-type: {found}; {EXPECTED}"
        ))
    }
}

//! A fetch from one subgraph: header rules, stages, the call, stages again.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use gateway_config::Compression;
use gateway_telemetry::OpenSpan;
use gateway_upstream::{Call, Reply, SendError, UpstreamEndpoint};
use http::{HeaderMap, Method, StatusCode, header};
use serde_json::{Value, json};

use crate::answer_cache::{AnswerCache, CacheLookup, Question};
use crate::encoding;
use crate::exchange::{Exchange, Response, StageRequest, Step};
use crate::failure::FetchProblem;
use crate::header_rules::Rules;
use crate::identifier;
use crate::instrumentation::{Facts, ServiceInstrumentation};
use crate::json::ResponseParts;
use crate::request_coalescing::RequestCoalescing;
use crate::request_key::RequestKey;
use crate::response_headers::ResponseRules;
use crate::retry::{Budget, RETRIES_MAX};
use crate::service::{Service, Shared};

/// Headers that are written at send time, after the headers that stages left.
const FIXED_HEADERS: &[u8] = b"content-type: application/json\r\n\
    accept: application/json, application/graphql-response+json\r\n";

/// A request of a query plan to a subgraph.
#[derive(Debug)]
pub struct SubgraphCall {
    /// The whole request body as JSON.
    pub body: Bytes,
    /// True for a query. A query may be sent again if a connection breaks.
    pub is_query: bool,
}

/// The result of a subgraph request.
#[derive(Debug, Default)]
pub struct SubgraphOutcome {
    /// The body, expected to be a GraphQL response. Empty if no response arrived.
    pub body: Bytes,
    /// Errors that the gateway adds in front of the body's own errors.
    pub problems: Vec<FetchProblem>,
    /// The status of the response, or `None` if no response arrived.
    pub status: Option<StatusCode>,
}

impl SubgraphOutcome {
    /// A response as stages left it, or a response that a stage returned instead. It is not checked again.
    pub(crate) fn given(response: Response) -> Self {
        Self {
            body: response.body,
            problems: Vec::new(),
            status: Some(response.status),
        }
    }
}

/// The response to a request, or the error. All requests that were merged share it.
type Sent = Result<Reply, Rc<SendError>>;

/// True if the response can be shared by all identical in-flight requests. A cookie belongs to one client.
/// With another client's cookie, a client would continue that client's session.
fn is_for_all(sent: &Sent) -> bool {
    !matches!(sent, Ok(reply) if reply.has(&header::SET_COOKIE))
}

/// The endpoint of a request, and the client's request that caused it.
#[derive(Clone, Copy)]
struct To<'a> {
    endpoint: &'a UpstreamEndpoint,
    exchange: &'a Exchange,
}

pub(crate) struct Subgraph {
    pub(crate) index: usize,
    pub(crate) name: Rc<str>,
    pub(crate) endpoint: UpstreamEndpoint,
    pub(crate) rules: Rules,
    pub(crate) timeout: Option<Duration>,
    pub(crate) compression: Option<Compression>,
    /// Merges identical in-flight queries into one request. `None` if the feature is off.
    pub(crate) in_flight: Option<RequestCoalescing<Sent>>,
    pub(crate) service: Option<Service>,
    pub(crate) response_rules: Option<ResponseRules>,
    pub(crate) retry: Option<Arc<Budget>>,
    pub(crate) reply_bytes_max: Option<usize>,
    /// Cache of the subgraph's responses. `None` if caching is off.
    pub(crate) answers: Option<Arc<AnswerCache>>,
    /// Attributes, instruments and events of requests. `None` if they are not configured.
    pub(crate) instrumentation: Option<Rc<ServiceInstrumentation>>,
    pub(crate) shared: Rc<Shared>,
}

impl Subgraph {
    pub(crate) async fn call(&self, exchange: &Exchange, call: SubgraphCall) -> SubgraphOutcome {
        let mut headers = self.ruled(exchange);
        match &self.service {
            None => {
                let (body, is_query) = (call.body, call.is_query);
                let is_plain = self.in_flight.is_none() && self.answers.is_none();
                let sent = if is_plain {
                    let to = To {
                        endpoint: &self.endpoint,
                        exchange,
                    };
                    self.send_alone(to, &mut headers, body, is_query).await
                } else {
                    // Boxed, here and below. The future of a request is as large as the largest of its parts,
                    // and the heap contains all of it. So each request would pay for features that few
                    // configurations use.
                    let endpoint = &self.endpoint;
                    Box::pin(self.fetch(exchange, endpoint, headers, body, is_query)).await
                };
                self.gather(exchange, &sent);
                self.judge(sent).await
            }
            Some(service) => Box::pin(self.through(service, exchange, headers, call)).await,
        }
    }

    /// The request headers after the header rules.
    pub(crate) fn ruled(&self, exchange: &Exchange) -> HeaderMap {
        let mut headers = HeaderMap::new();
        if !self.rules.is_empty() {
            let client = &exchange.client.headers;
            self.rules.apply(
                client,
                &exchange.context,
                &exchange.client_body,
                &mut headers,
            );
            if let Some(trace) = &exchange.trace {
                // Each request gets trace headers of its own when it is sent. Without them, identical requests
                // compare as equal.
                trace.clear(&mut headers);
            }
        }
        headers
    }

    async fn through(
        &self,
        service: &Service,
        exchange: &Exchange,
        headers: HeaderMap,
        call: SubgraphCall,
    ) -> SubgraphOutcome {
        let id = identifier::uuid_v4();
        let mut request = StageRequest {
            method: Method::POST,
            uri: self.endpoint.uri().clone(),
            headers,
            body: call.body,
        };
        // A break is used unchanged. Its body is a GraphQL response already, so it is not checked again.
        if let Step::Break(response) = service.request_of(exchange, &mut request, &id).await {
            return SubgraphOutcome::given(response);
        }
        // The usual case: the endpoint with its connection pool. Its address needs no check.
        let (headers, body, is_query) = (request.headers, request.body, call.is_query);
        let sent = if request.uri == *self.endpoint.uri() {
            self.fetch(exchange, &self.endpoint, headers, body, is_query)
                .await
        } else {
            match self.endpoint.moved_to(&request.uri) {
                Ok(moved) => self.fetch(exchange, &moved, headers, body, is_query).await,
                Err(error) => return self.unsendable(&error.to_string()),
            }
        };
        if !service.has_response_stages() {
            self.gather(exchange, &sent);
            return self.judge(sent).await;
        }
        let mut response = self.in_form(sent).await;
        service.response_of(exchange, &mut response, &id).await;
        if let Some(rules) = &self.response_rules {
            rules.apply(&response.headers, exchange.gathered());
        }
        SubgraphOutcome::given(response)
    }

    /// Returns the cached response, or sends the request.
    async fn fetch(
        &self,
        exchange: &Exchange,
        endpoint: &UpstreamEndpoint,
        headers: HeaderMap,
        body: Bytes,
        is_query: bool,
    ) -> Sent {
        match &self.answers {
            // Boxed: requests to other subgraphs must not reserve memory for it.
            Some(answers) if is_query => {
                Box::pin(self.fetch_kept(answers, exchange, endpoint, headers, body)).await
            }
            _ => {
                let to = To { endpoint, exchange };
                self.send(to, headers, body, is_query).await
            }
        }
    }

    async fn fetch_kept(
        &self,
        answers: &AnswerCache,
        exchange: &Exchange,
        endpoint: &UpstreamEndpoint,
        headers: HeaderMap,
        body: Bytes,
    ) -> Sent {
        let client = answers.private_id(&self.name).and_then(|key| {
            exchange.context.with(key, |value| match value? {
                Value::Null => None,
                Value::String(text) => Some(text.clone()),
                other => Some(other.to_string()),
            })
        });
        let to = To { endpoint, exchange };
        let question = Question {
            subgraph: &self.name,
            address: endpoint.as_str(),
            headers: &headers,
            body: &body,
            client,
        };
        match answers.look(&question).await {
            CacheLookup::Whole(reply) => return Ok(reply),
            CacheLookup::Miss(keys) => {
                let sent = self.send(to, headers, body, true).await;
                if let Ok(reply) = &sent {
                    answers.keep(&keys, reply);
                }
                return sent;
            }
            CacheLookup::Partial(partial, fewer) => {
                let sent = self.send(to, headers.clone(), fewer, true).await;
                if let Ok(reply) = &sent
                    && let Some(whole) = answers.complete(partial, reply)
                {
                    return Ok(whole);
                }
            }
        }
        // Paths in errors refer to the list that was sent, which differs from the client's list.
        self.send(to, headers, body, true).await
    }

    /// Runs the rules that copy subgraph response headers to the client's response.
    fn gather(&self, exchange: &Exchange, sent: &Sent) {
        if let (Some(rules), Ok(reply)) = (&self.response_rules, sent) {
            rules.apply(&reply.headers(), exchange.gathered());
        }
    }

    /// Sends the request as rules and stages left it, or waits for an identical query in flight. The
    /// comparison happens here and not earlier, because rules may add tenant names to identical client
    /// queries.
    async fn send(&self, to: To<'_>, mut headers: HeaderMap, body: Bytes, is_query: bool) -> Sent {
        match &self.in_flight {
            // A mutation is never shared. If two clients send one mutation each, both must run.
            Some(in_flight) if is_query => {
                let is_moved = !std::ptr::eq(to.endpoint, &self.endpoint);
                let moved_to = is_moved.then(|| to.endpoint.as_str());
                let key = RequestKey::new(moved_to, &headers, &body);
                // Boxed: `OnceCell` keeps a future in several places while it waits. Unboxed, it made the
                // future of every request 10 KiB larger, shared or not, and that future is moved to the heap
                // as a whole.
                let send = Box::pin(self.send_alone(to, &mut headers, body, is_query));
                in_flight.join(key, is_for_all, send).await
            }
            _ => self.send_alone(to, &mut headers, body, is_query).await,
        }
    }

    async fn send_alone(
        &self,
        to: To<'_>,
        headers: &mut HeaderMap,
        body: Bytes,
        is_query: bool,
    ) -> Sent {
        // The fixed headers contain it already. A rule's value would add a second one.
        headers.remove(header::CONTENT_TYPE);
        let body = match self.compression {
            None => body,
            Some(compression) => {
                headers.insert(header::CONTENT_ENCODING, encoding::name(compression));
                // Boxed, as in `fetch`, because few configurations use it.
                Box::pin(encoding::compress(compression, &body, encoding::give_way)).await
            }
        };
        match &self.retry {
            Some(budget) if budget.is_for(is_query) => {
                // Boxed: the usual call, without retries, must not reserve memory for it.
                Box::pin(self.send_again(budget, to, headers, body, is_query)).await
            }
            _ => {
                self.send_once(to, headers, body, is_query, self.timeout, 0)
                    .await
            }
        }
    }

    /// Sends a request until it succeeds, the retry budget is spent or its time is over.
    async fn send_again(
        &self,
        budget: &Budget,
        to: To<'_>,
        headers: &mut HeaderMap,
        body: Bytes,
        is_query: bool,
    ) -> Sent {
        let started = tokio::time::Instant::now();
        let mut retries = 0;
        loop {
            let left = self
                .timeout
                .map(|all| all.saturating_sub(started.elapsed()));
            let sent = self
                .send_once(to, headers, body.clone(), is_query, left, retries)
                .await;
            let is_success = match &sent {
                Ok(reply) => !reply.status.is_server_error(),
                Err(error) => {
                    // The queue for connections is full. A retry would make it worse.
                    if error.is_timeout() || error.is_crowded() {
                        return sent;
                    }
                    false
                }
            };
            let now = tokio::time::Instant::now();
            if is_success {
                budget.succeeded(now);
                return sent;
            }
            if retries == RETRIES_MAX || !budget.spend(now) {
                return sent;
            }
            retries += 1;
            self.shared.observer.retried(self.index);
        }
    }

    async fn send_once(
        &self,
        To { endpoint, exchange }: To<'_>,
        headers: &mut HeaderMap,
        body: Bytes,
        is_query: bool,
        timeout: Option<Duration>,
        retries: u32,
    ) -> Sent {
        let configured = &self.endpoint;
        let trace = exchange.trace.as_ref();
        let mut span =
            gateway_telemetry::sending(trace, &Method::POST, configured, endpoint, headers);
        if let Some(span) = &mut span {
            span.set("subgraph.name", self.name.to_string());
            let kind = if is_query { "query" } else { "mutation" };
            span.set("subgraph.graphql.operation.type", kind);
            if retries > 0 {
                span.set("http.request.resend_count", retries);
            }
        }
        let observed = self.instrumentation.as_deref().map(|it| {
            it.begin(span.as_deref_mut());
            // Boxed: requests without instrumentation must not reserve memory for it.
            let request = Box::new(StageRequest {
                method: Method::POST,
                uri: endpoint.uri().clone(),
                headers: headers.clone(),
                body: body.clone(),
            });
            it.requested(&self.facts(exchange, &request, retries));
            (it, request)
        });
        let started = tokio::time::Instant::now();
        let call = Call {
            method: Method::POST,
            headers,
            rendered_headers: FIXED_HEADERS,
            body,
            timeout,
            reply_bytes_max: self.reply_bytes_max,
            is_idempotent: is_query,
        };
        let sent = self.shared.client.send(endpoint, call).await;
        let status = sent.as_ref().ok().map(|reply| reply.status.as_u16());
        self.shared
            .observer
            .subgraph(self.index, status, started.elapsed());
        if let Some((instrumentation, request)) = &observed {
            if let Some(span) = &mut span {
                gateway_telemetry::describe(span, &sent);
            }
            let facts = Facts {
                took: started.elapsed(),
                ..self.facts(exchange, request, retries)
            };
            // Boxed, as above.
            Box::pin(observe(
                instrumentation,
                span,
                &facts,
                &sent,
                self.reply_bytes_max,
            ))
            .await;
        } else {
            gateway_telemetry::sent(span, &sent);
        }
        sent.map_err(Rc::new)
    }

    fn facts<'a>(
        &'a self,
        exchange: &'a Exchange,
        request: &'a StageRequest,
        resend_count: u32,
    ) -> Facts<'a> {
        Facts {
            request: Some(request),
            subgraph: Some(&self.name),
            resend_count,
            ..Facts::new(exchange)
        }
    }

    pub(crate) fn unsendable(&self, reason: &str) -> SubgraphOutcome {
        SubgraphOutcome {
            problems: vec![FetchProblem::http(&self.name, reason, None)],
            ..SubgraphOutcome::default()
        }
    }

    /// Separates GraphQL responses from all other results of a request.
    async fn judge(&self, sent: Sent) -> SubgraphOutcome {
        match sent {
            // Boxed: most responses are not compressed and must not reserve memory for it.
            Ok(reply) if reply.content_encoding().is_some() => {
                Box::pin(self.judge_compressed(reply)).await
            }
            sent => self.judge_plain(sent),
        }
    }

    async fn judge_compressed(&self, mut reply: Reply) -> SubgraphOutcome {
        let coding = reply.content_encoding().unwrap_or_default();
        let most = self.reply_bytes_max;
        // Decompressed before the content type is checked, because the compressed content may be JSON.
        match encoding::expand(coding, &reply.body, most, encoding::give_way).await {
            Ok(body) => reply.body = body,
            Err(reason) => return self.unsendable(&format!("subgraph response {reason}")),
        }
        self.judge_plain(Ok(reply))
    }

    fn judge_plain(&self, sent: Sent) -> SubgraphOutcome {
        let reply = match sent {
            Ok(reply) => reply,
            Err(error) if error.is_timeout() => {
                log::warn!("subgraph `{}`: {error}", self.name);
                return SubgraphOutcome {
                    problems: vec![FetchProblem::timed_out()],
                    ..SubgraphOutcome::default()
                };
            }
            Err(error) if error.is_crowded() => {
                log::warn!("subgraph `{}`: {error}", self.name);
                return SubgraphOutcome {
                    problems: vec![FetchProblem::crowded(&self.name)],
                    ..SubgraphOutcome::default()
                };
            }
            Err(error) => {
                log::warn!("subgraph `{}`: {error}", self.name);
                return self.unsendable(&error.to_string());
            }
        };
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
        // With an error status, a JSON body counts only if it is a GraphQL response. A proxy's `{"error":…}`
        // is not.
        let is_response = ResponseParts::read(&reply.body).is_ok_and(|parts| parts.check().is_ok());
        match kind {
            Kind::Json | Kind::Graphql if is_response => outcome.body = reply.body,
            Kind::Json => {
                let raw = String::from_utf8_lossy(&reply.body);
                // The error contains this text twice. The beginning of the text is enough to see the problem.
                let raw = gateway_telemetry::shortened(&raw, gateway_telemetry::TEXT_CHARS_MAX);
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

    /// Converts any result to a GraphQL response, because response stages expect one.
    async fn in_form(&self, sent: Sent) -> Response {
        let mut headers = sent.as_ref().map(Reply::headers).unwrap_or_default();
        encoding::end_message_headers(&mut headers);
        let mut outcome = self.judge(sent).await;
        if outcome.problems.is_empty() {
            let checked = ResponseParts::read(&outcome.body)
                .map_err(|error| error.to_string())
                .and_then(|parts| parts.check().map_err(|reason| reason.to_string()));
            // Stages must not receive an invalid body as a GraphQL response.
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
            // Without a status, no response arrived. Stages see the gateway's error in a response with status
            // 200.
            status: outcome.status.unwrap_or(StatusCode::OK),
            headers,
            body: outcome.body,
            part: None,
        }
    }
}

/// Records the result of a request in its span, in metrics and in the log.
async fn observe(
    instrumentation: &ServiceInstrumentation,
    mut span: Option<Box<OpenSpan>>,
    facts: &Facts<'_>,
    sent: &Result<Reply, SendError>,
    bytes_max: Option<usize>,
) {
    let reason = sent.as_ref().err().map(ToString::to_string);
    let response = match sent {
        Ok(reply) => {
            let mut headers = reply.headers();
            let body = match reply.content_encoding() {
                Some(coding) if instrumentation.reads_body() => {
                    let give_way = encoding::give_way;
                    let expanded = encoding::expand(coding, &reply.body, bytes_max, give_way);
                    encoding::end_message_headers(&mut headers);
                    // The request itself reports a body that cannot be read.
                    expanded.await.unwrap_or_default()
                }
                _ => reply.body.clone(),
            };
            Some(Response {
                status: reply.status,
                headers,
                body,
                part: None,
            })
        }
        Err(_) => None,
    };
    let facts = Facts {
        response: response.as_ref(),
        failure: reason.as_deref(),
        ..*facts
    };
    instrumentation.answered(span.as_deref_mut(), &facts);
}

/// The body with the gateway's problems in front of its own errors.
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
    // `split` yields at least one part.
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

//! The stages of a GraphQL request, as one list.
//!
//! [`serve`] contains the stages of the router service. [`stages`] contains the stages of the services after
//! it. The services nest. If a service returns a response early, this response still passes the response
//! stages of the outer services. A service that is not configured is `None` and costs one comparison.

use std::pin::pin;
use std::rc::Rc;

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use gateway_extensions::{
    CLIENT_NAME, CLIENT_VERSION, ClientBody, ClientHead, Exchange, Facts, OPERATION_ID, Service,
    StageRequest, Step,
};
use gateway_federation::{GraphqlError, OperationKind, OperationRequest, Overrides};
use gateway_telemetry::{Active, NAME_CHARS_MAX, shortened};
use graphql_http::{Media, Negotiated};
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, StatusCode};

use crate::graphql::apq;
use crate::graphql::authorization;
use crate::graphql::batch::{self, AnswerList};
use crate::graphql::engine::Operation;
use crate::graphql::execution::{Plan, execute};
use crate::graphql::operation_head;
use crate::graphql::progressive_override;
use crate::graphql::query_planning::{self, status_of_refusal};
use crate::graphql::request_body::{self, Checked, decode, not_a_request};
use crate::http::observed;
use crate::http::reply::{self, Refusal as Refused, Reply};
use crate::http::spans;
use crate::http::summary::{Client, Summary};
use crate::process::clock;
use crate::process::worker_state::WorkerState;
use crate::stream::subscription;

/// Runs all stages on a request with its whole body.
///
/// The arguments are references, because each function would move 256 bytes otherwise.
pub(crate) async fn serve(
    serving: &Rc<WorkerState>,
    request: &mut StageRequest,
    trace: Option<Active>,
    summary: &mut Summary,
) -> Reply {
    let extensions = &serving.extensions;
    if extensions.sees_headers()
        && let Some(refusal) = unreadable(&request.headers)
    {
        return *refusal;
    }
    let mut exchange = Exchange::new(Rc::new(match &extensions.router {
        // A copy: the stage may change the request while its scripts read the client's headers.
        Some(_) => copy_of_head(request),
        None => take_head(request),
    }));
    exchange.trace = trace;
    let labels = serving.generation.engine.override_labels();
    progressive_override::announce(labels, &exchange);
    if let Some(observed) = &mut summary.observed {
        observed.arrived(serving, &request.body, &exchange);
    }

    if let Some(service) = &extensions.router {
        if let Step::Break(reply) = service.request(&exchange, request).await {
            return reply;
        }
        exchange.client = Rc::new(take_head(request));
    }
    let body = std::mem::take(&mut request.body);
    let batching = &serving.generation.config.batching;
    let mut reply = match batch::operations(batching, &exchange.client, &body) {
        None => {
            // Pinned in place: awaiting the future by value would copy 10 KB.
            let work = pin!(answer(serving, &mut exchange, body, summary));
            work.await
        }
        Some(Err(refusal)) => *refusal,
        Some(Ok(operations)) => Box::pin(answer_all(serving, &exchange, operations, summary)).await,
    };
    if let Some(observed) = &mut summary.observed {
        observed.keep(&exchange);
    }
    if summary.goes_on(&reply)
        && let Some(rest) = &summary.rest
    {
        reply.body = rest.first(&reply.body);
    } else if summary.takes_events_only {
        subscription::as_events(&mut reply);
    }
    if let Some(service) = &extensions.router {
        service.response(&exchange, &mut reply).await;
        summary.goes_on(&reply);
    }
    reply
}

/// Rejects a request with a header that scripts and coprocessors cannot read. They would decide without it,
/// but a subgraph would receive it.
fn unreadable(headers: &HeaderMap) -> Option<Refused> {
    let is_text = |value: &HeaderValue| std::str::from_utf8(value.as_bytes()).is_ok();
    let (name, _) = headers.iter().find(|(_, value)| !is_text(value))?;
    let details = format!("the header `{name}` is not UTF-8");
    let status = StatusCode::BAD_REQUEST;
    Some(Box::new(reply::invalid_request(status, &details)))
}

/// Executes the operations of a list, a few at a time. Each operation starts with the context that the router
/// stages left.
async fn answer_all(
    serving: &Rc<WorkerState>,
    exchange: &Exchange,
    operations: Vec<Bytes>,
    summary: &mut Summary,
) -> Reply {
    let works = operations.into_iter().map(|body| async move {
        let mut summary = Summary::default();
        let mut exchange = exchange.for_operation();
        let work = answer(serving, &mut exchange, body, &mut summary);
        (Box::pin(work).await, summary)
    });
    let mut answers = stream::iter(works).buffered(batch::AT_A_TIME);
    let limit = serving.generation.config.limits.response_max_bytes.0.0;
    let mut list = AnswerList::new(limit);
    while let Some((reply, of_one)) = answers.next().await {
        summary.add(of_one);
        list.push(reply);
    }
    list.reply()
}

/// Runs the stages after the router on one GraphQL request, in a span of its own.
async fn answer(
    serving: &Rc<WorkerState>,
    exchange: &mut Exchange,
    body: Bytes,
    summary: &mut Summary,
) -> Reply {
    let mut span = spans::operation(exchange);
    if let Some(supergraph) = &serving.extensions.instrumentation.supergraph {
        exchange.started = Some(clock::now());
        supergraph.begin(span.as_deref_mut());
    }
    let reply = stages(serving, exchange, body, summary).await;
    observed::operation_answered(serving, span.as_deref_mut(), exchange, &reply);
    spans::answered(span, exchange, &reply, summary.error_count);
    reply
}

async fn stages(
    serving: &Rc<WorkerState>,
    exchange: &mut Exchange,
    body: Bytes,
    summary: &mut Summary,
) -> Reply {
    let extensions = &serving.extensions;
    let media = match negotiate(serving, &exchange.client.headers, summary) {
        Ok(media) => media,
        Err(refusal) => return *refusal,
    };
    let (mut text, checked) = match request_body::read(&exchange.client, body) {
        Ok(read) => read,
        Err(refusal) => return *refusal,
    };
    summary.client = client_of(serving, exchange);

    let rules = &serving.generation.config.authorization;
    if let Err(refusal) = authorization::require(rules, exchange) {
        return *refusal;
    }
    if let Err(refusal) = supply(serving, exchange, media, &mut text) {
        return *refusal;
    }
    if extensions.sees_context() {
        operation_head::announce(exchange, checked.as_ref(), &text);
    }
    authorization::announce(serving, exchange, &text).await;
    if let Some(service) = &extensions.supergraph
        && let Err(reply) = enter(service, exchange, &mut text).await
    {
        return *reply;
    }
    let labels = serving.generation.engine.override_labels();
    let overrides = progressive_override::draw(labels, exchange);
    let mut reply = 'supergraph: {
        let checked = checked.as_ref();
        let mut plan = match plan(serving, exchange, media, &overrides, checked, &text).await {
            Ok(plan) => plan,
            Err(refusal) => break 'supergraph *refusal,
        };
        // Before the execution, so that the log contains the name of a request that fails or times out there.
        summary.operation_name = exchange.operation_name.as_deref().map(name_of);
        if let Some(supergraph) = &extensions.instrumentation.supergraph {
            supergraph.requested(&Facts::new(exchange));
        }

        if let Some(service) = &extensions.execution {
            // Shares the bytes. Only a stage that changes the text causes a second plan.
            let before = text.clone();
            if let Err(reply) = enter(service, exchange, &mut text).await {
                break 'supergraph *reply;
            }
            if text != before {
                let again = self::plan(serving, exchange, media, &overrides, checked, &text);
                plan = match again.await {
                    Ok(plan) => plan,
                    Err(refusal) => break 'supergraph *refusal,
                };
            }
        }
        let mut reply = execute(serving, exchange, plan, media, summary).await;
        exchange.give_headers(&mut reply.headers);

        if let Some(service) = &extensions.execution {
            service.response(exchange, &mut reply).await;
        }
        reply
    };
    if let Some(service) = &extensions.supergraph {
        service.response(exchange, &mut reply).await;
    }
    reply
}

/// Replaces an id or a hash by the text of the operation. Rejects texts that the operation list does not
/// allow.
fn supply(
    serving: &WorkerState,
    exchange: &Exchange,
    media: Media,
    text: &mut Bytes,
) -> Result<(), Refused> {
    let generation = &serving.generation;
    let list = generation.list.as_ref();
    if let Some(list) = list
        && list.supply(exchange, media, text)?
    {
        return Ok(());
    }
    apq::supply(generation.persisted.as_ref(), exchange, media, text)?;
    match list {
        Some(list) => list.admit(media, text),
        None => Ok(()),
    }
}

fn copy_of_head(request: &StageRequest) -> ClientHead {
    ClientHead {
        method: request.method.clone(),
        uri: request.uri.clone(),
        headers: request.headers.clone(),
    }
}

/// Moves the head out of the request and leaves the body.
fn take_head(request: &mut StageRequest) -> ClientHead {
    ClientHead {
        method: std::mem::take(&mut request.method),
        uri: std::mem::take(&mut request.uri),
        headers: std::mem::take(&mut request.headers),
    }
}

/// The media type of the response.
fn negotiate(
    serving: &WorkerState,
    headers: &HeaderMap,
    summary: &mut Summary,
) -> Result<Media, Refused> {
    let accept = headers.get_all(header::ACCEPT).iter();
    let negotiated = graphql_http::negotiate(accept.map(HeaderValue::as_bytes), false);
    if let Some(Negotiated::Response(media)) = negotiated {
        return Ok(media);
    }
    // With subscriptions on, a client that accepts only events receives each response as an event.
    if serving.generation.config.subscriptions().is_some()
        && subscription::format(headers).is_some()
    {
        summary.takes_events_only = true;
        return Ok(Media::Json);
    }
    Err(Box::new(reply::error(
        StatusCode::NOT_ACCEPTABLE,
        "'accept' header must be one of: \"*/*\", \"application/json\", \"application/graphql-response+json\"",
        "INVALID_ACCEPT_HEADER",
    )))
}

/// Name and version of the client: from the context if a stage set them, otherwise from the headers.
fn client_of(serving: &WorkerState, exchange: &Exchange) -> Option<Box<Client>> {
    let names = &serving.generation.config.telemetry.apollo;
    let of = |key: &str, header: &HeaderName| {
        exchange.context.text(key).or_else(|| {
            let value = exchange.client.headers.get(header)?.to_str().ok()?;
            // Scripts and coprocessors find it in the context, regardless of its source.
            exchange.context.insert(key, value.into());
            Some(value.to_owned())
        })
    };
    let name = of(CLIENT_NAME, &names.client_name_header.0);
    let version = of(CLIENT_VERSION, &names.client_version_header.0);
    (name.is_some() || version.is_some()).then(|| {
        Box::new(Client {
            name: name.as_deref().map(name_of),
            version: version.as_deref().map(name_of),
        })
    })
}

/// A client's text, shortened for the log and the metrics.
fn name_of(text: &str) -> String {
    shortened(text, NAME_CHARS_MAX).into_owned()
}

/// Runs a service's request stages on a GraphQL request. They may change headers and body.
async fn enter(
    service: &Service,
    exchange: &mut Exchange,
    text: &mut Bytes,
) -> Result<(), Refused> {
    // An invalid request must not reach a stage that expects a valid one.
    decode(text)?;
    let head = &*exchange.client;
    let mut request = StageRequest {
        method: head.method.clone(),
        uri: head.uri.clone(),
        headers: head.headers.clone(),
        body: text.clone(),
    };
    match service.request(exchange, &mut request).await {
        Step::Break(reply) => Err(Box::new(reply)),
        Step::Continue => {
            if request.body != *text {
                let checked = graphql_http::check_body(&request.body);
                checked.map_err(|error| Box::new(not_a_request(&error)))?;
            }
            *text = std::mem::take(&mut request.body);
            exchange.client = Rc::new(take_head(&mut request));
            Ok(())
        }
    }
}

/// Takes the operation of a request from the cache, or prepares it. Checks its variables.
async fn plan(
    serving: &WorkerState,
    exchange: &mut Exchange,
    media: Media,
    overrides: &Overrides,
    checked: Option<&Checked>,
    text: &Bytes,
) -> Result<Plan, Refused> {
    let graphql = request_body::decode_found(text, checked)?;
    let query = graphql_http::with_old_escapes(&graphql.query);
    let requested = OperationRequest {
        query: &query,
        operation_name: graphql.operation_name.as_deref(),
        overrides,
        grants: None,
    };
    let trace = exchange.trace.as_ref();
    let mut operation = query_planning::operation(serving, media, trace, &requested).await?;
    if let Some(grants) = authorization::grants(exchange, &operation) {
        let grants = Some(&grants);
        let requested = OperationRequest {
            grants,
            ..requested
        };
        operation = query_planning::operation(serving, media, trace, &requested).await?;
        authorization::log(&serving.generation.config.authorization, &operation);
    }
    // After planning, because the kind of the operation is in the plan.
    if operation.kind() == OperationKind::Mutation {
        check_mutation(serving, exchange, media)?;
    }
    let variables = graphql.variables.map(|raw| raw.text().as_bytes());
    // Checked for each request, because the cached plan applies to all variables.
    let variables = operation.coerce(variables).map_err(|errors| {
        Box::new(reply::errors(
            status_of_refusal(serving, media),
            reply::content_type(media),
            &errors,
        ))
    })?;
    if let (Some(cost_limit), Operation::Federated(prepared)) =
        (&serving.generation.cost_limit, &operation)
        && let Err(error) = cost_limit.judge(prepared, &variables, &exchange.context)
    {
        return Err(Box::new(reply::errors(
            StatusCode::BAD_REQUEST,
            reply::content_type(media),
            &[error],
        )));
    }
    for exceeded in operation.exceeded() {
        log::warn!("a request beyond the limits: {}", exceeded.message);
    }
    // Set here, because only the subgraph stages read it. Earlier stages have the text itself.
    exchange.client_body = Rc::new(ClientBody::new(text.clone()));
    exchange.operation_name = operation.name().map(str::to_owned);
    exchange.operation_kind = Some(operation.kind().as_str());
    exchange.operation_size = Some(operation.size());
    if serving.extensions.sees_context() {
        exchange.context.insert(OPERATION_ID, operation.id().into());
    }
    spans::planned(exchange, operation.kind());
    if serving.extensions.wants_query_plan() {
        // The plan as JSON is large. It is written only if a configured stage receives it.
        exchange.query_plan = Some(operation.query_plan());
    }
    Ok(Plan {
        operation,
        variables,
    })
}

/// Refuses a mutation by GET, and every mutation if the configuration forbids them.
fn check_mutation(serving: &WorkerState, exchange: &Exchange, media: Media) -> Result<(), Refused> {
    if exchange.client.method == Method::GET {
        let mut refusal = reply::error(
            StatusCode::METHOD_NOT_ALLOWED,
            "Mutations can only be sent over HTTP POST",
            "MUTATION_FORBIDDEN",
        );
        let allow = HeaderValue::from_static("POST");
        refusal.headers.insert(header::ALLOW, allow);
        return Err(Box::new(refusal));
    }
    if serving.generation.config.forbid_mutations {
        let error = GraphqlError::new("Mutations are forbidden", "MUTATION_FORBIDDEN");
        return Err(Box::new(reply::errors(
            StatusCode::BAD_REQUEST,
            reply::content_type(media),
            &[error],
        )));
    }
    Ok(())
}

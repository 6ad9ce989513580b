//! The stages of a GraphQL request.
//!
//! [`serve`] is the list of stages and holds nothing else. The services nest: an answer that one of
//! them breaks with still passes the response stages of those around it. A service that is not
//! configured is `None` and costs one comparison.

use std::pin::pin;
use std::rc::Rc;

use bytes::Bytes;
use gateway_extensions::{
    CLIENT_NAME, CLIENT_VERSION, ClientBody, ClientHead, Exchange, JWT_CLAIMS, Request, Service,
    Step,
};
use gateway_federation::{
    Asked, GraphqlError, OperationKind, Overrides, Refusal, UNAUTHORIZED, Variables,
};
use gateway_remote::{Asking, Session, SessionError};
use gateway_telemetry::{Active, Kind, NAME_CHARS_MAX, shortened};
use graphql_http::{Media, Negotiated};
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, StatusCode};

use crate::apq;
use crate::authorization;
use crate::batch;
use crate::deferred;
use crate::engine::{Engine, Operation, Outcome};
use crate::planning::{Allowed, NotPlanned, Order};
use crate::progressive_override;
use crate::reply::{self, JSON, Refusal as Refused, Reply};
use crate::serving::Serving;
use crate::sources::Sources;
use crate::spans;
use crate::subgraphs::Subgraphs;
use crate::subscription;
use crate::summary::{Client, Summary};
use crate::understood::{self, Checked, decode, not_a_request};

/// Takes a request with its whole body through all stages, and what it needs of it.
///
/// By reference: each function would move it, a quarter of a kilobyte.
pub(crate) async fn serve(
    serving: &Rc<Serving>,
    (request, trace): (&mut Request, Option<Active>),
    summary: &mut Summary,
) -> Reply {
    let extensions = &serving.extensions;
    if extensions.sees_headers()
        && let Some(refusal) = unreadable(&request.headers)
    {
        return *refusal;
    }
    let mut exchange = Exchange::new(Rc::new(match &extensions.router {
        // A copy: the stage may change the request while its scripts read the client's.
        Some(_) => copy_of_head(request),
        None => take_head(request),
    }));
    exchange.trace = trace;
    let labels = serving.generation.engine.override_labels();
    progressive_override::announce(labels, &exchange);

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
            // Where it is: what is awaited as it comes may be moved before, twice five kilobytes.
            let work = pin!(answer(serving, &mut exchange, body, summary));
            work.await
        }
        Some(operations) => {
            let operations = (operations, &mut *summary);
            Box::pin(batch::answer(serving, &exchange, operations)).await
        }
    };
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

/// The refusal of a request with a header that scripts and coprocessors cannot read: what they decide
/// without having seen it must not reach a subgraph.
fn unreadable(headers: &HeaderMap) -> Option<Refused> {
    let is_text = |value: &HeaderValue| std::str::from_utf8(value.as_bytes()).is_ok();
    let (name, _) = headers.iter().find(|(_, value)| !is_text(value))?;
    let details = format!("the header `{name}` is not UTF-8");
    let status = StatusCode::BAD_REQUEST;
    Some(Box::new(reply::invalid_request(status, &details)))
}

/// Takes one GraphQL request through the stages behind the router, in a span of its own.
pub(crate) async fn answer(
    serving: &Rc<Serving>,
    exchange: &mut Exchange,
    body: Bytes,
    summary: &mut Summary,
) -> Reply {
    let span = spans::operation(exchange);
    let reply = stages(serving, exchange, body, summary).await;
    spans::answered(span, exchange, (&reply, summary.error_count));
    reply
}

async fn stages(
    serving: &Rc<Serving>,
    exchange: &mut Exchange,
    body: Bytes,
    summary: &mut Summary,
) -> Reply {
    let extensions = &serving.extensions;
    let media = match negotiate(serving, &exchange.client.headers, summary) {
        Ok(media) => media,
        Err(refusal) => return *refusal,
    };
    let (mut text, checked) = match understood::understand(&exchange.client, body) {
        Ok(understood) => understood,
        Err(refusal) => return *refusal,
    };
    summary.client = client_of(serving, exchange);

    if let Err(refusal) = authorization::require(&serving.generation.config.authorization, exchange)
    {
        return *refusal;
    }
    if let Err(refusal) = supply(serving, exchange, media, &mut text) {
        return *refusal;
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
        let asked = (media, &overrides, checked.as_ref());
        let mut plan = match plan(serving, exchange, asked, &text).await {
            Ok(plan) => plan,
            Err(refusal) => break 'supergraph *refusal,
        };
        // Before the execution, so that a request that fails or times out there has its name in
        // the log.
        summary.operation_name = exchange.operation_name.as_deref().map(name_of);

        if let Some(service) = &extensions.execution {
            // Shares the bytes. Only a stage that changed them pays for a second plan.
            let before = text.clone();
            if let Err(reply) = enter(service, exchange, &mut text).await {
                break 'supergraph *reply;
            }
            if text != before {
                plan = match self::plan(serving, exchange, asked, &text).await {
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

/// Puts the text of an operation in place of its id or hash, and refuses what no list allows.
fn supply(
    serving: &Serving,
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

fn copy_of_head(request: &Request) -> ClientHead {
    ClientHead {
        method: request.method.clone(),
        uri: request.uri.clone(),
        headers: request.headers.clone(),
    }
}

/// Leaves the body behind.
fn take_head(request: &mut Request) -> ClientHead {
    ClientHead {
        method: std::mem::take(&mut request.method),
        uri: std::mem::take(&mut request.uri),
        headers: std::mem::take(&mut request.headers),
    }
}

/// The media type of the answer.
fn negotiate(
    serving: &Serving,
    headers: &HeaderMap,
    summary: &mut Summary,
) -> Result<Media, Refused> {
    let accept = headers.get_all(header::ACCEPT).iter();
    let negotiated = graphql_http::negotiate(accept.map(HeaderValue::as_bytes), false);
    if let Some(Negotiated::Response(media)) = negotiated {
        return Ok(media);
    }
    // Who takes events and nothing else gets every answer as one, where there are subscriptions.
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

/// The name and version of the client: what a stage wrote into the context, else the headers.
fn client_of(serving: &Serving, exchange: &Exchange) -> Option<Box<Client>> {
    let names = &serving.generation.config.telemetry.apollo;
    let of = |key: &str, header: &HeaderName| {
        exchange.context.text(key).or_else(|| {
            let value = exchange.client.headers.get(header)?.to_str().ok()?;
            // Scripts and coprocessors find it in the context, wherever it came from.
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

/// A name that a client has chosen, as the log and the metrics show it.
fn name_of(text: &str) -> String {
    shortened(text, NAME_CHARS_MAX).into_owned()
}

/// Takes a GraphQL request through a service; it may change headers and body.
async fn enter(
    service: &Service,
    exchange: &mut Exchange,
    text: &mut Bytes,
) -> Result<(), Refused> {
    // An invalid request must not reach a stage that expects a valid one.
    decode(text)?;
    let head = &*exchange.client;
    let mut request = Request {
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

/// An operation with its variables.
type Plan = (Operation, Variables);

/// Takes the operation of a request from the cache or prepares it, and checks its variables.
async fn plan(
    serving: &Serving,
    exchange: &mut Exchange,
    (media, overrides, checked): (Media, &Overrides, Option<&Checked>),
    text: &Bytes,
) -> Result<Plan, Refused> {
    let graphql = understood::decode_found(text, checked)?;
    let asked = Asked {
        query: &graphql.query,
        operation_name: graphql.operation_name.as_deref(),
        overrides,
        grants: None,
    };
    let on = (media, exchange.trace.as_ref());
    let mut operation = operation(serving, on, &asked).await?;
    if let Some(grants) = authorization::grants(exchange, &operation) {
        let grants = Some(&grants);
        operation = self::operation(serving, on, &Asked { grants, ..asked }).await?;
        authorization::log(&serving.generation.config.authorization, &operation);
    }
    // After planning, because only the plan tells the kind of operation.
    if operation.kind() == OperationKind::Mutation && exchange.client.method == Method::GET {
        let mut refusal = reply::error(
            StatusCode::METHOD_NOT_ALLOWED,
            "Mutations can only be sent over HTTP POST",
            "MUTATION_FORBIDDEN",
        );
        let allow = HeaderValue::from_static("POST");
        refusal.headers.insert(header::ALLOW, allow);
        return Err(Box::new(refusal));
    }
    if operation.kind() == OperationKind::Mutation && serving.generation.config.forbid_mutations {
        let error = GraphqlError::new("Mutations are forbidden", "MUTATION_FORBIDDEN");
        return Err(Box::new(reply::errors(
            StatusCode::BAD_REQUEST,
            reply::content_type(media),
            &[error],
        )));
    }
    let variables = graphql.variables.map(|raw| raw.text().as_bytes());
    // Coerced per request; the cached plan holds for all variables.
    let variables = operation.coerce(variables).map_err(|errors| {
        Box::new(reply::errors(
            status_of_refusal(serving, media),
            reply::content_type(media),
            &errors,
        ))
    })?;
    if let (Some(demand), Operation::Federated(prepared)) = (&serving.generation.demand, &operation)
        && let Err(error) = demand.judge(prepared, &variables, &exchange.context)
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
    // Set only now: the stages of the subgraphs read them, the ones before have the text itself.
    exchange.client_body = Rc::new(ClientBody::new(text.clone()));
    exchange.operation_name = operation.name().map(str::to_owned);
    exchange.operation_kind = Some(operation.kind().as_str());
    spans::planned(exchange, operation.kind());
    if serving.extensions.wants_query_plan() {
        // The plan as JSON is large; it is written only when a stage is configured to receive it.
        exchange.query_plan = Some(operation.query_plan());
    }
    Ok((operation, variables))
}

/// The operation from the cache, or made ready.
async fn operation(
    serving: &Serving,
    (media, trace): (Media, Option<&Active>),
    asked: &Asked<'_>,
) -> Result<Operation, Refused> {
    let prepared = match serving.generation.engine.find(asked) {
        Some(outcome) => outcome,
        None => {
            let span = trace.and_then(|it| it.start("query_planning", Kind::Internal));
            let outcome = make(serving, asked).await;
            if let Some(mut span) = span
                && !matches!(outcome, Ok(Ok(_)))
            {
                span.fail("refused");
            }
            outcome?
        }
    };
    prepared.map_err(|refusal| Box::new(refused(serving, media, &refusal)))
}

/// Has an operation planned, on another thread: that can take milliseconds, and the other requests
/// of this worker would have to wait for it.
pub(crate) async fn make(serving: &Serving, asked: &Asked<'_>) -> Result<Outcome, Refused> {
    let generation = &serving.generation;
    let planning = &generation.config.supergraph.query_planning;
    let allowed = Allowed {
        queue_size: planning.queue_size.get(),
        timeout: planning.timeout.0,
    };
    let order = Order {
        engine: generation.engine.clone(),
        query: asked.query.to_owned(),
        operation_name: asked.operation_name.map(str::to_owned),
        overrides: asked.overrides.clone(),
        grants: asked.grants.cloned(),
    };
    let planned = serving.lasting.planning.plan(order, allowed).await;
    planned.map_err(|reason| {
        Box::new(match reason {
            NotPlanned::Overloaded => {
                let mut reply = reply::error(
                    StatusCode::SERVICE_UNAVAILABLE,
                    "Your request has been concurrency limited during query processing",
                    "REQUEST_CONCURRENCY_LIMITED",
                );
                let seconds = HeaderValue::from_static("1");
                reply.headers.insert(header::RETRY_AFTER, seconds);
                reply
            }
            // No client reads it. The services that saw the request still see its end.
            NotPlanned::ClientGone => reply::error(
                StatusCode::from_u16(499).expect("a status has three digits"),
                "the client disconnected",
                "CLIENT_CLOSED_REQUEST",
            ),
            // Only this request fails.
            NotPlanned::Failed => internal(),
        })
    })
}

/// The status of a request whose document or variables are wrong. A supergraph's clients that leave
/// the media type open get 400, as from the Apollo Router.
fn status_of_refusal(serving: &Serving, media: Media) -> StatusCode {
    match (&serving.generation.engine, media) {
        (Engine::Federated { .. }, Media::Json) => StatusCode::BAD_REQUEST,
        _ => StatusCode::from_u16(media.status_of_refused_document())
            .expect("statuses of the draft are valid"),
    }
}

fn internal() -> Reply {
    reply::error(
        StatusCode::INTERNAL_SERVER_ERROR,
        "internal server error",
        "INTERNAL_SERVER_ERROR",
    )
}

fn refused(serving: &Serving, media: Media, refusal: &Refusal) -> Reply {
    if refusal.internal {
        let status = StatusCode::INTERNAL_SERVER_ERROR;
        return reply::errors(status, JSON, &refusal.errors);
    }
    let status = status_of_refusal(serving, media);
    let is_redacted = serving
        .generation
        .config
        .supergraph
        .redact_query_validation_errors;
    // The text is valid; the request lacks something.
    let is_unauthorized = refusal
        .errors
        .iter()
        .any(|error| error.code() == Some(UNAUTHORIZED));
    if is_redacted && !is_unauthorized {
        let error = GraphqlError::new("invalid query", "UNKNOWN_ERROR");
        return reply::errors(status, reply::content_type(media), &[error]);
    }
    reply::errors(status, reply::content_type(media), &refusal.errors)
}

/// Carries the plan out; the stages of the subgraphs are in here.
async fn execute(
    serving: &Rc<Serving>,
    exchange: &Exchange,
    (operation, variables): Plan,
    media: Media,
    summary: &mut Summary,
) -> Reply {
    match (operation, &serving.generation.engine) {
        (Operation::Federated(prepared), Engine::Federated { .. })
            if summary.parts_until.is_some()
                && prepared.kind() != OperationKind::Subscription
                && prepared.defers(&variables)
                && let Some(format) = deferred::format(&exchange.client.headers) =>
        {
            let plan = (prepared, variables);
            Box::pin(deferred::execute(
                serving,
                exchange,
                plan,
                (media, format),
                summary,
            ))
            .await
        }
        (Operation::Federated(prepared), Engine::Federated { .. })
            if prepared.kind() == OperationKind::Subscription =>
        {
            let plan = (prepared, variables);
            Box::pin(subscription::open(serving, exchange, plan, media, summary)).await
        }
        (Operation::Federated(prepared), Engine::Federated { policies, .. }) => {
            let subgraphs = Subgraphs::new(serving, exchange);
            let executed = prepared.execute(&variables, &subgraphs, policies).await;
            summary.error_count = executed.error_count();
            summary.is_cut = executed.is_cut();
            if summary.is_cut {
                log::warn!("a response beyond the limits; its errors name them");
            }
            let body = executed.into_body();
            if let Some(demand) = &serving.generation.demand {
                demand.answered(&prepared, &variables, (&body, &exchange.context));
            }
            reply::with_body(StatusCode::OK, reply::content_type(media), body)
        }
        (Operation::Merged(prepared), _) => {
            let session = match session(serving, exchange) {
                Ok(session) => session,
                Err(error) => {
                    summary.error_count = 1;
                    return session_refused(&error, media);
                }
            };
            let asking = Asking {
                variables: &variables,
                client: &exchange.client.headers,
                session: &session,
            };
            let sources = Sources { serving, exchange };
            // Boxed: it is larger than what a federated request needs, which would make room for it.
            let executed = Box::pin(prepared.execute(asking, &sources)).await;
            let media = reply::content_type(media);
            let mut reply = reply::with_body(StatusCode::OK, media, executed.body);
            for cookie in executed.cookies {
                reply.headers.append(header::SET_COOKIE, cookie);
            }
            summary.error_count = usize::from(executed.has_errors);
            summary.is_cut = executed.is_cut;
            if summary.is_cut {
                log::warn!("a request beyond the limits; its errors name them");
            }
            reply
        }
        (Operation::Federated(_), Engine::Merged(_)) => {
            unreachable!("an operation comes from the engine of its own generation")
        }
    }
}

/// Who services and handlers are told is asking.
fn session(serving: &Serving, exchange: &Exchange) -> Result<Session, SessionError> {
    let rules = &serving.generation.config.session_variables;
    let headers = &exchange.client.headers;
    exchange
        .context
        .with(JWT_CLAIMS, |claims| Session::new(rules, headers, claims))
}

fn session_refused(error: &SessionError, media: Media) -> Reply {
    let status = match error {
        SessionError::AdminSecret => StatusCode::UNAUTHORIZED,
        SessionError::Role | SessionError::Claim(_) => StatusCode::FORBIDDEN,
    };
    let error = GraphqlError::new(error.to_string(), "access-denied").with("path", "$");
    reply::errors(status, reply::content_type(media), &[error])
}

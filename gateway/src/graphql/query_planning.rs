//! Finds the operation of a request in the cache, or plans it on the planning threads.

use gateway_federation::{GraphqlError, OperationRequest, Refusal, UNAUTHORIZED};
use gateway_telemetry::{Active, SpanKind, TEXT_CHARS_MAX, shortened};
use graphql_http::Media;
use http::StatusCode;
use http::header::{self, HeaderValue};

use crate::graphql::engine::{Engine, Operation, Outcome};
use crate::graphql::planning::{Allowed, NotPlanned, Order};
use crate::http::reply::{self, JSON, Refusal as Refused, Reply};
use crate::process::worker_state::WorkerState;

/// The operation from the cache. Plans it if it is not there.
pub(crate) async fn operation(
    serving: &WorkerState,
    media: Media,
    trace: Option<&Active>,
    requested: &OperationRequest<'_>,
) -> Result<Operation, Refused> {
    let prepared = match serving.generation.engine.find(requested) {
        Some(outcome) => outcome,
        None => {
            let span = trace.and_then(|it| it.start("query_planning", SpanKind::Internal));
            let outcome = make(serving, requested).await;
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

/// Plans an operation on another thread. Planning can take milliseconds, and the other requests of this
/// worker would have to wait for it.
pub(crate) async fn make(
    serving: &WorkerState,
    requested: &OperationRequest<'_>,
) -> Result<Outcome, Refused> {
    let generation = &serving.generation;
    let planning = &generation.config.supergraph.query_planning;
    let allowed = Allowed {
        queue_size: planning.queue_size.get(),
        timeout: planning.timeout.0,
    };
    let order = Order {
        engine: generation.engine.clone(),
        query: requested.query.to_owned(),
        operation_name: requested.operation_name.map(str::to_owned),
        overrides: requested.overrides.clone(),
        grants: requested.grants.cloned(),
    };
    let planned = serving.shared.planning.plan(order, allowed).await;
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
            // No client reads this response. Stages that saw the request still see its end.
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

/// The status for an invalid document or invalid variables. If a client accepts any media type, a supergraph
/// returns 400, as Apollo Router does.
pub(crate) fn status_of_refusal(serving: &WorkerState, media: Media) -> StatusCode {
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

fn refused(serving: &WorkerState, media: Media, refusal: &Refusal) -> Reply {
    if refusal.internal {
        if let Some(reason) = &refusal.reason {
            let reason = shortened(reason, TEXT_CHARS_MAX);
            log::error!("an operation could not be planned: {reason}");
        }
        let status = StatusCode::INTERNAL_SERVER_ERROR;
        return reply::errors(status, JSON, &refusal.errors);
    }
    let status = status_of_refusal(serving, media);
    let is_redacted = serving
        .generation
        .config
        .supergraph
        .redact_query_validation_errors;
    // The text is valid, but the request lacks rights.
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

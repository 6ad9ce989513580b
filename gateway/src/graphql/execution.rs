//! The execution of a plan, in one piece or in parts.

use std::rc::Rc;

use gateway_extensions::{Exchange, JWT_CLAIMS};
use gateway_federation::{GraphqlError, OperationKind, Variables};
use gateway_remote::{Asking, Session, SessionError};
use graphql_http::Media;
use http::StatusCode;
use http::header;

use crate::graphql::engine::{Engine, Operation};
use crate::graphql::subgraphs::Subgraphs;
use crate::http::reply::{self, Reply};
use crate::http::summary::Summary;
use crate::merged::sources::Sources;
use crate::process::worker_state::WorkerState;
use crate::stream::deferred;
use crate::stream::subscription;

/// An operation with its variables.
pub(crate) struct Plan {
    pub(crate) operation: Operation,
    pub(crate) variables: Variables,
}

/// Executes a plan. The subgraph stages run during the execution.
pub(crate) async fn execute(
    serving: &Rc<WorkerState>,
    exchange: &Exchange,
    Plan {
        operation,
        variables,
    }: Plan,
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
                serving, exchange, plan, media, format, summary,
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
            if let Some(cost_limit) = &serving.generation.cost_limit {
                cost_limit.answered(&prepared, &variables, &body, &exchange.context);
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
            // Boxed: it is larger than the future of a federated request, which would reserve memory for it.
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

/// The session variables for services and handlers.
fn session(serving: &WorkerState, exchange: &Exchange) -> Result<Session, SessionError> {
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

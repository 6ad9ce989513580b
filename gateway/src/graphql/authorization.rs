//! The requirements of an operation (claims, scopes, policies), and the part of them that a request meets.
//!
//! The token, or a stage, has already written claims into the context. Scripts and coprocessors decide on
//! policies at the supergraph stage.

use bytes::Bytes;
use gateway_config::Authorization;
use gateway_extensions::{
    AUTHENTICATION_REQUIRED, Exchange, JWT_CLAIMS, REQUIRED_POLICIES, REQUIRED_SCOPES,
};
use gateway_federation::{Demand, Grants, OperationRequest, Overrides, PathSegment};
use gateway_telemetry::{NAME_CHARS_MAX, TEXT_CHARS_MAX, shortened};
use http::StatusCode;
use serde_json::{Map, Value};

use crate::graphql::engine::{Engine, Operation};
use crate::graphql::query_planning;
use crate::graphql::request_body;
use crate::http::reply::{self, Refusal};
use crate::process::worker_state::WorkerState;

/// Maximum number of paths in one log line.
const LOGGED_MAX: usize = 20;

/// Rejects a request without claims if the configuration requires them.
pub(crate) fn require(config: &Authorization, exchange: &Exchange) -> Result<(), Refusal> {
    if !config.require_authentication || is_authenticated(exchange) {
        return Ok(());
    }
    let status = StatusCode::UNAUTHORIZED;
    Err(Box::new(reply::error(
        status,
        "unauthenticated",
        "AUTH_ERROR",
    )))
}

/// Writes the requirements of an operation into the context: scopes, and policies for stages to decide. For a
/// supergraph without requirements, this costs one comparison.
pub(crate) async fn announce(serving: &WorkerState, exchange: &Exchange, text: &Bytes) {
    match &serving.generation.engine {
        Engine::Federated { operations, .. } if operations.has_rules() => {}
        _ => return,
    }
    // An invalid request is reported when it is planned. Until then it has no grants.
    let Ok(graphql) = request_body::decode(text) else {
        return;
    };
    let query = graphql_http::with_old_escapes(&graphql.query);
    let requested = OperationRequest {
        query: &query,
        operation_name: graphql.operation_name.as_deref(),
        overrides: &Overrides::default(),
        grants: None,
    };
    let prepared = match serving.generation.engine.find(&requested) {
        Some(outcome) => outcome,
        None => match query_planning::make(serving, &requested).await {
            Ok(outcome) => outcome,
            Err(_) => return,
        },
    };
    let Ok(Operation::Federated(operation)) = prepared else {
        return;
    };
    let (mut scopes, mut policies) = (Vec::new(), Map::new());
    for demand in operation.demanded() {
        match demand {
            Demand::Authenticated => {
                exchange
                    .context
                    .insert(AUTHENTICATION_REQUIRED, true.into());
            }
            Demand::Scope(name) => scopes.push(Value::from(name)),
            Demand::Policy(name) => {
                policies.insert(name.to_owned(), Value::Null);
            }
        }
    }
    if !scopes.is_empty() {
        exchange.context.insert(REQUIRED_SCOPES, scopes.into());
    }
    if !policies.is_empty() {
        exchange.context.insert(REQUIRED_POLICIES, policies.into());
    }
}

/// The grants of a request for an operation. `None` if the request may see the whole operation.
pub(crate) fn grants(exchange: &Exchange, operation: &Operation) -> Option<Grants> {
    let Operation::Federated(operation) = operation else {
        return None;
    };
    operation.grants(|demand| match demand {
        Demand::Authenticated => is_authenticated(exchange),
        Demand::Scope(name) => exchange.context.with(JWT_CLAIMS, |claims| {
            // Scopes are separated by spaces (RFC 6749, 3.3).
            let scopes = claims
                .and_then(|it| it.get("scope"))
                .and_then(Value::as_str);
            scopes.is_some_and(|scopes| scopes.split(' ').any(|scope| scope == name))
        }),
        // A policy is granted only by `true`. An undecided policy is not granted.
        Demand::Policy(name) => exchange.context.with(REQUIRED_POLICIES, |policies| {
            policies.and_then(|it| it.get(name)) == Some(&Value::Bool(true))
        }),
    })
}

fn is_authenticated(exchange: &Exchange) -> bool {
    let context = &exchange.context;
    context.with(JWT_CLAIMS, |claims| claims.is_some_and(|it| !it.is_null()))
}

/// Logs the fields that were removed from an operation, if this log is on.
pub(crate) fn log(config: &Authorization, operation: &Operation) {
    let Operation::Federated(operation) = operation else {
        return;
    };
    let errors = operation.unauthorized();
    if errors.is_empty() || !config.directives.errors.log {
        return;
    }
    let paths = errors.iter().take(LOGGED_MAX).map(|error| {
        let segments = error.path.iter().map(|segment| match segment {
            PathSegment::Key(key) => format!("/{key}"),
            PathSegment::Index(index) => format!("/{index}"),
        });
        segments.collect::<String>()
    });
    let paths: Vec<String> = paths.collect();
    let name = operation.operation_name().unwrap_or("(without a name)");
    let count = errors.len();
    // Clients choose the aliases in these paths, and the name of the operation.
    let paths = paths.join(" ");
    let paths = shortened(&paths, TEXT_CHARS_MAX);
    let name = shortened(name, NAME_CHARS_MAX);
    log::info!("unauthorized: {count} places of the operation {name}: {paths}");
}

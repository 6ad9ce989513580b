//! What stages are told an operation demands, and what a request meets of it.
//!
//! The token, or a stage in its place, has put claims into the context before this is asked;
//! policies are answered by scripts and coprocessors at the supergraph stage.

use bytes::Bytes;
use gateway_config::Authorization;
use gateway_extensions::{
    AUTHENTICATION_REQUIRED, Exchange, JWT_CLAIMS, REQUIRED_POLICIES, REQUIRED_SCOPES,
};
use gateway_federation::{Asked, Demand, Grants, Overrides, PathSegment};
use gateway_telemetry::{NAME_CHARS_MAX, TEXT_CHARS_MAX, shortened};
use http::StatusCode;
use serde_json::{Map, Value};

use crate::graphql::engine::{Engine, Operation};
use crate::graphql::query_planning;
use crate::graphql::understood;
use crate::http::reply::{self, Refusal};
use crate::process::serving::Serving;

/// Paths that one line of the log names at most.
const LOGGED_MAX: usize = 20;

/// Refuses a request without claims if the configuration requires them.
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

/// Tells the stages what the operation demands: scopes, and policies that they are to answer. A
/// supergraph without such demands costs one comparison.
pub(crate) async fn announce(serving: &Serving, exchange: &Exchange, text: &Bytes) {
    match &serving.generation.engine {
        Engine::Federated { operations, .. } if operations.has_rules() => {}
        _ => return,
    }
    // What is wrong with the request is told when it is planned; then nothing is granted.
    let Ok(graphql) = understood::decode(text) else {
        return;
    };
    let asked = Asked {
        query: &graphql.query,
        operation_name: graphql.operation_name.as_deref(),
        overrides: &Overrides::default(),
        grants: None,
    };
    let prepared = match serving.generation.engine.find(&asked) {
        Some(outcome) => outcome,
        None => match query_planning::make(serving, &asked).await {
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

/// What a request may see of an operation, when that is not everything.
pub(crate) fn grants(exchange: &Exchange, operation: &Operation) -> Option<Grants> {
    let Operation::Federated(operation) = operation else {
        return None;
    };
    operation.grants(|demand| match demand {
        Demand::Authenticated => is_authenticated(exchange),
        Demand::Scope(name) => exchange.context.with(JWT_CLAIMS, |claims| {
            // Separated by spaces (RFC 6749, 3.3).
            let scopes = claims
                .and_then(|it| it.get("scope"))
                .and_then(Value::as_str);
            scopes.is_some_and(|scopes| scopes.split(' ').any(|scope| scope == name))
        }),
        // Whatever is not `true`, and a policy without an answer, is no.
        Demand::Policy(name) => exchange.context.with(REQUIRED_POLICIES, |policies| {
            policies.and_then(|it| it.get(name)) == Some(&Value::Bool(true))
        }),
    })
}

fn is_authenticated(exchange: &Exchange) -> bool {
    let context = &exchange.context;
    context.with(JWT_CLAIMS, |claims| claims.is_some_and(|it| !it.is_null()))
}

/// Logs the fields that were left out of an operation, if the configuration asks for it.
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
    // The keys are the client's choice, as the name is.
    let paths = paths.join(" ");
    let paths = shortened(&paths, TEXT_CHARS_MAX);
    let name = shortened(name, NAME_CHARS_MAX);
    log::info!("unauthorized: {count} places of the operation {name}: {paths}");
}

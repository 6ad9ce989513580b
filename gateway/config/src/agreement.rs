//! Checks keys that depend on each other, and lists keys that have no effect here.

use http::HeaderValue;
use yaml_with_places::{Finding, Findings, Node};

use crate::condition::Condition;
use crate::config::Config;
use crate::coprocessor::{Coprocessor, Stage};
use crate::cors::CorsPolicy;
use crate::report::Report;
use crate::selector::SelectorSource;
use crate::written::Written;
use crate::{instrumentation_check, persisted_queries, response_cache, subscription, telemetry};

/// Reports keys that contradict each other.
pub(crate) fn check(config: &Config, tree: &Node, findings: &mut Findings) {
    let mut report = |path: &[&str], message: String| {
        // The deepest key in the file, because a contradiction may involve a default.
        let place = (1..=path.len())
            .rev()
            .find_map(|depth| tree.at(&path[..depth]))
            .map_or(tree.place, |entry| entry.key_place);
        findings.add(Finding::new(place, message));
    };
    if config.sandbox.enabled && config.homepage.enabled {
        report(
            &["sandbox", "enabled"],
            "the sandbox and the homepage cannot both be on: set `homepage.enabled: false`"
                .to_owned(),
        );
    }
    if config.sandbox.enabled && !config.supergraph.introspection {
        report(
            &["sandbox", "enabled"],
            "the sandbox asks for the schema: set `supergraph.introspection: true`".to_owned(),
        );
    }
    if config.include_subgraph_errors.all_is_switch() {
        for name in config.include_subgraph_errors.subgraphs_with_keys() {
            report(
                &["include_subgraph_errors", "subgraphs", name],
                "a subgraph can have keys of its own only where `all` has keys, too: give `all` `redact_message`, or write `true` or `false` here".to_owned(),
            );
        }
    }
    // One of the two keys would have no effect, and the author's intention is not clear.
    if config.session_variables.trust_clients && config.authentication.router.jwt.is_some() {
        report(
            &["session_variables", "trust_clients"],
            "`trust_clients` and `authentication.router.jwt` cannot be used together: a token would mean nothing; remove `trust_clients`, or use `admin_secret`".to_owned(),
        );
    }
    let secret = config.session_variables.admin_secret.as_ref();
    if secret.is_some_and(|secret| secret.0.is_empty()) {
        report(
            &["session_variables", "admin_secret"],
            "the admin secret is empty, so an empty header would make any client an administrator: give it a value, or remove the key".to_owned(),
        );
    }
    check_cors(config, &mut report);
    check_conditions(config, &mut report);
    check_keys(config, &mut report);
    persisted_queries::check(&config.persisted_queries, &config.apq, &mut report);
    response_cache::check(&config.response_cache.subgraph, &mut report);
    telemetry::check(&config.telemetry.exporters, &mut report);
    if let Some(instrumentation) = &config.telemetry.instrumentation {
        instrumentation_check::check(instrumentation, &mut report);
    }
    check_subscription(config, &mut report);
    if config.demand_control.enabled && !config.remote_schemas.is_empty() {
        report(
            &["demand_control", "enabled"],
            "costs are estimated for supergraphs only: set `demand_control.enabled: false`, and bound operations by `limits`".to_owned(),
        );
    }
    if config.demand_control.enabled && config.demand_control.strategy.is_none() {
        report(
            &["demand_control", "enabled"],
            "the strategy is missing: write `strategy: {static_estimated: {list_size: 10, max: 1000}}`"
                .to_owned(),
        );
    }
}

fn check_cors(config: &Config, report: &mut Report<'_>) {
    let cors = &config.cors;
    if cors.policies.is_some() && (cors.origins.is_some() || cors.match_origins.is_some()) {
        report(
            &["cors", "policies"],
            "`policies` and the `origins` of version 1 cannot be used together: move the origins into a policy".to_owned(),
        );
    }
    let policies = cors.effective_policies();
    let allows_credentials =
        |policy: &CorsPolicy| policy.allow_credentials.unwrap_or(cors.allow_credentials);
    // The rules below are allowed without credentials, because browsers ignore stars only with credentials.
    if !policies.iter().any(allows_credentials) && !cors.allow_credentials {
        return;
    }
    if cors.allow_any_origin {
        report(
            &["cors", "allow_any_origin"],
            "`allow_credentials` and `allow_any_origin` cannot be used together: name the origins"
                .to_owned(),
        );
    }
    let is_star = |list: &[Written<HeaderValue>]| list.iter().any(|entry| entry.0 == "*");
    let exposes_all = cors.expose_headers.as_deref().is_some_and(is_star);
    let is_any_star = is_star(&cors.allow_headers)
        || exposes_all
        || policies
            .iter()
            .any(|policy| is_star(&policy.allow_headers) || is_star(&policy.expose_headers));
    let any_method = cors.methods.iter().any(|method| method.0.0.as_str() == "*");
    if is_any_star || any_method {
        report(
            &["cors", "allow_credentials"],
            "`allow_credentials` and a `*` cannot be used together: name the headers and methods"
                .to_owned(),
        );
    }
}

/// A condition can read only messages that its stage has.
fn check_conditions(config: &Config, report: &mut Report<'_>) {
    let Some(coprocessor) = &config.coprocessor else {
        return;
    };
    let Coprocessor {
        router,
        supergraph,
        execution,
        subgraph,
        ..
    } = coprocessor;
    let requests: [(&[&str], &Option<Stage>); 4] = [
        (&["router", "request"], &router.request),
        (&["supergraph", "request"], &supergraph.request),
        (&["execution", "request"], &execution.request),
        (&["subgraph", "all", "request"], &subgraph.request),
    ];
    let responses: [(&[&str], &Option<Stage>); 4] = [
        (&["router", "response"], &router.response),
        (&["supergraph", "response"], &supergraph.response),
        (&["execution", "response"], &execution.response),
        (&["subgraph", "all", "response"], &subgraph.response),
    ];
    for (path, stage) in requests.into_iter().chain(responses) {
        let condition = stage.as_ref().and_then(|stage| stage.condition.as_ref());
        let selectors = condition.map(Condition::selectors).unwrap_or_default();
        let missing = selectors
            .iter()
            .find_map(|selector| missing_message(&selector.source, path));
        if let Some(missing) = missing {
            let path = [&["coprocessor"], path, &["condition"]].concat();
            report(&path, missing.to_owned());
        }
    }
}

/// The reason why the stage at this path does not have the value, or `None` if it has it.
fn missing_message(source: &SelectorSource, path: &[&str]) -> Option<&'static str> {
    let is_request = path.last() == Some(&"request");
    let is_subgraph = path.first() == Some(&"subgraph");
    let is_router = path.first() == Some(&"router");
    let is_supergraph = path.first() == Some(&"supergraph");
    if is_request && source.needs_response() {
        return Some("the condition of a request stage cannot look at the response");
    }
    if !is_subgraph && source.needs_subgraph() {
        return Some(
            "only the subgraph stage has values of subgraph requests: move the condition there, or write another selector",
        );
    }
    if !is_request && source.reads_subgraph_request() {
        return Some(
            "the response stage does not have the request to the subgraph: write the condition at the request stage",
        );
    }
    if is_request && (is_router || is_supergraph) && source.needs_plan() {
        return Some(
            "the size of the operation is known only after planning: write the condition at the request of the execution stage, or at a response stage",
        );
    }
    (is_router && is_request && source.reads_client_request()).then_some(
        "the router does not know the operation at the request: write the condition at the supergraph stage",
    )
}

fn check_subscription(config: &Config, report: &mut Report<'_>) {
    let Some(subscription) = config.subscriptions() else {
        return;
    };
    if !config.remote_schemas.is_empty() || !config.actions.is_empty() {
        report(
            &["subscription", "enabled"],
            "subscriptions are served for supergraphs only: set `subscription.enabled: false`"
                .to_owned(),
        );
    }
    subscription::check(subscription, &config.supergraph, report);
}

fn check_keys(config: &Config, report: &mut Report<'_>) {
    if config.traffic_shaping.router.timeout.is_zero() {
        report(
            &["traffic_shaping", "router", "timeout"],
            "expected a time above zero".to_owned(),
        );
    }
    if let Some(rhai) = &config.rhai
        && rhai.limits.timeout.is_zero()
    {
        report(
            &["rhai", "limits", "timeout"],
            "expected a time above zero".to_owned(),
        );
    }
    // Two services cannot share one path, because the first one would hide the other.
    if config.health_check.enabled
        && config.health_check.listen.0 == config.supergraph.listen.0
        && config.health_check.path.0.0 == config.supergraph.path.0.0
    {
        report(
            &["health_check", "path"],
            "the health check and GraphQL cannot have the same address and path".to_owned(),
        );
    }
}

//! Tests the estimated costs of operations.

use crate::client::{code, post};
use crate::gateway::{Gateway, Setup};
use crate::stub::Stub;

const NAMES: &str = r#"{"query":"{ locations { name } }"}"#;
const ONE: &str = r#"{"query":"{ location(id: 1) { name } }"}"#;

fn demand(mode: &str, max: &str) -> String {
    format!(
        "demand_control: {{enabled: true, mode: {mode}, strategy: {{static_estimated: {{list_size: 10, max: {max}}}}}}}\n"
    )
}

#[test]
fn what_costs_too_much_is_refused_before_any_subgraph_is_asked() {
    let planets = Stub::planets();
    let gateway = Gateway::start(&planets.config(&demand("enforce", "9.5")));
    let refused = gateway.send(&post(NAMES));
    assert_eq!(
        (refused.status, code(&refused).as_str()),
        (400, "COST_ESTIMATED_TOO_EXPENSIVE")
    );
    let error = &refused.json()["errors"][0];
    let message = "query estimated cost 10 exceeded configured maximum 9.5";
    assert_eq!(error["message"], message);
    assert_eq!(error["extensions"]["cost.estimated"], 10.0);
    assert_eq!(error["extensions"]["cost.max"], 9.5);
    assert_eq!(planets.seen().len(), 0);
    assert_eq!(
        gateway.send(&post(ONE)).json()["data"]["location"]["name"],
        "A"
    );
    let metrics = gateway.ask_health("/metrics");
    let metrics = metrics.text();
    for line in [
        "apollo_router_operations_cost_total{cost_result=\"COST_ESTIMATED_TOO_EXPENSIVE\"} 1",
        "apollo_router_operations_cost_total{cost_result=\"COST_OK\"} 1",
        "cost_estimated_count 2",
        "cost_estimated_sum 11.0",
        "cost_actual_count 1",
        "cost_actual_sum 1.0",
    ] {
        assert!(metrics.contains(line), "{line} in {metrics}");
    }
}

#[test]
fn measuring_lets_all_pass_and_tells_stages_estimate_and_actual_cost() {
    let planets = Stub::planets();
    let script = "fn supergraph_service(service) { service.map_response(Fn(\"answer\")); }\n\
        fn answer(response) {\n\
          let estimated = response.context[Router.APOLLO_COST_ESTIMATED_KEY];\n\
          let actual = response.context[Router.APOLLO_COST_ACTUAL_KEY];\n\
          let result = response.context[Router.APOLLO_COST_RESULT_KEY];\n\
          let strategy = response.context[Router.APOLLO_COST_STRATEGY_KEY];\n\
          response.headers[\"x-cost\"] = `${estimated} ${actual} ${result} ${strategy}`;\n\
        }\n";
    let config = format!(
        "{}rhai: {{scripts: ., main: main.rhai}}\n",
        demand("measure", "5")
    );
    let gateway = Setup::new(&planets.config(&config))
        .file("main.rhai", script)
        .start();
    let answer = gateway.send(&post(NAMES));
    assert_eq!(answer.status, 200);
    let told = "10.0 2.0 COST_ESTIMATED_TOO_EXPENSIVE static_estimated";
    assert_eq!(answer.header("x-cost"), Some(told));
    let answer = gateway.send(&post(ONE));
    let told = "1.0 1.0 COST_OK static_estimated";
    assert_eq!(answer.header("x-cost"), Some(told));
}

#[test]
fn without_the_key_nothing_is_counted() {
    let planets = Stub::planets();
    let gateway = Gateway::start(&planets.config(""));
    assert_eq!(gateway.send(&post(NAMES)).status, 200);
    let metrics = gateway.ask_health("/metrics");
    assert!(!metrics.text().contains("cost_"));
}

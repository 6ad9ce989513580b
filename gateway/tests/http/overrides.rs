//! Tests `@override` with a label: the percentage of the requests per subgraph, and decisions of stages.

use serde_json::json;

use crate::client::{Request, post};
use crate::gateway::{Gateway, Setup};
use crate::stub::{Stub, json};

/// `never`, `half` and `always` move from `old` to `new` by percentage, `flagged` with the label `beta`.
const SUPERGRAPH: &str = include_str!("../../federation/tests/overrides.graphql");

/// Both subgraphs. They return every field.
fn subgraphs() -> Stub {
    Stub::start(|_| json(r#"{"data":{"never":1,"half":1,"always":1,"flagged":1,"plain":1}}"#))
}

fn setup(subgraphs: &Stub, more: &str) -> Setup {
    let url = &subgraphs.url;
    let config = format!(
        "override_subgraph_url: {{old: '{url}/old', new: '{url}/new'}}\nsupergraph: {{plan_cache_size: 512}}\n{more}"
    );
    Setup::new(&config).file("supergraph.graphql", SUPERGRAPH)
}

/// Number of requests, out of 200 for a field, that reach the new subgraph.
fn moved(gateway: &Gateway, subgraphs: &Stub, field: &str) -> usize {
    let before = subgraphs.seen().len();
    let body = json!({"query": format!("{{ {field} }}")}).to_string();
    let mut connection = gateway.connect();
    for _ in 0..200 {
        let response = connection.send(&post(&body));
        assert_eq!(response.text(), format!(r#"{{"data":{{"{field}":1}}}}"#));
    }
    let seen = subgraphs.seen().split_off(before);
    assert_eq!(seen.len(), 200);
    seen.iter().filter(|it| it.target == "/new").count()
}

#[test]
fn a_percentage_is_the_share_of_requests_that_go_to_the_new_subgraph() {
    let subgraphs = subgraphs();
    let gateway = setup(&subgraphs, "").start();
    assert_eq!(moved(&gateway, &subgraphs, "never"), 0);
    assert_eq!(moved(&gateway, &subgraphs, "always"), 200);
    let half = moved(&gateway, &subgraphs, "half");
    assert!((60..=140).contains(&half), "{half} of 200");
    assert_eq!(moved(&gateway, &subgraphs, "plain"), 0);
    // `half` has two plans. `never`, `always` and the unlabelled field have one plan each.
    let metrics = gateway.ask_health("/metrics");
    let size = "apollo_router_cache_size{kind=\"query planner\"} 5\n";
    assert!(metrics.text().contains(size), "{}", metrics.text());
}

const FLAGGED: &str = r#"{"query":"{ flagged }"}"#;

fn target_of(gateway: &Gateway, subgraphs: &Stub, headers: &[(&str, &str)]) -> String {
    let headers = [&[("content-type", "application/json")], headers].concat();
    let request = Request {
        headers: &headers,
        ..post(FLAGGED)
    };
    let response = gateway.send(&request);
    assert_eq!(response.status, 200, "{}", response.text());
    subgraphs.seen().pop().unwrap().target
}

#[test]
fn a_script_activates_a_label_of_its_own() {
    let script = r#"
        fn supergraph_service(service) {
            service.map_request(|request| {
                if request.context["apollo::progressive_override::unresolved_labels"] != ["beta"] {
                    throw "the label is not announced";
                }
                if "x-beta" in request.headers {
                    request.context["apollo::progressive_override::labels_to_override"] = ["beta", "unknown"];
                }
            });
        }
    "#;
    let subgraphs = subgraphs();
    let setup = setup(&subgraphs, "rhai: {scripts: rhai}");
    let gateway = setup.file("rhai/main.rhai", script).start();
    assert_eq!(target_of(&gateway, &subgraphs, &[]), "/old");
    assert_eq!(target_of(&gateway, &subgraphs, &[("x-beta", "1")]), "/new");
    assert_eq!(target_of(&gateway, &subgraphs, &[]), "/old");
}

#[test]
fn a_coprocessor_activates_a_label_and_sees_what_was_drawn() {
    let key = "apollo::progressive_override::labels_to_override";
    let coprocessor = Stub::coprocessor(move |message| {
        if message["stage"] == "SupergraphRequest" {
            message["context"]["entries"][key] = json!(["beta"]);
        }
    });
    let subgraphs = subgraphs();
    let url = &coprocessor.url;
    let gateway = setup(
        &subgraphs,
        &format!(
            "coprocessor: {{url: '{url}', supergraph: {{request: {{context: all}}}}, subgraph: {{all: {{request: {{context: all}}}}}}}}"
        ),
    )
    .start();
    assert_eq!(target_of(&gateway, &subgraphs, &[]), "/new");
    let last = coprocessor.seen().pop().unwrap().json();
    let labels = last["context"]["entries"][key].as_array().unwrap().clone();
    assert!(labels.contains(&json!("beta")), "{last}");
    assert!(labels.contains(&json!("percent(100)")), "{last}");
    assert!(!labels.contains(&json!("percent(0)")), "{last}");
}

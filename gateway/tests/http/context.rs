//! Name and kind of the operation in the context, for scripts, coprocessors and header rules.

use serde_json::{Value, json};

use crate::client::{Request, post};
use crate::gateway::{Gateway, Setup};
use crate::stub::Stub;

const KIND: &str = "apollo::supergraph::operation_kind";
const NAME: &str = "apollo::supergraph::operation_name";
const ID: &str = "apollo::supergraph::operation_id";

/// A supergraph with a mutation.
fn with_mutation() -> String {
    crate::gateway::SUPERGRAPH.replacen(
        "type Query @join__type",
        "type Mutation @join__type(graph: LOCATIONS) { touch: Int @join__field(graph: LOCATIONS) }\n\ntype Query @join__type",
        1,
    )
    .replacen("  query: Query\n", "  query: Query\n  mutation: Mutation\n", 1)
}

/// The context of each stage of one request, by the name of the stage.
fn contexts(setting: &str, request: &Request) -> Vec<(String, Value)> {
    let planets = Stub::planets();
    let coprocessor = Stub::coprocessor(|_| {});
    let both = format!("{{request: {{context: {setting}}}, response: {{context: {setting}}}}}");
    let keys = format!(
        "coprocessor: {{url: '{}', router: {both}, supergraph: {both}, execution: {both}, subgraph: {{all: {both}}}}}",
        coprocessor.url
    );
    let gateway = Gateway::start(&planets.config(&keys));
    let response = gateway.send(request);
    assert_eq!(response.status, 200, "{}", response.text());
    let seen = coprocessor.seen();
    let messages = seen.iter().map(|seen| seen.json());
    messages
        .map(|message| {
            let stage = message["stage"].as_str().expect("a stage").to_owned();
            (stage, message["context"]["entries"].clone())
        })
        .collect()
}

#[test]
fn every_stage_after_the_router_knows_kind_and_name() {
    let request = post(r#"{"query":"query Named { locations { id } }","operationName":"Named"}"#);
    let setting = format!("{{selective: ['{NAME}', '{KIND}']}}");
    let contexts = contexts(&setting, &request);
    assert_eq!(contexts.len(), 8);
    for (stage, entries) in contexts {
        let wanted = match stage.as_str() {
            "RouterRequest" => json!({}),
            _ => json!({NAME: "Named", KIND: "query"}),
        };
        assert_eq!(entries, wanted, "{stage}");
    }
}

#[test]
fn an_anonymous_operation_has_a_kind_and_null_as_its_name() {
    let request = post(r#"{"query":"{ locations { id } }"}"#);
    for (stage, entries) in contexts("all", &request) {
        if stage != "RouterRequest" {
            assert_eq!(entries[KIND], "query", "{stage}");
            assert_eq!(entries.get(NAME), Some(&Value::Null), "{stage}");
        }
    }
}

#[test]
fn old_names_of_the_entries_are_translated() {
    let request = post(r#"{"query":"query Old { locations { id } }"}"#);
    let contexts = contexts("deprecated", &request);
    let (_, entries) = &contexts[1];
    assert_eq!(entries["operation_kind"], "query", "{entries}");
    assert_eq!(entries["operation_name"], "Old", "{entries}");
}

#[test]
fn a_header_rule_sends_the_name_to_subgraphs() {
    let planets = Stub::planets();
    let rules = format!(
        "headers: {{all: {{request: [{{insert: {{name: x-operation, from_context: '{NAME}'}}}}, {{insert: {{name: x-kind, from_context: '{KIND}'}}}}]}}}}"
    );
    let gateway = Gateway::start(&planets.config(&rules));
    gateway.send(&post(r#"{"query":"query Named { locations { id } }"}"#));
    gateway.send(&post(r#"{"query":"{ locations { name } }"}"#));
    let seen = planets.seen();
    assert_eq!(seen[0].header("x-operation"), Some("Named"));
    assert_eq!(seen[0].header("x-kind"), Some("query"));
    assert_eq!(seen[1].header("x-operation"), None);
    assert_eq!(seen[1].header("x-kind"), Some("query"));
}

#[test]
fn stages_after_the_plan_know_the_id_of_the_operation() {
    let id_at = |query: &str| {
        let body = serde_json::json!({"query": query}).to_string();
        let contexts = contexts(&format!("{{selective: ['{ID}']}}"), &post(&body));
        let known = contexts.into_iter().filter_map(|(stage, entries)| {
            let id = entries.get(ID)?.as_str()?.to_owned();
            Some((stage, id))
        });
        known.unzip::<_, _, Vec<_>, Vec<_>>()
    };
    let (stages, ids) = id_at("query Q { locations { name id } }");
    assert_eq!(
        stages,
        [
            "ExecutionRequest",
            "SubgraphRequest",
            "SubgraphResponse",
            "ExecutionResponse",
            "SupergraphResponse",
            "RouterResponse"
        ]
    );
    // The digest of `# Q\nquery Q{locations{id name}}`.
    assert_eq!(ids[0], "b92ffdf980b4bc51ce065db7bbe438314ea431b0");
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    assert_eq!(
        id_at("query Q { all: locations { id, name } }").1[0],
        ids[0]
    );
    assert_ne!(id_at("query Q { locations { id } }").1[0], ids[0]);
}

/// Every way to send a mutation past the check of its kind.
#[test]
fn a_script_refuses_mutations_by_their_kind() {
    let planets = Stub::planets();
    let script = format!(
        "fn supergraph_service(service) {{ service.map_request(|request| {{ \
         if request.context[\"{KIND}\"] == \"mutation\" {{ throw #{{ status: 403, message: \"read only\" }}; }} \
         }}); }}"
    );
    let gateway = Setup::new(
        &planets.config("rhai: {scripts: rhai}\nbatching: {enabled: true, mode: batch_http_link}"),
    )
    .file("supergraph.graphql", &with_mutation())
    .file("rhai/main.rhai", &script)
    .start();
    for body in [
        r#"{"query":"mutation { touch }"}"#,
        r#"{"query":"mutation M{touch}"}"#,
        r##"{"query":"# query Q {a}\nmutation M { touch }"}"##,
        r#"{"query":"fragment F on Mutation { touch } mutation { ...F }"}"#,
        r#"{"query":"query Q { locations { id } } mutation M { touch }","operationName":"M"}"#,
        r#"{"query":"mutation query { touch }"}"#,
        r#"{"query":"mutation @skip(if: false) { touch }"}"#,
        r#"{"query":"\ufeffmutation { touch }"}"#,
    ] {
        let refused = gateway.send(&post(body));
        // A document that is not valid is refused for another reason.
        assert!(
            matches!(refused.status, 400 | 403),
            "{body}: {}",
            refused.text()
        );
        let refused = gateway.send(&post(&format!("[{body}]")));
        assert!(
            !refused.text().contains("touch\":"),
            "{body}: {}",
            refused.text()
        );
    }
    assert!(planets.seen().is_empty());
    let served = gateway.send(&post(
        r#"{"query":"query Q { locations { id } } mutation M { touch }","operationName":"Q"}"#,
    ));
    assert_eq!(served.status, 200, "{}", served.text());
}

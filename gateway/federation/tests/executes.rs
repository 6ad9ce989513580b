//! Executes operations over a small supergraph. Each subgraph is a list of responses.

use std::cell::RefCell;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use gateway_federation::{
    ErrorPolicies, ErrorPolicy, Fetch, GraphqlError, OperationKind, OperationOptions, Operations,
    SubgraphAnswer, SubgraphRequest, Supergraph,
};
use insta::assert_snapshot;

const SDL: &str = include_str!("supergraph.graphql");

/// Returns the responses in the order of the requests, and records the requests.
struct Script {
    answers: RefCell<Vec<SubgraphAnswer>>,
    seen: RefCell<Vec<String>>,
}

impl Fetch for Script {
    async fn fetch(&self, request: SubgraphRequest<'_>) -> SubgraphAnswer {
        let body = String::from_utf8(request.body.to_vec()).expect("text that this test wrote");
        self.seen
            .borrow_mut()
            .push(format!("{} {body}", request.name));
        let mut answers = self.answers.borrow_mut();
        if answers.is_empty() {
            return SubgraphAnswer::from_error(GraphqlError::new("nothing scripted", "TEST"));
        }
        answers.remove(0)
    }
}

fn operations(options: OperationOptions) -> Operations {
    Operations::new(
        Arc::new(Supergraph::parse(SDL).expect("the supergraph of these tests")),
        options,
    )
}

fn open() -> OperationOptions {
    OperationOptions {
        introspection: true,
        ..OperationOptions::default()
    }
}

/// The requests, one per line, followed by the response.
fn run(query: &str, variables: Option<&str>, answers: &[&str]) -> String {
    let answers = answers
        .iter()
        .map(|body| SubgraphAnswer::from_body((*body).to_owned()));
    run_with(query, variables, answers.collect(), ErrorPolicy::Include)
}

fn run_with(
    query: &str,
    variables: Option<&str>,
    answers: Vec<SubgraphAnswer>,
    policy: ErrorPolicy,
) -> String {
    let operations = operations(open());
    let prepared = match operations.prepare(query, None) {
        Ok(prepared) => prepared,
        Err(refusal) => {
            return String::from_utf8(refusal.body()).expect("text that this test wrote");
        }
    };
    let variables = match prepared.coerce(variables.map(str::as_bytes)) {
        Ok(variables) => variables,
        Err(errors) => {
            return String::from_utf8(gateway_federation::errors_body(&errors))
                .expect("text that this test wrote");
        }
    };
    let policies = ErrorPolicies::new(operations.supergraph(), |_| policy.clone());
    let script = Script {
        answers: RefCell::new(answers),
        seen: RefCell::default(),
    };
    let body = {
        let mut future = Box::pin(prepared.execute(&variables, &script, &policies));
        let mut context = Context::from_waker(Waker::noop());
        loop {
            if let Poll::Ready(executed) = future.as_mut().poll(&mut context) {
                break executed.into_body();
            }
        }
    };
    let mut lines = script.seen.into_inner();
    lines.push(String::from_utf8(body.to_vec()).expect("text that this test wrote"));
    lines.join("\n")
}

#[test]
fn entities_are_asked_once_each_and_merged_where_they_belong() {
    assert_snapshot!(run(
        "query All { places { name again: rating id } }",
        None,
        &[
            r#"{"data":{"places":[{"__typename":"Place","id":"1","name":"A"},{"__typename":"Place","id":"2","name":"B"},{"__typename":"Place","id":"1","name":"A"}]}}"#,
            r#"{"data":{"_entities":[{"again":4.5},{"again":null}]}}"#,
        ],
    ), @r#"
    places {"query":"query All__places__0{places{__typename id name}}","operationName":"All__places__0"}
    re-views {"query":"query All__re_views__1($representations:[_Any!]!){_entities(representations:$representations){...on Place{again:rating}}}","operationName":"All__re_views__1","variables":{"representations":[{"__typename":"Place","id":"1"},{"__typename":"Place","id":"2"}]}}
    {"data":{"places":[{"name":"A","again":4.5,"id":"1"},{"name":"B","again":null,"id":"2"},{"name":"A","again":4.5,"id":"1"}]}}
    "#);
}

#[test]
fn an_error_of_an_entity_is_told_at_every_place_of_the_entity() {
    assert_snapshot!(run(
        "{ places { id reviews { stars } } }",
        None,
        &[
            r#"{"data":{"places":[{"__typename":"Place","id":"1"},{"__typename":"Place","id":"2"},{"__typename":"Place","id":"1"}]}}"#,
            r#"{"data":{"_entities":[null,{"reviews":[]}]},"errors":[{"message":"gone","path":["_entities",0,"reviews"]}]}"#,
        ],
    ), @r#"
    places {"query":"{places{__typename id}}"}
    re-views {"query":"query($representations:[_Any!]!){_entities(representations:$representations){...on Place{reviews{stars}}}}","variables":{"representations":[{"__typename":"Place","id":"1"},{"__typename":"Place","id":"2"}]}}
    {"data":{"places":null},"errors":[{"message":"gone","path":["places",0,"reviews"],"extensions":{"service":"re-views"}},{"message":"gone","path":["places",2,"reviews"],"extensions":{"service":"re-views"}}]}
    "#);
}

#[test]
fn only_given_variables_are_sent_and_defaults_stay_in_the_text() {
    assert_snapshot!(run(
        "query P($id: ID!, $n: Int = 2, $x: Boolean!) { place(id: $id) { near(count: $n) { id } name @include(if: $x) } }",
        Some(r#"{"id":7,"x":false,"unknown":1}"#),
        &[r#"{"data":{"place":{"near":[{"id":"8"},null],"name":"never shown","extra":1}}}"#],
    ), @r#"
    places {"query":"query P__places__0($id:ID!$n:Int=2$x:Boolean!){place(id:$id){near(count:$n){id}name@include(if:$x)}}","operationName":"P__places__0","variables":{"id":7,"x":false}}
    {"data":{"place":{"near":[{"id":"8"},null]}}}
    "#);
}

#[test]
fn fragments_apply_by_the_type_of_each_object() {
    assert_snapshot!(run(
        "{ found { __typename ... on Named { name } ... on Guide { phone kind: __typename } } named { name } here: __typename }",
        None,
        &[r#"{"data":{"found":[{"__typename":"Guide","name":"G","phone":"1"},{"__typename":"Place","name":"P"},null],"named":[{"__typename":"Place","name":"Q"}]}}"#],
    ).lines().last().unwrap(), @r#"{"data":{"found":[{"__typename":"Guide","name":"G","phone":"1","kind":"Guide"},{"__typename":"Place","name":"P"},null],"named":[{"name":"Q"}],"here":"Query"}}"#);
}

#[test]
fn null_rises_to_the_nearest_place_that_allows_it_and_says_why() {
    assert_snapshot!(run(
        "{ latest { comment place { id reviews { stars } } } }",
        None,
        &[r#"{"data":{"latest":{"comment":"c","place":{"id":"1","reviews":[{"stars":5},{"stars":null}]}}}}"#],
    ).lines().last().unwrap(), @r#"{"data":{"latest":{"comment":"c","place":null}},"errors":[{"message":"Cannot return null for non-nullable field Review.stars.","path":["latest","place","reviews",1,"stars"],"extensions":{"code":"RESPONSE_VALIDATION_FAILED"}}]}"#);
}

#[test]
fn values_that_clients_may_not_see_become_null() {
    assert_snapshot!(run(
        "{ places { climate } }",
        None,
        &[r#"{"data":{"places":[{"climate":"MILD"},{"climate":"SECRET"}]}}"#],
    ).lines().last().unwrap(), @r#"{"data":{"places":[{"climate":"MILD"},{"climate":null}]},"errors":[{"message":"a subgraph answered Place.climate with a value that is not a value of the enum Climate","path":["places",1,"climate"],"extensions":{"code":"RESPONSE_VALIDATION_FAILED"}}]}"#);
    assert_snapshot!(run("{ place(id: 1) { secret } }", None, &[]), @r#"{"errors":[{"message":"Cannot query field \"secret\" on type \"Place\".","locations":[{"line":1,"column":18}],"extensions":{"code":"GRAPHQL_VALIDATION_FAILED"}}]}"#);
}

/// A client with strict types does not read `1.0` as an `Int`. Identifiers pass as Apollo Router passes them.
#[test]
fn whole_numbers_are_written_with_digits_only() {
    for (sent, received) in [
        ("1", "1"),
        ("1.0", "1"),
        ("-1.0", "-1"),
        ("-0.0", "0"),
        ("2.5e1", "25"),
        ("1e9", "1000000000"),
        ("2147483647.0", "2147483647"),
    ] {
        let answer = format!(r#"{{"data":{{"latest":{{"stars":{sent},"place":{{"id":7}}}}}}}}"#);
        let text = run("{ latest { stars place { id } } }", None, &[&answer]);
        let expected =
            format!(r#"{{"data":{{"latest":{{"stars":{received},"place":{{"id":7}}}}}}}}"#);
        assert_eq!(text.lines().last(), Some(expected.as_str()), "{sent}");
    }
}

#[test]
fn a_plan_can_be_read_as_json() {
    let query =
        "query Q($x: Boolean!) { places { name rating } latest @include(if: $x) { stars } }";
    let prepared = operations(open()).prepare(query, None).unwrap();
    assert_snapshot!(prepared.plan_json(), @r#"{"kind":"QueryPlan","node":{"kind":"Sequence","nodes":[{"kind":"Parallel","nodes":[{"kind":"Fetch","operation":"query Q__re_views__0($x:Boolean!){latest@include(if:$x){stars}}","operationKind":"query","operationName":"Q__re_views__0","serviceName":"re-views","variableUsages":["x"]},{"kind":"Fetch","operation":"query Q__places__1{places{__typename id name}}","operationKind":"query","operationName":"Q__places__1","serviceName":"places","variableUsages":[]}]},{"kind":"Flatten","node":{"kind":"Fetch","operation":"query Q__re_views__2($representations:[_Any!]!){_entities(representations:$representations){...on Place{rating}}}","operationKind":"query","operationName":"Q__re_views__2","serviceName":"re-views","variableUsages":[]},"path":["places","@"]}]}}"#);
}

/// Every field of a request may depend on variables. Then the request is not sent, and its failure cannot
/// reach the client.
#[test]
fn a_request_for_fields_that_variables_leave_out_is_not_sent() {
    let places = r#"{"data":{"places":[{"__typename":"Place","id":"1","name":"A"}]}}"#;
    for (query, sent) in [
        ("query($i:Boolean!){places@skip(if:$i){name}}", 0),
        (
            "query($i:Boolean!){places@skip(if:$i){name}again:places@skip(if:$i){id}}",
            0,
        ),
        ("query($i:Boolean!){...@skip(if:$i){places{name}}}", 0),
        (
            "query($i:Boolean!){...F@skip(if:$i)}fragment F on Query{places{name}}",
            0,
        ),
        (
            "query($i:Boolean!,$o:Boolean=false){places@skip(if:$i)@include(if:$o){name}}",
            0,
        ),
        (
            "query($i:Boolean!,$o:Boolean=false){a:places@skip(if:$i){name}b:places@include(if:$o){name}}",
            0,
        ),
        ("query($i:Boolean!){__typename places@skip(if:$i){name}}", 0),
        ("query($i:Boolean!){places{name@skip(if:$i)}}", 1),
        (
            "query($i:Boolean!){places{name}again:places@skip(if:$i){name}}",
            1,
        ),
        ("query($i:Boolean!){places@include(if:$i){name}}", 1),
        (
            "query($i:Boolean!,$o:Boolean=false){places{name rating@skip(if:$i) again:rating@include(if:$o)}}",
            1,
        ),
        (
            "mutation($i:Boolean!){review(id:1,stars:2)@skip(if:$i){stars}}",
            0,
        ),
    ] {
        let seen = run(query, Some(r#"{"i":true}"#), &[places]);
        let lines: Vec<&str> = seen.lines().collect();
        assert_eq!(lines.len(), sent + 1, "{query}\n{seen}");
        assert!(sent > 0 || !seen.contains("errors"), "{query}\n{seen}");
    }
    assert_eq!(
        run(
            "query($i:Boolean!){places@skip(if:$i){name}}",
            Some(r#"{"i":true}"#),
            &[]
        ),
        r#"{"data":{}}"#
    );
}

#[test]
fn mutations_run_in_order() {
    let seen = run(
        "mutation M { review(id: 1, stars: 2) { stars } rename(id: 1, name: \"x\") { name } }",
        None,
        &[
            r#"{"data":{"review":{"stars":2}}}"#,
            r#"{"data":{"rename":{"name":"x"}}}"#,
        ],
    );
    assert_snapshot!(seen, @r#"
    re-views {"query":"mutation M__re_views__0{review(id:1 stars:2){stars}}","operationName":"M__re_views__0"}
    places {"query":"mutation M__places__1{rename(id:1 name:\"x\"){name}}","operationName":"M__places__1"}
    {"data":{"review":{"stars":2},"rename":{"name":"x"}}}
    "#);
}

#[test]
fn failures_are_errors_of_their_fetch_and_redaction_hides_them() {
    let failure = || {
        GraphqlError::new(
            "HTTP fetch failed from 'places': refused",
            "SUBREQUEST_HTTP_ERROR",
        )
    };
    let answers = || vec![SubgraphAnswer::from_error(failure())];
    assert_snapshot!(run_with("{ places { id } }", None, answers(), ErrorPolicy::Include).lines().last().unwrap(), @r#"{"data":{"places":null},"errors":[{"message":"HTTP fetch failed from 'places': refused","extensions":{"code":"SUBREQUEST_HTTP_ERROR","service":"places"}}]}"#);
    assert_snapshot!(run_with("{ places { id } }", None, answers(), ErrorPolicy::Redact).lines().last().unwrap(), @r#"{"data":{"places":null},"errors":[{"message":"Subgraph errors redacted"}]}"#);
    assert_snapshot!(run("{ places { id } }", None, &["<html>"]).lines().last().unwrap(), @r#"{"data":{"places":null},"errors":[{"message":"service 'places' response was malformed: expected a JSON value at byte 0, found `<`","extensions":{"code":"SUBREQUEST_MALFORMED_RESPONSE","reason":"expected a JSON value at byte 0, found `<`","service":"places"}}]}"#);
    assert_snapshot!(run("{ places { id } }", None, &[r#"{"data":null}"#]).lines().last().unwrap(), @r#"{"data":null}"#);
}

#[test]
fn variables_are_refused_with_the_words_of_the_reference() {
    let query = "query P($f: Filter, $id: ID!) { places(filter: $f) { id } place(id: $id) { id } }";
    assert_snapshot!(run(query, Some(r#"{"f":{"tags":["a",1]}}"#), &[]), @r#"{"errors":[{"message":"Variable \"$f\" got invalid value 1 at \"f.tags[1]\"; String cannot represent a non string value: 1","extensions":{"code":"VALIDATION_INVALID_TYPE_VARIABLE","name":"f"}},{"message":"Variable \"$id\" of required type \"ID!\" was not provided.","extensions":{"code":"VALIDATION_INVALID_TYPE_VARIABLE","name":"id"}}]}"#);
    assert_snapshot!(run(query, Some(r#"{"id":"1","f":{}}"#), &[]), @r#"{"errors":[{"message":"Variable \"$f\" got invalid value {}; Field \"tags\" of required type \"[String!]!\" was not provided.","extensions":{"code":"VALIDATION_INVALID_TYPE_VARIABLE","name":"f"}}]}"#);
    assert_snapshot!(run(query, Some("[]"), &[]), @r#"{"errors":[{"message":"Invalid GraphQL request","extensions":{"code":"INVALID_GRAPHQL_REQUEST","details":"`variables` must be an object"}}]}"#);
}

#[test]
fn introspection_shows_what_clients_may_see() {
    assert_snapshot!(run(
        "query($n: String!) { __type(name: $n) { name kind interfaces { name } fields { name type { kind ofType { name } } } } climate: __type(name: \"Climate\") { enumValues { name } } none: __type(name: \"Nope\") { name } }",
        Some(r#"{"n":"Place"}"#),
        &[],
    ), @r#"{"data":{"__type":{"name":"Place","kind":"OBJECT","interfaces":[{"name":"Named"}],"fields":[{"name":"id","type":{"kind":"NON_NULL","ofType":{"name":"ID"}}},{"name":"name","type":{"kind":"NON_NULL","ofType":{"name":"String"}}},{"name":"climate","type":{"kind":"ENUM","ofType":null}},{"name":"near","type":{"kind":"LIST","ofType":{"name":"Place"}}},{"name":"rating","type":{"kind":"SCALAR","ofType":null}},{"name":"reviews","type":{"kind":"NON_NULL","ofType":{"name":null}}}]},"climate":{"enumValues":[{"name":"MILD"}]},"none":null}}"#);
    let closed = operations(OperationOptions::default());
    let refusal = closed
        .prepare(
            "{ ...F } fragment F on Query { __schema { types { name } } }",
            None,
        )
        .unwrap_err();
    assert_eq!(refusal.errors[0].code(), Some("INTROSPECTION_DISABLED"));
    assert!(closed.prepare("{ __typename }", None).is_ok());
}

#[test]
fn refusals_have_their_codes() {
    let operations = operations(OperationOptions::default());
    let code = |query: &str, name: Option<&str>| {
        let refusal = operations.prepare(query, name).unwrap_err();
        assert!(!refusal.internal, "{refusal:?}");
        refusal.errors[0].code().unwrap().to_owned()
    };
    assert_eq!(code("{ places { id }", None), "PARSING_ERROR");
    assert_eq!(code("{ nothing }", None), "GRAPHQL_VALIDATION_FAILED");
    assert_eq!(
        code("query A {__typename} query B {__typename}", None),
        "GRAPHQL_VALIDATION_FAILED"
    );
    assert_eq!(
        code("query A {__typename}", Some("B")),
        "GRAPHQL_UNKNOWN_OPERATION_NAME"
    );
    assert_eq!(
        code("{ ...A } fragment A on Query { ...A }", None),
        "GRAPHQL_VALIDATION_FAILED"
    );
    // Subgraphs are asked for the type of an object under this name.
    assert_eq!(
        code("{ place(id: 1) { __typename: id } }", None),
        "GRAPHQL_VALIDATION_FAILED"
    );
    let deep = format!(
        "{{ place(id: 1) {{ {} id {} }} }}",
        "near {".repeat(400),
        "}".repeat(400)
    );
    assert_eq!(code(&deep, None), "PARSING_ERROR");
}

#[test]
fn repeated_operations_are_found_ready_and_the_cache_stays_bounded() {
    let operations = operations(OperationOptions {
        cached_plans: 2,
        ..open()
    });
    assert!(operations.cached("{ places { id } }", None).is_none());
    operations.prepare("{ places { id } }", None).unwrap();
    let again = operations.prepare("{ places { id } }", None).unwrap();
    assert_eq!(again.kind(), OperationKind::Query);
    for index in 0..5 {
        operations
            .prepare(&format!("{{ a{index}: __typename }}"), None)
            .unwrap();
        operations.prepare("{ places { id } }", None).unwrap();
    }
    let stats = operations.cache_stats();
    assert_eq!(stats.entries, 2);
    assert_eq!(stats.misses, 6, "what is used all the time stays");
}

#[test]
fn a_text_that_is_no_supergraph_is_refused_with_the_reason() {
    assert_snapshot!(Supergraph::parse("type Query { a: Int }").unwrap_err(), @"the text is a GraphQL schema, yet no supergraph: it has no enum `join__Graph`; compose the subgraphs first");
    assert!(Supergraph::parse("type {").is_err());
}

#[test]
fn an_interface_objects_subgraph_is_asked_by_the_name_of_the_interface() {
    assert_snapshot!(run(
        "{ media { __typename tag } }",
        None,
        &[
            r#"{"data":{"media":[{"__typename":"Film","id":"1"}]}}"#,
            r#"{"data":{"_entities":[{"__typename":"Media","tag":"t"}]}}"#,
        ],
    ), @r#"
    places {"query":"{media{__typename id}}"}
    tags {"query":"query($representations:[_Any!]!){_entities(representations:$representations){...on Media{tag}}}","variables":{"representations":[{"__typename":"Media","id":"1"}]}}
    {"data":{"media":[{"__typename":"Film","tag":"t"}]}}
    "#);
}

#[test]
fn the_name_of_an_interface_gives_way_to_the_name_of_the_object() {
    assert_snapshot!(run(
        "{ tagged { id __typename ... on Film { minutes } } }",
        None,
        &[
            r#"{"data":{"tagged":[{"__typename":"Media","id":"1"}]}}"#,
            r#"{"data":{"_entities":[{"__typename":"Film","minutes":90}]}}"#,
        ],
    ), @r#"
    tags {"query":"{tagged{__typename id}}"}
    places {"query":"query($representations:[_Any!]!){_entities(representations:$representations){...on Media{__typename ...on Film{minutes}}}}","variables":{"representations":[{"__typename":"Media","id":"1"}]}}
    {"data":{"tagged":[{"id":"1","__typename":"Film","minutes":90}]}}
    "#);
}

#[test]
fn types_of_composition_are_no_clients_business() {
    let shown = run("{ __schema { types { name } } }", None, &[]);
    assert!(shown.contains("\"Place\""), "{shown}");
    for hidden in ["join__", "link__", "SECRET"] {
        assert!(!shown.contains(hidden), "{hidden} in {shown}");
    }
}

#[test]
fn small_texts_that_mean_much_are_prepared_or_refused_but_never_hang() {
    use std::fmt::Write as _;
    let mut chain = "{ place(id: 1) { ...F0 } }".to_owned();
    for index in 0..240 {
        let next = index + 1;
        write!(
            chain,
            " fragment F{index} on Place {{ near {{ ...F{next} }} }}"
        )
        .unwrap();
    }
    chain.push_str(" fragment F240 on Place { id rating }");
    let operations = operations(OperationOptions::default());
    assert!(
        operations.prepare(&chain, None).is_ok(),
        "bounded depth is fine"
    );
    let mut bomb = "{ ...F0 }".to_owned();
    for index in 0..40 {
        let next = index + 1;
        write!(
            bomb,
            " fragment F{index} on Query {{ ...F{next} ...F{next} }}"
        )
        .unwrap();
    }
    bomb.push_str(" fragment F40 on Query { places { id } }");
    let refusal = operations.prepare(&bomb, None).unwrap_err();
    assert_eq!(refusal.errors[0].code(), Some("GRAPHQL_VALIDATION_FAILED"));
}

#[test]
fn a_query_with_defer_is_answered_in_one_piece() {
    let answer = r#"{"data":{"place":{"id":"1","name":"A","climate":"MILD"}}}"#;
    for fragment in [
        "... @defer { name climate }",
        "... on Place @defer(label: \"slow\") { name climate }",
        "...Slow @defer(if: true, label: \"slow\")",
        "...Slow @defer(if: $now) name @include(if: true)",
    ] {
        let slow = if fragment.contains("...Slow") {
            "fragment Slow on Place { name climate }"
        } else {
            ""
        };
        let variables = if fragment.contains("$now") {
            "query ($now: Boolean!)"
        } else {
            ""
        };
        let query = format!("{variables} {{ place(id: 1) {{ id {fragment} }} }} {slow}");
        let given = (!variables.is_empty()).then_some(r#"{"now":true}"#);
        let text = run(&query, given, &[answer]);
        let (sent, body) = text.rsplit_once('\n').unwrap();
        assert_eq!(body, answer, "{query}");
        // Subgraphs do not receive `@defer`, so they need no support for it.
        assert!(!sent.contains("defer"), "{sent}");
    }
    for wrong in [
        "{ place(id: 1) { id @defer } }",
        "query @defer { place(id: 1) { id } }",
        "{ place(id: 1) { ... @defer(if: 7) { id } } }",
        "{ place(id: 1) { ... @defer(later: true) { id } } }",
    ] {
        let refusal = operations(open()).prepare(wrong, None).err();
        let refusal = refusal.unwrap_or_else(|| panic!("{wrong} is taken"));
        assert_eq!(refusal.errors[0].code(), Some("GRAPHQL_VALIDATION_FAILED"));
    }
}

#[test]
fn a_supergraph_with_arguments_from_a_context_is_refused() {
    let argument = r#"contextArguments: [{context: "places__place", name: "unit", type: "String", selection: "{ climate }"}]"#;
    let sdl = SDL.replace(
        "near(count: Int = 3): [Place] @join__field(graph: PLACES)",
        &format!("near(count: Int = 3): [Place] @join__field(graph: PLACES, {argument})"),
    );
    assert_ne!(sdl, SDL);
    let error = Supergraph::parse(&sdl).unwrap_err().to_string();
    assert_snapshot!(error, @"the supergraph uses @fromContext at `Place.near`, which this gateway does not serve; take it out of the subgraph and compose again, for example with an argument that clients give");
    // Without an argument, the gateway never reads the context.
    let sdl = SDL.replace(
        "near(count: Int = 3): [Place] @join__field(graph: PLACES)",
        "near(count: Int = 3): [Place] @join__field(graph: PLACES, contextArguments: [])",
    );
    assert!(Supergraph::parse(&sdl).is_ok());
}

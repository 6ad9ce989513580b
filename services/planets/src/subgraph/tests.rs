use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use async_graphql::parser::types::Selection;
use insta::assert_snapshot;
use serde_json::{Value, json};

use super::*;

/// The future never waits, so one poll is enough.
fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("a schema without input or output waited"),
    }
}

fn ask(name: Name, question: Value) -> Answer {
    let question = question.to_string();
    let question = graphql_http::from_body(question.as_bytes()).unwrap();
    now(subgraphs().schemas().execute(name, question))
}

fn subgraphs() -> Subgraphs {
    Subgraphs::new(DocumentLimits::default())
}

fn data(name: Name, query: &str) -> String {
    let answer = ask(name, json!({ "query": query }));
    String::from_utf8(answer.body.to_vec()).unwrap()
}

#[test]
fn each_subgraph_knows_its_part_of_a_location() {
    assert_snapshot!(
        data(Name::Locations, r#"{ location(id: "loc-3") { __typename id name photo } none: location(id: "x") { id } }"#),
        @r#"{"data":{"location":{"__typename":"Location","id":"loc-3","name":"The lending forest of Mirrum","photo":"https://planets.example/photos/loc-3/lending-forest-roots-1920x1080.webp"},"none":null}}"#
    );
    assert_snapshot!(
        data(Name::Reviews, r#"{ _entities(representations: [{__typename: "Location", id: "loc-1"}, {__typename: "Location", id: "loc-5"}]) { ... on Location { id overallRating reviewsForLocation { id rating location { id } } } } }"#),
        @r#"{"data":{"_entities":[{"id":"loc-1","overallRating":4.25,"reviewsForLocation":[{"id":"rev-1","rating":5,"location":{"id":"loc-1"}},{"id":"rev-2","rating":3,"location":{"id":"loc-1"}},{"id":"rev-3","rating":5,"location":{"id":"loc-1"}},{"id":"rev-4","rating":4,"location":{"id":"loc-1"}}]},{"id":"loc-5","overallRating":null,"reviewsForLocation":[]}]}}"#
    );
}

#[test]
fn bodies_of_the_lab_are_between_50_bytes_and_3400_bytes() {
    let list = data(
        Name::Locations,
        "{ locations { __typename id description } }",
    );
    assert!((2_800..=3_500).contains(&list.len()), "{}", list.len());
    let query = r#"{ _entities(representations: [{__typename: "Location", id: "loc-1"}]) { ... on Location { overallRating } } }"#;
    let one = data(Name::Reviews, query);
    assert!((40..=70).contains(&one.len()), "{}", one.len());
}

#[test]
fn the_service_tells_a_federation_2_schema_with_the_key() {
    for name in Name::ALL {
        let sdl = data(name, "{ _service { sdl } }");
        assert!(sdl.contains(r#"@key(fields: \"id\")"#), "{sdl}");
        assert!(
            sdl.contains("https://specs.apollo.dev/federation/v2."),
            "{sdl}"
        );
    }
}

#[test]
fn a_wrong_document_is_refused_and_has_no_data() {
    for query in ["{ nothing }", "{", "{ locations }"] {
        let answer = ask(Name::Locations, json!({ "query": query }));
        let body: Value = serde_json::from_slice(&answer.body).unwrap();
        assert!(!answer.is_executed, "{body}");
        assert!(
            body.get("data").is_none() && body["errors"][0]["message"].is_string(),
            "{body}"
        );
    }
}

#[test]
fn what_is_no_request_is_an_error_with_a_reason() {
    let from_parameters = |text| -> Result<Question<'_>, _> { graphql_http::from_parameters(text) };
    for wrong in [
        "",
        "[]",
        "{}",
        r#"{"query": 1}"#,
        r#"{"query": "{a}", "variables": 1}"#,
        r#"{"query": "{a}", "extensions": []}"#,
    ] {
        let read: Result<Question<'_>, _> = graphql_http::from_body(wrong.as_bytes());
        assert!(read.is_err(), "{wrong}");
    }
    assert!(from_parameters("variables={}").is_err());
    assert!(from_parameters("query={a}&variables=1").is_err());
    let question = from_parameters("query=%7Ba%7D&variables=%7B%22b%22%3A1%7D").unwrap();
    assert_eq!(question.query, "{a}");
    assert_eq!(question.variables.unwrap()["b"], 1.into());
}

#[test]
fn only_the_same_body_of_the_same_subgraph_is_known() {
    let mut subgraphs = subgraphs();
    let body = Bytes::from_static(br#"{"query":"{__typename}"}"#);
    let answer = Answer {
        body: Bytes::from_static(b"{}"),
        is_executed: true,
    };
    subgraphs.keep(Name::Reviews, &body, &answer);
    assert_eq!(subgraphs.known(Name::Reviews, &body), Some(answer));
    assert_eq!(subgraphs.known(Name::Locations, &body), None);
    assert_eq!(
        subgraphs.known(Name::Reviews, br#"{"query":"{ __typename}"}"#),
        None
    );
}

#[test]
fn endless_bodies_take_bounded_memory() {
    let mut subgraphs = subgraphs();
    let answer = Answer {
        body: Bytes::from_static(b"{}"),
        is_executed: true,
    };
    for number in 0..2 * KNOWN_MAX {
        subgraphs.keep(Name::Reviews, number.to_string().as_bytes(), &answer);
    }
    assert!(subgraphs.known[Name::Reviews as usize].len() <= KNOWN_MAX);
    let large = Bytes::from(vec![b' '; KNOWN_BYTES_MAX + 1]);
    subgraphs.keep(Name::Reviews, &large, &answer);
    assert_eq!(subgraphs.known(Name::Reviews, &large), None);
}

/// The error code of a refused query. `None` if it is executed.
fn code(name: Name, question: Value) -> Option<String> {
    let answer = ask(name, question);
    let body: Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(answer.is_executed, body.get("data").is_some(), "{body}");
    let code = body["errors"][0]["extensions"]["code"].as_str()?;
    Some(code.to_owned())
}

#[test]
fn a_question_beyond_a_limit_is_refused_with_its_code() {
    let aliases = |count, field| test_client::aliased(count, "a", field);
    let below = |depth: usize| "ofType{".repeat(depth) + "name" + &"}".repeat(depth);
    for (query, expected) in [
        (format!("{{locations{{{}}}}}", aliases(500, "id")), None),
        (
            format!("{{locations{{{}}}}}", aliases(501, "id")),
            Some("MAX_ALIASES_LIMIT"),
        ),
        (
            format!("{{{}}}", aliases(201, "__typename")),
            Some("MAX_ROOT_FIELDS_LIMIT"),
        ),
        (format!(r#"{{__type(name:"ID"){{{}}}}}"#, below(48)), None),
        (
            format!(r#"{{__type(name:"ID"){{{}}}}}"#, below(49)),
            Some("MAX_DEPTH_LIMIT"),
        ),
        (
            format!(r#"{{__type(name:"ID"){{{}}}}}"#, below(70)),
            Some("PARSING_ERROR"),
        ),
        (
            format!("{{locations{{{}}}}}", "id ".repeat(15_000)),
            Some("PARSING_ERROR"),
        ),
        (
            format!("{{locations{{{}}}}}", "id ".repeat(4_001)),
            Some("GRAPHQL_VALIDATION_FAILED"),
        ),
    ] {
        let found = code(Name::Locations, json!({ "query": query }));
        assert_eq!(found.as_deref(), expected, "{query}");
    }
}

#[test]
fn lists_in_lists_and_many_entities_are_a_large_answer() {
    let nested = |levels: usize| {
        let open = "reviewsForLocation{location{".repeat(levels);
        format!("...on Location{{{open}id{}}}", "}}".repeat(levels))
    };
    let large = Some("MAX_COMPLEXITY_LIMIT");
    for (levels, count, expected) in [
        (0, 19_999, None),
        (0, 20_000, large),
        (2, 400, None),
        (2, 700, large),
        (12, 1, large),
    ] {
        let entities = vec![json!({"__typename": "Location", "id": "loc-1"}); count];
        let nested = nested(levels);
        let query = format!("query($r:[_Any!]!){{_entities(representations:$r){{{nested}}}}}");
        let question = json!({"query": query, "variables": {"r": entities}});
        let found = code(Name::Reviews, question);
        assert_eq!(found.as_deref(), expected, "{levels}, {count}");
    }
    // The same list in the text, as a value and as the default of a variable.
    let listed = r#"{__typename:"Location",id:"loc-1"} "#.repeat(700);
    let nested = nested(2);
    for query in [
        format!("{{_entities(representations:[{listed}]){{{nested}}}}}"),
        format!("query($r:[_Any!]=[{listed}]){{_entities(representations:$r){{{nested}}}}}"),
    ] {
        let found = code(Name::Reviews, json!({ "query": query }));
        assert_eq!(found.as_deref(), large, "{query}");
    }
}

#[test]
fn a_tool_may_read_the_whole_schema_but_not_lists_of_lists_of_it() {
    let kind = "kind name ofType{kind name ofType{kind name ofType{kind name ofType{kind name \
                ofType{kind name ofType{kind name ofType{kind name}}}}}}}";
    let input = format!("name description type{{{kind}}} defaultValue");
    let whole = format!(
        "{{__schema{{queryType{{name}} mutationType{{name}} subscriptionType{{name}} \
         types{{kind name description specifiedByURL fields(includeDeprecated:true){{name \
         description args{{{input}}} type{{{kind}}} isDeprecated deprecationReason}} \
         inputFields{{{input}}} interfaces{{{kind}}} enumValues(includeDeprecated:true){{name \
         description isDeprecated deprecationReason}} possibleTypes{{{kind}}}}} \
         directives{{name description locations args{{{input}}}}}}}}}"
    );
    let bomb = format!(
        "{{__schema{{types{{{}name{}}}}}}}",
        "fields{type{ofType{ofType{ofType{".repeat(6),
        "}}}}}".repeat(6)
    );
    for name in Name::ALL {
        assert_eq!(code(name, json!({ "query": whole })), None);
        let refused = code(name, json!({ "query": bomb }));
        assert_eq!(refused.as_deref(), Some("MAX_COMPLEXITY_LIMIT"));
    }
}

#[test]
fn lists_are_no_longer_than_they_are_taken_for() {
    let of = |name: &str| {
        let document = parse_query(format!("{{{name}}}")).unwrap();
        let (_, operation) = document.operations.iter().next().unwrap();
        let mut selections = operation.node.selection_set.node.items.iter();
        let field = selections.find_map(|it| match &it.node {
            Selection::Field(field) => Some(&field.node),
            _ => None,
        });
        objects::most(field.unwrap(), &document, &Variables::default())
    };
    for name in Name::ALL {
        let answer = data(
            name,
            "{__schema{types{name fields{name}} directives{name}}}",
        );
        let answer: Value = serde_json::from_str(&answer).unwrap();
        let schema = &answer["data"]["__schema"];
        let types = schema["types"].as_array().unwrap();
        assert!(types.len() as u64 <= of("types"), "{}", types.len());
        let directives = schema["directives"].as_array().unwrap();
        assert!(directives.len() as u64 <= of("directives"));
        let fields: usize = types
            .iter()
            .map(|it| it["fields"].as_array().map_or(0, Vec::len))
            .sum();
        assert!((fields as u64) <= of("types") * of("fields"));
    }
    assert_eq!(of("locations"), 5);
    assert_eq!(of("reviewsForLocation"), 4);
}

#[test]
fn the_committed_subgraphs_are_what_the_service_tells() {
    for (name, committed) in [
        (
            Name::Locations,
            include_str!("../../subgraphs/locations.graphql"),
        ),
        (
            Name::Reviews,
            include_str!("../../subgraphs/reviews.graphql"),
        ),
    ] {
        let body: Value = serde_json::from_str(&data(name, "{ _service { sdl } }")).unwrap();
        let sdl = body["data"]["_service"]["sdl"].as_str().unwrap();
        assert_eq!(
            sdl.trim(),
            committed.trim(),
            "write it to subgraphs/ and compose again"
        );
    }
}

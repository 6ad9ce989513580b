//! Limits on the growth of subgraph responses. Two types with ten entities each refer to each other, so each
//! level of a query multiplies the response by ten.

#![cfg(test)]

use std::cell::{Cell, RefCell};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use gateway_federation::{
    ErrorPolicies, ErrorPolicy, Executed, ExecutionLimits, Fetch, OperationOptions, Operations,
    SubgraphAnswer, SubgraphRequest, Supergraph,
};
use serde_json::{Value, json};

const SDL: &str = include_str!("bounds.graphql");

/// Subgraphs with `width` entities of each type. Each entity refers to all entities of the other type.
struct Subgraphs {
    width: usize,
    /// True if every second response reports an error for each of its entities.
    fails: bool,
    /// Number of representations in each request.
    asked: RefCell<Vec<usize>>,
    pauses: Cell<usize>,
}

impl Subgraphs {
    fn new(width: usize) -> Self {
        Subgraphs {
            width,
            fails: false,
            asked: RefCell::default(),
            pauses: Cell::default(),
        }
    }

    fn stubs(&self, kind: &str) -> Value {
        let stubs = (0..self.width).map(|id| json!({"__typename": kind, "id": id.to_string()}));
        stubs.collect()
    }
}

impl Fetch for Subgraphs {
    async fn fetch(&self, request: SubgraphRequest<'_>) -> SubgraphAnswer {
        let body: Value = serde_json::from_slice(&request.body).unwrap();
        let stubs = match request.name {
            "a" => json!({ "__typename": "A", "bs": self.stubs("B") }),
            _ => json!({ "__typename": "B", "as": self.stubs("A") }),
        };
        let count = body["variables"]["representations"]
            .as_array()
            .map(Vec::len);
        self.asked.borrow_mut().push(count.unwrap_or(0));
        let answer = match count {
            Some(count) => {
                let mut answer = json!({"data": {"_entities": vec![stubs; count]}});
                if self.fails && request.name == "b" {
                    let error = |index| json!({"message": "no", "path": ["_entities", index]});
                    answer["errors"] = (0..count).map(error).collect();
                }
                answer
            }
            None => {
                let mut roots = self.stubs("A");
                for root in roots.as_array_mut().unwrap() {
                    root["bs"] = self.stubs("B");
                }
                json!({ "data": { "as": roots } })
            }
        };
        SubgraphAnswer::from_body(answer.to_string())
    }

    async fn give_way(&self) {
        self.pauses.set(self.pauses.get() + 1);
    }
}

fn query(levels: usize) -> String {
    let mut text = "id".to_owned();
    for level in (0..levels).rev() {
        let field = if level % 2 == 0 { "as" } else { "bs" };
        text = format!("{field}{{{text}}}");
    }
    format!("{{{text}}}")
}

fn execute(query: &str, bounds: ExecutionLimits, fetch: &impl Fetch) -> Executed {
    let supergraph = Arc::new(Supergraph::parse(SDL).unwrap());
    let options = OperationOptions {
        bounds,
        introspection: true,
        introspection_max_depth: false,
        ..OperationOptions::default()
    };
    let operations = Operations::new(Arc::clone(&supergraph), options);
    let prepared = operations.prepare(query, None).unwrap();
    let variables = prepared.coerce(None).unwrap();
    // Errors of subgraphs are hidden, but errors about limits are not.
    let policies = ErrorPolicies::new(&supergraph, |_| ErrorPolicy::Redact);
    let mut future = pin!(prepared.execute(&variables, fetch, &policies));
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(executed) = future.as_mut().poll(&mut context) {
            return executed;
        }
    }
}

fn codes(executed: &Executed) -> Vec<String> {
    let errors: Vec<Value> = serde_json::from_slice(executed.errors().unwrap_or(b"[]")).unwrap();
    let code = |error: &Value| {
        error["extensions"]["code"]
            .as_str()
            .unwrap_or("")
            .to_owned()
    };
    errors.iter().map(code).collect()
}

fn small() -> ExecutionLimits {
    ExecutionLimits {
        response_bytes: 1 << 20,
        ..ExecutionLimits::default()
    }
}

#[test]
fn a_short_query_that_means_a_power_of_the_answers_is_refused() {
    let subgraphs = Subgraphs::new(10);
    let executed = execute(&query(8), small(), &subgraphs);
    assert_eq!(executed.data(), b"null");
    assert_eq!(codes(&executed), ["RESPONSE_TOO_LARGE"]);
    assert!(executed.is_cut());
    let body = String::from_utf8_lossy(executed.body());
    assert!(body.contains("larger than 1048576 bytes"), "{body}");
    // Each entity is requested once, even if it occurs at many places. Otherwise, the search for entities
    // would take as long as writing the response.
    assert!(subgraphs.asked.borrow().iter().all(|count| *count <= 10));
}

#[test]
fn levels_of_the_plan_cost_what_was_received_and_not_its_power() {
    // 10^24 places. Work for each place would never end.
    let subgraphs = Subgraphs::new(10);
    let executed = execute(&query(24), small(), &subgraphs);
    assert_eq!(codes(&executed), ["RESPONSE_TOO_LARGE"]);
    let mut failing = Subgraphs::new(10);
    failing.fails = true;
    let executed = execute(&query(24), small(), &failing);
    assert!(codes(&executed).contains(&"RESPONSE_TOO_LARGE".to_owned()));
    let body = String::from_utf8_lossy(executed.body());
    assert!(body.contains("at least "), "{}", &body[body.len() - 200..]);
}

#[test]
fn errors_that_are_left_out_are_counted_wherever_they_belong() {
    // Errors for entities without a request, so that no place waits for them.
    struct Complaining;
    impl Fetch for Complaining {
        async fn fetch(&self, request: SubgraphRequest<'_>) -> SubgraphAnswer {
            if request.name == "a" {
                let data = r#"{"data":{"as":[{"__typename":"A","id":"1","bs":[{"__typename":"B","id":"1"}]}]}}"#;
                return SubgraphAnswer::from_body(data.to_owned());
            }
            let error = |index| json!({"message": "no", "path": ["_entities", index]});
            let errors: Vec<Value> = (1..=6_000).map(error).collect();
            let answer = json!({"data": {"_entities": [null]}, "errors": errors});
            SubgraphAnswer::from_body(answer.to_string())
        }
    }
    let executed = execute(&query(3), ExecutionLimits::default(), &Complaining);
    let errors: Vec<Value> = serde_json::from_slice(executed.errors().unwrap()).unwrap();
    assert_eq!(errors.len(), 5_001);
    assert_eq!(errors[5_000]["message"], "1000 more errors are left out");
}

#[test]
fn a_response_that_will_be_too_large_is_known_before_it_is_written() {
    let subgraphs = Subgraphs::new(10);
    let executed = execute(&query(16), ExecutionLimits::default(), &subgraphs);
    assert_eq!(codes(&executed), ["RESPONSE_TOO_LARGE"]);
    // 64 MiB of output would take hundreds of turns.
    assert!(subgraphs.pauses.get() < 10, "{}", subgraphs.pauses.get());
}

#[test]
fn the_measure_of_a_response_is_its_size() {
    let size = execute(&query(6), ExecutionLimits::default(), &Subgraphs::new(10))
        .data()
        .len();
    assert!(size > 10_000_000, "as large that it is measured: {size}");
    for (response_bytes, count) in [(size, 0), (size - 1, 1)] {
        let bounds = ExecutionLimits {
            response_bytes,
            ..ExecutionLimits::default()
        };
        let subgraphs = Subgraphs::new(10);
        let executed = execute(&query(6), bounds, &subgraphs);
        assert_eq!(executed.error_count(), count, "{response_bytes} of {size}");
        // The measurement refuses the response long before the last byte.
        assert_eq!(subgraphs.pauses.get() < 10, count == 1);
    }
}

#[test]
fn what_is_within_the_bounds_is_answered_whole() {
    let subgraphs = Subgraphs::new(10);
    let executed = execute(&query(4), small(), &subgraphs);
    assert_eq!(executed.error_count(), 0);
    assert!(!executed.is_cut());
    let level = |key: &str, inner: &Value| json!({ key: vec![inner; 10] });
    let leaves: Vec<Value> = (0..10).map(|id| json!({"id": id.to_string()})).collect();
    let mut expected = json!({ "bs": leaves });
    for key in ["as", "bs", "as"] {
        expected = level(key, &expected);
    }
    let data: Value = serde_json::from_slice(executed.data()).unwrap();
    assert_eq!(data, expected);
}

#[test]
fn other_requests_go_on_while_a_large_response_is_written() {
    let subgraphs = Subgraphs::new(10);
    let executed = execute(&query(5), ExecutionLimits::default(), &subgraphs);
    assert_eq!(executed.error_count(), 0);
    // 111,110 members and 111,110 items. A pause comes after 32,768 of both together, at the earliest.
    assert!(
        (4..=7).contains(&subgraphs.pauses.get()),
        "{}",
        subgraphs.pauses.get()
    );
    let text = String::from_utf8_lossy(executed.data());
    let leaves: Vec<String> = (0..10).map(|id| format!("{{\"id\":\"{id}\"}}")).collect();
    let mut expected = leaves.join(",");
    for (level, key) in ["as", "bs", "as", "bs", "as"].into_iter().enumerate() {
        expected = format!("{{\"{key}\":[{expected}]}}");
        if level < 4 {
            expected = vec![expected; 10].join(",");
        }
    }
    assert!(
        text == expected,
        "what is written in turns is not what is written at once"
    );
}

/// One response for every request.
struct Answer(String);

impl Fetch for Answer {
    async fn fetch(&self, _: SubgraphRequest<'_>) -> SubgraphAnswer {
        SubgraphAnswer::from_body(self.0.clone())
    }
}

#[test]
fn a_null_takes_back_what_was_written_before_a_pause() {
    // More items than one turn writes. The last item lacks the member that must not be null.
    let mut items = vec![r#"{"id":"1","must":1}"#; 30_000];
    items.push(r#"{"id":"2"}"#);
    let answer = Answer(format!(r#"{{"data":{{"as":[{}]}}}}"#, items.join(",")));
    let executed = execute("{ as { id must } }", ExecutionLimits::default(), &answer);
    let text = String::from_utf8_lossy(executed.data());
    assert!(text.ends_with(r#",{"id":"1","must":1},null]}"#));
    assert_eq!(executed.error_count(), 1);
}

#[test]
fn what_is_written_and_taken_back_counts() {
    // Each item is null after nearly all of it was written. Together the items are 4 MB.
    let inner = vec![r#"{"id":"1"}"#; 4_000].join(",");
    let item = format!(r#"{{"bs":[{inner}]}}"#);
    let answer = Answer(format!(
        r#"{{"data":{{"as":[{}]}}}}"#,
        vec![item; 100].join(",")
    ));
    let executed = execute("{ as { bs { id } must } }", small(), &answer);
    assert_eq!(codes(&executed), ["RESPONSE_TOO_LARGE"]);
}

#[test]
fn answers_that_take_too_much_memory_are_refused() {
    let bounds = ExecutionLimits {
        answers_bytes: 100_000,
        ..ExecutionLimits::default()
    };
    // 16 KB of text, with 40 bytes of memory for each value.
    let dense = Answer(format!(
        r#"{{"data":{{"as":[{}]}}}}"#,
        vec!["null"; 3_000].join(",")
    ));
    let executed = execute("{ as { id } }", bounds, &dense);
    assert_eq!(codes(&executed), ["SUBGRAPH_ANSWERS_TOO_LARGE"]);
    assert_eq!(executed.data(), br#"{"as":null}"#);
    let executed = execute("{ as { id } }", ExecutionLimits::default(), &dense);
    assert_eq!(executed.error_count(), 0);
}

#[test]
fn a_subgraph_is_not_asked_about_too_many_entities() {
    let bounds = ExecutionLimits {
        fetch_entities: 9,
        ..ExecutionLimits::default()
    };
    let subgraphs = Subgraphs::new(10);
    let executed = execute(&query(3), bounds, &subgraphs);
    assert_eq!(codes(&executed), ["TOO_MANY_ENTITIES"]);
    assert_eq!(*subgraphs.asked.borrow(), [0]);
    let body = String::from_utf8_lossy(executed.body());
    assert!(body.contains(r#""path":["as","@","bs","@"]"#), "{body}");
    let executed = execute(&query(3), ExecutionLimits::default(), &Subgraphs::new(10));
    assert_eq!(executed.error_count(), 0);
}

/// An introspection query with this many levels, and its response. The type `T` has eight fields, all of type
/// `T`.
fn nested_introspection(levels: usize) -> (String, impl Fn() -> String) {
    let mut asked = "name".to_owned();
    for _ in 0..levels {
        asked = format!("name fields {{ name type {{ {asked} }} }}");
    }
    let query =
        format!("{{ before: __typename __type(name: \"T\") {{ {asked} }} after: __typename }}");
    let answer = move || {
        let mut told = r#"{"name":"T"}"#.to_owned();
        for _ in 0..levels {
            let field = |index| format!(r#"{{"name":"f{index}","type":{told}}}"#);
            let fields: Vec<String> = (0..8).map(field).collect();
            told = format!(r#"{{"name":"T","fields":[{}]}}"#, fields.join(","));
        }
        format!(r#"{{"before":"Query","__type":{told},"after":"Query"}}"#)
    };
    (query, answer)
}

#[test]
fn other_requests_go_on_while_a_large_schema_is_told() {
    let subgraphs = Subgraphs::new(1);
    let (query, expected) = nested_introspection(5);
    let executed = execute(&query, ExecutionLimits::default(), &subgraphs);
    assert_eq!(executed.error_count(), 0);
    // 37,449 objects of each kind, with two members each.
    let pauses = subgraphs.pauses.get();
    assert!((4..=9).contains(&pauses), "{pauses}");
    assert!(
        executed.data() == expected().as_bytes(),
        "what is told in turns is not what is told at once"
    );
}

#[test]
fn a_schema_is_told_up_to_the_size_of_a_response_and_no_further() {
    let subgraphs = Subgraphs::new(1);
    // The complete response would have half a gigabyte.
    let (query, _) = nested_introspection(8);
    let executed = execute(&query, small(), &subgraphs);
    assert_eq!(executed.data(), b"null");
    assert_eq!(codes(&executed), ["RESPONSE_TOO_LARGE"]);
    assert!(executed.is_cut());
    // The size is checked at the end of the turn that exceeds it.
    let pauses = subgraphs.pauses.get();
    assert!((1..=8).contains(&pauses), "{pauses}");
}

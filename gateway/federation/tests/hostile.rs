//! Hostile documents and responses. The gateway accepts each or refuses it with a code, in bounded time and
//! memory. It never panics.

#![cfg(test)]

use std::cell::RefCell;
use std::fmt::Write as _;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use gateway_federation::{
    ErrorPolicies, ErrorPolicy, Executed, Fetch, OperationLimits, OperationOptions, Operations,
    SubgraphAnswer, SubgraphRequest, Supergraph,
};
use proptest::prelude::*;

fn operations(options: OperationOptions) -> Operations {
    let supergraph = Supergraph::parse(include_str!("supergraph.graphql")).unwrap();
    Operations::new(Arc::new(supergraph), options)
}

/// The planning deadline. A busy machine can reach it, and this is also an acceptable result.
const OUT_OF_TIME: &str = "QUERY_PLANNING_FAILED";

/// The code of the refusal. `None` if the operation is accepted.
fn code(operations: &Operations, query: &str) -> Option<String> {
    let refusal = operations.prepare(query, None).err()?;
    let code = refusal.errors[0].code().unwrap_or_default();
    assert!(
        !refusal.internal || code == OUT_OF_TIME,
        "{:?} of {}",
        refusal.errors,
        query.get(..200).unwrap_or(query)
    );
    Some(code.to_owned())
}

/// Joins `count` parts, each made from its number.
fn many(count: usize, part: impl Fn(usize) -> String) -> String {
    (0..count).map(part).collect()
}

#[test]
fn what_is_said_of_a_wrong_document_does_not_repeat_long_names() {
    let operations = operations(OperationOptions::default());
    let told = |query: &str| {
        let refusal = operations.prepare(query, None).unwrap_err();
        let messages: Vec<String> = refusal.errors.iter().map(|it| it.message.clone()).collect();
        messages
    };
    let unused = |count| many(count, |index| format!("$v{index}: Int "));
    // The message about each variable contains the name of the operation.
    let name = "n".repeat(1_000_000);
    let messages = told(&format!("query {name}({}) {{ __typename }}", unused(100)));
    let bytes: usize = messages.iter().map(String::len).sum();
    assert!(bytes < 1_000_000, "{bytes}");
    assert!(
        messages[0].contains("too many variables"),
        "{}",
        messages[0]
    );
    // All operations that spread a fragment have its variables.
    let spreads = many(600, |index| format!("query q{index} {{ ...F }} "));
    let used = many(900, |index| {
        format!("a{index}: place(id: $v{index}) {{ id }} ")
    });
    let messages = told(&format!("{spreads} fragment F on Query {{ {used} }}"));
    assert!(
        messages[0].contains("too many variables"),
        "{}",
        messages[0]
    );
    // The message about each conflicting pair contains the response key.
    let key = "k".repeat(700);
    let pairs = many(300, |index| format!("{key}: place(id: {index}) {{ id }} "));
    let messages = told(&format!("{{ {pairs} }}"));
    assert!(messages[0].contains("response keys"), "{}", messages[0]);
    // A long name that occurs once is reported in full, and can be used.
    let messages = told(&format!(
        "query {}($v: Int) {{ __typename }}",
        &name[..10_000]
    ));
    assert!(
        messages[0].contains("is never used in operation \"nnn"),
        "{}",
        &messages[0][..80]
    );
    // The longest name within the limit on selections.
    let longest = format!("query {} {{ __typename }}", &name[..200_000]);
    assert!(operations.prepare(&longest, None).is_ok());
    let many_variables = format!("query q({}) {{ __typename }}", unused(1_000));
    let messages = told(&many_variables);
    assert!(
        messages[0].contains("is never used in operation \"q\""),
        "{}",
        messages[0]
    );
}

#[test]
fn documents_that_are_too_large_or_too_deep_are_refused_by_their_size() {
    let operations = operations(OperationOptions::default());
    let deep = |open: &str, close: &str, count: usize| {
        format!(
            "{{ place(id: 1) {{ {} id {} }} }}",
            open.repeat(count),
            close.repeat(count)
        )
    };
    let list = format!(
        "{{ place(id: {}1{}) {{ id }} }}",
        "[".repeat(5_000),
        "]".repeat(5_000)
    );
    let object = format!(
        "{{ places(filter: {}1{}) {{ id }} }}",
        "{a:".repeat(3_000),
        "}".repeat(3_000)
    );
    let kind = format!(
        "query Q($x: {}Int{}) {{ place(id: 1) {{ id }} }}",
        "[".repeat(5_000),
        "]".repeat(5_000)
    );
    for query in [
        deep("near {", "}", 5_000),
        deep("... {", "}", 5_000),
        deep("... on Place {", "}", 3_000),
        deep("... @include(if: true) {", "}", 1_500),
        format!("{{ {} }}", many(20_000, |_| "__typename ".to_owned())),
        format!(
            "{{ {} }}",
            many(20_000, |index| format!("a{index}: __typename "))
        ),
        format!("{{ {} }}", "...F ".repeat(20_000)),
        format!(
            "query Q({}) {{ __typename }}",
            many(20_000, |index| format!("$v{index}: Int "))
        ),
        format!("{{ __typename {} }}", "@skip(if: false) ".repeat(5_000)),
        // Validation would compare each pair of equal response keys.
        format!("{{ place(id: 1) {{ {} }} }}", "name ".repeat(10_000)),
        format!("{{ place(id: 1) {{ {} }} }}", "near { id } ".repeat(3_000)),
        format!(
            "{{ places {{ {} }} }}",
            "... on Place { name } ".repeat(2_500)
        ),
        list,
        object,
        kind,
        "{".repeat(1_000_000),
        "(".repeat(1_000_000),
        "\"".repeat(1_000_001),
        format!("{{ a(x: \"\"\"{}", "\"\"".repeat(500_000)),
        "#".repeat(1_000_000),
        "\u{feff}".repeat(300_000),
        String::new(),
        "\0".to_owned(),
    ] {
        let code = code(&operations, &query);
        assert!(
            matches!(
                code.as_deref(),
                Some("PARSING_ERROR" | "GRAPHQL_VALIDATION_FAILED")
            ),
            "{code:?} for {}",
            query.get(..80).unwrap_or(&query)
        );
    }
}

/// Pairs of fields at each level, with selections that validation must compare.
fn nested_conflicts() -> String {
    let mut query = "{ place(id: 1) { ...F0 ...F0 near { ...F0 } near { ...F0 } } }".to_owned();
    for index in 0..12 {
        let next = index + 1;
        write!(
            query,
            " fragment F{index} on Place {{ id near {{ ...F{next} }} near {{ ...F{next} name }} }}"
        )
        .unwrap();
    }
    query.push_str(" fragment F12 on Place { id }");
    query
}

/// Each document is within the limits of the parser, and as large as these limits allow.
#[test]
fn documents_within_the_limits_that_mean_much_come_to_an_end() {
    let operations = operations(OperationOptions::default());
    for query in [
        format!("{{ place(id: 1) {{ {} }} }}", "name ".repeat(300)),
        format!(
            "{{ places {{ {} }} }}",
            many(500, |index| format!("a{index}: name "))
        ),
        format!(
            "{{ places {{ {} }} }}",
            many(150, |index| format!("a{index}: rating "))
        ),
        format!(
            "{{ {} }}",
            many(30, |index| format!(
                "a{index}: place(id: {index}) {{ name rating }} "
            ))
        ),
        format!(
            "{{ found {{ {} }} }}",
            "... on Place { name rating } ".repeat(100)
        ),
        format!(
            "{{ found {{ {} }} }}",
            many(100, |index| format!("... on Named {{ a{index}: name }} "))
        ),
        format!(
            "query Q({}) {{ {} }}",
            many(50, |index| format!("$v{index}: ID! ")),
            many(50, |index| format!(
                "a{index}: place(id: $v{index}) {{ name }} "
            ))
        ),
        format!(
            "query Q({}) {{ place(id: 1) {{ {} }} }}",
            many(8, |index| format!("$v{index}: Boolean! ")),
            many(8, |index| format!(
                "... @include(if: $v{index}) {{ rating name }} "
            ))
        ),
        format!(
            "{{ {} }} {}",
            many(200, |index| format!("...F{index} ")),
            many(200, |index| format!(
                "fragment F{index} on Query {{ a{index}: __typename }} "
            ))
        ),
        nested_conflicts(),
        format!("{{ place(id: \"{}\") {{ id }} }}", "x".repeat(1_000_000)),
        format!(
            "{{ place(id: \"{}\") {{ id }} }}",
            "\\u0041".repeat(200_000)
        ),
    ] {
        let code = code(&operations, &query);
        assert!(
            matches!(
                code.as_deref(),
                None | Some("PARSING_ERROR" | "GRAPHQL_VALIDATION_FAILED" | OUT_OF_TIME)
            ),
            "{code:?} for {}",
            query.get(..80).unwrap_or(&query)
        );
    }
}

#[test]
fn configured_limits_refuse_before_planning() {
    let operations = operations(OperationOptions {
        limits: OperationLimits {
            max_aliases: Some(3),
            max_root_fields: Some(4),
            ..OperationLimits::default()
        },
        ..OperationOptions::default()
    });
    let aliases = format!(
        "{{ place(id: 1) {{ {} }} }}",
        many(1_000, |index| format!("a{index}: name "))
    );
    assert_eq!(
        code(&operations, &aliases).as_deref(),
        Some("MAX_ALIASES_LIMIT")
    );
    let fields = format!(
        "{{ {} }}",
        many(1_000, |index| format!("a{index}: place(id: 1) {{ id }} "))
    );
    assert!(code(&operations, &fields).is_some_and(|code| code.starts_with("MAX_")));
}

struct Answers(RefCell<Vec<String>>);

impl Fetch for Answers {
    async fn fetch(&self, _: SubgraphRequest<'_>) -> SubgraphAnswer {
        let mut answers = self.0.borrow_mut();
        let next = if answers.is_empty() {
            String::new()
        } else {
            answers.remove(0)
        };
        SubgraphAnswer::from_body(next)
    }
}

fn execute(query: &str, answers: &[&str]) -> Executed {
    let operations = operations(OperationOptions::default());
    let prepared = operations.prepare(query, None).unwrap();
    let variables = prepared.coerce(None).unwrap();
    let policies = ErrorPolicies::new(operations.supergraph(), |_| ErrorPolicy::Include);
    let answers = answers.iter().map(|it| (*it).to_owned()).collect();
    let fetch = Answers(RefCell::new(answers));
    let mut future = Box::pin(prepared.execute(&variables, &fetch, &policies));
    loop {
        let mut context = Context::from_waker(Waker::noop());
        if let Poll::Ready(executed) = future.as_mut().poll(&mut context) {
            return executed;
        }
    }
}

const LIST: &str = "{ places { id rating } }";

fn places(count: usize) -> String {
    let places = vec![r#"{"__typename":"Place","id":"1"}"#; count].join(",");
    format!(r#"{{"data":{{"places":[{places}]}}}}"#)
}

#[test]
fn an_error_at_very_many_places_takes_bounded_memory() {
    let error = r#"{"message":"no","path":["_entities",0,"rating"]}"#;
    let errors = vec![error; 100].join(",");
    let answer = format!(r#"{{"data":{{"_entities":[{{"rating":null}}]}},"errors":[{errors}]}}"#);
    let executed = execute(LIST, &[&places(1_000), &answer]);
    assert_eq!(executed.error_count(), 5_001);
    let body = String::from_utf8_lossy(executed.body());
    assert!(body.contains("95000 more errors are left out"));

    let long = format!(
        r#"{{"data":null,"errors":[{{"message":"{}","path":["_entities",0]}}]}}"#,
        "x".repeat(1 << 20)
    );
    let executed = execute(LIST, &[&places(1_000), &long]);
    assert!(executed.body().len() < 20 << 20);
    assert_eq!(executed.error_count(), 16);
}

#[test]
fn very_many_wrong_values_take_bounded_memory() {
    let wrong = vec![r#"{"id":{},"__typename":"Place"}"#; 20_000].join(",");
    let answer = format!(r#"{{"data":{{"places":[{wrong}]}}}}"#);
    let executed = execute("{ places { id } }", &[&answer]);
    assert_eq!(executed.data(), br#"{"places":null}"#);
    let wrong = vec!["[]"; 20_000].join(",");
    let answer = format!(r#"{{"data":{{"place":{{"near":[{wrong}]}}}}}}"#);
    let executed = execute("{ place(id: 1) { near { id } } }", &[&answer]);
    assert_eq!(executed.error_count(), 5_001);
}

#[test]
fn answers_that_do_not_fit_the_request_are_errors_or_nulls() {
    let nested = format!(
        r#"{{"data":{}{}}}"#,
        r#"{"places":["#.repeat(200_000),
        "]}".repeat(200_000)
    );
    for answer in [
        "",
        " ",
        "null",
        "[]",
        "7",
        "\"x\"",
        "{}",
        "{",
        "{\"data\":",
        "nul",
        "\u{feff}{}",
        r#"{"data":[]}"#,
        r#"{"data":7}"#,
        r#"{"errors":7}"#,
        r#"{"errors":[]}"#,
        r#"{"errors":[7,null,"x",{},{"message":7},{"path":7},{"path":[-1,1.5,{}]},{"locations":[{}]}]}"#,
        r#"{"data":{"places":7}}"#,
        r#"{"data":{"places":{}}}"#,
        r#"{"data":{"places":[7]}}"#,
        r#"{"data":{"places":[[]]}}"#,
        r#"{"data":{"places":[null]}}"#,
        &nested,
    ] {
        let executed = execute(LIST, &[answer]);
        let data = String::from_utf8_lossy(executed.data());
        assert!(
            matches!(&*data, "null" | r#"{"places":null}"# | r#"{"places":[]}"#),
            "{data} for {}",
            answer.get(..60).unwrap_or(answer)
        );
    }
    for answer in [
        "",
        "{}",
        r#"{"data":null}"#,
        r#"{"data":{}}"#,
        r#"{"data":{"_entities":null}}"#,
        r#"{"data":{"_entities":[]}}"#,
        r#"{"data":{"_entities":{}}}"#,
        r#"{"data":{"_entities":[7]}}"#,
        r#"{"data":{"_entities":[[]]}}"#,
        r#"{"data":{"_entities":[null,null,null]}}"#,
        r#"{"data":{"_entities":[]},"errors":[{"message":"x","path":["_entities",99999999999]}]}"#,
        r#"{"data":{"_entities":[]},"errors":[{"message":"x","path":["_entities"]}]}"#,
        r#"{"data":{"_entities":[]},"errors":[{"message":"x","path":["other",0]}]}"#,
    ] {
        let executed = execute(LIST, &[&places(2), answer]);
        assert_eq!(
            executed.data(),
            br#"{"places":[{"id":"1","rating":null},{"id":"1","rating":null}]}"#,
            "{answer}"
        );
    }
}

const WORDS: [&str; 40] = [
    "{",
    "}",
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    ":",
    "!",
    "$",
    "@",
    "...",
    "=",
    "|",
    "&",
    "on",
    "query",
    "mutation",
    "subscription",
    "fragment",
    "F",
    "Query",
    "Place",
    "Found",
    "places",
    "place",
    "found",
    "id",
    "name",
    "near",
    "rating",
    "__typename",
    "__schema",
    "\"x\"",
    "1",
    "-1.5e3",
    "null",
    "true",
    "@include(if: $v)",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn no_words_make_it_panic(words in prop::collection::vec(0..WORDS.len(), 0..40)) {
        let words: Vec<&str> = words.into_iter().map(|index| WORDS[index]).collect();
        let _ = code(&operations(OperationOptions::default()), &words.join(" "));
    }

    #[test]
    fn no_text_makes_it_panic(text in "\\PC{0,80}") {
        let _ = code(&operations(OperationOptions::default()), &text);
    }
}

#[test]
fn errors_that_cannot_be_read_are_reported_and_not_lost() {
    let deep = format!("{}1{}", "[".repeat(200), "]".repeat(200));
    for extension in [r#""\ud800""#, "1e999", &deep] {
        let answer = format!(
            r#"{{"data":null,"errors":[{{"message":"no","extensions":{{"x":{extension}}}}}]}}"#
        );
        let executed = execute("{ place(id: 1) { id } }", &[&answer]);
        let body = String::from_utf8_lossy(executed.body());
        assert!(
            body.contains("SUBREQUEST_MALFORMED_RESPONSE"),
            "{extension}: {body}"
        );
    }
}

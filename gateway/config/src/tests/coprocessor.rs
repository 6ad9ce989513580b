//! Tests the stages of the coprocessor and their conditions.

use insta::assert_snapshot;

use super::{config, mistakes};
use crate::{
    BodyParts, Condition, ContextParts, Operand, Selector, SelectorSource, ServiceAddress,
};

#[test]
fn a_stage_is_on_as_soon_as_a_key_differs_from_its_default() {
    let config = config(
        "coprocessor:\n  url: http://localhost:1\n  router: {request: {headers: true}, response: {headers: false}}\n  supergraph: {request: {}, response: {body: {errors: true}}}\n  execution: {response: {condition: {exists: {response_header: x-a}}}}\n  subgraph: {all: {request: {url: 'unix:///s?path=/p', context: {selective: [a]}}}}\n",
    );
    let coprocessor = config.coprocessor.unwrap();
    assert!(coprocessor.router.request.unwrap().headers);
    assert!(coprocessor.router.response.is_none());
    assert!(coprocessor.supergraph.request.is_none());
    let body = coprocessor.supergraph.response.unwrap().body;
    let only_errors = BodyParts::Selected {
        data: false,
        errors: true,
        extensions: false,
    };
    assert_eq!(body, only_errors);
    assert!(coprocessor.execution.response.unwrap().condition.is_some());
    let stage = coprocessor.subgraph.request.unwrap();
    assert_eq!(stage.context, ContextParts::Selective(vec!["a".to_owned()]));
    let unix = ServiceAddress::Unix {
        socket: "/s".into(),
        path: "/p".to_owned(),
    };
    assert_eq!(stage.url, Some(unix));
}

#[test]
fn a_switch_of_another_stage_is_an_unknown_key() {
    assert_snapshot!(mistakes("coprocessor:\n  url: http://localhost:1\n  router: {request: {service_name: true}}\n  subgraph: {planets: {request: {headers: true}}}\n"), @r"
    error: unknown key `service_name`
     --> router.yaml:3:22
      |
    3 |   router: {request: {service_name: true}}
      |                      ^^^^^^^^^^^^
      |
      = help: the keys here are body, condition, context, headers, method, path, sdl, url

    error: unknown key `planets`
     --> router.yaml:4:14
      |
    4 |   subgraph: {planets: {request: {headers: true}}}
      |              ^^^^^^^
      |
      = help: the keys here are all
    ");
}

#[test]
fn conditions_nest_and_name_their_selectors() {
    let text = "coprocessor: {url: 'http://h', router: {request: {condition: {all: [{eq: [{request_header: x-a, default: none}, b]}, {not: {gt: [{env: N}, 3]}}, true]}}}}";
    let condition = config(text)
        .coprocessor
        .unwrap()
        .router
        .request
        .unwrap()
        .condition;
    let header = Selector {
        source: SelectorSource::RequestHeader(http::HeaderName::from_static("x-a")),
        default: Some("none".into()),
        redact: None,
    };
    let environment = Selector {
        source: SelectorSource::Environment("N".to_owned()),
        default: None,
        redact: None,
    };
    let expected = Condition::All(vec![
        Condition::Equal(Operand::Selector(header), Operand::Literal("b".into())),
        Condition::Not(Box::new(Condition::Greater(
            Operand::Selector(environment),
            Operand::Literal(3.into()),
        ))),
        Condition::Always(true),
    ]);
    assert_eq!(condition, Some(expected));
}

#[test]
fn wrong_conditions_say_what_is_expected() {
    assert_snapshot!(mistakes("coprocessor:\n  url: http://h\n  router:\n    request:\n      condition: {eq: [{requst_header: x-a}, b]}\n    response:\n      condition: {eq: [1], exists: {env: X}}\n"), @"
    error: unknown key `requst_header`
     --> router.yaml:5:25
      |
    5 |       condition: {eq: [{requst_header: x-a}, b]}
      |                         ^^^^^^^^^^^^^
      |
      = help: did you mean `request_header`?

    error: expected exactly one of `all` or `any` or `eq` or `exists` or `gt` or `lt` or `not`, found `eq` and `exists`
     --> router.yaml:7:7
      |
    7 |       condition: {eq: [1], exists: {env: X}}
      |       ^^^^^^^^^

    error: expected a list of 2 values, found 1
     --> router.yaml:7:23
      |
    7 |       condition: {eq: [1], exists: {env: X}}
      |                       ^^^
    ");
    assert_snapshot!(mistakes("coprocessor:\n  url: http://h\n  router:\n    request:\n      condition: {exists: {response_header: x-a}}\n"), @r"
    error: the condition of a request stage cannot look at the response
     --> router.yaml:5:7
      |
    5 |       condition: {exists: {response_header: x-a}}
      |       ^^^^^^^^^
    ");
}

#[test]
fn a_condition_cannot_read_messages_that_its_stage_lacks() {
    for (stages, message) in [
        (
            "router: {request: {condition: {exists: {query: string}}}}",
            "the router does not know",
        ),
        (
            "router: {request: {condition: {exists: {query: depth}}}}",
            "known only after planning",
        ),
        (
            "supergraph: {request: {condition: {gt: [{query: root_fields}, 3]}}}",
            "known only after planning",
        ),
        (
            "router: {request: {condition: {exists: {response_data: '$.a'}}}}",
            "cannot look at the response",
        ),
        (
            "supergraph: {request: {condition: {exists: {subgraph_name: true}}}}",
            "only the subgraph stage",
        ),
        (
            "execution: {response: {condition: {exists: {subgraph_query: string}}}}",
            "only the subgraph stage",
        ),
        (
            "subgraph: {all: {response: {condition: {exists: {subgraph_query: string}}}}}",
            "does not have the request",
        ),
        (
            "router: {response: {condition: {exists: {error: reason}}}}",
            "conditions do not support it",
        ),
    ] {
        let text = format!("coprocessor: {{url: 'http://h', {stages}}}\n");
        let mistakes = mistakes(&text);
        assert!(mistakes.contains(message), "{stages}: {mistakes}");
    }
}

#[test]
fn conditions_read_the_size_of_an_operation_after_planning() {
    for stages in [
        "router: {response: {condition: IT}}",
        "supergraph: {response: {condition: IT}}",
        "execution: {request: {condition: IT}, response: {condition: IT}}",
        "subgraph: {all: {request: {condition: IT}, response: {condition: IT}}}",
    ] {
        for size in ["aliases", "depth", "height", "root_fields"] {
            let condition = format!("{{gt: [{{query: {size}}}, 3]}}");
            let stages = stages.replace("IT", &condition);
            let text = format!("coprocessor: {{url: 'http://h', {stages}}}\n");
            assert_eq!(mistakes(&text), "none", "{stages}");
        }
    }
}

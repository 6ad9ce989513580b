//! Claims about scenarios, in labs and in files of their own.

use std::path::Path;
use std::time::Duration;

use lab::Scenario;
use model::{CaptureFrom, StatusRule};

use crate::{Folder, check, lab};

const STEPS: &str = "
  - name: log in
    path: /login
    json: {user: '{{user}}'}
    capture:
      token: {json: /token}
      id: {header: Location, regex: '/users/([0-9]+)'}
    expect: {status: 201}
  - name: list
    pause: 500ms
    path: /users/{{id}}?page={{page}}
    headers: {Authorization: 'Bearer {{token}}'}
";

fn scenario(text: &str) -> Result<Scenario, String> {
    let folder = Folder::default()
        .file("s/flow.yaml", text)
        .file("s/users.csv", "user\nann\nbo\n");
    lab::scenario(Path::new("s/flow.yaml"), &folder).map_err(|mistakes| mistakes.render(false))
}

fn file(steps: &str) -> String {
    format!("data: {{file: users.csv, ranges: {{page: 1..9}}}}\nheaders: {{X-A: 1}}\nsteps:{steps}")
}

#[test]
fn a_file_of_its_own_says_what_follows_what() {
    let scenario = scenario(&file(STEPS)).unwrap();
    let [first, second] = &scenario.requests[..] else {
        panic!("{scenario:?}");
    };
    assert_eq!(
        String::from_utf8_lossy(&first.body),
        r#"{"user":"{{user}}"}"#
    );
    assert_eq!(
        first.expect.as_ref().map(|expect| expect.answer.status),
        Some(StatusRule::Exactly(201))
    );
    assert_eq!(second.path, "/users/{{id}}?page={{page}}");
    assert!(
        second
            .headers
            .contains(&("Authorization".to_owned(), "Bearer {{token}}".to_owned()))
    );
    assert!(second.headers.contains(&("X-A".to_owned(), "1".to_owned())));
    assert_eq!(scenario.steps[1].pause, Duration::from_millis(500));
    let places: Vec<&CaptureFrom> = scenario.steps[0]
        .captures
        .iter()
        .map(|it| &it.from)
        .collect();
    assert_eq!(
        places,
        [
            &CaptureFrom::Json("/token".to_owned()),
            &CaptureFrom::Header("Location".to_owned())
        ]
    );
}

#[test]
fn a_lab_has_the_same_steps_with_its_settings() {
    let steps = "  scenario:\n    - {path: '/{{server.stack}}', capture: {id: {json: /id}}}\n    - {name: next, path: '/{{id}}'}\n";
    let lab = lab(&[("  duration: 1s\n", &format!("  duration: 1s\n{steps}"))]);
    let paths = |requests: &[lab::RequestTemplate]| -> Vec<String> {
        requests
            .iter()
            .map(|request| request.path.clone())
            .collect()
    };
    assert_eq!(paths(&lab.requests), ["/a", "/{{id}}"]);
    assert_eq!(paths(&lab.variants[0].requests), ["/b", "/{{id}}"]);
    assert_eq!(lab.steps.len(), 2);
}

#[test]
fn a_captured_value_in_json_is_escaped_and_keeps_its_kind_if_the_lab_says_so() {
    let steps = "
  - {path: /, capture: {id: {json: /id}}}
  - name: json
    path: /{{encoded:id}}
    json: {a: '{{json:id}}', b: '{{id}}', c: 'no {{id}}', d: ['{{page}}', '{{user}}']}
  - {name: query, path: /, query: '{ a(b: \"{{id}}\") }', variables: {v: '{{json:id}}'}}
";
    let text = format!("data: {{file: users.csv, ranges: {{page: 1..9}}}}\nsteps:{steps}");
    let folder = Folder::default()
        .file("s/flow.yaml", &text)
        .file("s/users.csv", "user\nann\nb\"o\n");
    let scenario = lab::scenario(Path::new("s/flow.yaml"), &folder).unwrap();
    let body = |index: usize| String::from_utf8_lossy(&scenario.requests[index].body).into_owned();
    assert_eq!(
        body(1),
        r#"{"a":{{json:id}},"b":"{{escaped:id}}","c":"no {{escaped:id}}","d":[{{page}},"{{escaped:user}}"]}"#
    );
    assert_eq!(
        body(2),
        r#"{"query":"{ a(b: \"{{escaped:id}}\") }","variables":{"v":{{json:id}}}}"#
    );
}

#[test]
fn a_raw_value_can_be_a_part_or_the_begin_of_a_path() {
    let text = "steps:
  - {path: /, capture: {to: {header: Location}}}
  - {path: '{{raw:to}}'}
  - {path: '/v1/{{raw:to}}&a={{encoded:to}}'}
";
    let folder = Folder::default().file("s/flow.yaml", text);
    let scenario = lab::scenario(Path::new("s/flow.yaml"), &folder).unwrap();
    let paths: Vec<&str> = scenario
        .requests
        .iter()
        .map(|it| it.path.as_str())
        .collect();
    assert_eq!(
        paths,
        ["/", "{{raw:to}}", "/v1/{{raw:to}}&a={{encoded:to}}"]
    );
}

#[test]
fn mistakes_in_a_scenario_say_where_and_what_to_write() {
    for (steps, words) in [
        (
            "\n  - {path: '/{{id}}', capture: {id: {json: /id}}}",
            &["`{{id}}` is not defined here", "user, page, index"][..],
        ),
        (
            "\n  - {path: '/{{json:user}}'}",
            &[
                "`{{json:user}}` is not a placeholder",
                "the placeholders here are",
            ],
        ),
        (
            "\n  - {path: /, headers: {A: '{{raw:user}}'}}",
            &[
                "`{{raw:user}}` is for paths only",
                "elsewhere, write `{{user}}`",
            ],
        ),
        (
            "\n  - {path: /, json: {a: '{{raw:user}}'}}",
            &["`{{raw:user}}` is for paths only"],
        ),
        (
            "\n  - {path: '{{user}}'}",
            &["is not a path: it must begin with `/`"],
        ),
        (
            "\n  - {path: '{{raw:usr}}'}",
            &["`{{raw:usr}}` is not a placeholder"],
        ),
        (
            "\n  - {path: /, capture: {id: {}}}",
            &["the captured value has no source", "json: /data/id"],
        ),
        (
            "\n  - {path: /, capture: {id: {json: /a, header: B}}}",
            &["`json` and `header` exclude each other"],
        ),
        (
            "\n  - {path: /, capture: {id: {regex: '('}}}",
            &["`(` is not a regular expression"],
        ),
        (
            "\n  - {path: /, capture: {index: {json: /a}}}",
            &["a captured value cannot be named `index`"],
        ),
        ("\n  - {path: /, pause: 5}", &["the unit is missing"]),
        ("\n  - {path: /, weight: 5}", &["unknown key `weight`"]),
        (
            "\n  - {path: /a}\n  - {path: /a}",
            &["two requests are named `/a`"],
        ),
        (" []", &["the list is empty"]),
    ] {
        let found = scenario(&file(steps)).unwrap_err();
        for word in words {
            assert!(found.contains(word), "{steps}: {word}\n{found}");
        }
    }
    let found = scenario("headers: {}\n").unwrap_err();
    assert!(found.contains("the key `steps` is missing"), "{found}");
    let found = scenario("expect: {same-as: baseline}\nsteps: [{path: /}]\n").unwrap_err();
    assert!(
        found.contains("`same-as: baseline` needs a baseline"),
        "{found}"
    );
}

#[test]
fn a_captured_value_needs_a_name_of_its_own() {
    let load = "  duration: 1s\n  data: {ranges: {id: 1..2}}\n  scenario: [{path: /, capture: {id: {json: /id}}}]\n";
    let found = check(&[("  duration: 1s\n", load)]);
    assert!(
        found.contains("`data` already has the name `id`"),
        "{found}"
    );
}

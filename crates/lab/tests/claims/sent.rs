//! Claims about the requests of variants: places, data, factors and groups.

use lab::{Lab, RequestTemplate, Variant};
use proptest::prelude::*;

use crate::{Folder, changed, check, lab};

/// Returns the requests of a variant as one text.
fn sent(variant: &Variant) -> String {
    let show = |request: &RequestTemplate| {
        let headers = request.headers.iter();
        let headers: String = headers
            .map(|(name, value)| format!(" {name}={value}"))
            .collect();
        let body = String::from_utf8_lossy(&request.body).into_owned();
        format!("{} {}{headers} {body}", request.method, request.path)
    };
    let requests: Vec<String> = variant.requests.iter().map(show).collect();
    requests.join("; ").trim_end().to_owned()
}

fn names(lab: &Lab) -> Vec<&str> {
    lab.all().map(|variant| variant.name.as_str()).collect()
}

/// Returns the mistakes of the example lab with this load and these variants, without line breaks.
fn mistakes(load: &str, variants: &str) -> String {
    check(&[
        ("  duration: 1s\n", &format!("  duration: 1s\n{load}")),
        ("  - {name: b, with: {server.stack: b}}", variants),
    ])
}

#[test]
fn settings_and_names_are_filled_into_requests_for_each_variant() {
    let lab = lab(&[
        ("question:", "settings: {size: 1}\nquestion:"),
        (
            "  duration: 1s\n",
            "  duration: 1s\n  path: /{{server.stack}}/{{size}}\n  headers: {X-Who: 'is {{ name }}'}\n",
        ),
        (
            "{name: b, with: {server.stack: b}}",
            "{name: b, with: {server.stack: b, size: 10}}",
        ),
    ]);
    assert_eq!(sent(&lab.baseline), "GET /a/1 X-Who=is a");
    assert_eq!(sent(&lab.variants[0]), "GET /b/10 X-Who=is b");
    assert_eq!(lab.requests, lab.baseline.requests);
}

#[test]
fn a_json_text_that_is_one_place_becomes_a_number_where_its_values_are() {
    let folder = Folder::with_lab(changed(&[
        ("question:", "settings: {n: 3, word: 'a \"b\"', both: 'x1'}\nquestion:"),
        (
            "  duration: 1s\n",
            "  duration: 1s\n  data: rows.csv\n  requests:\n    - json: {n: '{{n}}', s: '{{word}}', t: 'n is {{n}}', row: '{{id}}', who: '{{user}}', i: '{{index}}', r: '{{random:1..9}}'}\n    - {name: q, query: 'query ($n: Int) { a(n: $n) { {{both}} } }', variables: {n: '{{n}}'}}\n",
        ),
    ]))
    .file("labs/rows.csv", "id,user\n1,ann\n2,bo\n");
    let lab = folder
        .parse()
        .unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let bodies: Vec<String> = lab
        .requests
        .iter()
        .map(|request| String::from_utf8(request.body.clone()).unwrap())
        .collect();
    assert_eq!(
        bodies[0],
        r#"{"n":3,"s":"a \"b\"","t":"n is 3","row":{{id}},"who":"{{user}}","i":{{index}},"r":{{random:1..9}}}"#
    );
    assert_eq!(
        bodies[1],
        r#"{"query":"query ($n: Int) { a(n: $n) { x1 } }","variables":{"n":3}}"#
    );
}

#[test]
fn files_hold_places_too() {
    let folder = Folder::with_lab(changed(&[
        ("question:", "settings: {n: 3}\nquestion:"),
        ("  duration: 1s\n", "  duration: 1s\n  requests: q/*\n"),
    ]))
    .file(
        "labs/q/a.json",
        "{\"variables\":{\"n\": {{n}}, \"s\": \"{{name}}\"}}",
    )
    .file("labs/q/b.graphql", "{ a(n: {{n}}) { b } }");
    let lab = folder
        .parse()
        .unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let body = |index: usize| String::from_utf8_lossy(&lab.requests[index].body).into_owned();
    assert_eq!(body(0), r#"{"variables":{"n": 3, "s": "a"}}"#);
    assert_eq!(body(1), r#"{"query":"{ a(n: 3) { b } }"}"#);
}

#[test]
fn a_variant_may_send_other_requests() {
    let lab = lab(&[
        (
            "  duration: 1s\n",
            "  duration: 1s\n  path: /lab\n  headers: {X-A: 1, X-B: 2}\n",
        ),
        (
            "{name: b, with: {server.stack: b}}",
            "{name: b, load: {path: /own, headers: {x-b: 3}, requests: [{json: {a: 1}}]}}",
        ),
    ]);
    assert_eq!(sent(&lab.baseline), "GET /lab X-A=1 X-B=2");
    assert_eq!(
        sent(&lab.variants[0]),
        r#"POST /own X-A=1 x-b=3 Content-Type=application/json {"a":1}"#
    );
}

#[test]
fn factors_are_crossed_and_known_wherever_the_name_is() {
    let lab = lab(&[
        (
            "  duration: 1s\n",
            "  duration: 1s\n  headers: {X-Who: '{{name}}'}\n",
        ),
        (
            "{name: b, with: {server.stack: b}}",
            "{for: {stack: [b, c], size: [1, 10]}, with: {server.stack: '{{stack}}-{{size}}'}}\n  \
             - {name: 'x{{size}}', for: {size: 5}, load: {path: '/own/{{size}}'}}\n  \
             - {name: y, for: {size: [6, 7]}}",
        ),
    ]);
    assert_eq!(
        names(&lab),
        ["a", "b, 1", "b, 10", "c, 1", "c, 10", "x5", "y, 6", "y, 7"]
    );
    assert_eq!(lab.variants[1].with["server.stack"], "b-10");
    assert_eq!(sent(&lab.variants[4]), "GET /own/5 X-Who=x5");
    assert!(
        lab.variants
            .iter()
            .all(|it| it.against.as_deref() == Some("a"))
    );
    assert_eq!(lab.baseline.against, None);
}

#[test]
fn a_variant_is_compared_with_the_baseline_of_the_same_factors() {
    let lab = lab(&[
        (
            "  duration: 1s\n",
            "  duration: 1s\n  path: /items?n={{size}}\n",
        ),
        (
            "baseline: {name: a}",
            "baseline: {name: 'direct {{size}}', for: {size: [1, 10]}}",
        ),
        (
            "{name: b, with: {server.stack: b}}",
            "{for: {way: [p, q], size: [10, 1]}, with: {server.stack: '{{way}}'}}",
        ),
    ]);
    let pairs: Vec<(&str, Option<&str>)> = lab
        .all()
        .map(|variant| (variant.name.as_str(), variant.against.as_deref()))
        .collect();
    assert_eq!(
        pairs,
        [
            ("direct 1", None),
            ("p, 1", Some("direct 1")),
            ("q, 1", Some("direct 1")),
            ("direct 10", None),
            ("p, 10", Some("direct 10")),
            ("q, 10", Some("direct 10")),
        ]
    );
    assert_eq!(sent(&lab.variants[3]), "GET /items?n=10");
}

#[test]
fn a_variant_without_a_baseline_of_its_factors_is_a_mistake() {
    for (variants, words) in [
        (
            "  - {for: {size: [1, 7]}}",
            "no baseline for a variant `size` 7",
        ),
        ("  - {name: b}", "no baseline for a variant without `size`"),
    ] {
        let found = check(&[
            (
                "baseline: {name: a}",
                "baseline: {name: a, for: {size: [1, 10]}}",
            ),
            ("  - {name: b, with: {server.stack: b}}", variants),
        ]);
        assert!(found.contains(words), "{found}");
        assert!(
            found.contains("Give both `for` with the same values"),
            "{found}"
        );
    }
}

#[test]
fn mistakes_in_what_is_sent_say_where_and_what_to_write() {
    for (load, variants, words) in [
        (
            "  path: /{{nome}}\n",
            "  - {name: b}",
            &["`{{nome}}` is not defined here", "did you mean `name`?"][..],
        ),
        (
            "  path: /{{server.url}}\n",
            "  - {name: b}",
            &["`{{server.url}}` is an address"],
        ),
        (
            "  data: {ranges: {n: 9..1}}\n",
            "  - {name: b}",
            &["it ends before it begins"],
        ),
        (
            "  data: {order: random}\n",
            "  - {name: b}",
            &["`order` without `file`"],
        ),
        (
            "  data: none.csv\n",
            "  - {name: b}",
            &["cannot read `labs/none.csv`"],
        ),
        (
            "  data: {ranges: {n: 1..9}}\n  path: /{{m n}}\n",
            "  - {name: b}",
            &[
                "`{{m n}}` is not a placeholder",
                "the placeholders here are n, index",
            ],
        ),
        (
            "",
            "  - {for: {name: [a]}}",
            &["a factor cannot be named `name`"],
        ),
        (
            "",
            "  - {name: a, for: {}}",
            &["has the same name as the baseline"],
        ),
        (
            "  requests: [{path: /x}]\n  scenario: [{path: /y}]\n",
            "  - {name: b}",
            &["`requests` and `scenario` exclude each other"],
        ),
        (
            "  path: '/{{name}}'\n",
            "  - {name: b c}",
            &["`/b c` is not a path"],
        ),
    ] {
        let found = mistakes(load, variants);
        for word in words {
            assert!(found.contains(word), "{load}{variants}: {word}\n{found}");
        }
    }
}

#[test]
fn a_name_of_the_data_is_no_setting() {
    let folder = Folder::with_lab(changed(&[
        ("question:", "settings: {id: 3}\nquestion:"),
        ("  duration: 1s\n", "  duration: 1s\n  data: rows.csv\n"),
    ]))
    .file("labs/rows.csv", "id\n1\n");
    let found = folder.mistakes();
    assert!(
        found.contains("`id` is the name of a value in `data` and of a setting"),
        "{found}"
    );
    let wrong = Folder::with_lab(changed(&[(
        "  duration: 1s\n",
        "  duration: 1s\n  data: rows.csv\n",
    )]))
    .file("labs/rows.csv", "id,b\n1\n")
    .mistakes();
    assert!(
        wrong.contains("write CSV rows below a header row"),
        "{wrong}"
    );
}

#[test]
fn the_same_answers_need_as_many_requests() {
    let found = check(&[
        (
            "target: server",
            "target: server\nexpect: {same-as: baseline}",
        ),
        (
            "{name: b, with: {server.stack: b}}",
            "{name: b, load: {requests: [{path: /1}, {path: /2}]}}",
        ),
    ]);
    assert!(
        found.contains("`b` sends 2 requests and its baseline `a` sends 1"),
        "{found}"
    );
}

proptest! {
    /// For any content of a setting, a JSON body stays JSON with exactly that content.
    #[test]
    fn a_setting_in_json_is_what_it_was(value in "[^\\x00-\\x1f\\x7f-\\u{9f}\\u{2028}\\u{2029}\\u{feff}\\u{fffe}\\u{ffff}]{0,12}") {
        let quoted = serde_json::to_string(&format!("x{value}")).unwrap();
        // A value with `{{` is a template.
        prop_assume!(!value.contains("{{"));
        let lab = lab(&[
            ("question:", &format!("settings: {{v: {quoted}}}\nquestion:")),
            ("  duration: 1s\n", "  duration: 1s\n  requests: [{json: {a: '{{v}}', b: 'is {{v}}'}}]\n"),
        ]);
        let body: serde_json::Value = serde_json::from_slice(&lab.requests[0].body).unwrap();
        let expected = format!("x{value}");
        prop_assert_eq!(&body["a"], &serde_json::Value::from(expected.clone()));
        prop_assert_eq!(&body["b"], &serde_json::Value::from(format!("is {expected}")));
    }
}

#[test]
fn a_variant_may_open_a_connection_for_every_request() {
    let lab = crate::lab(&[(
        "{server.stack: b}}",
        "{server.stack: b}, load: {keep-alive: off}}",
    )]);
    assert!(lab.keep_alive && lab.baseline.keep_alive);
    assert!(!lab.variants[0].keep_alive);
    let lab = crate::lab(&[
        ("duration: 1s", "duration: 1s\n  keep-alive: off"),
        ("{name: a}", "{name: a, load: {keep-alive: on}}"),
    ]);
    assert!(lab.baseline.keep_alive);
    assert!(!lab.variants[0].keep_alive);
}

#[test]
fn a_variant_with_a_connection_a_request_has_no_streams() {
    let mistakes = crate::check(&[
        ("duration: 1s", "duration: 1s\n  http2: on\n  streams: 2"),
        (
            "{server.stack: b}}",
            "{server.stack: b}, load: {keep-alive: off}}",
        ),
    ]);
    assert!(
        mistakes.contains("`keep-alive: off` cannot be used with `streams`"),
        "{mistakes}"
    );
}

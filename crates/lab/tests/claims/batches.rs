//! Claims about batches, about requests after each start, and about the protocol of a variant.

use lab::{Lab, RequestTemplate};

use crate::{Folder, changed};

/// The example lab with two requests, `one` and `two`, this variant, and this expectation.
fn folder(variant: &str, expect: &str) -> Folder {
    let text = changed(&[
        ("  duration: 1s\n", "  duration: 1s\n  requests: q/*.json\n"),
        (
            "target: server",
            &format!("target: server\nexpect: {expect}"),
        ),
        ("  - {name: b, with: {server.stack: b}}", variant),
    ]);
    Folder::with_lab(text)
        .file("labs/q/one.json", "{\"query\": \"{ a }\"}\n")
        .file("labs/q/two.json", "{\"query\": \"{ b }\"}\n")
        .file("labs/both.json", "[1, 2]")
}

fn parsed(variant: &str, expect: &str) -> Lab {
    let folder = folder(variant, expect);
    folder
        .parse()
        .unwrap_or_else(|mistakes| panic!("{mistakes}"))
}

fn body(request: &RequestTemplate) -> String {
    String::from_utf8(request.body.clone()).unwrap()
}

const SAME: &str = "{graphql: no-errors, same-as: baseline}";

#[test]
fn a_batch_is_the_array_of_the_bodies_of_its_files() {
    let lab = parsed(
        "  - {name: b, load: {requests: {name: all, batch: [q/two.json, q/*.json]}}}",
        SAME,
    );
    let batch = &lab.variants[0].requests[0];
    assert_eq!(
        body(batch),
        r#"[{"query": "{ b }"},{"query": "{ a }"},{"query": "{ b }"}]"#
    );
    assert_eq!(batch.batch, ["two", "one", "two"]);
    assert_eq!(batch.operations(), 3);
    let content_type = ("Content-Type".to_owned(), "application/json".to_owned());
    assert!(batch.headers.contains(&content_type), "{batch:?}");
    // The response to a batch is an array, and GraphQL checks need an object. It must therefore equal the
    // baseline's responses.
    let expect = batch.expect.as_ref().unwrap();
    assert!(expect.same_as_baseline && !expect.answer.graphql);
    let single = &lab.baseline.requests[0];
    assert_eq!((single.operations(), single.expect.is_none()), (1, true));
    assert!(lab.baseline.expect.answer.graphql);
}

#[test]
fn a_batch_with_a_body_of_its_own_needs_nothing_of_the_baseline() {
    let lab = parsed(
        "  - {name: b, load: {requests: {batch: q/one.json, expect: {body: both.json}}}}",
        SAME,
    );
    assert_eq!(lab.variants[0].requests[0].batch, ["one"]);
    // A single request without `same-as` needs no counterpart either.
    let lab = parsed(
        "  - {name: b, load: {requests: {path: /x, expect: {body: both.json}}}}",
        SAME,
    );
    assert_eq!(lab.variants[0].requests.len(), 1);
    assert_eq!(lab.baseline.requests.len(), 2);
}

#[test]
fn mistakes_about_batches_say_where_and_what_to_write() {
    for (variant, expect, words) in [
        (
            "  - {name: b, load: {requests: {name: all, batch: both.json}}}",
            SAME,
            &[
                "the batch `all` of `b` contains `both`, which its baseline `a` does not send",
                "Name files that the baseline sends",
            ][..],
        ),
        (
            "  - {name: b, load: {requests: {name: all, batch: q/*.json}}}",
            "{graphql: no-errors}",
            &[
                "the batch `all` of `b` has no expected answer",
                "`expect: {body: FILE}`",
            ],
        ),
        (
            "  - {name: b, load: {requests: {batch: []}}}",
            SAME,
            &["the list is empty", "give at least one"],
        ),
        (
            "  - {name: b, load: {requests: {batch: q/none.json}}}",
            SAME,
            &["cannot read `labs/q/none.json`"],
        ),
        (
            "  - {name: b, load: {requests: {batch: q/no*.json}}}",
            SAME,
            &["no file matches `labs/q/no*.json`"],
        ),
        (
            "  - {name: b, load: {requests: {batch: q/*.json, json: {a: 1}}}}",
            SAME,
            &["`json` and `batch` exclude each other"],
        ),
        (
            "  - {name: b, load: {requests: {path: /x}}}",
            SAME,
            &["`b` sends 1 requests and its baseline `a` sends 2"],
        ),
        (
            "  - {name: b, load: {prepare: {pth: /x}}}",
            SAME,
            &["did you mean `path`?"],
        ),
        (
            "  - {name: b, load: {prepare: none.json}}",
            SAME,
            &["cannot read `labs/none.json`"],
        ),
    ] {
        let shown = folder(variant, expect).mistakes();
        for expected in words.iter().chain(&["labs/x.yaml:"]) {
            assert!(shown.contains(expected), "{variant}: {expected}\n{shown}");
        }
    }
}

#[test]
fn variants_of_a_scenario_take_the_same_steps() {
    let text = changed(&[
        (
            "  duration: 1s\n",
            "  duration: 1s\n  scenario: [{path: /a}, {path: /b}]\n",
        ),
        (
            "{name: b, with: {server.stack: b}}",
            "{name: b, load: {requests: {path: /c}}}",
        ),
    ]);
    let shown = Folder::with_lab(text).mistakes();
    for words in [
        "a variant cannot have `requests` if the lab has a `scenario`",
        "all variants follow the same steps",
        "labs/x.yaml:",
    ] {
        assert!(shown.contains(words), "{words}\n{shown}");
    }
}

#[test]
fn a_single_request_is_not_compared_with_a_batch() {
    let text = changed(&[
        (
            "baseline: {name: a}",
            "baseline: {name: a, load: {requests: {name: all, batch: one.json, expect: {body: one.json}}}}",
        ),
        (
            "target: server",
            "target: server\nexpect: {same-as: baseline}",
        ),
        (
            "{name: b, with: {server.stack: b}}",
            "{name: b, load: {requests: one.json}}",
        ),
    ]);
    let shown = Folder::with_lab(text)
        .file("labs/one.json", "{}")
        .mistakes();
    assert!(
        shown.contains("`one` would be compared with the batch `all`"),
        "{shown}"
    );
}

#[test]
fn what_is_sent_once_after_each_start_is_the_labs_and_the_variants_own() {
    let text = changed(&[
        (
            "  duration: 1s\n",
            "  duration: 1s\n  path: /graphql\n  headers: {X-Who: '{{name}}'}\n  prepare: {path: /warm}\n",
        ),
        (
            "{name: b, with: {server.stack: b}}",
            "{name: b, load: {prepare: [one.json, {json: {stack: '{{server.stack}}'}, expect: {status: 201}}]}}",
        ),
    ]);
    let lab = Folder::with_lab(text)
        .file("labs/one.json", "{}")
        .parse()
        .unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let shown = |requests: &[RequestTemplate]| -> Vec<String> {
        let one = |it: &RequestTemplate| format!("{} {} {}", it.method, it.path, body(it));
        requests.iter().map(one).collect()
    };
    assert_eq!(shown(&lab.baseline.prepare), ["GET /warm "]);
    let own = &lab.variants[0].prepare;
    assert_eq!(
        shown(own),
        [
            "GET /warm ",
            "POST /graphql {}",
            r#"POST /graphql {"stack":"a"}"#
        ]
    );
    assert_eq!(own[2].headers[0], ("X-Who".to_owned(), "b".to_owned()));
    assert!(own[2].expect.is_some() && own[1].expect.is_none());
    // It does not belong to the requests of the load.
    assert_eq!(lab.variants[0].requests.len(), 1);
}

/// The example lab with a setting for the protocol of the server, which the variant changes.
fn spoken(setting: &str, of_b: &str, load: &str) -> Folder {
    let text = changed(&[
        (
            "settings: {stack: a}",
            &format!(
                "settings: {{stack: a, way: {setting}}}\n    scheme: '{{{{way}}}}'\n    env: {{ME: '{{{{url}}}}'}}"
            ),
        ),
        ("  duration: 1s\n", &format!("  duration: 1s\n{load}")),
        ("{server.stack: b}", &format!("{{server.way: {of_b}}}")),
    ]);
    Folder::with_lab(text).file("labs/ca.pem", "who vouches")
}

#[test]
fn a_variant_may_be_spoken_to_over_tls_where_its_baseline_is_not() {
    let lab = spoken("http", "https", "  ca: ca.pem\n")
        .parse()
        .unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let of = |variant: &lab::Variant| {
        let setup = &variant.systems()[0];
        let address = |_: &str| Some(std::net::SocketAddr::from(([127, 0, 0, 1], 4000)).into());
        (setup.is_encrypted, setup.env[0].1.render(&address).unwrap())
    };
    assert_eq!(
        of(&lab.baseline),
        (false, "http://127.0.0.1:4000".to_owned())
    );
    assert_eq!(
        of(&lab.variants[0]),
        (true, "https://127.0.0.1:4000".to_owned())
    );
}

#[test]
fn what_is_no_scheme_is_a_mistake() {
    for (setting, of_b, load, words) in [
        ("http", "ftp", "", "`ftp` is not a scheme"),
        ("'{{addr}}'", "http", "", "a scheme cannot hold an address"),
        (
            "http",
            "http",
            "  ca: ca.pem\n",
            "`ca` needs a certificate, but `server` has none",
        ),
    ] {
        let shown = spoken(setting, of_b, load).mistakes();
        assert!(shown.contains(words), "{words}\n{shown}");
        assert!(shown.contains("labs/x.yaml:"), "{shown}");
    }
}

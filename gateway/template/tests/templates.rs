//! Tests templates: their output, their errors, and robustness against any text.

#![cfg(test)]

use gateway_template::{Json, RenderError, Scope, Template, Work};
use proptest::prelude::*;

const BODY: &str = r#"{"input":{"id":"a b","n":12345678901234567890.10,"tags":["x","y"],"none":null},"on":true,"x-y":[{"k":1},{"k":2}]}"#;

fn made(template: &str) -> String {
    let body = Json::parse(BODY.as_bytes()).unwrap();
    let base = Json::Text("http://h".into());
    let session = Json::parse(br#"{"x-hasura-role":"admin"}"#).unwrap();
    let work = Work::of(1 << 20);
    let scope = Scope::new(&work)
        .with("$body", &body)
        .with("$base_url", &base)
        .with("$session_variables", &session);
    let template = match Template::json(template) {
        Ok(template) => template,
        Err(error) => return error.to_string(),
    };
    match template.render(&scope) {
        Ok(value) => String::from_utf8(value.to_bytes()).unwrap(),
        Err(error) => format!("error: {error}"),
    }
}

fn text(template: &str) -> String {
    let body = Json::parse(BODY.as_bytes()).unwrap();
    let base = Json::Text("http://h".into());
    let work = Work::of(1 << 20);
    let scope = Scope::new(&work)
        .with("$body", &body)
        .with("$base_url", &base);
    match Template::text(template).map(|it| it.render_text(&scope)) {
        Ok(Ok(text)) => format!("{text:?}"),
        Ok(Err(error)) => format!("error: {error}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn json_with_expressions_becomes_json() {
    insta::assert_snapshot!(
        [
            "{{$body.input.tags}}",
            r#"{"a": {{$body.input.n}}, "b-{{$body.on}}": "x{{$base_url}}y\n", "c": [1, {{$body.input.id}}]}"#,
            "{{$body['x-y'][1].k}}",
            "{{$body.x-y[0]['k']}}",
            "{{$body.input?.missing}}",
            "{{$body?.a.b.c}}",
            "{{$body.input?.none ?? 'd'}}",
            "{{ if $body.on && 1 < 2 }} 1 {{ elif true }} 2 {{ else }} 3 {{ end }}",
            "{{ range i, x := $body.input.tags }} {\"{{i}}\": {{x}}} {{ end }}",
            "{{ range _, x := $body.x-y }} {{ range _, y := [$body.on] }} [{{x.k}}, {{y}}] {{ end }} {{ end }}",
            r#"{{ 'x' in $body.input.tags }}"#,
            r#"{{ "input" in $body }}"#,
            "{{ 1 == 1.0 || $body.nothing }}",
            "[{{9007199254740993 == 9007199254740992}}, {{9007199254740993 > 9007199254740992}}, {{$body.input.n == 12345678901234567890.1}}]",
            r#""{{ if false }}a{{ else }}b{{$body.on}}{{ end }}c""#,
            r#"{{ {"a": {"b": 1}} }}"#,
            // An expression may stand wherever a value may.
            "$body.on", "{{ if true }} $body.on {{ else }} 15 {{ end }}",
            "{{ if false }} 15 {{ else }} size $body.input.tags {{ end }}",
            "{{ range i, x := $body.input.tags }} x {{ end }}",
            "{{ size {{ range _, x := $body.input.tags }} x {{ end }} }}",
            "{\"a\": 1 == 1, \"b\": [{{ $body.on }} && true]}",
            // Comments end with their line.
            "# a comment {{\n{{ # one more }}\n$body.on # and one\n}}\n# the last",
            r##""# no comment""##,
            // A variable and a member may be missing.
            "{{ $none? ?? 1 }}", "{{ $none? }}", "{{ $body.input? }}",
            // Variables of a range may begin with a dollar.
            "{{ range _, $v := $body.input.tags }} {{ $v }} {{ end }}",
            "{{ range $, $v := $body.input.tags }} [$, $v] {{ end }}",
            // An escaped brace begins no expression.
            r#""\{{ x }} {{ $body.on }}""#,
            // In a text, a list and an object are JSON.
            r#""{{ $body.input.tags }}, {{ $body.x-y[0] }} and {{ $body.input.none }}""#,
        ]
        .map(made)
        .join("\n"), @r##"
        ["x","y"]
        {"a":12345678901234567890.10,"b-true":"xhttp://hy\n","c":[1,"a b"]}
        2
        1
        null
        null
        "d"
        1
        [{"0":"x"},{"1":"y"}]
        [[[1,true]],[[2,true]]]
        true
        true
        true
        [false,true,true]
        "btruec"
        {"a":{"b":1}}
        true
        true
        2
        ["x","y"]
        2
        {"a":true,"b":[true]}
        true
        "# no comment"
        1
        null
        the template is wrong at line 1, column 15: expected `}}`
        ["x","y"]
        [[0,"x"],[1,"y"]]
        "{{ x }} true"
        "[\"x\",\"y\"], {\"k\":1} and null"
        "##);
}

#[test]
fn functions_do_what_their_names_say() {
    insta::assert_snapshot!(
        [
            "{{not true}}", "{{escapeUri $body.input.id}}", "{{empty ''}}", "{{empty(false)}}",
            "{{size $body.input.tags}}", "{{inverse $body.input.tags}}", r#"{{inverse {"a":"b"} }}"#,
            "{{inverse 4}}", "{{head $body.input.tags}}", "{{tail 'abc'}}", "{{toUpper 'aé'}}",
            "{{toTitle 'red apple'}}", "{{removeNulls [1, null, 2]}}", "{{concat ['a', $base_url]}}",
            r#"{{concat [{"a":1}, {"a":2}]}}"#, "{{concat [1]}}",
            r#"{{toPairs {"b": 1, "a": [2]} }}"#, "{{ toPairs [1] }}",
            r#"{{fromPairs [["b", 1], ["a", null], ["b", 3]] }}"#, "{{ fromPairs [[1, 2]] }}", "{{ fromPairs [] }}",
            "{{empty ' \n'}}", "{{toCaseFold 'STRAẞE'}}", "{{toTitle \"2nd-hand don't ßo\"}}",
            "{{getSessionVariable('X-Hasura-Role')}}", "{{getSessionVariable('x', 'none')}}",
            "{{getSessionVariable('x')}}", "{{toLower 1}}", "{{head []}}",
        ]
        .map(made)
        .join("\n"), @r#"
        false
        "a%20b"
        true
        error: `empty` cannot be applied to a boolean
        2
        ["y","x"]
        {"a":"b"}
        0.25
        "x"
        "bc"
        "AÉ"
        "Red Apple"
        [1,2]
        "ahttp://h"
        {"a":2}
        error: `concat` cannot join a number
        [["a",[2]],["b",1]]
        error: `toPairs` cannot be applied to an array
        {"b":3,"a":null}
        error: `fromPairs` takes arrays of a string and a value, found [1,2]
        {}
        true
        "strasse"
        "2Nd-hand Don't Sso"
        "admin"
        "none"
        error: there is no session variable `x`
        error: `toLower` cannot be applied to a number
        error: `head` of an array without items
        "#);
}

#[test]
fn text_templates_make_text_and_null_is_none() {
    insta::assert_snapshot!(
        [
            "{{$base_url}}/p/{{escapeUri $body.input.id}}?a=\"b\"",
            "{{$body.input?.none}}", "{{$body.input.n}}", "plain \\ text", "", "{{$body.input.tags}}",
            "a{{$body.input.none}}", "{{ if $body.on }}yes{{ else }}no{{ end }}",
        ]
        .map(text)
        .join("\n"), @r#"
        Some("http://h/p/a%20b?a=\"b\"")
        None
        Some("12345678901234567890.10")
        Some("plain \\ text")
        Some("")
        Some("[\"x\",\"y\"]")
        Some("anull")
        Some("yes")
        "#);
}

#[test]
fn wrong_templates_say_where_and_what_was_expected() {
    insta::assert_snapshot!(
        [
            "{{$body.input", "{{ if true }} 1 {{ end }}", "{\"a\": }", "{{ else }}", "[1, 2", "{{ size }}",
            "{{ getSessionVariable('a', 'b', 'c') }}", "\"abc", "{{ range := $body }}", "1 2", "{{$body.}}",
            "{{$body.missing}}", "{{$unknown}}", "{{ if 1 }} 1 {{ else }} 2 {{ end }}", "{{ 1 < 'a' }}", "\"{{$none}}\"",
        ]
        .map(made)
        .join("\n"), @r#"
        the template is wrong at line 1, column 14: expected `}}`
        the template is wrong at line 1, column 17: expected `{{ else`
        the template is wrong at line 1, column 7: expected an expression
        the template is wrong at line 1, column 1: expected an expression: `else` closes no block here
        the template is wrong at line 1, column 6: expected `,`
        the template is wrong at line 1, column 9: expected an expression
        the template is wrong at line 1, column 37: expected 1 to 2 arguments for `getSessionVariable`
        the template is wrong at line 1, column 5: expected the `"` at the end of a string
        the template is wrong at line 1, column 10: expected the name of a variable or `_`
        the template is wrong at line 1, column 3: expected the end of the template
        the template is wrong at line 1, column 9: expected a key after `.`; write `['key']` for one that is no word
        error: `$body` has no "missing"; write `?.` or `?[…]` where it may be missing
        error: there is no variable `$unknown`
        error: a condition must be a boolean, found a number
        error: a number and a string have no order
        error: there is no variable `$none`
        "#);
}

#[test]
fn nesting_is_bounded_and_no_stack_is_lost() {
    let deep = "[".repeat(100_000);
    assert!(Json::parse(deep.as_bytes()).is_err());
    assert!(Template::json(&deep).is_err());
    assert!(Template::json(&format!("{{{{{}", "(".repeat(100_000))).is_err());
    assert!(Template::text(&"{{ if true }}".repeat(10_000)).is_err());
}

fn json_value() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        any::<f64>().prop_map(|number| serde_json::json!(number)),
        ".{0,8}".prop_map(Into::into),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Into::into),
            prop::collection::btree_map(".{0,4}", inner, 0..4)
                .prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn json_is_read_as_serde_reads_it_and_written_back(value in json_value()) {
        let text = value.to_string();
        let parsed = Json::parse(text.as_bytes()).unwrap();
        let written = String::from_utf8(parsed.to_bytes()).unwrap();
        // One reader reads both texts. Its floats can be inexact.
        let read = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        prop_assert_eq!(read(&written), read(&text));
    }

    #[test]
    fn bytes_are_json_here_when_they_are_to_serde(bytes in "[\\[\\]{}\",:0-9eE+. tfnrualse\\\\-]{0,24}") {
        let theirs = serde_json::from_str::<serde_json::Value>(&bytes);
        // This crate accepts a number beyond f64, because it keeps the digits.
        let is_range = theirs.as_ref().is_err_and(|error| error.to_string().contains("number out of range"));
        if !is_range {
            prop_assert_eq!(Json::parse(bytes.as_bytes()).is_ok(), theirs.is_ok(), "{}", bytes);
        }
    }

    #[test]
    fn any_json_is_a_template_of_itself(value in json_value()) {
        let text = value.to_string();
        // `{{` begins an expression, even in a string.
        prop_assume!(!text.contains("{{"));
        let template = Template::json(&text).unwrap();
        let work = Work::of(1 << 20);
        let made = template.render(&Scope::new(&work)).unwrap().to_bytes();
        let read = |text: &[u8]| serde_json::from_slice::<serde_json::Value>(text).unwrap();
        prop_assert_eq!(read(&made), read(text.as_bytes()));
    }

    #[test]
    fn no_text_breaks_a_template(text in "([{}\\[\\]$.a-c'\"?|&=<>!,:#0-9 ()\\\\\n]|\\{\\{|\\}\\}|if|else|end|range|\\$body|in|not|concat){0,24}") {
        let body = Json::parse(BODY.as_bytes()).unwrap();
        let work = Work::of(1 << 20);
        let scope = Scope::new(&work).with("$body", &body);
        for template in [Template::json(&text), Template::text(&text)].into_iter().flatten() {
            if let Ok(value) = template.render(&scope) {
                let bytes = value.to_bytes();
                prop_assert!(serde_json::from_slice::<serde_json::Value>(&bytes).is_ok());
            }
            let _ = template.render_text(&scope);
        }
    }
}

/// Renders a template with `$body` and this work limit.
fn made_with(work: usize, template: &str, body: &str) -> Result<String, RenderError> {
    let body = Json::parse(body.as_bytes()).unwrap();
    let work = Work::of(work);
    let scope = Scope::new(&work).with("$body", &body);
    let template = Template::json(template).unwrap_or_else(|error| panic!("{template}: {error}"));
    let made = template.render(&scope)?;
    Ok(String::from_utf8(made.to_bytes()).unwrap())
}

#[test]
fn what_grows_with_the_square_of_a_payload_is_refused() {
    let items = vec!["{\"k\":1}"; 300].join(",");
    let members: Vec<String> = (0..300).map(|at| format!("\"m{at}\":{at}")).collect();
    let members = members.join(",");
    let (note, digits) = ("n".repeat(10_000), "7".repeat(10_000));
    let body = format!(
        r#"{{{members},"items":[{items}],"note":"{note}","long":{note:?},"o":{{{members}}},"p":{{{members}}},"digits":{digits}}}"#
    );
    // Templates that an operator could write. With this input, each needs at least a hundred thousand units
    // of work.
    for template in [
        "{{range _, x := $body.items}}{{range _, y := $body.items}}{{y.k}}{{end}}{{end}}",
        "{{range _, x := $body.items}}{\"x\": {{x}}, \"note\": {{$body.note}}}{{end}}",
        "{{range _, x := $body.items}}\"{{x.k}}: {{$body.note}}\"{{end}}",
        "{{range _, x := $body.items}}{{toUpper $body.note}}{{end}}",
        "{{range _, x := $body.items}}{{size $body.note}}{{end}}",
        "{{range _, x := $body.items}}{{escapeUri $body.note}}{{end}}",
        "{{range _, x := $body.items}}{{$body.note == $body.long}}{{end}}",
        "{{range _, x := $body.items}}{{$body.note <= $body.long}}{{end}}",
        "{{range _, x := $body.items}}{{$body.o == $body.p}}{{end}}",
        "{{range _, x := $body.items}}{{x.k == $body.digits}}{{end}}",
        "{{range _, x := $body.items}}{{x.k < $body.digits}}{{end}}",
        "{{range _, x := $body.items}}{{empty $body.digits}}{{end}}",
        "{{range _, x := $body.items}}{{2 in $body.items}}{{end}}",
        "{{range _, x := $body.items}}{{'none' in $body}}{{end}}",
        "{{range _, x := $body.items}}{{$body.m299}}{{end}}",
        "{{range _, x := $body.items}}{{concat [$body.o, $body.p]}}{{end}}",
        "{{range _, x := $body.items}}{{head [$body.note]}}{{end}}",
        "{{range _, x := removeNulls $body.items}}{{range _, y := $body.items}}{{x}}{{end}}{{end}}",
        "{{range i, x := $body.items}}{{inverse $body.items}}{{end}}",
        "{{range _, x := $body.items}}{{toPairs $body.o}}{{end}}",
        "{{range _, x := $body.items}}{{fromPairs (toPairs $body.o)}}{{end}}",
        "{{range _, x := $body.items}}\"{{$body.items}}\"{{end}}",
    ] {
        let refused = made_with(60_000, template, &body);
        assert_eq!(refused, Err(RenderError::TooMuch(60_000)), "{template}");
    }
    // Templates that read a payload once stay within the limit.
    for template in [
        "{{range i, x := $body.items}}{\"at\": {{i}}, \"k\": {{x.k}}}{{end}}",
        "{\"all\": {{$body}}}",
        "{{concat [$body.o, $body.p]}}",
        "{{$body.o == $body.p}}",
    ] {
        let made = made_with(60_000, template, &body);
        assert!(made.is_ok(), "{template}: {made:?}");
    }
}

#[test]
fn what_is_passed_on_whole_costs_nothing_and_templates_share_their_work() {
    let text = format!("[{}]", vec!["7"; 1_000].join(","));
    assert_eq!(made_with(20, "{{$body}}", &text), Ok(text.clone()));
    let body = Json::parse(text.as_bytes()).unwrap();
    let work = Work::of(30_000);
    let scope = Scope::new(&work).with("$body", &body);
    let template = Template::json("[{{$body}}]").unwrap();
    let outcomes = [(); 5].map(|()| template.render(&scope).is_ok());
    assert_eq!(outcomes, [true, true, true, false, false]);
}

#[test]
fn members_of_joined_objects_keep_their_places_and_the_last_wins() {
    let body = r#"[{"a":1,"b":2},{"c":3,"a":4},{"b":5}]"#;
    let joined = made_with(10_000, "{{concat $body}}", body);
    assert_eq!(joined, Ok(r#"{"a":4,"b":5,"c":3}"#.to_owned()));
    let equal = "{{ {\"a\": 1, \"b\": [2]} == $body }}";
    for (body, expected) in [
        (r#"{"b":[2.0],"a":1}"#, "true"),
        (r#"{"b":[3],"a":1}"#, "false"),
        (r#"{"b":[2],"c":1}"#, "false"),
        ("null", "false"),
    ] {
        assert_eq!(
            made_with(10_000, equal, body),
            Ok(expected.to_owned()),
            "{body}"
        );
    }
}

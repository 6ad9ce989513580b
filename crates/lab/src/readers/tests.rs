use super::*;
use insta::assert_snapshot;

/// Returns the value that was read, or the mistake with its advice.
fn check(format: &str, text: &str) -> String {
    match super::read(format, text).expect(format) {
        Ok(()) => format!("`{text}` is fine"),
        Err(wrong) => format!("{}; {}", wrong.message, wrong.help.unwrap()),
    }
}

#[test]
fn every_format_reads_its_own_example() {
    fn reads_its_example<F: Format>() {
        if let Some(example) = F::EXAMPLE {
            assert!(F::read(example).is_ok(), "{}", F::NAME);
        }
    }
    reads_its_example::<Duration>();
    reads_its_example::<LongerThanZero>();
    reads_its_example::<Bytes>();
    reads_its_example::<PositiveRate>();
    reads_its_example::<Rate>();
    reads_its_example::<Method>();
    reads_its_example::<StatusName>();
    reads_its_example::<UrlPath>();
    reads_its_example::<RequestPath>();
    reads_its_example::<Numbers>();
    reads_its_example::<Pattern>();
    reads_its_example::<HeaderName>();
    reads_its_example::<HeaderValue>();
    reads_its_example::<Name>();
    reads_its_example::<SettingPath>();
    reads_its_example::<HostName>();
}

#[test]
fn a_method_is_a_token_in_capitals() {
    assert_snapshot!(check("method", "post"), @"`post` is not a method; write `POST`");
    assert_snapshot!(check("method", "PO ST"), @"`PO ST` is not a method; write for example `POST`");
    assert_snapshot!(check("method", "M-SEARCH"), @"`M-SEARCH` is fine");
}

#[test]
fn a_status_is_a_number_or_a_class() {
    assert_snapshot!(check("status", "2xx"), @"`2xx` is fine");
    assert_snapshot!(check("status", "429"), @"`429` is fine");
    assert_snapshot!(check("status", "99"), @"`99` is not a status; write a number from 100 to 599, a class such as `2xx`, or a list of them: `[200, 429]`");
    assert_snapshot!(check("status", "200, 429"), @"`200, 429` is not a status; write a number from 100 to 599, a class such as `2xx`, or a list of them: `[200, 429]`");
}

#[test]
fn a_path_goes_over_the_wire_as_it_stands() {
    assert_snapshot!(check("path-and-query", "/a?b=c%20d"), @"`/a?b=c%20d` is fine");
    assert_snapshot!(check("path-and-query", "http://127.0.0.1/"), @"`http://127.0.0.1/` is not a path: it must begin with `/`; the system defines address and port. Write for example `/graphql`");
    assert_snapshot!(check("path-and-query", "/a b"), @"`/a b` is not a path: it contains ' '; write the encoded path, with `%20` for a space");
    assert_snapshot!(check("path-with-places", "/a/{{ a b }}?x={{c}}"), @"`/a/{{ a b }}?x={{c}}` is fine");
    assert_snapshot!(check("path-with-places", "{{a}}/b"), @"`{{a}}/b` is not a path: it must begin with `/`; the system defines address and port. Write for example `/graphql`");
    assert_snapshot!(check("path-with-places", "/{{a}} b"), @"`/{{a}} b` is not a path: it contains ' '; write the encoded path, with `%20` for a space");
}

#[test]
fn a_header_is_one_line() {
    assert_snapshot!(check("header-name", "Content Type"), @"`Content Type` is not a header name; write for example `Content-Type`");
    assert_snapshot!(check("header-value", "a\r\nb: c"), @r#""a\r\nb: c" is not a header value: it contains a control character; write one line of text"#);
}

#[test]
fn a_setting_has_at_most_one_dot() {
    assert_snapshot!(check("setting", "server.stack"), @"`server.stack` is fine");
    assert_snapshot!(check("setting", "a.b.c"), @"`a.b.c` is not a setting; write `system.setting`, or the name of a lab-wide setting");
}

#[test]
fn a_title_is_one_line_of_text() {
    assert_snapshot!(check("title", "   "), @"the text is empty; write a few words");
    assert_snapshot!(check("title", "a\nb"), @r#""a\nb" is more than one line; write one line of text"#);
}

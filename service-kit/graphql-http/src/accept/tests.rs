use proptest::prelude::*;

use super::*;

const BROWSER: &str =
    "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8";

fn prefers(accept: &str) -> Option<Negotiated> {
    negotiate([accept.as_bytes()].into_iter(), true)
}

fn response(media: Media) -> Option<Negotiated> {
    Some(Negotiated::Response(media))
}

#[test]
fn json_is_the_answer_when_the_client_leaves_it_open() {
    assert_eq!(negotiate([].into_iter(), true), response(Media::Json));
    for accept in [
        "",
        "*/*",
        "application/*",
        "*/*;q=0.1",
        "image/png, */*",
        "application/json, text/plain, */*",
        "application/graphql-response+json;q=0.5, application/json",
        "multipart/mixed;deferSpec=20220824",
    ] {
        assert_eq!(prefers(accept), response(Media::Json), "{accept}");
    }
}

#[test]
fn a_client_that_accepts_only_json_is_told_apart() {
    for accept in [
        "application/json",
        "APPLICATION/JSON",
        "Application/JSON; charset=utf-8",
        "multipart/mixed;deferSpec=20220824,application/json",
        "application/graphql-response+json;q=0, application/json",
    ] {
        assert_eq!(prefers(accept), response(Media::JsonOnly), "{accept}");
    }
}

#[test]
fn the_media_type_of_the_draft_is_sent_to_clients_that_prefer_it() {
    for accept in [
        "application/graphql-response+json",
        "application/graphql-response+json; charset=utf-8",
        "application/graphql-response+json, application/json",
        "application/json, application/graphql-response+json",
        "application/graphql-response+json, application/json;q=0.9, */*;q=0.1",
        "application/json;q=0.2, application/graphql-response+json;q=0.3",
        // One type is refused by name, so the other range means the newer type.
        "application/json;q=0, */*",
    ] {
        assert_eq!(
            prefers(accept),
            response(Media::GraphqlResponse),
            "{accept}"
        );
    }
}

#[test]
fn a_page_is_for_clients_that_prefer_html() {
    for accept in [BROWSER, "text/html", "text/html, application/json;q=0.5"] {
        assert_eq!(prefers(accept), Some(Negotiated::Page), "{accept}");
        assert_ne!(
            negotiate([accept.as_bytes()].into_iter(), false),
            Some(Negotiated::Page)
        );
    }
    let program = prefers("application/json, text/html;q=0.9");
    assert_eq!(program, response(Media::JsonOnly));
}

#[test]
fn what_there_is_not_is_not_acceptable() {
    for accept in [
        "image/png",
        "text/*",
        "text/plain",
        "application/json;q=0",
        "application/json; charset=utf-16",
        "application/json;q=high",
    ] {
        assert_eq!(prefers(accept), None, "{accept}");
    }
    assert_eq!(negotiate([&b"\xff"[..]].into_iter(), true), None);
    assert_eq!(negotiate([&b"text/html"[..]].into_iter(), false), None);
}

#[test]
fn several_lines_count_as_one() {
    let lines = ["text/plain", "application/json;q=0.1", BROWSER];
    let lines = lines.map(str::as_bytes);
    assert_eq!(negotiate(lines.into_iter(), true), Some(Negotiated::Page));
    assert_eq!(
        negotiate(lines[..2].iter().copied(), true),
        response(Media::JsonOnly)
    );
}

proptest! {
    #[test]
    fn any_bytes_get_a_decision(lines: Vec<Vec<u8>>, text in ".*") {
        let _ = negotiate(lines.iter().map(Vec::as_slice), true);
        let _ = prefers(&text);
    }

    #[test]
    fn the_greater_weight_wins(modern in 1_u16..=1000, legacy in 1_u16..=1000) {
        let written = |thousandths: u16| format!("{}.{:03}", thousandths / 1000, thousandths % 1000);
        let accept = format!(
            "application/json;q={}, application/graphql-response+json;q={}",
            written(legacy),
            written(modern),
        );
        let expected = if modern >= legacy { Media::GraphqlResponse } else { Media::Json };
        prop_assert_eq!(prefers(&accept), response(expected));
    }
}

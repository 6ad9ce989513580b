use proptest::prelude::*;

use super::*;

const LIMIT: u64 = 1_000;
const BROWSER: &str =
    "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8";

fn get(accept: Option<&str>) -> Step {
    let head = Head {
        method: "GET",
        accept,
        ..Head::default()
    };
    admit(&head, LIMIT)
}

fn post(accept: Option<&str>, content_type: Option<&str>, length: Option<u64>) -> Step {
    let head = Head {
        method: "POST",
        accept,
        content_type,
        content_length: length,
    };
    admit(&head, LIMIT)
}

fn refused_with(step: Step) -> u16 {
    match step {
        Step::Reply(reply) => reply.status.code(),
        other => panic!("expected a refusal, found {other:?}"),
    }
}

#[test]
fn json_is_the_answer_when_the_client_leaves_it_open() {
    let open = [
        None,
        Some(""),
        Some("*/*"),
        Some("application/*"),
        Some("*/*;q=0.1"),
        Some("application/json"),
        Some("application/json; charset=UTF-8"),
        Some("APPLICATION/JSON"),
        Some("image/png, */*"),
        Some("application/graphql-response+json;q=0.1, application/json"),
        Some("application/graphql-response+json;q=0, */*"),
    ];
    for accept in open {
        let expected = Step::ReadParameters(Media::Json);
        assert_eq!(get(accept), expected, "{accept:?}");
    }
}

#[test]
fn the_media_type_of_the_specification_is_sent_to_who_names_it() {
    let named = [
        "application/graphql-response+json",
        "application/graphql-response+json; charset=utf-8",
        "application/graphql-response+json, application/json",
        "application/json, application/graphql-response+json",
        "application/graphql-response+json, application/json;q=0.9, */*;q=0.1",
        "application/json;q=0, */*",
    ];
    for accept in named {
        let expected = Step::ReadParameters(Media::GraphqlResponse);
        assert_eq!(get(Some(accept)), expected, "{accept}");
    }
}

#[test]
fn a_page_is_for_who_asks_for_html_first() {
    for accept in [BROWSER, "text/html", "text/html, application/json;q=0.5"] {
        let Step::Reply(page) = get(Some(accept)) else {
            panic!("{accept}: no page");
        };
        assert_eq!(page.content_type, "text/html; charset=utf-8", "{accept}");
    }
    let program = get(Some("application/json, text/html;q=0.9"));
    assert_eq!(program, Step::ReadParameters(Media::Json));
}

#[test]
fn a_post_is_never_answered_with_a_page() {
    let step = post(Some(BROWSER), Some("application/json"), None);
    assert_eq!(step, Step::ReadBody(Media::Json));
}

#[test]
fn what_we_cannot_send_is_not_acceptable() {
    let unknown = [
        "image/png",
        "text/*",
        "application/json;q=0",
        "application/json; charset=utf-16",
        "application/json;q=high",
    ];
    for accept in unknown {
        assert_eq!(refused_with(get(Some(accept))), 406, "{accept}");
    }
}

#[test]
fn a_body_must_say_that_it_is_json() {
    for fine in [
        "application/json",
        "application/json; charset=utf-8",
        "Application/JSON;charset=\"UTF-8\"",
    ] {
        let step = post(None, Some(fine), Some(LIMIT));
        assert_eq!(step, Step::ReadBody(Media::Json), "{fine}");
    }
    for wrong in [
        None,
        Some(""),
        Some("text/plain"),
        Some("application/graphql"),
        Some("application/json; charset=latin1"),
        Some("application/x-www-form-urlencoded"),
    ] {
        assert_eq!(refused_with(post(None, wrong, None)), 415, "{wrong:?}");
    }
}

#[test]
fn a_body_over_the_limit_is_refused_before_it_is_read() {
    let step = post(None, Some("application/json"), Some(LIMIT + 1));
    let Step::Reply(reply) = step else {
        panic!("not refused");
    };
    assert_eq!((reply.status.code(), reply.close), (413, true));
}

#[test]
fn other_methods_are_told_which_are_allowed() {
    for method in ["PUT", "DELETE", "HEAD", "OPTIONS", "post"] {
        let head = Head {
            method,
            ..Head::default()
        };
        let Step::Reply(reply) = admit(&head, LIMIT) else {
            panic!("{method} is served");
        };
        assert_eq!((reply.status.code(), reply.allow), (405, Some("GET, POST")));
    }
}

#[test]
fn a_refusal_is_sent_in_the_media_type_that_was_asked_for() {
    let step = post(Some("application/graphql-response+json"), None, None);
    let Step::Reply(reply) = step else {
        panic!("not refused");
    };
    assert_eq!(reply.content_type, Media::GraphqlResponse.content_type());
}

proptest! {
    #[test]
    fn any_headers_get_a_decision(accept in ".*", content_type in ".*") {
        let _ = get(Some(&accept));
        let _ = post(Some(&accept), Some(&content_type), None);
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
        prop_assert_eq!(get(Some(&accept)), Step::ReadParameters(expected));
    }
}

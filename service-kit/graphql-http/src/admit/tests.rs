use proptest::prelude::*;

use super::*;

const LIMIT: u64 = 1_000;
const BROWSER: &str = "text/html,application/xhtml+xml,*/*;q=0.8";

fn ask(
    method: &str,
    accept: Option<&str>,
    content_type: Option<&str>,
    length: Option<u64>,
) -> Admission {
    let head = Head {
        method,
        accept: accept.map(str::as_bytes).into_iter(),
        content_type: content_type.map(str::as_bytes),
        content_encoding: None,
        content_length: length,
    };
    admit(head, LIMIT, true)
}

#[test]
fn a_body_with_a_content_coding_is_refused_by_its_name() {
    let post = |coding: &'static [u8]| {
        let head = Head {
            method: "POST",
            accept: std::iter::empty(),
            content_type: Some(b"application/json"),
            content_encoding: Some(coding),
            content_length: None,
        };
        admit(head, LIMIT, true)
    };
    for plain in [&b""[..], b"identity", b" Identity "] {
        assert_eq!(post(plain), Admission::ReadBody(Media::Json));
    }
    let refusal = RequestRefusal::ContentEncoding("gzip".to_owned());
    assert_eq!(refusal.status(), 415);
    assert_eq!(post(b"gzip"), Admission::Refuse(Media::Json, refusal));
    assert_eq!(refused_with(post(b"identity, br")), 415);
}

fn refused_with(step: Admission) -> u16 {
    match step {
        Admission::Refuse(_, refusal) => refusal.status(),
        other => panic!("expected a refusal, found {other:?}"),
    }
}

#[test]
fn a_get_is_read_from_its_parameters_in_the_media_type_it_prefers() {
    let get = |accept| ask("GET", accept, None, None);
    assert_eq!(get(None), Admission::ReadParameters(Media::Json));
    let modern = "application/graphql-response+json";
    assert_eq!(
        get(Some(modern)),
        Admission::ReadParameters(Media::GraphqlResponse)
    );
    assert_eq!(get(Some(BROWSER)), Admission::Page);
    assert_eq!(refused_with(get(Some("image/png"))), 406);
}

#[test]
fn a_post_is_never_answered_with_a_page() {
    let step = ask("POST", Some(BROWSER), Some("application/json"), None);
    assert_eq!(step, Admission::ReadBody(Media::Json));
}

#[test]
fn a_body_must_be_declared_as_json() {
    for fine in ["application/json", "Application/JSON;charset=\"UTF-8\""] {
        let step = ask("POST", None, Some(fine), Some(LIMIT));
        assert_eq!(step, Admission::ReadBody(Media::Json), "{fine}");
    }
    for wrong in [
        None,
        Some(""),
        Some("text/plain"),
        Some("application/graphql"),
        Some("application/json; charset=latin1"),
        Some("application/x-www-form-urlencoded"),
    ] {
        assert_eq!(
            refused_with(ask("POST", None, wrong, None)),
            415,
            "{wrong:?}"
        );
    }
}

#[test]
fn a_body_over_the_limit_is_refused_before_it_is_read() {
    let step = ask("POST", None, Some("application/json"), Some(LIMIT + 1));
    let Admission::Refuse(Media::Json, refusal) = step else {
        panic!("not refused");
    };
    assert_eq!((refusal.status(), refusal.closes()), (413, true));
}

#[test]
fn other_methods_are_told_which_are_allowed() {
    for method in ["PUT", "DELETE", "HEAD", "OPTIONS", "post"] {
        let Admission::Refuse(_, refusal) = ask(method, None, None, None) else {
            panic!("{method} is served");
        };
        assert_eq!(
            (refusal.status(), refusal.allow()),
            (405, Some("GET, POST"))
        );
    }
}

#[test]
fn a_refusal_is_sent_in_the_media_type_that_was_asked_for() {
    let step = ask(
        "POST",
        Some("application/graphql-response+json"),
        None,
        None,
    );
    assert_eq!(
        step,
        Admission::Refuse(Media::GraphqlResponse, RequestRefusal::ContentType(None))
    );
}

proptest! {
    #[test]
    fn any_headers_get_a_decision(accept in ".*", content_type in ".*") {
        let _ = ask("GET", Some(&accept), None, None);
        let _ = ask("POST", Some(&accept), Some(&content_type), None);
    }
}

//! Encoded bodies in a proof, and a test for encodings that the load does not request.

use std::borrow::Cow;
use std::time::Duration;

use lab::RequestTemplate;
use load::{Answer, EncodedBody, Expectation, Request, StatusRule, Target};
use model::InvalidKind;
use recording::EncodingRecord;
use serde_json::Value;

use crate::invalid::Invalid;

/// Maximum size of a decoded body in a proof, in bytes.
pub(crate) const CONTENT_MAX: usize = 64 * 1024 * 1024;

/// The codings that a browser accepts.
const ASKED: &str = "gzip, br, zstd, deflate";

/// The body of a response without content codings.
///
/// # Errors
///
/// When it cannot be decoded.
pub(super) fn content<'a>(name: &str, answer: &'a Answer) -> Result<Cow<'a, [u8]>, Invalid> {
    answer.content(CONTENT_MAX).map_err(|error| {
        Invalid::new(
            InvalidKind::Mismatched,
            format!("request `{name}`: {error}"),
        )
    })
}

/// The encoded body of a response, for comparison in a load. `None` for a plain body.
pub(super) fn encoded(answer: &Answer) -> Option<EncodedBody> {
    answer.coding().map(|coding| EncodedBody {
        coding,
        bytes: answer.body.as_slice().into(),
    })
}

/// The encoding of a body, for the recording. `again` is the second response, with the same content.
pub(super) fn record(answer: &Answer, content: &[u8], again: &Answer) -> Option<EncodingRecord> {
    answer.coding().map(|coding| EncodingRecord {
        varies: again.coding().as_ref() == Some(&coding) && again.body != answer.body,
        coding,
        decoded_bytes: content.len() as u64,
    })
}

/// Requests an encoded response to the first request that may be repeated. Returns the index of the request
/// and the coding of the response.
///
/// `None` if a request sets its accepted codings, or if the response is already encoded or stays plain.
pub(super) fn if_asked(
    requests: &[RequestTemplate],
    answers: &[Answer],
    target: &Target,
    limit: Duration,
) -> Option<(usize, String)> {
    let mut pairs = requests.iter().zip(answers).enumerate();
    let (index, (asked, _)) = pairs.find(|(_, (asked, answer))| {
        may_be_repeated(asked) && !says_what_it_accepts(asked) && answer.coding().is_none()
    })?;
    let mut headers = asked.headers.clone();
    headers.push(("Accept-Encoding".to_owned(), ASKED.to_owned()));
    let request = Request {
        method: asked.method.clone(),
        path: asked.path.clone(),
        headers,
        body: asked.body.clone(),
        expect: Expectation {
            status: StatusRule::Any,
            ..Expectation::default()
        },
        websocket: None,
        grpc: None,
        weight: 1,
    };
    tracing::debug!(request = asked.name, "asking for a compressed answer");
    // Only for a note, so a missing response does not affect the proof.
    let answer = load::exchange(target, &request, limit).ok()?;
    let is_success = (200..300).contains(&answer.status);
    let coding = answer.coding().filter(|_| is_success)?;
    Some((index, coding))
}

fn says_what_it_accepts(request: &RequestTemplate) -> bool {
    let mut names = request.headers.iter().map(|(name, _)| name);
    names.any(|name| name.eq_ignore_ascii_case("accept-encoding"))
}

/// True if another request changes no state: a GET, a HEAD, and a POST of GraphQL queries.
fn may_be_repeated(request: &RequestTemplate) -> bool {
    // A conversation has no coding.
    if super::has_places(request) || request.websocket.is_some() || request.grpc.is_some() {
        return false;
    }
    match request.method.as_str() {
        "GET" | "HEAD" => true,
        "POST" => serde_json::from_slice(&request.body).is_ok_and(|body| is_query(&body)),
        _ => false,
    }
}

/// True if a body contains GraphQL queries and no other operation, according to its text. If one of the words
/// appears in a name, a comment or a text, the result is false. Requests that change state are therefore
/// never repeated.
fn is_query(body: &Value) -> bool {
    match body {
        Value::Array(all) => !all.is_empty() && all.iter().all(is_query),
        Value::Object(members) => {
            members
                .get("query")
                .and_then(Value::as_str)
                .is_some_and(|document| {
                    let is_word = |byte: char| byte.is_ascii_alphanumeric() || byte == '_';
                    let mut words = document.split(|byte| !is_word(byte));
                    document.contains('{')
                        && !words.any(|word| matches!(word, "mutation" | "subscription"))
                })
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(method: &str, body: &str) -> RequestTemplate {
        RequestTemplate {
            name: "x".to_owned(),
            method: method.to_owned(),
            path: "/".to_owned(),
            headers: Vec::new(),
            body: body.as_bytes().to_vec(),
            batch: Vec::new(),
            weight: 1,
            expect: None,
            stream: None,
            websocket: None,
            grpc: None,
        }
    }

    #[test]
    fn nothing_is_repeated_that_may_change_something() {
        for (method, body, may) in [
            ("GET", "", true),
            ("HEAD", "", true),
            ("DELETE", "", false),
            ("PUT", "", false),
            ("POST", "", false),
            ("POST", "{}", false),
            ("POST", r#"{"amount":5}"#, false),
            ("POST", r#"{"query":"{ a }"}"#, true),
            ("POST", r#"{"query":"query A { a }"}"#, true),
            ("POST", r#"{"query":"mutation { pay }"}"#, false),
            (
                "POST",
                r#"{"query":"query A { a } mutation B { pay }"}"#,
                false,
            ),
            ("POST", r#"{"query":"\nmutation\t{ pay }"}"#, false),
            ("POST", r#"{"query":"subscription { a }"}"#, false),
            ("POST", r#"{"query":"hash"}"#, false),
            ("POST", r#"{"extensions":{"persistedQuery":{}}}"#, false),
            ("POST", r#"[{"query":"{ a }"},{"query":"{ b }"}]"#, true),
            (
                "POST",
                r#"[{"query":"{ a }"},{"query":"mutation { b }"}]"#,
                false,
            ),
            ("POST", "[]", false),
            ("GET", "{{row}}", false),
        ] {
            assert_eq!(
                may_be_repeated(&request(method, body)),
                may,
                "{method} {body}"
            );
        }
    }

    #[test]
    fn a_bomb_is_refused_with_its_size() {
        let zeros = vec![0; CONTENT_MAX + 1];
        let body = load::encoded("gzip, gzip", &zeros).unwrap();
        let answer = Answer {
            status: 200,
            headers: vec![("content-encoding".to_owned(), "gzip, gzip".to_owned())],
            body,
            messages: None,
            trailers: Vec::new(),
        };
        let refused = content("list", &answer).unwrap_err();
        assert!(
            refused
                .reason
                .contains("request `list`: the body is too large")
                && refused.reason.contains("more than 67108864 bytes"),
            "{}",
            refused.reason
        );
        assert_eq!(refused.kind, InvalidKind::Mismatched);
    }
}

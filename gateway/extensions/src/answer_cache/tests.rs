use gateway_config::{Surroundings, read};

use super::*;

struct Nothing;

impl Surroundings for Nothing {
    fn variable(&self, _: &str) -> Option<String> {
        None
    }

    fn file(&self, _: &std::path::Path) -> Option<String> {
        None
    }
}

fn cache(more: &str) -> AnswerCache {
    let text = format!("response_cache: {{enabled: true, {more}}}");
    let path = std::path::Path::new("r.yaml");
    let config = read(path, &text, &Nothing, false).unwrap().config;
    AnswerCache::new(&config.response_cache, ["a", "b"].into_iter())
        .unwrap()
        .unwrap()
}

/// Runs a future that never waits, because the cache is in memory.
fn at_once<T>(work: impl Future<Output = T>) -> T {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};
    match pin!(work).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(done) => done,
        Poll::Pending => panic!("it waits"),
    }
}

fn reply(control: &'static str, body: &str) -> Reply {
    let mut headers = json_headers();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(control));
    Reply::new(
        StatusCode::OK,
        headers,
        Bytes::copy_from_slice(body.as_bytes()),
    )
}

/// Sends a request as the gateway does. `answer` plays the subgraph and receives the request body.
fn ask(
    cache: &AnswerCache,
    subgraph: &str,
    client: Option<&str>,
    body: &str,
    answer: impl Fn(&str) -> Reply,
) -> (String, usize) {
    let headers = HeaderMap::new();
    let body = Bytes::copy_from_slice(body.as_bytes());
    let question = Question {
        subgraph,
        address: "http://a/",
        headers: &headers,
        body: &body,
        client: client.map(str::to_owned),
    };
    let shown = |reply: &Reply| String::from_utf8(reply.body.to_vec()).unwrap();
    match at_once(cache.look(&question)) {
        CacheLookup::Whole(reply) => (shown(&reply), 0),
        CacheLookup::Miss(keys) => {
            let reply = answer(std::str::from_utf8(&body).unwrap());
            cache.keep(&keys, &reply);
            (shown(&reply), 1)
        }
        CacheLookup::Partial(partial, fewer) => {
            let reply = answer(std::str::from_utf8(&fewer).unwrap());
            match cache.complete(partial, &reply) {
                Some(whole) => (shown(&whole), 1),
                None => (shown(&answer(std::str::from_utf8(&body).unwrap())), 2),
            }
        }
    }
}

fn entities(ids: &[u32]) -> String {
    let list: Vec<String> = ids
        .iter()
        .map(|id| format!(r#"{{"__typename":"T","id":{id}}}"#))
        .collect();
    format!(
        r#"{{"query":"query($representations:[_Any!]!){{_entities(representations:$representations){{...on T{{name}}}}}}","variables":{{"representations":[{}]}}}}"#,
        list.join(",")
    )
}

/// Responds with the id of each requested entity.
fn names(control: &'static str) -> impl Fn(&str) -> Reply {
    move |body| {
        let body: serde_json::Value = serde_json::from_str(body).unwrap();
        let list = body["variables"]["representations"].as_array().unwrap();
        let list: Vec<String> = list
            .iter()
            .map(|it| format!(r#"{{"name":{}}}"#, it["id"]))
            .collect();
        reply(
            control,
            &format!(r#"{{"data":{{"_entities":[{}]}}}}"#, list.join(",")),
        )
    }
}

#[test]
fn entities_are_kept_one_by_one_and_only_others_are_asked_for() {
    let cache = cache("subgraph: {}");
    let answer = names("max-age=60");
    let whole = |ids: &[u32]| {
        let list: Vec<String> = ids.iter().map(|id| format!(r#"{{"name":{id}}}"#)).collect();
        format!(r#"{{"data":{{"_entities":[{}]}}}}"#, list.join(","))
    };
    for (ids, asked) in [
        (&[1, 2][..], 1),
        (&[2, 1], 0),
        (&[3, 1, 4], 1),
        (&[4, 3, 2, 1], 0),
    ] {
        let told = ask(&cache, "a", None, &entities(ids), &answer);
        assert_eq!(told, (whole(ids), asked), "{ids:?}");
    }
    // Another subgraph or another selection has another key.
    assert_eq!(ask(&cache, "b", None, &entities(&[1]), &answer).1, 1);
    let other = entities(&[1]).replace("{name}", "{n:name}");
    assert_eq!(ask(&cache, "a", None, &other, &answer).1, 1);
    let counts: Vec<_> = cache.counts().collect();
    assert_eq!(counts, [("a", 7, 5), ("b", 0, 1)]);
}

#[test]
fn an_answer_with_errors_is_not_kept_and_its_request_is_sent_whole() {
    let cache = cache("subgraph: {}");
    ask(&cache, "a", None, &entities(&[1]), names("max-age=60"));
    let failing = |_: &str| {
        reply(
            "max-age=60",
            r#"{"data":{"_entities":[null]},"errors":[{"message":"x","path":["_entities",0]}]}"#,
        )
    };
    assert_eq!(ask(&cache, "a", None, &entities(&[1, 2]), failing).1, 2);
    let short = |_: &str| reply("max-age=60", r#"{"data":{"_entities":[]}}"#);
    assert_eq!(ask(&cache, "a", None, &entities(&[1, 2]), short).1, 2);
    // No entity was stored.
    let (_, asked) = ask(&cache, "a", None, &entities(&[2]), names("max-age=60"));
    assert_eq!(asked, 1);
    for body in [
        "{}",
        "[",
        "{\"data\":null}",
        "{\"data\":{},\"errors\":[{}]}",
    ] {
        let broken = |_: &str| reply("max-age=60", body);
        for _ in 0..2 {
            assert_eq!(
                ask(&cache, "a", None, "{\"query\":\"{a}\"}", broken).1,
                1,
                "{body}"
            );
        }
    }
}

#[test]
fn private_answers_are_for_one_client_and_for_none_without_a_name() {
    let cache = cache("subgraph: {all: {private_id: user}}");
    let query = "{\"query\":\"{me}\"}";
    let me = |name: &'static str| {
        move |_: &str| {
            reply(
                "private, max-age=60",
                &format!("{{\"data\":{{\"me\":\"{name}\"}}}}"),
            )
        }
    };
    assert_eq!(ask(&cache, "a", Some("x"), query, me("x")).1, 1);
    let (told, asked) = ask(&cache, "a", Some("x"), query, me("other"));
    assert_eq!((told.contains("\"x\""), asked), (true, 0));
    assert_eq!(ask(&cache, "a", Some("y"), query, me("y")).1, 1);
    for _ in 0..2 {
        assert_eq!(ask(&cache, "a", None, query, me("unknown")).1, 1);
    }
}

#[test]
fn what_is_said_to_be_out_of_date_is_not_found() {
    let cache = cache("subgraph: {}");
    let query = "{\"query\":\"{a}\"}";
    let root = |_: &str| reply("max-age=60", "{\"data\":{\"a\":1}}");
    let ask_both = || {
        let one = ask(&cache, "a", None, query, root).1;
        let two = ask(&cache, "a", None, &entities(&[1]), names("max-age=60")).1;
        (one, two)
    };
    assert_eq!(ask_both(), (1, 1));
    assert_eq!(ask_both(), (0, 0));
    at_once(cache.invalidate("a", Some("T"))).unwrap();
    assert_eq!(ask_both(), (0, 1));
    at_once(cache.invalidate("a", Some("Query"))).unwrap();
    assert_eq!(ask_both(), (1, 0));
    at_once(cache.invalidate("b", None)).unwrap();
    assert_eq!(ask_both(), (0, 0));
    at_once(cache.invalidate("a", None)).unwrap();
    assert_eq!(ask_both(), (1, 1));
    // Responses that were in flight during the invalidation are not found later.
    let headers = HeaderMap::new();
    let body = Bytes::from_static(b"{\"query\":\"{late}\"}");
    let question = || Question {
        subgraph: "a",
        address: "http://a/",
        headers: &headers,
        body: &body,
        client: None,
    };
    let CacheLookup::Miss(keys) = at_once(cache.look(&question())) else {
        panic!("it is new");
    };
    at_once(cache.invalidate("a", None)).unwrap();
    cache.keep(&keys, &root(""));
    assert!(matches!(
        at_once(cache.look(&question())),
        CacheLookup::Miss(_)
    ));
}

#[test]
fn memory_is_bounded_in_entries_and_bytes_and_for_types_that_are_made_up() {
    let cache = cache("in_memory: {limit: 100, max_bytes: 100KiB}");
    let long = format!("{{\"data\":{{\"a\":\"{}\"}}}}", "x".repeat(5_000));
    for index in 0..1_000 {
        let query = format!("{{\"query\":\"{{a{index}}}\"}}");
        ask(&cache, "a", None, &query, |_| reply("max-age=60", &long));
    }
    let stats = cache.stats();
    assert!(
        stats.bytes <= 100 << 10 && stats.entries <= 100,
        "{stats:?}"
    );
    (0..20_000)
        .for_each(|index| at_once(cache.invalidate("a", Some(&format!("T{index}")))).unwrap());
    let invalidated = cache.invalidated.read().unwrap();
    assert_eq!(invalidated.types.len(), TYPES_MAX);
}

#[test]
fn no_answer_takes_the_room_of_all_others() {
    let cache = cache("in_memory: {limit: 1000, max_bytes: 160KiB}");
    let text = |length: usize| format!("{{\"data\":{{\"a\":\"{}\"}}}}", "x".repeat(length));
    let ask_for = |name: &str, length: usize| {
        let query = format!("{{\"query\":\"{{{name}}}\"}}");
        ask(&cache, "a", None, &query, |_| {
            reply("max-age=60", &text(length))
        })
        .1
    };
    let small = || -> usize { (0..20).map(|it| ask_for(&format!("a{it}"), 1_000)).sum() };
    assert_eq!((small(), small()), (20, 0));
    // More than a sixteenth of the memory.
    for length in [11_000, 150_000] {
        assert_eq!((ask_for("b", length), ask_for("b", length)), (1, 1));
    }
    let many: Vec<u32> = (0..500).collect();
    for _ in 0..2 {
        let told = ask(&cache, "a", None, &entities(&many), names("max-age=60"));
        assert_eq!(told.1, 1);
    }
    assert_eq!(ask_for("c", 9_000) + ask_for("c", 9_000), 1);
    assert_eq!(small(), 0);
}

#[test]
fn other_headers_and_addresses_are_other_questions() {
    let cache = cache("subgraph: {}");
    let body = Bytes::from_static(b"{\"query\":\"{a}\"}");
    let mut one = HeaderMap::new();
    one.insert("x-tenant", HeaderValue::from_static("1"));
    let mut two = HeaderMap::new();
    two.insert("x-tenant", HeaderValue::from_static("2"));
    let looks_new = |headers: &HeaderMap, address: &str| {
        let question = Question {
            subgraph: "a",
            address,
            headers,
            body: &body,
            client: None,
        };
        match at_once(cache.look(&question)) {
            CacheLookup::Miss(keys) => {
                cache.keep(&keys, &reply("max-age=60", "{\"data\":{\"a\":1}}"));
                true
            }
            _ => false,
        }
    };
    let own = "http://own";
    assert!(looks_new(&one, own) && !looks_new(&one, own));
    assert!(looks_new(&two, own));
    assert!(looks_new(&one, "http://other"));
    assert!(looks_new(&HeaderMap::new(), own));
    assert!(!looks_new(&two, own));
}

//! Key sets at URLs: how often the gateway fetches them, and how it handles tokens without them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use gateway_extensions::{Extensions, ExtensionsWorker, KeyStore, NoObserver, StageRequest, Step};
use gateway_upstream::{Client, ClientSettings};
use ring::hmac;
use serde_json::{Value, json};

use crate::stand::{exchange, extensions_with, json as answer, run, serve};

fn part(value: &Value) -> String {
    URL_SAFE_NO_PAD.encode(value.to_string())
}

/// A token that is signed with the key of this name. The key's secret is its name.
fn token(kid: &str) -> String {
    let head = part(&json!({"alg": "HS256", "kid": kid}));
    let signed = format!("{head}.{}", part(&json!({"exp": 4_102_444_800_u64})));
    let key = hmac::Key::new(hmac::HMAC_SHA256, kid.as_bytes());
    let tag = hmac::sign(&key, signed.as_bytes());
    format!("Bearer {signed}.{}", URL_SAFE_NO_PAD.encode(tag))
}

fn set(kids: &[&str]) -> String {
    let keys: Vec<Value> = kids
        .iter()
        .map(|kid| json!({"kty": "oct", "kid": kid, "k": URL_SAFE_NO_PAD.encode(kid)}))
        .collect();
    json!({ "keys": keys }).to_string()
}

fn guarded(url: &str, more: &str, store: &Arc<KeyStore>) -> Extensions {
    let yaml = format!(
        r#"{{"authentication": {{"router": {{"jwt": {{"jwks": [{{"url": "{url}"{more}}}]}}}}}}}}"#
    );
    extensions_with(&yaml, "http://localhost:1", store).unwrap()
}

fn worker(extensions: &Extensions) -> ExtensionsWorker {
    let client = Client::new(ClientSettings::default());
    extensions.worker(client, std::rc::Rc::new(NoObserver))
}

/// The status of the rejection, or 200.
async fn status(worker: &ExtensionsWorker, token: &str) -> u16 {
    let mut request = StageRequest::default();
    let value = token.parse().unwrap();
    request.headers.insert("authorization", value);
    let router = worker.router.as_ref().unwrap();
    match router.request(&exchange(&[]), &mut request).await {
        Step::Continue => 200,
        Step::Break(response) => response.status.as_u16(),
    }
}

#[test]
fn a_token_with_an_unknown_key_asks_anew_but_not_every_time() {
    run(async {
        let asked = AtomicUsize::new(0);
        // From its second response on, the server includes the second key.
        let keys = serve(move |_| {
            let count = asked.fetch_add(1, Ordering::SeqCst);
            Some(answer(set(&["old", "new"][..=count.min(1)])))
        })
        .await;
        let extensions = guarded(&keys.url, r#", "unknown_key_pause": "0s""#, &Arc::default());
        let worker = worker(&extensions);
        assert_eq!(status(&worker, &token("old")).await, 200);
        assert_eq!(status(&worker, &token("old")).await, 200);
        assert_eq!(keys.seen().len(), 1);
        assert_eq!(status(&worker, &token("new")).await, 200);
        assert_eq!(keys.seen().len(), 2);
        let patient = guarded(&keys.url, "", &Arc::default());
        let worker = self::worker(&patient);
        for _ in 0..5 {
            assert_eq!(status(&worker, &token("made up")).await, 401);
        }
        assert_eq!(keys.seen().len(), 3);
    });
}

#[test]
fn many_tokens_without_keys_ask_once() {
    run(async {
        let keys = serve(|_| Some(answer(set(&["one"])))).await;
        let store = Arc::default();
        let extensions = guarded(&keys.url, "", &store);
        // Like two workers of one process, which share their keys.
        let workers = [worker(&extensions), worker(&extensions)];
        let token = token("one");
        let (a, b, c, d) = tokio::join!(
            status(&workers[0], &token),
            status(&workers[0], &token),
            status(&workers[1], &token),
            status(&workers[1], &token),
        );
        assert_eq!([a, b, c, d], [200; 4]);
        assert_eq!(keys.seen().len(), 1);
    });
}

#[test]
fn while_no_keys_are_known_it_is_not_the_clients_fault() {
    run(async {
        let keys = serve(|_| {
            let mut failure = answer(String::new());
            failure.status = 500;
            Some(failure)
        })
        .await;
        let extensions = guarded(&keys.url, "", &Arc::default());
        let worker = worker(&extensions);
        for _ in 0..3 {
            assert_eq!(status(&worker, &token("one")).await, 503);
        }
        // After the first failed fetch, tokens that arrive right after it cause no new fetch.
        assert_eq!(keys.seen().len(), 1);
        let (set, _) = &extensions.token_keys().remove(0);
        assert!(set.missing().unwrap().contains("500"));
    });
}

#[test]
fn a_reload_keeps_the_keys_of_the_same_url() {
    run(async {
        let asked = AtomicUsize::new(0);
        let keys = serve(move |_| {
            let mut reply = answer(set(&["one"]));
            // Responds once, then fails.
            if asked.fetch_add(1, Ordering::SeqCst) > 0 {
                reply.status = 500;
            }
            Some(reply)
        })
        .await;
        let store = Arc::default();
        let before = guarded(&keys.url, "", &store);
        assert_eq!(status(&worker(&before), &token("one")).await, 200);
        let after = guarded(&keys.url, r#", "poll_interval": "5m""#, &store);
        let worker = worker(&after);
        drop(before);
        assert_eq!(status(&worker, &token("one")).await, 200);
        after.token_keys()[0]
            .0
            .refresh(&Client::new(ClientSettings::default()))
            .await;
        assert_eq!(status(&worker, &token("one")).await, 200);
        // A set with other request headers is another set, because the server may return other keys for them.
        let other = guarded(
            &keys.url,
            r#", "headers": [{"name": "x-tenant", "value": "b"}]"#,
            &store,
        );
        assert!(other.token_keys()[0].0.missing().is_some());
    });
}

//! Tests services that are absent at the start, that come back, and that stop under load.

use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use rustix::process::Signal;
use serde_json::Value;

use crate::client::post;
use crate::gateway::Gateway;
use crate::remote_schemas::{PRODUCTS, answering, introspection, quiet_address, service};
use crate::stub::{self, Answer, Stub};

const PRODUCT: &str = r#"{"data":{"product":{"id":"1"}}}"#;
const QUERY: &str = r#"{"query":"{ product { id } }"}"#;

#[test]
fn a_service_that_comes_late_is_taken_in_without_a_restart() {
    let address = quiet_address();
    let told = introspection(PRODUCTS);
    let config =
        format!("remote_schemas: [{{name: products, url: 'http://{address}/v1/graphql'}}]");
    let mut gateway = Gateway::merged(&config);
    let health = gateway.ask_health("/health?ready");
    assert_eq!(health.status, 503);
    let reason = health.json()["missing_sources"]["products"].clone();
    assert!(
        reason.as_str().unwrap().contains("cannot connect"),
        "{reason}"
    );
    assert!(
        gateway
            .ask("{ product { id } }")
            .contains("validation-failed")
    );
    let listener = TcpListener::bind(&address).unwrap();
    let _late = Stub::on(listener, answering(told, |_| stub::json(PRODUCT)));
    gateway.wait_for("`products` is available now");
    assert_eq!(
        gateway.ask_health("/health?ready").text(),
        r#"{"status":"UP"}"#
    );
    // Workers receive the schema shortly after this log line.
    let answered = std::iter::repeat_with(|| gateway.ask("{ product { id } }"));
    assert!(answered.take(10_000).any(|answer| answer == PRODUCT));
}

#[test]
fn a_service_that_says_nonsense_at_first_is_asked_again() {
    let told = introspection(PRODUCTS);
    let count = AtomicUsize::new(0);
    let products = Stub::start(move |seen| {
        if !seen.body.contains("__schema") {
            return stub::json(PRODUCT);
        }
        match count.fetch_add(1, Ordering::SeqCst) {
            0 => Answer::With(503, Some("text/html"), b"<html>starting".to_vec()),
            1 => stub::json(r#"{"errors":[{"message":"introspection is off"}]}"#),
            _ => stub::json(&told),
        }
    });
    let config = format!(
        "remote_schemas: [{{name: products, url: '{}'}}]",
        products.url
    );
    let mut gateway = Gateway::merged(&config);
    gateway.wait_for("`products` is available now");
    assert_eq!(gateway.ask_health("/health?ready").status, 200);
}

#[test]
fn a_reload_keeps_what_a_silent_service_said_before() {
    let silent = std::sync::Arc::new(AtomicBool::new(false));
    let told = introspection(PRODUCTS);
    let is_silent = std::sync::Arc::clone(&silent);
    let products = Stub::start(move |seen| match seen.body.contains("__schema") {
        false => stub::json(PRODUCT),
        true if is_silent.load(Ordering::SeqCst) => Answer::Raw(Vec::new()),
        true => stub::json(&told),
    });
    let config = format!(
        "remote_schemas: [{{name: products, url: '{}'}}]",
        products.url
    );
    let mut gateway = Gateway::merged(&config);
    silent.store(true, Ordering::SeqCst);
    gateway.signal(Signal::HUP);
    gateway.wait_for("reloaded: SIGHUP");
    assert_eq!(gateway.ask("{ product { id } }"), PRODUCT);
    assert_eq!(gateway.ask_health("/health?ready").status, 503);
    silent.store(false, Ordering::SeqCst);
    gateway.wait_for("`products` is available now");
    assert_eq!(gateway.ask_health("/health?ready").status, 200);
}

#[test]
fn a_reload_takes_other_services_in_at_once() {
    let products = service(introspection(PRODUCTS), |_| stub::json(PRODUCT));
    let config = |more: &str| {
        format!(
            "remote_schemas: [{{name: products, url: '{}'{more}}}]",
            products.url
        )
    };
    let mut gateway = Gateway::merged(&config(""));
    assert_eq!(gateway.ask("{ product { id } }"), PRODUCT);
    let changed = config(", customization: {root_fields_namespace: shop}");
    std::fs::write(gateway.path("router.yaml"), changed).unwrap();
    gateway.signal(Signal::HUP);
    gateway.wait_for("reloaded: SIGHUP");
    let answers = std::iter::repeat_with(|| gateway.ask("{ shop { product { id } } }"));
    let nested = r#"{"data":{"shop":{"product":{"id":"1"}}}}"#;
    assert!(answers.take(10_000).any(|answer| answer == nested));
    std::fs::write(
        gateway.path("router.yaml"),
        "remote_schemas: [{name: products}]",
    )
    .unwrap();
    gateway.signal(Signal::HUP);
    let line = gateway.wait_for("not reloaded");
    assert!(
        line.to_string().contains("the key `url` is missing"),
        "{line}"
    );
    assert_eq!(gateway.ask("{ shop { product { id } } }"), nested);
}

#[test]
fn a_service_killed_under_load_gives_clear_errors_and_is_used_again_when_it_is_back() {
    let address = quiet_address();
    let told = introspection(PRODUCTS);
    let start = || {
        let listener = TcpListener::bind(&address).unwrap();
        Stub::on(listener, answering(told.clone(), |_| stub::json(PRODUCT)))
    };
    let first = start();
    let config = format!("remote_schemas: [{{name: products, url: 'http://{address}'}}]");
    let gateway = Gateway::merged(&config);
    let (good, failed) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let is_over = AtomicBool::new(false);
    let load = || {
        let mut connection = gateway.connect();
        while !is_over.load(Ordering::SeqCst) {
            let response = connection.send(&post(QUERY));
            assert_eq!(response.status, 200, "{}", response.text());
            if response.text() == PRODUCT {
                good.fetch_add(1, Ordering::SeqCst);
            } else {
                let answer: Value = response.json();
                assert_eq!(answer["data"], Value::Null, "{answer}");
                assert_eq!(
                    crate::client::code(&response),
                    "remote-schema-error",
                    "{answer}"
                );
                failed.fetch_add(1, Ordering::SeqCst);
            }
        }
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(load)).collect();
        let more = |counter: &AtomicUsize| {
            let before = counter.load(Ordering::SeqCst);
            while counter.load(Ordering::SeqCst) < before + 20 {
                assert!(!threads.iter().any(|it| it.is_finished()));
                thread::yield_now();
            }
        };
        more(&good);
        first.stop();
        more(&failed);
        let _second = start();
        more(&good);
        is_over.store(true, Ordering::SeqCst);
        for thread in threads {
            thread.join().unwrap();
        }
    });
    assert_eq!(gateway.ask("{ product { id } }"), PRODUCT);
    assert_eq!(gateway.ask_health("/health?ready").status, 200);
}

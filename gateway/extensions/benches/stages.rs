//! Measures the cost of each extension point alone: no network, one thread.
//!
//! `cargo bench -p gateway-extensions`. Each line is the time of one call. Before the calls of the last
//! lines, other data fills the caches, as between two requests of a gateway with little load. A script is
//! most expensive then, because it uses most code and data.

#![expect(clippy::unwrap_used, reason = "a bench that cannot go on fails")]

use std::future::Future;
use std::hint::black_box;
use std::path::Path;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use gateway_config::{Config, Surroundings};
use gateway_extensions::{
    ClientBody, ClientHead, CoprocessorStage, Exchange, Extensions, ExtensionsWorker, NoObserver,
    Response, Rules, StageKind, StageRequest,
};
use gateway_upstream::{Client, ClientSettings};
use test_client::bench::{Cold, time, time_cold};

const CALLS: u32 = 20_000;
const QUERY: &str = r#"{"query":"query Location($id: ID!) { location(id: $id) { id name reviews { rating } } }","operationName":"Location","variables":{"id":"1"}}"#;

struct Outside;

impl Surroundings for Outside {
    fn variable(&self, _: &str) -> Option<String> {
        None
    }

    fn file(&self, _: &Path) -> Option<String> {
        None
    }
}

fn config(yaml: &str) -> Config {
    gateway_config::read(Path::new("bench.yaml"), yaml, &Outside, false)
        .unwrap_or_else(|mistakes| panic!("{mistakes}"))
        .config
}

fn measure(name: &str, call: impl FnMut()) {
    time(name, CALLS, call);
}

/// Stages without network finish at their first poll.
fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("a stage without network waits"),
    }
}

fn exchange() -> Exchange {
    let mut head = ClientHead::default();
    for (name, value) in [
        ("accept", "application/json"),
        ("content-type", "application/json"),
        ("user-agent", "bench/1.0"),
        (
            "authentication",
            "Bearer eyJhbGciOiJIUzI1NiJ9.e30.c2lnbmF0dXJl",
        ),
        ("x-request-id", "0123456789"),
    ] {
        head.headers.insert(name, value.parse().unwrap());
    }
    let mut exchange = Exchange::new(Rc::new(head));
    exchange.client_body = Rc::new(ClientBody::new(QUERY.into()));
    exchange
}

fn request(exchange: &Exchange) -> StageRequest {
    StageRequest {
        method: http::Method::POST,
        uri: "/".parse().unwrap(),
        headers: exchange.client.headers.clone(),
        body: QUERY.into(),
    }
}

fn response() -> Response {
    let review = r#"{"id":"r","comment":"a comment of the usual length","rating":5},"#;
    let body = format!(r#"{{"data":{{"reviews":[{}{{}}]}}}}"#, review.repeat(48));
    Response {
        headers: exchange().client.headers.clone(),
        body: body.into(),
        ..Response::default()
    }
}

fn header_rules() {
    let exchange = exchange();
    for (name, rules) in [
        (
            "insert",
            r#"[{"insert": {"name": "source", "value": "config"}}]"#,
        ),
        (
            "propagate named",
            r#"[{"propagate": {"named": "x-request-id"}}]"#,
        ),
        (
            "propagate matching",
            r#"[{"propagate": {"matching": "^x-.*"}}]"#,
        ),
        (
            "insert from body",
            r#"[{"insert": {"name": "op", "path": ".operationName"}}]"#,
        ),
    ] {
        let config = config(&format!(
            r#"{{"headers": {{"all": {{"request": {rules}}}}}}}"#
        ));
        let rules = Rules::of_subgraph(&config.headers, "one");
        measure(&format!("header rule: {name}"), || {
            let mut headers = http::HeaderMap::new();
            rules.apply(
                &exchange.client.headers,
                &exchange.context,
                &exchange.client_body,
                &mut headers,
            );
            black_box(headers);
        });
    }
}

fn scripted(main: &str) -> ExtensionsWorker {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("main.rhai"), main).unwrap();
    let yaml = format!(
        r#"{{"rhai": {{"scripts": "{}"}}}}"#,
        folder.path().display()
    );
    Extensions::build(
        Arc::new(config(&yaml)),
        "",
        &[],
        Arc::new(|_| None),
        &Arc::default(),
    )
    .unwrap_or_else(|errors| panic!("{errors:?}"))
    .worker(Client::new(ClientSettings::default()), Rc::new(NoObserver))
}

fn scripts() {
    let exchange = exchange();
    for (name, entry, body) in [
        ("router, nothing", "router_service", ""),
        (
            "router, set a header",
            "router_service",
            "r.headers[\"source\"] = \"rhai\";",
        ),
        (
            "router, read the context",
            "router_service",
            "let x = r.context[\"a\"];",
        ),
        (
            "supergraph, read the query",
            "supergraph_service",
            "let x = r.body.query;",
        ),
        (
            "execution, rewrite a variable",
            "execution_service",
            "r.body.variables.id = \"2\";",
        ),
    ] {
        let main = format!("fn {entry}(s) {{ s.map_request(|r| {{ {body} }}); }}");
        let worker = scripted(&main);
        let services = [&worker.router, &worker.supergraph, &worker.execution];
        let service = services.into_iter().flatten().next().unwrap();
        let mut message = request(&exchange);
        measure(&format!("rhai request: {name}"), || {
            let step = now(service.request(&exchange, &mut message));
            let _step = black_box(step);
        });
    }
    for (name, entry, body) in [
        (
            "router, ten UUIDs as headers",
            "router_service",
            "for i in 1..=10 { r.headers[`GUID${i}`] = uuid_v4(); }",
        ),
        (
            "supergraph, read data of 3 KB",
            "supergraph_service",
            "let x = r.body.data;",
        ),
    ] {
        let main = format!("fn {entry}(s) {{ s.map_response(|r| {{ {body} }}); }}");
        let worker = scripted(&main);
        let services = [&worker.router, &worker.supergraph];
        let service = services.into_iter().flatten().next().unwrap();
        let mut message = response();
        measure(&format!("rhai response: {name}"), || {
            now(service.response(&exchange, &mut message));
        });
    }
}

fn coprocessors() {
    let yaml = r#"{"coprocessor": {"url": "http://localhost:1",
        "router": {"request": {"headers": true}, "response": {"headers": true}},
        "supergraph": {"request": {"headers": true, "body": true, "context": "all"}, "response": {"body": true}}}}"#;
    let config = config(yaml);
    let config = config.coprocessor.as_ref().unwrap();
    let exchange = exchange();
    for (kind, what) in [
        (StageKind::RouterRequest, "headers"),
        (StageKind::SupergraphRequest, "headers, body, context"),
    ] {
        let stage = CoprocessorStage::new(kind, config, &Arc::default())
            .unwrap()
            .unwrap();
        let mut message = request(&exchange);
        let echo = stage.request_message(&exchange, None, &message);
        measure(
            &format!("coprocessor {}: make message ({what})", kind.as_str()),
            || {
                black_box(stage.request_message(&exchange, None, &message));
            },
        );
        measure(
            &format!("coprocessor {}: apply its echo", kind.as_str()),
            || {
                let step = stage
                    .apply_to_request(&exchange, &echo, &mut message)
                    .unwrap();
                let _step = black_box(step);
            },
        );
    }
    for (kind, what) in [
        (StageKind::RouterResponse, "headers"),
        (StageKind::SupergraphResponse, "body of 3 KB"),
    ] {
        let stage = CoprocessorStage::new(kind, config, &Arc::default())
            .unwrap()
            .unwrap();
        let mut message = response();
        let echo = stage.response_message(&exchange, None, &message);
        measure(
            &format!("coprocessor {}: make message ({what})", kind.as_str()),
            || {
                black_box(stage.response_message(&exchange, None, &message));
            },
        );
        measure(
            &format!("coprocessor {}: apply its echo", kind.as_str()),
            || {
                stage
                    .apply_to_response(&exchange, &echo, &mut message)
                    .unwrap();
            },
        );
    }
}

/// The stages that the lab `static-subgraph` measures.
fn seldom() {
    let exchange = exchange();
    let config = config(
        r#"{"headers": {"all": {"request": [{"insert": {"name": "source", "value": "config"}}]}}}"#,
    );
    let rules = Rules::of_subgraph(&config.headers, "one");
    let insert = || {
        let mut headers = http::HeaderMap::new();
        let client = &exchange.client;
        rules.apply(
            &client.headers,
            &exchange.context,
            &exchange.client_body,
            &mut headers,
        );
        black_box(headers);
    };
    let worker = scripted(
        r#"fn router_service(s) { s.map_request(|r| { r.headers["source"] = "rhai"; }); }"#,
    );
    let service = worker.router.as_ref().unwrap();
    let mut message = request(&exchange);
    let mut script = || {
        let step = now(service.request(&exchange, &mut message));
        let _step = black_box(step);
    };
    for (cold, how) in [
        (Cold::Core, "its core was busy"),
        (Cold::Machine, "the machine was busy"),
    ] {
        time_cold(&format!("header rule: insert, {how}"), cold, insert);
        let name = format!("rhai request: router, set a header, {how}");
        time_cold(&name, cold, &mut script);
    }
}

fn main() {
    header_rules();
    scripts();
    coprocessors();
    seldom();
}
